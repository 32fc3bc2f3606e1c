/* cc -O3 -I. studies/front/zalesak.c -lm -o zalesak && ./zalesak
   SPDX-License-Identifier: MIT

   Zalesak's slotted disc (1979), radius 15 in a box of 100 cells, turns once, in 1256 steps; then (unless --dim 2) a
   ball whose slices are such discs, in a quarter as many. Segments and triangles are half a cell long. shape_error_2d=,
   shape_error_3d=: volume where the surface is afterwards not what it was, over its own area, in cells; area_error_2d=,
   volume_error_3d=: of the volume. A level set at the same spacing leaves 0.16 cells at best (docs/front.md).
   zalesak.png shows the outline before and after. */
#define FSI_IMPLEMENTATION
#include "../../examples/kit/front_tally.h"

/* Places of a 2D outline, in the order of its segments, the first again. */
static int outline(const fsi_front *f, double **x, double **y)
{
    int *next = (int *)ex_alloc(NULL, (size_t)f->vertex_count, sizeof *next), i, at = 0;
    *x = (double *)ex_alloc(NULL, (size_t)f->vertex_count + 1, sizeof **x);
    *y = (double *)ex_alloc(NULL, (size_t)f->vertex_count + 1, sizeof **y);
    for (i = 0; i < f->element_count; i++) next[f->elements[2 * i]] = f->elements[2 * i + 1];
    for (i = 0; i <= f->vertex_count; i++, at = next[at]) {
        (*x)[i] = (double)f->position[at].x;
        (*y)[i] = (double)f->position[at].y;
    }
    free(next);
    return i;
}

static void save_outlines(ex_app *app, double *const *x, double *const *y, const int *count)
{
    ex_plot plot = ex_plot_begin("Zalesak's disc, before and after a turn", "x [cells]", "y [cells]");
    plot.x_lo = 11;
    plot.x_hi = 89;
    plot.y_lo = 55;
    plot.y_hi = 95;
    ex_plot_series(&plot, "after", x[1], y[1], count[1], EX_MARK_DOTS);
    ex_plot_series(&plot, "before", x[0], y[0], count[0], EX_MARK_LINE);
    ex_plot_save(app, &plot, "zalesak.png");
}

static void one_turn(ex_app *app, int dim, int steps, int *frame)
{
    fsi_front *f = ex_slotted_front(app, dim, 0.5);
    unsigned char *before, *after;
    const int n = dim == 2 ? 1600 : 400;
    double volume, area, *x[2] = { NULL, NULL }, *y[2] = { NULL, NULL }, error;
    int k, count[2] = { 0, 0 };
    ex_check(app, fsi_front_step(f, 0)); /* to its target length */
    before = ex_front_inside(app, f, n, 100);
    volume = f->stats.volume;
    area = f->stats.area;
    if (dim == 2) count[0] = outline(f, &x[0], &y[0]);
    for (k = 0; k < steps; k++) {
        ex_front_carry(app, f, ex_zalesak_flow, 0, 628.0 / steps);
        app->steps++;
        app->sim_seconds += 628.0 / steps;
        if ((k + 1) % (steps / 10) == 0 && *frame < app->frames) ex_progress(app, ++*frame);
    }
    after = ex_front_inside(app, f, n, 100);
    if (dim == 2) count[1] = outline(f, &x[1], &y[1]);
    error = ex_front_difference(before, after, n, dim, 100) / area;
    ex_figure(app, dim == 2 ? "shape_error_2d" : "shape_error_3d", "%.3g", error);
    ex_figure(app, dim == 2 ? "area_error_2d" : "volume_error_3d", "%.3g", f->stats.volume / volume - 1);
    ex_figure(app, dim == 2 ? "segments" : "triangles", "%.0f", f->element_count);
    if (dim == 2 && app->images) save_outlines(app, x, y, count);
    app->hash = fsi_front_hash(f);
    for (k = 0; k < 2; k++) {
        free(x[k]);
        free(y[k]);
    }
    free(before);
    free(after);
    fsi_front_destroy(f);
}

int main(int argc, char **argv)
{
    ex_app app;
    int frame = 0, dim = 3, steps = 1256;
    ex_init(&app, "zalesak", "Zalesak's slotted disc and a slotted ball turn once.");
    app.frames = 20;
    app.res = 1;
    ex_int(&app, "dim", &dim, 2, 3, "2: only the disc");
    ex_int(&app, "steps", &steps, 40, 100000, "steps of a turn");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    one_turn(&app, 2, steps, &frame);
    if (dim == 3) one_turn(&app, 3, steps / 4, &frame);
    return ex_end(&app);
}
