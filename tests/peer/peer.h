/* peer.h - what the tests against other solvers share: problems, and fsi beside its peer.
   SPDX-License-Identifier: MIT

   Define _POSIX_C_SOURCE 199309L before anything is included. */
#ifndef FSI_PEER_H
#define FSI_PEER_H

#include <time.h>

#if defined(PEER_FULL)
enum { PEER_SIDE = 46, PEER_SHEET = 110 };
#else
enum { PEER_SIDE = 9, PEER_SHEET = 24 };
#endif

TEST_FN double peer_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

TEST_FN double peer_clock(void *user)
{
    (void)user;
    return peer_seconds();
}

typedef struct peer_problem { fsi_csr a; int *start, *col; double *value; signed char *sign; } peer_problem;

/* A grid of points that see their neighbours (in the plane all eight and, for blocks, those two steps away); blocks
   couple their numbers. signs: every fifth row is negative, and has no positive neighbour's sign. */
TEST_FN peer_problem peer_grid(int nx, int ny, int nz, int block, int signs)
{
    const int n = nx * ny * nz, reach = nz > 1 ? 1 : 2, most = 25, bb = block * block;
    peer_problem m;
    int x, y, z, i, j, k, p, q, e = 0;
    m.start = (int *)calloc((size_t)n + 1, sizeof(int));
    m.col = (int *)calloc((size_t)(n * most), sizeof(int));
    m.value = (double *)calloc((size_t)(n * most) * (size_t)bb, sizeof(double));
    m.sign = (signed char *)calloc((size_t)(n * block), 1);
    for (z = 0; z < nz; z++) for (y = 0; y < ny; y++) for (x = 0; x < nx; x++) {
        const int row = (z * ny + y) * nx + x;
        for (k = nz > 1 ? -reach : 0; k <= (nz > 1 ? reach : 0); k++)
            for (j = -reach; j <= reach; j++)
                for (i = -reach; i <= reach; i++) {
                    const int beyond = abs(i) + abs(j) + abs(k) > reach, other = row + (k * ny + j) * nx + i;
                    if (beyond || x + i < 0 || x + i >= nx || y + j < 0 || y + j >= ny || z + k < 0 || z + k >= nz)
                        continue;
                    m.col[e] = other;
                    for (p = 0; p < block; p++)
                        for (q = 0; q < block; q++) {
                            const int low = other < row ? q : p, high = other < row ? p : q;
                            double *v = &m.value[(e * block + p) * block + q];
                            if (other == row) *v = p == q ? 13.5 * block : 0.2;
                            else *v = -1 + 0.1 * (low - 2 * high);
                            if (signs && other == row) *v *= row % 5 ? 1 : -1;
                            else if (signs && row % 5 == 0 && other % 5 == 0) *v = 0;
                        }
                    e++;
                }
        m.start[row + 1] = e;
        for (p = 0; p < block; p++) m.sign[row * block + p] = (signed char)(signs && row % 5 == 0 ? -1 : 1);
    }
    m.a.rows = m.a.cols = n;
    m.a.block = block;
    m.a.start = m.start;
    m.a.col = m.col;
    m.a.value = m.value;
    return m;
}

TEST_FN void peer_free(peer_problem *m)
{
    free(m->start);
    free(m->col);
    free(m->value);
    free(m->sign);
}

/* Solves by the peer, behind fsi_solver, and by fsi itself: both leave nothing of b, and agree. */
TEST_FN void peer_compare(const char *name, peer_problem *m, fsi_ldlt_pivots pivots, fsi_solve_fn *solve, void *user,
                          double tolerance)
{
    const int n = m->a.rows * m->a.block;
    double *b = (double *)calloc((size_t)n, sizeof(double)), *x[2], most = 0;
    uint64_t random = 4;
    int k, i;
    for (i = 0; i < n; i++) b[i] = test_random(&random) - 0.5;
    for (k = 0; k < 2; k++) {
        fsi_context c = fsi_default_context();
        fsi_solver_desc d = fsi_solver_default_desc();
        fsi_system y = fsi_default_system();
        fsi_solver *s = NULL;
        c.now = peer_clock;
        d.context = &c;
        d.ordering = fsi_dissection();
        d.solve = k ? solve : NULL;
        d.user = user;
        y.matrix = &m->a;
        y.pivots = pivots;
        y.sign = m->sign;
        y.tolerance = tolerance;
        x[k] = (double *)calloc((size_t)n, sizeof(double));
        CHECK(fsi_solver_create(&s, &d) == FSI_OK);
        if (!CHECK(fsi_solver_solve(s, &y, b, x[k]) == FSI_OK)) printf("%s: %s\n", name, c.error.message);
        CHECK(s->stats.residual <= tolerance);
#if defined(PEER_FULL)
        printf("%s by %s: %d rows, %.3f CPU s, residual %.1e\n", name, k ? "the peer" : "fsi", n, s->stats.seconds,
               s->stats.residual);
#endif
        fsi_solver_destroy(s);
    }
    for (i = 0; i < n; i++) most = fabs(x[0][i]) > most ? fabs(x[0][i]) : most;
    for (i = 0; i < n; i++) CHECK_NEAR(x[1][i], x[0][i], 100 * tolerance * most);
    free(x[0]);
    free(x[1]);
    free(b);
}

#endif
