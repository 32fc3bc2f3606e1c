/* fsi_flip_surface.h - where the surface of a liquid of particles is on a grid: kinds of cells, distance, tension.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_flip.h includes this file.

   WHAT IT DOES
      The mass of particles in each cell, over that of a full one, tells how far the surface is, which cells are liquid,
      and how much too dense or too thin they are (docs/flip.md, section 3). Surface tension is gamma times the
      curvature of a smoothed distance (section 10).
   WHAT IS IN HERE (search for >>), all of it for fsi's own headers
      >>stages  then the implementation: >>liquid cells  >>surface tension
   MACROS: those of fsi.h.
   UNITS: SI; fill over that of a full cell.
   PRECISION: fields in fsi_real, arithmetic in double.
*/
#ifndef FSI_FLIP_SURFACE_H
#define FSI_FLIP_SURFACE_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_flip_transfer.h"
#include "fsi_obstacle.h"
#include "fsi_phi.h"
#include "fsi_pressure.h"

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

#define FSI__FL_BAND 4 /* cells on both sides of the surface whose distance tension knows */

/* The cells of a liquid. The fields are at cells. */
typedef struct fsi__fl_cells {
    const fsi_grid *grid;
    const fsi__obstacles *obstacles;
    const unsigned char *open_side; /* 6: 1: a side of the box is open, else a wall */
    const fsi__tr_points *points;   /* sorted */
    int liquid;                     /* particles of the liquid; those behind them are of bodies */
    double rate;                    /* part of the error of the density that is corrected [1/s] */
    double tension;                 /* gamma [N/m] */
    fsi_field *fill;                /* mass over that of a full cell far from walls; then over its own full mass; -1:
                                       closed */
    fsi_field *open;                /* part of the cell that no obstacle covers; not read without obstacles */
    unsigned char *kind;            /* FSI_CELL_AIR, FSI_CELL_LIQUID, as fsi_pressure_flow has them */
    fsi_field *phi, *source;        /* distance to the surface, negative in liquid [m]; divergence to be left [1/s] */
    fsi_field *psi;                 /* distance to the nearest obstacle, at most two cells [m] */
    fsi_field *shape, *capillary;   /* smoothed distance to the surface [m]; gamma times its curvature [Pa] */
} fsi__fl_cells;

/* 1: an entry lies behind the upper walls. */
FSI_FN int fsi__fl_is_outside(const fsi_grid *g, long long e)
{
    const int c = (int)(e % g->block_cells);
    int corner[3];
    fsi_grid_corner(g, (int)(e / g->block_cells), corner);
    return corner[0] + (c & 7) >= g->n[0] || corner[1] + (c >> 3 & 7) >= g->n[1]
        || (g->dim == 3 && corner[2] + (c >> 6) >= g->n[2]);
}

/* open of all cells, from the obstacles. */
FSI_API void fsi__fl_find_open(const fsi__fl_cells *s);
/* kind, phi and source of all cells, from fill, open and the particles; fill becomes that over each cell's own. */
FSI_API void fsi__fl_find_kinds(const fsi__fl_cells *s);
/* psi of all cells, from the obstacles. */
FSI_API void fsi__fl_find_psi(const fsi__fl_cells *s);
/* shape and capillary, from phi; with obstacles psi too. known: an entry of the blocks each, for its own use. Errors:
   MEMORY. */
FSI_API fsi_status fsi__fl_find_tension(const fsi__fl_cells *s, unsigned char *known);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_FLIP_SURFACE_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_FLIP_SURFACE_IMPLEMENTATION
#define FSI_FLIP_SURFACE_IMPLEMENTATION
#endif
#ifdef FSI_FLIP_SURFACE_IMPLEMENTATION
#ifndef FSI_FLIP_SURFACE_IMPLEMENTATION_DONE
#define FSI_FLIP_SURFACE_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_flip_transfer.h"
#include "fsi_obstacle.h"
#include "fsi_phi.h"
#include "fsi_pressure.h"

FSI__STRICT_BEGIN

/* 1 cell of rim around a block. */
#define FSI__FL_EDGE 10
FSI_FN int fsi__fl_in_box(const fsi_grid *g, int x, int y, int z)
{
    return ((g->dim == 3 ? z + 1 : 0) * FSI__FL_EDGE + y + 1) * FSI__FL_EDGE + x + 1;
}

