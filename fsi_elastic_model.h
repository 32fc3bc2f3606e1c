/* fsi_elastic_model.h - elastic volumes at rest: simplices, a cage around a closed surface, subspaces of motion.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_elastic.h includes this file. Its front page says how a body is made:

      fsi_elastic_body_desc b = fsi_elastic_default_body_desc();
      b.surface = jelly;                            // a closed mesh; or vertices and tets of your own
      b.handles = 30;                               // 0: all vertices move by themselves

   WHAT IS IN HERE (search for >>), all of it for fsi's own headers
      >>stages         the rest shape, the cage, points located in it; distances along it and weights of handles;
                       rows, which map the unknowns to a point or to a deformation gradient
      >>shape  >>cage  >>location  >>distances  >>rows   how
   WHAT IT DOES NOT DO
      No meshing that follows the surface: the cage is a lattice, cells at the surface are filled in part.
   MACROS: those of fsi.h.
   UNITS: SI; in 2D areas take the place of volumes, and triangles that of tetrahedra.
   PRECISION: all in double.
*/
#ifndef FSI_ELASTIC_MODEL_H
#define FSI_ELASTIC_MODEL_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_mesh.h"

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* A body at rest: a mesh of simplices with dim + 1 corners. */
typedef struct fsi__el_shape {
    int dim, vertex_count, element_count;
    double *x;        /* 3 * vertex_count [m]; z = 0 in 2D */
    int *element;     /* (dim + 1) * element_count, positive volumes */
    double *volume;   /* element_count: filled volume of each simplex [m^dim] */
    int *material;    /* element_count */
    int *first, *edge; /* neighbours of vertex v along edges: edge[first[v]] .. edge[first[v + 1] - 1], ascending */
    double size;      /* diagonal of the bounding box [m] */
    double mass_volume; /* sum of volume[] */
    /* Search tree of the elements; leaf item i is element order[i]. */
    fsi__node *nodes;
    int *order, node_count;
    fsi__arena memory, links; /* memory: of the other arrays; links: of edge and nodes */
} fsi__el_shape;

/* Copies the caller's simplices. Checked: indices, NaN, inverted or flat elements (named), vertices without an element.
   material may be NULL (all 0). Errors: ARGUMENT, NAN, LIMIT, MESH, MEMORY; *s is then empty. */
FSI_API fsi_status fsi__el_shape_take(fsi__el_shape *s, fsi_context *context, const char *fn, int dim,
    const fsi_vec3 *vertices, int vertex_count, const int *elements, int element_count, const int *material,
    int material_count);
/* Material of a point x of the body at rest [m]: an index into the body's materials. */
typedef int fsi_elastic_material_fn(void *user, fsi_vec3 x);
/* A cage around a closed mesh of triangles (2D: segments): cubes, `resolution` along its longest side, cut into
   simplices (Kuhn). material: the caller's function, NULL: all 0. Errors: MESH (too thin for the cage, or cut in
   parts), LIMIT, MEMORY; *s is then empty. */
FSI_API fsi_status fsi__el_shape_cage(fsi__el_shape *s, fsi_context *context, const char *fn, const fsi_mesh *surface,
    int resolution, fsi_elastic_material_fn *material, void *user, int material_count);
FSI_API void fsi__el_shape_free(fsi__el_shape *s, fsi_context *context); /* leaves it empty */
/* Corners of an element. */
FSI_FN const int *fsi__el_corners(const fsi__el_shape *s, int e)
{
    return s->element + (size_t)e * (size_t)(s->dim + 1);
}
/* Gradients of the barycentric weights: grad[k] of corner k [1/m]; returns the signed volume of the whole simplex. */
FSI_API double fsi__el_gradients(const fsi__el_shape *s, int e, fsi__d3 *grad);
/* The element that contains a point at rest; for a point outside, a close one with the largest least weight. bary: its
   dim + 1 barycentric weights, some of them negative for a point outside. */
FSI_API int fsi__el_locate(const fsi__el_shape *s, fsi__d3 x, double *bary);

/* Weights of `count` handles at each vertex: those of vertex v are entries first[v] .. first[v + 1] - 1, ascending
   handles; they add to 1. */
typedef struct fsi__el_weights {
    int count, *first, *handle, *center; /* center[h]: the vertex at which handle h lies */
    double *weight, reach;               /* [m] */
    fsi__arena memory;
} fsi__el_weights;
/* Handles at vertices chosen by farthest-point sampling, at most one for each vertex; weights (1 - (d/r)^2)^2 over
   their sum, r = reach times the largest distance of a vertex from its nearest handle (Brandt, Eisemann and Hildebrandt
   2018, with other distances, see >>distances), then centred, by which some are negative. Errors: MEMORY. */
FSI_API fsi_status fsi__el_weights_make(fsi__el_weights *w, fsi_context *context, const char *fn,
    const fsi__el_shape *s, int count, double reach);
FSI_API void fsi__el_weights_free(fsi__el_weights *w, fsi_context *context); /* leaves it empty */

/* Farthest-point sampling of vertices by the distance of >>distances. Each array has an entry for each vertex. */
typedef struct fsi__el_near {
    const fsi__el_shape *shape;
    double *nearest;          /* distance to the nearest chosen vertex [m] */
    int *owner, *chosen;      /* owner: index of the nearest chosen vertex in `chosen` */
    double *path;             /* its length from the last source; HUGE_VAL: not reached */
    int *heap, *where, size;  /* the queue; where: index in it, -1: not in it */
    int *reached, reached_count;
    fsi__arena memory;
} fsi__el_near;
/* Nothing is chosen yet; s must outlive it. Errors: MEMORY. */
FSI_API fsi_status fsi__el_near_begin(fsi__el_near *p, fsi_context *context, const char *fn, const fsi__el_shape *s);
FSI_API void fsi__el_near_free(fsi__el_near *p, fsi_context *context);
/* Chooses up to `count` vertices, each the farthest from all before it, the first the one farthest from the centre.
   allowed: vertices with -1 are neither chosen nor on a path; NULL: all are allowed. Returns how many were chosen. */
FSI_API int fsi__el_near_choose(fsi__el_near *p, const int *allowed, int count);

/* Sparse rows over the unknowns of a body. Row r has the entries start[r] .. start[r + 1] - 1; entry i belongs to
   unknown dof[i] and has `width` coefficients at value + i * width. */
typedef struct fsi__el_rows {
    int count, width, room_rows, *start, *dof;
    size_t room;      /* entries that fit */
    double *value;
} fsi__el_rows;
/* No rows, of `width` coefficients an entry. Errors: MEMORY. */
FSI_API fsi_status fsi__el_rows_begin(fsi__el_rows *r, fsi_context *context, const char *fn, int width);
FSI_API void fsi__el_rows_free(fsi__el_rows *r, fsi_context *context);
/* Room for so many rows and entries; the rows are kept. Errors: MEMORY, LIMIT. */
FSI_API fsi_status fsi__el_rows_room(fsi__el_rows *r, fsi_context *context, const char *fn, int rows, size_t entries);
/* Adds the row u of a point x = u q in an element; width 1. w NULL: the unknowns are the vertices; else dim + 1 for
   each handle, as in (E6) of docs/elastic.md. Errors: MEMORY. */
FSI_API fsi_status fsi__el_rows_point(fsi__el_rows *r, fsi_context *context, const char *fn, const fsi__el_shape *s,
    const fsi__el_weights *w, int element, const double *bary);
/* Adds the row h of an element, whose deformation gradient is F = sum q h^T; width 3. Errors: MEMORY. */
FSI_API fsi_status fsi__el_rows_element(fsi__el_rows *r, fsi_context *context, const char *fn, const fsi__el_shape *s,
    const fsi__el_weights *w, int element);

/* Adds the sum over k of weight[k] times row node[k] of `from`, which may be r itself; width 1. Errors: MEMORY. */
FSI_API fsi_status fsi__el_rows_join(fsi__el_rows *r, fsi_context *context, const char *fn, const fsi__el_rows *from,
    int nodes, const int *node, const double *weight);

/* Rows of width 1 as sums over all of them read them, in blocks of FSI__EL_BLOCK. With handles, where a row has dozens
   of entries, those of a block share a list of unknowns: block b has the entries start[b] .. start[b + 1] - 1; entry i
   belongs to unknown dof[i], and value[FSI__EL_BLOCK * i + l] is the coefficient of row FSI__EL_BLOCK * b + l, 0 where
   that row lacks it. Rows of a few entries stay as they are: value is NULL. */
