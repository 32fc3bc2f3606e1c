/* validate_sph.c - the liquid against theory, experiment and slow references at full size.
   SPDX-License-Identifier: MIT

   Still tanks, the dam breaks of Martin & Moyce and of Ritter, boundary integrals updated to first order against
   re-evaluated ones, swept points against bisection, growth of cost, no particle inside a solid at any time step, and drops under
   surface tension against Rayleigh, Laplace and Young.
   Prints lines `key value unit`. --res 50 halves the number of particles along each edge; a word (tank, tolerance, martin,
   ritter, boundary, sweep, growth, inside, drop) runs one part; three plots go to --out. MARIN's dam break is examples/dam_break.c. */
#define FSI_IMPLEMENTATION
#include "../examples/kit/kit.h"
#include "../fsi_sph.h"
#include "../tests/kit/test.h"
#include "../tests/kit/test_sph.h"

#define G 9.81

#include "validate.h"
#include "validate_martin.h"

static double along(const fsi_sph *s, int i) { return (double)s->position[i].x; }

static double weight(const fsi_sph *s) { return (double)s->particle_mass * G * s->count; }

/* ---- a still tank ------------------------------------------------------------------------------------------------ */

/* Least squares slope of pressure over height between two heights. */
static double pressure_slope(const fsi_sph *s, double lo, double hi)
{
    double n = 0, sz = 0, sp = 0, szz = 0, szp = 0;
    int i;
    for (i = 0; i < s->count; i++) {
        double z = height(s, i), p = (double)s->pressure[i];
        if (!(z > lo && z < hi)) continue;
        n++;
        sz += z;
        sp += p;
        szz += z * z;
        szp += z * p;
    }
    return (n * szp - sz * sp) / (n * szz - sz * sz);
}

static double first_layer(const fsi_sph *s)
{
    double sum = 0, n = 0, dx = (double)s->desc.spacing;
    int i;
    for (i = 0; i < s->count; i++) {
        if (height(s, i) > dx) continue;
        sum += height(s, i) / dx;
        n++;
    }
    return sum / n;
}

static void plot_tank(const fsi_sph *s)
{
    static double p[20000], z[20000], line_p[2] = { 1000 * G, 0 }, line_z[2] = { 0, 1 };
    ex_plot plot = ex_plot_begin("Pressure in a still tank, 3D, H = 2 dx, after 2 s", "pressure [Pa]", "height [m]");
    int i, n = 0;
    for (i = 0; i < s->count && n < 20000; i += 7) {
        p[n] = (double)s->pressure[i];
        z[n++] = height(s, i);
    }
    ex_plot_series(&plot, "hydrostatic", line_p, line_z, 2, EX_MARK_LINE);
    ex_plot_series(&plot, "every 7th particle", p, z, n, EX_MARK_DOTS);
    ex_plot_save(&app, &plot, "sph_tank.png");
}

/* A metre of water comes to rest in 1.5 s; figures are means over the next half second, or taken at its end. */
static void still_tank(int dim, double support, fsi_sph_velocity how)
{
    double dx = 1.0 / scaled(dim == 2 ? 50 : 25), slope = 0, push = 0, pushed = 0, compression = 0, dt;
    fsi_sph_desc d = make_desc(dim, dx);
    const char *update = how == FSI_SPH_VELOCITY_FORCES ? "forces" : "positions";
    fsi_sph *s;
    int samples = 0, sweeps = 0;
    d.support = (fsi_real)support;
    d.velocity_update = how;
    d.domain = dim == 2 ? box3(0, 0, 0, 1, 1.5, 0) : box3(0, 0, 0, 16 * dx, 16 * dx, 1.5);
    s = make_liquid(&d);
    ex_check(&app, fsi_sph_fill_box(s, dim == 2 ? box3(0, 0, 0, 1, 1, 0) : box3(0, 0, 0, 16 * dx, 16 * dx, 1), v3(0, 0, 0), NULL));
    while (s->time < 2) {
        dt = fmin((double)fsi_sph_suggest_dt(s), 2.0001 - s->time);
        ex_check(&app, fsi_sph_step(s, (fsi_real)dt));
        if (s->time < 1.5) continue;
        slope += pressure_slope(s, 3 * dx, 1 - 4 * dx);
        push += s->stats.wall_impulse[dim - 1];
        pushed += dt;
        compression += s->stats.mean_compression;
        sweeps += s->stats.iterations;
        samples++;
    }
    if (dim == 3 && support < 2.1 && how == FSI_SPH_VELOCITY_POSITIONS) plot_tank(s);
    say(100 * (slope / samples / (-1000 * G) - 1), "%", "tank_%dd_H%g_%s_pressure_slope_error", dim, support, update);
    say(push / pushed / weight(s), "weight", "tank_%dd_H%g_%s_floor_force", dim, support, update);
    say(first_layer(s), "dx", "tank_%dd_H%g_%s_first_layer", dim, support, update);
    say(sqrt(2 * kinetic(s) / ((double)s->particle_mass * s->count)), "m/s", "tank_%dd_H%g_%s_residual_speed", dim, support, update);
    say(100 * compression / samples, "%", "tank_%dd_H%g_%s_mean_compression", dim, support, update);
    say((double)sweeps / samples, "1", "tank_%dd_H%g_%s_sweeps_a_step", dim, support, update);
    fsi_sph_destroy(s);
}

