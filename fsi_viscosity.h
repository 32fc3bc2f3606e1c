/* fsi_viscosity.h - viscosity on a sparse grid: one implicit step for a liquid with free surface, walls and solids.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_viscosity.h"
         #include "fsi_viscosity.h"

   A SHEAR FLOW SLOWS DOWN
      fsi_context ctx = fsi_default_context();             // hooks for memory, threads, messages; and what went wrong
      fsi_grid_desc d = fsi_grid_default_desc();
      fsi_viscosity_flow flow = fsi_viscosity_default_flow();
      unsigned char all[9 * 9];
      fsi_viscosity *solver;
      fsi_field *phi, *u[2];
      fsi_grid *grid;
      int i, j;
      d.context = &ctx;
      d.dim = 2;                                           // 64 x 64 cells
      if (fsi_grid_create(&grid, &d) != FSI_OK || fsi_viscosity_create(&solver, &ctx) != FSI_OK) {
          puts(ctx.error.message);
          return 1;
      }
      if (fsi_grid_add_field(grid, FSI_CELLS, 1, &phi) != FSI_OK) return 1;
      if (fsi_grid_add_field(grid, FSI_FACES_X, 0, &u[0]) != FSI_OK
          || fsi_grid_add_field(grid, FSI_FACES_Y, 0, &u[1]) != FSI_OK) return 1;
      memset(all, 1, sizeof all);
      if (fsi_grid_set_blocks(grid, all) != FSI_OK) return 1;
      // liquid everywhere
      for (j = 0; j < 64; j++) for (i = 0; i < 64; i++) phi->value[fsi_grid_entry(grid, i, j, 0)] = -1;
      for (j = 0; j < 64; j++) for (i = 1; i < 64; i++) u[0]->value[fsi_grid_entry(grid, i, j, 0)] = j < 32 ? 1 : -1;
      flow.u[0] = u[0]; flow.u[1] = u[1]; flow.phi = phi;
      flow.viscosity = 1;                                  // Pa s
      flow.dt = 0.01f;
      if (fsi_viscosity_solve(solver, &flow) != FSI_OK) puts(ctx.error.message);
      printf("%g m/s beside the middle, in %d iterations\n", (double)u[0]->value[fsi_grid_entry(grid, 32, 31, 0)],
          solver->iterations);
      fsi_viscosity_destroy(solver);
      fsi_grid_destroy(grid);

   WHAT IS IN HERE (search for >>)
      >>viscosity      the energy that is minimised, the solver;  >>stages  for fsi's own headers, not for you;
      then its implementation
   WHAT IT DOES NOT DO
      Keep the flow free of divergence: project before and after (fsi_pressure.h). Viscosity that depends on the shear
      rate.
   MACROS: those of fsi.h.
   UNITS: SI.
   PRECISION: fields in fsi_real; vectors of the iteration in float, corrected in double where they do not do; sums in
   double.
   COST: docs/levelset.md
*/
#ifndef FSI_VISCOSITY_H
#define FSI_VISCOSITY_H

#include "fsi_grid.h"

/* ---- >>viscosity ------------------------------------------------------------------------------------------------

   One implicit step of viscosity. Of all velocities u it finds the one for which

      J(u) = 1/2 sum_faces rho V W_f |u - u*|^2  +  dt sum_stresses mu V W_s D(u):D(u),    D = (grad u + grad u^T)/2

   is least (Batty and Bridson 2008, Accurate Viscous Free Surfaces for Buckling, Coiling, and Rotating Liquids). u* is
   the velocity before, V the volume of a cell, W the fraction of the liquid in the cell-sized cube around a face or a
   stress: diagonal stresses stand at cell centres, the others at edges (2D: nodes). No stress crosses the free surface,
   since nothing in J says otherwise; a rigid motion costs nothing.

   Memory and figures, kept between calls. */
typedef struct fsi_viscosity {
    uint32_t cookie;
    fsi_context *context;
    int unknowns;       /* of the last call: faces whose velocity viscosity may change */
    int iterations;
    double residual;    /* bound on the error of the change of u over that change, in the norm of J; above `tolerance`
                           only where rounding of u does not allow less */
    double seconds;     /* by the clock hook */
    size_t bytes;       /* held for unknowns */
    void *impl;
} fsi_viscosity;

typedef struct fsi_viscosity_flow {
    uint32_t cookie;
    fsi_field *u[3];                /* in: velocity [m/s], extrapolated beyond the liquid; out: after viscosity, on
                                       faces whose cube contains liquid, or on which a stress acts whose cube does */
    const fsi_field *phi;           /* level set at cells [m], negative in liquid */
    const fsi_real *mu;             /* NULL: `viscosity` everywhere; else at cells, block_count * block_cells [Pa
                                       s], >= 0; read where liquid is */
    fsi_real viscosity;             /* mu [Pa s], >= 0; not read where mu is given */
    fsi_real density, dt;           /* [kg/m^3] > 0, default 1000; [s] >= 0, default 0 */
    unsigned char wall_no_slip[6];  /* sides of the box, x- x+ y- y+ z- z+: 1 the liquid sticks, 0 (default) free
                                       slip */
    unsigned char wall_closed[6];   /* 1 (default): the normal velocity stands in u at the side's faces; 0: open, no
                                       stress there */
    fsi_vec3 wall_velocity[6];      /* velocity of a no-slip side; its normal part is ignored [m/s] */
    const unsigned char *solid[3];  /* NULL: none; else one byte an entry of a face field: 0 liquid or air, 1 no slip, 2
                                       free slip. Of both, u there is the solid's velocity and is kept; edges that touch
                                       a free-slip face carry no stress */
    const fsi_field *psi;           /* NULL: the solid's surface is at its no-slip faces; else distance to solids at
                                       cells [m], negative inside */
    double tolerance;               /* error of the change of u over that change, in the norm of J (an upper bound);
                                       0 < tolerance < 1, default 1e-4 */
    int max_iters;                  /* > 0, default 200; of vectors in float. As many times FSI__VISCOUS_EXACT more are
                                       done in double where these do not do */
} fsi_viscosity_flow;

/* fills every field; u, phi, viscosity and dt are yours to set */
FSI_API fsi_viscosity_flow fsi_viscosity_default_flow(void);
/* *out is NULL on failure; memory comes from `context` (NULL: malloc). Errors: COOKIE, ARGUMENT, MEMORY. Destroying
   NULL is fine. */
FSI_API fsi_status fsi_viscosity_create(fsi_viscosity **out, fsi_context *context);
FSI_API void fsi_viscosity_destroy(fsi_viscosity *s);
/* Faces in no block are left out, and with them the stresses that touch them; a closed side's faces are prescribed with
   or without a block. Errors: COOKIE, ARGUMENT (names the field; mu: names the cell), NAN (a field of flow; u or
   phi near the liquid, names the block), LIMIT, MEMORY, CONVERGENCE (max_iters, or rounding keeps it from the
   tolerance); u stays as it was then. */
FSI_API fsi_status fsi_viscosity_solve(fsi_viscosity *s, fsi_viscosity_flow *flow);

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

FSI__STRICT_FN_BEGIN
/* Fraction of a square with d.x < t, where d.x spreads over the sum of two uniform intervals of lengths a >= b >= 0
   about 0. */
FSI_FN double fsi__viscous_plane(double t, double a, double b)
{
    const double s = fabs(t), tail = (a + b) / 2 - s,
        beyond = tail <= 0 ? 0 : (s <= (a - b) / 2 ? 0.5 - s / a : tail * tail / (2 * a * b));
    return t > 0 ? 1 - beyond : beyond;
}
FSI__STRICT_FN_END

#endif /* FSI_VISCOSITY_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_VISCOSITY_IMPLEMENTATION
#define FSI_VISCOSITY_IMPLEMENTATION
#endif
#ifdef FSI_VISCOSITY_IMPLEMENTATION
#ifndef FSI_VISCOSITY_IMPLEMENTATION_DONE
#define FSI_VISCOSITY_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_grid.h"

FSI__STRICT_BEGIN

/* ---- >>viscosity implementation ---------------------------------------------------------------------------------

   The least J solves, times 1 / (rho V), with m = W and k = dt mu W / (rho dx^2) (2k at cells), for the change
   x = u - u*:

      m x - div(k D(x)) = div(k D(u*))      A x = r

                  t          s: at a cell      s_a = k (u_a(i + a) - u_a(i))
         +--------+--------+                   the same k for all a
         |        |        |   t: at an edge   t_ab = k (u_a(i) - u_a(i - b) + u_b(i) - u_b(i - a))
         |   s    u   s    |
         |        |        |   (A u)_a(i) = m u_a(i) - s_a(i) + s_a(i - a) - sum_b (t_ab(i + b) - t_ab(i))
         +--------+--------+
                  t            i + a: the next entry along axis a

   A is symmetric positive definite: conjugate gradients, preconditioned by its diagonal D, and by coarser grids where k
   is large (see "levels"). Prescribed faces have x = 0 and no row. A solid's surface between an unknown and a face
   inside draws the unknown by its true distance.

   Only blocks near liquid take part. Each is copied with one more entry a side into a dense box, as by
   fsi__grid_gather, and k is kept in that form. Full blocks that lie alike among the sides of the box share their
   coefficients, which stay in the cache. Vectors are float, but x and b are double: the answer is believed when its
   true residual, in double, is small. Where float stalls, vectors are double: see "in double". */

typedef struct fsi__viscosity {
    fsi_viscosity pub;
    fsi__arena plan, arena, grids, coarse, exact;
} fsi__viscosity;

/* faces: unknown, prescribed (two kinds), in no block */
enum { FSI__VISCOUS_FREE, FSI__VISCOUS_STICK, FSI__VISCOUS_SLIP, FSI__VISCOUS_NONE };
/* blocks; below ALIKE: full, see fsi__viscous_place */
enum { FSI__VISCOUS_ALIKE = 125, FSI__VISCOUS_MIXED, FSI__VISCOUS_EMPTY, FSI__VISCOUS_BROKEN };
enum { FSI__VISCOUS_GRAIN = 4, FSI__VISCOUS_SPAN = 1000, FSI__VISCOUS_HALVES = 20, FSI__VISCOUS_PARTS = 28,
    FSI__VISCOUS_LEVELS = 8, FSI__VISCOUS_EXACT = 5 };

#define FSI__VISCOUS_STIFF 30.0   /* entry of D from which on a coarser grid pays */

#define FSI__VISCOUS_GAP 0.03  /* [dx] a wall that is nearer to an unknown is taken for this far */
/* The smallest fraction of a face's cube that counts: thin wisps get some mass, so that m stays far from singular. */
#define FSI__VISCOUS_LEAST 0.01

/* Coefficients of one block. k: in boxes of 10 entries an axis; the others: an axis after the other. */
typedef struct fsi__viscous_set {
    float *cell, *edge[3];       /* k; edge[a + b - 1] of axes a and b */
    float *mass;                 /* m, and the drag of walls */
    float *inverse_diagonal;     /* of A; 0 where the face is no unknown */
    float *inverse_mass;         /* 0 there too */
} fsi__viscous_set;

/* One of the grids that the preconditioner works on. */
typedef struct fsi__viscous_level {
    int blocks[3], count;
    int *index, *place;       /* as of a grid; block 0 of a coarse grid starts 8 cells before the grid below it */
    float *r;                 /* dim * cells a block: P^T r, then the correction */
    float *inverse;           /* D^-1 */
} fsi__viscous_level;

typedef struct fsi__viscous {
    fsi_viscosity_flow *flow;
    const fsi_grid *grid;
    int dim, layers, cells, span;    /* of a block; entries of a box */
    double k;                        /* dt / (rho dx^2), times the viscosity if that is constant */
    unsigned char *kind, *solid;     /* of each block of the grid; whether solid faces are in it */
    int *number;                     /* its place among the `count` that are solved in, -1 */
    int count, mixed;
    int *block;                      /* count: the block of the grid */
    int *around;                     /* 27 * count: the blocks around, `count` (all zero) where there is none */
    int *set;                        /* count: coefficients; 0: within the liquid */
    unsigned char *maker;            /* count: the block that makes its set */
    float *coefficient;              /* mixed + 1 sets */
    size_t set_size;                 /* numbers of one */
    double *x, *b;                   /* dim * cells a block */
    float *d;                        /* of x since the last fresh start, over `scale` */
    float *r, *p, *q;                /* r: over `scale` */
    double *part;                    /* FSI__VISCOUS_PARTS * count: sums of blocks */
    long long *bad;                  /* count: entry of a bad mu, -2: not finite, else -1 */
    int free;                        /* the liquid touches no wall or solid: then */
    double motion[6];                /* the rigid motion that is taken from x */
    double step, turn, scale;        /* of this iteration */
    fsi__viscous_level level[FSI__VISCOUS_LEVELS + 1]; /* 0: the grid itself */
    int levels, at;                  /* coarser grids; the one at work */
    float *z;                        /* M^-1 r, if there are coarser grids */
    int moved;                       /* x is not 0 */
    double *exact_r, *exact_p, *exact_q; /* r, p, q in double; NULL: those in float do */
} fsi__viscous;

