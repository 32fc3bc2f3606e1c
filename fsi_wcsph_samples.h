/* fsi_wcsph_samples.h - a layer of samples on a mesh, sorted by cells, and its offset surface near a particle.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_wcsph.h includes this file. Its front page says what obstacles are; one whose surface is samples:

      fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
      o.mesh = hull; o.body = &body; o.surface = FSI_WCSPH_SURFACE_SAMPLES;
      fsi_wcsph_add_obstacle(water, &o, NULL);

   WHAT IS IN HERE (search for >>), all of it for fsi's own headers
      >>stages         the layer, and what a particle finds;  >>laying  samples on a mesh;  >>seeking  the nearest
      >>offset surface
   MACROS: those of fsi.h.
   UNITS: SI.
   PRECISION: positions in fsi_real, distances in double.
*/
#ifndef FSI_WCSPH_SAMPLES_H
#define FSI_WCSPH_SAMPLES_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_mesh.h"

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* One sample of a surface, in the obstacle's axes, and its radius. */
typedef struct fsi__wc_sample { fsi_vec3 x, n; fsi_real r; } fsi__wc_sample;

/* The samples of an obstacle. None: its surface is the mesh. */
typedef struct fsi__wc_samples {
    double dx;               /* side of the cells: the spacing of the particles [m] */
    int count;
    fsi__wc_sample *sample;  /* count, sorted by cell */
    fsi_vec3 *shown, *shown_normal; /* count: in the world, for fsi_wcsph_obstacle_samples */
    int *cell;               /* cells[0]*cells[1]*cells[2] + 1: first sample */
    int cells[3];
    fsi_vec3 corner;         /* of the cells */
} fsi__wc_samples;

/* Lays samples `step` apart on a mesh as it stands in the obstacle's axes, and sorts them by cells of side dx.
   Returns 0 when there is no memory or there are too many cells; fsi__wc_free_samples frees the part that is made. */
FSI_API int fsi__wc_make_samples(fsi_context *context, fsi__wc_samples *s, const fsi_mesh *mesh, double dx,
                                 double step);
FSI_API void fsi__wc_free_samples(fsi_context *context, fsi__wc_samples *s); /* all zeros is fine */

/* A sample, or a face of a mesh, that was near a particle when a list was made. */
typedef struct fsi__wc_item { int index; float d; } fsi__wc_item; /* d: at least its distance then [m] */

/* What a surface looks like from a particle. */
typedef struct fsi__wc_touch {
    double d;        /* distance, negative inside; `reach` or more: nothing found */
    double push;     /* along n, until the distance is what it must be */
    fsi__d3 n, point; /* unit normal towards the particle; x_cp = x - d n */
    int face, crossed; /* crossed: the way led through the surface */
    double bary[3];
} fsi__wc_touch;

/* Samples that may be within `reach` of x, one by one: those of a list (item), or of the cells around. */
typedef struct fsi__wc_seek {
    const fsi__wc_samples *s;
    const fsi__wc_item *item;
    int at, end, lo[3], hi[3], y, z;
} fsi__wc_seek;

/* Begins a search in the cells within `reach` of x. */
FSI_API fsi__wc_seek fsi__wc_seek_cells(const fsi__wc_samples *s, fsi_vec3 x, double reach);
FSI_API int fsi__wc_next_sample(fsi__wc_seek *seek); /* -1 at the end */
/* The sample whose ball is nearest to x, *least the distance to it; -1: none is nearer than `reach`. */
FSI_API int fsi__wc_nearest_sample(fsi__wc_seek seek, fsi_vec3 x, double reach, double *least);
/* The offset surface near x; `seek`: all samples within `reach`. gap: the distance that particles keep from it; side:
   of a TWO_SIDED surface, 0: unknown. Returns 0 when there is none. */
FSI_API int fsi__wc_near_samples(const fsi__wc_seek *seek, int two_sided, double side, fsi_vec3 x, double gap,
                                 double felt, double reach, fsi__wc_touch *t);

FSI__STRICT_FN_BEGIN
FSI_FN double fsi__wc_axis(fsi_vec3 a, int k) { return (double)(k == 0 ? a.x : k == 1 ? a.y : a.z); }
FSI_FN void fsi__wc_set_axis(fsi_vec3 *a, int k, double x)
{
    if (k == 0) a->x = (fsi_real)x;
    else if (k == 1) a->y = (fsi_real)x;
    else a->z = (fsi_real)x;
}
FSI__STRICT_FN_END

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_WCSPH_SAMPLES_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_WCSPH_SAMPLES_IMPLEMENTATION
#define FSI_WCSPH_SAMPLES_IMPLEMENTATION
#endif
#ifdef FSI_WCSPH_SAMPLES_IMPLEMENTATION
#ifndef FSI_WCSPH_SAMPLES_IMPLEMENTATION_DONE
#define FSI_WCSPH_SAMPLES_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_mesh.h"

