/* cc -O3 -I. examples/honey_grid.c -lm -o honey_grid && ./honey_grid
   SPDX-License-Identifier: MIT

   Honey, 50 Pa s and 1400 kg/m^3, runs from a nozzle onto a small cake. The thread folds and coils where it lands, mounds, spreads to
   the rim and bulges over it. It sticks to what it touches. Viscosity is solved for implicitly: steps are as long as for water.
   emitted_ml= is what the nozzle let out, volume_error= the largest difference from it that the honey ever had,
   relative; seconds_per_step= is CPU time a substep, without pictures. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_levelset.h"
#include "kit/shapes.h"

#define FRAME 0.05   /* seconds between two pictures */
#define WIDE 0.12    /* of the plate, and height of the room [m] */
#define RADIUS 0.005 /* of the nozzle */
#define CAKE 0.022   /* radius of the cake */
#define THICK 0.03  /* its height */

static fsi_vec3 middle(double z) { return fsi_v3((fsi_real)(WIDE / 2), (fsi_real)(WIDE / 2), (fsi_real)z); }

static fsi_mesh *make_cake(ex_app *app)
{
    shape s = shape_empty();
    fsi_pose pose;
    fsi_mesh *mesh;
    shape_cylinder(&s, CAKE, 0, THICK, 64);
    pose.position = middle(0);
    pose.orientation = fsi_quat_identity();
    shape_transform(&s, 0, pose);
    mesh = shape_mesh(app, &s, FSI_MESH_CLOSED, 0);
    shape_free(&s);
    return mesh;
}

static fsi_levelset *make_honey(ex_app *app, double viscosity, const fsi_mesh *cake)
{
    fsi_levelset_desc desc = fsi_levelset_default_desc();
    fsi_levelset *s;
    desc.context = &app->context;
    desc.n[0] = desc.n[1] = desc.n[2] = (int)(WIDE / (2 * RADIUS) * app->res + 0.5);
    desc.dx = (fsi_real)(2 * RADIUS / app->res);
    desc.density = 1400;
    desc.viscosity = (fsi_real)viscosity;
    desc.cfl = 2; /* it creeps */
    ex_check(app, fsi_levelset_create(&s, &desc));
    ex_check(app, fsi_levelset_add_mesh(s, cake, NULL));
    return s;
}

static int add_nozzle(ex_app *app, fsi_levelset *s, double height, double speed, double stop)
{
    fsi_levelset_emitter_desc desc = fsi_levelset_default_emitter_desc();
    int id;
    desc.center = middle(height);
    desc.direction = fsi_v3(0, 0, -1);
    desc.radius = (fsi_real)RADIUS;
    desc.speed = (fsi_real)speed;
    desc.stop = stop;
    ex_check(app, fsi_levelset_add_emitter(s, &desc, &id));
    return id;
}

static void show(ex_app *app, ex_scene *scene, fsi_grid_surface *skin, const fsi_levelset *s, const fsi_mesh *cake, int frame)
{
    ex_check(app, fsi_levelset_update_surface(s, skin, 1));
    ex_write_triangles(app, "honey", frame, skin->vertices, skin->vertex_count, skin->elements, skin->element_count);
    if (!app->images) return;
    ex_draw_surface(scene, skin->vertices, NULL, skin->vertex_count, skin->elements, skin->element_count);
    ex_draw_mesh(scene, cake->vertices, NULL, cake->vertex_count, cake->faces, cake->face_count, 0xe8d5b5);
    ex_save_frame(app, ex_render(scene), frame);
}

static ex_scene make_scene(ex_app *app, double height)
{
    ex_scene scene = ex_scene_begin(app);
    fsi_box3 view;
    view.lo = fsi_v3_sub(middle(0), fsi_v3((fsi_real)(1.3 * CAKE), (fsi_real)(1.3 * CAKE), 0));
    view.hi = fsi_v3_add(middle(height), fsi_v3((fsi_real)(1.3 * CAKE), (fsi_real)(1.3 * CAKE), 0));
    ex_look_at_box(&scene, view, 30, 18);
    scene.absorb = fsi_v3(8, 60, 400);
    scene.scatter_rgb = 0xc46a08;
    return scene;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_mesh *cake;
    fsi_levelset *s;
    fsi_grid_surface *skin;
    double viscosity = 50, speed = 0.3, height = 0.09, stop = 1.2, emitted = 0, worst = 0, busy = 0;
    long long iterations = 0;
    int frame, nozzle;

    ex_init(&app, "honey_grid", "Honey runs over a cake.");
    app.res = 4;
    app.res_help = "cells across the nozzle: dx = 10 mm / res";
    app.frames = 30;
    ex_real(&app, "viscosity", &viscosity, 0, 1e4, "[Pa s]");
    ex_real(&app, "speed", &speed, 0.01, 2, "of the honey as it leaves the nozzle [m/s]");
    ex_real(&app, "height", &height, 0.05, 0.11, "of the nozzle above the plate [m]");
    ex_real(&app, "stop", &stop, 0, 1e6, "when the nozzle shuts [s]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    cake = make_cake(&app);
    s = make_honey(&app, viscosity, cake);
    nozzle = add_nozzle(&app, s, height, speed, stop);
    ex_check(&app, fsi_grid_surface_create(&skin, &app.context));
    scene = make_scene(&app, height);

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            const double before = ex_cpu_seconds();
            ex_check(&app, fsi_levelset_step(s, (fsi_real)(FRAME / 4)));
            busy += ex_cpu_seconds() - before;
            app.steps += s->stats.substeps;
            iterations += s->stats.viscosity_iterations;
            ex_check(&app, fsi_levelset_emitter_total(s, nozzle, &emitted));
            worst = fmax(worst, fabs(s->stats.volume / emitted - 1));
        }
        app.sim_seconds = s->time;
        show(&app, &scene, skin, s, cake, frame);
        ex_progress(&app, frame + 1);
    }

    app.hash = fsi_levelset_hash(s);
    ex_figure(&app, "emitted_ml", "%.2f", 1e6 * emitted);
    ex_figure(&app, "volume_error", "%.1e", worst);
    ex_figure(&app, "components", "%.0f", s->component_count);
    ex_figure(&app, "viscosity_iterations", "%.1f", (double)iterations / (double)app.steps);
    ex_figure(&app, "seconds_per_step", "%.4f", busy / (double)app.steps);
    ex_scene_end(&scene);
    fsi_grid_surface_destroy(skin);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(cake);
    return ex_end(&app);
}
