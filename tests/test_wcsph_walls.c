/* test_wcsph_walls.c - nothing enters a solid: whole runs with static, moving, coupled, thin and sampled obstacles, looked at after every
   step with distances and winding numbers that owe nothing to the step.
   SPDX-License-Identifier: MIT */
#include "kit/test_wcsph.h"

/* A pool in a tank of 0.4 m, at least as deep as asked. */
static scene make_tank(int dim, double dx, double speed, double level, fsi_context *context)
{
    fsi_wcsph_desc d = make_desc(dim, dx);
    scene t;
    memset(&t, 0, sizeof t);
    d.context = context;
    d.domain = room(dim, 0, 0, 0.4, 0.4, 0.16);
    d.depth = (fsi_real)0.25;
    d.speed = (fsi_real)speed;
    t.dim = dim;
    t.s = make_wcsph(&d);
    if (level > 0) fill(t.s, room(dim, 0, 0, 0.4, level, 0.16), v3(0, 0, 0));
    return t;
}

/* A box of half sizes a and b around the origin, turned in the plane of height. */
static fsi_mesh *make_crate(int dim, double a, double b, double angle)
{
    int k;
    shape_begin(dim);
    shape_box(dim == 2 ? box3(-a, -b, 0, a, b, 0) : box3(-a, -0.05, -b, a, 0.05, b));
    for (k = 0; k < shape.nx; k++) shape.x[k] = fsi_quat_rotate(fsi_quat_from_axis_angle(dim == 2 ? v3(0, 0, 1) : v3(0, -1, 0.3), (fsi_real)angle), shape.x[k]);
    return shape_make(FSI_MESH_CLOSED, 0);
}

static fsi_pose pose_in(int dim, double x, double h) { fsi_pose p; p.position = in_room(dim, x, h, 0.08); p.orientation = fsi_quat_identity(); return p; }

/* A coupled body of a crate around the origin. */
static fsi_body make_load(const fsi_mesh *m, int dim, double density, fsi_pose at)
{
    fsi_body b = make_floater(m, density, 9.81, dim);
    b.pose = at;
    return b;
}

static void end_scene(scene *t) { fsi_wcsph_destroy(t->s); }

/* ---- static, and moved from outside ----------------------------------------------------------------------------- */

static void test_a_dam_breaks_over_a_bar(void)
{
    int dim, step;
    for (dim = 2; dim <= 3; dim++) {
        scene t = make_tank(dim, 0.02, 0, 0, NULL);
        fsi_mesh *bar = make_crate(dim, 0.03, 0.02, 0.5);
        const fsi_pose at = pose_in(dim, 0.25, 0.05);
        mesh_to(bar, at);
        scene_add(&t, bar, NULL);
        fill(t.s, room(dim, 0, 0, 0.16, 0.24, 0.16), v3(0, 0, 0));
        for (step = 0; step < (dim == 2 ? 120 : 60); step++) if (!step_ok(t.s, 5e-3) || !check_census(&t)) break;
        CHECK(t.s->count == (dim == 2 ? 96 : 768));
        CHECK(t.s->stats.contacts > 0);
        end_scene(&t);
        fsi_mesh_destroy(bar);
    }
}

/* A container turned by 40 degrees, closed, half full. */
static void test_a_tilted_container_keeps_its_liquid(void)
{
    int dim, step, k, count;
    for (dim = 2; dim <= 3; dim++) {
        fsi_wcsph_desc d = make_desc(dim, 0.02);
        fsi_mesh *walls;
        scene t;
        memset(&t, 0, sizeof t);
        d.depth = (fsi_real)0.25;
        t.dim = dim;
        t.s = make_wcsph(&d);
        shape_begin(dim);
        shape_box(dim == 2 ? box3(-0.2, -0.1, 0, 0.2, 0.1, 0) : box3(-0.2, -0.08, -0.1, 0.2, 0.08, 0.1));
        for (k = 0; k < shape.nx; k++) shape.x[k] = fsi_quat_rotate(fsi_quat_from_axis_angle(dim == 2 ? v3(0, 0, 1) : v3(0.2, -1, 0), (fsi_real)0.7), shape.x[k]);
        walls = shape_make(FSI_MESH_CLOSED, 1);
        scene_add(&t, walls, NULL);
        fill(t.s, room(dim, -0.3, -0.05, 0.3, 0.05, 0.16), v3(0, 0, 0));
        count = t.s->count;
        CHECK(count > 50);
        for (step = 0; step < 80; step++) if (!step_ok(t.s, 5e-3) || !check_census(&t)) break;
        CHECK(t.s->count == count && t.s->stats.displaced == 0);
        end_scene(&t);
        fsi_mesh_destroy(walls);
    }
}

