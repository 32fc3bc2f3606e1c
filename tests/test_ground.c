/* test_ground.c - the promises of fsi.h's ground, kept by a trivial simulator: drops that fall and bounce in a box.
   SPDX-License-Identifier: MIT

   The simulator is written the way all of fsi's simulators are: a desc with a cookie, an open struct, columns, scratch,
   chunked loops with ordered sums, substeps, a budget of iterations, one commit at the end of a step. So these tests
   show that the ground carries: commit and rollback, determinism, state, errors, memory. */
#define FSI_STATIC
#define FSI_IMPLEMENTATION
#include "../fsi.h"
#include "kit/test.h"

/* ---- the simulator -------------------------------------------------------------------------------------------- */

typedef struct drops_desc {
    uint32_t cookie;
    fsi_context *context;   /* NULL: malloc, one thread */
    fsi_box3 box;
    fsi_vec3 gravity;
    fsi_real restitution;   /* 0..1 */
    fsi_real drag;          /* 1/m: dv/dt = -drag * s * v, s the root mean square speed of all drops */
    fsi_real max_move;      /* m a substep, at most */
    int max_substeps, max_iterations;
} drops_desc;

typedef struct drops_stats {
    int substeps, iterations;
    int degraded;           /* 1: a budget was too small for the accuracy asked for */
    double seconds;
    long long allocs;       /* made by the last step */
} drops_stats;

typedef struct drops {
    uint32_t cookie;
    drops_desc desc;
    int count;
    const fsi_vec3 *x;
    fsi_vec3 *v, *force;    /* the caller may write these */
    fsi_real *colour;       /* user attribute, rides along */
    int *id;                /* stays with its drop */
    drops_stats stats;
    struct drops_impl *impl;
} drops;

typedef struct drops_impl {
    int capacity, next_id;
    double speed;           /* warm start of the drag's iteration */
    fsi__arena scratch;
} drops_impl;

enum { DROPS_GRAIN = 16 };

/* A fault to inject: this substep makes the velocity of this drop `value`. */
static struct { int on, substep, drop; double value; } fault;

static drops_desc drops_default_desc(void)
{
    drops_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('D', drops_desc);
    d.box.hi = fsi_v3(1, 1, 1);
    d.gravity = fsi_v3(0, 0, (fsi_real)-9.81);
    d.restitution = (fsi_real)0.5;
    d.drag = (fsi_real)0.1;
    d.max_move = (fsi_real)0.02;
    d.max_substeps = 100;
    d.max_iterations = 50;
    return d;
}