#define FSI__EL_BLOCK 4 /* sums of as many rows fit into the registers of SSE2 */
typedef struct fsi__el_packed {
    int count, dofs, *start, *dof; /* count: rows */
    double *value;
    double *wide;     /* the unknowns, four numbers each: fsi__el_packed_load */
    fsi__arena memory;
} fsi__el_packed;
/* All rows of r; dofs: unknowns; share: 1: they have handles. Errors: MEMORY. */
FSI_API fsi_status fsi__el_pack(fsi__el_packed *p, fsi_context *context, const char *fn, const fsi__el_rows *r,
    int dofs, int share);
FSI_API void fsi__el_packed_free(fsi__el_packed *p, fsi_context *context); /* leaves it empty */

/* The most handles of a body: all of them may reach one element. */
#define FSI__EL_HANDLES 1000

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_ELASTIC_MODEL_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_ELASTIC_MODEL_IMPLEMENTATION
#define FSI_ELASTIC_MODEL_IMPLEMENTATION
#endif
#ifdef FSI_ELASTIC_MODEL_IMPLEMENTATION
#ifndef FSI_ELASTIC_MODEL_IMPLEMENTATION_DONE
#define FSI_ELASTIC_MODEL_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_mesh.h"
#include <stdlib.h>

FSI__STRICT_BEGIN

FSI__COLD_BEGIN

/* ---- >>shape ------------------------------------------------------------------------------------------------------

   A simplex with corners x_0 .. x_d. The edges e_k = x_k - x_0 are the columns of E; the rows of E^-1 are the gradients
   of the barycentric weights 1 .. d, that of weight 0 is minus their sum; the volume is det E / d!. */

FSI_API double fsi__el_gradients(const fsi__el_shape *s, int e, fsi__d3 *grad)
{
    const int *c = fsi__el_corners(s, e);
    const fsi__d3 o = fsi__d3_at(s->x + 3 * (size_t)c[0]), a = fsi__d3_sub(fsi__d3_at(s->x + 3 * (size_t)c[1]), o),
        b = fsi__d3_sub(fsi__d3_at(s->x + 3 * (size_t)c[2]), o);
    const fsi__d3 d = s->dim == 3 ? fsi__d3_sub(fsi__d3_at(s->x + 3 * (size_t)c[3]), o) : fsi__d3_make(0, 0, 1);
    const double det = fsi__d3_dot(a, fsi__d3_cross(b, d));
    grad[1] = fsi__d3_over(fsi__d3_cross(b, d), det);
    grad[2] = fsi__d3_over(fsi__d3_cross(d, a), det);
    grad[0] = fsi__d3_scale(fsi__d3_add(grad[1], grad[2]), -1);
    if (s->dim == 3) {
        grad[3] = fsi__d3_over(fsi__d3_cross(a, b), det);
        grad[0] = fsi__d3_sub(grad[0], grad[3]);
    }
    return s->dim == 3 ? det / 6 : det / 2;
}

static int fsi__el_ascending(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Neighbours along edges, each once and ascending: sets s->first, and writes the content of s->edge to pairs. Uses
   `first` as a counter meanwhile. */
static void fsi__el_find_edges(fsi__el_shape *s, int *pairs)
{
    const int corners = s->dim + 1, n = s->vertex_count;
    int e, i, j, v, k, kept;
    memset(s->first, 0, ((size_t)n + 1) * sizeof(int));

    /* Each vertex' neighbours, with repetitions: counted, then written. */
    for (i = 0; i < corners * s->element_count; i++) s->first[s->element[i] + 1] += s->dim;
    for (v = 0; v < n; v++) s->first[v + 1] += s->first[v];
    for (e = 0; e < s->element_count; e++) for (i = 0; i < corners; i++) for (j = 0; j < corners; j++)
        if (i != j) pairs[s->first[fsi__el_corners(s, e)[i]]++] = fsi__el_corners(s, e)[j];
    for (v = n; v > 0; v--) s->first[v] = s->first[v - 1];
    s->first[0] = 0;

    /* They are sorted, and repetitions removed. */
    for (v = 0, kept = 0; v < n; v++) {
        const int begin = s->first[v], end = s->first[v + 1];
        int last = -1;
        qsort(pairs + begin, (size_t)(end - begin), sizeof(int), fsi__el_ascending);
        s->first[v] = kept;
        for (k = begin; k < end; k++) if (pairs[k] != last) pairs[kept++] = last = pairs[k];
    }
    s->first[n] = kept;
}

/* Arrays for so many vertices and elements. */
static void fsi__el_shape_layout(fsi__el_shape *s, int vertices, int elements)
{
    const size_t n = (size_t)vertices, m = (size_t)elements, corners = (size_t)s->dim + 1;
    s->memory.used = 0;
    s->x = (double *)fsi__take(&s->memory, 3 * n, sizeof(double));
    s->element = (int *)fsi__take(&s->memory, corners * m, sizeof(int));
    s->volume = (double *)fsi__take(&s->memory, m, sizeof(double));
    s->material = (int *)fsi__take(&s->memory, m, sizeof(int));
    s->first = (int *)fsi__take(&s->memory, n + 1, sizeof(int));
    s->order = (int *)fsi__take(&s->memory, m, sizeof(int));
}

static void fsi__el_links_layout(fsi__el_shape *s)
{
    s->links.used = 0;
    s->edge = (int *)fsi__take(&s->links, (size_t)s->first[s->vertex_count], sizeof(int));
    s->nodes = (fsi__node *)fsi__take(&s->links, (size_t)s->node_count, sizeof(fsi__node));
}

static fsi_status fsi__el_shape_reserve(fsi__el_shape *s, fsi_context *context, const char *fn, int vertices,
    int elements)
{
    memset(&s->memory, 0, sizeof s->memory);
    memset(&s->links, 0, sizeof s->links);
    fsi__el_shape_layout(s, vertices, elements);
    if (!fsi__arena_reserve(context, &s->memory, s->memory.used))
        return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, elements, "no memory for %d elements", elements);
    fsi__el_shape_layout(s, vertices, elements);
    s->vertex_count = vertices;
    s->element_count = elements;
    return FSI_OK;
}

/* Derives size, edges and search tree from x, element and volume. Errors: MEMORY. */
static fsi_status fsi__el_shape_finish(fsi__el_shape *s, fsi_context *context, const char *fn)
{
    const size_t pairs = (size_t)(s->dim + 1) * (size_t)s->dim * (size_t)s->element_count;
    fsi__arena scratch = { NULL, 0, 0 };
    fsi_box3 all = fsi_box3_empty(), *boxes;
    fsi__node *nodes;
    int e, k, *pair, pass, kept;

    /* Scratch memory: the size is summed in the first pass, the arrays are set in the second. */
    for (pass = 0, boxes = NULL, pair = NULL, nodes = NULL; pass < 2; pass++) {
        boxes = (fsi_box3 *)fsi__take(&scratch, (size_t)s->element_count, sizeof(fsi_box3));
        nodes = (fsi__node *)fsi__take(&scratch, 2 * (size_t)s->element_count, sizeof(fsi__node));
        pair = (int *)fsi__take(&scratch, pairs, sizeof(int));
        if (pass == 0 && !fsi__arena_reserve(context, &scratch, scratch.used))
            return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, s->element_count, "no memory for %d elements",
                s->element_count);
    }

    /* Boxes of the elements, enlarged by 1e-6 sizes, as fsi_real may be float. */
    for (e = 0; e < s->element_count; e++) {
        boxes[e] = fsi_box3_empty();
        for (k = 0; k <= s->dim; k++)
            boxes[e] = fsi_box3_grow(boxes[e], fsi__d3_real(fsi__d3_at(s->x + 3 * (size_t)fsi__el_corners(s, e)[k])));
        all = fsi_box3_join(all, boxes[e]);
    }
    s->size = fsi__d3_norm(fsi__d3_diff(all.hi, all.lo));
    for (e = 0; e < s->element_count; e++) boxes[e] = fsi_box3_inflate(boxes[e], (fsi_real)(1e-6 * s->size));

    /* Search tree, edges and the sum of volumes. */
    s->node_count = fsi__plant(boxes, s->element_count, s->order, nodes);
    fsi__el_find_edges(s, pair);
    for (e = 0, s->mass_volume = 0; e < s->element_count; e++) s->mass_volume += s->volume[e];

    /* Tree and edges are copied from the scratch memory to arrays of their size. */
    fsi__el_links_layout(s);
    kept = fsi__arena_reserve(context, &s->links, s->links.used);
    if (kept) {
        fsi__el_links_layout(s);
        memcpy(s->edge, pair, (size_t)s->first[s->vertex_count] * sizeof(int));
        memcpy(s->nodes, nodes, (size_t)s->node_count * sizeof(fsi__node));
    }
    fsi__arena_free(context, &scratch);
    return kept ? FSI_OK : fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, s->element_count, "no memory for %d elements",
                                     s->element_count);
}

