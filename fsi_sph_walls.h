/* fsi_sph_walls.h - the fraction of a particle's kernel behind the triangles of a wall, by exact integrals over faces.
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
      >>boundary       the integral
      >>contact        the potential that keeps particles off walls
      >>stages         for fsi's own headers, not for you:  >>kernel  its constants,  >>walls of one particle  the
                       faces near it, their contact planes, integrals and closest points
   MACROS: those of fsi.h, and
      FSI_SPH_PARTS        obstacles that one particle of fsi_sph.h distinguishes (stats.crowded), 1 to 255: each takes
                           120 bytes for a particle near walls, and 100 of stack         default: 4
   UNITS: lengths in whatever unit the mesh has.
   PRECISION: double.
*/
#ifndef FSI_SPH_WALLS_H
#define FSI_SPH_WALLS_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_obstacle.h"
#include "fsi_particles.h"

#ifndef FSI_SPH_PARTS
#define FSI_SPH_PARTS 4
#endif
#if FSI_SPH_PARTS < 1 || FSI_SPH_PARTS > 255
#error "FSI_SPH_PARTS must be 1 to 255"
#endif

/* ---- >>boundary ------------------------------------------------------------------------------------------- */

/* Which boundary integral. EXACT: the kernel's volume integral over the solid, sph.md 4.2. PAPER: the closest-point
   formula of the paper (equations 12, 13), for comparison: over-estimates by 1.25 to 2.75 near a wall. */
typedef enum fsi_sph_boundary { FSI_SPH_BOUNDARY_EXACT, FSI_SPH_BOUNDARY_PAPER } fsi_sph_boundary;

/* The boundary integrals by themselves (sph.md 4): lambda = fraction of the kernel at x in the solid, gradient
   [1/m]. */
FSI_API void fsi_sph_boundary_integral(const fsi_mesh *mesh, fsi_vec3 x, fsi_real support, fsi_sph_boundary formula,
    double *lambda, double gradient[3]);

/* ---- >>contact -------------------------------------------------------------------------------------------- */

/* The contact potential's force and diagonal (sph.md 5): cm = -c'_-, cp = c'_+/gamma for gamma = d/dhat. */
FSI_API void fsi_sph_contact(double gamma, int first, int order, double *cm, double *cp);

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* Spiky kernel (sph.md 2): W(r) = c (1-q)^3, q = r/H < 1, c = 15/(pi H^3) in 3D, 10/(pi H^2) in 2D. Lengths below are
   in units of H. */
typedef struct fsi__sph_kernel {
    double volume;  /* V / H^dim */
    double peak;    /* sigma V c: lambda of a particle alone */
    double sigma;   /* 1 / lattice sum */
    double gk;      /* fraction of a pressure gradient that the discrete operator gives on the lattice */
    double settled; /* the same for close packing, as in a settled liquid; agrees with measured slopes of still pools */
    double sheet;   /* surface tension: makes the areas of a plane surface's particles sum to one */
    double depth;   /* of those particles below the surface, mean by area [H] */
    double wall;    /* s_B: missing kernel sum of a lattice at dx/2 from a wall, over the exact integral there */
    double viscous; /* weight of (1-q)(2-q) in the viscous operator, that makes it the Laplacian in a settled liquid */
    double drag;    /* missing part of that operator for a lattice at dx/2 from a wall, over the integral's slope
                       divided by the distance */
} fsi__sph_kernel;

#define FSI__SPH_SURFACE 0.4 /* smallest gradient of the colour field at a surface [1/H] */

/* Contribution of one face: the signed kernel integral L, the weight of its normal (I in sph.md), the area within the
   disc (2D: length), and the distance of its plane. */
typedef struct fsi__sph_face { double L, weight, area, delta; } fsi__sph_face;

/* Sum over faces of the boundary integral. */
typedef struct fsi__sph_integral {
    double lambda, g[3], diagonal;
} fsi__sph_integral;


/* ---- >>walls of one particle ------------------------------------------------------------------------------------ */

#define FSI__SPH_CONTACTS 8   /* contact planes of one particle, at most */
#define FSI__SPH_CLOSEST 32   /* closest faces considered for contact planes */

