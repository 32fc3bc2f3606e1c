/* cc -O3 -I. studies/front/enright.c -lm -o enright && ./enright
   SPDX-License-Identifier: MIT

   The deformation field of Enright et al. (2002), LeVeque's of 1996: a ball of radius 0.15 in the unit cube is drawn
   out to a thin sheet until t = 1.5, then the flow runs back, and at t = 3 the ball should be what it was. Triangles
   are half a cell of a grid with --res cells long. shape_error= is the volume where it is not, over the area of the
   ball, in cells; volume_error= that of the volume. enright_0000.png ... show the sheet. --cfl sets the step, in
   cells. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/front_tally.h"

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_front *f;
    unsigned char *before, *after;
    double cfl = 1, volume, area;
    int k, steps, n, most = 0, frame = 0;
    ex_init(&app, "enright", "A ball is drawn out to a sheet, and back.");
    app.frames = 12;
    app.res = 64;
    ex_real(&app, "cfl", &cfl, 0.1, 4, "cells that the fastest point moves in a step");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    f = ex_enright_front(&app, app.res);
    ex_check(&app, fsi_front_step(f, 0));
    n = 4 * app.res;
    before = ex_front_inside(&app, f, n, 1);
    volume = f->stats.volume;
    area = f->stats.area;

    /* There and back. */
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, ex_box3(0.12, 0.12, 0.12, 0.88, 0.88, 0.88), 30, 20);
    steps = (int)ceil(3 * 2 * app.res / cfl);
    for (k = 0; k < steps; k++) {
        ex_front_carry(&app, f, ex_enright_flow, 3.0 * k / steps, 3.0 / steps);
        most = f->element_count > most ? f->element_count : most;
        app.steps++;
        app.sim_seconds = 3.0 * (k + 1) / steps;
        if ((k + 1) * app.frames / steps == frame) continue;
        if (app.images) {
            ex_draw_mesh(&scene, f->position, NULL, f->vertex_count, f->elements, f->element_count, 0x2277cc);
            ex_save_scene(&app, &scene, frame, "%.2f", 3.0 * (k + 1) / steps);
        }
        ex_progress(&app, ++frame);
    }
    ex_scene_end(&scene);
    after = ex_front_inside(&app, f, n, 1);
    ex_figure(&app, "shape_error", "%.3g", ex_front_difference(before, after, n, 3, 1) / area * app.res);
    ex_figure(&app, "volume_error", "%.3g", f->stats.volume / volume - 1);
    ex_figure(&app, "triangles", "%.0f", f->element_count);
    ex_figure(&app, "most_triangles", "%.0f", most);
    ex_figure(&app, "pieces", "%.0f", f->piece_count);
    app.hash = fsi_front_hash(f);
    free(before);
    free(after);
    fsi_front_destroy(f);
    return ex_end(&app);
}
