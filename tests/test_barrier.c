/* test_barrier.c - barrier, distances, contact energies and friction of fsi_barrier.h: derivatives against
   differences, distances against
   a slow reference in higher precision, semidefinite Hessians, bad input.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_barrier.h"
#include "kit/barrier_cases.h"

enum { STATES = TEST_SLOWED ? 300 : 3000 };

/* ---- differences ------------------------------------------------------------------------------------------------ */

/* The derivative to number i of a function that fills m numbers, by central differences of fourth order; 0 when a
   region changes nearby. */
typedef int function(void *user, const double *x, double *out);

static int difference(function *f, void *user, const double *x, int n, int i, double step, int m, double *out)
{
    static const double at[4] = { -2, -1, 1, 2 }, weight[4] = { 1.0 / 12, -8.0 / 12, 8.0 / 12, -1.0 / 12 };
    double y[12], value[12];
    int k, j, same = 1;
    for (j = 0; j < m; j++) out[j] = 0;
    for (k = 0; k < 4; k++) {
        for (j = 0; j < n; j++) y[j] = x[j];
        y[i] = x[i] + at[k] * step;
        same &= f(user, y, value);
        for (j = 0; j < m; j++) out[j] += weight[k] * value[j] / step;
    }
    return same;
}

/* Largest deviation of a matrix from differences of a gradient, or of a gradient (m = 1), over its largest number. */
static double deviation(function *f, void *user, const double *x, int n, int m, const double *want, double step)
{
    double worst = 0, most = 1e-300, d[12];
    int i, j;
    for (i = 0; i < n * m; i++) most = fmax(most, fabs(want[i]));
    for (i = 0; i < n; i++) {
        if (!difference(f, user, x, n, i, step, m, d)) return 0;
        for (j = 0; j < m; j++) worst = fmax(worst, fabs(d[j] - want[i * m + j]) / most);
    }
    return worst;
}

typedef struct subject {
    fsi_pair kind;
    int region;
    fsi_contact contact;
    fsi_friction friction;
    const double *x0;
    double slip;
} subject;

static int distance_of(void *user, const double *x, double *out)
{
    subject *s = (subject *)user;
    fsi_distance at = fsi_distance_between(s->kind, x);
    *out = at.d;
    return at.region == s->region;
}

static int energy_of(void *user, const double *x, double *out)
{
    subject *s = (subject *)user;
    *out = fsi_contact_energy(&s->contact, x, NULL, NULL, FSI_HESSIAN_EXACT);
    return fsi_distance_between(s->kind, x).region == s->region;
}

static int gradient_of(void *user, const double *x, double *out)
{
    subject *s = (subject *)user;
    fsi_contact_energy(&s->contact, x, out, NULL, FSI_HESSIAN_EXACT);
    return fsi_distance_between(s->kind, x).region == s->region;
}

static int friction_of(void *user, const double *x, double *out)
{
    subject *s = (subject *)user;
    *out = fsi_friction_energy(&s->friction, x, s->x0, s->slip, NULL, NULL, FSI_HESSIAN_EXACT);
    return 1;
}

static int friction_gradient_of(void *user, const double *x, double *out)
{
    subject *s = (subject *)user;
    fsi_friction_energy(&s->friction, x, s->x0, s->slip, out, NULL, FSI_HESSIAN_EXACT);
    return 1;
}

/* Is a symmetric matrix positive semidefinite? Cholesky's pivots of A + tiny I. */
static int is_semidefinite(const double *h, int n, double tiny)
{
    double a[144], most = 0;
    int i, j, k;
    for (i = 0; i < n * n; i++) most = fmax(most, fabs(h[i]));
    for (i = 0; i < n * n; i++) a[i] = h[i] + (i % (n + 1) == 0 ? tiny * most : 0);
    for (k = 0; k < n; k++) {
        if (!(a[k * n + k] >= 0)) return 0;
        for (i = k + 1; i < n; i++)
            for (j = k + 1; j < n; j++)
                if (a[k * n + k] > 0) a[i * n + j] -= a[i * n + k] * a[k * n + j] / a[k * n + k];
    }
    return 1;
}

