/* fsi_levelset_parts.h - parts of a level-set liquid: nozzles, droplets, components with their volumes and momenta.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_levelset.h includes this file. Its front page says how to add emitters and sinks.

   WHAT IT DOES
      Each connected component has a target volume. It follows the liquid through splits and merges, grows by inflow
      from emitters, and passes to droplets where a component is too thin for the grid. In each substep the volume
      constraint moves the surface of every component by the least that gives it its target; the momentum that advection
      lost is restored beside obstacles. docs/levelset.md derives the methods.
   WHAT IS IN HERE (search for >>)
      >>emitter: its desc  >>sink: its desc;  >>stages  for fsi's own headers, not for you;  then >>nozzles  >>droplets
      >>components and their volumes  >>the volume constraint  >>the momentum that advection loses
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
   PRECISION: double; level set and velocities in fsi_real.
*/
#ifndef FSI_LEVELSET_PARTS_H
#define FSI_LEVELSET_PARTS_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_levelset_walls.h"

/* ---- >>emitter: its desc ----------------------------------------------------------------------------------------- */

/* Emitters let liquid out of a disc or a rectangle. Their nozzle reaches from 2 dx before the inlet plane to dx behind
   it: it is full of liquid, moves with the emitter and has the flow's velocity; other liquid cannot enter. The plane
   may lie in a wall of the box or anywhere within. The nozzle is filled when it opens; from then on the component at
   the inlet gains area * speed * dt, to rounding. When the nozzle shuts or is removed, its liquid becomes ordinary
   liquid. An emitter without a nozzle cell in the box emits nothing. */
typedef enum fsi_levelset_emitter_shape {
    FSI_LEVELSET_EMITTER_DISC,
    FSI_LEVELSET_EMITTER_BOX
} fsi_levelset_emitter_shape;

typedef struct fsi_levelset_emitter_desc {
    uint32_t cookie;
    fsi_levelset_emitter_shape shape;  /* default DISC */
    fsi_vec3 center;                   /* of the inlet [m]; 2D: z = 0 */
    fsi_vec3 direction;                /* of the flow, any length but 0; default (1, 0, 0); 2D: z = 0 */
    fsi_real radius;                   /* DISC, at least dx; 2D: half the width of the slot [m]; no default */
    fsi_real half_width, half_height;  /* BOX, along `side` and across it, at least dx; 2D: half_height is not used [m];
                                          no default */
    fsi_vec3 side;                     /* BOX: made perpendicular to direction; default 0: some direction; 2D: not
                                          used */
    fsi_real speed;                    /* of the flow along direction, not negative [m/s]; 0: shut; default 1 */
    fsi_vec3 velocity;                 /* of the emitter itself, which moves along and adds it to the liquid's [m/s];
                                          default 0 */
    double start, stop;                /* from and until this `time` [s]; default 0, no end */
} fsi_levelset_emitter_desc;
FSI_API fsi_levelset_emitter_desc fsi_levelset_default_emitter_desc(void); /* fills every field */

/* ---- >>sink: its desc -------------------------------------------------------------------------------------------- */

/* Sinks remove the liquid inside them at the end of each substep, and lower the target volumes of components by as
   much. */
typedef enum fsi_levelset_sink_shape {
    FSI_LEVELSET_SINK_BOX,
    FSI_LEVELSET_SINK_SPHERE,
    FSI_LEVELSET_SINK_MESH
} fsi_levelset_sink_shape;

typedef struct fsi_levelset_sink_desc {
    uint32_t cookie;
    fsi_levelset_sink_shape shape;     /* default BOX */
    fsi_box3 box;                      /* BOX [m]; 2D: z is ignored; no default */
    fsi_vec3 center;                   /* SPHERE [m] */
    fsi_real radius;                   /* SPHERE [m]; no default */
    const fsi_mesh *mesh;              /* MESH: closed; referenced, must outlive the sink, may be moved between steps */
    fsi_real rate;                     /* largest outflow [m^3/s] (2D: [m^2/s]), the deepest liquid first; default 0:
                                          no limit */
} fsi_levelset_sink_desc;
FSI_API fsi_levelset_sink_desc fsi_levelset_default_sink_desc(void); /* fills every field */

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

#define FSI__LS_MOST_GROWTH 0.2 /* [dx] largest displacement of a surface by the volume constraint in a substep */
#define FSI__LS_PARTS 9         /* columns of fsi__ls_part_columns */

/* Cells of new component `to` that came from old component `from`. */
typedef struct fsi__ls_link {
    int from, to;
    double cells;
} fsi__ls_link;

/* What a step changes of an emitter or a sink. No padding: saved as it stands. */
typedef struct fsi__ls_source {
    int64_t id, open;                    /* open: 1: its nozzle exists */
    double total, pending;               /* volume so far; volume due */
    double center[3];                    /* of the emitter, now */
} fsi__ls_source;

typedef struct fsi__ls_emitter {
    fsi_levelset_emitter_desc desc;      /* its direction made unit */
    fsi_vec3 axis[3];                    /* of the inlet; the last along the flow */
    double half[2], area;                /* half its extent along the first two */
    fsi__ls_source flow, trial;
} fsi__ls_emitter;

typedef struct fsi__ls_sink {
    fsi_levelset_sink_desc desc;
    fsi__ls_source flow, trial;
} fsi__ls_sink;

/* Momentum of a component within a substep, over density. */
typedef struct fsi__ls_motion {
    double due[3];                       /* momentum that it must have [m^4/s; 2D: m^3/s] */
    double lack[3], volume;              /* sums over its kin, if kin is itself: missing momentum, target volumes */
    int kin;                             /* union-find: a component that split from the same one, or merged with the
                                            same one */
    int heir;                            /* of an old component: one that came from it or its kin, -1: none yet */
    int open;                            /* 1: has inflow or outflow: its momentum is not restored */
    int touches;                         /* 1: beside an obstacle: only then is it restored */
} fsi__ls_motion;

/* A cell near a surface, which the volume constraint moves. */
typedef struct fsi__ls_cell {
    int entry;
    double start, value;        /* phi*, phi [dx] */
    double share, now;          /* H of these */
    double weight;              /* s */
} fsi__ls_cell;

/* How the volume of a component is corrected; all in cells. */
typedef struct fsi__ls_fix {
    double missing, lam, h, jj, jd, moved, volume;
    int spent; /* 1: the surface has moved as far as it may in a substep */
} fsi__ls_fix;

/* Up to FSI__LS_PIECE cells of one component: the unit of a task's sums. */
typedef struct fsi__ls_piece {
    int component, begin, end;
    double h, jj, jd, moved;
} fsi__ls_piece;

/* A component of next_phi, between open_volumes and settle. A cell counts 1. */
typedef struct fsi__ls_part {
    double missing;               /* volume to gain in this substep [cells] */
    double volume;                /* its volume plus |missing| [cells] */
    double target, measured, area; /* its target and its volume [m^3; 2D: m^2], its surface [m^2; m] */
    int spent;                    /* 1: `missing` is the most that a substep may change */
} fsi__ls_part;

/* (1 - tanh y)/2: fraction of liquid in a cell, y = phi/dx. */
FSI_FN double fsi__ls_heaviside(double y) { return 1 / (1 + fsi_exp(2 * y)); }

FSI_FN double fsi__ls_cell_volume(const fsi_grid *g)
{
    return (double)g->dx * (double)g->dx * (g->dim == 3 ? (double)g->dx : 1);
}

/* Enumerates the cells of a nozzle: the next one from number *at of the range on; 0: no more. */
FSI_API int fsi__ls_nozzle_cell(const fsi__ls_emitter *e, const fsi_grid *g, long long *at, int *cell);
/* Sets the velocity of faces of axis `axis` of open nozzles. mark (NULL ok): becomes 1 there. */
FSI_API void fsi__ls_hold_nozzles(const fsi__ls_run *run, int axis, unsigned char *mark);
/* Makes open nozzles walls of the pressure solve. */
FSI_API void fsi__ls_mark_nozzles(const fsi__ls_run *run);
/* Opens a nozzle: adds its blocks and fills it, in next_phi. */
FSI_API fsi_status fsi__ls_add_nozzle(fsi__ls_run *run, const fsi__ls_emitter *e);
/* Keeps open nozzles full, in next_phi. */
FSI_API void fsi__ls_fill_nozzles(fsi__ls_run *run);
/* Adds the inflow to the target of the component at the inlet: area * speed * the part of the substep in which it
   flows. A nozzle opens when a substep begins; inflow before that is added then. Moves the emitter to its place at the
   end of the substep. */
