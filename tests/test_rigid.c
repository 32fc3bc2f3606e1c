/* test_rigid.c - fsi_rigid.h without contacts: masses, meshes of shapes, free motion, and what is promised of every
   simulator.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "kit/test_rigid.h"

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

/* Volume and principal moments over density, from tables; half length h of capsules and cylinders, axis x. */
static void analytic_mass(const fsi_rigid_shape *s, int dim, double *volume, double *moment)
{
    const double r = (double)s->radius, h = (double)s->half_length, a = 2 * (double)s->half.x,
                 b = 2 * (double)s->half.y, c = 2 * (double)s->half.z, L = 2 * h;
    *volume = moment[0] = moment[1] = moment[2] = 0;
    if (s->kind == FSI_RIGID_BOX && dim == 2) { *volume = a * b; moment[2] = a * b * (a * a + b * b) / 12; }
    if (s->kind == FSI_RIGID_SPHERE && dim == 2) { *volume = PI * r * r; moment[2] = *volume * r * r / 2; }
    if (s->kind == FSI_RIGID_CAPSULE && dim == 2) { /* a rectangle and two half discs */
        const double m1 = L * 2 * r, m2 = PI * r * r;
        *volume = m1 + m2;
        moment[2] = m1 * (L * L + 4 * r * r) / 12 + m2 * (r * r / 2 + h * h + 8 * h * r / (3 * PI));
    }
    if (dim == 2) return;
    if (s->kind == FSI_RIGID_BOX) {
        *volume = a * b * c;
        moment[0] = *volume * (b * b + c * c) / 12;
        moment[1] = *volume * (a * a + c * c) / 12;
        moment[2] = *volume * (a * a + b * b) / 12;
    } else if (s->kind == FSI_RIGID_SPHERE) {
        *volume = 4 * PI / 3 * r * r * r;
        moment[0] = moment[1] = moment[2] = *volume * 0.4 * r * r;
    } else if (s->kind == FSI_RIGID_CYLINDER) {
        *volume = PI * r * r * L;
        moment[0] = *volume * r * r / 2;
        moment[1] = moment[2] = *volume * (3 * r * r + L * L) / 12;
    } else if (s->kind == FSI_RIGID_CAPSULE) { /* a cylinder and two half balls */
        const double m1 = PI * r * r * L, m2 = 4 * PI / 3 * r * r * r;
        *volume = m1 + m2;
        moment[0] = m1 * r * r / 2 + m2 * 0.4 * r * r;
        moment[1] = moment[2] = m1 * (3 * r * r + L * L) / 12 + m2 * (0.4 * r * r + h * h + 0.75 * h * r);
    }
}

/* Four shapes; in the plane the first three. */
static int simple_shapes(fsi_rigid_shape *s, int dim)
{
    s[0] = fsi_rigid_sphere((fsi_real)0.3);
    s[1] = fsi_rigid_capsule((fsi_real)0.2, (fsi_real)0.35);
    s[2] = fsi_rigid_box(v3(0.3, 0.2, 0.1));
    s[3] = fsi_rigid_cylinder((fsi_real)0.25, (fsi_real)0.4);
    return dim == 2 ? 3 : 4;
}

static fsi_quat odd_turn(int dim, double angle)
{
    return fsi_quat_from_axis_angle(dim == 2 ? v3(0, 0, 1) : v3(1, -2, 0.5), (fsi_real)angle);
}

static void check_tensor(fsi_mat3 a, fsi_mat3 b, int dim, double tol)
{
    int k;
    for (k = dim == 2 ? 8 : 0; k < 9; k++) CHECK_NEAR(a.m[k], b.m[k], tol);
}

static void test_masses_of_shapes_are_exact(void)
{
    fsi_rigid_shape s[4];
    int dim, k, n;
    for (dim = 2; dim <= 3; dim++) {
        n = simple_shapes(s, dim);
        for (k = 0; k < n; k++) {
            fsi_mass_properties p;
            double volume = 0, m[3];
            fsi_mat3 want;
            analytic_mass(&s[k], dim, &volume, m);
            s[k].density = 700;
            s[k].pose.position = v3(1, -2, dim == 2 ? 0 : 0.5);
            s[k].pose.orientation = odd_turn(dim, 0.7);
            CHECK(fsi_rigid_shape_mass(NULL, &s[k], dim, &p) == FSI_OK);
            CHECK_NEAR(p.volume, volume, TOL(1e-14, 1e-6) * 4);
            CHECK_NEAR(p.mass, 700 * volume, TOL(1e-11, 1e-3));
            CHECK_NEAR(apart(p.center, s[k].pose.position), 0, TOL(1e-14, 1e-6));
            want =
                fsi_body_world_tensor(s[k].pose.orientation, fsi_m3_diagonal(v3(700 * m[0], 700 * m[1], 700 * m[2])));
            check_tensor(p.inertia, want, dim, TOL(1e-12, 1e-5) * 700);
        }
    }
}

/* A body of several shapes: masses add up, moments move by Steiner. Given mass scales; given inertia is taken. */
static void test_masses_of_bodies_add_up(void)
{
    fsi_rigid_desc d = rigid_desc(3, 9.81);
    fsi_rigid *w = make_world(&d);
    fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
    fsi_rigid_shape s[2];
    fsi_mass_properties p;
    int id;
    s[0] = box_shape(1, 1, 1);
    s[1] = box_shape(1, 1, 1);
    s[1].pose.position = v3(1, 0, 0);
    s[1].density = 3000;
    b.shapes = s;
    b.shape_count = 2;
    b.pose.position = v3(5, 6, 7);
    b.pose.orientation = fsi_quat_from_axis_angle(v3(0, 0, 1), (fsi_real)(PI / 2));
    CHECK(fsi_rigid_add_body(w, &b, &id) == FSI_OK);
    CHECK_NEAR(w->body[id]->mass, 4000, TOL(1e-9, 1e-3));
    CHECK_NEAR(apart(w->center[id], v3(0.75, 0, 0)), 0, TOL(1e-14, 1e-6));
    CHECK_NEAR(apart(w->body[id]->pose.position, v3(5, 6.75, 7)), 0, TOL(1e-14, 1e-5));
    CHECK_NEAR(apart(fsi_rigid_pose(w, id).position, v3(5, 6, 7)), 0, TOL(1e-14, 1e-5));
    CHECK_NEAR(w->body[id]->inertia.m[0], 4000 / 6.0, TOL(1e-9, 1e-3));
    CHECK_NEAR(w->body[id]->inertia.m[4], 4000 / 6.0 + 1000 * 0.75 * 0.75 + 3000 * 0.25 * 0.25, TOL(1e-9, 1e-3));
    CHECK(fsi_rigid_mass(w, id, &p) == FSI_OK);
    CHECK_NEAR(p.volume, 2, TOL(1e-12, 1e-5));
    CHECK_NEAR(apart(p.center, v3(5, 6.75, 7)), 0, TOL(1e-14, 1e-5));
    /* turned by a quarter */
    CHECK_NEAR(p.inertia.m[0], 4000 / 6.0 + 1000 * 0.75 * 0.75 + 3000 * 0.25 * 0.25, TOL(1e-9, 1e-2));
    b.mass = 10;
    CHECK(fsi_rigid_add_body(w, &b, &id) == FSI_OK);
    CHECK_NEAR(w->body[id]->inertia.m[0], 10 / 6.0, TOL(1e-12, 1e-5));
    CHECK_NEAR(apart(w->center[id], v3(0.75, 0, 0)), 0, TOL(1e-14, 1e-6));
    b.inertia_given = 1;
    b.inertia = fsi_m3_diagonal(v3(2, 3, 4));
    b.center = v3(0, 0, 1);
    CHECK(fsi_rigid_add_body(w, &b, &id) == FSI_OK);
    CHECK(w->body[id]->inertia.m[4] == 3 && (double)w->body[id]->mass == 10);
    CHECK_NEAR(apart(w->body[id]->pose.position, v3(5, 6, 8)), 0, TOL(1e-14, 1e-5));
    b.shapes = NULL;
    b.shape_count = 0;
    CHECK(fsi_rigid_add_body(w, &b, &id) == FSI_OK && fsi_rigid_distance(w, id, v3(0, 0, 0)) == FSI_REAL_MAX);
    fsi_rigid_destroy(w);
}

