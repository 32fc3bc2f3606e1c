/* barrier_cases.h - random moving pairs of every awkward kind, and the check of fsi_ccd against the reference on them.
   SPDX-License-Identifier: MIT */
#ifndef BARRIER_CASES_H
#define BARRIER_CASES_H

#define REF_REAL long double
#define REF_EPS 1e-19L
#define REF(name) wide_##name
#include "barrier_reference.h"
#undef REF_REAL
#undef REF_EPS
#undef REF
#if defined(__SIZEOF_FLOAT128__) && !defined(__TINYC__)
#define HAS_QUAD 1
__extension__ typedef __float128 quad;
#define REF_REAL quad
#define REF_EPS ((quad)1e-32)
#define REF(name) quad_##name
#include "barrier_reference.h"
#undef REF_REAL
#undef REF_EPS
#undef REF
#else
#define HAS_QUAD 0
#endif

typedef struct query { fsi_pair kind; double x[12], dx[12], thickness, keep; } query;

TEST_FN double between(uint64_t *r, double lo, double hi) { return lo + (hi - lo) * test_random(r); }
TEST_FN double graded(uint64_t *r, double lo, double hi) { return lo * pow(hi / lo, test_random(r)); }
TEST_FN void any_vector(uint64_t *r, double *v, double size)
{
    int k;
    for (k = 0; k < 3; k++) v[k] = between(r, -size, size);
}

/* ---- cases: each fills x and dx of a pair of size about 1 ------------------------------------------------------- */

enum {
    CASE_RANDOM,
    CASE_CLOTH,
    CASE_SMALL_GAP,
    CASE_TINY_GAP,
    CASE_COPLANAR,
    CASE_PARALLEL,
    CASE_DEGENERATE,
    CASE_FAST,
    CASE_FAR,
    CASE_ROLLING,
    CASE_SLIDING,
    CASE_HEAD_ON,
    CASE_LATTICE,
    CASES
};
TEST_FN const char *case_name(int which)
{
    static const char *const names[CASES] = {"random",   "cloth",      "small_gap", "tiny_gap", "coplanar",
                                             "parallel", "degenerate", "fast",      "far",      "rolling",
                                             "sliding",  "head_on",    "lattice"};
    return names[which];
}

TEST_FN void fill_random(query *q, uint64_t *r, double size, double move)
{
    int k;
    for (k = 0; k < 4; k++) {
        any_vector(r, q->x + 3 * k, size);
        any_vector(r, q->dx + 3 * k, move);
    }
}

/* Points of a feature moved so that the pair is about `gap` apart: the first feature is shifted along the normal. */
TEST_FN void set_gap(query *q, double gap)
{
    const int first = q->kind == FSI_EDGE_EDGE ? 2 : 1;
    int turn, i, k;
    for (turn = 0; turn < 3; turn++) {
        fsi_distance at = fsi_distance_between(q->kind, q->x);
        for (i = 0; i < first; i++)
            for (k = 0; k < 3; k++) q->x[3 * i + k] += (gap - at.d) * (at.d > 0 ? at.normal[k] : k == 2);
    }
}

TEST_FN void fill_cloth(query *q, uint64_t *r)
{
    int k;
    double v[3];
    for (k = 0; k < 4; k++) any_vector(r, q->x + 3 * k, 0.5);
    set_gap(q, graded(r, 1e-3, 0.3));
    any_vector(r, v, 0.2);
    for (k = 0; k < 12; k++) q->dx[k] = between(r, -0.1, 0.1) + (k < (q->kind == FSI_EDGE_EDGE ? 6 : 3) ? v[k % 3] : 0);
}

TEST_FN void fill_flat(query *q, uint64_t *r) /* all in one plane, moving in it, or lifted off it a little */
{
    int k;
    const double lift = test_random(r) < 0.5 ? 0 : graded(r, 1e-14, 1e-2),
                 leave = test_random(r) < 0.5 ? 0 : graded(r, 1e-14, 1e-1);
    fill_random(q, r, 1, graded(r, 1e-2, 10));
    for (k = 0; k < 4; k++) {
        q->x[3 * k + 2] = (k == 0 || (k == 1 && q->kind == FSI_EDGE_EDGE)) ? lift : 0;
        q->dx[3 * k + 2] *= leave;
    }
}