/* A loop over blocks, `work` nanoseconds a cell. */
static void fsi__fl_each_block(const fsi__fl_cells *s, fsi__range_fn *fn, double work)
{
    const fsi_grid *g = s->grid;
    fsi__fl_cells job = *s;
    fsi__parallel_work(g->context, g->block_count, 1, work * g->block_count * g->block_cells, fn, &job);
}

/* ---- >>liquid cells ------------------------------------------------------------------------------------------------

   The share of a cell that particles fill, by their tents, over that of a full one tells where the surface is. A level
   surface d cells above a centre fills

      f(d) = (1 + d)^2/2 for -1 <= d <= 0,    1 - (1 - d)^2/2 for 0 <= d <= 1,

   so phi = -d dx. A cell is liquid if more than half is filled, which is phi < 0; also if it is a gap with such cells
   on all sides, or holds spray: particles with no such cell beside it; beside liquid, where an obstacle cuts the
   cell, 0.15 will do, as few particles tell. Near walls a full cell holds less: the tent's part that lies in solids is
   missing, by weights 1/8, 3/4, 1/8 of cells along each axis (7/8 at a wall in the grid).

   Liquid keeps the density of its particles (line 7): with r the fraction that a substep corrects, the divergence

      r/dt clamp(f - 1, -1/2, 1/2) in cells with liquid on all sides,    r/dt clamp(f - 1.1, 0, 1/2) at its surface

   is left in it, times the part of the cell that no obstacle covers and the part of its content that is liquid: bodies
   keep their own volume. */

#define FSI__FL_CUT 0.15    /* fill of a cell cut by an obstacle, beside liquid, that is liquid: few particles tell */
#define FSI__FL_CLOSED (-1) /* fill of a cell that is solid but for a tenth */

/* Distances of a block's cells to the nearest obstacle, at most limit. */
static void fsi__fl_to_obstacles(const fsi__fl_cells *s, fsi_field *psi, int b, fsi_real limit)
{
    const fsi_grid *g = s->grid;
    fsi_real here[512], *nearest = psi->value + (size_t)b * (size_t)g->block_cells;
    fsi__distance_job job;
    int c, k;
    job.grid = g;
    job.psi = psi;
    job.limit = limit;
    for (c = 0; c < g->block_cells; c++) nearest[c] = limit;
    for (k = 0; k < s->obstacles->count; k++) {
        job.shape = fsi_shape_mesh(fsi__obstacle_at(s->obstacles, k)->mesh);
        if (fsi__distance_block(&job, b, FSI__SIDE_CUT, here) == FSI__SIDE_OUTSIDE) continue;
        for (c = 0; c < g->block_cells; c++) nearest[c] = fsi_min(nearest[c], here[c]);
    }
}

/* What obstacles leave of each cell, by the distance of its centre from them: 1/2 + psi/dx. */
static void fsi__fl_open_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_cells *s = (const fsi__fl_cells *)arg;
    const fsi_grid *g = s->grid;
    int b, c;
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_real *open = s->open->value + (size_t)b * (size_t)g->block_cells;
        fsi__fl_to_obstacles(s, s->open, b, g->dx);
        for (c = 0; c < g->block_cells; c++) open[c] = fsi_clamp((fsi_real)0.5 + open[c] / g->dx, 0, 1);
    }
}

/* What a full cell holds, over that of one away from all walls. open: gathered with one cell around. */
static double fsi__fl_full(const fsi_grid *g, const int *cell, const fsi_real *open, int x, int y, int z)
{
    static const double weight[3] = { 0.125, 0.75, 0.125 };
    double sum = 0;
    int i, j, k;
    for (k = g->dim == 3 ? -1 : 0; k <= (g->dim == 3 ? 1 : 0); k++)
        for (j = -1; j <= 1; j++)
            for (i = -1; i <= 1; i++) {
                const int at[3] = { cell[0] + i, cell[1] + j, cell[2] + k };
                const double w = weight[i + 1] * weight[j + 1] * (g->dim == 3 ? weight[k + 1] : 1);
                if (at[0] < 0 || at[1] < 0 || at[2] < 0 || at[0] >= g->n[0] || at[1] >= g->n[1]
                    || (g->dim == 3 && at[2] >= g->n[2])) continue;
                sum += w * (open ? (double)open[fsi__fl_in_box(g, x + i, y + j, z + k)] : 1);
            }
    return sum;
}

/* 1: no obstacle is within a cell of a block. */
static int fsi__fl_is_all_open(const fsi_grid *g, const fsi_real *open)
{
    const int entries = FSI__FL_EDGE * FSI__FL_EDGE * (g->dim == 3 ? FSI__FL_EDGE : 1);
    int e;
    for (e = 0; e < entries; e++)
        if (open[e] < 1) return 0;
    return 1;
}

