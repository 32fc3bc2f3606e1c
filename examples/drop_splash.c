/* cc -O3 -I. examples/drop_splash.c -lm -o drop_splash && ./drop_splash
   SPDX-License-Identifier: MIT

   A drop of water, 6 mm wide, falls into a pool at 2.5 m/s: a crown rises and sinks, the crater closes, a jet shoots up
   out of it and may release droplets, all of it on a level set with surface tension. Liquid too thin for the grid is
   kept as droplets, drawn as balls of water. volume_error= is the largest |volume/target - 1| at the end of a step,
   drift= the relative change of the volume over the run, lost= the fraction of the liquid that is lost for good,
   in_droplets= the largest fraction that was in droplets at once, components= the largest number of components. --free
   moves the same liquid without the volume correction: then liquid too thin for the grid is lost. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_levelset.h"
#include "kit/levelset_tally.h"

#define BOX 0.04      /* width of the tank [m] */
#define POOL 0.012    /* depth of the water [m] */
#define RADIUS 0.003  /* of the drop [m] */
#define FRAME 0.002   /* seconds between two pictures */

/* The drop falls a little off the middle: a crown of exact symmetry does not exist. */
static fsi_levelset *make_water(ex_app *app, double speed, double tension, int conserve)
{
    const fsi_vec3 above = fsi_v3(0.51 * BOX, 0.493 * BOX, POOL + 1.5 * RADIUS);
    fsi_levelset_desc d = fsi_levelset_default_desc();
    fsi_levelset *s;
    d.context = &app->context;
    d.n[0] = d.n[1] = d.n[2] = app->res;
    d.dx = BOX / app->res;
    d.surface_tension = tension;
    d.cfl = 1.5;
    d.conserve_volume = conserve;
    ex_check(app, fsi_levelset_create(&s, &d));
    ex_check(app, fsi_levelset_fill_box(s, ex_box3(0, 0, 0, BOX, BOX, POOL), fsi_v3(0, 0, 0), NULL));
    ex_check(app, fsi_levelset_fill_sphere(s, above, RADIUS, fsi_v3(0, 0, -speed), NULL));
    return s;
}

/* Droplets are balls of their volume. */
static void draw(ex_app *app, ex_scene *scene, fsi_grid_surface *surface, const fsi_levelset *s, int frame)
{
    int k;
    ex_draw_liquid(app, scene, surface, s);
    for (k = 0; k < s->droplet_count; k++) {
        ex_mesh ball = ex_sphere(s->droplet[k].position, cbrt(3 * s->droplet[k].volume / (4 * FSI_PI)), 2);
        ex_draw_surface(scene, ball.vertices, NULL, ball.vertex_count, ball.triangles, ball.triangle_count);
        ex_mesh_free(&ball);
    }
    ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    ex_save_scene(app, scene, frame, "%.0f ms", 1000 * s->time);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_levelset_tally tally = { 0 };
    fsi_levelset *s;
    fsi_grid_surface *surface;
    double speed = 2.5, tension = 0.0728, in_droplets = 0, start;
    int free_volume = 0, components = 0, frame;

    ex_init(&app, "drop_splash", "A drop falls into a pool.");
    app.res = 56;
    app.res_help = "cells along each edge of the tank";
    app.frames = 32;
    ex_real(&app, "speed", &speed, 0.1, 10, "of the drop [m/s]");
    ex_real(&app, "tension", &tension, 0, 1, "surface tension [N/m]");
    ex_flag(&app, "free", &free_volume, "what advection loses is lost");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    s = make_water(&app, speed, tension, !free_volume);
    start = s->stats.volume;
    ex_check(&app, fsi_grid_surface_create(&surface, &app.context));
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3(BOX, BOX, 0.6 * BOX), 25, 18);

    for (frame = 0; frame < app.frames; frame++) {
        const double end = (frame + 1) * FRAME;
        while (s->time < end - 1e-9) {
            ex_levelset_step(&app, &tally, s, fmin(fsi_levelset_suggest_dt(s), end - s->time));
            in_droplets = fmax(in_droplets, s->stats.droplet_volume / start);
            if (s->component_count > components) components = s->component_count;
        }
        if (app.images) draw(&app, &scene, surface, s, frame);
        ex_progress(&app, frame + 1);
    }

    ex_levelset_figures(&app, &tally, s);
    ex_figure(&app, "drift", "%.2e", s->stats.volume / start - 1);
    ex_figure(&app, "lost", "%.1e", s->stats.lost_volume / start);
    ex_figure(&app, "in_droplets", "%.1e", in_droplets);
    ex_figure(&app, "components", "%.0f", components);
    fsi_grid_surface_destroy(surface);
    fsi_levelset_destroy(s);
    ex_scene_end(&scene);
    return ex_end(&app);
}
