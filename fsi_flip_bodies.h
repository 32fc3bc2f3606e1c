/* fsi_flip_bodies.h - elastic bodies on the grid of a liquid: shares of faces, what each gets, which side is whose.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_flip.h includes this file.

   WHAT IT DOES
      Faces have a share of bodies, by volume. Where a body is thin, or held, the liquid of a face across its surface
      moves with it: a part `glued`, with one momentum. c = share + glued, u_l and u_b being the velocities that liquid
      and bodies give to a face, each by itself (docs/flip.md, section 6):

         m = share rho_b + glued rho_l,      u = (1 - c) u_l + c (share rho_b u_b + glued rho_l u_l)/m,
         1/rho = (1 - c)/rho_l + c^2/m.

      The free liquid, and the body with its liquid, each take the pressure's impulse on their part with their own mass;
      so both may slip along each other, but not into each other. Where the force on a body is not what its elastic step
      was made with, both are solved again (fsi__fl_couple).
      Bodies take over the part desc.pic of u_new, too. Liquid that would end in a body ends before it.
   WHAT IS IN HERE (search for >>), all of it for fsi's own headers
      >>stages  then the implementation: >>the elastic substep  >>faces that both have  >>what each gets
      >>liquid stays out of bodies
   MACROS: those of fsi.h.
   UNITS: SI.
   PRECISION: fields in fsi_real, arithmetic in double.
*/
#ifndef FSI_FLIP_BODIES_H
#define FSI_FLIP_BODIES_H

#include "fsi_flip_state.h"

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

/* In the order of a substep; without bodies they do nothing. */

/* Particles of bodies behind those of the liquid: where they are. Errors: those of fsi__im_follow. */
FSI_API fsi_status fsi__fl_append_solids(fsi__fl_run *run);
/* The elastic substep, with the forces expected of the liquid; accept_solids: the velocities of particles that it
   gave, without these forces. Errors: those of fsi_elastic_step. */
FSI_API fsi_status fsi__fl_bend_solids(fsi__fl_run *run);
FSI_API void fsi__fl_accept_solids(fsi__fl_run *run);
/* Where there is no liquid: all of the substep for `solids` particles of bodies. Errors: as above. */
FSI_API fsi_status fsi__fl_move_dry(fsi__fl_run *run, int solids);
/* Fill, shares of faces and the liquid that moves with bodies, velocities of the liquid. per_cell: particles in a full
   one. Errors: MEMORY. */
FSI_API fsi_status fsi__fl_share_faces(fsi__fl_run *run, double per_cell, fsi__tr_faces *faces);
/* u and 1/rho of both, with the velocities that bodies have now. */
FSI_API void fsi__fl_mix(fsi__fl_run *run);
/* What liquid and bodies each get of the pressure's change. Errors: MEMORY. */
FSI_API fsi_status fsi__fl_part_change(fsi__fl_run *run);
/* What particles of bodies get of it, in each round; and of u, once bodies and liquid agree. */
FSI_API void fsi__fl_push_solids(fsi__fl_run *run);
FSI_API void fsi__fl_carry_solids(fsi__fl_run *run);
/* Unknowns of bodies at the end of the substep, and ends of the liquid's paths before them. Errors: LIMIT, MESH. */
FSI_API fsi_status fsi__fl_move_solids(fsi__fl_run *run);

#endif /* FSI_FLIP_BODIES_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_FLIP_BODIES_IMPLEMENTATION
#define FSI_FLIP_BODIES_IMPLEMENTATION
#endif
#ifdef FSI_FLIP_BODIES_IMPLEMENTATION
#ifndef FSI_FLIP_BODIES_IMPLEMENTATION_DONE
#define FSI_FLIP_BODIES_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_flip_state.h"
#include <stdlib.h>

FSI__STRICT_BEGIN

/* ---- >>the elastic substep --------------------------------------------------------------------------------------- */

/* Behind the particles of the liquid: where the bodies are. */
FSI_API fsi_status fsi__fl_append_solids(fsi__fl_run *run)
{
    const fsi_box3 box = fsi_box3_inflate(fsi__fl_box(run->s), run->s->desc.dx);
    int p;
    if (run->solids == 0) return FSI_OK;
    for (p = 0; p < run->im->immersed.bodies; p++) FSI__TRY(fsi__im_follow(&run->im->immersed, p));
    fsi__im_places(&run->im->immersed, run->x + run->n);
    memcpy(run->mass + run->n, run->im->immersed.volume, (size_t)run->solids * sizeof *run->mass);
    if (run->affine) memset(run->affine[run->n], 0, (size_t)run->solids * sizeof *run->affine);
    run->hard.x = run->x + run->n;
    run->hard.mass = run->mass + run->n;
    for (p = 0; p < run->solids; p++) /* what has left through an open side is not in the liquid */
        if (!fsi__fl_is_in(box, run->x[run->n + p])) run->mass[run->n + p] = 0;
    return FSI_OK;
}

static fsi_status fsi__fl_stages(fsi_elastic *e, double dt, double done, double share)
{
    FSI__TRY(fsi__el_predict(e, dt, done, share));
    FSI__TRY(fsi__el_constrain(e));
    return fsi__el_solve(e);
}

/* Velocities of bodies without the liquid's forces. */
FSI_API void fsi__fl_accept_solids(fsi__fl_run *run)
{
    fsi__immersed *bodies = &run->im->immersed;
    fsi__el_accept(bodies->elastic);
    fsi__im_offer(bodies, run->v + run->n);
}

