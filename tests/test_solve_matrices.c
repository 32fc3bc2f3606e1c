/* test_solve_matrices.c - factorisations of every kind of matrix against elimination in long double: solutions,
   inertia, and verdicts.
   SPDX-License-Identifier: MIT

   SOLVE_MATRICES_ONLY leaves out the tests: validate_solve.c takes matrices and references from here. */
#include "kit/test.h"
#include "../fsi_order.h"
#include "kit/test_dense.h"
#include <float.h>

#define EPS (DBL_EPSILON / 2)

/* A reference must know more digits than what it judges, and reach further than 1e308. */
enum { HAS_REFERENCE = LDBL_MANT_DIG >= 64 && LDBL_MAX_10_EXP > 4000 };

TEST_FN void *need(size_t count, size_t size)
{
    void *p = calloc(count + 1, size);
    if (!p) {
        puts("no memory");
        exit(1);
    }
    return p;
}

static double *need_numbers(int n) { return (double *)need((size_t)n, sizeof(double)); }
TEST_FN int pick(uint64_t *random, int n) { return (int)(test_random(random) * n); }
TEST_FN double between(uint64_t *random, double lo, double hi) { return lo + (hi - lo) * test_random(random); }

/* ---- matrices in the making ------------------------------------------------------------------------------------- */

typedef struct triplet { int i, j; double v; } triplet;

/* A symmetric matrix as a sum of entries, and its compressed rows. `lowest`: no eigenvalue is nearer to 0; 0: not
   known. */
typedef struct matrix {
    fsi_csr a;
    triplet *entry;
    size_t count, room;
    int n, *start, *col;
    double lowest;
} matrix;

static matrix matrix_begin(int n)
{
    matrix m;
    memset(&m, 0, sizeof m);
    m.n = n;
    return m;
}

static void matrix_free(matrix *m)
{
    free(m->entry);
    free(m->start);
    free(m->col);
    free(m->a.value);
    memset(m, 0, sizeof *m);
}

static void put(matrix *m, int i, int j, double v)
{
    if (m->count == m->room) {
        m->room = 2 * m->room + 64;
        m->entry = (triplet *)realloc(m->entry, m->room * sizeof *m->entry);
        if (!m->entry) exit(1);
    }
    m->entry[m->count].i = i;
    m->entry[m->count].j = j;
    m->entry[m->count++].v = v;
}

static void put_pair(matrix *m, int i, int j, double v)
{
    put(m, i, j, v);
    if (i != j) put(m, j, i, v);
}

/* A spring between the numbers i and j: never indefinite. */
static void put_spring(matrix *m, int i, int j, double k)
{
    put(m, i, i, k);
    put(m, j, j, k);
    put_pair(m, i, j, -k);
}

/* k u u^T */
static void put_product(matrix *m, int count, const int *at, const double *u, double k)
{
    int p, q;
    for (p = 0; p < count; p++) for (q = 0; q < count; q++) put(m, at[p], at[q], k * u[p] * u[q]);
}

/* Holds every number in its place: no eigenvalue is below k. */
static void put_ground(matrix *m, double k)
{
    int i;
    for (i = 0; i < m->n; i++) put(m, i, i, k);
    m->lowest += k;
}

static int compare_columns(const void *p, const void *q)
{
    const triplet *a = (const triplet *)p, *b = (const triplet *)q;
    return a->j != b->j ? (a->j > b->j) - (a->j < b->j) : (a->i > b->i) - (a->i < b->i);
}

/* Entries in the order of their block rows. */
static triplet *sorted_by_rows(const matrix *m, int block, int *start)
{
    triplet *out = (triplet *)need(m->count, sizeof *out);
    const int rows = m->n / block;
    size_t e;
    int r;
    for (e = 0; e < m->count; e++) start[m->entry[e].i / block + 1]++;
    for (r = 0; r < rows; r++) start[r + 1] += start[r];
    for (e = 0; e < m->count; e++) out[start[m->entry[e].i / block]++] = m->entry[e];
    for (r = rows; r > 0; r--) start[r] = start[r - 1];
    start[0] = 0;
    for (r = 0; r < rows; r++) qsort(out + start[r], (size_t)(start[r + 1] - start[r]), sizeof *out, compare_columns);
    return out;
}

/* Sums up what was put; zeros that were put stay in the pattern. */
static void matrix_end(matrix *m, int block)
{
    const int rows = m->n / block, size = block * block;
    int *from = (int *)need((size_t)rows + 1, sizeof(int));
    triplet *sorted = sorted_by_rows(m, block, from);
    int r, k, e = 0;
    m->start = (int *)need((size_t)rows + 1, sizeof(int));
    m->col = (int *)need(m->count, sizeof(int));
    m->a.value = (double *)need(m->count * (size_t)size, sizeof(double));
    for (r = 0; r < rows; r++) {
        for (k = from[r]; k < from[r + 1]; k++) {
            const triplet t = sorted[k];
            if (e == m->start[r] || m->col[e - 1] != t.j / block) m->col[e++] = t.j / block;
            m->a.value[(e - 1) * size + t.i % block * block + t.j % block] += t.v;
        }
        m->start[r + 1] = e;
    }
    m->a.rows = m->a.cols = rows;
    m->a.block = block;
    m->a.start = m->start;
    m->a.col = m->col;
    free(from);
    free(sorted);
    free(m->entry);
    m->entry = NULL;
    m->count = m->room = 0;
}

/* [H B^T; B C] becomes [H B^T; B -C]: definite matrices quasi-definite, whose eigenvalues are no nearer to 0 than those
   of H and C were. */
static void flip(matrix *m, const signed char *sign)
{
    const int b = m->a.block;
    int r, e, p, q;
    for (r = 0; r < m->a.rows; r++)
        for (e = m->start[r]; e < m->start[r + 1]; e++)
            for (p = 0; p < b; p++)
                for (q = 0; q < b; q++)
                    if (sign[r * b + p] < 0 && sign[m->col[e] * b + q] < 0) m->a.value[(e * b + p) * b + q] *= -1;
}

/* Row and column i times s_i. */
static void grade(matrix *m, const double *s)
{
    const int b = m->a.block;
    int r, e, p, q;
    for (r = 0; r < m->a.rows; r++)
        for (e = m->start[r]; e < m->start[r + 1]; e++)
            for (p = 0; p < b; p++)
                for (q = 0; q < b; q++) m->a.value[(e * b + p) * b + q] *= s[r * b + p] * s[m->col[e] * b + q];
}

/* ---- a sphere of triangles ---------------------------------------------------------------------------------------

   The convex hull of random points on a sphere, which is their Delaunay triangulation, one point after the other: the
   faces that see it go, and a fan over their rim comes. */
typedef struct sphere { double (*x)[3]; int (*face)[3]; int count, faces; } sphere;

static int sees(const sphere *s, int f, const double *p)
{
    const double *a = s->x[s->face[f][0]], *b = s->x[s->face[f][1]], *c = s->x[s->face[f][2]];
    const double u[3] = { b[0] - a[0], b[1] - a[1], b[2] - a[2] }, v[3] = { c[0] - a[0], c[1] - a[1], c[2] - a[2] };
    return (u[1] * v[2] - u[2] * v[1]) * (p[0] - a[0]) + (u[2] * v[0] - u[0] * v[2]) * (p[1] - a[1]) +
               (u[0] * v[1] - u[1] * v[0]) * (p[2] - a[2]) >
           0;
}

static void set_face(sphere *s, int f, int a, int b, int c)
{
    s->face[f][0] = a;
    s->face[f][1] = b;
    s->face[f][2] = c;
}

static void insert_point(sphere *s, int p)
{
    int rim[1024][2], seen = 0, f, k, q;
    for (f = 0; f < s->faces; f++) {
        if (!sees(s, f, s->x[p])) continue;
        for (k = 0; k < 3 && seen < 1024; k++, seen++) {
            rim[seen][0] = s->face[f][k];
            rim[seen][1] = s->face[f][(k + 1) % 3];
        }
        memcpy(s->face[f--], s->face[--s->faces], sizeof s->face[0]);
    }
    for (k = 0; k < seen; k++) {
        for (q = 0; q < seen && (rim[q][0] != rim[k][1] || rim[q][1] != rim[k][0]);) q++;
        if (q == seen) set_face(s, s->faces++, rim[k][0], rim[k][1], p);
    }
}

