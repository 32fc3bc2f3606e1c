/* fsi_front_remesh.h - remeshing of closed surfaces of triangles or segments: split, collapse, flip, smooth.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_front.h includes this file and remeshes with it in each step.

   WHAT IS IN HERE (search for >>)
      >>stages           for fsi's own headers, not for you: the mesh that a step works on, and its operations
   MACROS: those of fsi.h.
   UNITS: SI.
   PRECISION: positions, velocities and attributes in fsi_real; areas, volumes and sums in double.
*/
#ifndef FSI_FRONT_REMESH_H
#define FSI_FRONT_REMESH_H

#include "fsi_front_cross.h"

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

/* Bounds of a step, in units of the target length; operations begin well within them. */
#define FSI__FR_LONG 1.4       /* edges above are split, none longer is made */
#define FSI__FR_SHORT 0.6      /* edges below are collapsed */
#define FSI__FR_LONGEST 1.6    /* what a step guarantees where operations are not refused, */
#define FSI__FR_SHORTEST 0.4
#define FSI__FR_THINNEST 0.17364817766693033 /* and sin 10 degrees */
#define FSI__FR_THIN 0.25881904510252074     /* sin 15 degrees: triangles below are worked on */
#define FSI__FR_POOR 0.42261826174069944     /* sin 25 degrees: vertices of such triangles are smoothed */
#define FSI__FR_ATTRIBUTES 64  /* of a vertex, at most */
#define FSI__FR_RING 32        /* edges at a vertex; more: operations there are refused */

#define FSI__FR_WALLS 63u      /* flags of a vertex: bit 2 axis + side: it lies on that wall */
#define FSI__FR_FIXED 64u      /* it keeps its position */

typedef struct fsi__fr_box { float lo[3], hi[3]; } fsi__fr_box;

/* Elements by the cell of the middle of their box, on the level of their width. */
typedef struct fsi__fr_hash {
    double cell;               /* of level 0 [m]; of level j 2^j of it */
    int levels;
    int buckets;               /* a power of two */
    int *head;                 /* buckets: first element, -1 */
    int head_room;
} fsi__fr_hash;

/* Elements have k corners, 3 or 2. A triangle has half-edges h = 3 t + i, from corner i to corner i + 1, and twin[h] is
   the half-edge of its neighbour in the opposite direction. A segment t has the neighbours twin[2 t] before its first
   corner and twin[2 t + 1] after its second. Rows that are gone have star -1, corner -1. */
typedef struct fsi__fr_mesh {
    fsi_context *context;
    int k, attributes;
    double length;             /* target of edges [m] */
    double volume_part;        /* what one operation may move, in length^dim */
    double smoothing;
    int only_kept;             /* 1: without what operations need */
    int nv, nt, vroom, troom;  /* rows, also those that are gone */
    fsi_vec3 *x, *v;
    uint32_t *flags, *id;
    fsi_real *a;               /* amounts: vertex by vertex */
    int *star;                 /* a half-edge, or a segment, that begins at the vertex */
    int *corner, *twin, *piece;
    float *cot;                /* of the angle at the corner opposite of half-edge h */
    unsigned char *mark;       /* of an element: what fsi__fr_scan found */
    uint32_t next_id;
    struct fsi__fr_candidate *list, *spare;
    int count, list_room, spare_room;
    double *patch;             /* densities of the vertices around an operation, then sums */
    int crossings;             /* 1: operations after which elements would cross are refused */
    int hashed;                /* 1: all elements are in the hash */
    fsi__fr_hash hash;
    int *next, *bucket;        /* of elements, in the hash; bucket -1: it is not there. find_crossing has the elements
                                  of sheets one after the other in next, and the sheet of each in bucket */
    fsi__fr_box *box;          /* of elements in the hash */
    struct fsi__fr_sheet *sheet; /* find_crossing's */
    int sheets, sheet_room;
    unsigned char *fan;        /* of vertices: 1: no elements around it meet, clearly; find_crossing fills it */
    double *moved;             /* of each piece: volume by which operations changed it; the caller's */
    int *dirty;                /* elements that operations changed since the last scan, some several times */
    int dirty_count, dirty_room;
    fsi__d3 *lift;             /* of vertices that splits have made */
    int lift_room;
    int splits, collapses, flips, smoothed, refused, crossed, rounds;
} fsi__fr_mesh;

/* What is to be done, in the order of key, then of element or vertex. */
typedef struct fsi__fr_candidate { double key; int at; } fsi__fr_candidate;

#define FSI__FR_SHEET 224      /* elements that a sheet begins with, at most */
#define FSI__FR_FULL 240       /* that it may have in the end */
#define FSI__FR_BESIDE 16      /* sheets beside a sheet that are listed */
/* Elements that hang together, as a search from one of them finds them. */
typedef struct fsi__fr_sheet {
    int begin, count;          /* places in m->next */
    int good;                  /* 1: seen along its normal, all elements and all turns around vertices are one way */
    int beside[FSI__FR_BESIDE], neighbors;
    fsi__fr_box box;
    fsi__d3 center, normal;
    double radius;             /* of a ball around the center that has all of it */
    double cosine;             /* of the largest angle between the normals of an element and of the sheet */
    double wide;               /* the widest element */
    int widest;
    int element, other;        /* the first of its elements that meets another of this or a later sheet; -1 */
} fsi__fr_sheet;

/* Largest and smallest over the elements of a mesh, in its target length; sine of the smallest angle; elements beyond
   the bounds; sum of area times velocity. */
typedef struct fsi__fr_quality {
    double longest, shortest, thinnest;
    int long_edges, short_edges, thin;
    fsi__d3 momentum;
} fsi__fr_quality;

/* What a measure of all elements needs and gives: volume about the point of its piece, and area, of each. */
typedef struct fsi__fr_part { double volume, area; } fsi__fr_part;
typedef struct fsi__fr_survey {
    const fsi__fr_mesh *m;
    const fsi_vec3 *about;     /* of each piece: volumes about a point nearby are rounded little */
    int volumes_alone;         /* 1: nothing else is wanted */
    fsi__fr_part *part;        /* m->nt */
    fsi__fr_quality *chunk;    /* fsi__chunks(m->nt, FSI__FR_GRAIN) */
} fsi__fr_survey;
#define FSI__FR_GRAIN 2048     /* elements a chunk */

/* Ends along the axes. */
typedef struct fsi__fr_span { double lo[3], hi[3]; } fsi__fr_span;

FSI__STRICT_FN_BEGIN
/* Areas, dV/dx too, and in 2D lengths, below are rounding: nothing is divided by them. */
FSI_FN double fsi__fr_tiny(const fsi__fr_mesh *m) { return 1e-12 * m->length * (m->k == 3 ? m->length : 1); }
FSI_FN int fsi__fr_after(int h) { return h % 3 == 2 ? h - 2 : h + 1; }
FSI_FN int fsi__fr_before(int h) { return h % 3 == 0 ? h + 2 : h - 1; }
/* Twice the area of a triangle, along its normal. */
FSI_FN fsi__d3 fsi__fr_cross(fsi_vec3 a, fsi_vec3 b, fsi_vec3 c)
{
    return fsi__d3_cross(fsi__d3_diff(b, a), fsi__d3_diff(c, a));
}
/* Twice the area of a triangle along its normal; the length of a segment along its. */
FSI_FN fsi__d3 fsi__fr_normal_of(const fsi__fr_mesh *m, int t)
{
    const int *c = m->corner + m->k * t;
    fsi__d3 d;
    if (m->k == 3) return fsi__fr_cross(m->x[c[0]], m->x[c[1]], m->x[c[2]]);
    d = fsi__d3_diff(m->x[c[1]], m->x[c[0]]);
    return fsi__d3_make(-d.y, d.x, 0);
}
FSI_FN double fsi__fr_length2(fsi_vec3 a, fsi_vec3 b)
{
    const fsi__d3 d = fsi__d3_diff(b, a);
    return fsi__d3_dot(d, d);
}
/* Sine of the smallest angle, which lies between the two longer edges; 0 for a triangle without area. */
FSI_FN double fsi__fr_sine(fsi_vec3 a, fsi_vec3 b, fsi_vec3 c)
{
    const double p = fsi__fr_length2(a, b), q = fsi__fr_length2(b, c), r = fsi__fr_length2(c, a);
    const double least = p < q ? (p < r ? p : r) : (q < r ? q : r);
    const double both = least == p ? q * r : least == q ? p * r : p * q;
    return both > 0 ? fsi__d3_norm(fsi__fr_cross(a, b, c)) / sqrt(both) : 0;
}
FSI_FN int fsi__fr_piece_of(const fsi__fr_mesh *m, int vertex)
{
    return m->piece[m->k == 3 ? m->star[vertex] / 3 : m->star[vertex]];
}
/* Without what points into walls. */
FSI_FN fsi__d3 fsi__fr_along_walls(uint32_t flags, fsi__d3 d)
{
    return fsi__d3_make(flags & 3 ? 0 : d.x, flags & 12 ? 0 : d.y, flags & 48 ? 0 : d.z);
}
FSI_FN void fsi__fr_widen(fsi__fr_span *s, const fsi_vec3 *x)
{
    const double p[3] = { (double)x->x, (double)x->y, (double)x->z };
    int i;
    for (i = 0; i < 3; i++) {
        s->lo[i] = p[i] < s->lo[i] ? p[i] : s->lo[i];
        s->hi[i] = p[i] > s->hi[i] ? p[i] : s->hi[i];
    }
}
FSI_FN fsi__fr_span fsi__fr_span_of(const fsi_vec3 *a, const fsi_vec3 *b, const fsi_vec3 *c)
{
    fsi__fr_span s;
    s.lo[0] = s.hi[0] = (double)a->x;
    s.lo[1] = s.hi[1] = (double)a->y;
    s.lo[2] = s.hi[2] = (double)a->z;
    fsi__fr_widen(&s, b);
    fsi__fr_widen(&s, c); /* in 2D b again: without a branch it stays in registers */
    return s;
}
FSI_FN fsi__fr_span fsi__fr_element_span(const fsi__fr_mesh *m, int t)
{
    const int *c = m->corner + m->k * t;
    return fsi__fr_span_of(m->x + c[0], m->x + c[1], m->x + c[m->k - 1]);
}
FSI_FN double fsi__fr_width(const fsi__fr_span *s)
{
    const double x = s->hi[0] - s->lo[0], y = s->hi[1] - s->lo[1], z = s->hi[2] - s->lo[2];
    return x > y ? (x > z ? x : z) : y > z ? y : z;
}

/* Densities d_i on areas A_i become amounts (factor d_i + more) A_i with the sum that there was: d_i stay in proportion
   where none is negative, and then no amount is. made: sum d_i A_i; least: of 0 and all d_i; area: sum A_i. */
typedef struct fsi__fr_mix { double factor, more; } fsi__fr_mix;
FSI_FN fsi__fr_mix fsi__fr_mix_of(double sum, double made, double least, double area)
{
    const int scaled = least >= 0 && sum >= 0 && made > 1e-6 * sum && made > 0;
    fsi__fr_mix mix;
    mix.factor = scaled ? sum / made : 1;
    mix.more = scaled ? 0 : (sum - made) / area;
    return mix;
}

/* Wider than its ends by more than the lattice and float may move them. */
FSI_FN void fsi__fr_set_box(const fsi__fr_mesh *m, const fsi__fr_span *s, fsi__fr_box *b)
{
    int i;
    for (i = 0; i < 3; i++) {
        const double gap = 4e-6 * m->length + 2e-7 * (fabs(s->lo[i]) + fabs(s->hi[i]));
        b->lo[i] = (float)(s->lo[i] - gap);
        b->hi[i] = (float)(s->hi[i] + gap);
    }
}
FSI__STRICT_FN_END

/* Room for more vertices and elements; all or none. Error: MEMORY. */
FSI_API fsi_status fsi__fr_reserve(fsi__fr_mesh *m, int vertices, int elements, const char *fn);
FSI_API void fsi__fr_free(fsi__fr_mesh *m);
/* Fills twin and star from corner. Returns -1, or the first element with an edge that does not belong to two elements
   in opposite directions; *how: 0 open, 1 it is there twice in one direction. head, next: nv and k nt numbers. */
FSI_API int fsi__fr_connect(int k, int nv, int nt, const int *corner, int *twin, int *star, int *head, int *next,
    int *how);
/* Volume of a piece, area of 2D, of an element about a point, and its area or length. */
FSI_API double fsi__fr_volume_of(int k, const fsi_vec3 *x, const int *c, fsi_vec3 about);
FSI_API double fsi__fr_area_of(int k, const fsi_vec3 *x, const int *c);
/* dV/dx of the volume enclosed, and area that belongs to the vertex: a k-th of its elements. */
FSI_API fsi__d3 fsi__fr_gradient(const fsi__fr_mesh *m, int vertex);
FSI_API double fsi__fr_vertex_area(const fsi__fr_mesh *m, int vertex);
/* A unit normal that is exact where the neighbours are on a ball. */
FSI_API fsi__d3 fsi__fr_round_normal(const fsi__fr_mesh *m, int vertex);
/* The cotangent of the angle opposite of half-edge h. Length of an edge, by a half-edge or segment; -1: it is gone. */
FSI_API double fsi__fr_cot(const fsi__fr_mesh *m, int h);
FSI_API double fsi__fr_edge_length(const fsi__fr_mesh *m, int h);
/* One more candidate of m->list; then all by key, equal ones by place. Error: MEMORY. */
FSI_API fsi_status fsi__fr_add(fsi__fr_mesh *m, double key, int at, const char *fn);
FSI_API fsi_status fsi__fr_sort(fsi__fr_mesh *m, const char *fn);
/* The place in the list of the first candidate with this key or a larger one. */
FSI_API int fsi__fr_first(const fsi__fr_mesh *m, double key);
/* Remeshes until nothing is left to do, at most so many rounds. Error: MEMORY. */
FSI_API fsi_status fsi__fr_remesh(fsi__fr_mesh *m, int rounds, const char *fn);
/* The hash of all elements as they are; none that is put into it later is wider than `least`, or twice the widest one.
   Of the first `scanned` elements only those that fsi__fr_scan has marked as long can be wide. Errors: LIMIT,
   MEMORY. */
FSI_API fsi_status fsi__fr_make_hash(fsi__fr_mesh *m, double least, int scanned, const char *fn);
/* Takes an element out of the hash, and puts it where it is now, if it is not gone. */
FSI_API void fsi__fr_rehash(fsi__fr_mesh *m, int t);
#define FSI__FR_NEAR 512       /* elements that are found near a place, at most */
/* Elements of the hash whose boxes are within `reach` of a place, some maybe twice: their number. */
FSI_API int fsi__fr_near(const fsi__fr_mesh *m, fsi_vec3 x, double reach, int *found);
/* Does an element that is not in the hash stay clear of all that are, but for those to be skipped? */
FSI_API int fsi__fr_is_clear(const fsi__fr_mesh *m, int t);
FSI_API void fsi__fr_skip(fsi__fr_mesh *m, int t, int skip);
/* The first element that crosses or touches another, and that one; -1: none. Error: MEMORY. */
FSI_API fsi_status fsi__fr_find_crossing(fsi__fr_mesh *m, int *element, int *other, const char *fn);
/* The axis along which the boxes of the sheets that it made cover least of their common extent. */
FSI_API int fsi__fr_sparse_axis(const fsi__fr_mesh *m);
FSI_API fsi__fr_quality fsi__fr_measure(const fsi__fr_mesh *m, fsi__fr_survey *s);

#endif /* FSI_FRONT_REMESH_H */

/* ==== Stop here if you only want the API. ====================================================================== */

