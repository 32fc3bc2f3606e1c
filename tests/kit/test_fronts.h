/* test_fronts.h - closed surfaces for tests of fsi_front.h, and what must hold of any.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_FRONTS_H
#define FSI_TEST_FRONTS_H

#include "test.h"
#include "../../fsi_front.h"

typedef struct front_shape {
    int dim, vertices, elements;
    fsi_vec3 *x;
    int *corner;
} front_shape;

TEST_FN fsi_vec3 front_v3(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }

TEST_FN void front_room(front_shape *s, int vertices, int elements)
{
    s->x = (fsi_vec3 *)realloc(s->x, (size_t)(s->vertices + vertices) * sizeof *s->x);
    s->corner = (int *)realloc(s->corner, (size_t)((s->elements + elements) * s->dim) * sizeof *s->corner);
}

/* A sphere of an octahedron whose faces are cut in n x n triangles, stretched, or inside out (sign -1). */
TEST_FN void front_add_ball(front_shape *s, fsi_vec3 center, fsi_vec3 radius, int n, int sign)
{
    const int first = s->vertices, rows = 2 * n + 1;
    int i, j;
    front_room(s, 4 * n * n + 2, 8 * n * n);
    for (i = 0; i < rows; i++) { /* circles of 4 m vertices from pole to pole */
        const int m = i <= n ? i : 2 * n - i, count = m ? 4 * m : 1;
        const double polar = FSI_PI * i / (2 * n);
        for (j = 0; j < count; j++) {
            const double a = 2 * FSI_PI * j / count;
            s->x[s->vertices++] = front_v3((double)center.x + (double)radius.x * sin(polar) * cos(a),
                (double)center.y + (double)radius.y * sin(polar) * sin(a),
                (double)center.z + (double)radius.z * cos(polar));
        }
    }
    for (i = 0; i < 2 * n; i++) { /* strips between circles, a quarter at a time */
        const int m0 = i <= n ? i : 2 * n - i, m1 = i + 1 <= n ? i + 1 : 2 * n - i - 1, up = m1 > m0;
        const int low = up ? m0 : m1, high = up ? m1 : m0;
        const int at0 = first + (i == 0 ? 0 : i <= n ? 1 + 2 * i * (i - 1) : 4 * n * n + 2 - 1 - 2 * m0 * (m0 + 1));
        const int at1 = at0 + (m0 ? 4 * m0 : 1), a = up ? at0 : at1, b = up ? at1 : at0;
        int q;
        for (q = 0; q < 4; q++)
            for (j = 0; j < high; j++) {
                const int b0 = b + (q * high + j) % (4 * high), b1 = b + (q * high + j + 1) % (4 * high);
                const int a0 = low ? a + (q * low + j) % (4 * low) : a;
                int *c = s->corner + 3 * s->elements++, k;
                c[0] = a0;
                c[1] = up == (sign > 0) ? b0 : b1;
                c[2] = up == (sign > 0) ? b1 : b0;
                if (j == high - 1) continue;
                c += 3;
                s->elements++;
                c[0] = b1;
                c[1] = low ? a + (q * low + j + 1) % (4 * low) : a;
                c[2] = a0;
                if (up != (sign > 0)) { k = c[1]; c[1] = c[2]; c[2] = k; }
            }
    }
}

TEST_FN void front_add_torus(front_shape *s, double big, double tube, int n, int m)
{
    const int first = s->vertices;
    int i, j;
    front_room(s, n * m, 2 * n * m);
    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++) {
            const double a = 2 * FSI_PI * i / n, b = 2 * FSI_PI * j / m, r = big + tube * cos(b);
            const int p = first + i * m + j, q = first + (i + 1) % n * m + j, p1 = first + i * m + (j + 1) % m,
                q1 = first + (i + 1) % n * m + (j + 1) % m;
            int *c = s->corner + 3 * s->elements;
            s->x[s->vertices++] = front_v3(r * cos(a), r * sin(a), tube * sin(b));
            c[0] = p; c[1] = q; c[2] = q1;
            c[3] = p; c[4] = q1; c[5] = p1;
            s->elements += 2;
        }
}

