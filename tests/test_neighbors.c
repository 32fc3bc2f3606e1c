/* test_neighbors.c - the neighbour search against brute force, in every awkward arrangement of points.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_particles.h"

enum { MANY = 3000 };
static fsi_vec3 x[MANY];

static fsi_real uniform(uint64_t *seed, double lo, double hi) { return (fsi_real)(lo + (hi - lo) * test_random(seed)); }

/* n points, uniform in a cube of edge `size` with a corner at (at, at, at). */
static void fill(int n, double at, double size, uint64_t seed)
{
    int i;
    for (i = 0; i < n; i++) {
        x[i].x = uniform(&seed, at, at + size);
        x[i].y = uniform(&seed, at, at + size);
        x[i].z = uniform(&seed, at, at + size);
    }
}

static int are_neighbors(fsi_vec3 a, fsi_vec3 b, fsi_real radius, int dim)
{
    fsi_vec3 d = fsi_v3_sub(a, b);
    if (dim == 2) d.z = 0;
    return fsi_v3_norm2(d) < radius * radius;
}

/* Each rank once in `order`, ties of coincident points in the caller's order. */
static int order_is_wrong(const fsi_neighbors *nb)
{
    static int rank_of[MANY];
    int r, i, wrong = 0;
    for (i = 0; i < nb->count; i++) rank_of[i] = -1;
    for (r = 0; r < nb->count; r++) {
        if (nb->order[r] < 0 || nb->order[r] >= nb->count || rank_of[nb->order[r]] >= 0) return 1;
        rank_of[nb->order[r]] = r;
    }
    for (i = 1; i < nb->count; i++)
        if (memcmp(&x[i], &x[i - 1], sizeof x[i]) == 0) wrong += rank_of[i] < rank_of[i - 1];
    return wrong;
}

/* Lists must equal those of the double loop, rank by rank: complete, ascending, symmetric, without the rank itself. */
static int lists_are_wrong(const fsi_neighbors *nb, fsi_real radius, int dim)
{
    int r, s, k, wrong = 0;
    size_t pairs = 0;
    for (r = 0; r < nb->count; r++) {
        const int *list = nb->list + nb->first[r];
        int n = 0;
        wrong += nb->first[r] % FSI_LANES != 0;
        for (s = 0; s < nb->count; s++) {
            if (s == r || !are_neighbors(x[nb->order[r]], x[nb->order[s]], radius, dim)) continue;
            wrong += n >= nb->size[r] || list[n] != s;
            n++;
        }
        wrong += n != nb->size[r];
        for (k = nb->size[r]; k % FSI_LANES; k++) wrong += list[k] != r; /* padding */
        pairs += (size_t)n;
    }
    return wrong + (pairs != nb->pair_count);
}

/* Builds and compares, in 2D and in 3D. */
static void check(fsi_neighbors *nb, int n, double radius)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        if (!CHECK(fsi_neighbors_build(nb, x, n, (fsi_real)radius, dim) == FSI_OK)) return;
        CHECK(nb->count == n);
        CHECK(!order_is_wrong(nb));
        CHECK(!lists_are_wrong(nb, (fsi_real)radius, dim));
    }
}

static fsi_neighbors *make(fsi_context *context)
{
    fsi_neighbors *nb = NULL;
    if (!CHECK(fsi_neighbors_create(&nb, context) == FSI_OK)) exit(1);
    return nb;
}

static void test_random_points(void)
{
    static const double radius[5] = { 0.03, 0.1, 0.3, 0.9, 5 };
    fsi_neighbors *nb = make(NULL);
    int k, n;
    for (n = 1; n < 70; n += 1 + n / 8) for (k = 0; k < 5; k++) {
        fill(n, -0.5, 1, (uint64_t)(n + k));
        check(nb, n, radius[k]);
    }
    fill(MANY, 0, 1, 3);
    check(nb, MANY, 0.1);
    fsi_neighbors_destroy(nb);
}

/* The size of the scene and its place must not matter: micrometres, light years, far from the origin. */
static void test_scale_and_place(void)
{
    static const double scale[4] = { 1e-12, 1e-3, 1e4, 1e12 };
    fsi_neighbors *nb = make(NULL);
    int k;
    for (k = 0; k < 4; k++) {
        fill(500, 0, scale[k], 11);
        check(nb, 500, 0.15 * scale[k]);
        fill(500, -3 * scale[k], scale[k], 12);
        check(nb, 500, 0.15 * scale[k]);
        fill(500, TOL(1e6, 100) * scale[k], scale[k], 13);
        check(nb, 500, 0.15 * scale[k]);
    }
    fsi_neighbors_destroy(nb);
}

