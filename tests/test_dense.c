/* test_dense.c - Cholesky of small dense systems against elimination with pivoting, and against what they were made of.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi.h"
#include "kit/test_dense.h"

enum { DENSE_MOST = 200 };

typedef enum kind { DEFINITE, GRADED_DEFINITE, HILBERT, LAPLACE_LARGE, LAPLACE_TINY } kind;

static double *dense_make(int n) { return (double *)calloc((size_t)(n * n) + 1, sizeof(double)); }

/* A symmetric matrix of the kind, whole. */
static double *dense_of(kind what, int n, uint64_t *random)
{
    double *a = dense_make(n), *b = dense_make(n);
    int i, j, k;
    for (i = 0; i < n * n; i++) b[i] = test_random(random) - 0.5;
    for (i = 0; i < n; i++) for (j = 0; j <= i; j++) {
        const int step = abs(i - j);
        double v = b[i * n + j];
        if (what == DEFINITE || what == GRADED_DEFINITE)
            for (k = 0, v = i == j; k < n; k++) v += b[i * n + k] * b[j * n + k];
        if (what == GRADED_DEFINITE) v *= pow(10, -40.0 * (i + j) / n); /* over 10^80 */
        if (what == HILBERT) v = 1.0 / (i + j + 1);
        if (what == LAPLACE_LARGE || what == LAPLACE_TINY)
            v = (step == 0 ? 2 : step == 1 ? -1 : 0) * (what == LAPLACE_LARGE ? 4e279 : 1e-300);
        a[i * n + j] = a[j * n + i] = v;
    }
    free(b);
    return a;
}

/* Largest |A x - b| over largest row sum of |A|, over largest |x|, in long double. */
static double backward_error(int n, const double *a, const double *x, const double *b)
{
    long double worst = 0, norm = 0, most = 0;
    int i, j;
    for (i = 0; i < n; i++) {
        long double left = -(long double)b[i], row = 0;
        for (j = 0; j < n; j++) {
            left += (long double)a[i * n + j] * (long double)x[j];
            row += fabsl((long double)a[i * n + j]);
        }
        if (!(fabsl(left) <= worst)) worst = fabsl(left);
        if (row > norm) norm = row;
        if (!(fabsl((long double)x[i]) <= most)) most = fabsl((long double)x[i]);
    }
    return worst == 0 ? 0 : (double)(worst / norm / most);
}

/* Substitution in panels, for three multiples of b: as small an error, and zeros behind the end stay. */
static void check_panels(int n, const double *a, const double *l, const double *b)
{
    double *panels = (double *)malloc((fsi__panels_size(n) + 1) * sizeof(double)), x[3][DENSE_MOST + 5];
    double want[DENSE_MOST + 1];
    int i, c;
    memset(x, 0, sizeof x);
    for (i = 0; i < n; i++) for (c = 0; c < 3; c++) x[c][i] = (c - 1.5) * b[i];
    fsi__panels_make(n, l, panels);
    CHECK(fsi__panels_solve_3(n, panels, x[0], DENSE_MOST + 5) == FSI_OK);
    for (c = 0; c < 3; c++) {
        for (i = 0; i < n; i++) want[i] = (c - 1.5) * b[i];
        CHECK_NEAR(backward_error(n, a, x[c], want), 0, 1e-14 * n);
        for (i = n; i < DENSE_MOST + 5; i++) CHECK(x[c][i] == 0);
    }
    for (i = 0; i < n; i++) x[2][i] = 1e300 * (i + 1.0) * fabs(l[i * n + i]);
    if (n > 0 && l[0] < 1e-4) CHECK(fsi__panels_solve_3(n, panels, x[0], DENSE_MOST + 5) == FSI_ERROR_NAN);
    free(panels);
}

