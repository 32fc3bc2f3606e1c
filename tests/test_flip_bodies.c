/* test_flip_bodies.c - elastic bodies in the liquid of fsi_flip.h: rest, draft, flight, added mass, liquid that stays
   out of them; calls, memory that fails, states, threads. SPDX-License-Identifier: MIT */
#include "kit/flip_pools.h"

/* ---- rest -------------------------------------------------------------------------------------------------------- */

/* A body of the liquid's density takes the place of the liquid that would be there, on the same lattice: nothing
   moves. */
static void check_rest(int dim, int handles, int time_order, double dt)
{
    pool p = pool_of(dim, dim == 2 ? 16 : 8);
    block b = block_make(4, dim == 2 ? 4 : 3, dim == 2 ? 0 : 3, dim == 2 ? 0.0625 : 0.125);
    double most = 0, scale, moved;
    const double level = 0.75;
    int step, id;
    p.w.body.handles = handles;
    p.w.desc.time_order = time_order;
    p.d.volume_rate = 0;
    pool_begin(&p);
    id = pool_add(&p, &b, dim == 2 ? 0.375 : 0.25, 0.25);
    if (dim == 3) CHECK(fsi_elastic_reset_body(p.w.s, id, v3(0.25, 0.25, 0.25), fsi_quat_identity(), v3(0, 0, 0),
        v3(0, 0, 0)) == FSI_OK);
    pool_immerse(&p);
    pool_fill(&p, level);
    moved = pool_height(&p, 0);
    scale = 1000 * 9.81 * level * level;
    for (step = 0; step * dt < (dim == 2 ? 5 : 1); step++) {
        if (!step_ok(p.s, dt)) break;
        most = fmax(most, (p.s->stats.kinetic_energy + p.w.s->bodies[0].stats.kinetic_energy) / scale);
    }
    moved = fabs(pool_height(&p, 0) - moved);
    printf("      %dD, %d handles, order %d, dt %.4f: energy %.2g of rho g H V, moved %.2g dx, reaction %.5f of its "
        "weight\n", dim, handles, time_order, dt, most, moved / (double)p.d.dx, pool_lift(&p, id));
    CHECK(most < TOL(1e-11, 1e-7));
    CHECK(moved < 1e-3 * (double)p.d.dx);
    CHECK_NEAR(pool_lift(&p, id), 1, 0.02);
    pool_end(&p);
    block_free(&b);
}

static void test_a_body_of_the_liquids_density_rests(void)
{
    check_rest(2, 0, 2, 1.0 / 60);
    check_rest(2, 4, 2, 1.0 / 24);
    if (TEST_SLOWED) return;
    check_rest(2, 4, 1, 1.0 / 240);
    check_rest(3, 0, 2, 1.0 / 60);
    check_rest(3, 4, 1, 1.0 / 60);
}

/* The same with all defaults, where density is corrected. */
static void test_a_body_of_the_liquids_density_stays_in_place(void)
{
    pool p = pool_of(2, 16);
    block b = block_make(4, 4, 0, 0.0625);
    double h, x;
    int id;
    pool_begin(&p);
    id = pool_add(&p, &b, 0.37, 0.23);
    pool_immerse(&p);
    pool_fill(&p, 0.75);
    x = (double)p.w.s->bodies[0].center.x;
    h = pool_height(&p, 0);
    pool_run(&p, 1.0 / 60, 300);
    x = ((double)p.w.s->bodies[0].center.x - x) / (double)p.d.dx;
    h = (pool_height(&p, 0) - h) / (double)p.d.dx;
    printf("      after 5 s: moved by %.2f, %.2f dx; reaction %.4f of its weight\n", x, h, pool_lift(&p, id));
    CHECK(fabs(x) < 2 && fabs(h) < 2);
    pool_end(&p);
    block_free(&b);
}

/* A raft of density 540 over most of a tank: its draft is 0.54 of its height. */
static void test_a_light_raft_floats(void)
{
    int k, wet;
    for (k = 0; k < 2; k++) {
        double lift;
        const double draft = raft_draft(24, 540, 8 * k, &lift, &wet);
        printf("      %d handles: draft %.3f of its height, reaction %.4f of its weight, %d particles in it\n", 8 * k,
            draft, lift, wet);
        CHECK_NEAR(draft, 0.54, 0.03);
        CHECK_NEAR(lift, 1, 0.02);
        CHECK(wet == 0);
    }
}

/* It sinks, and lies on the floor of the box. */
static void test_a_heavy_body_lies_on_the_floor(void)
{
    pool p = pool_of(2, 16);
    block b = block_make(4, 4, 0, 0.0625);
    double low = 1;
    int id, step, wet = 0;
    p.w.material.density = 1850;
    p.w.material.young = (fsi_real)1e6;
    pool_begin(&p);
    id = pool_add(&p, &b, 0.375, 0.4);
    pool_immerse(&p);
    pool_fill(&p, 0.8);
    for (step = 0; step < 240; step++) {
        if (!step_ok(p.s, 1.0 / 60)) break;
        low = fmin(low, (double)fsi_elastic_surface(p.w.s, id)->box.lo.y);
        if (step % 10 == 9) wet += count_wet(&p, 0);
    }
    printf("      lowest point %.3f dx, at the end %.3f, centre at %.3f m, speed %.3g m/s; lift %.4f of its weight; %d "
        "times a particle in it\n", low / (double)p.d.dx, (double)fsi_elastic_surface(p.w.s, id)->box.lo.y
        / (double)p.d.dx, pool_height(&p, 0), (double)fsi_v3_norm(p.w.s->bodies[0].velocity), pool_lift(&p, id), wet);
    CHECK(low > -0.25 * (double)p.d.dx); /* in the impact */
    CHECK((double)fsi_elastic_surface(p.w.s, id)->box.lo.y > -0.01 * (double)p.d.dx);
    CHECK_NEAR(pool_height(&p, 0), 0.125, 0.25 * (double)p.d.dx);
    CHECK((double)fsi_v3_norm(p.w.s->bodies[0].velocity) < 0.02);
    CHECK(wet == 0);
    pool_end(&p);
    block_free(&b);
}

/* Holds the vertices of a block where they are: all, or those at the sides x = 0 and 1. */
static void hold(pool *p, int id, const block *b, int all, int *pin, int *pins)
{
    int j;
    for (j = 0; j < b->vertices; j++) {
        fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
        if (!all && (double)b->x[j].x > 1e-6 && (double)b->x[j].x < 1 - 1e-6) continue;
        a.body = id;
        a.vertex = j;
        a.target = fsi_v3_add(b->x[j], p->w.body.position);
        CHECK(fsi_elastic_attach(p->w.s, &a, pin ? &pin[(*pins)++] : NULL) == FSI_OK);
    }
}

/* Held by pins, whatever its density, a body is carried by the weight of the liquid that it displaces. */
static void test_archimedes_holds_for_pinned_bodies(void)
{
    static const double density[3] = { 300, 1000, 3000 };
    int dim, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 3; k += dim - 1) {
            pool p = pool_of(dim, dim == 2 ? 16 : 8);
            block b = block_make(4, dim == 2 ? 4 : 3, dim == 2 ? 0 : 3, dim == 2 ? 0.0625 : 0.125);
            double lift = 0;
            int id, step;
            p.w.material.density = (fsi_real)density[k];
            p.w.material.young = (fsi_real)1e6;
            pool_begin(&p);
            id = pool_add(&p, &b, 0.25, 0.25);
            hold(&p, id, &b, 1, NULL, NULL);
            pool_immerse(&p);
            pool_fill(&p, 0.75);
            for (step = 0; step < 90; step++) {
                if (!step_ok(p.s, 1.0 / 60)) break;
                if (step < 60) continue;
                lift += pool_lift(&p, id) / 30;
            }
            printf("      %dD, density %g: reaction %.4f of the displaced weight, energy %.2g J\n", dim,
                density[k], lift * density[k] / 1000, p.s->stats.kinetic_energy);
            CHECK_NEAR(lift * density[k] / 1000, 1, 0.03);
            pool_end(&p);
            block_free(&b);
        }
}

/* A plate across the box, held at its sides, bears liquid of many times its weight; nothing of it passes, and it comes
   to rest. */
