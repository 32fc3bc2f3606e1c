/* test_rigid_trees.c - trees of links in reduced coordinates: Jacobians, inertia and bias against differences,
   pendulums against
   analysis and Runge-Kutta, joints at rest, springs, limits, scripts, momentum.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "kit/test_rigid.h"

enum { MOST = 32 }; /* coordinates of a tree here */

/* A tree of eight links of every joint in two branches, none of them along an axis of the world (in the plane: all in
   it). */
static int add_odd_tree(fsi_rigid *w, int fixed)
{
    static const int parent[8] = { -1, 0, 1, 1, 3, 0, 5, 6 };
    static const fsi_rigid_joint_kind joint[8] = {FSI_RIGID_WELD,     FSI_RIGID_REVOLUTE, FSI_RIGID_PRISMATIC,
                                                  FSI_RIGID_REVOLUTE, FSI_RIGID_WELD,     FSI_RIGID_PRISMATIC,
                                                  FSI_RIGID_REVOLUTE, FSI_RIGID_REVOLUTE};
    const int dim = w->desc.dim;
    fsi_rigid_shape s[8];
    fsi_rigid_link_desc l[8];
    uint64_t random = 5;
    int k;
    for (k = 0; k < 8; k++) {
        fsi_vec3 at = fsi_v3_scale(random_vector(&random, dim), 2), axis = random_vector(&random, dim);
        s[k] = box_shape(0.2 + 0.05 * k, 0.3, 0.1 + 0.04 * k);
        s[k].pose.position = fsi_v3_scale(random_vector(&random, dim), (fsi_real)0.2);
        if (k == 0) s[k].pose.position = v3(0, 0, 0);
        if (dim == 2 && joint[k] == FSI_RIGID_REVOLUTE) axis = v3(0, 0, 1);
        l[k] = make_link(&s[k], at, parent[k], joint[k],
                         fsi_v3_add(at, fsi_v3_scale(random_vector(&random, dim), (fsi_real)0.5)), axis);
        l[k].body.pose.orientation = dim == 2 ? fsi_quat_from_axis_angle(v3(0, 0, 1), (fsi_real)k)
                                              : fsi_quat_from_axis_angle(v3(1, -1, 2), (fsi_real)k);
        l[k].body.filter = l[k].body.mask = 0;
        l[k].q = (fsi_real)(0.1 * k);
    }
    return add_tree(w, l, 8, fixed);
}

static fsi_rigid *odd_world(int dim, int fixed, double g, int *tree)
{
    fsi_rigid_desc d = rigid_desc(dim, g);
    fsi_rigid *w = make_world(&d);
    *tree = add_odd_tree(w, fixed);
    return w;
}

/* Some rates for all coordinates, random in -1 .. 1. */
static void set_rates(fsi_rigid *w, int tree, uint64_t *random)
{
    const fsi_rigid_tree *t = fsi_rigid_tree_at(w, tree);
    int k;
    if (t->root) {
        fsi_vec3 v = fsi_v3_scale(random_vector(random, w->desc.dim), 2),
                 turn = fsi_v3_scale(random_vector(random, 3), 2);
        if (w->desc.dim == 2) turn.x = turn.y = 0;
        CHECK(fsi_rigid_set_velocity(w, t->body[0], v, turn) == FSI_OK);
    }
    for (k = 0; k < t->link_count; k++)
        if (t->column[k] >= 0)
            CHECK(fsi_rigid_set_joint(w, tree, k, t->q[t->column[k]], (fsi_real)(2 * test_random(random) - 1)) ==
                  FSI_OK);
}

static void parts(fsi_vec3 a, double *x)
{
    x[0] = (double)a.x;
    x[1] = (double)a.y;
    x[2] = (double)a.z;
}

/* Moves all coordinates by h times their rates (a free root turns about its centre): the poses only. */
static void nudge(fsi_rigid *w, int tree, const double *rate, double h)
{
    const fsi_rigid_tree *t = fsi_rigid_tree_at(w, tree);
    const int turns = w->desc.dim == 2 ? 1 : 3;
    int k;
    if (t->root) {
        fsi_pose p = fsi_rigid_pose(w, t->body[0]); /* its centre is its frame's origin */
        fsi_vec3 turn = turns == 1 ? v3(0, 0, rate[0]) : v3(rate[0], rate[1], rate[2]);
        fsi_vec3 v = v3(rate[turns], rate[turns + 1], turns == 1 ? 0 : rate[turns + 2]);
        p.orientation =
            fsi_quat_unit(fsi_quat_mul(fsi_quat_from_rotation_vector(fsi_v3_scale(turn, (fsi_real)h)), p.orientation));
        p.position = fsi_v3_madd(p.position, (fsi_real)h, v);
        CHECK(fsi_rigid_teleport(w, t->body[0], p) == FSI_OK);
    }
    for (k = 0; k < t->link_count; k++)
        if (t->column[k] >= 0)
            CHECK(fsi_rigid_set_joint(w, tree, k, t->q[t->column[k]] + (fsi_real)(h * rate[t->column[k]]),
                                      t->rate[t->column[k]]) == FSI_OK);
}

static fsi_mat3 inertia_now(const fsi_body *b) { return fsi_body_world_tensor(b->pose.orientation, b->inertia); }

/* ---- what others read: against differences -------------------------------------------------------------------- */

