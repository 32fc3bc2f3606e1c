/* fsi_elements.h - energies of thin elements, their gradients and Hessians: membranes, hinges, plates, twisted rods
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_shell.h includes this file and assembles what it computes. docs/shell.md derives the energies.

   WHAT IS IN HERE (search for >>)
      >>stages         what fsi_shell.h calls;  then >>elements  >>membrane  >>bending  >>rods
   MACROS: those of fsi.h.
   UNITS: SI.
   PRECISION: double.
*/
#ifndef FSI_ELEMENTS_H
#define FSI_ELEMENTS_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi.h"

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* Energies of single elements, in joules. g gets the gradient, h the Hessian, n x n numbers row by row; each may be
   NULL. `exact`: the second derivative as it is. Otherwise what is positive semidefinite once `support` [N/m], the
   element's share of the inertia M / dt^2, is added to its diagonal. */

/* A triangle at rest. `inverse` takes its sides p0p1, p0p2 to the frame of the warp: F = [x1 - x0, x2 - x0] inverse. */
typedef struct fsi__shell_membrane {
    double inverse[4];
    double volume;                 /* thickness * area [m^3] */
    double c11, c22, c12, c66;     /* St. Venant-Kirchhoff, plane stress [Pa] */
    double strain[3];              /* 11, 22, 12, that St. Venant-Kirchhoff is measured from */
    int neo_hookean, damped;       /* both: St. Venant-Kirchhoff as well, as its damper */
    double mu, lambda;             /* neo-Hookean [Pa] */
} fsi__shell_membrane;

/* A triangle p0 p1 p2 with its neighbours' corners: q_i across the side opposite p_i. Its three angles make its shape
   operator,
      kappa = sum over sides w_e c_e n_e n_e^T,  c_e = l_e h_e / ((h_e + h'_e) A),  W = A/2 kappa^T D kappa = 1/2 w^T Q
      w
   with h, h' the heights over the side here and there, n_e its normal in the plane (coupling.md 6.2; D by Voigt, 11,
   22, 2 * 12). At a side without neighbour the moment is 0: W is the least over that angle, Q is condensed. */
typedef struct fsi__shell_plate { double q[9], rest[3]; int missing; } fsi__shell_plate;

/* Two edges that meet: lengths, unit tangents, chi = 1 + te.tf (held above 0), and the curvature binormal kb = 2 te x
   tf / chi, of size 2 tan(angle / 2). */
typedef struct fsi__shell_bent { double le, lf, te[3], tf[3], chi, kb[3]; } fsi__shell_bent;

/* Material frames (Bergou et al. 2008, 2010): each segment has a reference frame, tangent and director, that is carried
   along without turning about the tangent; the material is turned against it by theta. */
typedef struct fsi__shell_frame { double tangent[3], director[3]; } fsi__shell_frame;

/* What is known of a joint: the bent edges, their material directors, curvatures and twist. */
typedef struct fsi__shell_twisted {
    fsi__shell_bent b; double m1e[3], m2e[3], m1f[3], m2f[3], kappa[2], twist;
} fsi__shell_twisted;

/* Where two segments of a rod meet. */
typedef struct fsi__shell_joint {
    double length;             /* half of both, at rest [m] */
    double bend[2], twist;     /* EI against kappa_1, kappa_2; GJ [N m^2] */
    double rest_curvature[2], rest_twist;
} fsi__shell_joint;

/* Vectors of three numbers. */
FSI_API void fsi__sh_cross(const double *a, const double *b, double *out);
FSI_API int fsi__sh_is_finite(const double *x, int n);
FSI_API double fsi__sh_sum(const double *x, int n); /* in fixed order */
/* Fills what follows from the shape at rest: three corners, their warp direction; 0: it has no area. The material is
   set by the caller. */
FSI_API int fsi__shell_membrane_rest(fsi__shell_membrane *m, const double *rest, const double warp[3],
    double thickness);
/* x: 9 numbers. */
FSI_API double fsi__shell_membrane_energy(const fsi__shell_membrane *m, const double *x, double *g, double *h,
    int exact, double support);
/* Strain of the columns f of a deformation gradient, less `from`: 11, 22, 12. */
FSI_API void fsi__shell_green(double f[2][3], const double *from, double e[3]);
/* F's columns f, and d: F = sum x_i d_i^T. */
FSI_API void fsi__shell_strain(const fsi__shell_membrane *m, const double *x, double f[2][3], double d[3][2]);
/* The angle between the triangles x0 x1 x2 and x1 x0 x3 about their edge, in (-pi, pi]: 0 flat, positive when their
   normals spread. 0, without derivatives, where a triangle has no area. */
FSI_API double fsi__shell_angle(const double *x, double *g, double *h);
/* The four corners of the hinge over side e of a flap of six points. */
FSI_API void fsi__shell_gather_flap(const double *x, int e, double *flap);
/* W = k/2 w^2. */
FSI_API double fsi__shell_hinge(double k, double rest, const double *x, double *g, double *h, int exact,
    double support);
/* Fills Q and the rest angles from six points; missing: a bit for each side with nothing beside it; d: D by Voigt. */
FSI_API void fsi__shell_plate_rest(fsi__shell_plate *p, const double *rest, int missing, const double warp[3],
    const double d[4]);
/* x: 18 numbers. */
FSI_API double fsi__shell_plate_energy(const fsi__shell_plate *p, const double *x, double *g, double *h, int exact,
    double support);
/* W = EA/2 (l/rest - 1)^2 rest (coupling.md 6.3). */
FSI_API double fsi__shell_stretch(double ea, double rest, const double *x, double *g, double *h, int exact);
/* x: the three vertices of a joint. */
FSI_API fsi__shell_bent fsi__shell_bent_at(const double *x);
/* The director: hint as far as it is across the segment, else an axis. */
FSI_API fsi__shell_frame fsi__shell_frame_make(const double *a, const double *b, const double *hint);
/* Carries a frame along to the segment from a to b. */
FSI_API void fsi__shell_frame_transport(fsi__shell_frame *f, const double *a, const double *b);
/* Rest curvatures and twist are those at x, theta. */
FSI_API void fsi__shell_joint_rest(fsi__shell_joint *j, const fsi__shell_frame frame[2], const double *x,
    double theta0, double theta1);
/* Twist of the reference frames at a joint, within half a turn of `reference`. */
FSI_API double fsi__shell_joint_twist(const fsi__shell_frame frame[2], double reference, const double *x);
/* W = 1/2 sum B_k (kappa_k - rest_k)^2 / length + GJ/2 (twist - rest)^2 / length. Unknowns: x0, x1, x2, theta_e,
   theta_f. Derivatives hold where the frames' tangents are those of x. Without `exact` only the products of first
   derivatives stay. */
FSI_API double fsi__shell_joint_energy(const fsi__shell_joint *j, const fsi__shell_frame frame[2], double reference,
    const double *x, const double *theta, double *g, double *h, int exact);
