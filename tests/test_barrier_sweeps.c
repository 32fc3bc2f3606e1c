/* test_barrier_sweeps.c - continuous collision detection of fsi_barrier.h against first times in higher precision, and
   its level-set filter
   against fine sampling. validate/validate_barrier.c does the same ten million times.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_barrier.h"
#include "kit/barrier_cases.h"

enum { QUERIES = TEST_SLOWED ? 100 : 1500 };

/* ---- pairs ------------------------------------------------------------------------------------------------------ */

static void test_sweeps_miss_nothing_and_never_stall(void)
{
    uint64_t r = 1;
    long short_of = 0, moving = 0;
    int c, kind, i;
    for (c = 0; c < CASES; c++) for (kind = 0; kind < 4; kind++) {
        tally s;
        memset(&s, 0, sizeof s);
        for (i = 0; i < QUERIES; i++) {
            query q;
            q.kind = (fsi_pair)kind;
            fill_case(&q, c, &r);
            check_query(&q, &s, fsi_ccd, 1);
        }
        CHECK(s.misses == 0);
        CHECK(s.stalls == 0);
        CHECK(s.exact == 0 || s.tightness / (double)s.exact > 0.8);
        short_of += s.false_positives + s.cut_short;
        moving += s.moving;
    }
    CHECK((double)short_of < 0.01 * (double)moving);
}

static void test_a_sweep_ends_where_a_tenth_of_the_gap_is_left(void)
{
    double x[12] = { 0.2, 0.2, 0.05,   0, 0, 0,   1, 0, 0,   0, 1, 0 }, dx[12] = { 0, 0, -1 };
    CHECK_NEAR(fsi_ccd(FSI_POINT_TRIANGLE, x, dx, 0, 0.1), 0.045, 1e-12);
    CHECK_NEAR(fsi_ccd(FSI_POINT_TRIANGLE, x, dx, 0.04, 0.1), 0.009, 1e-12);
    CHECK_NEAR(fsi_ccd(FSI_POINT_TRIANGLE, x, dx, 0, 0.9), 0.005, 1e-12);
    dx[2] = 1;
    CHECK(fsi_ccd(FSI_POINT_TRIANGLE, x, dx, 0, 0.1) == 1);
    dx[2] = -0.04;
    CHECK(fsi_ccd(FSI_POINT_TRIANGLE, x, dx, 0, 0.1) == 1);
    dx[2] = 0;
    dx[0] = 1e6; /* past it, as fast as you like */
    CHECK(fsi_ccd(FSI_POINT_TRIANGLE, x, dx, 0, 0.1) == 1);
}

static void test_a_rigid_motion_is_free(void)
{
    uint64_t r = 3;
    int kind, i, k;
    for (kind = 0; kind < 4; kind++) for (i = 0; i < QUERIES; i++) {
        query q;
        double v[3];
        q.kind = (fsi_pair)kind;
        fill_random(&q, &r, 1, 0);
        any_vector(&r, v, 1000);
        for (k = 0; k < 12; k++) q.dx[k] = v[k % 3];
        CHECK(fsi_ccd(q.kind, q.x, q.dx, 0, 0.1) == 1);
    }
}

static void test_sweeps_of_extreme_sizes(void)
{
    static const double sizes[7] = { 1e-290, 1e-150, 1e-62, 1e-58, 1e62, 1e100, 1e140 };
    uint64_t r = 4;
    int kind, s, i, k;
    for (kind = 0; kind < 4; kind++) for (i = 0; i < 50; i++) for (s = 0; s < 7; s++) {
        query q;
        double t;
        q.kind = (fsi_pair)kind;
        fill_random(&q, &r, 1, 1);
        t = fsi_ccd(q.kind, q.x, q.dx, 0, 0.1);
        for (k = 0; k < 12; k++) {
            q.x[k] *= sizes[s];
            q.dx[k] *= sizes[s];
        }
        CHECK_NEAR(fsi_ccd(q.kind, q.x, q.dx, 0, 0.1), t, 1e-6);
    }
}

