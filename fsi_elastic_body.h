/* fsi_elastic_body.h - projective dynamics of one elastic body: its materials, energy, and implicit steps.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_elastic.h includes this file. Its front page says how bodies move:

      fsi_elastic_material m = fsi_elastic_default_material();
      m.young = 2e5f; m.poisson = 0.45f; m.density = 1100; // a stiff jelly
      b.materials = &m; b.material_count = 1;              // b: fsi_elastic_body_desc

   WHAT IS IN HERE (search for >>)
      >>materials      what a body is made of
      >>stages         a body's unknowns, matrices and steps, for fsi's own headers
      >>projections  >>local step  >>global step  >>acceleration  >>momentum  >>sampling  >>assembly   how
   MACROS: those of fsi.h.
   UNITS: SI; in 2D per metre of depth, plane strain.
   PRECISION: all in double.
*/
#ifndef FSI_ELASTIC_BODY_H
#define FSI_ELASTIC_BODY_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_elastic_model.h"
#include "fsi_order.h"

/* ---- >>materials ------------------------------------------------------------------------------------------------ */

/* Isotropic. The energy density of a deformation gradient F is
      mu |F - R|^2 + kappa |F - P|^2,   R the rotation, P the matrix of determinant 1 that is nearest to F,
   with mu = E / (2 (1 + nu)) and kappa such that small strains obey Hooke's law: kappa = lambda * dim / 2,
   lambda = E nu / ((1 + nu) (1 - 2 nu)); (E1) and (E2) of docs/elastic.md. */
typedef struct fsi_elastic_material {
    uint32_t cookie;
    fsi_real density; /* [kg/m^3], above 0; default 1000 */
    fsi_real young;   /* E [Pa], above 0; default 1e5 */
    fsi_real poisson; /* nu, 0 to 0.4999; default 0.4. Above 0.45 iterations converge slowly */
    fsi_real damping; /* b [s] of Kelvin and Voigt: the viscous stress is that of b times the strain rate; a vibration
                         of angular frequency w decays by exp(-b w^2 t / 2). At least 0; a body has the mean weighted
                         by mass; default 0.005, about that of gelatine at a few hertz */
} fsi_elastic_material;
FSI_API fsi_elastic_material fsi_elastic_default_material(void); /* fills every field */

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* A spring of stiffness k from a point x = u q of the body to a target: energy k/2 |x - target|^2. Pins are stiff
   ones. */
typedef struct fsi__el_spring {
    int row;            /* of fsi__el_body.anchor */
    double given, stiffness; /* by the caller, 0: a pin; in use [N/m] */
    double target[3];   /* at the end of the running substep */
} fsi__el_spring;

#define FSI__EL_HELD 1e-3 /* the least that a body yields */

/* Anderson's acceleration (E5) of a map x -> g(x): the last differences of g, `wide` numbers, and of the residual f,
   `tall` numbers. To start anew: stored = slot = 0, best = HUGE_VAL. */
typedef struct fsi__el_mixer {
    int depth, stored, slot;
    double *history;              /* (depth + 1) * (wide + tall) */
    double gram[64];              /* dot products of the differences of f, by slots */
    double best;                  /* smallest residual */
} fsi__el_mixer;
/* to = the next x, given g and f at the last one, and the size of f. `to` may be g or f. */
FSI_API void fsi__el_mix(fsi__el_mixer *m, const double *g, int wide, const double *f, int tall, double residual,
                         double *to);

/* Unknowns q: dofs * 3 numbers, point x = u q; three right sides share one matrix. */
typedef struct fsi__el_body {
    fsi_context *context;
    int dim, dofs, reduced;
    fsi__el_shape shape;
    fsi__el_weights handles;      /* of a reduced body */
    double mass;                  /* [kg] */
    double damping, young;        /* means over the mass [s], [Pa] */
    double *one;                  /* dofs: the translation of the body by d adds one_i d to each q_i */
    double *root_weight;          /* 3 * dofs: square roots of M's diagonal, for the norm of a change of q */
    double *m_one;                /* dofs: M one */
    /* elements with a rotation: all of them, or the regions */
    int evaluated;
    double *volume, *share;       /* evaluated: that of the element or region [m^dim]; kappa/(mu + kappa) */
    double *stiffness;            /* evaluated: k = 2 (mu + kappa) volume */
    double *rotation;             /* R, 9 * FSI_LANES for each block of FSI_LANES elements, lanes innermost */
    double *stretch;              /* R^T F at the beginning of the substep, likewise; after a measurement F */
    double *target;               /* full: G h for each corner of each element, 3 numbers each, G = k (T + b/h D) as in
                                     >>global step, T = (mu R + kappa P)/(mu + kappa) */
    double *pull;                 /* reduced: the sums of G h over the regions of each of FSI__EL_PULLS chunks,
                                     3 * stride numbers each, by components like `wide` */
    int pulling;                  /* the local step makes targets, and sums them; else energies alone */
    double *energy;               /* evaluated: of the element [J] */
    fsi__el_rows gradient;        /* of a reduced body: F of each region: width 12, see >>local step */
    /* full: gradients of the barycentric weights of the corners 1 .. dim, in blocks like rotation; which corners belong
       to dof i: gather[gather_first[i]] .., element * (dim + 1) + corner */
    double *slope;
    int *gather_first, *gather;
    fsi_assembly *elastic;
    fsi_ldlt *ldlt;
    double *vertex_mass;          /* dofs */
    double *element_mass;         /* of all elements, also of a reduced body [kg] */
    double *own_mass;             /* M of the elements; that in use may be of points, see fsi__el_body_weigh */
    /* reduced */
    double *stiff, *massive;      /* dofs * dofs: K and M; of a full body, stiff: the values of K */
    double *slack;                /* dofs: what is added to A's diagonal, see >>global step */
    double *factor, *panels;      /* factor: dofs * dofs; panels: the same for fsi__panels_solve_3 */
    /* the system A = M / H^2 + (1 + b/h) K + springs (E4) */
    double factored_for, factored_viscous; /* H [s], 0: none; b/h */
    unsigned factorings;
    int springs_changed;
    double *wide;                 /* unknowns, or forces: of a reduced body by components, `stride` apart; of a full one
                                     four numbers a vertex, the last 0 */
    size_t stride;                /* dofs and a few zeros */
    /* springs */
    fsi__el_rows anchor;          /* width 1 */
    fsi__el_spring *spring;
    int springs, spring_room;
    /* a step: 3 * dofs each */
    double *q, *v, *q_before, *v_before; /* state: now, and a step ago */
    double *rest;                 /* q at rest */
    double *acceleration;         /* of a field [m/s^2] */
    double *aim;                  /* q at the end without elastic forces: S */
    double *right;                /* M S / H^2 + forces, of the running substep */
    double *force;                /* external, until the step ends [N] */
    double *support;              /* of a liquid, as it is expected; acts while supported [N] */
    int supported;
    double *contact;              /* J^T lambda, of the running iteration */
    int pushed;                   /* contact[] is not 0 */
    double *at, *next;            /* the iterate, and the result of the global step */
    double *base;                 /* v = (q - base) / H */
    double h, big_h;              /* length of the substep; H of the integrator [s] */
    double viscous;               /* damping / h */
    double h_before;              /* of the substep before; 0: none */
    double yielding;              /* part of a liquid's force that its motion shows, as found last: 0 held, 1 free */
    /* acceleration */
    fsi__el_mixer mixer;          /* of q, and of its residual times root_weight: 3 * dofs each */
    double residual;              /* displacement of the last iteration, root mean square by mass [m] */
    double forced;                /* likewise, of `next` from `aim`: displacement by elastic forces, pins, contacts */
    int iterations;               /* of the last substep */
    double inverted;              /* share that was inverted at the beginning of the substep, by stiffness */
    fsi__arena memory;
} fsi__el_body;

/* How a body is made; see fsi_elastic_body_desc. */
typedef struct fsi__el_plan {
    const fsi_elastic_material *materials;
    int material_count, handles, samples, depth;
    double reach;
} fsi__el_plan;

/* Makes unknowns and matrices for a shape, which becomes the body's (also on failure: free the body). All of *b must be
   zero but shape, context. Errors: MEMORY, SINGULAR (linearly dependent handles), LIMIT. */
FSI_API fsi_status fsi__el_body_make(fsi__el_body *b, const char *fn, const fsi__el_plan *plan);
FSI_API void fsi__el_body_free(fsi__el_body *b);
/* Adds the row of a point at rest (in the body's own coordinates) to rows of width 1. */
FSI_API fsi_status fsi__el_body_row(fsi__el_body *b, fsi__el_rows *rows, const char *fn, fsi__d3 rest);
FSI_FN fsi__d3 fsi__el_point(const fsi__el_rows *r, int row, const double *q) /* u q */
{
    fsi__d3 x = fsi__d3_make(0, 0, 0);
    int i;
    for (i = r->start[row]; i < r->start[row + 1]; i++)
        x = fsi__d3_madd(x, r->value[i], fsi__d3_at(q + 3 * (size_t)r->dof[i]));
    return x;
}
FSI_FN void fsi__el_push(const fsi__el_rows *r, int row, fsi__d3 f, double *force) /* += u^T f */
{
    int i;
    for (i = r->start[row]; i < r->start[row + 1]; i++) {
        double *to = force + 3 * (size_t)r->dof[i];
        fsi__d3_put(to, fsi__d3_madd(fsi__d3_at(to), r->value[i], f));
    }
}

/* The unknowns q that the next sums over packed rows read: 3 * dofs numbers. */
FSI_FN void fsi__el_packed_load(fsi__el_packed *p, const double *q)
{
    int i, c;
    for (i = 0; i < p->dofs; i++) for (c = 0; c < 4; c++) p->wide[4 * i + c] = c < 3 ? q[3 * i + c] : 0;
}
/* x = u q of the rows of a block, four numbers each: fsi__el_point. r: the rows that were packed. */
FSI_FN void fsi__el_packed_points(const fsi__el_packed *p, const fsi__el_rows *r, int block,
    double x[4 * FSI__EL_BLOCK])
{
    fsi__four s[FSI__EL_BLOCK], q;
    int i, l;
    memset(s, 0, sizeof s);
    if (p->value) for (i = p->start[block]; i < p->start[block + 1]; i++) {
        const double *u = p->value + FSI__EL_BLOCK * (size_t)i;
        fsi__four_keep(&q, p->wide + 4 * (size_t)p->dof[i]);
        for (l = 0; l < FSI__EL_BLOCK; l++) fsi__four_scaled(&s[l], &q, u[l]);
    } else for (l = 0; l < FSI__EL_BLOCK && FSI__EL_BLOCK * block + l < p->count; l++) {
        const int row = FSI__EL_BLOCK * block + l;
        for (i = r->start[row]; i < r->start[row + 1]; i++)
            fsi__four_madd(&s[l], p->wide + 4 * (size_t)r->dof[i], r->value[i]);
    }
    for (l = 0; l < FSI__EL_BLOCK; l++) fsi__four_put(x + 4 * l, &s[l]);
}
/* force += u^T f of the rows of a block, row by row: fsi__el_push; four numbers a row, and an unknown. */
FSI_FN void fsi__el_packed_push(const fsi__el_packed *p, const fsi__el_rows *r, int block,
    const double f[4 * FSI__EL_BLOCK], double *force)
{
    fsi__four row[FSI__EL_BLOCK], s;
    int i, l;
    for (l = 0; l < FSI__EL_BLOCK; l++) fsi__four_get(&row[l], f + 4 * l);
    if (p->value) for (i = p->start[block]; i < p->start[block + 1]; i++) {
        const double *u = p->value + FSI__EL_BLOCK * (size_t)i;
        fsi__four_get(&s, force + 4 * (size_t)p->dof[i]);
        for (l = 0; l < FSI__EL_BLOCK; l++) fsi__four_scaled(&s, &row[l], u[l]);
        fsi__four_put(force + 4 * (size_t)p->dof[i], &s);
    } else for (l = 0; l < FSI__EL_BLOCK && FSI__EL_BLOCK * block + l < p->count; l++) {
        const int at = FSI__EL_BLOCK * block + l;
        for (i = r->start[at]; i < r->start[at + 1]; i++) {
            fsi__four_get(&s, force + 4 * (size_t)r->dof[i]);
            fsi__four_scaled(&s, &row[l], r->value[i]);
            fsi__four_put(force + 4 * (size_t)r->dof[i], &s);
        }
    }
}

/* Its mass becomes that of points, M = sum_p mass_p u_p u_p^T + least M', M' that of its elements. NULL, NULL, 1: of
   its elements again. */