static const int fsi__viscous_stride[3] = { 1, 10, 100 };

static fsi__viscous_set fsi__viscous_set_at(const fsi__viscous *w, float *first)
{
    fsi__viscous_set s;
    const size_t rows = (size_t)(w->dim * w->cells);
    int e;
    s.cell = first;
    for (e = 0; e < 3; e++) s.edge[e] = s.cell + (size_t)((w->dim == 2 ? 0 : e) + 1) * (size_t)w->span;
    s.mass = s.cell + (size_t)(w->dim == 2 ? 2 : 4) * (size_t)w->span;
    s.inverse_diagonal = s.mass + rows;
    s.inverse_mass = s.inverse_diagonal + rows;
    return s;
}
static fsi__viscous_set fsi__viscous_set_of(const fsi__viscous *w, int set)
{
    return fsi__viscous_set_at(w, w->coefficient + (size_t)set * w->set_size);
}

/* First entry of row (y, z) of a block in a box. */
FSI_FN int fsi__viscous_row(int dim, int y, int z) { return ((dim == 3 ? z + 1 : 0) * 10 + y + 1) * 10 + 1; }

/* ---- >>viscosity fractions ---- */

/* v = phi at 1/4 and 3/4 of the way between 4 or 8 cell centres, x fastest; along axis `slope`: its difference. */
FSI_FN void fsi__viscous_between(int dim, const double *corner, int slope, double *v)
{
    int a, j;
    for (j = 0; j < 1 << dim; j++) v[j] = corner[j];
    for (a = 0; a < dim; a++)
        for (j = 0; j < 1 << dim; j++) {
            const double l = v[j], h = v[j | 1 << a], d = h - l;
            if (j >> a & 1) continue;
            v[j] = a == slope ? d : l + 0.25 * d;
            v[j | 1 << a] = a == slope ? d : h - 0.25 * d;
        }
}

/* Fractions of the liquid in the cubes of half a cell around these points: those of the half spaces that phi and its
   gradient there tell, phi < 0 where g.x < -phi; 1 or 0 where all corners agree. Exact in 2D; in 3D the third, shortest
   interval is taken at its two Gauss points. The fractions of -phi are 1 less these. */
FSI_FN void fsi__viscous_shares(int dim, const double *corner, double *share)
{
    double phi[8], g[3][8] = { { 0, 0, 0, 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0, 0, 0, 0 } };
    int a, j, inside = 0;
    for (j = 0; j < 1 << dim; j++) inside += corner[j] < 0;
    for (j = 0; j < 1 << dim; j++) share[j] = inside > 0;
    if (inside == 0 || inside == 1 << dim) return;
    fsi__viscous_between(dim, corner, -1, phi);
    for (a = 0; a < dim; a++) fsi__viscous_between(dim, corner, a, g[a]);
    for (j = 0; j < 1 << dim; j++) {
        const double x = fabs(g[0][j]) / 2, y = fabs(g[1][j]) / 2, z = fabs(g[2][j]) / 2, l = x < y ? x : y,
            h = x < y ? y : x;
        const double least = l < z ? l : z, other = l < z ? z : l, most = h < other ? other : h,
            mid = h < other ? h : other, t = 0.28867513459481287 * least;
        share[j] = (fsi__viscous_plane(t - phi[j], most, mid) + fsi__viscous_plane(-t - phi[j], most, mid)) / 2;
    }
}

/* Fractions of all half cells -3..16 along each axis, in a box of 20. Beyond open sides there is nothing; beyond closed
   ones, as within. */
static void fsi__viscous_halves(const fsi__viscous *w, int b, const fsi_real *phi, float *half)
{
    const int dim = w->dim, n = 1 << dim;
    int low[3], a, i, j, x, y, z, open = 0, dead[3][FSI__VISCOUS_HALVES];
    fsi_grid_corner(w->grid, b, low);

    /* Which half cells lie beyond an open side. */
    for (a = 0; a < 3; a++)
        for (i = 0; i < FSI__VISCOUS_HALVES; i++) {
            const int cell = low[a] + ((i - 3) >> 1);
            dead[a][i] = a < dim
                && ((cell < 0 && !w->flow->wall_closed[2 * a])
                || (cell >= w->grid->n[a] && !w->flow->wall_closed[2 * a + 1]));
            open |= dead[a][i];
        }

    /* Fractions by the corner values of each cell. */
    for (z = 0; z < (dim == 3 ? 10 : 1); z++) for (y = 0; y < 10; y++) for (x = 0; x < 10; x++) {
        double c[8], share[8];
        float *h = half + ((dim == 3 ? 2 * z : 0) * 20 + 2 * y) * 20 + 2 * x;
        for (j = 0; j < n; j++) c[j] = (double)phi[((z + (j >> 2)) * 12 + y + (j >> 1 & 1)) * 12 + x + (j & 1)];
        if (dim == 3) fsi__viscous_shares(3, c, share);
        else fsi__viscous_shares(2, c, share);
        for (j = 0; j < n; j++) h[((j >> 2) * 20 + (j >> 1 & 1)) * 20 + (j & 1)] = (float)share[j];
    }

    /* None beyond open sides. */
    if (open)
        for (z = 0, i = 0; z < (dim == 3 ? 20 : 1); z++) for (y = 0; y < 20; y++) for (x = 0; x < 20; x++, i++)
            if (dead[0][x] || dead[1][y] || (dim == 3 && dead[2][z])) half[i] = 0;
}

/* out = the mean over the cubes of one cell around the entries of a place, which stands half a cell down along the axes
   in `down`'s bits. Along these entries 0..8, else -1..7. */
static void fsi__viscous_mean(int dim, const float *half, int down, float times, float *out)
{
    const int layers = dim == 3 ? 9 : 1, zy = dim == 3 ? 400 : 0;
    int x, y, z;
    for (z = 0; z < layers; z++) for (y = 0; y < 9; y++) {
        const int fx = 1, fy = 1, fz = dim == 3 ? 1 : 0; /* half cell of the first cell or face: -2 or -1, plus 3 */
        const float *h = half + ((2 * z + fz + (fz & down >> 2)) * 20 + 2 * y + fy + (down >> 1 & 1)) * 20 + fx
            + (down & 1);
        float *o = out + fsi__viscous_row(dim, y - 1 + (down >> 1 & 1), z - 1 + (down >> 2)) - 1 + (down & 1);
        for (x = 0; x < 9; x++) {
            const float *c = h + 2 * x;
            o[x] = times * ((c[0] + c[1]) + (c[20] + c[21]) + ((c[zy] + c[zy + 1]) + (c[zy + 20] + c[zy + 21])));
        }
    }
}

/* ---- >>viscosity faces ---- */

/* Kind of the face at `cell` along `axis`; *side: the side of the box that prescribes it, -1: none. */
static int fsi__viscous_face(const fsi__viscous *w, int axis, const int *cell, int *side)
{
    const fsi_viscosity_flow *flow = w->flow;
    const int *n = w->grid->n;
    long long entry;
    int a, s;
    *side = -1;
    for (a = 0; a < w->dim; a++) {
        if (a == axis && (cell[a] < 0 || cell[a] > n[a])) return FSI__VISCOUS_NONE;
        s = a == axis ? (cell[a] == 0 ? 2 * a : cell[a] == n[a] ? 2 * a + 1 : -1)
            : (cell[a] < 0 ? 2 * a : cell[a] >= n[a] ? 2 * a + 1 : -1);
        if (s < 0) continue;
        if (flow->wall_closed[s]) *side = s;
        else if (a != axis) return FSI__VISCOUS_NONE;
    }
    if (*side >= 0) return flow->wall_no_slip[*side] ? FSI__VISCOUS_STICK : FSI__VISCOUS_SLIP;
    entry = fsi_grid_entry(w->grid, cell[0], cell[1], cell[2]);
    if (entry < 0) return FSI__VISCOUS_NONE;
    return !flow->solid[axis] || !flow->solid[axis][entry] ? FSI__VISCOUS_FREE : flow->solid[axis][entry] == 2
        ? FSI__VISCOUS_SLIP : FSI__VISCOUS_STICK;
}

/* Where a block lies among the sides of the box, 0: out of their reach. Those at the same place and full of liquid have
   the same coefficients. ALIKE: a block around is missing or has solids. */
static int fsi__viscous_place(const fsi__viscous *w, int b)
{
    const fsi_grid *g = w->grid;
    int corner[3], a, n, place = 0, times = 1;
    fsi_grid_corner(g, b, corner);
    for (a = 0; a < w->dim; a++, times *= 5)
        place += times * (corner[a] >= g->n[a] ? 4 : (corner[a] == 0 ? 1 : 0) + (corner[a] + 8 >= g->n[a] ? 2 : 0));
    for (n = 0; n < (w->dim == 3 ? 27 : 9); n++) {
        const int i = corner[0] / 8 + n % 3 - 1, j = corner[1] / 8 + n / 3 % 3 - 1,
            k = w->dim == 3 ? corner[2] / 8 + n / 9 - 1 : 0;
        long long e;
        if (i < 0 || j < 0 || k < 0 || i >= g->blocks[0] || j >= g->blocks[1] || k >= g->blocks[2]) continue;
        e = fsi_grid_entry(g, 8 * i, 8 * j, 8 * k);
        if (e < 0 || w->solid[e / g->block_cells]) return FSI__VISCOUS_ALIKE;
    }
    return place;
}

/* The velocity and the kind of the faces of a block, in boxes. Beyond a side that is tangential to them stands the
   side's velocity. */
static void fsi__viscous_faces(const fsi__viscous *w, int b, int inside, double (*u)[FSI__VISCOUS_SPAN],
    unsigned char (*kind)[FSI__VISCOUS_SPAN])
{
    fsi_real box[FSI__VISCOUS_SPAN];
    int corner[3], cell[3], a, i, x, y, z, side;
    fsi_grid_corner(w->grid, b, corner);
    for (a = 0; a < w->dim; a++) {
        fsi__grid_gather(w->flow->u[a], b, 1, box);
        for (i = 0; i < w->span; i++) u[a][i] = (double)box[i];
        if (inside) memset(kind[a], FSI__VISCOUS_FREE, sizeof kind[a]);
        else
            for (z = 0, i = 0; z < w->span / 100; z++) for (y = 0; y < 10; y++) for (x = 0; x < 10; x++, i++) {
                cell[0] = corner[0] + x - 1;
                cell[1] = corner[1] + y - 1;
                cell[2] = corner[2] + z - (w->dim == 3);
                kind[a][i] = (unsigned char)fsi__viscous_face(w, a, cell, &side);
                if (side >= 0 && side >> 1 != a) u[a][i] = (double)(&w->flow->wall_velocity[side].x)[a];
            }
    }
}

/* ---- >>viscosity operator ---- */

/* out = A u along axis a, for one block: in double, for residuals. */
static void fsi__viscous_apply_double(int dim, const fsi__viscous_set *set, const float *mass,
    double (*u)[FSI__VISCOUS_SPAN], int a, double *out)
{
    const int sa = fsi__viscous_stride[a];
    const float *k = set->cell;
    int b, n, x, i;
    for (n = 0; n < (dim == 3 ? 64 : 8); n++) for (x = 0; x < 8; x++) {
        const double *ua = u[a] + fsi__viscous_row(dim, n & 7, n >> 3) + x;
        const size_t at = (size_t)(ua - u[a]);
        double sum = (double)mass[n * 8 + x] * ua[0] + (double)k[at - (size_t)sa] * (ua[0] - ua[-sa])
            - (double)k[at] * (ua[sa] - ua[0]);
        for (b = 0; b < dim; b++) {
            const int sb = fsi__viscous_stride[b];
            const double *ub = u[b] + at;
            if (b == a) continue;
            for (i = 0; i < 2; i++) /* below, above */
                sum += (i ? -1 : 1) * (double)set->edge[a + b - 1][at + (size_t)(i * sb)]
                    * ((ua[i * sb] - ua[(i - 1) * sb]) + (ub[i * sb] - ub[i * sb - sa]));
        }
        out[n * 8 + x] = sum;
    }
}

