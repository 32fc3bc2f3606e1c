/* fsi_levelset.h - liquid as a level set on a sparse grid, which keeps the volume of each of its parts.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_levelset.h"
         #include "fsi_levelset.h"

   A DROP FALLS INTO A POOL
      fsi_levelset_desc d = fsi_levelset_default_desc();   // physical defaults, SI units
      fsi_levelset *water;
      fsi_box3 pool;
      int step;
      d.n[0] = 64; d.n[1] = 64; d.n[2] = 96;               // cells; only those near the liquid cost anything
      d.dx = 0.002f;                                       // of 2 mm
      d.surface_tension = 0.0728f;
      if (fsi_levelset_create(&water, &d) != FSI_OK) return 1;
      pool.lo = fsi_v3(0, 0, 0);
      pool.hi = fsi_v3(0.128f, 0.128f, 0.04f);
      fsi_levelset_fill_box(water, pool, fsi_v3(0, 0, 0));
      fsi_levelset_fill_sphere(water, fsi_v3(0.064f, 0.064f, 0.1f), 0.015f, fsi_v3(0, 0, -1));
      for (step = 0; step < 30; step++) {
          if (fsi_levelset_step(water, (fsi_real)(1.0 / 60)) != FSI_OK) { puts(fsi_levelset_error(water)->message); break; }
          printf("%g s: %d parts, volume off by %g\n", water->time, water->component_count, water->stats.volume_error);
      }
      fsi_levelset_destroy(water);

   HOW IT WORKS
      The liquid is where phi < 0, on a sparse grid (fsi_grid.h). A step moves phi and the velocities along themselves, gives each connected
      component the volume that it should have by the smallest change of phi, and makes the velocities free of divergence, before and after
      (the fluid part of the paper on level-set liquid coupled to shells and rods). Targets of volumes follow the liquid through splits and merges: their sum
      changes only where liquid is added, or a component vanishes with none near (stats.lost_volume).
   WHAT IT DOES NOT DO (yet)
      Obstacles, bodies, viscosity, contact angles, open sides, taps and drains, save and load.
   MACROS: those of fsi.h.
   UNITS: SI. In 2D volumes, masses and energies are per metre of depth.
   PRECISION: fields in fsi_real, sums and volumes in double. Recommended: double.
   STACK: up to 100 kB in the caller's thread and in each of the context's.
   COST: about 0.9 us a liquid cell and substep, two projections included; 250 bytes a cell of a block.
*/
#ifndef FSI_LEVELSET_H
#define FSI_LEVELSET_H

#include "fsi_grid.h"

/* How surface tension acts. JUMP: the pressure jumps by gamma times curvature where the surface crosses a face (ghost fluid).
   DELTA: the paper's force, spread over a band of 6 cells (its equation 8, one-sided: half of it would act on air): noisy, for comparison. */
typedef enum fsi_levelset_tension { FSI_LEVELSET_TENSION_JUMP, FSI_LEVELSET_TENSION_DELTA } fsi_levelset_tension;

/* How to make a simulator. Start from fsi_levelset_default_desc(). */
typedef struct fsi_levelset_desc {
    uint32_t cookie;
    fsi_context *context;      /* default NULL: malloc, serial or OpenMP, no clock */
    int dim;                   /* 3 (default) or 2 */
    int n[3];                  /* cells of the box along each axis; default 64 */
    fsi_real dx;               /* edge of a cell [m]; default 1.0/64 */
    fsi_vec3 origin;           /* lower corner of the box [m]; default 0 */
    fsi_real density;          /* [kg/m^3]; default 1000 */
    fsi_real surface_tension;  /* gamma [N/m]; default 0 */
    fsi_levelset_tension tension; /* default JUMP */
    fsi_vec3 gravity;          /* [m/s^2]; default (0, 0, -9.81) */
    fsi_real cfl;              /* substeps are chosen so that nothing moves farther than cfl * dx in one, 0.05 to 4; default 0.7 */
    fsi_real capillary_cfl;    /* nor longer than this times sqrt(density dx^3/(4 pi surface_tension)), 0.05 to 5; default 1. Up to 1 (2D: 1.5) short
                                  waves are stable; longer substeps damp them at the price of a second projection */
    int max_substeps;          /* of one call; default 50 */
    int conserve_volume;       /* default 1: each component keeps its volume; 0: what advection loses is lost */
    fsi_grid_scheme velocity_scheme, phi_scheme; /* advection; defaults LINEAR; QUINTIC keeps more energy and sharper shapes, at 1.3 times the time */
    double pressure_tolerance; /* divergence left by the first projection, as a share of the largest before; default 1e-6 */
    int max_iters;             /* of a pressure solve; default 200: beyond that a step fails with FSI_ERROR_CONVERGENCE */
    double volume_tolerance;   /* |S - V0| / V0 of each component; default 1e-8 */
} fsi_levelset_desc;

/* A connected piece of liquid. */
typedef struct fsi_levelset_component {
    double target;             /* volume that it is to have [m^3]; 2D: area [m^2] */
    fsi_grid_component shape;  /* what its surface encloses now */
} fsi_levelset_component;

/* What the last successful step did. Sums over its substeps unless said otherwise. */
typedef struct fsi_levelset_stats {
    int substeps;
    int blocks;                       /* at the end */
    int pressure_iterations, volume_iterations, smoothing_iterations;
    double divergence;                /* largest left over by a projection [1/s] */
    int degraded;                     /* 1: max_substeps left substeps longer than they should be */
    int splits, merges;               /* components that came from one, and that went into one */
    double volume, target;            /* of all components, at the end [m^3] */
    double volume_error;              /* volume / target - 1 */
    double lost_volume;               /* of components that vanished with none near, since creation [m^3] */
    double advection_loss;            /* volume that advection changed before it was put right [m^3] */
    double smoothed_error;            /* largest |S - V0| / V0 after an optimisation */
    double max_speed, cfl;            /* at the end [m/s]; max_speed * substep / dx */
    double momentum[3];               /* [kg m/s], at the end */
    double potential_energy;          /* -m g.x [J], at the end */
    double seconds_advection, seconds_distance, seconds_volume, seconds_pressure, seconds_extrapolation, seconds_other;
    size_t bytes;                     /* held through its context */
    long long allocs;
} fsi_levelset_stats;

/* A liquid. Read everything; write only what is marked. */
typedef struct fsi_levelset {
    uint32_t cookie;
    fsi_context *context;             /* never NULL */
    fsi_levelset_desc desc;           /* as given */
    fsi_grid *grid;                   /* which blocks there are; read only */
    const fsi_field *phi;             /* at cells [m]: negative in the liquid, distance to its surface up to 8 dx, +-8 dx beyond */
    fsi_field *u[3];                  /* on faces [m/s]; yours to write between steps; 2D: u[2] is NULL */
    const fsi_field *pressure;        /* at cells, of the last step [Pa]; 0 outside of the liquid */
    const int *label;                 /* entries of cells: component, also of the cells around it; -1 none */
    int component_count;
    const fsi_levelset_component *component;
    double time;                      /* [s] */
    fsi_levelset_stats stats;
    void *impl;
} fsi_levelset;

FSI_API fsi_levelset_desc fsi_levelset_default_desc(void); /* fills every field */
/* An empty box. Errors: COOKIE, ARGUMENT, NAN (name the field of the desc), LIMIT, MEMORY; then *out is NULL. */
FSI_API fsi_status fsi_levelset_create(fsi_levelset **out, const fsi_levelset_desc *desc);
FSI_API void fsi_levelset_destroy(fsi_levelset *s); /* NULL is fine */
/* The last failure of this simulator's context. NULL when s is NULL. */
FSI_API const fsi_error *fsi_levelset_error(const fsi_levelset *s);

/* Adds liquid that moves with `velocity` [m/s]; where there is liquid already, it keeps its own. What lies outside of the box is left out. Targets grow by
   what the new liquid measures. center, radius, box in metres; the mesh is CLOSED. Sides of a box of liquid on the walls are no surface.
   Errors: COOKIE, ARGUMENT (radius, empty box, mesh), NAN, MESH, LIMIT, MEMORY; nothing has changed then. */
FSI_API fsi_status fsi_levelset_fill_sphere(fsi_levelset *s, fsi_vec3 center, fsi_real radius, fsi_vec3 velocity);
/* The same with a box. */
FSI_API fsi_status fsi_levelset_fill_box(fsi_levelset *s, fsi_box3 box, fsi_vec3 velocity);
/* The same with what a mesh encloses. */
FSI_API fsi_status fsi_levelset_fill_mesh(fsi_levelset *s, const fsi_mesh *mesh, fsi_vec3 velocity);

/* Advances exactly dt seconds, in substeps as the desc asks. Errors: COOKIE, ARGUMENT (dt), NAN (names the entry of a velocity that is not finite),
   CONVERGENCE (of the pressure), LIMIT, MEMORY; then nothing has changed. */
FSI_API fsi_status fsi_levelset_step(fsi_levelset *s, fsi_real dt);
/* The largest step that takes one substep now [s]. */
FSI_API fsi_real fsi_levelset_suggest_dt(const fsi_levelset *s);

#endif /* FSI_LEVELSET_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#ifndef FSI_LEVELSET_IMPLEMENTATION_DONE
#define FSI_LEVELSET_IMPLEMENTATION_DONE

FSI__STRICT_BEGIN

/* ---- >>simulator ---------------------------------------------------------------------------------------------- */

#define FSI__LS_BAND 8   /* phi is a distance this many cells from the surface */
#define FSI__LS_GRAIN 16 /* blocks a task */
#define FSI__LS_FAR 7    /* layers of faces beyond the liquid that reach over 3.5 cells */
#define FSI__LS_TRY(call) do { fsi_status status_ = (call); if (status_ != FSI_OK) return status_; } while (0)

/* Targets of the components of one labelling. */
typedef struct fsi__ls_parts {
    int count, capacity;
    double *target;                      /* volume [m^3] */
    double *cells;                       /* that are linked to old components */
    int *parents;                        /* how many */
    int *first;                          /* its cells in the band; one more stands at the end */
    struct fsi__ls_fix *fix;             /* how far its volume is corrected */
    fsi_grid_component *shape;
} fsi__ls_parts;

/* Cells of new component `to` that came from old component `from`. */
typedef struct fsi__ls_link {
    int from, to;
    double cells;
} fsi__ls_link;

typedef struct fsi__ls_impl {
    fsi_context own_context;
    fsi_pressure *solver;
    /* The state, as the caller sees it; the trial that a call works on, which becomes the state when the call succeeds; what a substep makes next. */
    fsi_field *phi, *trial_phi, *next_phi, *u[3], *trial_u[3], *next_u[3], *pressure, *trial_pressure, *curvature;
    int *label, *trial_label, *next_label; /* an int an entry */
    fsi__ls_parts parts, trial, next;
    unsigned char *cell, *known[3];      /* a byte an entry: kinds of cells for the pressure solver; faces whose velocity is known */
    unsigned char *shore;                /* likewise: air beside liquid */
    int room;                            /* blocks that these arrays have room for */
    unsigned char *wanted, *before;      /* a byte a place of a block: those that are asked for, that there were before the call */
    int *uniform, *next_uniform;         /* of labels, a block: the only one in it, -1 none, -2 several */
    fsi_levelset_component *component;   /* what the caller sees */
    int component_capacity;
    struct fsi__ls_cell *band;           /* cells of the volume constraint, by component; `piece`s of these */
    struct fsi__ls_piece *piece;
    int band_capacity, piece_capacity, piece_count;
    fsi__ls_link *link;
    int link_count, link_capacity;
    struct fsi__ls_face *face;           /* that capillary smoothing changes, of one axis; change and left over of each */
    double *face_change, *face_left;
    int face_count, face_capacity;
    double *sum;                         /* one a task */
    int sum_capacity;
    double lost_volume;
} fsi__ls_impl;

