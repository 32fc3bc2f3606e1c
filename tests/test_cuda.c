/* test_cuda.c - fsi_cuda.cu as its shim, compiled as C++: a device whose blocks run in any order returns the CPU's
   bits, and where it fails nothing is lost. Linked with what nvcc makes of the file, the same on a GPU: `make
   test-cuda`.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_pressure.h"
#include "kit/test_pressure.h"

/* Of fsi_cuda.cu, for tests: the at-th allocation, copy or launch from now on fails, 0: none. Returns how many there
   were. */
extern long long fsi__cuda_fail_at(fsi_device *device, long long at);

/* ---- worlds --------------------------------------------------------------------------------------------------- */

enum { AIR, AIR_2D, DENSITIES, LIGHT, MANY, HEAVY, YIELDS, PIECES, GUESS, WORLDS, MOST_BODIES = 5 };

typedef struct world {
    scene t;
    solid b[MOST_BODIES];
    fsi_pressure_solid list[MOST_BODIES];
    double *impulse;
    int bodies, calls;
} world;

static double dam(fsi_vec3 x, const double *arg)
{
    const double center[4] = { 0.5, 0.6, arg[0] > 2.5 ? 0.4 : 0, 0.3 };
    return fmin(ball(x, center), (double)x.y - 0.25 - 0.1 * sin(9 * (double)x.x));
}

static double share_sheet(int axis, fsi_vec3 x, const double *arg)
{
    return axis == 0 && fabs((double)x.x - arg[0]) < arg[1] ? 0.8 : 0;
}

/* R: each face by itself, and all together. */
static fsi_status answer(void *user, fsi_context *context, const double *impulse, double *change)
{
    world *w = (world *)user;
    const int n = w->list[0].faces->count;
    const double one = 0.5 / (1000 * pow((double)w->t.g->dx, 3));
    double sum = 0;
    int f;
    (void)context;
    w->calls++;
    for (f = 0; f < n; f++) sum += impulse[f];
    for (f = 0; f < n; f++) change[f] = one * (impulse[f] + sum / n);
    return FSI_OK;
}

static void add_bodies(world *w, int count, double radius, double density)
{
    int k;
    for (k = 0; k < count; k++) {
        const double arg[6] = { 0.2 + 0.15 * k, 0.5 + 0.03 * (k & 1), 0.4, radius, (double)w->t.g->dx, 3 },
            mass = density * 4 * FSI_PI / 3 * radius * radius * radius;
        solid_make(&w->b[k], &w->t, share_ball, arg);
        w->list[k] = body_of(&w->b[k], fsi_v3((fsi_real)arg[0], (fsi_real)arg[1], (fsi_real)arg[2]), mass,
                             0.4 * mass * radius * radius);
        w->list[k].linear = fsi_v3((fsi_real)0.1, (fsi_real)-0.2, 0);
    }
    w->bodies = count;
}

static void add_sheet(world *w)
{
    const double arg[2] = { 0.5, 0.6 * (double)w->t.g->dx };
    solid_make(w->b, &w->t, share_sheet, arg);
    w->list[0] = body_of(w->b, fsi_v3(0, 0, 0), 1, 1);
    w->list[0].coupled = 0;
    w->list[0].respond = answer;
    w->list[0].user = w;
    w->impulse = (double *)calloc((size_t)w->b->f.count, sizeof(double));
    w->list[0].face_impulse = w->impulse;
    w->bodies = 1;
}

/* Jumps of the density by 1000 across the surface; all is liquid. */
static void add_densities(world *w)
{
    const double arg[1] = { 3 };
    int a, i, j, k;
    for (a = 0; a < 3; a++) {
        CHECK(fsi_grid_add_field(w->t.g, (fsi_grid_place)(1 + a), 1, &w->t.beta[a]) == FSI_OK);
        EACH_FACE(&w->t, a, i, j, k)
            w->t.beta[a]->value[entry_of(&w->t, i, j, k)] = (fsi_real)(dam(middle(&w->t, 1 + a, i, j, k), arg) < 0
                                                                           ? 1e-3 : 1);
        w->t.f.inverse_density[a] = w->t.beta[a];
    }
}

