/* fsi_sph_viscosity.h - implicit viscosity of a liquid of particles: its operator, conjugate gradients by particle.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_sph.h includes this file. Its front page says how a liquid gets viscosity:

      fsi_sph_desc d = fsi_sph_default_desc();
      d.viscosity = 5;                              // [Pa s]: honey
      ...
      fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
      o.mesh = ramp; o.no_slip = 1;                 // 0: it slides

   WHAT IS IN HERE (search for >>), all of it for fsi's own headers
      >>stages         what the passes share, and the passes;  >>viscosity  how
   MACROS: those of fsi.h.
   UNITS: SI; lengths in pair sums in units of the support H.
   PRECISION: residuals in double, corrections in lanes (float).
*/
#ifndef FSI_SPH_VISCOSITY_H
#define FSI_SPH_VISCOSITY_H

#include "fsi_sph_walls.h"

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* A coupled body in the viscous solve. Six numbers: velocity and H times the rate of rotation [m/s]; momenta over m. */
typedef struct fsi__sph_body_drag {
    double before[6], v[6], d[6], p[6];
    double r[6];
    double block[6][6];      /* of the operator's diagonal, lower half */
} fsi__sph_body_drag;

/* A symmetric 3 x 3 matrix. */
typedef struct fsi__sph_block { fsi__lane xx, yy, zz, xy, xz, yz; } fsi__sph_block;

/* The viscous solve of one substep, rank order. Velocities in m/s, positions in m; allocated where there is
   viscosity. */
typedef struct fsi__sph_viscosity {
    double pair, drag;          /* weight of (1-q)(2-q), and of a wall's diagonal */
    double alpha, beta;
    double taken;               /* fraction of the residual that is added to the new velocity */
    int round;                  /* exact residuals so far */
    fsi_vec3 *x;                /* positions */
    double (*before)[3], (*v)[3]; /* velocities without viscosity, and with it */
    fsi__lane4 *d, *r, *p, *q;  /* correction of v, residual, direction, the operator on it */
    double (*last_v)[3];        /* v and d of the round before: v = last_v + last_d */
    fsi__lane4 *last_d;
    double (*room_v[2])[3];     /* v and d of alternate rounds; v of the first is `before` itself */
    fsi__lane4 *room_d[2];
    fsi__sph_block *inverse;    /* of the operator's diagonal blocks */
    fsi__sph_body_drag *body;   /* of the coupled bodies, by their index */
    double h;                   /* H [m] */
    int n;                      /* ranks */
    const int *first, *size, *list; /* neighbours, padded */
    const fsi__record *place;   /* in units of H */
    const int *slot;            /* rank -> wall, -1: none */
    fsi__sph_wall *wall;
} fsi__sph_viscosity;

/* The passes, for the particle of rank i; sum: partial sums of the ranks so far. */
/* Adds the last correction to v: r = v* - v + dt nu L v. Sums: |r|^2, |v + r - v*|^2, |v*|^2, impulse of the walls (3)
   [m/s]. */
FSI_API void fsi__sph_drag_residual(const fsi__sph_viscosity *o, int i, double *sum);
/* The first direction, p = z, z: r over the diagonal block. Sums: r.z, |r|^2, |v + d + r - v*|^2. */
FSI_API void fsi__sph_drag_first_turn(const fsi__sph_viscosity *o, int i, double *sum);
/* q = p - dt nu L p. Sum: p.q. */
FSI_API void fsi__sph_drag_apply(const fsi__sph_viscosity *o, int i, double *total);
/* d += alpha p, r -= alpha q. Sums: as of the first direction. */
FSI_API void fsi__sph_drag_advance(const fsi__sph_viscosity *o, int i, double *sum);
/* The next direction, p = z + beta p. */
FSI_API void fsi__sph_drag_turn(const fsi__sph_viscosity *o, int i);

#endif /* FSI_SPH_VISCOSITY_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_SPH_VISCOSITY_IMPLEMENTATION
#define FSI_SPH_VISCOSITY_IMPLEMENTATION
#endif
#ifdef FSI_SPH_VISCOSITY_IMPLEMENTATION
#ifndef FSI_SPH_VISCOSITY_IMPLEMENTATION_DONE
#define FSI_SPH_VISCOSITY_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_sph_walls.h"

