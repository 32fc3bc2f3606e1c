/* cc -O3 -I. studies/wcsph/floating_cuboids.c -lm -o floating_cuboids && ./floating_cuboids
   SPDX-License-Identifier: MIT

   Three flat blocks of 300, 500 and 800 kg/m^3 are dropped into a tank and come to float. A world of fsi_rigid.h owns
   them; the liquid advances it in its own steps, so that contacts of blocks with liquid, walls and each other are
   solved together. draft_300= and so on: how deep a block floats over its height, mean over the last third of the run,
   counted in points below the water's surface as it is measured away from the blocks; Archimedes has 0.3, 0.5 and 0.8.
   draft_error= the worst difference, in spacings of particles: a surface of particles is not known better than to half
   of one. level_drop= how far that surface is below the one that the volumes of water and blocks ask for, in spacings:
   water that has been lost to compression. --sink takes the paper's 500, 1100 and 3000 kg/m^3: one floats, one sinks
   slowly, one fast; down_1100= and down_3000= are the seconds until they touch the floor (0: not yet), low_1100= and
   low_3000= how high over it they are in the end [m]. The middle one does not get there at --res 7: it stops 0.1 m
   above (docs/wcsph.md 8). --res 35 is the paper's size (2 million particles). */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_rigid.h"
#include "fsi_wcsph.h"
#include "../../examples/kit/wcsph_tally.h"

#define SIDE 0.3     /* length and width of a block [m] */
#define HEIGHT 0.2
#define LENGTH 1.6   /* of the tank */
#define WIDTH 0.6
#define LEVEL 0.4    /* of the water at first */
#define BLOCKS 3

static const double floating[BLOCKS] = { 300, 500, 800 }, sinking[BLOCKS] = { 500, 1100, 3000 };
static const uint32_t color[BLOCKS] = { 0xc8432f, 0x5a9a4a, 0x3b5fa8 };

typedef struct state {
    ex_afloat tank;
    const double *density;
    double under[BLOCKS], down[BLOCKS]; /* sum of shares below the level; when it touched the floor [s], 0: not yet */
    int late;                           /* steps in that sum */
    double drop;                        /* sum of volumes' level less the measured one [m] */
} state;

static void add_block(ex_app *app, state *w, int k, double drop)
{
    fsi_rigid_shape box = fsi_rigid_box(fsi_v3((fsi_real)(SIDE / 2), (fsi_real)(SIDE / 2), (fsi_real)(HEIGHT / 2)));
    fsi_pose pose;
    box.density = (fsi_real)w->density[k];
    pose.position =
        fsi_v3((fsi_real)(LENGTH * (1 + 2 * k) / 6), (fsi_real)(WIDTH / 2), (fsi_real)(LEVEL + drop + HEIGHT / 2));
    pose.orientation = fsi_quat_from_axis_angle(fsi_v3(1, 2, 0), (fsi_real)0.06);
    ex_afloat_add(app, &w->tank, box, pose);
}

/* The share of a block that lies below a level: points in it, counted. */
static double share_below(const fsi_body *body, double level)
{
    const int n = 10, nz = 60;
    int i, below = 0;
    for (i = 0; i < n * n * nz; i++) {
        const double x = SIDE * ((i % n + 0.5) / n - 0.5), y = SIDE * ((i / n % n + 0.5) / n - 0.5),
                     z = HEIGHT * ((i / n / n + 0.5) / nz - 0.5);
        below += (double)fsi_pose_point(body->pose, fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z)).z < level;
    }
    return (double)below / (n * n * nz);
}

/* The surface as it is: half a spacing above the highest particles of columns one spacing wide, mean over those that
   are away from all blocks. */
static double surface_level(const ex_afloat *w)
{
    const double dx = (double)w->s->desc.spacing, away = 0.75 * SIDE;
    const int nx = (int)(LENGTH / dx) + 1, ny = (int)(WIDTH / dx) + 1;
    double *top = (double *)ex_alloc(NULL, (size_t)nx * (size_t)ny, sizeof *top), sum = 0;
    int i, k, count = 0;
    for (i = 0; i < nx * ny; i++) top[i] = 0;
    for (i = 0; i < w->s->count; i++) {
        const fsi_vec3 x = w->s->position[i];
        double *t = &top[(int)((double)x.y / dx) * nx + (int)((double)x.x / dx)];
        for (k = 0; k < BLOCKS; k++) {
            const fsi_vec3 c = w->body[k]->pose.position;
            if (fabs((double)(x.x - c.x)) < away && fabs((double)(x.y - c.y)) < away) break;
        }
        if (k == BLOCKS) *t = fmax(*t, (double)x.z);
    }
    for (i = 0; i < nx * ny; i++) if (top[i] > 0) { sum += top[i] + dx / 2; count++; }
    free(top);
    return count > 0 ? sum / count : LEVEL;
}

