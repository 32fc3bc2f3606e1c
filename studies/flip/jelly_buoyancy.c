/* cc -O3 -I. studies/flip/jelly_buoyancy.c -lm -o jelly_buoyancy && ./jelly_buoyancy
   SPDX-License-Identifier: MIT

   Three equal jellies of 540, 1000 and 1850 kg/m^3 are put on the water of a tank, or, with --still, into it where they
   should stay: the light one floats, the second hovers, the heavy one sinks (figure 8 of Brandt et al. 2019). draft= is
   the share of the light one's volume below the level of the water at the end, 0.54 +- 0.03; moved= how far the centre
   of the second one went in the last 5 s [dx], with --still below 2; floor= how high above the floor the lowest point
   of the heavy one is at the end [dx]; level= of the water over where it should be, bodies counted. flip_tally.h
   explains the other figures. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/flip_tally.h"

#define LENGTH 3      /* of the tank, along x; it is 1 m wide */
#define HEIGHT 1.5
#define DEPTH 0.75    /* of the water before the jellies come */
#define RADIUS 0.2    /* of a jelly */
#define TALL 0.34
#define DRIFT 5.0     /* seconds */

static const double density[3] = { 540, 1000, 1850 };
static const uint32_t color[3] = { 0xe3a62f, 0x3f8f5f, 0xc8432f };

/* Jelly k: its lowest point just above the water, or where it should come to rest. */
static void add_jelly(ex_app *app, ex_bath *b, int k, int still, double young)
{
    static const double rest[3] = { DEPTH - 0.04 * TALL, 0.6 * DEPTH, 0.5 * TALL + 0.02 };
    fsi_elastic_body_desc d = fsi_elastic_default_body_desc();
    fsi_elastic_material m = fsi_elastic_default_material();
    m.density = (fsi_real)density[k];
    m.young = (fsi_real)young;
    d.materials = &m;
    d.material_count = 1;
    d.resolution = app->res;
    d.position = fsi_v3((fsi_real)(LENGTH * (0.2 + 0.3 * k)), (fsi_real)0.5,
                        (fsi_real)(still ? rest[k] : DEPTH + 0.6 * TALL));
    ex_bath_body(app, b, d, ex_dimpled(RADIUS, TALL, 4, 0.15, 8, 0.06, 5), color[k]);
}

static double body_volume(const ex_bath *b, int k) { return b->solid->bodies[k].mass / density[k]; }

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_bath bath;
    fsi_vec3 at;
    double young = 5e4, dx, level, expected;
    int frame, k, still = 0;

    memset(&bath, 0, sizeof bath);
    ex_init(&app, "jelly_buoyancy", "Three jellies: one floats, one hovers, one sinks.");
    app.res = 20;
    app.res_help = "cells over the width of the tank, 1 m";
    app.frames = 150;
    ex_flag(&app, "still", &still, "the jellies begin where they should stay");
    ex_real(&app, "young", &young, 1e3, 1e8, "Young's modulus [Pa]");
    ex_bath_options(&app, &bath);
    ex_bath_mesh_option(&app, &bath);
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 8 || app.res > 200) ex_die("--res is not between 8 and 200");

    dx = 1.0 / app.res;
    ex_bath_make(&app, &bath, LENGTH * app.res, app.res, (int)(HEIGHT * app.res), dx);
    for (k = 0; k < 3; k++) add_jelly(&app, &bath, k, still, young);
    ex_bath_immerse(&app, &bath);
    ex_bath_fill(&app, &bath, ex_box3(0, 0, 0, LENGTH, 1, DEPTH));
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3(LENGTH, 1, (fsi_real)1.2), 24, 14);

    at = bath.solid->bodies[1].center;
    for (frame = 0; frame < app.frames; frame++) {
        if ((app.frames - frame) * EX_BATH_FRAME > DRIFT - 1e-9) at = bath.solid->bodies[1].center;
        ex_bath_frame(&app, &bath);
        if (app.images) {
            ex_bath_draw(&app, &scene, &bath);
            ex_save_scene(&app, &scene, frame, "%.2f s", bath.water->time);
        }
        ex_progress(&app, frame + 1);
    }

    level = ex_bath_level(&bath);
    expected = bath.water->count * (double)bath.water->particle_mass / (double)bath.water->desc.density;
    for (k = 0; k < 3; k++) expected += body_volume(&bath, k) * (k == 0 ? density[0] / 1000 : 1);
    ex_figure(&app, "draft", "%.3f", ex_bath_below(&app, &bath, &bath.jelly[0], level));
    ex_figure(&app, "moved", "%.2f", (double)fsi_v3_norm(fsi_v3_sub(bath.solid->bodies[1].center, at)) / dx);
    ex_figure(&app, "floor", "%.2f", (double)fsi_elastic_surface(bath.solid, bath.jelly[2].id)->box.lo.z / dx);
    ex_figure(&app, "level", "%.4f", level * LENGTH / expected);
    ex_bath_figures(&app, &bath);
    ex_scene_end(&scene);
    ex_bath_end(&bath);
    return ex_end(&app);
}
