/* test_wcsph_state.c - states of fsi_wcsph.h that were tampered with, speeds that nothing has, too few substeps, a moving origin, memory.
   SPDX-License-Identifier: MIT */
#define FSI_GROUND_IMPLEMENTATION
#include "kit/test_wcsph.h"
#include "kit/wcsph_worlds.h"

static void refit(const fsi_wcsph *s, unsigned char *state, size_t size)
{
    const fsi__state_header h = fsi__make_state_header(s->cookie, size - sizeof h, fsi_hash(state + sizeof h, size - sizeof h, 0));
    memcpy(state, &h, sizeof h);
}

static int is_finite(const fsi_wcsph *s)
{
    int i, bad = 0;
    for (i = 0; i < s->count; i++) bad += !fsi_v3_is_finite(s->position[i]) || !fsi_v3_is_finite(s->velocity[i]) || !(s->density[i] > 0) || !fsi_is_finite((double)s->pressure[i]);
    return bad == 0;
}

/* NaN, infinity, 1e300 (float: 3e38), -1 and 1e30 for numbers of a state, at any offset, as any type: refused without a trace, or good for a step. */
static void test_a_loaded_state_can_be_stepped(void)
{
    const double evil[5] = { test_nan(), test_inf(), TOL(1e300, 3e38), -1, 1e30 };
    fsi_context context = fsi_default_context();
    int dim, k, taken = 0, tried = 0;
    for (dim = 2; dim <= 3; dim++) {
        small_pool p;
        fsi_body body;
        size_t size, at;
        unsigned char *state, *bad;
        if (!CHECK(make_small_pool(&context, dim, &p))) return;
        for (k = 0; k < 2; k++) {
            CHECK(fsi_wcsph_step(p.s, (fsi_real)0.01) == FSI_OK);
            fsi_body_accept(&p.body);
        }
        state = (unsigned char *)save_state(p.s, &size);
        bad = (unsigned char *)malloc(size);
        body = p.body;
        for (at = sizeof(fsi__state_header); at + 8 <= size; at += at < 200 || at + 250 > size ? 1 : TEST_WATCHED ? 97 : 13) for (k = 0; k < 10; k++) {
            const float single = (float)evil[k % 5];
            const uint64_t before = fsi_wcsph_hash(p.s);
            fsi_status status;
            memcpy(bad, state, size);
            if (k < 5) memcpy(bad + at, &evil[k], 8);
            else memcpy(bad + at, &single, 4);
            refit(p.s, bad, size);
            tried++;
            if (fsi_wcsph_load(p.s, bad, size) != FSI_OK) { CHECK(fsi_wcsph_hash(p.s) == before); continue; }
            taken++;
            status = fsi_wcsph_step(p.s, (fsi_real)1e-3);
            if (status == FSI_ERROR_LIMIT) status = fsi_wcsph_step(p.s, (fsi_real)1e-12); /* the forces are too large for the longer one */
            if (!CHECK(status == FSI_OK && is_finite(p.s))) printf("  offset %d, value %d: %s\n", (int)at, k, fsi_wcsph_error(p.s)->message);
            p.body = body;
        }
        CHECK(fsi_wcsph_load(p.s, state, size) == FSI_OK);
        free(state);
        free(bad);
        end_small_pool(&p);
    }
    CHECK(taken > 10 && taken < tried * 9 / 10 && context.bytes == 0);
}

static int refused(const fsi_wcsph *s, fsi_status status, const char *word)
{
    if (CHECK(status == FSI_ERROR_LIMIT || status == FSI_ERROR_NAN || status == FSI_ERROR_ARGUMENT) && CHECK(strstr(fsi_wcsph_error(s)->message, word) != NULL)) return 1;
    printf("  said: %s\n", fsi_wcsph_error(s)->message);
    return 0;
}