/* Each column against the difference of forward kinematics. */
static void check_jacobians(int dim, int fixed)
{
    int tree, k, c, i;
    fsi_rigid *w = odd_world(dim, fixed, 0, &tree);
    const fsi_rigid_tree *t = fsi_rigid_tree_at(w, tree);
    const double h = TOL(1e-5, 4e-3), tol = TOL(1e-7, 4e-3);
    CHECK(t->coordinates == (fixed ? 0 : dim == 2 ? 3 : 6) + 6 && t->root == (fixed ? 0 : dim == 2 ? 3 : 6));
    for (c = 0; c < t->coordinates; c++) {
        double rate[MOST] = { 0 }, J[6 * MOST], P[3 * MOST], d[9];
        fsi_pose a[8], b[8];
        rate[c] = 1;
        nudge(w, tree, rate, -h);
        for (k = 0; k < 8; k++) a[k] = w->body[t->body[k]]->pose;
        nudge(w, tree, rate, 2 * h);
        for (k = 0; k < 8; k++) b[k] = w->body[t->body[k]]->pose;
        nudge(w, tree, rate, -h);
        for (k = 0; k < 8; k++) {
            const fsi_vec3 local = v3(0.3, -0.2, dim == 2 ? 0 : 0.4),
                           x = fsi_pose_point(w->body[t->body[k]]->pose, local);
            CHECK(fsi_rigid_tree_jacobian(w, tree, k, J) == 1 && fsi_rigid_tree_point_jacobian(w, tree, k, x, P) == 1);
            parts(
                fsi_v3_scale(fsi_quat_rotation_vector(fsi_quat_mul(b[k].orientation, fsi_quat_conj(a[k].orientation))),
                             (fsi_real)(0.5 / h)),
                d);
            parts(fsi_v3_scale(fsi_v3_sub(b[k].position, a[k].position), (fsi_real)(0.5 / h)), d + 3);
            parts(
                fsi_v3_scale(fsi_v3_sub(fsi_pose_point(b[k], local), fsi_pose_point(a[k], local)), (fsi_real)(0.5 / h)),
                d + 6);
            for (i = 0; i < 6; i++) CHECK_NEAR(J[i * t->coordinates + c], d[i], tol);
            for (i = 0; i < 3; i++) CHECK_NEAR(P[i * t->coordinates + c], d[6 + i], tol);
        }
    }
    fsi_rigid_destroy(w);
}

static void test_jacobians_are_differences_of_poses(void)
{
    int k;
    for (k = 0; k < 4; k++) check_jacobians(2 + k % 2, k / 2);
}

/* rates' M rates / 2 is the kinetic energy of the links, for many rates: that fixes all of M. */
static void test_inertia_gives_the_kinetic_energy(void)
{
    int c, tree, i, j;
    for (c = 0; c < 4; c++) {
        fsi_rigid *w = odd_world(2 + c % 2, c / 2, 0, &tree);
        const fsi_rigid_tree *t = fsi_rigid_tree_at(w, tree);
        const int n = t->coordinates;
        double M[MOST * MOST];
        uint64_t random = 9;
        int trial, k;
        CHECK(fsi_rigid_tree_inertia(w, tree, M) == 1);
        for (i = 0; i < n; i++)
            for (j = 0; j < n; j++)
                CHECK_NEAR(M[i * n + j], M[j * n + i], 1e-12 * (fabs(M[i * n + i]) + fabs(M[j * n + j])));
        for (trial = 0; trial < 100; trial++) {
            double energy = 0, half = 0;
            set_rates(w, tree, &random);
            for (k = 0; k < 8; k++)
                if (!(t->root == 0 && w->kind[t->body[k]] == FSI_RIGID_STATIC))
                    energy += kinetic_energy_of(w->body[t->body[k]]);
            for (i = 0; i < n; i++)
                for (j = 0; j < n; j++) half += 0.5 * (double)t->rate[i] * M[i * n + j] * (double)t->rate[j];
            CHECK_NEAR(half, energy, TOL(1e-11, 1e-4) * energy);
        }
        fsi_rigid_destroy(w);
    }
}

/* f = sum J'(m g, -w x I w) - J' M_l (dJ/dt rates), the derivative by differences along the rates. */
static void check_force(int dim, int fixed, double g)
{
    int tree, k, i, j, n;
    fsi_rigid *w = odd_world(dim, fixed, g, &tree);
    const fsi_rigid_tree *t = fsi_rigid_tree_at(w, tree);
    const double h = TOL(1e-5, 4e-3), tol = TOL(2e-6, 2e-2);
    double f[MOST], want[MOST] = { 0 }, rate[MOST], J[6 * MOST], size = 1;
    uint64_t random = 31;
    n = t->coordinates;
    set_rates(w, tree, &random);
    for (i = 0; i < n; i++) rate[i] = (double)t->rate[i];
    CHECK(fsi_rigid_tree_force(w, tree, f, NULL, NULL) == 1);
    for (k = 0; k < 8; k++) {
        const fsi_body *b = w->body[t->body[k]];
        double a[2][6] = { { 0 } }, load[6];
        fsi_vec3 moment;
        if (fixed && k == 0) continue;
        for (j = 0; j < 2; j++) {
            nudge(w, tree, rate, j ? 2 * h : -h);
            CHECK(fsi_rigid_tree_jacobian(w, tree, k, J) == 1);
            for (i = 0; i < 6 * n; i++) a[j][i / n] += J[i] * rate[i % n];
        }
        nudge(w, tree, rate, -h);
        for (i = 0; i < 6; i++) load[i] = -(a[1][i] - a[0][i]) / (2 * h);
        moment = fsi_m3_mul_v3(inertia_now(b), v3(load[0], load[1], load[2]));
        moment = fsi_v3_sub(moment, fsi_v3_cross(b->angular_velocity, spin_of(b)));
        parts(moment, load);
        for (i = 0; i < 3; i++) load[3 + i] *= (double)b->mass;
        load[dim == 2 ? 4 : 5] -= (double)b->mass * g;
        CHECK(fsi_rigid_tree_jacobian(w, tree, k, J) == 1);
        for (i = 0; i < 6 * n; i++) want[i % n] += J[i] * load[i / n];
    }
    for (i = 0; i < n; i++) size = fmax(size, fabs(want[i]));
    for (i = 0; i < n; i++) CHECK_NEAR(f[i], want[i], tol * size);
    fsi_rigid_destroy(w);
}

static void test_bias_forces_are_differences_of_momentum(void)
{
    int k;
    for (k = 0; k < 8; k++) check_force(2 + k % 2, k / 2 % 2, k < 4 ? 0 : 9.81);
}