/* A block that is moved to and fro, and turned, through a pool: by its mesh, or as a prescribed body. */
static void stir(int dim, int by_body)
{
    scene t = make_tank(dim, 0.02, 2.5, 0.2, NULL);
    fsi_mesh *block = make_crate(dim, 0.05, 0.025, 0);
    fsi_body body = fsi_default_body();
    const fsi_vec3 axis = dim == 2 ? v3(0, 0, 1) : v3(0, -1, 0);
    int step;
    body.pose = body.end = pose_in(dim, 0.2, 0.3);
    mesh_to(block, body.pose);
    scene_add(&t, block, by_body ? &body : NULL);
    for (step = 1; step <= 100; step++) {
        const double time = 5e-3 * step;
        fsi_pose to = pose_in(dim, 0.2 + 0.08 * sin(8 * time), 0.3 - 0.18 * sin(5 * time));
        to.orientation = fsi_quat_from_axis_angle(axis, (fsi_real)(6 * time));
        if (by_body) body.end = to;
        else CHECK(fsi_mesh_move_rigid(block, to.position, to.orientation) == FSI_OK);
        if (!step_ok(t.s, 5e-3)) break;
        if (by_body) fsi_body_integrate(&body, (fsi_real)5e-3);
        if (!check_census(&t)) break;
    }
    CHECK(t.s->stats.displaced == 0);
    end_scene(&t);
    fsi_mesh_destroy(block);
}

static void test_a_block_stirs_a_pool(void)
{
    stir(2, 0);
    stir(2, 1);
    stir(3, 0);
    stir(3, 1);
}

/* ---- coupled ---------------------------------------------------------------------------------------------------- */

/* A light and a heavy crate fall into a pool, with each solver. */
static void test_crates_fall_into_a_pool(void)
{
    static const fsi_wcsph_solver solver[4] = { FSI_WCSPH_GLOBAL, FSI_WCSPH_PGS, FSI_WCSPH_LOCAL_SPLIT, FSI_WCSPH_AUTO };
    int dim, k, step;
    for (dim = 2; dim <= 3; dim++) {
        for (k = 0; k < (dim == 2 ? 4 : 2); k++) {
            scene t = make_tank(dim, 0.02, 2.5, 0.16, NULL);
            fsi_mesh *a = make_crate(dim, 0.04, 0.03, 0), *b = make_crate(dim, 0.03, 0.03, 0);
            fsi_body light = make_load(a, dim, 200, pose_in(dim, 0.1, 0.25)), heavy = make_load(b, dim, 3000, pose_in(dim, 0.28, 0.25));
            fsi_wcsph_desc d = t.s->desc;
            d.solver = solver[k];
            CHECK(fsi_wcsph_set_desc(t.s, &d) == FSI_OK);
            mesh_to(a, light.pose);
            mesh_to(b, heavy.pose);
            scene_add(&t, a, &light);
            scene_add(&t, b, &heavy);
            for (step = 0; step < 60 && height_of(dim, heavy.pose.position) > 0.06; step++) {
                if (!step_ok(t.s, 5e-3)) break;
                fsi_body_accept(&light);
                fsi_body_accept(&heavy);
                if (!check_census(&t)) break;
            }
            CHECK(height_of(dim, heavy.pose.position) <= 0.1);
            CHECK(height_of(dim, light.pose.position) > 0.12);
            end_scene(&t);
            fsi_mesh_destroy(a);
            fsi_mesh_destroy(b);
        }
    }
}