FSI_FN float fsi__viscous_strain(const float *ua, const float *ub, int sa, int sb)
{
    return (ua[0] - ua[-sb]) + (ub[0] - ub[-sa]);
}

/* The same in float. Differences of velocities come first: those of neighbours are nearly exact. dim and a are
   constants where this is inlined, so that everything stands at fixed distances; `same`: within the liquid, m = 1 and
   one k, `all`. */
FSI_FN void fsi__viscous_rows(int dim, int a, int same, float all, const float *k, const float *m, const float *u,
    float *out)
{
    const int span = dim == 3 ? 1000 : 100, b = (a + 1) % dim, c = (a + 2) % dim, eb = (dim == 3 ? a + b : 1) * span,
        ec = (a + c) * span;
    const int sa = a == 0 ? 1 : a == 1 ? 10 : 100, sb = b == 0 ? 1 : b == 1 ? 10 : 100,
        sc = c == 0 ? 1 : c == 1 ? 10 : 100;
    int n, x;

    /* The row and those of the other components. */
    for (n = 0; n < (dim == 3 ? 64 : 8); n++) {
        const int first = fsi__viscous_row(dim, n & 7, n >> 3);
        const float *ua = u + a * FSI__VISCOUS_SPAN + first, *ub = u + b * FSI__VISCOUS_SPAN + first,
            *uc = u + c * FSI__VISCOUS_SPAN + first, *kr = k + first;
        float *o = out + n * 8;

        /* At a surface or a solid; within the liquid. */
        if (!same)
            for (x = 0; x < 8; x++)
                o[x] = m[n * 8 + x] * ua[x] + (kr[x - sa] * (ua[x] - ua[x - sa]) - kr[x] * (ua[x + sa] - ua[x])) +
                    (kr[eb + x] * fsi__viscous_strain(ua + x, ub + x, sa, sb)
                        - kr[eb + sb + x] * fsi__viscous_strain(ua + sb + x, ub + sb + x, sa, sb)) +
                    (dim == 2 ? 0 : kr[ec + x] * fsi__viscous_strain(ua + x, uc + x, sa, sc)
                        - kr[ec + sc + x] * fsi__viscous_strain(ua + sc + x, uc + sc + x, sa, sc));
        else
            for (x = 0; x < 8; x++)
                o[x] = ua[x] + all * (2 * ((ua[x] - ua[x - sa]) - (ua[x + sa] - ua[x])) +
                    (fsi__viscous_strain(ua + x, ub + x, sa, sb) - fsi__viscous_strain(ua + sb + x, ub + sb + x, sa,
                        sb)) +
                    (dim == 2 ? 0 : fsi__viscous_strain(ua + x, uc + x, sa, sc)
                        - fsi__viscous_strain(ua + sc + x, uc + sc + x, sa, sc)));
    }
}

static void fsi__viscous_apply(const fsi__viscous *w, int n, const float *u, float *out)
{
    const fsi__viscous_set set = fsi__viscous_set_of(w, w->set[n]);
    const float k = (float)w->k;
    float box[3 * 512];
    if (w->dim == 3 && w->set[n]) {
        fsi__viscous_rows(3, 0, 0, 0, set.cell, set.mass, u, box);
        fsi__viscous_rows(3, 1, 0, 0, set.cell, set.mass + 512, u, box + 512);
        fsi__viscous_rows(3, 2, 0, 0, set.cell, set.mass + 1024, u, box + 1024);
    } else if (w->dim == 3) {
        fsi__viscous_rows(3, 0, 1, k, set.cell, set.mass, u, box);
        fsi__viscous_rows(3, 1, 1, k, set.cell, set.mass, u, box + 512);
        fsi__viscous_rows(3, 2, 1, k, set.cell, set.mass, u, box + 1024);
    } else {
        fsi__viscous_rows(2, 0, 0, 0, set.cell, set.mass, u, box);
        fsi__viscous_rows(2, 1, 0, 0, set.cell, set.mass + 64, u, box + 64);
    }
    memcpy(out, box, (size_t)(w->dim * w->cells) * sizeof(float));
}

/* The box of one component around block n. Blocks that are not solved in are the zero block. */
static void fsi__viscous_gather(const fsi__viscous *w, const float *f, int n, int a, float *out)
{
    const size_t block = (size_t)(w->dim * w->cells), component = (size_t)a * (size_t)w->cells;
    int j, k, y, z;
    /* layers and rows of the blocks before, here and behind */
    for (k = 0; k < (w->dim == 3 ? 3 : 1); k++) for (j = 0; j < 3; j++) {
        const int *line = w->around + 27 * (size_t)n + (w->dim == 3 ? 9 * k : 9) + 3 * j;
        const float *l = f + (size_t)line[0] * block + component, *m = f + (size_t)line[1] * block + component,
            *r = f + (size_t)line[2] * block + component;
        for (z = k == 0 && w->dim == 3 ? 7 : 0; z < (w->dim == 2 || k == 2 ? 1 : 8); z++)
            for (y = j == 0 ? 7 : 0; y < (j == 2 ? 1 : 8); y++) {
            const int row = (z * 8 + y) * 8;
            float *o = out + fsi__viscous_row(w->dim, y + 8 * (j - 1), z + 8 * (k - 1)) - 1;
            o[0] = l[row + 7];
            memcpy(o + 1, m + row, 8 * sizeof(float));
            o[9] = r[row];
        }
    }
}

static void fsi__viscous_gather_double(const fsi__viscous *w, const double *f, int n, int a, double *out)
{
    const int *around = w->around + 27 * (size_t)n;
    int x, y, z;
    for (z = w->dim == 3 ? -1 : 0; z < (w->dim == 3 ? 9 : 1); z++) for (y = -1; y < 9; y++) for (x = -1; x < 9; x++) {
        const size_t block = (size_t)around[9 * ((z + 8) >> 3) + 3 * ((y + 8) >> 3) + ((x + 8) >> 3)];
        *out++ = f[(block * (size_t)w->dim + (size_t)a) * (size_t)w->cells
            + (size_t)(((z & 7) * 8 + (y & 7)) * 8 + (x & 7))];
    }
}

/* ---- >>viscosity set-up ---- */

/* Sorts the blocks. The stresses on the faces of a block see phi from two cells below it to one above. */
static void fsi__viscous_sort(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    fsi_real phi[12 * 12 * 12];
    unsigned char rim[12 * 12 * 12];
    const int size = fsi__gather_size(w->grid, 2);
    int b, i;
    (void)chunk;

    /* Cells that no stress of the block sees. */
    for (i = 0; i < size; i++) {
        const int x = i % 12, y = i / 12 % 12, z = w->dim == 3 ? i / 144 : 0;
        rim[i] = x == 11 || y == 11 || z == 11;
    }
    for (b = begin; b < end; b++) {
        int liquid = 0, close = 0;
        fsi_real finite = 0; /* NaN once something is not */

        /* Liquid in and near the block. */
        fsi__grid_gather(w->flow->phi, b, 2, phi);
        for (i = 0; i < size; i++) {
            liquid += phi[i] < 0;
            close += phi[i] < 0 && rim[i] == 0;
            finite += phi[i] * 0;
        }

        /* Its kind. */
        w->kind[b] = close == 0 ? FSI__VISCOUS_EMPTY : FSI__VISCOUS_MIXED;
        if (liquid == size && !w->flow->mu && fsi__viscous_place(w, b) < FSI__VISCOUS_ALIKE)
            w->kind[b] = (unsigned char)fsi__viscous_place(w, b);
        if (!(finite == 0)) w->kind[b] = FSI__VISCOUS_BROKEN;
    }
}

static void fsi__viscous_find_solids(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    int a, b, i;
    (void)chunk;
    for (b = begin; b < end; b++)
        for (a = 0, w->solid[b] = 0; a < w->dim; a++)
            if (w->flow->solid[a])
                for (i = 0; i < w->cells; i++)
                    w->solid[b] |= w->flow->solid[a][(size_t)b * (size_t)w->cells + (size_t)i] != 0;
}

/* psi, in a box of 12, at a face of a box of 10. */
static double fsi__viscous_psi(const fsi__viscous *w, const fsi_real *psi, int axis, int i)
{
    static const int stride[3] = { 1, 12, 144 };
    const int e = (w->dim == 3 ? (i / 100 + 1) * 144 : 0) + (i / 10 % 10 + 1) * 12 + i % 10 + 1;
    return ((double)psi[e] + (double)psi[e - stride[axis]]) / 2;
}

/* Where the solid begins between the face `unknown` and its neighbour `held`, as a fraction of their distance; 1: not
   between them. */
static double fsi__viscous_gap(const fsi__viscous *w, const fsi_real *psi, int axis, int unknown, int held)
{
    const double out = fsi__viscous_psi(w, psi, axis, unknown), in = fsi__viscous_psi(w, psi, axis, held);
    if (!(out > 0 && in < 0)) return 1;
    return out / (out - in) > FSI__VISCOUS_GAP ? out / (out - in) : FSI__VISCOUS_GAP;
}

/* The change of the solid's velocity from face `held` of the box of block b to a neighbour, `step` (+-1) along axis
   `along`, that is not held: as much as from the face behind to `held`, if that is the solid's too. */
static double fsi__viscous_lead(const fsi__viscous *w, int b, int axis, int held, int along, int step, double u)
{
    int cell[3], side;
    long long e;
    fsi_grid_corner(w->grid, b, cell);
    cell[0] += held % 10 - 1;
    cell[1] += held / 10 % 10 - 1;
    cell[2] += w->dim == 3 ? held / 100 - 1 : 0;
    cell[along] -= step;
    if (fsi__viscous_face(w, axis, cell, &side) != FSI__VISCOUS_STICK || side >= 0) return 0;
    e = fsi_grid_entry(w->grid, cell[0], cell[1], cell[2]);
    return u - (double)w->flow->u[axis]->value[e];
}

/* A stress of k between an unknown and a face inside a solid uses the solid's velocity at that face, a cell away; the
   solid begins at gap times that distance. The stress there is k/gap, so a drag of k (1/gap - 1) is added, towards the
   velocity that the solid would have at the unknown (a liquid that turns with its solid has no stress). */
static void fsi__viscous_draw(const fsi__viscous *w, int b, const fsi__viscous_set *set, const fsi_real *psi,
    double (*u)[FSI__VISCOUS_SPAN], unsigned char (*kind)[FSI__VISCOUS_SPAN], float (*drag)[FSI__VISCOUS_SPAN],
    double (*pull)[FSI__VISCOUS_SPAN])
{
    const int *st = fsi__viscous_stride, first = w->dim == 3 ? 111 : 11;
    int a, d, i, up;

    /* Stresses between an unknown and a face that sticks. */
    for (a = 0; a < w->dim; a++) for (d = 0; d < w->dim; d++) {
        const float *stress = d == a ? set->cell - st[a] : set->edge[a + d - 1]; /* between the faces i - st[d] and i */
        for (i = first; i < w->span; i++) {
            const int l = kind[a][i - st[d]], h = kind[a][i];
            if (!(stress[i] > 0) || l + h != FSI__VISCOUS_FREE + FSI__VISCOUS_STICK || l == h) continue;
            up = h == FSI__VISCOUS_FREE;

            /* Stress across the gap between the unknown and the solid's surface. */
            {
                const int unknown = up ? i : i - st[d], held = up ? i - st[d] : i;
                const double more = (double)stress[i] * (1 / fsi__viscous_gap(w, psi, a, unknown, held) - 1);
                if (!(more > 0)) continue;
                drag[a][unknown] += (float)more;
                pull[a][unknown] += more
                    * (u[a][held] + (d == a ? 0 : fsi__viscous_lead(w, b, a, held, d, up ? 1 : -1, u[a][held]))
                    - u[a][unknown]);
            }
        }
    }
}

/* Removes the stresses that act on no unknown. An edge between an unknown and a solid lies in the solid's surface if
   its two other faces are prescribed too: the solid's velocity holds there, half a cell from the unknown, on half the
   cube. That is a drag of 2k towards it, less the half difference of the others; it goes to mass and b. Where psi
   crosses zero between the two, fsi__viscous_draw has the distance, and the stress stays as it is. Returns whether a
   prescribed velocity acts on any unknown. */
