/* test_shell_calls.c - calls of fsi_shell.h that its siblings have too: steps of no time, another origin, gravity,
   messages
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_shell.h"
#include "kit/test_shell.h"

/* A cloth that lies on a box, held by a corner, with a rod beside it, a spring in space; some steps on. */
typedef struct lying { fsi_shell *s; fsi_mesh *box; fsi_body body; int id; } lying;

static void lying_make(lying *l, fsi_context *context, fsi_shell_integrator integrator)
{
    scene c = scene_empty();
    fsi_shell_spring_desc p = fsi_shell_default_spring_desc();
    fsi_shell_obstacle_desc o = fsi_shell_default_obstacle_desc();
    int k;
    c.context = context;
    c.desc.integrator = integrator;
    c.desc.friction = (fsi_real)0.2;
    c.material[0].young = (fsi_real)1e5;
    scene_sheet(&c, EQUILATERAL, 4, 4, 0.4, 0.4);
    scene_shift(&c, 0, 0, 0, 0.01);
    c.now = 2;
    scene_rod(&c, 3, v3(0.5, 0, 0.2), v3(0.6, 0.2, 0.25));
    l->s = scene_make(&c);
    scene_free(&c);
    l->box = make_box_at(NULL, 0.15, 0.15, 0.05, v3(0.2, 0.2, -0.05));
    l->body = fsi_default_body();
    o.mesh = l->box;
    o.body = &l->body;
    CHECK(fsi_shell_add_obstacle(l->s, &o, &l->id) == FSI_OK);
    p.vertex = 3;
    p.anchor = v3(0, 0.4, 0.3);
    p.stiffness = 5;
    CHECK(fsi_shell_add_spring(l->s, &p, NULL) == FSI_OK);
    l->s->pinned[0] = 1;
    for (k = 0; k < 12; k++) step_ok(l->s, 0.01);
    CHECK(l->s->stats.contacts > 0);
}

static void lying_free(lying *l)
{
    fsi_shell_destroy(l->s);
    fsi_mesh_destroy(l->box);
}

static void test_a_step_of_no_time_only_looks(void)
{
    fsi_context context = fsi_default_context();
    fsi_shell_stats was;
    fsi_vec3 force;
    uint64_t hash, want;
    lying l, twin;
    int k;
    lying_make(&l, &context, FSI_SHELL_BDF2);
    lying_make(&twin, &context, FSI_SHELL_BDF2);
    hash = fsi_shell_hash(l.s);
    was = l.s->stats;
    l.body.end.position.z += (fsi_real)0.01; /* where it would go */
    step_ok(l.s, 0);
    CHECK(fsi_shell_hash(l.s) == hash && l.s->stats.substeps == 0 && l.s->stats.newton == 0 &&
          l.s->stats.degraded == 0);
    CHECK_NEAR(l.s->stats.kinetic_energy, was.kinetic_energy, TOL(1e-12, 1e-12));
    CHECK_NEAR(l.s->stats.elastic_energy, was.elastic_energy, TOL(1e-9, 1e-9));
    CHECK_NEAR(l.s->stats.potential_energy, was.potential_energy, TOL(1e-12, 1e-12));
    CHECK_NEAR(l.s->stats.min_gap, was.min_gap, 1e-12);
    CHECK(l.s->stats.contacts == was.contacts && l.s->stats.momentum[2] <= was.momentum[2] &&
          l.s->stats.momentum[2] >= was.momentum[2]);
    CHECK(fsi_shell_obstacle_reaction(l.s, l.id, &force, NULL) == FSI_OK && fsi_v3_norm2(force) <= 0 &&
          fsi_v3_norm2(l.body.impulse) <= 0);
    l.body.end = l.body.pose;
    for (k = 0; k < 3; k++) { /* and goes on as if it had not been */
        step_ok(l.s, 0.01);
        step_ok(twin.s, 0.01);
    }
    want = fsi_shell_hash(twin.s);
    CHECK(fsi_shell_hash(l.s) == want);
    l.s->velocity[7] = v3(1, 2, 3); /* what was written counts */
    step_ok(l.s, 0);
    CHECK_NEAR(l.s->velocity[7].y, 2, 0);
    CHECK(l.s->stats.kinetic_energy > was.kinetic_energy);
    lying_free(&l);
    lying_free(&twin);
}