static void check_load(int dim, double density)
{
    pool p = pool_of(dim, dim == 2 ? 16 : 8);
    const int n = p.d.n[0];
    block b = dim == 2 ? block_make(n, 2, 0, 1.0 / n) : block_make(n, n, 2, 1.0 / n);
    double bears = 0, weight, below = 0, most;
    int id, j, step;
    p.w.material.density = (fsi_real)density;
    p.w.material.young = (fsi_real)1e7;
    pool_begin(&p);
    p.w.body.position = in_room(dim, 0, 0.5, 0);
    id = world_add(&p.w, &b);
    for (j = 0; j < b.vertices; j++) {
        const double x = (double)b.x[j].x, y = dim == 3 ? (double)b.x[j].y : 0;
        fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
        if (x > 1e-6 && x < 1 - 1e-6 && (dim == 2 || (y > 1e-6 && y < 1 - 1e-6))) continue;
        a.body = id;
        a.vertex = j;
        a.target = fsi_v3_add(b.x[j], p.w.body.position);
        CHECK(fsi_elastic_attach(p.w.s, &a, NULL) == FSI_OK);
    }
    pool_immerse(&p);
    fill(p.s, room(dim, 0, 0.5 + 2.0 / n, 1, 0.85, 1), v3(0, 0, 0));
    weight = p.s->count * (double)p.s->particle_mass * 9.81;
    for (step = 0; step < 120; step++) {
        fsi_vec3 force = v3(0, 0, 0);
        if (!step_ok(p.s, 1.0 / 60)) break;
        CHECK(fsi_flip_body_reaction(p.s, id, &force, NULL) == FSI_OK);
        if (step >= 60) bears -= height_of(dim, force) / weight / 60;
    }
    for (j = 0; j < p.s->count; j++) below += height_of(dim, p.s->position[j]) < 0.5;
    most = p.s->stats.kinetic_energy / (weight * 0.3);
    printf("      %dD, %.0f times its weight: bears %.3f of it, kinetic energy %.2g of rho g H V, %g particles below\n",
        dim, weight / (9.81 * p.w.s->bodies[0].mass), bears, most, below);
    CHECK_NEAR(bears, 1, 0.05);
    CHECK(most < 3e-5 && !(below > 0));
    CHECK(p.s->stats.coupling_rest < 0.05 && p.s->stats.coupling_iters >= 1 && p.s->stats.coupling_iters <= 9);
    pool_end(&p);
    block_free(&b);
}

static void test_a_light_plate_that_is_held_bears_liquid(void)
{
    check_load(2, 100);
    check_load(2, 300);
    check_load(2, 1000);
    check_load(3, 200);
}

/* Far above a loaded mat, for which bodies and pressure are solved several times, a drop falls as if there were none. */
static void test_a_drop_falls_freely_above_a_loaded_mat(void)
{
    pool p = pool_of(2, 32);
    block b = block_make(16, 2, 0, 1.0 / 16);
    const double dt = 1.0 / 60;
    double off = 0, way = 0, speed = -3;
    int i, k, first, step, rounds = 0;
    fsi_vec3 *x;
    p.d.n[1] = 64;
    p.w.material.density = 500;
    p.w.material.young = (fsi_real)1e5;
    pool_begin(&p);
    p.w.body.position = v3(0, 0.3, 0);
    hold(&p, world_add(&p.w, &b), &b, 0, NULL, NULL);
    pool_immerse(&p);
    fill(p.s, room(2, 0, 0.425, 1, 0.6, 1), v3(0, 0, 0));
    first = p.s->count;
    fill(p.s, room(2, 0.4, 1.6, 0.6, 1.8, 1), v3(0, speed, 0));
    x = (fsi_vec3 *)malloc((size_t)p.s->count * sizeof *x);
    memcpy(x, p.s->position, (size_t)p.s->count * sizeof *x);
    for (step = 0; step < 10; step++) {
        if (!step_ok(p.s, dt)) break;
        rounds += p.s->stats.coupling_iters - p.s->stats.substeps;
        for (k = 0; k < p.s->stats.substeps; k++) {
            speed -= 9.81 * dt / p.s->stats.substeps;
            way += speed * dt / p.s->stats.substeps;
        }
    }
    for (i = first; i < p.s->count; i++) off = fmax(off, fabs((double)p.s->position[i].y - (double)x[i].y - way));
    printf("      %d further solves for the mat; after %.2f m the drop is off by %.2g dx\n", rounds, -way,
        off / (double)p.d.dx);
    CHECK(rounds > 0 && off < TOL(1e-4, 1e-3) * (double)p.d.dx);
    free(x);
    pool_end(&p);
    block_free(&b);
}

/* Without the liquid that bore it, and without pins, a body falls at once. */
static void test_a_body_whose_liquid_is_gone_falls(void)
{
    pool p = pool_of(2, 16);
    block b = block_make(4, 4, 0, 0.0625);
    int pin[25], pins = 0, id, k;
    unsigned char gone[1024];
    double was;
    p.w.material.density = 300;
    pool_begin(&p);
    id = pool_add(&p, &b, 0.375, 0.4);
    hold(&p, id, &b, 1, pin, &pins);
    pool_immerse(&p);
    pool_fill(&p, 0.8);
    pool_run(&p, 1.0 / 60, 30);
    memset(gone, 1, sizeof gone);
    if (!CHECK(p.s->count <= (int)sizeof gone) || !CHECK(fsi_flip_remove_particles(p.s, gone) == FSI_OK)) return;
    for (k = 0; k < pins; k++) CHECK(fsi_elastic_detach(p.w.s, pin[k]) == FSI_OK);
    was = (double)p.w.s->bodies[0].velocity.y;
    pool_run(&p, 1.0 / 60, 4);
    CHECK_NEAR(((double)p.w.s->bodies[0].velocity.y - was) * 15, -9.81, 0.01);
    pool_end(&p);
    block_free(&b);
}

/* ---- flight ------------------------------------------------------------------------------------------------------ */

/* All vertices and particles fall as one, by whatever steps. */
static void check_fall(int dim, int handles, int time_order, int wet)
{
    pool p = pool_of(dim, dim == 2 ? 16 : 10);
    block b = block_make(3, 3, dim == 2 ? 0 : 3, 0.1);
    fsi_vec3 x[64], v[64];
    double worst = 0, speed;
    int i, id;
    p.w.body.handles = handles;
    p.w.desc.time_order = time_order;
    p.w.material.density = 700;
    p.d.volume_rate = 0;
    pool_begin(&p);
    id = pool_add(&p, &b, 0.1, 0.6);
    pool_immerse(&p);
    if (wet) CHECK(fsi_flip_fill_sphere(p.s, in_room(dim, 0.75, 0.75, 0.5), (fsi_real)0.12, v3(0, 0, 0), NULL)
        == FSI_OK);
    pool_run(&p, 1.0 / 60, 5);
    pool_run(&p, 1.0 / 40, 5);
    speed = 9.81 * p.s->time;
    CHECK(fsi_elastic_vertices(p.w.s, id, x, v) == FSI_OK && b.vertices <= 64);
    for (i = 0; i < b.vertices; i++) worst = fmax(worst, (double)fsi_v3_norm(fsi_v3_sub(v[i],
        in_room(dim, 0, -speed, 0))));
    for (i = 0; i < p.s->count; i++) worst = fmax(worst, (double)fsi_v3_norm(fsi_v3_sub(p.s->velocity[i],
        in_room(dim, 0, -speed, 0))));
    printf("      %dD, %d handles, order %d, %d particles of liquid: off by %.2g of %.3g m/s\n", dim, handles,
        time_order, p.s->count, worst / speed, speed);
    CHECK(worst <= TOL(1e-6, 1e-4) * speed);
    CHECK_NEAR(p.w.s->time, p.s->time, 1e-9);
    CHECK((p.s->count > 0) == (wet != 0));
    pool_end(&p);
    block_free(&b);
}

static void test_bodies_and_drops_fall_alike(void)
{
    check_fall(2, 0, 2, 1);
    check_fall(2, 4, 2, 0);
    check_fall(3, 4, 2, 1);
}

