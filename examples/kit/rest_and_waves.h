/* rest_and_waves.h - pools at rest and standing waves of particles in the plane, whoever owns them: what moves them at
   the start, and what is read from them.
   SPDX-License-Identifier: MIT

   The tank is 1 m wide, gravity EX_G along -y. Include it after kit.h. */
#ifndef FSI_KIT_REST_AND_WAVES_H
#define FSI_KIT_REST_AND_WAVES_H

#include "kit.h"

#define EX_G 9.81
#define EX_WAVE 0.05  /* height of the wave [m] */
#define EX_DEPTH 0.5  /* of the water under it [m] */

EX_FN fsi_vec3 ex_at(double x, double y) { return fsi_v3((fsi_real)x, (fsi_real)y, 0); }

/* Moves each particle by up to `by` [m] along x and y. */
EX_FN void ex_shake(fsi_vec3 *position, int count, double by)
{
    int i;
    for (i = 0; i < count; i++) {
        const double x = 2 * fmod(0.7548776662 * i, 1) - 1, y = 2 * fmod(0.5698402910 * i, 1) - 1;
        position[i] = fsi_v3_add(position[i], ex_at(x * by, y * by));
    }
}

/* Mean of x (axis 0) or y over the particles, of their squares for power 2. */
EX_FN double ex_moment(const fsi_vec3 *position, int count, int axis, int power)
{
    double sum = 0;
    int i;
    for (i = 0; i < count; i++) {
        const double x = (double)(axis ? position[i].y : position[i].x);
        sum += power == 2 ? x * x : x;
    }
    return sum / count;
}

/* Least squares slope of the pressure over height between 0.2 and 0.8 m, over -rho g. */
EX_FN double ex_pressure_slope(const fsi_vec3 *position, const fsi_real *pressure, int count, double density)
{
    double n = 0, y = 0, p = 0, yy = 0, yp = 0;
    int i;
    for (i = 0; i < count; i++) {
        const double h = (double)position[i].y, q = (double)pressure[i];
        if (h < 0.2 || h > 0.8) continue;
        n++;
        y += h;
        p += q;
        yy += h * h;
        yp += h * q;
    }
    return (n * yp - y * p) / (n * yy - y * y) / -(density * EX_G);
}

/* Moves the liquid as linear theory does at the crest: by EX_WAVE cos(k x) at the surface, without changing volumes. */
EX_FN void ex_raise_wave(fsi_vec3 *position, fsi_vec3 *velocity, int count)
{
    const double k = FSI_PI, per = EX_WAVE / sinh(k * EX_DEPTH);
    int i;
    for (i = 0; i < count; i++) {
        const double x = (double)position[i].x, y = (double)position[i].y;
        position[i] = fsi_v3_add(position[i], ex_at(-per * cosh(k * y) * sin(k * x), per * sinh(k * y) * cos(k * x)));
        velocity[i] = ex_at(0, 0);
    }
}

/* way: n values, dt apart, of what swings with the wave. Loss of energy in a period, from the first and the last of the
   extremes that are a whole number of periods apart, and the period from crossings of zero. */
EX_FN void ex_judge_wave(ex_app *app, double dt, const double *way, int n)
{
    const double k = FSI_PI, theory = 2 * FSI_PI / sqrt(EX_G * k * tanh(k * EX_DEPTH));
    double peak[64], zero[64];
    int i, peaks = 1, zeros = 0, periods;
    peak[0] = way[0];
    for (i = 1; i < n - 1 && peaks < 64 && zeros < 64; i++) {
        const int turns = (way[i] - way[i - 1]) * (way[i + 1] - way[i]) <= 0;
        if (way[i] * way[i - 1] < 0) zero[zeros++] = (i - 1 + way[i - 1] / (way[i - 1] - way[i])) * dt;
        if (turns && way[i] * peak[peaks - 1] < 0 && fabs(way[i]) > 0.25 * fabs(peak[peaks - 1]))
            peak[peaks++] = way[i];
    }
    periods = (peaks - 1) / 2 < (zeros - 1) / 2 ? (peaks - 1) / 2 : (zeros - 1) / 2;
    if (periods < 1) return;
    ex_figure(app, "periods", "%.0f", periods);
    ex_figure(app, "loss", "%.3f", 1 - pow(peak[2 * periods] / peak[0], 2.0 / periods));
    ex_figure(app, "period_error", "%+.4f", (zero[2 * periods] - zero[0]) / (periods * theory) - 1);
}

#endif
