/* test_menisci.h - surfaces at rest around a body that floats, contact angle 180 degrees: theory, and meshes of it.
   SPDX-License-Identifier: MIT

   Lengths in cells; depth is 0 at the level far away, l = sqrt(sigma/(rho g)). A surface in a plane with slope psi has
   dx/ds = cos psi, dy/ds = sin psi, dpsi/ds = y/l^2 (y < 0 here), so y^2 = y_0^2 + 2 l^2 (1 - cos psi), y_0 where it is
   level. */
#ifndef FSI_TEST_MENISCI_H
#define FSI_TEST_MENISCI_H

#include "test_membranes.h"

/* A cylinder across the plane whose surface leaves it at the angle phi from the lowest line, 2 l sin(phi/2) below the
   level, carries  2 sigma sin(phi) + rho g (2 R sin(phi) 2 l sin(phi/2) + R^2 (phi - sin(phi) cos(phi))):  this over
   rho g. */
TEST_FN double meniscus_load(double phi, double r, double l)
{
    return 2 * l * l * sin(phi) + 4 * r * l * sin(phi) * sin(phi / 2) + r * r * (phi - sin(phi) * cos(phi));
}

/* phi of a cylinder of a density relative to the liquid's that floats. */
TEST_FN double meniscus_angle(double density, double r, double l)
{
    double low = 0, top = FSI_PI;
    int k;
    for (k = 0; k < 60; k++)
        if (meniscus_load((low + top) / 2, r, l) < density * FSI_PI * r * r) low = (low + top) / 2;
        else top = (low + top) / 2;
    return low;
}

/* Height of its centre. */
TEST_FN double meniscus_height(double phi, double r, double l) { return r * cos(phi) - 2 * l * sin(phi / 2); }

/* The surface beside a cylinder at height y, from its line at phi to `wide` cells from its centre: points half a cell
   apart into px, py if these are not NULL. Returns their number. *slope: at the end; NULL: once level it stays so. */
TEST_FN int meniscus_trace(double y, double phi, double r, double l, double wide, double *px, double *py, double *slope)
{
    const double ds = 1e-3;
    double at[3], half[3];
    int k, n = 0;
    at[0] = r * sin(phi);
    at[1] = y - r * cos(phi);
    at[2] = phi;
    for (k = 0; at[0] < wide && fabs(at[2]) < 3; k++) {
        if (px && k % 500 == 0 && wide - at[0] > 0.3) {
            px[n] = at[0];
            py[n++] = at[1];
        }
        half[1] = at[1] + ds / 2 * sin(at[2]);
        half[2] = at[2] + ds / 2 * at[1] / (l * l);
        at[0] += ds * cos(half[2]);
        at[1] += ds * sin(half[2]);
        at[2] += ds * half[1] / (l * l);
        if (!slope && (at[2] < 0 || at[1] > 0)) at[1] = at[2] = 0;
    }
    if (slope) *slope = at[2];
    if (px) {
        px[n] = wide;
        py[n++] = at[1];
    }
    return n;
}

/* phi on the side of a wall `wide` cells from the centre of a cylinder at height y: the surface is level at the wall.
   *depth: there. */
TEST_FN double meniscus_to_wall(double y, double r, double l, double wide, double *depth)
{
    static double px[4000], py[4000];
    double low = 0, top = FSI_PI * 0.9, slope;
    int k, n;
    for (k = 0; k < 50; k++) {
        meniscus_trace(y, (low + top) / 2, r, l, wide, NULL, NULL, &slope);
        if (slope < 0) low = (low + top) / 2;
        else top = (low + top) / 2;
    }
    n = meniscus_trace(y, low, r, l, wide, px, py, &slope);
    *depth = -py[n - 1];
    return low;
}

/* phi on a side where the surface goes far: -2 l sin(phi/2) = y - r cos(phi). */
TEST_FN double meniscus_to_level(double y, double r, double l)
{
    double low = 0, top = FSI_PI;
    int k;
    for (k = 0; k < 60; k++)
        if (y - r * cos((low + top) / 2) + 2 * l * sin((low + top) / 4) < 0) low = (low + top) / 2;
        else top = (low + top) / 2;
    return low;
}

/* In 2D: a pool n cells wide and `high` deep far away, with a cylinder at x, high + y in its surface, phi on its left
   and right. What lies on it is 1e-5 cells within it. near_wall: the surface on the left goes to the wall level. */
TEST_FN void membrane_add_dented_pool(front_shape *s, int n, double high, double x, double y, double r, double l,
    const double *phi, int near_wall)
{
    static double px[2][4000], py[2][4000];
    double slope;
    const int arc = (int)((phi[0] + phi[1]) * r / 0.5 + 0.5);
    const int left = meniscus_trace(y, phi[0], r, l, x, px[0], py[0], near_wall ? &slope : NULL);
    const int right = meniscus_trace(y, phi[1], r, l, n - x, px[1], py[1], NULL), count = left + right + arc + 1;
    double dx = MEMBRANE_DX;
    int i;
    membrane_add_loop(s, count);
    s->x[s->vertices++] = front_v3(0, 0, 0);
    for (i = left - 1; i > 0; i--) s->x[s->vertices++] = front_v3((x - px[0][i]) * dx, (high + py[0][i]) * dx, 0);
    for (i = 0; i <= arc; i++) {
        const double a = -phi[0] + (phi[0] + phi[1]) * i / arc;
        s->x[s->vertices++] = front_v3((x + (r - 1e-5) * sin(a)) * dx, (high + y - (r - 1e-5) * cos(a)) * dx, 0);
    }
    for (i = 1; i < right; i++) s->x[s->vertices++] = front_v3((x + px[1][i]) * dx, (high + py[1][i]) * dx, 0);
    s->x[s->vertices++] = front_v3(n * dx, 0, 0);
}