static double asymmetry(const double *h, int n)
{
    double worst = 0, most = 1e-300;
    int i, j;
    for (i = 0; i < n; i++) for (j = 0; j < n; j++) {
        worst = fmax(worst, fabs(h[i * n + j] - h[j * n + i]));
        most = fmax(most, fabs(h[i * n + j]));
    }
    return worst / most;
}

/* A pair of size 1 and a gap of 0.1 to 0.4, some with degenerate or parallel features. */
static void some_state(query *q, fsi_pair kind, uint64_t *r)
{
    const double which = test_random(r);
    q->kind = kind;
    if (which < 0.6) fill_random(q, r, 1, 0);
    else if (which < 0.8) fill_parallel(q, r);
    else fill_flat(q, r);
    set_gap(q, between(r, 0.1, 0.4));
}

/* ---- barrier ---------------------------------------------------------------------------------------------------- */

static void test_barrier_has_two_continuous_derivatives(void)
{
    const double range = 0.3;
    double d, h = 1e-5;
    for (d = 0.001; d < 0.35; d += 0.000917) {
        fsi_barrier b = fsi_barrier_at(d, range), lo = fsi_barrier_at(d - h * d, range),
                    hi = fsi_barrier_at(d + h * d, range);
        CHECK_NEAR((hi.value - lo.value) / (2 * h * d), b.slope, 1e-7 * (fabs(b.slope) + 0.1));
        CHECK_NEAR((hi.slope - lo.slope) / (2 * h * d), b.curvature, 1e-7 * (b.curvature + 100));
        CHECK(b.value >= 0 && b.slope <= 0 && b.curvature >= 0);
    }
    CHECK_NEAR(fsi_barrier_at(0.5 * range, range).slope * range, -1.1931471805599454, 1e-14);
    CHECK_NEAR(fsi_barrier_at(0.5 * range, range).curvature * range * range, 6.386294361119891, 1e-13);
    CHECK(fsi_barrier_at(range, range).value == 0 && fsi_barrier_at(range * (1 - 1e-9), range).curvature < 1e-5);
}

static void test_barrier_is_infinite_at_contact_and_safe_for_bad_input(void)
{
    const double bad[4] = { 0, -1, test_nan(), -test_inf() };
    int k;
    for (k = 0; k < 4; k++) {
        fsi_barrier b = fsi_barrier_at(bad[k], 0.1), c = fsi_barrier_at(0.05, bad[k]);
        CHECK(b.value == test_inf() && b.slope == -test_inf() && b.curvature == test_inf());
        CHECK(c.value == 0 && c.slope == 0 && c.curvature == 0);
    }
    CHECK(fsi_barrier_at(test_inf(), 0.1).value == 0);
    CHECK(fsi_barrier_at(1e-320, 0.1).value > 700);
}

/* ---- distances -------------------------------------------------------------------------------------------------- */

/* Weights are barycentric, and d * normal is what they span. */
static void check_distance(const query *q, double size, double tolerance)
{
    const fsi_distance at = fsi_distance_between(q->kind, q->x);
    const int n = fsi_pair_points(q->kind), first = q->kind == FSI_EDGE_EDGE ? 2 : 1;
    const double ref = (double)sqrtl(wide_distance2_at(q->kind, q->x, q->dx, 0));
    double sum[2] = { 0, 0 }, off = 0;
    int i, k;
    if (!CHECK_NEAR(at.d, ref, tolerance * size)) show_query("distance", q, 0, at.d, ref, 0);
    for (i = 0; i < 4; i++) {
        const double w = i < first ? at.weight[i] : -at.weight[i];
        CHECK(w >= -1e-15 && w <= 1 + 1e-15 && (i < n || w == 0));
        CHECK((at.region >> i & 1) || fabs(w) <= 1e-15);
        sum[i >= first] += w;
    }
    CHECK_NEAR(sum[0], 1, 1e-15);
    CHECK_NEAR(sum[1], 1, 1e-15);
    for (k = 0; k < 3; k++) {
        double r = 0;
        for (i = 0; i < n; i++) r += at.weight[i] * (q->x[3 * i + k] - q->x[3 * (n - 1) + k]);
        off = fmax(off, fabs(r - at.d * at.normal[k]));
    }
    CHECK(off <= tolerance * 10 * size);
    if (at.d > 0)
        CHECK_NEAR(at.normal[0] * at.normal[0] + at.normal[1] * at.normal[1] + at.normal[2] * at.normal[2], 1, 1e-14);
}

