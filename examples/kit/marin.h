/* marin.h - the dam break of the Maritime Research Institute Netherlands: its geometry, what was measured, gauges,
   figures and plots.
   SPDX-License-Identifier: MIT

   Kleefsman et al. 2005, J. Comput. Phys. 206, 363; SPHERIC benchmark 2. Include it after kit.h. Each example fills a
   marin_record by its own reading of levels and pressures, and calls marin_end.

      z  |  tank 3.22 x 1 x 1 m                            |
         |                            +--------------------|
         |      P5..P8                |                    |
         |       +--+ P4              |    water 0.55 m    |
         |       |  |  :              |                    |
         +-------+--+ P1--:-----------+----------:---------+-- x
         0       0.82 m  H2 0.99              H4 2.64   3.22 */
#ifndef FSI_KIT_MARIN_H
#define FSI_KIT_MARIN_H

#include "kit.h"

#define MARIN_SAMPLE 0.01 /* seconds between two readings of the gauges */
#define MARIN_DEPTH 0.55
#define MARIN_TOP 1.0     /* of the level gauges [m] */
#define MARIN_WET 0.02    /* level at which the front has arrived [m] */
#define MARIN_BINS 500    /* of a level gauge, over its height */

/* Public data of SPHERIC benchmark 2. Its columns H1 and H3 are swapped against its drawing; H2 and H4 are right. */
static const short marin_level[2][101] = { /* H2 and H4 [mm] every 50 ms */
    { 1, 1, 1, 0, 1, 1, 1, 8, 46, 75, 98, 116, 120, 125, 131, 140, 148, 156, 166, 175, 180, 184, 187, 192, 196, 202,
      206, 202, 200, 218, 238, 234, 253, 269, 311, 326, 332, 309, 294, 290, 286, 298, 297, 290, 293, 291, 292, 299,
      305, 290, 281, 269, 262, 255, 241, 231, 227, 221, 213, 209, 203, 201, 198, 193, 196, 199, 201, 202, 204, 203,
      202, 201, 198, 192, 186, 178, 170, 162, 154, 147, 137, 144, 148, 152, 157, 161, 159, 155, 151, 148, 145, 144,
      149, 167, 208, 253, 252, 256, 253, 251, 250 },
    { 547, 542, 534, 523, 512, 500, 487, 473, 459, 444, 427, 411, 395, 379, 363, 347, 332, 317, 303, 290, 279, 266,
      254, 243, 233, 224, 214, 205, 197, 189, 182, 176, 170, 164, 159, 153, 148, 142, 138, 134, 130, 127, 125, 122,
      119, 115, 113, 110, 108, 106, 104, 103, 112, 113, 124, 168, 212, 208, 200, 203, 202, 206, 211, 209, 208, 209,
      205, 202, 204, 201, 199, 208, 226, 252, 292, 324, 387, 398, 381, 358, 332, 310, 292, 276, 265, 257, 252, 250,
      252, 254, 260, 265, 268, 268, 268, 269, 266, 260, 251, 241, 233 }
};
static const short marin_pressure[4][104] = { /* P1 to P4 [10 Pa] every 20 ms from 0.34 s */
    { -2, -2, -2, 611, 997, 858, 778, 706, 657, 649, 599, 565, 521, 483, 446, 410, 403, 406, 400, 378, 380, 378, 361,
      364, 348, 334, 348, 357, 347, 348, 301, 312, 316, 288, 301, 304, 291, 318, 317, 290, 289, 308, 288, 299, 303,
      279, 305, 280, 253, 234, 244, 248, 274, 268, 291, 267, 268, 264, 280, 276, 262, 293, 277, 296, 279, 272, 276,
      276, 279, 288, 291, 300, 307, 314, 313, 300, 291, 297, 298, 307, 304, 301, 304, 309, 310, 304, 298, 299, 299,
      304, 301, 295, 294, 291, 286, 282, 280, 278, 276, 273, 269, 267, 266, 265 },
    { 0, 0, -1, -2, 532, 759, 726, 670, 597, 577, 559, 539, 490, 453, 420, 391, 385, 381, 375, 369, 376, 361, 363,
      347, 327, 329, 332, 325, 321, 307, 273, 288, 288, 267, 272, 252, 244, 258, 256, 237, 239, 240, 212, 243, 257,
      231, 231, 203, 191, 196, 158, 169, 181, 190, 210, 198, 206, 203, 213, 209, 196, 225, 213, 231, 227, 210, 214,
      209, 215, 223, 232, 246, 250, 252, 253, 244, 239, 244, 244, 255, 255, 254, 254, 257, 261, 260, 257, 258, 256,
      258, 253, 241, 240, 241, 245, 243, 242, 241, 241, 238, 233, 229, 226, 226 },
    { -5, -4, -5, -6, 13, 542, 644, 569, 522, 533, 514, 496, 456, 418, 390, 368, 360, 359, 364, 369, 383, 376, 374,
      367, 356, 358, 373, 367, 356, 345, 335, 333, 326, 315, 316, 310, 307, 310, 311, 293, 288, 272, 249, 266, 275,
      235, 248, 238, 235, 219, 201, 196, 215, 206, 221, 203, 203, 196, 202, 192, 177, 202, 192, 226, 214, 199, 206,
      198, 202, 210, 212, 219, 218, 216, 219, 211, 208, 214, 213, 221, 222, 221, 220, 223, 224, 224, 223, 225, 225,
      229, 226, 220, 219, 216, 216, 217, 216, 215, 214, 211, 208, 203, 199, 196 },
    { -2, -1, -1, -3, -4, 255, 707, 583, 483, 468, 473, 443, 396, 361, 340, 312, 300, 301, 303, 308, 323, 316, 313,
      311, 304, 308, 311, 311, 302, 299, 285, 283, 277, 268, 265, 270, 266, 270, 279, 264, 265, 244, 224, 233, 251,
      213, 237, 240, 237, 223, 202, 197, 212, 200, 219, 204, 211, 198, 197, 190, 159, 171, 163, 203, 194, 174, 188,
      180, 182, 182, 187, 190, 189, 187, 190, 179, 175, 178, 176, 181, 179, 178, 177, 178, 179, 178, 176, 178, 178,
      182, 180, 174, 174, 172, 170, 171, 170, 169, 168, 165, 162, 159, 158, 157 }
};

