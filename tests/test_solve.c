/* test_solve.c - factorised sparse systems against dense elimination in long double, and the promises of fsi_solve.h.
   SPDX-License-Identifier: MIT */
#define FSI_STATIC
#define FSI_IMPLEMENTATION
#include "../fsi_krylov.h"
#include "../fsi_order.h"
#include "kit/test.h"
#include "kit/test_solve.h"

/* By dissection, which is minimum degree up to 3000 rows. */
static fsi_ldlt_desc dissecting(void)
{
    fsi_ldlt_desc d = fsi_ldlt_default_desc();
    d.ordering = fsi_dissection();
    return d;
}

/* 0: dissection, 1: minimum degree, 2: natural. */
static void set_order(fsi_ldlt_desc *d, int order)
{
    d->ordering = order == 0 ? fsi_dissection() : NULL;
    d->order = order == 2 ? FSI_LDLT_NATURAL : FSI_LDLT_MINIMUM_DEGREE;
}

/* ---- matrices ------------------------------------------------------------------------------------------------- */

/* From the dense n x n matrix d; what is zero is left out. */
static matrix matrix_from(const double *d, int n)
{
    matrix m = matrix_make(n, 1, n * n);
    int i, j, e = 0;
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            if (d[i * n + j] == 0) continue;
            m.col[e] = j;
            m.value[e++] = d[i * n + j];
        }
        m.start[i + 1] = e;
    }
    return m;
}

/* -Laplace on a grid whose points see all that are up to `reach` steps away, in blocks: `pull` keeps them in place. */
static matrix matrix_grid(int nx, int ny, int nz, int reach, int block, double pull)
{
    const int side = 2 * reach + 1;
    matrix m = matrix_make(nx * ny * nz, block, nx * ny * nz * side * side * (nz > 1 ? side : 1));
    int x, y, z, i, j, k, p, e = 0;
    for (z = 0; z < nz; z++) for (y = 0; y < ny; y++) for (x = 0; x < nx; x++) {
        const int row = (z * ny + y) * nx + x;
        int self = 0, degree = 0;
        for (k = -reach; k <= reach; k++) for (j = -reach; j <= reach; j++) for (i = -reach; i <= reach; i++) {
                    if (abs(i) + abs(j) + abs(k) > reach || x + i < 0 || x + i >= nx || y + j < 0 || y + j >= ny ||
                        z + k < 0 || z + k >= nz)
                        continue;
                    m.col[e] = row + (k * ny + j) * nx + i;
                    if (m.col[e] == row) self = e;
                    else
                        for (p = 0; p < block; p++) m.value[e * block * block + p * (block + 1)] = -1;
                    degree += m.col[e] != row;
                    e++;
        }
        for (p = 0; p < block; p++) m.value[self * block * block + p * (block + 1)] = degree + pull;
        m.start[row + 1] = e;
    }
    return m;
}

static double entry_of(const fsi_csr *a, int i, int j)
{
    const int b = a->block;
    int e;
    for (e = a->start[i / b]; e < a->start[i / b + 1]; e++)
        if (a->col[e] == j / b) return a->value[e * b * b + i % b * b + j % b];
    return 0;
}

/* The dense solution in long double with pivoting; returns the number of negative pivots of L D L^T without it, -1: it
   broke down. */
static int dense_solve(const fsi_csr *a, const double *b, double *x)
{
    const int n = a->rows * a->block;
    long double *d = (long double *)malloc(sizeof *d * (size_t)(n * (n + 1))),
                *l = (long double *)malloc(sizeof *l * (size_t)(n * n));
    int i, j, k, negative = 0;
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++)
            l[i * n + j] = d[i * (n + 1) + j] = (long double)(i >= j ? entry_of(a, i, j) : entry_of(a, j, i));
        d[i * (n + 1) + n] = (long double)b[i];
    }
    for (k = 0; k < n && negative >= 0; k++) { /* inertia */
        if (l[k * n + k] == 0) negative = -1;
        else negative += l[k * n + k] < 0;
        for (i = k + 1; i < n && negative >= 0; i++)
            for (j = k + 1; j <= i; j++) l[i * n + j] -= l[i * n + k] * l[j * n + k] / l[k * n + k];
    }
    for (k = 0; k < n; k++) {
        int best = k;
        for (i = k + 1; i < n; i++) if (fabsl(d[i * (n + 1) + k]) > fabsl(d[best * (n + 1) + k])) best = i;
        for (j = 0; j <= n; j++) {
            long double t = d[k * (n + 1) + j];
            d[k * (n + 1) + j] = d[best * (n + 1) + j];
            d[best * (n + 1) + j] = t;
        }
        for (i = k + 1; i < n; i++) {
            long double f = d[i * (n + 1) + k] / d[k * (n + 1) + k];
            for (j = k; j <= n; j++) d[i * (n + 1) + j] -= f * d[k * (n + 1) + j];
        }
    }
    for (i = n - 1; i >= 0; i--) {
        long double s = d[i * (n + 1) + n];
        for (j = i + 1; j < n; j++) s -= d[i * (n + 1) + j] * (long double)x[j];
        x[i] = (double)(s / d[i * (n + 1) + i]);
    }
    free(d);
    free(l);
    return negative;
}

/* Largest |b - A x| over largest |A| |x| + |b|, A from its lower triangle. */
static double residual_of(const fsi_csr *a, const double *b, const double *x)
{
    const int n = a->rows * a->block, w = a->block;
    double *left = (double *)malloc(sizeof(double) * (size_t)(n + 1)),
           *size = (double *)malloc(sizeof(double) * (size_t)(n + 1)), worst = 0, most = 1e-300;
    int r, e, p, q;
    for (r = 0; r < n; r++) {
        left[r] = b[r];
        size[r] = fabs(b[r]);
    }
    for (r = 0; r < a->rows; r++)
        for (e = a->start[r]; e < a->start[r + 1] && a->col[e] <= r; e++)
            for (p = 0; p < w; p++)
                for (q = 0; q < w; q++) {
                    const double v = a->value[e * w * w + p * w + q];
                    const int i = r * w + p, j = a->col[e] * w + q;
                    if (a->col[e] == r && j > i) continue;
                    left[i] -= v * x[j];
                    size[i] += fabs(v * x[j]);
                    if (i == j) continue;
                    left[j] -= v * x[i];
                    size[j] += fabs(v * x[i]);
                }
    for (r = 0; r < n; r++) {
        worst = fmax(worst, fabs(left[r]));
        most = fmax(most, size[r]);
        if (!(left[r] == left[r])) worst = HUGE_VAL;
    }
    free(left);
    free(size);
    return worst / most;
}

static fsi_ldlt *ldlt_of(const fsi_csr *a, const fsi_ldlt_desc *d)
{
    fsi_ldlt *f = NULL;
    CHECK(fsi_ldlt_create(&f, a, d) == FSI_OK);
    CHECK(f && fsi_ldlt_factor(f, a) == FSI_OK);
    return f;
}

