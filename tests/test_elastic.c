/* test_elastic.c - elastic bodies move, bend, collide and rest as mechanics says, in full and in a subspace.
   SPDX-License-Identifier: MIT */
#include "kit/test_elastic.h"

/* ---- motion without forces
   ----------------------------------------------------------------------------------------- */

static void test_free_fall_is_exact(void)
{
    int dim, order, handles;
    for (dim = 2; dim <= 3; dim++) for (order = 1; order <= 2; order++) for (handles = 0; handles <= 8; handles += 8) {
        block b = block_make(4, 3, dim == 3 ? 3 : 0, 0.05);
        world w = world_of(dim);
        const double h = 1.0 / 60, t = 30 * h;
        fsi_vec3 from, to;
        w.desc.time_order = order;
        w.body.handles = handles;
        w.body.velocity = fsi_v3(2, 1, 0);
        if (!world_begin(&w)) return;
        world_add(&w, &b);
        from = w.s->bodies[0].center;
        world_run(&w, h, 30);
        to = w.s->bodies[0].center;
        /* Backward Euler falls g t (t + h) / 2, BDF2 g t^2 / 2. */
        CHECK_NEAR(dim == 3 ? to.z - from.z : to.y - from.y - REAL(t),
                   -9.81 * t * (order == 1 ? t + h : t) / 2, TOL(1e-10, 1e-5));
        CHECK_NEAR(to.x - from.x, 2 * t, TOL(1e-10, 1e-5));
        CHECK_NEAR(dim == 3 ? w.s->bodies[0].velocity.z : w.s->bodies[0].velocity.y - 1, -9.81 * t, TOL(1e-9, 1e-4));
        CHECK(w.s->stats.elastic_energy < TOL(1e-12, 1e-6));
        world_end(&w);
        block_free(&b);
    }
}

/* At any angle nothing pulls; in the subspace neither. */
static void test_a_turned_body_stays_at_rest(void)
{
    uint64_t random = 7;
    int k;
    for (k = 0; k < 12; k++) {
        const int dim = 2 + k % 2, count = 4;
        block b = block_make(count, 3, dim == 3 ? 3 : 0, 0.1);
        world w = world_of(dim);
        fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)b.vertices * sizeof *x),
                 *y = (fsi_vec3 *)malloc((size_t)b.vertices * sizeof *y);
        double most = 0;
        int v;
        w.desc.gravity = fsi_v3(0, 0, 0);
        w.body.handles = k % 4 < 2 ? 0 : 8;
        w.material.poisson = REAL(0.45);
        w.body.orientation = fsi_quat_from_axis_angle(
            dim == 2 ? fsi_v3(0, 0, 1) : fsi_v3(REAL(test_random(&random) - 0.5), REAL(test_random(&random) - 0.5), 1),
            REAL(6.3 * test_random(&random)));
        if (!world_begin(&w)) return;
        world_add(&w, &b);
        CHECK(fsi_elastic_vertices(w.s, 0, x, NULL) == FSI_OK);
        world_run(&w, 1.0 / 60, 60);
        CHECK(fsi_elastic_vertices(w.s, 0, y, NULL) == FSI_OK);
        for (v = 0; v < b.vertices; v++) most = fmax(most, (double)fsi_v3_norm(fsi_v3_sub(x[v], y[v])));
        CHECK(most < TOL(1e-10, 1e-5));
        free(x);
        free(y);
        world_end(&w);
        block_free(&b);
    }
}

/* A free body that spins keeps its angular momentum to 0.2 % a turn with BDF2. */
static void test_a_spinning_body_goes_on_spinning(void)
{
    int handles;
    for (handles = 0; handles <= 10; handles += 10) {
        block b = block_make(6, 4, 4, 0.05);
        world w = world_of(3);
        const double spin = 5, turn = 2 * FSI_PI / spin;
        double before;
        w.desc.gravity = fsi_v3(0, 0, 0);
        w.body.handles = handles;
        w.body.angular_velocity = fsi_v3(0, 0, REAL(spin));
        if (!world_begin(&w)) return;
        world_add(&w, &b);
        before = (double)w.s->bodies[0].spin.z;
        /* lumped */
        CHECK_NEAR(before, (double)w.s->bodies[0].mass * (0.3 * 0.3 + 0.2 * 0.2) / 12 * spin, 0.1 * before);
        world_run(&w, 1.0 / 240, (int)(turn * 240));
        CHECK_NEAR(w.s->bodies[0].spin.z, before, 2e-3 * before);
        CHECK(fabs(w.s->stats.momentum[0]) + fabs(w.s->stats.momentum[1]) < TOL(1e-9, 1e-4));
        world_end(&w);
        block_free(&b);
    }
}

