/* test_rigid_liquids.c - fsi_rigid.h as the owner of bodies in both liquids: drafts, a loaded raft, momentum,
   roll-back.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "kit/test_rigid.h"
#include "../fsi_levelset.h"

/* Puts what the world calls `id` into a liquid, as it stands. The mesh is returned: it must outlive the liquid. */
static fsi_mesh *into_sph(fsi_sph *s, fsi_rigid *w, int id)
{
    fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
    fsi_mesh *m = NULL;
    CHECK(fsi_rigid_tessellate(w, id, -1, 0, &m) == FSI_OK);
    o.mesh = m;
    o.body = fsi_rigid_body(w, id);
    CHECK(fsi_sph_add_obstacle(s, &o, NULL) == FSI_OK);
    return m;
}

static fsi_mesh *into_levelset(fsi_levelset *s, fsi_rigid *w, int id)
{
    fsi_levelset_obstacle_desc o = fsi_levelset_default_obstacle_desc();
    fsi_mesh *m = NULL;
    CHECK(fsi_rigid_tessellate(w, id, -1, 0, &m) == FSI_OK);
    o.mesh = m;
    o.body = fsi_rigid_body(w, id);
    CHECK(fsi_levelset_add_obstacle(s, &o, NULL) == FSI_OK);
    return m;
}

static void damp(fsi_rigid *w, double keep)
{
    int i;
    for (i = 0; i < w->count; i++)
        if (w->kind[i] == FSI_RIGID_DYNAMIC)
            CHECK(fsi_rigid_set_velocity(w, i, fsi_v3_scale(w->body[i]->velocity, (fsi_real)keep),
                                         fsi_v3_scale(w->body[i]->angular_velocity, (fsi_real)keep)) == FSI_OK);
}

/* One step of liquid and bodies. */
static int step_sph(fsi_sph *s, fsi_rigid *w, double dt)
{
    int ok = CHECK(fsi_rigid_begin_step(w, (fsi_real)dt) == FSI_OK) && step_ok(s, dt);
    return CHECK(fsi_rigid_end_step(w, (fsi_real)dt) == FSI_OK) && ok;
}

static int step_levelset(fsi_levelset *s, fsi_rigid *w, double dt)
{
    int ok =
        CHECK(fsi_rigid_begin_step(w, (fsi_real)dt) == FSI_OK) && CHECK(fsi_levelset_step(s, (fsi_real)dt) == FSI_OK);
    return CHECK(fsi_rigid_end_step(w, (fsi_real)dt) == FSI_OK) && ok;
}

enum { TALL = 12 }; /* spacings of a crate's height */

/* A crate of half the water's density in a tank of fsi_sph.h: within 3 % of its height and half a spacing of
   Archimedes' draft. */
static void test_a_crate_floats_at_its_draft_in_sph(void)
{
    const double high = 0.12, width = 0.18, dx = high / TALL, wide = 0.64, deep = 0.2,
                 level = deep + width * high * 0.5 / wide;
    const int steps = TEST_SLOWED ? 40 : 500;
    fsi_rigid_desc d = rigid_desc(2, 9.81);
    fsi_rigid *w = make_world(&d);
    fsi_sph_desc sd = make_desc(2, dx);
    fsi_rigid_shape box = box_shape(width, high, 0);
    fsi_sph *s;
    fsi_mesh *m;
    double mean = 0;
    int k, i, id;
    box.density = 500;
    id = add_shape(w, box, v3(wide / 2, level + 0.03, 0));
    sd.domain = box3(0, 0, 0, wide, 0.48, 0);
    sd.depth = (fsi_real)0.3;
    s = make_sph(&sd);
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, wide, deep, 0), v3(0, 0, 0), NULL) == FSI_OK);
    m = into_sph(s, w, id);
    for (k = 0; k < steps; k++) {
        for (i = 0; i < s->count && k < 2 * steps / 3; i++)
            s->velocity[i] = fsi_v3_scale(s->velocity[i], (fsi_real)0.97);
        if (k < 2 * steps / 3) damp(w, 0.97);
        if (!step_sph(s, w, 4e-3)) break;
        if (k >= 3 * steps / 4) mean += height_of(w, id) / (steps - 3 * steps / 4);
    }
    CHECK(fsi_sph_count_inside(s, NULL) == 0);
    if (!TEST_SLOWED) CHECK_NEAR(mean, level, 0.03 * high + 0.5 * dx);
    CHECK((double)fsi_v3_norm(w->body[id]->velocity) < 2);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(m);
    fsi_rigid_destroy(w);
}