FSI_API void fsi__el_body_weigh(fsi__el_body *b, const fsi__el_rows *points, const double *mass, double least);
/* A substep of h seconds. order: 1 backward Euler, 2 BDF2. Sets aim and right, at = aim, and factorises where h or the
   springs changed. Errors: SINGULAR, NAN. */
FSI_API fsi_status fsi__el_body_predict(fsi__el_body *b, double h, int order, fsi__d3 gravity, int field);
/* Local step: R, P and elastic forces at the iterate `at`. Global step: next = A^-1 (right + springs + elastic +
   contact) (E4). */
FSI_API void fsi__el_body_project(fsi__el_body *b);
FSI_API fsi_status fsi__el_body_solve(fsi__el_body *b);
/* The next iterate from `next`, by Anderson's acceleration (E5); sets residual and forced. */
FSI_API void fsi__el_body_advance(fsi__el_body *b);
/* q = `next`, v = (q - base)/H; backward Euler's loss of angular momentum is given back to v. Overwrites `right`. */
FSI_API void fsi__el_body_accept(fsi__el_body *b);
/* Takes that back, for more iterations from `next`: with `support` as it is now. Backward Euler only. */
FSI_API void fsi__el_body_retract(fsi__el_body *b);
/* Adds a rigid motion, v + w x (x - c), to its velocities. */
FSI_API void fsi__el_body_stir(fsi__el_body *b, fsi__d3 v, fsi__d3 w, fsi__d3 c);
/* y = A^-1 u^T for the row of a point: dofs numbers. */
FSI_API fsi_status fsi__el_body_column(fsi__el_body *b, const fsi__el_rows *r, int row, double *y);
/* Rigid motion and energies of a state. */
typedef struct fsi__el_motion {
    double momentum[3], spin[3], centre[3]; /* spin: angular momentum about the origin */
    double second[9];                       /* second moments of mass about the centre [kg m^2] */
    double kinetic, elastic, volume_ratio, stretch_min, stretch_max;
} fsi__el_motion;
/* Those of q and v; overwrites `right` and, all: the elements' R and targets. Not all: without what elements have. */
FSI_API void fsi__el_body_measure(fsi__el_body *b, fsi__el_motion *out, int all);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_ELASTIC_BODY_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_ELASTIC_BODY_IMPLEMENTATION
#define FSI_ELASTIC_BODY_IMPLEMENTATION
#endif
#ifdef FSI_ELASTIC_BODY_IMPLEMENTATION
#ifndef FSI_ELASTIC_BODY_IMPLEMENTATION_DONE
#define FSI_ELASTIC_BODY_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_elastic_model.h"
#include "fsi_order.h"

FSI__STRICT_BEGIN

FSI_API fsi_elastic_material fsi_elastic_default_material(void)
{
    fsi_elastic_material m;
    memset(&m, 0, sizeof m);
    m.cookie = FSI__COOKIE('e', fsi_elastic_material);
    m.density = 1000;
    m.young = (fsi_real)1e5;
    m.poisson = (fsi_real)0.4;
    m.damping = (fsi_real)0.005;
    return m;
}

/* ---- >>projections ------------------------------------------------------------------------------------------------

   R maximises tr(R^T F) over the rotations. With B = R^T F, S its symmetric part and g = (B32 - B23, B13 - B31,
   B21 - B12), a rotation of R by a small vector w changes the trace by g.w - 1/2 w.K w, K = tr(S) 1 - S. So Newton's
   step is w = K^-1 g; K is definite at the maximum and at no other stationary R, also for an inverted F. Along a
   rotation the third derivative of the trace is -|w|^2 times the first, 0 at the maximum: a step by |w| leaves an
   error of about |w|^3. Where K is not definite, fsi_m3_polar is used.
   2D: the angle of (F11 + F22, F21 - F12).

   P = F + a cof P has determinant 1: steps of sequential quadratic programming from F; one that moves P by d leaves an
   error of about d^2. Where det F is far from 1 these may converge to another matrix: then P follows from the singular
   values of F, or is R where that fails. */

#define FSI__EL_TURNS 8
/* The last step leaves errors of 8e-12 in R and 1e-10 in P: iterations end far from that. */
#define FSI__EL_TURNED 1e-8 /* square of half the angle of the last step */
#define FSI__EL_PROJECTED 1e-5 /* largest change of P in the last step */

typedef double fsi__el_lane[FSI_LANES];

/* FSI_LANES elements at once, element i in lane i of each entry; a separate struct, so that loops over lanes vectorise.
   Lanes beyond the last element repeat it. */
typedef struct fsi__el_block {
    fsi__el_lane f[9], r[9], p[9]; /* F, R, P */
    fsi__el_lane step;             /* size of the last step; see fsi__el_turn and fsi__el_unfold */
    int first, count;              /* elements first .. first + count - 1 */
} fsi__el_block;

/* One step of Newton's method for R. step: |a|^2, a half the rotation vector; HUGE_VAL where K is not definite; R
   is then unchanged. */
FSI_FN void fsi__el_turn(fsi__el_block *b)
{
    const fsi__el_lane *f = (const fsi__el_lane *)b->f;
    fsi__el_lane *r = b->r, w[3], low;
    int u;
    for (u = 0; u < FSI_LANES; u++) {
        const double r0 = r[0][u], r1 = r[1][u], r2 = r[2][u], r3 = r[3][u], r4 = r[4][u], r5 = r[5][u], r6 = r[6][u],
            r7 = r[7][u], r8 = r[8][u];
        /* B = R^T F */
        const double b0 = r0 * f[0][u] + r3 * f[3][u] + r6 * f[6][u], b1 = r0 * f[1][u] + r3 * f[4][u] + r6 * f[7][u],
            b2 = r0 * f[2][u] + r3 * f[5][u] + r6 * f[8][u], b3 = r1 * f[0][u] + r4 * f[3][u] + r7 * f[6][u],
            b4 = r1 * f[1][u] + r4 * f[4][u] + r7 * f[7][u], b5 = r1 * f[2][u] + r4 * f[5][u] + r7 * f[8][u],
            b6 = r2 * f[0][u] + r5 * f[3][u] + r8 * f[6][u], b7 = r2 * f[1][u] + r5 * f[4][u] + r8 * f[7][u],
            b8 = r2 * f[2][u] + r5 * f[5][u] + r8 * f[8][u];

        /* K = L D L^T; low: the least pivot minus its lower bound. A pivot below the bound is replaced. */
        const double least = 1e-6 * (fabs(b0) + fabs(b4) + fabs(b8)) + 1e-300, k1 = -0.5 * (b1 + b3),
                     k3 = -0.5 * (b2 + b6), k4 = -0.5 * (b5 + b7);
        const double e0 = b4 + b8, d0 = e0 > least ? e0 : least, l1 = k1 / d0, l3 = k3 / d0, e1 = b0 + b8 - l1 * k1,
                     d1 = e1 > least ? e1 : least, l4 = (k4 - l3 * k1) / d1, e2 = b0 + b4 - l3 * k3 - l4 * l4 * d1,
                     d2 = e2 > least ? e2 : least;

        /* w = K^-1 g */
        const double g0 = b7 - b5, g1 = b2 - b6 - l1 * g0, g2 = b3 - b1 - l3 * g0 - l4 * g1, w2 = g2 / d2,
                     w1 = g1 / d1 - l4 * w2, e01 = e0 < e1 ? e0 : e1;
        low[u] = (e01 < e2 ? e01 : e2) - least;
        w[0][u] = g0 / d0 - l1 * w1 - l3 * w2;
        w[1][u] = w1;
        w[2][u] = w2;
    }
    for (u = 0; u < FSI_LANES; u++) {
        const double r0 = r[0][u], r1 = r[1][u], r2 = r[2][u], r3 = r[3][u], r4 = r[4][u], r5 = r[5][u], r6 = r[6][u],
            r7 = r[7][u], r8 = r[8][u];
        /* a = w / 2, or 0; R (1 + t ([a] + [a]^2)), t = 2 / (1 + a.a): Cayley's rotation */
        const double half = low[u] > 0 ? 0.5 : 0, a0 = half * w[0][u], a1 = half * w[1][u], a2 = half * w[2][u];
        const double aa = a0 * a0 + a1 * a1 + a2 * a2, t = 2 / (1 + aa);
        const double c0 = 1 - t * (a1 * a1 + a2 * a2), c4 = 1 - t * (a0 * a0 + a2 * a2),
                     c8 = 1 - t * (a0 * a0 + a1 * a1), c1 = t * (a0 * a1 - a2), c3 = t * (a0 * a1 + a2),
                     c2 = t * (a0 * a2 + a1), c6 = t * (a0 * a2 - a1), c5 = t * (a1 * a2 - a0), c7 = t * (a1 * a2 + a0);

        /* R times the rotation; |a|^2 of the step. */
        r[0][u] = r0 * c0 + r1 * c3 + r2 * c6;
        r[1][u] = r0 * c1 + r1 * c4 + r2 * c7;
        r[2][u] = r0 * c2 + r1 * c5 + r2 * c8;
        r[3][u] = r3 * c0 + r4 * c3 + r5 * c6;
        r[4][u] = r3 * c1 + r4 * c4 + r5 * c7;
        r[5][u] = r3 * c2 + r4 * c5 + r5 * c8;
        r[6][u] = r6 * c0 + r7 * c3 + r8 * c6;
        r[7][u] = r6 * c1 + r7 * c4 + r8 * c7;
        r[8][u] = r6 * c2 + r7 * c5 + r8 * c8;
        b->step[u] = low[u] > 0 ? aa : HUGE_VAL;
    }
}

/* One step of sequential quadratic programming for P. step: the largest change of an entry. */
FSI_FN void fsi__el_unfold(fsi__el_block *b)
{
    const fsi__el_lane *f = (const fsi__el_lane *)b->f;
    fsi__el_lane *p = b->p;
    int u;
    for (u = 0; u < FSI_LANES; u++) {
        const double p0 = p[0][u], p1 = p[1][u], p2 = p[2][u], p3 = p[3][u], p4 = p[4][u], p5 = p[5][u], p6 = p[6][u],
            p7 = p[7][u], p8 = p[8][u];
        /* c = cof P; det P - 1 */
        const double c0 = p4 * p8 - p5 * p7, c1 = p5 * p6 - p3 * p8, c2 = p3 * p7 - p4 * p6, c3 = p2 * p7 - p1 * p8,
            c4 = p0 * p8 - p2 * p6, c5 = p1 * p6 - p0 * p7, c6 = p1 * p5 - p2 * p4, c7 = p2 * p3 - p0 * p5,
            c8 = p0 * p4 - p1 * p3, excess = p0 * c0 + p1 * c1 + p2 * c2 - 1;
        const double cc = c0 * c0 + c1 * c1 + c2 * c2 + c3 * c3 + c4 * c4 + c5 * c5 + c6 * c6 + c7 * c7 + c8 * c8;
        const double cd = c0 * (p0 - f[0][u]) + c1 * (p1 - f[1][u]) + c2 * (p2 - f[2][u]) + c3 * (p3 - f[3][u]) +
                          c4 * (p4 - f[4][u]) + c5 * (p5 - f[5][u]) + c6 * (p6 - f[6][u]) + c7 * (p7 - f[7][u]) +
                          c8 * (p8 - f[8][u]);
        const double a = (cd - excess) / cc;
        double m = 0;
#define FSI__EL_TO(i) { const double to = f[i][u] + a * c##i, d = fabs(to - p##i); m = d > m ? d : m; p[i][u] = to; }
        FSI__EL_TO(0) FSI__EL_TO(1) FSI__EL_TO(2) FSI__EL_TO(3) FSI__EL_TO(4) FSI__EL_TO(5) FSI__EL_TO(6) FSI__EL_TO(7)
        FSI__EL_TO(8)
#undef FSI__EL_TO
        b->step[u] = m;
    }
}

/* The same in the plane: P and cof P have four entries, the third axis is unchanged. */
static void fsi__el_unfold_2d(fsi__el_block *b)
{
    const fsi__el_lane *f = (const fsi__el_lane *)b->f;
    fsi__el_lane *p = b->p;
    int u;
    for (u = 0; u < FSI_LANES; u++) {
        const double p0 = p[0][u], p1 = p[1][u], p3 = p[3][u], p4 = p[4][u], cc = p0 * p0 + p1 * p1 + p3 * p3 + p4 * p4,
            cd = p4 * (p0 - f[0][u]) - p3 * (p1 - f[1][u]) - p1 * (p3 - f[3][u]) + p0 * (p4 - f[4][u]),
            a = (cd - (p0 * p4 - p1 * p3 - 1)) / cc;
        p[0][u] = f[0][u] + a * p4;
        p[1][u] = f[1][u] - a * p3;
        p[3][u] = f[3][u] - a * p1;
        p[4][u] = f[4][u] + a * p0;
        b->step[u] =
            fmax(fmax(fabs(p[0][u] - p0), fabs(p[1][u] - p1)), fmax(fabs(p[3][u] - p3), fabs(p[4][u] - p4)));
    }
}

