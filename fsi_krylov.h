/* fsi_krylov.h - iterative solvers of symmetric systems: conjugate gradients, MINRES, incomplete factors
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_krylov.h"
         #include "fsi_krylov.h"

   A ROD OF 100 SPRINGS, BY CONJUGATE GRADIENTS
      int start[101], col[298], r, e = 0;
      double value[298], b[100] = { 0 }, x[100] = { 0 };          // x is the guess
      fsi_context ctx = fsi_default_context();
      fsi_csr a = { 100, 100, 1, start, col, value };             // tridiagonal: -1 2 -1
      fsi_krylov_desc d = fsi_krylov_default_desc();
      fsi_precond_desc f = fsi_precond_default_desc();           // incomplete Cholesky, MIC(0)
      fsi_krylov *k;
      fsi_precond *p;
      fsi_operator op, inverse;
      for (start[0] = r = 0; r < 100; start[++r] = e) {
          if (r > 0) { col[e] = r - 1; value[e++] = -1; }
          col[e] = r; value[e++] = 2;
          if (r < 99) { col[e] = r + 1; value[e++] = -1; }
      }
      b[99] = 101;
      d.context = f.context = &ctx;
      d.rows = 100;
      if (fsi_precond_create(&p, &a, &f) != FSI_OK || fsi_precond_factor(p, &a) != FSI_OK ||
          fsi_krylov_create(&k, &d) != FSI_OK) {
          puts(ctx.error.message);
          return 1;
      }
      op = fsi_csr_operator(&a);                                  // or a function of yours that applies A
      inverse = fsi_precond_operator(p);
      if (fsi_krylov_solve(k, &op, &inverse, b, x) != FSI_OK) puts(ctx.error.message);
      printf("%d iterations, x[0] = %g\n", k->stats.iters, x[0]); // 1
      fsi_krylov_destroy(k);
      fsi_precond_destroy(p);

   WHAT IT DOES
      fsi_krylov           conjugate gradients, of several right sides together, and MINRES, over any fsi_operator
      fsi_precond          preconditioners: Jacobi, block Jacobi, incomplete Cholesky IC(0) and MIC(0)
      fsi_krylov_iteration for fsi_solver_desc.iteration: systems without a matrix, and old factors as preconditioners
      All in double, whatever fsi_real is. Rows are tasks of the context's parallel_for, with the same bits for any
      number of threads; the triangular solves of incomplete factors run on one thread a column.
      IC(0) and MIC(0) read the upper triangle, products the whole. fsi_krylov_desc.rows counts numbers, not blocks.
   WHAT IT DOES NOT DO
      Unsymmetric matrices. Algebraic multigrid: docs/solve.md says why.
   MACROS: those of fsi.h.
   FIND IN HERE (search for >>)
      >>iteration  >>preconditioners  >>behind a solver, the API; then the implementation: >>iteration vectors
      >>iteration single columns  >>iteration block  >>iteration rounds  >>iteration interface
      >>preconditioners implementation  >>incomplete factors  >>preconditioners, made and applied
      >>iteration behind a solver
*/
#ifndef FSI_KRYLOV_H
#define FSI_KRYLOV_H

#include "fsi_solve.h"

/* ---- >>iteration ----------------------------------------------------------------------------------------------- */

typedef enum fsi_krylov_method {
    FSI_KRYLOV_CG,      /* conjugate gradients: A positive definite, or semidefinite with b in its range */
    FSI_KRYLOV_MINRES   /* minimal residuals: A symmetric, b in its range */
} fsi_krylov_method;

typedef struct fsi_krylov_desc {
    uint32_t cookie;
    fsi_context *context;       /* default NULL */
    fsi_krylov_method method;   /* default CG */
    int rows;                   /* numbers of a vector, as fsi_operator.n; default 0 */
    int columns;                /* right sides of a solve, 1 to 16, default 1. CG searches the sum of their spaces:
                                   fewer iterations, each of which reads A once, but with work of its own that grows
                                   with `columns` a number: it pays where A and M take some 100 operations a row or
                                   more. MINRES takes one after the other */
    int max_iters;              /* 0 or more, default 1000. CG: of all columns together, then of each that these left
                                   unsolved without using them up; MINRES: of each column */
    double tolerance;           /* default 1e-8: |b - A x| <= tolerance |b| in each column; 0 to 1 */
} fsi_krylov_desc;

typedef struct fsi_krylov_stats {
    int iters;                  /* of the last solve, those of all columns together counted once */
    int applied_a, applied_m;   /* vectors that A and M^-1 were applied to */
    double residual;            /* true |b - A x| / |b|, the largest of the columns; infinite when a solve failed before
                                   it was taken */
    double seconds;             /* by the clock hook */
} fsi_krylov_stats;

/* A solver's memory. Read everything; one solve at a time. */
typedef struct fsi_krylov {
    uint32_t cookie;
    fsi_context *context;
    fsi_krylov_desc desc;       /* as given; tolerance and max_iters may be changed between solves */
    fsi_krylov_stats stats;
    size_t bytes;               /* held: CG 6 columns, MINRES columns + 9 vectors of rows numbers */
    void *impl;
} fsi_krylov;

FSI_API fsi_krylov_desc fsi_krylov_default_desc(void); /* fills every field */
/* *out is NULL on failure. Errors: COOKIE, ARGUMENT or NAN (name the field), MEMORY. */
FSI_API fsi_status fsi_krylov_create(fsi_krylov **out, const fsi_krylov_desc *desc);
FSI_API void fsi_krylov_destroy(fsi_krylov *k); /* NULL is fine */
/* A x = b. m: y = M^-1 x, symmetric positive definite and like A^-1; NULL: none. b, x: columns * rows numbers, one
   column after the other; x is a guess on entry (0 saves an application of A). Allocates nothing. Errors: COOKIE,
   ARGUMENT; NAN (in b, x, or out of A or M) and what A or M return: x stays. CONVERGENCE (max_iters, or no progress:
   names the worst column) and SINGULAR (names the iteration: CG met a direction p with p^T A p < 0, or r^T M^-1 r < 0):
   x is the best iterate whose true residual was taken, perhaps the guess. b may have any scale; of A, squares are
   taken: NAN where its entries are above 1e150 (MINRES: 1e75), and MINRES gets nowhere where they are below 1e-100. */
FSI_API fsi_status fsi_krylov_solve(fsi_krylov *k, const fsi_operator *a, const fsi_operator *m, const double *b,
    double *x);

/* ---- >>preconditioners ---------------------------------------------------------------------------------------- */

/* Which M stands for A, symmetric and positive definite; MIC0 needs fewest iterations. `upper`: only entries with col
   >= row are read. Several threads help the incomplete factors only where there are several columns. */
typedef enum fsi_precond_kind {
    FSI_PRECOND_JACOBI,       /* the diagonal */
    FSI_PRECOND_BLOCK_JACOBI, /* the blocks on the diagonal */
    FSI_PRECOND_IC0,          /* upper: L L^T with the blocks of A's pattern, equal to A there (Meijerink and van der
                                 Vorst 1977) */
    FSI_PRECOND_MIC0          /* upper: the same, and dropped entries are added to the diagonal (Gustafsson 1978): keeps
                                 the sums of A's rows, for blocks but for the unsymmetric part of those that are
                                 dropped */
} fsi_precond_kind;

typedef struct fsi_precond_desc {
    uint32_t cookie;
    fsi_context *context;     /* default NULL */
    fsi_precond_kind kind;    /* default MIC0 */
    double modification;      /* MIC0: fraction of the dropped entries that is added to the diagonal, 0 to 1, default
                                 0.97 */
} fsi_precond_desc;

typedef struct fsi_precond_stats {
    double shift;             /* IC0, MIC0: times A's diagonal, added to it for all pivots to be positive; mostly 0 */
    double entries;           /* numbers of M^-1, which one application reads once or twice */
    size_t bytes;             /* held */
    double seconds;           /* of the last factorisation, by the clock hook */
} fsi_precond_stats;

/* M^-1, or at first only its memory. Read everything. */
typedef struct fsi_precond {
    uint32_t cookie;
    fsi_context *context;
    fsi_precond_desc desc;    /* as given */
    int rows, block;
    int factored;             /* 1: the operator may be applied */
    fsi_precond_stats stats;
    void *impl;
} fsi_precond;

FSI_API fsi_precond_desc fsi_precond_default_desc(void); /* fills every field */
/* Analyses the pattern of the whole of A; values are not read. A is not kept. *out is NULL on failure. Errors:
   COOKIE, ARGUMENT (names the row: no diagonal, or an entry without its mirror image), LIMIT, MEMORY. */
FSI_API fsi_status fsi_precond_create(fsi_precond **out, const fsi_csr *a, const fsi_precond_desc *desc);
FSI_API void fsi_precond_destroy(fsi_precond *p); /* NULL is fine */
/* M for new values on the same pattern. Allocates nothing. Errors: COOKIE, ARGUMENT (another pattern), NAN and SINGULAR
   (name the row: its diagonal or block is not positive definite; IC0, MIC0: no shift helps); then there is no M any
   more. */
FSI_API fsi_status fsi_precond_factor(fsi_precond *p, const fsi_csr *a);
/* y = M^-1 x, linear, symmetric, positive definite. p must outlive it. Errors of apply: COOKIE, ARGUMENT, NAN (names
   the first number of y that is not finite; y is spoilt). */
FSI_API fsi_operator fsi_precond_operator(fsi_precond *p);

/* ---- >>behind a solver ------------------------------------------------------------------------------------------ */

/* For fsi_solver_desc.iteration: CG where the system is POSITIVE, else MINRES. */
FSI_API const fsi_iteration *fsi_krylov_iteration(void);

#endif /* FSI_KRYLOV_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_KRYLOV_IMPLEMENTATION
#define FSI_KRYLOV_IMPLEMENTATION
#endif
#ifdef FSI_KRYLOV_IMPLEMENTATION
#ifndef FSI_KRYLOV_IMPLEMENTATION_DONE
#define FSI_KRYLOV_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_solve.h"

FSI__STRICT_BEGIN

/* ---- >>iteration vectors ------------------------------------------------------------------------------------------

   Each pass over vectors runs in chunks of FSI__KRYLOV_CHUNK rows. A chunk's sums go to a place of their own and are
   folded in the order of the chunks: the same bits for any number of threads. */
