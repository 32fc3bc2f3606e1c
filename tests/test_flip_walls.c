/* test_flip_walls.c - obstacles and bodies in the liquid of fsi_flip.h: nothing passes them, Archimedes, what floats
   and what sinks; taps, drains, open sides. SPDX-License-Identifier: MIT */
#include "kit/test_flip.h"

/* No particle where it must not be, and all of them there. */
static int check_inside(const fsi_flip *s, int count)
{
    int first;
    const int inside = fsi_flip_count_inside(s, &first);
    if (CHECK(inside == 0) && CHECK(s->count == count && is_finite(s))) return 1;
    if (inside > 0)
        printf("      at %.4f s: %d inside, particle %d at (%g, %g, %g), %d pinched\n", s->time, inside, first,
        (double)s->position[first].x, (double)s->position[first].y, (double)s->position[first].z, s->stats.pinched);
    return 0;
}

static fsi_pose stand(int dim, double x, double h, double angle)
{
    fsi_pose p = pose_at(dim, x, h, angle);
    if (dim == 3) p.position.y = (fsi_real)0.5;
    return p;
}

/* ---- containers ------------------------------------------------------------------------------------------------ */

/* A tilted bowl within the box holds its liquid, at rest and while it is shaken. */
static void check_bowl(int dim, int moves)
{
    fsi_flip_desc d = make_desc(dim, dim == 2 ? 32 : 12);
    fsi_mesh *bowl = make_container(dim, dim == 2 ? box3(-0.3, -0.3, 0, 0.3, 0.3, 0)
        : box3(-0.3, -0.3, -0.3, 0.3, 0.3, 0.3));
    fsi_flip *s = make_flip(&d);
    int added, step;
    mesh_to(bowl, stand(dim, 0.5, 0.5, 0.2));
    CHECK(fsi_flip_add_mesh(s, bowl, NULL) == FSI_OK);
    CHECK(fsi_flip_fill_box(s, room(dim, 0, 0, 1, 0.5, 1), v3(0, 0, 0), &added) == FSI_OK && added > 100);
    CHECK(fsi_flip_count_inside(s, NULL) == 0);
    for (step = 0; step < 40; step++) {
        const fsi_pose p = stand(dim, 0.5 + 0.1 * sin(0.4 * step), 0.5, 0.2 + 0.3 * sin(0.3 * step));
        if (moves) CHECK(fsi_mesh_move_rigid(bowl, p.position, p.orientation) == FSI_OK);
        if (!step_ok(s, 1.0 / 60) || !check_inside(s, added)) break;
    }
    fsi_flip_destroy(s);
    fsi_mesh_destroy(bowl);
}

static void test_containers_hold_their_liquid(void)
{
    check_bowl(2, 0);
    check_bowl(2, 1);
    check_bowl(3, 1);
}

/* ---- what moves through the liquid ----------------------------------------------------------------------------- */

/* A box of half sizes a, b goes to and fro in the pool, by `way` [m] a step, turning; by its mesh, or by a PRESCRIBED
   body. */
static void check_stirring(int dim, int n, double a, double b, double way, int by_body, double dt, int steps)
{
    fsi_flip_desc d = make_desc(dim, n);
    fsi_mesh *m = make_block(dim, a, b, 0.3);
    fsi_body body = fsi_default_body();
    fsi_flip *s;
    int added, step;
    double x = 0.5 - way / 2;
    d.max_substeps = 60;
    s = make_flip(&d);
    body.pose = body.end = stand(dim, x, 0.3, 0);
    mesh_to(m, body.pose);
    add_solid(s, m, by_body ? &body : NULL);
    CHECK(fsi_flip_fill_box(s, room(dim, 0, 0, 1, 0.6, 1), v3(0, 0, 0), &added) == FSI_OK);
    for (step = 0; step < steps; step++) {
        const fsi_pose p = stand(dim, step % 2 ? 0.5 - way / 2 : 0.5 + way / 2, 0.3 + 0.02 * (step % 3), 0.4 * step);
        if (by_body) body.end = p;
        else CHECK(fsi_mesh_move_rigid(m, p.position, p.orientation) == FSI_OK);
        if (!step_ok(s, dt) || !check_inside(s, added)) break;
        if (by_body) fsi_body_accept(&body);
    }
    fsi_flip_destroy(s);
    fsi_mesh_destroy(m);
}

