/* plot.h - line charts of figures over time or space.
   SPDX-License-Identifier: MIT

   ex_plot_begin, ex_plot_series for each curve, then ex_plot_save writes the chart as a PNG. */
#ifndef FSI_KIT_PLOT_H
#define FSI_KIT_PLOT_H

#include "files.h"

/* A line chart. NaN in y breaks a line. The arrays are not copied: keep them until ex_plot_save. */
typedef enum ex_mark { EX_MARK_LINE, EX_MARK_DOTS, EX_MARK_DASHES } ex_mark;
typedef struct ex_series {
    const char *label;
    const double *x, *y;
    int count;
    ex_mark mark;
} ex_series;
typedef struct ex_plot {
    const char *title, *x_label, *y_label;
    double x_lo, x_hi, y_lo, y_hi; /* ranges; lo >= hi (the default): whatever holds the data */
    ex_series series[8];
    int series_count;
} ex_plot;

EX_FN ex_plot ex_plot_begin(const char *title, const char *x_label, const char *y_label)
{
    ex_plot plot;
    memset(&plot, 0, sizeof plot);
    plot.title = title;
    plot.x_label = x_label;
    plot.y_label = y_label;
    return plot;
}

/* Adds a curve; the first ones are drawn on top. At most 8. */
EX_FN void ex_plot_series(ex_plot *plot, const char *label, const double *x, const double *y, int count, ex_mark mark)
{
    ex_series *s = &plot->series[plot->series_count];
    if (plot->series_count == 8) ex_die("a plot holds 8 series");
    plot->series_count++;
    s->label = label;
    s->x = x;
    s->y = y;
    s->count = count;
    s->mark = mark;
}

/* One axis: its range in data and in pixels, and the distance of its ticks. */
typedef struct ex__axis {
    double lo, hi, tick;
    double first, last; /* pixels of lo and hi */
} ex__axis;

static double ex__axis_at(const ex__axis *a, double v)
{
    return a->first + (v - a->lo) / (a->hi - a->lo) * (a->last - a->first);
}

/* Range of the x (vertical 0) or y (1) values, widened to whole ticks when the caller left it open. */
static ex__axis ex__make_axis(const ex_plot *plot, int vertical, double first, double last)
{
    ex__axis a;
    int s, i, open;
    a.first = first;
    a.last = last;
    a.lo = vertical ? plot->y_lo : plot->x_lo;
    a.hi = vertical ? plot->y_hi : plot->x_hi;
    open = !(a.lo < a.hi);
    if (open) { a.lo = 1e300; a.hi = -1e300; }
    for (s = 0; open && s < plot->series_count; s++)
        for (i = 0; i < plot->series[s].count; i++) {
            double v = vertical ? plot->series[s].y[i] : plot->series[s].x[i];
            if (!fsi_is_finite(v)) continue;
            a.lo = v < a.lo ? v : a.lo;
            a.hi = v > a.hi ? v : a.hi;
        }
    if (a.lo > a.hi) { a.lo = 0; a.hi = 1; }
    if (a.hi - a.lo <= 1e-12 * (fabs(a.lo) + fabs(a.hi)) || a.lo >= a.hi) { a.lo -= 0.5; a.hi += 0.5; }
    a.tick = ex__tick(a.hi - a.lo, vertical ? 6 : 8);
    if (open) {
        a.lo = a.tick * floor(a.lo / a.tick + (vertical ? -0.05 : 1e-9));
        a.hi = a.tick * ceil(a.hi / a.tick + (vertical ? 0.05 : -1e-9));
        a.tick = ex__tick(a.hi - a.lo, vertical ? 6 : 8);
    }
    return a;
}

static void ex__draw_axis(ex_image *im, const ex__axis *a, const ex__axis *across, int vertical)
{
    int i, from = (int)ceil(a->lo / a->tick - 1e-9), to = (int)floor(a->hi / a->tick + 1e-9);
    int digits = (int)ceil(-log10(a->tick) - 1e-9);
    char text[32];
    for (i = from; i <= to; i++) {
        double p = floor(ex__axis_at(a, i * a->tick)) + 0.5;
        uint32_t grid = i == 0 ? 0xc4cad2 : 0xe8ebf0;
        snprintf(text, sizeof text, "%.*f", digits > 0 ? digits : 0, i == 0 ? 0.0 : i * a->tick);
        if (vertical) {
            ex_line(im, across->first, p, across->last, p, 1, grid);
            ex_text(im, across->first - 10, p + 5.5, 11, EX_RIGHT, 0x4a5260, text);
        } else {
            ex_line(im, p, across->first, p, across->last, 1, grid);
            ex_text(im, p, across->first + 22, 11, EX_CENTER, 0x4a5260, text);
        }
    }
}

static const uint32_t ex__series_rgb[8] = { 0x1668b8, 0xe0542f, 0x2b9a66, 0x8a4fc4,
                                            0xd69a00, 0x13a5b5, 0xc83a85, 0x555d6b };