/* The elastic substep. */
FSI_API fsi_status fsi__fl_bend_solids(fsi__fl_run *run)
{
    fsi__immersed *bodies = &run->im->immersed;
    fsi_status status;
    if (run->solids == 0) return FSI_OK;
    fsi__im_weigh_anew(bodies, run->n == 0); /* without liquid nothing holds what was expected */
    fsi__im_support(bodies, 1);
    status = fsi__fl_stages(bodies->elastic, run->dt, run->done, run->share);
    fsi__im_support(bodies, 0);
    FSI__TRY(fsi__im_told(bodies, status));
    fsi__fl_accept_solids(run);
    return FSI_OK;
}

/* Bodies without liquid need no grid. */
FSI_API fsi_status fsi__fl_move_dry(fsi__fl_run *run, int solids)
{
    if (solids == 0) return FSI_OK;
    run->solids = solids;
    FSI__TRY(fsi__fl_bend_solids(run));
    memset(run->push, 0, (size_t)solids * sizeof *run->push);
    fsi__im_loosen(&run->im->immersed);
    fsi__el_end_substep(run->im->immersed.elastic);
    FSI__TRY(fsi__im_take(&run->im->immersed, run->fn, run->push, run->push));
    run->solids = 0;
    return FSI_OK;
}

/* ---- >>faces that both have -------------------------------------------------------------------------------------- */

/* 1: a number of them is above 0. */
static int fsi__fl_any(const fsi_real *x, size_t count)
{
    size_t i;
    int any = 0;
    for (i = 0; i < count; i++) any |= x[i] > 0;
    return any;
}

/* Have bodies a share of a block's faces of the job's axis? */
static int fsi__fl_is_shared(const fsi__fl_faces *job, int block) { return job->run->shared[job->axis][block]; }

/* The liquid's velocity without the bodies' part, and the share of these: volume of bodies, in `share`, over that of
   all, in `hard`. */
static void fsi__fl_divide_range(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_faces *job = (const fsi__fl_faces *)arg;
    const fsi__fl_run *run = job->run;
    const size_t cells = (size_t)run->im->grid->block_cells;
    const fsi_real *all = run->im->hard[job->axis]->value;
    fsi_real *wet = run->im->wet[job->axis]->value, *share = run->im->share[job->axis]->value;
    size_t e;
    (void)chunk;
    for (; begin < end; begin++) {
        const size_t first = (size_t)begin * cells;
        const int any = fsi__fl_any(share + first, cells);
        run->shared[job->axis][begin] = (unsigned char)any;
        for (e = first; e < first + cells && any; e++) {
            const double part = run->known[job->axis][e] ? (double)(share[e] / all[e]) : 0;
            wet[e] = (fsi_real)(part < 1 ? (double)wet[e] / (1 - part) : 0);
            share[e] = (fsi_real)part;
        }
    }
}

#define FSI__FL_MOST 0.5 /* share of bodies above which the liquid in a face has the change of the faces beside it */
#define FSI__FL_THIN 2.0 /* [cells] the liquid at a face moves with a body that is thinner across it, */
#define FSI__FL_THICK 4.0 /* but slips along one that is thicker than this */

/* Where a line through the centres of cells along an axis passes a body's surface, in or out: `at` [cells]. */
typedef struct fsi__fl_crossing {
    long long line;
    double at;
    fsi__d3 normal;            /* of the surface; its first coordinate is along the line */
    int way;                   /* 1 or -1: in or out */
    int axis;
} fsi__fl_crossing;

/* Those of one body. */
typedef struct fsi__fl_lines {
    const fsi_grid *grid;
    const fsi_mesh *surface;
    double held;               /* 1: the body is held, 0: it is free */
    int axis, across[2];       /* axes of the lines and across them; 2D: across[1] is 2 */
    int (*below)[3];           /* of each vertex: fsi__fl_count_below */
    unsigned char *meets;      /* of each face: bit a: it may meet lines along axis a */
    fsi__fl_crossing *list;
    int room, count;           /* count: all of them, also those that there is no room for */
} fsi__fl_lines;

static void fsi__fl_choose_lines(fsi__fl_lines *l, int axis)
{
    l->axis = axis;
    l->across[0] = l->grid->dim == 3 ? (axis + 1) % 3 : 1 - axis;
    l->across[1] = l->grid->dim == 3 ? (axis + 2) % 3 : 2;
}

static int fsi__fl_compare_crossings(const void *a, const void *b)
{
    const fsi__fl_crossing *x = (const fsi__fl_crossing *)a, *y = (const fsi__fl_crossing *)b;
    if (x->axis != y->axis) return x->axis - y->axis;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    if (x->at < y->at || x->at > y->at) return x->at < y->at ? -1 : 1;
    return y->way - x->way;
}

/* normal: of any length. */
static void fsi__fl_add_crossing(fsi__fl_lines *l, int j, int k, double at, fsi__d3 normal, int way)
{
    fsi__fl_crossing *c;
    if (l->count++ >= l->room) return;
    c = &l->list[l->count - 1];
    c->line = j + (long long)k * l->grid->n[l->across[0]];
    c->at = at;
    c->normal = normal;
    c->way = way;
    c->axis = l->axis;
}

/* The line at (y, z) and a triangle, whose corners are at x, y, z. Which side of an edge it is on is the same for both
   triangles there, so that it passes one of them. */
