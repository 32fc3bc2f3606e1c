/* test_sph_scenes.h - liquids that do much at once, for tests of promises: a dam that breaks over a bar, a fountain, honey poured.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_SPH_SCENES_H
#define FSI_TEST_SPH_SCENES_H

#include "test_sph.h"

/* A column of liquid in the left of a box of 0.4 m, dam break to come; `obstacle` may be NULL. */
TEST_FN fsi_sph *make_dam(int dim, double dx, fsi_context *context, const fsi_mesh *obstacle)
{
    fsi_sph_desc d = make_desc(dim, dx);
    fsi_sph *s;
    d.context = context;
    d.domain = dim == 2 ? box3(0, 0, 0, 0.4, 0.4, 0) : box3(0, 0, 0, 0.4, 0.16, 0.4);
    d.depth = (fsi_real)0.25;
    s = make_sph(&d);
    if (obstacle) CHECK(fsi_sph_add_mesh(s, obstacle, NULL) == FSI_OK);
    CHECK(fsi_sph_fill_box(s, dim == 2 ? box3(0, 0, 0, 0.16, 0.24, 0) : box3(0, 0, 0, 0.16, 0.16, 0.24), v3(0, 0, 0), NULL) == FSI_OK);
    return s;
}

/* A tilted bar across the box. */
TEST_FN fsi_mesh *make_bar(int dim, fsi_context *context)
{
    int k;
    shape_begin(dim);
    shape_box(dim == 2 ? box3(-0.03, -0.02, 0, 0.03, 0.02, 0) : box3(-0.03, -0.05, -0.02, 0.03, 0.05, 0.02));
    for (k = 0; k < shape.nx; k++) {
        fsi_vec3 p = fsi_quat_rotate(fsi_quat_from_axis_angle(dim == 2 ? v3(0, 0, 1) : v3(1, 2, 0), (fsi_real)0.5), shape.x[k]);
        shape.x[k] = fsi_v3_add(p, dim == 2 ? v3(0.25, 0.05, 0) : v3(0.25, 0.08, 0.06));
    }
    return shape_make_with(context, FSI_MESH_CLOSED, 0);
}

/* Pool, jet from the side, inlet in the floor, mesh that drops a blob, drains; attributes, markers. */
typedef struct fountain { fsi_sph *s; fsi_mesh *blob; int jet, floor, drop, drain; } fountain;

TEST_FN fsi_vec3 in_tank(int dim, double x, double h) { return dim == 2 ? v3(x, h, 0) : v3(x, 0.08, h); }

TEST_FN fountain make_fountain(int dim, double dx, fsi_context *context)
{
    static const fsi_real colour[2] = { 3, (fsi_real)0.25 };
    fsi_sph_desc d = make_desc(dim, dx);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_sink_desc k = fsi_sink_default_desc();
    fountain f;
    d.context = context;
    d.domain = dim == 2 ? box3(0, 0, 0, 0.4, 0.5, 0) : box3(0, 0, 0, 0.4, 0.16, 0.5);
    d.depth = (fsi_real)0.3;
    d.attribute_count = 2;
    d.markers = 1;
    d.max_particles = 100000;
    f.s = make_sph(&d);
    CHECK(fsi_sph_fill_box(f.s, dim == 2 ? box3(0, 0, 0, 0.4, 0.12, 0) : box3(0, 0, 0, 0.4, 0.16, 0.12), v3(0, 0, 0), NULL) == FSI_OK);
    e.center = in_tank(dim, 0, 0.35);
    e.direction = in_tank(dim, 1, 0.2);
    if (dim == 3) e.direction.y = 0;
    e.radius = (fsi_real)(2.2 * dx);
    e.speed = (fsi_real)1.5;
    e.filter = 5;
    e.attributes = colour;
    CHECK(fsi_sph_add_emitter(f.s, &e, &f.jet) == FSI_OK);
    e = fsi_emitter_default_desc();
    e.shape = FSI_EMITTER_BOX;
    e.center = in_tank(dim, 0.3, 0);
    e.direction = dim == 2 ? v3(0, 1, 0) : v3(0, 0, 1);
    e.half_width = e.half_height = (fsi_real)(1.5 * dx);
    e.speed = (fsi_real)0.5;
    CHECK(fsi_sph_add_emitter(f.s, &e, &f.floor) == FSI_OK);
    shape_begin(dim);
    shape_box(dim == 2 ? box3(0.2, 0.4, 0, 0.2 + 4.2 * dx, 0.4 + 4.2 * dx, 0) : box3(0.2, 0.04, 0.4, 0.2 + 3.2 * dx, 0.04 + 3.2 * dx, 0.4 + 3.2 * dx));
    f.blob = shape_make_with(context, FSI_MESH_CLOSED, 0);
    e = fsi_emitter_default_desc();
    e.shape = FSI_EMITTER_MESH;
    e.mesh = f.blob;
    e.speed = 0;
    e.start = 0.01;
    e.period = 0.15;
    CHECK(fsi_sph_add_emitter(f.s, &e, &f.drop) == FSI_OK);
    k.box = dim == 2 ? box3(0.34, -1, 0, 1, 0.1, 0) : box3(0.34, -1, -1, 1, 1, 0.1);
    k.rate = (fsi_real)(dim == 2 ? 0.05 : 0.01);
    CHECK(fsi_sph_add_sink(f.s, &k, &f.drain) == FSI_OK);
    return f;
}

TEST_FN void end_fountain(fountain *f)
{
    fsi_sph_destroy(f->s);
    fsi_mesh_destroy(f->blob);
}

/* Honey falls into a glass; `obstacle` may be NULL. */
TEST_FN fsi_sph *make_pour(int dim, fsi_context *context, const fsi_mesh *obstacle)
{
    fsi_sph_desc d = make_desc(dim, 0.02);
    fsi_sph *s;
    d.context = context;
    d.viscosity = 20;
    d.depth = (fsi_real)0.25;
    d.domain = dim == 2 ? box3(0, 0, 0, 0.4, 0.4, 0) : box3(0, 0, 0, 0.3, 0.16, 0.4);
    s = make_sph(&d);
    if (obstacle) CHECK(fsi_sph_add_mesh(s, obstacle, NULL) == FSI_OK);
    CHECK(fsi_sph_fill_box(s, dim == 2 ? box3(0, 0, 0, 0.16, 0.24, 0) : box3(0, 0, 0, 0.16, 0.16, 0.2), v3(0, 0, 0), NULL) == FSI_OK);
    return s;
}

TEST_FN fsi_mesh *make_pour_block(void)
{
    shape_begin(2);
    shape_box(box3(0.2, 0, 0, 0.26, 0.06, 0));
    return shape_make(FSI_MESH_CLOSED, 0);
}

#endif /* FSI_TEST_SPH_SCENES_H */
