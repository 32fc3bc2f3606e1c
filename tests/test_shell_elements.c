/* test_shell_elements.c - energies of single elements: derivatives against differences, rigid motions, rolled sheets,
   twisted rods
   SPDX-License-Identifier: MIT */
#define FSI_ELEMENTS_IMPLEMENTATION
#define FSI_SHELL_IMPLEMENTATION
#include "kit/test.h"
#include "../fsi_shell.h"

#define MOST 18

/* An element under test: its energy at x, with frames and the like in `state`. */
typedef struct element {
    double (*energy)(const void *state, const double *x, double *g, double *h, int exact, double support);
    const void *state;
    int n;
} element;

static uint64_t seed = 1;
static double any(double lo, double hi) { return lo + (hi - lo) * test_random(&seed); }

static double norm(const double *x, int n)
{
    double s = 0;
    int i;
    for (i = 0; i < n; i++) s += x[i] * x[i];
    return sqrt(s);
}

/* Largest difference of the gradient from differences of the energy, of the Hessian from those of the gradient
   (`frames`: of the energy), relative to their sizes and that of what the differences are made of. */
static void differ(const element *e, const double *x, double step, int frames, double *worst_g, double *worst_h)
{
    double g[MOST], h[MOST * MOST], y[MOST], a[MOST], b[MOST], fine, error;
    const double w = e->energy(e->state, x, g, h, 1, 0);
    int i, j;
    memcpy(y, x, (size_t)e->n * sizeof *y);
    for (i = 0; i < e->n; i++) { /* fourth order */
        double v[4];
        for (j = 0; j < 4; j++) {
            y[i] = x[i] + step * (j < 2 ? j - 2 : j - 1);
            v[j] = e->energy(e->state, y, NULL, NULL, 1, 0);
        }
        y[i] = x[i];
        fine = (8 * (v[2] - v[1]) - (v[3] - v[0])) / (12 * step);
        error = fabs(fine - g[i]) / (norm(g, e->n) + step * norm(h, e->n * e->n) + 1e-9 * fabs(w) / step + 1e-300);
        if (!(error <= *worst_g)) *worst_g = error;
    }
    for (i = 0; i < e->n; i++) for (j = 0; j < (frames ? e->n : 1); j++) {
        if (frames) { /* the gradient holds where the frames are: four energies */
            double v[4];
            int k;
            for (k = 0; k < 4; k++) {
                memcpy(y, x, (size_t)e->n * sizeof *y);
                y[i] += k & 1 ? step : -step;
                y[j] += k & 2 ? step : -step;
                v[k] = e->energy(e->state, y, NULL, NULL, 1, 0);
            }
            error = fabs((v[3] - v[1] - v[2] + v[0]) / (4 * step * step) - h[e->n * i + j]) /
                    (norm(h, e->n * e->n) + 1e-300);
            if (!(error <= *worst_h)) *worst_h = error;
            continue;
        }
        {
            double c[2][MOST];
            int k;
            for (k = 0; k < 2; k++) {
                y[i] = x[i] + (k + 1) * step;
                e->energy(e->state, y, a, NULL, 1, 0);
                y[i] = x[i] - (k + 1) * step;
                e->energy(e->state, y, b, NULL, 1, 0);
                y[i] = x[i];
                for (j = 0; j < e->n; j++) c[k][j] = (a[j] - b[j]) / (2 * (k + 1) * step);
            }
            for (j = 0; j < e->n; j++) {
                error = fabs((4 * c[0][j] - c[1][j]) / 3 - h[e->n * i + j]) / (norm(h, e->n * e->n) + 1e-300);
                if (!(error <= *worst_h)) *worst_h = error;
            }
        }
    }
}