#define FSI__KRYLOV_CHUNK 2048
#define FSI__KRYLOV_MOST 16 /* columns */
#define FSI__KRYLOV_TILE 64 /* rows whose columns stay in the first cache */
#define FSI__KRYLOV_PAIRS (FSI__KRYLOV_MOST * (FSI__KRYLOV_MOST + 1) / 2)

typedef double fsi__krylov_matrix[FSI__KRYLOV_MOST][FSI__KRYLOV_MOST];

/* Of a solve the columns 0 .. count - 1 are in work: those of b and x with number column[j], their vectors side by side
   in d, r, q, p, z. */
typedef struct fsi__krylov_impl {
    fsi__arena memory;
    double *x;                          /* best iterate of each column of b */
    double *d, *r, *q, *p, *z;          /* with x + sigma d the iterate, sigma r its residual; A times something;
                                           direction; M^-1 r */
    double *v, *v_old, *z_next, *w, *w_old; /* MINRES: Lanczos vectors, M^-1 v, directions */
    double *sum;                        /* sums of chunks */
    const fsi_operator *a, *m;
    const double *b;
    int count, column[FSI__KRYLOV_MOST];
    double sigma[FSI__KRYLOV_MOST], target[FSI__KRYLOV_MOST]; /* stop when |r| <= target */
    double norm[FSI__KRYLOV_MOST];                            /* |r| */
    double b_big[FSI__KRYLOV_MOST], b_norm[FSI__KRYLOV_MOST]; /* largest |entry| of b's columns; norm of b over that */
    double residual[FSI__KRYLOV_MOST];                        /* true |b - A x| / |b| of x's columns */
    double stiffest, a_norm;                                  /* largest p^T A p / p^T M p and |A p| / |p| met */
    int limit;                                                /* of stats.iters */
    fsi_status verdict;                                       /* SINGULAR: the matrices are not what they should be */
} fsi__krylov_impl;

typedef struct fsi__krylov_job {
    const double *x, *u;
    double *y, *d, *sum;
    double a, b, c, e;
} fsi__krylov_job;

/* y = a x + b y; sum y^2. */
static void fsi__krylov_combine_rows(void *arg, int chunk, int begin, int end)
{
    const fsi__krylov_job *j = (const fsi__krylov_job *)arg;
    const double *x = j->x, a = j->a, b = j->b;
    double *y = j->y;
    int i;
    for (i = begin; i < end; i++) y[i] = a * x[i] + b * y[i];
    j->sum[chunk] = fsi__dot(y + begin, y + begin, end - begin);
}

/* y = a x + b u + c y; d += e y when there is a d; sum d^2 or y^2. */
static void fsi__krylov_three_rows(void *arg, int chunk, int begin, int end)
{
    const fsi__krylov_job *j = (const fsi__krylov_job *)arg;
    const double *x = j->x, *u = j->u, a = j->a, b = j->b, c = j->c, e = j->e;
    double *y = j->y, *d = j->d;
    int i;
    for (i = begin; i < end; i++) y[i] = (a * x[i] + b * u[i]) + c * y[i];
    if (d) for (i = begin; i < end; i++) d[i] += e * y[i];
    j->sum[chunk] = fsi__dot((d ? d : y) + begin, (d ? d : y) + begin, end - begin);
}

/* d += a y; y = x + b y; sum d^2. */
static void fsi__krylov_turn_rows(void *arg, int chunk, int begin, int end)
{
    const fsi__krylov_job *j = (const fsi__krylov_job *)arg;
    const double *x = j->x, a = j->a, b = j->b;
    double *y = j->y, *d = j->d;
    int i;
    for (i = begin; i < end; i++) {
        const double old = y[i];
        d[i] += a * old;
        y[i] = x[i] + b * old;
    }
    j->sum[chunk] = fsi__dot(d + begin, d + begin, end - begin);
}

/* y = x / a; sum y^2. */
static void fsi__krylov_shrink_rows(void *arg, int chunk, int begin, int end)
{
    const fsi__krylov_job *j = (const fsi__krylov_job *)arg;
    int i;
    for (i = begin; i < end; i++) j->y[i] = j->x[i] / j->a;
    j->sum[chunk] = fsi__dot(j->y + begin, j->y + begin, end - begin);
}

/* Sums x u, x^2 and u^2. */
static void fsi__krylov_dots_rows(void *arg, int chunk, int begin, int end)
{
    const fsi__krylov_job *j = (const fsi__krylov_job *)arg;
    j->sum[3 * chunk] = fsi__dot(j->x + begin, j->u + begin, end - begin);
    j->sum[3 * chunk + 1] = fsi__dot(j->x + begin, j->x + begin, end - begin);
    j->sum[3 * chunk + 2] = fsi__dot(j->u + begin, j->u + begin, end - begin);
}

/* The largest |x|; NaN when one is not finite. */
static double fsi__krylov_peak(const double *x, int n)
{
    double big = 0, poison = 0;
    int i;
    for (i = 0; i < n; i++) {
        big = fabs(x[i]) > big ? fabs(x[i]) : big;
        poison += x[i] - x[i];
    }
    return big + poison;
}

static void fsi__krylov_peak_rows(void *arg, int chunk, int begin, int end)
{
    const fsi__krylov_job *j = (const fsi__krylov_job *)arg;
    j->sum[chunk] = fsi__krylov_peak(j->x + begin, end - begin);
}

static fsi__krylov_impl *fsi__krylov_of(const fsi_krylov *k) { return (fsi__krylov_impl *)k->impl; }

/* out[i]: the i-th of the `sums` sums of all chunks. */
static void fsi__krylov_fold(const fsi_krylov *k, int sums, double *out)
{
    const double *sum = fsi__krylov_of(k)->sum;
    int c, i;
    for (i = 0; i < sums; i++) out[i] = 0;
    for (c = 0; c < fsi__chunks(k->desc.rows, FSI__KRYLOV_CHUNK); c++) for (i = 0; i < sums; i++)
        out[i] += sum[c * sums + i];
}

static fsi__krylov_job fsi__krylov_job_of(const fsi_krylov *k, double *y, double a, const double *x, double b)
{
    fsi__krylov_job job;
    memset(&job, 0, sizeof job);
    job.y = y;
    job.x = x;
    job.a = a;
    job.b = b;
    job.sum = fsi__krylov_of(k)->sum;
    return job;
}

/* Nanoseconds a row at least: of a pass over vectors, of one that only reads, and of a term in a block's pass.
   fsi__parallel_work */
#define FSI__KRYLOV_NS 0.8
#define FSI__KRYLOV_NS_READ 0.4
#define FSI__KRYLOV_NS_TERM 0.15

static void fsi__krylov_run(const fsi_krylov *k, double work, fsi__range_fn *rows, void *job)
{
    fsi__parallel_work(k->context, k->desc.rows, FSI__KRYLOV_CHUNK, work * k->desc.rows, rows, job);
}

/* Runs the pass; returns the first sum. */
static double fsi__krylov_pass(const fsi_krylov *k, fsi__range_fn *rows, fsi__krylov_job *job)
{
    double sum;
    fsi__krylov_run(k, FSI__KRYLOV_NS, rows, job);
    fsi__krylov_fold(k, 1, &sum);
    return sum;
}

static double fsi__krylov_combine(const fsi_krylov *k, double *y, double a, const double *x, double b)
{
    fsi__krylov_job job = fsi__krylov_job_of(k, y, a, x, b);
    return fsi__krylov_pass(k, fsi__krylov_combine_rows, &job);
}

static double fsi__krylov_three(const fsi_krylov *k, double *y, double a, const double *x, double b, const double *u,
    double c, double *d, double e)
{
    fsi__krylov_job job = fsi__krylov_job_of(k, y, a, x, b);
    job.u = u;
    job.c = c;
    job.d = d;
    job.e = e;
    return fsi__krylov_pass(k, fsi__krylov_three_rows, &job);
}

/* sum: x u, x x, u u. */
static void fsi__krylov_dots(const fsi_krylov *k, const double *x, const double *u, double *sum)
{
    fsi__krylov_job job = fsi__krylov_job_of(k, NULL, 0, x, 0);
    job.u = u;
    fsi__krylov_run(k, FSI__KRYLOV_NS, fsi__krylov_dots_rows, &job);
    fsi__krylov_fold(k, 3, sum);
}

static double fsi__krylov_largest(const fsi_krylov *k, const double *x)
{
    fsi__krylov_job job = fsi__krylov_job_of(k, NULL, 0, x, 0);
    fsi__krylov_run(k, FSI__KRYLOV_NS_READ, fsi__krylov_peak_rows, &job);
    return fsi__krylov_peak(job.sum, fsi__chunks(k->desc.rows, FSI__KRYLOV_CHUNK));
}

/* y = x / scale; returns |y|. */
static double fsi__krylov_shrink(const fsi_krylov *k, double *y, const double *x, double scale)
{
    fsi__krylov_job job = fsi__krylov_job_of(k, y, scale, x, 0);
    return sqrt(fsi__krylov_pass(k, fsi__krylov_shrink_rows, &job));
}

/* ---- >>iteration single columns ---------------------------------------------------------------------------------- */

static const char *const fsi__krylov_solve_name = "fsi_krylov_solve";

/* y = A x or M^-1 x. */
static fsi_status fsi__krylov_apply(fsi_krylov *k, const fsi_operator *o, const double *x, double *y, int columns)
{
    const int is_a = o == fsi__krylov_of(k)->a;
    *(is_a ? &k->stats.applied_a : &k->stats.applied_m) += columns;
    return fsi__operate(k->context, fsi__krylov_solve_name, o, x, y, columns, is_a ? "A" : "M");
}

static fsi_status fsi__krylov_not_finite(fsi_krylov *k)
{
    return fsi__fail(k->context, FSI_ERROR_NAN, fsi__krylov_solve_name, k->stats.iters, 0,
        "iteration %d: the result of A or M is not finite, or its square is not", k->stats.iters);
}

