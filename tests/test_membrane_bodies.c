/* test_membrane_bodies.c - bodies on a membrane: momentum, floating and sinking, lifting, what is refused.
   SPDX-License-Identifier: MIT */
#include "kit/test_menisci.h"

/* A world with one ball of radius r cells and `density`, its centre at (x, y, z) cells. */
static fsi_rigid *world_with(int dim, fsi_rigid_kind kind, double r, double density, fsi_vec3 at, fsi_vec3 gravity,
    fsi_vec3 velocity)
{
    fsi_rigid_desc d = fsi_rigid_default_desc();
    fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
    fsi_rigid_shape ball = fsi_rigid_sphere((fsi_real)(r * MEMBRANE_DX));
    fsi_rigid *w = NULL;
    int id = -1;
    d.dim = dim;
    d.gravity = gravity;
    ball.density = (fsi_real)density;
    b.kind = kind;
    b.shapes = &ball;
    b.shape_count = 1;
    b.pose.position = fsi_v3_scale(at, (fsi_real)MEMBRANE_DX);
    b.velocity = velocity;
    CHECK(fsi_rigid_create(&w, &d) == FSI_OK && fsi_rigid_add_body(w, &b, &id) == FSI_OK && id == 0);
    return w;
}

/* The deepest vertex in body 0 as the world has it [cells]; how many have FSI_FRONT_FIXED, and how wide the part of
   the ball is that they lie on: angle from its lowest point. */
static double deepest(const fsi_membrane *m, const fsi_rigid *w, int *contacts, double *angle)
{
    const fsi_vec3 c = w->body[0]->pose.position;
    double deep = 0;
    int i;
    *contacts = 0;
    *angle = 0;
    for (i = 0; i < m->front->vertex_count; i++) {
        const fsi_vec3 x = fsi_v3_sub(m->front->position[i], c);
        const double up = (double)fsi__axis(x, m->dim - 1), away = (double)fsi_v3_norm(x);
        deep = fmax(deep, -(double)fsi_rigid_distance(w, 0, m->front->position[i]) / MEMBRANE_DX);
        if (!(m->front->flags[i] & (uint32_t)FSI_FRONT_FIXED)) continue;
        ++*contacts;
        *angle = fmax(*angle, acos(fmax(-1, fmin(1, -up / away))));
    }
    return deep;
}

/* A ball hits a drop, no gravity: what the drop loses the ball gets, in each solve. */
static void test_what_one_loses_the_other_gets(void)
{
    int dim, k, a, contacts, most;
    for (dim = 2; dim <= 3; dim++) {
        fsi_context c = fsi_default_context();
        front_shape s = { 2, 0, 0, NULL, NULL };
        fsi_membrane_desc d;
        fsi_membrane *m;
        fsi_rigid *w;
        double mass, angle, given[3] = { 0, 0, 0 }, scale, volume;
        s.dim = dim;
        membrane_add_drop(&s, 9.1, 9.2, 9, 5, 0);
        d = membrane_desc(&c, &s, 22);
        w = world_with(dim, FSI_RIGID_DYNAMIC, 2.5, 1500, dim == 3 ? front_v3(10, 9.6, 16.45) : front_v3(10, 16.65, 0),
            fsi_v3(0, 0, 0), dim == 3 ? front_v3(0.02, 0, -0.1) : front_v3(0.02, -0.1, 0));
        d.world = w;
        m = membrane_make(&d);
        volume = m->stats.volume;
        mass = dim == 3 ? 1500 * 4 * FSI_PI / 3 * pow(2.5 * MEMBRANE_DX, 3) : 1500 * FSI_PI * pow(2.5 * MEMBRANE_DX, 2);
        scale = 0.1 * mass;
        most = 0;
        for (k = 0; k < (dim == 3 ? 16 : 40); k++) {
            const fsi_vec3 before = w->body[0]->velocity;
            fsi_vec3 after;
            if (!membrane_step(m, 2e-3)) break;
            after = w->body[0]->velocity;
            for (a = 0; a < dim; a++) {
                const double gain = mass * ((double)fsi__axis(after, a) - (double)fsi__axis(before, a));
                given[a] += gain;
                CHECK_NEAR(m->stats.body_impulse[a], gain, TOL(1e-10, 1e-4) * scale);
                CHECK_NEAR(m->stats.wall_impulse[a], 0, TOL(1e-8, 1e-4) * scale);
            }
            CHECK(deepest(m, w, &contacts, &angle) <= 1e-4);
            most = contacts > most ? contacts : most;
        }
        CHECK(most >= (dim == 3 ? 8 : 4) && fabs(given[dim - 1]) > 0.3 * scale);
        CHECK_NEAR(m->stats.volume, volume, 1e-3 * volume);
        CHECK_NEAR(w->stats.liquid_impulse[dim - 1], m->stats.body_impulse[dim - 1], TOL(1e-12, 1e-6) * scale);
        fsi_membrane_destroy(m);
        fsi_rigid_destroy(w);
        front_free(&s);
    }
}

