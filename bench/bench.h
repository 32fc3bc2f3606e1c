/* bench.h - what benches share: CPU time of the process, medians.
   SPDX-License-Identifier: MIT

   Define _POSIX_C_SOURCE 199309L before anything is included. */
#ifndef FSI_BENCH_H
#define FSI_BENCH_H

#include <stdlib.h>
#include <time.h>

#define BENCH_FN static FSI__UNUSED

BENCH_FN double cpu_seconds(void *user)
{
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

BENCH_FN int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

BENCH_FN double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return x[n / 2];
}

#endif