/* A body made of a mesh has the mesh's mass; a ring is not where its bounding box is. */
static void test_meshes_bring_their_mass(void)
{
    fsi_rigid_desc d = rigid_desc(3, 9.81);
    fsi_rigid *w = make_world(&d);
    fsi_mesh *ring = make_ring(0.5, 0.2, 48, 24);
    fsi_rigid_shape s = fsi_rigid_mesh(ring);
    fsi_mass_properties p;
    int id;
    s.density = 500;
    id = add_shape(w, s, v3(1, 2, 3));
    CHECK(fsi_mesh_mass(ring, 500, 0, &p) == FSI_OK);
    CHECK_NEAR(w->body[id]->mass, p.mass, TOL(1e-10, 1e-3));
    check_tensor(w->body[id]->inertia, p.inertia, 3, TOL(1e-10, 1e-3));
    CHECK_NEAR(p.volume, 2 * PI * PI * 0.5 * 0.2 * 0.2, 0.02 * (double)p.volume);
    fsi_mesh_destroy(ring); /* it was read, not kept */
    CHECK_NEAR(fsi_rigid_distance(w, id, v3(1, 2, 3)), 0.3, 0.01);
    CHECK_NEAR(fsi_rigid_distance(w, id, v3(1.5, 2, 3)), -0.2, 0.01);
    advance(w, 0.01);
    fsi_rigid_destroy(w);
}

/* What tessellate gives is closed, outward, of the right volume and moment, and where the body stands. */
static void check_tessellation(fsi_rigid *w, int id, int dim, double tol)
{
    const fsi_body *b = w->body[id];
    fsi_mass_properties p, q;
    uint64_t random = 3;
    fsi_mesh *m = NULL;
    int k, inside = 0;
    if (!CHECK(fsi_rigid_tessellate(w, id, -1, 0, &m) == FSI_OK)) return;
    CHECK(m->kind == FSI_MESH_CLOSED && !m->container && m->corners == dim && m->report.boundary_edges == 0);
    CHECK(m->report.filled_holes == 0 && m->report.flipped == 0 && m->report.dropped_degenerate == 0 &&
          m->report.self_intersections == 0);
    CHECK(fsi_rigid_mass(w, id, &q) == FSI_OK && fsi_mesh_mass(m, b->mass / q.volume, 0, &p) == FSI_OK);
    CHECK_NEAR(p.volume, q.volume, TOL(1e-10, 1e-5) * (double)q.volume);
    CHECK_NEAR(apart(p.center, b->pose.position), 0, TOL(1e-9, 1e-5));
    check_tensor(p.inertia, q.inertia, dim, tol * (double)fsi_max(q.inertia.m[0], q.inertia.m[8]));
    for (k = 0; k < 300; k++) {
        fsi_vec3 x = fsi_v3_add(b->pose.position, random_vector(&random, dim));
        double far = (double)fsi_rigid_distance(w, id, x);
        if (fabs(far) < 0.02) continue;
        inside += far < 0;
        CHECK_NEAR(fsi_mesh_winding_number(m, x), far < 0 ? 1 : 0, 1e-6);
        CHECK_NEAR(fsi_mesh_signed_distance(m, x), far, 0.012);
    }
    CHECK(inside > 5);
    fsi_mesh_destroy(m);
}

static void test_meshes_of_shapes_are_closed_and_true(void)
{
    int dim, k, n;
    for (dim = 2; dim <= 3; dim++) {
        fsi_rigid_desc d = rigid_desc(dim, 9.81);
        fsi_rigid *w = make_world(&d);
        fsi_mesh *odd = dim == 2 ? make_star(0.5, 0.25, 5) : make_ring(0.35, 0.15, 32, 16), *m = NULL;
        fsi_rigid_shape s[4];
        n = simple_shapes(s, dim);
        for (k = 0; k < n; k++)
            check_tessellation(w, add_turned(w, s[k], v3(3 * k, 1, 0), odd_turn(dim, 0.4 + k)), dim, 0.03);
        check_tessellation(w, add_turned(w, fsi_rigid_mesh(odd), v3(0, 5, 0), odd_turn(dim, 1)), dim, TOL(1e-9, 1e-4));
        CHECK(fsi_rigid_tessellate(w, 2, 0, (fsi_real)0.05, &m) == FSI_OK);
        CHECK(m->vertex_count == (dim == 2 ? 4 : 8)); /* of a box: flat faces stay whole */
        fsi_mesh_destroy(m);
        CHECK(fsi_rigid_tessellate(w, 0, 1, 0, &m) == FSI_ERROR_ARGUMENT &&
              fsi_rigid_tessellate(w, 9, 0, 0, &m) == FSI_ERROR_ARGUMENT);
        CHECK(fsi_rigid_tessellate(w, 0, 0, -1, &m) == FSI_ERROR_ARGUMENT &&
              fsi_rigid_tessellate(w, 0, 0, (fsi_real)test_nan(), &m) == FSI_ERROR_NAN);
        fsi_mesh_destroy(odd);
        fsi_rigid_destroy(w);
    }
}

/* ---- free motion ------------------------------------------------------------------------------------------------ */

/* A block with three different moments, thrown up turning about its unstable axis; nothing touches it. */
static void tumble(double dt, double seconds, fsi_body *end, double *spin_error, double *energy_error)
{
    fsi_rigid_desc d = rigid_desc(3, 0);
    fsi_rigid *w = make_world(&d);
    int id = add_shape(w, box_shape(0.1, 0.3, 0.6), v3(0, 0, 0));
    fsi_vec3 first;
    double e0;
    CHECK(fsi_rigid_set_velocity(w, id, v3(1, 2, 3), v3(0.1, 5, 0.2)) == FSI_OK);
    first = spin_of(w->body[id]);
    e0 = kinetic_energy_of(w->body[id]);
    *spin_error = *energy_error = 0;
    while (w->time < seconds - dt / 2 && advance(w, dt)) {
        *spin_error = fmax(*spin_error, apart(spin_of(w->body[id]), first) / (double)fsi_v3_norm(first));
        *energy_error = fmax(*energy_error, fabs(kinetic_energy_of(w->body[id]) / e0 - 1));
    }
    *end = *w->body[id];
    fsi_rigid_destroy(w);
}