static double fsi__el_det(const double *m)
{
    return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) + m[2] * (m[3] * m[7] - m[4] * m[6]);
}

/* R of one element by fsi_m3_polar, for any F. */
static void fsi__el_polar_slow(const double *f, double *r)
{
    fsi_mat3 m, q;
    int i;
    for (i = 0; i < 9; i++) m.m[i] = (fsi_real)f[i];
    fsi_m3_polar(m, &q, NULL);
    for (i = 0; i < 9; i++) r[i] = (double)q.m[i];
}

/* In the plane: the angle of (F11 + F22, F21 - F12); where both are 0, R is unchanged. */
static void fsi__el_polar_2d(const double *f, double *r)
{
    const double c = f[0] + f[4], s = f[3] - f[1], n = sqrt(c * c + s * s);
    if (!(n > 0)) return;
    r[0] = r[4] = c / n;
    r[3] = s / n;
    r[1] = -r[3];
    r[2] = r[5] = r[6] = r[7] = 0;
    r[8] = 1;
}

/* Replaces n singular values by the nearest positive ones with product 1. Returns 0 when that fails. */
static int fsi__el_unit_product(double *s, int n)
{
    double from[3], g[3];
    int it, i;

    /* The iteration starts from the values themselves, raised to 0.05 at least. */
    for (i = 0; i < n; i++) {
        from[i] = s[i];
        s[i] = fmax(s[i], 0.05);
    }

    /* Sequential quadratic programming: g is the gradient of the product; from + along g makes its linearisation 1. */
    for (it = 0; it < 60; it++) {
        double product = 1, along, gg = 0, gd = 0, moved = 0;
        for (i = 0; i < n; i++) product *= s[i];
        for (i = 0; i < n; i++) {
            g[i] = product / s[i];
            gg += g[i] * g[i];
            gd += g[i] * (s[i] - from[i]);
        }
        along = (gd - (product - 1)) / gg;

        /* No value changes by more than a factor of 2.5 in an iteration. */
        for (i = 0; i < n; i++) {
            const double to = fmin(fmax(from[i] + along * g[i], 0.4 * s[i]), 2.5 * s[i]);
            moved = fmax(moved, fabs(to - s[i]));
            s[i] = to;
        }
        if (moved < 1e-12) return 1;
    }
    return 0;
}

/* P of one element by its singular values, for any F; R where that fails. */
static void fsi__el_isochoric_slow(const double *f, int dim, const double *r, double *p)
{
    fsi_mat3 m, u, v;
    fsi_vec3 sigma;
    double s[3], a[9], b[9];
    int i, j;

    /* Singular values; the last one has the sign of det F. */
    for (i = 0; i < 9; i++) m.m[i] = (fsi_real)f[i];
    if (dim == 2) m.m[8] = 0;
    fsi_m3_svd(m, &u, &sigma, &v);
    s[0] = (double)sigma.x;
    s[1] = (double)sigma.y;
    s[2] = (double)sigma.z;
    if (dim == 2 && fsi__el_det(f) < 0) s[1] = -s[1]; /* the svd put the sign on the third axis, whose value is 0 */

    /* The nearest values with product 1, or R where the iteration fails. */
    if (!fsi__el_unit_product(s, dim)) {
        memcpy(p, r, 9 * sizeof(double));
        return;
    }
    if (dim == 2) { /* in the plane: P = R V diag(s) V^T */
        double w[9];
        for (i = 0; i < 3; i++) for (j = 0; j < 3; j++)
                w[3 * i + j] = i < 2 && j < 2 ? (double)v.m[3 * i] * s[0] * (double)v.m[3 * j] +
                                                    (double)v.m[3 * i + 1] * s[1] * (double)v.m[3 * j + 1]
                                              : i == j;
        fsi__d9_product(r, w, p);
        return;
    }

    /* P = U diag(s) V^T. */
    for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) {
        a[3 * i + j] = (double)u.m[3 * i + j] * s[j];
        b[3 * i + j] = (double)v.m[3 * j + i];
    }
    fsi__d9_product(a, b, p);
}

/* ---- >>local step --------------------------------------------------------------------------------------------- */

/* F of region e = sum_g x_g h_g^T over groups of four unknowns, those of a handle, which are adjacent from the entry's
   dof on. A row of b->gradient has an entry for each: h_g, 12 numbers, four for each column of F. In 2D the fourth
   numbers are 0. */
static void fsi__el_region_gradients(const fsi__el_body *b, fsi__el_block *block)
{
    const size_t stride = b->stride;
    fsi__four sum[9 * FSI_LANES];
    int u, i, k;

    /* Of each region: an entry's four unknowns times its 12 coefficients, for each of the three coordinates. */
    for (u = 0; u < FSI_LANES; u++) {
        const int e = block->first + (u < block->count ? u : block->count - 1), end = b->gradient.start[e + 1];
        const double *h = b->gradient.value + 12 * (size_t)b->gradient.start[e];
        fsi__four s[9];
        memset(s, 0, sizeof s);
        for (i = b->gradient.start[e]; i < end; i++, h += 12) {
            const double *q = b->wide + b->gradient.dof[i];
            fsi__four x, y, z, g;
            fsi__four_keep(&x, q);
            fsi__four_keep(&y, q + stride);
            fsi__four_keep(&z, q + 2 * stride);
            for (k = 0; k < 3; k++) {
                fsi__four_keep(&g, h + 4 * k);
                fsi__four_product(&s[k], &x, &g);
                fsi__four_product(&s[3 + k], &y, &g);
                fsi__four_product(&s[6 + k], &z, &g);
            }
        }
        for (i = 0; i < 9; i++) sum[9 * u + i] = s[i];
    }

    /* Their sums, entry by entry of F. */
    for (i = 0; i < 9; i++) for (u = 0; u < FSI_LANES; u += 4) fsi__four_sums(block->f[i] + u, sum + 9 * u + i, 9);
}

/* Gradients of the weights of corners 1 .. 3 of a block's elements: component k of corner i is entry 3 (i - 1) + k. */
FSI_FN const fsi__el_lane *fsi__el_slopes(const fsi__el_body *b, const fsi__el_block *block)
{
    return (const fsi__el_lane *)(const void *)(b->slope + 9 * (size_t)block->first);
}

/* F = sum_i (x_i - x_0) grad_i^T over the corners i = 1 .. dim, of a block of a full body. */
static void fsi__el_corner_gradients(const fsi__el_body *b, fsi__el_block *block)
{
    const fsi__el_lane *g = fsi__el_slopes(b, block);
    fsi__el_lane d[9];
    int u, i, c, k;

    /* Edges x_i - x_0. */
    memset(d, 0, sizeof d);
    for (u = 0; u < FSI_LANES; u++) {
        const int *corner = fsi__el_corners(&b->shape, block->first + (u < block->count ? u : block->count - 1));
        const double *o = b->wide + 4 * (size_t)corner[0];
        for (i = 0; i < b->dim; i++) {
            const double *x = b->wide + 4 * (size_t)corner[i + 1];
            for (c = 0; c < 3; c++) d[3 * i + c][u] = x[c] - o[c];
        }
    }

    /* Times the gradients. */
    for (c = 0; c < 3; c++) for (k = 0; k < 3; k++) for (u = 0; u < FSI_LANES; u++)
        block->f[3 * c + k][u] = d[c][u] * g[k][u] + d[3 + c][u] * g[3 + k][u] + d[6 + c][u] * g[6 + k][u];
}

/* Component c of unknown i in `wide`. */
FSI_FN double *fsi__el_wide(fsi__el_body *b, int i, int c)
{
    return b->wide + (b->reduced ? (size_t)c * b->stride + (size_t)i : 4 * (size_t)i + (size_t)c);
}
static void fsi__el_widen(fsi__el_body *b, const double *q)
{
    int i, c;
    for (i = 0; i < b->dofs; i++) for (c = 0; c < 3; c++) *fsi__el_wide(b, i, c) = q[3 * i + c];
}

static void fsi__el_lane_out(const fsi__el_lane *m, int u, double *out)
{
    int i;
    for (i = 0; i < 9; i++) out[i] = m[i][u];
}
static void fsi__el_lane_in(fsi__el_lane *m, int u, const double *in)
{
    int i;
    for (i = 0; i < 9; i++) m[i][u] = in[i];
}

/* Determinants of F. */
static void fsi__el_dets(const fsi__el_block *b, double *det)
{
    const fsi__el_lane *f = (const fsi__el_lane *)b->f;
    int u;
    for (u = 0; u < FSI_LANES; u++)
        det[u] = f[0][u] * (f[4][u] * f[8][u] - f[5][u] * f[7][u]) - f[1][u] * (f[3][u] * f[8][u] - f[5][u] * f[6][u]) +
                 f[2][u] * (f[3][u] * f[7][u] - f[4][u] * f[6][u]);
}

/* R of a block's elements, by Newton's method from the last R; in 2D, and where that fails, element by element. */
static void fsi__el_rotate_block(fsi__el_block *b, int dim)
{
    double one[9], turn[9], most = 0;
    int it, u;
    for (it = 0; it < FSI__EL_TURNS && dim == 3; it++) {
        fsi__el_turn(b);
        for (u = 0, most = 0; u < b->count; u++) most = b->step[u] < HUGE_VAL && b->step[u] > most ? b->step[u] : most;
        if (most < FSI__EL_TURNED) break;
    }
    for (u = 0; u < b->count; u++) {
        if (dim == 3 && b->step[u] < FSI__EL_TURNED) continue;
        fsi__el_lane_out((const fsi__el_lane *)b->f, u, one);
        fsi__el_lane_out((const fsi__el_lane *)b->r, u, turn);
        if (dim == 3) fsi__el_polar_slow(one, turn);
        else fsi__el_polar_2d(one, turn);
        fsi__el_lane_in(b->r, u, turn);
    }
}

/* P of a block's elements, likewise, from F; element by element also where det F is not between 0.3 and 3. */
static void fsi__el_isochoric_block(fsi__el_block *b, int dim)
{
    double one[9], turn[9], nearest[9], most = 0;
    fsi__el_lane det;
    int it, u, slow[FSI_LANES];
    fsi__el_dets(b, det);
    memcpy(b->p, b->f, sizeof b->p);
    for (u = 0; u < FSI_LANES; u++) slow[u] = !(det[u] > 0.3 && det[u] < 3);
    for (it = 0; it < 12; it++) {
        if (dim == 2) fsi__el_unfold_2d(b);
        else fsi__el_unfold(b);
        for (u = 0, most = 0; u < b->count; u++) if (!slow[u]) most = b->step[u] > most ? b->step[u] : most;
        if (most < FSI__EL_PROJECTED) break;
    }
    for (u = 0; u < b->count; u++) {
        if (!slow[u] && b->step[u] < FSI__EL_PROJECTED) continue;
        fsi__el_lane_out((const fsi__el_lane *)b->f, u, one);
        fsi__el_lane_out((const fsi__el_lane *)b->r, u, turn);
        fsi__el_isochoric_slow(one, dim, turn, nearest);
        fsi__el_lane_in(b->p, u, nearest);
    }
}

static void fsi__el_set_block(const fsi__el_body *b, int k, fsi__el_block *block)
{
    block->first = k * FSI_LANES;
    block->count = b->evaluated - block->first < FSI_LANES ? b->evaluated - block->first : FSI_LANES;
}

/* F of block k at the unknowns of `wide`; in 2D the third axis is unchanged. */
static void fsi__el_load_gradients(const fsi__el_body *b, int k, fsi__el_block *block)
{
    int u;
    fsi__el_set_block(b, k, block);
    if (b->reduced) fsi__el_region_gradients(b, block);
    else fsi__el_corner_gradients(b, block);
    for (u = 0; u < FSI_LANES && b->dim == 2; u++) block->f[8][u] = 1;
}

/* F of block k as it is kept in `stretch`. */
static void fsi__el_load_kept(const fsi__el_body *b, int k, fsi__el_block *block)
{
    fsi__el_set_block(b, k, block);
    memcpy(block->f, b->stretch + 9 * (size_t)block->first, sizeof block->f);
}

/* F, and the last R. */
static void fsi__el_load_block(const fsi__el_body *b, int k, fsi__el_block *block)
{
    memcpy(block->r, b->rotation + 9 * (size_t)k * FSI_LANES, sizeof block->r);
    fsi__el_load_gradients(b, k, block);
}

