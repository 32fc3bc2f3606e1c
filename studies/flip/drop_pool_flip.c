/* cc -O3 -I. studies/flip/drop_pool_flip.c -lm -o drop_pool_flip && ./drop_pool_flip
   SPDX-License-Identifier: MIT

   A large drop of water falls into a pool in a box: a crown, a crater and a jet, by particles that move with a grid.
   --res 128 is the size at which solvers are compared: 128^3 cells, 4 million particles. splash= how high the water
   went above its level at rest [m]; level= of the water at the end over where it should be. flip_tally.h explains
   the other figures. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/flip_tally.h"

#define SIDE 1.0       /* of the box */
#define DEPTH 0.21     /* of the pool */
#define RADIUS 0.185   /* of the drop */
#define AT 0.5         /* height of its centre when it starts */

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_bath bath;
    double speed = 3, splash = 0, rest;
    int frame, i;

    memset(&bath, 0, sizeof bath);
    ex_init(&app, "drop_pool_flip", "A large drop falls into a pool.");
    app.res = 32;
    app.res_help = "cells along each side of the box, 1 m";
    app.frames = 60;
    ex_real(&app, "speed", &speed, 0, 20, "of the drop [m/s]");
    ex_bath_liquid_options(&app, &bath);
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 16 || app.res > 400) ex_die("--res is not between 16 and 400");
    ex_bath_make(&app, &bath, app.res, app.res, app.res, SIDE / app.res);
    ex_bath_fill(&app, &bath, ex_box3(0, 0, 0, SIDE, SIDE, DEPTH));
    ex_check(&app, fsi_flip_fill_sphere(bath.water, fsi_v3((fsi_real)(0.51 * SIDE), (fsi_real)(0.49 * SIDE),
        (fsi_real)AT), (fsi_real)RADIUS, fsi_v3(0, 0, (fsi_real)-speed), NULL));
    rest = bath.water->count * (double)bath.water->particle_mass / (double)bath.water->desc.density / (SIDE * SIDE);
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)SIDE, (fsi_real)SIDE, (fsi_real)0.8), 26, 18);

    for (frame = 0; frame < app.frames; frame++) {
        ex_bath_frame(&app, &bath);
        if (bath.water->time > 0.2) for (i = 0; i < bath.water->count; i++)
            splash = fmax(splash, (double)bath.water->position[i].z - rest);
        if (app.images) {
            ex_bath_draw(&app, &scene, &bath);
            ex_save_scene(&app, &scene, frame, "%.2f s", bath.water->time);
        }
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "splash", "%.2f", splash);
    ex_figure(&app, "level", "%.4f", ex_bath_level(&bath) / rest);
    ex_bath_figures(&app, &bath);
    ex_scene_end(&scene);
    ex_bath_end(&bath);
    return ex_end(&app);
}