/* What is promised of floats holds up to 1000 dx from the origin: a crate falls, another turns under water, a third stands. */
static void test_a_thousand_spacings_from_the_origin(void)
{
    int dim, step;
    for (dim = 2; dim <= 3; dim++) {
        const double dx = 0.02, off = 970 * dx / sqrt(dim);
        const fsi_vec3 far_off = dim == 2 ? v3(off, off, 0) : v3(off, off, off);
        fsi_mesh *falls = make_crate(dim, 0.04, 0.03, 0.5), *turns = make_crate(dim, 0.04, 0.03, 0), *stands = make_crate(dim, 0.03, 0.06, 0.2);
        fsi_body crate = make_load(falls, dim, 400, pose_in(dim, 0.2, 0.28)), paddle = make_load(turns, dim, 1000, pose_in(dim, 0.3, 0.08));
        fsi_wcsph_desc d = make_desc(dim, dx);
        fsi_box3 water = room(dim, 0, 0, 0.4, 0.16, 0.16);
        fsi_pose place = pose_in(dim, 0.08, 0.05);
        scene t;
        memset(&t, 0, sizeof t);
        t.dim = dim;
        d.domain = room(dim, 0, 0, 0.4, 0.4, 0.16);
        d.domain.lo = fsi_v3_add(d.domain.lo, far_off);
        d.domain.hi = fsi_v3_add(d.domain.hi, far_off);
        d.depth = (fsi_real)0.2;
        d.speed = 2;
        t.s = make_wcsph(&d);
        place.position = fsi_v3_add(place.position, far_off);
        crate.pose.position = fsi_v3_add(crate.pose.position, far_off);
        paddle.pose.position = fsi_v3_add(paddle.pose.position, far_off);
        paddle.mode = FSI_BODY_PRESCRIBED;
        paddle.end = paddle.pose;
        mesh_to(falls, crate.pose);
        mesh_to(turns, paddle.pose);
        mesh_to(stands, place);
        scene_add(&t, falls, &crate);
        scene_add(&t, turns, &paddle);
        scene_add(&t, stands, NULL);
        water.lo = fsi_v3_add(water.lo, far_off);
        water.hi = fsi_v3_add(water.hi, far_off);
        fill(t.s, water, v3(0, 0, 0));
        for (step = 0; step < (TEST_SLOWED ? 20 : 40); step++) {
            paddle.end.orientation = fsi_quat_mul(fsi_quat_from_axis_angle(dim == 2 ? v3(0, 0, 1) : v3(0, 1, 0), (fsi_real)0.03), paddle.pose.orientation);
            if (!step_ok(t.s, 5e-3)) break;
            fsi_body_accept(&crate);
            fsi_body_accept(&paddle);
            if (!check_census(&t)) break;
            CHECK(t.s->stats.min_gap >= -TOL(1e-5, 1e-3) * dx);
        }
        CHECK(height_of(dim, crate.pose.position) - off < 0.26);
        end_scene(&t);
        fsi_mesh_destroy(falls);
        fsi_mesh_destroy(turns);
        fsi_mesh_destroy(stands);
    }
}

/* Two crates pressed towards each other under water, liquid between them in a gap of one to two spacings, then less. */
static void test_bodies_that_share_particles(void)
{
    int dim, step, shared = 0;
    for (dim = 2; dim <= 3; dim++) {
        scene t = make_tank(dim, 0.02, 0, 0.3, NULL);
        fsi_mesh *a = make_crate(dim, 0.03, 0.05, 0);
        fsi_mesh *b = make_crate(dim, 0.03, 0.05, 0);
        fsi_body left = make_load(a, dim, 1000, pose_in(dim, 0.15, 0.12)), right = make_load(b, dim, 1000, pose_in(dim, 0.15 + 0.06 + 0.034, 0.12));
        mesh_to(a, left.pose);
        mesh_to(b, right.pose);
        scene_add(&t, a, &left);
        scene_add(&t, b, &right);
        for (step = 0; step < 40; step++) {
            left.force.x = (fsi_real)(3 * (double)left.mass);
            right.force.x = (fsi_real)(-3 * (double)right.mass);
            if (!step_ok(t.s, 4e-3)) break;
            fsi_body_accept(&left);
            fsi_body_accept(&right);
            shared += t.s->stats.shared;
            if (!check_census(&t)) break;
            if (right.pose.position.x - left.pose.position.x < (fsi_real)0.066) break;
        }
        end_scene(&t);
        fsi_mesh_destroy(a);
        fsi_mesh_destroy(b);
    }
    CHECK(shared > 0);
}