FSI_API void fsi__el_shape_free(fsi__el_shape *s, fsi_context *context)
{
    fsi__arena_free(context, &s->memory);
    fsi__arena_free(context, &s->links);
    memset(s, 0, sizeof *s);
}

static fsi_status fsi__el_check_given(fsi__el_shape *s, fsi_context *context, const char *fn, const int *material,
    int material_count)
{
    const char *noun = s->dim == 3 ? "tetrahedron" : "triangle";
    fsi__d3 grad[4];
    fsi_box3 box = fsi_box3_empty();
    double size;
    int e, k;
    for (k = 0; k < s->vertex_count; k++) box = fsi_box3_grow(box, fsi__d3_real(fsi__d3_at(s->x + 3 * (size_t)k)));
    size = fsi__d3_norm(fsi__d3_diff(box.hi, box.lo));
    for (e = 0; e < s->element_count; e++) {
        s->volume[e] = fsi__el_gradients(s, e, grad);
        if (!(s->volume[e] > 1e-12 * pow(size, s->dim) / s->element_count))
            return fsi__fail(context, FSI_ERROR_MESH, fn, e, s->volume[e], "%s %d is %s (volume %g)", noun, e,
                s->volume[e] < 0 ? "inverted" : "flat", s->volume[e]);
        s->material[e] = material ? material[e] : 0;
        if (s->material[e] < 0 || s->material[e] >= material_count)
            return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, e, s->material[e], "%s %d has material %d of %d", noun, e,
                s->material[e], material_count);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi__el_shape_take(fsi__el_shape *s, fsi_context *context, const char *fn, int dim,
    const fsi_vec3 *vertices, int vertex_count, const int *elements, int element_count, const int *material,
    int material_count)
{
    const int corners = dim + 1;
    const char *noun = dim == 3 ? "tetrahedron" : "triangle";
    fsi_status status;
    int i, v;
    memset(s, 0, sizeof *s);
    s->dim = dim;

    /* Counts, indices and coordinates are checked. */
    if (!vertices || !elements || vertex_count < corners || element_count < 1)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, element_count,
            "a body needs vertices and elements: %d and %d are given", vertex_count, element_count);
    if (element_count > 50000000 || vertex_count > 100000000) return fsi__fail(context, FSI_ERROR_LIMIT, fn, -1,
        element_count, "%d elements are too many, the most is 50000000", element_count);
    for (i = 0; i < corners * element_count; i++) if (elements[i] < 0 || elements[i] >= vertex_count)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, i / corners, elements[i],
            "%s %d names vertex %d, but there are %d vertices", noun, i / corners, elements[i], vertex_count);
    for (v = 0; v < vertex_count; v++) {
        if (!fsi_v3_is_finite(vertices[v]))
            return fsi__fail(context, FSI_ERROR_NAN, fn, v, 0, "vertex %d is not finite", v);
        if (fsi__d3_norm(fsi__d3_of(vertices[v])) > 1e9)
            return fsi__fail(context, FSI_ERROR_LIMIT, fn, v, 0, "vertex %d lies more than 1e9 m from the origin", v);
    }

    /* Elements and vertices are copied. */
    FSI__TRY(fsi__el_shape_reserve(s, context, fn, vertex_count, element_count));
    memcpy(s->element, elements, (size_t)corners * (size_t)element_count * sizeof(int));
    for (v = 0; v < vertex_count; v++) {
        fsi__d3_put(s->x + 3 * (size_t)v, fsi__d3_of(vertices[v]));
        if (dim == 2) s->x[3 * (size_t)v + 2] = 0;
    }

    /* Volumes and materials are checked, edges and search tree are made; each vertex needs an element. */
    status = fsi__el_check_given(s, context, fn, material, material_count);
    if (status == FSI_OK) status = fsi__el_shape_finish(s, context, fn);
    for (v = 0; status == FSI_OK && v < vertex_count; v++) if (s->first[v] == s->first[v + 1])
        status = fsi__fail(context, FSI_ERROR_MESH, fn, v, 0, "vertex %d belongs to no %s", v, noun);
    if (status != FSI_OK) fsi__el_shape_free(s, context);
    return status;
}

/* ---- >>cage -------------------------------------------------------------------------------------------------------

   A lattice of cubes over the surface's box, a cell wider on each side. A cube belongs to the cage when some of it is
   inside the surface, or the surface passes through it. Kuhn's subdivision: a cube is cut into d! simplices, one for
   each order p of the axes, with the corners o, o + e_p0, o + e_p0 + e_p1, ...; it contains the points with
   x_p0 >= x_p1 >= x_p2. Neighbouring cubes have the same diagonals on their common face. The filled fraction of a
   simplex is that of its probes that are inside, FSI__EL_PROBES of them along each side of its cube. */

#define FSI__EL_PROBES 4
#define FSI__EL_LEAST_FILL 0.1 /* least filled fraction: a smaller one makes a simplex too light and soft */

typedef struct fsi__el_cage {
    const fsi_mesh *surface;
    int dim, n[3];            /* cells */
    double a;                 /* side of a cell [m] */
    fsi__d3 lo;
    unsigned char *cell;      /* 0 outside, 1 at the surface, 2 inside */
    double *fill;             /* filled fractions of the dim! simplices of a cell at the surface, by slot */
    int *slot, slots;
    int *corner;              /* lattice point -> vertex, -1: none */
} fsi__el_cage;

/* Orders of the axes, even permutations first. Simplices of odd ones need two corners swapped to be positive. */
static const int fsi__el_kuhn[6][3] = { { 0, 1, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 0, 2, 1 }, { 2, 1, 0 }, { 1, 0, 2 } };
static const int fsi__el_kuhn_2d[2][3] = { { 0, 1, 2 }, { 1, 0, 2 } };

static fsi__d3 fsi__el_cell_at(const fsi__el_cage *c, int i, double fx, double fy, double fz)
{
    const int x = i % c->n[0], y = i / c->n[0] % c->n[1], z = i / c->n[0] / c->n[1];
    return fsi__d3_make(c->lo.x + (x + fx) * c->a, c->lo.y + (y + fy) * c->a,
        c->dim == 3 ? c->lo.z + (z + fz) * c->a : 0);
}

/* The simplex of a cube that contains the point (x, y, z), 0 to 1 each: given by the order of its coordinates. */
static int fsi__el_kuhn_of(int dim, double x, double y, double z)
{
    const double p[3] = { x, y, z };
    int k;
    if (dim == 2) return x >= y ? 0 : 1;
    for (k = 0; k < 5; k++)
        if (p[fsi__el_kuhn[k][0]] >= p[fsi__el_kuhn[k][1]] && p[fsi__el_kuhn[k][1]] >= p[fsi__el_kuhn[k][2]]) break;
    return k;
}

/* Marks the cells that faces cross, by sample points half a cell apart. They lie 1e-5 cells within the solid and the
   rim of the face: a face on a plane of the lattice must not add cells beyond it, which would weigh FSI__EL_LEAST_FILL
   of full ones. */
