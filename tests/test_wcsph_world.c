/* test_wcsph_world.c - a liquid and a world of fsi_rigid.h advanced together: bodies that touch each other and share particles.
   SPDX-License-Identifier: MIT */
#include "kit/test_wcsph.h"

/* Boxes of a world, each an obstacle of the liquid. */
typedef struct raft { scene t; fsi_rigid *world; fsi_mesh *mesh[6]; int id[6], count, dim; } raft;

static void begin_raft(raft *g, int dim, double dx, double gravity, fsi_box3 domain, fsi_context *context)
{
    fsi_wcsph_desc d = make_desc(dim, dx);
    fsi_rigid_desc w = fsi_rigid_default_desc();
    memset(g, 0, sizeof *g);
    d.context = w.context = context;
    d.gravity = w.gravity = in_room(dim, 0, -gravity, 0);
    d.domain = w.domain = domain;
    d.depth = (fsi_real)0.3;
    d.speed = 2;
    w.dim = dim;
    w.restitution = 0;
    w.sleep_time = 0;
    g->dim = g->t.dim = dim;
    g->t.s = make_wcsph(&d);
    CHECK(fsi_rigid_create(&g->world, &w) == FSI_OK);
    if (!CHECK(fsi_wcsph_set_world(g->t.s, g->world) == FSI_OK)) printf("      world: %s\n", fsi_wcsph_error(g->t.s)->message);
}

/* A box of half sizes a, b (and c across). */
static int add_box(raft *g, double a, double b, double c, double density, fsi_vec3 at, fsi_vec3 velocity)
{
    fsi_rigid_shape box = fsi_rigid_box(g->dim == 2 ? v3(a, b, 0) : v3(a, c, b));
    fsi_rigid_body_desc d = fsi_rigid_default_body_desc();
    const int k = g->count++;
    box.density = (fsi_real)density;
    d.shapes = &box;
    d.shape_count = 1;
    d.pose.position = at;
    d.velocity = velocity;
    if (!CHECK(fsi_rigid_add_body(g->world, &d, &g->id[k]) == FSI_OK)) printf("      box: %s\n", fsi_rigid_error(g->world)->message);
    CHECK(fsi_rigid_tessellate(g->world, g->id[k], -1, 0, &g->mesh[k]) == FSI_OK);
    scene_add(&g->t, g->mesh[k], fsi_rigid_body(g->world, g->id[k]));
    return k;
}

static fsi_body *box_of(const raft *g, int k) { return fsi_rigid_body(g->world, g->id[k]); }
static double level_of(const raft *g, int k) { return height_of(g->dim, box_of(g, k)->pose.position); }

static void end_raft(raft *g)
{
    int k;
    fsi_wcsph_destroy(g->t.s);
    for (k = 0; k < g->count; k++) fsi_mesh_destroy(g->mesh[k]); /* of the world's context: before the world */
    fsi_rigid_destroy(g->world);
}

/* Free space: two boxes meet while liquid comes at them from above and below; liquid and both keep their momentum, step by step. */
static void test_boxes_that_meet_in_the_liquid_keep_momentum(void)
{
    int dim, step, k, j;
    for (dim = 2; dim <= 3; dim++) {
        raft g;
        double worst = 0;
        int body_contacts = 0, contacts = 0;
        begin_raft(&g, dim, 0.02, 0, fsi_box3_empty(), NULL);
        add_box(&g, 0.05, 0.04, 0.05, 800, in_room(dim, 0, 0.08, 0.06), in_room(dim, 0.8, 0.05, 0));
        add_box(&g, 0.05, 0.04, 0.05, 2000, in_room(dim, 0.14, 0.12, 0.06), in_room(dim, -0.8, 0, 0));
        fill(g.t.s, room(dim, -0.05, 0.17, 0.2, 0.26, 0.12), in_room(dim, 0, -1, 0));
        fill(g.t.s, room(dim, -0.1, -0.06, 0.2, 0.02, 0.12), in_room(dim, 0, 1, 0));
        for (step = 0; step < 60; step++) {
            double before[3], after[3], turn[3], size = momentum_size(g.t.s), change = 0;
            momenta(g.t.s, before, turn);
            for (k = 0; k < 2; k++) add_body_momenta(box_of(&g, k), before, turn), size += (double)box_of(&g, k)->mass * (double)fsi_v3_norm(box_of(&g, k)->velocity);
            if (!step_ok(g.t.s, 2e-3)) break;
            momenta(g.t.s, after, turn);
            for (k = 0; k < 2; k++) add_body_momenta(box_of(&g, k), after, turn);
            for (j = 0; j < 3; j++) change = fmax(change, fabs(after[j] - before[j]));
            worst = fmax(worst, change / size);
            body_contacts += g.t.s->stats.body_contacts;
            contacts += g.t.s->stats.contacts;
            if (!check_census(&g.t)) break;
        }
        printf("      %dD: momentum %.1e a step, %d contacts of bodies, %d of liquid\n", dim, worst, body_contacts, contacts);
        CHECK(body_contacts > 0 && contacts > 100);
        CHECK_NEAR(worst, 0, TOL(1e-12, 1e-5));
        end_raft(&g);
    }
}