static void run_tank(void)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++) {
        for (k = 0; k < 4; k++) still_tank(dim, k & 1 ? 2.4 : 2.0, k & 2 ? FSI_SPH_VELOCITY_FORCES : FSI_SPH_VELOCITY_POSITIONS);
    }
}

/* What the stop of the sweeps costs and buys: a 3D tank of 20 layers at S = 10, after 3 s. */
static void run_tolerance(void)
{
    static const double tolerance[4] = { 1e-2, 2e-3, 5e-4, 2e-4 };
    double dx = 1.0 / scaled(20), energy = 0;
    int k;
    for (k = 0; k < 4; k++) {
        fsi_sph_desc d = make_desc(3, dx);
        fsi_sph *s;
        int sweeps = 0, steps = 0;
        d.tolerance = (fsi_real)tolerance[k];
        d.domain = box3(0, 0, 0, 10 * dx, 10 * dx, 1.5);
        s = make_liquid(&d);
        ex_check(&app, fsi_sph_fill_box(s, box3(0, 0, 0, 10 * dx, 10 * dx, 1), v3(0, 0, 0), NULL));
        while (s->time < 3) {
            ex_check(&app, fsi_sph_step(s, fsi_sph_suggest_dt(s)));
            if (s->time < 1) energy = s->stats.kinetic_energy + s->stats.potential_energy;
            sweeps += s->stats.iterations;
            steps += s->stats.substeps;
        }
        energy = (s->stats.kinetic_energy + s->stats.potential_energy) / energy - 1;
        say(sqrt(2 * kinetic(s) / ((double)s->particle_mass * s->count)), "m/s", "tolerance_%g_residual_speed", tolerance[k]);
        say(100 * energy, "%", "tolerance_%g_energy_gain_1s_to_3s", tolerance[k]);
        say((double)sweeps / steps, "1", "tolerance_%g_sweeps_a_step", tolerance[k]);
        fsi_sph_destroy(s);
    }
}

/* ---- Martin & Moyce 1952 ----------------------------------------------------------------------------------------- */


enum { CELLS = 4096 };

/* How far the liquid reaches along the floor without a gap of more than 2 dx. */
static double reach(const fsi_sph *s)
{
    static unsigned char filled[CELLS];
    double most = 0, cell = 2 * (double)s->desc.spacing;
    int i, k, last;
    memset(filled, 0, sizeof filled);
    for (i = 0; i < s->count; i++) {
        k = (int)(along(s, i) / cell);
        if (k >= 0 && k < CELLS) filled[k] = 1;
    }
    for (last = 0; last < CELLS - 1 && filled[last + 1]; last++) {}
    for (i = 0; i < s->count; i++)
        if (along(s, i) < (last + 1) * cell && along(s, i) > most) most = along(s, i);
    return most + cell / 4;
}

/* Depth of the water over x - w/2 .. x + w/2 [m]. */
static double depth_at(const fsi_sph *s, double x, double w)
{
    double sum = 0;
    int i;
    for (i = 0; i < s->count; i++) sum += fabs(along(s, i) - x) < w / 2;
    return sum * (double)s->particle_volume / w;
}

static void record_surge(int n2, int across, surge *out)
{
    double dx = MM_A / across, unit = sqrt(MM_A / G), end = n2 == 1 ? 3.6 : 3.3 / sqrt(2.0);
    fsi_sph_desc d = make_desc(2, dx);
    fsi_sph *s;
    int k;
    d.depth = (fsi_real)(n2 * MM_A);
    d.domain = box3(0, 0, 0, 7 * MM_A, 2.5 * MM_A, 0);
    s = make_liquid(&d);
    ex_check(&app, fsi_sph_fill_box(s, box3(0, 0, 0, MM_A, n2 * MM_A, 0), v3(0, 0, 0), NULL));
    out->count = MM_SAMPLES;
    for (k = 0; k < MM_SAMPLES; k++) {
        if (k > 0) ex_check(&app, fsi_sph_step(s, (fsi_real)(end * unit / (MM_SAMPLES - 1))));
        out->T[k] = sqrt(n2) * s->time / unit;
        out->front[k] = reach(s) / MM_A;
        out->height[k] = depth_at(s, 2 * dx, 4 * dx) / (n2 * MM_A);
    }
    out->start = s->count;
    fsi_sph_destroy(s);
}

