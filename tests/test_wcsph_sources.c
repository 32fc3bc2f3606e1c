/* test_wcsph_sources.c - taps and drains of fsi_wcsph.h: how much comes and goes, with which momentum, and what holds it.
   SPDX-License-Identifier: MIT */
#include "kit/test_wcsph.h"

static const double DX = 0.02;

/* A slot or disc of 4.3 spacings, or a rectangle of 7 x 5, oblique. */
static fsi_emitter_desc make_tap(int dim, fsi_emitter_shape form, double speed)
{
    fsi_emitter_desc d = fsi_emitter_default_desc();
    d.shape = form;
    d.center = v3(0.1, -0.2, dim == 2 ? 0 : 0.3);
    d.direction = v3(1, 2, dim == 2 ? 0 : -2);
    d.half_width = (fsi_real)(3.5 * DX);
    d.half_height = (fsi_real)(2.5 * DX);
    d.side = v3(0, 1, dim == 2 ? 0 : 3);
    d.radius = (fsi_real)(4.3 * DX);
    d.speed = (fsi_real)speed;
    return d;
}

static fsi_wcsph *make_free(int dim, fsi_context *context)
{
    fsi_wcsph_desc d = make_desc(dim, DX);
    d.gravity = v3(0, 0, 0);
    d.context = context;
    d.depth = (fsi_real)0.1;
    d.speed = 2;
    return make_wcsph(&d);
}

/* A tank with a tap above and a drain in a corner. */
static fsi_wcsph *make_fountain(int dim, fsi_context *context)
{
    fsi_wcsph_desc d = make_desc(dim, DX);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_sink_desc k = fsi_sink_default_desc();
    fsi_wcsph *s;
    d.context = context;
    d.attribute_count = 1;
    d.domain = room(dim, 0, 0, 0.2, 0.4, dim == 2 ? 0 : 0.1);
    s = make_wcsph(&d);
    fill(s, room(dim, 0, 0, 0.2, 0.04, dim == 2 ? 0 : 0.1), v3(0, 0, 0));
    e.center = in_room(dim, 0.06, 0.2, dim == 2 ? 0 : 0.05);
    e.direction = in_room(dim, 0.3, -1, 0);
    e.velocity = in_room(dim, 0.05, 0, 0);
    e.radius = (fsi_real)(2 * DX);
    CHECK(fsi_wcsph_add_emitter(s, &e, NULL) == FSI_OK);
    k.box = room(dim, 0.15, 0, 0.2, 0.02, 0.1);
    k.rate = (fsi_real)(dim == 2 ? 0.02 : 0.0005);
    CHECK(fsi_wcsph_add_sink(s, &k, NULL) == FSI_OK);
    return s;
}

static void run_fountain(fsi_wcsph *s, int steps) { while (steps-- > 0) step_ok(s, 1.0 / 60); }

/* ---- what comes out ------------------------------------------------------------------------------------------- */

/* Area * speed * time to half a layer, however long the steps are; what is still held stands where the flow has taken it. */
static void let_out(int dim, fsi_emitter_shape form, double dt, double sites, double area)
{
    const double speed = 1.3, volume = dim == 2 ? DX * DX : DX * DX * DX;
    fsi_wcsph *s = make_free(dim, NULL);
    const fsi_emitter_desc d = make_tap(dim, form, speed);
    const fsi_vec3 axis = fsi_v3_unit(d.direction);
    const double pitch = sites * volume / area;
    long long emitted;
    int id, i, held = 0;
    double t = 0;
    CHECK(fsi_wcsph_add_emitter(s, &d, &id) == FSI_OK);
    while (t < 0.12) {
        if (!step_ok(s, dt)) return;
        t += dt;
        CHECK_NEAR(s->count * volume, area * speed * t, 0.5001 * sites * volume);
    }
    CHECK(fsi_wcsph_emitter_total(s, id, &emitted, NULL, NULL) == FSI_OK && emitted == s->count);
    for (i = 0; i < s->count; i++) {
        const double along = (double)fsi_v3_dot(fsi_v3_sub(s->position[i], d.center), axis), layer = (speed * t - along) / pitch - 0.5;
        if (along > 1.5 * DX) continue;
        held++;
        CHECK(along > -1e-6 * DX);
        CHECK_NEAR(layer, floor(layer + 0.5), TOL(1e-9, 1e-3));
        CHECK_NEAR(fsi_v3_norm(fsi_v3_madd(s->velocity[i], (fsi_real)-speed, axis)), 0, TOL(1e-12, 1e-6));
    }
    CHECK(held >= (int)sites && s->stats.momentum_error < TOL(1e-12, 1e-5));
    for (i = 1; i < s->count; i++) CHECK(s->id[i] == s->id[i - 1] + 1);
    CHECK(s->id[0] == 0);
    fsi_wcsph_destroy(s);
}

