/* fsi_flip_immersed.h - elastic bodies as particles of a liquid: velocities to it, impulses back.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_flip.h includes this file.

   WHAT IT DOES
      Each body of an fsi_elastic is filled with a lattice of particles, x = u q. They take part in what the liquid's
      particles give to the grid; what the grid does to them goes back to the unknowns q of the body, in its own
      mass matrix: the twin subspaces of Brandt et al. 2019, whose equations docs/flip.md restates.
   WHAT IS IN HERE (search for >>), all of it for fsi's own headers
      >>stages  then the implementation: >>filling  >>velocities  >>impulses
   MACROS: those of fsi.h.
   UNITS: SI; masses, volumes and densities of particles over those of a whole particle of liquid.
   PRECISION: unknowns and sums in double.
*/
#ifndef FSI_FLIP_IMMERSED_H
#define FSI_FLIP_IMMERSED_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_elastic.h"

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* A body of the elastic simulator, the k-th. */
typedef struct fsi__im_body {
    int id, first, count;      /* of the body; its particles */
    fsi__el_rows rows;         /* of its particles */
    fsi__el_packed packed;     /* the same, for sums over all of them */
    double *factor;            /* of a reduced body: Cholesky factor of M; NULL: M is diagonal */
    double *given;             /* 3 * dofs: impulses of the liquid [N s] */
    double *loose;             /* 3 * dofs: velocity that the expected force gave */
    double *work;              /* 4 * dofs */
    double *part;              /* 4 * dofs for each chunk of its particles */
    double *past;              /* of fsi__im_agree: 3 * dofs numbers each */
    double yielding;           /* as the grid gets it in this round */
    double impulse[3], moment[3]; /* by the liquid, so far in the step; moment about the origin [N s, N m s] */
    fsi_vec3 force, torque;    /* means over the last step */
    const fsi_mesh *surface;
    fsi__d3 center, drift, spin; /* the rigid motion closest to that of its particles in the substep [m, m/s, rad/s] */
    double spread;             /* the largest difference from it [m/s] */
    size_t room;               /* doubles in the block that begins with `given` */
} fsi__im_body;

/* Particles in the order of the bodies. */
typedef struct fsi__immersed {
    fsi_context *context;
    fsi_elastic *elastic;      /* NULL: there are none */
    fsi__im_body *body;
    int bodies, count;         /* particles of all */
    float *volume, *density;   /* count */
    float *heft;               /* count: density as the grid feels it */
    double *mass;              /* count [kg] */
    double body_volume;        /* of all bodies at rest [m^dim] */
    int wall[6];               /* ids of the shapes that are the walls of the box, -1: none */
    int slot, stored;          /* of agreement: where the next round is stored, how many are */
    int since, failed;         /* rounds with these masses; that were worse */
    int weighed_anew;          /* 1: `heft` has changed since its user cleared this */
    double best;               /* of agreement: the least square of e */
    double rest;               /* of agreement: |e| over |f| at its end */
} fsi__immersed;

/* Fills the bodies of a simulator. spacing: of particles [m]; density: of the liquid. On an error *s is empty. Errors:
   ARGUMENT (no surface, a body lighter than a twentieth of the liquid), MESH (a body, or a part of it, without a
   particle), MEMORY. */
FSI_API fsi_status fsi__im_make(fsi__immersed *s, fsi_context *context, const char *fn, fsi_elastic *elastic,
    double spacing, double density);
/* From now on the mass matrices of the bodies are those of their particles; restore: those of their elements again. */
FSI_API void fsi__im_adopt(fsi__immersed *s);
FSI_API void fsi__im_restore(const fsi__immersed *s);
FSI_API void fsi__im_free(fsi__immersed *s); /* leaves it empty */
/* Planes of the elastic simulator at the closed sides of a box. remove: they are taken out again. Errors: MEMORY; then
   there are none. */
FSI_API fsi_status fsi__im_add_walls(fsi__immersed *s, fsi_box3 box, const unsigned char *open_side);
FSI_API void fsi__im_remove_walls(fsi__immersed *s);
/* A failure of the elastic simulator, told as one of the liquid's context too; returns status. */
FSI_API fsi_status fsi__im_told(const fsi__immersed *s, fsi_status status);
/* The bodies must be those that were filled. Errors: COOKIE, ARGUMENT. */
FSI_API fsi_status fsi__im_check(const fsi__immersed *s, const char *fn);
/* The liquid's expected forces act on the bodies, or not. */
FSI_API void fsi__im_support(const fsi__immersed *s, int on);
FSI_API void fsi__im_begin(fsi__immersed *s); /* of a step: impulses 0 */
FSI_API void fsi__im_end(fsi__immersed *s, double dt); /* reactions of the step */
/* Positions of all particles. */
FSI_API void fsi__im_places(const fsi__immersed *s, fsi_vec3 *x);
/* The surface of a body becomes that of where it is. Errors: those of fsi_mesh_set. */
FSI_API fsi_status fsi__im_follow(fsi__immersed *s, int body);
/* After the elastic substep: velocities of all particles as the grid gets them, with the part of the expected forces
   taken off that the bodies give way to. */
