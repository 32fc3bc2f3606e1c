/* fsi_front_topology.h - sheets that come close merge, necks pinch off: cells there are resampled and sewn to the rest.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_front.h includes this file; fsi_front_desc.topology switches it on.

   WHAT IS IN HERE (search for >>)
      >>stages           for fsi's own headers, not for you: places where sheets are close, and what becomes of them
   MACROS: those of fsi.h.
   UNITS: SI.
   PRECISION: as fsi_front_lines.h: which nodes of the lattice are inside is exact for vertices on a lattice of 2^-20.
*/
#ifndef FSI_FRONT_TOPOLOGY_H
#define FSI_FRONT_TOPOLOGY_H

#include "fsi_front_lines.h"
#include "fsi_front_remesh.h"
#include "fsi_mesh.h"
#include "fsi_surface.h"

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

/* A vertex, and the place nearest to it on an element that faces it. Between them is air (gap) or liquid. */
typedef struct fsi__frt_pair {
    int vertex, element, gap, window;
    fsi_vec3 foot;
} fsi__frt_pair;

/* What the owner was asked for in a window: 1: air between pieces low and high, 0: liquid. */
typedef struct fsi__frt_question { int gap, low, high, allowed; } fsi__frt_question;

/* Cells lo ... hi - 1 of a lattice. */
typedef struct fsi__frt_window { int lo[3], hi[3]; } fsi__frt_window;

/* Of a vertex on the lattice: its normal, and the piece that it was of. */
typedef struct fsi__frt_made { fsi__d3 normal; int piece; } fsi__frt_made;

/* A cell that is wider by dx/2 than edges are after a step (FSI__FR_LONGEST), with bounds of the unit normals of the
   vertices in it (lo, hi), and of those in it and its neighbours (wide), in 1/127. */
typedef struct fsi__frt_cone {
    int at[3];
    signed char used, lo[3], hi[3], wide_lo[3], wide_hi[3];
} fsi__frt_cone;

/* May what happens at a pair happen? a, b: pieces. */
typedef int fsi__frt_ask(void *owner, int gap, int a, int b, fsi_vec3 place);

typedef struct fsi__frt {
    double dx;                 /* sheets nearer than dx/2, a cell of the lattice, are joined or parted */
    fsi__frt_ask *ask;
    void *owner;
    int places, whole, failed, forbidden, cells; /* what a call did */
    int thin;                  /* vertices that an attempt leaves thin */
    double lost_amount[FSI__FR_ATTRIBUTES], lost_momentum[3]; /* of connected parts of which nothing is left */

    /* Pairs, and windows around them. */
    int *hit, *start, *role;   /* of vertices: element nearest; half-edge of the rim; number in the patch */
    fsi_vec3 *normal;
    int vertex_room;
    fsi__frt_cone *cone;       /* a hash: the next place that is free */
    int cones, cone_room;      /* a power of two */
    fsi__frt_pair *pair;
    int pair_count, pair_room;
    fsi__frt_window *window;
    int window_count, window_room;
    fsi__frt_question *question;
    int question_room;

    /* A window: nodes, the lower ones of cells. */
    fsi__frt_window at;
    double origin[3];          /* of the lattice, in its cells, 0 to 1 */
    int wall_axis, wall_side;  /* of the wall that vertices in the window lie on; axis -1: none */
    double wall;               /* its place, in the middle between two nodes: those beyond are never inside */
    int joins;                 /* where two nodes across a face of a cell are inside and two are not: 1: what is inside
                                  hangs together there, 0: what is outside */
    int n[3], step[3];
    unsigned char *base, *cell, *node; /* cells at pairs, cells to be resampled; is a node inside? */
    signed char *winding;
    int *edge;                 /* vertices on edges from a node along an axis */
    int node_room;
    fsi_front_lines *lines;
    fsi__frl_surface sub;      /* elements whose shadow along x meets the window */
    int *sub_element, *sub_corner, *sub_vertex;
    fsi_vec3 *sub_x;
    int sub_room, sub_vertex_room;

    /* A patch: elements that are gone, and new ones. */
    unsigned char *gone;       /* of elements */
    int gone_room;
    int *list;                 /* elements that are gone */
    int list_count, list_room;
    int *rim;                  /* half-edges of what stays, the other side is gone */
    int rim_count, rim_room;
    int first_vertex, first_element;
    fsi__frt_made *made;
    int made_room;
    int *local;                /* corners, twins, stars, heads, next */
    int local_room;
    int *loop, *begin;         /* vertices of loops, then those of the rim */
    int loop_room, begin_room, loops, sheet_loops, begins, rim_ends; /* 2D: of the new ones, those that begin */
    int *match;
    double *cost;
    int match_room, cost_room;
    int *patch;                /* vertices around the patch */
    int patch_count, patch_room;
    int *group;                /* of new vertices, then those of the patch: which of them hang together */
    double *sum;               /* of groups: amounts, momentum, as there were */
    int group_room, sum_room, groups;
    unsigned char *concerned;  /* of pieces */
    int concerned_room;
    unsigned char cases[256][16];
    int cases_dim;
} fsi__frt;

/* Joins sheets and parts necks that are nearer than dx/2. New elements come behind the first nt, and have the piece of
   the sheet they come from; fsi__fr_label tells what is connected. Where that is not possible the place stays as it
   is. Errors: MEMORY, LIMIT. */
FSI_API fsi_status fsi__frt_change(fsi__frt *t, fsi__fr_mesh *m, int pieces, const char *fn);
FSI_API void fsi__frt_free(fsi__frt *t, fsi_context *context);

#endif /* FSI_FRONT_TOPOLOGY_H */

/* ==== Stop here if you only want the API. ====================================================================== */

/* A change, names without their fsi__frt_:

      find_pairs      vertices nearer than dx/2 to an element that faces them
      make_windows    boxes of cells around those that hang together
      in each window, in order: change_window
         sample          winding numbers of nodes, by fsi_front_lines.h
         move_lattice    another one in each attempt, with the wall, if there is one, between its nodes
         mark            the cells at pairs, and some more around them in later attempts; at last those of whole pieces
         force           nodes in thin gaps are inside, nodes in thin sheets are outside
         widen_made      nodes change sides until what is made is thick enough
         march           a surface through the marked cells, by the table of fsi_surface.h
         cut             elements that touch these cells are gone
         sew             loops of the new surface to those of the rim, by strips of triangles
         is_clear        exactly: no new element meets any other
         count_thin      vertices that would be pairs again: another attempt, unless it is the best of all
         accept          links, amounts, momentum                                                                    */

#ifdef FSI_IMPLEMENTATION
#undef FSI_FRONT_TOPOLOGY_IMPLEMENTATION
#define FSI_FRONT_TOPOLOGY_IMPLEMENTATION
#endif
#ifdef FSI_FRONT_TOPOLOGY_IMPLEMENTATION
#ifndef FSI_FRONT_TOPOLOGY_IMPLEMENTATION_DONE
#define FSI_FRONT_TOPOLOGY_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_front_lines.h"
#include "fsi_front_remesh.h"
#include "fsi_mesh.h"
#include "fsi_surface.h"

FSI__STRICT_BEGIN

#define FSI__FRT_MARGIN 6     /* cells of a window around pairs */
#define FSI__FRT_MADE 1.3      /* [cells] thickness of what is made in a place, at least: remeshing and the shift that
                                  gives volume back may take a part of it */
#define FSI__FRT_NEAREST 0.05  /* part of an edge of the lattice between a vertex and its ends */
#define FSI__FRT_CLEAR 1.2     /* [cells] thickness of sheets after an attempt that leaves nothing thin */
#define FSI__FRT_LATTICES 6    /* attempts with one ring of cells around those at pairs, as many with two; then the best
                                  of these, or as many with three, */
#define FSI__FRT_CHOICE (2 * FSI__FRT_LATTICES)
#define FSI__FRT_ATTEMPTS (3 * FSI__FRT_LATTICES)
#define FSI__FRT_WHOLE 4       /* then with whole pieces */
#define FSI__FRT_NONE 0x7fffffff
#define FSI__FRT_FACING (-0.6) /* cosine between normals of sheets that face each other */
#define FSI__FRT_MOST (1 << 24) /* nodes of a window */
#define FSI__FRT_LONGEST 2.5   /* [length] of edges that are sewn */

/* Sheets nearer than a cell are joined or parted. */
static double fsi__frt_cell(const fsi__frt *t) { return t->dx / 2; }

/* Room for a count of rows, contents kept up to `rows`. */
#define FSI__FRT_ROOM(array, rows, room, need) \
    if ((need) > t->room) FSI__TRY(fsi__room_in(m->context, &t->array, sizeof *t->array, rows, &t->room, need, fn))

/* ---- places where sheets are close ------------------------------------------------------------------------------- */

typedef struct fsi__frt_job { fsi__frt *t; const fsi__fr_mesh *m; } fsi__frt_job;

/* The place of element e that is nearest to x, from there. */
static fsi__d3 fsi__frt_foot(const fsi__fr_mesh *m, int e, fsi_vec3 x)
{
    const int *c = m->corner + m->k * e;
    const fsi_vec3 a = fsi_v3_sub(m->x[c[0]], x), b = fsi_v3_sub(m->x[c[1]], x);
    fsi_real w[3];
    fsi__d3 p;
    if (m->k == 2) {
        fsi__closest_segment(a, b, w);
        return fsi__d3_madd(fsi__d3_scale(fsi__d3_of(a), (double)w[0]), (double)w[1], fsi__d3_of(b));
    }
    {
        const fsi_vec3 d = fsi_v3_sub(m->x[c[2]], x);
        fsi__closest_triangle(a, b, d, w);
        p = fsi__d3_madd(fsi__d3_scale(fsi__d3_of(a), (double)w[0]), (double)w[1], fsi__d3_of(b));
        return fsi__d3_madd(p, (double)w[2], fsi__d3_of(d));
    }
}

/* Its place in the hash, if it is there, else the free one. */
static fsi__frt_cone *fsi__frt_cone_at(const fsi__frt *t, int x, int y, int z)
{
    const uint32_t h = (uint32_t)x * 0x9e3779b1u + (uint32_t)y * 0x85ebca77u + (uint32_t)z * 0xc2b2ae3du;
    int i = (int)((h ^ h >> 15) & (uint32_t)(t->cones - 1));
    while (t->cone[i].used && (t->cone[i].at[0] != x || t->cone[i].at[1] != y || t->cone[i].at[2] != z))
        i = (i + 1) & (t->cones - 1);
    return &t->cone[i];
}

static void fsi__frt_cone_cell(const fsi__frt *t, const fsi__fr_mesh *m, int v, int *at)
{
    const double scale = 1 / (FSI__FR_LONGEST * m->length + fsi__frt_cell(t));
    int axis;
    for (axis = 0; axis < 3; axis++) at[axis] = (int)floor((double)fsi__axis(m->x[v], axis) * scale);
}

static fsi__frt_cone *fsi__frt_cone_of(const fsi__frt *t, const fsi__fr_mesh *m, int v)
{
    int at[3];
    fsi__frt_cone_cell(t, m, v, at);
    return fsi__frt_cone_at(t, at[0], at[1], at[2]);
}

/* Does an element lie on a wall? */
static int fsi__frt_is_wetted(const fsi__fr_mesh *m, int e)
{
    const int *c = m->corner + m->k * e;
    return (m->flags[c[0]] & m->flags[c[1]] & m->flags[c[m->k - 1]] & FSI__FR_WALLS) != 0;
}

/* The normal of a vertex; of one on a wall, that of the elements beside it that are not, along the wall, as if all were
   mirrored at the wall: 0 where there are none. */
static fsi__d3 fsi__frt_free_normal(const fsi__fr_mesh *m, int v)
{
    fsi__d3 n = fsi__d3_zero();
    int h = m->star[v];
    if (!(m->flags[v] & FSI__FR_WALLS)) return fsi__d3_unit(fsi__fr_gradient(m, v));
    if (m->k == 2) {
        const int before = m->twin[2 * h];
        if (!fsi__frt_is_wetted(m, h)) n = fsi__fr_normal_of(m, h);
        if (!fsi__frt_is_wetted(m, before)) n = fsi__d3_add(n, fsi__fr_normal_of(m, before));
    } else do {
        if (!fsi__frt_is_wetted(m, h / 3)) n = fsi__d3_add(n, fsi__fr_normal_of(m, h / 3));
        h = m->twin[fsi__fr_before(h)];
    } while (h != m->star[v]);
    n = fsi__fr_along_walls(m->flags[v], n);
    return fsi__d3_norm(n) > fsi__fr_tiny(m) ? fsi__d3_unit(n) : fsi__d3_zero();
}