static int fsi__viscous_prune(const fsi__viscous *w, const fsi__viscous_set *set, double (*u)[FSI__VISCOUS_SPAN],
    unsigned char (*kind)[FSI__VISCOUS_SPAN], const fsi_real *psi, float (*drag)[FSI__VISCOUS_SPAN],
    double (*pull)[FSI__VISCOUS_SPAN])
{
    const int *st = fsi__viscous_stride, first = w->dim == 3 ? 111 : 11;
    int a, b, i, j, held = 0;

    /* Stresses in cells. */
    for (i = 0; i + first < w->span; i++) { /* cells -1..8 but for the last ones, which are not read */
        int prescribed = 0;
        for (a = 0; a < w->dim; a++) {
            const int l = kind[a][i], h = kind[a][i + st[a]];
            if (l == FSI__VISCOUS_NONE || h == FSI__VISCOUS_NONE) set->cell[i] = 0;
            prescribed |= (l == FSI__VISCOUS_FREE) != (h == FSI__VISCOUS_FREE);
        }
        held |= prescribed && set->cell[i] > 0;
    }

    /* Stresses at edges. */
    for (a = 0; a < w->dim; a++) for (b = a + 1; b < w->dim; b++) {
        float *k = set->edge[a + b - 1];
        for (i = first; i < w->span; i++) {
            const int axis[4] = { a, a, b, b }, at[4] = { i, i - st[b], i, i - st[a] };
            int count[4] = { 0, 0, 0, 0 };

            /* Which faces are prescribed, unknown, or neither. */
            if (k[i] == 0) continue;
            for (j = 0; j < 4; j++) count[kind[axis[j]][at[j]]]++;
            if (count[FSI__VISCOUS_NONE] || count[FSI__VISCOUS_SLIP]) k[i] = 0;
            if (k[i] == 0 || !count[FSI__VISCOUS_STICK] || !count[FSI__VISCOUS_FREE]) continue;
            held = 1;
            if (count[FSI__VISCOUS_FREE] > 1) continue;
            for (j = 0; kind[axis[j]][at[j]] != FSI__VISCOUS_FREE; j++) continue;
            if (psi && fsi__viscous_gap(w, psi, axis[j], at[j], at[j ^ 1]) < 1) continue;

            /* A drag in place of the stress. */
            {
                const int d = axis[j], o = axis[j ^ 2]; /* of the unknown, of the others */
                const double turn = (u[o][i] - u[o][i - st[d]]) / 2, k2 = 2 * (double)k[i];
                drag[d][at[j]] += (float)k2;
                pull[d][at[j]] += k2 * (u[d][at[j ^ 1]] - u[d][at[j]] + (j & 1 ? turn : -turn));
            }
            k[i] = 0;
        }
    }
    return held;
}

/* Mass and diagonals of a block whose k are known. */
static void fsi__viscous_diagonals(const fsi__viscous *w, const fsi__viscous_set *set,
    unsigned char (*kind)[FSI__VISCOUS_SPAN],
                                   float (*mass)[FSI__VISCOUS_SPAN], float (*drag)[FSI__VISCOUS_SPAN])
{
    const int *st = fsi__viscous_stride;
    int a, b, x, y, z;
    for (a = 0; a < w->dim; a++) for (z = 0; z < w->layers; z++) for (y = 0; y < 8; y++) for (x = 0; x < 8; x++) {
        const int i = fsi__viscous_row(w->dim, y, z) + x, o = a * w->cells + (z * 8 + y) * 8 + x;
        float k = drag[a][i] + (set->cell[i] + set->cell[i - st[a]]), m = mass[a][i];
        for (b = 0; b < w->dim; b++) if (b != a) k += set->edge[a + b - 1][i] + set->edge[a + b - 1][i + st[b]];
        if (m < (float)FSI__VISCOUS_LEAST) m = (float)FSI__VISCOUS_LEAST;
        m += drag[a][i];
        set->mass[o] = m;
        set->inverse_diagonal[o] = set->inverse_mass[o] = 0;
        if (kind[a][i] != FSI__VISCOUS_FREE || !(k > 0)) continue;
        set->inverse_diagonal[o] = 1 / (m + (k - drag[a][i]));
        set->inverse_mass[o] = 1 / m;
    }
}

/* half *= mu of its cell; returns the entry of a cell with liquid whose mu is not a viscosity, -1: none. */
static long long fsi__viscous_weigh(const fsi__viscous *w, int b, float *half)
{
    fsi_field field = *w->flow->phi;
    fsi_real mu[12 * 12 * 12];
    int x, y, z, corner[3];
    field.value = (fsi_real *)w->flow->mu;
    field.background = 0;
    fsi__grid_gather(&field, b, 2, mu);
    fsi_grid_corner(w->grid, b, corner);
    for (z = 0; z < (w->dim == 3 ? 20 : 1); z++) for (y = 0; y < 20; y++) for (x = 0; x < 20; x++) {
        const int cx = (x + 1) >> 1, cy = (y + 1) >> 1, cz = w->dim == 3 ? (z + 1) >> 1 : 0;
        float *h = &half[(z * 20 + y) * 20 + x];
        const double m = (double)mu[(cz * 12 + cy) * 12 + cx];
        if (*h == 0) continue;
        if (!(m >= 0) || !(m * w->k < 1e30)) {
            const long long e = fsi_grid_entry(w->grid, corner[0] + cx - 2, corner[1] + cy - 2, w->dim == 3
                ? corner[2] + cz - 2 : 0);
            return e < 0 ? (long long)b * w->cells : e;
        }
        *h *= (float)(m * w->k);
    }
    return -1;
}

/* The coefficients of a block at the surface or at a solid. */
static long long fsi__viscous_assemble(const fsi__viscous *w, int b, const fsi__viscous_set *set,
    double (*u)[FSI__VISCOUS_SPAN], double (*pull)[FSI__VISCOUS_SPAN], double *held)
{
    float half[FSI__VISCOUS_HALVES * FSI__VISCOUS_HALVES * FSI__VISCOUS_HALVES], mass[3][FSI__VISCOUS_SPAN],
        drag[3][FSI__VISCOUS_SPAN];
    unsigned char kind[3][FSI__VISCOUS_SPAN];
    const float times = w->flow->mu ? 0.125f : (float)(w->k / 8);
    const int place = fsi__viscous_place(w, b), near_solid = w->flow->psi && place == FSI__VISCOUS_ALIKE;
    fsi_real phi[12 * 12 * 12], psi[12 * 12 * 12];
    long long bad = -1;
    int a, c;

    /* Fractions and masses. */
    fsi__grid_gather(w->flow->phi, b, 2, phi);
    fsi__viscous_halves(w, b, phi, half);
    memset(mass, 0, sizeof mass);
    memset(drag, 0, sizeof drag);
    memset(set->cell, 0, (size_t)(set->mass - set->cell) * sizeof(float));
    for (a = 0; a < w->dim; a++) fsi__viscous_mean(w->dim, half, 1 << a, 0.125f, mass[a]);

    /* Stresses by the fractions. */
    if (w->flow->mu) bad = fsi__viscous_weigh(w, b, half);
    fsi__viscous_mean(w->dim, half, 0, 2 * times, set->cell);
    for (a = 0; a < w->dim; a++) for (c = a + 1; c < w->dim; c++)
        fsi__viscous_mean(w->dim, half, 1 << a | 1 << c, times, set->edge[a + c - 1]);

    /* Faces, and the velocities that walls and solids prescribe. */
    fsi__viscous_faces(w, b, place == 0, u, kind);
    if (near_solid) fsi__grid_gather(w->flow->psi, b, 2, psi);
    *held = fsi__viscous_prune(w, set, u, kind, near_solid ? psi : NULL, drag, pull);
    if (near_solid) fsi__viscous_draw(w, b, set, psi, u, kind, drag, pull);
    fsi__viscous_diagonals(w, set, kind, mass, drag);
    return bad;
}

/* Coefficients within the liquid. */
static void fsi__viscous_within(const fsi__viscous *w)
{
    const fsi__viscous_set s = fsi__viscous_set_of(w, 0);
    const int rows = w->dim * w->cells;
    const double diagonal = 1 + w->k * (4 + 2 * (w->dim - 1));
    int e, i;
    for (i = 0; i < w->span; i++) {
        s.cell[i] = (float)(2 * w->k);
        for (e = 0; e < (w->dim == 2 ? 1 : 3); e++) s.edge[e][i] = (float)w->k;
    }
    for (i = 0; i < rows; i++) {
        s.mass[i] = s.inverse_mass[i] = 1;
        s.inverse_diagonal[i] = (float)(1 / diagonal);
    }
}

/* Coefficients and right side of the blocks with unknowns. part: b.m^-1 b; the same of D u*, of whose size rounding
   errors are a fraction; unknowns; whether a wall or solid acts on them; the largest entry of D where m is 1: unknowns
   with a large drag need no coarser grid */
static void fsi__viscous_begin(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    double u[3][FSI__VISCOUS_SPAN], pull[3][FSI__VISCOUS_SPAN], out[512];
    unsigned char kind[3][FSI__VISCOUS_SPAN];
    float own[4 * FSI__VISCOUS_SPAN + 9 * 512]; /* coefficients that another block keeps */
    int n, a, i;
    (void)chunk;
    for (n = begin; n < end; n++) {

        /* Coefficients and right side of the block. */
        const fsi__viscous_set set = fsi__viscous_set_at(w, w->set[n] && !w->maker[n] ? own
            : w->coefficient + (size_t)w->set[n] * w->set_size);
        double *b = w->b + (size_t)n * (size_t)(w->dim * w->cells), *part = w->part + FSI__VISCOUS_PARTS * (size_t)n;
        memset(pull, 0, sizeof pull);
        memset(part, 0, FSI__VISCOUS_PARTS * sizeof *part);
        w->bad[n] = -1;
        if (w->set[n]) w->bad[n] = fsi__viscous_assemble(w, w->block[n], &set, u, pull, &part[3]);
        else fsi__viscous_faces(w, w->block[n], 1, u, kind);

        /* Residual of the guess, in double, and the sums that scale the tolerance. */
        for (a = 0; a < w->dim; a++) {
            /* mass 0: the zero block */
            fsi__viscous_apply_double(w->dim, &set, w->p + (size_t)w->count * (size_t)(w->dim * w->cells), u, a, out);
            for (i = 0; i < w->cells; i++) {
                const int o = a * w->cells + i, at = fsi__viscous_row(w->dim, i >> 3 & 7, i >> 6) + (i & 7);
                const double inverse = (double)set.inverse_diagonal[o], m = (double)set.inverse_mass[o];
                b[o] = inverse > 0 ? pull[a][at] - out[i] : 0;
                part[0] += b[o] * b[o] * m;
                if (inverse > 0) part[1] += u[a][at] / inverse * (u[a][at] / inverse) * m;
                part[2] += inverse > 0;
                if (inverse > 0 && part[4] < 1 / inverse - 1 / m + 1) part[4] = 1 / inverse - 1 / m + 1;
            }
        }
        if (w->bad[n] < 0 && !fsi_is_finite(part[0] + part[1])) w->bad[n] = -2;
    }
}

/* ---- >>viscosity iteration ---- */

/* Sums of a block: 64 float numbers are folded to 8 in a fixed tree (v is spoilt), these go to lanes in double, folded
   at last. */
FSI_FN void fsi__viscous_carry(double *sum, float *v)
{
    int j;
    for (j = 0; j < 32; j++) v[j] += v[j + 32];
    for (j = 0; j < 16; j++) v[j] += v[j + 16];
    for (j = 0; j < 8; j++) sum[j] += (double)(v[j] + v[j + 8]);
}
FSI_FN double fsi__viscous_fold(const double *s)
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static double fsi__viscous_sum(const fsi__viscous *w, int part)
{
    double sum = 0;
    int n;
    for (n = 0; n < w->count; n++) sum += w->part[FSI__VISCOUS_PARTS * (size_t)n + (size_t)part];
    return sum;
}

/* Runs a loop over blocks that takes `work` nanoseconds at least for a row: fsi__parallel_work. */
static void fsi__viscous_run(fsi__viscous *w, double work, fsi__range_fn *fn)
{
    fsi__parallel_work(w->grid->context, w->count, FSI__VISCOUS_GRAIN, work * w->dim * w->cells * w->count, fn, w);
}

