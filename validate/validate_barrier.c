/* validate_barrier.c - ten million sweeps of pairs by fsi_barrier.h, of every awkward kind, against first times in
   higher precision; how accurate
   distances are, how close the projected Hessians.
   SPDX-License-Identifier: MIT

   The cases are those of barrier_cases.h: random, cloth, gaps down to 1e-13 of the size, coplanar, parallel,
   degenerate, a million times faster than long, far from the origin, rolling, sliding, head-on, on a lattice; all sizes
   from 1e-6 to 1e6, a third with a thickness. Prints lines `key value unit`. --res 50 halves the number; a word
   (sweeps, distances, hessians) runs one part, the name of a case that case. */
#define FSI_IMPLEMENTATION
#include "../examples/kit/kit.h"
#include "../fsi_barrier.h"
#include "../tests/kit/test.h"
#include "../tests/kit/barrier_cases.h"
#include "validate.h"

static const char *only = "";

static const char *const kinds[4] = { "point_point", "point_edge", "point_triangle", "edge_edge" };

/* ---- sweeps ----------------------------------------------------------------------------------------------------- */

static void add_tally(tally *all, const tally *s)
{
    all->queries += s->queries;
    all->moving += s->moving;
    all->exact += s->exact;
    all->misses += s->misses;
    all->stalls += s->stalls;
    all->unresolved += s->unresolved;
    all->false_positives += s->false_positives;
    all->cut_short += s->cut_short;
    all->tightness += s->tightness;
}

static void say_tally(const tally *s, const char *name)
{
    say((double)s->queries, "1", "sweeps_%s", name);
    say((double)s->misses, "1", "sweeps_%s_misses", name);
    say((double)s->stalls, "1", "sweeps_%s_stalls", name);
    say((double)s->unresolved, "1", "sweeps_%s_touching_at_first", name);
    say((double)s->false_positives / (double)s->moving, "1", "sweeps_%s_stopped_though_never_near", name);
    say((double)s->cut_short / (double)s->moving, "1", "sweeps_%s_stopped_early", name);
    say(s->tightness / (double)(s->exact > 0 ? s->exact : 1), "1", "sweeps_%s_mean_time_over_true_time", name);
}

static void run_sweeps(void)
{
    tally all, of_kind[4];
    int c, kind, i;
    memset(&all, 0, sizeof all);
    memset(of_kind, 0, sizeof of_kind);
    for (c = 0; c < CASES; c++) {
        tally of_case;
        if (!strstr(case_name(c), only) && strcmp(only, "sweeps")) continue;
        memset(&of_case, 0, sizeof of_case);
        for (kind = 0; kind < 4; kind++) {
            uint64_t r = (uint64_t)(c * 4 + kind) * 7919 + 12345;
            tally s;
            memset(&s, 0, sizeof s);
            for (i = 0; i < scaled(192400); i++) {
                query q;
                q.kind = (fsi_pair)kind;
                fill_case(&q, c, &r);
                check_query(&q, &s, fsi_ccd, 1);
            }
            add_tally(&of_case, &s);
            add_tally(&of_kind[kind], &s);
        }
        say_tally(&of_case, case_name(c));
        add_tally(&all, &of_case);
    }
    for (kind = 0; kind < 4 && all.queries > 0; kind++) say_tally(&of_kind[kind], kinds[kind]);
    if (all.queries > 0) say_tally(&all, "all");
    if (all.misses + all.stalls > 0) exit(1);
}

/* ---- distances -------------------------------------------------------------------------------------------------- */

/* The distance as it is, to more digits than a double has. Edges that are parallel but for the rounding of their
   coordinates have a normal of 1e-16 of their size, of which long double leaves three digits, and a distance that is
   off by 7e-5: so in quad. */
static double true_distance(const query *q)
{
#if HAS_QUAD
    return (double)quad_root(quad_distance2_at(q->kind, q->x, q->dx, 0));
#else
    return (double)sqrtl(wide_distance2_at(q->kind, q->x, q->dx, 0));
#endif
}

static void run_distances(void)
{
    int c, kind, i;
    for (c = 0; c < CASES; c++) {
        uint64_t r = (uint64_t)c + 777;
        double worst = 0;
        for (kind = 0; kind < 4; kind++) for (i = 0; i < scaled(100000); i++) {
            query q;
            q.kind = (fsi_pair)kind;
            fill_case(&q, c, &r);
            worst =
                fmax(worst, fabs(fsi_distance_between(q.kind, q.x).d - true_distance(&q)) / (pair_size(&q) + 1e-300));
        }
        say(worst, "pair_sizes", "distance_%s_largest_error", case_name(c));
    }
}

