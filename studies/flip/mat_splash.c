/* cc -O3 -I. studies/flip/mat_splash.c -lm -o mat_splash && ./mat_splash
   SPDX-License-Identifier: MIT

   A ball of water falls on a thin mat that is held at two of its sides; it sags, throws the water up, and the water
   runs off where it is free (figure 9 of Brandt et al. 2019; its size: --res 100 --steps 8). sag= how far the middle of
   the mat went down at most [m], sagged= at the end; through= particles seen below the inner part of the mat, where
   nothing but a leak can bring them soon, in the first half second after the water came, 0. flip_tally.h explains the
   other figures. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/flip_tally.h"

#define SIDE 1.5       /* of the box */
#define MAT 0.9        /* side of the mat */
#define THICK 0.05
#define AT 0.65        /* height of the mat */
#define BALL 0.3       /* radius of the water */
#define HELD 9         /* springs at each of the two sides */
#define WATCH 0.5      /* until then `through` is counted [s] */

static void add_mat(ex_app *app, ex_bath *b, double young)
{
    fsi_elastic_body_desc d = fsi_elastic_default_body_desc();
    fsi_elastic_material m = fsi_elastic_default_material();
    fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
    int k, side;
    m.density = 900;
    m.young = (fsi_real)young;
    d.materials = &m;
    d.material_count = 1;
    d.resolution = 36;
    d.position = fsi_v3((fsi_real)(SIDE / 2), (fsi_real)(SIDE / 2), (fsi_real)AT);
    a.body = ex_bath_body(app, b, d, ex_block(fsi_v3((fsi_real)(MAT / 2), (fsi_real)(MAT / 2), (fsi_real)(THICK / 2)),
        12, 6), 0x3f8f5f);
    for (side = -1; side <= 1; side += 2) for (k = 0; k < HELD; k++) {
        a.rest = fsi_v3((fsi_real)(side * 0.48 * MAT), (fsi_real)(MAT * 0.96 * (k / (HELD - 1.0) - 0.5)), 0);
        a.target = fsi_v3_add(a.rest, d.position);
        ex_check(app, fsi_elastic_attach(b->solid, &a, NULL));
    }
}

/* Where the middle of the mat's lower side is. */
static double middle(const ex_bath *b)
{
    const fsi_vec3 from = fsi_v3((fsi_real)(SIDE / 2), (fsi_real)(SIDE / 2), 0);
    const fsi_mesh_hit hit = fsi_mesh_ray(fsi_elastic_surface(b->solid, b->jelly[0].id), from, fsi_v3(0, 0, 1), 10);
    return hit.face < 0 ? 0 : (double)hit.point.z;
}

/* Particles in the air below the inner part. */
static int below_mat(const ex_bath *b)
{
    const double inner = 0.3 * MAT, dx = (double)b->water->desc.dx;
    const fsi_mesh *mesh = fsi_elastic_surface(b->solid, b->jelly[0].id);
    int i, n = 0;
    for (i = 0; i < b->water->count; i++) {
        const fsi_vec3 x = b->water->position[i];
        if (fabs((double)x.x - SIDE / 2) < inner && fabs((double)x.y - SIDE / 2) < inner && (double)x.z > 4 * dx &&
            (double)x.z < AT && fsi_mesh_ray(mesh, x, fsi_v3(0, 0, 1), 10).face >= 0 &&
            fsi_mesh_ray(mesh, x, fsi_v3(0, 0, -1), 10).face < 0) n++;
    }
    return n;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_bath bath;
    double dx, young = 3e5, start, sag = 0;
    int frame, through = 0;

    memset(&bath, 0, sizeof bath);
    bath.steps = 4;
    bath.handles = 40;
    ex_init(&app, "mat_splash", "A ball of water falls on a thin mat.");
    app.res = 32;
    app.res_help = "cells along a side of the box, 1.5 m";
    app.frames = 75;
    ex_real(&app, "young", &young, 1e3, 1e9, "Young's modulus of the mat [Pa]");
    ex_bath_options(&app, &bath);
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 24 || app.res > 200) ex_die("--res is not between 24 and 200");
    dx = SIDE / app.res;
    ex_bath_make(&app, &bath, app.res, app.res, app.res, dx);
    add_mat(&app, &bath, young);
    ex_bath_immerse(&app, &bath);
    ex_check(&app, fsi_flip_fill_sphere(bath.water, fsi_v3((fsi_real)(SIDE / 2), (fsi_real)(SIDE / 2),
        (fsi_real)(AT + THICK + BALL + 0.1)), (fsi_real)BALL, fsi_v3(0, 0, -2), NULL));
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)SIDE, (fsi_real)SIDE, (fsi_real)1.4), 62, 16);

    start = middle(&bath);
    for (frame = 0; frame < app.frames; frame++) {
        ex_bath_frame(&app, &bath);
        sag = fmax(sag, start - middle(&bath));
        if (bath.water->time < WATCH) through += below_mat(&bath);
        if (app.images) {
            ex_bath_draw(&app, &scene, &bath);
            ex_save_scene(&app, &scene, frame, "%.2f s", bath.water->time);
        }
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "sag", "%.3f", sag);
    ex_figure(&app, "sagged", "%.3f", start - middle(&bath));
    ex_figure(&app, "through", "%.0f", through);
    ex_bath_figures(&app, &bath);
    ex_scene_end(&scene);
    ex_bath_end(&bath);
    return ex_end(&app);
}