/* A call of fsi_levelset_step. */
typedef struct fsi__ls_run {
    fsi_levelset *s;
    fsi__ls_impl *m;
    fsi_grid *grid;
    fsi_levelset_stats stats;
    double dt;                           /* of the substep */
    double clock;                        /* of the last lap */
    double lost_volume;
    int axis;
    int smooth;                          /* the substep is too long for surface tension by itself */
    double face_keep, face_add;          /* of a step of the smoothing */
    int flipped;                         /* cells that changed sides when volumes were put right */
    double divergence;                   /* [1/s] that the first projection left: what the second one is to reach */
} fsi__ls_run;

static int fsi__is_levelset(const fsi_levelset *s) { return s && s->cookie == FSI__COOKIE('l', fsi_levelset); }

FSI_API const fsi_error *fsi_levelset_error(const fsi_levelset *s) { return s ? &s->context->error : NULL; }

FSI_API fsi_levelset_desc fsi_levelset_default_desc(void)
{
    fsi_levelset_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('L', fsi_levelset_desc);
    d.dim = 3;
    d.n[0] = d.n[1] = d.n[2] = 64;
    d.dx = (fsi_real)(1.0 / 64);
    d.density = 1000;
    d.gravity = fsi_v3(0, 0, (fsi_real)-9.81);
    d.capillary_cfl = 1;
    d.cfl = (fsi_real)0.7;
    d.max_substeps = 50;
    d.conserve_volume = 1;
    d.pressure_tolerance = 1e-6;
    d.max_iters = 200;
    d.volume_tolerance = 1e-8;
    return d;
}

/* ---- >>substep: kinds of cells, forces, curvature -------------------------------------------------------------- */

static void fsi__ls_lap(fsi__ls_run *run, double *seconds)
{
    const double now = fsi__now(run->s->context);
    *seconds += now - run->clock;
    run->clock = now;
}

static void fsi__ls_each_block(fsi__ls_run *run, fsi__range_fn *fn) { fsi__parallel(run->s->context, run->grid->block_count, FSI__LS_GRAIN, fn, run); }

/* Every velocity that stands anywhere gets dt g: liquid and extrapolated alike. */
static void fsi__ls_add_gravity(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const size_t cells = (size_t)run->grid->block_cells;
    const double g[3] = { (double)run->s->desc.gravity.x, (double)run->s->desc.gravity.y, (double)run->s->desc.gravity.z };
    int a;
    size_t e;
    (void)chunk;
    for (a = 0; a < run->grid->dim; a++) {
        fsi_real *u = run->m->trial_u[a]->value;
        const fsi_real push = (fsi_real)(run->dt * g[a]);
        for (e = (size_t)begin * cells; e < (size_t)end * cells; e++) u[e] += push;
    }
}

/* Curvature [1/m] of the surface where it is nearest, from phi around a cell by centred differences, g = grad phi, H its second derivatives.
   The level through the cell has the sum of curvatures kap = (g.g tr H - g.H g)/|g|^3 and the Gaussian curvature K = g.adj(H) g/|g|^4 (0 in 2D). The
   principal curvatures of parallel surfaces are k/(1 - k phi): the surface itself, phi away, has (kap - 2 K phi)/(1 - kap phi + K phi^2). Without
   that step the faces of a cell that is barely liquid would see different pressures over next to no distance. Held within (dim - 1)/dx. */
FSI_FN double fsi__ls_curvature(const fsi_real *p, int dim, const int *step, double dx)
{
    double g[3] = { 0, 0, 0 }, h[3][3], g2 = 0, trace = 0, along = 0, adjoint = 0, most = (dim - 1) / dx, kap, gauss, phi, shift;
    int a, b;
    memset(h, 0, sizeof h);
    for (a = 0; a < dim; a++) {
        g[a] = ((double)p[step[a]] - (double)p[-step[a]]) / 2;
        g2 += g[a] * g[a];
        trace += h[a][a] = (double)p[step[a]] - 2 * (double)*p + (double)p[-step[a]];
        for (b = 0; b < a; b++)
            h[a][b] = h[b][a] = ((double)p[step[a] + step[b]] - (double)p[step[a] - step[b]] - (double)p[step[b] - step[a]] + (double)p[-step[a] - step[b]]) / 4;
    }
    if (!(g2 > 1e-12 * dx * dx)) return 0;
    for (a = 0; a < 3; a++)
        for (b = 0; b < 3; b++) {
            const int c = (a + 1) % 3, d = (a + 2) % 3, e = (b + 1) % 3, f = (b + 2) % 3;
            along += g[a] * h[a][b] * g[b];
            adjoint += g[a] * (h[c][e] * h[d][f] - h[c][f] * h[d][e]) * g[b];
        }
    phi = (double)*p / dx; /* from here on, lengths in cells */
    kap = (g2 * trace - along) / (g2 * sqrt(g2));
    gauss = dim == 3 ? adjoint / (g2 * g2) : 0;
    shift = 1 - kap * phi + gauss * phi * phi;
    kap = (kap - 2 * gauss * phi) / (shift > 0.25 ? shift : 0.25) / dx;
    return kap > most ? most : (kap < -most ? -most : kap);
}

static void fsi__ls_curvatures(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    const int step[3] = { 1, 10, 100 };
    const double dx = (double)g->dx, gamma = (double)run->s->desc.surface_tension;
    const double band = (run->s->desc.tension == FSI_LEVELSET_TENSION_DELTA ? 4 : 3.25) * dx;
    fsi_real box[1000];
    int b, x, y, z;
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_real *out = run->m->curvature->value + (size_t)b * (size_t)g->block_cells;
        fsi__grid_gather(run->m->trial_phi, b, 1, box);
        for (z = 0; z < (g->dim == 3 ? 8 : 1); z++)
            for (y = 0; y < 8; y++)
                for (x = 0; x < 8; x++) {
                    const fsi_real *p = box + (g->dim == 3 ? (z + 1) * 100 : 0) + (y + 1) * 10 + x + 1;
                    *out++ = (fsi_real)(fabs((double)*p) < band ? gamma * fsi__ls_curvature(p, g->dim, step, dx) : 0);
                }
    }
}

/* Waves of two or three cells along the surface gain energy from the noise of every step and lose none. What takes it away is a flow of the
   surface along itself towards even curvature (surface diffusion, Mullins 1957, J. Appl. Phys. 28), V_n = M Laplacian_s(kap), which keeps
   volume and leaves spheres alone:

       phi -= c dx^4 min(1, dt/t_c) Laplacian(kap),   t_c = sqrt(rho dx^3/(4 pi gamma)),   c = 0.005

   The curvature at a cell being that of the surface below it, its Laplacian is that along the surface. A step takes 64 c = 0.32 of the
   amplitude of a checkerboard (3D) and c (k dx)^4 of that of a resolved wave: 3e-5 of an ellipsoid's with 16 cells a diameter. */
#define FSI__LS_RELAX 0.005

/* The time in which the shortest waves of the grid move on [s]. */
static double fsi__ls_capillary_time(const fsi_levelset_desc *d)
{
    const double dx = (double)d->dx;
    return sqrt((double)d->density * dx * dx * dx / (4 * FSI_PI * ((double)d->surface_tension + 1e-300)));
}

static void fsi__ls_relax(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    const int step[3] = { 1, 10, 100 };
    const double dx = (double)g->dx, most = 0.1 * dx, ratio = run->dt / fsi__ls_capillary_time(&run->s->desc);
    const double weight = FSI__LS_RELAX * (ratio < 1 ? ratio : 1) * dx * dx / (double)run->s->desc.surface_tension;
    fsi_real box[1000];
    int b, c, a;
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_real *phi = run->m->trial_phi->value + (size_t)b * (size_t)g->block_cells;
        fsi__grid_gather(run->m->curvature, b, 1, box);
        for (c = 0; c < g->block_cells; c++) {
            const fsi_real *p = box + (g->dim == 3 ? ((c >> 6) + 1) * 100 : 0) + (((c >> 3) & 7) + 1) * 10 + (c & 7) + 1;
            double move = 0;
            if (!(fabs((double)phi[c]) < 2 * dx)) continue;
            for (a = 0; a < g->dim; a++) move += (double)p[step[a]] - 2 * (double)*p + (double)p[-step[a]];
            move *= weight;
            phi[c] -= (fsi_real)(move > most ? most : (move < -most ? -most : move));
        }
    }
}

/* (1 + cos(pi y/3))/6, the paper's delta function times dx, y cells from the surface. */
FSI_FN double fsi__ls_delta(double y) { return fabs(y) < 3 ? (1 + fsi_cos(FSI_PI * y / 3)) / 6 : 0; }

/* The paper's force, u -= dt gamma delta1(phi) kap n/rho, delta1 = 2 delta where phi < 0. */
static void fsi__ls_push(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    const int step[3] = { 1, 10, 100 };
    const double dx = (double)g->dx, weight = run->dt / ((double)run->s->desc.density * dx);
    fsi_real phi[1000], kap[1000];
    int b, c, a;
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi__grid_gather(run->m->trial_phi, b, 1, phi);
        fsi__grid_gather(run->m->curvature, b, 1, kap);
        for (c = 0; c < g->block_cells; c++) {
            const int at = (g->dim == 3 ? ((c >> 6) + 1) * 100 : 0) + (((c >> 3) & 7) + 1) * 10 + (c & 7) + 1;
            for (a = 0; a < g->dim; a++) {
                const double hi = (double)phi[at] / dx, lo = (double)phi[at - step[a]] / dx, pull = ((double)kap[at] + (double)kap[at - step[a]]) / 2;
                if (hi + lo < 0) run->m->trial_u[a]->value[(size_t)b * (size_t)g->block_cells + (size_t)c] -= (fsi_real)(weight * 2 * fsi__ls_delta((hi + lo) / 2) * pull * (hi - lo));
            }
        }
    }
}

/* Kinds of cells for the pressure solver: liquid where phi < 0. */
static void fsi__ls_kinds(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const size_t cells = (size_t)run->grid->block_cells;
    size_t e;
    (void)chunk;
    for (e = (size_t)begin * cells; e < (size_t)end * cells; e++)
        run->m->cell[e] = run->m->trial_phi->value[e] < 0 ? (unsigned char)FSI_CELL_LIQUID : (unsigned char)FSI_CELL_AIR;
}