/* z = M^-1 r; *rz = r z, or 0 when it is 0 to rounding. */
static fsi_status fsi__krylov_precondition(fsi_krylov *k, const double *r, double *z, double rr, double *rz)
{
    const fsi_operator *m = fsi__krylov_of(k)->m;
    double sum[3];
    *rz = rr;
    if (!m) return FSI_OK;
    FSI__TRY(fsi__krylov_apply(k, m, r, z, 1));
    fsi__krylov_dots(k, z, r, sum);
    *rz = sum[0];
    if (!fsi_is_finite(*rz) || !fsi_is_finite(sum[1])) return fsi__krylov_not_finite(k);
    if (*rz < -1e-12 * sqrt(rr) * sqrt(sum[1]))
        fsi__krylov_of(k)->verdict = fsi__fail(k->context, FSI_ERROR_SINGULAR, fsi__krylov_solve_name, k->stats.iters,
            *rz, "iteration %d: M is not positive definite: r^T M^-1 r is %g for a residual of %g", k->stats.iters,
            *rz, sqrt(rr));
    if (*rz < 0) *rz = 0;
    return FSI_OK;
}

/* q = A p, and sum: p q, p p, q q. */
static fsi_status fsi__krylov_product(fsi_krylov *k, const double *p, double *q, double *sum)
{
    fsi__krylov_impl *im = fsi__krylov_of(k);
    FSI__TRY(fsi__krylov_apply(k, im->a, p, q, 1));
    fsi__krylov_dots(k, p, q, sum);
    if (!fsi_is_finite(sum[0]) || !fsi_is_finite(sum[2])) return fsi__krylov_not_finite(k);
    if (sqrt(sum[2]) > im->a_norm * sqrt(sum[1])) im->a_norm = sqrt(sum[2]) / sqrt(sum[1]);
    return FSI_OK;
}

/* A| |d|, put|Is the drift between the recurrence's residual and the true one, eps |A| |d|, as large as the residual
   itself (Greenbaum 1997)? Then further iterations gain nothing. Where b is not in the range of A, d grows until this
   ends it. */
static int fsi__krylov_drifted(const fsi_krylov *k, double dd, double left)
{
    return 2.2e-16 * fsi__krylov_of(k)->a_norm * sqrt(dd) > left;
}

/* 1: p may be searched. p^T M p = r^T z + beta^2 (the same of the last p), as r is orthogonal to that (Steihaug 1983),
   so the curvature p^T A p / p^T M p lies within the spectrum of M^-1 A. Below it is compared with the largest one
   met. */
static int fsi__krylov_curves(fsi_krylov *k, double pap, double pmp)
{
    fsi__krylov_impl *im = fsi__krylov_of(k);
    const double curvature = pap / pmp;
    if (fabs(curvature) > im->stiffest) im->stiffest = fabs(curvature);
    if (curvature < -1e-12 * im->stiffest)
        im->verdict = fsi__fail(k->context, FSI_ERROR_SINGULAR, fsi__krylov_solve_name, k->stats.iters, curvature,
            "iteration %d: A is not positive definite: its curvature along the direction is %g", k->stats.iters,
            curvature);
    return pap > 0;
}

/* Conjugate gradients (Hestenes and Stiefel 1952), preconditioned:
       p = z + beta p, beta = r z / (r z before);  alpha = r z / p A p;  d += alpha p;  r -= alpha A p;  z = M^-1 r.
   d waits for the next turn of p, which reads p anyway. */
static fsi_status fsi__krylov_cg(fsi_krylov *k)
{
    fsi__krylov_impl *im = fsi__krylov_of(k);
    double *d = im->d, *r = im->r, *p = im->p, *q = im->q, *z = im->m ? im->z : r;
    double rr = im->norm[0] * im->norm[0], rz, before = 0, alpha = 0, pmp = 0, dd = 0, sum[3];
    memset(p, 0, (size_t)k->desc.rows * sizeof *p);
    while (sqrt(rr) > im->target[0] && k->stats.iters < im->limit && !fsi__krylov_drifted(k, dd, sqrt(rr))) {
        fsi__krylov_job job;
        double beta;

        /* z = M^-1 r and the new direction; the same pass adds the last one to d. */
        FSI__TRY(fsi__krylov_precondition(k, r, z, rr, &rz));
        if (!(rz > 0) || im->verdict != FSI_OK) break;
        beta = before > 0 ? rz / before : 0;
        before = rz;
        pmp = rz + beta * beta * pmp;
        job = fsi__krylov_job_of(k, p, alpha, z, beta);
        job.d = d;
        dd = fsi__krylov_pass(k, fsi__krylov_turn_rows, &job);
        alpha = 0;

        /* q = A p, the step along p, the new residual. */
        FSI__TRY(fsi__krylov_product(k, p, q, sum));
        if (!fsi_is_finite(pmp)) return fsi__krylov_not_finite(k);
        if (!fsi__krylov_curves(k, sum[0], pmp)) break;
        alpha = rz / sum[0];
        rr = fsi__krylov_combine(k, r, -alpha, q, 1);
        if (!fsi_is_finite(rr)) return fsi__krylov_not_finite(k);
        k->stats.iters++;
    }
    fsi__krylov_combine(k, d, alpha, p, 1);
    return FSI_OK;
}

/* The rotation that MINRES is about to make, and those before. */
typedef struct fsi__krylov_turns { double c, c_old, s, s_old; } fsi__krylov_turns;

/* Minimal residuals (Paige and Saunders 1975), the Lanczos vectors v orthonormal in M^-1 as in Elman, Silvester and
   Wathen (2014, 4.1):
       v_new = A z / g - (zAz / g^3) v - (g / g_old) v_old,   z_new = M^-1 v_new,   g_new^2 = v_new z_new,
   a rotation a step makes the tridiagonal matrix triangular, with the columns (.., a3, a2, a1):
       w_new = (z / g - a3 w_old - a2 w) / a1,   d += c eta w_new,   eta_new = -s eta = +-|r| in the norm of M^-1,
   and the residual itself, for its 2-norm, follows by r_new = s^2 r + (c eta_new / g_new) v_new.
   x follows its recurrence less closely than that of CG (Sleijpen, van der Vorst and Modersitzki 2000), so drift counts
   a hundredfold. */
static fsi_status fsi__krylov_minres(fsi_krylov *k)
{
    fsi__krylov_impl *im = fsi__krylov_of(k);
    const size_t bytes = (size_t)k->desc.rows * sizeof(double);
    double *v = im->v, *v_old = im->v_old, *z = im->m ? im->z : v, *z_next = im->z_next, *w = im->w,
        *w_old = im->w_old, *q = im->q, *t;
    double g = 0, g_old = 1, g_new, gg, vv, delta, eta, dd = 0, sum[3], left = im->norm[0];
    fsi__krylov_turns turn = { 1, 1, 0, 0 };
    fsi_status status;

    /* The first Lanczos vector. */
    memcpy(v, im->r, bytes);
    memset(v_old, 0, bytes);
    memset(w, 0, bytes);
    memset(w_old, 0, bytes);
    status = fsi__krylov_precondition(k, v, z, left * left, &gg);
    g = eta = sqrt(gg);
    while (status == FSI_OK && im->verdict == FSI_OK && g > 0 && left > im->target[0] && k->stats.iters < im->limit
        && !fsi__krylov_drifted(k, dd, 0.01 * left)) {
        double a0, a1, a2, a3, c, s;
        status = fsi__krylov_product(k, z, q, sum);
        if (status != FSI_OK) break;

        /* The next Lanczos vector. */
        delta = sum[0] / g / g;
        vv = fsi__krylov_three(k, v_old, 1 / g, q, -delta / g, v, -g / g_old, NULL, 0);
        if (!fsi_is_finite(delta) || !fsi_is_finite(vv)) return fsi__krylov_not_finite(k);
        t = v, v = v_old, v_old = t;
        if (!im->m) z_next = v;
        status = fsi__krylov_precondition(k, v, z_next, vv, &gg);
        if (status != FSI_OK || im->verdict != FSI_OK) break;

        /* The rotation that makes the new column triangular. */
        g_new = sqrt(gg);
        a0 = turn.c * delta - turn.c_old * turn.s * g;
        a2 = turn.s * delta + turn.c_old * turn.c * g;
        a3 = turn.s_old * g;
        a1 = sqrt(a0 * a0 + gg);
        if (!(a1 > 0)) break; /* A r = 0 */
        c = a0 / a1;
        s = g_new / a1;

        /* The direction, the solution, the residual. */
        dd = fsi__krylov_three(k, w_old, 1 / (g * a1), z, -a2 / a1, w, -a3 / a1, im->d, c * eta);
        t = w, w = w_old, w_old = t;
        eta *= -s;
        left = fabs(eta);
        if (im->m) left = g_new > 0 ? sqrt(fsi__krylov_combine(k, im->r, c * eta / g_new, v, s * s)) : 0;

        /* The next turn. */
        turn.c_old = turn.c, turn.c = c;
        turn.s_old = turn.s, turn.s = s;
        g_old = g, g = g_new;
        t = z, z = z_next, z_next = t;
        k->stats.iters++;
    }
    return status;
}

/* ---- >>iteration block -------------------------------------------------------------------------------------------

   Several right sides search together: after i iterations each column is the best within the sum of all columns' Krylov
   spaces (block conjugate gradients, O'Leary 1980), so it needs fewer iterations. The plain method breaks down: its t x
   t matrices become singular when residuals grow dependent, as they do when right sides are, or when one converges
   first. The remedy (Dubrulle 2001) is to carry the residuals R as a basis times coefficients,

        R = Q C,   Q (n x t) orthonormal in M^-1,   C (t x s) small:        all that is tiny or dependent is in C,

   P spans the directions and the steps are
        alpha = (P^T A P)^-1                     P^T Q = 1, for P = M^-1 Q + P_old rho^T and P_old is orthogonal to Q
        X += P alpha C
        W = Q - A P alpha                        R = W C now, to be made orthonormal again:
        W = Q_new rho,  C_new = rho C            pivoted Cholesky of W^T M^-1 W = rho^T rho
        P_new = M^-1 Q_new + P rho^T
   Where the pivots of the Cholesky factorisation end, the rest of W depends on the columns before; they are dropped and
   t is less from then on. Their part, 1e-7 of a residual at worst, is lost until the true residual is computed, at the
   next round. */
#define FSI__KRYLOV_DEPENDENT 1e-13 /* a pivot below this part of its diagonal is 0 */

