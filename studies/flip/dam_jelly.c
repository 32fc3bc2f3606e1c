/* cc -O3 -I. studies/flip/dam_jelly.c -lm -o dam_jelly && ./dam_jelly
   SPDX-License-Identifier: MIT

   A dam breaks against two slabs of jelly that are clamped to the floor, a soft one and, beside it, a stiff one (figure
   5 of Brandt et al. 2019). bent_soft=, bent_stiff= how far their tops were moved along the tank at most [m];
   back_soft=, back_stiff= at the end; clamp= the largest force of the clamps of the soft one along the tank [N].
   flip_tally.h explains the other figures. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/flip_tally.h"

#define LENGTH 2.0
#define WIDTH 0.8
#define HEIGHT 1.0
#define DAM 0.6        /* its length, along x */
#define DEPTH 0.55     /* of the water in it */
#define PLACE 1.15     /* of the slabs */
#define TALL 0.4       /* size of a slab: height, along x, along y */
#define THICK 0.12
#define BROAD 0.26
#define CLAMPS 9       /* at the foot of each */

typedef struct slab {
    int clamp[CLAMPS];
    fsi_elastic_skin *top; /* one point */
    double start, bent;
} slab;

static double top_of(ex_app *app, const ex_bath *b, const slab *w)
{
    fsi_vec3 x;
    ex_check(app, fsi_elastic_skin_update(w->top, b->solid, &x, NULL));
    return (double)x.x;
}

static void add_slab(ex_app *app, ex_bath *b, slab *w, double y, double young, uint32_t rgb)
{
    fsi_elastic_body_desc d = fsi_elastic_default_body_desc();
    fsi_elastic_material m = fsi_elastic_default_material();
    fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
    fsi_vec3 tip = fsi_v3(0, 0, (fsi_real)(0.45 * TALL));
    int k;
    m.density = 1100;
    m.young = (fsi_real)young;
    m.damping = (fsi_real)0.01;
    d.materials = &m;
    d.material_count = 1;
    d.resolution = 14;
    d.position = fsi_v3((fsi_real)PLACE, (fsi_real)y, (fsi_real)(TALL / 2 + 0.002));
    a.body = ex_bath_body(app, b, d, ex_block(fsi_v3((fsi_real)(THICK / 2), (fsi_real)(BROAD / 2),
        (fsi_real)(TALL / 2)), 10, 5), rgb);
    for (k = 0; k < CLAMPS; k++) {
        a.rest = fsi_v3((fsi_real)(THICK * 0.4 * (k % 3 - 1)), (fsi_real)(BROAD * 0.4 * (k / 3 - 1)),
                        (fsi_real)(-0.47 * TALL));
        a.target = fsi_v3_add(a.rest, d.position);
        ex_check(app, fsi_elastic_attach(b->solid, &a, &w->clamp[k]));
    }
    ex_check(app, fsi_elastic_skin_create(&w->top, b->solid, a.body, &tip, NULL, 1));
    w->start = top_of(app, b, w);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_bath bath;
    slab two[2];
    double dx, soft = 6e4, stiff = 6e5, clamp = 0;
    int frame, k;

    memset(&bath, 0, sizeof bath);
    memset(two, 0, sizeof two);
    bath.steps = 4;
    ex_init(&app, "dam_jelly", "A dam breaks against a soft and a stiff slab.");
    app.res = 20;
    app.res_help = "cells a metre; the tank is 2 m long, 0.8 m wide";
    app.frames = 90;
    ex_real(&app, "soft", &soft, 1e3, 1e9, "Young's modulus of the one slab [Pa]");
    ex_real(&app, "stiff", &stiff, 1e3, 1e9, "and of the other one");
    ex_bath_options(&app, &bath);
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 16 || app.res > 200) ex_die("--res is not between 16 and 200");
    dx = 1.0 / app.res;
    ex_bath_make(&app, &bath, (int)(LENGTH * app.res + 0.5), (int)(WIDTH * app.res + 0.5),
        (int)(HEIGHT * app.res + 0.5), dx);
    add_slab(&app, &bath, &two[0], 0.2, soft, 0xe3a62f);
    add_slab(&app, &bath, &two[1], WIDTH - 0.2, stiff, 0xc8432f);
    ex_bath_immerse(&app, &bath);
    ex_bath_fill(&app, &bath, ex_box3(0, 0, 0, DAM, WIDTH + dx, DEPTH));
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)LENGTH, (fsi_real)WIDTH, (fsi_real)0.8), 28, 18);

    for (frame = 0; frame < app.frames; frame++) {
        fsi_vec3 force;
        double sum = 0;
        ex_bath_frame(&app, &bath);
        for (k = 0; k < 2; k++) two[k].bent = fmax(two[k].bent, top_of(&app, &bath, &two[k]) - two[k].start);
        for (k = 0; k < CLAMPS; k++) {
            ex_check(&app, fsi_elastic_attachment_force(bath.solid, two[0].clamp[k], &force));
            sum += (double)force.x;
        }
        clamp = fmax(clamp, fabs(sum));
        if (app.images) {
            ex_bath_draw(&app, &scene, &bath);
            ex_save_scene(&app, &scene, frame, "%.2f s", bath.water->time);
        }
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "bent_soft", "%.4f", two[0].bent);
    ex_figure(&app, "bent_stiff", "%.4f", two[1].bent);
    ex_figure(&app, "back_soft", "%.4f", top_of(&app, &bath, &two[0]) - two[0].start);
    ex_figure(&app, "back_stiff", "%.4f", top_of(&app, &bath, &two[1]) - two[1].start);
    ex_figure(&app, "clamp", "%.0f", clamp);
    for (k = 0; k < 2; k++) fsi_elastic_skin_destroy(two[k].top);
    ex_bath_figures(&app, &bath);
    ex_scene_end(&scene);
    ex_bath_end(&bath);
    return ex_end(&app);
}