/* count: 4 or more. */
static sphere sphere_of(int count, uint64_t *random)
{
    static const double first[4][3] = { { 1, 1, 1 }, { 1, -1, -1 }, { -1, 1, -1 }, { -1, -1, 1 } };
    sphere s;
    int i, k;
    s.x = (double (*)[3])need((size_t)count, sizeof *s.x);
    s.face = (int (*)[3])need(2 * (size_t)count, sizeof *s.face);
    s.count = count;
    s.faces = 4;
    for (i = 0; i < count; i++) {
        const double z = between(random, -1, 1), turn = between(random, 0, 6.283185307), r = sqrt(1 - z * z);
        s.x[i][0] = r * cos(turn);
        s.x[i][1] = r * sin(turn);
        s.x[i][2] = z;
        for (k = 0; k < 3 && i < 4; k++) s.x[i][k] = first[i][k] / sqrt(3.0);
    }
    set_face(&s, 0, 0, 1, 2);
    set_face(&s, 1, 0, 2, 3);
    set_face(&s, 2, 0, 3, 1);
    set_face(&s, 3, 1, 3, 2);
    for (i = 4; i < count; i++) insert_point(&s, i);
    CHECK(s.faces == 2 * count - 4); /* Euler */
    return s;
}

static void sphere_free(sphere *s)
{
    free(s->x);
    free(s->face);
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

typedef struct kind {
    const char *name;
    matrix (*make)(int n, uint64_t *random); /* of about n rows, definite */
} kind;

static int limited(int wanted, int most) { return wanted < most ? wanted : most; }

/* Random products of three numbers that are at most 60 places apart. */
static matrix make_random(int n, uint64_t *random)
{
    matrix m = matrix_begin(n);
    int k, p, at[3];
    double u[3];
    for (k = 0; k < 2 * n; k++) {
        const int reach = limited(n, 60), from = pick(random, n - reach + 1);
        for (p = 0; p < 3; p++) {
            at[p] = from + pick(random, reach);
            u[p] = between(random, -1, 1);
        }
        put_product(&m, 3, at, u, 1);
    }
    put_ground(&m, 0.1);
    matrix_end(&m, 1);
    return m;
}

/* A chain that is hardly held, at its end: condition about 1e14. */
static matrix make_nearly_singular(int n, uint64_t *random)
{
    matrix m = matrix_begin(n);
    int i;
    for (i = 0; i + 1 < n; i++) put_spring(&m, i, i + 1, between(random, 1, 2));
    for (i = 0; i + 7 < n; i += 3) put_spring(&m, i, i + 7, 1);
    put(&m, n - 1, n - 1, 1e-13 * n);
    matrix_end(&m, 1);
    return m;
}

static matrix make_graded(int n, uint64_t *random)
{
    matrix m = make_random(n, random);
    double *s = need_numbers(n);
    int i;
    for (i = 0; i < n; i++) s[i] = pow(10, between(random, -15, 15));
    grade(&m, s);
    m.lowest = 0;
    free(s);
    return m;
}

/* A tip that all rows see. */
static matrix make_arrow_at(int n, int tip, uint64_t *random)
{
    matrix m = matrix_begin(n);
    int i;
    for (i = 0; i < n; i++) if (i != tip) put_spring(&m, i, tip, between(random, 0.1, 1));
    put_ground(&m, 0.1);
    matrix_end(&m, 1);
    return m;
}

static matrix make_arrow_up(int n, uint64_t *random) { return make_arrow_at(n, 0, random); }
static matrix make_arrow_down(int n, uint64_t *random) { return make_arrow_at(n, n - 1, random); }
static matrix make_star(int n, uint64_t *random) { return make_arrow_at(n, n / 2, random); }

static void put_grid(matrix *m, int nx, int ny, int nz)
{
    int x, y, z;
    for (z = 0; z < nz; z++) for (y = 0; y < ny; y++) for (x = 0; x < nx; x++) {
        const int at = (z * ny + y) * nx + x;
        if (x + 1 < nx) put_spring(m, at, at + 1, 1);
        if (y + 1 < ny) put_spring(m, at, at + nx, 1);
        if (z + 1 < nz) put_spring(m, at, at + nx * ny, 1);
    }
}

static matrix make_grid_2d(int n, uint64_t *random)
{
    const int side = (int)(sqrt(n) + 0.5), other = n / side;
    matrix m = matrix_begin(side * other);
    (void)random;
    put_grid(&m, side, other, 1);
    put_ground(&m, 1e-3);
    matrix_end(&m, 1);
    return m;
}

static matrix make_grid_3d(int n, uint64_t *random)
{
    const int side = (int)(pow(n, 1.0 / 3) + 0.5), other = n / (side * side) ? n / (side * side) : 1;
    matrix m = matrix_begin(side * side * other);
    (void)random;
    put_grid(&m, side, side, other);
    put_ground(&m, 1e-3);
    matrix_end(&m, 1);
    return m;
}

/* Laplace on random triangles of a sphere, every edge as stiff as it is short. */
static matrix make_triangles(int n, uint64_t *random)
{
    sphere s = sphere_of(n < 4 ? 4 : n, random);
    matrix m = matrix_begin(s.count);
    int f, k;
    for (f = 0; f < s.faces; f++) for (k = 0; k < 3; k++) {
        const int i = s.face[f][k], j = s.face[f][(k + 1) % 3];
        const double d[3] = { s.x[j][0] - s.x[i][0], s.x[j][1] - s.x[i][1], s.x[j][2] - s.x[i][2] };
        if (i < j) put_spring(&m, i, j, 1 / sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]));
    }
    put_ground(&m, 1e-2);
    matrix_end(&m, 1);
    sphere_free(&s);
    return m;
}

/* Vertices a, b, c bend: k |x_a - 2 x_b + x_c|^2, and the edge from a to b is stretched along `way`. */
static void put_shell_piece(matrix *m, int a, int b, int c, const double *way)
{
    int at[6], p;
    double u[6];
    for (p = 0; p < 3; p++) {
        const int line[3] = { 3 * a + p, 3 * b + p, 3 * c + p };
        const double bend[3] = { 1, -2, 1 };
        if (c >= 0) put_product(m, 3, line, bend, 0.05);
        at[p] = 3 * a + p;
        at[3 + p] = 3 * b + p;
        u[p] = way[p];
        u[3 + p] = -way[p];
    }
    put_product(m, 6, at, u, 1);
}

/* A sheet of springs along six directions that also resists bending, 3 x 3 blocks. */
static matrix make_shell(int n, uint64_t *random)
{
    static const int step[3][2] = { { 1, 0 }, { 0, 1 }, { 1, 1 } };
    const int side = (int)(sqrt(n / 3.0) + 0.9), other = n / 3 / side ? n / 3 / side : 1;
    matrix m = matrix_begin(3 * side * other);
    int x, y, k;
    for (y = 0; y < other; y++) for (x = 0; x < side; x++) for (k = 0; k < 3; k++) {
        const int x1 = x + step[k][0], z1 = y + step[k][1], at = y * side + x, hop = step[k][1] * side + step[k][0];
        const double way[3] = {step[k][0] + between(random, -0.2, 0.2), step[k][1] + between(random, -0.2, 0.2),
                               between(random, -0.2, 0.2)};
        if (x1 >= side || z1 >= other) continue;
        put_shell_piece(&m, at, at + hop, x1 + step[k][0] < side && z1 + step[k][1] < other ? at + 2 * hop : -1, way);
    }
    put_ground(&m, 1e-3);
    matrix_end(&m, 3);
    return m;
}

/* Two rows in three have nothing but their diagonal. */
static matrix make_lone_rows(int n, uint64_t *random)
{
    matrix m = matrix_begin(n);
    int i;
    for (i = 0; i + 3 < n; i += 3) put_spring(&m, i, i + 3, 1);
    for (i = 0; i < n; i++) put(&m, i, i, between(random, 0.1, 1));
    m.lowest = 0.1;
    matrix_end(&m, 1);
    return m;
}

