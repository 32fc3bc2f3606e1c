/* test_sph_sources.c - emitters and sinks, what particles carry, markers, a moving origin, copies.
   SPDX-License-Identifier: MIT */
#include "kit/test_sph_scenes.h"

enum { BOX, DISC, SHAPES };

/* 7 x 5 spacings, oblique, or a disc of 4.3 spacings; 2D: slots of 7 and 8.6. */
static fsi_emitter_desc make_tap(int dim, int form, double dx, double speed)
{
    fsi_emitter_desc d = fsi_emitter_default_desc();
    d.shape = form == BOX ? FSI_EMITTER_BOX : FSI_EMITTER_DISC;
    d.center = v3(0.1, -0.2, dim == 2 ? 0 : 0.3);
    d.direction = v3(1, 2, dim == 2 ? 0 : -2);
    d.half_width = (fsi_real)(3.5 * dx);
    d.half_height = (fsi_real)(2.5 * dx);
    d.side = v3(0, 1, dim == 2 ? 0 : 3);
    d.radius = (fsi_real)(4.3 * dx);
    d.speed = (fsi_real)speed;
    return d;
}

/* The cross-section of make_tap. */
static double tap_area(int dim, int form, double dx)
{
    if (dim == 2) return (form == BOX ? 7 : 8.6) * dx;
    return (form == BOX ? 35 : PI * 4.3 * 4.3) * dx * dx;
}

static fsi_sph *make_free(int dim, double dx, fsi_context *context)
{
    fsi_sph_desc d = make_desc(dim, dx);
    d.gravity = v3(0, 0, 0);
    d.context = context;
    d.depth = (fsi_real)0.2;
    return make_sph(&d);
}

static double smallest_distance(const fsi_sph *s)
{
    double least = 1e30;
    int i, j;
    for (i = 0; i < s->count; i++) {
        for (j = 0; j < i; j++) {
            double r2 = (double)fsi_v3_norm2(fsi_v3_sub(s->position[i], s->position[j]));
            if (r2 < least) least = r2;
        }
    }
    return sqrt(least);
}

/* ---- what comes out ------------------------------------------------------------------------------------------- */

/* The volume is area * speed * time to half a layer after every step, however long steps are, with and without substeps; the
   particles stand on one lattice, as if all had come out at once: distance from the plane is speed * (time - birth). */
static void let_out(int dim, int form, int substeps)
{
    const double dx = 0.02, speed = 1.3, area = tap_area(dim, form, dx), volume = dim == 2 ? dx * dx : dx * dx * dx;
    fsi_sph *s = make_free(dim, dx, NULL);
    fsi_emitter_desc d = make_tap(dim, form, dx, speed);
    const double sites = dim == 2 ? (form == BOX ? 7 : 9) : form == BOX ? 35 : 58; /* 8.6 and 58.09, rounded */
    const double pitch = sites * volume / area;
    const fsi_vec3 axis = fsi_v3_unit(d.direction);
    uint64_t random = 3;
    int step, i, id, worst = 0;
    long long emitted = -1;
    s->desc.max_substeps = substeps;
    CHECK(fsi_sph_add_emitter(s, &d, &id) == FSI_OK);
    for (step = 0; step < 30; step++) {
        int before = s->count;
        step_ok(s, (substeps == 1 ? 0.05 : 0.03) * test_random(&random));
        CHECK_NEAR(s->count * volume, area * speed * s->time, 0.5001 * sites * volume);
        CHECK(s->stats.emitted == s->count - before && s->stats.blocked == 0 && s->stats.refused == 0);
        CHECK(s->count % (int)sites == 0);
    }
    CHECK(s->count > 200);
    CHECK(fsi_sph_emitter_total(s, id, &emitted, NULL, NULL) == FSI_OK && emitted == s->count);
    for (i = 0; i < s->count; i++) {
        double out = (double)fsi_v3_dot(fsi_v3_sub(s->position[i], d.center), axis), layer = (speed * s->time - out) / pitch - 0.5;
        CHECK_NEAR(layer, i / (int)sites, form == BOX ? TOL(1e-4, 1e-3) : 0.3); /* a stretched lattice relaxes a little */
        CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(s->velocity[i], fsi_v3_scale(axis, d.speed))), 0, form == BOX ? TOL(1e-5, 1e-3) : 0.02);
        worst += s->id[i] != (uint32_t)i;
    }
    CHECK(worst == 0);
    CHECK(smallest_distance(s) > (substeps == 1 ? 0.8 : 0.9) * dx); /* up to 3 dx a step, in the end */
    fsi_sph_destroy(s);
}

static void test_emitted_volume_is_area_times_speed_times_time(void)
{
    int dim, form;
    for (dim = 2; dim <= 3; dim++) {
        for (form = BOX; form < SHAPES; form++) {
            let_out(dim, form, 50);
            let_out(dim, form, 1);
        }
    }
}

/* Sites lie within the outline; of a disc none is left out that is nearer to the axis than one that is in. */
static void test_sites_fill_the_outline(void)
{
    const double dx = 0.02;
    int form, i;
    for (form = BOX; form < SHAPES; form++) {
        fsi_sph *s = make_free(3, dx, NULL);
        fsi_emitter_desc d = make_tap(3, form, dx, 1);
        fsi_vec3 n, u, w, mean = v3(0, 0, 0);
        double most_u = 0, most_w = 0, most_r = 0;
        CHECK(fsi_sph_add_emitter(s, &d, NULL) == FSI_OK);
        step_ok(s, 0.7 * dx);
        n = fsi_v3_unit(d.direction);
        u = fsi_v3_unit(fsi_v3_madd(d.side, -fsi_v3_dot(d.side, n), n));
        w = fsi_v3_cross(n, u);
        for (i = 0; i < s->count; i++) {
            fsi_vec3 r = fsi_v3_sub(s->position[i], d.center);
            mean = fsi_v3_add(mean, r);
            most_u = fmax(most_u, fabs((double)fsi_v3_dot(r, u)));
            most_w = fmax(most_w, fabs((double)fsi_v3_dot(r, w)));
            most_r = fmax(most_r, sqrt((double)(fsi_v3_norm2(r) - fsi_v3_dot(r, n) * fsi_v3_dot(r, n))));
        }
        CHECK(s->count == (form == BOX ? 35 : 58));
        if (form == BOX) CHECK_NEAR(most_u, 3 * dx, 1e-6);
        if (form == BOX) CHECK_NEAR(most_w, 2 * dx, 1e-6);
        if (form == DISC) CHECK(most_r < 4.5 * dx && most_r > 4 * dx);
        if (form == BOX) CHECK_NEAR(fsi_v3_norm(fsi_v3_madd(mean, -fsi_v3_dot(mean, n), n)), 0, 1e-5);
        fsi_sph_destroy(s);
    }
}

/* Another speed, a pause, another direction of the emitter's own motion: layers keep their distance. */
static void test_flow_follows_speed_and_moving_emitters(void)
{
    const double dx = 0.02;
    fsi_sph *s = make_free(2, dx, NULL);
    fsi_emitter_desc d = make_tap(2, BOX, dx, 1), other;
    double expected = 0, speed;
    int id, step;
    CHECK(fsi_sph_add_emitter(s, &d, &id) == FSI_OK);
    for (step = 0; step < 40; step++) {
        speed = step < 10 ? 3 : step < 20 ? 3 - 0.1 * (step - 10) : step < 30 ? 0 : 1; /* never faster than what went before */
        d.speed = (fsi_real)speed;
        CHECK(fsi_sph_set_emitter(s, id, &d) == FSI_OK);
        step_ok(s, 0.007);
        expected += speed * 0.007 * 7 * dx;
        CHECK_NEAR(s->count * dx * dx, expected, 0.5001 * 7 * dx * dx);
    }
    CHECK(smallest_distance(s) > 0.9 * dx);
    fsi_sph_destroy(s);
    s = make_free(2, dx, NULL); /* moving across the flow: rows are sheared, layers straight */
    d = make_tap(2, BOX, dx, 1);
    d.direction = v3(0, 1, 0);
    d.velocity = v3(2, -0.5, 0);
    CHECK(fsi_sph_add_emitter(s, &d, &id) == FSI_OK);
    for (step = 0; step < 20; step++) step_ok(s, 0.01);
    CHECK_NEAR(s->count, 0.2 / dx * 7, 3.51);
    CHECK(smallest_distance(s) > 0.9 * dx);
    CHECK_NEAR(s->velocity[0].x, 2, 1e-5);
    CHECK_NEAR(s->velocity[0].y, 0.5, 1e-5);
    CHECK_NEAR(s->position[s->count - 1].x, (double)d.center.x + 0.4, 3.6 * dx);
    CHECK_NEAR(s->position[s->count - 1].y, (double)d.center.y - 0.1, 1.01 * dx);
    other = d;
    other.start = s->time + 0.1;
    other.stop = s->time + 0.2;
    other.velocity = v3(0, 0, 0);
    other.center = v3(5, 0, 0);
    CHECK(fsi_sph_remove_emitter(s, id) == FSI_OK);
    CHECK(fsi_sph_add_emitter(s, &other, &id) == FSI_OK && id == 1);
    step = s->count;
    step_ok(s, 0.1);
    CHECK(s->count == step);
    step_ok(s, 0.15);
    step_ok(s, 0.1);
    CHECK_NEAR(s->count - step, 0.1 / dx * 7, 3.51);
    fsi_sph_destroy(s);
}

