/* fsi_solve.h - sparse symmetric linear systems: assembled, factorised by A = L D L^T, or handed to the host's solver
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_solve.h"
         #include "fsi_solve.h"

   A SYSTEM, ASSEMBLED AND SOLVED
      int start[4] = { 0, 2, 4, 6 }, vertex[6] = { -1, 0, 0, 1, 1, 2 };     // three springs, the first end is pinned
      double spring[12] = { 1, -1, -1, 1,   1, -1, -1, 1,   1, -1, -1, 1 }; // a 2 x 2 matrix each
      double force[3] = { 0, 0, 1 }, x[3] = { 0, 0, 0 };
      fsi_context ctx = fsi_default_context();
      fsi_assembly_desc d = fsi_assembly_default_desc();
      fsi_solver_desc e = fsi_solver_default_desc();
      fsi_system system = fsi_default_system();
      fsi_assembly *k;
      fsi_solver *s;
      d.context = e.context = &ctx;
      d.vertices = 3; d.block = 1; d.elements = 3; d.start = start; d.vertex = vertex;
      if (fsi_assembly_create(&k, &d) != FSI_OK || fsi_solver_create(&s, &e) != FSI_OK ||
          fsi_assembly_matrix(k, spring) != FSI_OK) {
          puts(ctx.error.message);
          return 1;
      }
      system.matrix = &k->matrix;                                           // other values later: the pattern stays
      if (fsi_solver_solve(s, &system, force, x) != FSI_OK) puts(ctx.error.message); // "row 2: its pivot ..."
      printf("%g %g %g\n", x[0], x[1], x[2]);                               // 1 2 3
      fsi_solver_destroy(s);
      fsi_assembly_destroy(k);

   WHAT IT DOES
      fsi_assembly  adds element matrices up to a matrix of numbers or of blocks (3 x 3 for vertices); finds the pattern
                    once
      fsi_ldlt      multifrontal L D L^T: orders the rows so that L stays sparse, analyses the pattern once, factorises
                    as often as values change. For definite matrices, and quasi-definite ones, [H B^T; B -C] with H and
                    C definite, whose pivots keep their signs in any order. ANY others at your risk: stats tell how well
                    it went. Counts negative pivots; names the row that makes a matrix singular
      fsi_solver    one call for LDL^T, an iteration or the host's solver; keeps the analysis and the factor
      Two headers plug into descs: fsi_order.h (nested dissection, for large meshes: desc.ordering) and fsi_krylov.h
      (CG, MINRES and preconditioners: desc.iteration). Programs that need neither do not include them.
      All in double, whatever fsi_real is. Rows of products and assembly, subtrees and wide fronts are tasks of the
      context's parallel_for, with the same bits for any number of threads; analysis and triangular solves run on one.
   WHICH TRIANGLE, WHAT UNITS
      fsi_ldlt reads the lower triangle, products and fsi_solver the whole. rows and cols of a matrix count blocks;
      vectors and fsi_operator.n count numbers. Numbers have any unit.
   WHAT IT DOES NOT DO
      Unsymmetric matrices. Pivoting: a matrix that needs it is refused with the row that failed. Dense systems: fsi.h.
   MACROS YOU MAY DEFINE
      FSI_NO_SIMD          no AVX2, no AVX-512 (chosen at run time on x86-64; the same bits, a third of the speed)
      and those of fsi.h.
   FIND IN HERE (search for >>)
      >>matrices  >>assembly  >>factorisation  >>operators  >>solver, the API;  >>stages  for fsi's own headers, not for
      you; then the implementation: the same, and  >>order  >>order minimum degree  >>order graph  >>fronts  >>symbolic
      >>numeric  >>substitution  >>analysis  >>interface
*/
#ifndef FSI_SOLVE_H
#define FSI_SOLVE_H

#include "fsi.h"

/* ---- >>matrices ----------------------------------------------------------------------------------------------- */

/* A sparse matrix in compressed rows, made of blocks; yours to fill, read in place. */
typedef struct fsi_csr {
    int rows, cols;     /* in blocks */
    int block;          /* rows and columns of a block, 1 to 16; 1: plain numbers */
    const int *start;   /* rows + 1: block row r holds entries start[r] .. start[r+1]-1 */
    const int *col;     /* block column of each entry, ascending within a row */
    double *value;      /* block * block numbers an entry, row by row */
} fsi_csr;

/* y = A x; x: cols * block, y: rows * block numbers, apart. Errors: ARGUMENT (names the row), LIMIT. context may be
   NULL. The pattern is checked at each call; fsi_csr_operator does so once. */
FSI_API fsi_status fsi_csr_multiply(fsi_context *context, const fsi_csr *a, const double *x, double *y);

/* ---- >>assembly ------------------------------------------------------------------------------------------------

   A matrix as the sum of small dense ones. Element e couples the vertices vertex[start[e]] .. vertex[start[e+1]-1];
   which entries of the matrix that makes is found once, and used for as many sets of values as there are. */
typedef struct fsi_assembly_desc {
    uint32_t cookie;
    fsi_context *context; /* default NULL */
    int vertices;         /* block rows of the matrix; default 0 */
    int block;            /* rows and columns of a block, 1 to 16; default 3 */
    int elements;         /* default 0 */
    const int *start;     /* elements + 1; of 0 to 64 vertices an element. Read by create, as is vertex; default NULL */
    const int *vertex;    /* -1: pinned, its rows and columns are left out. One vertex may appear several times in an
                             element */
} fsi_assembly_desc;

/* A pattern and the matrix on it. Read everything, write matrix.value[]. */
typedef struct fsi_assembly {
    uint32_t cookie;
    fsi_context *context;
    int vertices, block, elements;
    fsi_csr matrix;        /* vertices x vertices blocks, every diagonal block among them; its values are yours to
                              change and add to */
    size_t numbers;        /* in all element matrices together */
    size_t vector_numbers; /* in all element vectors together */
    size_t bytes;          /* held */
    void *impl;
} fsi_assembly;

FSI_API fsi_assembly_desc fsi_assembly_default_desc(void); /* fills every field */
/* Finds the pattern, in time proportional to the element matrices; all values are 0. *out is NULL on failure. Errors:
   COOKIE, ARGUMENT (names the element), LIMIT, MEMORY. */
FSI_API fsi_status fsi_assembly_create(fsi_assembly **out, const fsi_assembly_desc *desc);
FSI_API void fsi_assembly_destroy(fsi_assembly *s); /* NULL is fine */
/* matrix.value = the sum of the element matrices. value: one after the other, that of m vertices as (m block) x (m
   block) numbers row by row; rows and columns of pinned vertices are ignored. Each entry is summed in the order of the
   elements, whatever the number of threads. A sum of symmetric matrices is symmetric to the bit, unless an element
   names a vertex twice: then to rounding. Allocates nothing. Errors: COOKIE, ARGUMENT, NAN (names the element, or the
   row whose sum overflows; the matrix stays as it was). */
FSI_API fsi_status fsi_assembly_matrix(fsi_assembly *s, const double *value);
/* out (vertices * block) = the sum of the element vectors, m block numbers each. Errors: as fsi_assembly_matrix; out
   stays as it was. */
FSI_API fsi_status fsi_assembly_vector(fsi_assembly *s, const double *value, double *out);
/* Where the matrix, the vector of an element starts in value; (size_t)-1 and the context's error when there is no such
   element. */
FSI_API size_t fsi_assembly_matrix_offset(const fsi_assembly *s, int element);
FSI_API size_t fsi_assembly_vector_offset(const fsi_assembly *s, int element);

/* ---- >>factorisation ------------------------------------------------------------------------------------------ */

/* In which order the rows are eliminated: so that L stays sparse, or as they stand. */
typedef enum fsi_ldlt_order { FSI_LDLT_MINIMUM_DEGREE, FSI_LDLT_NATURAL } fsi_ldlt_order;

/* Finds another order than minimum degree: fsi_dissection() of fsi_order.h is one. */
typedef struct fsi_ordering fsi_ordering;

/* What is known of the signs of the pivots. Pivots of another sign are refused. */
typedef enum fsi_ldlt_pivots {
    FSI_LDLT_POSITIVE,  /* all are positive: the matrix is definite */
    FSI_LDLT_SIGNED,    /* they have the signs given by `sign`: the matrix is quasi-definite */
    FSI_LDLT_ANY        /* signs are unknown; stats.negative is their number */
} fsi_ldlt_pivots;

typedef struct fsi_ldlt_desc {
    uint32_t cookie;
    fsi_context *context;       /* default NULL */
    fsi_ldlt_order order;       /* default MINIMUM_DEGREE */
    const fsi_ordering *ordering; /* of large matrices, in place of minimum degree; default NULL: minimum degree */
    const unsigned char *last;  /* one for each block row, read by create: those with 1 are eliminated after all others,
                                   as dense rows and multipliers should be; default NULL: none */
    fsi_ldlt_pivots pivots;     /* default POSITIVE */
    const signed char *sign;    /* SIGNED: 1 or -1 for each row (rows * block), read by create; default NULL */
    double smallest_pivot;      /* a pivot d_k = a_kk - sum_j l_kj^2 d_j below this times |a_kk| + sum_j l_kj^2 |d_j|
                                   counts as 0: it is rounding; 0 to 1, default 1e-12 */
} fsi_ldlt_desc;

typedef struct fsi_ldlt_stats {
    int fronts, tasks;          /* of the analysis: supernodes, subtrees that are tasks */
    double entries, flops;      /* numbers stored for L and D; additions and multiplications of a factorisation */
    size_t bytes;               /* of memory */
    int negative;               /* of the last factorisation: pivots that are negative */
    int weakest_row;            /* row of A with the smallest |d_k| / (|a_kk| + sum_j l_kj^2 |d_j|), -1: none */
    double weakest_pivot;       /* that ratio */
    double growth;              /* largest (|a_kk| + sum_j l_kj^2 |d_j|) over the largest entry of row k: at most 2 for
                                   definite matrices. Solutions are good to about growth * 1e-16 before refinement;
                                   where that is not far below weakest_pivot, with ANY, neither they nor `negative` are
                                   certain */
    double seconds_order, seconds_analyse, seconds_factor; /* by the clock hook; analyse holds order */
} fsi_ldlt_stats;

/* A factorisation, or at first only the analysis of a pattern. Read everything. */
typedef struct fsi_ldlt {
    uint32_t cookie;
    fsi_context *context;
    fsi_ldlt_desc desc;         /* as given; `last` and `sign` are not read any more */
    int rows, block;
    int factored;               /* 1: solve may be called */
    int factorings;             /* calls of factor so far */
    fsi_ldlt_stats stats;
    void *impl;
} fsi_ldlt;

FSI_API fsi_ldlt_desc fsi_ldlt_default_desc(void); /* fills every field */
/* Orders and analyses the pattern of A's lower triangle (entries with col <= row); values are not read. Entries may be
   zero; the diagonal may be missing, and fsi_ldlt_factor fails where that leaves no pivot. Later calls take the same
   pattern, with or without the upper triangle as here. A is not kept. *out is NULL on failure. Errors: COOKIE, ARGUMENT
   (names the block row or the field), NAN (a field), LIMIT, MEMORY. */
FSI_API fsi_status fsi_ldlt_create(fsi_ldlt **out, const fsi_csr *a, const fsi_ldlt_desc *desc);
FSI_API void fsi_ldlt_destroy(fsi_ldlt *f); /* NULL is fine */
/* A = L D L^T for new values on the same pattern. Allocates nothing. Errors: COOKIE, ARGUMENT (another pattern), NAN
   and SINGULAR (name the row: its pivot is too small or has the wrong sign); then there is no factor any more. */
FSI_API fsi_status fsi_ldlt_factor(fsi_ldlt *f, const fsi_csr *a);
/* x = A^-1 b; rows * block numbers each; x may be b. Errors: COOKIE, ARGUMENT (no factor), NAN (names the row of b; x
   stays). */
FSI_API fsi_status fsi_ldlt_solve(fsi_ldlt *f, const double *b, double *x);
/* The same for four right sides at once, side by side: number r of side k is b[4 * r + k]. */
FSI_API fsi_status fsi_ldlt_solve_4(fsi_ldlt *f, const double *b, double *x);

/* ---- >>operators ----------------------------------------------------------------------------------------------- */

/* A linear map, yours or of this header: apply writes y = A x for `columns` vectors of n numbers, one after the other;
   x and y are apart. What it returns other than FSI_OK ends the solve with that status. */
typedef struct fsi_operator {
    int n;
    fsi_status (*apply)(void *user, fsi_context *context, const double *x, double *y, int columns);
    void *user;
} fsi_operator;
/* y = A x, the whole matrix (not its lower triangle), read once for all columns; a must outlive it, its pattern must
   stay. n is -1, and every solve refuses it, when a is not square or not a matrix (fsi_csr_multiply tells why). */
FSI_API fsi_operator fsi_csr_operator(const fsi_csr *a);
/* y = (L |D| L^T)^-1 x of an ldlt that has a factor: A^-1 where A is definite, else positive definite all the same. As
   a preconditioner it serves matrices near the one that was factorised. f must outlive it. */
FSI_API fsi_operator fsi_ldlt_operator(fsi_ldlt *f);

/* ---- >>solver ---------------------------------------------------------------------------------------------------

   One call for any of the above, or for a solver of the host's own. Simulators call this one. */

/* What is to be solved, and all that is known of it. The matrix is whole, both triangles. */
typedef struct fsi_system {
    uint32_t cookie;
    const fsi_csr *matrix;          /* A; or NULL, then */
    const fsi_operator *op;         /* what applies A */
    const fsi_operator *precond;    /* y = M^-1 x, positive definite; NULL: none. Read with op only, as is
                                       max_iters */
    fsi_ldlt_pivots pivots;         /* POSITIVE: A is positive definite; SIGNED: quasi-definite; ANY: symmetric. Default
                                       POSITIVE */
    const signed char *sign;        /* SIGNED with a matrix: as in fsi_ldlt_desc; default NULL */
    const unsigned char *last;      /* rows to be eliminated last, as in fsi_ldlt_desc; default NULL */
    double tolerance;               /* |b - A x| <= tolerance |b| is asked; 0 to 1, default 1e-10. Of a matrix that is
                                       nearly singular, what rounding allows is enough: each row's residual within 1e-13
                                       of (|A| |x| + |b|) and |b - A x| within 1e-3 |b|; stats.residual tells */
    int max_iters;                  /* of an iteration; default 1000 */
} fsi_system;
FSI_API fsi_system fsi_default_system(void); /* fills every field */

/* The host's solver: x = A^-1 b, x is a guess on entry. A status other than FSI_OK is passed on. Its x is checked:
   finite, and within the tolerance. Never called from a task. */
typedef fsi_status fsi_solve_fn(void *user, fsi_context *context, const fsi_system *system, const double *b, double *x);

/* CG and MINRES behind a solver: fsi_krylov_iteration() of fsi_krylov.h is one. */
typedef struct fsi_iteration fsi_iteration;

typedef struct fsi_solver_desc {
    uint32_t cookie;
    fsi_context *context;           /* default NULL */
    fsi_solve_fn *solve;            /* the host's; default NULL: fsi's own, LDL^T for a matrix, else desc.iteration */
    void *user;                     /* handed to solve */
    fsi_ldlt_order order;           /* of LDL^T; default MINIMUM_DEGREE */
    const fsi_ordering *ordering;   /* as in fsi_ldlt_desc; default NULL */
    const fsi_iteration *iteration; /* default NULL: a system with an op is refused, and reuse must be 0 */
    int reuse;                      /* when values have changed on the same pattern: up to so many iterations of CG or
                                       MINRES with the old factor as preconditioner are tried before the matrix is
                                       factorised anew; default 0: always anew */
} fsi_solver_desc;

typedef struct fsi_solver_stats {
    int analyses, factorings, solves; /* since create */
    int iters;                      /* of the last solve: of an iteration, or steps of refinement */
    double residual;                /* |b - A x| / |b| of the last solve */
    int negative;                   /* negative pivots of the last factorisation */
    double seconds;                 /* of the last solve, by the clock hook */
} fsi_solver_stats;

/* Keeps the analysis and the factor of the last matrix. Read everything. */
typedef struct fsi_solver {
    uint32_t cookie;
    fsi_context *context;
    fsi_solver_desc desc;           /* as given; `reuse` may be changed */
    fsi_solver_stats stats;
    void *impl;
} fsi_solver;

FSI_API fsi_solver_desc fsi_solver_default_desc(void); /* fills every field */
/* *out is NULL on failure. Errors: COOKIE, ARGUMENT or NAN (name the field), MEMORY. */
FSI_API fsi_status fsi_solver_create(fsi_solver **out, const fsi_solver_desc *desc);
FSI_API void fsi_solver_destroy(fsi_solver *s); /* NULL is fine */
/* A x = b; b, x: as many numbers as A has rows; may be the same. x is a guess on entry for an op, the host's solver and
   `reuse`, else not read. What this calls (op, precond, the host's solver) must not call it for the same solver.
   Allocates only when the pattern, the size or the kind of system changed, and the first time that an old factor is
   tried. Errors: those of what is called, NAN, MEMORY, and CONVERGENCE where the residual stays above the tolerance:
   whatever fails, x stays as it was. */
FSI_API fsi_status fsi_solver_solve(fsi_solver *s, const fsi_system *system, const double *b, double *x);

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* The analysis of a's pattern in *f, which is NULL at first or what an earlier call left, for the same context: it is
   made where the pattern is another one, in the memory of the last. Errors: those of fsi_ldlt_create; *f is NULL
   then. */
FSI_API fsi_status fsi__ldlt_take(fsi_ldlt **f, const fsi_csr *a, const fsi_ldlt_desc *desc);
/* Refuses what would read out of bounds: a NULL array, rows that do not ascend, columns out of range. Errors: ARGUMENT,
   LIMIT. */
FSI_API fsi_status fsi__csr_check(fsi_context *context, const char *function, const fsi_csr *a);
FSI_API uint64_t fsi__csr_hash(const fsi_csr *a); /* of the pattern */
/* Is a, for which something of `rows` rows was analysed, still on that pattern? Errors: those of fsi__csr_check,
   ARGUMENT. */
FSI_API fsi_status fsi__csr_same(fsi_context *context, const char *function, const fsi_csr *a, int rows, int block,
                                 uint64_t pattern);
/* y = A x for `columns` vectors. An operator that fails without a message gets one, which names it `what`. */
FSI_API fsi_status fsi__operate(fsi_context *context, const char *function, const fsi_operator *a, const double *x,
                                double *y, int columns, const char *what);

/* A graph to order. Neighbours of v: adj[start[v]] .. adj[start[v + 1] - 1]; weight: rows that a vertex stands for;
   rank: all of rank 1 come after all of rank 0. */
typedef struct fsi__order_net {
    int n;
    int *start, *adj, *weight;
    unsigned char *rank;
} fsi__order_net;

/* An order as the analysis of fsi_ldlt asks for it. */
struct fsi_ordering {
    int least; /* a matrix of at most so many rows is ordered by minimum degree, which is as good there */
    /* order[k]: the vertex to eliminate k-th. *state: memory kept between calls, NULL at first. LIMIT, MEMORY */
    fsi_status (*find)(fsi_context *context, const fsi__order_net *g, int *order, void **state);
    void (*release)(fsi_context *context, void *state); /* NULL is fine */
};

/* Lays out a graph of n vertices and m entries of adj. */
FSI_API void fsi__order_net_layout(fsi__order_net *g, fsi__arena *arena, size_t n, size_t m);
/* Minimum degree of the vertices of rank 0 .. top (0 or 1): those of higher rank count in the degrees, but are not
   eliminated. *count: how many were ordered. memory: kept by the caller, who frees it. Errors: LIMIT, MEMORY. */
FSI_API fsi_status fsi__order_by_degree(fsi_context *context, const fsi__order_net *g, int top, int *order, int *count,
                                        fsi__arena *memory);
FSI_API fsi_status fsi__order_no_memory(fsi_context *context, int n);        /* fails: n vertices */
FSI_API fsi_status fsi__order_too_large(fsi_context *context, int64_t size); /* fails: rows or edges */
FSI_API uint64_t fsi__order_mix(uint64_t x); /* a well mixed number: the finaliser of a 64-bit hash */
/* As fsi__arena_room, and the first `size` bytes are 0. */
FSI_API int fsi__order_reserve_zeros(fsi_context *context, fsi__arena *arena, size_t size);

/* An iterative method as the solver calls it. */
struct fsi_iteration {
    /* Improves x until |b - A x| <= system->tolerance |b|, in at most max_iters steps, which are added to *iters.
       Converged or not, x is the best iterate. m: M^-1 or NULL. *state: memory kept between calls, NULL at first. */
    fsi_status (*solve)(fsi_context *context, const fsi_system *system, const fsi_operator *a, const fsi_operator *m,
                        int max_iters, const double *b, double *x, int *iters, void **state);
    void (*release)(void *state); /* NULL is fine */
};

#endif /* FSI_SOLVE_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_SOLVE_IMPLEMENTATION
#define FSI_SOLVE_IMPLEMENTATION
#endif
#ifdef FSI_SOLVE_IMPLEMENTATION
#ifndef FSI_SOLVE_IMPLEMENTATION_DONE
#define FSI_SOLVE_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi.h"

FSI__STRICT_BEGIN

/* ---- >>matrices implementation --------------------------------------------------------------------------------- */

FSI_API fsi_status fsi__csr_check(fsi_context *c, const char *fn, const fsi_csr *a)
{
    int r, e;

    /* Sizes. */
    if (!a || !a->start) return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "the matrix or its start is NULL");
    if (a->rows < 0 || a->cols < 0 || a->block < 1 || a->block > 16)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, a->block,
            "the matrix has %d x %d blocks of %d rows; blocks have 1 to 16", a->rows, a->cols, a->block);
    if ((double)a->rows * a->block > 2e9 || (double)a->cols * a->block > 2e9)
        return fsi__fail(c, FSI_ERROR_LIMIT, fn, -1, a->rows, "%d x %d blocks of %d rows are more than an int counts",
            a->rows, a->cols, a->block);

    /* Rows. */
    if (a->start[0] != 0)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, 0, a->start[0], "start[0] is %d, must be 0", a->start[0]);
    for (r = 0; r < a->rows; r++) if (a->start[r + 1] < a->start[r])
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, r, a->start[r + 1], "block row %d ends before it starts", r);
    if (a->start[a->rows] > 0 && (!a->col || !a->value))
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "col or value is NULL, but there are %d entries",
            a->start[a->rows]);

    /* Columns: within the matrix, ascending. */
    for (r = 0; r < a->rows; r++) for (e = a->start[r]; e < a->start[r + 1]; e++) {
        if (a->col[e] < 0 || a->col[e] >= a->cols)
            return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, r, a->col[e], "block row %d names column %d of %d", r,
                a->col[e], a->cols);
        if (e > a->start[r] && a->col[e] <= a->col[e - 1])
            return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, r, a->col[e],
                "the columns of block row %d do not ascend: %d after %d", r, a->col[e], a->col[e - 1]);
    }
    return FSI_OK;
}