/* Faces of axis run->axis next to a liquid cell are known: the projection made them. */
static void fsi__ls_known_faces(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    const int a = run->axis, step = a == 0 ? 1 : (a == 1 ? 8 : 64);
    const size_t cells = (size_t)g->block_cells;
    int b, c, corner[3];
    (void)chunk;
    for (b = begin; b < end; b++) {
        const unsigned char *cell = run->m->cell + (size_t)b * cells;
        const unsigned char *before;
        unsigned char *known = run->m->known[a] + (size_t)b * cells;
        long long at;
        fsi_grid_corner(g, b, corner);
        at = fsi_grid_entry(g, corner[0] - (a == 0), corner[1] - (a == 1), corner[2] - (a == 2)); /* the block before, or none */
        before = at < 0 ? NULL : run->m->cell + (size_t)(at / g->block_cells) * cells;
        for (c = 0; c < g->block_cells; c++) {
            const int first = (a == 0 ? c & 7 : (a == 1 ? (c >> 3) & 7 : c >> 6)) == 0;
            const int lower = !first ? cell[c - step] == FSI_CELL_LIQUID : before && before[c + 7 * step] == FSI_CELL_LIQUID;
            known[c] = (unsigned char)(lower || cell[c] == FSI_CELL_LIQUID);
        }
    }
}

/* The normal velocity is 0 at the walls of the box. */
static void fsi__ls_hold_walls(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    int b, a, c, side, corner[3];
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_grid_corner(g, b, corner);
        for (a = 0; a < g->dim; a++)
            for (side = 0; side < 2; side++) {
                const int layer = (side ? g->n[a] : 0) - corner[a];
                fsi_real *u = run->m->trial_u[a]->value + (size_t)b * (size_t)g->block_cells;
                if (layer < 0 || layer > 7) continue;
                for (c = 0; c < g->block_cells; c++)
                    if ((c >> (3 * a) & 7) == layer) u[c] = 0;
            }
    }
}

/* Velocities of trial_u, known next to the cells of kind liquid, spread beyond them. */
static fsi_status fsi__ls_extrapolate(fsi__ls_run *run)
{
    const int least = run->smooth ? FSI__LS_FAR : 4, reach = (int)ceil((double)run->s->desc.cfl) + 2;
    for (run->axis = 0; run->axis < run->grid->dim; run->axis++) {
        fsi__ls_each_block(run, fsi__ls_known_faces);
        FSI__LS_TRY(fsi_grid_extrapolate(run->m->trial_u[run->axis], run->m->known[run->axis], reach > least ? reach : least));
    }
    fsi__ls_each_block(run, fsi__ls_hold_walls);
    return FSI_OK;
}

/* Entry of the cell across face `side` (x-, x+, y-, ...) of the cell at entry e, or of that side of the box itself, -1: none; true if it is a cell. */
static int fsi__ls_neighbor(const fsi__ls_run *run, int e, int side, long long *at)
{
    const fsi_grid *g = run->grid;
    const int c = e % g->block_cells, a = side >> 1, d = side & 1 ? 1 : -1;
    int i[3];
    fsi_grid_corner(g, e / g->block_cells, i);
    i[0] += c & 7;
    i[1] += (c >> 3) & 7;
    i[2] += c >> 6;
    i[a] += d;
    *at = fsi_grid_entry(g, i[0], i[1], i[2]);
    return *at >= 0 && i[a] < g->n[a];
}

/* Extrapolation carries velocities outward as they are; the surface, which moves with what stands on both sides of it, would lag by k dx/4 in a wave
   (measured: capillary waves 1.6 % too slow at 32 cells). So air cells beside liquid get no divergence either: what is over leaves through their faces
   towards cells that do not touch liquid. Each such face belongs to one cell. */
static void fsi__ls_mark_shore(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const int cells = run->grid->block_cells;
    const fsi_real reach = (fsi_real)1.5 * run->grid->dx;
    int e, side;
    long long at;
    (void)chunk;
    for (e = begin * cells; e < end * cells; e++) {
        m->shore[e] = 0;
        if (m->cell[e] == FSI_CELL_LIQUID || !(m->trial_phi->value[e] < reach)) continue;
        for (side = 0; side < 2 * run->grid->dim && !m->shore[e]; side++) m->shore[e] = fsi__ls_neighbor(run, e, side, &at) && m->cell[at] == FSI_CELL_LIQUID;
    }
}

static void fsi__ls_close_shore(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const int cells = run->grid->block_cells, sides = 2 * run->grid->dim;
    int e, side;
    (void)chunk;
    for (e = begin * cells; e < end * cells; e++) {
        double over = 0;
        fsi_real *out[6];
        long long at;
        int count = 0, whole = 1; /* the faces that may change; 0: a face has no place */
        if (!m->shore[e]) continue;
        for (side = 0; side < sides; side++) {
            const int there = fsi__ls_neighbor(run, e, side, &at);
            fsi_real *u = m->trial_u[side >> 1]->value;
            out[side] = NULL;
            if (side & 1 && at < 0) whole = 0;
            else {
                fsi_real *face = u + (side & 1 ? at : (long long)e);
                over += (double)*face * (side & 1 ? 1 : -1);
                if (there && m->cell[at] != FSI_CELL_LIQUID && !m->shore[at]) out[side] = face, count++;
            }
        }
        for (side = 0; side < sides && whole && count > 0; side++)
            if (out[side]) *out[side] += (fsi_real)(over / count * (side & 1 ? -1 : 1));
    }
}

/* Makes trial_u free of divergence on trial_phi. The first projection of a substep carries gravity and surface tension; later ones
   start from what advection or smoothing left and add no force. */
static fsi_status fsi__ls_project(fsi__ls_run *run, int first)
{
    fsi_levelset *s = run->s;
    fsi_pressure_flow flow = fsi_pressure_default_flow();
    int a;
    for (a = 0; a < run->grid->dim; a++) flow.u[a] = run->m->trial_u[a];
    flow.cell = run->m->cell;
    flow.phi = run->m->trial_phi;
    flow.density = s->desc.density;
    flow.dt = (fsi_real)run->dt;
    if (run->smooth) flow.theta_min = (fsi_real)0.25; /* with thinner cells ripples grow at 5 capillary times, whatever the smoothing (measured) */
    fsi__ls_each_block(run, fsi__ls_hold_walls);
    fsi__ls_each_block(run, fsi__ls_kinds);
    if (first && s->desc.surface_tension > 0 && s->desc.tension == FSI_LEVELSET_TENSION_JUMP) flow.surface_pressure = run->m->curvature;
    if (first) flow.pressure = run->m->trial_pressure;
    run->m->solver->desc.absolute = first ? 0 : run->divergence;
    FSI__LS_TRY(fsi_pressure_project(run->m->solver, &flow));
    run->divergence = run->m->solver->stats.divergence;
    if (run->divergence > run->stats.divergence) run->stats.divergence = run->divergence;
    run->stats.pressure_iterations += run->m->solver->stats.iters;
    fsi__ls_lap(run, &run->stats.seconds_pressure);
    FSI__LS_TRY(fsi__ls_extrapolate(run));
    fsi__ls_each_block(run, fsi__ls_mark_shore);
    fsi__ls_each_block(run, fsi__ls_close_shore);
    fsi__ls_lap(run, &run->stats.seconds_extrapolation);
    return FSI_OK;
}

/* ---- >>substep: capillary smoothing ----------------------------------------------------------------------------- */

/* What the surface's own motion adds to its tension within a step, for each component of the velocity:

       (I - div(a grad)) u+ = u,    a = 4 dt^2 gamma delta(phi)/rho (1 - (d phi)^2)

   over the faces where phi, mean of the cells beside them, is nearer than 3.5 cells; a stands between two faces, between which phi differs by
   d phi cells. That last factor, the diagonal of 1 - n n^T, keeps to derivatives along the surface: with those across it, as the paper has them, the air beside
   the liquid drives it (measured: a drop whose mode 2 grew by 12 % a period at 4 capillary times). 4 is what a drop in 3D needs at 5. Divided by its diagonal the matrix
   has its eigenvalues in [1, 1 + 2 s]/(1 + s), s being the largest sum of a/dx^2 around a face, so that the Chebyshev iteration (Golub and Varga
   1961) needs no inner products: the same bits for any number of threads. */
typedef struct fsi__ls_face {
    int entry, beside[6];      /* numbers of the faces beside it, -1: none */
    double phi, sum, weight[6];/* [dx]; a/dx^2 towards each, and their sum */
} fsi__ls_face;

#define FSI__LS_SMOOTHED 1e-6  /* of the change is left */
#define FSI__LS_FACES 4096     /* a task */

static void fsi__ls_face_columns(fsi__ls_impl *m, fsi__column *c)
{
    c[0].array = (void **)&m->face;        c[0].size = sizeof *m->face;
    c[1].array = (void **)&m->face_change; c[1].size = sizeof *m->face_change;
    c[2].array = (void **)&m->face_left;   c[2].size = sizeof *m->face_left;
}

/* Phi at the face of run->axis below cell c of block b, in dx; 9 if it is no face that may change: on a side of the box, or far away. */
static double fsi__ls_face_phi(const fsi__ls_run *run, int b, int c, const int *corner)
{
    const fsi_grid *g = run->grid;
    const fsi_real *phi = run->m->trial_phi->value;
    const double here = (double)phi[(size_t)b * (size_t)g->block_cells + (size_t)c] / (double)g->dx;
    const int at[3] = { corner[0] + (c & 7), corner[1] + ((c >> 3) & 7), corner[2] + (c >> 6) };
    int a;
    long long below;
    if (!(fabs(here) < 4.5) || at[run->axis] == 0) return 9;
    for (a = 0; a < g->dim; a++)
        if (at[a] >= g->n[a]) return 9;
    below = fsi_grid_entry(g, at[0] - (run->axis == 0), at[1] - (run->axis == 1), at[2] - (run->axis == 2));
    return below < 0 ? 9 : (here + (double)phi[below] / (double)g->dx) / 2;
}

/* Numbers of the faces that change, in next_label, which nothing needs at this time. */
static fsi_status fsi__ls_number_faces(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const fsi_grid *g = run->grid;
    fsi__column columns[3];
    int b, c, count, corner[3];
    fsi__ls_face_columns(m, columns);
    for (b = count = 0; b < g->block_count; b++) {
        fsi_grid_corner(g, b, corner);
        if (m->face_capacity - count < g->block_cells)
            FSI__LS_TRY(fsi__grow(run->s->context, columns, 3, count, &m->face_capacity, count + count / 2 + 16 * g->block_cells, "fsi_levelset_step"));
        for (c = 0; c < g->block_cells; c++) {
            const double phi = fsi__ls_face_phi(run, b, c, corner);
            m->next_label[b * g->block_cells + c] = fabs(phi) < 3.5 ? count : -1;
            if (!(fabs(phi) < 3.5)) continue;
            m->face[count].entry = b * g->block_cells + c;
            m->face[count++].phi = phi;
        }
    }
    m->face_count = count;
    return FSI_OK;
}

/* Neighbours of the faces, and a between them. */
static void fsi__ls_link_faces(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    const double ratio = run->dt / fsi__ls_capillary_time(&run->s->desc), scale = 4 * ratio * ratio / (4 * FSI_PI);
    int i, side, corner[3];
    (void)chunk;
    for (i = begin; i < end; i++) {
        fsi__ls_face *f = &run->m->face[i];
        const int c = f->entry % g->block_cells;
        fsi_grid_corner(g, f->entry / g->block_cells, corner);
        f->sum = 0;
        for (side = 0; side < 2 * g->dim; side++) {
            const int d = side & 1 ? 1 : -1, a = side >> 1;
            const long long e = fsi_grid_entry(g, corner[0] + (c & 7) + (a == 0) * d, corner[1] + ((c >> 3) & 7) + (a == 1) * d, corner[2] + (c >> 6) + (a == 2) * d);
            const int other = e < 0 ? -1 : run->m->next_label[e];
            const double across = other < 0 ? 1 : f->phi - run->m->face[other].phi;
            f->beside[side] = other;
            f->weight[side] = fabs(across) >= 1 ? 0 : (1 - across * across) * scale * fsi__ls_delta((f->phi + run->m->face[other].phi) / 2);
            f->sum += f->weight[side];
        }
    }
}