/* Into the floor of a pool: the inlet works against the pressure like a piston, and gives what it says. */
static void test_an_inlet_under_water_keeps_its_flow(void)
{
    int dim, step, i;
    for (dim = 2; dim <= (TEST_SLOWED ? 2 : 3); dim++) {
        const double dx = 0.02, speed = 0.4, seconds = 0.5;
        fsi_sph_desc d = make_desc(dim, dx);
        fsi_emitter_desc e = fsi_emitter_default_desc();
        fsi_sph *s;
        int wrong = 0, first, piston = 0;
        double layers = speed * seconds / dx;
        long long emitted, blocked;
        d.domain = dim == 2 ? box3(0, 0, 0, 0.4, 0.8, 0) : box3(0, 0, 0, 0.2, 0.2, 0.8);
        d.depth = (fsi_real)0.4;
        s = make_sph(&d);
        CHECK(fsi_sph_fill_box(s, dim == 2 ? box3(0, 0, 0, 0.4, 0.3, 0) : box3(0, 0, 0, 0.2, 0.2, 0.3), v3(0, 0, 0), NULL) == FSI_OK);
        first = s->count;
        e.shape = FSI_EMITTER_BOX;
        e.center = dim == 2 ? v3(0.2, 0, 0) : v3(0.1, 0.1, 0);
        e.direction = dim == 2 ? v3(0, 3, 0) : v3(0, 0, 3);
        e.half_width = e.half_height = (fsi_real)(2 * dx);
        e.speed = (fsi_real)speed;
        CHECK(fsi_sph_add_emitter(s, &e, NULL) == FSI_OK);
        for (step = 0; step < 100; step++) step_ok(s, seconds / 100);
        CHECK(fsi_sph_emitter_total(s, 0, &emitted, &blocked, NULL) == FSI_OK);
        CHECK_NEAR((double)(emitted + blocked), layers * (dim == 2 ? 4 : 16), 0.51 * (dim == 2 ? 4 : 16));
        CHECK((double)blocked <= 0.05 * (double)emitted && s->count == first + (int)emitted);
        CHECK(fsi_sph_count_inside(s, NULL) == 0);
        CHECK(s->stats.max_compression < 0.2 && s->stats.mean_compression < 0.02);
        for (i = first; i < s->count; i++) { /* what came out last is still held */
            if (height(s, i) > 1.9 * dx || s->count - i > (dim == 2 ? 4 : 16)) continue;
            piston++;
            wrong += fabs((double)(dim == 2 ? s->velocity[i].y : s->velocity[i].z) - speed) > 1e-3;
        }
        CHECK(piston > 0 && wrong == 0);
        fsi_sph_destroy(s);
    }
}

/* A particle on a site keeps it empty, is counted, and goes along; the others come out. Next to it, not nearer, it does not. */
static void test_sites_that_are_taken_stay_empty(void)
{
    const double dx = 0.02;
    int how;
    for (how = 0; how < 2; how++) {
        fsi_sph *s = make_free(2, dx, NULL);
        fsi_emitter_desc d = fsi_emitter_default_desc();
        d.radius = (fsi_real)(2.5 * dx);
        CHECK(fsi_sph_add_emitter(s, &d, NULL) == FSI_OK);
        add_particle(s, v3(0.2 * dx, dx * (how ? 2.65 : 2.55), 0), v3(0, 0, 0)); /* the outermost sites are at 2 dx */
        step_ok(s, 0.5 * dx);
        CHECK(s->stats.blocked == (how ? 0 : 1) && s->stats.emitted == (how ? 5 : 4));
        step_ok(s, 0.9 * dx);
        CHECK(s->stats.blocked == 0 && s->stats.emitted == 0);
        CHECK_NEAR(s->velocity[0].x, how ? 0 : 1, how ? 0.5 : 0.05);
        fsi_sph_destroy(s);
    }
}

static void test_budgets_are_honoured(void)
{
    const double dx = 0.02;
    fsi_sph_desc d = make_desc(2, dx);
    fsi_sph *s;
    fsi_emitter_desc tap = make_tap(2, BOX, dx, 1);
    fsi_vec3 x = v3(9, 9, 0);
    unsigned char gone[200];
    long long emitted, refused;
    int step, first, second;
    d.gravity = v3(0, 0, 0);
    d.max_particles = 100;
    s = make_sph(&d);
    tap.budget = 37;
    CHECK(fsi_sph_add_emitter(s, &tap, &first) == FSI_OK);
    for (step = 0; step < 40; step++) step_ok(s, 0.01);
    CHECK(s->count == 37);
    CHECK(fsi_sph_emitter_total(s, first, &emitted, NULL, &refused) == FSI_OK && emitted == 37);
    CHECK_NEAR((double)(emitted + refused), 0.4 / dx * 7, 3.51);
    tap.budget = 0;
    tap.center = v3(3, 0, 0);
    CHECK(fsi_sph_add_emitter(s, &tap, &second) == FSI_OK);
    for (step = 0; step < 40; step++) step_ok(s, 0.01);
    CHECK(s->count == 100);
    CHECK(fsi_sph_emitter_total(s, second, NULL, NULL, &refused) == FSI_OK && refused > 20);
    CHECK(fsi_sph_add_particles(s, &x, NULL, 1) == FSI_ERROR_LIMIT && s->count == 100);
    memset(gone, 0, sizeof gone);
    memset(gone, 1, 50);
    CHECK(fsi_sph_remove_particles(s, gone) == FSI_OK);
    for (step = 0; step < 40; step++) step_ok(s, 0.01);
    CHECK(s->count == 100);
    CHECK(fsi_sph_emitter_total(s, first, &emitted, NULL, NULL) == FSI_OK && emitted == 37);
    CHECK(fsi_sph_emitter_total(s, second, &emitted, NULL, NULL) == FSI_OK && emitted == 113);
    CHECK(s->id[99] == 149); /* never used twice */
    fsi_sph_destroy(s);
}

/* A closed mesh is filled as fsi_sample_mesh does it, at its times. */
static void test_a_mesh_is_filled_again_and_again(void)
{
    int dim, step, k;
    for (dim = 2; dim <= 3; dim++) {
        fsi_sph *s = make_free(dim, 0.02, NULL);
        fsi_emitter_desc d = fsi_emitter_default_desc();
        fsi_mesh *mesh;
        int count = 0, wrong = 0;
        static fsi_vec3 want[4000];
        shape_begin(dim);
        if (dim == 2) shape_box(box3(0, 0, 0, 0.15, 0.11, 0));
        else shape_torus(0.1, 0.04, 24, 12);
        mesh = shape_make(FSI_MESH_CLOSED, 0);
        CHECK(fsi_sample_mesh(mesh, (fsi_real)0.02, want, 4000, &count) == FSI_OK && count > 20);
        d.shape = FSI_EMITTER_MESH;
        d.mesh = mesh;
        d.direction = v3(0, 1, 0);
        d.speed = 2;
        d.start = 0.05;
        d.period = 0.2;
        CHECK(fsi_sph_add_emitter(s, &d, NULL) == FSI_OK);
        fsi_mesh_destroy(mesh); /* not kept */
        step_ok(s, 0.049);
        CHECK(s->count == 0);
        step_ok(s, 0.0011);
        CHECK(s->count == count && s->stats.emitted == count);
        for (k = 0; k < count; k++) wrong += (double)fsi_v3_norm(fsi_v3_sub(s->position[k], want[count - 1 - k])) > 1e-6 || s->velocity[k].y != 2;
        CHECK(wrong == 0);
        for (step = 0; step < 38; step++) step_ok(s, 0.01);
        CHECK(s->count == 2 * count);
        for (step = 0; step < 3; step++) step_ok(s, 0.01);
        CHECK(s->count == 3 * count);
        for (k = 0; k < s->count; k++) s->velocity[k] = v3(0, 0, 0); /* in the way from now on */
        for (step = 0; step < 20; step++) step_ok(s, 0.01);
        CHECK(s->stats.emitted == 0 || s->count < 4 * count);
        fsi_sph_destroy(s);
    }
}

