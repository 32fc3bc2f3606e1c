/* cc -O3 -I. studies/flip/cup_pool.c -lm -o cup_pool && ./cup_pool
   SPDX-License-Identifier: MIT

   A cup of jelly, 430 kg/m^3, floats in a pool; a tap fills it; springs at its rim lift it out, hold it and tip it, and
   it pours (figures 4 and 12 of Brandt et al. 2019; its size: --res 33). lower= how much lower the filled cup floated
   than the empty one, beside the level of the pool [m], lower_ratio= that over water/(rho A), 1 when it has come to
   rest: a full cup is about to capsize, so it is lifted soon; held= the water in it when it hung above the pool [kg];
   leaked= the share of that which was lost while it hung, 0; poured= the share that was out at the end. flip_tally.h
   explains the other figures. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/flip_tally.h"
#include "../../examples/kit/shapes.h"

#define SIDE 1.0       /* of the pool */
#define HEIGHT 2.0
#define DEPTH 0.5
#define RADIUS 0.25    /* of the cup, outside */
#define TALL 0.36
#define WALL 0.07
#define RIM 8          /* springs */
#define FILL 1.0       /* times [s]: the tap opens */
#define FULL 1.7       /* the tap closes */
#define LIFT 2.2       /* the springs begin to rise */
#define HANG 3.7       /* they have arrived */
#define TIP 4.7        /* they begin to turn */
#define TIPPED 6.2
#define UP 0.95        /* way up [m] */
#define MEAN 0.3       /* how long heights are averaged [s] */

static double smooth(double t) { return t < 0 ? 0 : t > 1 ? 1 : t * t * (3 - 2 * t); }

/* A surface of revolution that is closed at its foot, open above. */
static ex_mesh make_cup(int segments)
{
    static const double rz[] = { 0, -TALL / 2, 0.5 * RADIUS, -TALL / 2, RADIUS - 0.03, -TALL / 2 + 0.01,
        RADIUS, -TALL / 2 + 0.04, RADIUS, 0, RADIUS, TALL / 2 - 0.02, RADIUS - WALL / 2, TALL / 2,
        RADIUS - WALL, TALL / 2 - 0.02, RADIUS - WALL, 0, RADIUS - WALL, -TALL / 2 + WALL + 0.02,
        RADIUS - WALL - 0.02, -TALL / 2 + WALL, 0.4 * RADIUS, -TALL / 2 + WALL, 0, -TALL / 2 + WALL };
    shape s = shape_empty();
    ex_mesh m;
    shape_revolve(&s, rz, (int)(sizeof rz / sizeof *rz / 2), segments);
    m = ex_mesh_make(s.nx, s.ne);
    memcpy(m.vertices, s.x, (size_t)s.nx * sizeof *s.x);
    memcpy(m.triangles, s.e, 3 * (size_t)s.ne * sizeof(int));
    shape_free(&s);
    return m;
}

typedef struct mean { double sum; int count; } mean;

typedef struct state {
    ex_bath bath;
    fsi_vec3 grip[RIM], middle; /* where the springs took the rim; the middle of these */
    int spring[RIM], held, tap;
} state;

static int add_cup(ex_app *app, state *w, double young)
{
    fsi_elastic_body_desc d = fsi_elastic_default_body_desc();
    fsi_elastic_material m = fsi_elastic_default_material();
    m.density = 430;
    m.young = (fsi_real)young;
    d.materials = &m;
    d.material_count = 1;
    d.resolution = app->res;
    d.position = fsi_v3((fsi_real)(SIDE / 2), (fsi_real)(SIDE / 2), (fsi_real)(DEPTH + 0.3 * TALL));
    return ex_bath_body(app, &w->bath, d, make_cup(64), 0xe3a62f);
}

/* Where spring k is around the axis. */
static fsi_vec3 rim_at(int k)
{
    const double turn = 2 * FSI_PI * k / RIM, r = RADIUS - WALL / 2;
    return fsi_v3((fsi_real)(r * cos(turn)), (fsi_real)(r * sin(turn)), 0);
}

/* The springs take the rim where it is. */
static void grab(ex_app *app, state *w, double stiffness)
{
    fsi_elastic_skin *at;
    fsi_vec3 rest[RIM];
    fsi_elastic_attachment_desc d = fsi_elastic_default_attachment_desc();
    int k;
    for (k = 0; k < RIM; k++) rest[k] = fsi_v3_add(rim_at(k), fsi_v3(0, 0, (fsi_real)(0.4 * TALL)));
    ex_check(app, fsi_elastic_skin_create(&at, w->bath.solid, w->bath.jelly[0].id, rest, NULL, RIM));
    ex_check(app, fsi_elastic_skin_update(at, w->bath.solid, w->grip, NULL));
    fsi_elastic_skin_destroy(at);
    w->middle = fsi_v3(0, 0, 0);
    for (k = 0; k < RIM; k++) {
        d.body = w->bath.jelly[0].id;
        d.rest = rest[k];
        d.target = w->grip[k];
        d.stiffness = (fsi_real)stiffness;
        ex_check(app, fsi_elastic_attach(w->bath.solid, &d, &w->spring[k]));
        w->middle = fsi_v3_madd(w->middle, (fsi_real)(1.0 / RIM), w->grip[k]);
    }
    w->held = 1;
}