/* Is h + support 1 positive semidefinite? By Cholesky of h + (support + 1e-9 |h|) 1. */
static int is_positive(const double *h, int n, double support)
{
    double a[MOST * MOST], shift = support + 1e-9 * norm(h, n * n);
    int i, j, k;
    memcpy(a, h, (size_t)(n * n) * sizeof *a);
    for (i = 0; i < n; i++) a[n * i + i] += shift;
    for (j = 0; j < n; j++) {
        for (k = 0; k < j; k++) a[n * j + j] -= a[n * j + k] * a[n * j + k];
        if (!(a[n * j + j] > 0)) return norm(h, n * n) <= 0;
        a[n * j + j] = sqrt(a[n * j + j]);
        for (i = j + 1; i < n; i++) {
            for (k = 0; k < j; k++) a[n * i + j] -= a[n * i + k] * a[n * j + k];
            a[n * i + j] /= a[n * j + j];
        }
    }
    return 1;
}

/* Corners anywhere within a box. */
static void scatter(double *x, int points, double size)
{
    int i;
    for (i = 0; i < 3 * points; i++) x[i] = any(-size, size);
}

static void triangle(double *x) /* of some area */
{
    double u[3], v[3], n[3];
    do {
        scatter(x, 3, 1);
        fsi__sh_sub(x + 3, x, u);
        fsi__sh_sub(x + 6, x, v);
        fsi__sh_cross(u, v, n);
    } while (norm(n, 3) < 0.2);
}

static double membrane(const void *s, const double *x, double *g, double *h, int exact, double support)
{
    return fsi__shell_membrane_energy((const fsi__shell_membrane *)s, x, g, h, exact, support);
}

static void make_membrane(fsi__shell_membrane *m, const double *rest, int neo)
{
    const double warp[3] = { any(-1, 1), any(-1, 1), any(-1, 1) };
    int k;
    CHECK(fsi__shell_membrane_rest(m, rest, warp, 0.01));
    m->c11 = any(1, 3);
    m->c22 = any(1, 3);
    m->c12 = any(-0.5, 0.9);
    m->c66 = any(0.1, 1);
    m->neo_hookean = neo;
    m->mu = any(0.2, 2);
    m->lambda = any(0.5, 5);
    for (k = 0; k < 3; k++) m->strain[k] = any(-0.2, 0.2); /* what dampers set */
    m->damped = any(0, 1) < 0.5;
}

static void check_element(const element *e, const double *x, double step, int frames, double tol_g, double tol_h,
                          double support)
{
    double g = 0, hh = 0, h[MOST * MOST];
    differ(e, x, step, frames, &g, &hh);
    CHECK_NEAR(g, 0, tol_g);
    CHECK_NEAR(hh, 0, tol_h);
    e->energy(e->state, x, NULL, h, 0, support);
    CHECK(is_positive(h, e->n, support));
}

static void test_membranes_have_exact_derivatives(void)
{
    fsi__shell_membrane m;
    element e;
    int k, i;
    e.energy = membrane;
    e.state = &m;
    e.n = 9;
    for (k = 0; k < (TEST_SLOWED ? 100 : 3000); k++) {
        double rest[9], x[9];
        triangle(rest);
        make_membrane(&m, rest, k & 1);
        triangle(x);
        if (k % 3 == 0) for (i = 0; i < 9; i++) x[i] = rest[i] * any(0.9, 1.1); /* little strain, pressed or pulled */
        /* a needle */
        if (k % 7 == 0) for (i = 0; i < 3; i++) x[6 + i] = x[i] + 0.5 * (x[3 + i] - x[i]) + any(-1e-2, 1e-2);
        check_element(&e, x, k % 7 == 0 ? 2e-6 : 1e-4, 0, k % 7 == 0 ? 2e-6 : 1e-7, k % 7 == 0 && (k & 1) ? 1e-4 : 1e-6,
                      k % 2 ? 0 : any(0, 0.01));
    }
}

static double hinge(const void *s, const double *x, double *g, double *h, int exact, double support)
{
    const double *k = (const double *)s;
    return fsi__shell_hinge(k[0], k[1], x, g, h, exact, support);
}

