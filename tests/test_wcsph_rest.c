/* test_wcsph_rest.c - liquid that comes to rest, leaves walls and carries waves.
   SPDX-License-Identifier: MIT

   Small siblings of the runs of studies/wcsph/rest_and_waves.c, in the plane. */
#include "kit/test_wcsph.h"

/* Liquid that fills (0, 0) to (length, high) in a tank `wide` by `tall` with free slip. */
static fsi_wcsph *make_tank(double dx, double length, double high, double wide, double tall, double alpha)
{
    fsi_wcsph_desc d = make_desc(2, dx);
    fsi_wcsph *s;
    d.domain = box3(0, 0, 0, wide, tall, 0);
    d.depth = (fsi_real)high;
    d.alpha = (fsi_real)alpha;
    s = make_wcsph(&d);
    fill(s, box3(0, 0, 0, length, high, 0), v3(0, 0, 0));
    CHECK(fsi_wcsph_settle_density(s, v3(0, high, 0)) == FSI_OK);
    return s;
}

static double mean_of(const fsi_wcsph *s, int axis)
{
    double sum = 0;
    int i;
    for (i = 0; i < s->count; i++) sum += (double)(axis ? s->position[i].y : s->position[i].x);
    return sum / s->count;
}

/* A broken column: once the liquid is at rest no file of particles stands at a wall. */
static void test_no_wall_of_water_is_left_standing(void)
{
    const double dx = 0.02, level = 0.2 * 0.4;
    fsi_wcsph *s = make_tank(dx, 0.2, 0.4, 1, 2, 0.1);
    double top = 0;
    int step, i;
    for (step = 0; step < 900 && step_ok(s, 5e-3); step++) {}
    for (i = 0; i < s->count; i++) top = fmax(top, (double)s->position[i].y);
    printf("      highest particle %.2f dx over the pool\n", (top - level) / dx);
    CHECK(top <= level + 3 * dx);
    CHECK(s->stats.kinetic_energy <= 1e-3 * 1000 * 9.81 * level);
    fsi_wcsph_destroy(s);
}

/* A deep pool: the first layer is spaced like the bulk, the surface stays, the pressure is that of the weight. */
static void test_a_pool_keeps_its_level_and_its_first_layer(void)
{
    const int n = 16;
    const double dx = 1.0 / n;
    fsi_wcsph *s = make_tank(dx, 1, 1, 1, 1.5, 0.1);
    double level = 0, p = 0, want = 0, first = 0;
    int step, i, count = 0;
    for (step = 0; step < 800 && step_ok(s, 5e-3); step++) {
        if (step < 600) continue;
        count++;
        level += 2 * mean_of(s, 1);
        for (i = 0; i < s->count; i++) {
            const double y = (double)s->position[i].y;
            first += y < dx;
            if (y < 0.2 || y > 0.8) continue;
            p += (double)s->pressure[i];
            want += 9810 * (1 - y);
        }
    }
    printf("      level %.4f, pressure %.4f of rho g h, first layer %.3f of a lattice's\n", level / count, p / want,
           first / (count * n));
    CHECK_NEAR(level / count, 1, 0.01);
    CHECK_NEAR(p / want, 1, 0.03);
    CHECK_NEAR(first / (count * n), 1, 0.16); /* without a share of the floor in the density: 1.3 */
    fsi_wcsph_destroy(s);
}

/* A shaken lattice settles; then it stays as it is: neither is it packed closer, nor do particles change places. */
static void test_a_shaken_pool_stops_sinking(void)
{
    const int n = 12;
    const double dx = 1.0 / n;
    fsi_wcsph *s = make_tank(dx, 1, 1, 1, 1.5, 0.1);
    double early = 0, late = 0, most = 0;
    int step, i;
    for (i = 0; i < s->count; i++) {
        const double x = 2 * fmod(0.7548776662 * i, 1) - 1, y = 2 * fmod(0.5698402910 * i, 1) - 1;
        s->position[i] = fsi_v3_add(s->position[i], v3(0.1 * dx * x, 0.1 * dx * y, 0));
    }
    CHECK(fsi_wcsph_settle_density(s, v3(0, 1, 0)) == FSI_OK);
    for (step = 0; step < 600 && step_ok(s, 1.0 / 60); step++) {
        if (step == 240) early = 2 * mean_of(s, 1);
        if (step > 360) most = fmax(most, s->stats.kinetic_energy / 9810);
    }
    late = 2 * mean_of(s, 1);
    printf("      level %.5f after 4 s, %.5f after 10 s, energy %.1e\n", early, late, most);
    CHECK_NEAR(late, early, 1e-3);
    CHECK_NEAR(late, 1, 0.015);
    CHECK(most <= 3e-6);
    fsi_wcsph_destroy(s);
}

