/* fsi_levelset_state.h - desc and state of a level-set liquid, and the working data of its steps.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_levelset.h includes this file, makes a liquid from the desc and advances it.

   WHAT IS IN HERE (search for >>)
      >>desc             fsi_levelset_desc: size, gravity, tension, viscosity, sides, schemes
      >>what there is    fsi_levelset, which you read: fields, components, droplets, stats
      >>stages           for fsi's own headers, not for you: the working data of a step, which fsi_levelset_walls.h,
                         fsi_levelset_parts.h and fsi_levelset.h share, and functions that all three call
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
   PRECISION: fields in fsi_real, sums and volumes in double.
*/
#ifndef FSI_LEVELSET_STATE_H
#define FSI_LEVELSET_STATE_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_pressure.h"
#include "fsi_viscosity.h"

/* ---- >>desc ------------------------------------------------------------------------------------------------------ */

/* How surface tension acts. JUMP: the pressure jumps by gamma times curvature where the surface crosses a face (ghost
   fluid). DELTA: the paper's force, spread over a band of 6 cells (its equation 8, one-sided: half of it would act on
   air): noisy, for comparison. */
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
    fsi_real viscosity;        /* dynamic, implicit [Pa s]; default 0: only the numerical one of advection */
    fsi_real surface_tension;  /* gamma [N/m]; default 0 */
    fsi_levelset_tension tension; /* default JUMP */
    fsi_vec3 gravity;          /* [m/s^2]; default (0, 0, -9.81) */
    fsi_acceleration_fn *acceleration; /* of the liquid, added to gravity, a function of place and time; default NULL:
                                          none. Evaluated at the faces and cells in and next to liquid, at the middle of
                                          each substep, and at its beginning to choose its length. COUPLED bodies get
                                          theirs by body->force. Not saved; not in potential_energy. In 2D its z is
                                          ignored */
    void *acceleration_user;   /* its first argument; default NULL */
    unsigned char open_side[6];/* of the box, x-, x+, y-, y+, z-, z+: 1: liquid leaves there against air of pressure 0;
                                  default 0: a wall */
    unsigned char no_slip[6];  /* walls of the box where viscosity > 0: 1 (default): the liquid sticks, 0: it slides */
    fsi_real contact_angle;    /* of the walls of the box, through the liquid [degrees], 10 to 170; default 90 */
    int release;               /* 1 (default): at the rim of the liquid, where air can get in, walls of the box,
                                  obstacles and PRESCRIBED bodies release liquid that they would pull at by more than
                                  surface_tension (1 + cos contact_angle)/dx; 0: liquid leaves them only as its surface
                                  moves along them. COUPLED bodies never release it, nor do walls beside the shell of
                                  fsi_couple.h */
    fsi_real cfl;              /* substeps are chosen so that nothing moves farther than cfl * dx in one, 0.05 to 4;
                                  default 0.7 */
    fsi_real capillary_cfl;    /* nor longer than this times sqrt(density dx^3/(4 pi surface_tension)), 0.05 to 5;
                                  default 1. Up to 1 (2D: 1.5) short waves are stable; longer substeps damp them at the
                                  price of a second projection */
    int max_substeps;          /* of one call; default 50 */
    int conserve_volume;       /* default 1: each component keeps its volume; 0: volume errors of advection remain */
    int time_order;            /* of velocities; default 2: vortices and waves keep their energy; 1: they lose more, the
                                  longer the substeps are */
    fsi_grid_scheme velocity_scheme, phi_scheme; /* advection; default CUBIC; LINEAR blurs and takes about a tenth less
                                                    time, see docs/levelset.md */
    double pressure_tolerance; /* divergence left by the first projection, relative to the largest before; default
                                  1e-6 */
    int max_iters;             /* of a pressure solve; default 200: beyond that a step fails with
                                  FSI_ERROR_CONVERGENCE */
    double volume_tolerance;   /* |S - V0| / V0 of each component; default 1e-8 */
    int reserve;               /* blocks of 8^dim cells to make room for; default 0 */
} fsi_levelset_desc;
FSI_API fsi_levelset_desc fsi_levelset_default_desc(void); /* fills every field */