FSI_API void fsi__ls_emit(fsi__ls_run *run);
/* Largest speed of an emitter [m/s]. */
FSI_API double fsi__ls_emitter_speed(const fsi__ls_impl *m);
/* Clears momenta and kinship of all components. */
FSI_API void fsi__ls_forget_motion(fsi__ls_parts *p);
/* Adds to the momentum due to a component that of a volume of velocity v. */
FSI_API void fsi__ls_add_due(fsi__ls_parts *p, int component, double volume, fsi_vec3 v);

FSI_API double fsi__ls_radius(int dim, double volume);                /* of a ball [m]; 2D: of a disc */
/* Entry of the cell at x, or of the nearest one if x is out of the box; -1: no block is there. */
FSI_API long long fsi__ls_entry_at(const fsi_grid *g, fsi_vec3 x, int *cell);
/* Makes room for `count` droplets of the trial. */
FSI_API fsi_status fsi__ls_grow_droplets(fsi__ls_run *run, int count);
FSI_API fsi_status fsi__ls_fly(fsi__ls_run *run);                     /* a substep of the droplets */
/* Merges droplets that touch next_phi into its components, which have labels, shapes and targets by now, as far as
   these can grow in this substep. */
FSI_API void fsi__ls_take_up(fsi__ls_run *run);

/* Removes components without a parent, artefacts of interpolation: their cells become air. */
FSI_API void fsi__ls_drop_foundlings(fsi__ls_run *run);

FSI_API void fsi__ls_part_columns(fsi__ls_parts *p, fsi__column *c);  /* c: FSI__LS_PARTS */
/* Makes room for `count` components in the lists of state, trial and next. */
FSI_API fsi_status fsi__ls_grow_parts(fsi__ls_run *run, int count);
/* Finds the components of next_phi and their targets. trace: 1: they were advected. shapes: 1: measures them; else only
   where that is needed. */
FSI_API fsi_status fsi__ls_follow_components(fsi__ls_run *run, int trace, int shapes);

/* Adds to components the momentum that a pressure transfers to them through walls and obstacles in `time`. */
FSI_API void fsi__ls_feel(fsi__ls_run *run, const fsi_field *pressure, double time);
/* Before advection: the momentum that components must have after it. fsi__ls_leave subtracts outflow. */
FSI_API fsi_status fsi__ls_expect_momentum(fsi__ls_run *run);
/* Before the last projection: restores the missing momentum. */
FSI_API fsi_status fsi__ls_keep_momentum(fsi__ls_run *run);
/* After that projection: records the momentum still missing, divided among kin. */
FSI_API fsi_status fsi__ls_owe_momentum(fsi__ls_run *run);

/* Volume constraint: gives every component of next_phi its target volume. */
FSI_API fsi_status fsi__ls_keep_volumes(fsi__ls_run *run);
/* Instead of keep_volumes: finds the cells of the volume constraint, those of next_phi near the surface, and the
   volumes that components lack. */
FSI_API fsi_status fsi__ls_open_volumes(fsi__ls_run *run);
FSI_API int fsi__ls_band(const fsi__ls_run *run);                     /* number of these cells */
/* Entry of one; *weight: fraction of it that is no obstacle. */
FSI_API int fsi__ls_band_cell(const fsi__ls_run *run, int i, double *weight);
FSI_API fsi__ls_part fsi__ls_part_of(const fsi__ls_run *run, int i);
FSI_API fsi_status fsi__ls_remeasure(fsi__ls_run *run);               /* `measured` and `area` of all, by next_phi */
/* Writes next_phi [m] at an entry; from, to: its values before and after the volume correction. */
FSI_API void fsi__ls_put_phi(fsi__ls_run *run, long long entry, double from, double to);
/* For stats: the largest of components' |h| / volume; iterations of Newton's method. */
FSI_API void fsi__ls_note_volumes(fsi__ls_run *run, double error, int iterations);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_LEVELSET_PARTS_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_LEVELSET_PARTS_IMPLEMENTATION
#define FSI_LEVELSET_PARTS_IMPLEMENTATION
#endif
#ifdef FSI_LEVELSET_PARTS_IMPLEMENTATION
#ifndef FSI_LEVELSET_PARTS_IMPLEMENTATION_DONE
#define FSI_LEVELSET_PARTS_IMPLEMENTATION_DONE

/* In a substep, names without their fsi__ls_:

      open            emit: targets grow by the inflow of nozzles
      advect          expect_momentum, before; fill_nozzles
      follow          fly: droplets; follow_components: labels, links, targets; take_up; drop_foundlings
      keep_volumes    correct_volumes: collect_band, find_missing, correct, put_band
      settle          follow_components, where cells changed sides
      last projection keep_momentum, before; owe_momentum, behind */

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_levelset_walls.h"
#include <stdlib.h>

FSI__STRICT_BEGIN

FSI_API fsi_levelset_emitter_desc fsi_levelset_default_emitter_desc(void)
{
    fsi_levelset_emitter_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('e', fsi_levelset_emitter_desc);
    d.direction = fsi_v3(1, 0, 0);
    d.speed = 1;
    d.stop = FSI__HUGE;
    return d;
}

FSI_API fsi_levelset_sink_desc fsi_levelset_default_sink_desc(void)
{
    fsi_levelset_sink_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('k', fsi_levelset_sink_desc);
    d.box = fsi_box3_empty();
    return d;
}

/* ---- >>nozzles: emitters on the grid ----------------------------------------------------------------------------- */

/* A nozzle reaches from 2 dx before the inlet plane to dx behind it: in a wall of the box that is one layer of cells.
   Cells with their centre in it are SOLID to the pressure solver and liquid in phi.

              -2 dx   plane   dx
                +-------|------+        speed u on all its faces, 0 on those at its back (before -1.5 dx):
             0  |   u   |   u  |  u     it takes nothing out of a pool that it stands in
                +-------|------+
*/

/* Distance to the corner region between two surfaces perpendicular to each other, at distances p and q. */
FSI_FN double fsi__ls_corner(double p, double q)
{
    const double most = p > q ? p : q;
    return p > 0 && q > 0 ? sqrt(p * p + q * q) : most;
}

/* Signed distance from x to the nozzle, and how far behind the inlet plane x is. */
static double fsi__ls_nozzle_distance(const fsi__ls_emitter *e, const fsi_grid *g, fsi_vec3 x, double *along)
{
    const double *c = e->trial.center, q[3] = { (double)x.x - c[0], (double)x.y - c[1], (double)x.z - c[2] };
    double at[3], section;
    int k;
    for (k = 0; k < 3; k++)
        at[k] = q[0] * (double)e->axis[k].x + q[1] * (double)e->axis[k].y + q[2] * (double)e->axis[k].z;
    *along = at[2];
    if (g->dim == 2) section = fabs(at[0]) - e->half[0];
    else if (e->desc.shape == FSI_LEVELSET_EMITTER_DISC) section = sqrt(at[0] * at[0] + at[1] * at[1]) - e->half[0];
    else section = fsi__ls_corner(fabs(at[0]) - e->half[0], fabs(at[1]) - e->half[1]);
    return fsi__ls_corner(section, fabs(at[2] + 0.5 * (double)g->dx) - 1.5 * (double)g->dx);
}

/* Cells lo .. hi - 1 whose centre may be nearer to the nozzle than `margin` dx. */
static void fsi__ls_nozzle_range(const fsi__ls_emitter *e, const fsi_grid *g, double margin, int *lo, int *hi)
{
    const double dx = (double)g->dx, origin[3] = { (double)g->origin.x, (double)g->origin.y, (double)g->origin.z };
    double axis[3][3];
    int a, k;
    for (k = 0; k < 3; k++) {
        axis[k][0] = (double)e->axis[k].x;
        axis[k][1] = (double)e->axis[k].y;
        axis[k][2] = (double)e->axis[k].z;
    }
    for (a = 0; a < 3; a++) {
        const double middle = (e->trial.center[a] - origin[a]) / dx - 0.5 * axis[2][a];
        const double half =
            (fabs(axis[0][a]) * e->half[0] + fabs(axis[1][a]) * e->half[1]) / dx + 1.5 * fabs(axis[2][a]) + margin;
        lo[a] = middle - half > 0 ? (int)(middle - half < g->n[a] ? middle - half : g->n[a]) : 0;
        hi[a] = middle + half < g->n[a] ? (int)(middle + half > 0 ? ceil(middle + half) : 0) : g->n[a];
        if (a >= g->dim) lo[a] = 0, hi[a] = 1;
    }
}

