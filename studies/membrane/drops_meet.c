/* cc -O3 -I. studies/membrane/drops_meet.c -lm -o drops_meet && ./drops_meet
   SPDX-License-Identifier: MIT

   Two drops of water of 4 mm, without gravity, fly past each other's middle at 0.2 m/s, merge, and go on turning and
   swinging as one. volume_error= is that of all liquid; energy= what is left of the energy of motion and surface. */
#define FSI_IMPLEMENTATION
#include "../../fsi_membrane.h"
#include "../../examples/kit/kit.h"

static fsi_vec3 approach(void *user, fsi_vec3 x)
{
    (void)user;
    return fsi_v3((fsi_real)((double)x.x < 0.0064 ? 0.1 : -0.1), 0, 0);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_mesh drops = ex_mesh_make(0, 0);
    fsi_membrane_desc desc = fsi_membrane_default_desc();
    fsi_membrane *m;
    double volume, energy;
    int frame, k, i, steps = 4;
    ex_init(&app, "drops_meet", "Two drops merge off their middles.");
    app.res = 28;
    app.res_help = "cells along an edge of the box of 12.8 mm";
    app.frames = 24;
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    /* The drops. */
    for (i = 0; i < 2; i++) {
        ex_mesh drop = ex_sphere(fsi_v3((fsi_real)(i ? 0.0087 : 0.0041), (fsi_real)(i ? 0.0072 : 0.0056),
            (fsi_real)0.00641), (fsi_real)0.002, 3);
        ex_mesh_add(&drops, &drop);
        ex_mesh_free(&drop);
    }
    desc.context = &app.context;
    desc.n[0] = desc.n[1] = desc.n[2] = app.res;
    desc.dx = (fsi_real)(0.0128 / app.res);
    desc.gravity = fsi_v3(0, 0, 0);
    desc.vertices = drops.vertices;
    desc.vertex_count = drops.vertex_count;
    desc.elements = drops.triangles;
    desc.element_count = drops.triangle_count;
    desc.topology = 1;
    ex_check(&app, fsi_membrane_create(&m, &desc));
    ex_check(&app, fsi_membrane_set_velocity(m, approach, NULL));
    ex_check(&app, fsi_membrane_step(m, 0));
    volume = m->stats.volume;
    energy = m->stats.kinetic_energy + m->stats.surface_energy;
    scene = ex_scene_of_box(&app, fsi_v3((fsi_real)0.0015, (fsi_real)0.0025, (fsi_real)0.004),
        fsi_v3((fsi_real)0.0113, (fsi_real)0.0103, (fsi_real)0.0088), 20, 60);

    /* 2 ms a picture. */
    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < steps; k++) {
            ex_check(&app, fsi_membrane_step(m, (fsi_real)0.0005));
            app.steps++;
            app.sim_seconds += 0.0005;
        }
        if (app.images) {
            ex_draw_mesh(&scene, m->front->position, NULL, m->front->vertex_count, m->front->elements,
                m->front->element_count, 0x2277cc);
            ex_save_scene(&app, &scene, frame, "%.0f ms", 1000 * app.sim_seconds);
        }
        ex_progress(&app, frame + 1);
    }
    ex_figure(&app, "pieces", "%.0f", m->front->piece_count);
    ex_figure(&app, "volume_error", "%.2g", m->stats.volume / volume - 1);
    ex_figure(&app, "energy", "%.3f", (m->stats.kinetic_energy + m->stats.surface_energy) / energy);
    app.hash = fsi_membrane_hash(m);
    ex_scene_end(&scene);
    ex_mesh_free(&drops);
    fsi_membrane_destroy(m);
    return ex_end(&app);
}