static void test_distances_agree_with_a_slow_reference(void)
{
    uint64_t r = 5;
    int c, kind, i;
    for (c = 0; c < CASES; c++) for (kind = 0; kind < 4; kind++) for (i = 0; i < STATES; i++) {
        query q;
        q.kind = (fsi_pair)kind;
        fill_case(&q, c, &r);
        check_distance(&q, pair_size(&q), 1e-14);
    }
}

static void test_distances_of_extreme_sizes(void)
{
    static const double sizes[6] = { 1e-290, 1e-200, 1e-80, 1e80, 1e100, 1e140 };
    uint64_t r = 6;
    int k, s, kind;
    for (kind = 0; kind < 4; kind++) for (s = 0; s < 6; s++) {
        query q;
        fsi_distance a, b;
        q.kind = (fsi_pair)kind;
        fill_random(&q, &r, 1, 0);
        a = fsi_distance_between(q.kind, q.x);
        for (k = 0; k < 12; k++) q.x[k] *= sizes[s];
        b = fsi_distance_between(q.kind, q.x);
        CHECK_NEAR(b.d / sizes[s], a.d, 1e-13);
        CHECK_NEAR(b.normal[0], a.normal[0], 1e-12);
    }
}

static void test_features_that_touch_have_distance_zero(void)
{
    static const double x[12] = {0.25, 0.25, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0},
                        cross[12] = {-1, 0, 0, 1, 0, 0, 0, -1, 0, 0, 1, 0};
    double zero[12] = { 0 };
    fsi_distance at = fsi_distance_between(FSI_POINT_TRIANGLE, x);
    int k;
    CHECK(at.d == 0 && at.normal[0] == 0 && at.normal[1] == 0 && at.normal[2] == 0);
    CHECK(fsi_distance_between(FSI_EDGE_EDGE, cross).d == 0);
    for (k = 0; k < 4; k++) CHECK(fsi_distance_between((fsi_pair)k, zero).d == 0);
}

static void test_derivatives_of_distances(void)
{
    uint64_t r = 7;
    int kind, i, compared = 0;
    double worst = 0;
    for (kind = 0; kind < 4; kind++) for (i = 0; i < STATES; i++) {
        const int n = 3 * fsi_pair_points((fsi_pair)kind);
        double g[12];
        query q;
        subject s;
        fsi_distance at;
        int j;
        some_state(&q, (fsi_pair)kind, &r);
        at = fsi_distance_between(q.kind, q.x);
        s.kind = q.kind;
        s.region = at.region;
        for (j = 0; j < 12; j++) g[j] = at.weight[j / 3] * at.normal[j % 3];
        worst = fmax(worst, deviation(distance_of, &s, q.x, n, 1, g, 1e-4));
        compared++;
    }
    CHECK(compared > 4 * STATES - 1);
    CHECK_NEAR(worst, 0, 1e-6);
}

/* ---- contact ---------------------------------------------------------------------------------------------------- */

