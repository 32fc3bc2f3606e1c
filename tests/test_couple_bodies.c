/* test_couple_bodies.c - COUPLED and PRESCRIBED bodies that meet the shell, or shell and liquid, of fsi_couple.h.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_couple.h"
#include "kit/test_shell.h"
#include "kit/test_couple.h"

/* A square crate of sides 2 a, 2 b [cells] at (x, y), COUPLED, in the shell and, if asked, in the liquid. */
typedef struct crate {
    fsi_mesh *mesh;
    fsi_body body;
    int in_shell, in_liquid; /* ids; in_liquid -1: it is not in it */
} crate;

static void add_crate(pair *p, crate *c, double x, double y, double a, double b, double density, int wet)
{
    fsi_levelset_obstacle_desc d = fsi_levelset_default_obstacle_desc();
    fsi_mass_properties m;
    c->mesh = square(x, y, a, b);
    CHECK(fsi_mesh_mass(c->mesh, REAL(density), 0, &m) == FSI_OK);
    c->body = fsi_body_from_mass(&m);
    c->body.force = fsi_v3_scale(p->c.desc.gravity, c->body.mass);
    c->in_shell = add_mesh(p->solid, c->mesh, &c->body, 0);
    c->in_liquid = -1;
    d.mesh = c->mesh;
    d.body = &c->body;
    if (wet && !CHECK(fsi_levelset_add_obstacle(p->water, &d, &c->in_liquid) == FSI_OK))
        printf("   %s\n", p->context.error.message);
}

static void couple(pair *p)
{
    p->e.liquid = p->water;
    p->e.shell = p->solid;
    if (!CHECK(fsi_couple_create(&p->both, &p->e) == FSI_OK)) printf("%s\n", p->context.error.message), exit(1);
    p->least = 8;
}

/* What pins bear, upwards [N/m]: what holds them less what the liquid gives them. */
static double pins_bear(const pair *p)
{
    double sum = 0;
    int i;
    for (i = 0; i < p->solid->vertex_count; i++)
        if (p->solid->pinned[i]) sum += (double)(p->solid->pin_force[i].y - p->both->liquid_force[i].y);
    return sum;
}

/* A chain from wall to wall, pinned at its ends, with a pool and a crate on it: the pins bear all. */
static void rest_on_a_chain(double density, int wet, double dt, int steps, double *off, double *fastest)
{
    const int from = steps - steps / 4;
    double sum = 0, weight, level = 0;
    crate c;
    pair p;
    int k;
    pair_begin(&p, 32);
    p.l.surface_tension = 0;
    p.c.desc.contact = 1;
    p.c.desc.contact_range = REAL(0.3 * CELL);
    p.c.material[0].young = REAL(1e6);
    p.c.material[0].thickness = REAL(5e-4);
    p.c.material[0].damping_mass = REAL(50);
    pair_string(&p, 32, 0, 32, 10);
    pair_make_apart(&p);
    p.solid->pinned[0] = p.solid->pinned[32] = 1;
    add_crate(&p, &c, 16, 14.4, 5, 4, density, wet);
    if (wet) {
        fsi_box3 box;
        box.lo = v3(0, 10 * CELL, 0);
        box.hi = v3(32 * CELL, 24 * CELL, 0);
        CHECK(fsi_levelset_fill_box(p.water, box, v3(0, 0, 0), NULL) == FSI_OK);
    } else {
        pair_drop(&p, 6.1, 15, 3.3, 0, 0);
        pair_drop(&p, 26, 15, 3.3, 0, 0);
    }
    couple(&p);
    weight = 9.81 * (1000 * p.water->stats.volume + (double)c.body.mass);
    for (k = 0; k < 33; k++) weight += 9.81 * (double)p.solid->mass[k];
    *fastest = 0;
    for (k = 0; k < steps; k++) {
        if (!pair_step(&p, dt)) break;
        fsi_body_accept(&c.body);
        if (k < from) continue;
        sum += pins_bear(&p) / (steps - from);
        *fastest = fmax(*fastest, fmax(p.water->stats.max_speed, (double)fsi_v3_norm(c.body.velocity)));
        level += (double)c.body.pose.position.y / CELL / (steps - from);
    }
    *off = sum / weight - 1;
    printf("   density %g, %s: pins bear %.4f of the weight, fastest %.1e m/s, crate at %.2f, volume error %.1e, "
           "distance %.3f dx\n",
           density, wet ? "in the pool" : "beside drops", sum / weight, *fastest, level, p.error, p.least);
    pair_end(&p);
    fsi_mesh_destroy(c.mesh);
}