/* Four right sides at once are solved as one by one. */
static void check_four_sides(fsi_ldlt *f, uint64_t *random)
{
    const int n = f->rows * f->block;
    double sides[800], one[200], most = 0, off = 0;
    int i, k;
    for (i = 0; i < 4 * n; i++) sides[i] = test_random(random) - 0.5;
    for (k = 0; k < 4; k++) {
        double all[800];
        for (i = 0; i < n; i++) one[i] = sides[4 * i + k];
        CHECK(fsi_ldlt_solve_4(f, sides, all) == FSI_OK && fsi_ldlt_solve(f, one, one) == FSI_OK);
        for (i = 0; i < n; i++) {
            most = fmax(most, fabs(one[i]));
            off = fmax(off, fabs(all[4 * i + k] - one[i]));
        }
    }
    CHECK(off <= 1e-10 * most);
    {
        double all[800];
        CHECK(fsi_ldlt_solve_4(f, sides, all) == FSI_OK && fsi_ldlt_solve_4(f, sides, sides) == FSI_OK); /* in place */
        CHECK(memcmp(all, sides, 4 * (size_t)n * sizeof(double)) == 0);
    }
}

/* Factorises, solves, and compares with the dense solution. */
static void check_against_dense(const fsi_csr *a, fsi_ldlt_desc d, uint64_t *random, double tolerance)
{
    const int n = a->rows * a->block;
    double b[200] = { 0 }, x[200], y[200], most = 0, off = 0;
    int i, negative;
    fsi_ldlt *f = ldlt_of(a, &d);
    for (i = 0; i < n; i++) b[i] = test_random(random) - 0.5;
    negative = dense_solve(a, b, y);
    CHECK(fsi_ldlt_solve(f, b, x) == FSI_OK);
    CHECK(f->stats.negative == negative || negative < 0);
    for (i = 0; i < n; i++) {
        most = fmax(most, fabs(y[i]));
        off = fmax(off, fabs(x[i] - y[i]));
    }
    CHECK_NEAR(off / (most + 1e-300), 0, tolerance);
    check_four_sides(f, random);
    CHECK(residual_of(a, b, x) < 1e-13);
    fsi_ldlt_destroy(f);
}

/* ---- against dense elimination --------------------------------------------------------------------------------- */

/* B B^T + I with a share of zeros, kind 0; quasi-definite with the last third negative, kind 1. */
static void random_dense(double *d, int n, int kind, double share, uint64_t *random)
{
    double *b = (double *)calloc((size_t)(n * n), sizeof(double));
    const int split = kind ? n - n / 3 : n;
    int i, j, k;
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            if (i == j || test_random(random) < share) b[i * n + j] = test_random(random) - 0.5;
    for (i = 0; i < n; i++) for (j = 0; j < n; j++) {
        double s = i == j ? 0.5 : 0;
        if ((i < split) == (j < split)) for (k = 0; k < n; k++) s += b[i * n + k] * b[j * n + k];
        else s = i < j ? b[i * n + j] : b[j * n + i];
        d[i * n + j] = i >= split && j >= split ? -s : s;
    }
    free(b);
}

static void test_small_systems_match_dense_elimination(void)
{
    uint64_t random = 1;
    int round, k;
    for (round = 0; round < 300; round++) {
        const int n = (int)(test_random(&random) * 60) + 1, kind = round % 2;
        double d[60 * 60];
        signed char sign[60];
        fsi_ldlt_desc desc = dissecting();
        matrix m;
        random_dense(d, n, kind, 0.02 + 0.2 * test_random(&random), &random);
        for (k = 0; k < n; k++) sign[k] = kind && k >= n - n / 3 ? -1 : 1;
        m = matrix_from(d, n);
        set_order(&desc, round / 2 % 3);
        desc.pivots = kind ? FSI_LDLT_SIGNED : FSI_LDLT_POSITIVE;
        desc.sign = kind ? sign : NULL;
        check_against_dense(&m.a, desc, &random, 1e-10);
        matrix_free(&m);
    }
}

/* Blocks give what the same matrix gives as numbers. */
static void test_blocks_are_as_good_as_numbers(void)
{
    uint64_t random = 5;
    int b, i, j, p, q;
    for (b = 1; b <= 5; b++) {
        const int n = 12;
        double d[60 * 60];
        fsi_ldlt_desc desc = dissecting();
        matrix m = matrix_make(n, b, n * n);
        random_dense(d, n * b, 0, 0.05, &random);
        for (i = 0; i < n; i++) {
            int e = m.start[i];
            for (j = 0; j < n; j++) {
                if ((i * 7 + j * 7) % 3 == 1 && i != j) continue; /* symmetric pattern; what is left out must be 0 */
                m.col[e] = j;
                for (p = 0; p < b; p++)
                    for (q = 0; q < b; q++)
                        m.value[(e * b + p) * b + q] = d[(i * b + p) * n * b + j * b + q] + (i == j && p == q ? 10 : 0);
                e++;
            }
            m.start[i + 1] = e;
        }
        check_against_dense(&m.a, desc, &random, 1e-12);
        matrix_free(&m);
    }
}

/* Arrows, rows that touch nothing, a full row, and one that is told to come last. */
static void test_arrows_and_lone_rows(void)
{
    uint64_t random = 3;
    int kind, i;
    for (kind = 0; kind < 4; kind++) {
        const int n = 50;
        double d[50 * 50] = { 0 };
        unsigned char last[50] = { 0 };
        fsi_ldlt_desc desc = dissecting();
        matrix m;
        for (i = 0; i < n; i++) d[i * n + i] = 2 + i % 3;
        for (i = 1; i < n && kind; i++) d[i] = d[i * n] = 0.1;
        d[0] = kind ? 5 : 2;
        last[0] = kind == 2;
        desc.last = kind >= 2 ? last : NULL;
        set_order(&desc, kind == 3 ? 2 : 0);
        m = matrix_from(d, n);
        check_against_dense(&m.a, desc, &random, 1e-13);
        if (kind == 1 || kind == 2) {
            fsi_ldlt *f = ldlt_of(&m.a, &desc);
            CHECK(f->stats.entries < 20.0 * n); /* in natural order all is filled: 50 n */
            fsi_ldlt_destroy(f);
        }
        matrix_free(&m);
    }
}

/* ---- larger ones ----------------------------------------------------------------------------------------------- */

static void test_meshes_are_solved_to_rounding(void)
{
    static const struct {
        int nx, ny, nz, reach, block;
    } shape[5] = {{100, 100, 1, 1, 1}, {17, 16, 15, 1, 1}, {40, 30, 1, 2, 3}, {3000, 1, 1, 2, 2}, {9, 8, 7, 1, 4}};
    int k, i, order;
    for (k = 0; k < 5; k++) for (order = 0; order < 2; order++) {
        matrix m = matrix_grid(shape[k].nx, shape[k].ny, shape[k].nz, shape[k].reach, shape[k].block, 0.01);
        const int n = m.a.rows * m.a.block;
        fsi_ldlt_desc d = dissecting();
        double *b = (double *)malloc(sizeof(double) * (size_t)n), *x = (double *)malloc(sizeof(double) * (size_t)n),
               *want = (double *)malloc(sizeof(double) * (size_t)n);
        double off = 0;
        fsi_ldlt *f;
        set_order(&d, order);
        f = ldlt_of(&m.a, &d);
        for (i = 0; i < n; i++) want[i] = sin(0.37 * i);
        CHECK(fsi_csr_multiply(NULL, &m.a, want, b) == FSI_OK);
        CHECK(fsi_ldlt_solve(f, b, x) == FSI_OK);
        CHECK(residual_of(&m.a, b, x) < 1e-14);
        for (i = 0; i < n; i++) off = fmax(off, fabs(x[i] - want[i]));
        CHECK_NEAR(off, 0, 1e-9);
        CHECK(f->stats.negative == 0 && f->stats.weakest_pivot > 0.02 && f->stats.growth <= 2 &&
              f->stats.weakest_row >= 0);
        CHECK(fsi_ldlt_solve(f, b, b) == FSI_OK); /* in place */
        for (i = 0; i < n; i++) CHECK_NEAR(b[i], want[i], 1e-9);
        fsi_ldlt_destroy(f);
        matrix_free(&m);
        free(b);
        free(x);
        free(want);
    }
}

