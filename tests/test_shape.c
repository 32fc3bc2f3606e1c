/* test_shape.c - distances to balls, boxes and meshes against a search over points of their surfaces.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_shape.h"

#define REAL(x) ((fsi_real)(x))

enum { ROWS = 60 };

static fsi_mesh *cube(int container)
{
    static const int face[36] = {0, 2, 1, 1, 2, 3, 4, 5, 6, 5, 7, 6, 0, 1, 4, 1, 5, 4,
                                 2, 6, 3, 3, 6, 7, 0, 4, 2, 2, 4, 6, 1, 3, 5, 3, 7, 5};
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_vec3 corner[8];
    fsi_mesh *m;
    int k;
    for (k = 0; k < 8; k++) corner[k] = fsi_v3(REAL(k & 1 ? 1 : -1), REAL(k & 2 ? 2 : -2), REAL(k & 4 ? 3 : -3));
    d.vertices = corner;
    d.vertex_count = 8;
    d.elements = face;
    d.element_count = 12;
    d.container = container;
    return fsi_mesh_create(&m, &d) == FSI_OK ? m : NULL;
}

/* Distance to the sides of that cube by looking at ROWS x ROWS points of each; inside negative. */
static double slow_distance(fsi_vec3 x)
{
    const double half[3] = { 1, 2, 3 }, at[3] = { (double)x.x, (double)x.y, (double)x.z };
    double best = 1e30;
    int axis, side, i, j;
    for (axis = 0; axis < 3; axis++)
        for (side = -1; side <= 1; side += 2)
            for (i = 0; i <= ROWS; i++)
                for (j = 0; j <= ROWS; j++) {
                    const int b = (axis + 1) % 3, c = (axis + 2) % 3;
                    double p[3], r;
                    p[axis] = side * half[axis];
                    p[b] = half[b] * (2.0 * i / ROWS - 1);
                    p[c] = half[c] * (2.0 * j / ROWS - 1);
                    r = sqrt((p[0] - at[0]) * (p[0] - at[0]) + (p[1] - at[1]) * (p[1] - at[1]) +
                             (p[2] - at[2]) * (p[2] - at[2]));
                    best = fmin(best, r);
                }
    return fabs(at[0]) < 1 && fabs(at[1]) < 2 && fabs(at[2]) < 3 ? -best : best;
}

/* Points of the search are up to 0.05 x 0.08 apart, so it is too far by at most the square of half of that over the
   distance. */
static void test_box_and_mesh_agree_with_a_search(void)
{
    fsi_mesh *solid = cube(0), *container = cube(1);
    fsi_box3 box;
    fsi_shape shape[3];
    uint64_t random = 3;
    int k;
    if (!CHECK(solid && container)) return;
    box.lo = fsi_v3(-1, -2, -3);
    box.hi = fsi_v3(1, 2, 3);
    shape[0] = fsi_shape_box(box);
    shape[1] = fsi_shape_mesh(solid);
    shape[2] = fsi_shape_mesh(container);
    for (k = 0; k < 300; k++) {
        const fsi_vec3 x = fsi_v3(REAL(6 * test_random(&random) - 3), REAL(8 * test_random(&random) - 4),
                                  REAL(10 * test_random(&random) - 5));
        const double slow = slow_distance(x), d = (double)fsi_shape_distance(&shape[0], x);
        CHECK(fabs(d - slow) <= 0.06 && (d < 0) == (slow < 0) && fabs(d) <= fabs(slow) + TOL(1e-12, 1e-5));
        CHECK(fabs((double)fsi_shape_distance(&shape[1], x) - d) <= TOL(1e-12, 1e-5));
        /* a container's solid is what is outside */
        CHECK(fabs((double)fsi_shape_distance(&shape[2], x) + d) <= TOL(1e-12, 1e-5));
    }
    fsi_mesh_destroy(solid);
    fsi_mesh_destroy(container);
}

static void test_a_ball_is_as_far_as_its_middle_less_its_radius(void)
{
    const fsi_shape ball = fsi_shape_sphere(fsi_v3(1, 2, 3), REAL(0.5));
    CHECK(fabs((double)fsi_shape_distance(&ball, fsi_v3(1, 2, 3)) + 0.5) <= TOL(0, 0));
    CHECK(fabs((double)fsi_shape_distance(&ball, fsi_v3(4, 6, 3)) - 4.5) <= TOL(1e-15, 1e-6));
    CHECK(ball.box.lo.x == REAL(0.5) && ball.box.hi.z == REAL(3.5));
}

static void test_what_is_no_shape_is_infinitely_far(void)
{
    const fsi_shape none = fsi_shape_mesh(NULL), ball = fsi_shape_sphere(fsi_v3(0, 0, 0), 1);
    const fsi_real nan = (fsi_real)test_nan();
    CHECK(fsi_shape_distance(NULL, fsi_v3(0, 0, 0)) == FSI_REAL_MAX);
    CHECK(fsi_shape_distance(&none, fsi_v3(0, 0, 0)) == FSI_REAL_MAX);
    CHECK(fsi_shape_distance(&ball, fsi_v3(0, nan, 0)) == FSI_REAL_MAX);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_box_and_mesh_agree_with_a_search);
    RUN(test_a_ball_is_as_far_as_its_middle_less_its_radius);
    RUN(test_what_is_no_shape_is_infinitely_far);
    return TEST_END();
}