static void fsi__fl_cross_triangle(fsi__fl_lines *l, const int *corner, double x[3][3], int j, int k)
{
    const double y = j + 0.5, z = k + 0.5;
    const fsi__d3 a = fsi__d3_at(x[0]), normal =
        fsi__d3_cross(fsi__d3_sub(fsi__d3_at(x[1]), a), fsi__d3_sub(fsi__d3_at(x[2]), a));
    double w[3], sum = 0, at = 0;
    int e, sides = 0;
    for (e = 0; e < 3; e++) {
        const int next = (e + 1) % 3, up = corner[e] < corner[next];
        const double *from = up ? x[e] : x[next], *to = up ? x[next] : x[e];
        const double area = (to[1] - from[1]) * (z - from[2]) - (to[2] - from[2]) * (y - from[1]);
        sides += (area >= 0) == up ? 1 : -1;
        w[(e + 2) % 3] = up ? area : -area;
    }
    if (sides != 3 && sides != -3) return;
    for (e = 0; e < 3; e++) {
        sum += w[e];
        at += w[e] * x[e][0];
    }
    fsi__fl_add_crossing(l, j, k, fabs(sum) > 0 ? at / sum : x[0][0], normal, sides / 3);
}

/* A vertex of the surface, in cells. */
static fsi__d3 fsi__fl_in_cells(const fsi__fl_lines *l, int vertex)
{
    return fsi__d3_scale(fsi__d3_diff(l->surface->vertices[vertex], l->grid->origin), 1 / (double)l->grid->dx);
}

/* The lines of l->axis between first and last across it that a face meets. */
static void fsi__fl_cross_along(fsi__fl_lines *l, const int *corner, const int *first, const int *last)
{
    const int corners = l->surface->corners;
    double x[3][3];
    int i, a, j, k;
    for (i = 0; i < corners; i++) {
        const fsi__d3 at = fsi__fl_in_cells(l, corner[i]);
        x[i][0] = fsi__d3_axis(at, l->axis);
        for (a = 0; a < 2; a++) x[i][a + 1] = fsi__d3_axis(at, l->across[a]);
    }
    for (k = first[l->across[1]]; k <= last[l->across[1]]; k++)
        for (j = first[l->across[0]]; j <= last[l->across[0]]; j++) {
            const double y = j + 0.5;
            if (corners == 3) fsi__fl_cross_triangle(l, corner, x, j, k);
            else if ((x[0][1] <= y) != (x[1][1] <= y)) {
                const double rise = x[1][1] - x[0][1], run = x[1][0] - x[0][0];
                fsi__fl_add_crossing(l, j, 0, x[0][0] + (y - x[0][1]) / rise * run, fsi__d3_make(rise, -run, 0),
                    (x[0][1] <= y) == (l->axis == 0) ? 1 : -1);
            }
        }
}

/* Where the lines that a face may meet begin and end on each axis. */
static void fsi__fl_find_lines(const fsi__fl_lines *l, int f, int *first, int *last)
{
    const int corners = l->surface->corners, *corner = l->surface->faces + corners * f;
    int i, a;
    first[2] = last[2] = 0;
    for (a = 0; a < l->grid->dim; a++) {
        int least = l->below[corner[0]][a], most = least;
        for (i = 1; i < corners; i++) {
            const int below = l->below[corner[i]][a];
            least = below < least ? below : least;
            most = below > most ? below : most;
        }
        first[a] = least / 2;
        last[a] = ((most + 1) / 2 < l->grid->n[a] ? (most + 1) / 2 : l->grid->n[a]) - 1;
    }
}

/* Most faces are small, and meet none. */
static void fsi__fl_mark_faces(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_lines *l = (const fsi__fl_lines *)arg;
    const int dim = l->grid->dim;
    int f, a, first[3], last[3];
    (void)chunk;
    for (f = begin; f < end; f++) {
        fsi__fl_find_lines(l, f, first, last);
        l->meets[f] = 0;
        for (a = 0; a < dim; a++) {
            const int b = dim == 3 ? (a + 1) % 3 : 1 - a, c = dim == 3 ? (a + 2) % 3 : 2;
            if (first[b] <= last[b] && first[c] <= last[c]) l->meets[f] = (unsigned char)(l->meets[f] | 1 << a);
        }
    }
}

/* The lines that a face of the surface meets. */
static void fsi__fl_cross_face(fsi__fl_lines *l, int f)
{
    int a, first[3], last[3];
    fsi__fl_find_lines(l, f, first, last);
    for (a = 0; a < l->grid->dim; a++) {
        if (!(l->meets[f] >> a & 1)) continue;
        fsi__fl_choose_lines(l, a);
        fsi__fl_cross_along(l, l->surface->faces + l->surface->corners * f, first, last);
    }
}

#define FSI__FL_SURFACE 512 /* vertices or faces of a surface a chunk */
#define FSI__FL_BEYOND 5e8 /* [cells] more than any grid has */

/* Where all vertices are among the centres of cells along each axis: an even number 2 n is between two of them, n are
   below; an odd one, 2 n - 1, is on the n-th. A face reaches the centres from least / 2 to (most + 1) / 2 - 1. */
static void fsi__fl_count_below(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_lines *l = (const fsi__fl_lines *)arg;
    int v, a;
    (void)chunk;
    for (v = begin; v < end; v++) {
        const fsi__d3 at = fsi__fl_in_cells(l, v);
        for (a = 0; a < 3; a++) {
            const double x = fsi__d3_axis(at, a), y = (x > 0 ? (x < FSI__FL_BEYOND ? x : FSI__FL_BEYOND) : 0) + 0.5;
            const int n = (int)y; /* centres up to x */
            l->below[v][a] = 2 * n - (y <= n);
        }
    }
}

/* Between two crossings the line is in the body. `glued` becomes 1 at the faces that this passes if the body is thin or
   held, 0 if it is thick, or where the line cuts off a corner, as its two sides are not parallel. */
