/* validate_solve.c - sparse factorisations against dense elimination in long double at full size, and how their cost
   grows.
   SPDX-License-Identifier: MIT

   Every kind of matrix of test_solve_matrices.c at 3,000 rows, definite and quasi-definite, two of them at 10,000 rows;
   saddle points of weak regularisation; fill, arithmetic and time of shells and of Poisson's equation from 1k to 100k
   vertices, beside theory. Prints lines `key value unit`. --res 50 halves the rows; a word (kinds, large, saddle,
   growth) runs one part. */
#define FSI_IMPLEMENTATION
#include "../examples/kit/kit.h"
#define SOLVE_MATRICES_ONLY
#include "../tests/test_solve_matrices.c"
#include "validate.h"

static double cpu_now(void *user)
{
    (void)user;
    return ex_cpu_seconds();
}

/* ---- against the reference -------------------------------------------------------------------------------------- */

/* The worst of three orders. */
typedef struct worst { double first, refined, error, inertia; } worst;

static void try_order(const matrix *m, const fsi_ldlt_desc *d, const reference *ref, int negative, uint64_t *random,
                      worst *w)
{
    double *b = need_numbers(m->n), *x = need_numbers(m->n);
    outcome o;
    int i;
    for (i = 0; i < m->n; i++) b[i] = between(random, -1, 1);
    if (!solve_matrix(&m->a, d, b, x, &o)) ex_die("a matrix was refused");
    w->first = fmax(w->first, o.first.whole);
    w->refined = fmax(w->refined, o.refined.rows);
    w->inertia = fmax(w->inertia, abs(o.negative - negative) + abs(o.negative - ref->negative));
    if (HAS_REFERENCE) w->error = fmax(w->error, forward_error(ref, b, x) / sensitivity(ref, &m->a, b, x, random));
    free(b);
    free(x);
}

static void say_worst(const worst *w, const char *kind_name, int rows, const char *how)
{
    say(w->first, "1", "%s_%d_%s_residual", kind_name, rows, how);
    say(w->refined, "1", "%s_%d_%s_refined_residual_of_a_row", kind_name, rows, how);
    if (HAS_REFERENCE) say(w->error, "roundings", "%s_%d_%s_error", kind_name, rows, how);
    say(w->inertia, "pivots", "%s_%d_%s_wrong_inertia", kind_name, rows, how);
}

static void try_full_size(const kind *k, int rows, way how, int orders_tried, double smallest_pivot)
{
    uint64_t random = (uint64_t)rows;
    matrix m = k->make(rows, &random);
    signed char *sign = (signed char *)need((size_t)m.n, 1);
    const int negative = choose_signs(sign, m.n, how, &random);
    worst w = { 0, 0, 0, 0 };
    reference ref;
    double start = ex_cpu_seconds();
    int order;
    flip(&m, sign);
    ref = reference_of(&m.a);
    start = ex_cpu_seconds() - start;
    for (order = 0; order < orders_tried; order++) {
        fsi_ldlt_desc d = desc_of(NULL, order, how, sign);
        d.smallest_pivot = smallest_pivot;
        try_order(&m, &d, &ref, negative, &random, &w);
    }
    say_worst(&w, k->name, m.n, how == POSITIVE ? "positive" : "signed");
    if (orders_tried < 3) say(start, "s", "%s_%d_reference_time", k->name, m.n);
    reference_free(&ref);
    free(sign);
    matrix_free(&m);
}

static void run_kinds(void)
{
    int k, how;
    for (k = 0; k < KINDS; k++)
        for (how = 0; how < 2; how++)
            try_full_size(&kinds[k], scaled(3000), how == 0 ? POSITIVE : SIGNED, 3, k == GRADED ? 0 : 1e-14);
}

/* Points in random order: the reference has nothing but entries. */
static void run_large(void)
{
    int k;
    for (k = 0; k < KINDS; k++) {
        if (kinds[k].make == make_triangles) try_full_size(&kinds[k], scaled(10000), SIGNED, 2, 1e-14);
        if (kinds[k].make == make_random) try_full_size(&kinds[k], scaled(10000), POSITIVE, 2, 1e-14);
    }
}

/* ---- saddle points ---------------------------------------------------------------------------------------------- */

static void try_saddle(double weak, int multipliers_last)
{
    const int side = scaled(90), constraints = side * side / 4, most = side * side + constraints;
    signed char *sign = (signed char *)need((size_t)most, 1);
    unsigned char *last = (unsigned char *)need((size_t)most, 1);
    uint64_t random = 3;
    matrix m = make_saddle(side * side, constraints, weak, sign, &random);
    double *b = need_numbers(m.n), *x = need_numbers(m.n);
    fsi_ldlt_desc d = desc_of(NULL, 0, SIGNED, sign);
    const char *how = multipliers_last ? "last" : "free";
    outcome o;
    int i;
    for (i = 0; i < m.n; i++) {
        b[i] = between(&random, -1, 1);
        last[i] = sign[i] < 0;
    }
    if (multipliers_last) d.last = last;
    if (!solve_matrix(&m.a, &d, b, x, &o)) ex_die("a saddle point was refused");
    say(o.first.whole, "1", "saddle_%d_c_%g_%s_residual", m.n, weak, how);
    say(o.refined.rows, "1", "saddle_%d_c_%g_%s_refined_residual_of_a_row", m.n, weak, how);
    say(o.weakest, "1", "saddle_%d_c_%g_%s_weakest_pivot", m.n, weak, how);
    say(abs(o.negative - constraints), "pivots", "saddle_%d_c_%g_%s_wrong_inertia", m.n, weak, how);
    free(sign);
    free(last);
    free(b);
    free(x);
    matrix_free(&m);
}

