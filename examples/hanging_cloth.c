/* cc -O3 -I. examples/hanging_cloth.c -lm -o hanging_cloth && ./hanging_cloth
   SPDX-License-Identifier: MIT

   A cotton cloth of 12,000 vertices, a metre wide, is held by two corners. It is let go from a slope, swings down and through, and meanwhile its
   corners are led together: the slack falls into folds that lie upon each other. Pins with moving targets, drag of the air, contact with itself, one implicit
   solve a step of 1/30 s. stretch= is the longest edge over its length at rest at any time, of all that Newton's tolerance leaves over too; sag= how
   deep the middle of the upper edge hangs below the corners [m]; intersections=, counted by exact arithmetic after each frame, must be 0. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_shell.h"
#include "kit/shell_tally.h"

#define SIDE 1.0     /* of the cloth [m] */
#define HEIGHT 1.15  /* of the corners */
#define WAIT 0.15    /* before they are led together [s]; */
#define LEAD 0.8     /* the time that this takes */
#define SLOPE 0.6    /* at first, below the horizontal [rad] */

typedef struct state {
    ex_mesh cloth;
    fsi_shell *shell;
    int corner[2], middle; /* of the upper edge */
    double stretch;
    int intersections;
} state;

static void make_cloth(ex_app *app, state *w, double tolerance)
{
    fsi_shell_material cotton = fsi_shell_preset(FSI_SHELL_COTTON);
    fsi_shell_desc d = fsi_shell_default_desc();
    const int n = app->res;
    int i;
    w->cloth = ex_grid(fsi_v3((fsi_real)(-SIDE / 2), (fsi_real)-SIDE, 0), fsi_v3((fsi_real)(SIDE / 2), 0, 0), n, n);
    for (i = 0; i < w->cloth.vertex_count; i++) {
        fsi_vec3 *x = &w->cloth.vertices[i];
        *x = fsi_v3(x->x, x->y * (fsi_real)cos(SLOPE), (fsi_real)HEIGHT + x->y * (fsi_real)sin(SLOPE));
    }
    w->corner[0] = n * (n + 1);
    w->corner[1] = (n + 1) * (n + 1) - 1;
    w->middle = w->corner[0] + n / 2;
    cotton.clearance = cotton.thickness / 2;
    d.context = &app->context;
    d.vertices = w->cloth.vertices;
    d.vertex_count = w->cloth.vertex_count;
    d.triangles = w->cloth.triangles;
    d.triangle_count = w->cloth.triangle_count;
    d.materials = &cotton;
    d.material_count = 1;
    d.friction = (fsi_real)0.3;
    d.air_density = (fsi_real)1.2;
    d.tolerance = (fsi_real)tolerance;
    ex_check(app, fsi_shell_create(&w->shell, &d));
    w->shell->pinned[w->corner[0]] = w->shell->pinned[w->corner[1]] = 1;
}

/* The corners go towards each other until two fifths of the width are slack. */
static void lead_corners(const state *w, double time)
{
    const double t = fmin(1, fmax(0, time - WAIT) / LEAD), way = t * t * (3 - 2 * t) * SIDE / 5;
    int k;
    for (k = 0; k < 2; k++) w->shell->target[w->corner[k]].x = (fsi_real)((k ? 1 : -1) * (SIDE / 2 - way));
}

/* The longest edge over its length at rest; as it was at first. */
static double stretch_of(const state *w)
{
    const fsi_vec3 *x = w->shell->position, *rest = w->cloth.vertices;
    double most = 0;
    int i, k;
    for (i = 0; i < w->cloth.triangle_count; i++) for (k = 0; k < 3; k++) {
        const int a = w->cloth.triangles[3 * i + k], b = w->cloth.triangles[3 * i + (k + 1) % 3];
        most = fmax(most, (double)(fsi_v3_norm(fsi_v3_sub(x[a], x[b])) / fsi_v3_norm(fsi_v3_sub(rest[a], rest[b]))));
    }
    return most;
}

static void draw(ex_app *app, ex_scene *scene, const state *w, int frame)
{
    const fsi_shell *s = w->shell;
    ex_image *image;
    char text[64];
    ex_draw_sheet(scene, s->position, s->vertex_count, s->triangles, s->triangle_count, 0.002, 0xc8432f, 0xe9c9a8);
    image = ex_render(scene);
    snprintf(text, sizeof text, "%.2f s", s->time);
    ex_text(image, 24, 40, 13, EX_LEFT, 0x3a4550, text);
    ex_save_frame(app, image, frame);
}

static ex_scene begin_scene(ex_app *app)
{
    ex_scene scene = ex_scene_begin(app);
    fsi_box3 box;
    box.lo = fsi_v3((fsi_real)-0.5, (fsi_real)-0.5, 0);
    box.hi = fsi_v3((fsi_real)0.5, (fsi_real)0.3, (fsi_real)1.15);
    scene.width = scene.height = 540;
    ex_look_at_box(&scene, box, 25, 10);
    scene.sun = fsi_v3((fsi_real)-0.3, -1, (fsi_real)0.9);
    return scene;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_shell_tally tally = { 0 };
    state w;
    double dt = 1.0 / 30, tolerance = 0.06;
    int frame;

    memset(&w, 0, sizeof w);
    ex_init(&app, "hanging_cloth", "A cloth held by two corners swings down and falls into folds.");
    app.res = 109;
    app.res_help = "edges along a side of the cloth";
    app.frames = 30;
    ex_real(&app, "dt", &dt, 1e-4, 1.0 / 30, "time step [s]");
    ex_real(&app, "tolerance", &tolerance, 1e-6, 1, "Newton's, in edges");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 4 || app.res > 2000) ex_die("--res is not between 4 and 2000");
    make_cloth(&app, &w, tolerance);
    scene = begin_scene(&app);

    for (frame = 0; frame < app.frames; frame++) {
        while (w.shell->time < (frame + 1) / 30.0 - 1e-9) {
            lead_corners(&w, w.shell->time + dt);
            ex_shell_step(&app, &tally, w.shell, dt);
        }
        w.stretch = fmax(w.stretch, stretch_of(&w));
        w.intersections += fsi_shell_count_intersections(w.shell);
        if (app.images) draw(&app, &scene, &w, frame);
        if (app.write) {
            fsi_io_mesh mesh = fsi_io_default_mesh();
            mesh.vertices = w.shell->position;
            mesh.vertex_count = w.shell->vertex_count;
            mesh.triangles = w.cloth.triangles;
            mesh.triangle_count = w.cloth.triangle_count;
            ex_write_mesh(&app, "cloth", frame, &mesh);
        }
        ex_progress(&app, frame + 1);
    }

    ex_figure(&app, "intersections", "%.0f", w.intersections);
    ex_figure(&app, "stretch", "%.4f", w.stretch);
    ex_figure(&app, "sag", "%.3f", HEIGHT - (double)w.shell->position[w.middle].z);
    ex_shell_figures(&app, &tally, w.shell);
    ex_scene_end(&scene);
    fsi_shell_destroy(w.shell);
    ex_mesh_free(&w.cloth);
    return ex_end(&app);
}
