/* cc -O3 -I. examples/drop_rod.c -lm -o drop_rod && ./drop_rod
   SPDX-License-Identifier: MIT

   A drop of water, 3 mm wide, falls on an elastic rod that is held at both ends, is cut open from below, and closes again behind the rod as it passes: around the
   rod runs a thin tube of air through the drop, then the rod is above, and the drop is one as before.
   ringed= is for how long liquid went all the way round the middle of the rod [ms]; passed= the share of the liquid that is below the rod at the end, whole= the share of
   it in the largest drop; sag= how far the middle of the rod ever went down, over the drop's radius. min_distance= is the smallest distance of the liquid from any sample of
   the rod, over the size of a cell: above 0, nothing ever passed through. volume_error= the largest |volume/target - 1|; momentum_error= what liquid and rod gained or
   lost together when their velocities were made to agree, over what they exchanged; t_p=, t_n=, t_step= seconds a substep for projections, for the optimisation, and in
   all; newton_mean= its Newton steps. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "kit/couple_tally.h"
#include "kit/couple_look.h"

#define WIDTH 0.008   /* of the box, and length of the rod [m] */
#define TALL 0.012    /* height of the box */
#define HEIGHT 0.007  /* of the rod */
#define THICK 0.00005 /* its radius */
#define RADIUS 0.0015 /* of the drop */
#define FRAME 0.0005  /* seconds between two pictures */

typedef struct state {
    fsi_vec3 *rest;
    int *segments, count;
    fsi_levelset *liquid;
    fsi_shell *rod;
    fsi_couple *both;
    fsi_grid_surface *surface;
} state;

/* Segments are as long as a cell. */
static void make_rod(ex_app *app, state *w, double dx, double young)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    int i;
    w->count = 2 * (int)floor(WIDTH / dx / 2 + 0.5) + 1;
    w->rest = (fsi_vec3 *)ex_alloc(NULL, (size_t)w->count, sizeof *w->rest);
    w->segments = (int *)ex_alloc(NULL, 2 * (size_t)w->count, sizeof(int));
    for (i = 0; i < w->count; i++) {
        w->rest[i] = fsi_v3((fsi_real)(WIDTH * i / (w->count - 1)), (fsi_real)(WIDTH / 2), (fsi_real)HEIGHT);
        w->segments[2 * i] = i;
        w->segments[2 * i + 1] = i + 1;
    }
    m.radius = (fsi_real)THICK;
    m.young = (fsi_real)young;
    m.twist = 0;
    d.context = &app->context;
    d.vertices = w->rest;
    d.vertex_count = w->count;
    d.segments = w->segments;
    d.segment_count = w->count - 1;
    d.materials = &m;
    d.material_count = 1;
    ex_check(app, fsi_shell_create(&w->rod, &d));
    w->rod->pinned[0] = w->rod->pinned[w->count - 1] = 1;
}

static void make_liquid(ex_app *app, state *w, double dx, double speed, double tension)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    d.context = &app->context;
    d.n[0] = d.n[1] = (int)ceil(WIDTH / dx - 1e-6);
    d.n[2] = app->res;
    d.dx = (fsi_real)dx;
    d.surface_tension = (fsi_real)tension;
    d.cfl = 1;
    ex_check(app, fsi_levelset_create(&w->liquid, &d));
    ex_check(app, fsi_levelset_fill_sphere(w->liquid, fsi_v3((fsi_real)(WIDTH / 2), (fsi_real)(WIDTH / 2), (fsi_real)(HEIGHT + 1.5 * RADIUS)), (fsi_real)RADIUS, fsi_v3(0, 0, (fsi_real)-speed), NULL));
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->rod;
    ex_draw_liquid(app, scene, w->surface, w->liquid);
    ex_draw_rod(scene, s->position, s->vertex_count, THICK, NULL, 0xc8432f);
    ex_save_scene(app, scene, s->time, 1, frame);
}

static ex_scene begin_scene(ex_app *app)
{
    ex_scene scene = ex_scene_begin(app);
    fsi_box3 view;
    view.lo = fsi_v3((fsi_real)(0.1 * WIDTH), (fsi_real)(0.2 * WIDTH), 0);
    view.hi = fsi_v3((fsi_real)(0.9 * WIDTH), (fsi_real)(0.8 * WIDTH), (fsi_real)(0.92 * TALL));
    scene.width = 600;
    scene.height = 800;
    ex_look_at_box(&scene, view, 55, 6);
    return scene;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_couple_tally tally = { 0 };
    state w;
    fsi_couple_desc d = fsi_couple_default_desc();
    double speed = 0.28, tension = 0.0728, young = 5e6, dx, sag = 0, middle = HEIGHT;
    int frame, ringed = 0;

    memset(&w, 0, sizeof w);
    ex_init(&app, "drop_rod", "A drop falls on an elastic rod and passes it.");
    app.res = 96;
    app.res_help = "cells along the height of the box";
    app.frames = 50;
    ex_real(&app, "speed", &speed, 0, 2, "of the drop at first [m/s]");
    ex_real(&app, "tension", &tension, 0, 2, "surface tension [N/m]");
    ex_real(&app, "young", &young, 1e3, 1e9, "Young's modulus of the rod [Pa]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 24 || app.res > 512) ex_die("--res is not between 24 and 512");
    dx = TALL / app.res;
    make_rod(&app, &w, dx, young);
    make_liquid(&app, &w, dx, speed, tension);
    d.liquid = w.liquid;
    d.shell = w.rod;
    ex_check(&app, fsi_couple_create(&w.both, &d));
    ex_check(&app, fsi_grid_surface_create(&w.surface, &app.context));
    scene = begin_scene(&app);

    for (frame = 0; frame < app.frames; frame++) {
        ex_couple_step(&app, &tally, w.both, FRAME);
        ringed += ex_is_ringed(w.liquid, w.rod->position[w.count / 2]);
        middle = (double)w.rod->position[w.count / 2].z;
        sag = fmax(sag, HEIGHT - middle);
        if (app.images) draw(&app, &scene, &w, frame);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "ringed", "%.1f", 1000 * FRAME * ringed);
    ex_figure(&app, "passed", "%.3f", 1 - ex_share_above(w.liquid, middle));
    ex_figure(&app, "whole", "%.3f", ex_share_of_largest(w.liquid));
    ex_figure(&app, "sag", "%.2f", sag / RADIUS);
    ex_couple_figures(&app, &tally, w.both);
    ex_couple_end(w.both, w.surface, &scene);
    free(w.rest);
    free(w.segments);
    return ex_end(&app);
}