/* A product is the sum that it says, whatever the block. */
static void test_products_are_sums_of_rows(void)
{
    int b, i, j;
    for (b = 1; b <= 16; b += 3) {
        matrix m = matrix_grid(5, 4, 1, 1, b, 1);
        const int n = m.a.rows * b;
        double x[320], y[320];
        uint64_t random = (uint64_t)b;
        for (i = 0; i < m.start[m.a.rows] * b * b; i++) m.value[i] = test_random(&random) - 0.5;
        for (i = 0; i < n; i++) x[i] = test_random(&random);
        CHECK(fsi_csr_multiply(NULL, &m.a, x, y) == FSI_OK);
        for (i = 0; i < n; i++) {
            double sum = 0;
            for (j = 0; j < n; j++) sum += entry_of(&m.a, i, j) * x[j];
            CHECK_NEAR(y[i], sum, 1e-13);
        }
        matrix_free(&m);
    }
}

/* ---- what cannot be factorised ---------------------------------------------------------------------------------- */

static void refuse_factor(const fsi_csr *a, fsi_ldlt_desc d, fsi_status status, int row)
{
    fsi_context c = fsi_default_context();
    double x[100] = { 0 };
    fsi_ldlt *f = NULL;
    d.context = &c;
    CHECK(fsi_ldlt_create(&f, a, &d) == FSI_OK);
    CHECK(fsi_ldlt_factor(f, a) == status);
    CHECK(c.error.status == status && (row < 0 || c.error.element == row));
    CHECK(strstr(c.error.message, "row") != NULL);
    CHECK(!f->factored && fsi_ldlt_solve(f, x, x) == FSI_ERROR_ARGUMENT);
    fsi_ldlt_destroy(f);
}

static void test_singular_and_indefinite_matrices_name_a_row(void)
{
    matrix m = matrix_grid(8, 8, 1, 1, 1, 0); /* the constant is in its null space */
    fsi_ldlt_desc d = dissecting();
    signed char sign[64];
    int k;
    refuse_factor(&m.a, d, FSI_ERROR_SINGULAR, -1);
    m.value[m.start[20]] = 0;
    for (k = m.start[20]; k < m.start[21]; k++) m.value[k] = m.col[k] == 20 ? -9 : m.value[k];
    refuse_factor(&m.a, d, FSI_ERROR_SINGULAR, -1);
    d.pivots = FSI_LDLT_SIGNED;
    d.sign = sign;
    for (k = 0; k < 64; k++) sign[k] = 1;
    refuse_factor(&m.a, d, FSI_ERROR_SINGULAR, -1);
    matrix_free(&m);
    m = matrix_grid(8, 8, 1, 1, 1, 1);
    sign[33] = -1; /* said to be negative, but is not */
    refuse_factor(&m.a, d, FSI_ERROR_SINGULAR, -1);
    d = dissecting();
    m.value[m.start[12]] = test_nan();
    refuse_factor(&m.a, d, FSI_ERROR_NAN, 12);
    matrix_free(&m);
    m = matrix_grid(8, 8, 1, 1, 1, 1);
    for (k = m.start[40]; k < m.start[41]; k++) m.value[k] = 0; /* an empty row */
    for (k = 0; k < m.start[64]; k++) if (m.col[k] == 40) m.value[k] = 0;
    refuse_factor(&m.a, d, FSI_ERROR_SINGULAR, 40);
    d.pivots = FSI_LDLT_ANY;
    refuse_factor(&m.a, d, FSI_ERROR_SINGULAR, 40);
    matrix_free(&m);
}

/* A small pivot at the start makes large ones of the others: that is told, and what is left of a singular matrix then
   is not taken for a pivot. */
static void test_growth_is_told_and_its_rounding_is_no_pivot(void)
{
    const double singular[9] = { 1e-7, 1, 3, 1, 0, 0, 3, 0, 0 }, saddle[4] = { 1e-9, 1, 1, 0 };
    fsi_context c = fsi_default_context();
    fsi_ldlt_desc d = dissecting();
    matrix m = matrix_from(singular, 3), s = matrix_from(saddle, 2);
    fsi_ldlt *f;
    d.context = &c;
    d.order = FSI_LDLT_NATURAL;
    d.pivots = FSI_LDLT_ANY;
    CHECK(fsi_ldlt_create(&f, &m.a, &d) == FSI_OK && fsi_ldlt_factor(f, &m.a) == FSI_ERROR_SINGULAR &&
          c.error.element == 2);
    fsi_ldlt_destroy(f);
    f = ldlt_of(&s.a, &d);
    CHECK_NEAR(f->stats.growth, 1e9, 1);
    CHECK(f->stats.negative == 1);
    fsi_ldlt_destroy(f);
    matrix_free(&m);
    matrix_free(&s);
}

/* The Laplacian of a grid that nothing holds: singular, however rounding falls. */
static void test_a_grid_that_nothing_holds_is_refused(void)
{
    static const int sides[6][2] = { { 5, 7 }, { 50, 50 }, { 64, 64 }, { 100, 100 }, { 200, 200 }, { 300, 200 } };
    int k, order;
    for (k = 0; k < 6; k++) for (order = 0; order < (k < 4 ? 3 : 2); order++) {
        matrix m = matrix_grid(sides[k][0], sides[k][1], 1, 1, 1, 0);
        fsi_context c = fsi_default_context();
        fsi_ldlt_desc d = dissecting();
        fsi_ldlt *f = NULL;
        d.context = &c;
        set_order(&d, order);
        CHECK(fsi_ldlt_create(&f, &m.a, &d) == FSI_OK && fsi_ldlt_factor(f, &m.a) == FSI_ERROR_SINGULAR);
        fsi_ldlt_destroy(f);
        matrix_free(&m);
    }
}

/* After a failed factorisation nothing is left of the one before. */
static void test_a_failed_factorisation_leaves_no_factor(void)
{
    matrix m = matrix_grid(9, 9, 1, 1, 1, 1);
    fsi_context c = fsi_default_context();
    fsi_ldlt_desc d = dissecting();
    double b[81] = { 1 }, x[81];
    const double good = m.value[m.start[40] + 2];
    fsi_ldlt *f;
    d.context = &c;
    f = ldlt_of(&m.a, &d);
    CHECK(m.col[m.start[40] + 2] == 40 && fsi_ldlt_solve(f, b, x) == FSI_OK);
    m.value[m.start[40] + 2] = -1;
    CHECK(fsi_ldlt_factor(f, &m.a) == FSI_ERROR_SINGULAR && c.error.element == 40 &&
          fsi_ldlt_solve(f, b, x) == FSI_ERROR_ARGUMENT);
    m.value[m.start[40] + 2] = good;
    CHECK(fsi_ldlt_factor(f, &m.a) == FSI_OK && fsi_ldlt_solve(f, b, x) == FSI_OK);
    fsi_ldlt_destroy(f);
    matrix_free(&m);
}