/* out += in c for `rows` rows: column j of out gets the columns of in times c[..][j]. */
static void fsi__krylov_tile(int rows, int inner, int cols, const double *in, size_t stride,
    double (*c)[FSI__KRYLOV_MOST], double *out, size_t out_stride)
{
    int i, j, k;
    for (j = 0; j < cols; j++) {
        double *y = out + (size_t)j * out_stride;
        for (k = 0; k + 4 <= inner; k += 4) {
            const double *x = in + (size_t)k * stride, *x1 = x + stride, *x2 = x1 + stride, *x3 = x2 + stride;
            const double c0 = c[k][j], c1 = c[k + 1][j], c2 = c[k + 2][j], c3 = c[k + 3][j];
            for (i = 0; i < rows; i++) y[i] += (c0 * x[i] + c1 * x1[i]) + (c2 * x2[i] + c3 * x3[i]);
        }
        for (; k < inner; k++) {
            const double *x = in + (size_t)k * stride, c0 = c[k][j];
            for (i = 0; i < rows; i++) y[i] += c0 * x[i];
        }
    }
}

/* The matrices of a round, named as above. mix: W mix = Q; gamma: alpha C; rho_t: rho^T. */
typedef struct fsi__krylov_block_job {
    const fsi__krylov_impl *im;
    const double *x, *y;
    double *sum;
    int rows, s, wide, turned, rank; /* columns of d, W, P and the next Q */
    fsi__krylov_matrix alpha, gamma, mix, rho, rho_t, c, gram;
} fsi__krylov_block_job;

/* The lower triangle of x^T y. */
static void fsi__krylov_gram_rows(void *arg, int chunk, int begin, int end)
{
    const fsi__krylov_block_job *job = (const fsi__krylov_block_job *)arg;
    const size_t n = (size_t)job->rows;
    double *sum = job->sum + chunk * FSI__KRYLOV_PAIRS;
    int i, j, at, from;
    memset(sum, 0, FSI__KRYLOV_PAIRS * sizeof *sum);
    for (from = begin; from < end; from += FSI__KRYLOV_TILE) {
        const int rows = end - from < FSI__KRYLOV_TILE ? end - from : FSI__KRYLOV_TILE;
        for (i = 0, at = 0; i < job->wide; i++) for (j = 0; j <= i; j++)
            sum[at++] += fsi__dot(job->x + (size_t)i * n + from, job->y + (size_t)j * n + from, rows);
    }
}

/* W = Q - A P alpha, then W^T W. */
static void fsi__krylov_descend_rows(void *arg, int chunk, int begin, int end)
{
    const fsi__krylov_block_job *job = (const fsi__krylov_block_job *)arg;
    const size_t n = (size_t)job->rows;
    fsi__krylov_matrix minus;
    int i, j, from;
    for (i = 0; i < job->turned; i++) for (j = 0; j < job->wide; j++) minus[i][j] = -job->alpha[i][j];
    for (from = begin; from < end; from += FSI__KRYLOV_TILE)
        fsi__krylov_tile(end - from < FSI__KRYLOV_TILE ? end - from : FSI__KRYLOV_TILE, job->turned, job->wide,
            job->im->q + from, n, minus, job->im->r + from, n);
    fsi__krylov_gram_rows(arg, chunk, begin, end);
}

static void fsi__krylov_store(double *out, size_t stride, double (*in)[FSI__KRYLOV_TILE], int rows, int columns)
{
    int j;
    for (j = 0; j < columns; j++) memcpy(out + (size_t)j * stride, in[j], (size_t)rows * sizeof(double));
}

/* d += P gamma, Q = W mix, P = M^-1 Q + P rho^T. */
static void fsi__krylov_advance_rows(void *arg, int chunk, int begin, int end)
{
    fsi__krylov_block_job *job = (fsi__krylov_block_job *)arg;
    const fsi__krylov_impl *im = job->im;
    const size_t n = (size_t)job->rows;
    int from;
    (void)chunk;
    for (from = begin; from < end; from += FSI__KRYLOV_TILE) {
        double q[FSI__KRYLOV_MOST][FSI__KRYLOV_TILE] = { { 0 } }, p[FSI__KRYLOV_MOST][FSI__KRYLOV_TILE] = { { 0 } };
        const int rows = end - from < FSI__KRYLOV_TILE ? end - from : FSI__KRYLOV_TILE;
        fsi__krylov_tile(rows, job->wide, job->rank, im->r + from, n, job->mix, q[0], FSI__KRYLOV_TILE);
        if (im->m) fsi__krylov_tile(rows, job->wide, job->rank, im->z + from, n, job->mix, p[0], FSI__KRYLOV_TILE);
        else memcpy(p, q, sizeof p);
        fsi__krylov_tile(rows, job->turned, job->s, im->p + from, n, job->gamma, im->d + from, n);
        fsi__krylov_tile(rows, job->turned, job->rank, im->p + from, n, job->rho_t, p[0], FSI__KRYLOV_TILE);
        fsi__krylov_store(im->r + from, n, q, rows, job->rank);
        fsi__krylov_store(im->p + from, n, p, rows, job->rank);
    }
}

/* job->gram = x^T y after the pass. Returns 0 when it is not finite. */
static int fsi__krylov_gram(const fsi_krylov *k, fsi__krylov_block_job *job, const double *x, const double *y,
    fsi__range_fn *pass)
{
    double sum[FSI__KRYLOV_PAIRS];
    int i, j, at = 0, good = 1;
    job->x = x;
    job->y = y;
    fsi__krylov_run(k, FSI__KRYLOV_NS_TERM * job->wide * (job->wide + 1), pass, job);
    fsi__krylov_fold(k, FSI__KRYLOV_PAIRS, sum);
    for (i = 0; i < job->wide; i++) for (j = 0; j <= i; j++, at++) {
        good &= fsi_is_finite(sum[at]);
        job->gram[i][j] = job->gram[j][i] = sum[at];
    }
    return good;
}

/* out = a b: rows x inner times inner x cols; out apart. */
static void fsi__krylov_multiply(double (*out)[FSI__KRYLOV_MOST], double (*a)[FSI__KRYLOV_MOST],
    double (*b)[FSI__KRYLOV_MOST], int rows, int inner, int cols)
{
    int i, j, k;
    for (i = 0; i < rows; i++) for (j = 0; j < cols; j++) {
        out[i][j] = 0;
        for (k = 0; k < inner; k++) out[i][j] += a[i][k] * b[k][j];
    }
}

/* gram = rho^T rho (t x t), rho of rank x t, by Cholesky with the largest remaining pivot, relative to its diagonal,
   next; and mix with mix^T gram mix = 1. Returns the rank. Directions along which gram is not positive are left out. */
static int fsi__krylov_rank(int t, double (*gram)[FSI__KRYLOV_MOST], double (*rho)[FSI__KRYLOV_MOST],
    double (*mix)[FSI__KRYLOV_MOST])
{
    double left[FSI__KRYLOV_MOST];
    int pivot[FSI__KRYLOV_MOST], chosen[FSI__KRYLOV_MOST] = { 0 }, rank, i, j, l;
    memset(rho, 0, sizeof(fsi__krylov_matrix));
    memset(mix, 0, sizeof(fsi__krylov_matrix));

    /* Pivot after pivot, by what is left of each diagonal entry relative to its beginning. */
    for (j = 0; j < t; j++) left[j] = gram[j][j] > 0 ? 1 : 0;
    for (rank = 0; rank < t; rank++) {
        double root;
        int best = -1;
        for (j = 0; j < t; j++) if (!chosen[j] && left[j] > FSI__KRYLOV_DEPENDENT && (best < 0 || left[j] > left[best]))
            best = j;
        if (best < 0) break;
        root = sqrt(left[best] * gram[best][best]);
        pivot[rank] = best;
        chosen[best] = 1;
        rho[rank][best] = root;
        for (j = 0; j < t; j++) if (!chosen[j] && gram[j][j] > 0) {
            double sum = gram[best][j];
            for (l = 0; l < rank; l++) sum -= rho[l][best] * rho[l][j];
            rho[rank][j] = sum / root;
            left[j] -= rho[rank][j] / gram[j][j] * rho[rank][j];
        }
    }

    /* mix: the inverse of rho's pivot columns, a triangle. */
    for (j = 0; j < rank; j++) for (i = j; i >= 0; i--) {
        double sum = i == j;
        for (l = i + 1; l <= j; l++) sum -= rho[i][pivot[l]] * mix[pivot[l]][j];
        mix[pivot[i]][j] = sum / rho[i][pivot[i]];
    }
    return rank;
}

/* Do all columns of R = W C have |r| <= target? gram is W^T W. */
static int fsi__krylov_arrived(fsi__krylov_block_job *job)
{
    int i, j, l;
    for (j = 0; j < job->s; j++) {
        double sum = 0;
        for (i = 0; i < job->wide; i++) for (l = 0; l < job->wide; l++)
            sum += job->c[i][j] * job->gram[i][l] * job->c[l][j];
        if (sum > job->im->target[j] * job->im->target[j]) return 0;
    }
    return 1;
}

/* M^-1 W, then rho, mix and C for W = Q rho, Q = W mix. gram is W^T W. */
static fsi_status fsi__krylov_orthonormal(fsi_krylov *k, fsi__krylov_block_job *job)
{
    fsi__krylov_impl *im = fsi__krylov_of(k);
    fsi__krylov_matrix before;
    int i, j;
    if (im->m) {
        FSI__TRY(fsi__krylov_apply(k, im->m, im->r, im->z, job->wide));
        if (!fsi__krylov_gram(k, job, im->r, im->z, fsi__krylov_gram_rows)) return fsi__krylov_not_finite(k);
    }
    job->rank = fsi__krylov_rank(job->wide, job->gram, job->rho, job->mix);
    for (i = 0; i < job->rank; i++) for (j = 0; j < job->wide; j++) job->rho_t[j][i] = job->rho[i][j];
    memcpy(before, job->c, sizeof before);
    fsi__krylov_multiply(job->c, job->rho, before, job->rank, job->wide, job->s);
    return FSI_OK;
}

/* Iterations until all columns have converged, or one has no search direction that is independent of the others. The
   last update of d is added by the pass of the next iteration, or by one in which Q ends. */