/* Whatever would make something absurdly fast is refused by name, however much too large; then all is as it was. */
static void test_absurd_speeds_are_refused_by_name(void)
{
    const double sizes[3] = { 1e12, 1e30, TOL(1e300, 3e38) };
    int k;
    for (k = 0; k < 3; k++) {
        fsi_context context = fsi_default_context();
        small_pool p;
        fsi_body kept;
        fsi_wcsph_desc d;
        const fsi_vec3 fast = v3(sizes[k], 0, 0), at = v3(0, 0, 1);
        uint64_t hash;
        if (!CHECK(make_small_pool(&context, 3, &p))) return;
        kept = p.body;
        hash = fsi_wcsph_hash(p.s);
        refused(p.s, fsi_wcsph_add_particles(p.s, &at, &fast, 1), "velocity");
        d = p.s->desc;
        d.gravity = fast;
        refused(p.s, fsi_wcsph_set_desc(p.s, &d), "gravity");
        p.body.velocity = fast;
        refused(p.s, fsi_wcsph_step(p.s, (fsi_real)1e-3), "velocity of the body");
        p.body = kept;
        p.body.force = v3(sizes[k] * 1e3, 0, 0);
        refused(p.s, fsi_wcsph_step(p.s, 1), sizes[k] > 1e36 && sizeof(fsi_real) == 4 ? "finite" : "force on the body");
        p.body = kept;
        p.body.angular_velocity = fast;
        refused(p.s, fsi_wcsph_step(p.s, (fsi_real)1e-3), "velocity of the body");
        p.body = kept;
        p.body.mode = FSI_BODY_PRESCRIBED;
        p.body.end = p.body.pose;
        p.body.end.position = v3(1e8, 0, 0);
        refused(p.s, fsi_wcsph_step(p.s, (fsi_real)1e-3), "body of obstacle");
        p.body = kept;
        CHECK(fsi_wcsph_hash(p.s) == hash);
        p.s->velocity[2] = fast;
        refused(p.s, fsi_wcsph_step(p.s, (fsi_real)1e-3), "particle 2: its velocity");
        p.s->velocity[2] = v3(0, 0, 0);
        p.s->force[2] = v3(sizes[k] * 10, 0, 0);
        refused(p.s, fsi_wcsph_step(p.s, (fsi_real)0.1), "particle 2: its force");
        p.s->force[2] = v3(0, 0, 0);
        CHECK(fsi_wcsph_step(p.s, (fsi_real)1e-3) == FSI_OK && is_finite(p.s));
        end_small_pool(&p);
    }
}

/* ---- too few substeps ------------------------------------------------------------------------------------------- */

typedef struct heard { int count; char text[200]; } heard;
static void hear(void *user, int level, const char *text)
{
    heard *h = (heard *)user;
    if (level != 1) return;
    h->count++;
    snprintf(h->text, sizeof h->text, "%s", text);
}

/* A pool at rest, steps of 1/60 s; the substeps allowed. */
static fsi_wcsph *small_rest(fsi_context *context, int max_substeps, double alpha)
{
    fsi_wcsph_desc d = make_desc(2, 0.05);
    fsi_wcsph *s;
    d.context = context;
    d.domain = box3(0, 0, 0, 0.5, 1.5, 0);
    d.depth = (fsi_real)0.5;
    d.alpha = (fsi_real)alpha;
    d.max_substeps = max_substeps;
    s = make_wcsph(&d);
    fill(s, box3(0, 0, 0, 0.5, 0.5, 0), v3(0, 0, 0));
    CHECK(fsi_wcsph_settle_density(s, v3(0, 0.5, 0)) == FSI_OK);
    return s;
}

/* With a half and a quarter of the substeps that it needs a pool stays at rest for a minute, compressed by what |g| d/c'^2 says; with one it
   is a soft heap at rest; each such step says so once. Thick liquid has the other limit. */