/* Rows that see nearly all are put aside, though nobody says so: L has their rows full, and else no more than without
   them. */
static void test_dense_rows_are_found(void)
{
    enum { N = 2000 };
    matrix m = matrix_make(N + 2, 1, 3 * N + 8);
    fsi_ldlt_desc d = dissecting();
    fsi_ldlt *f;
    int order, i, k, e = 0;
    for (i = 0; i < N; i++) { /* the dense ones come first, their lower triangle down the columns */
        if (i < 2) for (k = 0; k < i; k++) m.col[e] = k, m.value[e++] = 0.1;
        else for (k = 0; k < 2; k++) m.col[e] = k, m.value[e++] = 0.1;
        m.col[e] = i, m.value[e++] = i < 2 ? 1e4 : 4;
        m.start[i + 1] = e;
    }
    m.a.rows = m.a.cols = N;
    for (order = 0; order < 2; order++) {
        set_order(&d, order);
        f = ldlt_of(&m.a, &d);
        CHECK(f->stats.entries < 5 * N);
        fsi_ldlt_destroy(f);
    }
    matrix_free(&m);
}

/* Nearly singular: solved, and the weakest pivot tells. */
static void test_nearly_singular_matrices_are_solved_and_told(void)
{
    double pull;
    for (pull = 1e-3; pull > 1e-10; pull *= 0.1) {
        matrix m = matrix_grid(12, 12, 1, 1, 1, pull);
        fsi_ldlt_desc d = dissecting();
        double b[144], x[144];
        int i;
        fsi_ldlt *f = ldlt_of(&m.a, &d);
        for (i = 0; i < 144; i++) b[i] = sin(i);
        CHECK(fsi_ldlt_solve(f, b, x) == FSI_OK && residual_of(&m.a, b, x) < 1e-14);
        CHECK(f->stats.weakest_pivot < 200 * pull && f->stats.weakest_pivot > pull);
        fsi_ldlt_destroy(f);
        matrix_free(&m);
    }
}

/* New values take the old analysis; another pattern is refused. */
static void test_new_values_need_no_new_analysis(void)
{
    fsi_context c = fsi_default_context();
    fsi_ldlt_desc d = dissecting();
    matrix m = matrix_grid(30, 20, 1, 1, 1, 1), other = matrix_grid(20, 30, 1, 1, 1, 1);
    double b[600], x[600];
    fsi_ldlt *f;
    int k, i;
    d.context = &c;
    test_fail_allocator(&c, 0);
    CHECK(fsi_ldlt_create(&f, &m.a, &d) == FSI_OK);
    for (k = 0; k < 3; k++) {
        const long before = test_alloc_count();
        for (i = 0; i < m.start[600]; i++) m.value[i] *= 1.5;
        for (i = 0; i < 600; i++) b[i] = cos(i + k);
        CHECK(fsi_ldlt_factor(f, &m.a) == FSI_OK && fsi_ldlt_solve(f, b, x) == FSI_OK);
        CHECK(residual_of(&m.a, b, x) < 1e-14);
        CHECK(test_alloc_count() == before);
    }
    CHECK(fsi_ldlt_factor(f, &other.a) == FSI_ERROR_ARGUMENT);
    CHECK(f->factored && fsi_ldlt_solve(f, b, x) == FSI_OK); /* the factor is still there */
    fsi_ldlt_destroy(f);
    CHECK(test_live_bytes() == 0);
    matrix_free(&m);
    matrix_free(&other);
}

/* ---- promises ------------------------------------------------------------------------------------------------- */

static uint64_t solution_hash(fsi_context *c, const fsi_csr *a)
{
    const int n = a->rows * a->block;
    fsi_ldlt_desc d = dissecting();
    double *b = (double *)malloc(sizeof(double) * (size_t)n);
    uint64_t hash;
    fsi_ldlt *f;
    int i;
    d.context = c;
    f = ldlt_of(a, &d);
    CHECK(f->stats.tasks > 3);
    for (i = 0; i < n; i++) b[i] = sin(i);
    CHECK(fsi_ldlt_solve(f, b, b) == FSI_OK);
    hash = fsi_hash(b, sizeof(double) * (size_t)n, 0);
    fsi_ldlt_destroy(f);
    free(b);
    return hash;
}

static void test_any_number_of_threads_gives_the_same_bits(void)
{
    static const int threads[4] = { 1, 2, 3, 8 };
    matrix m = matrix_grid(50, 40, 1, 2, 3, 0.1);
    const uint64_t serial = solution_hash(NULL, &m.a);
    int k;
    for (k = 0; k < 8; k++) {
        fsi_context c = fsi_default_context();
        test_threads(&c, threads[k & 3], k >= 4);
        CHECK(solution_hash(&c, &m.a) == serial);
    }
    matrix_free(&m);
}

static void test_every_allocation_may_fail(void)
{
    matrix m = matrix_grid(40, 30, 1, 1, 2, 0.1);
    long k;
    fsi_status status = FSI_ERROR_MEMORY;
    for (k = 1; status == FSI_ERROR_MEMORY && k < 500; k++) {
        fsi_context c = fsi_default_context();
        fsi_ldlt_desc d = dissecting();
        fsi_ldlt *f = NULL;
        d.context = &c;
        test_fail_allocator(&c, k);
        status = fsi_ldlt_create(&f, &m.a, &d);
        CHECK((status == FSI_OK) == (f != NULL) && (status == FSI_OK || c.error.status == FSI_ERROR_MEMORY));
        fsi_ldlt_destroy(f);
        CHECK(test_live_bytes() == 0);
    }
    CHECK(status == FSI_OK && k > 3);
    matrix_free(&m);
}

static void refuse_create(const fsi_csr *a, const fsi_ldlt_desc *d, fsi_context *c, const char *what, fsi_status status)
{
    fsi_ldlt *f = (fsi_ldlt *)c;
    CHECK(fsi_ldlt_create(&f, a, d) == status && f == NULL);
    CHECK(what == NULL || strstr(c->error.message, what) != NULL);
}