/* A solver of the context's device, as the scene's. */
static fsi_status world_solver(world *w, const fsi_device *device, fsi_device_use use)
{
    fsi_pressure_desc d = fsi_pressure_default_desc();
    fsi_pressure_destroy(w->t.s);
    w->t.c.device = device;
    d.context = &w->t.c;
    d.tolerance = TOL(1e-10, 1e-5);
    d.device = use;
    return fsi_pressure_create(&w->t.s, &d);
}

static void world_velocity(world *w)
{
    uint64_t seed = 7;
    int a;
    size_t e;
    for (a = 0; a < w->t.g->dim; a++)
        for (e = 0; e < entries(&w->t); e++) w->t.f.u[a]->value[e] = (fsi_real)(test_random(&seed) - 0.5);
}

/* Must not move. */
static void world_make(world *w, int kind)
{
    const int dim = kind == AIR_2D ? 2 : 3;
    const double arg[1] = { (double)dim };
    int i, j, k;
    memset(w, 0, sizeof *w);
    scene_make(&w->t, dim, 20, 17, dim == 3 ? 13 : 1, 0.05);
    world_velocity(w);
    if (kind == AIR || kind == AIR_2D || kind == GUESS) scene_fill(&w->t, dam, arg);
    if (kind == DENSITIES) add_densities(w);
    if (kind == LIGHT) add_bodies(w, 1, 0.2, 10);
    if (kind == MANY) add_bodies(w, MOST_BODIES, 0.08, 20);
    if (kind == HEAVY) add_bodies(w, 2, 0.1, 4000);
    if (kind == YIELDS) add_sheet(w);
    if (kind == PIECES) {
        add_bodies(w, 1, 0.15, 50);
        EACH_CELL(&w->t, i, j, k) if (i == 12) w->t.cell[entry_of(&w->t, i, j, k)] = FSI_CELL_SOLID;
    }
    w->t.f.solids = w->bodies ? w->list : NULL;
    w->t.f.solid_count = w->bodies;
    w->t.f.use_guess = kind == GUESS;
    for (i = 0; kind == GUESS && i < (int)entries(&w->t); i++) w->t.f.pressure->value[i] = (fsi_real)(i % 7 - 3);
}

static void world_free(world *w)
{
    int k;
    for (k = 0; k < w->bodies; k++) solid_free(&w->b[k]);
    free(w->impulse);
    scene_free(&w->t);
}

/* All that a projection writes, but the time it took and who did it. */
static uint64_t world_hash(const world *w)
{
    const fsi_pressure_stats *s = &w->t.s->stats;
    const size_t bytes = entries(&w->t) * sizeof(fsi_real);
    uint64_t h = 1;
    int a, k;
    for (a = 0; a < w->t.g->dim; a++) h = fsi_hash(w->t.f.u[a]->value, bytes, h);
    h = fsi_hash(w->t.f.pressure->value, bytes, h);
    for (k = 0; k < w->bodies; k++) {
        const fsi_vec3 v[4] = { w->list[k].linear, w->list[k].angular, w->list[k].impulse, w->list[k].angular_impulse };
        h = fsi_hash(v, sizeof v, h);
    }
    if (w->impulse) h = fsi_hash(w->impulse, (size_t)w->b->f.count * sizeof(double), h);
    h = fsi_hash(&s->iters, sizeof s->iters, h);
    return fsi_hash(&s->divergence, sizeof s->divergence, h);
}

/* The hash after a projection of at most max_iters iterations (0: until it is good), and the status. */
static uint64_t projected(int kind, const fsi_device *device, fsi_device_use use, int max_iters, fsi_status *status,
                          fsi_pressure_stats *stats)
{
    world w;
    uint64_t h;
    world_make(&w, kind);
    CHECK(world_solver(&w, device, use) == FSI_OK);
    if (max_iters > 0) w.t.s->desc.max_iters = max_iters, w.t.s->desc.degrade = 1;
    *status = fsi_pressure_project(w.t.s, &w.t.f);
    *stats = w.t.s->stats;
    h = world_hash(&w);
    world_free(&w);
    return h;
}

static int on_gpu; /* which has no orders of blocks to choose from */