/* Two bodies meet in space: what one loses the other gets. */
static void test_a_collision_keeps_momentum(void)
{
    int handles;
    for (handles = 0; handles <= 8; handles += 8) {
        block b = block_make(3, 3, 3, 0.1);
        world w = world_of(3);
        double sum;
        w.desc.gravity = fsi_v3(0, 0, 0);
        w.body.handles = handles;
        w.body.velocity = fsi_v3(1, 0, 0);
        if (!world_begin(&w)) return;
        world_add(&w, &b);
        w.body.position = fsi_v3(REAL(0.4), REAL(0.05), REAL(0.03));
        w.body.velocity = fsi_v3(-1, 0, 0);
        w.material.density = 500;
        world_add(&w, &b);
        sum = w.s->stats.momentum[0];
        world_run(&w, 1.0 / 240, 120);
        CHECK((double)w.s->bodies[1].velocity.x > 0.3 && (double)w.s->bodies[0].velocity.x < 0.7);
        sum = (double)w.s->bodies[0].velocity.x * w.s->bodies[0].mass +
              (double)w.s->bodies[1].velocity.x * w.s->bodies[1].mass;
        CHECK_NEAR(sum, 0.5 * w.s->bodies[0].mass, TOL(1e-9, 1e-4));
        CHECK_NEAR(w.s->stats.momentum[0], 0.5 * w.s->bodies[0].mass, TOL(1e-9, 1e-4));
        CHECK(w.s->stats.deepest < 0.002);
        world_end(&w);
        block_free(&b);
    }
}

/* ---- statics
   ------------------------------------------------------------------------------------------------------- */

/* Area of the ends that belongs to a vertex of a block's face x = const, over that of a cell: Kuhn's diagonals. */
static double end_share(const block *b, int y, int z)
{
    double sum = 0;
    int i, j;
    for (i = -1; i < 1; i++) for (j = -1; j < 1; j++)
        if (y + i >= 0 && z + j >= 0 && y + i < b->ny && z + j < b->nz) sum += i == j ? 2 : 1;
    return sum / 6;
}

/* A bar under tension: strain along and across give back E and nu. */
static void test_tension_gives_back_the_moduli(void)
{
    static const double nu[4] = { 0, 0.3, 0.45, 0.49 };
    int c, k, v;
    for (c = 0; c < 4; c++) {
        block b = block_make(6, 3, 3, 0.1 / 3);
        world w = world_of(3);
        const double stress = 500, length = 6 * b.a;
        fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)b.vertices * sizeof *x);
        double along, across;
        w.desc.gravity = fsi_v3(0, 0, 0);
        w.desc.time_order = 1;
        w.desc.iterations = 400;
        w.body.handles = 0;
        w.material.poisson = REAL(nu[c]);
        if (!world_begin(&w)) return;
        world_add(&w, &b);
        for (k = 0; k < 20; k++) {
            for (v = 0; v < b.vertices; v++) {
                const int at_x = v % (b.nx + 1), y = v / (b.nx + 1) % (b.ny + 1), z = v / (b.nx + 1) / (b.ny + 1);
                const double f = stress * end_share(&b, y, z) * b.a * b.a;
                if (at_x == 0 || at_x == b.nx)
                    CHECK(fsi_elastic_add_force(w.s, 0, b.x[v], fsi_v3(REAL(at_x ? f : -f), 0, 0)) == FSI_OK);
            }
            world_run(&w, 0.5, 1);
        }
        CHECK(fsi_elastic_vertices(w.s, 0, x, NULL) == FSI_OK);
        along = (double)(x[block_at(&b, 6, 1, 1)].x - x[block_at(&b, 0, 1, 1)].x) / length - 1;
        across = (double)(x[block_at(&b, 3, 3, 1)].y - x[block_at(&b, 3, 0, 1)].y) / (3 * b.a) - 1;
        CHECK_NEAR(stress / along, 1e5, 2e3);
        CHECK_NEAR(-across / along, nu[c], 0.02 * fmax(nu[c], 0.1));
        free(x);
        world_end(&w);
        block_free(&b);
    }
}

/* Deflection of a clamped beam under its own weight: Timoshenko's, from below (linear elements are too stiff in
   bending), nearer with each refinement; the subspace follows the full body to 5 %. */