/* q = A p; part: p.q */
static void fsi__viscous_multiply(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    float u[3 * FSI__VISCOUS_SPAN];
    int n, a, i, j;
    (void)chunk;
    for (n = begin; n < end; n++) {
        const int rows = w->dim * w->cells;
        const float *p = w->p + (size_t)n * (size_t)rows;
        float *q = w->q + (size_t)n * (size_t)rows;
        double sum[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
        for (a = 0; a < w->dim; a++) fsi__viscous_gather(w, w->p, n, a, u + a * FSI__VISCOUS_SPAN);
        fsi__viscous_apply(w, n, u, q);
        for (i = 0; i < rows; i += 64) {
            float v[64];
            for (j = 0; j < 64; j++) v[j] = p[i + j] * q[i + j];
            fsi__viscous_carry(sum, v);
        }
        w->part[FSI__VISCOUS_PARTS * (size_t)n] = fsi__viscous_fold(sum);
    }
}

/* r -= step q; part: r.D^-1 r, r.m^-1 r */
static void fsi__viscous_advance(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    const float step = (float)w->step;
    int n, i, j;
    (void)chunk;
    for (n = begin; n < end; n++) {
        const fsi__viscous_set set = fsi__viscous_set_of(w, w->set[n]);
        const int rows = w->dim * w->cells;
        const size_t at = (size_t)n * (size_t)rows;
        double rz[8] = { 0, 0, 0, 0, 0, 0, 0, 0 }, rr[8] = { 0, 0, 0, 0, 0, 0, 0, 0 },
            *part = w->part + FSI__VISCOUS_PARTS * (size_t)n;
        float *r = w->r + at;
        const float *q = w->q + at, *d = set.inverse_diagonal, *m = set.inverse_mass;

        /* The new residual, and its products in eight partial sums. */
        for (i = 0; i < rows; i += 64) {
            float v[64], z[64];
            for (j = 0; j < 64; j++) v[j] = d[i + j] > 0 ? r[i + j] - step * q[i + j] : 0;
            memcpy(r + i, v, sizeof v);
            for (j = 0; j < 64; j++) v[j] *= v[j];
            for (j = 0; j < 64; j++) z[j] = v[j] * d[i + j];
            for (j = 0; j < 64; j++) v[j] *= m[i + j];
            fsi__viscous_carry(rz, z);
            fsi__viscous_carry(rr, v);
        }

        /* Their folds. */
        part[0] = fsi__viscous_fold(rz);
        part[1] = fsi__viscous_fold(rr);
    }
}

/* d += step p, p = D^-1 r + turn p */
static void fsi__viscous_turn(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    const float step = (float)w->step, turn = (float)w->turn;
    int n, i;
    (void)chunk;
    for (n = begin; n < end; n++) {
        const fsi__viscous_set set = fsi__viscous_set_of(w, w->set[n]);
        const int rows = w->dim * w->cells;
        float *p = w->p + (size_t)n * (size_t)rows, *d = w->d + (size_t)n * (size_t)rows;
        const float *r = w->r + (size_t)n * (size_t)rows, *z = w->levels ? w->z + (size_t)n * (size_t)rows : NULL;
        for (i = 0; i < rows; i++) {
            const float old = p[i];
            p[i] = (z ? z[i] : set.inverse_diagonal[i] * r[i]) + turn * old;
            d[i] += step * old;
        }
    }
}

/* x += d scale */
static void fsi__viscous_settle(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    const size_t rows = (size_t)(w->dim * w->cells);
    size_t i;
    (void)chunk;
    for (i = (size_t)begin * rows; i < (size_t)end * rows; i++) w->x[i] += w->scale * (double)w->d[i];
}

/* r = (b - A x) / scale, p = D^-1 r, d = 0; part: r.D^-1 r, r.m^-1 r */
static void fsi__viscous_start(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    double u[3][FSI__VISCOUS_SPAN], out[512];
    int n, a, i;
    (void)chunk;
    for (n = begin; n < end; n++) {
        const fsi__viscous_set set = fsi__viscous_set_of(w, w->set[n]);
        const size_t at = (size_t)n * (size_t)(w->dim * w->cells);
        double *part = w->part + FSI__VISCOUS_PARTS * (size_t)n;
        part[0] = part[1] = 0;
        memset(out, 0, sizeof out);
        memset(w->d + at, 0, (size_t)(w->dim * w->cells) * sizeof *w->d);

        /* A x, once x is not zero. */
        if (w->moved) for (a = 0; a < w->dim; a++) fsi__viscous_gather_double(w, w->x, n, a, u[a]);
        for (a = 0; a < w->dim; a++) {
            if (w->moved) fsi__viscous_apply_double(w->dim, &set, set.mass + a * w->cells, u, a, out);

            /* Residual, direction and sums. */
            for (i = 0; i < w->cells; i++) {
                const int o = a * w->cells + i;
                const double inverse = (double)set.inverse_diagonal[o],
                    r = inverse > 0 ? (w->b[at + (size_t)o] - out[i]) / w->scale : 0;
                w->r[at + (size_t)o] = (float)r;
                w->p[at + (size_t)o] = (float)(inverse * r);
                if (w->exact_r) w->exact_r[at + (size_t)o] = r;
                part[0] += r * r * inverse;
                part[1] += r * r * (double)set.inverse_mass[o];
            }
        }
    }
}

/* ---- >>viscosity in double ----

   A rigid motion of a drop feels its mass alone, all else k times as much: from k = 1e5 on rounding of float is of the
   order of the mass. Spray has such a motion for each drop, and small drops and thin sheets fold and shear at nearly no
   cost besides; each of them takes an iteration or more of its own, if rounding does not undo what the others did. So
   where float stalls, the same goes on with r, p and q in double. M^-1 stays as it is: it need not be the same at every
   iteration where turn is that of Polak and Ribiere. */

/* q = A p; part: p.q */
static void fsi__viscous_multiply_exact(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    double u[3][FSI__VISCOUS_SPAN], out[512];
    int n, a, i;
    (void)chunk;
    for (n = begin; n < end; n++) {
        const fsi__viscous_set set = fsi__viscous_set_of(w, w->set[n]);
        double *part = w->part + FSI__VISCOUS_PARTS * (size_t)n;
        part[0] = 0;
        for (a = 0; a < w->dim; a++) fsi__viscous_gather_double(w, w->exact_p, n, a, u[a]);
        for (a = 0; a < w->dim; a++) {
            const size_t at = ((size_t)n * (size_t)w->dim + (size_t)a) * (size_t)w->cells;
            fsi__viscous_apply_double(w->dim, &set, set.mass + a * w->cells, u, a, out);
            for (i = 0; i < w->cells; i++) {
                w->exact_q[at + (size_t)i] = out[i];
                part[0] += w->exact_p[at + (size_t)i] * out[i];
            }
        }
    }
}

/* x += scale step p, r -= step q; part[1]: r.m^-1 r */
static void fsi__viscous_advance_exact(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    const int rows = w->dim * w->cells;
    int n, i;
    (void)chunk;
    for (n = begin; n < end; n++) {
        const float *m = fsi__viscous_set_of(w, w->set[n]).inverse_mass;
        double *part = w->part + FSI__VISCOUS_PARTS * (size_t)n;
        part[1] = 0;
        for (i = 0; i < rows; i++) {
            const size_t o = (size_t)n * (size_t)rows + (size_t)i;
            w->x[o] += w->scale * w->step * w->exact_p[o];
            w->exact_r[o] = m[i] > 0 ? w->exact_r[o] - w->step * w->exact_q[o] : 0;
            w->r[o] = (float)w->exact_r[o];
            part[1] += w->exact_r[o] * w->exact_r[o] * (double)m[i];
        }
    }
}

/* z = M^-1 r of an entry of block n. */
FSI_FN double fsi__viscous_preconditioned(const fsi__viscous *w, const float *inverse_diagonal, int i, size_t o)
{
    return w->levels ? (double)w->z[o] : (double)inverse_diagonal[i] * (double)w->r[o];
}

/* part: r.z, q.z */
static void fsi__viscous_products_exact(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    const int rows = w->dim * w->cells;
    int n, i;
    (void)chunk;
    for (n = begin; n < end; n++) {
        const float *d = fsi__viscous_set_of(w, w->set[n]).inverse_diagonal;
        double *part = w->part + FSI__VISCOUS_PARTS * (size_t)n;
        part[0] = part[1] = 0;
        for (i = 0; i < rows; i++) {
            const size_t o = (size_t)n * (size_t)rows + (size_t)i;
            const double z = fsi__viscous_preconditioned(w, d, i, o);
            part[0] += w->exact_r[o] * z;
            part[1] += w->exact_q[o] * z;
        }
    }
}

/* p = z + turn p */
static void fsi__viscous_turn_exact(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    const int rows = w->dim * w->cells;
    int n, i;
    (void)chunk;
    for (n = begin; n < end; n++) {
        const float *d = fsi__viscous_set_of(w, w->set[n]).inverse_diagonal;
        for (i = 0; i < rows; i++) {
            const size_t o = (size_t)n * (size_t)rows + (size_t)i;
            w->exact_p[o] = fsi__viscous_preconditioned(w, d, i, o) + w->turn * w->exact_p[o];
        }
    }
}

static void fsi__viscous_layout_exact(fsi__viscous *w, fsi__arena *a)
{
    const size_t n = (size_t)w->count, rows = (size_t)(w->dim * w->cells);
    w->exact_r = (double *)fsi__take(a, n * rows, sizeof(double));
    w->exact_q = (double *)fsi__take(a, n * rows, sizeof(double));
    w->exact_p = (double *)fsi__take(a, (n + 1) * rows, sizeof(double));
}

/* From now on vectors are double; p and q are 0. */
static fsi_status fsi__viscous_be_exact(fsi__viscous *w, fsi__viscosity *s)
{
    const size_t n = (size_t)w->count, rows = (size_t)(w->dim * w->cells);
    fsi__arena measure = { NULL, 0, 0 };
    fsi__viscous_layout_exact(w, &measure);
    s->pub.bytes -= s->exact.size;
    if (!fsi__arena_room(s->pub.context, &s->exact, measure.used))
        return fsi__fail(s->pub.context, FSI_ERROR_MEMORY, "fsi_viscosity_solve", -1, (double)measure.used,
            "no memory for viscosity");
    s->pub.bytes += s->exact.size;
    fsi__viscous_layout_exact(w, &s->exact);
    memset(w->exact_q, 0, n * rows * sizeof *w->exact_q);
    memset(w->exact_p, 0, (n + 1) * rows * sizeof *w->exact_p);
    return FSI_OK;
}

/* ---- >>viscosity levels ----

   Stiff liquids: where k is large, D^-1 evens out neighbours only, and what is smooth over n cells takes n iterations.
   So the preconditioner adds the same on coarser grids (Bramble, Pasciak and Xu 1990, Parallel multilevel
   preconditioners):

      z = D_0^-1 r + P (D_1^-1 r_1 + P (D_2^-1 r_2 + ...)),  r_l = P^T r_(l-1),  P: linear interpolation between faces

      fine    |   |   |   |   |        weights along its own axis: 1 on a coarse face, 1/2 and 1/2 between two;
      coarse  |       |       |        along the others: 3/4 and 1/4, at a quarter of a coarse cell from its middle

   A coarse grid has blocks wherever a weight leads, also beyond the box, so that no boundary needs a rule. Its D
   follows from the row sums of A, S = A 1: mass and the pull of prescribed faces stay as they are, the rest, D_0 - S,
   comes from strains, a quarter on each coarser grid:

      D_l = S_l + T_l,  S_l = P^T S_(l-1),  T_l = P^T T_(l-1) / 4,  T_0 = D_0 - S */

/* Weights of fine entries 2J-1 .. 2J+2 in coarse entry J, and the transpose: across, and along the faces' own axis. */
static const float fsi__viscous_weight[2][4] = { { 0.25f, 0.75f, 0.75f, 0.25f }, { 0.5f, 1, 0.5f, 0 } };

/* The block at a place, -1. */
static int fsi__viscous_block_at(const fsi__viscous_level *l, int x, int y, int z)
{
    if (x < 0 || y < 0 || z < 0 || x >= l->blocks[0] || y >= l->blocks[1] || z >= l->blocks[2]) return -1;
    return l->index[((size_t)z * (size_t)l->blocks[1] + (size_t)y) * (size_t)l->blocks[0] + (size_t)x];
}

static void fsi__viscous_place_of(const fsi__viscous_level *l, int n, int *at)
{
    at[0] = l->place[n] % l->blocks[0];
    at[1] = l->place[n] / l->blocks[0] % l->blocks[1];
    at[2] = l->place[n] / l->blocks[0] / l->blocks[1];
}

/* out[j] = sum of weight[t] * in[2 j + t] for j < 8; each is `wide` numbers next to each other, and `step` from the
   next. */
FSI_FN void fsi__viscous_contract(const float *weight, const float *in, int step, int wide, float *out)
{
    int j, x;
    for (j = 0; j < 8; j++) {
        const float *c = in + 2 * j * step;
        for (x = 0; x < wide; x++)
            out[j * step + x] = (weight[0] * c[x] + weight[1] * c[x + step])
                + (weight[2] * c[x + 2 * step] + weight[3] * c[x + 3 * step]);
    }
}

/* The fine entries 2J-1 .. 2J+2 of all J of the coarse block at `at`: those of row (by, bz) of the 4 blocks an axis
   that have some. */
static void fsi__viscous_collect(const fsi__viscous *w, const fsi__viscous_level *fine, const int *at, int a, int by,
    int bz, float *box)
{
    const size_t rows = (size_t)(w->dim * w->cells);
    const float *from[4];
    int b, x, y, z;
    for (x = 0; x < 4; x++) {
        b = fsi__viscous_block_at(fine, 2 * at[0] - 3 + x, 2 * at[1] - 3 + by, w->dim == 3 ? 2 * at[2] - 3 + bz : 0);
        /* none: the zero block */
        from[x] = (b < 0 ? w->p + (size_t)w->count * rows : fine->r + (size_t)b * rows) + a * w->cells;
    }
    for (z = bz == 0 ? 7 : 0; z < (bz == 3 || w->dim == 2 ? 1 : 8); z++)
        for (y = by == 0 ? 7 : 0; y < (by == 3 ? 1 : 8); y++) {
        const int row = (z * 8 + y) * 8;
        float *o = box + ((w->dim == 3 ? 8 * bz + z - 7 : 0) * 18 + 8 * by + y - 7) * 18;
        o[0] = from[0][row + 7];
        memcpy(o + 1, from[1] + row, 8 * sizeof *o);
        memcpy(o + 9, from[2] + row, 8 * sizeof *o);
        o[17] = from[3][row];
    }
}

/* r of the coarser grid = P^T r */
static void fsi__viscous_restrict(void *arg, int chunk, int begin, int end)
{
    const fsi__viscous *w = (const fsi__viscous *)arg;
    const fsi__viscous_level *fine = &w->level[w->at], *coarse = fine + 1;
    const int dim = w->dim;
    float box[18 * 18 * 18], last[8 * 18 * 18];
    int n, a, y, z, at[3];
    (void)chunk;
    for (n = begin; n < end; n++) {
        fsi__viscous_place_of(coarse, n, at);
        for (a = 0; a < dim; a++) {
            float *out = coarse->r + ((size_t)n * (size_t)dim + (size_t)a) * (size_t)w->cells;
            for (z = dim == 3 ? 0 : 1; z < (dim == 3 ? 4 : 2); z++) for (y = 0; y < 4; y++)
                fsi__viscous_collect(w, fine, at, a, y, z, box);
            if (dim == 3) fsi__viscous_contract(fsi__viscous_weight[a == 2], box, 324, 324, last);
            else memcpy(last, box, 324 * sizeof *box);
            for (z = 0; z < w->layers; z++)
                fsi__viscous_contract(fsi__viscous_weight[a == 1], last + 324 * z, 18, 18, box + 324 * z);
            for (z = 0; z < w->layers; z++) for (y = 0; y < 8; y++)
                fsi__viscous_contract(fsi__viscous_weight[a == 0], box + (z * 18 + y) * 18, 1, 1,
                    out + (z * 8 + y) * 8);
        }
    }
}

/* out[i] = the value at fine entry i < 8 interpolated from in[0..5], the coarse entries from one before to one behind;
   each is `wide` numbers, `from` or `to` from the next. */
FSI_FN void fsi__viscous_expand(const float *weight, const float *in, int from, int wide, float *out, int to)
{
    int m, x;
    for (m = 0; m < 4; m++) {
        const float *c = in + (m + 1) * from;
        float *o = out + 2 * m * to;
        for (x = 0; x < wide; x++) {
            o[x] = weight[1] * c[x] + weight[3] * c[x - from];
            o[x + to] = weight[2] * c[x] + weight[0] * c[x + from];
        }
    }
}

/* correction: z = D^-1 r + P z of the coarser grid; in place of r, on the finest grid to w->z; part there: r.z */
static void fsi__viscous_prolong(void *arg, int chunk, int begin, int end)
{
    const fsi__viscous *w = (const fsi__viscous *)arg;
    const fsi__viscous_level *fine = &w->level[w->at], *coarse = fine + 1;
    const int dim = w->dim, deep = dim == 3 ? 6 : 1, cells = w->cells;
    float box[216], across[6 * 6 * 8], wide[6 * 8 * 8], all[512], rz[64];
    int n, a, i, x, y, z, at[3];
    (void)chunk;
    for (n = begin; n < end; n++) {
        const float *inverse = w->at ? fine->inverse + (size_t)n * (size_t)(dim * cells)
            : fsi__viscous_set_of(w, w->set[n]).inverse_diagonal;
        double sum[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };

        /* Component after component: the coarse entries around the block. */
        fsi__viscous_place_of(fine, n, at);
        for (a = 0; a < dim; a++) {
            const size_t first = ((size_t)n * (size_t)dim + (size_t)a) * (size_t)cells;
            for (z = 0; z < deep; z++) for (y = 0; y < 6; y++) for (x = 0; x < 6; x++) {
                const int cx = 4 * at[0] + 7 + x, cy = 4 * at[1] + 7 + y, cz = dim == 3 ? 4 * at[2] + 7 + z : 0;
                const int b = fsi__viscous_block_at(coarse, cx >> 3, cy >> 3, cz >> 3);
                box[(z * 6 + y) * 6 + x] = b < 0 ? 0
                    : coarse->r[((size_t)b * (size_t)dim + (size_t)a) * (size_t)cells
                    + (size_t)(((cz & 7) * 8 + (cy & 7)) * 8 + (cx & 7))];
            }

            /* Between them, axis after axis. */
            for (i = 0; i < 6 * deep; i++)
                fsi__viscous_expand(fsi__viscous_weight[a == 0], box + 6 * i, 1, 1, across + 8 * i, 1);
            for (z = 0; z < deep; z++)
                fsi__viscous_expand(fsi__viscous_weight[a == 1], across + 48 * z, 8, 8, wide + 64 * z, 8);
            if (dim == 3) fsi__viscous_expand(fsi__viscous_weight[a == 2], wide, 64, 64, all, 64);
            else memcpy(all, wide, 64 * sizeof *all);

            /* The sum with the diagonal's part. */
            for (i = 0; i < cells; i += 64) {
                const float *r = fine->r + first + i, *d = inverse + a * cells + i;
                float v[64];
                for (x = 0; x < 64; x++) v[x] = d[x] > 0 ? d[x] * r[x] + all[i + x] : 0;
                memcpy(rz, v, sizeof v);
                for (x = 0; x < 64; x++) rz[x] *= r[x];
                fsi__viscous_carry(sum, rz);
                memcpy((w->at ? fine->r : w->z) + first + i, v, sizeof v);
            }
        }
        if (w->at == 0) w->part[FSI__VISCOUS_PARTS * (size_t)n] = fsi__viscous_fold(sum);
    }
}

/* The coarsest correction. */
static void fsi__viscous_coarsest(const fsi__viscous *w)
{
    const fsi__viscous_level *l = &w->level[w->levels];
    const size_t n = (size_t)l->count * (size_t)(w->dim * w->cells);
    size_t i;
    for (i = 0; i < n; i++) l->r[i] *= l->inverse[i];
}

static void fsi__viscous_run_level(fsi__viscous *w, int at, int count, fsi__range_fn *fn)
{
    w->at = at;
    /* 2 ns at least for a row of the level that is written */
    fsi__parallel_work(w->grid->context, count, FSI__VISCOUS_GRAIN, 2.0 * w->dim * w->cells * count, fn, w);
}

/* z = M^-1 r; the sum r.z */
static double fsi__viscous_precondition(fsi__viscous *w)
{
    int l;
    if (w->levels == 0) return fsi__viscous_sum(w, 0);
    for (l = 0; l < w->levels; l++) fsi__viscous_run_level(w, l, w->level[l + 1].count, fsi__viscous_restrict);
    fsi__viscous_coarsest(w);
    for (l = w->levels - 1; l >= 0; l--) fsi__viscous_run_level(w, l, w->level[l].count, fsi__viscous_prolong);
    return fsi__viscous_sum(w, 0);
}

/* r = S of the finest grid (turn 1), or T, from q = A 1. */
static void fsi__viscous_split(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    const int rows = w->dim * w->cells;
    int n, i;
    (void)chunk;
    for (n = begin; n < end; n++) {
        const fsi__viscous_set set = fsi__viscous_set_of(w, w->set[n]);
        for (i = 0; i < rows; i++) {
            const size_t o = (size_t)n * (size_t)rows + (size_t)i;
            const float d = set.inverse_diagonal[i];
            float s = w->q[o];
            if (d > 0) {
                if (s < set.mass[i]) s = set.mass[i];
                if (s > 1 / d) s = 1 / d;
            }
            w->r[o] = d > 0 ? (w->turn > 0 ? s : 1 / d - s) : 0;
        }
    }
}
static void fsi__viscous_ones(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    const int rows = w->dim * w->cells;
    int n, i;
    (void)chunk;
    for (n = begin; n < end; n++) {
        const fsi__viscous_set set = fsi__viscous_set_of(w, w->set[n]);
        for (i = 0; i < rows; i++) w->p[(size_t)n * (size_t)rows + (size_t)i] = set.inverse_diagonal[i] > 0;
    }
}

/* D^-1 of all coarser grids. */
static void fsi__viscous_weigh_levels(fsi__viscous *w)
{
    int l, pass;
    size_t i;
    fsi__viscous_run(w, 0.2, fsi__viscous_ones);
    fsi__viscous_run(w, 1, fsi__viscous_multiply);
    for (pass = 0; pass < 2; pass++) {
        float times = 1;
        w->turn = 1 - pass;
        fsi__viscous_run(w, 0.5, fsi__viscous_split);
        for (l = 0; l < w->levels; l++) {
            fsi__viscous_level *c = &w->level[l + 1];
            const size_t n = (size_t)c->count * (size_t)(w->dim * w->cells);
            fsi__viscous_run_level(w, l, c->count, fsi__viscous_restrict);
            times *= 0.25f;
            for (i = 0; i < n; i++) {
                const float d = pass == 0 ? c->r[i] : c->inverse[i] + times * c->r[i];
                c->inverse[i] = pass == 0 ? d : d > 0 ? 1 / d : 0;
            }
        }
    }
}

/* When to stop. A >= m, so the error of x in the norm of J is at most |r| by m^-1; |x|^2 in that norm is what the steps
   gained, the sum of step * r.D^-1 r. Residuals that rounding of u* can make (`least`) are not solved for. Float
   vectors reach some 1e-6 of the first residual: then, and before the answer is believed, the iteration starts afresh
   from the true one. */
static double fsi__viscous_target(const fsi__viscous *w, double gained, double least)
{
    const double t = w->flow->tolerance * sqrt(gained);
    return t > least ? t : least;
}

/* z = M^-1 r and p by it; turn is 0 at the first iteration. Returns r.z. */
static double fsi__viscous_aim(fsi__viscous *w, double before)
{
    double rz = fsi__viscous_precondition(w);
    const int first = before == 0;
    if (w->exact_r) {
        fsi__viscous_run(w, 1, fsi__viscous_products_exact);
        rz = fsi__viscous_sum(w, 0);
        w->turn = first ? 0 : -w->step * fsi__viscous_sum(w, 1) / before;
        fsi__viscous_run(w, 0.8, fsi__viscous_turn_exact);
    } else if (!first) {
        w->turn = rz / before;
        fsi__viscous_run(w, 0.2, fsi__viscous_turn);
    } else if (w->levels) memcpy(w->p, w->z, (size_t)w->count * (size_t)(w->dim * w->cells) * sizeof *w->p);
    return rz;
}

static fsi_status fsi__viscous_iterate(fsi__viscous *w, fsi__viscosity *s, double left, double least)
{
    int most = w->flow->max_iters;
    double gained = 0, start = HUGE_VAL, rz;
    if (left <= least) return FSI_OK; /* a rigid motion */

    /* The true residual: is it small enough? */
    for (;;) {
        w->scale = left > 0 ? left : start;
        fsi__viscous_run(w, 1.5, fsi__viscous_start);
        left = sqrt(fsi__viscous_sum(w, 1)) * w->scale;
        s->pub.residual = gained > 0 ? left / sqrt(gained) : 1;
        if (left <= fsi__viscous_target(w, gained, least)) return FSI_OK;

        /* No progress in float: go on in double. */
        if (s->pub.iterations >= most || !(left < start / 2)) {
            if (w->exact_r)
                return fsi__fail(s->pub.context, FSI_ERROR_CONVERGENCE, "fsi_viscosity_solve", s->pub.iterations,
                    s->pub.residual, "viscosity: after %d iterations the residual is %g of the change, not %g",
                    s->pub.iterations, s->pub.residual, w->flow->tolerance);
            if (fsi__viscous_be_exact(w, s) != FSI_OK) return FSI_ERROR_MEMORY;
            most = s->pub.iterations + FSI__VISCOUS_EXACT * w->flow->max_iters;
            start = HUGE_VAL;
            continue;
        }

        /* Conjugate gradients from this residual. */
        start = left;
        rz = fsi__viscous_aim(w, 0);
        while (left > fsi__viscous_target(w, gained, least) && left > (w->exact_r ? 1e-12 : 1e-6) * start
            && s->pub.iterations < most) {
            fsi__viscous_run(w, 1, w->exact_r ? fsi__viscous_multiply_exact : fsi__viscous_multiply);
            w->step = rz / fsi__viscous_sum(w, 0);
            if (!fsi_is_finite(w->step)) break;
            fsi__viscous_run(w, 0.4, w->exact_r ? fsi__viscous_advance_exact : fsi__viscous_advance);
            gained += w->step * rz * w->scale * w->scale;
            left = sqrt(fsi__viscous_sum(w, 1)) * w->scale;
            rz = fsi__viscous_aim(w, rz);
            s->pub.iterations++;
        }

        /* x becomes exact again. */
        if (!w->exact_r) fsi__viscous_run(w, 0.3, fsi__viscous_settle);
        w->moved = 1;
    }
}

/* ---- >>viscosity momentum ----

   The exact x has no momentum and no moment of it when nothing holds the liquid. The iterated one has some, as large as
   its error: it is taken away, by the projection of x onto rigid motions in the product of m. That only lowers the
   error. */

/* Velocity of rigid motion t at faces of `axis` at r: t = 0 along the axis, 1 and 2 the turns about the next axes
   (2D: 1, about z). Their numbers. */
FSI_FN double fsi__viscous_rigid(int dim, int axis, int t, const double *r)
{
    if (t == 0) return 1;
    if (dim == 2) return axis ? r[0] : -r[1];
    return t == 1 ? r[(axis + 2) % 3] : -r[(axis + 1) % 3];
}
FSI_FN int fsi__viscous_rigid_number(int dim, int axis, int t)
{
    return t == 0 ? axis : dim == 2 ? 2 : 3 + (axis + t) % 3;
}

/* Where entry i of block n stands, in cells from the middle of the grid. */
FSI_FN void fsi__viscous_position(const fsi__viscous *w, int n, int axis, int i, double *r)
{
    int corner[3], a;
    fsi_grid_corner(w->grid, w->block[n], corner);
    for (a = 0; a < 3; a++) r[a] = corner[a] + (i >> (3 * a) & 7) + (a == axis ? 0 : 0.5) - 0.5 * w->grid->n[a];
}

/* part: the moments of m x, then the lower triangle of those of m, row by row */
static void fsi__viscous_moments(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    double r[3], v[3];
    int n, a, i, s, t, at[3];
    (void)chunk;
    for (n = begin; n < end; n++) {
        const fsi__viscous_set set = fsi__viscous_set_of(w, w->set[n]);
        double *part = w->part + FSI__VISCOUS_PARTS * (size_t)n, *gram = part + 6;
        const double *x = w->x + (size_t)n * (size_t)(w->dim * w->cells);

        /* Moments of each unknown about all rigid motions. */
        memset(part, 0, FSI__VISCOUS_PARTS * sizeof *part);
        for (a = 0; a < w->dim; a++) for (i = 0; i < w->cells; i++) {
            const int o = a * w->cells + i;
            const double m = (double)set.mass[o];
            if (!(set.inverse_diagonal[o] > 0)) continue;
            fsi__viscous_position(w, n, a, i, r);
            for (t = 0; t < w->dim; t++) {
                v[t] = fsi__viscous_rigid(w->dim, a, t, r);
                at[t] = fsi__viscous_rigid_number(w->dim, a, t);
                part[at[t]] += m * x[o] * v[t];
                for (s = 0; s <= t; s++) {
                    const int row = at[s] > at[t] ? at[s] : at[t], column = at[s] + at[t] - row;
                    gram[row * (row + 1) / 2 + column] += m * v[s] * v[t];
                }
            }
        }
    }
}

/* c = G^-1 g, 6 rows, by L D L^T; motions that are linear combinations of others (one face, a row of faces) are left
   out. */
static void fsi__viscous_solve_moments(int n, double *gram, double *g)
{
    double l[6][6], d[6];
    int i, j, k;
    for (i = 0; i < n; i++) {
        for (j = 0; j <= i; j++) {
            double v = gram[i * (i + 1) / 2 + j];
            for (k = 0; k < j; k++) v -= l[i][k] * l[j][k] * d[k];
            if (j < i) l[i][j] = d[j] > 0 ? v / d[j] : 0;
            else d[i] = v > 1e-10 * gram[i * (i + 1) / 2 + i] ? v : 0;
        }
    }
    for (i = 0; i < n; i++) for (k = 0; k < i; k++) g[i] -= l[i][k] * g[k];
    for (i = 0; i < n; i++) g[i] = d[i] > 0 ? g[i] / d[i] : 0;
    for (i = n - 1; i >= 0; i--) for (k = i + 1; k < n; k++) g[i] -= l[k][i] * g[k];
}

static void fsi__viscous_still(fsi__viscous *w, double *motion)
{
    double sum[FSI__VISCOUS_PARTS];
    int k;
    fsi__viscous_run(w, 2, fsi__viscous_moments);
    for (k = 0; k < FSI__VISCOUS_PARTS; k++) sum[k] = fsi__viscous_sum(w, k);
    fsi__viscous_solve_moments(w->dim == 3 ? 6 : 3, sum + 6, sum);
    memcpy(motion, sum, 6 * sizeof *motion);
}

/* ---- >>viscosity solve ---- */

/* u += x - the rigid motion */
static void fsi__viscous_commit(void *arg, int chunk, int begin, int end)
{
    fsi__viscous *w = (fsi__viscous *)arg;
    double r[3], x;
    int n, a, i, t;
    (void)chunk;
    for (n = begin; n < end; n++) {
        const fsi__viscous_set set = fsi__viscous_set_of(w, w->set[n]);
        for (a = 0; a < w->dim; a++) {
            fsi_real *u = w->flow->u[a]->value + (size_t)w->block[n] * (size_t)w->cells;
            for (i = 0; i < w->cells; i++) {
                if (!(set.inverse_diagonal[a * w->cells + i] > 0)) continue;
                x = w->x[((size_t)n * (size_t)w->dim + (size_t)a) * (size_t)w->cells + (size_t)i];
                if (w->free) {
                    fsi__viscous_position(w, n, a, i, r);
                    for (t = 0; t < w->dim; t++)
                        x -= w->motion[fsi__viscous_rigid_number(w->dim, a, t)] * fsi__viscous_rigid(w->dim, a, t, r);
                }
                u[i] = (fsi_real)((double)u[i] + x);
            }
        }
    }
}

static fsi_status fsi__viscous_check(const fsi_viscosity_flow *flow, fsi_context *context)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_viscosity_flow, viscosity, FSI__REAL, 0, FSI__HUGE, 0),
        FSI__FIELD(fsi_viscosity_flow, density, FSI__REAL, 0, FSI__HUGE, FSI__ABOVE),
        FSI__FIELD(fsi_viscosity_flow, dt, FSI__REAL, 0, FSI__HUGE, 0),
        FSI__FIELD(fsi_viscosity_flow, tolerance, FSI__DOUBLE, 0, 1, FSI__ABOVE | FSI__BELOW),
        FSI__FIELD(fsi_viscosity_flow, max_iters, FSI__INT, 1, FSI__HUGE, 0),
        FSI__FINITE(fsi_viscosity_flow, wall_velocity[0]), FSI__FINITE(fsi_viscosity_flow, wall_velocity[1]),
        FSI__FINITE(fsi_viscosity_flow, wall_velocity[2]), FSI__FINITE(fsi_viscosity_flow, wall_velocity[3]),
        FSI__FINITE(fsi_viscosity_flow, wall_velocity[4]), FSI__FINITE(fsi_viscosity_flow, wall_velocity[5])
    };
    static const fsi__where at = { "fsi_viscosity_solve", "flow.", -1, 3 };
    const char *const f = at.function;
    const fsi_grid *g = flow->phi->grid;
    double k;
    int a;

    /* Fields. */
    for (a = 0; a < g->dim; a++) {
        if (!fsi__is_field(flow->u[a])) return FSI_ERROR_COOKIE;
        if (flow->u[a]->grid != g || (int)flow->u[a]->place != (int)FSI_FACES_X + a)
            return fsi__fail(context, FSI_ERROR_ARGUMENT, f, a, 0,
                "u[%d] is not on the faces of its axis in phi's grid", a);
    }
    if (flow->phi->place != FSI_CELLS) return fsi__fail(context, FSI_ERROR_ARGUMENT, f, -1, 0, "phi is not at cells");

    /* Numbers. */
    FSI__TRY(fsi__check_rows(context, &at, flow, flow->mu ? rows + 1 : rows, 4 + !flow->mu + 2 * g->dim));
    k = (double)flow->dt / ((double)flow->density * (double)g->dx * (double)g->dx) * (flow->mu ? 1
        : (double)flow->viscosity);
    if (!(k < 1e30))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, f, -1, k,
            "dt viscosity / (density dx^2) is %g, too much for a float", k);
    return FSI_OK;
}

