/* test_rigid_state.c - states of fsi_rigid.h that were tampered with, speeds and forces that nothing has, steps of no
   time, a moving origin.
   SPDX-License-Identifier: MIT */
#define FSI_GROUND_IMPLEMENTATION
#include "kit/test.h"
#include "../fsi_rigid.h"
#include "kit/rigid_worlds.h"

static fsi_vec3 v3(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }

static unsigned char *save_world(const fsi_rigid *w, size_t *size)
{
    unsigned char *state;
    CHECK(fsi_rigid_save(w, NULL, 0, size) == FSI_OK);
    state = (unsigned char *)malloc(*size);
    CHECK(fsi_rigid_save(w, state, *size, size) == FSI_OK);
    return state;
}

static int is_finite(const fsi_rigid *w)
{
    int id;
    for (id = 0; id < w->count; id++) if (w->body[id]) {
        const fsi_body *b = w->body[id];
        if (!fsi_v3_is_finite(b->pose.position) || !fsi_v3_is_finite(b->velocity) ||
            !fsi_v3_is_finite(b->angular_velocity))
            return 0;
    }
    return fsi_is_finite(w->stats.kinetic_energy);
}

/* ---- states --------------------------------------------------------------------------------------------------- */

static void refit(const fsi_rigid *w, unsigned char *state, size_t size)
{
    const fsi__state_header h =
        fsi__make_state_header(w->cookie, size - sizeof h, fsi_hash(state + sizeof h, size - sizeof h, 0));
    memcpy(state, &h, sizeof h);
}

/* A state with one number changed, its checksum made to fit: refused without a trace, or good for steps. */
static int try_state(fsi_rigid *w, const void *state, size_t size, int *taken)
{
    const uint64_t before = fsi_rigid_hash(w);
    fsi_status status;
    if (fsi_rigid_load(w, state, size) != FSI_OK) return CHECK(fsi_rigid_hash(w) == before);
    (*taken)++;
    status = fsi_rigid_step(w, (fsi_real)1e-3);
    /* links that turn at 1e8 rad/s do not take a millisecond */
    if (status == FSI_ERROR_LIMIT || status == FSI_ERROR_SINGULAR) status = fsi_rigid_step(w, (fsi_real)2e-12);
    if (status != FSI_OK) printf("  step: %s\n", fsi_rigid_error(w)->message);
    return CHECK(status == FSI_OK) && CHECK(is_finite(w));
}

/* NaN, infinity, 1e300 (float: 3e38), -1 and 1e30 for each number of a state, at any offset, as any type. */
static void test_a_loaded_state_can_be_stepped(void)
{
    const double evil[5] = { test_nan(), test_inf(), TOL(1e300, 3e38), -1, 1e30 };
    const int words[3] = { -1, 0x7fffffff, 12 };
    int dim, k, taken = 0, tried = 0;
    for (dim = 2; dim <= 3; dim++) {
        fsi_rigid *w = make_small_world(NULL, dim);
        size_t size, at;
        unsigned char *state, *bad;
        for (k = 0; k < 25; k++) CHECK(fsi_rigid_step(w, (fsi_real)0.01) == FSI_OK);
        CHECK(w->contact_count > 2);
        state = save_world(w, &size);
        bad = (unsigned char *)malloc(size);
        for (at = sizeof(fsi__state_header); at + 8 <= size; at += TEST_WATCHED ? 5 : 1) for (k = 0; k < 13; k++) {
            const float single = (float)evil[k % 5];
            memcpy(bad, state, size);
            if (k < 5) memcpy(bad + at, &evil[k], 8);
            else if (k < 10) memcpy(bad + at, &single, 4);
            else memcpy(bad + at, &words[k - 10], 4);
            refit(w, bad, size);
            tried++;
            if (!try_state(w, bad, size, &taken)) printf("  offset %d, value %d\n", (int)at, k);
        }
        for (at = sizeof(fsi__state_header); at < size; at += 7) { /* cut short */
            memcpy(bad, state, at);
            refit(w, bad, at);
            CHECK(fsi_rigid_load(w, bad, at) == FSI_ERROR_FORMAT);
        }
        CHECK(fsi_rigid_load(w, state, size) == FSI_OK);
        free(state);
        free(bad);
        fsi_rigid_destroy(w);
    }
    CHECK(taken > tried / 50 && taken < tried * 9 / 10);
}