/* A bend without twist: W = b/2 (|kb| - rest)^2, with |kb| rounded off within a thousandth of rest, where it has a
   kink:
   W = b/2 (r - rest')^2,  r = sqrt(u + (rest/1000)^2),  u = |kb|^2 = 4 (1 - c)/(1 + c),  rest' = r where u = rest^2. */
FSI_API double fsi__shell_bend(double stiffness, double rest, const double *x, double *g, double *h, int exact);
/* In the plane, where curvature has a sign: W = b/2 (k - rest)^2, k = 2 tan(phi/2), phi the turn from the first edge to
   the second, dk/dphi = 1 + k^2/4. */
FSI_API double fsi__shell_bend_flat(double stiffness, double rest, const double *x, double *g, double *h, int exact);
/* t: the unit vector from a to b. */
FSI_API void fsi__shell_tangent(const double *a, const double *b, double *t);
FSI_API fsi__shell_twisted fsi__shell_twisted_at(const fsi__shell_frame frame[2], double reference, const double *x,
    const double *theta);

FSI__STRICT_FN_BEGIN
FSI_FN void fsi__sh_sub(const double *a, const double *b, double *out)
{
    int k;
    for (k = 0; k < 3; k++) out[k] = a[k] - b[k];
}
FSI_FN double fsi__sh_dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
FSI_FN double fsi__sh_apart(const double *a, const double *b)
{
    double d[3];
    fsi__sh_sub(a, b, d);
    return sqrt(fsi__sh_dot(d, d));
}
FSI_FN void fsi__sh_from(fsi_vec3 v, double *out) { out[0] = (double)v.x; out[1] = (double)v.y; out[2] = (double)v.z; }
FSI_FN fsi_vec3 fsi__sh_to(const double *v) { return fsi_v3((fsi_real)v[0], (fsi_real)v[1], (fsi_real)v[2]); }
/* The numbers of so many nodes, 0 where a node is -1. */
FSI_FN void fsi__sh_gather(const double *q, const int *node, int count, double *x)
{
    int i;
    for (i = 0; i < count; i++) {
        if (node[i] < 0) memset(x + 3 * i, 0, 3 * sizeof *x);
        else memcpy(x + 3 * i, q + 3 * (size_t)node[i], 3 * sizeof *x);
    }
}
/* theta - rest, the short way round. */
FSI_FN double fsi__shell_turn(double angle, double rest)
{
    const double w = angle - rest;
    return w > FSI_PI ? w - 2 * FSI_PI : w <= -FSI_PI ? w + 2 * FSI_PI : w;
}
FSI__STRICT_FN_END

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_ELEMENTS_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_ELEMENTS_IMPLEMENTATION
#define FSI_ELEMENTS_IMPLEMENTATION
#endif
#ifdef FSI_ELEMENTS_IMPLEMENTATION
#ifndef FSI_ELEMENTS_IMPLEMENTATION_DONE
#define FSI_ELEMENTS_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi.h"

FSI__STRICT_BEGIN

/* ---- >>small things -------------------------------------------------------------------------------------------- */

FSI_API void fsi__sh_cross(const double *a, const double *b, double *out)
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

