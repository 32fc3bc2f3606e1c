/* fsi_sph_tension.h - surface tension of a liquid of particles: normals, curvature and areas of its surface.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_sph.h includes this file. Its front page says how a liquid gets surface tension:

      fsi_sph_desc d = fsi_sph_default_desc();
      d.surface_tension = 0.0728f;                  // [N/m] of water
      ...
      fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
      o.mesh = leaf; o.contact_angle = 160;         // degrees, through the liquid: water runs off

   WHAT IS IN HERE (search for >>), all of it for fsi's own headers
      >>stages         the passes, a particle at a time; what they share
      >>surface tension   how
   MACROS: those of fsi.h.
   UNITS: SI; lengths in pair sums in units of the support H.
   PRECISION: pair arithmetic in lanes (float), curvatures and areas in double.
*/
#ifndef FSI_SPH_TENSION_H
#define FSI_SPH_TENSION_H

#include "fsi_sph_walls.h"

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* A connected set of surface particles: sums of their accelerations by surface tension, of their areas, and of the
   contact weights near walls. */
typedef struct fsi__drop { double sum[3], area, contact; } fsi__drop;

/* One substep. Arrays in rank order, but pull and line, which `order` maps to the particles'. */
typedef struct fsi__tension {
    int dim, n;
    double h, dx;               /* support, spacing [m] */
    double scale;               /* sigma/(rho0 H^2) [1/s^2 H] */
    const fsi__sph_kernel *kernel;
    fsi_real wall_factor;
    const fsi__obstacles *obstacles;
    const int *order, *first, *size, *list; /* neighbours, padded */
    const fsi__record *place;   /* in units of H */
    const int *slot;            /* rank -> wall, -1: none */
    fsi__sph_wall *wall;
    fsi__lane4 *normal;         /* m n of the surface through a particle; then x: m kappa, y: m */
    fsi__lane4 *sheet;          /* the same smoothed; w: m, then the area over dx^(dim-1) */
    int *drop;                  /* surface particle -> representative of its connected set, -1: none */
    fsi__drop *drops;
    fsi_vec3 *pull;             /* acceleration by surface tension [m/s^2] */
    fsi_vec3 *line;             /* velocity gained from a contact line [m/s] */
} fsi__tension;

/* The passes, each after the one before is complete for all ranks. */
FSI_API void fsi__tension_find_normal(const fsi__tension *t, int r);
FSI_API void fsi__tension_smooth_normal(const fsi__tension *t, int r);
FSI_API void fsi__tension_find_curvature(const fsi__tension *t, int r);
FSI_API void fsi__tension_pull(const fsi__tension *t, int r);
/* Then, on one thread: connected sets of surface particles, and the sums of their accelerations. */
FSI_API void fsi__tension_find_drops(const fsi__tension *t);
FSI_API void fsi__tension_sum_drops(const fsi__tension *t);
FSI_API double fsi__tension_contact_share(const fsi__tension *t, int r); /* weight of a contact line at a rank */
FSI_API int fsi__sph_main_part(const fsi__sph_wall *w); /* the obstacle with the largest part of a particle's wall */

#endif /* FSI_SPH_TENSION_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_SPH_TENSION_IMPLEMENTATION
#define FSI_SPH_TENSION_IMPLEMENTATION
#endif
#ifdef FSI_SPH_TENSION_IMPLEMENTATION
#ifndef FSI_SPH_TENSION_IMPLEMENTATION_DONE
#define FSI_SPH_TENSION_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_sph_walls.h"

FSI__STRICT_BEGIN

/* ---- >>surface tension ----------------------------------------------------------------------------------------

   The force on a surface element dA is sigma kappa n dA, n the normal inward, kappa = -div n the curvature
   (Brackbill's continuum surface force). Four sums over the neighbours make it, at the places x0 where the substep
   starts, on its lists:

      normal      N_i = V sum_j grad W_ij + the integral over the solid, as liquid; m_i = (|N_i| - 0.4)+^2,
                  n_i = N_i/|N_i|
      smoothed    n_i <- sum_j m_j n_j w_ij, to length 1; near a wall turned to the contact angle (below)
      curvature   kappa_i = (dim-1) sum_j m_j t.(n_i - n_j) w'_ij / sum_j m_j t.t w'_ij,  t = the part of
                  x_j - x_i along the surface
      force       a_i = sigma kappa_i A_i n_i/(rho0 V), with kappa smoothed as n was; the areas
                  A_i = s V m_i / sum_j m_j w_ij.

   The areas of the particles of a surface sum to its area; s follows from a lattice. The forces in a connected set of
   surface particles must sum to zero: the remainder is subtracted, distributed by area. Where the set touches a wall,
   the sum is the force of the contact line, which the wall receives. docs/sph.md explains why pairwise forces are not
   used. */

