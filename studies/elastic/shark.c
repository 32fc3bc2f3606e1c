/* cc -O3 -I. studies/elastic/shark.c -lm -o shark && ./shark
   SPDX-License-Identifier: MIT

   A fish swims: springs lead points along its spine through a wave that grows towards the tail, and the elastic body
   does the rest. It is a surface of 140,000 vertices, made here, with fins; or --mesh FILE.obj, yours, closed, along x.
   A cage of --res cells along it (104: about 130,000 tetrahedra) moves in the subspace of --handles handles; its
   surface follows as a skin. set_up= is seconds to make the body and the skin, step_ms= and skin_ms= of a step and of
   an update of the skin, by the wall clock; skin= counts its vertices; swing= and middle= are how far the tail and the
   section halfway along go to a side, in lengths of the body. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_elastic.h"
#include "../../examples/kit/elastic_look.h"

#define FRAME (1.0 / 30)
#define PERIOD 1.0  /* of a stroke of the tail [s] */
#define LENGTH 1.0  /* of the fish [m] */
#define WAVE 0.9    /* of the spine, in lengths */
#define SPINE 33    /* springs: a few would dent the body ever deeper, the finer its elements are */

/* A hump between 0 and 1, steeper at its end, as a fin is. */
static double fin(double s) { return s <= 0 || s >= 1 ? 0 : 2.2 * pow(s, 1.3) * pow(1 - s, 0.45); }
/* How much of a fin at angle `at` is seen at angle a: a ridge of the given width [rad]. */
static double ridge(double a, double at, double width)
{
    const double d = remainder(a - at, 2 * FSI_PI) / width;
    return exp(-d * d);
}

/* The surface: sections along x, from the nose at 0 to the tail at LENGTH; angle 0 is +y, up is z. */
static fsi_vec3 fish_at(double s, double a)
{
    const double belly = fmax(0, sin(FSI_PI * pow(fmin(s / 0.97, 1), 0.72)));
    const double blunt = 1 - pow(fmax(0, 1 - s / 0.1), 3); /* the nose: its slope ends at 0, without a crease */
    const double body = 0.105 * pow(belly, 0.8) + 0.012 * blunt;
    const double end = sqrt(fmin(1, (1 - s) / 0.006));
    double r = body * sqrt(pow(0.8 * cos(a), 2) + pow(sin(a), 2));
    r += 0.13 * fin((s - 0.34) / 0.2) * ridge(a, FSI_PI / 2, 0.1);              /* back */
    r += 0.05 * fin((s - 0.68) / 0.1) * ridge(a, FSI_PI / 2, 0.2);
    r += 0.17 * fin((s - 0.25) / 0.17) * (ridge(a, -0.45, 0.11) + ridge(a, FSI_PI + 0.45, 0.11)); /* sides */
    r += 0.19 * fin((s - 0.86) / 0.13) * ridge(a, FSI_PI / 2, 0.16);            /* tail */
    r += 0.12 * fin((s - 0.86) / 0.12) * ridge(a, -FSI_PI / 2, 0.16);
    r *= end;
    /* Fins are swept back. */
    return fsi_v3((fsi_real)(LENGTH * s + 0.9 * fmax(0, r - 0.1) + 0.5 * fmax(0, s - 0.86) * r / 0.1),
                  (fsi_real)(r * cos(a)), (fsi_real)(r * sin(a)));
}

static ex_mesh make_fish(int along, int around)
{
    ex_mesh m = ex_mesh_make((along - 1) * around + 2, 2 * (along - 1) * around);
    int i, j, *t = m.triangles;
    const int nose = m.vertex_count - 2, tail = nose + 1;
    for (i = 1; i < along; i++) for (j = 0; j < around; j++)
        m.vertices[(i - 1) * around + j] = fish_at((double)i / along, 2 * FSI_PI * j / around);
    m.vertices[nose] = fsi_v3(0, 0, 0);
    m.vertices[tail] = fish_at(1, 0);
    for (j = 0; j < around; j++) {
        const int k = (j + 1) % around, last = (along - 2) * around;
        t[0] = nose; t[1] = k; t[2] = j;
        t[3] = tail; t[4] = last + j; t[5] = last + k;
        t += 6;
    }
    for (i = 0; i < along - 2; i++) for (j = 0; j < around; j++) {
        const int a = i * around + j, b = i * around + (j + 1) % around;
        t[0] = a; t[1] = b; t[2] = b + around;
        t[3] = a; t[4] = b + around; t[5] = a + around;
        t += 6;
    }
    return m;
}

/* Where the spine's point at x is to be: the wave, which begins softly. */
static fsi_vec3 spine_at(double x, double time)
{
    const double s = x / LENGTH, begins = fmin(1, time / PERIOD);
    return fsi_v3((fsi_real)x, (fsi_real)(LENGTH * begins * (0.01 + 0.16 * s * s) *
                  sin(2 * FSI_PI * (s / WAVE - time / PERIOD))), 0);
}

/* The springs along the spine. */
static double spring_at(int k) { return LENGTH * (0.05 + 0.85 * k / (SPINE - 1)); }
static void attach_spine(ex_app *app, fsi_elastic *s, int fish, int *held)
{
    fsi_elastic_attachment_desc d = fsi_elastic_default_attachment_desc();
    int k;
    for (k = 0; k < SPINE; k++) {
        d.body = fish;
        d.rest = d.target = fsi_v3((fsi_real)spring_at(k), 0, 0);
        d.stiffness = 18000.0 / SPINE;
        ex_check(app, fsi_elastic_attach(s, &d, &held[k]));
    }
}

