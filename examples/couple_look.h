/* couple_look.h - what several examples of fsi_couple.h look at: a solid that is ringed by liquid, liquid that is one through a sheet.
   SPDX-License-Identifier: MIT

   Include it after example.h. */
#ifndef FSI_EXAMPLE_COUPLE_LOOK_H
#define FSI_EXAMPLE_COUPLE_LOOK_H

#include "example.h"
#include "../fsi_levelset.h"

/* Liquid rings the point x in the slice of cells across the x axis: from the air there, over cells of air that share a side, no way leads out of the box. */
EX_FN int ex_is_ringed(const fsi_levelset *s, fsi_vec3 x)
{
    const fsi_grid *g = s->grid;
    const double dx = (double)g->dx;
    const int ny = g->n[1], nz = g->n[2], i = (int)floor((double)x.x / dx), start = (int)floor((double)x.z / dx) * ny + (int)floor((double)x.y / dx);
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

#endif /* FSI_EXAMPLE_COUPLE_LOOK_H */