FSI__STRICT_BEGIN

/* ---- >>viscosity ---------------------------------------------------------------------------------------------- */

/* Backward Euler, at the positions the substep starts from, before the pressure: after it, every substep would let
   the liquid slip by the dt^2 g that pressure leaves it (after Weiler et al., "A Physically Consistent Implicit
   Viscosity Solver for SPH Fluids", 2018):

      v = v* + dt nu L v,    (L v)_i = sum_j k_ij e_ij e_ij.(v_j - v_i) + sum_walls drag_i (v_wall - v_i),
      e_ij = (x_j - x_i)/r

   The pair forces are central and opposite: they keep linear and angular momentum, and leave rigid motion alone. With
   k ~ (1-q)(2-q) a settled liquid and a lattice, whose rows Weiler's weight favours, feel the same viscosity within
   7 % (docs/sph.md).

   drag: the solid continues the velocity linearly, to v_wall at its surface, so what lies at the distance s along the
   normal moves against x_i by (v_i - v_wall) s/d. Integrated over a plane that is about 2 I/d, I/d summed over the
   faces is the diagonal of the boundary integral, and a factor makes it the lattice's sum at d = dx/2, where it
   counts most.

   Conjugate gradients in lanes find the correction of a residual that is measured in double; v takes what is left of
   it as well, which makes it v* plus the sum of opposite forces: momentum is kept to rounding however early the
   iteration ends. While the residual is less than half of the change |v - v*|, kinetic energy cannot
   grow: with K = -dt nu L, x the iterate, r its residual and v = x + r, |v*|^2 - |v|^2 = |v* - v|^2 + 2 x.Kx + 2 r.Kx
   >= |v* - v| (|v* - v| - 2 |r|). */

/* Viscous force of the walls on rank r with velocity v; returns their part of the diagonal. For coupled bodies it is in
   part->force and part->weight. delta: for directions p, without the prescribed velocities; then part->force has the
   opposite sign. */
static double fsi__sph_drag_push(const fsi__sph_viscosity *o, int r, const double *v, int delta, double *sum)
{
    fsi__sph_wall *w = o->slot[r] >= 0 ? &o->wall[o->slot[r]] : NULL;
    double diagonal = 0;
    int k, j;
    sum[0] = sum[1] = sum[2] = 0;
    for (k = 0; w && k < w->part_count; k++) {
        fsi__sph_part *part = &w->part[k];
        const double *q = part->body < 0 ? NULL : delta ? o->body[part->body].p : o->body[part->body].v;
        for (j = 0; j < 3; j++) {
            const int j1 = (j + 1) % 3, j2 = (j + 2) % 3;
            double way = q ? q[j] + q[3 + j1] * (double)part->arm[j2] - q[3 + j2] * (double)part->arm[j1] : delta ? 0
                : (double)part->surface[j];
            double push = (double)part->drag * (way - v[j]);
            part->force[j] = (fsi__lane)(delta ? -push : push);
            sum[j] += push;
        }
        part->weight = part->drag;
        diagonal += (double)part->drag;
    }
    return diagonal;
}

FSI_FN fsi__lane4 fsi__sph_block_mul(const fsi__sph_block *m, fsi__lane4 a)
{
    fsi__lane4 out;
    out.x = m->xx * a.x + m->xy * a.y + m->xz * a.z;
    out.y = m->xy * a.x + m->yy * a.y + m->yz * a.z;
    out.z = m->xz * a.x + m->yz * a.y + m->zz * a.z;
    out.w = 0;
    return out;
}

/* Inverse of m = { xx, yy, zz, xy, xz, yz }, whose eigenvalues are 1 or more. */
static fsi__sph_block fsi__sph_block_inverse(const double m[6])
{
    const double xx = m[1] * m[2] - m[5] * m[5], xy = m[4] * m[5] - m[3] * m[2], xz = m[3] * m[5] - m[4] * m[1];
    const double per_det = 1 / (m[0] * xx + m[3] * xy + m[4] * xz);
    fsi__sph_block out;
    out.xx = (fsi__lane)(xx * per_det);
    out.yy = (fsi__lane)((m[0] * m[2] - m[4] * m[4]) * per_det);
    out.zz = (fsi__lane)((m[0] * m[1] - m[3] * m[3]) * per_det);
    out.xy = (fsi__lane)(xy * per_det);
    out.xz = (fsi__lane)(xz * per_det);
    out.yz = (fsi__lane)((m[3] * m[4] - m[0] * m[5]) * per_det);
    return out;
}

