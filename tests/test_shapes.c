/* test_shapes.c - the solids that the examples build (examples/kit/shapes.h): closed, oriented, with the volume they
   should have.
   SPDX-License-Identifier: MIT */
#include "../examples/kit/kit.h"
#include "../examples/kit/shapes.h"
#include "kit/test.h"
#include "../fsi_io.h"

static fsi_mesh *mesh_of(const shape *s, int container)
{
    static ex_app app;
    ex_init(&app, "test", "A test of solids.");
    app.context = fsi_default_context();
    return shape_mesh(&app, s, FSI_MESH_CLOSED, container);
}

/* The shape needs no repair and encloses `volume` in `groups` pieces; it is freed. */
static void check_solid(shape *s, double volume, int groups)
{
    fsi_mesh *m = mesh_of(s, 0);
    fsi_mass_properties p;
    CHECK(strcmp(m->report.text, "") == 0 && m->report.self_intersections == 0 && m->group_count == groups);
    CHECK(fsi_mesh_mass(m, 1, 0, &p) == FSI_OK);
    CHECK_NEAR(p.volume, volume, TOL(1e-12, 1e-5) * volume);
    fsi_mesh_destroy(m);
    shape_free(s);
}

/* A wheel with square teeth: radius 1 and 1.3 by turns. */
static outline cog(int teeth, int points_a_flat)
{
    outline o = outline_empty();
    int i, n = 2 * teeth * points_a_flat;
    for (i = 0; i < n; i++) {
        double a = 2 * FSI_PI * i / n, r = i / points_a_flat % 2 ? 1.3 : 1;
        outline_add(&o, r * cos(a), r * sin(a));
    }
    return o;
}

static void test_extrusions_have_the_area_of_their_outline(void)
{
    /* points on straight sides */
    static const double ell[20] = { 0, 0, 0.5, 0, 1, 0, 2, 0, 2, 1, 1.5, 1, 1, 1, 1, 2, 0, 2, 0, 1 };
    shape s = shape_empty();
    outline o = cog(11, 7);
    fsi_box3 b;
    shape_extrude(&s, ell, 10, -1, 1);
    check_solid(&s, 6, 1);
    shape_extrude(&s, o.xy, o.n, 2, 2.5);
    check_solid(&s, 0.5 * outline_area(o.xy, o.n), 1);
    b.lo = fsi_v3(-1, 0, 2);
    b.hi = fsi_v3(0, 2, 4);
    shape_box(&s, b);
    shape_cylinder(&s, 1, 5, 7, 24);
    check_solid(&s, 4 + 2 * 12 * sin(2 * FSI_PI / 24), 2);
    outline_free(&o);
}

/* Holes of a plate: seen by the winding number, and no wall along the cuts that lead to them. */
static void test_extrusions_with_holes(void)
{
    static const double plate[8] = { 0, 0, 6, 0, 6, 4, 0, 4 };
    outline o = outline_empty(), hole = outline_empty();
    shape s = shape_empty();
    fsi_mesh *m;
    double area = 24 - 2 * 20 * sin(2 * FSI_PI / 40), around = 2 * (6 + 4) + 2 * 40 * 2 * sin(FSI_PI / 40), surface = 0;
    int i;
    for (i = 0; i < 4; i++) outline_add(&o, plate[2 * i], plate[2 * i + 1]);
    for (i = 0; i < 2; i++) {
        outline_arc(&hole, 2 + 2.1 * i, 2, 1, 2 * FSI_PI, 0, 40);
        outline_add_hole(&o, hole.xy, hole.n);
        outline_free(&hole);
    }
    CHECK_NEAR(outline_area(o.xy, o.n), area, 1e-12);
    shape_extrude(&s, o.xy, o.n, 0, 1);
    m = mesh_of(&s, 1);
    CHECK(strcmp(m->report.text, "") == 0 && m->container && m->group_count == 1);
    CHECK_NEAR(fsi_mesh_winding_number(m, fsi_v3((fsi_real)0.5, (fsi_real)0.5, (fsi_real)0.5)), -1, TOL(1e-9, 1e-4));
    CHECK_NEAR(fsi_mesh_winding_number(m, fsi_v3(2, 2, (fsi_real)0.5)), 0, TOL(1e-9, 1e-4));
    CHECK_NEAR(fsi_mesh_winding_number(m, fsi_v3(4, 2, (fsi_real)0.5)), 0, TOL(1e-9, 1e-4));
    for (i = 0; i < m->face_count; i++) {
        const int *f = m->faces + 3 * i;
        fsi_vec3 a = m->vertices[f[0]];
        surface +=
            (double)fsi_v3_norm(fsi_v3_cross(fsi_v3_sub(m->vertices[f[1]], a), fsi_v3_sub(m->vertices[f[2]], a))) / 2;
    }
    CHECK_NEAR(surface, 2 * area + around, TOL(1e-11, 1e-4));
    fsi_mesh_destroy(m);
    check_solid(&s, area, 1);
    outline_free(&o);
}

