/* fsi_front_cross.h - do two elements of a surface cross or touch? Exact, in integers.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_front_remesh.h includes this file and asks it before it changes a surface.

   WHAT IS IN HERE (search for >>)
      >>stages           for fsi's own headers, not for you: tests of two elements
   MACROS: those of fsi.h.
   UNITS: SI; integers count 2^-19 target lengths of edges, 2^-20 cells of a grid that has two edges a cell.
*/
#ifndef FSI_FRONT_CROSS_H
#define FSI_FRONT_CROSS_H

#include "fsi.h"

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

/* A vertex on the lattice. All tests are exact for coordinates that differ by 2^30 at most: minors then have 61 bits,
   of which determinants are made in two parts. */
typedef struct fsi__fr_int3 { int64_t x, y, z; } fsi__fr_int3;
#define FSI__FR_UNITS 524288.0 /* of the lattice in a target length */
#define FSI__FR_REACH ((int64_t)1 << 30)

/* An element with the numbers of its vertices. */
typedef struct fsi__fr_element {
    fsi__fr_int3 p[3];
    int id[3];
} fsi__fr_element;

/* The point of the lattice next to x, which is at most 2^30 target lengths away, for elements with this length. */
FSI_API fsi__fr_int3 fsi__fr_snap(fsi_vec3 x, double length);
/* Do two elements with k corners meet in more than the vertices that they share? 1 also where they are too far apart
   or too large to tell. */
FSI_API int fsi__fr_meet(int k, const fsi__fr_element *a, const fsi__fr_element *b);
/* The sign of (b - a) x (c - a) . (d - a), where d is moved by (e, e^2, e^3) with e > 0 as small as one likes: 0 only
   where a, b, c are on a line. Coordinates differ by 2^30 at most. */
FSI_API int fsi__fr_side_moved(fsi__fr_int3 a, fsi__fr_int3 b, fsi__fr_int3 c, fsi__fr_int3 d);

#endif /* FSI_FRONT_CROSS_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_FRONT_CROSS_IMPLEMENTATION
#define FSI_FRONT_CROSS_IMPLEMENTATION
#endif
#ifdef FSI_FRONT_CROSS_IMPLEMENTATION
#ifndef FSI_FRONT_CROSS_IMPLEMENTATION_DONE
#define FSI_FRONT_CROSS_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi.h"

FSI__STRICT_BEGIN

FSI_API fsi__fr_int3 fsi__fr_snap(fsi_vec3 x, double length)
{
    const double scale = FSI__FR_UNITS / length;
    fsi__fr_int3 p;
    p.x = (int64_t)floor((double)x.x * scale + 0.5);
    p.y = (int64_t)floor((double)x.y * scale + 0.5);
    p.z = (int64_t)floor((double)x.z * scale + 0.5);
    return p;
}

static fsi__fr_int3 fsi__fr_less(fsi__fr_int3 a, fsi__fr_int3 b)
{
    fsi__fr_int3 d;
    d.x = a.x - b.x;
    d.y = a.y - b.y;
    d.z = a.z - b.z;
    return d;
}
static fsi__fr_int3 fsi__fr_normal(fsi__fr_int3 a, fsi__fr_int3 b, fsi__fr_int3 c)
{
    const fsi__fr_int3 u = fsi__fr_less(b, a), v = fsi__fr_less(c, a);
    fsi__fr_int3 n;
    n.x = u.y * v.z - u.z * v.y;
    n.y = u.z * v.x - u.x * v.z;
    n.z = u.x * v.y - u.y * v.x;
    return n;
}

/* Sign of the determinant n . d for a minor n: n = 2^31 high + low with 0 <= low < 2^31, so that no sum has more than
   63 bits. */
static int fsi__fr_side(fsi__fr_int3 n, fsi__fr_int3 d)
{
    const int64_t half = (int64_t)1 << 31;
    const int64_t m[3] = { n.x, n.y, n.z }, f[3] = { d.x, d.y, d.z };
    int64_t high = 0, low = 0, carry;
    int i;
    for (i = 0; i < 3; i++) {
        int64_t h = m[i] / half, l = m[i] % half;
        if (l < 0) { l += half; h--; }
        high += h * f[i];
        carry = l * f[i] / half;
        high += carry;
        low += l * f[i] - carry * half;
    }
    carry = low / half;
    low -= carry * half;
    high += carry;
    if (high != 0 && (low == 0 || high > 1 || high < -1)) return high > 0 ? 1 : -1;
    low += high * half; /* |high| <= 1 */
    return (low > 0) - (low < 0);
}