/* A step's remeshing, names without their fsi__fr_:

      remesh          rounds of
         scan            edges that are long or short, triangles that are thin, edges that are not Delaunay
         split           long edges, longest first, at their midpoints
         make_hash       in the first round: of all elements
         lift            new vertices from midpoints to the curved surface
         collapse        short edges and the shortest ones of thin triangles, shortest first
         flip            edges whose opposite angles sum to more than pi
         smooth          vertices of poor triangles, tangentially
      each operation, where it is not refused: patch_begin, the operation, patch_end                               */

#ifdef FSI_IMPLEMENTATION
#undef FSI_FRONT_REMESH_IMPLEMENTATION
#define FSI_FRONT_REMESH_IMPLEMENTATION
#endif
#ifdef FSI_FRONT_REMESH_IMPLEMENTATION
#ifndef FSI_FRONT_REMESH_IMPLEMENTATION_DONE
#define FSI_FRONT_REMESH_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_front_cross.h"

FSI__STRICT_BEGIN

#define FSI__FR_PATCH (2 * FSI__FR_RING + 4) /* vertices whose areas an operation changes, at most */
enum { FSI__FR_IS_LONG = 1, FSI__FR_IS_SHORT = 2, FSI__FR_IS_THIN = 4, FSI__FR_IS_POOR = 8, FSI__FR_TO_FLIP = 16 };

/* ---- what an operation keeps ------------------------------------------------------------------------------------- */

/* Vertices whose areas an operation changes. Their attributes are amounts q_i on areas A_i, so densities q_i/A_i: the
   operation keeps densities as far as it can, and the sums exactly:

      q_i' = d_i A_i' + (Q - sum d_j A_j') A_i'/sum A_j',  or, where no amount is negative,
      q_i' = d_i A_i' Q/sum d_j A_j',                     Q = sum q_i before

   Velocities likewise: v_i += (P - sum A_j' v_j)/sum A_j', with P = sum A_i v_i before. Uniform densities and
   velocities stay uniform. */
typedef struct fsi__fr_patch {
    int n;
    int vertex[FSI__FR_PATCH];
    double area;               /* sum before */
    fsi__d3 momentum;
} fsi__fr_patch;

static double *fsi__fr_density(const fsi__fr_mesh *m, int i) { return m->patch + (size_t)i * (size_t)m->attributes; }

static void fsi__fr_patch_begin(fsi__fr_mesh *m, fsi__fr_patch *p)
{
    double *sum = fsi__fr_density(m, FSI__FR_PATCH);
    int i, j;
    p->area = 0;
    p->momentum = fsi__d3_zero();
    for (j = 0; j < m->attributes; j++) sum[j] = 0;
    for (i = 0; i < p->n; i++) {
        const int v = p->vertex[i];
        const double area = fsi__fr_vertex_area(m, v);
        const fsi_real *q = m->a + (size_t)v * (size_t)m->attributes;
        double *d = fsi__fr_density(m, i);
        p->area += area;
        p->momentum = fsi__d3_madd(p->momentum, area, fsi__d3_of(m->v[v]));
        for (j = 0; j < m->attributes; j++) {
            sum[j] += (double)q[j];
            d[j] = area > fsi__fr_tiny(m) ? (double)q[j] / area : 0;
        }
    }
}

/* Vertices that are gone have left the list; their amounts are in the sums. */
static void fsi__fr_patch_end(fsi__fr_mesh *m, const fsi__fr_patch *p)
{
    const double *sum = fsi__fr_density(m, FSI__FR_PATCH);
    double area[FSI__FR_PATCH], all = 0;
    fsi__d3 rest = p->momentum;
    int i, j;
    for (i = 0; i < p->n; i++) {
        area[i] = fsi__fr_vertex_area(m, p->vertex[i]);
        all += area[i];
        rest = fsi__d3_madd(rest, -area[i], fsi__d3_of(m->v[p->vertex[i]]));
    }
    if (!(all > fsi__fr_tiny(m))) return;

    /* Velocities, then amounts one by one. */
    for (i = 0; i < p->n; i++) {
        fsi_vec3 *v = &m->v[p->vertex[i]];
        *v = fsi__d3_real(fsi__d3_madd(fsi__d3_of(*v), 1 / all, rest));
    }
    for (j = 0; j < m->attributes; j++) {
        double made = 0, least = 0;
        fsi__fr_mix mix;
        for (i = 0; i < p->n; i++) {
            const double d = fsi__fr_density(m, i)[j];
            made += d * area[i];
            least = d < least ? d : least;
        }
        mix = fsi__fr_mix_of(sum[j], made, least, all);
        for (i = 0; i < p->n; i++)
            m->a[(size_t)p->vertex[i] * (size_t)m->attributes + (size_t)j] =
                (fsi_real)((mix.factor * fsi__fr_density(m, i)[j] + mix.more) * area[i]);
    }
}

/* ---- measures ---------------------------------------------------------------------------------------------------- */

FSI_API double fsi__fr_volume_of(int k, const fsi_vec3 *x, const int *c, fsi_vec3 about)
{
    const fsi__d3 a = fsi__d3_diff(x[c[0]], about), b = fsi__d3_diff(x[c[1]], about);
    if (k == 2) return (b.x * a.y - a.x * b.y) / 2;
    return fsi__d3_dot(a, fsi__d3_cross(b, fsi__d3_diff(x[c[2]], about))) / 6;
}

FSI_API double fsi__fr_area_of(int k, const fsi_vec3 *x, const int *c)
{
    if (k == 2) return sqrt(fsi__fr_length2(x[c[0]], x[c[1]]));
    return fsi__d3_norm(fsi__fr_cross(x[c[0]], x[c[1]], x[c[2]])) / 2;
}

/* Half-edges that begin at a vertex; -1 where there are too many. */
static int fsi__fr_ring(const fsi__fr_mesh *m, int vertex, int *ring)
{
    int n = 0, h = m->star[vertex];
    do {
        if (n == FSI__FR_RING) return -1;
        ring[n++] = h;
        h = m->twin[fsi__fr_before(h)];
    } while (h != m->star[vertex]);
    return n;
}

/* The volume is linear in the position of one vertex: 6 dV/dx = sum of x_j cross x_j+1 around it; 2D: the segment
   from the vertex before to the one after, turned by a quarter, over 2. */
FSI_API fsi__d3 fsi__fr_gradient(const fsi__fr_mesh *m, int vertex)
{
    const fsi_vec3 *x = m->x;
    fsi__d3 g = fsi__d3_zero();
    int h = m->star[vertex];
    if (m->k == 2) {
        const fsi__d3 d = fsi__d3_diff(x[m->corner[2 * h + 1]], x[m->corner[2 * m->twin[2 * h]]]);
        return fsi__d3_make(-d.y / 2, d.x / 2, 0);
    }
    do {
        const int *c = m->corner;
        g = fsi__d3_add(g, fsi__fr_cross(x[vertex], x[c[fsi__fr_after(h)]], x[c[fsi__fr_before(h)]]));
        h = m->twin[fsi__fr_before(h)];
    } while (h != m->star[vertex]);
    return fsi__d3_scale(g, 1.0 / 6);
}

FSI_API double fsi__fr_vertex_area(const fsi__fr_mesh *m, int vertex)
{
    int h = m->star[vertex];
    double area = 0;
    if (m->k == 2)
        return (fsi__fr_area_of(2, m->x, m->corner + 2 * h) + fsi__fr_area_of(2, m->x, m->corner + 2 * m->twin[2 * h]))
            / 2;
    do {
        area += fsi__fr_area_of(3, m->x, m->corner + h / 3 * 3);
        h = m->twin[fsi__fr_before(h)];
    } while (h != m->star[vertex]);
    return area / 3;
}

/* The normal of Max 1999, exact where the neighbours are on a ball: sum of a x b/(|a|^2 |b|^2) over edges that follow
   each other; in 2D that of the circle through three vertices. */
FSI_API fsi__d3 fsi__fr_round_normal(const fsi__fr_mesh *m, int vertex)
{
    const fsi_vec3 x = m->x[vertex], *y = m->x;
    fsi__d3 n = fsi__d3_zero();
    int h = m->star[vertex];
    if (m->k == 2) {
        const fsi_vec3 p = y[m->corner[2 * m->twin[2 * h]]], q = y[m->corner[2 * h + 1]];
        n = fsi__d3_over(fsi__d3_diff(x, p), fsi__fr_length2(p, x));
        n = fsi__d3_madd(n, 1 / fsi__fr_length2(x, q), fsi__d3_diff(q, x));
        return fsi__d3_unit(fsi__d3_make(-n.y, n.x, 0));
    }
    do {
        const fsi_vec3 p = y[m->corner[fsi__fr_after(h)]], q = y[m->corner[fsi__fr_before(h)]];
        n = fsi__d3_madd(n, 1 / (fsi__fr_length2(x, p) * fsi__fr_length2(x, q)), fsi__fr_cross(x, p, q));
        h = m->twin[fsi__fr_before(h)];
    } while (h != m->star[vertex]);
    return fsi__d3_unit(n);
}

/* From the midpoint of an edge e = b - a to that of the cubic whose ends have the tangents t = e - (e.n) n there:
   (t_a - t_b)/8. None at creases, where the normals differ by more than 30 degrees, and for vertices that are held. */
static fsi__d3 fsi__fr_bulge(const fsi__fr_mesh *m, int a, int b)
{
    const fsi__d3 e = fsi__d3_diff(m->x[b], m->x[a]);
    fsi__d3 p, q;
    if ((m->flags[a] | m->flags[b]) & (FSI__FR_WALLS | FSI__FR_FIXED)) return fsi__d3_zero();
    p = fsi__fr_round_normal(m, a);
    q = fsi__fr_round_normal(m, b);
    if (!(fsi__d3_dot(p, q) > 0.8660254037844386)) return fsi__d3_zero();
    return fsi__d3_scale(fsi__d3_sub(fsi__d3_scale(q, fsi__d3_dot(e, q)), fsi__d3_scale(p, fsi__d3_dot(e, p))), 0.125);
}

static fsi__fr_quality fsi__fr_no_quality(void)
{
    fsi__fr_quality q;
    memset(&q, 0, sizeof q);
    q.shortest = FSI__HUGE;
    q.thinnest = 0.75; /* squares: no smallest angle is above 60 degrees */
    return q;
}

/* Of the elements of a chunk. */
static void fsi__fr_measure_task(void *arg, int chunk, int begin, int end)
{
    fsi__fr_survey *s = (fsi__fr_survey *)arg;
    const fsi__fr_mesh *m = s->m;
    const int k = m->k;
    fsi__fr_quality q = fsi__fr_no_quality();
    int t, i;
    for (t = begin; t < end; t++) {
        const int *c = m->corner + k * t;
        double l2[3], longest, shortest, both, area2 = 0;
        fsi__d3 momentum;
        s->part[t].volume = s->part[t].area = 0;
        if (c[0] < 0) continue;
        s->part[t].volume = fsi__fr_volume_of(k, m->x, c, s->about[m->piece[t]]);
        if (s->volumes_alone) continue;
        longest = shortest = l2[0] = fsi__fr_length2(m->x[c[0]], m->x[c[1]]);
        momentum = fsi__d3_add(fsi__d3_of(m->v[c[0]]), fsi__d3_of(m->v[c[1]]));
        if (k == 2) area2 = 2 * sqrt(longest);
        else {
            l2[1] = fsi__fr_length2(m->x[c[1]], m->x[c[2]]);
            l2[2] = fsi__fr_length2(m->x[c[2]], m->x[c[0]]);
            for (i = 1; i < 3; i++) {
                longest = l2[i] > longest ? l2[i] : longest;
                shortest = l2[i] < shortest ? l2[i] : shortest;
            }
            area2 = fsi__d3_norm(fsi__fr_cross(m->x[c[0]], m->x[c[1]], m->x[c[2]]));
            both = longest * (l2[0] + l2[1] + l2[2] - longest - shortest);
            if (!(area2 * area2 >= q.thinnest * both)) q.thinnest = area2 * area2 / both;
            q.thin += !(area2 * area2 >= FSI__FR_THINNEST * FSI__FR_THINNEST * both) || !(both > 0);
            q.thinnest = both > 0 ? q.thinnest : 0;
            momentum = fsi__d3_add(momentum, fsi__d3_of(m->v[c[2]]));
        }
        s->part[t].area = area2 / 2;
        q.momentum = fsi__d3_madd(q.momentum, area2 / (2 * k), momentum);
        q.longest = longest > q.longest ? longest : q.longest;
        q.shortest = shortest < q.shortest ? shortest : q.shortest;
        if (!(longest > FSI__FR_LONGEST * FSI__FR_LONGEST * m->length * m->length
            || shortest < FSI__FR_SHORTEST * FSI__FR_SHORTEST * m->length * m->length)) continue;
        for (i = 0; i < (k == 3 ? 3 : 1); i++) { /* an edge of two triangles counts with the lower half-edge */
            if (k == 3 && m->twin[3 * t + i] < 3 * t + i) continue;
            q.long_edges += l2[i] > FSI__FR_LONGEST * FSI__FR_LONGEST * m->length * m->length;
            q.short_edges += l2[i] < FSI__FR_SHORTEST * FSI__FR_SHORTEST * m->length * m->length;
        }
    }
    s->chunk[chunk] = q;
}

FSI_API fsi__fr_quality fsi__fr_measure(const fsi__fr_mesh *m, fsi__fr_survey *s)
{
    fsi__fr_quality all = fsi__fr_no_quality();
    int i;
    s->m = m;
    fsi__parallel_work(m->context, m->nt, FSI__FR_GRAIN, 20.0 * m->nt, fsi__fr_measure_task, s);
    for (i = 0; i < fsi__chunks(m->nt, FSI__FR_GRAIN); i++) {
        const fsi__fr_quality *q = &s->chunk[i];
        all.longest = q->longest > all.longest ? q->longest : all.longest;
        all.shortest = q->shortest < all.shortest ? q->shortest : all.shortest;
        all.thinnest = q->thinnest < all.thinnest ? q->thinnest : all.thinnest;
        all.long_edges += q->long_edges;
        all.short_edges += q->short_edges;
        all.thin += q->thin;
        all.momentum = fsi__d3_add(all.momentum, q->momentum);
    }
    all.longest = sqrt(all.longest) / m->length;
    all.shortest = m->nt > 0 ? sqrt(all.shortest) / m->length : 0;
    all.thinnest = sqrt(all.thinnest);
    return all;
}

/* ---- crossings --------------------------------------------------------------------------------------------------- */

enum { FSI__FR_SKIP = 128 }; /* mark of elements that an operation replaces */

/* Elements of like width share a level of the hash: level j has cells as wide as 2^j of level 0, and the widest element
   that they take is not wider. So of two whose boxes meet the narrower one, by the cell of its middle on the other's
   level, finds the other in that cell or in a neighbour. */

/* The level of a box. */
static int fsi__fr_level_of(const fsi__fr_hash *h, const fsi__fr_box *b)
{
    double widest = 0, cell = h->cell;
    int i, level;
    for (i = 0; i < 3 && h->levels > 1; i++) {
        const double wide = (double)b->hi[i] - (double)b->lo[i];
        widest = wide > widest ? wide : widest;
    }
    for (level = 0; widest > cell && level < h->levels - 1; level++) cell *= 2;
    return level;
}

/* Never falling; no call where processors have no instruction for it. */
static int64_t fsi__fr_floor(double x) { return (int64_t)(x + 4294967296.0) - 4294967296; }

/* The cells in which an element of a level has its middle, if it meets this one. */
typedef struct fsi__fr_cells { int64_t lo[3], hi[3]; } fsi__fr_cells;
static fsi__fr_cells fsi__fr_cells_of(const fsi__fr_mesh *m, const fsi__fr_box *b, int level)
{
    const double wide = m->hash.cell * (double)(1 << level), half = 0.5001 * wide, scale = 1 / wide;
    fsi__fr_cells c;
    int axis;
    memset(&c, 0, sizeof c);
    for (axis = 0; axis < m->k; axis++) {
        c.lo[axis] = fsi__fr_floor(((double)b->lo[axis] - half) * scale);
        c.hi[axis] = fsi__fr_floor(((double)b->hi[axis] + half) * scale);
    }
    return c;
}