static void fsi__el_mark_surface(fsi__el_cage *c)
{
    const fsi_mesh *m = c->surface;
    const double within = 1e-5 * c->a;
    int f, i, j;
    for (f = 0; f < m->face_count; f++) {
        const int *v = m->faces + (size_t)m->corners * (size_t)f;
        const fsi__d3 o = fsi__d3_of(m->vertices[v[0]]), a = fsi__d3_sub(fsi__d3_of(m->vertices[v[1]]), o),
            b = m->corners == 3 ? fsi__d3_sub(fsi__d3_of(m->vertices[v[2]]), o) : fsi__d3_zero();
        const double longest = fmax(fsi__d3_norm(a), fmax(fsi__d3_norm(b), fsi__d3_norm(fsi__d3_sub(a, b))));
        const fsi__d3 middle = fsi__d3_madd(fsi__d3_madd(o, 1.0 / m->corners, a), 1.0 / m->corners, b);
        const int parts = (int)fmin(2 * longest / c->a, 2000) + 1;
        for (i = 0; i <= parts; i++) for (j = 0; j <= (m->corners == 3 ? parts - i : 0); j++) {
            const fsi__d3 on = fsi__d3_madd(fsi__d3_madd(o, (double)i / parts, a), (double)j / parts, b),
                way = fsi__d3_sub(middle, on),
                in = fsi__d3_madd(on, within / fmax(fsi__d3_norm(way), within), way),
                x = fsi__d3_madd(in, -within, fsi__d3_of(m->face_normals[f]));
            const int ix = (int)floor((x.x - c->lo.x) / c->a), iy = (int)floor((x.y - c->lo.y) / c->a),
                iz = c->dim == 3 ? (int)floor((x.z - c->lo.z) / c->a) : 0;
            c->cell[(size_t)(ix + c->n[0] * (iy + c->n[1] * iz))] = 1;
        }
    }
}

/* Cells whose centre is farther from the surface than half their diagonal are wholly inside or outside. */
static void fsi__el_mark_range(void *arg, int chunk, int begin, int end)
{
    fsi__el_cage *c = (fsi__el_cage *)arg;
    const double half = 0.5 * sqrt((double)c->dim) * c->a * 1.000001;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++) {
        const double d =
            (double)fsi_mesh_signed_distance(c->surface, fsi__d3_real(fsi__el_cell_at(c, i, 0.5, 0.5, 0.5)));
        if (d < -half) c->cell[i] = 2;
        else if (d < half && c->cell[i] == 0) c->cell[i] = 3; /* unmarked, but may be cut: to be probed */
    }
}

/* Filled fractions of the simplices of the cells at the surface. */
static void fsi__el_fill_range(void *arg, int chunk, int begin, int end)
{
    fsi__el_cage *c = (fsi__el_cage *)arg;
    const int p = FSI__EL_PROBES, kinds = c->dim == 3 ? 6 : 2;
    int i, x, y, z, k;
    (void)chunk;
    for (i = begin; i < end; i++) {
        int inside[6] = { 0 }, all[6] = { 0 };
        if (c->slot[i] < 0) continue;
        for (z = 0; z < (c->dim == 3 ? p : 1); z++) for (y = 0; y < p; y++) for (x = 0; x < p; x++) {
            /* Offsets keep the probes off the diagonals. */
            const double fx = (x + 0.52) / p, fy = (y + 0.5) / p, fz = (z + 0.48) / p;
            k = fsi__el_kuhn_of(c->dim, fx, fy, fz);
            all[k]++;
            inside[k] += fsi_mesh_signed_distance(c->surface, fsi__d3_real(fsi__el_cell_at(c, i, fx, fy, fz))) <= 0;
        }
        for (k = 0, x = 0; k < kinds; k++) {
            c->fill[(size_t)c->slot[i] * 6 + (size_t)k] = (double)inside[k] / all[k];
            x += inside[k];
        }
        if (c->cell[i] == 3) c->cell[i] = (unsigned char)(x > 0);
    }
}

static void fsi__el_cage_layout(fsi__el_cage *c, fsi__arena *a, size_t cells, size_t points)
{
    c->cell = (unsigned char *)fsi__take(a, cells, 1);
    c->slot = (int *)fsi__take(a, cells, sizeof(int));
    c->corner = (int *)fsi__take(a, points, sizeof(int));
}

/* Writes vertices and elements of the cells that belong to the cage; with s->x NULL it only counts them. */
static void fsi__el_cage_fill(const fsi__el_cage *c, fsi__el_shape *s, int *vertices, int *elements,
    fsi_elastic_material_fn *material, void *user)
{
    const int dim = c->dim, kinds = dim == 3 ? 6 : 2, px = c->n[0] + 1, py = c->n[1] + 1;
    const int cells = c->n[0] * c->n[1] * c->n[2];
    int i, k, j, point, corner[4];
    *vertices = *elements = 0;

    /* No lattice point is a vertex yet. */
    for (i = 0; i < px * py * (dim == 3 ? c->n[2] + 1 : 1); i++) c->corner[i] = -1;
    for (i = 0; i < cells; i++) {
        const int x = i % c->n[0], y = i / c->n[0] % c->n[1], z = i / c->n[0] / c->n[1];
        if (c->cell[i] == 0) continue;
        for (k = 0; k < kinds; k++) {
            const int *order = dim == 3 ? fsi__el_kuhn[k] : fsi__el_kuhn_2d[k];
            int at[3];
            at[0] = x;
            at[1] = y;
            at[2] = z;

            /* Corners along the order of the axes. */
            for (j = 0; j <= dim; j++) {
                if (j > 0) at[order[j - 1]]++;
                point = at[0] + px * (at[1] + py * at[2]);
                if (c->corner[point] < 0) {
                    if (s->x) fsi__d3_put(s->x + 3 * (size_t)*vertices, fsi__d3_make(c->lo.x + at[0] * c->a,
                        c->lo.y + at[1] * c->a, dim == 3 ? c->lo.z + at[2] * c->a : 0));
                    c->corner[point] = (*vertices)++;
                }
                corner[j] = c->corner[point];
            }

            /* Corners in positive order, filled volume and material. */
            if (s->x) {
                const int e = *elements, odd = k >= kinds / 2;
                int *to = s->element + (size_t)e * (size_t)(dim + 1);
                const double f =
                    c->cell[i] == 2 ? 1 : fmax(FSI__EL_LEAST_FILL, c->fill[(size_t)c->slot[i] * 6 + (size_t)k]);
                for (j = 0; j <= dim; j++) to[j] = corner[j];
                if (odd) { to[dim - 1] = corner[dim]; to[dim] = corner[dim - 1]; }
                s->volume[e] = f * (dim == 3 ? c->a * c->a * c->a / 6 : c->a * c->a / 2);
                s->material[e] = material ? material(user, fsi__d3_real(fsi__el_cell_at(c, i, 0.5, 0.5, 0.5))) : 0;
            }
            (*elements)++;
        }
    }
}

/* Number of connected parts of the cage, by depth-first search. */
static int fsi__el_parts(const fsi__el_shape *s, int *stack, unsigned char *seen)
{
    int v, top, k, parts = 0;
    for (v = 0; v < s->vertex_count; v++) {
        if (seen[v]) continue;
        parts++;
        seen[v] = 1;
        for (stack[0] = v, top = 1; top > 0;) {
            const int at = stack[--top];
            for (k = s->first[at]; k < s->first[at + 1]; k++) if (!seen[s->edge[k]]) {
                seen[s->edge[k]] = 1;
                stack[top++] = s->edge[k];
            }
        }
    }
    return parts;
}

static fsi_status fsi__el_judge_cage(const fsi__el_shape *s, const fsi__el_cage *c, fsi_context *context,
                                     const char *fn, int resolution)
{
    fsi_mass_properties mass;
    fsi__arena scratch = { NULL, 0, 0 };
    double filled = s->mass_volume, whole;
    int parts, *stack;

    /* The volume of the cage must be that of the surface within 30 %. */
    memset(&mass, 0, sizeof mass);
    FSI__TRY(fsi_mesh_mass(c->surface, 1, 1, &mass));
    whole = (double)mass.volume;
    if (!(fabs(filled - whole) <= 0.3 * whole))
        return fsi__fail(
            context, FSI_ERROR_MESH, fn, -1, filled / whole,
            "the surface is too thin for a cage of %d cells: it holds %.2f of the volume; raise desc.resolution",
            resolution, filled / whole);

    /* The cage must not have more connected parts than the surface. */
    if (!fsi__arena_reserve(context, &scratch, (size_t)s->vertex_count * (sizeof(int) + 1) + 128))
        return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, s->vertex_count, "no memory for a cage");
    stack = (int *)fsi__take(&scratch, (size_t)s->vertex_count, sizeof(int));
    {
        unsigned char *seen = (unsigned char *)fsi__take(&scratch, (size_t)s->vertex_count, 1);
        parts = fsi__el_parts(s, stack, seen);
    }
    fsi__arena_free(context, &scratch);
    if (parts > c->surface->group_count) return fsi__fail(context, FSI_ERROR_MESH, fn, -1, parts,
        "a cage of %d cells falls into %d parts, the surface into %d: raise desc.resolution", resolution, parts,
        c->surface->group_count);
    return FSI_OK;
}