/* ---- a ball ------------------------------------------------------------------------------------------------------ */

/* The surface around a ball from its line at phi, `depth` below the level: in a plane through the axis dpsi/ds =
   z/l^2 - sin(psi)/r. Goes on as far as `away` from the axis or until it is level or crosses the level. Returns the
   height there, *slope: of the surface. */
TEST_FN double meniscus_around(double phi, double depth, double r, double l, double away, double *slope)
{
    const double ds = 1e-3 * l;
    double at[3], half[3];
    at[0] = r * sin(phi);
    at[1] = -depth;
    at[2] = phi;
    while (at[0] < away && at[2] > 0 && at[1] < 0) {
        half[0] = at[0] + ds / 2 * cos(at[2]);
        half[1] = at[1] + ds / 2 * sin(at[2]);
        half[2] = at[2] + ds / 2 * (at[1] / (l * l) - sin(at[2]) / at[0]);
        at[0] += ds * cos(half[2]);
        at[1] += ds * sin(half[2]);
        at[2] += ds * (half[1] / (l * l) - sin(half[2]) / half[0]);
    }
    *slope = at[2];
    return at[1];
}

/* Depth of the line of a ball at phi, up to 90 degrees: deeper, its surface would be level before it is at the level;
   less deep, it would cross it. */
TEST_FN double meniscus_ball_depth(double phi, double r, double l)
{
    double low = 0, top = 2 * l, slope;
    int k;
    for (k = 0; k < 50; k++) {
        meniscus_around(phi, (low + top) / 2, r, l, 20 * l + r, &slope);
        if (slope > 0) low = (low + top) / 2;
        else top = (low + top) / 2;
    }
    return low;
}

/* phi of a ball of a density relative to the liquid's that floats, phi up to 90 degrees; *depth of its line. */
TEST_FN double meniscus_ball_angle(double density, double r, double l, double *depth)
{
    double low = 0, top = FSI_PI / 2;
    int k;
    for (k = 0; k < 40; k++) {
        const double a = (low + top) / 2, c = cos(a), h = meniscus_ball_depth(a, r, l);
        const double load = 0.75 * (2 * sin(a) * sin(a) * l * l / (r * r) + 2.0 / 3 - c + c * c * c / 3
            + sin(a) * sin(a) * h / r);
        if (load < density) low = a;
        else top = a;
        *depth = h;
    }
    return low;
}

/* A box of n cells in the plane and `high` deep far away, a ball at its middle in its surface, its line at phi and
   `depth`: walls and floor are meshed as finely as the surface. */
TEST_FN void membrane_add_pool_around(front_shape *s, int n, double high, double r, double l, double phi, double depth)
{
    const int m = (int)ceil(n / 0.45), up = (int)ceil(high / 0.45);
    const double step = (double)n / m, y = -depth + r * cos(phi);
    double slope;
    int i, j, k, side;
    int *at = (int *)calloc((size_t)(m + 1) * (size_t)(m + 1) * (size_t)(up + 1), sizeof(int));
    front_room(s, 2 * (m + 1) * (m + 1) + 4 * m * up, 4 * m * m + 8 * m * up);
    for (k = 0; k <= up; k++)
        for (j = 0; j <= m; j++)
            for (i = 0; i <= m; i++) {
                const double px = i * step - n / 2.0, py = j * step - n / 2.0, away = sqrt(px * px + py * py);
                double z = (double)k / up * high;
                if (i > 0 && i < m && j > 0 && j < m && k > 0 && k < up) continue;
                if (away < r * sin(phi)) z += (double)k / up * (y - sqrt((r - 1e-5) * (r - 1e-5) - away * away));
                else z += (double)k / up * meniscus_around(phi, depth, r, l, away, &slope);
                at[i + (m + 1) * (j + (m + 1) * k)] = s->vertices;
                s->x[s->vertices++] = front_v3(i * step * MEMBRANE_DX, j * step * MEMBRANE_DX, z * MEMBRANE_DX);
            }

    /* Six sides, each a lattice of squares cut along their diagonals. */
    for (side = 0; side < 6; side++) {
        const int a = side >> 1, b = (a + 1) % 3, c = (a + 2) % 3;
        int size[3], q[3], corner[4], e;
        size[0] = size[1] = m;
        size[2] = up;
        for (j = 0; j < size[c]; j++)
            for (i = 0; i < size[b]; i++) {
                for (e = 0; e < 4; e++) {
                    q[a] = side & 1 ? size[a] : 0;
                    q[b] = i + (e == 1 || e == 2);
                    q[c] = j + (e >= 2);
                    corner[e] = at[q[0] + (m + 1) * (q[1] + (m + 1) * q[2])];
                }
                for (e = 0; e < 6; e++) {
                    static const int order[2][6] = { { 0, 2, 1, 0, 3, 2 }, { 0, 1, 2, 0, 2, 3 } };
                    s->corner[3 * s->elements + e] = corner[order[side & 1][e]];
                }
                s->elements += 2;
            }
    }
    free(at);
}

#endif
