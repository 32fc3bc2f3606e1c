/* fsi_flip_state.h - desc and state of a liquid of particles, and the working data of its steps.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_flip.h includes this file, makes a liquid from the desc and advances it.

   WHAT IS IN HERE (search for >>)
      >>desc             fsi_flip_desc: size, gravity, tension, viscosity, sides, transfer
      >>what there is    fsi_flip, which you read: particles, stats
      >>stages           for fsi's own headers, not for you: the working data of a step, which fsi_flip_bodies.h and
                         fsi_flip.h share, and functions that both call
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
   PRECISION: positions and velocities in fsi_real; masses and pressures of particles in float; sums in double.
*/
#ifndef FSI_FLIP_STATE_H
#define FSI_FLIP_STATE_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_flip_immersed.h"
#include "fsi_flip_resample.h"
#include "fsi_flip_surface.h"
#include "fsi_flip_transfer.h"
#include "fsi_obstacle.h"
#include "fsi_phi.h"
#include "fsi_pressure.h"
#include "fsi_source.h"
#include "fsi_viscosity.h"

/* ---- >>desc ------------------------------------------------------------------------------------------------------ */

/* How velocities go back to particles. FLIP: particles get the change of the grid's velocities, and a fraction
   desc.pic of the velocities themselves: lively, slightly noisy. APIC: particles carry the velocity and its gradient
   (Jiang et al. 2015): smooth, keeps angular momentum, loses more energy. */
typedef enum fsi_flip_transfer { FSI_FLIP_FLIP, FSI_FLIP_APIC } fsi_flip_transfer;

/* How to make a simulator. Start from fsi_flip_default_desc(). */
typedef struct fsi_flip_desc {
    uint32_t cookie;
    fsi_context *context;      /* default NULL: malloc, serial or OpenMP, no clock */
    int dim;                   /* 3 (default) or 2 (z = 0) */
    int n[3];                  /* cells of the box along each axis; default 64; 2D: n[2] is ignored */
    fsi_real dx;               /* edge of a cell [m]; default 1.0/64; particles are dx/2 apart at rest */
    fsi_vec3 origin;           /* lower corner of the box [m]; default 0 */
    fsi_real density;          /* [kg/m^3]; default 1000 */
    fsi_real viscosity;        /* dynamic, implicit [Pa s]; default 0: only that of the transfers. Its drag is in no
                                  reaction, impulse or rigid body */
    fsi_real surface_tension;  /* gamma [N/m]; default 0. Walls and obstacles are met at 90 degrees */
    fsi_vec3 gravity;          /* [m/s^2]; default (0, 0, -9.81); 2D: set y */
    fsi_acceleration_fn *acceleration; /* of the liquid, added to gravity, a function of place and time, evaluated at
                                  the particles; default NULL: none. Not saved; not in potential_energy */
    void *acceleration_user;   /* its first argument; default NULL */
    unsigned char open_side[6];/* of the box, x-, x+, y- ...: 1: liquid leaves there, against air of pressure 0; default
                                  0: a wall */
    unsigned char no_slip[6];  /* walls of the box where viscosity > 0: 1 (default): the liquid sticks, 0: it slides */
    fsi_flip_transfer transfer;/* default FLIP */
    fsi_real pic;              /* FLIP: fraction of the grid's velocity that particles take over in 1/60 s, APIC: of
                                  its gradient that they drop, 0 to 1; shorter substeps take less; default 0.03; 1 is
                                  PIC */
    fsi_real volume_rate;      /* fraction of the error of the particles' density that is corrected in 1/60 s, 0 to 1;
                                  default 0.3; 0: volume drifts */
    fsi_real cfl;              /* substeps are chosen, by speeds and gravity, so that nothing moves farther than cfl *
                                  dx in one, 0.05 to 2; default 2; nor are they longer than twice
                                  sqrt(density dx^3/(4 pi surface_tension)) */
    int max_substeps;          /* of one call; default 20. Where more are needed they are longer (stats.degraded) */
    double pressure_tolerance; /* largest divergence left over the largest of the right side; default 1e-6 */
    int pressure_iters;        /* of one solve at most; what they reach is taken (stats.degraded); default 200 */
    int resample;              /* 1: once a step, in the interior of the liquid, a particle is split where a cell has
                                  fewer than 4 (2D: 2), and two are merged where it has more than 16 (2D: 8): arrays
                                  may move in a step. A row that is split keeps its id and gives its attributes to the
                                  new one too; of two the row of the heavier stays. Not with
                                  immersed bodies. Default 0: masses stay 1 */
    int reserve;               /* particles to make room for; default 0 */
    int max_particles;         /* budget of the whole simulator; default 0: no limit */
    int attribute_count;       /* numbers of your own that each particle carries, 0 to 64; default 0 */
    int markers;               /* 1: each step fills `marker` and `aeration`; default 0 */
    fsi_real trapped_air_min, trapped_air_max; /* [m/s], where air begins to be trapped and where it is all the water
                                                  can take; default 0.2, 1 */
    fsi_real wave_crest_min, wave_crest_max;   /* no unit, the same for the curvature of crests; default 0.25, 1 */
    fsi_real spray_energy_min, spray_energy_max; /* v^2/2 [J/kg] where foam begins, and is most; default 0.5, 5 */
} fsi_flip_desc;
FSI_API fsi_flip_desc fsi_flip_default_desc(void); /* fills every field */