/* Sum of m v of bodies and liquid, and of m |v| of the liquid. */
static void total(const pool *p, fsi_vec3 *sum, double *size)
{
    int i;
    *size = 0;
    *sum = v3(0, 0, 0);
    for (i = 0; i < p->s->count; i++) {
        const double m = (double)p->s->mass[i] * (double)p->s->particle_mass;
        *sum = fsi_v3_madd(*sum, (fsi_real)m, p->s->velocity[i]);
        *size += m * (double)fsi_v3_norm(p->s->velocity[i]);
    }
    for (i = 0; i < p->w.s->body_count; i++)
        *sum = fsi_v3_madd(*sum, (fsi_real)p->w.s->bodies[i].mass, p->w.s->bodies[i].velocity);
}

/* A body turns in flight, once in a second, alone or beside a drop; the first step makes its mass that of its
   particles. */
static void test_a_body_that_turns_keeps_its_angular_momentum(void)
{
    static const struct { int dim, handles; double dt, lost; } turn[5] = { { 2, 0, 1.0 / 240, 2e-3 },
        { 2, 6, 1.0 / 240, 5e-3 }, { 2, 0, 1.0 / 60, 0.015 }, { 3, 0, 1.0 / 240, 1e-3 }, { 3, 6, 1.0 / 240, 1e-3 } };
    int k;
    for (k = 0; k < (TEST_SLOWED ? 1 : 5); k++) {
        const int dim = turn[k].dim;
        pool p = pool_of(dim, dim == 2 ? 20 : 12);
        block b = block_make(dim == 2 ? 8 : 4, 4, dim == 2 ? 0 : 4, dim == 2 ? 0.05 : 1.0 / 12);
        double spin;
        int step;
        p.w.desc.gravity = p.d.gravity = v3(0, 0, 0);
        p.w.body.angular_velocity = v3(0, 0, 2 * PI);
        p.w.body.handles = turn[k].handles;
        pool_begin(&p);
        pool_add(&p, &b, 0.5 - 0.5 * b.nx * b.a, 0.5 - 0.5 * (dim == 2 ? b.ny : b.nz) * b.a);
        pool_immerse(&p);
        if (k > 0) fill(p.s, room(dim, 0, 0, 0.1, 0.1, 0.1), v3(0, 0, 0));
        step_ok(p.s, 1e-6);
        spin = (double)p.w.s->bodies[0].spin.z;
        for (step = 0; step * turn[k].dt < 1; step++) if (!step_ok(p.s, turn[k].dt)) break;
        printf("      %dD, %d handles, dt %.4f: angular momentum %+.2g over a turn\n", dim, p.w.body.handles,
            turn[k].dt, (double)p.w.s->bodies[0].spin.z / spin - 1);
        CHECK_NEAR((double)p.w.s->bodies[0].spin.z / spin, 1, turn[k].lost);
        pool_end(&p);
        block_free(&b);
    }
}

/* Can liquid reach the sides of the box, of 1 m, in the next step? */
static int is_at_walls(const pool *p)
{
    int i, a;
    for (i = 0; i < p->s->count; i++) for (a = 0; a < p->s->desc.dim; a++) {
        const double x = a == 0 ? (double)p->s->position[i].x : a == 1 ? (double)p->s->position[i].y
            : (double)p->s->position[i].z;
        if (x < 0.1 || x > 0.9) return 1;
    }
    return 0;
}

/* A drop and a body meet in flight, without gravity: their momentum is kept. BDF2 gives two thirds of an impulse at
   once, the rest in the steps after: it is counted when they have come to rest beside each other. */
static void test_a_drop_that_meets_a_body_keeps_momentum(void)
{
    int k;
    for (k = 0; k < 6; k++) {
        const int dim = k < 3 ? 2 : 3, order = k % 3 == 2 ? 2 : 1;
        pool p = pool_of(dim, dim == 2 ? 24 : 12);
        block b = block_make(4, 4, dim == 2 ? 0 : 4, dim == 2 ? 1.0 / 16 : 1.0 / 12);
        double size, least, worst = 0;
        fsi_vec3 p0, p1;
        int step;
        p.w.desc.gravity = p.d.gravity = v3(0, 0, 0);
        p.w.body.velocity = v3(-1, 0, 0);
        p.w.body.handles = k % 3 == 1 ? 4 : 0;
        p.w.desc.time_order = order;
        p.w.material.density = 600;
        pool_begin(&p);
        pool_add(&p, &b, 0.6, dim == 2 ? 0.45 : 0.35);
        pool_immerse(&p);
        CHECK(fsi_flip_fill_sphere(p.s, in_room(dim, 0.3, 0.5, 0.5), (fsi_real)0.15, v3(1, 0, 0), NULL) == FSI_OK);
        total(&p, &p0, &size);
        for (step = 0; step < 15 && !is_at_walls(&p); step++) {
            if (!step_ok(p.s, 1.0 / 60)) break;
            total(&p, &p1, &least);
            worst = fmax(worst, (double)fsi_v3_norm(fsi_v3_sub(p1, p0)));
        }
        printf("      %dD, %d handles, order %d: momentum off by at most %.2g, at the end %.2g; body %.3f m/s\n", dim,
            p.w.body.handles, order, worst / size, (double)fsi_v3_norm(fsi_v3_sub(p1, p0)) / size,
            (double)p.w.s->bodies[0].velocity.x);
        CHECK(step > 10 && count_wet(&p, 0) == 0);
        CHECK(worst <= TOL(1e-10, 1e-4) * size);
        CHECK((double)p.w.s->bodies[0].velocity.x > -0.9);
        pool_end(&p);
        block_free(&b);
    }
}

/* ---- added mass -------------------------------------------------------------------------------------------------- */

/* What the liquid in a full tank adds to the mass of a rectangle in it [kg/m]: the impulse that stops it at once from
   1 m/s, by obstacles of this header, not by immersed bodies. */
static double added_mass(int n, fsi_box3 place)
{
    fsi_flip_desc d = make_desc(2, n);
    fsi_mesh *m;
    fsi_body body = fsi_default_body();
    fsi_vec3 force;
    fsi_flip *s;
    int id;
    const double dt = 1e-6;
    d.gravity = v3(0, 0, 0);
    s = make_flip(&d);
    shape_begin(2);
    shape_box(place);
    m = shape_make(FSI_MESH_CLOSED, 0);
    body.mass = 1;
    body.velocity = v3(1, 0, 0);
    body.end.position = fsi_v3_scale(body.velocity, (fsi_real)dt);
    id = add_solid(s, m, &body);
    fill(s, box3(0, 0, 0, 1, 1, 0), v3(0, 0, 0));
    step_ok(s, dt);
    CHECK(fsi_flip_obstacle_reaction(s, id, &force, NULL) == FSI_OK);
    fsi_flip_destroy(s);
    fsi_mesh_destroy(m);
    return -dt * (double)force.x;
}

/* Angular frequency of a body on springs in a full tank without gravity, from the times at which its centre passes the
   place of rest. w.desc.time_order 2. */
static double swing(double density, double k, double dt, int handles, double *drift)
{
    pool p = pool_of(2, 16);
    block b = block_make(4, 4, 0, 0.0625);
    double first = 0, last = 0, was, x0, now = 0;
    int id, step, j, passes = 0;
    p.w.desc.gravity = p.d.gravity = v3(0, 0, 0);
    p.w.material.density = (fsi_real)density;
    p.w.material.young = (fsi_real)1e7;
    p.w.body.handles = handles;
    p.w.body.velocity = v3(0.05, 0, 0);
    p.w.material.damping = 0;
    pool_begin(&p);
    id = pool_add(&p, &b, 0.375, 0.375);
    for (j = 0; j < b.vertices; j++) {
        fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
        a.body = id;
        a.vertex = j;
        a.target = fsi_v3_add(b.x[j], p.w.body.position);
        a.stiffness = (fsi_real)(k / b.vertices);
        CHECK(fsi_elastic_attach(p.w.s, &a, NULL) == FSI_OK);
    }
    pool_immerse(&p);
    pool_fill(&p, 1);
    x0 = was = (double)p.w.s->bodies[0].center.x;
    for (step = 1; passes < 5 && step < 4000; step++) {
        if (!step_ok(p.s, dt)) break;
        now = (double)p.w.s->bodies[0].center.x - x0;
        if (step > 1 && (was < 0) != (now < 0)) {
            last = (step - now / (now - was)) * dt;
            if (passes++ == 0) first = last;
        }
        was = now;
    }
    *drift = fabs((double)p.w.s->bodies[0].center.y - 0.5) / (double)p.d.dx;
    pool_end(&p);
    block_free(&b);
    return passes > 1 ? PI * (passes - 1) / (last - first) : 0;
}