/* A plane that a particle must not pass: gap(u) = gap + n.(u - at), in units of H. */
typedef struct fsi__sph_plane_contact { fsi__lane n[3], gap; int part; } fsi__sph_plane_contact;

/* One obstacle near one particle. A coupled body moves within the solve: then u - at is relative to it, that is, minus
   the body's displacement at the particle since the wall was made. */
typedef struct fsi__sph_part {
    int owner;                   /* index of the obstacle */
    int body;                    /* index of the coupled body it is fixed to, -1: its motion is given */
    int face;                    /* the closest one, and the weights of its corners at the closest point */
    fsi__lane bary[3];
    fsi__lane g[3], diagonal;    /* this obstacle's part of those of the wall */
    /* coupled: position relative to the body's centre; the body's displacement there when the wall was made [H] */
    fsi__lane arm[3], moved[3];
    fsi__lane force[3], weight;  /* coupled: force and diagonal of the last sweep */
    double impulse[3];           /* after the solve: impulse on the particle over its mass [m/s] */
    fsi__lane drag, surface[3];  /* viscous coefficient; velocity of the wall where its motion is given [m/s] */
} fsi__sph_part;

/* The walls near one particle, linearised at the displacement `at`: lambda_B(u) = lambda + g.(u - at). */
typedef struct fsi__sph_wall {
    fsi__lane lambda, g[3];  /* times s_B */
    fsi__lane diagonal;      /* s_B sum I_s / max(|d_s|, 0.05) */
    fsi__lane at[3];
    fsi__lane clear;         /* unsigned distance from all meshes at `at` (at most the reach) */
    fsi__lane kappa;         /* contact stiffness, kappa dt^2/(rho0 H^2) */
    int order;               /* N of the contact potential */
    int inside;              /* 1 when some gap was negative in the last sweep */
    int placed;              /* 1: its end position was moved out of a solid */
    int coupled;             /* 1: some part moves within the solve */
    int pushed;              /* 1: the walls gave it an impulse in this substep */
    int contact_count, part_count;
    int crowded;             /* 1: more obstacles than parts: the last part sums up all the others */
    fsi__sph_plane_contact contact[FSI__SPH_CONTACTS];
    fsi__sph_part part[FSI_SPH_PARTS];
} fsi__sph_wall;

/* A face near a particle. Only local minima of the distance exert forces: a face whose closest point lies on an edge or
   vertex of a closer face is left out. */
typedef struct fsi__sph_near {
    fsi_mesh_hit hit;
    int owner, part;
    fsi_real side;  /* +1; for sheets the side the particle is on */
} fsi__sph_near;

/* Parameters common to all particles. */
typedef struct fsi__sph_scene {
    const fsi__obstacles *obstacles;
    double h;                /* H [m] */
    double dhat, band;       /* contact thickness; farthest that a particle may move before its walls are made again
                                [H] */
    fsi_sph_boundary boundary;
} fsi__sph_scene;

/* One particle's surroundings. */
typedef struct fsi__sph_view {
    fsi_vec3 x;
    fsi_real closest;       /* distance from the nearest face, at most H */
    int inside;             /* closed obstacles it is in */
    int flat;               /* 1: all faces within H are one coplanar patch that covers the support disc */
    int reach_count, near_count, part_count, crowded;
    int reach[FSI__FACES];           /* faces within H: index into the faces, ~index where a sheet's normal is turned */
    unsigned char reach_part[FSI__FACES];
    int part_owner[FSI_SPH_PARTS];      /* the obstacles they belong to, and the closest point of each */
    fsi_mesh_hit part_hit[FSI_SPH_PARTS];
    fsi__sph_near close_by[FSI__SPH_CLOSEST]; /* the nearest faces within the contact band, nearest first */
} fsi__sph_view;

/* The faces near a particle that moved from `from` to x. */
FSI_API void fsi__sph_look_around(const fsi__sph_scene *scene, const fsi__faces *faces, fsi_vec3 from, fsi_vec3 x,
    fsi__sph_view *view);
