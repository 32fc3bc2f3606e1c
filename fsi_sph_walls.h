/* fsi_sph_walls.h - how much of a particle's kernel lies behind the triangles of a wall, by exact integrals over faces.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_sph_walls.h"
         #include "fsi_sph_walls.h"

   A PARTICLE BESIDE A WALL
      fsi_vec3 corner[3];
      int face[3] = { 0, 1, 2 };
      fsi_mesh_desc d = fsi_mesh_default_desc();
      fsi_mesh *wall;
      double lambda, gradient[3];
      corner[0] = fsi_v3(-9, -9, 0); corner[1] = fsi_v3(9, -9, 0); corner[2] = fsi_v3(0, 9, 0);
      d.vertices = corner; d.vertex_count = 3;
      d.elements = face;   d.element_count = 1;
      d.kind = FSI_MESH_OPEN;
      if (fsi_mesh_create(&wall, &d) != FSI_OK) return 1;
      fsi_sph_boundary_integral(wall, fsi_v3(0, 0, 0.05f), 0.1f, FSI_SPH_BOUNDARY_EXACT, &lambda, gradient);
      printf("%g of the kernel is solid, gradient %g 1/m\n", lambda, gradient[2]);
      fsi_mesh_destroy(wall);

   WHAT IT DOES
      The semi-analytical boundary of Liu et al. ("A Semi-Analytical Energy Model for Particle-Based Fluid Simulation
      Involving Complex Moving Boundaries"), its integrals exact instead of by one point; docs/sph.md derives them. For
      your own particles: fsi_sph.h is built on it. The kernel is the spiky one, W(r) = c (1 - r/support)^3. 2D
      (segments) and 3D (triangles).
   WHAT IS IN HERE (search for >>)
      >>boundary       the integral;  >>stages  for fsi's own headers, not for you;  >>kernel  >>boundary integrals
   MACROS: those of fsi.h.
   UNITS: lengths in whatever unit the mesh has.
   PRECISION: double.
*/
#ifndef FSI_SPH_WALLS_H
#define FSI_SPH_WALLS_H

#include "fsi_mesh.h"

/* ---- >>boundary ------------------------------------------------------------------------------------------- */

/* Which boundary integral. EXACT: the kernel's volume integral over the solid, sph.md 4.2. PAPER: the closest-point
   formula of the paper (equations 12, 13), for comparison: over-estimates by 1.25 to 2.75 near a wall. */
typedef enum fsi_sph_boundary { FSI_SPH_BOUNDARY_EXACT, FSI_SPH_BOUNDARY_PAPER } fsi_sph_boundary;

/* The boundary integrals by themselves (sph.md 4): lambda = solid's share of the kernel at x, gradient [1/m]. */
FSI_API void fsi_sph_boundary_integral(const fsi_mesh *mesh, fsi_vec3 x, fsi_real support, fsi_sph_boundary formula,
    double *lambda, double gradient[3]);

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* Spiky kernel (sph.md 2): W(r) = c (1-q)^3, q = r/H < 1, c = 15/(pi H^3) in 3D, 10/(pi H^2) in 2D.
   Below, lengths are in units of H, and these constants are what is left of it. */
typedef struct fsi__sph_kernel {
    double volume;  /* V / H^dim */
    double peak;    /* sigma V c: lambda of a particle alone */
    double sigma;   /* 1 / lattice sum */
    double gk;      /* share of a pressure gradient that the discrete operator sees on the lattice */
    double settled; /* the same in a settled liquid, which packs closely: measured slopes of still pools fit it */
    double sheet;   /* surface tension: makes the areas of a plane surface's particles sum to one */
    double depth;   /* of those particles below the surface, mean by area [H] */
    double wall;    /* s_B: what a lattice at dx/2 from a wall misses, over the exact integral there */
    double viscous; /* weight of (1-q)(2-q) in the viscous operator, that makes it the Laplacian in a settled liquid */
    double drag;    /* what a lattice at dx/2 from a wall misses of that operator, over the integral's slope per
                       distance there */
} fsi__sph_kernel;