/* ---- >>what there is --------------------------------------------------------------------------------------------- */

/* Kinds of particles for drawing. */
enum { FSI_FLIP_LIQUID, FSI_FLIP_SPRAY, FSI_FLIP_FOAM, FSI_FLIP_BUBBLE };

/* What the last successful step did. Sums over its substeps unless said otherwise. */
typedef struct fsi_flip_stats {
    int particles, substeps;
    int degraded;                 /* substeps longer than cfl and tension ask for, solves that pressure_iters ended,
                                     substeps that were thinned */
    double substep;               /* the last one [s] */
    double cfl;                   /* largest displacement in a substep [dx] */
    int blocks, liquid_cells;     /* last substep */
    int iters;                    /* of the pressure */
    int coupling_iters;           /* solves of the pressure with bodies, 1 to 9 in a substep */
    double coupling_rest;         /* part of the forces on bodies that the last substep did not expect: where it is
                                     above 0.02, 9 solves did not do */
    int viscosity_iters;
    int thinned;                  /* substeps whose viscosity did not converge and was lowered */
    double divergence;            /* left, largest [1/s], last substep */
    double fill_max;              /* largest mass of particles at a cell over that at rest, last substep */
    int split, merged;            /* particles that became two; pairs that became one */
    int placed, pinched;          /* particles that were stopped by obstacles; without a free position, at the end */
    int emitted, blocked, refused, removed, left; /* particles of emitters, as fsi_source.h has them; by sinks; through
                                  open sides */
    double momentum[3], angular_momentum[3]; /* of the liquid, about the world's origin, at the end */
    double wall_impulse[3];       /* by walls of the box and obstacles, to the liquid [N s] */
    double external_impulse[3];   /* by gravity and acceleration */
    double source_impulse[3];     /* with the particles that came, less those that went */
    double kinetic_energy, potential_energy; /* [J]; potential: -m g.x, zero at the origin */
    double volume;                /* of the liquid's cells, by their surface, at the last substep [m^3; 2D: m^2] */
    double max_speed;             /* [m/s], at the end */
    double seconds_sort, seconds_to_grid, seconds_pressure, seconds_to_particles, seconds_move, seconds_other;
    size_t bytes;                 /* allocated through its context */
    long long allocs;             /* allocations of the context so far */
} fsi_flip_stats;

