/* cc -O3 -I. studies/elastic/beam.c -lm -o beam && ./beam
   SPDX-License-Identifier: MIT

   A beam of square section, clamped at one end, against theory, in three parts: it bends under its weight; without
   weight, let go from there, it swings; its free end is turned by moving targets at all points of the end face. It is
   made of --res cells across, 6 tetrahedra each, all vertices free; with --reduced, in a subspace of --handles handles.
   tip= is the deflection over Timoshenko's, w L^4/(8 E I) + w L^2/(2 k G A), k = 5/6; frequency= the first one over
   Euler's 1.8751^2/(2 pi L^2) sqrt(E I/(rho A)); torque= at an angle of --angle over G J angle/L, J = 0.1406 a^4 for
   the square section of side a. Linear tetrahedra are too stiff: --res shows how fast all three come nearer. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_elastic.h"
#include "../../examples/kit/elastic_look.h"

#define FRAME (1.0 / 60)
#define SIDE 0.05
#define LENGTH 0.4
#define DENSITY 1000.0
#define GRAVITY 9.81
#define RAMP 24 /* steps to the angle where the torque is measured */

/* The beam along x, from the origin, cut into n cells across. */
typedef struct beam {
    fsi_vec3 *x;
    int *tets, vertices, elements, n, nx;
} beam;

static int vertex_of(const beam *b, int i, int j, int k) { return (k * (b->n + 1) + j) * (b->nx + 1) + i; }

/* Each cell is cut into six tetrahedra along its diagonal, one for each order of the axes (Kuhn). */
static beam beam_make(int n)
{
    static const int order[6][3] = { { 0, 1, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 0, 2, 1 }, { 2, 1, 0 }, { 1, 0, 2 } };
    beam b;
    int i, j, k, p, a, at = 0;
    b.n = n;
    b.nx = (int)(n * LENGTH / SIDE + 0.5);
    b.vertices = (b.nx + 1) * (n + 1) * (n + 1);
    b.elements = 6 * b.nx * n * n;
    b.x = (fsi_vec3 *)ex_alloc(NULL, (size_t)b.vertices, sizeof *b.x);
    b.tets = (int *)ex_alloc(NULL, 4 * (size_t)b.elements, sizeof *b.tets);
    for (k = 0; k <= n; k++) for (j = 0; j <= n; j++) for (i = 0; i <= b.nx; i++)
        b.x[vertex_of(&b, i, j, k)] = fsi_v3((fsi_real)(LENGTH * i / b.nx), (fsi_real)(SIDE * (j - n / 2.0) / n),
                                             (fsi_real)(SIDE * (k - n / 2.0) / n));
    for (k = 0; k < n; k++) for (j = 0; j < n; j++) for (i = 0; i < b.nx; i++) for (p = 0; p < 6; p++) {
        int c[3], *t = b.tets + 4 * at++;
        c[0] = i;
        c[1] = j;
        c[2] = k;
        t[0] = vertex_of(&b, i, j, k);
        for (a = 1; a <= 3; a++) {
            c[order[p][a - 1]]++;
            t[p < 3 || a == 1 ? a : 5 - a] = vertex_of(&b, c[0], c[1], c[2]); /* odd orders: the last two swapped */
        }
    }
    return b;
}

typedef struct state {
    fsi_elastic_desc desc;
    fsi_elastic_material material;
    beam b;
    fsi_elastic *s;
    int id, *held, *turned; /* attachments at both ends, vertex (j, k) is number k * (n + 1) + j */
    int handles;
} state;

/* A simulator with the beam, clamped at x = 0; damping [s]. Springs a thousand times as stiff as the beam's section
   clamp it: pins are the softer the longer the steps are. */
static void begin(ex_app *app, state *w, double damping, int order)
{
    fsi_elastic_body_desc d = fsi_elastic_default_body_desc();
    fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
    int i, j;
    w->desc.time_order = order;
    w->material.damping = damping;
    ex_check(app, fsi_elastic_create(&w->s, &w->desc));
    d.vertices = w->b.x;
    d.vertex_count = w->b.vertices;
    d.elements = w->b.tets;
    d.element_count = w->b.elements;
    d.materials = &w->material;
    d.material_count = 1;
    d.handles = w->handles;
    ex_check(app, fsi_elastic_add_body(w->s, &d, &w->id));
    a.body = w->id;
    for (j = 0; j <= w->b.n; j++) for (i = 0; i <= w->b.n; i++) {
        a.vertex = vertex_of(&w->b, 0, i, j);
        a.target = w->b.x[a.vertex];
        a.stiffness = 1000 * w->material.young * SIDE / ((w->b.n + 1) * (w->b.n + 1));
        ex_check(app, fsi_elastic_attach(w->s, &a, &w->held[j * (w->b.n + 1) + i]));
    }
}

