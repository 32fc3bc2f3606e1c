/* test_solve_krylov.c - iterative solves against dense elimination in long double, theory's bounds, and the promises
   of fsi_solve.h.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_krylov.h"
#include "kit/test_solve.h"

/* ---- matrices ------------------------------------------------------------------------------------------------- */

/* From the dense matrix d of n x n blocks, none left out. */
static matrix matrix_from(const double *d, int n, int b)
{
    matrix m = matrix_make(n, b, n * n);
    int i, j, p, q;
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            m.col[i * n + j] = j;
            for (p = 0; p < b; p++)
                for (q = 0; q < b; q++) m.value[((i * n + j) * b + p) * b + q] = d[(i * b + p) * n * b + j * b + q];
        }
        m.start[i + 1] = (i + 1) * n;
    }
    return m;
}

/* -Laplace on a grid, each point with its up to six neighbours; `pull` keeps all in place, 0 leaves the constant free.
   With `wall` the grid's border is held at 0. */
static matrix matrix_grid(int nx, int ny, int nz, double pull, int wall)
{
    matrix m = matrix_make(nx * ny * nz, 1, nx * ny * nz * 7);
    int x, y, z, k, e = 0;
    for (z = 0; z < nz; z++) for (y = 0; y < ny; y++) for (x = 0; x < nx; x++) {
                const int row = (z * ny + y) * nx + x,
                          near_by[7] = {z > 0, y > 0, x > 0, 1, x < nx - 1, y < ny - 1, z < nz - 1};
                const int step[7] = {-nx * ny, -nx, -1, 0, 1, nx, nx * ny};
                int self = 0, degree = 0;
                for (k = 0; k < 7; k++)
                    if (near_by[k]) {
                        if (k == 3) self = e;
                        else degree++;
                        m.col[e] = row + step[k];
                        m.value[e++] = -1;
                    }
        m.value[self] = pull + (wall ? 2 * (nx > 1) + 2 * (ny > 1) + 2 * (nz > 1) : degree);
        m.start[row + 1] = e;
    }
    return m;
}

static void fill_random(double *v, int n, uint64_t seed)
{
    int i;
    for (i = 0; i < n; i++) v[i] = test_random(&seed) - 0.5;
}

/* Q diag(eigenvalue) Q^T, Q a product of three reflections. */
static void dense_with_eigenvalues(double *d, const double *eigenvalue, int n, uint64_t seed)
{
    double u[100], t[100];
    int turn, i, j;
    for (i = 0; i < n * n; i++) d[i] = i % (n + 1) == 0 ? eigenvalue[i / (n + 1)] : 0;
    for (turn = 0; turn < 3; turn++) {
        double uu = 0, utu = 0;
        fill_random(u, n, seed + (uint64_t)turn);
        for (i = 0; i < n; i++) uu += u[i] * u[i];
        for (i = 0; i < n; i++) {
            t[i] = 0;
            for (j = 0; j < n; j++) t[i] += d[i * n + j] * u[j];
        }
        for (i = 0; i < n; i++) utu += u[i] * t[i];
        for (i = 0; i < n; i++)
            for (j = 0; j < n; j++)
                d[i * n + j] += 4 * utu / uu / uu * u[i] * u[j] - 2 / uu * (u[i] * t[j] + t[i] * u[j]);
    }
    for (i = 0; i < n; i++) for (j = 0; j < i; j++) d[i * n + j] = d[j * n + i];
}

/* x = d^-1 b in long double, with pivoting. */
static void dense_solve(const double *d, const double *b, double *x, int n)
{
    long double *l = (long double *)malloc(sizeof *l * (size_t)(n * (n + 1)));
    int i, j, k;
    for (i = 0; i < n; i++) for (j = 0; j <= n; j++) l[i * (n + 1) + j] = (long double)(j < n ? d[i * n + j] : b[i]);
    for (k = 0; k < n; k++) {
        int best = k;
        for (i = k + 1; i < n; i++) if (fabsl(l[i * (n + 1) + k]) > fabsl(l[best * (n + 1) + k])) best = i;
        for (j = 0; j <= n; j++) {
            long double t = l[k * (n + 1) + j];
            l[k * (n + 1) + j] = l[best * (n + 1) + j];
            l[best * (n + 1) + j] = t;
        }
        for (i = k + 1; i < n; i++) {
            long double f = l[i * (n + 1) + k] / l[k * (n + 1) + k];
            for (j = k; j <= n; j++) l[i * (n + 1) + j] -= f * l[k * (n + 1) + j];
        }
    }
    for (i = n - 1; i >= 0; i--) {
        long double sum = l[i * (n + 1) + n];
        for (j = i + 1; j < n; j++) sum -= l[i * (n + 1) + j] * (long double)x[j];
        x[i] = (double)(sum / l[i * (n + 1) + i]);
    }
    free(l);
}

/* ---- operators ------------------------------------------------------------------------------------------------ */

/* y = x / diagonal. */
typedef struct scaling { int n; double *diagonal; } scaling;

static fsi_status scaling_apply(void *user, fsi_context *context, const double *x, double *y, int columns)
{
    const scaling *s = (const scaling *)user;
    int i;
    (void)context;
    for (i = 0; i < s->n * columns; i++) y[i] = x[i] / s->diagonal[i % s->n];
    return FSI_OK;
}

static fsi_operator scaling_operator(scaling *s, double *diagonal, int n)
{
    fsi_operator o;
    s->n = n;
    s->diagonal = diagonal;
    o.n = n;
    o.apply = scaling_apply;
    o.user = s;
    return o;
}

/* The matrix a, but at call number `when` it fails with `status`, or writes a NaN when that is FSI_OK. */
typedef struct trouble { const fsi_csr *a; int calls, when; fsi_status status; } trouble;

static fsi_status trouble_apply(void *user, fsi_context *context, const double *x, double *y, int columns)
{
    trouble *t = (trouble *)user;
    const fsi_operator a = fsi_csr_operator(t->a);
    const fsi_status status = a.apply(a.user, context, x, y, columns);
    if (++t->calls != t->when) return status;
    if (t->status == FSI_OK) y[a.n / 2] = test_nan();
    return t->status;
}

/* ---- solves --------------------------------------------------------------------------------------------------- */