/* A hub of 11 g that turns about y on a fixed base, an arm of 27 kg welded onto it. hub, arm: ids of their bodies. */
static int add_arm_on_a_hub(fsi_rigid *w, int *hub, int *arm)
{
    fsi_rigid_shape shape[3];
    fsi_rigid_link_desc l[3];
    fsi_rigid_tree_desc d = fsi_rigid_default_tree_desc();
    int k, tree = -1;
    shape[0] = shape[1] = fsi_rigid_sphere((fsi_real)0.01);
    shape[1].density = 2600;
    shape[2] = fsi_rigid_box(v3(0.3, 0.15, 0.15));
    shape[2].density = 500;
    for (k = 0; k < 3; k++) {
        l[k] = fsi_rigid_default_link_desc();
        l[k].body.shapes = &shape[k];
        l[k].body.shape_count = 1;
        l[k].body.pose.position = v3(k == 2 ? 0.31 : 0, 0, 2);
        l[k].parent = k - 1;
        l[k].joint = k == 1 ? FSI_RIGID_REVOLUTE : FSI_RIGID_WELD;
        l[k].point = v3(0, 0, 2);
        l[k].axis = v3(0, 1, 0);
    }
    d.links = l;
    d.link_count = 3;
    d.fixed = 1;
    CHECK(fsi_rigid_add_tree(w, &d, &tree) == FSI_OK);
    *hub = fsi_rigid_tree_at(w, tree)->body[1];
    *arm = fsi_rigid_tree_at(w, tree)->body[2];
    return tree;
}

/* What drives a light link carries all that hangs on it: forces of joints and of callers go by the tree. */
static void test_motors_and_torques_on_light_links_are_saved_and_loaded(void)
{
    int k, hub, arm;
    for (k = 0; k < 3; k++) {
        fsi_rigid_desc d = fsi_rigid_default_desc();
        fsi_rigid *w = NULL;
        unsigned char *state;
        size_t size;
        uint64_t hash;
        int tree;
        CHECK(fsi_rigid_create(&w, &d) == FSI_OK);
        tree = add_arm_on_a_hub(w, &hub, &arm);
        CHECK((double)w->body[hub]->mass < 0.02 && (double)w->body[arm]->mass > 20);
        if (k == 0) CHECK(fsi_rigid_set_joint_force(w, tree, 1, 20) == FSI_OK);
        if (k == 1) w->torque[hub] = v3(0, -20, 0);
        if (k == 2) w->force[hub] = v3(0, 0, 2e4);
        CHECK(fsi_rigid_step(w, (fsi_real)0.01) == FSI_OK);
        state = save_world(w, &size);
        hash = fsi_rigid_hash(w);
        CHECK(fsi_rigid_step(w, (fsi_real)0.01) == FSI_OK);
        CHECK(fsi_rigid_load(w, state, size) == FSI_OK && fsi_rigid_hash(w) == hash);
        CHECK(fsi_rigid_step(w, (fsi_real)0.01) == FSI_OK);
        free(state);
        fsi_rigid_destroy(w);
    }
}

/* ---- speeds --------------------------------------------------------------------------------------------------- */

static int refused(const fsi_rigid *w, fsi_status status, const char *word)
{
    if (CHECK(status == FSI_ERROR_LIMIT || status == FSI_ERROR_NAN || status == FSI_ERROR_ARGUMENT) &&
        CHECK(strstr(fsi_rigid_error(w)->message, word) != NULL))
        return 1;
    printf("  said: %s\n", fsi_rigid_error(w)->message);
    return 0;
}

