/* cc -O3 -I. studies/flip/plate_and_ball.c -lm -o plate_and_ball && ./plate_and_ball
   SPDX-License-Identifier: MIT

   A ball of jelly, 2330 kg/m^3, sinks through a tank onto a plate that is held under water at two sides, which bends
   and carries it; with --dry the same in air (figure 6 of Brandt et al. 2019; its size: --res 59). speed= the fastest
   that the ball sank [m/s]; hit= when it touched the plate [s]; sag= how far the plate's middle went down at most [m],
   sagged= at the end. flip_tally.h explains the other figures. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/flip_tally.h"

#define LENGTH 1.2     /* of the tank, along x */
#define WIDTH 0.8
#define HEIGHT 1.5
#define DEPTH 1.0
#define PLATE 0.8      /* length of the plate */
#define BROAD 0.5
#define THICK 0.07
#define AT 0.35        /* its height */
#define RADIUS 0.13    /* of the ball */
#define HELD 5         /* springs at each end of the plate */

static fsi_elastic_material material(double density, double young)
{
    fsi_elastic_material m = fsi_elastic_default_material();
    m.density = (fsi_real)density;
    m.young = (fsi_real)young;
    m.damping = (fsi_real)0.01;
    return m;
}

static void add_plate(ex_app *app, ex_bath *b, double young)
{
    fsi_elastic_body_desc d = fsi_elastic_default_body_desc();
    fsi_elastic_material m = material(1100, young);
    fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
    int k, side;
    d.materials = &m;
    d.material_count = 1;
    d.resolution = 30;
    d.position = fsi_v3((fsi_real)(LENGTH / 2), (fsi_real)(WIDTH / 2), (fsi_real)AT);
    a.body = ex_bath_body(app, b, d, ex_block(fsi_v3((fsi_real)(PLATE / 2), (fsi_real)(BROAD / 2),
        (fsi_real)(THICK / 2)), 12, 6), 0x3f8f5f);
    for (side = -1; side <= 1; side += 2) for (k = 0; k < HELD; k++) {
        a.rest = fsi_v3((fsi_real)(side * 0.48 * PLATE), (fsi_real)(BROAD * 0.9 * (k / (HELD - 1.0) - 0.5)), 0);
        a.target = fsi_v3_add(a.rest, d.position);
        ex_check(app, fsi_elastic_attach(b->solid, &a, NULL));
    }
}

static void add_ball(ex_app *app, ex_bath *b)
{
    fsi_elastic_body_desc d = fsi_elastic_default_body_desc();
    fsi_elastic_material m = material(2330, 2e5);
    d.materials = &m;
    d.material_count = 1;
    d.resolution = 10;
    d.position = fsi_v3((fsi_real)(0.52 * LENGTH), (fsi_real)(WIDTH / 2), (fsi_real)(DEPTH + 1.5 * RADIUS));
    ex_bath_body(app, b, d, ex_sphere(fsi_v3(0, 0, 0), (fsi_real)RADIUS, 4), 0xc8432f);
}

/* Where the middle of the plate's lower side is. */
static double middle(const ex_bath *b)
{
    const fsi_vec3 from = fsi_v3((fsi_real)(LENGTH / 2), (fsi_real)(WIDTH / 2), 0);
    const fsi_mesh_hit hit = fsi_mesh_ray(fsi_elastic_surface(b->solid, b->jelly[0].id), from, fsi_v3(0, 0, 1), 10);
    return hit.face < 0 ? 0 : (double)hit.point.z;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_bath bath;
    double dx, young = 1e6, start, sag = 0, speed = 0, hit = -1;
    int frame, dry = 0;

    memset(&bath, 0, sizeof bath);
    bath.handles = 30;
    ex_init(&app, "plate_and_ball", "A heavy ball sinks onto an elastic plate.");
    app.res = 24;
    app.res_help = "cells along the tank, 1.2 m";
    app.frames = 120;
    ex_real(&app, "young", &young, 1e3, 1e9, "Young's modulus of the plate [Pa]");
    ex_flag(&app, "dry", &dry, "without water");
    ex_bath_options(&app, &bath);
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 18 || app.res > 240) ex_die("--res is not between 18 and 240");
    dx = LENGTH / app.res;
    ex_bath_make(&app, &bath, app.res, (int)(WIDTH / dx + 0.5), (int)(HEIGHT / dx + 0.5), dx);
    add_plate(&app, &bath, young);
    add_ball(&app, &bath);
    ex_bath_immerse(&app, &bath);
    if (!dry) ex_bath_fill(&app, &bath, ex_box3(0, 0, 0, LENGTH, WIDTH + dx, DEPTH));
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)LENGTH, (fsi_real)WIDTH, (fsi_real)HEIGHT), 20, 10);

    start = middle(&bath);
    for (frame = 0; frame < app.frames; frame++) {
        ex_bath_frame(&app, &bath);
        sag = fmax(sag, start - middle(&bath));
        speed = fmax(speed, -(double)bath.solid->bodies[1].velocity.z);
        if (hit < 0 && bath.solid->stats.touching > 0) hit = bath.water->time;
        if (app.images) {
            ex_bath_draw(&app, &scene, &bath);
            ex_save_scene(&app, &scene, frame, "%.2f s", bath.water->time);
        }
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "speed", "%.2f", speed);
    ex_figure(&app, "hit", "%.2f", hit);
    ex_figure(&app, "sag", "%.3f", sag);
    ex_figure(&app, "sagged", "%.3f", start - middle(&bath));
    ex_bath_figures(&app, &bath);
    ex_scene_end(&scene);
    ex_bath_end(&bath);
    return ex_end(&app);
}