static void test_a_tumbling_block_keeps_momentum_and_energy(void)
{
    fsi_body fine, b[3];
    double spin, energy[3], error[3], x;
    int k;
    tumble(1.0 / 3840, 4, &fine, &spin, &x);
    for (k = 0; k < 3; k++) {
        tumble(1.0 / (60 << k), 4, &b[k], &spin, &energy[k]);
        error[k] = turn_between(b[k].pose.orientation, fine.pose.orientation);
        CHECK(spin <= TOL(1e-12, 2e-4));
        CHECK_NEAR(apart(b[k].pose.position, v3(4, 8, 12)), 0, TOL(1e-11, 1e-3));
    }
    CHECK(energy[1] <= TOL(0.3 * energy[0], 0.5 * energy[0] + 1e-4)); /* second order: a quarter */
    /* the axis is unstable: floats' rounding grows e^16 times */
    if (sizeof(fsi_real) == 8) CHECK(error[0] <= 0.1 && error[1] <= 0.35 * error[0] && error[2] <= 0.35 * error[1]);
    tumble(1.0 / 60, TEST_SLOWED ? 20 : 200, &b[0], &spin, &x); /* no drift: as much after 50 times as long */
    CHECK(x <= 1.2 * energy[0] + TOL(0, 2e-3) && spin <= TOL(1e-10, 3e-3));
}

/* Falling: velocity g t to rounding; the position within g t dt of g t^2/2, and halving dt halves that. */
static void test_falling_bodies_follow_the_parabola(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        double off[2];
        for (k = 0; k < 2; k++) {
            fsi_rigid_desc d = rigid_desc(dim, 9.81);
            fsi_rigid *w = make_world(&d);
            int id = add_shape(w, box_shape(0.1, 0.2, 0.3), v3(0, 0, 0));
            CHECK(fsi_rigid_set_velocity(w, id, v3(3, 0, 0), v3(0, 0, 2)) == FSI_OK);
            advance_to(w, 1, 0.01 / (k + 1));
            CHECK_NEAR(along(w->body[id]->velocity, up(dim)), -9.81, TOL(1e-12, 1e-4));
            CHECK_NEAR(w->body[id]->pose.position.x, 3, TOL(1e-12, 1e-4));
            CHECK_NEAR(w->stats.kinetic_energy, kinetic_energy_of(w->body[id]), TOL(1e-9, 1e-2));
            CHECK_NEAR(w->stats.potential_energy, 9.81 * (double)w->body[id]->mass * height_of(w, id), TOL(1e-9, 1e-1));
            off[k] = fabs(height_of(w, id) + 9.81 / 2);
            if (dim == 2)
                CHECK_NEAR(turn_between(w->body[id]->pose.orientation, fsi_quat_from_axis_angle(v3(0, 0, 1), 2)), 0,
                           TOL(1e-12, 1e-4));
            fsi_rigid_destroy(w);
        }
        CHECK(off[0] <= 9.81 * 0.01 && off[1] <= 0.51 * off[0] + TOL(1e-12, 1e-5));
    }
}

/* Substeps of one call are as many calls. */
static void test_substeps_are_steps(void)
{
    fsi_rigid_desc d = rigid_desc(3, 9.81);
    fsi_rigid *a, *b;
    int k, id;
    a = make_world(&d);
    d.substeps = 4;
    b = make_world(&d);
    for (k = 0; k < 2; k++) {
        fsi_rigid *w = k ? b : a;
        id = add_shape(w, box_shape(0.1, 0.2, 0.3), v3(0, 0, 0));
        CHECK(fsi_rigid_set_velocity(w, id, v3(1, 2, 3), v3(5, 6, 7)) == FSI_OK);
    }
    for (k = 0; k < 40; k++) advance(a, 0.0025);
    for (k = 0; k < 10; k++) advance(b, 0.01);
    CHECK(b->stats.substeps == 4);
    CHECK_NEAR(apart(a->body[0]->pose.position, b->body[0]->pose.position), 0, TOL(1e-12, 1e-5));
    CHECK_NEAR(turn_between(a->body[0]->pose.orientation, b->body[0]->pose.orientation), 0, TOL(1e-7, 1e-3));
    fsi_rigid_destroy(a);
    fsi_rigid_destroy(b);
}

/* Forces by array last, apply_force lasts one step, impulses act at once, both at a point. */
static void test_forces_and_impulses_move_bodies(void)
{
    fsi_rigid_desc d = rigid_desc(3, 0);
    fsi_rigid *w = make_world(&d);
    int id = add_shape(w, box_shape(0.1, 0.1, 0.1), v3(0, 0, 0)), k; /* 1 kg, moment 1/600 */
    const fsi_body *b = w->body[id];
    for (k = 0; k < 10; k++) {
        CHECK(fsi_rigid_apply_force(w, id, v3(0, 1, 0), v3(0, 0, 0)) == FSI_OK &&
              fsi_rigid_apply_force(w, id, v3(0, 1, 0), v3(0, 0, 0)) == FSI_OK);
        advance(w, 0.01);
    }
    CHECK_NEAR(b->velocity.y, 0.2, TOL(1e-13, 1e-6));
    advance_to(w, 0.2, 0.01);
    CHECK_NEAR(b->velocity.y, 0.2, TOL(1e-13, 1e-6));
    w->force[id] = v3(0, -2, 0);
    w->torque[id] = v3(0, 0, 0.01);
    advance_to(w, 0.3, 0.01);
    CHECK_NEAR(b->velocity.y, 0, TOL(1e-13, 1e-6));
    CHECK_NEAR(b->angular_velocity.z, 0.01 * 0.1 * 600, TOL(1e-12, 1e-5));
    w->force[id] = w->torque[id] = v3(0, 0, 0);
    CHECK(fsi_rigid_set_velocity(w, id, v3(0, 0, 0), v3(0, 0, 0)) == FSI_OK);
    CHECK(fsi_rigid_apply_impulse(w, id, v3(0, 0.5, 0), fsi_v3_add(b->pose.position, v3(0.05, 0, 0))) == FSI_OK);
    CHECK_NEAR(b->velocity.y, 0.5, TOL(1e-13, 1e-6));
    CHECK_NEAR(b->angular_velocity.z, 0.05 * 0.5 * 600, TOL(1e-11, 1e-5));
    fsi_rigid_destroy(w);
}

