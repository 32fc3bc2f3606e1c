/* Speed of the sparse factorisation: a shell, the same with dense rows, Poisson's equation in space, growth. usage: bench_solve [full]
   SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../fsi_solve.h"
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

/* A triangulated sheet: the vertices of the six triangles around each, and those across their outer edges, which hinges join. */
static stencil sheet_stencil(void)
{
    static const int at[13][3] = { { -1, -2, 0 }, { -2, -1, 0 }, { -1, -1, 0 }, { 0, -1, 0 }, { 1, -1, 0 }, { -1, 0, 0 }, { 0, 0, 0 },
                                   { 1, 0, 0 }, { -1, 1, 0 }, { 0, 1, 0 }, { 1, 1, 0 }, { 2, 1, 0 }, { 1, 2, 0 } };
    stencil s;
    s.count = 13;
    memcpy(s.at, at, sizeof at);
    return s;
}

static stencil poisson_stencil(void)
{
    static const int at[7][3] = { { 0, 0, -1 }, { 0, -1, 0 }, { -1, 0, 0 }, { 0, 0, 0 }, { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };
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
    int *start = (int *)need((size_t)(n + dense), sizeof(int)), *col = (int *)need((size_t)n * (size_t)(s->count + 2 * dense) + (size_t)(dense * dense), sizeof(int));
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
    for (r = 0; r < n + dense; r++) for (k = start[r]; k < start[r + 1]; k++) for (p = 0; p < block; p++) for (q = 0; q < block; q++) {
        const int i = r > col[k] ? r : col[k], j = r > col[k] ? col[k] : r, x = r > col[k] ? p : q, y = r > col[k] ? q : p;
        double v = -0.5 * (double)((i * 31 + j * 17 + x * 5 + y * 3) % 7) / 7;
        if (i == j) v = p == q ? (i < n ? s->count * block : -1.0 * n) : 0.1;
        else if (i >= n && j >= n) v = 0;
        a.value[(size_t)(k * block + p) * (size_t)block + (size_t)q] = v;
    }
    return a;
}

static void bench(const char *name, int nx, int ny, int nz, const stencil *s, int block, int dense, int rounds)
{
    fsi_csr a = make_matrix(nx, ny, nz, s, block, dense);
    const int n = a.rows * block;
    fsi_context c = fsi_default_context();
    fsi_ldlt_desc d = fsi_ldlt_default_desc();
    double first[9], again[9], solve[9], refine[9], left = 0, order[9];
    double *b = (double *)need((size_t)n, sizeof(double)), *x = (double *)need((size_t)n, sizeof(double));
    unsigned char *last = (unsigned char *)need((size_t)a.rows, 1);
    signed char *sign = (signed char *)need((size_t)n, 1);
    fsi_ldlt *f = NULL;
    int t, i;
    for (i = 0; i < n; i++) {
        b[i] = (i * 7919) % 1000 * 1e-3;
        last[i / block] = i / block >= a.rows - dense;
        sign[i] = i / block >= a.rows - dense ? -1 : 1;
    }
    c.now = cpu_seconds;
    d.context = &c;
    d.last = dense ? last : NULL;
    d.pivots = dense ? FSI_LDLT_SIGNED : FSI_LDLT_POSITIVE;
    d.sign = sign;
    for (t = 0; t < rounds; t++) {
        double start = cpu_seconds(NULL);
        fsi_ldlt_destroy(f);
        if (fsi_ldlt_create(&f, &a, &d) != FSI_OK || fsi_ldlt_factor(f, &a) != FSI_OK) {
            puts(c.error.message);
            exit(1);
        }
        first[t] = cpu_seconds(NULL) - start;
        order[t] = f->stats.seconds_order;
        fsi_ldlt_factor(f, &a);
        again[t] = f->stats.seconds_factor;
        start = cpu_seconds(NULL);
        fsi_ldlt_solve(f, b, x);
        solve[t] = cpu_seconds(NULL) - start;
        start = cpu_seconds(NULL);
        fsi_ldlt_refine(f, &a, b, x, &left);
        refine[t] = cpu_seconds(NULL) - start;
    }
    printf("%s: %d rows, %.1f M numbers in L, %.2f Gflop, %.0f MB; order %.3f s, analyse and factor %.3f s, factor again %.3f s (%.1f Gflop/s), solve %.4f s, refine %.4f s, residual %.1e\n", name, n,
           f->stats.entries * 1e-6, f->stats.flops * 1e-9, (double)f->stats.bytes * 1e-6, median(order, rounds), median(first, rounds), median(again, rounds), f->stats.flops / median(again, rounds) * 1e-9,
           median(solve, rounds), median(refine, rounds), left);
    fsi_ldlt_destroy(f);
    free((void *)(size_t)a.start);
    free((void *)(size_t)a.col);
    free(a.value);
    free(b);
    free(x);
    free(last);
    free(sign);
}

int main(int argc, char **argv)
{
    const stencil sheet = sheet_stencil(), poisson = poisson_stencil();
    const int full = argc > 1 && !strcmp(argv[1], "full");
    int side;
    bench("shell", 110, 110, 1, &sheet, 3, 0, 5);
    bench("shell and 3 dense rows", 110, 110, 1, &sheet, 3, 1, 5);
    bench("Poisson in space", 46, 46, 46, &poisson, 1, 0, 3);
    for (side = 32; side <= (full ? 320 : 128); side *= 2) bench("shell, growing", side, side, 1, &sheet, 3, 0, 3);
    return 0;
}