#define FSI__SPH_SURFACE 0.4 /* least gradient of the colour at a surface [1/H] */

/* What one face contributes: its signed share of the kernel L, the weight of its normal (I in sph.md), the area within
   the disc (2D: length), and the distance of its plane. */
typedef struct fsi__sph_face { double L, weight, area, delta; } fsi__sph_face;

/* Sum over faces of the boundary integral. */
typedef struct fsi__sph_integral {
    double lambda, g[3], diagonal;
} fsi__sph_integral;

/* The constants for a support of `ratio` spacings. */
FSI_API fsi__sph_kernel fsi__sph_calibrate(int dim, double ratio);
/* Share of the kernel behind a plane at distance delta H >= 0 (sph.md 4.1, 4.3), and its slope -d/ddelta. */
FSI_API double fsi__sph_plane(int dim, double delta, double *slope);
/* What a face contributes at x. */
FSI_API fsi__sph_face fsi__sph_face_at(const fsi_mesh *mesh, int face, fsi_vec3 x, fsi_real inv_support);
/* The paper's formula (12) for that, with its units mended (sph.md 4.1, 4.5): Wbar at the closest point times the cap's
   solid angle. Wbar(q) = int_q^1 W s^2 ds in 3D, int_q^1 W s ds in 2D; the cap is 2 pi (1 - delta), in 2D 2 acos
   delta. */
FSI_API double fsi__sph_paper_at(const fsi_mesh *mesh, int face, fsi_vec3 x, double support, const fsi__sph_face *f);
/* Adds a face with normal n; side is that of x, +1 or -1. */
FSI_API void fsi__sph_add_face(fsi__sph_integral *sum, fsi__sph_face f, fsi_vec3 n, double side);

FSI__STRICT_FN_BEGIN
FSI_FN double fsi__sph_c(int dim) { return (dim == 3 ? 15 : 10) / FSI_PI; }
/* A smooth kernel for the surface's normal: W(q) = c (1-q^2)^3 in units of H. */
FSI_FN double fsi__sph_color_c(int dim) { return dim == 3 ? 315 / (64 * FSI_PI) : 4 / FSI_PI; }
/* How much surface passes through a particle where the gradient of sum V W has this length [1/H]: about 1.2 on it, 0.4
   and less two layers below, where the direction is noise. */
FSI_FN double fsi__sph_surface(double gradient)
{
    return gradient > FSI__SPH_SURFACE ? (gradient - FSI__SPH_SURFACE) * (gradient - FSI__SPH_SURFACE) : 0;
}
FSI__STRICT_FN_END

#endif /* FSI_SPH_WALLS_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_SPH_WALLS_IMPLEMENTATION
#define FSI_SPH_WALLS_IMPLEMENTATION
#endif
#ifdef FSI_SPH_WALLS_IMPLEMENTATION
#ifndef FSI_SPH_WALLS_IMPLEMENTATION_DONE
#define FSI_SPH_WALLS_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_mesh.h"

FSI__STRICT_BEGIN

/* ---- >>kernel ------------------------------------------------------------------------------------------------- */

/* Along a line at distance delta H (2D, sph.md 4.3), from its foot to s: int r^n ds for n = 0 to 3,
   r^2 = delta^2 + s^2, and the angle. */
static void fsi__sph_line_moments(double delta, double s, double r, double m[5])
{
    const double d2 = delta * delta;
    m[0] = s;
    m[1] = (s * r + d2 * (delta > 0 ? fsi_asinh(s / delta) : 0)) / 2;
    m[2] = d2 * s + s * s * s / 3;
    m[3] = s * r * r * r / 4 + 0.75 * d2 * m[1];
    m[4] = fsi_atan2(s, delta);
}

/* Share of the kernel behind that piece of the line, and its slope -d/ddelta. */
static double fsi__sph_line(double delta, const double m[5], double *slope)
{
    *slope = 10 / FSI_PI * (m[0] - 3 * m[1] + 3 * m[2] - m[3]);
    return 10 / FSI_PI * (0.05 * m[4] - delta * (m[0] / 2 - m[1] + 0.75 * m[2] - 0.2 * m[3]));
}