FSI_API void fsi__im_offer(fsi__immersed *s, fsi_vec3 *v);
/* After agreement: the bodies move without the liquid's forces. */
FSI_API void fsi__im_loosen(const fsi__immersed *s);
/* The grid gets the bodies as much heavier as they were found to be held; all: as heavy as they are. */
FSI_API int fsi__im_weigh_anew(fsi__immersed *s, int all); /* 1: masses changed */
/* push: velocity that the liquid would give to each particle by itself: impulse over mass. Are these the forces that
   were expected? If not, and round < FSI__IM_ROUNDS, better ones are expected now, and 0 is returned; round: 0 in the
   first of a substep. gravity [m/s^2]: forces far below it count less. */
FSI_API int fsi__im_agree(fsi__immersed *s, const fsi_vec3 *push, int round, double gravity);
/* push: as above; also: further changes of velocity. q, v and the expected forces of the bodies follow. Errors: LIMIT
   (a body farther than 1e12 m or faster than 1e12 m/s). */
FSI_API fsi_status fsi__im_take(fsi__immersed *s, const char *fn, const fsi_vec3 *push, const fsi_vec3 *also);
/* Velocity at x of the rigid motion closest to that of the body. */
FSI_FN fsi__d3 fsi__im_drift_at(const fsi__im_body *o, fsi_vec3 x)
{
    return fsi__d3_add(o->drift, fsi__d3_cross(o->spin, fsi__d3_sub(fsi__d3_of(x), o->center)));
}
/* Velocities of all particles, as the bodies have them now. */
FSI_API void fsi__im_velocities(const fsi__immersed *s, fsi_vec3 *v);
/* 1: the body is held, 0: it is free, as it yields less than a quarter or more than a half. */
FSI__HOST_FN double fsi__im_held(const fsi__im_body *o) { return fmin(fmax(2 - 4 * o->yielding, 0), 1); }

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_FLIP_IMMERSED_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_FLIP_IMMERSED_IMPLEMENTATION
#define FSI_FLIP_IMMERSED_IMPLEMENTATION
#endif
#ifdef FSI_FLIP_IMMERSED_IMPLEMENTATION
#ifndef FSI_FLIP_IMMERSED_IMPLEMENTATION_DONE
#define FSI_FLIP_IMMERSED_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_elastic.h"

FSI__STRICT_BEGIN

#define FSI__IM_GRAIN 2048     /* particles a chunk: whole blocks of rows */
#define FSI__IM_LEAST 1e-6     /* part of the elements' mass matrix in that of a body: particles may miss a handle */
#define FSI__IM_THIN 1e-2      /* an unknown with less than this part of its mass in particles has none nearby */
#define FSI__IM_FARTHEST 1e12  /* [m, m/s] */
#define FSI__IM_LIGHTEST 0.05f /* density of a particle over that of the liquid: lighter ones would shake */
#define FSI__IM_PAST 4         /* rounds remembered */
#define FSI__IM_PUSH 0.3       /* least part of a change of force that pushes the whole body, to tell how it yields */
#define FSI__IM_ROUNDS 8       /* repetitions at most */
#define FSI__IM_AGREED 0.02    /* part of the force that may be unexpected */
#define FSI__IM_TREND 0.1      /* part of what was left over that is expected in the next substep */

/* ---- >>velocities ------------------------------------------------------------------------------------------------ */

static fsi__el_body *fsi__im_inner(const fsi__immersed *s, int k) { return fsi__el_inner(s->elastic, k); }

typedef struct fsi__im_job {
    const fsi__immersed *s;
    fsi__im_body *body;
    const fsi_vec3 *in;
    fsi_vec3 *out;
} fsi__im_job;

/* out = u q, particles of one body. */
static void fsi__im_spread_range(void *arg, int chunk, int begin, int end)
{
    const fsi__im_job *job = (const fsi__im_job *)arg;
    double x[4 * FSI__EL_BLOCK];
    int p, l;
    (void)chunk;
    for (p = begin; p < end; p += FSI__EL_BLOCK) {
        fsi__el_packed_points(&job->body->packed, &job->body->rows, p / FSI__EL_BLOCK, x);
        for (l = 0; l < FSI__EL_BLOCK && p + l < end; l++) job->out[p + l] = fsi__d3_real(fsi__d3_at(x + 4 * l));
    }
}

static void fsi__im_spread(const fsi__immersed *s, int k, const double *q, fsi_vec3 *out)
{
    fsi__im_job job;
    memset(&job, 0, sizeof job);
    job.body = &s->body[k];
    job.out = out + job.body->first;
    fsi__el_packed_load(&job.body->packed, q);
    fsi__parallel_work(s->context, job.body->count, FSI__IM_GRAIN, 2.0 * job.body->rows.start[job.body->count],
        fsi__im_spread_range, &job);
}

FSI_API void fsi__im_places(const fsi__immersed *s, fsi_vec3 *x)
{
    int k;
    for (k = 0; k < s->bodies; k++) fsi__im_spread(s, k, fsi__im_inner(s, k)->q, x);
}

FSI_API void fsi__im_velocities(const fsi__immersed *s, fsi_vec3 *v)
{
    int k;
    for (k = 0; k < s->bodies; k++) fsi__im_spread(s, k, fsi__im_inner(s, k)->v, v);
}