/* Side, counts and corner of the lattice, with one empty cell on each side. */
static fsi_status fsi__el_cage_size(fsi__el_cage *c, fsi_context *context, const char *fn, int resolution)
{
    const fsi_mesh *m = c->surface;
    fsi_box3 box = fsi_box3_empty();
    fsi__d3 size;
    double cells;
    int v;
    for (v = 0; v < m->vertex_count; v++) box = fsi_box3_grow(box, m->vertices[v]);
    size = fsi__d3_diff(box.hi, box.lo);
    c->a = fmax(size.x, fmax(size.y, size.z)) / resolution;
    c->n[0] = (int)ceil(size.x / c->a - 1e-5) + 2; /* 1e-5: rounding must not add a layer */
    c->n[1] = (int)ceil(size.y / c->a - 1e-5) + 2;
    c->n[2] = c->dim == 3 ? (int)ceil(size.z / c->a - 1e-5) + 2 : 1;
    c->lo = fsi__d3_make(0.5 * ((double)box.lo.x + (double)box.hi.x - c->n[0] * c->a),
        0.5 * ((double)box.lo.y + (double)box.hi.y - c->n[1] * c->a),
        c->dim == 3 ? 0.5 * ((double)box.lo.z + (double)box.hi.z - c->n[2] * c->a) : 0);
    cells = (double)c->n[0] * c->n[1] * c->n[2];
    if (cells > 2e8)
        return fsi__fail(context, FSI_ERROR_LIMIT, fn, -1, cells, "a cage of %g cells is too large", cells);
    return FSI_OK;
}

FSI_API fsi_status fsi__el_shape_cage(fsi__el_shape *s, fsi_context *context, const char *fn, const fsi_mesh *surface,
    int resolution, fsi_elastic_material_fn *material, void *user, int material_count)
{
    fsi__arena scratch = { NULL, 0, 0 }, fills = { NULL, 0, 0 };
    fsi__el_cage c;
    fsi_status status;
    int cells, points, vertices, elements, i;

    /* The lattice, and arrays over its cells and points. */
    memset(s, 0, sizeof *s);
    memset(&c, 0, sizeof c);
    s->dim = c.dim = surface->corners;
    c.surface = surface;
    FSI__TRY(fsi__el_cage_size(&c, context, fn, resolution));
    cells = c.n[0] * c.n[1] * c.n[2];
    points = (c.n[0] + 1) * (c.n[1] + 1) * (c.dim == 3 ? c.n[2] + 1 : 1);
    fsi__el_cage_layout(&c, &scratch, (size_t)cells, (size_t)points);
    if (!fsi__arena_reserve(context, &scratch, scratch.used))
        return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, cells, "no memory for a cage of %d cells", cells);
    fsi__el_cage_layout(&c, &scratch, (size_t)cells, (size_t)points);

    /* Cells are marked; those at the surface get a slot and filled fractions. */
    memset(c.cell, 0, (size_t)cells);
    fsi__el_mark_surface(&c);
    fsi__parallel(context, cells, 4096, fsi__el_mark_range, &c);
    for (i = 0; i < cells; i++) c.slot[i] = c.cell[i] == 1 || c.cell[i] == 3 ? c.slots++ : -1;
    status = fsi__arena_reserve(context, &fills, (size_t)c.slots * 6 * sizeof(double) + 64) ? FSI_OK
        : fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, cells, "no memory for a cage of %d cells", cells);
    if (status == FSI_OK) {
        c.fill = (double *)fsi__take(&fills, (size_t)c.slots * 6, sizeof(double));
        fsi__parallel(context, cells, 256, fsi__el_fill_range, &c);

        /* Simplices are counted, then written. */
        fsi__el_cage_fill(&c, s, &vertices, &elements, NULL, NULL);
        status = fsi__el_shape_reserve(s, context, fn, vertices, elements);
    }
    if (status == FSI_OK) {
        fsi__el_cage_fill(&c, s, &vertices, &elements, material, user);
        for (i = 0; i < elements && status == FSI_OK; i++) if (s->material[i] < 0 || s->material[i] >= material_count)
            status = fsi__fail(context, FSI_ERROR_ARGUMENT, fn, i, s->material[i],
                "desc.material_at returned %d, there are %d materials", s->material[i], material_count);
    }

    /* Edges and search tree; then the cage is compared with the surface. */
    if (status == FSI_OK) status = fsi__el_shape_finish(s, context, fn);
    if (status == FSI_OK) status = fsi__el_judge_cage(s, &c, context, fn, resolution);
    fsi__arena_free(context, &fills);
    fsi__arena_free(context, &scratch);
    if (status != FSI_OK) fsi__el_shape_free(s, context);
    return status;
}

/* ---- >>location ----------------------------------------------------------------------------------------------- */

/* Barycentric weights of x in an element; returns the least of them. */
static double fsi__el_weights_in(const fsi__el_shape *s, int e, fsi__d3 x, double *bary)
{
    fsi__d3 grad[4];
    const fsi__d3 d = fsi__d3_sub(x, fsi__d3_at(s->x + 3 * (size_t)fsi__el_corners(s, e)[0]));
    double least;
    int k;
    fsi__el_gradients(s, e, grad);
    for (k = 1, bary[0] = 1; k <= s->dim; k++) {
        bary[k] = fsi__d3_dot(grad[k], d);
        bary[0] -= bary[k];
    }
    for (k = 1, least = bary[0]; k <= s->dim; k++) least = fmin(least, bary[k]);
    return least;
}

/* Elements are visited in the order of their boxes' distance from x: those that contain x come first. */
FSI_API int fsi__el_locate(const fsi__el_shape *s, fsi__d3 x, double *bary)
{
    fsi__walk w;
    double limit = HUGE_VAL, best = -HUGE_VAL, b[4];
    int item, found = -1, seen = 0;
    w.point = fsi__d3_real(x);
    for (item = fsi__walk_begin(&w, FSI__WALK_POINT, s->nodes, limit); item >= 0; item = fsi__walk_next(&w, limit)) {
        const int e = s->order[item];
        const double least = fsi__el_weights_in(s, e, x, b);
        if (found < 0 || least > best) {
            best = least;
            found = e;
            memcpy(bary, b, ((size_t)s->dim + 1) * sizeof(double));
        }
        if (best >= -1e-9) limit = -1;
        else if (++seen > 64) limit = 0; /* outside: 64 close elements are enough */
    }
    return found;
}

/* ---- >>distances --------------------------------------------------------------------------------------------------

   The distance of two vertices is that along a straight line, but at least their shortest path along edges over
   FSI__EL_DETOUR, which is as long as such a path can be where the line is inside the body: across the cells of a cage
   it is up to sqrt(2) times the line. So parts that are close in space but far apart in the body are far apart. Paths
   alone have kinks along all planes of the lattice, and weights of handles that have them cannot bend: between two
   clamps a beam of 60 handles hangs 8.7 % too little with them, 3.0 % without (1.5 % when they are centred, too).

   Dijkstra's shortest paths along edges. The queue is a binary heap of vertices; equal distances leave it in ascending
   order of the vertices, so that the result does not depend on how it was filled. */

static int fsi__el_before(const fsi__el_near *p, int a, int b)
{
    return p->path[a] < p->path[b] || (!(p->path[b] < p->path[a]) && a < b);
}

static void fsi__el_heap_swap(fsi__el_near *p, int i, int j)
{
    const int a = p->heap[i];
    p->heap[i] = p->heap[j];
    p->heap[j] = a;
    p->where[p->heap[i]] = i;
    p->where[p->heap[j]] = j;
}

static void fsi__el_heap_up(fsi__el_near *p, int i)
{
    for (; i > 0 && fsi__el_before(p, p->heap[i], p->heap[(i - 1) / 2]); i = (i - 1) / 2)
        fsi__el_heap_swap(p, i, (i - 1) / 2);
}