static void fsi__fl_glue_between(const fsi__fl_run *run, const fsi__fl_lines *l, const fsi__fl_crossing *in,
    const fsi__fl_crossing *out)
{
    const double a = in->at, b = out->at, lengths = fsi__d3_norm(in->normal) * fsi__d3_norm(out->normal);
    const double thin = fmax(fmin((FSI__FL_THICK - (b - a)) / (FSI__FL_THICK - FSI__FL_THIN), 1), l->held)
        * (lengths > 0 ? -fsi__d3_dot(in->normal, out->normal) / lengths : 0);
    fsi_real *glued = run->im->glued[l->axis]->value;
    const double first = fmax(floor(a), 0), last = fmin(ceil(b), l->grid->n[l->axis]);
    int at[3] = { 0, 0, 0 }, i;
    if (!(thin > 0 && first <= last)) return;
    at[l->across[0]] = (int)(in->line % l->grid->n[l->across[0]]);
    if (l->grid->dim == 3) at[l->across[1]] = (int)(in->line / l->grid->n[l->across[0]]);
    for (i = (int)first; i <= (int)last; i++) {
        long long e;
        at[l->axis] = i;
        e = fsi_grid_entry(l->grid, at[0], at[1], at[2]);
        if (e >= 0) glued[e] = fsi_max(glued[e], (fsi_real)thin);
    }
}

/* Glues the faces that a body passes. */
static fsi_status fsi__fl_glue_by(fsi__fl_run *run, fsi__fl_lines *l)
{
    fsi__arena *arena = &run->im->lines;
    const size_t vertices = (size_t)l->surface->vertex_count, faces = (size_t)l->surface->face_count;
    const fsi__fl_crossing *from = NULL;
    size_t more = 0;
    int i, f, in = 0;

    /* Crossings, by line and place. */
    for (;;) {
        if (!fsi__arena_room(run->s->context, arena,
            vertices * sizeof *l->below + faces + more * sizeof *l->list + 128))
            return fsi__fail(run->s->context, FSI_ERROR_MEMORY, run->fn, -1, (double)more,
                "no memory for %d crossings of a body", (int)more);
        l->below = (int (*)[3])fsi__take(arena, vertices, sizeof *l->below);
        l->meets = (unsigned char *)fsi__take(arena, faces, 1);
        l->room = (int)((arena->size - arena->used) / sizeof *l->list);
        l->list = (fsi__fl_crossing *)(void *)(arena->base + arena->used);
        fsi__parallel_work(run->s->context, (int)vertices, FSI__FL_SURFACE, 5.0 * (double)vertices,
            fsi__fl_count_below, l);
        fsi__parallel_work(run->s->context, (int)faces, FSI__FL_SURFACE, 10.0 * (double)faces, fsi__fl_mark_faces, l);
        for (f = l->count = 0; f < l->surface->face_count; f++)
            if (l->meets[f]) fsi__fl_cross_face(l, f);
        if (l->count <= l->room) break;
        more = (size_t)l->count;
    }
    if (l->count > 1) qsort(l->list, (size_t)l->count, sizeof *l->list, fsi__fl_compare_crossings);

    /* From where it goes in to where it is out again. */
    for (i = 0; i < l->count; i++) {
        const fsi__fl_crossing *c = &l->list[i];
        if (i == 0 || c->line != c[-1].line || c->axis != c[-1].axis) in = 0;
        if (in == 0) from = c;
        in += c->way;
        if (in != 0) continue;
        fsi__fl_choose_lines(l, c->axis);
        fsi__fl_glue_between(run, l, from, c);
    }
    return FSI_OK;
}

/* `glued` becomes the fraction of each face that is liquid which moves with a body. */
static void fsi__fl_glue_range(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_faces *job = (const fsi__fl_faces *)arg;
    const fsi__fl_impl *im = job->run->im;
    const size_t cells = (size_t)im->grid->block_cells;
    const fsi_real *share = im->share[job->axis]->value;
    fsi_real *glued = im->glued[job->axis]->value;
    size_t e;
    (void)chunk;
    for (; begin < end; begin++) {
        const size_t first = (size_t)begin * cells;
        if (fsi__fl_is_shared(job, begin)) for (e = first; e < first + cells; e++)
            glued[e] = share[e] > 0 ? glued[e] * (1 - share[e]) : 0;
        else memset(glued + first, 0, cells * sizeof *glued);
    }
}

/* How much of the liquid at each face moves with bodies. */
static fsi_status fsi__fl_glue(fsi__fl_run *run)
{
    fsi__immersed *bodies = &run->im->immersed;
    const size_t cells = (size_t)run->im->grid->block_count * (size_t)run->im->grid->block_cells;
    fsi__fl_lines lines;
    int k;
    for (k = 0; k < run->im->grid->dim; k++) memset(run->im->glued[k]->value, 0, cells * sizeof(fsi_real));
    memset(&lines, 0, sizeof lines);
    lines.grid = run->im->grid;
    for (k = 0; k < bodies->bodies; k++) {
        lines.surface = bodies->body[k].surface;
        lines.held = fsi__im_held(&bodies->body[k]);
        FSI__TRY(fsi__fl_glue_by(run, &lines));
    }
    fsi__fl_each_axis(run, fsi__fl_glue_range);
    return FSI_OK;
}