/* A cylinder heavier than the liquid, laid onto it, at contact angle 180 degrees. */
static void test_cylinder_floats_where_it_should(void)
{
    const double r = 6, l = 6, heavy = 1.2, high = 14.3, drag = 3;
    const int wide = 64, steps = 500, from = 250;
    fsi_context c = fsi_default_context();
    front_shape s = { 2, 0, 0, NULL, NULL };
    fsi_membrane_desc d;
    fsi_membrane *m;
    fsi_rigid *w;
    const double low = meniscus_angle(heavy, FSI_PI, r, l);
    double angle, phi = 0, y = 0, held = 0, level, deep = 0;
    int k, contacts;
    membrane_add_pool(&s, wide, high, 0, 1);
    d = membrane_desc(&c, &s, wide);
    d.n[1] = 36;
    d.gravity = front_v3(0, -9.81, 0);
    d.surface_tension = (fsi_real)(MEMBRANE_RHO * 9.81 * l * l * MEMBRANE_DX * MEMBRANE_DX);
    w = world_with(2, FSI_RIGID_DYNAMIC, r, heavy * MEMBRANE_RHO, front_v3(wide / 2, high + 3, 0), d.gravity,
        fsi_v3(0, 0, 0));
    d.world = w;
    m = membrane_make(&d);
    for (k = 0; k < steps; k++) { /* the world's force: drag, so that it comes to rest */
        w->force[0] = fsi_v3_scale(w->body[0]->velocity, (fsi_real)-drag);
        if (!membrane_step(m, 2e-3)) break;
        deep = fmax(deep, deepest(m, w, &contacts, &angle));
        if (k < from) continue;
        phi += angle / (steps - from);
        y += (double)w->body[0]->pose.position.y / MEMBRANE_DX / (steps - from);
        held += m->stats.body_impulse[1] / 2e-3 / (steps - from);
    }
    level = high + heavy * FSI_PI * r * r / wide; /* displaced: as much as the weight */
    printf("   phi %.2f, %.2f degrees; centre %.3f, %.3f cells; weight %.4f\n", phi * 180 / FSI_PI, low * 180 / FSI_PI,
        y - level, meniscus_height(low, FSI_PI, r, l), held / (heavy * MEMBRANE_RHO * 9.81 * FSI_PI * r * r * 1e-6));
    CHECK(deep <= 1e-4);
    CHECK_NEAR(phi * 180 / FSI_PI, low * 180 / FSI_PI, 3);
    CHECK_NEAR(y - level, meniscus_height(low, FSI_PI, r, l), 0.3);
    CHECK_NEAR(held / (heavy * MEMBRANE_RHO * 9.81 * FSI_PI * r * r * 1e-6), 1, 0.03);
    CHECK_NEAR(m->stats.volume, wide * high * 1e-6, TOL(1e-3, 1e-3) * wide * high * 1e-6);
    fsi_membrane_destroy(m);
    fsi_rigid_destroy(w);
    front_free(&s);
}

/* A cylinder at its balance stays there, and the liquid beside it: for 2 s nothing moves faster than 1e-2 sqrt(sigma/
   (rho R)) after the first 0.5 s, which bounds how far from the balance the mesh began. It wanders by less than 0.05
   cells a second; no vertex at its rim comes and goes. */
