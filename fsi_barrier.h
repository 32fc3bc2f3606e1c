/* fsi_barrier.h - keeps surfaces apart: log barrier, distances, continuous collision detection, friction, broad phase
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_barrier.h"
         #include "fsi_barrier.h"

   A POINT THAT FALLS TOWARDS A TRIANGLE
      double x[12] = { 0.2, 0.2, 0.05,   0, 0, 0,   1, 0, 0,   0, 1, 0 };   // the point p, the triangle a, b, c [m]
      double move[12] = { 0, 0, -1 }, gradient[12], hessian[144], t;        // where they go in this step
      fsi_contact c;
      fsi_distance at;
      int k;
      c.kind = FSI_POINT_TRIANGLE;
      c.range = 0.1;                                                        // the barrier begins to push 10 cm apart
      c.thickness = 0;
      c.parallel = 0;
      at = fsi_distance_between(c.kind, x);
      printf("%g m apart, along %g %g %g\n", at.d, at.normal[0], at.normal[1], at.normal[2]);    // 0.05 m, 0 0 1
      // 0.17329, times a stiffness
      printf("energy %g\n", fsi_contact_energy(&c, x, gradient, hessian, FSI_HESSIAN_PROJECTED));
      t = fsi_ccd(c.kind, x, move, c.thickness, 0.1);                       // 0.045: a tenth of the gap is left there
      for (k = 0; k < 12; k++) x[k] += t * move[k];
      printf("moved %g of the way, %g m are left\n", t, fsi_distance_between(c.kind, x).d);

   WHAT IT DOES
      The pieces from which a simulator makes contact that never lets surfaces pass through each other, by incremental
      potential contact (Li et al. 2020, "IPC"; 2021, "Codimensional IPC"):
         fsi_barrier_at              the energy that grows without bound as a gap closes, and its derivatives
         fsi_distance_between        points, edges and triangles: closest points, and the derivatives of their distance
         fsi_contact_energy          the barrier of such a pair with gradient and an exact or a positive semidefinite
                                     Hessian
         fsi_ccd                     how far a pair may move: never through each other, never stuck while apart
         fsi_stencil_at              the distance of a point to a surface that a grid of signed distances describes
                                     (level set)
         fsi_stencil_ccd            how far the point and the grid's values may change together
         fsi_friction_energy         smoothed Coulomb friction, lagged, with an exact Hessian, positive semidefinite as
                                     it is, or one that does not overshoot; fsi_friction_error says what a step that was
                                     solved with it missed
         fsi_pairs_find              all pairs of boxes that overlap: the broad phase
      The functions of one pair allocate nothing and touch nothing but their arguments: call them from any thread.
   WHAT IT DOES NOT DO
      No solver and no step: fsi_shell.h and fsi_couple.h do that. The motion of fsi_ccd is straight, one step of x + t
      dx.
   UNITS
      Whatever your lengths are in; the comments say m. Barrier and mollifier have no unit, forces come from your
      stiffness. All in double, whatever fsi_real is: positions are passed as 3 doubles a point.
   BAD INPUT
      The functions of one pair return a safe value: numbers that are not finite count as touching (distance 0, energy
      infinite, step 0). They work for differences of coordinates between 1e-300 and 1e150 and treat smaller ones as 0.
   MACROS YOU MAY DEFINE
      those of fsi.h; FSI_NO_SIMD: no SSE2 in the broad phase (the same result).
   FIND IN HERE (search for >>)
      >>barrier  >>distances  >>contact  >>crossing  >>sweeps  >>level set  >>friction  >>boxes  >>pairs, the API; then
      the implementation: the same.
*/
#ifndef FSI_BARRIER_H
#define FSI_BARRIER_H

#include "fsi.h"

/* ---- >>barrier ------------------------------------------------------------------------------------------------ */

typedef struct fsi_barrier {
    double value;     /* b >= 0 */
    double slope;     /* db/dd <= 0 [1/m] */
    double curvature; /* d2b/dd2 >= 0 [1/m^2] */
} fsi_barrier;

FSI__STRICT_FN_BEGIN
/* b(d) = -(y - 1)^2 ln y, y = d/range, for 0 < d < range, and 0 from there on, with two continuous derivatives (Li et
   al. 2020, eq. 6, on the distance, not on its square). For d <= 0 or NaN: infinite, slope -infinite, curvature
   infinite. range <= 0 or NaN: all 0. */
FSI_FN fsi_barrier fsi_barrier_at(double d, double range)
{
    fsi_barrier b;
    double y = d / range, l, z = y - 1;
    b.value = b.slope = b.curvature = 0;
    if (!(range > 0) || d >= range) return b;
    if (!(d > 0) || !(y > 0)) {
        b.value = b.curvature = fsi__from_bits(0x7ff0000000000000u);
        b.slope = -b.value;
        return b;
    }
    l = fsi_log(y);
    b.value = -z * z * l;
    b.slope = (-2 * z * l - z * z / y) / range;
    b.curvature = (-2 * l - 4 * z / y + z * z / (y * y)) / (range * range);
    return b;
}
FSI__STRICT_FN_END

/* ---- >>distances ------------------------------------------------------------------------------------------------

   Two features: points, edges (segments), triangles. Their points stand in one array, 3 doubles each:
      FSI_POINT_POINT     p, q             FSI_POINT_EDGE   p, a, b
      FSI_POINT_TRIANGLE  p, a, b, c       FSI_EDGE_EDGE    a, b, c, d   (edges ab and cd) */
typedef enum fsi_pair { FSI_POINT_POINT, FSI_POINT_EDGE, FSI_POINT_TRIANGLE, FSI_EDGE_EDGE } fsi_pair;
FSI_FN int fsi_pair_points(fsi_pair kind) { return kind == FSI_POINT_POINT ? 2 : kind == FSI_POINT_EDGE ? 3 : 4; }

typedef struct fsi_distance {
    double d;          /* distance [m], >= 0 */
    double normal[3];  /* unit, from the second feature to the first; 0 when d is 0 */
    double weight[4];  /* d * normal = sum of weight[i] x[i] over the points: for the first feature its barycentric
                          coordinates, for the second minus its own. The gradient of d to point i is weight[i] * normal.
                          Unused ones are 0 */
    int region;        /* the points whose weights are not 0, which span the corner, edge or face that contains the
                          closest points: bit i for point i. A point above the middle of a triangle: binary 1111;
                          nearest to its edge bc: 1101; to its corner a: 0011 */
} fsi_distance;
/* The distance between two features, in any position: degenerate ones (edges of no length, triangles of no area) and
   edges that are parallel included. It is always the distance of two points of the features, to rounding the smallest
   one: the error of d is below 1e-14 times the largest difference between points of both, wherever the origin is
   (largest one seen: 1.6e-15). Where all points are one: d = 0. NaN, infinity, an unknown kind or x NULL give d = 0,
   normal, weights and region 0. */
FSI_API fsi_distance fsi_distance_between(fsi_pair kind, const double *x);

/* ---- >>contact --------------------------------------------------------------------------------------------------

   The potential of a pair: E = m b(d - thickness), b the barrier. For EDGE_EDGE m mollifies nearly parallel edges, at
   which the distance has a kink: m(c) = (2 - c/e) c/e for c < e, else 1, with c = |u x v|^2 of the edges u, v and
   e = parallel (Li et al. 2020, eq. 24). Otherwise m = 1. */
typedef struct fsi_contact {
    fsi_pair kind;
    double range;      /* the barrier begins at this gap [m], > 0 */
    double thickness;  /* the gap is d - thickness [m], >= 0 */
    double parallel;   /* e [m^4], EDGE_EDGE only: 1e-3 |u|^2 |v|^2 of the edges at rest; 0: no mollifier */
} fsi_contact;
/* EXACT: the second derivative as it is (within the region), indefinite in general. PROJECTED: positive semidefinite,
   close to it, and cheap. */
typedef enum fsi_hessian { FSI_HESSIAN_EXACT, FSI_HESSIAN_PROJECTED } fsi_hessian;
/* The energy (no unit). gradient: 3n numbers [1/m], hessian: 3n x 3n numbers row by row [1/m^2]; each may be NULL. At a
   gap that is not positive, and for bad input, the energy is infinite and the derivatives are 0. */
FSI_API double fsi_contact_energy(const fsi_contact *c, const double *x, double *gradient, double *hessian,
    fsi_hessian which);
/* The derivative of this energy along the gap, push = -m db/dd >= 0 [1/m], to be multiplied by the stiffness: the
   normal force on the first feature is push * normal. at (NULL ok): the distance. For friction and stats. Infinite at a
   gap that is not positive. */
FSI_API double fsi_contact_push(const fsi_contact *c, const double *x, fsi_distance *at);

/* ---- >>crossing ------------------------------------------------------------------------------------------------- */

/* Does an edge pass through a triangle? x: the edge's two points, the triangle's three, 3 doubles each. Exact for
   numbers between 1e-80 and 1e80; an edge that ends on the triangle, or meets its rim, passes through it. Where both
   lie in one plane nothing passes: that is for fsi_distance_between to find. 0 for bad input. */
FSI_API int fsi_edge_crosses_triangle(const double *x);

/* ---- >>sweeps ---------------------------------------------------------------------------------------------------

   How far along the straight motion x + t dx, 0 <= t <= 1, may a pair go? Returns t such that at every time s in [0, t]
      gap(s) >= keep * gap(0),   gap = d - thickness,   0 < keep < 1 (typically 0.1).
   What is promised:
   - Never too late: the inequality holds for the exact distance of the exact motion of the given numbers; rounding is
     accounted for. (Your own x + t dx is rounded to a part in 1e16 of the coordinates: keep gaps above that.)
   - Never stuck: t > 0 whenever the gap is resolved: gap(0) > 2e-14/(1 - keep) times the largest distance between a
     point of the one and a point of the other feature, per coordinate. Below that t is 0, "they touch". So is it for
     bad input (NaN, infinity, NULL, keep outside (0, 1), thickness < 0).
   - Late enough: t is 1 when the gap stays above 1.25 keep gap(0), and else a time at which it has come down to that,
     unless the search is cut short after 48 turns. */
FSI_API double fsi_ccd(fsi_pair kind, const double *x, const double *dx, double thickness, double keep);

/* ---- >>level set ------------------------------------------------------------------------------------------------

   The distance of a point from a surface that a grid of signed distances phi describes: phi interpolated at the
   point. */
typedef enum fsi_metric {
    FSI_METRIC_LINEAR, /* 2 cells along each axis. Its gradient jumps between cells, so a step keeps the base cell that
                          it began with, and extrapolates */
    FSI_METRIC_SPLINE  /* quadratic B-spline, 3 cells along each axis: continuous gradient, so the cells are chosen anew
                          at each iteration. Reads phi + dx^2/8 Laplacian(phi) */
} fsi_metric;
typedef struct fsi_stencil {
    int dim, width;         /* 2 or 3 dimensions; 2 (LINEAR) or 3 (SPLINE) cells along each axis. dim 0: bad input, its
                               value is 0 */
    int base[3];            /* the lowest cell; 0 along unused axes */
    double weight[3][3];    /* [axis][cell] */
    double slope[3][3];     /* their derivatives [1/m] */
} fsi_stencil;
/* x: dim numbers in metres from the grid's lowest corner; dx: size of a cell [m]; the centre of cell i is at (i + 1/2)
   dx. frozen (NULL: none): a LINEAR stencil from before, whose base is kept; ignored by SPLINE. Positions beyond 1e9
   cells are bad input, as are NaN and dx <= 0. */
FSI_API fsi_stencil fsi_stencil_at(fsi_metric metric, int dim, const double *x, double dx, const fsi_stencil *frozen);
/* The distance. phi: width^dim values, x fastest. gradient (NULL ok): dim numbers, to x. weights (NULL ok): width^dim
   products of the weights, the gradient to phi. */
FSI_API double fsi_stencil_value(const fsi_stencil *s, const double *phi, double *gradient, double *weights);
/* A grid whose values change from phi to phi + dphi while samples move. read fills phi and dphi,
   count[0] * count[1] * count[2] <= 27 values each, x fastest, of the cells base .. base + count - 1. Cells that do not
   exist: extrapolate, or give a large phi. */
typedef struct fsi_field_reader {
    void *user;
    void (*read)(void *user, const int base[3], const int count[3], double *phi, double *dphi);
} fsi_field_reader;
/* As fsi_ccd for a sample that moves from x to x + move while phi changes: the largest t, nearly, with d(s) >= keep
   d(0) for all s <= t. Within the cells of one stencil d is a polynomial of t, of degree 3 to 7, and lies above the
   hull of its Bernstein coefficients, whose zero is a safe time from which the search continues; where the stencil
   changes, the next polynomial follows. t is 0 when d(0) is not positive beyond rounding, or for bad input; t < 1 means
   that d falls to 1.01 keep d(0) there (or that 4096 stencils were passed). frozen: as in fsi_stencil_at; LINEAR
   without it keeps the base cell of x. */
FSI_API double fsi_stencil_ccd(fsi_metric metric, int dim, double dx, const double *x, const double *move,
    const fsi_field_reader *field, const fsi_stencil *frozen, double keep);

/* ---- >>friction -------------------------------------------------------------------------------------------------

   Smoothed Coulomb friction (Li et al. 2020, section 5): D = force f0(|u|), u = T^T sum weight_i (x_i - x0_i), the
      tangential slip since the step began, f0(y) = y^2/e - y^3/(3 e^2) + e/3 for y < e = slip, else y.
   Force, weights and tangents T are lagged: taken from an earlier state, constants here. */
typedef struct fsi_friction {
    fsi_pair kind;
    double force;          /* coefficient of friction times normal force [N], >= 0 */
    double weight[4];      /* as in fsi_distance */
    double tangent[2][3];  /* orthonormal, normal to the contact's normal; 0 when the distance was 0: no friction */
} fsi_friction;
/* Fills *f from a distance and the force (coefficient times normal force; not finite or negative: 0). */
FSI_API void fsi_friction_lag(fsi_friction *f, fsi_pair kind, const fsi_distance *at, double force);
/* D [force unit * m], gradient (3n numbers, NULL ok), Hessian (3n x 3n numbers, NULL ok): EXACT, which is positive
   semidefinite too, or PROJECTED: along the slip at least half as stiff as the parabola that touches D at x and is
   nowhere below it, so that Newton's steps from slip to rest hardly overshoot. x, x0: now and when the step began. slip
   [m] > 0: below it friction is weaker than Coulomb's: the speed that counts as sticking, times the time step. Bad
   input: 0. */
FSI_API double fsi_friction_energy(const fsi_friction *f, const double *x, const double *x0, double slip,
    double *gradient, double *hessian, fsi_hessian which);
