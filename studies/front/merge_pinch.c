/* cc -O3 -I. studies/front/merge_pinch.c -lm -o merge_pinch && ./merge_pinch
   SPDX-License-Identifier: MIT

   What topology does, three times in one surface: two drops meet and merge (left), a drop is drawn out until its neck
   pinches off (middle), a sheet is pressed until it tears, and a ring is left (right). Meanwhile a flow by mean
   curvature that keeps volumes makes them round, as surface tension would. Edges are 1/--res. merges=, pinches=,
   holes=: what happened; places= were resampled, of which whole= took whole pieces, and failed= were left as they were;
   volume_error= is the largest change of all volume in a step that the motion did not make. merge_pinch_0000.png ...
   show it. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/front_tally.h"

/* Flow at a place: the drops approach each other, the neck is drawn out, the sheet pressed. */
static void flow(const fsi_vec3 *p, double t, double *v)
{
    const double x = (double)p->x, y = (double)p->y, z = (double)p->z;
    v[0] = v[1] = v[2] = 0;
    if (x < -1) v[1] = t < 1 ? (y < 0 ? 0.3 : -0.3) : 0;
    else if (x < 1) {
        const double waist = exp(-10 * y * y), on = t < 1.2;
        v[0] = -1.6 * on * waist * x;
        v[1] = 0.5 * on * y;
        v[2] = -1.6 * on * waist * z;
    } else {
        const double middle = exp(-((x - 2) * (x - 2) + y * y) / 0.15), on = t < 1.2;
        v[2] = -10 * on * middle * z;
    }
}

static fsi_front *make_front(ex_app *app, double length)
{
    const int level = (int)ceil(log(app->res * 0.6) / log(2.0));
    ex_mesh all = ex_sphere(fsi_v3(-2, (fsi_real)-0.55, 0), 0.4, level);
    fsi_front *f;
    int k, i;
    for (k = 0; k < 3; k++) {
        ex_mesh m = ex_sphere(fsi_v3(0, 0, 0), 1, level);
        const double size[3][3] = { { 0.4, 0.4, 0.4 }, { 0.3, 0.55, 0.3 }, { 0.85, 0.85, 0.15 } };
        const double at[3][3] = { { -2, 0.55, 0.03 }, { 0, 0, 0 }, { 2, 0, 0 } };
        for (i = 0; i < m.vertex_count; i++)
            m.vertices[i] = fsi_v3((fsi_real)(at[k][0] + size[k][0] * (double)m.vertices[i].x),
                (fsi_real)(at[k][1] + size[k][1] * (double)m.vertices[i].y),
                (fsi_real)(at[k][2] + size[k][2] * (double)m.vertices[i].z));
        ex_mesh_add(&all, &m);
        ex_mesh_free(&m);
    }
    f = ex_front_make(app, 3, all.vertices, all.vertex_count, all.triangles, all.triangle_count, length);
    ex_mesh_free(&all);
    f->desc.topology = 1;
    ex_check(app, fsi_front_step(f, 0));
    return f;
}

/* Of all pieces, as they would be after a step of dt. */
static double volume_then(const fsi_front *f, double dt)
{
    double sum = 0;
    int t;
    for (t = 0; t < f->element_count; t++) {
        const int *c = f->elements + 3 * t;
        fsi_vec3 p[3];
        int i;
        for (i = 0; i < 3; i++) p[i] = fsi_v3_madd(f->position[c[i]], (fsi_real)dt, f->velocity[c[i]]);
        sum += (double)fsi_v3_dot(p[0], fsi_v3_cross(p[1], p[2])) / 6;
    }
    return sum;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_front *f;
    double length, dt, end = 2, worst = 0, rate = 0.02, v[3];
    int steps, k, i, frame = 0, merges = 0, pinches = 0, places = 0, whole = 0, failed = 0, holes = 0;
    ex_init(&app, "merge_pinch", "Drops merge, a neck pinches off, a sheet tears.");
    app.frames = 16;
    app.res = 25;
    app.res_help = "edges of triangles in a length of 1";
    ex_real(&app, "rate", &rate, 0, 0.1, "of the flow by mean curvature");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    length = 1.0 / app.res;
    f = make_front(&app, length);
    scene = ex_scene_of_box(&app, fsi_v3((fsi_real)-2.5, (fsi_real)-1.1, (fsi_real)-0.4),
        fsi_v3((fsi_real)2.7, (fsi_real)1.1, (fsi_real)0.4), 20, 50);
    steps = (int)ceil(end / fmin(0.5 * length, rate > 0 ? 0.05 * length * length / rate : 1));
    dt = end / steps;
    for (k = 0; k < steps; k++) {
        double volume;
        for (i = 0; i < f->vertex_count; i++) {
            flow(&f->position[i], k * dt, v);
            f->velocity[i] = fsi_v3((fsi_real)v[0], (fsi_real)v[1], (fsi_real)v[2]);
        }
        ex_front_smoothing(&app, f, rate, 1);
        volume = volume_then(f, dt) + f->stats.owed;
        ex_check(&app, fsi_front_step(f, (fsi_real)dt));
        worst = fmax(worst, fabs((f->stats.volume + f->stats.owed + f->stats.removed_volume) / volume - 1));
        merges += f->stats.merges;
        pinches += f->stats.pinches;
        places += f->stats.places;
        whole += f->stats.whole_places;
        failed += f->stats.failed_places;
        i = f->piece_count - (f->vertex_count - f->element_count / 2) / 2; /* Euler: 2 a piece, less 2 a hole */
        holes = i > holes ? i : holes;
        app.steps++;
        app.sim_seconds = (k + 1) * dt;
        if ((k + 1) * app.frames / steps == frame) continue;
        if (app.images) {
            ex_draw_mesh(&scene, f->position, NULL, f->vertex_count, f->elements, f->element_count, 0x2277cc);
            ex_save_scene(&app, &scene, frame, "%.2f", app.sim_seconds);
        }
        ex_progress(&app, ++frame);
    }
    ex_scene_end(&scene);
    ex_figure(&app, "merges", "%.0f", merges);
    ex_figure(&app, "pinches", "%.0f", pinches);
    ex_figure(&app, "pieces", "%.0f", f->piece_count);
    ex_figure(&app, "holes", "%.0f", holes);
    ex_figure(&app, "places", "%.0f", places);
    ex_figure(&app, "whole", "%.0f", whole);
    ex_figure(&app, "failed", "%.0f", failed);
    ex_figure(&app, "volume_error", "%.2g", worst);
    ex_figure(&app, "triangles", "%.0f", f->element_count);
    app.hash = fsi_front_hash(f);
    fsi_front_destroy(f);
    return ex_end(&app);
}
