/* test_wcsph_bodies.h - bodies in a weakly compressible liquid: what test_wcsph_scenes.c measures small and validate_wcsph.c at full size.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_WCSPH_BODIES_H
#define FSI_TEST_WCSPH_BODIES_H

#include "test_wcsph.h"

/* ---- drafts: data/floating_draft.csv ------------------------------------------------------------------------------ */

/* A crate n spacings high, half as wide again, starts where Archimedes has it and is left to itself (stable where
   density (1 - density) < (width/height)^2/6): how far its draft is off density times height, in spacings. Its speed is damped for half
   of `seconds`; the mean is over the last third. */
TEST_FN double draft_error(fsi_context *context, int dim, int n, double density, double seconds)
{
    const double high = 0.12, width = 1.5 * high, dx = high / n, wide = dim == 2 ? 0.54 : 0.36, deep = 0.21, base = dim == 2 ? wide : wide * wide;
    const double share = density / 1000, level = deep + (dim == 2 ? width : width * width) * high * share / base, want = level + high * (0.5 - share), dt = 4e-3;
    const int steps = (int)(seconds / dt);
    fsi_mesh *m = make_block(dim, width / 2, high / 2, width / 2);
    fsi_body body = make_floater(m, density, 9.81, dim);
    fsi_wcsph_desc d = make_desc(dim, dx);
    double mean = 0;
    int k, samples = 0;
    scene t;
    memset(&t, 0, sizeof t);
    d.context = context;
    d.domain = dim == 2 ? box3(0, 0, 0, wide, 0.5, 0) : box3(0, 0, 0, wide, wide, 0.5);
    d.depth = (fsi_real)level;
    d.domain_slip = 1;
    t.dim = dim;
    t.s = make_wcsph(&d);
    body.pose.position = dim == 2 ? v3(wide / 2, want, 0) : v3(wide / 2, wide / 2, want);
    mesh_to(m, body.pose);
    scene_add(&t, m, &body);
    fill(t.s, dim == 2 ? box3(0, 0, 0, wide, level, 0) : box3(0, 0, 0, wide, wide, level), v3(0, 0, 0));
    CHECK(fsi_wcsph_settle_density(t.s, dim == 2 ? v3(0, level, 0) : v3(0, 0, level)) == FSI_OK);
    for (k = 0; k < steps; k++) {
        if (!step_ok(t.s, dt)) break;
        fsi_body_accept(&body);
        if (k < steps / 2) {
            calm(t.s, 0.95);
            body.velocity = fsi_v3_scale(body.velocity, (fsi_real)0.95);
            body.angular_velocity = fsi_v3_scale(body.angular_velocity, (fsi_real)0.95);
        }
        if (k < 2 * steps / 3) continue;
        mean += height_of(dim, body.pose.position);
        samples++;
    }
    { /* the level is that of the particles which are there */
        const double real_level = (t.s->count * (double)t.s->particle_mass / 1000 + (dim == 2 ? width : width * width) * high * share) / base;
        mean = mean / samples + level - real_level;
    }
    check_census(&t);
    fsi_wcsph_destroy(t.s);
    fsi_mesh_destroy(m);
    return (want - mean) / dx;
}

/* ---- the force on what is held ------------------------------------------------------------------------------------ */

/* A cylinder (2D) or box (3D) n spacings high held in the middle of a pool at rest: the mean upward force on it over the weight of the
   liquid that it displaces. */
