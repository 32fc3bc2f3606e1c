/* cc -O3 -I. studies/flip/two_jellies_pool.c -lm -o two_jellies_pool && ./two_jellies_pool
   SPDX-License-Identifier: MIT

   Two jellies, a ring and a star, are thrown into a pool, meet there and stay afloat (figure 1 of Brandt et al. 2019;
   its size: --res 81). splash= how high the water went above its level at rest [m]; draft_ring=, draft_star= the shares
   of their volumes that are below the level at the end. flip_tally.h explains the other figures. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/flip_tally.h"

#define LENGTH 1.62    /* of the pool, along x */
#define WIDTH 1.22
#define HEIGHT 1.3
#define DEPTH 0.42

static void add_jelly(ex_app *app, ex_bath *b, int k)
{
    fsi_elastic_body_desc d = fsi_elastic_default_body_desc();
    fsi_elastic_material m = fsi_elastic_default_material();
    m.density = k ? 800 : 600;
    m.young = k ? 4e4f : 6e4f;
    d.materials = &m;
    d.material_count = 1;
    d.resolution = app->res / 2;
    d.self_contact = 0;
    d.position = fsi_v3((fsi_real)(k ? 1.2 : 0.4), (fsi_real)(k ? 0.66 : 0.56), (fsi_real)(k ? 0.95 : 0.8));
    d.velocity = fsi_v3((fsi_real)(k ? -1.2 : 1), 0, -1);
    d.angular_velocity = fsi_v3(0, (fsi_real)(k ? -4 : 3), 0);
    if (k) ex_bath_body(app, b, d, ex_dimpled(0.24, 0.2, 3, 0, 5, 0.22, 5), 0xe3a62f);
    else ex_bath_body(app, b, d, ex_torus(0.18, 0.085, 72, 36), 0xc8432f);
}

static double highest(const ex_bath *b)
{
    double top = 0;
    int i;
    for (i = 0; i < b->water->count; i++) top = fmax(top, (double)b->water->position[i].z);
    return top;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_bath bath;
    double dx, level, splash = 0;
    int frame;

    memset(&bath, 0, sizeof bath);
    ex_init(&app, "two_jellies_pool", "Two jellies are thrown into a pool.");
    app.res = 27;
    app.res_help = "cells along the pool, 1.62 m";
    app.frames = 120;
    ex_bath_options(&app, &bath);
    ex_bath_mesh_option(&app, &bath);
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 16 || app.res > 324) ex_die("--res is not between 16 and 324");
    dx = LENGTH / app.res;
    ex_bath_make(&app, &bath, app.res, (int)(WIDTH / dx + 0.5), (int)(HEIGHT / dx + 0.5), dx);
    add_jelly(&app, &bath, 0);
    add_jelly(&app, &bath, 1);
    ex_bath_immerse(&app, &bath);
    ex_bath_fill(&app, &bath, ex_box3(0, 0, 0, LENGTH, WIDTH + dx, DEPTH));
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)LENGTH, (fsi_real)WIDTH, 1), 26, 20);

    for (frame = 0; frame < app.frames; frame++) {
        ex_bath_frame(&app, &bath);
        splash = fmax(splash, highest(&bath) - DEPTH);
        if (app.images) {
            ex_bath_draw(&app, &scene, &bath);
            ex_save_scene(&app, &scene, frame, "%.2f s", bath.water->time);
        }
        ex_progress(&app, frame + 1);
    }

    level = ex_bath_level(&bath);
    ex_figure(&app, "splash", "%.2f", splash);
    ex_figure(&app, "draft_ring", "%.3f", ex_bath_below(&app, &bath, &bath.jelly[0], level));
    ex_figure(&app, "draft_star", "%.3f", ex_bath_below(&app, &bath, &bath.jelly[1], level));
    ex_bath_figures(&app, &bath);
    ex_scene_end(&scene);
    ex_bath_end(&bath);
    return ex_end(&app);
}