/* Which blocks are solved in, and which lie around each. */
static void fsi__viscous_list(fsi__viscous *w)
{
    const fsi_grid *g = w->grid;
    int b, n, x, y, z, corner[3], *around = w->around, alike[FSI__VISCOUS_ALIKE];
    for (n = 1, alike[0] = 0; n < FSI__VISCOUS_ALIKE; n++) alike[n] = -1;
    for (b = n = 0, w->mixed = 0; b < g->block_count; b++) {
        int *first = w->kind[b] < FSI__VISCOUS_ALIKE ? &alike[w->kind[b]] : NULL;
        if (w->number[b] < 0) continue;
        w->block[n] = b;
        w->maker[n] = !first || *first < 0;
        w->set[n] = w->maker[n] ? ++w->mixed : *first;
        if (first) *first = w->set[n];
        n++;
    }
    for (n = 0; n < w->count; n++) {
        fsi_grid_corner(g, w->block[n], corner);
        for (z = -8; z <= 8; z += 8) for (y = -8; y <= 8; y += 8) for (x = -8; x <= 8; x += 8) {
            const long long e = fsi_grid_entry(g, corner[0] + x, corner[1] + y, corner[2] + z);
            *around++ = e < 0 || w->number[e / g->block_cells] < 0 ? w->count : w->number[e / g->block_cells];
        }
    }
}