/* u and 1/rho of both: what flows through a face, and how easily. */
static void fsi__fl_mix_range(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_faces *job = (const fsi__fl_faces *)arg;
    const fsi__fl_run *run = job->run;
    const fsi__fl_impl *im = run->im;
    const size_t cells = (size_t)im->grid->block_cells;
    const double density = (double)run->s->desc.density;
    const fsi_real *share = im->share[job->axis]->value, *glued = im->glued[job->axis]->value;
    const fsi_real *heft = im->heft[job->axis]->value, *wet = im->wet[job->axis]->value;
    const fsi_real *hard = im->hard[job->axis]->value;
    fsi_real *u = im->u[job->axis]->value, *rho = im->inverse_density[job->axis]->value;
    size_t e;
    (void)chunk;
    for (; begin < end; begin++) {
        const size_t first = (size_t)begin * cells, last = first + cells;

        /* Liquid alone. */
        memcpy(u + first, wet + first, cells * sizeof *u);
        for (e = first; e < last; e++) rho[e] = (fsi_real)(1 / density);
        if (!fsi__fl_is_shared(job, begin)) continue;

        /* Both. */
        for (e = first; e < last; e++) {
            const double own = (double)share[e], with = (double)glued[e], both = own + with;
            double mass, body;
            if (!(own > 0)) continue;
            mass = own * fmax((double)heft[e], FSI__FL_LIGHTEST);
            body = both * mass / (mass + with);
            u[e] = (fsi_real)((1 - body) * (double)wet[e] + body * (double)hard[e]);
            rho[e] = (fsi_real)((1 - both + both * both / (mass + with)) / density);
        }
    }
}

/* What the bodies' particles give to faces. v: of each; u, mass (NULL: not wanted): of each axis. */
static void fsi__fl_spread_solids(fsi__fl_run *run, fsi_vec3 *v, fsi_field *const *u, fsi_field *const *mass)
{
    fsi__tr_faces faces;
    fsi__tr_motion motion;
    int a;
    motion.affine = NULL;
    motion.v = v;
    memset(&faces, 0, sizeof faces);
    faces.box = run->im->boxes;
    for (a = 0; a < 3; a++) {
        faces.known[a] = run->reached[a];
        faces.u[a] = u[a];
        if (mass) faces.mass[a] = mass[a];
    }
    fsi__tr_to_grid(&run->hard, &motion, 1, &faces);
}

/* Density of bodies at faces as the grid feels it, and their mass there (NULL: not wanted). */
static void fsi__fl_spread_heft(fsi__fl_run *run, fsi_field *const *mass)
{
    fsi_vec3 *v = run->to; /* not in use yet */
    int i;
    for (i = 0; i < run->solids; i++) {
        const fsi_real x = (fsi_real)run->im->immersed.heft[i];
        v[i] = fsi_v3(x, x, x);
    }
    fsi__fl_spread_solids(run, v, run->im->heft, mass);
    run->im->immersed.weighed_anew = 0;
    run->same_masses = 0;
}

/* u, as the bodies move now. */
FSI_API void fsi__fl_mix(fsi__fl_run *run)
{
    if (run->im->immersed.weighed_anew) fsi__fl_spread_heft(run, NULL);
    fsi__fl_spread_solids(run, run->v + run->n, run->im->hard, NULL);
    fsi__fl_each_axis(run, fsi__fl_mix_range);
}

/* Fill, shares, velocities of the liquid. */
FSI_API fsi_status fsi__fl_share_faces(fsi__fl_run *run, double per_cell, fsi__tr_faces *faces)
{
    int i, a;
    for (i = 0; i < run->solids; i++) run->v[run->n + i] = fsi_v3(0, 0, 0);
    for (a = 0; a < 3; a++) {
        faces->u[a] = run->im->wet[a];
        faces->mass[a] = run->im->hard[a]; /* not in use yet */
    }
    fsi__tr_to_grid(&run->points, &run->motion, per_cell, faces);
    fsi__tr_sort(&run->hard);
    fsi__fl_spread_heft(run, run->im->share);
    fsi__fl_each_axis(run, fsi__fl_divide_range);
    return fsi__fl_glue(run);
}

/* ---- >>what each gets -------------------------------------------------------------------------------------------- */

/* Faces that keep their change of an axis: in `label`, four bytes a cell, which nothing else needs now. */
static unsigned char *fsi__fl_own_faces(const fsi__fl_run *run, int axis)
{
    const fsi_grid *g = run->im->grid;
    return (unsigned char *)run->label + (size_t)axis * (size_t)g->block_count * (size_t)g->block_cells;
}

/* What the liquid gets of the pressure's change L at a face, of momentum over the liquid's density: what moves with a
   body comes to one velocity with it, the rest gets L. `hard` keeps L. */
static void fsi__fl_part_range(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_faces *job = (const fsi__fl_faces *)arg;
    const fsi__fl_run *run = job->run;
    const fsi__fl_impl *im = run->im;
    const size_t cells = (size_t)im->grid->block_cells;
    const unsigned char *reached = run->reached[job->axis];
    const fsi_real *share = im->share[job->axis]->value, *glued = im->glued[job->axis]->value;
    const fsi_real *heft = im->heft[job->axis]->value, *wet = im->wet[job->axis]->value;
    fsi_real *change = im->change[job->axis]->value, *hard = im->hard[job->axis]->value;
    unsigned char *own = fsi__fl_own_faces(run, job->axis);
    size_t e;
    (void)chunk;
    for (; begin < end; begin++) {
        const size_t first = (size_t)begin * cells;
        if (!fsi__fl_is_shared(job, begin)) {
            memcpy(own + first, reached + first, cells);
            continue;
        }
        for (e = first; e < first + cells; e++) {
            const double part = (double)share[e], with = (double)glued[e], push = (double)change[e];

            /* Deep in a thick body the gradient is not the liquid's. */
            own[e] = (unsigned char)(reached[e] && (part < FSI__FL_MOST || with > 0));
            if (with > 0 && own[e]) {
                const double body = part * fmax((double)heft[e], FSI__FL_LIGHTEST), mass = body + with;
                const double gain = ((part + with) * push + body * ((double)hard[e] - (double)wet[e])) / mass;
                change[e] = (fsi_real)((with * gain + (1 - part - with) * push) / (1 - part));
            }
            hard[e] = (fsi_real)push;
        }
    }
}

