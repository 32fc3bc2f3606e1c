/* cc -O3 -I. studies/couple/leaf_splash.c -lm -o leaf_splash && ./leaf_splash
   SPDX-License-Identifier: MIT

   Three raindrops hit a leaf that water does not wet. The leaf is stiff: a blade with a midrib, clamped where its stalk
   ends; the drops spread on it, their rims break up, and parts of all sizes are thrown up again or run off. The sides
   of the box are open. thrown= is the largest share of the water in the box that flew upwards at a time, faster than
   0.1 m/s; most_parts= the most drops at a time; dip= how far the leaf's tip ever went down, over the leaf's length;
   left= the share of the water that left the box. pierced= counts, over all steps, pairs of neighbouring liquid cells
   that a triangle of the leaf divides: 0, there is air between liquid and leaf everywhere. min_distance= is the
   smallest distance of the liquid from any sample of the leaf, over the size of a cell: above 0, nothing ever passed
   through. volume_error= the largest |volume/target - 1|; momentum_error= what liquid and leaf gained or lost together
   when their velocities were made to agree, over what they exchanged; t_p=, t_n=, t_step= seconds a substep for
   projections, for the optimisation, and in all; newton_mean= its Newton steps. The paper's size is --res 160. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/couple_tally.h"
#include "../../examples/kit/couple_look.h"

#define LONG 0.045    /* of the box, along the leaf [m] */
#define WIDE 0.033
#define TALL 0.0315
#define STALK 0.008   /* its length */
#define BLADE 0.034   /* length of the leaf without it */
#define HALF 0.0105   /* half its width */
#define BASE 0.011    /* height where the blade begins */
#define THICK 0.0004  /* of the blade */
#define RIB 0.0005    /* radius of midrib and stalk */
#define DROPS 3
#define FRAME 0.0005  /* seconds between two pictures */

typedef struct state {
    ex_mesh blade;           /* the vertices of the stalk come last */
    int *segments, segment_count, tip;
    fsi_levelset *liquid;
    fsi_shell *leaf;
    fsi_couple *both;
    fsi_grid_surface *surface;
} state;

/* ---- the leaf --------------------------------------------------------------------------------------------------- */

/* Half the width of the blade at the share s of its length: pointed, widest before its middle. */
static double half_width(double s) { return HALF * pow(s, 0.6) * pow(1 - s, 0.9) / (pow(0.4, 0.6) * pow(0.6, 0.9)); }

/* A point of the blade as it is at rest: halves raised from the midrib, which rises and then bends down. */
static fsi_vec3 blade_point(double s, double across)
{
    const double x = BLADE * s, z = 0.25 * x - 7 * x * x + 0.2 * fabs(across);
    return fsi_v3((fsi_real)(STALK + x), (fsi_real)(WIDE / 2 + across), (fsi_real)(BASE + z));
}

static void add_triangle(ex_mesh *m, int a, int b, int c)
{
    int *t = m->triangles + 3 * m->triangle_count++;
    t[0] = a;
    t[1] = b;
    t[2] = c;
}

/* Triangles between two rows, from the midrib to the edge at one side. a, b: their vertices on the midrib, na, nb:
   edges from there; side 1 or -1. */
static void zip_rows(ex_mesh *m, int a, int na, int b, int nb, int side)
{
    int i = 0, j = 0;
    while (i < na || j < nb) {
        const int along_a = j == nb || (i < na && (i + 1) * nb <= (j + 1) * na), p = a + side * i, q = b + side * j,
                  next = along_a ? a + side * ++i : b + side * ++j;
        if (side > 0) add_triangle(m, p, q, next);
        else add_triangle(m, q, p, next);
    }
}

