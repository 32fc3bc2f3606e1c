/* cc -O3 -I. examples/drop_on_cloth.c -lm -o drop_on_cloth && ./drop_on_cloth
   SPDX-License-Identifier: MIT

   A drop of water falls on a soft cloth that is held by its four corners, sinks in, is thrown up, and comes down again (with --frames 120 again and again): the
   level set and the cloth move together, positions in one optimisation, then velocities. min_distance= is the smallest distance of the liquid from any sample of
   the cloth at any time, over the size of a cell: above 0, nothing ever passed through. below= counts cells of liquid under the cloth, at any time: 0. bounces= how
   often the drop rose again.
   volume_error= the largest |volume/target - 1|; momentum_error= what liquid and cloth gained or lost together when their velocities were made to agree, over
   what they exchanged; t_p=, t_n=, t_step= seconds a substep for projections, for the optimisation, and in all; newton_mean= its Newton steps.
   --tension 0.5 --damping 0.002 is the paper's other drop, which comes to rest. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_couple.h"
#include "kit/couple_tally.h"
#include "kit/couple_look.h"

#define BOX 0.08      /* width and height of the air around it [m] */
#define CLOTH 0.045   /* width of the cloth */
#define HEIGHT 0.03   /* of its corners */
#define RADIUS 0.0105 /* of the drop */
#define FRAME 0.005   /* seconds between two pictures */

typedef struct state {
    ex_mesh mesh;
    fsi_levelset *liquid;
    fsi_shell *cloth;
    fsi_couple *both;
    fsi_grid_surface *surface;
} state;

static void make_cloth(ex_app *app, state *w, int n, double young, double damping)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    const fsi_real lo = (fsi_real)((BOX - CLOTH) / 2), hi = (fsi_real)((BOX + CLOTH) / 2);
    int k;
    w->mesh = ex_grid(fsi_v3(lo, lo, (fsi_real)HEIGHT), fsi_v3(hi, hi, (fsi_real)HEIGHT), n, n);
    m.density = 1000;
    m.thickness = (fsi_real)0.0002;
    m.young = (fsi_real)young;
    m.damping_stiffness = (fsi_real)damping;
    d.context = &app->context;
    d.vertices = w->mesh.vertices;
    d.vertex_count = w->mesh.vertex_count;
    d.triangles = w->mesh.triangles;
    d.triangle_count = w->mesh.triangle_count;
    d.materials = &m;
    d.material_count = 1;
    ex_check(app, fsi_shell_create(&w->cloth, &d));
    for (k = 0; k < 4; k++) w->cloth->pinned[(k & 1 ? n : 0) + (k & 2 ? n * (n + 1) : 0)] = 1;
}

static void make_liquid(ex_app *app, state *w, double speed, double tension)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    d.context = &app->context;
    d.n[0] = d.n[1] = d.n[2] = app->res;
    d.dx = (fsi_real)(BOX / app->res);
    d.surface_tension = (fsi_real)tension;
    ex_check(app, fsi_levelset_create(&w->liquid, &d));
    ex_check(app, fsi_levelset_fill_sphere(w->liquid, fsi_v3((fsi_real)(BOX / 2), (fsi_real)(BOX / 2), (fsi_real)(HEIGHT + 1.4 * RADIUS)), (fsi_real)RADIUS, fsi_v3(0, 0, (fsi_real)-speed), NULL));
}