/* ---- sinks ---------------------------------------------------------------------------------------------------- */

enum { SINK_SHAPES = 4 };

static fsi_sink_desc make_drain(int form, const fsi_mesh *mesh)
{
    fsi_sink_desc d = fsi_sink_default_desc();
    d.shape = (fsi_sink_shape)form;
    d.box = box3(0.05, 0.03, -0.02, 0.13, 0.09, 0.05);
    d.center = v3(0.09, 0.06, 0);
    d.direction = v3(3, 3, 0);
    d.radius = (fsi_real)0.045;
    d.thickness = (fsi_real)0.03;
    d.mesh = mesh;
    return d;
}

/* By the definition of the shapes. The mesh is the box turned by 0.3 around z. */
static int drain_holds(int dim, int form, fsi_vec3 p)
{
    double x = (double)p.x, y = (double)p.y, z = (double)p.z, a = x - 0.09, b = y - 0.06, along = (a + b) / sqrt(2.0);
    if (form == FSI_SINK_MESH) {
        double c = cos(0.3), s = sin(0.3), u = 0.09 + c * a + s * b, w = 0.06 - s * a + c * b;
        return u > 0.05 && u < 0.13 && w > 0.03 && w < 0.09 && (dim == 2 || (z > -0.02 && z < 0.05));
    }
    if (form == FSI_SINK_BOX) return x >= 0.05 && x <= 0.13 && y >= 0.03 && y <= 0.09 && (dim == 2 || (z >= -0.02 && z <= 0.05));
    if (form == FSI_SINK_SPHERE) return a * a + b * b + z * z <= 0.045 * 0.045;
    return fabs(along) <= 0.015 && a * a + b * b + z * z - along * along <= 0.045 * 0.045;
}

static fsi_mesh *make_turned_box(int dim)
{
    int k;
    shape_begin(dim);
    shape_box(box3(-0.04, -0.03, dim == 2 ? 0 : -0.02, 0.04, 0.03, dim == 2 ? 0 : 0.05));
    for (k = 0; k < shape.nx; k++) shape.x[k] = fsi_v3_add(fsi_quat_rotate(fsi_quat_from_axis_angle(v3(0, 0, 1), (fsi_real)0.3), shape.x[k]), v3(0.09, 0.06, 0));
    return shape_make(FSI_MESH_CLOSED, 0);
}

/* What is inside at the end of a step goes, all of it and nothing else; the rest keeps its order, its ids, and its motion. */
static void test_sinks_take_what_is_inside(void)
{
    int dim, form, i, k;
    for (dim = 2; dim <= 3; dim++) {
        fsi_mesh *mesh = make_turned_box(dim);
        for (form = 0; form < SINK_SHAPES; form++) {
            fsi_sph *s = make_free(dim, 0.011, NULL), *t = make_free(dim, 0.011, NULL);
            fsi_sink_desc d = make_drain(form, mesh);
            uint64_t random = 7, again = 7;
            int n[3], id, left = 0, wrong = 0;
            long long removed;
            n[0] = 14;
            n[1] = 11;
            n[2] = dim == 2 ? 1 : 6;
            add_lattice(s, v3(0.01, 0, dim == 2 ? 0 : -0.03), n, 0.011, 0.1, &random);
            add_lattice(t, v3(0.01, 0, dim == 2 ? 0 : -0.03), n, 0.011, 0.1, &again);
            CHECK(fsi_sph_add_sink(s, &d, &id) == FSI_OK);
            step_ok(s, 0);
            CHECK(s->count == t->count); /* no time, no change */
            step_ok(s, 1e-4);
            step_ok(t, 1e-4);
            for (i = k = 0; i < t->count; i++) {
                if (drain_holds(dim, form, t->position[i])) continue;
                left++;
                wrong += k >= s->count || s->id[k] != t->id[i] || memcmp(&s->position[k], &t->position[i], sizeof(fsi_vec3)) != 0 || s->pressure[k] != t->pressure[i];
                k++;
            }
            CHECK(wrong == 0 && s->count == left && left < t->count && left > t->count / 3);
            CHECK(s->stats.removed == t->count - left && s->stats.particles == left);
            CHECK(fsi_sph_sink_total(s, id, &removed) == FSI_OK && removed == t->count - left);
            CHECK(fsi_sph_remove_sink(s, id) == FSI_OK && fsi_sph_remove_sink(s, id) == FSI_ERROR_ARGUMENT);
            fsi_sph_destroy(s);
            fsi_sph_destroy(t);
        }
        fsi_mesh_destroy(mesh);
    }
}

/* A rate takes so much and no more, the oldest first; what it could not take it does not catch up on. */
/* What a sink with a rate leaves, one behind it takes. */
static void test_a_full_sink_does_not_shield_its_liquid(void)
{
    fsi_sph *s = make_free(2, 0.02, NULL);
    fsi_sink_desc d = fsi_sink_default_desc();
    long long slow, fast;
    int id[2], start;
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 0.2, 0.2, 0), v3(0, 0, 0), NULL) == FSI_OK);
    start = s->count;
    d.box = box3(-1, -1, 0, 1, 1, 0);
    d.rate = (fsi_real)(0.02 * 0.02 * 330);
    CHECK(fsi_sph_add_sink(s, &d, &id[0]) == FSI_OK);
    d.rate = 0;
    CHECK(fsi_sph_add_sink(s, &d, &id[1]) == FSI_OK);
    step_ok(s, 0.01);
    CHECK(fsi_sph_sink_total(s, id[0], &slow) == FSI_OK && fsi_sph_sink_total(s, id[1], &fast) == FSI_OK);
    CHECK(s->count == 0 && slow == 3 && fast == start - 3);
    fsi_sph_destroy(s);
}

static void test_a_sink_with_a_rate_takes_its_time(void)
{
    const double dx = 0.02;
    fsi_sph *s = make_free(2, dx, NULL);
    fsi_sink_desc d = fsi_sink_default_desc();
    int step, start;
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 0.4, 0.4, 0), v3(0, 0, 0), NULL) == FSI_OK);
    start = s->count;
    d.box = box3(-1, -1, 0, 1, 1, 0);
    d.rate = (fsi_real)(dx * dx * 330); /* particles a second */
    CHECK(fsi_sph_add_sink(s, &d, NULL) == FSI_OK);
    for (step = 1; step <= 20; step++) {
        step_ok(s, 0.01);
        CHECK_NEAR(start - s->count, 3.3 * step, 1);
        CHECK(s->id[0] == (uint32_t)(start - s->count));
    }
    for (step = 0; step < s->count; step++) s->position[step].x += 5;
    start = s->count;
    for (step = 0; step < 20; step++) step_ok(s, 0.01);
    CHECK(s->count == start);
    for (step = 0; step < s->count; step++) s->position[step].x -= 5;
    step_ok(s, 0.01);
    CHECK(start - s->count <= 5);
    fsi_sph_destroy(s);
}

/* ---- a fountain with everything ------------------------------------------------------------------------------- */

/* Momentum changes by what gravity, walls, emitters and sinks gave, and by the stated defect. */
static void test_momentum_is_accounted_for(void)
{
    int run, dim, step, k;
    for (run = 0; run < 4; run++) {
        fountain f = make_fountain(dim = 2 + run % 2, 0.02, NULL);
        fsi_sph *s = f.s;
        double given = 0, held = 0;
        int emitted = 0, removed = 0;
        if (run >= 2) s->desc.viscosity = 2;
        for (step = 0; step < 100; step++) {
            double was[3], mass;
            for (k = 0; k < 3; k++) was[k] = momentum(s, k);
            step_ok(s, 3e-3);
            mass = s->count * (double)s->particle_mass;
            for (k = 0; k < 3; k++) {
                double got = momentum(s, k) - was[k] - s->stats.wall_impulse[k] - s->stats.external_impulse[k] - s->stats.source_impulse[k];
                CHECK_NEAR(got, 0, mass * (TOL(1e-6, 1e-4) * 9.81 * 3e-3 + TOL(1e-9, 1e-5)));
                CHECK_NEAR(s->stats.momentum[k], momentum(s, k), 1e-5 * s->stats.max_speed * mass);
            }
            held += fabs(s->stats.source_impulse[0]);
            given += fabs(s->stats.wall_impulse[0]);
            emitted += s->stats.emitted;
            removed += s->stats.removed;
        }
        CHECK(held > 0 && given > 0 && emitted > 100 && removed > 20);
        CHECK(fsi_sph_count_inside(s, NULL) == 0);
        end_fountain(&f);
    }
}

