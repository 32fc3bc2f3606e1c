/* couple_look.h - what several examples of fsi_couple.h look at: a solid that liquid rings, liquid under a sheet or one
   through it.
   SPDX-License-Identifier: MIT

   Include it after kit.h. */
#ifndef FSI_KIT_COUPLE_LOOK_H
#define FSI_KIT_COUPLE_LOOK_H

#include "kit.h"
#include "couple_tally.h"
#include "levelset_tally.h"

/* Liquid rings the point x in the slice of cells across the x axis: from the air there, over cells of air that share a
   side, no way leads out of the box. */
EX_FN int ex_is_ringed(const fsi_levelset *s, fsi_vec3 x)
{
    const fsi_grid *g = s->grid;
    const double dx = (double)g->dx;
    const int ny = g->n[1], nz = g->n[2], i = (int)floor((double)x.x / dx),
        start = (int)floor((double)x.z / dx) * ny + (int)floor((double)x.y / dx);
    int *queue, head = 0, tail = 0, out = 0;
    unsigned char *seen;
    if (start < 0 || start >= ny * nz) return 0;
    queue = (int *)ex_alloc(NULL, (size_t)(ny * nz), sizeof *queue);
    seen = (unsigned char *)ex_alloc(NULL, (size_t)(ny * nz), 1);
    memset(seen, 0, (size_t)(ny * nz));
    seen[start] = 1;
    for (queue[tail++] = start; head < tail && !out;) {
        const int at = queue[head++], y = at % ny, z = at / ny;
        int k;
        out = y == 0 || y == ny - 1 || z == 0 || z == nz - 1;
        for (k = 0; k < 4 && !out; k++) {
            const int b = y + (k == 0) - (k == 1), c = z + (k == 2) - (k == 3), next = c * ny + b;
            if (seen[next] || (double)fsi_grid_at(s->phi, i, b, c) < 0) continue;
            seen[next] = 1;
            queue[tail++] = next;
        }
    }
    free(queue);
    free(seen);
    return !out;
}

/* Share of the liquid in components that reach higher than z. */
EX_FN double ex_share_above(const fsi_levelset *s, double z)
{
    double all = 0, above = 0;
    int k;
    for (k = 0; k < s->component_count; k++) {
        const fsi_grid_component *c = &s->component[k].shape;
        all += c->volume;
        if ((double)c->box.hi.z > z) above += c->volume;
    }
    return all > 0 ? above / all : 0;
}

/* Share of the liquid in its largest component. */
EX_FN double ex_share_of_largest(const fsi_levelset *s)
{
    double all = 0, most = 0;
    int k;
    for (k = 0; k < s->component_count; k++) {
        all += s->component[k].shape.volume;
        most = fmax(most, s->component[k].shape.volume);
    }
    return all > 0 ? most / all : 0;
}

/* A coordinate of x. */
EX_FN double ex__along(fsi_vec3 x, int axis) { return (double)(axis == 0 ? x.x : axis == 1 ? x.y : x.z); }