/* ---- >>what there is --------------------------------------------------------------------------------------------- */

/* A connected piece of liquid. */
typedef struct fsi_levelset_component {
    double target;             /* target volume [m^3]; 2D: area [m^2] */
    fsi_grid_component shape;  /* measured on its present surface */
} fsi_levelset_component;

/* Liquid too small for the grid, from films thinner than half a cell and drops smaller than a cell whose cells became
   air. A droplet flies as a point, comes to rest on walls and obstacles, and rejoins liquid that it touches, or forms a
   drop with other droplets once they suffice for a radius of dx. */
typedef struct fsi_levelset_droplet {
    fsi_vec3 position, velocity;      /* [m], [m/s] */
    double volume;                    /* [m^3]; 2D: area [m^2] */
} fsi_levelset_droplet;

/* What the last successful step did. Sums over its substeps unless said otherwise. */
typedef struct fsi_levelset_stats {
    int substeps;
    int blocks;                       /* at the end */
    int pressure_iterations, volume_iterations, viscosity_iterations, smoothing_iterations;
    double divergence;                /* largest after a projection [1/s] */
    int degraded;                     /* 1: max_substeps made substeps longer than asked, or some were `thinned` */
    int released;                     /* faces of walls and obstacles that released liquid */
    int thinned;                      /* substeps whose viscosity did not converge and was lowered: see
                                         fsi_levelset_step */
    int splits, merges;               /* of components: new ones by splitting, and those lost by merging */
    double volume, target;            /* of all components and droplets, at the end [m^3] */
    double droplet_volume;            /* of the droplets alone, included in both [m^3] */
    double volume_error;              /* (volume - target - lost_volume) relative to all liquid so far: target,
                                         lost_volume, left_volume and the totals of sinks, except those removed since.
                                         Lost volume stays in it */
    double lost_volume;               /* since creation: of droplets covered by an obstacle and, without
                                         conserve_volume, of components that vanished [m^3] */
    double left_volume;               /* through open sides of the box, since creation [m^3] */
    double advection_loss;            /* excess volume of components (< 0: deficit) after advection, before the
                                         correction [m^3]: errors of advection, and the part of a change by set_volume
                                         that exceeds one substep */
    double smoothed_error;            /* largest |S - V0| / V0 after an optimisation */
    double max_speed, cfl;            /* at the end [m/s]; max_speed * substep / dx */
    double momentum[3];               /* of components and droplets [kg m/s], at the end */
    double kinetic_energy, potential_energy; /* likewise [J]; potential: -m g.x */
    double seconds_advection, seconds_distance, seconds_volume, seconds_pressure, seconds_extrapolation,
        seconds_viscosity, seconds_other;
    size_t bytes;                     /* held through its context */
    long long allocs;
} fsi_levelset_stats;

/* A liquid. Read everything; write only what is marked. Pointers to fields and arrays change in every call that changes
   the liquid: fetch them anew (`value` of fields also after a call that had no memory). */
typedef struct fsi_levelset {
    uint32_t cookie;
    fsi_context *context;             /* never NULL */
    fsi_levelset_desc desc;           /* as given; set_desc and shift_origin change it */
    fsi_grid *grid;                   /* which blocks there are; read only */
    const fsi_field *phi;             /* at cells [m]: negative in the liquid, distance to its surface up to 8 dx, +-8
                                         dx beyond; extrapolated into obstacles, where it may be negative too (not so
                                         fsi_levelset_phi_at) */
    fsi_field *u[3];                  /* on faces [m/s]; yours to write between steps; 2D: u[2] is NULL */
    const fsi_field *pressure;        /* at cells, of the last step [Pa]; 0 outside of the liquid */
    const int *label;                 /* entries of cells: component, also of the cells around it; -1 none */
    int component_count;
    const fsi_levelset_component *component;
    int droplet_count;                /* droplets are not in phi, labels and components: draw them in addition to the
                                         surface, as balls of their volume */
    const fsi_levelset_droplet *droplet;
    double time;                      /* [s] */
    fsi_levelset_stats stats;
    void *impl;
} fsi_levelset;

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

typedef struct fsi__ls_run fsi__ls_run; /* working data of a call; one a liquid where stages are called from outside */