FSI_API int fsi__ls_nozzle_cell(const fsi__ls_emitter *e, const fsi_grid *g, long long *at, int *cell)
{
    long long nx, ny;
    int lo[3], hi[3];
    double along;
    fsi__ls_nozzle_range(e, g, 0, lo, hi);
    nx = hi[0] - lo[0];
    ny = hi[1] - lo[1];
    if (nx <= 0 || ny <= 0) return 0;
    for (; *at / nx / ny < hi[2] - lo[2]; ++*at) {
        cell[0] = lo[0] + (int)(*at % nx);
        cell[1] = lo[1] + (int)(*at / nx % ny);
        cell[2] = lo[2] + (int)(*at / nx / ny);
        if (!(fsi__ls_nozzle_distance(e, g, fsi_grid_position(g, FSI_CELLS, cell[0], cell[1], cell[2]), &along) < 0))
            continue;
        ++*at;
        return 1;
    }
    return 0;
}

/* Velocity of faces of axis `axis` of an open nozzle. mark (NULL ok): becomes 1 there. */
static void fsi__ls_hold_nozzle(const fsi__ls_run *run, const fsi__ls_emitter *e, int axis, unsigned char *mark)
{
    const fsi_grid *g = run->grid;
    const double own = (double)fsi__ls_component(e->desc.velocity, axis),
                 flow = (double)e->desc.speed * (double)fsi__ls_component(e->desc.direction, axis);
    long long at = 0;
    int cell[3], upper;
    while (e->trial.open && fsi__ls_nozzle_cell(e, g, &at, cell))
        for (upper = 0; upper < 2; upper++) {
            const int i = cell[0] + (upper && axis == 0), j = cell[1] + (upper && axis == 1),
                      k = cell[2] + (upper && axis == 2);
            const long long face = fsi_grid_entry(g, i, j, k);
            double along;
            fsi__ls_nozzle_distance(e, g, fsi_grid_position(g, (fsi_grid_place)((int)FSI_FACES_X + axis), i, j, k),
                                    &along);
            if (face < 0) continue;
            run->m->trial_u[axis]->value[face] = (fsi_real)(own + (along > -1.5 * (double)g->dx ? flow : 0));
            if (mark) mark[face] = 1;
        }
}

FSI_API void fsi__ls_hold_nozzles(const fsi__ls_run *run, int axis, unsigned char *mark)
{
    int k;
    for (k = 0; k < run->m->emitter_count; k++) fsi__ls_hold_nozzle(run, &run->m->emitter[k], axis, mark);
}

FSI_API void fsi__ls_mark_nozzles(const fsi__ls_run *run)
{
    int k, cell[3];
    for (k = 0; k < run->m->emitter_count; k++) {
        const fsi__ls_emitter *e = &run->m->emitter[k];
        long long at = 0;
        while (e->trial.open && fsi__ls_nozzle_cell(e, run->grid, &at, cell)) {
            const long long entry = fsi_grid_entry(run->grid, cell[0], cell[1], cell[2]);
            if (entry >= 0) run->m->cell[entry] = (unsigned char)FSI_CELL_SOLID;
        }
    }
}

/* phi = min(phi, distance to the nozzle), as far as phi is a distance. */
static void fsi__ls_fill_nozzle(const fsi__ls_emitter *e, fsi_field *phi)
{
    const fsi_grid *g = phi->grid;
    int lo[3], hi[3], i, j, k;
    double along;
    fsi__ls_nozzle_range(e, g, FSI__LS_BAND, lo, hi);
    for (k = lo[2]; k < hi[2]; k++)
        for (j = lo[1]; j < hi[1]; j++)
            for (i = lo[0]; i < hi[0]; i++) {
                const long long entry = fsi_grid_entry(g, i, j, k);
                const fsi_real d =
                    (fsi_real)fsi__ls_nozzle_distance(e, g, fsi_grid_position(g, FSI_CELLS, i, j, k), &along);
                if (entry >= 0 && d < phi->value[entry]) phi->value[entry] = d;
            }
}

FSI_API fsi_status fsi__ls_add_nozzle(fsi__ls_run *run, const fsi__ls_emitter *e)
{
    const fsi_grid *g = run->grid;
    const size_t places = fsi__grid_places(g);
    int lo[3], hi[3], i, j, k;
    size_t p;
    for (p = 0; p < places; p++) run->m->wanted[p] = (unsigned char)(g->index[p] >= 0);
    fsi__ls_nozzle_range(e, g, FSI__LS_BAND, lo, hi);
    for (k = lo[2] >> 3; k <= (hi[2] - 1) >> 3; k++)
        for (j = lo[1] >> 3; j <= (hi[1] - 1) >> 3; j++)
            for (i = lo[0] >> 3; i <= (hi[0] - 1) >> 3; i++)
                run->m->wanted[((size_t)k * (size_t)g->blocks[1] + (size_t)j) * (size_t)g->blocks[0] + (size_t)i] = 1;
    FSI__TRY(fsi_grid_set_blocks(run->grid, run->m->wanted));
    fsi__ls_fill_nozzle(e, run->m->next_phi);
    return FSI_OK;
}

FSI_API void fsi__ls_fill_nozzles(fsi__ls_run *run)
{
    int k;
    for (k = 0; k < run->m->emitter_count; k++)
        if (run->m->emitter[k].trial.open) fsi__ls_fill_nozzle(&run->m->emitter[k], run->m->next_phi);
}

FSI_API void fsi__ls_emit(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int k, a, cell[3];
    for (k = 0; k < m->emitter_count; k++) {
        fsi__ls_emitter *e = &m->emitter[k];
        const double t = run->time, start = e->desc.start > t ? e->desc.start : t,
                     stop = e->desc.stop < t + run->dt ? e->desc.stop : t + run->dt;
        long long at = 0;
        if (!e->trial.open && !(e->desc.start > t)) e->trial.pending = 0;
        else if (stop > start) e->trial.pending += e->area * (double)e->desc.speed * (stop - start);
        while (e->trial.open && e->trial.pending > 0 && fsi__ls_nozzle_cell(e, run->grid, &at, cell)) {
            const long long entry = fsi_grid_entry(run->grid, cell[0], cell[1], cell[2]);
            if (entry < 0 || m->trial_label[entry] < 0) continue;
            m->trial.target[m->trial_label[entry]] += e->trial.pending;
            e->trial.total += e->trial.pending;
            e->trial.pending = 0;
        }
        for (a = 0; a < 3; a++) e->trial.center[a] += run->dt * (double)fsi__ls_component(e->desc.velocity, a);
    }
}

FSI_API double fsi__ls_emitter_speed(const fsi__ls_impl *m)
{
    double most = 0, v;
    int k;
    for (k = 0; k < m->emitter_count; k++) {
        v = sqrt((double)fsi_v3_norm2(m->emitter[k].desc.velocity));
        most = v > most ? v : most;
        v = (double)m->emitter[k].desc.speed;
        most = m->emitter[k].trial.open && v > most ? v : most;
    }
    return most;
}

/* ---- >>droplets --------------------------------------------------------------------------------------------------

   A film thinner than half a cell has no cell centre in it: all of a component may vanish in one substep, with many
   cells of volume. Its target volume is then divided among droplets, one a cell that was liquid, each with the velocity
   there. A droplet of volume V at x

       flies          v += dt g, x += dt v; walls and obstacles stop its normal velocity, open sides let it out
       is taken up    where phi(x) < r(V), its radius: the component is to have V more, and the cell there, of volume C,
                      V/(V + C) of the difference of velocities
       condenses      with the others in the cells around it, once a ball of all their volume has a radius of dx */

FSI_API double fsi__ls_radius(int dim, double volume)
{
    return dim == 3 ? pow(volume * 3 / (4 * FSI_PI), 1.0 / 3) : sqrt(volume / FSI_PI);
}

FSI_API long long fsi__ls_entry_at(const fsi_grid *g, fsi_vec3 x, int *cell)
{
    const double from[3] = { (double)(x.x - g->origin.x), (double)(x.y - g->origin.y), (double)(x.z - g->origin.z) };
    int a;
    for (a = 0; a < 3; a++) cell[a] = a < g->dim ? fsi__clamp_int((int)(from[a] / (double)g->dx), g->n[a] - 1) : 0;
    return fsi_grid_entry(g, cell[0], cell[1], cell[2]);
}

