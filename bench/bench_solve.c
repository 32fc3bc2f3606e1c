/* Speed of fsi_solve.h with fsi_order.h and fsi_krylov.h: factorisations of a shell, of the same with dense rows, of
   Poisson's equation in space, growth; assembly; iterations; each beside the time in which memory could stream its
   bytes. usage: bench_solve [full]. With -fopenmp: by the wall's clock.
   SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_krylov.h"
#include "../fsi_order.h"
#include <stdio.h>
#include <stdlib.h>
#include "bench.h"

static void *need(size_t count, size_t size)
{
    void *p = calloc(count + 1, size);
    if (!p) exit(1);
    return p;
}

/* One block row that sees neighbours (dx, dy, dz), `count` of them; off the grid they are left out. */
typedef struct stencil { int count; int at[24][3]; } stencil;

/* A triangulated sheet: the vertices of the six triangles around each, and those across their outer edges, which hinges
   join. */
static stencil sheet_stencil(void)
{
    static const int at[13][3] = {{-1, -2, 0}, {-2, -1, 0}, {-1, -1, 0}, {0, -1, 0}, {1, -1, 0}, {-1, 0, 0}, {0, 0, 0},
                                  {1, 0, 0},   {-1, 1, 0},  {0, 1, 0},   {1, 1, 0},  {2, 1, 0},  {1, 2, 0}};
    stencil s;
    s.count = 13;
    memcpy(s.at, at, sizeof at);
    return s;
}

