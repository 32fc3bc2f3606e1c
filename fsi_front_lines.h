/* fsi_front_lines.h - cell centres inside of a moving surface, and where lines through them cross it. Exact.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_front.h"
         #include "fsi_front.h"                      (it includes this file)

   WHERE A DROP CROSSES A GRID
      fsi_front_lines_desc d = fsi_front_default_lines_desc();
      fsi_front_lines *l;
      d.n[0] = d.n[1] = d.n[2] = 64;
      d.dx = 0.05f;
      if (fsi_front_create_lines(&l, &d) != FSI_OK) return 1;
      if (fsi_front_cross_lines(l, front) != FSI_OK) return 1;     // in each step: a fsi_front of fsi_front.h
      if (l->inside[i + 64 * (j + 64 * k)]) { ... }                // the centre of cell (i, j, k)
      c = fsi_front_first_crossing(l, 0, i, j, k);                  // to the centre of cell (i + 1, j, k)
      if (c) printf("%d crossings, the first at %g\n", c->count, c->theta);
      fsi_front_destroy_lines(l);

   WHAT IS IN HERE (search for >>)
      >>lines          the grid, and all crossings of the lines through its cell centres
      >>stages         for fsi's own headers, not for you: lines of any closed surface
   fsi_front.h has the call that fills them, fsi_front_cross_lines. docs/front.md proves that the lines of all axes see
   the same surface.
   MACROS: those of fsi.h.
   UNITS: SI; places on lines in cells.
   PRECISION: vertices are rounded to 2^-20 dx of the grid. Which lines cross an element, and between which centres, is
   then computed in integers, without any rounding; theta and weights are rounded to fsi_real.

   WHAT IT DOES NOT DO
      Surfaces that cross themselves: `inside` is then the parity of crossings.
*/
#ifndef FSI_FRONT_LINES_H
#define FSI_FRONT_LINES_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_front_cross.h"

/* ---- >>lines ----------------------------------------------------------------------------------------------------- */

/* The grid. Start from fsi_front_default_lines_desc(). */
typedef struct fsi_front_lines_desc {
    uint32_t cookie;
    fsi_context *context;        /* default NULL: malloc, serial or OpenMP, no clock */
    int dim;                     /* 3 (default) or 2, as the front has it */
    int n[3];                    /* cells, 1 to 2^20 along an axis and 2^31 - 1 in all; n[2] = 1 in 2D; default 1 */
    fsi_vec3 origin;             /* the low corner of cell (0, 0, 0); default 0 [m] */
    fsi_real dx;                 /* edge of a cell; > 0, no default [m] */
} fsi_front_lines_desc;
FSI_API fsi_front_lines_desc fsi_front_default_lines_desc(void); /* fills every field */

/* A line through cell centres crosses an element. */
typedef struct fsi_front_crossing {
    int cell;                    /* index along the axis: the crossing is between the centres of this cell and of the
                                    next; -1: before the first centre; n - 1: behind the last */
    int element;                 /* of the front */
    int count;                   /* crossings with this `cell` on the line, from this one on */
    fsi_real theta;              /* place: 0 at the centre of `cell`, 1 at the next one */
    fsi_real weight[3];          /* of the corners of the element: >= 0, their sum is 1; 2D: weight[2] is 0 */
} fsi_front_crossing;

/* All crossings. A line of axis 0 has the number j + n[1] k, of axis 1: i + n[0] k, of axis 2: i + n[0] j. */
typedef struct fsi_front_lines {
    uint32_t cookie;
    fsi_context *context;        /* never NULL: the desc's, or one of its own */
    int dim, n[3];
    fsi_real dx;
    fsi_vec3 origin;             /* may be written between calls [m] */
    const unsigned char *inside; /* n[0] n[1] n[2], i fastest: 1 where the centre of the cell is inside */
    const fsi_front_crossing *crossing; /* those of a line one after the other, in the order of cell and theta */
    const int *begin[3];         /* of axis a: line l has begin[a][l] ... begin[a][l + 1] - 1; begin[2] NULL in 2D */
    int crossing_count;
    double seconds;              /* of the last call; 0: no clock */
    void *impl;
} fsi_front_lines;

/* Room for a grid; nothing is inside at first. Errors, naming the field: COOKIE, ARGUMENT, NAN, LIMIT, MEMORY. *out is
   NULL then. */