/* Puts x on the near side of the obstacle that it is in; *depth: how far it was in it, 0: it is in none. Returns 0
   where no way out is known. */
static int fsi__ls_leave_solid(const fsi__ls_run *run, fsi_vec3 *x, fsi_vec3 *normal, double *depth)
{
    const double psi = run->m->obstacle_count > 0 ? (double)fsi_grid_sample_linear(run->m->psi, *x) : 0;
    *depth = 0;
    if (!(psi < 0)) return 1;
    fsi_grid_sample_spline(run->m->psi, *x, normal);
    if (!((double)fsi_v3_norm(*normal) > 0.5)) return 0;
    *normal = fsi_v3_unit(*normal);
    *depth = -psi;
    *x = fsi_v3_madd(*x, (fsi_real)-psi, *normal);
    return 1;
}

/* Moves a droplet to x, or to the surface of a wall or obstacle in between; its velocity normal to that becomes the one
   of this displacement. Returns 0 if it is gone: out of the box through an open side, or covered by an obstacle. */
static int fsi__ls_put_droplet(fsi__ls_run *run, fsi_levelset_droplet *p, fsi_vec3 x)
{
    const fsi_grid *g = run->grid;
    const fsi_real per_dt = run->dt > 0 ? (fsi_real)(1 / run->dt) : 0;
    fsi_real *to[3], *v[3];
    const fsi_real from[3] = {p->position.x, p->position.y, p->position.z},
                   origin[3] = {g->origin.x, g->origin.y, g->origin.z};
    fsi_vec3 normal = fsi_v3(0, 0, 0);
    double depth;
    int a, side, round;

    /* coordinates by axis */
    to[0] = &x.x, to[1] = &x.y, to[2] = &x.z;
    v[0] = &p->velocity.x, v[1] = &p->velocity.y, v[2] = &p->velocity.z;
    for (round = 0; round < 2; round++) { /* the obstacle may have pushed it into a wall */
        /* walls of the box, open sides */
        for (a = 0; a < g->dim; a++) {
            const fsi_real end = origin[a] + (fsi_real)g->n[a] * g->dx;
            side = *to[a] < origin[a] ? 2 * a : (*to[a] > end ? 2 * a + 1 : -1);
            if (side < 0) continue;
            if (run->s->desc.open_side[side]) {
                run->left_volume += p->volume;
                return 0;
            }
            *to[a] = side & 1 ? end : origin[a];
            *v[a] = (*to[a] - from[a]) * per_dt;
        }

        /* obstacles: push it out; its normal velocity is that of the displacement */
        if (round > 0) break;
        if (!fsi__ls_leave_solid(run, &x, &normal, &depth)) {
            run->lost_volume += p->volume;
            return 0;
        }
        if (!(depth > 0)) break;
        p->velocity = fsi_v3_madd(p->velocity, -fsi_v3_dot(p->velocity, normal), normal);
        if (depth <= (double)g->dx)
            p->velocity = fsi_v3_madd(p->velocity, per_dt * fsi_v3_dot(fsi_v3_sub(x, p->position), normal), normal);
    }
    p->position = x;
    return 1;
}

FSI_API fsi_status fsi__ls_grow_droplets(fsi__ls_run *run, int count)
{
    fsi__ls_impl *m = run->m;
    return fsi__room_in(run->s->context, &m->trial_droplet, sizeof *m->trial_droplet, m->trial_droplet_count,
                        &m->trial_droplet_capacity, count, run->function);
}

/* Adds a droplet to the trial; `moves`: a substep takes it along from there. */
static fsi_status fsi__ls_add_droplet(fsi__ls_run *run, fsi_vec3 x, double volume, int moves)
{
    fsi__ls_impl *m = run->m;
    fsi_levelset_droplet p;
    memset(&p, 0, sizeof p);
    p.position = x;
    p.velocity = fsi_grid_sample_velocity(m->trial_u, x);
    p.volume = volume;
    if (!(volume > 0) || !fsi__ls_put_droplet(run, &p, fsi_v3_madd(x, (fsi_real)(moves ? run->dt : 0), p.velocity)))
        return FSI_OK;
    FSI__TRY(fsi__ls_grow_droplets(run, m->trial_droplet_count + 1));
    m->trial_droplet[m->trial_droplet_count++] = p;
    return FSI_OK;
}

/* Was the cell liquid when the substep began? Not inside obstacles, where phi is only continued. */
static int fsi__ls_was_liquid(const fsi__ls_impl *m, int e)
{
    return m->shore[e] && !(m->obstacle_count > 0 && m->psi->value[e] < -m->psi->grid->dx);
}

/* A component that vanished becomes droplets: where it was liquid, or in the middle of its label. */
static fsi_status fsi__ls_shatter(fsi__ls_run *run, int component, int moves)
{
    const fsi__ls_impl *m = run->m;
    const int end = run->grid->block_count * run->grid->block_cells;
    fsi_vec3 middle = fsi_v3(0, 0, 0);
    int e, count = 0, all = 0;
    for (e = 0; e < end; e++) {
        if (m->trial_label[e] != component) continue;
        count += fsi__ls_was_liquid(m, e);
        middle = fsi_v3_add(middle, fsi__ls_entry_position(run->grid, FSI_CELLS, e));
        all++;
    }
    if (count == 0 && all > 0)
        return fsi__ls_add_droplet(run, fsi_v3_scale(middle, 1 / (fsi_real)all), m->trial.target[component], moves);
    for (e = 0; e < end && count > 0; e++)
        if (m->trial_label[e] == component && fsi__ls_was_liquid(m, e))
            FSI__TRY(fsi__ls_add_droplet(run, fsi__ls_entry_position(run->grid, FSI_CELLS, e),
                                            m->trial.target[component] / count, moves));
    if (count == 0) run->lost_volume += m->trial.target[component];
    return FSI_OK;
}

FSI_API fsi_status fsi__ls_fly(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const double time = run->time + 0.5 * run->dt;
    int k, kept = 0;
    for (k = 0; k < m->trial_droplet_count; k++) {
        fsi_levelset_droplet *p = &m->trial_droplet[k];
        double a[3] = { 0, 0, 0 };
        if (run->s->desc.acceleration && !fsi__ls_acceleration(run->s, p->position, time, a))
            return fsi__ls_bad_acceleration(run->s, run->function, p->position, time);
        p->velocity =
            fsi_v3_madd(p->velocity, (fsi_real)run->dt,
                        fsi_v3_add(run->s->desc.gravity, fsi_v3((fsi_real)a[0], (fsi_real)a[1], (fsi_real)a[2])));
        if (fsi__ls_put_droplet(run, p, fsi_v3_madd(p->position, (fsi_real)run->dt, p->velocity)))
            m->trial_droplet[kept++] = *p;
    }
    m->trial_droplet_count = kept;
    return FSI_OK;
}

/* Blends a fraction `share` of v into next_u at the cell at x. */
static void fsi__ls_push_cell(fsi__ls_run *run, fsi_vec3 x, fsi_vec3 v, double share)
{
    int cell[3], a, side;
    (void)fsi__ls_entry_at(run->grid, x, cell);
    for (a = 0; a < run->grid->dim; a++)
        for (side = 0; side < 2; side++) {
            const long long at = fsi_grid_entry(run->grid, cell[0] + side * (a == 0), cell[1] + side * (a == 1),
                                                cell[2] + side * (a == 2));
            fsi_real *u = at < 0 ? NULL : &run->m->next_u[a]->value[at];
            if (u) *u += (fsi_real)(share * ((double)fsi__ls_component(v, a) - (double)*u));
        }
}

