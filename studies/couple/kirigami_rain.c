/* cc -O3 -I. studies/couple/kirigami_rain.c -lm -o kirigami_rain && ./kirigami_rain
   SPDX-License-Identifier: MIT

   Drops of random sizes fall on a square kirigami: a card with a crease along its middle, whose halves rest at 110.6
   degrees to each other, and V-shaped bands between open slits. Some drops are cut in parts by the bands, some squeeze
   through, some stay and run along the crease. The card hangs on its four corners and gives way. drops= is how many
   came down; most_parts= the most at a time; passed= the share of the rain below the card at the end; left= the share
   that left the box through its open sides; sink= the farthest way down of a vertex, over the side of the card;
   drop_error= the largest |volume/target - 1| of a single drop of more than 100 cells, at the end of any frame.
   pierced= counts, over all steps, pairs of neighbouring liquid cells that a triangle of the card divides: 0, there is
   air between liquid and card everywhere. min_distance= is the smallest distance of the liquid from any sample of the
   card, over the size of a cell: above 0, nothing ever passed through. volume_error= the largest |volume/target - 1|;
   momentum_error= what liquid and card gained or lost together when their velocities were made to agree, over what they
   exchanged; t_p=, t_n=, t_step= seconds a substep for projections, for the optimisation, and in all; newton_mean= its
   Newton steps. The paper's size is --res 192. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/couple_tally.h"
#include "../../examples/kit/couple_look.h"
#include "couple_rain.h"

#define WIDE 0.06        /* of the box, along both sides [m] */
#define TALL 0.039
#define SIDE 0.048       /* of the card, flat */
#define THICK 0.0002
#define REST 110.6       /* angle between the card's halves at rest [degrees] */
#define RISE ((180 - REST) * FSI_PI / 180) /* the same from flat [rad] */
#define LOW 0.009        /* height of the crease */
#define SLITS 4
#define ARM 0.016        /* how far a slit reaches from the crease, along the card, */
#define CUT 0.0065       /* and its width */
#define PITCH 0.0110     /* distance of two slits along the crease */
#define SLOPE 0.45       /* of a slit's arms */
#define SMALLEST 0.0017  /* radius of a drop, */
#define LARGEST 0.0039
#define FRAME 0.003      /* seconds between two pictures */

typedef struct state {
    ex_mesh card;
    int n;               /* edges along half a side */
    fsi_shell_crease *creases;
    int crease_count;
    fsi_levelset *liquid;
    fsi_shell *shell;
    fsi_couple *both;
    fsi_grid_surface *surface;
    ex_rain rain;
} state;

/* ---- the card --------------------------------------------------------------------------------------------------- */

/* A cell of the lattice, by its middle, lies in a slit. */
static int is_cut(double u, double v)
{
    int s;
    for (s = 0; s < SLITS; s++) if (fabs(v - PITCH * (s - (SLITS - 1) / 2.0)) < CUT / 2 && fabs(u) < ARM) return 1;
    return 0;
}

/* Where a point (u, v) of the lattice lies: on the flat card its rows are bent to V's, except at its ends; then it is
   folded up to the rest angle. */
static fsi_vec3 card_point(double u, double v)
{
    const double a = RISE / 2, y = v + SLOPE * fmin(fabs(u), ARM) * (1 - 4 * v * v / (SIDE * SIDE));
    return fsi_v3((fsi_real)(WIDE / 2 + u * cos(a)), (fsi_real)(WIDE / 2 + y), (fsi_real)(LOW + fabs(u) * sin(a)));
}

/* A lattice with a column of vertices on the crease; triangles are left out where their cell lies in a slit. Vertices
   that no triangle uses are left out too. */