static fsi_krylov *krylov_of(fsi_context *c, fsi_krylov_method method, int rows, int columns, int max_iters,
                             double tolerance)
{
    fsi_krylov_desc d = fsi_krylov_default_desc();
    fsi_krylov *k = NULL;
    d.context = c;
    d.method = method;
    d.rows = rows;
    d.columns = columns;
    d.max_iters = max_iters;
    d.tolerance = tolerance;
    CHECK(fsi_krylov_create(&k, &d) == FSI_OK);
    return k;
}

/* One solve; the solver's stats into *stats. */
static fsi_status solve(fsi_context *c, fsi_krylov_method method, const fsi_csr *a, const fsi_operator *m, int columns,
                        int max_iters, double tolerance, const double *b, double *x, fsi_krylov_stats *stats)
{
    const fsi_operator o = fsi_csr_operator(a);
    fsi_krylov *k = krylov_of(c, method, a->rows * a->block, columns, max_iters, tolerance);
    const fsi_status status = fsi_krylov_solve(k, &o, m, b, x);
    if (stats) *stats = k->stats;
    fsi_krylov_destroy(k);
    return status;
}

/* |b - A x| / |b|, the largest of the columns. */
static double residual_of(const fsi_csr *a, const double *b, const double *x, int columns)
{
    const int n = a->rows * a->block;
    double *y = (double *)malloc(sizeof(double) * (size_t)n), worst = 0;
    int i, c;
    for (c = 0; c < columns; c++) {
        double big = 0, rr = 0, bb = 0;
        CHECK(fsi_csr_multiply(NULL, a, x + c * n, y) == FSI_OK);
        for (i = 0; i < n; i++) big = fmax(big, fabs(b[c * n + i]));
        if (!(big > 0)) continue;
        for (i = 0; i < n; i++)
            rr += (b[c * n + i] - y[i]) / big * ((b[c * n + i] - y[i]) / big),
                bb += b[c * n + i] / big * (b[c * n + i] / big);
        worst = fmax(worst, sqrt(rr / bb));
        if (!(rr >= 0)) worst = test_nan();
    }
    free(y);
    return worst;
}

static void test_products_of_columns_are_sums_of_rows(void)
{
    int b, c, i, j;
    for (b = 1; b <= 5; b++) for (c = 1; c <= 16; c += 5) {
        const int n = 7 * b;
        double d[35 * 35], x[35 * 16], y[35 * 16], alone[35];
        fsi_operator o;
        matrix m;
        fill_random(d, n * n, (uint64_t)b);
        fill_random(x, n * c, 7);
        m = matrix_from(d, 7, b);
        o = fsi_csr_operator(&m.a);
        CHECK(o.n == n && o.apply(o.user, NULL, x, y, c) == FSI_OK);
        for (j = 0; j < c; j++) {
            CHECK(fsi_csr_multiply(NULL, &m.a, x + j * n, alone) == FSI_OK &&
                  memcmp(alone, y + j * n, sizeof(double) * (size_t)n) == 0);
            for (i = 0; i < n; i++) {
                long double sum = 0;
                int k;
                for (k = 0; k < n; k++) sum += (long double)d[i * n + k] * (long double)x[j * n + k];
                CHECK_NEAR(y[j * n + i], sum, 1e-14);
            }
        }
        matrix_free(&m);
    }
}

/* Definite for both methods, indefinite for MINRES; blocks of numbers, several columns, with and without M = diag A. */
static void test_solutions_match_dense_elimination(void)
{
    int round, i, j;
    for (round = 0; round < 48; round++) {
        const int b = 1 + round % 4, rows = 1 + round * 7 % 15, n = b * rows, columns = 1 + round % 5,
                  indefinite = round % 3 == 2;
        double d[60 * 60], eigenvalue[60], diagonal[60], rhs[60 * 5], x[60 * 5], want[60];
        fsi_krylov_stats stats;
        fsi_operator jacobi;
        scaling s;
        matrix m;
        for (i = 0; i < n; i++) eigenvalue[i] = (indefinite && i % 3 == 0 ? -1 : 1) * (1 + i);
        dense_with_eigenvalues(d, eigenvalue, n, (uint64_t)round);
        for (i = 0; i < n; i++) diagonal[i] = indefinite ? 1 + i % 4 : d[i * (n + 1)];
        jacobi = scaling_operator(&s, diagonal, n);
        m = matrix_from(d, rows, b);
        fill_random(rhs, n * columns, (uint64_t)round);
        for (j = indefinite; j < 2; j++) {
            fill_random(x, n * columns, 99); /* a bad guess */
            CHECK(solve(NULL, (fsi_krylov_method)j, &m.a, round % 2 ? &jacobi : NULL, columns, 1000, 1e-12, rhs, x,
                        &stats) == FSI_OK);
            CHECK(residual_of(&m.a, rhs, x, columns) <= 1.1e-12 && stats.residual <= 1e-12 && stats.applied_a > 0 &&
                  (stats.applied_m > 0) == (round % 2));
            for (i = 0; i < n * columns; i++) {
                if (i % n == 0) dense_solve(d, rhs + i, want, n);
                CHECK_NEAR(x[i], want[i % n], 1e-11);
            }
        }
        matrix_free(&m);
    }
}

/* In exact arithmetic as many iterations as there are distinct eigenvalues. */
static void test_few_distinct_eigenvalues_take_few_iterations(void)
{
    double d[80 * 80], eigenvalue[80], b[80 * 4], x[80 * 4];
    int kinds, i, method;
    for (kinds = 1; kinds <= 5; kinds++) for (method = 0; method < 2; method++) {
        fsi_krylov_stats stats;
        matrix m;
        for (i = 0; i < 80; i++) eigenvalue[i] = (method && i % kinds == 1 ? -1 : 1) * (1 + 3 * (i % kinds));
        dense_with_eigenvalues(d, eigenvalue, 80, 3);
        m = matrix_from(d, 80, 1);
        fill_random(b, 80 * 4, 4);
        memset(x, 0, sizeof x);
        CHECK(solve(NULL, (fsi_krylov_method)method, &m.a, NULL, 1, 100, 1e-10, b, x, &stats) == FSI_OK);
        CHECK(stats.iters == kinds && stats.applied_a == kinds + 1 && residual_of(&m.a, b, x, 1) <= 1e-10);
        memset(x, 0, sizeof x);
        CHECK(solve(NULL, (fsi_krylov_method)method, &m.a, NULL, 4, 100, 1e-10, b, x, &stats) == FSI_OK);
        CHECK(stats.iters == (method ? 4 * kinds : kinds));
        matrix_free(&m);
    }
}

