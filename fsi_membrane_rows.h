/* fsi_membrane_rows.h - faces between liquid and air, and the parts of a surface that stand for them.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_membrane.h includes this file.

   WHAT IS IN HERE (search for >>)
      >>stages           for fsi's own headers, not for you: the weights of a surface's vertices at faces of a grid
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
   PRECISION: areas, weights and masses in double.
*/
#ifndef FSI_MEMBRANE_ROWS_H
#define FSI_MEMBRANE_ROWS_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_front.h"
#include "fsi_grid.h"

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

/* A cell of a grid of n cells. */
FSI_FN size_t fsi__mb_cell(const int *n, int i, int j, int k)
{
    return (size_t)i + (size_t)n[0] * ((size_t)j + (size_t)n[1] * (size_t)k);
}

/* A face between a liquid cell and an air cell is moved by the surface around it. Its row of W has the weights of
   vertices: with the box of edge `box` about the middle of the face (seed 003, section 4.2; spec 3.2)

      w_i = sum over elements of (area within the box) (coordinate i of the middle of that part),   then / sum w_i

   which integrates linear functions over the surface within the box exactly. Row f has the numbers start[f] ...
   start[f] + length[f] - 1. */
typedef struct fsi__mb_rows {
    int count, first[4];       /* faces; those of axis a are first[a] ... first[a + 1] - 1 */
    int *entry;                /* count: of the grid's face fields */
    int (*cell)[3];            /* count: the cell above the face */
    fsi_real *solid;           /* count: 1, for fsi_grid_faces */
    double *share;             /* count: part of the way between the two centres that is in liquid */
    int *crossed;              /* count: an element of the front that the way crosses */
    int *start, *length;
    int *vertex;
    double *weight;
    int face_room, number_room;
    /* Elements by cell, to find those near a face. */
    int (*box)[6];             /* elements: first and last cell along each axis; of those that are skipped nothing */
    int *bin, *element;        /* cells + 1, and their lists */
    int box_room, bin_room, element_room;
} fsi__mb_rows;

/* What rows are made of. */
typedef struct fsi__mb_source {
    fsi_context *context;
    const fsi_grid *grid;
    const fsi_front *front;
    const fsi_front_lines *lines; /* of that front, on the cells of that grid */
    const unsigned char *skip; /* element_count: 1: lies on a wall, without tension */
    double box;                /* edge of the boxes [dx] */
} fsi__mb_source;

/* Finds all faces and their rows. No row is empty: where no element has area in the box, it is the place where the line
   between the two centres crosses the surface. Errors: LIMIT, MEMORY; the rows are of no use then. */
FSI_API fsi_status fsi__mb_rows_make(fsi__mb_rows *r, const fsi__mb_source *source, const char *fn);
FSI_API void fsi__mb_rows_free(fsi__mb_rows *r, fsi_context *context);
/* to[f] = (W x)[f] for the faces of an axis: x has a number for each vertex. */
FSI_API void fsi__mb_rows_gather(const fsi__mb_rows *r, int axis, const double *x, double *to);
/* to += W^T x, for the faces of an axis. */
FSI_API void fsi__mb_rows_scatter(const fsi__mb_rows *r, int axis, const double *x, double *to);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_MEMBRANE_ROWS_H */

/* ==== Stop here if you only want the API. ====================================================================== */

/* fsi__mb_rows_make, names without their fsi__mb_:

      find_faces      lines between centres that cross the surface an odd number of times, and how much of them is wet
      fill_bins       elements, into all cells that their boxes meet
      room_task       elements near each face: room for its row
      row_task        clips them, and adds up                                                                   */

#ifdef FSI_IMPLEMENTATION
#undef FSI_MEMBRANE_ROWS_IMPLEMENTATION
#define FSI_MEMBRANE_ROWS_IMPLEMENTATION
#endif
#ifdef FSI_MEMBRANE_ROWS_IMPLEMENTATION
#ifndef FSI_MEMBRANE_ROWS_IMPLEMENTATION_DONE
#define FSI_MEMBRANE_ROWS_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_front.h"
#include "fsi_grid.h"

FSI__STRICT_BEGIN