/* Of the faces' values v, the sum of a (v_beside - v)/dx^2 over 1 + sum of a/dx^2. */
FSI_FN double fsi__ls_face_flow(const fsi__ls_face *f, const double *v, double own, int sides)
{
    double flow = 0;
    int side;
    for (side = 0; side < sides; side++)
        if (f->beside[side] >= 0) flow += f->weight[side] * (v[f->beside[side]] - own);
    return flow / (1 + f->sum);
}

/* left = D^-1 div(a grad u). */
static void fsi__ls_smooth_start(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++) m->face_left[i] = fsi__ls_face_flow(&m->face[i], m->face_change, m->face_change[i], 2 * run->grid->dim);
}

/* u += change, left -= D^-1 (I - div(a grad)) change. */
static void fsi__ls_smooth_apply(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++) {
        const fsi__ls_face *f = &m->face[i];
        const double own = m->face_change[i];
        m->trial_u[run->axis]->value[f->entry] += (fsi_real)own;
        m->face_left[i] -= own / (1 + f->sum) - fsi__ls_face_flow(f, m->face_change, own, 2 * run->grid->dim);
    }
}

static void fsi__ls_smooth_turn(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++) m->face_change[i] = run->face_keep * m->face_change[i] + run->face_add * m->face_left[i];
}

static void fsi__ls_each_face(fsi__ls_run *run, fsi__range_fn *fn) { fsi__parallel(run->s->context, run->m->face_count, FSI__LS_FACES, fn, run); }

/* With eigenvalues in [c - h, c + h], q = c/h: change_0 = left/c, change_k = r_k r_(k-1) change_(k-1) + 2 r_k/h left, r_0 = 1/q, r_k = 1/(2 q - r_(k-1));
   after n steps 2 (q + sqrt(q^2 - 1))^-n of the change is left at most. */
static void fsi__ls_smooth_axis(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    double s = 0, c, h, q, r;
    int i, k, rounds;
    for (i = 0; i < m->face_count; i++) {
        s = m->face[i].sum > s ? m->face[i].sum : s;
        m->face_change[i] = (double)m->trial_u[run->axis]->value[m->face[i].entry];
    }
    if (!(s > 0)) return;
    c = 1;
    h = s / (1 + s);
    q = c / h;
    r = 1 / q;
    rounds = (int)ceil(fsi_log(2 / FSI__LS_SMOOTHED) / fsi_log(q + sqrt(q * q - 1)));
    fsi__ls_each_face(run, fsi__ls_smooth_start);
    run->face_keep = 0;
    run->face_add = 1 / c;
    for (k = 0; k < rounds; k++) {
        const double last = r;
        fsi__ls_each_face(run, fsi__ls_smooth_turn);
        fsi__ls_each_face(run, fsi__ls_smooth_apply);
        r = 1 / (2 * q - last);
        run->face_keep = r * last;
        run->face_add = 2 * r / h;
    }
    run->stats.smoothing_iterations += rounds;
}

/* Smooths trial_u, which reaches FSI__LS_FAR layers of faces beyond the liquid, near the surface of trial_phi. */
static fsi_status fsi__ls_smooth(fsi__ls_run *run)
{
    for (run->axis = 0; run->axis < run->grid->dim; run->axis++) {
        FSI__LS_TRY(fsi__ls_number_faces(run));
        fsi__ls_each_face(run, fsi__ls_link_faces);
        fsi__ls_smooth_axis(run);
    }
    return FSI_OK;
}

/* ---- >>substep: components and their volumes ------------------------------------------------------------------- */

/* Targets follow the liquid. n_ij counts the cells of new component j that came from old component i; with V_j what the
   surface of j encloses, O_ij = V_j n_ij / n_j is the volume that went from i to j, and
       target_j = sum_i target_i O_ij / sum_j' O_ij'
   keeps the total through every split and merge. */

static int fsi__ls_compare_links(const void *a, const void *b)
{
    const fsi__ls_link *p = (const fsi__ls_link *)a, *q = (const fsi__ls_link *)b;
    return p->from != q->from ? (p->from < q->from ? -1 : 1) : (p->to < q->to ? -1 : p->to > q->to);
}

/* Cells that came one after another from and to the same components share a link. */
static fsi_status fsi__ls_add_link(fsi__ls_run *run, int from, int to, int cells)
{
    fsi__ls_impl *m = run->m;
    fsi__ls_link *last = m->link_count > 0 ? &m->link[m->link_count - 1] : NULL;
    if (!last || last->from != from || last->to != to) {
        if (m->link_count == m->link_capacity) {
            fsi__column column;
            column.array = (void **)&m->link;
            column.size = sizeof *m->link;
            FSI__LS_TRY(fsi__grow(run->s->context, &column, 1, m->link_count, &m->link_capacity, 2 * m->link_capacity + 64, "fsi_levelset_step"));
        }
        last = &m->link[m->link_count++];
        last->from = from;
        last->to = to;
        last->cells = 0;
    }
    last->cells += cells;
    return FSI_OK;
}

/* The only label among those of a block, -1 when there is none, -2 when there are several. */
static int fsi__ls_only(const int *label, int cells)
{
    int c, only = -1;
    for (c = 0; c < cells; c++) {
        if (label[c] < 0 || label[c] == only) continue;
        if (only >= 0) return -2;
        only = label[c];
    }
    return only;
}

static void fsi__ls_uniform_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const int cells = run->grid->block_cells;
    int b;
    (void)chunk;
    for (b = begin; b < end; b++) {
        run->m->uniform[b] = fsi__ls_only(run->m->trial_label + (size_t)b * (size_t)cells, cells);
        run->m->next_uniform[b] = fsi__ls_only(run->m->next_label + (size_t)b * (size_t)cells, cells);
    }
}

/* The only old label in block b and around it, as above. */
static int fsi__ls_only_around(const fsi__ls_run *run, int b)
{
    const fsi_grid *g = run->grid;
    int corner[3], i, j, k, only = -1;
    fsi_grid_corner(g, b, corner);
    for (k = g->dim == 3 ? -8 : 0; k <= (g->dim == 3 ? 8 : 0); k += 8)
        for (j = -8; j <= 8; j += 8)
            for (i = -8; i <= 8; i += 8) {
                const long long at = fsi_grid_entry(g, corner[0] + i, corner[1] + j, corner[2] + k);
                const int u = at < 0 ? -1 : run->m->uniform[at / g->block_cells];
                if (u == -1 || u == only) continue;
                if (u == -2 || only >= 0) return -2;
                only = u;
            }
    return only;
}

/* Old component at the place that liquid in cell c of block b came from; without `trace` that it is in. */
static int fsi__ls_origin(const fsi__ls_run *run, int b, int c, int trace)
{
    const fsi_grid *g = run->grid;
    int corner[3], i[3], a;
    long long at;
    fsi_grid_corner(g, b, corner);
    i[0] = corner[0] + (c & 7);
    i[1] = corner[1] + ((c >> 3) & 7);
    i[2] = corner[2] + (c >> 6);
    if (trace) {
        const fsi_vec3 x = fsi_grid_trace(run->m->trial_u, fsi_grid_position(g, FSI_CELLS, i[0], i[1], i[2]), (fsi_real)-run->dt, 2);
        const double from[3] = { (double)(x.x - g->origin.x), (double)(x.y - g->origin.y), (double)(x.z - g->origin.z) };
        for (a = 0; a < g->dim; a++) i[a] = fsi__clamp_int((int)(from[a] / (double)g->dx), g->n[a] - 1);
    }
    at = fsi_grid_entry(g, i[0], i[1], i[2]);
    return at < 0 ? -1 : run->m->trial_label[at];
}

/* Links between the components in `trial_label` and those in `next_label`, sorted and each once. */
static fsi_status fsi__ls_link_components(fsi__ls_run *run, int trace)
{
    fsi__ls_impl *m = run->m;
    const int cells = run->grid->block_cells;
    int b, c, k, kept;
    m->link_count = 0;
    fsi__ls_each_block(run, fsi__ls_uniform_blocks);
    for (b = 0; b < run->grid->block_count; b++) {
        const int *label = m->next_label + (size_t)b * (size_t)cells;
        const int from = m->next_uniform[b] == -1 ? -1 : fsi__ls_only_around(run, b);
        for (c = 0; c < cells; c++)
            if (label[c] >= 0) FSI__LS_TRY(fsi__ls_add_link(run, from >= 0 ? from : fsi__ls_origin(run, b, c, trace), label[c], 1));
    }
    if (m->link_count == 0) return FSI_OK;
    qsort(m->link, (size_t)m->link_count, sizeof *m->link, fsi__ls_compare_links);
    for (k = 1, kept = 0; k < m->link_count; k++) {
        if (m->link[k].from == m->link[kept].from && m->link[k].to == m->link[kept].to) m->link[kept].cells += m->link[k].cells;
        else m->link[++kept] = m->link[k];
    }
    m->link_count = kept + 1;
    return FSI_OK;
}

/* O_ij of a link. */
static double fsi__ls_flow(const fsi__ls_parts *next, const fsi__ls_link *l) { return next->shape[l->to].volume * l->cells / next->cells[l->to]; }

/* What became of a component that nothing is linked to: the label next to where it was gets its target, if there is one within three
   cells (labels are grown that far); else it is lost. */
static void fsi__ls_bequeath(fsi__ls_run *run, int from)
{
    fsi__ls_impl *m = run->m;
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    size_t e;
    for (e = 0; e < cells; e++)
        if (m->trial_label[e] == from && m->next_label[e] >= 0) {
            m->next.target[m->next_label[e]] += m->trial.target[from];
            return;
        }
    run->lost_volume += m->trial.target[from];
}

/* Targets of the next components from those of the present ones, by the links. */
static void fsi__ls_hand_on_targets(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    fsi__ls_parts *next = &m->next;
    int k, end, from, expected = 0;
    for (k = 0; k < next->count; k++) {
        next->target[k] = next->cells[k] = 0;
        next->parents[k] = 0;
    }
    for (k = 0; k < m->link_count; k++) {
        next->cells[m->link[k].to] += m->link[k].cells;
        next->parents[m->link[k].to] += m->link[k].from >= 0;
    }
    for (k = 0; k < next->count; k++) run->stats.merges += next->parents[k] > 1 ? next->parents[k] - 1 : 0;
    for (k = 0; k < m->link_count; k = end) {
        double sum = 0;
        from = m->link[k].from;
        for (end = k; end < m->link_count && m->link[end].from == from; end++) sum += fsi__ls_flow(next, &m->link[end]);
        if (from < 0) continue; /* liquid without a parent */
        for (; expected < from; expected++) fsi__ls_bequeath(run, expected);
        expected = from + 1;
        run->stats.splits += end - k - 1;
        for (; k < end; k++) next->target[m->link[k].to] += sum > 0 ? m->trial.target[from] * fsi__ls_flow(next, &m->link[k]) / sum : m->trial.target[from] / (end - k);
    }
    for (; expected < m->trial.count; expected++) fsi__ls_bequeath(run, expected);
}

