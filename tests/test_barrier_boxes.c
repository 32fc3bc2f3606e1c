/* test_barrier_boxes.c - the broad phase of fsi_barrier.h against brute force: random, clustered, flat, huge, empty
   and moving boxes, any number
   of threads, no allocation in the steady state, failing allocations, bad input.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_barrier.h"

enum { MANY = TEST_SLOWED ? 600 : 2500 };

static double boxes_a[6 * MANY], boxes_b[6 * MANY];

static double between(uint64_t *r, double lo, double hi) { return lo + (hi - lo) * test_random(r); }

enum { UNIFORM, CLUSTERED, FLAT, POINTS, SAME, FAR_AWAY, MIXED_SIZES, LATTICE, HUGE_NUMBERS, KINDS };

static void fill(double *box, int n, int kind, uint64_t *r)
{
    int i, k;
    for (i = 0; i < n; i++) for (k = 0; k < 3; k++) {
        double at = between(r, 0, 1), size = between(r, 0, 0.1);
        if (kind == CLUSTERED) at = pow(at, 8);
        if (kind == FLAT && k == 2) at = size = 0;
        if (kind == POINTS) at = floor(at * 8) / 8;
        if (kind == POINTS || kind == SAME) size = 0;
        if (kind == SAME) at = 0.25;
        if (kind == FAR_AWAY) at += k == 1 ? -1e9 : 1e7;
        if (kind == MIXED_SIZES) size = pow(10, between(r, -9, 0.3));
        if (kind == LATTICE) at = floor(at * 10) / 10, size = 0.1;
        if (kind == HUGE_NUMBERS) at = (at - 0.5) * 1e300, size *= 1e300;
        box[6 * i + k] = at;
        box[6 * i + 3 + k] = at + size;
    }
}

static int overlap(const double *a, const double *b)
{
    int k;
    for (k = 0; k < 3; k++) if (a[k] > b[k + 3] || b[k] > a[k + 3]) return 0;
    return 1;
}

static int keeps_two_thirds(void *user, int i, int j)
{
    (void)user;
    return (i + j) % 3 != 0;
}

/* Counts what differs from all pairs in order. */
static long faults(const fsi_pairs *p, const double *a, int n, const double *b, int m, int some)
{
    long wrong = 0;
    int i, j, at = 0;
    for (i = 0; i < n; i++) for (j = a == b ? i + 1 : 0; j < m; j++) {
        if (!overlap(a + 6 * i, b + 6 * j) || (some && (i + j) % 3 == 0)) continue;
        if (at >= p->count || p->index[2 * at] != i || p->index[2 * at + 1] != j) wrong++;
        at++;
    }
    return wrong + (at != p->count);
}

static void test_pairs_are_those_of_brute_force(void)
{
    static const int counts[6] = { 1, 7, 8, 9, 65, MANY };
    uint64_t r = 1;
    int kind, c, some;
    for (kind = 0; kind < KINDS; kind++) for (c = 0; c < 6; c++) for (some = 0; some < 2; some++) {
        const int n = kind == SAME && counts[c] > 300 ? 300 : counts[c], m = n > 10 ? n / 2 : n;
        fsi_boxes *a, *b;
        fsi_pairs *p;
        if (!CHECK(fsi_boxes_create(&a, NULL, n) == FSI_OK && fsi_boxes_create(&b, NULL, m) == FSI_OK &&
                   fsi_pairs_create(&p, NULL) == FSI_OK))
            return;
        fill(boxes_a, n, kind, &r);
        fill(boxes_b, m, kind, &r);
        CHECK(fsi_boxes_update(a, boxes_a) == FSI_OK && fsi_boxes_update(b, boxes_b) == FSI_OK);
        CHECK(fsi_pairs_find(p, a, b, some ? keeps_two_thirds : NULL, NULL) == FSI_OK);
        CHECK(faults(p, boxes_a, n, boxes_b, m, some) == 0);
        CHECK(fsi_pairs_find(p, a, a, some ? keeps_two_thirds : NULL, NULL) == FSI_OK);
        CHECK(faults(p, boxes_a, n, boxes_a, n, some) == 0);
        CHECK(fsi_pairs_find(p, b, a, NULL, NULL) == FSI_OK);
        CHECK(faults(p, boxes_b, m, boxes_a, n, 0) == 0);
        fsi_pairs_destroy(p);
        fsi_boxes_destroy(a);
        fsi_boxes_destroy(b);
    }
}

/* Boxes that drift apart from their old neighbours: the tree is fitted, and made anew now and then. */
static void test_trees_follow_boxes_that_move(void)
{
    uint64_t r = 2;
    static double v[6 * MANY];
    fsi_boxes *a;
    fsi_pairs *p;
    int step, i, k;
    if (!CHECK(fsi_boxes_create(&a, NULL, MANY) == FSI_OK && fsi_pairs_create(&p, NULL) == FSI_OK)) return;
    fill(boxes_a, MANY, UNIFORM, &r);
    for (i = 0; i < MANY; i++) for (k = 0; k < 3; k++) v[6 * i + k] = v[6 * i + 3 + k] = between(&r, -0.02, 0.02);
    for (step = 0; step < 30; step++) {
        CHECK(fsi_boxes_update(a, boxes_a) == FSI_OK && fsi_pairs_find(p, a, a, NULL, NULL) == FSI_OK);
        if (step % 5 == 4) CHECK(faults(p, boxes_a, MANY, boxes_a, MANY, 0) == 0);
        for (i = 0; i < 6 * MANY; i++) boxes_a[i] += v[i];
    }
    CHECK(a->rebuilds > 1 && a->rebuilds < 25);
    fsi_pairs_destroy(p);
    fsi_boxes_destroy(a);
}