/* Targets t of a block's regions times their rows, added to the unknowns of a reduced body:
   q_i += sum_a h_ia t_a over the columns a of the target, for each coordinate. */
static void fsi__el_put_unknowns(const fsi__el_body *b, const fsi__el_block *block, const fsi__el_lane *t, double *pull)
{
    const int *start = b->gradient.start + block->first, *dof = b->gradient.dof;
    const double *h = b->gradient.value + 12 * (size_t)start[0];
    const size_t stride = b->stride;
    double one[9]; /* a copy: no store to `pull` changes it */
    int u, i, a;
    for (u = 0; u < block->count; u++) {
        for (i = 0; i < 9; i++) one[i] = t[i][u];
        for (i = start[u]; i < start[u + 1]; i++, h += 12) {
            double *to = pull + dof[i];
            fsi__four x, y, z, g;
            fsi__four_get(&x, to);
            fsi__four_get(&y, to + stride);
            fsi__four_get(&z, to + 2 * stride);
            for (a = 0; a < 3; a++) {
                fsi__four_keep(&g, h + 4 * a);
                fsi__four_scaled(&x, &g, one[3 * a]);
                fsi__four_scaled(&y, &g, one[3 * a + 1]);
                fsi__four_scaled(&z, &g, one[3 * a + 2]);
            }
            fsi__four_put(to, &x);
            fsi__four_put(to + stride, &y);
            fsi__four_put(to + 2 * stride, &z);
        }
    }
}

/* Targets times the gradients of the weights: what the corners of a full body's elements get. */
static void fsi__el_put_corners(fsi__el_body *b, const fsi__el_block *block, const fsi__el_lane *t)
{
    const fsi__el_lane *g = fsi__el_slopes(b, block);
    const int corners = b->dim + 1;
    fsi__el_lane out[12];
    int u, i, c;

    /* Weights add to 1, so their gradients to 0. */
    for (i = 0; i < 3; i++) for (c = 0; c < 3; c++) for (u = 0; u < FSI_LANES; u++)
        out[3 + 3 * i + c][u] = t[c][u] * g[3 * i][u] + t[3 + c][u] * g[3 * i + 1][u] + t[6 + c][u] * g[3 * i + 2][u];
    for (c = 0; c < 3; c++) for (u = 0; u < FSI_LANES; u++)
        out[c][u] = -(out[3 + c][u] + out[6 + c][u] + out[9 + c][u]);
    for (u = 0; u < block->count; u++) {
        double *target = b->target + 3 * (size_t)corners * (size_t)(block->first + u);
        for (i = 0; i < 3 * corners; i++) target[i] = out[i][u];
    }
}

/* Targets k (T + b/h D) of (E4) and energies (E1) of a block's elements; pull: of a reduced body, what its unknowns get
   from the blocks of the running chunk. */
static void fsi__el_aim_block(fsi__el_body *b, const fsi__el_block *block, double *pull)
{
    const fsi__el_lane *f = (const fsi__el_lane *)block->f, *r = (const fsi__el_lane *)block->r,
                       *p = (const fsi__el_lane *)block->p,
                       *d = (const fsi__el_lane *)(const void *)(b->stretch + 9 * (size_t)block->first);
    const double *k = b->stiffness + block->first, *share = b->share + block->first; /* of P in T */
    const double viscous = b->viscous, part = 1.0 / b->dim;
    double *energy = b->energy + block->first;
    fsi__el_lane t[9], sheared = { 0 }, swollen = { 0 }, trace = { 0 };
    int u, i, c;

    /* tr(R^T F - S)/dim: how much the element has swollen since the substep began. */
    for (i = 0; i < 9; i++) for (u = 0; u < FSI_LANES; u++)
        trace[u] += r[i][u] * f[i][u] - (i % 4 == 0 ? d[i][u] : 0);
    for (u = 0; u < FSI_LANES; u++) trace[u] *= part;

    /* Targets, and the squares |F - R|^2 and |F - P|^2; before: D of damping. */
    for (c = 0; c < 3; c++) for (i = 0; i < 3; i++) for (u = 0; u < FSI_LANES; u++) {
        const double x = f[3 * c + i][u], y = r[3 * c + i][u], z = share[u] > 0 ? p[3 * c + i][u] : y;
        double before = r[3 * c][u] * d[i][u] + r[3 * c + 1][u] * d[3 + i][u] + r[3 * c + 2][u] * d[6 + i][u];
        before += share[u] * (x - y * trace[u] - before);
        t[3 * i + c][u] = k[u] * (y + share[u] * (z - y) + viscous * before);
        sheared[u] += (x - y) * (x - y);
        swollen[u] += (x - z) * (x - z);
    }

    /* The energy V (mu |F - R|^2 + kappa |F - P|^2) (E1). */
    for (u = 0; u < FSI_LANES; u++)
        energy[u] = 0.5 * k[u] * ((1 - share[u]) * sheared[u] + share[u] * swollen[u]);
    if (pull) fsi__el_put_unknowns(b, block, (const fsi__el_lane *)t, pull);
    else if (b->pulling) fsi__el_put_corners(b, block, (const fsi__el_lane *)t);
}

/* Loads the numbers of block k into the caches, which else wait for memory at the beginning of each. */
static void fsi__el_fetch_block(const fsi__el_body *b, int k)
{
    const size_t begin = 9 * (size_t)k * FSI_LANES;
    size_t i;
    for (i = begin; i < begin + 9 * FSI_LANES; i += 8) {
        FSI__PREFETCH(b->rotation + i);
        FSI__PREFETCH(b->stretch + i);
        if (b->slope) FSI__PREFETCH(b->slope + i);
    }
}

#define FSI__EL_PULLS 8 /* chunks of a reduced body's blocks, at most: each has sums of its own */

/* Blocks of a chunk of the local step. */
static int fsi__el_grain(const fsi__el_body *b)
{
    const int share = fsi__chunks(fsi__chunks(b->evaluated, FSI_LANES), FSI__EL_PULLS);
    return b->reduced && share > 16 ? share : 16;
}

/* Blocks begin .. end - 1: rotations, isochoric parts, targets, energies. */
static void fsi__el_local_range(void *arg, int chunk, int begin, int end)
{
    fsi__el_body *b = (fsi__el_body *)arg;
    double *pull = b->reduced && b->pulling ? b->pull + 3 * b->stride * (size_t)chunk : NULL;
    fsi__el_block block;
    int k, u;
    if (pull) memset(pull, 0, 3 * b->stride * sizeof(double));
    for (k = begin; k < end; k++) {
        const size_t at = 9 * (size_t)k * FSI_LANES;
        int volume = 0;
        if (k + 1 < end) fsi__el_fetch_block(b, k + 1);
        fsi__el_load_block(b, k, &block);
        for (u = 0; u < FSI_LANES; u++) volume |= b->share[block.first + u] > 0;
        fsi__el_rotate_block(&block, b->dim);
        if (volume) fsi__el_isochoric_block(&block, b->dim);
        else memcpy(block.p, block.r, sizeof block.p);
        fsi__el_aim_block(b, &block, pull);
        if (!b->pulling) memcpy(b->stretch + at, block.f, sizeof block.f);
        memcpy(b->rotation + at, block.r, sizeof block.r);
    }
}

static void fsi__el_local(fsi__el_body *b, const double *q, int pulling)
{
    b->pulling = pulling;
    fsi__el_widen(b, q);
    fsi__parallel_work(b->context, fsi__chunks(b->evaluated, FSI_LANES), fsi__el_grain(b), 100.0 * b->evaluated,
                       fsi__el_local_range, b);
}

FSI_API void fsi__el_body_project(fsi__el_body *b)
{
    fsi__el_local(b, b->at, 1);
    b->iterations++;
}

#define FSI__EL_PIN 1000.0 /* stiffness of a pin over m / H^2; the material adds 10 E L, in the plane 10 E */

/* ---- >>global step -------------------------------------------------------------------------------------------------

   (M / H^2 + (1 + b/h) K + springs) q = M S / H^2 + sum_e k_e (T_e + b/h D_e) h_e + springs + contacts          (E4)

   with k = 2 (mu + kappa) volume. Damping b adds b/h times the energy that the strain since the beginning of the
   substep would have, V (mu |F - R S|^2 + kappa |F - Q|^2): S = R^T F at that beginning, Q = F - R tr(R^T F - S)/dim
   the matrix nearest to F that has swollen no more than S; D = (mu R S + kappa Q)/(mu + kappa). A rotation is not
   damped.

   Many handles for few vertices are nearly linearly dependent: then some q move nothing, and A is singular in long
   steps. So a reduced body's A has s = FSI__EL_SLACK times its diagonal more, and the right side s times the iterate:
   its fixed point is that of (E4). */
#define FSI__EL_SLACK 2e-11 /* fsi_dense_cholesky refuses pivots below n * 1.8e-15 of the diagonal; n is 4000 at most */

/* Adds the elastic terms of the right side of (E4) for the vertices begin .. end - 1 of a full body. */
static void fsi__el_gather_range(void *arg, int chunk, int begin, int end)
{
    fsi__el_body *b = (fsi__el_body *)arg;
    int i, k;
    (void)chunk;
    for (i = begin; i < end; i++) {
        double *to = b->wide + 4 * (size_t)i, x = 0, y = 0, z = 0;
        for (k = b->gather_first[i]; k < b->gather_first[i + 1]; k++) {
            const double *part = b->target + 3 * (size_t)b->gather[k];
            x += part[0];
            y += part[1];
            z += part[2];
        }
        to[0] += x;
        to[1] += y;
        to[2] += z;
    }
}

/* The same for the unknowns of a reduced body: the sums of the chunks, in their order. */
static void fsi__el_add_pulls(fsi__el_body *b)
{
    const int chunks = fsi__chunks(fsi__chunks(b->evaluated, FSI_LANES), fsi__el_grain(b));
    const size_t n = 3 * b->stride;
    size_t i;
    int k;
    for (k = 0; k < chunks; k++) for (i = 0; i < n; i++) b->wide[i] += b->pull[n * (size_t)k + i];
}

FSI_API fsi_status fsi__el_body_solve(fsi__el_body *b)
{
    int i, k, j, c;

    /* The right side. */
    for (i = 0; i < b->dofs; i++) for (c = 0; c < 3; c++)
        *fsi__el_wide(b, i, c) = b->right[3 * i + c] + b->contact[3 * i + c];
    for (k = 0; k < b->springs; k++) {
        const fsi__el_spring *s = &b->spring[k];
        for (j = b->anchor.start[s->row]; j < b->anchor.start[s->row + 1]; j++) for (c = 0; c < 3; c++)
            *fsi__el_wide(b, b->anchor.dof[j], c) += s->stiffness * b->anchor.value[j] * s->target[c];
    }
    for (i = 0; i < b->dofs && b->reduced; i++) for (c = 0; c < 3; c++)
        *fsi__el_wide(b, i, c) += b->slack[i] * b->at[3 * i + c];
    if (b->reduced) fsi__el_add_pulls(b);
    else fsi__parallel_work(b->context, b->dofs, 512, 60.0 * b->dofs, fsi__el_gather_range, b);
    for (i = 0; i < b->dofs && b->dim == 2; i++) *fsi__el_wide(b, i, 2) = 0;

    /* next = A^-1 of it. */
    FSI__TRY(b->reduced ? fsi__panels_solve_3(b->dofs, b->panels, b->wide, b->stride)
                        : fsi_ldlt_solve_4(b->ldlt, b->wide, b->wide));
    for (i = 0; i < b->dofs; i++) for (c = 0; c < 3; c++) b->next[3 * i + c] = *fsi__el_wide(b, i, c);
    return FSI_OK;
}

FSI_API fsi_status fsi__el_body_column(fsi__el_body *b, const fsi__el_rows *r, int row, double *y)
{
    int i;
    memset(y, 0, (size_t)b->dofs * sizeof(double));
    for (i = r->start[row]; i < r->start[row + 1]; i++) y[r->dof[i]] += r->value[i];
    return b->reduced ? fsi_dense_cholesky_solve(b->dofs, b->factor, y) : fsi_ldlt_solve(b->ldlt, y, y);
}

/* A + stiffness u^T u of a reduced body: the lower triangle. */
static void fsi__el_stiffen_reduced(fsi__el_body *b, const fsi__el_spring *s)
{
    const fsi__el_rows *u = &b->anchor;
    int p, r;
    for (p = u->start[s->row]; p < u->start[s->row + 1]; p++) for (r = u->start[s->row]; r <= p; r++)
        b->factor[(size_t)u->dof[p] * (size_t)b->dofs + (size_t)u->dof[r]] += s->stiffness * u->value[p] * u->value[r];
}