/* SUMMATION_WALL: the first layer at a wall is as dense as the liquid within, in the plane and in space. */
static void test_layers_behind_walls_make_up_for_missing_neighbours(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        const double dx = 0.1, packed = 0.97;
        fsi_wcsph_desc d = make_desc(dim, dx);
        fsi_wcsph *s;
        double least = 9, most = 0;
        int i;
        d.density_mode = FSI_WCSPH_SUMMATION_WALL;
        d.gravity = v3(0, 0, 0);
        d.speed = 1;
        d.domain = box3(0, 0, 0, 0.8, 0.8, dim == 3 ? 0.8 : 0);
        s = make_wcsph(&d);
        fill(s, box3(0, 0, 0, 0.8, 0.8, dim == 3 ? 0.8 : 0), v3(0, 0, 0));
        for (i = 0; i < s->count; i++) /* closer along x, away from the walls there */
            s->position[i].x = (fsi_real)(0.4 + packed * ((double)s->position[i].x - 0.4));
        CHECK(step_ok(s, 1e-9));
        for (i = 0; i < s->count; i++) {
            const fsi_vec3 x = s->position[i];
            if (fabs((double)x.x - 0.4) > 0.1 || fabs((double)x.y - 0.4) < 0.1) continue;
            if (dim == 3 && fabs((double)x.z - 0.4) > 0.1) continue;
            least = fmin(least, (double)s->density[i] / 1000);
            most = fmax(most, (double)s->density[i] / 1000);
        }
        printf("      %dD: %.4f to %.4f of the density at rest\n", dim, least, most);
        CHECK(least > 1.015 && most < 1.045); /* 1 / 0.97; half the layers: 1.00, where densities end below */
        fsi_wcsph_destroy(s);
    }
}

/* First standing mode, 0.05 m high, in 1 x 0.5 m: what a period leaves of the way of the centre of mass. */
static void test_a_standing_wave_comes_back(void)
{
    const double k = FSI_PI, deep = 0.5, high = 0.05, period = 2 * FSI_PI / sqrt(9.81 * k * tanh(k * deep));
    fsi_wcsph *s = make_tank(1.0 / 32, 1, deep, 1, 1.2, 0.02);
    double start, most = 0;
    int step, i;
    for (i = 0; i < s->count; i++) {
        const double x = k * (double)s->position[i].x, y = k * (double)s->position[i].y, per = high / sinh(k * deep);
        s->position[i] = fsi_v3_add(s->position[i], v3(-per * cosh(y) * sin(x), per * sinh(y) * cos(x), 0));
    }
    start = mean_of(s, 0) - 0.5;
    for (step = 0; step * 5e-3 < 1.1 * period && step_ok(s, 5e-3); step++)
        if (step * 5e-3 > 0.75 * period) most = fmax(most, (mean_of(s, 0) - 0.5) / start);
    printf("      after a period %.3f\n", most);
    CHECK(most >= 0.76 && most <= 1.02); /* without a share of the walls in the density: 0.67 */
    fsi_wcsph_destroy(s);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN_PHYSICS(test_no_wall_of_water_is_left_standing);
    RUN_PHYSICS(test_a_pool_keeps_its_level_and_its_first_layer);
    RUN_PHYSICS(test_a_shaken_pool_stops_sinking);
    RUN_PHYSICS(test_layers_behind_walls_make_up_for_missing_neighbours);
    RUN_PHYSICS(test_a_standing_wave_comes_back);
    return TEST_END();
}