#define FSI__MB_GRAIN 64       /* faces a chunk */

/* ---- faces ------------------------------------------------------------------------------------------------------- */

/* Of the line from a centre to the next, with `count` crossings from c on: how much is in liquid? */
static double fsi__mb_wet_part(const fsi_front_crossing *c, int count, int inside)
{
    double wet = 0, from = 0;
    int i;
    for (i = 0; i < count; i++) {
        if (inside) wet += (double)c[i].theta - from;
        from = (double)c[i].theta;
        inside = !inside;
    }
    return inside ? wet + 1 - from : wet;
}

static fsi_status fsi__mb_face_room(fsi__mb_rows *r, const fsi__mb_source *source, int rows, const char *fn)
{
    const fsi__column face[] = {
        { (void **)(void *)&r->entry, sizeof *r->entry }, { (void **)(void *)&r->cell, sizeof *r->cell },
        { (void **)(void *)&r->solid, sizeof *r->solid }, { (void **)(void *)&r->share, sizeof *r->share },
        { (void **)(void *)&r->crossed, sizeof *r->crossed },
        { (void **)(void *)&r->start, sizeof *r->start }, { (void **)(void *)&r->length, sizeof *r->length }
    };
    return fsi__room(source->context, face, 7, 0, &r->face_room, rows, fn);
}

/* The faces across one line of an axis. */
static void fsi__mb_line_faces(fsi__mb_rows *r, const fsi__mb_source *source, int axis, int line)
{
    const fsi_front_lines *l = source->lines;
    const int u = fsi__frl_u(axis), v = fsi__frl_v(axis);
    int c, at[3];
    at[u] = line % l->n[u];
    at[v] = line / l->n[u];
    for (c = l->begin[axis][line]; c < l->begin[axis][line + 1]; c += l->crossing[c].count) {
        const fsi_front_crossing *first = &l->crossing[c];
        long long entry;
        at[axis] = first->cell;
        if (first->count % 2 == 0 || first->cell < 0 || first->cell >= l->n[axis] - 1) continue;
        r->share[r->count] = fsi__mb_wet_part(first, first->count,
            l->inside[fsi__mb_cell(l->n, at[0], at[1], at[2])]);
        r->start[r->count] = c; /* until rows are made */
        at[axis]++;
        entry = fsi_grid_entry(source->grid, at[0], at[1], at[2]);
        FSI_ASSERT(entry >= 0);
        r->entry[r->count] = (int)entry;
        memcpy(r->cell[r->count], at, sizeof at);
        r->solid[r->count++] = 1;
    }
}

/* Faces of all axes. There are no more of them than crossings. */
static fsi_status fsi__mb_find_faces(fsi__mb_rows *r, const fsi__mb_source *source, const char *fn)
{
    const fsi_front_lines *l = source->lines;
    int axis, line;
    FSI__TRY(fsi__mb_face_room(r, source, l->crossing_count + 1, fn));
    r->count = 0;
    memset(r->first, 0, sizeof r->first);
    for (axis = 0; axis < l->dim; axis++) {
        const int lines = l->n[fsi__frl_u(axis)] * l->n[fsi__frl_v(axis)];
        r->first[axis] = r->count;
        for (line = 0; line < lines; line++) fsi__mb_line_faces(r, source, axis, line);
    }
    for (; axis < 4; axis++) r->first[axis] = r->count;
    return FSI_OK;
}

/* ---- elements by cell -------------------------------------------------------------------------------------------- */

/* The cells lo ... hi, within the grid, that a box meets. */
static void fsi__mb_cells_of(const fsi_front_lines *l, const double *low, const double *high, int *lo, int *hi)
{
    const double o[3] = { (double)l->origin.x, (double)l->origin.y, (double)l->origin.z };
    int a;
    lo[2] = hi[2] = 0;
    for (a = 0; a < l->dim; a++) {
        lo[a] = fsi__clamp_int((int)floor((low[a] - o[a]) / (double)l->dx), l->n[a] - 1);
        hi[a] = fsi__clamp_int((int)floor((high[a] - o[a]) / (double)l->dx), l->n[a] - 1);
    }
}

