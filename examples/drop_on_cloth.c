/* cc -O3 -I. examples/drop_on_cloth.c -lm -o drop_on_cloth && ./drop_on_cloth
   SPDX-License-Identifier: MIT

   A drop of water falls on a soft cloth that is held by its four corners, sinks in, is thrown up, and comes down again
   (with --frames 120 again and again): the level set and the cloth move together, positions in one optimisation, then
   velocities. min_distance= is the smallest distance of the liquid from any sample of the cloth at any time, over the
   size of a cell: above 0, nothing ever passed through. below= counts cells of liquid under the cloth, at any time: 0.
   bounces= how often the drop rose again. couple_tally.h explains the other figures.
   --tension 0.5 --damping 0.002 is the paper's other drop, which comes to rest. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_couple.h"
#include "kit/couple_tally.h"
#include "kit/couple_look.h"

#define BOX 0.08      /* width and height of the air around it [m] */
#define CLOTH 0.045   /* width of the cloth */
#define HEIGHT 0.03   /* of its corners */
#define RADIUS 0.0105 /* of the drop */
#define FRAME 0.005   /* seconds between two pictures */

static fsi_shell *make_cloth(ex_app *app, int n, double damping)
{
    const double lo = (BOX - CLOTH) / 2, hi = (BOX + CLOTH) / 2;
    ex_mesh mesh = ex_grid(fsi_v3(lo, lo, HEIGHT), fsi_v3(hi, hi, HEIGHT), n, n);
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = ex_cloth_desc(app, &mesh, &m);
    fsi_shell *cloth;
    int k;
    m.density = 1000;
    m.thickness = 0.0002;
    m.young = 1e5;
    m.damping_stiffness = damping;
    ex_check(app, fsi_shell_create(&cloth, &d));
    for (k = 0; k < 4; k++) cloth->pinned[(k & 1 ? n : 0) + (k & 2 ? n * (n + 1) : 0)] = 1;
    ex_mesh_free(&mesh);
    return cloth;
}

static fsi_levelset *make_drop(ex_app *app, double speed, double tension)
{
    const fsi_vec3 center = fsi_v3(BOX / 2, BOX / 2, HEIGHT + 1.4 * RADIUS);
    fsi_levelset_desc d = fsi_levelset_default_desc();
    fsi_levelset *liquid;
    d.context = &app->context;
    d.n[0] = d.n[1] = d.n[2] = app->res;
    d.dx = BOX / app->res;
    d.surface_tension = tension;
    ex_check(app, fsi_levelset_create(&liquid, &d));
    ex_check(app, fsi_levelset_fill_sphere(liquid, center, RADIUS, fsi_v3(0, 0, -speed), NULL));
    return liquid;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_couple_desc d = fsi_couple_default_desc();
    fsi_couple *both;
    fsi_grid_surface *surface;
    ex_couple_tally tally = { 0 };
    double speed = 0.5, tension = 0.02, damping = 0, before = 0;
    int frame, below = 0, bounces = 0;

    ex_init(&app, "drop_on_cloth", "A drop falls on a soft cloth and is thrown up again.");
    app.res = 48;
    app.res_help = "cells along the box";
    app.frames = 32;
    ex_real(&app, "speed", &speed, 0, 5, "of the drop at first [m/s]");
    ex_real(&app, "tension", &tension, 0, 2, "surface tension [N/m]");
    ex_real(&app, "damping", &damping, 0, 1, "of the cloth's strains [s]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    d.liquid = make_drop(&app, speed, tension);
    d.shell = make_cloth(&app, (int)(app.res * 109 / 192.0 + 0.5), damping);
    ex_check(&app, fsi_couple_create(&both, &d));
    ex_check(&app, fsi_grid_surface_create(&surface, &app.context));
    scene = ex_scene_of_box(&app, fsi_v3(0.018, 0.018, 0.017), fsi_v3(0.062, 0.062, 0.055), 24, 18);

    for (frame = 0; frame < app.frames; frame++) {
        double up;
        ex_couple_step(&app, &tally, both, FRAME);
        below += ex_count_below(d.liquid, d.shell);
        up = d.liquid->stats.momentum[2];
        bounces += before < 0 && up > 0;
        if (up < 0 || up > 0) before = up;
        if (app.images) {
            ex_draw_liquid(&app, &scene, surface, d.liquid);
            ex_draw_cloth(&scene, d.shell, 0.0002, 0xc8432f, 0xe9c9a8);
            ex_save_scene(&app, &scene, frame, "%.0f ms", 1000 * app.sim_seconds);
        }
        ex_progress(&app, frame + 1);
    }

    ex_couple_figures(&app, &tally, both);
    ex_figure(&app, "below", "%.0f", below);
    ex_figure(&app, "bounces", "%.0f", bounces);
    ex_couple_end(both, surface, &scene);
    return ex_end(&app);
}