/* y = M^-1 x; 3 * dofs, also in place. */
static void fsi__im_solve(fsi__im_body *o, const fsi__el_body *b, const double *x, double *y)
{
    const int d = b->dofs;
    int i, c;
    if (!o->factor) {
        for (i = 0; i < d; i++) for (c = 0; c < 3; c++) y[3 * i + c] = x[3 * i + c] / b->vertex_mass[i];
        return;
    }
    for (c = 0; c < b->dim; c++) {
        for (i = 0; i < d; i++) o->work[i] = x[3 * i + c];
        if (fsi_dense_cholesky_solve(d, o->factor, o->work) != FSI_OK) memset(o->work, 0, (size_t)d * sizeof(double));
        for (i = 0; i < d; i++) y[3 * i + c] = o->work[i];
    }
    for (i = 0; i < d && b->dim == 2; i++) y[3 * i + 2] = 0;
}

FSI_API fsi_status fsi__im_follow(fsi__immersed *s, int k)
{
    s->body[k].surface = fsi_elastic_surface(s->elastic, s->body[k].id);
    return s->body[k].surface ? FSI_OK : fsi__im_told(s, s->elastic->context->error.status);
}

/* The elastic substep was made with the expected force s of the liquid, v = ... + h M^-1 s. The grid, which will give
   all of the liquid's force, gets v - a h M^-1 s with bodies of mass m/a. */
FSI_API void fsi__im_offer(fsi__immersed *s, fsi_vec3 *v)
{
    int k, i;
    for (k = 0; k < s->bodies; k++) {
        fsi__im_body *o = &s->body[k];
        fsi__el_body *b = fsi__im_inner(s, k);
        fsi__im_solve(o, b, b->support, o->loose);
        for (i = 0; i < 3 * b->dofs; i++) o->loose[i] *= b->h;
        for (i = 0; i < 3 * b->dofs; i++) o->given[i] = b->v[i] - o->yielding * o->loose[i];
        fsi__im_spread(s, k, o->given, v);
    }
}

FSI_API void fsi__im_loosen(const fsi__immersed *s)
{
    int k, i;
    for (k = 0; k < s->bodies; k++) {
        fsi__el_body *b = fsi__im_inner(s, k);
        for (i = 0; i < 3 * b->dofs; i++) b->v[i] -= s->body[k].loose[i];
    }
}

/* ---- >>impulses ---------------------------------------------------------------------------------------------------

   With the impulse h f = U^T m push of the pressure, the unknowns of a body that the grid got with the mass m/a get

      d = a h M^-1 (f - s) + M^-1 U^T m also,    qdot += d,    q += h d. */

/* u^T m gain of a chunk. */
static void fsi__im_gather_range(void *arg, int chunk, int begin, int end)
{
    const fsi__im_job *job = (const fsi__im_job *)arg;
    const fsi__el_packed *rows = &job->body->packed;
    const double *mass = job->s->mass + job->body->first;
    double *part = job->body->part + 4 * (size_t)rows->dofs * (size_t)chunk, f[4 * FSI__EL_BLOCK] = { 0 };
    int p, l;
    memset(part, 0, 4 * (size_t)rows->dofs * sizeof(double));
    for (p = begin; p < end; p += FSI__EL_BLOCK) {
        for (l = 0; l < FSI__EL_BLOCK && p + l < end; l++)
            fsi__d3_put(f + 4 * l, fsi__d3_scale(fsi__d3_of(job->in[p + l]), mass[p + l]));
        fsi__el_packed_push(rows, &job->body->rows, p / FSI__EL_BLOCK, f, part);
    }
}

/* given = g. */
static void fsi__im_gather(fsi__immersed *s, int k, const fsi_vec3 *gain)
{
    fsi__im_body *o = &s->body[k];
    const int n = fsi__im_inner(s, k)->dofs, chunks = fsi__chunks(o->count, FSI__IM_GRAIN);
    fsi__im_job job;
    int i, c;
    memset(&job, 0, sizeof job);
    job.s = s;
    job.body = o;
    job.in = gain + o->first;
    fsi__parallel_work(s->context, o->count, FSI__IM_GRAIN, 2.0 * o->rows.start[o->count], fsi__im_gather_range, &job);
    memset(o->given, 0, 3 * (size_t)n * sizeof(double));
    for (c = 0; c < chunks; c++) {
        const double *part = o->part + 4 * (size_t)n * (size_t)c;
        for (i = 0; i < n; i++)
            fsi__d3_put(o->given + 3 * i, fsi__d3_add(fsi__d3_at(o->given + 3 * i), fsi__d3_at(part + 4 * i)));
    }
}

/* ---- agreement

   The elastic step is made with the force s that is expected of the liquid, which then gives the force f(s): what gives
   way gets less, what is held or stiff has to bear all. f(s) = s has one solution, that of both at once. An error of s
   comes back in f times 0 (free) to 1 - r (held), r the mass of a body over that with the liquid that moves along. So

      s' = s + e - sum_j t_j (ds_j + de_j),    e = f - s,    t = argmin |e - sum_j t_j de_j| in the norm of M^-1

   with the differences ds, de between rounds (Anderson 1965). Besides, the grid gets bodies with the mass m/a, where a
   is how much of a force their motion shows: m (v' - v) over h (s' - s), summed over the body, in the first two rounds.
   Rounds agree in the end if a is not below half of what it is in truth. So it is 1 for a body that another one pushes,
   as the forces on that one move it too; and for all where a round makes it worse, from the best s without history. */