FSI_API void fsi__ls_take_up(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const double dx = (double)run->grid->dx, cell = fsi__ls_cell_volume(run->grid);
    int k, kept = 0, place[3];
    for (k = 0; k < m->trial_droplet_count; k++) {
        fsi_levelset_droplet p = m->trial_droplet[k];
        const double phi = (double)fsi_grid_sample_linear(m->next_phi, p.position);
        const long long at =
            phi < fsi__ls_radius(run->grid->dim, p.volume) ? fsi__ls_entry_at(run->grid, p.position, place) : -1;
        const int label = at < 0 ? -1 : m->next_label[at];
        const double room = label < 0
                                ? 0
                                : m->next.shape[label].volume + FSI__LS_MOST_GROWTH * dx * m->next.shape[label].area -
                                      m->next.target[label];
        const double part = room < p.volume ? room : p.volume;
        fsi_vec3 out;

        /* the component gains volume and momentum */
        if (part > 0) {
            m->next.target[label] += part;
            m->next.parents[label]++;
            fsi__ls_add_due(&m->next, label, part, p.velocity);
            fsi_grid_sample_spline(m->next_phi, p.position, &out);
            fsi__ls_push_cell(run, fsi_v3_madd(p.position, (fsi_real)-fmax(phi + dx / 2, 0), fsi_v3_unit(out)),
                              p.velocity, part / (part + cell));
            p.volume -= part;
        }

        /* keep what is left of the droplet */
        if (p.volume > 1e-9 * cell || !(part > 0)) m->trial_droplet[kept++] = p;
        else m->next.target[label] += p.volume;
    }
    m->trial_droplet_count = kept;
}

/* ---- >>components and their volumes ------------------------------------------------------------------------------ */

/* Targets follow the liquid. n_ij counts the liquid cells of new component j that came from old component i (labels
   reach beyond the liquid, and where those of two drops meet they are none's: counted too, they would mix the targets
   of drops that pass each other); with V_j what the surface of j encloses, O_ij = V_j n_ij / n_j is the volume that
       went from i to j, and target_j = sum_i target_i O_ij / sum_j' O_ij'
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
        FSI__TRY(fsi__room_in(run->s->context, &m->link, sizeof *m->link, m->link_count, &m->link_capacity,
            m->link_count + 1, run->function));
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
        const fsi_vec3 x =
            fsi_grid_trace(run->m->trial_u, fsi_grid_position(g, FSI_CELLS, i[0], i[1], i[2]), (fsi_real)-run->dt, 2);
        const double from[3] = {(double)(x.x - g->origin.x), (double)(x.y - g->origin.y), (double)(x.z - g->origin.z)};
        for (a = 0; a < g->dim; a++) i[a] = fsi__clamp_int((int)(from[a] / (double)g->dx), g->n[a] - 1);
    }
    at = fsi_grid_entry(g, i[0], i[1], i[2]);
    return at < 0 ? -1 : run->m->trial_label[at];
}

/* Finds the links between components in `trial_label` and in `next_label`, sorted, each once. */
static fsi_status fsi__ls_link_components(fsi__ls_run *run, int trace)
{
    fsi__ls_impl *m = run->m;
    const int cells = run->grid->block_cells;
    int b, c, k, kept;

    /* a link for each liquid cell */
    m->link_count = 0;
    fsi__ls_each_block(run, fsi__ls_uniform_blocks);
    for (b = 0; b < run->grid->block_count; b++) {
        const int *label = m->next_label + (size_t)b * (size_t)cells;
        const fsi_real *phi = m->next_phi->value + (size_t)b * (size_t)cells,
                       *psi = m->obstacle_count > 0 ? m->psi->value + (size_t)b * (size_t)cells : NULL;
        const int from = m->next_uniform[b] == -1 ? -1 : fsi__ls_only_around(run, b);
        for (c = 0; c < cells; c++)
            if (label[c] >= 0 && phi[c] < 0 && !(psi && psi[c] < 0))
                FSI__TRY(fsi__ls_add_link(run, from >= 0 ? from : fsi__ls_origin(run, b, c, trace), label[c], 1));
    }

    /* sort them, and merge equal ones */
    if (m->link_count == 0) return FSI_OK;
    qsort(m->link, (size_t)m->link_count, sizeof *m->link, fsi__ls_compare_links);
    for (k = 1, kept = 0; k < m->link_count; k++) {
        if (m->link[k].from == m->link[kept].from && m->link[k].to == m->link[kept].to)
            m->link[kept].cells += m->link[k].cells;
        else m->link[++kept] = m->link[k];
    }
    m->link_count = kept + 1;
    return FSI_OK;
}

/* O_ij of a link. */
static double fsi__ls_flow(const fsi__ls_parts *next, const fsi__ls_link *l)
{
    return next->shape[l->to].volume * l->cells / next->cells[l->to];
}

/* The one that stands for it and all its kin. */
static int fsi__ls_kin(const fsi__ls_parts *p, int c)
{
    while (p->motion[c].kin != c) c = p->motion[c].kin;
    return c;
}

/* Passes a fraction of an old component's momentum to a new one, which becomes kin to all that come from it or its kin.
   */
static void fsi__ls_hand_on_motion(fsi__ls_impl *m, int from, int to, double share)
{
    const fsi__ls_motion *old = &m->trial.motion[from];
    fsi__ls_motion *all = m->next.motion, *own = &all[to];
    int *heir = &m->trial.motion[fsi__ls_kin(&m->trial, from)].heir, a;
    for (a = 0; a < 3; a++) {
        own->due[a] += share * old->due[a];
        m->next.owed[3 * to + a] += share * m->trial.owed[3 * from + a];
    }
    own->open |= old->open;
    own->touches |= old->touches;
    if (*heir < 0) *heir = to;
    all[fsi__ls_kin(&m->next, to)].kin = fsi__ls_kin(&m->next, *heir);
}

/* A component without a link has vanished: if it was leaving through an open side, the rest has left too.
   Else the label next to where it was gets its target, if there is one within three cells (labels are grown that far);
   else it becomes droplets, or is lost where volume is not kept. */
static fsi_status fsi__ls_bequeath(fsi__ls_run *run, int from, int trace)
{
    fsi__ls_impl *m = run->m;
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    size_t e;
    if (m->trial.leaving[from] > 0) {
        run->left_volume += m->trial.target[from];
        return FSI_OK;
    }
    for (e = 0; e < cells; e++)
        if (m->trial_label[e] == from && m->next_label[e] >= 0) {
            m->next.target[m->next_label[e]] += m->trial.target[from];
            fsi__ls_hand_on_motion(m, from, m->next_label[e], 1);
            return FSI_OK;
        }
    if (!run->fills && run->length > 0 && run->s->desc.conserve_volume) return fsi__ls_shatter(run, from, trace);
    run->lost_volume += m->trial.target[from];
    return FSI_OK;
}

/* Links k to end are those of one old component: it hands its target on to the components that these lead to. */
static void fsi__ls_share_target(fsi__ls_impl *m, int k, int end)
{
    const fsi__ls_parts *next = &m->next;
    const double target = m->trial.target[m->link[k].from];
    double sum = 0;
    int i;
    if (end - k == 1) {
        next->target[m->link[k].to] += target;
        fsi__ls_hand_on_motion(m, m->link[k].from, m->link[k].to, 1);
        return;
    }
    for (i = k; i < end; i++) sum += fsi__ls_flow(next, &m->link[i]);
    for (i = k; i < end; i++) {
        const double flow = fsi__ls_flow(next, &m->link[i]);
        next->target[m->link[i].to] += sum > 0 ? target * flow / sum : target / (end - k);
        fsi__ls_hand_on_motion(m, m->link[i].from, m->link[i].to, sum > 0 ? flow / sum : 1.0 / (end - k));
    }
}

/* Passes the targets of the present components to the next ones, by the links; a split divides a target by shapes. */
static fsi_status fsi__ls_hand_on_targets(fsi__ls_run *run, int trace)
{
    fsi__ls_impl *m = run->m;
    fsi__ls_parts *next = &m->next;
    int k, end, from, expected = 0;

    /* the next components start empty */
    for (k = 0; k < next->count; k++) {
        next->target[k] = next->cells[k] = next->leaving[k] = 0;
        next->parents[k] = 0;
        next->owed[3 * k] = next->owed[3 * k + 1] = next->owed[3 * k + 2] = 0;
    }
    fsi__ls_forget_motion(next);
    for (k = 0; k < m->trial.count; k++) m->trial.motion[k].heir = -1;

    /* cells and parents of each */
    for (k = 0; k < m->link_count; k++) {
        next->cells[m->link[k].to] += m->link[k].cells;
        next->parents[m->link[k].to] += m->link[k].from >= 0;
    }
    for (k = 0; k < next->count; k++) run->stats.merges += next->parents[k] > 1 ? next->parents[k] - 1 : 0;

    /* each present component: one without a link has vanished, the others pass on their targets */
    for (k = 0; k < m->link_count; k = end) {
        from = m->link[k].from;
        for (end = k; end < m->link_count && m->link[end].from == from; end++) continue;
        if (from < 0) continue; /* liquid without a parent */
        for (; expected < from; expected++) FSI__TRY(fsi__ls_bequeath(run, expected, trace));
        expected = from + 1;
        run->stats.splits += end - k - 1;
        fsi__ls_share_target(m, k, end);
    }
    for (; expected < m->trial.count; expected++) FSI__TRY(fsi__ls_bequeath(run, expected, trace));
    return FSI_OK;
}

