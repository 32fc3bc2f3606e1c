/* cc -O3 -I. examples/dam_break_grid.c -lm -o dam_break_grid && ./dam_break_grid
   SPDX-License-Identifier: MIT

   The dam break of dam_break.c, there with particles, here with a level set on a grid: water breaks over a box, and
   plots compare level gauges and pressure gauges with the experiment (marin.h). The box is a mesh that cuts the grid's
   cells. --res 40 --frames 125 is the size of the data's own recommendation, to 5 s. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_levelset.h"
#include "kit/levelset_tally.h"
#include "kit/marin.h"

#define FRAME 0.04 /* seconds between two pictures */

/* Where a column 2 dx wide is half liquid. The share of a point is 0 to 1 over the cell in which phi crosses 0. */
static double level_at(const fsi_levelset *s, double x)
{
    double filled[MARIN_BINS + 1], dx = s->desc.dx;
    int i, k;
    for (k = 0; k <= MARIN_BINS; k++) {
        for (filled[k] = 0, i = 0; i < 9; i++) {
            fsi_vec3 p = fsi_v3(x + (i % 3 - 1) * dx, 0.5 + (i / 3 - 1) * dx, k * MARIN_TOP / MARIN_BINS);
            filled[k] += fmin(fmax(0.5 - fsi_levelset_phi_at(s, p) / dx, 0), 1) / 9;
        }
    }
    return marin_level_of(filled);
}

/* Pressures at cells in front of the box: nearer ones are in it, where there is no pressure. */
static void read_gauges(marin_record *r, const fsi_levelset *s)
{
    double level[4];
    int k;
    for (k = 0; k < 8; k++)
        r->sum[k] += fsi_levelset_pressure_at(s, marin_pressure_cell(k, s->desc.origin, s->desc.dx));
    r->steps++;
    for (k = 0; k < 4; k++) level[k] = level_at(s, marin_gauge_x[k]);
    marin_read(r, s->time, level);
}

/* The wall at x = 3.22 m, where the water stands, is exact; the other end falls on a side of a cell. */
static fsi_levelset *make_water(ex_app *app, int across, const fsi_mesh *obstacle)
{
    fsi_levelset_desc desc = fsi_levelset_default_desc();
    fsi_levelset *s;
    desc.context = &app->context;
    desc.dx = 1.0 / across;
    desc.n[0] = (int)floor(3.22 * across + 0.5);
    desc.n[1] = across;
    desc.n[2] = 2 * across; /* higher than the tank: what splashes up comes down again */
    desc.origin.x = 3.22 - (double)desc.n[0] / across;
    ex_check(app, fsi_levelset_create(&s, &desc));
    ex_check(app, fsi_levelset_add_mesh(s, obstacle, NULL));
    ex_check(app, fsi_levelset_fill_box(s, ex_box3(1.992, 0, 0, 3.22, 1, MARIN_DEPTH), fsi_v3(0, 0, 0), NULL));
    return s;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_levelset_tally tally = { 0 };
    marin_record gauges;
    fsi_mesh *obstacle;
    fsi_levelset *s;
    fsi_grid_surface *skin;
    int frame;

    ex_init(&app, "dam_break_grid", "Water breaks over a box, on a grid, compared with the MARIN experiment.");
    app.res = 20;
    app.res_help = "cells over the width of the tank: dx = 1 m / res";
    app.frames = 60;
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    obstacle = marin_obstacle(&app);
    s = make_water(&app, app.res, obstacle);
    ex_check(&app, fsi_grid_surface_create(&skin, &app.context));
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3(3.22, 1, MARIN_TOP), 24, 18);
    gauges = marin_begin(app.frames * FRAME);
    read_gauges(&gauges, s);
    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            ex_levelset_step(&app, &tally, s, MARIN_SAMPLE);
            read_gauges(&gauges, s);
        }
        ex_write_liquid(&app, skin, s, frame);
        if (app.images) {
            ex_draw_liquid(&app, &scene, skin, s);
            marin_picture(&app, &scene, obstacle, s->time, frame);
        }
        ex_progress(&app, frame + 1);
    }

    marin_end(&app, &gauges);
    ex_levelset_figures(&app, &tally, s);
    ex_scene_end(&scene);
    fsi_grid_surface_destroy(skin);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(obstacle);
    return ex_end(&app);
}