FSI__STRICT_BEGIN

/* ---- >>laying --------------------------------------------------------------------------------------------------- */

/* Samples of one mesh: corners, edges, faces, each cut in steps of at most `step`. Counts, or writes. */
typedef struct fsi__wc_layer {
    const fsi_mesh *mesh;
    fsi__wc_sample *out;
    int count;
    double depth, radius;
} fsi__wc_layer;

/* A sample r_P inside; where the solid is thinner than 2 r_P, in its middle and as small, not to push from behind. */
static void fsi__wc_lay(fsi__wc_layer *l, fsi_vec3 x, fsi_vec3 n)
{
    double depth = l->depth;
    if (l->out && depth > 0) {
        const fsi_vec3 inward = fsi_v3_scale(n, -1), start = fsi_v3_madd(x, (fsi_real)(1e-3 * depth), inward);
        const fsi_mesh_hit back = fsi_mesh_ray(l->mesh, start, inward, (fsi_real)(2 * depth));
        if (back.face >= 0) depth = fmin(depth, 0.5 * ((double)back.t + 1e-3 * depth));
    }
    if (l->out) {
        l->out[l->count].x = fsi_v3_madd(x, (fsi_real)-depth, n);
        l->out[l->count].n = n;
        l->out[l->count].r = (fsi_real)(l->depth > 0 ? depth : l->radius);
    }
    l->count++;
}

static int fsi__wc_cuts(double length, double step) { return (int)fmin(ceil(length / step * (1 - 1e-9)), 40000); }

/* Interior points of a triangle: rows along its longest edge; edges and corners are laid once for all their faces. */
static void fsi__wc_lay_rows(fsi__wc_layer *l, const fsi_mesh *m, int f, double step)
{
    const int *c = m->faces + 3 * f;
    double longest = 0;
    fsi_vec3 a, u, w;
    int k, i, j, at = 0, rows;
    for (k = 0; k < 3; k++) {
        const double length = (double)fsi_v3_norm(fsi_v3_sub(m->vertices[c[(k + 1) % 3]], m->vertices[c[k]]));
        if (length > longest) { longest = length; at = k; }
    }
    a = m->vertices[c[at]];
    u = fsi_v3_sub(m->vertices[c[(at + 1) % 3]], a);
    w = fsi_v3_sub(m->vertices[c[(at + 2) % 3]], a);
    rows = fsi__wc_cuts((double)fsi_v3_norm(fsi_v3_cross(u, w)) / longest, 0.866 * step); /* of a triangular grid */
    for (i = 1; i < rows; i++) {
        const int n = fsi__wc_cuts(longest * (rows - i) / rows, step);
        for (j = 1; j < n; j++)
            fsi__wc_lay(l, fsi_v3_madd(fsi_v3_madd(a, (fsi_real)i / (fsi_real)rows, w),
                (fsi_real)(rows - i) * (fsi_real)j / ((fsi_real)rows * (fsi_real)n), u), m->face_normals[f]);
    }
}

static void fsi__wc_lay_edge(fsi__wc_layer *l, fsi_vec3 p, fsi_vec3 q, fsi_vec3 n, double step)
{
    const int k = fsi__wc_cuts((double)fsi_v3_norm(fsi_v3_sub(q, p)), step);
    int j;
    for (j = 1; j < k; j++) fsi__wc_lay(l, fsi_v3_madd(p, (fsi_real)j / (fsi_real)k, fsi_v3_sub(q, p)), n);
}

static void fsi__wc_lay_face(fsi__wc_layer *l, const fsi_mesh *m, int f, double step)
{
    const int *c = m->faces + m->corners * f;
    int i;
    if (m->corners == 2) {
        fsi__wc_lay_edge(l, m->vertices[c[0]], m->vertices[c[1]], m->face_normals[f], step);
        return;
    }
    fsi__wc_lay_rows(l, m, f, step);
    for (i = 0; i < 3; i++) { /* an edge belongs to the face with the lower number */
        const int other = m->face_neighbor[3 * f + i];
        if (other >= 0 && other < f) continue;
        fsi__wc_lay_edge(l, m->vertices[c[i]], m->vertices[c[(i + 1) % 3]],
                         other < 0 ? m->face_normals[f] : m->edge_normals[m->face_edge[3 * f + i]], step);
    }
}

