/* test_dense.h - dense systems by elimination, for the tests of solvers.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_DENSE_H
#define FSI_TEST_DENSE_H

/* x = A^-1 b by elimination with pivoting in long double. */
TEST_FN void dense_eliminate(int n, const double *a, const double *b, long double *x)
{
    long double *d = (long double *)malloc(sizeof *d * (size_t)(n * n + 1));
    int i, j, k;
    for (i = 0; i < n * n; i++) d[i] = (long double)a[i];
    for (i = 0; i < n; i++) x[i] = (long double)b[i];
    for (k = 0; k < n; k++) {
        int best = k;
        for (i = k + 1; i < n; i++) if (fabsl(d[i * n + k]) > fabsl(d[best * n + k])) best = i;
        for (j = 0; j < n; j++) {
            const long double t = d[k * n + j];
            d[k * n + j] = d[best * n + j];
            d[best * n + j] = t;
        }
        { const long double t = x[k]; x[k] = x[best]; x[best] = t; }
        for (i = k + 1; i < n; i++) {
            const long double f = d[i * n + k] / d[k * n + k];
            for (j = k; j < n; j++) d[i * n + j] -= f * d[k * n + j];
            x[i] -= f * x[k];
        }
    }
    for (i = n - 1; i >= 0; i--) {
        for (j = i + 1; j < n; j++) x[i] -= d[i * n + j] * x[j];
        x[i] /= d[i * n + i];
    }
    free(d);
}

#endif