/* Error of the friction that a Newton step from `before` to x was solved with, over f->force: the linear model's force
   at x, less the nearest that Coulomb's law allows there: any up to f->force while |u| < slip, else that of the law. 0:
   in balance. As the other arguments of fsi_friction_energy. Bad input: 0. */
FSI_API double fsi_friction_error(const fsi_friction *f, const double *before, const double *x, const double *x0,
    double slip, fsi_hessian which);

/* ---- >>boxes ----------------------------------------------------------------------------------------------------

   A tree over boxes that move: which of them overlap? */
typedef struct fsi_boxes {
    uint32_t cookie;
    fsi_context *context;
    int count;             /* of boxes, fixed */
    int rebuilds;          /* how often the tree was made anew */
    size_t bytes;          /* held */
    void *impl;
} fsi_boxes;
/* All memory is taken here. *out is NULL on failure. Errors: COOKIE, ARGUMENT (count < 0), LIMIT (count > 2^28),
   MEMORY. */
FSI_API fsi_status fsi_boxes_create(fsi_boxes **out, fsi_context *context, int count);
FSI_API void fsi_boxes_destroy(fsi_boxes *b); /* NULL is fine */
/* New places: box: 6 numbers each, lowest corner, highest corner; copied. The tree is fitted to them, and made anew
   when it has become loose. Needed once before fsi_pairs_find. Errors: COOKIE, ARGUMENT (NULL; a box with lo > hi,
   named), NAN (names the box): all stays as it was. */
FSI_API fsi_status fsi_boxes_update(fsi_boxes *b, const double *box);

/* ---- >>pairs -------------------------------------------------------------------------------------------------- */

typedef struct fsi_pairs {
    uint32_t cookie;
    fsi_context *context;
    int count;             /* of pairs */
    const int *index;      /* 2 * count: pair k is index[2k] of a, index[2k + 1] of b. Until the next call */
    size_t bytes;          /* held */
    void *impl;
} fsi_pairs;
FSI_API fsi_status fsi_pairs_create(fsi_pairs **out, fsi_context *context); /* Errors: COOKIE, MEMORY, ARGUMENT */
FSI_API void fsi_pairs_destroy(fsi_pairs *p); /* NULL is fine */
/* All pairs (i of a, j of b) whose boxes overlap or touch, each once; a == b: those with i < j. accept(user, i, j) != 0
   keeps a pair; NULL keeps all. It is called from tasks, maybe twice for a pair, and must return the same then. Sorted
   by i, then by j, whatever the number of threads. Allocates only when there are more pairs than before. Errors:
   COOKIE, ARGUMENT (NULL; boxes that were never updated; accept returns different results for a pair), LIMIT (more than
   2^29 pairs), MEMORY: the result of the last call stays. */
FSI_API fsi_status fsi_pairs_find(fsi_pairs *p, const fsi_boxes *a, const fsi_boxes *b,
    int (*accept)(void *user, int i, int j), void *user);

#endif /* FSI_BARRIER_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_BARRIER_IMPLEMENTATION
#define FSI_BARRIER_IMPLEMENTATION
#endif
#ifdef FSI_BARRIER_IMPLEMENTATION
#ifndef FSI_BARRIER_IMPLEMENTATION_DONE
#define FSI_BARRIER_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi.h"

#if defined(__SSE2__) && !defined(FSI_NO_SIMD) && !defined(__CUDACC__) && !defined(__TINYC__)
#define FSI__PACK_SSE
#include <emmintrin.h>
#endif

FSI__STRICT_BEGIN

/* ---- >>distances implementation --------------------------------------------------------------------------------- */

/* The differences between the points of one feature and those of the other span a flat piece; the distance of the
   features is its distance from the origin (the Minkowski difference). It is a point, an edge, a triangle or a
   parallelogram with these corners and sides:
      POINT_POINT     p-q
      POINT_EDGE      p-a, p-b                side a-b (from the first corner to the second)
      POINT_TRIANGLE  p-a, p-b, p-c           sides b-a, c-a (the piece is p-a - s (b-a) - t (c-a))
      EDGE_EDGE       a-c, a-d, b-c, b-d      sides b-a, d-c (the piece is a-c + s (b-a) - t (d-c))
   All are differences of the given numbers, so that a far origin costs nothing, and all are linear in time when the
   points are. */
enum { FSI__GAP_SIDE = 12, FSI__GAP_NUMBERS = 18 };
typedef struct fsi__gap { double v[FSI__GAP_NUMBERS]; } fsi__gap; /* four corners, two sides; unused ones are 0 */

FSI_FN void fsi__gap_set(fsi__gap *g, int at, const double *p, const double *q)
{
    g->v[at] = p[0] - q[0];
    g->v[at + 1] = p[1] - q[1];
    g->v[at + 2] = p[2] - q[2];
}

FSI_FN void fsi__gap_of(fsi_pair kind, const double *x, fsi__gap *g)
{
    const double *p0 = x, *p1 = x + 3, *p2 = x + 6, *p3 = x + 9;
    int k;
    for (k = 0; k < FSI__GAP_NUMBERS; k++) g->v[k] = 0;

    /* Edges: four differences span a parallelogram. */
    if (kind == FSI_EDGE_EDGE) {
        fsi__gap_set(g, 0, p0, p2);
        fsi__gap_set(g, 3, p0, p3);
        fsi__gap_set(g, 6, p1, p2);
        fsi__gap_set(g, 9, p1, p3);
        fsi__gap_set(g, FSI__GAP_SIDE, p1, p0);
        fsi__gap_set(g, FSI__GAP_SIDE + 3, p3, p2);
        return;
    }

    /* A point: the differences to all corners of the other feature. */
    fsi__gap_set(g, 0, p0, p1);
    if (kind == FSI_POINT_POINT) return;
    fsi__gap_set(g, 3, p0, p2);
    if (kind == FSI_POINT_EDGE) {
        fsi__gap_set(g, FSI__GAP_SIDE, p1, p2);
        return;
    }
    fsi__gap_set(g, 6, p0, p3);
    fsi__gap_set(g, FSI__GAP_SIDE, p2, p1);
    fsi__gap_set(g, FSI__GAP_SIDE + 3, p3, p1);
}

/* Largest number, by absolute value; NaN and infinity come out as infinity. */
FSI_FN double fsi__gap_size(const fsi__gap *g)
{
    double m = 0;
    int k, good = 1;
    for (k = 0; k < FSI__GAP_NUMBERS; k++) {
        double a = fabs(g->v[k]);
        good &= a <= 1e300;
        m = a > m ? a : m;
    }
    return good ? m : fsi__from_bits(0x7ff0000000000000u);
}

/* The point r of a piece that is closest to the origin, rr = |r|^2; s and t as above; region as in fsi_distance. */
typedef struct fsi__nearest { fsi__d3 r; double s, t, rr; int region; } fsi__nearest;

/* The edge from q0 to q1 = q0 + e: s in [0, 1]. Inside the edge r is made normal to e a second time, as the rounding
   error along e can be large relative to a short r. */
FSI_FN fsi__nearest fsi__nearest_segment(fsi__d3 q0, fsi__d3 q1, fsi__d3 e)
{
    fsi__nearest n;
    double ee = fsi__d3_dot(e, e), s = -fsi__d3_dot(q0, e);
    n.region = s <= 0 ? 1 : s >= ee ? 2 : 3;
    n.s = s <= 0 ? 0 : s >= ee ? 1 : s / ee;
    n.t = 0;
    n.r = s <= 0 ? q0 : s >= ee ? q1 : fsi__d3_madd(q0, n.s, e);
    if (n.region == 3) n.r = fsi__d3_madd(n.r, -fsi__d3_dot(n.r, e) / ee, e);
    n.rr = fsi__d3_dot(n.r, n.r);
    return n;
}

/* The plane of a piece, with normal big = e1 x e2, |big|^2 = nn, one corner q: r = big (q.big)/nn. */
FSI_FN void fsi__nearest_plane(fsi__nearest *n, fsi__d3 q, fsi__d3 big, double nn)
{
    double h = fsi__d3_dot(q, big) / nn;
    n->r = fsi__d3_scale(big, h);
    n->rr = h * h * nn;
}

/* A triangle's edges: k = 0: ab, 1: ac, 2: bc. Keeps the closer one of *best and edge k. */
FSI_FN void fsi__nearest_side_of_triangle(const fsi__gap *g, int k, fsi__nearest *best)
{
    fsi__d3 a = fsi__d3_at(g->v), b = fsi__d3_at(g->v + 3), c = fsi__d3_at(g->v + 6);
    fsi__d3 e1 = fsi__d3_at(g->v + FSI__GAP_SIDE), e2 = fsi__d3_at(g->v + FSI__GAP_SIDE + 3);
    fsi__nearest n = k == 0 ? fsi__nearest_segment(a, b, fsi__d3_scale(e1, -1))
        : k == 1 ? fsi__nearest_segment(a, c, fsi__d3_scale(e2, -1))
        : fsi__nearest_segment(b, c, fsi__d3_sub(e1, e2));
    int first = n.region & 1, second = n.region >> 1;
    if (!(n.rr < best->rr)) return;
    *best = n;
    best->region = 1 | (k == 0 ? first << 1 | second << 2 : k == 1 ? first << 1 | second << 3
        : first << 2 | second << 3);
    best->s = k == 0 ? n.s : k == 1 ? 0 : 1 - n.s;
    best->t = k == 0 ? 0 : n.s;
}

/* A parallelogram's edges: k = 0: point a, 1: b of the first feature beside the second; 2: point c, 3: d beside the
   first. */
FSI_FN void fsi__nearest_side_of_edges(const fsi__gap *g, int k, fsi__nearest *best)
{
    fsi__d3 ac = fsi__d3_at(g->v), ad = fsi__d3_at(g->v + 3), bc = fsi__d3_at(g->v + 6), bd = fsi__d3_at(g->v + 9);
    fsi__d3 u = fsi__d3_at(g->v + FSI__GAP_SIDE), v = fsi__d3_scale(fsi__d3_at(g->v + FSI__GAP_SIDE + 3), -1);
    fsi__nearest n = k == 0 ? fsi__nearest_segment(ac, ad, v) : k == 1 ? fsi__nearest_segment(bc, bd, v)
                   : k == 2 ? fsi__nearest_segment(ac, bc, u) : fsi__nearest_segment(ad, bd, u);
    if (!(n.rr < best->rr)) return;
    *best = n;
    best->region = k < 2 ? 1 << k | n.region << 2 : n.region | 1 << (k + 0);
    best->s = k < 2 ? k : n.s;
    best->t = k < 2 ? n.s : k - 2;
}

/* The face of a degenerate piece, tried after its edges: q + s e1 + t e2 with 0 <= s, t and s + t <= 1 (triangle) or s,
   t <= 1. Once more from where the first solve ends, as that is only as good as the angle between e1 and e2. Its normal
   is that of r or of the plane, whichever rounding has harmed less: r by eps size/|r|, the plane's by
   eps/sin(angle). */
static void fsi__nearest_thin(fsi__d3 q, fsi__d3 e1, fsi__d3 e2, int triangle, fsi__nearest *best)
{
    fsi__d3 big = fsi__d3_cross(e1, e2), r = q;
    double nn = fsi__d3_dot(big, big), s = 0, t = 0, size = fsi__d3_dot(e1, e1) * fsi__d3_dot(e2, e2), rr;
    int k;
    if (!(nn > 1e-32 * size)) return;
    for (k = 0; k < 2; k++) {
        s -= fsi__d3_dot(fsi__d3_cross(r, e2), big) / nn;
        t -= fsi__d3_dot(fsi__d3_cross(e1, r), big) / nn;
        r = fsi__d3_madd(fsi__d3_madd(q, s, e1), t, e2);
    }
    if (!(s >= 0 && t >= 0 && (triangle ? s + t <= 1 : s <= 1 && t <= 1))) return;
    rr = fsi__d3_dot(r, r);
    if (!(rr < best->rr * (1 - 1e-13))) return;
    best->s = s;
    best->t = t;
    best->r = r;
    best->rr = rr;
    best->region = 15;
    if (rr * size < nn * (fsi__d3_dot(e1, e1) + fsi__d3_dot(e2, e2))) fsi__nearest_plane(best, q, big, nn);
}

#define FSI__THIN 1e-6 /* a piece whose sine is below the root of this is degenerate */

/* From barycentric coordinates: the point lies above the face, or beside the edges whose opposite corner has a negative
   one; the closest point of a convex piece lies on an edge that can be seen from where one stands. */
FSI__HOST_FN void fsi__nearest_triangle(const fsi__gap *g, fsi__nearest *n)
{
    fsi__d3 q = fsi__d3_at(g->v), e1 = fsi__d3_at(g->v + FSI__GAP_SIDE), e2 = fsi__d3_at(g->v + FSI__GAP_SIDE + 3);
    fsi__d3 big = fsi__d3_cross(e1, e2), e3 = fsi__d3_sub(e2, e1);
    double nn = fsi__d3_dot(big, big), l1 = fsi__d3_dot(e1, e1), l2 = fsi__d3_dot(e2, e2), l3 = fsi__d3_dot(e3, e3),
        most, s, t;
    most = l1 > l2 ? l1 : l2;
    most = l3 > most ? l3 : most;
    n->rr = FSI__HUGE;

    /* Too thin for a normal: the nearest of its sides. */
    if (!(nn > FSI__THIN * most * most)) {
        fsi__nearest_side_of_triangle(g, 0, n);
        fsi__nearest_side_of_triangle(g, 1, n);
        fsi__nearest_side_of_triangle(g, 2, n);
        fsi__nearest_thin(q, fsi__d3_scale(e1, -1), fsi__d3_scale(e2, -1), 1, n);
        return;
    }

    /* Barycentric coordinates, times nn, of the foot in the plane: inside. */
    s = fsi__d3_dot(fsi__d3_cross(q, e2), big);
    t = fsi__d3_dot(fsi__d3_cross(e1, q), big);
    if (s >= 0 && t >= 0 && s + t <= nn) {
        n->s = s / nn;
        n->t = t / nn;
        n->region = 15;
        fsi__nearest_plane(n, q, big, nn);
        return;
    }

    /* Outside: the nearest of the sides beyond which it lies. */
    if (t < 0) fsi__nearest_side_of_triangle(g, 0, n);
    if (s < 0) fsi__nearest_side_of_triangle(g, 1, n);
    if (s + t > nn) fsi__nearest_side_of_triangle(g, 2, n);
}