static void test_pins_bear_body_and_liquid(void)
{
    double off, fastest;
    rest_on_a_chain(3000, 0, 4e-3, 200, &off, &fastest);
    CHECK(fabs(off) <= 0.02);
    rest_on_a_chain(3000, 1, 4e-3, 200, &off, &fastest);
    CHECK(fabs(off) <= 0.02);
}

/* Kinetic energy of a body and of what its owner sees of liquid and shell [J/m]. */
static double energy(const pair *p, const fsi_body *b)
{
    const fsi_shell_stats *s = &p->solid->stats;
    return p->water->stats.kinetic_energy + s->kinetic_energy + s->elastic_energy + s->contact_energy +
           (double)b->mass / 2 * (double)fsi_v3_norm2(b->velocity) +
           (double)b->inertia.m[8] / 2 * (double)(b->angular_velocity.z * b->angular_velocity.z);
}

/* No gravity, no tension. A crate flies at an upright string, which a drop touches: wet 0: behind the string; 1: before
   it, where the crate, which is in the liquid too, meets it first. Shell and body have what the liquid gave them, and
   all three what the crate had. */
static void throw_a_crate(int wet, double density, double *off, double *loss, double *rise)
{
    const double dt = 1e-3;
    const int steps = 60;
    double before[2], given[2] = { 0, 0 }, most, kinetic, error = 0, contact = 0, slowest = 1;
    fsi_vec3 f, r;
    crate c;
    pair p;
    int k, i;
    pair_begin(&p, 48);
    p.l.gravity = p.c.desc.gravity = v3(0, 0, 0);
    p.l.surface_tension = 0;
    p.c.desc.contact = 1;
    p.c.desc.contact_range = REAL(0.3 * CELL);
    p.c.material[0].young = REAL(1e6);
    p.c.material[0].density = 2000;
    scene_rod(&p.c, 32, v3(24 * CELL, 8 * CELL, 0), v3(24 * CELL, 40 * CELL, 0));
    pair_make_apart(&p);
    add_crate(&p, &c, wet ? 8 : 18, 24.7, 3, 4, density, wet);
    pair_drop(&p, wet ? 17.3 : 30.6, 24.2, 5, 0, 0);
    couple(&p);
    c.body.velocity = v3(0.2, 0, 0);
    before[0] = (double)c.body.mass * 0.2;
    before[1] = 0;
    kinetic = most = energy(&p, &c.body);
    *rise = 0;
    for (k = 0; k < steps; k++) {
        double now;
        if (!pair_step(&p, dt)) break;
        fsi_body_accept(&c.body);
        for (i = 0; i < p.solid->vertex_count; i++) {
            given[0] += dt * (double)p.both->liquid_force[i].x;
            given[1] += dt * (double)p.both->liquid_force[i].y;
        }
        CHECK(fsi_shell_obstacle_reaction(p.solid, c.in_shell, &r, NULL) == FSI_OK);
        contact += dt * (double)r.x;
        f = v3(0, 0, 0);
        if (wet) CHECK(fsi_levelset_obstacle_reaction(p.water, c.in_liquid, &f, NULL) == FSI_OK);
        given[0] += dt * (double)f.x;
        given[1] += dt * (double)f.y;
        CHECK(fabs((double)(r.x + f.x) * dt - (double)c.body.impulse.x) <= TOL(1e-9, 1e-4) * before[0]);
        error = fmax(error, p.both->stats.momentum_error);
        now = energy(&p, &c.body);
        *rise = fmax(*rise, (now - most) / kinetic);
        most = now;
        slowest = fmin(slowest, (double)c.body.velocity.x / 0.2);
    }
    *off = 0;
    *off =
        fmax(*off, fabs(p.solid->stats.momentum[0] + (double)(c.body.mass * c.body.velocity.x) - before[0] - given[0]) /
                       before[0]);
    *off =
        fmax(*off, fabs(p.solid->stats.momentum[1] + (double)(c.body.mass * c.body.velocity.y) - given[1]) / before[0]);
    *loss = 1 - (p.both->stats.momentum[0] + (double)(c.body.mass * c.body.velocity.x)) / before[0];
    printf("   density %g, drop %s: shell and body off by %.1e, all three by %.4f, solves by %.1e; crate at %.2f of "
           "its speed, string gave it %.3f; energy rose by %.1e, is %.3f; volume error %.1e, distance %.3f dx\n",
           density, wet ? "before" : "behind", *off, *loss, error, (double)c.body.velocity.x / 0.2, contact / before[0],
           *rise, most / kinetic, p.error, p.least);
    CHECK(k == steps && slowest < 0.9 && error <= TOL(1e-6, 1e-3));
    pair_end(&p);
    fsi_mesh_destroy(c.mesh);
}