static void test_no_particle_passes_what_moves(void)
{
    int by_body;
    for (by_body = 0; by_body < 2; by_body++) {
        check_stirring(2, 32, 0.1, 0.1, 0.02, by_body, 1.0 / 60, 40);
        check_stirring(2, 32, 0.08, 0.08, 0.3, by_body, 1.0 / 60, 20);
        check_stirring(2, 64, 0.05, 0.05, 50.0 / 64, by_body, 1.0 / 60, 3);
        check_stirring(3, 16, 0.1, 0.1, 0.2, by_body, 1.0 / 60, 6);
    }
}

/* Plates 0.2 dx thick. */
static void test_no_particle_passes_a_thin_plate(void)
{
    int by_body;
    for (by_body = 0; by_body < 2; by_body++) {
        check_stirring(2, 32, 0.1 / 32, 0.15, 0.02, by_body, 1.0 / 60, 40);
        check_stirring(2, 32, 0.1 / 32, 0.15, 0.4, by_body, 1.0 / 60, 20);
        check_stirring(3, 12, 0.1 / 12, 0.15, 0.3, by_body, 1.0 / 60, 6);
    }
}

/* Liquid dashes against a plate that parts the box: none gets behind it. */
static void test_a_thin_wall_holds_a_dam(void)
{
    int dim, step, i;
    for (dim = 2; dim <= 3; dim++) {
        fsi_flip_desc d = make_desc(dim, dim == 2 ? 32 : 12);
        const double dx = (double)d.dx;
        fsi_mesh *m;
        fsi_flip *s = make_flip(&d);
        int behind = 0, added;
        shape_begin(dim);
        shape_box(dim == 2 ? box3(0.57, -0.1, 0, 0.57 + 0.2 * dx, 1.1, 0)
            : box3(0.57, -0.1, -0.1, 0.57 + 0.2 * dx, 1.1, 1.1));
        m = shape_make(FSI_MESH_CLOSED, 0);
        CHECK(fsi_flip_add_mesh(s, m, NULL) == FSI_OK);
        CHECK(fsi_flip_fill_box(s, room(dim, 0, 0, 0.3, 0.7, 1), v3(2, 0, 0), &added) == FSI_OK);
        for (step = 0; step < 60; step++) if (!step_ok(s, 1.0 / 60) || !check_inside(s, added)) break;
        for (i = 0; i < s->count; i++) behind += (double)s->position[i].x > 0.57;
        CHECK(behind == 0);
        fsi_flip_destroy(s);
        fsi_mesh_destroy(m);
    }
}

/* ---- ceilings ---------------------------------------------------------------------------------------------------- */

/* Liquid at a ceiling falls: walls let go where air gets between, from its sides. */
static void check_hanging(int dim, int from_mesh)
{
    const int n = dim == 2 ? 32 : 12;
    fsi_flip_desc d = make_desc(dim, n);
    const double top = from_mesh ? 1 - 2.5 / n : 1, seconds = 0.2;
    const double fall = 0.5 * 9.81 * seconds * seconds * 13 / 12; /* of 12 steps, which kick before they move */
    fsi_mesh *m = NULL;
    fsi_flip *s = make_flip(&d);
    double before;
    int step;
    shape_begin(dim);
    shape_box(dim == 2 ? box3(-0.1, top, 0, 1.1, 1.2, 0) : box3(-0.1, -0.1, top, 1.1, 1.1, 1.2));
    m = shape_make(FSI_MESH_CLOSED, 0);
    if (from_mesh) CHECK(fsi_flip_add_mesh(s, m, NULL) == FSI_OK);
    fill(s, room(dim, 0.25, top - 0.25, 0.75, top, 1), v3(0, 0, 0));
    before = mean_height(s);
    for (step = 0; step < 12; step++) step_ok(s, seconds / 12);
    printf("      %dD, from %s: falls %.4f m, freely %.4f\n", dim, from_mesh ? "a mesh" : "the ceiling",
        before - mean_height(s), fall);
    CHECK(before - mean_height(s) > 0.6 * fall && before - mean_height(s) < 1.01 * fall);
    fsi_flip_destroy(s);
    fsi_mesh_destroy(m);
}