FSI_API uint64_t fsi__csr_hash(const fsi_csr *a)
{
    return fsi_hash(a->col, (size_t)a->start[a->rows] * sizeof(int),
        fsi_hash(a->start, ((size_t)a->rows + 1) * sizeof(int), 0));
}

FSI_API fsi_status fsi__csr_same(fsi_context *c, const char *fn, const fsi_csr *a, int rows, int block,
    uint64_t pattern)
{
    FSI__TRY(fsi__csr_check(c, fn, a));
    if (a->rows != rows || a->cols != rows || a->block != block || fsi__csr_hash(a) != pattern)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, a->rows,
            "the matrix has another pattern than the one that was analysed");
    return FSI_OK;
}

typedef struct fsi__product_job { const fsi_csr *a; const double *x; double *y; int columns; } fsi__product_job;

/* Rows of numbers: four columns at a time share the loads of the matrix, which stays in cache for the next four; each
   sum is in the order of the entries. */
static void fsi__product_rows1(const fsi__product_job *job, int begin, int end)
{
    const fsi_csr *a = job->a;
    const size_t in = (size_t)a->cols, out = (size_t)a->rows;
    const double *x = job->x;
    double *y = job->y;
    int r, e, c;

    /* Four columns of x at a time. */
    for (c = 0; c + 4 <= job->columns; c += 4, x += 4 * in, y += 4 * out) for (r = begin; r < end; r++) {
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (e = a->start[r]; e < a->start[r + 1]; e++) {
            const double v = a->value[e], *at = x + a->col[e];
            s0 += v * at[0];
            s1 += v * at[in];
            s2 += v * at[2 * in];
            s3 += v * at[3 * in];
        }
        y[r] = s0;
        y[out + (size_t)r] = s1;
        y[2 * out + (size_t)r] = s2;
        y[3 * out + (size_t)r] = s3;
    }

    /* The other ones. */
    for (; c < job->columns; c++, x += in, y += out) for (r = begin; r < end; r++) {
        double sum = 0;
        for (e = a->start[r]; e < a->start[r + 1]; e++) sum += a->value[e] * x[a->col[e]];
        y[r] = sum;
    }
}

static void fsi__product_rows3(const fsi__product_job *job, int begin, int end)
{
    const fsi_csr *a = job->a;
    int r, e, c;
    for (r = begin; r < end; r++) for (c = 0; c < job->columns; c++) {
        const double *in = job->x + (size_t)c * (size_t)a->cols * 3;
        double *y = job->y + ((size_t)c * (size_t)a->rows + (size_t)r) * 3, s0 = 0, s1 = 0, s2 = 0;
        for (e = a->start[r]; e < a->start[r + 1]; e++) {
            const double *v = a->value + (size_t)e * 9, *x = in + a->col[e] * 3;
            s0 += v[0] * x[0] + v[1] * x[1] + v[2] * x[2];
            s1 += v[3] * x[0] + v[4] * x[1] + v[5] * x[2];
            s2 += v[6] * x[0] + v[7] * x[1] + v[8] * x[2];
        }
        y[0] = s0;
        y[1] = s1;
        y[2] = s2;
    }
}

static void fsi__product_rows_any(const fsi__product_job *job, int begin, int end)
{
    const fsi_csr *a = job->a;
    const int b = a->block;
    int r, e, c, i, j;
    for (r = begin; r < end; r++) for (c = 0; c < job->columns; c++) {
        const double *in = job->x + (size_t)c * (size_t)a->cols * (size_t)b;
        double *y = job->y + ((size_t)c * (size_t)a->rows + (size_t)r) * (size_t)b;
        for (i = 0; i < b; i++) y[i] = 0;
        for (e = a->start[r]; e < a->start[r + 1]; e++) {
            const double *v = a->value + (size_t)e * (size_t)(b * b), *x = in + a->col[e] * b;
            for (i = 0; i < b; i++) for (j = 0; j < b; j++) y[i] += v[i * b + j] * x[j];
        }
    }
}

static void fsi__product_rows(void *arg, int chunk, int begin, int end)
{
    const fsi__product_job *job = (const fsi__product_job *)arg;
    (void)chunk;
    if (job->a->block == 1) fsi__product_rows1(job, begin, end);
    else if (job->a->block == 3) fsi__product_rows3(job, begin, end);
    else fsi__product_rows_any(job, begin, end);
}

/* A block of b x b numbers takes 1/2 + b^2/2 ns at least of one thread. */
static void fsi__product_run(fsi_context *context, fsi__product_job *job)
{
    const fsi_csr *a = job->a;
    const double block = 0.5 + 0.5 * a->block * a->block, blocks = a->rows > 0 ? (double)a->start[a->rows] : 0;
    fsi__parallel_work(context, a->rows, 1024, block * blocks * job->columns, fsi__product_rows, job);
}

FSI_API fsi_status fsi_csr_multiply(fsi_context *context, const fsi_csr *a, const double *x, double *y)
{
    const char *fn = "fsi_csr_multiply";
    fsi__product_job job;
    if (!fsi__is_context(context)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__csr_check(context, fn, a));
    if ((a->cols > 0 && !x) || (a->rows > 0 && !y))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0, "x or y is NULL");
    job.a = a;
    job.x = x;
    job.y = y;
    job.columns = 1;
    fsi__product_run(context, &job);
    return FSI_OK;
}

static fsi_status fsi__csr_apply(void *user, fsi_context *context, const double *x, double *y, int columns)
{
    fsi__product_job job;
    if (!user) return fsi__fail(context, FSI_ERROR_ARGUMENT, "fsi_csr_operator", -1, 0, "the matrix is NULL");
    job.a = (const fsi_csr *)user;
    job.x = x;
    job.y = y;
    job.columns = columns;
    fsi__product_run(context, &job);
    return FSI_OK;
}

FSI_API fsi_operator fsi_csr_operator(const fsi_csr *a)
{
    fsi_operator o;
    const int good = fsi__csr_check(NULL, "fsi_csr_operator", a) == FSI_OK && a->rows == a->cols;
    o.n = good ? a->rows * a->block : -1;
    o.apply = fsi__csr_apply;
    o.user = (void *)a;
    return o;
}

/* Around a call of the host's function: after a failure the context has a message, the host's own or this one; after a
   success the former message stays. */
static fsi_error fsi__callback_begin(fsi_context *c)
{
    fsi_error before;
    memset(&before, 0, sizeof before);
    if (!c) return before;
    before = c->error;
    c->error.status = FSI_OK;
    return before;
}

static fsi_status fsi__callback_end(fsi_context *c, const char *fn, const fsi_error *before, fsi_status status,
    const char *what)
{
    if (!c) return status;
    if (status == FSI_OK) c->error = *before;
    else if (c->error.status == FSI_OK) fsi__fail(c, status, fn, -1, 0, "%s failed: %s", what, fsi_status_text(status));
    return status;
}

FSI_API fsi_status fsi__operate(fsi_context *c, const char *fn, const fsi_operator *o, const double *x, double *y,
    int columns, const char *what)
{
    const fsi_error before = fsi__callback_begin(c);
    return fsi__callback_end(c, fn, &before, o->apply(o->user, c, x, y, columns), what);
}

/* ---- >>assembly implementation ----------------------------------------------------------------------------------

   Which contributions make an entry? Asked for each entry alone, a gather of blocks from all over the element matrices.
   But the block row that a vertex has in the matrix of an element lies in one piece, a strip, and what the strips of a
   vertex are added to, its row of the matrix, stays in the cache:

        element e:  a b c              strip of b        row of b:   [ a   b   c   d ]    slots: entries that the blocks
               a  [ . . . ]    e:    [  v   v   v  ] ->     +   +   +                     of its strips go to
               b  [ v v v ]    next: [  v       v  ] ->         +       +
               c  [ . . . ]

   So the matrix is made row by row from strips in the order of elements: every number is read once, in pieces, every
   entry is written once, and rows are independent of each other. Sums go to a second set of values first, which becomes
   the matrix when all are finite. (To look through the element matrices instead would move them twice; a matrix is
   smaller.) Where strips lie is known long before they are read, but not to the processor: it is told sixteen strips
   ahead. */

enum {
    FSI__ASSEMBLY_MOST = 64,   /* vertices of an element */
    FSI__ASSEMBLY_GRAIN = 256, /* rows of a task */
    FSI__ASSEMBLY_AHEAD = 16   /* strips that are prefetched; as many empty ones follow the last */
};

/* The strip of the corner `begin + corner`, of an element whose corners are begin .. begin + count - 1. */
typedef struct fsi__assembly_strip {
    int block;           /* its first block, of all element matrices */
    int begin;
    short corner, count;
} fsi__assembly_strip;

typedef struct fsi__assembly_impl {
    int *first, *begin;          /* of each element, and after the last: first block and corner */
    int *strip_at, *slot_at;     /* of each row: first strip, first slot */
    fsi__assembly_strip *strip;
    int *slot;                   /* of each block of each strip: entry of the matrix, -1: pinned */
    int *start, *col;            /* the pattern */
    int *seen, *place;           /* of each vertex: while the pattern is made */
    int *bad;                    /* of each task: a row that is not finite, -1: none */
    double *value, *sum;
    fsi__arena memory[2];        /* sizes known from the start; sizes that depend on the number of entries */
} fsi__assembly_impl;

static void fsi__assembly_lay(fsi__assembly_impl *im, fsi__arena *m, const fsi_assembly_desc *d, int blocks)
{
    const size_t n = (size_t)d->vertices + 1, e = (size_t)d->elements + 1;
    im->first = (int *)fsi__take(m, e, sizeof(int));
    im->begin = (int *)fsi__take(m, e, sizeof(int));
    im->strip_at = (int *)fsi__take(m, n, sizeof(int));
    im->slot_at = (int *)fsi__take(m, n, sizeof(int));
    im->start = (int *)fsi__take(m, n, sizeof(int));
    im->seen = (int *)fsi__take(m, n, sizeof(int));
    im->place = (int *)fsi__take(m, n, sizeof(int));
    im->bad = (int *)fsi__take(m, (size_t)fsi__chunks(d->vertices, FSI__ASSEMBLY_GRAIN), sizeof(int));
    im->strip = (fsi__assembly_strip *)fsi__take(m, (d->elements ? (size_t)d->start[d->elements] : 0)
        + FSI__ASSEMBLY_AHEAD, sizeof *im->strip);
    im->slot = (int *)fsi__take(m, (size_t)blocks, sizeof(int));
}

static void fsi__assembly_lay_entries(fsi__assembly_impl *im, fsi__arena *m, size_t entries, int block)
{
    im->col = (int *)fsi__take(m, entries, sizeof(int));
    im->value = (double *)fsi__take(m, entries * (size_t)(block * block), sizeof(double));
    im->sum = (double *)fsi__take(m, entries * (size_t)(block * block), sizeof(double));
}

/* Refuses indices that would read out of bounds and sizes beyond an int. *blocks: of all element matrices. */
static fsi_status fsi__assembly_check(const fsi_assembly_desc *d, const char *fn, int *blocks)
{
    fsi_context *c = d->context;
    int64_t sum = 0;
    int e, k;

    /* Sizes. */
    if (d->vertices < 0 || d->elements < 0 || d->block < 1 || d->block > 16)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, d->block,
            "there are %d vertices, %d elements and blocks of %d rows; blocks have 1 to 16", d->vertices, d->elements,
            d->block);
    if ((double)d->vertices * d->block > 2e9)
        return fsi__fail(c, FSI_ERROR_LIMIT, fn, -1, d->vertices, "%d blocks of %d rows are more than an int counts",
            d->vertices, d->block);
    if (d->elements > 0 && !d->start)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "start is NULL, but there are %d elements", d->elements);
    if (d->elements > 0 && d->start[0] != 0)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, 0, d->start[0], "start[0] is %d, must be 0", d->start[0]);

    /* Vertices of each element; the blocks of all element matrices. */
    for (e = 0; e < d->elements; e++) {
        const int64_t m = (int64_t)d->start[e + 1] - d->start[e];
        if (m < 0 || m > FSI__ASSEMBLY_MOST)
            return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, e, (double)m,
                "element %d has %.0f vertices, must have 0 to %d", e, (double)m, FSI__ASSEMBLY_MOST);
        sum += m * m;
    }
    if (sum + d->vertices > 2147483647
        || ((double)sum + d->vertices) * d->block * d->block > (double)((size_t)-1 / (4 * sizeof(double))))
        return fsi__fail(c, FSI_ERROR_LIMIT, fn, -1, (double)sum,
            "the elements have %.0f blocks, more than can be counted", (double)sum);

    /* Their names. */
    if (d->elements > 0 && d->start[d->elements] > 0 && !d->vertex)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "vertex is NULL");
    for (e = 0; e < d->elements; e++) for (k = d->start[e]; k < d->start[e + 1]; k++)
        if (d->vertex[k] < -1 || d->vertex[k] >= d->vertices)
            return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, e, d->vertex[k], "element %d names vertex %d of %d", e,
                d->vertex[k], d->vertices);
    *blocks = (int)sum;
    return FSI_OK;
}

/* Sorts the corners by vertex, in the order of elements: a strip each. */
static void fsi__assembly_strips(fsi__assembly_impl *im, const fsi_assembly_desc *d)
{
    int e, k, r;

    /* How many strips and blocks each vertex has. */
    for (e = 0; e < d->elements; e++) {
        const int count = d->start[e + 1] - d->start[e];
        im->first[e + 1] = im->first[e] + count * count;
        im->begin[e + 1] = d->start[e + 1];
        for (k = d->start[e]; k < d->start[e + 1]; k++) {
            if (d->vertex[k] < 0) continue;
            im->strip_at[d->vertex[k] + 1]++;
            im->slot_at[d->vertex[k] + 1] += count;
        }
    }

    /* Where those of each vertex begin. */
    for (r = 0; r < d->vertices; r++) {
        im->strip_at[r + 1] += im->strip_at[r];
        im->slot_at[r + 1] += im->slot_at[r];
        im->place[r] = im->strip_at[r];
    }

    /* The strips, by the corners of elements. */
    for (e = 0; e < d->elements; e++) for (k = d->start[e]; k < d->start[e + 1]; k++) {
        const int corner = k - d->start[e], count = d->start[e + 1] - d->start[e];
        fsi__assembly_strip *strip;
        if (d->vertex[k] < 0) continue;
        strip = &im->strip[im->place[d->vertex[k]]++];
        strip->block = im->first[e] + corner * count;
        strip->begin = d->start[e];
        strip->corner = (short)corner;
        strip->count = (short)count;
    }
}

/* Row r meets itself and the vertices of its strips, once each; they meet r. fill 0: counts them. fill 1: appends r to
   the rows of all whom it meets: as r ascends, so do the columns of every row, without a sort. */
static void fsi__assembly_columns(fsi__assembly_impl *im, const fsi_assembly_desc *d, int fill)
{
    int r, t, j;
    for (r = 0; r < d->vertices; r++) {
        im->seen[r] = -1;
        im->place[r] = im->start[r];
    }
    for (r = 0; r < d->vertices; r++) {
        int count = 1;
        im->seen[r] = r;
        if (fill) im->col[im->place[r]++] = r;
        for (t = im->strip_at[r]; t < im->strip_at[r + 1]; t++) for (j = 0; j < im->strip[t].count; j++) {
            const int v = d->vertex[im->strip[t].begin + j];
            if (v < 0 || im->seen[v] == r) continue;
            im->seen[v] = r;
            if (fill) im->col[im->place[v]++] = r;
            count++;
        }
        if (!fill) im->start[r + 1] = im->start[r] + count;
    }
}

/* The entries that the blocks of the strips are added to. */
static void fsi__assembly_slots(fsi__assembly_impl *im, const fsi_assembly_desc *d)
{
    int r, t, j, e, *slot = im->slot;
    for (r = 0; r < d->vertices; r++) {
        for (e = im->start[r]; e < im->start[r + 1]; e++) im->place[im->col[e]] = e;
        for (t = im->strip_at[r]; t < im->strip_at[r + 1]; t++) for (j = 0; j < im->strip[t].count; j++) {
            const int v = d->vertex[im->strip[t].begin + j];
            *slot++ = v < 0 ? -1 : im->place[v];
        }
    }
}

static fsi_status fsi__assembly_make(fsi_assembly *s, const fsi_assembly_desc *d, const char *fn, int blocks)
{
    fsi__assembly_impl *im = (fsi__assembly_impl *)s->impl;
    fsi__arena measure = { NULL, 0, 0 }, measure_entries = { NULL, 0, 0 };

    /* Corners by vertex, and columns of each row. */
    fsi__assembly_lay(im, &measure, d, blocks);
    if (!fsi__arena_reserve(d->context, &im->memory[0], measure.used))
        return fsi__fail(d->context, FSI_ERROR_MEMORY, fn, -1, d->elements, "no memory for the pattern of %d elements",
            d->elements);
    fsi__assembly_lay(im, &im->memory[0], d, blocks);
    fsi__assembly_strips(im, d);
    fsi__assembly_columns(im, d, 0);

    /* The matrix. */
    fsi__assembly_lay_entries(im, &measure_entries, (size_t)im->start[d->vertices], d->block);
    if (!fsi__arena_reserve(d->context, &im->memory[1], measure_entries.used))
        return fsi__fail(d->context, FSI_ERROR_MEMORY, fn, -1, im->start[d->vertices], "no memory for %d blocks",
            im->start[d->vertices]);
    fsi__assembly_lay_entries(im, &im->memory[1], (size_t)im->start[d->vertices], d->block);
    fsi__assembly_columns(im, d, 1);
    fsi__assembly_slots(im, d);

    /* What the caller reads. */
    s->matrix.rows = s->matrix.cols = d->vertices;
    s->matrix.block = d->block;
    s->matrix.start = im->start;
    s->matrix.col = im->col;
    s->matrix.value = im->value;
    s->numbers = (size_t)blocks * (size_t)(d->block * d->block);
    s->vector_numbers = (size_t)im->begin[d->elements] * (size_t)d->block;
    s->bytes = sizeof *s + sizeof *im + im->memory[0].size + im->memory[1].size;
    return FSI_OK;
}

FSI_API fsi_assembly_desc fsi_assembly_default_desc(void)
{
    fsi_assembly_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('a', fsi_assembly_desc);
    d.block = 3;
    return d;
}

static int fsi__is_assembly(const fsi_assembly *s) { return s && s->cookie == FSI__COOKIE('A', fsi_assembly); }

FSI_API void fsi_assembly_destroy(fsi_assembly *s)
{
    fsi__assembly_impl *im;
    if (!fsi__is_assembly(s)) return;
    im = (fsi__assembly_impl *)s->impl;
    s->cookie = 0;
    fsi__arena_free(s->context, &im->memory[1]);
    fsi__arena_free(s->context, &im->memory[0]);
    fsi__free(s->context, s, 1, sizeof *s + sizeof *im);
}

FSI_API fsi_status fsi_assembly_create(fsi_assembly **out, const fsi_assembly_desc *desc)
{
    const char *fn = "fsi_assembly_create";
    fsi_context *c;
    fsi_assembly *s;
    fsi_status status;
    int blocks = 0;

    /* Input. */
    if (out) *out = NULL;
    if (!desc || desc->cookie != FSI__COOKIE('a', fsi_assembly_desc) || !fsi__is_context(desc->context))
        return FSI_ERROR_COOKIE;
    c = desc->context;
    if (!out) return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "out is NULL");
    FSI__TRY(fsi__assembly_check(desc, fn, &blocks));

    /* The struct; then what depends on the pattern. */
    s = (fsi_assembly *)fsi__alloc(c, 1, sizeof *s + sizeof(fsi__assembly_impl));
    if (!s) return fsi__fail(c, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for the assembly");
    s->cookie = FSI__COOKIE('A', fsi_assembly);
    s->context = c;
    s->vertices = desc->vertices;
    s->block = desc->block;
    s->elements = desc->elements;
    s->impl = s + 1;
    status = fsi__assembly_make(s, desc, fn, blocks);
    if (status == FSI_OK) *out = s;
    else fsi_assembly_destroy(s);
    return status;
}

typedef struct fsi__assembly_job { const fsi_assembly *s; const double *value; } fsi__assembly_job;

/* Adds the blocks of a strip to the entries that the slots name. */
static void fsi__assembly_add(double *sum, const int *slot, const double *v, int count, int b)
{
    const int w = count * b;
    int j, p, q;
    for (j = 0; j < count; j++, v += b) {
        double *to;
        if (slot[j] < 0) continue;
        to = sum + (size_t)slot[j] * (size_t)(b * b);
        if (b == 3) {
            const double *v1 = v + w, *v2 = v1 + w;
            to[0] += v[0], to[1] += v[1], to[2] += v[2];
            to[3] += v1[0], to[4] += v1[1], to[5] += v1[2];
            to[6] += v2[0], to[7] += v2[1], to[8] += v2[2];
        }
        else if (b == 1) to[0] += v[0];
        else for (p = 0; p < b; p++) for (q = 0; q < b; q++) to[p * b + q] += v[p * w + q];
    }
}