/* Cells that follow each other along x have buckets that follow each other. */
static int fsi__fr_bucket_of(const fsi__fr_hash *s, int level, int64_t x, int64_t y, int64_t z)
{
    const uint64_t h = (uint64_t)x + (uint64_t)y * 0x9e3779b97f4a7c15u + (uint64_t)z * 0xc2b2ae3d27d4eb4fu
        + (uint64_t)level * 0xd6e8feb86659fd93u;
    return (int)(h & (uint64_t)(s->buckets - 1));
}

static void fsi__fr_corners(const fsi__fr_mesh *m, int t, fsi_vec3 *x)
{
    int i;
    for (i = 0; i < m->k; i++) x[i] = m->x[m->corner[m->k * t + i]];
}

/* The bucket of element t, by the cell of its middle on its level, and its box; -1: it is gone. */
static int fsi__fr_place_of(fsi__fr_mesh *m, int t)
{
    const fsi__fr_hash *h = &m->hash;
    fsi__fr_span s;
    double scale;
    int level;
    if (m->corner[m->k * t] < 0) return -1;
    s = fsi__fr_element_span(m, t);
    fsi__fr_set_box(m, &s, &m->box[t]);
    level = fsi__fr_level_of(h, &m->box[t]);
    scale = 0.5 / (h->cell * (double)(1 << level));
    return fsi__fr_bucket_of(h, level, fsi__fr_floor((s.lo[0] + s.hi[0]) * scale),
        fsi__fr_floor((s.lo[1] + s.hi[1]) * scale), fsi__fr_floor((s.lo[2] + s.hi[2]) * scale));
}

FSI_API void fsi__fr_rehash(fsi__fr_mesh *m, int t)
{
    int *at;
    if (m->bucket[t] >= 0) {
        for (at = &m->hash.head[m->bucket[t]]; *at != t;) at = &m->next[*at];
        *at = m->next[t];
    }
    m->bucket[t] = fsi__fr_place_of(m, t);
    if (m->bucket[t] < 0) return;
    m->next[t] = m->hash.head[m->bucket[t]];
    m->hash.head[m->bucket[t]] = t;
}

#define FSI__FR_WIDEST 512.0 /* [length] of elements: two that may meet are then within reach of fsi__fr_meet */

static fsi_status fsi__fr_too_wide(const fsi__fr_mesh *m, int t, double wide, const char *fn)
{
    return fsi__fail(m->context, FSI_ERROR_LIMIT, fn, t, wide,
        "element %d is %g desc.length wide, at most %g are taken", t, wide / m->length, FSI__FR_WIDEST);
}

/* Cells of the hash: as wide as elements should be at most, or, where elements are wider, as the widest, or, where they
   differ much, levels up to there. Error: LIMIT. */
static fsi_status fsi__fr_set_cells(fsi__fr_mesh *m, double least, int scanned, const char *fn)
{
    double longest = least;
    fsi__fr_span s;
    int t, widest = -1;
    for (t = 0; t < m->nt; t++) {
        if ((t < scanned && !(m->mark[t] & FSI__FR_IS_LONG)) || m->corner[m->k * t] < 0) continue;
        s = fsi__fr_element_span(m, t);
        if (!(fsi__fr_width(&s) > longest)) continue;
        longest = fsi__fr_width(&s);
        widest = t;
    }
    if (!(longest <= FSI__FR_WIDEST * m->length)) return fsi__fr_too_wide(m, widest, longest, fn);
    m->hash.cell = 1.0001 * (longest > 2 * FSI__FR_LONGEST * m->length ? FSI__FR_LONGEST * m->length : longest);
    for (m->hash.levels = 1; m->hash.cell * (double)(1 << (m->hash.levels - 1)) < longest;) m->hash.levels++;
    m->hash.levels += m->hash.levels > 1;
    return FSI_OK;
}

static void fsi__fr_place_task(void *arg, int chunk, int begin, int end)
{
    fsi__fr_mesh *m = (fsi__fr_mesh *)arg;
    int t;
    (void)chunk;
    for (t = begin; t < end; t++) m->bucket[t] = fsi__fr_place_of(m, t);
}

FSI_API fsi_status fsi__fr_make_hash(fsi__fr_mesh *m, double least, int scanned, const char *fn)
{
    int t, i;
    FSI__TRY(fsi__fr_set_cells(m, least, scanned, fn));
    for (m->hash.buckets = 64; m->hash.buckets < m->nt / 2;) m->hash.buckets *= 2;
    if (m->hash.buckets > m->hash.head_room)
        FSI__TRY(fsi__room_in(m->context, &m->hash.head, sizeof *m->hash.head, 0, &m->hash.head_room,
            m->hash.buckets, fn));
    fsi__parallel_work(m->context, m->nt, FSI__FR_GRAIN, 15.0 * m->nt, fsi__fr_place_task, m);
    for (i = 0; i < m->hash.buckets; i++) m->hash.head[i] = -1;
    for (t = 0; t < m->nt; t++) {
        if (m->bucket[t] < 0) continue;
        m->next[t] = m->hash.head[m->bucket[t]];
        m->hash.head[m->bucket[t]] = t;
    }
    m->hashed = 1;
    return FSI_OK;
}

/* Triangles around a common vertex, each in a sector of its own when seen along n: a plane through the vertex, n and
   one of their edges has one on either side. 1: clearly so. */
static int fsi__fr_apart(fsi__d3 n, const fsi__d3 *a, const fsi__d3 *b)
{
    int i;
    for (i = 0; i < 4; i++) {
        const fsi__d3 d = i < 2 ? a[i] : b[i - 2], s = fsi__d3_cross(n, d);
        const fsi__d3 *own = i < 2 ? a : b, *other = i < 2 ? b : a;
        const double side = fsi__d3_dot(s, own[1 - (i & 1)]);
        const double p = fsi__d3_dot(s, other[0]), q = fsi__d3_dot(s, other[1]);
        const double least = 1e-4 * fabs(side);
        if (side > 0 ? p < -least && q < -least : side < 0 && p > least && q > least) return 1;
    }
    return 0;
}

/* Does the plane of a triangle, or one through an edge and its normal, part it from another by more than `least`? */
static int fsi__fr_is_parted(const fsi_vec3 *x, const fsi_vec3 *y, double least)
{
    const fsi__d3 n = fsi__fr_cross(x[0], x[1], x[2]);
    int i;
    for (i = 0; i < 4; i++) {
        const fsi_vec3 o = x[i % 3];
        const fsi__d3 s = i < 3 ? fsi__d3_cross(fsi__d3_diff(x[(i + 1) % 3], o), n) : n;
        const double p = fsi__d3_dot(s, fsi__d3_diff(y[0], o)), q = fsi__d3_dot(s, fsi__d3_diff(y[1], o)),
            r = fsi__d3_dot(s, fsi__d3_diff(y[2], o));
        double a = p < q ? p : q, b = p > q ? p : q;
        a = a < r ? a : r;
        b = b > r ? b : r;
        if (a <= 0 && (i < 3 || b >= 0)) continue;
        if ((a > 0 ? a : -b) > least * fsi__d3_norm(s)) return 1;
    }
    return 0;
}

/* Do an element with corners x and vertices id, and element t, meet in more than common vertices? What is clear in
   floating point is not asked in integers: the lattice moves vertices by a millionth of the length. */
static int fsi__fr_crosses(const fsi__fr_mesh *m, const fsi_vec3 *x, const int *id, int t)
{
    const int k = m->k, *c = m->corner + k * t;
    fsi__fr_element a, b;
    fsi_vec3 y[3];
    int i, j, shared = 0, own = 0, other = 0;
    for (i = 0; i < k; i++)
        for (j = 0; j < k; j++)
            if (id[i] == c[j]) {
                if (m->fan[id[i]]) return 0;
                shared++;
                own = i;
                other = j;
            }

    /* What is clear. */
    fsi__fr_corners(m, t, y);
    if (k == 3 && shared == 0 && (fsi__fr_is_parted(x, y, 1e-5 * m->length)
        || fsi__fr_is_parted(y, x, 1e-5 * m->length))) return 0;
    if (k == 3 && shared > 0 && shared < 3) {
        const fsi__d3 n = fsi__fr_cross(x[0], x[1], x[2]), o = fsi__fr_cross(y[0], y[1], y[2]);
        if (shared == 2 && fsi__d3_dot(n, o) > -0.5 * fsi__d3_norm(n) * fsi__d3_norm(o)) return 0;
        if (shared == 1) {
            fsi__d3 e[2], f[2];
            for (i = 0; i < 2; i++) {
                e[i] = fsi__d3_diff(x[(own + 1 + i) % 3], x[own]);
                f[i] = fsi__d3_diff(y[(other + 1 + i) % 3], y[other]);
            }
            if (fsi__fr_apart(fsi__d3_add(n, o), e, f)) return 0;
        }
    }
    for (i = 0; i < k; i++) {
        a.p[i] = fsi__fr_snap(x[i], m->length);
        b.p[i] = fsi__fr_snap(y[i], m->length);
        a.id[i] = id[i];
        b.id[i] = c[i];
    }
    return fsi__fr_meet(k, &a, &b);
}

static int fsi__fr_boxes_meet(const fsi__fr_box *a, const fsi__fr_box *b)
{
    return (a->lo[0] <= b->hi[0]) & (b->lo[0] <= a->hi[0]) & (a->lo[1] <= b->hi[1]) & (b->lo[1] <= a->hi[1])
        & (a->lo[2] <= b->hi[2]) & (b->lo[2] <= a->hi[2]); /* one branch */
}

/* Elements that would be there instead of those that are marked to be skipped. */
typedef struct fsi__fr_group {
    int n, id[3 * FSI__FR_PATCH];
    fsi_vec3 x[3 * FSI__FR_PATCH];
    fsi__fr_box box[FSI__FR_PATCH], all;
} fsi__fr_group;

static int fsi__fr_is_met(const fsi__fr_mesh *m, const fsi__fr_group *g, int t)
{
    int e;
    if (!fsi__fr_boxes_meet(&m->box[t], &g->all) || m->mark[t] & FSI__FR_SKIP) return 0;
    for (e = 0; e < g->n; e++)
        if (fsi__fr_boxes_meet(&m->box[t], &g->box[e]) && fsi__fr_crosses(m, g->x + m->k * e, g->id + m->k * e, t))
            return 1;
    return 0;
}

/* Does an element that is not marked to be skipped meet one of these? */
static int fsi__fr_meets_any(const fsi__fr_mesh *m, fsi__fr_group *g)
{
    int64_t i, j, k;
    int level, t, e;
    for (e = 0; e < g->n; e++) {
        const fsi_vec3 *x = g->x + m->k * e;
        const fsi__fr_span s = fsi__fr_span_of(x, x + 1, x + m->k - 1);
        fsi__fr_set_box(m, &s, &g->box[e]);
        if (e == 0) g->all = g->box[0];
        for (t = 0; t < 3; t++) {
            g->all.lo[t] = g->box[e].lo[t] < g->all.lo[t] ? g->box[e].lo[t] : g->all.lo[t];
            g->all.hi[t] = g->box[e].hi[t] > g->all.hi[t] ? g->box[e].hi[t] : g->all.hi[t];
        }
    }

    /* All that may have their middles near; where these are more cells than elements, all. */
    for (level = 0; level < m->hash.levels && g->n > 0; level++) {
        const fsi__fr_cells c = fsi__fr_cells_of(m, &g->all, level);
        if ((double)(c.hi[0] - c.lo[0]) * (double)(c.hi[1] - c.lo[1]) * (double)(c.hi[2] - c.lo[2] + 1) > m->nt) {
            for (t = 0; t < m->nt; t++) if (m->bucket[t] >= 0 && fsi__fr_is_met(m, g, t)) return 1;
            return 0;
        }
        for (k = c.lo[2]; k <= c.hi[2]; k++) for (j = c.lo[1]; j <= c.hi[1]; j++) for (i = c.lo[0]; i <= c.hi[0]; i++)
            for (t = m->hash.head[fsi__fr_bucket_of(&m->hash, level, i, j, k)]; t >= 0; t = m->next[t])
                if (fsi__fr_is_met(m, g, t)) return 1;
    }
    return 0;
}

FSI_API int fsi__fr_is_clear(const fsi__fr_mesh *m, int t)
{
    fsi__fr_group g;
    g.n = 1;
    memcpy(g.id, m->corner + m->k * t, (size_t)m->k * sizeof *g.id);
    fsi__fr_corners(m, t, g.x);
    return !fsi__fr_meets_any(m, &g);
}

FSI_API void fsi__fr_skip(fsi__fr_mesh *m, int t, int skip)
{
    m->mark[t] = (unsigned char)(skip ? m->mark[t] | FSI__FR_SKIP : m->mark[t] & ~FSI__FR_SKIP);
}

FSI_API int fsi__fr_near(const fsi__fr_mesh *m, fsi_vec3 x, double reach, int *found)
{
    const fsi_vec3 r = fsi_v3((fsi_real)reach, (fsi_real)reach, (fsi_real)(m->k == 3 ? reach : 0));
    const fsi_vec3 lo = fsi_v3_sub(x, r), hi = fsi_v3_add(x, r);
    const fsi__fr_span s = fsi__fr_span_of(&lo, &hi, &hi);
    fsi__fr_box b;
    int64_t i, j, k;
    int level, t, count = 0;
    fsi__fr_set_box(m, &s, &b);
    for (level = 0; level < m->hash.levels; level++) {
        const fsi__fr_cells c = fsi__fr_cells_of(m, &b, level);
        for (k = c.lo[2]; k <= c.hi[2]; k++) for (j = c.lo[1]; j <= c.hi[1]; j++) for (i = c.lo[0]; i <= c.hi[0]; i++)
            for (t = m->hash.head[fsi__fr_bucket_of(&m->hash, level, i, j, k)]; t >= 0; t = m->next[t])
                if (count < FSI__FR_NEAR && fsi__fr_boxes_meet(&m->box[t], &b)) found[count++] = t;
    }
    return count;
}

/* Seen along the normal at a vertex, its edges follow each other in one turn: no two elements around it meet. */
static void fsi__fr_look_at_fans(void *arg, int chunk, int begin, int end)
{
    fsi__fr_mesh *m = (fsi__fr_mesh *)arg;
    const double most = 64 * m->length * m->length; /* the lattice turns longer ones out of `least` */
    int v;
    (void)chunk;
    for (v = begin; v < end; v++) {
        fsi__d3 edge[FSI__FR_RING + 1], area[FSI__FR_RING], normal = fsi__d3_zero(), side;
        int h = m->star[v], n = 0, good = 1, turns = 0, i;
        double least, was, is = 0;
        m->fan[v] = 0;
        if (h < 0) continue;
        edge[0] = fsi__d3_diff(m->x[m->corner[fsi__fr_after(h)]], m->x[v]);
        do {
            if (n == FSI__FR_RING) { good = 0; break; }
            edge[n + 1] = fsi__d3_diff(m->x[m->corner[fsi__fr_before(h)]], m->x[v]);
            area[n] = fsi__d3_cross(edge[n], edge[n + 1]);
            normal = fsi__d3_add(normal, area[n++]);
            h = m->twin[fsi__fr_before(h)];
        } while (h != m->star[v]);

        /* Is each edge clearly on the left of the one before, and how often do they come over the first? */
        least = 1e-4 * m->length * m->length * fsi__d3_norm(normal);
        side = fsi__d3_cross(normal, edge[0]);
        for (i = 0; i < n && good; i++) {
            good = fsi__d3_dot(normal, area[i]) > least && fsi__d3_dot(edge[i], edge[i]) < most;
            was = is;
            is = fsi__d3_dot(side, edge[i + 1]);
            turns += was < 0 && is >= 0 && i + 1 < n;
        }
        m->fan[v] = (unsigned char)(good && turns == 0);
    }
}