/* How far the middle of the free end is below the axis [m]. */
static double sag_of(ex_app *app, state *w, fsi_vec3 *x)
{
    const int half = w->b.n / 2;
    ex_check(app, fsi_elastic_vertices(w->s, w->id, x, NULL));
    return -(double)x[vertex_of(&w->b, w->b.nx, half, half)].z;
}

/* Attaches the end face; then turns its targets by an angle about the axis. */
static void hold_end(ex_app *app, state *w)
{
    fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
    int i, j;
    a.body = w->id;
    for (j = 0; j <= w->b.n; j++) for (i = 0; i <= w->b.n; i++) {
        a.vertex = vertex_of(&w->b, w->b.nx, i, j);
        a.target = w->b.x[a.vertex];
        a.stiffness = 1000 * w->material.young * SIDE / ((w->b.n + 1) * (w->b.n + 1));
        ex_check(app, fsi_elastic_attach(w->s, &a, &w->turned[j * (w->b.n + 1) + i]));
    }
}
static fsi_vec3 turned_to(const state *w, int i, int j, double angle)
{
    const fsi_vec3 x = w->b.x[vertex_of(&w->b, w->b.nx, i, j)];
    return fsi_v3(x.x, (fsi_real)((double)x.y * cos(angle) - (double)x.z * sin(angle)),
                  (fsi_real)((double)x.y * sin(angle) + (double)x.z * cos(angle)));
}
static void turn_end(ex_app *app, state *w, double angle)
{
    int i, j;
    for (j = 0; j <= w->b.n; j++) for (i = 0; i <= w->b.n; i++)
        ex_check(app, fsi_elastic_set_target(w->s, w->turned[j * (w->b.n + 1) + i], turned_to(w, i, j, angle)));
}

/* The torque about the axis that the targets exert [N m]. */
static double torque_at(ex_app *app, const state *w, double angle)
{
    double sum = 0;
    int i, j;
    for (j = 0; j <= w->b.n; j++) for (i = 0; i <= w->b.n; i++) {
        const fsi_vec3 x = turned_to(w, i, j, angle);
        fsi_vec3 f;
        ex_check(app, fsi_elastic_attachment_force(w->s, w->turned[j * (w->b.n + 1) + i], &f));
        sum += (double)(x.y * f.z - x.z * f.y);
    }
    return sum;
}

/* The surface, in stripes, a clamp at its foot. */
static void draw(ex_app *app, ex_scene *scene, state *w, int frame, const char *text, double number)
{
    const fsi_mesh *m = fsi_elastic_surface(w->s, w->id);
    ex_mesh clamp = ex_box(ex_box3(-0.04, -0.06, -0.06, 0, 0.06, 0.06), 0);
    ex_draw_mesh(scene, m->vertices, NULL, m->vertex_count, m->faces, m->face_count, 0xe3a62f);
    ex_draw_mesh(scene, clamp.vertices, NULL, clamp.vertex_count, clamp.triangles, clamp.triangle_count, 0x8d949c);
    ex_mesh_free(&clamp);
    ex_save_scene(app, scene, frame, text, number);
}

/* Passages of the axis downwards: when the first and the last were [s], linear between steps. */
typedef struct swing { double before, first, last; int crossings; } swing;
static void watch(swing *c, double sag, double time, double dt)
{
    if (c->before < 0 && sag >= 0) {
        c->last = time - dt * sag / (sag - c->before);
        if (c->crossings++ == 0) c->first = c->last;
    }
    c->before = sag;
}

/* Its weight: long damped steps, to rest. Returns how far the free end hangs [m]; x: the vertices there. */
static double hang(ex_app *app, state *w, ex_elastic_tally *tally, fsi_vec3 *x)
{
    double tip;
    int k;
    w->desc.gravity = fsi_v3(0, 0, -GRAVITY);
    w->desc.iterations = 1000;
    w->desc.tolerance = 1e-10;
    begin(app, w, 0.01, 1);
    for (k = 0; k < 15; k++) ex_elastic_step(app, tally, w->s, 0.5);
    tip = sag_of(app, w, x);
    fsi_elastic_destroy(w->s);
    return tip;
}

/* Without weight, from there: the first half of the frames. */
static void let_swing(ex_app *app, ex_scene *scene, state *w, ex_elastic_tally *tally, fsi_vec3 *x, swing *swings)
{
    int frame, k;
    w->desc.gravity = fsi_v3(0, 0, 0);
    w->desc.iterations = 100;
    w->desc.tolerance = 1e-7;
    begin(app, w, 0, 2);
    ex_check(app, fsi_elastic_set_vertices(w->s, w->id, x, NULL));
    for (frame = 0; frame < app->frames / 2; frame++) {
        for (k = 0; k < 8; k++) {
            ex_elastic_step(app, tally, w->s, FRAME / 8);
            watch(swings, sag_of(app, w, x), w->s->time, FRAME / 8);
        }
        if (app->images) draw(app, scene, w, frame, "swings: %.2f s", w->s->time);
        ex_progress(app, frame + 1);
    }
    fsi_elastic_destroy(w->s);
}