static void run_martin(void)
{
    static surge r[2][2];
    static double shifted[2][2][MM_SAMPLES], x[2][19], z[2][19];
    static const int across[2][2] = { { 64, 128 }, { 45, 90 } };
    static const char *const size[2] = { "coarse", "fine" };
    ex_plot plot = ex_plot_begin("Surge front of a collapsing column, Martin & Moyce 1952", "T", "front / a");
    int n2, k, i;
    for (n2 = 1; n2 <= 2; n2++) {
        const double (*front)[2] = n2 == 1 ? mm_front_1 : mm_front_2;
        int n = n2 == 1 ? 19 : 13;
        for (k = 0; k < 2; k++) {
            surge *q = &r[n2 - 1][k];
            double shift, rms, most;
            record_surge(n2, scaled(across[n2 - 1][k]), q);
            shift = match_start(q, front[2][0]);
            say(q->start, "1", "martin_n2_%d_%s_particles", n2, size[k]);
            say(shift, "1", "martin_n2_%d_%s_time_shift", n2, size[k]);
            compare(q, q->front, shift, front, 3, 10, &rms, &most);
            say(100 * rms, "%", "martin_n2_%d_%s_front_rms_to_Z3", n2, size[k]);
            compare(q, q->front, shift, front, 10, n, &rms, &most);
            say(100 * most, "%", "martin_n2_%d_%s_front_largest_beyond", n2, size[k]);
            for (i = 0; i < MM_SAMPLES; i++) shifted[n2 - 1][k][i] = q->T[i] + shift;
            if (n2 == 2) continue;
            compare(q, q->height, shift, mm_height_1, 0, 6, &rms, &most);
            say(100 * rms, "%", "martin_n2_1_%s_height_rms", size[k]);
            compare(q, q->height, 0, mm_height_1, 0, 6, &rms, &most);
            say(100 * rms, "%", "martin_n2_1_%s_height_rms_unshifted", size[k]);
        }
        ex_plot_series(&plot, n2 == 1 ? "n2=1" : "n2=2", shifted[n2 - 1][1], r[n2 - 1][1].front, MM_SAMPLES, EX_MARK_LINE);
        ex_plot_series(&plot, "coarse", shifted[n2 - 1][0], r[n2 - 1][0].front, MM_SAMPLES, EX_MARK_DASHES);
        for (i = 0; i < n; i++) {
            x[n2 - 1][i] = front[i][0];
            z[n2 - 1][i] = front[i][1];
        }
        ex_plot_series(&plot, "measured", x[n2 - 1], z[n2 - 1], n, EX_MARK_DOTS);
    }
    plot.x_hi = 3.6;
    plot.y_lo = 1;
    plot.y_hi = 5;
    ex_plot_save(&app, &plot, "sph_martin_moyce.png");
}

/* ---- Ritter 1892 ------------------------------------------------------------------------------------------------- */

/* h/h0 = (2 - x/(c t))^2/9 once vertical acceleration has died down, before the rear wall is felt (3 to 6 sqrt(h0/g)). */
static void run_ritter(void)
{
    const double h0 = 0.1, c = sqrt(G * h0), unit = sqrt(h0 / G), gate = 6 * h0;
    static double xi[61], ours[61], exact[61];
    double dx = h0 / scaled(40), depth = 0, at_3 = 0, tip = 0, rms = 0;
    fsi_sph_desc d = make_desc(2, dx);
    ex_plot plot = ex_plot_begin("Dam break on a dry bed after 4.5 sqrt(h0/g), Ritter's solution", "x / (c t)", "depth / h0");
    fsi_sph *s;
    int k;
    d.depth = (fsi_real)h0;
    d.domain = box3(0, 0, 0, gate + 10 * h0, 2 * h0, 0);
    s = make_liquid(&d);
    ex_check(&app, fsi_sph_fill_box(s, box3(0, 0, 0, gate, h0, 0), v3(0, 0, 0), NULL));
    for (k = 1; k <= 90; k++) {
        ex_check(&app, fsi_sph_step(s, (fsi_real)(0.05 * unit)));
        if (k > 60) depth += depth_at(s, gate, 0.2 * h0) / h0 / 30;
        if (k == 60) at_3 = reach(s);
        if (k == 90) tip = (reach(s) - at_3) / (1.5 * unit) / c;
    }
    for (k = 0; k <= 60; k++) {
        xi[k] = -1 + 0.05 * k;
        ours[k] = depth_at(s, gate + xi[k] * c * s->time, 0.2 * h0) / h0;
        exact[k] = (2 - xi[k]) * (2 - xi[k]) / 9;
        rms += (ours[k] - exact[k]) * (ours[k] - exact[k]) / 61;
    }
    say(s->count, "1", "ritter_particles");
    say(depth, "h0", "ritter_gate_depth");
    say(100 * (depth / (4.0 / 9) - 1), "%", "ritter_gate_depth_error");
    say(tip, "c", "ritter_tip_speed");
    say(sqrt(rms), "h0", "ritter_profile_rms");
    ex_plot_series(&plot, "fsi", xi, ours, 61, EX_MARK_DOTS);
    ex_plot_series(&plot, "Ritter", xi, exact, 61, EX_MARK_LINE);
    ex_plot_save(&app, &plot, "sph_ritter.png");
    fsi_sph_destroy(s);
}

/* ---- boundary integrals to first order --------------------------------------------------------------------------- */

/* Solves one step from the state of s without publishing it, then compares the walls' shares, as the last sweep used them,
   with the integrals at the particles' places. Adds to sums: count, error^2; returns the largest error. */
static double first_order_error(fsi_sph *s, double dt, double sums[2])
{
    fsi__sph_run run;
    double most = 0, before[4];
    int r, o;
    ex_check(&app, fsi__sph_begin(&run, s, dt));
    run.share = 1;
    run.dt = dt;
    run.mu = (double)s->stiffness * dt * dt / ((double)s->desc.density * run.h * run.h);
    run.kappa0 = run.mu * (double)s->desc.contact_stiffness;
    ex_check(&app, fsi__sph_start_substep(&run, before));
    ex_check(&app, fsi__sph_attach(&run));
    ex_check(&app, fsi__sph_solve(&run));
    for (r = 0; r < run.n; r++) {
        const fsi__sph_wall *w = &run.wall[run.slot[r] < 0 ? 0 : run.slot[r]];
        const fsi__lane4 *u = &run.uz[r];
        double exact = 0, lambda, gradient[3], e;
        if (run.slot[r] < 0) continue;
        for (o = 0; o < run.im->obstacles.count; o++) {
            fsi_sph_boundary_integral(run.im->obstacle[o].base.mesh, fsi__sph_world(&run, run.order[r], u), s->support, FSI_SPH_BOUNDARY_EXACT, &lambda, gradient);
            exact += (double)s->wall_factor * lambda;
        }
        e = fabs((double)(w->lambda + fsi__lane_dot(w->g, u->x - w->at[0], u->y - w->at[1], u->z - w->at[2])) - exact);
        sums[0]++;
        sums[1] += e * e;
        if (!(e <= most)) most = e;
    }
    return most;
}

