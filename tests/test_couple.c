/* test_couple.c - a liquid and thin solids that move together: nothing passes through, volumes stay, momentum is exchanged.
   SPDX-License-Identifier: MIT */
#include "test.h"
#include "../fsi_couple.h"
#include "test_shell.h"
#include "test_couple.h"

/* ---- nothing passes through ---------------------------------------------------------------------------------------- */

/* A drop falls on fixed points at height 14, spacing in cells; pieces > 0: a string of as many edges, 5 cells
   long, held. */
static void drop_on_points(pair *p, fsi_metric metric, double spacing, double cfl, double speed, int steps, double dt, int pieces)
{
    int k;
    pair_begin(p, 48);
    p->e.metric = metric;
    p->l.cfl = REAL(cfl);
    p->l.capillary_cfl = REAL(cfl > 1.5 ? 5 : 1.5);
    if (pieces > 0) pair_string(p, pieces, 24.1 - 2.5 * pieces, 24.1 + 2.5 * pieces, 14);
    else pair_points(p, 24.1 - spacing * floor(24 / spacing), 48, spacing, 14);
    pair_make(p);
    pair_pin(p);
    pair_drop(p, 24.1 + (spacing > 3 ? spacing / 2 : 0), 14 + 6 + 2.5, 6, 0, -speed);
    for (k = 0; k < steps; k++) {
        if (!pair_step(p, dt)) break;
        p->most_below += pair_below(p, 13);
    }
}

static void test_a_drop_rests_on_a_row_of_points(void)
{
    static const double cfl[3] = { 0.5, 1, 2 };
    int k, metric;
    for (metric = 0; metric < 2; metric++) for (k = 0; k < (TEST_SLOWED ? 1 : 3); k++) {
        pair p;
        drop_on_points(&p, metric ? FSI_METRIC_LINEAR : FSI_METRIC_SPLINE, 1, cfl[k], 0.4, TEST_SLOWED ? 20 : 50, 2e-3, 0);
        printf("   %s cfl %g: smallest distance %.3f dx, Newton %.2f a substep of %d, volume error %.1e (optimisation %.1e), below %d\n", metric ? "linear" : "spline", cfl[k], p.least,
            (double)p.newton / p.substeps, p.substeps, p.error, p.water->stats.smoothed_error, p.most_below);
        CHECK(p.least > 0 && p.least < 2);
        CHECK(p.newton <= 10 * p.substeps);
        CHECK(p.error <= 0.01); /* of what the surface encloses */
        CHECK(p.water->stats.smoothed_error <= TOL(1e-6, 1e-5));
        CHECK(p.most_below == 0);
        pair_end(&p);
    }
}

static void test_points_farther_apart_than_a_cell_hold_the_liquid(void)
{
    static const double spacing[6] = { 0.8, 1, 1.2, 1.8, 2.5, 5 };
    double first = 1e30;
    int k;
    for (k = 0; k < (TEST_SLOWED ? 3 : 6); k++) {
        pair p;
        drop_on_points(&p, FSI_METRIC_SPLINE, spacing[k], 0.7, 0.3, TEST_SLOWED ? 15 : 50, 2e-3, 0);
        printf("   spacing %g dx: smallest distance %.3f dx, cells below %d\n", spacing[k], p.least, p.most_below);
        if (p.most_below > 0 && spacing[k] < first) first = spacing[k];
        pair_end(&p);
    }
    printf("   first leak at %g dx\n", first);
    CHECK(first > 1.2);
}

static void test_edges_of_five_cells_do_not_leak(void)
{
    pair p;
    drop_on_points(&p, FSI_METRIC_SPLINE, 5, 0.7, 0.3, TEST_SLOWED ? 15 : 50, 2e-3, 8);
    printf("   string of edges 5 dx long: smallest distance %.3f dx, cells below %d, samples %d\n", p.least, p.most_below, p.both->stats.samples);
    CHECK(p.most_below == 0);
    pair_end(&p);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_drop_rests_on_a_row_of_points);
    RUN(test_points_farther_apart_than_a_cell_hold_the_liquid);
    RUN(test_edges_of_five_cells_do_not_leak);
    return TEST_END();
}