#define FSI__SPH_CURVATURE 1.0 /* largest curvature, over (dim-1)/dx */
/* smallest one, times H: in hollows the force points outward, and could detach surface particles from those below */
#define FSI__SPH_HOLLOW -0.3

/* What a pair needs: difference in units of H, 1 - q^2 or 0. */
typedef struct fsi__tension_pair { fsi__f8 x, y, z, t; } fsi__tension_pair;

FSI_FN fsi__tension_pair fsi__tension_pair_at(const fsi__tension *t, const int *list, int r)
{
    const fsi__f8 unit = fsi__f8_set((fsi__lane)FSI__COORD_UNIT);
    fsi__tension_pair p;
    fsi__f8 w;
    fsi__f8_gather(t->place, list, &t->place[r], &p.x, &p.y, &p.z, &w);
    p.x = fsi__f8_mul(p.x, unit);
    p.y = fsi__f8_mul(p.y, unit);
    p.z = fsi__f8_mul(p.z, unit);
    p.t = fsi__f8_max(fsi__f8_sub(fsi__f8_set(1), fsi__f8_dot(p.x, p.y, p.z, p.x, p.y, p.z)), fsi__f8_set(0));
    return p;
}

/* sum_j (1-q^2)^3 a_j over the neighbours of rank r; w: how often too much the padding counts r itself, which belongs
   to it once. */
FSI_FN fsi__lane4 fsi__tension_smoothed(const fsi__tension *t, const fsi__lane4 *a, int r)
{
    const int *list = t->list + t->first[r], size = fsi__padded(t->size[r]);
    fsi__lane_sums sum = fsi__no_lane_sums();
    fsi__lane4 out;
    int k;
    for (k = 0; k < size; k += FSI_LANES) {
        const fsi__tension_pair p = fsi__tension_pair_at(t, list + k, r);
        fsi__f8 x, y, z;
        fsi__f8_gather_vectors(a, list + k, &x, &y, &z);
        fsi__add_weighted(&sum, fsi__f8_mul(fsi__f8_mul(p.t, p.t), p.t), x, y, z);
    }
    out = fsi__fold(&sum);
    out.w = (fsi__lane)(size - t->size[r] - 1);
    return out;
}

/* The colour's slope that a half-space of liquid at distance delta adds, over the slope of the boundary integral. */
static double fsi__tension_color_of_plane(int dim, double delta)
{
    double slope, t = 1 - delta * delta;
    fsi__sph_plane(dim, delta, &slope);
    if (!(slope > 1e-6)) return 0;
    return fsi__sph_color_c(dim) * (dim == 3 ? FSI_PI / 4 * t * t * t * t : 32.0 / 35 * t * t * t * sqrt(t)) / slope;
}

/* The wall of rank r where it is liquid's surface that is near it, else NULL. */
static fsi__sph_wall *fsi__tension_wall_near(const fsi__tension *t, int r)
{
    fsi__sph_wall *w = t->slot[r] >= 0 ? &t->wall[t->slot[r]] : NULL;
    return w && w->part_count > 0 && w->clear < 1 ? w : NULL;
}

FSI_API void fsi__tension_find_normal(const fsi__tension *t, int r)
{
    const int *list = t->list + t->first[r], size = fsi__padded(t->size[r]), dim = t->dim;
    const fsi__lane scale = (fsi__lane)(6 * fsi__sph_color_c(dim) * t->kernel->volume);
    const fsi__sph_wall *w = fsi__tension_wall_near(t, r);
    fsi__lane_sums sum = fsi__no_lane_sums();
    fsi__lane4 n;
    fsi__lane length, m;
    int k;
    for (k = 0; k < size; k += FSI_LANES) {
        const fsi__tension_pair p = fsi__tension_pair_at(t, list + k, r);
        fsi__add_weighted(&sum, fsi__f8_mul(p.t, p.t), p.x, p.y, p.z);
    }
    n = fsi__lane4_scale(fsi__fold(&sum), scale);
    if (w) n = fsi__lane4_madd(n, (fsi__lane)(1 / (double)t->wall_factor
        * fsi__tension_color_of_plane(dim, (double)w->clear)), fsi__lane4_from(w->g));
    length = (fsi__lane)sqrt((double)(n.x * n.x + n.y * n.y + n.z * n.z));
    m = (fsi__lane)fsi__sph_surface((double)length);
    n = fsi__lane4_scale(n, length > 0 ? m / length : 0);
    n.w = m;
    t->normal[r] = n;
}