static fsi_device *device_of(int index, size_t limit)
{
    fsi_device *device;
    fsi_error why;
    if (on_gpu) index = 0;
    if (!CHECK(fsi_cuda_create(&device, index, limit, &why) == FSI_OK)) printf("   %s\n", why.message);
    return device;
}

/* ---- the same bits ---------------------------------------------------------------------------------------------- */

/* V-cycles alone are in the first iteration; rows, sums and all that the CPU shares in the whole. */
static void same_bits(int index, int max_iters, int only)
{
    fsi_device *device = device_of(index, 0);
    int kind;
    for (kind = 0; kind < WORLDS; kind++) {
        fsi_status cpu, gpu;
        fsi_pressure_stats a, b;
        uint64_t h, g;
        if (only >= 0 && kind != only) continue;
        h = projected(kind, NULL, FSI_DEVICE_AUTO, max_iters, &cpu, &a);
        g = projected(kind, device, FSI_DEVICE_ALWAYS, max_iters, &gpu, &b);
        CHECK(cpu == FSI_OK && gpu == FSI_OK && a.iters > 0 && !a.on_device && b.on_device && !b.device_failures);
        if (!CHECK(h == g)) printf("   world %d, device %d, %d iterations: %d, %d, divergence %g, %g\n", kind, index,
                                   max_iters, a.iters, b.iters, a.divergence, b.divergence);
    }
    fsi_cuda_destroy(device);
}

static void test_one_iteration_is_the_cpus_to_the_bit(void) { same_bits(0, 1, -1); same_bits(1, 1, -1); }
static void test_a_projection_is_the_cpus_to_the_bit(void) { same_bits(0, 0, -1); }
static void test_in_reverse_too(void) { same_bits(1, 0, -1); }
static void test_shuffled_too(void) { same_bits(3, 0, -1); same_bits(77, 0, MANY); }
static void test_blocks_in_threads_do_not_race(void)
{
    same_bits(2, 0, AIR);
    same_bits(2, 1, PIECES);
    same_bits(2, 1, YIELDS);
    same_bits(2, 2, MANY);
}

