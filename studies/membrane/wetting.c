/* cc -O3 -I. studies/membrane/wetting.c -lm -o wetting && ./wetting
   SPDX-License-Identifier: MIT

   Two drops of water of 4 mm fall onto two plates: on one, with a contact angle of 40 degrees, the drop spreads, on the
   other, with 140, it beads. wide= of the wetted parts [mm], high= of the drops [mm]; volume_error= of the water. */
#define FSI_IMPLEMENTATION
#include "../../fsi_membrane.h"
#include "../../examples/kit/kit.h"
#include "../../examples/kit/rigid_look.h"

#define BOX_X 0.024 /* [m] */
#define BOX_Y 0.012
#define BOX_Z 0.0075
#define TOP 0.0015   /* of the plates */
#define RADIUS 0.002 /* of a drop */

/* A plate that fills most of one half of the box. */
static int add_plate(ex_app *app, fsi_rigid *world, double x)
{
    const fsi_rigid_shape box = fsi_rigid_box(fsi_v3((fsi_real)0.0056, (fsi_real)0.0057, (fsi_real)0.0006));
    fsi_rigid_body_desc body = fsi_rigid_default_body_desc();
    int id;
    body.kind = FSI_RIGID_STATIC;
    body.shapes = &box;
    body.shape_count = 1;
    body.pose.position = fsi_v3((fsi_real)x, (fsi_real)(BOX_Y / 2), (fsi_real)(TOP - 0.0006));
    ex_check(app, fsi_rigid_add_body(world, &body, &id));
    return id;
}

/* How wide the part is that lies on the plate on one side, and how high the drop there [m]. */
static void measure(const fsi_membrane *m, int right, double *wide, double *high)
{
    const fsi_front *f = m->front;
    double low = BOX_X, most = 0;
    int i;
    *high = 0;
    for (i = 0; i < f->vertex_count; i++) {
        const double x = (double)f->position[i].x;
        if ((x > BOX_X / 2) != right) continue;
        *high = fmax(*high, (double)f->position[i].z - TOP);
        if (!(f->flags[i] & (uint32_t)FSI_FRONT_FIXED)) continue;
        low = fmin(low, x);
        most = fmax(most, x);
    }
    *wide = most > low ? most - low : 0;
}

int main(int argc, char **argv)
{
    static const fsi_real angle[2] = { 40, 140 };
    ex_app app;
    ex_scene scene;
    ex_skin plate[2];
    ex_mesh drops = ex_mesh_make(0, 0);
    fsi_rigid_desc rigid = fsi_rigid_default_desc();
    fsi_membrane_desc desc = fsi_membrane_default_desc();
    fsi_rigid *world;
    fsi_membrane *m;
    double volume, wide[2], high[2];
    int frame, k, i, steps = 2;
    ex_init(&app, "wetting", "Of two drops one spreads on its plate, the other beads.");
    app.res = 48;
    app.res_help = "cells along the longer edge of the box of 24 mm";
    app.frames = 60;
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    /* Plates, and drops just above them. */
    desc.context = rigid.context = &app.context;
    ex_check(&app, fsi_rigid_create(&world, &rigid));
    for (i = 0; i < 2; i++) {
        const double x = BOX_X * (0.25 + 0.5 * i);
        ex_mesh drop = ex_sphere(fsi_v3((fsi_real)x, (fsi_real)(BOX_Y / 2), (fsi_real)(TOP + RADIUS + 0.0002)),
            (fsi_real)RADIUS, 3);
        plate[i] = ex_skin_of(&app, world, add_plate(&app, world, x));
        ex_mesh_add(&drops, &drop);
        ex_mesh_free(&drop);
    }
    desc.dx = (fsi_real)(BOX_X / app.res);
    desc.n[0] = app.res;
    desc.n[1] = (int)ceil(BOX_Y / (double)desc.dx - 1e-6);
    desc.n[2] = (int)ceil(BOX_Z / (double)desc.dx - 1e-6);
    desc.vertices = drops.vertices;
    desc.vertex_count = drops.vertex_count;
    desc.elements = drops.triangles;
    desc.element_count = drops.triangle_count;
    desc.world = world;
    desc.body_angle = angle;
    ex_check(&app, fsi_membrane_create(&m, &desc));
    volume = m->stats.volume;
    scene = ex_scene_of_box(&app, fsi_v3((fsi_real)0.001, (fsi_real)0.001, 0),
        fsi_v3((fsi_real)(BOX_X - 0.001), (fsi_real)(BOX_Y - 0.001), (fsi_real)0.005), 15, 20);

    /* 4 ms a picture. */
    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < steps; k++) {
            ex_check(&app, fsi_membrane_step(m, (fsi_real)0.002));
            app.steps++;
            app.sim_seconds += 0.002;
        }
        if (app.images) {
            ex_draw_surface(&scene, m->front->position, NULL, m->front->vertex_count, m->front->elements,
                m->front->element_count);
            for (i = 0; i < 2; i++) ex_draw_skin(&scene, world, &plate[i], i ? 0xb0a090 : 0x90a0b0);
            ex_save_scene(&app, &scene, frame, "%.0f ms", 1000 * app.sim_seconds);
        }
        ex_progress(&app, frame + 1);
    }
    for (i = 0; i < 2; i++) measure(m, i, &wide[i], &high[i]);
    ex_figure(&app, "wide_40", "%.2f", 1000 * wide[0]);
    ex_figure(&app, "wide_140", "%.2f", 1000 * wide[1]);
    ex_figure(&app, "high_40", "%.2f", 1000 * high[0]);
    ex_figure(&app, "high_140", "%.2f", 1000 * high[1]);
    ex_figure(&app, "volume_error", "%.2g", m->stats.volume / volume - 1);
    app.hash = fsi_membrane_hash(m);
    for (i = 0; i < 2; i++) ex_skin_free(&plate[i]);
    ex_scene_end(&scene);
    ex_mesh_free(&drops);
    fsi_membrane_destroy(m);
    fsi_rigid_destroy(world);
    return ex_end(&app);
}