FSI_API double fsi__sh_sum(const double *x, int n)
{
    double sum[FSI_LANES] = { 0 };
    int i, l;
    for (i = 0; i + FSI_LANES <= n; i += FSI_LANES) for (l = 0; l < FSI_LANES; l++) sum[l] += x[i + l];
    for (l = 0; i + l < n; l++) sum[l] += x[i + l];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

FSI_API int fsi__sh_is_finite(const double *x, int n)
{
    int i;
    for (i = 0; i < n; i++) if (!fsi_is_finite(x[i])) return 0;
    return 1;
}

/* ---- >>elements ------------------------------------------------------------------------------------------------ */

/* The element's part `rest` of a Hessian, of unknown sign, times the largest share of it that `support` makes up
   for. */
static double fsi__shell_bearable(const double *rest, int numbers, double scale, double support)
{
    double sum = 0;
    int i;
    for (i = 0; i < numbers; i++) sum += rest[i] * rest[i];
    sum = fabs(scale) * sqrt(sum); /* no eigenvalue is larger than the Frobenius norm */
    return sum > support ? support / sum : 1;
}

/* |a c; c b| with eigenvalues below `least` raised to it. */
static void fsi__shell_raise(double *a, double *b, double *c, double least)
{
    const double mean = (*a + *b) / 2, half = (*a - *b) / 2, radius = sqrt(half * half + *c * *c);
    const double p = mean + radius > least ? mean + radius : least, q = mean - radius > least ? mean - radius : least;
    const double cosine = radius > 0 ? half / radius : 1, sine = radius > 0 ? *c / radius : 0;
    *a = (p + q) / 2 + (p - q) / 2 * cosine;
    *b = (p + q) / 2 - (p - q) / 2 * cosine;
    *c = (p - q) / 2 * sine;
}

/* ---- >>membrane */

/* Unit axes of a triangle's plane, the first along the warp as far as it lies in it. 0: the triangle has no area. */
static int fsi__shell_axes(const double *x, const double warp[3], double first[3], double second[3], double *area)
{
    double u[3], v[3], n[3], along, length, size;
    int i;
    fsi__sh_sub(x + 3, x, u);
    fsi__sh_sub(x + 6, x, v);
    fsi__sh_cross(u, v, n);
    length = sqrt(fsi__sh_dot(n, n));
    if (!(length > 1e-13 * (fsi__sh_dot(u, u) + fsi__sh_dot(v, v)))) return 0;
    *area = length / 2;
    for (i = 0; i < 3; i++) n[i] /= length;
    along = fsi__sh_dot(warp, n);
    for (i = 0; i < 3; i++) first[i] = warp[i] - along * n[i];
    size = fsi__sh_dot(warp, warp);
    if (!(size > 0) || !(fsi__sh_dot(first, first) > 1e-12 * size)) for (i = 0; i < 3; i++) first[i] = u[i];
    length = sqrt(fsi__sh_dot(first, first));
    for (i = 0; i < 3; i++) first[i] /= length;
    fsi__sh_cross(n, first, second);
    return 1;
}

FSI_API int fsi__shell_membrane_rest(fsi__shell_membrane *m, const double *rest, const double warp[3], double thickness)
{
    double a[3], b[3], u[3], v[3], area, det;
    memset(m, 0, sizeof *m);
    if (!fsi__shell_axes(rest, warp, a, b, &area)) return 0;
    fsi__sh_sub(rest + 3, rest, u);
    fsi__sh_sub(rest + 6, rest, v);
    det = 2 * area;
    m->inverse[0] = fsi__sh_dot(v, b) / det;
    m->inverse[1] = -fsi__sh_dot(v, a) / det;
    m->inverse[2] = -fsi__sh_dot(u, b) / det;
    m->inverse[3] = fsi__sh_dot(u, a) / det;
    m->volume = thickness * area;
    return 1;
}

FSI_API void fsi__shell_strain(const fsi__shell_membrane *m, const double *x, double f[2][3], double d[3][2])
{
    int a, k;
    for (k = 0; k < 2; k++) {
        d[1][k] = m->inverse[k];
        d[2][k] = m->inverse[2 + k];
        d[0][k] = -d[1][k] - d[2][k];
        for (a = 0; a < 3; a++) f[k][a] = (x[3 + a] - x[a]) * d[1][k] + (x[6 + a] - x[a]) * d[2][k];
    }
}

/* From derivatives to F, P = dW/dF (by columns) and the 6 x 6 matrix of second ones, to those to the corners. */
static void fsi__shell_from_strain(double volume, double d[3][2], double p[2][3], const double *c, double *g, double *h)
{
    int i, j, a, b;
    for (i = 0; g && i < 3; i++) for (a = 0; a < 3; a++)
        g[3 * i + a] = volume * (d[i][0] * p[0][a] + d[i][1] * p[1][a]);
    for (i = 0; h && i < 3; i++) for (j = 0; j < 3; j++) {
        const double s00 = volume * d[i][0] * d[j][0], s01 = volume * d[i][0] * d[j][1],
            s10 = volume * d[i][1] * d[j][0], s11 = volume * d[i][1] * d[j][1];
        for (a = 0; a < 3; a++) for (b = 0; b < 3; b++)
            h[9 * (3 * i + a) + 3 * j + b] = s00 * c[6 * a + b] + s01 * c[6 * a + 3 + b] + s10 * c[6 * (3 + a) + b]
                + s11 * c[6 * (3 + a) + 3 + b];
    }
}

FSI_API void fsi__shell_green(double f[2][3], const double *from, double e[3])
{
    e[0] = (fsi__sh_dot(f[0], f[0]) - 1) / 2 - from[0];
    e[1] = (fsi__sh_dot(f[1], f[1]) - 1) / 2 - from[1];
    e[2] = fsi__sh_dot(f[0], f[1]) / 2 - from[2];
}

/* St. Venant-Kirchhoff: E = (F^T F - 1)/2, S = C E, P = F S; second derivative: F S of dE, and dF S, of which
   compression alone could make it indefinite. */
static double fsi__shell_stvk(const fsi__shell_membrane *m, const double *x, double *g, double *h, int exact,
    double support)
{
    double f[2][3], d[3][2], p[2][3], c[36], e[3];
    double s11, s22, s12;
    int a, b;

    /* Strain and stress: E, then S and P = F S. */
    fsi__shell_strain(m, x, f, d);
    fsi__shell_green(f, m->strain, e);
    s11 = m->c11 * e[0] + m->c12 * e[1];
    s22 = m->c22 * e[1] + m->c12 * e[0];
    s12 = 2 * m->c66 * e[2];
    for (a = 0; a < 3; a++) {
        p[0][a] = s11 * f[0][a] + s12 * f[1][a];
        p[1][a] = s12 * f[0][a] + s22 * f[1][a];
    }

    /* The Hessian to F: S dF, and F C dE. Projected, S is raised first. */
    if (h) {
        /* Eigenvalues of volume D S D^T may be as low as -support: those of S as low as that over volume |D|^2. */
        if (!exact) {
            const double size = m->volume * (d[0][0] * d[0][0] + d[0][1] * d[0][1] + d[1][0] * d[1][0]
                + d[1][1] * d[1][1] + d[2][0] * d[2][0] + d[2][1] * d[2][1]);
            fsi__shell_raise(&s11, &s22, &s12, -support / size);
        }
        for (a = 0; a < 3; a++) for (b = 0; b < 3; b++) {
            c[6 * a + b] = m->c11 * f[0][a] * f[0][b] + m->c66 * f[1][a] * f[1][b] + (a == b ? s11 : 0);
            c[6 * (3 + a) + 3 + b] = m->c22 * f[1][a] * f[1][b] + m->c66 * f[0][a] * f[0][b] + (a == b ? s22 : 0);
            c[6 * a + 3 + b] = m->c12 * f[0][a] * f[1][b] + m->c66 * f[1][a] * f[0][b] + (a == b ? s12 : 0);
            c[6 * (3 + b) + a] = c[6 * a + 3 + b];
        }
    }
    fsi__shell_from_strain(m->volume, d, p, c, g, h);
    return m->volume * ((m->c11 * e[0] * e[0] + m->c22 * e[1] * e[1]) / 2 + m->c12 * e[0] * e[1]
        + 2 * m->c66 * e[2] * e[2]);
}

/* Stable neo-Hookean (after Smith et al. 2018): W = mu/2 (tr F^T F - 2) - mu (J - 1) + lambda/2 (J - 1)^2, J = |f0 x
   f1|; lambda that of plane stress, plus mu, so that small strains meet Hooke's law. With n the unit normal, da, db the
   columns of dF, f' = dW/dJ:
      d^2 J = 2 n.(da x db) within the plane,  J (da.n, db.n) C^-1 (da.n, db.n)^T across it:
   eigenvalues of the first are 1 and -1, so mu and f' between -mu and mu leave it positive. */
static double fsi__shell_neo_hookean(const fsi__shell_membrane *m, const double *x, double *g, double *h, int exact)
{
    double f[2][3], d[3][2], p[2][3], c[36], n[3], j[2][3], area, slope, within;
    double across[3] = { 0, 0, 0 };
    int a, b, k;

    /* F, the unit normal n and dJ/dF. */
    fsi__shell_strain(m, x, f, d);
    fsi__sh_cross(f[0], f[1], n);
    area = sqrt(fsi__sh_dot(n, n));
    for (a = 0; a < 3; a++) n[a] = area > 1e-150 ? n[a] / area : 0;
    fsi__sh_cross(f[1], n, j[0]);
    fsi__sh_cross(n, f[0], j[1]);

    /* P = mu F + W'(J) dJ/dF. */
    slope = -m->mu + m->lambda * (area - 1);
    for (k = 0; k < 2; k++) for (a = 0; a < 3; a++) p[k][a] = m->mu * f[k][a] + slope * j[k][a];

    /* The Hessian to F: within the plane, and across it. */
    if (h) {
        within = exact ? slope : slope > m->mu ? m->mu : slope < -m->mu ? -m->mu : slope;
        if (area > 1e-12) {
            across[0] = slope * fsi__sh_dot(f[1], f[1]) / area;
            across[1] = slope * fsi__sh_dot(f[0], f[0]) / area;
            across[2] = -slope * fsi__sh_dot(f[0], f[1]) / area;
        }
        if (!exact) fsi__shell_raise(&across[0], &across[1], &across[2], -m->mu);
        for (a = 0; a < 3; a++) for (b = 0; b < 3; b++) {
            const double cross = a == b ? 0 : ((b - a + 3) % 3 == 1 ? -n[3 - a - b] : n[3 - a - b]); /* [n]x */
            for (k = 0; k < 2; k++)
                c[6 * (3 * k + a) + 3 * k + b] = (a == b ? m->mu : 0) + m->lambda * j[k][a] * j[k][b]
                    + across[k] * n[a] * n[b];
            c[6 * a + 3 + b] = m->lambda * j[0][a] * j[1][b] + across[2] * n[a] * n[b] - within * cross;
            c[6 * (3 + b) + a] = c[6 * a + 3 + b];
        }
    }
    fsi__shell_from_strain(m->volume, d, p, c, g, h);
    return m->volume * (m->mu / 2 * (fsi__sh_dot(f[0], f[0]) + fsi__sh_dot(f[1], f[1]) - 2) - m->mu * (area - 1)
        + m->lambda / 2 * (area - 1) * (area - 1));
}

FSI_API double fsi__shell_membrane_energy(const fsi__shell_membrane *m, const double *x, double *g, double *h,
    int exact, double support)
{
    double slope[9], second[81], sum;
    int i;
    if (!m->neo_hookean) return fsi__shell_stvk(m, x, g, h, exact, support);
    sum = fsi__shell_neo_hookean(m, x, g, h, exact);
    if (!m->damped) return sum;
    sum += fsi__shell_stvk(m, x, g ? slope : NULL, h ? second : NULL, exact, support);
    for (i = 0; g && i < 9; i++) g[i] += slope[i];
    for (i = 0; h && i < 81; i++) h[i] += second[i];
    return sum;
}

/* ---- >>bending */

/* What one triangle, x0, x1 and p, adds to the derivatives of the angle at its side e = x1 - x0 (coupling.md 6.2). With
   N = turn e x w, w = p - x0,
   A = N/|N|^2, u = e/|e|:  d theta = -sum c_i A.dx_i,  c = (p - x1).u, -(p - x0).u, |e|. */
static void fsi__shell_angle_side(const double *e, const double *u, double l, const double *w, const double *n,
    double turn, const int at[3], double *g, double *h)
{
    const double q = fsi__sh_dot(n, n), along = fsi__sh_dot(w, u), c[3] = { along - l, -along, l };
    double a[3], t[3], dc[3][3][3], dn[3][3][3], da[3][3][3];
    int i, j, k, r;

    /* The gradient. */
    for (k = 0; k < 3; k++) {
        a[k] = n[k] / q;
        t[k] = (w[k] - along * u[k]) / l;
    }
    for (i = 0; i < 3; i++) for (k = 0; k < 3; k++) g[3 * at[i] + k] -= c[i] * a[k];
    if (!h) return;

    /* dc_i to x0, x1, p. */
    for (k = 0; k < 3; k++) {
        dc[0][0][k] = -t[k];
        dc[0][1][k] = t[k] - u[k];
        dc[0][2][k] = u[k];
        dc[1][0][k] = u[k] + t[k];
        dc[1][1][k] = -t[k];
        dc[1][2][k] = -u[k];
        dc[2][0][k] = -u[k];
        dc[2][1][k] = u[k];
        dc[2][2][k] = 0;
    }

    /* dN to x1: -turn [w]x, to p: turn [e]x. */
    for (k = 0; k < 3; k++) for (r = 0; r < 3; r++) {
        const int third = 3 - k - r, sign = k == r ? 0 : (r - k + 3) % 3 == 1 ? -1 : 1;
        dn[1][k][r] = sign ? -turn * sign * w[third] : 0;
        dn[2][k][r] = sign ? turn * sign * e[third] : 0;
        dn[0][k][r] = -dn[1][k][r] - dn[2][k][r];
    }

    /* dA = (1 - 2 N N^T / q) dN / q. */
    for (j = 0; j < 3; j++) for (r = 0; r < 3; r++) {
        const double m = 2 * (a[0] * dn[j][0][r] + a[1] * dn[j][1][r] + a[2] * dn[j][2][r]);
        for (k = 0; k < 3; k++) da[j][k][r] = dn[j][k][r] / q - a[k] * m;
    }

    /* Their product rule. */
    for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) for (k = 0; k < 3; k++) for (r = 0; r < 3; r++)
        h[12 * (3 * at[i] + k) + 3 * at[j] + r] -= a[k] * dc[i][j][r] + c[i] * da[j][k][r];
}