/* The box of the MARIN tank in coarse water, 0.8 s: past the impact. */
static fsi_sph *make_dam(int always, int full_size, fsi_mesh **box)
{
    double dx = 0.55 / scaled(full_size);
    fsi_sph_desc d = make_desc(3, dx);
    fsi_sph *s;
    d.depth = (fsi_real)0.55;
    d.domain = box3(0, 0, 0, 3.22, 1, 2);
    d.always_reevaluate = always;
    s = make_liquid(&d);
    shape_begin(3);
    shape_box(box3(0.6635, 0.2985, 0, 0.8245, 0.7015, 0.161));
    *box = shape_make_with(&app.context, FSI_MESH_CLOSED, 0);
    ex_check(&app, fsi_sph_add_mesh(s, *box, NULL));
    ex_check(&app, fsi_sph_fill_box(s, box3(3.22 - dx * floor(1.228 / dx + 0.5), 0, 0, 3.22, 1, 0.55), v3(0, 0, 0), NULL));
    return s;
}

static void run_boundary(void)
{
    double sums[2] = { 0, 0 }, most = 0, front[2], energy[2], cpu[2], anew = 0, compression[2] = { 0, 0 };
    int always, k;
    for (always = 0; always < 2; always++) {
        fsi_mesh *box;
        fsi_sph *s = make_dam(always, 11, &box);
        cpu[always] = ex_cpu_seconds();
        for (k = 1; k <= 160; k++) {
            ex_check(&app, fsi_sph_step(s, (fsi_real)0.005));
            compression[always] += s->stats.mean_compression / 160;
            if (!always) anew += (double)s->stats.reevaluations / s->stats.wall_particles / s->stats.iterations / 160;
        }
        cpu[always] = ex_cpu_seconds() - cpu[always];
        energy[always] = s->stats.kinetic_energy + s->stats.potential_energy;
        for (front[always] = 0, k = 0; k < s->count; k++) front[always] += along(s, k) / s->count;
        for (k = 0; k < 20 && !always; k++) { /* an error measured on the way costs no time of the run above */
            double e = first_order_error(s, 0.004, sums);
            if (e > most) most = e;
            ex_check(&app, fsi_sph_step(s, (fsi_real)0.005));
        }
        fsi_sph_destroy(s);
        fsi_mesh_destroy(box);
    }
    say(sqrt(sums[1] / sums[0]), "lambda", "boundary_first_order_rms_error");
    say(most, "lambda", "boundary_first_order_largest_error");
    say(100 * anew, "%", "boundary_reevaluated_a_sweep");
    say(1000 * (front[0] - front[1]), "mm", "boundary_centre_difference_at_0.8s");
    say(100 * (energy[0] / energy[1] - 1), "%", "boundary_energy_difference_at_0.8s");
    say(100 * (compression[0] - compression[1]), "%", "boundary_compression_difference");
    say(cpu[1] / cpu[0], "times", "boundary_cost_of_always");
}

/* ---- swept points ------------------------------------------------------------------------------------------------ */

enum { BATCH = 1000, BATCHES = 1000, STEPS = 48, MOTIONS = 5 };

/* A triangle that turns by `angle` around `axis` through `pivot` and shifts, and a point that moves in a line. `straight`:
   corners go straight from start to end, as those of a mesh do in a step. */
typedef struct motion { fsi_vec3 corner[3], pivot, axis, shift, x0, x1; double angle; int straight; } motion;

static double uniform(uint64_t *random, double lo, double hi) { return lo + (hi - lo) * test_random(random); }

static fsi_vec3 random_point(uint64_t *random, double size)
{
    double x = uniform(random, -size, size), y = uniform(random, -size, size);
    return v3(x, y, uniform(random, -size, size));
}

/* Rodrigues' rotation. */
static fsi_vec3 turned(fsi_vec3 v, fsi_vec3 axis, double angle)
{
    fsi_real c = (fsi_real)cos(angle), s = (fsi_real)sin(angle);
    fsi_vec3 across = fsi_v3_cross(axis, v);
    return fsi_v3_add(fsi_v3_madd(fsi_v3_scale(v, c), s, across), fsi_v3_scale(axis, (1 - c) * fsi_v3_dot(axis, v)));
}

static fsi_vec3 carried(const motion *m, fsi_vec3 v, double t)
{
    return fsi_v3_add(fsi_v3_madd(m->pivot, (fsi_real)t, m->shift), turned(fsi_v3_sub(v, m->pivot), m->axis, t * m->angle));
}

static fsi_vec3 corner_at(const motion *m, int k, double t)
{
    fsi_vec3 v = m->corner[k];
    return m->straight ? fsi_v3_madd(v, (fsi_real)t, fsi_v3_sub(carried(m, v, 1), v)) : carried(m, v, t);
}