/* What an earlier projection left on the device does not show: another world's, and fewer unknowns. */
static void test_the_past_leaves_no_trace_on_a_device(void)
{
    fsi_device *device = device_of(0, 0);
    world w[2];
    int k, pass;
    for (k = 0; k < 2; k++) {
        world_make(&w[k], LIGHT);
        CHECK(world_solver(&w[k], k ? device : NULL, k ? FSI_DEVICE_ALWAYS : FSI_DEVICE_AUTO) == FSI_OK);
    }
    for (pass = 0; pass < 4; pass++) {
        for (k = 0; k < 2; k++) {
            int i, j, m;
            EACH_CELL(&w[k].t, i, j, m) /* the liquid falls, then is whole again; then no body */
                w[k].t.cell[entry_of(&w[k].t, i, j, m)] =
                    pass == 1 && j > 11 ? (unsigned char)FSI_CELL_AIR : (unsigned char)FSI_CELL_LIQUID;
            world_velocity(&w[k]);
            w[k].t.f.solid_count = pass < 3;
            w[k].t.f.same_equations = pass == 3;
            CHECK(fsi_pressure_project(w[k].t.s, &w[k].t.f) == FSI_OK && w[k].t.s->stats.on_device == k);
        }
        CHECK(world_hash(&w[0]) == world_hash(&w[1]));
    }
    for (k = 0; k < 2; k++) world_free(&w[k]);
    fsi_cuda_destroy(device);
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

/* As world_make left it, with the same solver. */
static void world_reset(world *w, const world *made)
{
    world_velocity(w);
    memcpy(w->list, made->list, sizeof w->list);
    memset(w->t.f.pressure->value, 0, entries(&w->t) * sizeof(fsi_real));
    if (w->impulse) memset(w->impulse, 0, (size_t)w->b->f.count * sizeof(double));
    memset(&w->t.s->stats, 0, sizeof w->t.s->stats);
}

/* Each allocation, copy and launch fails in turn, or one in `step`: the status is told, and nothing is changed. The
   next call finds the device as it was. */
static void failures(int kind, long long step)
{
    fsi_device *device = device_of(0, 0);
    fsi_cuda_report report;
    fsi_status status;
    fsi_pressure_stats stats;
    world w, made;
    long long k, calls;
    const uint64_t right = projected(kind, device, FSI_DEVICE_ALWAYS, 2, &status, &stats);
    calls = fsi__cuda_fail_at(device, 0);
    CHECK(status == FSI_OK && calls > 100);
    world_make(&w, kind);
    made = w;
    for (k = 1; k <= calls; k += step) {
        uint64_t before;
        CHECK(world_solver(&w, device, FSI_DEVICE_ALWAYS) == FSI_OK);
        w.t.s->desc.max_iters = 2, w.t.s->desc.degrade = 1;
        world_reset(&w, &made);
        before = world_hash(&w);
        fsi__cuda_fail_at(device, k);
        status = fsi_pressure_project(w.t.s, &w.t.f);
        stats = w.t.s->stats;
        memset(&w.t.s->stats, 0, sizeof w.t.s->stats);
        CHECK((status == FSI_ERROR_DEVICE || status == FSI_ERROR_MEMORY) && stats.device_failures && !stats.on_device);
        CHECK(world_hash(&w) == before && strstr(w.t.c.error.message, "device") && w.t.c.error.status == status);
        CHECK(fsi_pressure_project(w.t.s, &w.t.f) == FSI_OK && w.t.s->stats.on_device && world_hash(&w) == right);
    }
    world_free(&w);
    CHECK(fsi_cuda_stats(device, &report) == FSI_OK && report.bytes == 0 && report.peak_bytes > 0);
    fsi_cuda_destroy(device);
}

static void test_a_device_that_fails_gives_a_status_and_changes_nothing(void)
{
    const int rarely = TEST_SLOWED ? 7 : 1; /* each call of a kind is as the others */
    failures(AIR_2D, rarely);
    failures(LIGHT, 23 * rarely);
    failures(MANY, 197 * rarely);
    failures(YIELDS, 11 * rarely);
    failures(PIECES, 13 * rarely);
}

static void world_large(world *w, const fsi_device *device, int n)
{
    const double arg[2] = { 0.8, 0 };
    memset(w, 0, sizeof *w);
    scene_make(&w->t, 3, n, n, n, 1.0 / n);
    world_velocity(w);
    scene_fill(&w->t, pool, arg);
    CHECK(world_solver(w, device, FSI_DEVICE_AUTO) == FSI_OK);
    w->t.s->desc.max_iters = 2, w->t.s->desc.degrade = 1;
}

static int warnings;
static void hear(void *user, int level, const char *text)
{
    (void)user;
    warnings += level == 1 && strstr(text, "device") != NULL;
}

/* AUTO: large liquids go to the device, small ones do not; where it fails, the CPU does the whole call and says so. */
static void test_auto_takes_large_liquids_and_falls_back(void)
{
    fsi_device *device = device_of(0, 0);
    world small, cpu, gpu;
    uint64_t right;
    long long calls = 0;
    int k, n = 16;
    while (0.75 * n * n * n < (double)((const fsi_pressure_device *)device->table(device->user, FSI_PRESSURE_TABLE))
                                  ->smallest) n += 8;
    world_large(&small, device, 16);
    CHECK(fsi_pressure_project(small.t.s, &small.t.f) == FSI_OK && !small.t.s->stats.on_device);
    world_free(&small);
    world_large(&cpu, NULL, n);
    CHECK(fsi_pressure_project(cpu.t.s, &cpu.t.f) == FSI_OK && !cpu.t.s->stats.on_device);
    right = world_hash(&cpu);
    world_free(&cpu);
    for (k = -1; k < 5; k++) {
        world_large(&gpu, device, n);
        gpu.t.c.message = hear;
        warnings = 0;
        fsi__cuda_fail_at(device, k < 0 ? 0 : 1 + (calls - 1) * k / 4);
        CHECK(fsi_pressure_project(gpu.t.s, &gpu.t.f) == FSI_OK && world_hash(&gpu) == right);
        CHECK(gpu.t.s->stats.on_device == (k < 0) && gpu.t.s->stats.device_failures == (k >= 0));
        CHECK(warnings == (k >= 0));
        if (k < 0) calls = fsi__cuda_fail_at(device, 0);
        gpu.t.s->desc.device = FSI_DEVICE_NEVER;
        CHECK(fsi_pressure_project(gpu.t.s, &gpu.t.f) == FSI_OK && !gpu.t.s->stats.on_device);
        world_free(&gpu);
    }
    fsi__cuda_fail_at(device, 0);
    fsi_cuda_destroy(device);
}

/* The CPU goes on from where it would have begun: with bodies and a sheet, whose cells' numbers travel in an iteration,
   at full tolerance. The last calls fail too, by which all of x is another one. */
static void test_the_cpu_begins_anew_where_a_device_fails(void)
{
    static const int kinds[] = { LIGHT, HEAVY, YIELDS, AIR_2D };
    int i, k;
    for (i = 0; i < 4; i++) {
        fsi_device *device = device_of(0, 0);
        fsi_status status;
        fsi_pressure_stats stats;
        const uint64_t right = projected(kinds[i], NULL, FSI_DEVICE_AUTO, 0, &status, &stats);
        long long calls;
        ((fsi_pressure_device *)(uintptr_t)device->table(device->user, FSI_PRESSURE_TABLE))->smallest = 0;
        CHECK(projected(kinds[i], device, FSI_DEVICE_AUTO, 0, &status, &stats) == right && stats.on_device);
        calls = fsi__cuda_fail_at(device, 0);
        for (k = 0; k < 9; k++) {
            fsi__cuda_fail_at(device, k < 6 ? calls - 3 * k : 1 + calls * (k - 6) / 3);
            CHECK(projected(kinds[i], device, FSI_DEVICE_AUTO, 0, &status, &stats) == right);
            CHECK(status == FSI_OK && !stats.on_device && stats.device_failures == 1);
        }
        fsi_cuda_destroy(device);
    }
}

/* A host takes its device away: what was created with it goes on with it. */
static void test_a_solver_keeps_its_device(void)
{
    fsi_device *device = device_of(0, 0);
    world w;
    world_make(&w, LIGHT);
    CHECK(world_solver(&w, device, FSI_DEVICE_ALWAYS) == FSI_OK);
    w.t.c.device = NULL;
    CHECK(fsi_pressure_project(w.t.s, &w.t.f) == FSI_OK && w.t.s->stats.on_device);
    world_free(&w);
    fsi_cuda_destroy(device);
}

/* A limit below the need: the CPU, or MEMORY. One above it is kept. */
static void test_a_memory_limit_is_kept(void)
{
    fsi_device *device = device_of(0, 100000);
    fsi_cuda_report r;
    fsi_status status;
    fsi_pressure_stats s;
    projected(AIR, device, FSI_DEVICE_ALWAYS, 0, &status, &s);
    CHECK(status == FSI_ERROR_MEMORY && s.device_failures == 1);
    CHECK(fsi_cuda_stats(device, &r) == FSI_OK && r.memory_limit == 100000 && r.peak_bytes <= 100000 && r.bytes == 0);
    fsi_cuda_destroy(device);
    device = device_of(0, 8 << 20);
    projected(AIR, device, FSI_DEVICE_ALWAYS, 0, &status, &s);
    CHECK(status == FSI_OK && fsi_cuda_stats(device, &r) == FSI_OK && r.peak_bytes > 100000 && r.peak_bytes <= 8 << 20);
    fsi_cuda_destroy(device);
}

/* The host's allocations fail one after the other: nothing of the device is lost. */
static void test_the_hosts_memory_may_fail(void)
{
    fsi_device *device = device_of(0, 0);
    fsi_cuda_report r;
    long k, many = 0;
    for (k = 0; k <= many; k++) {
        world w;
        fsi_status status;
        world_make(&w, PIECES);
        fsi_pressure_destroy(w.t.s);
        w.t.s = NULL;
        test_fail_allocator(&w.t.c, k);
        status = world_solver(&w, device, FSI_DEVICE_ALWAYS);
        if (status == FSI_OK) {
            const uint64_t before = world_hash(&w);
            status = fsi_pressure_project(w.t.s, &w.t.f);
            memset(&w.t.s->stats, 0, sizeof w.t.s->stats);
            CHECK((status == FSI_OK) == (k == 0) && (k == 0 || world_hash(&w) == before));
        }
        CHECK(k == 0 ? status == FSI_OK : status == FSI_ERROR_MEMORY);
        if (k == 0) many = test_alloc_count();
        fsi_pressure_destroy(w.t.s);
        w.t.s = NULL;
        test_fail_allocator(&w.t.c, 0);
        w.t.c.alloc = NULL;
        w.t.c.release = NULL;
        world_free(&w);
    }
    CHECK(many > 10 && fsi_cuda_stats(device, &r) == FSI_OK && r.bytes == 0);
    fsi_cuda_destroy(device);
}

/* ---- use -------------------------------------------------------------------------------------------------------- */

static void test_bad_input_is_named(void)
{
    fsi_device *device = (fsi_device *)1, none;
    fsi_error why;
    fsi_cuda_report r;
    fsi_pressure *s;
    fsi_pressure_desc d = fsi_pressure_default_desc();
    fsi_context c = fsi_default_context();
    CHECK(fsi_cuda_create(NULL, 0, 0, &why) == FSI_ERROR_ARGUMENT && why.status == FSI_ERROR_ARGUMENT);
    CHECK(fsi_cuda_create(&device, -1, 0, &why) == FSI_ERROR_ARGUMENT && !device && why.element == -1);
    CHECK(fsi_cuda_create(&device, 100000, 0, NULL) == FSI_ERROR_ARGUMENT && !device);
    CHECK(strcmp(fsi_cuda_info(NULL), "no device") == 0 && fsi_cuda_stats(NULL, &r) == FSI_ERROR_COOKIE);
    CHECK(fsi_cuda_time(NULL, 1) == FSI_ERROR_COOKIE);
    fsi_cuda_destroy(NULL);
    device = device_of(0, 0);
    CHECK(fsi_cuda_stats(device, NULL) == FSI_ERROR_ARGUMENT && strlen(fsi_cuda_info(device)) > 4);
    CHECK(device->table(device->user, FSI_PRESSURE_TABLE) && !device->table(device->user, "fsi_pressure multigrid 0"));

    /* ALWAYS without a device; a device of another version; a number that is no use. */
    d.context = &c;
    d.device = FSI_DEVICE_ALWAYS;
    CHECK(fsi_pressure_create(&s, &d) == FSI_ERROR_DEVICE && !s && strstr(c.error.message, "ALWAYS"));
    none = *device;
    none.cookie ^= 1;
    c.device = &none;
    CHECK(fsi_pressure_create(&s, &d) == FSI_ERROR_COOKIE && !s && strstr(c.error.message, "device"));
    CHECK(strcmp(fsi_cuda_info(&none), "no device") == 0 && fsi_cuda_stats(&none, &r) == FSI_ERROR_COOKIE);
    c.device = NULL;
    d.device = FSI_DEVICE_AUTO;
    if (CHECK(fsi_pressure_create(&s, &d) == FSI_OK)) {
        world w;
        world_make(&w, AIR);
        s->desc.device = FSI_DEVICE_ALWAYS;
        CHECK(fsi_pressure_project(s, &w.t.f) == FSI_ERROR_DEVICE && strstr(c.error.message, "ALWAYS"));
        s->desc.device = (fsi_device_use)3;
        CHECK(fsi_pressure_project(s, &w.t.f) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "device"));
        world_free(&w);
    }
    fsi_pressure_destroy(s);
    fsi_cuda_destroy(device);
}