static void test_liquid_falls_from_the_ceiling(void)
{
    check_hanging(2, 0);
    check_hanging(2, 1);
    check_hanging(3, 0);
    check_hanging(3, 1);
}

/* ---- Archimedes -------------------------------------------------------------------------------------------------- */

/* A cube held under water by a PRESCRIBED body, or standing there as a mesh. */
static void check_held(int dim, int n, int by_body)
{
    const double half = 0.125, size = dim == 2 ? 4 * half * half : 8 * half * half * half;
    fsi_mesh *m = make_block(dim, half, half, half);
    fsi_body body = fsi_default_body();
    fsi_flip_desc d = make_desc(dim, n);
    fsi_flip *s = make_flip(&d);
    double force = 0, side = 0;
    fsi_vec3 f, t;
    int id, step, samples = 0;
    body.pose = body.end = stand(dim, 0.5, 0.3, 0);
    mesh_to(m, body.pose);
    id = add_solid(s, m, by_body ? &body : NULL);
    fill(s, room(dim, 0, 0, 1, 0.6, 1), v3(0, 0, 0));
    for (step = 0; step < 60; step++) {
        if (!step_ok(s, 1.0 / 60)) break;
        CHECK(fsi_flip_obstacle_reaction(s, id, &f, &t) == FSI_OK);
        if (by_body) {
            CHECK_NEAR(height_of(dim, body.reaction_force), height_of(dim, f),
                TOL(1e-9, 1e-4) * fabs(height_of(dim, f)));
            fsi_body_accept(&body);
        }
        if (step < 40) continue;
        force += height_of(dim, f);
        side = fmax(side, fabs((double)f.x));
        samples++;
    }
    force /= samples * 9810 * size;
    printf("      %dD, %s: %.4f of its weight in water, sideways up to %.4f\n", dim, by_body ? "body" : "mesh", force,
        side / (9810 * size));
    CHECK_NEAR(force, 1, 0.03);
    CHECK(side <= 0.03 * 9810 * size);
    fsi_flip_destroy(s);
    fsi_mesh_destroy(m);
}

static void test_what_is_under_water_is_lifted_by_its_weight_in_water(void)
{
    check_held(2, 32, 0);
    check_held(2, 32, 1);
    check_held(3, 16, 1);
}

/* A slab 0.25 m wide and 0.15 m high, let go above where Archimedes has it. Returns its draft over its height. */
static double float_slab(int n, double density, double seconds, double *balance)
{
    const double a = 0.125, b = 0.075, level = 0.4, dt = 1.0 / 60;
    fsi_mesh *m = make_block(2, a, b, 0);
    fsi_body body = make_floater(m, density, 9.81, 2);
    fsi_flip_desc d = make_desc(2, n);
    fsi_flip *s = make_flip(&d);
    double mean = 0, force = 0, draft;
    const double weight = -(double)body.force.y;
    int step, samples = 0;
    const int steps = (int)(seconds / dt);
    body.pose = pose_at(2, 0.5, density < 1000 ? level + 0.03 : level - 0.1, 0.02);
    mesh_to(m, body.pose);
    add_solid(s, m, &body);
    fill(s, box3(0, 0, 0, 1, level, 0), v3(0, 0, 0));
    for (step = 0; step < steps; step++) {
        if (!step_ok(s, dt)) break;
        if (density > 1000 && step < 40) {
            const double y = (double)body.pose.position.y;
            CHECK((double)body.new_velocity.y < 0 || y < b + 0.05);
        }
        fsi_body_accept(&body);
        if (step < steps / 2) calm(s, 0.98), body.velocity = fsi_v3_scale(body.velocity, (fsi_real)0.98);
        CHECK(fsi_flip_count_inside(s, NULL) == 0);
        if (density > 1000 && (double)body.pose.position.y < b + 0.03) break;
        if (step < 2 * steps / 3) continue;
        mean += (double)body.pose.position.y;
        force += (double)body.reaction_force.y;
        samples++;
    }
    *balance = force / (samples > 0 ? samples : 1) / weight;

    /* Draft: the particles and the part of the slab under their level fill the tank. */
    mean /= samples > 0 ? samples : 1;
    draft = (rest_volume(s) - mean + b) / (1 - 2 * a);
    if (density > 1000) draft = (double)body.pose.position.y;
    fsi_flip_destroy(s);
    fsi_mesh_destroy(m);
    return draft / (density > 1000 ? 1 : 2 * b);
}