/* A grid and three rows, anywhere, that see all others. */
static matrix make_dense_rows(int n, uint64_t *random)
{
    const int side = (int)(sqrt(n) + 0.5), other = n / side;
    matrix m = matrix_begin(side * other);
    int k, i;
    put_grid(&m, side, other, 1);
    for (k = 0; k < 3; k++) {
        const int row = pick(random, m.n);
        for (i = 0; i < m.n; i++) if (i != row) put_spring(&m, i, row, between(random, 0.01, 0.1));
    }
    put_ground(&m, 0.01);
    matrix_end(&m, 1);
    return m;
}

/* Rings of 1 to 12 numbers, whose members are far apart. */
static matrix make_components(int n, uint64_t *random)
{
    const int pieces = n / 6 + 1;
    matrix m = matrix_begin(n);
    int i;
    for (i = 0; i < n; i++) {
        const int to = i + pieces < n ? i + pieces : i % pieces;
        if (to != i) put_spring(&m, i, to, between(random, 0.1, 1));
    }
    put_ground(&m, 0.1);
    matrix_end(&m, 1);
    return m;
}

/* Laplace on a path in random order. */
static matrix make_chain(int n, uint64_t *random)
{
    matrix m = matrix_begin(n);
    int *at = (int *)need((size_t)n, sizeof(int)), i;
    for (i = 0; i < n; i++) {
        const int k = pick(random, i + 1);
        at[i] = at[k];
        at[k] = i;
    }
    for (i = 0; i + 1 < n; i++) put_spring(&m, at[i], at[i + 1], 1);
    put_ground(&m, 1e-4);
    matrix_end(&m, 1);
    free(at);
    return m;
}

static matrix make_tridiagonal(int n, uint64_t *random)
{
    matrix m = matrix_begin(n);
    int i;
    for (i = 0; i + 1 < n; i++) {
        const double k = between(random, 0.1, 1);
        put(&m, i, i, k);
        put(&m, i + 1, i + 1, k);
        put_pair(&m, i, i + 1, test_random(random) < 0.5 ? k : -k);
    }
    put_ground(&m, 0.01);
    matrix_end(&m, 1);
    return m;
}

/* Every entry is there. */
static matrix make_full(int n, uint64_t *random)
{
    matrix m = matrix_begin(n);
    int i, j;
    for (i = 0; i < n; i++) for (j = 0; j < i; j++) {
        const double k = between(random, 0.1, 1);
        put(&m, i, i, k);
        put(&m, j, j, k);
        put_pair(&m, i, j, test_random(random) < 0.5 ? k : -k);
    }
    put_ground(&m, 0.1);
    matrix_end(&m, 1);
    return m;
}

/* [H B^T; B -C] as constraints make it: H a shell, B of a few entries a row, C hardly anything. */
TEST_FN matrix make_saddle(int n, int constraints, double c, signed char *sign, uint64_t *random)
{
    const int side = (int)(sqrt(n) + 0.5);
    matrix m = matrix_begin(side * side + constraints);
    int i, k;
    put_grid(&m, side, side, 1);
    for (i = 0; i < m.n; i++) {
        sign[i] = i < side * side ? 1 : -1;
        put(&m, i, i, sign[i] > 0 ? 0.1 : -c);
        for (k = 0; k < 3 && sign[i] < 0; k++) put_pair(&m, i, (i * 7 + k) % (side * side), between(random, 0.5, 1));
    }
    m.lowest = fmin(0.1, c);
    matrix_end(&m, 1);
    return m;
}

enum { KINDS = 16, NEARLY_SINGULAR = 1, GRADED = 2 };
static const kind kinds[KINDS] = {{"random", make_random},
                                  {"nearly_singular", make_nearly_singular},
                                  {"graded_60_decades", make_graded},
                                  {"arrow_up", make_arrow_up},
                                  {"arrow_down", make_arrow_down},
                                  {"star", make_star},
                                  {"grid_2d", make_grid_2d},
                                  {"grid_3d", make_grid_3d},
                                  {"triangles", make_triangles},
                                  {"shell", make_shell},
                                  {"lone_rows", make_lone_rows},
                                  {"dense_rows", make_dense_rows},
                                  {"components", make_components},
                                  {"chain", make_chain},
                                  {"tridiagonal", make_tridiagonal},
                                  {"full", make_full}};
static const char *const orders[3] = { "dissection", "minimum_degree", "natural" };

/* ---- references in long double ----------------------------------------------------------------------------------- */

/* A = L D L^T in the given order, by blocks of rows, from the first block that holds an entry on. */
enum { TILE = 32, DEPTH = 128 };
typedef struct reference {
    int n, blocks, negative; /* negative pivots; -1: a pivot is 0 */
    int *first;              /* of a block row: its first block column */
    size_t *at;              /* of a row: its first entry that is kept */
    long double *l, *d;
} reference;

static int reference_from(const reference *f, int i) { return f->first[i / TILE] * TILE; }
static long double *reference_at(const reference *f, int i, int j)
{
    return f->l + f->at[i] + (size_t)(j - reference_from(f, i));
}

/* Visits what is on and below the diagonal. */
static void reference_fill(reference *f, const fsi_csr *a, int measure)
{
    const int b = a->block;
    int r, e, p, q;
    for (r = 0; r < a->rows; r++)
        for (e = a->start[r]; e < a->start[r + 1] && a->col[e] <= r; e++)
            for (p = 0; p < b; p++)
                for (q = 0; q < b; q++) {
                    const int i = r * b + p, j = a->col[e] * b + q;
                    if (j > i) continue;
                    if (measure) f->first[i / TILE] = limited(j / TILE, f->first[i / TILE]);
                    else *reference_at(f, i, j) = (long double)a->value[(e * b + p) * b + q];
                }
}

static void reference_lay(reference *f, const fsi_csr *a)
{
    size_t used = 0;
    int i;
    f->n = a->rows * a->block;
    f->blocks = (f->n + TILE - 1) / TILE;
    f->first = (int *)need((size_t)f->blocks, sizeof(int));
    f->at = (size_t *)need((size_t)f->n, sizeof(size_t));
    f->d = (long double *)need((size_t)f->n, sizeof(long double));
    for (i = 0; i < f->blocks; i++) f->first[i] = i;
    reference_fill(f, a, 1);
    for (i = 0; i < f->n; i++) {
        f->at[i] = used;
        used += (size_t)(i + 1 - reference_from(f, i));
    }
    f->l = (long double *)need(used, sizeof(long double));
}

/* sum_pq += sum over k of row (i + p)_k row (j + q)_k, for two rows each. */
static void reference_dots(const reference *f, int i, int j, int from, int to, long double *sum)
{
    const long double *u0 = reference_at(f, i, from), *u1 = reference_at(f, i + 1, from),
                      *l0 = reference_at(f, j, from), *l1 = reference_at(f, j + 1, from);
    long double s00 = 0, s01 = 0, s10 = 0, s11 = 0;
    int k;
    for (k = 0; k < to - from; k++) {
        s00 += u0[k] * l0[k];
        s01 += u0[k] * l1[k];
        s10 += u1[k] * l0[k];
        s11 += u1[k] * l1[k];
    }
    sum[0] += s00;
    sum[1] += s01;
    sum[TILE] += s10;
    sum[TILE + 1] += s11;
}

/* U = L D of a block row in a block column to the left, where that of the block columns before stands. */
static void reference_tile(reference *f, int row, int column)
{
    const int i0 = row * TILE, i1 = limited(i0 + TILE, f->n), j0 = column * TILE,
              start = (f->first[row] > f->first[column] ? f->first[row] : f->first[column]) * TILE;
    long double sum[TILE * TILE] = { 0 };
    int i, j, k, p;
    for (k = start; k < j0; k += DEPTH) for (i = i0; i + 1 < i1; i += 2) for (j = 0; j < TILE; j += 2)
        reference_dots(f, i, j0 + j, k, limited(k + DEPTH, j0), sum + (i - i0) * TILE + j);
    if ((i1 - i0) % 2 && start < j0) for (j = 0; j < TILE; j++) {
        const long double *u = reference_at(f, i1 - 1, start), *l = reference_at(f, j0 + j, start);
        for (k = 0; k < j0 - start; k++) sum[(i1 - 1 - i0) * TILE + j] += u[k] * l[k];
    }
    for (i = i0; i < i1; i++) for (j = 0; j < TILE; j++) {
        long double *u = reference_at(f, i, j0), *l = reference_at(f, j0 + j, j0);
        u[j] -= sum[(i - i0) * TILE + j];
        for (p = 0; p < j; p++) u[j] -= u[p] * l[p];
    }
}