static void fsi__viscous_plan(fsi__viscous *w, fsi__arena *a)
{
    const size_t n = (size_t)w->grid->block_count;
    w->kind = (unsigned char *)fsi__take(a, n, 1);
    w->solid = (unsigned char *)fsi__take(a, n, 1);
    w->number = (int *)fsi__take(a, n, sizeof(int));
}

static void fsi__viscous_layout(fsi__viscous *w, fsi__arena *a)
{
    const size_t n = (size_t)w->count, rows = (size_t)(w->dim * w->cells);
    w->block = (int *)fsi__take(a, n, sizeof(int));
    w->set = (int *)fsi__take(a, n, sizeof(int));
    w->maker = (unsigned char *)fsi__take(a, n, 1);
    w->around = (int *)fsi__take(a, 27 * n, sizeof(int));
    w->part = (double *)fsi__take(a, FSI__VISCOUS_PARTS * n, sizeof(double));
    w->bad = (long long *)fsi__take(a, n, sizeof(long long));
    w->coefficient = (float *)fsi__take(a, ((size_t)w->mixed + 1) * w->set_size, sizeof(float));
    w->x = (double *)fsi__take(a, (n + 1) * rows, sizeof(double));
    w->b = (double *)fsi__take(a, n * rows, sizeof(double));
    w->d = (float *)fsi__take(a, n * rows, sizeof(float));
    w->r = (float *)fsi__take(a, n * rows, sizeof(float));
    w->q = (float *)fsi__take(a, n * rows, sizeof(float));
    w->p = (float *)fsi__take(a, (n + 1) * rows, sizeof(float));
}

