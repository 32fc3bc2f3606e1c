/* validate_wcsph.c - the weakly compressible liquid and its bodies at full size.
   SPDX-License-Identifier: MIT

   Drafts of floating crates, the force on what is held under water, release from rest, sinking, the least speed at which a disc skips
   against the angle at which it meets the water, slip on a ramp, and momentum over a long run.
   Prints lines `key value unit`, or `key value unit reference tolerance verdict`. --res 50 halves the number of particles along each edge;
   a word (drafts, cubes, held, release, sinking, skipping, ramp, momentum) runs one part. */
#define FSI_IMPLEMENTATION
#include "../examples/kit/kit.h"
#include "../fsi_wcsph.h"
#include "../tests/kit/test.h"
#include "../tests/kit/test_wcsph_bodies.h"
#include "validate.h"

static void judge(double value, const char *unit, double want, double tolerance, const char *key, ...)
{
    va_list args;
    va_start(args, key);
    vprintf(key, args);
    va_end(args);
    printf(" %.4g %s %.4g %.2g %s\n", value, unit, want, tolerance, fabs(value - want) <= tolerance ? "pass" : "fail");
    fflush(stdout);
}

/* A cube n spacings a side in a pool twice as wide with free slip: how far its draft is off density times height, in spacings, mean over the last
   third of `seconds`. It starts `start` spacings above where Archimedes has it; velocities are damped for the first half. Flat cubes tip over:
   an inertia of ages keeps it upright. */
static double cube_draft(int n, double density, double start, double seconds)
{
    const double side = 0.12, dx = side / n, share = density / 1000, wide = 2 * side, level = 1.6 * side + side * share / 4;
    const double want = level + side * (0.5 - share), dt = 4e-3;
    const int steps = (int)(seconds / dt);
    fsi_mesh *m = make_block(3, side / 2, side / 2, side / 2);
    fsi_body body = make_floater(m, density, 9.81, 3);
    fsi_wcsph_desc d = make_desc(3, dx);
    double mean = 0, volume;
    scene t;
    int k;
    memset(&t, 0, sizeof t);
    d.context = &app.context;
    d.domain = box3(0, 0, 0, wide, wide, 0.5);
    d.depth = (fsi_real)level;
    t.dim = 3;
    t.s = make_wcsph(&d);
    body.inertia = fsi_m3_scale(fsi_m3_identity(), 1000);
    body.pose.position = v3(wide / 2, wide / 2, want + start * dx);
    mesh_to(m, body.pose);
    scene_add(&t, m, &body);
    fill(t.s, box3(0, 0, 0, wide, wide, level), v3(0, 0, 0));
    CHECK(fsi_wcsph_settle_density(t.s, v3(0, 0, level)) == FSI_OK);
    for (k = 0; k < steps && step_ok(t.s, dt); k++) {
        fsi_body_accept(&body);
        if (k < steps / 2) {
            calm(t.s, 0.95);
            body.velocity = fsi_v3_scale(body.velocity, (fsi_real)0.95);
        }
        if (k >= 2 * steps / 3) mean += (double)body.pose.position.z / (steps - 2 * steps / 3);
    }
    check_census(&t);
    volume = t.s->count * (double)t.s->particle_mass / 1000 + side * side * side * share; /* the level is that of the particles which are there */
    fsi_wcsph_destroy(t.s);
    fsi_mesh_destroy(m);
    return (volume / (wide * wide) + side * (0.5 - share) - mean) / dx;
}

static void run_cubes(void)
{
    static const double density[3] = { 250, 500, 750 };
    const int n = scaled(20);
    int k, from;
    for (k = 0; k < 3; k++) for (from = 1; from >= -1; from -= 2)
        judge(cube_draft(n, density[k], from, 0.7), "dx", 0, 0.03 * n + 0.5, "draft_cube_20dx_density_%g_from_%s_error", density[k], from > 0 ? "above" : "below");
}

static void run_drafts(void)
{
    static const double density[3] = { 250, 500, 750 };
    const int n = scaled(20);
    int k;
    for (k = 0; k < 3; k++) judge(draft_error(&app.context, 2, n, density[k], 1.5), "dx", 0, 0.03 * n + 0.5, "draft_2d_density_%g_error", density[k]);
    for (k = 0; k < 3; k++) judge(draft_error(&app.context, 3, scaled(12), density[k], 0.6), "dx", 0, 0.03 * scaled(12) + 0.5, "draft_3d_12dx_density_%g_error", density[k]);
}

static void run_held(void)
{
    judge(held_buoyancy(&app.context, 2, scaled(10), 1), "1", 1, 0.1, "held_2d_10dx_force_over_displaced_weight");
    judge(held_buoyancy(&app.context, 2, scaled(20), 1), "1", 1, 0.1, "held_2d_20dx_force_over_displaced_weight");
    judge(held_buoyancy(&app.context, 3, scaled(10), 0.6), "1", 1, 0.1, "held_3d_10dx_force_over_displaced_weight");
}

static void run_release(void)
{
    static const double density[4] = { 100, 500, 2000, 7900 };
    int k;
    for (k = 0; k < 4; k++) {
        const double D = density[k] / 1000, want = (1 - D) / (D + 1);
        say(want, "g", "release_density_%g_ideal", density[k]);
        say(released_acceleration(&app.context, scaled(10), density[k], 0.01, FSI_WCSPH_AUTO), "g", "release_density_%g_first_10ms", density[k]);
        say(released_acceleration(&app.context, scaled(10), density[k], 0.04, FSI_WCSPH_AUTO), "g", "release_density_%g_first_40ms", density[k]);
    }
}