/* A_rc = sum over elements, their corners i at r and j at c, of block i j. */
static void fsi__assembly_rows(void *arg, int chunk, int begin, int end)
{
    const fsi__assembly_job *job = (const fsi__assembly_job *)arg;
    const fsi__assembly_impl *im = (const fsi__assembly_impl *)job->s->impl;
    const int b = job->s->block, bb = b * b, *slot = im->slot + im->slot_at[begin];
    int r, t, k;
    im->bad[chunk] = -1;
    for (r = begin; r < end; r++) {
        double *row = im->sum + (size_t)im->start[r] * (size_t)bb,
            *stop = im->sum + (size_t)im->start[r + 1] * (size_t)bb;
        int finite = 1;
        memset(row, 0, (size_t)(stop - row) * sizeof *row);
        for (t = im->strip_at[r]; t < im->strip_at[r + 1]; slot += im->strip[t++].count) {
            const fsi__assembly_strip *strip = &im->strip[t], *later = strip + FSI__ASSEMBLY_AHEAD;
            for (k = 0; k < later->count * bb; k += 8)
                FSI__PREFETCH(job->value + (size_t)later->block * (size_t)bb + k);
            fsi__assembly_add(im->sum, slot, job->value + (size_t)strip->block * (size_t)bb, strip->count, b);
        }
        for (; row < stop; row++) finite &= fsi_is_finite(*row);
        if (!finite && im->bad[chunk] < 0) im->bad[chunk] = r;
    }
}

static void fsi__assembly_vector_rows(void *arg, int chunk, int begin, int end)
{
    const fsi__assembly_job *job = (const fsi__assembly_job *)arg;
    const fsi__assembly_impl *im = (const fsi__assembly_impl *)job->s->impl;
    const int b = job->s->block;
    int r, t, p;
    im->bad[chunk] = -1;
    for (r = begin; r < end; r++) {
        double sum[16] = { 0 };
        for (t = im->strip_at[r]; t < im->strip_at[r + 1]; t++) {
            const double *v = job->value + (size_t)(im->strip[t].begin + im->strip[t].corner) * (size_t)b;
            for (p = 0; p < b; p++) sum[p] += v[p];
        }
        for (p = 0; p < b; p++) {
            im->sum[(size_t)r * (size_t)b + (size_t)p] = sum[p];
            if (!fsi_is_finite(sum[p]) && im->bad[chunk] < 0) im->bad[chunk] = r;
        }
    }
}

static void fsi__assembly_publish_rows(void *arg, int chunk, int begin, int end)
{
    const fsi_assembly *s = (const fsi_assembly *)arg;
    const fsi__assembly_impl *im = (const fsi__assembly_impl *)s->impl;
    const size_t bb = (size_t)(s->block * s->block), from = (size_t)im->start[begin] * bb,
        to = (size_t)im->start[end] * bb;
    (void)chunk;
    memcpy(im->value + from, im->sum + from, (to - from) * sizeof(double));
}

/* The sum becomes the matrix; a number takes 0.3 ns at least. */
static void fsi__assembly_publish(fsi_assembly *s)
{
    const fsi__assembly_impl *im = (const fsi__assembly_impl *)s->impl;
    const double numbers = (double)im->start[s->vertices] * s->block * s->block;
    fsi__parallel_work(s->context, s->vertices, FSI__ASSEMBLY_GRAIN, 0.17 * numbers, fsi__assembly_publish_rows, s);
}

/* Row r of the sum is not finite: names an element whose number is not, or the row. */
static fsi_status fsi__assembly_blame(const fsi_assembly *s, const char *fn, const double *value, int r, int is_matrix)
{
    const fsi__assembly_impl *im = (const fsi__assembly_impl *)s->impl;
    const int b = s->block, *slot = im->slot + im->slot_at[r];
    int t, p, j, e;
    for (t = im->strip_at[r]; t < im->strip_at[r + 1]; slot += im->strip[t++].count) {
        const fsi__assembly_strip *strip = &im->strip[t];
        const int corner = strip->begin + strip->corner, wide = is_matrix ? strip->count * b : 1;
        const double *v = value + (is_matrix ? (size_t)strip->block * (size_t)(b * b) : (size_t)corner * (size_t)b);
        for (p = 0; p < b; p++) for (j = 0; j < wide; j++) {
            if (fsi_is_finite(v[p * wide + j]) || (is_matrix && slot[j / b] < 0)) continue;
            for (e = 0; im->begin[e + 1] <= corner;) e++;
            return fsi__fail(s->context, FSI_ERROR_NAN, fn, e, 0,
                "element %d has a number that is not finite, at its vertex %d", e, strip->corner);
        }
    }
    return fsi__fail(s->context, FSI_ERROR_NAN, fn, r, 0,
        "the sum of the elements at vertex %d is larger than a double can hold", r);
}

/* Sums into im->sum. A slot takes 1/2 + b^2/2 ns at least of one thread, a strip of a vector 2. */
static fsi_status fsi__assembly_sum(const fsi_assembly *s, const char *fn, const double *value, int is_matrix)
{
    const fsi__assembly_impl *im = (const fsi__assembly_impl *)s->impl;
    fsi__range_fn *const rows = is_matrix ? fsi__assembly_rows : fsi__assembly_vector_rows;
    const double slot = 0.5 + 0.5 * s->block * s->block;
    const double work = is_matrix ? slot * im->slot_at[s->vertices] : 2.0 * im->strip_at[s->vertices];
    fsi__assembly_job job;
    int k;
    job.s = s;
    job.value = value;
    fsi__parallel_work(s->context, s->vertices, FSI__ASSEMBLY_GRAIN, work, rows, &job);
    for (k = 0; k < fsi__chunks(s->vertices, FSI__ASSEMBLY_GRAIN); k++)
        if (im->bad[k] >= 0) return fsi__assembly_blame(s, fn, value, im->bad[k], is_matrix);
    return FSI_OK;
}

FSI_API fsi_status fsi_assembly_matrix(fsi_assembly *s, const double *value)
{
    const char *fn = "fsi_assembly_matrix";
    fsi_status status;
    if (!fsi__is_assembly(s)) return FSI_ERROR_COOKIE;
    if (s->numbers > 0 && !value) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "value is NULL");
    status = fsi__assembly_sum(s, fn, value, 1);
    if (status == FSI_OK) fsi__assembly_publish(s);
    return status;
}

FSI_API fsi_status fsi_assembly_vector(fsi_assembly *s, const double *value, double *out)
{
    const char *fn = "fsi_assembly_vector";
    fsi_status status;
    if (!fsi__is_assembly(s)) return FSI_ERROR_COOKIE;
    if ((s->vector_numbers > 0 && !value) || (s->vertices > 0 && !out))
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "value or out is NULL");
    status = fsi__assembly_sum(s, fn, value, 0);
    if (status == FSI_OK && s->vertices > 0)
        memcpy(out, ((const fsi__assembly_impl *)s->impl)->sum, (size_t)s->vertices * (size_t)s->block * sizeof *out);
    return status;
}

/* Where the matrix or the vector of an element starts. */
static size_t fsi__assembly_offset(const fsi_assembly *s, const char *fn, int element, int is_matrix)
{
    const fsi__assembly_impl *im;
    if (!fsi__is_assembly(s)) return (size_t)-1;
    if (element < 0 || element >= s->elements) {
        fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, element, 0, "there is no element %d, they are %d", element,
            s->elements);
        return (size_t)-1;
    }
    im = (const fsi__assembly_impl *)s->impl;
    return is_matrix ? (size_t)im->first[element] * (size_t)(s->block * s->block)
        : (size_t)im->begin[element] * (size_t)s->block;
}

FSI_API size_t fsi_assembly_matrix_offset(const fsi_assembly *s, int element)
{
    return fsi__assembly_offset(s, "fsi_assembly_matrix_offset", element, 1);
}
FSI_API size_t fsi_assembly_vector_offset(const fsi_assembly *s, int element)
{
    return fsi__assembly_offset(s, "fsi_assembly_vector_offset", element, 0);
}

/* ---- >>order -----------------------------------------------------------------------------------------------------

   In which order to eliminate the rows of a sparse symmetric matrix, so that its factor stays sparse.

   Eliminating a vertex joins all its later neighbours pairwise (Parter 1961).

   MINIMUM DEGREE (Tinney and Walker 1967) keeps that fill low: eliminate a vertex of least degree, again and again. The
   quotient graph (George and Liu 1981) does so in the memory of the matrix: an eliminated vertex becomes an element,
   the list of those that it joined. Degrees are bounded as by Amestoy, Davis and Duff (1996), see >>order minimum
   degree. fsi_order.h has nested dissection.

   Before either, vertices with the same closed neighbourhood become one (Ashcraft 1995), and rows with more than
   10 sqrt(n) neighbours are put aside to the end. All decisions are made in integers: the same order on every
   platform. */

FSI_API void fsi__order_net_layout(fsi__order_net *g, fsi__arena *a, size_t n, size_t m)
{
    g->start = (int *)fsi__take(a, n + 1, sizeof(int));
    g->adj = (int *)fsi__take(a, m, sizeof(int));
    g->weight = (int *)fsi__take(a, n, sizeof(int));
    g->rank = (unsigned char *)fsi__take(a, n, 1);
}

FSI_API fsi_status fsi__order_no_memory(fsi_context *c, int n)
{
    return fsi__fail(c, FSI_ERROR_MEMORY, "fsi_ldlt_create", -1, (double)n, "no memory to order %d vertices", n);
}

FSI_API fsi_status fsi__order_too_large(fsi_context *c, int64_t size)
{
    return fsi__fail(c, FSI_ERROR_LIMIT, "fsi_ldlt_create", -1, (double)size,
        "%.0f rows or edges are more than an int counts", (double)size);
}

FSI_API uint64_t fsi__order_mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

/* ---- >>order minimum degree -------------------------------------------------------------------------------------

   The quotient graph. A vertex is a variable, not yet eliminated, or an element. Each has one list in q:

        variable i:  elements E(i) | variables A(i)      edges of the matrix join it to A(i), elements E(i) to others
        element e:   variables L(e)                      the rows of its column of the factor

   Eliminating p makes the element L(p) = A(p) + union of L(e), e in E(p), which absorbs those elements. Each i in L(p)
   then drops from A(i) what L(p) joins it to. Its degree is bounded from above by the least of
        rows left,    old degree + |L(p) - i|,    |A(i)| + |L(p) - i| + sum over e in E(i) of |L(e) - L(p)|,
   where all |L(e) - L(p)| come from one sweep over L(p): start at |L(e)|, subtract each i that is met. If it is 0, p
   absorbs e too (aggressively); if nothing is left of E(i) and A(i), i is eliminated with p (mass elimination).
   Variables of L(p) with the same list become one (found by a hash): their weight is the number of rows. */
typedef struct fsi__order_md {
    fsi__arena memory;
    int n, room, used, *q;    /* q[0] .. q[room - 1], filled up to used */
    int *at, *len, *elements; /* the list of a vertex in q: where, how long; of a variable, how many elements come
                                 first */
    int *weight;              /* rows of a variable, negative while it is in the new element; 0: merged or eliminated */
    int *degree;              /* of a variable the bound, of an element |L(e)| */
    int *head, *next, *prev;  /* lists of the variables of equal degree; prev -2: in none */
    int *bucket, *hash;       /* variables with equal hash, chained by next */
    int *member, *tail;       /* the vertices merged into a variable, as a chain */
    int64_t *mark, now;       /* stamps; 0 is an absorbed element */
    const unsigned char *rank;
    int rank_now, left, waiting, lowest, shift; /* left: rows left, waiting: of them those of this rank */
    int *order, done;         /* the result */
} fsi__order_md;

static void fsi__order_md_layout(fsi__order_md *s, fsi__arena *a, int heads)
{
    size_t n = (size_t)s->n;
    s->mark = (int64_t *)fsi__take(a, n, sizeof(int64_t));
    s->at = (int *)fsi__take(a, n, sizeof(int));
    s->len = (int *)fsi__take(a, n, sizeof(int));
    s->elements = (int *)fsi__take(a, n, sizeof(int));
    s->weight = (int *)fsi__take(a, n, sizeof(int));
    s->degree = (int *)fsi__take(a, n, sizeof(int));
    s->next = (int *)fsi__take(a, n, sizeof(int));
    s->prev = (int *)fsi__take(a, n, sizeof(int));
    s->bucket = (int *)fsi__take(a, n, sizeof(int));
    s->hash = (int *)fsi__take(a, n, sizeof(int));
    s->member = (int *)fsi__take(a, n, sizeof(int));
    s->tail = (int *)fsi__take(a, n, sizeof(int));
    s->head = (int *)fsi__take(a, (size_t)heads, sizeof(int));
    s->q = (int *)fsi__take(a, (size_t)s->room, sizeof(int));
}

static void fsi__order_md_link(fsi__order_md *s, int i)
{
    int d = s->degree[i] >> s->shift;
    s->next[i] = s->head[d];
    s->prev[i] = -1;
    if (s->head[d] >= 0) s->prev[s->head[d]] = i;
    s->head[d] = i;
    if (d < s->lowest) s->lowest = d;
}

static void fsi__order_md_unlink(fsi__order_md *s, int i)
{
    int before = s->prev[i], after = s->next[i];
    if (before == -2) return;
    if (before >= 0) s->next[before] = after;
    else s->head[s->degree[i] >> s->shift] = after;
    if (after >= 0) s->prev[after] = before;
    s->prev[i] = -2;
}

/* Copies the graph; all is a variable. */
static void fsi__order_md_fill(fsi__order_md *s, const fsi__order_net *g, int heads)
{
    int i, k;
    for (k = 0; k < heads; k++) s->head[k] = -1;
    for (i = 0; i < s->n; i++) {
        int64_t degree = 0;
        for (k = g->start[i]; k < g->start[i + 1]; k++) {
            s->q[k] = g->adj[k];
            degree += g->weight[g->adj[k]];
        }
        s->at[i] = g->start[i];
        s->len[i] = g->start[i + 1] - g->start[i];
        s->degree[i] = (int)degree;
        s->weight[i] = g->weight[i];
        s->elements[i] = 0;
        s->bucket[i] = s->member[i] = -1;
        s->prev[i] = -2;
        s->tail[i] = i;
        s->mark[i] = 1;
    }
    s->used = g->start[s->n];
}

static fsi_status fsi__order_md_begin(fsi_context *c, fsi__order_md *s, const fsi__order_net *g, int *order)
{
    fsi__arena measure = { NULL, 0, 0 };
    int64_t rows = 0, m = g->start[g->n], room = m + m / 5 + g->n + 1;
    int i, heads;
    for (i = 0; i < g->n; i++) rows += g->weight[i];
    if (rows > INT32_MAX || room > INT32_MAX + m / 5) return fsi__order_too_large(c, room);
    s->n = g->n;
    s->room = (int)(room < INT32_MAX ? room : INT32_MAX);
    for (s->shift = 0; rows >> s->shift > 16 * (int64_t)g->n; s->shift++) {}
    heads = (int)(rows >> s->shift) + 1;
    fsi__order_md_layout(s, &measure, heads);
    if (!fsi__arena_room(c, &s->memory, measure.used)) return fsi__order_no_memory(c, g->n);
    fsi__order_md_layout(s, &s->memory, heads);
    fsi__order_md_fill(s, g, heads);
    s->rank = g->rank;
    s->left = (int)rows;
    s->lowest = heads;
    s->now = 2;
    s->order = order;
    s->done = 0;
    return FSI_OK;
}

/* Compacts all lists, in the order in which they lie: the first entry of each is kept in `at` and replaced by a
   negative number that names the owner of the list. */
static void fsi__order_md_compact(fsi__order_md *s)
{
    int i, k, from, to = 0;
    for (i = 0; i < s->n; i++) {
        if (s->len[i] == 0) continue;
        k = s->at[i];
        s->at[i] = s->q[k];
        s->q[k] = -1 - i;
    }
    for (from = 0; from < s->used; from++) {
        if (s->q[from] >= 0) continue;
        i = -1 - s->q[from];
        s->q[to] = s->at[i];
        for (k = 1; k < s->len[i]; k++) s->q[to + k] = s->q[from + k];
        s->at[i] = to;
        to += s->len[i];
        from += s->len[i] - 1;
    }
    s->used = to;
}

/* Puts the variables among q[from] .. q[from + count - 1] that are not yet in it at the end of the new element. */
static int fsi__order_md_gather(fsi__order_md *s, int from, int count)
{
    int k, i, rows = 0;
    for (k = from; k < from + count; k++) {
        i = s->q[k];
        if (s->weight[i] <= 0) continue;
        rows += s->weight[i];
        s->weight[i] = -s->weight[i];
        s->q[s->used++] = i;
        fsi__order_md_unlink(s, i);
    }
    return rows;
}

/* L(p) = A(p) + union of L(e), e in E(p). */
static void fsi__order_md_join(fsi__order_md *s, int p)
{
    int64_t most = s->len[p];
    int k, e, begin, rows = 0;
    for (k = 0; k < s->elements[p]; k++) most += s->len[s->q[s->at[p] + k]];
    if (s->used + (most < s->n ? most : s->n) > s->room) fsi__order_md_compact(s);
    begin = s->used;
    for (k = 0; k < s->elements[p]; k++) {
        e = s->q[s->at[p] + k];
        rows += fsi__order_md_gather(s, s->at[e], s->len[e]);
        s->len[e] = 0;
        s->mark[e] = 0;
    }
    rows += fsi__order_md_gather(s, s->at[p] + k, s->len[p] - k);
    s->at[p] = begin;
    s->len[p] = s->used - begin;
    s->degree[p] = rows;
}

/* mark[e] - now = |L(e) - L(p)| for every element e that meets L(p). */
static void fsi__order_md_outside(fsi__order_md *s, int p)
{
    const int *list = s->q + s->at[p];
    int k, j, e;
    for (k = 0; k < s->len[p]; k++) {
        const int *own = s->q + s->at[list[k]];
        int rows = -s->weight[list[k]];
        for (j = 0; j < s->elements[list[k]]; j++) {
            e = own[j];
            if (s->mark[e] >= s->now) s->mark[e] -= rows;
            else if (s->mark[e]) s->mark[e] = s->now + s->degree[e] - rows;
        }
    }
}

/* Removes from the list of i the elements and variables that p contains, and adds p to its elements; degree[i] becomes
   the bound less |L(p) - i|. 0: nothing but p is left. */
static int fsi__order_md_prune(fsi__order_md *s, int i, int p)
{
    int *own = s->q + s->at[i];
    int k, j, kept = 0, end, count = s->elements[i];
    unsigned hash = 0;
    int64_t degree = 0;

    /* Elements that p does not absorb. */
    for (k = 0; k < count; k++) {
        j = own[k];
        if (s->mark[j] > s->now) {
            degree += s->mark[j] - s->now;
            hash += (unsigned)j;
            own[kept++] = j;
        } else if (s->mark[j]) {
            s->mark[j] = 0;
            s->len[j] = 0;
        }
    }

    /* Neighbours that p does not cover. */
    for (end = kept; k < s->len[i]; k++) {
        j = own[k];
        if (s->weight[j] <= 0) continue;
        degree += s->weight[j];
        hash += (unsigned)j;
        own[end++] = j;
    }

    /* The bound of the degree; p joins the elements. */
    if (degree < s->degree[i]) s->degree[i] = (int)degree;
    own[end] = own[kept]; /* there is room: an absorbed element, or p itself, has gone */
    own[kept] = p;
    s->elements[i] = kept + 1;
    s->len[i] = end + 1;
    s->hash[i] = (int)(hash % (unsigned)s->n);
    return end > 0;
}

static void fsi__order_md_output(fsi__order_md *s, int i)
{
    for (; i >= 0; i = s->member[i]) s->order[s->done++] = i;
}

/* Eliminates i together with p. */
static void fsi__order_md_follow(fsi__order_md *s, int i, int p)
{
    int rows = -s->weight[i];
    s->left -= rows;
    s->waiting -= rows;
    s->degree[p] -= rows;
    s->weight[i] = s->len[i] = 0;
    fsi__order_md_output(s, i);
}

static void fsi__order_md_merge(fsi__order_md *s, int i, int j) /* j into i */
{
    s->weight[i] += s->weight[j];
    s->weight[j] = s->len[j] = 0;
    s->member[s->tail[i]] = j;
    s->tail[i] = s->tail[j];
}

/* Is the list of j that of i, all of whose entries are marked `now`? */
static int fsi__order_md_same(const fsi__order_md *s, int i, int j)
{
    const int *own = s->q + s->at[j];
    int k;
    if (s->len[i] != s->len[j] || s->elements[i] != s->elements[j] || s->rank[i] != s->rank[j]) return 0;
    for (k = 1; k < s->len[j]; k++) if (s->mark[own[k]] != s->now) return 0;
    return s->mark[own[0]] == s->now;
}

/* Merges the variables of a bucket that have the same list, and empties it. */
static void fsi__order_md_merge_bucket(fsi__order_md *s, int bucket)
{
    int i, j, k, before;
    for (i = s->bucket[bucket]; i >= 0 && s->next[i] >= 0; i = s->next[i]) {
        s->now++;
        for (k = 0; k < s->len[i]; k++) s->mark[s->q[s->at[i] + k]] = s->now;
        for (before = i, j = s->next[i]; j >= 0; j = s->next[j]) {
            if (!fsi__order_md_same(s, i, j)) {
                before = j;
                continue;
            }
            fsi__order_md_merge(s, i, j);
            s->next[before] = s->next[j];
        }
    }
    s->bucket[bucket] = -1;
}

/* The new degrees; removes merged and eliminated variables from L(p). */
static void fsi__order_md_settle(fsi__order_md *s, int p)
{
    int *list = s->q + s->at[p];
    int k, i, rows, kept = 0;
    int64_t degree;
    for (k = 0; k < s->len[p]; k++) {
        i = list[k];
        if (s->weight[i] == 0) continue;
        rows = s->weight[i] = -s->weight[i];
        degree = (int64_t)s->degree[i] + s->degree[p] - rows;
        s->degree[i] = degree < s->left - rows ? (int)degree : s->left - rows;
        if (s->rank[i] <= s->rank_now) fsi__order_md_link(s, i);
        list[kept++] = i;
    }
    s->len[p] = kept;
    s->used = s->at[p] + kept;
    s->mark[p] = kept ? 1 : 0;
}