static void test_hinges_have_exact_derivatives(void)
{
    double k[2];
    element e;
    int n;
    e.energy = hinge;
    e.state = k;
    e.n = 12;
    for (n = 0; n < (TEST_SLOWED ? 100 : 3000); n++) {
        double x[12], g[12], w;
        k[0] = any(0.1, 2);
        k[1] = any(-3, 3);
        do {
            triangle(x);
            scatter(x + 9, 1, 1);
            if (n % 5 == 0) for (w = 0; w < 3; w++) x[9 + (int)w] = x[6 + (int)w] + any(-0.1, 0.1); /* folded back */
            w = fsi__shell_angle(x, g, NULL);
        } while (norm(g, 12) > 20 || fabs(fabs(fsi__shell_turn(w, k[1])) - FSI_PI) < 0.1);
        check_element(&e, x, 1e-4 / (1 + norm(g, 12)), 0, 1e-6, 1e-6, n % 2 ? 0 : any(0, 1));
    }
}

static double plate(const void *s, const double *x, double *g, double *h, int exact, double support)
{
    return fsi__shell_plate_energy((const fsi__shell_plate *)s, x, g, h, exact, support);
}

static void flaps(double *x, double far_out) /* a triangle and three beside it */
{
    static const double flat[18] = { 0, 0, 0, 1, 0, 0, 0.5, 0.9, 0, 1.5, 0.9, 0, -0.5, 0.9, 0, 0.5, -0.9, 0 };
    int i;
    for (i = 0; i < 18; i++) x[i] = flat[i] + any(-far_out, far_out);
}

static void test_plates_have_exact_derivatives(void)
{
    const double d[4] = { 1, 0.7, 0.3, 0.4 }, warp[3] = { 1, 0.2, 0 };
    fsi__shell_plate p;
    element e;
    int n;
    e.energy = plate;
    e.state = &p;
    e.n = 18;
    for (n = 0; n < (TEST_SLOWED ? 50 : 1000); n++) {
        double rest[18], x[18];
        flaps(rest, 0.2);
        flaps(x, 0.3);
        fsi__shell_plate_rest(&p, rest, n % 8, warp, d);
        check_element(&e, x, 2e-5, 0, 1e-6, 1e-6, n % 2 ? 0 : any(0, 1));
    }
}

static double stretch(const void *s, const double *x, double *g, double *h, int exact, double support)
{
    const double *k = (const double *)s;
    (void)support;
    return fsi__shell_stretch(k[0], k[1], x, g, h, exact);
}

static double bend(const void *s, const double *x, double *g, double *h, int exact, double support)
{
    const double *k = (const double *)s;
    (void)support;
    return fsi__shell_bend(k[0], k[1], x, g, h, exact);
}

static double bend_flat(const void *s, const double *x, double *g, double *h, int exact, double support)
{
    const double *k = (const double *)s;
    double flat[9], g9[9], h9[81], w;
    int i, j;
    (void)support;
    for (i = 0; i < 9; i++) flat[i] = i % 3 == 2 ? 0 : x[i / 3 * 2 + i % 3];
    w = fsi__shell_bend_flat(k[0], k[1], flat, g ? g9 : NULL, h ? h9 : NULL, exact);
    for (i = 0; g && i < 6; i++) g[i] = g9[i / 2 * 3 + i % 2];
    for (i = 0; h && i < 6; i++) for (j = 0; j < 6; j++) h[6 * i + j] = h9[9 * (i / 2 * 3 + i % 2) + j / 2 * 3 + j % 2];
    return w;
}

static void corner(double *x, double most) /* two edges with a turn of at most acos(-most) */
{
    double u[3], v[3];
    do {
        scatter(x, 3, 1);
        fsi__sh_sub(x + 3, x, u);
        fsi__sh_sub(x + 6, x + 3, v);
    } while (norm(u, 3) < 0.3 || norm(v, 3) < 0.3 || fsi__sh_dot(u, v) < -most * norm(u, 3) * norm(v, 3));
}