/* 1: a cell is not beside a wall of the box. */
FSI_FN int fsi__fl_is_inner(const fsi_grid *g, const int *cell)
{
    int a;
    for (a = 0; a < g->dim; a++)
        if (cell[a] < 1 || cell[a] > g->n[a] - 2) return 0;
    return 1;
}

/* source = the part of what is in each cell of a block that is liquid; 1 in an empty one. */
static void fsi__fl_share_block(const fsi__fl_cells *s, int b)
{
    const fsi_grid *g = s->grid;
    fsi_real *share = s->source->value + (size_t)b * (size_t)g->block_cells;
    double all[512], solid[512];
    int r, c;
    memset(all, 0, sizeof all);
    memset(solid, 0, sizeof solid);
    for (r = s->points->first[b]; r < s->points->first[b + 1]; r++) {
        const int i = s->points->order[r];
        c = s->points->key[i] - b * g->block_cells;
        all[c] += (double)s->points->mass[i];
        if (i >= s->liquid) solid[c] += (double)s->points->mass[i];
    }
    for (c = 0; c < g->block_cells; c++) share[c] = (fsi_real)(all[c] > 0 ? 1 - solid[c] / all[c] : 1);
}

/* The fill of cells over that of full ones, and which of them hold particles. */
static void fsi__fl_fill_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_cells *s = (const fsi__fl_cells *)arg;
    const fsi_grid *g = s->grid;
    const int solids = s->obstacles->count > 0, bodies = s->points->count > s->liquid, layers = fsi__layers(g);
    fsi_real open[FSI__FL_EDGE * FSI__FL_EDGE * FSI__FL_EDGE];
    int b, r, x, y, z;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const int base = b * g->block_cells;
        int corner[3], cell[3], clear;
        fsi_grid_corner(g, b, corner);
        if (solids) fsi__grid_gather(s->open, b, 1, open);
        memset(s->kind + base, FSI_CELL_AIR, (size_t)g->block_cells);
        for (r = s->points->first[b]; r < s->points->first[b + 1]; r++) {
            const float *at = s->points->place[r];
            if (at[3] > 0) s->kind[base + ((int)at[2] * 8 + (int)at[1]) * 8 + (int)at[0]] = FSI_CELL_LIQUID;
        }
        if (bodies) fsi__fl_share_block(s, b);

        /* Fill over that of a full cell. */
        clear = !solids || fsi__fl_is_all_open(g, open);
        for (z = 0; z < layers; z++) for (y = 0; y < 8; y++) for (x = 0; x < 8; x++) {
            fsi_real *f = &s->fill->value[base + (z * 8 + y) * 8 + x];
            double full;
            cell[0] = corner[0] + x;
            cell[1] = corner[1] + y;
            cell[2] = corner[2] + z;
            if (clear && fsi__fl_is_inner(g, cell)) continue; /* 1 */
            full = fsi__fl_full(g, cell, solids ? open : NULL, x, y, z);
            *f = full < 0.1 ? FSI__FL_CLOSED : *f / (fsi_real)full;
        }
    }
}

/* Height of the surface above a cell's centre [dx]. */
FSI_FN double fsi__fl_height(double f)
{
    if (f <= 0) return -1;
    if (f >= 1) return 1;
    return f < 0.5 ? sqrt(2 * f) - 1 : 1 - sqrt(2 * (1 - f));
}

/* A cell's neighbours: those more than half full; those with any; closed ones and walls count as full. */
typedef struct fsi__fl_around { int full, liquid, count; } fsi__fl_around;

static fsi__fl_around fsi__fl_look_around(const fsi__fl_cells *s, const int *cell, const fsi_real *fill, int x, int y,
    int z)
{
    const fsi_grid *g = s->grid;
    fsi__fl_around around = { 0, 0, 2 * g->dim };
    int side;
    for (side = 0; side < 2 * g->dim; side++) {
        const int *step = fsi__step(side), a = side >> 1, to = cell[a] + step[a];
        const fsi_real f = fill[fsi__fl_in_box(g, x + step[0], y + step[1], z + step[2])];
        if (to < 0 || to >= g->n[a]) around.full += !s->open_side[side];
        else {
            around.full += f > (fsi_real)0.5 || f < 0;
            around.liquid += f > (fsi_real)0.5;
        }
    }
    return around;
}