static void fsi__frt_normal_task(void *arg, int chunk, int begin, int end)
{
    const fsi__frt_job *job = (const fsi__frt_job *)arg;
    const fsi__fr_mesh *m = job->m;
    int v;
    (void)chunk;
    for (v = begin; v < end; v++)
        if (m->star[v] >= 0) job->t->normal[v] = fsi__d3_real(fsi__frt_free_normal(m, v));
}

/* Bounds of a cell, then those of its neighbours. */
static void fsi__frt_widen_task(void *arg, int chunk, int begin, int end)
{
    const fsi__frt_job *job = (const fsi__frt_job *)arg;
    fsi__frt *t = job->t;
    int c, i, axis;
    (void)chunk;
    for (c = begin; c < end; c++) {
        fsi__frt_cone *p = &t->cone[c];
        if (!p->used) continue;
        memcpy(p->wide_lo, p->lo, sizeof p->lo);
        memcpy(p->wide_hi, p->hi, sizeof p->hi);
        for (i = job->m->k == 3 ? 0 : 9; i < (job->m->k == 3 ? 27 : 18); i++) {
            const fsi__frt_cone *q = fsi__frt_cone_at(t, p->at[0] + i % 3 - 1, p->at[1] + i / 3 % 3 - 1,
                p->at[2] + i / 9 - 1);
            for (axis = 0; axis < 3 && q->used; axis++) {
                p->wide_lo[axis] = q->lo[axis] < p->wide_lo[axis] ? q->lo[axis] : p->wide_lo[axis];
                p->wide_hi[axis] = q->hi[axis] > p->wide_hi[axis] ? q->hi[axis] : p->wide_hi[axis];
            }
        }
    }
}

/* Can a normal around a vertex face its own? Those of elements differ from those of their vertices: a wider angle. */
static int fsi__frt_may_face(const fsi__frt_job *job, int v)
{
    const fsi__frt_cone *p;
    double least = 0;
    int axis;
    if (job->m->star[v] < 0 || job->m->flags[v] & FSI__FR_FIXED) return 0;
    p = fsi__frt_cone_of(job->t, job->m, v);
    for (axis = 0; axis < 3; axis++) {
        const double n = (double)fsi__axis(job->t->normal[v], axis);
        least += n * (n > 0 ? p->wide_lo[axis] : p->wide_hi[axis]) / 127;
    }
    return least < FSI__FRT_FACING + 0.4;
}

/* hit: -2 where it can, else -1. */
static void fsi__frt_face_task(void *arg, int chunk, int begin, int end)
{
    const fsi__frt_job *job = (const fsi__frt_job *)arg;
    int v;
    (void)chunk;
    for (v = begin; v < end; v++) job->t->hit[v] = -1 - fsi__frt_may_face(job, v);
}
static int fsi__frt_may_hit(const void *arg, int v) { return ((const fsi__frt *)arg)->hit[v] == -2; }

/* Normals of vertices, and their bounds by cells. *found: vertices that another may face. */
static fsi_status fsi__frt_bound_normals(fsi__frt *t, fsi__fr_mesh *m, int *found, const char *fn)
{
    fsi__frt_job job;
    int v, axis;
    job.t = t;
    job.m = m;
    for (t->cones = 64; t->cones < m->nv + 32;) t->cones *= 2;
    FSI__FRT_ROOM(cone, 0, cone_room, t->cones);
    memset(t->cone, 0, (size_t)t->cones * sizeof *t->cone);
    fsi__parallel_work(m->context, m->nv, 1024, 60.0 * m->nv, fsi__frt_normal_task, &job);

    /* Each to its cell. */
    for (v = 0; v < m->nv; v++) {
        fsi__frt_cone *p = m->star[v] >= 0 ? fsi__frt_cone_of(t, m, v) : NULL;
        for (axis = 0; axis < 3 && p; axis++) {
            const double n = 127 * (double)fsi__axis(t->normal[v], axis);
            const signed char lo = (signed char)floor(n), hi = (signed char)ceil(n);
            p->lo[axis] = p->used && p->lo[axis] < lo ? p->lo[axis] : lo;
            p->hi[axis] = p->used && p->hi[axis] > hi ? p->hi[axis] : hi;
        }
        if (!p || p->used) continue;
        p->used = 1;
        fsi__frt_cone_cell(t, m, v, p->at);
    }
    fsi__parallel_work(m->context, t->cones, 1024, 40.0 * t->cones, fsi__frt_widen_task, &job);
    fsi__parallel_work(m->context, m->nv, 1024, 40.0 * m->nv, fsi__frt_face_task, &job);
    *found = fsi__count_where(m->context, m->nv, fsi__frt_may_hit, t, &v);
    return FSI_OK;
}

/* The element nearest to vertex v, nearer than `reach`, that faces its normal n; -1: none. With a patch, what it takes
   out does not count. */
static int fsi__frt_facing(const fsi__frt *t, const fsi__fr_mesh *m, int v, fsi__d3 n, double reach, int patch)
{
    double best = reach;
    int i, found[FSI__FR_NEAR], hit = -1;
    const int count = fsi__fr_near(m, m->x[v], reach, found);
    for (i = 0; i < count; i++) {
        const int e = found[i], *c = m->corner + m->k * e;
        const fsi__d3 o = fsi__fr_along_walls(m->flags[v], fsi__fr_normal_of(m, e));
        fsi__d3 p;
        double apart;
        if (c[0] == v || c[1] == v || c[m->k - 1] == v || fsi__frt_is_wetted(m, e)) continue;
        if (patch && e < t->first_element && t->gone[e]) continue;
        if (!(fsi__d3_dot(n, o) < FSI__FRT_FACING * fsi__d3_norm(o))) continue;
        p = fsi__frt_foot(m, e, m->x[v]);
        apart = fsi__d3_norm(p);
        if (!(apart < best || (apart <= best && e < hit))) continue;
        if (fabs(fsi__d3_dot(p, n)) < 0.5 * apart && apart > 0.1 * reach) continue; /* beside it */
        best = apart;
        hit = e;
    }
    return hit;
}

static void fsi__frt_look_task(void *arg, int chunk, int begin, int end)
{
    const fsi__frt_job *job = (const fsi__frt_job *)arg;
    fsi__frt *t = job->t;
    const double reach = fsi__frt_cell(t);
    int v;
    (void)chunk;
    for (v = begin; v < end; v++)
        if (t->hit[v] == -2) t->hit[v] = fsi__frt_facing(t, job->m, v, fsi__d3_of(t->normal[v]), reach, 0);
}

static fsi_status fsi__frt_reserve_vertices(fsi__frt *t, const fsi__fr_mesh *m, const char *fn)
{
    const fsi__column columns[] = {
        { (void **)(void *)&t->hit, sizeof *t->hit }, { (void **)(void *)&t->start, sizeof *t->start },
        { (void **)(void *)&t->role, sizeof *t->role }, { (void **)(void *)&t->normal, sizeof *t->normal }
    };
    const int rows = t->vertex_room;
    return m->nv > rows ? fsi__room(m->context, columns, 4, rows, &t->vertex_room, m->nv, fn) : FSI_OK;
}

static fsi_status fsi__frt_find_pairs(fsi__frt *t, fsi__fr_mesh *m, const char *fn)
{
    fsi__frt_job job;
    int v, found;
    t->pair_count = 0;
    FSI__TRY(fsi__frt_reserve_vertices(t, m, fn));
    FSI__TRY(fsi__frt_bound_normals(t, m, &found, fn));
    if (found == 0) return FSI_OK;
    memset(m->fan, 0, (size_t)m->nv);
    memset(m->mark, 0, (size_t)m->nt);
    FSI__TRY(fsi__fr_make_hash(m, fmax(FSI__FRT_LONGEST * m->length, 1.8 * fsi__frt_cell(t)), 0, fn));
    job.t = t;
    job.m = m;
    fsi__parallel_work(m->context, m->nv, 256, 300.0 * m->nv, fsi__frt_look_task, &job);

    /* What each has found. */
    for (v = 0; v < m->nv; v++) {
        fsi__frt_pair *p;
        if (t->hit[v] < 0) continue;
        FSI__FRT_ROOM(pair, t->pair_count, pair_room, t->pair_count + 1);
        p = &t->pair[t->pair_count++];
        p->vertex = v;
        p->element = t->hit[v];
        p->foot = fsi_v3_add(m->x[v], fsi__d3_real(fsi__frt_foot(m, p->element, m->x[v])));
        p->gap = fsi__d3_dot(fsi__d3_diff(p->foot, m->x[v]), fsi__d3_of(t->normal[v])) > 0;
        p->window = -1;
    }
    return FSI_OK;
}

/* The cell of a place along an axis; places are at most 2^30 cells away. */
static int fsi__frt_index(const fsi__frt *t, fsi_vec3 x, int axis)
{
    return (int)floor((double)fsi__axis(x, axis) / fsi__frt_cell(t) - t->origin[axis]);
}

/* Cells from one place to another, and `margin` around. */
static fsi__frt_window fsi__frt_box(const fsi__frt *t, int dim, fsi_vec3 lo, fsi_vec3 hi, int margin)
{
    fsi__frt_window w;
    int axis;
    memset(&w, 0, sizeof w);
    w.hi[2] = 1;
    for (axis = 0; axis < dim; axis++) {
        w.lo[axis] = fsi__frt_index(t, lo, axis) - margin;
        w.hi[axis] = fsi__frt_index(t, hi, axis) + 1 + margin;
    }
    return w;
}

static int fsi__frt_overlap(const fsi__frt_window *a, const fsi__frt_window *b)
{
    int axis, meet = 1;
    for (axis = 0; axis < 3; axis++) meet &= a->lo[axis] < b->hi[axis] && b->lo[axis] < a->hi[axis];
    return meet;
}

static void fsi__frt_join(fsi__frt_window *a, const fsi__frt_window *b)
{
    int axis;
    for (axis = 0; axis < 3; axis++) {
        a->lo[axis] = a->lo[axis] < b->lo[axis] ? a->lo[axis] : b->lo[axis];
        a->hi[axis] = a->hi[axis] > b->hi[axis] ? a->hi[axis] : b->hi[axis];
    }
}

/* The first vertex of those that a vertex hangs together with; role: an earlier one, its own number at the first. */
static int fsi__frt_first_of(int *role, int v)
{
    while (role[v] != v) v = role[v] = role[role[v]];
    return v;
}
static void fsi__frt_tie(int *role, int a, int b)
{
    a = fsi__frt_first_of(role, a);
    b = fsi__frt_first_of(role, b);
    if (a < b) role[b] = a;
    else role[a] = b;
}

/* Vertices of pairs hang together along edges, and with the elements that they face. */
static void fsi__frt_tie_pairs(fsi__frt *t, const fsi__fr_mesh *m)
{
    int p, v, e, i;
    for (v = 0; v < m->nv; v++) t->role[v] = -1;
    for (p = 0; p < t->pair_count; p++)
        for (i = -1; i < m->k; i++) {
            v = i < 0 ? t->pair[p].vertex : m->corner[m->k * t->pair[p].element + i];
            t->role[v] = v;
        }
    for (p = 0; p < t->pair_count; p++)
        for (i = 0; i < m->k; i++) fsi__frt_tie(t->role, t->pair[p].vertex, m->corner[m->k * t->pair[p].element + i]);
    for (e = 0; e < m->nt; e++)
        for (i = 0; i < m->k && m->corner[m->k * e] >= 0; i++) {
            const int a = m->corner[m->k * e + i], b = m->corner[m->k * e + (i + 1) % m->k];
            if (t->role[a] >= 0 && t->role[b] >= 0) fsi__frt_tie(t->role, a, b);
        }
}