enum { FSI__IM_S, FSI__IM_E, FSI__IM_SPEED, FSI__IM_V, FSI__IM_LOOSE, FSI__IM_BEST, FSI__IM_STEP, FSI__IM_LASTS };

/* Vectors of 3 * dofs numbers: ds, de and M^-1 de of FSI__IM_PAST rounds; then of the last one s, e, M^-1 e, v and
   h M^-1 s; of the best one s and e. */
static double *fsi__im_past(const fsi__im_body *o, int n, int k) { return o->past + (size_t)n * (size_t)k; }
static double *fsi__im_last(const fsi__im_body *o, int n, int k) { return fsi__im_past(o, n, 3 * FSI__IM_PAST + k); }

/* How much of the force a body's motion shows: d is the change of the force, v and loose are those before it. */
static void fsi__im_find_yielding(const fsi__im_body *o, fsi__el_body *b, const double *d)
{
    const int n = 3 * b->dofs;
    const double *v = fsi__im_last(o, n, FSI__IM_V), *loose = fsi__im_last(o, n, FSI__IM_LOOSE);
    fsi__d3 shown = fsi__d3_zero(), given = fsi__d3_zero();
    double all = 0, whole;
    int i;
    for (i = 0; i < b->dofs; i++) {
        const size_t at = 3 * (size_t)i;
        const fsi__d3 by = fsi__d3_at(d + at);
        shown = fsi__d3_madd(shown, b->m_one[i], fsi__d3_sub(fsi__d3_at(b->v + at), fsi__d3_at(v + at)));
        given = fsi__d3_madd(given, b->h * b->one[i], by);
        all += b->h * fsi__d3_dot(by, fsi__d3_sub(fsi__d3_at(o->loose + at), fsi__d3_at(loose + at)));
    }
    whole = fsi__d3_dot(given, given);
    if (whole > FSI__IM_PUSH * all * b->mass)
        b->yielding = fmin(fmax(fsi__d3_dot(shown, given) / whole, FSI__EL_HELD), 1);
}

/* e of a body, and what it changed by; adds up its square and that of f in the norm of M^-1. */
static void fsi__im_compare(fsi__immersed *s, int k, int round, double *off, double *force)
{
    fsi__im_body *o = &s->body[k];
    fsi__el_body *b = fsi__im_inner(s, k);
    const int n = 3 * b->dofs;
    double *d = fsi__im_past(o, n, 3 * s->slot), *last = fsi__im_last(o, n, FSI__IM_S);
    double *e = fsi__im_last(o, n, FSI__IM_E), *speed = fsi__im_last(o, n, FSI__IM_SPEED);
    int i;

    /* What changed: e is taken off before it is found, and added after that. */
    for (i = 0; i < n && round > 0; i++) {
        d[i] = b->support[i] - last[i];
        d[n + i] = -e[i];
        d[2 * n + i] = -speed[i];
    }
    if (round == 1) fsi__im_find_yielding(o, b, d);
    if (round > 0 && fsi__el_is_pushed(s->elastic, k)) b->yielding = 1; /* by forces on the other one, too */
    memcpy(last, b->support, (size_t)n * sizeof(double));
    memcpy(fsi__im_last(o, n, FSI__IM_V), b->v, (size_t)n * sizeof(double));
    memcpy(fsi__im_last(o, n, FSI__IM_LOOSE), o->loose, (size_t)n * sizeof(double));

    /* f and e. */
    for (i = 0; i < n; i++) o->given[i] /= b->h;
    fsi__im_solve(o, b, o->given, speed);
    *force += fsi__dot(o->given, speed, n);
    for (i = 0; i < n; i++) e[i] = o->given[i] - b->support[i];
    fsi__im_solve(o, b, e, speed);
    *off += fsi__dot(e, speed, n);
    for (i = 0; i < n && round > 0; i++) {
        d[n + i] += e[i];
        d[2 * n + i] += speed[i];
    }
}

/* The next s, by the rounds that are remembered. */
static void fsi__im_combine(fsi__immersed *s)
{
    double gram[FSI__IM_PAST * FSI__IM_PAST], t[FSI__IM_PAST];
    int k, i, j, l, m = s->stored;
    memset(gram, 0, sizeof gram);
    memset(t, 0, sizeof t);
    for (k = 0; k < s->bodies; k++) {
        const int n = 3 * fsi__im_inner(s, k)->dofs;
        const double *e = fsi__im_last(&s->body[k], n, FSI__IM_E);
        for (j = 0; j < m; j++) {
            const double *speed = fsi__im_past(&s->body[k], n, 3 * j + 2);
            for (l = 0; l <= j; l++) gram[j * m + l] += fsi__dot(speed, fsi__im_past(&s->body[k], n, 3 * l + 1), n);
            t[j] += fsi__dot(speed, e, n);
        }
    }
    for (j = 0; j < m; j++) gram[j * m + j] *= 1 + 1e-10;
    if (m > 0 && (fsi_dense_cholesky(NULL, m, gram) != FSI_OK || fsi_dense_cholesky_solve(m, gram, t) != FSI_OK)) m = 0;
    for (k = 0; k < s->bodies; k++) {
        fsi__el_body *b = fsi__im_inner(s, k);
        const int n = 3 * b->dofs;
        const double *e = fsi__im_last(&s->body[k], n, FSI__IM_E);
        for (i = 0; i < n; i++) b->support[i] += e[i];
        for (j = 0; j < m; j++) {
            const double *d = fsi__im_past(&s->body[k], n, 3 * j);
            for (i = 0; i < n; i++) b->support[i] -= t[j] * (d[i] + d[n + i]);
        }
    }
}

