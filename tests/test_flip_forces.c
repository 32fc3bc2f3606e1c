/* test_flip_forces.c - what fsi_flip.h can do beside flowing: viscosity, surface tension, particles that
   split and merge, foam, the surface as a mesh.
   SPDX-License-Identifier: MIT */
#include "kit/test_flip.h"
#include "../fsi_sph.h"
#include "../fsi_surface.h"

/* ---- viscosity ---------------------------------------------------------------------------------------------------- */

enum { CHANNEL, FILM, PLATES };
static const char *const flow_name[3] = { "channel", "film", "plates" };

/* Liquid of nu = 1 m^2/s falls between the walls of a box 1 m wide, along one of them that it covers by half, or between
   plates that are no faces of the grid. From rest, with x over the distance of what it sticks to (a film: twice its
   depth):

      u = g L^2/2 (x (1 - x) - 8/pi^3 sum_odd sin(n pi x)/n^3 exp(-n^2 pi^2 t/L^2)) */
static double falling(double g, double L, double x, double t)
{
    double u = x * (1 - x);
    int n;
    for (n = 1; n < 40; n += 2)
        u -= 8 / (PI * PI * PI) * sin(n * PI * x) / (n * n * n) * exp(-n * n * PI * PI * t / (L * L));
    return 0.5 * g * L * L * u;
}

static void check_falling(int kind, fsi_flip_transfer transfer, int across, double tolerance)
{
    const int n = 24, high = 8;
    const double lo = kind == PLATES ? 0.113 : 0, hi = kind == PLATES ? 0.891 : 1, end = kind == FILM ? 0.5 : hi;
    const double g = 4, dt = 0.01, seconds = 0.16, L = kind == PLATES ? hi - lo : 1;
    fsi_flip_desc d = make_desc(2, n);
    fsi_mesh *m[2] = { NULL, NULL };
    fsi_flip *s;
    double worst = 0, sum[24], mass[24], most = 0;
    int i, k;
    d.n[1 - across] = high * n;
    d.gravity = across == 0 ? v3(0, -g, 0) : v3(-g, 0, 0);
    d.viscosity = 1000;
    d.transfer = transfer;
    s = make_flip(&d);
    for (k = 0; k < 2 && kind == PLATES; k++) {
        m[k] = across == 0 ? make_block(2, 0.5, 10, 1) : make_block(2, 10, 0.5, 1);
        mesh_to(m[k], across == 0 ? pose_at(2, k ? hi + 0.5 : lo - 0.5, 4, 0) : pose_at(2, 4, k ? hi + 0.5 : lo - 0.5, 0));
        add_solid(s, m[k], NULL);
    }
    fill(s, across == 0 ? box3(0, 1.5, 0, end, 7, 0) : box3(1.5, 0, 0, 7, end, 0), v3(0, 0, 0));
    while (s->time < seconds - 1e-9 && step_ok(s, dt)) {}

    /* Mean velocity of the particles in slices of a cell, two metres from the ends. */
    memset(sum, 0, sizeof sum);
    memset(mass, 0, sizeof mass);
    for (i = 0; i < s->count; i++) {
        const double x = (double)(across == 0 ? s->position[i].x : s->position[i].y);
        const double y = (double)(across == 0 ? s->position[i].y : s->position[i].x);
        const double u = -(double)(across == 0 ? s->velocity[i].y : s->velocity[i].x);
        if (y < 3.5 || y > 5 || x < lo + 1.0 / n || x > end - 1.0 / n) continue;
        k = (int)(x * n);
        sum[k] += u - falling(g, L, (x - lo) / L, s->time);
        mass[k] += 1;
    }
    most = falling(g, L, 0.5, s->time);
    for (k = 0; k < n; k++)
        if (mass[k] > 0) worst = fmax(worst, fabs(sum[k] / mass[k]) / most);
    printf("      %s, %s, across %c: off by %.2g of %.3g m/s\n", flow_name[kind],
        transfer == FSI_FLIP_APIC ? "APIC" : "FLIP", "xy"[across], worst, most);
    CHECK(worst <= tolerance && s->stats.degraded == 0 && s->stats.viscosity_iters > 0);
    fsi_flip_destroy(s);
    for (k = 0; k < 2; k++) fsi_mesh_destroy(m[k]);
}

