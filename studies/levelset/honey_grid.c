/* cc -O3 -I. studies/levelset/honey_grid.c -lm -o honey_grid && ./honey_grid
   SPDX-License-Identifier: MIT

   Honey, 50 Pa s and 1400 kg/m^3, runs from a nozzle onto a small cake. The thread folds and coils where it lands,
   mounds, spreads to the rim and bulges over it. It sticks to what it touches. Viscosity is solved for implicitly:
   steps are as long as for water. emitted_ml= is what the nozzle let out; levelset_tally.h explains the other figures.
   */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_levelset.h"
#include "../../examples/kit/levelset_tally.h"
#include "../../examples/kit/shapes.h"

#define FRAME 0.05   /* seconds between two pictures */
#define WIDE 0.12    /* of the plate, and height of the room [m] */
#define RADIUS 0.005 /* of the nozzle */
#define CAKE 0.022   /* radius of the cake */
#define HEIGHT 0.09  /* of the nozzle above the plate */

static fsi_vec3 middle(double z) { return fsi_v3(WIDE / 2, WIDE / 2, z); }

static fsi_levelset *make_honey(ex_app *app, double viscosity, const fsi_mesh *cake)
{
    fsi_levelset_desc desc = fsi_levelset_default_desc();
    fsi_levelset *s;
    desc.context = &app->context;
    desc.n[0] = desc.n[1] = desc.n[2] = (int)(WIDE / (2 * RADIUS) * app->res + 0.5);
    desc.dx = 2 * RADIUS / app->res;
    desc.density = 1400;
    desc.viscosity = viscosity;
    desc.cfl = 2; /* it creeps */
    ex_check(app, fsi_levelset_create(&s, &desc));
    ex_check(app, fsi_levelset_add_mesh(s, cake, NULL));
    return s;
}

static int add_nozzle(ex_app *app, fsi_levelset *s)
{
    fsi_levelset_emitter_desc desc = fsi_levelset_default_emitter_desc();
    int id;
    desc.center = middle(HEIGHT);
    desc.direction = fsi_v3(0, 0, -1);
    desc.radius = RADIUS;
    desc.speed = 0.3;
    desc.stop = 1.2;
    ex_check(app, fsi_levelset_add_emitter(s, &desc, &id));
    return id;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_levelset_tally tally = { 0 };
    fsi_mesh *cake;
    fsi_levelset *s;
    fsi_grid_surface *skin;
    const fsi_vec3 around = fsi_v3(1.3 * CAKE, 1.3 * CAKE, 0); /* what pictures show beside the cake */
    double viscosity = 50, emitted = 0, iterations = 0;
    int frame, nozzle;

    ex_init(&app, "honey_grid", "Honey runs over a cake.");
    app.res = 4;
    app.res_help = "cells across the nozzle: dx = 10 mm / res";
    app.frames = 30;
    ex_real(&app, "viscosity", &viscosity, 0, 1e4, "[Pa s]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    cake = shape_cylinder_mesh(&app, middle(0), CAKE, 0.03, 64);
    s = make_honey(&app, viscosity, cake);
    nozzle = add_nozzle(&app, s);
    ex_check(&app, fsi_grid_surface_create(&skin, &app.context));
    scene = ex_scene_of_box(&app, fsi_v3_sub(middle(0), around), fsi_v3_add(middle(HEIGHT), around), 30, 18);
    scene.absorb = fsi_v3(8, 60, 400);
    scene.scatter_rgb = 0xc46a08;

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            ex_levelset_step(&app, &tally, s, FRAME / 4);
            iterations += s->stats.viscosity_iterations;
        }
        ex_write_liquid(&app, skin, s, frame);
        if (app.images) {
            ex_draw_liquid(&app, &scene, skin, s);
            ex_draw_solid(&scene, cake, 0xe8d5b5);
            ex_save_scene(&app, &scene, frame, NULL, 0);
        }
        ex_progress(&app, frame + 1);
    }

    ex_check(&app, fsi_levelset_emitter_total(s, nozzle, &emitted));
    ex_figure(&app, "emitted_ml", "%.2f", 1e6 * emitted);
    ex_figure(&app, "components", "%.0f", s->component_count);
    ex_figure(&app, "viscosity_iterations", "%.1f", iterations / (double)app.steps);
    ex_levelset_figures(&app, &tally, s);
    ex_scene_end(&scene);
    fsi_grid_surface_destroy(skin);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(cake);
    return ex_end(&app);
}
