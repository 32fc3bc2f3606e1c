/* validate_barrier.c - ten million sweeps of pairs against first times in higher precision.
   SPDX-License-Identifier: MIT */
#include "test.h"
#include "../fsi_barrier.h"
#include "barrier_cases.h"
int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 20000, i;
    int c0 = argc > 2 ? atoi(argv[2]) : -1, c, kind;
    for (c = 0; c < CASES; c++) for (kind = 0; kind < 4; kind++) {
        tally s;
        uint64_t r = (uint64_t)(c * 4 + kind) * 7919 + 1;
        clock_t clk = clock();
        if (c0 >= 0 && c != c0) continue;
        memset(&s, 0, sizeof s);
        for (i = 0; i < n; i++) {
            query q;
            q.kind = (fsi_pair)kind;
            fill_case(&q, c, &r);
            check_query(&q, &s, fsi_ccd, argc > 3);
        }
        printf("%-11s %d: checked %6ld hits %6ld miss %ld stall %ld unresolved %ld false %ld cut %ld tight %.4f least %.3g  %.1f us\n", case_name(c), kind, s.moving, s.exact, s.misses, s.stalls, s.unresolved, s.false_positives, s.cut_short,
               s.tightness / (double)(s.exact + !s.exact), s.smallest_tightness, 1e6 * (double)(clock() - clk) / CLOCKS_PER_SEC / (double)n);
        fflush(stdout);
    }
    return 0;
}