/* Springs, dampers, forces on joints and on links stand in f as the header says; K and D are their diagonals. */
static void test_joint_forces_stand_in_the_right_hand_side(void)
{
    const fsi_rigid_shape s = box_shape(1, 0.1, 0.1);
    fsi_rigid_desc d = rigid_desc(3, 0);
    fsi_rigid *w = make_world(&d);
    fsi_rigid_link_desc l[3];
    double f[2], K[2], D[2];
    const fsi_rigid_tree *t;
    int tree;
    l[0] = make_link(&s, v3(0, 0, 0), -1, FSI_RIGID_WELD, v3(0, 0, 0), v3(0, 0, 1));
    l[1] = make_link(&s, v3(1, 0, 0), 0, FSI_RIGID_REVOLUTE, v3(0.5, 0, 0), v3(0, 0, 3));
    l[2] = make_link(&s, v3(2, 0, 0), 1, FSI_RIGID_PRISMATIC, v3(1.5, 0, 0), v3(0.1, 0, 0));
    l[1].stiffness = 7; l[1].rest = (fsi_real)0.25; l[1].damping = 3; l[1].rate = 0;
    l[2].stiffness = 5; l[2].rest = 1; l[2].damping = 2; l[2].q = (fsi_real)0.5; l[2].rate = (fsi_real)0.125;
    tree = add_tree(w, l, 3, 1);
    t = fsi_rigid_tree_at(w, tree);
    CHECK(fsi_rigid_set_joint_force(w, tree, 1, 11) == FSI_OK);
    w->force[t->body[2]] = v3(4, 6, 0);
    CHECK(fsi_rigid_tree_force(w, tree, f, K, D) == 1);
    CHECK_NEAR(f[0], -7 * (0 - 0.25) + 11 + 6 * 1.5, TOL(1e-12, 1e-5));
    CHECK_NEAR(f[1], -5 * (0.5 - 1) - 2 * 0.125 + 4, TOL(1e-12, 1e-5));
    CHECK(K[0] == 7 && K[1] == 5 && D[0] == 3 && D[1] == 2);
    CHECK(fsi_rigid_tree_force(w, tree + 1, f, K, D) == 0 && fsi_rigid_tree_inertia(w, -1, f) == 0);
    CHECK(fsi_rigid_tree_jacobian(w, tree, 3, f) == 0 &&
          fsi_rigid_tree_point_jacobian(w, tree, -1, v3(0, 0, 0), f) == 0);
    fsi_rigid_destroy(w);
}

/* ---- motion against analysis ---------------------------------------------------------------------------------- */

/* Rods of length 1 that hang from the origin by `joints` hinges about y (plane: z), at these angles from the
   vertical. */
static int add_pendulum(fsi_rigid *w, int joints, const double *angle)
{
    static fsi_rigid_shape rod;
    const int dim = w->desc.dim;
    const fsi_vec3 axis = dim == 2 ? v3(0, 0, 1) : v3(0, -1, 0), right = v3(1, 0, 0);
    fsi_rigid_link_desc l[8];
    fsi_vec3 end = v3(0, 0, 0);
    int k;
    rod = dim == 2 ? box_shape(0.1, 1, 0) : box_shape(0.1, 0.1, 1);
    l[0] = make_link(&rod, fsi_v3_scale(up(dim), (fsi_real)0.7), -1, FSI_RIGID_WELD, v3(0, 0, 0), axis);
    for (k = 1; k <= joints; k++) {
        fsi_vec3 away = fsi_v3_add(fsi_v3_scale(right, (fsi_real)sin(angle[k - 1])),
                                   fsi_v3_scale(up(dim), (fsi_real)-cos(angle[k - 1])));
        l[k] = make_link(&rod, fsi_v3_madd(end, (fsi_real)0.5, away), k - 1, FSI_RIGID_REVOLUTE, end, axis);
        l[k].body.pose.orientation = fsi_quat_from_axis_angle(axis, (fsi_real)angle[k - 1]);
        l[k].q = (fsi_real)(angle[k - 1] - (k > 1 ? angle[k - 2] : 0));
        l[k].body.filter = l[k].body.mask = 0;
        end = fsi_v3_add(end, away);
    }
    return add_tree(w, l, joints + 1, 1);
}

static const double rod_moment = (1 + 0.1 * 0.1) / 12; /* of a rod about its centre, over its mass */

/* Time of the swing's first 4 upward zero crossings of joint 1, mean period. */
static double period_of(fsi_rigid *w, int tree, double dt)
{
    const fsi_rigid_tree *t = fsi_rigid_tree_at(w, tree);
    double before = (double)t->q[0], first = 0, last = 0;
    int crossings = 0;
    while (crossings < 5 && w->time < 30) {
        double now;
        if (!advance(w, dt)) return 0;
        now = (double)t->q[0];
        if (before < 0 && now >= 0) {
            last = w->time - dt * now / (now - before);
            if (crossings++ == 0) first = last;
        }
        before = now;
    }
    return crossings == 5 ? (last - first) / 4 : 0;
}

/* Small swings: w^2 are the roots of det(K - w^2 M) = 0 with, for rods of mass 1 and length 1 in absolute angles,
   M = [c + 5/4, 1/2; 1/2, c + 1/4], K = g [3/2, 0; 0, 1/2], c the moment about the centre. */
static void test_small_swings_have_the_analytic_periods(void)
{
    const double g = 9.81, dt = 1e-3;
    int dim, mode;
    for (dim = 2; dim <= 3; dim++) {
        const double c = rod_moment, m11 = c + 1.25, m22 = c + 0.25, m12 = 0.5, k1 = 1.5 * g, k2 = 0.5 * g;
        const double A = m11 * m22 - m12 * m12, B = -(k1 * m22 + k2 * m11), C = k1 * k2;
        fsi_rigid_desc d = rigid_desc(dim, g);
        double angle[2] = { 1e-3, 0 };
        fsi_rigid *w = make_world(&d);
        CHECK_NEAR(period_of(w, add_pendulum(w, 1, angle), dt), 2 * PI * sqrt((c + 0.25) / (0.5 * g)), TOL(2e-4, 2e-3));
        fsi_rigid_destroy(w);
        for (mode = 0; mode < 2; mode++) {
            const double w2 = (-B + (mode ? 1 : -1) * sqrt(B * B - 4 * A * C)) / (2 * A);
            angle[1] = angle[0] * (k1 - w2 * m11) / (w2 * m12);
            w = make_world(&d);
            CHECK_NEAR(period_of(w, add_pendulum(w, 2, angle), dt), 2 * PI / sqrt(w2), TOL(5e-4, 5e-3));
            fsi_rigid_destroy(w);
        }
    }
}