/* A liquid. Read everything; write only what is marked. */
typedef struct fsi_flip {
    uint32_t cookie;
    fsi_context *context;      /* never NULL: the desc's, or one of its own */
    fsi_flip_desc desc;        /* as given, or set since */
    int count, capacity;
    fsi_vec3 *position;        /* count, creation order [m]; may be written between steps */
    fsi_vec3 *velocity;        /* count [m/s]; may be written between steps */
    const float *mass;         /* count, over particle_mass */
    const float *pressure;     /* count [Pa], where they were when the last substep began */
    const uint32_t *id;        /* count, never used twice, growing along the array */
    fsi_real *attribute;       /* count * desc.attribute_count; yours to write, any value; NULL when there are none */
    const unsigned char *marker; /* count, FSI_FLIP_LIQUID, SPRAY, FOAM, BUBBLE; NULL unless desc.markers. Not saved */
    const fsi_real *aeration;  /* count, 0 to 1: how much foam it makes; NULL unless desc.markers. Not saved */
    double time;               /* seconds simulated */
    fsi_real particle_mass;    /* of a whole particle: density (dx/2)^dim [kg; 2D: kg/m] */
    fsi_real spacing;          /* dx/2 [m] */
    fsi_flip_stats stats;
    void *impl;
} fsi_flip;

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

#define FSI__FL_FASTEST 1e9    /* [m/s] */
#define FSI__FL_FARTHEST 1e12  /* from the origin [m] */
#define FSI__FL_MARGIN 4       /* cells around particles that exist: their path, and what is read there */
#define FSI__FL_PER_SECOND 60  /* desc.pic and volume_rate are fractions of 1/60 s */
#define FSI__FL_SUMS 16        /* numbers that a chunk may sum */
#define FSI__FL_GRAIN 4096     /* particles a chunk */
#define FSI__FL_PULL 0.2       /* [density |g| dx] a pull at the liquid that walls may have: rounding, noise */
#define FSI__FL_LIGHTEST 0.05  /* [density] the least of a face */
#define FSI__FL_ROUNDS 3       /* solves of the pressure at most, while walls release liquid */

typedef struct fsi__fl_obstacle {
    fsi__obstacle base;        /* first: rows of fsi__obstacles */
    fsi_grid_faces *faces;     /* that it covers */
    uint64_t cut;              /* hash of what they were made from; 0: they are not made */
    fsi_real *velocity;        /* of the solid at them [m/s] */
    int room;                  /* of velocity */
    int no_slip;
    fsi_body work;             /* copy of its body; COUPLED: moves along */
    fsi_pose start;            /* of its body, where the running step begins */
    double kept_impulse[3], kept_moment[3]; /* of base, and work, before the pressure */
    fsi_body kept_work;
} fsi__fl_obstacle;

/* Sums over the particles of a piece. */
typedef struct fsi__fl_moments {
    double mass, at[3];        /* m, m x */
    double p[3], l[3];         /* m v, m x cross v */
    double second[9];          /* m x x^T */
} fsi__fl_moments;

/* Where the liquid of a block, or of a cell, is, and the longest way of it in a substep, squared [m^2]. meets: it may
   come to the body. */
typedef struct fsi__fl_reach {
    fsi_box3 box;
    double longest2;
    int meets;
} fsi__fl_reach;

typedef struct fsi__fl_piece {
    int bound;                 /* 1: touches a wall, an obstacle or a tap */
    int into;                  /* the piece that it became part of, by a body; itself otherwise */
    fsi__fl_moments before, after;
    double v[3], w[3];         /* the motion that is given back, about the centre afterwards */
} fsi__fl_piece;

