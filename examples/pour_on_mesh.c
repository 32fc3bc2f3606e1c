/* cc -O3 -I. examples/pour_on_mesh.c -lm -o pour_on_mesh && ./pour_on_mesh [file.obj]
   SPDX-License-Identifier: MIT

   A jet of water falls on a mesh in a glass tank: on any closed OBJ or PLY that you name, else on a trefoil knot. The
   file is scaled to fit, small holes are mended, and what was found is told in a note. A mesh that encloses nothing is
   refused with the reason. inside= counts, by winding numbers, the particles that got into the mesh: none. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_sph.h"

#define FRAME 0.04      /* seconds between two pictures */
#define JET_SPEED 2.0   /* [m/s] */
#define JET_RADIUS 0.13
#define JET_HEIGHT 1.0
#define POURED 0.15     /* [m^3], into a tank of 1 x 1 m */

/* The solid, in the middle of the tank and far enough above its floor for water to flow below. */
static fsi_mesh *make_solid(ex_app *app, ex_mesh *m, double gap)
{
    fsi_mesh_desc desc = fsi_mesh_default_desc();
    fsi_mesh *mesh;
    fsi_box3 room;
    room.lo = fsi_v3(0.12, 0.12, gap);
    room.hi = fsi_v3(0.88, 0.88, gap + 0.5);
    ex_fit(m->vertices, m->vertex_count, room);
    desc.context = &app->context;
    desc.vertices = m->vertices;
    desc.vertex_count = m->vertex_count;
    desc.elements = m->triangles;
    desc.element_count = m->triangle_count;
    ex_check(app, fsi_mesh_create(&mesh, &desc));
    printf("mesh: %d triangles, %d connected pieces\n", mesh->face_count, mesh->group_count);
    return mesh;
}

/* Adds the layers of the jet that have left the nozzle by now, dx apart; *layers counts them. */
static void pour(ex_app *app, fsi_sph *s, int *layers)
{
    double dx = (double)s->desc.spacing, out;
    int i, j, n = (int)(JET_RADIUS / dx);
    for (; s->count * (double)s->particle_volume < POURED && (out = JET_SPEED * s->time - *layers * dx) >= 0; ++*layers) {
        for (j = -n; j <= n; j++) {
            for (i = -n; i <= n; i++) {
                fsi_vec3 x = fsi_v3(0.5 + i * dx, 0.5 + j * dx, JET_HEIGHT - out), v = fsi_v3(0, 0, -JET_SPEED);
                if (hypot(i, j) * dx < JET_RADIUS) ex_check(app, fsi_sph_add_particles(s, &x, &v, 1));
            }
        }
    }
}

static void draw(ex_app *app, ex_scene *scene, fsi_surface *surface, const fsi_sph *s, const fsi_mesh *mesh, int frame)
{
    ex_check(app, fsi_surface_update(surface, s->position, s->count, NULL));
    ex_draw_surface(scene, surface->vertices, surface->normals, surface->vertex_count, surface->elements,
                    surface->element_count);
    ex_draw_mesh(scene, mesh->vertices, NULL, mesh->vertex_count, mesh->faces, mesh->face_count, 0xe08a3c);
    ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    ex_save_frame(app, ex_render(scene), frame);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_mesh shape;
    fsi_box3 tank;
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_surface_desc skin = fsi_surface_default_desc();
    fsi_mesh *mesh;
    fsi_sph *s;
    fsi_surface *surface;
    const char *file = NULL;
    double dt = 0;
    int frame, y_up = 0, layers = 0, inside = 0, placed = 0, pinched = 0;

    ex_init(&app, "pour_on_mesh", "Water is poured on a mesh.");
    app.res = 26;
    app.res_help = "particles over the width of the tank: dx = 1 m / res";
    app.frames = 40;
    ex_operand(&app, "file.obj", &file, "a closed mesh, OBJ or PLY; none: a trefoil knot");
    ex_flag(&app, "y-up", &y_up, "the y axis of the file points up");
    ex_real(&app, "dt", &dt, 0, 20, "time step without substeps [ms], 0: chosen by the simulator");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    shape = file ? ex_load_mesh(&app, file, y_up) : ex_knot(2, 3, 0.5, 72, 10);

    tank.lo = fsi_v3(0, 0, 0);
    tank.hi = fsi_v3(1, 1, 0.6);
    desc.context = skin.context = &app.context;
    desc.spacing = skin.spacing = 1.0 / app.res;
    desc.depth = 0.5;
    desc.domain = tank;
    desc.domain.hi.z = 1.5; /* what splashes up comes down again */
    if (dt > 0) desc.max_substeps = 1;
    mesh = make_solid(&app, &shape, 3 * desc.spacing);
    ex_check(&app, fsi_sph_create(&s, &desc));
    ex_check(&app, fsi_sph_add_mesh(s, mesh, NULL));
    ex_check(&app, fsi_surface_create(&surface, &skin));
    scene = ex_scene_begin(&app);
    ex_look_at_box(&scene, tank, 30, 24);

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            pour(&app, s, &layers);
            ex_check(&app, fsi_sph_step(s, dt > 0 ? dt / 1000 : FRAME / 4));
            app.steps += s->stats.substeps;
            placed += s->stats.placed;
            pinched += s->stats.pinched;
            if (dt > 0) inside += fsi_sph_count_inside(s, NULL);
        }
        app.sim_seconds = s->time;
        if (!(dt > 0)) inside += fsi_sph_count_inside(s, NULL);
        if (app.images) draw(&app, &scene, surface, s, mesh, frame);
        ex_write_particles(&app, "water", frame, s->position, s->velocity, s->count);
        ex_progress(&app, frame + 1);
    }

    app.hash = fsi_sph_hash(s);
    ex_figure(&app, "particles", "%.0f", s->count);
    ex_figure(&app, "inside", "%.0f", inside);
    ex_figure(&app, "lost", "%.0f", ex_count_outside(s->position, s->count, s->desc.domain));
    ex_figure(&app, "placed", "%.0f", placed);
    ex_figure(&app, "pinched", "%.0f", pinched);
    ex_scene_end(&scene);
    fsi_surface_destroy(surface);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(mesh);
    ex_mesh_free(&shape);
    return ex_end(&app);
}