FSI_API fsi_status fsi_front_create_lines(fsi_front_lines **out, const fsi_front_lines_desc *desc);
FSI_API void fsi_front_destroy_lines(fsi_front_lines *l); /* NULL is fine */
/* The first crossing from the centre of cell (i, j, k) to the next along an axis; more follow where its count
   is above 1, the last of them is the first on the way back. NULL: there is none, or no such pair of cells. */
FSI_API const fsi_front_crossing *fsi_front_first_crossing(const fsi_front_lines *l, int axis, int i, int j, int k);
/* The context's last failure; NULL: no lines. */
FSI_API const fsi_error *fsi_front_lines_error(const fsi_front_lines *l);

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

/* The axes across an axis, u < v. */
FSI_FN int fsi__frl_u(int axis) { return axis == 0 ? 1 : 0; }
FSI_FN int fsi__frl_v(int axis) { return axis == 2 ? 1 : 2; }

/* A closed surface: its arrays have the form of fsi_front's. */
typedef struct fsi__frl_surface {
    int dim, vertex_count, element_count;
    const fsi_vec3 *position;
    const int *elements;
} fsi__frl_surface;
/* fsi_front_cross_lines for any surface. Errors: LIMIT, NAN, MEMORY. */
FSI_API fsi_status fsi__frl_cross(fsi_front_lines *l, const fsi__frl_surface *f, const char *fn);
/* Of the last surface: does a line along the axis leave it (1) or enter it (-1) where it crosses an element? */
FSI_API int fsi__frl_direction(const fsi_front_lines *l, const fsi__frl_surface *f, int element, int axis);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_FRONT_LINES_H */

/* ==== Stop here if you only want the API. ====================================================================== */

/* fsi_front_cross_lines, names without their fsi__frl_:

      snap_task       vertices, to the lattice of 2^-20 dx
      room_task       lines through the box of each element: room for its crossings
      find_task       which of these cross it, and where
      sort_lines      by line: a counting sort
      line_task       the rows of each line, by place
      inside_task     parity along the lines of axis 0                                                          */

#ifdef FSI_IMPLEMENTATION
#undef FSI_FRONT_LINES_IMPLEMENTATION
#define FSI_FRONT_LINES_IMPLEMENTATION
#endif
#ifdef FSI_FRONT_LINES_IMPLEMENTATION
#ifndef FSI_FRONT_LINES_IMPLEMENTATION_DONE
#define FSI_FRONT_LINES_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_front_cross.h"

FSI__STRICT_BEGIN

#define FSI__FRL_CELL ((int64_t)1 << 20)  /* lattice units in a cell */
#define FSI__FRL_WIDEST ((int64_t)1 << 30) /* an element, along an axis */
#define FSI__FRL_FARTHEST 1073741824.0    /* a vertex from the origin, in cells */
#define FSI__FRL_GRAIN 2048               /* elements, lines, vertices a chunk */

/* Elements t with the same t/FSI__FRL_GRAIN. Their hits are rows first ... first + count - 1. */
typedef struct fsi__frl_chunk {
    long long room;
    int first, count;
    int wide;                  /* the first element that is too wide, -1 */
} fsi__frl_chunk;

typedef struct fsi__frl_impl {
    fsi_context own_context;
    int lines[4];              /* number of the first line of each axis, then of all */
    unsigned char *inside;
    int *begin;                /* lines[3] + 1 */
    fsi_front_crossing *crossing;
    int crossing_room;
    fsi__fr_int3 *x;           /* vertices on the lattice; the centre of cell i is at (i + 1/2) FSI__FRL_CELL */
    int x_room;
    fsi__frl_chunk *chunk;
    int chunk_room;
    fsi_front_crossing *hit;   /* in the order of elements; count is the line, of all axes */
    int hit_room;
    int *order;                /* of hits, by line */
    int order_room;
} fsi__frl_impl;

typedef struct fsi__frl_job {
    const fsi_front_lines *l;
    fsi__frl_impl *im;
    const fsi__frl_surface *f;
} fsi__frl_job;

static fsi_status fsi__frl_check(const fsi_front_lines *l)
{
    if (!l) return FSI_ERROR_ARGUMENT;
    return l->cookie == FSI__COOKIE('x', fsi_front_lines) ? FSI_OK : FSI_ERROR_COOKIE;
}

