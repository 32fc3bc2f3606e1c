/* test_solve_precond.c - preconditioners against what theory says that they are, and their promises.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_krylov.h"
#include "kit/test_solve.h"

/* ---- matrices ------------------------------------------------------------------------------------------------- */

/* Where block (i, j) is; its column is sought in the row. */
static double *matrix_at(const matrix *m, int i, int j)
{
    int lo = m->start[i], hi = m->start[i + 1] - 1;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (m->col[mid] < j) lo = mid + 1;
        else hi = mid;
    }
    return m->value + (size_t)lo * (size_t)(m->a.block * m->a.block);
}

/* -div(k grad) by 5 or 7 points, zero outside: k is `jump` in the upper half, times `stretch` along x. */
static matrix matrix_poisson(int nx, int ny, int nz, double jump, double stretch)
{
    static const int step[7][3] = {{0, 0, -1}, {0, -1, 0}, {-1, 0, 0}, {0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    matrix m = matrix_make(nx * ny * nz, 1, 7 * nx * ny * nz);
    int x, y, z, d, e = 0;
    for (z = 0; z < nz; z++) for (y = 0; y < ny; y++) for (x = 0; x < nx; x++) {
        const int row = (z * ny + y) * nx + x;
        const double own = y >= ny / 2 ? jump : 1;
        int self = 0;
        for (d = 0; d < 7; d++) {
            const int i = x + step[d][0], j = y + step[d][1], k = z + step[d][2];
            const double other = j >= ny / 2 ? jump : 1,
                         flow = 2 * own * other / (own + other) * (i != x ? stretch : 1);
            if (nz == 1 && k != z) continue;
            if (d == 3) { self = e; m.col[e++] = row; continue; }
            if (i >= 0 && i < nx && j >= 0 && j < ny && k >= 0 && k < nz) {
                m.col[e] = (k * ny + j) * nx + i;
                m.value[e++] = -flow;
            }
        }
        for (d = 0; d < 7; d++) {
            const int i = x + step[d][0], j = y + step[d][1], k = z + step[d][2];
            const double other = j >= ny / 2 ? jump : 1;
            if (d != 3 && !(nz == 1 && k != z))
                m.value[self] += 2 * own * other / (own + other) * (i != x ? stretch : 1);
        }
        m.start[row + 1] = e;
    }
    return m;
}

/* Springs and hinges of an n x n sheet of squares cut to triangles; `block` numbers a vertex. pattern of all pairs
   within (+-2, +-2) that a spring or second difference joins. */
static const int sheet_pairs[][2] = {{-2, 0}, {-1, -1}, {-1, 0}, {-1, 1}, {0, -2}, {0, -1}, {0, 0},
                                     {0, 1},  {0, 2},   {1, -1}, {1, 0},  {1, 1},  {2, 0}};

static matrix sheet_pattern(int n, int block)
{
    matrix m = matrix_make(n * n, block, 13 * n * n);
    int x, y, k, e = 0;
    for (y = 0; y < n; y++) for (x = 0; x < n; x++) {
        for (k = 0; k < 13; k++) {
            const int i = x + sheet_pairs[k][1], j = y + sheet_pairs[k][0];
            if (i >= 0 && i < n && j >= 0 && j < n) m.col[e++] = j * n + i;
        }
        m.start[y * n + x + 1] = e;
    }
    return m;
}

/* Adds s v v^T over `count` vertices, v_k = weight[k] d for each of the directions d (a 3 x 3 projector). */
static void sheet_add(matrix *m, const int *vertex, const double *weight, int count, const double *projector, double s)
{
    int i, j, k;
    for (i = 0; i < count; i++) for (j = 0; j < count; j++) {
        double *v = matrix_at(m, vertex[i], vertex[j]);
        for (k = 0; k < m->a.block * m->a.block; k++) v[k] += s * weight[i] * weight[j] * projector[k];
    }
}

/* I + membrane springs + bend times squares of second differences, of vertices on a wavy sheet. Springs act along
   themselves. */
static void sheet_point(int x, int y, double *p)
{
    p[0] = x;
    p[1] = y;
    p[2] = 3 * sin(0.11 * x) * cos(0.07 * y);
}

static matrix matrix_sheet(int n, double membrane, double bend)
{
    static const int springs[4][2] = { { 1, 0 }, { 0, 1 }, { 1, 1 }, { -1, 1 } };
    static const double one[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, pull[2] = {1, -1}, curve[3] = {1, -2, 1}, alone[1] = {1};
    matrix m = sheet_pattern(n, 3);
    int x, y, k, i, j;
    for (y = 0; y < n; y++) for (x = 0; x < n; x++) {
        int v[3];
        v[0] = y * n + x;
        sheet_add(&m, v, alone, 1, one, 1);
        for (k = 0; k < 4; k++) {
            const int tx = x + springs[k][0], ty = y + springs[k][1];
            double p[3], q[3], outer[9], length = 0;
            if (tx < 0 || tx >= n || ty >= n) continue;
            sheet_point(x, y, p);
            sheet_point(tx, ty, q);
            for (i = 0; i < 3; i++) length += (q[i] - p[i]) * (q[i] - p[i]);
            for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) outer[i * 3 + j] = (q[i] - p[i]) * (q[j] - p[j]) / length;
            v[1] = ty * n + tx;
            sheet_add(&m, v, pull, 2, outer, membrane);
        }
        for (k = 0; k < 2; k++) {
            if (x + 2 * springs[k][0] >= n || y + 2 * springs[k][1] >= n) continue;
            v[1] = (y + springs[k][1]) * n + x + springs[k][0];
            v[2] = (y + 2 * springs[k][1]) * n + x + 2 * springs[k][0];
            sheet_add(&m, v, curve, 3, one, bend);
        }
    }
    return m;
}

/* Laplacian of a triangle mesh with random points (cotangents made positive), held at one corner's row by 1. */
static matrix matrix_mesh(int n, uint64_t random)
{
    matrix m = sheet_pattern(n, 1);
    double *p = (double *)malloc(sizeof(double) * 2 * (size_t)(n * n));
    int x, y, t, i;
    for (i = 0; i < n * n; i++) {
        p[2 * i] = i % n + 0.5 * (test_random(&random) - 0.5);
        p[2 * i + 1] = i / n + 0.5 * (test_random(&random) - 0.5);
    }
    for (y = 0; y + 1 < n; y++) for (x = 0; x + 1 < n; x++) for (t = 0; t < 2; t++) {
        int v[3];
        v[0] = y * n + x + (t ? n + 1 : 0);
        v[1] = t ? y * n + x + n : y * n + x + 1;
        v[2] = t ? y * n + x + 1 : y * n + x + n;
        for (i = 0; i < 3; i++) {
            const int a = v[i], b = v[(i + 1) % 3], c = v[(i + 2) % 3];
            const double ux = p[2 * b] - p[2 * a], uy = p[2 * b + 1] - p[2 * a + 1], wx = p[2 * c] - p[2 * a],
                         wy = p[2 * c + 1] - p[2 * a + 1];
            const double cotangent = 0.5 * (ux * wx + uy * wy) / fabs(ux * wy - uy * wx);
            *matrix_at(&m, b, b) += cotangent;
            *matrix_at(&m, c, c) += cotangent;
            *matrix_at(&m, b, c) -= cotangent;
            *matrix_at(&m, c, b) -= cotangent;
        }
    }
    *matrix_at(&m, 0, 0) += 1;
    free(p);
    return m;
}

static double dot(const double *x, const double *y, int n)
{
    double s[4] = { 0, 0, 0, 0 };
    int i;
    for (i = 0; i + 4 <= n; i += 4) {
        s[0] += x[i] * y[i];
        s[1] += x[i + 1] * y[i + 1];
        s[2] += x[i + 2] * y[i + 2];
        s[3] += x[i + 3] * y[i + 3];
    }
    for (; i < n; i++) s[0] += x[i] * y[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* y = A x, fast enough to compare iterations by. */
static void product(const fsi_csr *a, const double *x, double *y)
{
    int r, e;
    for (r = 0; r < a->rows; r++) {
        double s = 0, t = 0, u = 0;
        if (a->block == 1) for (e = a->start[r]; e < a->start[r + 1]; e++) s += a->value[e] * x[a->col[e]];
        else for (e = a->start[r]; e < a->start[r + 1]; e++) {
            const double *v = a->value + (size_t)e * 9, *z = x + 3 * a->col[e];
            s += v[0] * z[0] + v[1] * z[1] + v[2] * z[2];
            t += v[3] * z[0] + v[4] * z[1] + v[5] * z[2];
            u += v[6] * z[0] + v[7] * z[1] + v[8] * z[2];
        }
        y[a->block * r] = s;
        if (a->block == 3) { y[3 * r + 1] = t; y[3 * r + 2] = u; }
    }
}

/* Conjugate gradients from x; returns the iterations until |r| <= tolerance |b|, or most + 1. */
static int cg(fsi_context *c, const fsi_csr *a, fsi_precond *m, const double *b, double *x, double tolerance, int most)
{
    const int n = a->rows * a->block;
    fsi_operator o = fsi_precond_operator(m);
    double *r = (double *)malloc(sizeof(double) * (size_t)(4 * n + 4)), *z = r + n, *p = z + n, *q = p + n, rho,
           old = 1, norm = sqrt(dot(b, b, n));
    int i, k;
    product(a, x, r);
    for (i = 0; i < n; i++) r[i] = b[i] - r[i];
    for (k = 0; k <= most && !(sqrt(dot(r, r, n)) <= tolerance * norm); k++) {
        double alpha, beta;
        if (o.apply(o.user, c, r, z, 1) != FSI_OK) break;
        rho = dot(r, z, n);
        beta = k ? rho / old : 0;
        for (i = 0; i < n; i++) p[i] = z[i] + (k ? beta * p[i] : 0);
        product(a, p, q);
        alpha = rho / dot(p, q, n);
        for (i = 0; i < n; i++) { x[i] += alpha * p[i]; r[i] -= alpha * q[i]; }
        old = rho;
    }
    free(r);
    return k;
}

/* Symmetric with random blocks on a random pattern, and a diagonal that makes it definite. */
static matrix matrix_random(int n, int block, double share, uint64_t random)
{
    matrix m = matrix_make(n, block, n * n);
    unsigned char *there = (unsigned char *)calloc((size_t)(n * n), 1);
    int i, j, x, y, e = 0;
    for (i = 0; i < n; i++)
        for (j = 0; j <= i; j++) there[i * n + j] = there[j * n + i] = i == j || test_random(&random) < share;
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) if (there[i * n + j]) m.col[e++] = j;
        m.start[i + 1] = e;
    }
    for (i = 0; i < n; i++)
        for (j = 0; j <= i; j++)
            for (x = 0; x < block && there[i * n + j]; x++)
                for (y = 0; y < block; y++) {
                    const double v = test_random(&random) - 0.5;
                    if (i == j && y > x) continue;
                    matrix_at(&m, i, j)[x * block + y] = matrix_at(&m, j, i)[y * block + x] = v;
                }
    for (i = 0; i < n; i++) for (x = 0; x < block; x++) {
        double sum = 0.1;
        for (e = m.start[i]; e < m.start[i + 1]; e++)
            for (y = 0; y < block; y++) sum += fabs(m.value[(e * block + x) * block + y]);
        matrix_at(&m, i, i)[x * (block + 1)] = sum;
    }
    free(there);
    return m;
}

static matrix matrix_dense(const double *d, int n)
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

/* ---- applying --------------------------------------------------------------------------------------------------- */

static fsi_precond_desc desc_of(fsi_context *c, fsi_precond_kind kind)
{
    fsi_precond_desc d = fsi_precond_default_desc();
    d.context = c;
    d.kind = kind;
    return d;
}

static fsi_precond *precond_of(const fsi_csr *a, const fsi_precond_desc *d)
{
    fsi_precond *p = NULL;
    CHECK(fsi_precond_create(&p, a, d) == FSI_OK);
    CHECK(p && !p->factored && fsi_precond_factor(p, a) == FSI_OK && p->factored);
    return p;
}

static void apply(fsi_precond *p, const double *x, double *y, int columns)
{
    fsi_operator o = fsi_precond_operator(p);
    CHECK(o.n == p->rows * p->block);
    CHECK(o.apply(o.user, p->context, x, y, columns) == FSI_OK);
}

static double *randoms(int n, uint64_t random)
{
    double *x = (double *)malloc(sizeof(double) * (size_t)(n + 1));
    int i;
    for (i = 0; i < n; i++) x[i] = test_random(&random) - 0.5;
    return x;
}

static double largest(const double *x, int n)
{
    double most = 0;
    int i;
    for (i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* Iterations of conjugate gradients to 1e-8 from a random right side. */
static int iterations(const fsi_csr *a, const fsi_precond_desc *d)
{
    const int n = a->rows * a->block;
    fsi_precond *p = precond_of(a, d);
    double *b = randoms(n, 7), *x = (double *)calloc((size_t)n, sizeof(double));
    const int its = cg(d->context, a, p, b, x, 1e-8, 3000);
    fsi_precond_destroy(p);
    free(b);
    free(x);
    return its;
}

/* ---- what every kind must be ------------------------------------------------------------------------------------ */

static void check_operator(const fsi_csr *a, const fsi_precond_desc *d)
{
    const int n = a->rows * a->block;
    double *x = randoms(n, 1), *y = randoms(n, 2), *z = (double *)malloc(sizeof(double) * (size_t)n);
    double *px = (double *)malloc(sizeof(double) * (size_t)n), *py = (double *)malloc(sizeof(double) * (size_t)n),
           *pz = (double *)malloc(sizeof(double) * (size_t)n);
    fsi_precond *p = precond_of(a, d);
    double scale, off = 0;
    int i;
    for (i = 0; i < n; i++) z[i] = 2 * x[i] - 3 * y[i];
    apply(p, x, px, 1);
    apply(p, y, py, 1);
    apply(p, z, pz, 1);
    scale = sqrt(dot(x, px, n) * dot(y, py, n));
    CHECK(dot(x, px, n) > 0 && dot(y, py, n) > 0 && dot(z, pz, n) > 0);
    CHECK_NEAR((dot(x, py, n) - dot(y, px, n)) / scale, 0, 1e-12);
    for (i = 0; i < n; i++) off = fmax(off, fabs(pz[i] - 2 * px[i] + 3 * py[i]));
    CHECK_NEAR(off / largest(pz, n), 0, 1e-12);
    fsi_precond_destroy(p);
    free(x), free(y), free(z), free(px), free(py), free(pz);
}

static void test_every_kind_is_linear_symmetric_and_positive(void)
{
    int kind, k;
    for (k = 0; k < 7; k++) for (kind = 0; kind < 4; kind++) {
        fsi_precond_desc d = desc_of(NULL, (fsi_precond_kind)kind);
        matrix m = k == 0   ? matrix_poisson(40, 30, 1, 1, 1)
                   : k == 1 ? matrix_poisson(12, 11, 10, 1e4, 10)
                   : k == 2 ? matrix_sheet(20, 1e4, 10)
                   : k == 3 ? matrix_random(300, 2, 0.02, 5)
                   : k == 4 ? matrix_random(40, 16, 0.1, 6)
                   : k == 5 ? matrix_mesh(25, 3)
                            : matrix_random(30, 5, 0.3, 8);
        check_operator(&m.a, &d);
        d.modification = 0, check_operator(&m.a, &d);
        d.modification = 1, check_operator(&m.a, &d);
        matrix_free(&m);
    }
}

/* A times 4^k gives M^-1 times 4^-k, to the bit, small or large. */
static void test_scale_changes_nothing_else(void)
{
    int kind, k, i, e;
    for (kind = 0; kind < 4; kind++) for (k = -140; k <= 140; k += 280) {
        matrix m = matrix_sheet(20, 1e4, 10);
        const int n = 1200;
        fsi_precond_desc d = desc_of(NULL, (fsi_precond_kind)kind);
        fsi_precond *p = precond_of(&m.a, &d), *q;
        double *x = randoms(n, 4), *y = randoms(n, 4), *z = randoms(n, 4);
        apply(p, x, y, 1);
        for (e = 0; e < m.start[400] * 9; e++) m.value[e] = ldexp(m.value[e], 2 * k);
        q = precond_of(&m.a, &d);
        apply(q, x, z, 1);
        for (i = 0; i < n; i++) CHECK(ldexp(z[i], 2 * k) == y[i]);
        fsi_precond_destroy(p);
        fsi_precond_destroy(q);
        matrix_free(&m);
        free(x), free(y), free(z);
    }
}

static void test_columns_are_served_as_if_alone(void)
{
    int kind;
    matrix m = matrix_sheet(20, 1e4, 10);
    double *x = randoms(3600, 4), *y = randoms(3600, 5), *z = randoms(1200, 6);
    for (kind = 0; kind < 4; kind++) {
        fsi_precond_desc d = desc_of(NULL, (fsi_precond_kind)kind);
        fsi_precond *p = precond_of(&m.a, &d);
        int k;
        apply(p, x, y, 3);
        for (k = 0; k < 3; k++) {
            apply(p, x + 1200 * k, z, 1);
            CHECK(memcmp(z, y + 1200 * k, 1200 * sizeof(double)) == 0);
        }
        fsi_precond_destroy(p);
    }
    matrix_free(&m);
    free(x), free(y), free(z);
}

/* ---- what theory says exactly ----------------------------------------------------------------------------------- */

static void test_jacobi_divides_by_the_diagonal(void)
{
    matrix m = matrix_random(50, 3, 0.2, 9);
    fsi_precond_desc d = desc_of(NULL, FSI_PRECOND_JACOBI);
    fsi_precond *p = precond_of(&m.a, &d);
    double *x = randoms(150, 1), *y = randoms(150, 1);
    int i;
    apply(p, x, y, 1);
    for (i = 0; i < 150; i++) CHECK_NEAR(y[i] * matrix_at(&m, i / 3, i / 3)[i % 3 * 4], x[i], 1e-15);
    fsi_precond_destroy(p);
    matrix_free(&m);
    free(x), free(y);
}

/* M^-1 A x = x. */
static void check_exact(const fsi_csr *a, fsi_precond_kind kind, double tolerance)
{
    const int n = a->rows * a->block;
    fsi_precond_desc d = desc_of(NULL, kind);
    double *x = randoms(n, 1), *b = randoms(n, 1), *y = randoms(n, 1), off = 0;
    fsi_precond *p = precond_of(a, &d);
    int i;
    CHECK(fsi_csr_multiply(NULL, a, x, b) == FSI_OK);
    apply(p, b, y, 1);
    for (i = 0; i < n; i++) off = fmax(off, fabs(y[i] - x[i]));
    CHECK_NEAR(off, 0, tolerance);
    CHECK(p->stats.shift == 0);
    fsi_precond_destroy(p);
    free(x), free(b), free(y);
}

static void test_block_jacobi_is_exact_on_block_diagonals(void)
{
    int b;
    for (b = 1; b <= 16; b += 5) {
        matrix m = matrix_random(20, b, 0, (uint64_t)b);
        check_exact(&m.a, FSI_PRECOND_BLOCK_JACOBI, 1e-13);
        check_exact(&m.a, FSI_PRECOND_IC0, 1e-13);
        matrix_free(&m);
    }
}

/* A tree whose rows come before their parents' fills nothing in. */
static void test_incomplete_factors_of_trees_are_exact(void)
{
    uint64_t random = 3;
    int b, i, x;
    for (b = 1; b <= 4; b++) {
        const int n = 100;
        matrix m = matrix_random(n, b, 1, 1);
        double *d = (double *)calloc((size_t)(n * n), sizeof(double));
        int e = 0, j;
        for (i = 0; i < n - 1; i++) {
            const int parent = i + 1 + (int)(test_random(&random) * fmin(n - 1 - i, 5));
            d[i * n + parent] = d[parent * n + i] = 1;
        }
        for (i = 0; i < n; i++) d[i * n + i] = 1;
        for (i = 0; i < n; i++) { /* keep those of the full matrix that are of the tree */
            const int begin = i * n;
            for (j = 0; j < n; j++) if (d[i * n + j] != 0) {
                m.col[e] = j;
                for (x = 0; x < b * b; x++) m.value[e * b * b + x] = m.value[(begin + j) * b * b + x];
                e++;
            }
            m.start[i + 1] = e;
        }
        check_exact(&m.a, FSI_PRECOND_IC0, 1e-13);
        check_exact(&m.a, FSI_PRECOND_MIC0, 1e-13);
        matrix_free(&m);
        free(d);
    }
}

/* M = (M^-1)^-1 by elimination in long double with pivoting; n columns of M^-1 from the operator. */
static void dense_inverse(fsi_precond *p, int n, long double *m)
{
    double *unit = (double *)calloc((size_t)n, sizeof(double)), *y = (double *)calloc((size_t)n, sizeof(double));
    long double *w = (long double *)malloc(sizeof *w * (size_t)(n * n * 2));
    int i, j, k;
    for (j = 0; j < n; j++) {
        unit[j] = 1;
        apply(p, unit, y, 1);
        unit[j] = 0;
        for (i = 0; i < n; i++) w[i * 2 * n + j] = (long double)y[i], w[i * 2 * n + n + j] = i == j;
    }
    for (k = 0; k < n; k++) {
        int best = k;
        for (i = k + 1; i < n; i++) if (fabsl(w[i * 2 * n + k]) > fabsl(w[best * 2 * n + k])) best = i;
        for (j = 0; j < 2 * n; j++) {
            long double t = w[k * 2 * n + j];
            w[k * 2 * n + j] = w[best * 2 * n + j];
            w[best * 2 * n + j] = t;
        }
        for (i = 0; i < n; i++) {
            const long double f = i == k ? 0 : w[i * 2 * n + k] / w[k * 2 * n + k];
            for (j = k; j < 2 * n && i != k; j++) w[i * 2 * n + j] -= f * w[k * 2 * n + j];
        }
    }
    for (i = 0; i < n; i++) for (j = 0; j < n; j++) m[i * n + j] = w[i * 2 * n + n + j] / w[i * 2 * n + i];
    free(unit), free(y), free(w);
}

/* (L L^T)_ij = a_ij wherever A has an entry; elsewhere M has fill, and is not A. */
static void test_ic0_is_the_matrix_on_its_pattern(void)
{
    int k, i, j, x, y;
    for (k = 0; k < 5; k++) {
        matrix m = k == 0   ? matrix_poisson(8, 8, 1, 1, 1)
                   : k == 1 ? matrix_random(40, 1, 0.1, 2)
                   : k == 2 ? matrix_random(20, 3, 0.15, 3)
                   : k == 3 ? matrix_poisson(4, 4, 4, 50, 3)
                            : matrix_random(12, 6, 0.3, 4);
        const int b = m.a.block, n = m.a.rows * b;
        fsi_precond_desc d = desc_of(NULL, FSI_PRECOND_IC0);
        fsi_precond *p = precond_of(&m.a, &d);
        long double *full = (long double *)malloc(sizeof *full * (size_t)(n * n)), fill = 0;
        CHECK(p->stats.shift == 0);
        dense_inverse(p, n, full);
        for (i = 0; i < m.a.rows; i++) for (j = 0; j < m.a.rows; j++) {
            const double *v = matrix_at(&m, i, j);
            const int there = m.col[(v - m.value) / (b * b)] == j;
            for (x = 0; x < b; x++) for (y = 0; y < b; y++) {
                    if (there)
                        CHECK_NEAR(full[(i * b + x) * n + j * b + y], v[x * b + y],
                                   1e-11 * largest(m.value, m.start[m.a.rows] * b * b));
                    else fill = fmaxl(fill, fabsl(full[(i * b + x) * n + j * b + y]));
            }
        }
        CHECK(fill > 1e-3L);
        fsi_precond_destroy(p);
        matrix_free(&m);
        free(full);
    }
}

/* M 1 = A 1: constants are seen as A sees them, in each component of a block too where components do not mix. */
static void test_fully_modified_factors_keep_row_sums(void)
{
    int k, i, e, c;
    for (k = 0; k < 3; k++) {
        matrix s = k == 0   ? matrix_poisson(20, 17, 1, 1, 1)
                   : k == 1 ? matrix_poisson(9, 8, 7, 1e3, 5)
                            : matrix_poisson(15, 14, 1, 10, 1),
               m = s;
        fsi_precond_desc d = desc_of(NULL, FSI_PRECOND_MIC0);
        const int b = k == 2 ? 3 : 1, n = s.a.rows * b;
        double *one = randoms(n, 1), *sum = randoms(n, 2), *y = randoms(n, 3);
        fsi_precond *p;
        if (b == 3) { /* each number v becomes v times a fixed definite block */
            static const double block[9] = { 2, 0.5, -0.3, 0.5, 3, 0.7, -0.3, 0.7, 1 };
            m = matrix_make(s.a.rows, 3, s.start[s.a.rows]);
            memcpy(m.start, s.start, sizeof(int) * ((size_t)s.a.rows + 1));
            memcpy(m.col, s.col, sizeof(int) * (size_t)s.start[s.a.rows]);
            for (e = 0; e < s.start[s.a.rows] * 9; e++) m.value[e] = s.value[e / 9] * block[e % 9];
        }
        d.modification = 1;
        p = precond_of(&m.a, &d);
        CHECK(p->stats.shift == 0);
        for (c = 0; c < b; c++) {
            for (i = 0; i < n; i++) one[i] = i % b == c;
            CHECK(fsi_csr_multiply(NULL, &m.a, one, sum) == FSI_OK);
            apply(p, sum, y, 1);
            for (i = 0; i < n; i++) CHECK_NEAR(y[i], one[i], 1e-11);
        }
        fsi_precond_destroy(p);
        if (b == 3) matrix_free(&m);
        matrix_free(&s);
        free(one), free(sum), free(y);
    }
}

/* Without modification it is the unmodified factor, to the bit. */
static void test_unmodified_factors_are_ic0(void)
{
    matrix m = matrix_sheet(15, 100, 1);
    fsi_precond_desc d = desc_of(NULL, FSI_PRECOND_IC0), e = desc_of(NULL, FSI_PRECOND_MIC0);
    double *x = randoms(675, 1), *y = randoms(675, 2), *z = randoms(675, 3);
    fsi_precond *p, *q, *r;
    e.modification = 0;
    p = precond_of(&m.a, &d);
    q = precond_of(&m.a, &e);
    apply(p, x, y, 1);
    apply(q, x, z, 1);
    CHECK(memcmp(y, z, 675 * sizeof(double)) == 0);
    e.modification = 0.97;
    r = precond_of(&m.a, &e);
    apply(r, x, z, 1);
    CHECK(memcmp(y, z, 675 * sizeof(double)) != 0);
    fsi_precond_destroy(p);
    fsi_precond_destroy(q);
    fsi_precond_destroy(r);
    matrix_free(&m);
    free(x), free(y), free(z);
}

/* Kershaw's matrix (1978) is definite, yet its incomplete factor has the pivot -5. */
static void test_a_shift_mends_an_incomplete_factor_that_breaks_down(void)
{
    static const double kershaw[16] = { 3, -2, 0, 2, -2, 3, -2, 0, 0, -2, 3, -2, 2, 0, -2, 3 };
    matrix m = matrix_dense(kershaw, 4);
    fsi_precond_desc d = desc_of(NULL, FSI_PRECOND_IC0);
    fsi_precond *p = precond_of(&m.a, &d);
    CHECK(p->stats.shift >= 1e-3 && p->stats.shift < 1);
    CHECK(iterations(&m.a, &d) <= 5);
    check_operator(&m.a, &d);
    /* new values, no need of a shift */
    *matrix_at(&m, 0, 0) = *matrix_at(&m, 1, 1) = *matrix_at(&m, 2, 2) = *matrix_at(&m, 3, 3) = 10;
    CHECK(fsi_precond_factor(p, &m.a) == FSI_OK && p->stats.shift == 0);
    fsi_precond_destroy(p);
    matrix_free(&m);
}

/* ---- iterations ------------------------------------------------------------------------------------------------- */

/* Condition h^-2, h^-1: twice as fine a grid takes 2, 1.4 times the iterations. */
static void test_iterations_grow_as_theory_says(void)
{
    static const fsi_precond_kind kinds[2] = { FSI_PRECOND_IC0, FSI_PRECOND_MIC0 };
    static const double least[2] = { 1.6, 1.3 }, most[2] = { 2.2, 1.9 };
    int k, level, its[3], dim;
    for (dim = 2; dim <= 3; dim++) for (k = 0; k < 2; k++) {
        fsi_precond_desc d = desc_of(NULL, kinds[k]);
        for (level = 0; level < 3; level++) {
            const int n = (dim == 2 ? 40 : 10) << level;
            matrix m = matrix_poisson(n, n, dim == 2 ? 1 : n, 1, 1);
            its[level] = iterations(&m.a, &d);
            matrix_free(&m);
        }
        CHECK(its[1] <= most[k] * its[0] + 1 && its[2] <= most[k] * its[1] + 1);
        CHECK(its[2] >= (dim == 2 ? least[k] : least[k] * 0.8) * its[1]);
    }
}

/* The kernel of A itself: x comes back up to a constant. */
static void test_a_singular_but_consistent_system_is_solved(void)
{
    matrix m = matrix_poisson(50, 40, 1, 1, 1);
    const int n = 2000;
    double *b = randoms(n, 3), *x = (double *)calloc((size_t)n, sizeof(double)), *y = randoms(n, 3), mean = 0;
    int i, e, kind;
    for (i = 0; i < n; i++) {
        double sum = 0;
        for (e = m.start[i]; e < m.start[i + 1]; e++) sum += m.col[e] == i ? 0 : m.value[e];
        *matrix_at(&m, i, i) = -sum;
        mean += b[i] / n;
    }
    for (i = 0; i < n; i++) b[i] -= mean;
    for (kind = FSI_PRECOND_IC0; kind <= FSI_PRECOND_MIC0; kind++) {
        fsi_precond_desc d = desc_of(NULL, (fsi_precond_kind)kind);
        fsi_precond *p = precond_of(&m.a, &d);
        memset(x, 0, sizeof(double) * (size_t)n);
        CHECK(cg(NULL, &m.a, p, b, x, 1e-8, 300) < 150);
        product(&m.a, x, y);
        for (i = 0; i < n; i++) CHECK_NEAR(y[i], b[i], 1e-6);
        fsi_precond_destroy(p);
    }
    matrix_free(&m);
    free(b), free(x), free(y);
}

/* ---- promises ------------------------------------------------------------------------------------------------- */

/* Factoring again: the same bits as at first, new values as well as a new one, no allocation. */
static void test_new_values_need_no_memory(void)
{
    int kind, i;
    for (kind = 0; kind < 4; kind++) {
        fsi_context c = fsi_default_context();
        fsi_precond_desc d = desc_of(&c, (fsi_precond_kind)kind);
        matrix m = matrix_sheet(30, 1e4, 10);
        const int n = 2700;
        double *x = randoms(n, 1), *y = randoms(n, 2), *z = randoms(n, 3);
        fsi_precond *p;
        long before;
        test_fail_allocator(&c, 0);
        p = precond_of(&m.a, &d);
        apply(p, x, y, 1);
        before = test_alloc_count();
        CHECK(fsi_precond_factor(p, &m.a) == FSI_OK);
        apply(p, x, z, 1);
        CHECK(memcmp(y, z, sizeof(double) * (size_t)n) == 0);
        for (i = 0; i < m.start[900] * 9; i++) m.value[i] *= 0.25;
        for (i = 0; i < n; i++) matrix_at(&m, i / 3, i / 3)[i % 3 * 4] += 1;
        CHECK(fsi_precond_factor(p, &m.a) == FSI_OK);
        memset(z, 0, sizeof(double) * (size_t)n);
        i = cg(&c, &m.a, p, x, z, 1e-8, 3000);
        CHECK(test_alloc_count() == before);
        CHECK(i <= iterations(&m.a, &d) + 2);
        CHECK(p->stats.bytes <= c.bytes && p->stats.bytes + 1000 > c.bytes);
        m.value[0] = test_nan();
        CHECK(fsi_precond_factor(p, &m.a) == FSI_ERROR_NAN && !p->factored); /* what was there is not M any more */
        fsi_precond_destroy(p);
        CHECK(test_live_bytes() == 0);
        matrix_free(&m);
        free(x), free(y), free(z);
    }
}

static uint64_t hash_of(fsi_context *c, const fsi_csr *a, fsi_precond_kind kind)
{
    const int n = a->rows * a->block;
    fsi_precond_desc d = desc_of(c, kind);
    double *x = randoms(3 * n, 1), *y = randoms(3 * n, 2);
    fsi_precond *p = precond_of(a, &d);
    uint64_t hash;
    apply(p, x, y, 3);
    hash = fsi_hash(y, sizeof(double) * 3 * (size_t)n, 0);
    fsi_precond_destroy(p);
    free(x), free(y);
    return hash;
}

static void test_any_number_of_threads_gives_the_same_bits(void)
{
    static const int threads[3] = { 1, 2, 5 };
    int kind, k, which;
    for (which = 0; which < 2; which++) for (kind = 0; kind < 4; kind++) {
        matrix m = which ? matrix_sheet(60, 1e4, 10) : matrix_poisson(100, 90, 1, 1, 1);
        const uint64_t serial = hash_of(NULL, &m.a, (fsi_precond_kind)kind);
        for (k = 0; k < 6; k++) {
            fsi_context c = fsi_default_context();
            test_threads(&c, threads[k % 3], k >= 3);
            CHECK(hash_of(&c, &m.a, (fsi_precond_kind)kind) == serial);
        }
        matrix_free(&m);
    }
}

static void test_every_allocation_may_fail(void)
{
    int kind;
    for (kind = 0; kind < 4; kind++) {
        matrix m = matrix_poisson(40, 30, 1, 1, 1);
        fsi_status status = FSI_ERROR_MEMORY;
        long k;
        for (k = 1; status == FSI_ERROR_MEMORY && k < 200; k++) {
            fsi_context c = fsi_default_context();
            fsi_precond_desc d = desc_of(&c, (fsi_precond_kind)kind);
            fsi_precond *p = (fsi_precond *)&c;
            size_t held;
            double x[1200] = { 0 }, y[1200];
            test_fail_allocator(&c, k);
            status = fsi_precond_create(&p, &m.a, &d);
            CHECK((status == FSI_OK) == (p != NULL));
            held = c.bytes;
            if (p) status = fsi_precond_factor(p, &m.a);
            CHECK(status == FSI_OK || (status == FSI_ERROR_MEMORY && c.error.status == FSI_ERROR_MEMORY));
            if (p && status != FSI_OK) {
                CHECK(c.bytes == held);
                fsi_operator o = fsi_precond_operator(p);
                CHECK(!p->factored && o.apply(o.user, &c, x, y, 1) == FSI_ERROR_ARGUMENT);
                test_fail_allocator(&c, 0); /* memory is there again: so is M */
                CHECK(fsi_precond_factor(p, &m.a) == FSI_OK);
                apply(p, x, y, 1);
            }
            fsi_precond_destroy(p);
            CHECK(test_live_bytes() == 0);
        }
        CHECK(status == FSI_OK && k > (kind == 4 ? 10 : 3));
        matrix_free(&m);
    }
}

static void refuse_factor(const fsi_csr *a, fsi_precond_kind kind, fsi_status status, int row)
{
    fsi_context c = fsi_default_context();
    fsi_precond_desc d = desc_of(&c, kind);
    fsi_operator o;
    fsi_precond *p = NULL;
    double x[1200] = { 0 }, y[1200];
    CHECK(fsi_precond_create(&p, a, &d) == FSI_OK);
    CHECK(fsi_precond_factor(p, a) == status);
    CHECK(c.error.status == status &&
          (row < 0 ? c.error.element >= 0 && c.error.element < a->rows * a->block : c.error.element == row) &&
          strstr(c.error.message, "row") != NULL);
    o = fsi_precond_operator(p);
    CHECK(!p->factored && o.apply(o.user, &c, x, y, 1) == FSI_ERROR_ARGUMENT &&
          strstr(c.error.message, "fsi_precond_factor") != NULL);
    fsi_precond_destroy(p);
}

static void test_what_has_no_factor_names_a_row(void)
{
    static const double far_off[4] = { 1, 1000, 1000, 1 };
    static const double values[4] = { 0, -1, 1, 2 };
    int kind, k;
    for (kind = 0; kind < 4; kind++) {
        matrix m = matrix_poisson(30, 30, 1, 1, 1), s = matrix_sheet(15, 10, 1), t = matrix_dense(far_off, 2);
        double *at = matrix_at(&m, 77, 77);
        const double good = *at;
        for (k = 0; k < 2; k++) *at = values[k], refuse_factor(&m.a, (fsi_precond_kind)kind, FSI_ERROR_SINGULAR, 77);
        *at = test_nan(), refuse_factor(&m.a, (fsi_precond_kind)kind, FSI_ERROR_NAN, 77);
        *at = good;
        *matrix_at(&m, 78, 77) = test_inf(), refuse_factor(&m.a, (fsi_precond_kind)kind, FSI_ERROR_NAN, 78);
        matrix_at(&s, 50, 50)[1] = matrix_at(&s, 50, 50)[3] = 1e9; /* this block is indefinite */
        if (kind > 0) refuse_factor(&s.a, (fsi_precond_kind)kind, FSI_ERROR_SINGULAR, kind == 1 ? 151 : -1);
        /* positive, but rounding */
        matrix_at(&s, 50, 50)[1] = matrix_at(&s, 50, 50)[3] =
            sqrt(matrix_at(&s, 50, 50)[0] * matrix_at(&s, 50, 50)[4]) * (1 - 1e-14);
        if (kind == 1) refuse_factor(&s.a, (fsi_precond_kind)kind, FSI_ERROR_SINGULAR, 151);
        if (kind >= 2) refuse_factor(&t.a, (fsi_precond_kind)kind, FSI_ERROR_SINGULAR, 1);
        matrix_free(&m);
        matrix_free(&s);
        matrix_free(&t);
    }
}

static void refuse_create(const fsi_csr *a, const fsi_precond_desc *d, fsi_context *c, const char *what,
                          fsi_status status)
{
    fsi_precond *p = (fsi_precond *)c;
    CHECK(fsi_precond_create(&p, a, d) == status && p == NULL);
    CHECK(what == NULL || strstr(c->error.message, what) != NULL);
}

/* Row and column of an entry taken out of a 6 x 6 full matrix, or of a diagonal. */
static void test_bad_patterns_name_the_row(void)
{
    fsi_context c = fsi_default_context();
    int i, j, k, kind;
    for (kind = 0; kind < 4; kind++) for (i = 0; i < 6; i++) for (j = 0; j < 6; j++) {
        fsi_precond_desc d = desc_of(&c, (fsi_precond_kind)kind);
        double full[36];
        char text[80];
        matrix m;
        for (k = 0; k < 36; k++) full[k] = k % 7 == 0 ? 9 : 1;
        full[i * 6 + j] = 0;
        m = matrix_dense(full, 6);
        snprintf(text, sizeof text,
                 i == j ? "block row %d has no entry on the diagonal"
                        : "block row %d has no column %d, but row %d has column %d",
                 i, j, j, i);
        if (i == j || kind >= 2) refuse_create(&m.a, &d, &c, text, FSI_ERROR_ARGUMENT);
        if (i == j || kind >= 2) CHECK(c.error.element == i);
        matrix_free(&m);
    }
}

/* Two entries of row 2 without mirror images, behind rows that are complete. */
static void test_the_first_missing_mirror_image_is_named(void)
{
    static const double lower[9] = { 9, 1, 0, 1, 9, 0, 1, 1, 9 };
    fsi_context c = fsi_default_context();
    fsi_precond_desc d = desc_of(&c, FSI_PRECOND_IC0);
    matrix m = matrix_dense(lower, 3);
    refuse_create(&m.a, &d, &c, "block row 0 has no column 2, but row 2 has column 0", FSI_ERROR_ARGUMENT);
    matrix_free(&m);
}

static void test_bad_input_is_named(void)
{
    fsi_context c = fsi_default_context(), bad = fsi_default_context();
    fsi_precond_desc d = fsi_precond_default_desc(), e;
    matrix m = matrix_poisson(4, 4, 1, 1, 1), other = matrix_poisson(2, 8, 1, 1, 1);
    double x[16] = { 0 }, y[16] = { 0 };
    fsi_csr a = m.a;
    fsi_operator o;
    fsi_precond *p;
    d.context = &c;
    bad.cookie++;
    e = d, e.cookie++, refuse_create(&a, &e, &c, NULL, FSI_ERROR_COOKIE);
    e = d, e.context = &bad, refuse_create(&a, &e, &c, NULL, FSI_ERROR_COOKIE);
    refuse_create(&a, NULL, &c, NULL, FSI_ERROR_COOKIE);
    refuse_create(NULL, &d, &c, "NULL", FSI_ERROR_ARGUMENT);
    e = d, e.kind = (fsi_precond_kind)5, refuse_create(&a, &e, &c, "kind", FSI_ERROR_ARGUMENT);
    e = d, e.modification = 1.1, refuse_create(&a, &e, &c, "modification", FSI_ERROR_ARGUMENT);
    e = d, e.modification = test_nan(), refuse_create(&a, &e, &c, "modification", FSI_ERROR_ARGUMENT);
    a = m.a, a.cols = 17, refuse_create(&a, &d, &c, "square", FSI_ERROR_ARGUMENT);
    a = m.a, a.block = 17, refuse_create(&a, &d, &c, "17", FSI_ERROR_ARGUMENT);
    a = m.a, m.col[1] = 16, refuse_create(&a, &d, &c, "block row 0", FSI_ERROR_ARGUMENT), m.col[1] = 1;
    CHECK(fsi_precond_create(NULL, &a, &d) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_precond_create(&p, &a, &d) == FSI_OK);
    o = fsi_precond_operator(p);
    CHECK(o.apply(o.user, &c, x, y, 1) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "factor") != NULL);
    CHECK(fsi_precond_factor(NULL, &a) == FSI_ERROR_COOKIE && fsi_precond_factor(p, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_precond_factor(p, &a) == FSI_OK);
    CHECK(fsi_precond_factor(p, &other.a) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "pattern") != NULL);
    CHECK(p->factored && o.apply(o.user, &c, x, y, 1) == FSI_OK); /* M is still there */
    CHECK(o.apply(o.user, &c, NULL, y, 1) == FSI_ERROR_ARGUMENT &&
          o.apply(o.user, &c, x, NULL, 1) == FSI_ERROR_ARGUMENT);
    CHECK(o.apply(o.user, &c, x, y, -1) == FSI_ERROR_ARGUMENT && o.apply(o.user, &c, NULL, NULL, 0) == FSI_OK);
    CHECK(o.apply(NULL, &c, x, y, 1) == FSI_ERROR_COOKIE && o.apply(o.user, &bad, x, y, 1) == FSI_ERROR_COOKIE);
    CHECK(fsi_precond_operator(NULL).n == -1);
    fsi_precond_destroy(p);
    fsi_precond_destroy(NULL);
    matrix_free(&m);
    matrix_free(&other);
}

/* What cannot be represented is told, and leaves no trace. */
static void test_overflow_and_nan_are_told_and_forgotten(void)
{
    int kind, k;
    for (kind = 0; kind < 4; kind++) {
        fsi_context c = fsi_default_context();
        fsi_precond_desc d = desc_of(&c, (fsi_precond_kind)kind);
        matrix m = matrix_poisson(30, 30, 1, 1, 1);
        double *x = randoms(900, 1), *y = randoms(900, 2), *z = randoms(900, 3);
        fsi_precond *p;
        fsi_operator o;
        for (k = 0; k < m.start[900]; k++) m.value[k] *= 1e-30;
        p = precond_of(&m.a, &d);
        o = fsi_precond_operator(p);
        apply(p, x, y, 1);
        x[333] = test_nan(), CHECK(o.apply(o.user, &c, x, z, 1) == FSI_ERROR_NAN && c.error.element >= 0);
        x[333] = 1e300, CHECK(o.apply(o.user, &c, x, z, 1) == FSI_ERROR_NAN);
        free(x), x = randoms(900, 1);
        apply(p, x, z, 1);
        CHECK(memcmp(y, z, 900 * sizeof(double)) == 0);
        fsi_precond_destroy(p);
        matrix_free(&m);
        free(x), free(y), free(z);
    }
}

static void test_an_empty_system_is_served(void)
{
    int kind;
    for (kind = 0; kind < 4; kind++) {
        matrix m = matrix_make(0, 1, 0);
        fsi_precond_desc d = desc_of(NULL, (fsi_precond_kind)kind);
        fsi_precond *p = precond_of(&m.a, &d);
        apply(p, NULL, NULL, 2);
        fsi_precond_destroy(p);
        matrix_free(&m);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_every_kind_is_linear_symmetric_and_positive);
    RUN(test_scale_changes_nothing_else);
    RUN(test_columns_are_served_as_if_alone);
    RUN(test_jacobi_divides_by_the_diagonal);
    RUN(test_block_jacobi_is_exact_on_block_diagonals);
    RUN(test_incomplete_factors_of_trees_are_exact);
    RUN(test_ic0_is_the_matrix_on_its_pattern);
    RUN(test_fully_modified_factors_keep_row_sums);
    RUN(test_unmodified_factors_are_ic0);
    RUN(test_a_shift_mends_an_incomplete_factor_that_breaks_down);
    RUN(test_iterations_grow_as_theory_says);
    RUN(test_a_singular_but_consistent_system_is_solved);
    RUN(test_new_values_need_no_memory);
    RUN(test_any_number_of_threads_gives_the_same_bits);
    RUN(test_every_allocation_may_fail);
    RUN(test_what_has_no_factor_names_a_row);
    RUN(test_bad_patterns_name_the_row);
    RUN(test_the_first_missing_mirror_image_is_named);
    RUN(test_bad_input_is_named);
    RUN(test_overflow_and_nan_are_told_and_forgotten);
    RUN(test_an_empty_system_is_served);
    return TEST_END();
}