/* |x - x_i|_A <= 2 ((sqrt(kappa) - 1) / (sqrt(kappa) + 1))^i |x - x_0|_A. */
static void test_cg_error_keeps_below_the_bound_of_kappa(void)
{
    double d[100 * 100], eigenvalue[100], b[100], x[100], want[100], start = 0, bound = 2;
    const double rate = (sqrt(200.0) - 1) / (sqrt(200.0) + 1);
    matrix m;
    int i, j, iters, tight = 0;
    for (i = 0; i < 100; i++) eigenvalue[i] = 1 + 199 * i / 99.0;
    dense_with_eigenvalues(d, eigenvalue, 100, 8);
    m = matrix_from(d, 100, 1);
    fill_random(b, 100, 5);
    dense_solve(d, b, want, 100);
    for (i = 0; i < 100; i++) start += want[i] * b[i];
    for (iters = 1; iters <= 60; iters++) {
        double error = 0;
        fsi_krylov_stats stats;
        memset(x, 0, sizeof x);
        CHECK(solve(NULL, FSI_KRYLOV_CG, &m.a, NULL, 1, iters, 1e-14, b, x, &stats) == FSI_ERROR_CONVERGENCE &&
              stats.iters == iters);
        for (i = 0; i < 100; i++)
            for (j = 0; j < 100; j++) error += (want[i] - x[i]) * d[i * 100 + j] * (want[j] - x[j]);
        bound *= rate;
        CHECK(sqrt(error / start) <= bound);
        tight += sqrt(error / start) >= 0.02 * bound;
    }
    CHECK(tight > 20);
    matrix_free(&m);
}

static void test_minres_residual_never_grows(void)
{
    double d[60 * 60], eigenvalue[60], b[60], x[60], last = 1;
    matrix m;
    int i, iters;
    for (i = 0; i < 60; i++) eigenvalue[i] = i - 29.7;
    dense_with_eigenvalues(d, eigenvalue, 60, 8);
    m = matrix_from(d, 60, 1);
    fill_random(b, 60, 5);
    for (iters = 1; iters <= 200 && last > 1e-9; iters++) {
        fsi_krylov_stats stats;
        memset(x, 0, sizeof x);
        CHECK(solve(NULL, FSI_KRYLOV_MINRES, &m.a, NULL, 1, iters, 1e-10, b, x, &stats) ==
              (stats.residual <= 1e-10 ? FSI_OK : FSI_ERROR_CONVERGENCE));
        CHECK(stats.residual <= last * (1 + 1e-12));
        CHECK_NEAR(stats.residual, residual_of(&m.a, b, x, 1), 1e-12);
        last = stats.residual;
    }
    CHECK(last <= 1e-9);
    matrix_free(&m);
}

/* [H B^T; B 0] preconditioned by diag(H, B H^-1 B^T): three distinct eigenvalues (Murphy, Golub and Wathen 2000). H is
   diagonal here, and B has orthogonal rows in H^-1, so that the Schur complement is diagonal as well. With a rough M it
   takes longer, but arrives. */
static void test_minres_solves_saddle_points_in_three_iterations(void)
{
    const int nh = 60, nb = 20, n = nh + nb;
    double d[80 * 80] = { 0 }, diagonal[80], b[80], x[80] = { 0 }, want[80];
    fsi_krylov_stats stats;
    fsi_operator o;
    scaling s;
    matrix m;
    int i, j;
    uint64_t random = 5;
    for (i = 0; i < nh; i++) diagonal[i] = d[i * (n + 1)] = 1 + 50 * test_random(&random);
    for (i = 0; i < nb; i++) {
        diagonal[nh + i] = 0;
        for (j = 3 * i; j < 3 * i + 3; j++) {
            d[(nh + i) * n + j] = d[j * n + nh + i] = 1 + test_random(&random);
            diagonal[nh + i] += d[j * n + nh + i] * d[j * n + nh + i] / diagonal[j];
        }
    }
    m = matrix_from(d, n, 1);
    fill_random(b, n, 5);
    dense_solve(d, b, want, n);
    o = scaling_operator(&s, diagonal, n);
    CHECK(solve(NULL, FSI_KRYLOV_MINRES, &m.a, &o, 1, 100, 1e-11, b, x, &stats) == FSI_OK && stats.iters == 3);
    for (i = 0; i < n; i++) CHECK_NEAR(x[i], want[i], 1e-9);
    for (i = 0; i < n; i++) diagonal[i] *= 1 + 0.5 * test_random(&random), x[i] = 0;
    CHECK(solve(NULL, FSI_KRYLOV_MINRES, &m.a, &o, 1, 100, 1e-11, b, x, &stats) == FSI_OK && stats.iters > 3 &&
          stats.iters <= 80);
    for (i = 0; i < n; i++) CHECK_NEAR(x[i], want[i], 1e-9);
    matrix_free(&m);
}

/* ---- several right sides -------------------------------------------------------------------------------------- */

enum { GRID = 40, CELLS = GRID * GRID };