/* The velocity of rank i with the last correction, if there is one. */
FSI_FN void fsi__sph_drag_velocity(const fsi__sph_viscosity *o, int i, int corrected, double v[3])
{
    v[0] = corrected ? o->last_v[i][0] + (double)o->last_d[i].x : o->v[i][0];
    v[1] = corrected ? o->last_v[i][1] + (double)o->last_d[i].y : o->v[i][1];
    v[2] = corrected ? o->last_v[i][2] + (double)o->last_d[i].z : o->v[i][2];
}

/* Adds sum_j k e e.(v_j - v_i) in double to `sum`, and the diagonal block, sum_j k e e^T. */
FSI_FN void fsi__sph_drag_force(const fsi__sph_viscosity *o, int i, int corrected, double sum[3], double block[6])
{
    const int *list = o->list + o->first[i];
    const double per_h = 1 / o->h, *vi = o->v[i];
    int k, size = o->size[i];
    for (k = 0; k < size; k++) {
        /* Direction and distance, in support radii. */
        const fsi_vec3 *xj = &o->x[list[k]];
        double x = (double)(xj->x - o->x[i].x) * per_h, y = (double)(xj->y - o->x[i].y) * per_h,
            z = (double)(xj->z - o->x[i].z) * per_h;
        double r2 = x * x + y * y + z * z, q = sqrt(r2), weight, along, vj[3];
        if (!(q < 1 && q > 1e-6)) continue; /* as in the pressure: without a direction */

        /* Weight k of the pair, and the relative velocity along it. */
        fsi__sph_drag_velocity(o, list[k], corrected, vj);
        weight = o->pair * (1 - q) * (2 - q) / r2;
        along = weight * (x * (vj[0] - vi[0]) + y * (vj[1] - vi[1]) + z * (vj[2] - vi[2]));

        /* Sum and block. */
        sum[0] += along * x;
        sum[1] += along * y;
        sum[2] += along * z;
        block[0] += weight * x * x;
        block[1] += weight * y * y;
        block[2] += weight * z * z;
        block[3] += weight * x * y;
        block[4] += weight * x * z;
        block[5] += weight * y * z;
    }
}

/* v takes the last correction. r = v* - v + dt nu L v, from which conjugate gradients start.
   Sums: |r|^2, |v + r - v*|^2, |v*|^2, what the walls give (3) [m/s]. */
FSI_API void fsi__sph_drag_residual(const fsi__sph_viscosity *o, int i, double *sum)
{
    double block[6] = { 0, 0, 0, 0, 0, 0 }, push[3], change[3], r[3], stay;
    int k;
    if (o->round > 1) fsi__sph_drag_velocity(o, i, 1, o->v[i]);
    stay = 1 + fsi__sph_drag_push(o, i, o->v[i], 0, push);
    memcpy(change, push, sizeof change);
    if (o->round > 1) fsi__sph_drag_force(o, i, 1, change, block);
    else fsi__sph_drag_force(o, i, 0, change, block);
    for (k = 0; k < 3; k++) {
        r[k] = o->before[i][k] - o->v[i][k] + change[k];
        block[k] += stay;
        sum[0] += r[k] * r[k];
        sum[1] += change[k] * change[k];
        sum[2] += o->before[i][k] * o->before[i][k];
        sum[3 + k] += push[k];
    }
    o->inverse[i] = fsi__sph_block_inverse(block);
    o->r[i] = fsi__lane4_make(r[0], r[1], r[2]);
    o->d[i] = fsi__lane4_make(0, 0, 0);
}