static void test_viscous_liquid_falls_by_its_profile(void)
{
    check_falling(CHANNEL, FSI_FLIP_FLIP, 0, 0.03);
    check_falling(CHANNEL, FSI_FLIP_APIC, 1, 0.03);
    check_falling(FILM, FSI_FLIP_FLIP, 0, 0.03);
    check_falling(FILM, FSI_FLIP_APIC, 0, 0.03);
    check_falling(PLATES, FSI_FLIP_FLIP, 0, 0.03);
    check_falling(PLATES, FSI_FLIP_APIC, 1, 0.03);
}

/* Along walls and plates where it slides it falls freely. */
static void test_liquid_slides_where_it_is_told(void)
{
    int plates, i, step;
    for (plates = 0; plates < 2; plates++) {
        fsi_flip_desc d = make_desc(2, 16);
        fsi_flip_obstacle_desc o = fsi_flip_default_obstacle_desc();
        fsi_mesh *m = make_block(2, 0.5, 10, 1);
        fsi_flip *s;
        double worst = 0;
        d.n[1] = 64;
        d.viscosity = 1000;
        memset(d.no_slip, 0, sizeof d.no_slip);
        s = make_flip(&d);
        mesh_to(m, pose_at(2, 0.277 - 0.5, 2, 0));
        o.mesh = m;
        o.no_slip = 0;
        if (plates) CHECK(fsi_flip_add_obstacle(s, &o, NULL) == FSI_OK);
        fill(s, box3(0, 1, 0, 1, 3, 0), v3(0, 0, 0));
        for (step = 0; step < 10; step++) step_ok(s, 0.01);
        for (i = 0; i < s->count; i++) worst = fmax(worst, fabs((double)s->velocity[i].y + 0.981));
        printf("      %s: off by %.2g of 0.981 m/s\n", plates ? "plate" : "box", worst);
        CHECK(worst <= (plates ? 0.03 : 0.005));
        fsi_flip_destroy(s);
        fsi_mesh_destroy(m);
    }
}

/* A viscous drop that is thrown and turns, no gravity: its momenta stay; what shears in it dies out. */
static void test_a_viscous_drop_keeps_its_momentum(void)
{
    int dim, i, k, step;
    for (dim = 2; dim <= 3; dim++) {
        fsi_flip_desc d = make_desc(dim, 20);
        fsi_flip *s;
        double p0[3] = { 0, 0, 0 }, p[3] = { 0, 0, 0 }, mass, spin0, spin, size, shear = 0, inertia = 0, turn;
        d.gravity = v3(0, 0, 0);
        d.viscosity = 100;
        s = make_flip(&d);
        CHECK(fsi_flip_fill_sphere(s, in_room(dim, 0.4, 0.5, 0.5), (fsi_real)0.2, v3(0, 0, 0), NULL) == FSI_OK);
        for (i = 0; i < s->count; i++) {
            const double x = (double)s->position[i].x - 0.4, y = (double)s->position[i].y - 0.5;
            s->velocity[i] = v3(0.2 - 3 * y, 3 * x + sin(30 * x), 0);
        }
        step_ok(s, 0);
        for (k = 0; k < 3; k++) p0[k] = s->stats.momentum[k];
        spin0 = s->stats.angular_momentum[2];
        for (step = 0; step < 30; step++) step_ok(s, 0.01);
        for (k = 0; k < 3; k++) p[k] = s->stats.momentum[k];
        spin = s->stats.angular_momentum[2];
        mass = total_mass(s);
        size = sqrt(2 * s->stats.kinetic_energy * mass);

        /* Against the rigid motion that has these momenta; the centre is where momentum took it. */
        for (i = 0; i < s->count; i++) {
            const double x = (double)s->position[i].x - 0.4 - p[0] / mass * 0.3;
            const double y = (double)s->position[i].y - 0.5 - p[1] / mass * 0.3;
            inertia += (x * x + y * y) * mass / s->count;
        }
        turn = (spin - (0.4 + p[0] / mass * 0.3) * p[1] + (0.5 + p[1] / mass * 0.3) * p[0]) / inertia;
        for (i = 0; i < s->count; i++) {
            const double x = (double)s->position[i].x - 0.4 - p[0] / mass * 0.3;
            const double y = (double)s->position[i].y - 0.5 - p[1] / mass * 0.3;
            const double u = (double)s->velocity[i].x - p[0] / mass + turn * y;
            const double v = (double)s->velocity[i].y - p[1] / mass - turn * x;
            shear += (u * u + v * v) / s->count;
        }
        shear = sqrt(shear);
        printf("      %dD: momentum off by %.2g %.2g %.2g, angular %.2g; beside a rigid motion %.2g m/s\n", dim,
            (p[0] - p0[0]) / size, (p[1] - p0[1]) / size, (p[2] - p0[2]) / size, spin / spin0 - 1, shear);
        for (k = 0; k < 3; k++) CHECK_NEAR(p[k], p0[k], TOL(1e-10, 1e-5) * size);
        CHECK_NEAR(spin, spin0, 1e-2 * fabs(spin0));
        CHECK(shear <= 0.1);
        fsi_flip_destroy(s);
    }
}