static void test_a_clamped_beam_bends(void)
{
    const double g = 0.2, length = 0.4, side = 0.1, e = 1e5, area = side * side,
                 inertia = side * side * side * side / 12;
    const double load = 1000 * area * g, theory = load * pow(length, 4) / (8 * e * inertia) +
                                                  load * length * length / (2 * 0.5 * e * 5 / 6 * area);
    double tip[3];
    int k;
    for (k = 0; k < 3; k++) {
        const int n = k == 0 ? 2 : 4;
        block b = block_make(4 * n, n, n, side / n);
        world w = world_of(3);
        fsi_vec3 x[600];
        w.desc.gravity = fsi_v3(0, 0, REAL(-g));
        w.desc.time_order = 1;
        w.desc.iterations = 100;
        w.body.handles = k == 2 ? 60 : 0;
        w.body.contact_points = 0;
        w.material.poisson = 0;
        w.material.damping = 1;
        if (!world_begin(&w)) return;
        world_clamp(&w, world_add(&w, &b), &b, 0, -1);
        world_run(&w, 0.5, 15);
        CHECK(b.vertices <= 600 && fsi_elastic_vertices(w.s, 0, x, NULL) == FSI_OK);
        tip[k] = side / 2 - (double)x[block_at(&b, b.nx, n / 2, n / 2)].z;
        world_end(&w);
        block_free(&b);
    }
    CHECK(tip[0] < tip[1] && tip[1] < theory && tip[1] > 0.8 * theory);
    CHECK(theory - tip[1] < 0.45 * (theory - tip[0]));
    CHECK_NEAR(tip[2], tip[1], 0.05 * tip[1]);
}

/* Flattened, turned inside out or scattered, a body finds its volume again, and its shape; but one that was scattered
   may keep a corner that winds round twice. */
static void test_a_crushed_body_recovers(void)
{
    uint64_t random = 5;
    int k, v;
    for (k = 0; k < 8; k++) {
        const int dim = k < 6 ? 3 : 2;
        block b = block_make(4, 4, dim == 3 ? 4 : 0, 0.05);
        world w = world_of(dim);
        fsi_vec3 *x = (fsi_vec3 *)malloc((size_t)b.vertices * sizeof *x);
        w.desc.gravity = fsi_v3(0, 0, 0);
        w.body.handles = k % 2 ? 10 : 0;
        w.material.damping = REAL(0.02);
        if (!world_begin(&w)) return;
        world_add(&w, &b);
        for (v = 0; v < b.vertices; v++) {
            x[v] = b.x[v];
            if (k / 2 == 0) x[v].z = 0;                                 /* flat */
            else if (k / 2 == 1) x[v].z = -x[v].z;                      /* inside out */
            else x[v] = fsi_v3(REAL(0.2 * test_random(&random)), REAL(0.2 * test_random(&random)),
                               dim == 3 ? REAL(0.2 * test_random(&random)) : 0);
        }
        CHECK(fsi_elastic_set_vertices(w.s, 0, x, NULL) == FSI_OK);
        world_run(&w, 1.0 / 60, 300);
        CHECK_NEAR(w.s->bodies[0].stats.volume_ratio, 1, k / 2 < 2 ? 0.01 : TOL(0.01, 0.15));
        if (k / 2 < 2) CHECK(w.s->bodies[0].stats.stretch_min > 0.9 && w.s->bodies[0].stats.stretch_max < 1.1);
        else CHECK(w.s->bodies[0].stats.stretch_max < 1.5);
        free(x);
        world_end(&w);
        block_free(&b);
    }
}

/* ---- contact
   -------------------------------------------------------------------------------------------------------- */

/* A block dropped on the floor comes to rest; the floor bears its weight, and the block does not creep. */
static void test_a_block_rests_on_the_floor(void)
{
    int k;
    for (k = 0; k < 4; k++) {
        const int dim = 2 + k % 2;
        block b = block_make(4, 4, dim == 3 ? 4 : 0, 0.05);
        world w = world_of(dim);
        fsi_vec3 force, torque, at;
        int ground;
        w.body.handles = k < 2 ? 0 : 8;
        w.body.position = dim == 3 ? fsi_v3(0, 0, REAL(0.05)) : fsi_v3(0, REAL(0.05), 0);
        if (!world_begin(&w)) return;
        ground = world_floor(&w, 0.5);
        world_add(&w, &b);
        world_run(&w, 1.0 / 60, 240);
        at = w.s->bodies[0].center;
        CHECK(w.s->stats.kinetic_energy < 1e-3);
        CHECK(fsi_elastic_obstacle_reaction(w.s, ground, &force, &torque) == FSI_OK);
        CHECK_NEAR(dim == 3 ? force.z : force.y, -9.81 * w.s->bodies[0].mass, 0.02 * 9.81 * w.s->bodies[0].mass);
        world_run(&w, 1.0 / 60, 240);
        CHECK((double)fsi_v3_norm(fsi_v3_sub(at, w.s->bodies[0].center)) < 1e-4);
        CHECK(w.s->stats.kinetic_energy < 1e-5 && w.s->stats.deepest < 1e-4);
        world_end(&w);
        block_free(&b);
    }
}