FSI__HOST_FN void fsi__nearest_edges(const fsi__gap *g, fsi__nearest *n)
{
    fsi__d3 q = fsi__d3_at(g->v), u = fsi__d3_at(g->v + FSI__GAP_SIDE), v = fsi__d3_at(g->v + FSI__GAP_SIDE + 3),
        big = fsi__d3_cross(u, v);
    double nn = fsi__d3_dot(big, big), s, t;
    int k;
    n->rr = FSI__HUGE;

    /* Nearly parallel: the nearest pair of an end and an edge. */
    if (!(nn > FSI__THIN * fsi__d3_dot(u, u) * fsi__d3_dot(v, v))) {
        for (k = 0; k < 4; k++) fsi__nearest_side_of_edges(g, k, n);
        fsi__nearest_thin(q, u, fsi__d3_scale(v, -1), 0, n);
        return;
    }

    /* Parameters, times nn, of the nearest points of the two lines: on both edges. */
    s = -fsi__d3_dot(fsi__d3_cross(q, v), big);
    t = -fsi__d3_dot(fsi__d3_cross(q, u), big);
    if (s >= 0 && s <= nn && t >= 0 && t <= nn) {
        n->s = s / nn;
        n->t = t / nn;
        n->region = 15;
        fsi__nearest_plane(n, q, big, nn);
        return;
    }

    /* Beyond an end: with that end. */
    if (s < 0) fsi__nearest_side_of_edges(g, 0, n);
    if (s > nn) fsi__nearest_side_of_edges(g, 1, n);
    if (t < 0) fsi__nearest_side_of_edges(g, 2, n);
    if (t > nn) fsi__nearest_side_of_edges(g, 3, n);
}

FSI__HOST_FN void fsi__nearest_of(fsi_pair kind, const fsi__gap *g, fsi__nearest *n)
{
    if (kind == FSI_EDGE_EDGE) fsi__nearest_edges(g, n);
    else if (kind == FSI_POINT_TRIANGLE) fsi__nearest_triangle(g, n);
    else { /* an edge, or one of no length */
        *n = fsi__nearest_segment(fsi__d3_at(g->v), fsi__d3_at(g->v + 3), fsi__d3_at(g->v + FSI__GAP_SIDE));
        n->region = 1 | n->region << 1;
    }
}

/* Scales sizes whose fourth powers would overflow or underflow to about 1; returns the factor, or 0 where the features
   count as touching. */
static double fsi__gap_tame(fsi__gap *g)
{
    double size = fsi__gap_size(g), scale;
    int k;
    if (size > 1e-60 && size < 1e60) return 1;
    if (!(size > 1e-300 && size < 1e150)) return 0;
    scale = 1 / size;
    for (k = 0; k < FSI__GAP_NUMBERS; k++) g->v[k] *= scale;
    return scale;
}

FSI_FN int fsi__is_pair(fsi_pair kind) { return (int)kind >= FSI_POINT_POINT && (int)kind <= FSI_EDGE_EDGE; }

FSI_FN void fsi__distance_weights(fsi_pair kind, const fsi__nearest *n, double *w)
{
    if (kind == FSI_EDGE_EDGE) {
        w[0] = 1 - n->s;
        w[1] = n->s;
        w[2] = n->t - 1;
        w[3] = -n->t;
        return;
    }
    w[0] = 1;
    w[1] = -1 + n->s + n->t;
    w[2] = -n->s;
    w[3] = -n->t;
}

FSI_API fsi_distance fsi_distance_between(fsi_pair kind, const double *x)
{
    fsi_distance at;
    fsi__gap g;
    fsi__nearest n;
    double scale;
    memset(&at, 0, sizeof at);
    if (!x || !fsi__is_pair(kind)) return at;
    fsi__gap_of(kind, x, &g);
    scale = fsi__gap_tame(&g);
    if (scale == 0) {
        if (!(fsi__gap_size(&g) < 1)) return at;
        n.s = n.t = n.rr = 0; /* all points are one */
        n.r = fsi__d3_make(0, 0, 0);
        n.region = kind == FSI_EDGE_EDGE ? 5 : 3;
        scale = 1;
    } else fsi__nearest_of(kind, &g, &n);
    fsi__distance_weights(kind, &n, at.weight);
    at.region = n.region;
    at.d = sqrt(n.rr);
    if (at.d > 0) fsi__d3_put(at.normal, fsi__d3_scale(n.r, 1 / at.d));
    at.d /= scale;
    return at;
}

/* ---- >>frame -----------------------------------------------------------------------------------------------------

   Where derivatives live: the normal n; m = 0 to 2 directions axis[0 .. m-1] along which the closest points can slide,
   unit, with z[k] = the derivative of the weights along them; and what is left of the tangents, axis[m .. 1]. */
typedef struct fsi__frame { double z[2][4]; fsi__d3 n, axis[2]; int free; } fsi__frame;

/* Any two unit vectors normal to n and to each other. */
static void fsi__frame_tangents(fsi__d3 n, fsi__d3 *axis)
{
    double ax = fabs(n.x), ay = fabs(n.y), az = fabs(n.z), l;
    fsi__d3 e = ax <= ay && ax <= az ? fsi__d3_make(1, 0, 0) : ay <= az ? fsi__d3_make(0, 1, 0) : fsi__d3_make(0, 0, 1);
    e = fsi__d3_cross(n, e);
    l = fsi__d3_dot(e, e);
    axis[0] = fsi__d3_scale(e, l > 0 ? 1 / sqrt(l) : 0);
    axis[1] = fsi__d3_cross(n, axis[0]);
}

/* One more direction: the points `to` and `from` trade weight. sign: 1 within the first feature, -1 within the
   second. */
static void fsi__frame_add(fsi__frame *f, const double *x, int from, int to, double sign)
{
    fsi__d3 e = fsi__d3_scale(fsi__d3_sub(fsi__d3_at(x + 3 * to), fsi__d3_at(x + 3 * from)), sign), a;
    double *z = f->z[f->free], l, along = 0;
    int i;
    if (f->free == 0) {
        a = fsi__d3_madd(e, -fsi__d3_dot(e, f->n), f->n);
        l = sqrt(fsi__d3_dot(a, a));
        if (!(l > 0)) return;
        f->axis[0] = fsi__d3_scale(a, 1 / l);
        f->axis[1] = fsi__d3_cross(f->n, f->axis[0]);
    } else {
        along = fsi__d3_dot(e, f->axis[0]);
        l = fsi__d3_dot(e, f->axis[1]);
        if (l == 0) return;
    }
    for (i = 0; i < 4; i++) z[i] = (i == to ? sign : i == from ? -sign : 0) - along * f->z[0][i];
    for (i = 0; i < 4; i++) z[i] /= l;
    f->free++;
}

static void fsi__frame_of(fsi_pair kind, const double *x, const fsi_distance *at, fsi__frame *f)
{
    const int first = kind == FSI_EDGE_EDGE ? 2 : 1, points = fsi_pair_points(kind);
    int i, from = -1;
    memset(f, 0, sizeof *f);
    f->n = fsi__d3_at(at->normal);
    if (first == 2 && (at->region & 3) == 3) fsi__frame_add(f, x, 0, 1, 1);
    for (i = first; i < points; i++) {
        if (!(at->region >> i & 1)) continue;
        if (from < 0) from = i;
        else if (f->free < 2) fsi__frame_add(f, x, from, i, -1);
    }
    if (f->free == 0) fsi__frame_tangents(f->n, f->axis);
}

/* A symmetric form in this frame: block (i, j) of the Hessian is
      nn_ij n n^T + sum_k [side_k,ij axis_k n^T + side_k,ji n axis_k^T + across_k,ij axis_k axis_k^T] */
typedef struct fsi__form { double nn[4][4], side[2][4][4], across[2][4][4]; } fsi__form;

/* Adds slope * Hess d, the exact second derivative of d within the region of `at` [1/m]:
      h = d^2/2 = min over s of |r(s)|^2/2, r = sum w_i(s) x_i; by the envelope theorem, with e_k = dr/ds_k,
      w_k = dw/ds_k, M_kl = e_k.e_l:
      Hess h = (w w^T) x I - C M^-1 C^T,  C_k = w x e_k + w_k x r,   Hess d = (Hess h - grad d grad d^T)/d
   of which, with orthonormal e_k, z_k instead of w_k, and t what is normal to n and to all e_k, there remains without
      cancellation Hess d = (w w^T) x t t^T/d - sum_k [(w z_k^T) x e_k n^T + (z_k w^T) x n e_k^T] - d (z_k z_k^T) x n
      n^T */
static void fsi__form_distance(fsi__form *form, const fsi__frame *f, const fsi_distance *at, double slope)
{
    const double *w = at->weight;
    int i, j, k;
    for (k = 0; k < 2; k++) {
        const double *z = f->z[k];
        if (k < f->free) {
            for (i = 0; i < 4; i++) for (j = 0; j < 4; j++) {
                form->nn[i][j] -= slope * at->d * z[i] * z[j];
                form->side[k][i][j] -= slope * w[i] * z[j];
            }
        } else for (i = 0; i < 4; i++) for (j = 0; j < 4; j++) form->across[k][i][j] += slope / at->d * w[i] * w[j];
    }
}

/* h += the form; 3n x 3n numbers. */
static void fsi__form_spread(const fsi__form *form, const fsi__frame *f, int points, double *h)
{
    double n[3], axis[2][3];
    int i, j, p, q, k, row = 3 * points;
    fsi__d3_put(n, f->n);
    for (k = 0; k < 2; k++) fsi__d3_put(axis[k], f->axis[k]);
    for (i = 0; i < points; i++) for (j = 0; j < points; j++) {
        double left[3], right[2][3]; /* block = left n^T + sum right_k axis_k^T */
        for (p = 0; p < 3; p++) {
            left[p] = form->nn[i][j] * n[p] + form->side[0][i][j] * axis[0][p] + form->side[1][i][j] * axis[1][p];
            for (k = 0; k < 2; k++) right[k][p] = form->side[k][j][i] * n[p] + form->across[k][i][j] * axis[k][p];
        }
        for (p = 0; p < 3; p++) for (q = 0; q < 3; q++)
            h[(3 * i + p) * row + 3 * j + q] += left[p] * n[q] + right[0][p] * axis[0][q] + right[1][p] * axis[1][q];
    }
}

/* ---- >>contact implementation ----------------------------------------------------------------------------------- */

/* m(c) and its derivatives to c = |u x v|^2. */
typedef struct fsi__mollifier { double c, m, slope, curvature; fsi__d3 u, v; } fsi__mollifier;

static fsi__mollifier fsi__mollifier_at(const fsi_contact *contact, const double *x)
{
    fsi__mollifier m;
    fsi__d3 big;
    double e = contact->parallel;
    memset(&m, 0, sizeof m);
    m.m = 1;
    if (contact->kind != FSI_EDGE_EDGE || !(e > 0)) return m;
    m.u = fsi__d3_sub(fsi__d3_at(x + 3), fsi__d3_at(x));
    m.v = fsi__d3_sub(fsi__d3_at(x + 9), fsi__d3_at(x + 6));
    big = fsi__d3_cross(m.u, m.v);
    m.c = fsi__d3_dot(big, big);
    if (!(m.c < e)) return m;
    m.m = (2 - m.c / e) * (m.c / e);
    m.slope = 2 * (1 - m.c / e) / e;
    m.curvature = -2 / (e * e);
    return m;
}

/* dc/du = 2 (|v|^2 u - (u.v) v), dc/dv = 2 (|u|^2 v - (u.v) u);  to the points a, b, c, d: -du, du, -dv, dv. */
static void fsi__mollifier_gradient(const fsi__mollifier *m, double *g)
{
    double uv = fsi__d3_dot(m->u, m->v), uu = fsi__d3_dot(m->u, m->u), vv = fsi__d3_dot(m->v, m->v);
    fsi__d3 du = fsi__d3_scale(fsi__d3_madd(fsi__d3_scale(m->u, vv), -uv, m->v), 2),
        dv = fsi__d3_scale(fsi__d3_madd(fsi__d3_scale(m->v, uu), -uv, m->u), 2);
    fsi__d3_put(g, fsi__d3_scale(du, -1));
    fsi__d3_put(g + 3, du);
    fsi__d3_put(g + 6, fsi__d3_scale(dv, -1));
    fsi__d3_put(g + 9, dv);
}

/* h += s * Hess c: uu: 2 (|v|^2 I - v v^T), vv: 2 (|u|^2 I - u u^T), uv: 2 (2 u v^T - v u^T - (u.v) I). c is the square
   of u x v: with J the derivative of that, Gauss and Newton's part is 2 J^T J, which has uv: 2 (u v^T - (u.v) I). */
static void fsi__mollifier_hessian(const fsi__mollifier *m, double s, int projected, double *h)
{
    double u[3], v[3], uv = fsi__d3_dot(m->u, m->v), uu = fsi__d3_dot(m->u, m->u), vv = fsi__d3_dot(m->v, m->v);
    int i, j, p, q;
    fsi__d3_put(u, m->u);
    fsi__d3_put(v, m->v);
    for (p = 0; p < 3; p++) for (q = 0; q < 3; q++) {
        double one = p == q, b[2][2];
        b[0][0] = 2 * s * (vv * one - v[p] * v[q]);
        b[1][1] = 2 * s * (uu * one - u[p] * u[q]);
        b[0][1] = 2 * s * (u[p] * v[q] - uv * one + (projected ? 0 : u[p] * v[q] - v[p] * u[q]));
        b[1][0] = 2 * s * (v[p] * u[q] - uv * one + (projected ? 0 : v[p] * u[q] - u[p] * v[q]));
        for (i = 0; i < 4; i++) for (j = 0; j < 4; j++)
            h[(3 * i + p) * 12 + 3 * j + q] += ((i ^ j) & 1 ? -1 : 1) * b[i >> 1][j >> 1];
    }
}

/* h += s w w^T x n n^T + sum_k s_z z_k z_k^T x n n^T, the normal part alone. */
static void fsi__normal_spread(const fsi__frame *f, const double *w, double s, double s_z, int points, double *h)
{
    double n[3], nn[9];
    int i, j, p, q;
    const int row = 3 * points;
    fsi__d3_put(n, f->n);
    for (p = 0; p < 3; p++) for (q = 0; q < 3; q++) nn[3 * p + q] = n[p] * n[q];
    for (i = 0; i < points; i++) for (j = 0; j < points; j++) {
        const double a = s * w[i] * w[j] + s_z * (f->z[0][i] * f->z[0][j] + f->z[1][i] * f->z[1][j]);
        double *block = h + 3 * i * row + 3 * j;
        for (p = 0; p < 3; p++) for (q = 0; q < 3; q++) block[p * row + q] += a * nn[3 * p + q];
    }
}