/* A jittered pool of honey, and one with tension, comes to rest, with its weight on the floor; a crate floats in it. */
static void test_a_pool_rests(void)
{
    int kind, step;
    for (kind = 0; kind < 4; kind++) {
        const int crate = kind & 1, tension = kind >> 1;
        fsi_flip_desc d = make_desc(2, 24);
        fsi_mesh *m = make_block(2, 0.15, 0.1, 1);
        fsi_body body = make_floater(m, 500, 9.81, 2);
        fsi_flip *s;
        double force = 0, weight;
        if (tension) d.surface_tension = 50;
        else d.viscosity = 10;
        s = make_flip(&d);
        body.pose = pose_at(2, 0.5, 0.5, 0);
        mesh_to(m, body.pose);
        if (crate) add_solid(s, m, &body);
        fill(s, box3(0, 0, 0, 1, 0.5, 0), v3(0, 0, 0));
        jitter(s, 0.4);
        weight = 9.81 * total_mass(s) + (crate ? 9.81 * 500 * 0.06 : 0);
        for (step = 0; step < 180; step++) {
            fsi_vec3 f;
            if (!step_ok(s, 1.0 / 60)) break;
            if (crate) fsi_body_accept(&body);
            CHECK(fsi_flip_obstacle_reaction(s, -1, &f, NULL) == FSI_OK);
            if (step >= 120) force -= (double)f.y / 60;
        }
        printf("      %s, %s: energy %.2g, weight %.4f, crate at %.4f\n", tension ? "tension" : "viscosity",
            crate ? "crate" : "pool",
            s->stats.kinetic_energy / (1000 * 9.81 * 0.25), force / weight, (double)body.pose.position.y);
        CHECK(s->stats.kinetic_energy <= 3e-5 * 1000 * 9.81 * 0.25 && s->stats.thinned == 0);
        CHECK_NEAR(force, weight, 0.02 * weight);
        CHECK(!crate || fabs((double)body.pose.position.y - 0.5) <= 0.05);
        fsi_flip_destroy(s);
        fsi_mesh_destroy(m);
    }
}