/* Two rods in absolute angles a, b: [c + 5/4, cos(a-b)/2; cos(a-b)/2, c + 1/4] (a'', b'') = (-sin(a-b) b'^2/2 - 3/2 g
   sin a, sin(a-b) a'^2/2 - g/2 sin b). */
static void double_pendulum_slope(const double *y, double g, double c, double *out)
{
    const double s = sin(y[0] - y[1]), m12 = 0.5 * cos(y[0] - y[1]), m11 = c + 1.25, m22 = c + 0.25,
                 det = m11 * m22 - m12 * m12;
    const double f1 = -0.5 * s * y[3] * y[3] - 1.5 * g * sin(y[0]), f2 = 0.5 * s * y[2] * y[2] - 0.5 * g * sin(y[1]);
    out[0] = y[2];
    out[1] = y[3];
    out[2] = (m22 * f1 - m12 * f2) / det;
    out[3] = (m11 * f2 - m12 * f1) / det;
}

static void double_pendulum(double *y, double g, double c, double seconds)
{
    const double h = 1e-4;
    int i, k, n = (int)(seconds / h + 0.5);
    for (i = 0; i < n; i++) {
        double a[4], b[4], e[4], f[4], z[4];
        double_pendulum_slope(y, g, c, a);
        for (k = 0; k < 4; k++) z[k] = y[k] + 0.5 * h * a[k];
        double_pendulum_slope(z, g, c, b);
        for (k = 0; k < 4; k++) z[k] = y[k] + 0.5 * h * b[k];
        double_pendulum_slope(z, g, c, e);
        for (k = 0; k < 4; k++) z[k] = y[k] + h * e[k];
        double_pendulum_slope(z, g, c, f);
        for (k = 0; k < 4; k++) y[k] += h / 6 * (a[k] + 2 * b[k] + 2 * e[k] + f[k]);
    }
}

static void test_a_double_pendulum_swings_as_runge_kutta_says(void)
{
    const double g = 9.81;
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        double start[2] = { 1.5, 2.2 }, y[4] = { 1.5, 2.2, 0, 0 }, error[3];
        double_pendulum(y, g, rod_moment, 1);
        for (k = 0; k < 3; k++) {
            fsi_rigid_desc d = rigid_desc(dim, g);
            fsi_rigid *w = make_world(&d);
            int tree = add_pendulum(w, 2, start);
            const fsi_rigid_tree *t = fsi_rigid_tree_at(w, tree);
            advance_to(w, 1, 4e-3 / (1 << k));
            error[k] = fmax(fabs((double)t->q[0] - y[0]), fabs((double)t->q[0] + (double)t->q[1] - y[1]));
            fsi_rigid_destroy(w);
        }
        CHECK(error[0] <= 0.1 && error[2] <= TOL(0.3, 0.5) * error[0]); /* first order: 0.25 */
    }
}

/* A chain of six rods with hinges swings for 5 s: energy neither grows nor drifts, joints hold to rounding. */
static void test_a_chain_keeps_its_energy_and_its_joints(void)
{
    double angle[6] = { 1, 1, 1, 1, 1, 1 }, low = 1e30, high = -1e30, gap = 0, first;
    fsi_rigid_desc d = rigid_desc(3, 9.81);
    fsi_rigid *w = make_world(&d);
    int tree = add_pendulum(w, 6, angle), k;
    const fsi_rigid_tree *t = fsi_rigid_tree_at(w, tree);
    const double scale = 10 * 9.81 * 6 * 3; /* m g times the fall of the centre */
    advance(w, 1e-3);
    first = w->stats.kinetic_energy + w->stats.potential_energy;
    while (w->time < (TEST_SLOWED ? 1 : 5)) {
        double e;
        if (!advance(w, 1e-3)) break;
        e = w->stats.kinetic_energy + w->stats.potential_energy;
        low = fmin(low, e);
        high = fmax(high, e);
        for (k = 1; k < 6; k++) {
            fsi_vec3 a = fsi_pose_point(w->body[t->body[k]]->pose, v3(0, 0, -0.5)),
                     b = fsi_pose_point(w->body[t->body[k + 1]]->pose, v3(0, 0, 0.5));
            gap = fmax(gap, apart(a, b));
        }
    }
    CHECK(gap <= TOL(1e-12, 2e-5));
    CHECK(high - first <= 0.02 * scale && first - low <= 0.02 * scale);
    fsi_rigid_destroy(w);
}

/* ---- joints that stand, spring, stop and move as told ---------------------------------------------------------- */

/* An arm of two rods held out level by scripts: each joint bears the moment of the weights beyond it. */
static void test_held_joints_bear_the_moments_of_the_weights(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        double angle[2] = { PI / 2, PI / 2 }, mass;
        fsi_rigid_desc d = rigid_desc(dim, 9.81);
        fsi_rigid *w = make_world(&d);
        int tree = add_pendulum(w, 2, angle), k;
        const fsi_rigid_tree *t = fsi_rigid_tree_at(w, tree);
        mass = (double)w->body[t->body[1]]->mass;
        CHECK_NEAR(mass, dim == 2 ? 100 : 10, TOL(1e-9, 1e-4));
        for (k = 1; k <= 2; k++) CHECK(fsi_rigid_set_joint_target(w, tree, k, t->q[t->column[k]]) == FSI_OK);
        advance_to(w, 0.1, 0.01);
        CHECK_NEAR(t->joint_force[0], mass * 9.81 * (0.5 + 1.5), TOL(1e-8, 2e-3) * mass);
        CHECK_NEAR(t->joint_force[1], mass * 9.81 * 0.5, TOL(1e-8, 2e-3) * mass);
        CHECK_NEAR(t->q[0], PI / 2, TOL(1e-14, 1e-6));
        CHECK(t->scripted[0] == 1);
        CHECK(fsi_rigid_free_joint(w, tree, 2) == FSI_OK && t->scripted[1] == 0);
        advance(w, 0.01);
        CHECK_NEAR(t->joint_force[1], 0, 1e-9);
        CHECK((double)t->rate[1] < -0.01); /* it falls */
        fsi_rigid_destroy(w);
    }
}