/* A raft floats, a crate is dropped onto it and stays there; both come to rest where Archimedes has them together. */
static void test_a_crate_rides_on_a_raft(void)
{
    const double wide = 0.6, deep = 0.2, a = 0.15, b = 0.03, c = 0.04, load = (2 * a * 2 * b * 300 + 2 * c * 2 * c * 400) / 1000; /* 2D: m^2 of liquid */
    const double level = deep + load / wide, want = level - load / (2 * a) + b;
    double mean = 0, over = 0;
    raft g;
    int step, samples = 0;
    begin_raft(&g, 2, 0.015, 9.81, box3(0, 0, 0, wide, 0.5, 0), NULL);
    add_box(&g, a, b, 0, 300, v3(wide / 2, want + 0.02, 0), v3(0, 0, 0));
    add_box(&g, c, c, 0, 400, v3(wide / 2, want + b + c + 0.03, 0), v3(0, 0, 0));
    fill(g.t.s, box3(0, 0, 0, wide, level, 0), v3(0, 0, 0));
    CHECK(fsi_wcsph_settle_density(g.t.s, v3(0, level, 0)) == FSI_OK);
    for (step = 0; step < (TEST_SLOWED ? 60 : 240); step++) {
        if (!step_ok(g.t.s, 5e-3) || !check_census(&g.t)) break;
        if (step < 60) calm(g.t.s, 0.97);
        over = fmax(over, b + c - (level_of(&g, 1) - level_of(&g, 0)));
        if (step < 160) continue;
        mean += level_of(&g, 0);
        samples++;
    }
    CHECK(g.t.s->stats.body_contacts > 0);
    CHECK(over < 0.05 * 2 * b); /* boxes in each other */
    CHECK_NEAR(level_of(&g, 1) - level_of(&g, 0), b + c, 0.1 * c);
    if (samples > 0) {
        const double real = want + g.t.s->count * (double)g.t.s->particle_mass / 1000 / wide - deep;
        printf("      raft %.2f mm off, boxes %.3f mm in each other\n", 1000 * (mean / samples - real), 1000 * over);
        CHECK_NEAR(mean / samples, real, 0.03 * 2 * b + 0.5 * 0.015);
    }
    end_raft(&g);
}

/* Four crates thrown into a pool float, bump, and stay out of each other, of the floor and of the liquid. */
static void test_crates_float_and_bump(void)
{
    int dim, step, k, met = 0;
    for (dim = 2; dim <= 3; dim++) {
        raft g;
        begin_raft(&g, dim, 0.02, 9.81, room(dim, 0, 0, 0.4, 0.5, 0.16), NULL);
        for (k = 0; k < 4; k++) add_box(&g, 0.035, 0.035, 0.035, k == 3 ? 2000 : 400, in_room(dim, k == 3 ? 0.33 : 0.1 + 0.09 * (k % 2), 0.22 + 0.09 * (k / 2), 0.08), in_room(dim, k % 2 ? -0.5 : 0.5, 0, 0));
        fill(g.t.s, room(dim, 0, 0, 0.4, 0.16, 0.16), v3(0, 0, 0));
        for (step = 0; step < (dim == 2 ? 150 : TEST_SLOWED ? 20 : 60); step++) {
            if (!step_ok(g.t.s, 5e-3) || !check_census(&g.t)) break;
            met += g.t.s->stats.body_contacts;
        }
        for (k = 0; k < 4; k++) CHECK(level_of(&g, k) > 0.03);
        if (dim == 2) {
            CHECK(level_of(&g, 3) < 0.1); /* the heavy one lies below */
            for (k = 0; k < 3; k++) CHECK(level_of(&g, k) > 0.1);
        }
        end_raft(&g);
    }
    CHECK(met > 0);
}

