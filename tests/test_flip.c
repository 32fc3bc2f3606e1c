/* test_flip.c - physics of fsi_flip.h: free fall, tanks at rest, waves, drops in flight, dams that break, volume.
   SPDX-License-Identifier: MIT */
#include "kit/test_flip.h"

static const char *const transfer_name[2] = { "FLIP", "APIC" };

/* ---- flight ------------------------------------------------------------------------------------------------------ */

/* A drop of several cells, or one particle, falls: v = v0 + g t for every particle, by whatever steps. Velocities of
   the grid are sums in float; what corrects the density of particles at its edge moves them a little. */
static void check_fall(int dim, fsi_flip_transfer transfer, int drop, double volume_rate, double tolerance)
{
    fsi_flip_desc d = make_desc(dim, 16);
    fsi_flip *s;
    double worst = 0, speed;
    int i, step;
    d.transfer = transfer;
    d.volume_rate = (fsi_real)volume_rate;
    s = make_flip(&d);
    if (drop)
        CHECK(fsi_flip_fill_sphere(s, in_room(dim, 0.5, 0.75, 0.5), (fsi_real)0.15, v3(0.1, 0, 0), NULL) == FSI_OK);
    else add_one(s, in_room(dim, 0.512, 0.733, 0.52), v3(0.1, 0, 0));
    for (step = 0; step < 10; step++) step_ok(s, step < 5 ? 1.0 / 60 : 1.0 / 40);
    speed = 9.81 * s->time;
    for (i = 0; i < s->count; i++) {
        const fsi_vec3 v = s->velocity[i];
        worst = fmax(worst, fabs((double)v.x - 0.1));
        worst = fmax(worst, fabs(height_of(dim, v) + speed));
        worst = fmax(worst, fabs((double)(dim == 2 ? v.z : v.y)));
    }
    printf("      %dD, %s, %d particles: off by %.2g of %.3g m/s\n", dim, transfer_name[transfer], s->count, worst,
        speed);
    CHECK(worst <= tolerance * speed);
    fsi_flip_destroy(s);
}

static void test_free_fall_is_exact(void)
{
    int dim, transfer;
    for (dim = 2; dim <= 3; dim++)
        for (transfer = 0; transfer < 2; transfer++) {
            check_fall(dim, (fsi_flip_transfer)transfer, 0, 0.1, TOL(1e-12, 1e-5));
            check_fall(dim, (fsi_flip_transfer)transfer, 1, 0, 1e-5);
            check_fall(dim, (fsi_flip_transfer)transfer, 1, 0.1, 1e-3);
        }
}

static fsi_vec3 wind(void *user, fsi_vec3 x, double time)
{
    (void)user;
    return v3((double)x.x < 0.5 ? 2 : -3, 0, (double)x.x < 0.5 ? 6 * time : 0);
}

/* The host's acceleration acts at each particle, at the middle of the substep. */
static void test_acceleration_is_of_place_and_time(void)
{
    fsi_flip_desc d = make_desc(3, 16);
    fsi_flip *s;
    int step;
    d.gravity = v3(0, 1, 0);
    d.acceleration = wind;
    s = make_flip(&d);
    add_one(s, v3(0.2, 0.5, 0.5), v3(0, 0, 0));
    add_one(s, v3(0.9, 0.5, 0.5), v3(0, 0, 0));
    for (step = 0; step < 10; step++) {
        step_ok(s, 0.03);
        CHECK_NEAR(s->stats.external_impulse[0], -0.03 * (double)s->particle_mass,
            TOL(1e-12, 1e-5) * (double)s->particle_mass);
    }
    CHECK(fsi_v3_norm(fsi_v3_sub(s->velocity[0], v3(0.6, 0.3, 0.27))) <= TOL((fsi_real)1e-12, (fsi_real)1e-5));
    CHECK(fsi_v3_norm(fsi_v3_sub(s->velocity[1], v3(-0.9, 0.3, 0))) <= TOL((fsi_real)1e-12, (fsi_real)1e-5));
    CHECK_NEAR(s->time, 0.3, TOL(1e-12, 1e-6));
    fsi_flip_destroy(s);
}