static void test_bad_input_is_named(void)
{
    fsi_context c = fsi_default_context();
    fsi_ldlt_desc d = dissecting(), e;
    matrix m = matrix_grid(4, 4, 1, 1, 1, 1);
    double x[16] = { 0 };
    signed char sign[16] = { 0 };
    fsi_csr a = m.a;
    fsi_ldlt *f;
    d.context = &c;
    e = d, e.cookie++, refuse_create(&a, &e, &c, NULL, FSI_ERROR_COOKIE);
    refuse_create(&a, NULL, &c, NULL, FSI_ERROR_COOKIE);
    refuse_create(NULL, &d, &c, "NULL", FSI_ERROR_ARGUMENT);
    e = d, e.order = (fsi_ldlt_order)7, refuse_create(&a, &e, &c, "order", FSI_ERROR_ARGUMENT);
    e = d, e.pivots = (fsi_ldlt_pivots)7, refuse_create(&a, &e, &c, "pivots", FSI_ERROR_ARGUMENT);
    e = d, e.smallest_pivot = test_nan(), refuse_create(&a, &e, &c, "smallest_pivot is not finite", FSI_ERROR_NAN);
    e = d, e.pivots = FSI_LDLT_SIGNED, refuse_create(&a, &e, &c, "sign", FSI_ERROR_ARGUMENT);
    e.sign = sign, refuse_create(&a, &e, &c, "sign[0]", FSI_ERROR_ARGUMENT);
    a = m.a, a.cols = 17, refuse_create(&a, &d, &c, "square", FSI_ERROR_ARGUMENT);
    a = m.a, a.rows = -1, refuse_create(&a, &d, &c, "-1", FSI_ERROR_ARGUMENT);
    a = m.a, a.block = 17, refuse_create(&a, &d, &c, "17", FSI_ERROR_ARGUMENT);
    a = m.a, a.block = 0, refuse_create(&a, &d, &c, "0", FSI_ERROR_ARGUMENT);
    a = m.a, a.start = NULL, refuse_create(&a, &d, &c, "start", FSI_ERROR_ARGUMENT);
    a = m.a, a.value = NULL, refuse_create(&a, &d, &c, "value", FSI_ERROR_ARGUMENT);
    a = m.a, a.rows = a.cols = 2000000000, a.block = 16, refuse_create(&a, &d, &c, "int", FSI_ERROR_LIMIT);
    a = m.a;
    m.start[3]--, refuse_create(&a, &d, &c, NULL, FSI_ERROR_ARGUMENT), m.start[3]++;
    m.start[3] = 100, refuse_create(&a, &d, &c, "block row 3", FSI_ERROR_ARGUMENT), m.start[3] = m.start[4] - 3;
    m.start[0] = 1, refuse_create(&a, &d, &c, "start[0]", FSI_ERROR_ARGUMENT), m.start[0] = 0;
    m.col[0] = 16, refuse_create(&a, &d, &c, "block row 0", FSI_ERROR_ARGUMENT);
    m.col[0] = -1, refuse_create(&a, &d, &c, "column -1", FSI_ERROR_ARGUMENT);
    m.col[0] = 1, refuse_create(&a, &d, &c, "ascend", FSI_ERROR_ARGUMENT), m.col[0] = 0;
    CHECK(fsi_ldlt_create(NULL, &a, &d) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_ldlt_create(&f, &a, &d) == FSI_OK);
    CHECK(fsi_ldlt_solve(f, x, x) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "factor") != NULL);
    CHECK(fsi_ldlt_factor(f, NULL) == FSI_ERROR_ARGUMENT && fsi_ldlt_factor(NULL, &a) == FSI_ERROR_COOKIE);
    CHECK(fsi_ldlt_factor(f, &a) == FSI_OK);
    CHECK(fsi_ldlt_solve(f, NULL, x) == FSI_ERROR_ARGUMENT && fsi_ldlt_solve(NULL, x, x) == FSI_ERROR_COOKIE);
    CHECK(fsi_ldlt_solve_4(f, NULL, x) == FSI_ERROR_ARGUMENT && fsi_ldlt_solve_4(NULL, x, x) == FSI_ERROR_COOKIE);
    x[5] = test_inf();
    CHECK(fsi_ldlt_solve(f, x, x) == FSI_ERROR_NAN && c.error.element == 5);
    x[5] = 1e308;
    CHECK(fsi_csr_multiply(&c, &a, NULL, x) == FSI_ERROR_ARGUMENT &&
          fsi_csr_multiply(&c, NULL, x, x) == FSI_ERROR_ARGUMENT);
    fsi_ldlt_destroy(f);
    fsi_ldlt_destroy(NULL);
    matrix_free(&m);
}

/* The plain tile and all that this machine can run. */
static void test_every_tile_gives_the_same_bits(void)
{
    enum { K = 37 };
    double a[K * FSI__LDLT_MR], b[K * FSI__LDLT_NR], c[3][FSI__LDLT_NR * 11];
    uint64_t random = 3;
    int i;
    for (i = 0; i < K * FSI__LDLT_MR; i++) a[i] = test_random(&random) - 0.5;
    for (i = 0; i < K * FSI__LDLT_NR; i++) b[i] = test_random(&random) - 0.5;
    for (i = 0; i < FSI__LDLT_NR * 11; i++) c[0][i] = c[1][i] = c[2][i] = test_random(&random) - 0.5;
    fsi__ldlt_tile(K, a, b, c[0], 11);
    fsi__ldlt_best_tile()(K, a, b, c[1], 11);
    CHECK(!memcmp(c[0], c[1], sizeof c[0]));
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__TINYC__)
    if (!__builtin_cpu_supports("avx2")) return;
    fsi__ldlt_tile_avx2(K, a, b, c[2], 11);
    CHECK(!memcmp(c[0], c[2], sizeof c[0]));
#endif
}

/* ---- one call for all ------------------------------------------------------------------------------------------ */

static fsi_solver *solver_of(fsi_context *c, fsi_solve_fn *solve, void *user, int reuse)
{
    fsi_solver_desc d = fsi_solver_default_desc();
    fsi_solver *s = NULL;
    d.context = c;
    d.solve = solve;
    d.user = user;
    d.ordering = fsi_dissection();
    d.iteration = fsi_krylov_iteration();
    d.reuse = reuse;
    CHECK(fsi_solver_create(&s, &d) == FSI_OK);
    return s;
}

/* Largest |b - A x|. */
static double left_over(const fsi_csr *a, const double *b, const double *x)
{
    const int n = a->rows * a->block;
    double *r = (double *)calloc((size_t)n + 1, sizeof(double)), most = 0;
    int i;
    CHECK(fsi_csr_multiply(NULL, a, x, r) == FSI_OK);
    for (i = 0; i < n; i++) most = fabs(b[i] - r[i]) > most ? fabs(b[i] - r[i]) : most;
    free(r);
    return most;
}

/* What is known is not made again: the factor of the same values, the analysis of the same pattern. */
static void test_the_solver_keeps_what_still_holds(void)
{
    matrix m = matrix_grid(12, 9, 1, 2, 3, 0.4), other = matrix_grid(7, 7, 1, 1, 1, 0.4);
    fsi_system y = fsi_default_system();
    fsi_solver *s = solver_of(NULL, NULL, NULL, 0);
    double b[324], x[324] = { 0 };
    int k;
    for (k = 0; k < 324; k++) b[k] = k % 7 - 3;
    y.matrix = &m.a;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && left_over(&m.a, b, x) < 1e-12);
    CHECK(s->stats.analyses == 1 && s->stats.factorings == 1 && s->stats.residual < 1e-13);
    CHECK(fsi_solver_solve(s, &y, x, x) == FSI_OK && s->stats.factorings == 1);
    m.value[0] += 1;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && left_over(&m.a, b, x) < 1e-12);
    CHECK(s->stats.analyses == 1 && s->stats.factorings == 2);
    y.pivots = FSI_LDLT_ANY;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && s->stats.analyses == 2 && s->stats.negative == 0);
    y.matrix = &other.a;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && left_over(&other.a, b, x) < 1e-12 && s->stats.analyses == 3);
    CHECK(s->stats.solves == 5);
    fsi_solver_destroy(s);
    fsi_solver_destroy(NULL);
    matrix_free(&m);
    matrix_free(&other);
}