TEST_FN void fill_parallel(query *q, uint64_t *r)
{
    int k;
    const double bend = test_random(r) < 0.3 ? 0 : graded(r, 1e-17, 1e-2),
                 turn = test_random(r) < 0.5 ? 0 : graded(r, 1e-6, 1);
    double along[3], off[3];
    fill_random(q, r, 1, graded(r, 1e-3, 3));
    any_vector(r, along, 1);
    any_vector(r, off, graded(r, 1e-6, 1));
    for (k = 0; k < 3; k++) {
        q->x[3 + k] = q->x[k] + along[k];
        q->x[6 + k] = q->x[k] + off[k] + between(r, -1, 1) * along[k];
        q->x[9 + k] = q->x[6 + k] + along[k] * between(r, -1.5, 1.5) + between(r, -bend, bend);
        q->dx[3 + k] = q->dx[k] + turn * between(r, -1, 1);
        q->dx[9 + k] = q->dx[6 + k] + turn * between(r, -1, 1);
    }
}

TEST_FN void fill_degenerate(query *q, uint64_t *r)
{
    const int a = (int)between(r, 0, 4), b = (int)between(r, 0, 4), c = (int)between(r, 0, 4);
    const double thin = test_random(r) < 0.5 ? 0 : graded(r, 1e-17, 1e-3), s = between(r, -1, 2);
    int k;
    fill_random(q, r, 1, graded(r, 1e-3, 3));
    for (k = 0; k < 3; k++) {
        q->x[3 * a + k] = q->x[3 * b + k] * s + q->x[3 * c + k] * (1 - s) + between(r, -thin, thin);
        if (test_random(r) < 0.5) q->dx[3 * a + k] = q->dx[3 * b + k];
    }
}

/* Tiny gap, and a motion that turns one feature about the contact, or rolls it, as long as the pair. */
TEST_FN void fill_rolling(query *q, uint64_t *r)
{
    fsi_distance at;
    double axis[3], foot[3] = { 0, 0, 0 }, shift[3];
    const int first = q->kind == FSI_EDGE_EDGE ? 2 : 1, whole = test_random(r) < 0.5;
    const double speed = graded(r, 1e-2, 3);
    int i, k;
    fill_random(q, r, 1, 0);
    set_gap(q, graded(r, 1e-9, 1e-2));
    at = fsi_distance_between(q->kind, q->x);
    for (i = 0; i < first; i++) for (k = 0; k < 3; k++) foot[k] += at.weight[i] * q->x[3 * i + k];
    any_vector(r, axis, speed);
    any_vector(r, shift, test_random(r) < 0.5 ? 0 : graded(r, 1e-6, 1));
    for (i = whole ? 0 : first; i < 4; i++) for (k = 0; k < 3; k++) {
            const double y = q->x[3 * i + (k + 1) % 3] - foot[(k + 1) % 3],
                         z = q->x[3 * i + (k + 2) % 3] - foot[(k + 2) % 3];
            q->dx[3 * i + k] = axis[(k + 1) % 3] * z - axis[(k + 2) % 3] * y + (i < first ? shift[k] : 0);
    }
}

TEST_FN void fill_sliding(query *q, uint64_t *r) /* across each other at a small gap, hardly approaching */
{
    fsi_distance at;
    double v[3], along = 0, sink;
    int i, k;
    fill_random(q, r, 1, test_random(r) < 0.5 ? 0 : 0.1);
    set_gap(q, graded(r, 1e-9, 1e-2));
    at = fsi_distance_between(q->kind, q->x);
    any_vector(r, v, 2);
    for (k = 0; k < 3; k++) along += v[k] * at.normal[k];
    sink = test_random(r) < 0.3 ? 0 : at.d * between(r, -1, 3);
    for (i = 0; i < (q->kind == FSI_EDGE_EDGE ? 2 : 1); i++)
        for (k = 0; k < 3; k++) q->dx[3 * i + k] += v[k] - (along + sink) * at.normal[k];
}