/* Down an incline of tangent 0.5: it sticks where mu is 0.6, and slides as theory says where it is 0.4. */
static void test_friction_holds_or_slides(void)
{
    int k;
    for (k = 0; k < 4; k++) {
        const double mu = k % 2 ? 0.4 : 0.6, tilt = atan(0.5), t = 1.5, a = 9.81 * (sin(tilt) - mu * cos(tilt));
        block b = block_make(4, 4, 2, 0.05);
        world w = world_of(3);
        double from;
        w.desc.gravity = fsi_v3(REAL(9.81 * sin(tilt)), 0, REAL(-9.81 * cos(tilt)));
        w.body.handles = k < 2 ? 0 : 8;
        w.body.friction = REAL(mu);
        w.material.young = REAL(1e6);
        if (!world_begin(&w)) return;
        world_floor(&w, mu);
        world_add(&w, &b);
        from = (double)w.s->bodies[0].center.x;
        world_run(&w, 1.0 / 120, (int)(t * 120));
        CHECK_NEAR(w.s->bodies[0].center.x - REAL(from), mu > 0.5 ? 0 : a * t * t / 2,
                   mu > 0.5 ? 2e-3 : 0.03 * a * t * t / 2);
        CHECK_NEAR(w.s->bodies[0].velocity.x, mu > 0.5 ? 0 : a * t, mu > 0.5 ? 1e-3 : 0.03 * a * t);
        world_end(&w);
        block_free(&b);
    }
}

/* Three blocks on top of each other stand, each above the one below. */
static void test_a_stack_stands(void)
{
    block b = block_make(3, 3, 3, 0.2 / 3);
    world w = world_of(3);
    fsi_vec3 at[3];
    int k;
    w.body.handles = 8;
    w.material.damping = REAL(0.03); /* else a tower of jelly sways for long */
    if (!world_begin(&w)) return;
    world_floor(&w, 0.5);
    for (k = 0; k < 3; k++) {
        w.body.position = fsi_v3(REAL(0.01 * k), 0, REAL(0.21 * k + 0.01));
        world_add(&w, &b);
    }
    world_run(&w, 1.0 / 60, 240);
    for (k = 0; k < 3; k++) at[k] = w.s->bodies[k].center;
    world_run(&w, 1.0 / 60, 240);
    for (k = 0; k < 3; k++) CHECK((double)fsi_v3_norm(fsi_v3_sub(at[k], w.s->bodies[k].center)) < 2e-4);
    CHECK((double)at[1].z - (double)at[0].z > 0.18 && (double)at[2].z - (double)at[1].z > 0.18);
    CHECK(w.s->stats.deepest < 1e-3);
    world_end(&w);
    block_free(&b);
}

/* ---- attachments and skins
   ------------------------------------------------------------------------------------------ */

/* A body that hangs on pins pulls on them with its weight; a drag pulls with k times its stretch. */
static void test_pins_bear_the_weight(void)
{
    int handles;
    for (handles = 0; handles <= 8; handles += 8) {
        block b = block_make(4, 4, 4, 0.05);
        world w = world_of(3);
        fsi_elastic_attachment_desc d = fsi_elastic_default_attachment_desc();
        fsi_vec3 force;
        double sum = 0;
        int v, id[25], n = 0;
        w.body.handles = handles;
        w.material.damping = REAL(0.05);
        if (!world_begin(&w)) return;
        d.body = world_add(&w, &b);
        for (v = 0; v < b.vertices; v++) if ((double)b.x[v].z > 0.19) {
            d.vertex = v;
            d.target = b.x[v];
            CHECK(fsi_elastic_attach(w.s, &d, &id[n++]) == FSI_OK);
        }
        world_run(&w, 1.0 / 60, 240);
        for (v = 0; v < n; v++) {
            CHECK(fsi_elastic_attachment_force(w.s, id[v], &force) == FSI_OK);
            sum += (double)force.z;
        }
        CHECK_NEAR(sum, 9.81 * w.s->bodies[0].mass, 0.01 * 9.81 * w.s->bodies[0].mass);
        for (v = 0; v < n; v++) CHECK(fsi_elastic_detach(w.s, id[v]) == FSI_OK);
        CHECK(fsi_elastic_detach(w.s, id[0]) == FSI_ERROR_ARGUMENT);
        world_run(&w, 1.0 / 60, 6);
        CHECK((double)w.s->bodies[0].velocity.z < -0.85); /* BDF2 feels what changes at once half a step late */
        world_end(&w);
        block_free(&b);
    }
}

