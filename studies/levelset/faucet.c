/* cc -O3 -I. studies/levelset/faucet.c -lm -o faucet && ./faucet
   SPDX-License-Identifier: MIT

   A thin stream of water, 2 mm wide, leaves a faucet, and surface tension takes it apart (Plateau 1873, Rayleigh 1878):
   it swells and necks, and lets go of drops, which swing on their way down and leave the box by its open bottom.
   Nothing disturbs the stream but the flow itself. drops= counts how often a beam of light above the bottom was broken,
   components= the most pieces there were at once, emitted= what came out of the faucet [ml], break_mm= the shortest
   that the stream was after its first drop had passed the beam. volume_error= is the largest |volume/target - 1| of any
   step (of the first one, as long as all there is is what fills the nozzle), mean_error= the mean, balance= what
   targets are off what came in less what left and vanished, over what came in. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_levelset.h"
#include "../../examples/kit/levelset_tally.h"

#define WIDTH 0.008   /* of the box [m] */
#define HEIGHT 0.056  /* [m] */
#define RADIUS 0.001  /* of the stream [m] */
#define BEAM 0.008    /* height at which drops are counted [m] */
#define FRAME 0.0075   /* seconds between two pictures */

static fsi_levelset *make_box(ex_app *app, double tension)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    const double dx = 2 * RADIUS / app->res;
    fsi_levelset *s;
    d.context = &app->context;
    d.dx = (fsi_real)dx;
    d.n[0] = d.n[1] = (int)(WIDTH / dx + 0.5);
    d.n[2] = (int)(HEIGHT / dx + 0.5);
    d.surface_tension = (fsi_real)tension;
    d.open_side[4] = 1;
    ex_check(app, fsi_levelset_create(&s, &d));
    return s;
}

static int add_faucet(ex_app *app, fsi_levelset *s, double speed)
{
    fsi_levelset_emitter_desc d = fsi_levelset_default_emitter_desc();
    int id;
    d.center = fsi_v3((fsi_real)(WIDTH / 2), (fsi_real)(WIDTH / 2), (fsi_real)HEIGHT - 2 * s->desc.dx);
    d.direction = fsi_v3(0, 0, -1);
    d.radius = (fsi_real)RADIUS;
    d.speed = (fsi_real)speed;
    ex_check(app, fsi_levelset_add_emitter(s, &d, &id));
    return id;
}

/* Length of the stream that hangs at the faucet: the component that is highest. */
static double stream_length(const fsi_levelset *s)
{
    double top = -1, bottom = 0;
    int c;
    for (c = 0; c < s->component_count; c++) {
        const fsi_box3 box = s->component[c].shape.box;
        if ((double)box.hi.z <= top) continue;
        top = (double)box.hi.z;
        bottom = (double)box.lo.z;
    }
    return HEIGHT - bottom;
}

/* Whether liquid breaks the beam of light along x across the middle. */
static int in_beam(const fsi_levelset *s)
{
    const double dx = (double)s->desc.dx;
    double x;
    for (x = dx / 2; x < WIDTH; x += dx)
        if (fsi_levelset_phi_at(s, fsi_v3((fsi_real)x, (fsi_real)(WIDTH / 2), (fsi_real)BEAM)) < 0) return 1;
    return 0;
}

static void draw(ex_app *app, ex_scene *scene, fsi_grid_surface *surface, const fsi_levelset *s, int frame)
{
    ex_draw_liquid(app, scene, surface, s);
    ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    ex_save_scene(app, scene, frame, "%.0f ms", 1000 * s->time);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_levelset *s;
    fsi_grid_surface *surface;
    fsi_box3 view;
    double speed = 0.45, tension = 0.0728, volume_error = 0, mean_error = 0, shortest = HEIGHT, emitted;
    int components = 0, drops = 0, dark = 0, faucet, frame;

    ex_init(&app, "faucet", "A thin stream breaks into drops.");
    app.res = 4;
    app.res_help = "cells across the stream";
    app.frames = 32;
    ex_real(&app, "speed", &speed, 0.01, 3, "of the stream as it leaves the faucet [m/s]");
    ex_real(&app, "tension", &tension, 0, 1, "surface tension [N/m]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;

    s = make_box(&app, tension);
    faucet = add_faucet(&app, s, speed);
    ex_check(&app, fsi_grid_surface_create(&surface, &app.context));
    view.lo = fsi_v3(0, 0, 0);
    view.hi = fsi_v3((fsi_real)WIDTH, (fsi_real)WIDTH, (fsi_real)HEIGHT);
    scene = ex_scene_begin(&app);
    scene.width = 360;
    scene.height = 840;
    scene.absorb = fsi_v3(500, 120, 40);
    ex_look_at_box(&scene, view, 25, 8);

    for (frame = 0; frame < app.frames; frame++) {
        const double end = (frame + 1) * FRAME;
        while (s->time < end - 1e-9) {
            ex_check(&app, fsi_levelset_step(s, (fsi_real)fmin((double)fsi_levelset_suggest_dt(s), end - s->time)));
            app.steps += s->stats.substeps;
            drops += !dark && in_beam(s);
            dark = in_beam(s);
            volume_error = fmax(volume_error, fabs(s->stats.volume_error));
            mean_error += fabs(s->stats.volume_error) * s->stats.substeps;
            if (s->component_count > components) components = s->component_count;
            if (drops > 0) shortest = fmin(shortest, stream_length(s));
        }
        app.sim_seconds = s->time;
        if (app.images) draw(&app, &scene, surface, s, frame);
        ex_progress(&app, frame + 1);
    }

    app.hash = fsi_levelset_hash(s);
    ex_check(&app, fsi_levelset_emitter_total(s, faucet, &emitted));
    ex_figure(&app, "volume_error", "%.2e", volume_error);
    ex_figure(&app, "mean_error", "%.2e", mean_error / (double)app.steps);
    ex_figure(&app, "balance", "%.1e",
              (s->stats.target + s->stats.lost_volume + s->stats.left_volume - emitted) / emitted);
    ex_figure(&app, "emitted", "%.4f", 1e6 * emitted);
    ex_figure(&app, "lost", "%.1e", s->stats.lost_volume / emitted);
    ex_figure(&app, "components", "%.0f", components);
    ex_figure(&app, "drops", "%.0f", drops);
    ex_figure(&app, "break_mm", "%.1f", 1000 * shortest);
    fsi_grid_surface_destroy(surface);
    fsi_levelset_destroy(s);
    ex_scene_end(&scene);
    return ex_end(&app);
}