/* Height of the point over the triangle's plane at time t, and whether its foot is on the triangle. */
static double above(const motion *m, double t, int *on)
{
    fsi_vec3 a = corner_at(m, 0, t), b = corner_at(m, 1, t), c = corner_at(m, 2, t);
    fsi_vec3 x = fsi_v3_madd(m->x0, (fsi_real)t, fsi_v3_sub(m->x1, m->x0)), n = fsi_v3_unit(fsi_v3_cross(fsi_v3_sub(b, a), fsi_v3_sub(c, a)));
    *on = fsi_v3_dot(fsi_v3_cross(fsi_v3_sub(b, a), fsi_v3_sub(x, a)), n) >= 0 && fsi_v3_dot(fsi_v3_cross(fsi_v3_sub(c, b), fsi_v3_sub(x, b)), n) >= 0 &&
          fsi_v3_dot(fsi_v3_cross(fsi_v3_sub(a, c), fsi_v3_sub(x, c)), n) >= 0;
    return (double)fsi_v3_dot(fsi_v3_sub(x, a), n);
}

/* First passage from front to back through the triangle, by bisection; 2: none. */
static double bisected(const motion *m)
{
    double before, lo, hi, now, mid;
    int k, i, on;
    before = above(m, 0, &on);
    for (k = 1; k <= STEPS; k++, before = now) {
        now = above(m, (double)k / STEPS, &on);
        if (!(before >= 0 && now < 0)) continue;
        for (lo = (k - 1.0) / STEPS, hi = (double)k / STEPS, i = 0; i < 40; i++) {
            mid = (lo + hi) / 2;
            if (above(m, mid, &on) < 0) hi = mid;
            else lo = mid;
        }
        above(m, hi, &on);
        if (on) return hi;
    }
    return 2;
}

/* kind 0: shifted, 1: turned by up to 30 degrees, 2: both, with a hit made at a random moment; 3: both, the point anywhere;
   4: as 2, turned by up to 5 degrees. */
static void random_motion(motion *m, int kind, uint64_t *random)
{
    fsi_vec3 at, n, velocity;
    double u, v, t = uniform(random, 0.1, 0.9);
    int k;
    do {
        for (k = 0; k < 3; k++) m->corner[k] = random_point(random, 0.5);
        n = fsi_v3_cross(fsi_v3_sub(m->corner[1], m->corner[0]), fsi_v3_sub(m->corner[2], m->corner[0]));
    } while ((double)fsi_v3_norm(n) < 0.1);
    m->pivot = random_point(random, 0.5);
    m->axis = fsi_v3_unit(random_point(random, 1));
    m->angle = kind == 0 ? 0 : uniform(random, -PI / 6, PI / 6) / (kind == 4 ? 6 : 1);
    m->shift = kind == 1 ? v3(0, 0, 0) : random_point(random, 0.5);
    m->straight = 0;
    m->x0 = random_point(random, 0.5);
    m->x1 = random_point(random, 0.5);
    if (kind == 3) return;
    u = uniform(random, 0.05, 0.9);
    v = uniform(random, 0.05, 0.95 - u);
    at = fsi_v3_add(fsi_v3_scale(m->corner[0], (fsi_real)(1 - u - v)), fsi_v3_madd(fsi_v3_scale(m->corner[1], (fsi_real)u), (fsi_real)v, m->corner[2]));
    velocity = fsi_v3_scale(fsi_v3_sub(carried(m, at, t + 1e-4), carried(m, at, t - 1e-4)), (fsi_real)5000);
    n = fsi_v3_unit(turned(n, m->axis, t * m->angle));
    velocity = fsi_v3_add(fsi_v3_madd(velocity, (fsi_real)-uniform(random, 0.3, 1), n), random_point(random, 0.1));
    at = carried(m, at, t);
    m->x0 = fsi_v3_madd(at, (fsi_real)-t, velocity);
    m->x1 = fsi_v3_madd(at, (fsi_real)(1 - t), velocity);
}

/* The paper's reduced-order test as sph.md 8 mends it: height over a plane through the centroid, whose unit normal is interpolated,
   f(t) = a t^2 + b t + c; the first root from front to back at which the point is on the triangle of interpolated corners. */