/* Fewer iterations than any column alone, with and without M, and the same solutions. */
static void test_columns_together_take_fewer_iterations(void)
{
    static const int columns[3] = { 3, 8, 16 };
    matrix m = matrix_grid(GRID, GRID, 1, 1e-3, 1);
    double *b = (double *)malloc(sizeof(double) * CELLS * 16), *x = (double *)malloc(sizeof(double) * CELLS * 16),
           *alone = (double *)malloc(sizeof(double) * CELLS), *diagonal = (double *)malloc(sizeof(double) * CELLS);
    fsi_operator o;
    scaling s;
    int k, c, i, rough;
    fill_random(b, CELLS * 16, 1);
    for (rough = 0; rough < 2; rough++) {
        for (i = 0; i < CELLS; i++) diagonal[i] = 4 + (i * 7) % 5;
        o = scaling_operator(&s, diagonal, CELLS);
        for (k = 0; k < 3; k++) {
            fsi_krylov_stats together, one;
            int most = 0, spent = 0;
            memset(x, 0, sizeof(double) * CELLS * 16);
            CHECK(solve(NULL, FSI_KRYLOV_CG, &m.a, rough ? &o : NULL, columns[k], 1000, 1e-8, b, x, &together) ==
                  FSI_OK);
            CHECK(residual_of(&m.a, b, x, columns[k]) <= 1e-8);
            for (c = 0; c < columns[k]; c++) {
                memset(alone, 0, sizeof(double) * CELLS);
                CHECK(solve(NULL, FSI_KRYLOV_CG, &m.a, rough ? &o : NULL, 1, 1000, 1e-8, b + c * CELLS, alone, &one) ==
                      FSI_OK);
                if (one.iters > most) most = one.iters;
                spent += one.applied_a;
                for (i = 0; i < CELLS; i++) CHECK_NEAR(x[c * CELLS + i], alone[i], 1e-5);
            }
            if (getenv("KRYLOV_SHOW"))
                printf("   %2d columns: %d iterations, %d products; alone %d and %d\n", columns[k], together.iters,
                       together.applied_a, most, spent);
            CHECK(together.iters <= (columns[k] == 3 ? 0.85 : 0.65) * most && together.iters > 5);
            CHECK(together.applied_a == (together.iters + 1) * columns[k]);
        }
    }
    matrix_free(&m);
    free(b);
    free(x);
    free(alone);
    free(diagonal);
}

/* Right sides that are equal, zero, sums of others, almost sums, of other size, or solved already: no column stands in
   the way of others. */
static void test_dependent_right_sides_are_solved(void)
{
    enum { COLUMNS = 9 };
    matrix m = matrix_grid(GRID, GRID, 1, 1e-3, 1);
    double *b = (double *)malloc(sizeof(double) * CELLS * COLUMNS),
           *x = (double *)calloc(CELLS * COLUMNS, sizeof(double)), *guess = (double *)malloc(sizeof(double) * CELLS),
           *diagonal = (double *)malloc(sizeof(double) * CELLS);
    double slip;
    fsi_krylov_stats stats, one;
    fsi_operator o;
    scaling s;
    int i, c;
    for (i = 0; i < CELLS; i++) diagonal[i] = 4 + (i * 7) % 5;
    o = scaling_operator(&s, diagonal, CELLS);
    fill_random(guess, CELLS, 9);
    for (slip = 1e-1; slip > 1e-18; slip *= 0.1) for (c = 0; c < 2; c++) {
        fill_random(b, CELLS * COLUMNS, 1);
        for (i = 0; i < CELLS; i++) {
            b[CELLS + i] = b[i];                                   /* equal */
            b[2 * CELLS + i] = 0;
            b[3 * CELLS + i] = 2 * b[i] - 3e10 * b[4 * CELLS + i]; /* dependent */
            b[5 * CELLS + i] = b[6 * CELLS + i] + slip * b[5 * CELLS + i];
            b[7 * CELLS + i] *= 1e-100;
        }
        memset(x, 0, sizeof(double) * CELLS * COLUMNS);
        CHECK(fsi_csr_multiply(NULL, &m.a, guess, b + 8 * CELLS) == FSI_OK);
        memcpy(x + 8 * CELLS, guess, sizeof(double) * CELLS);      /* solved */
        for (i = 0; i < CELLS; i++) x[2 * CELLS + i] = 5;          /* a guess that b = 0 does not need */
        CHECK(solve(NULL, FSI_KRYLOV_CG, &m.a, c ? &o : NULL, COLUMNS, 300, 1e-9, b, x, &stats) == FSI_OK);
        CHECK(residual_of(&m.a, b, x, COLUMNS) <= 1e-9);
        for (i = 0; i < CELLS; i++) if (!CHECK(!(fabs(x[2 * CELLS + i]) > 0))) break;
        for (i = 0; i < CELLS; i++) if (!CHECK_NEAR(x[i], x[CELLS + i], 1e-6)) break;
        if (getenv("KRYLOV_SHOW"))
            printf("   slip %g: %d iterations, %d products\n", slip, stats.iters, stats.applied_a);
        CHECK(stats.iters <= 180);
    }
    for (i = 0; i < CELLS * COLUMNS; i++) b[i] = b[i % CELLS], x[i] = 0; /* all equal: as one */
    CHECK(solve(NULL, FSI_KRYLOV_CG, &m.a, NULL, COLUMNS, 300, 1e-9, b, x, &stats) == FSI_OK);
    for (i = 0; i < CELLS; i++) x[i] = 0;
    CHECK(solve(NULL, FSI_KRYLOV_CG, &m.a, NULL, 1, 300, 1e-9, b, x, &one) == FSI_OK &&
          abs(one.iters - stats.iters) <= 1);
    CHECK(stats.applied_a <= stats.iters + 2 * COLUMNS); /* the block shrank to one column */
    matrix_free(&m);
    free(b);
    free(x);
    free(guess);
    free(diagonal);
}

/* Small, ill-conditioned and clustered: what one column alone manages, the columns together manage. */
static void test_columns_together_never_fail_where_one_succeeds(void)
{
    double d[40 * 40], eigenvalue[40], b[40 * 16], x[40 * 16], diagonal[40];
    int round, i, alone_failed = 0;
    for (round = 0; round < 200; round++) {
        const int n = 2 + round % 39, columns = 2 + round % 15;
        uint64_t random = (uint64_t)round;
        fsi_krylov_stats stats;
        fsi_operator o;
        scaling s;
        matrix m;
        int c, alone = 1;
        for (i = 0; i < n; i++) {
            eigenvalue[i] = pow(10, -9 * test_random(&random));
            if (round % 3 == 0) eigenvalue[i] = pow(10, -2.0 * (i % 5));
            diagonal[i] = pow(10, (round % 4) * (test_random(&random) - 0.5));
        }
        dense_with_eigenvalues(d, eigenvalue, n, (uint64_t)round);
        m = matrix_from(d, n, 1);
        o = scaling_operator(&s, diagonal, n);
        fill_random(b, n * columns, (uint64_t)round);
        for (c = 0; c < columns && alone; c++) {
            memset(x, 0, sizeof x);
            alone = solve(NULL, FSI_KRYLOV_CG, &m.a, &o, 1, 1000, 1e-7, b + c * n, x, &stats) == FSI_OK;
        }
        memset(x, 0, sizeof x);
        alone_failed += !alone;
        if (alone)
            CHECK(solve(NULL, FSI_KRYLOV_CG, &m.a, &o, columns, 1000, 1e-7, b, x, &stats) == FSI_OK &&
                  residual_of(&m.a, b, x, columns) <= 1.01e-7);
        matrix_free(&m);
    }
    CHECK(alone_failed < 100);
}