/* In 2D: a circle, clockwise, or counter-clockwise with sign -1. */
TEST_FN void front_add_circle(front_shape *s, fsi_vec3 center, double radius, int n, int sign)
{
    const int first = s->vertices;
    int i;
    front_room(s, n, n);
    for (i = 0; i < n; i++) {
        const double a = -sign * 2 * FSI_PI * i / n;
        s->corner[2 * s->elements] = s->vertices;
        s->corner[2 * s->elements++ + 1] = first + (i + 1) % n;
        s->x[s->vertices++] = front_v3((double)center.x + radius * cos(a), (double)center.y + radius * sin(a), 0);
    }
}

/* A face of a box: n0 x n1 squares of two triangles, from a corner along the edges e0 and e1, whose cross product
   points outwards; vertices that are there are taken. */
TEST_FN void front_add_face(front_shape *s, int first, fsi_vec3 corner, fsi_vec3 e0, int n0, fsi_vec3 e1, int n1)
{
    int *at = (int *)malloc((size_t)((n0 + 1) * (n1 + 1)) * sizeof *at), i, j, k;
    front_room(s, (n0 + 1) * (n1 + 1), 2 * n0 * n1);
    for (j = 0; j <= n1; j++)
        for (i = 0; i <= n0; i++) {
            const fsi_vec3 x = fsi_v3_madd(fsi_v3_madd(corner, (fsi_real)i / (fsi_real)n0, e0),
                (fsi_real)j / (fsi_real)n1, e1);
            for (k = first; k < s->vertices; k++)
                if ((double)fsi_v3_norm(fsi_v3_sub(s->x[k], x)) < 1e-3) break;
            if (k == s->vertices) s->x[s->vertices++] = x;
            at[j * (n0 + 1) + i] = k;
        }
    for (j = 0; j < n1; j++)
        for (i = 0; i < n0; i++) {
            const int a = j * (n0 + 1) + i, c[6] = { at[a], at[a + 1], at[a + n0 + 2], at[a], at[a + n0 + 2],
                at[a + n0 + 1] };
            memcpy(s->corner + 3 * s->elements, c, sizeof c);
            s->elements += 2;
        }
    free(at);
}

/* A plate of 2 half x 2 half x thick around the origin, in 2D of 2 half x thick, with edges of about 1. */
TEST_FN void front_add_plate(front_shape *s, double half, double thick)
{
    const int n = (int)(2 * half + 0.5), m = (int)ceil(thick - 0.2), first = s->vertices;
    const double z = thick / 2;
    int i;
    if (s->dim == 3) {
        const fsi_vec3 a = front_v3(-half, -half, -z), b = front_v3(half, half, z), x = front_v3(2 * half, 0, 0),
            y = front_v3(0, 2 * half, 0), t = front_v3(0, 0, thick);
        front_add_face(s, first, a, y, n, x, n);
        front_add_face(s, first, a, x, n, t, m);
        front_add_face(s, first, a, t, m, y, n);
        front_add_face(s, first, b, fsi_v3_scale(x, -1), n, fsi_v3_scale(y, -1), n);
        front_add_face(s, first, b, fsi_v3_scale(t, -1), m, fsi_v3_scale(x, -1), n);
        front_add_face(s, first, b, fsi_v3_scale(y, -1), n, fsi_v3_scale(t, -1), m);
        return;
    }
    front_room(s, 2 * (n + m), 2 * (n + m));
    for (i = 0; i < n; i++) s->x[s->vertices++] = front_v3(-half + 2 * half * i / n, z, 0);
    for (i = 0; i < m; i++) s->x[s->vertices++] = front_v3(half, z - thick * i / m, 0);
    for (i = 0; i < n; i++) s->x[s->vertices++] = front_v3(half - 2 * half * i / n, -z, 0);
    for (i = 0; i < m; i++) s->x[s->vertices++] = front_v3(-half, -z + thick * i / m, 0);
    for (i = 0; i < 2 * (n + m); i++, s->elements++) {
        s->corner[2 * s->elements] = first + i;
        s->corner[2 * s->elements + 1] = first + (i + 1) % (2 * (n + m));
    }
}

