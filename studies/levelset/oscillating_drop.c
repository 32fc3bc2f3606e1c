/* cc -O3 -I. studies/levelset/oscillating_drop.c -lm -o oscillating_drop && ./oscillating_drop
   SPDX-License-Identifier: MIT

   A drop of water, 2 mm wide, without gravity and viscosity, is stretched a little and let go: it swings between a
   cigar and a disc, in 3D and as a round column in 2D. Nothing but the tension in N/m sets the pace. frequency_2d=,
   frequency_3d= are measured over Rayleigh's,

      omega^2 = n (n^2 - 1) gamma/(rho R^3) in 2D,     n (n - 1) (n + 2) gamma/(rho R^3) in 3D,     n = 2,

   frequency_error= is the larger of the two errors; damping_2d=, damping_3d= the share of the swing that one period
   takes, which in a liquid without viscosity is the grid's doing. oscillating_drop.png shows the radius over time
   beside a sine of Rayleigh's period; --frames counts quarters of it. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_levelset.h"

#define RADIUS 0.001  /* [m] */
#define BOX 0.003     /* [m] */
#define DENSITY 1000  /* [kg/m^3] */
#define CROSSINGS 16

/* A drop; elongations are what mode 2 adds to its radius along x, over R. swing[i]: the largest between crossings i and
   i + 1 [period]. */
typedef struct drop {
    fsi_levelset *s;
    int dim, crossings, samples, capacity;
    double period, rest, before, last;
    double crossing[CROSSINGS], swing[CROSSINGS + 1];
    double *time, *radius, *exact;
} drop;

static double rayleigh_period(int dim, double tension)
{
    return 2 * FSI_PI * sqrt(DENSITY * pow(RADIUS, 3) / ((dim == 2 ? 6 : 8) * tension));
}

/* From the extents along x and y: where x gains 1, y loses 1 in 2D, 1/2 in 3D. */
static double elongation(const fsi_levelset *s)
{
    const fsi_box3 box = s->component[0].shape.box;
    return ((double)(box.hi.x - box.lo.x) - (double)(box.hi.y - box.lo.y)) /
           (2 * RADIUS * (s->desc.dim == 2 ? 2 : 1.5));
}

/* Velocities of mode 2, the gradient of a harmonic function, that would stretch the drop by `amplitude` R along x in a
   quarter of a period. */
static void push(fsi_levelset *s, double rate, double across)
{
    const fsi_grid *g = s->grid;
    int a, b, e;
    for (a = 0; a < g->dim; a++) {
        for (b = 0; b < g->block_count; b++) {
            int corner[3];
            fsi_grid_corner(g, b, corner);
            for (e = 0; e < g->block_cells; e++) {
                const fsi_vec3 x = fsi_grid_position(g, (fsi_grid_place)((int)FSI_FACES_X + a), corner[0] + (e & 7),
                                                     corner[1] + (e >> 3 & 7), corner[2] + (e >> 6));
                const double r = (double)(a == 0 ? x.x : (a == 1 ? x.y : x.z)) - BOX / 2;
                s->u[a]->value[b * g->block_cells + e] = (fsi_real)(rate * r * (a == 0 ? 1 : across));
            }
        }
    }
}

static void make_drop(ex_app *app, drop *d, int dim, double tension, double amplitude)
{
    fsi_levelset_desc desc = fsi_levelset_default_desc();
    memset(d, 0, sizeof *d);
    d->dim = dim;
    d->period = rayleigh_period(dim, tension);
    desc.context = &app->context;
    desc.dim = dim;
    desc.n[0] = desc.n[1] = desc.n[2] = (int)(app->res * BOX / (2 * RADIUS) + 0.5);
    desc.dx = (fsi_real)(BOX / desc.n[0]);
    desc.density = DENSITY;
    desc.surface_tension = (fsi_real)tension;
    desc.gravity = fsi_v3(0, 0, 0);
    ex_check(app, fsi_levelset_create(&d->s, &desc));
    ex_check(app, fsi_levelset_fill_sphere(d->s, fsi_v3((fsi_real)(BOX / 2), (fsi_real)(BOX / 2), (fsi_real)(BOX / 2)),
                                           (fsi_real)RADIUS, fsi_v3(0, 0, 0), NULL));
    d->rest = elongation(d->s);
    push(d->s, amplitude * 2 * FSI_PI / d->period, dim == 2 ? -1 : -0.5);
}