/* ---- elements on the lattice ------------------------------------------------------------------------------------- */

static void fsi__frl_snap_task(void *arg, int chunk, int begin, int end)
{
    const fsi__frl_job *job = (const fsi__frl_job *)arg;
    const fsi_vec3 o = job->l->origin;
    const double scale = (double)FSI__FRL_CELL / (double)job->l->dx;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++) {
        const fsi_vec3 x = job->f->position[i];
        job->im->x[i].x = (int64_t)floor(((double)x.x - (double)o.x) * scale + 0.5);
        job->im->x[i].y = (int64_t)floor(((double)x.y - (double)o.y) * scale + 0.5);
        job->im->x[i].z = (int64_t)floor(((double)x.z - (double)o.z) * scale + 0.5);
    }
}

/* Corners of an element; a segment has its first one again, moved along z: the normals are then those of 2D. */
typedef struct fsi__frl_element {
    fsi__fr_int3 corner[3];
    int64_t p[3][3];           /* the same, by corner and axis */
    int lo[3], hi[3];          /* centres in its box are lo ... hi - 1 along each axis, within the grid */
    int wide;
} fsi__frl_element;

/* How many centres of a row are below x? Those at x are moved above it. */
static int fsi__frl_below(int64_t x, int n)
{
    const int64_t shift = (int64_t)1 << 40; /* of cells, so that what is divided is positive */
    const int64_t i = (x + FSI__FRL_CELL / 2 - 1 + shift * FSI__FRL_CELL) / FSI__FRL_CELL - shift;
    return i < 0 ? 0 : i > n ? n : (int)i;
}

static void fsi__frl_get(const fsi__frl_job *job, int t, fsi__frl_element *e)
{
    const int k = job->l->dim, *c = job->f->elements + k * t;
    int i, axis;
    e->wide = 0;
    for (i = 0; i < 3; i++) {
        e->corner[i] = job->im->x[c[i < k ? i : 0]];
        if (i == k) e->corner[i].z++;
        e->p[i][0] = e->corner[i].x;
        e->p[i][1] = e->corner[i].y;
        e->p[i][2] = e->corner[i].z;
    }
    for (axis = 0; axis < k; axis++) {
        const int64_t a = e->p[0][axis], b = e->p[1][axis], d = e->p[2][axis];
        const int64_t least = a < b ? (a < d ? a : d) : b < d ? b : d, most = a > b ? (a > d ? a : d) : b > d ? b : d;
        e->wide |= most - least > FSI__FRL_WIDEST;
        e->lo[axis] = fsi__frl_below(least, job->l->n[axis]);
        e->hi[axis] = fsi__frl_below(most, job->l->n[axis]);
    }
    if (k == 2) {
        e->lo[2] = 0;
        e->hi[2] = 1;
    }
}

static void fsi__frl_room_task(void *arg, int chunk, int begin, int end)
{
    const fsi__frl_job *job = (const fsi__frl_job *)arg;
    fsi__frl_chunk *c = &job->im->chunk[chunk];
    fsi__frl_element e;
    int t, axis;
    c->room = 0;
    c->wide = -1;
    for (t = begin; t < end; t++) {
        fsi__frl_get(job, t, &e);
        if (e.wide && c->wide < 0) c->wide = t;
        for (axis = 0; axis < job->l->dim; axis++) {
            const int u = fsi__frl_u(axis), v = fsi__frl_v(axis);
            c->room += (long long)(e.hi[u] - e.lo[u]) * (e.hi[v] - e.lo[v]);
        }
    }
}

/* ---- lines that cross an element --------------------------------------------------------------------------------- */

/* Edge functions of an element, seen along an axis, at a line: twice the areas of the triangles that the line makes
   with the edges opposite of the corners. at = area - bias, with bias 1 where an area of 0 becomes negative when the
   line is moved: the line crosses the element where no `at` is negative. du, dv: from one line to the next. */
typedef struct fsi__frl_edges {
    int64_t at[3], du[3], dv[3], bias[3], total;
    int sign;                  /* of the areas, before they were made positive */
} fsi__frl_edges;

/* Of the line through centres lo; 0: the element is seen edge on, no line crosses it. Moved by (e^a, e^b), a < b, an
   edge function changes by -e^a times the edge's v, then e^b times its u. */