static void test_emitted_volume_is_area_times_speed_times_time(void)
{
    static const double dt[3] = { 1.0 / 240, 1.0 / 60, 1.0 / 24 };
    int k;
    for (k = 0; k < 3; k++) {
        let_out(2, FSI_EMITTER_DISC, dt[k], 9, 8.6 * DX);
        let_out(2, FSI_EMITTER_BOX, dt[k], 7, 7 * DX);
        let_out(3, FSI_EMITTER_DISC, dt[k], 58, FSI_PI * 4.3 * 4.3 * DX * DX);
        let_out(3, FSI_EMITTER_BOX, dt[k], 35, 35 * DX * DX);
    }
}

static void test_emitters_start_stop_and_keep_their_budget(void)
{
    fsi_wcsph *s = make_free(3, NULL);
    fsi_emitter_desc d = make_tap(3, FSI_EMITTER_BOX, 2);
    long long emitted, blocked, refused;
    int id, step;
    d.start = 0.05;
    d.stop = 0.15;
    d.budget = 5 * 35 + 7;
    CHECK(fsi_wcsph_add_emitter(s, &d, &id) == FSI_OK);
    for (step = 0; step < 20; step++) {
        step_ok(s, 0.01);
        if (step < 5) CHECK(s->count == 0);
        CHECK(s->stats.particles == s->count && s->count <= d.budget);
    }
    CHECK(s->count == d.budget);
    CHECK(fsi_wcsph_emitter_total(s, id, &emitted, &blocked, &refused) == FSI_OK);
    CHECK(emitted == d.budget && blocked == 0);
    CHECK_NEAR((double)refused, 10 * 35 - (double)d.budget, TOL(0, 35)); /* the time of a float step is not quite 0.01 s */
    fsi_wcsph_destroy(s);
}

/* A mesh is filled at once and again; sites that are taken stay empty. */
static void test_a_mesh_is_filled_again_and_again(void)
{
    fsi_wcsph *s = make_free(3, NULL);
    fsi_emitter_desc d = fsi_emitter_default_desc();
    fsi_mesh *mesh;
    long long blocked;
    int id, step;
    shape_begin(3);
    shape_box(box3(0, 0, 0, 6.2 * DX, 6.2 * DX, 6.2 * DX));
    mesh = shape_make(FSI_MESH_CLOSED, 0);
    d.shape = FSI_EMITTER_MESH;
    d.mesh = mesh; /* 6 x 6 x 6 sites at least dx/2 inside */
    d.period = 0.0199; /* a float step of 0.01 s is a little less */
    d.speed = 0;
    CHECK(fsi_wcsph_add_emitter(s, &d, &id) == FSI_OK);
    for (step = 0; step < 5; step++) step_ok(s, 0.01);

    CHECK(s->count == 216);
    CHECK(fsi_wcsph_emitter_total(s, id, NULL, &blocked, NULL) == FSI_OK && blocked == 2 * 216);
    fsi_wcsph_destroy(s);
    fsi_mesh_destroy(mesh);
}

/* A jet from the floor into a pool: its flow is what it was told, nothing is lost, momentum is accounted for, and the pool does not boil. */
static void jet_under_water(int dim, double dt)
{
    fsi_wcsph_desc d = make_desc(dim, DX);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_wcsph *s;
    const double volume = dim == 2 ? DX * DX : DX * DX * DX, area = dim == 2 ? 6 * DX : FSI_PI * 9 * DX * DX;
    long long emitted, blocked, refused;
    double before[3], after[3], unused[3], t = 0;
    int id, k;
    d.domain = room(dim, 0, 0, 0.4, 0.6, dim == 2 ? 0 : 0.2);
    d.depth = (fsi_real)0.3;
    s = make_wcsph(&d);
    fill(s, room(dim, 0, 0, 0.4, 0.2, dim == 2 ? 0 : 0.2), v3(0, 0, 0));
    CHECK(fsi_wcsph_settle_density(s, in_room(dim, 0, 0.2, 0)) == FSI_OK);
    e.center = in_room(dim, 0.2, 0, dim == 2 ? 0 : 0.1);
    e.direction = in_room(dim, 0, 1, 0);
    e.radius = (fsi_real)(3 * DX);
    e.speed = (fsi_real)0.8;
    CHECK(fsi_wcsph_add_emitter(s, &e, &id) == FSI_OK);
    while (t < 0.25) {
        momenta(s, before, unused);
        if (!step_ok(s, dt)) break;
        t += dt;
        momenta(s, after, unused);
        for (k = 0; k < dim; k++) {
            const double given = s->stats.wall_impulse[k] + s->stats.external_impulse[k] + s->stats.source_impulse[k];
            CHECK_NEAR(after[k] - before[k], given, TOL(1e-10, 2e-4) * s->count * (double)s->particle_mass);
        }
        CHECK(s->stats.momentum_error < TOL(1e-12, 1e-5) && s->stats.max_speed < 2.5 && s->stats.lost == 0 && s->stats.inside == 0);
        CHECK(s->stats.density_ratio_max < 1.1);
    }
    CHECK(fsi_wcsph_emitter_total(s, id, &emitted, &blocked, &refused) == FSI_OK);
    CHECK(refused == 0 && blocked < emitted / 20);
    CHECK_NEAR((double)(emitted + blocked) * volume, area * 0.8 * t, area * DX);
    fsi_wcsph_destroy(s);
}