static int fsi__wc_lay_mesh(const fsi_mesh *m, double step, double depth, double radius, fsi__wc_sample *out)
{
    fsi__wc_layer l;
    int k;
    l.mesh = m;
    l.out = out;
    l.count = 0;
    l.depth = depth;
    l.radius = radius;
    for (k = 0; k < m->vertex_count; k++) fsi__wc_lay(&l, m->vertices[k], m->vertex_normals[k]);
    for (k = 0; k < m->face_count && l.count < 0x3fffffff; k++) fsi__wc_lay_face(&l, m, k, step);
    return l.count;
}

static int fsi__wc_sample_cell(const fsi__wc_samples *s, fsi_vec3 x)
{
    int c[3], k;
    for (k = 0; k < 3; k++) {
        c[k] = (int)floor((fsi__wc_axis(x, k) - fsi__wc_axis(s->corner, k)) / s->dx);
        c[k] = c[k] < 0 ? 0 : c[k] >= s->cells[k] ? s->cells[k] - 1 : c[k];
    }
    return (c[2] * s->cells[1] + c[1]) * s->cells[0] + c[0];
}

FSI_API int fsi__wc_make_samples(fsi_context *context, fsi__wc_samples *s, const fsi_mesh *mesh, double dx,
                                 double step)
{
    const double depth = mesh->kind == FSI_MESH_TWO_SIDED ? 0 : dx / 2;
    fsi_box3 box = fsi_box3_empty();
    fsi__wc_sample *loose;
    double cells = 1;
    int k, n = fsi__wc_lay_mesh(mesh, step, depth, dx / 2, NULL);

    /* As many as the same walk over the mesh counts, in its order. */
    loose = (fsi__wc_sample *)fsi__alloc(context, (size_t)n, sizeof *loose);
    if (!loose) return 0;
    fsi__wc_lay_mesh(mesh, step, depth, dx / 2, loose);

    /* Cells around them. */
    s->dx = dx;
    for (k = 0; k < n; k++) box = fsi_box3_grow(box, loose[k].x);
    s->corner = box.lo;
    for (k = 0; k < 3; k++) {
        cells *= floor(fsi__wc_axis(fsi_v3_sub(box.hi, box.lo), k) / dx) + 1;
        s->cells[k] = cells < 1e9 ? (int)floor(fsi__wc_axis(fsi_v3_sub(box.hi, box.lo), k) / dx) + 1 : 1;
    }

    /* Memory. */
    s->count = n;
    s->sample = (fsi__wc_sample *)fsi__alloc(context, (size_t)n, sizeof *loose);
    s->shown = (fsi_vec3 *)fsi__alloc(context, (size_t)n, sizeof(fsi_vec3));
    s->shown_normal = (fsi_vec3 *)fsi__alloc(context, (size_t)n, sizeof(fsi_vec3));
    s->cell = cells < 1e9 ? (int *)fsi__alloc(context, (size_t)cells + 1, sizeof(int)) : NULL;

    /* Counting sort: the ends of the cells; then, from the last sample on, each end moves down to its start. */
    if (s->sample && s->shown && s->shown_normal && s->cell) {
        for (k = 0; k < n; k++) s->cell[fsi__wc_sample_cell(s, loose[k].x) + 1]++;
        for (k = 0; k < (int)cells; k++) s->cell[k + 1] += s->cell[k];
        for (k = n - 1; k >= 0; k--) {
            const int c = fsi__wc_sample_cell(s, loose[k].x) + 1;
            s->sample[--s->cell[c]] = loose[k];
        }
        for (k = 0; k < (int)cells; k++) s->cell[k] = s->cell[k + 1];
        s->cell[(int)cells] = n;
    }
    fsi__free(context, loose, (size_t)n, sizeof *loose);
    return s->sample && s->shown && s->shown_normal && s->cell;
}

FSI_API void fsi__wc_free_samples(fsi_context *context, fsi__wc_samples *s)
{
    const size_t n = (size_t)s->count;
    fsi__free(context, s->sample, n, sizeof(fsi__wc_sample));
    fsi__free(context, s->shown, n, sizeof(fsi_vec3));
    fsi__free(context, s->shown_normal, n, sizeof(fsi_vec3));
    fsi__free(context, s->cell, (size_t)s->cells[0] * (size_t)s->cells[1] * (size_t)s->cells[2] + 1, sizeof(int));
}

/* ---- >>seeking -------------------------------------------------------------------------------------------------- */