static int fsi__frl_edges_of(const fsi__frl_element *e, int k, int axis, fsi__frl_edges *g)
{
    const int u = fsi__frl_u(axis), v = fsi__frl_v(axis);
    const int64_t cu = e->lo[u] * FSI__FRL_CELL + FSI__FRL_CELL / 2, cv = e->lo[v] * FSI__FRL_CELL + FSI__FRL_CELL / 2;
    int i;
    g->total = k == 2 ? e->p[1][u] - e->p[0][u] : (e->p[1][u] - e->p[0][u]) * (e->p[2][v] - e->p[0][v])
        - (e->p[1][v] - e->p[0][v]) * (e->p[2][u] - e->p[0][u]);
    g->sign = g->total > 0 ? 1 : -1;
    if (g->total == 0) return 0;
    g->total *= g->sign;
    for (i = 0; i < 3; i++) {
        const int64_t *a = e->p[(i + 1) % 3], *b = e->p[(i + 2) % 3];
        const int64_t eu = k == 2 ? 0 : g->sign * (b[u] - a[u]),
            ev = k == 3 ? g->sign * (b[v] - a[v]) : i == 0 ? g->sign : i == 1 ? -g->sign : 0;
        g->bias[i] = ev != 0 ? ev > 0 : eu < 0;
        g->at[i] = eu * (cv - a[v]) - ev * (cu - (k == 3 ? a[u] : e->p[1 - (i & 1)][u])) - g->bias[i];
        g->du[i] = -ev * FSI__FRL_CELL;
        g->dv[i] = eu * FSI__FRL_CELL;
    }
    return 1;
}

/* Where a line that crosses an element does so, between which centres. The weighted mean of the corners is exact to
   2^-20 units; where a centre is nearer than 2^-6, integers decide. */
static void fsi__frl_place(const fsi__frl_job *job, const fsi__frl_element *e, const fsi__frl_edges *g,
    const int64_t *at, int axis, int u, int v, fsi_front_crossing *c)
{
    const int64_t *p = e->p[0], low = p[axis] - FSI__FRL_CELL / 2 + FSI__FRL_CELL * ((int64_t)1 << 40);
    const int64_t base = low / FSI__FRL_CELL, n = job->l->n[axis];
    const double one = 1 / (double)g->total;
    const double w0 = (double)(at[0] + g->bias[0]) * one, w1 = (double)(at[1] + g->bias[1]) * one,
        w2 = (double)(at[2] + g->bias[2]) * one;
    const double along = ((double)(low - base * FSI__FRL_CELL) + w1 * (double)(e->p[1][axis] - p[axis])
        + w2 * (double)(e->p[2][axis] - p[axis])) / (double)FSI__FRL_CELL; /* in cells, from centre `base` on */
    const int64_t nearest = (int64_t)(along + 4096.5) - 4096;
    int64_t cell = (int64_t)(along + 4096) - 4096, first = base - ((int64_t)1 << 40);

    /* A centre d beyond the crossing has n . (d - p) of the sign of the normal's part along the axis. */
    if (fabs(along - (double)nearest) * (double)FSI__FRL_CELL < 1.0 / 64) {
        int64_t q[3];
        fsi__fr_int3 d;
        q[fsi__frl_u(axis)] = u * FSI__FRL_CELL + FSI__FRL_CELL / 2;
        q[fsi__frl_v(axis)] = job->l->dim == 3 ? v * FSI__FRL_CELL + FSI__FRL_CELL / 2 : p[2];
        q[axis] = (first + nearest) * FSI__FRL_CELL + FSI__FRL_CELL / 2;
        d.x = q[0];
        d.y = q[1];
        d.z = q[2];
        cell = nearest
            - (fsi__fr_side_moved(e->corner[0], e->corner[1], e->corner[2], d) == (axis == 1 ? -g->sign : g->sign));
    }
    {
        const int64_t whole = first + cell;
        double theta = along - (double)cell;
        theta = theta < 0 ? 0 : theta > 1 ? 1 : theta;
        c->cell = whole < -1 ? -1 : whole > n - 1 ? (int)(n - 1) : (int)whole;
        c->theta = (fsi_real)(theta + (double)(whole - c->cell));
    }
    c->weight[0] = (fsi_real)w0;
    c->weight[1] = (fsi_real)w1;
    c->weight[2] = (fsi_real)w2;
}

