/* cc -O3 -I. studies/couple/rod_bundles.c -lm -o rod_bundles && ./rod_bundles
   SPDX-License-Identifier: MIT

   A drop of water with a surface tension of 0.04 N/m glides down a bundle of stiff rods, clamped at one side, off their
   free tips, and onto a second bundle that is clamped at the other side and whose rods lie between those of the first.
   Two more rods stand in its way and cut it in parts, which fall through the second bundle one after the other. With
   --tension 0.0728 there are two at most, and none has fallen through at the end. ringed= is the most rods that liquid
   closed around at a time, in slices of cells across the bundles: 0 at --res 64, where the cuts stay open to the air, 2
   at 96; most_parts= the most drops at a time; passed= the share of the water below both bundles at the end; bend= how
   far a tip ever went from its place, over the length of its rod. min_distance= is the smallest distance of the liquid
   from any sample of the rods, over the size of a cell: above 0, nothing ever passed through. volume_error= the largest
   |volume/target - 1|; momentum_error= what liquid and rods gained or lost together when their velocities were made to
   agree, over what they exchanged; t_p=, t_n=, t_step= seconds a substep for projections, for the optimisation, and in
   all; newton_mean= its Newton steps. The paper's size is --res 160. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/couple_tally.h"
#include "../../examples/kit/couple_look.h"

#define LONG 0.024     /* of the box along the rods, and its height [m] */
#define WIDE 0.0105    /* of the box */
#define APART 0.0012   /* distance of the rods of a bundle */
#define TROUGH 0.00012 /* rods rise from the middle of a bundle by this times their place squared */
#define THICK 0.0001   /* radius of a rod */
#define RADIUS 0.0024  /* of the drop */
#define BEGIN 0.0032   /* where it comes down */
#define UPPER 6        /* rods */
#define LOWER 7
#define HIGH 2         /* beside the middle one of the lower ones, above them */
#define RODS (UPPER + LOWER + HIGH)
#define FRAME 0.002    /* seconds between two pictures */

typedef struct state {
    fsi_vec3 *rest;
    int *segments, segment_count, first[RODS + 1]; /* vertex of each rod where it is clamped */
    fsi_levelset *liquid;
    fsi_shell *rods;
    fsi_couple *both;
    fsi_grid_surface *surface;
} state;

/* Ends of a rod: x and z where it is clamped, x and z of its tip. */
static const double upper_rod[4] = {0, 0.0190, 0.0105, 0.0163}, lower_rod[4] = {LONG, 0.0130, 0.009, 0.0070},
                    high_rod[4] = {LONG, 0.0150, 0.0128, 0.0135};

static const double *ends_of(int rod) { return rod < UPPER ? upper_rod : rod < UPPER + LOWER ? lower_rod : high_rod; }

/* Its place across the rods, over their distance; 0: the middle. */
static double place_of(int rod)
{
    if (rod < UPPER) return rod - (UPPER - 1) / 2.0;
    if (rod < UPPER + LOWER) return rod - UPPER - (LOWER - 1) / 2.0;
    return rod - UPPER - LOWER - (HIGH - 1) / 2.0;
}

/* Adds a rod, its segments as long as a cell. */
static void add_rod(state *w, int rod, double dx)
{
    const double *end = ends_of(rod), place = place_of(rod), y = WIDE / 2 + APART * place,
                 rise = TROUGH * place * place;
    const int n = (int)floor(hypot(end[2] - end[0], end[3] - end[1]) / dx + 0.5), first = w->first[rod];
    int i;
    w->rest = (fsi_vec3 *)ex_alloc(w->rest, (size_t)(first + n + 1), sizeof *w->rest);
    w->segments = (int *)ex_alloc(w->segments, 2 * (size_t)(first + n), sizeof(int));
    for (i = 0; i <= n; i++) {
        const double t = (double)i / n;
        w->rest[first + i] = fsi_v3((fsi_real)(end[0] + t * (end[2] - end[0])), (fsi_real)y,
                                    (fsi_real)(end[1] + rise + t * (end[3] - end[1])));
        if (i == n) continue;
        w->segments[2 * w->segment_count] = first + i;
        w->segments[2 * w->segment_count++ + 1] = first + i + 1;
    }
    w->first[rod + 1] = first + n + 1;
}

static void make_rods(ex_app *app, state *w, double dx, double young)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    int r;
    for (r = 0; r < RODS; r++) add_rod(w, r, dx);
    m.density = 2500;
    m.radius = (fsi_real)THICK;
    m.young = (fsi_real)young;
    m.twist = 0;
    d.context = &app->context;
    d.vertices = w->rest;
    d.vertex_count = w->first[RODS];
    d.segments = w->segments;
    d.segment_count = w->segment_count;
    d.materials = &m;
    d.material_count = 1;
    ex_check(app, fsi_shell_create(&w->rods, &d));
    /* two: its direction is held too */
    for (r = 0; r < RODS; r++) w->rods->pinned[w->first[r]] = w->rods->pinned[w->first[r] + 1] = 1;
}