TEST_FN void front_free(front_shape *s)
{
    free(s->x);
    free(s->corner);
}

TEST_FN fsi_front_desc front_desc(const front_shape *s, double length)
{
    fsi_front_desc d = fsi_front_default_desc();
    d.dim = s->dim;
    d.vertices = s->x;
    d.vertex_count = s->vertices;
    d.elements = s->corner;
    d.element_count = s->elements;
    d.length = (fsi_real)length;
    return d;
}

TEST_FN int front_by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Edges (2D: vertices) that do not belong to two elements, in opposite directions. */
TEST_FN int front_open_edges(const fsi_front *f)
{
    const int k = f->dim, n = k * f->element_count;
    uint64_t *e = (uint64_t *)malloc(((size_t)n + 1) * sizeof *e);
    int i, bad = n & 1;
    for (i = 0; i < n; i++) {
        const uint64_t a = (uint64_t)f->elements[i], b = (uint64_t)f->elements[i / k * k + (i + 1) % k];
        if (k == 3) e[i] = a < b ? (a << 31 | b) << 1 : (b << 31 | a) << 1 | 1;
        else e[i] = a << 1 | (uint64_t)(i & 1);
    }
    qsort(e, (size_t)n, sizeof *e, front_by_value);
    for (i = 0; i + 1 < n; i += 2) bad += e[i] + 1 != e[i + 1] || e[i] & 1 || (i + 2 < n && e[i + 2] >> 1 == e[i] >> 1);
    free(e);
    return bad;
}

/* Closed, indices in range, all vertices used, ids growing, pieces connected to themselves alone; finite. */
TEST_FN void front_check_sound(const fsi_front *f)
{
    unsigned char *used = (unsigned char *)calloc((size_t)f->vertex_count + 1, 1);
    int i, bad = 0;
    CHECK(front_open_edges(f) == 0);
    for (i = 0; i < f->dim * f->element_count; i++) {
        bad += f->elements[i] < 0 || f->elements[i] >= f->vertex_count;
        if (!bad) used[f->elements[i]] = 1;
    }
    for (i = 0; i < f->vertex_count; i++) {
        bad += !used[i] || (i > 0 && f->id[i] <= f->id[i - 1]);
        bad += !fsi_v3_is_finite(f->position[i]) || !fsi_v3_is_finite(f->velocity[i]);
    }
    for (i = 0; i < f->element_count; i++) bad += f->piece_of[i] < 0 || f->piece_of[i] >= f->piece_count;
    CHECK(bad == 0);
    free(used);
}

/* Sum of an attribute. */
TEST_FN double front_amount(const fsi_front *f, int j)
{
    double sum = 0;
    int i;
    for (i = 0; i < f->vertex_count; i++) sum += (double)f->attribute[i * f->desc.attribute_count + j];
    return sum;
}

/* Areas of vertices. */
TEST_FN double *front_areas(const fsi_front *f)
{
    double *area = (double *)calloc((size_t)f->vertex_count + 1, sizeof *area);
    int t, i;
    for (t = 0; t < f->element_count; t++) {
        const int *c = f->elements + f->dim * t;
        const fsi_vec3 a = f->position[c[0]], b = f->position[c[1]];
        const double s = f->dim == 2 ? (double)fsi_v3_norm(fsi_v3_sub(b, a))
            : (double)fsi_v3_norm(fsi_v3_cross(fsi_v3_sub(b, a), fsi_v3_sub(f->position[c[f->dim - 1]], a))) / 2;
        for (i = 0; i < f->dim; i++) area[c[i]] += s / f->dim;
    }
    return area;
}

#endif