static void test_derivatives_of_contact(void)
{
    uint64_t r = 8;
    int kind, i;
    double worst = 0, worst_second = 0;
    for (kind = 0; kind < 4; kind++) for (i = 0; i < STATES; i++) {
        const int n = 3 * fsi_pair_points((fsi_pair)kind);
        double g[12], h[144];
        query q;
        subject s;
        some_state(&q, (fsi_pair)kind, &r);
        s.kind = s.contact.kind = q.kind;
        s.region = fsi_distance_between(q.kind, q.x).region;
        s.contact.range = 0.6;
        s.contact.thickness = i % 3 == 0 ? 0.05 : 0;
        s.contact.parallel = kind == FSI_EDGE_EDGE && i % 2 ? graded(&r, 0.01, 10) : 0;
        fsi_contact_energy(&s.contact, q.x, g, h, FSI_HESSIAN_EXACT);
        CHECK(asymmetry(h, n) < 1e-13);
        if (!(fabs(h[0]) < 1e4)) continue;
        worst = fmax(worst, deviation(energy_of, &s, q.x, n, 1, g, 1e-4));
        worst_second = fmax(worst_second, deviation(gradient_of, &s, q.x, n, n, h, 2e-5));
    }
    CHECK_NEAR(worst, 0, 1e-6);
    CHECK_NEAR(worst_second, 0, 1e-6);
}

static void test_projected_hessians_are_semidefinite_and_close(void)
{
    uint64_t r = 9;
    double off = 0, size = 0;
    int kind, i, j;
    for (kind = 0; kind < 4; kind++) for (i = 0; i < STATES; i++) {
        const int n = 3 * fsi_pair_points((fsi_pair)kind);
        double h[144], exact[144];
        query q;
        fsi_contact c;
        fsi_distance at;
        some_state(&q, (fsi_pair)kind, &r);
        set_gap(&q, graded(&r, 1e-6, 0.05));
        at = fsi_distance_between(q.kind, q.x);
        c.kind = q.kind;
        c.range = at.d * between(&r, 1.1, 10);
        c.thickness = i % 3 == 0 ? at.d * 0.5 : 0;
        c.parallel = i % 2 ? graded(&r, 1e-4, 10) : 0;
        fsi_contact_energy(&c, q.x, NULL, h, FSI_HESSIAN_PROJECTED);
        CHECK(is_semidefinite(h, n, 1e-12));
        CHECK(asymmetry(h, n) < 1e-14);
        if (c.parallel > 0 || at.d > 0.3 * c.range) continue; /* strong contact: close to the exact one, in the mean */
        fsi_contact_energy(&c, q.x, NULL, exact, FSI_HESSIAN_EXACT);
        for (j = 0; j < n; j++) { /* along the push */
            int k;
            for (k = 0; k < n; k++) {
                off += (h[j * n + k] - exact[j * n + k]) * at.weight[j / 3] * at.normal[j % 3] * at.weight[k / 3] *
                       at.normal[k % 3] * at.d * at.d;
                size += exact[j * n + k] * at.weight[j / 3] * at.normal[j % 3] * at.weight[k / 3] * at.normal[k % 3] *
                        at.d * at.d;
            }
        }
    }
    CHECK_NEAR(off / size, 0, 0.02);
}

static void test_push_is_the_slope_of_the_energy(void)
{
    uint64_t r = 10;
    int i;
    for (i = 0; i < STATES; i++) {
        double g[12], along = 0;
        query q;
        fsi_contact c;
        fsi_distance at;
        int k;
        some_state(&q, FSI_POINT_TRIANGLE, &r);
        c.kind = q.kind;
        c.range = 0.5;
        c.thickness = 0;
        c.parallel = 0;
        fsi_contact_energy(&c, q.x, g, NULL, FSI_HESSIAN_EXACT);
        CHECK(fsi_contact_push(&c, q.x, &at) >= 0);
        for (k = 0; k < 3; k++) along -= g[k] * at.normal[k];
        CHECK_NEAR(fsi_contact_push(&c, q.x, NULL), along, 1e-12 * (1 + along));
    }
}