/* The same for a full one: its pattern couples the corners of an element. */
static void fsi__el_stiffen_full(fsi__el_body *b, const fsi__el_spring *s)
{
    const fsi__el_rows *u = &b->anchor;
    const fsi_csr *a = &b->elastic->matrix;
    int m, n, p;
    for (m = u->start[s->row]; m < u->start[s->row + 1]; m++) for (n = u->start[s->row]; n < u->start[s->row + 1]; n++)
        for (p = a->start[u->dof[m]]; p < a->start[u->dof[m] + 1]; p++)
            if (a->col[p] == u->dof[n]) a->value[p] += s->stiffness * u->value[m] * u->value[n];
}

static fsi_status fsi__el_factorise(fsi__el_body *b)
{
    const double scale = 1 / (b->big_h * b->big_h);
    const size_t d = (size_t)b->dofs;
    size_t i, j;
    int k, p, r;
    b->factored_for = 0;
    if (b->reduced) {
        /* The lower triangle of A (E4), dense. */
        for (i = 0; i < d; i++) for (j = 0; j <= i; j++)
            b->factor[i * d + j] = scale * b->massive[i * d + j] + (1 + b->viscous) * b->stiff[i * d + j];
        for (k = 0; k < b->springs; k++) fsi__el_stiffen_reduced(b, &b->spring[k]);
        for (i = 0; i < d; i++) b->factor[i * d + i] += b->slack[i] = FSI__EL_SLACK * b->factor[i * d + i];
        FSI__TRY(fsi_dense_cholesky(b->context, b->dofs, b->factor));
        fsi__panels_make(b->dofs, b->factor, b->panels);
    } else {
        /* The same in the pattern of K, sparse. */
        const fsi_csr *a = &b->elastic->matrix;
        for (r = 0; r < a->rows; r++) for (p = a->start[r]; p < a->start[r + 1]; p++)
            a->value[p] = (1 + b->viscous) * b->stiff[p] + (a->col[p] == r ? scale * b->vertex_mass[r] : 0);
        for (k = 0; k < b->springs; k++) fsi__el_stiffen_full(b, &b->spring[k]);
        FSI__TRY(fsi_ldlt_factor(b->ldlt, a));
    }

    /* The arguments for which the factor is valid. */
    b->factored_for = b->big_h;
    b->factored_viscous = b->viscous;
    b->factorings++;
    b->springs_changed = 0;
    return FSI_OK;
}

/* y = M x, 3 * dofs. Uses `wide`. */
static void fsi__el_mass_times(fsi__el_body *b, const double *x, double *y)
{
    const int d = b->dofs;
    int i, c;
    if (!b->reduced) {
        for (i = 0; i < d; i++) for (c = 0; c < 3; c++) y[3 * i + c] = b->vertex_mass[i] * x[3 * i + c];
        return;
    }
    fsi__el_widen(b, x);
    fsi__dense_times_3(d, b->massive, b->wide, b->stride, y);
}

/* S and base of (E3). Backward Euler: base = q, S = q + h v + h^2 a, H = h. BDF2: base = (4 q - q')/3,
   S = base + H (4 v - v')/3 + H^2 a, H = 2 h / 3, with q', v' a step ago. Where there is no such step, or it was of
   another length, they are those of motion with the acceleration a: q' = q - h v + h^2 a / 2, v' = v - h a; so free
   fall is exact. In a liquid, which changes v after the step, all steps are backward Euler's. */
static void fsi__el_aim(fsi__el_body *b, int order, fsi__d3 gravity, int field)
{
    const double a[3] = { gravity.x, gravity.y, gravity.z }, h = b->h;
    const size_t d = (size_t)b->dofs;
    const int fresh = !(fabs(b->h_before - h) <= 1e-9 * h);
    size_t i, c;
    if (b->supported) order = 1;
    b->big_h = order == 2 ? h * 2 / 3 : h;
    for (i = 0; i < d; i++) for (c = 0; c < 3; c++) {
        const size_t n = 3 * i + c;
        const double g = a[c] * b->one[i] + (field ? b->acceleration[n] : 0);
        double base = b->q[n], v = b->v[n];
        if (order == 2) {
            if (fresh) {
                b->q_before[n] = b->q[n] - h * b->v[n] + 0.5 * h * h * g;
                b->v_before[n] = b->v[n] - h * g;
            }
            base = (4 * b->q[n] - b->q_before[n]) / 3;
            v = (4 * b->v[n] - b->v_before[n]) / 3;
        }
        b->base[n] = base;
        b->aim[n] = base + b->big_h * v + b->big_h * b->big_h * g;
    }
}

/* F of the blocks begin .. end - 1 at the unknowns of `wide`, kept in `stretch`. */
static void fsi__el_keep_range(void *arg, int chunk, int begin, int end)
{
    fsi__el_body *b = (fsi__el_body *)arg;
    fsi__el_block block;
    int k;
    (void)chunk;
    for (k = begin; k < end; k++) {
        fsi__el_load_gradients(b, k, &block);
        memcpy(b->stretch + 9 * (size_t)k * FSI_LANES, block.f, sizeof block.f);
    }
}

/* R^T F of the blocks begin .. end - 1 from the F that are kept. */
static void fsi__el_stretch_range(void *arg, int chunk, int begin, int end)
{
    fsi__el_body *b = (fsi__el_body *)arg;
    fsi__el_block block;
    int k, u, i, j;
    (void)chunk;
    for (k = begin; k < end; k++) {
        const size_t at = 9 * (size_t)k * FSI_LANES;
        fsi__el_lane *f = block.f, *r = block.r, d[9];
        fsi__el_load_kept(b, k, &block);
        memcpy(block.r, b->rotation + at, sizeof block.r);
        fsi__el_rotate_block(&block, b->dim);
        for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) for (u = 0; u < FSI_LANES; u++)
            d[3 * i + j][u] = r[i][u] * f[j][u] + r[3 + i][u] * f[3 + j][u] + r[6 + i][u] * f[6 + j][u];
        memcpy(b->stretch + at, d, sizeof d);
        memcpy(b->rotation + at, block.r, sizeof block.r);
    }
}

#define FSI__EL_TANGLED 1e-3 /* inverted fraction of a body */

/* The iterate becomes the rest shape rotated by r, with the centre of mass of S. */
static void fsi__el_start_at_rest(fsi__el_body *b, const double *r)
{
    fsi__d3 way = fsi__d3_zero();
    int i;
    for (i = 0; i < b->dofs; i++) {
        const fsi__d3 x = fsi__d9_mul(r, fsi__d3_at(b->rest + 3 * (size_t)i));
        way = fsi__d3_madd(way, b->m_one[i] / b->mass, fsi__d3_sub(fsi__d3_at(b->aim + 3 * (size_t)i), x));
        fsi__d3_put(b->at + 3 * (size_t)i, x);
    }
    for (i = 0; i < b->dofs; i++)
        fsi__d3_put(b->at + 3 * (size_t)i, fsi__d3_madd(fsi__d3_at(b->at + 3 * (size_t)i), b->one[i], way));
}

/* All rotations start from that of the mean deformation gradient, so that none is part of the state.

   A body with more than a thousandth of its volume inverted starts its iterations from its rest shape, rotated likewise
   and with the centre of mass of S, and not from S: (E3) of a crushed body has many minima, and local and global steps
   from S may converge to one with a corner that winds round twice. */
static void fsi__el_start_rotations(fsi__el_body *b)
{
    double mean[9] = { 0 }, r[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 }, inverted = 0, whole = 0;
    const int blocks = fsi__chunks(b->evaluated, FSI_LANES);
    fsi__el_block block;
    fsi__el_lane det;
    int e, k, u;

    /* The mean of F, and how much is inverted. */
    fsi__el_widen(b, b->q);
    fsi__parallel_work(b->context, blocks, 16, 40.0 * b->evaluated, fsi__el_keep_range, b);
    for (e = 0; e < blocks; e++) {
        const double *stiffness = b->stiffness + e * FSI_LANES;
        fsi__el_load_kept(b, e, &block);
        fsi__el_dets(&block, det);
        for (u = 0; u < block.count; u++) {
            for (k = 0; k < 9; k++) mean[k] += block.f[k][u] / b->evaluated;
            whole += stiffness[u];
            if (det[u] < 0) inverted += stiffness[u];
        }
    }

    /* Its rotation, for all elements. */
    if (b->dim == 3) fsi__el_polar_slow(mean, r);
    else fsi__el_polar_2d(mean, r);
    for (e = 0; e < blocks; e++) for (k = 0; k < 9; k++) for (u = 0; u < FSI_LANES; u++)
        b->rotation[((size_t)e * 9 + (size_t)k) * FSI_LANES + (size_t)u] = r[k];
    if (b->damping > 0) fsi__parallel_work(b->context, blocks, 16, 50.0 * b->evaluated, fsi__el_stretch_range, b);
    b->inverted = inverted / whole;
    if (b->inverted > FSI__EL_TANGLED) fsi__el_start_at_rest(b, r);
}

/* right = M S / H^2 + external forces. */
static void fsi__el_load(fsi__el_body *b)
{
    const size_t n = 3 * (size_t)b->dofs;
    size_t i;
    fsi__el_mass_times(b, b->aim, b->right);
    for (i = 0; i < n; i++) b->right[i] = b->right[i] / (b->big_h * b->big_h) + b->force[i];
    for (i = 0; i < n && b->supported; i++) b->right[i] += b->support[i];
}

FSI_API fsi_status fsi__el_body_predict(fsi__el_body *b, double h, int order, fsi__d3 gravity, int field)
{
    const size_t n = 3 * (size_t)b->dofs;
    int k;

    /* S, base and H of the integrator; forces. */
    b->h = h;
    b->viscous = b->damping / h;
    fsi__el_aim(b, order, gravity, field);
    fsi__el_load(b);

    /* A depends on H, b/h and the springs. */
    if (b->springs_changed || b->factored_for < b->big_h || b->factored_for > b->big_h
        || b->factored_viscous < b->viscous || b->factored_viscous > b->viscous) {
        for (k = 0; k < b->springs; k++)
            b->spring[k].stiffness =
                b->spring[k].given > 0 ? b->spring[k].given
                : FSI__EL_PIN * b->mass / (b->big_h * b->big_h)
                    + 10 * b->young * (b->dim == 3 ? b->shape.size : 1); /* in the plane of a metre's depth */
        FSI__TRY(fsi__el_factorise(b));
    }

    /* The iteration starts from S, without contact forces and without history. */
    memcpy(b->at, b->aim, n * sizeof(double));
    memset(b->contact, 0, n * sizeof(double));
    fsi__el_start_rotations(b);
    b->iterations = 0;
    b->mixer.stored = b->mixer.slot = 0;
    b->mixer.best = HUGE_VAL;
    return FSI_OK;
}

/* ---- >>acceleration -------------------------------------------------------------------------------------------------

   Local and global step are a map q -> g(q), whose fixed point is sought. Anderson's acceleration (Peng et al. 2018)
   combines the last m values so that the residual f = g - q is least if g is linear:

      q' = g_k - sum_j t_j (g_k-j - g_k-j-1),   t = argmin |f_k - sum_j t_j (f_k-j - f_k-j-1)|^2   (E5)

   for bodies in the norm of the diagonal of M. Where the residual grows beyond twice the best, the history is dropped
   and q' = g_k: local and global step alone never raise the energy. */