static void fsi__order_md_eliminate(fsi__order_md *s, int p)
{
    /* p leaves the graph and becomes an element. */
    int k, i, rows = s->weight[p];
    s->weight[p] = 0;
    s->left -= rows;
    s->waiting -= rows;
    fsi__order_md_output(s, p);
    fsi__order_md_join(s, p);
    fsi__order_md_outside(s, p);

    /* Each neighbour drops what p contains; those that are left with p alone are eliminated with it, the others are
       sorted by hash. */
    for (k = 0; k < s->len[p]; k++) {
        i = s->q[s->at[p] + k];
        if (!fsi__order_md_prune(s, i, p) && s->rank[i] <= s->rank_now) {
            fsi__order_md_follow(s, i, p);
            continue;
        }
        s->next[i] = s->bucket[s->hash[i]];
        s->bucket[s->hash[i]] = i;
    }

    /* Neighbours that see the same are merged; then degrees. */
    s->now += (int64_t)s->left + 1;
    for (k = 0; k < s->len[p]; k++) {
        i = s->q[s->at[p] + k];
        if (s->weight[i] && s->bucket[s->hash[i]] >= 0) fsi__order_md_merge_bucket(s, s->hash[i]);
    }
    s->now++;
    fsi__order_md_settle(s, p);
}

static fsi_status fsi__order_md_run(fsi_context *c, fsi__order_md *s, const fsi__order_net *g, int top, int *order)
{
    int i, p;
    FSI__TRY(fsi__order_md_begin(c, s, g, order));
    for (s->rank_now = 0; s->rank_now <= top; s->rank_now++) {
        for (s->waiting = 0, i = s->n - 1; i >= 0; i--) { /* the first index comes first among equals */
            if (s->rank[i] != s->rank_now || s->weight[i] == 0) continue;
            s->waiting += s->weight[i];
            fsi__order_md_link(s, i);
        }
        while (s->waiting > 0) {
            while (s->head[s->lowest] < 0) s->lowest++;
            p = s->head[s->lowest];
            fsi__order_md_unlink(s, p);
            fsi__order_md_eliminate(s, p);
        }
    }
    return FSI_OK;
}

FSI_API fsi_status fsi__order_by_degree(fsi_context *c, const fsi__order_net *g, int top, int *order, int *count,
                                        fsi__arena *memory)
{
    fsi__order_md md;
    fsi_status status = FSI_OK;
    memset(&md, 0, sizeof md);
    md.memory = *memory;
    if (g->n > 0) status = fsi__order_md_run(c, &md, g, top, order);
    *memory = md.memory;
    *count = md.done;
    return status;
}

/* ---- >>order graph ---------------------------------------------------------------------------------------------- */

/* Memory of an ordering that the next one may use: zeros at first. state: of `ordering`. */
typedef struct fsi__order_pool {
    fsi__arena memory, core, degrees;
    const fsi_ordering *ordering;
    void *state;
} fsi__order_pool;

static void fsi__order_pool_free(fsi_context *c, fsi__order_pool *p)
{
    fsi__arena_free(c, &p->memory);
    fsi__arena_free(c, &p->core);
    fsi__arena_free(c, &p->degrees);
    if (p->ordering) p->ordering->release(c, p->state);
    memset(p, 0, sizeof *p);
}

FSI_API int fsi__order_reserve_zeros(fsi_context *c, fsi__arena *a, size_t size)
{
    if (!fsi__arena_room(c, a, size)) return 0;
    memset(a->base, 0, size);
    return 1;
}

typedef struct fsi__order_job {
    fsi_context *c;
    int n;
    const int *start, *adj;
    int block;           /* rows of the matrix that a vertex stands for */
    const unsigned char *last;
    fsi__arena memory, core_memory;
    uint64_t *key;       /* hash of the closed neighbourhood */
    int *owner, *sibling, *number, *list; /* representative; next vertex of the same; its number in the core, -1 set
                                             aside */
    int64_t dense;       /* vertices with more neighbours than the root of this are set aside */
    fsi__order_net core; /* what remains: one vertex for each representative */
} fsi__order_job;

/* Do the neighbours u and v have the same closed neighbourhood? Both lists ascend; each lacks only its own vertex. */
static int fsi__order_twins(const fsi__order_job *s, int u, int v)
{
    const int *a = s->adj + s->start[u], *b = s->adj + s->start[v];
    const int *a_end = s->adj + s->start[u + 1], *b_end = s->adj + s->start[v + 1];
    for (;;) {
        if (a < a_end && *a == v) a++;
        if (b < b_end && *b == u) b++;
        if (a == a_end || b == b_end) return a == a_end && b == b_end;
        if (*a++ != *b++) return 0;
    }
}

/* Indistinguishable vertices are neighbours, so only these are compared. */
static void fsi__order_compress(fsi__order_job *s)
{
    int v, u, k;
    for (v = 0; v < s->n; v++) {
        s->key[v] = fsi__order_mix((uint64_t)v + 1);
        for (k = s->start[v]; k < s->start[v + 1]; k++) s->key[v] += fsi__order_mix((uint64_t)s->adj[k] + 1);
        s->owner[v] = v;
        s->sibling[v] = -1;
    }
    for (v = 0; v < s->n; v++) {
        int end = v;
        if (s->owner[v] != v) continue;
        for (k = s->start[v]; k < s->start[v + 1]; k++) {
            u = s->adj[k];
            if (u < v || s->key[u] != s->key[v] || s->owner[u] != u) continue;
            if (s->last && (s->last[u] != 0) != (s->last[v] != 0)) continue;
            if (!fsi__order_twins(s, v, u)) continue;
            s->owner[u] = v;
            s->sibling[end] = u;
            end = u;
        }
    }
}

/* Numbers the vertices of the core; returns how many edges they have at most. */
static int fsi__order_number(fsi__order_job *s)
{
    int v, edges = 0, owners = 0;
    for (v = 0; v < s->n; v++) owners += s->owner[v] == v;
    s->dense = 100 * (int64_t)owners > 256 ? 100 * (int64_t)owners : 256;
    for (v = 0; v < s->n; v++) {
        int64_t degree = 0;
        int k;
        s->number[v] = -1;
        if (s->owner[v] != v) continue;
        for (k = s->start[v]; k < s->start[v + 1]; k++) degree += s->owner[s->adj[k]] == s->adj[k];
        if (degree * degree > s->dense) continue;
        s->number[v] = s->core.n++;
        edges += (int)degree;
    }
    return edges;
}

/* Returns the number of rows. */
static int64_t fsi__order_fill_core(fsi__order_job *s)
{
    fsi__order_net *g = &s->core;
    int v, u, k, m = 0;
    int64_t total = 0;
    for (v = 0; v < s->n; v++) {
        int i = s->number[v];
        int64_t rows = 0;
        if (i < 0) continue;
        for (u = v; u >= 0; u = s->sibling[u]) rows += s->block;
        g->weight[i] = rows < INT32_MAX ? (int)rows : INT32_MAX;
        total += rows;
        g->rank[i] = s->last && s->last[v];
        g->start[i] = m;
        for (k = s->start[v]; k < s->start[v + 1]; k++)
            if (s->number[s->adj[k]] >= 0) g->adj[m++] = s->number[s->adj[k]];
    }
    g->start[g->n] = m;
    return total;
}

static void fsi__order_job_layout(fsi__order_job *s, fsi__arena *a)
{
    size_t n = (size_t)s->n;
    s->key = (uint64_t *)fsi__take(a, n, sizeof(uint64_t));
    s->owner = (int *)fsi__take(a, n, sizeof(int));
    s->sibling = (int *)fsi__take(a, n, sizeof(int));
    s->number = (int *)fsi__take(a, n, sizeof(int));
    s->list = (int *)fsi__take(a, n, sizeof(int));
}

static fsi_status fsi__order_make_core(fsi__order_job *s)
{
    fsi__arena measure = { NULL, 0, 0 };
    size_t edges;
    int64_t rows;
    fsi__order_job_layout(s, &measure);
    if (!fsi__order_reserve_zeros(s->c, &s->memory, measure.used)) return fsi__order_no_memory(s->c, s->n);
    fsi__order_job_layout(s, &s->memory);
    fsi__order_compress(s);
    edges = (size_t)fsi__order_number(s);
    measure.used = 0;
    fsi__order_net_layout(&s->core, &measure, (size_t)s->core.n, edges);
    if (!fsi__order_reserve_zeros(s->c, &s->core_memory, measure.used)) return fsi__order_no_memory(s->c, s->n);
    fsi__order_net_layout(&s->core, &s->core_memory, (size_t)s->core.n, edges);
    rows = fsi__order_fill_core(s);
    return rows > INT32_MAX ? fsi__order_too_large(s->c, rows) : FSI_OK;
}

/* Writes the core's vertices of a rank, in their order, and then the ones set aside, each with its siblings. */
static int fsi__order_expand(fsi__order_job *s, const int *vertex, int rank, int *order, int done)
{
    int k, v;
    for (k = 0; k < s->core.n; k++) {
        if (s->core.rank[s->list[k]] != rank) continue;
        for (v = vertex[s->list[k]]; v >= 0; v = s->sibling[v]) order[done++] = v;
    }
    for (k = 0; k < s->n; k++) {
        if (s->number[k] >= 0 || s->owner[k] != k || (s->last && s->last[k]) != rank) continue;
        for (v = k; v >= 0; v = s->sibling[v]) order[done++] = v;
    }
    return done;
}

static void fsi__order_natural(int n, const unsigned char *last, int *order)
{
    int v, rank, done = 0;
    for (rank = 0; rank <= 1; rank++)
        for (v = 0; v < n; v++)
            if ((last && last[v]) == rank) order[done++] = v;
}

/* Orders the core: by minimum degree, or by d->ordering where the matrix has enough rows for it. */
static fsi_status fsi__order_core(fsi__order_job *s, const fsi_ldlt_desc *d, fsi__order_pool *pool)
{
    int count;
    if (!d->ordering || (double)s->n * s->block <= d->ordering->least)
        return fsi__order_by_degree(s->c, &s->core, 1, s->list, &count, &pool->degrees);
    if (pool->ordering && pool->ordering != d->ordering) {
        pool->ordering->release(s->c, pool->state);
        pool->state = NULL;
    }
    pool->ordering = d->ordering;
    return d->ordering->find(s->c, &s->core, s->list, &pool->state);
}

/* Orders a symmetric graph without self loops: neighbours of v are adj[start[v]] .. adj[start[v + 1] - 1], ascending.
   block: rows of the matrix that each stands for. d->last[v] nonzero: after all others. order[k] becomes the k-th
   vertex to eliminate. */
static fsi_status fsi__order_graph(fsi_context *c, int n, const int *start, const int *adj, int block,
                                   const fsi_ldlt_desc *d, fsi__order_pool *pool, int *order)
{
    fsi__order_job s;
    fsi_status status;
    int v;
    if (d->order == FSI_LDLT_NATURAL || n == 0) {
        fsi__order_natural(n, d->last, order);
        return FSI_OK;
    }

    /* The core, without dense rows, and its order. */
    memset(&s, 0, sizeof s);
    s.memory = pool->memory;
    s.core_memory = pool->core;
    s.c = c;
    s.n = n;
    s.start = start;
    s.adj = adj;
    s.block = block;
    s.last = d->last;
    status = fsi__order_make_core(&s);
    if (status == FSI_OK) status = fsi__order_core(&s, d, pool);

    /* Vertices in place of core vertices. */
    if (status == FSI_OK) {
        int *vertex = s.core.start; /* of the core; its edges are no longer needed */
        for (v = 0; v < n; v++) if (s.number[v] >= 0) vertex[s.number[v]] = v;
        fsi__order_expand(&s, vertex, 1, order, fsi__order_expand(&s, vertex, 0, order, 0));
    }
    pool->memory = s.memory;
    pool->core = s.core_memory;
    return status;
}

/* ---- >>fronts ---------------------------------------------------------------------------------------------------

   P A P^T = L D L^T by fronts (Duff and Reid's multifrontal method). Columns whose structure below the diagonal is the
   same form a supernode; its front is a small dense symmetric matrix over its own columns and the rows below:

            own   rows below
      own  [ F11           ]   F is the sum of A's entries there and of the updates of the children in the elimination
      rows [ F21   F22     ]   tree. Elimination of the own columns gives columns of L, kept in the panel [L11; L21],
                               and the update F22 - L21 D L21^T, which is added to the front of the parent.

   Everything that depends on the pattern alone is found once: the order, the tree, the supernodes, where each entry of
   A and of each update goes, and where updates lie in memory. They lie on two stacks: a front and its children on
   different ones, so that a child's update is at the top of its stack when the parent takes it in, and nothing moves.

   Whole subtrees are tasks; the fronts above them come one after the other, each cut into strips. Every number is
   computed in the same order whoever does it. */

enum {
    FSI__LDLT_MR = 8, FSI__LDLT_NR = 6, /* register tile */
    FSI__LDLT_KC = 128,                 /* columns of L that a product takes at a time */
    FSI__LDLT_PANEL = 32,               /* columns that are eliminated before the rest of the panel is brought up to
                                           date */
    FSI__LDLT_STRIP = 48,               /* columns of a product that are one task; a multiple of both sides of the
                                           tile */
    FSI__LDLT_MC = 256                  /* rows that stay in the second cache while columns go by */
};
#define FSI__LDLT_NS 0.055      /* nanoseconds at least that a product takes a term of its sums; */
#define FSI__LDLT_NS_TAKE 0.25  /* and a number of an update that goes to the parent's: fsi__parallel_work */
#define FSI__LDLT_FRONT 2000.0 /* overhead of a front, beside its arithmetic */
#define FSI__LDLT_SMALL 1e6  /* less work than this is one task */
#define FSI__LDLT_SHARE 16.0 /* a subtree is a task when it is less than this part of the work */

typedef struct fsi__ldlt_node {
    int first, last;           /* own block columns, in elimination order: first .. last-1 */
    int parent, child, next;   /* supernodes, -1: none; children and siblings in order */
    int rows;                  /* block rows below */
    int stack;                 /* 0 or 1: where its update lies */
    int task;                  /* subtree that it belongs to; -1: it is above them */
    size_t row;                /* its rows: row[0 .. rows-1] of the impl, ascending */
    size_t panel, update;      /* where its panel and update lie */
    size_t entry, entries;     /* entries of A that belong to its columns */
} fsi__ldlt_node;

/* Block `a` of A, transposed or not, goes to block row, column of a front. */
typedef struct fsi__ldlt_entry { int a, row, column, transposed; } fsi__ldlt_entry;

/* Nodes begin .. end-1, where its packed columns lie, and its rows that belong to nodes above. */
typedef struct fsi__ldlt_task { int begin, end; size_t pack, above; int above_count; } fsi__ldlt_task;

/* Pivots of one task; rows in elimination order. */
typedef struct fsi__ldlt_verdict {
    int bad;                   /* the first pivot that was refused, -1: none; its value */
    double pivot;
    int negative, weakest;
    double ratio;              /* of the weakest pivot to the sum of the absolute values of its terms */
    double growth;             /* largest ratio of the terms of a pivot to the largest entry of its row */
} fsi__ldlt_verdict;

typedef void fsi__ldlt_tile_fn(int k, const double *a, const double *b, double *c, size_t ldc);

typedef struct fsi__ldlt_impl {
    int *perm, *inverse;       /* perm[k]: block row of A that is eliminated k-th */
    fsi__ldlt_node *node;
    int *row, *at, *run;       /* rows of fronts; their places in the parent's front, and the length of the run of
                                  consecutive places from each on */
    int *slot;                 /* of each row: its number among those of the task that belong to nodes above, else -1 */
    int *above;                /* of each task: those rows; and what forward substitution of four subtracts there */
    double *passed;
    fsi__ldlt_entry *entry;
    size_t row_count, entry_count;
    double *panel, *update, *pack;
    fsi__ldlt_task *task;      /* subtrees, and after them what is above */
    int node_count, task_count;
    double task_work; /* additions and multiplications in all tasks */
    fsi__ldlt_verdict *verdict; /* of each task, and of what is above them */
    fsi__ldlt_tile_fn *tile;   /* the fastest that this machine has */
    uint64_t pattern;          /* hash of the matrix that was analysed */
    double *scale, *x;         /* in elimination order: largest entry of each row; right side, then solution, of one
                                  or of four side by side */
    signed char *sign;         /* that pivots must have, NULL: any */
    fsi__arena memory[3];      /* of rows, of the structure, of numbers */
    int keeps;                 /* the next two are kept for another pattern */
    fsi__arena scratch;        /* of the analysis */
    fsi__order_pool pool;
} fsi__ldlt_impl;

/* C -= (L D) L^T for one register tile of C: a holds MR rows of L D, b NR rows of L, k columns of each one after the
   other. A call of its own: inlined, gcc vectorises it across the wrong loop, at a third of the speed. */
FSI__NOINLINE static void fsi__ldlt_tile(int k, const double *a, const double *b, double *c, size_t ldc)
{
    double sum[FSI__LDLT_NR][FSI__LDLT_MR];
    int i, j, p;
    for (j = 0; j < FSI__LDLT_NR; j++) for (i = 0; i < FSI__LDLT_MR; i++) sum[j][i] = 0;
    for (p = 0; p < k; p++) {
        for (j = 0; j < FSI__LDLT_NR; j++) {
            const double bj = b[p * FSI__LDLT_NR + j];
            for (i = 0; i < FSI__LDLT_MR; i++) sum[j][i] += a[p * FSI__LDLT_MR + i] * bj;
        }
    }
    for (j = 0; j < FSI__LDLT_NR; j++) for (i = 0; i < FSI__LDLT_MR; i++) c[(size_t)j * ldc + (size_t)i] -= sum[j][i];
}

/* The same arithmetic, so the same bits, in vectors of four: three times as fast on processors with AVX, which is
   detected at run time. */
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__TINYC__) && !defined(__CUDACC__) && !defined(FSI_NO_SIMD)
__attribute__((target("avx2"))) FSI__NOINLINE static void fsi__ldlt_tile_avx2(int k, const double *a, const double *b,
    double *c, size_t ldc)
{
    fsi__four s0 = { 0, 0, 0, 0 }, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, t0 = s0, t1 = s0, t2 = s0,
        t3 = s0, t4 = s0, t5 = s0;
    int j;
    const double *end = a + (size_t)k * FSI__LDLT_MR;
    for (j = 0; j < FSI__LDLT_NR; j++) FSI__PREFETCH(c + (size_t)j * ldc + 4);

    /* s and t: rows 0 to 3 and 4 to 7 of a b^T, column by column. */
    for (; a < end; a += FSI__LDLT_MR, b += FSI__LDLT_NR) {
        const fsi__four x = *(const fsi__four *)a, y = *(const fsi__four *)(a + 4);
        s0 += x * b[0];
        t0 += y * b[0];
        s1 += x * b[1];
        t1 += y * b[1];
        s2 += x * b[2];
        t2 += y * b[2];
        s3 += x * b[3];
        t3 += y * b[3];
        s4 += x * b[4];
        t4 += y * b[4];
        s5 += x * b[5];
        t5 += y * b[5];
    }

    /* c -= a b^T. */
#define FSI__LDLT_PUT(j, s, t) *(fsi__four *)(c + (j) * ldc) -= s; *(fsi__four *)(c + (j) * ldc + 4) -= t
    FSI__LDLT_PUT(0, s0, t0);
    FSI__LDLT_PUT(1, s1, t1);
    FSI__LDLT_PUT(2, s2, t2);
    FSI__LDLT_PUT(3, s3, t3);
    FSI__LDLT_PUT(4, s4, t4);
    FSI__LDLT_PUT(5, s5, t5);
#undef FSI__LDLT_PUT
}

/* And in vectors of eight: a column of the tile each. AVX-512 has fused multiply-adds, with which clang may contract in
   spite of its pragma. */
#if !defined(__clang__) && __GNUC__ >= 5
#define FSI__LDLT_AVX512
typedef double fsi__ldlt_eight __attribute__((vector_size(64), aligned(8), may_alias));

__attribute__((target("avx512f")))
FSI__NOINLINE static void fsi__ldlt_tile_avx512(int k, const double *a, const double *b, double *c, size_t ldc)
{
    fsi__ldlt_eight s0 = { 0, 0, 0, 0, 0, 0, 0, 0 }, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0;
    const double *end = a + (size_t)k * FSI__LDLT_MR;
    int j;
    for (j = 0; j < FSI__LDLT_NR; j++) FSI__PREFETCH(c + (size_t)j * ldc + 4);
    for (; a < end; a += FSI__LDLT_MR, b += FSI__LDLT_NR) {
        const fsi__ldlt_eight x = *(const fsi__ldlt_eight *)a;
        s0 += x * b[0];
        s1 += x * b[1];
        s2 += x * b[2];
        s3 += x * b[3];
        s4 += x * b[4];
        s5 += x * b[5];
    }
    *(fsi__ldlt_eight *)c -= s0;
    *(fsi__ldlt_eight *)(c + ldc) -= s1;
    *(fsi__ldlt_eight *)(c + 2 * ldc) -= s2;
    *(fsi__ldlt_eight *)(c + 3 * ldc) -= s3;
    *(fsi__ldlt_eight *)(c + 4 * ldc) -= s4;
    *(fsi__ldlt_eight *)(c + 5 * ldc) -= s5;
}
#endif

static fsi__ldlt_tile_fn *fsi__ldlt_best_tile(void)
{
#ifdef FSI__LDLT_AVX512
    if (__builtin_cpu_supports("avx512f")) return fsi__ldlt_tile_avx512;
#endif
    return __builtin_cpu_supports("avx2") ? fsi__ldlt_tile_avx2 : fsi__ldlt_tile;
}
#else
static fsi__ldlt_tile_fn *fsi__ldlt_best_tile(void) { return fsi__ldlt_tile; }
#endif

/* Rows of L in strips of `width` rows, column after column; times D when d is given. The last strip is filled up with
   zeros. */
static void fsi__ldlt_pack(const double *l, int ld, const double *d, int rows, int k, int width, double *out)
{
    int r, p, i;
    for (r = 0; r < rows; r += width) {
        const int most = rows - r < width ? rows - r : width;
        for (p = 0; p < k; p++) {
            const double *column = l + (size_t)p * (size_t)ld + r;
            const double scale = d ? d[(size_t)p * ((size_t)ld + 1)] : 1;
            for (i = 0; i < most; i++) out[i] = column[i] * scale;
            for (; i < width; i++) out[i] = 0;
            out += width;
        }
    }
}