static fsi_status fsi__krylov_block(fsi_krylov *k)
{
    fsi__krylov_impl *im = fsi__krylov_of(k);
    fsi__krylov_block_job job;
    int i, j, good, terms, full = 1;

    /* All columns of r are directions at first. */
    memset(&job, 0, sizeof job);
    job.im = im;
    job.sum = im->sum;
    job.rows = k->desc.rows;
    job.s = job.wide = im->count;
    for (i = 0; i < job.s; i++) job.c[i][i] = 1;
    good = fsi__krylov_gram(k, &job, im->r, im->r, fsi__krylov_gram_rows);
    for (;;) {
        fsi_status status = good ? FSI_OK : fsi__krylov_not_finite(k);

        /* p and the last update of d; the pass also ends in rank 0. */
        job.rank = 0;
        if (status == FSI_OK && full && k->stats.iters < im->limit && !fsi__krylov_arrived(&job))
            status = fsi__krylov_orthonormal(k, &job);
        if (status != FSI_OK) return status;
        terms = (job.wide + job.turned) * job.rank + job.turned * job.s;
        fsi__krylov_run(k, FSI__KRYLOV_NS_TERM * terms, fsi__krylov_advance_rows, &job);
        if (job.rank == 0) return FSI_OK;
        job.turned = job.wide = job.rank;

        /* Q = A P and the step; then the new residuals. */
        FSI__TRY(fsi__krylov_apply(k, im->a, im->p, im->q, job.wide));
        if (!fsi__krylov_gram(k, &job, im->p, im->q, fsi__krylov_gram_rows)) return fsi__krylov_not_finite(k);
        job.rank = fsi__krylov_rank(job.wide, job.gram, job.rho, job.mix);
        full = job.rank == job.wide;
        for (i = 0; i < job.rank; i++) for (j = 0; j < job.wide; j++) job.rho_t[i][j] = job.mix[j][i];
        fsi__krylov_multiply(job.alpha, job.mix, job.rho_t, job.wide, job.rank, job.wide);
        fsi__krylov_multiply(job.gamma, job.alpha, job.c, job.wide, job.wide, job.s);
        good = fsi__krylov_gram(k, &job, im->r, im->r, fsi__krylov_descend_rows);
        k->stats.iters++;
    }
}

/* ---- >>iteration rounds ------------------------------------------------------------------------------------------

   A recurrence's residual drifts from the true one, b - A x. So each round of a method solves A d = r / sigma with
   sigma the largest entry of the true r, which also keeps squares within range, and ends with x + sigma d, whose true
   residual is the next r. It replaces x where it is better. A column that a round did not bring down to half its
   residual is given up. */

/* The true residual of x + sigma d in each active column; columns that have converged or stagnated become inactive. */
static fsi_status fsi__krylov_measure(fsi_krylov *k, int first)
{
    fsi__krylov_impl *im = fsi__krylov_of(k);
    const size_t n = (size_t)k->desc.rows;
    fsi_status status = FSI_OK;
    int j, kept = 0, zero = 1;

    /* d becomes x + sigma d, q becomes A of that. */
    for (j = 0; j < im->count; j++) {
        double *d = im->d + (size_t)j * n;
        const double *x = im->x + (size_t)im->column[j] * n;
        double big;
        fsi__krylov_combine(k, d, 1, x, im->sigma[j]);
        big = fsi__krylov_largest(k, d);
        if (!fsi_is_finite(big)) memcpy(d, x, n * sizeof *d);
        zero &= big == 0;
    }
    if (zero) memset(im->q, 0, (size_t)im->count * n * sizeof(double));
    else status = fsi__krylov_apply(k, im->a, im->d, im->q, im->count);
    if (status != FSI_OK) return status;

    /* The residuals; columns that are worth another round move up. */
    for (j = 0; j < im->count; j++) {
        const int c = im->column[j];
        const double *d = im->d + (size_t)j * n;
        double *q = im->q + (size_t)j * n, sigma, norm, residual;
        fsi__krylov_combine(k, q, 1, im->b + (size_t)c * n, -1);
        sigma = fsi__krylov_largest(k, q);
        if (!fsi_is_finite(sigma)) return fsi__krylov_not_finite(k);
        norm = sigma > 0 ? fsi__krylov_shrink(k, im->r + (size_t)kept * n, q, sigma) : 0;
        residual = sigma / im->b_big[c] * (norm / im->b_norm[c]);
        if (residual > k->desc.tolerance && (first || residual <= 0.5 * im->residual[c])) {
            im->sigma[kept] = sigma;
            im->norm[kept] = norm;
            im->target[kept] = k->desc.tolerance / residual * norm;
            im->column[kept++] = c;
        }

        /* Take the iterate where it is better than the last one. */
        if (!first && !(residual < im->residual[c])) continue;
        memcpy(im->x + (size_t)c * n, d, n * sizeof *d);
        im->residual[c] = residual;
    }
    im->count = kept;
    memset(im->d, 0, (size_t)kept * n * sizeof(double));
    return FSI_OK;
}

/* Rounds on the active columns, with max_iters more iterations at most. On failure the caller's x stays as it was. */
static fsi_status fsi__krylov_rounds(fsi_krylov *k)
{
    fsi__krylov_impl *im = fsi__krylov_of(k);
    fsi_status status;
    int j;
    im->limit = k->desc.max_iters < 2147483647 - k->stats.iters ? k->stats.iters + k->desc.max_iters : 2147483647;
    for (j = 0; j < im->count; j++) im->sigma[j] = 0;
    memset(im->d, 0, (size_t)im->count * (size_t)k->desc.rows * sizeof(double));
    status = fsi__krylov_measure(k, 1);
    while (status == FSI_OK && im->verdict == FSI_OK && im->count > 0 && k->stats.iters < im->limit) {
        status = im->count > 1 ? fsi__krylov_block(k) : k->desc.method == FSI_KRYLOV_CG ? fsi__krylov_cg(k)
            : fsi__krylov_minres(k);
        if (status == FSI_OK) status = fsi__krylov_measure(k, 0);
    }
    return status;
}

/* All columns together, then those left one by one. */
static fsi_status fsi__krylov_columns(fsi_krylov *k)
{
    fsi__krylov_impl *im = fsi__krylov_of(k);
    fsi_status status = FSI_OK;
    int c;
    im->count = 0;
    for (c = 0; c < k->desc.columns; c++) if (im->residual[c] > k->desc.tolerance) im->column[im->count++] = c;
    if (k->desc.method == FSI_KRYLOV_CG && im->count > 1) {
        status = fsi__krylov_rounds(k);
        if (k->stats.iters >= im->limit) return status;
    }
    for (c = 0; c < k->desc.columns && status == FSI_OK; c++) if (im->residual[c] > k->desc.tolerance) {
        im->count = 1;
        im->column[0] = c;
        status = fsi__krylov_rounds(k);
    }
    return status;
}

/* ---- >>iteration interface --------------------------------------------------------------------------------------- */

FSI_API fsi_krylov_desc fsi_krylov_default_desc(void)
{
    fsi_krylov_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('k', fsi_krylov_desc);
    d.columns = 1;
    d.max_iters = 1000;
    d.tolerance = 1e-8;
    return d;
}

static void fsi__krylov_lay_out(fsi__krylov_impl *im, fsi__arena *m, const fsi_krylov_desc *d)
{
    const int minres = d->method == FSI_KRYLOV_MINRES, pairs = d->columns > 1 && !minres;
    const size_t n = (size_t)d->rows, all = n * (size_t)d->columns, some = minres ? n : all;
    double **const wide[5] = { &im->d, &im->r, &im->q, &im->p, &im->z };
    double **const lanczos[5] = { &im->v, &im->v_old, &im->z_next, &im->w, &im->w_old };
    int i;
    im->x = (double *)fsi__take(m, all, sizeof(double));
    for (i = 0; i < 5; i++) if (!minres || wide[i] != &im->p) *wide[i] = (double *)fsi__take(m, some, sizeof(double));
    for (i = 0; i < 5 && minres; i++) *lanczos[i] = (double *)fsi__take(m, n, sizeof(double));
    im->sum = (double *)fsi__take(m, (size_t)fsi__chunks(d->rows, FSI__KRYLOV_CHUNK) * (pairs ? FSI__KRYLOV_PAIRS : 3),
        sizeof(double));
}

static fsi_status fsi__krylov_check_desc(const fsi_krylov_desc *d, const char *fn)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_krylov_desc, method, FSI__INT, 0, FSI_KRYLOV_MINRES, 0),
        FSI__FIELD(fsi_krylov_desc, rows, FSI__INT, 0, FSI__HUGE, 0),
        FSI__FIELD(fsi_krylov_desc, columns, FSI__INT, 1, FSI__KRYLOV_MOST, 0),
        FSI__FIELD(fsi_krylov_desc, max_iters, FSI__INT, 0, FSI__HUGE, 0),
        FSI__FIELD(fsi_krylov_desc, tolerance, FSI__DOUBLE, 0, 1, 0)
    };
    const fsi__where at = { fn, "desc.", -1, 3 };
    return FSI__CHECK_TABLE(d->context, &at, d, rows);
}

FSI_API void fsi_krylov_destroy(fsi_krylov *k)
{
    if (!k || k->cookie != FSI__COOKIE('K', fsi_krylov)) return;
    fsi__arena_free(k->context, &fsi__krylov_of(k)->memory);
    k->cookie = 0;
    fsi__free(k->context, k, 1, sizeof *k + sizeof(fsi__krylov_impl));
}