static void fsi__frl_find_task(void *arg, int chunk, int begin, int end)
{
    const fsi__frl_job *job = (const fsi__frl_job *)arg;
    fsi__frl_chunk *c = &job->im->chunk[chunk];
    fsi_front_crossing *hit = job->im->hit + c->first;
    fsi__frl_element e;
    fsi__frl_edges g;
    int t, axis, i, j, k;
    for (t = begin; t < end; t++) {
        fsi__frl_get(job, t, &e);
        for (axis = 0; axis < job->l->dim; axis++) {
            const int u = fsi__frl_u(axis), v = fsi__frl_v(axis);
            if (e.lo[u] >= e.hi[u] || e.lo[v] >= e.hi[v] || !fsi__frl_edges_of(&e, job->l->dim, axis, &g)) continue;

            /* The lines of its box, row by row. */
            for (j = e.lo[v]; j < e.hi[v]; j++) {
                int64_t at[3];
                for (k = 0; k < 3; k++) at[k] = g.at[k];
                for (i = e.lo[u]; i < e.hi[u]; i++) {
                    if ((at[0] | at[1] | at[2]) >= 0) {
                        fsi__frl_place(job, &e, &g, at, axis, i, j, hit);
                        hit->element = t;
                        hit->count = job->im->lines[axis] + i + job->l->n[u] * j;
                        hit++;
                    }
                    for (k = 0; k < 3; k++) at[k] += g.du[k];
                }
                for (k = 0; k < 3; k++) g.at[k] += g.dv[k];
            }
        }
    }
    c->count = (int)(hit - job->im->hit) - c->first;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Hits by line, those of a line in the order of elements. */
static void fsi__frl_sort_lines(fsi__frl_impl *im, int chunks)
{
    const int lines = im->lines[3];
    int c, h, i, sum = 0;
    memset(im->begin, 0, ((size_t)lines + 1) * sizeof *im->begin);
    for (c = 0; c < chunks; c++)
        for (h = im->chunk[c].first; h < im->chunk[c].first + im->chunk[c].count; h++) im->begin[im->hit[h].count]++;
    for (i = 0; i <= lines; i++) im->begin[i] = sum += im->begin[i];
    for (c = chunks - 1; c >= 0; c--)
        for (h = im->chunk[c].first + im->chunk[c].count - 1; h >= im->chunk[c].first; h--)
            im->order[--im->begin[im->hit[h].count]] = h;
}

static int fsi__frl_is_before(const fsi_front_crossing *a, const fsi_front_crossing *b)
{
    if (a->cell != b->cell) return a->cell < b->cell;
    if (a->theta < b->theta || a->theta > b->theta) return a->theta < b->theta;
    return a->element < b->element;
}

static void fsi__frl_line_task(void *arg, int chunk, int begin, int end)
{
    const fsi__frl_job *job = (const fsi__frl_job *)arg;
    const fsi__frl_impl *im = job->im;
    int l, i, j, gap;
    (void)chunk;
    for (l = begin; l < end; l++) {
        fsi_front_crossing *row = im->crossing + im->begin[l], one;
        const int count = im->begin[l + 1] - im->begin[l];
        for (i = 0; i < count; i++) row[i] = im->hit[im->order[im->begin[l] + i]];

        /* Shell's sort: few rows mostly. */
        for (gap = 1; gap < count / 9; gap = 3 * gap + 1) continue;
        for (; gap > 0; gap /= 3)
            for (i = gap; i < count; i++) {
                one = row[i];
                for (j = i; j >= gap && fsi__frl_is_before(&one, &row[j - gap]); j -= gap) row[j] = row[j - gap];
                row[j] = one;
            }
        for (i = count - 1; i >= 0; i--)
            row[i].count = i + 1 < count && row[i + 1].cell == row[i].cell ? row[i + 1].count + 1 : 1;
    }
}

/* Lines of axis 0 are rows of cells. */
static void fsi__frl_inside_task(void *arg, int chunk, int begin, int end)
{
    const fsi__frl_job *job = (const fsi__frl_job *)arg;
    const fsi__frl_impl *im = job->im;
    const int n = job->l->n[0];
    int l, r;
    (void)chunk;
    for (l = begin; l < end; l++) {
        unsigned char *cell = im->inside + (size_t)l * (size_t)n;
        int from = 0, odd = 0;
        for (r = im->begin[l]; r < im->begin[l + 1]; r++) {
            const int to = im->crossing[r].cell + 1;
            if (to > from) memset(cell + from, odd, (size_t)(to - from));
            from = to;
            odd ^= 1;
        }
        memset(cell + from, odd, (size_t)(n - from));
    }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void fsi__frl_publish(fsi_front_lines *l)
{
    const fsi__frl_impl *im = (const fsi__frl_impl *)l->impl;
    int axis;
    l->inside = im->inside;
    l->crossing = im->crossing;
    for (axis = 0; axis < l->dim; axis++) l->begin[axis] = im->begin + im->lines[axis];
}

static int fsi__frl_is_far(const void *arg, int i)
{
    const fsi__frl_job *job = (const fsi__frl_job *)arg;
    const double most = FSI__FRL_FARTHEST * (double)job->l->dx;
    const fsi_vec3 x = job->f->position[i], o = job->l->origin;
    return !(fabs((double)x.x - (double)o.x) <= most && fabs((double)x.y - (double)o.y) <= most
        && fabs((double)x.z - (double)o.z) <= most);
}

/* Vertices on the lattice, and how many lines go through the boxes of elements: room for their crossings. */
static fsi_status fsi__frl_prepare(fsi__frl_job *job, const char *fn)
{
    fsi_context *context = job->l->context;
    const fsi__frl_surface *f = job->f;
    fsi__frl_impl *im = job->im;
    const int chunks = fsi__chunks(f->element_count, FSI__FRL_GRAIN);
    long long room = 0;
    int i;
    if (!fsi_v3_is_finite(job->l->origin))
        return fsi__fail(context, FSI_ERROR_NAN, fn, -1, 0, "the origin of the lines is not finite");
    if (fsi__count_where(context, f->vertex_count, fsi__frl_is_far, job, &i) > 0) {
        if (!fsi_v3_is_finite(f->position[i]))
            return fsi__fail(context, FSI_ERROR_NAN, fn, i, 0, "the position of vertex %d is not finite", i);
        return fsi__fail(context, FSI_ERROR_LIMIT, fn, i, 0, "vertex %d is more than 2^30 cells from the origin", i);
    }
    FSI__TRY(fsi__room_in(context, &im->x, sizeof *im->x, 0, &im->x_room, f->vertex_count, fn));
    FSI__TRY(fsi__room_in(context, &im->chunk, sizeof *im->chunk, 0, &im->chunk_room, chunks, fn));
    fsi__parallel_work(context, f->vertex_count, FSI__FRL_GRAIN, 5.0 * f->vertex_count, fsi__frl_snap_task, job);
    fsi__parallel_work(context, f->element_count, FSI__FRL_GRAIN, 10.0 * f->element_count, fsi__frl_room_task, job);
    for (i = 0; i < chunks; i++) {
        fsi__frl_chunk *c = &im->chunk[i];
        if (c->wide >= 0)
            return fsi__fail(context, FSI_ERROR_LIMIT, fn, c->wide, 0, "element %d is wider than 1024 cells", c->wide);
        if (room + c->room > 0x7ffffffe)
            return fsi__fail(context, FSI_ERROR_LIMIT, fn, i * FSI__FRL_GRAIN, (double)room,
                "lines cross elements more often than fits, at element %d", i * FSI__FRL_GRAIN);
        c->first = (int)room;
        room += c->room;
    }
    return fsi__room_in(context, &im->hit, sizeof *im->hit, 0, &im->hit_room, (int)room, fn);
}

FSI_API fsi_status fsi__frl_cross(fsi_front_lines *l, const fsi__frl_surface *f, const char *fn)
{
    fsi__frl_impl *im;
    fsi__frl_job job;
    fsi_status status;
    double start;
    int i, chunks, count = 0;
    start = fsi__now(l->context);
    im = (fsi__frl_impl *)l->impl;
    job.l = l;
    job.im = im;
    job.f = f;

    /* Hits, then room for rows: behind that nothing fails. */
    FSI__TRY(fsi__frl_prepare(&job, fn));
    fsi__parallel_work(l->context, f->element_count, FSI__FRL_GRAIN, 40.0 * f->element_count, fsi__frl_find_task, &job);
    chunks = fsi__chunks(f->element_count, FSI__FRL_GRAIN);
    for (i = 0; i < chunks; i++) count += im->chunk[i].count;
    FSI__TRY(fsi__room_in(l->context, &im->order, sizeof *im->order, 0, &im->order_room, count, fn));
    status = fsi__room_in(l->context, &im->crossing, sizeof *im->crossing, l->crossing_count, &im->crossing_room, count,
        fn);
    fsi__frl_publish(l); /* rows may have moved */
    FSI__TRY(status);

    fsi__frl_sort_lines(im, chunks);
    l->crossing_count = count;
    fsi__parallel_work(l->context, im->lines[3], FSI__FRL_GRAIN, 5.0 * im->lines[3] + 20.0 * count, fsi__frl_line_task,
        &job);
    fsi__parallel_work(l->context, im->lines[1], FSI__FRL_GRAIN / 8, 0.1 * l->n[0] * im->lines[1], fsi__frl_inside_task,
        &job);
    l->seconds = fsi__now(l->context) - start;
    return FSI_OK;
}

FSI_API int fsi__frl_direction(const fsi_front_lines *l, const fsi__frl_surface *f, int element, int axis)
{
    const fsi__frl_impl *im = (const fsi__frl_impl *)l->impl;
    const int *c = f->elements + l->dim * element;
    const fsi__fr_int3 p = im->x[c[0]], q = im->x[c[1]];
    int64_t n; /* of the normal, along the axis */
    if (l->dim == 2) n = axis == 0 ? p.y - q.y : q.x - p.x;
    else {
        const fsi__fr_int3 r = im->x[c[2]];
        if (axis == 0) n = (q.y - p.y) * (r.z - p.z) - (q.z - p.z) * (r.y - p.y);
        else if (axis == 1) n = (q.z - p.z) * (r.x - p.x) - (q.x - p.x) * (r.z - p.z);
        else n = (q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x);
    }
    return n > 0 ? 1 : -1;
}

FSI_API const fsi_front_crossing *fsi_front_first_crossing(const fsi_front_lines *l, int axis, int i, int j, int k)
{
    int at[3], line, lo, hi;
    if (fsi__frl_check(l) != FSI_OK || axis < 0 || axis >= l->dim || i < 0 || i >= l->n[0] || j < 0 || j >= l->n[1]
        || k < 0 || k >= l->n[2]) return NULL;
    at[0] = i;
    at[1] = j;
    at[2] = k;
    if (at[axis] >= l->n[axis] - 1) return NULL;
    line = at[fsi__frl_u(axis)] + l->n[fsi__frl_u(axis)] * at[fsi__frl_v(axis)];
    lo = l->begin[axis][line];
    hi = l->begin[axis][line + 1];
    while (lo < hi) {
        const int middle = lo + (hi - lo) / 2;
        if (l->crossing[middle].cell < at[axis]) lo = middle + 1;
        else hi = middle;
    }
    return lo < l->begin[axis][line + 1] && l->crossing[lo].cell == at[axis] ? &l->crossing[lo] : NULL;
}

FSI__COLD_BEGIN

FSI_API fsi_front_lines_desc fsi_front_default_lines_desc(void)
{
    fsi_front_lines_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('x', fsi_front_lines_desc);
    d.dim = 3;
    d.n[0] = d.n[1] = d.n[2] = 1;
    return d;
}

static fsi_status fsi__frl_check_desc(const fsi_front_lines_desc *d, const char *fn)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_front_lines_desc, dim, FSI__INT, 2, 3, 0), FSI__FINITE(fsi_front_lines_desc, origin),
        FSI__FIELD(fsi_front_lines_desc, dx, FSI__REAL, 1e-9, 1e9, 0)
    };
    const fsi__where at = { fn, "desc.", -1, 3 };
    double cells = 1;
    int i;
    FSI__TRY(FSI__CHECK_TABLE(d->context, &at, d, rows));
    for (i = 0; i < 3; i++) {
        if (d->n[i] < 1 || d->n[i] > 1 << 20 || (i == 2 && d->dim == 2 && d->n[i] != 1))
            return fsi__fail(d->context, FSI_ERROR_ARGUMENT, fn, i, d->n[i], "desc.n[%d] is %d, must be 1%s", i,
                d->n[i], i == 2 && d->dim == 2 ? " in 2D" : " to 2^20");
        cells *= d->n[i];
    }
    if (cells > 2147483647.0)
        return fsi__fail(d->context, FSI_ERROR_LIMIT, fn, -1, cells, "desc.n makes %.0f cells, more than 2^31 - 1",
            cells);
    return FSI_OK;
}