/* q(t) of a track, from its definition: s = 3 u^2 - 2 u^3 between keys. */
static double track_at(const double *times, const double *values, int n, double period, double t)
{
    int k;
    if (period > 0) t -= floor(t / period) * period;
    if (t <= times[0]) return values[0];
    for (k = 1; k < n; k++) {
        if (t <= times[k]) {
            double u = (t - times[k - 1]) / (times[k] - times[k - 1]);
            return values[k - 1] + (values[k] - values[k - 1]) * u * u * (3 - 2 * u);
        }
    }
    return values[n - 1];
}

static void test_scripted_joints_follow_their_tracks(void)
{
    static const double times[4] = { 0.1, 0.3, 0.35, 0.7 }, values[4] = { 0.2, -0.4, 0.1, 0.2 };
    fsi_real v[4];
    int dim, k;
    for (k = 0; k < 4; k++) v[k] = (fsi_real)values[k];
    for (dim = 2; dim <= 3; dim++) {
        double angle[2] = { 0.3, 0.1 }, before = 0.3;
        fsi_rigid_desc d = rigid_desc(dim, 9.81);
        fsi_rigid *w = make_world(&d);
        int tree = add_pendulum(w, 2, angle);
        const fsi_rigid_tree *t = fsi_rigid_tree_at(w, tree);
        CHECK(fsi_rigid_set_joint_track(w, tree, 1, times, v, 4, 0) == FSI_OK);
        CHECK(fsi_rigid_set_joint_track(w, tree, 2, times, v, 4, 0.8) == FSI_OK);
        while (w->time < 2) {
            advance(w, 0.013);
            CHECK_NEAR(t->q[0], track_at(times, values, 4, 0, w->time), TOL(1e-12, 1e-5));
            CHECK_NEAR(t->q[1], track_at(times, values, 4, 0.8, w->time), TOL(1e-12, 1e-5));
            CHECK_NEAR(t->rate[0], ((double)t->q[0] - before) / 0.013, TOL(1e-9, 1e-3));
            before = (double)t->q[0];
        }
        CHECK(fsi_rigid_set_joint_target(w, tree, 1, (fsi_real)0.5) == FSI_OK);
        advance(w, 0.01);
        CHECK_NEAR(t->q[0], 0.5, TOL(1e-13, 1e-6));
        advance(w, 0.01);
        CHECK_NEAR(t->q[0], 0.5, TOL(1e-13, 1e-6));
        fsi_rigid_destroy(w);
    }
}

/* In free space legs that kick as told neither push the whole nor turn it: momentum stays what it was. */
static void check_kicking_legs(int dim, int scripted)
{
    static const double times[3] = { 0, 0.2, 0.4 };
    fsi_real kick[3] = { (fsi_real)0.2, (fsi_real)1.1, (fsi_real)0.2 };
    double p0[3], l0[3], p[3], l[3], most_p = 0, most_l = 0, size;
    int tree, k;
    fsi_rigid *w = odd_world(dim, 0, 0, &tree);
    const fsi_rigid_tree *t = fsi_rigid_tree_at(w, tree);
    uint64_t random = 77;
    set_rates(w, tree, &random);
    for (k = 1; k < 8 && scripted; k++)
        if (t->column[k] >= 0) CHECK(fsi_rigid_set_joint_track(w, tree, k, times, kick, 3, 0.4) == FSI_OK);
    if (scripted) advance(w, 0.005); /* the scripts take hold */
    momentum_of(w, p0, l0);
    size = 1e-30;
    for (k = 0; k < 8; k++) size += speed_of(w, t->body[k]) * (double)w->body[t->body[k]]->mass;
    while (w->time < 2) {
        if (!advance(w, 0.005)) break;
        momentum_of(w, p, l);
        most_p = fmax(most_p, distance3(p, p0));
        most_l = fmax(most_l, distance3(l, l0));
    }
    CHECK(most_p <= TOL(1e-12, 1e-5) * size * 400);
    CHECK(most_l <= TOL(1e-12, 1e-5) * size * 400);
    if (!(most_p <= TOL(1e-12, 1e-5) * size * 400 && most_l <= TOL(1e-12, 1e-5) * size * 400))
        printf("dim %d scripted %d: momentum %g, angular %g of %g\n", dim, scripted, most_p, most_l, size);
    fsi_rigid_destroy(w);
}

static void test_scripted_legs_keep_the_momentum(void)
{
    int k;
    for (k = 0; k < 4; k++) check_kicking_legs(2 + k % 2, k / 2);
}

