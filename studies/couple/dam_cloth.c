/* cc -O3 -I. studies/couple/dam_cloth.c -lm -o dam_cloth && ./dam_cloth
   SPDX-License-Identifier: MIT

   A dam breaks against a cloth across the tank, held at its two upper corners and at five vertices of its lower edge.
   It billows and wrinkles; water goes round its sides and under it through narrow gaps, some over it, and none through
   it: it stands higher in front of the cloth than behind. The gaps are two to three cells wide by default, of which one
   at the cloth stays dry: more passes at higher --res. pierced= counts, over all steps, pairs of neighbouring liquid
   cells that a triangle of the cloth divides: 0, there is air between liquid and cloth everywhere. kept= is the share
   of the water on the dam's side of the cloth's lower edge when the front has had twice the time that it needs to the
   far wall without a cloth, or at the end; billow= the farthest way of a vertex, over the height of the cloth.
   min_distance= is the smallest distance of the liquid from any sample of the cloth, over the size of a cell: above 0,
   nothing ever passed through. volume_error= the largest |volume/target - 1|; momentum_error= what liquid and cloth
   gained or lost together when their velocities were made to agree, over what they exchanged; t_p=, t_n=, t_step=
   seconds a substep for projections, for the optimisation, and in all; newton_mean= its Newton steps. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/couple_tally.h"
#include "../../examples/kit/couple_look.h"

#define LONG 0.24    /* of the tank [m] */
#define WIDE 0.12
#define TALL 0.12
#define DAM 0.075    /* length of the water at first, */
#define DEEP 0.08    /* its depth */
#define PLACE 0.13   /* of the cloth along the tank, */
#define LOW 0.012    /* of its lower edge, */
#define HIGH 0.102   /* of its upper one, */
#define SIDE 0.010   /* gaps beside it */
#define FRAME 0.01   /* seconds between two pictures */

typedef struct state {
    ex_mesh mesh;
    fsi_levelset *liquid;
    fsi_shell *cloth;
    fsi_couple *both;
    fsi_grid_surface *surface;
} state;

/* Upright, its vertices as far apart as 1.5 cells. */
static void make_cloth(ex_app *app, state *w, double dx, double young)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    const int nx = 4 * (int)floor((WIDE - 2 * SIDE) / (6 * dx) + 0.5), ny = (int)floor((HIGH - LOW) / (1.5 * dx) + 0.5);
    int k;
    w->mesh =
        ex_grid(fsi_v3((fsi_real)SIDE, (fsi_real)LOW, 0), fsi_v3((fsi_real)(WIDE - SIDE), (fsi_real)HIGH, 0), nx, ny);
    for (k = 0; k < w->mesh.vertex_count; k++) {
        const fsi_vec3 x = w->mesh.vertices[k];
        w->mesh.vertices[k] = fsi_v3((fsi_real)PLACE, x.x, x.y);
    }
    m.density = 1000;
    m.thickness = (fsi_real)0.0003;
    m.young = (fsi_real)young;
    m.bend = (fsi_real)1e-6;
    d.context = &app->context;
    d.vertices = w->mesh.vertices;
    d.vertex_count = w->mesh.vertex_count;
    d.triangles = w->mesh.triangles;
    d.triangle_count = w->mesh.triangle_count;
    d.materials = &m;
    d.material_count = 1;
    ex_check(app, fsi_shell_create(&w->cloth, &d));
    for (k = 0; k <= 4; k++) w->cloth->pinned[nx / 4 * k] = 1;
    w->cloth->pinned[ny * (nx + 1)] = w->cloth->pinned[ny * (nx + 1) + nx] = 1;
}

static void make_liquid(ex_app *app, state *w, double dx)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    fsi_box3 dam;
    d.context = &app->context;
    d.n[0] = app->res;
    d.n[1] = (int)ceil(WIDE / dx - 1e-6);
    d.n[2] = (int)ceil(TALL / dx - 1e-6);
    d.dx = (fsi_real)dx;
    dam.lo = fsi_v3(0, 0, 0);
    dam.hi = fsi_v3((fsi_real)DAM, (fsi_real)WIDE, (fsi_real)DEEP);
    ex_check(app, fsi_levelset_create(&w->liquid, &d));
    ex_check(app, fsi_levelset_fill_box(w->liquid, dam, fsi_v3(0, 0, 0), NULL));
}

/* Share of the liquid before x. */
static double share_before(const fsi_levelset *s, double x)
{
    const fsi_grid *g = s->grid;
    double all = 0, before = 0;
    int i, j, k;
    for (k = 0; k < g->n[2]; k++) for (j = 0; j < g->n[1]; j++) for (i = 0; i < g->n[0]; i++) {
        if (!((double)fsi_grid_at(s->phi, i, j, k) < 0)) continue;
        all++;
        before += (i + 0.5) * (double)g->dx < x;
    }
    return all > 0 ? before / all : 0;
}

/* The farthest way of a vertex from where it was at first. */
static double farthest(const state *w)
{
    double most = 0;
    int i;
    for (i = 0; i < w->cloth->vertex_count; i++)
        most = fmax(most, (double)fsi_v3_norm(fsi_v3_sub(w->cloth->position[i], w->mesh.vertices[i])));
    return most;
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->cloth;
    ex_draw_liquid(app, scene, w->surface, w->liquid);
    ex_draw_cloth(scene, s, 0.0003, 0xc8432f, 0xe9c9a8);
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
    double young = 1e6, dx, billow = 0, kept = 1;
    const double moment = 2 * (LONG - DAM) / (2 * sqrt(9.81 * DEEP));
    int frame, pierced = 0;

    memset(&w, 0, sizeof w);
    ex_init(&app, "dam_cloth", "A dam breaks against a cloth.");
    app.res = 48;
    app.res_help = "cells along the tank";
    app.frames = 40;
    ex_real(&app, "young", &young, 1e3, 1e9, "Young's modulus of the cloth [Pa]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 32 || app.res > 512) ex_die("--res is not between 32 and 512");
    dx = LONG / app.res;
    make_cloth(&app, &w, dx, young);
    make_liquid(&app, &w, dx);
    d.liquid = w.liquid;
    d.shell = w.cloth;
    ex_check(&app, fsi_couple_create(&w.both, &d));
    ex_check(&app, fsi_grid_surface_create(&w.surface, &app.context));
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)LONG, (fsi_real)WIDE, (fsi_real)TALL), 30, 22);

    for (frame = 0; frame < app.frames; frame++) {
        ex_couple_step(&app, &tally, w.both, FRAME);
        pierced += ex_count_pierced(w.liquid, w.cloth->position, w.cloth->triangles, w.cloth->triangle_count);
        billow = fmax(billow, farthest(&w) / (HIGH - LOW));
        if (w.both->time < moment) kept = share_before(w.liquid, PLACE);
        if (app.images) draw(&app, &scene, &w, frame);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "pierced", "%.0f", pierced);
    ex_figure(&app, "kept", "%.3f", kept);
    ex_figure(&app, "billow", "%.2f", billow);
    ex_couple_figures(&app, &tally, w.both);
    ex_couple_end(w.both, w.surface, &scene);
    ex_mesh_free(&w.mesh);
    return ex_end(&app);
}