/* `depth` columns of a product at work: a and b packed; fresh: C is made, not changed. */
typedef struct fsi__ldlt_job {
    double *c; const double *a, *b; int ldc, m, n, depth, fresh; fsi__ldlt_tile_fn *tile;
} fsi__ldlt_job;

/* An update of `side` rows is kept as its lower triangle, in strips of columns that start at the row of the strip's
   first:

        |\
        |_\         p[i], p what this returns, is row i of column j
        | |\
        | |_\                                                                                                       */
static double *fsi__ldlt_column(double *update, int side, int j)
{
    const size_t first = (size_t)(j / FSI__LDLT_STRIP * FSI__LDLT_STRIP), n = (size_t)side;
    return update + (first * n - first * (first - (size_t)FSI__LDLT_STRIP) / 2 + ((size_t)j - first) * (n - first)
        - first);
}

static size_t fsi__ldlt_update_size(int side)
{
    const size_t first = (size_t)(side / FSI__LDLT_STRIP * FSI__LDLT_STRIP), n = (size_t)side;
    return first * n - first * (first - (size_t)FSI__LDLT_STRIP) / 2 + (n - first) * (n - first);
}

/* A tile that C ends in the midst of. */
static void fsi__ldlt_edge(const fsi__ldlt_job *job, int i, int j, double *c, size_t ldc)
{
    double tile[FSI__LDLT_MR * FSI__LDLT_NR] = { 0 };
    int x, y;
    job->tile(job->depth, job->a + (size_t)i * (size_t)job->depth, job->b + (size_t)j * (size_t)job->depth, tile,
        FSI__LDLT_MR);
    for (y = 0; y < FSI__LDLT_NR && j + y < job->n; y++)
        for (x = i < j + y ? j + y - i : 0; x < FSI__LDLT_MR && i + x < job->m; x++) {
            double *out = c + (size_t)y * ldc + (size_t)x;
            *out = (job->fresh ? 0 : *out) + tile[y * FSI__LDLT_MR + x];
        }
}

static void fsi__ldlt_strip(void *arg, int chunk, int begin, int end)
{
    const fsi__ldlt_job *job = (const fsi__ldlt_job *)arg;
    const size_t depth = (size_t)job->depth;
    int top, i, j, y;
    (void)chunk;
    for (top = begin / FSI__LDLT_MR * FSI__LDLT_MR; top < job->m; top += FSI__LDLT_MC) {
        const int bottom = job->m - top < FSI__LDLT_MC ? job->m : top + FSI__LDLT_MC;
        for (j = begin; j < end && j < bottom; j += FSI__LDLT_NR) {
            const size_t ldc = (size_t)(job->ldc ? job->ldc : job->m - j / FSI__LDLT_STRIP * FSI__LDLT_STRIP);
            double *c = job->ldc ? job->c + (size_t)j * ldc : fsi__ldlt_column(job->c, job->m, j);
            for (i = top > j ? top : j / FSI__LDLT_MR * FSI__LDLT_MR; i < bottom; i += FSI__LDLT_MR) {
                if (i + FSI__LDLT_MR > job->m || j + FSI__LDLT_NR > job->n) {
                    fsi__ldlt_edge(job, i, j, c + i, ldc);
                    continue;
                }
                for (y = 0; y < FSI__LDLT_NR && job->fresh; y++)
                    memset(c + i + (size_t)y * ldc, 0, FSI__LDLT_MR * sizeof *c);
                job->tile(job->depth, job->a + (size_t)i * depth, job->b + (size_t)j * depth, c + i, ldc);
            }
        }
    }
}

/* C -= L D L^T, or C = -L D L^T when ldc is 0 and C an update: C has m rows and n <= m columns, of which what is on or
   below the diagonal counts; L the same m rows, k columns; D the diagonal of d. pack: (2 m + MR + NR) min(k, KC)
   numbers. shared: among the context's threads. */
static void fsi__ldlt_product(const fsi_ldlt *f, double *c, int ldc, int m, int n, const double *l, const double *d,
    int ld, int k, double *pack, int shared)
{
    fsi__ldlt_job job;
    double *b = pack + (size_t)(m + FSI__LDLT_MR) * (size_t)(k < FSI__LDLT_KC ? k : FSI__LDLT_KC), work;
    int p;
    job.c = c;
    job.ldc = ldc;
    job.m = m;
    job.n = n;
    job.tile = ((const fsi__ldlt_impl *)f->impl)->tile;
    job.a = pack;
    job.b = b;
    for (p = 0; p < k; p += FSI__LDLT_KC) {
        job.depth = k - p < FSI__LDLT_KC ? k - p : FSI__LDLT_KC;
        job.fresh = !ldc && p == 0;
        fsi__ldlt_pack(l + (size_t)p * (size_t)ld, ld, d + (size_t)p * ((size_t)ld + 1), m, job.depth, FSI__LDLT_MR,
            pack);
        fsi__ldlt_pack(l + (size_t)p * (size_t)ld, ld, NULL, n, job.depth, FSI__LDLT_NR, b);
        work = FSI__LDLT_NS * job.depth * n * (m - 0.5 * n);
        if (shared) fsi__parallel_work(f->context, n, FSI__LDLT_STRIP, work, fsi__ldlt_strip, &job);
        else fsi__ldlt_strip(&job, 0, 0, n);
    }
}

/* Is d accepted as the pivot of row k? d = a_kk - sum of l_kj^2 d_j; its rounding error is proportional to
   made = |a_kk| + sum of l_kj^2 |d_j|. */
static int fsi__ldlt_judge(const fsi_ldlt *f, fsi__ldlt_verdict *v, int k, double d, double made)
{
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)f->impl;
    const double ratio = made > 0 ? fabs(d) / made : 0;
    if (!(ratio > f->desc.smallest_pivot) || !fsi_is_finite(d) || (im->sign && im->sign[k] * d < 0)) {
        v->bad = k;
        v->pivot = d;
        return 0;
    }
    v->negative += d < 0;
    if (ratio < v->ratio) {
        v->ratio = ratio;
        v->weakest = k;
    }
    if (made > v->growth * im->scale[k]) v->growth = made / im->scale[k];
    return 1;
}

/* Eliminates columns [from, to) of a panel of `ld` rows, which hold what the columns before `from` left. first: row of
   the panel's top; made: of the panel's rows, see fsi__ldlt_judge. Returns 0 when a pivot is refused. */
static int fsi__ldlt_eliminate(const fsi_ldlt *f, double *panel, int ld, int from, int to, fsi__ldlt_verdict *v,
    int first, double *made)
{
    int i, j, k;
    for (j = from; j < to; j++) {
        double *c = panel + (size_t)j * (size_t)ld, inverse, size;

        /* Subtracts the columns before it, four at a time. */
        for (k = from; k + 3 < j; k += 4) {
            const double *l0 = panel + (size_t)k * (size_t)ld, *l1 = l0 + ld, *l2 = l1 + ld, *l3 = l2 + ld;
            const double c0 = l0[j] * l0[k], c1 = l1[j] * l1[k + 1], c2 = l2[j] * l2[k + 2], c3 = l3[j] * l3[k + 3];
            for (i = j; i < ld; i++) c[i] -= (l0[i] * c0 + l1[i] * c1) + (l2[i] * c2 + l3[i] * c3);
        }
        for (; k < j; k++) {
            const double *l0 = panel + (size_t)k * (size_t)ld, c0 = l0[j] * l0[k];
            for (i = j; i < ld; i++) c[i] -= l0[i] * c0;
        }

        /* The pivot; the column divided by it. */
        if (!fsi__ldlt_judge(f, v, first + j, c[j], made[j])) return 0;
        inverse = 1 / c[j];
        size = fabs(c[j]);
        for (i = j + 1; i < ld; i++) {
            c[i] *= inverse;
            made[i] += c[i] * (c[i] * size);
        }
    }
    return 1;
}

/* The panel of a front: n own columns of ld rows. */
static int fsi__ldlt_factor_panel(const fsi_ldlt *f, double *panel, int ld, int n, fsi__ldlt_verdict *v, int first,
    double *made, double *pack, int shared)
{
    int from, to;
    for (from = 0; from < n; from = to) {
        const double *l = panel + (size_t)from * (size_t)ld + from;
        to = n - from <= FSI__LDLT_PANEL + FSI__LDLT_PANEL / 2 ? n : from + FSI__LDLT_PANEL;
        if (!fsi__ldlt_eliminate(f, panel, ld, from, to, v, first, made)) return 0;
        if (to < n)
            fsi__ldlt_product(f, panel + (size_t)to * (size_t)ld + to, ld, ld - to, n - to, l + (to - from), l, ld,
                to - from, pack, shared);
    }
    return 1;
}

/* ---- >>symbolic ------------------------------------------------------------------------------------------------ */

/* The data of the analysis: the graph of A's lower triangle, both ways, in block rows of A. */
typedef struct fsi__ldlt_graph {
    int n, *start, *adj;       /* neighbours of row r: adj[start[r] .. start[r+1]-1], ascending, without r */
    int *perm, *inverse;
    int *parent, *count;       /* elimination tree, in elimination order; block rows of each column of L, its own
                                  included */
    int *mark, *spare, *first, *leaf;
} fsi__ldlt_graph;

/* Children before parents: reorders perm so that every subtree is one range. */
static void fsi__ldlt_postorder(fsi__ldlt_graph *g)
{
    const int n = g->n;
    int *head = g->mark, *next = g->spare, *order = g->count, *fresh = g->inverse, k, v, done = 0;

    /* Children of each vertex. */
    for (v = 0; v <= n; v++) head[v] = -1;
    for (v = n - 1; v >= 0; v--) { /* those of n: the roots */
        const int p = g->parent[v] < 0 ? n : g->parent[v];
        next[v] = head[p];
        head[p] = v;
    }

    /* Down to the first leaf, which is done; then on to its sibling, or up. */
    for (v = head[n]; v >= 0;) {
        while (head[v] >= 0) {
            const int child = head[v];
            head[v] = -2 - child; /* seen */
            v = child;
        }
        for (;;) {
            const int p = g->parent[v];
            order[done++] = v;
            if (next[v] >= 0) { v = next[v]; break; }
            if (p < 0) { v = -1; break; }
            v = p;
        }
    }

    /* Names in the new order. */
    for (k = 0; k < n; k++) fresh[order[k]] = k; /* old place -> new place */
    for (k = 0; k < n; k++) next[k] = g->parent[order[k]] < 0 ? -1 : fresh[g->parent[order[k]]];
    for (k = 0; k < n; k++) head[k] = g->perm[order[k]];
    memcpy(g->parent, next, (size_t)n * sizeof *next);
    memcpy(g->perm, head, (size_t)n * sizeof *head);
    for (k = 0; k < n; k++) g->inverse[g->perm[k]] = k;
}

/* Elimination tree by Liu's algorithm with path compression, in the order perm. */
static void fsi__ldlt_tree(fsi__ldlt_graph *g)
{
    int *ancestor = g->mark, k, e;
    for (k = 0; k < g->n; k++) {
        const int row = g->perm[k];
        g->parent[k] = ancestor[k] = -1;
        for (e = g->start[row]; e < g->start[row + 1]; e++) {
            int j = g->inverse[g->adj[e]];
            while (j >= 0 && j < k) {
                const int up = ancestor[j];
                ancestor[j] = k;
                if (up < 0) g->parent[j] = k;
                j = up;
            }
        }
    }
}

/* Column counts of L without forming it (Gilbert, Ng and Peyton, 1994): the structure of row i of L is a subtree of the
   elimination tree, whose leaves are found by first descendants. Each leaf adds one to the counts on its path to the
   root; a path shared by two leaves is subtracted at their least common ancestor. */
static void fsi__ldlt_counts(fsi__ldlt_graph *g)
{
    const int n = g->n;
    int *seen = g->mark, *ancestor = g->spare, *first = g->first, *leaf = g->leaf, k, e;

    /* First descendants. */
    for (k = 0; k < n; k++) first[k] = leaf[k] = seen[k] = -1;
    for (k = 0; k < n; k++) {
        int j;
        g->count[k] = first[k] < 0; /* a leaf of the tree */
        for (j = k; j >= 0 && first[j] < 0; j = g->parent[j]) first[j] = k;
        ancestor[k] = k;
    }

    /* Leaves of the subtree of each row. */
    for (k = 0; k < n; k++) {
        const int row = g->perm[k];
        if (g->parent[k] >= 0) g->count[g->parent[k]]--;
        for (e = g->start[row]; e < g->start[row + 1]; e++) {
            const int i = g->inverse[g->adj[e]];
            if (i <= k || first[k] <= seen[i]) continue;
            seen[i] = first[k];
            g->count[k]++;
            if (leaf[i] >= 0) { /* the least common ancestor of this leaf of row i and the last */
                int q = leaf[i], step;
                while (q != ancestor[q]) q = ancestor[q];
                for (step = leaf[i]; step != q;) {
                    const int up = ancestor[step];
                    ancestor[step] = q;
                    step = up;
                }
                g->count[q]--;
            }
            leaf[i] = k;
        }
        if (g->parent[k] >= 0) ancestor[k] = g->parent[k];
    }

    /* Sums up the tree. */
    for (k = 0; k < n; k++) if (g->parent[k] >= 0) g->count[g->parent[k]] += g->count[k];
}

/* Columns [first, last) of a supernode in the making, and the entries of L that are zero but stored. */
typedef struct fsi__ldlt_group { int first, last; double zeros; } fsi__ldlt_group;

/* May a supernode of `n` columns have this fraction of zeros? Few columns may be half empty: their cost is overhead,
   not arithmetic. */
static int fsi__ldlt_is_worth_it(int n, double share)
{
    return n <= 4 || (n <= 16 && share < 0.8) || (n <= 48 && share < 0.1) || share < 0.05;
}

/* Supernodes, of which the last child joins its parent where that adds few zeros. Returns their number;
   group[0 .. number-1]. */
static int fsi__ldlt_groups(const fsi__ldlt_graph *g, int block, fsi__ldlt_group *group)
{
    const int n = g->n;
    int count = 0, k, kept;

    /* Chains of columns, each of which has the rows of the next one and itself. */
    for (k = 0; k < n; k++) {
        if (k == 0 || g->parent[k - 1] != k || g->count[k - 1] != g->count[k] + 1) {
            group[count].first = k;
            group[count].zeros = 0;
            count++;
        }
        group[count - 1].last = k + 1;
    }

    /* From the top: the last child joins its parent where that pays. */
    for (k = kept = count - 1; k > 0; k--) { /* group[kept] is the one that the last ones became */
        const fsi__ldlt_group *child = &group[k - 1];
        fsi__ldlt_group *parent = &group[kept], joint = *parent;
        const int own = child->last - child->first, all = parent->last - child->first,
            below = g->count[parent->last - 1] - 1;
        const double size = 0.5 * all * (all + 1.0) + (double)all * below;
        const int up = g->parent[child->last - 1];
        joint.first = child->first;
        joint.zeros += child->zeros + (double)own * (all + below - g->count[child->first]);
        if (up >= 0 && up < parent->last && up >= parent->first
            && fsi__ldlt_is_worth_it(all * block, joint.zeros / size)) *parent = joint;
        else group[--kept] = *child;
    }
    memmove(group, group + kept, (size_t)(n ? count - kept : 0) * sizeof *group);
    return n ? count - kept : 0;
}

/* Tree of supernodes. */
static void fsi__ldlt_link(const fsi__ldlt_graph *g, const fsi__ldlt_group *group, int count, fsi__ldlt_node *node,
    int *node_of)
{
    int s, k;
    for (s = 0; s < count; s++) {
        node[s].first = group[s].first;
        node[s].last = group[s].last;
        node[s].child = node[s].next = node[s].parent = -1;
        for (k = node[s].first; k < node[s].last; k++) node_of[k] = s;
    }
    for (s = count - 1; s >= 0; s--) {
        const int up = g->parent[node[s].last - 1];
        if (up < 0) continue;
        node[s].parent = node_of[up];
        node[s].next = node[node[s].parent].child;
        node[node[s].parent].child = s;
    }
}

/* Rows below each supernode, ascending: row i is below those on the paths of the tree from its neighbours j < i up to
   its own. rows NULL: counts. */
static void fsi__ldlt_rows(const fsi__ldlt_graph *g, fsi__ldlt_node *node, const int *node_of, int count, int *rows)
{
    int *mark = g->mark, i, e, s;
    for (s = 0; s < count; s++) {
        node[s].rows = 0;
        mark[s] = -1;
    }
    for (i = 0; i < g->n; i++) {
        const int row = g->perm[i];
        for (e = g->start[row]; e < g->start[row + 1]; e++) {
            const int j = g->inverse[g->adj[e]];
            if (j > i) continue;
            for (s = node_of[j]; s >= 0 && mark[s] != i && node[s].last <= i; s = node[s].parent) {
                mark[s] = i;
                if (rows) rows[node[s].row + (size_t)node[s].rows] = i;
                node[s].rows++;
            }
        }
    }
}

/* ---- >>numeric ------------------------------------------------------------------------------------------------- */

static int fsi__ldlt_wide(const fsi_ldlt *f, const fsi__ldlt_node *node)
{
    return (node->last - node->first) * f->block;
}
static int fsi__ldlt_tall(const fsi_ldlt *f, const fsi__ldlt_node *node)
{
    return (node->last - node->first + node->rows) * f->block;
}

/* Place of block row i in a front. */
static int fsi__ldlt_place(const fsi__ldlt_impl *im, const fsi__ldlt_node *node, int i)
{
    const int *row = im->row + node->row;
    int lo = 0, hi = node->rows;
    if (i < node->last) return i - node->first;
    while (hi - lo > 1) {
        const int mid = lo + (hi - lo) / 2;
        if (row[mid] <= i) lo = mid;
        else hi = mid;
    }
    return node->last - node->first + lo;
}

/* Which entries of A's lower triangle go to which front, sorted by front: two passes, the first counts. */
static void fsi__ldlt_route(fsi__ldlt_impl *im, const fsi_csr *a, const int *node_of, int node_count)
{
    size_t sum = 0;
    int pass, r, e, s;
    for (s = 0; s < node_count; s++) im->node[s].entries = 0;
    for (pass = 0; pass < 2; pass++) {
        /* The lower triangle, in elimination order. */
        for (r = 0; r < a->rows; r++) {
            for (e = a->start[r]; e < a->start[r + 1] && a->col[e] <= r; e++) {
                const int i = im->inverse[r], j = im->inverse[a->col[e]], column = i < j ? i : j, row = i < j ? j : i;
                fsi__ldlt_node *node = &im->node[node_of[column]];
                if (pass) {
                    fsi__ldlt_entry *to = &im->entry[node->entry + node->entries];
                    to->a = e;
                    to->row = fsi__ldlt_place(im, node, row);
                    to->column = column - node->first;
                    to->transposed = i < j;
                }
                node->entries++;
            }
        }

        /* Where each front's entries begin. */
        for (s = 0; s < node_count && !pass; s++) {
            im->node[s].entry = sum;
            sum += im->node[s].entries;
            im->node[s].entries = 0;
        }
    }
}

/* The places of the rows below each front in the parent's front. */
static void fsi__ldlt_relate(fsi__ldlt_impl *im, int node_count)
{
    int s, k;
    for (s = 0; s < node_count; s++) {
        const fsi__ldlt_node *node = &im->node[s];
        for (k = node->rows - 1; k >= 0; k--) {
            const size_t at = node->row + (size_t)k;
            im->at[at] = fsi__ldlt_place(im, &im->node[node->parent], im->row[at]);
            im->run[at] = k + 1 < node->rows && im->at[at + 1] == im->at[at] + 1 ? im->run[at + 1] + 1 : 1;
        }
    }
}

/* Lays the updates of a task's nodes on two stacks, from `base` on, and returns where they end. Children, which lie on
   the other stack, leave it when their parent is done. */
static size_t fsi__ldlt_stack(fsi_ldlt *f, int task, int begin, int end, size_t base)
{
    fsi__ldlt_impl *im = (fsi__ldlt_impl *)f->impl;
    size_t top[2] = { 0, 0 }, most[2] = { 0, 0 };
    int s, c;
    for (s = begin; s < end; s++) {
        fsi__ldlt_node *node = &im->node[s];
        if (node->task != task) continue;
        node->update = top[node->stack];
        top[node->stack] += fsi__ldlt_update_size(node->rows * f->block) + (size_t)fsi__ldlt_tall(f, node);
        if (top[node->stack] > most[node->stack]) most[node->stack] = top[node->stack];
        for (c = node->child; c >= 0; c = im->node[c].next) {
            const fsi__ldlt_node *child = &im->node[c];
            if (child->task == task && child->update < top[child->stack]) top[child->stack] = child->update;
        }
    }
    for (s = begin; s < end; s++) if (im->node[s].task == task)
        im->node[s].update += base + (im->node[s].stack ? most[0] : 0);
    return base + most[0] + most[1];
}

/* Where a child's update goes: columns begin .. end-1, of which those in the parent's own columns when `own`, else the
   others. */
typedef struct fsi__ldlt_intake { const fsi_ldlt *f; const fsi__ldlt_node *child, *node; int own; } fsi__ldlt_intake;

static void fsi__ldlt_take_columns(void *arg, int chunk, int begin, int end)
{
    const fsi__ldlt_intake *job = (const fsi__ldlt_intake *)arg;
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)job->f->impl;
    const int b = job->f->block, rows = job->child->rows, wide = fsi__ldlt_wide(job->f, job->node),
        tall = fsi__ldlt_tall(job->f, job->node);
    const int lift = job->own ? 0 : wide; /* rows that the update lacks */
    const int *at = im->at + job->child->row, *run = im->run + job->child->row;
    int i, j, x, y;
    (void)chunk;
    for (j = begin; j < end; j++) for (y = 0; y < b && (at[j] * b < wide) == job->own; y++) {
        const double *from = fsi__ldlt_column(im->update + job->child->update, rows * b, j * b + y);
        const int column = at[j] * b + y;
        double *to = job->own ? im->panel + job->node->panel + (size_t)column * (size_t)tall
                              : fsi__ldlt_column(im->update + job->node->update, tall - wide, column - wide);
        for (i = j; i < rows; i += run[i]) { /* rows that stay neighbours */
            const double *in = from + i * b;
            double *out = to + (at[i] * b - lift);
            for (x = i == j ? y : 0; x < run[i] * b; x++) out[x] += in[x];
        }
    }
}