FSI_API fsi_status fsi_krylov_create(fsi_krylov **out, const fsi_krylov_desc *desc)
{
    const char *fn = "fsi_krylov_create";
    fsi__arena measure = { NULL, 0, 0 };
    fsi__krylov_impl *im;
    fsi_krylov *k;
    if (out) *out = NULL;
    if (!desc || desc->cookie != FSI__COOKIE('k', fsi_krylov_desc) || !fsi__is_context(desc->context))
        return FSI_ERROR_COOKIE;
    if (!out) return fsi__fail(desc->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "out is NULL");
    FSI__TRY(fsi__krylov_check_desc(desc, fn));

    /* The solver, then its vectors. */
    k = (fsi_krylov *)fsi__alloc(desc->context, 1, sizeof *k + sizeof *im);
    if (!k) return fsi__fail(desc->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for the solver");
    k->cookie = FSI__COOKIE('K', fsi_krylov);
    k->context = desc->context;
    k->desc = *desc;
    k->impl = im = (fsi__krylov_impl *)(k + 1);
    fsi__krylov_lay_out(im, &measure, desc);
    if (!fsi__arena_reserve(k->context, &im->memory, measure.used)) {
        fsi_krylov_destroy(k);
        return fsi__fail(desc->context, FSI_ERROR_MEMORY, fn, -1, desc->rows, "no memory for %d columns of %d rows",
            desc->columns, desc->rows);
    }
    fsi__krylov_lay_out(im, &im->memory, desc);
    k->bytes = sizeof *k + sizeof *im + im->memory.size;
    *out = k;
    return FSI_OK;
}

static fsi_status fsi__krylov_check_operator(const fsi_krylov *k, const fsi_operator *o, const char *name)
{
    if (!o || !o->apply)
        return fsi__fail(k->context, FSI_ERROR_ARGUMENT, fsi__krylov_solve_name, -1, 0, "%s or its apply is NULL",
            name);
    if (o->n != k->desc.rows)
        return fsi__fail(k->context, FSI_ERROR_ARGUMENT, fsi__krylov_solve_name, -1, o->n,
            "%s has %d rows, the solver was made for %d", name, o->n, k->desc.rows);
    return FSI_OK;
}

/* Names the first number of v that is not finite. */
static fsi_status fsi__krylov_check_vectors(const fsi_krylov *k, const double *v, const char *name)
{
    const size_t n = (size_t)k->desc.rows;
    size_t i;
    int c;
    for (c = 0; c < k->desc.columns; c++) {
        if (fsi_is_finite(fsi__krylov_largest(k, v + (size_t)c * n))) continue;
        for (i = (size_t)c * n; fsi_is_finite(v[i]);) i++;
        return fsi__fail(k->context, FSI_ERROR_NAN, fsi__krylov_solve_name, (long long)i, 0, "%s[%.0f] is not finite",
            name, (double)i);
    }
    return FSI_OK;
}

/* x: the guess, 0 where b is. */
static void fsi__krylov_begin(fsi_krylov *k, const double *x)
{
    fsi__krylov_impl *im = fsi__krylov_of(k);
    const size_t n = (size_t)k->desc.rows;
    int c;
    for (c = 0; c < k->desc.columns; c++) {
        const double *b = im->b + (size_t)c * n;
        double *mine = im->x + (size_t)c * n;
        im->b_big[c] = fsi__krylov_largest(k, b);
        im->residual[c] = im->b_big[c] > 0 ? HUGE_VAL : 0;
        if (im->b_big[c] > 0) {
            im->b_norm[c] = fsi__krylov_shrink(k, im->q, b, im->b_big[c]);
            memcpy(mine, x + (size_t)c * n, n * sizeof *x);
        } else if (n > 0) memset(mine, 0, n * sizeof *x);
    }
    im->stiffest = im->a_norm = 0;
    im->verdict = FSI_OK;
    memset(&k->stats, 0, sizeof k->stats);
}

FSI_API fsi_status fsi_krylov_solve(fsi_krylov *k, const fsi_operator *a, const fsi_operator *m, const double *b,
    double *x)
{
    const char *fn = fsi__krylov_solve_name;
    fsi__krylov_impl *im;
    fsi_status status;
    double clock;
    int c, worst = 0;
    if (!k || k->cookie != FSI__COOKIE('K', fsi_krylov)) return FSI_ERROR_COOKIE;

    /* Input. */
    clock = fsi__now(k->context);
    im = fsi__krylov_of(k);
    FSI__TRY(fsi__krylov_check_desc(&k->desc, fn));
    FSI__TRY(fsi__krylov_check_operator(k, a, "A"));
    if (m) FSI__TRY(fsi__krylov_check_operator(k, m, "M"));
    if (k->desc.rows > 0 && (!b || !x)) return fsi__fail(k->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "b or x is NULL");
    if (k->desc.rows == 0) {
        memset(&k->stats, 0, sizeof k->stats);
        return FSI_OK;
    }
    FSI__TRY(fsi__krylov_check_vectors(k, b, "b"));
    FSI__TRY(fsi__krylov_check_vectors(k, x, "x"));

    /* All columns; x is written only when no call failed. */
    im->a = a;
    im->m = m;
    im->b = b;
    fsi__krylov_begin(k, x);
    status = fsi__krylov_columns(k);
    for (c = 0; c < k->desc.columns; c++) if (im->residual[c] > im->residual[worst]) worst = c;
    k->stats.residual = im->residual[worst];
    k->stats.seconds = fsi__now(k->context) - clock;
    if (status != FSI_OK) return status;
    memcpy(x, im->x, (size_t)k->desc.rows * (size_t)k->desc.columns * sizeof *x);
    if (im->verdict != FSI_OK || k->stats.residual <= k->desc.tolerance) return im->verdict;
    return fsi__fail(k->context, FSI_ERROR_CONVERGENCE, fn, worst, k->stats.residual,
        "column %d has a residual of %g |b| after %d iterations, tolerance %g", worst, k->stats.residual,
        k->stats.iters, k->desc.tolerance);
}

/* ---- >>preconditioners implementation --------------------------------------------------------------------------- */

enum {
    FSI__PRECOND_GRAIN = 1024, /* rows a chunk */
    FSI__PRECOND_TRIES = 10    /* shifts of an incomplete factorisation */
};

/* c += s op(a) op(b), where op(a) is m x k and op(b) k x n; op transposes when its flag is 1. */
static void fsi__block(int m, int n, int k, double s, const double *a, int ta, const double *b, int tb, double *c)
{
    const int ai = ta ? 1 : k, ap = ta ? m : 1, bp = tb ? 1 : n, bj = tb ? k : 1;
    int i, j, p;
    for (i = 0; i < m; i++) for (p = 0; p < k; p++) {
        const double f = s * a[i * ai + p * ap];
        for (j = 0; j < n; j++) c[i * n + j] += f * b[p * bp + j * bj];
    }
}

/* D^-1 = G^T G with G = L^-1, where D = L L^T is b x b, in place. Returns -1 or the first row whose pivot is not above
   1e-10 size[row]. */
static int fsi__block_invert(int b, double *d, const double *size)
{
    double l[256], g[256];
    int i, j, k;
    memset(g, 0, sizeof(double) * (size_t)(b * b));
    for (i = 0; i < b; i++) {
        for (j = 0; j <= i; j++) {
            double s = d[i * b + j];
            for (k = 0; k < j; k++) s -= l[i * b + k] * l[j * b + k];
            if (j < i) l[i * b + j] = s * g[j * b + j];
            else if (!(s > 1e-10 * size[i]) || !fsi_is_finite(1 / s)) return i;
            else g[i * b + i] = 1 / sqrt(s);
        }
        for (j = 0; j < i; j++) {
            double s = 0;
            for (k = j; k < i; k++) s -= l[i * b + k] * g[k * b + j];
            g[i * b + j] = s * g[i * b + i];
        }
    }
    memset(d, 0, sizeof(double) * (size_t)(b * b));
    fsi__block(b, b, b, 1, g, 1, g, 0, d);
    return -1;
}

typedef struct fsi__precond_impl {
    uint64_t pattern;
    fsi__arena memory;
    int tile;                   /* rows of a block on the diagonal of M */
    double *diagonal;           /* of A, each number */
    double *inverse;            /* of the diagonal blocks of M */
    int *start, *col;           /* IC0, MIC0: U above the diagonal, row by row */
    double *upper, *row;        /* D^-1 times its blocks; the row at work */
} fsi__precond_impl;

static const char fsi__precond_create_name[] = "fsi_precond_create", fsi__precond_factor_name[] = "fsi_precond_factor";

/* ---- >>incomplete factors ----------------------------------------------------------------------------------------

   A = (U^T D^-1) U with U = D + what is above the diagonal, row by row from the top. Eliminating row k subtracts
        F = A_kj^T D_k^-1 A_ki        from A_ji,    k < j <= i, both in row k.
   IC(0) keeps F where A has an entry and drops it elsewhere; MIC(0) subtracts it there, times `modification`, from the
   diagonal of both rows, so that M and A agree on constants: the condition of Laplacians falls from h^-2 to
   h^-1. A block is not symmetric, but its diagonal must be: its symmetric part goes there. W = D^-1 A_k* is kept:
   M = (I + W)^T D (I + W).

   A pivot that is not positive ends a try; the next one takes a larger diagonal, A + shift diag(A) (Manteuffel 1980):
   0, 1e-3, 4e-3, ... 65. At the last, a definite matrix of numbers with up to 65 neighbours a row is diagonally
   dominant, so that none can fail. */

/* a_ji -= F; where there is no entry, what MIC(0) does instead. at: where the search in row j begins, moved on. */
static void fsi__ic_update(fsi__precond_impl *im, int b, int j, int i, int *at, const double *f, double modification)
{
    const int bb = b * b;
    double *to;
    int x, y;
    while (*at < im->start[j + 1] && im->col[*at] < i) (*at)++;
    if (*at < im->start[j + 1] && im->col[*at] == i) {
        to = im->upper + (size_t)*at * (size_t)bb;
        for (x = 0; x < bb; x++) to[x] -= f[x];
    } else if (modification > 0) {
        for (x = 0; x < b; x++) for (y = 0; y < b; y++) {
            const double s = 0.5 * modification * (f[x * b + y] + f[y * b + x]);
            im->inverse[(size_t)j * (size_t)bb + (size_t)(x * b + y)] -= s;
            im->inverse[(size_t)i * (size_t)bb + (size_t)(x * b + y)] -= s;
        }
    }
}

/* Row k, whose D^-1 is known. */
static void fsi__ic_eliminate(fsi__precond_impl *im, int b, int k, double modification)
{
    const int bb = b * b, begin = im->start[k], end = im->start[k + 1];
    const size_t size = (size_t)(end - begin) * (size_t)bb;
    double *w = im->upper + (size_t)begin * (size_t)bb;
    double f[256];
    int p, q, at;
    memcpy(im->row, w, size * sizeof(double));
    memset(w, 0, size * sizeof(double));
    for (p = begin; p < end; p++)
        fsi__block(b, b, b, 1, im->inverse + (size_t)k * (size_t)bb, 0, im->row + (p - begin) * bb, 0,
            w + (p - begin) * bb);
    for (p = begin; p < end; p++) {
        fsi__block(b, b, b, -1, im->row + (p - begin) * bb, 1, w + (p - begin) * bb, 0,
            im->inverse + (size_t)im->col[p] * (size_t)bb);
        at = im->start[im->col[p]];
        for (q = p + 1; q < end; q++) {
            memset(f, 0, sizeof(double) * (size_t)bb);
            fsi__block(b, b, b, 1, im->row + (p - begin) * bb, 1, w + (q - begin) * bb, 0, f);
            fsi__ic_update(im, b, im->col[p], im->col[q], &at, f, modification);
        }
    }
}

/* Diagonal blocks, and the blocks above them if there is room */
static void fsi__precond_load(fsi__precond_impl *im, const fsi_csr *a, double shift)
{
    const int b = a->block, bb = b * b;
    int r, e, k, u = 0;
    for (r = 0; r < a->rows; r++) for (e = a->start[r]; e < a->start[r + 1]; e++) {
        const double *v = a->value + (size_t)e * (size_t)bb;
        if (a->col[e] == r && im->tile == b) {
            double *d = im->inverse + (size_t)r * (size_t)bb;
            memcpy(d, v, sizeof(double) * (size_t)bb);
            for (k = 0; k < b; k++) d[k * (b + 1)] += shift * d[k * (b + 1)];
        } else if (a->col[e] == r) for (k = 0; k < b; k++) im->inverse[r * b + k] = v[k * (b + 1)];
        else if (a->col[e] > r && im->upper)
            memcpy(im->upper + (size_t)u++ * (size_t)bb, v, sizeof(double) * (size_t)bb);
    }
}

/* One try; returns -1 or the row that has no pivot. */
static int fsi__precond_try(fsi_precond *p, const fsi_csr *a, double shift)
{
    fsi__precond_impl *im = (fsi__precond_impl *)p->impl;
    const double modification = p->desc.kind == FSI_PRECOND_MIC0 ? p->desc.modification : 0;
    const int rows = p->rows * (p->block / im->tile);
    int k, bad;
    fsi__precond_load(im, a, shift);
    for (k = 0; k < rows; k++) {
        bad = fsi__block_invert(im->tile, im->inverse + (size_t)k * (size_t)(im->tile * im->tile),
            im->diagonal + k * im->tile);
        if (bad >= 0) return k * im->tile + bad;
        if (im->upper) fsi__ic_eliminate(im, p->block, k, modification);
    }
    return -1;
}

typedef struct fsi__precond_job { const fsi_precond *p; const double *x; double *y; } fsi__precond_job;

/* y = D^-1 x. */
static void fsi__precond_diagonal_rows(void *arg, int chunk, int begin, int end)
{
    const fsi__precond_job *job = (const fsi__precond_job *)arg;
    const fsi__precond_impl *im = (const fsi__precond_impl *)job->p->impl;
    const int b = im->tile;
    int r;
    (void)chunk;
    if (b == 1) for (r = begin; r < end; r++) job->y[r] = im->inverse[r] * job->x[r];
    else for (r = begin; r < end; r++) {
        memset(job->y + r * b, 0, sizeof(double) * (size_t)b);
        fsi__block(b, 1, b, 1, im->inverse + (size_t)r * (size_t)(b * b), 0, job->x + r * b, 0, job->y + r * b);
    }
}

/* y -= W^T z in the rows of W's columns, forward; y -= W y of those rows, backward. */
static void fsi__ic_forward(const fsi__precond_impl *im, int b, int k, double *y)
{
    const double *w = im->upper + (size_t)im->start[k] * (size_t)(b * b), *z = y + k * b;
    int e;
    for (e = im->start[k]; e < im->start[k + 1]; e++, w += b * b) {
        double *to = y + im->col[e] * b;
        if (b == 3) {
            to[0] -= w[0] * z[0] + w[3] * z[1] + w[6] * z[2];
            to[1] -= w[1] * z[0] + w[4] * z[1] + w[7] * z[2];
            to[2] -= w[2] * z[0] + w[5] * z[1] + w[8] * z[2];
        } else fsi__block(b, 1, b, -1, w, 1, z, 0, to);
    }
}

static void fsi__ic_backward(const fsi__precond_impl *im, int b, int k, double *y)
{
    const double *w = im->upper + (size_t)im->start[k] * (size_t)(b * b);
    double sum[16] = { 0 };
    int e;
    fsi__block(b, 1, b, 1, im->inverse + (size_t)k * (size_t)(b * b), 0, y + k * b, 0, sum);
    for (e = im->start[k]; e < im->start[k + 1]; e++, w += b * b) {
        const double *from = y + im->col[e] * b;
        if (b == 3) {
            sum[0] -= w[0] * from[0] + w[1] * from[1] + w[2] * from[2];
            sum[1] -= w[3] * from[0] + w[4] * from[1] + w[5] * from[2];
            sum[2] -= w[6] * from[0] + w[7] * from[1] + w[8] * from[2];
        } else fsi__block(b, 1, b, -1, w, 0, from, 0, sum);
    }
    memcpy(y + k * b, sum, sizeof(double) * (size_t)b);
}

/* One column: (I + W)^T z = x, then (I + W) y = D^-1 z, in place. */
static void fsi__ic_column(void *arg, int chunk, int begin, int end)
{
    const fsi__precond_job *job = (const fsi__precond_job *)arg;
    const fsi__precond_impl *im = (const fsi__precond_impl *)job->p->impl;
    const int n = job->p->rows, b = job->p->block;
    double *y = job->y + (size_t)begin * (size_t)(n * b);
    int e, k;
    (void)chunk;
    (void)end;
    memcpy(y, job->x + (size_t)begin * (size_t)(n * b), sizeof(double) * (size_t)(n * b));
    if (b > 1) {
        for (k = 0; k < n; k++) fsi__ic_forward(im, b, k, y);
        for (k = n - 1; k >= 0; k--) fsi__ic_backward(im, b, k, y);
        return;
    }
    for (k = 0; k < n; k++) for (e = im->start[k]; e < im->start[k + 1]; e++) y[im->col[e]] -= im->upper[e] * y[k];
    for (k = n - 1; k >= 0; k--) {
        double s = im->inverse[k] * y[k];
        for (e = im->start[k]; e < im->start[k + 1]; e++) s -= im->upper[e] * y[im->col[e]];
        y[k] = s;
    }
}

/* ---- >>preconditioners, made and applied ------------------------------------------------------------------------ */

FSI_API fsi_precond_desc fsi_precond_default_desc(void)
{
    fsi_precond_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('q', fsi_precond_desc);
    d.kind = FSI_PRECOND_MIC0;
    d.modification = 0.97;
    return d;
}

FSI_API void fsi_precond_destroy(fsi_precond *p)
{
    fsi__precond_impl *im;
    if (!p || p->cookie != FSI__COOKIE('Q', fsi_precond)) return;
    im = (fsi__precond_impl *)p->impl;
    fsi__arena_free(p->context, &im->memory);
    p->cookie = 0;
    fsi__free(p->context, p, 1, sizeof *p + sizeof *im);
}

static fsi_status fsi__precond_check_desc(fsi_context *c, const fsi_precond_desc *d, const fsi_csr *a)
{
    const char *fn = fsi__precond_create_name;
    if (a->rows != a->cols)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, a->rows, "the matrix has %d x %d blocks, must be square",
            a->rows, a->cols);
    if ((int)d->kind < 0 || d->kind > FSI_PRECOND_MIC0)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, (double)d->kind, "desc.kind is %d, must be 0 to 3",
            (int)d->kind);
    if (!(d->modification >= 0 && d->modification <= 1))
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, d->modification, "desc.modification is %g, must be 0 to 1",
            d->modification);
    return FSI_OK;
}