/* Liquid that came from nowhere (an artefact of interpolation) goes back there. Its cells become air. */
static void fsi__ls_drop_foundlings(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    size_t e;
    int k, any = 0;
    for (k = 0; k < m->next.count; k++) any |= !(m->next.parents[k] > 0);
    if (!any) return;
    for (e = 0; e < cells; e++)
        if (m->next_label[e] >= 0 && !(m->next.parents[m->next_label[e]] > 0) && m->next_phi->value[e] < 0) {
            m->next_phi->value[e] = run->grid->dx;
            run->flipped++;
        }
}

/* ---- >>substep: the volume constraint --------------------------------------------------------------------------- */

/* Of each component c:

       minimise 1/2 sum_i (phi_i - phi*_i)^2   subject to   h = S(phi) - V0 = 0,   S = sum_i H(phi_i) dx^d,  H = (1 - tanh(phi/dx))/2
       V0 = S(phi*) + w (target - V),  V by marching; at most 0.2 dx times the surface at once

   over the cells of c nearer than a band to its surface: J_i = H'(phi_i) dx^d,  lam = (h - J'(phi - phi*))/J'J,  phi = phi* - J lam,
   until h is small and phi rests. Both S take the same tails, so that those of another component nearby cancel. w: the correction moves the
   surface itself, where H' is largest, by lam/(2 dx), which adds lam A/(2 dx) to the volume that marching measures, A being its area, but lam J'J to S (a plane: lam A/(3 dx)).
   So w = 2 dx J'J/A, two thirds for a plane; w = 1 would overshoot by half. */
typedef struct fsi__ls_cell { /* a cell of that band */
    int entry;
    double start, value, share; /* phi*, phi [dx]; H(phi*) */
} fsi__ls_cell;

typedef struct fsi__ls_fix { /* all in cells */
    double missing, lam, h, jj, jd, moved, volume;
} fsi__ls_fix;

typedef struct fsi__ls_piece { /* up to FSI__LS_PIECE cells of one component: what a task sums */
    int component, begin, end;
    double h, jj, jd, moved;
} fsi__ls_piece;

#define FSI__LS_PIECE 4096
#define FSI__LS_NEWTON 30

FSI_FN double fsi__ls_heaviside(double y) { return 1 / (1 + fsi_exp(2 * y)); } /* (1 - tanh y)/2 */

/* Sums of a piece at its present values. H(phi) - H(phi*) is summed as such: small differences stay exact. */
static void fsi__ls_sum_pieces(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    int k, i;
    (void)chunk;
    for (k = begin; k < end; k++) {
        fsi__ls_piece *p = &run->m->piece[k];
        double h = 0, jj = 0, jd = 0;
        for (i = p->begin; i < p->end; i++) {
            const fsi__ls_cell *c = &run->m->band[i];
            const double at = fsi__ls_heaviside(c->value), slope = -2 * at * (1 - at);
            h += at - c->share;
            jj += slope * slope;
            jd += slope * (c->value - c->start);
        }
        p->h = h;
        p->jj = jj;
        p->jd = jd;
    }
}

/* phi = phi* - J lam; `moved` is the largest change within two cells of the surface. */
static void fsi__ls_move_pieces(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    int k, i;
    (void)chunk;
    for (k = begin; k < end; k++) {
        fsi__ls_piece *p = &run->m->piece[k];
        const double lam = run->m->next.fix[p->component].lam;
        double moved = 0;
        for (i = p->begin; i < p->end; i++) {
            fsi__ls_cell *c = &run->m->band[i];
            const double at = fsi__ls_heaviside(c->value), next = c->start + 2 * at * (1 - at) * lam, change = fabs(next - c->value);
            if (fabs(c->value) < 2 && change > moved) moved = change;
            c->value = next;
        }
        p->moved = moved;
    }
}

#define FSI__LS_PARTS 6
static void fsi__ls_part_columns(fsi__ls_parts *p, fsi__column *c)
{
    c[0].array = (void **)&p->target;  c[0].size = sizeof *p->target;
    c[1].array = (void **)&p->cells;   c[1].size = sizeof *p->cells;
    c[2].array = (void **)&p->parents; c[2].size = sizeof *p->parents;
    c[3].array = (void **)&p->first;   c[3].size = sizeof *p->first;
    c[4].array = (void **)&p->fix;     c[4].size = sizeof *p->fix;
    c[5].array = (void **)&p->shape;   c[5].size = sizeof *p->shape;
}

/* Room for `count` components in `p`. */
static fsi_status fsi__ls_grow_parts(fsi__ls_run *run, fsi__ls_parts *p, int count)
{
    fsi__column columns[FSI__LS_PARTS];
    if (count + 1 <= p->capacity) return FSI_OK;
    fsi__ls_part_columns(p, columns);
    return fsi__grow(run->s->context, columns, FSI__LS_PARTS, p->capacity, &p->capacity, count + count / 2 + 16, "fsi_levelset_step");
}

/* The band's cells, sorted by component, and their pieces. */
static fsi_status fsi__ls_collect_band(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    fsi__ls_parts *p = &m->next;
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    const double dx = (double)run->grid->dx, cfl = (double)run->s->desc.cfl, band = cfl > 4.0 / 3 ? 3 * cfl : 4;
    const fsi_real *phi = m->next_phi->value, edge = (fsi_real)(band * dx);
    fsi__column column;
    int c, k, at, pieces = 0;
    size_t e;
    for (c = 0; c <= p->count; c++) p->first[c] = 0;
    for (e = 0; e < cells; e++)
        if (m->next_label[e] >= 0 && phi[e] < edge && phi[e] > -edge) p->first[m->next_label[e] + 1]++;
    for (c = 0; c < p->count; c++) {
        pieces += (p->first[c + 1] - 1) / FSI__LS_PIECE + 1;
        p->first[c + 1] += p->first[c];
    }
    column.array = (void **)&m->band;
    column.size = sizeof *m->band;
    FSI__LS_TRY(fsi__grow(run->s->context, &column, 1, 0, &m->band_capacity, p->first[p->count] / 4 * 5 + 64, "fsi_levelset_step"));
    column.array = (void **)&m->piece;
    column.size = sizeof *m->piece;
    FSI__LS_TRY(fsi__grow(run->s->context, &column, 1, 0, &m->piece_capacity, pieces / 4 * 5 + 64, "fsi_levelset_step"));
    for (e = 0; e < cells; e++)
        if (m->next_label[e] >= 0 && phi[e] < edge && phi[e] > -edge) {
            fsi__ls_cell *cell = &m->band[p->first[m->next_label[e]]++];
            cell->entry = (int)e;
            cell->start = cell->value = (double)phi[e] / dx;
            cell->share = fsi__ls_heaviside(cell->start);
        }
    for (c = p->count; c > 0; c--) p->first[c] = p->first[c - 1]; /* filling moved each to the beginning of the next */
    p->first[0] = 0;
    for (c = k = 0; c < p->count; c++)
        for (at = p->first[c]; at < p->first[c + 1]; at += FSI__LS_PIECE, k++) {
            m->piece[k].component = c;
            m->piece[k].begin = at;
            m->piece[k].end = at + FSI__LS_PIECE < p->first[c + 1] ? at + FSI__LS_PIECE : p->first[c + 1];
        }
    m->piece_count = k;
    return FSI_OK;
}

/* Sums of every component. */
static void fsi__ls_sum(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int c, k;
    fsi__parallel(run->s->context, m->piece_count, 1, fsi__ls_sum_pieces, run);
    for (c = 0; c < m->next.count; c++) m->next.fix[c].h = m->next.fix[c].jj = m->next.fix[c].jd = 0;
    for (k = 0; k < m->piece_count; k++) {
        fsi__ls_fix *f = &m->next.fix[m->piece[k].component];
        f->h += m->piece[k].h;
        f->jj += m->piece[k].jj;
        f->jd += m->piece[k].jd;
    }
}

/* One Newton step of all components; returns how many are not there yet. */
static int fsi__ls_correct(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    fsi__ls_fix *fix = m->next.fix;
    int c, k, left = 0;
    fsi__ls_sum(run);
    for (c = 0; c < m->next.count; c++) fix[c].h -= fix[c].missing, fix[c].moved = 0;
    for (c = 0; c < m->next.count; c++) fix[c].lam = fix[c].jj > 1e-12 ? (fix[c].h - fix[c].jd) / fix[c].jj : 0;
    fsi__parallel(run->s->context, m->piece_count, 1, fsi__ls_move_pieces, run);
    for (k = 0; k < m->piece_count; k++) {
        fsi__ls_fix *f = &fix[m->piece[k].component];
        if (m->piece[k].moved > f->moved) f->moved = m->piece[k].moved;
    }
    for (c = 0; c < m->next.count; c++) left += !(fabs(fix[c].h) <= run->s->desc.volume_tolerance * fix[c].volume && fix[c].moved <= 1e-4);
    return left;
}

/* Gives every component of next_phi the volume that is missing from its target. */
static fsi_status fsi__ls_keep_volumes(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const double dx = (double)run->grid->dx, cell = run->grid->dim == 3 ? dx * dx * dx : dx * dx;
    int c, i, round, left = 1;
    FSI__LS_TRY(fsi__ls_collect_band(run));
    fsi__ls_sum(run);
    for (c = 0; c < m->next.count; c++) {
        fsi__ls_fix *f = &m->next.fix[c];
        const double missing = m->next.target[c] - m->next.shape[c].volume, area = m->next.shape[c].area, most = 0.2 * dx * area;
        const double share = area > 0 ? 2 * f->jj * cell / (dx * area) : 1;
        f->missing = (missing > most ? most : (missing < -most ? -most : missing)) / cell * (share > 1 ? 1 : share);
        f->volume = m->next.shape[c].volume / cell + fabs(f->missing);
        run->stats.advection_loss -= missing;
    }
    for (round = 0; round < FSI__LS_NEWTON && left > 0; round++) left = fsi__ls_correct(run);
    run->stats.volume_iterations += round;
    for (c = 0; c < m->next.count; c++) {
        const double error = m->next.fix[c].volume > 0 ? fabs(m->next.fix[c].h) / m->next.fix[c].volume : 0;
        if (error > run->stats.smoothed_error) run->stats.smoothed_error = error;
    }
    for (i = 0; i < m->next.first[m->next.count]; i++) {
        fsi_real *phi = &m->next_phi->value[m->band[i].entry];
        const fsi_real value = (fsi_real)(m->band[i].value * dx);
        run->flipped += (value < 0) != (*phi < 0);
        *phi = value;
    }
    return FSI_OK;
}

/* Components of next_phi: labels, grown by three cells, and volumes. */
static fsi_status fsi__ls_find_components(fsi__ls_run *run, int layers)
{
    fsi__ls_impl *m = run->m;
    int count;
    FSI__LS_TRY(fsi_grid_label(m->next_phi, NULL, m->next_label, &count));
    FSI__LS_TRY(fsi__ls_grow_parts(run, &m->next, count));
    m->next.count = count;
    FSI__LS_TRY(fsi_grid_volumes(m->next_phi, m->next_label, count, NULL, m->next.shape));
    return fsi_grid_grow_labels(m->next_label, m->next_phi, layers);
}