/* Rows of vertices across the blade, as far apart as the vertices in them; then the stalk. */
static void lay_leaf(state *w, double edge)
{
    const int rows = (int)floor(BLADE / edge + 0.5), stalk = (int)floor(STALK / edge + 0.5);
    const size_t room = (size_t)((rows + 1) * (2 * HALF / edge + 4)) + (size_t)stalk;
    int i, j, count = 0, middle = 0, half = 0, previous = 0;
    w->blade = ex_mesh_make((int)room, (int)(2 * room));
    w->blade.triangle_count = 0;
    w->segments = (int *)ex_alloc(NULL, 2 * (size_t)(rows + stalk), sizeof(int));
    for (i = 0; i <= rows; i++) {
        const double s = (double)i / rows, wide = i == 0 || i == rows ? 0 : half_width(s);
        const int last = middle, last_half = half;
        half = wide > 0 ? (int)fmax(1, floor(wide / edge + 0.5)) : 0;
        middle = count + half;
        for (j = -half; j <= half; j++) w->blade.vertices[count++] = blade_point(s, half ? wide * j / half : 0);
        if (i == 0) continue;
        zip_rows(&w->blade, last, last_half, middle, half, 1);
        zip_rows(&w->blade, last, last_half, middle, half, -1);
        w->segments[2 * w->segment_count] = last;
        w->segments[2 * w->segment_count++ + 1] = middle;
    }
    w->tip = middle;
    for (i = 1; i <= stalk; i++) { /* from vertex 0, where the blade begins */
        w->blade.vertices[count] = fsi_v3((fsi_real)(STALK * (1 - (double)i / stalk)), (fsi_real)(WIDE / 2),
                                          (fsi_real)(BASE - 0.25 * STALK * i / stalk));
        w->segments[2 * w->segment_count] = previous;
        w->segments[2 * w->segment_count++ + 1] = previous = count++;
    }
    w->blade.vertex_count = count;
}

static void make_leaf(ex_app *app, state *w, double dx, double young)
{
    fsi_shell_material m = fsi_shell_preset(FSI_SHELL_LEAF);
    fsi_shell_desc d = fsi_shell_default_desc();
    lay_leaf(w, 0.62 * dx);
    m.thickness = (fsi_real)THICK;
    m.radius = (fsi_real)RIB;
    m.young = (fsi_real)young;
    m.young_weft = 0;
    m.shear = 0;
    m.bend = m.bend_weft = m.bend_shear = -1;
    m.twist = 0;
    d.context = &app->context;
    d.vertices = w->blade.vertices;
    d.vertex_count = w->blade.vertex_count;
    d.triangles = w->blade.triangles;
    d.triangle_count = w->blade.triangle_count;
    d.segments = w->segments;
    d.segment_count = w->segment_count;
    d.materials = &m;
    d.material_count = 1;
    ex_check(app, fsi_shell_create(&w->leaf, &d));
    w->leaf->pinned[w->blade.vertex_count - 1] = w->leaf->pinned[w->blade.vertex_count - 2] = 1;
}

/* ---- the rain --------------------------------------------------------------------------------------------------- */

static void make_rain(ex_app *app, state *w, double dx, double tension, double speed)
{
    /* place, height, radius [mm]; y from the midrib */
    static const double drop[DROPS][4] = { { 21, 1.5, 18, 3.2 }, { 31, -3, 24, 2.4 }, { 13, -2, 27, 2.6 } };
    fsi_levelset_desc d = fsi_levelset_default_desc();
    int k;
    d.context = &app->context;
    d.n[0] = app->res;
    d.n[1] = (int)ceil(WIDE / dx - 1e-6);
    d.n[2] = (int)ceil(TALL / dx - 1e-6);
    d.dx = (fsi_real)dx;
    d.surface_tension = (fsi_real)tension;
    d.cfl = (fsi_real)0.5;
    for (k = 0; k < 6; k++) d.open_side[k] = 1;
    ex_check(app, fsi_levelset_create(&w->liquid, &d));
    for (k = 0; k < DROPS; k++) {
        const double x = 0.001 * drop[k][0], y = WIDE / 2 + 0.001 * drop[k][1], z = 0.001 * drop[k][2];
        ex_check(app, fsi_levelset_fill_sphere(w->liquid, fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z),
                                               (fsi_real)(0.001 * drop[k][3]), fsi_v3(0, 0, (fsi_real)-speed), NULL));
    }
}