/* h += k[0] g g^T + k[1] (g c^T + c g^T) + k[2] c c^T,  g = w x n. */
static void fsi__two_spread(const fsi_distance *at, const double *c, const double *k, double *h)
{
    double g[12];
    int i, j;
    for (i = 0; i < 12; i++) g[i] = at->weight[i / 3] * at->normal[i % 3];
    for (i = 0; i < 12; i++) for (j = 0; j < 12; j++)
        h[12 * i + j] += k[0] * g[i] * g[j] + k[1] * (g[i] * c[j] + c[i] * g[j]) + k[2] * c[i] * c[j];
}

/* The positive part of k[0] g g^T + k[1] (g c^T + c g^T) + k[2] c c^T as if g and c were orthogonal, which they are
   above the insides of both edges; else it is positive semidefinite all the same. With k in units of |g| and |c|: the
   larger eigenvalue l of a 2 x 2 matrix, l v v^T. */
static void fsi__two_clamp(double g2, double c2, double *k)
{
    const double g1 = sqrt(g2), c1 = sqrt(c2), a = k[0] * g2, b = k[1] * g1 * c1, c = k[2] * c2, half = 0.5 * (a - c),
        root = sqrt(half * half + b * b);
    double l = 0.5 * (a + c) + root, x = half + root, y = b, xy = x * x + y * y; /* v ~ (x, y), as a > 0 > c */
    if (!(l > 0) || !(xy > 0) || !(g1 > 0) || !(c1 > 0)) return;
    l /= xy;
    k[0] = l * x * x / g2;
    k[1] = l * x * y / (g1 * c1);
    k[2] = l * y * y / c2;
}

/* The Hessian of m b: m (b'' g g^T + b' Hess d) + m' b' (g c^T + c g^T) + b (m'' c c^T + m' Hess c), g = grad d = w x
   n, c = grad c. Projected: of b' Hess d there stays -b' d (z_k z_k^T) x n n^T; what else there is, tangential, is
   small beside b'' or negative. Of the terms in g and c the positive part; of Hess c, which is that of |u x v|^2, Gauss
   and Newton's part. */
static void fsi__contact_hessian(const fsi_contact *c, const double *x, const fsi_distance *at, fsi_barrier b,
    const fsi__mollifier *m, const double *dc, double *h, fsi_hessian which)
{
    const int points = fsi_pair_points(c->kind), projected = which == FSI_HESSIAN_PROJECTED;
    fsi__frame f;
    double k[3];

    /* The part of m b, along the normal and across it. */
    fsi__frame_of(c->kind, x, at, &f);
    k[0] = m->m * b.curvature;
    k[1] = m->slope * b.slope;
    k[2] = m->curvature * b.value;
    if (projected) fsi__normal_spread(&f, at->weight, m->slope > 0 ? 0 : k[0], -m->m * b.slope * at->d, points, h);
    else {
        fsi__form form;
        memset(&form, 0, sizeof form);
        fsi__form_distance(&form, &f, at, m->m * b.slope);
        fsi__form_spread(&form, &f, points, h);
        if (!(m->slope > 0)) fsi__normal_spread(&f, at->weight, k[0], 0, points, h);
    }

    /* The part of the mollifier: mixed terms, then its own curvature. */
    if (!(m->slope > 0)) return;
    if (projected) {
        double g2 = 0, c2 = 0;
        int i;
        for (i = 0; i < 4; i++) g2 += at->weight[i] * at->weight[i];
        for (i = 0; i < 12; i++) c2 += dc[i] * dc[i];
        fsi__two_clamp(g2, c2, k);
    }
    fsi__two_spread(at, dc, k, h);
    fsi__mollifier_hessian(m, b.value * m->slope, projected, h);
}

/* Distance and barrier; 1 when there is something to differentiate. */
static int fsi__contact_at(const fsi_contact *c, const double *x, fsi_distance *at, fsi_barrier *b)
{
    memset(at, 0, sizeof *at);
    memset(b, 0, sizeof *b);
    b->value = fsi__from_bits(0x7ff0000000000000u);
    b->slope = -b->value;
    if (!c || !x || !fsi__is_pair(c->kind) || !(c->range > 0)) return 0;
    *at = fsi_distance_between(c->kind, x);
    if (!(at->d > 0) || !(at->d - c->thickness > 0)) return 0;
    *b = fsi_barrier_at(at->d - c->thickness, c->range);
    return b->value > 0 && b->value <= FSI__HUGE;
}

FSI_API double fsi_contact_energy(const fsi_contact *c, const double *x, double *gradient, double *hessian,
    fsi_hessian which)
{
    fsi_distance at;
    fsi_barrier b;
    fsi__mollifier m;
    double dc[12];
    int k, some = fsi__contact_at(c, x, &at, &b), n = c && fsi__is_pair(c->kind) ? 3 * fsi_pair_points(c->kind) : 0;
    for (k = 0; gradient && k < n; k++) gradient[k] = 0;
    for (k = 0; hessian && k < n * n; k++) hessian[k] = 0;
    if (!some) return b.value;
    m = fsi__mollifier_at(c, x);
    if (m.slope > 0) fsi__mollifier_gradient(&m, dc);
    else memset(dc, 0, sizeof dc);
    for (k = 0; gradient && k < n; k++)
        gradient[k] = m.m * b.slope * at.weight[k / 3] * at.normal[k % 3] + b.value * m.slope * dc[k];
    if (hessian) fsi__contact_hessian(c, x, &at, b, &m, dc, hessian, which);
    return m.m * b.value;
}

FSI_API double fsi_contact_push(const fsi_contact *c, const double *x, fsi_distance *at)
{
    fsi_distance here;
    fsi_barrier b;
    int some = fsi__contact_at(c, x, &here, &b);
    if (at) *at = here;
    return some ? -b.slope * fsi__mollifier_at(c, x).m : -b.slope;
}

/* ---- >>polynomials ---------------------------------------------------------------------------------------------- */

/* A polynomial on [0, 1], sum c[k] B_k, B_k = (degree choose k) u^k (1-u)^(degree-k): it lies within the hull of the
   points (k/degree, c[k]). While it is being made the binomials stand in the numbers: then a product is a
   convolution. */
typedef struct fsi__bernstein { int degree; double c[8]; } fsi__bernstein;

/* sum += s a b */
FSI_FN void fsi__bernstein_add_product(fsi__bernstein *sum, const fsi__bernstein *a, const fsi__bernstein *b, double s)
{
    int i, j;
    sum->degree = a->degree + b->degree;
    for (i = 0; i <= a->degree; i++) for (j = 0; j <= b->degree; j++) sum->c[i + j] += s * (a->c[i] * b->c[j]);
}

static void fsi__bernstein_finish(fsi__bernstein *p)
{
    double binomial = 1;
    int k;
    for (k = 0; k <= p->degree; k++) {
        p->c[k] /= binomial;
        binomial = binomial * (p->degree - k) / (k + 1);
    }
}

/* The part after u becomes the whole (de Casteljau). */
static void fsi__bernstein_cut(fsi__bernstein *p, double u)
{
    int r, k;
    for (r = p->degree; r > 0; r--) for (k = 0; k < r; k++) p->c[k] = (1 - u) * p->c[k] + u * p->c[k + 1];
}

/* The part before the middle becomes the whole. */
static void fsi__bernstein_halve(fsi__bernstein *p)
{
    int r, k;
    for (r = 1; r <= p->degree; r++) for (k = p->degree; k >= r; k--) p->c[k] = 0.5 * (p->c[k] + p->c[k - 1]);
}

/* Where the hull comes down to g; 2: nowhere. c[0] > g. */
static double fsi__bernstein_reach(const fsi__bernstein *p, double g)
{
    double first = 2;
    int i, k, low = 0;
    for (k = 1; k <= p->degree; k++) low |= p->c[k] <= g;
    if (!low) return 2;
    for (i = 0; i < p->degree; i++) for (k = i + 1; k <= p->degree; k++) {
        const double a = p->c[i] - g, b = p->c[k] - g;
        if (a > 0 && b <= 0) {
            double u = (i + (k - i) * (a / (a - b))) / p->degree;
            first = u < first ? u : first;
        }
    }
    return first;
}

/* ---- >>sweeps implementation --------------------------------------------------------------------------------------

   Conservative advancement along directions. Let n be a unit vector. Both features are convex, so they stay at least g
   apart as long as all corners r_k(t) = r_k + t v_k of their difference (above) have n . r_k(t) >= g, and these are
   linear in t:

            |   / corner 3            At time t, n points to the closest point: the lowest corner is at the distance.
      n.r_k |  /   ____ corner 1      The first time at which a corner reaches the height g is safe; a division for
            | /___/                   each corner finds it. The search continues from there with a new n. It ends when
            |/   \                    the gap is nearly g, or when no corner reaches g within the step.
          g |.....\..............
            |      \ corner 2         For a point that moves straight towards a face one n is enough, as for most pairs.
            +------------------- t
                   safe

   ACCD (Li et al. 2021) advances by (d - g)/(largest speed): never farther. Rounding: each height is wrong by less than
   16 eps (size of r + t size of v), which is taken off. */
#define FSI__CCD_ERROR 3.6e-15 /* 16 eps */
#define FSI__CCD_SLACK 0.25
#define FSI__CCD_TURNS 48
#define FSI__CCD_PATIENCE 4 /* turns with directions that stay, before others are tried as well */

/* The first time after t at which a corner reaches height g in direction n; at most 1, and t when that is now. */
FSI_FN double fsi__ccd_advance(const fsi__gap *r, const fsi__gap *v, int corners, fsi__d3 n, double r_error,
    double v_error, double g, double t)
{
    double until = 1;
    int k;
    for (k = 0; k < corners; k++) {
        double height = fsi__d3_dot(n, fsi__d3_at(r->v + 3 * k)) - r_error - g,
            speed = fsi__d3_dot(n, fsi__d3_at(v->v + 3 * k)) - v_error;
        if (height + t * speed <= 0) return t;
        if (height + until * speed < 0) until = height / -speed * (1 - 1e-15);
    }
    return until;
}

static int fsi__ccd_corners(fsi_pair kind)
{
    return kind == FSI_POINT_POINT ? 1 : kind == FSI_POINT_EDGE ? 2 : kind == FSI_POINT_TRIANGLE ? 3 : 4;
}

/* Where the closest points lie at the borders of a region and the gap is tiny, rounding turns n. Other candidates for
   it: the normal of the piece, and r made normal to each side. The farthest that one of them leads. */
static double fsi__ccd_detour(const fsi__gap *at, fsi__d3 r, const fsi__gap *from, const fsi__gap *v, int corners,
    double r_error, double v_error, double g, double t)
{
    fsi__d3 e[3], n[4];
    double best = t;
    int k;
    e[0] = fsi__d3_at(at->v + FSI__GAP_SIDE);
    e[1] = fsi__d3_at(at->v + FSI__GAP_SIDE + 3);
    e[2] = fsi__d3_sub(e[1], e[0]);
    n[3] = fsi__d3_cross(e[0], e[1]);
    if (fsi__d3_dot(n[3], fsi__d3_at(at->v)) < 0) n[3] = fsi__d3_scale(n[3], -1);
    for (k = 0; k < 4; k++) {
        double l, ee = k < 3 ? fsi__d3_dot(e[k], e[k]) : 0, until;
        if (k < 3) n[k] = ee > 0 ? fsi__d3_madd(r, -fsi__d3_dot(r, e[k]) / ee, e[k]) : r;
        l = sqrt(fsi__d3_dot(n[k], n[k]));
        if (!(l > 0)) continue;
        until = fsi__ccd_advance(from, v, corners, fsi__d3_scale(n[k], 1 / l), r_error, v_error, g, t);
        best = until > best ? until : best;
    }
    return best;
}

/* A direction that stays while features turn about each other at a tiny gap leads nowhere; there n has to turn with
   them. As polynomials of time:
      corner   n = q, a corner of the piece:               |q|^2 >= g^2, (q_j - q).q >= 0 for the other corners q_j
      side     n = (q x e) x -e, e a side from corner q:   |q x e|^2 >= g^2 |e|^2, f.n >= 0 for the other side f at q
      face     n = e1 x e2:                                |q.n| >= g |n|
   Each condition keeps the piece g away from the origin: its corners have q_j.n >= g |n|. The hull of each polynomial
   tells how long it holds. */
typedef struct fsi__path { fsi__bernstein x[3]; double size; } fsi__path; /* a vector; largest coefficient */

typedef struct fsi__turning {
    const fsi__gap *r, *v;
    double g, from, width, size; /* time from .. from + width; largest number of the piece meanwhile */
} fsi__turning;

/* From corner i to corner j; i < 0: from the origin. */
static fsi__path fsi__path_between(const fsi__turning *c, int i, int j)
{
    fsi__path p;
    int k;
    memset(&p, 0, sizeof p);
    for (k = 0; k < 3; k++) {
        const double r = c->r->v[3 * j + k] - (i < 0 ? 0 : c->r->v[3 * i + k]),
            v = c->v->v[3 * j + k] - (i < 0 ? 0 : c->v->v[3 * i + k]);
        p.x[k].degree = 1;
        p.x[k].c[0] = r + c->from * v;
        p.x[k].c[1] = r + (c->from + c->width) * v;
    }
    return p;
}

static fsi__path fsi__path_cross(const fsi__path *a, const fsi__path *b)
{
    fsi__path p;
    int k, i;
    memset(&p, 0, sizeof p);
    for (k = 0; k < 3; k++) {
        fsi__bernstein_add_product(&p.x[k], &a->x[(k + 1) % 3], &b->x[(k + 2) % 3], 1);
        fsi__bernstein_add_product(&p.x[k], &a->x[(k + 2) % 3], &b->x[(k + 1) % 3], -1);
        for (i = 0; i <= p.x[k].degree; i++) p.size = fabs(p.x[k].c[i]) > p.size ? fabs(p.x[k].c[i]) : p.size;
    }
    return p;
}

static fsi__bernstein fsi__path_dot(const fsi__path *a, const fsi__path *b)
{
    fsi__bernstein p;
    int k;
    memset(&p, 0, sizeof p);
    for (k = 0; k < 3; k++) fsi__bernstein_add_product(&p, &a->x[k], &b->x[k], 1);
    return p;
}

/* The part of the time during which p >= error. */
static double fsi__turning_reach(fsi__bernstein p, double error)
{
    fsi__bernstein_finish(&p);
    return p.c[0] > error ? fsi__bernstein_reach(&p, error) : 0;
}