static void test_sweeps_of_bad_input_go_nowhere(void)
{
    double x[12] = { 0.2, 0.2, 0.05,   0, 0, 0,   1, 0, 0,   0, 1, 0 }, dx[12] = { 0, 0, 1 };
    const double bad[3] = { test_nan(), test_inf(), -test_inf() };
    int k, b;
    for (b = 0; b < 3; b++) for (k = 0; k < 12; k++) {
        double a = x[k], d = dx[k];
        x[k] = bad[b];
        CHECK(fsi_ccd(FSI_POINT_TRIANGLE, x, dx, 0, 0.1) == 0);
        x[k] = a;
        dx[k] = bad[b];
        CHECK(fsi_ccd(FSI_POINT_TRIANGLE, x, dx, 0, 0.1) == 0);
        dx[k] = d;
        CHECK(fsi_ccd(FSI_POINT_TRIANGLE, x, dx, bad[b], 0.1) == 0);
        CHECK(fsi_ccd(FSI_POINT_TRIANGLE, x, dx, 0, bad[b]) == 0);
    }
    CHECK(fsi_ccd(FSI_POINT_TRIANGLE, NULL, dx, 0, 0.1) == 0 && fsi_ccd(FSI_POINT_TRIANGLE, x, NULL, 0, 0.1) == 0);
    CHECK(fsi_ccd((fsi_pair)9, x, dx, 0, 0.1) == 0 && fsi_ccd(FSI_POINT_TRIANGLE, x, dx, -1, 0.1) == 0);
    CHECK(fsi_ccd(FSI_POINT_TRIANGLE, x, dx, 0, 0) == 0 && fsi_ccd(FSI_POINT_TRIANGLE, x, dx, 0, 1) == 0);
    /* touching, inside */
    CHECK(fsi_ccd(FSI_POINT_TRIANGLE, x, dx, 0.05, 0.1) == 0 && fsi_ccd(FSI_POINT_TRIANGLE, x, dx, 0.06, 0.1) == 0);
    for (k = 0; k < 12; k++) x[k] = dx[k] = 0;
    CHECK(fsi_ccd(FSI_EDGE_EDGE, x, dx, 0, 0.1) == 0);
}

/* Near the border of two regions, with gaps so small that the closest points' difference points anywhere: found among
   ten million. */
static void test_sweeps_from_where_rounding_turns_the_normal(void)
{
    static const fsi_pair kind[2] = { FSI_POINT_TRIANGLE, FSI_EDGE_EDGE };
    static const double keep[2] = { 0.152318601569568, 0.1 };
    static const double x[2][12] = {
        {-0.64067196113997271, -0.54819296417123919, -0.57967627447847958, -0.047840004565614214, -0.9615463688695649,
         -0.017599351674608688, -0.64067196113995895, -0.54819296417116936, -0.57967627447844539, -0.56314302697437735,
         -0.072280740712599156, -0.96997493577531846},
        {-5.3091396605760403e-05, 4.0236278733484792e-05, 0.00022754489530041143, -2.3663044391256259e-05,
         0.00030075526745868052, 0.00015284110433849265, -0.00027617483930626822, 4.3054994595597502e-05,
         0.00027931951374657077, -2.3663044391258068e-05, 0.00030075526745868182, 0.00015284110433849072}};
    static const double dx[2][12] = {
        {0.2245319249554602, 0.29895460605455265, -0.066247248716044982, -0.36692451666332826, -0.26778993505685789,
         -0.035151132485264247, 0.28748098487459356, -0.27782544085005684, 0.21115025461968268, -0.22253847670563903,
         0.30511533527257401, 0.40406898469803093},
        {-0.00074067238497808289, 0.00040583276094977646, -0.00083557883026424398, -0.00056957066261677128,
         2.4438551804628275e-05, -0.0003839649826829239, 0.00076200206028245948, 0.0001637379730660726,
         -0.00015541452121040791, -0.00056957066261677128, 0.0002978657820766346, -0.0003839649826829239}};
    int k;
    for (k = 0; k < 2; k++) CHECK(fsi_ccd(kind[k], x[k], dx[k], 0, keep[k]) > 0);
}

