/* cc -O3 -I. studies/couple/point_in_drop.c -lm -o point_in_drop && ./point_in_drop
   SPDX-License-Identifier: MIT

   A round drop, in 2D and without gravity, flies at 1 m/s against a single point that is held, at three CFL numbers
   side by side: the smallest solid there is. The liquid never covers the point: it stands in a cavity that is open to
   the rear (air has no pressure here, so that nothing closes it) and cuts the drop in two.
   --cfl runs one of them, --metric linear reads the level set's distance by the paper's other scheme.
   min_distance= is the smallest distance of the liquid from the point at any time, over the size of a cell: above 0, it
   was never wet. volume_error= the largest |volume/target - 1|; newton_mean= Newton steps a substep; t_p=, t_n=,
   t_step= seconds a substep for projections, for the optimisation, and in all. The point is held: it takes up
   momentum. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_couple.h"
#include "../../examples/kit/couple_tally.h"
#include "couple_flat.h"

#define WIDTH 0.16   /* of the air [m] */
#define HEIGHT 0.32
#define POINT 0.195  /* height of the point */
#define RADIUS 0.045 /* of the drop */
#define FRAME 0.01   /* seconds between two pictures */

typedef struct flight {
    fsi_levelset *liquid;
    fsi_shell *point;
    fsi_couple *both;
    double cfl;
} flight;

static void make_flight(ex_app *app, flight *f, double cfl, fsi_metric metric, double speed, double tension)
{
    fsi_levelset_desc l = fsi_levelset_default_desc();
    fsi_shell_desc p = fsi_shell_default_desc();
    fsi_couple_desc d = fsi_couple_default_desc();
    const fsi_shell_material m = fsi_shell_default_material();
    const fsi_vec3 x = fsi_v3((fsi_real)(0.503 * WIDTH), (fsi_real)POINT, 0);
    const fsi_real mass = 1;
    l.context = p.context = &app->context;
    l.dim = p.dim = 2;
    l.n[1] = app->res;
    l.n[0] = (int)(app->res * WIDTH / HEIGHT + 0.5);
    l.dx = (fsi_real)(HEIGHT / app->res);
    l.gravity = p.gravity = fsi_v3(0, 0, 0);
    l.surface_tension = (fsi_real)tension;
    l.cfl = (fsi_real)cfl;
    l.capillary_cfl = 5;
    ex_check(app, fsi_levelset_create(&f->liquid, &l));
    ex_check(app,
             fsi_levelset_fill_sphere(f->liquid, fsi_v3((fsi_real)(WIDTH / 2), (fsi_real)(POINT + 1.4 * RADIUS), 0),
                                      (fsi_real)RADIUS, fsi_v3(0, (fsi_real)-speed, 0), NULL));
    p.vertices = &x;
    p.vertex_count = 1;
    p.vertex_mass = &mass;
    p.materials = &m;
    p.material_count = 1;
    p.contact = 0;
    ex_check(app, fsi_shell_create(&f->point, &p));
    f->point->pinned[0] = 1;
    d.liquid = f->liquid;
    d.shell = f->point;
    d.metric = metric;
    ex_check(app, fsi_couple_create(&f->both, &d));
    f->cfl = cfl;
}

static void draw(ex_app *app, const flight *f, int count, int frame)
{
    ex_image im = ex_image_make(count * 240, 480, 0xffffff);
    char text[64];
    int k;
    for (k = 0; k < count; k++) {
        snprintf(text, sizeof text, "CFL %g, %.0f ms", f[k].cfl, 1000 * f[k].both->time);
        ex_flat_draw(&im, f[k].both, 480, count, k, text);
    }
    ex_save_frame(app, &im, frame);
    ex_image_free(&im);
}

int main(int argc, char **argv)
{
    static const double numbers[3] = { 0.5, 1, 3 };
    ex_app app;
    ex_couple_tally tally;
    flight f[3];
    const char *name = "spline";
    double cfl = 0, speed = 1, tension = 0.07;
    int frame, k, count, splits = 0;
    uint64_t hash = 0;

    memset(&tally, 0, sizeof tally);
    ex_init(&app, "point_in_drop", "A drop flies against a point that is held.");
    app.res = 128;
    app.res_help = "cells along the height";
    app.frames = 20;
    ex_real(&app, "cfl", &cfl, 0.05, 4, "cells that anything may move in a substep; 0.5, 1 and 3 when not given");
    ex_string(&app, "metric", &name, "how the distance is read: spline or linear");
    ex_real(&app, "speed", &speed, 0, 20, "of the drop [m/s]");
    ex_real(&app, "tension", &tension, 0, 2, "surface tension [N/m]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (strcmp(name, "spline") != 0 && strcmp(name, "linear") != 0) ex_die("--metric is neither spline nor linear");
    if (app.res < 32 || app.res > 1024) ex_die("--res is not between 32 and 1024");
    count = cfl > 0 ? 1 : 3;
    for (k = 0; k < count; k++)
        make_flight(&app, &f[k], cfl > 0 ? cfl : numbers[k],
                    strcmp(name, "linear") == 0 ? FSI_METRIC_LINEAR : FSI_METRIC_SPLINE, speed, tension);

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < count; k++) {
            ex_couple_step(&app, &tally, f[k].both, FRAME);
            splits += f[k].liquid->stats.splits;
        }
        if (app.images) draw(&app, f, count, frame);
        ex_progress(&app, frame + 1);
    }

    ex_couple_figures(&app, &tally, f[0].both);
    ex_figure(&app, "splits", "%.0f", splits);
    for (k = 0; k < count; k++) {
        hash = 31 * hash + fsi_couple_hash(f[k].both);
        fsi_couple_destroy(f[k].both);
        fsi_shell_destroy(f[k].point);
        fsi_levelset_destroy(f[k].liquid);
    }
    app.hash = hash;
    return ex_end(&app);
}