typedef struct fsi__mb_rows_job {
    fsi__mb_rows *r;
    const fsi__mb_source *source;
} fsi__mb_rows_job;

/* Corners of an element, by corner and axis; in 2D the third is the first. */
typedef struct fsi__mb_element { double p[3][3]; } fsi__mb_element;

static void fsi__mb_get(const fsi__mb_source *source, int t, fsi__mb_element *e)
{
    const fsi_front *f = source->front;
    const int k = f->dim, *c = f->elements + k * t;
    int i;
    for (i = 0; i < 3; i++) fsi__d3_put(e->p[i], fsi__d3_of(f->position[c[i < k ? i : 0]]));
}

/* The cells that the boxes of elements meet. */
static void fsi__mb_box_task(void *arg, int chunk, int begin, int end)
{
    const fsi__mb_rows_job *job = (const fsi__mb_rows_job *)arg;
    fsi__mb_element e;
    double low[3], high[3];
    int t, a;
    (void)chunk;
    for (t = begin; t < end; t++) {
        if (job->source->skip[t]) continue;
        fsi__mb_get(job->source, t, &e);
        for (a = 0; a < 3; a++) {
            low[a] = fmin(e.p[0][a], fmin(e.p[1][a], e.p[2][a]));
            high[a] = fmax(e.p[0][a], fmax(e.p[1][a], e.p[2][a]));
        }
        fsi__mb_cells_of(job->source->lines, low, high, job->r->box[t], job->r->box[t] + 3);
    }
}

/* Adds one to the counters of all cells of an element, or writes it into their lists from the back. */
static void fsi__mb_into_bins(fsi__mb_rows *r, const int *n, int t, int write)
{
    const int *lo = r->box[t], *hi = lo + 3;
    int i, j, k;
    for (k = lo[2]; k <= hi[2]; k++)
        for (j = lo[1]; j <= hi[1]; j++)
            for (i = lo[0]; i <= hi[0]; i++) {
                int *bin = &r->bin[fsi__mb_cell(n, i, j, k)];
                if (write) r->element[--*bin] = t;
                else ++*bin;
            }
}