/* ---- level set -------------------------------------------------------------------------------------------------- */

/* A box of cells -N .. N along each axis; outside the border's values hold. */
enum { N = 8, ROW = 2 * N + 1 };
typedef struct grid { double phi[ROW * ROW * ROW], dphi[ROW * ROW * ROW]; long reads; } grid;

static int clamped(int i) { return i < -N ? 0 : i > N ? 2 * N : i + N; }

static void read_grid(void *user, const int base[3], const int count[3], double *phi, double *dphi)
{
    grid *g = (grid *)user;
    int i, j, k, at = 0;
    g->reads++;
    for (k = 0; k < count[2]; k++) for (j = 0; j < count[1]; j++) for (i = 0; i < count[0]; i++, at++) {
        const int from = (clamped(base[2] + k) * ROW + clamped(base[1] + j)) * ROW + clamped(base[0] + i);
        phi[at] = g->phi[from];
        dphi[at] = g->dphi[from];
    }
}

/* A distance from a plane with waves on it, and one that comes nearer, both with noise. */
static void make_grid(grid *g, uint64_t *r, double noise)
{
    double n[3], l;
    int i, j, k, at = 0;
    any_vector(r, n, 1);
    l = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]) + 1e-9;
    for (k = -N; k <= N; k++) for (j = -N; j <= N; j++) for (i = -N; i <= N; i++, at++) {
        g->phi[at] = 0.1 * ((n[0] * i + n[1] * j + n[2] * k) / l + between(r, -noise, noise) + 0.5);
        g->dphi[at] = 0.1 * (-0.4 + between(r, -noise, noise));
    }
    g->reads = 0;
}

static double distance_at(grid *g, fsi_metric metric, int dim, const double *x, const double *move, double t,
                          const fsi_stencil *frozen)
{
    double y[3], phi[27], dphi[27];
    int k, count[3] = { 1, 1, 1 };
    fsi_stencil s;
    for (k = 0; k < 3; k++) y[k] = x[k] + t * move[k];
    s = fsi_stencil_at(metric, dim, y, 0.1, frozen);
    for (k = 0; k < dim; k++) count[k] = s.width;
    read_grid(g, s.base, count, phi, dphi);
    for (k = 0; k < 27; k++) phi[k] += t * dphi[k];
    return fsi_stencil_value(&s, phi, NULL, NULL);
}

static void test_metrics_have_right_derivatives(void)
{
    uint64_t r = 20;
    int dim, metric, i, k;
    for (dim = 2; dim < 4; dim++) for (metric = 0; metric < 2; metric++) for (i = 0; i < 500; i++) {
        double x[3], phi[27], gradient[3], weights[27], sum = 0, d, h = 1e-6;
        fsi_stencil s, old;
        int n;
        any_vector(&r, x, 3);
        s = fsi_stencil_at((fsi_metric)metric, dim, x, 0.1, NULL);
        n = s.width * s.width * (dim == 3 ? s.width : 1);
        for (k = 0; k < 27; k++) phi[k] = between(&r, -1, 1);
        d = fsi_stencil_value(&s, phi, gradient, weights);
        for (k = 0; k < n; k++) sum += weights[k];
        CHECK_NEAR(sum, 1, 1e-14);
        for (k = 0, sum = 0; k < n; k++) sum += weights[k] * phi[k];
        CHECK_NEAR(sum, d, 1e-14);
        for (k = 0; k < dim; k++) {
            double lo, hi, keep = x[k];
            x[k] = keep - h;
            old = fsi_stencil_at((fsi_metric)metric, dim, x, 0.1, &s);
            lo = memcmp(old.base, s.base, sizeof s.base) ? test_nan() : fsi_stencil_value(&old, phi, NULL, NULL);
            x[k] = keep + h;
            old = fsi_stencil_at((fsi_metric)metric, dim, x, 0.1, &s);
            hi = memcmp(old.base, s.base, sizeof s.base) ? test_nan() : fsi_stencil_value(&old, phi, NULL, NULL);
            x[k] = keep;
            if (metric == FSI_METRIC_LINEAR) CHECK(lo == lo && hi == hi); /* the frozen stencil stays */
            if (lo == lo && hi == hi) CHECK_NEAR((hi - lo) / (2 * h), gradient[k], 1e-6 * 20);
        }
    }
}