/* A window for all pairs that hang together, in the order of their first. start: of vertices: their window. */
static fsi_status fsi__frt_make_windows(fsi__frt *t, fsi__fr_mesh *m, const char *fn)
{
    int p, beyond = 0;
    t->window_count = 0;
    if (t->pair_count == 0) return FSI_OK;
    fsi__frt_tie_pairs(t, m);
    for (p = 0; p < t->pair_count; p++) t->start[fsi__frt_first_of(t->role, t->pair[p].vertex)] = -1;
    for (p = 0; p < t->pair_count; p++) {
        const fsi_vec3 x = m->x[t->pair[p].vertex], y = t->pair[p].foot;
        int *at = &t->start[fsi__frt_first_of(t->role, t->pair[p].vertex)];
        fsi__frt_window w;
        if (fmax(fabs((double)x.x), fmax(fabs((double)x.y), fabs((double)x.z))) > 1e9 * fsi__frt_cell(t)) {
            beyond = 1; /* the lattice ends before */
            continue;
        }
        w = fsi__frt_box(t, m->k, fsi_v3_min(x, y), fsi_v3_max(x, y), FSI__FRT_MARGIN);
        if (*at < 0) {
            FSI__FRT_ROOM(window, t->window_count, window_room, t->window_count + 1);
            *at = t->window_count;
            t->window[t->window_count++] = w;
        }
        fsi__frt_join(&t->window[*at], &w);
        t->pair[p].window = *at;
    }
    t->failed += beyond;
    return FSI_OK;
}

/* ---- a window: nodes --------------------------------------------------------------------------------------------- */

static int fsi__frt_at(const fsi__frt *t, int i, int j, int k)
{
    return i * t->step[0] + j * t->step[1] + k * t->step[2];
}
/* The flag of vertices on the wall of a window. */
static uint32_t fsi__frt_wall_flag(const fsi__frt *t)
{
    return t->wall_axis < 0 ? 0 : 1u << (2 * t->wall_axis + t->wall_side);
}

/* Is a node beyond the wall? */
static int fsi__frt_is_beyond(const fsi__frt *t, const int *node)
{
    double from;
    if (t->wall_axis < 0) return 0;
    from = t->at.lo[t->wall_axis] + t->origin[t->wall_axis] + node[t->wall_axis] - t->wall / fsi__frt_cell(t);
    return t->wall_side ? from > 0 : from < 0;
}
/* From a node to the corner c (bits x, y, z) of its cell. */
static int fsi__frt_to(const fsi__frt *t, int c) { return fsi__frt_at(t, c & 1, c >> 1 & 1, c >> 2); }

/* The elements whose shadow along x meets the window, with their vertices. */
static fsi_status fsi__frt_take_sub(fsi__frt *t, fsi__fr_mesh *m, const char *fn)
{
    const double h = fsi__frt_cell(t);
    const fsi__column columns[] = {
        { (void **)(void *)&t->sub_element, sizeof *t->sub_element },
        { (void **)(void *)&t->sub_corner, (size_t)m->k * sizeof *t->sub_corner }
    };
    const fsi__column vertex[] = {
        { (void **)(void *)&t->sub_vertex, sizeof *t->sub_vertex }, { (void **)(void *)&t->sub_x, sizeof *t->sub_x }
    };
    int e, i, axis, count = 0, vertices = 0;
    t->sub.dim = m->k; /* also for what frees */
    for (i = 0; i < m->nv; i++) t->role[i] = -1;
    for (e = 0; e < m->nt; e++) {
        const int *c = m->corner + m->k * e;
        int meets = c[0] >= 0;
        for (axis = 1; axis < m->k && meets; axis++) {
            const double a = (double)fsi__axis(m->x[c[0]], axis), b = (double)fsi__axis(m->x[c[1]], axis),
                d = (double)fsi__axis(m->x[c[m->k - 1]], axis);
            const double lo = (t->at.lo[axis] + t->origin[axis] - 0.01) * h,
                hi = (t->at.hi[axis] + t->origin[axis] + 0.01) * h;
            meets = (a <= hi || b <= hi || d <= hi) && (a >= lo || b >= lo || d >= lo);
        }
        if (!meets) continue;
        if (count == t->sub_room) FSI__TRY(fsi__room(m->context, columns, 2, count, &t->sub_room, count + 1, fn));
        if (vertices + 3 > t->sub_vertex_room)
            FSI__TRY(fsi__room(m->context, vertex, 2, vertices, &t->sub_vertex_room, vertices + 3, fn));
        t->sub_element[count] = e;
        for (i = 0; i < m->k; i++) {
            if (t->role[c[i]] < 0) {
                t->role[c[i]] = vertices;
                t->sub_vertex[vertices] = c[i];
                t->sub_x[vertices++] = m->x[c[i]];
            }
            t->sub_corner[m->k * count + i] = t->role[c[i]];
        }
        count++;
    }
    t->sub.vertex_count = vertices;
    t->sub.element_count = count;
    t->sub.position = t->sub_x;
    t->sub.elements = t->sub_corner;
    return FSI_OK;
}

/* How often nodes are inside: up along each line, each crossing leaves or enters. */
static void fsi__frt_wind(fsi__frt *t)
{
    const fsi_front_lines *l = t->lines;
    int line, i;
    for (line = 0; line < t->n[1] * t->n[2]; line++) {
        int w = 0, r = l->begin[0][line];
        for (i = 0; i < t->n[0]; i++) {
            for (; r < l->begin[0][line + 1] && l->crossing[r].cell < i; r++)
                w -= fsi__frl_direction(l, &t->sub, l->crossing[r].element, 0);
            t->winding[line * t->n[0] + i] = (signed char)(w > 100 ? 100 : w < -100 ? -100 : w);
        }
    }
}

/* All lines through the nodes; an error names the vertex or element of the front, not that of what was taken of it. */
static fsi_status fsi__frt_cross(fsi__frt *t, fsi__fr_mesh *m, const char *fn)
{
    const fsi_status status = fsi__frl_cross(t->lines, &t->sub, fn);
    const long long vertex = m->context->error.element;
    if (status != FSI_ERROR_LIMIT || vertex < 0 || vertex >= t->sub.vertex_count) return status;
    return fsi__fail(m->context, status, fn, t->sub_vertex[vertex], 0,
        "a place where sheets are close is more than 2^30 cells from vertex %d", t->sub_vertex[vertex]);
}

/* Nodes of the window, and all lines through them. *fits 0: it is too large. */
static fsi_status fsi__frt_sample(fsi__frt *t, fsi__fr_mesh *m, int *fits, const char *fn)
{
    const double h = fsi__frt_cell(t);
    const fsi__column columns[] = {
        { (void **)(void *)&t->base, 1 }, { (void **)(void *)&t->cell, 1 }, { (void **)(void *)&t->node, 1 },
        { (void **)(void *)&t->winding, 1 }, { (void **)(void *)&t->edge, 3 * sizeof *t->edge }
    };
    fsi_front_lines_desc d = fsi_front_default_lines_desc();
    double nodes = 1;
    int axis, count = 1;
    *fits = 0;
    for (axis = 0; axis < 3; axis++) {
        t->n[axis] = axis < m->k ? t->at.hi[axis] - t->at.lo[axis] + 1 : 1;
        t->step[axis] = count;
        nodes *= t->n[axis];
        if (!(nodes <= FSI__FRT_MOST)) return FSI_OK;
        count *= t->n[axis];
        d.n[axis] = t->n[axis];
    }
    if (count > t->node_room) FSI__TRY(fsi__room(m->context, columns, 5, 0, &t->node_room, count, fn));
    FSI__TRY(fsi__frt_take_sub(t, m, fn));

    /* Nodes are the centres of cells of these lines. */
    d.context = m->context;
    d.dim = m->k;
    d.dx = (fsi_real)h;
    d.origin = fsi_v3((fsi_real)((t->at.lo[0] + t->origin[0] - 0.5) * h),
        (fsi_real)((t->at.lo[1] + t->origin[1] - 0.5) * h),
        m->k == 3 ? (fsi_real)((t->at.lo[2] + t->origin[2] - 0.5) * h) : 0);
    fsi_front_destroy_lines(t->lines);
    t->lines = NULL;
    FSI__TRY(fsi_front_create_lines(&t->lines, &d));
    FSI__TRY(fsi__frt_cross(t, m, fn));
    fsi__frt_wind(t);
    *fits = 1;
    return FSI_OK;
}

/* ---- cells to be resampled --------------------------------------------------------------------------------------- */

/* Marks cells of a box, as far as they are in the window. */
static void fsi__frt_mark_box(fsi__frt *t, fsi__frt_window w)
{
    int i, j, k, axis;
    for (axis = 0; axis < 3; axis++) {
        const int most = axis == 2 && t->n[2] == 1 ? 1 : t->n[axis] - 1;
        w.lo[axis] = w.lo[axis] - t->at.lo[axis];
        w.hi[axis] = w.hi[axis] - t->at.lo[axis];
        w.lo[axis] = w.lo[axis] < 0 ? 0 : w.lo[axis];
        w.hi[axis] = w.hi[axis] > most ? most : w.hi[axis];
    }
    for (k = w.lo[2]; k < w.hi[2]; k++)
        for (j = w.lo[1]; j < w.hi[1]; j++)
            for (i = w.lo[0]; i < w.hi[0]; i++) t->base[fsi__frt_at(t, i, j, k)] = 1;
}

/* The cells that an element's box meets. */
static fsi__frt_window fsi__frt_box_of(const fsi__frt *t, const fsi__fr_mesh *m, int e)
{
    const int *c = m->corner + m->k * e;
    const fsi_vec3 gap = fsi_v3_scale(fsi_v3(1, 1, 1), (fsi_real)(1e-3 * fsi__frt_cell(t)));
    const fsi_vec3 lo = fsi_v3_min(m->x[c[0]], fsi_v3_min(m->x[c[1]], m->x[c[m->k - 1]])),
        hi = fsi_v3_max(m->x[c[0]], fsi_v3_max(m->x[c[1]], m->x[c[m->k - 1]]));
    return fsi__frt_box(t, m->k, fsi_v3_sub(lo, gap), fsi_v3_add(hi, gap), 0);
}

static void fsi__frt_mark(fsi__frt *t, const fsi__fr_mesh *m, int window, int whole)
{
    int p, s;
    memset(t->base, 0, (size_t)t->n[0] * (size_t)t->n[1] * (size_t)t->n[2]);
    for (p = 0; p < t->pair_count; p++) {
        const fsi__frt_pair *q = &t->pair[p];
        const fsi_vec3 x = m->x[q->vertex];
        if (q->window != window) continue;
        fsi__frt_mark_box(t, fsi__frt_box(t, m->k, fsi_v3_min(x, q->foot), fsi_v3_max(x, q->foot), t->wall_axis >= 0));
    }
    for (s = 0; s < t->sub.element_count && whole; s++)
        if (t->concerned[m->piece[t->sub_element[s]]]) fsi__frt_mark_box(t, fsi__frt_box_of(t, m, t->sub_element[s]));
}

/* A ring of cells around those that are marked. */
static void fsi__frt_grow(fsi__frt *t)
{
    int axis, i, j, k, at;
    for (axis = 0; axis < (t->n[2] == 1 ? 2 : 3); axis++) {
        for (k = 0; k < t->n[2]; k++)
            for (j = 0; j < t->n[1]; j++)
                for (i = 0; i < t->n[0]; i++) {
                    const int here = axis == 0 ? i : axis == 1 ? j : k;
                    at = fsi__frt_at(t, i, j, k);
                    if (!(t->cell[at] & 1)) continue;
                    if (here > 0) t->cell[at - t->step[axis]] |= 2;
                    if (here < t->n[axis] - 2) t->cell[at + t->step[axis]] |= 2;
                }
        for (at = 0; at < t->n[0] * t->n[1] * t->n[2]; at++) t->cell[at] = t->cell[at] != 0;
    }
}

/* Of the cells around a node (bits x, y, z), are those of the set connected through faces? */
static int fsi__frt_connected(int set, int cells)
{
    int reached = set & -set, before = 0, c, axis;
    while (reached != before) {
        before = reached;
        for (c = 0; c < cells; c++)
            for (axis = 1; axis < cells && reached >> c & 1; axis *= 2) reached |= set & 1 << (c ^ axis);
    }
    return reached == set;
}

/* Marks cells until the boundary of those marked is a surface (2D: a curve) without vertices or edges where two parts
   of it touch. 0: it reaches the end of the window. */