FSI_API void fsi__el_mix(fsi__el_mixer *m, const double *g, int wide, const double *f, int tall, double residual,
                         double *to)
{
    const size_t pair = (size_t)wide + (size_t)tall;
    double *last_g = m->history + (size_t)m->depth * pair, *last_f = last_g + wide; /* of the iteration before */
    double gram[64], right[8];
    int i, j, k, n;
    if (m->depth == 0) { memmove(to, g, (size_t)wide * sizeof(double)); return; }

    /* Differences of g and f from the iteration before, and their dot products with the stored ones. */
    if (m->best < HUGE_VAL) {
        double *dg = m->history + (size_t)m->slot * pair, *df = dg + wide;
        for (i = 0; i < wide; i++) dg[i] = g[i] - last_g[i];
        for (i = 0; i < tall; i++) df[i] = f[i] - last_f[i];
        if (m->stored < m->depth) m->stored++;
        for (j = 0; j < m->stored; j++)
            m->gram[8 * m->slot + j] = m->gram[8 * j + m->slot] =
                fsi__dot(df, m->history + (size_t)j * pair + wide, tall);
        m->slot = (m->slot + 1) % m->depth;
    }

    /* The values of this iteration are stored; the history is dropped where the residual exceeds twice the best. */
    memcpy(last_g, g, (size_t)wide * sizeof(double));
    memcpy(last_f, f, (size_t)tall * sizeof(double));
    if (residual > 2 * m->best) m->stored = m->slot = 0;
    m->best = fmin(m->best, residual);

    /* Normal equations of the least squares (E5), with a relative 1e-10 added to the diagonal. */
    n = m->stored;
    for (j = 0; j < n; j++) {
        for (k = 0; k <= j; k++) gram[j * n + k] = m->gram[8 * j + k];
        gram[j * n + j] *= 1 + 1e-10;
        right[j] = fsi__dot(m->history + (size_t)j * pair + wide, last_f, tall);
    }

    /* The next x = g - sum_j t_j dg_j (E5); g itself without history or solution. */
    memmove(to, g, (size_t)wide * sizeof(double));
    if (n == 0 || fsi_dense_cholesky(NULL, n, gram) != FSI_OK || fsi_dense_cholesky_solve(n, gram, right) != FSI_OK)
        return;
    for (j = 0; j < n; j++) {
        const double *dg = m->history + (size_t)j * pair;
        for (i = 0; i < wide; i++) to[i] -= right[j] * dg[i];
    }
}

FSI_API void fsi__el_body_advance(fsi__el_body *b)
{
    const int n = 3 * b->dofs;
    double forced = 0;
    int i;

    /* Residual f = g - q, times the root of the mass; it overwrites the iterate. forced: likewise of g - S. */
    for (i = 0; i < n; i++) b->at[i] = b->root_weight[i] * (b->next[i] - b->at[i]);
    b->residual = sqrt(fsi__dot(b->at, b->at, n) / b->mass);
    for (i = 0; i < n; i++) {
        const double moved = b->root_weight[i] * (b->next[i] - b->aim[i]);
        forced += moved * moved;
    }
    b->forced = sqrt(forced / b->mass);
    fsi__el_mix(&b->mixer, b->next, n, b->at, n, b->residual, b->at);
}

/* ---- >>momentum ----------------------------------------------------------------------------------------------- */

/* Momentum p = sum_ij one_i M_ij v_j; angular momentum sum_ij M_ij q_i x v_j about the origin. m_v: M v, scratch. */
static void fsi__el_momenta(fsi__el_body *b, const double *q, const double *v, double *m_v, fsi__d3 *p,
                            fsi__d3 *l)
{
    int i;
    *p = *l = fsi__d3_zero();
    fsi__el_mass_times(b, v, m_v);
    for (i = 0; i < b->dofs; i++) {
        const fsi__d3 mv = fsi__d3_at(m_v + 3 * (size_t)i);
        *p = fsi__d3_madd(*p, b->one[i], mv);
        *l = fsi__d3_add(*l, fsi__d3_cross(fsi__d3_at(q + 3 * (size_t)i), mv));
    }
}

/* Centre of mass c, and second moments sum_ij M_ij q_i q_j^T - m c c^T about it. m_q: M q, scratch. */
static void fsi__el_moments(fsi__el_body *b, const double *q, double *m_q, fsi__d3 *centre, double *second)
{
    int i, j, k;
    *centre = fsi__d3_zero();
    for (k = 0; k < 9; k++) second[k] = 0;
    fsi__el_mass_times(b, q, m_q);
    for (i = 0; i < b->dofs; i++) {
        *centre = fsi__d3_madd(*centre, b->one[i] / b->mass, fsi__d3_at(m_q + 3 * (size_t)i));
        for (j = 0; j < 3; j++) for (k = 0; k < 3; k++) second[3 * j + k] += q[3 * i + j] * m_q[3 * i + k];
    }
    for (j = 0; j < 3; j++) for (k = 0; k < 3; k++)
        second[3 * j + k] -= b->mass * fsi__d3_axis(*centre, j) * fsi__d3_axis(*centre, k);
}

/* Translates `next` by d, so that the change of momentum is the sum of the external forces to rounding, free of the
   rounding errors of A^-1. Elastic forces sum to 0, so summing the rows of (E4) gives
      (m/H^2 + sum k) d = sum_i one_i f_i + sum k (target - u q) - sum_i (M one)_i q_i / H^2 */
static void fsi__el_balance(fsi__el_body *b)
{
    const double scale = 1 / (b->big_h * b->big_h);
    fsi__d3 f = fsi__d3_zero();
    double stiff = b->mass * scale;
    int i;
    for (i = 0; i < b->dofs; i++) {
        const double *m = b->right + 3 * (size_t)i, *c = b->contact + 3 * (size_t)i;
        f = fsi__d3_madd(f, b->one[i], fsi__d3_add(fsi__d3_at(m), fsi__d3_at(c)));
        f = fsi__d3_madd(f, -scale * b->m_one[i], fsi__d3_at(b->next + 3 * (size_t)i));
    }
    for (i = 0; i < b->springs; i++) {
        const fsi__el_spring *s = &b->spring[i];
        stiff += s->stiffness;
        f = fsi__d3_madd(f, s->stiffness,
                         fsi__d3_sub(fsi__d3_at(s->target), fsi__el_point(&b->anchor, s->row, b->next)));
    }
    for (i = 0; i < b->dofs; i++)
        fsi__d3_put(b->next + 3 * (size_t)i,
                    fsi__d3_madd(fsi__d3_at(b->next + 3 * (size_t)i), b->one[i] / stiff, f));
}

FSI_API void fsi__el_body_stir(fsi__el_body *b, fsi__d3 v, fsi__d3 w, fsi__d3 c)
{
    int i;
    for (i = 0; i < b->dofs; i++) {
        fsi__d3 by = fsi__d3_cross(w, fsi__d3_at(b->q + 3 * (size_t)i));
        by = fsi__d3_madd(by, b->one[i], fsi__d3_sub(v, fsi__d3_cross(w, c)));
        fsi__d3_put(b->v + 3 * (size_t)i, fsi__d3_add(fsi__d3_at(b->v + 3 * (size_t)i), by));
    }
}

/* Backward Euler moves points along tangents. With v and v' relative to the centre of mass, after and before, the
   moment of M (v - v') = h f about where the points are now gives

      sum q x M v = sum q' x M v' + h (moment of f) + h sum v x M v',

   whose last term is no moment of any force: it is taken off again as a rigid rotation. */
static void fsi__el_balance_spin(fsi__el_body *b)
{
    fsi__d3 p, l, c, v = fsi__d3_zero(), turn;
    double second[9];
    int i;
    fsi__el_momenta(b, b->v, b->v_before, b->right, &p, &l);
    for (i = 0; i < b->dofs; i++) v = fsi__d3_madd(v, b->m_one[i] / b->mass, fsi__d3_at(b->v + 3 * (size_t)i));
    turn = fsi__d3_scale(fsi__d3_sub(l, fsi__d3_cross(v, p)), -b->h);
    fsi__el_moments(b, b->q, b->right, &c, second);
    fsi__el_body_stir(b, fsi__d3_zero(), fsi__d3_spin(b->dim, second, turn), c);
}

FSI_API void fsi__el_body_accept(fsi__el_body *b)
{
    const size_t n = 3 * (size_t)b->dofs;
    size_t i;
    fsi__el_balance(b);
    memcpy(b->q_before, b->q, n * sizeof(double));
    memcpy(b->v_before, b->v, n * sizeof(double));
    memcpy(b->q, b->next, n * sizeof(double));
    for (i = 0; i < n; i++) b->v[i] = (b->q[i] - b->base[i]) / b->big_h;
    if (!(b->big_h < b->h)) fsi__el_balance_spin(b);
    b->h_before = b->h;
}

FSI_API void fsi__el_body_retract(fsi__el_body *b)
{
    const size_t n = 3 * (size_t)b->dofs;
    memcpy(b->q, b->q_before, n * sizeof(double));
    memcpy(b->v, b->v_before, n * sizeof(double));
    fsi__el_load(b);
    memcpy(b->at, b->next, n * sizeof(double));
    b->mixer.stored = b->mixer.slot = 0;
    b->mixer.best = HUGE_VAL;
}

FSI_API void fsi__el_body_measure(fsi__el_body *b, fsi__el_motion *out, int all)
{
    double *scratch = b->right, volume = 0, whole = 0;
    fsi__el_block block;
    fsi__el_lane det;
    fsi__d3 p, l, centre;
    int k, u, i;
    memset(out, 0, sizeof *out);

    /* Momenta, kinetic energy and centre of mass. */
    fsi__el_momenta(b, b->q, b->v, scratch, &p, &l);
    for (i = 0; i < 3 * b->dofs; i++) out->kinetic += 0.5 * b->v[i] * scratch[i];
    fsi__el_moments(b, b->q, scratch, &centre, out->second);
    fsi__d3_put(out->momentum, p);
    fsi__d3_put(out->spin, l);
    fsi__d3_put(out->centre, centre);
    if (!all) return;

    /* The local step at q gives elastic energies; volumes and stretches follow from F. */
    fsi__el_local(b, b->q, 0);
    out->stretch_min = HUGE_VAL;
    for (k = 0; k < fsi__chunks(b->evaluated, FSI_LANES); k++) {
        fsi__el_load_kept(b, k, &block);
        fsi__el_dets(&block, det);
        for (u = 0; u < block.count; u++) {
            const int e = block.first + u;
            double norm2 = b->dim == 2 ? -1 : 0;
            volume += b->volume[e] * det[u];
            whole += b->volume[e];
            out->elastic += b->energy[e];

            /* |F|/sqrt(dim) and det F. */
            for (i = 0; i < 9; i++) norm2 += block.f[i][u] * block.f[i][u];
            out->stretch_max = fmax(out->stretch_max, sqrt(norm2 / b->dim));
            out->stretch_min = fmin(out->stretch_min, det[u]);
        }
    }
    out->volume_ratio = whole > 0 ? volume / whole : 1;
}

FSI__COLD_BEGIN

/* ---- >>assembly ----------------------------------------------------------------------------------------------- */

/* Volume, stiffness k and share of an evaluated element (E2). */
static void fsi__el_set_moduli(fsi__el_body *b, int e, const fsi_elastic_material *m, double volume)
{
    const double young = (double)m->young, nu = (double)m->poisson, mu = young / (2 * (1 + nu)),
                 kappa = 0.5 * b->dim * young * nu / ((1 + nu) * (1 - 2 * nu));
    b->volume[e] = volume;
    b->stiffness[e] = 2 * (mu + kappa) * volume;
    b->share[e] = kappa / (mu + kappa);
}

/* Arrays whose sizes follow from the counts of unknowns and evaluated elements. */
static void fsi__el_body_layout(fsi__el_body *b)
{
    const size_t d = (size_t)b->dofs, n = (size_t)b->evaluated, blocks = (size_t)fsi__chunks(b->evaluated, FSI_LANES);
    const size_t state = 3 * d;
    double **state_arrays[16];
    int k;

    /* Vectors over the unknowns, three numbers each. */
    state_arrays[0] = &b->q; state_arrays[1] = &b->v; state_arrays[2] = &b->q_before; state_arrays[3] = &b->v_before;
    state_arrays[4] = &b->aim; state_arrays[5] = &b->right; state_arrays[6] = &b->force; state_arrays[7] = &b->contact;
    state_arrays[8] = &b->at; state_arrays[9] = &b->next; state_arrays[10] = &b->base; state_arrays[11] = &b->rest;
    state_arrays[12] = &b->root_weight;
    state_arrays[13] = &b->acceleration; state_arrays[14] = &b->support; state_arrays[15] = NULL;
    b->memory.used = 0;
    for (k = 0; state_arrays[k]; k++) *state_arrays[k] = (double *)fsi__take(&b->memory, state, sizeof(double));

    /* One number for each unknown, element or evaluated element; matrices in blocks of FSI_LANES elements. */
    b->one = (double *)fsi__take(&b->memory, d, sizeof(double));
    b->m_one = (double *)fsi__take(&b->memory, d, sizeof(double));
    b->element_mass = (double *)fsi__take(&b->memory, (size_t)b->shape.element_count, sizeof(double));
    b->volume = (double *)fsi__take(&b->memory, FSI_LANES * blocks, sizeof(double));
    b->share = (double *)fsi__take(&b->memory, FSI_LANES * blocks, sizeof(double));
    b->stiffness = (double *)fsi__take(&b->memory, FSI_LANES * blocks, sizeof(double));
    b->energy = (double *)fsi__take(&b->memory, FSI_LANES * blocks, sizeof(double));
    b->rotation = (double *)fsi__take(&b->memory, 9 * FSI_LANES * blocks, sizeof(double));
    b->stretch = (double *)fsi__take(&b->memory, 9 * FSI_LANES * blocks, sizeof(double));

    /* Right sides of the global step, and the history of the acceleration. */
    b->stride = d + 4;
    b->wide = (double *)fsi__take(&b->memory, 4 * b->stride, sizeof(double));
    b->mixer.history = (double *)fsi__take(&b->memory, 2 * ((size_t)b->mixer.depth + 1) * state, sizeof(double));

    /* Matrices: dense ones of a reduced body; masses, gathers and values of K of a full one. */
    if (b->reduced) {
        b->pull = (double *)fsi__take(&b->memory, FSI__EL_PULLS * 3 * b->stride, sizeof(double));
        b->stiff = (double *)fsi__take(&b->memory, d * d, sizeof(double));
        b->massive = (double *)fsi__take(&b->memory, d * d, sizeof(double));
        b->own_mass = (double *)fsi__take(&b->memory, d * d, sizeof(double));
        b->slack = (double *)fsi__take(&b->memory, d, sizeof(double));
        b->factor = (double *)fsi__take(&b->memory, d * d, sizeof(double));
        b->panels = (double *)fsi__take(&b->memory, fsi__panels_size(b->dofs), sizeof(double));
    } else {
        b->vertex_mass = (double *)fsi__take(&b->memory, d, sizeof(double));
        b->own_mass = (double *)fsi__take(&b->memory, d, sizeof(double));
        b->target = (double *)fsi__take(&b->memory, 12 * n, sizeof(double));
        b->slope = (double *)fsi__take(&b->memory, 9 * FSI_LANES * blocks, sizeof(double));
        b->gather_first = (int *)fsi__take(&b->memory, d + 1, sizeof(int));
        b->gather = (int *)fsi__take(&b->memory, n * (size_t)(b->dim + 1), sizeof(int));
        b->stiff =
            (double *)fsi__take(&b->memory, b->elastic ? (size_t)b->elastic->matrix.start[b->dofs] : 0, sizeof(double));
    }
}

