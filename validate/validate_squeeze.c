/* validate_squeeze.c - a thousand squeezes, throws, crossings, falls and teleports: how many particles end outside the
   tank, or in a solid
   without being counted. Lines: key value unit.
   SPDX-License-Identifier: MIT */
#include "../tests/kit/sph_squeeze.h"

int main(void)
{
    static const char *const kind[SQUEEZE_KINDS] = { "throw", "cross", "fall", "close", "press", "teleport", "bend" };
    squeeze_result sum[SQUEEZE_KINDS];
    int k, cases = 1000, bad = 0;
    memset(sum, 0, sizeof sum);
    for (k = 0; k < cases; k++) {
        const int which = k % SQUEEZE_KINDS;
        squeeze_result r = squeeze_run(k / SQUEEZE_KINDS % 2 ? 3 : 2, which, (uint64_t)k + 1, NULL), *s = &sum[which];
        bad += r.failed || r.outside || r.uncounted || r.lost || !(r.excess <= 1);
        s->failed += r.failed;
        s->outside += r.outside;
        s->inside += r.inside;
        s->uncounted += r.uncounted;
        s->pinched += r.pinched;
        s->placed += r.placed;
        s->lost += r.lost;
        s->excess = fmax(s->excess, r.excess);
    }
    for (k = 0; k < SQUEEZE_KINDS; k++) {
        printf("squeeze_%s_outside %d particles (must be 0)\n", kind[k], sum[k].outside);
        printf("squeeze_%s_inside_uncounted %d particles (must be 0)\n", kind[k], sum[k].uncounted);
        printf("squeeze_%s_inside %d particles, over all steps\n", kind[k], sum[k].inside);
        printf("squeeze_%s_pinched %d particles, over all substeps\n", kind[k], sum[k].pinched);
        printf("squeeze_%s_placed %d particles, over all substeps\n", kind[k], sum[k].placed);
        printf("squeeze_%s_lost_or_failed %d particles and steps (must be 0)\n", kind[k], sum[k].lost + sum[k].failed);
        printf("squeeze_%s_rms_speed_over_bound %.3g of the bound (must be at most 1)\n", kind[k], sum[k].excess);
    }
    printf("squeeze_cases %d cases\nsqueeze_cases_bad %d cases (must be 0)\n", cases, bad);
    return bad > 0;
}