static uint64_t hash_of_fountain(int dim, int threads, int adversarial)
{
    fsi_context context = fsi_default_context();
    fountain f;
    uint64_t hash;
    int step;
    if (threads) test_threads(&context, threads, adversarial);
    f = make_fountain(dim, dim == 2 ? 0.006 : 0.016, &context);
    for (step = 0; step < (TEST_SLOWED ? 4 : 10); step++) step_ok(f.s, 4e-3);
    CHECK(f.s->count > 1200);
    hash = fsi_hash(f.s->aeration, (size_t)f.s->count * sizeof(fsi_real), fsi_hash(f.s->marker, (size_t)f.s->count, fsi_sph_hash(f.s)));
    end_fountain(&f);
    CHECK(context.bytes == 0);
    return hash;
}

static void test_any_number_of_threads_gives_the_same_bits(void)
{
    static const int threads[5] = { 1, 2, 3, 7, 7 };
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t serial = hash_of_fountain(dim, 0, 0);
        for (k = TEST_SLOWED ? 3 : 0; k < 5; k++) CHECK(hash_of_fountain(dim, threads[k], k == 4) == serial);
    }
}

static void test_loading_continues_as_if_nothing_had_happened(void)
{
    int dim, step, k;
    for (dim = 2; dim <= 3; dim++) {
        fountain f = make_fountain(dim, 0.02, NULL), g = make_fountain(dim, 0.02, NULL);
        size_t size;
        void *state;
        uint64_t at, end;
        long long emitted, other;
        for (step = 0; step < 33; step++) step_ok(f.s, 4e-3);
        state = save_state(f.s, &size);
        at = fsi_sph_hash(f.s);
        for (step = 0; step < 20; step++) step_ok(f.s, 4e-3);
        end = fsi_sph_hash(f.s);
        for (k = 0; k < 2; k++) {
            for (step = 0; step < 7 * k; step++) step_ok(g.s, 5e-3);
            CHECK(fsi_sph_load(g.s, state, size) == FSI_OK && fsi_sph_hash(g.s) == at);
            CHECK(g.s->marker[0] == FSI_SPH_LIQUID && g.s->aeration[g.s->count - 1] == 0);
            for (step = 0; step < 20; step++) step_ok(g.s, 4e-3);
            CHECK(fsi_sph_hash(g.s) == end);
        }
        CHECK(fsi_sph_emitter_total(f.s, f.jet, &emitted, NULL, NULL) == FSI_OK && fsi_sph_emitter_total(g.s, g.jet, &other, NULL, NULL) == FSI_OK);
        CHECK(emitted == other && emitted > 20);
        CHECK(fsi_sph_load(f.s, state, size) == FSI_OK);
        for (step = 0; step < 20; step++) step_ok(f.s, 4e-3);
        CHECK(fsi_sph_hash(f.s) == end);
        free(state);
        end_fountain(&f);
        end_fountain(&g);
    }
}

/* ---- rollback ------------------------------------------------------------------------------------------------- */

/* With every allocation of a step that grows everything failing in turn; then the step goes through as if not tried. */
static void test_every_failed_allocation_rolls_back(void)
{
    int dim, fail, failed = 0, step;
    for (dim = 2; dim <= 3; dim++) {
        fsi_context context = fsi_default_context();
        fountain f, g = make_fountain(dim, 0.03, NULL);
        test_fail_allocator(&context, 0);
        f = make_fountain(dim, 0.03, &context);
        for (step = 0; step < 30; step++) {
            fsi_status status = FSI_ERROR_MEMORY;
            for (fail = 1; status != FSI_OK && fail < 200; fail++) {
                uint64_t hash = fsi_sph_hash(f.s);
                int count = f.s->count;
                test_fail_allocator(&context, fail);
                status = fsi_sph_step(f.s, (fsi_real)8e-3);
                if (status == FSI_OK) break;
                failed++;
                CHECK(status == FSI_ERROR_MEMORY && fsi_sph_hash(f.s) == hash && f.s->count == count);
            }
            test_fail_allocator(&context, 0);
            step_ok(g.s, 8e-3);
            CHECK(fsi_sph_hash(f.s) == fsi_sph_hash(g.s));
        }
        end_fountain(&f);
        end_fountain(&g);
        CHECK(context.bytes == 0);
    }
    CHECK(failed > 20);
}

/* Adding and changing emitters and sinks without memory changes nothing. */
static void test_emitters_without_memory_are_not_added(void)
{
    fsi_context context = fsi_default_context();
    fsi_emitter_desc d = make_tap(3, DISC, 0.02, 1);
    fsi_sink_desc k = make_drain(FSI_SINK_BOX, NULL);
    fsi_sph *s;
    int id, fail, done = 0;
    test_fail_allocator(&context, 0);
    s = make_free(3, 0.02, &context);
    for (fail = 1; fail < 10 && !done; fail++) {
        size_t bytes = context.bytes;
        test_fail_allocator(&context, fail);
        done = fsi_sph_add_emitter(s, &d, &id) == FSI_OK;
        if (!done) CHECK(context.error.status == FSI_ERROR_MEMORY && context.bytes == bytes);
    }
    CHECK(fail == 5 && id == 0);
    test_fail_allocator(&context, 1);
    CHECK(fsi_sph_set_emitter(s, id, &d) == FSI_ERROR_MEMORY);
    CHECK(fsi_sph_add_sink(s, &k, NULL) == FSI_ERROR_MEMORY);
    test_fail_allocator(&context, 0);
    step_ok(s, 0.02);
    CHECK(s->count == 58);
    fsi_sph_destroy(s);
    CHECK(context.bytes == 0);
}

/* In a duct where as much comes in as goes out, a step allocates nothing. */
static void test_a_steady_flow_allocates_nothing(void)
{
    const double dx = 0.01;
    fsi_context context = fsi_default_context();
    fsi_sph_desc d = make_desc(2, dx);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_sink_desc k = fsi_sink_default_desc();
    fsi_sph *s;
    long long allocs = 0;
    int step, steady = 0;
    test_fail_allocator(&context, 0);
    d.context = &context;
    d.gravity = v3(0, 0, 0);
    d.depth = (fsi_real)0.1;
    d.domain = box3(0, 0, 0, 0.5, 0.1, 0);
    d.reserve = 700;
    s = make_sph(&d);
    e.center = v3(0, 0.05, 0);
    e.radius = (fsi_real)0.05;
    CHECK(fsi_sph_add_emitter(s, &e, NULL) == FSI_OK);
    k.box = box3(0.45, -1, 0, 1, 1, 0);
    CHECK(fsi_sph_add_sink(s, &k, NULL) == FSI_OK);
    for (step = 0; step < 400; step++) {
        step_ok(s, 5e-3);
        if (step == 199) allocs = s->stats.allocs;
        if (step >= 200) steady += s->stats.emitted - s->stats.removed;
    }
    CHECK(s->stats.allocs == allocs && context.allocs == allocs);
    CHECK(abs(steady) < 60 && s->count > 350 && s->count < 550);
    CHECK_NEAR(s->stats.max_speed, 1, 0.2);
    fsi_sph_destroy(s);
    CHECK(context.bytes == 0);
}

/* ---- what particles carry ------------------------------------------------------------------------------------- */