static stencil poisson_stencil(void)
{
    static const int at[7][3] = {{0, 0, -1}, {0, -1, 0}, {-1, 0, 0}, {0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    stencil s;
    s.count = 7;
    memcpy(s.at, at, sizeof at);
    return s;
}

/* A diagonally dominant matrix on a grid; `dense` rows more, which see everything and whose diagonal is negative. */
static fsi_csr make_matrix(int nx, int ny, int nz, const stencil *s, int block, int dense)
{
    const int n = nx * ny * nz;
    fsi_csr a;
    int *start = (int *)need((size_t)(n + dense), sizeof(int)),
        *col = (int *)need((size_t)n * (size_t)(s->count + 2 * dense) + (size_t)(dense * dense), sizeof(int));
    int r, k, p, q, e = 0;
    for (r = 0; r < n; r++) {
        for (k = 0; k < s->count; k++) {
            const int x = r % nx + s->at[k][0], y = r / nx % ny + s->at[k][1], z = r / nx / ny + s->at[k][2];
            if (x >= 0 && x < nx && y >= 0 && y < ny && z >= 0 && z < nz) col[e++] = (z * ny + y) * nx + x;
        }
        for (k = 0; k < dense; k++) col[e++] = n + k;
        start[r + 1] = e;
    }
    for (r = n; r < n + dense; r++) {
        for (k = 0; k < n + dense; k++) col[e++] = k;
        start[r + 1] = e;
    }
    a.rows = a.cols = n + dense;
    a.block = block;
    a.start = start;
    a.col = col;
    a.value = (double *)need((size_t)e * (size_t)(block * block), sizeof(double));
    for (r = 0; r < n + dense; r++)
        for (k = start[r]; k < start[r + 1]; k++)
            for (p = 0; p < block; p++)
                for (q = 0; q < block; q++) {
                    const int i = r > col[k] ? r : col[k], j = r > col[k] ? col[k] : r, x = r > col[k] ? p : q,
                              y = r > col[k] ? q : p;
                    double v = -0.5 * (double)((i * 31 + j * 17 + x * 5 + y * 3) % 7) / 7;
                    if (i == j) v = p == q ? (i < n ? s->count * block : -1.0 * n) : 0.1;
                    else if (i >= n && j >= n) v = 0;
                    a.value[(size_t)(k * block + p) * (size_t)block + (size_t)q] = v;
                }
    return a;
}

static double stream; /* bytes a second that a sum reads */

/* x += A^-1 (b - A x); the largest number of |b - A x|. */
static double refine(fsi_ldlt *f, const fsi_csr *a, const double *b, double *x, double *r)
{
    const int n = a->rows * a->block;
    double left = 0;
    int i;
    fsi_csr_multiply(f->context, a, x, r);
    for (i = 0; i < n; i++) left = fmax(left, fabs(r[i] = b[i] - r[i]));
    fsi_ldlt_solve(f, r, r);
    for (i = 0; i < n; i++) x[i] += r[i];
    return left;
}

static void bench(const char *name, int nx, int ny, int nz, const stencil *s, int block, int dense, int rounds)
{
    fsi_csr a = make_matrix(nx, ny, nz, s, block, dense);
    const int n = a.rows * block;
    fsi_context c = fsi_default_context();
    fsi_ldlt_desc d = fsi_ldlt_default_desc();
    double first[9], again[9], solve[9], refined[9], left = 0, order[9];
    double *b = (double *)need((size_t)n, sizeof(double)), *x = (double *)need((size_t)n, sizeof(double));
    double *r = (double *)need((size_t)n, sizeof(double));
    unsigned char *last = (unsigned char *)need((size_t)a.rows, 1);
    signed char *sign = (signed char *)need((size_t)n, 1);
    fsi_ldlt *f = NULL;
    int t, i;
    for (i = 0; i < n; i++) {
        b[i] = (i * 7919) % 1000 * 1e-3;
        last[i / block] = i / block >= a.rows - dense;
        sign[i] = i / block >= a.rows - dense ? -1 : 1;
    }
    c.now = bench_seconds;
    d.context = &c;
    d.ordering = fsi_dissection();
    d.last = dense ? last : NULL;
    d.pivots = dense ? FSI_LDLT_SIGNED : FSI_LDLT_POSITIVE;
    d.sign = sign;
    for (t = 0; t < rounds; t++) {
        double start = bench_seconds(NULL);
        fsi_ldlt_destroy(f);
        if (fsi_ldlt_create(&f, &a, &d) != FSI_OK || fsi_ldlt_factor(f, &a) != FSI_OK) {
            puts(c.error.message);
            exit(1);
        }
        first[t] = bench_seconds(NULL) - start;
        order[t] = f->stats.seconds_order;
        fsi_ldlt_factor(f, &a);
        again[t] = f->stats.seconds_factor;
        start = bench_seconds(NULL);
        fsi_ldlt_solve(f, b, x);
        solve[t] = bench_seconds(NULL) - start;
        start = bench_seconds(NULL);
        left = refine(f, &a, b, x, r);
        refined[t] = bench_seconds(NULL) - start;
    }
    printf("%s: %d rows, %.1f M numbers in L, %.2f Gflop, %.0f MB; order %.3f s, analyse and factor %.3f s, factor "
           "again %.3f s (%.1f Gflop/s), solve %.4f s (floor %.4f), refine %.4f s, residual %.1e\n",
           name, n, f->stats.entries * 1e-6, f->stats.flops * 1e-9, (double)f->stats.bytes * 1e-6,
           median(order, rounds), median(first, rounds), median(again, rounds),
           f->stats.flops / median(again, rounds) * 1e-9, median(solve, rounds), 16 * f->stats.entries / stream,
           median(refined, rounds), left);
    fsi_ldlt_destroy(f);
    free((void *)(size_t)a.start);
    free((void *)(size_t)a.col);
    free(a.value);
    free(b);
    free(x);
    free(r);
    free(last);
    free(sign);
}

/* A sheet of side x side vertices: its triangles, and the pairs of them that hinges join. */
static void bench_assembly(int side)
{
    const int n = side * side, cells = (side - 1) * (side - 1), triangles = 2 * cells, hinges = 3 * cells;
    int *start = (int *)need((size_t)(triangles + hinges), sizeof(int)),
        *vertex = (int *)need((size_t)(3 * triangles + 4 * hinges), sizeof(int));
    fsi_assembly_desc d = fsi_assembly_default_desc();
    fsi_assembly *s = NULL;
    double make[5], gather[5], bytes, *value;
    int x, y, e = 0, k = 0, t;
    size_t q;
    for (y = 0; y + 1 < side; y++) for (x = 0; x + 1 < side; x++) {
        const int v = y * side + x, corner[2][3] = { { v, v + 1, v + side + 1 }, { v, v + side + 1, v + side } };
        const int across[3][4] = {{v, v + side + 1, v + 1, v + side},
                                  {v + 1, v + side + 1, v, v + side + 2},
                                  {v + side, v + side + 1, v, v + 2 * side + 1}};
        const int is_there[3] = { 1, x + 2 < side, y + 2 < side };
        for (t = 0; t < 2; t++, k += 3, start[++e] = k) memcpy(vertex + k, corner[t], sizeof corner[t]);
        for (t = 0; t < 3; t++) {
            if (!is_there[t]) continue;
            memcpy(vertex + k, across[t], sizeof across[t]);
            k += 4;
            start[++e] = k;
        }
    }
    d.vertices = n;
    d.elements = e;
    d.start = start;
    d.vertex = vertex;
    for (t = 0; t < 5; t++) {
        double clock = bench_seconds(NULL);
        fsi_assembly_destroy(s);
        if (fsi_assembly_create(&s, &d) != FSI_OK) exit(1);
        make[t] = bench_seconds(NULL) - clock;
    }
    value = (double *)need(s->numbers, sizeof(double));
    for (q = 0; q < s->numbers; q++) value[q] = (double)(q % 7);
    for (t = 0; t < 5; t++) {
        double clock = bench_seconds(NULL);
        if (fsi_assembly_matrix(s, value) != FSI_OK) exit(1);
        gather[t] = bench_seconds(NULL) - clock;
    }
    bytes = 8 * (double)s->numbers + 72.0 * s->matrix.start[n];
    printf("assembly: %d vertices, %.2f M blocks; create %.4f s, matrix %.4f s (%.1f ns a block; floor %.4f s)\n", n,
           (double)s->numbers / 9e6, median(make, 5), median(gather, 5),
           median(gather, 5) / ((double)s->numbers / 9) * 1e9, bytes / stream);
    fsi_assembly_destroy(s);
    free(start);
    free(vertex);
    free(value);
}

/* Poisson's equation in a cube by conjugate gradients. */
static void bench_iteration(int side)
{
    const stencil poisson = poisson_stencil();
    fsi_csr a = make_matrix(side, side, side, &poisson, 1, 0);
    fsi_context c = fsi_default_context();
    fsi_krylov_desc d = fsi_krylov_default_desc();
    fsi_krylov *k = NULL;
    int kind, i;
    double *b = (double *)need((size_t)a.rows, sizeof(double)), *x = (double *)need((size_t)a.rows, sizeof(double));
    const double matrix = 12.0 * a.start[a.rows] + 4.0 * a.rows;
    for (i = 0; i < a.rows; i++) b[i] = (i * 7919) % 1000 * 1e-3;
    for (i = 0; i < a.start[a.rows]; i++) a.value[i] = -1; /* the Laplacian: make_matrix's own is easier */
    for (i = 0; i < a.rows; i++) {
        int e;
        for (e = a.start[i]; e < a.start[i + 1]; e++) if (a.col[e] == i) a.value[e] = 6;
    }
    c.now = bench_seconds;
    d.context = &c;
    d.rows = a.rows;
    for (kind = FSI_PRECOND_JACOBI; kind <= FSI_PRECOND_MIC0; kind++) {
        const fsi_operator o = fsi_csr_operator(&a);
        fsi_precond_desc e = fsi_precond_default_desc();
        fsi_precond *p = NULL;
        fsi_operator m;
        double clock = bench_seconds(NULL), bytes;
        e.context = &c;
        e.kind = (fsi_precond_kind)kind;
        if (kind == FSI_PRECOND_BLOCK_JACOBI) continue; /* the same for numbers */
        if (fsi_precond_create(&p, &a, &e) != FSI_OK || fsi_precond_factor(p, &a) != FSI_OK ||
            fsi_krylov_create(&k, &d) != FSI_OK)
            exit(1);
        clock = bench_seconds(NULL) - clock;
        m = fsi_precond_operator(p);
        memset(x, 0, sizeof *x * (size_t)a.rows);
        if (fsi_krylov_solve(k, &o, &m, b, x) != FSI_OK) exit(1);
        bytes = matrix + 96.0 * a.rows +
                (kind == FSI_PRECOND_JACOBI ? 24.0 * a.rows : 2 * 12 * (p->stats.entries - a.rows) + 40.0 * a.rows);
        printf("Poisson %d^3 by CG, preconditioner %d: set-up %.3f s, %d iterations, %.3f s (%.1f ns a row an "
               "iteration; floor %.1f)\n",
               side, kind, clock, k->stats.iters, k->stats.seconds, k->stats.seconds / k->stats.iters / a.rows * 1e9,
               bytes / stream / a.rows * 1e9);
        fsi_krylov_destroy(k);
        fsi_precond_destroy(p);
    }
    free((void *)(size_t)a.start);
    free((void *)(size_t)a.col);
    free(a.value);
    free(b);
    free(x);
}

int main(int argc, char **argv)
{
    const stencil sheet = sheet_stencil(), poisson = poisson_stencil();
    const int full = argc > 1 && !strcmp(argv[1], "full");
    int side;
    stream = stream_rate();
    printf("streaming: %.1f GB/s\n", stream * 1e-9);
    bench("shell", 110, 110, 1, &sheet, 3, 0, 5);
    bench("shell and 3 dense rows", 110, 110, 1, &sheet, 3, 1, 5);
    bench("Poisson in space", 46, 46, 46, &poisson, 1, 0, 3);
    for (side = 32; side <= (full ? 320 : 128); side *= 2) bench("shell, growing", side, side, 1, &sheet, 3, 0, 3);
    bench_assembly(110);
    bench_assembly(full ? 316 : 200);
    bench_iteration(full ? 100 : 64);
    return 0;
}