/* The liquid alone with such a body (fsi_levelset_step) loses 0.07 of the momentum and gains 1.3e-2 of the energy in a
   step of this. With the drop at 11 places from -0.3 to 0.7 cells, energy rises by 0.2 to 1.3e-2. */
static void test_momentum_of_liquid_shell_and_a_thrown_body(void)
{
    double off, loss, rise;
    int wet;
    for (wet = 0; wet < 2; wet++) {
        throw_a_crate(wet, 2000, &off, &loss, &rise);
        CHECK(off <= TOL(1e-6, 1e-3));
        CHECK(fabs(loss) <= 0.045);
        CHECK(rise <= 1.5e-2);
    }
}

/* A drop drives a crate, which is in both, at a string that is held at its ends, without gravity: they stop it. However
   light it is, no energy comes from nowhere. */
static void drive_a_crate(double density, double *off, double *rise, double *left)
{
    const double dt = 1e-3;
    double last = 0, first = 0, whole;
    crate c;
    pair p;
    int k, i;
    pair_begin(&p, 48);
    p.l.gravity = p.c.desc.gravity = v3(0, 0, 0);
    p.l.surface_tension = 0;
    p.c.desc.contact = 1;
    p.c.desc.contact_range = REAL(0.3 * CELL);
    p.c.material[0].young = REAL(1e6);
    p.c.material[0].density = 2000;
    scene_rod(&p.c, 32, v3(34 * CELL, 8 * CELL, 0), v3(34 * CELL, 40 * CELL, 0));
    pair_make_apart(&p);
    p.solid->pinned[0] = p.solid->pinned[32] = 1;
    add_crate(&p, &c, 30, 24.3, 3, 6, density, 1);
    pair_drop(&p, 19, 24.5, 6, 0.3, 0);
    couple(&p);
    whole = 0.3 * 1000 * p.water->stats.volume;
    *off = *rise = 0;
    for (k = 0; k < 100; k++) {
        const double before = p.solid->stats.momentum[0] + (double)(c.body.mass * c.body.velocity.x);
        double given = 0, now;
        fsi_vec3 f;
        if (!pair_step(&p, dt)) break;
        fsi_body_accept(&c.body);
        for (i = 0; i < p.solid->vertex_count; i++)
            given += dt * (double)(p.solid->pinned[i] ? p.solid->pin_force[i].x : p.both->liquid_force[i].x);
        CHECK(fsi_levelset_obstacle_reaction(p.water, c.in_liquid, &f, NULL) == FSI_OK);
        given += dt * (double)f.x;
        *off =
            fmax(*off,
                 fabs(p.solid->stats.momentum[0] + (double)(c.body.mass * c.body.velocity.x) - before - given) / whole);
        now = energy(&p, &c.body);
        if (k == 0) first = last = now;
        *rise = fmax(*rise, (now - last) / first);
        last = now;
    }
    *left = last / first;
    printf("   density %g: string and crate off by %.1e of the drop's momentum; energy rose by %.1e in a step, %.3f "
           "left; volume error %.1e, distance %.3f dx, %d substeps, %d Newton steps\n",
           density, *off, *rise, *left, p.error, p.least, p.substeps, p.newton);
    pair_end(&p);
    fsi_mesh_destroy(c.mesh);
}