/* A COUPLED body keeps its velocity, gets no impulse, and stays where it is. */
static void test_a_step_of_no_time_leaves_bodies(void)
{
    fsi_mesh *ball = make_box_at(NULL, 0.05, 0.05, 0.05, v3(0.2, 0.2, 0.5));
    fsi_mass_properties mass;
    fsi_body body;
    lying l;
    lying_make(&l, NULL, FSI_SHELL_BACKWARD_EULER);
    CHECK(fsi_mesh_mass(ball, 500, 0, &mass) == FSI_OK);
    body = fsi_body_from_mass(&mass);
    add_mesh(l.s, ball, &body, 0);
    body.velocity = v3(0, 0, -2);
    body.force = v3(0, 0, -10);
    body.impulse = v3(7, 7, 7);
    step_ok(l.s, 0);
    CHECK(fsi_v3_norm2(body.impulse) <= 0);
    CHECK_NEAR(body.new_velocity.z, -2, 0);
    CHECK_NEAR(body.end.position.z, body.pose.position.z, 0);
    lying_free(&l);
    fsi_mesh_destroy(ball);
}

/* Far from home and back at once; then ten steps there are ten steps here. */
static void test_a_world_whose_origin_moves_goes_on_alike(void)
{
    const fsi_vec3 offset = v3(64, -32, 8); /* positions of some tenths of a metre lose no more than their last bits */
    fsi_context context = fsi_default_context();
    uint64_t hash;
    lying l, twin;
    int i, k;
    lying_make(&l, &context, FSI_SHELL_BDF2);
    lying_make(&twin, &context, FSI_SHELL_BDF2);
    for (k = 0; k < 2; k++) {
        lying *a = k ? &twin : &l;
        a->s->position[24] = fsi_v3_add(a->s->position[24], v3(0, 0, 0.01)); /* written and not yet taken */
        a->s->pinned[20] = 1;
        a->s->target[20].z += (fsi_real)0.02;
    }
    CHECK(fsi_shell_shift_origin(l.s, offset) == FSI_OK);
    l.body.pose.position = l.body.end.position = fsi_v3_add(l.body.pose.position, offset);
    for (k = 0; k < 10; k++) {
        step_ok(l.s, 0.01);
        step_ok(twin.s, 0.01);
    }
    for (i = 0; i < l.s->vertex_count; i++)
        CHECK(apart(fsi_v3_sub(l.s->position[i], offset), twin.s->position[i]) <= TOL(2e-6, 1e-3));
    CHECK(fsi_shell_count_intersections(l.s) == 0);
    hash = fsi_shell_hash(l.s);
    CHECK(fsi_shell_shift_origin(l.s, v3(0, test_nan(), 0)) == FSI_ERROR_NAN &&
          fsi_shell_shift_origin(l.s, v3(1e12, 0, 0)) == FSI_ERROR_LIMIT);
    CHECK(fsi_shell_shift_origin(NULL, offset) == FSI_ERROR_COOKIE && fsi_shell_hash(l.s) == hash);
    lying_free(&l);
    lying_free(&twin);
}

static void test_a_mesh_is_added_in_short(void)
{
    fsi_mesh *box = make_box_at(NULL, 0.1, 0.1, 0.05, v3(0.2, 0.2, -0.05));
    scene c = scene_empty();
    fsi_shell *s;
    int id = -1;
    scene_sheet(&c, EQUILATERAL, 2, 2, 0.4, 0.4);
    scene_shift(&c, 0, 0, 0, 0.02);
    s = scene_make(&c);
    scene_free(&c);
    CHECK(fsi_shell_add_mesh(s, NULL, &id) == FSI_ERROR_ARGUMENT &&
          fsi_shell_add_mesh(NULL, box, &id) == FSI_ERROR_COOKIE && id == -1);
    CHECK(fsi_shell_add_mesh(s, box, &id) == FSI_OK && id == 0);
    run_ok(s, 20, 0.01);
    CHECK(s->stats.contacts > 0 && fsi_shell_remove_obstacle(s, id) == FSI_OK);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(box);
}