static void add_sample(drop *d, double q)
{
    if (d->samples == d->capacity) {
        d->capacity = 2 * d->capacity + 256;
        d->time = (double *)ex_alloc(d->time, (size_t)d->capacity, sizeof(double));
        d->radius = (double *)ex_alloc(d->radius, (size_t)d->capacity, sizeof(double));
        d->exact = (double *)ex_alloc(d->exact, (size_t)d->capacity, sizeof(double));
    }
    d->time[d->samples] = d->s->time / d->period;
    d->radius[d->samples++] = q;
}

/* After a step: notes the elongation, its passages through rest, and the largest value between them. */
static void watch(drop *d)
{
    const double now = d->s->time / d->period, q = elongation(d->s) - d->rest;
    add_sample(d, q);
    if (d->before > 0 && d->last * q < 0 && d->crossings < CROSSINGS)
        d->crossing[d->crossings++] = d->before + (now - d->before) * d->last / (d->last - q);
    d->swing[d->crossings] = fmax(d->swing[d->crossings], fabs(q));
    d->last = q;
    d->before = now;
}

/* Measured frequency over Rayleigh's, from the first crossing to the last. */
static double frequency(const drop *d)
{
    return d->crossings > 1 ? 0.5 * (d->crossings - 1) / (d->crossing[d->crossings - 1] - d->crossing[0]) : 0;
}

/* Share of the swing lost a period, from the first whole half swing to the last. */
static double damping(const drop *d)
{
    const int halves = d->crossings - 2;
    return halves > 0 ? 1 - pow(d->swing[halves + 1] / d->swing[1], 2.0 / halves) : 0;
}

static void plot(ex_app *app, drop *d, int count)
{
    static const char *const names[2] = { "2D", "3D" };
    ex_plot p = ex_plot_begin("A drop swings in mode 2", "time / Rayleigh's period", "radius along x / R - 1");
    int k, i, longest = 0;
    for (k = 0; k < count; k++) {
        ex_plot_series(&p, names[d[k].dim - 2], d[k].time, d[k].radius, d[k].samples, EX_MARK_LINE);
        if (d[k].samples > d[longest].samples) longest = k;
    }
    for (i = 0; i < d[longest].samples; i++)
        d[longest].exact[i] = d[longest].swing[0] * sin(2 * FSI_PI * d[longest].time[i]);
    ex_plot_series(&p, "Rayleigh, undamped", d[longest].time, d[longest].exact, d[longest].samples, EX_MARK_DASHES);
    ex_plot_save(app, &p, "oscillating_drop.png");
}

int main(int argc, char **argv)
{
    static const char *const names[2][2] = { { "frequency_2d", "damping_2d" }, { "frequency_3d", "damping_3d" } };
    ex_app app;
    drop d[2];
    double tension = 0.0728, amplitude = 0.05, worst = 0;
    int dim = 0, count = 0, frame, k;

    ex_init(&app, "oscillating_drop", "A drop swings in 2D and 3D, beside Rayleigh's frequency.");
    app.res = 16;
    app.res_help = "cells over the diameter of the drop";
    app.frames = 12;
    ex_int(&app, "dim", &dim, 2, 3, "2 or 3 dimensions; both when not given");
    ex_real(&app, "tension", &tension, 1e-4, 10, "surface tension [N/m]");
    ex_real(&app, "amplitude", &amplitude, 0.005, 0.4, "of the swing, over the radius");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    for (k = 2; k <= 3; k++)
        if (dim == 0 || dim == k) make_drop(&app, &d[count++], k, tension, amplitude);
    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < count; k++) {
            const double end = 0.25 * (frame + 1) * d[k].period;
            while (d[k].s->time < end * (1 - 1e-9)) {
                ex_check(&app, fsi_levelset_step(d[k].s, (fsi_real)fmin((double)fsi_levelset_suggest_dt(d[k].s),
                                                                        end - d[k].s->time)));
                app.steps += d[k].s->stats.substeps;
                watch(&d[k]);
            }
            app.sim_seconds = d[k].s->time;
        }
        ex_progress(&app, frame + 1);
    }

    plot(&app, d, count);
    for (k = 0; k < count; k++) {
        const double f = frequency(&d[k]);
        worst = fmax(worst, fabs(f - 1));
        ex_figure(&app, names[d[k].dim - 2][0], "%.4f", f);
        ex_figure(&app, names[d[k].dim - 2][1], "%.3f", damping(&d[k]));
        app.hash = 31 * app.hash + fsi_levelset_hash(d[k].s);
        fsi_levelset_destroy(d[k].s);
        free(d[k].time);
        free(d[k].radius);
        free(d[k].exact);
    }
    ex_figure(&app, "frequency_error", "%.4f", worst);
    return ex_end(&app);
}