/* The bodies get the rest. */
static void fsi__fl_rest_range(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_faces *job = (const fsi__fl_faces *)arg;
    const fsi__fl_impl *im = job->run->im;
    const size_t cells = (size_t)im->grid->block_cells;
    const unsigned char *reached = job->run->reached[job->axis];
    const fsi_real *share = im->share[job->axis]->value, *change = im->change[job->axis]->value;
    fsi_real *hard = im->hard[job->axis]->value;
    size_t e;
    (void)chunk;
    for (; begin < end; begin++) {
        const size_t first = (size_t)begin * cells;
        if (fsi__fl_is_shared(job, begin)) for (e = first; e < first + cells; e++)
            hard[e] = share[e] > 0 && reached[e] ? (hard[e] - (1 - share[e]) * change[e]) / share[e] : 0;
        else memset(hard + first, 0, cells * sizeof *hard);
    }
}

/* The liquid at faces that are mostly a thick body's gets what it has at those beside it. */
FSI_API fsi_status fsi__fl_part_change(fsi__fl_run *run)
{
    unsigned char *own[3];
    int a;
    for (a = 0; a < 3; a++) own[a] = fsi__fl_own_faces(run, a);
    fsi__fl_each_axis(run, fsi__fl_part_range);
    FSI__TRY(fsi__grid_extrapolate_all(run->im->change, own, run->im->grid->dim, 2));
    fsi__fl_each_axis(run, fsi__fl_rest_range);
    return FSI_OK;
}

/* What the grid has at particles of bodies: of `field`, in out. */
static void fsi__fl_read_at_solids(fsi__fl_run *run, fsi_field *const *field, fsi_vec3 *out)
{
    fsi__tr_gain gain;
    fsi__tr_motion motion;
    memset(out, 0, (size_t)run->solids * sizeof *out);
    motion.affine = NULL;
    motion.v = out;
    gain.pic = 1;
    gain.u = gain.change = field;
    fsi__tr_to_particles(&run->hard, &gain, &motion);
}

/* push becomes impulse over mass; now, the velocity with it. */
static void fsi__fl_push_range(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    const fsi__immersed *bodies = &run->im->immersed;
    int p;
    (void)chunk;
    for (p = begin; p < end; p++) {
        run->now[p] = fsi_v3_madd(run->v[run->n + p], 1 / (fsi_real)bodies->heft[p], run->push[p]);
        run->push[p] = fsi_v3_scale(run->push[p], 1 / (fsi_real)bodies->density[p]);
        if (!(run->mass[run->n + p] > 0)) run->push[p] = fsi_v3(0, 0, 0);
    }
}

FSI_API void fsi__fl_push_solids(fsi__fl_run *run)
{
    fsi__fl_read_at_solids(run, run->im->hard, run->push);
    fsi__parallel(run->s->context, run->solids, FSI__FL_GRAIN, fsi__fl_push_range, run);
}

/* now becomes the part of u, in `to`, that particles of bodies take over, and what holds them in the box. */
static void fsi__fl_carry_range(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    const fsi_real part = (fsi_real)fsi__fl_part(run, (double)run->s->desc.pic), dt = (fsi_real)run->dt;
    int p;
    (void)chunk;
    for (p = begin; p < end; p++) {
        const fsi_vec3 x = run->x[run->n + p], moved = run->now[p];
        fsi_vec3 w = fsi_v3_madd(fsi_v3_scale(moved, 1 - part), part, run->to[p]), to, held;
        to = fsi_v3_madd(x, dt, w);
        held = to;
        if (fsi__fl_hold_in_box(run, &held, &w) && memcmp(&held, &to, sizeof to) != 0)
            w = fsi_v3_scale(fsi_v3_sub(held, x), 1 / dt);
        run->now[p] = run->mass[run->n + p] > 0 ? fsi_v3_sub(w, moved) : fsi_v3(0, 0, 0);
    }
}

FSI_API void fsi__fl_carry_solids(fsi__fl_run *run)
{
    if (run->solids == 0) return;
    fsi__fl_read_at_solids(run, run->im->u, run->to); /* not in use yet */
    fsi__parallel(run->s->context, run->solids, FSI__FL_GRAIN, fsi__fl_carry_range, run);
}

/* ---- >>liquid stays out of bodies -----------------------------------------------------------------------------------

   Constraint (14). The face of a body that is closest to where a particle was tells the side that it came from; from
   that face, where it is now, one comes to the closest point of this side. A path that ends nearer to it than a quarter
   of a spacing, or behind it, ends a quarter of a spacing before it. Velocities stay: the pressure stops what presses
   against the body, as at obstacles. */

