/* cc -O3 -I. examples/float_mesh.c -lm -o float_mesh && ./float_mesh [file.obj]
   SPDX-License-Identifier: MIT

   A solid of half the water's density falls into a pool and comes to float: any closed OBJ or PLY that you name, scaled
   to fit the tank, else a ring. It is a COUPLED fsi_body: level-set liquid and body are solved together, and this
   program integrates its pose. A --density above 1000 sinks, and rests on springs along the floor. tilt_deg= is how far
   it leans at the end. studies/levelset/float_draft.c measures how deep it floats. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_levelset.h"
#include "kit/levelset_tally.h"
#include "kit/floater.h"

#define FRAME 0.12  /* seconds between two pictures */
#define TANK 1.0    /* its length, width and height [m] */
#define LEVEL 0.42  /* of the water at first */

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_levelset_tally tally = { 0 };
    ex_mesh shape;
    ex_floater f;
    fsi_grid_surface *skin;
    fsi_levelset *s;
    const char *file = NULL;
    double density = 500;
    int frame, y_up = 0;

    ex_init(&app, "float_mesh", "A mesh falls into a pool and floats.");
    app.res = 24;
    app.res_help = "cells over the width of the tank: dx = 1 m / res";
    app.frames = 34;
    ex_operand(&app, "file.obj", &file, "a closed mesh, OBJ or PLY; none: a ring");
    ex_flag(&app, "y-up", &y_up, "the y axis of the file points up");
    ex_real(&app, "density", &density, 1, 20000, "of the body [kg/m^3]; the water has 1000");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    shape = file ? ex_load_mesh(&app, file, y_up) : ex_torus(1, 0.36, 48, 20);
    ex_floater_make(&app, &f, &shape, density);
    s = ex_floater_pool(&app, &f, TANK, LEVEL, 20);
    ex_check(&app, fsi_grid_surface_create(&skin, &app.context));
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3(TANK, TANK, 0.8), 25, 20);

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            ex_floater_push(&f, TANK, s->desc.dx / 2);
            ex_levelset_step(&app, &tally, s, FRAME / 6);
            fsi_body_integrate(&f.body, FRAME / 6);
            ex_floater_move(&f);
        }
        ex_write_liquid(&app, skin, s, frame);
        ex_write_triangles(&app, "body", frame, f.x, f.mesh->vertex_count, f.mesh->faces, f.mesh->face_count);
        if (app.images) {
            ex_draw_liquid(&app, &scene, skin, s);
            ex_draw_mesh(&scene, f.x, NULL, f.mesh->vertex_count, f.mesh->faces, f.mesh->face_count, 0xe0703c);
            ex_draw_box(&scene, scene.box, 1.5, 0x7d8894);
            ex_save_scene(&app, &scene, frame, "%.2f s", s->time);
        }
        ex_progress(&app, frame + 1);
    }

    ex_levelset_figures(&app, &tally, s);
    ex_figure(&app, "tilt_deg", "%.1f", ex_floater_tilt(&f));
    ex_scene_end(&scene);
    fsi_grid_surface_destroy(skin);
    fsi_levelset_destroy(s);
    ex_floater_free(&f);
    return ex_end(&app);
}
