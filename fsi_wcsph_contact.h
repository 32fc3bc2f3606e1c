/* fsi_wcsph_contact.h - impulses between particles and a rigid body by direct forcing: all contacts at once, or singly.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_wcsph.h includes this file. Its front page says how a liquid pushes bodies. The same solvers for
      contacts of your own:

      fsi_wcsph_contact c[2] = { ... };             // arm, normal, predicted velocity ... of each particle
      double impulse[6], dv[6];
      if (fsi_wcsph_solve_contacts(c, 2, body.mass, inertia, FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_GLOBAL, 4,
                                   impulse, dv, NULL) == FSI_OK) ...;

   WHAT IS IN HERE (search for >>)
      >>contacts, the API;  >>stages  for fsi's own headers, not for you;  then >>impulse of one contact
      >>all contacts of a body  >>one contact after the other
   MACROS: those of fsi.h.
   UNITS: SI.
   PRECISION: double.
*/
#ifndef FSI_WCSPH_CONTACT_H
#define FSI_WCSPH_CONTACT_H

#include "fsi.h"

/* ---- >>contacts ------------------------------------------------------------------------------------------------- */

/* How impulses between liquid and COUPLED bodies are found (direct_forcing.md 5, 6). */
typedef enum fsi_wcsph_solver {
    FSI_WCSPH_AUTO,        /* GLOBAL; PGS where a particle touches several bodies or bodies touch each other */
    FSI_WCSPH_GLOBAL,      /* a 6 x 6 system a body, all its contacts at once. A particle between several bodies is
                              given to that which it would enter fastest; from others only its place is kept apart */
    FSI_WCSPH_LOCAL,       /* each contact by itself (the paper's local approach): overshoots once sum m_i > M */
    FSI_WCSPH_LOCAL_SPLIT, /* the same with the body's mass shared out among its contacts: never overshoots */
    FSI_WCSPH_PGS          /* projected Gauss-Seidel over all contacts */
} fsi_wcsph_solver;

/* CONSISTENT: no tangential impulse at slip 1 (direct_forcing.md 5.1). PAPER: the tangential velocity depends on the
   predicted one. */
typedef enum fsi_wcsph_slip { FSI_WCSPH_SLIP_CONSISTENT, FSI_WCSPH_SLIP_PAPER } fsi_wcsph_slip;

/* The contact systems by themselves (direct_forcing.md 4, 5), for one body; arms from its centre, world axes. */
typedef struct fsi_wcsph_contact {
    fsi_vec3 arm;            /* r = x_cp - x_c [m] */
    fsi_vec3 normal;         /* n, unit, from the body to the liquid */
    fsi_vec3 predicted;      /* u*, relative velocity before contact [m/s]; give no contacts with u*.n > 0 */
    fsi_real rebound;        /* e_n' >= 0: what u.n is to be [m/s] */
    fsi_real slip;           /* e_t */
    fsi_real mass;           /* m_i [kg] */
} fsi_wcsph_contact;
/* The system matrix (row major 6 x 6) and right side of contacts that stick, scaled by dt: A (dv, dw) = b, dv = dt a,
   dw = dt al. mass 0 with inertia 0: a body that does not move. */
FSI_API void fsi_wcsph_contact_system(const fsi_wcsph_contact *contacts, int count, fsi_real mass, fsi_mat3 inertia,
                                      fsi_wcsph_slip mode, double a[36], double b[6]);
/* Solves: impulse[i] = dt F_i given to particle i [N s] (arrays of doubles, 3 a contact), dv[0..2], dv[3..5] the
   changes of the body's velocity and angular velocity. solver: GLOBAL (active set of `passes` solves; *used of them
   were needed, NULL ok), LOCAL, LOCAL_SPLIT or PGS (`passes` sweeps): the solvers of a step. Errors, nothing written
   but *used: ARGUMENT, SINGULAR, MEMORY (malloc). */