/* Distances of exactly the radius are not neighbours, whatever cell they lie in. */
static void test_lattice_at_the_radius(void)
{
    fsi_neighbors *nb = make(NULL);
    int i;
    for (i = 0; i < 1000; i++)
        x[i] = fsi_v3((fsi_real)(i % 10) / 4, (fsi_real)(i / 10 % 10) / 4, (fsi_real)(i / 100) / 4);
    check(nb, 1000, 0.25);
    check(nb, 1000, 0.5);
    check(nb, 1000, 0.2500001);
    CHECK(fsi_neighbors_build(nb, x, 1000, (fsi_real)0.25, 3) == FSI_OK && nb->pair_count == 0);
    CHECK(fsi_neighbors_build(nb, x, 1000, (fsi_real)0.26, 3) == FSI_OK && nb->pair_count == 2 * 3 * 900);
    fsi_neighbors_destroy(nb);
}

static void test_coincident_points(void)
{
    fsi_neighbors *nb = make(NULL);
    int i;
    fill(300, 0, 1, 21);
    for (i = 100; i < 300; i++) x[i] = x[i % 100];
    check(nb, 300, 0.2);
    for (i = 0; i < 1500; i++) x[i] = fsi_v3(1, 2, 3);
    check(nb, 1500, 0.1);
    CHECK(nb->pair_count == 1500 * 1499);
    fsi_neighbors_destroy(nb);
}

static void test_far_outliers(void)
{
    static const double far_away[3] = { 1e9, -1e15, 1e30 };
    fsi_neighbors *nb = make(NULL);
    int k;
    for (k = 0; k < 3; k++) {
        fill(400, 0, 1, 31);
        x[7].x = (fsi_real)far_away[k];
        check(nb, 400, 0.15);
        x[8] = fsi_v3((fsi_real)far_away[k], (fsi_real)far_away[k], (fsi_real)-far_away[k]);
        x[9] = x[8];
        x[10].y = -FSI_REAL_MAX;
        x[11].z = FSI_REAL_MAX;
        x[12] = fsi_v3(FSI_REAL_MAX, -FSI_REAL_MAX, FSI_REAL_MAX);
        check(nb, 400, 0.15);
    }
    fsi_neighbors_destroy(nb);
}

/* Two dense clusters with nothing in between, and points along a line: most rows and cells are empty. */
static void test_clusters_and_lines(void)
{
    fsi_neighbors *nb = make(NULL);
    int i;
    fill(400, 0, 0.01, 41);
    for (i = 200; i < 400; i++) x[i].y += 1000;
    check(nb, 400, 0.005);
    for (i = 0; i < 400; i++) x[i] = fsi_v3((fsi_real)(0.37 * i), 0, (fsi_real)(-100 * i));
    check(nb, 400, 1);
    fsi_neighbors_destroy(nb);
}

static void test_empty_and_single(void)
{
    fsi_neighbors *nb = make(NULL);
    CHECK(fsi_neighbors_build(nb, NULL, 0, 1, 3) == FSI_OK);
    CHECK(nb->count == 0 && nb->pair_count == 0);
    fill(1, 0, 1, 1);
    check(nb, 1, 1);
    CHECK(nb->pair_count == 0 && nb->size[0] == 0 && nb->order[0] == 0);
    fsi_neighbors_destroy(nb);
    fsi_neighbors_destroy(NULL);
}

/* After a refused build the former result stands. */
static void test_bad_input_is_refused(void)
{
    fsi_context c = fsi_default_context();
    fsi_neighbors *nb = make(&c), copy;
    fsi_real nan = (fsi_real)test_nan(), inf = (fsi_real)test_inf();
    fill(100, 0, 1, 51);
    CHECK(fsi_neighbors_build(nb, x, 100, (fsi_real)0.2, 3) == FSI_OK);
    copy = *nb;
    CHECK(fsi_neighbors_build(nb, x, 100, 0, 3) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_neighbors_build(nb, x, 100, -1, 3) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_neighbors_build(nb, x, 100, nan, 3) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_neighbors_build(nb, x, 100, inf, 3) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_neighbors_build(nb, x, 100, 1, 1) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_neighbors_build(nb, x, 100, 1, 4) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_neighbors_build(nb, x, -1, 1, 3) == FSI_ERROR_ARGUMENT);
    CHECK(strcmp(c.error.function, "fsi_neighbors_build") == 0 && strstr(c.error.message, "-1") != NULL);
    CHECK(fsi_neighbors_build(nb, NULL, 5, 1, 3) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_neighbors_build(NULL, x, 5, 1, 3) != FSI_OK);
    CHECK(fsi_neighbors_create(NULL, &c) == FSI_ERROR_ARGUMENT);
    x[42].y = nan;
    CHECK(fsi_neighbors_build(nb, x, 100, 1, 3) == FSI_ERROR_NAN && c.error.element == 42);
    x[42].y = 0;
    x[43].x = -inf;
    CHECK(fsi_neighbors_build(nb, x, 100, 1, 2) == FSI_ERROR_NAN && c.error.element == 43);
    CHECK(memcmp(&copy, nb, sizeof copy) == 0);
    fill(100, 0, 1, 51);
    CHECK(!lists_are_wrong(nb, (fsi_real)0.2, 3));
    copy.cookie ^= 1;
    CHECK(fsi_neighbors_build(&copy, x, 100, 1, 3) == FSI_ERROR_COOKIE);
    fsi_neighbors_destroy(nb);
    CHECK(c.bytes == 0);
}

