/* test_body.c - rigid-body exchange state: sweeps, impulses, free turning, refusal of impossible bodies.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"

#define EPS ((double)FSI_REAL_EPS)

static uint64_t seed = 11;

static fsi_real uniform(void) { return (fsi_real)(2 * test_random(&seed) - 1); }
static fsi_vec3 random_vec(void)
{
    fsi_real x = uniform(), y = uniform();
    return fsi_v3(x, y, uniform());
}
static double distance(fsi_vec3 a, fsi_vec3 b) { return (double)fsi_v3_norm(fsi_v3_sub(a, b)); }
static fsi_vec3 angular_momentum(const fsi_body *b)
{
    return fsi_m3_mul_v3(fsi_body_world_tensor(b->pose.orientation, b->inertia), b->angular_velocity);
}

static fsi_body random_body(void)
{
    fsi_body b = fsi_default_body();
    b.mode = FSI_BODY_COUPLED;
    b.pose.position = random_vec();
    b.pose.orientation = fsi_quat_from_rotation_vector(fsi_v3_scale(random_vec(), 2));
    b.velocity = random_vec();
    b.angular_velocity = random_vec();
    b.mass = (fsi_real)0.7;
    b.inertia = fsi_body_world_tensor(fsi_quat_from_rotation_vector(random_vec()),
                                      fsi_m3_diagonal(fsi_v3(1, 2, (fsi_real)2.5)));
    return b;
}

static void test_sweep_starts_and_ends_exactly_and_moves_at_constant_rates(void)
{
    int i, k;
    for (i = 0; i < 100; i++) {
        fsi_body b = random_body();
        fsi_vec3 local = random_vec();
        const fsi_real dt = (fsi_real)0.01, h = TOL((fsi_real)1e-5, (fsi_real)1e-2);
        fsi_pose p;
        b.mode = FSI_BODY_PRESCRIBED;
        b.end.position = random_vec();
        b.end.orientation = fsi_quat_from_rotation_vector(random_vec());
        p = fsi_body_pose_at(&b, 0);
        CHECK(memcmp(&p, &b.pose, sizeof p) == 0);
        p = fsi_body_pose_at(&b, 1);
        CHECK(memcmp(&p, &b.end, sizeof p) == 0);
        CHECK_NEAR(
            distance(fsi_pose_point(fsi_body_pose_at(&b, 1 - (fsi_real)EPS), local), fsi_pose_point(b.end, local)), 0,
            50 * EPS);
        fsi_body_begin_step(&b, dt);
        for (k = 1; k < 10; k++) { /* velocity of a material point by central differences */
            fsi_real s = (fsi_real)(0.1 * k);
            fsi_vec3 x0 = fsi_pose_point(fsi_body_pose_at(&b, s - h), local),
                     x1 = fsi_pose_point(fsi_body_pose_at(&b, s + h), local);
            fsi_vec3 v = fsi_v3_scale(fsi_v3_sub(x1, x0), 1 / (2 * h * dt));
            p = fsi_body_pose_at(&b, s);
            CHECK_NEAR(distance(v, fsi_rigid_velocity(b.new_velocity, b.new_angular_velocity, p.position,
                                                      fsi_pose_point(p, local))),
                       0, TOL(1e-6, 0.2));
            CHECK_NEAR(distance(fsi_pose_local(p, fsi_pose_point(p, local)), local), 0, 20 * EPS);
        }
        fsi_body_integrate(&b, dt);
        CHECK(memcmp(&b.pose, &b.end, sizeof b.pose) == 0);
    }
}

static void test_impulses_change_momentum_by_just_that_much(void)
{
    int i, k;
    for (i = 0; i < 100; i++) {
        fsi_body b = random_body(), sunk;
        fsi_vec3 sum = fsi_v3(0, 0, 0), moment = sum, l0 = angular_momentum(&b);
        const fsi_real dt = (fsi_real)0.02;
        b.force = random_vec();
        b.torque = random_vec();
        fsi_body_begin_step(&b, dt);
        for (k = 0; k < 5; k++) {
            fsi_vec3 j = random_vec(), x = random_vec();
            fsi_body_apply_impulse(&b, j, x);
            sum = fsi_v3_add(sum, j);
            moment = fsi_v3_add(moment, fsi_v3_cross(fsi_v3_sub(x, b.pose.position), j));
        }
        fsi_body_end_step(&b, dt);
        CHECK_NEAR(distance(b.impulse, sum), 0, 20 * EPS);
        CHECK_NEAR(distance(b.angular_impulse, moment), 0, 40 * EPS);
        CHECK_NEAR(distance(fsi_v3_scale(b.reaction_force, dt), sum), 0, 40 * EPS);
        CHECK_NEAR(distance(fsi_v3_scale(b.reaction_torque, dt), moment), 0, 80 * EPS);
        CHECK_NEAR(
            distance(fsi_v3_scale(fsi_v3_sub(b.new_velocity, b.velocity), b.mass), fsi_v3_madd(sum, dt, b.force)), 0,
            40 * EPS);
        sunk = b; /* the momentum that goes with the new angular velocity at the old orientation */
        sunk.angular_velocity = b.new_angular_velocity;
        CHECK_NEAR(distance(fsi_v3_sub(angular_momentum(&sunk), l0), fsi_v3_madd(moment, dt, b.torque)), 0, 200 * EPS);
    }
}