static void test_a_light_body_between_liquid_and_shell(void)
{
    static const double density[3] = { 1000, 30, 1 };
    double off, rise, left;
    int k;
    for (k = 0; k < 3; k++) {
        drive_a_crate(density[k], &off, &rise, &left);
        CHECK(off <= TOL(1e-6, 1e-3));
        CHECK(rise <= 0.02);
        CHECK(left <= 0.5);
    }
}

/* A drop falls on a string pinned at its ends: what the pins bear, less the liquid's force on them, is what the
   string's momentum lacks. */
static void test_pin_forces_are_what_holds_pins_against_the_liquid(void)
{
    const double dt = 1e-3;
    double off = 0, most = 0, weight = 0;
    pair p;
    int k, i, a;
    pair_begin(&p, 32);
    pair_string(&p, 24, 4, 28, 10);
    pair_make(&p);
    p.solid->pinned[0] = p.solid->pinned[24] = 1;
    pair_drop(&p, 8.3, 16.2, 4.5, 0.1, -0.3);
    for (i = 0; i <= 24; i++) weight -= 9.81 * (double)p.solid->mass[i];
    for (k = 0; k < 60; k++) {
        /* what it will have */
        double sum[2] = { p.solid->stats.momentum[0], weight * dt + p.solid->stats.momentum[1] };
        pair_step(&p, dt);
        for (i = 0; i <= 24; i++) {
            const fsi_vec3 f = p.both->liquid_force[i], hold = fsi_v3_sub(p.solid->pin_force[i], f);
            for (a = 0; a < 2; a++) sum[a] += dt * (double)(a ? f.y : f.x);
            if (p.solid->pinned[i]) sum[0] += dt * (double)hold.x, sum[1] += dt * (double)hold.y;
            if (p.solid->pinned[i]) most = fmax(most, (double)fsi_v3_norm(f));
        }
        for (a = 0; a < 2; a++) off = fmax(off, fabs(p.solid->stats.momentum[a] - sum[a]));
    }
    printf("   off by %.1e of what the drop has; the liquid pushes a pin by %.2g N/m\n",
           off / (1000 * p.water->stats.volume * 0.3), most);
    CHECK(off <= TOL(1e-8, 1e-4) * 1000 * p.water->stats.volume * 0.3);
    CHECK(most > 0);
    pair_end(&p);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* A crate in both lies between a string, held at its ends, and a drop on top of it, all of which meet within a few
   steps. */
static void begin_pile(pair *p, crate *c, int counted)
{
    pair_begin(p, 24);
    if (counted) test_fail_allocator(&p->context, 0);
    p->c.desc.contact = 1;
    p->c.desc.contact_range = REAL(0.4 * CELL);
    pair_string(p, 16, 4, 20, 6);
    pair_make_apart(p);
    p->solid->pinned[0] = p->solid->pinned[16] = 1;
    add_crate(p, c, 12, 9.3, 3, 3, 800, 1);
    c->body.velocity = v3(0, -0.1, 0);
    pair_drop(p, 12, 16, 3.5, 0, -0.3);
    pair_drop(p, 6.2, 10.2, 2.5, 0, -0.3);
}

static void end_pile(pair *p, crate *c)
{
    pair_end(p);
    fsi_mesh_destroy(c->mesh);
}

static void go_on(pair *p, crate *c, int steps)
{
    int k;
    for (k = 0; k < steps; k++) if (pair_step(p, 1e-3)) fsi_body_accept(&c->body);
}

static void test_bodies_same_bits_for_any_threads(void)
{
    uint64_t hash[3] = { 0, 0, 0 };
    fsi_vec3 at[3];
    int n;
    for (n = 0; n < 3; n++) {
        crate c;
        pair p;
        begin_pile(&p, &c, 0);
        if (n > 0) test_threads(&p.context, n + 1, 1);
        couple(&p);
        go_on(&p, &c, TEST_SLOWED ? 4 : 25);
        CHECK(TEST_SLOWED || (p.both->stats.faces > 0 && p.solid->stats.contacts > 0));
        hash[n] = fsi_couple_hash(p.both);
        at[n] = c.body.pose.position;
        end_pile(&p, &c);
    }
    CHECK(hash[0] == hash[1] && hash[0] == hash[2]);
    CHECK(memcmp(&at[0], &at[1], sizeof at[0]) == 0 && memcmp(&at[0], &at[2], sizeof at[0]) == 0);
}

static void test_a_saved_state_with_a_body_goes_on_to_the_bit(void)
{
    const int steps = TEST_SLOWED ? 3 : 20;
    crate c, d;
    pair p, q;
    size_t size = 0;
    void *state;
    int k;
    begin_pile(&p, &c, 0);
    couple(&p);
    begin_pile(&q, &d, 0);
    couple(&q);
    for (k = 0; k < steps; k++) { /* the crate's owner may have it a bit aside of where the liquid had put it */
        go_on(&p, &c, 1);
        CHECK(fsi_couple_save(p.both, NULL, 0, &size) == FSI_OK);
        state = malloc(size);
        if (!state) abort();
        CHECK(fsi_couple_save(p.both, state, size, NULL) == FSI_OK);
        d.body = c.body;
        CHECK(fsi_couple_load(q.both, state, size) == FSI_OK);
        CHECK(fsi_couple_hash(q.both) == fsi_couple_hash(p.both));
        free(state);
    }
    for (k = 0; k < 5; k++) {
        CHECK(fsi_couple_hash(q.both) == fsi_couple_hash(p.both) &&
              memcmp(&c.body.pose, &d.body.pose, sizeof c.body.pose) == 0);
        go_on(&p, &c, 1);
        go_on(&q, &d, 1);
    }
    end_pile(&p, &c);
    end_pile(&q, &d);
}

/* A step that lacks memory changes nothing, the body neither, and gives the same bits when tried again. */
static void test_a_body_is_as_it_was_after_a_failing_allocation(void)
{
    const int steps = TEST_SLOWED ? 2 : 15;
    uint64_t want = 0;
    long fail, failed = 0;
    int done = 0, k;
    for (fail = 0; !done && fail < 2000; fail += TEST_SLOWED ? 9 : 2) {
        crate c;
        pair p;
        begin_pile(&p, &c, 1);
        couple(&p);
        test_fail_allocator(&p.context, fail);
        done = fail > 0;
        for (k = 0; k < steps; k++) {
            const uint64_t hash = fsi_couple_hash(p.both);
            const fsi_body was = c.body;
            const fsi_status status = fsi_couple_step(p.both, REAL(1e-3));
            if (status != FSI_OK) {
                done = 0;
                failed++;
                CHECK(status == FSI_ERROR_MEMORY && hash == fsi_couple_hash(p.both) &&
                      memcmp(&was, &c.body, sizeof was) == 0);
                test_fail_allocator(&p.context, 0);
                if (!CHECK(fsi_couple_step(p.both, REAL(1e-3)) == FSI_OK)) printf("   %s\n", p.context.error.message);
            }
            fsi_body_accept(&c.body);
        }
        if (fail == 0) want = fsi_couple_hash(p.both);
        if (!CHECK(fsi_couple_hash(p.both) == want)) printf("   after allocation %ld failed\n", fail);
        test_fail_allocator(&p.context, 0);
        end_pile(&p, &c);
    }
    printf("   %ld allocations failed\n", failed);
    CHECK(done && failed > 5);
}

/* A step of 0 s leaves a body where it is and gives it nothing; PAPER's walls do not give way to one that is COUPLED in
   both; bodies count in suggest_dt. */
static void test_calls_with_a_body(void)
{
    fsi_couple_desc d;
    fsi_body was;
    double dt;
    crate c;
    pair p;
    begin_pile(&p, &c, 0);
    couple(&p);
    go_on(&p, &c, 5);
    was = c.body;
    CHECK(fsi_couple_step(p.both, 0) == FSI_OK);
    CHECK(memcmp(&was.pose, &c.body.pose, sizeof was.pose) == 0 &&
          memcmp(&was.pose, &c.body.end, sizeof was.pose) == 0);
    CHECK(!(fsi_v3_norm(c.body.impulse) > 0) &&
          memcmp(&c.body.new_velocity, &c.body.velocity, sizeof was.velocity) == 0);

    c.body.velocity = v3(0, 5, 0);
    dt = (double)fsi_couple_suggest_dt(p.both);
    CHECK(dt > 0 && 5 * dt <= 0.71 * CELL);
    CHECK(fsi_couple_step(p.both, REAL(dt)) == FSI_OK && p.both->stats.substeps == 1);
    fsi_body_accept(&c.body);

    d = p.both->desc;
    d.correction = FSI_COUPLE_PAPER;
    CHECK(fsi_couple_set_desc(p.both, &d) == FSI_OK);
    CHECK(fsi_couple_step(p.both, REAL(1e-4)) == FSI_ERROR_ARGUMENT &&
          strstr(fsi_couple_error(p.both)->message, "COUPLED in liquid and shell"));
    d.correction = FSI_COUPLE_MOMENTUM;
    CHECK(fsi_couple_set_desc(p.both, &d) == FSI_OK);
    CHECK(fsi_couple_step(p.both, REAL(1e-4)) == FSI_OK);
    end_pile(&p, &c);
}

/* A PRESCRIBED block in both holds a string up, on which a drop lies, and stands in a drop of its own: its reaction is
   what both say, together. */
static void test_a_prescribed_body_has_the_reactions_of_both(void)
{
    fsi_levelset_obstacle_desc d = fsi_levelset_default_obstacle_desc();
    fsi_mesh *block = square(12, 5, 3, 3);
    fsi_body body = fsi_default_body();
    fsi_vec3 f[2], t[2];
    double liquid = 0, shell = 0;
    int k, id[2];
    pair p;
    body.pose.position = body.end.position = v3(12 * CELL, 5 * CELL, 0);
    pair_begin(&p, 24);
    p.c.desc.contact = 1;
    p.c.desc.contact_range = REAL(0.4 * CELL);
    pair_string(&p, 16, 4, 20, 8.6);
    pair_make_apart(&p);
    p.solid->pinned[0] = p.solid->pinned[16] = 1;
    id[0] = add_mesh(p.solid, block, &body, 0);
    d.mesh = block;
    d.body = &body;
    CHECK(fsi_levelset_add_obstacle(p.water, &d, &id[1]) == FSI_OK);
    pair_drop(&p, 11, 14.2, 3.5, 0, -0.3);
    pair_drop(&p, 6, 3.5, 2.5, 0.3, 0);
    couple(&p);
    for (k = 0; k < 40; k++) {
        body.end.position.x = body.pose.position.x + REAL(0.02 * CELL);
        if (!pair_step(&p, 1e-3)) break;
        CHECK(fsi_shell_obstacle_reaction(p.solid, id[0], &f[0], &t[0]) == FSI_OK);
        CHECK(fsi_levelset_obstacle_reaction(p.water, id[1], &f[1], &t[1]) == FSI_OK);
        liquid = fmax(liquid, (double)fsi_v3_norm(f[1]));
        shell = fmax(shell, (double)fsi_v3_norm(f[0]));
        CHECK((double)fsi_v3_norm(fsi_v3_sub(body.reaction_force, fsi_v3_add(f[0], f[1]))) <=
              TOL(1e-12, 1e-5) * (1 + liquid + shell));
        CHECK((double)fsi_v3_norm(fsi_v3_sub(body.impulse, fsi_v3_scale(body.reaction_force, REAL(1e-3)))) <=
              TOL(1e-14, 1e-7));
        body.pose = body.end;
    }
    printf("   at most %.2g N/m of the liquid, %.2g of the string\n", liquid, shell);
    CHECK(liquid > 0.05 && shell > 0.05);
    pair_end(&p);
    fsi_mesh_destroy(block);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN_PHYSICS(test_pins_bear_body_and_liquid);
    RUN_PHYSICS(test_momentum_of_liquid_shell_and_a_thrown_body);
    RUN_PHYSICS(test_a_light_body_between_liquid_and_shell);
    RUN(test_pin_forces_are_what_holds_pins_against_the_liquid);
    RUN(test_a_prescribed_body_has_the_reactions_of_both);
    RUN(test_bodies_same_bits_for_any_threads);
    RUN(test_a_saved_state_with_a_body_goes_on_to_the_bit);
    RUN(test_a_body_is_as_it_was_after_a_failing_allocation);
    RUN(test_calls_with_a_body);
    return TEST_END();
}