static int fsi__frt_tidy(fsi__frt *t, int dim)
{
    const int cells = 1 << dim, all = (1 << cells) - 1;
    int i, j, k, c, changed = 1;
    while (changed) {
        changed = 0;
        for (k = dim == 3; k < (dim == 3 ? t->n[2] - 1 : 1); k++)
            for (j = 1; j < t->n[1] - 1; j++)
                for (i = 1; i < t->n[0] - 1; i++) {
                    const int at = fsi__frt_at(t, i, j, k);
                    int set = 0;
                    for (c = 0; c < cells; c++)
                        set |= t->cell[at - fsi__frt_to(t, c)] << c;
                    if (set == 0 || set == all) continue;
                    if (fsi__frt_connected(set, cells) && fsi__frt_connected(all & ~set, cells)) continue;
                    for (c = 0; c < cells; c++)
                        t->cell[at - fsi__frt_to(t, c)] = 1;
                    changed = 1;
                }
    }

    /* A cell at the end of the window? */
    for (k = 0; k < t->n[2]; k++)
        for (j = 0; j < t->n[1]; j++)
            for (i = 0; i < t->n[0]; i++)
                if (t->cell[fsi__frt_at(t, i, j, k)] && (i == 0 || j == 0 || i >= t->n[0] - 2 || j >= t->n[1] - 2
                    || (dim == 3 && (k == 0 || k >= t->n[2] - 2)))) return 0;
    return 1;
}

/* Cells around a node that are marked: all, or one is not. */
static int fsi__frt_is_inner(const fsi__frt *t, int dim, int i, int j, int k)
{
    int c, inner = i > 0 && j > 0 && (dim == 2 || k > 0);
    for (c = 0; c < 1 << dim && inner; c++) inner &= t->cell[fsi__frt_at(t, i, j, k) - fsi__frt_to(t, c)];
    return inner;
}

/* Does the edge from a node along an axis meet the wall? What is on the other side is the mirror image. */
static int fsi__frt_is_at_wall(const fsi__frt *t, const int *node, int axis)
{
    int next[3];
    if (axis != t->wall_axis) return 0;
    memcpy(next, node, sizeof next);
    next[axis]++;
    return fsi__frt_is_beyond(t, node) != fsi__frt_is_beyond(t, next);
}

/* The crossing next to a node, up or down along an axis, at most 4 cells away. *distance: in cells. */
static const fsi_front_crossing *fsi__frt_next_crossing(const fsi__frt *t, const int *node, int axis, int up,
    double *distance)
{
    int at[3], s;
    memcpy(at, node, sizeof at);
    for (s = 0; s < 4; s++) {
        const fsi_front_crossing *c;
        at[axis] = up ? node[axis] + s : node[axis] - 1 - s;
        if (at[axis] < 0 || at[axis] >= t->n[axis] - 1 || fsi__frt_is_at_wall(t, at, axis)) return NULL;
        c = fsi_front_first_crossing(t->lines, axis, at[0], at[1], at[2]);
        if (!c) continue;
        c += up ? 0 : c->count - 1;
        *distance = up ? s + (double)c->theta : s + 1 - (double)c->theta;
        return c;
    }
    return NULL;
}

/* Is a node in a gap (sign 1), or in a sheet (-1), that is thin: the surface is left and entered on either side along
   an axis? The distance along it, times the cosine with the mean normal. */
static int fsi__frt_is_thin(const fsi__frt *t, const fsi__fr_mesh *m, int i, int j, int k, int sign)
{
    const int node[3] = { i, j, k };
    int axis;
    for (axis = 0; axis < m->k; axis++) {
        double above = 0, below = 0, thick;
        const fsi_front_crossing *up = fsi__frt_next_crossing(t, node, axis, 1, &above),
            *down = fsi__frt_next_crossing(t, node, axis, 0, &below);
        fsi__d3 n, o;
        if (!up || !down) continue;
        if (fsi__frl_direction(t->lines, &t->sub, down->element, axis) != sign
            || fsi__frl_direction(t->lines, &t->sub, up->element, axis) != -sign) continue;
        n = fsi__d3_unit(fsi__fr_normal_of(m, t->sub_element[down->element]));
        o = fsi__d3_unit(fsi__fr_normal_of(m, t->sub_element[up->element]));
        if (fsi__d3_dot(n, o) > FSI__FRT_FACING) continue;
        thick = (below + above) * fabs(fsi__d3_axis(fsi__d3_sub(n, o), axis)) / 2;
        if (thick < 1) return 1;
    }
    return 0;
}

/* Are there places beside marked cells that are inside twice, or less than once? Along the lines, between nodes. */
static int fsi__frt_overlaps(const fsi__frt *t)
{
    const fsi_front_lines *l = t->lines;
    int axis, line, r, w = 0;
    for (axis = 0; axis < l->dim; axis++) {
        const int u = fsi__frl_u(axis), v = fsi__frl_v(axis);
        for (line = 0; line < t->n[u] * t->n[v]; line++)
            for (r = l->begin[axis][line]; r < l->begin[axis][line + 1]; r++) {
                const fsi_front_crossing *c = &l->crossing[r];
                const int at = line % t->n[u] * t->step[u] + line / t->n[u] * t->step[v] + c->cell * t->step[axis];
                if (c->cell < 0 || c->cell >= t->n[axis] - 1 || !t->cell[at]) continue;
                if (r == l->begin[axis][line] || c[-1].cell != c->cell) w = t->winding[at];
                w -= fsi__frl_direction(l, &t->sub, c->element, axis);
                if (w < 0 || w > 1) return 1;
            }
    }
    return 0;
}

/* The crossing on an edge of the lattice where the surface goes from the end inside to the one outside; where the ends
   are not what their winding numbers say, the first. NULL: there is none. */
static const fsi_front_crossing *fsi__frt_crossing(const fsi__frt *t, const int *at, int axis)
{
    const fsi_front_crossing *c = fsi_front_first_crossing(t->lines, axis, at[0], at[1], at[2]);
    const int low = fsi__frt_at(t, at[0], at[1], at[2]);
    int i, w = t->winding[low];
    for (i = 0; c && i < c->count; i++) {
        const int then = w - fsi__frl_direction(t->lines, &t->sub, c[i].element, axis);
        if ((w > 0) != (then > 0) && (then > 0) == (t->node[low + t->step[axis]] != 0)) return &c[i];
        w = then;
    }
    return c;
}

/* Where the new surface crosses this edge, in its length, whose ends are on different sides. */
static double fsi__frt_theta(const fsi_front_crossing *c)
{
    const double theta = c ? (double)c->theta : 0.5;
    return theta < FSI__FRT_NEAREST ? FSI__FRT_NEAREST : theta > 1 - FSI__FRT_NEAREST ? 1 - FSI__FRT_NEAREST : theta;
}

/* Is a node next to the wall? */
static int fsi__frt_is_next_to_wall(const fsi__frt *t, const int *node)
{
    int below[3];
    memcpy(below, node, sizeof below);
    if (t->wall_axis >= 0) below[t->wall_axis] += t->wall_side ? 1 : -1;
    return fsi__frt_is_beyond(t, below);
}

/* How far the new surface is from a node along an axis, in cells; 3 where that is more than 2. On a wall liquid ends
   below the last node that is inside. */
static double fsi__frt_made_distance(const fsi__frt *t, const int *node, int axis, int up)
{
    const int side = t->node[fsi__frt_at(t, node[0], node[1], node[2])];
    int at[3], s;
    memcpy(at, node, sizeof at);
    for (s = 0; s < 2; s++) {
        double theta;
        at[axis] = up ? node[axis] + s : node[axis] - 1 - s;
        if (at[axis] < 0 || at[axis] >= t->n[axis] - 1 || fsi__frt_is_at_wall(t, at, axis)) return 3;
        if (t->node[fsi__frt_at(t, at[0], at[1], at[2]) + (up ? t->step[axis] : 0)] == side) continue;
        if (side && fsi__frt_is_next_to_wall(t, node)) return s;
        theta = fsi__frt_theta(fsi__frt_crossing(t, at, axis));
        return up ? s + theta : s + 1 - theta;
    }
    return 3;
}

/* Is what is made around a node a sheet or a gap that is too thin? One of thickness T whose normal is n is T/|n_i|
   wide along axis i, so that 1/T^2 is the sum of their inverse squares; threads likewise. */
static int fsi__frt_is_made_thin(const fsi__frt *t, int dim, const int *node)
{
    double sum = 0;
    int axis;
    for (axis = 0; axis < dim; axis++) {
        const double wide = fsi__frt_made_distance(t, node, axis, 1) + fsi__frt_made_distance(t, node, axis, 0);
        if (wide < 3) sum += 1 / (wide * wide);
    }
    return sum * FSI__FRT_MADE * FSI__FRT_MADE > 1;
}

/* Nodes change sides as long as what is made there is thin. */
static void fsi__frt_widen_made(fsi__frt *t, int dim)
{
    int round, node[3], changed = 1;
    for (round = 0; round < 4 && changed; round++)
        for (changed = 0, node[2] = 0; node[2] < t->n[2]; node[2]++)
            for (node[1] = 0; node[1] < t->n[1]; node[1]++)
                for (node[0] = 0; node[0] < t->n[0]; node[0]++) {
                    if (!t->cell[fsi__frt_at(t, node[0], node[1], node[2])] || fsi__frt_is_beyond(t, node)
                        || !fsi__frt_is_inner(t, dim, node[0], node[1], node[2])
                        || !fsi__frt_is_made_thin(t, dim, node)) continue;
                    t->node[fsi__frt_at(t, node[0], node[1], node[2])] ^= 1;
                    changed = 1;
                }
}

/* Nodes around the middle of a pair change sides. */
static void fsi__frt_force_around(fsi__frt *t, const fsi__fr_mesh *m, const fsi__frt_pair *q)
{
    const fsi_vec3 x = fsi_v3_scale(fsi_v3_add(m->x[q->vertex], q->foot), (fsi_real)0.5);
    int lo[3] = { 0, 0, 0 }, hi[3] = { 0, 0, 0 }, out[2][3] = { { 0, 0, 0 }, { 0, 0, 0 } }, i, j, k, axis;
    for (axis = 0; axis < m->k; axis++) {
        const double c = (double)fsi__axis(x, axis) / fsi__frt_cell(t) - t->origin[axis] - t->at.lo[axis];
        lo[axis] = (int)floor(c);
        hi[axis] = lo[axis] + 1;
    }

    /* At a wall a bridge reaches down to it, and is as wide as its nodes are apart, as the line runs from node to node
       there: one more on each side. */
    for (axis = 0; axis < m->k; axis++) {
        out[0][axis] = lo[axis] - 1;
        out[1][axis] = hi[axis] + 1;
    }
    if (q->gap && (fsi__frt_is_beyond(t, out[0]) || fsi__frt_is_beyond(t, out[1]))) {
        memcpy(lo, out[0], sizeof lo);
        memcpy(hi, out[1], sizeof hi);
    }
    for (k = lo[2]; k <= hi[2]; k++)
        for (j = lo[1]; j <= hi[1]; j++)
            for (i = lo[0]; i <= hi[0]; i++) {
                const int node[3] = { i, j, k };
                if (fsi__frt_is_inner(t, m->k, i, j, k) && t->winding[fsi__frt_at(t, i, j, k)] == !q->gap
                    && !fsi__frt_is_beyond(t, node)) t->node[fsi__frt_at(t, i, j, k)] = (unsigned char)q->gap;
            }
}

/* Is a node inside? By its winding number, but for those in thin gaps and sheets. */
static void fsi__frt_force(fsi__frt *t, const fsi__fr_mesh *m, int window)
{
    const int overlaps = fsi__frt_overlaps(t);
    int i, j, k, p;
    for (k = 0; k < t->n[2]; k++)
        for (j = 0; j < t->n[1]; j++)
            for (i = 0; i < t->n[0]; i++) {
                const int at = fsi__frt_at(t, i, j, k), w = t->winding[at], node[3] = { i, j, k };
                t->node[at] = w > 0;
                if ((w == 0 || w == 1) && t->cell[at] && !fsi__frt_is_beyond(t, node)
                    && fsi__frt_is_inner(t, m->k, i, j, k)
                    && fsi__frt_is_thin(t, m, i, j, k, w == 0 ? 1 : -1)) t->node[at] = w == 0;
            }

    /* All nodes around the middle of a gap or sheet, so that what is made is wider than a cell. Where volumes overlap
       it looks like a sheet, and is none. */
    for (p = 0; p < t->pair_count; p++)
        if (t->pair[p].window == window && (t->pair[p].gap || !overlaps)) fsi__frt_force_around(t, m, &t->pair[p]);
    fsi__frt_widen_made(t, m->k);
}

/* ---- the new surface --------------------------------------------------------------------------------------------- */