static void test_a_jet_under_water_keeps_its_flow(void)
{
    jet_under_water(2, 1.0 / 60);
    jet_under_water(2, 1.0 / 240);
    jet_under_water(3, 1.0 / 60);
}

/* A tap in a wall of the tank that stops in the middle of a step: what is still behind the wall is not pushed onto what has come out. */
static void test_a_tap_that_stops_in_a_step_shoots_nothing(void)
{
    fsi_wcsph_desc d = make_desc(2, DX);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    int k;
    d.gravity = v3(0, 0, 0);
    d.speed = 2;
    d.domain = box3(0, 0, 0, 0.6, 0.4, 0);
    for (k = 0; k < 8; k++) {
        fsi_wcsph *s = make_wcsph(&d);
        int step;
        e.center = v3(0, 0.2, 0);
        e.radius = (fsi_real)(3 * DX);
        e.stop = 0.2 + 0.0057 * k;
        CHECK(fsi_wcsph_add_emitter(s, &e, NULL) == FSI_OK);
        for (step = 0; step < 8; step++) {
            step_ok(s, 0.05);
            CHECK(s->stats.max_speed < 1.3 && s->stats.momentum_error < TOL(1e-12, 1e-5));
        }
        fsi_wcsph_destroy(s);
    }
}

/* A moving tap moves also while there is no liquid; and with the world, where its origin is shifted. */
static void test_taps_move_by_themselves_and_with_the_origin(void)
{
    fsi_wcsph *s = make_free(3, NULL);
    fsi_emitter_desc e = make_tap(3, FSI_EMITTER_BOX, 1);
    const fsi_vec3 offset = v3(4, -3, 2);
    fsi_vec3 mean = v3(0, 0, 0);
    int i, step;
    e.start = 0.299;
    e.velocity = v3(0, 1, 0);
    CHECK(fsi_wcsph_add_emitter(s, &e, NULL) == FSI_OK);
    for (step = 0; step < 15; step++) step_ok(s, 0.01);
    CHECK(fsi_wcsph_shift_origin(s, offset) == FSI_OK);
    for (step = 0; step < 17; step++) step_ok(s, 0.01);
    CHECK(s->count == 35);
    for (i = 0; i < s->count; i++) mean = fsi_v3_madd(mean, (fsi_real)(1.0 / 35), fsi_v3_sub(s->position[i], offset));
    mean = fsi_v3_sub(mean, fsi_v3_madd(e.center, (fsi_real)0.01, fsi_v3_unit(e.direction))); /* 1 m/s since half a layer came out */
    CHECK_NEAR(mean.x, 0, 1e-3);
    CHECK_NEAR(mean.y, 0.32, 1e-3);
    CHECK_NEAR(mean.z, 0, 1e-3);
    fsi_wcsph_destroy(s);
}

/* Too few substeps make the liquid softer, not its tap. */
static void test_a_degraded_step_lets_as_much_out(void)
{
    fsi_wcsph *s = make_fountain(2, NULL), *soft;
    fsi_wcsph_desc d = s->desc;
    soft = make_fountain(2, NULL);
    d.max_substeps = 3;
    CHECK(fsi_wcsph_set_desc(soft, &d) == FSI_OK);
    run_fountain(s, 10);
    run_fountain(soft, 10);
    CHECK(soft->stats.degraded == 1 && soft->stats.emitted == s->stats.emitted && soft->stats.momentum_error < TOL(1e-12, 1e-5));
    fsi_wcsph_destroy(s);
    fsi_wcsph_destroy(soft);
}