/* ---- guesses, singular systems, scales -------------------------------------------------------------------------- */

static void test_a_right_guess_takes_no_iteration(void)
{
    matrix m = matrix_grid(9, 8, 7, 1, 0);
    const int n = m.a.rows;
    double b[504 * 2], x[504 * 2], want[504 * 2];
    fsi_krylov_stats stats;
    int method;
    fill_random(want, 2 * n, 3);
    CHECK(fsi_csr_multiply(NULL, &m.a, want, b) == FSI_OK && fsi_csr_multiply(NULL, &m.a, want + n, b + n) == FSI_OK);
    for (method = 0; method < 2; method++) {
        memcpy(x, want, sizeof x);
        CHECK(solve(NULL, (fsi_krylov_method)method, &m.a, NULL, 2, 100, 1e-12, b, x, &stats) == FSI_OK);
        CHECK(stats.iters == 0 && stats.applied_a == 2 && memcmp(x, want, sizeof x) == 0);
        x[5] += 1e-6; /* a good one takes few */
        CHECK(solve(NULL, (fsi_krylov_method)method, &m.a, NULL, 2, 100, 1e-9, b, x, &stats) == FSI_OK &&
              stats.iters > 0 && stats.iters < 12);
        memset(b, 0, sizeof b);
        CHECK(solve(NULL, (fsi_krylov_method)method, &m.a, NULL, 2, 100, 1e-9, b, x, &stats) == FSI_OK &&
              stats.iters == 0 && stats.applied_a == 0 && !(fabs(x[5]) > 0));
        CHECK(fsi_csr_multiply(NULL, &m.a, want, b) == FSI_OK &&
              fsi_csr_multiply(NULL, &m.a, want + n, b + n) == FSI_OK);
    }
    matrix_free(&m);
}

/* The constant is in the null space. b in the range is solved; if not, a status tells, x is no worse than the guess,
   and MINRES comes close to the least residual there is, the mean of b. */
static void test_singular_systems_are_solved_or_told(void)
{
    matrix m = matrix_grid(20, 10, 5, 0, 0);
    const int n = m.a.rows;
    double *b = (double *)malloc(sizeof(double) * (size_t)n * 3), *x = (double *)calloc((size_t)n * 3, sizeof(double)),
           *diagonal = (double *)malloc(sizeof(double) * (size_t)n);
    fsi_krylov_stats stats;
    fsi_operator o;
    scaling s;
    int method, i, c, with_m;
    for (i = 0; i < n; i++) diagonal[i] = 6 + i % 3;
    o = scaling_operator(&s, diagonal, n);
    fill_random(b, n * 3, 3);
    for (c = 0; c < 3; c++) {
        double mean = 0;
        for (i = 0; i < n; i++) mean += b[c * n + i] / n;
        for (i = 0; i < n; i++) b[c * n + i] -= mean;
    }
    for (method = 0; method < 2; method++) for (c = 1; c <= 3; c += 2) for (with_m = 0; with_m < 2; with_m++) {
        memset(x, 0, sizeof(double) * (size_t)n * 3);
        CHECK(solve(NULL, (fsi_krylov_method)method, &m.a, with_m ? &o : NULL, c, 500, 1e-10, b, x, &stats) == FSI_OK);
        CHECK(residual_of(&m.a, b, x, c) <= 1e-10 && stats.iters < (method ? 110 * c : 110));
    }
    for (i = 0; i < n; i++) b[i] += 0.25; /* not in the range any more */
    for (method = 0; method < 2; method++) for (c = 1; c <= 3; c += 2) for (with_m = 0; with_m < 2; with_m++) {
        fsi_context context = fsi_default_context();
        fsi_status status;
        double least = 0;
        for (i = 0; i < n; i++) least += b[i] * b[i];
        least = sqrt(0.25 * 0.25 * n / least);
        memset(x, 0, sizeof(double) * (size_t)n * 3);
        status = solve(&context, (fsi_krylov_method)method, &m.a, with_m ? &o : NULL, c, 500, 1e-10, b, x, &stats);
        CHECK((status == FSI_ERROR_CONVERGENCE || (status == FSI_ERROR_SINGULAR && method == 0)) &&
              context.error.status == status);
        CHECK_NEAR(stats.residual, residual_of(&m.a, b, x, c), 1e-12);
        CHECK(stats.residual >= least * (1 - 1e-9) && stats.residual <= 1);
        if (method && !with_m) CHECK(stats.residual <= 1.1 * least);
        if (method && !with_m && c == 1) CHECK(stats.iters < 200); /* it saw so */
        if (getenv("KRYLOV_SHOW"))
            printf("   method %d columns %d M %d: %s %d its residual %g least %g\n", method, c, with_m,
                   fsi_status_text(status), stats.iters, stats.residual, least);
        CHECK(stats.iters < 400);
        if (c == 3) CHECK(residual_of(&m.a, b + n, x + n, 2) <= 1e-10 || status == FSI_ERROR_SINGULAR);
    }
    for (i = 0; i < n; i++) b[i] = 1; /* all of b is outside */
    for (method = 0; method < 2; method++) {
        memset(x, 0, sizeof(double) * (size_t)n);
        CHECK(solve(NULL, (fsi_krylov_method)method, &m.a, NULL, 1, 500, 1e-10, b, x, &stats) ==
                  FSI_ERROR_CONVERGENCE &&
              stats.iters < 3);
        for (i = 0; i < n; i++) if (!CHECK(!(fabs(x[i]) > 0))) break;
    }
    matrix_free(&m);
    free(b);
    free(x);
    free(diagonal);
}