/* Whatever would make a body absurdly fast is refused by name, however much too large; then all is as it was. */
static void test_absurd_speeds_are_refused_by_name(void)
{
    const double sizes[3] = { 1e12, 1e30, TOL(1e300, 3e38) };
    int k;
    for (k = 0; k < 3; k++) {
        fsi_rigid *w = make_small_world(NULL, 3);
        const int ball = 3, paddle = w->count - 1, link = paddle - 1;
        const double x = sizes[k];
        const fsi_vec3 far_off = v3(x, 0, 0), at = w->body[ball]->pose.position;
        uint64_t hash = fsi_rigid_hash(w);
        fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
        fsi_rigid_shape s = fsi_rigid_sphere(1);
        fsi_rigid_desc d = w->desc;
        fsi_pose target = w->body[paddle]->pose;
        b.shapes = &s;
        b.shape_count = 1;
        b.velocity = far_off;
        refused(w, fsi_rigid_add_body(w, &b, NULL), "velocity");
        refused(w, fsi_rigid_set_velocity(w, ball, far_off, v3(0, 0, 0)), "velocity");
        refused(w, fsi_rigid_set_velocity(w, ball, v3(0, 0, 0), far_off), "angular_velocity");
        refused(w, fsi_rigid_apply_impulse(w, ball, v3(x * 10, 0, 0), at),
                x > 1e35 && sizeof(fsi_real) == 4 ? "finite"
                : x > 1e29                        ? "impulse is beyond"
                                                  : "faster");
        if (x > 1e20) refused(w, fsi_rigid_apply_impulse(w, link, far_off, at), "");
        if (x > 1e20)
            refused(w, fsi_rigid_apply_force(w, ball, v3(x * 2, 0, 0), at),
                    x > 1e35 && sizeof(fsi_real) == 4 ? "finite" : "impulse is beyond");
        refused(w, fsi_rigid_apply_force(w, ball, v3(1, 0, 0), far_off), "x lies");
        refused(w, fsi_rigid_set_joint(w, 0, 1, 0, (fsi_real)x), "rate");
        refused(w, fsi_rigid_set_joint_target(w, 0, 1, (fsi_real)x), "q");
        target.position = far_off;
        refused(w, fsi_rigid_set_target(w, paddle, target), "pose");
        d.gravity.x = (fsi_real)x;
        refused(w, fsi_rigid_set_desc(w, &d), "gravity");
        CHECK(fsi_rigid_hash(w) == hash);
        w->force[ball] = v3(x * 100, 0, 0);
        refused(w, fsi_rigid_step(w, 1), "force");
        refused(w, fsi_rigid_begin_step(w, 1), "force");
        w->force[ball] = v3(0, 0, 0);
        w->torque[ball] = far_off;
        refused(w, fsi_rigid_step(w, 1), "torque");
        w->torque[ball] = v3(0, 0, 0);
        target.position = v3(1e8, 0, 0);
        CHECK(fsi_rigid_set_target(w, paddle, target) == FSI_OK);
        refused(w, fsi_rigid_step(w, (fsi_real)1e-3), "target");
        CHECK(fsi_rigid_load(w, NULL, 0) != FSI_OK);
        target.position = v3(0.2, 0, 0.8);
        CHECK(fsi_rigid_set_target(w, paddle, target) == FSI_OK);
        CHECK(fsi_rigid_step(w, (fsi_real)1e-3) == FSI_OK && is_finite(w));
        fsi_rigid_destroy(w);
    }
}

/* ---- steps ---------------------------------------------------------------------------------------------------- */