static int fsi__el_heap_take(fsi__el_near *p)
{
    const int first = p->heap[0];
    int i = 0;
    fsi__el_heap_swap(p, 0, --p->size);
    p->where[first] = -1;
    for (;;) {
        int child = 2 * i + 1;
        if (child >= p->size) break;
        if (child + 1 < p->size && fsi__el_before(p, p->heap[child + 1], p->heap[child])) child++;
        if (!fsi__el_before(p, p->heap[child], p->heap[i])) break;
        fsi__el_heap_swap(p, i, child);
        i = child;
    }
    return first;
}

#define FSI__EL_DETOUR 1.5

static double fsi__el_line(const fsi__el_shape *s, int u, int v)
{
    return fsi__d3_norm(fsi__d3_sub(fsi__d3_at(s->x + 3 * (size_t)u), fsi__d3_at(s->x + 3 * (size_t)v)));
}

/* Distance of two vertices with a path of that length between them. */
static double fsi__el_apart(const fsi__el_shape *s, int u, int v, double path)
{
    return fmax(fsi__el_line(s, u, v), path / FSI__EL_DETOUR);
}

/* Shortest paths from `source`, up to the length `limit`; closer: only over vertices that are closer to it than to any
   chosen one. */
static void fsi__el_paths_from(fsi__el_near *p, int source, double limit, int closer)
{
    const fsi__el_shape *s = p->shape;
    int k;

    /* The paths of the last search are reset; the queue starts with the source alone. */
    for (k = 0; k < p->reached_count; k++) p->path[p->reached[k]] = HUGE_VAL;
    p->reached_count = p->size = 0;
    p->path[source] = 0;
    p->reached[p->reached_count++] = source;
    p->heap[p->where[source] = p->size++] = source;

    /* Dijkstra's method: the first vertex of the queue has its shortest path; it improves those of its neighbours. */
    while (p->size > 0) {
        const int v = fsi__el_heap_take(p);
        for (k = s->first[v]; k < s->first[v + 1]; k++) {
            const int u = s->edge[k];
            const double d = p->path[v] + fsi__el_line(s, u, v);
            if (!(d < p->path[u]) || d > limit) continue;
            if (closer && !(fsi__el_apart(s, source, u, d) < p->nearest[u])) continue;
            if (p->path[u] >= HUGE_VAL) { /* reached for the first time: joins the queue */
                p->reached[p->reached_count++] = u;
                p->where[u] = p->size;
                p->heap[p->size++] = u;
            }
            p->path[u] = d;
            if (p->where[u] >= 0) fsi__el_heap_up(p, p->where[u]);
        }
    }
}

static void fsi__el_near_layout(fsi__el_near *p)
{
    const size_t n = (size_t)p->shape->vertex_count;
    p->memory.used = 0;
    p->path = (double *)fsi__take(&p->memory, n, sizeof(double));
    p->nearest = (double *)fsi__take(&p->memory, n, sizeof(double));
    p->owner = (int *)fsi__take(&p->memory, n, sizeof(int));
    p->chosen = (int *)fsi__take(&p->memory, n, sizeof(int));
    p->heap = (int *)fsi__take(&p->memory, n, sizeof(int));
    p->where = (int *)fsi__take(&p->memory, n, sizeof(int));
    p->reached = (int *)fsi__take(&p->memory, n, sizeof(int));
}

FSI_API fsi_status fsi__el_near_begin(fsi__el_near *p, fsi_context *context, const char *fn, const fsi__el_shape *s)
{
    int v;
    memset(p, 0, sizeof *p);
    p->shape = s;
    fsi__el_near_layout(p);
    if (!fsi__arena_reserve(context, &p->memory, p->memory.used))
        return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, s->vertex_count, "no memory for %d vertices",
                         s->vertex_count);
    fsi__el_near_layout(p);
    for (v = 0; v < s->vertex_count; v++) {
        p->path[v] = HUGE_VAL;
        p->where[v] = -1;
    }
    return FSI_OK;
}

FSI_API void fsi__el_near_free(fsi__el_near *p, fsi_context *context) { fsi__arena_free(context, &p->memory); }

/* A vertex that no path reaches keeps HUGE_VAL, so each connected part gets a choice before any gets a second. */
FSI_API int fsi__el_near_choose(fsi__el_near *p, const int *allowed, int count)
{
    const fsi__el_shape *s = p->shape;
    fsi__d3 centre = fsi__d3_zero();
    double most = -1;
    int v, k, far_one = 0;

    /* The centre of all vertices; no vertex has a nearest chosen one yet. */
    for (v = 0; v < s->vertex_count; v++) {
        p->nearest[v] = allowed && allowed[v] < 0 ? 0 : HUGE_VAL;
        p->owner[v] = 0;
        centre = fsi__d3_madd(centre, 1.0 / s->vertex_count, fsi__d3_at(s->x + 3 * (size_t)v));
    }

    /* The first choice: the vertex farthest from the centre. */
    for (v = 0; v < s->vertex_count; v++) {
        const double d = fsi__d3_norm(fsi__d3_sub(fsi__d3_at(s->x + 3 * (size_t)v), centre));
        if (p->nearest[v] > 0 && d > most) { most = d; far_one = v; }
    }

    /* Each next choice is the vertex whose distance to the nearest chosen one is largest. */
    for (k = 0; k < count && k < s->vertex_count && most >= 0; k++) {
        p->chosen[k] = far_one;
        fsi__el_paths_from(p, far_one, HUGE_VAL, 1);
        for (v = 0; v < p->reached_count; v++) {
            const int u = p->reached[v];
            p->nearest[u] = fsi__el_apart(s, far_one, u, p->path[u]);
            p->owner[u] = k;
        }
        for (v = 0, most = 0; v < s->vertex_count; v++)
            if (p->nearest[v] > most) { most = p->nearest[v]; far_one = v; }
        if (!(most > 0)) return k + 1;
    }
    return k;
}

FSI_API void fsi__el_weights_free(fsi__el_weights *w, fsi_context *context)
{
    fsi__arena_free(context, &w->memory);
    memset(w, 0, sizeof *w);
}

static void fsi__el_weights_layout(fsi__el_weights *w, int vertices, int handles, int entries)
{
    w->memory.used = 0;
    w->first = (int *)fsi__take(&w->memory, (size_t)vertices + 1, sizeof(int));
    w->center = (int *)fsi__take(&w->memory, (size_t)handles, sizeof(int));
    w->handle = (int *)fsi__take(&w->memory, (size_t)entries, sizeof(int));
    w->weight = (double *)fsi__take(&w->memory, (size_t)entries, sizeof(double));
}

/* Rest position of the handle of entry i. */
static fsi__d3 fsi__el_handle_at(const fsi__el_weights *w, const fsi__el_shape *s, int i)
{
    return fsi__d3_at(s->x + 3 * (size_t)w->center[w->handle[i]]);
}

/* Weights below 1e-5 of the sum are dropped, the others scaled to add to 1. No sum is 0: reach > 1, so that some handle
   reaches each vertex. */
static void fsi__el_normalise(fsi__el_weights *w, int vertices)
{
    int v, i, kept = 0;
    for (v = 0; v < vertices; v++) {
        const int begin = w->first[v], end = w->first[v + 1];
        double sum = 0;
        int from = kept;
        for (i = begin; i < end; i++) sum += w->weight[i];
        w->first[v] = kept;
        for (i = begin; i < end; i++) if (w->weight[i] >= 1e-5 * sum) {
            w->handle[kept] = w->handle[i];
            w->weight[kept++] = w->weight[i];
        }
        for (i = from, sum = 0; i < kept; i++) sum += w->weight[i];
        for (i = from; i < kept; i++) w->weight[i] /= sum;
    }
    w->first[vertices] = kept;
}

/* Takes most of the first moment m = sum w_h d_h out of the weights at each vertex, d_h being the way to handle h:

      w_h <- w_h (1 - m . (C + s r^2 1)^-1 (d_h - m)),   C = sum w_h (d_h - m)(d_h - m)^T,   s = FSI__EL_MOMENT

   They still add to 1. With m = 0 the handles blend to every quadratic motion, as pure bending is: f(x) is the sum of
   w_h (f(C_h) + f'(C_h)(x - C_h)/2). But with m = 0 everywhere (s = 0), equal linear maps of all handles would move
   nothing, and M would be singular; s also bounds the weights where the handles around lie in a plane. */
