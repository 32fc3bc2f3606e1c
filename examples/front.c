/* cc -O3 -I. examples/front.c -lm -o front && ./front
   SPDX-License-Identifier: MIT

   Drops drift to the middle, merge, and get round. This program writes the velocities of their vertices: towards the
   middle, and by their mean curvature, as surface tension would. fsi_front.h moves them, keeps triangles good and
   volumes as they were, and joins what meets. merges=: how often; pieces= in the end; volume_error= of all. */
#define FSI_IMPLEMENTATION
#include "kit/front_tally.h"

#define DROPS 9
#define FRAME 0.1  /* seconds between two pictures */
#define SPEED 0.12 /* [m/s] */

/* Each piece moves as a whole: the mean of its corners to the middle. */
static void drift(fsi_front *f)
{
    const fsi_real speed = (fsi_real)(f->piece_count > 1 ? -SPEED : 0);
    fsi_vec3 mean[4 * DROPS]; /* pieces are never more */
    int t, i;
    memset(mean, 0, sizeof mean);
    for (t = 0; t < f->element_count; t++)
        for (i = 0; i < 3; i++)
            mean[f->piece_of[t]] = fsi_v3_add(mean[f->piece_of[t]], f->position[f->elements[3 * t + i]]);
    for (t = 0; t < f->element_count; t++)
        for (i = 0; i < 3; i++)
            f->velocity[f->elements[3 * t + i]] = fsi_v3_scale(fsi_v3_unit(mean[f->piece_of[t]]), speed);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_mesh drops = ex_mesh_make(0, 0);
    fsi_front_desc desc = fsi_front_default_desc();
    fsi_front *f;
    double volume;
    int frame, k, i, merges = 0, steps = 10;
    ex_init(&app, "front", "Drops meet and merge.");
    app.res = 30;
    app.res_help = "edges of triangles in a length of 1";
    app.frames = 36;
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    for (i = 0; i < DROPS; i++) {
        const double a = 2.4 * i, r = 0.22 * sqrt(i + 0.3);
        ex_mesh drop = ex_sphere(fsi_v3((fsi_real)(r * cos(a)), (fsi_real)(r * sin(a)), (fsi_real)(0.04 * (i % 3))),
            0.11, 3);
        ex_mesh_add(&drops, &drop);
        ex_mesh_free(&drop);
    }
    desc.context = &app.context;
    desc.vertices = drops.vertices;
    desc.vertex_count = drops.vertex_count;
    desc.elements = drops.triangles;
    desc.element_count = drops.triangle_count;
    desc.length = (fsi_real)(1.0 / app.res);
    desc.topology = 1;
    ex_check(&app, fsi_front_create(&f, &desc));
    volume = f->stats.volume;
    scene = ex_scene_of_box(&app, fsi_v3((fsi_real)-0.65, (fsi_real)-0.65, (fsi_real)-0.2),
        fsi_v3((fsi_real)0.65, (fsi_real)0.65, (fsi_real)0.2), 20, 60);

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < steps; k++) {
            drift(f);
            ex_front_smoothing(&app, f, 0.005, 1);
            ex_check(&app, fsi_front_step(f, (fsi_real)(FRAME / steps)));
            merges += f->stats.merges;
            app.steps++;
            app.sim_seconds += FRAME / steps;
        }
        if (app.images) {
            ex_draw_mesh(&scene, f->position, NULL, f->vertex_count, f->elements, f->element_count, 0x2277cc);
            ex_save_scene(&app, &scene, frame, "%.1f s", app.sim_seconds);
        }
        ex_progress(&app, frame + 1);
    }
    ex_figure(&app, "merges", "%.0f", merges);
    ex_figure(&app, "pieces", "%.0f", f->piece_count);
    ex_figure(&app, "volume_error", "%.2g", f->stats.volume / volume - 1);
    app.hash = fsi_front_hash(f);
    ex_scene_end(&scene);
    ex_mesh_free(&drops);
    fsi_front_destroy(f);
    return ex_end(&app);
}