/* The block on the diagonal, and rows of U become rows of L. */
static void reference_corner(reference *f, int row)
{
    const int i0 = row * TILE, i1 = limited(i0 + TILE, f->n), from = f->first[row] * TILE;
    int i, j, k;
    for (i = i0; i < i1 && f->negative >= 0; i++) {
        long double *u = reference_at(f, i, from);
        for (j = i0; j < i; j++)
            for (k = from; k < j; k++) u[j - from] -= u[k - from] * reference_at(f, j, from)[k - from];
        f->d[i] = u[i - from];
        for (k = from; k < i; k++) {
            const long double l = u[k - from] / f->d[k];
            f->d[i] -= u[k - from] * l;
            u[k - from] = l;
        }
        f->negative = f->d[i] == 0 ? -1 : f->negative + (f->d[i] < 0);
    }
}

static reference reference_of(const fsi_csr *a)
{
    reference f;
    int i, j;
    memset(&f, 0, sizeof f);
    reference_lay(&f, a);
    reference_fill(&f, a, 0);
    for (i = 0; i < f.blocks && f.negative >= 0; i++) {
        for (j = f.first[i]; j < i; j++) reference_tile(&f, i, j);
        reference_corner(&f, i);
    }
    return f;
}

static void reference_solve(const reference *f, long double *x)
{
    int i, k;
    for (i = 0; i < f->n; i++) for (k = reference_from(f, i); k < i; k++) x[i] -= *reference_at(f, i, k) * x[k];
    for (i = 0; i < f->n; i++) x[i] /= f->d[i];
    for (i = f->n - 1; i >= 0; i--) for (k = reference_from(f, i); k < i; k++) x[k] -= *reference_at(f, i, k) * x[i];
}

static void reference_free(reference *f)
{
    free(f->first);
    free(f->at);
    free(f->l);
    free(f->d);
}

/* ---- how far off a solution is ---------------------------------------------------------------------------------- */

/* left = b - A x and size = |A| |x| + |b|, from the whole of A. */
static void residual_of(const fsi_csr *a, const double *b, const double *x, long double *left, long double *size)
{
    const int w = a->block;
    int r, e, p, q;
    for (r = 0; r < a->rows * w; r++) {
        left[r] = (long double)b[r];
        size[r] = fabsl((long double)b[r]);
    }
    for (r = 0; r < a->rows; r++)
        for (e = a->start[r]; e < a->start[r + 1]; e++)
            for (p = 0; p < w; p++)
                for (q = 0; q < w; q++) {
                    const long double t =
                        (long double)a->value[(e * w + p) * w + q] * (long double)x[a->col[e] * w + q];
                    left[r * w + p] -= t;
                    size[r * w + p] += fabsl(t);
                }
}

/* Backward errors: by components, and of all together; HUGE_VAL for what is not a number. */
typedef struct backward { double rows, whole; } backward;

static backward backward_of(const fsi_csr *a, const double *b, const double *x)
{
    const int n = a->rows * a->block;
    long double *left = (long double *)need((size_t)n, sizeof *left),
                *size = (long double *)need((size_t)n, sizeof *size), most = 0, all = 0;
    backward e = { 0, 0 };
    int i;
    residual_of(a, b, x, left, size);
    for (i = 0; i < n; i++) {
        const double ratio = left[i] == 0 ? 0 : (double)(fabsl(left[i]) / size[i]);
        if (!(ratio <= e.rows)) e.rows = ratio == ratio ? ratio : HUGE_VAL;
        if (fabsl(left[i]) > most) most = fabsl(left[i]);
        if (size[i] > all) all = size[i];
    }
    e.whole = e.rows < HUGE_VAL ? all > 0 ? (double)(most / all) : 0 : HUGE_VAL;
    free(left);
    free(size);
    return e;
}

/* Largest |x - y| that rounding of A by EPS in every entry may well cause: |A^-1 (s o (|A| |x| + |b|))| for random
   signs s. */
static double sensitivity(const reference *f, const fsi_csr *a, const double *b, const double *x, uint64_t *random)
{
    long double *left = (long double *)need((size_t)f->n, sizeof *left),
                *size = (long double *)need((size_t)f->n, sizeof *size);
    double most = 0;
    int i, k;
    residual_of(a, b, x, left, size);
    for (k = 0; k < 4; k++) { /* of three rows, all signs */
        for (i = 0; i < f->n; i++) left[i] = (i < 2 ? k >> i & 1 : test_random(random) < 0.5) ? -size[i] : size[i];
        reference_solve(f, left);
        for (i = 0; i < f->n; i++) most = fmax(most, (double)fabsl(left[i]));
    }
    free(left);
    free(size);
    return EPS * most;
}

/* Largest |x - A^-1 b|. */
static double forward_error(const reference *f, const double *b, const double *x)
{
    long double *y = (long double *)need((size_t)f->n, sizeof *y);
    double most = 0;
    int i;
    for (i = 0; i < f->n; i++) y[i] = (long double)b[i];
    reference_solve(f, y);
    for (i = 0; i < f->n; i++) {
        const double e = (double)fabsl((long double)x[i] - y[i]);
        if (!(e <= most)) most = e == e ? e : HUGE_VAL;
    }
    free(y);
    return most;
}

/* b = A x, rounded once. */
TEST_FN void product_of(const fsi_csr *a, const double *x, double *b)
{
    const int n = a->rows * a->block;
    long double *left = (long double *)need((size_t)n, sizeof *left),
                *size = (long double *)need((size_t)n, sizeof *size);
    int i;
    for (i = 0; i < n; i++) b[i] = 0;
    residual_of(a, b, x, left, size);
    for (i = 0; i < n; i++) b[i] = (double)-left[i];
    free(left);
    free(size);
}

/* ---- one matrix, one way to solve it ---------------------------------------------------------------------------- */

typedef enum way { POSITIVE, SIGNED, ANY } way;

/* What came of it: x and b are the caller's. */
typedef struct outcome { backward first, refined; int negative; double weakest; } outcome;

static fsi_ldlt_desc desc_of(fsi_context *c, int order, way how, const signed char *sign)
{
    fsi_ldlt_desc d = fsi_ldlt_default_desc();
    d.context = c;
    if (order == 0) d.ordering = fsi_dissection();
    if (order == 2) d.order = FSI_LDLT_NATURAL;
    d.pivots = how == POSITIVE ? FSI_LDLT_POSITIVE : how == SIGNED ? FSI_LDLT_SIGNED : FSI_LDLT_ANY;
    d.sign = sign;
    return d;
}

/* x += A^-1 (b - A x). */
static int refine(fsi_ldlt *f, const fsi_csr *a, const double *b, double *x)
{
    const int n = a->rows * a->block;
    double *r = (double *)malloc(sizeof(double) * (size_t)n);
    int i, ok = fsi_csr_multiply(NULL, a, x, r) == FSI_OK;
    for (i = 0; i < n; i++) r[i] = b[i] - r[i];
    ok = ok && fsi_ldlt_solve(f, r, r) == FSI_OK;
    for (i = 0; i < n; i++) x[i] += r[i];
    free(r);
    return ok;
}

static int solve_matrix(const fsi_csr *a, const fsi_ldlt_desc *d, const double *b, double *x, outcome *out)
{
    fsi_ldlt *f = NULL;
    int ok =
        fsi_ldlt_create(&f, a, d) == FSI_OK && fsi_ldlt_factor(f, a) == FSI_OK && fsi_ldlt_solve(f, b, x) == FSI_OK;
    memset(out, 0, sizeof *out);
    if (ok) {
        out->first = backward_of(a, b, x);
        out->negative = f->stats.negative;
        out->weakest = f->stats.weakest_pivot;
        ok = refine(f, a, b, x) && refine(f, a, b, x);
        if (ok) out->refined = backward_of(a, b, x);
    }
    fsi_ldlt_destroy(f);
    return ok;
}

