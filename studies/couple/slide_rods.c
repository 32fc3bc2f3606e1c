/* cc -O3 -I. studies/couple/slide_rods.c -lm -o slide_rods && ./slide_rods
   SPDX-License-Identifier: MIT

   A drop of water, 3 mm wide, slides down two parallel rods, which it does not wet. Its surface carries it over the
   gap: the higher its tension, the farther it gets before it is squeezed through: with --tension 0.03 it falls at 0.15
   of their length, 0.02 from where it came down, with 0.045 at 0.18; water reaches the other end. Rods across the grid
   hold it back, the more the coarser it is: after 96 ms it has gone 0.84 of the way without friction, g sin(slope)
   t^2/2, at --res 96 and 0.37 at 48; with --slip, where only what is normal to the rods is shared, 0.95 and 0.64 (on
   rods that are held all along). reach= is how far along the rods the middle of a drop with more than a fifth of the
   liquid ever was above them, over their length; whole= the share of the liquid in the largest drop at the end.
   min_distance= is the smallest distance of the liquid from any sample of the rods, over the size of a cell: above 0,
   nothing ever passed through. volume_error= the largest |volume/target - 1|; momentum_error= what liquid and rods
   gained or lost together when their velocities were made to agree, over what they exchanged; t_p=, t_n=, t_step=
   seconds a substep for projections, for the optimisation, and in all; newton_mean= its Newton steps. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/couple_tally.h"
#include "../../examples/kit/couple_look.h"

#define LONG 0.024     /* of the box, and length of the rods along x [m] */
#define WIDE 0.009     /* of the box */
#define TALL 0.016     /* its height */
#define HEIGHT 0.0125  /* of the rods at their upper end, */
#define FALL 0.0075    /* less at their lower one */
#define APART 0.0018   /* their distance */
#define THICK 0.0001   /* their radius */
#define RADIUS 0.0015  /* of the drop */
#define BEGIN 0.003    /* where it comes down */
#define FRAME 0.002    /* seconds between two pictures */

typedef struct state {
    fsi_vec3 *rest;
    int *segments, count; /* vertices of one rod */
    fsi_levelset *liquid;
    fsi_shell *rods;
    fsi_couple *both;
    fsi_grid_surface *surface;
} state;

/* Height of the rods, as they were at first. */
static double height_at(double x) { return HEIGHT - FALL * x / LONG; }

/* Segments are as long as a cell. */
static void make_rods(ex_app *app, state *w, double dx, double young)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    const int n = (int)floor(hypot(LONG, FALL) / dx + 0.5) + 1;
    int i, r;
    w->count = n;
    w->rest = (fsi_vec3 *)ex_alloc(NULL, 2 * (size_t)n, sizeof *w->rest);
    w->segments = (int *)ex_alloc(NULL, 4 * (size_t)n, sizeof(int));
    for (r = 0; r < 2; r++) for (i = 0; i < n; i++) {
        const double x = LONG * i / (n - 1);
        w->rest[r * n + i] = fsi_v3((fsi_real)x, (fsi_real)((WIDE + (2 * r - 1) * APART) / 2), (fsi_real)height_at(x));
        if (i + 1 == n) continue;
        w->segments[2 * (r * (n - 1) + i)] = r * n + i;
        w->segments[2 * (r * (n - 1) + i) + 1] = r * n + i + 1;
    }
    m.radius = (fsi_real)THICK;
    m.young = (fsi_real)young;
    m.twist = 0;
    d.context = &app->context;
    d.vertices = w->rest;
    d.vertex_count = 2 * n;
    d.segments = w->segments;
    d.segment_count = 2 * (n - 1);
    d.materials = &m;
    d.material_count = 1;
    ex_check(app, fsi_shell_create(&w->rods, &d));
    for (r = 0; r < 2; r++) w->rods->pinned[r * n] = w->rods->pinned[r * n + n - 1] = 1;
}

static void make_liquid(ex_app *app, state *w, double dx, double tension)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    d.context = &app->context;
    d.n[0] = app->res;
    d.n[1] = (int)ceil(WIDE / dx - 1e-6);
    d.n[2] = (int)ceil(TALL / dx - 1e-6);
    d.dx = (fsi_real)dx;
    d.surface_tension = (fsi_real)tension;
    ex_check(app, fsi_levelset_create(&w->liquid, &d));
    ex_check(app,
             fsi_levelset_fill_sphere(
                 w->liquid, fsi_v3((fsi_real)BEGIN, (fsi_real)(WIDE / 2), (fsi_real)(height_at(BEGIN) + 1.2 * RADIUS)),
                 (fsi_real)RADIUS, fsi_v3(0, 0, 0), NULL));
}

/* Farthest middle of a large drop above the rods, along them. */
static double reach_of(const fsi_levelset *s)
{
    double all = 0, most = 0;
    int k;
    for (k = 0; k < s->component_count; k++) all += s->component[k].shape.volume;
    for (k = 0; k < s->component_count; k++) {
        const fsi_grid_component *c = &s->component[k].shape;
        if (c->volume > all / 5 && (double)c->centroid.z > height_at((double)c->centroid.x))
            most = fmax(most, (double)c->centroid.x / LONG);
    }
    return most;
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->rods;
    int r;
    ex_draw_liquid(app, scene, w->surface, w->liquid);
    for (r = 0; r < 2; r++) ex_draw_rod(scene, s->position + r * w->count, w->count, THICK, NULL, 0xc8432f);
    ex_save_scene(app, scene, frame, "%.0f ms", 1000 * s->time);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_couple_tally tally = { 0 };
    state w;
    fsi_couple_desc d = fsi_couple_default_desc();
    double tension = 0.0728, young = 1e9, dx, reach = 0;
    int frame, slip = 0;

    memset(&w, 0, sizeof w);
    ex_init(&app, "slide_rods", "A drop slides down two rods.");
    app.res = 96;
    app.res_help = "cells along the rods";
    app.frames = 75;
    ex_real(&app, "tension", &tension, 0, 2, "surface tension [N/m]");
    ex_real(&app, "young", &young, 1e3, 1e12, "Young's modulus of the rods [Pa]");
    ex_flag(&app, "slip", &slip, "the liquid slides along the rods freely");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 24 || app.res > 512) ex_die("--res is not between 24 and 512");
    dx = LONG / app.res;
    make_rods(&app, &w, dx, young);
    make_liquid(&app, &w, dx, tension);
    d.liquid = w.liquid;
    d.shell = w.rods;
    d.slip = slip;
    ex_check(&app, fsi_couple_create(&w.both, &d));
    ex_check(&app, fsi_grid_surface_create(&w.surface, &app.context));
    scene = ex_scene_of_box(&app, fsi_v3(0, (fsi_real)(WIDE / 4), (fsi_real)(TALL / 5)),
                            fsi_v3((fsi_real)LONG, (fsi_real)(0.75 * WIDE), (fsi_real)TALL), -25, 20);

    for (frame = 0; frame < app.frames; frame++) {
        ex_couple_step(&app, &tally, w.both, FRAME);
        reach = fmax(reach, reach_of(w.liquid));
        if (app.images) draw(&app, &scene, &w, frame);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "reach", "%.3f", reach);
    ex_figure(&app, "whole", "%.3f", ex_share_of_largest(w.liquid));
    ex_couple_figures(&app, &tally, w.both);
    ex_couple_end(w.both, w.surface, &scene);
    free(w.rest);
    free(w.segments);
    return ex_end(&app);
}
