/* cc -O3 -I. examples/floating_spheres.c -lm -o floating_spheres && ./floating_spheres
   SPDX-License-Identifier: MIT

   Twelve balls of 100 to 900 kg/m^3 fall into a tank, push each other about and come to float. A world of fsi_rigid.h
   owns them; the liquid advances it in its own steps: contacts of balls with liquid, walls and each other are solved
   together. share_error= is the mean of |share of a ball that is below the water level - its density over the water's|
   at the end; ordered= how many of the 66 pairs of balls float in the order of their densities.
   --res 50 is the paper's size (130,000 particles): cpu_step= is then the CPU time of a step, which the paper had at
   1.14 s. */
#define FSI_IMPLEMENTATION
#include "kit/kit.h"
#include "fsi_rigid.h"
#include "fsi_wcsph.h"
#include "kit/wcsph_tally.h"

#define FRAME 0.04   /* seconds between two pictures */
#define BALLS 12
#define RADIUS 0.11  /* of a ball [m] */
#define LENGTH 2.08  /* of the tank */
#define WIDTH 1.0
#define LEVEL 0.5    /* of the water at first */

static double density(int k) { return 100 + 800.0 * (k * 7 % BALLS) / (BALLS - 1); }

static void add_ball(ex_app *app, ex_afloat *w, int k, double drop)
{
    fsi_rigid_shape ball = fsi_rigid_sphere(RADIUS);
    fsi_pose pose;
    ball.density = density(k);
    pose.position = fsi_v3(LENGTH * (k % 6 + 0.5 + 0.1 * (k & 1)) / 6, WIDTH * (0.3 + 0.4 * (k / 6)),
                           LEVEL + drop + RADIUS * (1.1 + 0.5 * (k % 3)));
    pose.orientation = fsi_quat_identity();
    ex_afloat_add(app, w, ball, pose);
}

/* Share of a ball of radius r below a level that is d above its centre: (r + d)^2 (2 r - d) / (4 r^3). */
static double share_below(const fsi_body *body, double level)
{
    const double d = fmax(-RADIUS, fmin(RADIUS, level - (double)body->pose.position.z));
    return (RADIUS + d) * (RADIUS + d) * (2 * RADIUS - d) / (4 * RADIUS * RADIUS * RADIUS);
}

static void figures(ex_app *app, const ex_afloat *w)
{
    double share[BALLS], error = 0;
    int k, j, ordered = 0;
    ex_afloat_level(w, 4 * FSI_PI / 3 * RADIUS * RADIUS * RADIUS, share_below, share);
    for (k = 0; k < BALLS; k++) error += fabs(share[k] - density(k) / 1000) / BALLS;
    for (k = 0; k < BALLS; k++) for (j = 0; j < k; j++) ordered += (share[k] > share[j]) == (density(k) > density(j));
    ex_figure(app, "share_error", "%.3f", error);
    ex_figure(app, "ordered", "%.0f", ordered);
}

static void draw(ex_app *app, ex_scene *scene, fsi_surface *skin, const ex_afloat *w, int balls, int frame)
{
    int k;
    ex_wcsph_draw_liquid(app, scene, skin, w->s, balls, 1);
    for (k = 0; k < BALLS; k++)
        ex_draw_body(scene, w->mesh[k], w->made[k], w->body[k]->pose, ex_map_color(EX_MAP_HEAT, density(k) / 1500 + 0.2));
    ex_save_scene(app, scene, frame, "%.2f s", w->s->time);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_surface *skin;
    ex_afloat w;
    double drop = 0.02;
    int balls = 0, frame, k;

    ex_init(&app, "floating_spheres", "Balls of many densities fall into a tank and float.");
    app.res = 25;
    app.res_help = "particles across the width of the tank";
    app.frames = 45;
    ex_real(&app, "drop", &drop, 0.02, 2, "height of the lowest balls above the water at first [m]");
    ex_flag(&app, "particles", &balls, "draw particles instead of a surface");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 12 || app.res > 200) ex_die("--res is not between 12 and 200");

    ex_afloat_begin(&app, &w, LENGTH, WIDTH, LEVEL, WIDTH / app.res);
    for (k = 0; k < BALLS; k++) add_ball(&app, &w, k, drop);
    ex_afloat_fill(&app, &w);
    skin = ex_particle_surface(&app, (double)w.s->desc.spacing);
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3(LENGTH, WIDTH, 0.8), 28, 20);

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 1; k <= 4; k++) ex_wcsph_step(&app, &w.tally, w.s, FRAME * (frame + k / 4.0) - w.s->time);
        if (app.images) draw(&app, &scene, skin, &w, balls, frame);
        ex_write_particles(&app, "water", frame, w.s->position, w.s->velocity, w.s->count);
        ex_progress(&app, frame + 1);
    }

    ex_wcsph_figures(&app, &w.tally, w.s);
    figures(&app, &w);
    ex_scene_end(&scene);
    fsi_surface_destroy(skin);
    ex_afloat_end(&w);
    return ex_end(&app);
}
