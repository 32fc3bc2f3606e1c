/* validate_martin.h - the dam break of Martin & Moyce, which all liquids are compared with.
   SPDX-License-Identifier: MIT */
#ifndef FSI_VALIDATE_MARTIN_H
#define FSI_VALIDATE_MARTIN_H

/* Surge front Z = x/a over T = n t sqrt(g/a), and height of the column at the wall over t sqrt(g/a); Phil. Trans. R.
   Soc. A 244, 312, as tabulated in public dam-break scripts. A column is a wide and n^2 a high, a = 57.15 mm. */
#define MM_A 0.05715
static const double mm_front_1[][2] = { { 0.43, 1.11 }, { 0.62, 1.22 }, { 0.80, 1.44 }, { 0.97, 1.67 }, { 1.14, 1.89 },
    { 1.29, 2.11 }, { 1.45, 2.33 }, { 1.62, 2.56 }, { 1.76, 2.78 }, { 1.93, 3.00 }, { 2.07, 3.22 }, { 2.24, 3.44 },
    { 2.40, 3.67 }, { 2.54, 3.89 }, { 2.71, 4.11 }, { 2.87, 4.33 }, { 3.04, 4.56 }, { 3.21, 4.78 }, { 3.29, 4.89 } };
static const double mm_front_2[][2] = {{0.41, 1.11}, {0.84, 1.23}, {1.19, 1.44}, {1.43, 1.67}, {1.63, 1.89},
                                       {1.82, 2.11}, {1.97, 2.33}, {2.20, 2.56}, {2.32, 2.78}, {2.50, 3.00},
                                       {2.64, 3.22}, {2.82, 3.44}, {2.96, 3.67}};
static const double mm_height_1[][2] = {{0.80, 0.89}, {1.29, 0.78}, {1.74, 0.67},
                                        {2.15, 0.56}, {2.57, 0.44}, {3.08, 0.33}};

enum { MM_SAMPLES = 241 };
typedef struct surge { double T[MM_SAMPLES], front[MM_SAMPLES], height[MM_SAMPLES], start; int count; } surge;

static double value_at(const double *x, const double *y, int n, double at)
{
    int k;
    for (k = 1; k < n - 1 && x[k] < at; k++) {}
    return y[k - 1] + (y[k] - y[k - 1]) * (at - x[k - 1]) / (x[k] - x[k - 1]);
}

/* The gate of the experiment took time to open: the origins of time agree where Z = 1.44. Returns the shift in T. */
static double match_start(const surge *r, double measured)
{
    int k;
    for (k = 1; k < r->count - 1 && r->front[k] < 1.44; k++) {}
    return measured -
           (r->T[k - 1] + (r->T[k] - r->T[k - 1]) * (1.44 - r->front[k - 1]) / (r->front[k] - r->front[k - 1]));
}

/* Root mean square and largest relative deviation from measured points, from point `first` on. */
static void compare(const surge *r, const double *y, double shift, const double (*measured)[2], int first, int count,
                    double *rms, double *most)
{
    int k;
    *rms = *most = 0;
    for (k = first; k < count; k++) {
        double e = value_at(r->T, y, r->count, measured[k][0] - shift) / measured[k][1] - 1;
        *rms += e * e / (count - first);
        if (fabs(e) > fabs(*most)) *most = e;
    }
    *rms = sqrt(*rms);
}

#endif