/* Launches, bytes and, where they are asked for, seconds. A sweep goes over each cell: 24 bytes. */
static void test_stats_say_what_a_device_did(void)
{
    fsi_device *device = device_of(0, 0);
    fsi_cuda_report r;
    fsi_status status;
    fsi_pressure_stats s;
    double seconds = 0, launches = 0;
    int k;
    projected(AIR, device, FSI_DEVICE_ALWAYS, 1, &status, &s);
    CHECK(status == FSI_OK && fsi_cuda_stats(device, &r) == FSI_OK && r.kernels > 20 && r.kernels <= 32);
    for (k = 0; k < r.kernels; k++) {
        seconds += r.kernel[k].seconds;
        launches += (double)r.kernel[k].launches;
        CHECK((r.kernel[k].launches > 0) == (r.kernel[k].bytes > 0) && strlen(r.kernel[k].name) > 2);
    }
    CHECK(seconds == 0 && launches > 50 && r.copies > 10 && r.sent > 1e5 && r.fetched > 1e4);
    CHECK(fsi_cuda_time(device, 1) == FSI_OK);
    projected(AIR, device, FSI_DEVICE_ALWAYS, 1, &status, &s);
    CHECK(fsi_cuda_stats(device, &r) == FSI_OK);
    for (k = 0, seconds = 0; k < r.kernels; k++) seconds += r.kernel[k].seconds;
    CHECK(status == FSI_OK && seconds > 0);
    fsi_cuda_destroy(device);
}