/* Sum of m v, of m (x cross v)_z about the centre of mass, and of m |v|. */
static void momenta(const fsi_flip *s, double p[3], double *spin, double *size)
{
    double c[3] = { 0, 0, 0 }, mass = 0;
    int i, k;
    memset(p, 0, 3 * sizeof *p);
    *spin = *size = 0;
    for (i = 0; i < s->count; i++) {
        const double m = (double)s->mass[i] * (double)s->particle_mass;
        const double x[3] = { (double)s->position[i].x, (double)s->position[i].y, (double)s->position[i].z };
        const double v[3] = { (double)s->velocity[i].x, (double)s->velocity[i].y, (double)s->velocity[i].z };
        for (k = 0; k < 3; k++) p[k] += m * v[k], c[k] += m * x[k];
        *spin += m * (x[0] * v[1] - x[1] * v[0]);
        *size += m * (double)fsi_v3_norm(s->velocity[i]);
        mass += m;
    }
    *spin -= (c[0] * p[1] - c[1] * p[0]) / mass;
}

/* A drop that turns about z by a quarter while it crosses the box, no gravity: momentum is kept to rounding, angular
   momentum nearly. */
static void check_flight(int dim, fsi_flip_transfer transfer, double dt)
{
    fsi_flip_desc d = make_desc(dim, dim == 2 ? 32 : 20);
    fsi_flip *s;
    const double rate = 3;
    double p0[3], p[3], spin0, spin, size;
    int i, k, step;
    d.gravity = v3(0, 0, 0);
    d.transfer = transfer;
    s = make_flip(&d);
    CHECK(fsi_flip_fill_sphere(s, in_room(dim, 0.4, 0.5, 0.5), (fsi_real)0.2, v3(0, 0, 0), NULL) == FSI_OK);
    for (i = 0; i < s->count; i++)
        s->velocity[i] = v3(0.2 - rate * ((double)s->position[i].y - 0.5), rate * ((double)s->position[i].x - 0.4), 0);
    momenta(s, p0, &spin0, &size);
    for (step = 0; step * dt < 0.5 * PI / rate; step++) step_ok(s, dt);
    momenta(s, p, &spin, &size);
    printf("      %dD, %s, dt %.3g: momentum %.2g %.2g %.2g, angular momentum %.2g\n", dim, transfer_name[transfer], dt,
        (p[0] - p0[0]) / size, (p[1] - p0[1]) / size, (p[2] - p0[2]) / size, spin / spin0 - 1);
    for (k = 0; k < 3; k++) {
        CHECK_NEAR(p[k], p0[k], TOL(1e-10, 1e-5) * size);
        CHECK_NEAR(s->stats.momentum[k], p[k], TOL(1e-12, 1e-6) * size);
        CHECK_NEAR(s->stats.wall_impulse[k], 0, 0);
    }
    CHECK_NEAR(spin, spin0, 1e-3 * spin0);
    fsi_flip_destroy(s);
}

static void test_a_drop_in_flight_keeps_its_momentum(void)
{
    int transfer;
    for (transfer = 0; transfer < 2; transfer++) {
        check_flight(2, (fsi_flip_transfer)transfer, 1.0 / 240);
        check_flight(2, (fsi_flip_transfer)transfer, 1.0 / 60);
    }
    check_flight(3, FSI_FLIP_FLIP, 1.0 / 60);
}

/* ---- rest -------------------------------------------------------------------------------------------------------- */

static fsi_flip *make_tank(int dim, int n, double level, fsi_flip_transfer transfer)
{
    fsi_flip_desc d = make_desc(dim, n);
    fsi_flip *s;
    d.transfer = transfer;
    s = make_flip(&d);
    fill(s, room(dim, 0, 0, 1, level, 1), v3(0, 0, 0));
    return s;
}

/* Kinetic energy over rho g H V. */
static double unrest(const fsi_flip *s, double level)
{
    return s->stats.kinetic_energy / (1000 * 9.81 * level * level);
}

