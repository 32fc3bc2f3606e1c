/* Speed of the passes of fsi_grid.h, fsi_phi.h and the cut faces of fsi_pressure.h over a ball above a pool in 128^3:
   each in ms, and times what memory would need to stream the fields that it reads and writes, once each, in the blocks
   that exist. usage: bench_grid [cells along an edge].
   SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_pressure.h"
#include <stdio.h>
#include <stdlib.h>
#include "bench.h"

enum { ROUNDS = 7 };

typedef struct scene {
    fsi_context context;
    fsi_grid *grid;
    fsi_field *phi, *other, *u[3], *next[3];
    fsi_grid_surface *surface;
    fsi_grid_faces *faces;
    fsi_mesh *mesh;
    int *label, *grown, count;
    unsigned char *known, *liquid;
    fsi_grid_component part[8];
    double stream;
} scene;

static void must(scene *s, fsi_status status)
{
    if (status == FSI_OK) return;
    puts(s->context.error.message);
    exit(1);
}

/* A sphere of 2 * 4^levels * 4 triangles: an octahedron whose faces are cut in four again and again. */
static fsi_mesh *make_ball(scene *s, fsi_vec3 center, fsi_real radius, int levels)
{
    const int octant[24] = { 0, 2, 4, 2, 1, 4, 1, 3, 4, 3, 0, 4, 2, 0, 5, 1, 2, 5, 3, 1, 5, 0, 3, 5 };
    fsi_vec3 *x = (fsi_vec3 *)malloc(sizeof *x * ((size_t)24 << (2 * levels)));
    int *t = (int *)malloc(sizeof *t * ((size_t)24 << (2 * levels)));
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh = NULL;
    int k, level, count = 24;
    if (!x || !t) exit(1);
    for (k = 0; k < 24; k++) {
        const int axis = octant[k] / 2;
        const fsi_real side = octant[k] & 1 ? -1 : 1;
        x[k] = fsi_v3(axis == 0 ? side : 0, axis == 1 ? side : 0, axis == 2 ? side : 0);
    }
    for (level = 0; level < levels; level++, count *= 4)
        for (k = count / 3 - 1; k >= 0; k--) { /* from the last on: four take the place of one and of three that were
                                                  moved before */
            const fsi_vec3 a = x[3 * k], b = x[3 * k + 1], c = x[3 * k + 2];
            const fsi_vec3 ab = fsi_v3_unit(fsi_v3_add(a, b)), bc = fsi_v3_unit(fsi_v3_add(b, c)),
                           ca = fsi_v3_unit(fsi_v3_add(c, a));
            const fsi_vec3 four[12] = { a, ab, ca, ab, b, bc, ca, bc, c, ab, bc, ca };
            memcpy(x + 12 * k, four, sizeof four);
        }
    for (k = 0; k < count; k++) {
        x[k] = fsi_v3_madd(center, radius, x[k]);
        t[k] = k;
    }
    d.context = &s->context;
    d.vertices = x;
    d.vertex_count = count;
    d.elements = t;
    d.element_count = count / 3;
    must(s, fsi_mesh_create(&mesh, &d));
    free(x);
    free(t);
    return mesh;
}

static void make_scene(scene *s, int n)
{
    fsi_grid_desc d = fsi_grid_default_desc();
    const fsi_vec3 center = fsi_v3((fsi_real)0.5, (fsi_real)0.6, (fsi_real)0.5);
    fsi_box3 pool;
    size_t cells, e;
    int a;
    memset(s, 0, sizeof *s);
    s->context = fsi_default_context();
    d.context = &s->context;
    d.n[0] = d.n[1] = d.n[2] = n;
    d.dx = (fsi_real)(1.0 / n);
    must(s, fsi_grid_create(&s->grid, &d));
    must(s, fsi_grid_add_field(s->grid, FSI_CELLS, 8 * d.dx, &s->phi));
    must(s, fsi_grid_add_field(s->grid, FSI_CELLS, 8 * d.dx, &s->other));
    for (a = 0; a < 3; a++) {
        must(s, fsi_grid_add_field(s->grid, (fsi_grid_place)((int)FSI_FACES_X + a), 0, &s->u[a]));
        must(s, fsi_grid_add_field(s->grid, (fsi_grid_place)((int)FSI_FACES_X + a), 0, &s->next[a]));
    }
    pool.lo = fsi_v3(0, 0, 0);
    pool.hi = fsi_v3(1, (fsi_real)0.25, 1);
    must(s, fsi_grid_fill_sphere(s->phi, FSI_GRID_ADD, center, (fsi_real)0.35, 8));
    must(s, fsi_grid_fill_box(s->phi, FSI_GRID_ADD, pool, 8));
    must(s, fsi_grid_surface_create(&s->surface, &s->context));
    must(s, fsi_grid_faces_create(&s->faces, &s->context));
    s->mesh = make_ball(s, center, (fsi_real)0.35, 6);
    cells = (size_t)s->grid->block_count * (size_t)s->grid->block_cells;
    s->label = (int *)calloc(cells, sizeof(int));
    s->grown = (int *)calloc(cells, sizeof(int));
    s->known = (unsigned char *)calloc(cells, 1);
    s->liquid = (unsigned char *)calloc(cells, 1);
    if (!s->label || !s->grown || !s->known || !s->liquid) exit(1);
    for (e = 0; e < cells; e++) {
        s->liquid[e] = s->phi->value[e] < 0;
        for (a = 0; a < 3; a++) s->u[a]->value[e] = (fsi_real)fsi_sin(0.01 * (double)(e % 4096) + a);
    }
}