/* Nanoseconds that this takes at least: of the update's rows, in order, those up to `split` are the parent's own. */
static double fsi__ldlt_take_work(const fsi__ldlt_intake *job)
{
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)job->f->impl;
    const int b = job->f->block, rows = job->child->rows, wide = fsi__ldlt_wide(job->f, job->node);
    const int *at = im->at + job->child->row;
    int split = 0;
    double blocks;
    while (split < rows && at[split] * b < wide) split++;
    blocks = job->own ? split * (rows - 0.5 * split) : 0.5 * (rows - split) * (rows - split);
    return FSI__LDLT_NS_TAKE * blocks * b * b;
}

/* Adds the updates of a front's children to its own columns, or to its update. */
static void fsi__ldlt_take_in(const fsi_ldlt *f, const fsi__ldlt_node *node, int own, int shared)
{
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)f->impl;
    fsi__ldlt_intake job;
    int c;
    job.f = f;
    job.node = node;
    job.own = own;
    for (c = node->child; c >= 0; c = im->node[c].next) {
        const int rows = im->node[c].rows;
        job.child = &im->node[c];
        if (!shared) fsi__ldlt_take_columns(&job, 0, 0, rows);
        else fsi__parallel_work(f->context, rows, FSI__LDLT_STRIP, fsi__ldlt_take_work(&job), fsi__ldlt_take_columns,
            &job);
    }
}

/* Sums of the absolute terms of the pivots of a front's rows so far; stored behind its update, for the parent. */
static double *fsi__ldlt_made(const fsi_ldlt *f, const fsi__ldlt_node *node)
{
    return ((const fsi__ldlt_impl *)f->impl)->update + node->update + fsi__ldlt_update_size(node->rows * f->block);
}

/* Puts A's entries and the children's updates in a front's own columns. */
static void fsi__ldlt_assemble(const fsi_ldlt *f, const fsi_csr *a, const fsi__ldlt_node *node, int shared)
{
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)f->impl;
    const int b = f->block, wide = fsi__ldlt_wide(f, node), tall = fsi__ldlt_tall(f, node);
    double *panel = im->panel + node->panel, *made = fsi__ldlt_made(f, node);
    size_t e;
    int c, x, y;
    memset(panel, 0, (size_t)wide * (size_t)tall * sizeof *panel);
    for (e = node->entry; e < node->entry + node->entries; e++) {
        const fsi__ldlt_entry *to = &im->entry[e];
        const double *v = a->value + (size_t)to->a * (size_t)(b * b);
        double *out = panel + (size_t)(to->column * b) * (size_t)tall + to->row * b;
        for (y = 0; y < b; y++) for (x = 0; x < b; x++)
            out[(size_t)y * (size_t)tall + (size_t)x] = to->transposed ? v[y * b + x] : v[x * b + y];
    }
    for (x = 0; x < tall; x++) made[x] = x < wide ? fabs(panel[(size_t)x * ((size_t)tall + 1)]) : 0;
    for (c = node->child; c >= 0; c = im->node[c].next) {
        const fsi__ldlt_node *child = &im->node[c];
        const double *from = fsi__ldlt_made(f, child) + fsi__ldlt_wide(f, child);
        for (x = 0; x < child->rows; x++) for (y = 0; y < b; y++)
            made[im->at[child->row + (size_t)x] * b + y] += from[x * b + y];
    }
    fsi__ldlt_take_in(f, node, 1, shared);
}

/* One factorisation. */
typedef struct fsi__ldlt_pass {
    const fsi_ldlt *f;
    const fsi_csr *a;
} fsi__ldlt_pass;

/* A front from assembly to update, for a task. Returns 0 when a pivot is refused. */
static int fsi__ldlt_front(const fsi__ldlt_pass *run, const fsi__ldlt_node *node, int task, int shared)
{
    const fsi_ldlt *f = run->f;
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)f->impl;
    const int wide = fsi__ldlt_wide(f, node), tall = fsi__ldlt_tall(f, node), below = tall - wide;
    double *panel = im->panel + node->panel, *pack = im->pack + im->task[task].pack, *made = fsi__ldlt_made(f, node);
    fsi__ldlt_assemble(f, run->a, node, shared);
    if (!fsi__ldlt_factor_panel(f, panel, tall, wide, &im->verdict[task], node->first * f->block, made, pack, shared))
        return 0;
    if (below > 0)
        fsi__ldlt_product(f, im->update + node->update, 0, below, below, panel + wide, panel, tall, wide, pack, shared);
    fsi__ldlt_take_in(f, node, 0, shared);
    return 1;
}

static void fsi__ldlt_subtrees(void *arg, int chunk, int begin, int end)
{
    const fsi__ldlt_pass *run = (const fsi__ldlt_pass *)arg;
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)run->f->impl;
    int t, s;
    (void)chunk;
    for (t = begin; t < end; t++)
        for (s = im->task[t].begin; s < im->task[t].end && fsi__ldlt_front(run, &im->node[s], t, 0);) s++;
}

/* ---- >>substitution -------------------------------------------------------------------------------------------- */

/* L y = x for one front: x in elimination order; t: room for its rows below. */
static void fsi__ldlt_forward(const fsi_ldlt *f, const fsi__ldlt_node *node, double *x, double *t)
{
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)f->impl;
    const int b = f->block, wide = fsi__ldlt_wide(f, node), tall = fsi__ldlt_tall(f, node), *row = im->row + node->row;
    const double *panel = im->panel + node->panel;
    double *own = x + node->first * b;
    int i, j, k;
    for (i = wide; i < tall; i++) t[i - wide] = 0;
    for (j = 0; j < wide; j += 4) {
        const int most = wide - j < 4 ? wide - j : 4;
        const double *c[4];
        double y[4] = { 0, 0, 0, 0 };
        for (k = 0; k < 4; k++) c[k] = panel + (size_t)(j + (k < most ? k : 0)) * (size_t)tall;
        for (k = 0; k < most; k++) {
            y[k] = own[j + k];
            for (i = j + k + 1; i < j + most; i++) own[i] -= c[k][i] * y[k];
        }
        for (i = j + most; i < wide; i++)
            own[i] -= (c[0][i] * y[0] + c[1][i] * y[1]) + (c[2][i] * y[2] + c[3][i] * y[3]);
        for (i = wide; i < tall; i++)
            t[i - wide] += (c[0][i] * y[0] + c[1][i] * y[1]) + (c[2][i] * y[2] + c[3][i] * y[3]);
    }
    for (k = 0; k < node->rows; k++) for (i = 0; i < b; i++) x[row[k] * b + i] -= t[k * b + i];
}

/* sum[q] = c_q . t over [from, to), for four columns c, c + ld, ..., in four partial sums each; the next ones start at
   `coming`. */
static void fsi__ldlt_dots(const double *c, const double *coming, size_t ld, const double *t, int from, int to,
    double *sum)
{
    const double *c0 = c, *c1 = c0 + ld, *c2 = c1 + ld, *c3 = c2 + ld;
    double s0[4] = { 0, 0, 0, 0 }, s1[4] = { 0, 0, 0, 0 }, s2[4] = { 0, 0, 0, 0 }, s3[4] = { 0, 0, 0, 0 };
    int i, k;
    for (i = from; i + 4 <= to; i += 4) {
        /* against the stream, caches do not see it come */
        for (k = 0; k < 4; k++) FSI__PREFETCH(coming + i + (size_t)k * ld);
        for (k = 0; k < 4; k++) s0[k] += c0[i + k] * t[i + k];
        for (k = 0; k < 4; k++) s1[k] += c1[i + k] * t[i + k];
        for (k = 0; k < 4; k++) s2[k] += c2[i + k] * t[i + k];
        for (k = 0; k < 4; k++) s3[k] += c3[i + k] * t[i + k];
    }
    sum[0] = (s0[0] + s0[2]) + (s0[1] + s0[3]);
    sum[1] = (s1[0] + s1[2]) + (s1[1] + s1[3]);
    sum[2] = (s2[0] + s2[2]) + (s2[1] + s2[3]);
    sum[3] = (s3[0] + s3[2]) + (s3[1] + s3[3]);
    for (; i < to; i++) {
        sum[0] += c0[i] * t[i];
        sum[1] += c1[i] * t[i];
        sum[2] += c2[i] * t[i];
        sum[3] += c3[i] * t[i];
    }
}

/* D L^T x = y for one front; |D| when `absolute`. */
static void fsi__ldlt_backward(const fsi_ldlt *f, const fsi__ldlt_node *node, double *x, double *t, int absolute)
{
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)f->impl;
    const int b = f->block, wide = fsi__ldlt_wide(f, node), tall = fsi__ldlt_tall(f, node), *row = im->row + node->row;
    const double *panel = im->panel + node->panel;
    double *own = x + node->first * b;
    int i, j, k;
    for (i = 0; i < wide; i++) t[i] = own[i];
    for (k = 0; k < node->rows; k++) for (i = 0; i < b; i++) t[wide + k * b + i] = x[row[k] * b + i];
    for (j = wide; j > 0; j -= 4) {
        const int first = j < 4 ? 0 : j - 4;
        const double *c = panel + (size_t)first * (size_t)tall;
        double sum[4] = { 0, 0, 0, 0 };
        if (j >= 4) fsi__ldlt_dots(c, first >= 4 ? c - 4 * (size_t)tall : panel, (size_t)tall, t, j, tall, sum);
        else for (k = 0; k < j; k++) for (i = j; i < tall; i++)
            sum[k] += c[(size_t)k * (size_t)tall + (size_t)i] * t[i];
        for (k = j - 1; k >= first; k--) {
            const double *column = panel + (size_t)k * (size_t)tall;
            for (i = k + 1; i < j; i++) sum[k - first] += column[i] * t[i];
            t[k] = t[k] / (absolute ? fabs(column[k]) : column[k]) - sum[k - first];
        }
    }
    for (i = 0; i < wide; i++) own[i] = t[i];
}

/* to[i] += sum_k c_k[i] y_k over [from, end) for vectors of four numbers. */
static void fsi__ldlt_spread_4(const double *const *c, const double *y, int from, int end, double *to)
{
    int i, k;
    for (i = from; i < end; i++, to += 4) {
        fsi__four sum;
        memset(&sum, 0, sizeof sum);
        for (k = 0; k < 4; k++) fsi__four_madd(&sum, y + 4 * k, c[k][i]);
        fsi__four_add(to, &sum);
    }
}

/* Forward and backward for four right sides; t: room for four times all its rows. What rows above the task get goes to
   `passed`, NULL: to x. */
static void fsi__ldlt_forward_4(const fsi_ldlt *f, const fsi__ldlt_node *node, double *x, double *t, double *passed)
{
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)f->impl;
    const int b = f->block, wide = fsi__ldlt_wide(f, node), tall = fsi__ldlt_tall(f, node), *row = im->row + node->row;
    const int *slot = im->slot + node->row;
    const double *panel = im->panel + node->panel;
    double *own = x + 4 * (size_t)node->first * (size_t)b;
    int i, j, k, q;
    memset(t, 0, 4 * (size_t)(tall - wide) * sizeof(double));
    for (j = 0; j < wide; j += 4) {
        const int most = wide - j < 4 ? wide - j : 4;
        const double *c[4];
        double y[16] = { 0 }; /* minus those of the columns */
        for (k = 0; k < 4; k++) c[k] = panel + (size_t)(j + (k < most ? k : 0)) * (size_t)tall;
        for (k = 0; k < most; k++) {
            for (q = 0; q < 4; q++) y[4 * k + q] = -own[4 * (j + k) + q];
            for (i = j + k + 1; i < j + most; i++) for (q = 0; q < 4; q++) own[4 * i + q] += c[k][i] * y[4 * k + q];
        }
        fsi__ldlt_spread_4(c, y, j + most, wide, own + 4 * (j + most));
        fsi__ldlt_spread_4(c, y, wide, tall, t);
    }
    for (k = 0; k < node->rows; k++) {
        double *to = passed && slot[k] >= 0 ? passed + slot[k] * 4 * b : x + row[k] * 4 * b;
        for (i = 0; i < b; i++) {
            fsi__four part;
            fsi__four_get(&part, t + 4 * (k * b + i));
            fsi__four_add(to + 4 * i, &part);
        }
    }
}

/* L^T x = y of one node, for four right-hand sides, four columns of L at a time. */
static void fsi__ldlt_backward_4(const fsi_ldlt *f, const fsi__ldlt_node *node, double *x, double *t)
{
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)f->impl;
    const int b = f->block, wide = fsi__ldlt_wide(f, node), tall = fsi__ldlt_tall(f, node), *row = im->row + node->row;
    const double *panel = im->panel + node->panel;
    double *own = x + 4 * (size_t)node->first * (size_t)b;
    int i, j, k, q;

    /* Gather the node's own unknowns and those of its rows below, which are known. */
    memcpy(t, own, 4 * (size_t)wide * sizeof(double));
    for (k = 0; k < node->rows; k++) for (i = 0; i < b; i++) {
        fsi__four known;
        fsi__four_get(&known, x + 4 * ((size_t)row[k] * (size_t)b + (size_t)i));
        fsi__four_put(t + 4 * (wide + k * b + i), &known);
    }

    /* Columns first to j - 1: the product with all rows below, */
    for (j = wide; j > 0; j -= 4) {
        const int first = j < 4 ? 0 : j - 4;
        const double *c[4];
        fsi__four sum[4];
        double known[16] = { 0 };
        for (k = 0; k < 4; k++) c[k] = panel + (size_t)(first + (k < j ? k : 0)) * (size_t)tall;
        memset(sum, 0, sizeof sum);
        for (i = j; i < tall; i++) for (k = 0; k < 4; k++) fsi__four_madd(&sum[k], t + 4 * i, c[k][i]);
        for (k = 0; k < 4; k++) fsi__four_add(known + 4 * k, &sum[k]);

        /* then the triangle among themselves. */
        for (k = j - 1 - first; k >= 0; k--) {
            double *own_k = t + 4 * (first + k);
            for (i = first + k + 1; i < j; i++) for (q = 0; q < 4; q++) known[4 * k + q] += c[k][i] * t[4 * i + q];
            for (q = 0; q < 4; q++) own_k[q] = own_k[q] / c[k][first + k] - known[4 * k + q];
        }
    }
    memcpy(own, t, 4 * (size_t)wide * sizeof(double));
}

/* ---- >>analysis ------------------------------------------------------------------------------------------------ */

/* The graph of A's lower triangle, both ways; neighbours ascend, since rows do. */
static void fsi__ldlt_make_graph(fsi__ldlt_graph *g, const fsi_csr *a)
{
    int r, e, pass;
    for (r = 0; r <= g->n; r++) g->start[r] = 0;
    for (pass = 0; pass < 2; pass++) {
        for (r = 0; r < g->n; r++) for (e = a->start[r]; e < a->start[r + 1] && a->col[e] < r; e++) {
            const int c = a->col[e];
            if (pass) g->adj[g->start[r] + g->spare[r]] = c;
            g->spare[r]++;
            if (pass) g->adj[g->start[c] + g->spare[c]] = r;
            g->spare[c]++;
        }
        for (r = 0; r < g->n; r++) {
            if (!pass) g->start[r + 1] = g->start[r] + g->spare[r];
            g->spare[r] = 0;
        }
    }
}

static void fsi__ldlt_take_graph(fsi__arena *m, fsi__ldlt_graph *g, int n, int entries)
{
    const size_t k = (size_t)n + 1;
    g->n = n;
    g->start = (int *)fsi__take(m, k, sizeof(int));
    g->adj = (int *)fsi__take(m, 2 * (size_t)entries, sizeof(int));
    g->parent = (int *)fsi__take(m, k, sizeof(int));
    g->count = (int *)fsi__take(m, k, sizeof(int));
    g->mark = (int *)fsi__take(m, k, sizeof(int));
    g->spare = (int *)fsi__take(m, k, sizeof(int));
    g->first = (int *)fsi__take(m, k, sizeof(int));
    g->leaf = (int *)fsi__take(m, k, sizeof(int));
}

/* Work of a front. */
static double fsi__ldlt_work(const fsi_ldlt *f, const fsi__ldlt_node *node)
{
    const double w = fsi__ldlt_wide(f, node), t = fsi__ldlt_tall(f, node), below = t - w;
    return w * (w * w / 3 + below * (w + below)) + FSI__LDLT_FRONT;
}

/* Cuts the elimination tree into tasks of about equal work; returns their number, without the fronts above them. */
static int fsi__ldlt_cut(fsi_ldlt *f, double *work)
{
    fsi__ldlt_impl *im = (fsi__ldlt_impl *)f->impl;
    const int n = im->node_count;
    double all = 0, sum = 0, share;
    int s, count = 0;

    /* Work of each subtree. */
    for (s = 0; s < n; s++) work[s] = 0;
    for (s = 0; s < n; s++) {
        work[s] += fsi__ldlt_work(f, &im->node[s]);
        if (im->node[s].parent >= 0) work[im->node[s].parent] += work[s];
        else all += work[s];
    }
    share = all > FSI__LDLT_SMALL ? all / FSI__LDLT_SHARE : all;

    /* Roots of tasks are marked by 0, their descendants by 1, fronts above them by -1. */
    for (s = n - 1; s >= 0; s--) {
        const int p = im->node[s].parent;
        im->node[s].stack = p < 0 ? 0 : 1 - im->node[p].stack;
        im->node[s].task = p >= 0 && im->node[p].task >= 0 ? 1 : work[s] <= share ? 0 : -1;
    }

    /* Number them: neighbouring small subtrees go into one task. */
    for (s = 0; s < n; s++) {
        fsi__ldlt_node *node = &im->node[s];
        const int root = node->task == 0;
        if (node->task < 0) continue;
        if (count == 0 || im->task[count - 1].end != s || sum > share) {
            im->task[count].begin = s;
            sum = 0;
            count++;
        }
        im->task[count - 1].end = s + 1;
        node->task = count - 1;
        if (root) sum += work[s];
    }
    return count;
}

static const char fsi__ldlt_create_name[] = "fsi_ldlt_create";

/* Everything that is kept of the analysis; sizes are known when it is laid out. */
static void fsi__ldlt_lay_out(fsi__ldlt_impl *im, fsi__arena *m, int rows, int block, int has_sign)
{
    const size_t n = (size_t)rows, dofs = n * (size_t)block;
    im->entry = (fsi__ldlt_entry *)fsi__take(m, im->entry_count, sizeof *im->entry);
    im->row = (int *)fsi__take(m, im->row_count, sizeof(int));
    im->at = (int *)fsi__take(m, im->row_count, sizeof(int));
    im->run = (int *)fsi__take(m, im->row_count, sizeof(int));
    im->slot = (int *)fsi__take(m, im->row_count, sizeof(int));
    im->scale = (double *)fsi__take(m, dofs, sizeof(double));
    im->x = (double *)fsi__take(m, 4 * dofs, sizeof(double));
    im->sign = has_sign ? (signed char *)fsi__take(m, dofs, 1) : NULL;
}

/* Zeros; where memory is kept for other patterns, in big steps. */
static int fsi__ldlt_reserve(const fsi_ldlt *f, fsi__arena *a, size_t size)
{
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)f->impl;
    return im->keeps ? fsi__order_reserve_zeros(f->context, a, size) : fsi__arena_reserve(f->context, a, size);
}

/* Tree, supernodes and rows; node_of[k]: supernode of the k-th block row. */
static fsi_status fsi__ldlt_symbolic(fsi_ldlt *f, fsi__ldlt_graph *g, const fsi_csr *a, int *node_of,
    fsi__ldlt_group *group)
{
    fsi__ldlt_impl *im = (fsi__ldlt_impl *)f->impl;
    fsi__arena measure = { NULL, 0, 0 };
    int s;

    /* The tree and its supernodes. */
    fsi__ldlt_tree(g);
    fsi__ldlt_postorder(g);
    fsi__ldlt_counts(g);
    im->node_count = fsi__ldlt_groups(g, f->block, group);
    fsi__ldlt_link(g, group, im->node_count, im->node, node_of);

    /* How many rows each has below it. */
    fsi__ldlt_rows(g, im->node, node_of, im->node_count, NULL);
    im->row_count = 0;
    for (s = 0; s < im->node_count; s++) {
        im->node[s].row = im->row_count;
        im->row_count += (size_t)im->node[s].rows;
    }
    im->entry_count = (size_t)(g->start[g->n] / 2 + g->n);

    /* Room for lists; then the lists. */
    fsi__ldlt_lay_out(im, &measure, f->rows, f->block, f->desc.pivots != FSI_LDLT_ANY);
    if (!fsi__ldlt_reserve(f, &im->memory[1], measure.used))
        return fsi__fail(f->context, FSI_ERROR_MEMORY, fsi__ldlt_create_name, -1, f->rows,
            "no memory for the structure of %d rows", f->rows);
    fsi__ldlt_lay_out(im, &im->memory[1], f->rows, f->block, f->desc.pivots != FSI_LDLT_ANY);
    fsi__ldlt_rows(g, im->node, node_of, im->node_count, im->row);
    fsi__ldlt_relate(im, im->node_count);
    fsi__ldlt_route(im, a, node_of, im->node_count);
    return FSI_OK;
}

/* Room that a node's products need, or four right sides of its rows. */
static size_t fsi__ldlt_pack_size(const fsi_ldlt *f, const fsi__ldlt_node *node)
{
    const int wide = fsi__ldlt_wide(f, node), depth = wide < 2 ? 2 : wide < FSI__LDLT_KC ? wide : FSI__LDLT_KC;
    return (2 * (size_t)fsi__ldlt_tall(f, node) + FSI__LDLT_MR + FSI__LDLT_NR) * (size_t)depth;
}

/* Where memory is addressed by 32 bits, sizes could wrap around before it runs out: no front, nor all panels, may come
   near. */
