/* cc -O3 -I. studies/couple/row_of_points.c -lm -o row_of_points && ./row_of_points
   SPDX-License-Identifier: MIT

   A drop, in 2D, falls at 1 m/s on a row of points that are held, a cell, 1.8 and 5 cells apart, side by side: how far
   apart may they be and still hold the liquid? There are no edges between them, so that nothing but the points is
   tested. --spacing runs one of them; --cfl, --metric as in point_in_drop.c. min_distance= is the smallest distance of
   the liquid from any point at any time, over the size of a cell: above 0, none was ever wet. leaked= is the largest
   share of the liquid under a row, at any time (when all are run, of rows whose points are less than 2 cells apart);
   volume_error= the largest |volume/target - 1|; newton_mean= Newton steps a substep, newton_most= of the hardest
   frame; t_p=, t_n=, t_step= seconds a substep for projections, for the optimisation, and in all. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/kit.h"
#include "fsi_couple.h"
#include "../../examples/kit/couple_tally.h"
#include "couple_flat.h"

#define BOX 0.2      /* of air [m] */
#define ROW 0.075    /* height of the points */
#define RADIUS 0.024 /* of the drop */
#define FRAME 0.01   /* seconds between two pictures */

typedef struct fall {
    fsi_levelset *liquid;
    fsi_shell *points;
    fsi_couple *both;
    double spacing;  /* of the points, over the size of a cell */
} fall;

static void make_fall(ex_app *app, fall *f, double spacing, double cfl, fsi_metric metric, double speed, double tension)
{
    fsi_levelset_desc l = fsi_levelset_default_desc();
    fsi_shell_desc p = fsi_shell_default_desc();
    fsi_couple_desc d = fsi_couple_default_desc();
    const fsi_shell_material m = fsi_shell_default_material();
    const double dx = BOX / app->res;
    const int count = (int)ceil((app->res - 1) / spacing - 1e-9) + 1; /* from wall to wall, the last gap may be
                                                                         smaller */
    fsi_vec3 *x = (fsi_vec3 *)ex_alloc(NULL, (size_t)count, sizeof *x);
    fsi_real *mass = (fsi_real *)ex_alloc(NULL, (size_t)count, sizeof *mass);
    int i;
    for (i = 0; i < count; i++) {
        x[i] = fsi_v3((fsi_real)((0.5 + fmin(i * spacing, app->res - 1)) * dx), (fsi_real)ROW, 0);
        mass[i] = 1;
    }
    l.context = p.context = &app->context;
    l.dim = p.dim = 2;
    l.n[0] = l.n[1] = app->res;
    l.dx = (fsi_real)dx;
    l.gravity = fsi_v3(0, (fsi_real)-9.81, 0);
    l.surface_tension = (fsi_real)tension;
    l.cfl = (fsi_real)cfl;
    l.capillary_cfl = 5;
    ex_check(app, fsi_levelset_create(&f->liquid, &l));
    ex_check(app, fsi_levelset_fill_sphere(f->liquid, fsi_v3((fsi_real)(0.51 * BOX), (fsi_real)(ROW + 1.6 * RADIUS), 0),
                                           (fsi_real)RADIUS, fsi_v3(0, (fsi_real)-speed, 0), NULL));
    p.gravity = fsi_v3(0, 0, 0);
    p.vertices = x;
    p.vertex_count = count;
    p.vertex_mass = mass;
    p.materials = &m;
    p.material_count = 1;
    p.contact = 0;
    ex_check(app, fsi_shell_create(&f->points, &p));
    memset(f->points->pinned, 1, (size_t)count);
    d.liquid = f->liquid;
    d.shell = f->points;
    d.metric = metric;
    ex_check(app, fsi_couple_create(&f->both, &d));
    f->spacing = spacing;
    free(x);
    free(mass);
}

/* Share of the liquid whose cells are under the row. */
static double leaked(const fall *f)
{
    const fsi_levelset *l = f->liquid;
    int i, j, under = 0, all = 0;
    for (j = 0; j < l->desc.n[1]; j++)
        for (i = 0; i < l->desc.n[0]; i++)
            if ((double)fsi_grid_at(l->phi, i, j, 0) < 0) {
                under += (j + 0.5) * (double)l->desc.dx < ROW - 0.5 * (double)l->desc.dx;
                all++;
            }
    return all > 0 ? (double)under / all : 0;
}

static void draw(ex_app *app, const fall *f, int count, int frame)
{
    ex_image im = ex_image_make(count * 320, 320, 0xffffff);
    char text[64];
    int k;
    for (k = 0; k < count; k++) {
        snprintf(text, sizeof text, "%g dx apart, %.0f ms", f[k].spacing, 1000 * f[k].both->time);
        ex_flat_draw(&im, f[k].both, 320, count, k, text);
    }
    ex_save_frame(app, &im, frame);
    ex_image_free(&im);
}

int main(int argc, char **argv)
{
    static const double numbers[3] = { 1, 1.8, 5 };
    ex_app app;
    ex_couple_tally tally;
    fall f[3];
    const char *name = "spline";
    double spacing = 0, cfl = 0.7, speed = 1, tension = 0.07, leak = 0, most = 0;
    int frame, k, count;
    uint64_t hash = 0;

    memset(&tally, 0, sizeof tally);
    ex_init(&app, "row_of_points", "A drop falls on a row of points that are held.");
    app.res = 80;
    app.res_help = "cells along the box";
    app.frames = 30;
    ex_real(&app, "spacing", &spacing, 0.3, 20, "of the points [cells]; 1, 1.8 and 5 when not given");
    ex_real(&app, "cfl", &cfl, 0.05, 4, "cells that anything may move in a substep");
    ex_string(&app, "metric", &name, "how the distance is read: spline or linear");
    ex_real(&app, "speed", &speed, 0, 20, "of the drop [m/s]");
    ex_real(&app, "tension", &tension, 0, 2, "surface tension [N/m]");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    if (strcmp(name, "spline") != 0 && strcmp(name, "linear") != 0) ex_die("--metric is neither spline nor linear");
    if (app.res < 32 || app.res > 1024) ex_die("--res is not between 32 and 1024");
    count = spacing > 0 ? 1 : 3;
    for (k = 0; k < count; k++)
        make_fall(&app, &f[k], spacing > 0 ? spacing : numbers[k], cfl,
                  strcmp(name, "linear") == 0 ? FSI_METRIC_LINEAR : FSI_METRIC_SPLINE, speed, tension);

    for (frame = 0; frame < app.frames; frame++) {
        for (k = 0; k < count; k++) {
            ex_couple_step(&app, &tally, f[k].both, FRAME);
            most = fmax(most, (double)f[k].both->stats.newton / f[k].both->stats.substeps);
            if (count == 1 || f[k].spacing < 2) leak = fmax(leak, leaked(&f[k]));
        }
        if (app.images) draw(&app, f, count, frame);
        ex_progress(&app, frame + 1);
    }

    ex_couple_figures(&app, &tally, f[0].both);
    ex_figure(&app, "newton_most", "%.1f", most);
    ex_figure(&app, "leaked", "%.4f", leak);
    for (k = 0; k < count; k++) {
        hash = 31 * hash + fsi_couple_hash(f[k].both);
        fsi_couple_destroy(f[k].both);
        fsi_shell_destroy(f[k].points);
        fsi_levelset_destroy(f[k].liquid);
    }
    app.hash = hash;
    return ex_end(&app);
}