/* ---- what goes away ------------------------------------------------------------------------------------------- */

static void test_sinks_take_what_is_inside_at_their_rate(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) for (k = 0; k < 2; k++) {
        const double volume = dim == 2 ? DX * DX : DX * DX * DX;
        fsi_wcsph *s = make_free(dim, NULL);
        fsi_sink_desc d = fsi_sink_default_desc();
        long long removed;
        int id, i, all;
        fill(s, box3(0, 0, 0, 10 * DX, 10 * DX, 10 * DX), v3(0, 0, 0));
        all = s->count;
        d.box = box3(-1, -1, -1, 5 * DX, 1, 1);
        d.rate = k ? (fsi_real)(7.5 * volume / 0.01) : 0;
        CHECK(fsi_wcsph_add_sink(s, &d, &id) == FSI_OK);
        step_ok(s, 0.01);
        CHECK(s->stats.removed == (k ? 7 : all / 2) && s->stats.particles == s->count);
        CHECK(s->count == all - s->stats.removed);
        step_ok(s, 0.01);
        CHECK(fsi_wcsph_sink_total(s, id, &removed) == FSI_OK && removed == (k ? 15 : all / 2) && s->count == all - removed);
        for (i = 1; i < s->count; i++) CHECK(s->id[i] > s->id[i - 1]);
        CHECK(fsi_wcsph_remove_sink(s, id) == FSI_OK);
        step_ok(s, 0.01);
        CHECK(s->count == all - removed);
        fsi_wcsph_destroy(s);
    }
}

/* ---- state, threads, memory ------------------------------------------------------------------------------------ */

static void test_any_number_of_threads_gives_the_same_bits(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t hash[3];
        for (k = 0; k < 3; k++) {
            fsi_context context = fsi_default_context();
            fsi_wcsph *s;
            if (k) test_threads(&context, 3, k == 2);
            s = make_fountain(dim, &context);
            run_fountain(s, 12);
            CHECK(s->stats.emitted > 0);
            hash[k] = fsi_wcsph_hash(s);
            fsi_wcsph_destroy(s);
        }
        CHECK(hash[0] == hash[1] && hash[0] == hash[2]);
    }
}

static void test_loading_continues_as_if_nothing_had_happened(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        fsi_wcsph *s = make_fountain(dim, NULL), *other = make_fountain(dim, NULL);
        size_t size;
        void *state;
        uint64_t end;
        run_fountain(s, 9);
        state = save_state(s, &size);
        run_fountain(s, 6);
        end = fsi_wcsph_hash(s);
        CHECK(fsi_wcsph_load(other, state, size) == FSI_OK && fsi_wcsph_load(s, state, size) == FSI_OK);
        run_fountain(other, 6);
        run_fountain(s, 6);
        CHECK(fsi_wcsph_hash(other) == end && fsi_wcsph_hash(s) == end);
        CHECK(fsi_wcsph_remove_sink(other, 0) == FSI_OK && fsi_wcsph_load(other, state, size) == FSI_ERROR_FORMAT);
        free(state);
        fsi_wcsph_destroy(s);
        fsi_wcsph_destroy(other);
    }
}

/* Every allocation of growing steps fails in turn; the step then goes through as if not tried. */
static void test_every_failed_allocation_rolls_back(void)
{
    fsi_context context = fsi_default_context();
    fsi_wcsph *s, *other = make_fountain(2, NULL);
    int step, fail, failed = 0;
    test_fail_allocator(&context, 0);
    s = make_fountain(2, &context);
    for (step = 0; step < 12; step++) {
        fsi_status status = FSI_ERROR_MEMORY;
        for (fail = 1; status != FSI_OK && fail < 100; fail++) {
            const uint64_t hash = fsi_wcsph_hash(s);
            test_fail_allocator(&context, fail);
            status = fsi_wcsph_step(s, (fsi_real)(1.0 / 60));
            if (status == FSI_OK) break;
            failed++;
            CHECK(status == FSI_ERROR_MEMORY && fsi_wcsph_hash(s) == hash);
        }
        test_fail_allocator(&context, 0);
        step_ok(other, 1.0 / 60);
        CHECK(fsi_wcsph_hash(s) == fsi_wcsph_hash(other));
    }
    CHECK(failed > 5);
    fsi_wcsph_destroy(s);
    fsi_wcsph_destroy(other);
    CHECK(context.bytes == 0);
}