FSI_API double fsi__shell_angle(const double *x, double *g, double *h)
{
    static const int first[3] = { 0, 1, 2 }, second[3] = { 0, 1, 3 };
    double e[3], u[3], p[3], q[3], n[3], m[3], c[3], l;
    int i, j;
    fsi__sh_sub(x + 3, x, e);
    fsi__sh_sub(x + 6, x, p);
    fsi__sh_sub(x + 9, x, q);
    fsi__sh_cross(e, p, n);
    fsi__sh_cross(q, e, m);
    fsi__sh_cross(n, m, c);
    l = sqrt(fsi__sh_dot(e, e));
    if (g) memset(g, 0, 12 * sizeof *g);
    if (h) memset(h, 0, 144 * sizeof *h);
    if (!(fsi__sh_dot(n, n) > 1e-280) || !(fsi__sh_dot(m, m) > 1e-280)) return 0;
    if (g) {
        for (i = 0; i < 3; i++) u[i] = e[i] / l;
        fsi__shell_angle_side(e, u, l, p, n, 1, first, g, h);
        fsi__shell_angle_side(e, u, l, q, m, -1, second, g, h);
    }
    for (i = 0; h && i < 12; i++) for (j = 0; j < i; j++)
        h[12 * i + j] = h[12 * j + i] = (h[12 * i + j] + h[12 * j + i]) / 2;
    return fsi_atan2(fsi__sh_dot(c, e) / l, fsi__sh_dot(n, m));
}

FSI_API double fsi__shell_hinge(double k, double rest, const double *x, double *g, double *h, int exact, double support)
{
    double slope[12], second[144];
    const double w = fsi__shell_turn(fsi__shell_angle(x, g || h ? slope : NULL, h ? second : NULL), rest);
    int i, j;
    for (i = 0; g && i < 12; i++) g[i] = k * w * slope[i];
    if (h) {
        const double share = k * w * (exact ? 1 : fsi__shell_bearable(second, 144, k * w, support));
        for (i = 0; i < 12; i++) for (j = 0; j < 12; j++)
            h[12 * i + j] = k * slope[i] * slope[j] + share * second[12 * i + j];
    }
    return k / 2 * w * w;
}

static const int fsi__shell_flap[3][4] = { { 1, 2, 0, 3 }, { 2, 0, 1, 4 }, { 0, 1, 2, 5 } }; /* a side's hinge */

static double fsi__shell_height(const double *a, const double *b, const double *p)
{
    double e[3], w[3], n[3];
    fsi__sh_sub(b, a, e);
    fsi__sh_sub(p, a, w);
    fsi__sh_cross(e, w, n);
    return sqrt(fsi__sh_dot(n, n) / fsi__sh_dot(e, e));
}

