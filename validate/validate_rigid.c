/* validate_rigid.c - fsi_rigid.h at full size: free turning and its order, the stack's minute, piles, slopes, bounces,
   drafts at 20 spacings a side.
   SPDX-License-Identifier: MIT

   Prints lines `key value unit`. --res 50 halves the number of particles and cells along each edge; a word (turning,
   stack, piles, slopes, bounces, drafts) runs one part. */
#define FSI_IMPLEMENTATION
#include "../examples/kit/kit.h"
#include "../fsi_rigid.h"
#include "../fsi_levelset.h"
#include "../tests/kit/test.h"
#include "../tests/kit/test_rigid.h"
#include "validate.h"

static fsi_rigid *make(fsi_rigid_desc *d)
{
    fsi_rigid *w;
    d->context = &app.context;
    ex_check(&app, fsi_rigid_create(&w, d));
    return w;
}

/* A block about its unstable axis for `seconds`: drift of momentum, swing of the energy, where it ends. */
static fsi_quat turn_block(double dt, double seconds, double *momentum, double *energy)
{
    fsi_rigid_desc d = rigid_desc(3, 0);
    fsi_rigid *w = make(&d);
    int id = add_shape(w, box_shape(0.1, 0.3, 0.6), v3(0, 0, 0));
    fsi_vec3 first;
    fsi_quat end;
    double e0;
    ex_check(&app, fsi_rigid_set_velocity(w, id, v3(0, 0, 0), v3(0.1, 5, 0.2)));
    first = spin_of(w->body[id]);
    e0 = kinetic_energy_of(w->body[id]);
    *momentum = *energy = 0;
    while (w->time < seconds - dt / 2) {
        ex_check(&app, fsi_rigid_step(w, (fsi_real)dt));
        *momentum = fmax(*momentum, apart(spin_of(w->body[id]), first) / (double)fsi_v3_norm(first));
        *energy = fmax(*energy, fabs(kinetic_energy_of(w->body[id]) / e0 - 1));
    }
    end = w->body[id]->pose.orientation;
    fsi_rigid_destroy(w);
    return end;
}

static void run_turning(void)
{
    double p, e, before = 0;
    fsi_quat fine = turn_block(1.0 / 30720, 4, &p, &e);
    int n;
    for (n = 60; n <= 960; n *= 2) {
        double off = turn_between(turn_block(1.0 / n, 4, &p, &e), fine);
        say(off, "rad", "turning_4s_%dhz_error", n);
        say(e, "1", "turning_4s_%dhz_energy", n);
        if (before > 0) say(log2(before / off), "1", "turning_order_%dhz", n);
        before = off;
    }
    turn_block(1.0 / 60, 3600, &p, &e);
    say(p, "1", "turning_hour_momentum");
    say(e, "1", "turning_hour_energy");
}

/* n boxes for a minute, every other `ratio` times as dense; sweeps 0: the default. */
static void stack(int dim, int n, double ratio, int sweeps, double sleep_time, const char *key)
{
    fsi_rigid_desc d = rigid_desc(dim, 9.81);
    fsi_rigid *w;
    fsi_vec3 *settled = (fsi_vec3 *)ex_alloc(NULL, (size_t)n, sizeof *settled);
    double creep = 0, deep = 0;
    int k, asleep = 0;
    d.sleep_time = (fsi_real)sleep_time;
    if (sweeps > 0) d.sweeps = sweeps;
    w = make(&d);
    add_floor(w);
    for (k = 0; k < n; k++) {
        fsi_rigid_shape s = box_shape(1, 1, 1);
        s.density = (fsi_real)(k % 2 ? 1000 * ratio : 1000);
        add_shape(w, s, fsi_v3_scale(up(dim), (fsi_real)(k + 0.5)));
    }
    while (w->time < 60) {
        ex_check(&app, fsi_rigid_step(w, (fsi_real)(1.0 / 60)));
        deep = fmax(deep, w->stats.max_depth);
        for (k = 0; k < n; k++) {
            if (w->time < 2) settled[k] = w->body[k]->pose.position;
            creep = fmax(creep, apart(w->body[k]->pose.position, settled[k]));
        }
    }
    for (k = 0; k < n; k++) asleep += w->asleep[k];
    say(creep, "sides", "%s_creep", key);
    say(deep, "sides", "%s_depth", key);
    say(asleep, "1", "%s_asleep", key);
    fsi_rigid_destroy(w);
    free(settled);
}

static void run_stack(void)
{
    stack(3, 10, 1, 0, 0.5, "stack_10_3d");
    stack(3, 10, 1, 0, 0, "stack_10_3d_awake");
    stack(2, 10, 1, 0, 0.5, "stack_10_2d");
    stack(2, 10, 1, 0, 0, "stack_10_2d_awake");
    stack(3, 20, 1, 0, 0, "stack_20_3d_awake");
    stack(3, 10, 100, 0, 0, "stack_10_3d_100_to_1_awake");
    stack(3, 10, 100, 200, 0, "stack_10_3d_100_to_1_200_sweeps_awake");
}