/* A carriage of mass m on a spring: period 2 pi sqrt(m/k); with a damper it dies out as exp(-c t/2m). */
static void test_a_sprung_carriage_swings_and_is_damped(void)
{
    const fsi_rigid_shape s = box_shape(0.1, 0.1, 0.1); /* 1 kg */
    const double k = 40, dt = 1e-3;
    int damped;
    for (damped = 0; damped < 2; damped++) {
        fsi_rigid_desc d = rigid_desc(3, 9.81);
        fsi_rigid *w = make_world(&d);
        fsi_rigid_link_desc l[2];
        const fsi_rigid_tree *t;
        const double c = damped ? 1 : 0;
        double low = 0, high = 0, want;
        l[0] = make_link(&s, v3(0, 0, 0), -1, FSI_RIGID_WELD, v3(0, 0, 0), v3(1, 0, 0));
        l[1] = make_link(&s, v3(0.5, 0, 0), 0, FSI_RIGID_PRISMATIC, v3(0, 0, 0), v3(1, 0, 0));
        l[1].stiffness = (fsi_real)k;
        l[1].damping = (fsi_real)c;
        l[1].q = (fsi_real)0.1;
        t = fsi_rigid_tree_at(w, add_tree(w, l, 2, 1));
        while (w->time < 2 * PI / sqrt(k)) {
            advance(w, dt);
            low = fmin(low, (double)t->q[0]);
            if (w->time > 0.7) high = fmax(high, (double)t->q[0]);
        }
        want = 0.1 * exp(-c / 2 * 2 * PI / sqrt(k)); /* after a whole period; implicit Euler takes some more: k dt
                                                        T/2 */
        CHECK(high <= want * (1 + 1e-3) && high >= want * (1 - 1.3 * k * dt * PI / sqrt(k)));
        CHECK(low <= -0.1 * exp(-c * PI / sqrt(k) / 2) * (1 - 1.3 * k * dt * PI / sqrt(k) / 2));
        CHECK_NEAR(t->q[0], high, 0.003);
        CHECK_NEAR(w->body[t->body[1]]->pose.position.x, 0.4 + (double)t->q[0], TOL(1e-13, 1e-6));
        CHECK_NEAR(w->body[t->body[1]]->pose.position.z, 0, 1e-15); /* no way down */
        fsi_rigid_destroy(w);
    }
}

/* Stiff springs with large steps stay put: k dt^2/m = 1e4. */
static void test_stiff_springs_stay_stable(void)
{
    const fsi_rigid_shape s = box_shape(0.1, 0.1, 0.1);
    fsi_rigid_desc d = rigid_desc(3, 9.81);
    fsi_rigid *w = make_world(&d);
    fsi_rigid_link_desc l[2];
    const fsi_rigid_tree *t;
    l[0] = make_link(&s, v3(0, 0, 0), -1, FSI_RIGID_WELD, v3(0, 0, 0), v3(1, 0, 0));
    l[1] = make_link(&s, v3(0, 0, 0.5), 0, FSI_RIGID_PRISMATIC, v3(0, 0, 0), v3(0, 0, 1));
    l[1].stiffness = (fsi_real)1e8;
    l[1].q = (fsi_real)0.01;
    t = fsi_rigid_tree_at(w, add_tree(w, l, 2, 1));
    advance_to(w, 1, 0.01);
    CHECK_NEAR(t->q[0], -9.81 / 1e8, 1e-9 + TOL(0, 1e-7));
    fsi_rigid_destroy(w);
}

/* A lift falls to its lower limit and stays there; the stop bears its weight. A swing stops at its upper one. */
static void test_limits_stop_joints(void)
{
    const fsi_rigid_shape s = box_shape(0.1, 0.1, 0.1);
    fsi_rigid_desc d = rigid_desc(3, 9.81);
    fsi_rigid *w = make_world(&d);
    fsi_rigid_link_desc l[3];
    const fsi_rigid_tree *t;
    double low = 0, high = -10;
    l[0] = make_link(&s, v3(0, 0, 0), -1, FSI_RIGID_WELD, v3(0, 0, 0), v3(1, 0, 0));
    l[1] = make_link(&s, v3(0.5, 0, 0), 0, FSI_RIGID_PRISMATIC, v3(0, 0, 0), v3(0, 0, 1));
    l[2] = make_link(&s, v3(0, -0.5, 0), 0, FSI_RIGID_REVOLUTE, v3(0, 0, 0), v3(1, 0, 0)); /* falls towards q = pi/2 */
    l[1].limited = l[2].limited = 1;
    l[1].lower = (fsi_real)-0.3;
    l[1].upper = 1;
    l[2].lower = -1;
    l[2].upper = (fsi_real)0.7;
    l[2].body.filter = l[2].body.mask = 0;
    t = fsi_rigid_tree_at(w, add_tree(w, l, 3, 1));
    while (w->time < 3) {
        advance(w, 0.005);
        low = fmin(low, (double)t->q[0]);
        high = fmax(high, fabs((double)t->q[1]));
    }
    CHECK(low >= -0.3 - 0.01);
    CHECK_NEAR(t->q[0], -0.3, 5e-3);
    CHECK_NEAR(t->rate[0], 0, TOL(1e-9, 1e-4));
    CHECK_NEAR(t->joint_force[0], 9.81, 0.01);
    CHECK(high <= 0.72);
    CHECK_NEAR(fabs((double)t->q[1]), 0.7, 5e-3);
    CHECK_NEAR(fabs((double)t->joint_force[1]), 9.81 * 0.5 * cos(0.7), 0.02 * 9.81);
    fsi_rigid_destroy(w);
}

/* Two blocks welded together fly and turn as one body made of two shapes. */
static void test_a_weld_is_one_body(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        fsi_rigid_desc d = rigid_desc(dim, 9.81);
        fsi_rigid *w = make_world(&d);
        fsi_rigid_shape s[2];
        fsi_rigid_link_desc l[2];
        fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
        fsi_rigid_tree_desc td = fsi_rigid_default_tree_desc();
        const fsi_vec3 turn = dim == 2 ? v3(0, 0, 3) : v3(3, -2, 1), v = v3(1, 2, dim == 2 ? 0 : 3);
        fsi_vec3 arm, x;
        int id, tree;
        const fsi_rigid_tree *t;
        s[0] = box_shape(0.2, 0.1, 0.3);
        s[1] = box_shape(0.1, 0.3, 0.1);
        l[0] = make_link(&s[0], v3(0, 0, 0), -1, FSI_RIGID_WELD, v3(0, 0, 0), v3(0, 0, 1));
        l[1] = make_link(&s[1], v3(0.15, 0.1, 0), 0, FSI_RIGID_WELD, v3(0, 0, 0), v3(0, 0, 1));
        td.links = l;
        td.link_count = 2;
        td.velocity = v;
        td.angular_velocity = turn;
        CHECK(fsi_rigid_add_tree(w, &td, &tree) == FSI_OK);
        t = fsi_rigid_tree_at(w, tree);
        CHECK(t->coordinates == (dim == 2 ? 3 : 6) && t->column[1] == -1);
        s[1].pose.position = v3(0.15, 0.1, 0);
        b.shapes = s;
        b.shape_count = 2;
        b.pose.position = v3(0, 0, 0);
        b.filter = b.mask = 0;
        b.angular_velocity = turn;
        CHECK(fsi_rigid_add_body(w, &b, &id) == FSI_OK);
        arm = fsi_v3_sub(w->center[id], v3(0, 0, 0));
        CHECK(fsi_rigid_set_velocity(w, id, fsi_v3_add(v, fsi_v3_cross(turn, arm)), turn) == FSI_OK);
        advance_to(w, 1, 1e-3);
        x = fsi_rigid_pose(w, id).position;
        CHECK_NEAR(apart(x, fsi_rigid_pose(w, t->body[0]).position), 0, 0.02);
        CHECK_NEAR(turn_between(fsi_rigid_pose(w, id).orientation, fsi_rigid_pose(w, t->body[0]).orientation), 0, 0.05);
        fsi_rigid_destroy(w);
    }
}

