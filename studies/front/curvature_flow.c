/* cc -O3 -I. studies/front/curvature_flow.c -lm -o curvature_flow && ./curvature_flow [file.obj]
   SPDX-License-Identifier: MIT

   A knot, or a closed OBJ or PLY of yours, moves along its normals by its mean curvature, v = -2 H n: it gets smooth
   and small, necks pinch off, and what is left vanishes. Lengths are such that it is 1 wide; edges are 1/--res. With
   --ball it is a ball of radius R, which must vanish at R^2/4: life_error= is how far it was from that when it had an
   eighth of its volume. grew= counts steps that made the area larger, which the flow does not do: a change of topology
   may. curvature_flow_0000.png ... show it. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/front_tally.h"

#define RADIUS 0.4 /* of the ball */

static ex_mesh make_shape(ex_app *app, const char *file, int ball)
{
    ex_mesh m = file ? ex_load_mesh(app, file, 0) : ball ? ex_sphere(fsi_v3(0, 0, 0), 1, 4)
        : ex_knot(2, 3, 0.75, 400, 40);
    const double half = ball && !file ? RADIUS : 0.5;
    ex_fit(m.vertices, m.vertex_count, ex_box3(-half, -half, -half, half, half, half));
    return m;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_mesh m;
    fsi_front *f;
    const char *file = NULL;
    double length, dt, area, volume, time = 0, eighth = 0;
    int ball = 0, steps, k, frame = 0, merges = 0, pinches = 0, places = 0, failed = 0, grew = 0, most, i;
    ex_init(&app, "curvature_flow", "A knot shrinks smoothly.");
    app.frames = 16;
    app.res = 50;
    app.res_help = "edges of triangles along the width";
    ex_operand(&app, "file.obj", &file, "a closed mesh, OBJ or PLY; none: a knot");
    ex_flag(&app, "ball", &ball, "a ball instead of the knot");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    length = 1.0 / app.res;
    m = make_shape(&app, file, ball);
    f = ex_front_make(&app, 3, m.vertices, m.vertex_count, m.triangles, m.triangle_count, length);
    ex_mesh_free(&m);
    f->desc.topology = 1;
    f->desc.keep_volume = 0;
    ex_check(&app, fsi_front_step(f, 0));
    volume = f->stats.volume;
    most = f->piece_count;
    scene = ex_scene_of_box(&app, fsi_v3(-0.36, -0.36, -0.12), fsi_v3(0.36, 0.36, 0.12), 30, 40);

    /* Explicit Euler, stable for edges above 0.4 lengths. */
    dt = 0.05 * length * length;
    steps = (int)((ball ? RADIUS * RADIUS / 4 : 0.006) / dt);
    for (k = 0; k < steps && f->element_count > 0; k++) {
        for (i = 0; i < f->vertex_count; i++) f->velocity[i] = fsi_v3(0, 0, 0);
        ex_front_smoothing(&app, f, 1, 0);
        area = f->stats.area;
        ex_check(&app, fsi_front_step(f, (fsi_real)dt));
        time += dt;
        grew += f->stats.area > area;
        merges += f->stats.merges;
        pinches += f->stats.pinches;
        places += f->stats.places;
        failed += f->stats.failed_places;
        most = f->piece_count > most ? f->piece_count : most;
        if (eighth <= 0 && f->stats.volume < volume / 8) eighth = time;
        app.steps++;
        app.sim_seconds = time;
        if ((k + 1) * app.frames / steps == frame) continue;
        if (app.images) {
            ex_draw_mesh(&scene, f->position, NULL, f->vertex_count, f->elements, f->element_count, 0xb5532a);
            ex_save_scene(&app, &scene, frame, "%.4f", time);
        }
        ex_progress(&app, ++frame);
    }
    ex_scene_end(&scene);

    /* R^2 = R0^2 - 4 t: an eighth of the volume at 3/4 of its life. */
    if (ball && !file) ex_figure(&app, "life_error", "%.3g", eighth / (0.1875 * RADIUS * RADIUS) - 1);
    ex_figure(&app, "merges", "%.0f", merges);
    ex_figure(&app, "pinches", "%.0f", pinches);
    ex_figure(&app, "most_pieces", "%.0f", most);
    ex_figure(&app, "places", "%.0f", places);
    ex_figure(&app, "failed", "%.0f", failed);
    ex_figure(&app, "grew", "%.0f", grew);
    ex_figure(&app, "triangles", "%.0f", f->element_count);
    app.hash = fsi_front_hash(f);
    fsi_front_destroy(f);
    return ex_end(&app);
}