/* Patterns come and go, small ones and ones that are dissected: after the first round nothing is allocated, and the
   bits are those of solvers that know one only. */
static void test_a_solver_has_memory_for_patterns_it_has_seen(void)
{
    fsi_context c = fsi_default_context();
    matrix m[3];
    fsi_system y = fsi_default_system();
    fsi_solver *s = solver_of(&c, NULL, NULL, 0);
    long long allocs = 0;
    double *b = (double *)calloc(4000, sizeof(double)), *x = (double *)calloc(4000, sizeof(double)),
           *want = (double *)calloc(4000, sizeof(double));
    int k, i;
    m[0] = matrix_grid(12, 9, 1, 2, 3, 0.4);
    m[1] = matrix_grid(60, 60, 1, 1, 1, 0.4);
    m[2] = matrix_grid(58, 61, 1, 1, 1, 0.3);
    for (i = 0; i < 4000; i++) b[i] = i % 7 - 3;
    for (k = 0; k < 9; k++) {
        const int n = m[k % 3].a.rows * m[k % 3].a.block;
        fsi_solver *one = solver_of(NULL, NULL, NULL, 0);
        if (k == 6) allocs = c.allocs;
        y.matrix = &m[k % 3].a;
        CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && s->stats.analyses == k + 1);
        CHECK(fsi_solver_solve(one, &y, b, want) == FSI_OK && memcmp(x, want, (size_t)n * sizeof *x) == 0);
        fsi_solver_destroy(one);
    }
    CHECK(c.allocs == allocs);
    fsi_solver_destroy(s);
    CHECK(c.bytes == 0);
    for (k = 0; k < 3; k++) matrix_free(&m[k]);
    free(b);
    free(x);
    free(want);
}

/* With the factor of the matrix before as preconditioner: few iterations for a little change, a new factor for a large
   one. */
static void test_an_old_factor_serves_matrices_near_it(void)
{
    int kind, i;
    for (kind = 0; kind < 2; kind++) {
        enum { N = 400 };
        matrix m = matrix_grid(20, 20, 1, 1, 1, 0.1);
        fsi_system y = fsi_default_system();
        fsi_solver *s = solver_of(NULL, NULL, NULL, 20);
        double b[N], x[N] = { 0 };
        signed char sign[N];
        for (i = 0; i < N; i++) {
            int e;
            b[i] = i % 11 - 5;
            sign[i] = kind && i % 4 == 0 ? -1 : 1;
            for (e = m.start[i]; e < m.start[i + 1]; e++) if (m.col[e] == i && sign[i] < 0) m.value[e] = -3;
            for (e = m.start[i]; e < m.start[i + 1]; e++)
                if (m.col[e] != i && kind && i % 4 && m.col[e] % 4) m.value[e] = -0.25;
        }
        y.matrix = &m.a;
        y.pivots = kind ? FSI_LDLT_SIGNED : FSI_LDLT_POSITIVE;
        y.sign = sign;
        if (!CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK)) return;
        for (i = 0; i < m.start[N]; i++) m.value[i] *= 1 + 0.01 * (i % 3);
        for (i = 0; i < N; i++) { /* symmetric again */
            int e, g;
            for (e = m.start[i]; e < m.start[i + 1]; e++)
                for (g = m.start[m.col[e]]; g < m.start[m.col[e] + 1]; g++)
                    if (m.col[g] == i && m.col[e] < i) m.value[e] = m.value[g];
        }
        CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && left_over(&m.a, b, x) < 2e-8);
        CHECK(s->stats.factorings == 1 && s->stats.iters > 0 && s->stats.iters <= 20);
        for (i = 0; i < N; i++) {
            int e;
            for (e = m.start[i]; e < m.start[i + 1]; e++) if (m.col[e] == i) m.value[e] *= 1 + 1e4 * (i % 5) * (i % 7);
        }
        CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && left_over(&m.a, b, x) < 1e-9 && s->stats.factorings == 2);
        fsi_solver_destroy(s);
        matrix_free(&m);
    }
}

static fsi_status apply_laplace(void *user, fsi_context *c, const double *x, double *y, int columns)
{
    const int n = *(const int *)user;
    int i, k;
    (void)c;
    for (k = 0; k < columns; k++, x += n, y += n)
        for (i = 0; i < n; i++) y[i] = 2 * x[i] - (i > 0 ? x[i - 1] : 0) - (i + 1 < n ? x[i + 1] : 0);
    return FSI_OK;
}

static void test_operators_are_solved_by_iteration(void)
{
    enum { N = 50 };
    int n = N, i, kind;
    double b[N], x[N];
    fsi_operator op;
    op.n = N;
    op.apply = apply_laplace;
    op.user = &n;
    for (kind = 0; kind < 2; kind++) {
        fsi_solver *s = solver_of(NULL, NULL, NULL, 0);
        fsi_system y = fsi_default_system();
        y.op = &op;
        y.pivots = kind ? FSI_LDLT_ANY : FSI_LDLT_POSITIVE;
        for (i = 0; i < N; i++) b[i] = 1, x[i] = 0;
        CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && s->stats.iters > 0 && s->stats.residual <= 1e-10);
        for (i = 0; i < N; i++) CHECK_NEAR(x[i], 0.5 * (i + 1) * (N - i), 1e-6);
        y.max_iters = 3;
        for (i = 0; i < N; i++) x[i] = 7;
        CHECK(fsi_solver_solve(s, &y, b, x) == FSI_ERROR_CONVERGENCE && x[0] == 7 && x[N - 1] == 7);
        fsi_solver_destroy(s);
    }
}

/* A host's solver: fsi's own dense one. It may lie. */
typedef struct host { int calls, lie; fsi_status status; } host;

static fsi_status host_solve(void *user, fsi_context *c, const fsi_system *y, const double *b, double *x)
{
    host *h = (host *)user;
    const int n = y->matrix->rows * y->matrix->block;
    double *a = (double *)malloc(sizeof(double) * (size_t)(n * n));
    fsi_status status;
    int i, j;
    h->calls++;
    for (i = 0; i < n; i++) for (j = 0; j <= i; j++) a[i * n + j] = entry_of(y->matrix, i, j);
    for (i = 0; i < n; i++) x[i] = b[i];
    status = fsi_dense_cholesky(c, n, a);
    if (status == FSI_OK) status = fsi_dense_cholesky_solve(n, a, x);
    if (h->lie == 1) x[n / 2] += 1;
    if (h->lie == 2) x[n / 2] = test_nan();
    free(a);
    return h->status != FSI_OK ? h->status : status;
}