/* A lattice stays where it is; nearly so where its surface lies at the centres of cells. */
static void test_a_lattice_at_rest_stays(void)
{
    static const double level[2] = { 0.5, 0.47 };
    int dim, transfer, k, i, step;
    for (dim = 2; dim <= 3; dim++)
        for (transfer = 0; transfer < 2; transfer++)
            for (k = 0; k < 2; k++) {
                fsi_flip *s = make_tank(dim, dim == 2 ? 16 : 8, level[k], (fsi_flip_transfer)transfer);
                double energy = 0, moved = 0;
                const int count = s->count;
                fsi_vec3 *start = (fsi_vec3 *)malloc((size_t)count * sizeof *start);
                memcpy(start, s->position, (size_t)count * sizeof *start);
                for (step = 0; step < 60; step++) {
                    if (!step_ok(s, 1.0 / 60)) break;
                    energy = fmax(energy, unrest(s, level[k]));
                }
                for (i = 0; i < count; i++)
                    moved = fmax(moved, (double)fsi_v3_norm(fsi_v3_sub(s->position[i], start[i])));
                printf("      %dD, %s, level %g: energy up to %.2g, moved by %.2g dx\n", dim, transfer_name[transfer],
                    level[k], energy, moved / (double)s->desc.dx);
                CHECK(energy <= (k == 0 ? 1e-8 : 3e-6) && moved <= (k == 0 ? 1e-3 : 0.1) * (double)s->desc.dx);
                free(start);
                fsi_flip_destroy(s);
            }
}

/* A jittered lattice comes to rest: kinetic energy, level, volume, pressure and weight. */
static void check_rest(int dim, int n, double level, double dt, fsi_flip_transfer transfer, double seconds)
{
    fsi_flip *s = make_tank(dim, n, level, transfer);
    const double H = rest_volume(s), weight = 9.81 * total_mass(s);
    const int steps = (int)(seconds / dt + 0.5);
    double energy = 0, force = 0, height = 0, volume = 0, press = 0, share = 0;
    int step, k, samples = 0;
    jitter(s, 0.4);
    for (step = 0; step < steps; step++) {
        fsi_vec3 f;
        if (!step_ok(s, dt)) break;
        if (step < steps * 4 / 5) continue;
        energy = fmax(energy, unrest(s, H));
        CHECK(fsi_flip_obstacle_reaction(s, -1, &f, NULL) == FSI_OK);
        force -= height_of(dim, f);
        height += 2 * mean_height(s);
        volume += s->stats.volume;
        samples++;
    }
    for (k = 1; k <= 8; k++) {
        const double h = H * k / 10;
        const double p = (double)fsi_flip_pressure_at(s, in_room(dim, 0.5, h, 0.5));
        press = fmax(press, fabs(p / (1000 * 9.81 * H) - (1 - h / H)));
    }
    share = 1.0 / samples;
    printf(
        "      %dD, n %d, %s, level %g, dt 1/%.0f: energy %.2g, height %.4f, volume %.4f, weight %.4f, pressure off by "
        "%.4f\n", dim, n, transfer_name[transfer], level, 1 / dt, energy, height * share / H, volume * share / H,
        force * share / weight, press);
    CHECK(energy <= 3e-5);
    CHECK_NEAR(height * share, H, 0.03 * H);
    CHECK_NEAR(volume * share, H, 0.03 * H);
    CHECK_NEAR(force * share, weight, 0.02 * weight);
    CHECK(press <= 0.02);
    CHECK(fsi_flip_count_inside(s, NULL) == 0 && s->stats.degraded == 0);
    fsi_flip_destroy(s);
}

static void test_a_jittered_tank_comes_to_rest(void)
{
    static const double dt[3] = { 1.0 / 24, 1.0 / 60, 1.0 / 240 }, seconds[3] = { 5, 5, 2.5 }, level[2] = { 0.5, 0.47 };
    int k, transfer;
    for (transfer = 0; transfer < 2; transfer++)
        for (k = 0; k < 3; k++) check_rest(2, 32, level[(k + transfer) % 2], dt[k], (fsi_flip_transfer)transfer,
            seconds[k]);
    check_rest(3, 16, 0.5, 1.0 / 60, FSI_FLIP_FLIP, 2);
}