/* Velocity, densities and flags of a new vertex, as weights of the corners of an element say. */
static void fsi__frt_interpolate(fsi__fr_mesh *m, int v, int e, const double *w)
{
    const int *c = m->corner + m->k * e;
    const size_t n = (size_t)m->attributes;
    fsi__d3 u = fsi__d3_zero();
    size_t j;
    int i;
    m->flags[v] = m->flags[c[0]] & m->flags[c[1]] & m->flags[c[m->k - 1]];
    for (j = 0; j < n; j++) m->a[(size_t)v * n + j] = 0;
    for (i = 0; i < m->k; i++) {
        const double area = fsi__fr_vertex_area(m, c[i]);
        u = fsi__d3_madd(u, w[i], fsi__d3_of(m->v[c[i]]));
        for (j = 0; j < n && area > fsi__fr_tiny(m); j++)
            m->a[(size_t)v * n + j] += (fsi_real)(w[i] * (double)m->a[(size_t)c[i] * n + j] / area);
    }
    m->v[v] = fsi__d3_real(u);
}

/* The pair of the window that is nearest to a place. */
static const fsi__frt_pair *fsi__frt_nearest_pair(const fsi__frt *t, const fsi__fr_mesh *m, int window, fsi_vec3 x)
{
    const fsi__frt_pair *best = NULL;
    double least = FSI__HUGE;
    int p;
    for (p = 0; p < t->pair_count; p++) {
        const double d = fsi__fr_length2(x, m->x[t->pair[p].vertex]);
        if (t->pair[p].window != window || !(d < least)) continue;
        least = d;
        best = &t->pair[p];
    }
    return best;
}

/* A vertex on the edge from a node along an axis. */
static fsi_status fsi__frt_make_vertex(fsi__frt *t, fsi__fr_mesh *m, int window, const int *at, int axis,
    const char *fn)
{
    const double h = fsi__frt_cell(t);
    const fsi_front_crossing *c = fsi__frt_crossing(t, at, axis);
    const int v = m->nv;
    const double theta = fsi__frt_theta(c);
    double x[3], w[3] = { 0, 0, 0 };
    fsi__frt_made *made;
    int i, e;
    FSI__TRY(fsi__fr_reserve(m, v + 1, m->nt, fn));
    FSI__FRT_ROOM(made, v - t->first_vertex, made_room, v + 1 - t->first_vertex);
    for (i = 0; i < 3; i++) 
        x[i] = i < m->k ? (t->at.lo[i] + t->origin[i] + at[i] + (i == axis ? theta : 0)) * h : 0;
    m->nv++;
    m->x[v] = fsi_v3((fsi_real)x[0], (fsi_real)x[1], (fsi_real)x[2]);
    m->id[v] = m->next_id++;
    m->star[v] = -1;
    m->fan[v] = 0;

    /* From the element that is crossed, or that of the nearest pair. */
    if (c) {
        e = t->sub_element[c->element];
        for (i = 0; i < m->k; i++) w[i] = (double)c->weight[i];
    } else {
        e = fsi__frt_nearest_pair(t, m, window, m->x[v])->element;
        for (i = 0; i < m->k; i++) w[i] = 1.0 / m->k;
    }
    fsi__frt_interpolate(m, v, e, w);
    m->flags[v] &= ~FSI__FR_WALLS;
    if (fsi__frt_is_at_wall(t, at, axis) && (!c || fsi__frt_is_wetted(m, e))) {
        m->flags[v] |= fsi__frt_wall_flag(t);
        x[axis] = t->wall;
        m->x[v] = fsi_v3((fsi_real)x[0], (fsi_real)x[1], (fsi_real)x[2]);
    }
    made = &t->made[v - t->first_vertex];
    made->piece = m->piece[e];
    made->normal = fsi__d3_unit(fsi__fr_normal_of(m, e));
    t->edge[3 * fsi__frt_at(t, at[0], at[1], at[2]) + axis] = v;
    return FSI_OK;
}

static fsi_status fsi__frt_add_element(fsi__frt *t, fsi__fr_mesh *m, int a, int b, int c, const char *fn)
{
    const int e = m->nt, first = a >= t->first_vertex ? a : b >= t->first_vertex ? b : c;
    FSI__TRY(fsi__fr_reserve(m, m->nv, e + 1, fn));
    m->nt++;
    m->corner[m->k * e] = a;
    m->corner[m->k * e + 1] = b;
    m->corner[m->k * e + m->k - 1] = m->k == 3 ? c : b;
    m->piece[e] = t->made[first - t->first_vertex].piece;
    m->mark[e] = 0;
    m->bucket[e] = -1;
    return FSI_OK;
}

static void fsi__frt_make_cases(fsi__frt *t, int dim)
{
    int c;
    if (t->cases_dim == dim) return;
    for (c = 0; c < 1 << (1 << dim); c++) fsi__sf_make_case(t->cases, dim, c);
    t->cases_dim = dim;
}

/* The surface through the marked cells. */
static fsi_status fsi__frt_march(fsi__frt *t, fsi__fr_mesh *m, int window, const char *fn)
{
    const int nodes = t->n[0] * t->n[1] * t->n[2];
    int at[3], low[3], c, e, i, v[3];
    fsi__frt_make_cases(t, m->k);
    for (i = 0; i < 3 * nodes; i++) t->edge[i] = -1;
    t->first_vertex = m->nv;
    t->first_element = m->nt;

    /* Cell by cell. */
    for (at[2] = 0; at[2] < t->n[2]; at[2]++)
        for (at[1] = 0; at[1] < t->n[1]; at[1]++)
            for (at[0] = 0; at[0] < t->n[0]; at[0]++) {
                const int here = fsi__frt_at(t, at[0], at[1], at[2]);
                const unsigned char *edges;
                int inside = 0;
                if (!t->cell[here]) continue;
                for (c = 0; c < 1 << m->k; c++)
                    inside |= (t->node[here + fsi__frt_to(t, c)] ^ t->joins) << c;
                edges = t->cases[inside];
                for (e = 0; e < edges[0]; e++) {
                    const int edge = edges[1 + (t->joins ? edges[0] - 1 - e : e)], corner = fsi__sf_edge_low(edge),
                        axis = edge >> 2;
                    for (i = 0; i < 3; i++) low[i] = at[i] + (corner >> i & 1);
                    if (t->edge[3 * fsi__frt_at(t, low[0], low[1], low[2]) + axis] < 0)
                        FSI__TRY(fsi__frt_make_vertex(t, m, window, low, axis, fn));
                    v[e % m->k] = t->edge[3 * fsi__frt_at(t, low[0], low[1], low[2]) + axis];
                    if (e % m->k == m->k - 1) FSI__TRY(fsi__frt_add_element(t, m, v[0], v[1], v[m->k - 1], fn));
                }
            }
    return FSI_OK;
}

/* ---- what is cut out --------------------------------------------------------------------------------------------- */

static fsi_status fsi__frt_remove(fsi__frt *t, const fsi__fr_mesh *m, int e, const char *fn)
{
    if (t->gone[e]) return FSI_OK;
    FSI__FRT_ROOM(list, t->list_count, list_room, t->list_count + 1);
    t->gone[e] = 1;
    t->list[t->list_count++] = e;
    return FSI_OK;
}

/* Does a plane along an edge d of a triangle and an axis part the triangle from a cell? corner: from the cell's middle;
   half: of the cell's width. */
static int fsi__frt_parts(const fsi__d3 *corner, fsi__d3 d, double half)
{
    int axis, i;
    for (axis = 0; axis < 3; axis++) {
        const fsi__d3 n = fsi__d3_cross(d, fsi__d3_make(axis == 0, axis == 1, axis == 2));
        const double reach = (fabs(n.x) + fabs(n.y) + fabs(n.z)) * half;
        double lo = FSI__HUGE, hi = -FSI__HUGE;
        for (i = 0; i < 3; i++) {
            const double at = fsi__d3_dot(n, corner[i]);
            lo = at < lo ? at : lo;
            hi = at > hi ? at : hi;
        }
        if (lo > reach || hi < -reach) return 1;
    }
    return 0;
}

/* Does an element meet the cell around a place? Its box does: then no plane along the element, or along one of its
   edges and an axis, parts them. */
static int fsi__frt_meets(const fsi__fr_mesh *m, int e, fsi__d3 cell, double half)
{
    const int *c = m->corner + m->k * e;
    const fsi__d3 n = fsi__fr_normal_of(m, e);
    fsi__d3 corner[3];
    int i, meets;
    for (i = 0; i < 3; i++) corner[i] = fsi__d3_sub(fsi__d3_of(m->x[c[i < m->k ? i : 0]]), cell);
    meets = fabs(fsi__d3_dot(n, corner[0])) <= (fabs(n.x) + fabs(n.y) + fabs(n.z)) * half;
    for (i = 0; i < 3 && m->k == 3 && meets; i++)
        meets = !fsi__frt_parts(corner, fsi__d3_sub(corner[(i + 1) % 3], corner[i]), half);
    return meets;
}

/* Does an element meet a marked cell? */
static int fsi__frt_touches(const fsi__frt *t, const fsi__fr_mesh *m, int e)
{
    fsi__frt_window w = fsi__frt_box_of(t, m, e);
    const double h = fsi__frt_cell(t);
    int i, j, k, axis;
    if (!fsi__frt_overlap(&w, &t->at)) return 0;
    for (axis = 0; axis < 3; axis++) {
        w.lo[axis] = (w.lo[axis] > t->at.lo[axis] ? w.lo[axis] : t->at.lo[axis]) - t->at.lo[axis];
        w.hi[axis] = (w.hi[axis] < t->at.hi[axis] ? w.hi[axis] : t->at.hi[axis]) - t->at.lo[axis];
    }
    for (k = w.lo[2]; k < w.hi[2]; k++)
        for (j = w.lo[1]; j < w.hi[1]; j++)
            for (i = w.lo[0]; i < w.hi[0]; i++) {
                const fsi__d3 c = fsi__d3_make((t->at.lo[0] + t->origin[0] + i + 0.5) * h,
                    (t->at.lo[1] + t->origin[1] + j + 0.5) * h,
                    m->k == 3 ? (t->at.lo[2] + t->origin[2] + k + 0.5) * h : 0);
                if (t->cell[fsi__frt_at(t, i, j, k)] && fsi__frt_meets(m, e, c, 0.501 * h)) return 1;
            }
    return 0;
}

/* The rim: half-edges of what stays; in 2D places where a segment ends (2 e + 1) or begins (2 e). */
static fsi_status fsi__frt_find_rim(fsi__frt *t, const fsi__fr_mesh *m, const char *fn)
{
    const int scale = m->k == 3 ? 3 : 1;
    int g, i;
    t->rim_count = 0;
    for (g = 0; g < t->list_count; g++)
        for (i = 0; i < m->k; i++) {
            const int h = m->twin[m->k * t->list[g] + i];
            if (t->gone[h / scale]) continue;
            FSI__FRT_ROOM(rim, t->rim_count, rim_room, t->rim_count + 1);
            t->rim[t->rim_count++] = m->k == 3 ? h : 2 * h + (i == 0);
        }
    return FSI_OK;
}

/* Elements that touch marked cells, and those around vertices that would be left with two fans. start: the half-edge
   of the rim that begins at a vertex. */
static fsi_status fsi__frt_cut(fsi__frt *t, fsi__fr_mesh *m, const char *fn)
{
    int s, i, h, again = 1;
    FSI__FRT_ROOM(gone, 0, gone_room, m->nt);
    memset(t->gone, 0, (size_t)m->nt);
    t->list_count = 0;
    for (s = 0; s < t->sub.element_count; s++)
        if (fsi__frt_touches(t, m, t->sub_element[s])) FSI__TRY(fsi__frt_remove(t, m, t->sub_element[s], fn));

    /* Two half-edges of the rim at a vertex: all of its elements go. */
    while (again) {
        again = 0;
        FSI__TRY(fsi__frt_find_rim(t, m, fn));
        for (i = 0; i < t->rim_count && m->k == 3; i++) t->start[m->corner[t->rim[i]]] = -1;
        for (i = 0; i < t->rim_count && m->k == 3; i++) {
            int *start = &t->start[m->corner[t->rim[i]]];
            if (*start >= 0) {
                h = *start;
                do {
                    FSI__TRY(fsi__frt_remove(t, m, h / 3, fn));
                    h = m->twin[fsi__fr_before(h)];
                } while (h != *start);
                again = 1;
                break;
            }
            *start = t->rim[i];
        }
    }
    return FSI_OK;
}

