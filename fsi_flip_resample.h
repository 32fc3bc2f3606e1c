/* fsi_flip_resample.h - particles of a liquid that are split where they are few and merged where they are many.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_flip.h includes this file; its desc.resample asks for it.

   WHAT IT DOES
      Once a step, in the interior of the liquid, one particle of a cell with few becomes two, or two of a cell with
      many become one. Mass, momentum and centre stay (docs/flip.md, section 10).
   WHAT IS IN HERE (search for >>), all of it for fsi's own headers
      >>stages  then the implementation: >>few and many
   MACROS: those of fsi.h.
   UNITS: SI; masses over that of a whole particle.
   PRECISION: positions and velocities in fsi_real, masses in float.
*/
#ifndef FSI_FLIP_RESAMPLE_H
#define FSI_FLIP_RESAMPLE_H

#include "fsi_flip_surface.h"
#include "fsi_particles.h"

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

#define FSI__FL_GONE 255 /* `gone` of a particle that is still behind its emitter's plane, has left through an open side
                            or has been merged; sinks leave it alone */

/* The particles of a step, the caller's order. */
typedef struct fsi__fl_crowd {
    const fsi__fl_cells *cells;  /* fill, kind and open are read */
    fsi__tr_points *points;      /* sorted; afterwards again, with the new ones */
    fsi__particles *particles;   /* their table, which gets new rows behind the n in use */
    int n, spare;                /* particles; those that may be added */
    fsi_vec3 *x, *v;
    float *mass, (*affine)[9];   /* affine, held: NULL: none */
    uint32_t *held;              /* not 0: its emitter moves it: its cell is left alone */
    unsigned char *gone;         /* of the one that ends in a merger: FSI__FL_GONE */
    unsigned char *state, *marked; /* scratch: n + spare; one of each block */
    int split, merged;           /* counts */
} fsi__fl_crowd;

/* Splits or merges in each cell that has too few or too many; n, spare and the counts follow. */
FSI_API void fsi__fl_even_out(fsi__fl_crowd *s);

#endif /* FSI_FLIP_RESAMPLE_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_FLIP_RESAMPLE_IMPLEMENTATION
#define FSI_FLIP_RESAMPLE_IMPLEMENTATION
#endif
#ifdef FSI_FLIP_RESAMPLE_IMPLEMENTATION
#ifndef FSI_FLIP_RESAMPLE_IMPLEMENTATION_DONE
#define FSI_FLIP_RESAMPLE_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_flip_surface.h"
#include "fsi_particles.h"

FSI__STRICT_BEGIN

/* ---- >>few and many ------------------------------------------------------------------------------------------------

   Flow that converges crowds particles, flow that stretches leaves gaps. In a cell of liquid with liquid on all sides,
   clear of obstacles, with 8 (2D: 4) whole particles to a full one,

      more than 16 (2D: 8)                            the two nearest become one
      fewer than 4 (2D: 2)                            the heaviest becomes two
      more than 8 (4), two of at most a whole one     these become one, so that masses return to 1
      fewer than 8 (4), one of at least two           it becomes two

   One of these a cell and step. Mass, momentum and centre stay; so does, where one becomes two, angular momentum, with
   APIC that of the field of velocities. The numbers of a cell whose particles rest come between these bounds and stay
   there. */

#define FSI__FL_SMALLEST 0.125f /* [whole particles] that may come out of splitting, */
#define FSI__FL_HEAVIEST 4.0f   /* and out of merging */
#define FSI__FL_LOOK 64         /* particles of a cell that are looked at for pairs */

/* Liquid with liquid on all sides, no part of it covered by obstacles. */
static int fsi__fl_is_deep(const fsi__fl_cells *s, int e)
{
    const fsi_grid *g = s->grid;
    const int solids = s->obstacles->count > 0;
    int beside[6], side;
    if (s->kind[e] != FSI_CELL_LIQUID || !(s->fill->value[e] > (fsi_real)0.5)
        || (solids && s->open->value[e] < 1)) return 0;
    fsi__blocks_beside(g, e / g->block_cells, beside);
    for (side = 0; side < 2 * g->dim; side++) {
        const long long to = fsi__entry_beside(g, e / g->block_cells, beside, e % g->block_cells, side);
        if (to < 0 || fsi__fl_is_outside(g, to)) {
            if (s->open_side[side]) return 0;
        } else if (s->kind[to] != FSI_CELL_LIQUID || (solids && s->open->value[to] < 1)) return 0;
    }
    return 1;
}

