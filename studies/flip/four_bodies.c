/* cc -O3 -I. studies/flip/four_bodies.c -lm -o four_bodies && ./four_bodies
   SPDX-License-Identifier: MIT

   Four elastic bodies, a pudding, a ring, a star and a knot, fall into a narrow box without liquid and heap up, in
   steps of 1/256 s (figure 6a of Brandt et al. 2019; its size: --res 59 --handles 50). deepest_mm= is the deepest that
   a point of one was in another at any time; still= the fastest centre at the end [m/s]; strain= how far the most
   deformed one is from its shape at the end, root mean square over its size. flip_tally.h explains the other
   figures. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/flip_tally.h"

#define LENGTH 1.18    /* of the box, along x */
#define WIDTH 0.96
#define HEIGHT 3.04
#define FRAME (8.0 / 256)

enum { BODIES = 4 };

/* Body k, the lowest first. */
static void add_body(ex_app *app, ex_bath *b, int k, double young)
{
    static const uint32_t color[BODIES] = { 0xc8432f, 0xe3a62f, 0x3f8f5f, 0x3576b5 };
    static const double height[BODIES] = { 0.32, 0.88, 1.4, 2.1 };
    fsi_elastic_body_desc d = fsi_elastic_default_body_desc();
    fsi_elastic_material m = fsi_elastic_default_material();
    ex_mesh mesh;
    m.density = 1000;
    m.young = (fsi_real)young;
    m.damping = (fsi_real)0.01;
    d.materials = &m;
    d.material_count = 1;
    d.resolution = app->res * 7 / 10;
    d.self_contact = k == 3; /* the others cannot reach themselves */
    d.position = fsi_v3((fsi_real)(LENGTH / 2 + 0.1 * (k % 2 ? 1 : -1)), (fsi_real)(WIDTH / 2), (fsi_real)height[k]);
    d.orientation = fsi_quat_from_axis_angle(fsi_v3(1, (fsi_real)0.5, 0), (fsi_real)(0.35 * k));
    if (k == 0) mesh = ex_dimpled(0.34, 0.5, 5, 0.25, 10, 0.06, 4);
    else if (k == 1) mesh = ex_torus(0.27, 0.12, 64, 28);
    else if (k == 2) mesh = ex_dimpled(0.4, 0.34, 3, 0, 5, 0.22, 4);
    else {
        mesh = ex_knot(2, 3, 0.62, 110, 14);
        ex_mesh_move(&mesh, 0.12, fsi_v3(0, 0, 0));
    }
    ex_bath_body(app, b, d, mesh, color[k]);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_bath bath;
    double young = 1.5e5, dx, still = 0, strain = 0;
    int frame, k;

    memset(&bath, 0, sizeof bath);
    bath.frame = FRAME;
    bath.steps = 8;
    bath.handles = 30;
    ex_init(&app, "four_bodies", "Four elastic bodies fall into a narrow box.");
    app.res = 20;
    app.res_help = "cells along the box, 1.18 m";
    app.frames = 80;
    ex_real(&app, "young", &young, 1e3, 1e9, "Young's modulus [Pa]");
    ex_bath_options(&app, &bath);
    ex_bath_mesh_option(&app, &bath);
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 16 || app.res > 240) ex_die("--res is not between 16 and 240");
    dx = LENGTH / app.res;
    ex_bath_make(&app, &bath, app.res, (int)(WIDTH / dx + 0.5), (int)(HEIGHT / dx + 0.5), dx);
    for (k = 0; k < BODIES; k++) add_body(&app, &bath, k, young);
    ex_bath_immerse(&app, &bath);
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)LENGTH, (fsi_real)WIDTH, (fsi_real)2.2), 24, 12);

    for (frame = 0; frame < app.frames; frame++) {
        ex_bath_frame(&app, &bath);
        if (app.images) {
            ex_bath_draw(&app, &scene, &bath);
            ex_save_scene(&app, &scene, frame, "%.2f s", bath.water->time);
        }
        ex_progress(&app, frame + 1);
    }

    for (k = 0; k < BODIES; k++) {
        still = fmax(still, (double)fsi_v3_norm(bath.solid->bodies[k].velocity));
        strain = fmax(strain, ex_jelly_strain(&app, bath.solid, &bath.jelly[k]));
    }
    ex_figure(&app, "still", "%.3f", still);
    ex_figure(&app, "strain", "%.4f", strain);
    ex_bath_figures(&app, &bath);
    ex_scene_end(&scene);
    ex_bath_end(&bath);
    return ex_end(&app);
}
