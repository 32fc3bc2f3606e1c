/* cc -O3 -I. studies/couple/drift.c -lm -o drift && ./drift
   SPDX-License-Identifier: MIT

   A light, soft cloth hangs by one side over a tank of water at rest. Let go, it falls, lands, unfolds and drifts on
   the waves that it made. Damping in proportion to its mass stands for the drag of air.
   pierced= counts, over all steps, pairs of neighbouring liquid cells that a triangle of the cloth divides: 0, there is
   air between liquid and cloth everywhere. afloat= is the share of its vertices within 2 cells of the water at the end;
   highest= the highest vertex at the end and wave= the root of the mean square of the surface's height about its mean
   at the end, both in millimetres, highest= from that mean. min_distance= is the smallest distance of the liquid from
   any sample of the cloth, over the size of a cell: above 0, nothing ever passed through. volume_error= the largest
   |volume/target - 1|; momentum_error= what liquid and cloth gained or lost together when their velocities were made to
   agree, over what they exchanged; t_p=, t_n=, t_step= seconds a substep for projections, for the optimisation, and in
   all; newton_mean= its Newton steps. The paper's size is --res 160. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/couple_tally.h"
#include "../../examples/kit/couple_look.h"

#define WIDE 0.2      /* of the tank, along both sides, [m] */
#define TALL 0.15
#define DEEP 0.05     /* of the water */
#define CLOTH 0.1     /* width and length of the cloth */
#define HANG 0.065    /* height of its lowest side, */
#define LEAN 0.6      /* and its slope, from upright [rad] */
#define THICK 0.0005
#define RELEASE 0.12  /* it is let go then [s] */
#define FRAME 0.01    /* seconds between two pictures */

typedef struct state {
    ex_mesh mesh;         /* flat, at rest */
    fsi_levelset *water;
    fsi_shell *cloth;
    fsi_couple *both;
    fsi_grid_surface *surface;
    int held;             /* vertices of the upper side, the last ones */
} state;

static void make_cloth(ex_app *app, state *w, double dx, double young, double drag)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    const int n = (int)floor(CLOTH / dx + 0.5);
    int k;
    fsi_vec3 *hung;
    w->mesh = ex_grid(fsi_v3(0, 0, 0), fsi_v3((fsi_real)CLOTH, (fsi_real)CLOTH, 0), n, n);
    hung = (fsi_vec3 *)ex_alloc(NULL, (size_t)w->mesh.vertex_count, sizeof *hung);
    for (k = 0; k < w->mesh.vertex_count; k++) {
        const fsi_vec3 x = w->mesh.vertices[k];
        const double up = (double)x.y, bow = 0.004 * sin(9 * (double)x.x / CLOTH); /* no cloth hangs quite flat */
        hung[k] = fsi_v3((fsi_real)(0.045 + sin(LEAN) * up + bow), (fsi_real)((WIDE - CLOTH) / 2) + x.x,
                         (fsi_real)(HANG + cos(LEAN) * up));
    }
    m.density = 400;
    m.thickness = (fsi_real)THICK;
    m.young = (fsi_real)young;
    m.bend = (fsi_real)1e-6;
    m.damping_mass = (fsi_real)drag;
    m.damping_stiffness = (fsi_real)0.001;
    m.clearance = (fsi_real)(THICK / 2);
    d.context = &app->context;
    d.vertices = hung;
    d.rest = w->mesh.vertices;
    d.vertex_count = w->mesh.vertex_count;
    d.triangles = w->mesh.triangles;
    d.triangle_count = w->mesh.triangle_count;
    d.materials = &m;
    d.material_count = 1;
    ex_check(app, fsi_shell_create(&w->cloth, &d));
    w->held = n + 1;
    free(hung);
}

static void hold_cloth(const state *w, int held)
{
    memset(w->cloth->pinned + w->cloth->vertex_count - w->held, held, (size_t)w->held);
}

static void make_water(ex_app *app, state *w, double dx)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    fsi_box3 tank;
    d.context = &app->context;
    d.n[0] = d.n[1] = app->res;
    d.n[2] = (int)ceil(TALL / dx - 1e-6);
    d.dx = (fsi_real)dx;
    tank.lo = fsi_v3(0, 0, 0);
    tank.hi = fsi_v3((fsi_real)WIDE, (fsi_real)WIDE, (fsi_real)DEEP);
    ex_check(app, fsi_levelset_create(&w->water, &d));
    ex_check(app, fsi_levelset_fill_box(w->water, tank, fsi_v3(0, 0, 0), NULL));
}

