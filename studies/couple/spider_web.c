/* cc -O3 -I. studies/couple/spider_web.c -lm -o spider_web && ./spider_web
   SPDX-License-Identifier: MIT

   Drops of rain fall on a spider's web: threads from a hub to a frame and a few rings across them, held where the
   threads end. Some drops stay where threads meet or slide along one, some are cut by the silk and go on as smaller
   ones. With --adhesion 100 the silk is wetting: what it stopped hangs on, like dew. caught= is the share of the rain
   that is still above the web's lowest point at the end; most_parts= the most drops at a time; sag= how far a vertex
   ever went down, over the web's radius. min_distance= is the smallest distance of the liquid from any sample of the
   web, over the size of a cell: above 0, nothing ever passed through. volume_error= the largest |volume/target - 1|;
   momentum_error= what liquid and web gained or lost together when their velocities were made to agree, over what they
   exchanged; t_p=, t_n=, t_step= seconds a substep for projections, for the optimisation, and in all; newton_mean= its
   Newton steps. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/couple_tally.h"
#include "../../examples/kit/couple_look.h"

#define WIDE 0.03      /* of the box [m] */
#define HEIGHT 0.014   /* of the hub */
#define TILT 0.30      /* of the web, over x [rad] */
#define THREADS 10     /* from the hub */
#define RINGS 5
#define SPREAD 0.0125  /* radius of the web */
#define THICK 0.00008  /* of a thread */
#define DROPS 9
#define FRAME 0.002    /* seconds between two pictures */

typedef struct state {
    fsi_vec3 *rest;
    unsigned char *held;
    int *segments, count, segment_count;
    fsi_levelset *liquid;
    fsi_shell *web;
    fsi_couple *both;
    fsi_grid_surface *surface;
} state;

static void add_thread(state *w, int a, int b)
{
    w->segments[2 * w->segment_count] = a;
    w->segments[2 * w->segment_count++ + 1] = b;
}

/* A vertex in the plane of the web, r from the hub, and whether it is held. */
static int add_vertex(state *w, double r, double angle, int held)
{
    const double along = r * cos(angle), x = WIDE / 2 + along * cos(TILT), z = HEIGHT + along * sin(TILT);
    w->rest[w->count] = fsi_v3((fsi_real)x, (fsi_real)(WIDE / 2 + r * sin(angle)), (fsi_real)z);
    w->held[w->count] = (unsigned char)held;
    return w->count++;
}

/* A chain of segments of about dx between two vertices, straight. */
static void add_chain(state *w, int a, int b, double dx)
{
    const fsi_vec3 from = w->rest[a], way = fsi_v3_sub(w->rest[b], from);
    const int n = (int)fmax(1, floor((double)fsi_v3_norm(way) / dx + 0.5));
    int k;
    for (k = 1; k < n; k++) {
        w->rest[w->count] = fsi_v3_madd(from, (fsi_real)k / (fsi_real)n, way);
        w->held[w->count] = 0;
        add_thread(w, a, w->count);
        a = w->count++;
    }
    add_thread(w, a, b);
}

/* The hub, where rings and threads meet, the ends; then the chains between them. */
static void lay_web(state *w, double dx)
{
    const int room = 64 + (int)(THREADS * (RINGS + 1) * SPREAD * 2.5 / dx);
    int at[THREADS][RINGS + 2], t, k;
    w->rest = (fsi_vec3 *)ex_alloc(NULL, (size_t)room, sizeof *w->rest);
    w->held = (unsigned char *)ex_alloc(NULL, (size_t)room, 1);
    w->segments = (int *)ex_alloc(NULL, 4 * (size_t)room, sizeof(int));
    at[0][0] = add_vertex(w, 0, 0, 0);
    for (t = 0; t < THREADS; t++) for (k = 0; k <= RINGS + 1; k++) {
        const double angle = 2 * FSI_PI * (t + 0.13 * sin(5.0 * t)) / THREADS; /* not all alike */
        at[t][k] = k == 0 ? at[0][0] : add_vertex(w, SPREAD * (k + 0.5) / (RINGS + 1.5), angle, k == RINGS + 1);
    }
    for (t = 0; t < THREADS; t++) for (k = 1; k <= RINGS + 1; k++) {
        add_chain(w, at[t][k - 1], at[t][k], dx);
        if (k <= RINGS) add_chain(w, at[t][k], at[(t + 1) % THREADS][k], dx);
    }
}

static void make_web(ex_app *app, state *w, double dx, double young)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    lay_web(w, dx);
    m.radius = (fsi_real)THICK;
    m.young = (fsi_real)young;
    m.twist = 0;
    m.damping_stiffness = (fsi_real)0.001;
    d.context = &app->context;
    d.vertices = w->rest;
    d.vertex_count = w->count;
    d.segments = w->segments;
    d.segment_count = w->segment_count;
    d.materials = &m;
    d.material_count = 1;
    ex_check(app, fsi_shell_create(&w->web, &d));
    memcpy(w->web->pinned, w->held, (size_t)w->count);
}