static void make_liquid(ex_app *app, state *w, double dx, double tension)
{
    const double z = upper_rod[1] + BEGIN / upper_rod[2] * (upper_rod[3] - upper_rod[1]) + 1.2 * RADIUS;
    fsi_levelset_desc d = fsi_levelset_default_desc();
    d.context = &app->context;
    d.n[0] = d.n[2] = app->res;
    d.n[1] = (int)ceil(WIDE / dx - 1e-6);
    d.dx = (fsi_real)dx;
    d.surface_tension = (fsi_real)tension;
    ex_check(app, fsi_levelset_create(&w->liquid, &d));
    ex_check(app, fsi_levelset_fill_sphere(w->liquid, fsi_v3((fsi_real)BEGIN, (fsi_real)(WIDE / 2), (fsi_real)z),
                                           (fsi_real)RADIUS, fsi_v3(0, 0, 0), NULL));
}

/* Rods with a vertex that liquid rings. */
static int count_ringed(const state *w)
{
    int r, i, count = 0;
    for (r = 0; r < RODS; r++) {
        int ringed = 0;
        for (i = w->first[r]; i < w->first[r + 1] && !ringed; i++)
            ringed = (double)fsi_levelset_phi_at(w->liquid, w->rods->position[i]) < 2 * (double)w->liquid->desc.dx &&
                     ex_is_ringed(w->liquid, w->rods->position[i]);
        count += ringed;
    }
    return count;
}

/* How far a tip is from its place, over the length of its rod. */
static double bend_of(const state *w)
{
    double most = 0;
    int r;
    for (r = 0; r < RODS; r++) {
        const int tip = w->first[r + 1] - 1;
        const double length = (double)fsi_v3_norm(fsi_v3_sub(w->rest[tip], w->rest[w->first[r]]));
        most = fmax(most, (double)fsi_v3_norm(fsi_v3_sub(w->rods->position[tip], w->rest[tip])) / length);
    }
    return most;
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->rods;
    int r;
    ex_draw_liquid(app, scene, w->surface, w->liquid);
    for (r = 0; r < RODS; r++)
        ex_draw_rod(scene, s->position + w->first[r], w->first[r + 1] - w->first[r], THICK, NULL,
                    r < UPPER ? 0xc8432f : 0xd9a15b);
    ex_save_scene(app, scene, frame, "%.0f ms", 1000 * s->time);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_couple_tally tally = { 0 };
    state w;
    fsi_couple_desc d = fsi_couple_default_desc();
    double tension = 0.04, young = 7e10, dx, bend = 0;
    int frame, k, ringed = 0, parts = 0;

    memset(&w, 0, sizeof w);
    ex_init(&app, "rod_bundles", "A drop glides down two bundles of stiff rods.");
    app.res = 64;
    app.res_help = "cells along the box";
    app.frames = 96;
    ex_real(&app, "tension", &tension, 0, 2, "surface tension [N/m]");
    ex_real(&app, "young", &young, 1e6, 1e12, "Young's modulus of the rods [Pa]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 24 || app.res > 512) ex_die("--res is not between 24 and 512");
    dx = LONG / app.res;
    make_rods(&app, &w, dx, young);
    make_liquid(&app, &w, dx, tension);
    d.liquid = w.liquid;
    d.shell = w.rods;
    d.slip = 1;
    ex_check(&app, fsi_couple_create(&w.both, &d));
    ex_check(&app, fsi_grid_surface_create(&w.surface, &app.context));
    scene = ex_scene_of_box(&app, fsi_v3((fsi_real)(0.12 * LONG), (fsi_real)(0.1 * WIDE), (fsi_real)(0.2 * LONG)),
                            fsi_v3((fsi_real)(0.88 * LONG), (fsi_real)(0.9 * WIDE), (fsi_real)(0.85 * LONG)), 24, 30);

    for (frame = 0; frame < app.frames; frame++) {
        ex_couple_step(&app, &tally, w.both, FRAME);
        k = count_ringed(&w);
        ringed = k > ringed ? k : ringed;
        parts = w.liquid->component_count > parts ? w.liquid->component_count : parts;
        bend = fmax(bend, bend_of(&w));
        if (app.images) draw(&app, &scene, &w, frame);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "passed", "%.3f", 1 - ex_share_above(w.liquid, lower_rod[3]));
    ex_figure(&app, "ringed", "%.0f", ringed);
    ex_figure(&app, "most_parts", "%.0f", parts);
    ex_figure(&app, "bend", "%.4f", bend);
    ex_couple_figures(&app, &tally, w.both);
    ex_couple_end(w.both, w.surface, &scene);
    free(w.rest);
    free(w.segments);
    return ex_end(&app);
}