static void run_saddle(void)
{
    static const double weak[4] = { 1, 1e-3, 1e-6, 1e-9 };
    int k, last;
    for (k = 0; k < 4; k++) for (last = 0; last < 2; last++) try_saddle(weak[k], last);
}

/* ---- growth ----------------------------------------------------------------------------------------------------- */

enum { SIZES = 5 };
typedef struct growth { double rows[SIZES], entries[SIZES], flops[SIZES], analyse[SIZES], factor[SIZES]; } growth;

/* Least squares slope of log y over log x. */
static double slope_of(const double *x, const double *y)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    int k;
    for (k = 0; k < SIZES; k++) {
        const double u = log(x[k]), v = log(fmax(y[k], 1e-9));
        sx += u;
        sy += v;
        sxx += u * u;
        sxy += u * v;
    }
    return (SIZES * sxy - sx * sy) / (SIZES * sxx - sx * sx);
}

static void measure(const char *name, matrix (*make)(int n, uint64_t *random), int rows, int order, growth *g, int k)
{
    fsi_context c = fsi_default_context();
    fsi_ldlt_desc d = desc_of(&c, order, POSITIVE, NULL);
    uint64_t random = 1;
    matrix m = make(rows, &random);
    fsi_ldlt *f = NULL;
    c.now = cpu_now;
    if (fsi_ldlt_create(&f, &m.a, &d) != FSI_OK || fsi_ldlt_factor(f, &m.a) != FSI_OK ||
        fsi_ldlt_factor(f, &m.a) != FSI_OK)
        ex_die(c.error.message);
    g->rows[k] = m.n;
    g->entries[k] = f->stats.entries;
    g->flops[k] = f->stats.flops;
    g->analyse[k] = f->stats.seconds_analyse;
    g->factor[k] = f->stats.seconds_factor;
    say(f->stats.entries / m.n, "numbers", "growth_%s_%s_%d_fill_a_row", name, orders[order], m.n);
    say(f->stats.flops * 1e-9, "Gflop", "growth_%s_%s_%d_arithmetic", name, orders[order], m.n);
    say(f->stats.seconds_analyse, "s", "growth_%s_%s_%d_analysis", name, orders[order], m.n);
    say(f->stats.seconds_factor, "s", "growth_%s_%s_%d_factor_again", name, orders[order], m.n);
    say((double)f->stats.bytes * 1e-6, "MB", "growth_%s_%s_%d_memory", name, orders[order], m.n);
    fsi_ldlt_destroy(f);
    matrix_free(&m);
}

/* In the plane, n log n numbers and n^1.5 operations; in space, n^(4/3) and n^2. */
static void measure_growth(const char *name, matrix (*make)(int n, uint64_t *random), int numbers_a_vertex, int space,
                           int order)
{
    static const int vertices[SIZES] = { 1000, 3163, 10000, 31623, 100000 };
    double fill[SIZES];
    growth g;
    int k;
    for (k = 0; k < SIZES; k++) {
        measure(name, make, numbers_a_vertex * scaled(vertices[k]), order, &g, k);
        fill[k] = space ? pow(g.rows[k], 4.0 / 3) : g.rows[k] * log(g.rows[k] / numbers_a_vertex);
    }
    say(slope_of(g.rows, g.entries), "1", "growth_%s_%s_fill_exponent", name, orders[order]);
    say(slope_of(g.rows, fill), "1", "growth_%s_%s_fill_exponent_theory", name, orders[order]);
    say(slope_of(g.rows, g.flops), "1", "growth_%s_%s_arithmetic_exponent", name, orders[order]);
    say(space ? 2 : 1.5, "1", "growth_%s_%s_arithmetic_exponent_theory", name, orders[order]);
    say(slope_of(g.rows, g.analyse), "1", "growth_%s_%s_analysis_exponent", name, orders[order]);
    say(slope_of(g.rows, g.factor), "1", "growth_%s_%s_factor_exponent", name, orders[order]);
}

static void run_growth(void)
{
    int order;
    for (order = 0; order < 2; order++) {
        measure_growth("shell", make_shell, 3, 0, order);
        measure_growth("poisson_2d", make_grid_2d, 1, 0, order);
        if (order == 0) measure_growth("poisson_3d", make_grid_3d, 1, 1, order);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[4] = {{"kinds", run_kinds}, {"large", run_large}, {"saddle", run_saddle}, {"growth", run_growth}};
    const char *only = NULL;
    int k;
    ex_init(&app, "validate_solve",
            "Sparse factorisations against dense elimination in long double, and their growth.");
    app.res = 100;
    app.res_help = "per cent of the full number of rows";
    app.out = "docs";
    ex_operand(&app, "part", &only, "kinds, large, saddle or growth; none: all");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    for (k = 0; k < 4; k++) if (!only || strcmp(only, parts[k].name) == 0) parts[k].run();
    ex_pool_stop(&app.pool);
    return test__run.faults > 0;
}
