/* couple_rain.h - drops of random places and sizes that fall into a scene of fsi_couple.h, one after the other.
   SPDX-License-Identifier: MIT

   Include it after kit.h. Fill in the first fields of an ex_rain, the rest 0; ex_rain_let lets a drop go where there is
   room. */
#ifndef FSI_STUDY_COUPLE_RAIN_H
#define FSI_STUDY_COUPLE_RAIN_H

#include "../../examples/kit/kit.h"
#include "../../fsi_couple.h"

typedef struct ex_rain {
    fsi_box3 centers;      /* where they begin [m] */
    double least, most;    /* their radii [m] */
    fsi_vec3 velocity;     /* [m/s] */
    uint32_t random;       /* state of the random numbers; not 0 */
    int drops;             /* so far */
    double volume;         /* of them all [m^3] */
} ex_rain;

/* The next random number in 0 .. 1: xorshift (Marsaglia 2003). */
EX_FN double ex_rain_random(ex_rain *r)
{
    r->random ^= r->random << 13;
    r->random ^= r->random >> 17;
    r->random ^= r->random << 5;
    return r->random / 4294967296.0;
}

/* Volume that all liquid is to have. */
EX_FN double ex_rain_target(const fsi_levelset *s)
{
    double sum = 0;
    int k;
    for (k = 0; k < s->component_count; k++) sum += s->component[k].target;
    return sum;
}

/* No liquid, by the boxes around its components, and no vertex is nearer to x than this. */
EX_FN int ex_rain_is_clear(const fsi_couple *s, fsi_vec3 x, double distance)
{
    int k;
    for (k = 0; k < s->liquid->component_count; k++) {
        const fsi_box3 b = s->liquid->component[k].shape.box;
        const fsi_vec3 closest = fsi_v3(fsi_min(fsi_max(x.x, b.lo.x), b.hi.x), fsi_min(fsi_max(x.y, b.lo.y), b.hi.y),
                                        fsi_min(fsi_max(x.z, b.lo.z), b.hi.z));
        if (!((double)fsi_v3_norm(fsi_v3_sub(x, closest)) > distance)) return 0;
    }
    for (k = 0; k < s->shell->vertex_count; k++)
        if (!((double)fsi_v3_norm(fsi_v3_sub(x, s->shell->position[k])) > distance)) return 0;
    return 1;
}

/* A drop, unless something is within three cells of where it would be. 1: it was let go. Small ones are more frequent
   than large ones. */
EX_FN int ex_rain_let(ex_app *app, ex_rain *r, fsi_couple *s)
{
    const fsi_vec3 size = fsi_v3_sub(r->centers.hi, r->centers.lo);
    const double a = ex_rain_random(r), b = ex_rain_random(r), c = ex_rain_random(r), d = ex_rain_random(r),
                 radius = r->least + (r->most - r->least) * d * d;
    const fsi_vec3 x =
        fsi_v3_add(r->centers.lo, fsi_v3((fsi_real)a * size.x, (fsi_real)b * size.y, (fsi_real)c * size.z));
    const double before = ex_rain_target(s->liquid);
    if (!ex_rain_is_clear(s, x, radius + 3 * (double)s->liquid->desc.dx)) return 0;
    ex_check(app, fsi_levelset_fill_sphere(s->liquid, x, (fsi_real)radius, r->velocity, NULL));
    r->drops++;
    r->volume += ex_rain_target(s->liquid) - before;
    return 1;
}

/* Largest |volume / target - 1| of a component of more than 100 cells. */
EX_FN double ex_rain_drop_error(const fsi_levelset *s)
{
    const double dx = (double)s->desc.dx;
    double most = 0;
    int k;
    for (k = 0; k < s->component_count; k++)
        if (s->component[k].target > 100 * dx * dx * dx)
            most = fmax(most, fabs(s->component[k].shape.volume / s->component[k].target - 1));
    return most;
}

#endif /* FSI_STUDY_COUPLE_RAIN_H */
