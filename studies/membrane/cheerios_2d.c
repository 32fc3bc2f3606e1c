/* cc -O3 -I. studies/membrane/cheerios_2d.c -lm -o cheerios_2d && ./cheerios_2d
   SPDX-License-Identifier: MIT

   Two cylinders of 2 mm, 1.5 times as dense as water, are laid onto it, 6 mm from middle to middle: each lies in a
   hollow of the surface, and they are drawn to each other, as cereals in milk are (Ruan et al. 2021, figure 10a). A
   drag holds them back. apart= the way between their middles [mm], at first 6; met= when they met [s]; deep= of their
   middles below the level at first [mm]; volume_error= of the water. */
#define FSI_IMPLEMENTATION
#include "../../fsi_membrane.h"
#include "../../examples/kit/kit.h"
#include "../../examples/kit/membrane_look.h"

#define BOX 0.02    /* [m] */
#define LEVEL 0.0101
#define RADIUS 0.001
#define DENSITY 1500.0

/* The surface of the pool, in pieces of about half a cell, clockwise from its lower left corner. */
static ex_mesh make_pool(int cells)
{
    const int wide = 2 * cells, side = (int)(2 * cells * LEVEL / BOX), count = 2 * (wide + side);
    ex_mesh m = ex_mesh_make(count, count);
    int i;
    for (i = 0; i < count; i++) {
        const int up = i < side ? i : i < side + wide ? side : i < 2 * side + wide ? 2 * side + wide - i : 0;
        const int along = i < side ? 0 : i < side + wide ? i - side : i < 2 * side + wide ? wide : count - i;
        m.vertices[i] = fsi_v3((fsi_real)(BOX * along / wide), (fsi_real)(LEVEL * up / side), 0);
        m.triangles[2 * i] = i;
        m.triangles[2 * i + 1] = (i + 1) % count;
    }
    return m;
}

static void add_cylinder(ex_app *app, fsi_rigid *world, double x)
{
    fsi_rigid_shape round = fsi_rigid_sphere((fsi_real)RADIUS);
    fsi_rigid_body_desc body = fsi_rigid_default_body_desc();
    int id;
    round.density = (fsi_real)DENSITY;
    body.shapes = &round;
    body.shape_count = 1;
    body.pose.position = fsi_v3((fsi_real)x, (fsi_real)(LEVEL + RADIUS), 0);
    ex_check(app, fsi_rigid_add_body(world, &body, &id));
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_mesh pool;
    fsi_rigid_desc rigid = fsi_rigid_default_desc();
    fsi_membrane_desc desc = fsi_membrane_default_desc();
    fsi_rigid *world;
    fsi_membrane *m;
    double volume, apart = 0.006, met = -1;
    int frame, k, b, steps = 5;
    ex_init(&app, "cheerios_2d", "Two floating cylinders are drawn to each other.");
    app.res = 80;
    app.res_help = "cells along an edge of the box of 20 mm; the paper's: 160";
    app.frames = 80;
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    /* The pool, and the cylinders just above it. */
    desc.context = rigid.context = &app.context;
    desc.dim = rigid.dim = 2;
    desc.gravity = rigid.gravity = fsi_v3(0, (fsi_real)-9.81, 0);
    desc.n[0] = desc.n[1] = app.res;
    desc.dx = (fsi_real)(BOX / app.res);
    pool = make_pool(app.res);
    desc.vertices = pool.vertices;
    desc.vertex_count = pool.vertex_count;
    desc.elements = pool.triangles;
    desc.element_count = pool.triangle_count;
    ex_check(&app, fsi_rigid_create(&world, &rigid));
    for (b = 0; b < 2; b++) add_cylinder(&app, world, BOX / 2 + (b ? 0.003 : -0.003));
    desc.world = world;
    ex_check(&app, fsi_membrane_create(&m, &desc));
    volume = m->stats.volume;
    scene = ex_scene_begin(&app);
    ex_look_at_flat(&scene, ex_box3(0, 0.004, 0, BOX, 0.015, 0));

    /* 25 ms a picture. */
    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < steps; k++) {
            for (b = 0; b < 2; b++) world->force[b] = fsi_v3_scale(world->body[b]->velocity, (fsi_real)-0.3);
            ex_check(&app, fsi_membrane_step(m, (fsi_real)0.005));
            app.steps++;
            app.sim_seconds += 0.005;
            apart = (double)fsi_v3_norm(fsi_v3_sub(world->body[1]->pose.position, world->body[0]->pose.position));
            if (met < 0 && apart < 2.02 * RADIUS) met = app.sim_seconds;
        }
        if (app.images) {
            ex_draw_flat_liquid(&scene, m->front, 0x7fb8de, 0x1f5f8f);
            for (b = 0; b < 2; b++) ex_draw_spheres(&scene, &world->body[b]->pose.position, 1, RADIUS, NULL, 0xc98f3c);
            ex_save_scene(&app, &scene, frame, "%.2f s", app.sim_seconds);
        }
        ex_progress(&app, frame + 1);
    }
    ex_figure(&app, "apart", "%.2f", 1000 * apart);
    ex_figure(&app, "met", "%.2f", met);
    ex_figure(&app, "deep", "%.2f", 1000 * (LEVEL - (double)world->body[0]->pose.position.y));
    ex_figure(&app, "volume_error", "%.2g", m->stats.volume / volume - 1);
    app.hash = fsi_membrane_hash(m);
    ex_scene_end(&scene);
    ex_mesh_free(&pool);
    fsi_membrane_destroy(m);
    fsi_rigid_destroy(world);
    return ex_end(&app);
}