FSI_API void fsi__ls_drop_foundlings(fsi__ls_run *run)
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

/* ---- >>the volume constraint ------------------------------------------------------------------------------------- */

/* Of each component c:

       minimise 1/2 sum_i s_i (phi_i - phi*_i)^2   subject to   h = S(phi) - V0 = 0,
       S = sum_i s_i H(phi_i) dx^d,  H = (1 - tanh(phi/dx))/2,
       V0 = S(phi*) + w (target - V),  V by marching; at most 0.2 dx times the surface at once

   over the cells of c nearer than a band to its surface, s_i the share of a cell that is no solid: J_i = H'(phi_i)
   dx^d, lam = (h - J's(phi - phi*))/J'sJ,  phi = phi* - J lam,  until h is small and phi rests. Both S take the same
   tails, so that those of another component nearby cancel. w: the correction moves the surface, where H' is largest, by
   lam/(2 dx), which adds lam A/(2 dx) to the volume, A being its area, but lam J'J to S (a plane: lam A/(3 dx)). So w =
   2 dx J'J/A, two thirds for a plane; w = 1 would overshoot by half. Marching, linear between cells, sees ln cosh 1 =
   0.87 of that on average, so that 13 % of the missing volume are left to the next step. Correcting all of it is better
   on average, but films on walls, which marching sees in jumps of half a cell, overshoot then (measured: a faucet off
   by 0.67 % in one step, not 0.08 %). */

#define FSI__LS_PIECE 4096
#define FSI__LS_SUM_NS 1   /* nanoseconds that a cell of the band takes at least in sums, */
#define FSI__LS_MOVE_NS 12 /* and when it is moved: fsi__parallel_work */
#define FSI__LS_NEWTON 30

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
            const double at = c->now, slope = -2 * at * (1 - at);
            h += c->weight * (at - c->share);
            jj += c->weight * slope * slope;
            jd += c->weight * slope * (c->value - c->start);
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
            const double next = c->start + 2 * c->now * (1 - c->now) * lam, change = fabs(next - c->value);
            if (fabs(c->value) < 2 && change > moved) moved = change;
            c->value = next;
            c->now = fsi__ls_heaviside(next);
        }
        p->moved = moved;
    }
}

FSI_API void fsi__ls_part_columns(fsi__ls_parts *p, fsi__column *c)
{
    c[0].array = (void **)&p->target;  c[0].size = sizeof *p->target;
    c[1].array = (void **)&p->cells;   c[1].size = sizeof *p->cells;
    c[2].array = (void **)&p->parents; c[2].size = sizeof *p->parents;
    c[3].array = (void **)&p->first;   c[3].size = sizeof *p->first;
    c[4].array = (void **)&p->fix;     c[4].size = sizeof *p->fix;
    c[5].array = (void **)&p->shape;   c[5].size = sizeof *p->shape;
    c[6].array = (void **)&p->leaving; c[6].size = sizeof *p->leaving;
    c[7].array = (void **)&p->owed;    c[7].size = 3 * sizeof *p->owed;
    c[8].array = (void **)&p->motion;  c[8].size = sizeof *p->motion;
}

FSI_API fsi_status fsi__ls_grow_parts(fsi__ls_run *run, int count)
{
    fsi__ls_parts *parts[3];
    fsi__column columns[FSI__LS_PARTS];
    int k;
    parts[0] = &run->m->parts;
    parts[1] = &run->m->trial;
    parts[2] = &run->m->next;
    for (k = 0; k < 3; k++) {
        fsi__ls_parts *p = parts[k];
        fsi__ls_part_columns(p, columns);
        FSI__TRY(fsi__room(run->s->context, columns, FSI__LS_PARTS, p->capacity, &p->capacity, count + 1,
            run->function));
    }
    return FSI_OK;
}

/* Collects the cells of the band, sorted by component, and their pieces. */
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

    /* count the cells of each component; room for them and their pieces */
    for (c = 0; c <= p->count; c++) p->first[c] = 0;
    for (e = 0; e < cells; e++)
        if (m->next_label[e] >= 0 && phi[e] < edge && phi[e] > -edge) p->first[m->next_label[e] + 1]++;
    for (c = 0; c < p->count; c++) {
        pieces += (p->first[c + 1] - 1) / FSI__LS_PIECE + 1;
        p->first[c + 1] += p->first[c];
    }
    column.array = (void **)&m->band;
    column.size = sizeof *m->band;
    FSI__TRY(fsi__ls_hold(run->s->context, &column, 1, &m->band_capacity, p->first[p->count]));
    column.array = (void **)&m->piece;
    column.size = sizeof *m->piece;
    FSI__TRY(fsi__ls_hold(run->s->context, &column, 1, &m->piece_capacity, pieces));

    /* fill the band, by component */
    for (e = 0; e < cells; e++)
        if (m->next_label[e] >= 0 && phi[e] < edge && phi[e] > -edge) {
            fsi__ls_cell *cell = &m->band[p->first[m->next_label[e]]++];
            cell->entry = (int)e;
            cell->start = cell->value = (double)phi[e] / dx;
            cell->share = cell->now = fsi__ls_heaviside(cell->start);
            cell->weight = fsi__ls_clear_share(run, e);
        }
    for (c = p->count; c > 0; c--) p->first[c] = p->first[c - 1]; /* filling moved each to the beginning of the next */
    p->first[0] = 0;

    /* pieces */
    for (c = k = 0; c < p->count; c++)
        for (at = p->first[c]; at < p->first[c + 1]; at += FSI__LS_PIECE, k++) {
            m->piece[k].component = c;
            m->piece[k].begin = at;
            m->piece[k].end = at + FSI__LS_PIECE < p->first[c + 1] ? at + FSI__LS_PIECE : p->first[c + 1];
        }
    m->piece_count = k;
    return FSI_OK;
}

/* Open nozzles stay as they are: the rest of the surface gives or takes what is missing. */
static void fsi__ls_spare_nozzles(const fsi__ls_run *run)
{
    const fsi__ls_impl *m = run->m;
    int k, i, cell[3], any = 0;
    memset(m->cell, 0, (size_t)run->grid->block_count * (size_t)run->grid->block_cells);
    for (k = 0; k < m->emitter_count; k++) {
        long long at = 0, entry;
        while (m->emitter[k].trial.open && fsi__ls_nozzle_cell(&m->emitter[k], run->grid, &at, cell))
            if ((entry = fsi_grid_entry(run->grid, cell[0], cell[1], cell[2])) >= 0) m->cell[entry] = 1, any = 1;
    }
    for (i = 0; any && i < m->next.first[m->next.count]; i++)
        if (m->cell[m->band[i].entry]) m->band[i].weight = 0;
}

static void fsi__ls_run_pieces(fsi__ls_run *run, double work, fsi__range_fn *fn)
{
    const double cells = (double)run->m->next.first[run->m->next.count];
    fsi__parallel_work(run->s->context, run->m->piece_count, 1, work * cells, fn, run);
}

/* Sums of every component. */
static void fsi__ls_sum(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int c, k;
    fsi__ls_run_pieces(run, FSI__LS_SUM_NS, fsi__ls_sum_pieces);
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
    fsi__ls_run_pieces(run, FSI__LS_MOVE_NS, fsi__ls_move_pieces);
    for (k = 0; k < m->piece_count; k++) {
        fsi__ls_fix *f = &fix[m->piece[k].component];
        if (m->piece[k].moved > f->moved) f->moved = m->piece[k].moved;
    }
    for (c = 0; c < m->next.count; c++)
        left += !(fabs(fix[c].h) <= run->s->desc.volume_tolerance * fix[c].volume && fix[c].moved <= 1e-4);
    return left;
}