/* Kinds, phi and sources of cells. */
static void fsi__fl_liquid_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_cells *s = (const fsi__fl_cells *)arg;
    const fsi_grid *g = s->grid;
    const double dx = (double)g->dx, rate = s->rate;
    const int bodies = s->points->count > s->liquid;
    fsi_real fill[FSI__FL_EDGE * FSI__FL_EDGE * FSI__FL_EDGE];
    int b, x, y, z;
    (void)chunk;
    for (b = begin; b < end; b++) {
        int corner[3], cell[3];
        fsi_grid_corner(g, b, corner);
        fsi__grid_gather(s->fill, b, 1, fill);
        for (z = 0; z < fsi__layers(g); z++) for (y = 0; y < 8; y++) for (x = 0; x < 8; x++) {
            const size_t e = (size_t)b * (size_t)g->block_cells + (size_t)((z * 8 + y) * 8 + x);
            const double f = (double)s->fill->value[e];
            const int held = s->kind[e] == FSI_CELL_LIQUID;
            fsi__fl_around around;
            double phi, source = 0;
            int liquid, cut;
            cell[0] = corner[0] + x;
            cell[1] = corner[1] + y;
            cell[2] = corner[2] + z;
            if (cell[0] >= g->n[0] || cell[1] >= g->n[1] || (g->dim == 3 && cell[2] >= g->n[2])) {
                s->kind[e] = FSI_CELL_AIR;
                s->phi->value[e] = (fsi_real)dx;
                s->source->value[e] = 0;
                continue;
            }
            around = fsi__fl_look_around(s, cell, fill, x, y, z);

            /* What is liquid; gaps and spray have a surface close to their centres. */
            cut = s->obstacles->count > 0 && s->open->value[e] < 1;
            liquid = f > 0.5 || (cut && around.liquid > 0 && (f < 0 || f > FSI__FL_CUT))
                || (f >= 0 && (around.full == around.count || (held && around.liquid == 0)));
            phi = f < 0 ? -dx : -dx * fsi__fl_height(f);
            if (liquid && phi > -0.1 * dx) phi = -0.1 * dx;
            if (!liquid && phi < 0) phi = dx;

            /* What it lacks. */
            if (f > 0.5 && around.full == around.count) source = rate * fmax(fmin(f - 1, 0.5), -0.5);
            else if (f > 1.1) source = rate * fmin(f - 1.1, 0.5);
            else if (f >= 0 && liquid && around.full == around.count) source = -0.5 * rate;
            if (s->obstacles->count > 0) source *= (double)s->open->value[e];
            if (bodies) source *= (double)s->source->value[e];
            s->phi->value[e] = (fsi_real)phi;
            s->source->value[e] = (fsi_real)source;
            s->kind[e] = liquid ? FSI_CELL_LIQUID : FSI_CELL_AIR;
        }
    }
}

FSI_API void fsi__fl_find_open(const fsi__fl_cells *s) { fsi__fl_each_block(s, fsi__fl_open_blocks, 20); }

FSI_API void fsi__fl_find_kinds(const fsi__fl_cells *s)
{
    fsi__fl_each_block(s, fsi__fl_fill_blocks, 20);
    fsi__fl_each_block(s, fsi__fl_liquid_blocks, 20);
}

/* ---- >>surface tension ---------------------------------------------------------------------------------------------

   At the surface the pressure is gamma kap, kap its curvature. phi by the fill of cells is rough by 0.1 dx, where
   curvatures of 1/(10 dx) are wanted: they are those of a smoothed distance. phi becomes the distance to its surface,
   which FSI__FL_SMOOTH times takes the mean (1, 2, 1)/4 along each axis: that moves a surface of curvature kap by
   kap FSI__FL_SMOOTH dx^2/4, and leaves a flat one. Its levels meet walls and obstacles at 90 degrees: it goes on
   behind walls as in a mirror, and into obstacles as it is beside them. */

#define FSI__FL_SMOOTH 4 /* even */

/* Distance to the nearest obstacle, at most two cells. */
static void fsi__fl_psi_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_cells *s = (const fsi__fl_cells *)arg;
    int b;
    (void)chunk;
    for (b = begin; b < end; b++) fsi__fl_to_obstacles(s, s->psi, b, 2 * s->grid->dx);
}