/* Work of adhesion over that of cohesion at this contact angle [degrees], 0 to 1 (Young and Dupre). */
FSI__HOST_FN double fsi__wetting(fsi_real angle)
{
    return fmin(fmax((1 + fsi_cos((double)angle * (FSI_PI / 180))) / 2, 0), 1);
}

/* The wall's normal [into the liquid] at a particle and the mean wetting of its obstacles. */
static double fsi__tension_mean_wetting(const fsi__tension *t, const fsi__sph_wall *w, double n[3])
{
    const double length = sqrt((double)w->g[0] * (double)w->g[0] + (double)w->g[1] * (double)w->g[1] + (double)w->g[2]
        * (double)w->g[2]);
    double sum = 0, all = 0;
    int k;
    for (k = 0; k < w->part_count; k++) {
        const double g = sqrt((double)fsi__lane_norm2(w->part[k].g));
        sum += g * fsi__wetting(fsi__obstacle_at(t->obstacles, w->part[k].owner)->contact_angle);
        all += g;
    }
    for (k = 0; k < 3; k++) n[k] = length > 0 ? -(double)w->g[k] / length : 0;
    return all > 0 ? sum / all : 0;
}

/* At a wall with normal b the surface has the contact angle: n = tau sin(theta) - b cos(theta), tau its direction
   along the wall. This fades in over the distance H (as in Breinlinger et al. 2013). */
static void fsi__tension_turn_normal(const fsi__tension *t, const fsi__sph_wall *w, double n[3])
{
    double b[3], tau[3], cosine = 2 * fsi__tension_mean_wetting(t, w, b) - 1, sine = sqrt(1 - cosine * cosine),
        f = (double)w->clear, length;
    int k;
    for (k = 0; k < 3; k++) tau[k] = n[k] - fsi__sph_dot3(n, b) * b[k];
    length = sqrt(fsi__sph_dot3(tau, tau));
    if (!(length > 1e-3)) return; /* the surface is parallel to the wall: a film, or not in contact */
    for (k = 0; k < 3; k++) n[k] = f * n[k] + (1 - f) * (sine * tau[k] / length - cosine * b[k]);
}

FSI_API void fsi__tension_smooth_normal(const fsi__tension *t, int r)
{
    const fsi__sph_wall *w = fsi__tension_wall_near(t, r);
    const fsi__lane4 own = t->normal[r];
    fsi__lane4 sum;
    double n[3], length;
    int k;
    t->sheet[r] = fsi__lane4_make(0, 0, 0);
    if (!(own.w > 0)) return;
    sum = fsi__tension_smoothed(t, t->normal, r);
    n[0] = (double)sum.x - (double)sum.w * (double)own.x;
    n[1] = (double)sum.y - (double)sum.w * (double)own.y;
    n[2] = (double)sum.z - (double)sum.w * (double)own.z;
    length = sqrt(fsi__sph_dot3(n, n));
    for (k = 0; k < 3 && length > 0; k++) n[k] /= length;
    if (w) fsi__tension_turn_normal(t, w, n);
    length = sqrt(fsi__sph_dot3(n, n));
    length = length > 0 ? (double)own.w / length : 0;
    t->sheet[r] = fsi__lane4_make(n[0] * length, n[1] * length, n[2] * length);
    t->sheet[r].w = own.w;
}

/* Curvature [1/H] of the surface at rank r. t.n_i = 0 leaves -m_j t.n_j above. */
static fsi__lane fsi__tension_curvature_at(const fsi__tension *t, int r)
{
    const int *list = t->list + t->first[r], size = fsi__padded(t->size[r]);
    const fsi__lane4 *s = &t->sheet[r];
    const fsi__f8 nx = fsi__f8_set(s->x / s->w), ny = fsi__f8_set(s->y / s->w), nz = fsi__f8_set(s->z / s->w);
    const double most = FSI__SPH_CURVATURE * t->h / t->dx;
    fsi__f8 above = fsi__f8_set(0), below = above;
    double bend, length, c;
    int k;

    /* Sums over the neighbours, eight at a time, offsets projected to the tangent plane. */
    for (k = 0; k < size; k += FSI_LANES) {
        fsi__tension_pair p = fsi__tension_pair_at(t, list + k, r);
        fsi__f8 x, y, z, m, w = fsi__f8_mul(p.t, p.t), dn = fsi__f8_dot(p.x, p.y, p.z, nx, ny, nz);
        fsi__f8_gather_vectors(t->sheet, list + k, &x, &y, &z);
        m = fsi__f8_sqrt(fsi__f8_dot(x, y, z, x, y, z));
        p.x = fsi__f8_sub(p.x, fsi__f8_mul(dn, nx));
        p.y = fsi__f8_sub(p.y, fsi__f8_mul(dn, ny));
        p.z = fsi__f8_sub(p.z, fsi__f8_mul(dn, nz));
        above = fsi__f8_sub(above, fsi__f8_mul(w, fsi__f8_dot(p.x, p.y, p.z, x, y, z)));
        below = fsi__f8_add(below, fsi__f8_mul(fsi__f8_mul(w, m), fsi__f8_dot(p.x, p.y, p.z, p.x, p.y, p.z)));
    }

    /* Their quotient, at most the largest curvature that the spacing resolves. */
    bend = (double)fsi__f8_sum(above);
    length = (double)fsi__f8_sum(below);
    c = length > 0 ? bend / length : 0;
    return (fsi__lane)((t->dim - 1) * (c > most ? most : c < -most ? -most : c));
}