static void fsi__shell_condense(double *q, int k)
{
    double row[3], pivot = q[4 * k];
    int i, j;
    for (i = 0; i < 3; i++) row[i] = q[3 * k + i];
    for (i = 0; i < 3; i++) for (j = 0; j < 3; j++)
        q[3 * i + j] = i == k || j == k || !(pivot > 0) ? (i == k || j == k ? 0 : q[3 * i + j])
            : q[3 * i + j] - row[i] * row[j] / pivot;
}

FSI_API void fsi__shell_gather_flap(const double *x, int e, double *flap)
{
    int k;
    for (k = 0; k < 4; k++) memcpy(flap + 3 * k, x + 3 * fsi__shell_flap[e][k], 3 * sizeof *flap);
}

FSI_API void fsi__shell_plate_rest(fsi__shell_plate *p, const double *rest, int missing, const double warp[3],
    const double d[4])
{
    double a[3], b[3], area = 0, v[3][3];
    int e, i;
    memset(p, 0, sizeof *p);
    p->missing = missing;
    if (!fsi__shell_axes(rest, warp, a, b, &area)) return;

    /* For each side: its normal, its length over the mean height, and its angle at rest. */
    for (e = 0; e < 3; e++) {
        const double *x0 = rest + 3 * fsi__shell_flap[e][0], *x1 = rest + 3 * fsi__shell_flap[e][1];
        const double here = fsi__shell_height(x0, x1, rest + 3 * e),
            there = missing >> e & 1 ? here : fsi__shell_height(x0, x1, rest + 3 * (3 + e));
        double s[3], n[2], l, c, flap[12];
        fsi__sh_sub(x1, x0, s);
        l = sqrt(fsi__sh_dot(s, s));
        n[0] = fsi__sh_dot(s, b) / l;
        n[1] = -fsi__sh_dot(s, a) / l;
        c = l * here / ((here + there) * area);
        v[e][0] = c * n[0] * n[0];
        v[e][1] = c * n[1] * n[1];
        v[e][2] = 2 * c * n[0] * n[1];
        fsi__shell_gather_flap(rest, e, flap);
        p->rest[e] = missing >> e & 1 ? 0 : fsi__shell_angle(flap, NULL, NULL);
    }

    /* The quadratic form of the three angles; sides without a neighbour are free to turn. */
    for (e = 0; e < 3; e++) for (i = 0; i < 3; i++)
        p->q[3 * e + i] = area * (d[0] * v[e][0] * v[i][0] + d[1] * v[e][1] * v[i][1]
            + d[2] * (v[e][0] * v[i][1] + v[e][1] * v[i][0]) + d[3] * v[e][2] * v[i][2]);
    for (e = 0; e < 3; e++) if (missing >> e & 1) fsi__shell_condense(p->q, e);
}

FSI_API double fsi__shell_plate_energy(const fsi__shell_plate *p, const double *x, double *g, double *h, int exact,
    double support)
{
    double w[3], moment[3], slope[3][12], second[144], spread[3][18], sum = 0;
    int e, f, i, j;
    if (h) memset(h, 0, 324 * sizeof *h);

    /* The three angles from rest, with their slopes in the 18 coordinates. */
    for (e = 0; e < 3; e++) {
        double flap[12];
        fsi__shell_gather_flap(x, e, flap);
        w[e] = p->missing >> e & 1 ? 0
            : fsi__shell_turn(fsi__shell_angle(flap, g || h ? slope[e] : NULL, NULL), p->rest[e]);
        if (p->missing >> e & 1) memset(slope[e], 0, sizeof slope[e]);
        for (i = 0; i < 18; i++) spread[e][i] = 0;
        for (i = 0; (g || h) && i < 12; i++) spread[e][3 * fsi__shell_flap[e][i / 3] + i % 3] = slope[e][i];
    }

    /* Moments, energy and gradient. */
    for (e = 0; e < 3; e++) {
        moment[e] = p->q[3 * e] * w[0] + p->q[3 * e + 1] * w[1] + p->q[3 * e + 2] * w[2];
        sum += moment[e] * w[e] / 2;
    }
    for (i = 0; g && i < 18; i++) g[i] = moment[0] * spread[0][i] + moment[1] * spread[1][i] + moment[2] * spread[2][i];

    /* The Hessian: Q of the slopes, and the moments times the second derivatives of the angles. */
    for (e = 0; h && e < 3; e++) {
        double row[18], flap[12], share;
        for (i = 0; i < 18; i++) for (row[i] = 0, f = 0; f < 3; f++) row[i] += p->q[3 * e + f] * spread[f][i];
        for (i = 0; i < 18; i++) for (j = 0; j < 18; j++) h[18 * i + j] += spread[e][i] * row[j];
        if (p->missing >> e & 1) continue;
        fsi__shell_gather_flap(x, e, flap);
        fsi__shell_angle(flap, slope[e], second);
        share = moment[e] * (exact ? 1 : fsi__shell_bearable(second, 144, moment[e], support / 3));
        for (i = 0; i < 12; i++) for (j = 0; j < 12; j++)
            h[18 * (3 * fsi__shell_flap[e][i / 3] + i % 3) + 3 * fsi__shell_flap[e][j / 3] + j % 3] += share
                * second[12 * i + j];
    }
    return sum;
}

/* ---- >>rods */

FSI_API double fsi__shell_stretch(double ea, double rest, const double *x, double *g, double *h, int exact)
{
    double d[3], l, across;
    int a, b;
    fsi__sh_sub(x + 3, x, d);
    l = sqrt(fsi__sh_dot(d, d));
    for (a = 0; a < 3; a++) d[a] = l > 0 ? d[a] / l : 0;
    across = l > 0 ? ea * (1 / rest - 1 / l) : 0;
    if (!exact && across < 0) across = 0;
    for (a = 0; g && a < 3; a++) {
        g[3 + a] = ea * (l / rest - 1) * d[a];
        g[a] = -g[3 + a];
    }
    for (a = 0; h && a < 3; a++) for (b = 0; b < 3; b++) {
        const double v = ea / rest * d[a] * d[b] + across * ((a == b ? 1 : 0) - d[a] * d[b]);
        h[6 * a + b] = h[6 * (3 + a) + 3 + b] = v;
        h[6 * a + 3 + b] = h[6 * (3 + a) + b] = -v;
    }
    return ea / 2 * (l / rest - 1) * (l / rest - 1) * rest;
}

/* From derivatives to the two edges e = x1 - x0, f = x2 - x1 (6, 6 x 6, in rows of `width`) to those to the three
   points. */
static void fsi__shell_from_edges(const double *g6, const double *h6, int width, double *g, double *h, int wide)
{
    static const int sign[3][2] = { { -1, 0 }, { 1, -1 }, { 0, 1 } };
    int i, j, p, q, a, b;
    for (i = 0; g && i < 3; i++) for (a = 0; a < 3; a++) g[3 * i + a] = sign[i][0] * g6[a] + sign[i][1] * g6[3 + a];
    for (i = 0; h && i < 3; i++) for (j = 0; j < 3; j++) for (a = 0; a < 3; a++) for (b = 0; b < 3; b++) {
        double v = 0;
        for (p = 0; p < 2; p++) for (q = 0; q < 2; q++) if (sign[i][p] && sign[j][q])
            v += sign[i][p] * sign[j][q] * h6[width * (3 * p + a) + 3 * q + b];
        h[wide * (3 * i + a) + 3 * j + b] = v;
    }
}