/* forward: the largest error against elimination, over the largest x, that is allowed. */
static void check_solve(kind what, int n, double forward, uint64_t *random)
{
    double *a = dense_of(what, n, random), *f = dense_make(n), b[DENSE_MOST + 1], x[DENSE_MOST + 1];
    long double want[DENSE_MOST + 1], off = 0, most = 1e-4000L;
    const double scale = what == LAPLACE_LARGE ? 1e279 : what == LAPLACE_TINY ? 1e-300 : 1;
    int i;
    for (i = 0; i < n; i++) x[i] = b[i] = (test_random(random) - 0.5) * scale;
    dense_eliminate(n, a, b, want);
    memcpy(f, a, sizeof(double) * (size_t)(n * n));
    if (CHECK(fsi_dense_cholesky(NULL, n, f) == FSI_OK)) {
        CHECK(fsi_dense_cholesky_solve(n, f, x) == FSI_OK);
        CHECK_NEAR(backward_error(n, a, x, b), 0, 1e-14 * n);
        for (i = 0; i < n; i++) {
            off = fmaxl(off, fabsl((long double)x[i] - want[i]));
            most = fmaxl(most, fabsl(want[i]));
            if (!(x[i] - x[i] == 0)) off = 1;
        }
        CHECK_NEAR(n ? off / most : 0, 0, forward);
        check_panels(n, a, f, b);
    }
    free(a);
    free(f);
}

static void test_dense_systems_match_elimination_with_pivoting(void)
{
    static const kind all[3] = { DEFINITE, LAPLACE_LARGE, LAPLACE_TINY };
    uint64_t random = 11;
    int round, k;
    for (round = 0; round < 200; round++)
        check_solve(all[round % 3], round < 24 ? round / 3 : (int)(test_random(&random) * 60), 1e-9, &random);
    for (k = 0; k < 3; k++) check_solve(all[k], DENSE_MOST, 1e-9, &random);
}

/* The backward error is small however ill-conditioned; the error follows the condition number. */
static void test_ill_conditioned_systems_have_small_residuals(void)
{
    uint64_t random = 12;
    int n;
    for (n = 2; n < 9; n++) check_solve(HILBERT, n, 2e-16 * pow(34, n), &random);
    for (n = 4; n < 40; n++) check_solve(GRADED_DEFINITE, n, 1e-6, &random);
}

/* L L^T = A, and L^T above; only the lower triangle is read. */
static void test_cholesky_factors_multiply_to_the_matrix(void)
{
    uint64_t random = 13;
    int n, i, j, k;
    for (n = 0; n < 70; n++) {
        double *a = dense_of(n % 2 ? GRADED_DEFINITE : DEFINITE, n, &random), *l = dense_make(n);
        for (i = 0; i < n; i++) for (j = 0; j < n; j++) l[i * n + j] = j > i ? test_nan() : a[i * n + j];
        CHECK(fsi_dense_cholesky(NULL, n, l) == FSI_OK);
        for (i = 0; i < n; i++) for (j = 0; j <= i; j++) {
            long double s = 0;
            for (k = 0; k <= j; k++) s += (long double)l[i * n + k] * (long double)l[j * n + k];
            CHECK_NEAR((double)(s - (long double)a[i * n + j]) / sqrt(a[i * n + i] * a[j * n + j]), 0, 2e-16 * (n + 4));
            CHECK(l[j * n + i] == l[i * n + j]);
        }
        free(a);
        free(l);
    }
}

/* Definite up to one row, which does not make it: that row is named, and nothing is lost. */
static void test_cholesky_names_the_first_bad_row_and_leaves_the_matrix(void)
{
    uint64_t random = 16;
    int n, i, bad, zero;
    for (n = 1; n < 40; n++) for (zero = 0; zero < 2; zero++) {
        fsi_context c = fsi_default_context();
        double *a = dense_of(DEFINITE, n, &random), *f = dense_make(n);
        bad = (int)(test_random(&random) * n);
        if (zero) for (i = 0; i < n; i++) a[bad * n + i] = a[i * n + bad] = bad == 0 || i == bad ? 0 : a[bad * n + i];
        else a[bad * n + bad] = -1e-3;
        memcpy(f, a, sizeof(double) * (size_t)(n * n));
        CHECK(fsi_dense_cholesky(&c, n, f) == FSI_ERROR_SINGULAR && c.error.element == bad);
        CHECK(c.error.value <= 0 && strstr(c.error.message, "pivot"));
        CHECK(memcmp(f, a, sizeof(double) * (size_t)(n * n)) == 0);
        free(a);
        free(f);
    }
}