static double reduced(const motion *m)
{
    fsi_vec3 from[3], to[3], n0, n1, dn, c0, dc, dx = fsi_v3_sub(m->x1, m->x0);
    double a, b, c, root[2], disc, s;
    int k, i, count = 0;
    for (k = 0; k < 3; k++) {
        from[k] = m->corner[k];
        to[k] = carried(m, m->corner[k], 1);
    }
    n0 = fsi_v3_unit(fsi_v3_cross(fsi_v3_sub(from[1], from[0]), fsi_v3_sub(from[2], from[0])));
    n1 = fsi_v3_unit(fsi_v3_cross(fsi_v3_sub(to[1], to[0]), fsi_v3_sub(to[2], to[0])));
    dn = fsi_v3_sub(n1, n0);
    c0 = fsi_v3_scale(fsi_v3_add(fsi_v3_add(from[0], from[1]), from[2]), (fsi_real)(1.0 / 3));
    dc = fsi_v3_sub(fsi_v3_scale(fsi_v3_add(fsi_v3_add(to[0], to[1]), to[2]), (fsi_real)(1.0 / 3)), c0);
    a = (double)fsi_v3_dot(fsi_v3_sub(dx, dc), dn);
    b = (double)fsi_v3_dot(fsi_v3_sub(m->x0, c0), dn) + (double)fsi_v3_dot(fsi_v3_sub(dx, dc), n0);
    c = (double)fsi_v3_dot(fsi_v3_sub(m->x0, c0), n0);
    disc = b * b - 4 * a * c;
    if (fabs(a) <= 1e-9 * (fabs(b) + fabs(c))) root[count++] = -c / b;
    else if (disc >= 0) {
        s = -(b + (b < 0 ? -sqrt(disc) : sqrt(disc))) / 2;
        root[0] = fmin(s / a, c / s);
        root[1] = fmax(s / a, c / s);
        count = 2;
    }
    for (i = 0; i < count; i++) {
        double t = root[i];
        fsi_vec3 p[3], x = fsi_v3_madd(m->x0, (fsi_real)t, dx), n;
        int on = 1;
        if (!(t >= 0 && t <= 1) || !(2 * a * t + b < 0)) continue;
        for (k = 0; k < 3; k++) p[k] = fsi_v3_madd(from[k], (fsi_real)t, fsi_v3_sub(to[k], from[k]));
        n = fsi_v3_cross(fsi_v3_sub(p[1], p[0]), fsi_v3_sub(p[2], p[0]));
        for (k = 0; k < 3; k++)
            on &= (double)fsi_v3_dot(fsi_v3_cross(fsi_v3_sub(p[(k + 1) % 3], p[k]), fsi_v3_sub(x, p[k])), n) >= -1e-4 * (double)fsi_v3_norm2(n);
        if (on) return t;
    }
    return 2;
}

typedef struct tally { double hits, missed, false_hits, queries, deviation, largest, seconds; } tally;

static void tally_add(tally *sum, const fsi_mesh_hit *hit, double t)
{
    double e = fabs((double)hit->t - t);
    sum->queries++;
    if (t <= 1) sum->hits++;
    if (t <= 1 && hit->face < 0) sum->missed++;
    if (t > 1 && hit->face >= 0) sum->false_hits++;
    if (t > 1 || hit->face < 0) return;
    sum->deviation += e;
    if (e > sum->largest) sum->largest = e;
}

/* A thousand triangles, far apart, as one mesh that moves. sum[0]: against corners that turn, sum[1]: that go straight; sum[2]: the
   reduced-order test against corners that turn; sum[3]: only the time of bisection along arcs, the full test. */
static void sweep_batch(int kind, uint64_t *random, tally *sum)
{
    static motion m[BATCH];
    static fsi_mesh_hit hit[BATCH], low[BATCH];
    static double full[BATCH];
    static fsi_vec3 ends[3 * BATCH];
    static int face[BATCH];
    double started;
    fsi_mesh *mesh;
    int k, c;
    shape_begin(3);
    for (k = 0; k < BATCH; k++) {
        fsi_vec3 away = v3(4 * (k % 10), 4 * (k / 10 % 10), 4 * (k / 100));
        random_motion(&m[k], kind, random);
        m[k].pivot = fsi_v3_add(m[k].pivot, away);
        m[k].x0 = fsi_v3_add(m[k].x0, away);
        m[k].x1 = fsi_v3_add(m[k].x1, away);
        for (c = 0; c < 3; c++) {
            m[k].corner[c] = shape.x[shape.nx++] = fsi_v3_add(m[k].corner[c], away);
            ends[3 * k + c] = carried(&m[k], m[k].corner[c], 1);
        }
        shape_face(3 * k, 3 * k + 1, 3 * k + 2);
    }
    mesh = shape_make(FSI_MESH_OPEN, 0);
    ex_check(&app, fsi_mesh_move(mesh, ends, 3 * BATCH));
    for (k = 0; k < BATCH; k++) face[mesh->face_source[k]] = k;
    started = ex_cpu_seconds();
    for (k = 0; k < BATCH; k++) hit[k] = fsi_mesh_sweep_face(mesh, face[k], m[k].x0, m[k].x1, 1);
    sum[0].seconds += ex_cpu_seconds() - started;
    started = ex_cpu_seconds();
    for (k = 0; k < BATCH; k++) {
        low[k].t = (fsi_real)reduced(&m[k]);
        low[k].face = low[k].t <= 1 ? 0 : -1;
    }
    sum[2].seconds += ex_cpu_seconds() - started;
    started = ex_cpu_seconds();
    for (k = 0; k < BATCH; k++) full[k] = bisected(&m[k]);
    sum[3].seconds += ex_cpu_seconds() - started;
    for (k = 0; k < BATCH; k++) tally_add(&sum[2], &low[k], full[k]);
    for (k = 0; k < 2 * BATCH; k++) {
        m[k / 2].straight = k % 2;
        tally_add(&sum[k % 2], &hit[k / 2], bisected(&m[k / 2]));
    }
    fsi_mesh_destroy(mesh);
}