/* Share of the liquid that flies upwards. */
static double share_rising(const fsi_levelset *s)
{
    const fsi_grid *g = s->grid;
    const double dx = (double)g->dx;
    int i, j, k, all = 0, up = 0;
    for (k = 0; k < g->n[2]; k++) for (j = 0; j < g->n[1]; j++) for (i = 0; i < g->n[0]; i++) {
        if (!((double)fsi_grid_at(s->phi, i, j, k) < 0)) continue;
        all++;
        up += (double)fsi_levelset_velocity_at(
                  s, fsi_v3((fsi_real)((i + 0.5) * dx), (fsi_real)((j + 0.5) * dx), (fsi_real)((k + 0.5) * dx)))
                  .z > 0.1;
    }
    return all > 0 ? (double)up / all : 0;
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->leaf;
    int k;
    ex_draw_liquid(app, scene, w->surface, w->liquid);
    ex_draw_cloth(scene, s, THICK, 0x4f9a3f, 0x8fbf6a);
    for (k = 0; k < s->segment_count; k++) {
        fsi_vec3 ends[2];
        ends[0] = s->position[s->segments[2 * k]];
        ends[1] = s->position[s->segments[2 * k + 1]];
        ex_draw_rod(scene, ends, 2, RIB, NULL, 0x86b35a);
    }
    ex_save_scene(app, scene, frame, "%.1f ms", 1000 * s->time);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_couple_tally tally = { 0 };
    state w;
    fsi_couple_desc d = fsi_couple_default_desc();
    double tension = 0.0728, speed = 2, young = 5e9, dx, thrown = 0, dip = 0, rained;
    int frame, parts = 0, pierced = 0;

    memset(&w, 0, sizeof w);
    ex_init(&app, "leaf_splash", "Raindrops splash on a stiff leaf.");
    app.res = 48;
    app.res_help = "cells along the leaf's box";
    app.frames = 60;
    ex_real(&app, "tension", &tension, 0, 2, "surface tension [N/m]");
    ex_real(&app, "speed", &speed, 0, 6, "of the rain at first [m/s]");
    ex_real(&app, "young", &young, 1e5, 1e11, "Young's modulus of the leaf [Pa]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 24 || app.res > 512) ex_die("--res is not between 24 and 512");
    dx = LONG / app.res;
    make_leaf(&app, &w, dx, young);
    make_rain(&app, &w, dx, tension, speed);
    d.liquid = w.liquid;
    d.shell = w.leaf;
    d.slip = 1;
    ex_check(&app, fsi_couple_create(&w.both, &d));
    ex_check(&app, fsi_grid_surface_create(&w.surface, &app.context));
    scene = ex_scene_of_box(&app, fsi_v3((fsi_real)(0.08 * LONG), (fsi_real)(0.25 * WIDE), (fsi_real)(0.2 * TALL)),
                            fsi_v3((fsi_real)LONG, (fsi_real)(0.75 * WIDE), (fsi_real)(0.8 * TALL)), 22, 32);
    rained = w.liquid->stats.target;

    for (frame = 0; frame < app.frames; frame++) {
        ex_couple_step(&app, &tally, w.both, FRAME);
        pierced += ex_count_pierced(w.liquid, w.leaf->position, w.leaf->triangles, w.leaf->triangle_count);
        thrown = fmax(thrown, share_rising(w.liquid));
        dip = fmax(dip, (double)(w.blade.vertices[w.tip].z - w.leaf->position[w.tip].z) / BLADE);
        parts = w.liquid->component_count > parts ? w.liquid->component_count : parts;
        if (app.images) draw(&app, &scene, &w, frame);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "pierced", "%.0f", pierced);
    ex_figure(&app, "thrown", "%.3f", thrown);
    ex_figure(&app, "most_parts", "%.0f", parts);
    ex_figure(&app, "dip", "%.3f", dip);
    ex_figure(&app, "left", "%.3f", w.liquid->stats.left_volume / rained);
    ex_couple_figures(&app, &tally, w.both);
    ex_couple_end(w.both, w.surface, &scene);
    ex_mesh_free(&w.blade);
    free(w.segments);
    return ex_end(&app);
}