FSI_API fsi__shell_bent fsi__shell_bent_at(const double *x)
{
    fsi__shell_bent b;
    int a;
    fsi__sh_sub(x + 3, x, b.te);
    fsi__sh_sub(x + 6, x + 3, b.tf);
    b.le = sqrt(fsi__sh_dot(b.te, b.te));
    b.lf = sqrt(fsi__sh_dot(b.tf, b.tf));
    if (!(b.le > 1e-150)) b.le = 1e-150;
    if (!(b.lf > 1e-150)) b.lf = 1e-150;
    for (a = 0; a < 3; a++) {
        b.te[a] /= b.le;
        b.tf[a] /= b.lf;
    }
    b.chi = 1 + fsi__sh_dot(b.te, b.tf);
    if (!(b.chi > 1e-12)) b.chi = 1e-12;
    fsi__sh_cross(b.te, b.tf, b.kb);
    for (a = 0; a < 3; a++) b.kb[a] *= 2 / b.chi;
    return b;
}

FSI_FN double fsi__shell_skew(const double *v, int a, int b) /* ([v]x)_ab */
{
    return a == b ? 0 : (b - a + 3) % 3 == 1 ? -v[3 - a - b] : v[3 - a - b];
}

/* d kb to e and f: (-2 [tf]x - kb tf^T)(1 - te te^T) / (chi |e|),  (2 [te]x - kb te^T)(1 - tf tf^T) / (chi |f|). */
static void fsi__shell_bent_slope(const fsi__shell_bent *b, double j[3][6])
{
    int a, c, k;
    for (a = 0; a < 3; a++) {
        double e[3], f[3], along_e, along_f;
        for (k = 0; k < 3; k++) {
            e[k] = -2 * fsi__shell_skew(b->tf, a, k) - b->kb[a] * b->tf[k];
            f[k] = 2 * fsi__shell_skew(b->te, a, k) - b->kb[a] * b->te[k];
        }
        along_e = fsi__sh_dot(e, b->te);
        along_f = fsi__sh_dot(f, b->tf);
        for (c = 0; c < 3; c++) {
            j[a][c] = (e[c] - along_e * b->te[c]) / (b->chi * b->le);
            j[a][3 + c] = (f[c] - along_f * b->tf[c]) / (b->chi * b->lf);
        }
    }
}

/* Second derivative of c = te.tf to e, f, and the first. */
static void fsi__shell_cosine(const fsi__shell_bent *b, double *g, double *h)
{
    const double c = b->chi - 1;
    double p[3], q[3];
    int i, j;
    for (i = 0; i < 3; i++) {
        p[i] = b->tf[i] - c * b->te[i];
        q[i] = b->te[i] - c * b->tf[i];
        g[i] = p[i] / b->le;
        g[3 + i] = q[i] / b->lf;
    }
    for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) {
        const double one = i == j ? 1 : 0;
        h[6 * i + j] = -(b->te[i] * p[j] + p[i] * b->te[j] + c * (one - b->te[i] * b->te[j])) / (b->le * b->le);
        h[6 * (3 + i) + 3 + j] = -(b->tf[i] * q[j] + q[i] * b->tf[j] + c * (one - b->tf[i] * b->tf[j]))
            / (b->lf * b->lf);
        h[6 * i + 3 + j] = h[6 * (3 + j) + i] = (one - b->te[i] * b->te[j] - b->tf[i] * b->tf[j]
            + c * b->te[i] * b->tf[j]) / (b->le * b->lf);
    }
}

FSI_API double fsi__shell_bend(double stiffness, double rest, const double *x, double *g, double *h, int exact)
{
    const fsi__shell_bent b = fsi__shell_bent_at(x);
    const double u = fsi__sh_dot(b.kb, b.kb), r = sqrt(u + 1e-6 * rest * rest), least = rest * sqrt(1 + 1e-6),
        ratio = rest > 0 ? least / r : 0;
    double g6[6], h6[36], j[3][6], pull[6];
    int i, k, a;

    /* The gradient. */
    fsi__shell_bent_slope(&b, j);
    for (i = 0; i < 6; i++) {
        pull[i] = b.kb[0] * j[0][i] + b.kb[1] * j[1][i] + b.kb[2] * j[2][i];
        g6[i] = stiffness * (1 - ratio) * pull[i];
    }

    /* The Hessian. */
    if (h && exact) {
        const double chi = b.chi, du = -8 / (chi * chi), ddu = 16 / (chi * chi * chi),
            slope = stiffness / 2 * (1 - ratio), second = rest > 0 ? stiffness / 4 * least / (r * r * r) : 0;
        double c1[6], c2[36];
        fsi__shell_cosine(&b, c1, c2);
        for (i = 0; i < 6; i++) for (k = 0; k < 6; k++)
            h6[6 * i + k] = (second * du * du + slope * ddu) * c1[i] * c1[k] + slope * du * c2[6 * i + k];
    } else if (h) { /* along kb the full stiffness, across it the part that the force supports */
        const double across = ratio < 1 ? stiffness * (1 - ratio) : 0, along = u > 0 ? (stiffness - across) / u : 0;
        for (i = 0; i < 6; i++) for (k = 0; k < 6; k++) {
            h6[6 * i + k] = along * pull[i] * pull[k];
            for (a = 0; a < 3; a++) h6[6 * i + k] += across * j[a][i] * j[a][k];
        }
    }
    fsi__shell_from_edges(g6, h6, 6, g, h, 9);
    return stiffness / 2 * (r - least) * (r - least);
}

FSI_API double fsi__shell_bend_flat(double stiffness, double rest, const double *x, double *g, double *h, int exact)
{
    const fsi__shell_bent b = fsi__shell_bent_at(x);
    const double k = b.kb[2], slope = 1 + k * k / 4, pull = stiffness * (k - rest) * slope,
        more = exact || pull * k > 0 ? pull * k / 2 : 0;
    const double turn[6] = { b.te[1] / b.le, -b.te[0] / b.le, 0, -b.tf[1] / b.lf, b.tf[0] / b.lf, 0 }; /* of phi */
    double g6[6], h6[36];
    int i, j, side;
    for (i = 0; i < 6; i++) g6[i] = pull * turn[i];
    if (h) for (i = 0; i < 6; i++) for (j = 0; j < 6; j++)
        h6[6 * i + j] = (stiffness * slope * slope + more) * turn[i] * turn[j];
    /* an edge that grows turns less */
    for (side = 0; h && exact && side < 2; side++) for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) {
        const double *t = side ? b.tf : b.te, *d = turn + 3 * side, l = side ? b.lf : b.le;
        h6[6 * (3 * side + i) + 3 * side + j] -= pull * (t[i] * d[j] + d[i] * t[j]) / l;
    }
    fsi__shell_from_edges(g6, h6, 6, g, h, 9);
    return stiffness / 2 * (k - rest) * (k - rest);
}