/* Bodies that are no obstacles, and liquid that touches none: as fsi_rigid_step moves them. */
static void test_bodies_without_liquid_fall_as_ever(void)
{
    int dim, step;
    for (dim = 2; dim <= 3; dim++) {
        raft g;
        begin_raft(&g, dim, 0.02, 9.81, fsi_box3_empty(), NULL);
        add_box(&g, 0.05, 0.05, 0.05, 500, in_room(dim, 0, 1, 0), in_room(dim, 1, 2, 0));
        CHECK(fsi_wcsph_remove_obstacle(g.t.s, g.t.solids[0].id) == FSI_OK);
        g.t.solid_count = 0;
        add_one(g.t.s, in_room(dim, 3, 0, 0), v3(0, 0, 0));
        for (step = 0; step < 40; step++) if (!step_ok(g.t.s, 5e-3)) break;
        CHECK_NEAR(g.world->time, 0.2, 1e-6);
        CHECK_NEAR(level_of(&g, 0), 1 + 2 * 0.2 - 0.5 * 9.81 * 0.04, 3e-3);
        CHECK_NEAR(box_of(&g, 0)->pose.position.x, 0.2, 1e-5);
        CHECK_NEAR(height_of(dim, box_of(&g, 0)->velocity), 2 - 9.81 * 0.2, 1e-3);
        CHECK(fsi_wcsph_set_world(g.t.s, NULL) == FSI_OK);
        CHECK(fsi_rigid_step(g.world, (fsi_real)5e-3) == FSI_OK); /* its own again */
        end_raft(&g);
    }
}

static void begin_mix(raft *g, int dim, fsi_context *context)
{
    begin_raft(g, dim, 0.02, 9.81, room(dim, 0, 0, 0.4, 0.5, 0.16), context);
    add_box(g, 0.04, 0.03, 0.05, 500, in_room(dim, 0.14, 0.1705, 0.08), v3(0, 0, 0));
    add_box(g, 0.03, 0.03, 0.03, 700, in_room(dim, 0.15, 0.231, 0.08), in_room(dim, 0, -0.5, 0));
    fill(g->t.s, room(dim, 0, 0, 0.4, 0.14, 0.16), v3(0, 0, 0));
}

static uint64_t hash_mix(const raft *g)
{
    const uint64_t h = fsi_wcsph_hash(g->t.s), w = fsi_rigid_hash(g->world);
    return fsi_hash(&w, sizeof w, h);
}

static void test_the_same_bits_for_any_threads(void)
{
    static const int threads[3] = { 1, 3, 4 };
    int dim, k, step;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t want = 0;
        for (k = 0; k < 3; k++) {
            fsi_context context = fsi_default_context();
            raft g;
            test_threads(&context, threads[k], k == 2);
            begin_mix(&g, dim, &context);
            for (step = 0; step < (TEST_SLOWED ? 4 : 12); step++) if (!step_ok(g.t.s, 4e-3)) break;
            if (k == 0) want = hash_mix(&g);
            CHECK(hash_mix(&g) == want);
            CHECK(g.t.s->stats.body_contacts > 0 && g.t.s->stats.contacts > 0);
            end_raft(&g);
        }
    }
}