/* The best s so far, and its e, are kept. */
static void fsi__im_keep_best(const fsi__immersed *s)
{
    int k;
    for (k = 0; k < s->bodies; k++) {
        const fsi__im_body *o = &s->body[k];
        const fsi__el_body *b = fsi__im_inner(s, k);
        const int n = 3 * b->dofs;
        memcpy(fsi__im_last(o, n, FSI__IM_BEST), b->support, (size_t)n * sizeof(double));
        memcpy(fsi__im_last(o, n, FSI__IM_STEP), fsi__im_last(o, n, FSI__IM_E), (size_t)n * sizeof(double));
    }
}

/* It is taken again, with `part` of its e. */
static void fsi__im_take_best(const fsi__immersed *s, double part)
{
    int k, i;
    for (k = 0; k < s->bodies; k++) {
        const fsi__im_body *o = &s->body[k];
        fsi__el_body *b = fsi__im_inner(s, k);
        const int n = 3 * b->dofs;
        memcpy(b->support, fsi__im_last(o, n, FSI__IM_BEST), (size_t)n * sizeof(double));
        for (i = 0; i < n; i++) fsi__im_last(o, n, FSI__IM_E)[i] = part * fsi__im_last(o, n, FSI__IM_STEP)[i];
    }
}

/* Where an error of s grows in f, bodies yield more than was found, as others that touch them had moved them: the grid
   gets them as they are, and the best s is judged again. */
static void fsi__im_free_all(fsi__immersed *s)
{
    int k;
    for (k = 0; k < s->bodies; k++) fsi__im_inner(s, k)->yielding = 1;
    fsi__im_weigh_anew(s, 0);
    s->best = HUGE_VAL;
}

/* The grid gets the bodies with the mass m/a; all: a = 1. Returns whether any is another one than before. */
FSI_API int fsi__im_weigh_anew(fsi__immersed *s, int all)
{
    int changed = 0, k, i;
    for (k = 0; k < s->bodies; k++) {
        fsi__im_body *o = &s->body[k];
        const double yielding = all ? 1 : fsi__im_inner(s, k)->yielding;
        changed |= o->yielding < yielding || o->yielding > yielding;
        o->yielding = yielding;
        for (i = o->first; i < o->first + o->count; i++) s->heft[i] = (float)((double)s->density[i] / o->yielding);
    }
    s->weighed_anew |= changed;
    return changed;
}

FSI_API int fsi__im_agree(fsi__immersed *s, const fsi_vec3 *push, int round, double gravity)
{
    double off = 0, force = 0;
    int k;
    if (round == 0) {
        s->slot = s->stored = s->since = s->failed = 0;
        s->best = HUGE_VAL;
    }
    for (k = 0; k < s->bodies; k++) {
        fsi__im_gather(s, k, push);
        fsi__im_compare(s, k, round, &off, &force);
        force += gravity * gravity * fsi__im_inner(s, k)->mass;
    }
    s->rest = force > 0 ? sqrt(off / force) : 0;
    if (!(s->rest > FSI__IM_AGREED) || round >= FSI__IM_ROUNDS) return 1;

    /* Once more: from the best s where this one is worse, and with it alone in the last round. */
    if (off < s->best || round == 0) fsi__im_keep_best(s);
    if (off < 4 * s->best && round + 1 < FSI__IM_ROUNDS) {
        s->best = fmin(s->best, off);
        if (s->since++ > 0) {
            s->slot = (s->slot + 1) % FSI__IM_PAST;
            if (s->stored < FSI__IM_PAST) s->stored++;
        }
    } else {
        const int last = round + 1 == FSI__IM_ROUNDS;
        fsi__im_take_best(s, last || s->failed == 0 ? 0 : 1 / (1.0 + s->failed));
        if (!last && s->failed == 0) fsi__im_free_all(s);
        s->slot = s->stored = s->since = 0;
        s->failed++;
    }
    if (round == 1 && fsi__im_weigh_anew(s, 0)) {
        s->slot = s->stored = s->since = 0; /* other masses: another f(s) */
        s->best = HUGE_VAL;
    }
    fsi__im_combine(s);
    return 0;
}