/* ---- >>substep: blocks ------------------------------------------------------------------------------------------- */

/* Which blocks must exist: those of every cell with phi < reach. A cell nearer to the surface than that by r cells
   asks for the blocks that r cells around it touch; |grad phi| <= 1 sees to it that none is missed. */
static void fsi__ls_want(const fsi_grid *g, const int *corner, unsigned seen, unsigned char *wanted)
{
    int i, j, k;
    for (k = -1; k <= 1; k++)
        for (j = -1; j <= 1; j++)
            for (i = -1; i <= 1; i++) {
                const int x = (corner[0] >> 3) + i, y = (corner[1] >> 3) + j, z = (corner[2] >> 3) + k;
                if (!(seen >> (i + 1) & 1) || !(seen >> (j + 4) & 1) || !(seen >> (k + 7) & 1)) continue;
                if (x < 0 || y < 0 || z < 0 || x >= g->blocks[0] || y >= g->blocks[1] || z >= g->blocks[2]) continue;
                wanted[((size_t)z * (size_t)g->blocks[1] + (size_t)y) * (size_t)g->blocks[0] + (size_t)x] = 1;
            }
}

static void fsi__ls_want_around(const fsi_grid *g, const fsi_real *phi, int b, double reach, unsigned char *wanted)
{
    unsigned char asked[512];
    int corner[3], c, r;
    memset(asked, 0, sizeof asked);
    fsi_grid_corner(g, b, corner);
    for (c = 0; c < g->block_cells; c++) {
        const int at[3] = { c & 7, (c >> 3) & 7, c >> 6 };
        unsigned key = 0;
        int a;
        if (!((double)phi[c] < reach * (double)g->dx)) continue;
        r = (int)(reach - (double)phi[c] / (double)g->dx);
        for (a = 0; a < 3; a++) key |= (2u | (unsigned)(at[a] - r < 0 && a < g->dim) | (unsigned)(at[a] + r > 7 && a < g->dim) << 2) << (3 * a);
        asked[key] = 1;
    }
    for (c = 0; c < 512; c++)
        if (asked[c]) fsi__ls_want(g, corner, (unsigned)c, wanted);
}

/* Blocks for next_phi; those that there are stay when `keep` is set. */
static fsi_status fsi__ls_make_blocks(fsi__ls_run *run, int keep)
{
    const fsi_grid *g = run->grid;
    const double cfl = ceil((double)run->s->desc.cfl) + 2, reach = (cfl > 4 ? cfl : 4) + 2;
    const size_t places = fsi__grid_places(g);
    size_t p;
    int b;
    for (p = 0; p < places; p++) run->m->wanted[p] = (unsigned char)(keep && g->index[p] >= 0);
    for (b = 0; b < g->block_count; b++) fsi__ls_want_around(g, run->m->next_phi->value + (size_t)b * (size_t)g->block_cells, b, reach, run->m->wanted);
    return fsi_grid_set_blocks(run->grid, run->m->wanted);
}

/* ---- >>step ------------------------------------------------------------------------------------------------------ */

/* Arrays with entries for each block, beside the fields. */
#define FSI__LS_ENTRIES 10
static void fsi__ls_entry_columns(fsi_levelset *s, fsi__column *c)
{
    fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
    const size_t cells = (size_t)s->grid->block_cells;
    c[0].array = (void **)&m->label;        c[0].size = cells * sizeof(int);
    c[1].array = (void **)&m->trial_label;  c[1].size = cells * sizeof(int);
    c[2].array = (void **)&m->next_label;   c[2].size = cells * sizeof(int);
    c[3].array = (void **)&m->cell;         c[3].size = cells;
    c[4].array = (void **)&m->uniform;      c[4].size = sizeof(int);
    c[5].array = (void **)&m->next_uniform; c[5].size = sizeof(int);
    c[6].array = (void **)&m->known[0];     c[6].size = cells;
    c[7].array = (void **)&m->known[1];     c[7].size = cells;
    c[8].array = (void **)&m->known[2];     c[8].size = cells;
    c[9].array = (void **)&m->shore;        c[9].size = cells;
}

/* Room for an entry of each block that there is, in the arrays that are not fields. */
static fsi_status fsi__ls_make_room(fsi_levelset *s, const char *function)
{
    fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
    const int count = s->grid->block_count, before = m->room;
    fsi__column columns[FSI__LS_ENTRIES];
    fsi_status status;
    if (count <= before && before > 0) return FSI_OK; /* an empty liquid has them too */
    fsi__ls_entry_columns(s, columns);
    status = fsi__grow(s->context, columns, FSI__LS_ENTRIES, before, &m->room, count + count / 4 + 1, function);
    s->label = m->label;
    return status;
}

static void fsi__ls_swap_fields(fsi_field **a, fsi_field **b) { fsi_field *t = *a; *a = *b; *b = t; }
static void fsi__ls_swap_parts(fsi__ls_parts *a, fsi__ls_parts *b) { fsi__ls_parts t = *a; *a = *b; *b = t; }
static void fsi__ls_swap_labels(int **a, int **b) { int *t = *a; *a = *b; *b = t; }

/* What a substep made next is the trial. */
static void fsi__ls_take_next(fsi__ls_impl *m)
{
    fsi__ls_swap_parts(&m->trial, &m->next);
    fsi__ls_swap_labels(&m->trial_label, &m->next_label);
}

/* Cells whose level set matters after a substep: what the next surface may touch, and what it is fitted to. */
static void fsi__ls_mark_band(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const size_t cells = (size_t)run->grid->block_cells;
    const fsi_real *phi = run->m->trial_phi->value, band = (4 + run->s->desc.cfl) * run->grid->dx;
    size_t e;
    (void)chunk;
    for (e = (size_t)begin * cells; e < (size_t)end * cells; e++) run->m->cell[e] = (unsigned char)(phi[e] < band && phi[e] > -band);
}

/* Phi and velocities by one step along the velocities of the trial. */
static fsi_status fsi__ls_advect(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const fsi_levelset_desc *d = &run->s->desc;
    const unsigned char *known[3];
    int a;
    if (d->surface_tension > 0) fsi__ls_each_block(run, fsi__ls_relax);
    for (a = 0; a < 3; a++) known[a] = m->known[a];
    fsi__ls_each_block(run, fsi__ls_mark_band);
    FSI__LS_TRY(fsi_grid_advect(m->trial_phi, m->trial_u, (fsi_real)run->dt, d->phi_scheme, 2, m->cell, m->next_phi));
    FSI__LS_TRY(fsi_grid_advect_velocity(m->trial_u, m->trial_u, (fsi_real)run->dt, d->velocity_scheme, 2, known, m->next_u));
    fsi__ls_lap(run, &run->stats.seconds_advection);
    FSI__LS_TRY(fsi_grid_redistance(m->next_phi, FSI__LS_BAND, m->next_phi));
    fsi__ls_lap(run, &run->stats.seconds_distance);
    return FSI_OK;
}

/* Components of next_phi with their targets, and the volumes put right. */
static fsi_status fsi__ls_conserve(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    run->flipped = 0;
    FSI__LS_TRY(fsi__ls_find_components(run, 3));
    FSI__LS_TRY(fsi__ls_link_components(run, 1));
    fsi__ls_hand_on_targets(run);
    fsi__ls_drop_foundlings(run);
    if (run->s->desc.conserve_volume) {
        FSI__LS_TRY(fsi_grid_grow_labels(m->next_label, m->next_phi, FSI__LS_BAND));
        FSI__LS_TRY(fsi__ls_keep_volumes(run));
    }
    fsi__ls_take_next(m);
    if (run->flipped > 0) { /* cells joined or left a component: it may have split or merged */
        FSI__LS_TRY(fsi__ls_find_components(run, 3));
        FSI__LS_TRY(fsi__ls_link_components(run, 0));
        fsi__ls_hand_on_targets(run);
        fsi__ls_take_next(m);
    }
    fsi__ls_lap(run, &run->stats.seconds_volume);
    return FSI_OK;
}

/* Labels of the trial, where its blocks now stand. */
static fsi_status fsi__ls_relabel(fsi__ls_run *run)
{
    int count;
    FSI__LS_TRY(fsi__ls_make_room(run->s, "fsi_levelset_step"));
    FSI__LS_TRY(fsi_grid_label(run->m->trial_phi, NULL, run->m->trial_label, &count));
    return fsi_grid_grow_labels(run->m->trial_label, run->m->trial_phi, 3);
}

/* Gravity, surface tension and the first projection. A checkerboard of ripples on a flat surface, where the liquid of its cells is thinnest, is stable up
   to substeps of 1.1 capillary times in 3D and 2 in 2D (measured). Beyond 1 and 1.5 smoothing follows: after the jump, with a projection of its
   own, as before it it would fail; after the paper's force, before the projection. */
static fsi_status fsi__ls_force(fsi__ls_run *run)
{
    const fsi_levelset_desc *d = &run->s->desc;
    const int tension = d->surface_tension > 0, delta = tension && d->tension == FSI_LEVELSET_TENSION_DELTA;
    run->smooth = tension && run->dt > (d->dim == 3 ? 1.0001 : 1.5001) * fsi__ls_capillary_time(d);
    fsi__ls_each_block(run, fsi__ls_add_gravity);
    if (tension) fsi__ls_each_block(run, fsi__ls_curvatures);
    if (delta) fsi__ls_each_block(run, fsi__ls_push);
    if (delta && run->smooth) {
        fsi__ls_each_block(run, fsi__ls_kinds);
        FSI__LS_TRY(fsi__ls_extrapolate(run));
        FSI__LS_TRY(fsi__ls_smooth(run));
    }
    FSI__LS_TRY(fsi__ls_project(run, 1));
    if (delta || !run->smooth) return FSI_OK;
    FSI__LS_TRY(fsi__ls_smooth(run));
    return fsi__ls_project(run, 0);
}

/* From the trial to the trial: forces, first projection, advection, volumes, second projection. */
static fsi_status fsi__ls_substep(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int a;
    FSI__LS_TRY(fsi__ls_force(run));
    FSI__LS_TRY(fsi__ls_advect(run));
    FSI__LS_TRY(fsi__ls_conserve(run));
    FSI__LS_TRY(fsi__ls_make_blocks(run, 1));
    fsi__ls_swap_fields(&m->trial_phi, &m->next_phi);
    for (a = 0; a < run->grid->dim; a++) fsi__ls_swap_fields(&m->trial_u[a], &m->next_u[a]);
    FSI__LS_TRY(fsi__ls_relabel(run));
    fsi__ls_lap(run, &run->stats.seconds_other);
    return fsi__ls_project(run, 0);
}

/* The state becomes the trial. */
static void fsi__ls_copy_state(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const size_t cells = (size_t)run->grid->block_cells, at = (size_t)begin * cells, count = (size_t)(end - begin) * cells;
    int a;
    (void)chunk;
    memcpy(m->trial_label + at, m->label + at, count * sizeof *m->label);
    memcpy(m->trial_phi->value + at, m->phi->value + at, count * sizeof(fsi_real));
    memcpy(m->trial_pressure->value + at, m->pressure->value + at, count * sizeof(fsi_real));
    for (a = 0; a < run->grid->dim; a++) memcpy(m->trial_u[a]->value + at, m->u[a]->value + at, count * sizeof(fsi_real));
}