/* normal: m kappa, m, for the sums of the last pass. */
FSI_API void fsi__tension_find_curvature(const fsi__tension *t, int r)
{
    const fsi__lane m = t->sheet[r].w;
    t->normal[r] = fsi__lane4_make(m > 0 ? (double)(m * fsi__tension_curvature_at(t, r)) : 0, (double)m, 0);
}

/* Accelerations; sheet.w becomes the particle's area over dx^(dim-1), which is not read again. A wall covers
   part of the surface around it. */
FSI_API void fsi__tension_pull(const fsi__tension *t, int r)
{
    const double ratio = t->h / t->dx;
    const fsi__lane4 own = t->normal[r], n = t->sheet[r];
    const fsi__sph_wall *w = fsi__tension_wall_near(t, r);
    fsi__lane4 sum;
    double b, kappa, share, area, slope;
    t->pull[t->order[r]] = t->line[t->order[r]] = fsi_v3(0, 0, 0);
    if (!(n.w > 0)) return;
    sum = fsi__tension_smoothed(t, t->normal, r);
    b = (double)(sum.y - sum.w * own.y);
    kappa = (double)(sum.x - sum.w * own.x) / b;
    kappa = fmax(kappa, FSI__SPH_HOLLOW);
    if (w) b /= 1 - fsi__sph_plane(t->dim, (double)w->clear, &slope);
    area = share = t->kernel->sheet * (double)n.w / b;
    if (t->dim == 3) area *= 1 + t->kernel->depth * kappa / 2; /* the surface itself is larger */
    area *= t->scale * kappa / (double)n.w;
    t->sheet[r].w = (fsi__lane)(share / ratio);
    t->pull[t->order[r]] = fsi_v3((fsi_real)(area * (double)n.x), (fsi_real)(area * (double)n.y),
        (fsi_real)(area * (double)n.z));
}

static int fsi__drop_of(int *drop, int r)
{
    while (drop[r] != r) r = drop[r] = drop[drop[r]];
    return r;
}

/* Joins surface particles that are neighbours; the lowest rank represents each set. */
FSI_API void fsi__tension_find_drops(const fsi__tension *t)
{
    int r, k;
    for (r = 0; r < t->n; r++) {
        const int *list = t->list + t->first[r];
        t->drop[r] = t->sheet[r].w > 0 ? r : -1;
        if (t->drop[r] < 0) continue;
        memset(&t->drops[r], 0, sizeof t->drops[r]);
        for (k = 0; k < t->size[r]; k++) {
            int a, b;
            if (list[k] >= r || t->drop[list[k]] < 0) continue;
            a = fsi__drop_of(t->drop, list[k]);
            b = fsi__drop_of(t->drop, r);
            if (a < b) t->drop[b] = a;
            else t->drop[a] = b;
        }
    }
}

/* How much of a contact line is at rank r. */
FSI_API double fsi__tension_contact_share(const fsi__tension *t, int r)
{
    const fsi__sph_wall *w = fsi__tension_wall_near(t, r);
    return w ? (double)t->sheet[r].w * (1 - (double)w->clear) : 0;
}

FSI_API void fsi__tension_sum_drops(const fsi__tension *t)
{
    int r;
    for (r = 0; r < t->n; r++) {
        fsi__drop *d;
        if (t->drop[r] < 0) continue;
        t->drop[r] = fsi__drop_of(t->drop, r);
        d = &t->drops[t->drop[r]];
        fsi__sph_add3(d->sum, t->pull[t->order[r]]);
        d->area += (double)t->sheet[r].w;
        d->contact += fsi__tension_contact_share(t, r);
    }
}

/* The obstacle that has most of a particle's wall. */
FSI_API int fsi__sph_main_part(const fsi__sph_wall *w)
{
    fsi__lane most = -1;
    int k, best = 0;
    for (k = 0; k < w->part_count; k++) {
        if (!(fsi__lane_norm2(w->part[k].g) > most)) continue;
        most = fsi__lane_norm2(w->part[k].g);
        best = k;
    }
    return best;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
