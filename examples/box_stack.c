/* cc -O3 -I. examples/box_stack.c -lm -o box_stack && ./box_stack
   SPDX-License-Identifier: MIT

   Ten boxes stacked on a floor stand for --stand seconds (default 4; 60 for the whole minute), fall asleep, and are
   knocked over by a ball; they come to rest and fall asleep again. --awake forbids sleep. creep= is how far a box moved
   in the stand after its first second, in sides of a box; asleep= how many of the ten slept when the ball came;
   max_depth= the deepest overlap of the run in sides; resting= how many of the eleven bodies sleep at the end. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_rigid.h"
#include "kit/rigid_look.h"

#define FRAME (1.0 / 30)
#define SIDE 0.5 /* of a box [m] */

enum { BOXES = 10 };
static const uint32_t color[4] = { 0xe3b26b, 0xb9703a, 0x7f9c6b, 0x5b86a8 };

static ex_skin add(ex_app *app, fsi_rigid *w, fsi_rigid_shape shape, fsi_vec3 x)
{
    fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
    int id;
    b.shapes = &shape;
    b.shape_count = 1;
    b.pose.position = x;
    ex_check(app, fsi_rigid_add_body(w, &b, &id));
    return ex_skin_of(app, w, id);
}

/* Boxes that sleep are grey. */
static void draw(ex_app *app, ex_scene *scene, const fsi_rigid *w, const ex_skin *skin, int frame)
{
    int k;
    for (k = 0; k < w->count; k++)
        ex_draw_skin(scene, w, &skin[k], k == BOXES ? 0xc0392b : w->asleep[k] ? 0x8d949c : color[k % 4]);
    ex_save_scene(app, scene, frame, "%.2f s", w->time);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_rigid_desc desc = fsi_rigid_default_desc();
    fsi_rigid *w;
    fsi_vec3 settled[BOXES];
    ex_skin skin[BOXES + 1];
    double stand = 4, creep = 0, depth = 0;
    int awake = 0, k, i, frame, hit, asleep = 0, resting = 0;

    ex_init(&app, "box_stack", "Ten boxes stand on each other until a ball knocks them over.");
    app.res = 2;
    app.res_help = "steps a frame of 1/30 s";
    app.frames = 300;
    ex_real(&app, "stand", &stand, 1.5, 1000, "seconds before the ball comes");
    ex_flag(&app, "awake", &awake, "bodies never fall asleep");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    desc.context = &app.context;
    if (awake) desc.sleep_time = 0;
    ex_check(&app, fsi_rigid_create(&w, &desc));
    ex_check(&app, fsi_rigid_add_plane(w, fsi_v3(0, 0, 1), 0, NULL, NULL));
    for (k = 0; k < BOXES; k++)
        skin[k] = add(&app, w, fsi_rigid_box(fsi_v3(SIDE / 2, SIDE / 2, SIDE / 2)), fsi_v3(0, 0, SIDE * (k + 0.5)));
    scene = ex_scene_of_box(&app, fsi_v3(-1.6, -1.2, 0), fsi_v3(2.2, 1.2, 0.9 * BOXES * SIDE), 30, 12);

    hit = (int)(stand / FRAME + 0.5);
    for (frame = 0; frame < app.frames; frame++) {
        if (frame == hit) {
            for (k = 0; k < BOXES; k++) asleep += w->asleep[k];
            skin[BOXES] = add(&app, w, fsi_rigid_sphere(0.35), fsi_v3(-3, 0.1, 2.2));
            ex_check(&app, fsi_rigid_set_velocity(w, BOXES, fsi_v3(9, 0, 2), fsi_v3(0, 0, 0)));
        }
        for (i = 0; i < app.res; i++) {
            ex_check(&app, fsi_rigid_step(w, FRAME / app.res));
            app.steps++;
            depth = fmax(depth, w->stats.max_depth);
        }
        for (k = 0; k < BOXES && frame < hit; k++) {
            if (w->time <= 1 + FRAME) settled[k] = w->body[k]->pose.position;
            creep = fmax(creep, fsi_v3_norm(fsi_v3_sub(w->body[k]->pose.position, settled[k])));
        }
        app.sim_seconds = w->time;
        if (app.images) draw(&app, &scene, w, skin, frame);
        ex_progress(&app, frame + 1);
    }

    app.hash = fsi_rigid_hash(w);
    for (k = 0; k < w->count; k++) resting += w->asleep[k];
    ex_figure(&app, "creep", "%.2g", creep / SIDE);
    ex_figure(&app, "asleep", "%.0f", asleep);
    ex_figure(&app, "max_depth", "%.4f", depth / SIDE);
    ex_figure(&app, "resting", "%.0f", resting);
    for (k = 0; k < w->count; k++) ex_skin_free(&skin[k]);
    ex_scene_end(&scene);
    fsi_rigid_destroy(w);
    return ex_end(&app);
}