FSI_API fsi_status fsi_wcsph_solve_contacts(const fsi_wcsph_contact *contacts, int count, fsi_real mass,
                                            fsi_mat3 inertia, fsi_wcsph_slip mode, fsi_wcsph_solver solver, int passes,
                                            double *impulse, double dv[6], int *used);

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* A particle that touches a surface. */
typedef struct fsi__wc_contact {
    int rank, slot;          /* slot: of its particle among the particles of the world's rows */
    int obstacle, body;      /* body -1: nothing that the liquid can move; obstacle -1: the domain */
    int active;              /* 0: separating, or released; 1: its normal part holds; 2: separating, friction only */
    fsi__d3 n, point, arm;   /* normal, x_cp, x_cp from the centre of the body (static: not used) */
    fsi__d3 u;               /* predicted relative velocity u* */
    fsi__d3 wall;            /* velocity of the surface there, predicted */
    double m, rebound, slip; /* m: of the particle */
    int apart;               /* 1: not in contact, but near enough to feel the surface's share in the density */
    double share, slope;     /* phi, that share over rho0; dphi/dd [1/m] */
    double press;            /* the normal impulse that pressure gives by it [N s] */
    double before;           /* u.n at the start of the substep [m/s] */
    fsi__d3 j;               /* impulse given to the particle [N s] */
} fsi__wc_contact;

/* Impulse on the particle when the body's velocity at x_cp changes by dv; *along: its normal part. paper: slip mode
   PAPER. */
FSI_API fsi__d3 fsi__wc_impulse(const fsi__wc_contact *c, fsi__d3 dv, int paper, double *along);
/* GLOBAL: solves, releases contacts that pull, solves again, at most `passes` times; contact[index[k]].j take the
   impulses, k below count. Returns the number of solves; 0: the system is singular. *released grows. */
FSI_API int fsi__wc_global(fsi__wc_contact *contact, const int *index, int count, double mass, const fsi_mat3 *inertia,
                           int paper, int passes, int *released);
/* One contact singly, with the body's mobility times k; returns its impulse. */
FSI_API fsi__d3 fsi__wc_local(const fsi__wc_contact *c, double inverse_mass, const fsi_mat3 *inverse, double k,
                              int paper, double *along);
/* Projected Gauss-Seidel: the change of one contact's impulse, u its present relative velocity. */
FSI_API fsi__d3 fsi__wc_relax(const fsi__wc_contact *c, double inverse_mass, const fsi_mat3 *inverse, fsi__d3 u);
FSI_API fsi__d3 fsi__wc_mul_inverse(const fsi_mat3 *inverse, fsi__d3 h); /* I^-1 h, in double */

#endif /* FSI_WCSPH_CONTACT_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_WCSPH_CONTACT_IMPLEMENTATION
#define FSI_WCSPH_CONTACT_IMPLEMENTATION
#endif
#ifdef FSI_WCSPH_CONTACT_IMPLEMENTATION
#ifndef FSI_WCSPH_CONTACT_IMPLEMENTATION_DONE
#define FSI_WCSPH_CONTACT_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi.h"

FSI__STRICT_BEGIN

/* ---- >>impulse of one contact ----------------------------------------------------------------------------------- */

/* Impulse on the particle when the body's velocity changes by dv at x_cp (direct_forcing.md 5, 5.1):
      j = m (b + C dv),  b = e_t u*_t + e_n' n - u*,   C = n n^T + (1 - e_t)(E - n n^T)  (CONSISTENT),  E  (PAPER)
   `active` 2 (separating, desc.paper_separation): the tangential part only. e_t = 1: along n, to the last bit. */