/* A third of the rows, or all positive. Returns how many are negative. */
static int choose_signs(signed char *sign, int n, way how, uint64_t *random)
{
    int i, negative = 0;
    for (i = 0; i < n; i++) {
        sign[i] = how != POSITIVE && test_random(random) < 0.35 ? -1 : 1;
        negative += sign[i] < 0;
    }
    return negative;
}

#if !defined(SOLVE_MATRICES_ONLY)

/* ---- up to 400 rows: solutions and inertia of the reference ----------------------------------------------------- */

typedef struct judged { int kind, size, order; way how; } judged;

static int fine(int holds, const judged *j, const char *what, double value)
{
    if (!holds)
        printf("%s, %d rows, %s, %s: %s %g\n", kinds[j->kind].name, j->size, orders[j->order],
               j->how == POSITIVE ? "positive"
               : j->how == SIGNED ? "signed"
                                  : "any",
               what, value);
    return CHECK(holds);
}

/* The first solution's error is the rounding of n steps of elimination; refined, that of one product. */
static void judge_by_reference(const judged *j, const matrix *m, const fsi_ldlt_desc *d, const reference *ref,
                               int negative, uint64_t *random)
{
    double *b = need_numbers(m->n), *x = need_numbers(m->n), off;
    outcome o;
    int i;
    for (i = 0; i < m->n; i++) b[i] = between(random, -1, 1);
    if (fine(solve_matrix(&m->a, d, b, x, &o), j, "refused", 0)) {
        fine(o.first.whole <= 4e-15, j, "residual", o.first.whole);
        fine(o.refined.rows <= 1e-14, j, "residual of a row, refined", o.refined.rows);
        fine(o.negative == negative && (!HAS_REFERENCE || ref->negative == negative), j, "negative pivots", o.negative);
        if (HAS_REFERENCE) {
            off = forward_error(ref, b, x) / sensitivity(ref, &m->a, b, x, random);
            fine(off <= 20, j, "error over that of rounded entries", off);
        }
    }
    free(b);
    free(x);
}

static void try_kind(int k, int size, way how)
{
    uint64_t random = (uint64_t)(1000 * k + 10 * size + (int)how);
    matrix m = kinds[k].make(size, &random);
    signed char *sign = (signed char *)need((size_t)m.n, 1);
    const int negative = choose_signs(sign, m.n, how, &random);
    reference ref;
    int order;
    flip(&m, sign);
    ref = reference_of(&m.a);
    for (order = 0; order < 3; order++) {
        const judged j = { k, m.n, order, how };
        fsi_ldlt_desc d = desc_of(NULL, order, how, sign);
        if (k == NEARLY_SINGULAR) d.smallest_pivot = 0; /* conditions up to 1e14 */
        judge_by_reference(&j, &m, &d, &ref, negative, &random);
    }
    reference_free(&ref);
    free(sign);
    matrix_free(&m);
}

static void test_all_kinds_up_to_100_rows_match_the_reference(void)
{
    static const int size[5] = { 1, 2, 3, 10, 100 };
    int k, s, how;
    for (k = 0; k < KINDS; k++) for (s = 0; s < 5; s++) for (how = 0; how < 3; how++) try_kind(k, size[s], (way)how);
}

static void test_all_kinds_of_400_rows_match_the_reference(void)
{
    int k, how;
    for (k = 0; k < KINDS; k++) for (how = 0; how < 3; how++) try_kind(k, TEST_SLOWED ? 150 : 400, (way)how);
}

/* ---- 10,000 rows ------------------------------------------------------------------------------------------------ */

/* Multiplications of the reference. */
static double reference_cost(const fsi_csr *a)
{
    reference f;
    double cost = 0;
    int i;
    memset(&f, 0, sizeof f);
    reference_lay(&f, a);
    for (i = 0; i < f.n; i++) cost += 0.5 * (double)(i - reference_from(&f, i)) * (double)(i - reference_from(&f, i));
    reference_free(&f);
    return cost;
}

/* |x - want| over EPS | |A| |x| + |b| | / lowest: rounding of entries and of b moves x by no more, in the 2-norm. */
static double error_over_bound(const matrix *m, const double *b, const double *x, const double *want)
{
    long double *left = (long double *)need((size_t)m->n, sizeof *left),
                *size = (long double *)need((size_t)m->n, sizeof *size), off = 0, all = 0;
    int i;
    residual_of(&m->a, b, x, left, size);
    for (i = 0; i < m->n; i++) {
        const long double e = (long double)x[i] - (long double)want[i];
        off += e * e;
        all += size[i] * size[i];
    }
    free(left);
    free(size);
    return (double)sqrtl(off / all) * m->lowest / EPS;
}

static void try_large(const judged *j, const matrix *m, const fsi_ldlt_desc *d, int negative, uint64_t *random)
{
    double *b = need_numbers(m->n), *x = need_numbers(m->n), *want = need_numbers(m->n), off;
    outcome o;
    int i;
    for (i = 0; i < m->n; i++) want[i] = between(random, -1, 1);
    product_of(&m->a, want, b);
    if (fine(solve_matrix(&m->a, d, b, x, &o), j, "refused", 0)) {
        fine(o.first.whole <= 1e-14, j, "residual", o.first.whole);
        fine(o.refined.rows <= 1e-14, j, "residual of a row, refined", o.refined.rows);
        fine(o.negative == negative, j, "negative pivots", o.negative);
        off = m->lowest > 0 ? error_over_bound(m, b, x, want) : 0;
        fine(off <= 20, j, "error over its bound", off);
    }
    free(b);
    free(x);
    free(want);
}

/* As many rows as the reference can take within a moment are compared with it, too. */
static void try_large_kind(int k, int size, way how)
{
    uint64_t random = (uint64_t)(k + 100 * (int)how);
    matrix m = kinds[k].make(size, &random);
    signed char *sign = (signed char *)need((size_t)m.n, 1);
    const int negative = choose_signs(sign, m.n, how, &random), order = (k + (int)how) % 2;
    const judged j = { k, m.n, order, how };
    fsi_ldlt_desc d = desc_of(NULL, order, how, sign);
    if (k == NEARLY_SINGULAR) d.smallest_pivot = 0;
    flip(&m, sign);
    if (reference_cost(&m.a) < 1e8) {
        reference ref = reference_of(&m.a);
        judge_by_reference(&j, &m, &d, &ref, negative, &random);
        reference_free(&ref);
    } else try_large(&j, &m, &d, negative, &random);
    free(sign);
    matrix_free(&m);
}

static void test_matrices_of_10000_rows_are_solved_to_rounding(void)
{
    int k, how;
    for (k = 0; k < KINDS; k++) for (how = 0; how < 2; how++) {
        const int most = kinds[k].make == make_full ? 600 : kinds[k].make == make_triangles ? 3000 : 10000;
        try_large_kind(k, TEST_SLOWED ? limited(most, 1500) : most, how == 0 ? POSITIVE : SIGNED);
    }
}

/* Inertia is what was built in, for weak regularisations too. A multiplier that goes first has a pivot of c, and
   rounding grows to EPS / c: so weakest_pivot tells. Where multipliers come last there is no growth. */