static double fsi__turning_corner(const fsi__turning *c, int corners, int i)
{
    const double error = 5e-15 * c->size * c->size;
    fsi__path q = fsi__path_between(c, -1, i);
    fsi__bernstein p = fsi__path_dot(&q, &q);
    double least, u;
    int j;
    for (j = 0; j <= 2; j++) p.c[j] -= (j == 1 ? 2 : 1) * c->g * c->g;
    least = fsi__turning_reach(p, error);
    for (j = 0; j < corners; j++) {
        fsi__path f;
        if (j == i) continue;
        f = fsi__path_between(c, i, j);
        u = fsi__turning_reach(fsi__path_dot(&f, &q), error);
        least = u < least ? u : least;
    }
    return least;
}

/* The side from corner i to corner j; k: a corner beside it, -1: none. */
static double fsi__turning_side(const fsi__turning *c, int i, int j, int k)
{
    const double size2 = c->size * c->size;
    fsi__path q = fsi__path_between(c, -1, i), e = fsi__path_between(c, i, j), x = fsi__path_cross(&q, &e), n;
    fsi__bernstein p = fsi__path_dot(&x, &x), ee = fsi__path_dot(&e, &e), one;
    double least, u;
    one.degree = 2;
    one.c[0] = one.c[2] = 1;
    one.c[1] = 2;
    fsi__bernstein_add_product(&p, &ee, &one, -c->g * c->g);
    least = fsi__turning_reach(p, 1e-13 * size2 * (x.size + c->g * c->g));
    if (k < 0) return least;
    q = fsi__path_between(c, i, k);
    n = fsi__path_cross(&e, &x); /* e x (q x e) = q |e|^2 - e (q.e) */
    u = fsi__turning_reach(fsi__path_dot(&q, &n), 4e-13 * size2 * size2);
    return u < least ? u : least;
}

static double fsi__turning_face(const fsi__turning *c, int i, int j, int k)
{
    fsi__path q = fsi__path_between(c, -1, i), e = fsi__path_between(c, i, j), f = fsi__path_between(c, i, k),
        n = fsi__path_cross(&e, &f);
    fsi__bernstein h = fsi__path_dot(&q, &n), nn = fsi__path_dot(&n, &n);
    const double sign = h.c[0] < 0 ? -1 : 1;
    double most = 0;
    int m;
    fsi__bernstein_finish(&nn);
    for (m = 0; m <= 4; m++) most = nn.c[m] > most ? nn.c[m] : most;
    for (m = 0; m <= 3; m++) h.c[m] *= sign;
    return fsi__turning_reach(h, c->g * sqrt(most) + 1.5e-13 * c->size * c->size * c->size);
}

/* The feature that `region` names. Corners of EDGE_EDGE: 2 (b) + 1 (d). */
static double fsi__turning_feature(const fsi__turning *c, fsi_pair kind, int region)
{
    const int corners = fsi__ccd_corners(kind), tops = region >> 1;
    if (region == 15) return fsi__turning_face(c, 0, 1, 2);
    if (kind == FSI_EDGE_EDGE) {
        const int first = region & 3, second = region >> 2, i = (first == 2 ? 2 : 0) + (second == 2 ? 1 : 0);
        if (first == 3) return fsi__turning_side(c, i, i + 2, i ^ 1);
        if (second == 3) return fsi__turning_side(c, i, i + 1, i ^ 2);
        return fsi__turning_corner(c, corners, i);
    }
    if (tops == 3) return fsi__turning_side(c, 0, 1, corners == 3 ? 2 : -1);
    if (tops == 5) return fsi__turning_side(c, 0, 2, 1);
    if (tops == 6) return fsi__turning_side(c, 1, 2, 0);
    return fsi__turning_corner(c, corners, tops == 1 ? 0 : tops == 2 ? 1 : 2);
}

/* How far a turning direction leads: over all the rest of the time, or less, ever more closely. */
static double fsi__ccd_turn(fsi_pair kind, int region, const fsi__gap *r, const fsi__gap *v, double r_size,
    double v_size, double g, double t)
{
    fsi__turning c;
    double best = t;
    int k;
    c.r = r;
    c.v = v;
    c.g = g;
    c.from = t;
    for (k = 0, c.width = 1 - t; k < 4 && t + c.width > best; k++, c.width *= 0.0625) {
        double u;
        c.size = r_size + (t + c.width) * v_size;
        u = fsi__turning_feature(&c, kind, region);
        if (u > 1) return k == 0 ? 1 : t + c.width;
        u = t + u * (1 - 1e-15) * c.width;
        best = u > best ? u : best;
    }
    return best;
}

typedef struct fsi__ccd { fsi_pair kind; fsi__gap r, v; double thickness, keep; int turns; } fsi__ccd;

static double fsi__ccd_search(fsi__ccd *s)
{
    const double r_size = fsi__gap_size(&s->r), v_size = fsi__gap_size(&s->v), r_error = FSI__CCD_ERROR * r_size,
        v_error = FSI__CCD_ERROR * v_size;
    const int corners = fsi__ccd_corners(s->kind);
    double t = 0, g = 0, enough = 0, until, d;
    int k;
    for (s->turns = 0; s->turns < FSI__CCD_TURNS; s->turns++) {
        fsi__gap at;
        fsi__nearest n;

        /* The distance at time t; at the start, the gap that is to be kept. */
        for (k = 0; k < FSI__GAP_NUMBERS; k++) at.v[k] = s->r.v[k] + t * s->v.v[k];
        fsi__nearest_of(s->kind, &at, &n);
        d = sqrt(n.rr);
        if (!(d > 0)) return t;
        if (s->turns == 0) {
            const double gap = d - s->thickness + r_error;
            if (!(gap > 0)) return 0;
            g = s->thickness * (1 + 1e-15) + s->keep * gap;
            enough = s->thickness + (1 + FSI__CCD_SLACK) * s->keep * gap;
        } else if (d <= enough) return t;

        /* The time up to which a plane keeps the features apart; failing that, a plane turned towards the motion. */
        until = fsi__ccd_advance(&s->r, &s->v, corners, fsi__d3_scale(n.r, 1 / d), r_error, v_error, g, t);
        if (!(until > t)) until = fsi__ccd_detour(&at, n.r, &s->r, &s->v, corners, r_error, v_error, g, t);
        if (until < 1 && s->turns >= FSI__CCD_PATIENCE) {
            const double turned = fsi__ccd_turn(s->kind, n.region, &s->r, &s->v, r_size, v_size, g, t);
            until = turned > until ? turned : until;
        }
        if (!(until > t)) return t;
        t = until;
        if (t >= 1) return 1;
    }
    return t;
}

FSI_API double fsi_ccd(fsi_pair kind, const double *x, const double *dx, double thickness, double keep)
{
    fsi__ccd s;
    double scale;
    int k;
    if (!x || !dx || !fsi__is_pair(kind) || !(thickness >= 0) || !(keep > 0 && keep < 1)) return 0;
    s.kind = kind;
    fsi__gap_of(kind, x, &s.r);
    fsi__gap_of(kind, dx, &s.v);
    scale = fsi__gap_tame(&s.r);
    if (scale == 0 || !(fsi__gap_size(&s.v) <= 1e150)) return 0;
    if (scale != 1) for (k = 0; k < FSI__GAP_NUMBERS; k++) s.v.v[k] *= scale;
    s.thickness = thickness * scale;
    s.keep = keep;
    return fsi__ccd_search(&s);
}

/* ---- >>level set implementation --------------------------------------------------------------------------------- */

/* Weights along an axis at f = x/dx - 1/2 - base (LINEAR), f = x/dx - 1 - base - 1/2 in [-1/2, 1/2] (SPLINE). */
static void fsi__stencil_axis(fsi_stencil *s, int axis, double f, double dx)
{
    double *w = s->weight[axis], *d = s->slope[axis];
    if (s->width == 2) {
        w[0] = 1 - f;
        w[1] = f;
        d[0] = -1 / dx;
        d[1] = 1 / dx;
        return;
    }
    w[0] = 0.5 * (0.5 - f) * (0.5 - f);
    w[1] = 0.75 - f * f;
    w[2] = 0.5 * (0.5 + f) * (0.5 + f);
    d[0] = (f - 0.5) / dx;
    d[1] = -2 * f / dx;
    d[2] = (f + 0.5) / dx;
}

static int fsi__is_metric(fsi_metric metric, int dim, const double *x, double dx)
{
    int k, good = (metric == FSI_METRIC_LINEAR || metric == FSI_METRIC_SPLINE) && (dim == 2 || dim == 3) && x && dx > 0
        && dx <= FSI__HUGE;
    for (k = 0; good && k < dim; k++) good = fabs(x[k] / dx) <= 1e9;
    return good;
}

FSI_API fsi_stencil fsi_stencil_at(fsi_metric metric, int dim, const double *x, double dx, const fsi_stencil *frozen)
{
    fsi_stencil s;
    int k;
    memset(&s, 0, sizeof s);
    if (!fsi__is_metric(metric, dim, x, dx)) return s;
    s.dim = dim;
    s.width = metric == FSI_METRIC_LINEAR ? 2 : 3;
    for (k = 0; k < dim; k++) {
        const double y = x[k] / dx, shift = s.width == 2 ? 0.5 : 1.5;
        s.base[k] = frozen && frozen->dim == dim && s.width == 2 ? frozen->base[k] : s.width == 2 ? (int)floor(y - 0.5)
            : (int)floor(y) - 1;
        fsi__stencil_axis(&s, k, y - shift - s.base[k], dx);
    }
    return s;
}

FSI_API double fsi_stencil_value(const fsi_stencil *s, const double *phi, double *gradient, double *weights)
{
    double sum = 0, g[3] = { 0, 0, 0 };
    int i, j, k, at = 0, a;
    if (!s || s->dim < 2 || s->dim > 3 || s->width < 2 || s->width > 3 || !phi) return 0;
    for (k = 0; k < (s->dim == 3 ? s->width : 1); k++) for (j = 0; j < s->width; j++)
        for (i = 0; i < s->width; i++, at++) {
        const double wx = s->weight[0][i], wy = s->weight[1][j], wz = s->dim == 3 ? s->weight[2][k] : 1,
            w = wx * wy * wz;
        sum += w * phi[at];
        g[0] += s->slope[0][i] * wy * wz * phi[at];
        g[1] += wx * s->slope[1][j] * wz * phi[at];
        g[2] += s->dim == 3 ? wx * wy * s->slope[2][k] * phi[at] : 0;
        if (weights) weights[at] = w;
    }
    for (a = 0; gradient && a < s->dim; a++) gradient[a] = g[a];
    return sum;
}

/* The weights of an axis where f goes from f0 to f1, as polynomials with binomials inside; returns the largest sum of
   their absolute values. */
static double fsi__bernstein_weights(fsi__bernstein *w, int width, double f0, double f1)
{
    const double most = fabs(f0) > fabs(f1) ? fabs(f0) : fabs(f1);
    int k;
    if (width == 2) {
        for (k = 0; k < 2; k++) w[k].degree = 1;
        w[0].c[0] = 1 - f0;
        w[0].c[1] = 1 - f1;
        w[1].c[0] = f0;
        w[1].c[1] = f1;
        return 1 + 2 * most;
    }
    for (k = 0; k < 3; k++) {
        const double sign = k == 0 ? -1 : 1, a = k == 1 ? f0 : 0.5 + sign * f0, b = k == 1 ? f1 : 0.5 + sign * f1,
            s = k == 1 ? -1 : 0.5, one = k == 1 ? 0.75 : 0;
        w[k].degree = 2;
        w[k].c[0] = one + s * a * a;
        w[k].c[1] = 2 * one + 2 * s * a * b;
        w[k].c[2] = one + s * b * b;
    }
    return 2;
}

/* A sample that moves through the grid. */
typedef struct fsi__drift {
    int dim, width, base[3];
    double y[3], step[3];  /* place and move in cells, so that LINEAR has f = y + t step - base, SPLINE f = y + t
                              step - base in [-1/2, 1/2] about */
    double phi[27], dphi[27];
    double most;           /* largest |phi| + |dphi| */
} fsi__drift;

static int fsi__drift_read(fsi__drift *d, const fsi_field_reader *field)
{
    int count[3], k, n;
    for (k = 0; k < 3; k++) count[k] = k < d->dim ? d->width : 1;
    n = count[0] * count[1] * count[2];
    for (k = 0; k < 27; k++) d->phi[k] = d->dphi[k] = 0;
    field->read(field->user, d->base, count, d->phi, d->dphi);
    d->most = 0;
    for (k = 0; k < n; k++) {
        const double a = fabs(d->phi[k]) + fabs(d->dphi[k]);
        if (!(a <= 1e150)) return 0;
        d->most = a > d->most ? a : d->most;
    }
    return 1;
}

/* d(t) for t from `from` to `to`, one axis after the other; returns a bound of its rounding error. */
static double fsi__drift_polynomial(const fsi__drift *d, double from, double to, fsi__bernstein *out)
{
    fsi__bernstein p[27], w[3];
    double error = 1, off = 0;
    int axis, i, j, n = d->dim == 3 ? d->width * d->width * d->width : d->width * d->width;

    /* The corner values, linear in time. */
    for (i = 0; i < n; i++) {
        p[i].degree = 1;
        p[i].c[0] = d->phi[i] + from * d->dphi[i];
        p[i].c[1] = d->phi[i] + to * d->dphi[i];
    }

    /* Their products with the weights of each axis. */
    for (axis = 0; axis < d->dim; axis++) {
        const double f0 = d->y[axis] - d->base[axis] + from * d->step[axis],
            f1 = d->y[axis] - d->base[axis] + to * d->step[axis];
        error *= fsi__bernstein_weights(w, d->width, f0, f1);
        off += fabs(d->y[axis]) + fabs(d->step[axis]);
        n /= d->width;
        for (j = 0; j < n; j++) {
            fsi__bernstein sum;
            memset(&sum, 0, sizeof sum);
            for (i = 0; i < d->width; i++) fsi__bernstein_add_product(&sum, &w[i], &p[j * d->width + i], 1);
            p[j] = sum;
        }
    }
    fsi__bernstein_finish(&p[0]);
    *out = p[0];
    return 2.3e-16 * (128 + 4 * off) * error * d->most;
}

/* SPLINE: the time at which the sample leaves its cell, and through which axis. */
static double fsi__drift_leave(const fsi__drift *d, int *axis)
{
    double first = 1;
    int k;
    *axis = -1;
    for (k = 0; k < d->dim && d->width == 3; k++) {
        const double border = d->base[k] + (d->step[k] > 0 ? 0.5 : -0.5), t = (border - d->y[k]) / d->step[k];
        if (d->step[k] != 0 && t < first) {
            first = t;
            *axis = k;
        }
    }
    return first;
}