/* Is the way between two points of a cell clear of obstacles? */
static int fsi__fl_is_clear(const fsi__fl_crowd *s, fsi_vec3 a, fsi_vec3 b)
{
    fsi__faces own;
    const fsi_real reach = (fsi_real)0.1 * s->cells->grid->dx;
    if (s->cells->obstacles->count == 0) return 1;
    return fsi__own_faces(s->cells->obstacles, NULL, fsi__path_box(a, b, reach), 0xffffffffu, &own) && own.count == 0;
}

/* Particles `a` and b become one; the row of the heavier stays. */
static void fsi__fl_merge(const fsi__fl_crowd *s, int a, int b)
{
    const int keep = s->mass[b] > s->mass[a] ? b : a, drop = keep == a ? b : a;
    const float m = s->mass[keep] + s->mass[drop], part = s->mass[drop] / m;
    int k;
    s->x[keep] = fsi_v3_madd(s->x[keep], (fsi_real)part, fsi_v3_sub(s->x[drop], s->x[keep]));
    s->v[keep] = fsi_v3_madd(s->v[keep], (fsi_real)part, fsi_v3_sub(s->v[drop], s->v[keep]));
    for (k = 0; k < 9 && s->affine; k++)
        s->affine[keep][k] += part * (s->affine[drop][k] - s->affine[keep][k]);
    s->mass[keep] = m;
    s->mass[drop] = 0;
    s->gone[drop] = FSI__FL_GONE;
}

/* The two nearest of the particles of ranks first to last - 1 that have at most a mass of `most` together; 0: there are
   none. */
static int fsi__fl_find_pair(const fsi__fl_crowd *s, int first, int last, float most, int pair[2])
{
    double nearest = 1e300;
    int a, b;
    if (last > first + FSI__FL_LOOK) last = first + FSI__FL_LOOK; /* a crowd takes more steps, not more time */
    for (a = first; a < last; a++)
        for (b = a + 1; b < last; b++) {
            const int i = s->points->order[a], j = s->points->order[b];
            double d;
            if (s->mass[i] + s->mass[j] > most) continue;
            d = (double)fsi_v3_norm2(fsi_v3_sub(s->x[i], s->x[j]));
            if (!(d < nearest)) continue;
            nearest = d;
            pair[0] = i;
            pair[1] = j;
        }
    return nearest < 1e300 && fsi__fl_is_clear(s, s->x[pair[0]], s->x[pair[1]]);
}

/* Merges in blocks, and marks in `state` what is to be split (1) and has been merged (2); their blocks in `marked`. */
static void fsi__fl_crowds(void *arg, int chunk, int begin, int end)
{
    fsi__fl_crowd *s = (fsi__fl_crowd *)arg;
    const int full = s->cells->grid->dim == 3 ? 8 : 4;
    int b, r, q, k, pair[2];
    (void)chunk;
    for (b = begin; b < end; b++) {
        s->marked[b] = 0;
        for (r = s->points->first[b]; r < s->points->first[b + 1]; r = q) {
            const int e = s->points->key[s->points->order[r]];
            int heavy = -1, count = 0;
            float m = 0;

            /* How many are in the cell, and the heaviest of them. */
            for (q = r; q < s->points->first[b + 1] && s->points->key[s->points->order[q]] == e; q++) {
                const int i = s->points->order[q];
                count += s->mass[i] > 0;
                if (s->mass[i] > m) m = s->mass[heavy = i];
            }
            for (k = r; k < q && s->held; k++) if (s->held[s->points->order[k]]) count = -1;
            if (count <= 0 || count < q - r || (count == full && m <= 1)) continue;
            if (count >= full / 2 && count <= 2 * full && !(count < full ? m >= 2 : count > full)) continue;
            if (!fsi__fl_is_deep(s->cells, e)) continue;

            /* What is to be done. */
            if (count > full) {
                if (!fsi__fl_find_pair(s, r, q, count > 2 * full ? FSI__FL_HEAVIEST : 1, pair)) continue;
                fsi__fl_merge(s, pair[0], pair[1]);
                s->state[pair[0]] = 2;
                s->marked[b] |= 2;
            } else if (m >= 2 * FSI__FL_SMALLEST) {
                s->state[heavy] = 1;
                s->marked[b] |= 1;
            }
        }
    }
}

/* Half of the distance between the two that particle i, in block b, becomes: along the axis with most room in its
   cell. 0: no room. */