static void measure(state *w, int late)
{
    double share[BLOCKS];
    int k;
    if (late) {
        const double level = surface_level(&w->tank);
        w->drop += ex_afloat_level(&w->tank, SIDE * SIDE * HEIGHT, share_below, share) - level;
        for (k = 0; k < BLOCKS; k++) w->under[k] += share_below(w->tank.body[k], level);
        w->late++;
    }
    for (k = 0; k < BLOCKS; k++) {
        const double low = (double)w->tank.body[k]->pose.position.z - HEIGHT / 2;
        if (!(w->down[k] > 0) && low < 1.5 * (double)w->tank.s->desc.spacing) w->down[k] = w->tank.s->time;
    }
}

static void figures(ex_app *app, const state *w, int sink)
{
    double worst = 0;
    int k;
    for (k = 0; k < BLOCKS && w->late > 0; k++) {
        const double share = w->under[k] / w->late,
                     error = (share - w->density[k] / 1000) * HEIGHT / (double)w->tank.s->desc.spacing;
        char key[32];
        snprintf(key, sizeof key, sink && k > 0 ? "down_%.0f" : "draft_%.0f", w->density[k]);
        ex_figure(app, key, "%.3f", sink && k > 0 ? w->down[k] : share);
        if (sink && k > 0) {
            snprintf(key, sizeof key, "low_%.0f", w->density[k]);
            ex_figure(app, key, "%.3f", (double)w->tank.body[k]->pose.position.z - HEIGHT / 2);
        }
        if (!sink || k == 0) worst = fmax(worst, fabs(error));
    }
    ex_figure(app, "draft_error", "%.2f", worst);
    if (w->late > 0) ex_figure(app, "level_drop", "%.2f", w->drop / w->late / (double)w->tank.s->desc.spacing);
}

int main(int argc, char **argv)
{
    ex_app app;
    ex_scene scene;
    fsi_surface *skin;
    state w;
    double drop = 0.03, every = 0.04;
    int sink = 0, balls = 0, frame, k;

    memset(&w, 0, sizeof w);
    ex_init(&app, "floating_cuboids", "Blocks of three densities are dropped into a tank.");
    app.res = 7;
    app.res_help = "particles along the height of a block";
    app.frames = 45;
    ex_real(&app, "drop", &drop, 0.02, 2, "height of the blocks above the water at first [m]");
    ex_flag(&app, "sink", &sink, "densities 500, 1100, 3000 instead");
    ex_flag(&app, "particles", &balls, "draw particles instead of a surface");
    ex_real(&app, "every", &every, 1e-4, 1, "seconds between two pictures");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (app.res < 3 || app.res > 60) ex_die("--res is not between 3 and 60");
    w.density = sink ? sinking : floating;

    ex_afloat_begin(&app, &w.tank, LENGTH, WIDTH, LEVEL, HEIGHT / app.res);
    for (k = 0; k < BLOCKS; k++) add_block(&app, &w, k, drop);
    ex_afloat_fill(&app, &w.tank);
    skin = ex_particle_surface(&app, (double)w.tank.s->desc.spacing);
    scene = ex_scene_of_box(&app, fsi_v3(0, 0, 0), fsi_v3((fsi_real)LENGTH, (fsi_real)WIDTH, (fsi_real)0.65), 28, 16);

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 1; k <= 4; k++) {
            ex_wcsph_step(&app, &w.tank.tally, w.tank.s, every * (frame + k / 4.0) - w.tank.s->time);
            measure(&w, 3 * frame >= 2 * app.frames);
        }
        if (app.images) {
            ex_wcsph_draw_liquid(&app, &scene, skin, w.tank.s, balls, 1);
            for (k = 0; k < BLOCKS; k++)
                ex_draw_body(&scene, w.tank.mesh[k], w.tank.made[k], w.tank.body[k]->pose, color[k]);
            ex_save_scene(&app, &scene, frame, "%.2f s", w.tank.s->time);
        }
        ex_write_particles(&app, "water", frame, w.tank.s->position, w.tank.s->velocity, w.tank.s->count);
        ex_progress(&app, frame + 1);
    }

    ex_wcsph_figures(&app, &w.tank.tally, w.tank.s);
    figures(&app, &w, sink);
    ex_scene_end(&scene);
    fsi_surface_destroy(skin);
    ex_afloat_end(&w.tank);
    return ex_end(&app);
}
