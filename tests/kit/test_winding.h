/* test_winding.h - the winding number of a surface about cell centres, exact, by rays along (1, -1, 1).
   SPDX-License-Identifier: MIT

   A reference for fsi_front_lines.h that shares nothing with it. Vertices are rounded to 2^-20 cells. A centre is moved
   by (e, e^2, e^3), e > 0 as small as one likes: determinants are linear in the move, so the sign of one that is 0 is
   that of its first derivative that is not. In 2D the ray is (1, -2). */
#ifndef FSI_TEST_WINDING_H
#define FSI_TEST_WINDING_H

#include "test_fronts.h"

typedef struct winding {
    int dim, elements;
    int64_t *p;                /* 9 an element: corner, axis */
    int64_t *shade;            /* 4 an element: bounds of x + y and of y + z, which do not change along the ray */
} winding;

TEST_FN winding winding_of(const fsi_front *f, fsi_vec3 origin, double dx)
{
    winding w;
    int t, i, j;
    w.dim = f->dim;
    w.elements = f->element_count;
    w.p = (int64_t *)calloc((size_t)w.elements + 1, 9 * sizeof *w.p);
    w.shade = (int64_t *)calloc((size_t)w.elements + 1, 4 * sizeof *w.shade);
    for (t = 0; t < w.elements; t++)
        for (i = 0; i < w.dim; i++) {
            const fsi_vec3 x = f->position[f->elements[w.dim * t + i]];
            int64_t *p = w.p + 9 * t + 3 * i, *s = w.shade + 4 * t;
            p[0] = (int64_t)floor(((double)x.x - (double)origin.x) * (1048576 / dx) + 0.5);
            p[1] = (int64_t)floor(((double)x.y - (double)origin.y) * (1048576 / dx) + 0.5);
            p[2] = (int64_t)floor(((double)x.z - (double)origin.z) * (1048576 / dx) + 0.5);
            for (j = 0; j < 2; j++) {
                const int64_t at = p[j] + p[j + 1];
                s[2 * j] = i == 0 || at < s[2 * j] ? at : s[2 * j];
                s[2 * j + 1] = i == 0 || at > s[2 * j + 1] ? at : s[2 * j + 1];
            }
        }
    return w;
}

TEST_FN void winding_free(winding *w)
{
    free(w->p);
    free(w->shade);
}

/* Of the first that is not 0. */
TEST_FN int winding_sign(int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t s = a != 0 ? a : b != 0 ? b : c != 0 ? c : d;
    return (s > 0) - (s < 0);
}

/* Sign of a . b for |a| < 2^62, |b| < 2^31; 0 where it is 0: sums of the parts of a above and below 2^30. */
TEST_FN int winding_dot_sign(const int64_t *a, const int64_t *b)
{
    const int64_t unit = (int64_t)1 << 30;
    int64_t high = 0, low = 0, rest;
    int i;
    for (i = 0; i < 3; i++) {
        high += a[i] / unit * b[i];
        low += a[i] % unit * b[i];
    }
    high += low / unit;
    rest = low % unit; /* has the sign of low, and is smaller than a unit */
    return high != 0 ? (high > 0 ? 1 : -1) : (rest > 0) - (rest < 0);
}

TEST_FN int winding_of_triangle(const int64_t *p, const int64_t *q)
{
    int64_t d[3][3], e[2][3], n[3], along;
    int i, k, sign[3], side;
    for (i = 0; i < 3; i++)
        for (k = 0; k < 3; k++) d[i][k] = p[3 * i + k] - q[k];

    /* r . (a x b) for the edge ab; its derivatives are those of r . (m x (a - b)) by the move m. */
    for (i = 0; i < 3; i++) {
        const int64_t *a = d[i], *b = d[(i + 1) % 3];
        const int64_t u = a[0] - b[0], v = a[1] - b[1], w = a[2] - b[2];
        sign[i] = winding_sign((a[1] * b[2] - a[2] * b[1]) - (a[2] * b[0] - a[0] * b[2]) + (a[0] * b[1] - a[1] * b[0]),
            v + w, w - u, -u - v);
    }
    if (sign[0] == 0 || sign[0] != sign[1] || sign[1] != sign[2]) return 0;

    /* The plane is met forward where n . a and n . r have one sign. */
    for (k = 0; k < 3; k++) {
        e[0][k] = d[1][k] - d[0][k];
        e[1][k] = d[2][k] - d[0][k];
    }
    for (k = 0; k < 3; k++)
        n[k] = e[0][(k + 1) % 3] * e[1][(k + 2) % 3] - e[0][(k + 2) % 3] * e[1][(k + 1) % 3];
    along = n[0] - n[1] + n[2] > 0 ? 1 : -1;
    side = winding_dot_sign(n, d[0]);
    side = winding_sign(side, -n[0], -n[1], -n[2]);
    return side == along ? (int)along : 0;
}

TEST_FN int winding_of_segment(const int64_t *p, const int64_t *q)
{
    const int64_t a[2] = { p[0] - q[0], p[1] - q[1] }, b[2] = { p[3] - q[0], p[4] - q[1] };
    const int64_t dx = b[0] - a[0], dy = b[1] - a[1];
    const int sa = winding_sign(a[1] + 2 * a[0], -2, 0, 0), sb = winding_sign(b[1] + 2 * b[0], -2, 0, 0);
    const int along = dy + 2 * dx > 0 ? 1 : -1;
    if (sa == sb) return 0;
    return winding_sign(a[0] * dy - a[1] * dx, -dy, dx, 0) == along ? along : 0;
}

/* About the centre of cell (i, j, k). */
TEST_FN int winding_number(const winding *w, int i, int j, int k)
{
    const int64_t q[3] = { ((int64_t)i << 20) + 524288, ((int64_t)j << 20) + 524288,
        w->dim == 3 ? ((int64_t)k << 20) + 524288 : 0 };
    const int64_t s = q[0] + q[1], u = q[1] + q[2];
    int t, turns = 0;
    for (t = 0; t < w->elements; t++) {
        const int64_t *b = w->shade + 4 * t;
        if (w->dim == 2) turns += winding_of_segment(w->p + 9 * t, q);
        else if (s >= b[0] && s <= b[1] && u >= b[2] && u <= b[3]) turns += winding_of_triangle(w->p + 9 * t, q);
    }
    return turns;
}

#endif