/* Adds impulses j of the unknowns to what the body got. */
static void fsi__im_add_up(fsi__im_body *o, const fsi__el_body *b, const double *impulse)
{
    int i;
    for (i = 0; i < b->dofs; i++) {
        const fsi__d3 j = fsi__d3_at(impulse + 3 * (size_t)i);
        fsi__d3_put(o->impulse, fsi__d3_madd(fsi__d3_at(o->impulse), b->one[i], j));
        fsi__d3_put(o->moment, fsi__d3_add(fsi__d3_at(o->moment), fsi__d3_cross(fsi__d3_at(b->q + 3 * (size_t)i), j)));
    }
}

FSI_API fsi_status fsi__im_take(fsi__immersed *s, const char *fn, const fsi_vec3 *push, const fsi_vec3 *also)
{
    int k, i;
    for (k = 0; k < s->bodies; k++) {
        fsi__im_body *o = &s->body[k];
        fsi__el_body *b = fsi__im_inner(s, k);
        const int n = 3 * b->dofs;
        double *d = fsi__im_last(o, n, FSI__IM_SPEED);

        /* What both give; the force that is expected. */
        fsi__im_gather(s, k, also);
        fsi__im_add_up(o, b, o->given);
        fsi__im_solve(o, b, o->given, d);
        fsi__im_gather(s, k, push);
        fsi__im_add_up(o, b, o->given);
        for (i = 0; i < n; i++) b->support[i] += FSI__IM_TREND * (o->given[i] / b->h - b->support[i]);

        /* Unknowns. */
        fsi__im_solve(o, b, o->given, o->given);
        for (i = 0; i < n; i++) {
            d[i] += o->yielding * (o->given[i] - o->loose[i]);
            b->v[i] += o->loose[i] + d[i];
            b->q[i] += b->h * d[i];
        }
        fsi__el_moved(s->elastic, k);
        for (i = 0; i < n; i++)
            if (!(fabs(b->q[i]) < FSI__IM_FARTHEST && fabs(b->v[i]) < FSI__IM_FARTHEST)) return fsi__fail(s->context,
                FSI_ERROR_LIMIT, fn, o->id, b->q[i], "body %d would be farther than 1e12 m, or faster than 1e12 m/s",
                o->id);
    }
    return FSI_OK;
}

FSI_API void fsi__im_support(const fsi__immersed *s, int on)
{
    int k;
    for (k = 0; k < s->bodies; k++) fsi__im_inner(s, k)->supported = on;
}

FSI_API void fsi__im_begin(fsi__immersed *s)
{
    int k;
    for (k = 0; k < s->bodies; k++) {
        memset(s->body[k].impulse, 0, sizeof s->body[k].impulse);
        memset(s->body[k].moment, 0, sizeof s->body[k].moment);
    }
}

FSI_API void fsi__im_end(fsi__immersed *s, double dt)
{
    int k;
    for (k = 0; k < s->bodies; k++) {
        fsi__im_body *o = &s->body[k];
        o->force = fsi__d3_real(fsi__d3_over(fsi__d3_at(o->impulse), dt));
        o->torque = fsi__d3_real(fsi__d3_over(fsi__d3_at(o->moment), dt));
    }
}

FSI__COLD_BEGIN

/* ---- >>filling --------------------------------------------------------------------------------------------------- */

FSI_API fsi_status fsi__im_check(const fsi__immersed *s, const char *fn)
{
    int k, same = 1;
    if (!s->elastic) return FSI_OK;
    if (s->elastic->cookie != FSI__COOKIE('E', fsi_elastic)) return fsi__fail(s->context, FSI_ERROR_COOKIE, fn, -1, 0,
        "the elastic simulator that was immersed is none");
    same = s->elastic->body_count == s->bodies;
    for (k = 0; k < s->bodies && same; k++) same = s->elastic->bodies[k].id == s->body[k].id;
    if (!same) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, s->elastic->body_count,
        "bodies of the elastic simulator were added or removed: fsi_flip_immerse again");
    return FSI_OK;
}

FSI_API fsi_status fsi__im_told(const fsi__immersed *s, fsi_status status)
{
    if (status != FSI_OK && s->elastic->context != s->context) s->context->error = s->elastic->context->error;
    return status;
}

FSI_API void fsi__im_remove_walls(fsi__immersed *s)
{
    int side;
    for (side = 0; side < 6; side++) {
        if (s->elastic && s->wall[side] >= 0) (void)fsi_elastic_remove_shape(s->elastic, s->wall[side]);
        s->wall[side] = -1;
    }
}

FSI_API fsi_status fsi__im_add_walls(fsi__immersed *s, fsi_box3 box, const unsigned char *open_side)
{
    int side;
    for (side = 0; side < 6; side++) s->wall[side] = -1;
    for (side = 0; side < 2 * s->elastic->desc.dim; side++) {
        const fsi_real in = side & 1 ? -1 : 1;
        fsi_elastic_shape_desc d = fsi_elastic_default_shape_desc();
        fsi_status status;
        if (open_side[side]) continue;
        d.point = side & 1 ? box.hi : box.lo;
        d.normal = fsi_v3(side >> 1 == 0 ? in : 0, side >> 1 == 1 ? in : 0, side >> 1 == 2 ? in : 0);
        status = fsi_elastic_add_shape(s->elastic, &d, &s->wall[side]);
        if (status == FSI_OK) continue;
        fsi__im_remove_walls(s);
        return fsi__im_told(s, status);
    }
    return FSI_OK;
}