FSI_API fsi_status fsi_front_create_lines(fsi_front_lines **out, const fsi_front_lines_desc *desc)
{
    static const char fn[] = "fsi_front_create_lines";
    fsi_front_lines *l;
    fsi__frl_impl *im;
    double lines = 0;
    int axis;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!desc) return FSI_ERROR_ARGUMENT;
    if (desc->cookie != FSI__COOKIE('x', fsi_front_lines_desc) || !fsi__is_context(desc->context))
        return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__frl_check_desc(desc, fn));
    for (axis = 0; axis < desc->dim; axis++) lines += (double)desc->n[fsi__frl_u(axis)] * desc->n[fsi__frl_v(axis)];
    if (lines > 2147483646.0)
        return fsi__fail(desc->context, FSI_ERROR_LIMIT, fn, -1, lines, "desc.n makes %.0f lines, too many", lines);

    /* All of it in one block, arrays by themselves. */
    l = (fsi_front_lines *)fsi__alloc(desc->context, 1, sizeof *l + sizeof *im);
    if (!l) return fsi__fail(desc->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for lines");
    im = (fsi__frl_impl *)(void *)(l + 1);
    im->own_context = fsi_default_context();
    l->cookie = FSI__COOKIE('x', fsi_front_lines);
    l->context = desc->context ? desc->context : &im->own_context;
    l->dim = desc->dim;
    l->dx = desc->dx;
    l->origin = desc->origin;
    l->impl = im;
    for (axis = 0; axis < 3; axis++) l->n[axis] = desc->n[axis];
    for (axis = 0; axis < 3; axis++)
        im->lines[axis + 1] = im->lines[axis] + (axis < l->dim ? l->n[fsi__frl_u(axis)] * l->n[fsi__frl_v(axis)] : 0);
    im->inside = (unsigned char *)fsi__alloc(l->context, (size_t)l->n[0] * (size_t)l->n[1], (size_t)l->n[2]);
    im->begin = (int *)fsi__alloc(l->context, (size_t)im->lines[3] + 1, sizeof *im->begin);
    if (!im->inside || !im->begin) {
        fsi__fail(desc->context, FSI_ERROR_MEMORY, fn, -1, lines, "no memory for %.0f lines", lines);
        fsi_front_destroy_lines(l);
        return FSI_ERROR_MEMORY;
    }
    fsi__frl_publish(l);
    *out = l;
    return FSI_OK;
}

