/* test_flip_inside.c - fsi_flip.h with another solver of the pressure in its place: a mat that is solved in one with
   the pressure, and a fixed number of Jacobi sweeps.
   SPDX-License-Identifier: MIT */
#define FSI_FLIP_IMPLEMENTATION
#include "kit/flip_monolithic.h"
#include "kit/flip_jacobi.h"

/* An immersed mat sags under a column that falls on it as one that is solved together with the pressure. */
static void test_a_mat_sags_as_in_the_monolithic_solution(void)
{
    static const mat c[2] = { { 2, 24, 2, 1, 0, 1000, 1e6, 1.0 / 240, 0.3 }, { 2, 24, 2, 1, 0, 300, 1e6, 1.0 / 240, 0.3 } };
    int k;
    for (k = 0; k < 2; k++) {
        double mean[2];
        const double split = mat_sag(&c[k], 0, &mean[0]), whole = mat_sag(&c[k], 1, &mean[1]);
        printf("      density %g: sag %.4f m, in one %.4f; means %.4f, %.4f\n", c[k].density, split, whole, mean[0],
            mean[1]);
        CHECK_NEAR(split / whole, 1, 0.15);
        CHECK_NEAR(mean[0] / mean[1], 1, 0.15);
    }
}

/* Fewer sweeps leave more divergence, which is volume: a pool sinks, in the order of figure 11 of the paper. */
static void test_fewer_jacobi_sweeps_lose_more_volume(void)
{
    static const int sweeps[4] = { 5, 20, 100, 0 };
    double height[4];
    int j, k;
    for (k = 0; k < 4; k++) {
        fsi_flip_desc d = make_desc(2, 16);
        fsi_flip *s;
        d.n[0] = 8;
        s = make_flip(&d);
        fill(s, box3(0, 0, 0, 0.5, 0.75, 0), v3(0, 0, 0));
        jacobi_sweeps = sweeps[k];
        project_instead = sweeps[k] > 0 ? jacobi_project : NULL;
        for (j = 0; j < 60; j++) step_ok(s, 1.0 / 60);
        project_instead = NULL;
        height[k] = mean_height(s) / 0.375;
        fsi_flip_destroy(s);
    }
    printf("      5, 20, 100 sweeps, converged: height %.3f, %.3f, %.3f, %.5f\n", height[0], height[1], height[2],
        height[3]);
    CHECK(height[0] < height[1] && height[1] < height[2] && height[2] < height[3]);
    CHECK_NEAR(height[3], 1, 1e-3);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN_PHYSICS(test_a_mat_sags_as_in_the_monolithic_solution);
    RUN_PHYSICS(test_fewer_jacobi_sweeps_lose_more_volume);
    return TEST_END();
}