static void test_both_states_go_back_in_time(void)
{
    raft g;
    size_t size, world_size;
    void *state, *world;
    uint64_t at, end;
    int step;
    begin_mix(&g, 2, NULL);
    for (step = 0; step < 8; step++) step_ok(g.t.s, 4e-3);
    state = save_state(g.t.s, &size);
    CHECK(fsi_rigid_save(g.world, NULL, 0, &world_size) == FSI_OK);
    world = malloc(world_size);
    CHECK(fsi_rigid_save(g.world, world, world_size, &world_size) == FSI_OK);
    at = hash_mix(&g);
    for (; step < 16; step++) step_ok(g.t.s, 4e-3);
    end = hash_mix(&g);
    CHECK(fsi_rigid_load(g.world, world, world_size) == FSI_OK);
    CHECK(fsi_wcsph_load(g.t.s, state, size) == FSI_OK);
    CHECK(hash_mix(&g) == at);
    for (step = 8; step < 16; step++) step_ok(g.t.s, 4e-3);
    CHECK(hash_mix(&g) == end);
    free(state);
    free(world);
    end_raft(&g);
}

/* A step that fails, by memory or by a bad number, leaves both as they were. */
static void test_a_failed_step_moves_neither(void)
{
    fsi_context context = fsi_default_context();
    raft g;
    uint64_t hash;
    long fail;
    int failures = 0;
    test_fail_allocator(&context, 0);
    begin_mix(&g, 2, &context);
    for (fail = 1; fail < 60; fail++) {
        fsi_status status;
        hash = hash_mix(&g);
        test_fail_allocator(&context, fail);
        status = fsi_wcsph_step(g.t.s, (fsi_real)2e-3);
        test_fail_allocator(&context, 0);
        if (status == FSI_OK) break;
        failures++;
        CHECK(status == FSI_ERROR_MEMORY && hash_mix(&g) == hash);
    }
    CHECK(failures > 0 && fail < 60);
    hash = hash_mix(&g);
    g.t.s->velocity[5].x = (fsi_real)test_nan();
    CHECK(fsi_wcsph_step(g.t.s, (fsi_real)2e-3) == FSI_ERROR_NAN);
    g.t.s->velocity[5].x = 0;
    { /* a force that is no number: the world's body is named */
        const uint64_t world = fsi_rigid_hash(g.world);
        const fsi_vec3 was = g.world->force[g.id[0]];
        g.world->force[g.id[0]] = v3(0, test_nan(), 0);
        CHECK(fsi_wcsph_step(g.t.s, (fsi_real)2e-3) == FSI_ERROR_NAN);
        CHECK(strlen(fsi_wcsph_error(g.t.s)->message) > 10);
        g.world->force[g.id[0]] = was;
        CHECK(fsi_rigid_hash(g.world) == world);
    }
    step_ok(g.t.s, 2e-3);
    end_raft(&g);
    CHECK(context.bytes == 0);
}

static void test_worlds_that_do_not_fit_are_refused(void)
{
    fsi_wcsph_desc d = make_desc(3, 0.02);
    fsi_rigid_desc w = fsi_rigid_default_desc();
    fsi_wcsph *s = make_wcsph(&d);
    fsi_rigid *flat = NULL;
    w.dim = 2;
    w.gravity = v3(0, -9.81, 0);
    CHECK(fsi_rigid_create(&flat, &w) == FSI_OK);
    CHECK(fsi_wcsph_set_world(s, flat) == FSI_ERROR_ARGUMENT && strstr(fsi_wcsph_error(s)->message, "dim") != NULL);
    CHECK(fsi_wcsph_set_world(s, NULL) == FSI_OK);
    CHECK(fsi_wcsph_set_world(NULL, flat) != FSI_OK);
    fsi_wcsph_destroy(s);
    fsi_rigid_destroy(flat);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_boxes_that_meet_in_the_liquid_keep_momentum);
    RUN(test_a_crate_rides_on_a_raft);
    RUN(test_crates_float_and_bump);
    RUN(test_bodies_without_liquid_fall_as_ever);
    RUN(test_the_same_bits_for_any_threads);
    RUN(test_both_states_go_back_in_time);
    RUN(test_a_failed_step_moves_neither);
    RUN(test_worlds_that_do_not_fit_are_refused);
    return TEST_END();
}
