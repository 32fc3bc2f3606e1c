/* couple_flat.h - pictures of the 2D examples of fsi_couple.h: filled liquid with its outline, points of the solid as
   dots.
   SPDX-License-Identifier: MIT

   Include it after kit.h. */
#ifndef FSI_STUDY_COUPLE_FLAT_H
#define FSI_STUDY_COUPLE_FLAT_H

#include "../../examples/kit/kit.h"
#include "../../fsi_couple.h"

/* The whole box, `size` pixels high, one picture of a row of `count`, the index-th from the left. */
EX_FN void ex_flat_draw(ex_image *im, const fsi_couple *s, int size, int count, int index, const char *text)
{
    const fsi_levelset *l = s->liquid;
    const double dx = (double)l->desc.dx, scale = size / (l->desc.n[1] * dx);
    const int width = im->width / count, left = index * width;
    int i, j;
    for (j = 0; j < size; j++) for (i = 0; i < width; i++) {
        /* in pixels */
        const double phi =
            scale * (double)fsi_grid_sample_spline(
                        l->phi, fsi_v3((fsi_real)((i + 0.5) / scale), (fsi_real)((size - j - 0.5) / scale), 0), NULL);
        const double inside = fmin(fmax(0.5 - phi, 0), 1), edge = fmin(fmax(1.9 - fabs(phi + 1), 0), 1);
        ex_rect(im, left + i, j, left + i + 1, j + 1, 0x7fb2dd, inside);
        ex_rect(im, left + i, j, left + i + 1, j + 1, 0x1f4e79, edge);
    }
    for (i = 0; i < s->shell->vertex_count; i++) {
        const fsi_vec3 x = s->shell->position[i];
        ex_disc(im, left + scale * (double)x.x, size - scale * (double)x.y, fmax(2, 0.22 * dx * scale), 0xc8342a);
    }
    if (index > 0) ex_line(im, left, 0, left, size, 1, 0xc4ccd4);
    ex_text(im, left + 10, 22, 10, EX_LEFT, 0x3a4550, text);
}

#endif /* FSI_STUDY_COUPLE_FLAT_H */