/* A dam of syrup runs out and comes to rest, layer by layer: nothing boils at its surface, its volume stays. */
static void test_a_viscous_dam_runs_out(void)
{
    int transfer, step;
    for (transfer = 0; transfer < 2; transfer++) {
        fsi_flip_desc d = make_desc(2, 40);
        fsi_flip *s;
        double V, most = 0;
        d.viscosity = 50;
        d.transfer = (fsi_flip_transfer)transfer;
        s = make_flip(&d);
        fill(s, box3(0, 0, 0, 0.4, 0.7, 0), v3(0, 0, 0));
        V = rest_volume(s);
        for (step = 0; step < 240; step++) {
            if (!step_ok(s, 1.0 / 60)) break;
            if (step >= 210) most = fmax(most, s->stats.kinetic_energy / (9810 * V * V));
        }
        printf("      %s: energy %.2g, volume %.4f, mean height %.4f\n", transfer ? "APIC" : "FLIP", most,
            s->stats.volume / V, 2 * mean_height(s) / V);
        CHECK(most < 2e-4);
        CHECK_NEAR(s->stats.volume, V, 0.02 * V);
        fsi_flip_destroy(s);
    }
}

/* ---- surface tension ----------------------------------------------------------------------------------------------- */

enum { FREE, ON_WALL, ON_BLOCK };
static const char *const place_name[3] = { "free", "on a wall", "on a block" };

/* A drop of `cells` cells a radius without gravity, in units of its radius R and of sqrt(gamma/(rho R)); on a wall or a
   block, half of one, which meets it at 90 degrees. */
static fsi_flip *make_drop(int dim, int cells, int place, fsi_flip_transfer transfer, fsi_mesh **block, double *R)
{
    const int n = cells * 10 / 3;
    fsi_flip_desc d = make_desc(dim, n);
    fsi_flip *s;
    const double h = place == FREE ? 0.5 : place == ON_WALL ? 0 : 0.237;
    d.gravity = v3(0, 0, 0);
    d.transfer = transfer;
    d.surface_tension = 1;
    d.max_substeps = 1000;
    s = make_flip(&d);
    *R = (double)cells / n;
    *block = NULL;
    if (place == ON_BLOCK) {
        *block = make_block(dim, 10, 0.5, 10);
        mesh_to(*block, pose_at(dim, 0.5, h - 0.5, 0));
        add_solid(s, *block, NULL);
    }
    CHECK(fsi_flip_fill_sphere(s, in_room(dim, 0.5, h, 0.5), (fsi_real)*R, v3(0, 0, 0), NULL) == FSI_OK);
    return s;
}

static double period_of(int dim, double R)
{
    return 2 * PI / sqrt((dim == 2 ? 6 : 8) / (1000 * R * R * R));
}

/* It rests: pressure gamma (dim - 1)/R within, velocities that do not grow. */
static void check_still(int dim, int cells, int place, double periods, double tolerance)
{
    fsi_mesh *block;
    double R, speed[2] = { 0, 0 }, press = 0, unit;
    fsi_flip *s = make_drop(dim, cells, place, FSI_FLIP_FLIP, &block, &R);
    const double period = period_of(dim, R), h = place == ON_BLOCK ? 0.237 : place == ON_WALL ? 0 : 0.5;
    int step, i, inside = 0;
    unit = sqrt(1 / (1000 * R));
    for (step = 0; step < 20 * periods; step++) {
        double sum = 0;
        if (!step_ok(s, period / 20)) break;
        for (i = 0; i < s->count; i++) sum += (double)fsi_v3_norm2(s->velocity[i]) / s->count;
        if (step > 2) speed[step >= 10 * periods] = fmax(speed[step >= 10 * periods], sqrt(sum) / unit);
    }
    for (i = 0; i < s->count; i++)
        if (fsi_v3_norm(fsi_v3_sub(s->position[i], in_room(dim, 0.5, h, 0.5))) < (fsi_real)(0.6 * R)) {
            press += (double)s->pressure[i];
            inside++;
        }
    press *= R / (dim - 1) / inside;
    printf("      %dD, %d cells, %s: pressure %.4f, speed %.2g, then %.2g\n", dim, cells, place_name[place], press,
        speed[0], speed[1]);
    CHECK_NEAR(press, 1, tolerance);
    CHECK(speed[0] < 0.08 && speed[1] < 0.08 && s->stats.degraded == 0);
    fsi_flip_destroy(s);
    fsi_mesh_destroy(block);
}