/* Two walls close on a pool until less than a spacing is between them: what has no place is counted, nothing enters, nothing is lost. */
static void test_what_is_pinched_is_counted_and_comes_back(void)
{
    scene t = make_tank(2, 0.02, 1, 0.12, NULL);
    fsi_mesh *a = make_crate(2, 0.05, 0.05, 0), *b = make_crate(2, 0.05, 0.05, 0);
    fsi_body left = fsi_default_body(), right = fsi_default_body();
    int step, most = 0, count = t.s->count;
    left.pose = left.end = pose_in(2, 0.12, 0.045);
    right.pose = right.end = pose_in(2, 0.28, 0.045);
    mesh_to(a, left.pose);
    mesh_to(b, right.pose);
    scene_add(&t, a, &left);
    scene_add(&t, b, &right);
    step_ok(t.s, 1e-3); /* displaces what is where the crates are */
    CHECK(t.s->stats.displaced > 0);
    count = t.s->count;
    for (step = 0; step < 80; step++) {
        const double shift = 0.022 * sin(PI * step / 80); /* the gap: 0.06 down to 0.016 */
        left.end = pose_in(2, 0.12 + shift, 0.045);
        right.end = pose_in(2, 0.28 - shift, 0.045);
        if (!step_ok(t.s, 4e-3)) break;
        fsi_body_integrate(&left, (fsi_real)4e-3);
        fsi_body_integrate(&right, (fsi_real)4e-3);
        if (t.s->stats.pinched > most) most = t.s->stats.pinched;
        if (!check_census(&t)) break;
    }
    CHECK(t.s->count == count);
    CHECK(most > 0 && t.s->stats.pinched == 0);
    end_scene(&t);
    fsi_mesh_destroy(a);
    fsi_mesh_destroy(b);
}

/* ---- thin things ------------------------------------------------------------------------------------------------ */

/* A level sheet from wall to wall, a pool on it: not a particle goes through, as triangles and as one layer of samples. */
static void hold_on_a_sheet(int dim, fsi_wcsph_surface surface, int moving)
{
    const double dx = 0.02;
    scene t = make_tank(dim, dx, 2, 0, NULL);
    fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
    fsi_mesh *sheet;
    fsi_body body = fsi_default_body();
    int step, i, below = 0;
    shape_begin(dim);
    if (dim == 2) {
        shape_vertex(-0.25, 0, 0);
        shape_vertex(0.25, 0, 0);
        shape_face(0, 1, 0);
    } else shape_sheet(v3(-0.25, -0.12, 0), v3(0.5, 0, 0), v3(0, 0.24, 0), 3, 2);
    sheet = shape_make(FSI_MESH_TWO_SIDED, 0);
    body.pose = body.end = pose_in(dim, 0.2, 0.15);
    mesh_to(sheet, body.pose);
    o.mesh = sheet;
    o.body = moving ? &body : NULL;
    o.surface = surface;
    scene_add_desc(&t, &o);
    if (surface == FSI_WCSPH_SURFACE_SAMPLES) t.solid_count = 0; /* the offset surface counts, asked below */
    fill(t.s, room(dim, 0, 0.18, 0.4, 0.3, 0.16), v3(0, 0, 0));
    for (step = 1; step <= 60; step++) {
        if (moving) body.end = pose_in(dim, 0.2, 0.15 + 0.03 * sin(0.25 * step));
        if (!step_ok(t.s, 5e-3)) break;
        if (moving) fsi_body_integrate(&body, (fsi_real)5e-3);
        if (!check_census(&t)) break;
        for (i = 0; i < t.s->count; i++) below += height_of(dim, t.s->position[i]) < height_of(dim, body.pose.position);
        if (!CHECK(below == 0)) break;
        for (i = 0; i < t.s->count && surface == FSI_WCSPH_SURFACE_SAMPLES; i++) {
            const double d = (double)fsi_wcsph_distance(t.s, t.s->position[i], NULL);
            if (!CHECK(d >= (double)t.s->radius - TOL(1e-5, 1e-3) * dx || t.s->stats.pinched > 0)) break;
        }
    }
    CHECK(t.s->count > 0 && t.s->stats.displaced == 0);
    end_scene(&t);
    fsi_mesh_destroy(sheet);
}