/* A liquid as the driver of its stages sees it. Stages update the pointers; fields have the grid of the liquid. Read
   only, unless said otherwise. */
typedef struct fsi__ls_view {
    double dt, done;              /* of the substep: its length [s]; fraction of the call's dt when it ends */
    int substeps;                 /* closed so far */
    fsi_field *trial_phi;         /* [m] where the substep begins; from regrid on where it ends */
    fsi_field *next_phi;          /* from advect_surface to regrid: where it ends; may be written, from follow on by
                                     put_phi only */
    fsi_field *trial_u[3];        /* [m/s] may be written between hold_viscous and thicken */
    fsi_field *next_u[3];         /* scratch while a projection is open */
    fsi_field *trial_pressure;    /* [Pa] of the first projection, and those after it added up */
    fsi_field *curvature, *trust; /* surface tension [Pa], and its weight: see fsi_pressure_flow; from force on */
    const fsi_field *psi;         /* distance to the nearest obstacle [m]; NULL: there is none */
    const unsigned char *cell;    /* entries: fsi_pressure_flow's kinds of cells, from open_projection on */
    const unsigned char *known[3]; /* entries: 1: the velocity of that face is prescribed; from hold_viscous on */
    unsigned char *shore;         /* entries, between close_projection and finish_projection: 1: air beside liquid,
                                     whose faces will change; write 2: no face gets faster than the fastest is */
    const int *trial_label, *next_label; /* entries: component of trial_phi; of next_phi, from follow on; -1: none */
    int parts, next_parts;        /* components of each */
    const double *target;         /* parts: target volume of each [m^3; 2D: m^2] */
    fsi_pressure *solver;
} fsi__ls_view;

#define FSI__LS_BAND 8   /* phi is a distance this many cells from the surface */
#define FSI__LS_GRAIN 16 /* blocks a task */
#define FSI__LS_TIE 1e-3 /* [dx] points nearer than this to a solid's surface count as inside */
#define FSI__LS_UNLIKE 100 /* pressure is not carried on from a substep shorter by this ratio */
#define FSI__LS_FASTEST 1e9  /* [m/s] largest speed that a caller may give; squeezed liquid may become faster: */
#define FSI__LS_BURST 1e12   /* largest speed in u and in states */
#define FSI__LS_RUNAWAY (sizeof(fsi_real) == 8 ? 1e30 : 1e15) /* largest speed within a step */
#define FSI__LS_SAVED 4 /* numbers of a state behind its head: time, lost, left, carry_dt */

enum { FSI__LS_AGAIN, FSI__LS_FIRST, FSI__LS_LAST };

/* Targets of the components of one labelling. */
typedef struct fsi__ls_parts {
    int count, capacity;
    double *target;                      /* volume [m^3] */
    double *cells;                       /* linked to old components */
    int *parents;                        /* number of these */
    int *first;                          /* its cells in the band; one more stands at the end */
    double *leaving;                     /* outflow through open sides in this substep [m^3] */
    struct fsi__ls_fix *fix;             /* state of its volume correction */
    double *owed;                        /* 3 each: momentum over density still missing after a substep [m^4/s; 2D:
                                            m^3/s] */
    struct fsi__ls_motion *motion;       /* its momentum within one */
    fsi_grid_component *shape;
} fsi__ls_parts;