static void test_a_drop_rests_under_its_tension(void)
{
    check_still(2, 12, FREE, 1.5, 0.05);
    check_still(2, 6, FREE, 3, 0.06);
    check_still(2, 12, ON_WALL, 1, 0.05);
    check_still(2, 12, ON_BLOCK, 1, 0.08);
    check_still(3, 6, FREE, 0.5, 0.08);
}

/* An ellipse swings: omega^2 = n (n^2 - 1) gamma/(rho R^3), n = 2 (Rayleigh 1879, in the plane). */
static void check_swing(fsi_flip_transfer transfer, double dt)
{
    fsi_mesh *block;
    double R, last = 0, first = 0, at = 0, period;
    fsi_flip *s = make_drop(2, 12, FREE, transfer, &block, &R);
    int i, count = 0;
    period = period_of(2, R);
    for (i = 0; i < s->count; i++)
        s->position[i] = v3(0.5 + 1.1 * ((double)s->position[i].x - 0.5),
            0.5 + ((double)s->position[i].y - 0.5) / 1.1, 0);
    while (count < 3 && s->time < 2 * period) {
        double a = 0, b = 0, q;
        if (!step_ok(s, dt * period)) break;
        for (i = 0; i < s->count; i++) {
            const double x = (double)s->position[i].x - 0.5, y = (double)s->position[i].y - 0.5;
            a += x * x;
            b += y * y;
        }
        q = (a - b) / (a + b);
        if (last * q < 0) {
            at = s->time - dt * period * q / (q - last);
            if (count++ == 0) first = at;
        }
        last = q;
    }
    printf("      %s: period %.4f of theory\n", transfer == FSI_FLIP_APIC ? "APIC" : "FLIP", (at - first) / period);
    CHECK(count == 3);
    CHECK_NEAR(at - first, period, 0.05 * period);
    fsi_flip_destroy(s);
}

static void test_an_ellipse_swings_with_its_period(void)
{
    check_swing(FSI_FLIP_FLIP, 1.0 / 25);
    check_swing(FSI_FLIP_APIC, 1.0 / 25);
}

/* ---- particles that split and merge ------------------------------------------------------------------------------- */

typedef struct sums { double m, c[3], p[3], l[3], size; } sums;

static sums sum_up(const fsi_flip *s)
{
    sums t;
    int i, k;
    memset(&t, 0, sizeof t);
    for (i = 0; i < s->count; i++) {
        const double m = (double)s->mass[i];
        const double x[3] = { (double)s->position[i].x, (double)s->position[i].y, (double)s->position[i].z };
        const double v[3] = { (double)s->velocity[i].x, (double)s->velocity[i].y, (double)s->velocity[i].z };
        t.m += m;
        t.size += m * (double)fsi_v3_norm(s->velocity[i]);
        for (k = 0; k < 3; k++) {
            const int a = (k + 1) % 3, b = (k + 2) % 3;
            t.c[k] += m * x[k];
            t.p[k] += m * v[k];
            t.l[k] += m * (x[a] * v[b] - x[b] * v[a]);
        }
    }
    return t;
}

/* A drop in flight with clumps and gaps: one step keeps mass, momentum, centre and angular momentum; ids grow and are
   never used twice; attributes go on. */