FSI_API double fsi__sph_plane(int dim, double delta, double *slope)
{
    double d2 = delta * delta, m[5], half;
    *slope = 0;
    if (delta >= 1) return 0;
    if (dim == 3) {
        *slope = 1.5 + d2 * (-15 + delta * (30 + delta * (-22.5 + 6 * delta)));
        return 0.5 + delta * (-1.5 + d2 * (5 + delta * (-7.5 + delta * (4.5 - delta))));
    }
    fsi__sph_line_moments(delta, sqrt(1 - d2), 1, m);
    half = fsi__sph_line(delta, m, slope);
    *slope *= 2;
    return 2 * half;
}

/* Sums over a lattice of spacing dx = 1/ratio (in units of H): the kernel itself, r|dW/dr|/dim, and the half that a
   wall at dx/2 cuts off (sph.md 2, 4.4). viscous: (1-q)(2-q) q^2; drag: of the half behind the wall, (1-q)(2-q) (x/r)^2
   times what mirrored rows move against a particle that slides along x, over its velocity. packed: the closest packing
   of the same density instead, hexagonal or face-centred cubic. */
typedef struct fsi__sph_lattice { double sum, gradient, miss, viscous, drag; } fsi__sph_lattice;

static fsi__sph_lattice fsi__sph_sum_lattice(int dim, double ratio, int packed)
{
    const double c = fsi__sph_c(dim), hexagon = sqrt(2 / sqrt(3.0)), cubic = 0.5 * 1.5874010519681994; /* 4^(1/3) / 2 */
    const double pitch = !packed ? 1 : dim == 2 ? hexagon : cubic, row = packed && dim == 2 ? hexagon * sqrt(0.75)
        : pitch;
    const double slant = packed && dim == 2 ? 0.5 : 0; /* of a row against the one before */
    fsi__sph_lattice out = { 0, 0, 0, 0, 0 };
    int i, j, k, depth = dim == 3 ? 6 : 0;

    /* Sums over the sites within the support, and over the half of them that a wall cuts off. */
    for (k = -depth; k <= depth; k++) {
        for (j = -6; j <= 6; j++) {
            for (i = -6; i <= 6; i++) {
                double x = pitch * (i + slant * j), y = row * j, z = pitch * k, q, t;
                if (packed && dim == 3 && ((i + j + k) & 1)) continue; /* face-centred: every other site */
                q = sqrt(x * x + y * y + z * z) / ratio;
                t = q < 1 ? 1 - q : 0;
                out.sum += c * t * t * t;
                out.gradient += q * 3 * c * t * t / dim;
                out.viscous += t * (1 + t) * q * q;
                if (j >= 0) continue;
                out.miss += c * t * t * t;
                out.drag += t * (1 + t) * x * x / (x * x + y * y + z * z) * -2 * y;
            }
        }
    }
    return out;
}

/* Sums over a lattice plane at height z (in H): the colour's slope and (1-q^2)^3, both without factors. */
static void fsi__sph_sum_plane(int dim, double ratio, double z, double *slope, double *weight)
{
    int i, j, depth = dim == 3 ? 3 : 0;
    *slope = *weight = 0;
    for (j = -depth; j <= depth; j++) {
        for (i = -3; i <= 3; i++) {
            double t = 1 - z * z - (i * i + j * j) / (ratio * ratio);
            if (!(t > 0)) continue;
            *slope += t * t * z;
            *weight += t * t * t;
        }
    }
}

/* A column of a lattice below a plane surface: particles at depth (k + 1/2) dx. The area of one is proportional to m/b,
   its m over the sum b of m (1-q^2)^3 around it; the factor makes sum V m/b over the column its cross-section. */