/* Ids, filters and attributes stay with their particles through emission, sinks, removal, adding, saving and teleports. */
static void test_attributes_ride_along(void)
{
    int dim, step, i, k;
    for (dim = 2; dim <= 3; dim++) {
        fountain f = make_fountain(dim, 0.02, NULL);
        fsi_sph *s = f.s;
        size_t size;
        void *state;
        int jets = 0, wrong = 0, start = s->count;
        for (i = 0; i < s->count; i++) {
            CHECK(s->filter[i] == 0xffffffffu && s->attribute[2 * i] == 0 && s->attribute[2 * i + 1] == 0);
            s->attribute[2 * i] = (fsi_real)s->id[i];
            s->attribute[2 * i + 1] = -1;
            s->filter[i] = s->id[i] ^ 0xabcdu;
        }
        for (step = 0; step < 40; step++) {
            unsigned char gone[8000];
            step_ok(s, 4e-3);
            memset(gone, 0, sizeof gone);
            for (i = 0; i < s->count; i++) gone[i] = i % 97 == step;
            if (step % 10 == 5) CHECK(fsi_sph_remove_particles(s, gone) == FSI_OK);
            if (step % 10 == 7) add_particle(s, in_tank(dim, 0.1, 0.45), v3(0, 0, 0));
            if (step % 10 == 9) s->position[s->count / 2] = in_tank(dim, 0.3, 0.45); /* teleport */
        }
        state = save_state(s, &size);
        for (step = 0; step < 5; step++) step_ok(s, 4e-3);
        CHECK(fsi_sph_load(s, state, size) == FSI_OK);
        for (i = 0; i < s->count; i++) {
            int old = s->id[i] < (uint32_t)start, jet = s->filter[i] == 5 && !old;
            if (i > 0) CHECK(s->id[i] > s->id[i - 1]);
            if (old) wrong += (uint32_t)s->attribute[2 * i] != s->id[i] || s->attribute[2 * i + 1] != -1 || s->filter[i] != (s->id[i] ^ 0xabcdu);
            else if (jet) wrong += s->attribute[2 * i] != 3 || s->attribute[2 * i + 1] != (fsi_real)0.25;
            else for (k = 0; k < 2; k++) wrong += s->attribute[2 * i + k] != 0;
            jets += jet;
        }
        CHECK(wrong == 0 && jets > 20 && s->id[0] < (uint32_t)start);
        CHECK(s->id[s->count - 1] > (uint32_t)s->count); /* some went */
        s->attribute[0] = (fsi_real)test_nan(); /* yours: no step looks at them */
        step_ok(s, 4e-3);
        free(state);
        end_fountain(&f);
    }
}

/* ---- markers -------------------------------------------------------------------------------------------------- */

static double share(double x, double lo, double hi) { return x <= lo ? 0 : x >= hi ? 1 : (x - lo) / (hi - lo); }

/* Ihmsen et al. 2012 by their formulas: pair by pair, two passes over everything. */
static void reference_markers(const fsi_sph *s, double *aeration, int *marker)
{
    static double normal[2000][3];
    const fsi_sph_desc *d = &s->desc;
    const double h = (double)s->support, r = (double)d->support, full = d->dim == 3 ? PI / 3 * r * r * r : PI / 3 * r * r;
    const double many = (d->dim == 3 ? 4 * PI / 3 * r * r * r : PI * r * r) - 1, flat = d->dim == 3 ? PI / 30 * r * r * r : r * r / 6;
    int i, j, k, pass;
    for (pass = 0; pass < 2; pass++) {
        for (i = 0; i < s->count; i++) {
            double v[3], v2, n[3] = { 0, 0, 0 }, air = 0, crest = 0, length, along = 0;
            int count = 0;
            v[0] = (double)s->velocity[i].x, v[1] = (double)s->velocity[i].y, v[2] = (double)s->velocity[i].z;
            v2 = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
            for (j = 0; j < s->count; j++) {
                double x[3], w[3], q, speed, towards = 0, cosine = 0, behind = 0, there = 0;
                if (j == i) continue;
                x[0] = (double)(s->position[j].x - s->position[i].x), x[1] = (double)(s->position[j].y - s->position[i].y), x[2] = (double)(s->position[j].z - s->position[i].z);
                w[0] = v[0] - (double)s->velocity[j].x, w[1] = v[1] - (double)s->velocity[j].y, w[2] = v[2] - (double)s->velocity[j].z;
                length = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
                q = length / h;
                if (!(q < 1)) continue;
                count++;
                speed = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
                for (k = 0; k < 3; k++) {
                    towards += w[k] * x[k] / length;
                    n[k] -= x[k] / length * (1 - q) * (1 - q);
                    cosine += normal[i][k] * normal[j][k];
                    behind += normal[i][k] * x[k];
                    there += normal[j][k] * normal[j][k];
                }
                air += (speed + towards) * (1 - q);
                if (behind < 0 && there > 0.5) crest += (1 - cosine) * (1 - q);
            }
            length = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
            for (k = 0; k < 3 && pass == 0; k++) normal[i][k] = length > 0.4 * flat ? n[k] / length : 0;
            for (k = 0; k < 3; k++) along += v[k] * normal[i][k];
            if (!(along >= 0.6 * sqrt(v2)) || !(v2 > 0)) crest = 0;
            air = share(air / full, (double)d->trapped_air_min, (double)d->trapped_air_max) + share(crest / full, (double)d->wave_crest_min, (double)d->wave_crest_max);
            aeration[i] = (air < 1 ? air : 1) * share(v2 / 2, (double)d->spray_energy_min, (double)d->spray_energy_max);
            marker[i] = count * 32.5 / many < 6 ? FSI_SPH_SPRAY : !(aeration[i] > 0) ? FSI_SPH_LIQUID : count * 32.5 / many > 20 ? FSI_SPH_BUBBLE : FSI_SPH_FOAM;
        }
    }
}

/* A ball that flies with random velocities on top, with some drops around; the step is so short that nothing moves. */
static void test_markers_follow_their_formulas(void)
{
    static double aeration[2000];
    static int marker[2000];
    int dim, i, wrong, seen[4], crest;
    for (dim = 2; dim <= 3; dim++) {
        for (crest = 0; crest < 2; crest++) {
            fsi_sph_desc d = make_desc(dim, 0.02);
            fsi_sph *s;
            uint64_t random = 17;
            int n[3];
            d.markers = 1;
            d.gravity = v3(0, 0, 0);
            d.xsph = 0;
            d.support = (fsi_real)(crest ? 2.5 : 2);
            if (crest) d.trapped_air_min = 1000, d.trapped_air_max = 2000;
            if (crest) d.wave_crest_min = (fsi_real)0.02, d.wave_crest_max = (fsi_real)0.2;
            s = make_sph(&d);
            n[0] = n[1] = dim == 2 ? 24 : 10;
            n[2] = dim == 2 ? 1 : 10;
            add_lattice(s, v3(0, 0, 0), n, 0.0205, 0.05, &random);
            for (i = 0; i < 30; i++) add_particle(s, fsi_v3_add(v3(0.3, 0.8, 0), fsi_v3_scale(random_vector(&random, dim), (fsi_real)0.3)), v3(0, 0, 0));
            for (i = 0; i < s->count; i++) s->velocity[i] = fsi_v3_madd(crest ? v3(2, 1, 0) : v3(1, 0, 0), (fsi_real)(crest ? 0.1 : 4), random_vector(&random, dim));
            step_ok(s, 1e-9);
            reference_markers(s, aeration, marker);
            memset(seen, 0, sizeof seen);
            for (i = wrong = 0; i < s->count; i++) {
                CHECK_NEAR(s->aeration[i], aeration[i], 2e-4);
                wrong += s->marker[i] != marker[i];
                seen[s->marker[i]]++;
            }
            CHECK(wrong <= 2); /* a neighbour at H, a normal at its least, to rounding */
            CHECK(seen[FSI_SPH_SPRAY] > 10 && seen[FSI_SPH_LIQUID] > 0 && seen[FSI_SPH_FOAM] > 0 && (crest || seen[FSI_SPH_BUBBLE] > 50));
            fsi_sph_destroy(s);
        }
    }
}

/* A pool at rest has no foam; where a jet meets it there is some; without the desc's wish there are no markers. */
static void test_foam_is_where_water_is_beaten(void)
{
    fsi_sph_desc d = make_desc(2, 0.01);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_sph *s;
    int step, i, foam = 0, far_away = 0;
    d.domain = box3(0, 0, 0, 0.8, 0.6, 0);
    d.depth = (fsi_real)0.2;
    s = make_sph(&d);
    CHECK(s->marker == NULL && s->aeration == NULL);
    fsi_sph_destroy(s);
    d.markers = 1;
    s = make_sph(&d);
    CHECK(fsi_sph_fill_box(s, box3(0, 0, 0, 0.8, 0.15, 0), v3(0, 0, 0), NULL) == FSI_OK);
    CHECK(s->marker[5] == FSI_SPH_LIQUID && s->aeration[5] == 0);
    for (step = 0; step < 20; step++) step_ok(s, 5e-3);
    for (i = 0; i < s->count; i++) foam += s->marker[i] != FSI_SPH_LIQUID || s->aeration[i] != 0;
    CHECK(foam == 0);
    e.center = v3(0.1, 0.5, 0);
    e.direction = v3(0, -1, 0);
    e.radius = (fsi_real)0.03;
    e.speed = 3;
    CHECK(fsi_sph_add_emitter(s, &e, NULL) == FSI_OK);
    for (step = 0; step < 40; step++) step_ok(s, 5e-3);
    for (i = foam = 0; i < s->count; i++) {
        foam += s->aeration[i] > (fsi_real)0.05;
        far_away += s->aeration[i] > 0 && s->position[i].x > (fsi_real)0.6 && s->position[i].y < (fsi_real)0.15;
    }
    printf("      %d of %d particles make foam\n", foam, s->count);
    CHECK(foam > 20 && far_away == 0);
    fsi_sph_destroy(s);
}

