/* test_elastic.h - elastic bodies for tests: blocks of tetrahedra, and worlds that hold them.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_ELASTIC_H
#define FSI_TEST_ELASTIC_H

#include "test.h"
#include "../../fsi_elastic.h"

#define REAL(x) ((fsi_real)(x))

/* A block of nx x ny x nz cubes of side a (nz = 0: squares in the plane), each cut into six (two) simplices. */
typedef struct block {
    int nx, ny, nz, dim, vertices, elements;
    double a;
    fsi_vec3 *x;
    int *element;
} block;

TEST_FN int block_at(const block *b, int x, int y, int z) { return x + (b->nx + 1) * (y + (b->ny + 1) * z); }

TEST_FN block block_make(int nx, int ny, int nz, double a)
{
    static const int order[6][3] = { { 0, 1, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 0, 2, 1 }, { 2, 1, 0 }, { 1, 0, 2 } };
    static const int flat[2][3] = { { 0, 1, 2 }, { 1, 0, 2 } };
    block b;
    int i, k, j, *to;
    b.nx = nx;
    b.ny = ny;
    b.nz = nz;
    b.dim = nz > 0 ? 3 : 2;
    b.a = a;
    b.vertices = (nx + 1) * (ny + 1) * (nz + 1);
    b.elements = nx * ny * (nz > 0 ? 6 * nz : 2);
    b.x = (fsi_vec3 *)malloc((size_t)b.vertices * sizeof *b.x);
    b.element = (int *)malloc((size_t)(b.elements * (b.dim + 1)) * sizeof(int));
    for (i = 0; i < b.vertices; i++)
        b.x[i] =
            fsi_v3(REAL(a * (i % (nx + 1))), REAL(a * (i / (nx + 1) % (ny + 1))), REAL(a * (i / (nx + 1) / (ny + 1))));
    for (i = 0, to = b.element; i < nx * ny * (nz > 0 ? nz : 1); i++) for (k = 0; k < (nz > 0 ? 6 : 2); k++) {
        int at[3];
        at[0] = i % nx;
        at[1] = i / nx % ny;
        at[2] = i / nx / ny;
        for (j = 0; j <= b.dim; j++) {
            if (j > 0) at[nz > 0 ? order[k][j - 1] : flat[k][j - 1]]++;
            to[j] = block_at(&b, at[0], at[1], at[2]);
        }
        if (nz > 0 ? k >= 3 : k >= 1) {
            const int t = to[b.dim];
            to[b.dim] = to[b.dim - 1];
            to[b.dim - 1] = t;
        }
        to += b.dim + 1;
    }
    return b;
}

TEST_FN void block_free(block *b)
{
    free(b->x);
    free(b->element);
}

/* A closed box as a mesh, from lo to hi (2D: a rectangle). */
TEST_FN fsi_mesh *box_mesh(fsi_vec3 lo, fsi_vec3 hi, int dim)
{
    static const int face[36] = { 0, 2, 1, 1, 2, 3, 4, 5, 6, 5, 7, 6, 0, 1, 4, 1, 5, 4,
                                  2, 6, 3, 3, 6, 7, 0, 4, 2, 2, 4, 6, 1, 3, 5, 3, 7, 5 };
    static const int edge[8] = { 1, 0, 3, 1, 2, 3, 0, 2 };
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_vec3 corner[8];
    fsi_mesh *m = NULL;
    int k;
    for (k = 0; k < 8; k++) corner[k] = fsi_v3(k & 1 ? hi.x : lo.x, k & 2 ? hi.y : lo.y, k & 4 ? hi.z : lo.z);
    d.vertices = corner;
    d.vertex_count = dim == 3 ? 8 : 4;
    d.elements = dim == 3 ? face : edge;
    d.element_count = dim == 3 ? 12 : 4;
    d.corners = dim;
    CHECK(fsi_mesh_create(&m, &d) == FSI_OK);
    return m;
}

