/* cc -O3 -I. studies/elastic/jelly_drag.c -lm -o jelly_drag && ./jelly_drag
   SPDX-License-Identifier: MIT

   A drag (--drag FILE: another one): a spring from a point on top of a pudding to a target that circles at up to
   --speed m/s swings it about, throws it up and lets it go. Where it lands, a plane comes down and squeezes it flat
   against the floor, to --flat of its height, stays, and goes up again at once; the pudding finds its shape. speed=
   is the fastest that the target moved [m/s]; thrown= how high the centre flew [m]; det_least= the smallest
   determinant of a deformation gradient at any time (below 0: an element was inverted); shape_error= how far the
   points of the surface are in the end from where a rigid motion of the body at rest would have them, root mean
   square over its size; volume= of the body at the end over that at rest, 1 to 1 %. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_elastic.h"
#include "../../examples/kit/elastic_look.h"

#define FRAME (1.0 / 30)
#define HEIGHT 0.2  /* of the pudding [m] */
#define GRIP (0.45 * HEIGHT) /* point that is dragged */
#define SWING 0.6  /* radius of the target's circle */
#define GRAB 0.2    /* when the target begins to move [s] */
#define LET_GO 1.3
#define PRESS 3.6   /* when the plane begins to come down, from ABOVE */
#define PRESSED 4.6 /* when it has arrived */
#define RELEASE 5.0 /* when it goes up */
#define ABOVE 0.7   /* [m] */

typedef struct state {
    fsi_elastic *s;
    ex_jelly jelly;
    fsi_elastic_shape_desc press;
    int press_id, pressing;
    double speed, flat;
    fsi_vec3 grip; /* where the drag begins */
    double highest;
} state;

static double smooth(double t) { return t < 0 ? 0 : t > 1 ? 1 : t * t * (3 - 2 * t); }

/* The target at a time: up by the radius, then round and round in a circle that opens and turns ever faster, then
   straight up. */
static fsi_vec3 target_at(const state *w, double time)
{
    const double t = time - GRAB, open = SWING * smooth(t / 0.5), rate = w->speed / SWING;
    const double turned = t < 0 ? 0 : t < 0.9 ? rate * t * t / 1.8 : rate * (t / 2 + (t - 0.9) / 2);
    return fsi_v3(w->grip.x + open * sin(turned), w->grip.y, w->grip.z + 0.8 * smooth(t / 0.5) - open * cos(turned));
}

/* Height of the plane above the floor: down to flat * HEIGHT, and up again, away. */
static double press_at(const state *w, double time)
{
    const double flat = w->flat * HEIGHT, down = smooth((time - PRESS) / (PRESSED - PRESS));
    return ABOVE + down * (flat - ABOVE) + 3 * smooth((time - RELEASE) / 0.3);
}

/* The spring, and its target at the end of each step of dt seconds. */
static void add_drag(ex_drags *d, const state *w, double stiffness, double dt)
{
    int k;
    ex_drags_begin(d, 0, -1, fsi_v3(0, 0, (fsi_real)GRIP), stiffness);
    for (k = 0; k * dt <= LET_GO; k++) ex_drags_key(d, k * dt, target_at(w, k * dt));
}

/* A step: the plane reaches its next place at its end. */
static void step(ex_app *app, ex_elastic_tally *tally, state *w, double dt)
{
    const double next = w->s->time + dt;
    w->press.point.z = press_at(w, next);
    if (w->pressing) ex_check(app, fsi_elastic_set_shape(w->s, w->press_id, &w->press));
    else if (next > PRESS) {
        ex_check(app, fsi_elastic_add_shape(w->s, &w->press, &w->press_id));
        w->pressing = 1;
    }
    ex_elastic_step(app, tally, w->s, dt);
    w->highest = fmax(w->highest, (double)w->s->bodies[0].center.z);
}