static void test_tiny_and_huge_numbers_are_solved(void)
{
    static const double scale_b[5] = { 1e-200, 1e200, 1, 1e-270, 1e250 }, scale_a[3] = { 1e-30, 1, 1e30 };
    int i, p, q, method, with_m;
    for (p = 0; p < 5; p++)
        for (q = 0; q < 3; q++)
            for (method = 0; method < 2; method++)
                for (with_m = 0; with_m < 2; with_m++) {
                    matrix m = matrix_grid(8, 8, 8, 0.1, 1);
                    double b[512 * 3], x[512 * 3] = {0}, diagonal[512];
                    fsi_krylov_stats stats;
                    fsi_operator o;
                    scaling s;
                    for (i = 0; i < m.start[512]; i++) m.value[i] *= scale_a[q];
                    for (i = 0; i < 512; i++) diagonal[i] = scale_a[q] * (6 + i % 3);
                    o = scaling_operator(&s, diagonal, 512);
                    fill_random(b, 512 * 3, 4);
                    for (i = 0; i < 512 * 3; i++) b[i] *= scale_b[p];
                    CHECK(solve(NULL, (fsi_krylov_method)method, &m.a, with_m ? &o : NULL, 3, 100, 1e-10, b, x,
                                &stats) == FSI_OK);
                    CHECK(residual_of(&m.a, b, x, 3) <= 1e-10 && stats.iters > 5);
                    matrix_free(&m);
                }
}

/* A solution that no double holds: told, and x stays finite. */
static void test_solutions_that_overflow_are_told(void)
{
    int method, columns, i;
    for (method = 0; method < 2; method++) for (columns = 1; columns < 4; columns += 2) {
        matrix m = matrix_grid(64, 1, 1, 0.1, 1);
        double b[192], x[192] = { 0 };
        fsi_krylov_stats stats;
        for (i = 0; i < m.start[64]; i++) m.value[i] *= 1e-200;
        fill_random(b, 192, 4);
        for (i = 0; i < 192; i++) b[i] *= 1e200;
        CHECK(solve(NULL, (fsi_krylov_method)method, &m.a, NULL, columns, 100, 1e-10, b, x, &stats) ==
              FSI_ERROR_CONVERGENCE);
        for (i = 0; i < 192; i++) CHECK(fsi_is_finite(x[i]));
        CHECK_NEAR(stats.residual, 1, 1e-12);
        matrix_free(&m);
    }
}

/* A tolerance below rounding is not reached: a status, the best there is, and no endless loop. */
static void test_out_of_reach_is_told(void)
{
    matrix m = matrix_grid(GRID, GRID, 1, 0, 1);
    double *b = (double *)malloc(sizeof(double) * CELLS * 2), *x = (double *)malloc(sizeof(double) * CELLS * 2);
    fsi_context context = fsi_default_context();
    fsi_krylov_stats stats;
    int method, columns;
    fill_random(b, CELLS * 2, 1);
    for (method = 0; method < 2; method++) for (columns = 1; columns <= 2; columns++) {
        memset(x, 0, sizeof(double) * CELLS * 2);
        CHECK(solve(&context, (fsi_krylov_method)method, &m.a, NULL, columns, 5000, 1e-17, b, x, &stats) ==
              FSI_ERROR_CONVERGENCE);
        CHECK(stats.residual < 1e-13 && stats.iters < 2000 * columns && strstr(context.error.message, "1e-17") != NULL);
        CHECK_NEAR(residual_of(&m.a, b, x, columns), stats.residual, 1e-15);
        memset(x, 0, sizeof(double) * CELLS * 2);
        CHECK(solve(&context, (fsi_krylov_method)method, &m.a, NULL, columns, 7, 1e-6, b, x, &stats) ==
              FSI_ERROR_CONVERGENCE);
        CHECK(stats.iters == (method ? 7 * columns : 7) && stats.residual <= 1);
        CHECK_NEAR(residual_of(&m.a, b, x, columns), stats.residual, 1e-12);
        CHECK(solve(&context, (fsi_krylov_method)method, &m.a, NULL, columns, 0, 1e-6, b, x, &stats) ==
                  FSI_ERROR_CONVERGENCE &&
              stats.iters == 0);
    }
    matrix_free(&m);
    free(b);
    free(x);
}

/* An indefinite A for CG, an indefinite M for both: the iteration is named, x is no worse than the guess. */
static void test_what_is_not_definite_is_named(void)
{
    double d[50 * 50], eigenvalue[50], diagonal[50], b[50 * 3], x[50 * 3];
    fsi_context context = fsi_default_context();
    fsi_krylov_stats stats;
    fsi_operator o;
    scaling s;
    matrix m;
    int i, columns, method;
    for (i = 0; i < 50; i++) eigenvalue[i] = i == 20 ? -3 : 1 + i;
    dense_with_eigenvalues(d, eigenvalue, 50, 8);
    m = matrix_from(d, 50, 1);
    fill_random(b, 150, 6);
    for (columns = 1; columns <= 3; columns += 2) {
        memset(x, 0, sizeof x);
        CHECK(solve(&context, FSI_KRYLOV_CG, &m.a, NULL, columns, 200, 1e-8, b, x, &stats) == FSI_ERROR_SINGULAR);
        CHECK(context.error.value < 0 && context.error.element >= 0 &&
              strstr(context.error.message, "A is not positive definite") != NULL);
        CHECK(stats.residual <= 1 && fabs(residual_of(&m.a, b, x, columns) - stats.residual) <= 1e-12);
    }
    matrix_free(&m);
    m = matrix_grid(50, 1, 1, 1, 1);
    for (method = 0; method < 2; method++) for (columns = 1; columns <= 3; columns += 2) {
        for (i = 0; i < 50; i++) diagonal[i] = i % 2 ? 1 : -1;
        o = scaling_operator(&s, diagonal, 50);
        memset(x, 0, sizeof x);
        CHECK(solve(&context, (fsi_krylov_method)method, &m.a, &o, columns, 200, 1e-8, b, x, &stats) ==
              FSI_ERROR_SINGULAR);
        CHECK(strstr(context.error.message, "M is not positive definite") != NULL && stats.residual <= 1);
    }
    matrix_free(&m);
}

/* ---- promises ------------------------------------------------------------------------------------------------- */