/* An intermediate-axis flip (Dzhanibekov): the momentum stays to rounding, the energy does not drift, the axis turns
   over. */
static void test_free_body_keeps_angular_momentum_and_energy(void)
{
    fsi_body b = fsi_default_body();
    double energy = 0, worst_energy = 0, worst_momentum = 0, lowest = 1;
    fsi_vec3 l0;
    const int steps = 20000;
    int i;
    b.mode = FSI_BODY_COUPLED;
    b.inertia = fsi_m3_diagonal(fsi_v3(1, 2, (fsi_real)2.5));
    b.angular_velocity = fsi_v3((fsi_real)0.01, 5, 0);
    b.velocity = fsi_v3(1, 0, 0);
    l0 = angular_momentum(&b);
    energy = 0.5 * (double)fsi_v3_dot(l0, b.angular_velocity);
    for (i = 0; i < steps; i++) {
        double e;
        fsi_body_begin_step(&b, (fsi_real)0.01);
        fsi_body_integrate(&b, (fsi_real)0.01);
        e = fabs(0.5 * (double)fsi_v3_dot(angular_momentum(&b), b.angular_velocity) / energy - 1);
        if (!(e <= worst_energy)) worst_energy = e;
        e = distance(angular_momentum(&b), l0) / (double)fsi_v3_norm(l0);
        if (!(e <= worst_momentum)) worst_momentum = e;
        e = (double)fsi_quat_rotate(b.pose.orientation, fsi_v3(0, 1, 0)).y;
        if (e < lowest) lowest = e;
    }
    CHECK_NEAR(worst_momentum, 0, 50 * EPS * sqrt(steps));
    CHECK_NEAR(worst_energy, 0, TOL(1e-3, 3e-3));
    CHECK(lowest < -0.9);
    CHECK_NEAR(b.pose.position.x, steps * 0.01, TOL(1e-8, 0.1));
    CHECK(fsi_body_check(NULL, &b, 0) == FSI_OK);
}

/* Symmetric top: the axis goes round L at the rate |L|/I1 (Euler); error of second order in dt. */
static void test_symmetric_top_precesses_at_the_rate_of_euler(void)
{
    double error[2];
    int k, i;
    for (k = 0; k < 2; k++) {
        fsi_body b = fsi_default_body();
        int steps = k ? 100 : 50;
        fsi_vec3 l, axis;
        b.mode = FSI_BODY_COUPLED;
        b.inertia = fsi_m3_diagonal(fsi_v3(1, 1, (fsi_real)1.6));
        b.angular_velocity = fsi_v3(2, 0, 5);
        l = angular_momentum(&b);
        for (i = 0; i < steps; i++) {
            fsi_body_begin_step(&b, 1 / (fsi_real)steps);
            fsi_body_integrate(&b, 1 / (fsi_real)steps);
        }
        axis = fsi_quat_rotate(fsi_quat_from_rotation_vector(l), fsi_v3(0, 0, 1)); /* one second at |L|/I1, I1 = 1 */
        error[k] = distance(fsi_quat_rotate(b.pose.orientation, fsi_v3(0, 0, 1)), axis);
    }
    CHECK_NEAR(error[1], 0, 3e-3);
    CHECK_NEAR(error[0] / error[1], 4, TOL(0.1, 1.0));
}

static void test_mass_properties_make_a_body(void)
{
    fsi_mass_properties p;
    fsi_body b;
    memset(&p, 0, sizeof p);
    p.volume = 1;
    p.mass = 3;
    p.center = fsi_v3(1, 2, 0);
    p.inertia.m[8] = 4; /* 2D: about z only */
    b = fsi_body_from_mass(&p);
    CHECK(b.mode == FSI_BODY_COUPLED && b.mass == 3 && b.pose.position.y == 2 && b.inertia.m[0] == 2 &&
          b.inertia.m[8] == 4);
    CHECK(fsi_body_check(NULL, &b, 0) == FSI_OK);
}

