/* test_flip_calls.c - calls of fsi_flip.h: bad input is refused by name and changes nothing, memory that fails, states
   and damaged states, threads, steps of no time, budgets, a moving origin. SPDX-License-Identifier: MIT */
#define FSI_GROUND_IMPLEMENTATION
#include "kit/test_flip.h"
#include "kit/flip_worlds.h"

static int step_pool(small_pool *p, double dt)
{
    if (!step_ok(p->s, dt)) return 0;
    fsi_body_accept(&p->body);
    return 1;
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void refuse_desc(fsi_flip_desc d, const char *name)
{
    fsi_context context = fsi_default_context();
    fsi_flip *s = (fsi_flip *)(void *)&context;
    d.context = &context;
    if (!CHECK(fsi_flip_create(&s, &d) != FSI_OK)) printf("      %s was accepted\n", name);
    else {
        CHECK(s == NULL && context.bytes == 0);
        if (!CHECK(strstr(context.error.message, name) != NULL)) printf("      %s: %s\n", name, context.error.message);
    }
    fsi_flip_destroy(s);
}

#define REFUSE(field, value) \
    do { \
        fsi_flip_desc d = fsi_flip_default_desc(); \
        d.field = value; \
        refuse_desc(d, #field); \
    } while (0)
#define REFUSE_INT(field, lo, hi) do { REFUSE(field, lo); REFUSE(field, hi); } while (0)
#define REFUSE_REAL(field, lo, hi) \
    do { \
        REFUSE_INT(field, (fsi_real)(lo), (fsi_real)(hi)); \
        REFUSE_INT(field, (fsi_real)test_nan(), (fsi_real)test_inf()); \
    } while (0)

static void test_every_bad_desc_field_is_named(void)
{
    fsi_flip_desc flat = fsi_flip_default_desc();
    REFUSE_INT(dim, 1, 4);
    REFUSE_INT(n[0], 0, -3);
    REFUSE_INT(n[2], 0, 2000000000);
    REFUSE_REAL(dx, 0, -1);
    REFUSE(origin, v3(0, test_nan(), 0));
    REFUSE_REAL(density, 0, -1000);
    REFUSE_REAL(viscosity, -0.1, 1e13);
    REFUSE_REAL(surface_tension, -0.1, 1e7);
    REFUSE(no_slip[2], 2);
    REFUSE(gravity, v3(test_nan(), 0, 0));
    REFUSE(gravity, v3(1e7, 0, 0));
    REFUSE(transfer, (fsi_flip_transfer)2);
    REFUSE_REAL(pic, -0.1, 1.1);
    REFUSE_REAL(volume_rate, -0.1, 1.1);
    REFUSE_REAL(cfl, 0, 2.1);
    REFUSE_INT(max_substeps, 0, -1);
    REFUSE_INT(pressure_tolerance, 0, 1);
    REFUSE_INT(pressure_tolerance, test_nan(), test_inf());
    REFUSE_INT(pressure_iters, 0, -1);
    REFUSE_INT(resample, -1, 2);
    REFUSE_INT(reserve, -1, -2);
    REFUSE_INT(max_particles, -1, -2);
    REFUSE_INT(attribute_count, -1, 65);
    REFUSE_INT(markers, -1, 2);
    REFUSE_REAL(trapped_air_min, -1, 2e9);
    REFUSE(trapped_air_max, (fsi_real)0.1);
    REFUSE_REAL(wave_crest_min, -1, 2e9);
    REFUSE(wave_crest_max, (fsi_real)0.1);
    REFUSE_REAL(spray_energy_min, -1, 2e9);
    REFUSE(spray_energy_max, (fsi_real)0.1);
    flat.dim = 2; /* the default gravity points out of the plane */
    refuse_desc(flat, "gravity");
}

static void test_wrong_calls_are_refused(void)
{
    fsi_flip_desc d = make_desc(3, 8), unfilled;
    fsi_flip *s, *t = (fsi_flip *)(void *)&d;
    fsi_vec3 x = v3(0.5, 0.5, 0.5);
    fsi_emitter_desc tap = fsi_emitter_default_desc();
    fsi_sink_desc drain = fsi_sink_default_desc();
    size_t size;
    float out[3];
    memset(&unfilled, 0, sizeof unfilled);
    CHECK(fsi_flip_create(&t, &unfilled) == FSI_ERROR_COOKIE && t == NULL);
    CHECK(fsi_flip_create(&t, NULL) == FSI_ERROR_ARGUMENT && fsi_flip_create(NULL, &d) == FSI_ERROR_ARGUMENT);
    fsi_flip_destroy(NULL);
    CHECK(strstr(fsi_flip_error(NULL)->message, "context.error.message") != NULL);

    /* NULL, and what is no simulator. */
    d.max_particles = 3;
    s = make_flip(&d);
    for (t = NULL; ; t = s) {
        const fsi_status want = t ? FSI_ERROR_COOKIE : FSI_ERROR_ARGUMENT;
        s->cookie++;
        CHECK(fsi_flip_set_desc(t, &d) == want && fsi_flip_step(t, (fsi_real)1e-3) == want);
        CHECK(fsi_flip_add_particles(t, &x, NULL, 1) == want && fsi_flip_remove_particles(t, NULL) == want);
        CHECK(fsi_flip_fill_box(t, box3(0, 0, 0, 1, 1, 1), x, NULL) == want);
        CHECK(fsi_flip_fill_sphere(t, x, 1, x, NULL) == want && fsi_flip_fill_mesh(t, NULL, x, NULL) == want);
        CHECK(fsi_flip_add_obstacle(t, NULL, NULL) == want && fsi_flip_add_mesh(t, NULL, NULL) == want);
        CHECK(fsi_flip_remove_obstacle(t, 0) == want && fsi_flip_teleport_obstacle(t, 0) == want);
        CHECK(fsi_flip_obstacle_reaction(t, -1, &x, NULL) == want && fsi_flip_shift_origin(t, x) == want);
        CHECK(fsi_flip_add_emitter(t, &tap, NULL) == want && fsi_flip_set_emitter(t, 0, &tap) == want);
        CHECK(fsi_flip_remove_emitter(t, 0) == want && fsi_flip_emitter_total(t, 0, NULL, NULL, NULL) == want);
        CHECK(fsi_flip_add_sink(t, &drain, NULL) == want && fsi_flip_remove_sink(t, 0) == want);
        CHECK(fsi_flip_sink_total(t, 0, NULL) == want && fsi_flip_save(t, NULL, 0, &size) == want);
        CHECK(fsi_flip_load(t, &d, sizeof d) == want && fsi_flip_copy(t, FSI_FLIP_POSITION, x, out, 3) == want);
        CHECK(fsi_flip_hash(t) == 0 && fsi_flip_suggest_dt(t) == 0 && fsi_flip_count_inside(t, NULL) == 0);
        CHECK(fsi_v3_norm(fsi_flip_velocity_at(t, x)) == 0 && fsi_flip_pressure_at(t, x) == 0);
        fsi_flip_debug_draw(t, NULL);
        s->cookie--;
        x = v3(0.5, 0.5, 0.5);
        if (t) break;
    }

    /* Limits, fixed fields. */
    CHECK(fsi_flip_add_particles(s, &x, NULL, 1) == FSI_OK);
    CHECK(fsi_flip_fill_box(s, box3(0, 0, 0, 1, 1, 0.3), x, NULL) == FSI_ERROR_LIMIT);
    CHECK(s->count == 1 && strstr(fsi_flip_error(s)->message, "max_particles") != NULL);
    d = s->desc;
    d.dx = (fsi_real)0.01;
    CHECK(fsi_flip_set_desc(s, &d) == FSI_ERROR_ARGUMENT && strstr(fsi_flip_error(s)->message, "dx") != NULL);
    d = s->desc;
    d.transfer = FSI_FLIP_APIC;
    CHECK(fsi_flip_set_desc(s, &d) == FSI_ERROR_ARGUMENT && strstr(fsi_flip_error(s)->message, "transfer") != NULL);
    d = s->desc;
    d.pic = (fsi_real)test_nan();
    CHECK(fsi_flip_set_desc(s, &d) == FSI_ERROR_NAN && strstr(fsi_flip_error(s)->message, "pic") != NULL);
    d = s->desc;
    d.cookie = 0;
    CHECK(fsi_flip_set_desc(s, &d) == FSI_ERROR_COOKIE);
    CHECK(fsi_flip_set_desc(s, NULL) != FSI_OK);
    d = s->desc;
    d.pic = 1;
    d.open_side[4] = 1;
    CHECK(fsi_flip_set_desc(s, &d) == FSI_OK && s->desc.pic == 1 && step_ok(s, 1e-3));
    fsi_flip_destroy(s);
}

static void refuse_obstacle(fsi_flip *s, const fsi_flip_obstacle_desc *o, fsi_status status, const char *word)
{
    int id = -7;
    const uint64_t hash = fsi_flip_hash(s);
    const fsi_status got = fsi_flip_add_obstacle(s, o, &id);
    if (!CHECK(got == status)) printf("      %s: %s\n", word, fsi_status_text(got));
    if (got == FSI_OK) return;
    if (!CHECK(strstr(fsi_flip_error(s)->message, word) != NULL))
        printf("      %s: %s\n", word, fsi_flip_error(s)->message);
    CHECK(fsi_flip_hash(s) == hash);
}

static void test_bad_obstacles_are_named(void)
{
    fsi_flip_desc d = make_desc(3, 16);
    fsi_flip_obstacle_desc o = fsi_flip_default_obstacle_desc(), bad;
    fsi_flip *s = make_flip(&d);
    fsi_mesh *crate = make_block(3, 0.1, 0.1, 0.1), *flat = make_block(2, 0.1, 0.1, 0), *sheet;
    fsi_body body = make_floater(crate, 500, 9.81, 3);
    int id;
    shape_begin(3);
    shape_sheet(v3(0, 0, 0), v3(0.3, 0, 0), v3(0, 0.3, 0), 2, 2);
    sheet = shape_make(FSI_MESH_OPEN, 0);
    o.mesh = crate;
    bad = o, bad.mesh = NULL;
    refuse_obstacle(s, &bad, FSI_ERROR_ARGUMENT, "mesh");
    bad = o, bad.cookie = 0;
    refuse_obstacle(s, &bad, FSI_ERROR_COOKIE, "fsi_flip_default_obstacle_desc");
    bad = o, bad.mesh = flat;
    CHECK(fsi_flip_add_obstacle(s, &bad, NULL) != FSI_OK);
    bad = o, bad.mesh = sheet;
    refuse_obstacle(s, &bad, FSI_ERROR_MESH, "not closed");
    bad = o, bad.body = &body, body.mass = 0;
    refuse_obstacle(s, &bad, FSI_ERROR_ARGUMENT, "mass");
    body.mass = 1, body.cookie = 0;
    CHECK(fsi_flip_add_obstacle(s, &bad, NULL) == FSI_ERROR_COOKIE);
    body = make_floater(crate, 500, 9.81, 3);
    CHECK(fsi_flip_add_obstacle(s, &bad, &id) == FSI_OK);
    refuse_obstacle(s, &bad, FSI_ERROR_ARGUMENT, "COUPLED");
    CHECK(fsi_flip_add_mesh(s, crate, NULL) == FSI_OK && fsi_flip_remove_obstacle(s, id) == FSI_OK);
    CHECK(fsi_flip_remove_obstacle(s, id) == FSI_ERROR_ARGUMENT
        && fsi_flip_remove_obstacle(s, -1) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_teleport_obstacle(s, 99) == FSI_ERROR_ARGUMENT
        && fsi_flip_teleport_obstacle(s, -1) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_obstacle_reaction(s, 99, NULL, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_obstacle_reaction(s, -1, NULL, NULL) == FSI_OK
        && fsi_flip_obstacle_reaction(s, -2, NULL, NULL) != FSI_OK);
    CHECK(strstr(fsi_flip_error(s)->message, "there is no obstacle -2") != NULL);
    fsi_flip_destroy(s);
    fsi_mesh_destroy(crate);
    fsi_mesh_destroy(flat);
    fsi_mesh_destroy(sheet);
}

static void test_bad_sources_are_named(void)
{
    fsi_context context = fsi_default_context();
    fsi_emitter_desc tap = fsi_emitter_default_desc();
    fsi_sink_desc drain = fsi_sink_default_desc();
    small_pool p;
    uint64_t hash;
    if (!CHECK(make_small_pool(&context, 3, FSI_FLIP_FLIP, &p))) return;
    hash = fsi_flip_hash(p.s);
    CHECK(fsi_flip_add_emitter(p.s, &tap, NULL) == FSI_ERROR_ARGUMENT
        && strstr(fsi_flip_error(p.s)->message, "radius"));
    tap.radius = (fsi_real)test_nan();
    CHECK(fsi_flip_add_emitter(p.s, &tap, NULL) == FSI_ERROR_NAN);
    tap.radius = (fsi_real)0.1;
    tap.cookie = 0;
    CHECK(fsi_flip_add_emitter(p.s, &tap, NULL) == FSI_ERROR_COOKIE && fsi_flip_add_emitter(p.s, NULL, NULL) != FSI_OK);
    CHECK(fsi_flip_add_sink(p.s, &drain, NULL) == FSI_ERROR_ARGUMENT && fsi_flip_add_sink(p.s, NULL, NULL) != FSI_OK);
    tap = fsi_emitter_default_desc();
    tap.radius = (fsi_real)0.1;
    CHECK(fsi_flip_set_emitter(p.s, 77, &tap) == FSI_ERROR_ARGUMENT
        && fsi_flip_remove_emitter(p.s, 77) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_emitter_total(p.s, 77, NULL, NULL, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_remove_sink(p.s, 77) == FSI_ERROR_ARGUMENT
        && fsi_flip_sink_total(p.s, 77, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_hash(p.s) == hash && fsi_flip_set_emitter(p.s, p.tap, &tap) == FSI_OK && step_pool(&p, 0.01));
    end_small_pool(&p);
    CHECK(context.bytes == 0);
}

static void refuse_step(small_pool *p, double dt, fsi_status status, const char *word)
{
    const uint64_t hash = fsi_flip_hash(p->s);
    const fsi_body body = p->body;
    const fsi_status got = fsi_flip_step(p->s, (fsi_real)dt);
    if (!CHECK(got == status))
        printf("      wanted %s, got %s for %s\n", fsi_status_text(status), fsi_status_text(got), word);
    if (got == FSI_OK) return;
    if (!CHECK(strstr(fsi_flip_error(p->s)->message, word) != NULL))
        printf("      %s: %s\n", word, fsi_flip_error(p->s)->message);
    CHECK(fsi_flip_hash(p->s) == hash && memcmp(&body, &p->body, sizeof body) == 0);
}

static int calls_left;
static fsi_vec3 ill_wind(void *user, fsi_vec3 x, double time)
{
    (void)user;
    (void)time;
    return v3((double)x.x > 0.5 && calls_left-- <= 0 ? test_nan() : 1, 0, 0);
}

/* NaN wherever a caller may write it. */
static void test_bad_particles_are_named_and_change_nothing(void)
{
    fsi_context context = fsi_default_context();
    small_pool p;
    fsi_vec3 ill[2], was;
    int j;
    if (!CHECK(make_small_pool(&context, 2, FSI_FLIP_APIC, &p))) return;
    CHECK(step_pool(&p, 0.01));
    ill[0] = v3(test_nan(), 0, 0);
    ill[1] = v3(0, -test_inf(), 0);
    for (j = 0; j < 2; j++) {
        was = p.s->position[17], p.s->position[17] = ill[j];
        refuse_step(&p, 1e-3, FSI_ERROR_NAN, "particle 17: its position");
        p.s->position[17] = was;
        was = p.s->velocity[17], p.s->velocity[17] = ill[j];
        refuse_step(&p, 1e-3, FSI_ERROR_NAN, "particle 17: its velocity");
        p.s->velocity[17] = v3(1e12, 0, 0);
        refuse_step(&p, 1e-3, FSI_ERROR_LIMIT, "particle 17");
        p.s->velocity[17] = was;
    }
    refuse_step(&p, test_nan(), FSI_ERROR_ARGUMENT, "dt");
    refuse_step(&p, test_inf(), FSI_ERROR_ARGUMENT, "dt");
    refuse_step(&p, -1e-3, FSI_ERROR_ARGUMENT, "dt");
    refuse_step(&p, 1e6, FSI_ERROR_ARGUMENT, "dt");
    refuse_step(&p, 1e-20, FSI_ERROR_ARGUMENT, "dt");
    end_small_pool(&p);
}

static void test_bad_bodies_are_named_and_change_nothing(void)
{
    fsi_context context = fsi_default_context();
    small_pool p;
    fsi_body body;
    if (!CHECK(make_small_pool(&context, 2, FSI_FLIP_APIC, &p))) return;
    CHECK(step_pool(&p, 0.01));
    body = p.body;
    p.body.mass = 0;
    refuse_step(&p, 1e-3, FSI_ERROR_ARGUMENT, "mass");
    p.body = body, p.body.velocity.x = (fsi_real)test_nan();
    refuse_step(&p, 1e-3, FSI_ERROR_NAN, "velocity");
    p.body = body, p.body.velocity.x = (fsi_real)1e12;
    refuse_step(&p, 1e-3, FSI_ERROR_LIMIT, "obstacle 0");
    p.body = body, p.body.force.y = (fsi_real)test_inf();
    refuse_step(&p, 1e-3, FSI_ERROR_NAN, "force");
    p.body = body, p.body.force.y = (fsi_real)1e30;
    refuse_step(&p, 1, FSI_ERROR_LIMIT, "obstacle 0");
    p.body = body, p.body.pose.orientation.w = 2;
    refuse_step(&p, 1e-3, FSI_ERROR_ARGUMENT, "quaternion");
    p.body = body, p.body.mode = FSI_BODY_PRESCRIBED, p.body.end.position.y = (fsi_real)test_nan();
    refuse_step(&p, 1e-3, FSI_ERROR_NAN, "end");
    p.body = body, p.body.mode = FSI_BODY_PRESCRIBED, p.body.end = body.pose, p.body.end.position.x = (fsi_real)1e9;
    refuse_step(&p, 1e-3, FSI_ERROR_LIMIT, "obstacle 0");
    p.body = body;
    CHECK(step_pool(&p, 0.01));
    end_small_pool(&p);
}

/* What the host's function returns, at once and in a later substep. */
static void test_bad_accelerations_change_nothing(void)
{
    fsi_context context = fsi_default_context();
    small_pool p;
    fsi_flip_desc d;
    int j;
    if (!CHECK(make_small_pool(&context, 2, FSI_FLIP_APIC, &p))) return;
    CHECK(step_pool(&p, 0.01));
    d = p.s->desc;
    d.acceleration = ill_wind;
    d.cfl = (fsi_real)0.05;
    CHECK(fsi_flip_set_desc(p.s, &d) == FSI_OK);
    for (j = 0; j < 2; j++) {
        calls_left = j * 3 * p.s->count;
        refuse_step(&p, 0.05, FSI_ERROR_NAN, "acceleration");
    }
    d.acceleration = NULL;
    CHECK(fsi_flip_set_desc(p.s, &d) == FSI_OK);
    CHECK(step_pool(&p, 0.01));
    end_small_pool(&p);
}

static void test_bad_arguments_change_nothing(void)
{
    fsi_context context = fsi_default_context();
    small_pool p;
    fsi_vec3 ill[2], was, at = v3(0.2, 0.6, 0);
    uint64_t hash;
    int j;
    if (!CHECK(make_small_pool(&context, 2, FSI_FLIP_APIC, &p))) return;
    ill[0] = v3(test_nan(), 0, 0);
    ill[1] = v3(0, -test_inf(), 0);
    hash = fsi_flip_hash(p.s);
    for (j = 0; j < 2; j++) {
        CHECK(fsi_flip_add_particles(p.s, &ill[j], NULL, 1) == FSI_ERROR_NAN);
        CHECK(fsi_flip_add_particles(p.s, &at, &ill[j], 1) == FSI_ERROR_NAN);
        CHECK(fsi_flip_fill_box(p.s, box3(0.1, 0.6, 0, 0.3, 0.8, 0), ill[j], NULL) == FSI_ERROR_NAN);
        CHECK(fsi_flip_fill_sphere(p.s, ill[j], 1, at, NULL) == FSI_ERROR_NAN);
        CHECK(fsi_flip_shift_origin(p.s, ill[j]) == FSI_ERROR_NAN);
    }
    was = v3(1e12, 0, 0);
    CHECK(fsi_flip_add_particles(p.s, &at, &was, 1) == FSI_ERROR_LIMIT
        || fsi_flip_error(p.s)->status == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_add_particles(p.s, &at, NULL, -1) == FSI_ERROR_ARGUMENT
        && fsi_flip_add_particles(p.s, NULL, NULL, 1) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_fill_box(p.s, box3(0.2, 0, 0, 0.1, 1, 0), at, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_fill_sphere(p.s, at, -1, at, NULL) == FSI_ERROR_ARGUMENT
        && fsi_flip_fill_mesh(p.s, NULL, at, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_remove_particles(p.s, NULL) == FSI_ERROR_ARGUMENT
        && fsi_flip_shift_origin(p.s, v3(1e20, 0, 0)) == FSI_ERROR_LIMIT);
    CHECK(fsi_flip_hash(p.s) == hash && step_pool(&p, 0.01));
    end_small_pool(&p);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* The harness's allocator, in which one allocation, or each from one on, fails. */
static struct { long count, at; int only; } scarce;
static void *scarce_alloc(void *user, size_t size, size_t align)
{
    const long n = ++scarce.count;
    return scarce.at && (n == scarce.at || (n > scarce.at && !scarce.only)) ? NULL : test__alloc(user, size, align);
}

/* Steps, particles, a fill and a load; what memory fails is tried again. */
static uint64_t run_scarcely(small_pool *p, const void *state, size_t size, int *failures)
{
    const int dim = p->s->desc.dim;
    const fsi_vec3 x = small_at(dim, 0.2, 0.6);
    int k;
    for (k = 0; k < 6; k++) {
        const uint64_t before = fsi_flip_hash(p->s);
        const fsi_body body = p->body;
        fsi_status status = FSI_OK;
        int added;
        if (k == 1) status = fsi_flip_add_particles(p->s, &x, NULL, 1);
        else if (k == 2)
            status = fsi_flip_fill_sphere(p->s, small_at(dim, 0.8, 0.8), (fsi_real)0.2, v3(0, 0, 0), &added);
        else if (k == 4) status = fsi_flip_load(p->s, state, size);
        else status = fsi_flip_step(p->s, (fsi_real)4e-3);
        if (status == FSI_OK) {
            if (k % 2 == 1 || k == 0) fsi_body_accept(&p->body);
            continue;
        }
        CHECK(status == FSI_ERROR_MEMORY && fsi_flip_hash(p->s) == before && memcmp(&body, &p->body, sizeof body) == 0);
        (*failures)++;
        scarce.at = 0;
        k--;
    }
    return fsi_flip_hash(p->s);
}

/* Each allocation of making and stepping fails once, and from each on: what is tried again gives the bits of a run with
   memory enough. */
static void check_scarcity(int dim, fsi_flip_transfer transfer, int *failures, int *made)
{
    fsi_context plain = fsi_default_context();
    small_pool calm_pool;
    size_t size;
    unsigned char *state;
    uint64_t hash;
    long at;
    int none = 0, only, done = 0;
    if (!CHECK(make_small_pool(&plain, dim, transfer, &calm_pool))) return;
    CHECK(step_ok(calm_pool.s, 4e-3));
    state = (unsigned char *)save_state(calm_pool.s, &size);
    end_small_pool(&calm_pool);
    if (!CHECK(make_small_pool(&plain, dim, transfer, &calm_pool))) return;
    hash = run_scarcely(&calm_pool, state, size, &none);
    end_small_pool(&calm_pool);
    for (only = 0; only < 2; only++)
        for (at = 1, done = 0; at < 1000 && !done; at += TEST_WATCHED ? 5 : 1) {
            fsi_context context = fsi_default_context();
            small_pool p;
            test_fail_allocator(&context, 0);
            context.alloc = scarce_alloc;
            scarce.count = 0;
            scarce.at = at;
            scarce.only = only;
            if (make_small_pool(&context, dim, transfer, &p)) {
                ++*made;
                CHECK(run_scarcely(&p, state, size, failures) == hash);
                end_small_pool(&p);
            }
            done = scarce.count < at;
            CHECK(context.bytes == 0);
        }
    CHECK(done && none == 0);
    free(state);
}

static void test_failing_memory_leaves_no_trace(void)
{
    int failures = 0, made = 0;
    check_scarcity(2, FSI_FLIP_APIC, &failures, &made);
    check_scarcity(3, FSI_FLIP_FLIP, &failures, &made);
    CHECK(made > 10 && failures > 10);
}

/* In the steady state a step allocates nothing: a pool after a wave; with a crate that swims, each list may still grow
   once with its peak: faces and what they are covered by, their velocities, pieces, rows of the pressure. */
static void test_a_steady_state_allocates_nothing(void)
{
    int dim, crate, step;
    for (dim = 2; dim <= 3; dim++)
        for (crate = 0; crate < 2; crate++) {
            fsi_context context = fsi_default_context();
            small_pool p;
            long long allocs = 0;
            if (!CHECK(make_small_pool(&context, dim, crate ? FSI_FLIP_APIC : FSI_FLIP_FLIP, &p))) return;
            CHECK(fsi_flip_remove_emitter(p.s, p.tap) == FSI_OK && fsi_flip_remove_sink(p.s, p.drain) == FSI_OK);
            if (!crate) CHECK(fsi_flip_remove_obstacle(p.s, 0) == FSI_OK);
            for (step = 0; step < 120; step++) {
                CHECK(step_pool(&p, 1.0 / 60));
                if (step == 80) allocs = p.s->stats.allocs;
            }
            if (!CHECK(allocs > 0 && p.s->stats.allocs <= allocs + 5 * crate && p.s->stats.bytes == context.bytes))
                printf("      %dD: %d more\n", dim, (int)(p.s->stats.allocs - allocs));
            end_small_pool(&p);
        }
}

/* A particle of a 3D liquid takes four vectors and 46 bytes, those of a step included, and its cells; one vector more
   once a call takes several substeps. Memory may fail between these. */
static void test_a_particle_takes_few_bytes(void)
{
    fsi_context context = fsi_default_context();
    fsi_flip_desc d = make_desc(3, 24);
    fsi_flip *s;
    double cells, rows;
    uint64_t hash;
    test_fail_allocator(&context, 0);
    d.context = &context;
    d.reserve = 8 * 24 * 24 * 15;
    s = make_flip(&d);
    fill(s, room(3, 0, 0, 1, 0.6, 1), v3(0, 0, 0));
    CHECK(step_ok(s, 1e-3) && step_ok(s, 1e-3) && s->stats.substeps == 1);
    rows = s->capacity * (4.0 * sizeof(fsi_vec3) + 46);
    cells = 512.0 * s->stats.blocks;
    printf("      %.0f bytes a particle, %.0f a cell\n", rows / s->capacity, ((double)context.bytes - rows) / cells);
    CHECK((double)context.bytes - rows < 200 * cells);

    /* Several substeps. */
    hash = fsi_flip_hash(s);
    test_fail_allocator(&context, 1);
    CHECK(fsi_flip_step(s, (fsi_real)0.2) == FSI_ERROR_MEMORY && fsi_flip_hash(s) == hash);
    test_fail_allocator(&context, 0);
    CHECK(step_ok(s, 0.2) && s->stats.substeps > 1);
    CHECK((double)context.bytes - rows - (double)s->capacity * (double)sizeof(fsi_vec3) < 200 * cells);
    fsi_flip_destroy(s);
    CHECK(context.bytes == 0);
}

/* Where particles get fewer, in the same blocks, arrays that they shared are not made anew. */
static void test_fewer_particles_take_no_other_memory(void)
{
    fsi_context context = fsi_default_context();
    fsi_flip_desc d = make_desc(3, 16);
    fsi_flip *s;
    unsigned char *gone;
    size_t bytes;
    int i;
    test_fail_allocator(&context, 0);
    d.context = &context;
    s = make_flip(&d);
    fill(s, room(3, 0, 0, 1, 1, 1), v3(0, 0, 0));
    for (i = 0; i < 3; i++) CHECK(step_ok(s, 1e-3));
    bytes = context.bytes;
    gone = (unsigned char *)malloc((size_t)s->count);
    for (i = 0; i < s->count; i++) gone[i] = i % 8 > 0;
    CHECK(fsi_flip_remove_particles(s, gone) == FSI_OK && step_ok(s, 1e-3));
    CHECK(context.bytes < bytes + 100000); /* what the solver wants for a surface */
    free(gone);
    fsi_flip_destroy(s);
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static void test_loading_continues_as_if_nothing_had_happened(void)
{
    int dim, transfer, step, k;
    for (dim = 2; dim <= 3; dim++)
        for (transfer = 0; transfer < 2; transfer++) {
            fsi_context context = fsi_default_context();
            small_pool a, b;
            fsi_body saved;
            size_t size;
            void *state;
            uint64_t at, end;
            if (!CHECK(make_small_pool(&context, dim, (fsi_flip_transfer)transfer, &a))) return;
            if (!CHECK(make_small_pool(&context, dim, (fsi_flip_transfer)transfer, &b))) return;
            for (step = 0; step < 6; step++) CHECK(step_pool(&a, 1.0 / 60));
            saved = a.body;
            state = save_state(a.s, &size);
            at = fsi_flip_hash(a.s);
            for (step = 0; step < 6; step++) CHECK(step_pool(&a, 1.0 / 60));
            end = fsi_flip_hash(a.s);
            for (k = 0; k < 3; k++) { /* a fresh one, one with a history and more particles, and back in time */
                small_pool *p = k == 2 ? &a : &b;
                if (k == 1) {
                    add_one(p->s, small_at(dim, 0.2, 0.7), v3(0, 0, 0));
                    CHECK(step_pool(p, 0.01));
                }
                p->body = saved;
                CHECK(fsi_flip_load(p->s, state, size) == FSI_OK);
                CHECK(fsi_flip_hash(p->s) == at && fabs(p->s->time - 0.1) < 1e-6);
                for (step = 0; step < 6; step++) CHECK(step_pool(p, 1.0 / 60));
                CHECK(fsi_flip_hash(p->s) == end && memcmp(&p->body, &a.body, sizeof saved) == 0);
            }
            free(state);
            end_small_pool(&a);
            end_small_pool(&b);
        }
}

static void test_damaged_states_are_refused(void)
{
    fsi_context context = fsi_default_context();
    small_pool p;
    size_t size, k, needed;
    unsigned char *state, *bad;
    uint64_t hash;
    int j;
    if (!CHECK(make_small_pool(&context, 2, FSI_FLIP_APIC, &p))) return;
    CHECK(step_pool(&p, 0.01));
    state = (unsigned char *)save_state(p.s, &size);
    bad = (unsigned char *)malloc(size + 8);
    CHECK(step_pool(&p, 0.01));
    hash = fsi_flip_hash(p.s);
    for (k = 0; k < size; k += k < 64 ? 1 : 41) {
        memcpy(bad, state, size);
        bad[k] ^= 0x10;
        CHECK(fsi_flip_load(p.s, bad, size) == FSI_ERROR_FORMAT);
        CHECK(fsi_flip_load(p.s, state, k) == FSI_ERROR_FORMAT);
    }
    memcpy(bad, state, size);
    memset(bad + size, 0, 8);
    CHECK(fsi_flip_load(p.s, bad, size + 8) == FSI_ERROR_FORMAT
        && fsi_flip_load(p.s, NULL, size) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_save(p.s, bad, size - 1, &needed) == FSI_ERROR_LIMIT
        && fsi_flip_save(p.s, NULL, 0, NULL) == FSI_ERROR_ARGUMENT);
    for (j = 0; j < 5; j++) { /* liquids made otherwise; the last has no obstacles, taps and drains */
        fsi_flip_desc d = p.s->desc;
        fsi_flip *other;
        uint64_t was;
        d.context = NULL;
        if (j == 0) d.dx *= 2;
        if (j == 1) d.attribute_count = 3;
        if (j == 2) d.transfer = FSI_FLIP_FLIP;
        if (j == 3) d.origin = v3(1, 0, 0);
        other = make_flip(&d);
        was = fsi_flip_hash(other);
        if (!CHECK(fsi_flip_load(other, state, size) == FSI_ERROR_FORMAT)) printf("      case %d\n", j);
        CHECK(fsi_flip_hash(other) == was && strlen(fsi_flip_error(other)->message) > 10);
        fsi_flip_destroy(other);
    }
    CHECK(fsi_flip_hash(p.s) == hash && fsi_flip_load(p.s, state, size) == FSI_OK);
    free(state);
    free(bad);
    end_small_pool(&p);
}

static void refit(const fsi_flip *s, unsigned char *state, size_t size)
{
    const fsi__state_header h = fsi__make_state_header(s->cookie, size - sizeof h,
        fsi_hash(state + sizeof h, size - sizeof h, 0));
    memcpy(state, &h, sizeof h);
}

/* NaN, infinity, 1e300 (float: 3e38), -1 and 1e30 for numbers of a state, at any offset, as any type: refused without a
   trace, or good for a step. */
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
        if (!CHECK(make_small_pool(&context, dim, dim == 2 ? FSI_FLIP_APIC : FSI_FLIP_FLIP, &p))) return;
        for (k = 0; k < 2; k++) CHECK(step_pool(&p, 0.01));
        state = (unsigned char *)save_state(p.s, &size);
        bad = (unsigned char *)malloc(size);
        body = p.body;
        for (at = sizeof(fsi__state_header); at + 8 <= size; at += at < 200 || at + 250 > size ? 1 : size / 200)
            for (k = 0; k < 10; k++) {
                const float single = (float)evil[k % 5];
                const uint64_t before = fsi_flip_hash(p.s);
                fsi_status status;
                memcpy(bad, state, size);
                if (k < 5) memcpy(bad + at, &evil[k], 8);
                else memcpy(bad + at, &single, 4);
                refit(p.s, bad, size);
                tried++;
                if (fsi_flip_load(p.s, bad, size) != FSI_OK) {
                    CHECK(fsi_flip_hash(p.s) == before);
                    continue;
                }
                taken++;
                if ((taken - 1) % 8) continue;
                status = fsi_flip_step(p.s, (fsi_real)1e-3);
                if (!CHECK(status == FSI_OK && is_finite(p.s)))
                    printf("      offset %d of %d, value %d: %s\n", (int)at, (int)size, k,
                        fsi_flip_error(p.s)->message);
                p.body = body;
            }
        CHECK(fsi_flip_load(p.s, state, size) == FSI_OK);
        free(state);
        free(bad);
        end_small_pool(&p);
    }
    CHECK(taken > 10 && taken < tried * 9 / 10 && context.bytes == 0);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* A dam that breaks against a crate, a tap above; several chunks of particles, several blocks. */
static uint64_t run_dam(fsi_context *context, int dim, fsi_flip_transfer transfer)
{
    fsi_flip_desc d = make_desc(dim, dim == 2 ? 72 : 18);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_mesh *m = make_block(dim, 0.1, 0.1, 0.1);
    fsi_body body = make_floater(m, 500, 9.81, dim);
    fsi_flip *s;
    uint64_t hash;
    int step;
    d.context = context;
    d.transfer = transfer;
    d.viscosity = 1;
    d.surface_tension = 1;
    d.resample = 1;
    s = make_flip(&d);
    body.pose = pose_at(dim, 0.75, 0.3, 0.3);
    if (dim == 3) body.pose.position.y = (fsi_real)0.5;
    mesh_to(m, body.pose);
    add_solid(s, m, &body);
    fill(s, room(dim, 0, 0, 0.5, 0.8, 1), v3(2, 0, 0));
    e.center = in_room(dim, 0.6, 0.9, 0.5);
    e.direction = in_room(dim, 0, -1, 0);
    e.radius = (fsi_real)0.15;
    CHECK(fsi_flip_add_emitter(s, &e, NULL) == FSI_OK);
    for (step = 0; step < 3; step++) {
        if (!step_ok(s, 1.0 / 60)) break;
        fsi_body_accept(&body);
    }
    CHECK(s->count > 8192 && s->stats.blocks > 4);
    hash = fsi_flip_hash(s) ^ fsi_hash(&body, sizeof body, 0);
    fsi_flip_destroy(s);
    fsi_mesh_destroy(m);
    return hash;
}

static void test_the_same_bits_for_any_threads(void)
{
    static const int threads[3] = { 1, 2, 5 };
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t want = 0;
        for (k = 0; k < 4; k++) {
            fsi_context context = fsi_default_context();
            uint64_t hash;
            if (k < 3) test_threads(&context, threads[k], 0);
            else test_threads(&context, 5, 1);
            hash = run_dam(&context, dim, dim == 2 ? FSI_FLIP_FLIP : FSI_FLIP_APIC);
            if (k == 0) want = hash;
            if (!CHECK(hash == want)) printf("      %dD, case %d\n", dim, k);
        }
    }
}

/* ---- steps and budgets ----------------------------------------------------------------------------------------- */

static void test_a_step_of_no_time_changes_nothing(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        fsi_context context = fsi_default_context();
        small_pool p;
        fsi_vec3 force, still;
        fsi_body body;
        uint64_t hash;
        double energy;
        if (!CHECK(make_small_pool(&context, dim, FSI_FLIP_APIC, &p))) return;
        CHECK(step_pool(&p, 0.01));
        hash = fsi_flip_hash(p.s);
        body = p.body;
        energy = p.s->stats.kinetic_energy;
        CHECK(fsi_flip_obstacle_reaction(p.s, -1, &force, NULL) == FSI_OK);
        CHECK(step_ok(p.s, 0));
        CHECK(fsi_flip_hash(p.s) == hash && memcmp(&body, &p.body, sizeof body) == 0);
        CHECK(fsi_flip_obstacle_reaction(p.s, -1, &still, NULL) == FSI_OK && memcmp(&force, &still, sizeof force) == 0);
        CHECK(p.s->stats.substeps == 0 && p.s->stats.particles == p.s->count);
        CHECK_NEAR(p.s->stats.kinetic_energy, energy, TOL(1e-12, 1e-6) * energy);
        end_small_pool(&p);
    }
}

typedef struct heard { int count; char text[200]; } heard;
static void hear(void *user, int level, const char *text)
{
    heard *h = (heard *)user;
    if (level != 1) return;
    h->count++;
    snprintf(h->text, sizeof h->text, "%s", text);
}

/* Steps of any length: they succeed, flagged where they need more substeps than allowed, or are refused. */
static void test_absurd_steps_do_no_harm(void)
{
    static const double dts[7] = { 1e-12, 1e-9, 0.3, 1, 30, 1000, 1e-3 };
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        fsi_context context = fsi_default_context();
        heard h = { 0, "" };
        small_pool p;
        int degraded = 0;
        if (!CHECK(make_small_pool(&context, dim, FSI_FLIP_FLIP, &p))) return;
        CHECK(fsi_flip_remove_emitter(p.s, p.tap) == FSI_OK);
        context.message = hear;
        context.user = &h;
        for (k = 0; k < 7; k++) {
            const uint64_t hash = fsi_flip_hash(p.s);
            const fsi_body body = p.body;
            const fsi_status status = fsi_flip_step(p.s, (fsi_real)dts[k]);
            if (status != FSI_OK) {
                printf("      %dD, dt %g: %s\n", dim, dts[k], fsi_flip_error(p.s)->message);
                CHECK(fsi_flip_hash(p.s) == hash && memcmp(&body, &p.body, sizeof body) == 0);
                continue;
            }
            fsi_body_accept(&p.body);
            degraded += p.s->stats.degraded;
            CHECK(is_finite(p.s) && p.s->stats.substeps <= p.s->desc.max_substeps);
            if (dts[k] <= 1 && k < 6) CHECK(fsi_flip_count_inside(p.s, NULL) <= p.s->stats.pinched);
        }
        CHECK(degraded > 0 && h.count > 0 && strstr(h.text, "degraded") != NULL);
        end_small_pool(&p);
    }
}

static void test_budgets_flag_and_do_not_stall(void)
{
    fsi_context context = fsi_default_context();
    fsi_flip_desc d = make_desc(2, 32);
    fsi_flip *s;
    double fastest = 0;
    int step, flagged = 0;
    d.context = &context;
    d.max_substeps = 2;
    s = make_flip(&d);
    fill(s, box3(0, 0, 0, 0.4, 0.8, 0), v3(0, 0, 0));
    for (step = 0; step < 20; step++) {
        if (!step_ok(s, 1.0 / 10)) break;
        CHECK(s->stats.substeps <= 2);
        flagged += s->stats.degraded > 0;
    }
    CHECK(flagged > 5 && fsi_flip_count_inside(s, NULL) == 0 && is_finite(s));
    CHECK(s->stats.max_speed < 20);

    /* One iteration of the pressure. */
    d = s->desc;
    d.max_substeps = 20;
    d.pressure_iters = 1;
    CHECK(fsi_flip_set_desc(s, &d) == FSI_OK);
    for (step = flagged = 0; step < 20; step++) {
        if (!step_ok(s, 1.0 / 60)) break;
        flagged += s->stats.degraded > 0;
        fastest = fmax(fastest, s->stats.max_speed);
    }
    printf("      one iteration: %d of 20 steps flagged, up to %.3g m/s\n", flagged, fastest);
    CHECK(flagged > 15 && is_finite(s) && fastest < 20 && fsi_flip_count_inside(s, NULL) == 0);
    fsi_flip_destroy(s);
    CHECK(context.bytes == 0);
}

static void test_the_suggested_step_is_one_substep(void)
{
    fsi_flip_desc d = make_desc(2, 32);
    fsi_flip *s = make_flip(&d);
    int k;
    fill(s, box3(0, 0, 0, 0.4, 0.8, 0), v3(1, 0, 0));
    for (k = 0; k < 10; k++) {
        CHECK(step_ok(s, (double)fsi_flip_suggest_dt(s)) && s->stats.substeps == 1 && s->stats.degraded == 0);
        CHECK(s->stats.cfl <= 1.5 * (double)d.cfl); /* pressure accelerates it too */
    }
    fsi_flip_destroy(s);
}

/* ---- changes between steps ------------------------------------------------------------------------------------- */

static void test_particles_come_and_go(void)
{
    fsi_flip_desc d = make_desc(2, 16);
    fsi_flip *s;
    unsigned char *gone;
    fsi_vec3 keep;
    uint32_t top;
    int k, count, added;
    d.attribute_count = 2;
    s = make_flip(&d);
    CHECK(fsi_flip_fill_box(s, box3(0, 0, 0, 1, 0.5, 0), v3(0, 0, 0), &added) == FSI_OK && added == 512
        && s->count == 512);
    CHECK(fsi_flip_fill_box(s, box3(0, 0, 0, 1, 0.5, 0), v3(0, 0, 0), &added) == FSI_OK && added == 0);
    count = s->count;
    for (k = 0; k < count; k++) s->attribute[2 * k] = (fsi_real)k;
    gone = (unsigned char *)calloc((size_t)count + 200, 1);
    for (k = 0; k < count; k += 3) gone[k] = 1;
    keep = s->position[4];
    top = s->id[count - 1];
    CHECK(fsi_flip_remove_particles(s, gone) == FSI_OK && s->count == count - (count + 2) / 3);
    CHECK(memcmp(&s->position[2], &keep, sizeof keep) == 0); /* 0 and 3 went */
    CHECK(step_ok(s, 1.0 / 60));
    for (k = 0; k < s->count; k++) { /* attributes and ids ride along */
        CHECK((int)s->attribute[2 * k] % 3 != 0 && s->mass[k] == 1);
        if (k > 0) CHECK(s->id[k] > s->id[k - 1]);
    }
    add_one(s, v3(0.5, 0.9, 0), v3(0, 0, 0));
    k = s->count - 1;
    CHECK(s->id[k] > top && s->attribute[2 * k] == 0 && s->mass[k] == 1 && step_ok(s, 1.0 / 60));
    memset(gone, 1, (size_t)s->count);
    CHECK(fsi_flip_remove_particles(s, gone) == FSI_OK && s->count == 0 && step_ok(s, 1.0 / 60));
    CHECK(s->stats.particles == 0 && s->stats.liquid_cells == 0);
    free(gone);
    fsi_flip_destroy(s);
}

/* Lattices of spacing dx/2: in boxes, spheres, meshes and containers; not in obstacles, nor where there is liquid. */
static void test_fills_take_what_is_free(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        fsi_context context = fsi_default_context();
        heard h = { 0, "" };
        fsi_flip_desc d = make_desc(dim, 16);
        fsi_mesh *block = make_block(dim, 0.25, 0.25, 0.25), *vat;
        fsi_flip *s;
        const double half = 1.0 / 32, ball = dim == 2 ? PI * 0.04 : 4.0 / 3 * PI * 0.008;
        int added;
        fsi_pose at;
        context.message = hear;
        context.user = &h;
        d.context = &context;
        s = make_flip(&d);
        at.position = in_room(dim, 0.5, 0.5, 0.5);
        at.orientation = fsi_quat_identity();
        mesh_to(block, at);

        /* A ball; a cube. Where nothing fits a message says so. */
        CHECK(fsi_flip_fill_sphere(s, in_room(dim, 0.5, 0.5, 0.5), (fsi_real)0.2, v3(1, 0, 0), &added) == FSI_OK);
        CHECK_NEAR(added, ball / pow(half, dim), 0.08 * added);
        CHECK(s->velocity[0].x == 1 && s->count == added && h.count == 0);
        fsi_flip_destroy(s);
        s = make_flip(&d);
        CHECK(fsi_flip_fill_mesh(s, block, v3(0, 0, 0), &added) == FSI_OK && added == (int)pow(16, dim));
        CHECK(h.count == 0);
        CHECK(fsi_flip_fill_mesh(s, block, v3(0, 0, 0), &added) == FSI_OK && added == 0 && h.count == 1);
        CHECK(fsi_flip_fill_box(s, room(dim, 2, 2, 3, 3, 0.5), v3(0, 0, 0), &added) == FSI_OK && added == 0);
        CHECK(h.count == 2 && strstr(h.text, "fsi_flip_fill_box") != NULL);
        fsi_flip_destroy(s);
        s = make_flip(&d);
        CHECK(fsi_flip_fill_box(s, room(dim, -0.5, -0.25, 1.04, 2, 1.5), v3(0, 0, 0), &added) == FSI_OK);
        CHECK(added == (int)pow(32, dim) && fsi_flip_count_inside(s, NULL) == 0); /* the box and no more */

        /* An obstacle is left out; a container is filled within. */
        fsi_flip_destroy(s);
        s = make_flip(&d);
        CHECK(fsi_flip_add_mesh(s, block, NULL) == FSI_OK);
        CHECK(fsi_flip_fill_box(s, room(dim, 0, 0, 1, 1, 1), v3(0, 0, 0), &added) == FSI_OK);
        CHECK_NEAR(added, pow(32, dim) - pow(16, dim), 0.5 * pow(16, dim - 1));
        CHECK(fsi_flip_count_inside(s, NULL) == 0);
        fsi_flip_destroy(s);
        s = make_flip(&d);
        vat = make_container(dim, dim == 2 ? box3(0.25, 0.25, 0, 0.75, 0.75, 0)
            : box3(0.25, 0.25, 0.25, 0.75, 0.75, 0.75));
        CHECK(fsi_flip_add_mesh(s, vat, NULL) == FSI_OK);
        CHECK(fsi_flip_fill_mesh(s, vat, v3(0, 0, 0), &added) == FSI_OK && added == (int)pow(16, dim));
        CHECK(fsi_flip_count_inside(s, NULL) == 0);
        fsi_flip_destroy(s);
        fsi_mesh_destroy(block);
        fsi_mesh_destroy(vat);
        CHECK(context.bytes == 0);
    }
}

/* A shifted liquid goes the same way; states from before the shift do not fit any more. By powers of 2 shifts are exact
   but for the last bits. */
static void test_a_shifted_origin_changes_no_way(void)
{
    fsi_context context = fsi_default_context();
    const fsi_vec3 offset = v3(2, -1, 0);
    small_pool p, still;
    fsi_vec3 x[8];
    unsigned char *state;
    size_t size;
    int step, i;
    double off = 0;
    if (!CHECK(make_small_pool(&context, 2, FSI_FLIP_APIC, &p) && make_small_pool(&context, 2, FSI_FLIP_APIC, &still)))
        return;
    state = (unsigned char *)save_state(p.s, &size);
    CHECK(fsi_flip_shift_origin(p.s, offset) == FSI_OK);
    for (i = 0; i < p.still->source_count; i++) x[i] = fsi_v3_add(p.still->vertices[i], offset);
    CHECK(fsi_mesh_set(p.still, x, p.still->source_count) == FSI_OK);
    p.body.pose.position = fsi_v3_add(p.body.pose.position, offset);
    CHECK_NEAR(p.s->desc.origin.x, 2, 0);
    for (step = 0; step < 4; step++) CHECK(step_pool(&p, 0.005) && step_pool(&still, 0.005));
    CHECK(p.s->count == still.s->count);
    for (i = 0; i < p.s->count; i++)
        off = fmax(off, (double)fsi_v3_norm(fsi_v3_sub(fsi_v3_sub(p.s->position[i], offset), still.s->position[i])));
    CHECK(off <= TOL(1e-5, 1e-3));
    CHECK(fsi_flip_load(p.s, state, size) == FSI_ERROR_FORMAT && strstr(fsi_flip_error(p.s)->message, "shift") != NULL);
    CHECK(fsi_flip_shift_origin(p.s, fsi_v3_scale(offset, -1)) == FSI_OK && p.s->desc.origin.x == 0);
    free(state);
    end_small_pool(&p);
    end_small_pool(&still);
}

/* Whatever is written into z: a liquid in the plane stays there. */
static void test_the_plane_stays_flat(void)
{
    fsi_context context = fsi_default_context();
    small_pool p;
    int i;
    if (!CHECK(make_small_pool(&context, 2, FSI_FLIP_APIC, &p))) return;
    for (i = 0; i < p.s->count; i++) p.s->velocity[i].z = 1, p.s->position[i].z = (fsi_real)0.01;
    CHECK(step_pool(&p, 0.01));
    for (i = 0; i < p.s->count; i++) CHECK(p.s->position[i].z == 0 && p.s->velocity[i].z == 0);
    end_small_pool(&p);
}

/* ---- looks ----------------------------------------------------------------------------------------------------- */

static struct { int points, lines; } drawn;
static void draw_point(void *user, fsi_vec3 p, fsi_real size, uint32_t rgb)
{
    (void)user;
    drawn.points += fsi_v3_is_finite(p) && size > 0 && rgb <= 0xffffff;
}
static void draw_line(void *user, fsi_vec3 a, fsi_vec3 b, uint32_t rgb)
{
    (void)user;
    drawn.lines += fsi_v3_is_finite(a) && fsi_v3_is_finite(b) && rgb <= 0xffffff;
}

static void test_what_can_be_read_agrees(void)
{
    fsi_context context = fsi_default_context();
    fsi_debug_draw draw;
    small_pool p;
    float *out;
    double e = 0, top = 0, v[3] = { 0, 0, 0 };
    int i, step;
    memset(&draw, 0, sizeof draw);
    memset(&drawn, 0, sizeof drawn);
    if (!CHECK(make_small_pool(&context, 2, FSI_FLIP_FLIP, &p))) return;
    for (step = 0; step < 10; step++) CHECK(step_pool(&p, 1.0 / 60));
    fsi_flip_debug_draw(p.s, &draw); /* all NULL */
    draw.point = draw_point;
    draw.line = draw_line;
    fsi_flip_debug_draw(p.s, &draw);
    CHECK(drawn.points == p.s->count && drawn.lines >= 8);

    /* Copies. */
    out = (float *)malloc(sizeof(float) * 4 * (size_t)p.s->count);
    CHECK(fsi_flip_copy(p.s, FSI_FLIP_POSITION, v3(0.1, 0, 0), out, 4) == FSI_OK);
    for (i = 0; i < p.s->count; i++) CHECK_NEAR(out[4 * i], (double)p.s->position[i].x - 0.1, 1e-6);
    CHECK(fsi_flip_copy(p.s, FSI_FLIP_VELOCITY, v3(0, 0, 0), out, 3) == FSI_OK && out[4] == (float)p.s->velocity[1].y);
    CHECK(fsi_flip_copy(p.s, FSI_FLIP_PRESSURE, v3(0, 0, 0), out, 1) == FSI_OK && out[5] == (float)p.s->pressure[5]);
    CHECK(fsi_flip_copy(p.s, FSI_FLIP_MASS, v3(0, 0, 0), out, 2) == FSI_OK && out[8] == (float)p.s->mass[4]);
    CHECK(fsi_flip_copy(p.s, FSI_FLIP_ATTRIBUTE, v3(0, 0, 0), out, 1) == FSI_OK && out[3] == (float)p.s->attribute[3]);
    CHECK(fsi_flip_copy(p.s, FSI_FLIP_MARKER, v3(0, 0, 0), out, 1) == FSI_OK && out[3] == (float)p.s->marker[3]);
    CHECK(fsi_flip_copy(p.s, FSI_FLIP_AERATION, v3(0, 0, 0), out, 1) == FSI_OK && out[3] == (float)p.s->aeration[3]);
    CHECK(fsi_flip_copy(p.s, FSI_FLIP_POSITION, v3(0, 0, 0), out, 2) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_copy(p.s, FSI_FLIP_POSITION, v3(0, 0, 0), NULL, 3) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_copy(p.s, (fsi_flip_field)77, v3(0, 0, 0), out, 4) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_copy(p.s, FSI_FLIP_POSITION, v3(test_nan(), 0, 0), out, 4) == FSI_ERROR_NAN);

    /* Stats. */
    for (i = 0; i < p.s->count; i++) {
        const double m = (double)p.s->particle_mass * (double)p.s->mass[i];
        e += 0.5 * m * (double)fsi_v3_norm2(p.s->velocity[i]);
        top = fmax(top, (double)fsi_v3_norm(p.s->velocity[i]));
        v[0] += m * (double)p.s->velocity[i].x;
        v[1] += m * (double)p.s->velocity[i].y;
        v[2] -= m * (double)fsi_v3_dot(p.s->desc.gravity, p.s->position[i]);
    }
    CHECK_NEAR(p.s->stats.kinetic_energy, e, TOL(1e-9, 1e-4) * e);
    CHECK_NEAR(p.s->stats.potential_energy, v[2], TOL(1e-9, 1e-4) * v[2]);
    CHECK_NEAR(p.s->stats.max_speed, top, TOL(1e-9, 1e-4) * top);
    CHECK_NEAR(p.s->stats.momentum[0], v[0], TOL(1e-9, 1e-4) * top * rest_volume(p.s) * 1000);
    CHECK_NEAR(p.s->stats.momentum[1], v[1], TOL(1e-9, 1e-4) * top * rest_volume(p.s) * 1000);

    /* Questions. */
    for (i = 0; i < p.s->count; i++) p.s->velocity[i] = v3(2, -3, 0);
    CHECK_NEAR(fsi_flip_velocity_at(p.s, v3(0.1, 0.1, 0)).y, -3, TOL(1e-12, 1e-5));
    CHECK(fsi_v3_norm(fsi_flip_velocity_at(p.s, v3(5, 5, 0))) == 0 && fsi_flip_pressure_at(p.s, v3(5, 5, 0)) == 0);
    CHECK(fsi_v3_norm(fsi_flip_velocity_at(p.s, v3(test_nan(), 5, 0))) == 0);
    CHECK((double)fsi_flip_pressure_at(p.s, v3(0.1, 0.05, 0)) > 500);
    free(out);
    end_small_pool(&p);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_every_bad_desc_field_is_named);
    RUN(test_wrong_calls_are_refused);
    RUN(test_bad_obstacles_are_named);
    RUN(test_bad_sources_are_named);
    RUN(test_bad_particles_are_named_and_change_nothing);
    RUN(test_bad_bodies_are_named_and_change_nothing);
    RUN(test_bad_accelerations_change_nothing);
    RUN(test_bad_arguments_change_nothing);
    RUN(test_failing_memory_leaves_no_trace);
    RUN(test_a_steady_state_allocates_nothing);
    RUN(test_a_particle_takes_few_bytes);
    RUN(test_fewer_particles_take_no_other_memory);
    RUN(test_loading_continues_as_if_nothing_had_happened);
    RUN(test_damaged_states_are_refused);
    RUN(test_a_loaded_state_can_be_stepped);
    RUN(test_the_same_bits_for_any_threads);
    RUN(test_a_step_of_no_time_changes_nothing);
    RUN(test_absurd_steps_do_no_harm);
    RUN(test_budgets_flag_and_do_not_stall);
    RUN(test_the_suggested_step_is_one_substep);
    RUN(test_particles_come_and_go);
    RUN(test_fills_take_what_is_free);
    RUN(test_a_shifted_origin_changes_no_way);
    RUN(test_the_plane_stays_flat);
    RUN(test_what_can_be_read_agrees);
    return TEST_END();
}