typedef struct fsi__fl_impl {
    fsi_context own_context;
    fsi__particles particles;
    fsi__obstacles obstacles;
    fsi__fl_obstacle *obstacle;   /* rows of obstacles */
    fsi_pressure_solid *solid;    /* of each, for the solver */
    int solid_room;
    fsi__sources sources;
    fsi_grid *grid;
    fsi_field *u[3], *change[3];  /* on faces: velocity, and its change by the pressure */
    fsi__immersed immersed;       /* elastic bodies */
    fsi_field *inverse_density[3];/* on faces, with bodies [m^3/kg]; NULL before there were any, like these: */
    fsi_field *share[3], *glued[3]; /* fraction of each face that is a body's; that is liquid which moves with it */
    fsi_field *heft[3];           /* of bodies there: density as the pressure feels it, over the liquid's */
    fsi_field *wet[3], *hard[3];  /* velocities of liquid, and of bodies [m/s]; then of bodies what they get */
    fsi_field *fill, *phi, *source, *pressure; /* at cells */
    fsi_field *open;              /* at cells: fraction that no obstacle covers; NULL before there were any */
    fsi_pressure *solver;
    fsi_viscosity *viscosity;     /* NULL until it is needed, like these fields, at cells: */
    fsi_field *again, *thick[3];  /* of viscosity: second pressure; change of u before that, on faces [m/s] */
    fsi_field *shape, *capillary; /* of tension: smoothed distance to the surface [m]; gamma times curvature [Pa] */
    fsi_field *psi;               /* of both: distance to obstacles [m] */
    /* columns of particles */
    float *mass, *found_pressure;
    float (*affine)[9];
    uint32_t *id, *held;
    uint32_t *position_hash;      /* after the last step: where it differs from that of now, the caller wrote */
    fsi_neighbors *neighbors;     /* of particles, for markers; NULL until then */
    unsigned char *marker;
    fsi_real *aeration;
    uint64_t blocks_hash, opened; /* hashes of the blocks; of what `open` was made from, 0: it is not made */
    int64_t solids_changed;       /* 1: obstacles were added or teleported: all particles are looked at */
    fsi_vec3 wall_force, wall_torque;
    float *boxes;                 /* of fsi__tr_faces */
    fsi__fl_piece *piece;
    int piece_room;
    size_t rows;                  /* of particles, the most in a step so far */
    fsi__arena scratch, second, blocks, wanted, lines; /* of a step: for particles; their second positions; for blocks;
                                                          for places of blocks; for lines through bodies */
} fsi__fl_impl;

/* One step. Arrays of n rows in creation order. */
typedef struct fsi__fl_run {
    fsi_flip *s;
    fsi__fl_impl *im;
    const char *fn;
    int n, born, more;            /* particles; those that were there before; what emitters may add */
    size_t room;                  /* rows of each array */
    uint64_t solids_hash;         /* of the blocks and all obstacles in this substep */
    int solids;                   /* particles of bodies, in the rows behind those of the liquid */
    int elastic;                  /* 1: a step of the elastic simulator has begun */
    fsi_vec3 *now, *push;         /* solids: velocity with the pressure's impulse, then what they take over besides;
                                     that impulse over density of the liquid, then over mass */
    fsi__tr_points hard;          /* solids alone */
    int *home;                    /* of each body: its piece in flight, or -1 */
    int *near_face;               /* n: the face of a body that it may meet, or -1; where the block does */
    fsi__fl_reach *reach;         /* with bodies: of each block */
    int anew;                     /* 1: obstacles are not where the last step left them */
    int spare;                    /* of `more`: for particles that are split */
    double length, done, share, dt; /* of the step; fraction done; of the substep; its length [s] */
    fsi_vec3 *x, *v, *to;         /* position, velocity, position at the end of the substep. Where x is s->position, it
                                     is only read: fsi__fl_own_places makes a second array before it is written */
    float *mass;                  /* im->mass where no mass can change */
    float (*affine)[9];
    uint32_t *held;
    unsigned char *gone;
    unsigned char *state;         /* results of fsi__place */
    double (*part)[FSI__FL_SUMS];
    int chunks;
    fsi__tr_points points;
    fsi__tr_motion motion;
    unsigned char *given[3];      /* with bodies: faces whose u particles gave */
    unsigned char *damp;          /* of blocks: 1: holds cells that are not air */
    unsigned char *shared[3];     /* with bodies: of blocks, for each axis: 1: bodies have a share of faces */
    unsigned char *blank[3];      /* the same: 1: the pressure reads faces whose u no particle gave */
    unsigned char *known[3], *reached[3], *cell, *let_go; /* of the grid's entries, as fsi_pressure_flow has them */
    unsigned char *let_go_before; /* with bodies: of the last pressure, and */
    int same_masses;              /* 1: it was solved with the masses of now */
    int *label, pieces;           /* piece of each cell, -1: none; pieces, 0: none is in flight */
    unsigned char *flies;         /* of blocks: 1: holds cells of a piece in flight */
    fsi__fl_piece *piece;
    int solved;                   /* 1: the pressure has been solved in this substep */
    int again;                    /* 1: it is solved once more, after viscosity */
    unsigned char *marker;        /* NULL without markers, like the arrays that follow, of particles that stay: */
    fsi_real *aeration;
    int *row;                     /* of each */
    fsi__record *record;          /* by rank, as fsi__foam has them */
    fsi__lane4 *speed, *normal, *found;
    fsi__foam foam;
    fsi__fl_cells cells;          /* of the grid's fields, as the last substep has them */
    double sums[FSI__FL_SUMS];
    double wall_impulse[3], wall_moment[3]; /* by the liquid on the walls of the box [N s, N m s] */
    double kept[3][3];         /* stats.wall_impulse and these before the pressure */
    fsi__source_run sources;
    fsi__walls walls;
    fsi_box3 box;                 /* that particles may be in: all beyond its open sides too */
    double wall[6];               /* coordinates that particles are held between */
    fsi_flip_stats stats;
} fsi__fl_run;