static fsi_status fsi__el_no_memory(fsi__el_body *b, const char *fn)
{
    return fsi__fail(b->context, FSI_ERROR_MEMORY, fn, -1, b->shape.element_count,
        "no memory for a body of %d elements", b->shape.element_count);
}

static fsi_status fsi__el_body_reserve(fsi__el_body *b, const char *fn)
{
    fsi__el_body_layout(b);
    if (!fsi__arena_reserve(b->context, &b->memory, b->memory.used)) return fsi__el_no_memory(b, fn);
    fsi__el_body_layout(b);
    memset(b->memory.base, 0, b->memory.used);
    return FSI_OK;
}

/* ---- >>sampling ----------------------------------------------------------------------------------------------------

   A large reduced body is cut into regions, each around a vertex, of one material. A region counts as one element: its
   deformation gradient is the mean of those of its elements. So the body has the energy of its regions,
   E = sum_s V_s (mu |F_s - R_s|^2 + kappa |F_s - P_s|^2) (E7), and the matrix K that belongs to it: an elastic energy
   like any other, only of fewer elements. Its rest shape is exactly at rest, rotated or not; local and global step
   never raise the energy; momentum and angular momentum are conserved. (A right side from T fitted by smooth fields,
   with the K of all elements (Brandt et al. 2018), is not the gradient of an energy: with the volume term a body that
   rotates freely gains energy and bursts: 10 handles, 576 elements, nu 0.4, 5 rad/s, h = 1/240 s: 5e3 times its energy
   within a turn.) */

/* region[e]: region of each element, 0 .. *found - 1, ascending by material; about `count` regions. */
static fsi_status fsi__el_choose_regions(fsi__el_body *b, const char *fn, int material_count, int count, int *region,
    int *found)
{
    const fsi__el_shape *s = &b->shape;
    const int corners = b->dim + 1;
    fsi__el_near p;
    int m, e, k, *at, *size;
    *found = 0;
    FSI__TRY(fsi__el_near_begin(&p, b->context, fn, s));
    at = (int *)fsi__alloc(b->context, (size_t)s->vertex_count, 2 * sizeof(int));
    size = at ? at + s->vertex_count : NULL;

    /* The vertices of each material are allowed; its number of regions is proportional to its volume. */
    for (m = 0; m < material_count && at; m++) {
        double part = 0;
        int v, chosen;
        for (v = 0; v < s->vertex_count; v++) at[v] = -1;
        for (e = 0; e < s->element_count; e++) if (s->material[e] == m) {
            part += s->volume[e];
            for (k = 0; k < corners; k++) at[fsi__el_corners(s, e)[k]] = 0;
        }
        if (!(part > 0)) continue;
        chosen = fsi__el_near_choose(&p, at, (int)ceil(count * part / s->mass_volume - 1e-9));

        /* An element belongs to the region of its corner that is closest to the chosen vertex of its region: so a
           region has the elements around its vertex. Of two such corners the one whose region has fewer elements: so
           no region is empty. */
        for (k = 0; k < chosen; k++) size[k] = 0;
        for (e = 0; e < s->element_count; e++) if (s->material[e] == m) {
            const int *corner = fsi__el_corners(s, e);
            int best = corner[0];
            for (k = 1; k < corners; k++) {
                const double closer = p.nearest[best] - p.nearest[corner[k]];
                if (closer > 0 || (!(closer < 0) && size[p.owner[corner[k]]] < size[p.owner[best]])) best = corner[k];
            }
            if (size[p.owner[best]]++ == 0) at[p.owner[best]] = (*found)++;
            region[e] = at[p.owner[best]];
        }
    }
    fsi__free(b->context, at, (size_t)s->vertex_count, 2 * sizeof(int));
    fsi__el_near_free(&p, b->context);
    return at ? FSI_OK : fsi__el_no_memory(b, fn);
}

/* Adds the row of a region: the mean of those of the elements list[0 .. count - 1], weighted by volume. dense: 3 * dofs
   numbers, 0 before and after; used: dofs, likewise. */
static fsi_status fsi__el_region_row(fsi__el_body *b, const char *fn, const int *list, int count, double volume,
    fsi__el_rows *one, double *dense, unsigned char *used)
{
    const int corners = b->dim + 1;
    int i, k, c, a, entries = 0;
    fsi__el_rows *r = &b->gradient;

    /* F_s of (E7): the sum of the elements' rows, weighted by their fractions of the volume. */
    for (k = 0; k < count; k++) {
        const double w = b->shape.volume[list[k]] / volume;
        one->count = one->start[0] = 0;
        FSI__TRY(fsi__el_rows_element(one, b->context, fn, &b->shape, &b->handles, list[k]));
        for (i = 0; i < one->start[1]; i++) {
            entries += !used[one->dof[i]];
            used[one->dof[i]] = 1;
            for (c = 0; c < 3; c++) dense[3 * one->dof[i] + c] += w * one->value[3 * i + c];
        }
    }

    /* An entry for each handle that any of them has: its coefficients by columns of F. dense and used are 0 again. */
    FSI__TRY(fsi__el_rows_room(r, b->context, fn, r->count + 1, (size_t)(r->start[r->count] + entries / corners)));
    for (i = 0, k = r->start[r->count]; i < b->dofs; i += corners) {
        double *h = r->value + 12 * (size_t)k;
        if (!used[i]) continue;
        r->dof[k++] = i;
        memset(h, 0, 12 * sizeof(double));
        for (a = 0; a < corners; a++) for (c = 0; c < 3; c++) {
            h[4 * c + a] = dense[3 * (i + a) + c];
            dense[3 * (i + a) + c] = 0;
        }
        memset(used + i, 0, (size_t)corners);
    }
    r->start[++r->count] = k;
    return FSI_OK;
}

/* ---- >>bodies made -------------------------------------------------------------------------------------------- */

/* Unknowns at rest: vertices, or unit maps and rest positions of the handles. */
static void fsi__el_rest(fsi__el_body *b)
{
    const int corners = b->dim + 1;
    int i, a;
    if (!b->reduced) {
        memcpy(b->q, b->shape.x, 3 * (size_t)b->dofs * sizeof(double));
        for (i = 0; i < b->dofs; i++) b->one[i] = 1;
        return;
    }
    for (i = 0; i < b->handles.count; i++) {
        for (a = 0; a < b->dim; a++) b->q[3 * (size_t)(corners * i + a) + (size_t)a] = 1;
        memcpy(b->q + 3 * (size_t)(corners * i + b->dim), b->shape.x + 3 * (size_t)b->handles.center[i],
               3 * sizeof(double));
        b->one[corners * i + b->dim] = 1;
    }
}

/* Gradients of the weights of element e; the last element also fills the lanes beyond it. */
static void fsi__el_set_slopes(fsi__el_body *b, int e, const fsi__d3 *grad)
{
    const int end = e == b->evaluated - 1 ? FSI_LANES * fsi__chunks(b->evaluated, FSI_LANES) : e + 1;
    int i, k, at;
    for (at = e; at < end; at++) for (i = 0; i < b->dim; i++) for (k = 0; k < 3; k++)
        b->slope[FSI_LANES * (9 * (at / FSI_LANES) + 3 * i + k) + at % FSI_LANES] = fsi__d3_axis(grad[i + 1], k);
}

/* A body whose vertices are its unknowns. */
static fsi_status fsi__el_make_full(fsi__el_body *b, const char *fn, const fsi__el_plan *plan)
{
    const int corners = b->dim + 1, n = b->shape.element_count, square = corners * corners;
    fsi_assembly_desc d = fsi_assembly_default_desc();
    fsi_ldlt_desc l = fsi_ldlt_default_desc();
    fsi__arena scratch = { NULL, 0, 0 };
    fsi_status status;
    double *value;
    int e, i, k, *start;
    b->dofs = b->shape.vertex_count; b->evaluated = n;

    /* The assembly of K, and the body's arrays. */
    if (!fsi__arena_reserve(b->context, &scratch,
                            ((size_t)n + 1) * sizeof(int) + (size_t)(n * square) * sizeof(double) + 256))
        return fsi__el_no_memory(b, fn);
    start = (int *)fsi__take(&scratch, (size_t)n + 1, sizeof(int));
    value = (double *)fsi__take(&scratch, (size_t)n * (size_t)square, sizeof(double));
    for (e = 0; e <= n; e++) start[e] = e * corners;
    d.context = b->context; d.vertices = b->dofs; d.block = 1;
    d.elements = n; d.start = start; d.vertex = b->shape.element;
    status = fsi_assembly_create(&b->elastic, &d);
    if (status == FSI_OK) status = fsi__el_body_reserve(b, fn);

    /* Each element: gradients of its weights, moduli (E2), stiffness k (E4). */
    for (e = 0; status == FSI_OK && e < n; e++) {
        const fsi_elastic_material *m = &plan->materials[b->shape.material[e]];
        fsi__d3 grad[4];
        fsi__el_gradients(&b->shape, e, grad);
        fsi__el_set_slopes(b, e, grad);
        fsi__el_set_moduli(b, e, m, b->shape.volume[e]);
        b->element_mass[e] = (double)m->density * b->shape.volume[e];
        for (i = 0; i < corners; i++) { /* lumped masses; k h_i . h_j of K */
            const double mass = (double)m->density * b->shape.volume[e] / corners;
            b->vertex_mass[fsi__el_corners(&b->shape, e)[i]] += mass;
            b->mass += mass;
            b->damping += mass * (double)m->damping;
            b->young += mass * (double)m->young;
            b->gather_first[fsi__el_corners(&b->shape, e)[i] + 1]++;
            for (k = 0; k < corners; k++) value[(size_t)e * (size_t)square + (size_t)(i * corners + k)] =
                b->stiffness[e] * fsi__d3_dot(grad[i], grad[k]);
        }
    }

    /* K; the elements of each vertex, by a counting sort; the pattern of the factor. */
    if (status == FSI_OK) status = fsi_assembly_matrix(b->elastic, value);
    if (status == FSI_OK) {
        memcpy(b->stiff, b->elastic->matrix.value, (size_t)b->elastic->matrix.start[b->dofs] * sizeof(double));
        for (i = 0; i < b->dofs; i++) b->gather_first[i + 1] += b->gather_first[i];
        for (i = 0; i < n * corners; i++) b->gather[b->gather_first[b->shape.element[i]]++] = i;
        for (i = b->dofs; i > 0; i--) b->gather_first[i] = b->gather_first[i - 1];
        b->gather_first[0] = 0;
        for (i = 0; i < 3 * b->dofs; i++) b->root_weight[i] = sqrt(b->vertex_mass[i / 3]);
        l.context = b->context;
        l.ordering = fsi_dissection();
        status = fsi_ldlt_create(&b->ldlt, &b->elastic->matrix, &l);
    }
    fsi__arena_free(b->context, &scratch);
    return status;
}