/* ---- waves ------------------------------------------------------------------------------------------------------- */

/* The first standing mode of a tank 1 m wide and h deep, amplitude A: period 2 pi/sqrt(g k tanh(k h)), k = pi. Energy:
   the squares of the extremes of sum cos(k x). */
static void check_wave(int n, fsi_flip_transfer transfer, double dt, double A, double most_loss)
{
    const double h = 0.5, period = 2 * PI / sqrt(9.81 * PI * tanh(PI * h));
    fsi_flip *s = make_tank(2, n, h, transfer);
    double last = 0, crossing = 0, first = 0, peak = 0, amplitude[16], loss, off;
    int i, count = 0;
    for (i = 0; i < s->count; i++) {
        const double x = (double)s->position[i].x, y = (double)s->position[i].y, c = A / sinh(PI * h);
        s->position[i] = v3(x - c * cosh(PI * y) * sin(PI * x), y + c * sinh(PI * y) * cos(PI * x), 0);
    }
    while (s->time < 4 * period && count < 8) {
        double q = 0;
        if (!step_ok(s, dt)) break;
        for (i = 0; i < s->count; i++) q += cos(PI * (double)s->position[i].x) / s->count;
        peak = fmax(peak, fabs(q));
        if (last != 0 && q * last < 0) {
            crossing = s->time - dt * q / (q - last);
            if (count == 0) first = crossing;
            amplitude[count++] = peak;
            peak = 0;
        }
        last = q;
    }
    if (!CHECK(count >= 6)) return;
    off = 2 * (crossing - first) / (count - 1) / period - 1;
    loss = 1 - pow(amplitude[count - 1] / amplitude[1], 4.0 / (count - 2));
    printf("      %s, dt 1/%.0f, amplitude %g: period off by %.2f %%, energy loss %.1f %% a period\n",
        transfer_name[transfer],
        1 / dt, A, 100 * off, 100 * loss);
    CHECK(fabs(off) <= 0.01);
    CHECK(loss <= most_loss);
    fsi_flip_destroy(s);
}

static void test_a_standing_wave_has_its_period(void)
{
    check_wave(32, FSI_FLIP_FLIP, 1.0 / 60, 0.02, 0.05);
    check_wave(32, FSI_FLIP_APIC, 1.0 / 60, 0.02, 0.05);
    check_wave(32, FSI_FLIP_FLIP, 1.0 / 240, 0.02, 0.05);
}

/* ---- dams and volume ------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The farthest x, but for four particles of spray. */
static double front(const fsi_flip *s)
{
    double *x = (double *)malloc((size_t)s->count * sizeof *x), at;
    int i;
    for (i = 0; i < s->count; i++) x[i] = (double)s->position[i].x;
    qsort(x, (size_t)s->count, sizeof *x, by_size);
    at = x[4] + 0.5 * (double)s->spacing;
    free(x);
    return at;
}

/* A column of height 2 runs out: Martin and Moyce (1952), n^2 = 2, a = 1: front over T = t sqrt(2 g/a), counted from
   where it is at 1.44 at 1.19. */
static void check_dam(fsi_flip_transfer transfer)
{
    static const double where[4] = { 1.44, 2.11, 3.00, 3.67 }, when[4] = { 1.19, 1.82, 2.50, 2.96 };
    fsi_flip_desc d = make_desc(2, 64);
    fsi_flip *s;
    double shift = 0, before = 1, then = 0;
    int k = 0, n;
    d.n[1] = 36;
    d.dx = (fsi_real)(1.0 / 16);
    d.transfer = transfer;
    s = make_flip(&d);
    fill(s, box3(0, 0, 0, 1, 2, 0), v3(0, 0, 0));
    for (n = 0; n < 200 && k < 4; n++) {
        double time, x;
        if (!step_ok(s, 0.01)) break;
        time = s->time * sqrt(2 * 9.81);
        x = front(s);
        for (; k < 4 && x >= where[k]; k++) {
            const double at = then + (time - then) * (where[k] - before) / (x - before);
            if (k == 0) shift = at - when[0];
            printf("      %s: front at %.2f at T %.3f, measured %.2f\n", transfer_name[transfer], where[k], at - shift,
                when[k]);
            CHECK_NEAR(at - shift, when[k], 0.08 * when[k]);
        }
        before = x;
        then = time;
    }
    CHECK(k == 4);
    CHECK_NEAR(s->stats.volume, rest_volume(s), 0.05 * rest_volume(s));
    fsi_flip_destroy(s);
}