/* KINEMATIC bodies go where they are told, exactly, whatever is in the way; STATIC ones stay. */
static void test_kinematic_bodies_arrive(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        fsi_rigid_desc d = rigid_desc(dim, 9.81);
        fsi_rigid *w = make_world(&d);
        int id = add_kind(w, box_shape(1, 1, 1), v3(0, 0, 0), FSI_RIGID_KINEMATIC),
            still = add_kind(w, box_shape(1, 1, 1), v3(0.2, 0, 0), FSI_RIGID_STATIC);
        fsi_pose p = fsi_rigid_pose(w, id);
        CHECK(fsi_rigid_body(w, id)->mode == FSI_BODY_PRESCRIBED &&
              fsi_rigid_body(w, still)->mode == FSI_BODY_PRESCRIBED);
        p.position = v3(0.1, 0.2, dim == 2 ? 0 : 0.3);
        p.orientation = odd_turn(dim, 0.3);
        CHECK(fsi_rigid_set_target(w, id, p) == FSI_OK);
        advance(w, 0.01);
        CHECK_NEAR(apart(fsi_rigid_pose(w, id).position, p.position), 0, TOL(1e-14, 1e-6));
        CHECK_NEAR(turn_between(fsi_rigid_pose(w, id).orientation, p.orientation), 0, TOL(1e-14, 1e-6));
        advance(w, 0.01);
        CHECK_NEAR(apart(fsi_rigid_pose(w, id).position, p.position), 0, TOL(1e-14, 1e-6)); /* rests then */
        CHECK(fsi_rigid_set_velocity(w, id, v3(1, 0, 0), v3(0, 0, 1)) == FSI_OK);
        advance_to(w, 0.52, 0.01);
        CHECK_NEAR(fsi_rigid_pose(w, id).position.x, 0.1 + 0.5, TOL(1e-12, 1e-5));
        CHECK(apart(fsi_rigid_pose(w, still).position, v3(0.2, 0, 0)) == 0);
        CHECK(fsi_rigid_set_target(w, still, p) == FSI_ERROR_ARGUMENT &&
              fsi_rigid_set_velocity(w, still, v3(1, 0, 0), v3(0, 0, 0)) == FSI_ERROR_ARGUMENT);
        fsi_rigid_destroy(w);
    }
}

static void test_distances_are_those_of_the_shapes(void)
{
    fsi_rigid_desc d = rigid_desc(3, 9.81);
    fsi_rigid *w = make_world(&d);
    fsi_rigid_shape s[4];
    int ball, capsule, box, cylinder;
    simple_shapes(s, 3);
    ball = add_shape(w, s[0], v3(0, 0, 0));
    capsule = add_shape(w, s[1], v3(0, 0, 0));
    box = add_shape(w, s[2], v3(0, 0, 0));
    cylinder = add_shape(w, s[3], v3(0, 0, 0));
    CHECK_NEAR(fsi_rigid_distance(w, ball, v3(0.3, 0.4, 0)), 0.2, TOL(1e-15, 1e-7));
    CHECK_NEAR(fsi_rigid_distance(w, capsule, v3(0.35 + 0.3, 0.4, 0)), 0.3, TOL(1e-15, 1e-7));
    CHECK_NEAR(fsi_rigid_distance(w, capsule, v3(0.1, 0, 0.05)), -0.15, TOL(1e-15, 1e-7));
    CHECK_NEAR(fsi_rigid_distance(w, box, v3(0.3 + 0.3, 0.2 + 0.4, 0)), 0.5, TOL(1e-15, 1e-7));
    CHECK_NEAR(fsi_rigid_distance(w, box, v3(0.1, 0, 0.08)), -0.02, TOL(1e-15, 1e-7));
    CHECK_NEAR(fsi_rigid_distance(w, cylinder, v3(0.4 + 0.3, 0, 0.25 + 0.4)), 0.5, TOL(1e-15, 1e-7));
    CHECK_NEAR(fsi_rigid_distance(w, cylinder, v3(0, 0.2, 0)), -0.05, TOL(1e-15, 1e-7));
    CHECK(fsi_rigid_distance(w, 7, v3(0, 0, 0)) == FSI_REAL_MAX);
    fsi_rigid_destroy(w);
}

/* ---- promises of every simulator -------------------------------------------------------------------------------- */

/* A room with a heap of all shapes, a tree, a paddle that sweeps; in the plane likewise. Returns NULL where an
   allocation failed. */
static fsi_rigid *make_heap(fsi_context *context, int dim, int bodies)
{
    static fsi_mesh *ring, *star;
    fsi_rigid_desc d = rigid_desc(dim, 9.81);
    fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
    fsi_rigid_tree_desc td = fsi_rigid_default_tree_desc();
    fsi_rigid_link_desc l[3];
    fsi_rigid_shape s[5], rod = fsi_rigid_capsule((fsi_real)0.06, (fsi_real)0.1);
    fsi_rigid *w = NULL;
    uint64_t random = 12;
    int k, n = simple_shapes(s, dim), id;
    if (!ring) ring = make_ring(0.35, 0.12, 16, 8);
    if (!star) star = make_star(0.4, 0.2, 5);
    for (k = 0; k < n; k++) {
        s[k].radius *= (fsi_real)0.6;
        s[k].half = fsi_v3_scale(s[k].half, (fsi_real)0.8);
        s[k].half_length *= (fsi_real)0.6;
    }
    s[n++] = fsi_rigid_mesh(dim == 2 ? star : ring);
    d.context = context;
    d.domain = dim == 2 ? box3(-1.5, 0, 0, 1.5, 6, 0) : box3(-1, -1, 0, 1, 1, 6);
    d.sleep_time = (fsi_real)0.3;
    if (fsi_rigid_create(&w, &d) != FSI_OK) return NULL;
    b.shape_count = 1;
    for (k = 0; k < bodies; k++) {
        b.shapes = &s[k % n];
        b.pose.position = fsi_v3_add(fsi_v3_scale(random_vector(&random, dim), (fsi_real)0.6),
                                     fsi_v3_scale(up(dim), (fsi_real)(0.6 + 0.45 * k)));
        b.pose.orientation = odd_turn(dim, 1.3 * k);
        b.angular_velocity = dim == 2 ? v3(0, 0, k % 5) : v3(k % 3, k % 4, k % 5);
        if (fsi_rigid_add_body(w, &b, &id) != FSI_OK) { fsi_rigid_destroy(w); return NULL; }
    }
    for (k = 0; k < 3; k++) {
        fsi_vec3 at = fsi_v3_add(v3(-0.6 + 0.25 * k, 0, 0), fsi_v3_scale(up(dim), (fsi_real)0.25));
        l[k] = make_link(&rod, at, k - 1, FSI_RIGID_REVOLUTE, fsi_v3_sub(at, v3(0.125, 0, 0)),
                         dim == 2 ? v3(0, 0, 1) : v3(0, 1, 0.3));
    }
    td.links = l;
    td.link_count = 3;
    if (fsi_rigid_add_tree(w, &td, NULL) != FSI_OK) { fsi_rigid_destroy(w); return NULL; }
    b.shapes = &s[2];
    b.kind = FSI_RIGID_KINEMATIC;
    b.pose.position = dim == 2 ? v3(1.2, 0.3, 0) : v3(0.7, 0, 0.3);
    b.pose.orientation = fsi_quat_identity();
    b.velocity = v3(-0.3, 0, 0);
    b.angular_velocity = v3(0, 0, 0);
    if (fsi_rigid_add_body(w, &b, &id) != FSI_OK) { fsi_rigid_destroy(w); return NULL; }
    return w;
}