static fsi_status fsi__mb_fill_bins(fsi__mb_rows_job *job, const char *fn)
{
    fsi__mb_rows *r = job->r;
    const fsi__mb_source *source = job->source;
    const int *n = source->lines->n, cells = n[0] * n[1] * n[2], count = source->front->element_count;
    int t, i;
    long long sum = 0;
    FSI__TRY(fsi__room_in(source->context, &r->box, sizeof *r->box, 0, &r->box_room, count + 1, fn));
    fsi__parallel_work(source->context, count, 16 * FSI__MB_GRAIN, 30.0 * count, fsi__mb_box_task, job);
    FSI__TRY(fsi__room_in(source->context, &r->bin, sizeof *r->bin, 0, &r->bin_room, cells + 1, fn));
    memset(r->bin, 0, ((size_t)cells + 1) * sizeof *r->bin);
    for (t = 0; t < count; t++) if (!source->skip[t]) fsi__mb_into_bins(r, n, t, 0);
    for (i = 0; i <= cells; i++) {
        sum += r->bin[i];
        if (sum > 0x7ffffffe)
            return fsi__fail(source->context, FSI_ERROR_LIMIT, fn, -1, (double)sum, "the surface meets too many cells");
        r->bin[i] = (int)sum;
    }

    /* Lists in the order of elements. */
    FSI__TRY(fsi__room_in(source->context, &r->element, sizeof *r->element, 0, &r->element_room, (int)sum + 1, fn));
    for (t = count - 1; t >= 0; t--) if (!source->skip[t]) fsi__mb_into_bins(r, n, t, 1);
    return FSI_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* A polygon in the plane of a triangle: its points have the coordinates b of corners 1 and 2. */
typedef struct fsi__mb_polygon { double b[12][2]; int n; } fsi__mb_polygon;

/* Cuts off what has d0 + b1 (d1 - d0) + b2 (d2 - d0) < 0 (Sutherland and Hodgman 1974). */
static void fsi__mb_cut(fsi__mb_polygon *g, double d0, double d1, double d2)
{
    fsi__mb_polygon to;
    int i;
    to.n = 0;
    for (i = 0; i < g->n; i++) {
        const double *p = g->b[i], *q = g->b[(i + 1) % g->n];
        const double dp = d0 + p[0] * (d1 - d0) + p[1] * (d2 - d0), dq = d0 + q[0] * (d1 - d0) + q[1] * (d2 - d0);
        if (dp >= 0) memcpy(to.b[to.n++], p, sizeof to.b[0]);
        if ((dp >= 0) != (dq >= 0)) {
            const double s = dp / (dp - dq);
            to.b[to.n][0] = p[0] + s * (q[0] - p[0]);
            to.b[to.n++][1] = p[1] + s * (q[1] - p[1]);
        }
    }
    *g = to;
}

/* Integrals of the three linear functions over the polygon, for a triangle of area 1. */
static void fsi__mb_integrate(const fsi__mb_polygon *g, double *w)
{
    double area = 0, s1 = 0, s2 = 0;
    int i;
    for (i = 1; i + 1 < g->n; i++) {
        const double *a = g->b[0], *b = g->b[i], *c = g->b[i + 1];
        const double part = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
        area += part;
        s1 += part * (a[0] + b[0] + c[0]) / 3;
        s2 += part * (a[1] + b[1] + c[1]) / 3;
    }
    w[0] = area - s1 - s2;
    w[1] = s1;
    w[2] = s2;
}

/* The same for a segment: only b[0] counts. */
static void fsi__mb_clip_segment(const fsi__mb_element *e, const double *low, const double *high, double *w)
{
    double t0 = 0, t1 = 1;
    int a;
    for (a = 0; a < 2; a++) {
        const double p = e->p[0][a], d = e->p[1][a] - p;
        if (!(fabs(d) > 0)) {
            if (p < low[a] || p > high[a]) t1 = t0;
            continue;
        }
        t0 = fmax(t0, ((d > 0 ? low[a] : high[a]) - p) / d);
        t1 = fmin(t1, ((d > 0 ? high[a] : low[a]) - p) / d);
    }
    w[2] = 0;
    w[1] = t1 > t0 ? (t1 - t0) * (t0 + t1) / 2 : 0;
    w[0] = t1 > t0 ? t1 - t0 - w[1] : 0;
}

/* Integrals of the linear functions of an element over its part in a box. */
static void fsi__mb_clip(const fsi__mb_element *e, int dim, const double *low, const double *high, double *w)
{
    const double *p = e->p[0], *q = e->p[1], *s = e->p[2];
    const fsi__d3 n = fsi__d3_cross(fsi__d3_sub(fsi__d3_at(q), fsi__d3_at(p)), fsi__d3_sub(fsi__d3_at(s),
        fsi__d3_at(p)));
    const double size = dim == 3 ? fsi__d3_norm(n) / 2
        : fsi__d3_norm(fsi__d3_sub(fsi__d3_at(q), fsi__d3_at(p)));
    fsi__mb_polygon g;
    int a, i;
    if (dim == 2) fsi__mb_clip_segment(e, low, high, w);
    else {
        g.n = 3;
        g.b[0][0] = g.b[0][1] = g.b[1][1] = g.b[2][0] = 0;
        g.b[1][0] = g.b[2][1] = 1;
        for (a = 0; a < 3 && g.n > 0; a++) {
            if (fmin(p[a], fmin(q[a], s[a])) < low[a]) fsi__mb_cut(&g, p[a] - low[a], q[a] - low[a], s[a] - low[a]);
            if (fmax(p[a], fmax(q[a], s[a])) > high[a])
                fsi__mb_cut(&g, high[a] - p[a], high[a] - q[a], high[a] - s[a]);
        }
        fsi__mb_integrate(&g, w);
    }
    for (i = 0; i < 3; i++) w[i] *= size;
}

/* The box of a face, and the cells that it meets. */
static void fsi__mb_box_of(const fsi__mb_rows_job *job, int f, double *low, double *high, int *lo, int *hi)
{
    const fsi__mb_rows *r = job->r;
    const int axis = f >= r->first[2] ? 2 : f >= r->first[1] ? 1 : 0;
    const double half = job->source->box / 2 * (double)job->source->grid->dx;
    double x[3];
    int a;
    fsi__d3_put(x, fsi__d3_of(fsi_grid_position(job->source->grid, (fsi_grid_place)(FSI_FACES_X + axis), r->cell[f][0],
        r->cell[f][1], r->cell[f][2])));
    for (a = 0; a < 3; a++) {
        low[a] = x[a] - half;
        high[a] = x[a] + half;
    }
    fsi__mb_cells_of(job->source->lines, low, high, lo, hi);
}

/* Of the cells that both an element and a box meet, is this the first? So that it counts once. */
static int fsi__mb_is_first(const int *of, const int *lo, const int *at)
{
    return at[0] == (of[0] > lo[0] ? of[0] : lo[0]) && at[1] == (of[1] > lo[1] ? of[1] : lo[1])
        && at[2] == (of[2] > lo[2] ? of[2] : lo[2]);
}

static void fsi__mb_room_task(void *arg, int chunk, int begin, int end)
{
    const fsi__mb_rows_job *job = (const fsi__mb_rows_job *)arg;
    const int *n = job->source->lines->n;
    int f, j, k, lo[3], hi[3];
    double low[3], high[3];
    (void)chunk;
    for (f = begin; f < end; f++) {
        long long room = 1;
        fsi__mb_box_of(job, f, low, high, lo, hi);
        for (k = lo[2]; k <= hi[2]; k++)
            for (j = lo[1]; j <= hi[1]; j++) {
                const int *row = job->r->bin + fsi__mb_cell(n, 0, j, k);
                room += row[hi[0] + 1] - row[lo[0]];
            }
        room *= job->source->front->dim;
        job->r->length[f] = room > 1 << 24 ? 1 << 24 : (int)room;
    }
}

/* Adds the weights of an element's corners to a row. */
static void fsi__mb_add_to_row(fsi__mb_rows *r, int f, int k, const int *corner, const double *w)
{
    int *vertex = r->vertex + r->start[f];
    double *weight = r->weight + r->start[f];
    int c, i;
    for (c = 0; c < k; c++) {
        for (i = 0; i < r->length[f] && vertex[i] != corner[c]; i++) continue;
        if (i == r->length[f]) {
            r->length[f]++;
            vertex[i] = corner[c];
            weight[i] = 0;
        }
        weight[i] += w[c];
    }
}

/* The weights of a face, up to a factor: of the elements in one cell. */
static void fsi__mb_add_cell(const fsi__mb_rows_job *job, int f, const int *at, const int *lo, const double *low,
    const double *high)
{
    const int *n = job->source->lines->n, k = job->source->front->dim;
    const int *bin = job->r->bin + fsi__mb_cell(n, at[0], at[1], at[2]);
    fsi__mb_element e;
    double w[3];
    int b;
    for (b = bin[0]; b < bin[1]; b++) {
        const int t = job->r->element[b];
        if (!fsi__mb_is_first(job->r->box[t], lo, at)) continue;
        fsi__mb_get(job->source, t, &e);
        fsi__mb_clip(&e, k, low, high, w);
        if (w[0] + w[1] + w[2] > 0) fsi__mb_add_to_row(job->r, f, k, job->source->front->elements + k * t, w);
    }
}

static void fsi__mb_row_task(void *arg, int chunk, int begin, int end)
{
    const fsi__mb_rows_job *job = (const fsi__mb_rows_job *)arg;
    fsi__mb_rows *r = job->r;
    int f, i, at[3], lo[3], hi[3];
    double low[3], high[3];
    (void)chunk;
    for (f = begin; f < end; f++) {
        double sum = 0;
        const fsi_front_crossing *c = &job->source->lines->crossing[r->length[f]];
        r->length[f] = 0;
        fsi__mb_box_of(job, f, low, high, lo, hi);
        for (at[2] = lo[2]; at[2] <= hi[2]; at[2]++)
            for (at[1] = lo[1]; at[1] <= hi[1]; at[1]++)
                for (at[0] = lo[0]; at[0] <= hi[0]; at[0]++) fsi__mb_add_cell(job, f, at, lo, low, high);

        /* Their sum is 1. */
        for (i = 0; i < r->length[f]; i++) sum += r->weight[r->start[f] + i];
        if (!(sum > 0)) {
            const double w[3] = { (double)c->weight[0], (double)c->weight[1], (double)c->weight[2] };
            const int k = job->source->front->dim;
            fsi__mb_add_to_row(r, f, k, job->source->front->elements + k * c->element, w);
            sum = w[0] + w[1] + w[2];
        }
        for (i = 0; i < r->length[f]; i++) r->weight[r->start[f] + i] /= sum;
    }
}

FSI_API fsi_status fsi__mb_rows_make(fsi__mb_rows *r, const fsi__mb_source *source, const char *fn)
{
    fsi__mb_rows_job job;
    const fsi__column numbers[] = {
        { (void **)(void *)&r->vertex, sizeof *r->vertex }, { (void **)(void *)&r->weight, sizeof *r->weight }
    };
    long long sum = 0;
    int f;
    job.r = r;
    job.source = source;
    FSI__TRY(fsi__mb_find_faces(r, source, fn));
    FSI__TRY(fsi__mb_fill_bins(&job, fn));

    /* Where rows start; their crossings go to where lengths will be. */
    fsi__parallel_work(source->context, r->count, FSI__MB_GRAIN, 50.0 * r->count, fsi__mb_room_task, &job);
    for (f = 0; f < r->count; f++) {
        const int crossing = r->start[f];
        r->start[f] = (int)sum;
        sum += r->length[f];
        r->length[f] = crossing;
        r->crossed[f] = source->lines->crossing[crossing].element;
        if (sum > 0x7ffffffe)
            return fsi__fail(source->context, FSI_ERROR_LIMIT, fn, -1, (double)sum, "the surface is too large");
    }
    FSI__TRY(fsi__room(source->context, numbers, 2, 0, &r->number_room, (int)sum + 1, fn));
    fsi__parallel_work(source->context, r->count, FSI__MB_GRAIN, 2000.0 * r->count, fsi__mb_row_task, &job);
    return FSI_OK;
}

FSI_API void fsi__mb_rows_gather(const fsi__mb_rows *r, int axis, const double *x, double *to)
{
    int f, i;
    for (f = r->first[axis]; f < r->first[axis + 1]; f++) {
        const int *vertex = r->vertex + r->start[f];
        const double *weight = r->weight + r->start[f];
        double sum = 0;
        for (i = 0; i < r->length[f]; i++) sum += weight[i] * x[vertex[i]];
        to[f] = sum;
    }
}

FSI_API void fsi__mb_rows_scatter(const fsi__mb_rows *r, int axis, const double *x, double *to)
{
    int f, i;
    for (f = r->first[axis]; f < r->first[axis + 1]; f++) {
        const int *vertex = r->vertex + r->start[f];
        const double *weight = r->weight + r->start[f];
        for (i = 0; i < r->length[f]; i++) to[vertex[i]] += weight[i] * x[f];
    }
}

FSI_API void fsi__mb_rows_free(fsi__mb_rows *r, fsi_context *context)
{
    const fsi__column face[] = {
        { (void **)(void *)&r->entry, sizeof *r->entry }, { (void **)(void *)&r->cell, sizeof *r->cell },
        { (void **)(void *)&r->solid, sizeof *r->solid }, { (void **)(void *)&r->share, sizeof *r->share },
        { (void **)(void *)&r->crossed, sizeof *r->crossed },
        { (void **)(void *)&r->start, sizeof *r->start }, { (void **)(void *)&r->length, sizeof *r->length }
    };
    const fsi__column numbers[] = {
        { (void **)(void *)&r->vertex, sizeof *r->vertex }, { (void **)(void *)&r->weight, sizeof *r->weight }
    };
    fsi__free_columns(context, face, 7, r->face_room);
    fsi__free_columns(context, numbers, 2, r->number_room);
    fsi__free(context, r->box, (size_t)r->box_room, sizeof *r->box);
    fsi__free(context, r->bin, (size_t)r->bin_room, sizeof *r->bin);
    fsi__free(context, r->element, (size_t)r->element_room, sizeof *r->element);
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
