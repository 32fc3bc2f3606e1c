/* test_flip_bodies.c - elastic bodies in the liquid of fsi_flip.h: rest, draft, flight, added mass, liquid that stays
   out of them; calls, memory that fails, states, threads. SPDX-License-Identifier: MIT */
#include "kit/test_flip.h"
#include "kit/test_elastic.h"

/* ---- pools with bodies ------------------------------------------------------------------------------------------- */

/* A liquid and elastic bodies; change w.desc, w.body, w.material and d before pool_begin and pool_add. */
typedef struct pool {
    world w;
    fsi_flip_desc d;
    fsi_flip *s;
} pool;

static pool pool_of(int dim, int n)
{
    pool p;
    memset(&p, 0, sizeof p);
    p.w = world_of(dim);
    p.d = make_desc(dim, n);
    p.w.body.handles = 0;
    return p;
}

static void pool_begin(pool *p)
{
    world_begin(&p->w);
    p->d.context = &p->w.context;
    p->s = make_flip(&p->d);
}

/* Adds a block with its lower corner at (x, h); its id. */
static int pool_add(pool *p, const block *b, double x, double h)
{
    p->w.body.position = in_room(p->w.desc.dim, x, h, 0.5 - 0.5 * b->ny * b->a);
    return world_add(&p->w, b);
}

static int pool_immerse(pool *p)
{
    const fsi_status status = fsi_flip_immerse(p->s, p->w.s);
    if (status != FSI_OK) printf("      immerse: %s\n", fsi_flip_error(p->s)->message);
    return CHECK(status == FSI_OK);
}

static void pool_fill(pool *p, double level)
{
    fill(p->s, room(p->w.desc.dim, 0, 0, 1, level, 1), v3(0, 0, 0));
}

static int pool_run(pool *p, double dt, int steps)
{
    int k;
    for (k = 0; k < steps; k++) if (!step_ok(p->s, dt)) return 0;
    return 1;
}

static void pool_end(pool *p)
{
    fsi_flip_destroy(p->s);
    world_end(&p->w);
}

static uint64_t pool_hash(const pool *p) { return fsi_flip_hash(p->s) * 31 + fsi_elastic_hash(p->w.s); }

/* Force of the liquid on a body over its weight, upwards. */
static double pool_lift(const pool *p, int id)
{
    const fsi_elastic_body *b = p->w.s->bodies + fsi_elastic_find_body(p->w.s, id);
    fsi_vec3 force = v3(0, 0, 0);
    CHECK(fsi_flip_body_reaction(p->s, id, &force, NULL) == FSI_OK);
    return height_of(p->w.desc.dim, force) / (b->mass * 9.81);
}

static double pool_height(const pool *p, int index) { return height_of(p->w.desc.dim, p->w.s->bodies[index].center); }

/* Twice the area, or six times the volume, of a simplex. */
static double content(int dim, const fsi_vec3 *x)
{
    const fsi_vec3 a = fsi_v3_sub(x[1], x[0]), b = fsi_v3_sub(x[2], x[0]);
    if (dim == 2) return (double)a.x * (double)b.y - (double)a.y * (double)b.x;
    return (double)fsi_v3_dot(fsi_v3_cross(a, b), fsi_v3_sub(x[3], x[0]));
}

static int is_in_simplex(int dim, const fsi_vec3 *x, fsi_vec3 at, double least)
{
    const double whole = content(dim, x);
    fsi_vec3 y[4];
    int k;
    if (!(whole > 0)) return 0; /* inverted */
    for (k = 0; k <= dim; k++) {
        memcpy(y, x, sizeof y);
        y[k] = at;
        if (!(content(dim, y) > least * whole)) return 0;
    }
    return 1;
}

