/* cc -O3 -I. examples/pour_on_mesh.c -lm -o pour_on_mesh && ./pour_on_mesh [file.obj]
   SPDX-License-Identifier: MIT

   A jet of water falls on a mesh in a glass tank: on any closed OBJ or PLY that you name, else on a trefoil knot. The
   file is scaled to fit, small holes are mended, and what was found is told in a note. A mesh that encloses nothing is
   refused with the reason. inside= counts, by winding numbers, the particles that got into the mesh: none. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_sph.h"
#include "kit/sph_tally.h"

#define FRAME 0.04      /* seconds between two pictures */
#define JET_SPEED 2.0   /* [m/s] */
#define JET_RADIUS 0.13
#define JET_HEIGHT 1.0
#define POURED 0.15     /* [m^3], into a tank of 1 x 1 m */

/* Adds the layers of the jet that have left the nozzle by now, dx apart; *layers counts them. */
static void pour(ex_app *app, fsi_sph *s, int *layers)
{
    double dx = s->desc.spacing, out;
    int i, j, n = (int)(JET_RADIUS / dx);
    for (; s->count * s->particle_volume < POURED && (out = JET_SPEED * s->time - *layers * dx) >= 0; ++*layers) {
        for (j = -n; j <= n; j++) {
            for (i = -n; i <= n; i++) {
                fsi_vec3 x = fsi_v3(0.5 + i * dx, 0.5 + j * dx, JET_HEIGHT - out), v = fsi_v3(0, 0, -JET_SPEED);
                if (hypot(i, j) * dx < JET_RADIUS) ex_check(app, fsi_sph_add_particles(s, &x, &v, 1));
            }
        }
    }
}

/* Water flows below the solid. The domain is higher than the tank: what splashes up comes down again. */
static fsi_sph *make_tank(ex_app *app, ex_mesh *shape, int substeps, fsi_mesh **mesh)
{
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_sph *s;
    double gap = 3.0 / app->res; /* between the solid and the floor */
    desc.context = &app->context;
    desc.spacing = 1.0 / app->res;
    desc.depth = 0.5;
    desc.domain = ex_box3(0, 0, 0, 1, 1, 1.5);
    if (!substeps) desc.max_substeps = 1;
    ex_fit(shape->vertices, shape->vertex_count, ex_box3(0.12, 0.12, gap, 0.88, 0.88, gap + 0.5));
    *mesh = ex_solid(app, shape, FSI_MESH_CLOSED);
    printf("mesh: %d triangles, %d connected pieces\n", (*mesh)->face_count, (*mesh)->group_count);
    ex_check(app, fsi_sph_create(&s, &desc));
    ex_check(app, fsi_sph_add_mesh(s, *mesh, NULL));
    return s;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_tally tally = { 0 };
    ex_mesh shape;
    fsi_mesh *mesh;
    fsi_sph *s;
    fsi_surface *surface;
    const char *file = NULL;
    double dt = 0;
    int frame, y_up = 0, layers = 0;

    ex_init(&app, "pour_on_mesh", "Water is poured on a mesh.");
    app.res = 26;
    app.res_help = "particles over the width of the tank: dx = 1 m / res";
    app.frames = 40;
    ex_operand(&app, "file.obj", &file, "a closed mesh, OBJ or PLY; none: a trefoil knot");
    ex_flag(&app, "y-up", &y_up, "the y axis of the file points up");
    ex_real(&app, "dt", &dt, 0, 20, "time step without substeps [ms], 0: chosen by the simulator");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    shape = file ? ex_load_mesh(&app, file, y_up) : ex_knot(2, 3, 0.5, 72, 10);
    s = make_tank(&app, &shape, !(dt > 0), &mesh);
    surface = ex_particle_surface(&app, s->desc.spacing);
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3(1, 1, 0.6), 30, 24);

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            pour(&app, s, &layers);
            ex_check(&app, fsi_sph_step(s, dt > 0 ? dt / 1000 : FRAME / 4));
            ex_tally_step(&app, &tally, s, s->desc.domain, 1);
        }
        if (app.images) {
            ex_draw_particles(&app, &scene, surface, s->position, s->count);
            ex_draw_solid(&scene, mesh, 0xe08a3c);
            ex_draw_box(&scene, scene.box, 1.5, 0x7d8894);
            ex_save_scene(&app, &scene, frame, NULL, 0);
        }
        ex_write_particles(&app, "water", frame, s->position, s->velocity, s->count);
        ex_progress(&app, frame + 1);
    }

    ex_tally_figures(&app, &tally, s);
    ex_scene_end(&scene);
    fsi_surface_destroy(surface);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(mesh);
    return ex_end(&app);
}