static void test_gravity_changes_at_run_time(void)
{
    scene c = scene_empty();
    fsi_shell_desc d;
    fsi_shell *s;
    scene_point(&c, 0, 0, 0, 1);
    s = scene_make(&c);
    scene_free(&c);
    run_ok(s, 10, 0.1);
    CHECK_NEAR(s->velocity[0].z, -9.81, TOL(1e-9, 1e-4));
    d = s->desc;
    d.gravity = v3(3, 0, 0);
    CHECK(fsi_shell_set_desc(s, &d) == FSI_OK);
    run_ok(s, 10, 0.1);
    CHECK_NEAR(s->velocity[0].z, -9.81, TOL(1e-9, 1e-4));
    CHECK_NEAR(s->velocity[0].x, 3, TOL(1e-9, 1e-4));
    fsi_shell_destroy(s);
}

static void test_a_suggested_step_is_that_of_half_an_edge(void)
{
    scene c = scene_empty();
    fsi_shell *s;
    c.desc.substeps = 3;
    c.desc.gravity = v3(0, 0, 0);
    scene_sheet(&c, RIGHT, 2, 2, 0.4, 0.4);
    s = scene_make(&c);
    scene_free(&c);
    CHECK_NEAR(fsi_shell_suggest_dt(s), 1000, 0);
    s->velocity[4] = v3(0, -5, 0);
    CHECK_NEAR(fsi_shell_suggest_dt(s), 0.5 * (double)s->mean_edge / 5 * 3, TOL(1e-15, 1e-7));
    CHECK_NEAR(fsi_shell_suggest_dt(NULL), 0, 0);
    fsi_shell_destroy(s);
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

typedef struct heard { int warnings; char last[256]; } heard;

static void hear(void *user, int level, const char *text)
{
    heard *h = (heard *)user;
    if (level != 1) return;
    h->warnings++;
    snprintf(h->last, sizeof h->last, "%s", text);
}

static void test_a_degraded_step_says_so_once(void)
{
    fsi_context context = fsi_default_context();
    scene c = scene_empty();
    fsi_shell *s;
    heard h;
    memset(&h, 0, sizeof h);
    context.user = &h;
    context.message = hear;
    c.context = &context;
    c.desc.max_newton = 1;
    c.desc.substeps = 3;
    scene_sheet(&c, EQUILATERAL, 3, 3, 0.4, 0.4);
    s = scene_make(&c);
    scene_free(&c);
    step_ok(s, 0.01); /* falls free: one Newton step will do */
    CHECK(h.warnings == (s->stats.degraded > 0));
    h.warnings = 0;
    s->pinned[0] = 1;
    s->velocity[5] = v3(0, 0, 20);
    step_ok(s, 0.02);
    CHECK(s->stats.degraded > 0 && h.warnings == 1 && strstr(h.last, "degraded"));
    fsi_shell_destroy(s);
}

/* All pins at one point: two of them are named. Edges of a sheet that is scaled down stay parallel to each other, where
   nothing pushes but all meet. */
static void test_pins_at_one_point_are_named(void)
{
    int contact, rod;
    for (rod = 0; rod < 2; rod++) for (contact = 1 - rod; contact < 2; contact++) {
        fsi_context context = fsi_default_context();
        scene c = scene_empty();
        fsi_shell *s;
        uint64_t hash;
        int i;
        c.context = &context;
        c.desc.contact = contact;
        if (rod) scene_rod(&c, 5, v3(0, 0, 0), v3(1, 0, 0));
        else scene_sheet(&c, EQUILATERAL, 2, 2, 1, 1);
        s = scene_make(&c);
        scene_free(&c);
        hash = fsi_shell_hash(s);
        for (i = 0; i < s->vertex_count; i++) {
            s->pinned[i] = 1;
            s->target[i] = v3(0.3, 0.3, 0);
        }
        CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_ERROR_CONVERGENCE && fsi_shell_hash(s) == hash);
        if (!CHECK(strstr(context.error.message, "vertices 0 and 1 are pinned to one point")))
            printf("   %s\n", context.error.message);
        fsi_shell_destroy(s);
        CHECK(context.bytes == 0);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_step_of_no_time_only_looks);
    RUN(test_a_step_of_no_time_leaves_bodies);
    RUN(test_a_world_whose_origin_moves_goes_on_alike);
    RUN(test_a_mesh_is_added_in_short);
    RUN(test_gravity_changes_at_run_time);
    RUN(test_a_suggested_step_is_that_of_half_an_edge);
    RUN(test_a_degraded_step_says_so_once);
    RUN(test_pins_at_one_point_are_named);
    return TEST_END();
}