static void test_the_hosts_solver_is_called_and_checked(void)
{
    matrix m = matrix_grid(8, 5, 1, 1, 2, 0.4);
    host h = { 0, 0, FSI_OK };
    fsi_context c = fsi_default_context();
    fsi_system y = fsi_default_system();
    fsi_solver *s = solver_of(&c, host_solve, &h, 0);
    double b[80], x[80] = { 0 }, good[80];
    int i;
    for (i = 0; i < 80; i++) b[i] = i % 5 - 2;
    y.matrix = &m.a;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && left_over(&m.a, b, x) < 1e-13 && h.calls == 1 &&
          s->stats.factorings == 0);
    memcpy(good, x, sizeof x);
    h.lie = 1;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_ERROR_CONVERGENCE && strstr(c.error.message, "host") &&
          !memcmp(x, good, sizeof x));
    h.lie = 2;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_ERROR_NAN && c.error.element == 40 && !memcmp(x, good, sizeof x));
    h.lie = 0;
    h.status = FSI_ERROR_MEMORY;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_ERROR_MEMORY && !memcmp(x, good, sizeof x));
    fsi_solver_destroy(s);
    matrix_free(&m);
}

static void test_the_solver_names_bad_systems(void)
{
    matrix m = matrix_grid(4, 4, 1, 1, 1, 1);
    fsi_context c = fsi_default_context();
    fsi_system y = fsi_default_system(), z;
    fsi_solver_desc d = fsi_solver_default_desc();
    fsi_operator op;
    fsi_solver *s = solver_of(&c, NULL, NULL, 0);
    double b[16] = { 1 }, x[16] = { 3 };
    op.n = 16;
    op.apply = NULL;
    op.user = NULL;
    y.matrix = &m.a;
    z = y, z.cookie++;
    CHECK(fsi_solver_solve(s, &z, b, x) == FSI_ERROR_COOKIE && fsi_solver_solve(NULL, &y, b, x) == FSI_ERROR_COOKIE &&
          fsi_solver_solve(s, NULL, b, x) == FSI_ERROR_COOKIE);
    z = y, z.op = &op;
    CHECK(fsi_solver_solve(s, &z, b, x) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "both"));
    z.matrix = NULL;
    CHECK(fsi_solver_solve(s, &z, b, x) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "apply"));
    z = y, z.tolerance = test_nan();
    CHECK(fsi_solver_solve(s, &z, b, x) == FSI_ERROR_NAN && strstr(c.error.message, "system.tolerance"));
    z = y, z.max_iters = -1;
    CHECK(fsi_solver_solve(s, &z, b, x) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "max_iters"));
    z = y, z.pivots = FSI_LDLT_SIGNED;
    CHECK(fsi_solver_solve(s, &z, b, x) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "sign"));
    CHECK(fsi_solver_solve(s, &y, NULL, x) == FSI_ERROR_ARGUMENT);
    b[3] = test_nan();
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_ERROR_NAN && c.error.element == 3);
    b[3] = 0;
    m.value[m.start[5]] = test_nan();
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_ERROR_NAN && x[0] == 3);
    m.value[m.start[5]] = -1e3;
    m.value[m.start[1]] = -1e3;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_ERROR_SINGULAR && x[0] == 3);
    m.value[m.start[5]] = m.value[m.start[1]] = -1;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK);
    fsi_solver_destroy(s);
    d.context = &c;
    d.reuse = -1;
    CHECK(fsi_solver_create(&s, &d) == FSI_ERROR_ARGUMENT && s == NULL &&
          fsi_solver_create(NULL, &d) == FSI_ERROR_ARGUMENT);
    d.reuse = 0;
    d.cookie++;
    CHECK(fsi_solver_create(&s, &d) == FSI_ERROR_COOKIE);
    matrix_free(&m);
}

/* Without an iteration there is neither `reuse` nor an op, but for the host's solver. */
static void test_a_solver_without_iteration_refuses_what_needs_one(void)
{
    matrix m = matrix_grid(4, 4, 1, 1, 1, 1);
    fsi_context c = fsi_default_context();
    fsi_system y = fsi_default_system();
    fsi_solver_desc d = fsi_solver_default_desc();
    const fsi_operator op = fsi_csr_operator(&m.a);
    fsi_solver *s = NULL;
    double b[16] = { 1 }, x[16] = { 3 };
    d.context = &c;
    d.reuse = 5;
    CHECK(fsi_solver_create(&s, &d) == FSI_ERROR_ARGUMENT && s == NULL &&
          strstr(c.error.message, "desc.reuse needs desc.iteration"));
    d.reuse = 0;
    if (!CHECK(fsi_solver_create(&s, &d) == FSI_OK)) return;
    y.op = &op;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_ERROR_ARGUMENT && x[0] == 3 &&
          strstr(c.error.message, "system.op needs desc.iteration"));
    y.op = NULL;
    y.matrix = &m.a;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && left_over(&m.a, b, x) < 1e-14);
    s->desc.reuse = 5;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_ERROR_ARGUMENT &&
          strstr(c.error.message, "desc.reuse needs desc.iteration"));
    fsi_solver_destroy(s);
    matrix_free(&m);
}

/* Another sign, order or set of last rows is another system, though the matrix is the same. */
static void test_the_solver_tells_systems_apart(void)
{
    enum { N = 100 };
    matrix m = matrix_grid(10, 10, 1, 1, 1, 1);
    fsi_context c = fsi_default_context();
    fsi_system y = fsi_default_system();
    fsi_solver *s = solver_of(&c, NULL, NULL, 0);
    signed char sign[N];
    unsigned char last[N] = { 0 };
    double b[N] = { 1 }, x[N] = { 0 };
    memset(sign, 1, sizeof sign);
    y.matrix = &m.a;
    y.pivots = FSI_LDLT_SIGNED;
    y.sign = sign;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && s->stats.analyses == 1);
    last[33] = 1;
    y.last = last;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && s->stats.analyses == 2);
    sign[7] = -1;
    x[0] = 9;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_ERROR_SINGULAR && x[0] == 9 && c.error.element == 7);
    sign[7] = 1;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && left_over(&m.a, b, x) < 1e-14);
    y.op = NULL;
    x[5] = test_nan(); /* not looked at */
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && left_over(&m.a, b, x) < 1e-14);
    s->desc.reuse = 5;
    x[5] = test_nan();
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_ERROR_NAN);
    fsi_solver_destroy(s);
    matrix_free(&m);
}

/* [H B^T; B -c I] with a tiny c that comes first: one solve leaves too much, refinement mends it. */
static void test_the_solver_refines(void)
{
    enum { N = 60, K = 20, ALL = N + K };
    double *d = (double *)calloc(ALL * ALL, sizeof(double)), b[ALL], x[ALL] = { 0 };
    signed char sign[ALL];
    uint64_t random = 77;
    fsi_system y = fsi_default_system();
    fsi_solver_desc e = fsi_solver_default_desc();
    fsi_solver *s = NULL;
    matrix m;
    int i, k;
    for (i = 0; i < ALL; i++) sign[i] = i < K ? -1 : 1, b[i] = test_random(&random) - 0.5;
    for (i = 0; i < K; i++) d[i * ALL + i] = -1e-9;
    for (i = K; i < ALL; i++) d[i * ALL + i] = 2;
    for (i = 0; i < K; i++)
        for (k = 0; k < 3; k++) d[i * ALL + K + 3 * i + k] = d[(K + 3 * i + k) * ALL + i] = test_random(&random) + 0.5;
    m = matrix_from(d, ALL);
    e.order = FSI_LDLT_NATURAL;
    CHECK(fsi_solver_create(&s, &e) == FSI_OK);
    y.matrix = &m.a;
    y.pivots = FSI_LDLT_SIGNED;
    y.sign = sign;
    y.tolerance = 1e-14;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && left_over(&m.a, b, x) < 1e-13);
    CHECK(s->stats.iters >= 1 && s->stats.negative == K);
    fsi_solver_destroy(s);
    matrix_free(&m);
    free(d);
}