/* Each line breaks one thing of a good body and names the status and a word of the message. */
static void test_impossible_bodies_are_refused_by_name(void)
{
    fsi_context c = fsi_default_context();
    fsi_body good = random_body(), b;
    fsi_real nan = (fsi_real)test_nan();
#define REFUSED(change, want, word)                                                     \
    b = good;                                                                           \
    change;                                                                             \
    CHECK(fsi_body_check(&c, &b, 5) == want);                                           \
    CHECK(strstr(c.error.message, word) != NULL && strstr(c.error.message, "body 5"));  \
    CHECK(c.error.status == want && c.error.element == 5 && strcmp(c.error.function, "fsi_body_check") == 0)
    CHECK(fsi_body_check(&c, &good, 5) == FSI_OK && c.error.status == FSI_OK);
    REFUSED(b.cookie ^= 1, FSI_ERROR_COOKIE, "fsi_default_body");
    REFUSED(b.mode = (fsi_body_mode)7, FSI_ERROR_ARGUMENT, "mode");
    REFUSED(b.pose.position.y = nan, FSI_ERROR_NAN, "pose.position");
    REFUSED(b.pose.orientation.w = nan, FSI_ERROR_NAN, "pose.orientation");
    REFUSED(b.pose.orientation.w += 1, FSI_ERROR_ARGUMENT, "quaternion pose.orientation");
    REFUSED((b.mode = FSI_BODY_PRESCRIBED, b.end.orientation = fsi_quat_make(0, 0, 0, 0)), FSI_ERROR_ARGUMENT,
            "end.orientation");
    REFUSED((b.mode = FSI_BODY_PRESCRIBED, b.end.position.z = (fsi_real)test_inf()), FSI_ERROR_NAN, "end.position");
    REFUSED(b.velocity.x = nan, FSI_ERROR_NAN, "velocity");
    REFUSED(b.angular_velocity.x = nan, FSI_ERROR_NAN, "angular_velocity");
    REFUSED(b.force.x = nan, FSI_ERROR_NAN, "force");
    REFUSED(b.torque.x = nan, FSI_ERROR_NAN, "torque");
    REFUSED(b.mass = nan, FSI_ERROR_NAN, "mass");
    REFUSED(b.mass = 0, FSI_ERROR_ARGUMENT, "mass");
    REFUSED(b.mass = -1, FSI_ERROR_ARGUMENT, "mass");
    REFUSED(b.inertia.m[4] = nan, FSI_ERROR_NAN, "inertia");
    REFUSED(b.inertia.m[1] += 1, FSI_ERROR_ARGUMENT, "symmetric");
    REFUSED(b.inertia = fsi_m3_diagonal(fsi_v3(1, 1, 0)), FSI_ERROR_ARGUMENT, "positive definite");
    REFUSED(b.inertia = fsi_m3_diagonal(fsi_v3(1, 1, -1)), FSI_ERROR_ARGUMENT, "positive definite");
    REFUSED(b.inertia = fsi_m3_diagonal(fsi_v3(1, 1, 3)), FSI_ERROR_ARGUMENT, "sum of the others");
#undef REFUSED
    CHECK(fsi_body_check(&c, NULL, 5) == FSI_ERROR_ARGUMENT && fsi_body_check(NULL, NULL, 0) == FSI_ERROR_ARGUMENT);
    b = good; /* fields that the mode does not read may hold anything */
    b.mode = FSI_BODY_PRESCRIBED;
    b.mass = nan;
    CHECK(fsi_body_check(NULL, &b, 0) == FSI_OK);
}

/* Nothing happens, and nothing is read, where an argument is missing or makes no sense. */
static void test_missing_bodies_and_absurd_steps_change_nothing(void)
{
    fsi_body b = fsi_default_body(), before;
    fsi_real bad[3];
    int k;
    bad[0] = 0;
    bad[1] = -1;
    bad[2] = (fsi_real)test_nan();
    b.mode = FSI_BODY_COUPLED;
    b.velocity = fsi_v3(1, 2, 3);
    before = b;
    for (k = 0; k < 3; k++) {
        fsi_body_begin_step(&b, bad[k]);
        fsi_body_end_step(&b, bad[k]);
        fsi_body_integrate(&b, bad[k]);
    }
    fsi_body_apply_impulse(&b, fsi_v3(bad[2], 0, 0), fsi_v3(0, 0, 0));
    fsi_body_apply_impulse(&b, fsi_v3(1, 0, 0), fsi_v3(0, bad[2], 0));
    CHECK(memcmp(&b, &before, sizeof b) == 0);
    fsi_body_begin_step(NULL, 1);
    fsi_body_apply_impulse(NULL, fsi_v3(1, 0, 0), fsi_v3(0, 0, 0));
    fsi_body_end_step(NULL, 1);
    fsi_body_integrate(NULL, 1);
    b = fsi_body_from_mass(NULL);
    CHECK(fsi_body_check(NULL, &b, 0) == FSI_OK);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_sweep_starts_and_ends_exactly_and_moves_at_constant_rates);
    RUN(test_impulses_change_momentum_by_just_that_much);
    RUN(test_free_body_keeps_angular_momentum_and_energy);
    RUN(test_symmetric_top_precesses_at_the_rate_of_euler);
    RUN(test_mass_properties_make_a_body);
    RUN(test_impossible_bodies_are_refused_by_name);
    RUN(test_missing_bodies_and_absurd_steps_change_nothing);
    return TEST_END();
}