static double fsi__sph_calibrate_sheet(int dim, double ratio, double *depth)
{
    const double c = 6 * fsi__sph_color_c(dim) / (dim == 3 ? ratio * ratio * ratio : ratio * ratio);
    double m[3], slope, weight, sum = 0, below = 0;
    int k, j;

    /* Surface density of the layers: m. */
    for (k = 0; k < 3; k++) {
        double gradient = 0;
        for (j = -k; j <= 3; j++) {
            fsi__sph_sum_plane(dim, ratio, j / ratio, &slope, &weight);
            gradient += c * slope;
        }
        m[k] = fsi__sph_surface(gradient);
    }

    /* The contribution of each layer, V m/b. */
    for (k = 0; k < 3; k++) {
        double b = 0;
        for (j = 0; j < 3; j++) {
            fsi__sph_sum_plane(dim, ratio, (j - k) / ratio, &slope, &weight);
            b += m[j] * weight;
        }
        if (!(b > 0)) continue;
        sum += m[k] / b;
        below += m[k] / b * (k + 0.5) / ratio;
    }
    *depth = below / sum;
    return ratio / sum;
}

FSI_API fsi__sph_kernel fsi__sph_calibrate(int dim, double ratio)
{
    const fsi__sph_lattice plain = fsi__sph_sum_lattice(dim, ratio, 0), packed = fsi__sph_sum_lattice(dim, ratio, 1);
    fsi__sph_kernel kernel;
    double slope;
    kernel.volume = 1 / (dim == 3 ? ratio * ratio * ratio : ratio * ratio);
    kernel.sigma = 1 / (plain.sum * kernel.volume);
    kernel.peak = fsi__sph_c(dim) / plain.sum;
    kernel.gk = plain.gradient / plain.sum;
    kernel.settled = packed.gradient < plain.gradient ? packed.gradient / plain.sum : kernel.gk;
    kernel.sheet = fsi__sph_calibrate_sheet(dim, ratio, &kernel.depth);
    kernel.wall = plain.miss / plain.sum / fsi__sph_plane(dim, 0.5 / ratio, &slope);
    kernel.viscous = 2 * dim * (dim + 2) / packed.viscous;
    kernel.drag = kernel.viscous * plain.drag / (slope * 2 * ratio);
    return kernel;
}

/* ---- >>boundary integrals ------------------------------------------------------------------------------------- */

/* The solid's share of the kernel is a volume integral; the divergence theorem turns it into a sum over faces, and
   Green's theorem each face into a sum over its edges (sph.md 4.2). Seen along the plane of a face, f the foot of x:

            u ______________ w        the part of the edge inside the support disc (radius Rd) from b0 to b1,
             \  b0     b1   /         outside it the integrand is constant in the angle
              \  :  p  :   /
               \ : /|\ :  /
                  f

   Everything is in units of H; delta is the distance of x from the plane. */

FSI_FN double fsi__sph_P(double q) { return -1 + q * q * q * (-10 + q * (15 + q * (-9 + 2 * q))); } /* q P(q) */
FSI_FN double fsi__sph_Q(double q) { double q2 = q * q; return q2 * (0.5 - q + 0.75 * q2 - 0.2 * q2 * q); }

/* Angle from direction (c0, s0) to (c1, s1), less than half a turn. */
FSI_FN double fsi__sph_turn(double s0, double c0, double s1, double c1)
{
    return fsi_atan2(s1 * c0 - s0 * c1, c1 * c0 + s1 * s0);
}

/* asinh(s1/a) - asinh(s0/a) with r = sqrt(s^2 + a2), a2 > 0: log of (s1 + r1)/(s0 + r0), without cancellation. */
FSI_FN double fsi__sph_asinh_step(double a2, double s0, double r0, double s1, double r1)
{
    if (s1 <= 0) return fsi_log((r0 - s0) / (r1 - s1));
    return s0 >= 0 ? fsi_log((s1 + r1) / (s0 + r0)) : fsi_log((s1 + r1) * (r0 - s0) / a2);
}

/* Adds the integrals over the triangle (f, u, w), of F and G of sph.md 4.2 dtheta, and its area within the disc, times
   `side`. p > 0 is the distance of f from the edge line, s0 < s1 the ends along it. Inside the disc J_n = int r^n
   p / (p^2 + s^2) ds. */