static void advect(scene *s, fsi_grid_scheme scheme) /* at CFL 0.7 */
{
    const fsi_real dt = (fsi_real)0.7 * s->grid->dx;
    must(s, fsi_grid_advect_velocity(s->u, s->u, dt, scheme, 2, NULL, s->next));
    must(s, fsi_grid_advect(s->phi, s->u, dt, scheme, 2, NULL, s->other));
}
static void advect_linear(scene *s) { advect(s, FSI_ADVECT_LINEAR); }
static void advect_cubic(scene *s) { advect(s, FSI_ADVECT_CUBIC); }
static void advect_quintic(scene *s) { advect(s, FSI_ADVECT_QUINTIC); }
static void extrapolate(scene *s)
{
    int a;
    for (a = 0; a < 3; a++) {
        memcpy(s->known, s->liquid, (size_t)s->grid->block_count * (size_t)s->grid->block_cells);
        must(s, fsi_grid_extrapolate(s->u[a], s->known, 5));
    }
}
static void redistance(scene *s) { must(s, fsi_grid_redistance(s->phi, 8, s->other)); }
static void label(scene *s) { must(s, fsi_grid_label(s->phi, NULL, s->label, &s->count)); }
static void grow(scene *s)
{
    memcpy(s->grown, s->label, (size_t)s->grid->block_count * (size_t)s->grid->block_cells * sizeof(int));
    must(s, fsi_grid_grow_labels(s->grown, s->phi, 3));
}
static void volumes(scene *s) { must(s, fsi_grid_volumes(s->phi, s->label, s->count, NULL, NULL, s->part)); }
static void momentum(scene *s) { must(s, fsi_grid_volumes(s->phi, s->label, s->count, s->u, NULL, s->part)); }
static void surface(scene *s) { must(s, fsi_grid_surface_update(s->surface, s->phi, 1)); }
static void cut_faces(scene *s) { must(s, fsi_grid_faces_build(s->faces, s->grid, s->mesh)); }
static void mesh_distance(scene *s) { must(s, fsi_grid_mesh_distance(s->other, s->mesh, 3)); }

int main(int argc, char **argv)
{
    const struct { const char *name; void (*pass)(scene *s); double bytes; } list[] = { /* an entry of a block */
        { "advect u and phi, linear", advect_linear, 8 * sizeof(fsi_real) },
        { "advect u and phi, cubic", advect_cubic, 8 * sizeof(fsi_real) },
        { "advect u and phi, quintic", advect_quintic, 8 * sizeof(fsi_real) },
        { "extrapolate u by 5 layers", extrapolate, 3 * (2 * sizeof(fsi_real) + 2) },
        { "redistance, band 8", redistance, 2 * sizeof(fsi_real) },
        { "label components", label, sizeof(fsi_real) + sizeof(int) },
        { "grow labels by 3 layers", grow, sizeof(fsi_real) + 2 * sizeof(int) },
        { "volumes", volumes, sizeof(fsi_real) + sizeof(int) },
        { "volumes and momentum", momentum, 4 * sizeof(fsi_real) + sizeof(int) },
        { "surface, capped", surface, sizeof(fsi_real) },
        { "cut faces of a mesh", cut_faces, 3 * sizeof(fsi_real) },
        { "distance to a mesh, band 3", mesh_distance, sizeof(fsi_real) }
    };
    scene s;
    size_t k;
    double time[ROUNDS], cells;
    make_scene(&s, argc > 1 ? atoi(argv[1]) : 128);
    s.stream = stream_rate();
    cells = (double)s.grid->block_count * s.grid->block_cells;
    printf("%d blocks, %.2f M entries a field; mesh of %d triangles\n", s.grid->block_count, 1e-6 * cells,
           s.mesh->face_count);
    for (k = 0; k < sizeof list / sizeof *list; k++) {
        const double least = list[k].bytes * cells / s.stream;
        int t;
        for (t = 0; t < ROUNDS; t++) {
            const double start = bench_seconds(NULL);
            list[k].pass(&s);
            time[t] = bench_seconds(NULL) - start;
        }
        printf("%-28s %7.1f ms %6.1f ns an entry, floor %5.1f ms (x %.0f)\n", list[k].name, 1e3 * median(time, ROUNDS),
               1e9 * median(time, ROUNDS) / cells, 1e3 * least, median(time, ROUNDS) / least);
    }
    printf("%d component(s), %d triangles of surface, %d faces cut or covered\n", s.count, s.surface->element_count,
           s.faces->count);
    return 0;
}