/* A skin is exact at rest and in affine motion; its normals turn by the cofactor; a push on it is a push on the
   body. */
static void test_a_skin_follows_its_body(void)
{
    int handles;
    for (handles = 0; handles <= 12; handles += 12) {
        block b = block_make(4, 4, 4, 0.05);
        world w = world_of(3);
        fsi_elastic_skin *skin;
        fsi_vec3 rest[50], n[50], x[50], m[50], f[50], moved[125];
        uint64_t random = 3;
        int k, v;
        w.body.handles = handles;
        w.desc.gravity = fsi_v3(0, 0, 0);
        if (!world_begin(&w)) return;
        world_add(&w, &b);
        for (k = 0; k < 50; k++) {
            rest[k] = fsi_v3(REAL(0.2 * test_random(&random)), REAL(0.2 * test_random(&random)),
                             REAL(0.2 * test_random(&random)));
            n[k] = fsi_v3_unit(fsi_v3(REAL(test_random(&random) - 0.5), REAL(test_random(&random) - 0.5), REAL(0.3)));
            f[k] = fsi_v3(REAL(0.1), 0, 0);
        }
        if (!CHECK(fsi_elastic_skin_create(&skin, w.s, 0, rest, n, 50) == FSI_OK)) return;
        CHECK(fsi_elastic_skin_update(skin, w.s, x, m) == FSI_OK);
        for (k = 0; k < 50; k++) {
            CHECK((double)fsi_v3_norm(fsi_v3_sub(x[k], rest[k])) < 1e-7);
            CHECK((double)fsi_v3_norm(fsi_v3_sub(m[k], n[k])) < 1e-4);
        }

        /* Shear: x + z / 2; cof F = [1 0 0; 0 1 0; -1/2 0 1]. */
        for (v = 0; v < b.vertices; v++) moved[v] = fsi_v3(b.x[v].x + b.x[v].z / 2, b.x[v].y, b.x[v].z);
        CHECK(fsi_elastic_set_vertices(w.s, 0, moved, NULL) == FSI_OK);
        CHECK(fsi_elastic_skin_update(skin, w.s, x, m) == FSI_OK);
        for (k = 0; k < 50; k++) {
            const fsi_vec3 want = fsi_v3(rest[k].x + rest[k].z / 2, rest[k].y, rest[k].z),
                normal = fsi_v3_unit(fsi_v3(n[k].x, n[k].y, n[k].z - n[k].x / 2));
            CHECK((double)fsi_v3_norm(fsi_v3_sub(x[k], want)) < 1e-6);
            CHECK((double)fsi_v3_norm(fsi_v3_sub(m[k], normal)) < 1e-3);
        }
        CHECK(fsi_elastic_reset_body(w.s, 0, fsi_v3(0, 0, 0), fsi_quat_identity(), fsi_v3(0, 0, 0), fsi_v3(0, 0, 0)) ==
              FSI_OK);
        CHECK(fsi_elastic_skin_push(skin, w.s, f) == FSI_OK);
        world_run(&w, 1.0 / 60, 1);
        CHECK_NEAR(w.s->stats.momentum[0], 50 * 0.1 / 60.0 * 2 / 3, 1e-6); /* the first step of BDF2: H = 2 h / 3 */
        fsi_elastic_skin_destroy(skin);
        world_end(&w);
        block_free(&b);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_free_fall_is_exact);
    RUN(test_a_turned_body_stays_at_rest);
    RUN(test_a_spinning_body_goes_on_spinning);
    RUN(test_a_collision_keeps_momentum);
    RUN(test_tension_gives_back_the_moduli);
    RUN(test_a_clamped_beam_bends);
    RUN(test_a_crushed_body_recovers);
    RUN(test_a_block_rests_on_the_floor);
    RUN(test_friction_holds_or_slides);
    RUN(test_a_stack_stands);
    RUN(test_pins_bear_the_weight);
    RUN(test_a_skin_follows_its_body);
    return TEST_END();
}