/* A or M fail, or write a NaN, in each of their calls in turn: the status comes out, x stays as it was. */
static void test_operators_that_fail_leave_x_alone(void)
{
    matrix m = matrix_grid(12, 10, 1, 0.1, 1), unit = matrix_make(120, 1, 120);
    double b[360], x[360], before[360];
    int i, method, columns, of_m, nan;
    for (i = 0; i < 120; i++) unit.start[i + 1] = i + 1, unit.col[i] = i, unit.value[i] = 1;
    fill_random(b, 360, 3);
    fill_random(before, 360, 4);
    for (method = 0; method < 2; method++)
        for (columns = 1; columns <= 3; columns += 2)
            for (of_m = 0; of_m < 2; of_m++)
                for (nan = 0; nan < 2; nan++) {
                    fsi_status status = FSI_ERROR_IO;
                    int when;
                    for (when = 1; status != FSI_OK && when < 500; when++) {
                        fsi_context c = fsi_default_context();
                        fsi_krylov *k = krylov_of(&c, (fsi_krylov_method)method, 120, columns, 200, 1e-8);
                        trouble t[2];
                        fsi_operator o[2];
                        for (i = 0; i < 2; i++) {
                            t[i].a = i ? &unit.a : &m.a;
                            t[i].calls = 0;
                            t[i].when = i == of_m ? when : 0;
                            t[i].status = nan ? FSI_OK : FSI_ERROR_IO;
                            o[i].n = 120;
                            o[i].apply = trouble_apply;
                            o[i].user = &t[i];
                        }
                        memcpy(x, before, sizeof x);
                        status = fsi_krylov_solve(k, &o[0], &o[1], b, x);
                        if (status == FSI_OK) CHECK(t[of_m].calls < when && residual_of(&m.a, b, x, columns) <= 1e-8);
                        else {
                            CHECK(status == (nan ? FSI_ERROR_NAN : FSI_ERROR_IO) && c.error.status == status &&
                                  strstr(c.error.message, nan ? "iteration" : "failed") != NULL);
                            CHECK(memcmp(x, before, sizeof x) == 0);
                        }
                        fsi_krylov_destroy(k);
                    }
                    CHECK(status == FSI_OK && when > 20);
                }
    matrix_free(&m);
    matrix_free(&unit);
}

static uint64_t solution_hash(fsi_context *c, fsi_krylov_method method, int columns, const fsi_csr *a, const double *b,
                              double *x)
{
    const size_t size = sizeof(double) * (size_t)a->rows * (size_t)columns;
    memset(x, 0, size);
    CHECK(solve(c, method, a, NULL, columns, 400, 1e-6, b, x, NULL) == FSI_OK);
    return fsi_hash(x, size, 0);
}

static void test_any_number_of_threads_gives_the_same_bits(void)
{
    static const int threads[3] = { 1, 2, 5 };
    matrix m = matrix_grid(24, 22, 20, 0.05, 1);
    double *b = (double *)malloc(sizeof(double) * (size_t)m.a.rows * 5),
           *x = (double *)malloc(sizeof(double) * (size_t)m.a.rows * 5);
    int k, kind;
    fill_random(b, m.a.rows * 5, 6);
    for (kind = 0; kind < 3; kind++) {
        const uint64_t serial =
            solution_hash(NULL, kind == 2 ? FSI_KRYLOV_MINRES : FSI_KRYLOV_CG, kind == 1 ? 5 : 1, &m.a, b, x);
        for (k = TEST_SLOWED ? 4 : 0; k < 6; k++) {
            fsi_context c = fsi_default_context();
            test_threads(&c, threads[k % 3], k >= 3);
            CHECK(solution_hash(&c, kind == 2 ? FSI_KRYLOV_MINRES : FSI_KRYLOV_CG, kind == 1 ? 5 : 1, &m.a, b, x) ==
                  serial);
        }
    }
    matrix_free(&m);
    free(b);
    free(x);
}

static void test_every_allocation_may_fail(void)
{
    matrix m = matrix_grid(10, 10, 1, 0.1, 1);
    const fsi_operator o = fsi_csr_operator(&m.a);
    double b[400], x[400] = { 0 };
    long k;
    int method;
    fill_random(b, 400, 3);
    for (method = 0; method < 2; method++) {
        fsi_status status = FSI_ERROR_MEMORY;
        for (k = 1; status == FSI_ERROR_MEMORY && k < 50; k++) {
            fsi_context c = fsi_default_context();
            fsi_krylov_desc d = fsi_krylov_default_desc();
            fsi_krylov *s = NULL;
            d.context = &c;
            d.method = (fsi_krylov_method)method;
            d.rows = 100;
            d.columns = 4;
            test_fail_allocator(&c, k);
            status = fsi_krylov_create(&s, &d);
            CHECK((status == FSI_OK) == (s != NULL) && (status == FSI_OK || c.error.status == FSI_ERROR_MEMORY));
            if (status == FSI_OK) {
                const long before = test_alloc_count();
                CHECK(s->bytes >= test_live_bytes() && s->bytes <= test_live_bytes() + 64);
                CHECK(fsi_krylov_solve(s, &o, NULL, b, x) == FSI_OK && test_alloc_count() == before);
            }
            fsi_krylov_destroy(s);
            CHECK(test_live_bytes() == 0);
        }
        CHECK(status == FSI_OK && k > 2);
    }
    matrix_free(&m);
}

static void refuse_create(const fsi_krylov_desc *d, fsi_context *c, const char *what, fsi_status status)
{
    fsi_krylov *k = (fsi_krylov *)c;
    CHECK(fsi_krylov_create(&k, d) == status && k == NULL);
    CHECK(what == NULL || strstr(c->error.message, what) != NULL);
}

static void refuse_solve(fsi_krylov *k, const fsi_operator *a, const fsi_operator *m, const double *b, double *x,
                         fsi_status status, const char *what)
{
    CHECK(fsi_krylov_solve(k, a, m, b, x) == status && strstr(k->context->error.message, what) != NULL);
}