static void fsi__sph_add_edge(fsi__sph_face *out, double delta, double p, double s0, double s1, double side)
{
    const double d2 = delta * delta, rd2 = 1 - d2, a2 = d2 + p * p, dP = fsi__sph_P(delta), q0 = fsi__sph_Q(delta);
    const double chord = p * p < rd2 ? sqrt(rd2 - p * p) : 0;
    const double b0 = s0 < -chord ? -chord : s0 > chord ? chord : s0,
        b1 = s1 < -chord ? -chord : s1 > chord ? chord : s1;
    const double whole = fsi__sph_turn(s0, p, s1, p);
    double inside = 0, flux = 0, weight = 0, area = 0;

    /* Inside the disc. */
    if (b1 > b0) {
        const double r0 = sqrt(a2 + b0 * b0), r1 = sqrt(a2 + b1 * b1);
        const double K_1 = fsi__sph_asinh_step(a2, b0, r0, b1, r1), K0 = b1 - b0;
        const double K1 = (b1 * r1 - b0 * r0 + a2 * K_1) / 2, K2 = a2 * K0 + (b1 * b1 * b1 - b0 * b0 * b0) / 3;
        const double K3 = (b1 * r1 * r1 * r1 - b0 * r0 * r0 * r0) / 4 + 0.75 * a2 * K1;
        const double J_1 = fsi__sph_turn(delta * b0, p * r0, delta * b1, p * r1); /* delta J_-1 */
        const double J0 = b0 == s0 && b1 == s1 ? whole : fsi__sph_turn(b0, p, b1, p), J1 = delta * J_1 + p * K_1;
        const double J2 = d2 * J0 + p * K0, J3 = d2 * J1 + p * K1, J4 = d2 * J2 + p * K2, J5 = d2 * J3 + p * K3;
        inside = J0;
        flux = (-J_1 + delta * (-10 * J2 + 15 * J3 - 9 * J4 + 2 * J5) - dP * J0) / (4 * FSI_PI);
        weight = 15 / FSI_PI * (J2 / 2 - J3 + 0.75 * J4 - 0.2 * J5 - q0 * J0);
        area = p * K0 / 2;
    }

    /* The rest lies beyond the disc. */
    out->L += side * (flux + (whole - inside) * (-3 * delta - dP) / (4 * FSI_PI));
    out->weight += side * (weight + (whole - inside) * 15 / FSI_PI * (0.05 - q0));
    out->area += side * (area + (whole - inside) * rd2 / 2);
}

/* Corners are relative to x: the foot is at -d n, in-plane parts need no shift. */
static void fsi__sph_triangle(const fsi_vec3 *corner, fsi_vec3 n, fsi__sph_face *out)
{
    int k;
    for (k = 0; k < 3; k++) {
        fsi_vec3 u = corner[k], w = corner[k == 2 ? 0 : k + 1], t = fsi_v3_unit(fsi_v3_sub(w, u));
        double s0 = (double)fsi_v3_dot(u, t), s1 = (double)fsi_v3_dot(w, t),
            p = (double)fsi_v3_dot(fsi_v3_cross(u, t), n);
        if (!(fabs(p) < 1e-12)) fsi__sph_add_edge(out, out->delta, fabs(p), s0, s1, p < 0 ? -1 : 1);
    }
}

/* The same for a segment in 2D (sph.md 4.3). */
static void fsi__sph_segment(const fsi_vec3 *corner, fsi__sph_face *out)
{
    const double delta = out->delta, d2 = delta * delta, chord = sqrt(1 - d2);
    const fsi_vec3 t = fsi_v3_unit(fsi_v3_sub(corner[1], corner[0]));
    double m[2][5];
    int e, k;
    for (e = 0; e < 2; e++) {
        double s = (double)fsi_v3_dot(corner[e], t);
        s = s < -chord ? -chord : s > chord ? chord : s;
        fsi__sph_line_moments(delta, s, sqrt(d2 + s * s), m[e]);
    }
    for (k = 0; k < 5; k++) m[1][k] -= m[0][k];
    if (!(m[1][0] > 0)) return;
    out->L = fsi__sph_line(delta, m[1], &out->weight);
    out->area = m[1][0];
}