/* The same in fsi_levelset.h. */
static void test_a_crate_floats_at_its_draft_in_a_level_set(void)
{
    const double high = 0.12, width = 0.18, dx = high / TALL, wide = 0.64, deep = 0.2,
                 level = deep + width * high * 0.5 / wide;
    const int steps = TEST_SLOWED ? 20 : 400;
    fsi_rigid_desc d = rigid_desc(2, 9.81);
    fsi_rigid *w = make_world(&d);
    fsi_levelset_desc ld = fsi_levelset_default_desc();
    fsi_rigid_shape box = box_shape(width, high, 0);
    fsi_levelset *s = NULL;
    fsi_mesh *m;
    double mean = 0;
    int k, id;
    box.density = 500;
    id = add_shape(w, box, v3(wide / 2, level + 0.03, 0));
    ld.dim = 2;
    ld.n[0] = 64;
    ld.n[1] = 48;
    ld.n[2] = 1;
    ld.dx = (fsi_real)dx;
    ld.gravity = v3(0, -9.81, 0);
    CHECK(fsi_levelset_create(&s, &ld) == FSI_OK);
    CHECK(fsi_levelset_fill_box(s, box3(0, 0, 0, wide, deep, 0), v3(0, 0, 0), NULL) == FSI_OK);
    m = into_levelset(s, w, id);
    for (k = 0; k < steps; k++) {
        if (k < 2 * steps / 3) damp(w, 0.9);
        if (!step_levelset(s, w, 4e-3)) break;
        if (k >= 3 * steps / 4) mean += height_of(w, id) / (steps - 3 * steps / 4);
    }
    if (!TEST_SLOWED) CHECK_NEAR(mean, level, 0.03 * high + 0.5 * dx);
    CHECK((double)fsi_v3_norm(w->body[id]->velocity) < 2);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(m);
    fsi_rigid_destroy(w);
}

/* A raft comes to float with two crates on it, one on the other: its draft is that of the whole load, nothing slides
   off. */
static void test_a_raft_bears_a_stack_of_crates(void)
{
    const double dx = 0.01, wide = 0.64, deep = 0.2, side = 0.06, length = 0.36, thick = 0.09,
                 load = 0.5 * length * thick + 2 * 0.3 * side * side;
    const double level = deep + load / wide;
    const int steps = TEST_SLOWED ? 40 : 500;
    fsi_rigid_desc d = rigid_desc(2, 9.81);
    fsi_rigid *w = make_world(&d);
    fsi_sph_desc sd = make_desc(2, dx);
    fsi_rigid_shape raft = box_shape(length, thick, 0), crate = box_shape(side, side, 0);
    fsi_mesh *m[3];
    fsi_sph *s;
    double mean = 0, want = level - load / length + thick / 2;
    int k, i;
    raft.density = 500;
    crate.density = 300;
    add_shape(w, raft, v3(wide / 2, want + 0.01, 0));
    for (k = 0; k < 2; k++) add_shape(w, crate, v3(wide / 2, want + 0.01 + thick / 2 + (k + 0.5) * side, 0));
    sd.domain = box3(0, 0, 0, wide, 0.6, 0);
    sd.depth = (fsi_real)0.3;
    s = make_sph(&sd);
    for (k = 0; k < 3; k++) m[k] = into_sph(s, w, k);
    {   /* water beside and under the raft as it stands */
        double under = want + 0.01 - thick / 2 - dx / 2;
        CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, wide, under, 0), v3(0, 0, 0), NULL) == FSI_OK);
        CHECK(fsi_sph_fill_box(
                  s, box3(0, under, 0, (wide - length) / 2 - dx, deep + (deep - under) * length / (wide - length), 0),
                  v3(0, 0, 0), NULL) == FSI_OK);
        CHECK(fsi_sph_fill_box(
                  s,
                  box3((wide + length) / 2 + dx, under, 0, wide, deep + (deep - under) * length / (wide - length), 0),
                  v3(0, 0, 0), NULL) == FSI_OK);
    }
    for (k = 0; k < steps; k++) {
        for (i = 0; i < s->count && k < 2 * steps / 3; i++)
            s->velocity[i] = fsi_v3_scale(s->velocity[i], (fsi_real)0.97);
        if (k < 2 * steps / 3) damp(w, 0.97);
        if (!step_sph(s, w, 4e-3)) break;
        if (k >= 3 * steps / 4) mean += height_of(w, 0) / (steps - 3 * steps / 4);
    }
    want += s->count * dx * dx / wide - deep; /* what was filled in fact */
    CHECK(fsi_sph_count_inside(s, NULL) == 0 && w->stats.max_depth <= 0.002);
    if (!TEST_SLOWED) CHECK_NEAR(mean, want, 0.03 * thick + 0.5 * dx);
    for (k = 1; k < 3; k++) {
        CHECK_NEAR(height_of(w, k) - height_of(w, 0), thick / 2 + (k - 0.5) * side, 0.004);
        CHECK_NEAR((double)w->body[k]->pose.position.x - (double)w->body[0]->pose.position.x, 0, 0.015);
    }
    fsi_sph_destroy(s);
    for (k = 0; k < 3; k++) fsi_mesh_destroy(m[k]);
    fsi_rigid_destroy(w);
}