static void test_floating_cylinder_rests(void)
{
    static const double rate[3] = { 60, 240, 240 }, at[3] = { 36, 36.37, 36 }, density[3] = { 1.2, 1.2, 0.6 };
    const double r = 6, l = 6, high = 12.3;
    const int wide = 72;
    int k, i;
    for (k = 0; k < 3; k++) {
        const double sigma = MEMBRANE_RHO * 9.81 * l * l * MEMBRANE_DX * MEMBRANE_DX;
        const double still = 1e-2 * sqrt(sigma / (MEMBRANE_RHO * r * MEMBRANE_DX));
        const double phi = meniscus_angle(density[k], FSI_PI, r, l), y = meniscus_height(phi, FSI_PI, r, l);
        double both[2], from = 0, fastest = 0, liquid = 0;
        fsi_context c = fsi_default_context();
        front_shape s = { 2, 0, 0, NULL, NULL };
        fsi_membrane_desc d;
        fsi_membrane *m;
        fsi_rigid *w;
        int moved = 0;
        both[0] = both[1] = phi;
        membrane_add_dented_pool(&s, wide, high, at[k], y, r, l, both, 0);
        d = membrane_desc(&c, &s, wide);
        d.n[1] = 28;
        d.gravity = front_v3(0, -9.81, 0);
        d.surface_tension = (fsi_real)sigma;
        w = world_with(2, FSI_RIGID_DYNAMIC, r, density[k] * MEMBRANE_RHO, front_v3(at[k], high + y, 0), d.gravity,
            fsi_v3(0, 0, 0));
        d.world = w;
        m = membrane_make(&d);
        for (i = 0; i < 2 * rate[k] && membrane_step(m, 1 / rate[k]); i++) {
            if (i < rate[k] / 2) from = (double)w->body[0]->pose.position.x;
            else {
                fastest = fmax(fastest, (double)fsi_v3_norm(w->body[0]->velocity));
                liquid = fmax(liquid, m->stats.max_speed);
                moved += m->stats.captured + m->stats.released;
            }
        }
        printf("   density %.1f, 1/%.0f s: body %.1e, all %.1e m/s; %.3f cells along; %d\n", density[k], rate[k],
            fastest, liquid, ((double)w->body[0]->pose.position.x - from) / MEMBRANE_DX, moved);
        CHECK(fastest <= still && liquid <= still);
        CHECK(fabs((double)w->body[0]->pose.position.x - from) <= 1.5 * 0.05 * MEMBRANE_DX);
        CHECK_NEAR((double)w->body[0]->pose.position.y / MEMBRANE_DX, high + y, 0.1);
        CHECK(moved <= 4);
        fsi_membrane_destroy(m);
        fsi_rigid_destroy(w);
        front_free(&s);
    }
}

/* A ball in 3D, 2.5 times as dense as the liquid. The level far away is that of the liquid and what the ball displaces:
   its own weight, however far the surface is bent. */
static void test_ball_rests_at_its_depth(void)
{
    const double r = 2.2, l = 3, density = 2.5, high = 5.3, dt = 1.0 / 60, volume = 4 * FSI_PI / 3 * r * r * r;
    const int wide = 16, steps = 14;
    const double sigma = MEMBRANE_RHO * 9.81 * l * l * MEMBRANE_DX * MEMBRANE_DX;
    double depth, level, held = 0, fastest = 0, angle;
    const double phi = meniscus_ball_angle(density, r, l, &depth), y = r * cos(phi) - depth;
    fsi_context c = fsi_default_context();
    front_shape s = { 3, 0, 0, NULL, NULL };
    fsi_membrane_desc d;
    fsi_membrane *m;
    fsi_rigid *w;
    int k, contacts;
    membrane_add_pool_around(&s, wide, high, r, l, phi, depth);
    d = membrane_desc(&c, &s, wide);
    d.n[2] = 10;
    d.gravity = front_v3(0, 0, -9.81);
    d.surface_tension = (fsi_real)sigma;
    w = world_with(3, FSI_RIGID_DYNAMIC, r, density * MEMBRANE_RHO, front_v3(wide / 2, wide / 2, high + y), d.gravity,
        fsi_v3(0, 0, 0));
    d.world = w;
    m = membrane_make(&d);
    level = (m->stats.volume * 1e9 + density * volume) / (wide * wide);
    for (k = 0; k < steps && membrane_step(m, dt); k++) {
        CHECK(deepest(m, w, &contacts, &angle) <= TOL(1e-4, 1e-3));
        if (k < steps / 2) continue;
        held += m->stats.body_impulse[2] / dt / (steps - steps / 2);
        fastest = fmax(fastest, (double)fsi_v3_norm(w->body[0]->velocity));
    }
    printf("   height %.3f, want %.3f cells; weight %.4f; speed %.1e m/s\n", (double)w->body[0]->pose.position.z * 1e3
        - level, y, held / (density * volume * MEMBRANE_RHO * 9.81e-9), fastest);
    CHECK_NEAR((double)w->body[0]->pose.position.z * 1e3 - level, y, 0.3);
    CHECK_NEAR(held, density * volume * MEMBRANE_RHO * 9.81e-9, 0.03 * held);
    CHECK(fastest <= 1e-2 * sqrt(sigma / (MEMBRANE_RHO * r * MEMBRANE_DX)));
    fsi_membrane_destroy(m);
    fsi_rigid_destroy(w);
    front_free(&s);
}

