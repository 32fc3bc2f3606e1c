/* cc -O3 -I. studies/elastic/jelly_drop.c -lm -o jelly_drop && ./jelly_drop
   SPDX-License-Identifier: MIT

   Twelve bodies, puddings, rings, stars and balls, from 40 to 400 kPa, tumble down a flight of stairs; most heap up at
   its foot. The stairs are a closed mesh; beside them and below are planes. volume_least= is of the worst body at the
   worst time over its volume at rest; deepest_mm= the deepest that any point was in a body or an obstacle; kinetic= the
   energy at the end [J]; still= the fastest centre at the end [m/s]. elastic_look.h explains the other figures. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "../../examples/kit/shapes.h"
#include "fsi_elastic.h"
#include "../../examples/kit/elastic_look.h"

#define FRAME (1.0 / 30)
#define STAIRS 5
#define RISE 0.17
#define RUN 0.22
#define WIDTH 0.95
#define BEYOND 0.2 /* stairs end behind the planes: flush ends would hold what was pulled through a plane */

enum { BODIES = 12 };
static const uint32_t color[6] = { 0xc8432f, 0xe3a62f, 0x3f8f5f, 0x3576b5, 0x7a4fa3, 0xd67a94 };

/* Stairs that lead down along x, from STAIRS * RISE to the floor, sunk a little into it. */
static fsi_mesh *make_stairs(ex_app *app)
{
    shape s = shape_empty();
    outline o = outline_empty();
    fsi_pose pose;
    fsi_mesh *mesh;
    int k;
    outline_add(&o, -2 * RUN, -0.1);
    outline_add(&o, STAIRS * RUN, -0.1);
    for (k = 0; k < STAIRS; k++) {
        outline_add(&o, (STAIRS - k) * RUN, k * RISE);
        outline_add(&o, (STAIRS - k) * RUN, (k + 1) * RISE);
    }
    outline_add(&o, -2 * RUN, STAIRS * RISE);
    shape_extrude(&s, o.xy, o.n, -WIDTH / 2 - BEYOND, WIDTH / 2 + BEYOND);
    pose.position = fsi_v3(0, 0, 0);
    pose.orientation = fsi_quat_from_axis_angle(fsi_v3(1, 0, 0), FSI_PI / 2);
    shape_transform(&s, 0, pose);
    mesh = shape_mesh(app, &s, FSI_MESH_CLOSED, 0);
    outline_free(&o);
    shape_free(&s);
    return mesh;
}

/* Body k of the dozen: four shapes, three sizes; dropped in threes over the top of the stairs. */
static ex_jelly add_body(ex_app *app, fsi_elastic *s, int k, int handles)
{
    const double size = 0.95 + 0.1 * (k / 4), column = k % 3 - 1, row = k / 3;
    fsi_elastic_body_desc d = fsi_elastic_default_body_desc();
    fsi_elastic_material m = fsi_elastic_default_material();
    m.young = 4e4 * pow(10, (k * 5 % BODIES) / (BODIES - 1.0));
    d.materials = &m;
    d.material_count = 1;
    d.friction = 0.3;
    d.handles = handles;
    d.resolution = app->res;
    d.contact_points = 200;
    d.position = fsi_v3(0.3 - 0.3 * row, 0.28 * column, STAIRS * RISE + 0.12 + 0.08 * row);
    d.orientation = fsi_quat_from_axis_angle(fsi_v3(0.3 * column, 1, 0.2), 0.4 * k);
    d.velocity = fsi_v3(1.2 + 0.4 * row, -0.1 * column, 0);
    return ex_jelly_of(app, s, d, ex_jelly_shape(k % 4, size), color[k % 6]);
}

static void add_plane(ex_app *app, fsi_elastic *s, fsi_vec3 point, fsi_vec3 normal)
{
    fsi_elastic_shape_desc d = fsi_elastic_default_shape_desc();
    d.point = point;
    d.normal = normal;
    ex_check(app, fsi_elastic_add_shape(s, &d, NULL));
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_elastic_tally tally = { 0 };
    ex_jelly jelly[BODIES];
    fsi_elastic_desc desc = fsi_elastic_default_desc();
    fsi_elastic *s;
    fsi_mesh *stairs;
    double fastest = 0;
    int frame, k, steps = 4, handles = 60;

    ex_init(&app, "jelly_drop", "Twelve bodies of jelly tumble down a flight of stairs.");
    app.res = 14;
    app.res_help = "cells along each body";
    app.frames = 120;
    ex_int(&app, "handles", &handles, 0, 1000, "of each body; 0: all vertices are free");
    ex_int(&app, "steps", &steps, 1, 1000, "a frame of 1/30 s");
    ex_elastic_options(&app, &tally);
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    desc.context = &app.context;
    desc.tolerance = 1e-4;
    ex_check(&app, fsi_elastic_create(&s, &desc));
    stairs = make_stairs(&app);
    ex_check(&app, fsi_elastic_add_mesh(s, stairs, NULL));
    add_plane(&app, s, fsi_v3(0, 0, 0), fsi_v3(0, 0, 1));
    add_plane(&app, s, fsi_v3(0, -WIDTH / 2, 0), fsi_v3(0, 1, 0));
    add_plane(&app, s, fsi_v3(0, WIDTH / 2, 0), fsi_v3(0, -1, 0));
    add_plane(&app, s, fsi_v3(STAIRS * RUN + 0.7, 0, 0), fsi_v3(-1, 0, 0));
    add_plane(&app, s, fsi_v3(-0.8, 0, 0), fsi_v3(1, 0, 0)); /* what is thrown back would roll away for ever */
    for (k = 0; k < BODIES; k++) jelly[k] = add_body(&app, s, k, handles);
    scene = ex_scene_of_box(&app, fsi_v3(-0.3, -0.4, 0), fsi_v3(1.9, 0.4, 1.1), 28, 16);
    scene.ground_height = 0;

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < steps; k++) ex_elastic_step(&app, &tally, s, FRAME / steps);
        if (app.images) {
            ex_draw_solid(&scene, stairs, 0xb9bdc4);
            for (k = 0; k < BODIES; k++) ex_draw_jelly(&app, &scene, s, &jelly[k]);
            ex_save_scene(&app, &scene, frame, "%.2f s", s->time);
        }
        ex_progress(&app, frame + 1);
    }

    for (k = 0; k < BODIES; k++) fastest = fmax(fastest, (double)fsi_v3_norm(s->bodies[k].velocity));
    ex_figure(&app, "still", "%.3f", fastest);
    ex_elastic_figures(&app, &tally, s);
    for (k = 0; k < BODIES; k++) ex_jelly_free(&jelly[k]);
    ex_scene_end(&scene);
    fsi_elastic_destroy(s);
    fsi_mesh_destroy(stairs);
    return ex_end(&app);
}