FSI_API fsi__d3 fsi__wc_impulse(const fsi__wc_contact *c, fsi__d3 dv, int paper, double *along)
{
    const double un = fsi__d3_dot(c->u, c->n), vn = fsi__d3_dot(dv, c->n), left = paper ? vn : 0;
    const double normal = c->active == 1 ? c->rebound - un + vn : left;
    const double grip = 1 - c->slip;
    fsi__d3 t = fsi__d3_scale(fsi__d3_madd(c->u, -un, c->n), -grip);
    t = fsi__d3_madd(t, paper ? 1 : grip, fsi__d3_madd(dv, -vn, c->n));
    *along = c->m * normal;
    return fsi__d3_scale(fsi__d3_madd(t, normal, c->n), c->m);
}

FSI_API fsi__d3 fsi__wc_mul_inverse(const fsi_mat3 *inverse, fsi__d3 h)
{
    double w[3];
    int k;
    for (k = 0; k < 3; k++)
        w[k] =
            (double)inverse->m[3 * k] * h.x + (double)inverse->m[3 * k + 1] * h.y + (double)inverse->m[3 * k + 2] * h.z;
    return fsi__d3_at(w);
}

/* One contact by itself: (E/m + C K) j = b with the body's mobility K = k (E/M + R^T I^-1 R), k contacts share M. */
FSI_API fsi__d3 fsi__wc_local(const fsi__wc_contact *c, double inverse_mass, const fsi_mat3 *inverse, double k,
                             int paper, double *along)
{
    const double m = c->m;
    const fsi__d3 zero = fsi__d3_make(0, 0, 0), b = fsi__d3_scale(fsi__wc_impulse(c, zero, paper, along), 1 / m);
    fsi__d3 column[3], j, d[3];
    double det;
    int l;

    /* Free slip: j = |j| n, one equation along n. */
    if (!paper && !(c->slip < 1)) {
        const fsi__d3 turn = fsi__d3_of(fsi_m3_mul_v3(*inverse, fsi__d3_real(fsi__d3_cross(c->arm, c->n))));
        const double mobility = k * (inverse_mass + fsi__d3_dot(c->n, fsi__d3_cross(turn, c->arm)));
        *along = *along / m / (1 / m + mobility);
        return fsi__d3_scale(c->n, *along);
    }

    /* Columns of E/m + C K. */
    for (l = 0; l < 3; l++) {
        const fsi__d3 e = fsi__d3_make(l == 0, l == 1, l == 2);
        const fsi__d3 turn = fsi__d3_of(fsi_m3_mul_v3(*inverse, fsi__d3_real(fsi__d3_cross(c->arm, e))));
        const fsi__d3 v = fsi__d3_scale(fsi__d3_madd(fsi__d3_cross(turn, c->arm), inverse_mass, e), k);
        const double vn = fsi__d3_dot(v, c->n), full = c->active == 1 || paper ? 1 : 0, grip = paper ? 1 : 1 - c->slip;
        const fsi__d3 Cv = fsi__d3_madd(fsi__d3_scale(v, grip), (full - grip) * vn, c->n);
        column[l] = fsi__d3_madd(Cv, 1 / m, e);
    }

    /* Cramer's rule. */
    for (l = 0; l < 3; l++) d[l] = fsi__d3_cross(column[(l + 1) % 3], column[(l + 2) % 3]);
    det = fsi__d3_dot(column[0], d[0]);
    j = fsi__d3_make(fsi__d3_dot(d[0], b) / det, fsi__d3_dot(d[1], b) / det, fsi__d3_dot(d[2], b) / det);
    *along = fsi__d3_dot(j, c->n);
    return j;
}

/* ---- >>all contacts of a body ----------------------------------------------------------------------------------- */

static void fsi__wc_begin_system(double mass, const fsi_mat3 *inertia, double A[6][6], double b[6])
{
    int k, l;
    memset(A, 0, 36 * sizeof(double));
    memset(b, 0, 6 * sizeof(double));
    for (k = 0; k < 3; k++) {
        A[k][k] = mass;
        for (l = k; l < 3; l++) A[3 + k][3 + l] = 0.5 * ((double)inertia->m[3 * k + l] + (double)inertia->m[3 * l + k]);
    }
}