/* The same pair sum in lanes: k e e.(p_j - p_i). */
FSI_FN void fsi__sph_drag_pair(const fsi__sph_viscosity *o, const int *list, int i, fsi__lane_sums *sum)
{
    const fsi__lane4 *pi = &o->p[i];
    const fsi__f8 unit = fsi__f8_set((fsi__lane)FSI__COORD_UNIT), one = fsi__f8_set(1), zero = fsi__f8_set(0);
    const fsi__f8 tiny = fsi__f8_set((fsi__lane)(1e-6 / FSI__COORD_UNIT));
    fsi__f8 dx, dy, dz, x, y, z, r2, r, q, f;
    fsi__f8_gather(o->place, list, &o->place[i], &dx, &dy, &dz, &f);
    fsi__f8_gather_vectors(o->p, list, &x, &y, &z);
    r2 = fsi__f8_dot(dx, dy, dz, dx, dy, dz);
    r = fsi__f8_sqrt(r2);
    q = fsi__f8_max(fsi__f8_sub(one, fsi__f8_mul(r, unit)), zero);
    f = fsi__f8_dot(dx, dy, dz, fsi__f8_sub(x, fsi__f8_set(pi->x)), fsi__f8_sub(y, fsi__f8_set(pi->y)),
        fsi__f8_sub(z, fsi__f8_set(pi->z)));
    f = fsi__f8_mul(fsi__f8_mul(q, fsi__f8_add(q, one)), f);
    f = fsi__f8_if_greater(r, tiny, fsi__f8_div(f, fsi__f8_max(r2, tiny)));
    fsi__add_weighted(sum, f, dx, dy, dz);
}

/* q = p - dt nu L p. Sum: p.q. */
FSI_API void fsi__sph_drag_apply(const fsi__sph_viscosity *o, int i, double *total)
{
    const int *list = o->list + o->first[i], size = fsi__padded(o->size[i]);
    const fsi__lane4 p = o->p[i];
    fsi__lane_sums sum = fsi__no_lane_sums();
    double at[3], push[3];
    int k;
    at[0] = (double)p.x;
    at[1] = (double)p.y;
    at[2] = (double)p.z;
    (void)fsi__sph_drag_push(o, i, at, 1, push);
    for (k = 0; k < size; k += FSI_LANES) fsi__sph_drag_pair(o, list + k, i, &sum);
    o->q[i] = fsi__lane4_madd(p, -(fsi__lane)o->pair, fsi__fold(&sum));
    o->q[i] = fsi__lane4_madd(o->q[i], -1, fsi__lane4_make(push[0], push[1], push[2]));
    total[0] += fsi__lane4_dot(p, o->q[i]);
}

/* Adds up r.z, |r|^2, |v + d + r - v*|^2; returns z = r over the diagonal block. */
FSI_FN fsi__lane4 fsi__sph_drag_add_norms(const fsi__sph_viscosity *o, int i, double *sum)
{
    const fsi__lane4 d = o->d[i], r = o->r[i], z = fsi__sph_block_mul(&o->inverse[i], r);
    double change[3];
    change[0] = o->v[i][0] - o->before[i][0] + (double)(d.x + r.x);
    change[1] = o->v[i][1] - o->before[i][1] + (double)(d.y + r.y);
    change[2] = o->v[i][2] - o->before[i][2] + (double)(d.z + r.z);
    sum[0] += fsi__lane4_dot(r, z);
    sum[1] += fsi__lane4_dot(r, r);
    sum[2] += fsi__sph_dot3(change, change);
    return z;
}

/* The first direction, p = z. */
FSI_API void fsi__sph_drag_first_turn(const fsi__sph_viscosity *o, int i, double *sum)
{
    o->p[i] = fsi__sph_drag_add_norms(o, i, sum);
}

/* The next one, p = z + beta p. */
FSI_API void fsi__sph_drag_turn(const fsi__sph_viscosity *o, int i)
{
    o->p[i] = fsi__lane4_madd(fsi__sph_block_mul(&o->inverse[i], o->r[i]), (fsi__lane)o->beta, o->p[i]);
}

/* d += alpha p, r -= alpha q. */
FSI_API void fsi__sph_drag_advance(const fsi__sph_viscosity *o, int i, double *sum)
{
    const fsi__lane alpha = (fsi__lane)o->alpha;
    o->d[i] = fsi__lane4_madd(o->d[i], alpha, o->p[i]);
    o->r[i] = fsi__lane4_madd(o->r[i], -alpha, o->q[i]);
    (void)fsi__sph_drag_add_norms(o, i, sum);
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