/* The frequency is that of the body's mass and the added one. */
static void test_a_body_on_springs_swings_with_its_added_mass(void)
{
    static const double density[4] = { 200, 540, 1000, 3000 };
    const double added = added_mass(64, box3(0.375, 0.375, 0, 0.625, 0.625, 0));
    int k, j;
    printf("      added mass of the square: %.4f of the displaced; with 32 cells %.4f\n", added / 62.5,
        added_mass(32, box3(0.375, 0.375, 0, 0.625, 0.625, 0)) / 62.5);
    for (k = 0; k < 4; k++)
        for (j = 0; j < 2; j++) {
            const double mass = 0.0625 * density[k], dt = 1.0 / 60, rate = (j == 0 ? 0.1 : 0.3) / dt;
            double drift;
            const double got = swing(density[k], rate * rate * (mass + added), dt, j == 0 ? 0 : 4, &drift);
            printf("      density %g, mass over mass with the liquid's %.2f, omega h %.1f: frequency %.3f of theory\n",
                density[k], mass / (mass + added), rate * dt, got / rate);
            CHECK(drift < 0.5);
            CHECK_NEAR(got / rate, 1, 0.05);
        }
}

/* A clamped beam under water swings with its added mass, four times its own at the liquid's density. */
static void test_a_clamped_beam_swings_with_its_added_mass(void)
{
    static const struct { double density, rate; int substeps; double off; } c[4] =
        { { 1000, 0.1, 1, 0.08 }, { 3000, 0.1, 1, 0.08 }, { 3000, 0.3, 2, 0.08 }, { 3000, 0.3, 1, 0.08 } };
    const double added = beam_added_mass(40), dt = 1.0 / 60;
    int k;
    for (k = 0; k < (TEST_SLOWED ? 1 : 4); k++) {
        const double own = c[k].density * 0.1 * 0.4 / 4, part = own / (own + added), want = c[k].rate / dt;
        const double young = 1e6 * pow(want / sqrt(part) / beam_swing(0, 40, c[k].density, 1e6, 2e-3, 1), 2);
        const double got = beam_swing(1, 40, c[k].density, young, dt, c[k].substeps);
        printf("      beam of density %g, mass over mass with the liquid's %.2f, omega h %.2f: frequency %.3f of "
            "theory\n", c[k].density, part, c[k].rate / c[k].substeps, got / want);
        CHECK_NEAR(got / want, 1, c[k].off);
    }
}

/* ---- liquid stays out -------------------------------------------------------------------------------------------- */

/* A body meets a pool at 5 m/s. */
static void check_plunge(int dim, int handles, int time_order)
{
    pool p = pool_of(dim, dim == 2 ? 24 : 12);
    block b = block_make(4, dim == 2 ? 4 : 3, dim == 2 ? 0 : 3, dim == 2 ? 1.0 / 16 : 1.0 / 12);
    int wet;
    p.w.body.handles = handles;
    p.w.desc.time_order = time_order;
    p.w.body.velocity = in_room(dim, 0, -5, 0);
    p.w.body.angular_velocity = dim == 2 ? v3(0, 0, 3) : v3(1, 3, 0);
    p.w.material.density = 800;
    pool_begin(&p);
    pool_add(&p, &b, 0.4, 0.6);
    pool_immerse(&p);
    pool_fill(&p, 0.5);
    wet = run_wet(&p, 1.0 / 60, dim == 2 ? 60 : 30);
    printf("      %dD, %d handles, order %d: at most %d of %d particles in it, centre at %.3f m, volume %.3f of that "
        "at rest\n", dim, handles, time_order, wet, p.s->count, pool_height(&p, 0),
        p.w.s->bodies[0].stats.volume_ratio);
    CHECK(wet <= (dim == 2 ? 0 : 0.001 * p.s->count)); /* 3D: between body and floor */
    pool_end(&p);
    block_free(&b);
}

static void test_no_liquid_enters_a_body_that_plunges(void)
{
    check_plunge(2, 0, 2);
    if (TEST_SLOWED) return;
    check_plunge(2, 6, 2);
    check_plunge(3, 4, 2);
}

/* Pinned at all corners of its middle column, a body is driven through a pool at 20 m/s, and stopped at once. */
static void test_no_liquid_enters_a_body_that_is_driven(void)
{
    const double steps[2] = { 1.0 / 60, 1.0 / 240 };
    int k;
    for (k = 0; k < 2; k++) {
        pool p = pool_of(2, 24);
        block b = block_make(4, 4, 0, 1.0 / 24);
        fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
        const double dt = steps[k];
        int pin[5], j, step, wet = 0;
        p.w.material.young = (fsi_real)2e6;
        pool_begin(&p);
        a.body = pool_add(&p, &b, 0.1, 0.25);
        for (j = 0; j < 5; j++) {
            a.vertex = block_at(&b, 2, j, 0);
            a.target = fsi_v3_add(b.x[a.vertex], p.w.body.position);
            CHECK(fsi_elastic_attach(p.w.s, &a, &pin[j]) == FSI_OK);
        }
        pool_immerse(&p);
        pool_fill(&p, 0.5);
        wet = run_wet(&p, dt, 2);
        for (step = 1; step * dt < 0.5; step++) {
            const double way = fmin(20 * step * dt, 0.6);
            int now;
            for (j = 0; j < 5; j++) CHECK(fsi_elastic_set_target(p.w.s, pin[j], v3(0.1 + 2.0 / 24 + way,
                0.25 + j / 24.0, 0)) == FSI_OK);
            now = run_wet(&p, dt, 1);
            wet = now > wet ? now : wet;
        }
        printf("      dt %.4f: at most %d, at the end %d of %d particles in it; centre at %.3f m\n", dt, wet,
            count_wet(&p, 0), p.s->count, (double)p.w.s->bodies[0].center.x);
        CHECK(wet <= (k == 0 ? 0.05 : 0) * p.s->count && count_wet(&p, 0) == 0); /* 1/60: it turns inside out */
        CHECK_NEAR(p.w.s->bodies[0].center.x, 0.1 + 2.0 / 24 + 0.6, 0.03);
        pool_end(&p);
        block_free(&b);
    }
}

/* Least volume, over that at rest, of a column that falls at 2 m/s on a mat across the box, `thick` half cells thick
   and with a slope, held everywhere (held) or at its ends. */
static double mat_squeeze(int thick, double slope, double density, int held)
{
    enum { N = 32 };
    const int rows = (thick + 1) / 2;
    pool p = pool_of(2, N);
    block b = block_make(N, rows, 0, 1.0 / N);
    double least = 1;
    int id, i, step;
    for (i = 0; i < b.vertices; i++)
        b.x[i].y = (fsi_real)(0.5 * thick / rows * (double)b.x[i].y + slope * ((double)b.x[i].x - 0.5));
    p.w.material.density = (fsi_real)density;
    p.w.material.young = (fsi_real)3e5;
    pool_begin(&p);
    id = pool_add(&p, &b, 0, 0.4);
    world_clamp(&p.w, id, &b, 0.03, -1);
    world_clamp(&p.w, id, &b, 0.97, 1);
    if (held) world_clamp(&p.w, id, &b, 2, -1);
    pool_immerse(&p);
    fill(p.s, box3(0.2, 0.5, 0, 0.8, 0.9, 0), v3(0, -2, 0));
    for (step = 0; step < (held ? 60 : 24); step++) {
        if (!step_ok(p.s, 1.0 / 120)) break;
        least = fmin(least, p.s->stats.volume * 1000 / (p.s->count * (double)p.s->particle_mass));
    }
    pool_end(&p);
    block_free(&b);
    return least;
}