static void check_resampling(int dim, fsi_flip_transfer transfer)
{
    fsi_flip_desc d = make_desc(dim, 20);
    unsigned char *gone;
    uint64_t random = 7;
    fsi_flip *s;
    sums before, after;
    int i, k, count, split = 0, merged = 0, strange = 0, left = 0;
    uint32_t last;
    d.gravity = v3(0, 0, 0);
    d.transfer = transfer;
    d.resample = 1;
    d.attribute_count = 1;
    s = make_flip(&d);
    CHECK(fsi_flip_fill_sphere(s, in_room(dim, 0.5, 0.5, 0.5), (fsi_real)0.3, v3(0, 0, 0), NULL) == FSI_OK);

    /* One particle in a cell, a clump in another. */
    gone = (unsigned char *)calloc((size_t)s->count, 1);
    for (i = 0; i < s->count; i++) {
        const fsi_vec3 off = fsi_v3_sub(s->position[i], in_room(dim, 0.425, 0.525, 0.525));
        gone[i] = fsi__largest_axis(off) < 0.025 && left++ > 0;
    }
    CHECK(fsi_flip_remove_particles(s, gone) == FSI_OK);
    free(gone);
    for (i = 0; i < 25; i++) {
        const fsi_vec3 x = fsi_v3_madd(in_room(dim, 0.626, 0.524, 0.526), (fsi_real)0.02, random_vector(&random, dim));
        add_one(s, x, v3(0, 0, 0));
    }
    for (i = 0; i < s->count; i++) {
        s->velocity[i] = v3(1 - (double)s->position[i].y, (double)s->position[i].x, dim == 3 ? 0.5 : 0);
        s->attribute[i] = (fsi_real)(s->position[i].x < (fsi_real)0.5 ? 1 : 2);
    }

    /* Steps of no length to speak of. */
    before = sum_up(s);
    count = s->count;
    last = s->id[count - 1];
    for (k = 0; k < 30; k++) {
        if (!step_ok(s, 1e-9)) break;
        split += s->stats.split;
        merged += s->stats.merged;
        for (i = 1; i < s->count; i++) strange += s->id[i] <= s->id[i - 1];
        CHECK(s->count == count + s->stats.split - s->stats.merged && s->stats.particles == s->count);
        CHECK(s->stats.split == 0 || s->id[s->count - 1] == last + (uint32_t)s->stats.split);
        count = s->count;
        last = s->id[count - 1] > last ? s->id[count - 1] : last;
    }
    after = sum_up(s);
    for (i = 0; i < s->count; i++) {
        strange += (double)s->mass[i] < 0.125 || (double)s->mass[i] > 4;
        strange += (double)s->attribute[i] != ((double)s->position[i].x < 0.5 ? 1 : 2);
    }
    printf("      %dD: %d split, %d merged; mass off by %.2g, momentum %.2g, angular momentum %.2g\n", dim, split, merged,
        after.m / before.m - 1, (after.p[0] - before.p[0]) / before.size, (after.l[2] - before.l[2]) / before.size);
    CHECK(split > 0 && merged > 5 && strange == 0 && s->stats.split == 0 && s->stats.merged == 0);
    CHECK_NEAR(after.m, before.m, 1e-6 * before.m);
    for (k = 0; k < 3; k++) {
        CHECK_NEAR(after.c[k], before.c[k], 1e-6 * before.m);
        CHECK_NEAR(after.p[k], before.p[k], 1e-6 * before.size);
        CHECK_NEAR(after.l[k], before.l[k], 1e-4 * before.size);
    }
    fsi_flip_destroy(s);
}

static void test_splitting_and_merging_keep_the_sums(void)
{
    check_resampling(2, FSI_FLIP_FLIP);
    check_resampling(2, FSI_FLIP_APIC);
    check_resampling(3, FSI_FLIP_FLIP);
    check_resampling(3, FSI_FLIP_APIC);
}