static void test_too_few_substeps_make_the_liquid_softer(void)
{
    static const struct { double share, alpha, most; } cases[4] = { { 0.5, 0.1, 1.1 }, { 0.25, 0.1, 1.2 }, { 0.25, 3, 1.2 }, { 0, 0.1, 8 } };
    int k, step;
    for (k = 0; k < 4; k++) {
        fsi_context context = fsi_default_context();
        heard h = { 0, "" };
        fsi_wcsph *s = small_rest(&context, 10000, cases[k].alpha);
        fsi_wcsph_desc d = s->desc;
        double energy = 0, ratio = 0;
        const int steps = TEST_SLOWED ? 60 : k == 2 ? 300 : 3600;
        CHECK(step_ok(s, 1.0 / 60) && !s->stats.degraded && s->stats.sound_speed == (double)s->sound_speed);
        d.max_substeps = (int)fmax(1, ceil(cases[k].share * s->stats.substeps));
        CHECK(fsi_wcsph_set_desc(s, &d) == FSI_OK);
        context.message = hear;
        context.user = &h;
        for (step = 0; step < steps; step++) {
            if (!step_ok(s, 1.0 / 60)) break;
            CHECK(s->stats.substeps == d.max_substeps && s->stats.degraded && s->stats.lost == 0 && s->stats.inside == 0);
            if (step < steps / 2) continue;
            energy = fmax(energy, s->stats.kinetic_energy);
            ratio = fmax(ratio, s->stats.density_ratio_max);
        }
        printf("      %d substeps, alpha %g: c' %.3g of %.3g m/s, density up to %.3g, energy up to %.3g J of %.3g\n", d.max_substeps, cases[k].alpha, s->stats.sound_speed, (double)s->sound_speed, ratio, energy, 250 * 9.81 * 0.25);
        CHECK(ratio <= cases[k].most && energy < (TEST_SLOWED ? 0.05 : 1e-3) * 250 * 9.81 * 0.25);
        CHECK(fabs(s->time - (steps + 1) / 60.0) <= TOL(1e-9, 1e-2) && is_finite(s));
        CHECK(h.count == steps && strstr(h.text, "degraded") != NULL);
        fsi_wcsph_destroy(s);
    }
}

/* A dam that breaks with a body in it, three substeps a frame: nothing leaves, nothing is lost, energy does not grow. */
static void test_a_degraded_dam_stays_in_bounds(void)
{
    fsi_context context = fsi_default_context();
    small_pool p;
    fsi_wcsph_desc d;
    int step, dim;
    for (dim = 2; dim <= 3; dim++) {
        double most = 0;
        if (!CHECK(make_small_pool(&context, dim, &p))) return;
        d = p.s->desc;
        d.max_substeps = 2;
        CHECK(fsi_wcsph_set_desc(p.s, &d) == FSI_OK);
        for (step = 0; step < 300; step++) {
            if (!step_ok(p.s, 1.0 / 30)) break;
            fsi_body_accept(&p.body);
            most = fmax(most, p.s->stats.max_speed);
            CHECK(p.s->stats.lost == 0 && p.s->stats.substeps <= 2);
        }
        CHECK(most < 20 && p.s->stats.degraded && is_finite(p.s));
        end_small_pool(&p);
    }
}

/* ---- questions, gravity, origin ----------------------------------------------------------------------------------- */

static void test_velocity_at_a_point_is_the_liquids(void)
{
    fsi_wcsph *s = small_rest(NULL, 100, 0.1);
    int i;
    for (i = 0; i < s->count; i++) s->velocity[i] = v3(2, -3 + (double)s->position[i].x, 0);
    CHECK_NEAR(fsi_wcsph_velocity_at(s, v3(0.25, 0.25, 0)).x, 2, TOL(1e-12, 1e-5));
    CHECK_NEAR(fsi_wcsph_velocity_at(s, v3(0.25, 0.25, 0)).y, -2.75, 1e-3);
    CHECK(fsi_v3_norm(fsi_wcsph_velocity_at(s, v3(5, 5, 0))) == 0 && fsi_v3_norm(fsi_wcsph_velocity_at(NULL, v3(0, 0, 0))) == 0);
    fsi_wcsph_destroy(s);
}

static void test_gravity_changes_between_steps(void)
{
    fsi_wcsph *s = small_rest(NULL, 10000, 0.1);
    fsi_wcsph_desc d = s->desc;
    double y = 0, after = 0;
    int i, k;
    CHECK(step_ok(s, 1.0 / 60));
    for (i = 0; i < s->count; i++) y += (double)s->position[i].y / s->count;
    d.gravity = v3(0, 5, 0);
    CHECK(fsi_wcsph_set_desc(s, &d) == FSI_OK);
    for (k = 0; k < 12; k++) CHECK(step_ok(s, 1.0 / 60));
    for (i = 0; i < s->count; i++) after += (double)s->position[i].y / s->count;
    CHECK_NEAR(after - y, 0.5 * 5 * 0.2 * 0.2, 0.03); /* it falls up, and what compressed it lets go */
    fsi_wcsph_destroy(s);
}