/* v, turned by the smallest rotation that takes a to b: (a.b) v + (a x b) x v + (a x b)((a x b).v)/(1 + a.b). */
static void fsi__shell_transport(const double *a, const double *b, double *v)
{
    double n[3], w[3], c = 1 + fsi__sh_dot(a, b), d;
    int i;
    fsi__sh_cross(a, b, n);
    fsi__sh_cross(n, v, w);
    if (!(c > 1e-12)) return; /* antiparallel tangents: any axis across will do; the director's own leaves it
                                 unchanged */
    d = fsi__sh_dot(n, v) / c;
    for (i = 0; i < 3; i++) v[i] = (c - 1) * v[i] + w[i] + d * n[i];
}

static void fsi__shell_frame_to(fsi__shell_frame *f, const double *tangent)
{
    double along, length;
    int i;
    fsi__shell_transport(f->tangent, tangent, f->director);
    memcpy(f->tangent, tangent, sizeof f->tangent);
    along = fsi__sh_dot(f->director, tangent);
    for (i = 0; i < 3; i++) f->director[i] -= along * tangent[i];
    length = sqrt(fsi__sh_dot(f->director, f->director));
    for (i = 0; i < 3; i++) f->director[i] /= length;
}

FSI_API void fsi__shell_tangent(const double *a, const double *b, double *t)
{
    double l;
    int i;
    fsi__sh_sub(b, a, t);
    l = sqrt(fsi__sh_dot(t, t));
    for (i = 0; i < 3; i++) t[i] = l > 0 ? t[i] / l : i == 0;
}

FSI_API void fsi__shell_frame_transport(fsi__shell_frame *f, const double *a, const double *b)
{
    double t[3];
    fsi__shell_tangent(a, b, t);
    fsi__shell_frame_to(f, t);
}

FSI_API fsi__shell_frame fsi__shell_frame_make(const double *a, const double *b, const double *hint)
{
    fsi__shell_frame f;
    double along, length = 0;
    int i, k;
    fsi__shell_tangent(a, b, f.tangent);
    for (k = 0; k < 4 && !(length > 1e-3); k++) {
        for (i = 0; i < 3; i++) f.director[i] = k == 0 ? hint[i] : i == k - 1;
        length = sqrt(fsi__sh_dot(f.director, f.director));
        for (i = 0; length > 0 && i < 3; i++) f.director[i] /= length;
        along = fsi__sh_dot(f.director, f.tangent);
        for (i = 0; i < 3; i++) f.director[i] -= along * f.tangent[i];
        length = sqrt(fsi__sh_dot(f.director, f.director));
    }
    for (i = 0; i < 3; i++) f.director[i] /= length;
    return f;
}

/* The angle about f's tangent from e's director, carried over, to f's; on the branch nearest to `reference`. */
static double fsi__shell_frames_twist(const fsi__shell_frame *e, const fsi__shell_frame *f, double reference)
{
    double v[3], n[3], angle;
    memcpy(v, e->director, sizeof v);
    fsi__shell_transport(e->tangent, f->tangent, v);
    fsi__sh_cross(v, f->director, n);
    angle = fsi_atan2(fsi__sh_dot(n, f->tangent), fsi__sh_dot(v, f->director));
    return angle + 2 * FSI_PI * floor((reference - angle) / (2 * FSI_PI) + 0.5);
}

FSI_API double fsi__shell_joint_twist(const fsi__shell_frame frame[2], double reference, const double *x)
{
    fsi__shell_frame e = frame[0], f = frame[1];
    fsi__shell_frame_transport(&e, x, x + 3);
    fsi__shell_frame_transport(&f, x + 3, x + 6);
    return fsi__shell_frames_twist(&e, &f, reference);
}

static void fsi__shell_directors(const fsi__shell_frame *f, double theta, double *m1, double *m2)
{
    double d2[3], s, c;
    int i;
    fsi_sincos(theta, &s, &c);
    fsi__sh_cross(f->tangent, f->director, d2);
    for (i = 0; i < 3; i++) {
        m1[i] = c * f->director[i] + s * d2[i];
        m2[i] = -s * f->director[i] + c * d2[i];
    }
}

FSI_API fsi__shell_twisted fsi__shell_twisted_at(const fsi__shell_frame frame[2], double reference, const double *x,
    const double *theta)
{
    fsi__shell_twisted t;
    fsi__shell_frame e = frame[0], f = frame[1];
    int i;
    t.b = fsi__shell_bent_at(x);
    fsi__shell_frame_to(&e, t.b.te);
    fsi__shell_frame_to(&f, t.b.tf);
    fsi__shell_directors(&e, theta[0], t.m1e, t.m2e);
    fsi__shell_directors(&f, theta[1], t.m1f, t.m2f);
    t.kappa[0] = t.kappa[1] = 0;
    for (i = 0; i < 3; i++) {
        t.kappa[0] += (t.m2e[i] + t.m2f[i]) * t.b.kb[i] / 2;
        t.kappa[1] -= (t.m1e[i] + t.m1f[i]) * t.b.kb[i] / 2;
    }
    t.twist = theta[1] - theta[0] + fsi__shell_frames_twist(&e, &f, reference);
    return t;
}

FSI_API void fsi__shell_joint_rest(fsi__shell_joint *j, const fsi__shell_frame frame[2], const double *x,
    double theta0, double theta1)
{
    const double theta[2] = { theta0, theta1 };
    const fsi__shell_twisted t = fsi__shell_twisted_at(frame, 0, x, theta);
    j->rest_curvature[0] = t.kappa[0];
    j->rest_curvature[1] = t.kappa[1];
    j->rest_twist = t.twist;
}

/* Derivatives of kappa_k to e, f (6) and the two thetas, in the order e, f, theta_e, theta_f. u: the directors that
   kappa_k is measured with, w: where they go when theta grows; sign of kappa_k: +m2 (goes to -m1), -m1 (goes to
   -m2). */
static void fsi__shell_curvature_slope(const fsi__shell_twisted *t, int k, double *g)
{
    const fsi__shell_bent *b = &t->b;
    const double *ue = k == 0 ? t->m2e : t->m1e, *uf = k == 0 ? t->m2f : t->m1f, *we = k == 0 ? t->m1e : t->m2e,
        *wf = k == 0 ? t->m1f : t->m2f, sign = k == 0 ? 1 : -1;
    double u[3], ce[3], cf[3];
    int i;
    for (i = 0; i < 3; i++) u[i] = (ue[i] + uf[i]) / b->chi;
    fsi__sh_cross(b->tf, u, ce);
    fsi__sh_cross(b->te, u, cf);
    for (i = 0; i < 3; i++) {
        const double mean = t->kappa[k] * (b->te[i] + b->tf[i]) / b->chi;
        g[i] = (-mean + sign * ce[i]) / b->le;
        g[3 + i] = (-mean - sign * cf[i]) / b->lf;
    }
    g[6] = -fsi__sh_dot(we, b->kb) / 2;
    g[7] = -fsi__sh_dot(wf, b->kb) / 2;
}

