/* cc -O3 -I. studies/rigid/raft.c -lm -o raft && ./raft
   SPDX-License-Identifier: MIT

   Three crates, a barrel and a buoy drop one after the other onto a raft that floats in a tank. fsi_rigid.h owns all
   bodies: their masses, contacts and poses. The water is fsi_sph.h, or with --liquid levelset fsi_levelset.h: the same
   bodies, the same three calls a step. afloat= how many bodies' centres are above the bottom half of the water at the
   end; on_raft= those that touch the raft or what stands on it; max_depth= the deepest overlap of two bodies in the run
   [mm]. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_sph.h"
#include "fsi_levelset.h"
#include "fsi_rigid.h"
#include "../../examples/kit/levelset_tally.h"
#include "../../examples/kit/rigid_look.h"

#define FRAME 0.05
#define LENGTH 1.6 /* of the tank [m] */
#define WIDTH 0.8
#define HIGH 0.9
#define LEVEL 0.35 /* of the water at first */

enum { CARGO = 5, BODIES = CARGO + 1 };
static const uint32_t color[BODIES] = { 0xa87443, 0xe3b26b, 0xb9703a, 0x6c8f5d, 0xc0574a, 0x5b6f94 };

/* Either liquid. */
typedef struct water {
    fsi_sph *sph;
    fsi_levelset *grid;
    fsi_surface *skin;        /* of particles */
    fsi_grid_surface *level;  /* of the level set */
} water;

static void make_water(ex_app *app, water *liquid, fsi_box3 room, fsi_box3 pool, double dx, int grid)
{
    memset(liquid, 0, sizeof *liquid);
    if (grid) {
        fsi_levelset_desc d = fsi_levelset_default_desc();
        d.context = &app->context;
        d.dx = dx;
        d.n[0] = (int)(LENGTH / dx + 0.5);
        d.n[1] = (int)(WIDTH / dx + 0.5);
        d.n[2] = (int)(HIGH / dx + 0.5);
        d.gravity = fsi_v3(0, 0, -9.81);
        ex_check(app, fsi_levelset_create(&liquid->grid, &d));
        ex_check(app, fsi_levelset_fill_box(liquid->grid, pool, fsi_v3(0, 0, 0), NULL));
        ex_check(app, fsi_grid_surface_create(&liquid->level, &app->context));
    } else {
        fsi_sph_desc d = fsi_sph_default_desc();
        fsi_surface_desc skin = fsi_surface_default_desc();
        d.context = skin.context = &app->context;
        d.spacing = skin.spacing = dx;
        d.depth = 0.5;
        d.domain = room;
        d.domain.hi.z = 2;
        ex_check(app, fsi_sph_create(&liquid->sph, &d));
        ex_check(app, fsi_sph_fill_box(liquid->sph, pool, fsi_v3(0, 0, 0), NULL));
        ex_check(app, fsi_surface_create(&liquid->skin, &skin));
    }
}

/* A body becomes an obstacle of the liquid; the skin's mesh is the liquid's to move from now on. */
static void into_water(ex_app *app, water *liquid, fsi_rigid *w, ex_skin *s)
{
    if (liquid->grid) {
        fsi_levelset_obstacle_desc o = fsi_levelset_default_obstacle_desc();
        o.mesh = s->mesh;
        o.body = fsi_rigid_body(w, s->id);
        ex_check(app, fsi_levelset_add_obstacle(liquid->grid, &o, NULL));
    } else {
        fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
        o.mesh = s->mesh;
        o.body = fsi_rigid_body(w, s->id);
        ex_check(app, fsi_sph_add_obstacle(liquid->sph, &o, NULL));
    }
}

static int add_body(ex_app *app, fsi_rigid *w, const fsi_rigid_shape *shapes, int count, fsi_vec3 x)
{
    fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
    int id;
    b.shapes = shapes;
    b.shape_count = count;
    b.pose.position = x;
    b.friction = 0.6;
    b.restitution = 0;
    ex_check(app, fsi_rigid_add_body(w, &b, &id));
    return id;
}

/* The deck just above the water, the cargo above it, one higher than the other. */
static void add_bodies(ex_app *app, fsi_rigid *w)
{
    static const double x[CARGO] = { 0.72, 0.9, 0.8, 0.66, 1.1 }, side[CARGO] = { 0.14, 0.14, 0.16, 0.12, 0.14 };
    fsi_rigid_shape deck = fsi_rigid_box(fsi_v3(0.36, 0.24, 0.05)), load;
    int k;
    deck.density = 350;
    add_body(app, w, &deck, 1, fsi_v3(0.8, WIDTH / 2, LEVEL + 0.06));
    for (k = 0; k < CARGO; k++) {
        load = k == 3   ? fsi_rigid_cylinder(side[k] / 2, 0.08)
               : k == 4 ? fsi_rigid_sphere(side[k] / 2)
                        : fsi_rigid_box(fsi_v3(side[k] / 2, side[k] / 2, side[k] / 2));
        load.density = 300;
        add_body(app, w, &load, 1, fsi_v3(x[k], WIDTH / 2 + 0.03 * (k % 2), LEVEL + 0.3 + 0.19 * k));
    }
}