/* A dam with a budget: mass stays, the budget holds; at rest nothing splits or merges any more. */
static void test_at_rest_nothing_splits(void)
{
    int limited, step;
    for (limited = 0; limited < 2; limited++) {
        fsi_flip_desc d = make_desc(2, 24);
        fsi_flip *s;
        double m;
        int split = 0, late = 0, count;
        d.resample = 1;
        s = make_flip(&d);
        fill(s, box3(0, 0, 0, 0.4, 0.7, 0), v3(0, 0, 0));
        count = s->count;
        m = total_mass(s);
        if (limited) {
            d.max_particles = count;
            CHECK(fsi_flip_set_desc(s, &d) == FSI_OK);
        }
        for (step = 0; step < 400; step++) {
            if (!step_ok(s, 1.0 / 60)) break;
            if (step > 60) calm(s, 0.95);
            split += s->stats.split;
            if (step >= 350) late += s->stats.split + s->stats.merged;
            CHECK(!limited || s->count <= count);
        }
        printf("      budget %d: %d split, %d late; %d particles of %d; volume %.4f, mean height %.4f\n", d.max_particles,
            split, late, s->count, count, s->stats.volume / rest_volume(s), 2 * mean_height(s) / rest_volume(s));
        CHECK(split > 10 && late == 0 && is_finite(s));
        CHECK_NEAR(total_mass(s), m, 1e-5 * m);
        CHECK_NEAR(2 * mean_height(s), rest_volume(s), 0.03 * rest_volume(s));
        fsi_flip_destroy(s);
    }
}

/* ---- drawing ------------------------------------------------------------------------------------------------------ */

/* Markers are those of fsi_sph.h for the same particles. */
static void test_markers_are_those_of_sph(void)
{
    int dim, i, kind, seen[4];
    for (dim = 2; dim <= 3; dim++) {
        fsi_flip_desc d = make_desc(dim, 20);
        fsi_sph_desc e = fsi_sph_default_desc();
        fsi_flip *s;
        fsi_sph *w;
        uint64_t random = 17;
        int wrong = 0;
        d.gravity = e.gravity = v3(0, 0, 0);
        d.markers = e.markers = 1;
        s = make_flip(&d);
        e.dim = dim;
        e.spacing = s->spacing;
        e.support = 2;
        e.xsph = 0;
        CHECK(fsi_flip_fill_sphere(s, in_room(dim, 0.4, 0.4, 0.4), (fsi_real)0.25, v3(0, 0, 0), NULL) == FSI_OK);
        for (i = 0; i < 40; i++)
            add_one(s, fsi_v3_madd(in_room(dim, 0.75, 0.75, 0.7), (fsi_real)0.4, random_vector(&random, dim)),
                v3(0, 0, 0));
        jitter(s, 0.1); /* no neighbours at dx to rounding */
        for (i = 0; i < s->count; i++)
            s->velocity[i] = fsi_v3_madd(v3(1, 1, 0), (fsi_real)3, random_vector(&random, dim));
        CHECK(s->marker[5] == FSI_FLIP_LIQUID && s->aeration[5] == 0);
        step_ok(s, 1e-9);
        CHECK(fsi_sph_create(&w, &e) == FSI_OK);
        CHECK(fsi_sph_add_particles(w, s->position, s->velocity, s->count) == FSI_OK);
        CHECK(fsi_sph_step(w, (fsi_real)1e-9) == FSI_OK);
        memset(seen, 0, sizeof seen);
        for (i = 0; i < s->count; i++) {
            kind = s->marker[i];
            CHECK_NEAR(s->aeration[i], w->aeration[i], 1e-3);
            wrong += kind != (int)w->marker[i];
            seen[kind]++;
        }
        printf("      %dD: %d liquid, %d spray, %d foam, %d bubbles\n", dim, seen[0], seen[1], seen[2], seen[3]);
        CHECK(wrong <= 2 && seen[1] > 5 && seen[2] + seen[3] > 20);
        fsi_sph_destroy(w);
        fsi_flip_destroy(s);
    }
}