static void make_rain(ex_app *app, state *w, double dx, double tension, double speed)
{
    static const double drop[DROPS][4] = {/* place, height over the hub, radius [mm] */
                                          {0, 0, 3, 1.7},   {6, 4, 5, 1.3},    {-5, 4, 3, 1.5},
                                          {-4, -6, 5, 1.2}, {6, -4, 6.5, 1.7}, {1, 7, 7, 1.5},
                                          {-8, -1, 6, 1.3}, {1, -3, 10, 1.6},  {-3, 2, 12, 1.4}};
    fsi_levelset_desc d = fsi_levelset_default_desc();
    int k;
    d.context = &app->context;
    d.n[0] = d.n[1] = d.n[2] = app->res;
    d.dx = (fsi_real)dx;
    d.surface_tension = (fsi_real)tension;
    ex_check(app, fsi_levelset_create(&w->liquid, &d));
    for (k = 0; k < DROPS; k++) {
        const double x = WIDE / 2 + 0.001 * drop[k][0], y = WIDE / 2 + 0.001 * drop[k][1],
                     z = HEIGHT + 0.001 * drop[k][2];
        ex_check(app, fsi_levelset_fill_sphere(w->liquid, fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z),
                                               (fsi_real)(0.001 * drop[k][3]), fsi_v3(0, 0, (fsi_real)-speed), NULL));
    }
}

static double lowest_of(const fsi_shell *s)
{
    double low = 1;
    int i;
    for (i = 0; i < s->vertex_count; i++) low = fmin(low, (double)s->position[i].z);
    return low;
}

/* Farthest way down of a vertex. */
static double sag_of(const state *w)
{
    double most = 0;
    int i;
    for (i = 0; i < w->count; i++) most = fmax(most, (double)(w->rest[i].z - w->web->position[i].z));
    return most;
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->web;
    int k;
    ex_draw_liquid(app, scene, w->surface, w->liquid);
    for (k = 0; k < s->segment_count; k++) {
        fsi_vec3 ends[2];
        ends[0] = s->position[s->segments[2 * k]];
        ends[1] = s->position[s->segments[2 * k + 1]];
        ex_draw_rod(scene, ends, 2, THICK, NULL, 0x6b4a3a);
    }
    ex_save_scene(app, scene, frame, "%.0f ms", 1000 * s->time);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_couple_tally tally = { 0 };
    state w;
    fsi_couple_desc d = fsi_couple_default_desc();
    double tension = 0.0728, speed = 0.6, young = 2e6, adhesion = 0, dx, sag = 0;
    int frame, parts = 0;

    memset(&w, 0, sizeof w);
    ex_init(&app, "spider_web", "Rain falls on a spider's web.");
    app.res = 72;
    app.res_help = "cells along the box";
    app.frames = 28;
    ex_real(&app, "tension", &tension, 0, 2, "surface tension [N/m]");
    ex_real(&app, "speed", &speed, 0, 3, "of the rain at first [m/s]");
    ex_real(&app, "young", &young, 1e3, 1e9, "Young's modulus of the silk [Pa]");
    ex_real(&app, "adhesion", &adhesion, 0, 1e4, "that liquid bears at the silk [Pa]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 24 || app.res > 512) ex_die("--res is not between 24 and 512");
    dx = WIDE / app.res;
    make_web(&app, &w, dx, young);
    make_rain(&app, &w, dx, tension, speed);
    d.liquid = w.liquid;
    d.shell = w.web;
    d.adhesion = (fsi_real)adhesion;
    ex_check(&app, fsi_couple_create(&w.both, &d));
    ex_check(&app, fsi_grid_surface_create(&w.surface, &app.context));
    scene = ex_scene_of_box(&app, fsi_v3((fsi_real)(0.2 * WIDE), (fsi_real)(0.2 * WIDE), (fsi_real)(0.2 * WIDE)),
                            fsi_v3((fsi_real)(0.8 * WIDE), (fsi_real)(0.8 * WIDE), (fsi_real)(0.72 * WIDE)), -30, 26);

    for (frame = 0; frame < app.frames; frame++) {
        ex_couple_step(&app, &tally, w.both, FRAME);
        sag = fmax(sag, sag_of(&w));
        parts = w.liquid->component_count > parts ? w.liquid->component_count : parts;
        if (app.images) draw(&app, &scene, &w, frame);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "caught", "%.3f", ex_share_above(w.liquid, lowest_of(w.web)));
    ex_figure(&app, "most_parts", "%.0f", parts);
    ex_figure(&app, "sag", "%.2f", sag / SPREAD);
    ex_couple_figures(&app, &tally, w.both);
    ex_couple_end(w.both, w.surface, &scene);
    free(w.rest);
    free(w.segments);
    free(w.held);
    return ex_end(&app);
}