/* Cells of liquid under the cloth: their centres look up through a triangle, before they see the sky. */
static int count_below(const state *w)
{
    const fsi_grid *g = w->liquid->grid;
    const fsi_shell *s = w->cloth;
    const double dx = (double)g->dx;
    int t, k, a, count = 0;
    for (t = 0; t < s->triangle_count; t++) {
        const fsi_vec3 *p[3];
        double lo[2], hi[2], area;
        int i, j, n[2][2];
        for (k = 0; k < 3; k++) p[k] = &s->position[s->triangles[3 * t + k]];
        for (a = 0; a < 2; a++) {
            const double x = (double)(a ? p[0]->y : p[0]->x), y = (double)(a ? p[1]->y : p[1]->x), z = (double)(a ? p[2]->y : p[2]->x);
            lo[a] = fmin(x, fmin(y, z));
            hi[a] = fmax(x, fmax(y, z));
            n[a][0] = (int)ceil(lo[a] / dx - 0.5);
            n[a][1] = (int)floor(hi[a] / dx - 0.5);
        }
        area = (double)((p[1]->x - p[0]->x) * (p[2]->y - p[0]->y) - (p[2]->x - p[0]->x) * (p[1]->y - p[0]->y));
        for (j = n[1][0]; j <= n[1][1]; j++) for (i = n[0][0]; i <= n[0][1]; i++) {
            const double x = (i + 0.5) * dx, y = (j + 0.5) * dx;
            double b[3], z;
            int top, c;
            for (k = 0; k < 3; k++) {
                const fsi_vec3 *q = p[(k + 1) % 3], *r = p[(k + 2) % 3];
                b[k] = (((double)q->x - x) * ((double)r->y - y) - ((double)r->x - x) * ((double)q->y - y)) / area;
            }
            if (b[0] < 0 || b[1] < 0 || b[2] < 0) continue;
            z = b[0] * (double)p[0]->z + b[1] * (double)p[1]->z + b[2] * (double)p[2]->z;
            top = (int)floor(z / dx - 0.5);
            for (c = 0; c <= top && c < g->n[2]; c++) count += (double)fsi_grid_at(w->liquid->phi, i, j, c) < 0;
        }
    }
    return count;
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->cloth;
    ex_draw_liquid(app, scene, w->surface, w->liquid);
    ex_draw_sheet(scene, s->position, s->vertex_count, s->triangles, s->triangle_count, 0.0002, 0xc8432f, 0xe9c9a8);
    ex_save_scene(app, scene, s->time, 0, frame);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    state w;
    fsi_couple_desc d = fsi_couple_default_desc();
    double speed = 0.5, tension = 0.02, young = 1e5, damping = 0, before = 0;
    ex_couple_tally tally;
    int frame, below = 0, bounces = 0;

    memset(&w, 0, sizeof w);
    memset(&tally, 0, sizeof tally);
    ex_init(&app, "drop_on_cloth", "A drop falls on a soft cloth and is thrown up again.");
    app.res = 64;
    app.res_help = "cells along the box";
    app.frames = 40;
    ex_real(&app, "speed", &speed, 0, 5, "of the drop at first [m/s]");
    ex_real(&app, "tension", &tension, 0, 2, "surface tension [N/m]");
    ex_real(&app, "young", &young, 1e3, 1e8, "Young's modulus of the cloth [Pa]");
    ex_real(&app, "damping", &damping, 0, 1, "of the cloth's strains [s]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 16 || app.res > 512) ex_die("--res is not between 16 and 512");
    make_cloth(&app, &w, (int)(app.res * 109 / 192.0 + 0.5), young, damping);
    make_liquid(&app, &w, speed, tension);
    d.liquid = w.liquid;
    d.shell = w.cloth;
    ex_check(&app, fsi_couple_create(&w.both, &d));
    ex_check(&app, fsi_grid_surface_create(&w.surface, &app.context));
    scene = ex_scene_of_box(&app, fsi_v3((fsi_real)(0.1 * BOX), (fsi_real)(0.1 * BOX), (fsi_real)(0.1 * BOX)), fsi_v3((fsi_real)(0.9 * BOX), (fsi_real)(0.9 * BOX), (fsi_real)(0.8 * BOX)), 25, 12);

    for (frame = 0; frame < app.frames; frame++) {
        double up;
        ex_couple_step(&app, &tally, w.both, FRAME);
        below += count_below(&w);
        up = w.liquid->stats.momentum[2];
        bounces += before < 0 && up > 0;
        if (up < 0 || up > 0) before = up;
        if (app.images) draw(&app, &scene, &w, frame);
        ex_progress(&app, frame + 1);
    }

    ex_couple_figures(&app, &tally, w.both);
    ex_figure(&app, "below", "%.0f", below);
    ex_figure(&app, "bounces", "%.0f", bounces);
    ex_couple_end(w.both, w.surface, &scene);
    ex_mesh_free(&w.mesh);
    return ex_end(&app);
}