/* The rigid motion closest to that of a body, and how far one of its particles is from it. */
static void fsi__fl_find_drift(const fsi__fl_run *run, fsi__im_body *o)
{
    const fsi_vec3 *x = run->x + run->n + o->first, *v = run->v + run->n + o->first, origin = run->im->grid->origin;
    fsi__fl_moments sum;
    fsi__d3 l;
    int p;
    memset(&sum, 0, sizeof sum);
    for (p = 0; p < o->count; p++)
        fsi__fl_weigh(&sum, 1, fsi__d3_diff(x[p], origin), fsi__d3_of(v[p]), fsi__d3_zero(), NULL);
    l = fsi__fl_center(&sum);
    o->center = fsi__d3_add(fsi__d3_at(sum.at), fsi__d3_of(origin));
    o->drift = fsi__d3_over(fsi__d3_at(sum.p), o->count);
    o->spin = fsi__d3_spin(run->s->desc.dim, sum.second, l);
    o->spread = 0;
    for (p = 0; p < o->count; p++) o->spread =
        fmax(o->spread, fsi__d3_norm(fsi__d3_sub(fsi__d3_of(v[p]), fsi__im_drift_at(o, x[p]))));
}

static void fsi__fl_find_drifts(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_run *run = (const fsi__fl_run *)arg;
    (void)chunk;
    for (; begin < end; begin++) fsi__fl_find_drift(run, &run->im->immersed.body[begin]);
}

/* How far from where it was a particle may meet a body. 1.5: the surface is beyond the body's particles. */
static double fsi__fl_reach_of(const fsi__fl_run *run, const fsi__im_body *o, int i, double least)
{
    const fsi__d3 way = fsi__d3_diff(run->to[i], run->x[i]);
    const double reach = fsi__d3_norm(fsi__d3_madd(way, -run->dt, fsi__im_drift_at(o, run->x[i])))
        + 1.5 * run->dt * o->spread + 0.5 * (double)run->s->spacing;
    return reach > least ? reach : least;
}

/* Of the liquid of ranks begin .. end - 1. */
static fsi__fl_reach fsi__fl_find_reach(const fsi__fl_run *run, int begin, int end)
{
    const int *order = run->points.order;
    fsi__fl_reach reach;
    int r;
    reach.box = fsi_box3_empty();
    reach.longest2 = 0;
    reach.meets = 0;
    for (r = begin; r < end; r++) {
        fsi__d3 way;
        double d2;
        if (order[r] >= run->n) continue;
        reach.box = fsi_box3_grow(reach.box, run->x[order[r]]);
        way = fsi__d3_diff(run->to[order[r]], run->x[order[r]]);
        d2 = fsi__d3_dot(way, way);
        if (d2 > reach.longest2) reach.longest2 = d2;
    }
    return reach;
}

/* 0: none of its particles can come near a body in the substep. What fsi__fl_near_cell asks for is never farther than
   this allows: the longest way, the body's rigid motion anywhere in their box, its spread, and from the first particle
   of a cell to the others. */
static int fsi__fl_may_meet(const fsi__fl_run *run, const fsi__im_body *o, const fsi__fl_reach *liquid)
{
    const fsi_box3 box = liquid->box;
    double reach;
    if (!(box.lo.x <= box.hi.x)) return 0;
    reach = fsi__d3_norm(o->drift) + fsi__d3_norm(o->spin) * (fsi__d3_norm(fsi__d3_diff(box.hi, box.lo))
        + fsi__d3_norm(fsi__d3_sub(fsi__d3_of(box.lo), o->center))) + 1.5 * o->spread;
    reach = sqrt(liquid->longest2) + run->dt * reach + 4 * (double)run->s->spacing + 2 * (double)run->im->grid->dx;
    return fsi_box3_overlap(fsi_box3_inflate(o->surface->box, (fsi_real)(1.001 * reach)), box);
}

/* The face of a body closest to where a particle was, at most `reach` away; -1: none. face: one that is close to it,
   or -1. */
static fsi_mesh_hit fsi__fl_closest(const fsi__fl_run *run, const fsi_mesh *surface, int i, double reach, int face)
{
    if (face >= 0) reach = fmin(reach, 1.001 * (double)fsi_mesh_closest_on_face(surface, face, run->x[i]).t
        + 1e-6 * (double)run->s->spacing);
    return fsi_mesh_closest(surface, run->x[i], (fsi_real)reach, -1);
}

/* Finds the faces that the liquid of a cell, ranks begin .. end - 1, may meet. Its first particle tells how far the
   others are at least. face: a close one. */
static void fsi__fl_near_cell(fsi__fl_run *run, const fsi__im_body *o, int begin, int end, double least, int *face)
{
    const int *order = run->points.order;
    int r, first = -1;
    double most = 0;
    fsi_mesh_hit hit;

    /* The first one, and how far it must look for all. */
    for (r = begin; r < end; r++) {
        const int i = order[r];
        double reach;
        if (i >= run->n || run->gone[i] || (run->held && run->held[i])) continue;
        if (first < 0) first = i;
        reach = fsi__fl_reach_of(run, o, i, least) + fsi__d3_norm(fsi__d3_diff(run->x[i], run->x[first]));
        most = reach > most ? reach : most;
    }
    if (first < 0 || !fsi__fl_is_in(fsi_box3_inflate(o->surface->box, (fsi_real)most), run->x[first])) return;
    hit = fsi__fl_closest(run, o->surface, first, most, *face);
    if (hit.face < 0) return;
    *face = hit.face;

    /* Each of them, but where the first one is too far away for it. */
    for (r = begin; r < end; r++) {
        const int i = order[r];
        double reach, apart;
        if (i >= run->n || run->gone[i] || (run->held && run->held[i])) continue;
        apart = fsi__d3_norm(fsi__d3_diff(run->x[i], run->x[first]));
        reach = fsi__fl_reach_of(run, o, i, hit.side > 0 && (double)hit.t > apart ? 0 : least); /* 0: it is outside */
        if ((double)hit.t - apart > reach) continue;
        run->near_face[i] = i == first ? hit.face : fsi__fl_closest(run, o->surface, i, reach, hit.face).face;
    }
}

