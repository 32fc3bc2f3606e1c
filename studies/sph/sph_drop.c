/* cc -O3 -I. studies/sph/sph_drop.c -lm -o sph_drop && ./sph_drop
   SPDX-License-Identifier: MIT

   Water drops of 2 mm without gravity. On the left one swings between a cigar and a disc; on the right two meet off the
   middle, become one and go on to turn and swing. The tension is given in N/m and nothing else is set. period_ratio= is
   the period of the swing over Rayleigh's, 2 pi sqrt(rho R^3/(8 sigma)); pressure_ratio= the pressure in the calm drop
   over Laplace's, 2 sigma/R; momentum_error= what the meeting drops gained in momentum, over what each brought
   along. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_sph.h"

#define FRAME 0.0004 /* seconds between two pictures */
#define RADIUS 0.001 /* [m] */
#define SPEED 0.35   /* of the drops that meet [m/s] */
#define OFFSET 0.0006
#define PI 3.14159265358979

/* The particles of a lattice within RADIUS of `at`. */
static void add_drop(ex_app *app, fsi_sph *s, fsi_vec3 at, fsi_vec3 velocity)
{
    const double dx = (double)s->desc.spacing;
    int i, j, k, n = (int)(RADIUS / dx) + 1;
    for (k = -n; k <= n; k++) {
        for (j = -n; j <= n; j++) {
            for (i = -n; i <= n; i++) {
                fsi_vec3 d = fsi_v3((i + 0.5) * dx, (j + 0.5) * dx, (k + 0.5) * dx), x = fsi_v3_add(at, d);
                if (fsi_v3_norm(d) < RADIUS) ex_check(app, fsi_sph_add_particles(s, &x, &velocity, 1));
            }
        }
    }
}

/* Radius of the sphere that holds the liquid's volume. */
static double drop_radius(const fsi_sph *s) { return cbrt(s->count * (double)s->particle_volume * 3 / (4 * PI)); }

static double rayleigh(const fsi_sph *s)
{
    return 2 * PI * sqrt((double)s->desc.density * pow(drop_radius(s), 3) / (8 * (double)s->desc.surface_tension));
}

/* A lattice is no drop yet: half a period in which motion is taken out. */
static void calm(ex_app *app, fsi_sph *s)
{
    const double T = rayleigh(s);
    int i;
    while (s->time < T / 2) {
        double dt = (double)fsi_sph_suggest_dt(s);
        ex_check(app, fsi_sph_step(s, dt));
        for (i = 0; i < s->count; i++) s->velocity[i] = fsi_v3_scale(s->velocity[i], 1 - fmin(20 * dt / T, 0.1));
    }
}

/* Mean pressure three spacings and more below the surface, over 2 sigma/R. */
static double laplace_ratio(const fsi_sph *s)
{
    const double R = drop_radius(s);
    double sum = 0, n = 0;
    int i;
    for (i = 0; i < s->count; i++) {
        if (!((double)fsi_v3_norm(s->position[i]) < R - 3 * (double)s->desc.spacing)) continue;
        sum += (double)s->pressure[i];
        n++;
    }
    return n > 0 ? sum / n * R / (2 * (double)s->desc.surface_tension) : 0;
}

/* z^2 - (x^2 + y^2)/2, mean over R^2: changes sign twice a period. */
static double elongation(const fsi_sph *s)
{
    double sum = 0, R = drop_radius(s);
    int i;
    for (i = 0; i < s->count; i++) {
        const fsi_vec3 x = s->position[i];
        sum += (double)(x.z * x.z - (x.x * x.x + x.y * x.y) / 2);
    }
    return sum / (s->count * R * R);
}

/* Crossings of the elongation at rest. */
typedef struct swing { double rest, before, first, last; int crossings; } swing;

static void start_swing(fsi_sph *s, swing *w, double amplitude)
{
    const double rate = amplitude * 2 * PI / rayleigh(s);
    int i;
    memset(w, 0, sizeof *w);
    w->rest = elongation(s);
    for (i = 0; i < s->count; i++)
        s->velocity[i] = fsi_v3_scale(fsi_v3(-s->position[i].x / 2, -s->position[i].y / 2, s->position[i].z), rate);
}

static void watch_swing(const fsi_sph *s, swing *w, double dt)
{
    double now = elongation(s) - w->rest;
    if (w->before * now < 0) {
        w->last = s->time - dt * now / (now - w->before);
        if (w->crossings++ == 0) w->first = w->last;
    }
    w->before = now;
}