/* Adds m J^T C J to the 6 x 6 system (upper half) and -m J^T b to its right side, J = [E, R^T]. */
static void fsi__wc_add_contact(const fsi__wc_contact *c, int paper, double A[6][6], double b[6])
{
    const fsi__d3 r = c->arm, rn = fsi__d3_cross(r, c->n);
    const double q[6] = { c->n.x, c->n.y, c->n.z, rn.x, rn.y, rn.z }, rr = fsi__d3_dot(r, r);
    const double all = c->m * (paper ? 1 : 1 - c->slip), share = c->active == 1 ? c->slip : c->slip - 1;
    const double along = c->m * (paper ? 0 : share);
    const double R[3] = { r.x, r.y, r.z };
    double along_unused;
    fsi__d3 j = fsi__wc_impulse(c, fsi__d3_make(0, 0, 0), paper, &along_unused), rj = fsi__d3_cross(r, j);
    int k, l;
    for (k = 0; k < 6; k++) for (l = k; l < 6; l++) A[k][l] += along * q[k] * q[l];
    for (k = 0; k < 3; k++) {
        A[k][k] += all;
        for (l = k; l < 3; l++) A[3 + k][3 + l] += all * ((k == l ? rr : 0) - R[k] * R[l]);
    }
    A[0][4] += all * r.z; A[0][5] -= all * r.y; /* R^T: al x r */
    A[1][3] -= all * r.z; A[1][5] += all * r.x;
    A[2][3] += all * r.y; A[2][4] -= all * r.x;
    b[0] -= j.x; b[1] -= j.y; b[2] -= j.z;
    b[3] -= rj.x; b[4] -= rj.y; b[5] -= rj.z;
}

/* A x = b by Cholesky, A = U^T U, upper half given. 0: not positive definite. */
static int fsi__wc_solve6(double A[6][6], const double *b, double *x)
{
    int i, j, k;
    for (i = 0; i < 6; i++) for (j = i; j < 6; j++) {
        double sum = A[i][j];
        for (k = 0; k < i; k++) sum -= A[k][i] * A[k][j];
        if (i == j && !(sum > 0)) return 0;
        A[i][j] = i == j ? sqrt(sum) : sum / A[i][i];
    }
    for (i = 0; i < 6; i++) { /* U^T y = b */
        double sum = b[i];
        for (k = 0; k < i; k++) sum -= A[k][i] * x[k];
        x[i] = sum / A[i][i];
    }
    for (i = 5; i >= 0; i--) { /* U x = y */
        double sum = x[i];
        for (k = i + 1; k < 6; k++) sum -= A[i][k] * x[k];
        x[i] = sum / A[i][i];
    }
    return 1;
}

FSI_API int fsi__wc_global(fsi__wc_contact *contact, const int *index, int count, double mass, const fsi_mat3 *inertia,
                          int paper, int passes, int *released)
{
    double A[6][6], b[6], x[6], along, top;
    int k, pass, dropped = 1;
    for (pass = 0; pass < passes && dropped; pass++) {
        /* A (dv, dw) = b of the active contacts. */
        fsi__wc_begin_system(mass, inertia, A, b);
        for (k = 0; k < count; k++) if (contact[index[k]].active) fsi__wc_add_contact(&contact[index[k]], paper, A, b);
        if (!fsi__wc_solve6(A, b, x)) return 0;

        /* Their impulses, and the largest. */
        for (k = 0, top = 0; k < count; k++) {
            fsi__wc_contact *c = &contact[index[k]];
            c->j = fsi__d3_make(0, 0, 0);
            if (!c->active) continue;
            c->j =
                fsi__wc_impulse(c, fsi__d3_add(fsi__d3_at(x), fsi__d3_cross(fsi__d3_at(x + 3), c->arm)), paper, &along);
            top = fmax(top, fsi__d3_dot(c->j, c->j));
        }

        /* Contacts that pull are released, and the rest solved again. */
        for (k = dropped = 0; k < count && pass + 1 < passes; k++) {
            fsi__wc_contact *c = &contact[index[k]];
            if (c->active != 1 || !(fsi__d3_dot(c->j, c->n) < -1e-9 * sqrt(top))) continue;
            c->active = 0;
            dropped++;
        }
        *released += dropped;
    }
    return pass;
}