/* Adds k h h^T of element e of a reduced body (E4) to the lower triangle of K. */
static void fsi__el_add_stiffness(fsi__el_body *b, int e)
{
    const fsi__el_rows *r = &b->gradient;
    const int corners = b->dim + 1;
    int i, j, m, n;
    for (i = r->start[e]; i < r->start[e + 1]; i++) for (m = 0; m < corners; m++) {
        const double *h = r->value + 12 * (size_t)i + m, k = b->stiffness[e], x = k * h[0], y = k * h[4], z = k * h[8];
        double *row = b->stiff + (size_t)(r->dof[i] + m) * (size_t)b->dofs;
        for (j = r->start[e]; j <= i; j++) for (n = 0; n < (j < i ? corners : m + 1); n++) {
            const double *g = r->value + 12 * (size_t)j + n;
            row[r->dof[j] + n] += x * g[0] + y * g[4] + z * g[8];
        }
    }
}

/* The diagonal of M grows by this, so that M stays definite where columns of U are linearly dependent. */
#define FSI__EL_DEFINITE 1e-9

/* M += mass u u^T for the row u of a point, the lower triangle. */
static void fsi__el_add_mass(fsi__el_body *b, const fsi__el_rows *u, double mass)
{
    const int n = u->start[1], corners = b->dim + 1;
    int p, q, a;
    for (p = 0; p < n; p++) {
        double *row = b->massive + (size_t)u->dof[p] * (size_t)b->dofs;
        const double m = mass * u->value[p];
        for (q = 0; q <= p; q += corners) {
            double *to = row + u->dof[q];
            for (a = 0; a < corners; a++) to[a] += m * u->value[q + a]; /* also a little above the diagonal */
        }
    }
}

/* M = U^T M' U of a reduced body, and the upper triangles of M and K. M' is the consistent mass matrix of the
   simplices, m/((d + 1)(d + 2)) (1 + delta_ij) for corners i, j of one of mass m: 1/(d + 2) of m spread over its
   corners, and the rest at its centre. */
static fsi_status fsi__el_make_mass(fsi__el_body *b, const char *fn, const fsi__el_plan *plan, double *vertex_mass)
{
    const int corners = b->dim + 1;
    const size_t d = (size_t)b->dofs;
    fsi__el_rows one;
    fsi_status status = fsi__el_rows_begin(&one, b->context, fn, 1);
    size_t i, j;
    int e, k;

    /* Masses of elements and vertices; sums of damping and Young's modulus, weighted by mass. */
    for (e = 0; e < b->shape.element_count; e++) {
        const fsi_elastic_material *m = &plan->materials[b->shape.material[e]];
        const double mass = b->element_mass[e] = (double)m->density * b->shape.volume[e];
        for (k = 0; k < corners; k++)
            vertex_mass[fsi__el_corners(&b->shape, e)[k]] += mass / (corners * (b->dim + 2));
        b->mass += mass;
        b->damping += mass * (double)m->damping;
        b->young += mass * (double)m->young;
    }

    /* The centre of each element; each vertex once, as a corner of the first element that has it. */
    for (e = 0; e < b->shape.element_count && status == FSI_OK; e++) for (k = 0; k <= corners; k++) {
        double bary[4] = { 0, 0, 0, 0 }, *mass = k < corners ? &vertex_mass[fsi__el_corners(&b->shape, e)[k]] : NULL;
        int c;
        if (mass && *mass < 0) continue; /* added already */
        for (c = 0; c < corners; c++) bary[c] = mass ? c == k : 1.0 / corners;
        one.count = 0;
        one.start[0] = 0;
        status = fsi__el_rows_point(&one, b->context, fn, &b->shape, &b->handles, e, bary);
        if (status != FSI_OK) break;
        fsi__el_add_mass(b, &one, mass ? *mass : b->element_mass[e] * corners / (corners + 1));
        if (mass) *mass = -1;
    }
    fsi__el_rows_free(&one, b->context);

    /* M and K are symmetric. */
    for (i = 0; i < d; i++) for (j = 0; j < i; j++) {
        b->massive[j * d + i] = b->massive[i * d + j];
        b->stiff[j * d + i] = b->stiff[i * d + j];
    }

    for (i = 0; i < d; i++) {
        b->massive[i * d + i] *= 1 + FSI__EL_DEFINITE;
        b->root_weight[3 * i] = b->root_weight[3 * i + 1] = b->root_weight[3 * i + 2] = sqrt(b->massive[i * d + i]);
    }
    return status;
}

/* Rows, moduli and stiffnesses of the regions, and K. */
static fsi_status fsi__el_make_regions(fsi__el_body *b, const char *fn, const fsi__el_plan *plan, const int *region)
{
    const int n = b->shape.element_count, m = b->evaluated;
    fsi__arena a = { NULL, 0, 0 };
    fsi__el_rows one;
    fsi_status status;
    int *first = NULL, *list = NULL, e, k, pass;
    double *dense = NULL;
    unsigned char *used = NULL;

    /* Scratch memory: the size is summed in the first pass, the arrays are set in the second. */
    for (pass = 0; pass < 2; pass++) {
        first = (int *)fsi__take(&a, (size_t)m + 1, sizeof(int));
        list = (int *)fsi__take(&a, (size_t)n, sizeof(int));
        dense = (double *)fsi__take(&a, 3 * (size_t)b->dofs, sizeof(double));
        used = (unsigned char *)fsi__take(&a, (size_t)b->dofs, 1);
        if (pass == 0 && !fsi__arena_reserve(b->context, &a, a.used)) return fsi__el_no_memory(b, fn);
    }

    /* Elements are sorted by region, with a counting sort. */
    memset(first, 0, ((size_t)m + 1) * sizeof(int));
    memset(dense, 0, 3 * (size_t)b->dofs * sizeof(double));
    memset(used, 0, (size_t)b->dofs);
    for (e = 0; e < n; e++) first[region[e] + 1]++;
    for (k = 0; k < m; k++) first[k + 1] += first[k];
    for (e = 0; e < n; e++) list[first[region[e]]++] = e;
    for (k = m; k > 0; k--) first[k] = first[k - 1];
    first[0] = 0;

    /* Each region: row of F_s (E7), moduli (E2), stiffness k (E4), and its part of K. */
    status = fsi__el_rows_begin(&one, b->context, fn, 3);
    for (k = 0; k < m && status == FSI_OK; k++) {
        double volume = 0;
        for (e = first[k]; e < first[k + 1]; e++) volume += b->shape.volume[list[e]];
        status = fsi__el_region_row(b, fn, list + first[k], first[k + 1] - first[k], volume, &one, dense, used);
        fsi__el_set_moduli(b, k, &plan->materials[b->shape.material[list[first[k]]]], volume);
        if (status == FSI_OK) fsi__el_add_stiffness(b, k);
    }
    fsi__el_rows_free(&one, b->context);
    fsi__arena_free(b->context, &a);
    return status;
}

static fsi_status fsi__el_make_reduced(fsi__el_body *b, const char *fn, const fsi__el_plan *plan)
{
    const int n = b->shape.element_count;
    fsi_status status;
    double *vertex_mass = (double *)fsi__alloc(b->context, (size_t)b->shape.vertex_count, sizeof(double));
    int *region = (int *)fsi__alloc(b->context, (size_t)n, sizeof(int)), e;
    b->reduced = 1;
    status = region && vertex_mass
                 ? fsi__el_weights_make(&b->handles, b->context, fn, &b->shape, plan->handles, plan->reach)
                 : fsi__el_no_memory(b, fn);
    b->dofs = (b->dim + 1) * b->handles.count;
    if (status == FSI_OK && n <= 2 * plan->samples) {
        for (e = 0; e < n; e++) region[e] = e;
        b->evaluated = n;
    } else if (status == FSI_OK)
        status = fsi__el_choose_regions(b, fn, plan->material_count, plan->samples, region, &b->evaluated);
    if (status == FSI_OK) status = fsi__el_body_reserve(b, fn);
    if (status == FSI_OK) status = fsi__el_rows_begin(&b->gradient, b->context, fn, 12);
    if (status == FSI_OK) status = fsi__el_make_regions(b, fn, plan, region);
    if (status == FSI_OK) status = fsi__el_make_mass(b, fn, plan, vertex_mass);
    fsi__free(b->context, vertex_mass, (size_t)b->shape.vertex_count, sizeof(double));
    fsi__free(b->context, region, (size_t)n, sizeof(int));
    return status;
}

/* M one, and the mass one^T M one. */
static void fsi__el_sum_mass(fsi__el_body *b)
{
    int i;
    memset(b->aim, 0, 3 * (size_t)b->dofs * sizeof(double));
    for (i = 0; i < b->dofs; i++) b->aim[3 * i] = b->one[i];
    fsi__el_mass_times(b, b->aim, b->right);
    for (i = 0, b->mass = 0; i < b->dofs; i++) {
        b->m_one[i] = b->right[3 * i];
        b->mass += b->one[i] * b->m_one[i];
    }
}

FSI_API fsi_status fsi__el_body_make(fsi__el_body *b, const char *fn, const fsi__el_plan *plan)
{
    b->dim = b->shape.dim;
    b->mixer.depth = plan->depth;
    FSI__TRY(fsi__el_rows_begin(&b->anchor, b->context, fn, 1));
    FSI__TRY(plan->handles > 0 ? fsi__el_make_reduced(b, fn, plan) : fsi__el_make_full(b, fn, plan));
    b->damping /= b->mass;
    b->young /= b->mass;
    fsi__el_rest(b);
    memcpy(b->rest, b->q, 3 * (size_t)b->dofs * sizeof(double));

    fsi__el_sum_mass(b);
    memcpy(b->own_mass, b->reduced ? b->massive : b->vertex_mass,
        (size_t)b->dofs * (b->reduced ? (size_t)b->dofs : 1) * sizeof(double));
    memcpy(b->next, b->q, 3 * (size_t)b->dofs * sizeof(double));
    return FSI_OK;
}

FSI_API void fsi__el_body_weigh(fsi__el_body *b, const fsi__el_rows *points, const double *mass, double least)
{
    const size_t d = (size_t)b->dofs;
    size_t i;
    int p, k, l;

    /* M; of a full body lumped. */
    for (i = 0; i < d * d && b->reduced; i++) b->massive[i] = least * b->own_mass[i];
    for (i = 0; i < d && !b->reduced; i++) b->vertex_mass[i] = least * b->own_mass[i];
    for (p = 0; points && p < points->count; p++)
        for (k = points->start[p]; k < points->start[p + 1]; k++) {
            const double m = mass[p] * points->value[k];
            if (!b->reduced) b->vertex_mass[points->dof[k]] += m;
            else for (l = points->start[p]; l < points->start[p + 1]; l++)
                b->massive[(size_t)points->dof[k] * d + (size_t)points->dof[l]] += m * points->value[l];
        }

    /* What follows from it; A is to be factorised again. */
    for (i = 0; i < d && b->reduced && points; i++) b->massive[i * d + i] *= 1 + FSI__EL_DEFINITE;
    for (i = 0; i < d; i++)
        b->root_weight[3 * i] = b->root_weight[3 * i + 1] = b->root_weight[3 * i + 2] =
            sqrt(b->reduced ? b->massive[i * d + i] : b->vertex_mass[i]);
    fsi__el_sum_mass(b);
    b->factored_for = 0;
}

FSI_API void fsi__el_body_free(fsi__el_body *b)
{
    fsi__el_rows_free(&b->gradient, b->context);
    fsi__el_rows_free(&b->anchor, b->context);
    fsi__el_weights_free(&b->handles, b->context);
    fsi__el_shape_free(&b->shape, b->context);
    fsi_assembly_destroy(b->elastic);
    fsi_ldlt_destroy(b->ldlt);
    fsi__free(b->context, b->spring, (size_t)b->spring_room, sizeof *b->spring);
    fsi__arena_free(b->context, &b->memory);
    memset(b, 0, sizeof *b);
}

FSI_API fsi_status fsi__el_body_row(fsi__el_body *b, fsi__el_rows *rows, const char *fn, fsi__d3 rest)
{
    double bary[4];
    const int e = fsi__el_locate(&b->shape, rest, bary);
    return fsi__el_rows_point(rows, b->context, fn, &b->shape, b->reduced ? &b->handles : NULL, e, bary);
}

FSI__COLD_END
FSI__STRICT_END
#endif /* FSI_ELASTIC_BODY_IMPLEMENTATION_DONE */
#endif /* FSI_ELASTIC_BODY_IMPLEMENTATION */