static void cut_card(state *w, int n)
{
    ex_mesh m = ex_grid(fsi_v3((fsi_real)(-SIDE / 2), (fsi_real)(-SIDE / 2), 0),
                        fsi_v3((fsi_real)(SIDE / 2), (fsi_real)(SIDE / 2), 0), 2 * n, 2 * n);
    int *number = (int *)ex_alloc(NULL, (size_t)m.vertex_count, sizeof *number), t, k, kept = 0, count = 0;
    for (k = 0; k < m.vertex_count; k++) number[k] = -1;
    for (t = 0; t < m.triangle_count; t++) {
        const int *a = m.triangles + 6 * (t / 2); /* both triangles of a cell; a[0] and a[2] are opposite corners */
        const fsi_vec3 middle = fsi_v3_scale(fsi_v3_add(m.vertices[a[0]], m.vertices[a[2]]), (fsi_real)0.5);
        if (is_cut((double)middle.x, (double)middle.y)) continue;
        for (k = 0; k < 3; k++) {
            const int v = m.triangles[3 * t + k];
            number[v] = 0;
            m.triangles[3 * kept + k] = v;
        }
        kept++;
    }
    for (k = 0; k < m.vertex_count; k++) {
        if (number[k] < 0) continue;
        number[k] = count;
        m.vertices[count++] = card_point((double)m.vertices[k].x, (double)m.vertices[k].y);
    }
    for (k = 0; k < 3 * kept; k++) m.triangles[k] = number[m.triangles[k]];
    m.vertex_count = count;
    m.triangle_count = kept;
    w->card = m;
    free(number);
}

/* The edges of the middle column that two triangles share. */
static void add_creases(state *w)
{
    int t, k, u;
    w->creases = (fsi_shell_crease *)ex_alloc(NULL, (size_t)w->card.triangle_count, sizeof *w->creases);
    for (t = 0; t < w->card.triangle_count; t++) for (k = 0; k < 3; k++) {
        const int a = w->card.triangles[3 * t + k], b = w->card.triangles[3 * t + (k + 1) % 3];
        fsi_shell_crease *c = &w->creases[w->crease_count];
        if (fabs((double)w->card.vertices[a].x - WIDE / 2) > 1e-9 ||
            fabs((double)w->card.vertices[b].x - WIDE / 2) > 1e-9)
            continue;
        for (u = 0; u < 3 * w->card.triangle_count; u++)
            if (w->card.triangles[u] == b && w->card.triangles[u % 3 == 2 ? u - 2 : u + 1] == a) break;
        if (u == 3 * w->card.triangle_count || a > b) continue; /* one of the two triangles names it */
        c->a = a;
        c->b = b;
        c->angle = (fsi_real)-RISE; /* towards the side the normals point to: up */
        c->stiffness = 1;
        w->crease_count++;
    }
}

/* It rests flat but for the crease, and starts folded up. */
static void make_card(ex_app *app, state *w, double dx, double young)
{
    fsi_shell_material m = fsi_shell_preset(FSI_SHELL_PAPER);
    fsi_shell_desc d = fsi_shell_default_desc();
    int k;
    cut_card(w, (int)floor(SIDE / (2 * 0.9 * dx) + 0.5));
    add_creases(w);
    m.thickness = (fsi_real)THICK;
    m.young = (fsi_real)young;
    m.young_weft = 0;
    m.shear = 0;
    m.bend = m.bend_weft = m.bend_shear = -1;
    m.damping_stiffness = (fsi_real)0.0005;
    d.context = &app->context;
    d.vertices = w->card.vertices;
    d.vertex_count = w->card.vertex_count;
    d.triangles = w->card.triangles;
    d.triangle_count = w->card.triangle_count;
    d.materials = &m;
    d.material_count = 1;
    d.creases = w->creases;
    d.crease_count = w->crease_count;
    ex_check(app, fsi_shell_create(&w->shell, &d));
    for (k = 0; k < w->card.vertex_count; k++) {
        const fsi_vec3 x = w->card.vertices[k];
        w->shell->pinned[k] =
            (double)x.z > (double)card_point(SIDE / 2, 0).z - 1e-9 && fabs((double)x.y - WIDE / 2) > SIDE / 2 - 1e-9;
    }
}

/* ---- the rain --------------------------------------------------------------------------------------------------- */

static void make_rain(ex_app *app, state *w, double dx, double tension, double speed)
{
    const fsi_vec3 side = card_point(0.3 * SIDE, 0.4 * SIDE);
    const fsi_real z = (fsi_real)(TALL - LARGEST - 2 * dx);
    fsi_levelset_desc d = fsi_levelset_default_desc();
    int k;
    d.context = &app->context;
    d.n[0] = d.n[1] = app->res;
    d.n[2] = (int)ceil(TALL / dx - 1e-6);
    d.dx = (fsi_real)dx;
    d.surface_tension = (fsi_real)tension;
    d.cfl = (fsi_real)0.5;
    for (k = 0; k < 4; k++) d.open_side[k] = 1;
    ex_check(app, fsi_levelset_create(&w->liquid, &d));
    w->rain.centers.lo = fsi_v3((fsi_real)WIDE - side.x, (fsi_real)WIDE - side.y, z);
    w->rain.centers.hi = fsi_v3(side.x, side.y, z);
    w->rain.least = SMALLEST;
    w->rain.most = LARGEST;
    w->rain.velocity = fsi_v3(0, 0, (fsi_real)-speed);
    w->rain.random = 7u;
}

