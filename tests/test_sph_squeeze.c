/* test_sph_squeeze.c - squeezed, swept over, stood upon: particles stay in the domain, and those in a solid are counted.
   SPDX-License-Identifier: MIT

   "case 102" runs that one alone and tells about it; tests/validate_squeeze.c runs a thousand. */
#include "sph_squeeze.h"

static int cases = TEST_SLOWED ? 14 : 42;

static void check_case(int k, int verbose)
{
    squeeze_result r = squeeze_run(k / SQUEEZE_KINDS % 2 ? 3 : 2, k % SQUEEZE_KINDS, (uint64_t)k + 1, NULL);
    if (verbose || r.failed || r.outside || r.uncounted || r.lost || !(r.excess <= 1))
        printf("case %d kind %d %dD: outside %d, inside %d, uncounted %d, pinched %d, placed %d, failed %d, speed over its bound %.3g\n", k, k % SQUEEZE_KINDS,
            k / SQUEEZE_KINDS % 2 ? 3 : 2, r.outside, r.inside, r.uncounted, r.pinched, r.placed, r.failed, r.excess);
    CHECK(r.failed == 0);
    CHECK(r.outside == 0);
    CHECK(r.uncounted == 0);
    CHECK(r.lost == 0);
    CHECK(r.excess <= 1);
}

/* Squeezed liquid once smoothed its velocities by more than their difference: 9,500 m/s from walls at 21. */
static void test_squeezed_liquid_is_not_driven_by_its_smoothing(void)
{
    check_case(102, 0);
    check_case(465, 0);
}

static void test_no_squeeze_drives_particles_through_walls(void)
{
    int k;
    for (k = 0; k < cases; k++) check_case(k, 0);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "case") == 0) {
        check_case(atoi(argv[2]), 1);
        return 0;
    }
    TEST_BEGIN(argc, argv);
    RUN_PHYSICS(test_squeezed_liquid_is_not_driven_by_its_smoothing);
    RUN(test_no_squeeze_drives_particles_through_walls);
    return TEST_END();
}