static int fsi__ldlt_is_addressable(const fsi_ldlt *f)
{
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)f->impl;
    const double limit = (double)((size_t)-1 / (4 * sizeof(double)));
    double panels = 0;
    int s;
    for (s = 0; s < im->node_count; s++) {
        const double wide = fsi__ldlt_wide(f, &im->node[s]), tall = fsi__ldlt_tall(f, &im->node[s]);
        panels += wide * tall;
        if (panels > limit || (2 * tall + 16) * (tall < (double)FSI__LDLT_KC ? (double)FSI__LDLT_KC : tall) > limit)
            return 0;
    }
    return 1;
}

/* Numbers the rows of each task that belong to nodes above it; returns how many there are. mark: room for a number a
   row. Writes them to im->above unless that is NULL. */
static size_t fsi__ldlt_rows_above(fsi_ldlt *f, int *mark)
{
    fsi__ldlt_impl *im = (fsi__ldlt_impl *)f->impl;
    size_t all = 0, e;
    int s, t;
    for (e = 0; e < im->row_count; e++) im->slot[e] = -1;
    for (s = 0; s < f->rows; s++) mark[s] = -1;
    for (t = 0; t < im->task_count; t++) {
        fsi__ldlt_task *task = &im->task[t];
        const int top = im->node[task->end - 1].last;
        task->above = all;
        task->above_count = 0;
        for (s = task->begin; s < task->end; s++)
            for (e = im->node[s].row; e < im->node[s].row + (size_t)im->node[s].rows; e++) {
                int *number = &mark[im->row[e]];
                if (im->row[e] < top) continue;
                if (*number < 0 || (size_t)*number < all) { /* not met in this task */
                    if (im->above) im->above[all + (size_t)task->above_count] = im->row[e];
                    *number = (int)all + task->above_count++;
                }
                im->slot[e] = *number - (int)all;
            }
        all += (size_t)task->above_count;
    }
    return all;
}

/* Where panels, updates and packed columns lie. mark: room for a number a row. */
static fsi_status fsi__ldlt_plan(fsi_ldlt *f, double *work, int *mark)
{
    fsi__ldlt_impl *im = (fsi__ldlt_impl *)f->impl;
    fsi__arena measure = { NULL, 0, 0 };
    size_t panel = 0, update = 0, pack = 0, above;
    int s, t;

    /* The fronts above all tasks come last, as one task more. */
    if (!fsi__ldlt_is_addressable(f))
        return fsi__fail(f->context, FSI_ERROR_MEMORY, fsi__ldlt_create_name, -1, f->rows,
            "no memory for the factor: its fronts are larger than can be addressed");
    im->task_count = fsi__ldlt_cut(f, work);
    im->task[im->task_count].begin = 0;
    im->task[im->task_count].end = im->node_count;

    /* Updates and packed columns of each task. */
    for (t = 0; t <= im->task_count; t++) {
        const int id = t < im->task_count ? t : -1;
        size_t most = 0;
        update = fsi__ldlt_stack(f, id, im->task[t].begin, im->task[t].end, update);
        for (s = im->task[t].begin; s < im->task[t].end; s++)
            if (im->node[s].task == id && fsi__ldlt_pack_size(f, &im->node[s]) > most)
                most = fsi__ldlt_pack_size(f, &im->node[s]);
        im->task[t].pack = pack;
        pack += most;
    }

    /* Panels. */
    for (s = 0; s < im->node_count; s++) {
        const fsi__ldlt_node *node = &im->node[s];
        im->node[s].panel = panel;
        panel += (size_t)fsi__ldlt_wide(f, node) * (size_t)fsi__ldlt_tall(f, node);
        f->stats.flops += fsi__ldlt_work(f, node) - FSI__LDLT_FRONT;
        if (node->task >= 0) im->task_work += fsi__ldlt_work(f, node);
    }

    /* Memory for all. */
    f->stats.entries = (double)panel;
    im->above = NULL;
    above = fsi__ldlt_rows_above(f, mark);
    for (t = 0; t < 2; t++) {
        fsi__arena *m = t ? &im->memory[2] : &measure;
        im->panel = (double *)fsi__take(m, panel, sizeof(double));
        im->update = (double *)fsi__take(m, update, sizeof(double));
        im->pack = (double *)fsi__take(m, pack, sizeof(double));
        im->passed = (double *)fsi__take(m, 4 * above * (size_t)f->block, sizeof(double));
        im->above = (int *)fsi__take(m, above, sizeof(int));
        if (!t && !fsi__ldlt_reserve(f, &im->memory[2], measure.used))
            return fsi__fail(f->context, FSI_ERROR_MEMORY, fsi__ldlt_create_name, -1, (double)measure.used,
                "no memory for the factor, %.0f bytes", (double)measure.used);
    }
    fsi__ldlt_rows_above(f, mark);
    return FSI_OK;
}

static void fsi__ldlt_free_scratch(fsi_ldlt *f)
{
    fsi__ldlt_impl *im = (fsi__ldlt_impl *)f->impl;
    fsi__arena_free(f->context, &im->scratch);
    fsi__order_pool_free(f->context, &im->pool);
}

static fsi_status fsi__ldlt_analyse(fsi_ldlt *f, const fsi_csr *a)
{
    fsi__ldlt_impl *im = (fsi__ldlt_impl *)f->impl;
    fsi__arena measure = { NULL, 0, 0 };
    fsi__ldlt_graph g;
    fsi__ldlt_group *group = NULL;
    double *work = NULL, clock = fsi__now(f->context);
    int *node_of = NULL, pass, k;
    fsi_status status = FSI_OK;

    /* Scratch. */
    for (pass = 0; pass < 2; pass++) {
        fsi__arena *m = pass ? &im->scratch : &measure;
        fsi__ldlt_take_graph(m, &g, f->rows, a->start[a->rows]);
        node_of = (int *)fsi__take(m, (size_t)f->rows, sizeof(int));
        group = (fsi__ldlt_group *)fsi__take(m, (size_t)f->rows, sizeof *group);
        work = (double *)fsi__take(m, (size_t)f->rows, sizeof *work);
        if (!pass && !fsi__ldlt_reserve(f, &im->scratch, measure.used))
            return fsi__fail(f->context, FSI_ERROR_MEMORY, fsi__ldlt_create_name, -1, f->rows,
                "no memory to analyse %d rows", f->rows);
    }

    /* The order; then the structure and the plan of memory. */
    g.perm = im->perm;
    g.inverse = im->inverse;
    fsi__ldlt_make_graph(&g, a);
    status = fsi__order_graph(f->context, f->rows, g.start, g.adj, f->block, &f->desc, &im->pool, im->perm);
    if (!im->keeps) fsi__order_pool_free(f->context, &im->pool);
    f->stats.seconds_order = fsi__now(f->context) - clock;
    for (k = 0; k < f->rows && status == FSI_OK; k++) im->inverse[im->perm[k]] = k;
    if (status == FSI_OK) status = fsi__ldlt_symbolic(f, &g, a, node_of, group);
    if (status == FSI_OK) status = fsi__ldlt_plan(f, work, node_of);
    if (!im->keeps) fsi__ldlt_free_scratch(f);
    f->stats.seconds_analyse = fsi__now(f->context) - clock;
    return status;
}

/* ---- >>interface ----------------------------------------------------------------------------------------------- */

FSI_API fsi_ldlt_desc fsi_ldlt_default_desc(void)
{
    fsi_ldlt_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('l', fsi_ldlt_desc);
    d.smallest_pivot = 1e-12;
    return d;
}

FSI_API void fsi_ldlt_destroy(fsi_ldlt *f)
{
    fsi__ldlt_impl *im;
    int k;
    if (!f || f->cookie != FSI__COOKIE('L', fsi_ldlt)) return;
    im = (fsi__ldlt_impl *)f->impl;
    for (k = 0; k < 3; k++) fsi__arena_free(f->context, &im->memory[k]);
    fsi__ldlt_free_scratch(f);
    f->cookie = 0;
    fsi__free(f->context, f, 1, sizeof *f + sizeof *im);
}

/* Arrays with at most as many entries as the matrix has rows. */
static void fsi__ldlt_lay_rows(fsi__ldlt_impl *im, fsi__arena *m, size_t n)
{
    im->perm = (int *)fsi__take(m, n, sizeof(int));
    im->inverse = (int *)fsi__take(m, n, sizeof(int));
    im->node = (fsi__ldlt_node *)fsi__take(m, n, sizeof *im->node);
    im->task = (fsi__ldlt_task *)fsi__take(m, n + 1, sizeof *im->task);
    im->verdict = (fsi__ldlt_verdict *)fsi__take(m, n + 1, sizeof *im->verdict);
}

static fsi_status fsi__ldlt_check_desc(fsi_context *c, const fsi_ldlt_desc *d, const fsi_csr *a)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_ldlt_desc, order, FSI__INT, 0, FSI_LDLT_NATURAL, 0),
        FSI__FIELD(fsi_ldlt_desc, pivots, FSI__INT, 0, FSI_LDLT_ANY, 0),
        FSI__FIELD(fsi_ldlt_desc, smallest_pivot, FSI__DOUBLE, 0, 1, 0)
    };
    static const fsi__where at = { "fsi_ldlt_create", "desc.", -1, 3 };
    const char *fn = at.function;
    int k;
    if (a->rows != a->cols)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, a->rows, "the matrix has %d x %d blocks, must be square",
            a->rows, a->cols);
    FSI__TRY(FSI__CHECK_TABLE(c, &at, d, rows));
    if (d->pivots == FSI_LDLT_SIGNED && !d->sign && a->rows > 0)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "desc.sign is NULL, but desc.pivots is SIGNED");
    for (k = 0; k < a->rows * a->block && d->pivots == FSI_LDLT_SIGNED; k++)
        if (d->sign[k] != 1 && d->sign[k] != -1)
            return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, k, d->sign[k], "desc.sign[%d] is %d, must be 1 or -1", k,
                d->sign[k]);
    return FSI_OK;
}

static fsi_status fsi__ldlt_check(const fsi_csr *a, const fsi_ldlt_desc *desc)
{
    const char *fn = fsi__ldlt_create_name;
    FSI__TRY(fsi__csr_check(desc->context, fn, a));
    if (a->start[a->rows] > 1000000000)
        return fsi__fail(desc->context, FSI_ERROR_LIMIT, fn, -1, a->start[a->rows],
            "%d entries are more than can be analysed: 1e9", a->start[a->rows]);
    return fsi__ldlt_check_desc(desc->context, desc, a);
}

/* All of f but its memory, for a pattern. */
static fsi_status fsi__ldlt_fill(fsi_ldlt *f, const fsi_csr *a, const fsi_ldlt_desc *desc)
{
    fsi__ldlt_impl *im = (fsi__ldlt_impl *)f->impl;
    fsi__arena measure = { NULL, 0, 0 };
    int k;

    /* Rows. */
    f->desc = *desc;
    f->rows = a->rows;
    f->block = a->block;
    im->tile = fsi__ldlt_best_tile();
    im->pattern = fsi__csr_hash(a);
    fsi__ldlt_lay_rows(im, &measure, (size_t)a->rows);
    if (!fsi__ldlt_reserve(f, &im->memory[0], measure.used))
        return fsi__fail(f->context, FSI_ERROR_MEMORY, fsi__ldlt_create_name, -1, a->rows, "no memory for %d rows",
            a->rows);
    fsi__ldlt_lay_rows(im, &im->memory[0], (size_t)a->rows);

    /* The rest of the structure; signs in the order of elimination. */
    FSI__TRY(fsi__ldlt_analyse(f, a));
    for (k = 0; k < a->rows * a->block && im->sign; k++)
        im->sign[k] = desc->pivots == FSI_LDLT_POSITIVE ? 1
            : desc->sign[im->perm[k / a->block] * a->block + k % a->block];

    /* Stats. */
    for (k = 0; k < 3; k++) f->stats.bytes += im->memory[k].size;
    f->stats.bytes += sizeof *f + sizeof *im;
    f->stats.fronts = im->node_count;
    f->stats.tasks = im->task_count;
    f->stats.weakest_row = -1;
    return FSI_OK;
}

FSI_API fsi_status fsi_ldlt_create(fsi_ldlt **out, const fsi_csr *a, const fsi_ldlt_desc *desc)
{
    fsi_context *c;
    fsi_ldlt *f;
    fsi_status status;
    if (out) *out = NULL;
    if (!desc || desc->cookie != FSI__COOKIE('l', fsi_ldlt_desc) || !fsi__is_context(desc->context))
        return FSI_ERROR_COOKIE;
    c = desc->context;
    if (!out) return fsi__fail(c, FSI_ERROR_ARGUMENT, fsi__ldlt_create_name, -1, 0, "out is NULL");
    FSI__TRY(fsi__ldlt_check(a, desc));
    f = (fsi_ldlt *)fsi__alloc(c, 1, sizeof *f + sizeof(fsi__ldlt_impl));
    if (!f) return fsi__fail(c, FSI_ERROR_MEMORY, fsi__ldlt_create_name, -1, 0, "no memory for the factorisation");
    f->cookie = FSI__COOKIE('L', fsi_ldlt);
    f->context = c;
    f->impl = f + 1;
    status = fsi__ldlt_fill(f, a, desc);
    if (status != FSI_OK) {
        fsi_ldlt_destroy(f);
        return status;
    }
    *out = f;
    return FSI_OK;
}

/* As fsi_ldlt_create, in the memory of an f of the same context, of which nothing else is left. On failure it is of no
   use but to be destroyed. */
static fsi_status fsi__ldlt_renew(fsi_ldlt *f, const fsi_csr *a, const fsi_ldlt_desc *desc)
{
    fsi__ldlt_impl *im = (fsi__ldlt_impl *)f->impl, kept = *im;
    FSI__TRY(fsi__ldlt_check(a, desc));
    memset(im, 0, sizeof *im);
    memset(&f->stats, 0, sizeof f->stats);
    memcpy(im->memory, kept.memory, sizeof im->memory);
    im->scratch = kept.scratch;
    im->pool = kept.pool;
    im->keeps = 1;
    f->factored = f->factorings = 0;
    return fsi__ldlt_fill(f, a, desc);
}

FSI_API fsi_status fsi__ldlt_take(fsi_ldlt **f, const fsi_csr *a, const fsi_ldlt_desc *desc)
{
    fsi_status status;
    if (*f && a->rows == (*f)->rows && a->block == (*f)->block
        && fsi__csr_hash(a) == ((const fsi__ldlt_impl *)(*f)->impl)->pattern) return FSI_OK;
    status = *f ? fsi__ldlt_renew(*f, a, desc) : fsi_ldlt_create(f, a, desc);
    if (status == FSI_OK) return FSI_OK;
    fsi_ldlt_destroy(*f);
    *f = NULL;
    return status;
}

/* Largest entry of each row of the symmetric matrix, in elimination order. Returns a row with a number that is not
   finite, or -1. */
static int fsi__ldlt_scales(fsi_ldlt *f, const fsi_csr *a)
{
    fsi__ldlt_impl *im = (fsi__ldlt_impl *)f->impl;
    const int b = f->block;
    int r, e, x, y;
    memset(im->scale, 0, (size_t)f->rows * (size_t)b * sizeof(double));
    for (r = 0; r < f->rows; r++) for (e = a->start[r]; e < a->start[r + 1] && a->col[e] <= r; e++) {
        double *row = im->scale + im->inverse[r] * b, *column = im->scale + im->inverse[a->col[e]] * b;
        const double *v = a->value + (size_t)e * (size_t)(b * b);
        for (x = 0; x < b; x++) for (y = 0; y < b; y++) {
            const double size = fabs(v[x * b + y]);
            if (!fsi_is_finite(size)) return r * b + x;
            if (size > row[x]) row[x] = size;
            if (size > column[y]) column[y] = size;
        }
    }
    return -1;
}

/* Row of A that is k-th in elimination order. */
static int fsi__ldlt_row(const fsi_ldlt *f, int k)
{
    return ((const fsi__ldlt_impl *)f->impl)->perm[k / f->block] * f->block + k % f->block;
}

static fsi__ldlt_verdict fsi__ldlt_no_verdict(void)
{
    fsi__ldlt_verdict v = { -1, 0, 0, -1, HUGE_VAL, 1 };
    return v;
}

/* What the tasks found, together: of refused pivots the first in elimination order. */
static fsi__ldlt_verdict fsi__ldlt_fold(const fsi__ldlt_impl *im)
{
    fsi__ldlt_verdict all = fsi__ldlt_no_verdict();
    int t;
    for (t = 0; t <= im->task_count; t++) {
        const fsi__ldlt_verdict *v = &im->verdict[t];
        if (v->bad >= 0 && (all.bad < 0 || v->bad < all.bad)) {
            all.bad = v->bad;
            all.pivot = v->pivot;
        }
        all.negative += v->negative;
        if (v->growth > all.growth) all.growth = v->growth;
        if (v->ratio < all.ratio) {
            all.ratio = v->ratio;
            all.weakest = v->weakest;
        }
    }
    return all;
}

FSI_API fsi_status fsi_ldlt_factor(fsi_ldlt *f, const fsi_csr *a)
{
    const char *fn = "fsi_ldlt_factor";
    fsi__ldlt_impl *im;
    fsi__ldlt_verdict all;
    fsi__ldlt_pass run;
    double clock;
    int t, s, row, ok;

    /* Input. */
    if (!f || f->cookie != FSI__COOKIE('L', fsi_ldlt)) return FSI_ERROR_COOKIE;
    clock = fsi__now(f->context);
    im = (fsi__ldlt_impl *)f->impl;
    FSI__TRY(fsi__csr_same(f->context, fn, a, f->rows, f->block, im->pattern));

    /* From here on there is no factor. */
    f->factored = 0;
    f->factorings++;
    row = fsi__ldlt_scales(f, a);
    if (row >= 0)
        return fsi__fail(f->context, FSI_ERROR_NAN, fn, row, 0,
            "row %d of the matrix holds a number that is not finite", row);

    /* Subtrees side by side, then the fronts above them. */
    for (t = 0; t <= im->task_count; t++) im->verdict[t] = fsi__ldlt_no_verdict();
    run.f = f;
    run.a = a;
    fsi__parallel_work(f->context, im->task_count, 1, FSI__LDLT_NS / 2 * im->task_work, fsi__ldlt_subtrees, &run);
    ok = fsi__ldlt_fold(im).bad < 0;
    for (s = 0; s < im->node_count && ok; s++) if (im->node[s].task < 0)
        ok = fsi__ldlt_front(&run, &im->node[s], im->task_count, 1);

    /* The verdict. */
    all = fsi__ldlt_fold(im);
    if (all.bad >= 0) {
        row = fsi__ldlt_row(f, all.bad);
        return fsi__fail(f->context, FSI_ERROR_SINGULAR, fn, row, all.pivot,
            "row %d: its pivot is %g, too small or of the wrong sign", row, all.pivot);
    }

    /* Stats. */
    f->stats.negative = all.negative;
    f->stats.weakest_pivot = all.ratio;
    f->stats.growth = all.growth;
    f->stats.weakest_row = all.weakest < 0 ? -1 : fsi__ldlt_row(f, all.weakest);
    f->factored = 1;
    f->stats.seconds_factor = fsi__now(f->context) - clock;
    return FSI_OK;
}

/* Checks of the arguments of solve. */
static fsi_status fsi__ldlt_ready(const fsi_ldlt *f, fsi_context *c, const char *fn, const double *b, const double *x,
    int sides)
{
    int r;
    if (!f || f->cookie != FSI__COOKIE('L', fsi_ldlt)) return FSI_ERROR_COOKIE;
    if (!f->factored)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "there is no factor: fsi_ldlt_factor has not succeeded");
    if (f->rows > 0 && (!b || !x)) return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "b or x is NULL");
    for (r = 0; r < sides * f->rows * f->block; r++) if (!fsi_is_finite(b[r]))
        return fsi__fail(c, FSI_ERROR_NAN, fn, r, 0, "b[%d] is not finite", r);
    return FSI_OK;
}

/* A substitution for one right side, or four side by side. */
typedef struct fsi__ldlt_sides { const fsi_ldlt *f; int four, absolute; } fsi__ldlt_sides;

static void fsi__ldlt_backward_node(const fsi__ldlt_sides *a, int s, double *t)
{
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)a->f->impl;
    if (a->four) fsi__ldlt_backward_4(a->f, &im->node[s], im->x, t);
    else fsi__ldlt_backward(a->f, &im->node[s], im->x, t, a->absolute);
}

static void fsi__ldlt_backward_tasks(void *arg, int chunk, int begin, int end)
{
    const fsi__ldlt_sides *a = (const fsi__ldlt_sides *)arg;
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)a->f->impl;
    int t, s;
    (void)chunk;
    for (t = begin; t < end; t++)
        for (s = im->task[t].end - 1; s >= im->task[t].begin; s--)
            fsi__ldlt_backward_node(a, s, im->pack + im->task[t].pack);
}

/* L y = b of four right sides, for the subtrees; what they subtract from nodes above is added up afterwards. */
static void fsi__ldlt_forward_tasks(void *arg, int chunk, int begin, int end)
{
    const fsi_ldlt *f = ((const fsi__ldlt_sides *)arg)->f;
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)f->impl;
    const size_t row = 4 * (size_t)f->block;
    int t, s;
    (void)chunk;
    for (t = begin; t < end; t++) {
        const fsi__ldlt_task *task = &im->task[t];
        double *passed = im->passed + row * task->above;
        memset(passed, 0, row * (size_t)task->above_count * sizeof(double));
        for (s = task->begin; s < task->end; s++)
            fsi__ldlt_forward_4(f, &im->node[s], im->x, im->pack + task->pack, passed);
    }
}

static void fsi__ldlt_forward_all_4(fsi__ldlt_sides *a)
{
    const fsi_ldlt *f = a->f;
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)f->impl;
    const int row = 4 * f->block;
    int t, k, i, s;
    fsi__parallel_work(f->context, im->task_count, 1, 0.6 * f->stats.entries, fsi__ldlt_forward_tasks, a);
    for (t = 0; t < im->task_count; t++) for (k = 0; k < im->task[t].above_count; k++) {
        const size_t from = im->task[t].above + (size_t)k;
        for (i = 0; i < row; i++)
            im->x[im->above[from] * row + i] += im->passed[from * (size_t)row + (size_t)i];
    }
    for (s = 0; s < im->node_count; s++)
        if (im->node[s].task < 0) fsi__ldlt_forward_4(f, &im->node[s], im->x, im->pack, NULL);
}