static void run_sweep(void)
{
    static const char *const name[MOTIONS] = { "shifted", "turned", "both", "anywhere", "gentle" };
    uint64_t random = 1;
    int kind, k;
    for (kind = 0; kind < MOTIONS; kind++) {
        tally sum[4];
        memset(sum, 0, sizeof sum);
        for (k = 0; k < BATCHES / MOTIONS * app.res / 100; k++) sweep_batch(kind, &random, sum);
        say(sum[0].queries, "1", "sweep_%s_queries", name[kind]);
        say(1e6 * sum[0].seconds / sum[0].queries, "us", "sweep_%s_time_a_query", name[kind]);
        say(1e6 * sum[2].seconds / sum[0].queries, "us", "sweep_%s_time_a_reduced_query", name[kind]);
        say(1e6 * sum[3].seconds / sum[0].queries, "us", "sweep_%s_time_a_full_query", name[kind]);
        for (k = 0; k < 3; k++) {
            const char *how = k == 0 ? "turning" : k == 1 ? "straight" : "reduced_turning";
            say(sum[k].hits, "1", "sweep_%s_%s_hits", name[kind], how);
            say(100 * sum[k].missed / sum[k].hits, "%", "sweep_%s_%s_missed", name[kind], how);
            say(100 * sum[k].false_hits / sum[k].queries, "%", "sweep_%s_%s_false_hits", name[kind], how);
            say(sum[k].deviation / (sum[k].hits - sum[k].missed), "step", "sweep_%s_%s_mean_time_deviation", name[kind], how);
            say(sum[k].largest, "step", "sweep_%s_%s_largest_time_deviation", name[kind], how);
        }
    }
}

/* ---- growth ------------------------------------------------------------------------------------------------------ */

/* Cubes of resting water, one thread, 20 sweeps a step: the cost of a particle must not grow with their number. */
static void run_growth(void)
{
    static const int edge[4] = { 27, 40, 60, 100 };
    fsi_context serial = fsi_default_context();
    int k, step;
    for (k = 0; k < 4; k++) {
        int n = scaled(edge[k]);
        fsi_sph_desc d = make_desc(3, 1.0 / n);
        double cpu = 0;
        fsi_sph *s;
        d.context = &serial;
        d.domain = box3(0, 0, 0, 1, 1, 2);
        d.min_iters = d.max_iters = 20;
        d.max_substeps = 1;
        ex_check(&app, fsi_sph_create(&s, &d));
        ex_check(&app, fsi_sph_fill_box(s, box3(0, 0, 0, 1, 1, 1), v3(0, 0, 0), NULL));
        for (step = 0; step < 3; step++) {
            if (step == 1) cpu = ex_cpu_seconds();
            ex_check(&app, fsi_sph_step(s, fsi_sph_suggest_dt(s)));
        }
        cpu = (ex_cpu_seconds() - cpu) / 2;
        say(1e6 * cpu / s->count, "us", "growth_%d_particles_step_a_particle", s->count);
        say((double)s->stats.bytes / s->count, "bytes", "growth_%d_particles_memory_a_particle", s->count);
        fsi_sph_destroy(s);
    }
}

/* ---- nothing gets in ---------------------------------------------------------------------------------------------- */

/* The three example scenes, small: a box in a dam break, a knot, boxes with gaps of one particle. */
static ex_mesh make_obstacle(int scene, double dx)
{
    ex_mesh m = ex_mesh_make(0, 0), one;
    int i, k;
    if (scene == 0) m = ex_box(box3(0.5, 0.3, 0, 0.65, 0.7, 0.2), 0);
    if (scene == 1) {
        m = ex_knot(2, 3, 0.5, 60, 8);
        ex_fit(m.vertices, m.vertex_count, box3(0.12, 0.12, 0.1, 0.88, 0.88, 0.6));
    }
    for (k = 0; k < 3 && scene == 2; k++) {
        for (i = 0; i < 3; i++) {
            double b = (1 - 4 * dx) / 3, y = dx + i * (b + dx), z = dx + k * (b + dx);
            one = ex_box(box3(0.6, y, z, 0.6 + b / 2, y + b, z + b), 0);
            ex_mesh_add(&m, &one);
            ex_mesh_free(&one);
        }
    }
    return m;
}

static void run_scene(int scene, int milliseconds)
{
    static const char *const name[3] = { "dam", "knot", "gaps" };
    double dx = 1.0 / fmax(8, scaled(12)), placed = 0, particle_steps = 0;
    fsi_sph_desc d = make_desc(3, dx);
    fsi_mesh_desc solid = fsi_mesh_default_desc();
    ex_mesh m = make_obstacle(scene, dx);
    fsi_mesh *mesh;
    fsi_sph *s;
    int inside = 0, lost = 0, pinched = 0, step, i;
    solid.context = &app.context;
    solid.vertices = m.vertices;
    solid.vertex_count = m.vertex_count;
    solid.elements = m.triangles;
    solid.element_count = m.triangle_count;
    d.domain = scene == 1 ? box3(0, 0, 0, 1, 1, 1.5) : box3(0, 0, 0, 1.6, 1, 1);
    d.max_substeps = 1;
    ex_check(&app, fsi_mesh_create(&mesh, &solid));
    s = make_liquid(&d);
    ex_check(&app, fsi_sph_add_mesh(s, mesh, NULL));
    if (scene == 1) ex_check(&app, fsi_sph_fill_box(s, box3(0.25, 0.25, 0.8, 0.75, 0.75, 1.4), v3(0, 0, -2), NULL));
    else ex_check(&app, fsi_sph_fill_box(s, box3(0, 0, 0, 0.4, 1, 0.6), v3(0, 0, 0), NULL));
    for (step = 1; s->time < 0.9999; step++) {
        ex_check(&app, fsi_sph_step(s, (fsi_real)(0.001 * milliseconds)));
        placed += s->stats.placed;
        pinched += s->stats.pinched;
        particle_steps += s->count;
        if (step * milliseconds % 9) continue;
        inside += fsi_sph_count_inside(s, NULL);
        for (i = 0; i < s->count; i++) lost += !fsi_box3_overlap(d.domain, fsi_box3_grow(fsi_box3_empty(), s->position[i]));
    }
    say(inside, "particles", "inside_%s_%dms", name[scene], milliseconds);
    say(lost, "particles", "lost_%s_%dms", name[scene], milliseconds);
    say(100 * placed / particle_steps, "%", "placed_%s_%dms", name[scene], milliseconds);
    say(pinched, "particles", "pinched_%s_%dms", name[scene], milliseconds);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(mesh);
    ex_mesh_free(&m);
}