/* Tiles that fall on each other, towers of cubes of all sizes and weights, arches. */
static void run_piles(void)
{
    static const double side[4] = { 0.05, 0.2, 1, 2 }, ratio[2] = { 300, 1000 }, thick[3] = { 0.1, 0.12, 0.15 };
    static const int count[4] = { 2, 7, 20, 40 }, hz[4] = { 30, 60, 120, 240 };
    static const double gap[4] = { 0.1e-3, 0.5e-3, 2e-3, 10e-3 };
    double depth, worst;
    int i, k, l;
    for (i = 0; i < 4; i++) {
        for (worst = 0, k = 0; k < 4; k++)
            for (l = 0; l < 4; l++) worst = fmax(worst, overlap_of_tiles(count[i], gap[k], hz[l], 0, 0));
        say(1e3 * worst, "mm", "tiles_%d_overlap", count[i]);
    }
    for (i = 0; i < 4; i++) { /* 5 mm aside, 1 degree aslant */
        for (worst = 0, l = 0; l < 4; l++) worst = fmax(worst, overlap_of_tiles(count[i], 2e-3, hz[l], 5e-3, 1));
        say(1e3 * worst, "mm", "tiles_%d_aslant_overlap", count[i]);
    }
    for (i = 0; i < 4; i++) {
        say(creep_of_tower(20, side[i], 1, 60, 60, &depth), "sides", "tower_20_side_%g_creep", side[i]);
        say(depth, "sides", "tower_20_side_%g_depth", side[i]);
    }
    for (i = 0; i < 2; i++) {
        say(creep_of_tower(2, 1, ratio[i], 60, 60, &depth), "sides", "tower_2_ratio_%g_creep", ratio[i]);
        say(depth, "sides", "tower_2_ratio_%g_depth", ratio[i]);
    }
    for (i = 0; i < 3; i++) say(sunk_arch(thick[i], 5), "m", "arch_%g_sunk", thick[i]);
}

/* Acceleration on a slope over g (sin a - mu cos a), where it slides; speed after 10 s where it should not. */
static void run_slopes(void)
{
    const double mu = 0.5, g = 9.81;
    double worst = 0, stuck = 0, a;
    for (a = 0.05; a < 1.4; a += 0.05) {
        fsi_rigid_desc d = rigid_desc(3, g);
        const double slide = g * (sin(a) - mu * cos(a));
        fsi_rigid *w;
        int id;
        if (fabs(slide) < 0.1) continue;
        d.friction = (fsi_real)mu;
        d.gravity = v3(g * sin(a), 0, -g * cos(a));
        w = make(&d);
        add_floor(w);
        id = add_shape(w, box_shape(0.4, 0.4, 0.1), v3(0, 0, 0.05));
        while (w->time < 2) ex_check(&app, fsi_rigid_step(w, (fsi_real)(1.0 / 240)));
        if (slide > 0) worst = fmax(worst, fabs((double)w->body[id]->velocity.x / (slide * w->time) - 1));
        else stuck = fmax(stuck, fabs((double)w->body[id]->pose.position.x));
        fsi_rigid_destroy(w);
    }
    say(worst, "1", "slope_acceleration_error");
    say(stuck, "m", "slope_stuck_moved");
}

static void run_bounces(void)
{
    double e;
    for (e = 0; e < 1; e += 0.25) {
        fsi_rigid_desc d = rigid_desc(3, 9.81);
        fsi_rigid *w;
        double top = 0;
        int id, down = 0;
        d.restitution = (fsi_real)e;
        w = make(&d);
        add_floor(w);
        id = add_shape(w, ball_shape(0.1), v3(0, 0, 1.1));
        while (w->time < 1.2) {
            ex_check(&app, fsi_rigid_step(w, (fsi_real)1e-3));
            if ((double)w->body[id]->velocity.z > 0.01) down = 1;
            if (down) top = fmax(top, height_of(w, id) - 0.1);
        }
        say(top - e * e, "m", "bounce_%g_off", e);
        fsi_rigid_destroy(w);
    }
}

/* A crate n spacings high, half as wide again, of half the water's density: how far off Archimedes, in spacings and in
   heights. */
