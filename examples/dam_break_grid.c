/* cc -O3 -I. examples/dam_break_grid.c -lm -o dam_break_grid && ./dam_break_grid
   SPDX-License-Identifier: MIT

   The dam break of dam_break.c, there with particles, here with a level set on a grid: water breaks over a box, and plots compare two level
   gauges and eight pressure gauges with the experiment (marin.h). The box is a mesh that cuts the grid's cells. h2_rms= and
   h4_rms= mean what they do there; h1_arrival= and h3_arrival= are when the front comes to the two other gauges (measured:
   0.920 and 0.218 s), p1_error= and p3_error= the mean pressures from 0.6 to 0.9 s beside the measured ones. --dx 25 --frames 125
   is the size of the data's own recommendation, to 5 s. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_levelset.h"
#include "kit/marin.h"

#define FRAME 0.04 /* seconds between two pictures */
#define WET 0.02   /* level at which the front has arrived */

/* The share of a column 2 dx wide that is liquid, bin by bin; a point is 0 to 1, over the cell in which phi crosses 0. */
static double level_at(const fsi_levelset *s, double x, double y)
{
    double filled[MARIN_BINS + 1], dx = (double)s->desc.dx;
    int i, k;
    for (k = 0; k <= MARIN_BINS; k++) {
        for (filled[k] = 0, i = 0; i < 9; i++) {
            fsi_vec3 p = fsi_v3((fsi_real)(x + (i % 3 - 1) * dx), (fsi_real)(y + (i / 3 - 1) * dx), (fsi_real)(k * MARIN_TOP / MARIN_BINS));
            filled[k] += fmin(fmax(0.5 - (double)fsi_levelset_phi_at(s, p) / dx, 0), 1) / 9;
        }
    }
    return marin_level_of(filled);
}

/* At the first centres of cells in front of the box: nearer ones are in it, where there is no pressure. */
static void add_pressures(marin_record *r, const fsi_levelset *s)
{
    const fsi_real dx = s->desc.dx;
    int k;
    for (k = 0; k < 8; k++) {
        fsi_vec3 p = marin_pressure_point(k, 0);
        fsi_real *at = k < 4 ? &p.x : &p.z, origin = k < 4 ? s->desc.origin.x : s->desc.origin.z;
        *at = origin + (fsi_real)(ceil((double)((*at - origin) / dx) - 0.5) + 0.5) * dx;
        r->sum[k] += (double)fsi_levelset_pressure_at(s, p);
    }
    r->steps++;
}

/* The wall at x = 3.22 m, where the water stands, is exact; the other end falls on a side of a cell. */
static fsi_levelset *make_water(ex_app *app, int across, const fsi_mesh *obstacle)
{
    fsi_levelset_desc desc = fsi_levelset_default_desc();
    fsi_levelset *s;
    desc.context = &app->context;
    desc.dx = (fsi_real)(1.0 / across);
    desc.n[0] = (int)floor(3.22 * across + 0.5);
    desc.n[1] = across;
    desc.n[2] = 2 * across; /* higher than the tank: what splashes up comes down again */
    desc.origin.x = (fsi_real)(3.22 - (double)desc.n[0] / across);
    ex_check(app, fsi_levelset_create(&s, &desc));
    ex_check(app, fsi_levelset_add_mesh(s, obstacle, NULL));
    ex_check(app, fsi_levelset_fill_box(s, marin_box(1.992, 0, 0, 3.22, 1, MARIN_DEPTH), fsi_v3(0, 0, 0), NULL));
    return s;
}

static void show(ex_app *app, ex_scene *scene, fsi_grid_surface *skin, const fsi_levelset *s, const fsi_mesh *box, int frame)
{
    char text[64];
    ex_image *image;
    ex_check(app, fsi_levelset_update_surface(s, skin, 1));
    ex_write_triangles(app, "water", frame, skin->vertices, skin->vertex_count, skin->elements, skin->element_count);
    if (!app->images) return;
    ex_draw_surface(scene, skin->vertices, NULL, skin->vertex_count, skin->elements, skin->element_count);
    ex_draw_mesh(scene, box->vertices, NULL, box->vertex_count, box->faces, box->face_count, 0xd9783b);
    ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    image = ex_render(scene);
    snprintf(text, sizeof text, "%.2f s", s->time);
    ex_text(image, 24, 34, 11, EX_LEFT, 0x3a4550, text);
    ex_save_frame(app, image, frame);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    marin_record gauges;
    fsi_mesh *obstacle;
    fsi_levelset *s;
    fsi_grid_surface *skin;
    double dx = 0, h1_arrival = 0, h3_arrival = 0, worst = 0, busy = 0;
    int frame;

    ex_init(&app, "dam_break_grid", "Water breaks over a box, on a grid, compared with the MARIN experiment.");
    app.res = 20;
    app.res_help = "cells over the width of the tank: dx = 1 m / res";
    app.frames = 60;
    ex_real(&app, "dx", &dx, 0, 100, "edge of a cell [mm], rounded to a part of 1 m; 0: by --res");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    obstacle = marin_obstacle(&app);
    s = make_water(&app, dx > 0 ? (int)(1000 / dx + 0.5) : app.res, obstacle);
    ex_check(&app, fsi_grid_surface_create(&skin, &app.context));
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, marin_box(0, 0, 0, 3.22, 1, MARIN_TOP), 24, 18);
    gauges = marin_begin(app.frames * FRAME);

    add_pressures(&gauges, s);
    marin_read(&gauges, 0, level_at(s, 0.992, 0.5), level_at(s, 2.638, 0.5));
    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            const double before = ex_cpu_seconds();
            ex_check(&app, fsi_levelset_step(s, (fsi_real)MARIN_SAMPLE));
            busy += ex_cpu_seconds() - before;
            app.steps += s->stats.substeps;
            worst = fmax(worst, fabs(s->stats.volume_error));
            add_pressures(&gauges, s);
            marin_read(&gauges, s->time, level_at(s, 0.992, 0.5), level_at(s, 2.638, 0.5));
            if (!(h1_arrival > 0) && level_at(s, 0.496, 0.5) > WET) h1_arrival = s->time;
            if (!(h3_arrival > 0) && level_at(s, 1.488, 0.5) > WET) h3_arrival = s->time;
        }
        app.sim_seconds = s->time;
        show(&app, &scene, skin, s, obstacle, frame);
        ex_progress(&app, frame + 1);
    }

    app.hash = fsi_levelset_hash(s);
    marin_figures(&app, &gauges);
    ex_figure(&app, "h1_arrival", "%.2f", h1_arrival);
    ex_figure(&app, "h3_arrival", "%.2f", h3_arrival);
    ex_figure(&app, "p1_error", "%.3f", marin_pressure_error(&gauges, 0, 0.6, 0.9));
    ex_figure(&app, "p3_error", "%.3f", marin_pressure_error(&gauges, 2, 0.6, 0.9));
    ex_figure(&app, "volume_error", "%.1e", worst);
    ex_figure(&app, "seconds_per_step", "%.4f", busy / (double)app.steps);
    marin_free(&gauges);
    ex_scene_end(&scene);
    fsi_grid_surface_destroy(skin);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(obstacle);
    return ex_end(&app);
}