/* Where the four level gauges H1 to H4 stand, at y = 0.5; the front passes H4, H3, H2 and H1 in this order. */
static const double marin_gauge_x[4] = { 0.496, 0.992, 1.488, 2.638 };

/* What the gauges read, a column each. */
enum { MARIN_TIME, MARIN_H2, MARIN_H4, MARIN_P1, MARIN_COLUMNS = MARIN_P1 + 8 };
typedef struct marin_record {
    double *column[MARIN_COLUMNS];
    double sum[8];      /* of the pressures since the last reading, over `steps` steps */
    double arrival[4];  /* when a gauge first read more than MARIN_WET [s]; 0: not yet */
    int count, steps;
} marin_record;

/* The box that the wave meets. */
EX_FN fsi_mesh *marin_obstacle(ex_app *app)
{
    ex_mesh box = ex_box(ex_box3(0.6635, 0.2985, 0, 0.8245, 0.7015, 0.161), 0);
    return ex_solid(app, &box, FSI_MESH_CLOSED);
}

/* Room for so many seconds. */
EX_FN marin_record marin_begin(double seconds)
{
    marin_record r;
    int k;
    memset(&r, 0, sizeof r);
    for (k = 0; k < MARIN_COLUMNS; k++)
        r.column[k] = (double *)ex_alloc(NULL, (size_t)(seconds / MARIN_SAMPLE) + 4, sizeof(double));
    return r;
}

/* The highest z at which a column is half filled: filled[k] is its share at z = TOP k / BINS, 0 to BINS. */
EX_FN double marin_level_of(const double *filled)
{
    const double bin = MARIN_TOP / MARIN_BINS;
    int k;
    for (k = MARIN_BINS; k > 0 && filled[k] < 0.5; k--) {}
    return k == MARIN_BINS ? MARIN_TOP : k == 0 ? 0 : bin * (k + (filled[k] - 0.5) / (filled[k] - filled[k + 1]));
}

/* The level of particles dx apart in a column 2 dx wide around (px, 0.5). A particle is its volume, spread over
   z - dx .. z + dx by a hat function: so the layers of a lattice add up to one, and its surface is where it should
   be. */