static int fsi__fr_orient(fsi__fr_int3 a, fsi__fr_int3 b, fsi__fr_int3 c, fsi__fr_int3 d)
{
    return fsi__fr_side(fsi__fr_normal(a, b, c), fsi__fr_less(d, a));
}

FSI_API int fsi__fr_side_moved(fsi__fr_int3 a, fsi__fr_int3 b, fsi__fr_int3 c, fsi__fr_int3 d)
{
    const fsi__fr_int3 n = fsi__fr_normal(a, b, c);
    const int side = fsi__fr_side(n, fsi__fr_less(d, a));
    const int64_t moved = n.x != 0 ? n.x : n.y != 0 ? n.y : n.z;
    return side != 0 ? side : (moved > 0) - (moved < 0);
}

/* ---- in a plane -------------------------------------------------------------------------------------------------- */

/* Without the coordinate `axis`. */
static fsi__fr_int3 fsi__fr_flat(fsi__fr_int3 p, int axis)
{
    fsi__fr_int3 q;
    q.x = axis == 0 ? p.y : p.x;
    q.y = axis == 2 ? p.y : p.z;
    q.z = 0;
    return q;
}
static int fsi__fr_turn(fsi__fr_int3 a, fsi__fr_int3 b, fsi__fr_int3 c)
{
    const int64_t n = fsi__fr_normal(a, b, c).z;
    return (n > 0) - (n < 0);
}
/* c is on the line ab: is it on the segment? */
static int fsi__fr_between(fsi__fr_int3 a, fsi__fr_int3 b, fsi__fr_int3 c)
{
    return (c.x >= a.x || c.x >= b.x) && (c.x <= a.x || c.x <= b.x) && (c.y >= a.y || c.y >= b.y)
        && (c.y <= a.y || c.y <= b.y);
}
/* Do the closed segments ab and cd meet? */
static int fsi__fr_segments_meet(fsi__fr_int3 a, fsi__fr_int3 b, fsi__fr_int3 c, fsi__fr_int3 d)
{
    const int sc = fsi__fr_turn(a, b, c), sd = fsi__fr_turn(a, b, d), sa = fsi__fr_turn(c, d, a),
        sb = fsi__fr_turn(c, d, b);
    if (sc * sd < 0 && sa * sb < 0) return 1;
    return (sc == 0 && fsi__fr_between(a, b, c)) || (sd == 0 && fsi__fr_between(a, b, d))
        || (sa == 0 && fsi__fr_between(c, d, a)) || (sb == 0 && fsi__fr_between(c, d, b));
}

/* The axis along which a triangle, or a minor, is widest. */
static int fsi__fr_widest(fsi__fr_int3 n)
{
    const int64_t x = n.x < 0 ? -n.x : n.x, y = n.y < 0 ? -n.y : n.y, z = n.z < 0 ? -n.z : n.z;
    return x >= y && x >= z ? 0 : y >= z ? 1 : 2;
}

/* ---- in space ---------------------------------------------------------------------------------------------------- */

/* Does the closed segment pq meet the closed triangle t? */
static int fsi__fr_segment_meets(fsi__fr_int3 p, fsi__fr_int3 q, const fsi__fr_int3 *t)
{
    const fsi__fr_int3 n = fsi__fr_normal(t[0], t[1], t[2]);
    const int sp = fsi__fr_side(n, fsi__fr_less(p, t[0])), sq = fsi__fr_side(n, fsi__fr_less(q, t[0]));
    int i, s[3];
    if (sp * sq > 0) return 0;
    if (sp != 0 || sq != 0) { /* the line passes the plane between p and q: on one side of all edges? */
        for (i = 0; i < 3; i++) s[i] = fsi__fr_orient(p, q, t[i], t[(i + 1) % 3]);
        return (s[0] >= 0 && s[1] >= 0 && s[2] >= 0) || (s[0] <= 0 && s[1] <= 0 && s[2] <= 0);
    }
    if (n.x == 0 && n.y == 0 && n.z == 0) return 0; /* no triangle: its edges are tested by themselves */
    {
        const int axis = fsi__fr_widest(n);
        const fsi__fr_int3 a = fsi__fr_flat(p, axis), b = fsi__fr_flat(q, axis);
        fsi__fr_int3 c[3];
        for (i = 0; i < 3; i++) c[i] = fsi__fr_flat(t[i], axis);
        for (i = 0; i < 3; i++) {
            if (fsi__fr_segments_meet(a, b, c[i], c[(i + 1) % 3])) return 1;
            s[i] = fsi__fr_turn(c[i], c[(i + 1) % 3], a);
        }
        return (s[0] >= 0 && s[1] >= 0 && s[2] >= 0) || (s[0] <= 0 && s[1] <= 0 && s[2] <= 0);
    }
}