/* Working data of a call, fsi_levelset_step or another one. */
struct fsi__ls_run {
    fsi_levelset *s;
    struct fsi__ls_impl *m;
    fsi_grid *grid;
    const char *function;                /* that was called, for messages */
    fsi_levelset_stats stats;
    double time, dt;                     /* at the beginning of the substep; of it */
    double length, done;                 /* dt of the call [s], 0: not fsi_levelset_step; fraction of it when the
                                            substep ends */
    double left;                         /* of the call when the substep ends [s] */
    int joint;                           /* velocities of solids are solved for together with the liquid's */
    int balanced;                        /* the momentum due to each component is known: fsi__ls_expect_momentum */
    int which;                           /* projection: FSI__LS_FIRST, AGAIN or LAST */
    double clock;                        /* of the last lap */
    double lost_volume, left_volume;
    int axis;
    int smooth;                          /* the substep exceeds the capillary limit */
    double face_keep, face_add;          /* of a step of the smoothing */
    int released;                        /* faces of walls that released liquid in this substep */
    int fills;                           /* targets are deficits or excesses of components, while shapes are filled */
    int flush;                           /* pass of fsi__ls_wet_solids, else 0 */
    int flipped;                         /* cells whose phi changed sign in the volume correction */
    double divergence;                   /* [1/s] left by the first projection: the aim of the second one */
    double carry_dt, half;               /* of the substep that `carry` is of, 0: none; half of this one's dt over it */
    double keep, add;                    /* of fsi__ls_weigh_carry */
    double before;                       /* sum of target volumes before an edit [m^3] */
    double saved[FSI__LS_SAVED];         /* of a state that was read */
    const fsi_field *looked;            /* by fsi__ls_look_for_nan */
};

/* fsi_levelset.impl. */
typedef struct fsi__ls_impl {
    fsi__ls_run run;                     /* of stages that are called from outside */
    fsi__ls_view view;
    unsigned moves;                      /* steps with dt > 0, loads and shifts of the origin so far: a coupling detects
                                            those that are not its own */
    fsi_context own_context;
    fsi_pressure *solver;
    fsi_viscosity *viscosity;
    fsi_grid_surface *surface;           /* for pictures */
    /* The state, as the caller sees it; the trial of a call, which becomes the state when the call succeeds; the result
       of a substep. */
    fsi_field *phi, *trial_phi, *next_phi, *u[3], *trial_u[3], *next_u[3], *pressure, *trial_pressure;
    fsi_field *curvature;                /* times the surface tension [Pa], of the surface where the substep began: from
                                            fsi__ls_force to its end */
    fsi_field *trust;                    /* in it, 0.01 to 1: low where phi has a ridge */
    fsi_field *spare;                    /* pressure of a later projection until it is added, distances to a sink or a
                                            removed solid */
    int *label, *trial_label, *next_label; /* an int an entry */
    int *later_label;                    /* replaces a state's label that has become too small; else NULL */
    int label_room;                      /* blocks that the state's label has room for, the others have `room` */
    fsi__ls_parts parts, trial, next;
    unsigned char *cell, *known[3];      /* a byte an entry: kinds of cells for the pressure solver; faces whose
                                            velocity is known */
    unsigned char *let_go;               /* likewise: of fsi_pressure_flow; read while run->released > 0 only */
    struct fsi__ls_rim *rim;             /* faces of walls that air can reach */
    int rim_count, rim_capacity;
    unsigned char *shore;                /* likewise: air beside liquid; from advection until volumes are corrected:
                                            liquid so far; behind the last projection: faces that obstacles cover */
    int room;                            /* blocks that these arrays have room for */
    unsigned char *wanted, *before;      /* a byte a place of a block: blocks that are needed; those before the call */
    int *uniform, *next_uniform;         /* of labels, a block: the only one in it, -1 none, -2 several */
    fsi_levelset_component *component;   /* what the caller sees */
    int component_capacity;
    fsi_levelset_droplet *droplet, *trial_droplet;
    int droplet_count, trial_droplet_count, droplet_capacity, trial_droplet_capacity;
    struct fsi__ls_cell *band;           /* cells of the volume constraint, by component; `piece`s of these */
    struct fsi__ls_piece *piece;
    int band_capacity, piece_capacity, piece_count;
    struct fsi__ls_link *link;
    int link_count, link_capacity;
    struct fsi__ls_face *face;           /* that capillary smoothing changes, of one axis; change and left over of
                                            each */
    double *face_change, *face_left;
    int face_count, face_capacity;
    double *sum;                         /* one a task */
    int sum_capacity;
    double lost_volume, left_volume, kinetic_energy;
    double told_error;                   /* volume_error in the last message about it; 0 once it is below 1 %; not
                                            part of the state */
    fsi_field *carry[3], *trial_carry[3]; /* time_order 2: change of u by pressure in the last substep after advection
                                             [m/s]; else NULL */
    fsi_field *carried, *trial_carried;  /* that pressure [Pa], 0 in cells at the surface */
    double carry_dt;                     /* of that substep */
    struct fsi__ls_emitter *emitter;
    struct fsi__ls_sink *sink;
    int emitter_count, emitter_capacity, next_emitter, sink_count, sink_capacity, next_sink;
    struct fsi__ls_obstacle *obstacle;
    fsi_pressure_solid *solid;           /* one an obstacle */
    int obstacle_count, obstacle_capacity, next_id;
    fsi_field *psi, *owner;              /* distance to the nearest solid, number of its obstacle; NULL until there was
                                            one */
    fsi_field *still_psi, *still_owner;  /* the same of those that rest */
    int *built, built_count;             /* places of the blocks that these, and the faces of obstacles, were made
                                            for */
    int stale_psi, stale_still, stale_faces; /* they are to be made again, */
    int fresh_blocks;                    /* in new blocks only */
} fsi__ls_impl;