/* A drop strikes two blocks that stand against each other, nothing else around: all momentum stays within the three. */
static void test_liquid_and_bodies_keep_their_momentum(void)
{
    fsi_rigid_desc d = rigid_desc(2, 0);
    fsi_rigid *w = make_world(&d);
    fsi_sph_desc sd = make_desc(2, 0.01);
    fsi_mesh *m[2];
    fsi_sph *s;
    double p0[3], l0[3], p[3], l[3], taken = 0;
    int k, i, j;
    for (k = 0; k < 2; k++) add_shape(w, box_shape(0.1, 0.2, 0), v3(0.2 + 0.1 * k, 0.03 * k, 0));
    sd.gravity = v3(0, 0, 0);
    s = make_sph(&sd);
    for (k = 0; k < 2; k++) m[k] = into_sph(s, w, k);
    add_drop(s, v3(0, 0.02, 0), 0.1, v3(1, 0, 0));
    for (k = 0; k <= 60; k++) {
        momentum_of(w, p, l);
        for (i = 0; i < s->count; i++) {
            const double mass = (double)sd.density * (double)s->particle_volume;
            p[0] += mass * (double)s->velocity[i].x;
            p[1] += mass * (double)s->velocity[i].y;
        }
        if (k == 0) for (j = 0; j < 3; j++) { p0[j] = p[j]; l0[j] = l[j]; }
        CHECK_NEAR(distance3(p, p0), 0, TOL(1e-10, 1e-4) * p0[0]);
        if (k == 60) break;
        if (!step_sph(s, w, 2e-3)) break;
        taken += w->stats.liquid_impulse[0];
    }
    momentum_of(w, p, l);
    CHECK_NEAR(taken, p[0], TOL(1e-10, 1e-4) * p0[0]);
    CHECK(p[0] > 0.2 * p0[0] && fabs(l[2] - l0[2]) > 0); /* it did push */
    CHECK((double)w->body[1]->velocity.x > 0.02);        /* through the first block */
    fsi_sph_destroy(s);
    for (k = 0; k < 2; k++) fsi_mesh_destroy(m[k]);
    fsi_rigid_destroy(w);
}

/* Water that reaches a sleeping block wakes it. */
static void test_liquid_wakes_a_sleeper(void)
{
    fsi_rigid_desc d = rigid_desc(2, 9.81);
    fsi_rigid *w;
    fsi_sph_desc sd = make_desc(2, 0.01);
    fsi_rigid_shape box = box_shape(0.08, 0.08, 0);
    fsi_mesh *m;
    fsi_sph *s;
    int k;
    d.sleep_time = (fsi_real)0.2;
    w = make_world(&d);
    add_floor(w);
    box.density = 300;
    add_shape(w, box, v3(0.35, 0.04, 0));
    advance_to(w, 1, 0.01);
    CHECK(w->asleep[0]);
    sd.domain = box3(0, 0, 0, 0.5, 0.4, 0);
    s = make_sph(&sd);
    m = into_sph(s, w, 0);
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 0.12, 0.2, 0), v3(0, 0, 0), NULL) == FSI_OK);
    step_sph(s, w, 4e-3);
    CHECK(w->asleep[0]); /* not yet */
    for (k = 0; k < 60; k++) if (!step_sph(s, w, 4e-3)) break;
    CHECK(!w->asleep[0] && fabs((double)w->body[0]->pose.position.x - 0.35) > 0.005);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(m);
    fsi_rigid_destroy(w);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_crate_floats_at_its_draft_in_sph);
    RUN(test_a_crate_floats_at_its_draft_in_a_level_set);
    RUN(test_a_raft_bears_a_stack_of_crates);
    RUN(test_liquid_and_bodies_keep_their_momentum);
    RUN(test_liquid_wakes_a_sleeper);
    return TEST_END();
}