#define FSI__EL_MOMENT 3e-3

static void fsi__el_centre_weights(fsi__el_weights *w, const fsi__el_shape *s)
{
    int v, i, j, k;
    for (v = 0; v < s->vertex_count; v++) {
        const fsi__d3 x = fsi__d3_at(s->x + 3 * (size_t)v);
        double c[9] = { 0 }, inverse[9];
        fsi__d3 m = fsi__d3_zero(), slope;
        for (i = w->first[v]; i < w->first[v + 1]; i++)
            m = fsi__d3_madd(m, w->weight[i], fsi__d3_sub(fsi__el_handle_at(w, s, i), x));
        for (i = w->first[v]; i < w->first[v + 1]; i++) {
            const fsi__d3 d = fsi__d3_sub(fsi__d3_sub(fsi__el_handle_at(w, s, i), x), m);
            for (j = 0; j < 3; j++) for (k = 0; k < 3; k++)
                c[3 * j + k] += w->weight[i] * fsi__d3_axis(d, j) * fsi__d3_axis(d, k);
        }
        for (j = 0; j < 3; j++) c[4 * j] += FSI__EL_MOMENT * w->reach * w->reach;
        fsi__d9_inverse(c, inverse);
        slope = fsi__d9_mul(inverse, m);
        for (i = w->first[v]; i < w->first[v + 1]; i++)
            w->weight[i] *= 1 - fsi__d3_dot(slope, fsi__d3_sub(fsi__d3_sub(fsi__el_handle_at(w, s, i), x), m));
    }
}

FSI_API fsi_status fsi__el_weights_make(fsi__el_weights *w, fsi_context *context, const char *fn,
    const fsi__el_shape *s, int count, double reach)
{
    const int n = s->vertex_count;
    fsi__el_near p;
    double entries = 0;
    int h, v, k, pass;
    memset(w, 0, sizeof *w);
    FSI__TRY(fsi__el_near_begin(&p, context, fn, s));
    w->count = fsi__el_near_choose(&p, NULL, count);
    for (v = 0; v < n; v++) w->reach = fmax(w->reach, p.nearest[v]);
    w->reach = w->reach > 0 ? reach * w->reach : reach * s->size;

    /* Entries are counted, then written, handle by handle, so that those of a vertex are in ascending order. */
    for (pass = 0; pass < 2; pass++) {
        if (pass == 1) { /* counts become the starts of the vertices' entries */
            for (v = n; v > 0; v--) w->first[v] = w->first[v - 1];
            w->first[0] = 0;
            for (v = 0; v < n; v++) w->first[v + 1] += w->first[v];
            for (v = n; v > 0; v--) w->first[v] = w->first[v - 1]; /* first[v + 1]: the next free entry of v */
            w->first[0] = 0;
        } else { /* counts of the vertices, 0 */
            fsi__el_weights_layout(w, n, w->count, 0);
            if (!fsi__arena_reserve(context, &w->memory, w->memory.used)) break;
            fsi__el_weights_layout(w, n, w->count, 0);
            memset(w->first, 0, ((size_t)n + 1) * sizeof(int));
        }
        for (h = 0; h < w->count; h++) { /* (1 - (d/r)^2)^2 at the vertices within r of handle h */
            fsi__el_paths_from(&p, p.chosen[h], FSI__EL_DETOUR * w->reach, 0);
            for (k = 0; k < p.reached_count; k++) {
                const double q = fsi__el_apart(s, p.chosen[h], p.reached[k], p.path[p.reached[k]]) / w->reach;
                v = p.reached[k];
                if (q > 1 - 1e-12) continue;
                if (pass == 0) w->first[v]++;
                else {
                    w->handle[w->first[v + 1]] = h;
                    w->weight[w->first[v + 1]++] = (1 - q * q) * (1 - q * q);
                }
            }
        }
        if (pass == 0) { /* room for the entries; the counts are copied */
            fsi__arena old = w->memory;
            int *counts = w->first;
            for (v = 0; v < n; v++) entries += counts[v];
            memset(&w->memory, 0, sizeof w->memory);
            if (entries < 1e9) {
                fsi__el_weights_layout(w, n, w->count, (int)entries);
                if (fsi__arena_reserve(context, &w->memory, w->memory.used)) {
                    fsi__el_weights_layout(w, n, w->count, (int)entries);
                    memcpy(w->first, counts, ((size_t)n + 1) * sizeof(int));
                }
            }
            fsi__arena_free(context, &old);
            if (!w->memory.base) break;
        }
    }
    if (pass == 2) {
        memcpy(w->center, p.chosen, (size_t)w->count * sizeof(int));
        fsi__el_normalise(w, n);
        fsi__el_centre_weights(w, s);
    }
    fsi__el_near_free(&p, context);
    if (pass == 2) return FSI_OK;
    fsi__el_weights_free(w, context);
    return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, entries, "no memory for the weights of %d handles", count);
}

/* ---- >>rows -------------------------------------------------------------------------------------------------------

   A point of a body is x = sum_i u_i q_i. Without handles the unknowns q are the vertices, u their barycentric weights.
   With handles there are dim + 1 unknowns for each: the columns of its linear map, and its position. At vertex v

      x_v = sum_h w_h(v) (sum_a (X_v - C_h)_a q_(h, a) + q_(h, dim)),   C_h the rest position of handle h

   (linear blend skinning; (E6) of docs/elastic.md). The deformation gradient of a simplex is F = sum_k x_k grad_k^T,
   linear in q. */

FSI_API void fsi__el_rows_free(fsi__el_rows *r, fsi_context *context)
{
    fsi__free(context, r->start, (size_t)r->room_rows + 1, sizeof(int));
    fsi__free(context, r->dof, r->room, sizeof(int));
    fsi__free(context, r->value, r->room * (size_t)r->width, sizeof(double));
    memset(r, 0, sizeof *r);
}

FSI_API fsi_status fsi__el_rows_room(fsi__el_rows *r, fsi_context *context, const char *fn, int rows, size_t entries)
{
    fsi__el_rows n = *r;
    if (rows <= r->room_rows && entries <= r->room) return FSI_OK;
    if (entries > 2000000000u)
        return fsi__fail(context, FSI_ERROR_LIMIT, fn, -1, (double)entries, "%g entries of rows are too many",
                         (double)entries);

    /* The new arrays are half as large again, so that rows can be added one by one in linear time. */
    n.room_rows = rows + rows / 2 + 16;
    n.room = entries + entries / 2 + 64;
    if (n.room > 2000000000u) n.room = 2000000000u;
    n.start = (int *)fsi__alloc(context, (size_t)n.room_rows + 1, sizeof(int));
    n.dof = (int *)fsi__alloc(context, n.room, sizeof(int));
    n.value = (double *)fsi__alloc(context, n.room * (size_t)n.width, sizeof(double));
    if (!n.start || !n.dof || !n.value) {
        fsi__el_rows_free(&n, context);
        return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, rows, "no memory for %d rows", rows);
    }

    /* The rows are copied, and the old arrays freed. */
    if (r->start) {
        memcpy(n.start, r->start, ((size_t)r->count + 1) * sizeof(int));
        memcpy(n.dof, r->dof, (size_t)r->start[r->count] * sizeof(int));
        memcpy(n.value, r->value, (size_t)r->start[r->count] * (size_t)r->width * sizeof(double));
        fsi__el_rows_free(r, context);
    }
    *r = n;
    return FSI_OK;
}

FSI_API fsi_status fsi__el_rows_begin(fsi__el_rows *r, fsi_context *context, const char *fn, int width)
{
    memset(r, 0, sizeof *r);
    r->width = width;
    return fsi__el_rows_room(r, context, fn, 15, 64);
}