static uint64_t hash_with(int threads, int adversarial)
{
    fsi_context c = fsi_default_context();
    uint64_t r = 3, hash = 0;
    fsi_boxes *a, *b;
    fsi_pairs *p;
    int step;
    if (threads) test_threads(&c, threads, adversarial);
    if (!CHECK(fsi_boxes_create(&a, &c, MANY) == FSI_OK && fsi_boxes_create(&b, &c, MANY / 3) == FSI_OK &&
               fsi_pairs_create(&p, &c) == FSI_OK))
        return 0;
    for (step = 0; step < 4; step++) {
        fill(boxes_a, MANY, step, &r);
        fill(boxes_b, MANY / 3, step, &r);
        CHECK(fsi_boxes_update(a, boxes_a) == FSI_OK && fsi_boxes_update(b, boxes_b) == FSI_OK);
        CHECK(fsi_pairs_find(p, a, a, keeps_two_thirds, NULL) == FSI_OK);
        hash = fsi_hash(p->index, (size_t)p->count * 2 * sizeof(int), hash);
        CHECK(fsi_pairs_find(p, a, b, NULL, NULL) == FSI_OK);
        hash = fsi_hash(p->index, (size_t)p->count * 2 * sizeof(int), hash);
    }
    fsi_pairs_destroy(p);
    fsi_boxes_destroy(a);
    fsi_boxes_destroy(b);
    return hash;
}

static void test_pairs_are_the_same_for_any_number_of_threads(void)
{
    const uint64_t hash = hash_with(0, 0);
    int n;
    for (n = 1; n <= 4; n++) CHECK(hash_with(n, 0) == hash && hash_with(n, 1) == hash);
}

static void test_the_steady_state_allocates_nothing(void)
{
    fsi_context c = fsi_default_context();
    uint64_t r = 4;
    fsi_boxes *a;
    fsi_pairs *p;
    long long allocs = 0;
    int step, i, k, most = 0;
    if (!CHECK(fsi_boxes_create(&a, &c, MANY) == FSI_OK && fsi_pairs_create(&p, &c) == FSI_OK)) return;
    fill(boxes_a, MANY, UNIFORM, &r);
    for (step = 0; step < 20; step++) {
        if (step == 1) allocs = c.allocs;
        CHECK(fsi_boxes_update(a, boxes_a) == FSI_OK && fsi_pairs_find(p, a, a, NULL, NULL) == FSI_OK);
        if (step == 0) most = p->count;
        CHECK(p->count <= most);
        for (i = 0; i < MANY; i++) for (k = 0; k < 3; k++) { /* mirrored and stretched: the same pairs elsewhere, then
                                                                fewer */
            const double lo = boxes_a[6 * i + k];
            boxes_a[6 * i + k] = -boxes_a[6 * i + 3 + k];
            boxes_a[6 * i + 3 + k] = -lo - (step % 4 == 3 ? 0.02 * (boxes_a[6 * i + 3 + k] - lo) : 0);
            if (boxes_a[6 * i + 3 + k] < boxes_a[6 * i + k]) boxes_a[6 * i + 3 + k] = boxes_a[6 * i + k];
        }
    }
    CHECK(c.allocs == allocs);
    CHECK(c.bytes == a->bytes + p->bytes);
    fsi_pairs_destroy(p);
    fsi_boxes_destroy(a);
    CHECK(c.bytes == 0);
}

static void test_failing_allocations_leave_the_last_result(void)
{
    uint64_t r = 5;
    long fail;
    fsi_status status = FSI_ERROR_MEMORY;
    for (fail = 1; status != FSI_OK && fail < 40; fail++) {
        fsi_context c = fsi_default_context();
        fsi_boxes *a = NULL;
        fsi_pairs *p = NULL;
        test_fail_allocator(&c, fail);
        fill(boxes_a, 300, UNIFORM, &r);
        status = fsi_boxes_create(&a, &c, 300);
        CHECK((status == FSI_OK) == (a != NULL));
        if (status == FSI_OK) status = fsi_pairs_create(&p, &c);
        CHECK((status == FSI_OK) == (p != NULL));
        if (status == FSI_OK) status = fsi_boxes_update(a, boxes_a);
        if (status == FSI_OK) status = fsi_pairs_find(p, a, a, NULL, NULL);
        CHECK(status == FSI_OK || status == FSI_ERROR_MEMORY);
        if (p && status != FSI_OK) CHECK(p->count == 0);
        if (status == FSI_OK) { /* more pairs than before, and no memory for them */
            uint64_t hash = fsi_hash(p->index, (size_t)p->count * 2 * sizeof(int), 0);
            const int count = p->count;
            fill(boxes_a, 300, SAME, &r);
            test_fail_allocator(&c, 1);
            CHECK(fsi_boxes_update(a, boxes_a) == FSI_OK && fsi_pairs_find(p, a, a, NULL, NULL) == FSI_ERROR_MEMORY);
            CHECK(p->count == count && fsi_hash(p->index, (size_t)p->count * 2 * sizeof(int), 0) == hash);
            test_fail_allocator(&c, 0);
            CHECK(fsi_pairs_find(p, a, a, NULL, NULL) == FSI_OK && p->count == 300 * 299 / 2);
        }
        fsi_pairs_destroy(p);
        fsi_boxes_destroy(a);
        CHECK(test_live_bytes() == 0);
    }
    CHECK(fail > 3 && status == FSI_OK);
}