TEST_FN double held_buoyancy(fsi_context *context, int dim, int n, double seconds)
{
    const double R = 0.05, dx = 2 * R / n, wide = dim == 2 ? 0.4 : 0.24, deep = 0.3, dt = 4e-3;
    const int steps = (int)(seconds / dt);
    fsi_mesh *m = dim == 2 ? make_cylinder(R, 48) : make_block(3, R, R, R);
    fsi_body held = fsi_default_body();
    fsi_mass_properties p;
    fsi_wcsph_desc d = make_desc(dim, dx);
    double force = 0;
    int k, samples = 0;
    scene t;
    memset(&t, 0, sizeof t);
    CHECK(fsi_mesh_mass(m, 1000, 0, &p) == FSI_OK);
    d.context = context;
    d.domain = dim == 2 ? box3(0, 0, 0, wide, 0.5, 0) : box3(0, 0, 0, wide, wide, 0.5);
    d.depth = (fsi_real)deep;
    d.domain_slip = 1;
    t.dim = dim;
    t.s = make_wcsph(&d);
    held.pose.position = held.end.position = dim == 2 ? v3(wide / 2, 0.15, 0) : v3(wide / 2, wide / 2, 0.15);
    mesh_to(m, held.pose);
    scene_add(&t, m, &held);
    fill(t.s, dim == 2 ? box3(0, 0, 0, wide, deep, 0) : box3(0, 0, 0, wide, wide, deep), v3(0, 0, 0));
    CHECK(fsi_wcsph_settle_density(t.s, dim == 2 ? v3(0, deep, 0) : v3(0, 0, deep)) == FSI_OK);
    for (k = 0; k < steps; k++) {
        if (!step_ok(t.s, dt)) break;
        if (k < steps / 2) calm(t.s, 0.95);
        if (k < steps / 2) continue;
        force += height_of(dim, held.reaction_force);
        samples++;
    }
    check_census(&t);
    fsi_wcsph_destroy(t.s);
    fsi_mesh_destroy(m);
    return force / samples / ((double)p.mass * 9.81);
}

/* ---- released from rest: data/added_mass_release_from_rest.csv ------------------------------------------------------ */

/* A cylinder of `density` n spacings across, in the middle of a tank 8 diameters wide and deep, let go from rest: the mean acceleration of
   its first `seconds` over g. Ideal: (1 - D)/(D + 1). */
TEST_FN double released_acceleration(fsi_context *context, int n, double density, double seconds, fsi_wcsph_solver solver)
{
    const double R = 0.05, dx = 2 * R / n, L = 16 * R;
    const double dt = seconds / 20;
    fsi_mesh *m = make_cylinder(R, 48);
    fsi_body body = make_floater(m, density, 9.81, 2), held = fsi_default_body();
    fsi_wcsph_desc d = make_desc(2, dx);
    double v;
    int k, id;
    scene t;
    memset(&t, 0, sizeof t);
    d.context = context;
    d.domain = box3(0, 0, 0, L, 1.3 * L, 0);
    d.depth = (fsi_real)L;
    d.domain_slip = 1;
    d.solver = solver;
    t.dim = 2;
    t.s = make_wcsph(&d);
    held.pose.position = held.end.position = v3(L / 2, L / 2, 0);
    mesh_to(m, held.pose);
    {
        fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
        o.mesh = m;
        o.body = &held;
        o.slip = 1;
        id = scene_add_desc(&t, &o);
        fill(t.s, box3(0, 0, 0, L, L, 0), v3(0, 0, 0));
        CHECK(fsi_wcsph_settle_density(t.s, v3(0, L, 0)) == FSI_OK);
        for (k = 0; k < 60; k++) { /* the lattice finds its place around the cylinder */
            if (!step_ok(t.s, 4e-3)) break;
            calm(t.s, 0.8);
        }
        body.pose = held.pose;
        CHECK(fsi_wcsph_remove_obstacle(t.s, id) == FSI_OK);
        t.solid_count = 0;
        o.body = &body;
        scene_add_desc(&t, &o);
    }
    for (k = 0; k < 20; k++) {
        if (!step_ok(t.s, dt)) break;
        fsi_body_accept(&body);
    }
    v = (double)body.velocity.y;
    fsi_wcsph_destroy(t.s);
    fsi_mesh_destroy(m);
    return v / (seconds * 9.81);
}

/* ---- skipping: data/README.md 4.6 ----------------------------------------------------------------------------------- */