/* In a duct where as much comes in as goes out. */
static void test_a_steady_flow_allocates_nothing(void)
{
    fsi_wcsph_desc d = make_desc(2, DX);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_sink_desc k = fsi_sink_default_desc();
    fsi_wcsph *s;
    long long allocs = 0;
    int step;
    d.gravity = v3(0, 0, 0);
    d.speed = 2;
    d.domain = box3(0, 0, 0, 0.6, 0.2, 0);
    d.domain_slip = 1;
    d.reserve = 600;
    s = make_wcsph(&d);
    e.center = v3(0, 0.1, 0);
    e.radius = (fsi_real)0.1;
    CHECK(fsi_wcsph_add_emitter(s, &e, NULL) == FSI_OK);
    k.box = box3(0.5, -1, 0, 1, 1, 0);
    CHECK(fsi_wcsph_add_sink(s, &k, NULL) == FSI_OK);
    for (step = 0; step < 160; step++) {
        step_ok(s, 1.0 / 60);
        if (step == 79) allocs = s->context->allocs;
    }
    CHECK(s->context->allocs == allocs);
    CHECK(s->count > 200 && s->count < 300 && s->stats.max_speed < 1.5);
    fsi_wcsph_destroy(s);
}

/* ---- wrong calls ----------------------------------------------------------------------------------------------- */

static void test_wrong_calls_are_refused_by_name(void)
{
    fsi_wcsph *s = make_free(2, NULL);
    fsi_emitter_desc e = make_tap(2, FSI_EMITTER_DISC, 1), bad = e;
    fsi_sink_desc k = fsi_sink_default_desc();
    int id;
    CHECK(fsi_wcsph_add_emitter(NULL, &e, NULL) == FSI_ERROR_ARGUMENT && fsi_wcsph_add_emitter(s, NULL, NULL) == FSI_ERROR_ARGUMENT);
    bad.cookie++;
    CHECK(fsi_wcsph_add_emitter(s, &bad, NULL) == FSI_ERROR_COOKIE && strstr(fsi_wcsph_error(s)->message, "fsi_emitter_default_desc"));
    bad = e;
    bad.speed = (fsi_real)test_nan();
    CHECK(fsi_wcsph_add_emitter(s, &bad, NULL) == FSI_ERROR_NAN && strstr(fsi_wcsph_error(s)->message, "speed"));
    bad = e;
    bad.velocity = v3(1e30, 0, 0);
    CHECK(fsi_wcsph_add_emitter(s, &bad, NULL) == FSI_ERROR_ARGUMENT && strstr(fsi_wcsph_error(s)->message, "velocity"));
    bad = e;
    bad.direction = v3(0, 0, 0);
    CHECK(fsi_wcsph_add_emitter(s, &bad, NULL) == FSI_ERROR_ARGUMENT && strstr(fsi_wcsph_error(s)->message, "direction"));
    CHECK(fsi_wcsph_add_sink(s, &k, NULL) == FSI_ERROR_ARGUMENT && strstr(fsi_wcsph_error(s)->message, "box"));
    CHECK(fsi_wcsph_set_emitter(s, 3, &e) == FSI_ERROR_ARGUMENT && fsi_wcsph_error(s)->element == 3);
    CHECK(fsi_wcsph_remove_emitter(s, 3) == FSI_ERROR_ARGUMENT && fsi_wcsph_emitter_total(s, 3, NULL, NULL, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_wcsph_remove_sink(s, 3) == FSI_ERROR_ARGUMENT && fsi_wcsph_sink_total(s, 3, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_wcsph_add_emitter(s, &e, &id) == FSI_OK && fsi_wcsph_set_emitter(s, id, &e) == FSI_OK);
    CHECK(fsi_wcsph_remove_emitter(s, id) == FSI_OK);
    step_ok(s, 0.1);
    CHECK(s->count == 0);
    fsi_wcsph_destroy(s);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_emitted_volume_is_area_times_speed_times_time);
    RUN(test_emitters_start_stop_and_keep_their_budget);
    RUN(test_a_mesh_is_filled_again_and_again);
    RUN(test_a_jet_under_water_keeps_its_flow);
    RUN(test_a_tap_that_stops_in_a_step_shoots_nothing);
    RUN(test_taps_move_by_themselves_and_with_the_origin);
    RUN(test_a_degraded_step_lets_as_much_out);
    RUN(test_sinks_take_what_is_inside_at_their_rate);
    RUN(test_any_number_of_threads_gives_the_same_bits);
    RUN(test_loading_continues_as_if_nothing_had_happened);
    RUN(test_every_failed_allocation_rolls_back);
    RUN(test_a_steady_flow_allocates_nothing);
    RUN(test_wrong_calls_are_refused_by_name);
    return TEST_END();
}