/* ---- Hessians --------------------------------------------------------------------------------------------------- */

/* The positive part of a symmetric n x n matrix, by Jacobi rotations. */
static void positive_part(double *a, int n)
{
    double v[144], e[12];
    int i, j, k, sweep;
    for (i = 0; i < n * n; i++) v[i] = i % (n + 1) == 0;
    for (sweep = 0; sweep < 30; sweep++) for (i = 0; i < n; i++) for (j = i + 1; j < n; j++) {
        const double p = a[i * n + j];
        double theta, t, c, s;
        if (fabs(p) < 1e-18 * (fabs(a[i * n + i]) + fabs(a[j * n + j]))) continue;
        theta = (a[j * n + j] - a[i * n + i]) / (2 * p);
        t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
        c = 1 / sqrt(t * t + 1);
        s = t * c;
        for (k = 0; k < n; k++) {
            const double x = a[k * n + i], y = a[k * n + j];
            a[k * n + i] = c * x - s * y;
            a[k * n + j] = s * x + c * y;
        }
        for (k = 0; k < n; k++) {
            const double x = a[i * n + k], y = a[j * n + k];
            a[i * n + k] = c * x - s * y;
            a[j * n + k] = s * x + c * y;
        }
        for (k = 0; k < n; k++) {
            const double x = v[i * n + k], y = v[j * n + k];
            v[i * n + k] = c * x - s * y;
            v[j * n + k] = s * x + c * y;
        }
    }
    for (i = 0; i < n; i++) e[i] = fmax(a[i * n + i], 0);
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            for (a[i * n + j] = 0, k = 0; k < n; k++) a[i * n + j] += e[k] * v[k * n + i] * v[k * n + j];
}

/* How far the projected Hessian is from the positive part of the exact one, Frobenius norm, mean over pairs, for a
   range of `range` edge lengths. */
static void say_closeness(int kind, double range, double parallel, const char *name)
{
    uint64_t r = 99;
    double sum = 0;
    const int n = 3 * fsi_pair_points((fsi_pair)kind), count = scaled(2000);
    int i, k;
    for (i = 0; i < count; i++) {
        query q;
        fsi_contact c;
        double h[144], exact[144], off = 0, size = 0;
        q.kind = c.kind = (fsi_pair)kind;
        if (parallel > 0) fill_parallel(&q, &r);
        else fill_random(&q, &r, 0.5, 0);
        set_gap(&q, range * between(&r, 0.1, 0.9));
        c.range = range;
        c.thickness = 0;
        c.parallel = parallel;
        fsi_contact_energy(&c, q.x, NULL, h, FSI_HESSIAN_PROJECTED);
        fsi_contact_energy(&c, q.x, NULL, exact, FSI_HESSIAN_EXACT);
        positive_part(exact, n);
        for (k = 0; k < n * n; k++) {
            off += (h[k] - exact[k]) * (h[k] - exact[k]);
            size += exact[k] * exact[k];
        }
        sum += size > 0 ? sqrt(off / size) : 0;
    }
    say(sum / count, "1", "hessian_%s%s_range_%g_off_the_positive_part", kinds[kind], name, range);
}

static void run_hessians(void)
{
    static const double ranges[3] = { 0.001, 0.01, 0.1 };
    int kind, k;
    for (kind = 0; kind < 4; kind++) for (k = 0; k < 3; k++) say_closeness(kind, ranges[k], 0, "");
    for (k = 0; k < 3; k++) say_closeness(3, ranges[k], 1e-3, "_mollified");
}

int main(int argc, char **argv)
{
    const char *part = NULL;
    ex_init(&app, "validate_barrier", "Ten million sweeps of pairs against first times in higher precision.");
    app.res = 100;
    app.res_help = "per cent of the full number of pairs";
    app.out = "docs";
    ex_operand(&app, "part", &part, "sweeps, distances, hessians, or a case of the sweeps; none: all");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    only = part ? part : "";
    if (strcmp(only, "distances") && strcmp(only, "hessians")) run_sweeps();
    if (!part || !strcmp(only, "distances")) run_distances();
    if (!part || !strcmp(only, "hessians")) run_hessians();
    ex_pool_stop(&app.pool);
    return 0;
}