static void test_rods_have_exact_derivatives(void)
{
    double k[2];
    element e;
    int n, i;
    e.state = k;
    for (n = 0; n < (TEST_SLOWED ? 100 : 3000); n++) {
        double x[9];
        k[0] = any(0.1, 2);
        k[1] = any(0.2, 2);
        corner(x, 0.8);
        e.energy = stretch;
        e.n = 6;
        check_element(&e, x, 1e-4, 0, 1e-6, 1e-6, 0);
        k[1] = n % 2 ? 0 : any(0.1, 2);
        if (n % 2 && n % 3 == 0) for (i = 0; i < 3; i++) x[6 + i] = 2 * x[3 + i] - x[i]; /* straight */
        e.energy = bend;
        e.n = 9;
        check_element(&e, x, 1e-4, 0, n % 3 == 0 ? 1e-4 : 1e-6, 1e-5, 0);
    }
}

static void test_bends_in_the_plane_have_exact_derivatives(void)
{
    double k[2];
    element e;
    int n, i;
    e.state = k;
    e.energy = bend_flat;
    e.n = 6;
    for (n = 0; n < (TEST_SLOWED ? 100 : 3000); n++) {
        double x[9];
        k[0] = any(0.1, 2);
        k[1] = n % 3 == 0 ? 0 : any(-2, 2);
        do {
            corner(x, 0.8);
            for (i = 0; i < 3; i++) x[3 * i + 2] = 0;
        } while (fsi__sh_apart(x, x + 3) < 0.3 || fsi__sh_apart(x + 3, x + 6) < 0.3 || fsi__shell_bent_at(x).chi < 0.2);
        for (i = 0; i < 6; i++) x[i] = x[i / 2 * 3 + i % 2];
        if (n % 5 == 0) for (i = 0; i < 2; i++) x[4 + i] = 2 * x[2 + i] - x[i]; /* straight */
        check_element(&e, x, 1e-4, 0, 1e-6, 1e-5, 0);
    }
}

typedef struct joint_state { fsi__shell_joint j; fsi__shell_frame frame[2]; double reference; } joint_state;

static double joint(const void *s, const double *x, double *g, double *h, int exact, double support)
{
    const joint_state *t = (const joint_state *)s;
    (void)support;
    return fsi__shell_joint_energy(&t->j, t->frame, t->reference, x, x + 9, g, h, exact);
}

static void make_joint(joint_state *t, const double *x)
{
    static const double up[3] = { 0.3, 0.2, 1 };
    int i;
    t->frame[0] = fsi__shell_frame_make(x, x + 3, up);
    t->frame[1] = fsi__shell_frame_make(x + 3, x + 6, up);
    t->reference = fsi__shell_joint_twist(t->frame, 0, x);
    t->j.length = any(0.5, 1);
    for (i = 0; i < 2; i++) {
        t->j.bend[i] = any(0.2, 2);
        t->j.rest_curvature[i] = any(-1, 1);
    }
    t->j.twist = any(0.2, 2);
    t->j.rest_twist = any(-1, 1);
}

static void test_joints_have_exact_derivatives(void)
{
    joint_state t;
    element e;
    int n, i;
    e.energy = joint;
    e.state = &t;
    e.n = 11;
    for (n = 0; n < (TEST_SLOWED ? 100 : 2000); n++) {
        double x[11];
        corner(x, 0.3);
        if (n % 5 == 0) for (i = 0; i < 3; i++) x[6 + i] = 2 * x[3 + i] - x[i];
        x[9] = any(-3, 3);
        x[10] = any(-3, 3);
        make_joint(&t, x);
        check_element(&e, x, 3e-4, 1, 1e-6, 1e-5, 0);
    }
}

/* A turn and a shift leave an energy, and turn its gradient. */
static void turn(const fsi_quat q, const double *shift, const double *x, double *y, int points)
{
    int i;
    for (i = 0; i < points; i++) {
        const fsi_vec3 v = fsi_quat_rotate(q, fsi__sh_to(x + 3 * i));
        y[3 * i] = (double)v.x + shift[0];
        y[3 * i + 1] = (double)v.y + shift[1];
        y[3 * i + 2] = (double)v.z + shift[2];
    }
}

