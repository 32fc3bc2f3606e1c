/* cc -O3 -I. examples/floating_crate.c -lm -o floating_crate && ./floating_crate
   SPDX-License-Identifier: MIT

   Three crates of 300, 700 and 2000 kg/m^3 fall into a tank. Each is a COUPLED fsi_body: every step the liquid and the
   crates are solved together, and the owner, this program, integrates the poses. Two come to float, one sinks and comes
   to rest on the floor, which pushes back with springs at its corners. A cube between a fifth and four fifths of the
   water's density floats on an edge or a corner, not upright. share_300= and share_700= are the shares of the floating
   ones below the mean water level, over those that their weight asks for, in the last quarter of the run. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_sph.h"
#include "kit/sph_tally.h"
#include "kit/sph_crates.h"

#define FRAME 0.05  /* seconds between two pictures */
#define SIDE 0.24   /* of a crate [m] */
#define LENGTH 1.5  /* of the tank */
#define WIDTH 0.48
#define LEVEL 0.42  /* of the water at first */
#define CRATES 3

static const double density[CRATES] = { 300, 700, 2000 };
static const uint32_t color[CRATES] = { 0xe3b26b, 0xb9703a, 0x6d5a50 };

/* It is added while mesh and body stand at the origin; then the body is taken above the water, somewhat tilted. */
static void add_crate(ex_app *app, fsi_sph *s, ex_crate *c, int k)
{
    ex_crate_add(app, s, c, SIDE, density[k], color[k]);
    c->body.pose.position = fsi_v3(LENGTH * (0.2 + 0.3 * k), WIDTH / 2, LEVEL + 0.75 * SIDE);
    c->body.pose.orientation = fsi_quat_from_axis_angle(fsi_v3(1, 1, 0), 0.3 - 0.2 * k);
    ex_check(app, fsi_sph_teleport_obstacle(s, c->id));
}

/* Gravity, and springs with dampers where a corner is below z = rest. */
static void push_crate(ex_crate *c, double rest)
{
    const fsi_vec3 middle = c->body.pose.position;
    const double mass = c->body.mass, stiff = mass * 4000, damp = mass * 60;
    int v;
    c->body.force = fsi_v3(0, 0, -9.81 * mass);
    c->body.torque = fsi_v3(0, 0, 0);
    for (v = 0; v < c->mesh->vertex_count; v++) {
        fsi_vec3 x = fsi_pose_point(c->body.pose, c->mesh->vertices[v]), f;
        fsi_vec3 u = fsi_rigid_velocity(c->body.velocity, c->body.angular_velocity, middle, x);
        if (x.z >= rest) continue;
        f = fsi_v3(-damp * u.x / 4, -damp * u.y / 4, fmax(0, stiff * (rest - x.z) - damp * u.z) / 4);
        c->body.force = fsi_v3_add(c->body.force, f);
        c->body.torque = fsi_v3_add(c->body.torque, fsi_v3_cross(fsi_v3_sub(x, middle), f));
    }
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_tally tally = { 0 };
    ex_crate_shares shares = { { 0 }, 0 };
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_surface *surface;
    fsi_sph *s;
    ex_crate crates[CRATES];
    int k, frame;

    ex_init(&app, "floating_crate", "Three crates of different density fall into a tank.");
    app.res = 8;
    app.res_help = "particles along a side of a crate: dx = 0.24 m / res";
    app.frames = 60;
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    desc.context = &app.context;
    desc.spacing = SIDE / app.res;
    desc.depth = 0.6;
    desc.domain = ex_box3(0, 0, 0, LENGTH, WIDTH, 1.5); /* what splashes up comes down again */
    ex_check(&app, fsi_sph_create(&s, &desc));
    ex_check(&app, fsi_sph_fill_box(s, ex_box3(0, 0, 0, LENGTH, WIDTH, LEVEL), fsi_v3(0, 0, 0), NULL));
    for (k = 0; k < CRATES; k++) add_crate(&app, s, &crates[k], k);
    surface = ex_particle_surface(&app, desc.spacing);
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3(LENGTH, WIDTH, 0.75), 25, 18);

    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            for (k = 0; k < CRATES; k++) push_crate(&crates[k], desc.spacing / 2);
            ex_check(&app, fsi_sph_step(s, FRAME / 10));
            for (k = 0; k < CRATES; k++) fsi_body_integrate(&crates[k].body, FRAME / 10);
            ex_tally_step(&app, &tally, s, desc.domain, 1);
            if (4 * frame >= 3 * app.frames) ex_crates_watch(&shares, s, crates, CRATES, LENGTH * WIDTH);
        }
        if (app.images) ex_crates_picture(&app, &scene, surface, s, crates, CRATES, frame);
        ex_write_particles(&app, "water", frame, s->position, s->velocity, s->count);
        ex_progress(&app, frame + 1);
    }

    ex_crates_figures(&app, &shares, crates, 2);
    ex_figure(&app, "sunk_height", "%.4f", crates[2].body.pose.position.z);
    ex_tally_figures(&app, &tally, s);
    ex_scene_end(&scene);
    fsi_surface_destroy(surface);
    fsi_sph_destroy(s);
    for (k = 0; k < CRATES; k++) fsi_mesh_destroy(crates[k].mesh);
    return ex_end(&app);
}