/* The targets at a time: up, to a level ring, then turned about the axis y. */
static void move_springs(ex_app *app, state *w, double time)
{
    const fsi_quat turn = fsi_quat_from_axis_angle(fsi_v3(0, 1, 0),
        (fsi_real)(2.2 * smooth((time - TIP) / (TIPPED - TIP))));
    const fsi_vec3 up = fsi_v3(0, 0, (fsi_real)(UP * smooth((time - LIFT) / (HANG - LIFT))));
    const fsi_real level = (fsi_real)smooth((time - LIFT) / (HANG - LIFT));
    int k;
    for (k = 0; k < RIM; k++) {
        const fsi_vec3 from = fsi_v3_sub(w->grip[k], w->middle);
        const fsi_vec3 arm = fsi_v3_madd(from, level, fsi_v3_sub(rim_at(k), from));
        ex_check(app, fsi_elastic_set_target(w->bath.solid, w->spring[k], fsi_v3_add(w->middle,
            fsi_v3_add(up, fsi_quat_rotate(turn, arm)))));
    }
}

/* The tap, above the cup, opens and closes. */
static void turn_tap(ex_app *app, state *w, double time)
{
    fsi_emitter_desc d = fsi_emitter_default_desc();
    if (w->tap < 0 && time >= FILL && time < FULL) {
        d.center = fsi_v3((fsi_real)(SIDE / 2), (fsi_real)(SIDE / 2), (fsi_real)(DEPTH + TALL + 0.35));
        d.direction = fsi_v3(0, 0, -1);
        d.radius = (fsi_real)0.08;
        d.speed = 1;
        ex_check(app, fsi_flip_add_emitter(w->bath.water, &d, &w->tap));
    } else if (w->tap >= 0 && time >= FULL) {
        ex_check(app, fsi_flip_remove_emitter(w->bath.water, w->tap));
        w->tap = -1;
    }
}

/* Water no lower than the cup's lowest point, and within its width [kg]. */
static double in_cup(const ex_bath *b)
{
    const fsi_box3 box = fsi_elastic_surface(b->solid, b->jelly[0].id)->box;
    double sum = 0;
    int i;
    for (i = 0; i < b->water->count; i++) {
        const fsi_vec3 x = b->water->position[i];
        if (x.z > box.lo.z && x.x > box.lo.x && x.x < box.hi.x && x.y > box.lo.y && x.y < box.hi.y)
            sum += (double)(b->water->mass[i] * b->water->particle_mass);
    }
    return sum;
}

/* Height of the cup's centre above the level of the pool. */
static void add_height(state *w, mean *m)
{
    m->sum += (double)w->bath.solid->bodies[0].center.z - ex_bath_level(&w->bath);
    m->count++;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    state w;
    mean empty = { 0, 0 }, full = { 0, 0 };
    double dx, young = 2e5, stiffness = 2e4, hung = 0, kept = 0, t;
    int frame, k;

    memset(&w, 0, sizeof w);
    w.tap = -1;
    ex_init(&app, "cup_pool", "A cup of jelly floats, is filled, lifted and tipped.");
    app.res = 16;
    app.res_help = "cells along a side of the pool, 1 m";
    app.frames = 225;
    ex_real(&app, "young", &young, 1e3, 1e9, "Young's modulus of the cup [Pa]");
    ex_real(&app, "stiffness", &stiffness, 1, 1e9, "of each spring at its rim [N/m]");
    ex_bath_options(&app, &w.bath);
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 16 || app.res > 200) ex_die("--res is not between 16 and 200");
    dx = SIDE / app.res;
    ex_bath_make(&app, &w.bath, app.res, app.res, (int)(HEIGHT / dx + 0.5), dx);
    add_cup(&app, &w, young);
    ex_bath_immerse(&app, &w.bath);
    ex_bath_fill(&app, &w.bath, ex_box3(0, 0, 0, SIDE, SIDE, DEPTH));
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)SIDE, (fsi_real)SIDE, (fsi_real)1.8), 28, 24);

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < w.bath.steps; k++) {
            t = w.bath.water->time;
            turn_tap(&app, &w, t);
            if (!w.held && t >= LIFT) grab(&app, &w, stiffness);
            if (w.held) move_springs(&app, &w, t + w.bath.frame / w.bath.steps);
            ex_bath_step(&app, &w.bath, w.bath.frame / w.bath.steps);
        }
        ex_bath_look(&w.bath);

        /* Where it floats, and what it holds. */
        t = w.bath.water->time;
        if (t > FILL - MEAN && t <= FILL) add_height(&w, &empty);
        if (t > LIFT - MEAN && t <= LIFT) add_height(&w, &full);
        if (t < HANG + 0.5 + EX_BATH_FRAME) hung = in_cup(&w.bath);
        if (t < TIP) kept = in_cup(&w.bath);
        if (app.images) {
            ex_bath_draw(&app, &scene, &w.bath);
            ex_save_scene(&app, &scene, frame, "%.2f s", t);
        }
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "lower", "%.4f", empty.count && full.count ? empty.sum / empty.count - full.sum / full.count : 0);
    ex_figure(&app, "lower_ratio", "%.3f", empty.count && full.count && hung > 0 ? (empty.sum / empty.count -
        full.sum / full.count) * 1000 * FSI_PI * RADIUS * RADIUS / hung : 0);
    ex_figure(&app, "held", "%.2f", hung);
    ex_figure(&app, "leaked", "%.4f", hung > 0 ? 1 - kept / hung : 0);
    ex_figure(&app, "poured", "%.3f", kept > 0 ? 1 - in_cup(&w.bath) / kept : 0);
    ex_bath_figures(&app, &w.bath);
    ex_scene_end(&scene);
    ex_bath_end(&w.bath);
    return ex_end(&app);
}