/* 1: made by fsi_levelset_create of this version and precision. */
FSI_API int fsi__is_levelset(const fsi_levelset *s);
/* Length of a velocity, without overflow. */
FSI_API double fsi__ls_speed(fsi_vec3 v);
/* Room for `count` rows of scratch and at least one, whose contents are lost when it grows. */
FSI_API fsi_status fsi__ls_hold(fsi_context *context, const fsi__column *columns, int column_count, int *capacity,
    int count);
FSI_API void fsi__ls_lap(fsi__ls_run *run, double *seconds);          /* adds the time since the last lap */
FSI_API void fsi__ls_each_block(fsi__ls_run *run, fsi__range_fn *fn); /* in tasks; fn gets the run */

/* desc.acceleration at x, and whether it is finite. */
FSI_API int fsi__ls_acceleration(const fsi_levelset *s, fsi_vec3 x, double time, double a[3]);
/* Reports that it is not; returns NAN. */
FSI_API fsi_status fsi__ls_bad_acceleration(const fsi_levelset *s, const char *function, fsi_vec3 x, double time);
FSI_API fsi_vec3 fsi__ls_entry_position(const fsi_grid *g, fsi_grid_place place, int e); /* world axes [m] */

/* Cells by which phi and u are extrapolated into solids and air: the largest displacement, plus the stencil of
   interpolation. */
FSI_FN int fsi__ls_reach(const fsi_levelset_desc *d)
{
    const int cfl = (int)ceil((double)d->cfl) + 2;
    return cfl > 4 ? cfl : 4;
}

FSI_FN fsi_real fsi__ls_component(fsi_vec3 v, int axis) { return axis == 0 ? v.x : (axis == 1 ? v.y : v.z); }

/* Entry of the cell across face `side` (x-, x+, y-, ...) of the cell at entry e, or of that side of the box itself.
   *at -1: no block is there. Returns 1 if it is a cell, 0: out of the box or no block. */
FSI_FN int fsi__ls_neighbor(const fsi__ls_run *run, int e, int side, long long *at)
{
    const fsi_grid *g = run->grid;
    const int c = e % g->block_cells, a = side >> 1, d = side & 1 ? 1 : -1, beside = (c >> 3 * a & 7) + d;
    int i[3];
    if (beside >= 0 && beside < 8 && (d < 0 || g->n[a] % 8 == 0)) { /* in the same block */
        *at = e + d * (1 << 3 * a);
        return 1;
    }
    fsi_grid_corner(g, e / g->block_cells, i);
    i[0] += c & 7;
    i[1] += (c >> 3) & 7;
    i[2] += c >> 6;
    i[a] += d;
    *at = fsi_grid_entry(g, i[0], i[1], i[2]);
    return *at >= 0 && i[a] < g->n[a];
}

/* A block, for loops over its cells that look at their neighbours. */
typedef struct fsi__ls_around {
    const fsi_grid *grid;
    int block, beside[6];  /* the blocks on its sides; -1: there is none */
    int last[3];           /* cells from this one on have no cell across their upper face; 8: all have one */
} fsi__ls_around;

