/* cc -O3 -I. examples/hanging_cloth.c -lm -o hanging_cloth && ./hanging_cloth
   SPDX-License-Identifier: MIT

   A cotton cloth of 12,000 vertices, a metre wide, is held by two corners. It is let go from a slope, swings down and
   through, and meanwhile its corners are led together: the slack falls into folds that lie upon each other. Pins with
   moving targets, drag of the air, contact with itself, one implicit solve a step of 1/30 s. stretch= is the longest
   edge over its length at rest at the end of any frame, of all that Newton's tolerance leaves over too; sag= how deep
   the middle of the upper edge hangs below the corners [m]; intersections=, counted by exact arithmetic after each
   frame, must be 0. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_shell.h"
#include "kit/shell_tally.h"

#define SIDE 1.0     /* of the cloth [m] */
#define HEIGHT 1.15  /* of the corners */
#define WAIT 0.15    /* before they are led together [s] */
#define LEAD 0.8     /* the time that this takes */
#define SLOPE 0.6    /* at first, below the horizontal [rad] */
#define STEP (1.0 / 30)

static fsi_shell *make_cloth(ex_app *app, const ex_mesh *mesh)
{
    fsi_shell_material cotton = fsi_shell_preset(FSI_SHELL_COTTON);
    fsi_shell_desc d = ex_cloth_desc(app, mesh, &cotton);
    fsi_shell *cloth;
    int i;
    for (i = 0; i < mesh->vertex_count; i++) {
        fsi_vec3 *x = &mesh->vertices[i];
        *x = fsi_v3(x->x, x->y * cos(SLOPE), HEIGHT + x->y * sin(SLOPE));
    }
    cotton.clearance = cotton.thickness / 2;
    d.friction = 0.3;
    d.air_density = 1.2;
    d.tolerance = 0.06;
    ex_check(app, fsi_shell_create(&cloth, &d));
    return cloth;
}

/* Each of the two corners has gone this far towards the other, in the end two fifths of the width together. */
static double way_at(double time)
{
    const double t = fmin(1, fmax(0, time - WAIT) / LEAD);
    return t * t * (3 - 2 * t) * SIDE / 5;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_shell_tally tally = { 0 };
    ex_mesh mesh;
    fsi_shell *cloth;
    double stretch = 0;
    int frame, intersections = 0, left, right;

    ex_init(&app, "hanging_cloth", "A cloth held by two corners swings down and falls into folds.");
    app.res = 109;
    app.res_help = "edges along a side of the cloth";
    app.frames = 30;
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    mesh = ex_grid(fsi_v3(-SIDE / 2, -SIDE, 0), fsi_v3(SIDE / 2, 0, 0), app.res, app.res);
    cloth = make_cloth(&app, &mesh);
    left = app.res * (app.res + 1);
    right = left + app.res;
    cloth->pinned[left] = cloth->pinned[right] = 1;
    scene = ex_scene_begin(&app);
    scene.width = scene.height = 540;
    ex_look_at_box(&scene, ex_box3(-0.5, -0.5, 0, 0.5, 0.3, 1.15), 25, 10);
    scene.sun = fsi_v3(-0.3, -1, 0.9);

    for (frame = 0; frame < app.frames; frame++) {
        cloth->target[left].x = -(SIDE / 2 - way_at(cloth->time + STEP));
        cloth->target[right].x = SIDE / 2 - way_at(cloth->time + STEP);
        ex_shell_step(&app, &tally, cloth, STEP);
        stretch = fmax(stretch, ex_cloth_stretch(cloth, mesh.vertices));
        intersections += fsi_shell_count_intersections(cloth);
        if (app.images) {
            ex_draw_cloth(&scene, cloth, 0.002, 0xc8432f, 0xe9c9a8);
            ex_save_scene(&app, &scene, frame, "%.2f s", cloth->time);
        }
        ex_write_triangles(&app, "cloth", frame, cloth->position, cloth->vertex_count, mesh.triangles,
                           mesh.triangle_count);
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "intersections", "%.0f", intersections);
    ex_figure(&app, "stretch", "%.4f", stretch);
    ex_figure(&app, "sag", "%.3f", HEIGHT - cloth->position[left + app.res / 2].z);
    ex_shell_figures(&app, &tally, cloth);
    ex_scene_end(&scene);
    fsi_shell_destroy(cloth);
    ex_mesh_free(&mesh);
    return ex_end(&app);
}
