/* cc -O3 -I. studies/couple/lotus.c -lm -o lotus && ./lotus
   SPDX-License-Identifier: MIT

   Rain falls on a lotus leaf, which water does not wet: a wavy dish on a stalk, held around its middle. 16 drops of
   random sizes come down one after the other, bounce, roll to the leaf's hollow and merge there, or leave over its rim.
   The sides of the box are open. drops= is how many came down; hollow= the share of the rain within a third of the
   leaf's radius of its middle at the end, above it; left= the share that left the box; drop_error= the largest
   |volume/target - 1| of a single drop of more than 100 cells, at the end of any frame. pierced= counts, over all
   steps, pairs of neighbouring liquid cells that a triangle of the leaf divides: 0, there is air between liquid and
   leaf everywhere. min_distance= is the smallest distance of the liquid from any sample of the leaf, over the size of a
   cell: above 0, nothing ever passed through. volume_error= the largest |volume/target - 1|; momentum_error= what
   liquid and leaf gained or lost together when their velocities were made to agree, over what they exchanged; t_p=,
   t_n=, t_step= seconds a substep for projections, for the optimisation, and in all; newton_mean= its Newton steps. The
   paper's size is --res 192. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/couple_tally.h"
#include "../../examples/kit/couple_look.h"
#include "couple_rain.h"

#define WIDE 0.06     /* of the box, along both sides [m] */
#define TALL 0.03
#define LEAF 0.024    /* radius of the leaf, */
#define BASE 0.007    /* height of its middle, */
#define RISE 0.0065   /* of its rim above that, */
#define WAVE 0.0012   /* of the waves of its rim, */
#define WAVES 5
#define HELD 0.003    /* held within this radius */
#define THICK 0.0003
#define STALK 0.0009  /* radius of the stalk, which is only drawn */
#define DROPS 16
#define SMALLEST 0.0017 /* radius of a drop, */
#define LARGEST 0.0036
#define FRAME 0.003   /* seconds between two pictures */

typedef struct state {
    ex_mesh mesh;
    fsi_levelset *liquid;
    fsi_shell *leaf;
    fsi_couple *both;
    fsi_grid_surface *surface;
    ex_rain rain;
} state;

/* ---- the leaf --------------------------------------------------------------------------------------------------- */

static fsi_vec3 leaf_point(double r, double angle)
{
    const double s = r / LEAF, z = BASE + RISE * s * s + WAVE * s * s * s * sin(WAVES * angle);
    return fsi_v3((fsi_real)(WIDE / 2 + r * cos(angle)), (fsi_real)(WIDE / 2 + r * sin(angle)), (fsi_real)z);
}

/* A disc of rings: the k-th has 6 k vertices, as far apart as the rings are. */
static ex_mesh make_disc(int rings)
{
    ex_mesh m = ex_mesh_make(1 + 3 * rings * (rings + 1), 6 * rings * rings);
    int k, i, *t = m.triangles;
    m.vertices[0] = leaf_point(0, 0);
    for (k = 1; k <= rings; k++) {
        const int outer = 1 + 3 * k * (k - 1), inner = k > 1 ? outer - 6 * (k - 1) : 0, n = 6 * k,
                  inside = k > 1 ? n - 6 : 1;
        for (i = 0; i < n; i++) m.vertices[outer + i] = leaf_point(LEAF * k / rings, 2 * FSI_PI * i / n);
        for (i = 0; i < n; i++) { /* each sector of k edges meets k - 1 of the ring inside */
            const int below = (i - i / k) % inside;
            *t++ = inner + below;
            *t++ = outer + i;
            *t++ = outer + (i + 1) % n;
            if (i % k == k - 1) continue;
            *t++ = inner + below;
            *t++ = outer + (i + 1) % n;
            *t++ = inner + (below + 1) % inside;
        }
    }
    return m;
}

static void make_leaf(ex_app *app, state *w, double young)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    int k;
    w->mesh = make_disc(12 + app->res / 8);
    m.density = 900;
    m.thickness = (fsi_real)THICK;
    m.young = (fsi_real)young;
    m.damping_stiffness = (fsi_real)0.0005;
    d.context = &app->context;
    d.vertices = w->mesh.vertices;
    d.vertex_count = w->mesh.vertex_count;
    d.triangles = w->mesh.triangles;
    d.triangle_count = w->mesh.triangle_count;
    d.materials = &m;
    d.material_count = 1;
    ex_check(app, fsi_shell_create(&w->leaf, &d));
    for (k = 0; k < w->mesh.vertex_count; k++) {
        const fsi_vec3 x = w->mesh.vertices[k];
        w->leaf->pinned[k] = hypot((double)x.x - WIDE / 2, (double)x.y - WIDE / 2) < HELD;
    }
}

/* ---- the rain --------------------------------------------------------------------------------------------------- */