static void test_every_allocation_failed_in_turn(void)
{
    fsi_context c = fsi_default_context();
    fsi_neighbors *nb = NULL, copy;
    fsi_status status = FSI_ERROR_MEMORY;
    long k;
    test_fail_allocator(&c, 1);
    CHECK(fsi_neighbors_create(&nb, &c) == FSI_ERROR_MEMORY && !nb && c.bytes == 0);
    test_fail_allocator(&c, 0);
    nb = make(&c);
    fill(MANY, 0, 1, 61);
    CHECK(fsi_neighbors_build(nb, x, 200, (fsi_real)0.2, 3) == FSI_OK);
    copy = *nb;
    for (k = 1; status != FSI_OK && k < 20; k++) {
        test_fail_allocator(&c, k);
        status = fsi_neighbors_build(nb, x, MANY, (fsi_real)0.3, 3); /* more neighbours than the first guess */
        if (status == FSI_OK) break;
        CHECK(status == FSI_ERROR_MEMORY && memcmp(&copy, nb, sizeof copy) == 0);
        CHECK(!lists_are_wrong(nb, (fsi_real)0.2, 3));
    }
    CHECK(status == FSI_OK && k > 2);
    CHECK(!lists_are_wrong(nb, (fsi_real)0.3, 3));
    fsi_neighbors_destroy(nb);
    CHECK(c.bytes == 0 && test_live_bytes() == 0);
}

/* A scene that keeps its size allocates nothing more. */
static void test_the_steady_state_allocates_nothing(void)
{
    fsi_context c = fsi_default_context();
    fsi_neighbors *nb = make(&c);
    long long allocs = 0;
    int k;
    for (k = 0; k < 10; k++) {
        fill(2000, 0, 1, (uint64_t)k);
        if (k == 3) allocs = c.allocs;
        CHECK(fsi_neighbors_build(nb, x, 2000, (fsi_real)0.12, 3) == FSI_OK);
    }
    CHECK(c.allocs == allocs);
    fsi_neighbors_destroy(nb);
}

static uint64_t hash_lists(const fsi_neighbors *nb)
{
    uint64_t h = fsi_hash(nb->order, (size_t)nb->count * sizeof(int), 0);
    int r;
    for (r = 0; r < nb->count; r++) h = fsi_hash(nb->list + nb->first[r], (size_t)nb->size[r] * sizeof(int), h);
    return h;
}

static void test_any_number_of_threads_gives_the_same_lists(void)
{
    static const int threads[4] = { 1, 2, 3, 7 };
    fsi_context c = fsi_default_context();
    fsi_neighbors *serial = make(NULL), *nb = make(&c);
    int k, adversarial, dim;
    fill(MANY, 0, 1, 71);
    for (dim = 2; dim <= 3; dim++) {
        const fsi_real radius = (fsi_real)(dim == 3 ? 0.1 : 0.03);
        CHECK(fsi_neighbors_build(serial, x, MANY, radius, dim) == FSI_OK);
        for (k = 0; k < 4; k++) for (adversarial = 0; adversarial < 2; adversarial++) {
            test_threads(&c, threads[k], adversarial);
            CHECK(fsi_neighbors_build(nb, x, MANY, radius, dim) == FSI_OK);
            CHECK(hash_lists(nb) == hash_lists(serial) && nb->pair_count == serial->pair_count);
        }
    }
    fsi_neighbors_destroy(serial);
    fsi_neighbors_destroy(nb);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_random_points);
    RUN(test_scale_and_place);
    RUN(test_lattice_at_the_radius);
    RUN(test_coincident_points);
    RUN(test_far_outliers);
    RUN(test_clusters_and_lines);
    RUN(test_empty_and_single);
    RUN(test_bad_input_is_refused);
    RUN(test_every_allocation_failed_in_turn);
    RUN(test_the_steady_state_allocates_nothing);
    RUN(test_any_number_of_threads_gives_the_same_lists);
    return TEST_END();
}