/* ---- all pairs: sheets ------------------------------------------------------------------------------------------- */

/* Elements are taken together in sheets of some tens that hang together. Of two sheets whose boxes meet, all elements
   are compared, unless both are parts of one graph over a plane:

      Let n be the normal of sheet A, and P a cylinder along n. From A on, all sheets that meet P are visited, from
      neighbour to neighbour. If no element of these is turned from n by 90 degrees, and around no vertex the elements
      turn twice, then what is visited, seen along n, covers the disc P evenly, without a fold and without an end
      within P. A disc has no covering but by copies of itself: sheets that hang together through sheets wholly within
      P are in the same copy, and no two points of that lie above each other. So A meets none of these sheets, nor
      itself.

   The cylinder is as wide as the box of A and twice the widest neighbour. */

/* The element on the other side of an edge, in 2D of a vertex. */
static int fsi__fr_across(const fsi__fr_mesh *m, int h) { return m->k == 3 ? m->twin[h] / 3 : m->twin[h]; }

/* Is an element turned little from a unit normal? */
#define FSI__FR_LEVEL 0.9659   /* cos 15 degrees */
static int fsi__fr_is_level(const fsi__fr_mesh *m, int t, fsi__d3 normal)
{
    const fsi__d3 n = fsi__fr_normal_of(m, t);
    const double along = fsi__d3_dot(n, normal);
    return along > 0 && along * along > FSI__FR_LEVEL * FSI__FR_LEVEL * fsi__d3_dot(n, n);
}

/* Cuts the surface in sheets, from the first element that is in none as far as it is level; the smallest are added to
   one beside them. */
static fsi_status fsi__fr_cut_sheets(fsi__fr_mesh *m, const char *fn)
{
    int queue[FSI__FR_SHEET], t, i, at, n, beside, sum = 0;
    fsi__d3 normal;
    for (t = 0; t < m->nt; t++) m->bucket[t] = -1;
    m->sheets = 0;
    for (t = 0; t < m->nt; t++) {
        if (m->corner[m->k * t] < 0 || m->bucket[t] >= 0) continue;
        if (m->sheets == m->sheet_room)
            FSI__TRY(fsi__room_in(m->context, &m->sheet, sizeof *m->sheet, m->sheets, &m->sheet_room, m->sheets + 16,
                fn));
        normal = fsi__d3_unit(fsi__fr_normal_of(m, t));
        m->sheet[m->sheets].normal = normal;
        queue[0] = t;
        m->bucket[t] = m->sheets;
        for (at = 0, n = 1, beside = -1; at < n; at++)
            for (i = 0; i < m->k && n < FSI__FR_SHEET; i++) {
                const int other = fsi__fr_across(m, m->k * queue[at] + i), s = m->bucket[other];
                if (s < 0) {
                    if (!fsi__fr_is_level(m, other, normal)) continue;
                    m->bucket[other] = m->sheets;
                    queue[n++] = other;
                } else if (s != m->sheets && fsi__d3_dot(m->sheet[s].normal, normal) > FSI__FR_LEVEL
                    && (beside < 0 || m->sheet[s].count < m->sheet[beside].count)) beside = s;
            }
        if (n <= FSI__FR_FULL - FSI__FR_SHEET && beside >= 0 && m->sheet[beside].count + n <= FSI__FR_FULL) {
            m->sheet[beside].count += n;
            for (at = 0; at < n; at++) m->bucket[queue[at]] = beside;
        } else m->sheet[m->sheets++].count = n;
    }

    /* Their elements one after the other. */
    for (i = 0; i < m->sheets; i++) {
        sum += m->sheet[i].count;
        m->sheet[i].begin = sum;
    }
    for (t = m->nt - 1; t >= 0; t--)
        if (m->bucket[t] >= 0) m->next[--m->sheet[m->bucket[t]].begin] = t;
    return FSI_OK;
}

/* Boxes of its elements and its own, its ball, and the widest element. */
static void fsi__fr_bound_sheet(fsi__fr_mesh *m, fsi__fr_sheet *s)
{
    fsi__fr_span all = fsi__fr_element_span(m, m->next[s->begin]), own;
    int at, i;
    s->wide = -1;
    for (at = s->begin; at < s->begin + s->count; at++) {
        own = fsi__fr_element_span(m, m->next[at]);
        fsi__fr_set_box(m, &own, &m->box[at]);
        for (i = 0; i < 3; i++) {
            all.lo[i] = own.lo[i] < all.lo[i] ? own.lo[i] : all.lo[i];
            all.hi[i] = own.hi[i] > all.hi[i] ? own.hi[i] : all.hi[i];
        }
        if (fsi__fr_width(&own) <= s->wide) continue;
        s->wide = fsi__fr_width(&own);
        s->widest = m->next[at];
    }

    /* The ball is smaller than that around the box. */
    fsi__fr_set_box(m, &all, &s->box);
    s->center = fsi__d3_make((all.lo[0] + all.hi[0]) / 2, (all.lo[1] + all.hi[1]) / 2, (all.lo[2] + all.hi[2]) / 2);
    for (at = s->begin, s->radius = 0; at < s->begin + s->count; at++)
        for (i = 0; i < m->k; i++) {
            const fsi__d3 d = fsi__d3_sub(fsi__d3_of(m->x[m->corner[m->k * m->next[at] + i]]), s->center);
            const double r2 = fsi__d3_dot(d, d);
            s->radius = r2 > s->radius ? r2 : s->radius;
        }
    s->radius = 1.000001 * sqrt(s->radius) + 4e-6 * m->length;
}

/* Its normal, and how far those of elements are turned from it. The lattice turns that of an element by 7e-6 l over its
   height: slivers are not good. */
static void fsi__fr_orient_sheet(const fsi__fr_mesh *m, fsi__fr_sheet *s)
{
    const double least = m->k == 3 ? 2e-3 * m->length * s->wide : 1e-3 * m->length;
    fsi__d3 n[FSI__FR_FULL], sum = fsi__d3_zero();
    int at;
    for (at = 0; at < s->count; at++) {
        n[at] = fsi__fr_normal_of(m, m->next[s->begin + at]);
        sum = fsi__d3_add(sum, n[at]);
    }
    s->normal = fsi__d3_unit(sum);
    s->good = 1;
    s->cosine = 1;
    for (at = 0; at < s->count; at++) {
        const double area = fsi__d3_norm(n[at]), along = fsi__d3_dot(n[at], s->normal);
        if (along < s->cosine * area) s->cosine = along / area;
        s->good &= area > least;
    }
}

/* Sheets beside it; it is not good where more than fit, or around a vertex elements do not clearly turn once. */
static void fsi__fr_list_beside(const fsi__fr_mesh *m, fsi__fr_sheet *s)
{
    const int own = (int)(s - m->sheet);
    int at, i, j;
    s->neighbors = 0;
    for (at = s->begin; at < s->begin + s->count; at++)
        for (i = 0; i < m->k; i++) {
            const int h = m->k * m->next[at] + i, other = m->bucket[fsi__fr_across(m, h)];
            s->good &= m->k == 2 || m->fan[m->corner[h]];
            if (other == own) continue;
            for (j = 0; j < s->neighbors && s->beside[j] != other;) j++;
            if (j < s->neighbors) continue;
            if (j == FSI__FR_BESIDE) s->good = 0;
            else s->beside[s->neighbors++] = other;
        }
}

static void fsi__fr_sheet_task(void *arg, int chunk, int begin, int end)
{
    fsi__fr_mesh *m = (fsi__fr_mesh *)arg;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++) {
        fsi__fr_bound_sheet(m, &m->sheet[i]);
        fsi__fr_orient_sheet(m, &m->sheet[i]);
        fsi__fr_list_beside(m, &m->sheet[i]);
    }
}

/* Is no element of sheet b turned away from sheet a? cos(angle between them + spread of b) > 0.05, without a root. */
static int fsi__fr_faces(const fsi__fr_sheet *a, const fsi__fr_sheet *b)
{
    const double turn = fsi__d3_dot(a->normal, b->normal), rest = turn * b->cosine - 0.05;
    return b->good && rest > 0 && (1 - turn * turn) * (1 - b->cosine * b->cosine) < rest * rest;
}

/* Sheets that sheet `first` does not meet, as above with a cylinder of this radius, itself the first of them; their
   number, 0: none that is known. */
#define FSI__FR_FLOOD 128
static int fsi__fr_flood(const fsi__fr_mesh *m, int first, double wide, int *list)
{
    const fsi__fr_sheet *a = &m->sheet[first];
    char chain[FSI__FR_FLOOD]; /* 1: wholly within the cylinder, as those between it and the first */
    unsigned char place[256];  /* of sheets in the list, by their numbers, and 1 more */
    int n = 1, pass, at, i, j;
    if (!fsi__fr_faces(a, a)) return 0;
    memset(place, 0, sizeof place);
    list[0] = first;
    chain[0] = 1;
    place[first & 255] = 1;

    /* All that meet the cylinder: beside those of the chain, then beside others. */
    for (pass = 0; pass < 2; pass++)
        for (at = 0; at < n; at++) {
            const fsi__fr_sheet *b = &m->sheet[list[at]];
            for (i = 0; i < b->neighbors && chain[at] != pass; i++) {
                const fsi__fr_sheet *c = &m->sheet[b->beside[i]];
                fsi__d3 d;
                double along, across;
                for (j = b->beside[i] & 255; place[j] && list[place[j] - 1] != b->beside[i];) j = (j + 1) & 255;
                if (place[j]) continue;
                d = fsi__d3_sub(c->center, a->center);
                along = fsi__d3_dot(d, a->normal);
                across = fsi__d3_dot(d, d) - along * along;
                if (across > (wide + c->radius) * (wide + c->radius)) continue;
                if (n == FSI__FR_FLOOD || !fsi__fr_faces(a, c)) return 0;
                place[j] = (unsigned char)(n + 1);
                list[n] = b->beside[i];
                chain[n++] = (char)(pass == 0 && c->radius < wide && across < (wide - c->radius) * (wide - c->radius));
            }
        }
    for (at = i = 0; at < n; at++) if (chain[at]) list[i++] = list[at];
    return i;
}

/* With a cylinder that has all neighbours; or half of them, or the sheet alone, where others are turned away. */
static int fsi__fr_find_apart(const fsi__fr_mesh *m, int first, int *list)
{
    const fsi__fr_sheet *a = &m->sheet[first];
    double reach = a->radius;
    int i, n = 0;
    for (i = 0; i < a->neighbors; i++) {
        const fsi__fr_sheet *b = &m->sheet[a->beside[i]];
        const fsi__d3 d = fsi__d3_sub(b->center, a->center);
        const double along = fsi__d3_dot(d, a->normal);
        reach = fmax(reach, sqrt(fmax(0, fsi__d3_dot(d, d) - along * along)) + b->radius);
    }
    for (i = 2; i >= 0 && n == 0; i--)
        n = fsi__fr_flood(m, first, 1.001 * (a->radius + 0.5 * i * (reach - a->radius)), list);
    return n;
}

/* Elements of a sheet whose boxes meet a box; their boxes by axis, for loops that run side by side. */
typedef struct fsi__fr_crowd { int n, element[FSI__FR_FULL]; float lo[3][FSI__FR_FULL], hi[3][FSI__FR_FULL]; }
    fsi__fr_crowd;
static void fsi__fr_gather(const fsi__fr_mesh *m, const fsi__fr_sheet *s, const fsi__fr_box *box, fsi__fr_crowd *c)
{
    int at, axis;
    c->n = 0;
    for (at = s->begin; at < s->begin + s->count; at++) {
        const fsi__fr_box *own = &m->box[at];
        c->element[c->n] = m->next[at];
        for (axis = 0; axis < 3; axis++) {
            c->lo[axis][c->n] = own->lo[axis];
            c->hi[axis][c->n] = own->hi[axis];
        }
        c->n += fsi__fr_boxes_meet(own, box);
    }
}

/* Which boxes of a crowd from number `from` on meet box i of another? Returns how many. */
static int fsi__fr_mark_met(const fsi__fr_crowd *p, int i, const fsi__fr_crowd *q, int from, int *met)
{
    const float lx = p->lo[0][i], ly = p->lo[1][i], lz = p->lo[2][i], hx = p->hi[0][i], hy = p->hi[1][i],
        hz = p->hi[2][i];
    int j, n = 0;
    for (j = from; j < q->n; j++) {
        met[j] = (lx <= q->hi[0][j]) & (q->lo[0][j] <= hx) & (ly <= q->hi[1][j]) & (q->lo[1][j] <= hy)
            & (lz <= q->hi[2][j]) & (q->lo[2][j] <= hz);
        n += met[j];
    }
    return n;
}

/* All elements of two sheets, or of one. */
static void fsi__fr_compare(const fsi__fr_mesh *m, fsi__fr_sheet *a, const fsi__fr_sheet *b)
{
    fsi__fr_crowd p, q;
    int i, j, left, met[FSI__FR_FULL];
    fsi__fr_gather(m, a, &b->box, &p);
    if (p.n > 0) fsi__fr_gather(m, b, &a->box, &q);
    for (i = 0; i < p.n; i++) {
        left = fsi__fr_mark_met(&p, i, &q, a == b ? i + 1 : 0, met);
        for (j = a == b ? i + 1 : 0; left > 0; j++) {
            const int t = p.element[i], u = q.element[j], low = t < u ? t : u, high = t < u ? u : t;
            fsi_vec3 x[3];
            left -= met[j];
            if (!met[j] || (a->element >= 0 && (low > a->element || (low == a->element && high >= a->other)))) continue;
            fsi__fr_corners(m, low, x);
            if (!fsi__fr_crosses(m, x, m->corner + m->k * low, high)) continue;
            a->element = low;
            a->other = high;
        }
    }
}

FSI_API int fsi__fr_sparse_axis(const fsi__fr_mesh *m)
{
    double best = FSI__HUGE;
    int axis, i, found = 0;
    for (axis = 0; axis < m->k; axis++) {
        double lo = FSI__HUGE, hi = -FSI__HUGE, sum = 0;
        for (i = 0; i < m->sheets; i++) {
            const double low = (double)m->sheet[i].box.lo[axis], high = (double)m->sheet[i].box.hi[axis];
            lo = low < lo ? low : lo;
            hi = high > hi ? high : hi;
            sum += high - low;
        }
        if (!(sum < best * (hi - lo))) continue;
        best = sum / (hi - lo);
        found = axis;
    }
    return found;
}

/* Sheets in strips along one axis, as wide as the widest of them; those of a strip in the order of their low ends along
   another axis. Sheets whose boxes meet are in one strip or in two that are neighbours. m->list has them strip by
   strip: its keys are places along the second axis, and begin anew, `row` higher, in each strip. */
typedef struct fsi__fr_sweep {
    fsi__fr_mesh *m;
    int axis, strips;          /* axes of the order, and of the strips */
    double lo[3], wide[3];     /* lowest end, and width of the widest sheet, along each axis */
    double row, slack;         /* slack: rounding of keys */
} fsi__fr_sweep;

static double fsi__fr_strip_of(const fsi__fr_sweep *job, const fsi__fr_sheet *s)
{
    return floor(((double)s->box.lo[job->strips] - job->lo[job->strips]) / job->wide[job->strips]);
}
static double fsi__fr_key_of(const fsi__fr_sweep *job, double strip, double x)
{
    return strip * job->row + (x - job->lo[job->axis]);
}