/* Mean height of the water's surface, and the root of the mean square about it, over the columns of cells. */
static double surface_of(const fsi_levelset *s, double *wave)
{
    const fsi_grid *g = s->grid;
    const int columns = g->n[0] * g->n[1];
    double sum = 0, square = 0;
    int i, j, k;
    for (j = 0; j < g->n[1]; j++) for (i = 0; i < g->n[0]; i++) {
        double low, high, z;
        for (k = 0; k + 1 < g->n[2] && (double)fsi_grid_at(s->phi, i, j, k + 1) < 0; k++) continue;
        low = (double)fsi_grid_at(s->phi, i, j, k);
        high = (double)fsi_grid_at(s->phi, i, j, k + 1);
        z = (double)g->dx * (k + 0.5 + low / (low - high));
        sum += z / columns;
        square += z * z / columns;
    }
    *wave = sqrt(fmax(0, square - sum * sum));
    return sum;
}

/* Share of the cloth's vertices near the water, and the highest one. */
static double afloat_of(const state *w, double *highest)
{
    const fsi_shell *s = w->cloth;
    int k, count = 0;
    *highest = 0;
    for (k = 0; k < s->vertex_count; k++) {
        count += (double)fsi_levelset_phi_at(w->water, s->position[k]) < 2 * (double)w->water->desc.dx;
        *highest = fmax(*highest, (double)s->position[k].z);
    }
    return (double)count / s->vertex_count;
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->cloth;
    ex_draw_liquid(app, scene, w->surface, w->water);
    ex_draw_cloth(scene, s, THICK, 0xe9c9a8, 0xc8432f);
    ex_draw_box(scene, scene->box, 1.2, 0x9aa5b0);
    ex_save_scene(app, scene, frame, "%.0f ms", 1000 * s->time);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_couple_tally tally = { 0 };
    state w;
    fsi_couple_desc d = fsi_couple_default_desc();
    double young = 2e5, drag = 4, dx, mean, wave, highest, afloat;
    int frame, pierced = 0;

    memset(&w, 0, sizeof w);
    ex_init(&app, "drift", "A cloth falls on a tank of water and drifts.");
    app.res = 40;
    app.res_help = "cells along the tank";
    app.frames = 90;
    ex_real(&app, "young", &young, 1e3, 1e9, "Young's modulus of the cloth [Pa]");
    ex_real(&app, "drag", &drag, 0, 100, "damping of the cloth in proportion to its mass [1/s]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 24 || app.res > 512) ex_die("--res is not between 24 and 512");
    dx = WIDE / app.res;
    make_cloth(&app, &w, dx, young, drag);
    hold_cloth(&w, 1);
    make_water(&app, &w, dx);
    d.liquid = w.water;
    d.shell = w.cloth;
    ex_check(&app, fsi_couple_create(&w.both, &d));
    ex_check(&app, fsi_grid_surface_create(&w.surface, &app.context));
    scene =
        ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)WIDE, (fsi_real)WIDE, (fsi_real)(0.9 * TALL)), -28, 26);

    for (frame = 0; frame < app.frames; frame++) {
        if (w.both->time > RELEASE - FRAME / 2) hold_cloth(&w, 0);
        ex_couple_step(&app, &tally, w.both, FRAME);
        pierced += ex_count_pierced(w.water, w.cloth->position, w.cloth->triangles, w.cloth->triangle_count);
        if (app.images) draw(&app, &scene, &w, frame);
        ex_progress(&app, frame + 1);
    }

    mean = surface_of(w.water, &wave);
    afloat = afloat_of(&w, &highest);
    ex_figure(&app, "pierced", "%.0f", pierced);
    ex_figure(&app, "afloat", "%.3f", afloat);
    ex_figure(&app, "highest", "%.2f", 1000 * (highest - mean));
    ex_figure(&app, "wave", "%.3f", 1000 * wave);
    ex_couple_figures(&app, &tally, w.both);
    ex_couple_end(w.both, w.surface, &scene);
    ex_mesh_free(&w.mesh);
    return ex_end(&app);
}
