/* cc -O3 -I. examples/drop_rod.c -lm -o drop_rod && ./drop_rod
   SPDX-License-Identifier: MIT

   A drop of water, 3 mm wide, falls on an elastic rod that is held at both ends, is cut open from below, and closes
   again behind the rod. ringed= is for how long liquid went all the way round the middle of the rod [ms]; passed= the
   share of the liquid below the rod at the end, whole= the share of it in the largest drop; sag= how far the middle of
   the rod ever went down, over the drop's radius. couple_tally.h explains the other figures. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_couple.h"
#include "kit/couple_tally.h"
#include "kit/couple_look.h"

#define WIDTH 0.008   /* of the box, and length of the rod [m] */
#define TALL 0.012    /* height of the box */
#define HEIGHT 0.007  /* of the rod */
#define THICK 0.00005 /* its radius */
#define RADIUS 0.0015 /* of the drop */
#define FRAME 0.0005  /* seconds between two pictures */

static fsi_shell *make_rod(ex_app *app, double dx)
{
    int i, n = 2 * (int)floor(WIDTH / dx / 2 + 0.5); /* segments as long as a cell */
    ex_chain chain = ex_chain_make(n + 1);
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = ex_chain_desc(app, &chain, &m);
    fsi_shell *rod;
    for (i = 0; i <= n; i++) chain.vertices[i] = fsi_v3(WIDTH * i / n, WIDTH / 2, HEIGHT);
    m.radius = THICK;
    m.young = 5e6;
    m.twist = 0;
    ex_check(app, fsi_shell_create(&rod, &d));
    rod->pinned[0] = rod->pinned[n] = 1;
    ex_chain_free(&chain);
    return rod;
}

static fsi_levelset *make_drop(ex_app *app, double dx)
{
    const fsi_vec3 center = fsi_v3(WIDTH / 2, WIDTH / 2, HEIGHT + 1.5 * RADIUS);
    fsi_levelset_desc d = fsi_levelset_default_desc();
    fsi_levelset *liquid;
    d.context = &app->context;
    d.n[0] = d.n[1] = (int)ceil(WIDTH / dx - 1e-6);
    d.n[2] = app->res;
    d.dx = dx;
    d.surface_tension = 0.0728;
    d.cfl = 1;
    ex_check(app, fsi_levelset_create(&liquid, &d));
    ex_check(app, fsi_levelset_fill_sphere(liquid, center, RADIUS, fsi_v3(0, 0, -0.28), NULL));
    return liquid;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_couple_tally tally = { 0 };
    fsi_couple_desc d = fsi_couple_default_desc();
    fsi_couple *both;
    fsi_grid_surface *surface;
    fsi_vec3 middle = fsi_v3(0, 0, HEIGHT);
    double sag = 0;
    int frame, ringed = 0;

    ex_init(&app, "drop_rod", "A drop falls on an elastic rod and passes it.");
    app.res = 96;
    app.res_help = "cells along the height of the box";
    app.frames = 50;
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    d.shell = make_rod(&app, TALL / app.res);
    d.liquid = make_drop(&app, TALL / app.res);
    ex_check(&app, fsi_couple_create(&both, &d));
    ex_check(&app, fsi_grid_surface_create(&surface, &app.context));
    scene = ex_scene_begin(&app);
    scene.width = 600;
    scene.height = 800;
    ex_look_at_box(&scene, ex_box3(0.1 * WIDTH, 0.2 * WIDTH, 0, 0.9 * WIDTH, 0.8 * WIDTH, 0.92 * TALL), 55, 6);

    for (frame = 0; frame < app.frames; frame++) {
        ex_couple_step(&app, &tally, both, FRAME);
        middle = d.shell->position[d.shell->vertex_count / 2];
        ringed += ex_is_ringed(d.liquid, middle);
        sag = fmax(sag, HEIGHT - middle.z);
        if (app.images) {
            ex_draw_liquid(&app, &scene, surface, d.liquid);
            ex_draw_rod(&scene, d.shell->position, d.shell->vertex_count, THICK, NULL, 0xc8432f);
            ex_save_scene(&app, &scene, frame, "%.1f ms", 1000 * app.sim_seconds);
        }
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "ringed", "%.1f", 1000 * FRAME * ringed);
    ex_figure(&app, "passed", "%.3f", 1 - ex_share_above(d.liquid, middle.z));
    ex_figure(&app, "whole", "%.3f", ex_share_of_largest(d.liquid));
    ex_figure(&app, "sag", "%.2f", sag / RADIUS);
    ex_couple_figures(&app, &tally, both);
    ex_couple_end(both, surface, &scene);
    return ex_end(&app);
}
