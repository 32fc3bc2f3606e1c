/* test_sph_moving.c - obstacles that move and bodies that the liquid moves: nothing gets through, what one is given the other loses.
   SPDX-License-Identifier: MIT */
#define FSI_IMPLEMENTATION
#include "../fsi_sph.h"
#include "test.h"
#include "test_sph.h"

/* A tank around the origin's quadrant, half filled: 0.64 x 0.32 (x 0.16) m. */
static fsi_sph *make_tank(int dim, double dx, double level, fsi_context *context, int substeps)
{
    fsi_sph_desc d = make_desc(dim, dx);
    fsi_sph *s;
    d.context = context;
    d.domain = dim == 2 ? box3(0, 0, 0, 0.64, 0.48, 0) : box3(0, 0, 0, 0.64, 0.16, 0.48);
    d.depth = (fsi_real)0.3;
    d.max_substeps = substeps;
    s = make_sph(&d);
    CHECK(fsi_sph_fill_box(s, dim == 2 ? box3(0, 0, 0, 0.64, level, 0) : box3(0, 0, 0, 0.64, 0.16, level), v3(0, 0, 0)) == FSI_OK);
    return s;
}

/* A box of half sizes a, b (2D: in x and y; 3D: in x and z, across the tank less a slit in y) around the origin. */
static fsi_mesh *make_block(int dim, double a, double b, double across)
{
    shape_begin(dim);
    shape_box(dim == 2 ? box3(-a, -b, 0, a, b, 0) : box3(-a, -across, -b, a, across, b));
    return shape_make(FSI_MESH_CLOSED, 0);
}

/* At (x, h) of the tank's upright plane, turned by `angle` in it. */
static fsi_pose pose_at(int dim, double x, double h, double angle)
{
    fsi_pose p;
    p.position = dim == 2 ? v3(x, h, 0) : v3(x, 0.08, h);
    p.orientation = fsi_quat_from_axis_angle(dim == 2 ? v3(0, 0, 1) : v3(0, -1, 0), (fsi_real)angle);
    return p;
}

/* Takes a mesh made around the origin to a pose, as what was there before is not to be swept. */
static void mesh_to(fsi_mesh *m, fsi_pose p)
{
    CHECK(fsi_mesh_move_rigid(m, p.position, p.orientation) == FSI_OK);
    CHECK(fsi_mesh_move_rigid(m, p.position, p.orientation) == FSI_OK);
}

/* T6: a block that turns and rushes through water, 1 to 3 spacings a step, without substeps: no particle is ever inside. */
static void sweep_through(int dim, double dx, double dt, int by_body, long *placed)
{
    fsi_mesh *m = make_block(dim, 0.05, 0.03, 0.06);
    fsi_sph *s = make_tank(dim, dx, 0.24, NULL, 1);
    fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
    fsi_body body = fsi_default_body();
    int step, steps = (int)(0.4 / dt), inside = 0, particles = s->count, outside = 0, i;
    body.pose = body.end = pose_at(dim, 0.12, 0.4, 0);
    mesh_to(m, body.pose);
    o.mesh = m;
    o.body = by_body ? &body : NULL;
    CHECK(fsi_sph_add_obstacle_desc(s, &o, NULL) == FSI_OK);
    for (step = 1; step <= steps; step++) {
        double t = step * dt;
        body.end = pose_at(dim, 0.32 - 0.2 * cos(8 * t), 0.16 + 0.24 * cos(6 * t), 9 * t);
        if (!by_body) CHECK(fsi_mesh_move_rigid(m, body.end.position, body.end.orientation) == FSI_OK);
        if (!step_ok(s, dt)) break;
        fsi_body_integrate(&body, (fsi_real)dt);
        inside += fsi_sph_count_inside(s, NULL);
        *placed += s->stats.placed;
        CHECK(s->stats.substeps == 1 && s->stats.refits == 1);
    }
    for (i = 0; i < s->count; i++) outside += !fsi_v3_is_finite(s->position[i]);
    CHECK(inside == 0 && outside == 0 && s->count == particles);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(m);
}

static void test_a_block_rushes_through_water_and_nothing_enters_it(void)
{
    long placed = 0;
    sweep_through(2, 0.02, 3e-3, 0, &placed);
    sweep_through(2, 0.02, 9e-3, 1, &placed);
    sweep_through(3, 0.04, 9e-3, 0, &placed);
    sweep_through(3, 0.04, 6e-3, 1, &placed);
    printf("      %ld placed in all\n", placed);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_block_rushes_through_water_and_nothing_enters_it);
    return TEST_END();
}