/* Particles of liquid in the elements of a body as they lie now: no surface, no search. */
static int count_wet(const pool *p, int index)
{
    const fsi_elastic_body *b = &p->w.s->bodies[index];
    const int dim = p->w.desc.dim;
    fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)b->vertex_count * sizeof *x);
    int i, e, k, wet = 0;
    CHECK(fsi_elastic_vertices(p->w.s, b->id, x, NULL) == FSI_OK);
    for (i = 0; i < p->s->count; i++)
        for (e = 0; e < b->element_count; e++) {
            fsi_vec3 corner[4];
            memset(corner, 0, sizeof corner);
            for (k = 0; k <= dim; k++) corner[k] = x[b->elements[(dim + 1) * e + k]];
            if (!is_in_simplex(dim, corner, p->s->position[i], 1e-9)) continue;
            wet++;
            break;
        }
    free(x);
    return wet;
}

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
    CHECK(most < TOL(1e-12, 1e-7));
    CHECK(moved < 1e-3 * (double)p.d.dx);
    CHECK_NEAR(pool_lift(&p, id), 1, 0.02);
    pool_end(&p);
    block_free(&b);
}

static void test_a_body_of_the_liquids_density_rests(void)
{
    check_rest(2, 0, 2, 1.0 / 60);
    check_rest(2, 0, 1, 1.0 / 240);
    check_rest(2, 4, 2, 1.0 / 24);
    check_rest(2, 4, 1, 1.0 / 60);
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
    int k;
    for (k = 0; k < 2; k++) {
        pool p = pool_of(2, 24);
        block b = block_make(12, 6, 0, 1.0 / 24);
        double bottom = 0, level = 0, lift = 0, draft;
        int id, step, i;
        p.w.material.density = 540;
        p.w.body.handles = k == 0 ? 0 : 8;
        pool_begin(&p);
        id = pool_add(&p, &b, 0.25, 0.36);
        pool_immerse(&p);
        pool_fill(&p, 0.5);
        for (step = 0; step < 360; step++) {
            double here = 0;
            int n = 0;
            if (!step_ok(p.s, 1.0 / 60)) break;
            if (step < 240) continue;
            bottom += pool_height(&p, 0) - 0.125;
            lift += pool_lift(&p, id);

            /* Level: twice the mean height of the particles beside it. */
            for (i = 0; i < p.s->count; i++) {
                const double x = (double)p.s->position[i].x;
                if (x > 0.2 && x < 0.8) continue;
                here += 2 * height_of(2, p.s->position[i]);
                n++;
            }
            level += here / n;
        }
        draft = (level - bottom) / 120 / 0.25;
        printf("      %d handles: draft %.3f of its height, reaction %.4f of its weight, %d particles in it\n",
            p.w.body.handles, draft, lift / 120, count_wet(&p, 0));
        CHECK_NEAR(draft, 0.54, 0.03);
        CHECK_NEAR(lift / 120, 1, 0.02);
        CHECK(count_wet(&p, 0) == 0);
        pool_end(&p);
        block_free(&b);
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
    CHECK(low > -0.05 * (double)p.d.dx);
    CHECK_NEAR(pool_height(&p, 0), 0.125, 0.25 * (double)p.d.dx);
    CHECK((double)fsi_v3_norm(p.w.s->bodies[0].velocity) < 0.02);
    CHECK(wet == 0);
    pool_end(&p);
    block_free(&b);
}

/* Held by pins, whatever its density, a body is carried by the weight of the liquid that it displaces. */
static void test_archimedes_holds_for_pinned_bodies(void)
{
    static const double density[3] = { 300, 1000, 3000 };
    int dim, k, j;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < 3; k++) {
            pool p = pool_of(dim, dim == 2 ? 16 : 8);
            block b = block_make(4, dim == 2 ? 4 : 3, dim == 2 ? 0 : 3, dim == 2 ? 0.0625 : 0.125);
            double lift = 0;
            int id, step;
            if (dim == 3 && k == 1) continue;
            p.w.material.density = (fsi_real)density[k];
            p.w.material.young = (fsi_real)1e6;
            pool_begin(&p);
            id = pool_add(&p, &b, 0.25, 0.25);
            for (j = 0; j < b.vertices; j++) {
                fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
                a.body = id;
                a.vertex = j;
                a.target = fsi_v3_add(b.x[j], p.w.body.position);
                CHECK(fsi_elastic_attach(p.w.s, &a, NULL) == FSI_OK);
            }
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
    check_fall(2, 0, 1, 1);
    check_fall(2, 4, 2, 0);
    check_fall(2, 4, 1, 1);
    check_fall(3, 0, 2, 0);
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

/* A body without liquid turns in flight. */
static void test_a_body_that_turns_keeps_its_angular_momentum(void)
{
    int k;
    for (k = 0; k < 4; k++) {
        const int dim = k == 3 ? 3 : 2;
        pool p = pool_of(dim, dim == 2 ? 20 : 12);
        block b = block_make(dim == 2 ? 8 : 4, 4, dim == 2 ? 0 : 4, dim == 2 ? 0.05 : 1.0 / 12);
        double spin;
        int step;
        const double rate = 2 * PI, dt = k == 2 ? 1.0 / 60 : 1.0 / 240;
        p.w.desc.gravity = p.d.gravity = v3(0, 0, 0);
        p.w.body.angular_velocity = v3(0, 0, rate);
        p.w.body.handles = k == 1 ? 6 : 0;
        p.w.desc.time_order = 2;
        p.w.material.young = (fsi_real)1e5;
        pool_begin(&p);
        pool_add(&p, &b, 0.5 - 0.5 * b.nx * b.a, 0.5 - 0.5 * (dim == 2 ? b.ny : b.nz) * b.a);
        spin = (double)p.w.s->bodies[0].spin.z;
        pool_immerse(&p);
        for (step = 0; step * dt < 2 * PI / rate; step++) if (!step_ok(p.s, dt)) break;
        printf("      %dD, %d handles, dt %.4f: angular momentum %+.2g over a turn\n", dim, p.w.body.handles, dt,
            (double)p.w.s->bodies[0].spin.z / spin - 1);
        CHECK_NEAR((double)p.w.s->bodies[0].spin.z / spin, 1, 0.02);
        pool_end(&p);
        block_free(&b);
    }
}

/* A drop and a body meet in flight, without gravity: their momentum is kept. */
static void test_a_drop_that_meets_a_body_keeps_momentum(void)
{
    int k;
    for (k = 0; k < 4; k++) {
        const int dim = k == 3 ? 3 : 2;
        pool p = pool_of(dim, dim == 2 ? 24 : 12);
        block b = block_make(4, 4, dim == 2 ? 0 : 4, dim == 2 ? 1.0 / 16 : 1.0 / 12);
        double size, least = 1, worst = 0;
        fsi_vec3 p0, p1;
        int step;
        p.w.desc.gravity = p.d.gravity = v3(0, 0, 0);
        p.w.body.velocity = v3(-1, 0, 0);
        p.w.body.handles = k == 1 ? 4 : 0;
        p.w.desc.time_order = k == 2 ? 1 : 2;
        p.w.material.density = 600;
        pool_begin(&p);
        pool_add(&p, &b, 0.6, 0.45);
        pool_immerse(&p);
        CHECK(fsi_flip_fill_sphere(p.s, in_room(dim, 0.3, 0.5, 0.5), (fsi_real)0.15, v3(1, 0, 0), NULL) == FSI_OK);
        total(&p, &p0, &size);
        for (step = 0; step < 18; step++) {
            if (!step_ok(p.s, 1.0 / 60)) break;
            total(&p, &p1, &least);
            worst = fmax(worst, (double)fsi_v3_norm(fsi_v3_sub(p1, p0)));
        }
        printf("      %dD, %d handles, order %d: momentum %.2g; body %.3f m/s, %d particles in it\n", dim,
            p.w.body.handles, p.w.desc.time_order, worst / size, (double)p.w.s->bodies[0].velocity.x,
            count_wet(&p, 0));
        CHECK(worst <= TOL(1e-6, 1e-4) * size);
        CHECK((double)p.w.s->bodies[0].velocity.x > -0.8);
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
static double swing(double density, double k, double dt, int handles, double pic, double *drift)
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
    p.d.body_pic = (fsi_real)pic;
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

/* desc.body_pic takes energy; without it the frequency is that of the body's mass and the added one. */
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
            const double got = swing(density[k], rate * rate * (mass + added), dt, j == 0 ? 0 : 4, 0, &drift);
            printf("      density %g, mass over mass with the liquid's %.2f, omega h %.1f: frequency %.3f of theory\n",
                density[k], mass / (mass + added), rate * dt, got / rate);
            CHECK(drift < 0.5);
            CHECK_NEAR(got / rate, 1, 0.08);
        }
}

/* ---- liquid stays out -------------------------------------------------------------------------------------------- */

/* Steps; the most particles in a body after any of them. */
static int run_wet(pool *p, double dt, int steps)
{
    int k, j, most = 0;
    for (k = 0; k < steps; k++) {
        int wet = 0;
        if (!step_ok(p->s, dt)) break;
        for (j = 0; j < p->w.s->body_count; j++) wet += count_wet(p, j);
        most = wet > most ? wet : most;
    }
    CHECK(is_finite(p->s));
    return most;
}

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
    printf("      %dD, %d handles, order %d: at most %d of %d particles in it, centre at %.3f m, volume %.3f of that at "
        "rest\n", dim, handles, time_order, wet, p.s->count, pool_height(&p, 0),
        p.w.s->bodies[0].stats.volume_ratio);
    CHECK(wet <= 0.001 * p.s->count);
    pool_end(&p);
    block_free(&b);
}

static void test_no_liquid_enters_a_body_that_plunges(void)
{
    check_plunge(2, 0, 2);
    check_plunge(2, 0, 1);
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
        printf("      dt %.4f: at most %d of %d particles in it; centre at %.3f m\n", dt, wet, p.s->count,
            (double)p.w.s->bodies[0].center.x);
        CHECK(wet <= 0.001 * p.s->count);
        CHECK_NEAR(p.w.s->bodies[0].center.x, 0.1 + 2.0 / 24 + 0.6, 0.03);
        pool_end(&p);
        block_free(&b);
    }
}

