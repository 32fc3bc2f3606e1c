/* membrane_look.h - scenes of fsi_membrane.h in 2D: the liquid within a closed line.
   SPDX-License-Identifier: MIT

   Include it after kit.h and fsi_membrane.h. */
#ifndef FSI_KIT_MEMBRANE_LOOK_H
#define FSI_KIT_MEMBRANE_LOOK_H

enum { EX__BANDS = 800, EX__CROSSINGS = 64 }; /* bands that fill the liquid's height; crossings of a band */

/* Places x, in order, where a line at height y crosses the surface. Returns their number, at most EX__CROSSINGS. */
static int ex__crossings(const fsi_front *f, double y, double *x)
{
    int t, k, count = 0;
    for (t = 0; t < f->element_count && count < EX__CROSSINGS; t++) {
        const fsi_vec3 p = f->position[f->elements[2 * t]], q = f->position[f->elements[2 * t + 1]];
        double at;
        if (((double)p.y > y) == ((double)q.y > y)) continue;
        at = (double)p.x + (y - (double)p.y) * (double)(q.x - p.x) / (double)(q.y - p.y);
        for (k = count++; k > 0 && x[k - 1] > at; k--) x[k] = x[k - 1];
        x[k] = at;
    }
    return count;
}

/* Fills what the surface encloses, in bands, and draws the surface as a line. */
EX_FN void ex_draw_flat_liquid(ex_scene *s, const fsi_front *f, uint32_t rgb, uint32_t line)
{
    fsi_box3 all = fsi_box3_empty();
    double low, high;
    int band, k, t;
    for (k = 0; k < f->vertex_count; k++) all = fsi_box3_grow(all, f->position[k]);
    low = (double)all.lo.y;
    high = ((double)all.hi.y - low) / EX__BANDS;
    for (band = 0; band < EX__BANDS; band++) {
        static const int corner[6] = { 0, 1, 2, 0, 2, 3 };
        const double y = low + (band + 0.5) * high;
        double x[EX__CROSSINGS];
        const int count = ex__crossings(f, y, x);
        for (k = 0; k + 1 < count; k += 2) {
            fsi_vec3 v[4];
            for (t = 0; t < 4; t++)
                v[t] = fsi_v3((fsi_real)x[k + (t == 1 || t == 2)], (fsi_real)(y + (t < 2 ? -0.5 : 0.5) * high), 0);
            ex_draw_mesh(s, v, NULL, 4, corner, 2, rgb);
        }
    }
    for (t = 0; t < f->element_count; t++)
        ex_draw_line(s, f->position[f->elements[2 * t]], f->position[f->elements[2 * t + 1]], 2, line);
}

#endif