static void test_a_step_of_no_time_only_looks(void)
{
    fsi_rigid *w = make_small_world(NULL, 2);
    fsi_rigid_stats before;
    uint64_t hash;
    int k;
    for (k = 0; k < 8; k++) CHECK(fsi_rigid_step(w, (fsi_real)0.005) == FSI_OK);
    before = w->stats;
    hash = fsi_rigid_hash(w);
    CHECK(fsi_rigid_step(w, 0) == FSI_OK && fsi_rigid_hash(w) == hash);
    CHECK(w->stats.kinetic_energy == before.kinetic_energy && w->stats.bodies == before.bodies &&
          w->stats.contacts == before.contacts);
    CHECK(w->stats.awake == before.awake && w->stats.touching == before.touching && w->stats.substeps == 0 &&
          w->stats.islands > 0);
    CHECK(fsi_rigid_begin_step(w, 0) == FSI_OK && fsi_rigid_take_liquid(w) == FSI_OK &&
          fsi_rigid_end_step(w, 0) == FSI_OK && fsi_rigid_hash(w) == hash);
    CHECK(fsi_rigid_step(w, (fsi_real)1e-13) == FSI_ERROR_ARGUMENT && fsi_rigid_step(w, 1001) == FSI_ERROR_ARGUMENT &&
          fsi_rigid_step(w, (fsi_real)test_nan()) != FSI_OK);
    CHECK(strstr(fsi_rigid_error(w)->message, "dt") != NULL && fsi_rigid_hash(w) == hash);
    CHECK(fsi_rigid_step(w, (fsi_real)0.005) == FSI_OK && w->stats.substeps == 1);
    fsi_rigid_destroy(w);
}