/* Where edges turn parallel the energy of a pair has a kink; its mollified one fades out there, with its slope. */
static void test_mollifier_fades_parallel_edges_out(void)
{
    double x[12] = { -1, 0, 0,   1, 0, 0,   -1, 0, 0.1,   1, 0, 0.1 }, g[12], h[144];
    fsi_contact c;
    int k;
    c.kind = FSI_EDGE_EDGE;
    c.range = 0.2;
    c.thickness = 0;
    c.parallel = 1e-3 * 16;
    CHECK(fsi_contact_energy(&c, x, g, h, FSI_HESSIAN_PROJECTED) == 0);
    for (k = 0; k < 12; k++) CHECK_NEAR(g[k], 0, 1e-14);
    x[7] = -0.5;
    x[10] = 0.5;
    c.parallel = 0;
    CHECK_NEAR(fsi_contact_energy(&c, x, NULL, NULL, FSI_HESSIAN_EXACT), fsi_barrier_at(0.1, 0.2).value, 1e-15);
    c.parallel = 1e-3 * 16; /* far from parallel: no change */
    CHECK_NEAR(fsi_contact_energy(&c, x, NULL, NULL, FSI_HESSIAN_EXACT), fsi_barrier_at(0.1, 0.2).value, 1e-15);
}

static void test_contact_of_bad_input_is_infinite(void)
{
    double x[12] = { 0.2, 0.2, 0.05,   0, 0, 0,   1, 0, 0,   0, 1, 0 }, g[12], h[144];
    fsi_contact c, d;
    fsi_distance at;
    int k, j;
    c.kind = FSI_POINT_TRIANGLE;
    c.range = 0.1;
    c.thickness = 0.05;
    c.parallel = 0;
    for (k = 0; k < 7; k++) {
        double keep = x[5];
        d = c;
        if (k == 1) x[5] = test_nan();
        if (k == 2) x[5] = -test_inf();
        if (k == 3) d.kind = (fsi_pair)17;
        if (k == 4) d.range = test_nan();
        if (k == 5) d.thickness = test_nan();
        for (j = 0; j < 12; j++) g[j] = 7;
        CHECK(fsi_contact_energy(k == 6 ? NULL : &d, k == 6 ? NULL : x, g, h, FSI_HESSIAN_PROJECTED) == test_inf());
        for (j = 0; j < 12 && k != 3 && k != 6; j++) CHECK(g[j] == 0 && h[13 * j] == 0);
        CHECK(fsi_contact_push(k == 6 ? NULL : &d, k == 6 ? NULL : x, &at) == test_inf());
        x[5] = keep;
    }
    c.thickness = 0;
    c.range = 0.04;
    CHECK(fsi_contact_energy(&c, x, g, h, FSI_HESSIAN_EXACT) == 0 && g[2] == 0 && h[26] == 0);
    CHECK(fsi_distance_between(FSI_POINT_TRIANGLE, NULL).d == 0 && fsi_distance_between((fsi_pair)-1, x).region == 0);
    for (k = 0; k < 12; k++) {
        double keep = x[k];
        x[k] = k % 2 ? test_nan() : test_inf();
        CHECK(fsi_distance_between(FSI_POINT_TRIANGLE, x).d == 0);
        x[k] = keep;
    }
}

/* ---- friction --------------------------------------------------------------------------------------------------- */

static void test_derivatives_of_friction(void)
{
    uint64_t r = 11;
    int kind, i;
    double worst = 0, worst_second = 0;
    for (kind = 0; kind < 4; kind++) for (i = 0; i < STATES / 3; i++) {
        const int n = 3 * fsi_pair_points((fsi_pair)kind);
        double g[12], h[144], x[12];
        query q;
        subject s;
        fsi_distance at;
        int k;
        some_state(&q, (fsi_pair)kind, &r);
        at = fsi_distance_between(q.kind, q.x);
        fsi_friction_lag(&s.friction, q.kind, &at, between(&r, 0.1, 10));
        s.x0 = q.x;
        s.slip = graded(&r, 0.05, 5);
        for (k = 0; k < 12; k++) x[k] = q.x[k] + between(&r, -0.5, 0.5);
        fsi_friction_energy(&s.friction, x, q.x, s.slip, g, h, FSI_HESSIAN_EXACT);
        CHECK(is_semidefinite(h, n, 1e-13) && asymmetry(h, n) < 1e-14);
        worst = fmax(worst, deviation(friction_of, &s, x, n, 1, g, 1e-5));
        worst_second = fmax(worst_second, deviation(friction_gradient_of, &s, x, n, n, h, 1e-7) > 1e-5);
    }
    CHECK_NEAR(worst, 0, 1e-6);
    CHECK(worst_second == 0);
}