/* Its skin: dark above, pale below, with stripes on its back. */
static void paint_fish(const ex_mesh *m, uint32_t *paint)
{
    int v;
    for (v = 0; v < m->vertex_count; v++) {
        const double x = (double)m->vertices[v].x / LENGTH, z = (double)m->vertices[v].z / LENGTH;
        const double pale = fmin(1, fmax(0, 0.5 - 25 * (z + 0.025)));
        const double stripe = fmin(1, fmax(0, 4 * sin(75 * x) - 1)) * fmin(1, fmax(0, 20 * z));
        paint[v] = ex_blend(ex_blend(0x54788f, 0x2c4759, stripe), 0xe6edf0, pale);
    }
}

/* How far the skin at x is to a side, in the mean of a slice of it. */
static double aside_at(const ex_jelly *fish, double x)
{
    double sum = 0;
    int n = 0, k;
    for (k = 0; k < fish->mesh.vertex_count; k++) if (fabs((double)fish->mesh.vertices[k].x - x) < 0.02 * LENGTH) {
        sum += (double)fish->x[k].y;
        n++;
    }
    return n ? fabs(sum / n) : 0;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_elastic_tally tally = { 0 };
    ex_jelly fish;
    ex_mesh mesh;
    fsi_elastic_desc desc = fsi_elastic_default_desc();
    fsi_elastic_body_desc body = fsi_elastic_default_body_desc();
    fsi_elastic_material flesh = fsi_elastic_default_material();
    fsi_elastic *s;
    const char *file = NULL;
    double began, set_up, skin_seconds = 0, swing = 0, middle = 0;
    int frame, k, y_up = 0, held[SPINE];

    ex_init(&app, "shark", "A fish of 130,000 tetrahedra swims.");
    app.res = 104;
    app.res_help = "cells of the cage along the fish";
    app.frames = 60;
    body.handles = 60;
    ex_int(&app, "handles", &body.handles, 0, 1000, "of the subspace; 0: all vertices are free");
    ex_string(&app, "mesh", &file, "a closed surface of yours, along x (OBJ, PLY)");
    ex_flag(&app, "y-up", &y_up, "its y axis is up");
    ex_elastic_options(&app, &tally);
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (file) {
        mesh = ex_load_mesh(&app, file, y_up);
        ex_fit(mesh.vertices, mesh.vertex_count, ex_box3(0, -LENGTH, -LENGTH, LENGTH, LENGTH, LENGTH));
    } else mesh = make_fish(600, 240);

    /* The body, without weight: water carries it. */
    began = ex_wall_seconds();
    desc.context = &app.context;
    desc.gravity = fsi_v3(0, 0, 0);
    desc.tolerance = 1e-6;
    desc.iterations = 100; /* with 20, less than half the time, the middle swings 6 % too far */
    ex_check(&app, fsi_elastic_create(&s, &desc));
    flesh.young = 2e5;
    flesh.poisson = 0.45;
    flesh.damping = 0.01;
    body.materials = &flesh;
    body.material_count = 1;
    body.resolution = app.res;
    fish = ex_jelly_of(&app, s, body, mesh, 0x5f7f95);
    if (!file) paint_fish(&fish.mesh, fish.paint);
    set_up = ex_wall_seconds() - began;
    attach_spine(&app, s, fish.id, held);
    scene = ex_scene_of_box(&app, fsi_v3(0, -0.22, -0.2), fsi_v3(1.1, 0.22, 0.25), -42, 24);
    scene.ground_height = -0.45;
    scene.ground_rgb = 0xc9d6d8;

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < SPINE; k++)
            ex_check(&app, fsi_elastic_set_target(s, held[k], spine_at(spring_at(k), s->time + FRAME)));
        ex_elastic_step(&app, &tally, s, FRAME);
        began = ex_wall_seconds();
        ex_check(&app, fsi_elastic_skin_update(fish.skin, s, fish.x, fish.n));
        skin_seconds += ex_wall_seconds() - began;
        swing = fmax(swing, aside_at(&fish, 0.98 * LENGTH));
        middle = fmax(middle, aside_at(&fish, 0.5 * LENGTH));
        if (app.images) {
            ex_draw_jelly(&app, &scene, s, &fish);
            ex_save_scene(&app, &scene, frame, "%.2f s", s->time);
        }
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "set_up", "%.2f", set_up);
    ex_figure(&app, "step_ms", "%.2f", 1000 * tally.seconds / app.frames);
    ex_figure(&app, "skin_ms", "%.2f", 1000 * skin_seconds / app.frames);
    ex_figure(&app, "skin", "%.0f", mesh.vertex_count);
    ex_figure(&app, "swing", "%.3f", swing / LENGTH);
    ex_figure(&app, "middle", "%.5f", middle / LENGTH);
    ex_elastic_figures(&app, &tally, s);
    ex_jelly_free(&fish);
    ex_scene_end(&scene);
    fsi_elastic_destroy(s);
    return ex_end(&app);
}