static void draft_sph(int n)
{
    const double high = 0.12, width = 0.18, dx = high / n, wide = 0.64, deep = 0.2,
                 level = deep + width * high * 0.5 / wide;
    fsi_rigid_desc d = rigid_desc(2, 9.81);
    fsi_rigid *w = make(&d);
    fsi_sph_desc sd = make_desc(2, dx);
    fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
    fsi_rigid_shape box = box_shape(width, high, 0);
    fsi_sph *s;
    fsi_mesh *m;
    double mean = 0;
    int k, i, id;
    box.density = 500;
    id = add_shape(w, box, v3(wide / 2, level + 0.03, 0));
    sd.domain = box3(0, 0, 0, wide, 0.48, 0);
    sd.depth = (fsi_real)0.3;
    s = make_liquid(&sd);
    ex_check(&app, fsi_sph_fill_box(s, box3(0, 0, 0, wide, deep, 0), v3(0, 0, 0), NULL));
    ex_check(&app, fsi_rigid_tessellate(w, id, -1, 0, &m));
    o.mesh = m;
    o.body = fsi_rigid_body(w, id);
    ex_check(&app, fsi_sph_add_obstacle(s, &o, NULL));
    for (k = 0; k < 1000; k++) {
        for (i = 0; i < s->count && k < 700; i++) s->velocity[i] = fsi_v3_scale(s->velocity[i], (fsi_real)0.97);
        if (k < 700)
            ex_check(&app, fsi_rigid_set_velocity(w, id, fsi_v3_scale(w->body[id]->velocity, (fsi_real)0.97),
                                                  fsi_v3_scale(w->body[id]->angular_velocity, (fsi_real)0.97)));
        ex_check(&app, fsi_rigid_begin_step(w, (fsi_real)4e-3));
        ex_check(&app, fsi_sph_step(s, (fsi_real)4e-3));
        ex_check(&app, fsi_rigid_end_step(w, (fsi_real)4e-3));
        if (k >= 700) mean += height_of(w, id) / 300;
    }
    say((level - mean) / dx, "dx", "draft_sph_%ddx", n);
    say((level - mean) / high, "heights", "draft_sph_%ddx_of_height", n);
    say(fsi_sph_count_inside(s, NULL), "1", "draft_sph_%ddx_inside", n);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(m);
    fsi_rigid_destroy(w);
}

static void draft_levelset(int n)
{
    const double high = 0.12, width = 0.18, dx = high / n, wide = 0.64, deep = 0.2;
    fsi_rigid_desc d = rigid_desc(2, 9.81);
    fsi_rigid *w = make(&d);
    fsi_levelset_desc ld = fsi_levelset_default_desc();
    fsi_levelset_obstacle_desc o = fsi_levelset_default_obstacle_desc();
    fsi_rigid_shape box = box_shape(width, high, 0);
    fsi_levelset *s;
    fsi_mesh *m;
    double mean = 0, tank, level;
    int k, id;
    ld.context = &app.context;
    ld.dim = 2;
    ld.n[0] = (int)(wide / dx + 0.5);
    ld.n[1] = (int)(0.48 / dx + 0.5);
    ld.n[2] = 1;
    ld.dx = (fsi_real)dx;
    ld.gravity = v3(0, -9.81, 0);
    tank = ld.n[0] * dx; /* whole cells */
    level = deep + width * high * 0.5 / tank;
    box.density = 500;
    id = add_shape(w, box, v3(tank / 2, level + 0.03, 0));
    ex_check(&app, fsi_levelset_create(&s, &ld));
    ex_check(&app, fsi_levelset_fill_box(s, box3(0, 0, 0, tank, deep, 0), v3(0, 0, 0), NULL));
    ex_check(&app, fsi_rigid_tessellate(w, id, -1, 0, &m));
    o.mesh = m;
    o.body = fsi_rigid_body(w, id);
    ex_check(&app, fsi_levelset_add_obstacle(s, &o, NULL));
    for (k = 0; k < 800; k++) {
        if (k < 500)
            ex_check(&app, fsi_rigid_set_velocity(w, id, fsi_v3_scale(w->body[id]->velocity, (fsi_real)0.9),
                                                  fsi_v3_scale(w->body[id]->angular_velocity, (fsi_real)0.9)));
        ex_check(&app, fsi_rigid_begin_step(w, (fsi_real)4e-3));
        ex_check(&app, fsi_levelset_step(s, (fsi_real)4e-3));
        ex_check(&app, fsi_rigid_end_step(w, (fsi_real)4e-3));
        if (k >= 600) mean += height_of(w, id) / 200;
    }
    say((level - mean) / dx, "dx", "draft_levelset_%ddx", n);
    say((level - mean) / high, "heights", "draft_levelset_%ddx_of_height", n);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(m);
    fsi_rigid_destroy(w);
}

static void run_drafts(void)
{
    draft_sph(scaled(12));
    draft_sph(scaled(20));
    draft_levelset(scaled(12));
    draft_levelset(scaled(20));
}

int main(int argc, char **argv)
{
    const char *part = NULL;
    ex_init(&app, "validate_rigid", "Rigid bodies at full size.");
    app.res = 100;
    app.res_help = "per cent of the full resolution";
    ex_operand(&app, "part", &part, "turning, stack, piles, slopes, bounces or drafts; none: all");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (!part || !strcmp(part, "turning")) run_turning();
    if (!part || !strcmp(part, "stack")) run_stack();
    if (!part || !strcmp(part, "piles")) run_piles();
    if (!part || !strcmp(part, "slopes")) run_slopes();
    if (!part || !strcmp(part, "bounces")) run_bounces();
    if (!part || !strcmp(part, "drafts")) run_drafts();
    ex_pool_stop(&app.pool);
    return 0;
}