/* Where a jet meets a pool there is foam, in the pool far from it none. */
static void test_foam_is_where_water_is_beaten(void)
{
    fsi_flip_desc d = make_desc(2, 40);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_flip *s;
    int i, step, foam = 0, far_away = 0;
    d.markers = 1;
    s = make_flip(&d);
    fill(s, box3(0, 0, 0, 1, 0.25, 0), v3(0, 0, 0));
    for (step = 0; step < 10; step++) step_ok(s, 1.0 / 60);
    for (i = 0; i < s->count; i++) foam += s->marker[i] != FSI_FLIP_LIQUID || s->aeration[i] > 0;
    CHECK(foam == 0);
    e.center = v3(0.15, 0.8, 0);
    e.direction = v3(0, -1, 0);
    e.radius = (fsi_real)0.05;
    e.speed = 3;
    CHECK(fsi_flip_add_emitter(s, &e, NULL) == FSI_OK);
    for (step = 0; step < 15; step++) step_ok(s, 1.0 / 60);
    for (i = 0; i < s->count; i++) {
        foam += s->aeration[i] > (fsi_real)0.05;
        far_away += s->aeration[i] > 0 && s->position[i].x > (fsi_real)0.7;
    }
    printf("      %d of %d particles make foam\n", foam, s->count);
    CHECK(foam > 10 && far_away == 0);
    fsi_flip_destroy(s);
}

/* The surface of a dam that breaks is closed and holds the volume of the liquid. */
static void check_surface(int resample)
{
    fsi_flip_desc d = make_desc(3, 16);
    fsi_surface_desc e = fsi_surface_default_desc();
    fsi_mesh_desc m;
    fsi_mesh *mesh = NULL;
    int step, k;
    fsi_surface *surface;
    fsi_flip *s;
    d.n[1] = 8;
    d.resample = resample;
    s = make_flip(&d);
    fill(s, room(3, 0, 0, 0.5, 0.75, 0.5), v3(0, 0, 0));
    e.spacing = s->spacing;
    CHECK(fsi_surface_create(&surface, &e) == FSI_OK);
    for (step = 0; step < 25; step++) {
        double volume = 0;
        if (!step_ok(s, 1.0 / 60)) break;
        if (step % 8) continue;
        CHECK(fsi_surface_update(surface, s->position, s->count, NULL) == FSI_OK);
        for (k = 0; k < surface->element_count; k++) {
            const int *t = surface->elements + 3 * k;
            volume += (double)fsi_v3_dot(surface->vertices[t[0]],
                fsi_v3_cross(surface->vertices[t[1]], surface->vertices[t[2]])) / 6;
        }
        printf("      resample %d, step %d: %d triangles, volume %.4f of the liquid's\n", resample, step, surface->element_count,
            volume / rest_volume(s));
        CHECK_NEAR(volume, rest_volume(s), 0.05 * rest_volume(s));
    }

    /* A CLOSED mesh is refused unless it is. */
    m = fsi_mesh_default_desc();
    m.kind = FSI_MESH_CLOSED;
    m.vertices = surface->vertices;
    m.vertex_count = surface->vertex_count;
    m.elements = surface->elements;
    m.element_count = surface->element_count;
    CHECK(fsi_mesh_create(&mesh, &m) == FSI_OK);
    fsi_mesh_destroy(mesh);
    fsi_surface_destroy(surface);
    fsi_flip_destroy(s);
}

static void test_the_surface_is_closed_and_holds_the_liquid(void)
{
    check_surface(0);
    check_surface(1);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN_PHYSICS(test_viscous_liquid_falls_by_its_profile);
    RUN(test_liquid_slides_where_it_is_told);
    RUN(test_a_viscous_drop_keeps_its_momentum);
    RUN_PHYSICS(test_a_pool_rests);
    RUN_PHYSICS(test_a_viscous_dam_runs_out);
    RUN_PHYSICS(test_a_drop_rests_under_its_tension);
    RUN_PHYSICS(test_an_ellipse_swings_with_its_period);
    RUN(test_splitting_and_merging_keep_the_sums);
    RUN_PHYSICS(test_at_rest_nothing_splits);
    RUN(test_markers_are_those_of_sph);
    RUN(test_foam_is_where_water_is_beaten);
    RUN(test_the_surface_is_closed_and_holds_the_liquid);
    return TEST_END();
}