/* A cylinder beside a wall, where the surface is level: as beside another one as far behind it. Held at a height y, it
   is pushed to the wall by rho g h^2/2, h the depth at the wall: tension has the same direction there and far away. */
static void test_cylinder_is_drawn_to_its_image(void)
{
    const double r = 4, l = 6, high = 12.3, y = -1.5, away[2] = { 7, 10 };
    const int wide = 56;
    int k, i;
    for (k = 0; k < 2; k++) {
        const double sigma = MEMBRANE_RHO * 9.81 * l * l * MEMBRANE_DX * MEMBRANE_DX;
        double phi[2], h, force = 0, want;
        fsi_context c = fsi_default_context();
        front_shape s = { 2, 0, 0, NULL, NULL };
        fsi_membrane_desc d;
        fsi_membrane *m;
        fsi_rigid *w;
        phi[0] = meniscus_to_wall(y, r, l, away[k], &h);
        phi[1] = meniscus_to_level(y, r, l);
        membrane_add_dented_pool(&s, wide, high, away[k], y, r, l, phi, 1);
        d = membrane_desc(&c, &s, wide);
        d.n[1] = 24;
        d.gravity = front_v3(0, -9.81, 0);
        d.surface_tension = (fsi_real)sigma;
        w = world_with(2, FSI_RIGID_KINEMATIC, r, 1000, front_v3(away[k], high + y, 0), d.gravity, fsi_v3(0, 0, 0));
        d.world = w;
        m = membrane_make(&d);
        for (i = 0; i < 160 && membrane_step(m, 5e-3); i++)
            if (i >= 80) force -= m->stats.body_impulse[0] / (80 * 5e-3);
        want = MEMBRANE_RHO * 9.81 * h * h * MEMBRANE_DX * MEMBRANE_DX / 2;
        printf("   %.0f cells from the wall, %.2f deep there: %.4f N/m, want %.4f\n", away[k], h, force, want);
        CHECK_NEAR(force, want, 0.02 * want);
        fsi_membrane_destroy(m);
        fsi_rigid_destroy(w);
        front_free(&s);
    }
}

/* A ball pressed into a pool and lifted out of it by its own velocity: all lets go. */
static void test_lifting_lets_go(void)
{
    fsi_context c = fsi_default_context();
    front_shape s = { 2, 0, 0, NULL, NULL };
    fsi_membrane_desc d;
    fsi_membrane *m;
    fsi_rigid *w;
    double angle;
    int k, contacts = 0, most = 0;
    membrane_add_pool(&s, 32, 8.3, 0, 1);
    d = membrane_desc(&c, &s, 32);
    d.gravity = front_v3(0, -9.81, 0);
    w = world_with(2, FSI_RIGID_KINEMATIC, 3, 1000, front_v3(16.2, 8.3 + 3, 0), fsi_v3(0, 0, 0),
        front_v3(0, -0.05, 0));
    d.world = w;
    m = membrane_make(&d);
    for (k = 0; k < 80 && membrane_step(m, 1e-3); k++) {
        CHECK(deepest(m, w, &contacts, &angle) <= 1e-4);
        most = contacts > most ? contacts : most;
        if (k == 29) CHECK(fsi_rigid_set_velocity(w, 0, front_v3(0, 0.05, 0), fsi_v3(0, 0, 0)) == FSI_OK);
    }
    CHECK(most >= 5 && contacts == 0 && m->stats.contacts == 0);
    fsi_membrane_destroy(m);
    fsi_rigid_destroy(w);
    front_free(&s);
}