/* ---- origin and copies ---------------------------------------------------------------------------------------- */

/* A fountain whose origin moves ends as one whose origin stays, to what rounding becomes in a few steps. */
static void test_a_moving_origin_changes_nothing(void)
{
    const fsi_vec3 far_away = v3(1000, -500, 250);
    int dim, step, i;
    for (dim = 2; dim <= 3; dim++) {
        fountain f = make_fountain(dim, 0.02, NULL), g = make_fountain(dim, 0.02, NULL);
        fsi_vec3 offset = dim == 2 ? v3(1000, -500, 0) : far_away;
        void *state;
        size_t size;
        uint64_t hash;
        double worst = 0;
        for (step = 0; step < 6; step++) {
            step_ok(f.s, 4e-3);
            step_ok(g.s, 4e-3);
        }
        hash = fsi_sph_hash(g.s);
        state = save_state(g.s, &size);
        CHECK(fsi_sph_shift_origin(g.s, v3(0, test_nan(), 0)) == FSI_ERROR_NAN && fsi_sph_hash(g.s) == hash);
        CHECK(fsi_sph_shift_origin(g.s, v3(TOL(1e308, 1e38), 0, 0)) != FSI_OK && fsi_sph_hash(g.s) == hash);
        CHECK(fsi_sph_shift_origin(g.s, TOL(offset, fsi_v3_scale(offset, (fsi_real)0.001))) == FSI_OK);
        if (TOL(0, 1)) offset = fsi_v3_scale(offset, (fsi_real)0.001);
        step_ok(g.s, 4e-3);
        CHECK(fsi_sph_load(g.s, state, size) == FSI_OK); /* what was saved before comes back where it is now */
        free(state);
        hash = fsi_sph_hash(g.s);
        state = save_state(g.s, &size);
        step_ok(g.s, 4e-3);
        CHECK(fsi_sph_load(g.s, state, size) == FSI_OK && fsi_sph_hash(g.s) == hash);
        free(state);
        for (step = 0; step < 12; step++) {
            step_ok(f.s, 4e-3);
            step_ok(g.s, 4e-3);
        }
        if (CHECK(f.s->count == g.s->count)) {
            for (i = 0; i < f.s->count; i++) worst = fmax(worst, (double)fsi_v3_norm(fsi_v3_sub(fsi_v3_sub(g.s->position[i], offset), f.s->position[i])));
            CHECK_NEAR(worst, 0, TOL(2e-4, 2e-3));
        }
        CHECK(fsi_sph_count_inside(g.s, NULL) == 0);
        CHECK_NEAR(g.s->desc.domain.hi.x - g.s->desc.domain.lo.x, 0.4, 1e-6 * (1 + (double)fsi_abs(offset.x)));
        CHECK(f.s->stats.emitted == g.s->stats.emitted);
        end_fountain(&f);
        end_fountain(&g);
    }
    CHECK(fsi_sph_shift_origin(NULL, far_away) != FSI_OK);
}

/* A disc lets liquid out below a sheet, upon which a strip rests: it does not feel what comes next behind the inlet either. */
static void test_an_emitter_does_not_push_through_a_sheet(void)
{
    fsi_sph_desc d = make_desc(2, 0.02);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_mesh *sheet;
    fsi_sph *s;
    int i, k, strip;
    double fastest = 0;
    d.gravity = v3(0, 0, 0);
    s = make_sph(&d);
    shape_begin(2);
    shape_vertex(-1, 0.1, 0);
    shape_vertex(0.03, 0.1, 0);
    shape_vertex(1, 0.1, 0);
    shape_face(0, 1, 0);
    shape_face(1, 2, 0);
    sheet = shape_make(FSI_MESH_TWO_SIDED, 0);
    CHECK(fsi_sph_add_mesh(s, sheet, NULL) == FSI_OK);
    CHECK(fsi_sph_fill_box(s, box3(-0.1, 0.1, 0, 0.1, 0.2, 0), v3(0, 0, 0), NULL) == FSI_OK);
    strip = s->count;
    e.speed = (fsi_real)0.2;
    e.radius = (fsi_real)0.1;
    CHECK(fsi_sph_add_emitter(s, &e, NULL) == FSI_OK);
    for (k = 0; k < 30; k++) step_ok(s, 4e-3);
    for (i = 0; i < strip; i++) fastest = fmax(fastest, (double)fsi_v3_norm(s->velocity[i]));
    CHECK(s->count > strip && fastest < 0.03);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(sheet);
}

/* A moving wall goes on from where it was. */
static void test_a_moving_origin_takes_obstacles_along(void)
{
    fsi_sph *s[2];
    fsi_mesh *wall[2], *block[2];
    fsi_body body[2];
    fsi_vec3 offset = v3(4, -2, 0), x;
    int k, step, v, i;
    double worst = 0;
    for (k = 0; k < 2; k++) {
        fsi_sph_desc d = make_desc(2, 0.02);
        fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
        d.domain = box3(0, 0, 0, 0.8, 0.4, 0);
        s[k] = make_sph(&d);
        shape_begin(2);
        shape_box(box3(0, 0.02, 0, 0.05, 0.3, 0));
        wall[k] = shape_make(FSI_MESH_CLOSED, 0);
        CHECK(fsi_sph_add_mesh(s[k], wall[k], NULL) == FSI_OK);
        shape_begin(2);
        shape_box(box3(0.5, 0.1, 0, 0.6, 0.2, 0));
        block[k] = shape_make(FSI_MESH_CLOSED, 0);
        body[k] = fsi_default_body();
        body[k].mode = FSI_BODY_PRESCRIBED;
        o.mesh = block[k];
        o.body = &body[k];
        CHECK(fsi_sph_add_obstacle(s[k], &o, NULL) == FSI_OK);
        CHECK(fsi_sph_fill_box(s[k], box3(0.1, 0, 0, 0.8, 0.2, 0), v3(0, 0, 0), NULL) == FSI_OK);
        for (step = 0; step < 20; step++) {
            fsi_vec3 way = v3(0.006 * (step + 1), 0, 0), corner[4];
            if (k == 1 && step == 8) {
                CHECK(fsi_sph_shift_origin(s[k], offset) == FSI_OK);
                body[k].pose.position = fsi_v3_add(body[k].pose.position, offset);
            }
            if (k == 1 && step >= 8) way = fsi_v3_add(way, offset);
            shape_begin(2);
            shape_box(box3(0, 0.02, 0, 0.05, 0.3, 0));
            for (v = 0; v < 4; v++) corner[v] = fsi_v3_add(shape.x[v], way);
            CHECK(fsi_mesh_move(wall[k], corner, 4) == FSI_OK);
            body[k].end = body[k].pose;
            body[k].end.position.y += (fsi_real)0.002;
            if (!step_ok(s[k], 4e-3)) break;
            fsi_body_integrate(&body[k], (fsi_real)4e-3);
            CHECK(fsi_sph_count_inside(s[k], NULL) == 0);
            CHECK(s[k]->stats.wall_speed < 3);
        }
        if (k == 1) {
            for (i = 0; i < s[0]->count; i++) {
                x = fsi_v3_sub(fsi_v3_sub(s[1]->position[i], offset), s[0]->position[i]);
                worst = fmax(worst, (double)fsi_v3_norm(x));
            }
        }
    }
    CHECK_NEAR(worst, 0, TOL(1e-3, 5e-3));
    for (k = 0; k < 2; k++) {
        fsi_sph_destroy(s[k]);
        fsi_mesh_destroy(wall[k]);
        fsi_mesh_destroy(block[k]);
    }
}