static void test_bodies_float_and_sink(void)
{
    double balance, at = float_slab(64, 540, 5, &balance), deep;
    printf("      density 540: draft %.4f of its height, reaction %.4f of its weight\n", at, balance);
    CHECK_NEAR(at, 0.54, 0.05);
    CHECK_NEAR(balance, 1, 0.02);
    deep = float_slab(32, 1850, 3, &balance);
    printf("      density 1850: centre sinks to %.4f m\n", deep);
    CHECK(deep < 0.12);
}

/* ---- sources --------------------------------------------------------------------------------------------------- */

/* Volume is area times speed times time, to half a layer. */
static void check_tap(int dim, double dt)
{
    fsi_flip_desc d = make_desc(dim, 24);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_flip *s;
    const double speed = 1.3, r = 0.11, area = dim == 2 ? 2 * r : PI * r * r;
    long long emitted, blocked, refused;
    double t = 0;
    int id;
    d.gravity = v3(0, 0, 0);
    s = make_flip(&d);
    e.center = in_room(dim, 0.2, 0.5, 0.5);
    e.direction = v3(1, 0, 0);
    e.radius = (fsi_real)r;
    e.speed = (fsi_real)speed;
    CHECK(fsi_flip_add_emitter(s, &e, &id) == FSI_OK);
    while (t < 0.3) {
        if (!step_ok(s, dt)) break;
        t += dt;
        CHECK_NEAR(rest_volume(s), area * speed * t, 0.55 * area * (double)s->spacing);
    }
    CHECK(fsi_flip_emitter_total(s, id, &emitted, &blocked, &refused) == FSI_OK);
    CHECK(emitted == s->count && blocked == 0 && refused == 0);
    CHECK(fsi_flip_count_inside(s, NULL) == 0 && s->stats.max_speed < 1.1 * speed);
    fsi_flip_destroy(s);
}

static void test_emitted_volume_is_area_times_speed_times_time(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        check_tap(dim, 1.0 / 240);
        check_tap(dim, 1.0 / 60);
        check_tap(dim, 1.0 / 24);
    }
}

/* A mesh is filled at once and again; max_particles refuses what is too much. */
static void test_a_mesh_is_filled_again_and_again(void)
{
    fsi_flip_desc d = make_desc(3, 16);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_mesh *m = make_block(3, 0.2, 0.2, 0.2);
    fsi_flip *s;
    long long emitted, blocked, refused;
    fsi_pose at;
    int id, step, first = 0;
    d.gravity = v3(0, 0, 0);
    d.max_particles = 3000;
    s = make_flip(&d);
    at.position = v3(0.5, 0.5, 0.5);
    at.orientation = fsi_quat_identity();
    mesh_to(m, at);
    e.shape = FSI_EMITTER_MESH;
    e.mesh = m;
    e.period = 0.0999;
    e.speed = 1;
    CHECK(fsi_flip_add_emitter(s, &e, &id) == FSI_OK);
    for (step = 0; step < 30; step++) {
        if (!step_ok(s, 0.02)) break;
        if (step == 0) first = s->count;
        CHECK(s->count >= first && s->count <= 3000);
    }
    CHECK(first > 1000 && s->count > first);
    CHECK(fsi_flip_emitter_total(s, id, &emitted, &blocked, &refused) == FSI_OK && emitted == s->count);
    CHECK(blocked > 0 && refused > 0 && s->count == 3000);
    fsi_flip_destroy(s);
    fsi_mesh_destroy(m);
}