FSI__HOST_FN fsi__ls_around fsi__ls_around_of(const fsi_grid *g, int b)
{
    fsi__ls_around o;
    int corner[3], a;
    fsi_grid_corner(g, b, corner);
    o.grid = g;
    o.block = b;
    fsi__blocks_beside(g, b, o.beside);
    for (a = 0; a < 3; a++) o.last[a] = corner[a] + 8 < g->n[a] ? 8 : g->n[a] % 8 ? g->n[a] - corner[a] - 1 : 7;
    return o;
}

/* fsi__ls_neighbor of cell c of that block. */
FSI_FN int fsi__ls_across(const fsi__ls_around *o, int c, int side, long long *at)
{
    *at = fsi__entry_beside(o->grid, o->block, o->beside, c, side);
    return *at >= 0 && (!(side & 1) || (c >> 3 * (side >> 1) & 7) < o->last[side >> 1]);
}

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_LEVELSET_STATE_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_LEVELSET_STATE_IMPLEMENTATION
#define FSI_LEVELSET_STATE_IMPLEMENTATION
#endif
#ifdef FSI_LEVELSET_STATE_IMPLEMENTATION
#ifndef FSI_LEVELSET_STATE_IMPLEMENTATION_DONE
#define FSI_LEVELSET_STATE_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_pressure.h"
#include "fsi_viscosity.h"

FSI__STRICT_BEGIN

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
    memset(d.no_slip, 1, sizeof d.no_slip);
    d.contact_angle = 90;
    d.release = 1;
    d.time_order = 2;
    d.velocity_scheme = d.phi_scheme = FSI_ADVECT_CUBIC;
    d.capillary_cfl = 1;
    d.cfl = (fsi_real)0.7;
    d.max_substeps = 50;
    d.conserve_volume = 1;
    d.pressure_tolerance = 1e-6;
    d.max_iters = 200;
    d.volume_tolerance = 1e-8;
    return d;
}

FSI_API double fsi__ls_speed(fsi_vec3 v)
{
    const double x = (double)v.x / FSI__LS_FASTEST, y = (double)v.y / FSI__LS_FASTEST,
                 z = (double)v.z / FSI__LS_FASTEST;
    return FSI__LS_FASTEST * sqrt(x * x + y * y + z * z);
}

FSI_API int fsi__is_levelset(const fsi_levelset *s) { return s && s->cookie == FSI__COOKIE('l', fsi_levelset); }

FSI_API fsi_status fsi__ls_hold(fsi_context *context, const fsi__column *columns, int column_count, int *capacity,
    int count)
{
    return fsi__room(context, columns, column_count, 0, capacity, count > 0 ? count : 1, "fsi_levelset_step");
}

FSI_API void fsi__ls_lap(fsi__ls_run *run, double *seconds)
{
    const double now = fsi__now(run->s->context);
    *seconds += now - run->clock;
    run->clock = now;
}

FSI_API void fsi__ls_each_block(fsi__ls_run *run, fsi__range_fn *fn)
{
    fsi__grid_light(run->grid, FSI__LS_GRAIN, 300, fn, run);
}

FSI_API fsi_vec3 fsi__ls_entry_position(const fsi_grid *g, fsi_grid_place place, int e)
{
    const int c = e % g->block_cells;
    int corner[3];
    fsi_grid_corner(g, e / g->block_cells, corner);
    return fsi_grid_position(g, place, corner[0] + (c & 7), corner[1] + ((c >> 3) & 7), corner[2] + (c >> 6));
}

FSI_API int fsi__ls_acceleration(const fsi_levelset *s, fsi_vec3 x, double time, double a[3])
{
    const fsi_vec3 v = s->desc.acceleration(s->desc.acceleration_user, x, time);
    a[0] = (double)v.x;
    a[1] = (double)v.y;
    a[2] = s->desc.dim == 3 ? (double)v.z : 0;
    return fsi_is_finite(a[0]) && fsi_is_finite(a[1]) && fsi_is_finite(a[2]);
}

FSI_API fsi_status fsi__ls_bad_acceleration(const fsi_levelset *s, const char *function, fsi_vec3 x, double time)
{
    return fsi__fail(s->context, FSI_ERROR_NAN, function, -1, time,
                     "desc.acceleration is not finite at (%g, %g, %g), %g s", (double)x.x, (double)x.y, (double)x.z,
                     time);
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