/* ---- trees that meet others ------------------------------------------------------------------------------------ */

/* A chain of rods falls on a floor and comes to rest on it, asleep. */
static void test_a_chain_comes_to_rest_on_the_floor(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        const fsi_rigid_shape s = fsi_rigid_capsule((fsi_real)0.05, (fsi_real)0.15);
        fsi_rigid_desc d = rigid_desc(dim, 9.81);
        fsi_rigid_link_desc l[5];
        const fsi_rigid_tree *t;
        fsi_rigid *w;
        double deepest = 0;
        d.sleep_time = (fsi_real)0.5;
        w = make_world(&d);
        add_floor(w);
        for (k = 0; k < 5; k++) {
            fsi_vec3 at = fsi_v3_add(v3(0.4 * k, 0, 0), fsi_v3_scale(up(dim), (fsi_real)0.5));
            l[k] = make_link(&s, at, k - 1, FSI_RIGID_REVOLUTE, fsi_v3_sub(at, v3(0.2, 0, 0)),
                             dim == 2 ? v3(0, 0, 1) : v3(0, 1, 0.5 * (k % 2)));
        }
        t = fsi_rigid_tree_at(w, add_tree(w, l, 5, 0));
        while (w->time < 6) {
            if (!advance(w, 1.0 / 120)) break;
            deepest = fmax(deepest, w->stats.max_depth);
        }
        CHECK(deepest <= 0.02);
        for (k = 0; k < 5; k++) {
            CHECK_NEAR(height_of(w, t->body[k]), 0.05, 2e-3);
            CHECK(w->asleep[t->body[k]]);
            CHECK(speed_of(w, t->body[k]) == 0);
        }
        fsi_rigid_destroy(w);
    }
}

/* A ball hits a hanging rod: linear momentum along the free axis is not kept (the hinge holds), but the angular
   momentum about the hinge is. */