static void test_copies_are_packed_floats(void)
{
    fountain f = make_fountain(3, 0.03, NULL);
    fsi_sph *s = f.s;
    static float out[3000 * 11];
    const fsi_vec3 origin = v3(0.5, -1, 2), none = v3(0, 0, 0);
    int i, step, wrong = 0;
    for (step = 0; step < 12; step++) step_ok(s, 4e-3);
    CHECK(s->count > 100 && s->count < 3000);
    CHECK(fsi_sph_copy(s, FSI_SPH_POSITION, origin, out, 11) == FSI_OK);
    CHECK(fsi_sph_copy(s, FSI_SPH_VELOCITY, none, out + 3, 11) == FSI_OK);
    CHECK(fsi_sph_copy(s, FSI_SPH_PRESSURE, none, out + 6, 11) == FSI_OK);
    CHECK(fsi_sph_copy(s, FSI_SPH_MARKER, none, out + 7, 11) == FSI_OK);
    CHECK(fsi_sph_copy(s, FSI_SPH_AERATION, none, out + 8, 11) == FSI_OK);
    CHECK(fsi_sph_copy(s, FSI_SPH_ATTRIBUTE, none, out + 9, 11) == FSI_OK);
    for (i = 0; i < s->count; i++) {
        const float *o = out + 11 * i;
        wrong += o[0] != (float)(s->position[i].x - origin.x) || o[1] != (float)(s->position[i].y - origin.y) || o[2] != (float)(s->position[i].z - origin.z);
        wrong += o[3] != (float)s->velocity[i].x || o[5] != (float)s->velocity[i].z || o[6] != (float)s->pressure[i] || o[7] != (float)s->marker[i];
        wrong += o[8] != (float)s->aeration[i] || o[9] != (float)s->attribute[2 * i] || o[10] != (float)s->attribute[2 * i + 1];
    }
    CHECK(wrong == 0);
    CHECK(fsi_sph_copy(s, FSI_SPH_FORCE, none, out, 3) == FSI_OK && out[0] == 0);
    CHECK(fsi_sph_copy(s, FSI_SPH_DENSITY_RATIO, none, out, 1) == FSI_OK && out[5] == (float)s->density_ratio[5]);
    CHECK(fsi_sph_copy(s, FSI_SPH_POSITION, none, out, 2) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_copy(s, FSI_SPH_POSITION, none, NULL, 3) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_copy(s, (fsi_sph_field)77, none, out, 3) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_copy(s, FSI_SPH_POSITION, v3(test_inf(), 0, 0), out, 3) == FSI_ERROR_NAN);
    CHECK(fsi_sph_copy(NULL, FSI_SPH_POSITION, none, out, 3) != FSI_OK);
    end_fountain(&f);
    s = make_free(2, 0.02, NULL);
    CHECK(fsi_sph_copy(s, FSI_SPH_POSITION, none, NULL, 3) == FSI_OK); /* nothing to copy */
    CHECK(fsi_sph_copy(s, FSI_SPH_MARKER, none, out, 3) == FSI_ERROR_ARGUMENT && fsi_sph_copy(s, FSI_SPH_ATTRIBUTE, none, out, 3) == FSI_ERROR_ARGUMENT);
    fsi_sph_destroy(s);
}

/* ---- refusals ------------------------------------------------------------------------------------------------- */