static fsi_status fsi__ls_begin(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const size_t places = fsi__grid_places(run->grid);
    size_t p;
    for (p = 0; p < places; p++) m->before[p] = run->grid->index[p] >= 0; /* first of all: what a failure goes back to */
    FSI__LS_TRY(fsi__ls_make_room(run->s, "fsi_levelset_step"));
    FSI__LS_TRY(fsi__ls_grow_parts(run, &m->trial, m->parts.count));
    m->trial.count = m->parts.count;
    if (m->parts.count > 0) {
        memcpy(m->trial.target, m->parts.target, (size_t)m->parts.count * sizeof *m->parts.target);
        memcpy(m->trial.shape, m->parts.shape, (size_t)m->parts.count * sizeof *m->parts.shape);
    }
    fsi__ls_each_block(run, fsi__ls_copy_state);
    return FSI_OK;
}

static fsi_status fsi__ls_grow_components(fsi_levelset *s, int count, const char *function)
{
    fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
    fsi__column column;
    fsi_status status;
    column.array = (void **)&m->component;
    column.size = sizeof *m->component;
    if (count <= m->component_capacity) return FSI_OK;
    status = fsi__grow(s->context, &column, 1, m->component_capacity, &m->component_capacity, count + count / 2 + 16, function);
    s->component = m->component;
    return status;
}

/* The trial becomes the state, in the blocks that it needs. Once there is room for the components nothing can fail: fewer blocks need no memory. */
static fsi_status fsi__ls_commit(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int a, count;
    FSI__LS_TRY(fsi__ls_grow_components(run->s, m->trial.count, "fsi_levelset_step"));
    fsi__ls_swap_fields(&m->next_phi, &m->trial_phi);
    FSI__LS_TRY(fsi__ls_make_blocks(run, 0));
    FSI__LS_TRY(fsi_grid_label(m->next_phi, NULL, m->trial_label, &count));
    FSI__LS_TRY(fsi_grid_volumes(m->next_phi, m->trial_label, count, m->trial_u, m->trial.shape));
    FSI__LS_TRY(fsi_grid_grow_labels(m->trial_label, m->next_phi, 3));
    fsi__ls_swap_fields(&m->next_phi, &m->phi);
    fsi__ls_swap_fields(&m->trial_pressure, &m->pressure);
    for (a = 0; a < run->grid->dim; a++) fsi__ls_swap_fields(&m->trial_u[a], &m->u[a]);
    fsi__ls_swap_parts(&m->trial, &m->parts);
    fsi__ls_swap_labels(&m->trial_label, &m->label);
    m->lost_volume += run->lost_volume;
    return FSI_OK;
}

/* What the caller sees of the state. */
static void fsi__ls_publish(fsi_levelset *s)
{
    fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
    const double rho = (double)s->desc.density, g[3] = { (double)s->desc.gravity.x, (double)s->desc.gravity.y, (double)s->desc.gravity.z };
    fsi_levelset_stats *t = &s->stats;
    int a, c;
    s->phi = m->phi;
    s->pressure = m->pressure;
    for (a = 0; a < 3; a++) s->u[a] = m->u[a];
    s->label = m->label;
    s->component_count = m->parts.count;
    s->component = m->component;
    t->volume = t->target = t->potential_energy = t->momentum[0] = t->momentum[1] = t->momentum[2] = 0;
    for (c = 0; c < m->parts.count; c++) {
        const fsi_grid_component *p = &m->parts.shape[c];
        const double x[3] = { (double)p->centroid.x, (double)p->centroid.y, (double)p->centroid.z };
        const double momentum[3] = { (double)p->momentum.x, (double)p->momentum.y, (double)p->momentum.z };
        m->component[c].target = m->parts.target[c];
        m->component[c].shape = *p;
        t->volume += p->volume;
        t->target += m->parts.target[c];
        for (a = 0; a < 3; a++) {
            t->momentum[a] += rho * momentum[a];
            t->potential_energy -= rho * p->volume * g[a] * x[a];
        }
    }
    t->volume_error = t->target > 0 ? t->volume / t->target - 1 : 0;
    t->lost_volume = m->lost_volume;
    t->blocks = s->grid->block_count;
    t->bytes = s->context->bytes;
    t->allocs = s->context->allocs;
}

/* Largest speed on faces of cells that are liquid or touch it [m/s]. */
static void fsi__ls_speeds(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    const size_t cells = (size_t)g->block_cells;
    const fsi_real *phi = run->m->trial_phi->value;
    double most = 0;
    int a;
    size_t e;
    for (a = 0; a < g->dim; a++) {
        const fsi_real *u = run->m->trial_u[a]->value;
        for (e = (size_t)begin * cells; e < (size_t)end * cells; e++) most = phi[e] < g->dx && fabs((double)u[e]) > most ? fabs((double)u[e]) : most;
    }
    run->m->sum[chunk] = most;
}

static fsi_status fsi__ls_find_speed(fsi__ls_run *run)
{
    const int chunks = fsi__chunks(run->grid->block_count, FSI__LS_GRAIN);
    fsi__column column;
    int k;
    column.array = (void **)&run->m->sum;
    column.size = sizeof *run->m->sum;
    FSI__LS_TRY(fsi__grow(run->s->context, &column, 1, 0, &run->m->sum_capacity, chunks + chunks / 4, "fsi_levelset_step"));
    fsi__ls_each_block(run, fsi__ls_speeds);
    run->stats.max_speed = 0;
    for (k = 0; k < chunks; k++) run->stats.max_speed = run->m->sum[k] > run->stats.max_speed ? run->m->sum[k] : run->stats.max_speed;
    return FSI_OK;
}

/* The largest substep [s] that moves nothing farther than cfl dx, gravity counted, dt (v + g dt) = cfl dx, and that follows capillary waves. */
static double fsi__ls_largest_dt(const fsi_levelset_desc *d, double speed)
{
    const double dx = (double)d->dx, g = sqrt((double)fsi_v3_norm2(d->gravity)), way = (double)d->cfl * dx;
    const double plain = 2 * way / (speed + sqrt(speed * speed + 4 * g * way) + 1e-300);
    const double capillary = (double)d->capillary_cfl * fsi__ls_capillary_time(d);
    return plain < capillary ? plain : capillary;
}

static fsi_status fsi__ls_run_substeps(fsi__ls_run *run, double dt)
{
    const fsi_levelset_desc *d = &run->s->desc;
    double left = dt;
    FSI__LS_TRY(fsi__ls_begin(run));
    while (left > 0) {
        double count;
        const int spare = d->max_substeps - run->stats.substeps;
        FSI__LS_TRY(fsi__ls_find_speed(run));
        count = ceil(left / fsi__ls_largest_dt(d, run->stats.max_speed) - 1e-9);
        if (!(count >= 1)) count = 1;
        if (count > spare) count = spare, run->stats.degraded = 1;
        run->dt = left / count;
        left = count > 1 ? left - run->dt : 0;
        FSI__LS_TRY(fsi__ls_substep(run));
        run->stats.substeps++;
    }
    FSI__LS_TRY(fsi__ls_find_speed(run));
    run->stats.cfl = run->stats.max_speed * run->dt / (double)d->dx;
    return fsi__ls_commit(run);
}

static fsi__ls_run fsi__ls_make_run(fsi_levelset *s)
{
    fsi__ls_run run;
    memset(&run, 0, sizeof run);
    run.s = s;
    run.m = (fsi__ls_impl *)s->impl;
    run.grid = s->grid;
    run.clock = fsi__now(s->context);
    return run;
}

/* The end of a call that worked on the trial. One that failed leaves the blocks that there were: fewer than now, which cannot fail. */
static fsi_status fsi__ls_finish(fsi__ls_run *run, fsi_status status)
{
    if (status == FSI_OK) fsi__ls_publish(run->s);
    else fsi_grid_set_blocks(run->grid, run->m->before);
    return status;
}

FSI_API fsi_status fsi_levelset_step(fsi_levelset *s, fsi_real dt)
{
    fsi__ls_run run;
    fsi_status status;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    if (!fsi_is_finite((double)dt) || dt < 0) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, "fsi_levelset_step", -1, (double)dt, "dt is %g seconds", (double)dt);
    run = fsi__ls_make_run(s);
    status = fsi__ls_run_substeps(&run, (double)dt);
    if (status == FSI_OK) {
        fsi__ls_lap(&run, &run.stats.seconds_other);
        s->stats = run.stats;
        s->time += (double)dt;
    }
    return fsi__ls_finish(&run, status);
}

FSI_API fsi_real fsi_levelset_suggest_dt(const fsi_levelset *s)
{
    return fsi__is_levelset(s) ? (fsi_real)fsi__ls_largest_dt(&s->desc, s->stats.max_speed) : 0;
}

/* ---- >>fill ------------------------------------------------------------------------------------------------------ */

/* A shape to fill: one of these calls of the grid, on next_phi. */
typedef struct fsi__ls_shape {
    const char *function;
    fsi_vec3 center;
    fsi_real radius;
    const fsi_box3 *box;
    const fsi_mesh *mesh;
} fsi__ls_shape;

static fsi_status fsi__ls_fill_shape(fsi_field *phi, const fsi__ls_shape *shape)
{
    if (shape->mesh) return fsi_grid_fill_mesh(phi, FSI_GRID_ADD, shape->mesh, FSI__LS_BAND);
    if (shape->box) return fsi_grid_fill_box(phi, FSI_GRID_ADD, *shape->box, FSI__LS_BAND);
    return fsi_grid_fill_sphere(phi, FSI_GRID_ADD, shape->center, shape->radius, FSI__LS_BAND);
}

enum { FSI__LS_OLD = 1, FSI__LS_NEW = 2 };

/* Kinds for a fill: liquid where trial_phi was (OLD) or where next_phi made it (NEW). */
static void fsi__ls_mark_liquid(fsi__ls_run *run, int which)
{
    const fsi__ls_impl *m = run->m;
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    size_t e;
    for (e = 0; e < cells; e++) {
        const int old = m->trial_phi->value[e] < 0, now = m->next_phi->value[e] < 0;
        m->cell[e] = (unsigned char)((which & FSI__LS_OLD && old) || (which & FSI__LS_NEW && now && !old) ? FSI_CELL_LIQUID : FSI_CELL_AIR);
    }
}

/* Faces next to new liquid get `velocity`, unless they are next to old liquid too. */
static fsi_status fsi__ls_fill_velocity(fsi__ls_run *run, fsi_vec3 velocity)
{
    fsi__ls_impl *m = run->m;
    const fsi_real v[3] = { velocity.x, velocity.y, velocity.z };
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    size_t e;
    for (run->axis = 0; run->axis < run->grid->dim; run->axis++) {
        fsi_real *to = m->next_u[run->axis]->value, *from = m->trial_u[run->axis]->value;
        fsi__ls_mark_liquid(run, FSI__LS_NEW);
        fsi__ls_each_block(run, fsi__ls_known_faces);
        for (e = 0; e < cells; e++) to[e] = m->known[run->axis][e] ? v[run->axis] : from[e];
        fsi__ls_mark_liquid(run, FSI__LS_OLD);
        fsi__ls_each_block(run, fsi__ls_known_faces);
        for (e = 0; e < cells; e++)
            if (!m->known[run->axis][e]) from[e] = to[e];
    }
    fsi__ls_mark_liquid(run, FSI__LS_OLD | FSI__LS_NEW);
    return fsi__ls_extrapolate(run);
}