static void test_friction_is_coulombs_when_it_slips(void)
{
    double x0[12] = { 0.2, 0.2, 0.05,   0, 0, 0,   1, 0, 0,   0, 1, 0 }, x[12], g[12], sum[3] = { 0, 0, 0 };
    fsi_distance at = fsi_distance_between(FSI_POINT_TRIANGLE, x0);
    fsi_friction f;
    int k;
    fsi_friction_lag(&f, FSI_POINT_TRIANGLE, &at, 3);
    memcpy(x, x0, sizeof x);
    x[0] += 0.03;
    x[1] += 0.04;
    x[2] += 7; /* along the normal: no friction */
    CHECK_NEAR(fsi_friction_energy(&f, x, x0, 0.01, g, NULL, FSI_HESSIAN_EXACT), 3 * 0.05, 1e-14);
    CHECK_NEAR(g[0], 3 * 0.6, 1e-13);
    CHECK_NEAR(g[1], 3 * 0.8, 1e-13);
    CHECK_NEAR(g[2], 0, 1e-13);
    for (k = 0; k < 12; k++) sum[k % 3] += g[k];
    for (k = 0; k < 3; k++) CHECK_NEAR(sum[k], 0, 1e-14);
    CHECK(fsi_friction_energy(&f, x0, x0, 0.01, g, NULL, FSI_HESSIAN_EXACT) > 0);
    for (k = 0; k < 12; k++) CHECK(g[k] == 0);
}

/* A quadratic model about rest, 2 u/slip, leaves out that friction ends at 1; one about where it slips is right. Less
   than 1 is what sticking can bear. */
static void test_friction_says_what_its_model_missed(void)
{
    const double slip = 0.01;
    double x0[12] = { 0.2, 0.2, 0.05,   0, 0, 0,   1, 0, 0,   0, 1, 0 }, far[12], x[12];
    fsi_distance at = fsi_distance_between(FSI_POINT_TRIANGLE, x0);
    fsi_friction f;
    fsi_friction_lag(&f, FSI_POINT_TRIANGLE, &at, 3);
    memcpy(x, x0, sizeof x);
    memcpy(far, x0, sizeof far);
    x[0] += 0.4 * slip;
    CHECK(fsi_friction_error(&f, x0, x, x0, slip, FSI_HESSIAN_EXACT) == 0);
    x[0] = x0[0] + 0.7 * slip; /* 1.4 of 1 */
    CHECK_NEAR(fsi_friction_error(&f, x0, x, x0, slip, FSI_HESSIAN_EXACT), 0.4, 1e-12);
    x[0] = x0[0] + 3 * slip;   /* 6 of 1 */
    CHECK_NEAR(fsi_friction_error(&f, x0, x, x0, slip, FSI_HESSIAN_EXACT), 5, 1e-12);
    far[0] = x0[0] + 2 * slip;
    CHECK_NEAR(fsi_friction_error(&f, far, x, x0, slip, FSI_HESSIAN_EXACT), 0, 1e-12);
    x[1] = x0[1] + 3 * slip;   /* the model: (1, 1.5); the law: (1, 1)/sqrt 2 */
    CHECK_NEAR(fsi_friction_error(&f, far, x, x0, slip, FSI_HESSIAN_EXACT),
               sqrt(0.2928932188134525 * 0.2928932188134525 + 0.7928932188134525 * 0.7928932188134525), 1e-12);
    x[1] = x0[1];
    x[0] = x0[0] + slip;       /* half as stiff as the parabola: (1 + 1/2)/2 at half of 2 slip */
    CHECK_NEAR(fsi_friction_error(&f, far, x, x0, slip, FSI_HESSIAN_PROJECTED), 0.25, 1e-12);
    x[0] = x0[0] + 3 * slip;
    CHECK_NEAR(fsi_friction_error(&f, far, x, x0, slip, FSI_HESSIAN_PROJECTED), 0.25, 1e-12);
    CHECK(fsi_friction_error(NULL, far, x, x0, slip, FSI_HESSIAN_EXACT) == 0 &&
          fsi_friction_error(&f, NULL, x, x0, slip, FSI_HESSIAN_EXACT) == 0 &&
          fsi_friction_error(&f, far, x, x0, 0, FSI_HESSIAN_EXACT) == 0);
    x[0] = test_nan();
    CHECK(fsi_friction_error(&f, far, x, x0, slip, FSI_HESSIAN_EXACT) == 0);
}

