/* cc -O3 -I. studies/flip/dam_break_flip.c -lm -o dam_break_flip && ./dam_break_flip
   SPDX-License-Identifier: MIT

   A column of water collapses and breaks over a box: the experiment of the Maritime Research Institute Netherlands
   (Kleefsman et al. 2005, J. Comput. Phys. 206, 363; SPHERIC benchmark 2), by particles that move with a grid. Plots
   compare two level gauges and eight pressure gauges with what was measured. volume= is the least volume of the liquid
   after the first second, over that at rest; inside= counts particles in the box or out of the tank at any time.

   The tank and the gauges: marin.h. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_flip.h"
#include "../../examples/kit/marin.h"

#define FRAME 0.04  /* seconds between two pictures */

typedef struct tally {
    double volume;
    int inside, substeps, iters;
} tally;

/* Pressures half a cell in front of the box at every step; levels when a sample is due. */
static void read_gauges(marin_record *r, const fsi_flip *s)
{
    const double dx = (double)s->desc.dx;
    double level[4];
    int k;
    for (k = 0; k < 8; k++) r->sum[k] += (double)fsi_flip_pressure_at(s, marin_pressure_point(k, dx / 2));
    r->steps++;
    if (s->time < r->count * MARIN_SAMPLE - 1e-9) return;
    for (k = 0; k < 4; k++)
        level[k] = marin_level_of_particles(s->position, s->count, (double)s->spacing, marin_gauge_x[k]);
    marin_read(r, s->time, level);
}

/* The box of the grid is higher than the tank: what splashes up comes down again. */
static fsi_flip *make_water(ex_app *app, const fsi_mesh *obstacle, int apic)
{
    fsi_flip_desc d = fsi_flip_default_desc();
    fsi_flip *s;
    d.context = &app->context;
    d.n[0] = (int)(3.22 * app->res + 0.5);
    d.n[1] = app->res;
    d.n[2] = 2 * app->res;
    d.dx = (fsi_real)(1.0 / app->res);
    d.transfer = apic ? FSI_FLIP_APIC : FSI_FLIP_FLIP;
    ex_check(app, fsi_flip_create(&s, &d));
    ex_check(app, fsi_flip_add_mesh(s, obstacle, NULL));
    ex_check(app, fsi_flip_fill_box(s, ex_box3(d.n[0] / (double)app->res - 1.228, 0, 0, d.n[0] / (double)app->res, 1,
        MARIN_DEPTH), fsi_v3(0, 0, 0), NULL));
    return s;
}

static void step(ex_app *app, tally *t, fsi_flip *s)
{
    ex_check(app, fsi_flip_step(s, (fsi_real)(MARIN_SAMPLE / 2)));
    app->steps++;
    app->sim_seconds = s->time;
    t->substeps += s->stats.substeps;
    t->iters += s->stats.iters;
    if (s->time > 1)
        t->volume = fmin(t->volume, s->stats.volume * (double)s->desc.density / (s->count * (double)s->particle_mass));
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    tally t;
    marin_record gauges;
    fsi_mesh *obstacle;
    fsi_flip *s;
    fsi_surface *surface;
    int apic = 0, frame;

    memset(&t, 0, sizeof t);
    t.volume = 1;
    ex_init(&app, "dam_break_flip", "Water breaks over a box, compared with the MARIN experiment.");
    app.res = 20;
    app.res_help = "cells over the width of the tank, 1 m";
    app.frames = 45;
    ex_flag(&app, "apic", &apic, "particles carry gradients of velocity");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 8 || app.res > 200) ex_die("--res is not between 8 and 200");
    obstacle = marin_obstacle(&app);
    s = make_water(&app, obstacle, apic);
    surface = ex_particle_surface(&app, (double)s->spacing);
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)3.22, 1, (fsi_real)MARIN_TOP), 24, 18);
    gauges = marin_begin(app.frames * FRAME);

    read_gauges(&gauges, s);
    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            step(&app, &t, s);
            read_gauges(&gauges, s);
        }
        t.inside += fsi_flip_count_inside(s, NULL);
        if (app.images) {
            ex_draw_particles(&app, &scene, surface, s->position, s->count);
            marin_picture(&app, &scene, obstacle, s->time, frame);
        }
        ex_write_particles(&app, "water", frame, s->position, s->velocity, s->count);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "particles", "%.0f", (double)s->count);
    ex_figure(&app, "substeps", "%.0f", (double)t.substeps);
    ex_figure(&app, "iters", "%.1f", t.substeps > 0 ? t.iters / (double)t.substeps : 0);
    ex_figure(&app, "inside", "%.0f", (double)t.inside);
    ex_figure(&app, "volume", "%.4f", t.volume);
    marin_end(&app, &gauges);
    ex_scene_end(&scene);
    fsi_surface_destroy(surface);
    app.hash = fsi_flip_hash(s);
    fsi_flip_destroy(s);
    fsi_mesh_destroy(obstacle);
    return ex_end(&app);
}