/* Each row needs its diagonal; whole: and each entry its mirror image. Entries come in such an order that next[j], the
   first of row j that has not been seen from the other side, must be the image. Returns the first row that lacks one
   and in *lost its column, or -1. */
static int fsi__precond_incomplete(const fsi_csr *a, int whole, int *next, int *lost)
{
    int r, e;
    for (r = 0; r < a->rows; r++) {
        for (e = a->start[r], *lost = r; e < a->start[r + 1] && a->col[e] != r;) e++;
        if (e == a->start[r + 1]) return r;
        next[r] = a->start[r];
    }
    for (r = 0; r < a->rows && whole; r++) {
        if (a->col[next[r]] < r) { /* never seen from the other side */
            *lost = r;
            return a->col[next[r]];
        }
        for (e = next[r] + 1; e < a->start[r + 1]; e++) {
            const int j = a->col[e];
            if (a->col[next[j]] != r) {
                *lost = a->col[next[j]] < r ? j : r;
                return a->col[next[j]] < r ? a->col[next[j]] : j;
            }
            next[j]++;
        }
    }
    return -1;
}

static fsi_status fsi__precond_check_pattern(fsi_context *c, const fsi_precond_desc *d, const fsi_csr *a)
{
    const char *fn = fsi__precond_create_name;
    int *next = (int *)fsi__alloc(c, (size_t)a->rows, sizeof(int)), lost = 0, row;
    if (!next) return fsi__fail(c, FSI_ERROR_MEMORY, fn, -1, a->rows, "no memory to check %d rows", a->rows);
    row = fsi__precond_incomplete(a, d->kind >= FSI_PRECOND_IC0, next, &lost);
    fsi__free(c, next, (size_t)a->rows, sizeof(int));
    if (row >= 0 && row == lost)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, row, row, "block row %d has no entry on the diagonal", row);
    if (row >= 0)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, row, lost,
            "block row %d has no column %d, but row %d has column %d: give the whole matrix", row, lost, lost, row);
    return FSI_OK;
}

/* `upper` entries are kept above the diagonal, at most `most` in a row. */
static void fsi__precond_lay_out(fsi__precond_impl *im, fsi__arena *m, const fsi_csr *a, size_t upper, size_t most)
{
    const size_t n = (size_t)a->rows, b = (size_t)a->block;
    im->diagonal = (double *)fsi__take(m, n * b, sizeof(double));
    im->inverse = (double *)fsi__take(m, n * b * (size_t)im->tile, sizeof(double));
    if (!upper) return;
    im->start = (int *)fsi__take(m, n + 1, sizeof(int));
    im->col = (int *)fsi__take(m, upper, sizeof(int));
    im->upper = (double *)fsi__take(m, upper * b * b, sizeof(double));
    im->row = (double *)fsi__take(m, most * b * b, sizeof(double));
}

