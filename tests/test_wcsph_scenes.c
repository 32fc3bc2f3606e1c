/* test_wcsph_scenes.c - what bodies and walls do to the liquid: added mass, drag, slip, skipping.
   SPDX-License-Identifier: MIT */
#include "kit/test_wcsph_bodies.h"

/* An ideal liquid lets a cylinder go at (1 - D)/(D + 1) g. Particles that rest on a lattice must shear first: about half of it is left, and
   the sign and the order; a light body does not run away, as it does in explicit coupling once D < 1. */
static void test_released_bodies_start_as_their_added_mass_tells(void)
{
    static const double density[2] = { 2000, 100 };
    double got[2];
    int k;
    if (TEST_SLOWED) return;
    for (k = 0; k < 2; k++) {
        const double D = density[k] / 1000, want = (1 - D) / (D + 1);
        got[k] = released_acceleration(NULL, 6, density[k], 0.03, FSI_WCSPH_AUTO);
        printf("      density %g: %.3f g, ideal %.3f\n", density[k], got[k], want);
        CHECK(got[k] * want > 0 && fabs(got[k]) <= 1.15 * fabs(want));
        if (k > 0) CHECK(got[k] > got[k - 1]);
    }
}

/* The paper's drag: a body sinks deeper in thin liquid than in thick. */
static void test_thick_liquid_holds_back(void)
{
    const double thin = sunk_after(NULL, 5, 2000, 0.3, 0.1, 0), thick = sunk_after(NULL, 5, 2000, 0.3, 3, 0);
    printf("      alpha 0.1: %.4f m, alpha 3: %.4f m\n", thin, thick);
    CHECK(thin > 1.05 * thick && thick > 0);
}

/* A9: the faster, the more slip; without friction as in free fall. e_t is of one substep: what a contact keeps through n of them is e_t^n,
   so that all below 0.9 holds the first layer (bulk viscosity hardly holds the second to it), and between lies 0.9 to 1. */
static void test_slip_lets_liquid_slide(void)
{
    static const double slip[6] = { 0, 0.5, 0.97, 0.99, 0.997, 1 };
    double v[6];
    int k;
    for (k = 0; k < 6; k++) v[k] = ramp_speed(NULL, 0.01, slip[k], 0.2);
    printf("      speeds over free fall's: %.3f %.3f %.3f %.3f %.3f %.3f\n", v[0], v[1], v[2], v[3], v[4], v[5]);
    CHECK_NEAR(v[1], v[0], 0.03);
    for (k = 2; k < 6; k++) CHECK(v[k] > v[k - 1] + 0.01);
    CHECK_NEAR(v[5], 1, 0.02);
}

static void test_a_fast_stone_skips_and_a_slow_one_sinks(void)
{
    if (TEST_SLOWED) return;
    CHECK(disc_skips(NULL, 0.005, 3.5, 20) == 1);
    CHECK(disc_skips(NULL, 0.005, 1.5, 20) == 0);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_released_bodies_start_as_their_added_mass_tells);
    RUN_PHYSICS(test_thick_liquid_holds_back);
    RUN(test_slip_lets_liquid_slide);
    RUN(test_a_fast_stone_skips_and_a_slow_one_sinks);
    return TEST_END();
}
