/* cc -O3 -I. studies/membrane/paperclip.c -lm -o paperclip && ./paperclip
   SPDX-License-Identifier: MIT

   A steel paperclip, 7.9 times as dense as water, is laid onto water and floats: Ruan et al. 2021, figure 4, with a
   smaller clip in a smaller bowl. Its wire of 1 mm is 1.3 cells thick. depth= how far its middle is below the level far
   away [mm]; force= upward force over its weight, mean of the last tenth of the run; volume_error= of the water. */
#define FSI_IMPLEMENTATION
#include "../../fsi_membrane.h"
#include "../../examples/kit/kit.h"
#include "../../examples/kit/rigid_look.h"

#define WIRE 0.0005    /* its radius [m] */
#define DENSITY 7900.0
#define BOX_X 0.0315   /* [m] */
#define BOX_Y 0.0165
#define LEVEL 0.0066
#define POINTS 64

/* Points along the wire in the plane: straight parts, and half turns in six pieces. Returns their number. */
static int bend(double (*p)[2])
{
    static const double turn[3][4] = { /* middle, radius, the side that it bulges to */
        { 0.0065, 0.0004, 0.0014, 1 }, { -0.008, -0.0004, 0.0022, -1 }, { 0.0085, 0.0004, 0.003, 1 }
    };
    int n = 0, k, i;
    p[n][0] = -0.003;
    p[n++][1] = turn[0][1] - turn[0][2];
    for (k = 0; k < 3; k++)
        for (i = 0; i <= 6; i++) {
            const double a = turn[k][3] * (i / 3.0 - 1) * FSI_PI / 2;
            p[n][0] = turn[k][0] + turn[k][3] * turn[k][2] * cos(a);
            p[n++][1] = turn[k][1] + turn[k][2] * sin(a);
        }
    p[n][0] = -0.004;
    p[n++][1] = turn[2][1] + turn[2][2];
    return n;
}

/* A body of capsules from point to point, lying at z, with the mass of the wire. */
static int add_clip(ex_app *app, fsi_rigid *world, double z)
{
    fsi_rigid_shape part[POINTS];
    fsi_rigid_body_desc body = fsi_rigid_default_body_desc();
    double p[POINTS + 1][2], length = 0;
    const int n = bend(p) - 1;
    int i, id;
    for (i = 0; i < n; i++) {
        const double dx = p[i + 1][0] - p[i][0], dy = p[i + 1][1] - p[i][1], l = sqrt(dx * dx + dy * dy);
        part[i] = fsi_rigid_capsule((fsi_real)WIRE, (fsi_real)(l / 2));
        part[i].pose.position = fsi_v3((fsi_real)((p[i][0] + p[i + 1][0]) / 2), (fsi_real)((p[i][1] + p[i + 1][1]) / 2),
            0);
        part[i].pose.orientation = fsi_quat_from_axis_angle(fsi_v3(0, 0, 1), (fsi_real)atan2(dy, dx));
        length += l;
    }
    body.mass = (fsi_real)(DENSITY * FSI_PI * WIRE * WIRE * length);
    body.shapes = part;
    body.shape_count = n;
    body.pose.position = fsi_v3((fsi_real)(BOX_X / 2), (fsi_real)(BOX_Y / 2), (fsi_real)z);
    ex_check(app, fsi_rigid_add_body(world, &body, &id));
    return id;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_skin skin;
    ex_mesh pool;
    fsi_rigid_desc rigid = fsi_rigid_default_desc();
    fsi_membrane_desc desc = fsi_membrane_default_desc();
    fsi_rigid *world;
    fsi_membrane *m;
    fsi_mass_properties mass;
    double volume, force = 0;
    int frame, k, id, count[3], steps = 3, late = 0;
    ex_init(&app, "paperclip", "A steel paperclip floats on water.");
    app.res = 42;
    app.res_help = "cells along the longer edge of the bowl of 31.5 mm";
    app.frames = 45;
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    /* Water in its bowl; the clip just above it. */
    desc.context = rigid.context = &app.context;
    desc.dx = (fsi_real)(BOX_X / app.res);
    desc.n[0] = app.res;
    desc.n[1] = (int)ceil(BOX_Y / (double)desc.dx - 1e-6);
    desc.n[2] = (int)ceil((LEVEL + 0.0024) / (double)desc.dx);
    count[0] = (int)(2.2 * app.res);
    count[1] = (int)(2.2 * desc.n[1]);
    count[2] = (int)(2.2 * LEVEL / (double)desc.dx);
    pool = ex_gridded_box(ex_box3(0, 0, 0, BOX_X, desc.n[1] * (double)desc.dx, LEVEL), count);
    desc.vertices = pool.vertices;
    desc.vertex_count = pool.vertex_count;
    desc.elements = pool.triangles;
    desc.element_count = pool.triangle_count;
    ex_check(&app, fsi_rigid_create(&world, &rigid));
    id = add_clip(&app, world, LEVEL + WIRE);
    desc.world = world;
    ex_check(&app, fsi_membrane_create(&m, &desc));
    volume = m->stats.volume;
    skin = ex_skin_of(&app, world, id);
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)BOX_X, (fsi_real)BOX_Y, (fsi_real)LEVEL), 25, 40);

    /* 12 ms a picture; drag by air lets it come to rest. */
    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < steps; k++) {
            world->force[id] = fsi_v3_scale(world->body[id]->velocity, (fsi_real)-0.02);
            ex_check(&app, fsi_membrane_step(m, (fsi_real)0.004));
            app.steps++;
            app.sim_seconds += 0.004;
            if (10 * frame < 9 * app.frames) continue;
            force += m->stats.body_impulse[2] / 0.004;
            late++;
        }
        if (app.images) {
            ex_draw_surface(&scene, m->front->position, NULL, m->front->vertex_count, m->front->elements,
                m->front->element_count);
            ex_draw_skin(&scene, world, &skin, 0x9aa0a8);
            ex_save_scene(&app, &scene, frame, "%.0f ms", 1000 * app.sim_seconds);
        }
        ex_progress(&app, frame + 1);
    }
    ex_check(&app, fsi_rigid_mass(world, id, &mass));
    ex_figure(&app, "depth", "%.2f", 1000 * (LEVEL - (double)world->body[id]->pose.position.z));
    ex_figure(&app, "force", "%.3f", force / late / (9.81 * (double)mass.mass));
    ex_figure(&app, "volume_error", "%.2g", m->stats.volume / volume - 1);
    app.hash = fsi_membrane_hash(m);
    ex_scene_end(&scene);
    ex_skin_free(&skin);
    ex_mesh_free(&pool);
    fsi_membrane_destroy(m);
    fsi_rigid_destroy(world);
    return ex_end(&app);
}
