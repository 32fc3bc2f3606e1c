/* test_membrane_walls.c - contact angles of liquid held by its surface: drops on plates and pools between walls.
   SPDX-License-Identifier: MIT */
#include "kit/test_membranes.h"

#define DEGREES (FSI_PI / 180)

/* Half the width of what lies on the floor, and the height of the highest vertex [cells]. */
static double wide_and_high(const fsi_membrane *m, double *high)
{
    const fsi_front *f = m->front;
    double lo = 1e9, hi = -1e9;
    int i;
    *high = 0;
    for (i = 0; i < f->vertex_count; i++) {
        const double up = (double)fsi__axis(f->position[i], f->dim - 1) / MEMBRANE_DX;
        *high = fmax(*high, up);
        if (up > 1e-6) continue;
        lo = fmin(lo, (double)f->position[i].x / MEMBRANE_DX);
        hi = fmax(hi, (double)f->position[i].x / MEMBRANE_DX);
    }
    return (hi - lo) / 2;
}

/* Of half a drop in 2D, cut in the middle, the forces along the floor are in balance:
   sigma (1 - cos(theta)) = H p - rho g H^2/2, H the height and p the pressure on the floor. */
static double angle_of_balance(const fsi_membrane *m, double middle, double high)
{
    const double g = -(double)m->desc.gravity.y, dx = MEMBRANE_DX, h = high * dx;
    const double p = (double)fsi_membrane_pressure_at(m, front_v3(middle * dx, dx / 2, 0)) + MEMBRANE_RHO * g * dx / 2;
    return acos(1 - (h * p - MEMBRANE_RHO * g * h * h / 2) / MEMBRANE_SIGMA) / DEGREES;
}

/* A drop of the volume of half a disc of 8 cells, at first with the angle `from`, on a floor of the angle `to`. In the
   last fifth of a second its line stays within 0.1 cells. The liquid has no viscosity: what eddies it still has have
   less than 0.3 % of the energy of its surface (0.6 % where gravity spread it), sigma 16 cells. */
static void comes_to_its_angle(double from, double to, double g, int steps)
{
    fsi_context c = fsi_default_context();
    front_shape s = { 2, 0, 0, NULL, NULL };
    fsi_membrane_desc d;
    fsi_membrane *m;
    const int n = 56;
    double high, wide, before = 0, volume, energy;
    int k;
    membrane_add_cap(&s, n / 2 + 0.2, 0, 8, from * DEGREES);
    d = membrane_desc(&c, &s, n);
    d.n[1] = 24;
    d.gravity = front_v3(0, -g, 0);
    d.wall_angle[2] = (fsi_real)to;
    m = membrane_make(&d);
    volume = m->stats.volume;
    energy = m->stats.surface_energy + m->stats.potential_energy;
    for (k = 0; k < steps && membrane_step(m, 0.004); k++) if (k == steps - 50) before = wide_and_high(m, &high);
    wide = wide_and_high(m, &high);
    CHECK_NEAR(angle_of_balance(m, n / 2 + 0.2, high), to, 2);
    if (!(g > 0)) CHECK_NEAR(2 * atan(high / wide) / DEGREES, to, 2);
    else if (wide > 10) CHECK_NEAR(high, 2 * sqrt(MEMBRANE_SIGMA / (MEMBRANE_RHO * g)) * sin(to / 2 * DEGREES)
        / MEMBRANE_DX, 0.15); /* a wide puddle */
    CHECK_NEAR(wide, before, 0.1);
    CHECK(m->stats.kinetic_energy <= (g > 5 ? 6e-3 : 3e-3) * 16 * MEMBRANE_DX * MEMBRANE_SIGMA);
    CHECK(m->stats.kinetic_energy + m->stats.surface_energy + m->stats.potential_energy <= energy);
    CHECK_NEAR(m->stats.volume, volume, TOL(1e-9, 1e-5) * volume);
    CHECK(m->stats.pieces == 1 && m->stats.degraded == 0);
    fsi_membrane_destroy(m);
    front_free(&s);
}

static void test_drops_come_to_their_angles(void)
{
    static const double to[] = { 60, 90, 120 }, from[] = { 90, 45, 135 };
    int k, i;
    for (k = 0; k < 3; k++)
        for (i = k == 1; i < 3; i++) comes_to_its_angle(from[i], to[k], 0, i == 1 ? 400 : 250);
    if (TEST_SLOWED) return;
    comes_to_its_angle(40, 20, 0, 300);
    comes_to_its_angle(130, 160, 0, 250);
}
static void test_puddles_come_to_their_angles(void)
{
    comes_to_its_angle(90, 60, 9.81, 300);
    comes_to_its_angle(60, 90, 9.81, 300);
    comes_to_its_angle(90, 120, 9.81, 300);
    comes_to_its_angle(135, 120, 2, 300);
    comes_to_its_angle(60, 90, 2, 300);
}