static void test_a_pool_on_a_sheet_stays_there(void)
{
    int dim, moving;
    for (dim = 2; dim <= 3; dim++) {
        for (moving = 0; moving < 2; moving++) {
            hold_on_a_sheet(dim, FSI_WCSPH_SURFACE_MESH, moving);
            hold_on_a_sheet(dim, FSI_WCSPH_SURFACE_SAMPLES, moving);
        }
    }
}

/* Samples lie r_P within a solid (on a sheet), closer than asked, with the mesh's normals; the layer has no holes. */
static void test_samples_cover_their_mesh(void)
{
    int dim, k, i;
    for (dim = 2; dim <= 3; dim++) {
        scene t = make_tank(dim, 0.02, 0, 0, NULL);
        fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
        fsi_mesh *crate = make_crate(dim, 0.07, 0.06, 0.3);
        const fsi_vec3 *x, *n;
        uint64_t random = 3;
        int count, id;
        solid b;
        mesh_to(crate, pose_in(dim, 0.2, 0.2));
        o.mesh = crate;
        o.surface = FSI_WCSPH_SURFACE_SAMPLES;
        o.sample_spacing = (fsi_real)0.5;
        id = scene_add_desc(&t, &o);
        b = t.solids[0];
        CHECK(fsi_wcsph_obstacle_samples(t.s, id, &count, &x, &n) == FSI_OK);
        CHECK(count > (dim == 2 ? 40 : 400));
        for (k = 0; k < count; k++) {
            CHECK(inside_solid(&b, x[k]));
            CHECK_NEAR(fsi_v3_norm(n[k]), 1, 1e-5);
            CHECK(distance_to_solid(&b, fsi_v3_madd(x[k], (fsi_real)0.01, n[k])) <= 0.005);
        }
        for (i = 0; i < 200; i++) { /* a point of the mesh has a sample within r_P + spacing */
            const int f = (int)(test_random(&random) * crate->face_count);
            const double u = sqrt(test_random(&random)), w = test_random(&random);
            const int *e = crate->faces + crate->corners * f;
            fsi_vec3 p = fsi_v3_madd(fsi_v3_scale(crate->vertices[e[0]], (fsi_real)(1 - u)), (fsi_real)(u * (dim == 2 ? 1 : 1 - w)), crate->vertices[e[1]]);
            double best = HUGE_VAL;
            if (dim == 3) p = fsi_v3_madd(p, (fsi_real)(u * w), crate->vertices[e[2]]);
            for (k = 0; k < count; k++) best = fmin(best, (double)fsi_v3_norm(fsi_v3_sub(p, x[k])));
            CHECK(best <= 0.02 * (0.5 + 0.5));
        }
        end_scene(&t);
        fsi_mesh_destroy(crate);
    }
}