/* The graph Laplacian of a path; a pivot that overflows on the way. */
static void test_singular_matrices_are_refused(void)
{
    double steep[4] = { 1e-300, 0, 1e279, 1 };
    int n, i, j;
    for (n = 2; n < 120; n += 7) {
        fsi_context c = fsi_default_context();
        double *a = dense_make(n);
        for (i = 0; i < n; i++)
            for (j = 0; j < n; j++) a[i * n + j] = i == j ? (i == 0 || i == n - 1 ? 1 : 2) : abs(i - j) == 1 ? -1 : 0;
        CHECK(fsi_dense_cholesky(&c, n, a) == FSI_ERROR_SINGULAR && c.error.element == n - 1);
        CHECK(strstr(c.error.message, "row ") != NULL);
        free(a);
    }
    CHECK(fsi_dense_cholesky(NULL, 2, steep) == FSI_ERROR_SINGULAR && steep[0] > 0 && steep[3] == 1);
}

static void test_bad_dense_input_is_named(void)
{
    fsi_context c = fsi_default_context();
    double a[9] = { 2, 0, 0, 1, 2, 0, 0, 1, 2 }, kept[9], x[3] = { 1, 2, 3 };
    int k;
    memcpy(kept, a, sizeof a);
    test_fail_allocator(&c, 1); /* nothing is asked for */
    CHECK(fsi_dense_cholesky(&c, 3, NULL) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "NULL"));
    CHECK(fsi_dense_cholesky(&c, -1, a) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "-1"));
    CHECK(fsi_dense_cholesky(&c, 2000000000, a) == FSI_ERROR_LIMIT && strstr(c.error.message, "2000000000"));
    a[7] = test_nan();
    CHECK(fsi_dense_cholesky(&c, 3, a) == FSI_ERROR_NAN && c.error.element == 2 && strstr(c.error.message, "row 2"));
    a[7] = -test_inf(), CHECK(fsi_dense_cholesky(&c, 3, a) == FSI_ERROR_NAN && c.error.element == 2);
    a[7] = 2e280, CHECK(fsi_dense_cholesky(&c, 3, a) == FSI_ERROR_LIMIT && c.error.element == 2), a[7] = 1;
    CHECK(memcmp(a, kept, sizeof a) == 0);
    CHECK(fsi_dense_cholesky(&c, 0, NULL) == FSI_OK);
    c.cookie++, CHECK(fsi_dense_cholesky(&c, 3, a) == FSI_ERROR_COOKIE), c.cookie--;
    for (k = 0; k < 9; k++) a[k] *= 1e-200;
    CHECK(fsi_dense_cholesky(&c, 3, a) == FSI_OK);
    CHECK(fsi_dense_cholesky_solve(-1, a, x) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_dense_cholesky_solve(3, NULL, x) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_dense_cholesky_solve(3, a, NULL) == FSI_ERROR_ARGUMENT &&
          fsi_dense_cholesky_solve(0, NULL, NULL) == FSI_OK);
    x[1] = test_nan(), CHECK(fsi_dense_cholesky_solve(3, a, x) == FSI_ERROR_NAN && x[0] == 1 && x[2] == 3);
    x[1] = 1e200; /* overflows */
    CHECK(fsi_dense_cholesky_solve(3, a, x) == FSI_ERROR_NAN && x[0] == 0 && x[1] == 0 && x[2] == 0);
    CHECK(test_alloc_count() == 0);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_dense_systems_match_elimination_with_pivoting);
    RUN(test_ill_conditioned_systems_have_small_residuals);
    RUN(test_cholesky_factors_multiply_to_the_matrix);
    RUN(test_cholesky_names_the_first_bad_row_and_leaves_the_matrix);
    RUN(test_singular_matrices_are_refused);
    RUN(test_bad_dense_input_is_named);
    return TEST_END();
}