#if !defined(TEST_NO_THREADS)
/* A simulator's thread: its own context and solver, and with others the device. */
typedef struct runner { const fsi_device *device; uint64_t hash; int kind, ok; } runner;

static void *run_there(void *arg)
{
    runner *r = (runner *)arg;
    world *w = (world *)malloc(sizeof *w);
    world_make(w, r->kind);
    r->ok = world_solver(w, r->device, FSI_DEVICE_ALWAYS) == FSI_OK;
    w->t.s->desc.max_iters = 2, w->t.s->desc.degrade = 1;
    r->ok = r->ok && fsi_pressure_project(w->t.s, &w->t.f) == FSI_OK && w->t.s->stats.on_device;
    r->hash = world_hash(w);
    world_free(w);
    free(w);
    return NULL;
}

static void test_two_threads_share_a_device(void)
{
    fsi_device *device = device_of(0, 0);
    fsi_cuda_report report;
    runner r[2];
    pthread_t thread[2];
    int k;
    for (k = 0; k < 2; k++) {
        memset(&r[k], 0, sizeof r[k]);
        r[k].device = device;
        r[k].kind = k ? DENSITIES : HEAVY;
        CHECK(pthread_create(&thread[k], NULL, run_there, &r[k]) == 0);
    }
    for (k = 0; k < 2; k++) CHECK(pthread_join(thread[k], NULL) == 0);
    for (k = 0; k < 2; k++) {
        fsi_status status;
        fsi_pressure_stats s;
        CHECK(r[k].ok && r[k].hash == projected(r[k].kind, NULL, FSI_DEVICE_AUTO, 2, &status, &s));
    }
    CHECK(fsi_cuda_stats(device, &report) == FSI_OK && report.bytes == 0);
    fsi_cuda_destroy(device);
}
#endif