/* Faces of one axis, a task some blocks. */
typedef struct fsi__fl_faces { fsi__fl_run *run; int axis; } fsi__fl_faces;
/* fn, which gets an fsi__fl_faces, for the blocks of each axis, which may go in any order. */
FSI_API void fsi__fl_each_axis(fsi__fl_run *run, fsi__range_fn *fn);

FSI_FN int fsi__fl_within(fsi_vec3 v, double most)
{
    return fabs((double)v.x) <= most && fabs((double)v.y) <= most && fabs((double)v.z) <= most;
}

/* A hash of a position: 4 bytes, where the position itself takes 24. One in 4e9 that the caller writes goes unseen: it
   counts as having moved there by itself. */
FSI_FN uint32_t fsi__fl_position_hash(fsi_vec3 x)
{
    const fsi_real at[3] = { x.x, x.y, x.z };
    uint64_t sum = 0, bits;
    int a;
    for (a = 0; a < 3; a++) {
        bits = 0;
        memcpy(&bits, &at[a], sizeof at[a]);
        sum = (sum ^ bits) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 32;
    }
    return (uint32_t)sum;
}

FSI_FN void fsi__fl_put(double *to, fsi__d3 a) { fsi__d3_put(to, fsi__d3_add(fsi__d3_at(to), a)); }

/* The fraction corrected in a substep of what is a fraction in 1/60 s. */
FSI_FN double fsi__fl_part(const fsi__fl_run *run, double fraction)
{
    return fraction < 1 ? 1 - fsi_exp(FSI__FL_PER_SECOND * run->dt * fsi_log(1 - fraction)) : 1;
}

FSI_FN int fsi__fl_is_in(fsi_box3 box, fsi_vec3 x)
{
    fsi_box3 at;
    at.lo = at.hi = x;
    return fsi_box3_overlap(box, at);
}

FSI_FN fsi_box3 fsi__fl_box(const fsi_flip *s)
{
    const fsi_flip_desc *d = &s->desc;
    fsi_box3 box;
    box.lo = d->origin;
    box.hi = fsi_v3(d->origin.x + (fsi_real)d->n[0] * d->dx, d->origin.y + (fsi_real)d->n[1] * d->dx,
        d->dim == 3 ? d->origin.z + (fsi_real)d->n[2] * d->dx : 0);
    return box;
}

/* Into the box, a hundredth of a cell from its walls; velocity into a wall is stopped. Returns 0 where it leaves
   through an open side. */
FSI__HOST_FN int fsi__fl_hold_in_box(const fsi__fl_run *run, fsi_vec3 *to, fsi_vec3 *v)
{
    double x[3] = { (double)to->x, (double)to->y, (double)to->z }, w[3] = { (double)v->x, (double)v->y, (double)v->z };
    int side, moved = 0;
    for (side = 0; side < 2 * run->im->grid->dim; side++) {
        const int a = side >> 1, upper = side & 1;
        const double wall = run->wall[side];
        if (upper ? x[a] <= wall : x[a] >= wall) continue;
        if (run->s->desc.open_side[side]) return 0;
        x[a] = wall;
        w[a] = upper ? fmin(w[a], 0) : fmax(w[a], 0);
        moved = 1;
    }
    if (!moved) return 1;
    *to = fsi_v3((fsi_real)x[0], (fsi_real)x[1], (fsi_real)x[2]);
    *v = fsi_v3((fsi_real)w[0], (fsi_real)w[1], (fsi_real)w[2]);
    return 1;
}