/* Drops at 60 m/s against a thin wall, a sheet, and the corner of a crate that spins. */
static void test_fast_particles_do_not_pass(void)
{
    int dim, step, k;
    for (dim = 2; dim <= 3; dim++) {
        scene t = make_tank(dim, 0.02, 60, 0, NULL);
        fsi_mesh *wall = make_crate(dim, 0.001, 0.06, 0), *sheet, *crate = make_crate(dim, 0.03, 0.03, 0.4);
        fsi_body body = fsi_default_body();
        uint64_t random = 5;
        int past = 0;
        shape_begin(dim);
        if (dim == 2) {
            shape_vertex(0.3, 0.02, 0);
            shape_vertex(0.3, 0.35, 0);
            shape_face(0, 1, 0);
        } else shape_sheet(v3(0.3, -0.1, -0.1), v3(0, 0.4, 0), v3(0, 0, 0.6), 2, 2);
        sheet = shape_make(FSI_MESH_TWO_SIDED, 0);
        mesh_to(wall, pose_in(dim, 0.15, 0.3));
        body.pose = body.end = pose_in(dim, 0.2, 0.12);
        mesh_to(crate, body.pose);
        scene_add(&t, wall, NULL);
        scene_add(&t, sheet, NULL);
        scene_add(&t, crate, &body);
        for (k = 0; k < 40; k++) add_one(t.s, in_room(dim, 0.02 + 0.021 * (k % 2), 0.03 + 0.017 * (k / 2), 0.03 + 0.1 * test_random(&random)), in_room(dim, 60, 0, 0));
        for (step = 1; step <= 40; step++) {
            body.end.orientation = fsi_quat_from_axis_angle(dim == 2 ? v3(0, 0, 1) : v3(1, 1, 0), (fsi_real)(0.5 * step));
            if (!step_ok(t.s, 1e-3)) break;
            fsi_body_integrate(&body, (fsi_real)1e-3);
            for (k = 0; k < t.s->count && dim == 3; k++) past += (double)t.s->position[k].x > 0.3; /* the sheet closes the tank in space */
            if (!CHECK(past == 0) || !check_census(&t)) break;
        }
        CHECK(t.s->count == 40);
        end_scene(&t);
        fsi_mesh_destroy(wall);
        fsi_mesh_destroy(sheet);
        fsi_mesh_destroy(crate);
    }
}

/* ---- starts ------------------------------------------------------------------------------------------------------ */

/* A body put into the liquid: DISPLACE makes room, REFUSE names a particle and changes nothing. */
static void test_bodies_that_start_in_the_liquid(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        scene t = make_tank(dim, 0.02, 0, 0.2, NULL);
        fsi_mesh *crate = make_crate(dim, 0.04, 0.04, 0.2);
        fsi_wcsph_desc d = t.s->desc;
        uint64_t hash;
        int count = t.s->count, id;
        d.start_inside = FSI_WCSPH_REFUSE;
        CHECK(fsi_wcsph_set_desc(t.s, &d) == FSI_OK);
        mesh_to(crate, pose_in(dim, 0.2, 0.1));
        CHECK(fsi_wcsph_add_mesh(t.s, crate, &id) == FSI_OK);
        hash = fsi_wcsph_hash(t.s);
        CHECK(fsi_wcsph_step(t.s, (fsi_real)1e-3) == FSI_ERROR_ARGUMENT);
        CHECK(fsi_wcsph_error(t.s)->element >= 0 && fsi_wcsph_error(t.s)->element < count);
        CHECK(strstr(fsi_wcsph_error(t.s)->message, "particle") != NULL);
        CHECK(fsi_wcsph_hash(t.s) == hash);
        CHECK(fsi_wcsph_remove_obstacle(t.s, id) == FSI_OK);
        d.start_inside = FSI_WCSPH_DISPLACE;
        CHECK(fsi_wcsph_set_desc(t.s, &d) == FSI_OK);
        scene_add(&t, crate, NULL);
        step_ok(t.s, 1e-3);
        CHECK(t.s->stats.displaced > 0);
        CHECK(t.s->count == count);
        check_census(&t);
        CHECK(fsi_wcsph_count_inside(t.s, NULL) == 0);
        end_scene(&t);
        fsi_mesh_destroy(crate);
    }
}