TEST_FN void fill_head_on(query *q, uint64_t *r)
{
    fsi_distance at;
    const double speed = graded(r, 0.5, 100);
    int i, k;
    fill_random(q, r, 1, test_random(r) < 0.5 ? 0 : 0.01);
    set_gap(q, graded(r, 1e-6, 1));
    at = fsi_distance_between(q->kind, q->x);
    for (i = 0; i < (q->kind == FSI_EDGE_EDGE ? 2 : 1); i++)
        for (k = 0; k < 3; k++) q->dx[3 * i + k] -= speed * at.d * at.normal[k];
}

TEST_FN void fill_lattice(query *q, uint64_t *r) /* small integers: touching, coplanar, parallel and degenerate by
                                                    chance, exactly */
{
    const int n = 2 + (int)between(r, 0, 4);
    int k;
    for (k = 0; k < 12; k++) {
        q->x[k] = floor(between(r, 0, n));
        q->dx[k] = floor(between(r, -n, n + 1));
    }
}

TEST_FN void fill_case(query *q, int which, uint64_t *r)
{
    double offset[3] = { 0, 0, 0 };
    const double scale = test_random(r) < 0.5 ? 1 : graded(r, 1e-6, 1e6);
    int k;
    memset(q->x, 0, sizeof q->x);
    memset(q->dx, 0, sizeof q->dx);
    if (which == CASE_CLOTH) fill_cloth(q, r);
    else if (which == CASE_COPLANAR) fill_flat(q, r);
    else if (which == CASE_PARALLEL) fill_parallel(q, r);
    else if (which == CASE_DEGENERATE) fill_degenerate(q, r);
    else if (which == CASE_ROLLING) fill_rolling(q, r);
    else if (which == CASE_SLIDING) fill_sliding(q, r);
    else if (which == CASE_HEAD_ON) fill_head_on(q, r);
    else if (which == CASE_LATTICE) fill_lattice(q, r);
    else fill_random(q, r, 1, which == CASE_FAST ? graded(r, 10, 1e6) : graded(r, 1e-3, 2));
    if (which == CASE_SMALL_GAP) set_gap(q, graded(r, 1e-6, 1e-1));
    if (which == CASE_TINY_GAP) set_gap(q, graded(r, 1e-13, 1e-6));
    if (which == CASE_FAR) any_vector(r, offset, graded(r, 1e2, 1e8));
    for (k = 0; k < 12; k++) {
        q->x[k] = q->x[k] * scale + offset[k % 3] * scale;
        q->dx[k] *= scale;
    }
    q->thickness = 0;
    q->keep = test_random(r) < 0.7 ? 0.1 : between(r, 0.01, 0.9);
    if (test_random(r) < 0.3) {
        fsi_distance at = fsi_distance_between(q->kind, q->x);
        q->thickness = at.d * (test_random(r) < 0.5 ? between(r, 0, 1.05) : 1 - graded(r, 1e-6, 1));
        if (q->thickness < 0) q->thickness = 0;
    }
}

/* ---- the check -------------------------------------------------------------------------------------------------- */

typedef struct tally {
    long queries, moving, exact, misses, stalls, unresolved, false_positives, cut_short;
    double tightness, smallest_tightness; /* mean and least t / the true time at which the gap is keep gap(0), where it
                                             is ever */
} tally;

TEST_FN double pair_size(const query *q)
{
    const int first = q->kind == FSI_EDGE_EDGE ? 2 : 1, n = fsi_pair_points(q->kind);
    double m = 0;
    int i, j, k;
    for (i = 0; i < first; i++)
        for (j = first; j < n; j++)
            for (k = 0; k < 3; k++) m = fmax(m, fabs(q->x[3 * i + k] - q->x[3 * j + k]));
    return m;
}

/* Two times by the reference: when the gap falls below a part `late` less than keep times the first gap, and below 1.25
   times keep. */