/* A thin body is closed however it lies in the grid, and however light it is: liquid on it is not squeezed. */
static void test_liquid_on_thin_mats_keeps_its_volume(void)
{
    static const struct { int thick, held; double slope, density; } mat[7] = { { 2, 1, 0.1, 900 }, { 2, 1, 0.3, 900 },
        { 3, 0, 0, 900 }, { 2, 0, 0, 900 }, { 2, 0, 0, 300 }, { 1, 0, 0, 900 }, { 1, 1, 0.3, 900 } };
    int k;
    for (k = 0; k < (TEST_SLOWED ? 2 : 7); k++) {
        const double least = mat_squeeze(mat[k].thick, mat[k].slope, mat[k].density, mat[k].held);
        printf("      %d dx/2 thick, slope %.1f, density %g, %s: least volume %.3f\n", mat[k].thick, mat[k].slope,
            mat[k].density, mat[k].held ? "held" : "held at its ends", least);
        CHECK(least > 0.9);
    }
}

/* A block on a plate that is held at its ends, under water: both come to rest, and so does the liquid. Pressure and
   contact each know their own part of what the block does. */
static void test_a_body_rests_on_another_under_water(void)
{
    enum { N = 24 };
    static const double density[2] = { 2330, 1500 };
    int k, step;
    for (k = 0; k < (TEST_SLOWED ? 1 : 2); k++) {
        pool p = pool_of(2, N);
        block plate = block_make(2 * N / 3, N / 12, 0, 1.0 / N), load = block_make(N / 6, N / 6, 0, 1.0 / N);
        double rounds = 0, energy;
        int id;
        p.w.material.density = 1100;
        p.w.material.young = (fsi_real)1e6;
        p.w.body.contact_points = 400;
        pool_begin(&p);
        id = pool_add(&p, &plate, 1.0 / 6, 0.3);
        world_clamp(&p.w, id, &plate, 1.0 / 6 + 0.03, -1);
        world_clamp(&p.w, id, &plate, 5.0 / 6 - 0.03, 1);
        p.w.material.density = (fsi_real)density[k];
        p.w.material.young = (fsi_real)2e5;
        pool_add(&p, &load, 0.5 - 1.0 / 12, 0.3 + 1.0 / 12 + 0.01);
        pool_immerse(&p);
        pool_fill(&p, 0.8);
        for (step = 0; step < 120; step++) {
            if (!step_ok(p.s, 1.0 / 60)) break;
            if (step >= 60) rounds += p.s->stats.coupling_iters / 60.0;
            if (step >= 60) CHECK(p.s->stats.coupling_rest < 0.05);
        }
        energy = (p.s->stats.kinetic_energy + p.w.s->stats.kinetic_energy) / (1000 * 9.81 * 0.8 * 0.8);
        printf("      density %g: energy %.2g of rho g H V after 2 s, %.1f solves a step, %d contacts\n", density[k],
            energy, rounds, p.w.s->stats.touching);
        CHECK(energy < 1e-4);
        CHECK(fabs(height_of(2, p.w.s->bodies[1].center) - 0.463) < 0.02);
        pool_end(&p);
        block_free(&plate);
        block_free(&load);
    }
}

/* A column of liquid drops on a mat across the box. */
static void test_a_thin_mat_holds_a_falling_column(void)
{
    int thick;
    for (thick = 1; thick <= 2; thick++) {
        int wet, count;
        double lowest;
        const int below = mat_leak(24, thick, &wet, &count, &lowest);
        printf("      %d dx/2 thick: %d of %d particles below it, at most %d in it; lowest point %.3f m\n", thick,
            below, count, wet, lowest);
        CHECK(below <= TOL(0.001, 0.01) * count); /* float: two between its end and the wall */
    }
}

