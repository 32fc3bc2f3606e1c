/* bench.h - what benches share: CPU time of the process, medians, what memory can stream.
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

/* Of the process, or with OpenMP, which would count every thread's, of the wall. */
BENCH_FN double bench_seconds(void *user)
{
#if defined(_OPENMP)
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
    return cpu_seconds(user);
#endif
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

/* Bytes a second that one thread reads from memory: the best of ten sums over 128 MB. */
BENCH_FN double stream_rate(void)
{
    enum { N = 1 << 24 };
    double *x = (double *)malloc(N * sizeof(double)), best = 1e9, sum[8] = { 0 };
    int t, i, k;
    if (!x) exit(1);
    for (i = 0; i < N; i++) x[i] = i;
    for (t = 0; t < 10; t++) {
        double start = cpu_seconds(NULL);
        for (i = 0; i < N; i += 8) for (k = 0; k < 8; k++) sum[k] += x[i + k];
        start = cpu_seconds(NULL) - start;
        best = start < best ? start : best;
    }
    for (k = 1; k < 8; k++) sum[0] += sum[k];
    free(x);
    return sum[0] > 0 ? N * sizeof(double) / best : 0;
}

#endif