/* An obstacle that jumps does not sweep; the liquid where it lands makes room. A particle that is written into it is put out. */
static void test_teleporting(void)
{
    int dim, step, i;
    for (dim = 2; dim <= 3; dim++) {
        scene t = make_tank(dim, 0.02, 0, 0.2, NULL);
        fsi_mesh *crate = make_crate(dim, 0.04, 0.04, 0);
        double fast = 0;
        mesh_to(crate, pose_in(dim, 0.08, 0.32));
        scene_add(&t, crate, NULL);
        for (step = 0; step < 10; step++) step_ok(t.s, 2e-3);
        mesh_to(crate, pose_in(dim, 0.3, 0.32)); /* over the other half, not through the air between */
        CHECK(fsi_wcsph_teleport_obstacle(t.s, t.solids[0].id) == FSI_OK);
        step_ok(t.s, 2e-3);
        check_census(&t);
        mesh_to(crate, pose_in(dim, 0.3, 0.1));
        CHECK(fsi_wcsph_teleport_obstacle(t.s, t.solids[0].id) == FSI_OK);
        step_ok(t.s, 2e-3);
        CHECK(t.s->stats.displaced > 0);
        check_census(&t);
        t.s->position[0] = in_room(dim, 0.3, 0.1, 0.08);
        step_ok(t.s, 2e-3);
        CHECK(t.s->stats.displaced > 0);
        check_census(&t);
        CHECK(fsi_wcsph_remove_obstacle(t.s, t.solids[0].id) == FSI_OK);
        t.solid_count = 0;
        for (step = 0; step < 60; step++) if (!step_ok(t.s, 2e-3) || !check_census(&t)) break;
        for (i = 0; i < t.s->count; i++) fast = fmax(fast, (double)fsi_v3_norm(t.s->velocity[i]));
        CHECK(fast < 5);
        CHECK(fsi_wcsph_remove_obstacle(t.s, t.solids[0].id) == FSI_ERROR_ARGUMENT);
        end_scene(&t);
        fsi_mesh_destroy(crate);
    }
}

/* So does a PRESCRIBED body whose pose is not where the last step left it: nothing is swept, as if it had been teleported. */
static void test_a_prescribed_body_starts_at_its_pose(void)
{
    int dim, twin, step;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t hash[2];
        for (twin = 0; twin < 2; twin++) {
            scene t = make_tank(dim, 0.02, 0, 0.2, NULL);
            fsi_mesh *crate = make_crate(dim, 0.04, 0.04, 0);
            fsi_wcsph_desc d = t.s->desc;
            fsi_body body = make_load(crate, dim, 1000, pose_in(dim, 0.2, 0.32));
            body.mode = FSI_BODY_PRESCRIBED;
            body.end = body.pose;
            mesh_to(crate, body.pose);
            scene_add(&t, crate, &body);
            for (step = 0; step < 3; step++) step_ok(t.s, 2e-3);
            body.pose = body.end = pose_in(dim, 0.2, 0.1);
            d.start_inside = FSI_WCSPH_REFUSE;
            CHECK(fsi_wcsph_set_desc(t.s, &d) == FSI_OK);
            hash[twin] = fsi_wcsph_hash(t.s);
            CHECK(fsi_wcsph_step(t.s, (fsi_real)2e-3) == FSI_ERROR_ARGUMENT);
            CHECK(fsi_wcsph_hash(t.s) == hash[twin]);
            d.start_inside = FSI_WCSPH_DISPLACE;
            CHECK(fsi_wcsph_set_desc(t.s, &d) == FSI_OK);
            if (twin) CHECK(fsi_wcsph_teleport_obstacle(t.s, t.solids[0].id) == FSI_OK);
            step_ok(t.s, 2e-3);
            CHECK(t.s->stats.displaced > 0);
            check_census(&t);
            hash[twin] = fsi_wcsph_hash(t.s);
            end_scene(&t);
            fsi_mesh_destroy(crate);
        }
        CHECK(hash[0] == hash[1]);
    }
}

/* An obstacle acts on those that its mask names. */
static void test_masks_choose(void)
{
    scene t = make_tank(2, 0.02, 0, 0, NULL);
    fsi_mesh *crate = make_crate(2, 0.1, 0.02, 0);
    fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
    int step, k;
    mesh_to(crate, pose_in(2, 0.2, 0.2));
    o.mesh = crate;
    o.mask = 2;
    scene_add_desc(&t, &o);
    for (k = 0; k < 6; k++) {
        add_one(t.s, v3(0.125 + 0.03 * k, 0.27, 0), v3(0, 0, 0));
        t.s->filter[k] = k % 2 ? 1 : 6;
    }
    for (step = 0; step < 40; step++) step_ok(t.s, 5e-3);
    for (k = 0; k < 6; k++) {
        CHECK(k % 2 == ((double)t.s->position[k].y < 0.2));
        CHECK(t.s->filter[k] == (k % 2 ? 1u : 6u));
    }
    end_scene(&t);
    fsi_mesh_destroy(crate);
}