/* A tap into a tank with a drain: what came less what went is there. Impulses add up, but for what faces at the surface
   of liquid that touches walls lose. */
static void test_taps_and_drains_keep_the_books(void)
{
    fsi_flip_desc d = make_desc(2, 32);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_sink_desc k = fsi_sink_default_desc();
    fsi_flip *s = make_flip(&d);
    long long emitted, removed, sum_emitted = 0, sum_removed = 0;
    double momentum[2] = { 0, 0 }, off[2] = { 0, 0 };
    int start, tap, drain, step, c;
    fill(s, box3(0, 0, 0, 1, 0.3, 0), v3(0, 0, 0));
    start = s->count;
    e.center = v3(0.3, 0.8, 0);
    e.direction = v3(0.2, -1, 0);
    e.radius = (fsi_real)0.06;
    e.speed = 2;
    CHECK(fsi_flip_add_emitter(s, &e, &tap) == FSI_OK);
    k.box = box3(0.8, 0, 0, 1, 0.1, 0);
    k.rate = (fsi_real)0.1;
    CHECK(fsi_flip_add_sink(s, &k, &drain) == FSI_OK);
    for (step = 0; step < 60; step++) {
        if (!step_ok(s, 1.0 / 60)) break;
        sum_emitted += s->stats.emitted;
        sum_removed += s->stats.removed;
        for (c = 0; c < 2; c++) {
            const double given = s->stats.wall_impulse[c] + s->stats.external_impulse[c] + s->stats.source_impulse[c];
            off[c] += s->stats.momentum[c] - momentum[c] - given;
            CHECK_NEAR(s->stats.momentum[c] - momentum[c], given, 0.1 * 9810 * 0.3 / 60);
            momentum[c] = s->stats.momentum[c];
        }
    }
    printf("      momentum off by %.3g, %.3g of that of the weight in 1 s\n", off[0] / 2943, off[1] / 2943);
    CHECK(fabs(off[0]) + fabs(off[1]) < 0.02 * 9810 * 0.3);
    CHECK(fsi_flip_emitter_total(s, tap, &emitted, NULL, NULL) == FSI_OK && emitted == sum_emitted && emitted > 500);
    CHECK(fsi_flip_sink_total(s, drain, &removed) == FSI_OK && removed == sum_removed);
    CHECK_NEAR((double)removed, 0.1 / ((double)s->spacing * (double)s->spacing), 3);
    CHECK(s->count == start + emitted - removed && fsi_flip_count_inside(s, NULL) == 0);
    CHECK(fsi_flip_remove_emitter(s, tap) == FSI_OK && fsi_flip_remove_sink(s, drain) == FSI_OK);
    CHECK(step_ok(s, 1.0 / 60) && s->stats.emitted == 0 && s->stats.removed == 0);
    fsi_flip_destroy(s);
}

/* Liquid leaves through an open side, freely; a closed one holds it. */
static void test_liquid_leaves_through_open_sides(void)
{
    int dim, side, step;
    for (dim = 2; dim <= 3; dim++)
        for (side = 0; side < 2; side++) {
            fsi_flip_desc d = make_desc(dim, 12);
            fsi_flip *s;
            int left = 0, start;
            d.open_side[side] = 1;
            s = make_flip(&d);
            fill(s, room(dim, 0.3, 0, 0.7, 0.5, 1), v3(0, 0, 0));
            start = s->count;
            for (step = 0; step < 180; step++) {
                if (!step_ok(s, 1.0 / 60)) break;
                left += s->stats.left;
            }
            CHECK(left == start - s->count && left > 0.8 * start && fsi_flip_count_inside(s, NULL) == 0);
            fsi_flip_destroy(s);
        }
}