/* A state goes on as if it had not been saved; a step that fails leaves liquid and world as they were. */
static void test_states_and_failures(void)
{
    fsi_context c = fsi_default_context();
    front_shape s = { 2, 0, 0, NULL, NULL };
    fsi_membrane_desc d;
    fsi_membrane *m, *other = NULL;
    fsi_rigid *w;
    fsi_rigid_desc flat = fsi_rigid_default_desc();
    unsigned char *liquid, *solid;
    size_t liquid_size = 0, solid_size = 0;
    uint64_t hash[2];
    fsi_pose under;
    int k;
    membrane_add_pool(&s, 24, 8.3, 0, 1);
    d = membrane_desc(&c, &s, 24);
    d.gravity = front_v3(0, -9.81, 0);
    w = world_with(2, FSI_RIGID_DYNAMIC, 3, 1200, front_v3(12.2, 8.3 + 2.9, 0), d.gravity, fsi_v3(0, 0, 0));
    d.world = w;
    m = membrane_make(&d);
    for (k = 0; k < 8; k++) membrane_step(m, 2e-3);
    CHECK(fsi_membrane_save(m, NULL, 0, &liquid_size) == FSI_OK && fsi_rigid_save(w, NULL, 0, &solid_size) == FSI_OK);
    liquid = (unsigned char *)malloc(liquid_size);
    solid = (unsigned char *)malloc(solid_size);
    CHECK(fsi_membrane_save(m, liquid, liquid_size, &liquid_size) == FSI_OK);
    CHECK(fsi_rigid_save(w, solid, solid_size, &solid_size) == FSI_OK);
    for (k = 0; k < 4; k++) membrane_step(m, 2e-3);
    hash[0] = fsi_membrane_hash(m);
    hash[1] = fsi_rigid_hash(w);
    CHECK(fsi_membrane_load(m, liquid, liquid_size) == FSI_OK && fsi_rigid_load(w, solid, solid_size) == FSI_OK);
    for (k = 0; k < 4; k++) membrane_step(m, 2e-3);
    CHECK(hash[0] == fsi_membrane_hash(m) && hash[1] == fsi_rigid_hash(w));

    /* In the liquid, without a surface around it; between begin and end; a world of another dim. */
    under.position = front_v3(12.2e-3, 4e-3, 0);
    under.orientation = fsi_quat_identity();
    CHECK(fsi_rigid_teleport(w, 0, under) == FSI_OK);
    hash[0] = fsi_membrane_hash(m);
    hash[1] = fsi_rigid_hash(w);
    CHECK(fsi_membrane_step(m, (fsi_real)1e-3) == FSI_ERROR_MESH && fsi_membrane_error(m)->element == 0);
    CHECK(hash[0] == fsi_membrane_hash(m) && hash[1] == fsi_rigid_hash(w));
    CHECK(fsi_membrane_create(&other, &d) == FSI_ERROR_MESH && !other);
    CHECK(fsi_rigid_load(w, solid, solid_size) == FSI_OK && fsi_rigid_begin_step(w, (fsi_real)1e-3) == FSI_OK);
    CHECK(fsi_membrane_step(m, (fsi_real)1e-3) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_end_step(w, (fsi_real)1e-3) == FSI_OK && membrane_step(m, 1e-3));
    fsi_membrane_destroy(m);
    fsi_rigid_destroy(w);
    CHECK(fsi_rigid_create(&w, &flat) == FSI_OK);
    d.world = w;
    CHECK(fsi_membrane_create(&other, &d) == FSI_ERROR_ARGUMENT && !other);
    fsi_rigid_destroy(w);
    free(liquid);
    free(solid);
    front_free(&s);
    CHECK(c.bytes == 0);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_what_one_loses_the_other_gets);
    RUN_PHYSICS(test_cylinder_floats_where_it_should);
    RUN_PHYSICS(test_floating_cylinder_rests);
    RUN_PHYSICS(test_ball_rests_at_its_depth);
    RUN_PHYSICS(test_cylinder_is_drawn_to_its_image);
    RUN(test_lifting_lets_go);
    RUN(test_states_and_failures);
    return TEST_END();
}