static void draw(ex_app *app, ex_scene *scene, const water *liquid, const fsi_rigid *w, ex_skin *skin, int frame)
{
    int k;
    if (liquid->grid) ex_draw_liquid(app, scene, liquid->level, liquid->grid);
    else ex_draw_particles(app, scene, liquid->skin, liquid->sph->position, liquid->sph->count);
    for (k = 0; k < BODIES; k++) ex_draw_skin(scene, w, &skin[k], color[k]);
    ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    ex_save_scene(app, scene, frame, "%.2f s", w->time);
}

/* Bodies that hang together with the raft by contacts. */
static int count_on_raft(const fsi_rigid *w)
{
    int on[BODIES] = { 1, 0, 0, 0, 0, 0 }, pass, k, n = 0;
    for (pass = 0; pass < BODIES; pass++) {
        for (k = 0; k < w->contact_count; k++) {
            const fsi_rigid_contact *c = &w->contact[k];
            if (c->b >= 0 && (on[c->a] || on[c->b])) on[c->a] = on[c->b] = 1;
        }
    }
    for (k = 1; k < BODIES; k++) n += on[k];
    return n;
}

/* One step of bodies and water. */
static void advance(ex_app *app, fsi_rigid *w, water *liquid, double dt)
{
    ex_check(app, fsi_rigid_begin_step(w, dt));
    ex_check(app, liquid->grid ? fsi_levelset_step(liquid->grid, dt) : fsi_sph_step(liquid->sph, dt));
    ex_check(app, fsi_rigid_end_step(w, dt));
    app->steps += liquid->grid ? liquid->grid->stats.substeps : liquid->sph->stats.substeps;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_rigid_desc desc = fsi_rigid_default_desc();
    fsi_rigid *w;
    fsi_box3 room, pool;
    ex_skin skin[BODIES];
    water liquid;
    const char *kind = "sph";
    double deepest = 0;
    int k, frame, afloat = 0;

    ex_init(&app, "raft", "Crates, a barrel and a buoy drop onto a raft.");
    app.res = 24;
    app.res_help = "particles or cells over the width of the tank: dx = 0.8 m / res";
    app.frames = 40;
    ex_string(&app, "liquid", &kind, "sph or levelset");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (strcmp(kind, "sph") != 0 && strcmp(kind, "levelset") != 0) ex_die("--liquid is sph or levelset");

    room.lo = pool.lo = fsi_v3(0, 0, 0);
    room.hi = fsi_v3(LENGTH, WIDTH, HIGH);
    pool.hi = fsi_v3(LENGTH, WIDTH, LEVEL);
    desc.context = &app.context;
    desc.domain = room;
    desc.domain.hi.z = 3;
    ex_check(&app, fsi_rigid_create(&w, &desc));
    add_bodies(&app, w);
    make_water(&app, &liquid, room, pool, WIDTH / app.res, kind[0] == 'l');
    for (k = 0; k < BODIES; k++) {
        skin[k] = ex_skin_of(&app, w, k);
        into_water(&app, &liquid, w, &skin[k]);
    }
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, room, 28, 20);

    for (frame = 0; frame < app.frames; frame++) {
        while (w->time < (frame + 1) * FRAME - 1e-9) {
            advance(&app, w, &liquid, FRAME / 10);
            if (w->stats.max_depth > deepest) deepest = w->stats.max_depth;
        }
        app.sim_seconds = w->time;
        if (app.images) draw(&app, &scene, &liquid, w, skin, frame);
        ex_progress(&app, frame + 1);
    }

    app.hash = fsi_rigid_hash(w);
    for (k = 0; k < BODIES; k++) afloat += w->body[k]->pose.position.z > LEVEL / 2;
    ex_figure(&app, "afloat", "%.0f", afloat);
    ex_figure(&app, "on_raft", "%.0f", count_on_raft(w));
    ex_figure(&app, "max_depth", "%.2f", 1000 * deepest);
    ex_figure(&app, "inside", "%.0f", liquid.sph ? fsi_sph_count_inside(liquid.sph, NULL) : 0);
    fsi_grid_surface_destroy(liquid.level);
    fsi_surface_destroy(liquid.skin);
    fsi_levelset_destroy(liquid.grid);
    fsi_sph_destroy(liquid.sph);
    for (k = 0; k < BODIES; k++) ex_skin_free(&skin[k]);
    ex_scene_end(&scene);
    fsi_rigid_destroy(w);
    return ex_end(&app);
}