static int capricious(void *user, int i, int j)
{
    (void)i;
    (void)j;
    return ++*(int *)user > 20000;
}

static void test_bad_boxes_are_refused_by_name(void)
{
    fsi_context c = fsi_default_context();
    uint64_t r = 6;
    fsi_boxes *a, *b, other;
    fsi_pairs *p, *q = NULL;
    double *bad = boxes_b;
    int k, calls = 0;
    CHECK(fsi_boxes_create(NULL, &c, 3) == FSI_ERROR_ARGUMENT && fsi_boxes_create(&a, &c, -1) == FSI_ERROR_ARGUMENT &&
          a == NULL);
    CHECK(fsi_boxes_create(&a, &c, (1 << 28) + 1) == FSI_ERROR_LIMIT && a == NULL);
    CHECK(fsi_pairs_create(NULL, &c) == FSI_ERROR_ARGUMENT);
    if (!CHECK(fsi_boxes_create(&a, &c, 300) == FSI_OK && fsi_boxes_create(&b, &c, 0) == FSI_OK &&
               fsi_pairs_create(&p, &c) == FSI_OK))
        return;
    CHECK(fsi_pairs_find(p, a, a, NULL, NULL) == FSI_ERROR_ARGUMENT); /* not yet placed */
    fill(boxes_a, 300, UNIFORM, &r);
    CHECK(fsi_boxes_update(a, boxes_a) == FSI_OK && fsi_pairs_find(p, a, a, NULL, NULL) == FSI_OK);
    for (k = 0; k < 3; k++) {
        memcpy(bad, boxes_a, sizeof(double) * 1800);
        bad[6 * 123 + k] = k == 0 ? test_nan() : k == 1 ? test_inf() : 7;
        CHECK(fsi_boxes_update(a, bad) == (k == 2 ? FSI_ERROR_ARGUMENT : FSI_ERROR_NAN) && c.error.element == 123);
        CHECK(fsi_pairs_find(p, a, a, NULL, NULL) == FSI_OK && faults(p, boxes_a, 300, boxes_a, 300, 0) == 0);
    }
    CHECK(fsi_boxes_update(a, NULL) == FSI_ERROR_ARGUMENT && fsi_boxes_update(NULL, bad) == FSI_ERROR_COOKIE &&
          fsi_boxes_update(b, NULL) == FSI_OK);
    CHECK(fsi_pairs_find(p, a, NULL, NULL, NULL) == FSI_ERROR_ARGUMENT &&
          fsi_pairs_find(NULL, a, a, NULL, NULL) == FSI_ERROR_COOKIE);
    memset(&other, 0, sizeof other);
    CHECK(fsi_pairs_find(p, a, &other, NULL, NULL) == FSI_ERROR_COOKIE &&
          fsi_boxes_update(&other, bad) == FSI_ERROR_COOKIE);
    CHECK(fsi_pairs_find(p, a, b, NULL, NULL) == FSI_OK && p->count == 0 &&
          fsi_pairs_find(p, b, b, NULL, NULL) == FSI_OK && p->count == 0);
    fill(boxes_a, 300, SAME, &r);
    CHECK(fsi_pairs_create(&q, &c) == FSI_OK && fsi_boxes_update(a, boxes_a) == FSI_OK);
    CHECK(fsi_pairs_find(q, a, a, capricious, &calls) == FSI_OK || c.error.status == FSI_ERROR_ARGUMENT);
    fsi_pairs_destroy(q);
    c.cookie = 0;
    CHECK(fsi_pairs_create(&q, &c) == FSI_ERROR_COOKIE && q == NULL);
    c.cookie = fsi_default_context().cookie;
    fsi_pairs_destroy(p);
    fsi_boxes_destroy(a);
    fsi_boxes_destroy(b);
    fsi_pairs_destroy(NULL);
    fsi_boxes_destroy(NULL);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_pairs_are_those_of_brute_force);
    RUN(test_trees_follow_boxes_that_move);
    RUN(test_pairs_are_the_same_for_any_number_of_threads);
    RUN(test_the_steady_state_allocates_nothing);
    RUN(test_failing_allocations_leave_the_last_result);
    RUN(test_bad_boxes_are_refused_by_name);
    return TEST_END();
}