EX_FN double marin_level_of_particles(const fsi_vec3 *x, int count, double dx, double px)
{
    double filled[MARIN_BINS + 1] = { 0 }, bin = MARIN_TOP / MARIN_BINS;
    int i, k;
    for (i = 0; i < count; i++) {
        fsi_vec3 p = x[i];
        if (!(fabs((double)p.x - px) < dx && fabs((double)p.y - 0.5) < dx)) continue;
        k = (int)ceil(((double)p.z - dx) / bin);
        for (k = k > 0 ? k : 0; k <= MARIN_BINS && k * bin < (double)p.z + dx; k++)
            filled[k] += (1 - fabs(k * bin - (double)p.z) / dx) / 4;
    }
    return marin_level_of(filled);
}

/* P1 to P4 (k 0 to 3) are on the face of the box that meets the wave, P5 to P8 on its lid; `off` in front of it. */
EX_FN fsi_vec3 marin_pressure_point(int k, double off)
{
    return k < 4 ? fsi_v3((fsi_real)(0.8245 + off), (fsi_real)0.4745, (fsi_real)(0.021 + 0.04 * k))
                 : fsi_v3((fsi_real)(0.8035 - 0.04 * (k - 4)), (fsi_real)0.4745, (fsi_real)(0.161 + off));
}

/* The same point, moved to the first centre of a cell in front of the box, on a grid from `origin`. */
EX_FN fsi_vec3 marin_pressure_cell(int k, fsi_vec3 origin, fsi_real dx)
{
    fsi_vec3 p = marin_pressure_point(k, 0);
    fsi_real *at = k < 4 ? &p.x : &p.z, start = k < 4 ? origin.x : origin.z;
    *at = start + (fsi_real)(ceil((double)((*at - start) / dx) - 0.5) + 0.5) * dx;
    return p;
}

/* Levels as they are now; pressures as means since the last reading, as the experiment's are. */
EX_FN void marin_read(marin_record *r, double time, const double level[4])
{
    int k;
    for (k = 0; k < 4; k++) if (!(r->arrival[k] > 0) && level[k] > MARIN_WET) r->arrival[k] = time;
    r->column[MARIN_TIME][r->count] = time;
    r->column[MARIN_H2][r->count] = level[1];
    r->column[MARIN_H4][r->count] = level[3];
    for (k = 0; k < 8; k++) {
        r->column[MARIN_P1 + k][r->count] = r->sum[k] / r->steps;
        r->sum[k] = 0;
    }
    r->steps = 0;
    r->count++;
}

/* Root mean square of level minus experiment up to time `end`, no shift in time. */
EX_FN double marin_level_rms(const marin_record *r, int column, double end)
{
    const short *measured = marin_level[column - MARIN_H2];
    double sum = 0;
    int i, n = 0;
    for (i = 0; i < r->count && r->column[MARIN_TIME][i] < end + 1e-9 && r->column[MARIN_TIME][i] < 5; i++, n++) {
        double u = r->column[MARIN_TIME][i] / 0.05, part = u - floor(u);
        double error = r->column[column][i] - ((1 - part) * measured[(int)u] + part * measured[(int)u + 1]) / 1000;
        sum += error * error;
    }
    return sqrt(sum / n);
}

/* Mean of P1 + k (k 0 to 3) from t0 to t1, within the table, over that of the experiment, less 1. */
EX_FN double marin_pressure_error(const marin_record *r, int k, double t0, double t1)
{
    double mean = 0, measured = 0;
    int i, n = 0, m = 0;
    for (i = 0; i < r->count; i++) {
        if (r->column[MARIN_TIME][i] < t0 - 1e-9 || r->column[MARIN_TIME][i] > t1 + 1e-9) continue;
        mean += r->column[MARIN_P1 + k][i];
        n++;
    }
    for (i = 0; i < 104; i++) {
        if (0.34 + 0.02 * i < t0 - 1e-9 || 0.34 + 0.02 * i > t1 + 1e-9) continue;
        measured += 10.0 * marin_pressure[k][i];
        m++;
    }
    return n > 0 ? mean / n / (measured / m) - 1 : 0;
}

/* OUT/NAME_part.png */
static void marin__save(ex_app *app, const ex_plot *plot, const char *part)
{
    char file[128];
    snprintf(file, sizeof file, "%s_%s.png", app->name, part);
    ex_plot_save(app, plot, file);
}