static void test_bad_input_is_named(void)
{
    fsi_context c = fsi_default_context();
    fsi_krylov_desc d = fsi_krylov_default_desc(), e;
    matrix m = matrix_grid(4, 4, 1, 1, 1);
    fsi_operator a = fsi_csr_operator(&m.a), o = a;
    fsi_csr bad = m.a;
    double b[32] = { 1 }, x[32] = { 0 };
    fsi_krylov *k = NULL;
    d.context = &c;
    d.rows = 16;
    d.columns = 2;
    e = d, e.cookie++, refuse_create(&e, &c, NULL, FSI_ERROR_COOKIE);
    refuse_create(NULL, &c, NULL, FSI_ERROR_COOKIE);
    e = d, memset(&e.method, 2, sizeof e.method), refuse_create(&e, &c, "method", FSI_ERROR_ARGUMENT);
    e = d, e.rows = -1, refuse_create(&e, &c, "rows", FSI_ERROR_ARGUMENT);
    e = d, e.columns = 0, refuse_create(&e, &c, "columns", FSI_ERROR_ARGUMENT);
    e = d, e.columns = 17, refuse_create(&e, &c, "columns", FSI_ERROR_ARGUMENT);
    e = d, e.max_iters = -1, refuse_create(&e, &c, "max_iters", FSI_ERROR_ARGUMENT);
    e = d, e.tolerance = test_nan(), refuse_create(&e, &c, "tolerance", FSI_ERROR_NAN);
    e = d, e.tolerance = -1, refuse_create(&e, &c, "tolerance", FSI_ERROR_ARGUMENT);
    e = d, e.tolerance = 2, refuse_create(&e, &c, "tolerance", FSI_ERROR_ARGUMENT);
    CHECK(fsi_krylov_create(NULL, &d) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_krylov_create(&k, &d) == FSI_OK);
    CHECK(fsi_krylov_solve(NULL, &a, NULL, b, x) == FSI_ERROR_COOKIE);
    refuse_solve(k, NULL, NULL, b, x, FSI_ERROR_ARGUMENT, "A or its apply");
    o.apply = NULL, refuse_solve(k, &o, NULL, b, x, FSI_ERROR_ARGUMENT, "A or its apply"),
    refuse_solve(k, &a, &o, b, x, FSI_ERROR_ARGUMENT, "M or its apply");
    o = a, o.n = 15, refuse_solve(k, &o, NULL, b, x, FSI_ERROR_ARGUMENT, "A has 15"),
    refuse_solve(k, &a, &o, b, x, FSI_ERROR_ARGUMENT, "M has 15");
    refuse_solve(k, &a, NULL, NULL, x, FSI_ERROR_ARGUMENT, "NULL"),
        refuse_solve(k, &a, NULL, b, NULL, FSI_ERROR_ARGUMENT, "NULL");
    b[20] = test_inf(), refuse_solve(k, &a, NULL, b, x, FSI_ERROR_NAN, "b[20]"), b[20] = 0;
    x[17] = test_nan(), refuse_solve(k, &a, NULL, b, x, FSI_ERROR_NAN, "x[17]"), x[17] = 0;
    k->desc.tolerance = test_nan(), refuse_solve(k, &a, NULL, b, x, FSI_ERROR_NAN, "desc.tolerance"),
    k->desc.tolerance = 1e-8;
    CHECK(fsi_csr_operator(NULL).n == -1);
    bad.cols = 17, CHECK(fsi_csr_operator(&bad).n == -1);
    bad = m.a, m.col[2] = 99, CHECK(fsi_csr_operator(&bad).n == -1);
    o = fsi_csr_operator(&bad), refuse_solve(k, &o, NULL, b, x, FSI_ERROR_ARGUMENT, "A has -1"), m.col[2] = 4;
    CHECK(fsi_krylov_solve(k, &a, NULL, b, x) == FSI_OK);
    fsi_krylov_destroy(k);
    fsi_krylov_destroy(NULL);
    matrix_free(&m);
}

static void test_an_empty_system_is_solved(void)
{
    matrix m = matrix_make(0, 1, 0);
    fsi_krylov_stats stats;
    int method, columns;
    for (method = 0; method < 2; method++) for (columns = 1; columns < 4; columns++)
            CHECK(solve(NULL, (fsi_krylov_method)method, &m.a, NULL, columns, 10, 1e-8, NULL, NULL, &stats) == FSI_OK &&
                  stats.iters == 0 && !(stats.residual > 0));
    matrix_free(&m);
}

/* No limit is no limit, for the second column too. */
static void test_any_number_of_iterations_may_be_allowed(void)
{
    const int start[3] = { 0, 1, 2 }, col[2] = { 0, 1 };
    double value[2] = { 2, 3 }, b[4] = { 1, 2, 3, 4 }, x[4];
    fsi_csr a;
    int method;
    a.rows = a.cols = 2;
    a.block = 1;
    a.start = start;
    a.col = col;
    a.value = value;
    for (method = 0; method < 2; method++) {
        fsi_krylov *k = krylov_of(NULL, (fsi_krylov_method)method, 2, 2, 2147483647, 1e-12);
        const fsi_operator o = fsi_csr_operator(&a);
        memset(x, 0, sizeof x);
        CHECK(fsi_krylov_solve(k, &o, NULL, b, x) == FSI_OK);
        CHECK_NEAR(x[0], 0.5, 1e-12);
        CHECK_NEAR(x[3], 4 / 3.0, 1e-11);
        fsi_krylov_destroy(k);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_products_of_columns_are_sums_of_rows);
    RUN(test_solutions_match_dense_elimination);
    RUN(test_few_distinct_eigenvalues_take_few_iterations);
    RUN(test_cg_error_keeps_below_the_bound_of_kappa);
    RUN(test_minres_residual_never_grows);
    RUN(test_minres_solves_saddle_points_in_three_iterations);
    RUN(test_columns_together_take_fewer_iterations);
    RUN(test_dependent_right_sides_are_solved);
    RUN(test_columns_together_never_fail_where_one_succeeds);
    RUN(test_a_right_guess_takes_no_iteration);
    RUN(test_singular_systems_are_solved_or_told);
    RUN(test_tiny_and_huge_numbers_are_solved);
    RUN(test_solutions_that_overflow_are_told);
    RUN(test_out_of_reach_is_told);
    RUN(test_what_is_not_definite_is_named);
    RUN(test_operators_that_fail_leave_x_alone);
    RUN(test_any_number_of_threads_gives_the_same_bits);
    RUN(test_every_allocation_may_fail);
    RUN(test_bad_input_is_named);
    RUN(test_an_empty_system_is_solved);
    RUN(test_any_number_of_iterations_may_be_allowed);
    return TEST_END();
}