FSI_API fsi__sph_face fsi__sph_face_at(const fsi_mesh *mesh, int face, fsi_vec3 x, fsi_real inv_support)
{
    const fsi_vec3 n = mesh->face_normals[face];
    fsi__sph_face out = { 0, 0, 0, 0 };
    fsi_vec3 corner[3];
    fsi_real d;
    int k;
    for (k = 0; k < mesh->corners; k++)
        corner[k] = fsi_v3_scale(fsi_v3_sub(mesh->vertices[mesh->faces[mesh->corners * face + k]], x), inv_support);
    d = -fsi_v3_dot(corner[0], n);
    out.delta = fabs((double)d);
    if (out.delta >= 1) return out;
    if (mesh->corners == 3) fsi__sph_triangle(corner, n, &out);
    else fsi__sph_segment(corner, &out);
    if (d < 0) out.L = -out.L;
    return out;
}

FSI_API double fsi__sph_paper_at(const fsi_mesh *mesh, int face, fsi_vec3 x, double support, const fsi__sph_face *f)
{
    const double q = (double)fsi_mesh_closest_on_face(mesh, face, x).t / support, q3 = q * q * q,
        d2 = f->delta * f->delta;
    const double cosine = q > 0 ? f->delta / q : 1, side = f->L < 0 ? -1 : 1;
    double wbar;
    if (q >= 1 || f->delta >= 1) return 0;
    if (mesh->corners == 3) {
        wbar = 15 / FSI_PI * (1.0 / 60 - q3 * (1.0 / 3 - q * (0.75 - q * (0.6 - q / 6))));
        return side * wbar * cosine * f->area / (FSI_PI * (1 - d2)) * 2 * FSI_PI * (1 - f->delta);
    }
    wbar = 10 / FSI_PI * (0.05 - fsi__sph_Q(q));
    return side * wbar * cosine * f->area / (2 * sqrt(1 - d2)) * 2 * fsi_atan2(sqrt(1 - d2), f->delta);
}

FSI_API void fsi__sph_add_face(fsi__sph_integral *sum, fsi__sph_face f, fsi_vec3 n, double side)
{
    double delta = f.delta > 0.05 ? f.delta : 0.05;
    sum->lambda += side * f.L;
    sum->g[0] -= side * f.weight * (double)n.x;
    sum->g[1] -= side * f.weight * (double)n.y;
    sum->g[2] -= side * f.weight * (double)n.z;
    sum->diagonal += f.weight / delta;
}

FSI_API void fsi_sph_boundary_integral(const fsi_mesh *mesh, fsi_vec3 x, fsi_real support, fsi_sph_boundary formula,
    double *lambda, double gradient[3])
{
    fsi_mesh_hit closest;
    fsi__sph_integral sum = { 0, { 0, 0, 0 }, 0 };
    int face, k;
    if (!lambda || !gradient) return;
    *lambda = gradient[0] = gradient[1] = gradient[2] = 0;
    if (!mesh || mesh->cookie != FSI__COOKIE('m', fsi_mesh) || !fsi_v3_is_finite(x) || !(support > 0)
        || !fsi_is_finite((double)support)) return;
    closest = fsi_mesh_closest(mesh, x, FSI_REAL_MAX, -1);
    for (face = 0; face < mesh->face_count; face++) {
        fsi__sph_face f = fsi__sph_face_at(mesh, face, x, 1 / support);
        if (formula == FSI_SPH_BOUNDARY_PAPER) f.L = fsi__sph_paper_at(mesh, face, x, (double)support, &f);
        fsi__sph_add_face(&sum, f, mesh->face_normals[face], 1);
    }
    *lambda = sum.lambda + (mesh->kind == FSI_MESH_CLOSED && closest.face >= 0 && closest.side < 0);
    for (k = 0; k < 3; k++) gradient[k] = sum.g[k] / (double)support;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