static void test_rigid_motions_cost_nothing(void)
{
    int n;
    for (n = 0; n < 300; n++) {
        const fsi_quat q = fsi_quat_unit(
            fsi_quat_make((fsi_real)any(-1, 1), (fsi_real)any(-1, 1), (fsi_real)any(-1, 1), (fsi_real)any(-1, 1)));
        const double shift[3] = {any(-5, 5), any(-5, 5), any(-5, 5)}, d[4] = {1, 0.7, 0.3, 0.4}, warp[3] = {1, 0.2, 0},
                     tol = TOL(1e-12, 1e-4);
        double rest[18], x[18], g[18], k[2];
        fsi__shell_membrane m;
        fsi__shell_plate p;
        triangle(rest);
        make_membrane(&m, rest, n & 1);
        m.lambda = m.mu + m.lambda;
        memset(m.strain, 0, sizeof m.strain);
        turn(q, shift, rest, x, 3);
        membrane(&m, x, g, NULL, 1, 0);
        CHECK_NEAR(norm(g, 9), 0, tol);
        flaps(rest, 0.2); /* a curved shape of rest */
        turn(q, shift, rest, x, 6);
        fsi__shell_plate_rest(&p, rest, 0, warp, d);
        CHECK_NEAR(plate(&p, x, g, NULL, 1, 0), 0, tol);
        CHECK_NEAR(norm(g, 18), 0, tol * 20);
        k[0] = 1;
        k[1] = fsi__shell_angle(rest, NULL, NULL);
        hinge(k, x, g, NULL, 1, 0);
        CHECK_NEAR(norm(g, 12), 0, tol * 20);
    }
}

static void test_a_twisted_rod_stores_the_energy_of_torsion(void)
{
    joint_state t;
    double x[11] = { 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0.7 };
    make_joint(&t, x);
    t.j.length = 1;
    t.j.rest_curvature[0] = t.j.rest_curvature[1] = t.j.rest_twist = 0;
    CHECK_NEAR(joint(&t, x, NULL, NULL, 1, 0), t.j.twist / 2 * 0.49, 1e-12);
    x[10] = 0;
    CHECK_NEAR(joint(&t, x, NULL, NULL, 1, 0), 0, 1e-14);
}

/* Frames carried around a closed tangent curve come back turned by the area that it encloses on the sphere: here an
   eighth. */
static void test_a_frame_comes_back_turned_by_the_enclosed_area(void)
{
    static const double o[3] = { 0, 0, 0 }, ax[3] = { 1, 0, 0 }, ay[3] = { 0, 1, 0 }, az[3] = { 0, 0, 1 };
    fsi__shell_frame f = fsi__shell_frame_make(o, ax, ay), g = f;
    fsi__shell_frame_transport(&f, o, ay);
    fsi__shell_frame_transport(&f, o, az);
    fsi__shell_frame_transport(&f, o, ax);
    CHECK_NEAR(fabs(fsi__shell_frames_twist(&g, &f, 0)), FSI_PI / 2, 1e-12);
}