/* Twisted: first by `little`, measured at rest, then on to `large` in the other half. Returns the torque [N m]. */
static double twist(ex_app *app, ex_scene *scene, state *w, ex_elastic_tally *tally, double little, double large)
{
    const int first = app->frames / 2, count = app->frames - first;
    double torque;
    int k;

    /* To the small angle. */
    w->desc.iterations = 1000;
    w->desc.tolerance = 1e-10;
    begin(app, w, 0.01, 1);
    hold_end(app, w);
    for (k = 1; k <= RAMP; k++) {
        turn_end(app, w, little * k / RAMP);
        ex_elastic_step(app, tally, w->s, 0.1);
    }
    for (k = 0; k < 10; k++) ex_elastic_step(app, tally, w->s, 0.5);
    torque = torque_at(app, w, little);

    /* To the large one. */
    w->desc.iterations = 50;
    w->desc.tolerance = 1e-5;
    ex_check(app, fsi_elastic_set_desc(w->s, &w->desc));
    for (k = 1; k <= count; k++) {
        const double angle = little + (large - little) * k / count;
        turn_end(app, w, angle);
        ex_elastic_step(app, tally, w->s, FRAME);
        if (app->images) draw(app, scene, w, first + k - 1, "turned by %.0f degrees", angle * 180 / FSI_PI);
        ex_progress(app, first + k);
    }
    return torque;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_elastic_tally tally = { 0 };
    state w;
    swing swings = { 0 };
    fsi_vec3 *x;
    const double area = SIDE * SIDE, inertia = area * area / 12;
    double young = 5e6, poisson = 0.3, little = 0.3, large = 2 * FSI_PI;
    double tip, torque, tip_theory, f_theory, g_modulus;
    int reduced = 0, handles = 99;

    memset(&w, 0, sizeof w);
    ex_init(&app, "beam", "A clamped beam bends, swings and is twisted, beside theory.");
    app.res = 6;
    app.res_help = "cells across the beam";
    app.frames = 150;
    ex_flag(&app, "reduced", &reduced, "in a subspace");
    ex_int(&app, "handles", &handles, 4, 1000, "of the subspace");
    ex_real(&app, "young", &young, 1, 1e12, "Young's modulus [Pa]");
    ex_real(&app, "poisson", &poisson, 0, 0.4999, "Poisson's ratio");
    ex_real(&app, "angle", &little, 0.01, 2, "angle at which the torque is measured [rad]");
    ex_real(&app, "large", &large, 0.01, 20, "the angle at the end [rad]");
    ex_elastic_options(&app, &tally);
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    w.b = beam_make(2 * ((app.res + 1) / 2));
    w.held = (int *)ex_alloc(NULL, (size_t)((w.b.n + 1) * (w.b.n + 1)), 2 * sizeof(int));
    w.turned = w.held + (w.b.n + 1) * (w.b.n + 1);
    w.handles = reduced ? handles : 0;
    x = (fsi_vec3 *)ex_alloc(NULL, (size_t)w.b.vertices, sizeof *x);
    w.material = fsi_elastic_default_material();
    w.material.young = young;
    w.material.poisson = poisson;
    w.desc = fsi_elastic_default_desc();
    w.desc.context = &app.context;
    scene = ex_scene_of_box(&app, fsi_v3(-0.04, -0.1, -0.12), fsi_v3(0.42, 0.1, 0.1), 20, 12);
    scene.ground_height = -0.14;

    /* Theory; then the three parts. */
    g_modulus = young / (2 * (1 + poisson));
    tip_theory = DENSITY * area * GRAVITY * LENGTH * LENGTH *
                 (LENGTH * LENGTH / (8 * young * inertia) + 1 / (2 * 5.0 / 6 * g_modulus * area));
    f_theory = 1.8751 * 1.8751 / (2 * FSI_PI * LENGTH * LENGTH) * sqrt(young * inertia / (DENSITY * area));
    tip = hang(&app, &w, &tally, x);
    let_swing(&app, &scene, &w, &tally, x, &swings);
    torque = twist(&app, &scene, &w, &tally, little, large);

    ex_figure(&app, "tip", "%.4f", tip / tip_theory);
    if (swings.crossings > 1)
        ex_figure(&app, "frequency", "%.4f", (swings.crossings - 1) / (swings.last - swings.first) / f_theory);
    ex_figure(&app, "torque", "%.4f", torque / (g_modulus * 0.1406 * area * area * little / LENGTH));
    ex_figure(&app, "tip_mm", "%.3f", 1000 * tip);
    ex_elastic_figures(&app, &tally, w.s);
    fsi_elastic_destroy(w.s);
    ex_scene_end(&scene);
    free(w.b.x);
    free(w.b.tets);
    free(w.held);
    free(x);
    return ex_end(&app);
}