static fsi_status fsi__fr_make_strips(fsi__fr_sweep *job, fsi__fr_mesh *m, const char *fn)
{
    double hi[3], most;
    int i, axis;
    job->m = m;
    job->axis = fsi__fr_sparse_axis(m);
    job->strips = (job->axis + 1) % m->k;
    for (axis = 0; axis < 3; axis++) {
        job->lo[axis] = FSI__HUGE;
        hi[axis] = -FSI__HUGE;
        job->wide[axis] = 0;
        for (i = 0; i < m->sheets; i++) {
            const double low = (double)m->sheet[i].box.lo[axis], high = (double)m->sheet[i].box.hi[axis];
            job->lo[axis] = low < job->lo[axis] ? low : job->lo[axis];
            hi[axis] = high > hi[axis] ? high : hi[axis];
            job->wide[axis] = high - low > job->wide[axis] ? high - low : job->wide[axis];
        }
    }

    /* Not more strips than sheets. */
    most = (hi[job->strips] - job->lo[job->strips]) / (m->sheets + 1);
    job->wide[job->strips] = 1.0001 * (job->wide[job->strips] > most ? job->wide[job->strips] : most);
    job->row = hi[job->axis] - job->lo[job->axis] + 2 * job->wide[job->axis];
    job->slack = 1e-15 * job->row * (m->sheets + 2);
    m->count = 0;
    for (i = 0; i < m->sheets; i++) {
        const fsi__fr_sheet *s = &m->sheet[i];
        FSI__TRY(fsi__fr_add(m, fsi__fr_key_of(job, fsi__fr_strip_of(job, s), (double)s->box.lo[job->axis]), i, fn));
    }
    return fsi__fr_sort(m, fn);
}

FSI_API int fsi__fr_first(const fsi__fr_mesh *m, double key)
{
    int at = 0, end = m->count;
    while (at < end) {
        const int middle = at + (end - at) / 2;
        if (m->list[middle].key < key) at = middle + 1;
        else end = middle;
    }
    return at;
}

static void fsi__fr_compare_task(void *arg, int chunk, int begin, int end)
{
    const fsi__fr_sweep *job = (const fsi__fr_sweep *)arg;
    const fsi__fr_mesh *m = job->m;
    int at, i, j, side;
    (void)chunk;
    for (at = begin; at < end; at++) {
        fsi__fr_sheet *a = &m->sheet[m->list[at].at];
        int apart[FSI__FR_FLOOD];
        const int n = fsi__fr_find_apart(m, m->list[at].at, apart);
        const double strip = fsi__fr_strip_of(job, a);
        a->element = a->other = -1;

        /* Those that come after it in its strip, then all of the next. */
        for (side = 0; side < 2; side++) {
            const double last = fsi__fr_key_of(job, strip + side, (double)a->box.hi[job->axis]) + job->slack;
            i = side == 0 ? at : fsi__fr_first(m, fsi__fr_key_of(job, strip + 1,
                (double)a->box.lo[job->axis] - job->wide[job->axis]) - job->slack);
            for (; i < m->count && m->list[i].key <= last; i++) {
                const fsi__fr_sheet *b = &m->sheet[m->list[i].at];
                if (!fsi__fr_boxes_meet(&a->box, &b->box)) continue;
                for (j = 0; j < n && apart[j] != m->list[i].at;) j++;
                if (j == n) fsi__fr_compare(m, a, b);
            }
        }
    }
}

FSI_API fsi_status fsi__fr_find_crossing(fsi__fr_mesh *m, int *element, int *other, const char *fn)
{
    fsi__fr_sweep job;
    const fsi__fr_sheet *widest = NULL;
    int i;
    *element = *other = -1;
    FSI__TRY(fsi__fr_cut_sheets(m, fn));
    if (m->k == 3) fsi__parallel_work(m->context, m->nv, 1024, 60.0 * m->nv, fsi__fr_look_at_fans, m);
    fsi__parallel_work(m->context, m->sheets, 32, 20.0 * m->nt, fsi__fr_sheet_task, m);
    for (i = 0; i < m->sheets; i++) {
        const fsi__fr_sheet *s = &m->sheet[i];
        if (!widest || s->wide > widest->wide || (!(s->wide < widest->wide) && s->widest < widest->widest)) widest = s;
    }
    if (widest && !(widest->wide <= FSI__FR_WIDEST * m->length)) return fsi__fr_too_wide(m, widest->widest,
        widest->wide, fn);

    FSI__TRY(fsi__fr_make_strips(&job, m, fn));
    fsi__parallel_work(m->context, m->sheets, 16, 20.0 * m->nt, fsi__fr_compare_task, &job);
    for (i = 0; i < m->sheets; i++) {
        const fsi__fr_sheet *s = &m->sheet[i];
        if (s->element < 0 || (*element >= 0 && (s->element > *element
            || (s->element == *element && s->other > *other)))) continue;
        *element = s->element;
        *other = s->other;
    }
    return FSI_OK;
}

/* Triangles, or segments, from vertex `vertex` at y to the edges of a ring that are not t and not u: do they stay clear
   of all others? */
typedef struct fsi__fr_star { int vertex, n, t, u; const int *ring[2]; int count[2]; fsi_vec3 y; } fsi__fr_star;
static int fsi__fr_star_is_clear(fsi__fr_mesh *m, const fsi__fr_star *s)
{
    fsi__fr_group g;
    int side, i, clear;
    if (!m->crossings) return 1;
    for (side = 0; side < s->n; side++)
        for (i = 0; i < s->count[side]; i++) m->mark[s->ring[side][i] / 3] |= FSI__FR_SKIP;

    /* What would be there. */
    for (side = g.n = 0; side < s->n; side++)
        for (i = 0; i < s->count[side]; i++) {
            const int h = s->ring[side][i];
            int *id = g.id + 3 * g.n;
            fsi_vec3 *x = g.x + 3 * g.n;
            if (h / 3 == s->t || h / 3 == s->u) continue;
            id[0] = s->vertex;
            id[1] = m->corner[fsi__fr_after(h)];
            id[2] = m->corner[fsi__fr_before(h)];
            x[0] = s->y;
            x[1] = m->x[id[1]];
            x[2] = m->x[id[2]];
            g.n++;
        }
    clear = !fsi__fr_meets_any(m, &g);
    for (side = 0; side < s->n; side++)
        for (i = 0; i < s->count[side]; i++) m->mark[s->ring[side][i] / 3] &= (unsigned char)~FSI__FR_SKIP;
    m->crossed += !clear;
    return clear;
}

/* Would the triangles of its ring, with the vertex at y, stay clear? */
static int fsi__fr_ring_is_clear(fsi__fr_mesh *m, int vertex, const int *ring, int n, fsi_vec3 y)
{
    fsi__fr_star s;
    s.vertex = vertex;
    s.n = 1;
    s.t = s.u = -1;
    s.ring[0] = ring;
    s.count[0] = n;
    s.y = y;
    return fsi__fr_star_is_clear(m, &s);
}

/* Would these elements, in the place of those that are marked, stay clear? */
static int fsi__fr_elements_are_clear(fsi__fr_mesh *m, const int *id, int count)
{
    fsi__fr_group g;
    int i, clear;
    g.n = count;
    for (i = 0; i < m->k * count; i++) {
        g.id[i] = id[i];
        g.x[i] = m->x[id[i]];
    }
    clear = !fsi__fr_meets_any(m, &g);
    m->crossed += !clear;
    return clear;
}

/* ---- connectivity ------------------------------------------------------------------------------------------------ */

/* Half-edges of each lower vertex in a list, in which the twin is looked for. */
FSI_API int fsi__fr_connect(int k, int nv, int nt, const int *corner, int *twin, int *star, int *head, int *next,
    int *how)
{
    int h, i, v;
    *how = 0;
    for (v = 0; v < nv; v++) star[v] = head[v] = -1;
    if (k == 2) {
        for (i = 0; i < nt; i++) {
            if (star[corner[2 * i]] >= 0 || head[corner[2 * i + 1]] >= 0) { *how = 1; return i; }
            star[corner[2 * i]] = i;
            head[corner[2 * i + 1]] = i;
        }
        for (i = 0; i < nt; i++) {
            twin[2 * i] = head[corner[2 * i]];
            twin[2 * i + 1] = star[corner[2 * i + 1]];
            if (twin[2 * i] < 0 || twin[2 * i + 1] < 0) return i;
        }
        return -1;
    }

    /* Triangles. */
    for (h = 0; h < 3 * nt; h++) twin[h] = -1;
    for (h = 0; h < 3 * nt; h++) {
        const int a = corner[h], b = corner[fsi__fr_after(h)], low = a < b ? a : b;
        for (i = head[low]; i >= 0; i = next[i]) {
            const int c = corner[i], d = corner[fsi__fr_after(i)];
            if (c == a && d == b) { *how = 1; return h / 3; }
            if (c == b && d == a) {
                twin[i] = h;
                twin[h] = i;
            }
        }
        next[h] = head[low];
        head[low] = h;
        star[a] = h;
    }
    for (h = 0; h < 3 * nt; h++)
        if (twin[h] < 0) return h / 3;
    return -1;
}