static void test_saddle_points_keep_their_inertia(void)
{
    static const double weak[4] = { 1, 1e-3, 1e-6, 1e-9 };
    static signed char sign[12000];
    static unsigned char last[12000];
    int k, order;
    for (k = 0; k < 4; k++) for (order = 0; order < 4; order++) {
        const int n = TEST_SLOWED ? 900 : 8100, constraints = n / 4;
        uint64_t random = (uint64_t)k + 1;
        matrix m = make_saddle(n, constraints, weak[k], sign, &random);
        const judged j = { 6, m.n, order % 2, SIGNED }, any = { 6, m.n, order % 2, ANY };
        fsi_ldlt_desc d = desc_of(NULL, order % 2, SIGNED, sign);
        double *b = need_numbers(m.n), *x = need_numbers(m.n);
        outcome o;
        int i;
        for (i = 0; i < m.n; i++) {
            b[i] = between(&random, -1, 1);
            last[i] = sign[i] < 0;
        }
        if (order >= 2) d.last = last;
        if (fine(solve_matrix(&m.a, &d, b, x, &o), &j, "refused", weak[k])) {
            fine(o.negative == constraints, &j, "negative pivots", o.negative);
            fine(o.first.whole <= (order >= 2 ? 4e-15 : 64 * EPS / o.weakest), &j, "residual", o.first.whole);
            fine(o.refined.rows <= 1e-14, &j, "residual of a row, refined", o.refined.rows);
        }
        d.pivots = FSI_LDLT_ANY;
        if (fine(solve_matrix(&m.a, &d, b, x, &o), &any, "refused", weak[k]))
            fine(o.negative == constraints, &any, "negative pivots", o.negative);
        free(b);
        free(x);
        matrix_free(&m);
    }
}

/* Poisson's eigenvalues are known, and so is the solution for one of them. */
static void test_eigenvectors_of_poisson_are_solved_for(void)
{
    const double pi = 3.14159265358979323846, want = 4 - 2 * cos(pi * 3 / 101) - 2 * cos(pi * 5 / 101),
                 lowest = 4 - 4 * cos(pi / 101);
    matrix m = matrix_begin(10000);
    double *b = need_numbers(m.n), *x = need_numbers(m.n), off = 0;
    fsi_ldlt_desc d = fsi_ldlt_default_desc();
    outcome o;
    int i;
    for (i = 0; i < m.n; i++) {
        put(&m, i, i, 4);
        if (i % 100) put_pair(&m, i, i - 1, -1);
        if (i >= 100) put_pair(&m, i, i - 100, -1);
        b[i] = sin(pi * 3 * (i % 100 + 1) / 101) * sin(pi * 5 * (i / 100 + 1) / 101);
    }
    matrix_end(&m, 1);
    CHECK(solve_matrix(&m.a, &d, b, x, &o));
    for (i = 0; i < m.n; i++) off = fmax(off, fabs(x[i] - b[i] / want));
    CHECK_NEAR(off, 0, 8 / lowest * EPS / want * 10); /* condition 8 / lowest, roundings of sin and product: 10 */
    CHECK(o.negative == 0);
    matrix_free(&m);
    free(b);
    free(x);
}

/* ---- verdicts: what is refused, and that what is not refused is right ------------------------------------------- */

static matrix matrix_from(int n, const double *dense, int block, int holes)
{
    matrix m = matrix_begin(n);
    int i, j;
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            if (dense[i * n + j] != 0 || !holes) put(&m, i, j, dense[i * n + j]);
    matrix_end(&m, block);
    return m;
}

/* A status that names a row, and leaves no factor. */
static fsi_status verdict_of(const fsi_csr *a, fsi_ldlt_desc d, int *row)
{
    fsi_context c = fsi_default_context();
    const int n = a->rows * a->block;
    double x[64] = { 0 };
    fsi_ldlt *f = NULL;
    fsi_status status;
    d.context = &c;
    *row = -1;
    if (!CHECK(n <= 64 && fsi_ldlt_create(&f, a, &d) == FSI_OK)) return FSI_ERROR_ARGUMENT;
    status = fsi_ldlt_factor(f, a);
    if (status != FSI_OK) {
        *row = (int)c.error.element;
        CHECK(status == FSI_ERROR_SINGULAR && c.error.status == status && *row >= 0 && *row < n &&
              strstr(c.error.message, "row") != NULL);
        CHECK(!f->factored && fsi_ldlt_solve(f, x, x) == FSI_ERROR_ARGUMENT);
    }
    fsi_ldlt_destroy(f);
    return status;
}

static void refuse(const double *dense, int n, way how, int row)
{
    static const signed char sign[64] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    matrix m = matrix_from(n, dense, 1, 1);
    int order, got;
    for (order = 0; order < 3; order++) {
        CHECK(verdict_of(&m.a, desc_of(NULL, order, how, sign), &got) == FSI_ERROR_SINGULAR);
        CHECK(row < 0 || got == row);
    }
    matrix_free(&m);
}

static void test_matrices_that_need_pivoting_are_refused(void)
{
    static const double swap[4] = {0, 1, 1, 0}, wide[9] = {0, 1, 2, 1, 0, 3, 2, 3, 0}, zero[4] = {0, 0, 0, 0},
                        hole[9] = {2, 0, 1, 0, 0, 0, 1, 0, 2};
    static const double minus[4] = { 1, 0, 0, -1 }, saddle[4] = { 1, 2, 2, 1 }, one[1] = { -3 };
    int how;
    for (how = 0; how < 3; how++) {
        refuse(swap, 2, (way)how, -1);
        refuse(wide, 3, (way)how, -1);
        refuse(zero, 2, (way)how, -1);
        refuse(hole, 3, (way)how, 1);
    }
    for (how = 0; how < 2; how++) { /* all are said to be positive */
        refuse(minus, 2, (way)how, 1);
        refuse(saddle, 2, (way)how, -1);
        refuse(one, 1, (way)how, 0);
    }
}

/* A wrong sign is found where it is: in a row that stands alone, or in the whole of what it is coupled with. */
static void test_a_wrong_sign_is_named(void)
{
    uint64_t random = 4;
    int round, order, row;
    for (round = 0; round < 200; round++) {
        matrix m = make_lone_rows(30, &random);
        signed char sign[30];
        const int bad = pick(&random, 30);
        int i;
        for (i = 0; i < 30; i++) sign[i] = i == bad ? -1 : 1;
        for (order = 0; order < 3; order++) {
            CHECK(verdict_of(&m.a, desc_of(NULL, order, SIGNED, sign), &row) == FSI_ERROR_SINGULAR &&
                  row % 3 == bad % 3);
            CHECK(row == bad || bad % 3 == 0);
        }
        matrix_free(&m);
    }
}

/* B M B^T with whole numbers, B one column too narrow: singular to the last bit. M is definite when `definite`. */
static void singular_integers(double *dense, int n, int definite, uint64_t *random)
{
    double b[8][8], c[8][8] = { { 0 } }, s;
    int i, j, k, p;
    for (i = 0; i < n; i++) for (k = 0; k < n - 1; k++) b[i][k] = pick(random, 7) - 3;
    for (k = 0; k < n - 1; k++) for (p = 0; p <= k; p++) c[k][p] = c[p][k] = definite ? k == p : pick(random, 7) - 3;
    for (i = 0; i < n; i++) for (j = 0; j < n; j++) {
        for (s = 0, k = 0; k < n - 1; k++) for (p = 0; p < n - 1; p++) s += b[i][k] * c[k][p] * b[j][p];
        dense[i * n + j] = s;
    }
}

/* A pivot of size w lets rounding grow to EPS / w: a singular matrix passes for a nearly singular one only with a pivot
   below sqrt(EPS), or a few whose product is. weakest_pivot tells. Returns how many of `rounds` passed. */
static int pass_singular_integers(int rounds, way how, uint64_t random)
{
    int round, passed = 0;
    for (round = 0; round < rounds; round++) {
        const int n = 1 + pick(&random, 8);
        fsi_ldlt_desc d = desc_of(NULL, round % 3, how, NULL);
        fsi_ldlt *f = NULL;
        double dense[64];
        matrix m;
        singular_integers(dense, n, how == POSITIVE, &random);
        m = matrix_from(n, dense, 1, round & 1);
        CHECK(fsi_ldlt_create(&f, &m.a, &d) == FSI_OK);
        if (fsi_ldlt_factor(f, &m.a) == FSI_OK) {
            passed++;
            CHECK_NEAR(f->stats.weakest_pivot, 0, 1e-8);
        }
        fsi_ldlt_destroy(f);
        matrix_free(&m);
    }
    return passed;
}

static void test_singular_integers_pass_only_with_a_weak_pivot(void)
{
    CHECK(pass_singular_integers(6000, POSITIVE, 1) <= 40);
    CHECK(pass_singular_integers(6000, ANY, 2) <= 40);
}