/* Share of the rain below the card's lowest point. */
static double share_below(const state *w)
{
    double low = 1, below = 0;
    int k;
    for (k = 0; k < w->shell->vertex_count; k++) low = fmin(low, (double)w->shell->position[k].z);
    for (k = 0; k < w->liquid->component_count; k++)
        if ((double)w->liquid->component[k].shape.box.hi.z < low) below += w->liquid->component[k].shape.volume;
    return w->rain.volume > 0 ? below / w->rain.volume : 0;
}

static double sink_of(const state *w)
{
    double most = 0;
    int k;
    for (k = 0; k < w->shell->vertex_count; k++)
        most = fmax(most, (double)(w->card.vertices[k].z - w->shell->position[k].z) / SIDE);
    return most;
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->shell;
    ex_draw_liquid(app, scene, w->surface, w->liquid);
    ex_draw_cloth(scene, s, THICK, 0xf0e6d2, 0xd9653b);
    ex_save_scene(app, scene, frame, "%.0f ms", 1000 * s->time);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_couple_tally tally = { 0 };
    state w;
    fsi_couple_desc d = fsi_couple_default_desc();
    double tension = 0.0728, speed = 0.5, young = 5e7, every = 0.008, dx, sink = 0, drop_error = 0;
    int frame, parts = 0, pierced = 0;

    memset(&w, 0, sizeof w);
    ex_init(&app, "kirigami_rain", "Drops fall on a kirigami with a crease.");
    app.res = 48;
    app.res_help = "cells along the box";
    app.frames = 60;
    ex_real(&app, "tension", &tension, 0, 2, "surface tension [N/m]");
    ex_real(&app, "speed", &speed, 0, 5, "of the rain at first [m/s]");
    ex_real(&app, "every", &every, 1e-4, 10, "time between two drops [s]");
    ex_real(&app, "young", &young, 1e5, 1e11, "Young's modulus of the card [Pa]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 32 || app.res > 512) ex_die("--res is not between 32 and 512");
    dx = WIDE / app.res;
    make_card(&app, &w, dx, young);
    make_rain(&app, &w, dx, tension, speed);
    d.liquid = w.liquid;
    d.shell = w.shell;
    d.slip = 1;
    ex_check(&app, fsi_couple_create(&w.both, &d));
    ex_check(&app, fsi_grid_surface_create(&w.surface, &app.context));
    scene = ex_scene_of_box(&app, fsi_v3((fsi_real)(0.2 * WIDE), (fsi_real)(0.2 * WIDE), 0),
                            fsi_v3((fsi_real)(0.8 * WIDE), (fsi_real)(0.8 * WIDE), (fsi_real)(0.75 * TALL)), 24, 34);

    for (frame = 0; frame < app.frames; frame++) {
        if (w.both->time > w.rain.drops * every - FRAME / 2) ex_rain_let(&app, &w.rain, w.both);
        ex_couple_step(&app, &tally, w.both, FRAME);
        pierced += ex_count_pierced(w.liquid, w.shell->position, w.shell->triangles, w.shell->triangle_count);
        drop_error = fmax(drop_error, ex_rain_drop_error(w.liquid));
        sink = fmax(sink, sink_of(&w));
        parts = w.liquid->component_count > parts ? w.liquid->component_count : parts;
        if (app.images) draw(&app, &scene, &w, frame);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "drops", "%.0f", w.rain.drops);
    ex_figure(&app, "most_parts", "%.0f", parts);
    ex_figure(&app, "passed", "%.3f", share_below(&w));
    ex_figure(&app, "left", "%.3f", w.liquid->stats.left_volume / w.rain.volume);
    ex_figure(&app, "sink", "%.3f", sink);
    ex_figure(&app, "drop_error", "%.1e", drop_error);
    ex_figure(&app, "pierced", "%.0f", pierced);
    ex_couple_figures(&app, &tally, w.both);
    ex_couple_end(w.both, w.surface, &scene);
    ex_mesh_free(&w.card);
    free(w.creases);
    return ex_end(&app);
}