/* Pappus, for a regular polygon in place of the circle: a section of area A whose centre is at r sweeps A r n sin(2
   pi/n). */
static void test_surfaces_of_revolution(void)
{
    static const double cylinder[8] = { 0, 0, 2, 0, 2, 3, 0, 3 }, cone[6] = { 0, 0, 1, 0, 0, 2 };
    static const double ring[8] = { 1, 0, 2, 0, 2, 1, 1, 1 };
    double swept = 30 * sin(2 * FSI_PI / 30);
    shape s = shape_empty();
    shape_revolve(&s, cylinder, 4, 30);
    check_solid(&s, 2 * 3 * 1 * swept, 1);
    shape_revolve(&s, cone, 3, 30);
    check_solid(&s, swept / 3, 1);
    shape_revolve(&s, ring, 4, 30);
    check_solid(&s, 1.5 * swept, 1);
}

/* Drawn in by d, nothing is nearer than d to the old outline, and a solid that touched it is d away. A tooth thinner
   than 2 d is gone. */
static void test_insets_keep_their_distance(void)
{
    static const double square[8] = { 0, 0, 1, 0, 1, 1, 0, 1 };
    static const double spike[14] = { 0, 0, 4, 0, 4, 1, 2.1, 1, 2, 3, 1.9, 1, 0, 1 };
    outline o = outline_inset(square, 4, 0.2), teeth = cog(9, 30);
    int i;
    CHECK(o.n == 4);
    CHECK_NEAR(outline_area(o.xy, o.n), 0.36, 1e-12);
    outline_free(&o);
    o = outline_inset(spike, 7, 0.15);
    for (i = 0; i < o.n; i++) CHECK(o.xy[2 * i + 1] < 1.5);
    outline_free(&o);
    o = outline_inset(teeth.xy, teeth.n, 0.05);
    CHECK(o.n > teeth.n / 2 && outline_area(o.xy, o.n) > 0.8 * outline_area(teeth.xy, teeth.n));
    for (i = 0; i < o.n; i++) {
        CHECK(outline_contains(teeth.xy, teeth.n, o.xy + 2 * i));
        CHECK(outline_distance(teeth.xy, teeth.n, o.xy + 2 * i) >= 0.05 * (1 - 1e-6));
    }
    outline_free(&o);
    outline_free(&teeth);
}

static void test_shells_move_and_become_cavities(void)
{
    shape s = shape_empty();
    fsi_box3 b;
    fsi_pose p;
    int first_vertex, first_element, i;
    b.lo = fsi_v3(-3, -3, -3);
    b.hi = fsi_v3(3, 3, 3);
    shape_box(&s, b);
    first_vertex = s.nx;
    first_element = s.ne;
    b.lo = fsi_v3(0, 0, 0);
    b.hi = fsi_v3(1, 2, (fsi_real)0.5);
    shape_box(&s, b);
    p.position = fsi_v3(1, 0, 0);
    p.orientation = fsi_quat_from_axis_angle(fsi_v3(0, 0, 1), (fsi_real)(FSI_PI / 2));
    shape_transform(&s, first_vertex, p);
    for (i = first_vertex; i < s.nx; i++)
        CHECK(s.x[i].x > (fsi_real)-1.001 && s.x[i].x < (fsi_real)1.001 && s.x[i].y < (fsi_real)1.001);
    shape_turn_over(&s, first_element);
    check_solid(&s, 216 - 1, 2);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_extrusions_have_the_area_of_their_outline);
    RUN(test_extrusions_with_holes);
    RUN(test_surfaces_of_revolution);
    RUN(test_insets_keep_their_distance);
    RUN(test_shells_move_and_become_cavities);
    return TEST_END();
}