static uint64_t hash_of_heap(int dim, int threads, int adversarial, int bodies)
{
    fsi_context context = fsi_default_context();
    fsi_rigid *w;
    uint64_t hash = 0;
    int k, seen = 0;
    if (threads) test_threads(&context, threads, adversarial);
    w = make_heap(&context, dim, bodies);
    if (!CHECK(w != NULL)) return 0;
    for (k = 0; k < (TEST_SLOWED ? 25 : 90); k++) {
        if (!advance(w, 1.0 / 60)) break;
        seen = seen > w->stats.contacts ? seen : w->stats.contacts;
    }
    CHECK(seen > bodies);
    hash = fsi_rigid_hash(w);
    fsi_rigid_destroy(w);
    return hash;
}

static void test_any_number_of_threads_gives_the_same_bits(void)
{
    static const int threads[5] = { 1, 2, 4, 7, 7 };
    const int bodies = TEST_SLOWED ? 12 : 24;
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        uint64_t serial = hash_of_heap(dim, 0, 0, bodies);
        for (k = TEST_SLOWED ? 3 : 0; k < 5; k++) CHECK(hash_of_heap(dim, threads[k], k == 4, bodies) == serial);
    }
}

static void *save_world(const fsi_rigid *w, size_t *size)
{
    void *state;
    CHECK(fsi_rigid_save(w, NULL, 0, size) == FSI_OK);
    state = malloc(*size);
    CHECK(fsi_rigid_save(w, state, *size, size) == FSI_OK);
    return state;
}

/* Rolled back, the same steps give the same bits; so does another world made alike. */
static void test_saved_worlds_go_on_with_the_same_bits(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        fsi_rigid *w = make_heap(NULL, dim, 12), *other = make_heap(NULL, dim, 12), *fewer = make_heap(NULL, dim, 11);
        uint64_t first, end;
        size_t size;
        void *state;
        w->force[3] = v3(1, 0, 0);
        for (k = 0; k < 40; k++) advance(w, 1.0 / 60);
        state = save_world(w, &size);
        first = fsi_rigid_hash(w);
        for (k = 0; k < 40; k++) advance(w, 1.0 / 60);
        end = fsi_rigid_hash(w);
        CHECK(first != end);
        CHECK(fsi_rigid_load(w, state, size) == FSI_OK && fsi_rigid_hash(w) == first);
        CHECK(fsi_rigid_load(other, state, size) == FSI_OK && fsi_rigid_hash(other) == first &&
              (double)other->force[3].x == 1);
        for (k = 0; k < 40; k++) { advance(w, 1.0 / 60); advance(other, 1.0 / 60); }
        CHECK(fsi_rigid_hash(w) == end && fsi_rigid_hash(other) == end);
        first = fsi_rigid_hash(fewer);
        CHECK(fsi_rigid_load(fewer, state, size) == FSI_ERROR_FORMAT && fsi_rigid_hash(fewer) == first);
        free(state);
        fsi_rigid_destroy(w);
        fsi_rigid_destroy(other);
        fsi_rigid_destroy(fewer);
    }
}