/* Rolled sheets (coupling.md 6.2): energy over that of a cylinder, hinge and shape operator, in twelve directions. */
enum { ROLL = 12 };
static double rolled(int mesh, double direction, int shape_operator)
{
    static double flat[(ROLL + 1) * (ROLL + 1)][3], bent[(ROLL + 1) * (ROLL + 1)][3];
    const double k = 0.01, d[4] = { 1, 1, 0, 0.5 }, warp[3] = { 1, 0, 0 }, c = cos(direction), s = sin(direction);
    double energy = 0, area = 0;
    int i, j, n = ROLL + 1;
    for (j = 0; j < n; j++) for (i = 0; i < n; i++) {
        double *u = flat[j * n + i], *v = bent[j * n + i], along;
        u[0] = mesh == 0 ? i + 0.5 * j : i;
        u[1] = mesh == 0 ? j * sqrt(3) / 2 : j;
        u[2] = 0;
        along = u[0] * c + u[1] * s;
        v[0] = sin(k * along) / k * c - (-u[0] * s + u[1] * c) * s;
        v[1] = sin(k * along) / k * s + (-u[0] * s + u[1] * c) * c;
        v[2] = (1 - cos(k * along)) / k;
    }
    for (j = 2; j < n - 3; j++) for (i = 2; i < n - 3; i++) { /* both triangles of an inner cell: a b c, b d c */
        const int a = j * n + i, b = a + 1, e = a + n, f = e + 1;
        const int node[2][6] = { { a, b, e, f, e - 1, a - n + 1 }, { b, f, e, f + n - 1, a, f - n + 1 } };
        int t, q;
        for (t = 0; t < 2; t++) {
            double rest[18], x[18], u[3], v[3], m[3];
            int o[6];
            memcpy(o, node[t], sizeof o);
            if (t == 1) {
                o[3] = e + n;      /* across f e: above */
                o[4] = a;          /* across e b */
                o[5] = f - n + 1;  /* across b f: right */
            } else {
                o[3] = f;          /* across b e */
                o[4] = e - 1;      /* across e a: left */
                o[5] = a - n + 1;  /* across a b: below */
            }
            for (q = 0; q < 6; q++) {
                memcpy(rest + 3 * q, flat[o[q]], 3 * sizeof(double));
                memcpy(x + 3 * q, bent[o[q]], 3 * sizeof(double));
            }
            fsi__sh_sub(rest + 3, rest, u);
            fsi__sh_sub(rest + 6, rest, v);
            fsi__sh_cross(u, v, m);
            area += norm(m, 3) / 2;
            if (shape_operator) {
                fsi__shell_plate p;
                fsi__shell_plate_rest(&p, rest, 0, warp, d);
                energy += fsi__shell_plate_energy(&p, x, NULL, NULL, 1, 0);
            } else for (q = 0; q < 3; q++) { /* half of each of its hinges; all triangles have the same area */
                double flap[12], l;
                fsi__shell_gather_flap(rest, q, flap);
                fsi__sh_sub(flap + 3, flap, u);
                l = norm(u, 3);
                fsi__shell_gather_flap(x, q, flap);
                energy += fsi__shell_hinge(l * l / norm(m, 3), 0, flap, NULL, NULL, 1, 0) / 2;
            }
        }
    }
    return energy / (area * k * k / 2);
}

static void test_rolled_sheets_have_the_stiffness_of_theory(void)
{
    double lo[2][2] = { { 9, 9 }, { 9, 9 } }, hi[2][2] = { { 0, 0 }, { 0, 0 } };
    int mesh, way, k;
    for (mesh = 0; mesh < 2; mesh++) for (way = 0; way < 2; way++) for (k = 0; k < 12; k++) {
        const double e = rolled(mesh, k * FSI_PI / 12, way);
        if (e < lo[mesh][way]) lo[mesh][way] = e;
        if (e > hi[mesh][way]) hi[mesh][way] = e;
    }
    CHECK_NEAR(lo[0][1], 1, 2e-3); /* the shape operator: right in every direction */
    CHECK_NEAR(hi[0][1], 1, 2e-3);
    CHECK_NEAR(lo[1][1], 1, 2e-3);
    CHECK_NEAR(hi[1][1], 1, 2e-3);
    CHECK_NEAR(lo[0][0], 0.98, 0.03); /* hinges: 0.96 to 1.00, and 0.73 to 2.92 where the mesh is right-angled */
    CHECK_NEAR(hi[0][0], 1, 0.02);
    CHECK_NEAR(lo[1][0], 0.75, 0.1);
    CHECK_NEAR(hi[1][0], 2.95, 0.1);
}

enum { SHEETS = 5, SIDE = 6, EACH = SIDE * SIDE };