static void run_sinking(void)
{
    static const double density[4] = { 500, 1050, 2000, 8000 };
    int k, n;
    for (n = 8; n <= 32; n *= 2) {
        for (k = 0; k < 4; k++) {
            if (n == 32 && k != 2) continue;
            say(sunk_after(&app.context, scaled(n), density[k], 0.25, 0.1, 1), "m", "sunk_250ms_%ddx_density_%g", n, density[k]);
        }
    }
    for (k = 0; k < 4; k++) say(sunk_ideal(density[k], 0.25), "m", "sunk_250ms_ideal_with_drag_density_%g", density[k]);
    say(sunk_after(&app.context, scaled(10), 2000, 0.4, 0.1, 0), "m", "sunk_400ms_alpha_0.1");
    say(sunk_after(&app.context, scaled(10), 2000, 0.4, 3, 0), "m", "sunk_400ms_alpha_3");
}

/* Bisection between 0.6 and 4 m/s; the paper's disc (Clanet et al. 2004) needs about 2.5 m/s at 20 degrees, more at others. */
static void run_skipping(void)
{
    static const double attack[3] = { 10, 20, 40 };
    const double dx = 0.005 * 100 / app.res;
    int k, i;
    judge(disc_skips(&app.context, dx, 3.5, 20), "1", 1, 0, "skipping_bounces_at_3.5");
    judge(disc_skips(&app.context, dx, 1.5, 20), "1", 0, 0, "skipping_bounces_at_1.5");
    for (k = 0; k < 3; k++) {
        double slow = 0.8, fast = 5.6;
        for (i = 0; i < 4; i++) {
            const double middle = sqrt(slow * fast);
            if (disc_skips(&app.context, dx, middle, attack[k])) fast = middle;
            else slow = middle;
        }
        say(fast, "m/s", "skipping_least_speed_at_%g_degrees", attack[k]);
    }
}

static void run_ramp(void)
{
    static const double slip[9] = { 0, 0.5, 0.9, 0.97, 0.99, 0.997, 0.999, 0.9997, 1 };
    int k;
    for (k = 0; k < 9; k++) say(ramp_speed(&app.context, 0.01 * 100 / app.res / 2, slip[k], 0.2), "1", "ramp_speed_slip_%g", slip[k]);
}

/* A drop that flies at two crates in free space, 10 000 particles. */
static void run_momentum(void)
{
    static const char *const name[5] = { "auto", "global", "local", "local_split", "pgs" };
    int k, step, i, j;
    for (k = 0; k < 5; k++) {
        fsi_wcsph_desc d = make_desc(3, 0.2 / scaled(20));
        fsi_mesh *m[2];
        fsi_body body[2];
        double before[3], after[3], turn[3], worst = 0, exchange = 0, turned = 0, bound = 0;
        scene t;
        memset(&t, 0, sizeof t);
        d.context = &app.context;
        d.gravity = v3(0, 0, 0);
        d.speed = 2;
        d.solver = (fsi_wcsph_solver)k;
        t.dim = 3;
        t.s = make_wcsph(&d);
        for (i = 0; i < 2; i++) {
            m[i] = make_block(3, 0.06, 0.06, 0.06);
            body[i] = make_floater(m[i], i ? 2500 : 300, 0, 3);
            body[i].force = v3(0, 0, 0);
            body[i].pose.position = v3(0.3, 0.1, i ? 0.17 : 0.04);
            mesh_to(m[i], body[i].pose);
            scene_add(&t, m[i], &body[i]);
        }
        ex_check(&app, fsi_wcsph_fill_box(t.s, box3(0, 0, 0, 0.2, 0.2, 0.2), v3(1.5, 0, 0), NULL));
        for (step = 0; step < 150; step++) {
            const double size = momentum_size(t.s);
            momenta(t.s, before, turn);
            for (i = 0; i < 2; i++) add_body_momenta(&body[i], before, turn);
            ex_check(&app, fsi_wcsph_step(t.s, (fsi_real)1e-3));
            for (i = 0; i < 2; i++) fsi_body_accept(&body[i]);
            momenta(t.s, after, turn);
            for (i = 0; i < 2; i++) add_body_momenta(&body[i], after, turn);
            for (j = 0; j < 3; j++) worst = fmax(worst, fabs(after[j] - before[j]) / size);
            exchange = fmax(exchange, t.s->stats.exchange_error);
            turned += t.s->stats.angular_error;
            bound += t.s->stats.angular_bound;
        }
        judge(worst, "1", 0, 1e-12, "momentum_%s_drift_a_step", name[k]);
        judge(exchange, "1", 0, 1e-12, "momentum_%s_exchange_error", name[k]);
        say(turned, "kg_m2/s", "momentum_%s_true_angular", name[k]);
        say(bound, "kg_m2/s", "momentum_%s_true_angular_bound", name[k]);
        fsi_wcsph_destroy(t.s);
        for (i = 0; i < 2; i++) fsi_mesh_destroy(m[i]);
    }
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void); } parts[] = {
        { "drafts", run_drafts }, { "cubes", run_cubes }, { "held", run_held }, { "release", run_release }, { "sinking", run_sinking },
        { "skipping", run_skipping }, { "ramp", run_ramp }, { "momentum", run_momentum }
    };
    const char *only = NULL;
    int k;
    ex_init(&app, "validate_wcsph", "The weakly compressible liquid and its bodies against theory.");
    app.res = 100;
    app.res_help = "per cent of the full number of particles along an edge";
    ex_operand(&app, "part", &only, "drafts, cubes, held, release, sinking, skipping, ramp or momentum; none: all");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    for (k = 0; k < (int)(sizeof parts / sizeof *parts); k++) if (!only || strcmp(only, parts[k].name) == 0) parts[k].run();
    ex_pool_stop(&app.pool);
    return 0;
}