/* lambda_B = chi + sum L_s, grad = - sum I_s n_s (sph.md 4.2), the chi left out, for each of FSI_SPH_PARTS
   obstacles. */
FSI_API void fsi__sph_integrate(const fsi__sph_scene *scene, const fsi__faces *faces, const fsi__sph_view *view,
    fsi__sph_integral *sum);
FSI_API double fsi__sph_contact_energy(double gamma, int first, int order); /* c itself, over kappa */
/* The contact planes of a wall, from the nearest faces. */
FSI_API void fsi__sph_make_contacts(const fsi__sph_scene *scene, const fsi__sph_near *list, int count, fsi_vec3 x,
    fsi__sph_wall *w);

/* ---- >>kernel: its constants ------------------------------------------------------------------------------------ */

/* The constants for a support of `ratio` spacings. */
FSI_API fsi__sph_kernel fsi__sph_calibrate(int dim, double ratio);
/* Fraction of the kernel behind a plane at distance delta H >= 0 (sph.md 4.1, 4.3), and its slope -d/ddelta. */
FSI_API double fsi__sph_plane(int dim, double delta, double *slope);

FSI__STRICT_FN_BEGIN
FSI_FN double fsi__sph_dot3(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
FSI_FN void fsi__sph_add3(double *sum, fsi_vec3 v)
{
    sum[0] += (double)v.x;
    sum[1] += (double)v.y;
    sum[2] += (double)v.z;
}

FSI_FN double fsi__sph_c(int dim) { return (dim == 3 ? 15 : 10) / FSI_PI; }
/* A smooth kernel for the surface's normal: W(q) = c (1-q^2)^3 in units of H. */
FSI_FN double fsi__sph_color_c(int dim) { return dim == 3 ? 315 / (64 * FSI_PI) : 4 / FSI_PI; }
/* Surface weight of a particle by the length of the gradient of sum V W [1/H]: about 1.2 on the surface; 0.4 or less
   two layers below, where its direction is noise. */
FSI_FN double fsi__sph_surface(double gradient)
{
    return gradient > FSI__SPH_SURFACE ? (gradient - FSI__SPH_SURFACE) * (gradient - FSI__SPH_SURFACE) : 0;
}
FSI__STRICT_FN_END

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

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
#include "fsi_obstacle.h"
#include "fsi_particles.h"

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

/* Fraction of the kernel behind that piece of the line, and its slope -d/ddelta. */
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

FSI__COLD_BEGIN

/* Sums over a lattice of spacing dx = 1/ratio (in units of H): the kernel itself, r|dW/dr|/dim, and the half that a
   wall at dx/2 cuts off (sph.md 2, 4.4). viscous: (1-q)(2-q) q^2; drag: of the half behind the wall, (1-q)(2-q) (x/r)^2
   times the relative motion of mirrored rows for a particle that slides along x, over its velocity. packed: the closest
   packing of the same density instead, hexagonal or face-centred cubic. */
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

FSI__COLD_END

/* ---- >>boundary integrals ------------------------------------------------------------------------------------- */

/* The fraction of the kernel in the solid is a volume integral; the divergence theorem turns it into a sum over faces,
   and Green's theorem each face into a sum over its edges (sph.md 4.2). In the plane of a face, f is the foot of x:

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

/* Contribution of a face at x. */
static fsi__sph_face fsi__sph_face_at(const fsi_mesh *mesh, int face, fsi_vec3 x, fsi_real inv_support)
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

/* The paper's formula (12) for that, with its units corrected (sph.md 4.1, 4.5): Wbar at the closest point times the
   cap's solid angle. Wbar(q) = int_q^1 W s^2 ds in 3D, int_q^1 W s ds in 2D; the cap is 2 pi (1 - delta), in 2D 2 acos
   delta. */
static double fsi__sph_paper_at(const fsi_mesh *mesh, int face, fsi_vec3 x, double support, const fsi__sph_face *f)
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

/* Adds a face with normal n; side is that of x, +1 or -1. */
static void fsi__sph_add_face(fsi__sph_integral *sum, fsi__sph_face f, fsi_vec3 n, double side)
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

/* ---- >>contact potential ----------------------------------------------------------------------------------------- */

/* c(g) = sum_{n=n0}^N (1-g)^n / n for g < 1 (sph.md 5, equation 15). c' = -cm + cp g with cm = sum_{k odd} C(N,k)
   g^(k-1) (less 1 for n0 = 2) and cp = sum_{k even >= 2} C(N,k) g^(k-2): both >= 0, no division by g. */
FSI_API void fsi_sph_contact(double gamma, int first, int order, double *cm, double *cp)
{
    double g = gamma < -2 ? -2 : gamma, g2 = g * g, power = 1, binomial;
    int k;
    if (order > 64) order = 64;
    binomial = order;
    *cm = first == 2 ? -1 : 0;
    *cp = 0;
    for (k = 1; k <= order; k++) {
        if (k & 1) *cm += binomial * power;
        else {
            *cp += binomial * power;
            power *= g2;
        }
        binomial *= (double)(order - k) / (k + 1);
    }
}

FSI_API double fsi__sph_contact_energy(double gamma, int first, int order)
{
    double t = 1 - (gamma < -2 ? -2 : gamma), power = first == 2 ? t : 1, sum = 0;
    int n;
    for (n = first; n <= order; n++) sum += (power *= t) / n;
    return sum;
}

/* ---- >>walls of one particle: from its faces --------------------------------------------------------------------- */

/* Distance of x from the edge (k, k+1) of a triangle. */
static fsi_real fsi__sph_edge_distance(const fsi_mesh *mesh, int face, int k, fsi_vec3 x)
{
    fsi_vec3 a = mesh->vertices[mesh->faces[3 * face + k]],
        b = mesh->vertices[mesh->faces[3 * face + (k == 2 ? 0 : k + 1)]];
    fsi_vec3 ab = fsi_v3_sub(b, a), ax = fsi_v3_sub(x, a);
    fsi_real l2 = fsi_v3_norm2(ab), t = l2 > 0 ? fsi_clamp(fsi_v3_dot(ax, ab) / l2, 0, 1) : 0;
    return fsi_v3_norm(fsi_v3_sub(ax, fsi_v3_scale(ab, t)));
}

/* Is the support disc of x within the coplanar patch of this face, judged by this face alone? */
static int fsi__sph_covers(const fsi__obstacle *o, int face, fsi_vec3 x, fsi_real support)
{
    int k;
    if (o->mesh->corners != 3) return 0;
    for (k = 0; k < 3; k++) {
        int other = o->mesh->face_neighbor[3 * face + k];
        if (other >= 0 && o->patch[other] == o->patch[face]) continue;
        if (fsi__sph_edge_distance(o->mesh, face, k, x) < support) return 0;
    }
    return 1;
}

/* Does face b hold every corner of face a that the closest point of a depends on? */
static int fsi__sph_shares_feature(const fsi_mesh *mesh, const fsi_mesh_hit *a, int b)
{
    int k, j, needed = 0, shared = 0;
    for (k = 0; k < mesh->corners; k++) {
        if (a->bary[k] < (fsi_real)1e-6) continue;
        needed++;
        for (j = 0; j < mesh->corners; j++) shared += mesh->faces[mesh->corners * b + j] == mesh->faces[mesh->corners
            * a->face + k];
    }
    return needed < mesh->corners && shared == needed;
}

static int fsi__sph_is_minimum(const fsi__obstacles *obstacles, const fsi__sph_near *list, int k)
{
    const fsi_mesh *mesh = fsi__obstacle_at(obstacles, list[k].owner)->mesh;
    int j;
    for (j = 0; j < k; j++)
        if (list[j].owner == list[k].owner && fsi__sph_shares_feature(mesh, &list[k].hit, list[j].hit.face)) return 0;
    return 1;
}

/* Sign of the closest feature of each obstacle's connected group: a contact counts only when it agrees (sph.md 5). */
static int fsi__sph_group_side(const fsi__obstacles *obstacles, const fsi__sph_near *list, int k)
{
    const int *group = fsi__obstacle_at(obstacles, list[k].owner)->mesh->face_group;
    int j;
    for (j = 0; j < k; j++)
        if (list[j].owner == list[k].owner && group[list[j].hit.face] == group[list[k].hit.face])
            return list[j].hit.side;
    return list[k].hit.side;
}

FSI_API void fsi__sph_make_contacts(const fsi__sph_scene *scene, const fsi__sph_near *list, int count, fsi_vec3 x,
    fsi__sph_wall *w)
{
    const double h = scene->h;
    int k;
    w->contact_count = 0;
    for (k = 0; k < count && w->contact_count < FSI__SPH_CONTACTS; k++) {
        fsi__sph_plane_contact *c = &w->contact[w->contact_count];
        const fsi__sph_near *item = &list[k];
        int sheet = fsi__is_sheet(scene->obstacles, item->owner), side = sheet ? (int)item->side * item->hit.side
            : item->hit.side;
        fsi_vec3 away = fsi_v3_sub(x, item->hit.point), n = fsi_v3_scale(item->hit.normal, sheet ? item->side : 1);
        if (!fsi__sph_is_minimum(scene->obstacles, list, k)) continue;
        if (!sheet && item->hit.side != fsi__sph_group_side(scene->obstacles, list, k)) continue;
        if (side < 0 && w->contact_count > 0) continue; /* inside: only the shortest path out */
        if ((double)item->hit.t > 1e-4 * scene->dhat * h) n = fsi_v3_scale(away, (fsi_real)side / item->hit.t);
        c->n[0] = (fsi__lane)n.x;
        c->n[1] = (fsi__lane)n.y;
        c->n[2] = (fsi__lane)n.z;
        c->gap = (fsi__lane)(side * (double)item->hit.t / h);
        c->part = item->part;
        w->contact_count++;
    }
}

/* Which side of a sheet the particle is on: the sign of its closest point, reversed if the path from the start of the
   step crossed the sheet. */
static fsi_real fsi__sph_sheet_side(const fsi__obstacles *obstacles, const fsi__faces *faces, int owner,
    fsi_vec3 from, fsi_vec3 x)
{
    const fsi_mesh *mesh = fsi__obstacle_at(obstacles, owner)->mesh;
    fsi_real best = FSI_REAL_MAX;
    int k, side = 1, crossings = 0;
    for (k = 0; k < faces->count; k++) {
        fsi_mesh_hit hit;
        if (faces->owner[k] != owner) continue;
        hit = fsi_mesh_closest_on_face(mesh, faces->face[k], x);
        if (hit.t < best) {
            best = hit.t;
            side = hit.side;
        }
        crossings += fsi_mesh_sweep_face(mesh, faces->face[k], from, x, 0).face >= 0;
    }
    return (fsi_real)(crossings & 1 ? -side : side);
}

/* The part of an obstacle, a new one unless all are taken, with its closest face. */
static int fsi__sph_part_of(fsi__sph_view *view, int owner, const fsi_mesh_hit *hit)
{
    int k = view->part_count - 1;
    if (k < 0 || (view->part_owner[k] != owner && view->part_count < FSI_SPH_PARTS)) {
        k = view->part_count++;
        view->part_owner[k] = owner;
        view->part_hit[k] = *hit;
    }
    if (view->part_owner[k] != owner) view->crowded = 1;
    else if (hit->t < view->part_hit[k].t) view->part_hit[k] = *hit;
    return k;
}

/* Keeps the nearest items, nearest first; equal ones in order of insertion. */
static void fsi__sph_keep_near(fsi__sph_view *view, const fsi__sph_near *item)
{
    int j = view->near_count;
    if (j == FSI__SPH_CLOSEST && !(item->hit.t < view->close_by[j - 1].hit.t)) return;
    if (j < FSI__SPH_CLOSEST) view->near_count++;
    else j--;
    for (; j > 0 && view->close_by[j - 1].hit.t > item->hit.t; j--) view->close_by[j] = view->close_by[j - 1];
    view->close_by[j] = *item;
}

FSI_API void fsi__sph_look_around(const fsi__sph_scene *scene, const fsi__faces *faces, fsi_vec3 from, fsi_vec3 x,
    fsi__sph_view *view)
{
    const fsi__obstacles *obstacles = scene->obstacles;
    const fsi_real support = (fsi_real)scene->h, band = (fsi_real)((scene->dhat + scene->band) * scene->h);
    fsi__sph_near item;
    fsi_real nearest = support;
    int k, patch = -1, within = 0;

    /* An empty view. */
    view->x = x;
    view->closest = support;
    view->inside = view->reach_count = view->near_count = view->part_count = view->crowded = 0;
    view->flat = scene->boundary == FSI_SPH_BOUNDARY_EXACT;
    item.owner = -1;
    item.side = 1;

    /* Faces are listed by obstacle. */
    for (k = 0; k < faces->count; k++) {
        const fsi__obstacle *o = fsi__obstacle_at(obstacles, faces->owner[k]);
        if (faces->owner[k] != item.owner) {
            item.owner = faces->owner[k];
            item.side = fsi__is_sheet(obstacles, item.owner)
                ? fsi__sph_sheet_side(obstacles, faces, item.owner, from, x) : 1;
            view->flat &= view->reach_count == 0;
            patch = -1;
            nearest = support;
            within = 0;
        }

        /* Faces within the support radius. */
        item.hit = fsi_mesh_closest_on_face(o->mesh, faces->face[k], x);
        if (!(item.hit.t < support)) continue;
        if (item.hit.t < nearest) { /* of this obstacle */
            int now = item.hit.side < 0 && o->mesh->kind == FSI_MESH_CLOSED;
            view->inside += now - within;
            within = now;
            nearest = item.hit.t;
        }

        /* Is it all one flat wall, so that its plane can be integrated exactly? */
        view->closest = fsi_min(view->closest, nearest);
        if (view->flat) view->flat = (patch < 0 || patch == o->patch[faces->face[k]])
            && fsi__sph_covers(o, faces->face[k], x, support);
        patch = o->patch[faces->face[k]];

        /* List the face; near ones also for the barrier. */
        item.part = fsi__sph_part_of(view, item.owner, &item.hit);
        view->reach_part[view->reach_count] = (unsigned char)item.part;
        view->reach[view->reach_count++] = item.side > 0 ? k : ~k;
        if (item.hit.t < band) fsi__sph_keep_near(view, &item);
    }
}

/* lambda_B = chi + sum L_s, grad = - sum I_s n_s (sph.md 4.2), the chi left out, for each obstacle. */
FSI_API void fsi__sph_integrate(const fsi__sph_scene *scene, const fsi__faces *faces, const fsi__sph_view *view,
    fsi__sph_integral *sum)
{
    int j, k;
    memset(sum, 0, FSI_SPH_PARTS * sizeof *sum);
    for (j = 0; j < view->reach_count; j++) {
        const fsi_mesh *mesh;
        fsi__sph_face f;
        fsi_vec3 n;

        /* The face of this entry, with its normal. */
        k = view->reach[j] < 0 ? ~view->reach[j] : view->reach[j];
        mesh = fsi__obstacle_at(scene->obstacles, faces->owner[k])->mesh;
        n = mesh->face_normals[faces->face[k]];

        /* One flat wall: its plane, once. */
        if (view->flat) {
            f.delta = (double)view->closest / scene->h;
            f.L = fsi__sph_plane(3, f.delta, &f.weight);
            if (fsi_v3_dot(fsi_v3_sub(view->x, mesh->vertices[mesh->faces[3 * faces->face[k]]]), n) < 0) f.L = -f.L;
            fsi__sph_add_face(sum, f, n, view->reach[j] < 0 ? -1 : 1);
            break;
        }

        /* Else every face. */
        f = fsi__sph_face_at(mesh, faces->face[k], view->x, (fsi_real)(1 / scene->h));
        if (scene->boundary == FSI_SPH_BOUNDARY_PAPER)
            f.L = fsi__sph_paper_at(mesh, faces->face[k], view->x, scene->h, &f);
        fsi__sph_add_face(&sum[view->reach_part[j]], f, n, view->reach[j] < 0 ? -1 : 1);
    }
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