static double fsi__fl_find_room(const fsi__fl_crowd *s, int b, int i, int *axis)
{
    const fsi_grid *g = s->cells->grid;
    const double dx = (double)g->dx, at[3] = { (double)s->x[i].x, (double)s->x[i].y, (double)s->x[i].z };
    const int c = s->points->key[i] % g->block_cells;
    double best = 0, way = 0;
    int corner[3], a, r;
    fsi_grid_corner(g, b, corner);
    for (a = 0; a < g->dim; a++) {
        const double lo = (a == 0   ? (double)g->origin.x
                           : a == 1 ? (double)g->origin.y
                                    : (double)g->origin.z) + (corner[a] + (c >> 3 * a & 7)) * dx;
        const double d = fmin(0.25 * dx, 0.9 * fmin(at[a] - lo, lo + dx - at[a]));
        double room = 2 * d;

        /* Distance of both from the others of the cell. */
        for (r = s->points->first[b]; r < s->points->first[b + 1]; r++) {
            const int j = s->points->order[r];
            fsi_vec3 off;
            double along;
            if (j == i || s->points->key[j] != s->points->key[i] || !(s->mass[j] > 0)) continue;
            off = fsi_v3_sub(s->x[j], s->x[i]);
            along = fabs((double)(a == 0 ? off.x : a == 1 ? off.y : off.z));
            room = fmin(room, sqrt(fmax((double)fsi_v3_norm2(off) + d * (d - 2 * along), 0)));
        }
        if (!(room > best)) continue;
        best = room;
        way = d;
        *axis = a;
    }
    return best > 0.05 * dx ? way : 0;
}

/* Particle i of block b becomes two; the second is a new row. */
static void fsi__fl_split(fsi__fl_crowd *s, int b, int i)
{
    fsi__particles *table = s->particles;
    const int n = table->attribute_count;
    const fsi_real *attributes = n > 0 ? *table->attribute + (size_t)i * (size_t)n : NULL;
    int axis = 0, k;
    const double d = fsi__fl_find_room(s, b, i, &axis);
    fsi_vec3 way = fsi_v3(axis == 0 ? (fsi_real)d : 0, axis == 1 ? (fsi_real)d : 0, axis == 2 ? (fsi_real)d : 0);
    fsi_vec3 more = fsi_v3(0, 0, 0);
    if (!(d > 0) || s->spare <= 0) return;
    if (!fsi__fl_is_clear(s, fsi_v3_sub(s->x[i], way), fsi_v3_add(s->x[i], way))) return;

    /* Its row, and the new one: half of the mass each, on both sides of where it was. */
    k = s->n++;
    s->spare--;
    FSI_ASSERT(k < *table->capacity);
    if (s->affine) {
        const fsi_real part = (fsi_real)(d / (double)s->cells->grid->dx);
        const float *c = s->affine[i];
        more = fsi_v3(part * (fsi_real)c[axis], part * (fsi_real)c[3 + axis], part * (fsi_real)c[6 + axis]);
        memcpy(s->affine[k], s->affine[i], sizeof s->affine[k]);
    }
    fsi__particles_new_row(table, k, s->x[i], s->v[i], 0, 0, attributes);
    s->x[k] = fsi_v3_add(s->x[i], way);
    s->v[k] = fsi_v3_add(s->v[i], more);
    s->x[i] = fsi_v3_sub(s->x[i], way);
    s->v[i] = fsi_v3_sub(s->v[i], more);
    s->mass[k] = s->mass[i] = s->mass[i] / 2;
    s->gone[k] = 0;
    if (s->held) s->held[k] = 0;
    s->split++;
}

/* Particles are sorted again where any has changed. */
FSI_API void fsi__fl_even_out(fsi__fl_crowd *s)
{
    const fsi_grid *g = s->cells->grid;
    int b, r, any = 0;
    s->split = s->merged = 0;
    memset(s->state, 0, (size_t)s->n);
    fsi__parallel_work(g->context, g->block_count, 1, 5.0 * s->n, fsi__fl_crowds, s);

    /* In the order of blocks. */
    for (b = 0; b < g->block_count; b++) {
        if (!s->marked[b]) continue;
        any = 1;
        for (r = s->points->first[b]; r < s->points->first[b + 1]; r++) {
            const int i = s->points->order[r];
            s->merged += s->state[i] == 2;
            if (s->state[i] == 1) fsi__fl_split(s, b, i);
        }
    }
    s->points->count = s->n;
    if (any) fsi__tr_sort(s->points);
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