static void fsi__im_free_body(const fsi__immersed *s, fsi__im_body *o)
{
    fsi__free(s->context, o->given, o->room, sizeof(double));
    fsi__el_rows_free(&o->rows, s->elastic->context);
    fsi__el_packed_free(&o->packed, s->elastic->context);
}

FSI_API void fsi__im_free(fsi__immersed *s)
{
    int k;
    for (k = 0; k < s->bodies; k++) fsi__im_free_body(s, &s->body[k]);
    fsi__free(s->context, s->body, (size_t)s->bodies, sizeof *s->body);
    fsi__free(s->context, s->volume, 3 * (size_t)s->count, sizeof *s->volume);
    fsi__free(s->context, s->mass, (size_t)s->count, sizeof *s->mass);
    memset(s, 0, sizeof *s);
}

/* Rows of the sites of a lattice inside the surface at rest. Its spacing is stretched so that it fits the box. */
static fsi_status fsi__im_fill(fsi__im_body *o, fsi__el_body *b, const char *fn, const fsi_mesh *rest, double spacing)
{
    const fsi__d3 lo = fsi__d3_of(rest->box.lo), way = fsi__d3_sub(fsi__d3_of(rest->box.hi), lo);
    double apart[3];
    int n[3], i, j, k, a;
    for (a = 0; a < 3; a++) {
        n[a] = (int)fmax(floor(fsi__d3_axis(way, a) / spacing + 0.5), 1);
        apart[a] = fsi__d3_axis(way, a) / n[a];
    }
    for (k = 0; k < n[2]; k++) for (j = 0; j < n[1]; j++) for (i = 0; i < n[0]; i++) {
        const fsi__d3 x =
            fsi__d3_add(lo, fsi__d3_make((i + 0.5) * apart[0], (j + 0.5) * apart[1], (k + 0.5) * apart[2]));
        if (fsi_mesh_signed_distance(rest, fsi__d3_real(x)) >= 0) continue;
        FSI__TRY(fsi__el_body_row(b, &o->rows, fn, x));
    }
    o->count = o->rows.count;
    return FSI_OK;
}

/* Density of the element that a site at rest is in [kg/m^dim]. */
static double fsi__im_density_at(const fsi__el_body *b, fsi__d3 x)
{
    double bary[4];
    const int e = fsi__el_locate(&b->shape, x, bary);
    return b->element_mass[e] / b->shape.volume[e];
}

/* Parts without a particle are refused: the liquid would pass through them. */
static fsi_status fsi__im_check_parts(const fsi__immersed *s, int body, const char *fn, const double *mass)
{
    const fsi__im_body *o = &s->body[body];
    const fsi__el_body *b = fsi__im_inner(s, body);
    int i, p, k;
    double *sum = o->work;
    memset(sum, 0, (size_t)b->dofs * sizeof(double));
    for (p = 0; p < o->count; p++) for (k = o->rows.start[p]; k < o->rows.start[p + 1]; k++)
        sum[o->rows.dof[k]] += mass[p] * o->rows.value[k] * (b->reduced ? o->rows.value[k] : 1);
    for (i = 0; i < b->dofs; i++) {
        const double whole = b->own_mass[b->reduced ? (size_t)i * (size_t)b->dofs + (size_t)i : (size_t)i];
        const int v = b->reduced ? b->handles.center[i / (b->dim + 1)] : i;
        const double *x = b->shape.x + 3 * (size_t)v;
        if (!(b->one[i] > 0) || sum[i] > FSI__IM_THIN * whole) continue;
        return fsi__fail(s->context, FSI_ERROR_MESH, fn, o->id, i, "body %d: no particle is near (%g, %g, %g): it is "
            "thinner than dx/2 there, or its elements are smaller: give it handles", o->id, x[0], x[1], x[2]);
    }
    return FSI_OK;
}

/* Masses of the particles, that of the body in all. */
static fsi_status fsi__im_weigh(fsi__immersed *s, int k, const char *fn, double spacing, double density, double *mass)
{
    fsi__im_body *o = &s->body[k];
    fsi__el_body *b = fsi__im_inner(s, k);
    const double cell = spacing * spacing * (b->dim == 3 ? spacing : 1), volume = b->shape.mass_volume / o->count;
    double sum = 0, whole = 0;
    int p;

    /* Those of the elements around the particles, scaled to the mass of the body. */
    for (p = 0; p < o->count; p++) {
        mass[p] = volume * fsi__im_density_at(b, fsi__el_point(&o->rows, p, b->rest));
        sum += mass[p];
    }
    for (p = 0; p < b->shape.element_count; p++) whole += b->element_mass[p];
    for (p = 0; p < o->count; p++) {
        mass[p] *= whole / sum;
        s->volume[o->first + p] = (float)(volume / cell);
        s->density[o->first + p] = (float)(mass[p] / (volume * density));
        s->heft[o->first + p] = s->density[o->first + p];
        if (s->density[o->first + p] < FSI__IM_LIGHTEST) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, o->id,
            mass[p] / volume, "body %d: a density of %g is below a twentieth of the liquid's", o->id, mass[p] / volume);
    }
    return fsi__im_check_parts(s, k, fn, mass);
}