/* One stencil, from time `from` to `to`; returns the time that is reached. *g: the distance that must be kept, found at
   the start of the sweep (*g < 0). Where the hull of the whole interval gives no progress, as LINEAR is steep far from
   its cell, the first half is taken, and so on. */
static double fsi__drift_advance(const fsi__drift *d, double from, double to, double keep, double *g, double *enough)
{
    fsi__bernstein p;
    double error = fsi__drift_polynomial(d, from, to, &p), u, next, end = to;
    int turn;

    /* The distance that is to be kept. */
    if (*g < 0) {
        if (!(p.c[0] > 0)) return from;
        *g = keep * (p.c[0] + error);
        *enough = 1.01 * *g;
    }

    /* The safe time of the hull; the rest of the polynomial is searched from there. */
    for (turn = 0; turn < 128; turn++) {
        if (!(p.c[0] - error > *g)) return from;
        u = fsi__bernstein_reach(&p, *g + error);
        if (u > 1) {
            if (end >= to) return to;
            from = end;
            end = to;
            error = fsi__drift_polynomial(d, from, to, &p);
            continue;
        }

        /* Cut the polynomial there; where steps are short, halve its interval as well. */
        next = from + u * (1 - 1e-15) * (end - from);
        if (!(next > from)) return from;
        from = next;
        fsi__bernstein_cut(&p, u * (1 - 1e-15));
        if (p.c[0] <= *enough + error) return from;
        if (u < 0.25) {
            end = from + 0.5 * (end - from);
            fsi__bernstein_halve(&p);
        }
    }
    return from;
}

static double fsi__drift_run(fsi__drift *d, const fsi_field_reader *field, double keep)
{
    double t = 0, g = -1, enough = 0;
    int stencils, axis;
    for (stencils = 0; stencils < 4096; stencils++) {
        double to = fsi__drift_leave(d, &axis), reached;
        if (!fsi__drift_read(d, field)) return t;
        to = to < t ? t : to;
        if (to > t || g < 0) {
            reached = fsi__drift_advance(d, t, to, keep, &g, &enough);
            if (g < 0 || reached < to) return reached;
        }
        t = to;
        if (axis < 0) return t;
        d->base[axis] += d->step[axis] > 0 ? 1 : -1;
    }
    return t;
}

FSI_API double fsi_stencil_ccd(fsi_metric metric, int dim, double dx, const double *x, const double *move,
    const fsi_field_reader *field, const fsi_stencil *frozen, double keep)
{
    fsi__drift d;
    fsi_stencil s;
    int k;
    if (!fsi__is_metric(metric, dim, x, dx) || !fsi__is_metric(metric, dim, move, dx) || !field || !field->read
        || !(keep > 0 && keep < 1)) return 0;
    s = fsi_stencil_at(metric, dim, x, dx, frozen);
    memset(&d, 0, sizeof d);
    d.dim = dim;
    d.width = s.width;
    for (k = 0; k < dim; k++) {
        d.base[k] = s.base[k];
        d.y[k] = x[k] / dx - (s.width == 2 ? 0.5 : 1.5);
        d.step[k] = move[k] / dx;
    }
    return fsi__drift_run(&d, field, keep);
}

/* ---- >>friction implementation ---------------------------------------------------------------------------------- */

FSI_API void fsi_friction_lag(fsi_friction *f, fsi_pair kind, const fsi_distance *at, double force)
{
    fsi__d3 axis[2];
    int k;
    if (!f) return;
    memset(f, 0, sizeof *f);
    f->kind = kind;
    if (!at || !fsi__is_pair(kind) || !(at->d > 0) || !(force > 0 && force <= FSI__HUGE)) return;
    f->force = force;
    for (k = 0; k < 4; k++) f->weight[k] = at->weight[k];
    fsi__frame_tangents(fsi__d3_at(at->normal), axis);
    for (k = 0; k < 2; k++) fsi__d3_put(f->tangent[k], axis[k]);
}

/* Tangential slip u from x0 to x. */
static void fsi__friction_slip(const fsi_friction *f, const double *x, const double *x0, double *u)
{
    int i, k, p;
    u[0] = u[1] = 0;
    for (i = 0; i < fsi_pair_points(f->kind); i++) for (k = 0; k < 2; k++) for (p = 0; p < 3; p++) {
        u[k] += f->tangent[k][p] * f->weight[i] * (x[3 * i + p] - x0[3 * i + p]);
    }
}

/* With y = |u|: dD/du = force f1/y u, f1(y) = f0'(y) = 2 y/e - y^2/e^2 or 1; d2D/du2 = force (f1/y I + (f1' - f1/y) u
   u^T/y^2), whose eigenvalues f1/y and f1' are >= 0. push = f1/y, bend = (f1' - f1/y)/y^2. As f0 is concave in y^2, D
   is nowhere above the parabola force f1/(2 y) |u|^2 + const that touches it, bend = 0. With it Newton's method never
   overshoots, but approaches sliding contacts slowly; eigenvalues of at least push / 2
   are fastest in piles (docs/shell.md 5). */
static void fsi__friction_law(double y, double slip, fsi_hessian which, double *push, double *bend)
{
    *push = y < slip ? (2 - y / slip) / slip : 1 / y;
    *bend = y < slip ? (y > 0 ? -1 / (slip * slip * y) : 0) : -1 / (y * y * y);
    if (which == FSI_HESSIAN_PROJECTED && *bend * y * y < -0.5 * *push) *bend = -0.5 * *push / (y * y);
}

/* To the points: (w_i w_j) T . T^T. */
FSI_API double fsi_friction_energy(const fsi_friction *f, const double *x, const double *x0, double slip,
    double *gradient, double *hessian, fsi_hessian which)
{
    const int points = f && fsi__is_pair(f->kind) ? fsi_pair_points(f->kind) : 0, n = 3 * points;
    double u[2], y, push, bend, b[3][3];
    int i, j, p, q;

    /* What bad input returns. */
    for (i = 0; gradient && i < n; i++) gradient[i] = 0;
    for (i = 0; hessian && i < n * n; i++) hessian[i] = 0;
    if (!points || !x || !x0 || !(slip > 0)) return 0;
    fsi__friction_slip(f, x, x0, u);
    y = sqrt(u[0] * u[0] + u[1] * u[1]);
    if (!(y <= FSI__HUGE) || !(f->force > 0)) return 0;

    /* D' = force push u, D'' = force (push + bend u u^T), in world axes. */
    fsi__friction_law(y, slip, which, &push, &bend);
    for (i = 0; gradient && i < n; i++)
        gradient[i] = f->force * push * f->weight[i / 3] * (u[0] * f->tangent[0][i % 3] + u[1] * f->tangent[1][i % 3]);
    for (p = 0; p < 3; p++) for (q = 0; q < 3; q++) {
        const double along_p = u[0] * f->tangent[0][p] + u[1] * f->tangent[1][p],
            along_q = u[0] * f->tangent[0][q] + u[1] * f->tangent[1][q];
        b[p][q] = f->force * (push * (f->tangent[0][p] * f->tangent[0][q] + f->tangent[1][p] * f->tangent[1][q])
            + bend * along_p * along_q);
    }

    /* To the points. */
    for (i = 0; hessian && i < points; i++) for (j = 0; j < points; j++)
        for (p = 0; p < 3; p++) for (q = 0; q < 3; q++)
            hessian[(3 * i + p) * n + 3 * j + q] = f->weight[i] * f->weight[j] * b[p][q];
    return f->force * (y < slip ? y * y / slip - y * y * y / (3 * slip * slip) + slip / 3 : y);
}

FSI_API double fsi_friction_error(const fsi_friction *f, const double *before, const double *x, const double *x0,
    double slip, fsi_hessian which)
{
    double u[2], v[2], way[2], model[2], size, y, push, bend;
    int k;
    if (!f || !fsi__is_pair(f->kind) || !before || !x || !x0 || !(slip > 0)) return 0;
    fsi__friction_slip(f, before, x0, u);
    fsi__friction_slip(f, x, x0, v);
    fsi__friction_law(sqrt(u[0] * u[0] + u[1] * u[1]), slip, which, &push, &bend);
    for (k = 0; k < 2; k++) way[k] = v[k] - u[k];
    for (k = 0; k < 2; k++) model[k] = push * v[k] + bend * (u[0] * way[0] + u[1] * way[1]) * u[k];
    size = sqrt(model[0] * model[0] + model[1] * model[1]);
    y = sqrt(v[0] * v[0] + v[1] * v[1]);
    if (!(size <= FSI__HUGE && y <= FSI__HUGE)) return 0;
    if (y < slip) return size > 1 ? size - 1 : 0;
    for (k = 0; k < 2; k++) model[k] -= v[k] / y;
    return sqrt(model[0] * model[0] + model[1] * model[1]);
}

/* ---- >>boxes implementation ---------------------------------------------------------------------------------------

   The boxes are put in the order of a space-filling curve, and every eight neighbours form a pack; every eight packs
   again one, up to the root. So the tree needs no pointers, and a box is tested against eight at once. Packs hold
   floats, rounded outward, relative to the middle of all boxes; they are a filter: pairs that pass are compared in
   double. */
#define FSI__PACK 8
typedef struct fsi__pack { float lo[3][FSI__PACK], hi[3][FSI__PACK]; } fsi__pack;

enum { FSI__BOX_LEVELS = 12 };
typedef struct fsi__boxes {
    fsi__arena memory;
    double *box, *at;       /* 6 a box: as given; in the order of the tree */
    int *order, *spare;     /* which box stands at each place */
    uint64_t *key, *spare_key;
    fsi__pack *pack;        /* level 0 (of boxes) first */
    int first[FSI__BOX_LEVELS], packs[FSI__BOX_LEVELS], levels;
    double origin[3];
    double spread, boxes;   /* sum of the extents of packs, of boxes; when the tree was made */
    int planted;
} fsi__boxes;

#define FSI__FLOAT_MAX 3.402823466e38f

/* The float next below (up = 0) or above x; beyond the largest: that one. Monotonic, so what overlaps in double does so
   in float. */
FSI_FN float fsi__outward(double x, int up)
{
    float f = x > 3.4028234e38 ? FSI__FLOAT_MAX : x < -3.4028234e38 ? -FSI__FLOAT_MAX : (float)x,
        step = (f < 0 ? -f : f) * 2.4e-7f + 1e-37f;
    if (step > 1e31f) return f < 0 ? (up ? f * 0.999999f : -FSI__FLOAT_MAX) : (up ? FSI__FLOAT_MAX : f * 0.999999f);
    return up ? f + step : f - step;
}

/* Empty places overlap nothing, not even boxes that reach to the largest float. */
static void fsi__pack_clear(fsi__pack *p)
{
    const uint32_t infinite = 0x7f800000u;
    float all;
    int k, i;
    memcpy(&all, &infinite, sizeof all);
    for (k = 0; k < 3; k++) for (i = 0; i < FSI__PACK; i++) {
        p->lo[k][i] = all;
        p->hi[k][i] = -all;
    }
}

static void fsi__boxes_lay(fsi__boxes *im, fsi__arena *m, int count)
{
    const size_t n = (size_t)count;
    int total = 0, l = 0, packs = count;
    do {
        packs = (packs + FSI__PACK - 1) / FSI__PACK;
        im->first[l] = total;
        im->packs[l++] = packs;
        total += packs;
    } while (packs > 1);
    im->levels = l;
    im->box = (double *)fsi__take(m, 6 * n, sizeof(double));
    im->at = (double *)fsi__take(m, 6 * n, sizeof(double));
    im->order = (int *)fsi__take(m, n, sizeof(int));
    im->spare = (int *)fsi__take(m, n, sizeof(int));
    im->key = (uint64_t *)fsi__take(m, n, sizeof(uint64_t));
    im->spare_key = (uint64_t *)fsi__take(m, n, sizeof(uint64_t));
    im->pack = (fsi__pack *)fsi__take(m, (size_t)total, sizeof(fsi__pack));
}

FSI_API fsi_status fsi_boxes_create(fsi_boxes **out, fsi_context *context, int count)
{
    const char *name = "fsi_boxes_create";
    fsi__arena measure = { NULL, 0, 0 };
    fsi_boxes *b;
    fsi__boxes *im;

    /* Memory for boxes and tree, in one block. */
    if (out) *out = NULL;
    if (!fsi__is_context(context)) return FSI_ERROR_COOKIE;
    if (!out || count < 0)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, name, -1, count, "out is NULL or count %d is negative", count);
    if (count > 1 << 28) return fsi__fail(context, FSI_ERROR_LIMIT, name, -1, count, "%d boxes are too many", count);
    b = (fsi_boxes *)fsi__alloc(context, 1, sizeof *b);
    im = (fsi__boxes *)fsi__alloc(context, 1, sizeof *im);
    if (im) fsi__boxes_lay(im, &measure, count);
    if (!b || !im || !fsi__arena_reserve(context, &im->memory, measure.used)) {
        fsi__free(context, b, 1, sizeof *b);
        fsi__free(context, im, 1, sizeof *im);
        return fsi__fail(context, FSI_ERROR_MEMORY, name, -1, count, "no memory for %d boxes", count);
    }
    fsi__boxes_lay(im, &im->memory, count);

    /* Nothing can fail now. */
    b->cookie = FSI__COOKIE('b', fsi_boxes);
    b->context = context;
    b->count = count;
    b->bytes = im->memory.size + sizeof *b + sizeof *im;
    b->impl = im;
    *out = b;
    return FSI_OK;
}

FSI_API void fsi_boxes_destroy(fsi_boxes *b)
{
    fsi_context *context;
    if (!b || b->cookie != FSI__COOKIE('b', fsi_boxes)) return;
    context = b->context;
    fsi__arena_free(context, &((fsi__boxes *)b->impl)->memory);
    fsi__free(context, b->impl, 1, sizeof(fsi__boxes));
    b->cookie = 0;
    fsi__free(context, b, 1, sizeof *b);
}

/* Every third bit of the result is one of the last 21 of v. */
static uint64_t fsi__spread_bits(uint64_t v)
{
    v &= 0x1fffff;
    v = (v | v << 32) & 0x1f00000000ffff;
    v = (v | v << 16) & 0x1f0000ff0000ff;
    v = (v | v << 8) & 0x100f00f00f00f00f;
    v = (v | v << 4) & 0x10c30c30c30c30c3;
    return (v | v << 2) & 0x1249249249249249;
}

