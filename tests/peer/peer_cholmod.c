/* peer_cholmod.c - CHOLMOD as the host's solver behind fsi_solver, and beside fsi's own. Built only where CHOLMOD is
   installed.
   SPDX-License-Identifier: MIT

   cc -std=c99 -O3 tests/peer/peer_cholmod.c -o peer_cholmod -lcholmod -lm -pthread      (-DPEER_FULL: full size, with times) */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../../fsi_order.h"
#include "../kit/test.h"
#include "peer.h"
#include <suitesparse/cholmod.h>

/* A CHOLMOD workspace and what it holds of the last matrix. */
typedef struct peer { cholmod_common common; cholmod_factor *factor; double seconds[2]; int solves; } peer;

/* The lower triangle by columns, which is the upper one by rows. */
static cholmod_sparse *peer_matrix(peer *p, const fsi_csr *a)
{
    const int n = a->rows * a->block, b = a->block;
    cholmod_sparse *m = cholmod_allocate_sparse((size_t)n, (size_t)n, (size_t)a->start[a->rows] * (size_t)(b * b), 1, 1, -1, CHOLMOD_REAL, &p->common);
    int *start = (int *)m->p, *row = (int *)m->i, r, e, i, j, count = 0;
    double *value = (double *)m->x;
    for (r = 0; r < a->rows; r++) for (i = 0; i < b; i++) {
        start[r * b + i] = count;
        for (e = a->start[r]; e < a->start[r + 1]; e++) for (j = 0; j < b; j++) {
            if (a->col[e] * b + j < r * b + i) continue;
            row[count] = a->col[e] * b + j;
            value[count++] = a->value[(e * b + i) * b + j];
        }
    }
    start[n] = count;
    return m;
}

/* An fsi_solve_fn. */
static fsi_status peer_solve(void *user, fsi_context *context, const fsi_system *system, const double *b, double *x)
{
    peer *p = (peer *)user;
    const size_t n = (size_t)system->matrix->rows * (size_t)system->matrix->block;
    cholmod_sparse *a = peer_matrix(p, system->matrix);
    cholmod_dense *right = cholmod_allocate_dense(n, 1, n, CHOLMOD_REAL, &p->common), *left;
    double clock = peer_seconds();
    (void)context;
    memcpy(right->x, b, n * sizeof *b);
    p->common.supernodal = system->pivots == FSI_LDLT_POSITIVE ? CHOLMOD_SUPERNODAL : CHOLMOD_SIMPLICIAL; /* signs: only L D L^T by columns */
    p->common.final_ll = 0;
    cholmod_free_factor(&p->factor, &p->common);
    p->factor = cholmod_analyze(a, &p->common);
    cholmod_factorize(a, p->factor, &p->common);
    p->seconds[0] = peer_seconds() - clock;
    clock = peer_seconds();
    left = cholmod_solve(CHOLMOD_A, p->factor, right, &p->common);
    p->seconds[1] = peer_seconds() - clock;
    p->solves++;
    if (left) memcpy(x, left->x, n * sizeof *x);
    cholmod_free_dense(&left, &p->common);
    cholmod_free_dense(&right, &p->common);
    cholmod_free_sparse(&a, &p->common);
    return p->common.status == CHOLMOD_OK ? FSI_OK : FSI_ERROR_SINGULAR;
}

static void compare(const char *name, peer_problem m, fsi_ldlt_pivots pivots)
{
    peer p;
    memset(&p, 0, sizeof p);
    cholmod_start(&p.common);
    p.common.print = 0;
    peer_compare(name, &m, pivots, peer_solve, &p, 1e-9);
    CHECK(p.solves == 1);
#if defined(PEER_FULL)
    printf("%s: CHOLMOD analyse and factor %.3f s, solve %.4f s, %.2f Gflop\n", name, p.seconds[0], p.seconds[1], p.common.fl * 1e-9);
#endif
    cholmod_free_factor(&p.factor, &p.common);
    cholmod_finish(&p.common);
    peer_free(&m);
}

static void test_cholmod_solves_what_fsi_solves(void)
{
    compare("Poisson", peer_grid(PEER_SIDE, PEER_SIDE, PEER_SIDE, 1, 0), FSI_LDLT_POSITIVE);
    compare("sheet", peer_grid(PEER_SHEET, PEER_SHEET, 1, 3, 0), FSI_LDLT_POSITIVE);
    compare("quasi-definite", peer_grid(30, 30, 1, 1, 1), FSI_LDLT_SIGNED);
}

static void test_a_matrix_that_cholmod_refuses_is_refused(void)
{
    peer_problem m = peer_grid(9, 9, 1, 1, 0);
    fsi_context c = fsi_default_context();
    fsi_solver_desc d = fsi_solver_default_desc();
    fsi_system y = fsi_default_system();
    fsi_solver *s = NULL;
    double b[81] = { 1 }, x[81] = { 4 };
    peer p;
    memset(&p, 0, sizeof p);
    cholmod_start(&p.common);
    p.common.print = 0;
    d.context = &c;
    d.solve = peer_solve;
    d.user = &p;
    y.matrix = &m.a;
    m.value[m.start[41] - 1] = -50; /* a diagonal or a neighbour: indefinite in any case */
    m.value[m.start[40]] = -50;
    CHECK(fsi_solver_create(&s, &d) == FSI_OK);
    CHECK(fsi_solver_solve(s, &y, b, x) != FSI_OK && x[0] == 4 && x[80] == 0);
    fsi_solver_destroy(s);
    cholmod_free_factor(&p.factor, &p.common);
    cholmod_finish(&p.common);
    peer_free(&m);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_cholmod_solves_what_fsi_solves);
    RUN(test_a_matrix_that_cholmod_refuses_is_refused);
    return TEST_END();
}