static void make_rain(ex_app *app, state *w, double dx, double tension, double speed)
{
    const fsi_real reach = (fsi_real)(0.85 * LEAF), middle = (fsi_real)(WIDE / 2),
                   z = (fsi_real)(TALL - LARGEST - 2 * dx);
    fsi_levelset_desc d = fsi_levelset_default_desc();
    int k;
    d.context = &app->context;
    d.n[0] = d.n[1] = app->res;
    d.n[2] = (int)ceil(TALL / dx - 1e-6);
    d.dx = (fsi_real)dx;
    d.surface_tension = (fsi_real)tension;
    d.cfl = (fsi_real)0.5;
    for (k = 0; k < 5; k++) d.open_side[k] = 1;
    ex_check(app, fsi_levelset_create(&w->liquid, &d));
    w->rain.centers.lo = fsi_v3(middle - reach, middle - reach, z);
    w->rain.centers.hi = fsi_v3(middle + reach, middle + reach, z);
    w->rain.least = SMALLEST;
    w->rain.most = LARGEST;
    w->rain.velocity = fsi_v3(0, 0, (fsi_real)-speed);
    w->rain.random = 20u;
}

/* Share of the rain in the leaf's hollow. */
static double share_in_hollow(const state *w)
{
    const fsi_grid *g = w->liquid->grid;
    const double dx = (double)g->dx;
    int i, j, k, count = 0;
    for (k = (int)(BASE / dx); k < g->n[2]; k++) for (j = 0; j < g->n[1]; j++) for (i = 0; i < g->n[0]; i++)
                count += (double)fsi_grid_at(w->liquid->phi, i, j, k) < 0 &&
                         hypot((i + 0.5) * dx - WIDE / 2, (j + 0.5) * dx - WIDE / 2) < LEAF / 3;
    return w->rain.volume > 0 ? count * dx * dx * dx / w->rain.volume : 0;
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->leaf;
    fsi_vec3 stalk[2];
    stalk[0] = fsi_v3_sub(s->position[0], fsi_v3(0, 0, (fsi_real)(STALK + THICK)));
    stalk[1] = fsi_v3(stalk[0].x, stalk[0].y, 0);
    ex_draw_liquid(app, scene, w->surface, w->liquid);
    ex_draw_cloth(scene, s, THICK, 0x4f9a3f, 0x8fbf6a);
    ex_draw_rod(scene, stalk, 2, STALK, NULL, 0x86b35a);
    ex_save_scene(app, scene, frame, "%.0f ms", 1000 * s->time);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_couple_tally tally = { 0 };
    state w;
    fsi_couple_desc d = fsi_couple_default_desc();
    double tension = 0.0728, speed = 0.5, young = 1e8, every = 0.009, dx, drop_error = 0;
    int frame, pierced = 0;

    memset(&w, 0, sizeof w);
    ex_init(&app, "lotus", "Rain rolls off a lotus leaf.");
    app.res = 48;
    app.res_help = "cells along the box";
    app.frames = 80;
    ex_real(&app, "tension", &tension, 0, 2, "surface tension [N/m]");
    ex_real(&app, "speed", &speed, 0, 5, "of the rain at first [m/s]");
    ex_real(&app, "every", &every, 1e-4, 10, "time between two drops [s]");
    ex_real(&app, "young", &young, 1e5, 1e11, "Young's modulus of the leaf [Pa]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 32 || app.res > 512) ex_die("--res is not between 32 and 512");
    dx = WIDE / app.res;
    make_leaf(&app, &w, young);
    make_rain(&app, &w, dx, tension, speed);
    d.liquid = w.liquid;
    d.shell = w.leaf;
    d.slip = 1;
    ex_check(&app, fsi_couple_create(&w.both, &d));
    ex_check(&app, fsi_grid_surface_create(&w.surface, &app.context));
    scene = ex_scene_of_box(&app, fsi_v3((fsi_real)(0.24 * WIDE), (fsi_real)(0.24 * WIDE), 0),
                            fsi_v3((fsi_real)(0.76 * WIDE), (fsi_real)(0.76 * WIDE), (fsi_real)(0.7 * TALL)), 20, 36);

    for (frame = 0; frame < app.frames; frame++) {
        if (w.rain.drops < DROPS && w.both->time > w.rain.drops * every - FRAME / 2) ex_rain_let(&app, &w.rain, w.both);
        ex_couple_step(&app, &tally, w.both, FRAME);
        pierced += ex_count_pierced(w.liquid, w.leaf->position, w.leaf->triangles, w.leaf->triangle_count);
        drop_error = fmax(drop_error, ex_rain_drop_error(w.liquid));
        if (app.images) draw(&app, &scene, &w, frame);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "drops", "%.0f", w.rain.drops);
    ex_figure(&app, "hollow", "%.3f", share_in_hollow(&w));
    ex_figure(&app, "left", "%.3f", w.liquid->stats.left_volume / w.rain.volume);
    ex_figure(&app, "drop_error", "%.1e", drop_error);
    ex_figure(&app, "pierced", "%.0f", pierced);
    ex_couple_figures(&app, &tally, w.both);
    ex_couple_end(w.both, w.surface, &scene);
    ex_mesh_free(&w.mesh);
    return ex_end(&app);
}