/* Sorts key and order together: digits of 11 bits, those in which all keys agree are left out. */
static void fsi__boxes_sort(fsi__boxes *im, int n)
{
    int start[2048], shift, i, digit;
    for (shift = 0; shift < 63; shift += 11) {
        int sum = 0, *o = im->order;
        uint64_t *k = im->key;

        /* Counts of the digit; where each digit begins. */
        memset(start, 0, sizeof start);
        for (i = 0; i < n; i++) start[k[i] >> shift & 2047]++;
        if (start[k[0] >> shift & 2047] == n) continue;
        for (digit = 0; digit < 2048; digit++) {
            const int here = start[digit];
            start[digit] = sum;
            sum += here;
        }

        /* A stable pass from one array to the other. */
        for (i = 0; i < n; i++) {
            const int to = start[k[i] >> shift & 2047]++;
            im->spare_key[to] = k[i];
            im->spare[to] = o[i];
        }
        im->key = im->spare_key;
        im->spare_key = k;
        im->order = im->spare;
        im->spare = o;
    }
}

/* A new order, by the Morton codes of the boxes' middles. */
static void fsi__boxes_plant(fsi__boxes *im, int n)
{
    double lo[3], hi[3], scale[3];
    int i, k;

    /* The box of the middles. */
    for (k = 0; k < 3; k++) lo[k] = FSI__HUGE, hi[k] = -FSI__HUGE;
    for (i = 0; i < n; i++) for (k = 0; k < 3; k++) {
        const double m = 0.5 * im->box[6 * i + k] + 0.5 * im->box[6 * i + 3 + k];
        lo[k] = m < lo[k] ? m : lo[k];
        hi[k] = m > hi[k] ? m : hi[k];
    }
    for (k = 0; k < 3; k++) {
        im->origin[k] = n > 0 ? 0.5 * lo[k] + 0.5 * hi[k] : 0;
        scale[k] = hi[k] * 0.5 - lo[k] * 0.5 > 1e-290 ? 1048575.9 / (hi[k] * 0.5 - lo[k] * 0.5) : 0;
    }

    /* Morton codes of 20 bits an axis. */
    for (i = 0; i < n; i++) {
        uint64_t key = 0;
        for (k = 0; k < 3; k++) {
            const double m = 0.5 * im->box[6 * i + k] + 0.5 * im->box[6 * i + 3 + k];
            key |= fsi__spread_bits((uint64_t)((0.5 * m - 0.5 * lo[k]) * scale[k] * 2)) << k;
        }
        im->key[i] = key;
        im->order[i] = i;
    }
    if (n > 0) fsi__boxes_sort(im, n);
    im->planted = 1;
}

enum { FSI__BOX_GRAIN = 256, FSI__BOX_NS = 70 }; /* packs a task; nanoseconds a pack at least: fsi__parallel_work */

static void fsi__boxes_fit_task(void *arg, int chunk, int begin, int end)
{
    const fsi_boxes *b = (const fsi_boxes *)arg;
    fsi__boxes *im = (fsi__boxes *)b->impl;
    int p, i, k;
    (void)chunk;
    for (p = begin; p < end; p++) {
        fsi__pack *pack = &im->pack[p];
        fsi__pack_clear(pack);
        for (i = 0; i < FSI__PACK && p * FSI__PACK + i < b->count; i++) {
            double *at = im->at + 6 * (size_t)(p * FSI__PACK + i);
            memcpy(at, im->box + 6 * (size_t)im->order[p * FSI__PACK + i], 6 * sizeof(double));
            for (k = 0; k < 3; k++) {
                pack->lo[k][i] = fsi__outward(at[k] - im->origin[k], 0);
                pack->hi[k][i] = fsi__outward(at[k + 3] - im->origin[k], 1);
            }
        }
    }
}

/* Levels above the first, and how loose the tree is: the extents of packs and boxes, summed in one order. */
static void fsi__boxes_fit_up(fsi__boxes *im, double *spread, double *boxes)
{
    int l, p, i, k;
    *spread = *boxes = 0;
    for (l = 0; l < im->levels; l++) for (p = 0; p < im->packs[l]; p++) {
        const fsi__pack *from = &im->pack[im->first[l] + p];
        fsi__pack *to = l + 1 < im->levels ? &im->pack[im->first[l + 1] + p / FSI__PACK] : NULL;
        if (to && p % FSI__PACK == 0) fsi__pack_clear(to);
        for (k = 0; k < 3; k++) {
            float lo = FSI__FLOAT_MAX, hi = -FSI__FLOAT_MAX;
            for (i = 0; i < FSI__PACK; i++) {
                lo = from->lo[k][i] < lo ? from->lo[k][i] : lo;
                hi = from->hi[k][i] > hi ? from->hi[k][i] : hi;
                if (l == 0 && from->hi[k][i] >= from->lo[k][i])
                    *boxes += (double)from->hi[k][i] - (double)from->lo[k][i];
            }
            if (l == 0 && hi >= lo) *spread += (double)hi - (double)lo;
            if (!to) continue;
            to->lo[k][p % FSI__PACK] = lo;
            to->hi[k][p % FSI__PACK] = hi;
        }
    }
}

static void fsi__boxes_fit(fsi_boxes *b, double *spread, double *boxes)
{
    fsi__boxes *im = (fsi__boxes *)b->impl;
    const int packs = b->count ? im->packs[0] : 0;
    fsi__parallel_work(b->context, packs, FSI__BOX_GRAIN, (double)FSI__BOX_NS * packs, fsi__boxes_fit_task, b);
    fsi__boxes_fit_up(im, spread, boxes);
}