/* What has left does not come back when there is a drain too, and has no part in later substeps: a fast slab keeps its
   speed up to the open side. */
static void test_what_has_left_is_gone(void)
{
    int dim, step, i;
    for (dim = 2; dim <= 3; dim++) {
        fsi_flip_desc d = make_desc(dim, 16);
        fsi_sink_desc drain = fsi_sink_default_desc();
        fsi_flip *s;
        int left = 0, start, id;
        double slow = 10, fast = 0;
        d.gravity = fsi_v3(0, 0, 0);
        d.open_side[1] = 1;
        s = make_flip(&d);
        drain.box = room(dim, 0, 0, 0.05, 0.05, 0.05);
        CHECK(fsi_flip_add_sink(s, &drain, &id) == FSI_OK);
        fill(s, room(dim, 0.5, 0.2, 0.9, 0.6, 0.6), v3(5, 0, 0));
        start = s->count;
        for (step = 0; step < 2; step++) {
            CHECK(step_ok(s, 1.0 / 24));
            left += s->stats.left;
            CHECK(s->stats.substeps > 1 && fsi_flip_count_inside(s, NULL) == 0);
            for (i = 0; i < s->count; i++) {
                slow = fmin(slow, (double)s->velocity[i].x);
                fast = fmax(fast, (double)s->velocity[i].x);
            }
        }
        CHECK(left == start - s->count && left > start / 2 && slow > 4.5 && fast < 5.5);
        fsi_flip_destroy(s);
    }
}

/* Two obstacles on a PRESCRIBED body: it gets the sum of their reactions. COUPLED, such a body is refused. */
static void test_two_obstacles_on_one_body(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        fsi_flip_desc d = make_desc(dim, 16);
        fsi_flip *s = make_flip(&d);
        fsi_mesh *m[2];
        fsi_body body = fsi_default_body();
        fsi_vec3 force[2], sum;
        int id[2];
        for (k = 0; k < 2; k++) {
            m[k] = make_block(dim, 0.1, 0.1, 0.1);
            mesh_to(m[k], stand(dim, 0.3 + 0.4 * k, 0.3 + 0.06 * k, 0));
            id[k] = add_solid(s, m[k], &body);
        }
        fill(s, room(dim, 0, 0, 1, 1, 0.6), v3(0, 0, 0));
        CHECK(step_ok(s, 1.0 / 60));
        for (k = 0; k < 2; k++) CHECK(fsi_flip_obstacle_reaction(s, id[k], &force[k], NULL) == FSI_OK);
        sum = fsi_v3_add(force[0], force[1]);
        CHECK(fsi_v3_norm(force[0]) > 0 && fsi_v3_norm(force[1]) > 0);
        CHECK((double)fsi_v3_norm(fsi_v3_sub(body.reaction_force, sum)) <= TOL(1e-9, 1e-3) * (double)fsi_v3_norm(sum));
        body.mode = FSI_BODY_COUPLED;
        CHECK(fsi_flip_step(s, 1) == FSI_ERROR_ARGUMENT);
        fsi_flip_destroy(s);
        for (k = 0; k < 2; k++) fsi_mesh_destroy(m[k]);
    }
}

/* A body whose pose was set over liquid: looking (dt 0) and a step that fails change nothing, the next step still leads
   the liquid out. */