static void test_friction_of_bad_input_is_none(void)
{
    double x[12] = { 0.2, 0.2, 0.05,   0, 0, 0,   1, 0, 0,   0, 1, 0 }, y[12], g[12], h[144];
    const double bad[3] = { test_nan(), test_inf(), -1 };
    fsi_distance at = fsi_distance_between(FSI_POINT_TRIANGLE, x);
    fsi_friction f;
    int k;
    memcpy(y, x, sizeof y);
    y[0] += 1;
    for (k = 0; k < 3; k++) {
        fsi_friction_lag(&f, FSI_POINT_TRIANGLE, &at, bad[k]);
        CHECK(fsi_friction_energy(&f, y, x, 0.1, g, h, FSI_HESSIAN_EXACT) == 0 && g[0] == 0 && h[0] == 0);
    }
    fsi_friction_lag(&f, FSI_POINT_TRIANGLE, &at, 1);
    CHECK(fsi_friction_energy(&f, y, x, 0, g, h, FSI_HESSIAN_EXACT) == 0 &&
          fsi_friction_energy(&f, y, x, test_nan(), g, h, FSI_HESSIAN_EXACT) == 0);
    y[3] = test_nan();
    CHECK(fsi_friction_energy(&f, y, x, 0.1, g, h, FSI_HESSIAN_EXACT) == 0 && g[0] == 0);
    CHECK(fsi_friction_energy(NULL, y, x, 0.1, NULL, NULL, FSI_HESSIAN_EXACT) == 0 &&
          fsi_friction_energy(&f, NULL, x, 0.1, g, h, FSI_HESSIAN_EXACT) == 0);
    fsi_friction_lag(&f, FSI_POINT_TRIANGLE, NULL, 1);
    CHECK(f.force == 0);
    fsi_friction_lag(NULL, FSI_POINT_TRIANGLE, NULL, 1);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_barrier_has_two_continuous_derivatives);
    RUN(test_barrier_is_infinite_at_contact_and_safe_for_bad_input);
    RUN(test_distances_agree_with_a_slow_reference);
    RUN(test_distances_of_extreme_sizes);
    RUN(test_features_that_touch_have_distance_zero);
    RUN(test_derivatives_of_distances);
    RUN(test_derivatives_of_contact);
    RUN(test_projected_hessians_are_semidefinite_and_close);
    RUN(test_push_is_the_slope_of_the_energy);
    RUN(test_mollifier_fades_parallel_edges_out);
    RUN(test_contact_of_bad_input_is_infinite);
    RUN(test_derivatives_of_friction);
    RUN(test_friction_is_coulombs_when_it_slips);
    RUN(test_friction_says_what_its_model_missed);
    RUN(test_friction_of_bad_input_is_none);
    return TEST_END();
}