static void refuse_tap(int dim, fsi_emitter_desc d, const char *name)
{
    fsi_sph *s = make_free(dim, 0.02, NULL);
    uint64_t hash = fsi_sph_hash(s);
    fsi_emitter_desc good = make_tap(dim, BOX, 0.02, 1);
    if (!CHECK(fsi_sph_add_emitter(s, &d, NULL) != FSI_OK)) printf("      %s was accepted\n", name);
    else if (!CHECK(strstr(fsi_sph_error(s)->message, name) != NULL)) printf("      %s: %s\n", name, fsi_sph_error(s)->message);
    CHECK(fsi_sph_hash(s) == hash && fsi_sph_emitter_total(s, 0, NULL, NULL, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_add_emitter(s, &good, NULL) == FSI_OK);
    hash = fsi_sph_hash(s);
    CHECK(fsi_sph_set_emitter(s, 0, &d) != FSI_OK && fsi_sph_hash(s) == hash);
    step_ok(s, 0.02);
    CHECK(s->count == (dim == 2 ? 7 : 35));
    fsi_sph_destroy(s);
}

#define REFUSE(shape_, field, value) do { fsi_emitter_desc one = make_tap(3, shape_, 0.02, 1); one.field = value; refuse_tap(3, one, #field); } while (0)
#define REFUSE_REAL(shape_, field, lo) \
    do { \
        REFUSE(shape_, field, (fsi_real)(lo)); \
        REFUSE(shape_, field, (fsi_real)test_nan()); \
        REFUSE(shape_, field, (fsi_real)test_inf()); \
    } while (0)

/* A tap that lets out 0.02 m/s under tension, without weight: the free liquid has that momentum, and what tension does to what the tap
   still holds, the tap takes. */
static void test_a_tap_holds_against_surface_tension(void)
{
    fsi_sph_desc d = make_desc(2, 0.001);
    fsi_emitter_desc tap = fsi_emitter_default_desc();
    fsi_sph *s;
    double source = 0;
    int step;
    d.gravity = v3(0, 0, 0);
    d.surface_tension = (fsi_real)0.0728;
    d.stiffness = 20000;
    d.max_substeps = 100;
    s = make_sph(&d);
    tap.radius = (fsi_real)0.005;
    tap.speed = (fsi_real)0.02;
    CHECK(fsi_sph_add_emitter(s, &tap, NULL) == FSI_OK);
    for (step = 0; step < 100 && step_ok(s, 2e-3); step++) {
        source += s->stats.source_impulse[0];
        CHECK(s->stats.max_speed <= 0.2 && s->stats.momentum_defect <= 0.01);
    }
    CHECK(s->count == 40);
    CHECK_NEAR(s->stats.momentum[0], source, TOL(1e-12, 1e-5) * source);
    CHECK_NEAR(source, s->count * (double)s->particle_mass * 0.02, 0.2 * source);
    fsi_sph_destroy(s);
}

/* Wide discs hold the sites that are closest to the axis, and are made at once. */
static void test_a_wide_disc_holds_what_its_area_says(void)
{
    fsi_sph_desc d = make_desc(3, 0.001);
    fsi_emitter_desc tap = fsi_emitter_default_desc();
    fsi_sph *s = make_sph(&d);
    const double area = PI * 300 * 300;
    int i;
    tap.radius = (fsi_real)0.3;
    tap.speed = 1;
    CHECK(fsi_sph_add_emitter(s, &tap, NULL) == FSI_OK);
    d.max_substeps = 1;
    CHECK(step_ok(s, 6e-4));
    CHECK_NEAR(s->count, area, 1);
    for (i = 0; i < s->count; i++) if (!CHECK(hypot((double)s->position[i].y, (double)s->position[i].z) <= 0.302)) break;
    fsi_sph_destroy(s);
}

static void test_every_bad_emitter_field_is_named(void)
{
    fsi_emitter_desc d;
    fsi_mesh *sheet, *flat, *solid;
    REFUSE(BOX, shape, (fsi_emitter_shape)9);
    REFUSE(BOX, center, v3(test_nan(), 0, 0));
    REFUSE(BOX, direction, v3(0, 0, 0));
    REFUSE(BOX, direction, v3(0, test_inf(), 0));
    REFUSE(BOX, side, v3(-2, -4, 4));
    REFUSE(BOX, side, v3(test_nan(), 0, 0));
    REFUSE(BOX, velocity, v3(0, 0, test_inf()));
    REFUSE_REAL(BOX, speed, -1);
    REFUSE_REAL(BOX, half_width, 0);
    REFUSE_REAL(BOX, half_height, 0.001);
    REFUSE_REAL(DISC, radius, 0);
    REFUSE(DISC, radius, 1000);
    REFUSE(DISC, start, test_nan());
    REFUSE(DISC, stop, test_nan());
    REFUSE(DISC, period, -1);
    REFUSE(DISC, budget, -1);
    d = make_tap(2, BOX, 0.02, 1);
    d.center.z = 1;
    refuse_tap(2, d, "center");
    d = make_tap(2, BOX, 0.02, 1);
    d.direction.z = 1;
    refuse_tap(2, d, "direction");
    d = make_tap(2, BOX, 0.02, 1);
    d.velocity.z = 1;
    refuse_tap(2, d, "velocity");
    shape_begin(3);
    shape_sheet(v3(0, 0, 0), v3(1, 0, 0), v3(0, 1, 0), 2, 2);
    sheet = shape_make(FSI_MESH_OPEN, 0);
    shape_begin(2);
    shape_box(box3(0, 0, 0, 1, 1, 0));
    flat = shape_make(FSI_MESH_CLOSED, 0);
    shape_begin(3);
    shape_box(box3(0, 0, 0, 0.015, 1, 1));
    solid = shape_make(FSI_MESH_CLOSED, 0);
    d = make_tap(3, BOX, 0.02, 1);
    d.shape = FSI_EMITTER_MESH;
    refuse_tap(3, d, "mesh");
    d.mesh = sheet;
    refuse_tap(3, d, "mesh");
    d.mesh = flat;
    refuse_tap(3, d, "mesh");
    d.mesh = solid; /* too thin for a particle */
    refuse_tap(3, d, "mesh");
    solid->cookie++;
    refuse_tap(3, d, "mesh");
    solid->cookie--;
    fsi_mesh_destroy(sheet);
    fsi_mesh_destroy(flat);
    fsi_mesh_destroy(solid);
}

static void refuse_drain(fsi_sink_desc d, const char *name)
{
    fsi_sph *s = make_free(3, 0.02, NULL);
    if (!CHECK(fsi_sph_add_sink(s, &d, NULL) != FSI_OK)) printf("      %s was accepted\n", name);
    else if (!CHECK(strstr(fsi_sph_error(s)->message, name) != NULL)) printf("      %s: %s\n", name, fsi_sph_error(s)->message);
    CHECK(fsi_sph_sink_total(s, 0, NULL) == FSI_ERROR_ARGUMENT);
    fsi_sph_destroy(s);
}

#define REFUSE_SINK(shape_, field, value) do { fsi_sink_desc one = make_drain(shape_, NULL); one.field = value; refuse_drain(one, #field); } while (0)

static void test_every_bad_sink_field_is_named(void)
{
    fsi_mesh *sheet;
    shape_begin(3);
    shape_sheet(v3(0, 0, 0), v3(1, 0, 0), v3(0, 1, 0), 2, 2);
    sheet = shape_make(FSI_MESH_OPEN, 0);
    REFUSE_SINK(FSI_SINK_BOX, shape, (fsi_sink_shape)4);
    REFUSE_SINK(FSI_SINK_BOX, box, fsi_box3_empty());
    REFUSE_SINK(FSI_SINK_BOX, box, box3(0, 0, test_nan(), 1, 1, 1));
    REFUSE_SINK(FSI_SINK_BOX, rate, -1);
    REFUSE_SINK(FSI_SINK_BOX, rate, (fsi_real)test_nan());
    REFUSE_SINK(FSI_SINK_SPHERE, center, v3(0, test_inf(), 0));
    REFUSE_SINK(FSI_SINK_SPHERE, radius, 0);
    REFUSE_SINK(FSI_SINK_DISC, radius, (fsi_real)test_nan());
    REFUSE_SINK(FSI_SINK_DISC, direction, v3(0, 0, 0));
    REFUSE_SINK(FSI_SINK_DISC, thickness, 0);
    REFUSE_SINK(FSI_SINK_MESH, mesh, NULL);
    REFUSE_SINK(FSI_SINK_MESH, mesh, sheet);
    fsi_mesh_destroy(sheet);
}

#define REFUSE_DESC(field, bad) \
    do { \
        fsi_sph_desc one = make_desc(3, 0.02); \
        fsi_context context = fsi_default_context(); \
        fsi_sph *made = NULL; \
        one.context = &context; \
        one.field = bad; \
        CHECK(fsi_sph_create(&made, &one) != FSI_OK && strstr(context.error.message, #field) != NULL); \
    } while (0)

static void test_wrong_calls_are_refused(void)
{
    fsi_sph *s = make_free(3, 0.02, NULL);
    fsi_emitter_desc d = make_tap(3, BOX, 0.02, 1), unfilled;
    fsi_sink_desc k = make_drain(FSI_SINK_BOX, NULL), bare;
    uint64_t hash;
    int i;
    memset(&unfilled, 0, sizeof unfilled);
    memset(&bare, 0, sizeof bare);
    REFUSE_DESC(max_particles, -1);
    REFUSE_DESC(attribute_count, -1);
    REFUSE_DESC(attribute_count, 65);
    REFUSE_DESC(trapped_air_min, -1);
    REFUSE_DESC(trapped_air_max, (fsi_real)0.1);
    REFUSE_DESC(wave_crest_min, (fsi_real)test_nan());
    REFUSE_DESC(wave_crest_max, (fsi_real)0.1);
    REFUSE_DESC(spray_energy_min, -1);
    REFUSE_DESC(spray_energy_max, (fsi_real)test_inf());
    CHECK(fsi_sph_add_emitter(NULL, &d, NULL) != FSI_OK && fsi_sph_add_sink(NULL, &k, NULL) != FSI_OK);
    CHECK(fsi_sph_set_emitter(NULL, 0, &d) != FSI_OK && fsi_sph_remove_emitter(NULL, 0) != FSI_OK && fsi_sph_remove_sink(NULL, 0) != FSI_OK);
    CHECK(fsi_sph_emitter_total(NULL, 0, NULL, NULL, NULL) != FSI_OK && fsi_sph_sink_total(NULL, 0, NULL) != FSI_OK);
    CHECK(fsi_sph_add_emitter(s, NULL, NULL) == FSI_ERROR_ARGUMENT && fsi_sph_add_sink(s, NULL, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_sph_add_emitter(s, &unfilled, NULL) == FSI_ERROR_COOKIE && fsi_sph_add_sink(s, &bare, NULL) == FSI_ERROR_COOKIE);
    CHECK(fsi_sph_set_emitter(s, 0, &d) == FSI_ERROR_ARGUMENT && fsi_sph_remove_emitter(s, 0) == FSI_ERROR_ARGUMENT);
    for (i = 0; i < 254; i++) CHECK(fsi_sph_add_sink(s, &k, NULL) == FSI_OK);
    CHECK(fsi_sph_add_sink(s, &k, NULL) == FSI_ERROR_LIMIT);
    d.speed = (fsi_real)1e9; /* more layers than there can be particles */
    CHECK(fsi_sph_add_emitter(s, &d, NULL) == FSI_OK);
    hash = fsi_sph_hash(s);
    CHECK(fsi_sph_step(s, 1) == FSI_ERROR_LIMIT && fsi_sph_hash(s) == hash);
    CHECK(strstr(fsi_sph_error(s)->message, "emitter 0") != NULL);
    fsi_sph_destroy(s);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_any_number_of_threads_gives_the_same_bits);
#if !defined(__SANITIZE_THREAD__) /* one thread: minutes there, and no race to find */
    RUN(test_emitted_volume_is_area_times_speed_times_time);
    RUN(test_flow_follows_speed_and_moving_emitters);
    RUN(test_an_inlet_under_water_keeps_its_flow);
    RUN_PHYSICS(test_momentum_is_accounted_for);
    RUN(test_sites_fill_the_outline);
    RUN(test_sites_that_are_taken_stay_empty);
    RUN(test_budgets_are_honoured);
    RUN(test_a_mesh_is_filled_again_and_again);
    RUN(test_sinks_take_what_is_inside);
    RUN(test_a_sink_with_a_rate_takes_its_time);
    RUN(test_a_full_sink_does_not_shield_its_liquid);
    RUN(test_loading_continues_as_if_nothing_had_happened);
    RUN(test_every_failed_allocation_rolls_back);
    RUN(test_emitters_without_memory_are_not_added);
    RUN(test_a_steady_flow_allocates_nothing);
    RUN(test_attributes_ride_along);
    RUN(test_markers_follow_their_formulas);
    RUN(test_foam_is_where_water_is_beaten);
    RUN(test_a_moving_origin_changes_nothing);
    RUN(test_a_moving_origin_takes_obstacles_along);
    RUN(test_an_emitter_does_not_push_through_a_sheet);
    RUN(test_copies_are_packed_floats);
    if (!TEST_SLOWED) RUN(test_a_tap_holds_against_surface_tension);
    if (!TEST_SLOWED) RUN(test_a_wide_disc_holds_what_its_area_says);
    RUN(test_every_bad_emitter_field_is_named);
    RUN(test_every_bad_sink_field_is_named);
    RUN(test_wrong_calls_are_refused);
#endif
    return TEST_END();
}