/* A begin that fails begins nothing, and leaves alone what was begun before. */
static void test_a_begin_that_fails_changes_nothing(void)
{
    fsi_rigid *w = make_small_world(NULL, 3);
    const fsi_real dt = (fsi_real)0.005;
    const int ball = 3;
    fsi_vec3 v;
    w->force[ball].x = (fsi_real)test_nan();
    CHECK(fsi_rigid_begin_step(w, 0) == FSI_ERROR_NAN && fsi_rigid_end_step(w, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_begin_step(w, dt) == FSI_ERROR_NAN && fsi_rigid_end_step(w, dt) == FSI_ERROR_ARGUMENT);
    w->force[ball].x = 0;
    CHECK(fsi_rigid_begin_step(w, 0) == FSI_OK && fsi_rigid_step(w, dt) == FSI_OK);
    /* the step ended it */
    CHECK(fsi_rigid_end_step(w, 0) == FSI_ERROR_ARGUMENT && fsi_rigid_take_liquid(w) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_begin_step(w, 0) == FSI_OK && fsi_rigid_step(w, 0) == FSI_OK &&
          fsi_rigid_end_step(w, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_begin_step(w, dt) == FSI_OK);
    w->body[ball]->impulse.x = w->body[ball]->mass; /* 1 m/s */
    CHECK(fsi_rigid_take_liquid(w) == FSI_OK);
    w->force[ball].x = (fsi_real)test_nan();
    CHECK(fsi_rigid_begin_step(w, 0) == FSI_ERROR_NAN && fsi_rigid_begin_step(w, dt) == FSI_ERROR_NAN);
    w->force[ball].x = 0;
    v = w->body[ball]->velocity;
    CHECK(fsi_rigid_end_step(w, dt) == FSI_OK);
    CHECK_NEAR(w->body[ball]->velocity.x - v.x, 1, 0.2);
    CHECK(fsi_rigid_begin_step(w, dt) == FSI_OK);
    w->body[ball]->impulse.x = w->body[ball]->mass;
    /* begins anew: without that impulse */
    CHECK(fsi_rigid_take_liquid(w) == FSI_OK && fsi_rigid_begin_step(w, dt) == FSI_OK);
    v = w->body[ball]->velocity;
    CHECK(fsi_rigid_end_step(w, dt) == FSI_OK);
    CHECK_NEAR(w->body[ball]->velocity.x - v.x, 0, 0.2);
    fsi_rigid_destroy(w);
}

/* A world without bodies, planes and contacts: nothing has rows. */
static void test_an_empty_world_steps(void)
{
    fsi_rigid_desc d = fsi_rigid_default_desc();
    fsi_rigid *w = NULL;
    unsigned char *state;
    size_t size;
    CHECK(fsi_rigid_create(&w, &d) == FSI_OK);
    CHECK(fsi_rigid_step(w, 0) == FSI_OK && fsi_rigid_step(w, (fsi_real)0.01) == FSI_OK);
    CHECK(fsi_rigid_begin_step(w, (fsi_real)0.01) == FSI_OK && fsi_rigid_end_step(w, (fsi_real)0.01) == FSI_OK &&
          fsi_rigid_suggest_dt(w) == 1000);
    state = save_world(w, &size);
    CHECK(fsi_rigid_load(w, state, size) == FSI_OK && fsi_rigid_shift_origin(w, v3(1, 2, 3)) == FSI_OK);
    free(state);
    fsi_rigid_destroy(w);
}

/* In the step that is suggested the fastest body moves by half its thickness, whatever carries it. */
static void test_the_suggested_step_moves_half_a_body(void)
{
    fsi_rigid_desc d = fsi_rigid_default_desc();
    fsi_rigid *w = NULL;
    double dt, z;
    CHECK(fsi_rigid_create(&w, &d) == FSI_OK);
    CHECK(small_add(w, fsi_rigid_sphere((fsi_real)0.1), v3(0, 0, 5), FSI_RIGID_DYNAMIC, NULL));
    dt = (double)fsi_rigid_suggest_dt(w);
    CHECK_NEAR(0.5 * 9.81 * dt * dt, 0.1, TOL(1e-9, 1e-6)); /* falls from rest */
    CHECK(fsi_rigid_set_velocity(w, 0, v3(0, 0, -40), v3(0, 0, 0)) == FSI_OK);
    dt = (double)fsi_rigid_suggest_dt(w);
    z = (double)w->body[0]->pose.position.z;
    CHECK(fsi_rigid_step(w, (fsi_real)dt) == FSI_OK);
    CHECK_NEAR(z - (double)w->body[0]->pose.position.z, 0.1, 1e-3);
    CHECK(fsi_rigid_sleep(w, 0) == FSI_OK && fsi_rigid_suggest_dt(w) == 1000);
    CHECK(fsi_rigid_suggest_dt(NULL) == 0);
    fsi_rigid_destroy(w);
}

/* What falls is fastest in the last substep: there it moves by half its thickness. */
static void test_the_suggested_step_counts_the_last_substep(void)
{
    const double fast[2] = { 0, 3 };
    int k, i;
    for (k = 0; k < 2; k++) {
        fsi_rigid_desc d = fsi_rigid_default_desc();
        fsi_rigid *w = NULL;
        double t, last;
        d.substeps = 8;
        CHECK(fsi_rigid_create(&w, &d) == FSI_OK &&
              small_add(w, fsi_rigid_sphere((fsi_real)0.1), v3(0, 0, 5), FSI_RIGID_DYNAMIC, NULL));
        CHECK(fsi_rigid_set_velocity(w, 0, v3(0, 0, -fast[k]), v3(0, 0, 0)) == FSI_OK);
        t = (double)fsi_rigid_suggest_dt(w) / 8;
        CHECK_NEAR((fast[k] + 7.5 * 9.81 * t) * t, 0.1, TOL(1e-9, 1e-6));
        d.substeps = 1;
        CHECK(fsi_rigid_set_desc(w, &d) == FSI_OK);
        for (i = 0, last = 0; i < 8; i++) {
            last = (double)w->body[0]->pose.position.z;
            CHECK(fsi_rigid_step(w, (fsi_real)t) == FSI_OK);
        }
        CHECK_NEAR(last - (double)w->body[0]->pose.position.z, 0.1, 0.01);
        fsi_rigid_destroy(w);
    }
}

/* Gravity that turns round between steps: what lies falls up. */
static void test_gravity_changes_between_steps(void)
{
    fsi_rigid *w = make_small_world(NULL, 3);
    fsi_rigid_desc d = w->desc;
    double z;
    int k;
    for (k = 0; k < 60; k++) CHECK(fsi_rigid_step(w, (fsi_real)0.01) == FSI_OK);
    z = (double)w->body[0]->pose.position.z;
    CHECK(w->asleep[0]);
    d.gravity = v3(0, 0, 4);
    CHECK(fsi_rigid_set_desc(w, &d) == FSI_OK);
    for (k = 0; k < 20; k++) CHECK(fsi_rigid_step(w, (fsi_real)0.01) == FSI_OK);
    CHECK_NEAR((double)w->body[0]->pose.position.z - z, 0.5 * 4 * 0.2 * 0.2, 0.01);
    fsi_rigid_destroy(w);
}

/* ---- origin --------------------------------------------------------------------------------------------------- */

/* A shifted world goes the same way; states from before the shift fit. By eighths of metres shifts are exact. */
static void test_a_shifted_origin_changes_no_way(void)
{
    int dim, k, id;
    for (dim = 2; dim <= 3; dim++) {
        fsi_rigid *w = make_small_world(NULL, dim), *still = make_small_world(NULL, dim);
        const fsi_vec3 offset = v3(12.5, -3.25, dim == 2 ? 0 : 7.125);
        unsigned char *state;
        size_t size;
        for (k = 0; k < 3; k++)
            CHECK(fsi_rigid_step(w, (fsi_real)0.01) == FSI_OK && fsi_rigid_step(still, (fsi_real)0.01) == FSI_OK);
        state = save_world(w, &size);
        CHECK(fsi_rigid_shift_origin(w, offset) == FSI_OK);
        CHECK_NEAR(w->desc.domain.lo.x, 11.5, 0);
        for (k = 0; k < 20; k++) {
            CHECK(fsi_rigid_step(w, (fsi_real)0.01) == FSI_OK && fsi_rigid_step(still, (fsi_real)0.01) == FSI_OK);
            for (id = 0; id < w->count; id++) if (w->body[id])
                    CHECK((double)fsi_v3_norm(fsi_v3_sub(fsi_v3_sub(w->body[id]->pose.position, offset),
                                                         still->body[id]->pose.position)) <= TOL(1e-9, 2e-3));
        }
        CHECK(fsi_rigid_load(w, state, size) == FSI_OK && fsi_rigid_load(still, state, size) == FSI_OK);
        CHECK((double)fsi_v3_norm(fsi_v3_sub(fsi_v3_sub(w->body[0]->pose.position, offset),
                                             still->body[0]->pose.position)) <= TOL(1e-12, 1e-5));
        CHECK(fsi_rigid_step(w, (fsi_real)0.01) == FSI_OK);
        CHECK(fsi_rigid_shift_origin(w, v3(test_nan(), 0, 0)) == FSI_ERROR_NAN &&
              fsi_rigid_shift_origin(w, v3(1e12, 0, 0)) == FSI_ERROR_LIMIT);
        CHECK(fsi_rigid_shift_origin(NULL, offset) != FSI_OK);
        free(state);
        fsi_rigid_destroy(w);
        fsi_rigid_destroy(still);
    }
}

/* Far off, an origin is rounded by more than a small offset: what lies on a plane lies on it still, in states from
   before too. */
static void test_small_shifts_far_off_move_planes_with_bodies(void)
{
    fsi_rigid_desc d = fsi_rigid_default_desc();
    fsi_rigid *w = NULL;
    unsigned char *state;
    size_t size;
    int k;
    d.origin = v3(0, 0, 1e5);
    CHECK(fsi_rigid_create(&w, &d) == FSI_OK && fsi_rigid_add_plane(w, v3(0, 0, 1), 0, NULL, NULL) == FSI_OK);
    CHECK(small_add(w, fsi_rigid_sphere((fsi_real)0.1), v3(0, 0, 0.1), FSI_RIGID_DYNAMIC, NULL));
    state = save_world(w, &size);
    for (k = 0; k < 100; k++) CHECK(fsi_rigid_shift_origin(w, v3(0, 0, 0.003)) == FSI_OK);
    for (k = 0; k < 30; k++) CHECK(fsi_rigid_step(w, (fsi_real)0.01) == FSI_OK);
    CHECK_NEAR(w->body[0]->pose.position.z, 0.4, 2e-3);
    CHECK(fsi_rigid_load(w, state, size) == FSI_OK);
    CHECK_NEAR(w->body[0]->pose.position.z, 0.4, 1e-4);
    for (k = 0; k < 30; k++) CHECK(fsi_rigid_step(w, (fsi_real)0.01) == FSI_OK);
    CHECK_NEAR(w->body[0]->pose.position.z, 0.4, 2e-3);
    free(state);
    fsi_rigid_destroy(w);
}

/* In the plane z of an origin means nothing: such a world loads its own states, and those of one made with another
   z. */
static void test_z_of_an_origin_means_nothing_in_the_plane(void)
{
    fsi_rigid *w[2] = { NULL, NULL };
    unsigned char *state;
    size_t size;
    int k;
    for (k = 0; k < 2; k++) {
        fsi_rigid_desc d = fsi_rigid_default_desc();
        d.dim = 2;
        d.gravity = v3(0, -9.81, 0);
        d.origin = v3(1, 2, 5 - 7 * k);
        CHECK(fsi_rigid_create(&w[k], &d) == FSI_OK &&
              small_add(w[k], fsi_rigid_sphere((fsi_real)0.1), v3(0, 1, 0), FSI_RIGID_DYNAMIC, NULL));
    }
    CHECK(fsi_rigid_shift_origin(w[0], v3(0.5, 0, 3)) == FSI_OK);
    CHECK_NEAR(w[0]->body[0]->pose.position.z, 0, 0);
    state = save_world(w[0], &size);
    for (k = 0; k < 2; k++) {
        CHECK(fsi_rigid_load(w[k], state, size) == FSI_OK && fsi_rigid_step(w[k], (fsi_real)0.01) == FSI_OK);
        CHECK_NEAR(w[k]->body[0]->pose.position.x, 0.5 - 0.5 * k, TOL(1e-12, 1e-6));
        CHECK_NEAR(w[k]->body[0]->pose.position.z, 0, 0);
    }
    free(state);
    for (k = 0; k < 2; k++) fsi_rigid_destroy(w[k]);
}

/* ---- messages ------------------------------------------------------------------------------------------------- */

typedef struct heard { int count; char text[200]; } heard;
static void hear(void *user, int level, const char *text)
{
    heard *h = (heard *)user;
    if (level != 1) return;
    h->count++;
    snprintf(h->text, sizeof h->text, "%s", text);
}

/* Bodies put into each other are told once a step; a world in order says nothing. */
static void test_deep_overlap_is_told_once_a_step(void)
{
    fsi_context context = fsi_default_context();
    heard h = { 0, "" };
    fsi_rigid_desc d = fsi_rigid_default_desc();
    fsi_rigid *w = NULL;
    int k;
    context.message = hear;
    context.user = &h;
    d.context = &context;
    CHECK(fsi_rigid_create(&w, &d) == FSI_OK);
    for (k = 0; k < 3; k++)
        CHECK(small_add(w, fsi_rigid_sphere((fsi_real)0.1), v3(0.5 * k, 0, 1), FSI_RIGID_DYNAMIC, NULL));
    CHECK(fsi_rigid_step(w, (fsi_real)0.001) == FSI_OK && h.count == 0);
    for (k = 0; k < 2; k++)
        CHECK(small_add(w, fsi_rigid_sphere((fsi_real)0.1), v3(0.5 * k, 0.12, 1), FSI_RIGID_DYNAMIC, NULL));
    CHECK(fsi_rigid_step(w, (fsi_real)0.001) == FSI_OK && h.count == 1 && strstr(h.text, "2 pairs") != NULL);
    fsi_rigid_destroy(w);
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

/* The harness's allocator, in which one allocation, or each from one on, fails. */
static struct { long count, at; int only; } scarce;
static void *scarce_alloc(void *user, size_t size, size_t align)
{
    const long n = ++scarce.count;
    return scarce.at && (n == scarce.at || (n > scarce.at && !scarce.only)) ? NULL : test__alloc(user, size, align);
}

/* Steps, with a load between; those that memory fails are tried again. */
static uint64_t run_scarcely(fsi_context *context, fsi_rigid *w, const void *state, size_t size, int *failures)
{
    int k;
    for (k = 0; k < 14; k++) {
        uint64_t before = fsi_rigid_hash(w);
        fsi_status status = k == 7 ? fsi_rigid_load(w, state, size) : fsi_rigid_step(w, (fsi_real)0.01);
        if (status == FSI_OK) continue;
        CHECK(status == FSI_ERROR_MEMORY && fsi_rigid_hash(w) == before && context->error.status == FSI_ERROR_MEMORY);
        (*failures)++;
        scarce.at = 0;
        k--;
    }
    return fsi_rigid_hash(w);
}

/* Each allocation of making and stepping a world fails once, and from each on: what is tried again gives the bits of a
   run with memory enough. */
static void test_failing_memory_leaves_no_trace(void)
{
    int dim, only, made, failures = 0;
    for (dim = 2; dim <= 3; dim++) {
        fsi_rigid *calm = make_small_world(NULL, dim);
        size_t size;
        unsigned char *state;
        uint64_t hash;
        long at;
        int k, none = 0;
        fsi_context plain = fsi_default_context();
        for (k = 0; k < 20; k++) CHECK(fsi_rigid_step(calm, (fsi_real)0.01) == FSI_OK);
        state = save_world(calm, &size);
        fsi_rigid_destroy(calm);
        calm = make_small_world(NULL, dim);
        hash = run_scarcely(&plain, calm, state, size, &none);
        fsi_rigid_destroy(calm);
        for (only = 0; only < 2; only++) for (at = 1, made = 0; at < 400; at++) {
            fsi_context context = fsi_default_context();
            fsi_rigid *w;
            test_fail_allocator(&context, 0);
            context.alloc = scarce_alloc;
            scarce.count = 0;
            scarce.at = at;
            scarce.only = only;
            w = make_small_world(&context, dim);
            if (w) made = 1;
            if (w) CHECK(run_scarcely(&context, w, state, size, &failures) == hash);
            k = scarce.count < at;
            fsi_rigid_destroy(w);
            CHECK(context.bytes == 0);
            if (k) break;
        }
        CHECK(made && at < 400);
        free(state);
    }
    CHECK(failures > 4);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_loaded_state_can_be_stepped);
    RUN(test_motors_and_torques_on_light_links_are_saved_and_loaded);
    RUN(test_absurd_speeds_are_refused_by_name);
    RUN(test_a_step_of_no_time_only_looks);
    RUN(test_a_begin_that_fails_changes_nothing);
    RUN(test_an_empty_world_steps);
    RUN(test_the_suggested_step_moves_half_a_body);
    RUN(test_the_suggested_step_counts_the_last_substep);
    RUN(test_gravity_changes_between_steps);
    RUN(test_a_shifted_origin_changes_no_way);
    RUN(test_small_shifts_far_off_move_planes_with_bodies);
    RUN(test_z_of_an_origin_means_nothing_in_the_plane);
    RUN(test_deep_overlap_is_told_once_a_step);
    RUN(test_failing_memory_leaves_no_trace);
    return TEST_END();
}