/* Adds a mass at x that moves at v, with the angular momentum l and the moments second about its own centre. */
FSI_FN void fsi__fl_weigh(fsi__fl_moments *p, double m, fsi__d3 x, fsi__d3 v, fsi__d3 l, const double *second)
{
    int i;
    p->mass += m;
    fsi__fl_put(p->at, fsi__d3_scale(x, m));
    fsi__fl_put(p->p, fsi__d3_scale(v, m));
    fsi__fl_put(p->l, fsi__d3_add(l, fsi__d3_scale(fsi__d3_cross(x, v), m)));
    for (i = 0; i < 9; i++)
        p->second[i] += m * fsi__d3_axis(x, i / 3) * fsi__d3_axis(x, i % 3) + (second ? second[i] : 0);
}

/* Second moments and angular momentum about the centre, which `at` becomes. */
FSI_FN fsi__d3 fsi__fl_center(fsi__fl_moments *p)
{
    const fsi__d3 c = fsi__d3_scale(fsi__d3_at(p->at), 1 / p->mass);
    int i;
    for (i = 0; i < 9; i++) p->second[i] -= p->mass * fsi__d3_axis(c, i / 3) * fsi__d3_axis(c, i % 3);
    fsi__d3_put(p->at, c);
    return fsi__d3_sub(fsi__d3_at(p->l), fsi__d3_cross(c, fsi__d3_at(p->p)));
}

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_FLIP_STATE_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_FLIP_STATE_IMPLEMENTATION
#define FSI_FLIP_STATE_IMPLEMENTATION
#endif
#ifdef FSI_FLIP_STATE_IMPLEMENTATION
#ifndef FSI_FLIP_STATE_IMPLEMENTATION_DONE
#define FSI_FLIP_STATE_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_flip_immersed.h"
#include "fsi_flip_resample.h"
#include "fsi_flip_surface.h"
#include "fsi_flip_transfer.h"
#include "fsi_obstacle.h"
#include "fsi_phi.h"
#include "fsi_pressure.h"
#include "fsi_source.h"
#include "fsi_viscosity.h"

FSI__STRICT_BEGIN

FSI_API fsi_flip_desc fsi_flip_default_desc(void)
{
    fsi_flip_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('d', fsi_flip_desc);
    d.dim = 3;
    d.n[0] = d.n[1] = d.n[2] = 64;
    d.dx = (fsi_real)(1.0 / 64);
    d.density = 1000;
    d.gravity = fsi_v3(0, 0, (fsi_real)-9.81);
    memset(d.no_slip, 1, sizeof d.no_slip);

    /* How it is solved, and for drawing. */
    d.pic = (fsi_real)0.03;
    d.volume_rate = (fsi_real)0.3;
    d.cfl = 2;
    d.max_substeps = 20;
    d.pressure_tolerance = 1e-6;
    d.pressure_iters = 200;
    d.trapped_air_min = (fsi_real)0.2;
    d.trapped_air_max = 1;
    d.wave_crest_min = (fsi_real)0.25;
    d.wave_crest_max = 1;
    d.spray_energy_min = (fsi_real)0.5;
    d.spray_energy_max = 5;
    return d;
}

/* All axes in one dispatch. */
typedef struct fsi__fl_axes { fsi__fl_run *run; fsi__range_fn *fn; } fsi__fl_axes;

static void fsi__fl_axes_range(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_axes *axes = (const fsi__fl_axes *)arg;
    const int blocks = axes->run->im->grid->block_count;
    fsi__fl_faces job;
    job.run = axes->run;
    while (begin < end) {
        const int from = begin % blocks, n = end - begin < blocks - from ? end - begin : blocks - from;
        job.axis = begin / blocks;
        axes->fn(&job, chunk, from, from + n);
        begin += n;
    }
}

FSI_API void fsi__fl_each_axis(fsi__fl_run *run, fsi__range_fn *fn)
{
    const fsi_grid *g = run->im->grid;
    const int n = g->dim * g->block_count;
    fsi__fl_axes axes;
    axes.run = run;
    axes.fn = fn;
    fsi__parallel_work(g->context, n, 2, 1.0 * n * g->block_cells, fsi__fl_axes_range, &axes);
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