/* Arrays of new elements, with numbers of their own for vertices. */
typedef struct fsi__frt_local { int *corner, *twin, *next, *star, *head; } fsi__frt_local;
static fsi__frt_local fsi__frt_local_of(const fsi__frt *t, int k, int nv, int nt)
{
    fsi__frt_local l;
    l.corner = t->local;
    l.twin = l.corner + k * nt;
    l.next = l.twin + k * nt;
    l.star = l.next + k * nt;
    l.head = l.star + nv;
    return l;
}
static fsi_status fsi__frt_reserve_local(fsi__frt *t, const fsi__fr_mesh *m, int nv, int nt, fsi__frt_local *l,
    const char *fn)
{
    FSI__FRT_ROOM(local, 0, local_room, 2 * nv + 3 * m->k * nt);
    *l = fsi__frt_local_of(t, m->k, nv, nt);
    return FSI_OK;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

static fsi_status fsi__frt_add_to_loop(fsi__frt *t, const fsi__fr_mesh *m, int v, const char *fn)
{
    int *end = &t->begin[t->loops + 1];
    FSI__FRT_ROOM(loop, *end, loop_room, *end + 1);
    t->loop[(*end)++] = v;
    return FSI_OK;
}

static fsi_status fsi__frt_begin_loop(fsi__frt *t, const fsi__fr_mesh *m, const char *fn)
{
    FSI__FRT_ROOM(begin, t->loops > 0 ? t->loops + 1 : 0, begin_room, t->loops + 3);
    if (t->loops == 0) t->begin[0] = 0;
    t->begin[t->loops + 1] = t->begin[t->loops];
    return FSI_OK;
}

/* Loops of half-edges h from corner to corner; start: by vertex, -1 where it has been taken. */
static fsi_status fsi__frt_follow(fsi__frt *t, const fsi__fr_mesh *m, const int *corner, int *start, int h, int shift,
    const char *fn)
{
    FSI__TRY(fsi__frt_begin_loop(t, m, fn));
    while (h >= 0) {
        const int v = corner[h], next = corner[fsi__fr_after(h)];
        FSI__TRY(fsi__frt_add_to_loop(t, m, v + shift, fn));
        start[v] = -1;
        h = start[next];
    }
    t->loops++;
    return FSI_OK;
}

/* Loops of the new surface, then as many of the rim, which is asked for. 2D: of one vertex each; those where the new
   surface begins come first. */
static fsi_status fsi__frt_find_loops(fsi__frt *t, fsi__fr_mesh *m, const char *fn)
{
    const int k = m->k, nv = m->nv - t->first_vertex, nt = m->nt - t->first_element;
    fsi__frt_local l;
    int i, how, side;
    FSI__TRY(fsi__frt_reserve_local(t, m, nv, nt, &l, fn));
    for (i = 0; i < k * nt; i++) l.corner[i] = m->corner[k * t->first_element + i] - t->first_vertex;
    t->loops = 0;
    if (k == 2) {
        for (side = 0; side < 2; side++) { /* vertices without a segment before, then without one behind */
            for (i = 0; i < nv; i++) l.head[i] = 0;
            for (i = 0; i < nt; i++) l.head[l.corner[2 * i + 1 - side]] = 1;
            for (i = 0; i < nt; i++) {
                if (l.head[l.corner[2 * i + side]]) continue;
                FSI__TRY(fsi__frt_begin_loop(t, m, fn));
                FSI__TRY(fsi__frt_add_to_loop(t, m, l.corner[2 * i + side] + t->first_vertex, fn));
                t->loops++;
            }
            if (side == 0) t->begins = t->loops;
        }
        t->sheet_loops = t->loops;
        t->rim_ends = 0;
        for (side = 1; side >= 0; side--)
            for (i = 0; i < t->rim_count; i++) {
                if ((t->rim[i] & 1) != side) continue;
                t->rim_ends += side;
                FSI__TRY(fsi__frt_begin_loop(t, m, fn));
                FSI__TRY(fsi__frt_add_to_loop(t, m, m->corner[t->rim[i]], fn));
                t->loops++;
            }
        return FSI_OK;
    }

    /* Edges without a twin. */
    fsi__fr_connect(3, nv, nt, l.corner, l.twin, l.star, l.head, l.next, &how);
    for (i = 0; i < nv; i++) l.head[i] = -1;
    for (i = 0; i < 3 * nt; i++)
        if (l.twin[i] < 0) l.head[l.corner[i]] = i;
    for (i = 0; i < 3 * nt; i++)
        if (l.twin[i] < 0 && l.head[l.corner[i]] >= 0)
            FSI__TRY(fsi__frt_follow(t, m, l.corner, l.head, i, t->first_vertex, fn));
    t->sheet_loops = t->loops;
    t->rim_ends = 0;
    for (i = 0; i < t->rim_count; i++)
        if (t->start[m->corner[t->rim[i]]] >= 0)
            FSI__TRY(fsi__frt_follow(t, m, m->corner, t->start, t->rim[i], 0, fn));
    for (i = 0; i < t->rim_count; i++) t->start[m->corner[t->rim[i]]] = t->rim[i];
    return FSI_OK;
}

static fsi__d3 fsi__frt_normal_at(const fsi__frt *t, const fsi__fr_mesh *m, int v)
{
    return v >= t->first_vertex ? t->made[v - t->first_vertex].normal : fsi__d3_unit(fsi__fr_gradient(m, v));
}

/* How far apart two loops are: the mean over the first, of distances to the second; normals that differ count, too. */
static double fsi__frt_apart(const fsi__frt *t, const fsi__fr_mesh *m, int a, int b)
{
    const double h = fsi__frt_cell(t);
    double sum = 0;
    int i, j;
    for (i = t->begin[a]; i < t->begin[a + 1]; i++) {
        const fsi__d3 n = fsi__frt_normal_at(t, m, t->loop[i]);
        double least = FSI__HUGE;
        for (j = t->begin[b]; j < t->begin[b + 1]; j++) {
            double d = fsi__fr_length2(m->x[t->loop[i]], m->x[t->loop[j]]);
            if (d < least) {
                d += 4 * h * h * (1 - fsi__d3_dot(n, fsi__frt_normal_at(t, m, t->loop[j])));
                least = d < least ? d : least;
            }
        }
        sum += sqrt(least);
    }
    return sum / (t->begin[a + 1] - t->begin[a]);
}

/* The loop of the rim for each of the new surface; *good 0: not one for each. */
static fsi_status fsi__frt_match(fsi__frt *t, const fsi__fr_mesh *m, int *good, const char *fn)
{
    const int half = t->sheet_loops, begins = m->k == 2 ? t->begins : 0;
    int a, b;
    *good = t->loops == 2 * half && begins == t->rim_ends;
    if (!*good) return FSI_OK;
    FSI__FRT_ROOM(match, 0, match_room, t->loops + 1);
    for (b = 0; b < half; b++) t->match[half + b] = -1;
    for (a = 0; a < half; a++) {
        double least = FSI__HUGE;
        t->match[a] = -1;
        for (b = a < begins ? 0 : begins; b < (a < begins ? begins : half); b++) {
            const double d = fsi__frt_apart(t, m, a, half + b);
            if (!(d < least)) continue;
            least = d;
            t->match[a] = half + b;
        }
        if (t->match[a] < 0 || t->match[t->match[a]] >= 0) { *good = 0; return FSI_OK; }
        t->match[t->match[a]] = a;
    }
    return FSI_OK;
}

/* ---- sewing ------------------------------------------------------------------------------------------------------ */

/* A strip of triangles between loops a, which runs forth, and b, which runs back: the one with the least sum of squares
   of the edges across, from the pair of vertices that is nearest. cost: sums up to (i, j); from: which loop went on.

        a_i --- a_i+1
         |   \   |
        b_j --- b_j-1                                                        */
static fsi_status fsi__frt_sew_strip(fsi__frt *t, fsi__fr_mesh *m, int a, int b, int *good, const char *fn)
{
    const int n = t->begin[a + 1] - t->begin[a], k = t->begin[b + 1] - t->begin[b], wide = k + 1;
    const int *p = t->loop + t->begin[a], *q = t->loop + t->begin[b];
    const double most = FSI__FRT_LONGEST * FSI__FRT_LONGEST * m->length * m->length;
    double least = FSI__HUGE;
    int i, j, i0 = 0, j0 = 0;
    *good = n >= 3 && k >= 3 && (double)(n + 1) * wide < 1e7;
    if (!*good) return FSI_OK;
    FSI__FRT_ROOM(cost, 0, cost_room, (n + 1) * wide);
    for (i = 0; i < n; i++)
        for (j = 0; j < k; j++) {
            const double d = fsi__fr_length2(m->x[p[i]], m->x[q[j]]);
            if (!(d < least)) continue;
            least = d;
            i0 = i;
            j0 = j;
        }
    for (i = 0; i <= n; i++)
        for (j = 0; j <= k; j++) {
            const double d = fsi__fr_length2(m->x[p[(i0 + i) % n]], m->x[q[(j0 + k - j % k) % k]]);
            const double left = i > 0 ? t->cost[(i - 1) * wide + j] : FSI__HUGE,
                down = j > 0 ? t->cost[i * wide + j - 1] : FSI__HUGE;
            t->cost[i * wide + j] = i + j == 0 ? d : d + (left <= down ? left : down);
        }

    /* Back from the end. */
    for (i = n, j = k; i + j > 0;) {
        const int pi = p[(i0 + i) % n], qj = q[(j0 + k - j % k) % k];
        const double left = i > 0 ? t->cost[(i - 1) * wide + j] : FSI__HUGE,
            down = j > 0 ? t->cost[i * wide + j - 1] : FSI__HUGE;
        if (fsi__fr_length2(m->x[pi], m->x[qj]) > most) { *good = 0; return FSI_OK; }
        if (left <= down) {
            FSI__TRY(fsi__frt_add_element(t, m, pi, p[(i0 + i - 1) % n], qj, fn));
            i--;
        } else {
            FSI__TRY(fsi__frt_add_element(t, m, pi, q[(j0 + k - (j - 1) % k) % k], qj, fn));
            j--;
        }
    }
    return FSI_OK;
}

static fsi_status fsi__frt_sew(fsi__frt *t, fsi__fr_mesh *m, int *good, const char *fn)
{
    const double most = FSI__FRT_LONGEST * m->length;
    int a;
    FSI__TRY(fsi__frt_find_loops(t, m, fn));
    FSI__TRY(fsi__frt_match(t, m, good, fn));
    for (a = 0; a < t->sheet_loops && *good; a++) {
        const int b = t->match[a];
        if (m->k == 3) {
            FSI__TRY(fsi__frt_sew_strip(t, m, a, b, good, fn));
        } else {
            const int made = t->loop[t->begin[a]], old = t->loop[t->begin[b]], begins = a < t->begins;
            *good = fsi__fr_length2(m->x[made], m->x[old]) <= most * most;
            if (*good) FSI__TRY(fsi__frt_add_element(t, m, begins ? old : made, begins ? made : old, -1, fn));
        }
    }
    return FSI_OK;
}

/* Do new elements stay clear of each other and of all that is not gone? */
static int fsi__frt_is_clear(const fsi__frt *t, fsi__fr_mesh *m)
{
    int e, clear = 1;
    for (e = t->first_element; e < m->nt && clear; e++)
        clear = fsi__fr_area_of(m->k, m->x, m->corner + m->k * e) > fsi__fr_tiny(m);
    if (!m->crossings) return clear;
    for (e = 0; e < t->list_count; e++) fsi__fr_skip(m, t->list[e], 1);
    for (e = t->first_element; e < m->nt && clear; e++) {
        clear = fsi__fr_is_clear(m, e);
        fsi__fr_rehash(m, e);
    }
    for (e = 0; e < t->list_count; e++) fsi__fr_skip(m, t->list[e], 0);
    return clear;
}

/* ---- taking it --------------------------------------------------------------------------------------------------- */

/* Vertices of the elements that are gone, each once; role: their numbers. 0: one of them is held. */
static fsi_status fsi__frt_find_patch(fsi__frt *t, const fsi__fr_mesh *m, int *good, const char *fn)
{
    int g, i;
    t->patch_count = 0;
    *good = 1;
    for (i = 0; i < t->first_vertex; i++) t->role[i] = -1;
    for (g = 0; g < t->list_count; g++)
        for (i = 0; i < m->k; i++) {
            const int v = m->corner[m->k * t->list[g] + i];
            if (t->role[v] >= 0) continue;
            FSI__FRT_ROOM(patch, t->patch_count, patch_room, t->patch_count + 1);
            t->role[v] = t->patch_count;
            t->patch[t->patch_count++] = v;
            *good &= !(m->flags[v] & (FSI__FR_WALLS | FSI__FR_FIXED) & ~fsi__frt_wall_flag(t));
        }
    return FSI_OK;
}

/* Twins of new elements, by local numbers: new vertices, then those of the patch. *good 0: not closed, or not with the
   rim alone. */
static fsi_status fsi__frt_link(fsi__frt *t, fsi__fr_mesh *m, int *good, const char *fn)
{
    const int k = m->k, made = m->nv - t->first_vertex, nv = made + t->patch_count, nt = m->nt - t->first_element;
    fsi__frt_local l;
    int i, how, open = 0;
    FSI__TRY(fsi__frt_reserve_local(t, m, nv, nt, &l, fn));
    for (i = 0; i < k * nt; i++) {
        const int v = m->corner[k * t->first_element + i];
        l.corner[i] = v >= t->first_vertex ? v - t->first_vertex : made + t->role[v];
    }
    if (k == 2) { /* a segment after each, one before */
        for (i = 0; i < nv; i++) l.star[i] = l.head[i] = -1;
        for (i = 0; i < nt; i++) {
            l.star[l.corner[2 * i]] = t->first_element + i;
            l.head[l.corner[2 * i + 1]] = t->first_element + i;
        }
        for (i = 0; i < t->rim_count; i++) {
            const int local = made + t->role[m->corner[t->rim[i]]];
            if (t->rim[i] & 1) l.head[local] = t->rim[i] / 2;
            else l.star[local] = t->rim[i] / 2;
        }
        for (i = 0, *good = 1; i < nv; i++) *good &= (l.star[i] < 0) == (l.head[i] < 0);
        return FSI_OK;
    }
    fsi__fr_connect(3, nv, nt, l.corner, l.twin, l.star, l.head, l.next, &how);
    *good = !how;
    for (i = 0; i < 3 * nt && *good; i++) {
        int o;
        if (l.twin[i] >= 0) continue;
        open++;
        o = l.corner[fsi__fr_after(i)] >= made ? t->start[t->patch[l.corner[fsi__fr_after(i)] - made]] : -1;
        *good = o >= 0 && l.corner[i] >= made && m->corner[fsi__fr_after(o)] == t->patch[l.corner[i] - made];
        l.twin[i] = -2 - o;
    }
    *good &= open == t->rim_count;
    return FSI_OK;
}

/* New vertices, then those of the patch. */
static int fsi__frt_settled(const fsi__frt *t, const fsi__fr_mesh *m, int i)
{
    const int made = m->nv - t->first_vertex;
    return i < made ? t->first_vertex + i : t->patch[i - made];
}
/* Adds the normal of an element, as in fsi__frt_free_normal, to that of one of its vertices. */
static void fsi__frt_add_normal(fsi__frt *t, const fsi__fr_mesh *m, int v, int e)
{
    if (m->flags[v] & FSI__FR_WALLS && fsi__frt_is_wetted(m, e)) return;
    t->normal[v] = fsi_v3_add(t->normal[v], fsi__d3_real(fsi__fr_normal_of(m, e)));
}

/* Normals of what is made and of its rim. */
static void fsi__frt_find_normals(fsi__frt *t, const fsi__fr_mesh *m)
{
    const int count = m->nv - t->first_vertex + t->patch_count;
    int i, c;
    for (i = 0; i < count; i++) t->normal[fsi__frt_settled(t, m, i)] = fsi_v3(0, 0, 0);
    for (i = t->first_element; i < m->nt; i++)
        for (c = 0; c < m->k; c++) fsi__frt_add_normal(t, m, m->corner[m->k * i + c], i);

    /* What stays around the rim. */
    for (i = 0; i < t->rim_count; i++) {
        const int first = m->k == 3 ? t->rim[i] : t->rim[i] / 2, v = m->corner[t->rim[i]];
        int h = first;
        if (m->k == 2) fsi__frt_add_normal(t, m, v, h);
        else do {
            if (!t->gone[h / 3]) fsi__frt_add_normal(t, m, v, h / 3);
            h = m->twin[fsi__fr_before(h)];
        } while (h != first);
    }
    for (i = 0; i < count; i++) {
        const int v = fsi__frt_settled(t, m, i);
        const fsi__d3 n = fsi__fr_along_walls(m->flags[v], fsi__d3_of(t->normal[v]));
        t->normal[v] = fsi__d3_norm(n) > fsi__fr_tiny(m) ? fsi__d3_real(fsi__d3_unit(n)) : fsi_v3(0, 0, 0);
    }
}

/* Vertices of what is made, and of its rim, that would be a pair again, or where remeshing may make one, in a sheet
   thinner than FSI__FRT_CLEAR cells. The gap around drops that have merged is a wedge, which begins with a cell on any
   lattice. */
static fsi_status fsi__frt_count_thin(fsi__frt *t, fsi__fr_mesh *m, const char *fn)
{
    const int count = m->nv - t->first_vertex + t->patch_count;
    const double reach = FSI__FRT_CLEAR * fsi__frt_cell(t);
    int i;
    FSI__TRY(fsi__frt_reserve_vertices(t, m, fn));
    fsi__frt_find_normals(t, m);
    for (i = t->thin = 0; i < count; i++) {
        const int v = fsi__frt_settled(t, m, i);
        const fsi__d3 n = fsi__d3_of(t->normal[v]);
        const int e = fsi__frt_facing(t, m, v, n, reach, 1);
        fsi__d3 p;
        if (e < 0) continue;
        p = fsi__frt_foot(m, e, m->x[v]);
        t->thin += fsi__d3_dot(p, n) < 0 || fsi__d3_norm(p) < fsi__frt_cell(t);
    }
    return FSI_OK;
}

static void fsi__frt_tie_corners(fsi__frt *t, const fsi__fr_mesh *m, int e)
{
    const int made = m->nv - t->first_vertex, *c = m->corner + m->k * e;
    int i, first = -1;
    for (i = 0; i < m->k; i++) {
        const int at = c[i] >= t->first_vertex ? c[i] - t->first_vertex : made + t->role[c[i]];
        if (i > 0) fsi__frt_tie(t->group, first, at);
        else first = at;
    }
}

/* Vertices hang together by elements that are gone and new ones: numbers of such groups, in the order of their
   first. */
static fsi_status fsi__frt_find_groups(fsi__frt *t, fsi__fr_mesh *m, const char *fn)
{
    const int count = m->nv - t->first_vertex + t->patch_count;
    int i;
    FSI__FRT_ROOM(group, 0, group_room, count);
    for (i = 0; i < count; i++) t->group[i] = i;
    for (i = 0; i < t->list_count; i++) fsi__frt_tie_corners(t, m, t->list[i]);
    for (i = t->first_element; i < m->nt; i++) fsi__frt_tie_corners(t, m, i);

    /* First members have -1 - number, then all have. */
    for (i = 0; i < count; i++) t->group[i] = fsi__frt_first_of(t->group, i);
    for (i = t->groups = 0; i < count; i++) t->group[i] = t->group[i] == i ? -1 - t->groups++ : t->group[t->group[i]];
    for (i = 0; i < count; i++) t->group[i] = -1 - t->group[i];
    FSI__FRT_ROOM(sum, 0, sum_room, t->groups * (m->attributes + 3));
    return FSI_OK;
}

/* What there was, of each group; densities in the places of amounts. */
static void fsi__frt_sum_patch(fsi__frt *t, fsi__fr_mesh *m)
{
    const size_t n = (size_t)m->attributes;
    const int made = m->nv - t->first_vertex;
    int i;
    size_t j;
    for (j = 0; j < (size_t)t->groups * (n + 3); j++) t->sum[j] = 0;
    for (i = 0; i < t->patch_count; i++) {
        const int v = t->patch[i];
        const double area = fsi__fr_vertex_area(m, v);
        double *sum = t->sum + (size_t)t->group[made + i] * (n + 3);
        fsi__d3_put(sum + n, fsi__d3_madd(fsi__d3_make(sum[n], sum[n + 1], sum[n + 2]), area, fsi__d3_of(m->v[v])));
        for (j = 0; j < n; j++) {
            fsi_real *a = m->a + (size_t)v * n + j;
            sum[j] += (double)*a;
            *a = area > fsi__fr_tiny(m) ? (fsi_real)((double)*a / area) : 0;
        }
    }
}

/* Amounts and momentum of a group go to what is there now: as fsi__fr_patch_end, where densities are kept in the places
   of amounts. Where nothing is left they are lost. */
static void fsi__frt_settle(fsi__frt *t, fsi__fr_mesh *m, int group)
{
    const size_t n = (size_t)m->attributes;
    const int count = m->nv - t->first_vertex + t->patch_count;
    const double *sum = t->sum + (size_t)group * (n + 3);
    fsi__d3 momentum = fsi__d3_make(sum[n], sum[n + 1], sum[n + 2]);
    double all = 0;
    int i;
    size_t j;
    for (i = 0; i < count; i++) {
        const int v = fsi__frt_settled(t, m, i);
        double area;
        if (t->group[i] != group || m->star[v] < 0) continue;
        area = fsi__fr_vertex_area(m, v);
        all += area;
        momentum = fsi__d3_madd(momentum, -area, fsi__d3_of(m->v[v]));
    }
    if (!(all > fsi__fr_tiny(m))) {
        for (j = 0; j < n; j++) t->lost_amount[j] += sum[j];
        for (j = 0; j < 3; j++) t->lost_momentum[j] += sum[n + j];
        return;
    }

    /* Amounts one by one, then velocities. */
    for (j = 0; j < n; j++) {
        double got = 0, least = 0;
        fsi__fr_mix mix;
        for (i = 0; i < count; i++) {
            const int v = fsi__frt_settled(t, m, i);
            if (t->group[i] != group || m->star[v] < 0) continue;
            got += fsi__fr_vertex_area(m, v) * (double)m->a[(size_t)v * n + j];
            least = (double)m->a[(size_t)v * n + j] < least ? (double)m->a[(size_t)v * n + j] : least;
        }
        mix = fsi__fr_mix_of(sum[j], got, least, all);
        for (i = 0; i < count; i++) {
            const int v = fsi__frt_settled(t, m, i);
            fsi_real *a = m->a + (size_t)v * n + j;
            if (t->group[i] == group && m->star[v] >= 0)
                *a = (fsi_real)((mix.factor * (double)*a + mix.more) * fsi__fr_vertex_area(m, v));
        }
    }
    for (i = 0; i < count; i++) {
        const int v = fsi__frt_settled(t, m, i);
        if (t->group[i] == group && m->star[v] >= 0)
            m->v[v] = fsi__d3_real(fsi__d3_madd(fsi__d3_of(m->v[v]), 1 / all, momentum));
    }
}

/* Elements that are gone go, new ones take their places in the links. */
static void fsi__frt_accept(fsi__frt *t, fsi__fr_mesh *m)
{
    const int k = m->k, made = m->nv - t->first_vertex, nt = m->nt - t->first_element;
    const fsi__frt_local l = fsi__frt_local_of(t, k, made + t->patch_count, nt);
    int i;
    fsi__frt_sum_patch(t, m);

    /* Rows, links. */
    for (i = 0; i < t->patch_count; i++) m->star[t->patch[i]] = -1;
    for (i = 0; i < t->list_count; i++) {
        m->corner[k * t->list[i]] = -1;
        fsi__fr_rehash(m, t->list[i]);
        m->corner[k * t->list[i] + 1] = m->corner[k * t->list[i] + k - 1] = -1;
    }
    for (i = 0; i < 3 * nt && k == 3; i++) {
        const int h = 3 * t->first_element + i, v = m->corner[h];
        m->twin[h] = l.twin[i] >= 0 ? l.twin[i] + 3 * t->first_element : -2 - l.twin[i];
        if (l.twin[i] < 0) m->twin[m->twin[h]] = h;
        m->star[v] = h;
    }
    for (i = 0; i < made + t->patch_count && k == 2; i++) {
        const int v = fsi__frt_settled(t, m, i);
        if (l.star[i] < 0) continue;
        m->star[v] = l.star[i];
        m->twin[2 * l.star[i]] = l.head[i];
        m->twin[2 * l.head[i] + 1] = l.star[i];
    }
    for (i = 0; i < t->groups; i++) fsi__frt_settle(t, m, i);
}

/* ---- a window ---------------------------------------------------------------------------------------------------- */

/* Resamples the marked cells, if all goes well, and at most `most` vertices are left thin; else nothing has changed.
   t->thin: how many would be, FSI__FRT_NONE where it cannot be done. */
static fsi_status fsi__frt_try(fsi__frt *t, fsi__fr_mesh *m, int window, int most, int *good, const char *fn)
{
    const uint32_t id = m->next_id;
    int i;
    *good = fsi__frt_tidy(t, m->k);
    if (!*good) return FSI_OK;
    fsi__frt_force(t, m, window);
    FSI__TRY(fsi__frt_march(t, m, window, fn));
    FSI__TRY(fsi__frt_cut(t, m, fn));
    FSI__TRY(fsi__frt_find_patch(t, m, good, fn));
    if (*good) FSI__TRY(fsi__frt_sew(t, m, good, fn));
    if (*good) FSI__TRY(fsi__frt_link(t, m, good, fn));
    *good = *good && fsi__frt_is_clear(t, m);
    if (*good) FSI__TRY(fsi__frt_count_thin(t, m, fn));
    *good = *good && t->thin <= most;
    if (*good) {
        FSI__TRY(fsi__frt_find_groups(t, m, fn));
        fsi__frt_accept(t, m);
        return FSI_OK;
    }

    /* As it was. */
    for (i = t->first_element; i < m->nt; i++) {
        m->corner[m->k * i] = -1;
        fsi__fr_rehash(m, i);
    }
    m->nv = t->first_vertex;
    m->nt = t->first_element;
    m->next_id = id;
    return FSI_OK;
}

/* The window becomes the box of all pieces of which elements were gone in the last attempt. */
static void fsi__frt_take_pieces(fsi__frt *t, const fsi__fr_mesh *m)
{
    int g, e, first = 1;
    for (g = 0; g < t->list_count; g++) t->concerned[m->piece[t->list[g]]] = 1;
    for (e = 0; e < m->nt; e++) {
        fsi__frt_window w;
        int axis;
        if (m->corner[m->k * e] < 0 || !t->concerned[m->piece[e]]) continue;
        w = fsi__frt_box_of(t, m, e);
        for (axis = 0; axis < m->k; axis++) {
            w.lo[axis] -= FSI__FRT_MARGIN;
            w.hi[axis] += FSI__FRT_MARGIN;
        }
        if (first) t->at = w;
        else fsi__frt_join(&t->at, &w);
        first = 0;
    }
}

/* *allowed: what the owner says to a pair. It is asked once in a window for each kind and each two pieces; the first
   *questions of t->question are those of this window. */
static fsi_status fsi__frt_ask_owner(fsi__frt *t, const fsi__fr_mesh *m, const fsi__frt_pair *p, int *questions,
    int *allowed, const char *fn)
{
    const int a = fsi__fr_piece_of(m, p->vertex), b = m->piece[p->element], low = a < b ? a : b, high = a < b ? b : a;
    int k;
    for (k = 0; k < *questions; k++) {
        const fsi__frt_question *q = &t->question[k];
        *allowed = q->allowed;
        if (q->gap == p->gap && q->low == low && q->high == high) return FSI_OK;
    }
    FSI__FRT_ROOM(question, *questions, question_room, *questions + 1);
    *allowed = t->ask(t->owner, p->gap, a, b, p->foot) != 0;
    t->forbidden += !*allowed;
    t->question[*questions].gap = p->gap;
    t->question[*questions].low = low;
    t->question[*questions].high = high;
    t->question[(*questions)++].allowed = *allowed;
    return FSI_OK;
}

/* Takes the pairs out of a window that another one has changed, or that the owner forbids. *left: how many stay. */
static fsi_status fsi__frt_choose_pairs(fsi__frt *t, const fsi__fr_mesh *m, int window, int *left, const char *fn)
{
    int i, questions = 0;
    *left = 0;
    for (i = 0; i < t->pair_count; i++) {
        fsi__frt_pair *p = &t->pair[i];
        int stays = 1;
        if (p->window != window) continue;
        if (m->star[p->vertex] < 0 || m->corner[m->k * p->element] < 0) stays = 0;
        else if (t->ask) FSI__TRY(fsi__frt_ask_owner(t, m, p, &questions, &stays, fn));
        if (!stays) p->window = -1;
        *left += stays;
    }
    return FSI_OK;
}

/* The lattice of an attempt: by the golden ratio's relatives in three dimensions, far from those before. */
static void fsi__frt_move_lattice(fsi__frt *t, int attempt)
{
    static const double part[3] = { 0.8191725133961645, 0.6710436067037893, 0.5497004779019703 };
    int axis;
    for (axis = 0; axis < 3; axis++) {
        const double at = axis == t->wall_axis ? t->wall / fsi__frt_cell(t) - 0.5 : attempt * part[axis];
        t->origin[axis] = at - floor(at);
    }
}

/* The wall that vertices near the pairs lie on. *one 0: there is more than one. */
static void fsi__frt_find_wall(fsi__frt *t, const fsi__fr_mesh *m, int *one)
{
    const double h = fsi__frt_cell(t);
    uint32_t walls = 0;
    int v, axis, bit;
    t->wall_axis = -1;

    /* Vertices in the middle of the window. */
    for (v = 0; v < m->nv; v++) {
        const uint32_t flags = m->star[v] >= 0 ? m->flags[v] & FSI__FR_WALLS : 0;
        int within = flags != 0;
        for (axis = 0; axis < m->k && within; axis++) {
            const double x = (double)fsi__axis(m->x[v], axis) / h;
            within = x >= t->at.lo[axis] + FSI__FRT_MARGIN / 2 && x <= t->at.hi[axis] + 1 - FSI__FRT_MARGIN / 2;
        }
        if (!within) continue;
        walls |= flags;
        for (bit = 0; bit < 6; bit++) {
            if (flags != 1u << bit) continue;
            t->wall_axis = bit / 2;
            t->wall_side = bit & 1;
            t->wall = (double)fsi__axis(m->x[v], bit / 2);
        }
    }
    *one = (walls & (walls - 1)) == 0;
}

/* Are most pairs of a window in liquid? The table of cases parts what is inside where a face of a cell is ambiguous;
   with inside and outside exchanged it joins it: then sheets that the lattice meets once along an axis are whole. */
static int fsi__frt_is_sheet(const fsi__frt *t, int window)
{
    int p, more = 0;
    for (p = 0; p < t->pair_count; p++)
        if (t->pair[p].window == window) more += t->pair[p].gap ? -1 : 1;
    return more > 0;
}

/* One attempt, from FSI__FRT_ATTEMPTS on with all cells of the pieces concerned. *fits 0: none can be made. */
static fsi_status fsi__frt_attempt(fsi__frt *t, fsi__fr_mesh *m, int window, int attempt, int most, int *fits,
    int *good, const char *fn)
{
    const int whole = attempt >= FSI__FRT_ATTEMPTS;
    int i;
    t->thin = FSI__FRT_NONE;
    *good = 0;
    if (whole) fsi__frt_take_pieces(t, m);
    fsi__frt_find_wall(t, m, fits);
    if (!*fits) return FSI_OK;
    fsi__frt_move_lattice(t, attempt);
    FSI__TRY(fsi__frt_sample(t, m, fits, fn));
    if (!*fits) return FSI_OK;
    fsi__frt_mark(t, m, window, whole);
    memcpy(t->cell, t->base, (size_t)t->n[0] * (size_t)t->n[1] * (size_t)t->n[2]);
    for (i = 0; i <= attempt / FSI__FRT_LATTICES; i++) fsi__frt_grow(t);
    return fsi__frt_try(t, m, window, most, good, fn);
}

/* The first lattice that leaves nothing thin; where none does, the one that leaves least; where nothing can be sewn,
   any with more cells, then with whole pieces. Whether a window fits, in memory and beside one wall, is the same for
   all its lattices: where an attempt has left little, it can be made again. */
static fsi_status fsi__frt_change_window(fsi__frt *t, fsi__fr_mesh *m, int window, int pieces, const char *fn)
{
    int i, attempt, fits = 1, left, best = -1, least = FSI__FRT_NONE, good = 0;
    FSI__TRY(fsi__frt_choose_pairs(t, m, window, &left, fn));
    if (left == 0) return FSI_OK;
    FSI__FRT_ROOM(concerned, 0, concerned_room, pieces + 1);
    memset(t->concerned, 0, (size_t)pieces);
    t->at = t->window[window];
    t->list_count = 0;
    t->joins = fsi__frt_is_sheet(t, window);

    /* All lattices, then those that are taken whatever they leave. */
    for (attempt = 0; attempt < FSI__FRT_ATTEMPTS + FSI__FRT_WHOLE && fits && !good; attempt++) {
        const int again = attempt == FSI__FRT_CHOICE && best >= 0,
            most = attempt < FSI__FRT_CHOICE ? 0 : FSI__FRT_NONE;
        FSI__TRY(fsi__frt_attempt(t, m, window, again ? best : attempt, most, &fits, &good, fn));
        if (t->thin < least) {
            least = t->thin;
            best = attempt;
        }
        t->whole += good && attempt >= FSI__FRT_ATTEMPTS;
    }
    for (i = 0; i < t->n[0] * t->n[1] * t->n[2] && good; i++) t->cells += t->cell[i];
    t->places += good;
    t->failed += !good;
    return FSI_OK;
}

FSI_API fsi_status fsi__frt_change(fsi__frt *t, fsi__fr_mesh *m, int pieces, const char *fn)
{
    int w;
    t->places = t->whole = t->failed = t->forbidden = t->cells = 0;
    memset(t->lost_amount, 0, sizeof t->lost_amount);
    memset(t->lost_momentum, 0, sizeof t->lost_momentum);
    FSI__TRY(fsi__frt_find_pairs(t, m, fn));
    FSI__TRY(fsi__frt_make_windows(t, m, fn));
    for (w = 0; w < t->window_count; w++) {
        FSI__TRY(fsi__frt_reserve_vertices(t, m, fn));
        FSI__TRY(fsi__frt_change_window(t, m, w, pieces, fn));
    }
    m->hashed = 0;
    return FSI_OK;
}

FSI_API void fsi__frt_free(fsi__frt *t, fsi_context *c)
{
    const size_t nodes = (size_t)t->node_room, v = (size_t)t->vertex_room;
    fsi_front_destroy_lines(t->lines);
    fsi__free(c, t->hit, v, sizeof *t->hit);
    fsi__free(c, t->start, v, sizeof *t->start);
    fsi__free(c, t->role, v, sizeof *t->role);
    fsi__free(c, t->normal, v, sizeof *t->normal);
    fsi__free(c, t->cone, (size_t)t->cone_room, sizeof *t->cone);
    fsi__free(c, t->pair, (size_t)t->pair_room, sizeof *t->pair);
    fsi__free(c, t->window, (size_t)t->window_room, sizeof *t->window);
    fsi__free(c, t->question, (size_t)t->question_room, sizeof *t->question);
    fsi__free(c, t->base, nodes, 1);
    fsi__free(c, t->cell, nodes, 1);
    fsi__free(c, t->node, nodes, 1);
    fsi__free(c, t->winding, nodes, 1);
    fsi__free(c, t->edge, nodes, 3 * sizeof *t->edge);
    fsi__free(c, t->sub_element, (size_t)t->sub_room, sizeof *t->sub_element);
    fsi__free(c, t->sub_corner, (size_t)t->sub_room, (size_t)t->sub.dim * sizeof *t->sub_corner);
    fsi__free(c, t->sub_vertex, (size_t)t->sub_vertex_room, sizeof *t->sub_vertex);
    fsi__free(c, t->sub_x, (size_t)t->sub_vertex_room, sizeof *t->sub_x);

    /* Of patches. */
    fsi__free(c, t->gone, (size_t)t->gone_room, 1);
    fsi__free(c, t->list, (size_t)t->list_room, sizeof *t->list);
    fsi__free(c, t->rim, (size_t)t->rim_room, sizeof *t->rim);
    fsi__free(c, t->made, (size_t)t->made_room, sizeof *t->made);
    fsi__free(c, t->local, (size_t)t->local_room, sizeof *t->local);
    fsi__free(c, t->loop, (size_t)t->loop_room, sizeof *t->loop);
    fsi__free(c, t->begin, (size_t)t->begin_room, sizeof *t->begin);
    fsi__free(c, t->match, (size_t)t->match_room, sizeof *t->match);
    fsi__free(c, t->cost, (size_t)t->cost_room, sizeof *t->cost);
    fsi__free(c, t->patch, (size_t)t->patch_room, sizeof *t->patch);
    fsi__free(c, t->group, (size_t)t->group_room, sizeof *t->group);
    fsi__free(c, t->sum, (size_t)t->sum_room, sizeof *t->sum);
    fsi__free(c, t->concerned, (size_t)t->concerned_room, 1);
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