/* With a common edge: they meet where they are folded onto each other, or one has no area and lies on both. */
static int fsi__fr_folded(fsi__fr_int3 u, fsi__fr_int3 v, fsi__fr_int3 a, fsi__fr_int3 b)
{
    const fsi__fr_int3 n = fsi__fr_normal(u, v, a);
    const int axis = fsi__fr_widest(n);
    if (fsi__fr_side(n, fsi__fr_less(b, u)) != 0) return 0;
    return fsi__fr_turn(fsi__fr_flat(u, axis), fsi__fr_flat(v, axis), fsi__fr_flat(a, axis))
        * fsi__fr_turn(fsi__fr_flat(u, axis), fsi__fr_flat(v, axis), fsi__fr_flat(b, axis)) >= 0;
}

/* Are all coordinates within reach of the first vertex? */
static int fsi__fr_in_reach(const fsi__fr_element *a, const fsi__fr_element *b, int k)
{
    int i, in = 1;
    for (i = 0; i < 2 * k; i++) {
        const fsi__fr_int3 d = fsi__fr_less(i < k ? a->p[i] : b->p[i - k], a->p[0]);
        in &= d.x <= FSI__FR_REACH / 2 && d.x >= -FSI__FR_REACH / 2 && d.y <= FSI__FR_REACH / 2
            && d.y >= -FSI__FR_REACH / 2 && d.z <= FSI__FR_REACH / 2 && d.z >= -FSI__FR_REACH / 2;
    }
    return in;
}

/* Segments with a common vertex u: folded onto each other? */
static int fsi__fr_spike(fsi__fr_int3 u, fsi__fr_int3 a, fsi__fr_int3 b)
{
    return fsi__fr_turn(u, a, b) == 0 && (fsi__fr_between(u, a, b) || fsi__fr_between(u, b, a));
}

FSI_API int fsi__fr_meet(int k, const fsi__fr_element *a, const fsi__fr_element *b)
{
    int i, j, shared = 0, own[3] = { -1, -1, -1 }, other[3] = { -1, -1, -1 };
    if (!fsi__fr_in_reach(a, b, k)) return 1;
    for (i = 0; i < k; i++)
        for (j = 0; j < k; j++)
            if (a->id[i] == b->id[j]) {
                own[shared] = i;
                other[shared++] = j;
            }
    if (shared == k) return 1;
    if (k == 2) {
        if (shared == 0) return fsi__fr_segments_meet(a->p[0], a->p[1], b->p[0], b->p[1]);
        return fsi__fr_spike(a->p[own[0]], a->p[1 - own[0]], b->p[1 - other[0]]);
    }

    /* One common vertex: what they share beyond it ends on the edge opposite of it, of one of them. */
    if (shared == 2)
        return fsi__fr_folded(a->p[own[0]], a->p[own[1]], a->p[3 - own[0] - own[1]], b->p[3 - other[0] - other[1]]);
    if (shared == 1)
        return fsi__fr_segment_meets(a->p[(own[0] + 1) % 3], a->p[(own[0] + 2) % 3], b->p)
            || fsi__fr_segment_meets(b->p[(other[0] + 1) % 3], b->p[(other[0] + 2) % 3], a->p);
    for (i = 0; i < 3; i++)
        if (fsi__fr_segment_meets(a->p[i], a->p[(i + 1) % 3], b->p)
            || fsi__fr_segment_meets(b->p[i], b->p[(i + 1) % 3], a->p)) return 1;
    return 0;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