/* Second ones, times s, added to the 8 x 8 matrix h. */
static void fsi__shell_curvature_second(const fsi__shell_twisted *t, int k, double s, double *h)
{
    const fsi__shell_bent *b = &t->b;
    const double *ue = k == 0 ? t->m2e : t->m1e, *uf = k == 0 ? t->m2f : t->m1f, *we = k == 0 ? t->m1e : t->m2e,
        *wf = k == 0 ? t->m1f : t->m2f, sign = k == 0 ? 1 : -1;
    const double kappa = t->kappa[k], ee = s / (b->le * b->le), ff = s / (b->lf * b->lf), ef = s / (b->le * b->lf);
    double u[3], mean[3], ce[3], cf[3];
    int i, j, side;

    /* Terms of the two edges. */
    for (i = 0; i < 3; i++) {
        u[i] = (ue[i] + uf[i]) / b->chi;
        mean[i] = (b->te[i] + b->tf[i]) / b->chi;
    }
    fsi__sh_cross(b->tf, u, ce);
    fsi__sh_cross(b->te, u, cf);
    for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) {
        const double one = i == j ? 1 : 0, square = 2 * kappa * mean[i] * mean[j];
        h[8 * i + j] += ee * (square - sign * (ce[i] * mean[j] + mean[i] * ce[j])
            - kappa / b->chi * (one - b->te[i] * b->te[j]) + sign / 4 * (b->kb[i] * ue[j] + ue[i] * b->kb[j]));
        h[8 * (3 + i) + 3 + j] += ff * (square + sign * (cf[i] * mean[j] + mean[i] * cf[j])
            - kappa / b->chi * (one - b->tf[i] * b->tf[j]) + sign / 4 * (b->kb[i] * uf[j] + uf[i] * b->kb[j]));
        {
            const double v = ef * (square - kappa / b->chi * (one + b->te[i] * b->tf[j])
                + sign * (-ce[i] * mean[j] + mean[i] * cf[j] - fsi__shell_skew(u, i, j)));
            h[8 * i + 3 + j] += v;
            h[8 * (3 + j) + i] += v;
        }
    }

    /* Terms with the turn of each frame. */
    for (side = 0; side < 2; side++) {
        const double *w = side == 0 ? we : wf, turn = fsi__sh_dot(b->kb, w) / 2;
        double pe[3], pf[3];
        fsi__sh_cross(b->tf, w, pe);
        fsi__sh_cross(b->te, w, pf);
        for (i = 0; i < 3; i++) {
            const double ve = s / b->le * (turn * mean[i] - pe[i] / b->chi),
                vf = s / b->lf * (turn * mean[i] + pf[i] / b->chi);
            h[8 * i + 6 + side] += ve;
            h[8 * (6 + side) + i] += ve;
            h[8 * (3 + i) + 6 + side] += vf;
            h[8 * (6 + side) + 3 + i] += vf;
        }
        h[9 * (6 + side)] -= s * sign / 2 * fsi__sh_dot(b->kb, side == 0 ? ue : uf);
    }
}

/* The twist: kb / (2 |e|), kb / (2 |f|), -1, 1; and its second derivative times s. */
static void fsi__shell_twist_slope(const fsi__shell_bent *b, double *g)
{
    int i;
    for (i = 0; i < 3; i++) {
        g[i] = b->kb[i] / (2 * b->le);
        g[3 + i] = b->kb[i] / (2 * b->lf);
    }
    g[6] = -1;
    g[7] = 1;
}

static void fsi__shell_twist_second(const fsi__shell_bent *b, double s, double *h)
{
    const double ee = -s / (4 * b->le * b->le), ff = -s / (4 * b->lf * b->lf), ef = s / (2 * b->le * b->lf);
    int i, j;
    for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) {
        const double mi = (b->te[i] + b->tf[i]) / b->chi, mj = (b->te[j] + b->tf[j]) / b->chi;
        const double v = ef * (2 / b->chi * fsi__shell_skew(b->te, i, j) - b->kb[i] * mj);
        h[8 * i + j] += ee * (b->kb[i] * (b->te[j] + mj) + (b->te[i] + mi) * b->kb[j]);
        h[8 * (3 + i) + 3 + j] += ff * (b->kb[i] * (b->tf[j] + mj) + (b->tf[i] + mi) * b->kb[j]);
        h[8 * i + 3 + j] += v;
        h[8 * (3 + j) + i] += v;
    }
}

FSI_API double fsi__shell_joint_energy(const fsi__shell_joint *j, const fsi__shell_frame frame[2], double reference,
    const double *x, const double *theta, double *g, double *h, int exact)
{
    const fsi__shell_twisted t = fsi__shell_twisted_at(frame, reference, x, theta);
    double slope[3][8], g8[8] = { 0 }, h8[64] = { 0 }, w[3], s[3], sum = 0;
    int i, k, a;

    /* Strains from rest, and energy. */
    for (k = 0; k < 3; k++) {
        s[k] = (k < 2 ? j->bend[k] : j->twist) / j->length;
        w[k] = k < 2 ? t.kappa[k] - j->rest_curvature[k] : t.twist - j->rest_twist;
        sum += s[k] / 2 * w[k] * w[k];
    }
    if (!g && !h) return sum;

    /* Their slopes in two edges and two angles. */
    fsi__shell_curvature_slope(&t, 0, slope[0]);
    fsi__shell_curvature_slope(&t, 1, slope[1]);
    fsi__shell_twist_slope(&t.b, slope[2]);

    /* Gradient and Hessian in these. */
    for (k = 0; k < 3; k++) for (i = 0; i < 8; i++) g8[i] += s[k] * w[k] * slope[k][i];
    for (k = 0; h && k < 3; k++) for (i = 0; i < 8; i++) for (a = 0; a < 8; a++)
        h8[8 * i + a] += s[k] * slope[k][i] * slope[k][a];
    if (h && exact) {
        for (k = 0; k < 2; k++) fsi__shell_curvature_second(&t, k, s[k] * w[k], h8);
        fsi__shell_twist_second(&t.b, s[2] * w[2], h8);
    }

    /* To points and angles. */
    fsi__shell_from_edges(g8, h8, 8, g, h, 11);
    for (k = 0; k < 2; k++) {
        const double *row = h8 + 8 * (6 + k);
        if (g) g[9 + k] = g8[6 + k];
        for (i = 0; h && i < 3; i++) for (a = 0; a < 3; a++) {
            const double v = i == 0 ? -row[a] : i == 1 ? row[a] - row[3 + a] : row[3 + a];
            h[11 * (9 + k) + 3 * i + a] = h[11 * (3 * i + a) + 9 + k] = v;
        }
        for (a = 0; h && a < 2; a++) h[11 * (9 + k) + 9 + a] = row[6 + a];
    }
    return sum;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