static fsi_status fsi__boxes_check(const fsi_boxes *b, const double *box)
{
    const char *name = "fsi_boxes_update";
    int i, k;
    if (!box && b->count) return fsi__fail(b->context, FSI_ERROR_ARGUMENT, name, -1, 0, "box is NULL");
    for (i = 0; i < b->count; i++) for (k = 0; k < 3; k++) {
        const double lo = box[6 * (size_t)i + (size_t)k], hi = box[6 * (size_t)i + (size_t)k + 3];
        if (!fsi_is_finite(lo) || !fsi_is_finite(hi))
            return fsi__fail(b->context, FSI_ERROR_NAN, name, i, fsi_is_finite(lo) ? hi : lo, "box %d is not finite",
                i);
        if (lo > hi) return fsi__fail(b->context, FSI_ERROR_ARGUMENT, name, i, lo, "box %d is turned inside out", i);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_boxes_update(fsi_boxes *b, const double *box)
{
    fsi__boxes *im;
    fsi_status status;
    double spread, boxes;
    if (!b || b->cookie != FSI__COOKIE('b', fsi_boxes)) return FSI_ERROR_COOKIE;
    status = fsi__boxes_check(b, box);
    if (status != FSI_OK || b->count == 0) return status;
    im = (fsi__boxes *)b->impl;
    memcpy(im->box, box, sizeof(double) * 6 * (size_t)b->count);
    if (im->planted) {
        fsi__boxes_fit(b, &spread, &boxes);
        /* packs have not grown much beside their boxes */
        if (!(spread * im->boxes > 1.3 * im->spread * boxes)) return FSI_OK;
    }
    fsi__boxes_plant(im, b->count);
    fsi__boxes_fit(b, &im->spread, &im->boxes);
    b->rebuilds++;
    return FSI_OK;
}

/* ---- >>pairs implementation ---------------------------------------------------------------------------------------

   A task takes some packs of a and looks each up in the tree of b. Its pairs go to a stretch of memory of its own; when
   one is too short all are laid out anew with the lengths needed, and the search is repeated. Then a counting sort by
   i, and each row by j. */
enum { FSI__HUNT_GRAIN = 16 }; /* packs a task */
/* Nanoseconds at least: of the hunt, for a pack that meets nothing and for a pair; of the sort, for a row and for a
   pair in it. fsi__parallel_work */
enum { FSI__HUNT_NS_PACK = 60, FSI__HUNT_NS_PAIR = 40, FSI__PAIRS_NS_ROW = 2, FSI__PAIRS_NS_PAIR = 2 };
typedef struct fsi__pairs {
    int *found, *index;    /* 2 * capacity */
    int capacity;
    int *start;            /* of each i; rows + 1 */
    int rows;
    int *need, *offset;    /* of each task; chunks + 1 */
    int chunks;
    int laid;              /* tasks for which offset was made */
} fsi__pairs;

typedef struct fsi__hunt {
    const fsi__boxes *a, *b;
    int count_a, count_b;
    int (*accept)(void *user, int i, int j);
    void *user;
    fsi__pairs *out;
} fsi__hunt;

FSI_API fsi_status fsi_pairs_create(fsi_pairs **out, fsi_context *context)
{
    fsi_pairs *p;
    fsi__pairs *im;
    if (out) *out = NULL;
    if (!fsi__is_context(context)) return FSI_ERROR_COOKIE;
    if (!out) return fsi__fail(context, FSI_ERROR_ARGUMENT, "fsi_pairs_create", -1, 0, "out is NULL");
    p = (fsi_pairs *)fsi__alloc(context, 1, sizeof *p);
    im = (fsi__pairs *)fsi__alloc(context, 1, sizeof *im);
    if (!p || !im) {
        fsi__free(context, p, 1, sizeof *p);
        fsi__free(context, im, 1, sizeof *im);
        return fsi__fail(context, FSI_ERROR_MEMORY, "fsi_pairs_create", -1, 0, "no memory");
    }
    p->cookie = FSI__COOKIE('p', fsi_pairs);
    p->context = context;
    p->impl = im;
    p->bytes = sizeof *p + sizeof *im;
    *out = p;
    return FSI_OK;
}

static void fsi__pairs_columns(fsi__pairs *im, fsi__column *c)
{
    c[0].array = (void **)&im->found;
    c[1].array = (void **)&im->index;
    c[2].array = (void **)&im->start;
    c[3].array = (void **)&im->need;
    c[4].array = (void **)&im->offset;
    c[0].size = c[1].size = 2 * sizeof(int);
    c[2].size = c[3].size = c[4].size = sizeof(int);
}

FSI_API void fsi_pairs_destroy(fsi_pairs *p)
{
    fsi_context *context;
    fsi__pairs *im;
    fsi__column c[5];
    if (!p || p->cookie != FSI__COOKIE('p', fsi_pairs)) return;
    context = p->context;
    im = (fsi__pairs *)p->impl;
    fsi__pairs_columns(im, c);
    fsi__free_columns(context, c, 2, im->capacity);
    fsi__free_columns(context, c + 2, 1, im->rows);
    fsi__free_columns(context, c + 3, 2, im->chunks);
    fsi__free(context, im, 1, sizeof *im);
    p->cookie = 0;
    fsi__free(context, p, 1, sizeof *p);
}

/* Which of a pack's eight overlap the box: bit i. */
#if defined(FSI__PACK_SSE)
FSI_FN unsigned fsi__pack_test(const fsi__pack *p, const float *lo, const float *hi)
{
    unsigned mask = 0;
    int half, k;
    for (half = 0; half < 2; half++) {
        __m128 in = _mm_and_ps(_mm_cmple_ps(_mm_loadu_ps(p->lo[0] + 4 * half), _mm_set1_ps(hi[0])),
            _mm_cmpge_ps(_mm_loadu_ps(p->hi[0] + 4 * half), _mm_set1_ps(lo[0])));
        for (k = 1; k < 3; k++) {
            in = _mm_and_ps(in, _mm_cmple_ps(_mm_loadu_ps(p->lo[k] + 4 * half), _mm_set1_ps(hi[k])));
            in = _mm_and_ps(in, _mm_cmpge_ps(_mm_loadu_ps(p->hi[k] + 4 * half), _mm_set1_ps(lo[k])));
        }
        mask |= (unsigned)_mm_movemask_ps(in) << 4 * half;
    }
    return mask;
}
#else
FSI_FN unsigned fsi__pack_test(const fsi__pack *p, const float *lo, const float *hi)
{
    int hit[FSI__PACK], i;
    unsigned mask = 0;
    for (i = 0; i < FSI__PACK; i++) {
        hit[i] =
            (p->lo[0][i] <= hi[0]) & (p->hi[0][i] >= lo[0]) & (p->lo[1][i] <= hi[1]) & (p->hi[1][i] >= lo[1])
            & (p->lo[2][i] <= hi[2]) & (p->hi[2][i] >= lo[2]);
    }
    for (i = 0; i < FSI__PACK; i++) mask |= (unsigned)hit[i] << i;
    return mask;
}
#endif

/* Eight boxes of a, as the tree of b sees them. */
typedef struct fsi__prey {
    fsi__pack pack; float lo[FSI__PACK][3], hi[FSI__PACK][3], all_lo[3], all_hi[3]; int first, count;
} fsi__prey;

static void fsi__prey_of(const fsi__hunt *h, int pack, fsi__prey *q)
{
    int i, k;
    fsi__pack_clear(&q->pack);
    q->first = pack * FSI__PACK;
    q->count = h->count_a - q->first < FSI__PACK ? h->count_a - q->first : FSI__PACK;
    for (k = 0; k < 3; k++) {
        q->all_lo[k] = FSI__FLOAT_MAX;
        q->all_hi[k] = -FSI__FLOAT_MAX;
        for (i = 0; i < q->count; i++) {
            const double *at = h->a->at + 6 * (size_t)(q->first + i);
            q->pack.lo[k][i] = q->lo[i][k] = fsi__outward(at[k] - h->b->origin[k], 0);
            q->pack.hi[k][i] = q->hi[i][k] = fsi__outward(at[k + 3] - h->b->origin[k], 1);
            q->all_lo[k] = q->lo[i][k] < q->all_lo[k] ? q->lo[i][k] : q->all_lo[k];
            q->all_hi[k] = q->hi[i][k] > q->all_hi[k] ? q->hi[i][k] : q->all_hi[k];
        }
    }
}

FSI_FN int fsi__boxes_touch(const double *a, const double *b)
{
    return (a[0] <= b[3]) & (b[0] <= a[3]) & (a[1] <= b[4]) & (b[1] <= a[4]) & (a[2] <= b[5]) & (b[2] <= a[5]);
}

/* The number of the lowest bit of eight: 2^k modulo 11 tells k. */
FSI_FN int fsi__lowest_bit(unsigned mask)
{
    static const unsigned char bit[11] = { 0, 0, 1, 0, 2, 4, 0, 7, 3, 6, 5 };
    return bit[(mask & (0 - mask)) % 11];
}

/* Which boxes of q overlap the box around a pack of b: its place in the pack above. */
static unsigned fsi__hunt_some(const fsi__hunt *h, const fsi__prey *q, int pack)
{
    const fsi__pack *above = h->b->levels > 1 ? &h->b->pack[h->b->first[1] + pack / FSI__PACK] : NULL;
    float lo[3], hi[3];
    int k;
    if (!above) return (1u << q->count) - 1;
    for (k = 0; k < 3; k++) {
        lo[k] = above->lo[k][pack % FSI__PACK];
        hi[k] = above->hi[k][pack % FSI__PACK];
    }
    return fsi__pack_test(&q->pack, lo, hi);
}

/* The boxes of q against one pack of boxes of b; n: pairs so far, of which `room` fit. */
static int fsi__hunt_pack(const fsi__hunt *h, const fsi__prey *q, int pack, int *out, int room, int n)
{
    const int self = h->a == h->b;
    unsigned some = fsi__hunt_some(h, q, pack), mask;
    for (; some; some &= some - 1) {
        const int i = fsi__lowest_bit(some), place = q->first + i;
        for (mask = fsi__pack_test(&h->b->pack[pack], q->lo[i], q->hi[i]); mask; mask &= mask - 1) {
            const int at = pack * FSI__PACK + fsi__lowest_bit(mask);
            int x, y;
            if ((self && at <= place) || !fsi__boxes_touch(h->a->at + 6 * (size_t)place, h->b->at + 6 * (size_t)at))
                continue;
            x = h->a->order[place];
            y = h->b->order[at];
            if (self && x > y) { const int t = x; x = y; y = t; }
            if (h->accept && !h->accept(h->user, x, y)) continue;
            if (n < room) {
                out[2 * (size_t)n] = x;
                out[2 * (size_t)n + 1] = y;
            }
            n++;
        }
    }
    return n;
}

/* Down the tree of b, packs that lie wholly before q left out when a is b. A stack entry is a pack's number on its
   level. */
static int fsi__hunt_tree(const fsi__hunt *h, const fsi__prey *q, int *out, int room, int n)
{
    int stack[FSI__BOX_LEVELS * FSI__PACK], level[FSI__BOX_LEVELS * FSI__PACK], top = 0;
    const int self = h->a == h->b;
    stack[0] = 0;
    level[top++] = h->b->levels - 1;
    while (top > 0) {
        const int p = stack[--top], l = level[top];
        unsigned mask;
        int child = p * FSI__PACK;
        if (l == 0) {
            n = fsi__hunt_pack(h, q, p, out, room, n);
            continue;
        }
        for (mask = fsi__pack_test(&h->b->pack[h->b->first[l] + p], q->all_lo, q->all_hi); mask; mask >>= 1, child++) {
            if (!(mask & 1) || (self && (((int64_t)child + 1) << 3 * l) <= q->first)) continue;
            stack[top] = child;
            level[top++] = l - 1;
        }
        if (n > 1 << 29) return n;
    }
    return n;
}

static void fsi__hunt_task(void *arg, int chunk, int begin, int end)
{
    const fsi__hunt *h = (const fsi__hunt *)arg;
    const int from = h->out->offset[chunk], room = h->out->offset[chunk + 1] - from;
    int *found = room > 0 ? h->out->found + 2 * (size_t)from : NULL; /* at first there is no array */
    int p, n = 0;
    for (p = begin; p < end && n <= 1 << 29; p++) {
        fsi__prey q;
        fsi__prey_of(h, p, &q);
        n = fsi__hunt_tree(h, &q, found, room, n);
    }
    h->out->need[chunk] = n;
}

static const char *const fsi__pairs_name = "fsi_pairs_find";

/* Room for each task: what it needs, and an equal part of the rest. */
static void fsi__pairs_lay(fsi__pairs *im, int chunks, int64_t total)
{
    const int share = (int)((im->capacity - total) / chunks);
    int c, at = 0;
    for (c = 0; c < chunks; c++) {
        im->offset[c] = at;
        at += im->need[c] + share;
    }
    im->offset[chunks] = at;
    im->laid = chunks;
}

static fsi_status fsi__pairs_hunt(fsi_pairs *p, fsi__hunt *h, int chunks)
{
    fsi__pairs *im = (fsi__pairs *)p->impl;
    fsi__column c[5];
    int round, k, short_of;
    fsi__pairs_columns(im, c);
    if (im->laid != chunks) {
        for (k = 0; k < chunks; k++) im->need[k] = 0;
        fsi__pairs_lay(im, chunks, 0);
    }

    /* A search with the room of the last one; where it is too small, a second search with enough. */
    for (round = 0; round < 3; round++) {
        int64_t total = 0;
        const int packs = h->a->packs[0]; /* and about as many pairs as last time */
        const double work = (double)FSI__HUNT_NS_PACK * packs + (double)FSI__HUNT_NS_PAIR * p->count;
        fsi__parallel_work(p->context, packs, FSI__HUNT_GRAIN, work, fsi__hunt_task, h);
        for (k = short_of = 0; k < chunks; k++) {
            total += im->need[k];
            short_of |= im->need[k] > im->offset[k + 1] - im->offset[k];
        }
        if (!short_of) return FSI_OK;
        if (total > 1 << 29)
            return fsi__fail(p->context, FSI_ERROR_LIMIT, fsi__pairs_name, -1, (double)total, "%g pairs are too many",
                (double)total);
        if (total > im->capacity) {
            int *index = im->index; /* the last result stays until this call has succeeded */
            FSI__TRY(fsi__room(p->context, c, 2, p->count, &im->capacity, (int)total, fsi__pairs_name));
            if (index != im->index) p->index = im->index;
        }
        fsi__pairs_lay(im, chunks, total);
    }
    return fsi__fail(p->context, FSI_ERROR_ARGUMENT, fsi__pairs_name, -1, 0,
        "accept does not say the same when it is asked again");
}

/* Each row by j: Shell's sort, of which short rows take the last pass only. */
static void fsi__pairs_sort_task(void *arg, int chunk, int begin, int end)
{
    const fsi__pairs *im = (const fsi__pairs *)arg;
    static const int gaps[10] = { 1, 4, 10, 23, 57, 132, 301, 701, 1577, 3548 };
    int i, k, a, b;
    (void)chunk;
    for (i = begin; i < end; i++) {
        const int first = im->start[i], n = im->start[i + 1] - first;
        int *row = n > 1 ? im->index + 2 * (size_t)first : NULL; /* of one there is nothing to sort */
        for (k = n > 32 ? 9 : 0; k >= 0; k--) for (a = gaps[k]; a < n; a++) {
            const int j = row[2 * a + 1];
            for (b = a; b >= gaps[k] && row[2 * (b - gaps[k]) + 1] > j; b -= gaps[k])
                row[2 * b + 1] = row[2 * (b - gaps[k]) + 1];
            row[2 * b + 1] = j;
        }
    }
}

static int fsi__pairs_sort(fsi_pairs *p, int rows, int chunks)
{
    fsi__pairs *im = (fsi__pairs *)p->impl;
    double work;
    int c, k, i, sum = 0;

    /* Counts by the first of each pair, and where each row begins. */
    for (i = 0; i <= rows; i++) im->start[i] = 0;
    for (c = 0; c < chunks; c++) for (k = 0; k < im->need[c]; k++)
        im->start[im->found[2 * (size_t)(im->offset[c] + k)]]++;
    for (i = 0; i < rows; i++) {
        const int here = im->start[i];
        im->start[i] = sum;
        sum += here;
    }
    im->start[rows] = sum;

    /* Pairs to their rows; each row is sorted by its own task. */
    for (c = 0; c < chunks; c++) for (k = 0; k < im->need[c]; k++) {
        const int *pair = im->found + 2 * (size_t)(im->offset[c] + k);
        int *to = im->index + 2 * (size_t)im->start[pair[0]]++;
        to[0] = pair[0];
        to[1] = pair[1];
    }
    for (i = rows; i > 0; i--) im->start[i] = im->start[i - 1];
    im->start[0] = 0;
    work = (double)FSI__PAIRS_NS_ROW * rows + (double)FSI__PAIRS_NS_PAIR * sum;
    fsi__parallel_work(p->context, rows, 4096, work, fsi__pairs_sort_task, im);
    return sum;
}

static fsi_status fsi__pairs_reserve(fsi_pairs *p, int rows, int chunks)
{
    fsi__pairs *im = (fsi__pairs *)p->impl;
    fsi__column c[5];
    fsi_status status;
    fsi__pairs_columns(im, c);
    status = fsi__grow(p->context, c + 2, 1, 0, &im->rows, rows + 1, fsi__pairs_name);
    if (status == FSI_OK) {
        if (chunks + 1 > im->chunks) im->laid = -1;
        status = fsi__grow(p->context, c + 3, 2, 0, &im->chunks, chunks + 1, fsi__pairs_name);
    }
    return status;
}

FSI_API fsi_status fsi_pairs_find(fsi_pairs *p, const fsi_boxes *a, const fsi_boxes *b,
    int (*accept)(void *user, int i, int j), void *user)
{
    fsi__hunt h;
    fsi__pairs *im;
    fsi_status status;
    int chunks;
    if (!p || p->cookie != FSI__COOKIE('p', fsi_pairs)) return FSI_ERROR_COOKIE;
    if (!a || !b) return fsi__fail(p->context, FSI_ERROR_ARGUMENT, fsi__pairs_name, -1, 0, "boxes is NULL");
    if (a->cookie != FSI__COOKIE('b', fsi_boxes) || b->cookie != FSI__COOKIE('b', fsi_boxes)) return FSI_ERROR_COOKIE;

    /* What the tasks read. */
    im = (fsi__pairs *)p->impl;
    h.a = (const fsi__boxes *)a->impl;
    h.b = (const fsi__boxes *)b->impl;
    h.count_a = a->count;
    h.count_b = b->count;
    h.accept = accept;
    h.user = user;
    h.out = im;
    if (a->count == 0 || b->count == 0) {
        p->count = 0;
        return FSI_OK;
    }
    if (!h.a->planted || !h.b->planted)
        return fsi__fail(p->context, FSI_ERROR_ARGUMENT, fsi__pairs_name, -1, 0,
            "boxes have no places yet: fsi_boxes_update comes first");

    /* The search; then the result in order. */
    chunks = fsi__chunks(h.a->packs[0], FSI__HUNT_GRAIN);
    status = fsi__pairs_reserve(p, a->count, chunks);
    if (status == FSI_OK) status = fsi__pairs_hunt(p, &h, chunks);
    p->bytes = sizeof *p + sizeof *im + (size_t)im->capacity * 4 * sizeof(int) + (size_t)im->rows * sizeof(int)
        + (size_t)im->chunks * 2 * sizeof(int);
    if (status != FSI_OK) return status;
    p->count = fsi__pairs_sort(p, a->count, chunks);
    p->index = im->index;
    return FSI_OK;
}

/* ---- >>crossing implementation -----------------------------------------------------------------------------------

   By signs of volumes, exact: where rounding could decide, all products are kept to the last bit and summed as an
   expansion, numbers that do not overlap (Dekker 1971; Knuth; Shewchuk 1997). */

static void fsi__two_sum(double a, double b, double *sum, double *rest)
{
    const double s = a + b, c = s - a;
    *rest = (a - (s - c)) + (b - c);
    *sum = s;
}

static void fsi__two_product(double a, double b, double *product, double *rest)
{
    const double k = 134217729.0, p = a * b, ca = k * a, cb = k * b, ah = ca - (ca - a), bh = cb - (cb - b),
        al = a - ah, bl = b - bh;
    *rest = al * bl - (((p - ah * bh) - al * bh) - ah * bl);
    *product = p;
}

typedef struct fsi__expansion { int count; double part[200]; } fsi__expansion;

static void fsi__expand(fsi__expansion *e, double x)
{
    int i, n = 0;
    for (i = 0; i < e->count; i++) {
        double rest;
        fsi__two_sum(x, e->part[i], &x, &rest);
        if (rest < 0 || rest > 0) e->part[n++] = rest;
    }
    if (n == 0 || x < 0 || x > 0) e->part[n++] = x; /* the last part has the sign of the sum */
    e->count = n;
}

/* Sign of det(a - d, b - d, c - d). */
static int fsi__exact_side(const double *const p[3], const double *d)
{
    static const int order[6][3] = { { 0, 1, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 0, 2, 1 }, { 1, 0, 2 }, { 2, 1, 0 } };
    double v[3][3][2];
    fsi__expansion e;
    int i, j, k;
    e.count = 0;
    for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) fsi__two_sum(p[i][j], -d[j], &v[i][j][0], &v[i][j][1]);
    for (k = 0; k < 6; k++) for (i = 0; i < 8; i++) {
        const double a = v[0][order[k][0]][i & 1], b = v[1][order[k][1]][i >> 1 & 1],
            c = k < 3 ? v[2][order[k][2]][i >> 2] : -v[2][order[k][2]][i >> 2];
        double ab[2], t[2];
        fsi__two_product(a, b, &ab[0], &ab[1]);
        for (j = 0; j < 2; j++) {
            fsi__two_product(ab[j], c, &t[0], &t[1]);
            fsi__expand(&e, t[1]);
            fsi__expand(&e, t[0]);
        }
    }
    return e.part[e.count - 1] > 0 ? 1 : e.part[e.count - 1] < 0 ? -1 : 0;
}

static int fsi__side_of(const double *a, const double *b, const double *c, const double *d)
{
    const double *const p[3] = { a, b, c };
    double u[3], v[3], w[3], n[3], det, size = 0;
    int i;
    for (i = 0; i < 3; i++) {
        u[i] = a[i] - d[i];
        v[i] = b[i] - d[i];
        w[i] = c[i] - d[i];
    }
    for (i = 0; i < 3; i++) n[i] = v[(i + 1) % 3] * w[(i + 2) % 3] - v[(i + 2) % 3] * w[(i + 1) % 3];
    det = u[0] * n[0] + u[1] * n[1] + u[2] * n[2];
    for (i = 0; i < 3; i++)
        size += fabs(u[i]) * (fabs(v[(i + 1) % 3] * w[(i + 2) % 3]) + fabs(v[(i + 2) % 3] * w[(i + 1) % 3]));
    if (det > 1e-14 * size) return 1;
    if (det < -1e-14 * size) return -1;
    return fsi__exact_side(p, d);
}

FSI_API int fsi_edge_crosses_triangle(const double *x)
{
    const double *p = x, *q = x + 3, *a = x + 6, *b = x + 9, *c = x + 12;
    int above, below, s, t, u;
    if (!x) return 0;
    for (s = 0; s < 15; s++) if (!fsi_is_finite(x[s])) return 0;
    above = fsi__side_of(a, b, c, p);
    below = fsi__side_of(a, b, c, q);
    if (above * below > 0 || (above == 0 && below == 0)) return 0;
    s = fsi__side_of(p, q, a, b);
    t = fsi__side_of(p, q, b, c);
    u = fsi__side_of(p, q, c, a);
    return (s >= 0 && t >= 0 && u >= 0) || (s <= 0 && t <= 0 && u <= 0);
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