FSI_API void fsi_front_destroy_lines(fsi_front_lines *l)
{
    fsi__frl_impl *im;
    if (fsi__frl_check(l) != FSI_OK) return;
    im = (fsi__frl_impl *)l->impl;
    fsi__free(l->context, im->inside, (size_t)l->n[0] * (size_t)l->n[1], (size_t)l->n[2]);
    fsi__free(l->context, im->begin, (size_t)im->lines[3] + 1, sizeof *im->begin);
    fsi__free(l->context, im->crossing, (size_t)im->crossing_room, sizeof *im->crossing);
    fsi__free(l->context, im->x, (size_t)im->x_room, sizeof *im->x);
    fsi__free(l->context, im->chunk, (size_t)im->chunk_room, sizeof *im->chunk);
    fsi__free(l->context, im->hit, (size_t)im->hit_room, sizeof *im->hit);
    fsi__free(l->context, im->order, (size_t)im->order_room, sizeof *im->order);
    l->cookie = 0;
    fsi__free(l->context == &im->own_context ? NULL : l->context, l, 1, sizeof *l + sizeof *im);
}

FSI_API const fsi_error *fsi_front_lines_error(const fsi_front_lines *l)
{
    return fsi__error_of(fsi__frl_check(l) == FSI_OK ? l->context : NULL);
}

FSI__COLD_END
FSI__STRICT_END

#endif /* once */
#endif /* implementation */