/* A disc of radius r, thickness e around the origin, its axis z. */
TEST_FN fsi_mesh *make_disc(double r, double e, int n)
{
    int k, top, bottom;
    shape_begin(3);
    for (k = 0; k < 2 * n; k++) shape_vertex(r * cos(2 * PI * (k % n) / n), r * sin(2 * PI * (k % n) / n), k < n ? -e / 2 : e / 2);
    bottom = shape_vertex(0, 0, -e / 2);
    top = shape_vertex(0, 0, e / 2);
    for (k = 0; k < n; k++) {
        const int next = (k + 1) % n;
        shape_face(bottom, next, k);
        shape_face(top, n + k, n + next);
        shape_quad(k, next, n + next, n + k);
    }
    return shape_make(FSI_MESH_CLOSED, 0);
}

/* Clanet, Hersen and Bocquet (2004): an aluminium disc of 25 mm and 14.6 g, its attitude held by its spin (here by an inertia of ages), meets
   water at `speed` [m/s] on a path of 20 degrees, tilted by `attack` degrees. 1: it leaves the water, the trailing edge above the level
   and nothing of the liquid touching it through a whole call; 0: it goes under, or rises and comes down again before that. */
TEST_FN int disc_skips(fsi_context *context, double dx, double speed, double attack)
{
    const double R = 0.025, e = 0.00275, path = 20 * PI / 180, tilt = attack * PI / 180, deep = 0.035, length = 0.26, wide = 0.1;
    fsi_mesh *m = make_disc(R, e, 24);
    fsi_wcsph_desc d = make_desc(3, dx);
    fsi_body body = fsi_default_body();
    const double dt = 1e-3 * 3.5 / speed;
    int k, out = 0, wet = 0, rose = 0;
    scene t;
    memset(&t, 0, sizeof t);
    d.context = context;
    d.domain = box3(0, 0, 0, length, wide, 0.12);
    d.depth = (fsi_real)deep;
    d.speed = (fsi_real)speed;
    d.domain_slip = 1;
    t.dim = 3;
    t.s = make_wcsph(&d);
    fill(t.s, box3(0, 0, 0, length, wide, deep), v3(0, 0, 0));
    CHECK(fsi_wcsph_settle_density(t.s, v3(0, 0, deep)) == FSI_OK);
    body.mode = FSI_BODY_COUPLED;
    body.mass = (fsi_real)0.0146;
    body.inertia = fsi_m3_scale(fsi_m3_identity(), (fsi_real)1e3);
    body.force = v3(0, 0, -9.81 * 0.0146);
    body.pose.position = v3(0.04, wide / 2, deep + R * sin(tilt) + e / 2 + 0.25 * dx); /* its trailing edge just above the water */
    body.pose.orientation = fsi_quat_from_axis_angle(v3(0, -1, 0), (fsi_real)tilt); /* leading edge up */
    body.velocity = v3(speed * cos(path), 0, -speed * sin(path));
    mesh_to(m, body.pose);
    {
        fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
        o.mesh = m;
        o.body = &body;
        o.slip = 1;
        scene_add_desc(&t, &o);
    }
    for (k = 0; k < 200 && !out; k++) {
        double edge;
        int touched;
        if (!step_ok(t.s, dt)) break;
        touched = fsi_v3_norm2(body.impulse) > 0;
        fsi_body_accept(&body);
        edge = (double)body.pose.position.z - deep - R * sin(tilt) - e / 2;
        wet += touched;
        rose += body.velocity.z > 0;
        out = wet > 0 && !touched && edge > 0 && body.velocity.z > 0;
        if ((rose > 0 && edge < 0 && body.velocity.z < 0) || edge < -R || (double)body.pose.position.x > length - R - 2 * dx) break;
    }
    CHECK(wet > 0);
    check_census(&t);
    fsi_wcsph_destroy(t.s);
    fsi_mesh_destroy(m);
    return out;
}

/* ---- sinking -------------------------------------------------------------------------------------------------------- */

