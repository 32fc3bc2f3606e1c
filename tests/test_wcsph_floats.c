/* test_wcsph_floats.c - what floats and sinks in the liquid: drafts, buoyancy, sinking.
   SPDX-License-Identifier: MIT */
#include "kit/test_wcsph_bodies.h"

/* 3 % of the height and half a spacing. */
static void check_draft(int dim, int n, double density, double seconds)
{
    const double error = draft_error(NULL, dim, n, density, seconds);
    printf("      %dD, %d dx high, density %g: draft off by %.3f dx\n", dim, n, density, error);
    CHECK_NEAR(error, 0, 0.03 * n + 0.5);
}

static void test_crates_float_as_deep_as_their_density_tells(void)
{
    check_draft(2, 10, 250, 0.9);
    check_draft(2, 10, 750, 0.9);
    if (TEST_SLOWED) return;
    check_draft(2, 20, 500, 0.6);
}

static void test_a_held_body_feels_its_displaced_weight(void)
{
    const double flat = held_buoyancy(NULL, 2, 10, 0.8);
    printf("      2D, 10 dx: %.3f of the displaced weight\n", flat);
    CHECK_NEAR(flat, 1, 0.1);
    if (TEST_SLOWED) return;
    {
        const double cube = held_buoyancy(NULL, 3, 6, 0.4);
        printf("      3D, 6 dx: %.3f of the displaced weight\n", cube);
        CHECK_NEAR(cube, 1, 0.15);
    }
}

/* A11: light rises, middling hovers or sinks slowly, heavy sinks fast; about as fast as added mass and drag let it. */
static void test_sinking_follows_density(void)
{
    static const double density[4] = { 500, 1050, 2000, 8000 };
    double deep[4];
    int k;
    for (k = 0; k < 4; k++) {
        const double ideal = sunk_ideal(density[k], 0.25);
        deep[k] = sunk_after(NULL, TEST_SLOWED ? 5 : 8, density[k], 0.25, 0.1, 1);
        printf("      density %g: %.4f m down in 0.25 s, ideal with drag %.4f\n", density[k], deep[k], ideal);
        if (k > 0) CHECK(deep[k] > deep[k - 1]);
        if (k >= 2) CHECK_NEAR(deep[k], ideal, 0.4 * ideal);
    }
    CHECK(deep[0] < -0.01);
    CHECK_NEAR(deep[1], 0, 0.02);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN_PHYSICS(test_crates_float_as_deep_as_their_density_tells);
    RUN_PHYSICS(test_a_held_body_feels_its_displaced_weight);
    RUN(test_sinking_follows_density);
    return TEST_END();
}