/* A ball of triangles between circles of latitude, at most 22 rings. */
TEST_FN fsi_mesh *ball_mesh(double radius, int rings)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_vec3 x[1000];
    int face[6000], n = 0, f = 0, i, j;
    const int around = 2 * rings;
    fsi_mesh *m = NULL;
    x[n++] = fsi_v3(0, 0, REAL(radius));
    for (i = 1; i < rings; i++) for (j = 0; j < around; j++)
            x[n++] = fsi_v3(REAL(radius * sin(FSI_PI * i / rings) * cos(2 * FSI_PI * j / around)),
                            REAL(radius * sin(FSI_PI * i / rings) * sin(2 * FSI_PI * j / around)),
                            REAL(radius * cos(FSI_PI * i / rings)));
    x[n++] = fsi_v3(0, 0, REAL(-radius));
    for (j = 0; j < around; j++) {
        const int k = (j + 1) % around;
        face[f++] = 0; face[f++] = 1 + j; face[f++] = 1 + k;
        for (i = 1; i < rings - 1; i++) {
            const int a = 1 + (i - 1) * around, b = a + around;
            face[f++] = a + j; face[f++] = b + j; face[f++] = b + k;
            face[f++] = a + j; face[f++] = b + k; face[f++] = a + k;
        }
        face[f++] = n - 1; face[f++] = n - 1 - around + k; face[f++] = n - 1 - around + j;
    }
    d.vertices = x;
    d.vertex_count = n;
    d.elements = face;
    d.element_count = f / 3;
    CHECK(fsi_mesh_create(&m, &d) == FSI_OK);
    return m;
}

/* A world in 3D or 2D, its settings and material: change these before world_begin. */
typedef struct world {
    fsi_context context;
    fsi_elastic_desc desc;
    fsi_elastic_body_desc body;
    fsi_elastic_material material;
    fsi_elastic *s;
} world;

TEST_FN world world_of(int dim)
{
    world w;
    memset(&w, 0, sizeof w);
    w.context = fsi_default_context();
    w.desc = fsi_elastic_default_desc();
    w.desc.dim = dim;
    w.desc.gravity = fsi_v3(0, dim == 2 ? REAL(-9.81) : 0, dim == 3 ? REAL(-9.81) : 0);
    w.body = fsi_elastic_default_body_desc();
    w.material = fsi_elastic_default_material();
    return w;
}

TEST_FN int world_begin(world *w)
{
    w->desc.context = &w->context;
    if (fsi_elastic_create(&w->s, &w->desc) == FSI_OK) return 1;
    printf("%s\n", w->context.error.message);
    return CHECK(0);
}

/* Adds a block with w->body and w->material; its id. */
TEST_FN int world_add(world *w, const block *b)
{
    int id = -1;
    w->body.vertices = b->x;
    w->body.vertex_count = b->vertices;
    w->body.elements = b->element;
    w->body.element_count = b->elements;
    w->body.materials = &w->material;
    w->body.material_count = 1;
    if (fsi_elastic_add_body(w->s, &w->body, &id) != FSI_OK) {
        printf("%s\n", w->context.error.message);
        CHECK(0);
    }
    return id;
}

/* A floor: z = 0, in 2D y = 0. */
TEST_FN int world_floor(world *w, double friction)
{
    fsi_elastic_shape_desc d = fsi_elastic_default_shape_desc();
    int id = -1;
    d.normal = w->desc.dim == 3 ? fsi_v3(0, 0, 1) : fsi_v3(0, 1, 0);
    d.friction = REAL(friction);
    CHECK(fsi_elastic_add_shape(w->s, &d, &id) == FSI_OK);
    return id;
}

TEST_FN int world_run(world *w, double dt, int steps)
{
    int k;
    for (k = 0; k < steps; k++) if (fsi_elastic_step(w->s, REAL(dt)) != FSI_OK) {
        printf("step %d: %s\n", k, w->context.error.message);
        return CHECK(0);
    }
    return 1;
}

/* Pins the vertices of a block with x <= at (side -1) or x >= at (side 1) where they are. */
TEST_FN void world_clamp(world *w, int id, const block *b, double at, int side)
{
    fsi_elastic_attachment_desc d = fsi_elastic_default_attachment_desc();
    int v;
    for (v = 0; v < b->vertices; v++) {
        if (side * ((double)b->x[v].x - at) < -1e-6) continue;
        d.body = id;
        d.vertex = v;
        d.target = fsi_v3_add(b->x[v], w->body.position);
        CHECK(fsi_elastic_attach(w->s, &d, NULL) == FSI_OK);
    }
}

TEST_FN void world_end(world *w)
{
    fsi_elastic_destroy(w->s);
    CHECK(w->context.bytes == 0);
}

#endif /* FSI_TEST_ELASTIC_H */
