/* test_membranes.h - drops and pools for tests of fsi_membrane.h.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_MEMBRANES_H
#define FSI_TEST_MEMBRANES_H

#include "test_fronts.h"
#include "../../fsi_membrane.h"

#define MEMBRANE_SIGMA 0.0728
#define MEMBRANE_RHO 1000.0
#define MEMBRANE_DX 1e-3

/* A box of n cells of 1 mm, water without gravity; the surface is yours to fill. */
TEST_FN fsi_membrane_desc membrane_desc(fsi_context *c, const front_shape *s, int n)
{
    fsi_membrane_desc d = fsi_membrane_default_desc();
    d.context = c;
    d.dim = s->dim;
    d.n[0] = d.n[1] = d.n[2] = n;
    d.dx = (fsi_real)MEMBRANE_DX;
    d.surface_tension = (fsi_real)MEMBRANE_SIGMA;
    d.gravity = front_v3(0, 0, 0);
    d.vertices = s->x;
    d.vertex_count = s->vertices;
    d.elements = s->corner;
    d.element_count = s->elements;
    return d;
}

/* A drop of radius r cells, off the middle of the cells, stretched along its last axis to r (1 + stretch). */
TEST_FN void membrane_add_drop(front_shape *s, double x, double y, double z, double r, double stretch)
{
    const double dx = MEMBRANE_DX;
    const int first = s->vertices;
    int i;
    if (s->dim == 3) front_add_ball(s, front_v3(x * dx, y * dx, z * dx), front_v3(r * dx, r * dx, r * dx),
        (int)(FSI_PI * r), 1);
    else front_add_circle(s, front_v3(x * dx, y * dx, 0), r * dx, (int)(4 * FSI_PI * r), 1);
    for (i = first; i < s->vertices && fabs(stretch) > 0; i++) {
        double p[3] = { 0, 0, 0 }, c, f;
        p[0] = (double)s->x[i].x - x * dx;
        p[1] = (double)s->x[i].y - y * dx;
        p[2] = s->dim == 3 ? (double)s->x[i].z - z * dx : 0;
        c = p[s->dim - 1] / sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
        f = 1 + stretch * (s->dim == 3 ? (3 * c * c - 1) / 2 : 2 * c * c - 1); /* P2, cos 2a */
        s->x[i] = front_v3(x * dx + f * p[0], y * dx + f * p[1], s->dim == 3 ? z * dx + f * p[2] : 0);
    }
}

/* In 2D: the segments of a closed line through the next `count` vertices. */
TEST_FN void membrane_add_loop(front_shape *s, int count)
{
    const int first = s->vertices;
    int i;
    front_room(s, count, count);
    for (i = 0; i < count; i++) {
        s->corner[2 * s->elements] = first + i;
        s->corner[2 * s->elements++ + 1] = first + (i + 1) % count;
    }
}

/* In 2D: a pool as wide as the box of n cells, of depth h cells, its surface h + a cos(pi mode x/width). */
TEST_FN void membrane_add_pool(front_shape *s, int n, double h, double a, int mode)
{
    const double dx = MEMBRANE_DX;
    const int count = 2 * n + 3;
    int i;
    membrane_add_loop(s, count);
    s->x[s->vertices++] = front_v3(0, 0, 0);
    for (i = 0; i <= 2 * n; i++)
        s->x[s->vertices++] = front_v3(0.5 * i * dx, (h + a * cos(FSI_PI * mode * i / (2 * n))) * dx, 0);
    s->x[s->vertices++] = front_v3(n * dx, 0, 0);
}

/* In 3D: a pool of eight vertices. */
TEST_FN void membrane_add_box(front_shape *s, double wide, double high)
{
    static const int faces[36] = { 0, 2, 1, 1, 2, 3, 4, 5, 6, 5, 7, 6, 0, 1, 4, 1, 5, 4, 2, 6, 3, 3, 6, 7, 0, 4, 2, 2,
        4, 6, 1, 3, 5, 3, 7, 5 };
    const int first = s->vertices;
    int i;
    front_room(s, 8, 12);
    for (i = 0; i < 36; i++) s->corner[3 * s->elements + i] = first + faces[i];
    for (i = 0; i < 8; i++)
        s->x[s->vertices++] = front_v3((i & 1) * wide * MEMBRANE_DX, (i >> 1 & 1) * wide * MEMBRANE_DX,
            (i >> 2) * high * MEMBRANE_DX);
    s->elements += 12;
}

TEST_FN fsi_membrane *membrane_make(const fsi_membrane_desc *d)
{
    fsi_membrane *m = NULL;
    if (!CHECK(fsi_membrane_create(&m, d) == FSI_OK)) printf("   %s\n", d->context ? d->context->error.message : "");
    return m;
}

TEST_FN int membrane_step(fsi_membrane *m, double dt)
{
    const int good = fsi_membrane_step(m, (fsi_real)dt) == FSI_OK;
    if (!CHECK(good)) printf("   %s\n", fsi_membrane_error(m)->message);
    return good;
}

/* (Second moment of the volume along the last axis - along x) over their sum, about the centre. */
TEST_FN double membrane_stretch(const fsi_membrane *m)
{
    const fsi_front *f = m->front;
    double at[3] = { 0, 0, 0 }, second[3] = { 0, 0, 0 }, volume = 0;
    int t, i, a;
    for (t = 0; t < f->element_count; t++) {
        const int *c = f->elements + f->dim * t;
        double x[3][3], v, sum[3] = { 0, 0, 0 };
        for (i = 0; i < f->dim; i++) fsi__d3_put(x[i], fsi__d3_of(f->position[c[i]]));
        v = f->dim == 2 ? -(x[0][0] * x[1][1] - x[1][0] * x[0][1]) / 2
            : fsi__d3_dot(fsi__d3_at(x[0]), fsi__d3_cross(fsi__d3_at(x[1]), fsi__d3_at(x[2]))) / 6;
        volume += v;
        for (a = 0; a < f->dim; a++) {
            double squares = 0;
            for (i = 0; i < f->dim; i++) {
                sum[a] += x[i][a];
                squares += x[i][a] * x[i][a];
            }
            at[a] += v * sum[a] / (f->dim + 1);
            second[a] += v * (squares + sum[a] * sum[a]) / ((f->dim + 1) * (f->dim + 2));
        }
    }
    for (a = 0; a < f->dim; a++) second[a] -= at[a] * at[a] / volume;
    return (second[f->dim - 1] - second[0]) / (second[f->dim - 1] + second[0]);
}

/* Angular frequency of a quantity that swings about 0 with the steps of length dt: from its first to its last zero. */
typedef struct membrane_swing { double first, last, before, time; int zeros; } membrane_swing;
TEST_FN void membrane_swings(membrane_swing *s, double x, double dt)
{
    s->time += dt;
    if (s->time > 1.5 * dt && (x > 0) != (s->before > 0)) {
        s->last = s->time - dt * x / (x - s->before);
        if (s->zeros++ == 0) s->first = s->last;
    }
    s->before = x;
}
TEST_FN double membrane_frequency(const membrane_swing *s)
{
    return s->zeros > 1 ? FSI_PI * (s->zeros - 1) / (s->last - s->first) : 0;
}

#endif