/* ---- any values ------------------------------------------------------------------------------------------------- */

/* What elimination without pivoting, in this order, makes of rounding: |L| |D| |L^T|, in long double; 0: a pivot is
   0. */
static int growth_of(int n, const double *dense, long double *g)
{
    long double l[64], u[64];
    int i, j, k;
    for (i = 0; i < n; i++) for (j = 0; j <= i; j++) {
        u[i * n + j] = (long double)dense[i * n + j];
        for (k = 0; k < j; k++) u[i * n + j] -= u[i * n + k] * l[j * n + k];
        if (u[j * n + j] == 0) return 0;
        l[i * n + j] = u[i * n + j] / u[j * n + j];
    }
    for (i = 0; i < n; i++) for (j = 0; j < n; j++)
        for (g[i * n + j] = 0, k = 0; k <= i && k <= j; k++) g[i * n + j] += fabsl(u[i * n + k] * l[j * n + k]);
    return 1;
}

/* Is the pivot of this row, all before it positive, not positive or lost in rounding? */
static int is_weak(int n, const double *dense, int row)
{
    long double u[64], most = 0;
    int i, j, k;
    for (i = 0; i < n; i++) for (j = 0; j < n; j++) u[i * n + j] = (long double)dense[i * n + j];
    for (k = 0; k < row; k++)
        for (i = k + 1; i < n && u[k * n + k] > 0; i++)
            for (j = k + 1; j < n; j++) u[i * n + j] -= u[i * n + k] / u[k * n + k] * u[k * n + j];
    for (j = 0; j < n; j++) if (fabs(dense[row * n + j]) > (double)most) most = (long double)fabs(dense[row * n + j]);
    return u[row * n + row] <= 1e-10L * most;
}

enum { VALUE_KINDS = 7 };

/* 0: whole numbers, 1: around 1, 2: 1e-300, 3: 1e300, 4: denormals, 5: huge spread, 6: huge spread, definite if nothing
   else is said. */
static double wild_value(int what, uint64_t *random)
{
    const double v = between(random, -1, 1);
    if (what == 0) return pick(random, 7) - 3;
    if (what == 1) return v;
    if (what == 2) return v * 1e-300;
    if (what == 3) return v * 1e300;
    if (what == 4) return v * 1e-315;
    return v * pow(10, between(random, -150, 150));
}

/* A share is definite: large diagonals, or products of a spread of scales. */
static void wild_matrix(double *dense, int n, int what, uint64_t *random)
{
    const int strong = pick(random, 3);
    double s[8];
    int i, j;
    for (i = 0; i < n; i++) s[i] = pow(10, between(random, -70, 70));
    for (i = 0; i < n; i++) for (j = 0; j <= i; j++) {
        double v = test_random(random) < 0.3 && i != j ? 0 : wild_value(what == 6 ? 1 : what, random);
        if (i == j && strong) v = fabs(v) * (strong == 2 ? n : 1);
        if (i == j && what == 6) v = fabs(v) + n;
        if (what == 6) v *= s[i] * s[j];
        dense[i * n + j] = dense[j * n + i] = v;
    }
}

/* |b - A x|_i <= 8 n EPS (|L| |D| |L^T| |x|)_i, the bound of elimination in any order of magnitude; numbers below
   1e-290 round by more. */
static void judge_wild(int n, const double *dense, const long double *g, const double *b, const double *x)
{
    int i, k;
    for (i = 0; i < n; i++) {
        long double left = (long double)b[i], bound = 0, tiny = 1e-320L * (1 + n);
        for (k = 0; k < n; k++) {
            left -= (long double)dense[i * n + k] * (long double)x[k];
            bound += g[i * n + k] * fabsl((long double)x[k]);
            tiny += 1e-320L * (fabsl((long double)x[k]) + g[i * n + k]);
        }
        CHECK(fabsl(left) <= 8 * n * (long double)EPS * bound + tiny);
    }
}

static int solve_wild(int n, const double *dense, int what, way how, uint64_t *random)
{
    const signed char sign[8] = { 1, 1, 1, -1, 1, 1, 1, -1 };
    fsi_context c = fsi_default_context();
    fsi_ldlt_desc d = desc_of(&c, 2, how, sign);
    matrix m = matrix_from(n, dense, 1, what & 1);
    double b[8], x[8];
    long double g[64];
    fsi_ldlt *f = NULL;
    fsi_status status;
    int i, solved = 0;
    if (how == POSITIVE) d.smallest_pivot = 0; /* definite ones need none */
    for (i = 0; i < n; i++) b[i] = wild_value(test_random(random) < 0.5 ? what : 1, random);
    CHECK(fsi_ldlt_create(&f, &m.a, &d) == FSI_OK);
    status = fsi_ldlt_factor(f, &m.a);
    CHECK(status == FSI_OK || (status == FSI_ERROR_SINGULAR && c.error.element >= 0 && c.error.element < n));
    if (status != FSI_OK && how == POSITIVE && what <= 3 && HAS_REFERENCE)
        CHECK(is_weak(n, dense, (int)c.error.element));
    if (status == FSI_OK) {
        status = fsi_ldlt_solve(f, b, x);
        CHECK(status == FSI_OK || status == FSI_ERROR_NAN);
        solved = status == FSI_OK;
        for (i = 0; i < n && solved; i++) CHECK(fsi_is_finite(x[i]));
        if (solved && HAS_REFERENCE && CHECK(growth_of(n, dense, g))) judge_wild(n, dense, g, b, x);
    }
    fsi_ldlt_destroy(f);
    matrix_free(&m);
    return solved;
}

static void test_any_values_are_solved_to_rounding_or_refused(void)
{
    uint64_t random = 3;
    int what, how, round;
    for (what = 0; what < VALUE_KINDS; what++) for (how = 0; how < 3; how++) {
        int solved = 0;
        for (round = 0; round < 1500; round++) {
            const int n = 1 + pick(&random, 8);
            double dense[64];
            wild_matrix(dense, n, what, &random);
            solved += solve_wild(n, dense, what, (way)how, &random);
        }
        CHECK(solved >= 50 || what == 4);
    }
}

/* ---- assembly, factor and dense factor together ----------------------------------------------------------------- */

/* A net of springs, triangles and lumped masses, two corners pinned, whose parts are held by constraints. */
enum {
    SIDE = 7,
    FREE = SIDE * SIDE - 2,
    DOFS = 3 * FREE,
    CONSTRAINTS = 4,
    MOST_ELEMENTS = 400,
    WHOLE = DOFS + CONSTRAINTS
};
typedef struct net {
    int start[MOST_ELEMENTS + 1], vertex[4 * MOST_ELEMENTS], elements;
    double value[MOST_ELEMENTS * 144], place[SIDE * SIDE][3];
    size_t numbers;
} net;

static int net_number(int v) { return v == 0 || v == SIDE - 1 ? -1 : v < SIDE ? v - 1 : v - 2; }

/* The element of `count` vertices whose energy is (sum over k of u_k x_k)^2 / 2 in every direction, and `hold` |x|^2 /
   2; u: 3 numbers a vertex. */
static void net_add(net *s, int count, const int *vertex, const double *u, double hold)
{
    double *out = s->value + s->numbers;
    const int n = 3 * count;
    int p, q;
    for (p = 0; p < count; p++) s->vertex[s->start[s->elements] + p] = net_number(vertex[p]);
    s->start[s->elements + 1] = s->start[s->elements] + count;
    s->elements++;
    for (p = 0; p < n; p++) for (q = 0; q < n; q++) out[p * n + q] = u[p] * u[q] + (p == q ? hold : 0);
    s->numbers += (size_t)(n * n);
}

static void net_add_spring(net *s, int a, int b)
{
    const int vertex[2] = { a, b };
    double u[6];
    int p;
    for (p = 0; p < 3; p++) u[p] = -(u[3 + p] = 5 * (s->place[b][p] - s->place[a][p]));
    net_add(s, 2, vertex, u, 0);
}