/* im->x, in elimination order, becomes the solution, for |D| instead of D when `absolute` (not of four). Subtrees do
   not need each other in the backward substitution. Returns 0 when it is not finite. */
static int fsi__ldlt_substitute(const fsi_ldlt *f, int four, int absolute)
{
    const fsi__ldlt_impl *im = (const fsi__ldlt_impl *)f->impl;
    const size_t n = (size_t)(four ? 4 : 1) * (size_t)f->rows * (size_t)f->block;
    fsi__ldlt_sides a;
    size_t k;
    int s;
    a.f = f;
    a.four = four;
    a.absolute = absolute;
    if (four) fsi__ldlt_forward_all_4(&a);
    for (s = 0; s < im->node_count && !four; s++) fsi__ldlt_forward(f, &im->node[s], im->x, im->pack);
    for (s = im->node_count - 1; s >= 0; s--) if (im->node[s].task < 0) fsi__ldlt_backward_node(&a, s, im->pack);
    fsi__parallel_work(f->context, im->task_count, 1, (four ? 0.6 : 0.3) * f->stats.entries, fsi__ldlt_backward_tasks,
                       &a);
    for (k = 0; k < n; k++) if (!fsi_is_finite(im->x[k])) return 0;
    return 1;
}

static fsi_status fsi__ldlt_overflow(fsi_context *c, const char *fn)
{
    return fsi__fail(c, FSI_ERROR_NAN, fn, -1, 0, "the solution is larger than a double can hold");
}

/* Solve, and apply of the operator. */
static fsi_status fsi__ldlt_apply_inverse(fsi_ldlt *f, fsi_context *c, const char *fn, const double *b, double *x,
    int absolute)
{
    fsi__ldlt_impl *im;
    int r, k;
    FSI__TRY(fsi__ldlt_ready(f, c, fn, b, x, 1));
    im = (fsi__ldlt_impl *)f->impl;
    for (r = 0; r < f->rows; r++) for (k = 0; k < f->block; k++)
        im->x[im->inverse[r] * f->block + k] = b[r * f->block + k];
    if (!fsi__ldlt_substitute(f, 0, absolute)) return fsi__ldlt_overflow(c, fn);
    for (r = 0; r < f->rows; r++) for (k = 0; k < f->block; k++)
        x[r * f->block + k] = im->x[im->inverse[r] * f->block + k];
    return FSI_OK;
}

FSI_API fsi_status fsi_ldlt_solve(fsi_ldlt *f, const double *b, double *x)
{
    return f ? fsi__ldlt_apply_inverse(f, f->context, "fsi_ldlt_solve", b, x, 0) : FSI_ERROR_COOKIE;
}

FSI_API fsi_status fsi_ldlt_solve_4(fsi_ldlt *f, const double *b, double *x)
{
    fsi__ldlt_impl *im;
    size_t row;
    int r;
    FSI__TRY(fsi__ldlt_ready(f, f ? f->context : NULL, "fsi_ldlt_solve_4", b, x, 4));
    im = (fsi__ldlt_impl *)f->impl;
    row = 4 * (size_t)f->block;
    for (r = 0; r < f->rows; r++)
        memcpy(im->x + row * (size_t)im->inverse[r], b + row * (size_t)r, row * sizeof(double));
    if (!fsi__ldlt_substitute(f, 1, 0)) return fsi__ldlt_overflow(f->context, "fsi_ldlt_solve_4");
    for (r = 0; r < f->rows; r++)
        memcpy(x + row * (size_t)r, im->x + row * (size_t)im->inverse[r], row * sizeof(double));
    return FSI_OK;
}

/* ---- >>operators implementation --------------------------------------------------------------------------------- */

static fsi_status fsi__ldlt_operate(void *user, fsi_context *context, const double *x, double *y, int columns)
{
    fsi_ldlt *f = (fsi_ldlt *)user;
    size_t n;
    fsi_status status = FSI_OK;
    int k;
    if (!f || f->cookie != FSI__COOKIE('L', fsi_ldlt)) return FSI_ERROR_COOKIE;
    n = (size_t)f->rows * (size_t)f->block;
    for (k = 0; k < columns && status == FSI_OK; k++)
        status = fsi__ldlt_apply_inverse(f, context, "fsi_ldlt_operator", x + (size_t)k * n, y + (size_t)k * n, 1);
    return status;
}

FSI_API fsi_operator fsi_ldlt_operator(fsi_ldlt *f)
{
    fsi_operator o;
    o.n = f && f->cookie == FSI__COOKIE('L', fsi_ldlt) ? f->rows * f->block : -1;
    o.apply = fsi__ldlt_operate;
    o.user = f;
    return o;
}

/* ---- >>solver implementation ------------------------------------------------------------------------------------ */

typedef struct fsi__solver_impl {
    fsi_ldlt *ldlt;      /* of the last matrix, NULL: none */
    void *iteration;     /* memory of desc.iteration */
    uint64_t kind;       /* hash of what ldlt was analysed for */
    double *x, *r;       /* the iterate; b - A x */
    double *kept;        /* the values that ldlt holds the factor of */
    int busy;            /* 1 during a solve */
    fsi__arena memory, kept_memory;
} fsi__solver_impl;

static const char *const fsi__solver_name = "fsi_solver_solve";

FSI_API fsi_system fsi_default_system(void)
{
    fsi_system d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('y', fsi_system);
    d.tolerance = 1e-10;
    d.max_iters = 1000;
    return d;
}

FSI_API fsi_solver_desc fsi_solver_default_desc(void)
{
    fsi_solver_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('s', fsi_solver_desc);
    return d;
}

FSI_API void fsi_solver_destroy(fsi_solver *s)
{
    fsi__solver_impl *im;
    if (!s || s->cookie != FSI__COOKIE('S', fsi_solver)) return;
    im = (fsi__solver_impl *)s->impl;
    fsi_ldlt_destroy(im->ldlt);
    if (s->desc.iteration) s->desc.iteration->release(im->iteration);
    fsi__arena_free(s->context, &im->memory);
    fsi__arena_free(s->context, &im->kept_memory);
    s->cookie = 0;
    fsi__free(s->context, s, 1, sizeof *s + sizeof *im);
}

/* Refuses what only an iteration can do where there is none. */
static fsi_status fsi__solver_check_iteration(fsi_context *c, const char *fn, const fsi_solver_desc *d, int has_op)
{
    if (d->iteration || d->solve || (!has_op && d->reuse == 0)) return FSI_OK;
    return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, d->reuse, "%s needs desc.iteration, which is NULL: "
                     "set it to fsi_krylov_iteration() of fsi_krylov.h", has_op ? "system.op" : "desc.reuse");
}

FSI_API fsi_status fsi_solver_create(fsi_solver **out, const fsi_solver_desc *desc)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_solver_desc, order, FSI__INT, 0, FSI_LDLT_NATURAL, 0),
        FSI__FIELD(fsi_solver_desc, reuse, FSI__INT, 0, FSI__HUGE, 0)
    };
    static const fsi__where at = { "fsi_solver_create", "desc.", -1, 3 };
    const char *fn = at.function;
    fsi_solver *s;
    if (out) *out = NULL;
    if (!desc || desc->cookie != FSI__COOKIE('s', fsi_solver_desc) || !fsi__is_context(desc->context))
        return FSI_ERROR_COOKIE;
    if (!out) return fsi__fail(desc->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "out is NULL");
    FSI__TRY(FSI__CHECK_TABLE(desc->context, &at, desc, rows));
    if (fsi__solver_check_iteration(desc->context, fn, desc, 0) != FSI_OK) return FSI_ERROR_ARGUMENT;
    s = (fsi_solver *)fsi__alloc(desc->context, 1, sizeof *s + sizeof(fsi__solver_impl));
    if (!s) return fsi__fail(desc->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for the solver");
    s->cookie = FSI__COOKIE('S', fsi_solver);
    s->context = desc->context;
    s->desc = *desc;
    s->impl = s + 1;
    *out = s;
    return FSI_OK;
}

/* Is x read before it is written? */
static int fsi__solver_guesses(const fsi_solver *s, const fsi_system *y)
{
    return y->op || s->desc.solve || s->desc.reuse > 0;
}

static fsi_status fsi__solver_check(fsi_solver *s, const fsi_system *y, const double *b, const double *x, int *count)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_system, tolerance, FSI__DOUBLE, 0, 1, 0),
        FSI__FIELD(fsi_system, max_iters, FSI__INT, 0, FSI__HUGE, 0),
        FSI__FIELD(fsi_system, pivots, FSI__INT, 0, FSI_LDLT_ANY, 0)
    };
    static const fsi__where at = { "fsi_solver_solve", "system.", -1, 3 };
    int r;

    /* The system. */
    if (!y || y->cookie != FSI__COOKIE('y', fsi_system))
        return fsi__fail(s->context, FSI_ERROR_COOKIE, fsi__solver_name, -1, 0,
            "the system is NULL, or was not filled by fsi_default_system of this version and precision");
    if (!y->matrix == !y->op)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fsi__solver_name, -1, 0,
            "a system has a matrix or an op: here it has %s", y->op ? "both" : "none");
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, y, rows));

    /* The matrix or the operator. */
    if (y->matrix) FSI__TRY(fsi__csr_check(s->context, fsi__solver_name, y->matrix));
    if (y->matrix && y->matrix->rows != y->matrix->cols)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fsi__solver_name, -1, y->matrix->rows,
            "the matrix has %d x %d blocks, must be square", y->matrix->rows, y->matrix->cols);
    if (y->op && (y->op->n < 0 || !y->op->apply))
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fsi__solver_name, -1, y->op->n, "system.op has %d rows%s",
            y->op->n, y->op->apply ? "" : " and no apply");
    if (fsi__solver_check_iteration(s->context, fsi__solver_name, &s->desc, y->op != NULL) != FSI_OK)
        return FSI_ERROR_ARGUMENT;

    /* Vectors. */
    *count = y->matrix ? y->matrix->rows * y->matrix->block : y->op->n;
    if (*count > 0 && (!b || !x))
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fsi__solver_name, -1, 0, "b or x is NULL");
    for (r = 0; r < *count; r++) {
        if (!fsi_is_finite(b[r]))
            return fsi__fail(s->context, FSI_ERROR_NAN, fsi__solver_name, r, 0, "b[%d] is not finite", r);
        if (fsi__solver_guesses(s, y) && !fsi_is_finite(x[r]))
            return fsi__fail(s->context, FSI_ERROR_NAN, fsi__solver_name, r, 0, "x[%d] is not finite", r);
    }
    return FSI_OK;
}

/* The componentwise backward error (Oettli and Prager 1964): the largest |r_i| / (|A| |x| + |b|)_i. */
static double fsi__solver_backward(const fsi_csr *a, const double *x, const double *b, const double *r)
{
    const int n = a->block;
    double most = 0;
    int row, e, i, j;
    for (row = 0; row < a->rows; row++) for (i = 0; i < n; i++) {
        double size = fabs(b[row * n + i]);
        for (e = a->start[row]; e < a->start[row + 1]; e++) for (j = 0; j < n; j++)
            size += fabs(a->value[((size_t)e * (size_t)n + (size_t)i) * (size_t)n + (size_t)j] * x[a->col[e] * n + j]);
        if (!(fabs(r[row * n + i]) <= most * size))
            most = size > 0 && fsi_is_finite(size) ? fabs(r[row * n + i]) / size : 1;
    }
    return most;
}

/* r = b - A x, and stats.residual. */
static fsi_status fsi__solver_measure(fsi_solver *s, const fsi_system *y, int rows, const double *b)
{
    fsi__solver_impl *im = (fsi__solver_impl *)s->impl;
    double big_r = 0, big_b = 0, rr = 0, bb = 0;
    fsi_status status;
    int k;

    /* A x. */
    for (k = 0; k < rows; k++) if (!fsi_is_finite(im->x[k]))
        return fsi__fail(s->context, FSI_ERROR_NAN, fsi__solver_name, k, 0, "x[%d] of the solution is not finite", k);
    status = y->matrix ? fsi__csr_apply((void *)y->matrix, s->context, im->x, im->r, 1)
        : fsi__operate(s->context, fsi__solver_name, y->op, im->x, im->r, 1, "op");
    if (status != FSI_OK) return status;

    /* The residual, and the largest numbers. */
    for (k = 0; k < rows; k++) {
        im->r[k] = b[k] - im->r[k];
        if (!fsi_is_finite(im->r[k]))
            return fsi__fail(s->context, FSI_ERROR_NAN, fsi__solver_name, k, 0, "row %d of A x is not finite", k);
        if (fabs(im->r[k]) > big_r) big_r = fabs(im->r[k]);
        if (fabs(b[k]) > big_b) big_b = fabs(b[k]);
    }

    /* Norms, scaled. */
    for (k = 0; k < rows; k++) {
        if (big_r > 0) rr += im->r[k] / big_r * (im->r[k] / big_r);
        if (big_b > 0) bb += b[k] / big_b * (b[k] / big_b);
    }
    s->stats.residual = big_r == 0 ? 0 : big_b == 0 ? 1 : big_r / big_b * sqrt(rr / bb);
    return FSI_OK;
}

/* Within the tolerance (or the rounding of sums), or, for a matrix that is nearly singular, as close as rounding
   allows: a backward stable solve has a componentwise backward error of 1e-14 or less. For a singular matrix x is so
   large that this bound means nothing; hence the other one. */
static int fsi__solver_is_done(const fsi_solver *s, const fsi_system *y, const double *b)
{
    const fsi__solver_impl *im = (const fsi__solver_impl *)s->impl;
    if (s->stats.residual <= y->tolerance * (1 + 1e-9)) return 1;
    return y->matrix && s->stats.residual <= 1e-3 && fsi__solver_backward(y->matrix, im->x, b, im->r) <= 1e-13;
}

/* An iteration from im->x; converged or not, im->x is the best iterate. */
static fsi_status fsi__solver_iterate(fsi_solver *s, const fsi_system *y, const fsi_operator *a, const fsi_operator *m,
    int max_iters, const double *b)
{
    fsi__solver_impl *im = (fsi__solver_impl *)s->impl;
    return s->desc.iteration->solve(s->context, y, a, m, max_iters, b, im->x, &s->stats.iters, &im->iteration);
}

/* A factor of other values on the same pattern, tried as preconditioner: 1 when that was enough. When not, that is no
   error. */
static int fsi__solver_try_old(fsi_solver *s, const fsi_system *y, const double *b)
{
    fsi__solver_impl *im = (fsi__solver_impl *)s->impl;
    const fsi_operator a = fsi_csr_operator(y->matrix), m = fsi_ldlt_operator(im->ldlt);
    fsi_context *c = s->context, before;
    int enough;
    if (s->desc.reuse == 0 || !im->ldlt->factored) return 0;
    if (c) {
        before = *c;
        c->message = NULL;
    }
    enough = fsi__solver_iterate(s, y, &a, &m, s->desc.reuse, b) == FSI_OK;
    if (c) {
        c->message = before.message;
        c->error = before.error;
    }
    return enough;
}

/* Room to keep as many values as the matrix has. */
static fsi_status fsi__solver_keep(fsi_solver *s, size_t count)
{
    fsi__solver_impl *im = (fsi__solver_impl *)s->impl;
    fsi__arena measure = { NULL, 0, 0 };
    fsi__take(&measure, count, sizeof(double));
    if (!fsi__arena_room(s->context, &im->kept_memory, measure.used))
        return fsi__fail(s->context, FSI_ERROR_MEMORY, fsi__solver_name, -1, (double)count,
            "no memory for %.0f values", (double)count);
    im->kept = (double *)fsi__take(&im->kept_memory, count, sizeof(double));
    return FSI_OK;
}

/* What the analysis depends on. */
static uint64_t fsi__solver_kind(const fsi_solver *s, const fsi_system *y)
{
    const size_t rows = (size_t)y->matrix->rows;
    const int head[4] = { y->matrix->rows, y->matrix->block, (int)y->pivots, (int)s->desc.order };
    uint64_t h = fsi_hash(head, sizeof head, fsi__csr_hash(y->matrix));
    if (y->last) h = fsi_hash(y->last, rows, h);
    if (y->pivots == FSI_LDLT_SIGNED && y->sign) h = fsi_hash(y->sign, rows * (size_t)y->matrix->block, h);
    return h;
}

/* A factor of the matrix at hand, by reuse of the last one where possible. *solved: 1 when an old factor was enough and
   im->x is the solution. */
static fsi_status fsi__solver_factor(fsi_solver *s, const fsi_system *y, const double *b, int *solved)
{
    fsi__solver_impl *im = (fsi__solver_impl *)s->impl;
    const fsi_csr *a = y->matrix;
    const uint64_t kind = fsi__solver_kind(s, y);
    const size_t count = (size_t)a->start[a->rows] * (size_t)(a->block * a->block);
    fsi_status status;
    *solved = 0;

    /* Another pattern: a new analysis. */
    if (!im->ldlt || im->kind != kind) {
        fsi_ldlt_desc d = fsi_ldlt_default_desc();
        d.context = s->context;
        d.order = s->desc.order;
        d.ordering = s->desc.ordering;
        d.last = y->last;
        d.pivots = y->pivots;
        d.sign = y->sign;
        status = fsi__solver_keep(s, count);
        if (status == FSI_OK) status = im->ldlt ? fsi__ldlt_renew(im->ldlt, a, &d) : fsi_ldlt_create(&im->ldlt, a, &d);
        if (status != FSI_OK) {
            fsi_ldlt_destroy(im->ldlt);
            im->ldlt = NULL;
            return status;
        }
        im->kind = kind;
        s->stats.analyses++;
    } else if (im->ldlt->factored && (count == 0 || !memcmp(im->kept, a->value, count * sizeof *im->kept)))
        return FSI_OK;
    else if (fsi__solver_try_old(s, y, b)) {
        *solved = 1;
        return FSI_OK;
    }

    /* A new factor. */
    s->stats.iters = 0;
    FSI__TRY(fsi_ldlt_factor(im->ldlt, a));
    if (count > 0) memcpy(im->kept, a->value, count * sizeof *im->kept);
    s->stats.negative = im->ldlt->stats.negative;
    s->stats.factorings++;
    return FSI_OK;
}

/* LDL^T, and refinement while it halves the residual. */
static fsi_status fsi__solver_direct(fsi_solver *s, const fsi_system *y, int rows, const double *b)
{
    fsi__solver_impl *im = (fsi__solver_impl *)s->impl;
    double before = HUGE_VAL;
    int solved, k;
    fsi_status status;
    FSI__TRY(fsi__solver_factor(s, y, b, &solved));
    if (solved) return fsi__solver_measure(s, y, rows, b);
    status = fsi_ldlt_solve(im->ldlt, b, im->x);
    while (status == FSI_OK) {
        status = fsi__solver_measure(s, y, rows, b);
        if (status != FSI_OK || s->stats.iters == 5 || !(s->stats.residual <= 0.5 * before)
            || fsi__solver_is_done(s, y, b)) break;
        before = s->stats.residual;
        s->stats.iters++;
        status = fsi_ldlt_solve(im->ldlt, im->r, im->r);
        for (k = 0; k < rows && status == FSI_OK; k++) im->x[k] += im->r[k];
    }
    return status;
}

static fsi_status fsi__solver_host(fsi_solver *s, const fsi_system *y, const double *b)
{
    fsi__solver_impl *im = (fsi__solver_impl *)s->impl;
    const fsi_error before = fsi__callback_begin(s->context);
    return fsi__callback_end(s->context, fsi__solver_name, &before,
        s->desc.solve(s->desc.user, s->context, y, b, im->x), "the host's solver");
}

/* im->x becomes the solution, im->r its residual */
static fsi_status fsi__solver_run(fsi_solver *s, const fsi_system *y, int rows, const double *b)
{
    fsi_status status;
    if (!s->desc.solve && y->matrix) return fsi__solver_direct(s, y, rows, b);
    status = s->desc.solve ? fsi__solver_host(s, y, b) : fsi__solver_iterate(s, y, y->op, y->precond, y->max_iters, b);
    return status == FSI_OK ? fsi__solver_measure(s, y, rows, b) : status;
}

FSI_API fsi_status fsi_solver_solve(fsi_solver *s, const fsi_system *system, const double *b, double *x)
{
    fsi__arena measure = { NULL, 0, 0 };
    fsi__solver_impl *im;
    fsi_status status;
    double clock;
    int rows = 0, k;

    /* Input. */
    if (!s || s->cookie != FSI__COOKIE('S', fsi_solver)) return FSI_ERROR_COOKIE;
    clock = fsi__now(s->context);
    im = (fsi__solver_impl *)s->impl;
    if (im->busy)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fsi__solver_name, -1, 0,
            "this solver is at work: what it calls must not call it");
    FSI__TRY(fsi__solver_check(s, system, b, x, &rows));

    /* Room for x and r. */
    for (k = 0; k < 2; k++) {
        fsi__arena *m = k ? &im->memory : &measure;
        im->x = (double *)fsi__take(m, (size_t)rows, sizeof(double));
        im->r = (double *)fsi__take(m, (size_t)rows, sizeof(double));
        if (!k && !fsi__arena_reserve(s->context, &im->memory, measure.used))
            return fsi__fail(s->context, FSI_ERROR_MEMORY, fsi__solver_name, -1, rows, "no memory for %d rows", rows);
    }

    /* The solve; x of the caller is written when it has succeeded. */
    for (k = 0; k < rows; k++) im->x[k] = fsi__solver_guesses(s, system) ? x[k] : 0;
    s->stats.iters = 0;
    im->busy = 1;
    status = fsi__solver_run(s, system, rows, b);
    im->busy = 0;
    s->stats.seconds = fsi__now(s->context) - clock;

    /* Is it good enough? */
    if (status != FSI_OK) return status;
    if (!fsi__solver_is_done(s, system, b))
        return fsi__fail(s->context, FSI_ERROR_CONVERGENCE, fsi__solver_name, -1, s->stats.residual,
            "the %s leaves %g of b, asked was %g", s->desc.solve ? "host's solver" : "solve", s->stats.residual,
            system->tolerance);
    for (k = 0; k < rows; k++) x[k] = im->x[k];
    s->stats.solves++;
    return FSI_OK;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