/* An operator that asks the solver at work: refused, not garbage. */
typedef struct circle { fsi_solver *s; const fsi_system *y; fsi_status status; } circle;

static fsi_status apply_circle(void *user, fsi_context *c, const double *x, double *y, int columns)
{
    circle *o = (circle *)user;
    double b[4] = { 1 }, z[4] = { 0 };
    (void)c, (void)columns;
    o->status = fsi_solver_solve(o->s, o->y, b, z);
    memcpy(y, x, 4 * sizeof *y);
    return FSI_OK;
}

static void test_a_solver_at_work_refuses_calls(void)
{
    fsi_context c = fsi_default_context();
    fsi_system y = fsi_default_system();
    fsi_operator op;
    double b[4] = { 1, 2, 3, 4 }, x[4] = { 0 };
    circle o;
    o.s = solver_of(&c, NULL, NULL, 0);
    o.y = &y;
    o.status = FSI_OK;
    op.n = 4;
    op.apply = apply_circle;
    op.user = &o;
    y.op = &op;
    CHECK(fsi_solver_solve(o.s, &y, b, x) == FSI_OK && x[3] == 4 && o.status == FSI_ERROR_ARGUMENT);
    fsi_solver_destroy(o.s);
}

static fsi_status apply_nothing(void *user, fsi_context *c, const double *x, double *y, int columns)
{
    (void)user, (void)c, (void)x, (void)y, (void)columns;
    return FSI_ERROR_IO;
}

static fsi_status solve_nothing(void *user, fsi_context *c, const fsi_system *system, const double *b, double *x)
{
    (void)user, (void)c, (void)system, (void)b, (void)x;
    return FSI_ERROR_IO;
}

/* What fails leaves a message of its own, what does not, leaves the last one alone. */
static void test_callbacks_that_fail_in_silence_get_a_message(void)
{
    matrix m = matrix_grid(4, 4, 1, 1, 1, 1);
    fsi_context c = fsi_default_context();
    fsi_system y = fsi_default_system();
    fsi_solver *s = solver_of(&c, NULL, NULL, 0), *silent = solver_of(&c, solve_nothing, NULL, 0);
    fsi_operator op = fsi_csr_operator(NULL);
    double b[16] = { 1 }, x[16] = { 0 };
    CHECK(op.n == -1 && op.apply(op.user, &c, b, x, 1) == FSI_ERROR_ARGUMENT);
    op = fsi_ldlt_operator(NULL);
    CHECK(op.n == -1 && op.apply(op.user, &c, b, x, 1) == FSI_ERROR_COOKIE);
    op.n = 16;
    op.apply = apply_nothing;
    y.op = &op;
    c.error.status = FSI_ERROR_IO;
    strcpy(c.error.message, "old");
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_ERROR_IO && strstr(c.error.message, "A failed") != NULL);
    strcpy(c.error.message, "old");
    CHECK(fsi_solver_solve(silent, &y, b, x) == FSI_ERROR_IO && strstr(c.error.message, "host") != NULL);
    strcpy(c.error.message, "old");
    y.op = NULL;
    y.matrix = &m.a;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_OK && !strcmp(c.error.message, "old"));
    fsi_solver_destroy(s);
    fsi_solver_destroy(silent);
    matrix_free(&m);
}

static void test_the_solver_survives_failing_allocations(void)
{
    matrix m = matrix_grid(12, 12, 1, 1, 2, 0.1);
    double b[288] = { 1 }, x[288] = { 0 };
    fsi_status status = FSI_ERROR_MEMORY;
    long k;
    for (k = 1; status == FSI_ERROR_MEMORY && k < 500; k++) {
        fsi_context c = fsi_default_context();
        fsi_solver_desc d = fsi_solver_default_desc();
        fsi_system y = fsi_default_system();
        fsi_solver *s = NULL;
        int round;
        test_fail_allocator(&c, k);
        d.context = &c;
        d.iteration = fsi_krylov_iteration();
        d.reuse = 5;
        y.matrix = &m.a;
        status = fsi_solver_create(&s, &d);
        for (round = 0; round < 2 && status == FSI_OK; round++) {
            x[0] = 5;
            m.value[0] += 1e-3;
            status = fsi_solver_solve(s, &y, b, x);
            CHECK(status == FSI_OK || x[0] == 5);
        }
        CHECK(status == FSI_OK || c.error.status == FSI_ERROR_MEMORY);
        fsi_solver_destroy(s);
        CHECK(test_live_bytes() == 0);
    }
    CHECK(status == FSI_OK && k > 8);
    matrix_free(&m);
}

/* No rows at all. */
static void test_an_empty_system_is_solved(void)
{
    matrix m = matrix_make(0, 1, 0);
    fsi_ldlt_desc d = dissecting();
    fsi_ldlt *f = ldlt_of(&m.a, &d);
    CHECK(fsi_ldlt_solve(f, NULL, NULL) == FSI_OK && f->stats.weakest_row == -1);
    fsi_ldlt_destroy(f);
    matrix_free(&m);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_small_systems_match_dense_elimination);
    RUN(test_blocks_are_as_good_as_numbers);
    RUN(test_arrows_and_lone_rows);
    RUN(test_meshes_are_solved_to_rounding);
    RUN(test_products_are_sums_of_rows);
    RUN(test_singular_and_indefinite_matrices_name_a_row);
    RUN(test_growth_is_told_and_its_rounding_is_no_pivot);
    RUN(test_a_grid_that_nothing_holds_is_refused);
    RUN(test_a_failed_factorisation_leaves_no_factor);
    RUN(test_dense_rows_are_found);
    RUN(test_nearly_singular_matrices_are_solved_and_told);
    RUN(test_new_values_need_no_new_analysis);
    RUN(test_any_number_of_threads_gives_the_same_bits);
    RUN(test_every_allocation_may_fail);
    RUN(test_bad_input_is_named);
    RUN(test_every_tile_gives_the_same_bits);
    RUN(test_the_solver_keeps_what_still_holds);
    RUN(test_a_solver_has_memory_for_patterns_it_has_seen);
    RUN(test_an_old_factor_serves_matrices_near_it);
    RUN(test_operators_are_solved_by_iteration);
    RUN(test_the_hosts_solver_is_called_and_checked);
    RUN(test_the_solver_names_bad_systems);
    RUN(test_a_solver_without_iteration_refuses_what_needs_one);
    RUN(test_the_solver_tells_systems_apart);
    RUN(test_the_solver_refines);
    RUN(test_a_solver_at_work_refuses_calls);
    RUN(test_callbacks_that_fail_in_silence_get_a_message);
    RUN(test_the_solver_survives_failing_allocations);
    RUN(test_an_empty_system_is_solved);
    return TEST_END();
}