/* A membrane resists the change of its area: the area's gradient. */
static void net_add_membrane(net *s, int a, int b, int c)
{
    const int vertex[3] = { a, b, c };
    double u[9];
    int k, p;
    for (k = 0; k < 3; k++)
        for (p = 0; p < 3; p++)
            u[3 * k + p] = s->place[vertex[(k + 1) % 3]][(p + 1) % 3] - s->place[vertex[(k + 2) % 3]][(p + 1) % 3];
    net_add(s, 3, vertex, u, 0);
}

static void net_make(net *s, uint64_t *random)
{
    static const double none[3] = { 0, 0, 0 };
    int x, y, v;
    memset(s, 0, sizeof *s);
    for (v = 0; v < SIDE * SIDE; v++) {
        s->place[v][0] = v % SIDE + between(random, -0.2, 0.2);
        s->place[v][1] = v / SIDE + between(random, -0.2, 0.2);
        s->place[v][2] = between(random, -0.5, 0.5);
    }
    for (y = 0; y < SIDE; y++) for (x = 0; x < SIDE; x++) {
        v = y * SIDE + x;
        net_add(s, 1, &v, none, 0.3);
        if (x + 1 < SIDE) net_add_spring(s, v, v + 1);
        if (y + 1 < SIDE) net_add_spring(s, v, v + SIDE);
        if (x + 1 == SIDE || y + 1 == SIDE) continue;
        net_add_spring(s, v, v + SIDE + 1);
        net_add_membrane(s, v, v + 1, v + SIDE + 1);
        net_add_membrane(s, v, v + SIDE + 1, v + SIDE);
    }
}

/* [A B; B^T 0] from the elements themselves, every entry by itself. */
static void net_dense(const net *s, const double *columns, double *whole)
{
    size_t at = 0;
    int e, p, q, i, j;
    memset(whole, 0, WHOLE * WHOLE * sizeof *whole);
    for (e = 0; e < s->elements; e++) {
        const int n = 3 * (s->start[e + 1] - s->start[e]), *vertex = s->vertex + s->start[e];
        for (p = 0; p < n; p++) for (q = 0; q < n; q++, at++)
                if (vertex[p / 3] >= 0 && vertex[q / 3] >= 0)
                    whole[(vertex[p / 3] * 3 + p % 3) * WHOLE + vertex[q / 3] * 3 + q % 3] += s->value[at];
    }
    for (j = 0; j < CONSTRAINTS; j++)
        for (i = 0; i < DOFS; i++) whole[i * WHOLE + DOFS + j] = whole[(DOFS + j) * WHOLE + i] = columns[j * DOFS + i];
}

static fsi_assembly *net_assemble(const net *s)
{
    fsi_assembly_desc d = fsi_assembly_default_desc();
    fsi_assembly *out = NULL;
    d.vertices = FREE;
    d.elements = s->elements;
    d.start = s->start;
    d.vertex = s->vertex;
    CHECK(fsi_assembly_create(&out, &d) == FSI_OK && out->numbers == s->numbers);
    CHECK(fsi_assembly_matrix(out, s->value) == FSI_OK);
    return out;
}

/* The Schur complement B^T A^-1 B by hand: its Cholesky factor gives the multipliers. */
static void net_check_schur(fsi_ldlt *f, const double *columns, const double *b, const long double *multiplier)
{
    double z[DOFS], s[CONSTRAINTS * CONSTRAINTS], y[CONSTRAINTS];
    int i, j, k;
    for (j = 0; j < CONSTRAINTS; j++) {
        CHECK(fsi_ldlt_solve(f, columns + j * DOFS, z) == FSI_OK);
        for (k = 0; k < CONSTRAINTS; k++)
            for (s[k * CONSTRAINTS + j] = 0, i = 0; i < DOFS; i++)
                s[k * CONSTRAINTS + j] += columns[k * DOFS + i] * z[i];
        for (y[j] = -b[DOFS + j], i = 0; i < DOFS; i++) y[j] += z[i] * b[i];
    }
    CHECK(fsi_dense_cholesky(NULL, CONSTRAINTS, s) == FSI_OK && fsi_dense_cholesky_solve(CONSTRAINTS, s, y) == FSI_OK);
    for (j = 0; j < CONSTRAINTS; j++) CHECK_NEAR(y[j], (double)multiplier[j], 1e-12 * (1 + fabs(y[j])));
}

/* The factor of the net alone against its dense one, and the whole, multipliers last, against elimination. */
static void net_check_whole(const double *whole, const double *b, const long double *want, fsi_ldlt *f)
{
    double *a = need_numbers(WHOLE * WHOLE), y[WHOLE];
    signed char sign[WHOLE];
    unsigned char last[WHOLE];
    fsi_ldlt_desc d = fsi_ldlt_default_desc();
    fsi_ldlt *all = NULL;
    matrix m;
    int i, j;
    for (i = 0; i < DOFS; i++) for (j = 0; j < DOFS; j++) a[i * DOFS + j] = whole[i * WHOLE + j];
    memcpy(y, b, DOFS * sizeof *y);
    CHECK(fsi_dense_cholesky(NULL, DOFS, a) == FSI_OK && fsi_dense_cholesky_solve(DOFS, a, y) == FSI_OK);
    CHECK(fsi_ldlt_solve(f, b, a) == FSI_OK);
    for (i = 0; i < DOFS; i++) CHECK_NEAR(a[i], y[i], 1e-12);
    for (i = 0; i < WHOLE; i++) sign[i] = (signed char)((last[i] = i >= DOFS) ? -1 : 1);
    d.pivots = FSI_LDLT_SIGNED;
    d.sign = sign;
    d.last = last;
    m = matrix_from(WHOLE, whole, 1, 1);
    CHECK(fsi_ldlt_create(&all, &m.a, &d) == FSI_OK && fsi_ldlt_factor(all, &m.a) == FSI_OK &&
          all->stats.negative == CONSTRAINTS);
    CHECK(fsi_ldlt_solve(all, b, y) == FSI_OK && backward_of(&m.a, b, y).whole <= 4e-15);
    for (i = 0; i < WHOLE; i++) CHECK_NEAR(y[i], (double)want[i], 1e-12 * (1 + fabs(y[i])));
    fsi_ldlt_destroy(all);
    matrix_free(&m);
    free(a);
}

static void test_a_net_with_constraints_is_solved_alike_by_every_part(void)
{
    static net s;
    static double whole[WHOLE * WHOLE], columns[CONSTRAINTS * DOFS], b[WHOLE];
    static long double x[WHOLE];
    uint64_t random = 12;
    fsi_assembly *a;
    fsi_ldlt_desc d = fsi_ldlt_default_desc();
    fsi_ldlt *f = NULL;
    int i;
    net_make(&s, &random);
    for (i = 0; i < CONSTRAINTS * DOFS; i++) columns[i] = i % DOFS % 4 == i / DOFS ? between(&random, 0.5, 1) : 0;
    for (i = 0; i < WHOLE; i++) b[i] = between(&random, -1, 1);
    net_dense(&s, columns, whole);
    a = net_assemble(&s);
    if (!a || !CHECK(fsi_ldlt_create(&f, &a->matrix, &d) == FSI_OK && fsi_ldlt_factor(f, &a->matrix) == FSI_OK)) return;
    dense_eliminate(WHOLE, whole, b, x);
    net_check_schur(f, columns, b, x + DOFS);
    net_check_whole(whole, b, x, f);
    fsi_ldlt_destroy(f);
    fsi_assembly_destroy(a);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_all_kinds_up_to_100_rows_match_the_reference);
    RUN(test_all_kinds_of_400_rows_match_the_reference);
    RUN(test_matrices_of_10000_rows_are_solved_to_rounding);
    RUN(test_saddle_points_keep_their_inertia);
    RUN(test_eigenvectors_of_poisson_are_solved_for);
    RUN(test_matrices_that_need_pivoting_are_refused);
    RUN(test_a_wrong_sign_is_named);
    RUN(test_singular_integers_pass_only_with_a_weak_pivot);
    RUN(test_any_values_are_solved_to_rounding_or_refused);
    RUN(test_a_net_with_constraints_is_solved_alike_by_every_part);
    return TEST_END();
}
#endif