/* Volumes missing from the targets, at most 0.2 dx times the surface in a substep; first: 1: the first time in it. */
static void fsi__ls_find_missing(fsi__ls_run *run, int first)
{
    fsi__ls_impl *m = run->m;
    const double dx = (double)run->grid->dx, cell = run->grid->dim == 3 ? dx * dx * dx : dx * dx;
    int c;
    for (c = 0; c < m->next.count; c++) {
        fsi__ls_fix *f = &m->next.fix[c];
        const double missing = m->next.target[c] - m->next.shape[c].volume, area = m->next.shape[c].area,
                     most = FSI__LS_MOST_GROWTH * dx * area;
        const double share = area > 0 ? 2 * f->jj * cell / (dx * area) : 1,
                     part = missing > most ? most : (missing < -most ? -most : missing);
        f->missing = !first && f->spent ? 0 : part / cell * (share > 1 ? 1 : share);
        f->spent = first && fabs(missing) >= most;
        f->volume = m->next.shape[c].volume / cell + fabs(f->missing);
        if (f->volume < 0.5) f->volume = 0.5; /* S counts at least half of a cell with phi < 0, of which marching may
                                                 see next to nothing */
        if (first) run->stats.advection_loss -= missing;
    }
}

/* The band's values become next_phi's. Returns whether marching may now see another volume than was aimed at: where the
   correction was more than 1.5 %, which is 1 % of S. */
static int fsi__ls_put_band(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int c, i, again = 0;
    for (c = 0; c < m->next.count; c++) {
        const fsi__ls_fix *f = &m->next.fix[c];
        for (i = m->next.first[c]; i < m->next.first[c + 1]; i++) {
            fsi_real *phi = &m->next_phi->value[m->band[i].entry];
            const fsi_real value = (fsi_real)m->band[i].value * run->grid->dx;
            run->flipped += (value < 0) != (*phi < 0);
            m->shore[m->band[i].entry] |= *phi < 0;
            *phi = value;
        }
        again |= !f->spent && f->volume > 8 && fabs(f->missing) > 0.01 * f->volume;
    }
    return again;
}

/* Moves every component of next_phi towards its target; *again: once may not do. */
static fsi_status fsi__ls_correct_volumes(fsi__ls_run *run, int first, int *again)
{
    fsi__ls_impl *m = run->m;
    int c, round, left = 1;
    FSI__TRY(fsi__ls_collect_band(run));
    fsi__ls_sum(run);
    fsi__ls_spare_nozzles(run);
    fsi__ls_find_missing(run, first);
    for (round = 0; round < FSI__LS_NEWTON && left > 0; round++) left = fsi__ls_correct(run);
    run->stats.volume_iterations += round;
    for (c = 0; c < m->next.count; c++) {
        const double error = m->next.fix[c].volume > 0 ? fabs(m->next.fix[c].h) / m->next.fix[c].volume : 0;
        if (error > run->stats.smoothed_error) run->stats.smoothed_error = error;
    }
    *again = fsi__ls_put_band(run);
    return FSI_OK;
}

/* S and the volume by marching differ by
   other amounts before and after: where that matters, once more. */
FSI_API fsi_status fsi__ls_keep_volumes(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int again;
    FSI__TRY(fsi__ls_correct_volumes(run, 1, &again));
    if (!again) return FSI_OK;
    FSI__TRY(fsi_grid_volumes(m->next_phi, m->next_label, m->next.count, NULL, fsi__ls_psi(m), m->next.shape));
    return fsi__ls_correct_volumes(run, 0, &again);
}

/* The missing volumes, for a caller that corrects them instead of fsi__ls_keep_volumes. */
FSI_API fsi_status fsi__ls_open_volumes(fsi__ls_run *run)
{
    FSI__TRY(fsi__ls_collect_band(run));
    fsi__ls_sum(run);
    fsi__ls_spare_nozzles(run);
    fsi__ls_find_missing(run, 1);
    return FSI_OK;
}

FSI_API int fsi__ls_band(const fsi__ls_run *run) { return run->m->next.first[run->m->next.count]; }

FSI_API int fsi__ls_band_cell(const fsi__ls_run *run, int i, double *weight)
{
    *weight = run->m->band[i].weight;
    return run->m->band[i].entry;
}

FSI_API fsi__ls_part fsi__ls_part_of(const fsi__ls_run *run, int i)
{
    const fsi__ls_parts *p = &run->m->next;
    fsi__ls_part part;
    part.missing = p->fix[i].missing;
    part.volume = p->fix[i].volume;
    part.target = p->target[i];
    part.measured = p->shape[i].volume;
    part.area = p->shape[i].area;
    part.spent = p->fix[i].spent;
    return part;
}

FSI_API fsi_status fsi__ls_remeasure(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    return fsi_grid_volumes(m->next_phi, m->next_label, m->next.count, NULL, fsi__ls_psi(m), m->next.shape);
}

/* Droplets are where liquid vanishes: `shore` keeps that it was there. */
FSI_API void fsi__ls_put_phi(fsi__ls_run *run, long long entry, double from, double to)
{
    run->flipped += (to < 0) != (from < 0);
    run->m->shore[entry] |= from < 0;
    run->m->next_phi->value[entry] = (fsi_real)to;
}

FSI_API void fsi__ls_note_volumes(fsi__ls_run *run, double error, int iterations)
{
    if (error > run->stats.smoothed_error) run->stats.smoothed_error = error;
    run->stats.volume_iterations += iterations;
}

/* Components of next_phi: labels, grown by three cells, into solids too. */
static fsi_status fsi__ls_find_components(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int count;
    FSI__TRY(fsi_grid_label(m->next_phi, fsi__ls_mask(run), m->next_label, &count));
    FSI__TRY(fsi__ls_grow_parts(run, count));
    m->next.count = count;
    return fsi_grid_grow_labels(m->next_label, m->next_phi, 3);
}

FSI_API fsi_status fsi__ls_follow_components(fsi__ls_run *run, int trace, int shapes)
{
    fsi__ls_impl *m = run->m;
    int k;
    FSI__TRY(fsi__ls_find_components(run));
    FSI__TRY(fsi__ls_link_components(run, trace));
    for (k = 1; k < m->link_count; k++) shapes |= m->link[k].from == m->link[k - 1].from; /* a split */
    if (shapes)
        FSI__TRY(fsi_grid_volumes(m->next_phi, m->next_label, m->next.count, NULL, fsi__ls_psi(m), m->next.shape));
    return fsi__ls_hand_on_targets(run, trace);
}

/* ---- >>the momentum that advection loses ------------------------------------------------------------------------- */

/* Semi-Lagrangian advection does not conserve momentum, least in cells that a solid cuts, whose volume fractions by
   marching differ from those of the projection. So each component has a momentum, over density, that is due to it:

       M = V/S sum of volume times velocity, by marching;  S its volume, V its target
       due = M + owed                        before advection; owed: the deficit at the end of the last substep
       due += sum dt p/rho dx^(d-1) n        what obstacles and walls, n out of them, push it with in the last
                                             projection, and by the pressure that is carried on
       u += (due - M)/V                      before that projection, at the faces of its cells
       owed = due - M                        after it

   It is passed on as targets are; droplets bring theirs, liquid that leaves at open sides takes its own. Components
   that split from one or merged to one get one change of velocity, by the sum of their deficits, which cannot be told
   apart. So the reaction on solids equals the momentum that the liquid loses. A push changes velocities by at most 0.05
   dx/dt, and no more is owed. Components that no obstacle touches or that an emitter pours into get none, nor does
   liquid beside the shell of fsi_couple.h; liquid that a sink drains is due none afterwards. */
#define FSI__LS_MOST_PUSH 0.05 /* cells a substep */

FSI_API void fsi__ls_forget_motion(fsi__ls_parts *p)
{
    int c;
    for (c = 0; c < p->count; c++) {
        memset(&p->motion[c], 0, sizeof p->motion[c]);
        p->motion[c].kin = c;
        p->motion[c].heir = -1;
    }
}

FSI_API void fsi__ls_add_due(fsi__ls_parts *p, int component, double volume, fsi_vec3 v)
{
    int a;
    for (a = 0; a < 3; a++) p->motion[component].due[a] += volume * (double)fsi__ls_component(v, a);
}

/* By the trial's shapes. */
static double fsi__ls_momentum(const fsi__ls_parts *p, int c, int axis)
{
    const fsi_grid_component *shape = &p->shape[c];
    return shape->volume > 0 ? (double)fsi__ls_component(shape->momentum, axis) * p->target[c] / shape->volume : 0;
}

static fsi_status fsi__ls_measure_motion(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    return fsi_grid_volumes(m->trial_phi, m->trial_label, m->trial.count, m->trial_u, fsi__ls_psi(m), m->trial.shape);
}

