/* cc -O3 -I. examples/drop_splash.c -lm -o drop_splash && ./drop_splash
   SPDX-License-Identifier: MIT

   A drop of water, 6 mm wide, falls into a pool at 2.5 m/s: a crown rises and sinks, the crater closes, a jet shoots up out of it
   and may let go of droplets, all of it on a level set with surface tension. What is too thin for the grid goes on as droplets, drawn as balls.
   volume_error= is the largest |volume/target - 1| that any step ended with, drift= how far the volume is from that of the start in the end,
   lost= the share of liquid that is gone for good, in_droplets= the largest share that was in droplets at once, components= the most pieces
   there were at once. --free moves the same liquid without putting its volume right: there what is too thin is lost. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_levelset.h"

#define BOX 0.04      /* width of the tank [m] */
#define POOL 0.012    /* depth of the water [m] */
#define RADIUS 0.003  /* of the drop [m] */
#define FRAME 0.002   /* seconds between two pictures */

static fsi_levelset *make_water(ex_app *app, double speed, double tension, int conserve)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    fsi_levelset *s;
    fsi_box3 pool;
    d.context = &app->context;
    d.n[0] = d.n[1] = d.n[2] = app->res;
    d.dx = (fsi_real)(BOX / app->res);
    d.surface_tension = (fsi_real)tension;
    d.cfl = (fsi_real)1.5;
    d.conserve_volume = conserve;
    ex_check(app, fsi_levelset_create(&s, &d));
    pool.lo = fsi_v3(0, 0, 0);
    pool.hi = fsi_v3((fsi_real)BOX, (fsi_real)BOX, (fsi_real)POOL);
    ex_check(app, fsi_levelset_fill_box(s, pool, fsi_v3(0, 0, 0), NULL));
    /* a little off the middle: a crown of exact symmetry does not exist */
    ex_check(app, fsi_levelset_fill_sphere(s, fsi_v3((fsi_real)(0.51 * BOX), (fsi_real)(0.493 * BOX), (fsi_real)(POOL + 1.5 * RADIUS)),
                                           (fsi_real)RADIUS, fsi_v3(0, 0, (fsi_real)-speed), NULL));
    return s;
}

static void draw(ex_app *app, ex_scene *scene, fsi_grid_surface *surface, const fsi_levelset *s, int frame)
{
    fsi_box3 tank;
    ex_image *image;
    char text[64];
    int k;
    tank.lo = fsi_v3(0, 0, 0);
    tank.hi = fsi_v3((fsi_real)BOX, (fsi_real)BOX, (fsi_real)(0.6 * BOX));
    ex_check(app, fsi_grid_surface_update(surface, s->phi, 1));
    ex_draw_surface(scene, surface->vertices, NULL, surface->vertex_count, surface->elements, surface->element_count);
    for (k = 0; k < s->droplet_count; k++) /* balls of their volume */
        ex_draw_spheres(scene, &s->droplet[k].position, 1, cbrt(3 * s->droplet[k].volume / (4 * FSI_PI)), NULL, 0x2f7fc4);
    ex_draw_box(scene, tank, 1.5, 0x7d8894);
    image = ex_render(scene);
    snprintf(text, sizeof text, "%.0f ms", 1000 * s->time);
    ex_text(image, 24, 34, 11, EX_LEFT, 0x3a4550, text);
    ex_save_frame(app, image, frame);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_levelset *s;
    fsi_grid_surface *surface;
    fsi_box3 view;
    double speed = 2.5, tension = 0.0728, volume_error = 0, in_droplets = 0, seconds = 0, start;
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
    view.lo = fsi_v3(0, 0, 0);
    view.hi = fsi_v3((fsi_real)BOX, (fsi_real)BOX, (fsi_real)(0.6 * BOX));
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, view, 25, 18);

    for (frame = 0; frame < app.frames; frame++) {
        const double end = (frame + 1) * FRAME;
        while (s->time < end - 1e-9) {
            const double before = ex_cpu_seconds();
            ex_check(&app, fsi_levelset_step(s, (fsi_real)fmin((double)fsi_levelset_suggest_dt(s), end - s->time)));
            seconds += ex_cpu_seconds() - before;
            app.steps += s->stats.substeps;
            volume_error = fmax(volume_error, fabs(s->stats.volume_error));
            in_droplets = fmax(in_droplets, s->stats.droplet_volume / start);
            if (s->component_count > components) components = s->component_count;
        }
        app.sim_seconds = s->time;
        if (app.images) draw(&app, &scene, surface, s, frame);
        ex_progress(&app, frame + 1);
    }

    app.hash = fsi_levelset_hash(s);
    ex_figure(&app, "volume_error", "%.2e", volume_error);
    ex_figure(&app, "drift", "%.2e", s->stats.volume / start - 1);
    ex_figure(&app, "lost", "%.1e", s->stats.lost_volume / start);
    ex_figure(&app, "in_droplets", "%.1e", in_droplets);
    ex_figure(&app, "components", "%.0f", components);
    ex_figure(&app, "seconds_per_step", "%.4f", seconds / (double)app.steps);
    fsi_grid_surface_destroy(surface);
    fsi_levelset_destroy(s);
    ex_scene_end(&scene);
    return ex_end(&app);
}