static fsi_vec3 momentum(const fsi_sph *s)
{
    fsi_vec3 sum = fsi_v3(0, 0, 0);
    int i;
    for (i = 0; i < s->count; i++) sum = fsi_v3_madd(sum, s->particle_mass, s->velocity[i]);
    return sum;
}

/* Both liquids side by side. */
static void draw(ex_app *app, ex_scene *scene, fsi_surface *surface, fsi_sph *const *liquid, double ms, int frame)
{
    fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)(liquid[0]->count + liquid[1]->count), sizeof *x);
    int k, i, n = 0;
    for (k = 0; k < 2; k++)
        for (i = 0; i < liquid[k]->count; i++)
            x[n++] = fsi_v3_add(liquid[k]->position[i], fsi_v3(k ? 0.0015 : -0.0035, 0, 0));
    ex_draw_particles(app, scene, surface, x, n);
    ex_save_scene(app, scene, frame, "%.1f ms", ms);
    free(x);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_box3 view;
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_surface_desc skin = fsi_surface_default_desc();
    fsi_surface *surface;
    fsi_sph *liquid[2];
    fsi_vec3 before;
    swing w;
    double tension = 0.0728, amplitude = 0.2, start[2], laplace, dt;
    int frame, k;

    ex_init(&app, "sph_drop", "Drops of water swing and meet.");
    app.res = 16;
    app.res_help = "particles over the diameter of a drop";
    app.frames = 50;
    ex_real(&app, "tension", &tension, 1e-4, 10, "surface tension [N/m]");
    ex_real(&app, "amplitude", &amplitude, 0.01, 0.4, "of the swing, over the radius");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    desc.context = skin.context = &app.context;
    desc.spacing = skin.spacing = 2 * RADIUS / app.res;
    desc.gravity = fsi_v3(0, 0, 0);
    desc.surface_tension = tension;
    for (k = 0; k < 2; k++) ex_check(&app, fsi_sph_create(&liquid[k], &desc));
    ex_check(&app, fsi_surface_create(&surface, &skin));
    add_drop(&app, liquid[0], fsi_v3(0, 0, 0), fsi_v3(0, 0, 0));
    add_drop(&app, liquid[1], fsi_v3(-1.5 * RADIUS, 0, -OFFSET / 2), fsi_v3(SPEED, 0, 0));
    add_drop(&app, liquid[1], fsi_v3(1.5 * RADIUS, 0, OFFSET / 2), fsi_v3(-SPEED, 0, 0));
    calm(&app, liquid[0]);
    laplace = laplace_ratio(liquid[0]);
    start_swing(liquid[0], &w, amplitude);
    before = momentum(liquid[1]);
    for (k = 0; k < 2; k++) start[k] = liquid[k]->time;
    view.lo = fsi_v3(-0.005, -0.0015, -0.0018);
    view.hi = fsi_v3(0.0045, 0.0015, 0.0018);
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, view, 0, 12);

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < 2; k++) {
            const double end = start[k] + (frame + 1) * FRAME;
            while (liquid[k]->time < end - 1e-9) {
                dt = fmin((double)fsi_sph_suggest_dt(liquid[k]), end - liquid[k]->time);
                ex_check(&app, fsi_sph_step(liquid[k], dt));
                app.steps += liquid[k]->stats.substeps;
                if (k == 0) watch_swing(liquid[0], &w, dt);
            }
            ex_write_particles(&app, k ? "meeting" : "swinging", frame, liquid[k]->position, liquid[k]->velocity,
                               liquid[k]->count);
        }
        app.sim_seconds = liquid[1]->time;
        if (app.images) draw(&app, &scene, surface, liquid, 1000 * (frame + 1) * FRAME, frame);
        ex_progress(&app, frame + 1);
    }

    app.hash = 31 * fsi_sph_hash(liquid[0]) + fsi_sph_hash(liquid[1]);
    ex_figure(&app, "particles", "%.0f", liquid[0]->count + liquid[1]->count);
    ex_figure(&app, "period_ratio", "%.3f",
              w.crossings > 1 ? 2 * (w.last - w.first) / (w.crossings - 1) / rayleigh(liquid[0]) : 0);
    ex_figure(&app, "pressure_ratio", "%.3f", laplace);
    ex_figure(&app, "momentum_error", "%.1e",
              (double)fsi_v3_norm(fsi_v3_sub(momentum(liquid[1]), before)) /
                  (SPEED * (double)liquid[1]->particle_mass * liquid[1]->count / 2));
    for (k = 0; k < 2; k++) fsi_sph_destroy(liquid[k]);
    fsi_surface_destroy(surface);
    ex_scene_end(&scene);
    return ex_end(&app);
}