/* A separating particle keeps its velocity to the last bit (A8), a touching one that slides freely its tangential part. */
static void test_what_separates_is_left_alone(void)
{
    int paper;
    for (paper = 0; paper < 2; paper++) {
        fsi_wcsph_desc d = make_desc(3, 0.02);
        fsi_mesh *crate;
        scene t;
        fsi_vec3 away = v3(0.3, -0.2, 0.7);
        memset(&t, 0, sizeof t);
        d.gravity = v3(0, 0, 0);
        d.speed = 1;
        d.paper_separation = paper;
        t.dim = 3;
        t.s = make_wcsph(&d);
        crate = make_crate(3, 0.1, 0.1, 0);
        scene_add(&t, crate, NULL);
        add_one(t.s, v3(0.013, 0.007, 0.1 + 0.01), away);
        add_one(t.s, v3(0.05, 0.007, 0.1 + 0.01), v3(0.3, 0.2, -0.7));
        step_ok(t.s, 1e-5);
        if (paper) CHECK(t.s->velocity[0].z == away.z);
        else CHECK(memcmp(&t.s->velocity[0], &away, sizeof away) == 0);
        CHECK_NEAR(t.s->velocity[1].z, 0, TOL(1e-15, 1e-6));
        CHECK_NEAR(t.s->velocity[1].x, 0.15, 1e-6); /* e_t = 0.5 */
        end_scene(&t);
        fsi_mesh_destroy(crate);
    }
}

/* Restitution: a ball that comes at 2 m/s leaves at 2 e_n; with a wall that comes at it, relative to the wall. */
static void test_restitution_is_what_was_asked_for(void)
{
    static const double e[3] = { 0, 0.4, 1 };
    int k, step;
    for (k = 0; k < 3; k++) {
        fsi_wcsph_desc d = make_desc(3, 0.02);
        fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
        fsi_mesh *crate = make_crate(3, 0.1, 0.1, 0);
        fsi_body body = fsi_default_body();
        scene t;
        memset(&t, 0, sizeof t);
        d.gravity = v3(0, 0, 0);
        d.speed = 3;
        t.dim = 3;
        t.s = make_wcsph(&d);
        o.mesh = crate;
        o.body = &body;
        o.restitution = (fsi_real)e[k];
        o.slip = 1;
        scene_add_desc(&t, &o);
        add_one(t.s, v3(0, 0, 0.15), v3(0.5, 0, -1.5));
        for (step = 1; step <= 30; step++) {
            body.end.position.z = (fsi_real)(0.5 * 1e-3 * step);
            step_ok(t.s, 1e-3);
            fsi_body_integrate(&body, (fsi_real)1e-3);
        }
        CHECK_NEAR(t.s->velocity[0].z, 0.5 + 2 * e[k], TOL(1e-6, 1e-4));
        CHECK_NEAR(t.s->velocity[0].x, 0.5, TOL(1e-12, 1e-5));
        end_scene(&t);
        fsi_mesh_destroy(crate);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_dam_breaks_over_a_bar);
    RUN(test_a_tilted_container_keeps_its_liquid);
    RUN_PHYSICS(test_a_block_stirs_a_pool);
    RUN(test_crates_fall_into_a_pool);
    RUN(test_a_thousand_spacings_from_the_origin);
    RUN(test_bodies_that_share_particles);
    RUN(test_what_is_pinched_is_counted_and_comes_back);
    RUN_PHYSICS(test_a_pool_on_a_sheet_stays_there);
    RUN(test_samples_cover_their_mesh);
    RUN(test_fast_particles_do_not_pass);
    RUN(test_bodies_that_start_in_the_liquid);
    RUN(test_teleporting);
    RUN(test_a_prescribed_body_starts_at_its_pose);
    RUN(test_masks_choose);
    RUN(test_what_separates_is_left_alone);
    RUN(test_restitution_is_what_was_asked_for);
    return TEST_END();
}