typedef struct fsi__fl_guard {
    fsi__fl_run *run;
    const fsi__im_body *body;
} fsi__fl_guard;

/* The liquid of some blocks. Where it shares a cell with a body it may be deep in it. */
static void fsi__fl_near_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_guard *job = (const fsi__fl_guard *)arg;
    fsi__fl_run *run = job->run;
    const int *order = run->points.order, *key = run->points.key;
    int b, r, next;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const int last = run->points.first[b + 1];
        int face = -1;
        run->reach[b].meets = fsi__fl_may_meet(run, job->body, &run->reach[b]);
        if (!run->reach[b].meets) continue;

        /* Cell by cell. */
        for (r = run->points.first[b]; r < last; r = next) {
            fsi__fl_reach cell;
            int solid = 0;
            for (next = r; next < last && key[order[next]] == key[order[r]]; next++) {
                if (order[next] < run->n) run->near_face[order[next]] = -1;
                else solid = 1;
            }
            cell = fsi__fl_find_reach(run, r, next);
            if (fsi__fl_may_meet(run, job->body, &cell))
                fsi__fl_near_cell(run, job->body, r, next, solid ? 4 * (double)run->s->spacing : 0, &face);
        }
    }
}

static void fsi__fl_reach_blocks(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    int b;
    (void)chunk;
    for (b = begin; b < end; b++)
        run->reach[b] = fsi__fl_find_reach(run, run->points.first[b], run->points.first[b + 1]);
}

/* Up to -1 or 1 on each axis, at random by the bits of x. */
static fsi_vec3 fsi__fl_scatter(int dim, fsi_vec3 x)
{
    const uint32_t bits = fsi__fl_position_hash(x);
    return fsi_v3((fsi_real)(bits & 1023) / 512 - 1, (fsi_real)(bits >> 10 & 1023) / 512 - 1,
        dim == 3 ? (fsi_real)(bits >> 20 & 1023) / 512 - 1 : 0);
}

/* A path ends before the body. Particles that were deep in it do not end at one point of an edge or at one corner, from
   where they would not part: they are scattered over half a spacing before it. 0: it ends where it did. */
static int fsi__fl_end_before(fsi__fl_run *run, const fsi__im_body *o, int i)
{
    const fsi_real gap = run->s->spacing / 4;
    const fsi_mesh_hit hit = fsi__mesh_descend(o->surface, run->near_face[i], run->to[i]);
    fsi_vec3 n;
    int inner;
    if (hit.side > 0 && hit.t >= gap) return 0;
    n = hit.side > 0 && hit.t > 0 ? fsi_v3_scale(fsi_v3_sub(run->to[i], hit.point), 1 / hit.t) : hit.normal;
    run->to[i] = fsi_v3_madd(hit.point, gap, n);
    inner = hit.bary[0] > 0 && hit.bary[1] > 0 && (hit.bary[2] > 0 || run->s->desc.dim == 2); /* of the face */
    if (hit.side < 0 && hit.t > 4 * gap && !inner) {
        const fsi_vec3 by = fsi__fl_scatter(run->s->desc.dim, run->x[i]);
        const fsi_real along = fsi_v3_dot(by, n);
        run->to[i] = fsi_v3_madd(run->to[i], 2 * gap, fsi_v3_madd(by, fsi_abs(along) - along, n));
    }
    return 1;
}

/* Those of the blocks that may come to the body; where paths have changed, how far they reach is found anew. */
static void fsi__fl_keep_out(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_guard *job = (const fsi__fl_guard *)arg;
    fsi__fl_run *run = job->run;
    const int *order = run->points.order, *first = run->points.first;
    int b, r;
    (void)chunk;
    for (b = begin; b < end; b++) {
        int moved = 0;
        if (!run->reach[b].meets) continue;
        for (r = first[b]; r < first[b + 1]; r++)
            if (order[r] < run->n && run->near_face[order[r]] >= 0)
                moved |= fsi__fl_end_before(run, job->body, order[r]);
        if (moved) run->reach[b] = fsi__fl_find_reach(run, first[b], first[b + 1]);
    }
}

/* Unknowns of bodies, at the end of the substep. */
FSI_API fsi_status fsi__fl_move_solids(fsi__fl_run *run)
{
    fsi__immersed *bodies = &run->im->immersed;
    fsi_context *context = run->s->context;
    fsi__fl_guard job;
    const int blocks = run->im->grid->block_count;
    int k;
    if (run->solids == 0) return FSI_OK;
    fsi__el_end_substep(bodies->elastic);
    FSI__TRY(fsi__im_take(bodies, run->fn, run->push, run->now));
    fsi__im_places(bodies, run->to + run->n);
    fsi__im_velocities(bodies, run->v + run->n);
    fsi__parallel(context, bodies->bodies, 1, fsi__fl_find_drifts, run);
    fsi__parallel_work(context, blocks, 1, 5.0 * run->n, fsi__fl_reach_blocks, run);
    job.run = run;
    for (k = 0; k < bodies->bodies; k++) {
        job.body = &bodies->body[k];
        fsi__parallel_work(context, blocks, 1, 5.0 * run->n, fsi__fl_near_blocks, &job);
        FSI__TRY(fsi__im_follow(bodies, k));
        fsi__parallel_work(context, blocks, 1, 5.0 * run->n, fsi__fl_keep_out, &job);
    }
    return FSI_OK;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