static fsi_status drops_create(drops **out, const drops_desc *desc)
{
    static const fsi__field rows[] = {
        FSI__FIELD(drops_desc, max_move, FSI__REAL, 0, FSI__HUGE, FSI__ABOVE),
        FSI__FIELD(drops_desc, max_substeps, FSI__INT, 0, FSI__HUGE, 0), FSI__FINITE(drops_desc, gravity)
    };
    static const fsi__where at = { "drops_create", "desc.", -1, 3 };
    const char *fn = at.function;
    fsi_context *c = desc && desc->cookie == FSI__COOKIE('D', drops_desc) ? desc->context : NULL;
    drops *d;
    if (!out || !desc) return fsi__fail(c, FSI_ERROR_ARGUMENT, fn, -1, 0, "out or desc is NULL");
    *out = NULL;
    if (desc->cookie != FSI__COOKIE('D', drops_desc)) return FSI_ERROR_COOKIE;
    if (c && c->cookie != FSI__COOKIE('c', fsi_context)) return FSI_ERROR_COOKIE;
    FSI__TRY(FSI__CHECK_TABLE(c, &at, desc, rows));
    d = (drops *)fsi__alloc(c, 1, sizeof *d + sizeof(drops_impl));
    if (!d) return fsi__fail(c, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for the simulator");
    d->cookie = FSI__COOKIE('d', drops);
    d->desc = *desc;
    d->impl = (drops_impl *)(void *)(d + 1);
    *out = d;
    return FSI_OK;
}

/* The table of drops. */
static int drops_columns(drops *d, fsi__column *c)
{
    c[0].array = (void **)(uintptr_t)&d->x;
    c[1].array = (void **)&d->v;
    c[2].array = (void **)&d->force;
    c[0].size = c[1].size = c[2].size = sizeof(fsi_vec3);
    c[3].array = (void **)&d->colour;
    c[3].size = sizeof(fsi_real);
    c[4].array = (void **)&d->id;
    c[4].size = sizeof(int);
    return 5;
}

static void drops_destroy(drops *d)
{
    fsi__column c[5];
    if (!d) return;
    fsi__free_columns(d->desc.context, c, drops_columns(d, c), d->impl->capacity);
    fsi__arena_free(d->desc.context, &d->impl->scratch);
    fsi__free(d->desc.context, d, 1, sizeof *d + sizeof(drops_impl));
}

static fsi_status drops_grow(drops *d, int want, const char *function)
{
    fsi__column c[5];
    int more = d->impl->capacity * 2 > want ? d->impl->capacity * 2 : want;
    if (want <= d->impl->capacity) return FSI_OK;
    return fsi__grow(d->desc.context, c, drops_columns(d, c), d->count, &d->impl->capacity, more, function);
}

static fsi_status drops_add(drops *d, const fsi_vec3 *x, int count)
{
    int i;
    fsi_status status;
    if (!d || d->cookie != FSI__COOKIE('d', drops)) return FSI_ERROR_COOKIE;
    for (i = 0; i < count; i++)
        if (!fsi_v3_is_finite(x[i]))
            return fsi__fail(d->desc.context, FSI_ERROR_NAN, "drops_add", i, 0, "drop %d is not finite", i);
    status = drops_grow(d, d->count + count, "drops_add");
    if (status != FSI_OK) return status;
    memcpy((fsi_vec3 *)(uintptr_t)d->x + d->count, x, (size_t)count * sizeof *x);
    for (i = d->count; i < d->count + count; i++) {
        d->v[i] = d->force[i] = fsi_v3(0, 0, 0);
        d->colour[i] = 0;
        d->id[i] = d->impl->next_id++;
    }
    d->count += count;
    return FSI_OK;
}

/* Removes one drop; the others keep their order. */
static fsi_status drops_remove(drops *d, int index)
{
    fsi__column c[5];
    int k, n;
    if (!d || d->cookie != FSI__COOKIE('d', drops)) return FSI_ERROR_COOKIE;
    if (index < 0 || index >= d->count)
        return fsi__fail(d->desc.context, FSI_ERROR_ARGUMENT, "drops_remove", index, d->count,
                         "there is no drop %d among %d", index, d->count);
    n = drops_columns(d, c);
    for (k = 0; k < n; k++) {
        unsigned char *row = (unsigned char *)*c[k].array + (size_t)index * c[k].size;
        memmove(row, row + c[k].size, (size_t)(d->count - 1 - index) * c[k].size);
    }
    d->count--;
    return FSI_OK;
}

/* What a step works on; published at its end. */
typedef struct drops_work {
    drops *d;
    fsi_vec3 *x, *v;
    double *sum;      /* one a chunk: of |v|^2 */
    int *bad;         /* one a chunk: first drop that is not finite, or -1 */
    fsi_real h, keep; /* seconds; what drag leaves of a velocity */
    double speed;
    int substep, iterations, degraded;
} drops_work;

static void drops_layout(drops_work *w, fsi__arena *a)
{
    size_t n = (size_t)w->d->count, chunks = (size_t)fsi__chunks(w->d->count, DROPS_GRAIN);
    w->x = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    w->v = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    w->sum = (double *)fsi__take(a, chunks, sizeof(double));
    w->bad = (int *)fsi__take(a, chunks, sizeof(int));
}

/* v* = v + h (g + f), and its part of sum |v*|^2. */
static void drops_push(void *arg, int chunk, int begin, int end)
{
    drops_work *w = (drops_work *)arg;
    double sum = 0;
    int i;
    for (i = begin; i < end; i++) {
        w->v[i] = fsi_v3_madd(w->v[i], w->h, fsi_v3_add(w->d->desc.gravity, w->d->force[i]));
        if (fault.on && fault.substep == w->substep && fault.drop == i) w->v[i].y = (fsi_real)fault.value;
        sum += (double)fsi_v3_norm2(w->v[i]);
    }
    w->sum[chunk] = sum;
}

static void drops_bounce(fsi_real *x, fsi_real *v, fsi_real lo, fsi_real hi, fsi_real restitution)
{
    if (*x >= lo && *x <= hi) return;
    *x = fsi_clamp(*x < lo ? lo + (lo - *x) : hi - (*x - hi), lo, hi);
    *v = -restitution * *v;
}

/* v = keep v*; x += h v, reflected at the walls. */
static void drops_move(void *arg, int chunk, int begin, int end)
{
    drops_work *w = (drops_work *)arg;
    const drops_desc *desc = &w->d->desc;
    int i;
    w->bad[chunk] = -1;
    for (i = end - 1; i >= begin; i--) {
        fsi_vec3 v = fsi_v3_scale(w->v[i], w->keep), x = fsi_v3_madd(w->x[i], w->h, v);
        if (!fsi_v3_is_finite(x) || !fsi_v3_is_finite(v)) w->bad[chunk] = i;
        drops_bounce(&x.x, &v.x, desc->box.lo.x, desc->box.hi.x, desc->restitution);
        drops_bounce(&x.y, &v.y, desc->box.lo.y, desc->box.hi.y, desc->restitution);
        drops_bounce(&x.z, &v.z, desc->box.lo.z, desc->box.hi.z, desc->restitution);
        w->x[i] = x;
        w->v[i] = v;
    }
}

/* Implicit drag: the new speed s satisfies s = S/(1 + h drag s), S the speed before; by fixed-point iteration. */
static void drops_solve_drag(drops_work *w)
{
    const drops_desc *desc = &w->d->desc;
    double total = 0, before, next = w->speed, s, hk = (double)(w->h * desc->drag);
    int c, k;
    for (c = 0; c < fsi__chunks(w->d->count, DROPS_GRAIN); c++) total += w->sum[c];
    before = sqrt(total / w->d->count);
    for (k = 0, s = next + 1; k < desc->max_iterations && !(fabs(next - s) <= 1e-14 * before); k++, w->iterations++) {
        s = next;
        next = before / (1 + hk * s);
    }
    if (!(fabs(next - s) <= 1e-14 * before)) w->degraded = 1;
    w->speed = next;
    w->keep = (fsi_real)(1 / (1 + hk * next));
}

static fsi_status drops_substep(drops_work *w)
{
    fsi_context *context = w->d->desc.context;
    int c;
    fsi__parallel(context, w->d->count, DROPS_GRAIN, drops_push, w);
    drops_solve_drag(w);
    fsi__parallel(context, w->d->count, DROPS_GRAIN, drops_move, w);
    for (c = 0; c < fsi__chunks(w->d->count, DROPS_GRAIN); c++)
        if (w->bad[c] >= 0)
            return fsi__fail(context, FSI_ERROR_NAN, "drops_step", w->bad[c], w->substep,
                             "drop %d is not finite in substep %d", w->bad[c], w->substep);
    return FSI_OK;
}

static fsi_status drops_check(drops *d, fsi_real dt)
{
    int i;
    if (!d || d->cookie != FSI__COOKIE('d', drops)) return FSI_ERROR_COOKIE;
    if (!(dt > 0) || !fsi_is_finite((double)dt))
        return fsi__fail(d->desc.context, FSI_ERROR_ARGUMENT, "drops_step", -1, (double)dt, "dt is %g, must be > 0",
                         (double)dt);
    for (i = 0; i < d->count; i++)
        if (!fsi_v3_is_finite(d->force[i]) || !fsi_v3_is_finite(d->v[i]))
            return fsi__fail(d->desc.context, FSI_ERROR_NAN, "drops_step", i, 0,
                             "force or velocity of drop %d is not finite", i);
    return FSI_OK;
}

/* Substeps so that no drop moves farther than max_move in one. */
static int drops_count_substeps(drops_work *w, fsi_real dt)
{
    const drops_desc *desc = &w->d->desc;
    double top = 0, want;
    int i;
    for (i = 0; i < w->d->count; i++)
        top = top > (double)fsi_v3_norm(w->d->v[i]) ? top : (double)fsi_v3_norm(w->d->v[i]);
    want = ceil((top + (double)(fsi_v3_norm(desc->gravity) * dt)) * (double)dt / (double)desc->max_move);
    if (want > desc->max_substeps) w->degraded = 1;
    return want < 1 ? 1 : want > desc->max_substeps ? desc->max_substeps : (int)want;
}

static fsi_status drops_step(drops *d, fsi_real dt)
{
    fsi__arena measure;
    drops_work w;
    fsi_status status = drops_check(d, dt);
    long long allocs = status == FSI_OK && d->desc.context ? d->desc.context->allocs : 0;
    double start;
    int n;
    if (status != FSI_OK) return status;
    start = fsi__now(d->desc.context);
    memset(&measure, 0, sizeof measure);
    memset(&w, 0, sizeof w);
    w.d = d;
    drops_layout(&w, &measure);
    if (!fsi__arena_reserve(d->desc.context, &d->impl->scratch, measure.used))
        return fsi__fail(d->desc.context, FSI_ERROR_MEMORY, "drops_step", -1, (double)measure.used,
                         "no memory to step %d drops", d->count);
    drops_layout(&w, &d->impl->scratch);
    w.speed = d->impl->speed;
    if (d->count) memcpy(w.x, d->x, (size_t)d->count * sizeof *d->x);
    if (d->count) memcpy(w.v, d->v, (size_t)d->count * sizeof *d->v);
    n = drops_count_substeps(&w, dt);
    w.h = dt / (fsi_real)n;
    for (; w.substep < n && d->count; w.substep++) {
        status = drops_substep(&w);
        if (status != FSI_OK) return status;
    }
    /* commit */
    if (d->count) memcpy((fsi_vec3 *)(uintptr_t)d->x, w.x, (size_t)d->count * sizeof *d->x);
    if (d->count) memcpy(d->v, w.v, (size_t)d->count * sizeof *d->v);
    d->impl->speed = w.speed;
    d->stats.substeps = n;
    d->stats.iterations = w.iterations;
    d->stats.degraded = w.degraded;
    d->stats.seconds = fsi__now(d->desc.context) - start;
    d->stats.allocs = d->desc.context ? d->desc.context->allocs - allocs : 0;
    return FSI_OK;
}

/* The bytes of the state, in order: used to measure, write, read and hash. */
static void drops_state(fsi__stream *st, void *simulator)
{
    drops *d = (drops *)simulator;
    size_t n = (size_t)d->count;
    fsi__bytes(st, &d->count, sizeof d->count);
    fsi__bytes(st, &d->impl->next_id, sizeof d->impl->next_id);
    fsi__bytes(st, &d->impl->speed, sizeof d->impl->speed);
    fsi__bytes(st, (fsi_vec3 *)(uintptr_t)d->x, n * sizeof *d->x);
    fsi__bytes(st, d->v, n * sizeof *d->v);
    fsi__bytes(st, d->colour, n * sizeof *d->colour);
    fsi__bytes(st, d->id, n * sizeof *d->id);
}

static uint64_t drops_hash(drops *d) { return fsi__state_hash(drops_state, d); }

static fsi_status drops_save(drops *d, void *buffer, size_t capacity, size_t *size)
{
    if (!d || d->cookie != FSI__COOKIE('d', drops)) return FSI_ERROR_COOKIE;
    return fsi__save(d->desc.context, d->cookie, drops_state, d, buffer, capacity, size, "drops_save");
}

static fsi_status drops_load(drops *d, const void *buffer, size_t size)
{
    fsi__stream st, peek;
    fsi_status status;
    int count = 0;
    if (!d || d->cookie != FSI__COOKIE('d', drops)) return FSI_ERROR_COOKIE;
    status = fsi__load_begin(d->desc.context, d->cookie, buffer, size, &st, "drops_load");
    if (status != FSI_OK) return status;
    peek = st;
    fsi__bytes(&peek, &count, sizeof count);
    if (!peek.ok || count < 0 ||
        st.capacity != 16 + (size_t)count * (2 * sizeof(fsi_vec3) + sizeof(fsi_real) + sizeof(int)))
        return fsi__fail(d->desc.context, FSI_ERROR_FORMAT, "drops_load", -1, count, "%d drops do not fill the state",
                         count);
    status = drops_grow(d, count, "drops_load");
    if (status != FSI_OK) return status;
    d->count = count;
    drops_state(&st, d);
    return FSI_OK;
}

/* ---- scenes and snapshots ------------------------------------------------------------------------------------- */

enum { DROPS = 200 };

static void scatter(fsi_vec3 *x, int n, uint64_t seed)
{
    int i;
    for (i = 0; i < n; i++) {
        x[i].x = (fsi_real)test_random(&seed);
        x[i].y = (fsi_real)test_random(&seed);
        x[i].z = (fsi_real)test_random(&seed);
    }
}

/* `n` drops in a unit box with random velocities. */
static drops *make_drops(fsi_context *context, int n)
{
    drops_desc desc = drops_default_desc();
    fsi_vec3 x[DROPS];
    drops *d;
    desc.context = context;
    if (!CHECK(drops_create(&d, &desc) == FSI_OK)) exit(1);
    scatter(x, n, 1);
    CHECK(drops_add(d, x, n) == FSI_OK);
    scatter(d->v, n, 2);
    return d;
}

static uint64_t hash_after(fsi_context *context, int steps)
{
    drops *d = make_drops(context, DROPS);
    uint64_t h;
    int k;
    for (k = 0; k < steps; k++) CHECK(drops_step(d, (fsi_real)0.02) == FSI_OK);
    h = drops_hash(d);
    drops_destroy(d);
    return h;
}

/* Every byte that a caller can see. */
typedef struct snapshot {
    drops self;
    fsi_vec3 x[DROPS], v[DROPS], force[DROPS];
    fsi_real colour[DROPS];
    int id[DROPS];
    uint64_t hash;
} snapshot;

static void take_snapshot(snapshot *s, drops *d)
{
    size_t n = (size_t)d->count;
    memset(s, 0, sizeof *s);
    memcpy(&s->self, d, sizeof *d);
    if (n == 0) return;
    memcpy(s->x, d->x, n * sizeof *d->x);
    memcpy(s->v, d->v, n * sizeof *d->v);
    memcpy(s->force, d->force, n * sizeof *d->force);
    memcpy(s->colour, d->colour, n * sizeof *d->colour);
    memcpy(s->id, d->id, n * sizeof *d->id);
    s->hash = drops_hash(d);
}

/* The arrays may have moved (a failed call may have reserved memory), their contents not. */
static int same_as_snapshot(const snapshot *before, drops *d)
{
    snapshot now;
    take_snapshot(&now, d);
    now.self.x = before->self.x;
    now.self.v = before->self.v;
    now.self.force = before->self.force;
    now.self.colour = before->self.colour;
    now.self.id = before->self.id;
    return memcmp(before, &now, sizeof now) == 0;
}

/* ---- tests: physics ------------------------------------------------------------------------------------------- */

/* Without drag, n substeps of symplectic Euler give x = v t + g t^2/2 (1 + 1/n) exactly. */
static void test_drops_fall_by_gravity(void)
{
    drops_desc desc = drops_default_desc();
    fsi_vec3 x0 = fsi_v3((fsi_real)0.5, (fsi_real)0.5, (fsi_real)0.9);
    const double t = 0.25;
    double n;
    drops *d;
    desc.drag = 0;
    CHECK(drops_create(&d, &desc) == FSI_OK);
    CHECK(drops_add(d, &x0, 1) == FSI_OK);
    d->v[0].x = 1;
    CHECK(drops_step(d, (fsi_real)t) == FSI_OK);
    n = d->stats.substeps;
    CHECK(n > 10);
    CHECK(!d->stats.degraded);
    CHECK_NEAR(d->x[0].x, 0.75, TOL(1e-14, 1e-6));
    CHECK_NEAR(d->x[0].z, 0.9 - 9.81 * t * t / 2 * (1 + 1 / n), TOL(1e-14, 1e-6));
    CHECK_NEAR(d->v[0].z, -9.81 * t, TOL(1e-14, 1e-5));
    drops_destroy(d);
}

static void test_drops_stay_in_the_box_and_lose_energy(void)
{
    fsi_context c = fsi_default_context();
    drops *d = make_drops(&c, DROPS);
    double energy = 0, start = 0;
    int i, k, out = 0;
    for (k = 0; k <= 100; k++) {
        for (i = 0, energy = 0; i < d->count; i++) {
            energy += 0.5 * (double)fsi_v3_norm2(d->v[i]) + 9.81 * (double)d->x[i].z;
            out += !(d->x[i].x >= 0 && d->x[i].x <= 1 && d->x[i].y >= 0 && d->x[i].y <= 1 && d->x[i].z >= 0 &&
                     d->x[i].z <= 1);
        }
        if (k == 0) start = energy;
        CHECK(drops_step(d, (fsi_real)0.02) == FSI_OK);
    }
    CHECK(out == 0);
    CHECK(energy < 0.2 * start);
    drops_destroy(d);
}

/* ---- tests: budget, attributes, adding and removing ----------------------------------------------------------- */

static void test_a_small_budget_degrades_and_says_so(void)
{
    fsi_context c = fsi_default_context();
    drops *d = make_drops(&c, DROPS);
    CHECK(drops_step(d, (fsi_real)0.01) == FSI_OK && !d->stats.degraded && d->stats.iterations > d->stats.substeps);
    d->desc.max_iterations = 1;
    d->desc.drag = 10;
    CHECK(drops_step(d, (fsi_real)0.01) == FSI_OK && d->stats.degraded && d->stats.iterations == d->stats.substeps);
    d->desc.max_iterations = 50;
    d->desc.max_substeps = 3;
    CHECK(drops_step(d, 1) == FSI_OK && d->stats.degraded && d->stats.substeps == 3);
    drops_destroy(d);
}

static void test_attributes_and_ids_ride_along(void)
{
    fsi_context c = fsi_default_context();
    drops *d = make_drops(&c, 50);
    fsi_vec3 more[50];
    int i, k;
    for (i = 0; i < d->count; i++) d->colour[i] = (fsi_real)d->id[i] / 2;
    for (k = 0; k < 10; k++) {
        CHECK(drops_remove(d, (7 * k) % d->count) == FSI_OK);
        CHECK(drops_step(d, (fsi_real)0.01) == FSI_OK);
        scatter(more, k, 3);
        CHECK(drops_add(d, more, k) == FSI_OK);
        for (i = d->count - k; i < d->count; i++) d->colour[i] = (fsi_real)d->id[i] / 2;
    }
    CHECK(d->count == 50 - 10 + 45);
    for (i = 0; i < d->count; i++) {
        CHECK_NEAR(d->colour[i], d->id[i] / 2.0, 0);
        CHECK(i == 0 || d->id[i] > d->id[i - 1]);
    }
    CHECK(drops_remove(d, d->count) == FSI_ERROR_ARGUMENT && drops_remove(d, -1) == FSI_ERROR_ARGUMENT);
    while (d->count) CHECK(drops_remove(d, 0) == FSI_OK);
    CHECK(drops_step(d, 1) == FSI_OK);
    drops_destroy(d);
}

/* ---- tests: commit and rollback ------------------------------------------------------------------------------- */

/* A life in which every call may fail; returns how many did. A call that fails must change nothing; tried again with
   memory, it works. */
static int live_with_failures(long fail_at)
{
    static unsigned char buffer[65536];
    fsi_context c = fsi_default_context();
    drops_desc desc = drops_default_desc();
    fsi_vec3 x[DROPS];
    drops *d = NULL;
    snapshot before;
    size_t size = 0;
    int failures = 0, stage;
    scatter(x, DROPS, 1);
    desc.context = &c;
    test_fail_allocator(&c, fail_at);
    if (drops_create(&d, &desc) == FSI_ERROR_MEMORY) {
        CHECK(d == NULL && c.error.status == FSI_ERROR_MEMORY);
        test_fail_allocator(&c, 0);
        failures++;
        CHECK(drops_create(&d, &desc) == FSI_OK);
    }
    for (stage = 0; stage < 6; stage++) {
        fsi_status status = FSI_OK;
        int try_again;
        for (try_again = 1; try_again >= 0; try_again--) {
            take_snapshot(&before, d);
            if (stage == 0) status = drops_add(d, x, 10);
            else if (stage == 1) status = drops_step(d, (fsi_real)0.02);
            else if (stage == 2) status = drops_save(d, buffer, sizeof buffer, &size);
            else if (stage == 3) status = drops_add(d, x + 10, DROPS - 10);
            else if (stage == 4) status = drops_step(d, (fsi_real)0.02);
            else status = drops_load(d, buffer, size);
            if (status == FSI_OK) break;
            CHECK(status == FSI_ERROR_MEMORY && try_again);
            CHECK(same_as_snapshot(&before, d));
            test_fail_allocator(&c, 0);
            failures++;
        }
    }
    CHECK(d->count == 10);
    drops_destroy(d);
    CHECK(c.bytes == 0 && test_live_bytes() == 0);
    return failures;
}

static void test_every_allocation_failed_in_turn(void)
{
    long k = 1;
    while (live_with_failures(k)) k++;
    CHECK(k > 12); /* one simulator, two scratch blocks, two times five columns */
}

/* NaN and infinity are injected in the first, a middle and the last substep. */
static void test_nan_in_any_substep_changes_nothing(void)
{
    static const int drop[3] = { 0, 77, DROPS - 1 };
    static unsigned char buffer[65536];
    fsi_context c = fsi_default_context();
    drops *d = make_drops(&c, DROPS);
    snapshot before;
    size_t size;
    int k, n;
    CHECK(drops_save(d, buffer, sizeof buffer, &size) == FSI_OK);
    CHECK(drops_step(d, (fsi_real)0.05) == FSI_OK);
    n = d->stats.substeps; /* the step that is about to fail has as many */
    CHECK(n > 3);
    CHECK(drops_load(d, buffer, size) == FSI_OK);
    take_snapshot(&before, d);
    for (k = 0; k < 12; k++) {
        fault.on = 1;
        fault.drop = drop[k % 3];
        fault.substep = k / 3 == 0 ? 0 : k / 3 == 1 ? n / 2 : n - 1;
        fault.value = k / 3 < 3 ? test_nan() : test_inf();
        CHECK(drops_step(d, (fsi_real)0.05) == FSI_ERROR_NAN);
        CHECK(same_as_snapshot(&before, d));
        CHECK(c.error.status == FSI_ERROR_NAN && strcmp(c.error.function, "drops_step") == 0 &&
              c.error.value == fault.substep);
        fault.on = 0;
    }
    d->force[5].x = (fsi_real)test_nan();
    CHECK(drops_step(d, (fsi_real)0.05) == FSI_ERROR_NAN && c.error.element == 5);
    d->force[5].x = FSI_REAL_MAX;
    CHECK(drops_step(d, 1000) == FSI_ERROR_NAN); /* h f overflows */
    d->force[5].x = 0;
    CHECK(same_as_snapshot(&before, d));
    CHECK(drops_step(d, (fsi_real)0.05) == FSI_OK);
    drops_destroy(d);
}

static void test_bad_arguments_are_refused(void)
{
    fsi_context c = fsi_default_context();
    drops *d = make_drops(&c, 20);
    fsi_vec3 x = fsi_v3(0, (fsi_real)test_inf(), 0);
    snapshot before;
    size_t size = 0;
    take_snapshot(&before, d);
    CHECK(drops_step(d, 0) == FSI_ERROR_ARGUMENT);
    CHECK(drops_step(d, -1) == FSI_ERROR_ARGUMENT);
    CHECK(drops_step(d, (fsi_real)test_nan()) == FSI_ERROR_ARGUMENT);
    CHECK(drops_step(d, (fsi_real)test_inf()) == FSI_ERROR_ARGUMENT);
    CHECK(drops_step(NULL, 1) == FSI_ERROR_COOKIE);
    CHECK(drops_add(d, &x, 1) == FSI_ERROR_NAN && c.error.element == 0);
    CHECK(drops_save(d, NULL, 0, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(drops_save(d, &x, sizeof x, &size) == FSI_ERROR_LIMIT && size > sizeof x);
    CHECK(drops_load(d, NULL, 100) == FSI_ERROR_ARGUMENT);
    CHECK(same_as_snapshot(&before, d));
    drops_destroy(d);
    drops_destroy(NULL);
}

/* ---- tests: determinism --------------------------------------------------------------------------------------- */

static void test_any_number_of_threads_gives_the_same_bits(void)
{
    static const int threads[4] = { 1, 2, 3, 7 };
    fsi_context c = fsi_default_context();
    uint64_t serial = hash_after(&c, 20), no_context = hash_after(NULL, 20);
    int k, rep;
    CHECK(serial == no_context);
    for (k = 0; k < 4; k++) {
        test_threads(&c, threads[k], 0);
        CHECK(hash_after(&c, 20) == serial);
        for (rep = 0; rep < 3; rep++) {
            test_threads(&c, threads[k], 1);
            CHECK(hash_after(&c, 20) == serial);
        }
    }
    CHECK(hash_after(&c, 21) != serial);
}

/* A host's scheduler that runs the tasks backwards, and counts them. */
static int tasks_run;
static void run_backwards(void *user, int count, void (*task)(void *arg, int index), void *arg)
{
    (void)user;
    tasks_run += count;
    while (count-- > 0) task(arg, count);
}

static void test_the_hosts_scheduler_runs_the_tasks(void)
{
    fsi_context c = fsi_default_context();
    uint64_t serial = hash_after(&c, 2);
    c.parallel_for = run_backwards;
    CHECK(hash_after(&c, 2) == serial);
    CHECK(tasks_run > 0 && tasks_run % (2 * fsi__chunks(DROPS, DROPS_GRAIN)) == 0);
}

static void run_alone(void *arg, int index)
{
    fsi_context c = fsi_default_context();
    ((uint64_t *)arg)[index] = hash_after(index % 2 ? &c : NULL, 10);
}

/* No globals: whole simulators run in different threads at once (a race would show under ThreadSanitizer). */
static void test_simulators_in_different_threads(void)
{
    fsi_context c = fsi_default_context();
    uint64_t hash[8], serial = hash_after(&c, 10);
    int k;
    test_threads(&c, 4, 0);
    c.parallel_for(c.user, 8, run_alone, hash);
    for (k = 0; k < 8; k++) CHECK(hash[k] == serial);
}

/* Marks its range; the chunks must tile 0..count-1. */
typedef struct marks { int seen[500], count, grain; } marks;
static void mark(void *arg, int chunk, int begin, int end)
{
    marks *m = (marks *)arg;
    int i;
    for (i = begin; i < end; i++) m->seen[i] += 1 + 1000 * (begin != chunk * m->grain || end - begin > m->grain);
}

static void test_chunks_tile_the_range_for_any_threads(void)
{
    static const int counts[7] = { 0, 1, 2, 16, 17, 255, 500 }, grains[5] = { 1, 3, 16, 499, 1000000000 };
    fsi_context c = fsi_default_context();
    marks m;
    int a, b, i, bad = 0, mode;
    for (mode = 0; mode < 3; mode++) {
        if (mode) test_threads(&c, 3, mode == 2);
        for (a = 0; a < 7; a++) for (b = 0; b < 5; b++) {
            memset(&m, 0, sizeof m);
            m.count = counts[a];
            m.grain = grains[b];
            fsi__parallel(&c, m.count, m.grain, mark, &m);
            for (i = 0; i < 500; i++) bad += m.seen[i] != (i < m.count);
        }
    }
    CHECK(bad == 0);
    CHECK(fsi__chunks(2147483647, 1024) == 2097152 && fsi__chunks(0, 5) == 0 && fsi__chunks(-3, 5) == 0);
}

static void test_no_simulator_says_where_to_read_why(void)
{
    fsi_context c = fsi_default_context();
    CHECK(fsi__error_of(&c) == &c.error);
    CHECK(fsi__error_of(NULL)->status != FSI_OK &&
          strstr(fsi__error_of(NULL)->message, "context.error.message") != NULL);
    CHECK(fsi__error_of(NULL)->element == -1 && fsi__error_of(NULL)->function[0] == 0);
}

static void test_build_info_tells_precision_and_contraction(void)
{
    CHECK(strstr(fsi_build_info(), "fsi " FSI_VERSION_STRING " ") == fsi_build_info());
    CHECK(strstr(fsi_build_info(), TOL(" double ", " float ")) != NULL);
    CHECK(strstr(fsi_build_info(), "contract=0") != NULL);
    CHECK(strstr(fsi_build_info(), "lanes=8") != NULL);
    CHECK(fsi_version() == FSI_VERSION);
}

/* ---- tests: saved state --------------------------------------------------------------------------------------- */

static void test_save_load_continue_equals_continue(void)
{
    static unsigned char buffer[65536];
    fsi_context c = fsi_default_context();
    drops *a = make_drops(&c, DROPS), *b = make_drops(&c, 3);
    size_t size = 0, again = 0;
    int k;
    for (k = 0; k < 5; k++) CHECK(drops_step(a, (fsi_real)0.02) == FSI_OK);
    CHECK(drops_save(a, NULL, 0, &size) == FSI_OK);
    CHECK(drops_save(a, buffer + 3, size, &again) == FSI_OK && again == size); /* need not be aligned */
    CHECK(drops_load(b, buffer + 3, size) == FSI_OK);
    CHECK(drops_hash(a) == drops_hash(b) && a->count == b->count);
    for (k = 0; k < 5; k++) CHECK(drops_step(a, (fsi_real)0.02) == FSI_OK && drops_step(b, (fsi_real)0.02) == FSI_OK);
    CHECK(drops_hash(a) == drops_hash(b));
    CHECK(drops_load(a, buffer + 3, size) == FSI_OK); /* back in time */
    for (k = 0; k < 5; k++) CHECK(drops_step(a, (fsi_real)0.02) == FSI_OK);
    CHECK(drops_hash(a) == drops_hash(b));
    drops_destroy(a);
    drops_destroy(b);
    CHECK(c.bytes == 0);
}

static void test_damaged_truncated_and_foreign_states_are_refused(void)
{
    static unsigned char good[4096], bad[4200];
    static const unsigned char flips[3] = { 1, 0x80, 0xff };
    fsi_context c = fsi_default_context();
    drops *d = make_drops(&c, 10);
    snapshot before;
    size_t size = 0, k;
    int f;
    CHECK(drops_save(d, good, sizeof good, &size) == FSI_OK);
    CHECK(drops_step(d, (fsi_real)0.02) == FSI_OK);
    take_snapshot(&before, d);
    for (k = 0; k < size; k++) for (f = 0; f < 3; f++) {
        memcpy(bad, good, size);
        bad[k] = (unsigned char)(bad[k] ^ flips[f]);
        CHECK(drops_load(d, bad, size) == FSI_ERROR_FORMAT);
    }
    for (k = 0; k < size; k++) { /* blocks of exactly k bytes, so that a sanitizer sees any look behind the end */
        void *cut = malloc(k + (k == 0));
        if (!CHECK(cut != NULL)) return;
        memcpy(cut, good, k);
        CHECK(drops_load(d, cut, k) == FSI_ERROR_FORMAT);
        free(cut);
    }
    memcpy(bad, good, size);
    CHECK(drops_load(d, bad, size + 100) == FSI_ERROR_FORMAT);
    CHECK(same_as_snapshot(&before, d));
    d->cookie ^= 1; /* the state of another kind of simulator */
    CHECK(fsi__save(&c, d->cookie, drops_state, d, bad, sizeof bad, &size, "") == FSI_OK);
    d->cookie ^= 1;
    CHECK(drops_load(d, bad, size) == FSI_ERROR_FORMAT && strstr(c.error.message, "another simulator") != NULL);
    CHECK(same_as_snapshot(&before, d));
    CHECK(drops_load(d, good, size) == FSI_OK);
    drops_destroy(d);
}

/* A stream stops at its end, reading and writing, and says so. */
static void test_streams_do_not_run_over(void)
{
    unsigned char data[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, out[8] = { 0 };
    fsi__stream st;
    int mode;
    for (mode = FSI__WRITE; mode <= FSI__READ; mode++) {
        memset(&st, 0, sizeof st);
        st.ok = 1;
        st.mode = mode;
        st.data = data;
        st.capacity = 6;
        fsi__bytes(&st, out, 4);
        CHECK(st.ok && st.used == 4);
        fsi__bytes(&st, out, 3);
        CHECK(!st.ok && st.used == 4);
    }
    CHECK(data[0] == 0 && data[3] == 0 && data[4] == 5 && data[6] == 7);
}

static void test_hash_sees_every_byte(void)
{
    unsigned char data[40];
    uint64_t h[41], state = 7;
    fsi_context c = fsi_default_context();
    drops *d = make_drops(&c, 20);
    uint64_t before = drops_hash(d);
    int i, k, bit, equal = 0;
    for (k = 0; k < 40; k++) data[k] = (unsigned char)(256 * test_random(&state));
    for (k = 0; k <= 40; k++) h[k] = fsi_hash(data, (size_t)k, 5);
    for (k = 0; k <= 40; k++) for (i = 0; i < k; i++) equal += h[i] == h[k];
    for (k = 0; k < 40; k++) for (bit = 0; bit < 8; bit++) {
        data[k] = (unsigned char)(data[k] ^ (1 << bit));
        equal += fsi_hash(data, 40, 5) == h[40];
        data[k] = (unsigned char)(data[k] ^ (1 << bit));
    }
    for (k = 1; k <= 40; k++) {
        data[k - 1] ^= 0x80; /* the last byte, and the sign of any two doubles */
        equal += fsi_hash(data, (size_t)k, 5) == h[k];
        for (i = 7; i < k - 1; i += 8) {
            data[i] ^= 0x80;
            equal += fsi_hash(data, (size_t)k, 5) == h[k];
            data[i] ^= 0x80;
        }
        data[k - 1] ^= 0x80;
    }
    CHECK(equal == 0);
    CHECK(fsi_hash(data, 40, 5) == h[40] && fsi_hash(data, 40, 6) != h[40]);
    CHECK(fsi_hash(NULL, 0, 1) != fsi_hash(NULL, 0, 2));
    d->v[13].y = -d->v[13].y;
    CHECK(drops_hash(d) != before);
    d->v[13].y = -d->v[13].y;
    CHECK(drops_hash(d) == before);
    d->colour[19] = 1;
    CHECK(drops_hash(d) != before);
    drops_destroy(d);
}

/* ---- tests: cookies, errors, messages ------------------------------------------------------------------------- */

static void test_unfilled_and_foreign_structs_are_refused(void)
{
    fsi_context c = fsi_default_context(), empty;
    drops_desc desc = drops_default_desc(), zero;
    drops *d = NULL, foreign;
    memset(&zero, 0, sizeof zero);
    memset(&empty, 0, sizeof empty);
    memset(&foreign, 0, sizeof foreign);
    CHECK(drops_create(&d, &zero) == FSI_ERROR_COOKIE && !d);
    CHECK(drops_create(&d, NULL) == FSI_ERROR_ARGUMENT && !d);
    CHECK(drops_create(NULL, &desc) == FSI_ERROR_ARGUMENT);
    desc.context = &empty; /* a context that fsi_default_context did not fill */
    CHECK(drops_create(&d, &desc) == FSI_ERROR_COOKIE && !d);
    desc.context = &c;
    desc.cookie ^= 1; /* another version */
    CHECK(drops_create(&d, &desc) == FSI_ERROR_COOKIE && !d);
    foreign.cookie = FSI__COOKIE('D', drops_desc); /* another type */
    CHECK(drops_step(&foreign, 1) == FSI_ERROR_COOKIE);
    CHECK(drops_add(&foreign, NULL, 0) == FSI_ERROR_COOKIE);
    CHECK(c.allocs == 0);
}

/* Kinds, layouts, precisions and versions have cookies of their own. */
static void test_cookies_differ(void)
{
    typedef struct bytes8 { char c[8]; } bytes8;
    typedef struct bytes9 { char c[9]; } bytes9;
    CHECK(FSI__COOKIE('a', bytes8) != FSI__COOKIE('b', bytes8));
    CHECK(FSI__COOKIE('a', bytes8) != FSI__COOKIE('a', bytes9));
    CHECK(FSI__COOKIE('a', fsi_vec3) != FSI__COOKIE('a', float[3]) || sizeof(fsi_real) == 4);
    CHECK(FSI__COOKIE('a', bytes8) != 0);
}

static struct { int count, level; char text[200]; void *user; } heard;
static void hear(void *user, int level, const char *text)
{
    heard.count++;
    heard.level = level;
    heard.user = user;
    memcpy(heard.text, text, strlen(text) + 1);
}

static void test_errors_name_the_culprit(void)
{
    fsi_context c = fsi_default_context();
    drops *d;
    int here;
    CHECK(c.error.status == FSI_OK && c.error.element == -1 && c.error.function[0] == 0 && c.error.message[0] == 0);
    c.user = &here;
    c.message = hear;
    d = make_drops(&c, 20);
    CHECK(heard.count == 0);
    d->force[17].y = (fsi_real)test_inf();
    CHECK(drops_step(d, 1) == FSI_ERROR_NAN);
    CHECK(c.error.status == FSI_ERROR_NAN && c.error.element == 17);
    CHECK(strcmp(c.error.function, "drops_step") == 0);
    CHECK(strcmp(c.error.message, "force or velocity of drop 17 is not finite") == 0);
    CHECK(heard.count == 1 && heard.level == 0 && heard.user == &here && strcmp(heard.text, c.error.message) == 0);
    d->force[17].y = 0;
    CHECK(drops_step(d, (fsi_real)0.01) == FSI_OK);
    CHECK(c.error.status == FSI_ERROR_NAN); /* success does not clear the last failure */
    CHECK(drops_step(d, -2) == FSI_ERROR_ARGUMENT);
    CHECK(c.error.status == FSI_ERROR_ARGUMENT && c.error.value == -2 && c.error.element == -1);
    fsi__note(&c, 2, "a note");
    CHECK(heard.count == 3 && heard.level == 2 && strcmp(heard.text, "a note") == 0);
    drops_destroy(d);
}

static void test_long_error_texts_are_cut(void)
{
    fsi_context c = fsi_default_context();
    char text[1000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    CHECK(fsi__fail(&c, FSI_ERROR_LIMIT, "f", 3, 4, "%s", text) == FSI_ERROR_LIMIT);
    CHECK(strlen(c.error.message) == sizeof c.error.message - 1);
    CHECK(fsi__fail(NULL, FSI_ERROR_IO, "f", 0, 0, "%s", text) == FSI_ERROR_IO);
    fsi__note(NULL, 0, "nobody listens");
}

static void test_every_status_has_a_text_of_its_own(void)
{
    int a, b;
    CHECK(FSI_OK == 0);
    for (a = 0; a < FSI_STATUS_COUNT; a++)
        for (b = 0; b < a; b++) CHECK(strcmp(fsi_status_text((fsi_status)a), fsi_status_text((fsi_status)b)) != 0);
    CHECK(strcmp(fsi_status_text((fsi_status)FSI_STATUS_COUNT), "unknown status") == 0);
}

/* ---- tests: memory -------------------------------------------------------------------------------------------- */

static void test_the_steady_state_allocates_nothing(void)
{
    fsi_context c = fsi_default_context();
    drops *d = make_drops(&c, DROPS);
    size_t held;
    int k;
    CHECK(drops_step(d, (fsi_real)0.02) == FSI_OK && d->stats.allocs == 1);
    held = c.bytes;
    for (k = 0; k < 20; k++) {
        CHECK(drops_remove(d, 0) == FSI_OK);
        CHECK(drops_step(d, (fsi_real)0.02 + (fsi_real)(0.001 * k)) == FSI_OK && d->stats.allocs == 0);
    }
    CHECK(c.bytes == held && c.peak_bytes >= held);
    drops_destroy(d);
    CHECK(c.bytes == 0 && c.peak_bytes >= held);
}

static void test_memory_is_aligned_zeroed_and_counted(void)
{
    fsi_context c = fsi_default_context(), counted = fsi_default_context(), *contexts[3];
    unsigned char *p[3][8];
    size_t n, k;
    int i;
    contexts[0] = NULL;
    contexts[1] = &c;
    contexts[2] = &counted;
    test_fail_allocator(&counted, 0);
    for (i = 0; i < 3; i++) for (k = 0; k < 8; k++) {
        p[i][k] = (unsigned char *)fsi__alloc(contexts[i], k * 7, 3);
        if (!CHECK(p[i][k] != NULL)) return;
        CHECK((uintptr_t)p[i][k] % 64 == 0);
        for (n = 0; n < k * 21; n++) if (!CHECK(p[i][k][n] == 0)) break;
        memset(p[i][k], 0xff, k > 0 ? k * 21 : 3);
    }
    CHECK(c.bytes == 28 * 21 + 3 && c.allocs == 8 && counted.bytes == c.bytes && test_live_bytes() == c.bytes);
    for (i = 0; i < 3; i++) for (k = 0; k < 8; k++) fsi__free(contexts[i], p[i][k], k * 7, 3);
    CHECK(c.bytes == 0 && c.peak_bytes == 28 * 21 + 3 && c.allocs == 8 && test_live_bytes() == 0);
    fsi__free(&c, NULL, 5, 5);
    CHECK(c.bytes == 0);
}

static void test_absurd_sizes_are_refused(void)
{
    const size_t huge = (size_t)-1;
    fsi_context c = fsi_default_context();
    CHECK(fsi__alloc(&c, huge, 1) == NULL);
    CHECK(fsi__alloc(&c, huge / 2, 3) == NULL);
    CHECK(fsi__alloc(&c, 3, huge / 2) == NULL);
    CHECK(fsi__alloc(NULL, huge / 8, 8) == NULL);
    CHECK(c.bytes == 0 && c.allocs == 0);
}

static void test_scratch_is_aligned_and_kept(void)
{
    fsi_context c = fsi_default_context();
    fsi__arena a;
    unsigned char *p, *q;
    memset(&a, 0, sizeof a);
    CHECK(fsi__take(&a, 10, 3) == NULL && fsi__take(&a, 1, 1) == NULL && a.used == 128);
    CHECK(fsi__arena_reserve(&c, &a, a.used) && a.used == 0 && a.size == 128);
    p = (unsigned char *)fsi__take(&a, 10, 3);
    q = (unsigned char *)fsi__take(&a, 1, 1);
    CHECK(p == a.base && q == p + 64 && (uintptr_t)p % 64 == 0);
    CHECK(fsi__arena_reserve(&c, &a, 100) && a.base == p && a.size == 128 && c.allocs == 1);
    CHECK(fsi__arena_reserve(&c, &a, 300) && a.size == 300 && c.allocs == 2);
    test_fail_allocator(&c, 1);
    c.alloc = NULL; /* freed by the hooks it came from */
    fsi__arena_free(&c, &a);
    CHECK(c.bytes == 0 && !a.base);
}

static void test_growing_columns_is_all_or_nothing(void)
{
    fsi_context c = fsi_default_context();
    int *a = NULL, i, capacity = 0;
    double *b = NULL;
    fsi__column columns[2];
    columns[0].array = (void **)&a;
    columns[0].size = sizeof *a;
    columns[1].array = (void **)&b;
    columns[1].size = sizeof *b;
    test_fail_allocator(&c, 0);
    CHECK(fsi__grow(&c, columns, 2, 0, &capacity, 10, "test") == FSI_OK && capacity == 10);
    for (i = 0; i < 10; i++) { a[i] = i; b[i] = i * 0.5; }
    for (i = 1; i <= 2; i++) {
        const int *a0 = a;
        const double *b0 = b;
        test_fail_allocator(&c, i);
        CHECK(fsi__grow(&c, columns, 2, 10, &capacity, 100, "test") == FSI_ERROR_MEMORY);
        CHECK(a == a0 && b == b0 && capacity == 10 && strcmp(c.error.function, "test") == 0);
    }
    test_fail_allocator(&c, 0);
    CHECK(fsi__grow(&c, columns, 2, 10, &capacity, 100, "test") == FSI_OK && capacity == 100);
    for (i = 0; i < 100; i++) CHECK(a[i] == (i < 10 ? i : 0) && fabs(b[i] - (i < 10 ? i * 0.5 : 0)) <= 0);
    CHECK(fsi__grow(&c, columns, 2, 100, &capacity, 50, "test") == FSI_OK && capacity == 100); /* never shrinks */
    a[0] = 42;
    CHECK(fsi__grow(&c, columns, 2, 1, &capacity, 101, "test") == FSI_OK && a[0] == 42 && a[1] == 0);
    fsi__free_columns(&c, columns, 2, capacity);
    CHECK(!a && !b && c.bytes == 0 && test_live_bytes() == 0);
}

/* ---- tests: numbers and the clock ----------------------------------------------------------------------------- */

/* A desc with a field of each kind, and a table that uses each flag. */
typedef struct checked_desc {
    int whole, choice;
    long long budget;
    unsigned char side[2];
    fsi_real length, lower, upper;
    double rate;
    fsi_vec3 offset, direction;
} checked_desc;

static const fsi__field checked_rows[] = {
    FSI__FIELD(checked_desc, whole, FSI__INT, 1, 1000, 0),
    FSI__FIELD(checked_desc, choice, FSI__INT, 2, 3, 0),
    FSI__FIELD(checked_desc, budget, FSI__LONG, 0, 9e18, 0),
    FSI__FIELD(checked_desc, side[1], FSI__BYTE, 0, 1, 0),
    FSI__FIELD(checked_desc, length, FSI__REAL, 0.1, 0.7, FSI__OR_ZERO),
    FSI__FIELD(checked_desc, lower, FSI__REAL, 0, 9, 0),
    FSI__FIELD(checked_desc, upper, FSI__REAL, 0, 9, FSI__FROM_LAST),
    FSI__FIELD(checked_desc, rate, FSI__DOUBLE, 0, 1, FSI__ABOVE | FSI__BELOW | FSI__OR_UNSET),
    FSI__FIELD(checked_desc, offset, FSI__VEC3, 0, 5, 0),
    FSI__DIRECTION(checked_desc, direction)};

static checked_desc checked_good(void)
{
    checked_desc d;
    memset(&d, 0, sizeof d);
    d.whole = 1000;
    d.choice = 2;
    d.budget = 9000000000000000000LL;
    d.length = (fsi_real)0.7; /* the end itself, as an fsi_real */
    d.lower = d.upper = 3;
    d.rate = 0.5;
    d.direction = fsi_v3(0, 2, 0);
    return d;
}

static void check_refused(const checked_desc *d, int dim, fsi_status status, const char *text)
{
    fsi_context c = fsi_default_context();
    const fsi__where at = { "check", "desc.", 7, dim };
    CHECK(FSI__CHECK_TABLE(&c, &at, d, checked_rows) == status);
    if (status == FSI_OK) return;
    CHECK(strcmp(c.error.message, text) == 0 && c.error.element == 7 && strcmp(c.error.function, "check") == 0);
    CHECK(FSI__CHECK_TABLE(NULL, &at, d, checked_rows) == status); /* nowhere to say it */
}

static void test_descs_are_checked_by_tables(void)
{
    const fsi_real nan = (fsi_real)test_nan(), inf = (fsi_real)test_inf();
    checked_desc d = checked_good();
#define REFUSED(change, status, text) do { d = checked_good(); change; check_refused(&d, 3, status, text); } while (0)
    REFUSED((void)0, FSI_OK, "");
    REFUSED(d.whole = 0, FSI_ERROR_ARGUMENT, "desc.whole is 0, must be 1 to 1000");
    REFUSED(d.choice = 4, FSI_ERROR_ARGUMENT, "desc.choice is 4, must be 2 or 3");
    REFUSED(d.budget = -1, FSI_ERROR_ARGUMENT, "desc.budget is -1, must be 0 to 9e+18");
    REFUSED(d.side[1] = 2, FSI_ERROR_ARGUMENT, "desc.side[1] is 2, must be 0 or 1");
    REFUSED(d.length = 0, FSI_OK, "");
    REFUSED(d.length = (fsi_real)0.75, FSI_ERROR_ARGUMENT, "desc.length is 0.75, must be 0.1 to 0.7, or 0");
    REFUSED(d.length = nan, FSI_ERROR_NAN, "desc.length is not finite");
    REFUSED(d.length = -inf, FSI_ERROR_NAN, "desc.length is not finite");
    REFUSED(d.upper = 2, FSI_ERROR_ARGUMENT, "desc.upper is 2, must be 3 to 9");
    REFUSED(d.rate = -1, FSI_OK, "");
    REFUSED(d.rate = 0, FSI_ERROR_ARGUMENT, "desc.rate is 0, must be above 0, below 1, or -1");
    REFUSED(d.rate = 1, FSI_ERROR_ARGUMENT, "desc.rate is 1, must be above 0, below 1, or -1");
    REFUSED(d.offset = fsi_v3(0, 4, 4), FSI_ERROR_ARGUMENT, "the length of desc.offset is 5.65685, must be 0 to 5");
    REFUSED(d.offset.y = nan, FSI_ERROR_NAN, "desc.offset is not finite");
    REFUSED(d.direction.y = 0, FSI_ERROR_ARGUMENT, "the length of desc.direction is 0, must be 1e-18 to 1e+18");
#undef REFUSED
    d = checked_good();
    check_refused(&d, 2, FSI_OK, "");
    d.offset.z = 1;
    check_refused(&d, 2, FSI_ERROR_ARGUMENT, "desc.offset.z is 1, but the plane of dim 2 is x, y");
}

/* Ends that are none, and the field before as the upper end. */
static void test_ranges_of_tables_may_be_open(void)
{
    static const fsi__field rows[] = {FSI__FIELD(checked_desc, rate, FSI__DOUBLE, -FSI__HUGE, 4, 0),
                                      FSI__FIELD(checked_desc, whole, FSI__INT, 1, FSI__HUGE, 0),
                                      FSI__FIELD(checked_desc, choice, FSI__INT, 0, 0, FSI__TO_LAST),
                                      FSI__FINITE(checked_desc, offset)};
    static const fsi__where at = { "check", "", -1, 2 };
    fsi_context c = fsi_default_context();
    checked_desc d = checked_good();
    d.rate = -1e300;
    d.offset.x = FSI_REAL_MAX;
    CHECK(FSI__CHECK_TABLE(&c, &at, &d, rows) == FSI_OK);
    d.choice = 1001;
    CHECK(FSI__CHECK_TABLE(&c, &at, &d, rows) == FSI_ERROR_ARGUMENT);
    CHECK(strcmp(c.error.message, "choice is 1001, must be 0 to 1000") == 0);
    d.whole = 0;
    CHECK(FSI__CHECK_TABLE(&c, &at, &d, rows) == FSI_ERROR_ARGUMENT);
    CHECK(strcmp(c.error.message, "whole is 0, must be at least 1") == 0);
    d.rate = 5;
    CHECK(FSI__CHECK_TABLE(&c, &at, &d, rows) == FSI_ERROR_ARGUMENT);
    CHECK(strcmp(c.error.message, "rate is 5, must be at most 4") == 0);
}

static void test_is_finite_by_bits(void)
{
    CHECK(fsi_is_finite(0) && fsi_is_finite(-1e308) && fsi_is_finite(4.9e-324) && fsi_is_finite((double)FSI_REAL_MAX));
    CHECK(!fsi_is_finite(test_nan()) && !fsi_is_finite(-test_nan()) && !fsi_is_finite(test_inf()) &&
          !fsi_is_finite(-test_inf()));
    CHECK(fsi_v3_is_finite(fsi_v3(1, 2, 3)));
    CHECK(!fsi_v3_is_finite(fsi_v3((fsi_real)test_nan(), 0, 0)));
    CHECK(!fsi_v3_is_finite(fsi_v3(0, (fsi_real)test_inf(), 0)));
    CHECK(!fsi_v3_is_finite(fsi_v3(0, 0, (fsi_real)-test_inf())));
}

static double tick(void *user) { return *(double *)user += 0.5; }

static void test_phase_times_come_from_the_clock_hook(void)
{
    fsi_context c = fsi_default_context();
    drops *d = make_drops(&c, 20);
    double time = 0;
    CHECK(drops_step(d, (fsi_real)0.01) == FSI_OK);
    CHECK_NEAR(d->stats.seconds, 0, 0);
    c.now = tick;
    c.user = &time;
    CHECK(drops_step(d, (fsi_real)0.01) == FSI_OK);
    CHECK_NEAR(d->stats.seconds, 0.5, 0);
    drops_destroy(d);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_drops_fall_by_gravity);
    RUN(test_drops_stay_in_the_box_and_lose_energy);
    RUN(test_a_small_budget_degrades_and_says_so);
    RUN(test_attributes_and_ids_ride_along);
    RUN(test_every_allocation_failed_in_turn);
    RUN(test_nan_in_any_substep_changes_nothing);
    RUN(test_bad_arguments_are_refused);
    RUN(test_any_number_of_threads_gives_the_same_bits);
    RUN(test_the_hosts_scheduler_runs_the_tasks);
    RUN(test_simulators_in_different_threads);
    RUN(test_chunks_tile_the_range_for_any_threads);
    RUN(test_build_info_tells_precision_and_contraction);
    RUN(test_no_simulator_says_where_to_read_why);
    RUN(test_save_load_continue_equals_continue);
    RUN(test_damaged_truncated_and_foreign_states_are_refused);
    RUN(test_streams_do_not_run_over);
    RUN(test_hash_sees_every_byte);
    RUN(test_unfilled_and_foreign_structs_are_refused);
    RUN(test_cookies_differ);
    RUN(test_errors_name_the_culprit);
    RUN(test_long_error_texts_are_cut);
    RUN(test_every_status_has_a_text_of_its_own);
    RUN(test_the_steady_state_allocates_nothing);
    RUN(test_memory_is_aligned_zeroed_and_counted);
    RUN(test_absurd_sizes_are_refused);
    RUN(test_scratch_is_aligned_and_kept);
    RUN(test_growing_columns_is_all_or_nothing);
    RUN(test_descs_are_checked_by_tables);
    RUN(test_ranges_of_tables_may_be_open);
    RUN(test_is_finite_by_bits);
    RUN(test_phase_times_come_from_the_clock_hook);
    return TEST_END();
}