static fsi__wc_contact fsi__wc_contact_of(const fsi_wcsph_contact *from)
{
    fsi__wc_contact c;
    memset(&c, 0, sizeof c);
    c.active = 1;
    c.n = fsi__d3_of(from->normal);
    c.arm = fsi__d3_of(from->arm);
    c.u = fsi__d3_of(from->predicted);
    c.rebound = (double)from->rebound;
    c.slip = (double)from->slip;
    c.m = (double)from->mass;
    return c;
}

FSI_API void fsi_wcsph_contact_system(const fsi_wcsph_contact *contacts, int count, fsi_real mass, fsi_mat3 inertia,
                                      fsi_wcsph_slip mode, double a[36], double b[6])
{
    double A[6][6];
    int k, l;
    if (!a || !b || (count > 0 && !contacts)) return;
    fsi__wc_begin_system((double)mass, &inertia, A, b);
    for (k = 0; k < count; k++) {
        const fsi__wc_contact c = fsi__wc_contact_of(&contacts[k]);
        fsi__wc_add_contact(&c, mode == FSI_WCSPH_SLIP_PAPER, A, b);
    }
    for (k = 0; k < 6; k++) for (l = 0; l < 6; l++) a[6 * k + l] = k <= l ? A[k][l] : A[l][k];
}

/* ---- >>one contact after the other ------------------------------------------------------------------------------ */

/* Projected Gauss-Seidel (direct_forcing.md 6). The accumulated normal impulse stays >= 0, the tangential one at most
   as large as the normal one. */
FSI_API fsi__d3 fsi__wc_relax(const fsi__wc_contact *c, double inverse_mass, const fsi_mat3 *inverse, fsi__d3 u)
{
    const fsi__d3 turn = fsi__d3_of(fsi_m3_mul_v3(*inverse, fsi__d3_real(fsi__d3_cross(c->arm, c->n))));
    const double base = 1 / c->m + inverse_mass, kn = base + fsi__d3_dot(c->n, fsi__d3_cross(turn, c->arm));
    const double trace = (double)inverse->m[0] + (double)inverse->m[4] + (double)inverse->m[8],
                 jn = fsi__d3_dot(c->j, c->n), un = fsi__d3_dot(u, c->n);
    const double fresh = c->active == 1 ? fmax(0, jn + (c->rebound - un) / kn) : jn, star = fsi__d3_dot(c->u, c->n);
    const fsi__d3 step = fsi__d3_scale(c->n, fresh - jn), jt = fsi__d3_madd(c->j, -jn, c->n);
    fsi__d3 t;
    double size;
    if (!(c->slip < 1)) return step; /* no tangential part, to the last bit */
    t = fsi__d3_scale(fsi__d3_madd(c->u, -star, c->n), c->slip);
    t = fsi__d3_sub(t, fsi__d3_madd(u, -un, c->n));
    t = fsi__d3_madd(jt, 1 / (base + fsi__d3_dot(c->arm, c->arm) * trace), t);
    size = fsi__d3_norm(t);
    if (size > fresh) t = fsi__d3_scale(t, size > 0 ? fresh / size : 0);
    return fsi__d3_add(step, fsi__d3_sub(t, jt));
}