/* Beside a wall the surface of a wide pool is +-l sqrt(2 (1 - sin(theta))) higher than far away. */
static void test_pools_climb_their_walls(void)
{
    static const double angle[] = { 45, 135, 90 };
    int k, i;
    for (k = 0; k < 3; k++) {
        fsi_context c = fsi_default_context();
        front_shape s = { 2, 0, 0, NULL, NULL };
        fsi_membrane_desc d;
        fsi_membrane *m;
        const int n = 40;
        const double l = 4, want = (angle[k] < 90 ? 1 : -1) * l * sqrt(2 * (1 - sin(angle[k] * DEGREES)));
        double side[2] = { 0, 0 }, middle = 1e9;
        membrane_add_pool(&s, n, 10.3, 0, 1);
        d = membrane_desc(&c, &s, n);
        d.n[1] = 20;
        d.gravity = front_v3(0, -MEMBRANE_SIGMA / (MEMBRANE_RHO * l * l * MEMBRANE_DX * MEMBRANE_DX), 0);
        d.wall_angle[0] = d.wall_angle[1] = (fsi_real)angle[k];
        d.line_friction = (fsi_real)0.1; /* swings, but settles sooner */
        m = membrane_make(&d);
        for (i = 0; i < 300 && membrane_step(m, 0.008); i++) continue;
        for (i = 0; i < m->front->vertex_count; i++) {
            const double x = (double)m->front->position[i].x / MEMBRANE_DX,
                y = (double)m->front->position[i].y / MEMBRANE_DX;
            if (x < 1e-6) side[0] = fmax(side[0], y);
            if (x > n - 1e-3) side[1] = fmax(side[1], y);
            if (fabs(x - n / 2) < 0.4 && y > 1) middle = y;
        }
        for (i = 0; i < 2; i++) CHECK_NEAR(side[i] - middle, want, 0.05 * fabs(want) + 0.02);
        CHECK(m->stats.max_speed <= 0.05 * sqrt(MEMBRANE_SIGMA / (MEMBRANE_RHO * l * MEMBRANE_DX)));
        fsi_membrane_destroy(m);
        front_free(&s);
    }
}

/* The same drop on each wall of the box spreads as fast, and is pulled by its own wall alone. */
static void test_all_walls_are_alike(void)
{
    int dim, side, i, k;
    for (dim = 2; dim <= 3; dim++) {
        double first = 0;
        for (side = 0; side < 2 * dim; side++) {
            fsi_context c = fsi_default_context();
            front_shape s = { 2, 0, 0, NULL, NULL };
            fsi_membrane_desc d;
            fsi_membrane *m;
            double most = 0, edge = 14 * MEMBRANE_DX;
            s.dim = dim;
            membrane_add_cap(&s, 7, 7, 4, FSI_PI / 2);
            for (i = 0; i < s.vertices; i++) { /* axes in turn, then the mirror image */
                const fsi_vec3 p = s.x[i];
                const double x = (double)p.x, y = (double)p.y, z = (double)p.z;
                const int axis = side / 2;
                s.x[i] = dim == 2 ? axis == 1 ? p : front_v3(y, edge - x, 0)
                    : axis == 2 ? p : axis == 0 ? front_v3(z, x, y) : front_v3(y, z, x);
                if (side & 1) s.x[i] = front_v3(edge - (double)s.x[i].x, edge - (double)s.x[i].y,
                    dim == 3 ? edge - (double)s.x[i].z : 0);
            }
            for (i = 0; i < s.elements && side & 1 && dim == 3; i++) { /* a mirror turns triangles */
                const int one = s.corner[3 * i];
                s.corner[3 * i] = s.corner[3 * i + 1];
                s.corner[3 * i + 1] = one;
            }
            d = membrane_desc(&c, &s, 14);
            for (k = 0; k < 6; k++) d.wall_angle[k] = 120;
            d.wall_angle[side] = 60;
            m = membrane_make(&d);
            for (k = 0; k < 5 && membrane_step(m, 0.004); k++) continue;
            for (i = 0; i < m->front->vertex_count; i++)
                for (k = 0; k < dim; k++) /* how far from the middle, along the wall */
                    if (k != side / 2)
                        most = fmax(most, fabs((double)fsi__axis(m->front->position[i], k) / MEMBRANE_DX - 7));
            if (side == 0) first = most;
            CHECK(most > 4.5);
            CHECK_NEAR(most, first, 0.02 * first);
            fsi_membrane_destroy(m);
            front_free(&s);
        }
    }
}

/* In 3D: part of a ball. */
static void test_drops_come_to_their_angles_in_3d(void)
{
    static const double to[] = { 60, 120, 90 };
    int k, i;
    for (k = 0; k < (TEST_SLOWED ? 1 : 3); k++) {
        fsi_context c = fsi_default_context();
        front_shape s = { 3, 0, 0, NULL, NULL };
        fsi_membrane_desc d;
        fsi_membrane *m;
        double high, wide, volume;
        membrane_add_cap(&s, 7.1, 7.2, 4, (k == 2 ? 75 : 90) * DEGREES);
        d = membrane_desc(&c, &s, 14);
        d.n[2] = 9;
        d.wall_angle[4] = (fsi_real)to[k];
        m = membrane_make(&d);
        volume = m->stats.volume;
        for (i = 0; i < 40 && membrane_step(m, 0.004); i++) continue;
        wide = wide_and_high(m, &high);
        CHECK_NEAR(2 * atan(high / wide) / DEGREES, to[k], 3);
        CHECK(m->stats.kinetic_energy <= 1e-3 * MEMBRANE_SIGMA * FSI_PI * 16 * MEMBRANE_DX * MEMBRANE_DX);
        CHECK_NEAR(m->stats.volume, volume, TOL(1e-9, 1e-5) * volume);
        front_check_sound(m->front);
        fsi_membrane_destroy(m);
        front_free(&s);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN_PHYSICS(test_drops_come_to_their_angles);
    RUN_PHYSICS(test_puddles_come_to_their_angles);
    RUN(test_pools_climb_their_walls);
    RUN(test_all_walls_are_alike);
    RUN_PHYSICS(test_drops_come_to_their_angles_in_3d);
    return TEST_END();
}