static void test_a_pose_set_over_liquid_is_seen_by_the_step_that_succeeds(void)
{
    fsi_flip_desc d = make_desc(2, 16);
    fsi_flip *s = make_flip(&d);
    fsi_mesh *m = make_block(2, 0.1, 0.1, 0);
    fsi_body body = fsi_default_body();
    mesh_to(m, stand(2, 0.5, 0.8, 0));
    body.pose = body.end = stand(2, 0.5, 0.8, 0);
    add_solid(s, m, &body);
    fill(s, room(2, 0, 0, 1, 1, 0.5), v3(0, 0, 0));
    CHECK(step_ok(s, 1.0 / 60));
    body.pose = body.end = stand(2, 0.5, 0.3, 0);
    CHECK(step_ok(s, 0));
    s->velocity[3].x = (fsi_real)NAN;
    CHECK(fsi_flip_step(s, (fsi_real)0.01) == FSI_ERROR_NAN);
    s->velocity[3].x = 0;
    CHECK(step_ok(s, 1.0 / 60));
    CHECK(fsi_flip_count_inside(s, NULL) == 0);
    fsi_flip_destroy(s);
    fsi_mesh_destroy(m);
}

/* ---- particles out of place ------------------------------------------------------------------------------------ */

/* Put into an obstacle, or out of the box, by adding or writing; or an obstacle is put over them: led out at once. */
static void test_particles_out_of_place_are_led_out(void)
{
    int dim, i;
    for (dim = 2; dim <= 3; dim++) {
        fsi_flip_desc d = make_desc(dim, 12);
        fsi_mesh *m = make_block(dim, 0.13, 0.13, 0.13);
        fsi_flip *s = make_flip(&d);
        int id, count;
        mesh_to(m, stand(dim, 0.5, 0.5, 0.3));
        id = add_solid(s, m, NULL);
        for (i = 0; i < 20; i++) add_one(s, in_room(dim, 0.45 + 0.005 * i, 0.5, 0.5), v3(1, 0, 0));
        add_one(s, in_room(dim, 3, 0.5, 0.5), v3(1, 0, 0));
        add_one(s, in_room(dim, 0.5, -20, 0.5), v3(1, 0, 0));
        count = s->count;
        CHECK(fsi_flip_count_inside(s, &i) == count && i == 0);
        CHECK(step_ok(s, 1e-3));
        check_inside(s, count);
        s->position[3] = in_room(dim, 0.52, 0.47, 0.5);
        s->position[4] = in_room(dim, -1e6, 0.47, 0.5);
        CHECK(fsi_flip_count_inside(s, NULL) == 2);
        CHECK(step_ok(s, 1e-3));
        check_inside(s, count);
        mesh_to(m, stand(dim, 0.35, 0.55, 0)); /* over those at its left */
        CHECK(fsi_flip_teleport_obstacle(s, id) == FSI_OK);
        CHECK(step_ok(s, 1e-3));
        check_inside(s, count);
        CHECK(fsi_flip_remove_obstacle(s, id) == FSI_OK);
        mesh_to(m, stand(dim, 0.6, 0.6, 0));
        CHECK(fsi_flip_add_mesh(s, m, NULL) == FSI_OK);
        CHECK(step_ok(s, 1e-3));
        check_inside(s, count);
        fsi_flip_destroy(s);
        fsi_mesh_destroy(m);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_containers_hold_their_liquid);
    RUN(test_no_particle_passes_what_moves);
    RUN(test_no_particle_passes_a_thin_plate);
    RUN(test_a_thin_wall_holds_a_dam);
    RUN(test_liquid_falls_from_the_ceiling);
    RUN_PHYSICS(test_what_is_under_water_is_lifted_by_its_weight_in_water);
    RUN_PHYSICS(test_bodies_float_and_sink);
    RUN(test_emitted_volume_is_area_times_speed_times_time);
    RUN(test_a_mesh_is_filled_again_and_again);
    RUN(test_taps_and_drains_keep_the_books);
    RUN(test_liquid_leaves_through_open_sides);
    RUN(test_what_has_left_is_gone);
    RUN(test_two_obstacles_on_one_body);
    RUN(test_a_pose_set_over_liquid_is_seen_by_the_step_that_succeeds);
    RUN(test_particles_out_of_place_are_led_out);
    return TEST_END();
}
