/* test_sph_squeeze.c - squeezed, swept over, stood upon: particles stay in the domain, and those in a solid are counted.
   SPDX-License-Identifier: MIT

   "case 102" runs that one alone and tells about it; validate/validate_squeeze.c runs a thousand. */
#include "kit/sph_squeeze.h"

static int cases = TEST_SLOWED ? 14 : 35;

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

/* Teleported or added beyond the domain's walls, near and far: back within them, with the velocity that it had; unless no wall acts on it. */
static void test_what_is_put_outside_the_domain_is_put_in_again(void)
{
    int dim, i;
    for (dim = 2; dim <= 3; dim++) {
        static const double away[4] = { 0.301, 0.5, 40, 1e6 };
        fsi_sph_desc d = make_desc(dim, 0.05);
        fsi_sph *s;
        d.domain = box3(0, 0, 0, 0.3, 0.3, 0.3);
        d.gravity = v3(0, 0, 0);
        s = make_sph(&d);
        for (i = 0; i < 4; i++) add_particle(s, v3(i & 1 ? away[i] : 0.05 + 0.05 * i, i & 1 ? 0.25 : -away[i], dim == 2 ? 0 : 0.05 + 0.06 * i), v3(0.1, 0, 0));
        s->filter[3] = 0;
        step_ok(s, 0.001);
        for (i = 0; i < 3; i++) {
            fsi_vec3 x = s->position[i];
            CHECK((double)x.x > 0 && (double)x.x < 0.3 && (double)x.y > 0 && (double)x.y < 0.3 && (double)fsi_v3_norm(s->velocity[i]) < 1);
        }
        CHECK((double)s->position[3].x > 1e5);
        s->position[0] = v3(0.15, 0.9, dim == 2 ? 0 : -3); /* by the caller */
        step_ok(s, 0.001);
        CHECK((double)s->position[0].y < 0.3 && (dim == 2 || (double)s->position[0].z > 0));
        fsi_sph_destroy(s);
    }
}

/* Where particles are put does not hang on who looks at them when. */
static void test_squeezes_are_the_same_with_threads(void)
{
    int k;
    squeeze_fine = 2; /* more than one chunk of particles */
    for (k = 0; k < SQUEEZE_KINDS; k += TEST_SLOWED ? 6 : 3) {
        fsi_context context = fsi_default_context();
        const uint64_t alone = squeeze_run(2, k, 78, NULL).hash;
        test_threads(&context, 3, 1);
        CHECK(squeeze_run(2, k, 78, &context).hash == alone);
    }
    squeeze_fine = 1;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "case") == 0) {
        check_case(atoi(argv[2]), 1);
        return 0;
    }
    TEST_BEGIN(argc, argv);
    RUN(test_what_is_put_outside_the_domain_is_put_in_again);
    RUN_PHYSICS(test_squeezed_liquid_is_not_driven_by_its_smoothing);
    RUN(test_no_squeeze_drives_particles_through_walls);
    RUN(test_squeezes_are_the_same_with_threads);
    return TEST_END();
}
