/* cc -O3 -I. examples/dam_break.c -lm -o dam_break && ./dam_break
   SPDX-License-Identifier: MIT

   A column of water collapses and breaks over a box: the experiment of the Maritime Research Institute Netherlands
   (Kleefsman et al. 2005, J. Comput. Phys. 206, 363; SPHERIC benchmark 2). Pictures show the water; plots compare two
   level gauges and eight pressure gauges with what was measured. --full is 43,000 particles, 5 seconds.

   The tank and the gauges: marin.h. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_sph.h"
#include "kit/marin.h"
#include "kit/sph_tally.h"

#define FRAME 0.04  /* seconds between two pictures */

/* Pressures dx/2 in front of the box at every step; levels when a sample is due. */
static void read_gauges(marin_record *r, const fsi_sph *s)
{
    const double dx = s->desc.spacing;
    double level[4];
    int k;
    for (k = 0; k < 8; k++) r->sum[k] += fsi_sph_pressure_at(s, marin_pressure_point(k, dx / 2));
    r->steps++;
    if (s->time < r->count * MARIN_SAMPLE - 1e-9) return;
    for (k = 0; k < 4; k++) level[k] = marin_level_of_particles(s->position, s->count, dx, marin_gauge_x[k]);
    marin_read(r, s->time, level);
}

/* The domain is higher than the tank: what splashes up comes down again. */
static fsi_sph *make_water(ex_app *app, const fsi_mesh *obstacle, int substeps)
{
    fsi_sph_desc desc = fsi_sph_default_desc();
    fsi_sph *s;
    double dx = MARIN_DEPTH / app->res, wide = dx * floor(1.228 / dx + 0.5);
    desc.context = &app->context;
    desc.spacing = dx;
    desc.depth = MARIN_DEPTH;
    desc.domain = ex_box3(0, 0, 0, 3.22, 1, 2 * MARIN_TOP);
    if (!substeps) desc.max_substeps = 1;
    ex_check(app, fsi_sph_create(&s, &desc));
    ex_check(app, fsi_sph_add_mesh(s, obstacle, NULL));
    ex_check(app, fsi_sph_fill_box(s, ex_box3(3.22 - wide, 0, 0, 3.22, 1, MARIN_DEPTH), fsi_v3(0, 0, 0), NULL));
    return s;
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    ex_tally tally = { 0 };
    marin_record gauges;
    fsi_mesh *obstacle;
    fsi_sph *s;
    fsi_surface *surface;
    double dt = 0;
    int full = 0, frame;

    ex_init(&app, "dam_break", "Water breaks over a box, compared with the MARIN experiment.");
    app.res = 11;
    app.res_help = "particles over the depth of the water: dx = 0.55 m / res";
    app.frames = 45;
    ex_real(&app, "dt", &dt, 0, 20, "time step without substeps [ms], 0: chosen by the simulator");
    ex_flag(&app, "full", &full, "dx = 25 mm to 5 s: as --res 22 --frames 125");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (full) app.res = 22, app.frames = 125;

    obstacle = marin_obstacle(&app);
    s = make_water(&app, obstacle, !(dt > 0));
    surface = ex_particle_surface(&app, s->desc.spacing);
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3(3.22, 1, MARIN_TOP), 24, 18);
    gauges = marin_begin(app.frames * FRAME);

    read_gauges(&gauges, s);
    for (frame = 0; frame < app.frames; frame++) {
        while (s->time < (frame + 1) * FRAME - 1e-9) {
            ex_check(&app, fsi_sph_step(s, dt > 0 ? dt / 1000 : MARIN_SAMPLE / 2));
            ex_tally_step(&app, &tally, s, s->desc.domain, 1);
            read_gauges(&gauges, s);
        }
        if (app.images) {
            ex_draw_particles(&app, &scene, surface, s->position, s->count);
            marin_picture(&app, &scene, obstacle, s->time, frame);
        }
        ex_write_particles(&app, "water", frame, s->position, s->velocity, s->count);
        ex_progress(&app, frame + 1);
    }

    ex_tally_figures(&app, &tally, s);
    marin_end(&app, &gauges);
    ex_scene_end(&scene);
    fsi_surface_destroy(surface);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(obstacle);
    return ex_end(&app);
}