FSI_API fsi_status fsi__fr_reserve(fsi__fr_mesh *m, int vertices, int elements, const char *fn)
{
    const size_t k = (size_t)m->k;
    const fsi__column vertex[] = {
        { (void **)(void *)&m->x, sizeof *m->x }, { (void **)(void *)&m->v, sizeof *m->v },
        { (void **)(void *)&m->flags, sizeof *m->flags }, { (void **)(void *)&m->id, sizeof *m->id },
        { (void **)(void *)&m->star, sizeof *m->star }, { (void **)(void *)&m->fan, 1 },
        { (void **)(void *)&m->a, (size_t)m->attributes * sizeof *m->a }
    };
    const fsi__column element[] = {
        { (void **)(void *)&m->corner, k * sizeof *m->corner }, { (void **)(void *)&m->twin, k * sizeof *m->twin },
        { (void **)(void *)&m->piece, sizeof *m->piece }, { (void **)(void *)&m->mark, 1 },
        { (void **)(void *)&m->cot, k * sizeof *m->cot }, { (void **)(void *)&m->next, sizeof *m->next },
        { (void **)(void *)&m->bucket, sizeof *m->bucket }, { (void **)(void *)&m->box, sizeof *m->box }
    };
    const int most = 0x7fffffff / 4;

    if (vertices > most || elements > most / m->k)
        return fsi__fail(m->context, FSI_ERROR_LIMIT, fn, -1, elements, "%d elements are more than fit", elements);
    if (vertices > m->vroom)
        FSI__TRY(fsi__room(m->context, vertex, m->attributes > 0 ? 7 : 6, m->nv, &m->vroom, vertices, fn));
    if (elements > m->troom)
        FSI__TRY(fsi__room(m->context, element, m->only_kept ? 3 : 8, m->nt, &m->troom, elements, fn));
    if (!m->patch)
        m->patch = (double *)fsi__alloc(m->context, (size_t)(FSI__FR_PATCH + 1) * (size_t)(m->attributes + 1),
            sizeof *m->patch);
    if (m->patch) return FSI_OK;
    return fsi__fail(m->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for a patch of the surface");
}

FSI_API void fsi__fr_free(fsi__fr_mesh *m)
{
    fsi_context *c = m->context;
    const size_t v = (size_t)m->vroom, t = (size_t)m->troom, k = (size_t)m->k;
    fsi__free(c, m->x, v, sizeof *m->x);
    fsi__free(c, m->v, v, sizeof *m->v);
    fsi__free(c, m->flags, v, sizeof *m->flags);
    fsi__free(c, m->id, v, sizeof *m->id);
    fsi__free(c, m->star, v, sizeof *m->star);
    fsi__free(c, m->a, v, (size_t)m->attributes * sizeof *m->a);
    fsi__free(c, m->corner, t, k * sizeof *m->corner);
    fsi__free(c, m->twin, t, k * sizeof *m->twin);
    fsi__free(c, m->piece, t, sizeof *m->piece);
    fsi__free(c, m->mark, t, 1);
    fsi__free(c, m->cot, t, k * sizeof *m->cot);
    fsi__free(c, m->next, t, sizeof *m->next);
    fsi__free(c, m->bucket, t, sizeof *m->bucket);
    fsi__free(c, m->box, t, sizeof *m->box);
    fsi__free(c, m->fan, v, 1);
    fsi__free(c, m->sheet, (size_t)m->sheet_room, sizeof *m->sheet);
    fsi__free(c, m->hash.head, (size_t)m->hash.head_room, sizeof *m->hash.head);
    fsi__free(c, m->list, (size_t)m->list_room, sizeof *m->list);
    fsi__free(c, m->spare, (size_t)m->spare_room, sizeof *m->spare);
    fsi__free(c, m->dirty, (size_t)m->dirty_room, sizeof *m->dirty);
    fsi__free(c, m->lift, (size_t)m->lift_room, sizeof *m->lift);
    fsi__free(c, m->patch, (size_t)(FSI__FR_PATCH + 1) * (size_t)(m->attributes + 1), sizeof *m->patch);
}

/* ---- what is to be done ------------------------------------------------------------------------------------------ */

FSI_API double fsi__fr_cot(const fsi__fr_mesh *m, int h)
{
    const fsi_vec3 *x = m->x, p = x[m->corner[fsi__fr_before(h)]];
    const fsi__d3 a = fsi__d3_diff(x[m->corner[h]], p), b = fsi__d3_diff(x[m->corner[fsi__fr_after(h)]], p);
    const double n = fsi__d3_norm(fsi__d3_cross(a, b));
    return n > 0 ? fsi__d3_dot(a, b) / n : 1e6;
}

static void fsi__fr_scan_elements(void *arg, int chunk, int begin, int end)
{
    fsi__fr_mesh *m = (fsi__fr_mesh *)arg;
    const double most = FSI__FR_LONG * m->length, least = FSI__FR_SHORT * m->length;
    int t, i;
    (void)chunk;
    for (t = begin; t < end; t++) {
        const int *c = m->corner + m->k * t;
        double l2[3], longest, shortest, area2;
        m->mark[t] = 0;
        if (c[0] < 0) continue;
        longest = shortest = l2[0] = fsi__fr_length2(m->x[c[0]], m->x[c[1]]);
        for (i = 1; i < m->k && m->k == 3; i++) {
            l2[i] = fsi__fr_length2(m->x[c[i]], m->x[c[(i + 1) % 3]]);
            longest = l2[i] > longest ? l2[i] : longest;
            shortest = l2[i] < shortest ? l2[i] : shortest;
        }
        if (longest > most * most) m->mark[t] |= FSI__FR_IS_LONG;
        if (shortest < least * least) m->mark[t] |= FSI__FR_IS_SHORT;
        if (m->k == 2) continue;

        /* cot = (p^2 + q^2 - r^2)/(4 area); sine of the smallest angle = 2 area/(product of the two longer edges). */
        area2 = fsi__d3_norm(fsi__fr_cross(m->x[c[0]], m->x[c[1]], m->x[c[2]]));
        for (i = 0; i < 3; i++) {
            const double w = (l2[0] + l2[1] + l2[2] - 2 * l2[i]) / 2;
            m->cot[3 * t + i] = (float)(area2 > 1e-6 * longest ? w / area2 : w < 0 ? -1e6 : 1e6);
        }
        {
            const double both = longest * (l2[0] + l2[1] + l2[2] - longest - shortest);
            if (area2 * area2 < FSI__FR_THIN * FSI__FR_THIN * both) m->mark[t] |= FSI__FR_IS_THIN;
            if (area2 * area2 < FSI__FR_POOR * FSI__FR_POOR * both) m->mark[t] |= FSI__FR_IS_POOR;
        }
    }
}

/* Edges whose opposite angles sum to clearly more than pi: their cotangents sum to less than 0. */
#define FSI__FR_NOT_DELAUNAY (-0.05)
static void fsi__fr_scan_edges(void *arg, int chunk, int begin, int end)
{
    fsi__fr_mesh *m = (fsi__fr_mesh *)arg;
    int t, i;
    (void)chunk;
    for (t = begin; t < end; t++) {
        if (m->corner[3 * t] < 0) continue;
        for (i = 0; i < 3; i++) {
            const int h = 3 * t + i;
            if (m->cot[h] < 0.5f && (double)m->cot[h] + (double)m->cot[m->twin[h]] < FSI__FR_NOT_DELAUNAY)
                m->mark[t] |= FSI__FR_TO_FLIP;
        }
    }
}

/* All elements; after the first round those that operations have changed. */
static void fsi__fr_scan(fsi__fr_mesh *m, int all)
{
    int i, k;
    if (all) {
        fsi__parallel_work(m->context, m->nt, FSI__FR_GRAIN, 15.0 * m->nt, fsi__fr_scan_elements, m);
        if (m->k == 3) fsi__parallel_work(m->context, m->nt, FSI__FR_GRAIN, 8.0 * m->nt, fsi__fr_scan_edges, m);
    } else {
        memset(m->mark, 0, (size_t)m->nt);
        for (i = 0; i < m->dirty_count; i++) fsi__fr_scan_elements(m, 0, m->dirty[i], m->dirty[i] + 1);
        for (i = 0; i < m->dirty_count && m->k == 3; i++) {
            fsi__fr_scan_edges(m, 0, m->dirty[i], m->dirty[i] + 1);
            for (k = 0; k < 3 && m->corner[3 * m->dirty[i]] >= 0; k++)
                fsi__fr_scan_edges(m, 0, m->twin[3 * m->dirty[i] + k] / 3, m->twin[3 * m->dirty[i] + k] / 3 + 1);
        }
    }
    m->dirty_count = 0;
}

/* The elements at a vertex are to be scanned again. Room is made before an operation begins. */
static fsi_status fsi__fr_reserve_dirty(fsi__fr_mesh *m, const char *fn)
{
    const int most = 4 * FSI__FR_RING;
    if (m->dirty_count + most <= m->dirty_room) return FSI_OK;
    return fsi__room_in(m->context, &m->dirty, sizeof *m->dirty, m->dirty_count, &m->dirty_room,
        m->dirty_count + most, fn);
}
static void fsi__fr_changed(fsi__fr_mesh *m, int t)
{
    m->dirty[m->dirty_count++] = t;
    if (m->hashed) fsi__fr_rehash(m, t);
}
static void fsi__fr_touch(fsi__fr_mesh *m, int vertex)
{
    int h = m->star[vertex], n = 0;
    if (m->k == 2) {
        fsi__fr_changed(m, h);
        fsi__fr_changed(m, m->twin[2 * h]);
        return;
    }
    do {
        fsi__fr_changed(m, h / 3);
        h = m->twin[fsi__fr_before(h)];
    } while (h != m->star[vertex] && ++n < FSI__FR_RING);
}

/* An operation at an element is not allowed now; after others it may be. */
static void fsi__fr_refuse(fsi__fr_mesh *m, int t)
{
    m->refused++;
    m->dirty[m->dirty_count++] = t;
}

FSI_API fsi_status fsi__fr_add(fsi__fr_mesh *m, double key, int at, const char *fn)
{
    if (m->count == m->list_room)
        FSI__TRY(fsi__room_in(m->context, &m->list, sizeof *m->list, m->count, &m->list_room, m->count + 256, fn));
    m->list[m->count].key = key;
    m->list[m->count++].at = at;
    return FSI_OK;
}

/* Merges runs of 1, 2, 4 ... candidates until there is one. */
FSI_API fsi_status fsi__fr_sort(fsi__fr_mesh *m, const char *fn)
{
    const int n = m->count;
    int run, i, j, k, at;
    if (n > m->spare_room)
        FSI__TRY(fsi__room_in(m->context, &m->spare, sizeof *m->spare, 0, &m->spare_room, m->list_room, fn));
    for (run = 1; run < n; run *= 2) {
        for (at = 0; at < n; at += 2 * run) {
            const int middle = at + run < n ? at + run : n, end = at + 2 * run < n ? at + 2 * run : n;
            for (i = at, j = middle, k = at; k < end; k++) {
                const fsi__fr_candidate *p = &m->list[i], *q = &m->list[j];
                const int first = i < middle && (j >= end || p->key < q->key || (!(q->key < p->key) && p->at <= q->at));
                m->spare[k] = first ? m->list[i++] : m->list[j++];
            }
        }
        memcpy(m->list, m->spare, (size_t)n * sizeof *m->list);
    }
    return FSI_OK;
}

FSI_API double fsi__fr_edge_length(const fsi__fr_mesh *m, int h)
{
    const int *c = m->corner;
    if (m->k == 2) return c[2 * h] < 0 ? -1 : sqrt(fsi__fr_length2(m->x[c[2 * h]], m->x[c[2 * h + 1]]));
    return c[h] < 0 ? -1 : sqrt(fsi__fr_length2(m->x[c[h]], m->x[c[fsi__fr_after(h)]]));
}

/* Is half-edge h the shortest edge of its triangle? */
static int fsi__fr_is_least(const fsi__fr_mesh *m, int h)
{
    const double l = fsi__fr_edge_length(m, h);
    return l <= fsi__fr_edge_length(m, fsi__fr_after(h)) && l <= fsi__fr_edge_length(m, fsi__fr_before(h));
}

/* Is the triangle of h, of which h is the shortest edge, thin? */
static int fsi__fr_is_thin(const fsi__fr_mesh *m, int h)
{
    const int *c = m->corner + h / 3 * 3;
    return fsi__fr_sine(m->x[c[0]], m->x[c[1]], m->x[c[2]]) < FSI__FR_THIN && fsi__fr_is_least(m, h);
}

/* The first element from t on that has one of these marks; m->nt: none. */
static int fsi__fr_marked(const fsi__fr_mesh *m, int t, int marks)
{
    uint64_t eight;
    for (; t < m->nt; t++) {
        if (m->mark[t] & marks) return t;
        for (; t + 8 < m->nt; t += 8) { /* few have one */
            memcpy(&eight, m->mark + t + 1, 8);
            if (eight) break;
        }
    }
    return m->nt;
}

/* ---- split ------------------------------------------------------------------------------------------------------- */

/* A row for the midpoint of a and b: flags are what both have. */
static int fsi__fr_midpoint(fsi__fr_mesh *m, int a, int b)
{
    const int v = m->nv++;
    m->x[v] = fsi_v3_scale(fsi_v3_add(m->x[a], m->x[b]), (fsi_real)0.5);
    m->v[v] = fsi_v3_scale(fsi_v3_add(m->v[a], m->v[b]), (fsi_real)0.5);
    m->flags[v] = m->flags[a] & m->flags[b];
    m->id[v] = m->next_id++;
    m->fan[v] = 0;
    return v;
}

/*        c                    c
        / t \                / | \         t = (a, m, c), t2 = (m, b, c)
       a --- b      ->      a--m--b        u = (b, m, d), u2 = (m, a, d)
        \ u /                \ | /
          d                    d                                             */
static void fsi__fr_split_links(fsi__fr_mesh *m, int h, int v)
{
    const int n = fsi__fr_after(h), p = fsi__fr_before(h), g = m->twin[h], gn = fsi__fr_after(g),
        gp = fsi__fr_before(g), t2 = 3 * m->nt, u2 = t2 + 3, tn = m->twin[n], tg = m->twin[gn];
    const int a = m->corner[h], b = m->corner[n], c = m->corner[p], d = m->corner[gp];
    m->corner[n] = m->corner[gn] = m->corner[t2] = m->corner[u2] = v;
    m->corner[t2 + 1] = b;
    m->corner[t2 + 2] = c;
    m->corner[u2 + 1] = a;
    m->corner[u2 + 2] = d;

    /* Across the edges between the four, then to their neighbours. */
    m->twin[h] = u2;
    m->twin[u2] = h;
    m->twin[g] = t2;
    m->twin[t2] = g;
    m->twin[n] = t2 + 2;
    m->twin[t2 + 2] = n;
    m->twin[gn] = u2 + 2;
    m->twin[u2 + 2] = gn;
    m->twin[t2 + 1] = tn;
    m->twin[tn] = t2 + 1;
    m->twin[u2 + 1] = tg;
    m->twin[tg] = u2 + 1;
    m->star[a] = h;
    m->star[b] = g;
    m->star[v] = n;
    m->piece[m->nt] = m->piece[h / 3];
    m->piece[m->nt + 1] = m->piece[g / 3];
    m->mark[m->nt] = m->mark[m->nt + 1] = 0;
    m->bucket[m->nt] = m->bucket[m->nt + 1] = -1;
    m->nt += 2;
}

static fsi_status fsi__fr_split(fsi__fr_mesh *m, int h, const char *fn)
{
    const int k = m->k, a = m->corner[k == 3 ? h : 2 * h],
        b = m->corner[k == 3 ? fsi__fr_after(h) : 2 * h + 1];
    fsi__fr_patch p;
    int v, j;
    FSI__TRY(fsi__fr_reserve(m, m->nv + 1, m->nt + 2, fn));
    FSI__TRY(fsi__fr_reserve_dirty(m, fn));

    /* The ends of the edge give to the new vertex; areas of the vertices opposite stay. */
    p.n = 2;
    p.vertex[0] = a;
    p.vertex[1] = b;
    fsi__fr_patch_begin(m, &p);
    v = fsi__fr_midpoint(m, a, b);
    if (k == 3) fsi__fr_split_links(m, h, v);
    else {
        const int t = m->nt++, q = m->twin[2 * h + 1];
        m->corner[2 * t] = v;
        m->corner[2 * t + 1] = b;
        m->corner[2 * h + 1] = v;
        m->twin[2 * t] = h;
        m->twin[2 * t + 1] = q;
        m->twin[2 * h + 1] = t;
        m->twin[2 * q] = t;
        m->star[v] = t;
        m->piece[t] = m->piece[h];
        m->mark[t] = 0;
        m->bucket[t] = -1;
    }
    p.vertex[p.n++] = v;
    for (j = 0; j < m->attributes; j++)
        fsi__fr_density(m, 2)[j] = (fsi__fr_density(m, 0)[j] + fsi__fr_density(m, 1)[j]) / 2;
    fsi__fr_patch_end(m, &p);
    fsi__fr_touch(m, v);
    m->splits++;
    return FSI_OK;
}

/* What is left in the list are the new vertices, with their ways from midpoints to the curved surface in m->lift. */
static fsi_status fsi__fr_split_all(fsi__fr_mesh *m, const char *fn)
{
    const double most = FSI__FR_LONG * m->length;
    int t, i, c, n = 0;
    m->count = 0;
    for (t = fsi__fr_marked(m, 0, FSI__FR_IS_LONG); t < m->nt; t = fsi__fr_marked(m, t + 1, FSI__FR_IS_LONG)) {
        for (i = 0; i < (m->k == 3 ? 3 : 1); i++) {
            const int h = m->k == 3 ? 3 * t + i : t;
            const double l = fsi__fr_edge_length(m, h);
            if (l > most && (m->k == 2 || h < m->twin[h])) FSI__TRY(fsi__fr_add(m, -l, h, fn));
        }
    }
    FSI__TRY(fsi__fr_sort(m, fn));

    /* Of the surface as it is, before any. */
    if (m->count > m->lift_room)
        FSI__TRY(fsi__room_in(m->context, &m->lift, sizeof *m->lift, 0, &m->lift_room, m->count, fn));
    for (c = 0; c < m->count; c++) {
        const int h = m->list[c].at;
        m->lift[c] = m->k == 3 ? fsi__fr_bulge(m, m->corner[h], m->corner[fsi__fr_after(h)])
            : fsi__fr_bulge(m, m->corner[2 * h], m->corner[2 * h + 1]);
    }
    for (c = 0; c < m->count; c++) {
        if (!(fsi__fr_edge_length(m, m->list[c].at) > most)) continue;
        FSI__TRY(fsi__fr_split(m, m->list[c].at, fn));
        m->lift[n] = m->lift[c];
        m->list[n++].at = m->nv - 1;
    }
    m->count = n;
    return FSI_OK;
}

/* ---- collapse ---------------------------------------------------------------------------------------------------- */

/* Limits of an operation; wider ones where a bound of the step is violated. */
typedef struct fsi__fr_limits { double turn, longest, volume, round; } fsi__fr_limits;
static fsi__fr_limits fsi__fr_limits_of(const fsi__fr_mesh *m, int must)
{
    const double l = m->length, part = m->volume_part * (m->k == 3 ? l * l * l : l * l);
    fsi__fr_limits r;
    r.turn = must ? 0.5 : 0.8660254037844386; /* cosines of 60, 30 degrees */
    r.longest = (must ? FSI__FR_LONGEST : FSI__FR_LONG) * l;
    r.round = 4 * part; /* of a vertex that goes to the curved surface */
    r.volume = must ? r.round : part;
    return r;
}

/* An edge that is about to vanish in a point. */
typedef struct fsi__fr_fan {
    int a, b;                  /* a stays */
    int ring[2][FSI__FR_RING]; /* half-edges that begin at them */
    int n[2];
    int t, u;                  /* elements that vanish; 2D: t alone */
    fsi_vec3 y;                /* where a goes */
    int round;                 /* 1: y is on the curved surface, and stays there */
    double moved;              /* volume */
} fsi__fr_fan;

/* Is vertex v the end of a half-edge of the ring? */
static int fsi__fr_in_ring(const fsi__fr_mesh *m, const int *ring, int n, int v)
{
    int i, found = 0;
    for (i = 0; i < n; i++) found |= m->corner[fsi__fr_after(ring[i])] == v;
    return found;
}

/* The link condition: a and b have two common neighbours, those across the edge, and these keep three edges. */
static int fsi__fr_may_close(const fsi__fr_mesh *m, fsi__fr_fan *f, int h)
{
    int i, common = 0, side, ring[FSI__FR_RING];
    f->n[0] = fsi__fr_ring(m, f->a, f->ring[0]);
    f->n[1] = fsi__fr_ring(m, f->b, f->ring[1]);
    if (f->n[0] < 0 || f->n[1] < 0 || f->n[0] + f->n[1] - 4 > FSI__FR_RING) return 0;
    for (i = 0; i < f->n[0]; i++)
        common += fsi__fr_in_ring(m, f->ring[1], f->n[1], m->corner[fsi__fr_after(f->ring[0][i])]);
    if (common != 2) return 0;
    for (side = 0; side < 2; side++) {
        const int n = fsi__fr_ring(m, m->corner[fsi__fr_before(side ? m->twin[h] : h)], ring);
        if (n >= 0 && n < 4) return 0;
    }
    return 1;
}

/* Where the edge vanishes: at its midpoint, or at the end that is held more; shifted along dV/dx such that the volume
   stays, a quarter of the length at most. With g = dV/dx, which does not depend on it, the volume changes by g.(y - y0)
   + what the midpoint moves. */
static int fsi__fr_place(const fsi__fr_mesh *m, fsi__fr_fan *f, double moved, fsi__d3 g, const fsi__fr_limits *limits)
{
    const uint32_t held = FSI__FR_WALLS | FSI__FR_FIXED, a = m->flags[f->a] & held, b = m->flags[f->b] & held;
    const fsi__d3 free_g = fsi__fr_along_walls(a & b, g);
    const double gg = fsi__d3_dot(free_g, free_g), tiny = fsi__fr_tiny(m);
    f->moved = moved;
    if (!f->round && a == b && !(a & FSI__FR_FIXED) && gg > 1e-3 * fsi__d3_dot(g, g) && gg > tiny * tiny) {
        const double most = 0.25 * m->length * sqrt(gg), rest = moved > most ? most : moved < -most ? -most : moved;
        const fsi_vec3 y = f->y;
        f->y = fsi__d3_real(fsi__d3_madd(fsi__d3_of(y), -rest / gg, free_g));
        f->moved += fsi__d3_dot(g, fsi__d3_diff(f->y, y));
    }
    return fabs(f->moved) <= (f->round ? limits->round : limits->volume);
}

/* Would the triangles that stay turn, stretch, or become thin? */
static int fsi__fr_fan_is_good(const fsi__fr_mesh *m, const fsi__fr_fan *f, const fsi__fr_limits *limits)
{
    const double least = 0.02 * m->length * m->length, most = limits->longest * limits->longest;
    double now = 1, then = 1;
    int side, i;
    for (side = 0; side < 2; side++)
        for (i = 0; i < f->n[side]; i++) {
            const int h = f->ring[side][i];
            const fsi_vec3 o = m->x[side ? f->b : f->a], p = m->x[m->corner[fsi__fr_after(h)]],
                q = m->x[m->corner[fsi__fr_before(h)]];
            const double s = fsi__fr_sine(o, p, q), s2 = fsi__fr_sine(f->y, p, q);
            fsi__d3 n, n2;
            double area;
            now = s < now ? s : now;
            if (h / 3 == f->t || h / 3 == f->u) continue;
            n = fsi__fr_cross(o, p, q);
            n2 = fsi__fr_cross(f->y, p, q);
            area = fsi__d3_norm(n2);
            then = s2 < then ? s2 : then;
            if (!(area >= least) || fsi__d3_dot(n, n2) < limits->turn * fsi__d3_norm(n) * area) return 0;
            if (fsi__fr_length2(f->y, p) > most && fsi__fr_length2(f->y, p) > fsi__fr_length2(o, p)) return 0;
        }
    return then >= FSI__FR_THIN || then > now;
}

static void fsi__fr_collapse_links(fsi__fr_mesh *m, const fsi__fr_fan *f, int h)
{
    const int n = fsi__fr_after(h), p = fsi__fr_before(h), g = m->twin[h], gn = fsi__fr_after(g),
        gp = fsi__fr_before(g), c = m->corner[p], d = m->corner[gp];
    const int tn = m->twin[n], tp = m->twin[p], tgn = m->twin[gn], tgp = m->twin[gp];
    int i;
    for (i = 0; i < f->n[1]; i++) m->corner[f->ring[1][i]] = f->a;
    m->twin[tn] = tp;
    m->twin[tp] = tn;
    m->twin[tgn] = tgp;
    m->twin[tgp] = tgn;
    m->star[f->a] = tp;
    m->star[c] = tn;
    m->star[d] = tgn;
    m->star[f->b] = -1;
    for (i = 0; i < 3; i++) m->corner[3 * f->t + i] = m->corner[3 * f->u + i] = -1;
    fsi__fr_changed(m, f->t);
    fsi__fr_changed(m, f->u);
}

/* Common to both kinds: the patch around, what the merged vertex takes over. */
static void fsi__fr_merge(fsi__fr_mesh *m, const fsi__fr_fan *f, int h)
{
    fsi__fr_patch p;
    const double wa = fsi__fr_vertex_area(m, f->a), wb = fsi__fr_vertex_area(m, f->b), w = wa + wb;
    const uint32_t held = FSI__FR_WALLS | FSI__FR_FIXED;
    int side, i, j;

    /* Both ends and all their neighbours. */
    p.n = 2;
    p.vertex[0] = f->a;
    p.vertex[1] = f->b;
    for (side = 0; side < 2 && m->k == 3; side++)
        for (i = 0; i < f->n[side]; i++) {
            const int v = m->corner[fsi__fr_after(f->ring[side][i])];
            if (v == f->a || v == f->b || (side && fsi__fr_in_ring(m, f->ring[0], f->n[0], v))) continue;
            p.vertex[p.n++] = v;
        }
    if (m->k == 2) {
        p.vertex[p.n++] = m->corner[2 * m->twin[2 * h]];
        p.vertex[p.n++] = m->corner[2 * m->twin[2 * h + 1] + 1];
    }

    /* Vertex a takes over what b has. */
    fsi__fr_patch_begin(m, &p);
    m->v[f->a] = fsi__d3_real(fsi__d3_over(fsi__d3_madd(fsi__d3_scale(fsi__d3_of(m->v[f->a]), wa), wb,
        fsi__d3_of(m->v[f->b])), w > 0 ? w : 1));
    m->x[f->a] = f->y;
    m->flags[f->a] |= m->flags[f->b] & held;
    for (j = 0; j < m->attributes && w > 0; j++)
        fsi__fr_density(m, 0)[j] = (wa * fsi__fr_density(m, 0)[j] + wb * fsi__fr_density(m, 1)[j]) / w;
    m->moved[m->piece[f->t]] += f->moved;
    if (m->k == 3) fsi__fr_collapse_links(m, f, h);
    else {
        const int q = m->twin[2 * h + 1], r = m->twin[2 * h];
        m->corner[2 * q] = f->a;
        m->twin[2 * q] = r;
        m->twin[2 * r + 1] = q;
        m->star[f->a] = q;
        m->star[f->b] = m->corner[2 * h] = m->corner[2 * h + 1] = -1;
        fsi__fr_changed(m, h);
    }
    p.n--;
    p.vertex[1] = p.vertex[p.n];
    for (j = 0; j < m->attributes; j++) fsi__fr_density(m, 1)[j] = fsi__fr_density(m, p.n)[j];
    fsi__fr_patch_end(m, &p);
    fsi__fr_touch(m, f->a);
    m->collapses++;
}

/* On the curved surface, where there is one. */
static int fsi__fr_round_place(const fsi__fr_mesh *m, fsi__fr_fan *f)
{
    const fsi__d3 bulge = fsi__fr_bulge(m, f->a, f->b);
    if (!(fsi__d3_dot(bulge, bulge) > 0)) return 0;
    f->y = fsi__d3_real(fsi__d3_add(fsi__d3_of(f->y), bulge));
    f->round = 1;
    return 1;
}

/* The end that is held more, or the midpoint; 0 where both are held in different ways. */
static int fsi__fr_first_place(const fsi__fr_mesh *m, fsi__fr_fan *f)
{
    const uint32_t held = FSI__FR_WALLS | FSI__FR_FIXED, a = m->flags[f->a] & held, b = m->flags[f->b] & held;
    f->y = fsi_v3_scale(fsi_v3_add(m->x[f->a], m->x[f->b]), (fsi_real)0.5);
    f->round = 0;
    if (a == b) return 1;
    f->y = (a & b) == b ? m->x[f->a] : m->x[f->b];
    return (a & b) == a || (a & b) == b;
}

/* Would the edge vanish well at f->y, shifted so that the volume stays? */
static int fsi__fr_try_place(fsi__fr_mesh *m, fsi__fr_fan *f, const fsi__fr_limits *limits)
{
    fsi__fr_star s;
    fsi__d3 g = fsi__d3_zero();
    double moved = 0;
    int side, i;

    /* Volumes about y itself: those of the new triangles are 0, those of the old ones have moved. */
    for (side = 0; side < 2; side++)
        for (i = 0; i < f->n[side]; i++) {
            const int e = f->ring[side][i], t = e / 3;
            const fsi_vec3 p = m->x[m->corner[fsi__fr_after(e)]], q = m->x[m->corner[fsi__fr_before(e)]];
            if (!side || (t != f->t && t != f->u)) moved -= fsi__fr_volume_of(3, m->x, m->corner + 3 * t, f->y);
            if (t != f->t && t != f->u) g = fsi__d3_add(g, fsi__d3_scale(fsi__fr_cross(f->y, p, q), 1.0 / 6));
        }
    if (!fsi__fr_place(m, f, moved, g, limits) || !fsi__fr_fan_is_good(m, f, limits)) return 0;
    s.vertex = f->a;
    s.n = 2;
    s.t = f->t;
    s.u = f->u;
    for (side = 0; side < 2; side++) {
        s.ring[side] = f->ring[side];
        s.count[side] = f->n[side];
    }
    s.y = f->y;
    return fsi__fr_star_is_clear(m, &s);
}

/* In its middle; where a bound is violated, else at one of its ends, or a vertex opposite that has three edges and is
   in the way vanishes first. */
static int fsi__fr_collapse_triangles(fsi__fr_mesh *m, int h, int must)
{
    const fsi__fr_limits limits = fsi__fr_limits_of(m, must);
    const uint32_t held = FSI__FR_WALLS | FSI__FR_FIXED;
    fsi__fr_fan f;
    int i, good;
    f.a = m->corner[h];
    f.b = m->corner[fsi__fr_after(h)];
    f.t = h / 3;
    f.u = m->twin[h] / 3;
    if (!fsi__fr_first_place(m, &f)) return 0;

    /* What is in the way. */
    if (!fsi__fr_may_close(m, &f, h)) {
        for (i = 0; i < 2 && must == 1; i++) {
            const int e = fsi__fr_before(i ? m->twin[h] : h);
            int ring[FSI__FR_RING];
            if (fsi__fr_ring(m, m->corner[e], ring) == 3) return fsi__fr_collapse_triangles(m, e, 2);
        }
        return 0;
    }

    /* The first place that is good: on the curved surface, or where the volume stays. */
    good = fsi__fr_round_place(m, &f) && fsi__fr_try_place(m, &f, &limits);
    if (!good && (must || !f.round)) good = fsi__fr_first_place(m, &f) && fsi__fr_try_place(m, &f, &limits);
    for (i = 0; i < 2 && must && !good && ((m->flags[f.a] ^ m->flags[f.b]) & held) == 0; i++) {
        f.y = m->x[i ? f.b : f.a];
        good = fsi__fr_try_place(m, &f, &limits);
    }
    if (good) fsi__fr_merge(m, &f, h);
    return good;
}

/* Two segments from the one before to the one after h, or from its neighbours where these are the same, by way of y. */
static int fsi__fr_segments_are_clear(fsi__fr_mesh *m, int before, int h, int after, int vertex, fsi_vec3 y)
{
    const int id[4] = { m->corner[2 * before], vertex, vertex, m->corner[2 * after + 1] };
    const fsi_vec3 x = m->x[vertex];
    int clear;
    m->x[vertex] = y;
    m->mark[before] |= FSI__FR_SKIP;
    m->mark[h] |= FSI__FR_SKIP;
    m->mark[after] |= FSI__FR_SKIP;
    clear = fsi__fr_elements_are_clear(m, id, 2);
    m->mark[before] &= (unsigned char)~FSI__FR_SKIP;
    m->mark[h] &= (unsigned char)~FSI__FR_SKIP;
    m->mark[after] &= (unsigned char)~FSI__FR_SKIP;
    m->x[vertex] = x;
    return clear;
}

static int fsi__fr_try_segments(fsi__fr_mesh *m, fsi__fr_fan *f, int before, int h, int after,
    const fsi__fr_limits *limits)
{
    const int p = m->corner[2 * before], q = m->corner[2 * after + 1];
    fsi__d3 d = fsi__d3_diff(m->x[q], m->x[p]), d2;
    double moved = 0;
    int e, i;
    for (e = before, i = 0; i < 3; i++, e = m->twin[2 * e + 1])
        moved -= fsi__fr_volume_of(2, m->x, m->corner + 2 * e, f->y);
    if (!fsi__fr_place(m, f, moved, fsi__d3_make(-d.y / 2, d.x / 2, 0), limits)) return 0;
    for (i = 0; i < 2; i++) {
        d = i ? fsi__d3_diff(m->x[q], m->x[f->b]) : fsi__d3_diff(m->x[f->a], m->x[p]);
        d2 = i ? fsi__d3_diff(m->x[q], f->y) : fsi__d3_diff(f->y, m->x[p]);
        if (fsi__d3_dot(d, d2) < limits->turn * fsi__d3_norm(d) * fsi__d3_norm(d2)) return 0;
        if (fsi__d3_norm(d2) > limits->longest && fsi__d3_norm(d2) > fsi__d3_norm(d)) return 0;
    }
    return !m->crossings || fsi__fr_segments_are_clear(m, before, h, after, f->a, f->y);
}

static int fsi__fr_collapse_segments(fsi__fr_mesh *m, int h, int must)
{
    const fsi__fr_limits limits = fsi__fr_limits_of(m, must);
    const int before = m->twin[2 * h], after = m->twin[2 * h + 1];
    fsi__fr_fan f;
    int good;
    f.a = m->corner[2 * h];
    f.b = m->corner[2 * h + 1];
    f.t = f.u = h;
    f.n[0] = f.n[1] = 0;
    if (m->twin[2 * after + 1] == before || m->twin[2 * after + 1] == h || !fsi__fr_first_place(m, &f))
        return 0; /* 4 segments or more */
    good = fsi__fr_round_place(m, &f) && fsi__fr_try_segments(m, &f, before, h, after, &limits);
    if (!good && (must || !f.round))
        good = fsi__fr_first_place(m, &f) && fsi__fr_try_segments(m, &f, before, h, after, &limits);
    if (good) fsi__fr_merge(m, &f, h);
    return good;
}

static fsi_status fsi__fr_collapse_all(fsi__fr_mesh *m, const char *fn)
{
    const double least = FSI__FR_SHORT * m->length;
    const int marks = FSI__FR_IS_SHORT | FSI__FR_IS_THIN;
    int t, i, c;
    m->count = 0;
    for (t = fsi__fr_marked(m, 0, marks); t < m->nt; t = fsi__fr_marked(m, t + 1, marks)) {
        if (m->corner[m->k * t] < 0) continue;
        for (i = 0; i < (m->k == 3 ? 3 : 1); i++) {
            const int h = m->k == 3 ? 3 * t + i : t;
            const double l = fsi__fr_edge_length(m, h);
            if ((l < least && (m->k == 2 || h < m->twin[h])) || (m->k == 3 && fsi__fr_is_thin(m, h)))
                FSI__TRY(fsi__fr_add(m, l, h, fn));
        }
    }
    FSI__TRY(fsi__fr_sort(m, fn));

    /* Each as it is by now. */
    for (c = 0; c < m->count; c++) {
        const int h = m->list[c].at;
        const double l = fsi__fr_edge_length(m, h);
        const int thin = l >= 0 && m->k == 3 && fsi__fr_is_thin(m, h);
        int must = l < FSI__FR_SHORTEST * m->length, done;
        if (l < 0 || !(l < least || thin)) continue;
        FSI__TRY(fsi__fr_reserve_dirty(m, fn));
        if (thin) {
            const int *e = m->corner + h / 3 * 3;
            must |= fsi__fr_sine(m->x[e[0]], m->x[e[1]], m->x[e[2]]) < FSI__FR_THINNEST;
        }
        done = m->k == 3 ? fsi__fr_collapse_triangles(m, h, must) : fsi__fr_collapse_segments(m, h, must);
        if (!done) fsi__fr_refuse(m, m->k == 3 ? h / 3 : h);
    }
    return FSI_OK;
}

/* ---- flip -------------------------------------------------------------------------------------------------------- */

/*        c                  c
        / t \              / | \        t = (a, d, c), u = (d, b, c), written as
       a --- b     ->     a t|u b       t = (d, c, a) in the places of (a, b, c),
        \ u /              \ | /        u = (c, d, b) in those of (b, a, d)
          d                  d                                                       */
static void fsi__fr_flip_links(fsi__fr_mesh *m, int h)
{
    const int n = fsi__fr_after(h), p = fsi__fr_before(h), g = m->twin[h], gn = fsi__fr_after(g),
        gp = fsi__fr_before(g), tn = m->twin[n], tp = m->twin[p], tgn = m->twin[gn], tgp = m->twin[gp];
    const int a = m->corner[h], b = m->corner[n], c = m->corner[p], d = m->corner[gp];
    m->corner[h] = m->corner[gn] = d;
    m->corner[n] = m->corner[g] = c;
    m->corner[p] = a;
    m->corner[gp] = b;
    m->twin[n] = tp;
    m->twin[tp] = n;
    m->twin[p] = tgn;
    m->twin[tgn] = p;
    m->twin[gn] = tgp;
    m->twin[tgp] = gn;
    m->twin[gp] = tn;
    m->twin[tn] = gp;
    m->star[a] = p;
    m->star[b] = gp;
    m->star[c] = n;
    m->star[d] = gn;
}

/* The volume by which a flip changes the piece. */
static double fsi__fr_tetrahedron(const fsi__fr_mesh *m, int a, int b, int c, int d)
{
    return fsi__d3_dot(fsi__fr_cross(m->x[a], m->x[b], m->x[c]), fsi__d3_diff(m->x[d], m->x[a])) / 6;
}

/* Would the two triangles be better, lie as flat, and move little? */
static int fsi__fr_flip_is_good(const fsi__fr_mesh *m, int a, int b, int c, int d, int must)
{
    const fsi_vec3 *x = m->x;
    const fsi__d3 t = fsi__fr_cross(x[a], x[b], x[c]), u = fsi__fr_cross(x[b], x[a], x[d]),
        t2 = fsi__fr_cross(x[a], x[d], x[c]), u2 = fsi__fr_cross(x[d], x[b], x[c]), sum = fsi__d3_add(t, u);
    const double s = fsi__fr_sine(x[a], x[b], x[c]), r = fsi__fr_sine(x[b], x[a], x[d]),
        s2 = fsi__fr_sine(x[a], x[d], x[c]), r2 = fsi__fr_sine(x[d], x[b], x[c]);
    const double flat = must ? 0.5 : 0.9396926207859084; /* cosines of 60, 20 degrees */
    const double now = s < r ? s : r, then = s2 < r2 ? s2 : r2, l2 = fsi__fr_length2(x[c], x[d]);
    const fsi__fr_limits limits = fsi__fr_limits_of(m, must);
    if (!(then > now) || fabs(fsi__fr_tetrahedron(m, a, b, c, d)) > limits.volume) return 0;
    if (l2 > limits.longest * limits.longest && l2 > fsi__fr_length2(x[a], x[b])) return 0;
    if (fsi__d3_dot(t, u) < flat * fsi__d3_norm(t) * fsi__d3_norm(u)) return 0;
    return fsi__d3_dot(t2, sum) > flat * fsi__d3_norm(t2) * fsi__d3_norm(sum)
        && fsi__d3_dot(u2, sum) > flat * fsi__d3_norm(u2) * fsi__d3_norm(sum);
}

static int fsi__fr_flip(fsi__fr_mesh *m, int h, int must)
{
    const uint32_t held = FSI__FR_WALLS | FSI__FR_FIXED;
    const int g = m->twin[h];
    int ring[FSI__FR_RING], side;
    fsi__fr_patch p;
    p.n = 4;
    p.vertex[0] = m->corner[h];
    p.vertex[1] = m->corner[g];
    p.vertex[2] = m->corner[fsi__fr_before(h)];
    p.vertex[3] = m->corner[fsi__fr_before(g)];

    /* An edge in a wall, or on a line that is held, is flipped only among vertices that lie there too. */
    if (m->flags[p.vertex[0]] & m->flags[p.vertex[1]] & held
        & ~(m->flags[p.vertex[2]] & m->flags[p.vertex[3]])) return 0;
    if (!fsi__fr_flip_is_good(m, p.vertex[0], p.vertex[1], p.vertex[2], p.vertex[3], must)) return 0;
    for (side = 0; side < 2; side++) {
        const int n = fsi__fr_ring(m, p.vertex[side], ring);
        if (n >= 0 && n < 4) return 0;
    }
    side = fsi__fr_ring(m, p.vertex[2], ring);
    if (side < 0 || fsi__fr_in_ring(m, ring, side, p.vertex[3])) return 0;
    if (m->crossings) {
        const int id[6] = { p.vertex[0], p.vertex[3], p.vertex[2], p.vertex[3], p.vertex[1], p.vertex[2] };
        m->mark[h / 3] |= FSI__FR_SKIP;
        m->mark[g / 3] |= FSI__FR_SKIP;
        side = fsi__fr_elements_are_clear(m, id, 2);
        m->mark[h / 3] &= (unsigned char)~FSI__FR_SKIP;
        m->mark[g / 3] &= (unsigned char)~FSI__FR_SKIP;
        if (!side) return 0;
    }
    fsi__fr_patch_begin(m, &p);
    m->moved[m->piece[h / 3]] += fsi__fr_tetrahedron(m, p.vertex[0], p.vertex[1], p.vertex[2], p.vertex[3]);
    fsi__fr_flip_links(m, h);
    fsi__fr_patch_end(m, &p);
    fsi__fr_changed(m, h / 3);
    fsi__fr_changed(m, g / 3);
    m->flips++;
    return 1;
}

static fsi_status fsi__fr_flip_all(fsi__fr_mesh *m, const char *fn)
{
    int t, i, c;

    /* Edges whose opposite angles are too large, each once. */
    m->count = 0;
    for (t = fsi__fr_marked(m, 0, FSI__FR_TO_FLIP); t < m->nt; t = fsi__fr_marked(m, t + 1, FSI__FR_TO_FLIP)) {
        for (i = 0; i < 3; i++) {
            const int h = 3 * t + i;
            double sum;
            if (m->corner[h] < 0) continue;
            sum = fsi__fr_cot(m, h) + fsi__fr_cot(m, m->twin[h]);
            if (sum < FSI__FR_NOT_DELAUNAY && (h < m->twin[h] || !(m->mark[m->twin[h] / 3] & FSI__FR_TO_FLIP)))
                FSI__TRY(fsi__fr_add(m, sum, h, fn));
        }
    }
    FSI__TRY(fsi__fr_sort(m, fn));

    /* The worst first, unless another flip has made it good. */
    for (c = 0; c < m->count; c++) {
        const int h = m->list[c].at;
        const int *e = m->corner + h / 3 * 3, *d = m->corner + m->twin[h] / 3 * 3;
        if (fsi__fr_cot(m, h) + fsi__fr_cot(m, m->twin[h]) >= FSI__FR_NOT_DELAUNAY) continue;
        FSI__TRY(fsi__fr_reserve_dirty(m, fn));
        if (!fsi__fr_flip(m, h, fsi__fr_sine(m->x[e[0]], m->x[e[1]], m->x[e[2]]) < FSI__FR_THINNEST
                || fsi__fr_sine(m->x[d[0]], m->x[d[1]], m->x[d[2]]) < FSI__FR_THINNEST)) fsi__fr_refuse(m, h / 3);
    }
    return FSI_OK;
}

/* ---- smoothing --------------------------------------------------------------------------------------------------- */

/* Smallest sine of the ring with the vertex at y; -1 where a triangle turns over from what it is. */
static double fsi__fr_ring_sine(const fsi__fr_mesh *m, int vertex, fsi_vec3 y, const int *ring, int n)
{
    double least = 1;
    int i;
    for (i = 0; i < n; i++) {
        const fsi_vec3 p = m->x[m->corner[fsi__fr_after(ring[i])]], q = m->x[m->corner[fsi__fr_before(ring[i])]];
        const fsi__d3 now = fsi__fr_cross(m->x[vertex], p, q), then = fsi__fr_cross(y, p, q);
        const double s = fsi__fr_sine(y, p, q), l2 = fsi__fr_length2(y, p);
        if (fsi__d3_dot(now, then) < 0.9396926207859084 * fsi__d3_norm(now) * fsi__d3_norm(then)) return -1;
        if (l2 > FSI__FR_LONG * FSI__FR_LONG * m->length * m->length && l2 > fsi__fr_length2(m->x[vertex], p))
            return -1;
        least = s < least ? s : least;
    }
    return least;
}

/* Densities and velocity at x + d by the gradient around, of least squares: with e_j = x_j - x and M = sum e_j e_j^T
   the change is sum w_j (q_j - q), w_j = e_j . M^-1 d; within the range of the ring. The ring is the patch. */
static void fsi__fr_carry(fsi__fr_mesh *m, const fsi__fr_patch *p, fsi__d3 d)
{
    const int vertex = p->vertex[0];
    double matrix[9] = { 0 }, inverse[9], w[FSI__FR_PATCH], trace;
    fsi__d3 v = fsi__d3_of(m->v[vertex]), f;
    int i, j;
    for (i = 1; i < p->n; i++) {
        const fsi__d3 e = fsi__d3_diff(m->x[p->vertex[i]], m->x[vertex]);
        for (j = 0; j < 9; j++) matrix[j] += fsi__d3_axis(e, j / 3) * fsi__d3_axis(e, j % 3);
    }

    /* Regular also where all lie in a plane: d does, too. */
    trace = matrix[0] + matrix[4] + matrix[8];
    for (j = 0; j < 9; j++) matrix[j] = matrix[j] / trace + (j % 4 ? 0 : 1e-6);
    fsi__d9_inverse(matrix, inverse);
    f = fsi__d3_over(fsi__d9_mul(inverse, d), trace);
    for (i = 1; i < p->n; i++) {
        w[i] = fsi__d3_dot(fsi__d3_diff(m->x[p->vertex[i]], m->x[vertex]), f);
        v = fsi__d3_madd(v, w[i], fsi__d3_diff(m->v[p->vertex[i]], m->v[vertex]));
    }
    for (j = 0; j < m->attributes; j++) {
        const double own = fsi__fr_density(m, 0)[j];
        double q = own, lo = own, hi = own;
        for (i = 1; i < p->n; i++) {
            const double other = fsi__fr_density(m, i)[j];
            q += w[i] * (other - own);
            lo = other < lo ? other : lo;
            hi = other > hi ? other : hi;
        }
        fsi__fr_density(m, 0)[j] = q < lo ? lo : q > hi ? hi : q;
    }
    m->v[vertex] = fsi__d3_real(v);
}

/* Towards the mean of its neighbours, normal to dV/dx: the volume, linear in the position of one vertex, stays. */
static void fsi__fr_smooth(fsi__fr_mesh *m, int vertex)
{
    const uint32_t flags = m->flags[vertex];
    const fsi_vec3 x = m->x[vertex];
    int ring[FSI__FR_RING], n = fsi__fr_ring(m, vertex, ring), i;
    const fsi__d3 slope = fsi__fr_gradient(m, vertex), g = fsi__fr_along_walls(flags, slope);
    fsi__d3 d = fsi__d3_zero();
    const double gg = fsi__d3_dot(g, g);
    fsi__fr_patch p;
    fsi_vec3 y;
    double now, step;
    if (n < 0 || (flags & FSI__FR_FIXED)) return;
    p.n = 1;
    p.vertex[0] = vertex;
    for (i = 0; i < n; i++) {
        p.vertex[p.n++] = m->corner[fsi__fr_after(ring[i])];
        d = fsi__d3_add(d, fsi__d3_diff(m->x[m->corner[fsi__fr_after(ring[i])]], x));
    }
    d = fsi__fr_along_walls(flags, fsi__d3_over(d, n));
    if (sqrt(gg) > fsi__fr_tiny(m)) d = fsi__d3_madd(d, -fsi__d3_dot(d, g) / gg, g);

    /* The whole way for thin triangles; half of it, a quarter, where they become no better. */
    now = fsi__fr_ring_sine(m, vertex, x, ring, n);
    step = now < FSI__FR_THIN ? 1 : m->smoothing;
    for (i = 0; i < 3; i++, step /= 2) {
        y = fsi__d3_real(fsi__d3_madd(fsi__d3_of(x), step, d));
        if (fsi__fr_ring_sine(m, vertex, y, ring, n) > now) break;
    }
    if (i == 3) return;
    if (!fsi__fr_ring_is_clear(m, vertex, ring, n, y)) return;
    fsi__fr_patch_begin(m, &p);
    fsi__fr_carry(m, &p, fsi__d3_scale(d, step));
    m->x[vertex] = y;
    m->moved[fsi__fr_piece_of(m, vertex)] += fsi__d3_dot(slope, fsi__d3_diff(y, x));
    fsi__fr_patch_end(m, &p);
    fsi__fr_touch(m, vertex);
    m->smoothed++;
}

/* To the curved surface, from the middle of an edge that was split; its triangles, or segments, stay as they are where
   they would turn much or meet others. */
static void fsi__fr_lift(fsi__fr_mesh *m, int vertex, fsi__d3 lift)
{
    const fsi_vec3 x = m->x[vertex], y = fsi__d3_real(fsi__d3_add(fsi__d3_of(x), lift));
    int ring[FSI__FR_RING], n = 0, i, clear;
    fsi__fr_patch p;
    p.n = 1;
    p.vertex[0] = vertex;
    if (m->k == 3) {
        n = fsi__fr_ring(m, vertex, ring);
        if (n < 0 || fsi__fr_ring_sine(m, vertex, y, ring, n) < FSI__FR_THINNEST) return;
        for (i = 0; i < n; i++) p.vertex[p.n++] = m->corner[fsi__fr_after(ring[i])];
        clear = fsi__fr_ring_is_clear(m, vertex, ring, n, y);
    } else {
        const int t = m->star[vertex], before = m->twin[2 * t];
        p.vertex[p.n++] = m->corner[2 * before];
        p.vertex[p.n++] = m->corner[2 * t + 1];
        clear = !m->crossings || fsi__fr_segments_are_clear(m, before, t, t, vertex, y);
    }
    if (!clear) return;

    /* The volume that it gains is booked. */
    fsi__fr_patch_begin(m, &p);
    m->moved[fsi__fr_piece_of(m, vertex)] += fsi__d3_dot(fsi__fr_gradient(m, vertex), fsi__d3_diff(y, x));
    m->x[vertex] = y;
    fsi__fr_patch_end(m, &p);
    fsi__fr_touch(m, vertex);
}

static fsi_status fsi__fr_lift_all(fsi__fr_mesh *m, const char *fn)
{
    int c;
    for (c = 0; c < m->count; c++) {
        FSI__TRY(fsi__fr_reserve_dirty(m, fn));
        if (fsi__d3_dot(m->lift[c], m->lift[c]) > 0) fsi__fr_lift(m, m->list[c].at, m->lift[c]);
    }
    return FSI_OK;
}

/* Vertices of poor triangles, each once, in order. */
static fsi_status fsi__fr_smooth_all(fsi__fr_mesh *m, const char *fn)
{
    int t, i, c, last = -1;
    m->count = 0;
    for (t = fsi__fr_marked(m, 0, FSI__FR_IS_POOR); t < m->nt; t = fsi__fr_marked(m, t + 1, FSI__FR_IS_POOR)) {
        if (m->corner[3 * t] < 0) continue;
        for (i = 0; i < 3; i++) FSI__TRY(fsi__fr_add(m, 0, m->corner[3 * t + i], fn));
    }
    FSI__TRY(fsi__fr_sort(m, fn));
    for (c = 0; c < m->count; c++) {
        FSI__TRY(fsi__fr_reserve_dirty(m, fn));
        if (m->list[c].at != last) fsi__fr_smooth(m, m->list[c].at);
        last = m->list[c].at;
    }
    return FSI_OK;
}

FSI_API fsi_status fsi__fr_remesh(fsi__fr_mesh *m, int rounds, const char *fn)
{
    int rows;
    m->dirty_count = m->hashed = 0;
    memset(m->fan, 0, (size_t)m->nv);
    m->splits = m->collapses = m->flips = m->smoothed = m->refused = m->crossed = 0;
    for (m->rounds = 0; m->rounds < rounds; m->rounds++) {
        const int done = m->splits + m->collapses + m->flips;
        fsi__fr_scan(m, m->rounds == 0);
        rows = m->nt;
        FSI__TRY(fsi__fr_split_all(m, fn));
        if (m->crossings && !m->hashed) FSI__TRY(fsi__fr_make_hash(m, FSI__FR_LONGEST * m->length, rows, fn));
        FSI__TRY(fsi__fr_lift_all(m, fn));
        FSI__TRY(fsi__fr_collapse_all(m, fn));
        if (m->k == 3) FSI__TRY(fsi__fr_flip_all(m, fn));
        if (m->k == 3) FSI__TRY(fsi__fr_smooth_all(m, fn));
        if (m->splits + m->collapses + m->flips == done) break;
    }
    return FSI_OK;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