/* Two columns beside the measured values: H2 and H4, or two of P1 to P4. */
static void marin__plot_pair(ex_app *app, const marin_record *r, int a, int b, const char *part)
{
    static const char *const names[MARIN_COLUMNS] = { "t", "H2", "H4", "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8" };
    static double x[2][104], y[2][104];
    char label[2][32];
    ex_plot plot = ex_plot_begin(a < MARIN_P1 ? "Level of the water" : "Pressure on the face of the box", "time [s]",
                                 a < MARIN_P1 ? "height [m]" : "pressure [Pa]");
    int k, i, pick[2], n = a < MARIN_P1 ? 101 : 104;
    pick[0] = a;
    pick[1] = b;
    plot.x_hi = r->column[MARIN_TIME][r->count - 1];
    plot.y_hi = a < MARIN_P1 ? 0.6 : 15000;
    for (k = 0; k < 2; k++)
        ex_plot_series(&plot, names[pick[k]], r->column[MARIN_TIME], r->column[pick[k]], r->count, EX_MARK_LINE);
    for (k = 0; k < 2; k++) {
        for (i = 0; i < n; i++) {
            x[k][i] = a < MARIN_P1 ? 0.05 * i : 0.34 + 0.02 * i;
            y[k][i] = a < MARIN_P1 ? 0.001 * marin_level[pick[k] - MARIN_H2][i]
                : 10.0 * marin_pressure[pick[k] - MARIN_P1][i];
        }
        snprintf(label[k], sizeof label[k], "%s measured", names[pick[k]]);
        ex_plot_series(&plot, label[k], x[k], y[k], n, EX_MARK_DOTS);
    }
    marin__save(app, &plot, part);
}

static void marin__plot_lid(ex_app *app, const marin_record *r)
{
    static const char *const names[4] = { "P5", "P6", "P7", "P8" };
    ex_plot plot = ex_plot_begin("On its lid (measured: peaks of 1.9 to 2.1 kPa at 1.60 to 1.74 s)", "time [s]",
                                 "pressure [Pa]");
    int k;
    plot.x_hi = r->column[MARIN_TIME][r->count - 1];
    plot.y_hi = 4000;
    for (k = 0; k < 4; k++)
        ex_plot_series(&plot, names[k], r->column[MARIN_TIME], r->column[MARIN_P1 + 4 + k], r->count, EX_MARK_LINE);
    marin__save(app, &plot, "lid");
}

/* Draws what is solid beside the water, and saves the picture. */
EX_FN void marin_picture(ex_app *app, ex_scene *scene, const fsi_mesh *obstacle, double time, int frame)
{
    ex_draw_solid(scene, obstacle, 0xd9783b);
    ex_draw_box(scene, scene->box, 1.5, 0x7d8894);
    ex_save_scene(app, scene, frame, "%.2f s", time);
}

/* Plots beside the experiment, and figures: h2_rms= and h4_rms= the errors of levels [m]; h1_arrival= and h3_arrival=
   when the front came [s] (measured: 0.920 and 0.218); p1_error= and p3_error= the mean pressures from 0.6 to 0.9 s
   over the measured ones, less 1. Frees the record. */
EX_FN void marin_end(ex_app *app, marin_record *r)
{
    int k;
    marin__plot_pair(app, r, MARIN_H2, MARIN_H4, "levels");
    marin__plot_pair(app, r, MARIN_P1, MARIN_P1 + 2, "p1_p3");
    marin__plot_pair(app, r, MARIN_P1 + 1, MARIN_P1 + 3, "p2_p4");
    marin__plot_lid(app, r);
    ex_figure(app, "h2_rms", "%.4f", marin_level_rms(r, MARIN_H2, 4));
    ex_figure(app, "h4_rms", "%.4f", marin_level_rms(r, MARIN_H4, 2.4));
    ex_figure(app, "h1_arrival", "%.2f", r->arrival[0]);
    ex_figure(app, "h3_arrival", "%.2f", r->arrival[2]);
    ex_figure(app, "p1_error", "%.3f", marin_pressure_error(r, 0, 0.6, 0.9));
    ex_figure(app, "p3_error", "%.3f", marin_pressure_error(r, 2, 0.6, 0.9));
    for (k = 0; k < MARIN_COLUMNS; k++) free(r->column[k]);
}

#endif /* FSI_KIT_MARIN_H */