/* PGS of one body, sweeps in alternate directions; dv, dw: the change of its velocities so far. */
static void fsi__wc_solve_pgs(fsi__wc_contact *contact, int count, double inverse_mass, const fsi_mat3 *inverse,
                              int sweeps)
{
    fsi__d3 dv = fsi__d3_make(0, 0, 0), dw = dv;
    int k, sweep;
    for (sweep = 0; sweep < sweeps; sweep++) for (k = 0; k < count; k++) {
        fsi__wc_contact *c = &contact[sweep & 1 ? count - 1 - k : k];
        const fsi__d3 u = fsi__d3_sub(fsi__d3_madd(c->u, 1 / c->m, c->j), fsi__d3_add(dv, fsi__d3_cross(dw, c->arm)));
        const fsi__d3 step = fsi__wc_relax(c, inverse_mass, inverse, u);
        c->j = fsi__d3_add(c->j, step);
        dv = fsi__d3_madd(dv, -inverse_mass, step);
        dw = fsi__d3_sub(dw, fsi__wc_mul_inverse(inverse, fsi__d3_cross(c->arm, step)));
    }
}

FSI_API fsi_status fsi_wcsph_solve_contacts(const fsi_wcsph_contact *contacts, int count, fsi_real mass,
                                            fsi_mat3 inertia, fsi_wcsph_slip mode, fsi_wcsph_solver solver, int passes,
                                            double *impulse, double dv[6], int *used)
{
    const int paper = mode == FSI_WCSPH_SLIP_PAPER, fixed = !(mass > 0),
              global = !fixed && (solver == FSI_WCSPH_GLOBAL || solver == FSI_WCSPH_AUTO);
    const double inverse_mass = fixed ? 0 : 1 / (double)mass, share = solver == FSI_WCSPH_LOCAL_SPLIT ? count : 1;
    fsi_mat3 inverse = fsi_m3_inverse(inertia);
    fsi__wc_contact *contact;
    fsi__d3 j = fsi__d3_make(0, 0, 0), h = j;
    double along;
    int *index, k, released = 0, took = solver == FSI_WCSPH_PGS ? passes : 1;

    /* Arguments. A body of infinite mass: inverse mass and inertia are 0. */
    if (used) *used = 0;
    if (count < 0 || (count > 0 && (!contacts || !impulse)) || !dv || passes < 1 || mass < 0 || (int)solver < 0 ||
        solver > FSI_WCSPH_PGS)
        return FSI_ERROR_ARGUMENT;
    if (fixed) memset(&inverse, 0, sizeof inverse);

    /* Contacts in the solvers' form; those that are solved singly have their impulses here. */
    contact = (fsi__wc_contact *)fsi__alloc(NULL, (size_t)count, sizeof *contact);
    index = (int *)fsi__alloc(NULL, (size_t)count, sizeof *index);
    for (k = 0; k < count && contact && index; k++) {
        contact[k] = fsi__wc_contact_of(&contacts[k]);
        index[k] = k;
        if (!global && solver != FSI_WCSPH_PGS)
            contact[k].j = fsi__wc_local(&contact[k], inverse_mass, &inverse, share, paper, &along);
    }

    /* The others. */
    if (!contact || !index) took = -1;
    else if (solver == FSI_WCSPH_PGS) fsi__wc_solve_pgs(contact, count, inverse_mass, &inverse, passes);
    else if (global) took = fsi__wc_global(contact, index, count, (double)mass, &inertia, paper, passes, &released);

    /* Impulses, and M dv = -sum j, I dw = -sum r x j. */
    for (k = 0; k < count && took > 0; k++) {
        fsi__d3_put(impulse + 3 * k, contact[k].j);
        j = fsi__d3_sub(j, contact[k].j);
        h = fsi__d3_sub(h, fsi__d3_cross(contact[k].arm, contact[k].j));
    }
    fsi__free(NULL, contact, (size_t)count, sizeof *contact);
    fsi__free(NULL, index, (size_t)count, sizeof *index);
    if (took < 1) return took < 0 ? FSI_ERROR_MEMORY : FSI_ERROR_SINGULAR;
    fsi__d3_put(dv, fsi__d3_scale(j, inverse_mass));
    fsi__d3_put(dv + 3, fsi__wc_mul_inverse(&inverse, h));
    if (used) *used = took;
    return FSI_OK;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