/* ---- surface tension ---------------------------------------------------------------------------------------------- */

/* Mean pressure three spacings and more inside a calm drop, over Laplace's (dim - 1) sigma/R. */
static double laplace_ratio(const fsi_sph *s)
{
    double sum = 0, n = 0, R = drop_radius(s);
    int i;
    for (i = 0; i < s->count; i++) {
        if (!((double)fsi_v3_norm(s->position[i]) < R - 3 * (double)s->desc.spacing)) continue;
        sum += (double)s->pressure[i];
        n++;
    }
    return sum / n * R / ((s->desc.dim - 1) * (double)s->desc.surface_tension);
}

static void swing_drop(int dim, int n, double support, double tension)
{
    fsi_sph *s = make_drop(&app.context, dim, n, tension, support);
    double decay = 0, period, laplace, rest;
    calm_drop(s, mode2_period(s));
    laplace = laplace_ratio(s);
    rest = sqrt(2 * kinetic(s) / ((double)s->particle_mass * s->count)) * sqrt((double)s->desc.density * drop_radius(s) / tension);
    period = mode2_measure(s, 0.08, 4, &decay);
    say(period, "Rayleigh", "drop_%dd_%ddx_H%g_%gNm_period", dim, n, support, tension);
    say(decay, "1", "drop_%dd_%ddx_H%g_%gNm_left_after_1.5_periods", dim, n, support, tension);
    say(laplace, "Laplace", "drop_%dd_%ddx_H%g_%gNm_pressure", dim, n, support, tension);
    say(rest, "capillary speed", "drop_%dd_%ddx_H%g_%gNm_speed_at_rest", dim, n, support, tension);
    fsi_sph_destroy(s);
}

/* Half a drop on a floor comes to rest in 12 periods. */
static void sessile_drop(int n, double angle)
{
    fsi_sph *s = make_drop(&app.context, 2, n, 0.0728, 2);
    fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
    unsigned char *gone = (unsigned char *)ex_alloc(NULL, (size_t)s->count, 1);
    fsi_mesh *floor;
    int i;
    for (i = 0; i < s->count; i++) gone[i] = s->position[i].y < 0;
    ex_check(&app, fsi_sph_remove_particles(s, gone));
    shape_begin(2);
    shape_line(-0.02, 0.0003, 0.02);
    floor = shape_make(FSI_MESH_OPEN, 0);
    o.mesh = floor;
    o.contact_angle = (fsi_real)angle;
    ex_check(&app, fsi_sph_add_obstacle(s, &o, NULL));
    calm_drop(s, 12 * mode2_period(s));
    say(contact_angle(s), "degrees", "contact_angle_%ddx_asked_%g", n, angle);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(floor);
    free(gone);
}

static void run_drop(void)
{
    static const int n[4] = { 10, 16, 24, 40 };
    static const double angle[5] = { 180, 120, 90, 60, 0 };
    int k;
    for (k = 0; k < 4; k++) swing_drop(2, (int)scaled(n[k]), 2, 0.0728);
    for (k = 0; k < 3; k++) swing_drop(3, (int)scaled(n[k]), 2, 0.0728);
    swing_drop(2, (int)scaled(16), 2, 7.28);
    swing_drop(3, (int)scaled(16), 2, 7.28);
    for (k = 0; k < 3; k++) swing_drop(2, (int)scaled(k == 2 ? 24 : 16), k == 0 ? 1.8 : k == 1 ? 2.4 : 3, 0.0728);
    for (k = 0; k < 5; k++) sessile_drop((int)scaled(16), angle[k]);
    for (k = 1; k < 4; k++) sessile_drop((int)scaled(32), angle[k]);
}

static void run_inside(void)
{
    int scene, k;
    for (scene = 0; scene < 3; scene++)
        for (k = 1; k <= 9; k *= 3) run_scene(scene, k);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void); } parts[] = {
        { "tank", run_tank }, { "tolerance", run_tolerance }, { "martin", run_martin }, { "ritter", run_ritter },
        { "boundary", run_boundary }, { "sweep", run_sweep }, { "growth", run_growth }, { "inside", run_inside },
        { "drop", run_drop }
    };
    const char *only = NULL;
    int k;
    ex_init(&app, "validate_sph", "The liquid against theory, experiment and slow references.");
    app.res = 100;
    app.res_help = "per cent of the full number of particles along an edge, and of the swept points";
    app.out = "docs/plots";
    ex_operand(&app, "part", &only, "tank, tolerance, martin, ritter, boundary, sweep, growth, inside or drop; none: all");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    for (k = 0; k < 9; k++) if (!only || strcmp(only, parts[k].name) == 0) parts[k].run();
    ex_pool_stop(&app.pool);
    return 0;
}
