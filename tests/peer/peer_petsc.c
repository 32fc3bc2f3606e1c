/* peer_petsc.c - PETSc as the host's solver behind fsi_solver: its CG with incomplete Cholesky for a matrix, and
   MINRES over an operator, which calls
   back. Built only where PETSc is installed.
   SPDX-License-Identifier: MIT

   mpicc -std=c99 -O3 tests/peer/peer_petsc.c -o peer_petsc $(pkg-config --cflags --libs PETSc) -lm -pthread */
#define _POSIX_C_SOURCE 199309L
#define FSI_IMPLEMENTATION
#include "../../fsi_order.h"
#include "../kit/test.h"
#include "peer.h"
#include <petscksp.h>

typedef struct peer { fsi_context *context; const fsi_operator *op; int solves; } peer;

static PetscErrorCode peer_multiply(Mat m, Vec in, Vec out)
{
    peer *p = NULL;
    const PetscScalar *x;
    PetscScalar *y;
    fsi_status status;
    MatShellGetContext(m, &p);
    VecGetArrayRead(in, &x);
    VecGetArray(out, &y);
    status = p->op->apply(p->op->user, p->context, x, y, 1);
    VecRestoreArray(out, &y);
    VecRestoreArrayRead(in, &x);
    return status == FSI_OK ? 0 : PETSC_ERR_LIB;
}

/* A matrix of blocks, or a shell around the operator. */
static Mat peer_matrix(peer *p, const fsi_system *system)
{
    const fsi_csr *a = system->matrix;
    PetscInt r, e, i, j;
    Mat m;
    if (!a) {
        MatCreateShell(PETSC_COMM_SELF, system->op->n, system->op->n, system->op->n, system->op->n, p, &m);
        MatShellSetOperation(m, MATOP_MULT, (void (*)(void))peer_multiply);
        return m;
    }
    MatCreateSeqAIJ(PETSC_COMM_SELF, a->rows * a->block, a->cols * a->block, 25 * a->block, NULL, &m);
    for (r = 0; r < a->rows; r++) for (e = a->start[r]; e < a->start[r + 1]; e++)
        for (i = 0; i < a->block; i++) for (j = 0; j < a->block; j++)
            MatSetValue(m, r * a->block + i, a->col[e] * a->block + j, a->value[(e * a->block + i) * a->block + j], INSERT_VALUES);
    MatAssemblyBegin(m, MAT_FINAL_ASSEMBLY);
    MatAssemblyEnd(m, MAT_FINAL_ASSEMBLY);
    return m;
}

/* An fsi_solve_fn. */
static fsi_status peer_solve(void *user, fsi_context *context, const fsi_system *system, const double *b, double *x)
{
    peer *p = (peer *)user;
    const PetscInt n = system->matrix ? system->matrix->rows * system->matrix->block : system->op->n;
    KSPConvergedReason reason;
    Vec left, right;
    KSP ksp;
    PC pc;
    Mat m;
    p->context = context;
    p->op = system->op;
    p->solves++;
    m = peer_matrix(p, system);
    VecCreateSeqWithArray(PETSC_COMM_SELF, 1, n, b, &right);
    VecCreateSeqWithArray(PETSC_COMM_SELF, 1, n, x, &left);
    KSPCreate(PETSC_COMM_SELF, &ksp);
    KSPSetOperators(ksp, m, m);
    KSPSetType(ksp, system->pivots == FSI_LDLT_POSITIVE ? KSPCG : KSPMINRES);
    KSPGetPC(ksp, &pc);
    PCSetType(pc, system->matrix ? PCICC : PCNONE);
    KSPSetNormType(ksp, system->pivots == FSI_LDLT_POSITIVE ? KSP_NORM_UNPRECONDITIONED : KSP_NORM_PRECONDITIONED);
    KSPSetInitialGuessNonzero(ksp, PETSC_TRUE);
    KSPSetTolerances(ksp, 0.1 * system->tolerance, 0, PETSC_DEFAULT, system->max_iters);
    KSPSolve(ksp, right, left);
    KSPGetConvergedReason(ksp, &reason);
    KSPDestroy(&ksp);
    VecDestroy(&left);
    VecDestroy(&right);
    MatDestroy(&m);
    return reason > 0 ? FSI_OK : FSI_ERROR_CONVERGENCE;
}

static void test_petsc_solves_what_fsi_solves(void)
{
    peer p;
    peer_problem m = peer_grid(PEER_SIDE, PEER_SIDE, PEER_SIDE, 1, 0);
    memset(&p, 0, sizeof p);
    peer_compare("Poisson", &m, FSI_LDLT_POSITIVE, peer_solve, &p, 1e-9);
    peer_free(&m);
    m = peer_grid(PEER_SHEET, PEER_SHEET, 1, 3, 0);
    peer_compare("sheet", &m, FSI_LDLT_POSITIVE, peer_solve, &p, 1e-9);
    CHECK(p.solves == 2);
    peer_free(&m);
}

/* A saddle point that only its operator knows, by PETSc's MINRES. */
static void test_petsc_calls_the_operator(void)
{
    peer_problem m = peer_grid(30, 30, 1, 1, 1);
    const fsi_operator op = fsi_csr_operator(&m.a);
    fsi_solver_desc d = fsi_solver_default_desc();
    fsi_system y = fsi_default_system();
    fsi_solver *s = NULL;
    double b[900], x[900] = { 0 }, r[900];
    peer p;
    int i;
    memset(&p, 0, sizeof p);
    d.solve = peer_solve;
    d.user = &p;
    y.op = &op;
    y.pivots = FSI_LDLT_ANY;
    y.tolerance = 1e-8;
    for (i = 0; i < 900; i++) b[i] = i % 9 - 4;
    CHECK(fsi_solver_create(&s, &d) == FSI_OK && fsi_solver_solve(s, &y, b, x) == FSI_OK && p.solves == 1);
    CHECK(fsi_csr_multiply(NULL, &m.a, x, r) == FSI_OK);
    for (i = 0; i < 900; i++) CHECK_NEAR(r[i], b[i], 1e-6);
    y.max_iters = 2;
    x[0] = 77;
    CHECK(fsi_solver_solve(s, &y, b, x) == FSI_ERROR_CONVERGENCE && x[0] == 77);
    fsi_solver_destroy(s);
    peer_free(&m);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    PetscInitializeNoArguments();
    RUN(test_petsc_solves_what_fsi_solves);
    RUN(test_petsc_calls_the_operator);
    PetscFinalize();
    return TEST_END();
}