/* The camera goes with the body. */
static void draw(ex_app *app, ex_scene *scene, const ex_drags *drags, const state *w, int frame)
{
    const fsi_vec3 c = w->s->bodies[0].center;
    const double z = (double)w->press.point.z, wide = w->s->time < PRESS ? 0.7 : 0.4;
    fsi_box3 box = ex_box3(c.x - wide, c.y - wide / 2, fmax(0, c.z - 1), c.x + wide, c.y + wide / 2,
                           fmax(1.1 * wide, c.z + 0.2));
    ex_look_at_box(scene, box, 15, w->s->time < PRESS ? 14 : 10);
    scene->ground_height = 0;
    scene->grid = 0.25;
    ex_draw_jelly(app, scene, w->s, &w->jelly);
    if (w->pressing && z < 1.5)
        ex_draw_box(scene, ex_box3(c.x - 0.3, c.y - 0.3, z, c.x + 0.3, c.y + 0.3, z + 0.02), 2, 0x5b6570);
    ex_draw_drags(scene, drags, 0.02);
    ex_save_scene(app, scene, frame, "%.2f s", w->s->time);
}

static void begin(ex_app *app, state *w, int handles)
{
    fsi_elastic_desc d = fsi_elastic_default_desc();
    fsi_elastic_shape_desc ground = fsi_elastic_default_shape_desc();
    fsi_elastic_body_desc b = fsi_elastic_default_body_desc();
    fsi_elastic_material m = fsi_elastic_default_material();
    d.context = &app->context;
    d.tolerance = 1e-5;
    d.iterations = 40;
    ex_check(app, fsi_elastic_create(&w->s, &d));
    ex_check(app, fsi_elastic_add_shape(w->s, &ground, NULL));
    w->press = fsi_elastic_default_shape_desc();
    w->press.normal = fsi_v3(0, 0, -1);

    /* The pudding. */
    m.young = 6e4;
    m.damping = 0.01;
    b.materials = &m;
    b.material_count = 1;
    b.handles = handles;
    b.resolution = app->res;
    b.position = fsi_v3(0, 0, HEIGHT / 2);
    w->jelly = ex_jelly_of(app, w->s, b, ex_dimpled(0.15, HEIGHT, 5, 0.25, 12, 0.06, 6), 0xc8432f);
    w->grip = fsi_v3_add(b.position, fsi_v3(0, 0, (fsi_real)GRIP));
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_elastic_tally tally = { 0 };
    state w;
    double stiffness = 1500;
    int frame, k, steps = 8, handles = 60;

    memset(&w, 0, sizeof w);
    w.speed = 20;
    w.flat = 0.12;
    ex_init(&app, "jelly_drag", "A body of jelly is swung about, thrown, squeezed flat, and recovers.");
    app.res = 20;
    app.res_help = "cells along the body";
    app.frames = 220;
    ex_int(&app, "handles", &handles, 0, 1000, "of the body; 0: all vertices are free");
    ex_int(&app, "steps", &steps, 1, 1000, "a frame of 1/30 s");
    ex_real(&app, "speed", &w.speed, 0.1, 100, "of the target at its fastest [m/s]");
    ex_real(&app, "flat", &w.flat, 0, 1, "height under the plane over that at rest");
    ex_real(&app, "stiffness", &stiffness, 1, 1e9, "of the spring [N/m]");
    ex_elastic_options(&app, &tally);
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    begin(&app, &w, handles);
    if (!tally.drags.file) add_drag(&tally.drags, &w, stiffness, FRAME / steps);
    scene = ex_scene_begin(&app);

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < steps; k++) step(&app, &tally, &w, FRAME / steps);
        if (app.images) draw(&app, &scene, &tally.drags, &w, frame);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "speed", "%.1f", tally.drags.fastest);
    ex_figure(&app, "thrown", "%.2f", w.highest);
    ex_figure(&app, "det_least", "%.3f", tally.stretch_least);
    ex_figure(&app, "shape_error", "%.1e", ex_jelly_strain(&app, w.s, &w.jelly));
    ex_figure(&app, "volume", "%.4f", w.s->bodies[0].stats.volume_ratio);
    ex_elastic_figures(&app, &tally, w.s);
    ex_jelly_free(&w.jelly);
    ex_scene_end(&scene);
    fsi_elastic_destroy(w.s);
    return ex_end(&app);
}