static fsi_status fsi__precond_analyse(fsi_precond *p, const fsi_csr *a)
{
    fsi__precond_impl *im = (fsi__precond_impl *)p->impl;
    fsi__arena measure = { NULL, 0, 0 };
    size_t upper = 0, most = 0;
    int r, e, u = 0;

    /* Sizes: entries above the diagonal. */
    im->tile = p->desc.kind == FSI_PRECOND_JACOBI ? 1 : a->block;
    for (r = 0; r < a->rows && p->desc.kind >= FSI_PRECOND_IC0; r++) {
        size_t row = 0;
        for (e = a->start[r]; e < a->start[r + 1]; e++) row += a->col[e] > r;
        upper += row;
        if (row > most) most = row;
    }

    /* Memory, and the pattern above the diagonal. */
    fsi__precond_lay_out(im, &measure, a, upper, most);
    if (!fsi__arena_reserve(p->context, &im->memory, measure.used))
        return fsi__fail(p->context, FSI_ERROR_MEMORY, fsi__precond_create_name, -1, p->rows, "no memory for %d rows",
            p->rows);
    fsi__precond_lay_out(im, &im->memory, a, upper, most);
    p->stats.entries = (double)a->rows * a->block * im->tile + (double)upper * a->block * a->block;
    if (upper) for (r = 0; r < a->rows; r++) {
        for (e = a->start[r]; e < a->start[r + 1]; e++) if (a->col[e] > r) im->col[u++] = a->col[e];
        im->start[r + 1] = u;
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_precond_create(fsi_precond **out, const fsi_csr *a, const fsi_precond_desc *desc)
{
    fsi_context *c;
    fsi__precond_impl *im;
    fsi_precond *p;
    fsi_status status;
    if (out) *out = NULL;
    if (!desc || desc->cookie != FSI__COOKIE('q', fsi_precond_desc) || !fsi__is_context(desc->context))
        return FSI_ERROR_COOKIE;

    /* Input. */
    c = desc->context;
    if (!out) return fsi__fail(c, FSI_ERROR_ARGUMENT, fsi__precond_create_name, -1, 0, "out is NULL");
    FSI__TRY(fsi__csr_check(c, fsi__precond_create_name, a));
    FSI__TRY(fsi__precond_check_desc(c, desc, a));
    FSI__TRY(fsi__precond_check_pattern(c, desc, a));

    /* The preconditioner, its pattern, its memory. */
    p = (fsi_precond *)fsi__alloc(c, 1, sizeof *p + sizeof *im);
    if (!p) return fsi__fail(c, FSI_ERROR_MEMORY, fsi__precond_create_name, -1, 0, "no memory for the preconditioner");
    p->cookie = FSI__COOKIE('Q', fsi_precond);
    p->context = c;
    p->desc = *desc;
    p->rows = a->rows;
    p->block = a->block;
    p->impl = im = (fsi__precond_impl *)(p + 1);
    im->pattern = fsi__csr_hash(a);
    status = fsi__precond_analyse(p, a);
    if (status != FSI_OK) {
        fsi_precond_destroy(p);
        return status;
    }
    p->stats.bytes = sizeof *p + sizeof *im + im->memory.size;
    *out = p;
    return FSI_OK;
}

/* -1, or the first number that is not finite; 0 times any other is 0. */
static long long fsi__precond_not_finite(const double *y, size_t n)
{
    double lane[FSI_LANES] = { 0 };
    size_t i, k;
    for (i = 0; i + FSI_LANES <= n; i += FSI_LANES) for (k = 0; k < FSI_LANES; k++) lane[k] += 0 * y[i + k];
    for (; i < n; i++) lane[0] += 0 * y[i];
    for (k = 1; k < FSI_LANES; k++) lane[0] += lane[k];
    for (i = 0; i < n && !(lane[0] >= 0); i++) if (!fsi_is_finite(y[i])) return (long long)i;
    return -1;
}

/* All is finite and the diagonal positive; keeps it. */
static fsi_status fsi__precond_check_values(const fsi_precond *p, const fsi_csr *a)
{
    const char *fn = fsi__precond_factor_name;
    fsi__precond_impl *im = (fsi__precond_impl *)p->impl;
    const int b = a->block;
    const long long bad = fsi__precond_not_finite(a->value, (size_t)a->start[a->rows] * (size_t)(b * b));
    int r, e, i;
    for (r = 0; r < a->rows; r++) for (e = a->start[r]; e < a->start[r + 1]; e++) {
        const long long at = bad - (long long)e * b * b, row = (long long)r * b + (at < b * b ? at / b : 0);
        const double *v = a->value + (size_t)e * (size_t)(b * b);
        if (bad >= 0 && at < b * b)
            return fsi__fail(p->context, FSI_ERROR_NAN, fn, row, 0,
                "row %lld of the matrix holds a number that is not finite", row);
        for (i = 0; i < b && a->col[e] == r; i++) {
            const double d = v[i * (b + 1)];
            if (!(d > 0))
                return fsi__fail(p->context, FSI_ERROR_SINGULAR, fn, r * b + i, d,
                    "row %d: its diagonal is %g, must be positive", r * b + i, d);
            im->diagonal[r * b + i] = d;
        }
    }
    return FSI_OK;
}

/* Tries shifts until one gives a factor. */
static fsi_status fsi__precond_factorise(fsi_precond *p, const fsi_csr *a)
{
    const int tries = p->desc.kind >= FSI_PRECOND_IC0 ? FSI__PRECOND_TRIES : 1;
    double shift = 0;
    int k, bad = -1;
    for (k = 0; k < tries; k++) {
        bad = fsi__precond_try(p, a, shift);
        if (bad < 0) {
            p->stats.shift = shift;
            return FSI_OK;
        }
        shift = k ? 4 * shift : 1e-3;
    }
    return fsi__fail(p->context, FSI_ERROR_SINGULAR, fsi__precond_factor_name, bad, 0,
        "row %d: no positive pivot, the matrix is not positive definite", bad);
}

FSI_API fsi_status fsi_precond_factor(fsi_precond *p, const fsi_csr *a)
{
    const char *fn = fsi__precond_factor_name;
    fsi__precond_impl *im;
    double clock;
    if (!p || p->cookie != FSI__COOKIE('Q', fsi_precond)) return FSI_ERROR_COOKIE;
    clock = fsi__now(p->context);
    im = (fsi__precond_impl *)p->impl;
    FSI__TRY(fsi__csr_same(p->context, fn, a, p->rows, p->block, im->pattern));
    p->factored = 0;
    FSI__TRY(fsi__precond_check_values(p, a));
    FSI__TRY(fsi__precond_factorise(p, a));
    p->factored = 1;
    p->stats.seconds = fsi__now(p->context) - clock;
    return FSI_OK;
}

static fsi_status fsi__precond_apply(void *user, fsi_context *c, const double *x, double *y, int columns)
{
    const char *fn = "fsi_precond_operator";
    fsi_precond *p = (fsi_precond *)user;
    fsi__precond_impl *im;
    fsi__precond_job job;
    size_t n;
    long long bad;
    int k;

    /* Check. */
    if (!p || p->cookie != FSI__COOKIE('Q', fsi_precond) || !fsi__is_context(c)) return FSI_ERROR_COOKIE;
    if (!p->factored)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "there is no M: fsi_precond_factor has not succeeded");
    n = (size_t)p->rows * (size_t)p->block;
    if (columns < 0 || (n > 0 && columns > 0 && (!x || !y)))
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, columns, "x or y is NULL, or there are %d columns", columns);

    /* Apply, column by column. */
    im = (fsi__precond_impl *)p->impl;
    job.p = p;
    job.x = x;
    job.y = y;
    /* 1 ns at least for a number of a factor, which is read twice, 0.4 for one of D */
    if (im->upper) fsi__parallel_work(c, columns, 1, p->stats.entries * columns, fsi__ic_column, &job);
    else for (k = 0; k < columns && n > 0; k++, job.x += n, job.y += n)
        fsi__parallel_work(c, (int)n / im->tile, FSI__PRECOND_GRAIN, 0.4 * im->tile * (double)n,
            fsi__precond_diagonal_rows, &job);

    /* Check the result. */
    bad = fsi__precond_not_finite(y, n * (size_t)columns);
    if (bad >= 0) return fsi__fail(c, FSI_ERROR_NAN, fn, bad, 0, "number %lld of M^-1 x is not finite", bad);
    return FSI_OK;
}

FSI_API fsi_operator fsi_precond_operator(fsi_precond *p)
{
    fsi_operator o;
    o.n = p && p->cookie == FSI__COOKIE('Q', fsi_precond) ? p->rows * p->block : -1;
    o.apply = fsi__precond_apply;
    o.user = p;
    return o;
}

/* ---- >>iteration behind a solver --------------------------------------------------------------------------------- */

/* CG where the system is positive definite, MINRES elsewhere. *state is the fsi_krylov of the last system. */
static fsi_status fsi__krylov_iterate(fsi_context *c, const fsi_system *y, const fsi_operator *a, const fsi_operator *m,
                                      int max_iters, const double *b, double *x, int *iters, void **state)
{
    fsi_krylov_desc d = fsi_krylov_default_desc();
    fsi_krylov *k = (fsi_krylov *)*state;
    fsi_status status;
    d.context = c;
    d.method = y->pivots == FSI_LDLT_POSITIVE ? FSI_KRYLOV_CG : FSI_KRYLOV_MINRES;
    d.rows = a->n;
    if (!k || k->desc.rows != d.rows || k->desc.method != d.method) {
        fsi_krylov_destroy(k);
        status = fsi_krylov_create(&k, &d);
        *state = k;
        if (status != FSI_OK) return status;
    }
    k->desc.max_iters = max_iters;
    k->desc.tolerance = y->tolerance;
    status = fsi_krylov_solve(k, a, m, b, x);
    *iters += k->stats.iters;
    return status;
}

static void fsi__krylov_release(void *state) { fsi_krylov_destroy((fsi_krylov *)state); }

FSI_API const fsi_iteration *fsi_krylov_iteration(void)
{
    static const fsi_iteration krylov = { fsi__krylov_iterate, fsi__krylov_release };
    return &krylov;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