FSI_API void fsi__im_restore(const fsi__immersed *s)
{
    int k, at;
    for (k = 0; k < s->bodies; k++) {
        at = fsi_elastic_find_body(s->elastic, s->body[k].id);
        if (at >= 0) fsi__el_body_weigh(fsi__el_inner(s->elastic, at), NULL, NULL, 1);
    }
}

FSI_API void fsi__im_adopt(fsi__immersed *s)
{
    int k, p;
    for (k = 0; k < s->bodies; k++) {
        fsi__im_body *o = &s->body[k];
        fsi__el_body *b = fsi__im_inner(s, k);
        for (p = 0; p < o->count; p++) s->mass[o->first + p] *= 1 - FSI__IM_LEAST;
        fsi__el_body_weigh(b, &o->rows, s->mass + o->first, FSI__IM_LEAST);
        if (!o->factor) continue;
        memcpy(o->factor, b->massive, (size_t)b->dofs * (size_t)b->dofs * sizeof(double));
        (void)fsi_dense_cholesky(s->context, b->dofs, o->factor); /* definite by its part of the old one */
    }
}

/* Particles and arrays of the k-th body. */
static fsi_status fsi__im_make_body(fsi__immersed *s, int k, const char *fn, double spacing)
{
    fsi__im_body *o = &s->body[k];
    fsi__el_body *b = fsi__im_inner(s, k);
    const size_t d = (size_t)b->dofs;
    size_t parts;
    fsi_mesh *rest;
    fsi_status status;
    o->id = s->elastic->bodies[k].id;
    o->yielding = 1;
    o->first = s->count;
    FSI__TRY(fsi__im_told(s, fsi__el_rows_begin(&o->rows, s->elastic->context, fn, 1)));
    FSI__TRY(fsi__im_told(s, fsi__el_rest_mesh(s->elastic, k, fn, &rest)));
    status = fsi__im_told(s, fsi__im_fill(o, b, fn, rest, spacing));
    fsi_mesh_destroy(rest);
    FSI__TRY(status);
    if (o->count == 0) return fsi__fail(s->context, FSI_ERROR_MESH, fn, o->id, 0,
        "body %d is smaller than dx/2: it has no particle", o->id);
    FSI__TRY(fsi__im_told(s, fsi__el_pack(&o->packed, s->elastic->context, fn, &o->rows, b->dofs, b->reduced)));
    s->count += o->count;

    /* One block. */
    parts = 4 * d * (size_t)fsi__chunks(o->count, FSI__IM_GRAIN);
    o->room = (10 + 9 * FSI__IM_PAST + 3 * FSI__IM_LASTS) * d + parts + (b->reduced ? d * d : 0);
    o->given = (double *)fsi__alloc(s->context, o->room, sizeof(double));
    if (!o->given) return fsi__fail(s->context, FSI_ERROR_MEMORY, fn, o->id, (double)d, "no memory to immerse body %d",
        o->id);
    memset(o->given, 0, o->room * sizeof(double));
    o->loose = o->given + 3 * d;
    o->work = o->loose + 3 * d;
    o->past = o->work + 4 * d;
    o->part = o->past + (9 * FSI__IM_PAST + 3 * FSI__IM_LASTS) * d;
    if (b->reduced) o->factor = o->part + parts;
    return FSI_OK;
}

FSI_API fsi_status fsi__im_make(fsi__immersed *s, fsi_context *context, const char *fn, fsi_elastic *elastic,
    double spacing, double density)
{
    fsi_status status = FSI_OK;
    int k;

    /* The list of bodies. */
    memset(s, 0, sizeof *s);
    s->context = context;
    s->elastic = elastic;
    s->body = (fsi__im_body *)fsi__alloc(context, (size_t)elastic->body_count, sizeof *s->body);
    if (!s->body && elastic->body_count > 0) {
        memset(s, 0, sizeof *s);
        return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, elastic->body_count, "no memory for %d bodies",
            elastic->body_count);
    }
    s->bodies = elastic->body_count;
    if (s->bodies > 0) memset(s->body, 0, (size_t)s->bodies * sizeof *s->body);

    /* Their particles, and what these weigh. */
    for (k = 0; k < s->bodies && status == FSI_OK; k++) {
        s->body_volume += fsi__im_inner(s, k)->shape.mass_volume;
        status = fsi__im_make_body(s, k, fn, spacing);
    }
    if (status == FSI_OK) {
        s->volume = (float *)fsi__alloc(context, 3 * (size_t)s->count, sizeof *s->volume);
        s->mass = (double *)fsi__alloc(context, (size_t)s->count, sizeof *s->mass);
        if (s->count > 0 && (!s->volume || !s->mass)) status = fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, s->count,
            "no memory for %d particles", s->count);
        s->density = s->volume ? s->volume + s->count : NULL;
        s->heft = s->volume ? s->density + s->count : NULL;
    }
    for (k = 0; k < s->bodies && status == FSI_OK; k++)
        status = fsi__im_weigh(s, k, fn, spacing, density, s->mass + s->body[k].first);
    if (status != FSI_OK) fsi__im_free(s);
    return status;
}

FSI__COLD_END
FSI__STRICT_END

#endif /* once */
#endif /* implementation */