/* What old components lack or have too much, they hand on; new liquid has the volume that it has. */
static fsi_status fsi__ls_fill_targets(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int c;
    FSI__LS_TRY(fsi__ls_find_components(run, 3));
    FSI__LS_TRY(fsi__ls_link_components(run, 0));
    for (c = 0; c < m->trial.count; c++) m->trial.target[c] -= m->trial.shape[c].volume;
    fsi__ls_hand_on_targets(run);
    for (c = 0; c < m->next.count; c++) m->next.target[c] += m->next.shape[c].volume;
    fsi__ls_take_next(m);
    return FSI_OK;
}

static fsi_status fsi__ls_fill_trial(fsi__ls_run *run, const fsi__ls_shape *shape, fsi_vec3 velocity)
{
    fsi__ls_impl *m = run->m;
    FSI__LS_TRY(fsi__ls_begin(run));
    memcpy(m->next_phi->value, m->trial_phi->value, (size_t)run->grid->block_count * (size_t)run->grid->block_cells * sizeof(fsi_real));
    FSI__LS_TRY(fsi__ls_fill_shape(m->next_phi, shape));
    FSI__LS_TRY(fsi__ls_make_blocks(run, 1));
    FSI__LS_TRY(fsi__ls_make_room(run->s, shape->function));
    FSI__LS_TRY(fsi__ls_relabel(run));
    FSI__LS_TRY(fsi__ls_fill_velocity(run, velocity));
    FSI__LS_TRY(fsi__ls_fill_targets(run));
    fsi__ls_swap_fields(&m->trial_phi, &m->next_phi);
    return fsi__ls_commit(run);
}

static fsi_status fsi__ls_fill(fsi_levelset *s, const fsi__ls_shape *shape, fsi_vec3 velocity)
{
    fsi__ls_run run;
    if (!fsi_v3_is_finite(velocity)) return fsi__fail(s->context, FSI_ERROR_NAN, shape->function, -1, 0, "velocity is not finite");
    run = fsi__ls_make_run(s);
    return fsi__ls_finish(&run, fsi__ls_fill_trial(&run, shape, velocity));
}

FSI_API fsi_status fsi_levelset_fill_sphere(fsi_levelset *s, fsi_vec3 center, fsi_real radius, fsi_vec3 velocity)
{
    fsi__ls_shape shape;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    memset(&shape, 0, sizeof shape);
    shape.function = "fsi_levelset_fill_sphere";
    shape.center = center;
    shape.radius = radius;
    return fsi__ls_fill(s, &shape, velocity);
}

FSI_API fsi_status fsi_levelset_fill_box(fsi_levelset *s, fsi_box3 box, fsi_vec3 velocity)
{
    fsi__ls_shape shape;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    memset(&shape, 0, sizeof shape);
    shape.function = "fsi_levelset_fill_box";
    shape.box = &box;
    return fsi__ls_fill(s, &shape, velocity);
}

FSI_API fsi_status fsi_levelset_fill_mesh(fsi_levelset *s, const fsi_mesh *mesh, fsi_vec3 velocity)
{
    fsi__ls_shape shape;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    memset(&shape, 0, sizeof shape);
    shape.function = "fsi_levelset_fill_mesh";
    shape.mesh = mesh;
    if (!mesh) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, shape.function, -1, 0, "mesh is NULL");
    return fsi__ls_fill(s, &shape, velocity);
}

/* ---- >>create ---------------------------------------------------------------------------------------------------- */

static fsi_status fsi__ls_check_desc(const fsi_levelset_desc *d)
{
    static const char *const f = "fsi_levelset_create";
    const struct { const char *name; double value, lo, hi; } range[] = {
        { "dim", (double)d->dim, 2, 3 },
        { "density", (double)d->density, 1e-6, 1e9 },
        { "surface_tension", (double)d->surface_tension, 0, 1e6 },
        { "tension", (double)(int)d->tension, 0, 1 },
        { "capillary_cfl", (double)d->capillary_cfl, 0.05, 5 },
        { "cfl", (double)d->cfl, 0.05, 4 },
        { "max_substeps", (double)d->max_substeps, 1, 1e6 },
        { "conserve_volume", (double)d->conserve_volume, 0, 1 },
        { "pressure_tolerance", d->pressure_tolerance, 1e-14, 0.1 },
        { "max_iters", (double)d->max_iters, 1, 1e6 },
        { "volume_tolerance", d->volume_tolerance, 1e-14, 0.1 }
    };
    size_t k;
    for (k = 0; k < sizeof range / sizeof *range; k++)
        if (!(range[k].value >= range[k].lo && range[k].value <= range[k].hi))
            return fsi__fail(d->context, range[k].value == range[k].value ? FSI_ERROR_ARGUMENT : FSI_ERROR_NAN, f, (long long)k, range[k].value,
                "desc.%s is %g, must be %g to %g", range[k].name, range[k].value, range[k].lo, range[k].hi);
    if (!fsi_v3_is_finite(d->gravity)) return fsi__fail(d->context, FSI_ERROR_NAN, f, -1, 0, "desc.gravity is not finite");
    if (d->dim == 2 && (d->gravity.z < 0 || d->gravity.z > 0)) return fsi__fail(d->context, FSI_ERROR_ARGUMENT, f, -1, (double)d->gravity.z, "desc.gravity.z is %g, but the plane of dim 2 is x, y", (double)d->gravity.z);
    return FSI_OK;
}

/* The parts that a simulator is made of; what has been made when one fails is left to destroy. */
static fsi_status fsi__ls_make(fsi_levelset *s, fsi__ls_impl *m)
{
    const fsi_real deep = (fsi_real)FSI__LS_BAND * s->desc.dx;
    fsi_grid_desc gd = fsi_grid_default_desc();
    fsi_pressure_desc pd = fsi_pressure_default_desc();
    int a;
    gd.context = pd.context = s->context;
    gd.dim = s->desc.dim;
    gd.dx = s->desc.dx;
    gd.origin = s->desc.origin;
    for (a = 0; a < 3; a++) gd.n[a] = s->desc.n[a];
    pd.tolerance = s->desc.pressure_tolerance;
    pd.max_iters = s->desc.max_iters;
    FSI__LS_TRY(fsi_grid_create(&s->grid, &gd));
    FSI__LS_TRY(fsi_pressure_create(&m->solver, &pd));
    FSI__LS_TRY(fsi_grid_add_field(s->grid, FSI_CELLS, deep, &m->phi));
    FSI__LS_TRY(fsi_grid_add_field(s->grid, FSI_CELLS, deep, &m->trial_phi));
    FSI__LS_TRY(fsi_grid_add_field(s->grid, FSI_CELLS, deep, &m->next_phi));
    FSI__LS_TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 0, &m->pressure));
    FSI__LS_TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 0, &m->trial_pressure));
    FSI__LS_TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 0, &m->curvature));
    m->curvature->scratch = 1;
    for (a = 0; a < s->grid->dim; a++) {
        const fsi_grid_place place = (fsi_grid_place)((int)FSI_FACES_X + a);
        FSI__LS_TRY(fsi_grid_add_field(s->grid, place, 0, &m->u[a]));
        FSI__LS_TRY(fsi_grid_add_field(s->grid, place, 0, &m->trial_u[a]));
        FSI__LS_TRY(fsi_grid_add_field(s->grid, place, 0, &m->next_u[a]));
    }
    m->wanted = (unsigned char *)fsi__alloc(s->context, fsi__grid_places(s->grid), 1);
    m->before = (unsigned char *)fsi__alloc(s->context, fsi__grid_places(s->grid), 1);
    if (!m->wanted || !m->before) return fsi__fail(s->context, FSI_ERROR_MEMORY, "fsi_levelset_create", -1, 0, "no memory for the list of blocks");
    return FSI_OK;
}

FSI_API fsi_status fsi_levelset_create(fsi_levelset **out, const fsi_levelset_desc *desc)
{
    fsi_levelset *s;
    fsi__ls_impl *m;
    fsi_status status;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!desc || desc->cookie != FSI__COOKIE('L', fsi_levelset_desc) || !fsi__is_context(desc->context)) return FSI_ERROR_COOKIE;
    FSI__LS_TRY(fsi__ls_check_desc(desc));
    s = (fsi_levelset *)fsi__alloc(desc->context, 1, sizeof *s + sizeof *m);
    if (!s) return fsi__fail(desc->context, FSI_ERROR_MEMORY, "fsi_levelset_create", -1, 0, "no memory for a simulator");
    m = (fsi__ls_impl *)(void *)(s + 1);
    m->own_context = fsi_default_context();
    s->cookie = FSI__COOKIE('l', fsi_levelset);
    s->context = desc->context ? desc->context : &m->own_context;
    s->desc = *desc;
    s->impl = m;
    status = fsi__ls_make(s, m);
    if (status != FSI_OK) {
        fsi_levelset_destroy(s);
        return status;
    }
    fsi__ls_publish(s);
    *out = s;
    return FSI_OK;
}

FSI_API void fsi_levelset_destroy(fsi_levelset *s)
{
    fsi__column columns[FSI__LS_ENTRIES];
    fsi__ls_parts *parts[3];
    fsi__ls_impl *m;
    int k;
    if (!fsi__is_levelset(s)) return;
    m = (fsi__ls_impl *)s->impl;
    if (s->grid) {
        fsi__ls_entry_columns(s, columns);
        fsi__free_columns(s->context, columns, FSI__LS_ENTRIES, m->room);
        fsi__free(s->context, m->wanted, fsi__grid_places(s->grid), 1);
        fsi__free(s->context, m->before, fsi__grid_places(s->grid), 1);
    }
    parts[0] = &m->parts;
    parts[1] = &m->trial;
    parts[2] = &m->next;
    for (k = 0; k < 3; k++) {
        fsi__ls_part_columns(parts[k], columns);
        fsi__free_columns(s->context, columns, FSI__LS_PARTS, parts[k]->capacity);
    }
    fsi__free(s->context, m->component, (size_t)m->component_capacity, sizeof *m->component);
    fsi__free(s->context, m->link, (size_t)m->link_capacity, sizeof *m->link);
    fsi__free(s->context, m->band, (size_t)m->band_capacity, sizeof *m->band);
    fsi__free(s->context, m->piece, (size_t)m->piece_capacity, sizeof *m->piece);
    fsi__ls_face_columns(m, columns);
    fsi__free_columns(s->context, columns, 3, m->face_capacity);
    fsi__free(s->context, m->sum, (size_t)m->sum_capacity, sizeof *m->sum);
    fsi_pressure_destroy(m->solver);
    fsi_grid_destroy(s->grid);
    s->cookie = 0;
    fsi__free(s->desc.context, s, 1, sizeof *s + sizeof *m); /* not from the context that it may hold itself */
}

FSI__STRICT_END

#endif /* FSI_LEVELSET_IMPLEMENTATION_DONE */
#endif /* FSI_IMPLEMENTATION */