/* Height of the lower side of a mat of 2D squares at x. */
static double mat_below(const block *b, const fsi_vec3 *x, double at)
{
    int i;
    for (i = 0; i < b->nx; i++) {
        const fsi_vec3 l = x[block_at(b, i, 0, 0)], r = x[block_at(b, i + 1, 0, 0)];
        if (at > (double)r.x) continue;
        return (double)l.y + ((double)r.y - (double)l.y) * (at - (double)l.x) / ((double)r.x - (double)l.x);
    }
    return (double)x[block_at(b, b->nx, 0, 0)].y;
}

/* A column of liquid drops on a mat across the box, whose ends are held: how much gets below it. */
static void test_a_thin_mat_holds_a_falling_column(void)
{
    int thick, i;
    for (thick = 1; thick <= 2; thick++) { /* times dx/2 */
        pool p = pool_of(2, 24);
        block b = block_make(24, 1, 0, 1 / 24.0);
        fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)b.vertices * sizeof *x);
        double sag = 1;
        int id, below = 0, wet;
        for (i = 0; i < b.vertices; i++) b.x[i].y *= (fsi_real)(0.5 * thick);
        p.w.material.young = (fsi_real)2e6;
        p.w.body.contact_points = 600;
        pool_begin(&p);
        id = pool_add(&p, &b, 0, 0.4);
        world_clamp(&p.w, id, &b, 0.03, -1);
        world_clamp(&p.w, id, &b, 0.97, 1);
        pool_immerse(&p);
        fill(p.s, box3(0.3, 0.5, 0, 0.7, 0.9, 0), v3(0, -1, 0));
        wet = run_wet(&p, 1.0 / 60, 60);
        CHECK(fsi_elastic_vertices(p.w.s, id, x, NULL) == FSI_OK);
        for (i = 0; i < b.vertices; i++) sag = fmin(sag, (double)x[i].y);
        for (i = 0; i < p.s->count; i++)
            below += (double)p.s->position[i].y < mat_below(&b, x, (double)p.s->position[i].x);
        printf("      %d dx/2 thick: %d of %d particles below it, at most %d in it; lowest point %.3f m\n", thick, below,
            p.s->count, wet, sag);
        CHECK(below <= 0.001 * p.s->count);
        free(x);
        pool_end(&p);
        block_free(&b);
    }
}