/* Momentum that a solid transfers to the component of a cell whose pressure it bears: `gain` times that pressure; gain
   < 0 if the solid is above the cell. */
static void fsi__ls_push_back(fsi__ls_run *run, const fsi_field *pressure, long long cell, int axis, double gain)
{
    const int label = run->m->trial_label[cell];
    if (label >= 0) run->m->trial.motion[label].due[axis] += gain * (double)pressure->value[cell];
}

/* Through obstacles. Those that have let go of a cell do not push it. */
static void fsi__ls_feel_obstacles(fsi__ls_run *run, const fsi_field *pressure, int axis, double gain)
{
    const fsi__ls_impl *m = run->m;
    fsi_real *shares = m->next_phi->value; /* free before advection and behind the last projection */
    int k, f;
    fsi__ls_add_shares(run, axis, shares);
    for (k = 0; k < m->obstacle_count; k++) {
        const fsi_grid_faces *faces = m->obstacle[k].faces;
        for (f = faces->first[axis]; f < faces->first[axis + 1]; f++) {
            const int e = faces->entry[f], gone = run->released > 0 ? m->let_go[e] >> axis : 0;
            const double share = gain * (double)faces->solid[f] / (double)shares[e];
            long long below;
            if (!fsi__ls_neighbor(run, e, 2 * axis, &below)) continue; /* a wall */
            if (!(gone & 8)) fsi__ls_push_back(run, pressure, below, axis, -share);
            if (!(gone & 1)) fsi__ls_push_back(run, pressure, e, axis, share);
        }
    }
}

/* Through walls. */
static void fsi__ls_feel_walls(fsi__ls_run *run, const fsi_field *pressure, int axis, double gain)
{
    const fsi_grid *g = run->grid;
    int b, c, side, corner[3];
    for (b = 0; b < g->block_count; b++) {
        fsi_grid_corner(g, b, corner);
        for (side = 0; side < 2; side++) {
            const int layer = (side ? g->n[axis] - 1 : 0) - corner[axis];
            if (layer < 0 || layer > 7 || run->s->desc.open_side[2 * axis + side]) continue;
            for (c = 0; c < g->block_cells; c++) {
                long long face = b * g->block_cells + c;
                if ((c >> 3 * axis & 7) != layer) continue;
                if (side) (void)fsi__ls_neighbor(run, (int)face, 2 * axis + 1, &face);
                if (face < 0 || !fsi__ls_has_let_go(run, (int)face, axis))
                    fsi__ls_push_back(run, pressure, b * g->block_cells + c, axis, side ? -gain : gain);
            }
        }
    }
}

FSI_API void fsi__ls_feel(fsi__ls_run *run, const fsi_field *pressure, double time)
{
    const double dx = (double)run->grid->dx,
                 gain = time * dx * (run->grid->dim == 3 ? dx : 1) / (double)run->s->desc.density;
    int a;
    for (a = 0; a < run->grid->dim && run->balanced; a++) {
        fsi__ls_feel_obstacles(run, pressure, a, gain);
        fsi__ls_feel_walls(run, pressure, a, gain);
    }
}

/* Components that a nozzle pours into. */
static void fsi__ls_mark_open(const fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int k, cell[3];
    for (k = 0; k < m->emitter_count; k++) {
        long long at = 0, entry;
        while (m->emitter[k].trial.open && fsi__ls_nozzle_cell(&m->emitter[k], run->grid, &at, cell))
            if ((entry = fsi_grid_entry(run->grid, cell[0], cell[1], cell[2])) >= 0 && m->trial_label[entry] >= 0)
                m->trial.motion[m->trial_label[entry]].open = 1;
    }
}

FSI_API fsi_status fsi__ls_expect_momentum(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int c, a;
    run->balanced = m->obstacle_count > 0 && !run->joint && run->s->desc.conserve_volume && run->length > 0;
    if (!run->balanced) return FSI_OK;
    FSI__TRY(fsi__ls_measure_motion(run));
    fsi__ls_forget_motion(&m->trial);
    fsi__ls_mark_open(run);
    for (c = 0; c < m->trial.count; c++)
        for (a = 0; a < 3; a++)
            m->trial.motion[c].due[a] = m->trial.owed[3 * c + a] + fsi__ls_momentum(&m->trial, c, a);
    if (m->trial_carried && run->carry_dt * FSI__LS_UNLIKE >= run->dt) fsi__ls_feel(run, m->trial_carried, run->dt / 2);
    return FSI_OK;
}

/* Components with a cell beside an obstacle. */
static void fsi__ls_mark_touching(const fsi__ls_run *run)
{
    const fsi__ls_impl *m = run->m;
    const int end = run->grid->block_count * run->grid->block_cells;
    int e;
    for (e = 0; e < end; e++)
        if (m->trial_phi->value[e] < 0 && m->psi->value[e] < run->grid->dx && m->trial_label[e] >= 0)
            m->trial.motion[m->trial_label[e]].touches = 1;
}

/* Momentum that all kin lack, bounded by FSI__LS_MOST_PUSH; 0 where one of them is open or none touches an obstacle.
   Needs measured shapes. */
static void fsi__ls_add_lacks(const fsi__ls_run *run)
{
    fsi__ls_parts *p = &run->m->trial;
    const double dx = (double)run->grid->dx;
    int c, a;
    for (c = 0; c < p->count; c++)
        p->motion[c].lack[0] = p->motion[c].lack[1] = p->motion[c].lack[2] = p->motion[c].volume = 0;
    for (c = 0; c < p->count; c++) {
        fsi__ls_motion *kin = &p->motion[fsi__ls_kin(p, c)];
        kin->volume += p->target[c];
        kin->open |= p->motion[c].open;
        kin->touches |= p->motion[c].touches;
        for (a = 0; a < 3; a++) kin->lack[a] += p->motion[c].due[a] - fsi__ls_momentum(p, c, a);
    }
    for (c = 0; c < p->count; c++) {
        const double most =
            p->motion[c].open || !p->motion[c].touches ? 0 : FSI__LS_MOST_PUSH * dx / run->dt * p->motion[c].volume;
        for (a = 0; a < 3; a++) {
            double *lack = &p->motion[c].lack[a];
            if (*lack > most) *lack = most; /* NaN stays, for the check of the result to see */
            if (*lack < -most) *lack = -most;
        }
    }
}

/* A face belongs to the component of the liquid beside it. */
static void fsi__ls_push_faces(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const int cells = run->grid->block_cells;
    int e, a;
    (void)chunk;
    for (e = begin * cells; e < end * cells; e++)
        for (a = 0; a < run->grid->dim; a++) {
            const fsi__ls_motion *kin;
            long long below;
            int c = m->trial_phi->value[e] < 0 ? m->trial_label[e] : -1;
            if (!fsi__ls_neighbor(run, e, 2 * a, &below)) continue;
            if (c < 0 && m->trial_phi->value[below] < 0) c = m->trial_label[below];
            if (c < 0) continue;
            kin = &m->trial.motion[fsi__ls_kin(&m->trial, c)];
            if (kin->volume > 0) m->trial_u[a]->value[e] += (fsi_real)(kin->lack[a] / kin->volume);
        }
}

FSI_API fsi_status fsi__ls_keep_momentum(fsi__ls_run *run)
{
    fsi__ls_parts *p = &run->m->trial;
    if (!run->balanced) { /* earlier deficits are not made up for later */
        memset(p->owed, 0, (size_t)p->count * 3 * sizeof *p->owed);
        return FSI_OK;
    }
    FSI__TRY(fsi__ls_measure_motion(run));
    fsi__ls_mark_touching(run);
    fsi__ls_add_lacks(run);
    fsi__ls_each_block(run, fsi__ls_push_faces);
    return FSI_OK;
}

FSI_API fsi_status fsi__ls_owe_momentum(fsi__ls_run *run)
{
    fsi__ls_parts *p = &run->m->trial;
    int c, a;
    if (!run->balanced) return FSI_OK;
    FSI__TRY(fsi__ls_measure_motion(run));
    fsi__ls_add_lacks(run);
    for (c = 0; c < p->count; c++) {
        const fsi__ls_motion *kin = &p->motion[fsi__ls_kin(p, c)];
        for (a = 0; a < 3; a++) p->owed[3 * c + a] = kin->volume > 0 ? kin->lack[a] * p->target[c] / kin->volume : 0;
    }
    return FSI_OK;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
