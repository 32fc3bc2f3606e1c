/* cc -O3 -I. examples/jelly.c -lm -o jelly && ./jelly
   SPDX-License-Identifier: MIT

   Puddings, a ring, a ball and a star of jelly fall on each other and on a floor, and wobble. Each is a closed surface;
   fsi lays a cage of tetrahedra around it, which moves in a subspace of --handles handles (0: all vertices are free),
   and the surface follows as a skin. elastic_look.h explains the figures; kinetic= is the energy at the end [J]. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_elastic.h"
#include "kit/elastic_look.h"

#define FRAME (1.0 / 30)

enum { BODIES = 5 };

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_elastic_tally tally = { 0 };
    ex_jelly jelly[BODIES];
    fsi_elastic_desc desc = fsi_elastic_default_desc();
    fsi_elastic_body_desc body = fsi_elastic_default_body_desc();
    fsi_elastic_material soft = fsi_elastic_default_material();
    fsi_elastic_shape_desc ground = fsi_elastic_default_shape_desc();
    fsi_elastic *s;
    double young = 1.5e4;
    int frame, k, steps = 2;

    ex_init(&app, "jelly", "Bodies of jelly fall on each other.");
    app.res = 16;
    app.res_help = "cells along each body";
    app.frames = 36;
    ex_int(&app, "handles", &body.handles, 0, 1000, "of each body; 0: all vertices are free");
    ex_int(&app, "steps", &steps, 1, 1000, "a frame of 1/30 s");
    ex_real(&app, "young", &young, 1, 1e9, "Young's modulus [Pa]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    desc.context = &app.context;
    desc.tolerance = 1e-4;
    ex_check(&app, fsi_elastic_create(&s, &desc));
    ex_check(&app, fsi_elastic_add_shape(s, &ground, NULL));
    body.friction = 0.8;
    soft.young = young;
    soft.damping = 0.01;
    body.materials = &soft;
    body.material_count = 1;
    body.resolution = app.res;
    body.contact_points = 250;

    body.position = fsi_v3(0, 0, 0.12);
    jelly[0] = ex_jelly_of(&app, s, body, ex_dimpled(0.18, 0.2, 5, 0.25, 12, 0.06, 5), 0xc8432f);
    body.position = fsi_v3(0.02, 0.01, 0.36);
    jelly[1] = ex_jelly_of(&app, s, body, ex_torus(0.11, 0.05, 96, 48), 0xe3a62f);
    body.position = fsi_v3(0, 0.02, 0.62);
    jelly[2] = ex_jelly_of(&app, s, body, ex_sphere(fsi_v3(0, 0, 0), 0.09, 5), 0x3576b5);
    body.position = fsi_v3(0.29, -0.08, 0.3);
    body.orientation = fsi_quat_from_axis_angle(fsi_v3(0, 1, 0), -0.5);
    jelly[3] = ex_jelly_of(&app, s, body, ex_dimpled(0.11, 0.15, 5, 0.25, 8, 0.08, 5), 0x7a4fa3);
    body.position = fsi_v3(-0.27, -0.05, 0.45);
    body.orientation = fsi_quat_from_axis_angle(fsi_v3(0, 1, 0), 1.2);
    jelly[4] = ex_jelly_of(&app, s, body, ex_dimpled(0.13, 0.1, 3, 0, 5, 0.25, 5), 0x3f8f5f);
    scene = ex_scene_of_box(&app, fsi_v3(-0.4, -0.25, 0), fsi_v3(0.45, 0.25, 0.5), 15, 18);
    scene.ground_height = 0;

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < steps; k++) ex_elastic_step(&app, &tally, s, FRAME / steps);
        if (app.images) {
            for (k = 0; k < BODIES; k++) ex_draw_jelly(&app, &scene, s, &jelly[k]);
            ex_save_scene(&app, &scene, frame, "%.2f s", s->time);
        }
        ex_progress(&app, frame + 1);
    }

    ex_elastic_figures(&app, &tally, s);
    for (k = 0; k < BODIES; k++) ex_jelly_free(&jelly[k]);
    ex_scene_end(&scene);
    fsi_elastic_destroy(s);
    return ex_end(&app);
}