static void test_a_breaking_dam_runs_as_in_the_experiment(void)
{
    check_dam(FSI_FLIP_FLIP);
    check_dam(FSI_FLIP_APIC);
}

/* A dam that has broken and come to rest takes the volume that it had. */
static void check_volume(int dim, int n, fsi_flip_transfer transfer)
{
    fsi_flip_desc d = make_desc(dim, n);
    const double wide = dim == 3 ? 0.5 : 1;
    fsi_flip *s;
    double most = 0;
    int step;
    d.transfer = transfer;
    if (dim == 3) d.n[1] = n / 2;
    s = make_flip(&d);
    fill(s, room(dim, 0, 0, 0.4, 0.7, wide), v3(0, 0, 0));
    for (step = 0; step < 300; step++) {
        if (!step_ok(s, 1.0 / 60)) break;
        if (step > 120) calm(s, 0.97);
        most = fmax(most, fabs(s->stats.volume / rest_volume(s) - 1));
    }
    printf("      %dD, %s: volume %.4f (off by up to %.3f on the way), height %.4f\n", dim, transfer_name[transfer],
        s->stats.volume / rest_volume(s), most, 2 * mean_height(s) * wide / rest_volume(s));
    CHECK_NEAR(s->stats.volume, rest_volume(s), 0.03 * rest_volume(s));
    CHECK_NEAR(2 * mean_height(s) * wide, rest_volume(s), 0.03 * rest_volume(s));
    CHECK(fsi_flip_count_inside(s, NULL) == 0);
    fsi_flip_destroy(s);
}

static void test_a_dam_comes_to_rest_at_its_volume(void)
{
    check_volume(2, 32, FSI_FLIP_FLIP);
    check_volume(2, 32, FSI_FLIP_APIC);
    check_volume(3, 16, FSI_FLIP_FLIP);
}

/* A lattice 0.9 spacings wide in a tank: it is too dense, and expands. */
static void test_squeezed_liquid_expands(void)
{
    int dim, i, step;
    for (dim = 2; dim <= 3; dim++) {
        const int n = dim == 2 ? 32 : 12;
        fsi_flip *s = make_tank(dim, n, 0.5, FSI_FLIP_FLIP);
        const double volume = rest_volume(s);
        for (i = 0; i < s->count; i++) {
            if (dim == 2) s->position[i].y *= (fsi_real)0.81;
            else s->position[i].z *= (fsi_real)0.729;
        }
        step_ok(s, 1e-3);
        CHECK(s->stats.fill_max > 1.15);
        for (step = 0; step < 180; step++) {
            if (!step_ok(s, 1.0 / 60)) break;
            if (step > 60) calm(s, 0.97);
        }
        printf("      %dD: volume %.4f, height %.4f, fill up to %.3f\n", dim, s->stats.volume / volume,
            2 * mean_height(s) / volume, s->stats.fill_max);
        CHECK_NEAR(s->stats.volume, volume, 0.05 * volume);
        CHECK_NEAR(2 * mean_height(s), volume, 0.05 * volume);
        fsi_flip_destroy(s);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_free_fall_is_exact);
    RUN(test_acceleration_is_of_place_and_time);
    RUN(test_a_drop_in_flight_keeps_its_momentum);
    RUN(test_a_lattice_at_rest_stays);
    RUN_PHYSICS(test_a_jittered_tank_comes_to_rest);
    RUN_PHYSICS(test_a_standing_wave_has_its_period);
    RUN_PHYSICS(test_a_breaking_dam_runs_as_in_the_experiment);
    RUN_PHYSICS(test_a_dam_comes_to_rest_at_its_volume);
    RUN_PHYSICS(test_squeezed_liquid_expands);
    return TEST_END();
}