/* A shifted liquid goes the same way; states from before the shift fit. By eighths of metres shifts of places are nearly exact. */
static void test_a_shifted_origin_changes_no_way(void)
{
    fsi_context context = fsi_default_context();
    const fsi_vec3 offset = v3(2.5, -1.25, 0);
    small_pool p, still;
    unsigned char *state;
    size_t size;
    int step, i;
    double off = 0;
    if (!CHECK(make_small_pool(&context, 2, &p) && make_small_pool(&context, 2, &still))) return;
    state = (unsigned char *)save_state(p.s, &size);
    CHECK(fsi_wcsph_shift_origin(p.s, offset) == FSI_OK && fsi_rigid_shift_origin(p.world, offset) == FSI_OK);
    {
        fsi_vec3 x[64];
        for (i = 0; i < p.still->source_count; i++) x[i] = fsi_v3_add(p.still->vertices[i], offset);
        CHECK(p.still->source_count == p.still->vertex_count && fsi_mesh_set(p.still, x, p.still->source_count) == FSI_OK);
    }
    p.body.pose.position = fsi_v3_add(p.body.pose.position, offset);
    CHECK_NEAR(p.s->desc.domain.lo.x, 1.5, 0);
    for (step = 0; step < 4; step++) {
        CHECK(step_ok(p.s, 0.005) && step_ok(still.s, 0.005));
        fsi_body_accept(&p.body);
        fsi_body_accept(&still.body);
        CHECK(p.s->stats.displaced == 0);
    }
    for (i = 0; i < p.s->count; i++) off = fmax(off, (double)fsi_v3_norm(fsi_v3_sub(fsi_v3_sub(p.s->position[i], offset), still.s->position[i])));
    CHECK(off <= TOL(1e-5, 1e-3));
    CHECK(fsi_wcsph_load(p.s, state, size) == FSI_OK && fsi_wcsph_load(still.s, state, size) == FSI_OK);
    for (i = 0, off = 0; i < p.s->count; i++) off = fmax(off, (double)fsi_v3_norm(fsi_v3_sub(fsi_v3_sub(p.s->position[i], offset), still.s->position[i])));
    CHECK(off <= TOL(1e-12, 1e-5));
    CHECK(fsi_wcsph_shift_origin(p.s, v3(test_nan(), 0, 0)) == FSI_ERROR_NAN && fsi_wcsph_shift_origin(p.s, v3(1e20, 0, 0)) == FSI_ERROR_LIMIT);
    free(state);
    end_small_pool(&p);
    end_small_pool(&still);
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

/* The harness's allocator, in which one allocation, or each from one on, fails. */
static struct { long count, at; int only; } scarce;
static void *scarce_alloc(void *user, size_t size, size_t align)
{
    const long n = ++scarce.count;
    return scarce.at && (n == scarce.at || (n > scarce.at && !scarce.only)) ? NULL : test__alloc(user, size, align);
}

/* Steps and a load; what memory fails is tried again. */
static uint64_t run_scarcely(small_pool *p, const void *state, size_t size, int *failures)
{
    int k;
    for (k = 0; k < 5; k++) {
        const uint64_t before = fsi_wcsph_hash(p->s) ^ fsi_rigid_hash(p->world);
        fsi_status status = k == 3 ? fsi_wcsph_load(p->s, state, size) : fsi_wcsph_step(p->s, (fsi_real)4e-3);
        if (status == FSI_OK) { if (k != 3) fsi_body_accept(&p->body); continue; }
        CHECK(status == FSI_ERROR_MEMORY && (fsi_wcsph_hash(p->s) ^ fsi_rigid_hash(p->world)) == before);
        (*failures)++;
        scarce.at = 0;
        k--;
    }
    return fsi_wcsph_hash(p->s) ^ fsi_rigid_hash(p->world);
}

/* Each allocation of making and stepping a liquid with a world, bodies and meshes fails once, and from each on: what is tried again gives the bits of a run with memory enough. */
static void test_failing_memory_leaves_no_trace(void)
{
    int dim, only, failures = 0, made = 0;
    for (dim = 2; dim <= 3; dim++) {
        fsi_context plain = fsi_default_context();
        small_pool calm;
        size_t size;
        unsigned char *state;
        uint64_t hash;
        long at;
        int none = 0, done;
        if (!CHECK(make_small_pool(&plain, dim, &calm))) return;
        CHECK(step_ok(calm.s, 4e-3));
        state = (unsigned char *)save_state(calm.s, &size);
        end_small_pool(&calm);
        if (!CHECK(make_small_pool(&plain, dim, &calm))) return;
        hash = run_scarcely(&calm, state, size, &none);
        end_small_pool(&calm);
        for (only = 0; only < 2; only++) for (at = 1, done = 0; at < 1000 && !done; at += TEST_WATCHED ? 2 : 1) {
            fsi_context context = fsi_default_context();
            small_pool p;
            test_fail_allocator(&context, 0);
            context.alloc = scarce_alloc;
            scarce.count = 0;
            scarce.at = at;
            scarce.only = only;
            if (make_small_pool(&context, dim, &p)) {
                made++;
                CHECK(run_scarcely(&p, state, size, &failures) == hash);
                end_small_pool(&p);
            }
            done = scarce.count < at;
            CHECK(context.bytes == 0);
        }
        CHECK(done);
        free(state);
    }
    CHECK(made > 10 && failures > 10);
}

/* Pressures after a load are those that the step published, also where it made the liquid softer. */
static void test_pressures_of_soft_liquid_come_back(void)
{
    fsi_wcsph_desc d = make_desc(2, 0.02);
    fsi_wcsph *s;
    size_t size;
    void *state;
    double before;
    d.max_substeps = 3;
    d.domain = room(2, 0, 0, 0.4, 1, 0);
    s = make_wcsph(&d);
    fill(s, room(2, 0, 0, 0.4, 0.3, 0), v3(0, 0, 0));
    for (size = 0; size < 5; size++) step_ok(s, 1.0 / 60);
    CHECK(s->stats.degraded == 1);
    before = (double)s->pressure[0];
    CHECK(before > 0);
    state = save_state(s, &size);
    step_ok(s, 1.0 / 60);
    CHECK(fsi_wcsph_load(s, state, size) == FSI_OK);
    CHECK_NEAR(s->pressure[0], before, 0);
    free(state);
    fsi_wcsph_destroy(s);
}

/* What a load takes the shortest step takes: the bounds are the same. */
static void test_bounds_of_states_are_those_of_steps(void)
{
    fsi_wcsph_desc d = make_desc(2, 0.02);
    fsi_wcsph *s = make_wcsph(&d);
    size_t size, k, taken = 0;
    unsigned char *state;
    add_one(s, v3(0.1, 0.1, 0), v3(0.5, 0, 0));
    state = (unsigned char *)save_state(s, &size);
    for (k = sizeof(fsi__state_header); k + sizeof(fsi_real) <= size; k += 4) {
        static const double edge[3] = { 0.99e9, 1.5e9, 1e20 };
        int e;
        for (e = 0; e < 3; e++) {
            unsigned char *bad = (unsigned char *)malloc(size);
            const fsi_real x = (fsi_real)edge[e];
            memcpy(bad, state, size);
            memcpy(bad + k, &x, sizeof x);
            refit(s, bad, size);
            if (fsi_wcsph_load(s, bad, size) == FSI_OK) {
                taken++;
                if (!CHECK(fsi_wcsph_step(s, (fsi_real)1e-12) == FSI_OK)) printf("      byte %d, %g: %s\n", (int)k, edge[e], fsi_wcsph_error(s)->message);
            }
            free(bad);
        }
    }
    CHECK(taken > 0);
    free(state);
    fsi_wcsph_destroy(s);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_loaded_state_can_be_stepped);
    RUN(test_absurd_speeds_are_refused_by_name);
    RUN(test_too_few_substeps_make_the_liquid_softer);
    RUN(test_a_degraded_dam_stays_in_bounds);
    RUN(test_velocity_at_a_point_is_the_liquids);
    RUN(test_gravity_changes_between_steps);
    RUN(test_a_shifted_origin_changes_no_way);
    RUN(test_failing_memory_leaves_no_trace);
    RUN(test_pressures_of_soft_liquid_come_back);
    RUN(test_bounds_of_states_are_those_of_steps);
    return TEST_END();
}