static void test_metrics_read_planes_exactly(void)
{
    uint64_t r = 21;
    grid g;
    int dim, metric, i;
    make_grid(&g, &r, 0);
    for (dim = 2; dim < 4; dim++) for (metric = 0; metric < 2; metric++) for (i = 0; i < 100; i++) {
        double x[3], y[3] = { 0, 0, 0 }, a, b, c;
        const double none[3] = { 0, 0, 0 };
        any_vector(&r, x, 0.5);
        any_vector(&r, y, 0.5);
        if (dim == 2) x[2] = y[2] = 0;
        a = distance_at(&g, (fsi_metric)metric, dim, x, none, 0, NULL);
        b = distance_at(&g, (fsi_metric)metric, dim, y, none, 0, NULL);
        y[0] = 0.5 * (x[0] + y[0]);
        y[1] = 0.5 * (x[1] + y[1]);
        y[2] = 0.5 * (x[2] + y[2]);
        c = distance_at(&g, (fsi_metric)metric, dim, y, none, 0, NULL);
        CHECK_NEAR(c, 0.5 * (a + b), 1e-14);
    }
}

/* Head-on, across, fast and slow: never below what must be kept, never stuck, and late enough. */
static void test_levelset_filter_is_safe_and_does_not_stall(void)
{
    uint64_t r = 22;
    static grid g;
    fsi_field_reader field;
    int dim, metric, i, hits = 0, late = 0;
    field.user = &g;
    field.read = read_grid;
    for (dim = 2; dim < 4; dim++) for (metric = 0; metric < 2; metric++) for (i = 0; i < QUERIES; i++) {
        double x[3], move[3] = { 0, 0, 0 }, t, d0, keep = i % 3 ? 0.1 : between(&r, 0.01, 0.9);
        fsi_stencil s;
        int k;
        if (i % 50 == 0) make_grid(&g, &r, i % 100 ? 0.2 : 0);
        any_vector(&r, x, 0.4);
        if (i % 4) any_vector(&r, move, i % 4 == 1 ? 0.05 : i % 4 == 2 ? 0.3 : 1);
        s = fsi_stencil_at((fsi_metric)metric, dim, x, 0.1, NULL);
        if (i % 5 == 0 && i % 4) { /* head-on: against the gradient */
            double phi[27], dphi[27], gradient[3] = { 0, 0, 0 };
            int count[3] = { 1, 1, 1 };
            for (k = 0; k < dim; k++) count[k] = s.width;
            read_grid(&g, s.base, count, phi, dphi);
            fsi_stencil_value(&s, phi, gradient, NULL);
            for (k = 0; k < 3; k++) move[k] = -0.5 * gradient[k];
        }
        if (dim == 2) x[2] = move[2] = 0;
        d0 = distance_at(&g, (fsi_metric)metric, dim, x, move, 0, &s);
        t = fsi_stencil_ccd((fsi_metric)metric, dim, 0.1, x, move, &field, i % 2 ? &s : NULL, keep);
        CHECK(d0 > 1e-12 ? t > 0 && t <= 1 : d0 > 0 || t == 0);
        if (!(d0 > 0)) continue;
        for (k = 0; k <= 200; k++)
            if (!CHECK(distance_at(&g, (fsi_metric)metric, dim, x, move, t * k / 200, &s) >= keep * d0 * (1 - 1e-9)))
                break;
        hits += t < 1;
        late += t < 1 && distance_at(&g, (fsi_metric)metric, dim, x, move, t, &s) <= 1.0101 * keep * d0 + 1e-12;
    }
    CHECK(hits > QUERIES / 2);
    CHECK(late == hits);
}