FSI_API fsi__wc_seek fsi__wc_seek_cells(const fsi__wc_samples *s, fsi_vec3 x, double reach)
{
    fsi__wc_seek k;
    int i;
    k.s = s;
    k.item = NULL;
    k.at = k.end = 0;
    for (i = 0; i < 3; i++) {
        const double at = (fsi__wc_axis(x, i) - fsi__wc_axis(s->corner, i)) / s->dx;
        k.lo[i] = (int)fmin(fmax(floor(at - reach / s->dx), 0), s->cells[i]);
        k.hi[i] = (int)fmin(floor(at + reach / s->dx), s->cells[i] - 1);
    }
    k.y = k.lo[1] - 1;
    k.z = k.lo[2];
    if (k.hi[0] < k.lo[0] || k.hi[1] < k.lo[1]) k.z = k.hi[2] + 1;
    return k;
}

FSI_API int fsi__wc_next_sample(fsi__wc_seek *k)
{
    if (k->item) return k->at < k->end ? k->item[k->at++].index : -1;
    while (k->at == k->end) {
        int row;
        if (k->z > k->hi[2]) return -1;
        if (++k->y > k->hi[1]) {
            k->y = k->lo[1] - 1;
            k->z++;
            continue;
        }
        row = (k->z * k->s->cells[1] + k->y) * k->s->cells[0];
        k->at = k->s->cell[row + k->lo[0]];
        k->end = k->s->cell[row + k->hi[0] + 1];
    }
    return k->at++;
}

FSI_API int fsi__wc_nearest_sample(fsi__wc_seek seek, fsi_vec3 x, double reach, double *least)
{
    int k, nearest = -1;
    *least = reach;
    while ((k = fsi__wc_next_sample(&seek)) >= 0) {
        const double d = sqrt((double)fsi_v3_norm2(fsi_v3_sub(x, seek.s->sample[k].x))) - (double)seek.s->sample[k].r;
        if (d < *least) { *least = d; nearest = k; }
    }
    return nearest;
}

/* ---- >>offset surface ------------------------------------------------------------------------------------------- */

/* The offset surface is the hull of balls around the samples, of radius r_P, or less in thin places (S1,
   direct_forcing.md 3):
      d = min (|x - x_P| - r_P),   n = sum n_P (1 - |x - x_P|/(2 dx))^2, made unit;
   a particle moves along n until it is clear of all balls. Only particles nearer than `felt` get a normal. */
FSI_API int fsi__wc_near_samples(const fsi__wc_seek *seek, int two_sided, double side, fsi_vec3 x, double gap,
                                 double felt, double reach, fsi__wc_touch *t)
{
    const fsi__wc_samples *s = seek->s;
    const double dx = s->dx;
    const int nearest = fsi__wc_nearest_sample(*seek, x, reach - dx / 2, &t->d);
    fsi__wc_seek again = *seek;
    fsi__d3 n, m;
    int k;

    /* Distance d; a particle that is far enough needs no more. */
    if (nearest < 0) return 0;
    t->push = gap - t->d;
    if (!(t->d < felt)) return 1;

    /* Normal n, on the side of the particle. */
    m = fsi__d3_of(s->sample[nearest].n);
    if (!two_sided) side = 1;
    else if (!(side < 0 || side > 0))
        side = fsi__d3_dot(fsi__d3_of(fsi_v3_sub(x, s->sample[nearest].x)), m) < 0 ? -1 : 1;
    n = fsi__d3_scale(m, 1e-9 * side);
    while ((k = fsi__wc_next_sample(&again)) >= 0) {
        const double r2 = (double)fsi_v3_norm2(fsi_v3_sub(x, s->sample[k].x)), w = 1 - sqrt(r2) / (2 * dx);
        if (r2 < reach * reach) n = fsi__d3_madd(n, side * w * w, fsi__d3_of(s->sample[k].n));
    }
    t->n = n = fsi__d3_scale(n, 1 / fmax(fsi__d3_norm(n), 1e-30));

    /* The distance along n to where all balls are `gap` away. */
    again = *seek;
    while ((k = fsi__wc_next_sample(&again)) >= 0) {
        const fsi_vec3 y = fsi_v3_sub(x, s->sample[k].x);
        const double r2 = (double)fsi_v3_norm2(y), b = fsi__d3_dot(n, fsi__d3_of(y)),
                     full = gap + (double)s->sample[k].r;
        if (r2 < full * full) t->push = fmax(t->push, sqrt(b * b + full * full - r2) - b);
    }
    return 1;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