int main(int argc, char **argv)
{
    fsi_device *device;
    fsi_error why;
    if (fsi_cuda_create(&device, 0, 0, &why) == FSI_ERROR_DEVICE) {
        printf("skipped: no device (%s)\n", why.message);
        return 0;
    }
    printf("ok on %s\n", fsi_cuda_info(device));
    on_gpu = strncmp(fsi_cuda_info(device), "shim", 4) != 0;
    fsi_cuda_destroy(device);
    TEST_BEGIN(argc, argv);
    RUN(test_one_iteration_is_the_cpus_to_the_bit);
    RUN(test_a_projection_is_the_cpus_to_the_bit);
    RUN(test_in_reverse_too);
    RUN(test_shuffled_too);
    RUN(test_blocks_in_threads_do_not_race);
    RUN(test_the_past_leaves_no_trace_on_a_device);
    RUN(test_a_device_that_fails_gives_a_status_and_changes_nothing);
    RUN(test_auto_takes_large_liquids_and_falls_back);
    RUN(test_the_cpu_begins_anew_where_a_device_fails);
    RUN(test_a_solver_keeps_its_device);
    RUN(test_a_memory_limit_is_kept);
    RUN(test_the_hosts_memory_may_fail);
    RUN(test_bad_input_is_named);
    RUN(test_stats_say_what_a_device_did);
#if !defined(TEST_NO_THREADS)
    RUN(test_two_threads_share_a_device);
#endif
    return TEST_END();
}