static void test_levelset_filter_of_fixed_samples_is_a_division(void)
{
    uint64_t r = 23;
    static grid g;
    fsi_field_reader field;
    const double x[3] = { 0.13, 0.04, 0.21 }, none[3] = { 0, 0, 0 };
    int k;
    field.user = &g;
    field.read = read_grid;
    make_grid(&g, &r, 0);
    for (k = 0; k < ROW * ROW * ROW; k++) {
        g.phi[k] = 0.02;
        g.dphi[k] = -0.04;
    }
    for (k = 0; k < 4; k++) {
        g.reads = 0;
        CHECK_NEAR(fsi_stencil_ccd((fsi_metric)(k & 1), 2 + k / 2, 0.1, x, none, &field, NULL, 0.1), 0.45, 1e-9);
        CHECK(g.reads == 1);
    }
}

static void test_levelset_filter_of_bad_input_goes_nowhere(void)
{
    uint64_t r = 24;
    static grid g;
    fsi_field_reader field;
    double x[3] = { 0.1, 0.1, 0.1 }, move[3] = { 0, 0, 0 };
    const double bad[3] = { test_nan(), test_inf(), 1e300 };
    fsi_stencil s;
    int k;
    field.user = &g;
    field.read = read_grid;
    make_grid(&g, &r, 0);
    for (k = 0; k < ROW * ROW * ROW; k++) g.phi[k] = 1;
    CHECK(fsi_stencil_ccd(FSI_METRIC_SPLINE, 3, 0.1, x, move, &field, NULL, 0.1) == 1);
    for (k = 0; k < 9; k++) {
        double *p = k < 3 ? &x[k] : k < 6 ? &move[k - 3] : &g.phi[((1 + N) * ROW + N) * ROW + N + 1], keep = *p;
        *p = bad[k % 3];
        CHECK(fsi_stencil_ccd(FSI_METRIC_SPLINE, 3, 0.1, x, move, &field, NULL, 0.1) == 0);
        if (k < 3) {
            s = fsi_stencil_at(FSI_METRIC_SPLINE, 3, x, 0.1, NULL);
            CHECK(s.dim == 0 && fsi_stencil_value(&s, g.phi, NULL, NULL) == 0);
        }
        *p = keep;
    }
    CHECK(fsi_stencil_ccd(FSI_METRIC_SPLINE, 4, 0.1, x, move, &field, NULL, 0.1) == 0);
    CHECK(fsi_stencil_ccd(FSI_METRIC_SPLINE, 3, 0, x, move, &field, NULL, 0.1) == 0);
    CHECK(fsi_stencil_ccd(FSI_METRIC_SPLINE, 3, 0.1, x, move, NULL, NULL, 0.1) == 0);
    CHECK(fsi_stencil_ccd(FSI_METRIC_SPLINE, 3, 0.1, NULL, move, &field, NULL, 0.1) == 0);
    CHECK(fsi_stencil_ccd(FSI_METRIC_SPLINE, 3, 0.1, x, NULL, &field, NULL, 0.1) == 0);
    CHECK(fsi_stencil_ccd(FSI_METRIC_SPLINE, 3, 0.1, x, move, &field, NULL, 1) == 0);
    field.read = NULL;
    CHECK(fsi_stencil_ccd(FSI_METRIC_SPLINE, 3, 0.1, x, move, &field, NULL, 0.1) == 0);
    CHECK(fsi_stencil_value(NULL, NULL, NULL, NULL) == 0);
    s = fsi_stencil_at((fsi_metric)5, 3, x, 0.1, NULL);
    CHECK(s.dim == 0);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_sweeps_miss_nothing_and_never_stall);
    RUN(test_a_sweep_ends_where_a_tenth_of_the_gap_is_left);
    RUN(test_a_rigid_motion_is_free);
    RUN(test_sweeps_from_where_rounding_turns_the_normal);
    RUN(test_sweeps_of_extreme_sizes);
    RUN(test_sweeps_of_bad_input_go_nowhere);
    RUN(test_metrics_have_right_derivatives);
    RUN(test_metrics_read_planes_exactly);
    RUN(test_levelset_filter_is_safe_and_does_not_stall);
    RUN(test_levelset_filter_of_fixed_samples_is_a_division);
    RUN(test_levelset_filter_of_bad_input_goes_nowhere);
    return TEST_END();
}