/* Sheets upon each other, 0.6 ranges apart, so that each is within range of the next, and not of the next but one. */
static fsi_shell *pile(fsi_shell_desc *d)
{
    static fsi_vec3 x[SHEETS * EACH];
    static int t[SHEETS * (SIDE - 1) * (SIDE - 1) * 6];
    fsi_shell_material cotton = fsi_shell_preset(FSI_SHELL_COTTON);
    fsi_shell *s = NULL;
    int k, i, j, n = 0;
    for (k = 0; k < SHEETS; k++) for (i = 0; i < SIDE; i++) for (j = 0; j < SIDE; j++) {
        const int a = k * EACH + i * SIDE + j, quad[6] = { a, a + SIDE, a + 1, a + 1, a + SIDE, a + SIDE + 1 };
        x[a] = fsi_v3((fsi_real)(0.05 * i + 0.011 * k), (fsi_real)(0.05 * j + 0.007 * k), (fsi_real)(0.6 * 0.0075 * k));
        if (i + 1 < SIDE && j + 1 < SIDE) {
            memcpy(t + n, quad, sizeof quad);
            n += 6;
        }
    }
    d->vertices = x;
    d->vertex_count = SHEETS * EACH;
    d->triangles = t;
    d->triangle_count = n / 3;
    d->materials = &cotton;
    d->material_count = 1;
    d->contact_range = (fsi_real)0.0075;
    d->friction = (fsi_real)0.3;
    CHECK(fsi_shell_create(&s, d) == FSI_OK);
    return s;
}

/* Entries for pairs that are out of reach would double the work of a factorisation. */
static void test_a_pile_couples_only_sheets_that_meet(void)
{
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell *s = pile(&d);
    const fsi__sh_impl *m = (const fsi__sh_impl *)s->impl;
    int r, e, a, b, met = 0, far_apart = 0, skew = 0;
    CHECK(fsi_shell_step(s, (fsi_real)1e-3) == FSI_OK && s->stats.contacts > 500);
    for (r = 0; r < m->total.rows; r++) for (e = m->total.start[r]; e < m->total.start[r + 1]; e++) {
            const int apart = (int)fabs((double)(r / EACH - m->total.col[e] / EACH)),
                      back = fsi__sh_entry(&m->total, m->total.col[e], r);
            met += apart == 1;
            far_apart += apart > 1;
            for (a = 0; a < 3 && back >= 0 && back != e; a++)
                for (b = 0; b < 3; b++)
                    skew += memcmp(&m->total.value[9 * e + 3 * a + b], &m->total.value[9 * back + 3 * b + a],
                                   sizeof(double)) != 0;
            skew += back < 0;
    }
    CHECK(met > 8 * EACH && far_apart == 0);
    CHECK(skew == 0); /* one triangle is the other's mirror image */
    fsi_shell_destroy(s);
}

/* The gap of a pair that was far is not measured while it must still be beyond the range: what is kept of it must not
   be more than it is. */
static void test_gaps_that_were_not_measured_are_no_larger(void)
{
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell *s = pile(&d);
    const fsi__sh_impl *m = (const fsi__sh_impl *)s->impl;
    int k, i, kept = 0, wrong = 0;
    for (k = 0; k < 8; k++) {
        CHECK(fsi_shell_step(s, (fsi_real)(1 / 60.0)) == FSI_OK);
        for (i = 0; i < m->contacts.pairs; i++) {
            const fsi__sc_pair *p = &m->contacts.pair[i];
            double x[12], gap;
            fsi__sh_gather(m->now.x, p->node, fsi_pair_points(p->contact.kind), x);
            gap = fsi_distance_between(p->contact.kind, x).d - p->contact.thickness;
            wrong += !(m->contacts.gap[i] <= gap * (1 + 1e-9));
            wrong += gap < p->contact.range && !(m->contacts.gap[i] >= gap * (1 - 1e-9));
            kept += m->contacts.gap[i] < gap * (1 - 1e-6);
        }
    }
    CHECK(wrong == 0 && kept > 100);
    fsi_shell_destroy(s);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_membranes_have_exact_derivatives);
    RUN(test_hinges_have_exact_derivatives);
    RUN(test_plates_have_exact_derivatives);
    RUN(test_rods_have_exact_derivatives);
    RUN(test_bends_in_the_plane_have_exact_derivatives);
    RUN(test_joints_have_exact_derivatives);
    RUN(test_rigid_motions_cost_nothing);
    RUN(test_a_twisted_rod_stores_the_energy_of_torsion);
    RUN(test_a_frame_comes_back_turned_by_the_enclosed_area);
    RUN(test_rolled_sheets_have_the_stiffness_of_theory);
    RUN(test_a_pile_couples_only_sheets_that_meet);
    RUN(test_gaps_that_were_not_measured_are_no_larger);
    return TEST_END();
}