/* One mark of a series between two points in pixels; `along` is the length of the curve so far, for dashes. */
static void ex__draw_mark(ex_image *im, ex_mark mark, const double *p, const double *q, double *along, uint32_t rgb)
{
    double length = sqrt((q[0] - p[0]) * (q[0] - p[0]) + (q[1] - p[1]) * (q[1] - p[1])), s, e;
    if (mark == EX_MARK_LINE) ex_line(im, p[0], p[1], q[0], q[1], 2.2, rgb);
    for (s = 0; mark == EX_MARK_DASHES && s < length; s = e) {
        double phase = fmod(*along + s, 12), f = (phase < 7 ? 7 : 12) - phase + 1e-9;
        e = s + f < length ? s + f : length;
        if (phase < 7)
            ex_line(im, p[0] + (q[0] - p[0]) * s / length, p[1] + (q[1] - p[1]) * s / length,
                    p[0] + (q[0] - p[0]) * e / length, p[1] + (q[1] - p[1]) * e / length, 2, rgb);
    }
    *along += length;
}

static void ex__draw_dot(ex_image *im, double x, double y, uint32_t rgb)
{
    ex_disc(im, x, y, 4.4, 0xffffff);
    ex_disc(im, x, y, 3.4, rgb);
}

static void ex__draw_series(ex_image *im, const ex_series *s, const ex__axis *ax, const ex__axis *ay, uint32_t rgb)
{
    double p[2] = { 0, 0 }, q[2], along = 0;
    int i, begun = 0;
    for (i = 0; i < s->count; i++) {
        int good = fsi_is_finite(s->x[i]) && fsi_is_finite(s->y[i]);
        good = good && s->x[i] >= ax->lo && s->x[i] <= ax->hi && s->y[i] >= ay->lo && s->y[i] <= ay->hi;
        q[0] = good ? ex__axis_at(ax, s->x[i]) : 0;
        q[1] = good ? ex__axis_at(ay, s->y[i]) : 0;
        if (good && s->mark == EX_MARK_DOTS) ex__draw_dot(im, q[0], q[1], rgb);
        else if (good && begun) ex__draw_mark(im, s->mark, p, q, &along, rgb);
        begun = good;
        p[0] = q[0];
        p[1] = q[1];
    }
}

/* Labels in one row above the frame, right-aligned with it. */
static void ex__draw_legend(ex_image *im, const ex_plot *plot, double right, double y)
{
    double x = right, p[2], q[2], along = 0;
    int s;
    for (s = 0; s < plot->series_count; s++) x -= ex_text_width(plot->series[s].label, 11) + 58;
    for (s = 0; s < plot->series_count; s++) {
        const ex_series *c = &plot->series[s];
        x += 58;
        p[0] = x - 36; p[1] = q[1] = y - 5; q[0] = x - 10;
        if (c->mark == EX_MARK_DOTS) ex__draw_dot(im, x - 18, p[1], ex__series_rgb[s]);
        else ex__draw_mark(im, c->mark, p, q, &along, ex__series_rgb[s]);
        ex_text(im, x, y, 11, EX_LEFT, 0x2a303a, c->label);
        x += ex_text_width(c->label, 11);
    }
}

/* Draws the plot, 900 x 560. Free the image afterwards. */
EX_FN ex_image ex_plot_draw(const ex_plot *plot)
{
    ex_image im = ex_image_make(900, 560, 0xffffff);
    ex__axis ax = ex__make_axis(plot, 0, 84, 872), ay = ex__make_axis(plot, 1, 490, 84);
    int s;
    ex_text(&im, 84, 38, 16, EX_LEFT, 0x1c222b, plot->title);
    ex__draw_legend(&im, plot, 872, 68);
    ex__draw_axis(&im, &ax, &ay, 0);
    ex__draw_axis(&im, &ay, &ax, 1);
    ex_line(&im, ax.first, ay.first + 0.5, ax.last, ay.first + 0.5, 1.4, 0x4a5260);
    ex_text(&im, (ax.first + ax.last) / 2, 542, 12, EX_CENTER, 0x2a303a, plot->x_label);
    ex_text(&im, 26, (ay.first + ay.last) / 2, 12, EX_UPWARD, 0x2a303a, plot->y_label);
    for (s = plot->series_count - 1; s >= 0; s--) ex__draw_series(&im, &plot->series[s], &ax, &ay, ex__series_rgb[s]);
    return im;
}

/* Writes OUT/file, unless --no-images. */
EX_FN void ex_plot_save(ex_app *app, const ex_plot *plot, const char *file)
{
    char path[600];
    ex_image im;
    if (!app->images) return;
    im = ex_plot_draw(plot);
    snprintf(path, sizeof path, "%s/%s", app->out, file);
    ex_save_png(app, &im, path);
    ex_image_free(&im);
}

#endif /* FSI_KIT_PLOT_H */