static void test_damaged_states_are_refused(void)
{
    fsi_rigid *w = make_heap(NULL, 3, 6);
    size_t size, k, wanted = 0;
    unsigned char *state, *bad;
    uint64_t hash;
    for (k = 0; k < 30; k++) advance(w, 1.0 / 60);
    state = (unsigned char *)save_world(w, &size);
    bad = (unsigned char *)malloc(size + 8);
    advance(w, 1.0 / 60);
    hash = fsi_rigid_hash(w);
    for (k = 0; k < size; k += k < 64 ? 1 : 41) {
        memcpy(bad, state, size);
        bad[k] ^= 0x10;
        CHECK(fsi_rigid_load(w, bad, size) == FSI_ERROR_FORMAT);
        CHECK(fsi_rigid_load(w, state, k) == FSI_ERROR_FORMAT);
    }
    memcpy(bad, state, size);
    memset(bad + size, 0, 8);
    CHECK(fsi_rigid_load(w, bad, size + 8) == FSI_ERROR_FORMAT);
    CHECK(fsi_rigid_load(w, NULL, size) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_load(NULL, state, size) != FSI_OK);
    CHECK(fsi_rigid_save(w, NULL, 0, &wanted) == FSI_OK); /* contacts have come and gone */
    CHECK(fsi_rigid_save(w, bad, wanted - 1 < size ? wanted - 1 : size - 1, &wanted) == FSI_ERROR_LIMIT && wanted > 0);
    CHECK(fsi_rigid_save(w, NULL, 0, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_hash(w) == hash);
    CHECK(fsi_rigid_load(w, state, size) == FSI_OK && fsi_rigid_hash(w) != hash);
    free(state);
    free(bad);
    fsi_rigid_destroy(w);
}

/* Everything that allocates, in order: 0 to 3 say which call failed, -1 none. */
static int build_all(fsi_context *context, fsi_rigid **out, const void *state, size_t size)
{
    fsi_mesh *m = NULL;
    int k;
    *out = make_heap(context, 3, 5);
    if (!*out) return 0;
    for (k = 0; k < 30; k++) if (fsi_rigid_step(*out, (fsi_real)(1.0 / 60)) != FSI_OK) return 1;
    if (fsi_rigid_tessellate(*out, 0, -1, 0, &m) != FSI_OK) return 2;
    fsi_mesh_destroy(m);
    if (state && fsi_rigid_load(*out, state, size) != FSI_OK) return 3;
    return -1;
}

static void test_every_failed_allocation_rolls_back(void)
{
    fsi_rigid *w = NULL, *big = NULL;
    fsi_context plain = fsi_default_context();
    size_t size, live = test_live_bytes();
    int stage = 0, seen[4] = { 0, 0, 0, 0 };
    void *state;
    long fail;
    CHECK(build_all(&plain, &big, NULL, 0) == -1);
    state = save_world(big, &size);
    for (fail = 1; stage >= 0 && fail < 3000; fail += TEST_SLOWED ? 7 : 1) {
        fsi_context context = fsi_default_context();
        test_fail_allocator(&context, fail);
        stage = build_all(&context, &w, state, size);
        if (stage >= 0) {
            seen[stage]++;
            CHECK(context.error.status == FSI_ERROR_MEMORY);
        }
        if (w && stage == 1) { /* the same step succeeds later, as if it had not been tried */
            uint64_t before = fsi_rigid_hash(w);
            test_fail_allocator(&context, 1);
            CHECK(fsi_rigid_step(w, (fsi_real)(1.0 / 60)) == FSI_ERROR_MEMORY && fsi_rigid_hash(w) == before);
            test_fail_allocator(&context, 0);
            while (w->time < big->time - 1e-6) if (!advance(w, 1.0 / 60)) break;
            CHECK(fsi_rigid_hash(w) == fsi_rigid_hash(big));
        }
        fsi_rigid_destroy(w);
        CHECK(context.bytes == 0 && test_live_bytes() == live);
    }
    CHECK(stage == -1 && seen[0] > 0 && seen[2] > 0);
    free(state);
    fsi_rigid_destroy(big);
}

/* Steps whose counts all stay within their past peaks ask for no memory: the same half second, a second time. */
static void test_a_heap_allocates_nothing_below_its_peak(void)
{
    fsi_context context = fsi_default_context();
    fsi_rigid *w;
    void *state;
    size_t size;
    long long before;
    int k;
    test_fail_allocator(&context, 0);
    w = make_heap(&context, 3, 10);
    for (k = 0; k < 240; k++) advance(w, 1.0 / 60);
    state = save_world(w, &size);
    for (k = 0; k < 30; k++) advance(w, 1.0 / 60);
    CHECK(fsi_rigid_load(w, state, size) == FSI_OK);
    before = test_alloc_count();
    for (k = 0; k < 30; k++) advance(w, 1.0 / 60);
    CHECK(test_alloc_count() == before && w->stats.allocs == before && w->stats.bytes > 0);
    free(state);
    fsi_rigid_destroy(w);
}

/* NaN in whatever a caller may write: refused by name, nothing moves, and the world goes on when it is mended. */
static void test_nan_never_enters(void)
{
    fsi_rigid *w = make_heap(NULL, 3, 8);
    int k;
    for (k = 0; k < 20; k++) advance(w, 1.0 / 60);
    for (k = 0; k < 6; k++) {
        const double evil = k % 2 ? test_nan() : test_inf();
        fsi_body kept = *w->body[4];
        fsi_real *target[6];
        fsi_vec3 x = w->body[4]->pose.position;
        double t = w->time;
        target[0] = &w->force[4].x;
        target[1] = &w->torque[4].z;
        target[2] = &w->force[4].y;
        target[3] = &w->torque[4].y;
        target[4] = &w->force[4].z;
        target[5] = &w->torque[4].x;
        *target[k] = (fsi_real)evil;
        CHECK(fsi_rigid_step(w, (fsi_real)(1.0 / 60)) == FSI_ERROR_NAN);
        CHECK(fsi_rigid_error(w)->element == 4 && strstr(fsi_rigid_error(w)->message, k % 2 ? "torque" : "force"));
        CHECK(w->time == t && apart(x, w->body[4]->pose.position) == 0 && memcmp(&kept, w->body[4], sizeof kept) == 0);
        *target[k] = 0;
        CHECK(advance(w, 1.0 / 60));
    }
    /* numbers that are finite but lead out of range: refused too */
    {
        uint64_t hash;
        w->force[4] = v3(TOL(1e300, 1e37), 0, 0);
        hash = fsi_rigid_hash(w);
        CHECK(fsi_rigid_step(w, 1000) != FSI_OK && fsi_rigid_hash(w) == hash);
        w->force[4] = v3(0, 0, 0);
        CHECK(advance(w, 1.0 / 60));
    }
    for (k = 0; k < w->count; k++)
        CHECK(fsi_v3_is_finite(w->body[k]->pose.position) && fsi_v3_is_finite(w->body[k]->velocity));
    fsi_rigid_destroy(w);
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static int refused_desc(fsi_rigid_desc *d, fsi_status status, const char *word)
{
    fsi_context context = fsi_default_context();
    fsi_rigid *w = (fsi_rigid *)1;
    d->context = &context;
    if (CHECK(fsi_rigid_create(&w, d) == status) && CHECK(w == NULL) &&
        CHECK(status == FSI_ERROR_COOKIE || strstr(context.error.message, word) != NULL))
        return 1;
    printf("  said: %s (want %s)\n", context.error.message, word);
    if (w) fsi_rigid_destroy(w);
    return 0;
}

static void test_bad_worlds_are_refused_by_name(void)
{
    fsi_rigid_desc d;
    fsi_rigid *w = NULL;
    const fsi_real nan = (fsi_real)test_nan();
#define TRY(change, status, word) (d = fsi_rigid_default_desc(), (change), refused_desc(&d, status, word))
    TRY(d.cookie = 0, FSI_ERROR_COOKIE, "");
    TRY(d.dim = 4, FSI_ERROR_ARGUMENT, "dim");
    TRY(d.gravity.x = nan, FSI_ERROR_NAN, "gravity");
    TRY(d.dim = 2, FSI_ERROR_ARGUMENT, "gravity");
    TRY(d.substeps = 0, FSI_ERROR_ARGUMENT, "substeps");
    TRY(d.substeps = 1001, FSI_ERROR_ARGUMENT, "substeps");
    TRY(d.sweeps = 0, FSI_ERROR_ARGUMENT, "sweeps");
    TRY(d.tolerance = -1, FSI_ERROR_ARGUMENT, "tolerance");
    TRY(d.tolerance = nan, FSI_ERROR_NAN, "tolerance");
    TRY(d.friction = (fsi_real)-0.5, FSI_ERROR_ARGUMENT, "friction");
    TRY(d.restitution = 2, FSI_ERROR_ARGUMENT, "restitution");
    TRY(d.restitution_speed = -1, FSI_ERROR_ARGUMENT, "restitution_speed");
    TRY(d.contact_margin = -1, FSI_ERROR_ARGUMENT, "contact_margin");
    TRY(d.slop = -1, FSI_ERROR_ARGUMENT, "slop");
    TRY(d.push = 2, FSI_ERROR_ARGUMENT, "push");
    TRY(d.overlap = (fsi_rigid_overlap)9, FSI_ERROR_ARGUMENT, "overlap");
    TRY(d.sleep_speed = -1, FSI_ERROR_ARGUMENT, "sleep_speed");
    TRY(d.sleep_time = nan, FSI_ERROR_NAN, "sleep_time");
    TRY(d.domain = box3(0, 0, test_nan(), 1, 1, 1), FSI_ERROR_NAN, "domain");
    TRY(d.reserve_bodies = -1, FSI_ERROR_ARGUMENT, "reserve");
    TRY(d.reserve_contacts = -1, FSI_ERROR_ARGUMENT, "reserve");
#undef TRY
    CHECK(fsi_rigid_create(NULL, &d) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_create(&w, NULL) != FSI_OK && w == NULL);
    fsi_rigid_destroy(NULL);
    CHECK(fsi_rigid_step(NULL, 1) == FSI_ERROR_COOKIE || fsi_rigid_step(NULL, 1) == FSI_ERROR_ARGUMENT);
}

static int refused_body(fsi_rigid *w, fsi_rigid_body_desc *b, fsi_status status, const char *word)
{
    uint64_t hash = fsi_rigid_hash(w);
    int count = w->count, id = -7, ok;
    ok = CHECK(fsi_rigid_add_body(w, b, &id) == status) && CHECK(w->count == count && fsi_rigid_hash(w) == hash);
    ok = ok && CHECK(status == FSI_ERROR_COOKIE || strstr(fsi_rigid_error(w)->message, word) != NULL);
    if (!ok) printf("  said: %s (want %s)\n", fsi_rigid_error(w)->message, word);
    return ok;
}

static void test_bad_bodies_are_refused_by_name(void)
{
    fsi_rigid_desc d = rigid_desc(3, 9.81);
    fsi_rigid *w = make_world(&d), *flat;
    fsi_rigid_body_desc b;
    fsi_rigid_shape s;
    fsi_mesh *open, *container = make_container(3, box3(0, 0, 0, 1, 1, 1)), *star = make_star(1, 0.5, 5);
    const fsi_real nan = (fsi_real)test_nan();
    shape_begin(3);
    shape_sheet(v3(0, 0, 0), v3(1, 0, 0), v3(0, 1, 0), 2, 2);
    open = shape_make(FSI_MESH_OPEN, 0);
    add_shape(w, box_shape(1, 1, 1), v3(0, 0, 0));
#define TRY(change, status, word)                                                                                      \
    (b = fsi_rigid_default_body_desc(), s = box_shape(1, 1, 1), b.shapes = &s, b.shape_count = 1, (change),            \
     refused_body(w, &b, status, word))
    TRY(b.cookie = 0, FSI_ERROR_COOKIE, "");
    TRY(b.kind = (fsi_rigid_kind)9, FSI_ERROR_ARGUMENT, "kind");
    TRY(b.kind = FSI_RIGID_NONE, FSI_ERROR_ARGUMENT, "kind");
    TRY(b.shapes = NULL, FSI_ERROR_ARGUMENT, "shapes");
    TRY(b.shape_count = -1, FSI_ERROR_ARGUMENT, "shape_count");
    TRY(b.shape_count = 5000, FSI_ERROR_ARGUMENT, "shape_count");
    TRY(b.shape_count = 0, FSI_ERROR_ARGUMENT, "mass");
    TRY(b.pose.position.y = nan, FSI_ERROR_NAN, "pose");
    TRY(b.pose.orientation.w = 2, FSI_ERROR_ARGUMENT, "orientation");
    TRY(b.velocity.x = nan, FSI_ERROR_NAN, "velocity");
    TRY(b.angular_velocity.z = nan, FSI_ERROR_NAN, "angular_velocity");
    TRY(b.mass = -1, FSI_ERROR_ARGUMENT, "mass");
    TRY(b.mass = nan, FSI_ERROR_NAN, "mass");
    TRY(b.inertia_given = 1, FSI_ERROR_ARGUMENT, "mass");
    TRY((b.inertia_given = 1, b.mass = 1, b.inertia = fsi_m3_diagonal(v3(1, 1, 5))), FSI_ERROR_ARGUMENT,
        "principal moments");
    TRY((b.inertia_given = 1, b.mass = 1, b.inertia = fsi_m3_diagonal(v3(0, 0, 0))), FSI_ERROR_ARGUMENT, "inertia");
    TRY(b.friction = (fsi_real)-0.5, FSI_ERROR_ARGUMENT, "friction");
    TRY(b.restitution = (fsi_real)1.5, FSI_ERROR_ARGUMENT, "restitution");
    TRY(s.kind = (fsi_rigid_shape_kind)8, FSI_ERROR_ARGUMENT, "shape 0");
    TRY(s.half.x = 0, FSI_ERROR_ARGUMENT, "half");
    TRY(s.half.y = nan, FSI_ERROR_NAN, "half");
    TRY(s = fsi_rigid_sphere(0), FSI_ERROR_ARGUMENT, "radius");
    TRY(s = fsi_rigid_capsule(1, -1), FSI_ERROR_ARGUMENT, "half_length");
    TRY(s = fsi_rigid_cylinder(1, 0), FSI_ERROR_ARGUMENT, "half_length");
    TRY(s.density = 0, FSI_ERROR_ARGUMENT, "density");
    TRY(s.density = nan, FSI_ERROR_NAN, "density");
    TRY(s.pose.orientation.x = 1, FSI_ERROR_ARGUMENT, "orientation");
    TRY(s = fsi_rigid_mesh(NULL), FSI_ERROR_ARGUMENT, "mesh");
    TRY(s = fsi_rigid_mesh(open), FSI_ERROR_MESH, "open");
    TRY(s = fsi_rigid_mesh(container), FSI_ERROR_MESH, "container");
    TRY(s = fsi_rigid_mesh(star), FSI_ERROR_MESH, "");
    /* a mesh that crosses itself: two boxes through each other */
    shape_begin(3);
    shape_box(box3(0, 0, 0, 1, 1, 1));
    shape_box(box3(0.5, 0.3, 0.3, 1.5, 0.7, 0.7));
    {
        fsi_mesh *crossed = shape_make(FSI_MESH_CLOSED, 0);
        CHECK(crossed->report.self_intersections > 0);
        TRY(s = fsi_rigid_mesh(crossed), FSI_ERROR_MESH, "");
        fsi_mesh_destroy(crossed);
    }
#undef TRY
    d = rigid_desc(2, 9.81);
    flat = make_world(&d);
    b = fsi_rigid_default_body_desc();
    s = fsi_rigid_cylinder(1, 1);
    b.shapes = &s;
    b.shape_count = 1;
    refused_body(flat, &b, FSI_ERROR_ARGUMENT, "cylinder");
    fsi_rigid_destroy(flat);
    fsi_mesh_destroy(open);
    fsi_mesh_destroy(container);
    fsi_mesh_destroy(star);
    fsi_rigid_destroy(w);
}

static void test_bad_calls_are_refused_and_change_nothing(void)
{
    fsi_rigid_desc d = rigid_desc(3, 9.81), e;
    fsi_rigid *w = make_world(&d);
    fsi_mass_properties p;
    fsi_pose pose;
    const fsi_real nan = (fsi_real)test_nan();
    int id = add_shape(w, box_shape(1, 1, 1), v3(0, 0, 1)),
        still = add_kind(w, box_shape(1, 1, 1), v3(5, 0, 0), FSI_RIGID_STATIC), plane;
    uint64_t hash;
    plane = add_floor(w);
    hash = fsi_rigid_hash(w);
    CHECK(fsi_rigid_step(w, (fsi_real)1e-13) == FSI_ERROR_ARGUMENT && fsi_rigid_step(w, -1) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_step(w, nan) != FSI_OK && strstr(fsi_rigid_error(w)->message, "dt"));
    CHECK(strstr(fsi_rigid_error(NULL)->message, "context.error.message") != NULL);
    CHECK(strcmp(fsi_rigid_error(w)->function, "fsi_rigid_step") == 0);
    CHECK(fsi_rigid_begin_step(w, -1) == FSI_ERROR_ARGUMENT &&
          fsi_rigid_end_step(w, (fsi_real)0.1) == FSI_ERROR_ARGUMENT && fsi_rigid_take_liquid(w) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_remove_body(w, 7) == FSI_ERROR_ARGUMENT && fsi_rigid_remove_body(w, -1) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_body(w, 7) == NULL && fsi_rigid_body(w, -1) == NULL &&
          fsi_rigid_mass(w, 7, &p) == FSI_ERROR_ARGUMENT);
    pose = fsi_rigid_pose(w, id);
    pose.position.x = nan;
    CHECK(fsi_rigid_teleport(w, id, pose) == FSI_ERROR_NAN);
    pose = fsi_rigid_pose(w, id);
    pose.orientation.w = 3;
    CHECK(fsi_rigid_teleport(w, id, pose) == FSI_ERROR_ARGUMENT &&
          fsi_rigid_teleport(w, 9, fsi_rigid_pose(w, id)) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_set_velocity(w, id, v3(0, test_nan(), 0), v3(0, 0, 0)) == FSI_ERROR_NAN);
    CHECK(fsi_rigid_set_target(w, id, fsi_rigid_pose(w, id)) == FSI_ERROR_ARGUMENT); /* DYNAMIC */
    CHECK(fsi_rigid_apply_impulse(w, id, v3(0, 0, test_inf()), v3(0, 0, 0)) == FSI_ERROR_NAN &&
          fsi_rigid_apply_impulse(w, 9, v3(0, 0, 0), v3(0, 0, 0)) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_apply_force(w, id, v3(0, 0, 0), v3(0, 0, test_nan())) == FSI_ERROR_NAN &&
          fsi_rigid_apply_force(w, still, v3(1, 0, 0), v3(0, 0, 0)) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_sleep(w, still) == FSI_ERROR_ARGUMENT && fsi_rigid_wake(w, 9) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_add_plane(w, v3(0, 0, 0), 0, NULL, NULL) == FSI_ERROR_ARGUMENT &&
          fsi_rigid_add_plane(w, v3(0, 0, 1), nan, NULL, NULL) == FSI_ERROR_NAN);
    CHECK(fsi_rigid_remove_plane(w, 5) == FSI_ERROR_ARGUMENT);
    e = w->desc;
    e.dim = 2;
    CHECK(fsi_rigid_set_desc(w, &e) == FSI_ERROR_ARGUMENT);
    e = w->desc;
    e.sweeps = 0;
    CHECK(fsi_rigid_set_desc(w, &e) == FSI_ERROR_ARGUMENT && strstr(fsi_rigid_error(w)->message, "sweeps"));
    CHECK(fsi_rigid_hash(w) == hash && w->desc.sweeps == d.sweeps);
    e = w->desc;
    e.gravity = v3(1, 0, 0);
    CHECK(fsi_rigid_set_desc(w, &e) == FSI_OK && advance(w, 0.01) && (double)w->body[id]->velocity.x > 0);
    CHECK(fsi_rigid_remove_plane(w, plane) == FSI_OK && fsi_rigid_remove_plane(w, plane) == FSI_ERROR_ARGUMENT);
    /* not between begin and end: save, and what would pull the floor away under the liquid */
    {
        size_t size;
        CHECK(fsi_rigid_begin_step(w, (fsi_real)0.01) == FSI_OK);
        CHECK(fsi_rigid_save(w, NULL, 0, &size) == FSI_ERROR_ARGUMENT);
        CHECK(fsi_rigid_step(w, (fsi_real)0.01) == FSI_ERROR_ARGUMENT);
        CHECK(fsi_rigid_begin_step(w, (fsi_real)0.01) == FSI_OK); /* anew, as after a liquid's step that failed */
        CHECK(fsi_rigid_end_step(w, (fsi_real)0.02) == FSI_ERROR_ARGUMENT &&
              fsi_rigid_end_step(w, (fsi_real)0.01) == FSI_OK);
    }
    fsi_rigid_destroy(w);
}

/* fsi_bodys stay where they are while hundreds are added; places of removed ones are used again; teleported bodies keep
   velocities. */
static void test_addresses_stay_and_places_are_used_again(void)
{
    fsi_rigid_desc d = rigid_desc(3, 0);
    fsi_rigid *w = make_world(&d);
    fsi_body *first, *second;
    fsi_pose p;
    int k, id;
    add_shape(w, ball_shape(0.1), v3(0, 0, 0));
    add_shape(w, ball_shape(0.1), v3(1, 0, 0));
    first = fsi_rigid_body(w, 0);
    second = fsi_rigid_body(w, 1);
    for (k = 2; k < 500; k++) add_shape(w, ball_shape(0.1), v3(k, 0, 0));
    CHECK(fsi_rigid_body(w, 0) == first && w->body[1] == second && w->count == 500 && w->capacity >= 500);
    CHECK(fsi_rigid_remove_body(w, 0) == FSI_OK && w->kind[0] == FSI_RIGID_NONE && w->body[0] == NULL &&
          fsi_rigid_remove_body(w, 0) == FSI_ERROR_ARGUMENT);
    advance(w, 0.01);
    CHECK(w->stats.bodies == 499);
    id = add_shape(w, box_shape(1, 1, 1), v3(0, 9, 0));
    CHECK(id == 0 && w->count == 500 && fsi_rigid_body(w, 1) == second);
    CHECK(fsi_rigid_set_velocity(w, 0, v3(0, 0, 2), v3(1, 0, 0)) == FSI_OK);
    p = fsi_rigid_pose(w, 0);
    p.position = v3(0, -50, 0);
    CHECK(fsi_rigid_teleport(w, 0, p) == FSI_OK);
    CHECK((double)w->body[0]->pose.position.y == -50 && (double)w->body[0]->velocity.z == 2);
    advance(w, 0.5);
    CHECK_NEAR(w->body[0]->pose.position.z, 1, TOL(1e-14, 1e-6));
    fsi_rigid_destroy(w);
}

static int drawn;
static void count_lines(void *user, fsi_vec3 a, fsi_vec3 b, uint32_t rgb)
{
    (void)user;
    (void)rgb;
    drawn += fsi_v3_is_finite(a) && fsi_v3_is_finite(b);
}

static void test_debug_drawing_shows_every_shape(void)
{
    fsi_debug_draw draw;
    int dim;
    memset(&draw, 0, sizeof draw);
    for (dim = 2; dim <= 3; dim++) {
        fsi_rigid *w = make_heap(NULL, dim, 10);
        advance(w, 0.01);
        fsi_rigid_debug_draw(w, &draw); /* NULL callbacks are skipped */
        draw.line = count_lines;
        drawn = 0;
        fsi_rigid_debug_draw(w, &draw);
        CHECK(drawn > 40);
        draw.line = NULL;
        fsi_rigid_destroy(w);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_masses_of_shapes_are_exact);
    RUN(test_masses_of_bodies_add_up);
    RUN(test_meshes_bring_their_mass);
    RUN(test_meshes_of_shapes_are_closed_and_true);
    RUN(test_distances_are_those_of_the_shapes);
    RUN(test_a_tumbling_block_keeps_momentum_and_energy);
    RUN(test_falling_bodies_follow_the_parabola);
    RUN(test_substeps_are_steps);
    RUN(test_forces_and_impulses_move_bodies);
    RUN(test_kinematic_bodies_arrive);
    RUN(test_any_number_of_threads_gives_the_same_bits);
    RUN(test_saved_worlds_go_on_with_the_same_bits);
    RUN(test_damaged_states_are_refused);
    RUN(test_every_failed_allocation_rolls_back);
    RUN(test_a_heap_allocates_nothing_below_its_peak);
    RUN(test_nan_never_enters);
    RUN(test_bad_worlds_are_refused_by_name);
    RUN(test_bad_bodies_are_refused_by_name);
    RUN(test_bad_calls_are_refused_and_change_nothing);
    RUN(test_addresses_stay_and_places_are_used_again);
    RUN(test_debug_drawing_shows_every_shape);
    return TEST_END();
}
