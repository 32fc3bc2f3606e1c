/* cc -O3 -I. studies/flip/jelly_squeeze.c -lm -o jelly_squeeze && ./jelly_squeeze
   SPDX-License-Identifier: MIT

   Without liquid: springs at their backs press a soft pudding and a stiffer star flat against each other, twist them,
   and let go; they spring apart and find their shapes (figure 2 of Brandt et al. 2019; its size: --res 87). squeezed=
   the least distance of their centres over that when they just touch; apart= the distance at the end over the same;
   strain= how far the more deformed one is from its shape at the end, strain_most= at any time, root mean square over
   its size. flip_tally.h explains the other figures. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/flip_tally.h"

#define LENGTH 1.74    /* of the box, along x */
#define WIDTH 1.26
#define HEIGHT 1.2
#define RADIUS 0.2     /* of each body, about */
#define TALL 0.32
#define APART 0.62     /* distance of their centres at the start */
#define GRIPS 5        /* springs at each back: the middle and four around it */
#define PRESS 0.3      /* times [s]: the springs begin to press */
#define TWIST 1.3      /* to turn against each other */
#define TWISTED 2.1
#define LET_GO 2.5
#define EVERY 0.01     /* between two points of their paths */

static double smooth(double t) { return t < 0 ? 0 : t > 1 ? 1 : t * t * (3 - 2 * t); }

static void add_body(ex_app *app, ex_bath *b, int k, double young)
{
    fsi_elastic_body_desc d = fsi_elastic_default_body_desc();
    fsi_elastic_material m = fsi_elastic_default_material();
    m.density = 1000;
    m.young = (fsi_real)young;
    m.damping = (fsi_real)0.01;
    d.materials = &m;
    d.material_count = 1;
    d.resolution = app->res / 3 + 8;
    d.position = fsi_v3((fsi_real)(LENGTH / 2 + APART * (k - 0.5)), (fsi_real)(WIDTH / 2),
                        (fsi_real)(TALL / 2 + 0.005));
    if (k) ex_bath_body(app, b, d, ex_dimpled(RADIUS, TALL, 4, 0, 5, 0.2, 4), 0xe3a62f);
    else ex_bath_body(app, b, d, ex_dimpled(RADIUS, TALL, 5, 0.25, 12, 0.06, 4), 0xc8432f);
}

/* The springs of body k: towards the other one, by `close`; then they turn about the x axis. */
static void add_grips(ex_bath *b, int k, double stiffness, double close)
{
    const double side = k ? 1 : -1;
    int g;
    for (g = 0; g < GRIPS; g++) {
        const double y = g == 1 ? 0.1 : g == 2 ? -0.1 : 0, z = g == 3 ? 0.1 : g == 4 ? -0.1 : 0;
        const fsi_vec3 rest = fsi_v3((fsi_real)(side * 0.7 * RADIUS), (fsi_real)y, (fsi_real)z);
        double t;
        ex_drags_begin(&b->tally.drags, k, -1, rest, stiffness);
        for (t = PRESS; t < LET_GO; t += EVERY) {
            const double way = close * smooth((t - PRESS) / (TWIST - PRESS));
            const double turn = side * 0.6 * smooth((t - TWIST) / (TWISTED - TWIST));
            ex_drags_key(&b->tally.drags, t, fsi_v3(
                (fsi_real)(LENGTH / 2 + side * (APART / 2 + 0.7 * RADIUS - way)),
                (fsi_real)(WIDTH / 2 + y * cos(turn) - z * sin(turn)),
                (fsi_real)(TALL / 2 + 0.005 + y * sin(turn) + z * cos(turn))));
        }
    }
}

static double distance(const ex_bath *b)
{
    return (double)fsi_v3_norm(fsi_v3_sub(b->solid->bodies[1].center, b->solid->bodies[0].center)) / (2 * RADIUS);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_bath bath;
    double dx, soft = 2e4, stiff = 1e5, stiffness = 5e3, close = 0.27, squeezed = 1e9, strain = 0, most = 0;
    int frame, k;

    memset(&bath, 0, sizeof bath);
    bath.handles = 40;
    ex_init(&app, "jelly_squeeze", "Two jellies are squeezed against each other.");
    app.res = 30;
    app.res_help = "cells along the box, 1.74 m";
    app.frames = 120;
    ex_real(&app, "soft", &soft, 1e3, 1e9, "Young's modulus of the pudding [Pa]");
    ex_real(&app, "stiff", &stiff, 1e3, 1e9, "and of the star");
    ex_real(&app, "stiffness", &stiffness, 1, 1e9, "of each spring [N/m]");
    ex_real(&app, "close", &close, 0, 0.4, "how far each back is pushed [m]");
    ex_bath_options(&app, &bath);
    ex_bath_mesh_option(&app, &bath);
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 18 || app.res > 240) ex_die("--res is not between 18 and 240");
    dx = LENGTH / app.res;
    ex_bath_make(&app, &bath, app.res, (int)(WIDTH / dx + 0.5), (int)(HEIGHT / dx + 0.5), dx);
    add_body(&app, &bath, 0, soft);
    add_body(&app, &bath, 1, stiff);
    for (k = 0; k < 2 && !bath.tally.drags.file; k++) add_grips(&bath, k, stiffness, close);
    ex_bath_immerse(&app, &bath);
    scene = ex_scene_of_box(&app, fsi_v3((fsi_real)0.4, (fsi_real)0.3, 0), fsi_v3((fsi_real)1.34, (fsi_real)0.96,
        (fsi_real)0.42), 18, 20);

    for (frame = 0; frame < app.frames; frame++) {
        ex_bath_frame(&app, &bath);
        squeezed = fmin(squeezed, distance(&bath));
        for (strain = 0, k = 0; k < 2; k++)
            strain = fmax(strain, ex_jelly_strain(&app, bath.solid, &bath.jelly[k]));
        most = fmax(most, strain);
        if (app.images) {
            ex_bath_draw(&app, &scene, &bath);
            ex_save_scene(&app, &scene, frame, "%.2f s", bath.water->time);
        }
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "squeezed", "%.3f", squeezed);
    ex_figure(&app, "apart", "%.3f", distance(&bath));
    ex_figure(&app, "strain", "%.4f", strain);
    ex_figure(&app, "strain_most", "%.4f", most);
    ex_bath_figures(&app, &bath);
    ex_scene_end(&scene);
    ex_bath_end(&bath);
    return ex_end(&app);
}