TEST_FN void reference_times(const query *q, double *gap0, double late, double *too_late, double *early)
{
    const double rough = (double)sqrtl((long double)wide_distance2_at(q->kind, q->x, q->dx, 0)), size = pair_size(q);
    double reach = 0;
    int k;
    for (k = 0; k < 12; k++) reach = fmax(reach, fabs(q->dx[k]));
#if HAS_QUAD
    if (rough * q->keep < 1e-4 * (size + reach) || rough - q->thickness < 1e-3 * rough || late < 1e-9) {
        quad d = quad_root(quad_distance2_at(q->kind, q->x, q->dx, 0)), gap = d - (quad)q->thickness,
             g = (quad)q->keep * gap;
        *gap0 = (double)gap;
        *too_late =
            gap > 0 ? (double)quad_first_below(q->kind, q->x, q->dx, (quad)q->thickness + g * (1 - (quad)late)) : 0;
        *early = gap > 0 ? (double)quad_first_below(q->kind, q->x, q->dx, (quad)q->thickness + g * (quad)1.25) : 0;
        return;
    }
#endif
    {
        long double d = wide_root(wide_distance2_at(q->kind, q->x, q->dx, 0)), gap = d - (long double)q->thickness,
                    g = (long double)q->keep * gap;
        *gap0 = (double)gap;
        *too_late = gap > 0 ? (double)wide_first_below(q->kind, q->x, q->dx,
                                                       (long double)q->thickness + g * (1 - (long double)late))
                            : 0;
        *early = gap > 0 ? (double)wide_first_below(q->kind, q->x, q->dx, (long double)q->thickness + g * 1.25L) : 0;
    }
}

TEST_FN void show_query(const char *what, const query *q, double t, double gap0, double too_late, double early)
{
    int k;
    printf("%s kind %d thickness %.17g keep %.17g t %.17g gap0 %.17g too late %.17g early %.17g\n", what, (int)q->kind,
           q->thickness, q->keep, t, gap0, too_late, early);
    for (k = 0; k < 12; k++) printf("%.17g%s", q->x[k], k < 11 ? ", " : "\n");
    for (k = 0; k < 12; k++) printf("%.17g%s", q->dx[k], k < 11 ? ", " : "\n");
}

/* Does nothing come near in an obvious way? Separated by more than the first distance along an axis, all the time. */
TEST_FN int is_obvious(const query *q)
{
    const int first = q->kind == FSI_EDGE_EDGE ? 2 : 1, n = fsi_pair_points(q->kind);
    const double d = sqrt((double)wide_distance2_at(q->kind, q->x, q->dx, 0));
    int i, k;
    for (k = 0; k < 3; k++) {
        double lo[2] = { 1e300, 1e300 }, hi[2] = { -1e300, -1e300 };
        for (i = 0; i < n; i++) {
            const double a = q->x[3 * i + k], b = a + q->dx[3 * i + k];
            lo[i >= first] = fmin(lo[i >= first], fmin(a, b));
            hi[i >= first] = fmax(hi[i >= first], fmax(a, b));
        }
        if (lo[0] - hi[1] > d * 0.99 || lo[1] - hi[0] > d * 0.99) return 1;
    }
    return 0;
}

TEST_FN void check_query(const query *q, tally *s,
                         double (*ccd)(fsi_pair, const double *, const double *, double, double), int show)
{
    const double t = ccd(q->kind, q->x, q->dx, q->thickness, q->keep);
    double gap0, too_late, early;
    s->queries++;
    if (t >= 1 && is_obvious(q)) return;
    reference_times(q, &gap0, 1e-7, &too_late, &early);
    s->moving++;
    if (!(gap0 > 2e-14 / (1 - q->keep) * pair_size(q))) {
        s->unresolved++;
        if (t > 0 && !(gap0 > 0)) too_late = 0;
    } else if (!(t > 0)) {
        if (show && s->stalls < 3) show_query("stall", q, t, gap0, too_late, early);
        s->stalls++;
        return;
    }
    if (!(t <= too_late)) {
        if (show && s->misses < 3) show_query("miss", q, t, gap0, too_late, early);
        s->misses++;
        return;
    }
    if (!(gap0 > 2e-14 / (1 - q->keep) * pair_size(q))) return;
    if (t < 1 && early > 1) {
        if (show > 1) show_query("false positive", q, t, gap0, too_late, early);
        s->false_positives++;
    }
    if (t < 1 && early <= 1 && t < early * (1 - 1e-6) && t < early - 1e-12) {
        if (show > 1) show_query("cut short", q, t, gap0, too_late, early);
        s->cut_short++;
    }
    if (too_late <= 1) {
        const double ratio = too_late > 0 ? t / too_late : 1;
        s->exact++;
        s->tightness += ratio;
        if (ratio < s->smallest_tightness || s->exact == 1) s->smallest_tightness = ratio;
    }
}

#endif
