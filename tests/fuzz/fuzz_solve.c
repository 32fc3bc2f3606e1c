/* fuzz_solve.c - any bytes as a matrix, its description and what is done with it: nothing may crash, what is not
   finite never comes with FSI_OK,
   and what is solved is solved to the rounding of elimination.
   SPDX-License-Identifier: MIT

   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_solve.c -o fuzz_solve -lm && ./fuzz_solve -max_len=1024 */
#define FSI_IMPLEMENTATION
#include "../../fsi_order.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x) do { if (!(x)) { fprintf(stderr, "violated: %s\n", #x); abort(); } } while (0)

enum { ROWS = 12, BLOCK = 4, NUMBERS = ROWS * BLOCK, ENTRIES = 80 };

/* Bytes in order, then zeros. */
typedef struct bytes { const uint8_t *at; size_t left; } bytes;

static int next_byte(bytes *in)
{
    if (in->left == 0) return 0;
    in->left--;
    return *in->at++;
}

/* Mostly plain numbers; some huge, tiny, or any bits at all. */
static double next_number(bytes *in)
{
    static const double strange[8] = { 1e300, -1e300, 1e-300, 5e-324, 1e-14, 1e150, -1e-8, 1e280 };
    const int what = next_byte(in);
    uint64_t bits = 0;
    double v;
    int k;
    if (what < 200) return (what % 17 - 8) * 0.5;
    if (what < 240) return strange[what & 7];
    for (k = 0; k < 8; k++) bits = bits << 8 | (unsigned)next_byte(in);
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void fill(bytes *in, double *v, int n)
{
    int k;
    for (k = 0; k < n; k++) v[k] = next_number(in);
}

static int all_finite(const double *v, int n)
{
    int k;
    for (k = 0; k < n && fsi_is_finite(v[k]); k++) {}
    return k == n;
}

/* ---- matrices ----------------------------------------------------------------------------------------------------- */

typedef struct problem {
    fsi_csr a;
    int start[ROWS + 1], col[ENTRIES];
    double value[ENTRIES * BLOCK * BLOCK], whole[NUMBERS * NUMBERS]; /* the symmetric matrix whose lower triangle is given */
    unsigned char last[ROWS];
    signed char sign[NUMBERS];
} problem;

/* Ascending columns in every row; with `damage` something is wrong with the pattern. */
static void read_pattern(bytes *in, problem *p, int damage)
{
    int r, c, e = 0;
    p->a.rows = p->a.cols = next_byte(in) % (ROWS + 1);
    p->a.block = 1 + next_byte(in) % BLOCK;
    for (r = 0; r < p->a.rows; r++) {
        const int bits = next_byte(in) | next_byte(in) << 8;
        for (c = 0; c < p->a.rows && e < ENTRIES; c++) if (bits >> c & 1) p->col[e++] = c;
        p->start[r + 1] = e;
    }
    if (!damage) return;
    if (damage & 1) p->col[next_byte(in) % ENTRIES] = (signed char)next_byte(in);
    if (damage & 2) p->start[next_byte(in) % (ROWS + 1)] = next_byte(in) % (ENTRIES + 9) - 8;
    if (damage & 4) p->a.block = 12 + next_byte(in) % 9;
    if (p->a.block >= 12 && p->a.block <= 16) p->a.block -= 16; /* refused: there are no values for it */
    if (damage & 8) p->a.rows = -1 - next_byte(in);
    if (damage & 16) p->a.cols += 1;
}

static void mirror(problem *p)
{
    const int b = p->a.block, n = p->a.rows * b;
    int r, e, x, y;
    for (r = 0; r < p->a.rows; r++) for (e = p->start[r]; e < p->start[r + 1] && p->col[e] <= r; e++) for (x = 0; x < b; x++) for (y = 0; y < b; y++) {
        const int i = r * b + x, j = p->col[e] * b + y;
        if (j <= i) p->whole[i * n + j] = p->whole[j * n + i] = p->value[(e * b + x) * b + y];
    }
}

/* Diagonals that make most matrices definite, or quasi-definite. */
static void strengthen(problem *p, double by)
{
    const int b = p->a.block;
    int r, e, x;
    for (r = 0; r < p->a.rows; r++) for (e = p->start[r]; e < p->start[r + 1]; e++) for (x = 0; x < b && p->col[e] == r; x++)
        p->value[(e * b + x) * b + x] = p->sign[r * b + x] * (fabs(p->value[(e * b + x) * b + x]) + by);
}

static void read_problem(bytes *in, problem *p, int damage, int strong, int is_signed)
{
    int k;
    memset(p, 0, sizeof *p);
    p->a.start = p->start;
    p->a.col = p->col;
    p->a.value = p->value;
    read_pattern(in, p, damage);
    for (k = 0; k < ROWS; k++) p->last[k] = (unsigned char)(next_byte(in) > 200);
    for (k = 0; k < NUMBERS; k++) p->sign[k] = (signed char)(is_signed && (k * 7 + strong) % 3 == 0 ? -1 : 1);
    if (damage) return;
    fill(in, p->value, p->start[p->a.rows] * p->a.block * p->a.block);
    if (strong & 1) strengthen(p, 4.0 * p->a.block * ROWS);
    mirror(p);
}

/* ---- checks ------------------------------------------------------------------------------------------------------- */

/* Do diagonals outweigh their rows? Then elimination lets nothing grow to more than twice its size. */
static int is_dominant(const double *a, int n)
{
    int i, k;
    for (i = 0; i < n; i++) {
        double sum = 0;
        for (k = 0; k < n; k++) if (k != i) sum += fabs(a[i * n + k]);
        if (!(fabs(a[i * n + i]) >= sum)) return 0;
    }
    return 1;
}

/* Is every number 0 or of a size whose square and cube can be held? */
static int is_tame(const double *v, int n)
{
    int k;
    for (k = 0; k < n && (v[k] == 0 || (fabs(v[k]) < 1e90 && fabs(v[k]) > 1e-90)); k++) {}
    return k == n;
}

/* |b - A x|_i <= 16 n EPS s_i (s . |x|) with s_i^2 = A_ii: elimination of definite matrices, in any order; of dominant ones in the largest norm. */
static void check_residual(const problem *p, const fsi_ldlt *f, const double *b, const double *x)
{
    const int n = p->a.rows * p->a.block, dominant = is_dominant(p->whole, n);
    double most = 0, reach = 0;
    int i, k;
    if (!is_tame(p->whole, n * n) || !is_tame(b, n) || (f->desc.pivots != FSI_LDLT_POSITIVE && !dominant)) return;
    for (i = 0; i < n; i++) {
        most = fmax(most, sqrt(fabs(p->whole[i * n + i])));
        reach += sqrt(fabs(p->whole[i * n + i])) * fabs(x[i]);
    }
    for (i = 0; i < n; i++) {
        const double scale = f->desc.pivots == FSI_LDLT_POSITIVE ? sqrt(p->whole[i * n + i]) : most;
        double left = b[i];
        for (k = 0; k < n; k++) left -= p->whole[i * n + k] * x[k];
        MUST(fabs(left) <= 2e-15 * n * (scale * reach + fabs(b[i])) + 1e-200);
    }
}

static void use_factor(bytes *in, const problem *p, fsi_ldlt *f)
{
    const int n = p->a.rows * p->a.block;
    double b[NUMBERS + 1] = { 0 }, x[NUMBERS + 1] = { 0 };
    MUST(f->factored && f->stats.negative >= 0 && f->stats.negative <= n && f->stats.weakest_row < n);
    MUST(n == 0 || (f->stats.weakest_pivot >= f->desc.smallest_pivot && all_finite(p->whole, n * n)));
    fill(in, b, n);
    if (fsi_ldlt_solve(f, b, x) == FSI_OK) {
        MUST(all_finite(x, n));
        check_residual(p, f, b, x);
    } else MUST(all_finite(x, n));
}

static fsi_ldlt_desc read_desc(bytes *in, problem *p, fsi_context *c, int flags)
{
    fsi_ldlt_desc d = fsi_ldlt_default_desc();
    const int order = next_byte(in);
    d.context = c;
    if (order % 3 == 0) d.ordering = fsi_dissection();
    if (order % 3 == 2) d.order = FSI_LDLT_NATURAL;
    d.pivots = flags & 2 ? FSI_LDLT_SIGNED : flags & 4 ? FSI_LDLT_ANY : FSI_LDLT_POSITIVE;
    d.sign = p->sign;
    if (flags & 8) d.last = p->last;
    if (flags & 16) d.smallest_pivot = 0;
    return d;
}

static void try_ldlt(bytes *in, fsi_context *c)
{
    static problem p;
    const int flags = next_byte(in), damage = flags & 32 ? next_byte(in) & 31 : 0;
    fsi_ldlt_desc d;
    fsi_ldlt *f = NULL;
    fsi_status status;
    int n;
    read_problem(in, &p, damage, flags & 65 ? next_byte(in) | 1 : 0, flags & 2);
    d = read_desc(in, &p, c, flags);
    status = fsi_ldlt_create(&f, &p.a, &d);
    MUST((status == FSI_OK) == (f != NULL) && (damage || status == FSI_OK));
    if (status != FSI_OK) return;
    n = p.a.rows * p.a.block;
    if (damage) mirror(&p);
    status = fsi_ldlt_factor(f, &p.a);
    if (status == FSI_OK) use_factor(in, &p, f);
    else MUST((status == FSI_ERROR_SINGULAR || status == FSI_ERROR_NAN) && c->error.element >= 0 && c->error.element < n && !f->factored);
    fsi_ldlt_destroy(f);
}

/* ---- assembly and dense factors ------------------------------------------------------------------------------------- */

static void try_assembly(bytes *in, fsi_context *c)
{
    static double value[64 * 64 * 9], vector[64 * 3];
    double out[ROWS * 3] = { 0 };
    int start[17] = { 0 }, vertex[64], k;
    fsi_assembly_desc d = fsi_assembly_default_desc();
    fsi_assembly *s = NULL;
    d.context = c;
    d.vertices = next_byte(in) % (ROWS + 1);
    d.block = 1 + next_byte(in) % 3;
    d.elements = next_byte(in) % 17;
    for (k = 0; k < d.elements; k++) start[k + 1] = start[k] + next_byte(in) % 5;
    if (next_byte(in) > 240) start[next_byte(in) % 17] = next_byte(in) % 69 - 4;
    for (k = 0; k < 64; k++) vertex[k] = next_byte(in) % (ROWS + 2) - 1;
    d.start = start;
    d.vertex = vertex;
    if (fsi_assembly_create(&s, &d) != FSI_OK) {
        MUST(s == NULL);
        return;
    }
    MUST(s->numbers <= sizeof value / sizeof *value && s->vector_numbers <= sizeof vector / sizeof *vector);
    fill(in, value, (int)s->numbers);
    fill(in, vector, (int)s->vector_numbers);
    (void)fsi_assembly_matrix(s, value);
    (void)fsi_assembly_vector(s, vector, out);
    MUST(all_finite(s->matrix.value, s->matrix.start[s->matrix.rows] * d.block * d.block) && all_finite(out, d.vertices * d.block));
    fsi_assembly_destroy(s);
}

static void try_dense(bytes *in, fsi_context *c)
{
    double a[16 * 16], l[16 * 16], b[16], x[16];
    const int n = next_byte(in) % 17;
    int k;
    fill(in, a, n * n);
    fill(in, b, n);
    for (k = 0; k < n && next_byte(in) > 100; k++) a[k * n + k] = fabs(a[k * n + k]) + 4.0 * n;
    memcpy(l, a, sizeof l);
    memcpy(x, b, sizeof x);
    if (fsi_dense_cholesky(c, n, l) == FSI_OK && fsi_dense_cholesky_solve(n, l, x) == FSI_OK) MUST(all_finite(x, n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fsi_context context = fsi_default_context();
    bytes in;
    int what;
    in.at = data;
    in.left = size;
    what = next_byte(&in);
    if (what < 180) try_ldlt(&in, &context);
    else if (what < 220) try_assembly(&in, &context);
    else try_dense(&in, &context);
    MUST(context.bytes == 0);
    return 0;
}