/* A floating cup keeps its water; where velocities are those of the grid it rides as deep as the weight of both. */
static void test_a_cup_keeps_its_water(void)
{
    int k;
    for (k = 0; k < 2; k++) {
        cup c = { 2, 24, 12, 8, 4, 0, 0, 500, 0.03, 0.5, 1 };
        cup_result r;
        if (k) c.pic = 1;
        r = cup_float(&c);
        printf("      of %d particles in it %d went out, %d came in, %d are in its walls; draft %.3f m of %.3f, volume "
            "%.3f\n", r.held, r.out, r.in, r.wet, r.draft, r.want, r.volume);
        CHECK(r.out <= 0.001 * r.held && r.in <= 0.001 * r.held && r.wet == 0);
        if (k) CHECK_NEAR(r.draft / r.want, 1, 0.05);
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Two bodies, one full and of two materials, one with handles and held by a spring, in a pool that sloshes. */
typedef struct scene {
    pool p;
    block b;
    int id[2], pin;
} scene;

static void scene_bodies(scene *s, int dim)
{
    pool *p = &s->p;
    fsi_elastic_material two[2];
    fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
    int kind[6 * 64], i;
    s->b = block_make(3, 3, dim == 2 ? 0 : 3, dim == 2 ? 0.08 : 0.11);
    for (i = 0; i < s->b.elements; i++) kind[i] = i < s->b.elements / 2;
    two[0] = two[1] = p->w.material;
    two[0].density = 1500;
    two[1].density = 500;
    p->w.body.position = in_room(dim, 0.1, 0.3, 0.3);
    p->w.body.vertices = s->b.x;
    p->w.body.vertex_count = s->b.vertices;
    p->w.body.elements = s->b.element;
    p->w.body.element_count = s->b.elements;
    p->w.body.element_material = kind;
    p->w.body.materials = two;
    p->w.body.material_count = 2;
    CHECK(fsi_elastic_add_body(p->w.s, &p->w.body, &s->id[0]) == FSI_OK);
    p->w.body.element_material = NULL;
    p->w.body.handles = 4;
    s->id[1] = pool_add(p, &s->b, 0.55, 0.35);
    a.body = s->id[1];
    a.vertex = block_at(&s->b, 3, 3, 0);
    a.target = fsi_v3_add(s->b.x[a.vertex], p->w.body.position);
    a.stiffness = 500;
    CHECK(fsi_elastic_attach(p->w.s, &a, &s->pin) == FSI_OK);
}

static void scene_make(scene *s, int dim, fsi_flip_transfer transfer)
{
    memset(s, 0, sizeof *s);
    s->p = pool_of(dim, dim == 2 ? 12 : 8);
    s->p.d.transfer = transfer;
    pool_begin(&s->p);
    scene_bodies(s, dim);
}

static void scene_fill(scene *s)
{
    const int dim = s->p.w.desc.dim;
    fill(s->p.s, room(dim, 0, 0, 1, 0.5, 1), in_room(dim, 0.5, 0, 0));
}

static void scene_end(scene *s)
{
    pool_end(&s->p);
    block_free(&s->b);
}

/* What fsi_flip_immerse refuses; then nothing has changed: the bodies move as if it had not been called. */
static void refuse(pool *p, fsi_elastic *e, fsi_status status, const char *word)
{
    const uint64_t hash = fsi_flip_hash(p->s), bodies = e ? fsi_elastic_hash(e) : 0;
    const fsi_status got = fsi_flip_immerse(p->s, e);
    if (!CHECK(got == status)) printf("      %s: %s\n", word, fsi_status_text(got));
    if (got == FSI_OK) return;
    if (!CHECK(strstr(fsi_flip_error(p->s)->message, word) != NULL))
        printf("      %s: %s\n", word, fsi_flip_error(p->s)->message);
    CHECK(fsi_flip_hash(p->s) == hash && (!e || fsi_elastic_hash(e) == bodies));
}

static void test_what_cannot_be_immersed_is_named(void)
{
    pool p = pool_of(2, 12);
    world solid = world_of(3);
    block b = block_make(3, 3, 0, 0.08), thin = block_make(4, 1, 0, 0.02);
    fsi_flip *none = NULL;
    fsi_vec3 force;
    int id, first;
    pool_begin(&p);
    world_begin(&solid);
    CHECK(fsi_flip_immerse(none, p.w.s) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_body_reaction(none, 0, &force, NULL) == FSI_ERROR_ARGUMENT);
    p.s->cookie++;
    CHECK(fsi_flip_immerse(p.s, p.w.s) == FSI_ERROR_COOKIE && fsi_flip_body_reaction(p.s, 0, &force, NULL)
        == FSI_ERROR_COOKIE);
    p.s->cookie--;
    CHECK(fsi_flip_immerse(p.s, NULL) == FSI_OK && fsi_flip_immerse(p.s, NULL) == FSI_OK);

    /* Another kind of simulator. */
    p.w.s->cookie++;
    refuse(&p, p.w.s, FSI_ERROR_COOKIE, "elastic");
    p.w.s->cookie--;
    refuse(&p, solid.s, FSI_ERROR_ARGUMENT, "dim");
    world_end(&solid);

    /* Bodies outside, in each other, without a surface, too thin. */
    id = pool_add(&p, &b, 0.9, 0.3);
    refuse(&p, p.w.s, FSI_ERROR_ARGUMENT, "outside");
    CHECK(fsi_elastic_remove_body(p.w.s, id) == FSI_OK);
    first = pool_add(&p, &b, 0.3, 0.3);
    id = pool_add(&p, &b, 0.4, 0.4);
    refuse(&p, p.w.s, FSI_ERROR_ARGUMENT, "lies in body");
    CHECK(fsi_elastic_remove_body(p.w.s, id) == FSI_OK);
    p.w.body.contact_points = 0;
    id = pool_add(&p, &b, 0.7, 0.3);
    refuse(&p, p.w.s, FSI_ERROR_ARGUMENT, "contact");
    CHECK(fsi_elastic_remove_body(p.w.s, id) == FSI_OK);
    p.w.body.contact_points = 400;
    id = pool_add(&p, &thin, 0.7, 0.7);
    refuse(&p, p.w.s, FSI_ERROR_MESH, "dx/2");
    CHECK(fsi_elastic_remove_body(p.w.s, id) == FSI_OK);

    /* Too large; too light. */
    block_free(&thin);
    thin = block_make(3, 3, 0, 2);
    id = pool_add(&p, &thin, 0, 0);
    refuse(&p, p.w.s, FSI_ERROR_ARGUMENT, "m large");
    CHECK(fsi_elastic_remove_body(p.w.s, id) == FSI_OK);
    p.w.material.density = 40;
    id = pool_add(&p, &b, 0.7, 0.7);
    p.w.material.density = 1000;
    refuse(&p, p.w.s, FSI_ERROR_ARGUMENT, "twentieth");
    CHECK(fsi_elastic_remove_body(p.w.s, id) == FSI_OK);

    /* Liquid in a body. */
    add_one(p.s, v3(0.4, 0.4, 0), v3(0, 0, 0));
    refuse(&p, p.w.s, FSI_ERROR_ARGUMENT, "1 particles of liquid lie in body");
    p.s->position[0] = v3(0.9, 0.1, 0);
    pool_immerse(&p);
    CHECK(fsi_flip_body_reaction(p.s, 99, &force, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_flip_body_reaction(p.s, first, NULL, NULL) == FSI_OK && step_ok(p.s, 0.01));

    /* Bodies that come or go ask for a new call. */
    id = pool_add(&p, &b, 0.7, 0.7);
    CHECK(fsi_flip_step(p.s, (fsi_real)0.01) == FSI_ERROR_ARGUMENT
        && strstr(fsi_flip_error(p.s)->message, "fsi_flip_immerse"));
    pool_immerse(&p);
    CHECK(step_ok(p.s, 0.01));
    CHECK(fsi_elastic_remove_body(p.w.s, id) == FSI_OK && fsi_flip_step(p.s, (fsi_real)0.01) == FSI_ERROR_ARGUMENT);
    pool_immerse(&p);
    CHECK(step_ok(p.s, 0.01) && fsi_flip_immerse(p.s, NULL) == FSI_OK && step_ok(p.s, 0.01));
    CHECK(fsi_flip_body_reaction(p.s, first, &force, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_elastic_step(p.w.s, (fsi_real)0.01) == FSI_OK);
    pool_end(&p);
    block_free(&b);
    block_free(&thin);
}

/* A call that is refused leaves the bodies' matrices as they were. */
static void test_a_refused_body_moves_as_before(void)
{
    uint64_t hash[2];
    int k;
    for (k = 0; k < 2; k++) {
        scene s;
        scene_make(&s, 2, FSI_FLIP_FLIP);
        if (k) {
            add_one(s.p.s, v3(0.2, 0.4, 0), v3(0, 0, 0));
            refuse(&s.p, s.p.w.s, FSI_ERROR_ARGUMENT, "lie in body");
        }
        world_run(&s.p.w, 1.0 / 60, 10);
        hash[k] = fsi_elastic_hash(s.p.w.s);
        scene_end(&s);
    }
    CHECK(hash[0] == hash[1]);
}

/* After errors of the bodies, or of the liquid, nothing has changed in both. */
static void test_errors_of_bodies_change_nothing(void)
{
    scene s;
    uint64_t hash;
    fsi_vec3 *x, *v;
    int k;
    scene_make(&s, 2, FSI_FLIP_FLIP);
    pool_immerse(&s.p);
    scene_fill(&s);
    CHECK(pool_run(&s.p, 1.0 / 60, 3));
    x = (fsi_vec3 *)malloc(2 * (size_t)s.b.vertices * sizeof *x);
    v = x + s.b.vertices;
    CHECK(fsi_elastic_vertices(s.p.w.s, s.id[0], x, v) == FSI_OK);

    /* Too fast. */
    for (k = 0; k < s.b.vertices; k++) v[k] = v3(TOL(1e13, 1e13), 0, 0);
    CHECK(fsi_elastic_set_vertices(s.p.w.s, s.id[0], x, v) == FSI_OK);
    hash = pool_hash(&s.p);
    s.p.w.context.error.message[0] = 0;
    CHECK(fsi_flip_step(s.p.s, (fsi_real)0.01) != FSI_OK && strlen(fsi_flip_error(s.p.s)->message) > 10);
    CHECK(pool_hash(&s.p) == hash);
    CHECK(fsi_elastic_set_vertices(s.p.w.s, s.id[0], x, NULL) == FSI_OK && step_ok(s.p.s, 0.01));

    /* NaN in the liquid. */
    s.p.s->velocity[1].x = (fsi_real)test_nan();
    hash = fsi_elastic_hash(s.p.w.s);
    CHECK(fsi_flip_step(s.p.s, (fsi_real)0.01) == FSI_ERROR_NAN && fsi_elastic_hash(s.p.w.s) == hash);
    s.p.s->velocity[1].x = 0;
    CHECK(step_ok(s.p.s, 0.01));
    free(x);
    scene_end(&s);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Each allocation fails once, and from each on, in immersing, filling and stepping: what is tried again gives the bits
   of a run with memory enough. */
static uint64_t run_scarcely(int dim, long at, int *failures, long *count)
{
    scene s;
    uint64_t hash;
    int k;
    fsi_context *context;
    memset(&s, 0, sizeof s);
    s.p = pool_of(dim, dim == 2 ? 12 : 8);
    test_fail_allocator(&s.p.w.context, 0);
    pool_begin(&s.p);
    context = &s.p.w.context;
    scene_bodies(&s, dim);
    test_fail_allocator(context, at);
    for (k = 0; k < 4; k++) {
        const uint64_t before = pool_hash(&s.p);
        fsi_status status;
        if (k == 0) status = fsi_flip_immerse(s.p.s, s.p.w.s);
        else if (k == 1) status = fsi_flip_fill_box(s.p.s, room(dim, 0, 0, 1, 0.5, 1), in_room(dim, 0.5, 0, 0), NULL);
        else status = fsi_flip_step(s.p.s, (fsi_real)0.01);
        if (status == FSI_OK) continue;
        if (!CHECK(status == FSI_ERROR_MEMORY && pool_hash(&s.p) == before))
            printf("      allocation %ld, call %d: %s, %s\n", at, k, fsi_status_text(status),
                pool_hash(&s.p) == before ? "unchanged" : "changed");
        ++*failures;
        *count = 0;
        test_fail_allocator(context, 0);
        k--;
    }
    if (test_alloc_count() < at || at == 0) *count = test_alloc_count();
    hash = pool_hash(&s.p);
    test_fail_allocator(context, 0);
    scene_end(&s);
    return hash;
}

static void test_failing_memory_leaves_no_trace(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        int failures = 0, none = 0;
        long at, all = 0, left = 0;
        const uint64_t want = run_scarcely(dim, 0, &none, &all);
        for (at = 1; at <= all; at += TEST_WATCHED ? 7 : dim) CHECK(run_scarcely(dim, at, &failures, &left) == want);
        printf("      %dD: %ld allocations, %d failures\n", dim, all, failures);
        CHECK(none == 0 && failures > 10);
    }
}

static void test_a_steady_state_allocates_nothing(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        scene s;
        long long allocs;
        scene_make(&s, dim, FSI_FLIP_FLIP);
        pool_immerse(&s.p);
        scene_fill(&s);
        CHECK(pool_run(&s.p, 1.0 / 60, dim == 2 ? 150 : 60));
        allocs = s.p.s->stats.allocs;
        CHECK(pool_run(&s.p, 1.0 / 60, dim == 2 ? 60 : 30));
        if (!CHECK(s.p.s->stats.allocs <= allocs + 2 && allocs > 0))
            printf("      %dD: %d more\n", dim, (int)(s.p.s->stats.allocs - allocs));
        scene_end(&s);
    }
}

/* ---- states, threads, steps -------------------------------------------------------------------------------------- */

static void test_loading_both_continues_as_if_nothing_had_happened(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        scene a, b;
        size_t size[2];
        void *state, *bodies;
        uint64_t at, end;
        const fsi_flip_transfer transfer = dim == 2 ? FSI_FLIP_FLIP : FSI_FLIP_APIC;
        scene_make(&a, dim, transfer);
        scene_make(&b, dim, transfer);
        pool_immerse(&a.p);
        pool_immerse(&b.p);
        scene_fill(&a);
        CHECK(pool_run(&a.p, 1.0 / 60, 8));
        state = save_state(a.p.s, &size[0]);
        CHECK(fsi_elastic_save(a.p.w.s, NULL, 0, &size[1]) == FSI_OK);
        bodies = malloc(size[1]);
        CHECK(fsi_elastic_save(a.p.w.s, bodies, size[1], &size[1]) == FSI_OK);
        at = pool_hash(&a.p);
        CHECK(pool_run(&a.p, 1.0 / 60, 8));
        end = pool_hash(&a.p);
        for (k = 0; k < 3; k++) { /* a fresh one, one with a history, and back in time */
            pool *p = k == 2 ? &a.p : &b.p;
            if (k == 1) CHECK(pool_run(p, 0.01, 1));
            CHECK(fsi_flip_load(p->s, state, size[0]) == FSI_OK);
            CHECK(fsi_elastic_load(p->w.s, bodies, size[1]) == FSI_OK);
            CHECK(pool_hash(p) == at);
            CHECK(pool_run(p, 1.0 / 60, 8));
            if (!CHECK(pool_hash(p) == end)) printf("      %dD, case %d\n", dim, k);
        }
        free(state);
        free(bodies);
        scene_end(&a);
        scene_end(&b);
    }
}

static void test_the_same_bits_for_any_threads(void)
{
    static const int threads[3] = { 1, 2, 5 };
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t want = 0;
        for (k = 0; k < 4; k++) {
            pool p = pool_of(dim, dim == 2 ? 72 : 18);
            block b = block_make(dim == 2 ? 16 : 6, dim == 2 ? 16 : 6, dim == 2 ? 0 : 6, dim == 2 ? 0.02 : 1.0 / 18);
            uint64_t hash;
            test_threads(&p.w.context, threads[k < 3 ? k : 2], k == 3);
            p.w.body.handles = dim == 2 ? 0 : 8;
            p.w.material.density = 700;
            pool_begin(&p);
            pool_add(&p, &b, 0.55, 0.3);
            pool_immerse(&p);
            fill(p.s, room(dim, 0, 0, 0.5, 0.8, 1), in_room(dim, 2, 0, 0));
            CHECK(pool_run(&p, 1.0 / 60, 3));
            hash = pool_hash(&p);
            if (k == 0) want = hash;
            if (!CHECK(hash == want)) printf("      %dD, case %d\n", dim, k);
            pool_end(&p);
            block_free(&b);
        }
    }
}

static void test_a_step_of_no_time_changes_nothing(void)
{
    scene s;
    fsi_vec3 force, still;
    uint64_t hash;
    scene_make(&s, 2, FSI_FLIP_APIC);
    pool_immerse(&s.p);
    scene_fill(&s);
    CHECK(pool_run(&s.p, 1.0 / 60, 3));
    hash = pool_hash(&s.p);
    CHECK(fsi_flip_body_reaction(s.p.s, s.id[0], &force, NULL) == FSI_OK);
    CHECK(step_ok(s.p.s, 0) && pool_hash(&s.p) == hash);
    CHECK(fsi_flip_body_reaction(s.p.s, s.id[0], &still, NULL) == FSI_OK && memcmp(&force, &still, sizeof force) == 0);
    scene_end(&s);
}

/* Steps of any length succeed, or change nothing. */
static void test_absurd_steps_do_no_harm(void)
{
    static const double dts[5] = { 1e-12, 1e-9, 0.3, 1000, 1e-3 };
    int dim, k;
    for (dim = 2; dim <= (TEST_SLOWED ? 2 : 3); dim++) {
        scene s;
        fsi_vec3 x[64];
        int i;
        scene_make(&s, dim, FSI_FLIP_FLIP);
        pool_immerse(&s.p);
        scene_fill(&s);
        for (k = 0; k < 5; k++) {
            const uint64_t hash = pool_hash(&s.p);
            const double dt = dim == 3 && k == 2 ? 0.1 : dts[k];
            const fsi_status status = fsi_flip_step(s.p.s, (fsi_real)dt);
            if (status != FSI_OK) {
                printf("      %dD, dt %g: %s\n", dim, dt, fsi_flip_error(s.p.s)->message);
                CHECK(pool_hash(&s.p) == hash);
            }
            CHECK(is_finite(s.p.s));
        }
        CHECK(fsi_elastic_vertices(s.p.w.s, s.id[0], x, NULL) == FSI_OK && s.b.vertices <= 64);
        for (i = 0; i < s.b.vertices; i++) CHECK(fsi_v3_is_finite(x[i]));
        scene_end(&s);
    }
}

/* Few substeps, few iterations of the pressure and of the bodies: flagged, and finite. */
static void test_budgets_flag_and_do_not_stall(void)
{
    scene s;
    fsi_elastic_desc e;
    fsi_flip_desc d;
    int step, flagged = 0;
    scene_make(&s, 2, FSI_FLIP_FLIP);
    pool_immerse(&s.p);
    scene_fill(&s);
    e = s.p.w.s->desc;
    e.iterations = 1;
    e.contact_sweeps = 1;
    CHECK(fsi_elastic_set_desc(s.p.w.s, &e) == FSI_OK);
    d = s.p.s->desc;
    d.max_substeps = 2;
    d.pressure_iters = 1;
    CHECK(fsi_flip_set_desc(s.p.s, &d) == FSI_OK);
    for (step = 0; step < 20; step++) {
        if (!step_ok(s.p.s, 1.0 / 20)) break;
        CHECK(s.p.s->stats.substeps <= 2 && is_finite(s.p.s));
        flagged += s.p.s->stats.degraded > 0 && s.p.w.s->stats.degraded > 0;
    }
    printf("      %d of 20 steps flagged by both, up to %.3g m/s\n", flagged, s.p.s->stats.max_speed);
    CHECK(flagged > 5 && s.p.s->stats.max_speed < 50);
    scene_end(&s);
}

/* More substeps of the bodies than of the liquid: both take them. */
static void test_substeps_of_bodies_are_taken(void)
{
    scene s;
    fsi_elastic_desc e;
    scene_make(&s, 2, FSI_FLIP_FLIP);
    e = s.p.w.s->desc;
    e.substeps = 4;
    CHECK(fsi_elastic_set_desc(s.p.w.s, &e) == FSI_OK);
    pool_immerse(&s.p);
    scene_fill(&s);
    CHECK(step_ok(s.p.s, 1.0 / 60));
    CHECK(s.p.s->stats.substeps == 4 && s.p.w.s->stats.substeps >= 4);
    CHECK_NEAR(s.p.w.s->time, 1.0 / 60, 1e-6);
    scene_end(&s);
}

/* The mass of its particles does not change what a reduced body is set to, or what it is afterwards. */
static void test_vertices_of_an_immersed_body_can_be_set(void)
{
    pool p = pool_of(2, 16);
    block b = block_make(8, 2, 0, 1.0 / 16);
    fsi_vec3 *x = (fsi_vec3 *)malloc(2 * (size_t)b.vertices * sizeof *x), *y = x + b.vertices;
    double worst = 0;
    int id, i, turn;
    p.w.body.handles = 5;
    p.w.body.angular_velocity = v3(0, 0, 3);
    pool_begin(&p);
    id = pool_add(&p, &b, 0.25, 0.5);
    pool_immerse(&p);
    pool_fill(&p, 0.5);
    for (turn = 0; turn < 2; turn++) { /* immersed, then no more */
        CHECK(pool_run(&p, 1.0 / 60, 5));
        CHECK(fsi_elastic_vertices(p.w.s, id, x, NULL) == FSI_OK);
        CHECK(fsi_elastic_set_vertices(p.w.s, id, x, NULL) == FSI_OK);
        CHECK(fsi_elastic_vertices(p.w.s, id, y, NULL) == FSI_OK);
        for (i = 0; i < b.vertices; i++) worst = fmax(worst, (double)fsi_v3_norm(fsi_v3_sub(x[i], y[i])));
        CHECK(fsi_flip_immerse(p.s, NULL) == FSI_OK);
    }
    CHECK(worst < TOL(1e-6, 1e-4));
    pool_end(&p);
    block_free(&b);
    free(x);
}

/* A side that is opened lets a body out as well; what is outside is no longer in the liquid. */
static void test_an_opened_side_lets_a_body_out(void)
{
    pool p = pool_of(2, 16);
    block b = block_make(3, 3, 0, 1.0 / 16);
    fsi_vec3 force = v3(1, 1, 1);
    int id, side;
    p.w.desc.gravity = p.d.gravity = v3(0, 0, 0);
    p.w.body.velocity = v3(3, 0, 0);
    pool_begin(&p);
    id = pool_add(&p, &b, 0.5, 0.4);
    pool_immerse(&p);
    CHECK(pool_run(&p, 1.0 / 60, 10));
    CHECK((double)p.w.s->bodies[0].center.x < 0.95); /* the wall held it */
    CHECK(fsi_elastic_reset_body(p.w.s, id, v3(0.5, 0.4, 0), fsi_quat_identity(), v3(3, 0, 0), v3(0, 0, 0)) == FSI_OK);
    p.d = p.s->desc;
    for (side = 0; side < 2; side++) p.d.open_side[side] = 1;
    CHECK(fsi_flip_set_desc(p.s, &p.d) == FSI_OK);
    fill(p.s, box3(0.8, 0, 0, 1, 0.2, 0), v3(0, 0, 0));
    CHECK(pool_run(&p, 1.0 / 60, 40));
    CHECK((double)p.w.s->bodies[0].center.x > 2);
    CHECK(fsi_flip_body_reaction(p.s, id, &force, NULL) == FSI_OK && !((double)fsi_v3_norm(force) > 0));
    pool_end(&p);
    block_free(&b);
}

/* A paddle that is an obstacle of both gets the liquid's force, and would get that of contacts. */
static void test_a_body_of_both_simulators_gets_the_liquids_force(void)
{
    pool p = pool_of(2, 16);
    block b = block_make(3, 3, 0, 1.0 / 16);
    fsi_mesh *mesh;
    fsi_body paddle = fsi_default_body();
    fsi_flip_obstacle_desc o = fsi_flip_default_obstacle_desc();
    fsi_elastic_obstacle_desc e = fsi_elastic_default_obstacle_desc();
    double mean = 0;
    int k;
    pool_begin(&p);
    mesh = box_mesh(v3(0.2, 0.2, 0), v3(0.4, 0.4, 0), 2);
    paddle.mode = FSI_BODY_PRESCRIBED;
    o.mesh = e.mesh = mesh;
    o.body = e.body = &paddle;
    pool_add(&p, &b, 0.6, 0.6);
    CHECK(fsi_flip_add_obstacle(p.s, &o, NULL) == FSI_OK && fsi_elastic_add_obstacle(p.w.s, &e, NULL) == FSI_OK);
    pool_immerse(&p);
    pool_fill(&p, 0.5);
    for (k = 0; k < 120; k++) {
        if (!step_ok(p.s, 1.0 / 60)) break;
        if (k >= 60) mean += (double)paddle.reaction_force.y / 60;
    }
    CHECK_NEAR(mean, 0.04 * 1000 * 9.81, 0.1 * 0.04 * 1000 * 9.81);
    pool_end(&p);
    fsi_mesh_destroy(mesh);
    block_free(&b);
}

/* Liquid and bodies are moved together; all goes on there as here. */
static void test_a_shifted_origin_changes_no_way(void)
{
    const fsi_vec3 offset = v3(8, -4, 0);
    fsi_vec3 at[2], mean[2];
    int k, i;
    for (k = 0; k < 2; k++) {
        scene s;
        scene_make(&s, 2, FSI_FLIP_FLIP);
        pool_immerse(&s.p);
        scene_fill(&s);
        CHECK(pool_run(&s.p, 1.0 / 60, 4));
        if (k) CHECK(fsi_flip_shift_origin(s.p.s, offset) == FSI_OK && fsi_elastic_shift_origin(s.p.w.s, offset)
            == FSI_OK);
        CHECK(pool_run(&s.p, 1.0 / 60, 4));
        at[k] = s.p.w.s->bodies[0].center;
        mean[k] = v3(0, 0, 0);
        for (i = 0; i < s.p.s->count; i++)
            mean[k] = fsi_v3_madd(mean[k], 1 / (fsi_real)s.p.s->count, s.p.s->position[i]);
        scene_end(&s);
    }
    CHECK((double)fsi_v3_norm(fsi_v3_sub(fsi_v3_sub(at[1], at[0]), offset)) < TOL(1e-6, 1e-3));
    CHECK((double)fsi_v3_norm(fsi_v3_sub(fsi_v3_sub(mean[1], mean[0]), offset)) < TOL(1e-6, 1e-3));
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN_PHYSICS(test_a_body_of_the_liquids_density_rests);
    RUN_PHYSICS(test_a_body_of_the_liquids_density_stays_in_place);
    RUN_PHYSICS(test_a_light_raft_floats);
    RUN_PHYSICS(test_a_heavy_body_lies_on_the_floor);
    RUN_PHYSICS(test_archimedes_holds_for_pinned_bodies);
    RUN_PHYSICS(test_a_light_plate_that_is_held_bears_liquid);
    RUN_PHYSICS(test_a_drop_falls_freely_above_a_loaded_mat);
    RUN(test_a_body_whose_liquid_is_gone_falls);
    RUN(test_bodies_and_drops_fall_alike);
    RUN_PHYSICS(test_a_body_that_turns_keeps_its_angular_momentum);
    RUN(test_a_drop_that_meets_a_body_keeps_momentum);
    RUN_PHYSICS(test_a_body_on_springs_swings_with_its_added_mass);
    RUN_PHYSICS(test_a_clamped_beam_swings_with_its_added_mass);
    RUN_PHYSICS(test_no_liquid_enters_a_body_that_plunges);
    RUN_PHYSICS(test_no_liquid_enters_a_body_that_is_driven);
    RUN_PHYSICS(test_a_thin_mat_holds_a_falling_column);
    RUN_PHYSICS(test_liquid_on_thin_mats_keeps_its_volume);
    RUN_PHYSICS(test_a_body_rests_on_another_under_water);
    RUN_PHYSICS(test_a_cup_keeps_its_water);
    RUN(test_what_cannot_be_immersed_is_named);
    RUN(test_a_refused_body_moves_as_before);
    RUN(test_errors_of_bodies_change_nothing);
    RUN(test_failing_memory_leaves_no_trace);
    RUN(test_a_steady_state_allocates_nothing);
    RUN(test_loading_both_continues_as_if_nothing_had_happened);
    RUN(test_the_same_bits_for_any_threads);
    RUN(test_a_step_of_no_time_changes_nothing);
    RUN(test_absurd_steps_do_no_harm);
    RUN(test_budgets_flag_and_do_not_stall);
    RUN(test_substeps_of_bodies_are_taken);
    RUN(test_a_shifted_origin_changes_no_way);
    RUN(test_vertices_of_an_immersed_body_can_be_set);
    RUN(test_an_opened_side_lets_a_body_out);
    RUN(test_a_body_of_both_simulators_gets_the_liquids_force);
    return TEST_END();
}