/* Cells of liquid under a cloth: their centres look up through a triangle, before they see the sky. */
EX_FN int ex_count_below(const fsi_levelset *liquid, const fsi_shell *s)
{
    const fsi_grid *g = liquid->grid;
    const double dx = (double)g->dx;
    int t, k, a, count = 0;
    for (t = 0; t < s->triangle_count; t++) {
        const fsi_vec3 *p[3];
        double lo[2], hi[2], area;
        int i, j, n[2][2];
        for (k = 0; k < 3; k++) p[k] = &s->position[s->triangles[3 * t + k]];
        for (a = 0; a < 2; a++) {
            const double x = ex__along(*p[0], a), y = ex__along(*p[1], a), z = ex__along(*p[2], a);
            lo[a] = fmin(x, fmin(y, z));
            hi[a] = fmax(x, fmax(y, z));
            n[a][0] = (int)ceil(lo[a] / dx - 0.5);
            n[a][1] = (int)floor(hi[a] / dx - 0.5);
        }
        area = (double)((p[1]->x - p[0]->x) * (p[2]->y - p[0]->y) - (p[2]->x - p[0]->x) * (p[1]->y - p[0]->y));
        for (j = n[1][0]; j <= n[1][1]; j++) for (i = n[0][0]; i <= n[0][1]; i++) {
            const double x = (i + 0.5) * dx, y = (j + 0.5) * dx;
            double b[3], z;
            int top, c;
            for (k = 0; k < 3; k++) {
                const fsi_vec3 *q = p[(k + 1) % 3], *r = p[(k + 2) % 3];
                b[k] = (((double)q->x - x) * ((double)r->y - y) - ((double)r->x - x) * ((double)q->y - y)) / area;
            }
            if (b[0] < 0 || b[1] < 0 || b[2] < 0) continue;
            z = b[0] * (double)p[0]->z + b[1] * (double)p[1]->z + b[2] * (double)p[2]->z;
            top = (int)floor(z / dx - 0.5);
            for (c = 0; c <= top && c < g->n[2]; c++) count += (double)fsi_grid_at(liquid->phi, i, j, c) < 0;
        }
    }
    return count;
}

/* Pairs of liquid cells beside each other along an axis with a triangle between their centres. */
EX_FN int ex__count_pierced_along(const fsi_levelset *s, const fsi_vec3 *p, int axis)
{
    const fsi_grid *g = s->grid;
    const double dx = (double)g->dx;
    const int u = (axis + 1) % 3, v = (axis + 2) % 3;
    double x[3][3], lo[2], hi[2], area;
    int k, i, j, cell[3], count = 0;
    for (k = 0; k < 3; k++) {
        x[k][0] = ex__along(p[k], u) / dx - 0.5;
        x[k][1] = ex__along(p[k], v) / dx - 0.5;
        x[k][2] = ex__along(p[k], axis) / dx - 0.5;
    }
    area = (x[1][0] - x[0][0]) * (x[2][1] - x[0][1]) - (x[2][0] - x[0][0]) * (x[1][1] - x[0][1]);
    for (k = 0; k < 2; k++) {
        lo[k] = fmax(0, ceil(fmin(x[0][k], fmin(x[1][k], x[2][k]))));
        hi[k] = fmin(g->n[k ? v : u] - 1, floor(fmax(x[0][k], fmax(x[1][k], x[2][k]))));
    }
    for (j = (int)lo[1]; j <= (int)hi[1]; j++) for (i = (int)lo[0]; i <= (int)hi[0]; i++) {
        double b[3], at = 0;
        for (k = 0; k < 3; k++) {
            const double *q = x[(k + 1) % 3], *r = x[(k + 2) % 3];
            b[k] = ((q[0] - i) * (r[1] - j) - (r[0] - i) * (q[1] - j)) / area;
            at += b[k] * x[k][2];
        }
        if (!(b[0] >= 0 && b[1] >= 0 && b[2] >= 0) || !(at >= 0 && at < g->n[axis] - 1)) continue;
        cell[u] = i;
        cell[v] = j;
        cell[axis] = (int)at;
        if (!((double)fsi_grid_at(s->phi, cell[0], cell[1], cell[2]) < 0)) continue;
        cell[axis]++;
        count += (double)fsi_grid_at(s->phi, cell[0], cell[1], cell[2]) < 0;
    }
    return count;
}

/* Pairs of neighbouring liquid cells that a triangle divides: 0 as long as no liquid is one through the sheet. */
EX_FN int ex_count_pierced(const fsi_levelset *s, const fsi_vec3 *position, const int *triangles, int triangle_count)
{
    int t, k, count = 0;
    for (t = 0; t < triangle_count; t++) {
        fsi_vec3 p[3];
        for (k = 0; k < 3; k++) p[k] = position[triangles[3 * t + k]];
        for (k = 0; k < 3; k++) count += ex__count_pierced_along(s, p, k);
    }
    return count;
}

#endif /* FSI_KIT_COUPLE_LOOK_H */