FSI_API fsi_viscosity_flow fsi_viscosity_default_flow(void)
{
    fsi_viscosity_flow d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('q', fsi_viscosity_flow);
    d.density = 1000;
    d.tolerance = 1e-4;
    d.max_iters = 200;
    memset(d.wall_closed, 1, sizeof d.wall_closed);
    return d;
}

FSI_API fsi_status fsi_viscosity_create(fsi_viscosity **out, fsi_context *context)
{
    fsi__viscosity *s;
    if (!fsi__is_context(context)) return FSI_ERROR_COOKIE;
    if (!out) return fsi__fail(context, FSI_ERROR_ARGUMENT, "fsi_viscosity_create", -1, 0, "out is NULL");
    *out = NULL;
    s = (fsi__viscosity *)fsi__alloc(context, 1, sizeof *s);
    if (!s) return fsi__fail(context, FSI_ERROR_MEMORY, "fsi_viscosity_create", -1, 0, "no memory for viscosity");
    s->pub.cookie = FSI__COOKIE('q', fsi_viscosity);
    s->pub.context = context;
    s->pub.impl = s;
    *out = &s->pub;
    return FSI_OK;
}

FSI_API void fsi_viscosity_destroy(fsi_viscosity *viscosity)
{
    fsi__viscosity *s;
    if (!viscosity || viscosity->cookie != FSI__COOKIE('q', fsi_viscosity)) return;
    s = (fsi__viscosity *)viscosity->impl;
    fsi__arena_free(s->pub.context, &s->plan);
    fsi__arena_free(s->pub.context, &s->arena);
    fsi__arena_free(s->pub.context, &s->grids);
    fsi__arena_free(s->pub.context, &s->coarse);
    fsi__arena_free(s->pub.context, &s->exact);
    s->pub.cookie = 0;
    fsi__free(s->pub.context, s, 1, sizeof *s);
}

/* Sorts and counts the blocks, and makes room for the unknowns. */
static fsi_status fsi__viscous_prepare(fsi__viscous *w, fsi__viscosity *s)
{
    static const char *const f = "fsi_viscosity_solve";
    const fsi_grid *g = w->grid;
    fsi__arena measure = { NULL, 0, 0 };
    unsigned char seen[FSI__VISCOUS_ALIKE];
    int b;
    memset(seen, 0, sizeof seen);

    /* Kinds of blocks. */
    fsi__viscous_plan(w, &measure);
    if (!fsi__arena_room(s->pub.context, &s->plan, measure.used))
        return fsi__fail(s->pub.context, FSI_ERROR_MEMORY, f, -1, (double)measure.used, "no memory for viscosity");
    fsi__viscous_plan(w, &s->plan);
    fsi__grid_light(g, FSI__VISCOUS_GRAIN, w->flow->solid[0] ? 300 : 2, fsi__viscous_find_solids, w);
    fsi__grid_light(g, FSI__VISCOUS_GRAIN, 1500, fsi__viscous_sort, w);

    /* Numbers of blocks with unknowns. */
    for (b = 0; b < g->block_count; b++) {
        if (w->kind[b] == FSI__VISCOUS_BROKEN)
            return fsi__fail(s->pub.context, FSI_ERROR_NAN, f, b, 0, "phi near block %d is not finite", b);
        w->number[b] = w->kind[b] == FSI__VISCOUS_EMPTY ? -1 : w->count++;
        w->mixed += w->kind[b] == FSI__VISCOUS_MIXED || (w->kind[b] < FSI__VISCOUS_ALIKE && !seen[w->kind[b]]);
        if (w->kind[b] < FSI__VISCOUS_ALIKE) seen[w->kind[b]] = 1;
    }

    /* Room for unknowns. */
    w->set_size = (size_t)(w->dim == 2 ? 2 : 4) * (size_t)w->span + 3 * (size_t)(w->dim * w->cells);
    memset(&measure, 0, sizeof measure);
    fsi__viscous_layout(w, &measure);
    if (!fsi__arena_room(s->pub.context, &s->arena, measure.used))
        return fsi__fail(s->pub.context, FSI_ERROR_MEMORY, f, -1, (double)measure.used,
            "no memory for viscosity in %d blocks", w->count);
    fsi__viscous_layout(w, &s->arena);
    s->pub.bytes = s->plan.size + s->arena.size + s->exact.size;
    fsi__viscous_list(w);
    memset(w->x, 0, ((size_t)w->count + 1) * (size_t)(w->dim * w->cells) * sizeof *w->x);
    memset(w->p + (size_t)w->count * (size_t)(w->dim * w->cells), 0, (size_t)(w->dim * w->cells) * sizeof *w->p);
    if (!w->flow->mu) fsi__viscous_within(w);
    return FSI_OK;
}

/* ---- >>viscosity coarser grids ---- */

static size_t fsi__viscous_places(const fsi__viscous_level *l)
{
    return (size_t)l->blocks[0] * (size_t)l->blocks[1] * (size_t)l->blocks[2];
}

static void fsi__viscous_layout_grids(fsi__viscous *w, fsi__arena *a)
{
    int l;
    for (l = 0; l <= w->levels; l++) {
        w->level[l].index = (int *)fsi__take(a, fsi__viscous_places(&w->level[l]), sizeof(int));
        w->level[l].place = (int *)fsi__take(a, fsi__viscous_places(&w->level[l]), sizeof(int));
    }
}

static void fsi__viscous_layout_levels(fsi__viscous *w, fsi__arena *a)
{
    const size_t rows = (size_t)(w->dim * w->cells);
    int l;
    w->z = (float *)fsi__take(a, (size_t)w->count * rows, sizeof(float));
    for (l = 1; l <= w->levels; l++) {
        w->level[l].r = (float *)fsi__take(a, (size_t)w->level[l].count * rows, sizeof(float));
        w->level[l].inverse = (float *)fsi__take(a, (size_t)w->level[l].count * rows, sizeof(float));
    }
}

/* The blocks of a coarser grid: those that a weight of a fine block leads to. */
static void fsi__viscous_coarsen(const fsi__viscous *w, const fsi__viscous_level *fine, fsi__viscous_level *coarse)
{
    const size_t places = fsi__viscous_places(coarse);
    int n, t, a, at[3], c[3] = { 0, 0, 0 };
    size_t p;
    for (p = 0; p < places; p++) coarse->index[p] = -1;
    for (n = 0; n < fine->count; n++) {
        fsi__viscous_place_of(fine, n, at);
        for (t = 0; t < 1 << w->dim; t++) {
            for (a = 0; a < w->dim; a++) c[a] = ((at[a] + (t >> a & 1 ? 1 : -1)) >> 1) + 1;
            coarse->index[((size_t)c[2] * (size_t)coarse->blocks[1] + (size_t)c[1]) * (size_t)coarse->blocks[0]
                + (size_t)c[0]] = 0;
        }
    }
    for (p = 0, coarse->count = 0; p < places; p++) {
        if (coarse->index[p] < 0) continue;
        coarse->place[coarse->count] = (int)p;
        coarse->index[p] = coarse->count++;
    }
}

/* Coarser grids, as long as there is something for them to do: each has a quarter of the k below it. */
static fsi_status fsi__viscous_make_levels(fsi__viscous *w, fsi__viscosity *s)
{
    static const char *const f = "fsi_viscosity_solve";
    fsi__viscous_level *l = w->level;
    fsi__arena measure = { NULL, 0, 0 };
    double stiff = 0;
    int n, a;

    /* The largest k, and how many levels that asks for. */
    for (n = 0; n < w->count; n++) if (stiff < w->part[FSI__VISCOUS_PARTS * (size_t)n + 4])
        stiff = w->part[FSI__VISCOUS_PARTS * (size_t)n + 4];
    for (a = 0; a < 3; a++) l->blocks[a] = w->grid->blocks[a];
    for (w->levels = 0; w->levels < FSI__VISCOUS_LEVELS && stiff > FSI__VISCOUS_STIFF; stiff /= 4, w->levels++)
        for (a = 0; a < 3; a++) l[w->levels + 1].blocks[a] = a < w->dim ? (l[w->levels].blocks[a] + 1) / 2 + 2 : 1;
    if (w->levels == 0) return FSI_OK;

    /* Blocks of all levels. */
    fsi__viscous_layout_grids(w, &measure);
    if (!fsi__arena_room(s->pub.context, &s->grids, measure.used))
        return fsi__fail(s->pub.context, FSI_ERROR_MEMORY, f, -1, (double)measure.used, "no memory for viscosity");
    fsi__viscous_layout_grids(w, &s->grids);
    l->count = w->count;
    l->r = w->r;
    for (n = 0; n < (int)fsi__viscous_places(l); n++)
        l->index[n] = w->grid->index[n] < 0 ? -1 : w->number[w->grid->index[n]];
    for (n = 0; n < w->count; n++) l->place[n] = w->grid->place[w->block[n]];
    for (n = 0; n < w->levels; n++) fsi__viscous_coarsen(w, l + n, l + n + 1);

    /* Unknowns of coarse levels. */
    memset(&measure, 0, sizeof measure);
    fsi__viscous_layout_levels(w, &measure);
    if (!fsi__arena_room(s->pub.context, &s->coarse, measure.used))
        return fsi__fail(s->pub.context, FSI_ERROR_MEMORY, f, -1, (double)measure.used, "no memory for viscosity");
    fsi__viscous_layout_levels(w, &s->coarse);
    s->pub.bytes += s->grids.size + s->coarse.size;
    fsi__viscous_weigh_levels(w);
    return FSI_OK;
}

FSI_API fsi_status fsi_viscosity_solve(fsi_viscosity *viscosity, fsi_viscosity_flow *flow)
{
    static const char *const f = "fsi_viscosity_solve";
    fsi__viscous w;
    fsi_status status;
    double start, left, least;
    int n;
    fsi__viscosity *s;

    /* Input. */
    if (!viscosity || !flow) return FSI_ERROR_ARGUMENT;
    if (viscosity->cookie != FSI__COOKIE('q', fsi_viscosity) || flow->cookie != FSI__COOKIE('q', fsi_viscosity_flow)
        || !fsi__is_field(flow->phi))
        return FSI_ERROR_COOKIE;
    s = (fsi__viscosity *)viscosity->impl;
    memset(&w, 0, sizeof w);
    w.flow = flow;
    w.grid = flow->phi->grid;
    w.dim = w.grid->dim;
    w.cells = w.grid->block_cells;
    w.layers = w.dim == 3 ? 8 : 1;
    w.span = w.dim == 3 ? 1000 : 100;
    FSI__TRY(fsi__viscous_check(flow, s->pub.context));

    /* Reset the results of the last step. */
    start = fsi__now(s->pub.context);
    s->pub.unknowns = s->pub.iterations = 0;
    s->pub.residual = s->pub.seconds = 0;
    w.k = (double)flow->dt / ((double)flow->density * (double)w.grid->dx * (double)w.grid->dx) * (flow->mu ? 1
        : (double)flow->viscosity);
    if (w.k == 0) return FSI_OK;

    /* The equations. */
    FSI__TRY(fsi__viscous_prepare(&w, s));
    fsi__viscous_run(&w, 5, fsi__viscous_begin);
    for (n = 0; n < w.count; n++) {
        if (w.bad[n] >= 0)
            return fsi__fail(s->pub.context, FSI_ERROR_ARGUMENT, f, w.bad[n], (double)flow->mu[w.bad[n]],
                "mu[%lld] is %g", w.bad[n], (double)flow->mu[w.bad[n]]);
        if (w.bad[n] == -2)
            return fsi__fail(s->pub.context, FSI_ERROR_NAN, f, w.block[n], 0, "u in or near block %d is not finite",
                w.block[n]);
    }

    /* How large they are; coarse grids; the solve. */
    s->pub.unknowns = (int)fsi__viscous_sum(&w, 2);
    w.free = fsi__viscous_sum(&w, 3) == 0;
    left = sqrt(fsi__viscous_sum(&w, 0));
    least = (double)FSI_REAL_EPS * sqrt(fsi__viscous_sum(&w, 1));
    status = fsi__viscous_make_levels(&w, s);
    if (status == FSI_OK) status = fsi__viscous_iterate(&w, s, left, least);
    if (status == FSI_OK && s->pub.iterations > 0) {
        if (w.free) fsi__viscous_still(&w, w.motion);
        fsi__viscous_run(&w, 0.5, fsi__viscous_commit);
    }
    s->pub.seconds = fsi__now(s->pub.context) - start;
    return status;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