/* Adds a row with the entries sum_k coefficient[k] x_k over the corners of an element. */
static fsi_status fsi__el_rows_add(fsi__el_rows *r, fsi_context *context, const char *fn, const fsi__el_shape *s,
    const fsi__el_weights *w, int element, const double *coefficient)
{
    const int corners = s->dim + 1, width = r->width, *corner = fsi__el_corners(s, element);
    int list[FSI__EL_HANDLES], count = 0, k, i, h, a, c;
    double *to;
    int *dof;

    /* Without handles: the entries are those of the corners. */
    if (!w) {
        FSI__TRY(fsi__el_rows_room(r, context, fn, r->count + 1, (size_t)r->start[r->count] + (size_t)corners));
        to = r->value + (size_t)r->start[r->count] * (size_t)width;
        for (k = 0; k < corners; k++) r->dof[r->start[r->count] + k] = corner[k];
        memcpy(to, coefficient, (size_t)corners * (size_t)width * sizeof(double));
        r->start[r->count + 1] = r->start[r->count] + corners;
        r->count++;
        return FSI_OK;
    }

    /* The handles that reach a corner, ascending. */
    for (k = 0; k < corners; k++) for (i = w->first[corner[k]]; i < w->first[corner[k] + 1]; i++) {
        for (h = 0; h < count && list[h] != w->handle[i]; h++) {}
        if (h == count) list[count++] = w->handle[i];
    }
    qsort(list, (size_t)count, sizeof(int), fsi__el_ascending);
    FSI__TRY(fsi__el_rows_room(r, context, fn, r->count + 1, (size_t)r->start[r->count] + (size_t)(corners * count)));
    dof = r->dof + r->start[r->count];
    to = r->value + (size_t)r->start[r->count] * (size_t)width;
    for (i = 0; i < corners * count; i++) dof[i] = corners * list[i / corners] + i % corners;
    memset(to, 0, (size_t)(corners * count) * (size_t)width * sizeof(double));

    /* Each corner's row (E6), times its coefficients. */
    for (k = 0; k < corners; k++) for (i = w->first[corner[k]], h = 0; i < w->first[corner[k] + 1]; i++) {
        const fsi__d3 d = fsi__d3_sub(fsi__d3_at(s->x + 3 * (size_t)corner[k]), fsi__el_handle_at(w, s, i));
        while (list[h] != w->handle[i]) h++;
        for (a = 0; a < corners; a++) {
            const double u = w->weight[i] * (a < s->dim ? fsi__d3_axis(d, a) : 1);
            for (c = 0; c < width; c++) to[(size_t)((corners * h + a) * width + c)] += u * coefficient[k * width + c];
        }
    }
    r->start[r->count + 1] = r->start[r->count] + corners * count;
    r->count++;
    return FSI_OK;
}

FSI_API fsi_status fsi__el_rows_point(fsi__el_rows *r, fsi_context *context, const char *fn, const fsi__el_shape *s,
    const fsi__el_weights *w, int element, const double *bary)
{
    return fsi__el_rows_add(r, context, fn, s, w, element, bary);
}

FSI_API fsi_status fsi__el_rows_element(fsi__el_rows *r, fsi_context *context, const char *fn, const fsi__el_shape *s,
    const fsi__el_weights *w, int element)
{
    fsi__d3 grad[4];
    double c[12];
    int k;
    fsi__el_gradients(s, element, grad);
    for (k = 0; k <= s->dim; k++) fsi__d3_put(c + 3 * k, grad[k]);
    return fsi__el_rows_add(r, context, fn, s, w, element, c);
}

FSI_API fsi_status fsi__el_rows_join(fsi__el_rows *r, fsi_context *context, const char *fn, const fsi__el_rows *from,
    int nodes, const int *node, const double *weight)
{
    size_t most = (size_t)r->start[r->count];
    int k, i, j, n, begin, next; /* next: where the unknown of the next entry often is */
    for (k = 0; k < nodes; k++) most += (size_t)(from->start[node[k] + 1] - from->start[node[k]]);
    FSI__TRY(fsi__el_rows_room(r, context, fn, r->count + 1, most));
    begin = n = r->start[r->count];
    next = begin;
    for (k = 0; k < nodes; k++) for (i = from->start[node[k]]; i < from->start[node[k] + 1]; i++) {
        if (weight[k] == 0) continue;
        j = next < n && r->dof[next] == from->dof[i] ? next : begin;
        for (; j < n && r->dof[j] != from->dof[i]; j++) {}
        next = j + 1;
        if (j == n) {
            r->dof[n] = from->dof[i];
            r->value[n++] = 0;
        }
        r->value[j] += weight[k] * from->value[i];
    }
    r->start[++r->count] = n;
    return FSI_OK;
}

FSI_API void fsi__el_packed_free(fsi__el_packed *p, fsi_context *context)
{
    fsi__arena_free(context, &p->memory);
    memset(p, 0, sizeof *p);
}

/* The unknowns of a block of rows, ascending, to dof; used: 0 for each unknown, before and after. Returns how many. */
static int fsi__el_list_block(const fsi__el_rows *r, int block, unsigned char *used, int *dof)
{
    const int begin = block * FSI__EL_BLOCK, end = begin + FSI__EL_BLOCK < r->count ? begin + FSI__EL_BLOCK : r->count;
    int n = 0, i;
    for (i = r->start[begin]; i < r->start[end]; i++) {
        if (used[r->dof[i]]) continue;
        used[r->dof[i]] = 1;
        dof[n++] = r->dof[i];
    }
    qsort(dof, (size_t)n, sizeof(int), fsi__el_ascending);
    for (i = 0; i < n; i++) used[dof[i]] = 0;
    return n;
}

static void fsi__el_packed_layout(fsi__el_packed *p, int blocks, size_t entries)
{
    p->memory.used = 0;
    p->wide = (double *)fsi__take(&p->memory, 4 * (size_t)p->dofs, sizeof(double));
    p->value = blocks ? (double *)fsi__take(&p->memory, FSI__EL_BLOCK * entries, sizeof(double)) : NULL;
    p->start = (int *)fsi__take(&p->memory, (size_t)blocks + 1, sizeof(int));
    p->dof = (int *)fsi__take(&p->memory, entries, sizeof(int));
}

/* Block by block: its unknowns, then the coefficients of its rows. place: where each unknown has its entry. */
static void fsi__el_fill_blocks(fsi__el_packed *p, const fsi__el_rows *r, int blocks, unsigned char *used, int *place)
{
    int b, k, i;
    for (b = 0, p->start[0] = 0; b < blocks; b++) {
        p->start[b + 1] = p->start[b] + fsi__el_list_block(r, b, used, p->dof + p->start[b]);
        for (i = p->start[b]; i < p->start[b + 1]; i++) place[p->dof[i]] = i;
        for (k = 0; k < FSI__EL_BLOCK && b * FSI__EL_BLOCK + k < r->count; k++) {
            const int row = b * FSI__EL_BLOCK + k;
            for (i = r->start[row]; i < r->start[row + 1]; i++)
                p->value[FSI__EL_BLOCK * (size_t)place[r->dof[i]] + (size_t)k] = r->value[i];
        }
    }
}

FSI_API fsi_status fsi__el_pack(fsi__el_packed *p, fsi_context *context, const char *fn, const fsi__el_rows *r,
    int dofs, int share)
{
    const int blocks = share ? fsi__chunks(r->count, FSI__EL_BLOCK) : 0;
    unsigned char *used = (unsigned char *)fsi__alloc(context, (size_t)dofs, 1);
    int *dof = (int *)fsi__alloc(context, (size_t)dofs, sizeof(int)); /* of a block; then where each has its entry */
    size_t entries = 0;
    int b;
    memset(p, 0, sizeof *p);
    p->count = r->count;
    p->dofs = dofs;
    if (used && dof) {
        memset(used, 0, (size_t)dofs);
        for (b = 0; b < blocks; b++) entries += (size_t)fsi__el_list_block(r, b, used, dof);
        fsi__el_packed_layout(p, blocks, entries);
        if (entries < 2000000000u) (void)fsi__arena_reserve(context, &p->memory, p->memory.used);
        fsi__el_packed_layout(p, blocks, entries);
    }
    if (p->memory.base && share) {
        memset(p->value, 0, FSI__EL_BLOCK * entries * sizeof(double));
        fsi__el_fill_blocks(p, r, blocks, used, dof);
    }
    fsi__free(context, used, (size_t)dofs, 1);
    fsi__free(context, dof, (size_t)dofs, sizeof(int));
    return p->memory.base ? FSI_OK : fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, r->count, "no memory for %d rows",
                                               r->count);
}

FSI__COLD_END
FSI__STRICT_END
#endif /* FSI_ELASTIC_MODEL_IMPLEMENTATION_DONE */
#endif /* FSI_ELASTIC_MODEL_IMPLEMENTATION */