/* A field with a rim of one cell; behind the walls of the box as before them. */
static void fsi__fl_gather_mirrored(const fsi_field *f, int b, fsi_real *box)
{
    const fsi_grid *g = f->grid;
    int corner[3], x, y, z, a;
    fsi__grid_gather(f, b, 1, box);
    fsi_grid_corner(g, b, corner);
    for (z = g->dim == 3 ? -1 : 0; z <= (g->dim == 3 ? 8 : 0); z++)
        for (y = -1; y <= 8; y++)
            for (x = -1; x <= 8; x++) {
                int to[3], moved = 0;
                to[0] = x;
                to[1] = y;
                to[2] = z;
                for (a = 0; a < g->dim; a++) {
                    const int lo = 0 - corner[a], hi = g->n[a] - 1 - corner[a], k = to[a];
                    to[a] = k < lo ? lo : (k > hi ? hi : k);
                    moved |= to[a] != k;
                }
                if (moved) box[fsi__fl_in_box(g, x, y, z)] = box[fsi__fl_in_box(g, to[0], to[1], to[2])];
            }
}

/* One mean of fields: from shape to capillary, or back. */
typedef struct fsi__fl_means { const fsi_field *from; fsi_field *to; } fsi__fl_means;

static void fsi__fl_smooth_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_means *job = (const fsi__fl_means *)arg;
    const fsi_grid *g = job->from->grid;
    const int size = g->dim == 3 ? 1000 : 100;
    fsi_real box[1000], mean[1000];
    int b, c, a, e, step;
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_real *to = job->to->value + (size_t)b * (size_t)g->block_cells;
        fsi__fl_gather_mirrored(job->from, b, box);
        for (a = 0, step = 1; a < g->dim; a++, step *= FSI__FL_EDGE) { /* the rim gets rubbish that nothing reads */
            memcpy(mean, box, (size_t)size * sizeof *box);
            for (e = step; e < size - step; e++) mean[e] = (box[e - step] + 2 * box[e] + box[e + step]) / 4;
            memcpy(box, mean, (size_t)size * sizeof *box);
        }
        for (c = 0; c < g->block_cells; c++) to[c] = box[fsi__fl_in_box(g, c & 7, c >> 3 & 7, c >> 6)];
    }
}

/* capillary = gamma kap, in three cells beside the surface. */
static void fsi__fl_tension_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_cells *s = (const fsi__fl_cells *)arg;
    const fsi_grid *g = s->grid;
    static const int step[3] = { 1, FSI__FL_EDGE, FSI__FL_EDGE * FSI__FL_EDGE };
    const double dx = (double)g->dx, gamma = s->tension;
    fsi_real box[1000];
    int b, c;
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_real *capillary = s->capillary->value + (size_t)b * (size_t)g->block_cells;
        fsi__fl_gather_mirrored(s->shape, b, box);
        for (c = 0; c < g->block_cells; c++) {
            const fsi_real *p = box + fsi__fl_in_box(g, c & 7, c >> 3 & 7, c >> 6);
            capillary[c] = (fsi_real)(fabs((double)*p) < 3 * dx ? gamma * fsi__phi_curvature(p, g->dim, step, dx) : 0);
        }
    }
}

FSI_API void fsi__fl_find_psi(const fsi__fl_cells *s) { fsi__fl_each_block(s, fsi__fl_psi_blocks, 20); }

/* phi goes on into obstacles as it is beside them. */
static fsi_status fsi__fl_extend_shape(const fsi__fl_cells *s, unsigned char *known)
{
    const size_t cells = (size_t)s->grid->block_count * (size_t)s->grid->block_cells;
    size_t e;
    fsi__fl_find_psi(s);
    for (e = 0; e < cells; e++) known[e] = s->psi->value[e] > 0;
    return fsi_grid_extrapolate(s->shape, known, FSI__FL_BAND);
}

FSI_API fsi_status fsi__fl_find_tension(const fsi__fl_cells *s, unsigned char *known)
{
    const size_t cells = (size_t)s->grid->block_count * (size_t)s->grid->block_cells;
    fsi__fl_means job;
    int k;
    memcpy(s->shape->value, s->phi->value, cells * sizeof(fsi_real));
    if (s->obstacles->count > 0) FSI__TRY(fsi__fl_extend_shape(s, known));
    FSI__TRY(fsi_grid_redistance(s->shape, FSI__FL_BAND, s->shape));
    for (k = 0; k < FSI__FL_SMOOTH; k++) {
        job.from = k & 1 ? s->capillary : s->shape;
        job.to = k & 1 ? s->shape : s->capillary;
        fsi__parallel_work(s->grid->context, s->grid->block_count, 1, 10.0 * (double)cells, fsi__fl_smooth_blocks,
            &job);
    }
    fsi__fl_each_block(s, fsi__fl_tension_blocks, 20);
    return FSI_OK;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