/* What it would be with the added mass of a square in an ideal liquid, 4.754 rho a^2, and drag 1/2 rho Cd 2 a v^2, Cd = 2:
   v' = g' - k v^2 gives x = log(cosh(sqrt(g' k) t))/k; the same upward. */
TEST_FN double sunk_ideal(double density, double seconds)
{
    const double a = 0.05, mass = 4 * a * a * density + 4754 * a * a, g = 9.81 * 4 * a * a * fabs(density - 1000) / mass, k = 1000 * 2 * a / mass;
    return (density < 1000 ? -1 : 1) * log(cosh(sqrt(g * k) * seconds)) / k;
}

/* A square of side 2 a and `density` let go just under the level of a deep pool: how far its centre has sunk after `seconds` [m]. */
TEST_FN double sunk_after(fsi_context *context, int n, double density, double seconds, double alpha, double slip)
{
    const double a = 0.05, dx = 2 * a / n, wide = 0.5, deep = 0.7, dt = 5e-3;
    fsi_mesh *m = make_block(2, a, a, 0);
    fsi_body body = make_floater(m, density, 9.81, 2);
    fsi_wcsph_desc d = make_desc(2, dx);
    fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
    double y;
    int k;
    scene t;
    memset(&t, 0, sizeof t);
    d.context = context;
    d.domain = box3(0, 0, 0, wide, 1, 0);
    d.depth = (fsi_real)deep;
    d.alpha = (fsi_real)alpha;
    d.visc_bulk_only = alpha < 1;
    t.dim = 2;
    t.s = make_wcsph(&d);
    body.pose.position = v3(wide / 2, deep - 0.1, 0);
    mesh_to(m, body.pose);
    o.mesh = m;
    o.body = &body;
    o.slip = (fsi_real)slip;
    scene_add_desc(&t, &o);
    fill(t.s, box3(0, 0, 0, wide, deep, 0), v3(0, 0, 0));
    CHECK(fsi_wcsph_settle_density(t.s, v3(0, deep, 0)) == FSI_OK);
    for (k = 0; k * dt < seconds; k++) {
        if (!step_ok(t.s, dt)) break;
        fsi_body_accept(&body);
    }
    y = (double)body.pose.position.y;
    check_census(&t);
    fsi_wcsph_destroy(t.s);
    fsi_mesh_destroy(m);
    return deep - 0.1 - y;
}

/* ---- a ramp (A9) ------------------------------------------------------------------------------------------------------ */

/* A layer of liquid slides down a ramp of 30 degrees: the mean speed along it after `seconds`, over that of free fall along it. */
TEST_FN double ramp_speed(fsi_context *context, double dx, double slip, double seconds)
{
    const double dt = 5e-3;
    fsi_wcsph_desc d = make_desc(2, dx);
    fsi_wcsph_obstacle_desc o = fsi_wcsph_default_obstacle_desc();
    fsi_mesh *m;
    double mean = 0;
    int k;
    scene t;
    memset(&t, 0, sizeof t);
    d.context = context;
    d.gravity = v3(9.81 * 0.5, -9.81 * 0.8660254, 0); /* the ramp lies along x */
    d.depth = (fsi_real)0.3;
    t.dim = 2;
    t.s = make_wcsph(&d);
    shape_begin(2);
    shape_line(-1, 1, 3);
    m = shape_make(FSI_MESH_OPEN, 0);
    o.mesh = m;
    o.slip = (fsi_real)slip;
    scene_add_desc(&t, &o);
    fill(t.s, box3(0, 0, 0, 0.3, 4 * dx, 0), v3(0, 0, 0));
    for (k = 0; k * dt < seconds; k++) if (!step_ok(t.s, dt)) break;
    for (k = 0; k < t.s->count; k++) mean += (double)t.s->velocity[k].x / t.s->count;
    check_census(&t);
    fsi_wcsph_destroy(t.s);
    fsi_mesh_destroy(m);
    return mean / (9.81 * 0.5 * seconds);
}

#endif /* FSI_TEST_WCSPH_BODIES_H */