static void test_a_ball_strikes_a_pendulum(void)
{
    fsi_rigid_desc d = rigid_desc(3, 0);
    double angle[1] = { 0 }, before, after = 0, moment;
    const fsi_rigid_tree *t;
    fsi_rigid *w;
    int ball, tree;
    d.restitution = (fsi_real)0.5;
    d.friction = 0;
    w = make_world(&d);
    tree = add_pendulum(w, 1, angle);
    t = fsi_rigid_tree_at(w, tree);
    {   /* the rod of add_pendulum meets nothing: hang a plate on it that does */
        fsi_rigid_shape rod = box_shape(0.1, 0.1, 1), ball_of = ball_shape(0.1);
        fsi_rigid_link_desc l[2];
        CHECK(fsi_rigid_remove_tree(w, tree) == FSI_OK && fsi_rigid_tree_at(w, tree) == NULL);
        l[0] = make_link(&rod, v3(0, 0, 0.7), -1, FSI_RIGID_WELD, v3(0, 0, 0), v3(0, -1, 0));
        l[1] = make_link(&rod, v3(0, 0, -0.5), 0, FSI_RIGID_REVOLUTE, v3(0, 0, 0), v3(0, -1, 0));
        t = fsi_rigid_tree_at(w, add_tree(w, l, 2, 1));
        ball = add_shape(w, ball_of, v3(-0.5, 0, -0.8));
    }
    CHECK(fsi_rigid_set_velocity(w, ball, v3(2, 0, 0), v3(0, 0, 0)) == FSI_OK);
    moment = 10 * (rod_moment + 0.25); /* of the rod about the hinge */
    before = (double)w->body[ball]->mass * 2 * 0.8;
    advance_to(w, 0.5, 1e-3);
    after = (double)w->body[ball]->mass * (double)w->body[ball]->velocity.x * 0.8 + moment * (double)t->rate[0];
    CHECK((double)t->rate[0] > 0.05);
    CHECK_NEAR(after, before, 2e-3 * before);
    /* Newton's law of restitution */
    CHECK_NEAR((double)t->rate[0] * 0.8 - (double)w->body[ball]->velocity.x, 0.5 * 2, 0.02);
    fsi_rigid_destroy(w);
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static int refused_tree(fsi_rigid *w, fsi_rigid_link_desc *l, int n, fsi_status status, const char *word)
{
    fsi_rigid_tree_desc t = fsi_rigid_default_tree_desc();
    uint64_t hash = fsi_rigid_hash(w);
    int id = -1;
    t.links = l;
    t.link_count = n;
    if (CHECK(fsi_rigid_add_tree(w, &t, &id) == status) && CHECK(strstr(fsi_rigid_error(w)->message, word) != NULL) &&
        CHECK(fsi_rigid_hash(w) == hash))
        return 1;
    printf("  said: %s (want %s)\n", fsi_rigid_error(w)->message, word);
    return 0;
}

static void test_bad_trees_are_refused_by_name(void)
{
    const fsi_rigid_shape s = box_shape(0.1, 0.1, 0.1);
    fsi_rigid_desc d = rigid_desc(3, 0);
    fsi_rigid *w = make_world(&d);
    fsi_rigid_link_desc good[2], l[2];
    fsi_rigid_tree_desc t = fsi_rigid_default_tree_desc();
    double times[2] = { 0, 1 };
    fsi_real values[2] = { 0, 1 };
    int tree, id;
    good[0] = make_link(&s, v3(0, 0, 0), -1, FSI_RIGID_WELD, v3(0, 0, 0), v3(0, 0, 1));
    good[1] = make_link(&s, v3(1, 0, 0), 0, FSI_RIGID_REVOLUTE, v3(0.5, 0, 0), v3(0, 0, 1));
#define TRY(change, status, word) (memcpy(l, good, sizeof l), (change), refused_tree(w, l, 2, status, word))
    TRY(l[1].parent = 1, FSI_ERROR_ARGUMENT, "parent");
    CHECK(fsi_rigid_error(w)->element == 1);
    TRY(l[1].parent = 2, FSI_ERROR_ARGUMENT, "parent");
    TRY(l[1].parent = -1, FSI_ERROR_ARGUMENT, "parent");
    TRY(l[0].parent = 0, FSI_ERROR_ARGUMENT, "parent");
    TRY(l[1].axis = v3(0, 0, 0), FSI_ERROR_ARGUMENT, "axis");
    TRY(l[1].axis.x = (fsi_real)test_nan(), FSI_ERROR_NAN, "axis");
    TRY(l[1].point.y = (fsi_real)test_inf(), FSI_ERROR_NAN, "point");
    TRY(l[1].q = (fsi_real)test_nan(), FSI_ERROR_NAN, "q");
    TRY(l[1].rate = (fsi_real)test_nan(), FSI_ERROR_NAN, "rate");
    TRY(l[1].stiffness = -1, FSI_ERROR_ARGUMENT, "stiffness");
    TRY(l[1].damping = -1, FSI_ERROR_ARGUMENT, "damping");
    TRY((l[1].limited = 1, l[1].lower = 1, l[1].upper = 0), FSI_ERROR_ARGUMENT, "upper");
    TRY(l[1].joint = (fsi_rigid_joint_kind)7, FSI_ERROR_ARGUMENT, "joint");
    TRY(l[1].cookie = 1, FSI_ERROR_COOKIE, "");
    TRY(l[1].body.mass = -3, FSI_ERROR_ARGUMENT, "mass");
    CHECK(fsi_rigid_error(w)->element == 1);
#undef TRY
    t.links = good;
    t.link_count = 0;
    CHECK(fsi_rigid_add_tree(w, &t, &id) == FSI_ERROR_ARGUMENT);
    t.link_count = 257;
    CHECK(fsi_rigid_add_tree(w, &t, &id) == FSI_ERROR_ARGUMENT);
    t.link_count = 2;
    t.links = NULL;
    CHECK(fsi_rigid_add_tree(w, &t, &id) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_add_tree(w, NULL, &id) == FSI_ERROR_COOKIE ||
          fsi_rigid_add_tree(w, NULL, &id) == FSI_ERROR_ARGUMENT);
    CHECK(w->tree_count == 0);
    tree = add_tree(w, good, 2, 0);
    id = fsi_rigid_tree_at(w, tree)->body[1];
    CHECK(fsi_rigid_remove_body(w, id) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_teleport(w, id, fsi_rigid_pose(w, id)) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_set_velocity(w, id, v3(0, 0, 0), v3(0, 0, 0)) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_set_joint(w, tree, 0, 0, 0) == FSI_ERROR_ARGUMENT &&
          fsi_rigid_set_joint(w, tree, 2, 0, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_set_joint(w, tree + 1, 1, 0, 0) == FSI_ERROR_ARGUMENT &&
          fsi_rigid_set_joint(w, tree, 1, (fsi_real)test_nan(), 0) == FSI_ERROR_NAN);
    CHECK(fsi_rigid_set_joint_force(w, tree, 1, (fsi_real)test_inf()) == FSI_ERROR_NAN);
    CHECK(fsi_rigid_set_joint_target(w, tree, 1, (fsi_real)test_nan()) == FSI_ERROR_NAN &&
          fsi_rigid_set_joint_target(w, tree, 5, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_set_joint_track(w, tree, 1, times, values, 0, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_set_joint_track(w, tree, 1, NULL, values, 2, 0) == FSI_ERROR_ARGUMENT);
    /* keys beyond the period */
    CHECK(fsi_rigid_set_joint_track(w, tree, 1, times, values, 2, 0.5) == FSI_ERROR_ARGUMENT);
    times[1] = -1;
    CHECK(fsi_rigid_set_joint_track(w, tree, 1, times, values, 2, 0) == FSI_ERROR_ARGUMENT);   /* not ascending */
    times[1] = test_nan();
    CHECK(fsi_rigid_set_joint_track(w, tree, 1, times, values, 2, 0) == FSI_ERROR_NAN);
    CHECK(fsi_rigid_free_joint(w, tree, 0) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_remove_tree(w, tree + 3) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_rigid_remove_tree(w, tree) == FSI_OK && fsi_rigid_remove_tree(w, tree) == FSI_ERROR_ARGUMENT);
    CHECK(w->stats.bodies == 0 || advance(w, 0.01));
    fsi_rigid_destroy(w);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_jacobians_are_differences_of_poses);
    RUN(test_inertia_gives_the_kinetic_energy);
    RUN(test_bias_forces_are_differences_of_momentum);
    RUN(test_joint_forces_stand_in_the_right_hand_side);
    RUN(test_small_swings_have_the_analytic_periods);
    RUN(test_a_double_pendulum_swings_as_runge_kutta_says);
    RUN(test_a_chain_keeps_its_energy_and_its_joints);
    RUN(test_held_joints_bear_the_moments_of_the_weights);
    RUN(test_scripted_joints_follow_their_tracks);
    RUN(test_scripted_legs_keep_the_momentum);
    RUN(test_a_sprung_carriage_swings_and_is_damped);
    RUN(test_stiff_springs_stay_stable);
    RUN(test_limits_stop_joints);
    RUN(test_a_weld_is_one_body);
    RUN(test_a_chain_comes_to_rest_on_the_floor);
    RUN(test_a_ball_strikes_a_pendulum);
    RUN(test_bad_trees_are_refused_by_name);
    return TEST_END();
}
