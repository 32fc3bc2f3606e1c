/* test_bodies.h - bodies in liquids: what test_sph_moving.c measures small and validate_bodies.c at full size.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_BODIES_H
#define FSI_TEST_BODIES_H

#include "test_sph.h"

TEST_FN void add_body(fsi_sph *s, fsi_mesh *m, fsi_body *body)
{
    fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
    o.mesh = m;
    o.body = body;
    CHECK(fsi_sph_add_obstacle(s, &o, NULL) == FSI_OK);
}

/* A crate n spacings high, half as wide again (a square one would tip over: stable where density (1 - density) <
   (width/height)^2/6), comes to float in a tank: how far its draft is off density times height, in spacings. */
TEST_FN double draft_error(fsi_context *context, int dim, int n, double density)
{
    const double high = 0.12, width = 1.5 * high, dx = high / n, wide = dim == 2 ? 0.64 : 0.36, deep = 0.2,
                 base = dim == 2 ? wide : wide * wide;
    const double share = density / 1000, level = deep + (dim == 2 ? width : width * width) * high * share / base,
                 want = level + high * (0.5 - share);
    fsi_mesh *m = make_block(dim, width / 2, high / 2, width / 2);
    fsi_body body = make_floater(m, density, 9.81, dim);
    fsi_sph_desc d = make_desc(dim, dx);
    fsi_sph *s;
    double mean = 0;
    int k, i;
    d.context = context;
    d.domain = dim == 2 ? box3(0, 0, 0, wide, 0.48, 0) : box3(0, 0, 0, wide, wide, 0.48);
    d.depth = (fsi_real)0.3;
    s = make_sph(&d);
    CHECK(fsi_sph_fill_box(s, dim == 2 ? box3(0, 0, 0, wide, deep, 0) : box3(0, 0, 0, wide, wide, deep), v3(0, 0, 0),
                           NULL) == FSI_OK);
    body.pose = pose_at(dim, wide / 2, want + 0.03, 0);
    if (dim == 3) body.pose.position.y = (fsi_real)(wide / 2);
    mesh_to(m, body.pose);
    add_body(s, m, &body);
    for (k = 0; k < 750; k++) {
        for (i = 0; i < s->count && k < 500; i++) s->velocity[i] = fsi_v3_scale(s->velocity[i], (fsi_real)0.97);
        if (k < 500) body.velocity = fsi_v3_scale(body.velocity, (fsi_real)0.97);
        if (!step_ok(s, 4e-3)) break;
        fsi_body_integrate(&body, (fsi_real)4e-3);
        if (k >= 500) mean += (double)(dim == 2 ? body.pose.position.y : body.pose.position.z) / 250;
    }
    CHECK(fsi_sph_count_inside(s, NULL) == 0);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(m);
    return (want - mean) / dx;
}

/* A cylinder of diameter D, n spacings, half as heavy again as the liquid, falls along the middle of a channel 4 D
   wide, `lengths` channel widths long; gravity acts on its weight less buoyancy only. Its speed, the mean over the last
   quarter, over that at which Faxen's drag (1946) balances it: F = 4 pi mu U / (ln(1/k) - 0.9157 + 1.7244 k^2 - 1.7302
   k^4), k = D / width. Re = 0.07. */
TEST_FN double terminal_speed_ratio(fsi_context *context, int n, double lengths)
{
    const double D = 0.1, dx = D / n, wide = 4 * D, high = lengths * wide, mu = 50, k = D / wide, dt = 4e-3;
    const double load = 500 * PI * D * D / 4 * 9.81,
                 want = load * (log(1 / k) - 0.9157 + 1.7244 * k * k - 1.7302 * k * k * k * k) / (4 * PI * mu);
    const int steps = 200;
    fsi_mesh *m = make_cylinder(D / 2, 4 * n);
    fsi_body body = make_floater(m, 1500, 0, 2);
    fsi_sph_desc d = make_desc(2, dx);
    fsi_sph *s;
    double speed = 0;
    int i;
    d.context = context;
    d.gravity = v3(0, 0, 0);
    d.domain = box3(0, 0, 0, wide, high, 0);
    d.viscosity = (fsi_real)mu;
    d.depth = (fsi_real)0.3;
    s = make_sph(&d);
    body.force = v3(0, -load, 0);
    body.pose = pose_at(2, wide / 2, 0.55 * high, 0);
    mesh_to(m, body.pose);
    add_body(s, m, &body);
    CHECK(fsi_sph_fill_box(s, d.domain, v3(0, 0, 0), NULL) == FSI_OK);
    for (i = 0; i < steps; i++) {
        if (!step_ok(s, dt)) break;
        fsi_body_integrate(&body, (fsi_real)dt);
        if (i >= steps - steps / 4) speed -= (double)body.velocity.y / (steps / 4);
    }
    fsi_sph_destroy(s);
    fsi_mesh_destroy(m);
    return speed / want;
}

#endif
