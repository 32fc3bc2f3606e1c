/* fsi_sph_bodies.h - rigid bodies that a liquid of particles moves: six unknowns each of its minimisation.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_sph.h includes this file. Its front page says how a body is added to a liquid:

      fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
      o.mesh = hull; o.body = &body;                // body.mode FSI_BODY_COUPLED: the liquid moves it
      fsi_sph_add_obstacle(water, &o, NULL);

   WHAT IS IN HERE (search for >>), all of it for fsi's own headers
      >>stages         the bodies of a step, and what is done to them;  >>coupled bodies  in the pressure solve
      >>drag           in the viscous solve;  >>one impulse after the other  friction, contact lines, results
   MACROS: those of fsi.h.
   UNITS: SI; in the solve, lengths in units of the support H, masses in units of a particle's mass m.
   PRECISION: double.
*/
#ifndef FSI_SPH_BODIES_H
#define FSI_SPH_BODIES_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_sph_viscosity.h"

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

#define FSI__SPH_STEP_MAX 0.25 /* longest displacement of one sweep, of particles and bodies [H] */

/* A body in a step. PRESCRIBED: only its poses matter. COUPLED: six unknowns of the solve, translation in units of H
   and rotation vector, from `at`, the pose of its meshes during the solve. Masses in units of m, inertias of m H^2. */
typedef struct fsi__sph_body {
    fsi_body *user, work;    /* the work copy takes the outputs, which are handed out at commit */
    int coupled;
    fsi_pose from, base, at; /* where the sweep of its meshes starts; where the substep starts; where its meshes are */
    fsi_vec3 velocity, spin; /* spin: angular momentum [kg m^2/s] */
    fsi_vec3 star_velocity, star_spin;
    fsi_mat3 per_spin;       /* inverse inertia at the end of the substep, world axes: angular velocity for each spin */
    double imbalance;        /* fraction of the force on it that the solve left unbalanced */
    double inertia[6][6];    /* mass and inertia */
    double reach;            /* of its meshes from its centre [H] */
    fsi_vec3 line, line_moment; /* impulse of contact lines in this substep [N s], about its centre */
    double q[6], qz[6], star[6], step[6], residual[6], warm[6]; /* PRESCRIBED: they stay 0 */
    double block[6][6];      /* of the diagonal, lower half */
} fsi__sph_body;

/* The bodies of a step, each once, and the numbers of the substep. */
typedef struct fsi__sph_bodies {
    fsi__sph_body *body;
    int count, coupled_count;
    int dim;
    double h, m;             /* H [m]; mass of a particle [kg] */
    double dt;               /* substep [s] */
} fsi__sph_bodies;

/* How iterates are moved back. */
enum { FSI__SPH_TO_GUESS, FSI__SPH_TO_STAR, FSI__SPH_TO_STEP, FSI__SPH_HALF_BACK };

/* The pose that lies q (in units of H) from `at`; makes `at` the given pose, from which star is the pose `star`. */
FSI_API fsi_pose fsi__sph_body_pose(const fsi__sph_bodies *s, const fsi__sph_body *b, const double *q);
FSI_API void fsi__sph_body_settle(const fsi__sph_bodies *s, fsi__sph_body *b, fsi_pose star, fsi_pose at);
/* Momenta with the host's forces, the pose they lead to, and where the solve starts: there, or with warm_start as far
   from it as in the last substep. end: fraction of the step at the end of the substep (PRESCRIBED). */
FSI_API void fsi__sph_predict_bodies(const fsi__sph_bodies *s, int warm_start, double end);
/* Their part of the energy, in units of m H^2/dt^2. */
FSI_API double fsi__sph_body_energy(const fsi__sph_bodies *s);
/* Steps from the forces of the walls (n ranks); returns the bodies' part of the restart test. *imbalance: the largest
   unbalanced fraction of the force on a body. */
FSI_API double fsi__sph_step_bodies(const fsi__sph_bodies *s, const int *slot, const fsi__sph_wall *wall, int n,
                                    double omega, double *imbalance);
/* y = z + omega step; z = y + beta (y - x); x = y. Returns the longest displacement of a body from `at`, at the
   farthest point of its meshes [H]. */
FSI_API double fsi__sph_update_bodies(const fsi__sph_bodies *s, double omega, double beta);
FSI_API void fsi__sph_reset_bodies(const fsi__sph_bodies *s, int how, double omega);
/* The last step of the bodies, in full. The force of the liquid at its last positions and the momenta of the bodies
   then agree, however early the solve ends. What is left of a heavy body's step is short, but its mass times that
   length is all the force there is. */
FSI_API void fsi__sph_settle_bodies(const fsi__sph_bodies *s);
/* Poses and momenta after the solve, and the impulses that the liquid gave, whose sum it returns [N s]. `warm`: the
   fraction of this correction that the next substep starts with. drag: the bodies in the viscous solve, or NULL. */
FSI_API void fsi__sph_finish_bodies(const fsi__sph_bodies *s, double warm, const fsi__sph_body_drag *drag,
                                    double impulse[3]);

FSI_API void fsi__sph_start_from_end(const fsi__sph_bodies *s); /* the next substep starts where this one ended */

/* One pass of the viscous solve over a coupled body; sum: as of the particles' pass. */
typedef void fsi__sph_body_fn(const fsi__sph_bodies *s, const fsi__sph_viscosity *o, fsi__sph_body *b, double *sum);
FSI_API fsi__sph_body_fn fsi__sph_body_drag_residual;
FSI_API fsi__sph_body_fn fsi__sph_body_drag_turn;
FSI_API fsi__sph_body_fn fsi__sph_body_drag_apply;
FSI_API fsi__sph_body_fn fsi__sph_body_drag_advance;
FSI_API fsi__sph_body_fn fsi__sph_body_drag_correct;
FSI_API fsi__sph_body_fn fsi__sph_body_drag_end;
FSI_API void fsi__sph_body_drag_begin(const fsi__sph_bodies *s, const fsi__sph_viscosity *o, fsi__sph_body *b);

/* The impulse `given` [N s] of a contact line at x: before the solve, as a force of the host's. */
FSI_API void fsi__sph_pull_body(fsi__sph_body *b, fsi_vec3 x, fsi_vec3 given);
FSI_API void fsi__sph_pull_bodies(const fsi__sph_bodies *s); /* after the last of them: star */
/* Adds an impulse at x to the reaction that the caller reads. */
FSI_API void fsi__sph_push_body(fsi__sph_body *b, fsi_vec3 x, fsi_vec3 given);
FSI_API int fsi__sph_body_is_finite(const fsi__sph_body *b);
FSI_API void fsi__sph_commit_body(fsi__sph_body *b, double dt); /* writes the caller's body; dt: of the step */

/* Vectors of doubles, in either precision of fsi_real. */
FSI__STRICT_FN_BEGIN
FSI_FN fsi_vec3 fsi__sph_real3(const double *v) { return fsi_v3((fsi_real)v[0], (fsi_real)v[1], (fsi_real)v[2]); }

FSI_FN void fsi__sph_to_doubles(double *out, fsi_vec3 v, double scale)
{
    out[0] = scale * (double)v.x;
    out[1] = scale * (double)v.y;
    out[2] = scale * (double)v.z;
}
FSI__STRICT_FN_END

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_SPH_BODIES_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_SPH_BODIES_IMPLEMENTATION
#define FSI_SPH_BODIES_IMPLEMENTATION
#endif
#ifdef FSI_SPH_BODIES_IMPLEMENTATION
#ifndef FSI_SPH_BODIES_IMPLEMENTATION_DONE
#define FSI_SPH_BODIES_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_sph_viscosity.h"

FSI__STRICT_BEGIN

/* ---- >>coupled bodies ------------------------------------------------------------------------------------------

   The six unknowns of a body take part in the minimisation (sph.md 11). The energy gains its inertia,

      E_b = M |c - c*|^2 / (2 dt^2) + (r - r*).I (r - r*) / (2 dt^2),

   c*, r*: the position and rotation to which its momentum and the host's forces lead. The walls depend on u - w,
   w = c + r x a the body's displacement at the particle's position. So

      -dE/dc = M (c* - c)/dt^2 - sum F_i,    -dE/dr = I (r* - r)/dt^2 - sum a_i x F_i:

   the impulse of a particle is taken from the body, to rounding, at every iterate. The body's block of the diagonal is
   its inertia plus sum d_i J_i^T J_i, J_i = (1, -[a_i]x), d_i the part of the particle's own diagonal from that
   obstacle. The bound k (u - w)^2 <= 2 k u^2 + 2 k w^2 would ask for twice that on both sides; this took a quarter
   fewer sweeps, and the step control saw no energy rise. */

static fsi_vec3 fsi__sph_spin_to_rate(fsi_quat orientation, fsi_mat3 inertia, fsi_vec3 spin)
{
    return fsi_m3_mul_v3(fsi_body_world_tensor(orientation, fsi_m3_inverse(inertia)), spin);
}

FSI_API fsi_pose fsi__sph_body_pose(const fsi__sph_bodies *s, const fsi__sph_body *b, const double *q)
{
    fsi_pose p;
    p.position = fsi_v3_madd(b->at.position, (fsi_real)s->h, fsi__sph_real3(q));
    p.orientation = fsi_quat_integrate(b->at.orientation, fsi__sph_real3(q + 3), 1);
    return p;
}

/* The displacement from `at` to a pose. */
static void fsi__sph_body_way(const fsi__sph_bodies *s, const fsi__sph_body *b, fsi_pose to, double *q)
{
    fsi__sph_to_doubles(q, fsi_v3_sub(to.position, b->at.position), 1 / s->h);
    fsi__sph_to_doubles(q + 3, fsi_quat_rotation_vector(fsi_quat_mul(to.orientation, fsi_quat_conj(b->at.orientation))),
                        1);
}

FSI_API void fsi__sph_body_settle(const fsi__sph_bodies *s, fsi__sph_body *b, fsi_pose star, fsi_pose at)
{
    b->at = at;
    fsi__sph_body_way(s, b, star, b->star);
    memset(b->q, 0, sizeof b->q);
    memset(b->qz, 0, sizeof b->qz);
    memset(b->step, 0, sizeof b->step);
}

/* The pose (*) to which its momentum leads a body. */
static fsi_pose fsi__sph_body_star(const fsi__sph_bodies *s, const fsi__sph_body *b)
{
    const fsi_real dt = (fsi_real)s->dt;
    fsi_pose star;
    star.position = fsi_v3_madd(b->base.position, dt, b->star_velocity);
    star.orientation = fsi_quat_integrate(
        b->base.orientation, fsi__sph_spin_to_rate(b->base.orientation, b->work.inertia, b->star_spin), dt);
    return star;
}

static void fsi__sph_body_inertia(const fsi__sph_bodies *s, fsi__sph_body *b)
{
    const fsi_mat3 inertia = fsi_body_world_tensor(b->base.orientation, b->work.inertia);
    const double m = s->m;
    int k, j;
    memset(b->inertia, 0, sizeof b->inertia);
    for (k = 0; k < 3; k++) {
        b->inertia[k][k] = (double)b->work.mass / m;
        for (j = 0; j < 3; j++) b->inertia[3 + k][3 + j] = (double)inertia.m[3 * k + j] / (m * s->h * s->h);
    }
    if (s->dim == 2) fsi__flatten6(b->inertia);
}

static void fsi__sph_predict_body(const fsi__sph_bodies *s, fsi__sph_body *b, int warm_start, double end)
{
    const fsi_real dt = (fsi_real)s->dt;
    fsi_pose star, at;
    if (!b->coupled) {
        b->at = fsi__pose_on_the_way(&b->work, b->from, end);
        return;
    }

    /* Momenta with the host's forces, and the pose to which they lead. */
    b->star_velocity = fsi_v3_madd(b->velocity, dt / b->work.mass, b->work.force);
    b->star_spin = fsi_v3_madd(b->spin, dt, b->work.torque);
    b->line = b->line_moment = fsi_v3(0, 0, 0);
    if (s->dim == 2) b->star_velocity.z = b->star_spin.x = b->star_spin.y = 0;
    at = star = fsi__sph_body_star(s, b);

    /* The last correction from there, no longer than one sweep may move a point of the body. */
    if (warm_start) {
        const fsi_vec3 shift = fsi_v3_scale(fsi__sph_real3(b->warm), dt * dt),
                       turn = fsi_v3_scale(fsi__sph_real3(b->warm + 3), dt * dt);
        const fsi_real way = fsi_v3_norm(shift) + fsi_v3_norm(turn) * (fsi_real)(b->reach * s->h),
                       most = (fsi_real)(FSI__SPH_STEP_MAX * s->h);
        const fsi_real part = way > most ? most / way : 1;
        at.position = fsi_v3_madd(star.position, part, shift);
        at.orientation = fsi_quat_integrate(star.orientation, turn, part);
    }
    fsi__sph_body_inertia(s, b);
    fsi__sph_body_settle(s, b, star, at);
}

FSI_API void fsi__sph_predict_bodies(const fsi__sph_bodies *s, int warm_start, double end)
{
    int b;
    for (b = 0; b < s->count; b++) fsi__sph_predict_body(s, &s->body[b], warm_start, end);
}

/* Inertia times the displacement from the iterate to x*: the residual without walls. */
static void fsi__sph_body_pull(const fsi__sph_body *b, double *r)
{
    int k, j;
    for (k = 0; k < 6; k++) for (r[k] = 0, j = 0; j < 6; j++) r[k] += b->inertia[k][j] * (b->star[j] - b->qz[j]);
}

FSI_API double fsi__sph_body_energy(const fsi__sph_bodies *s)
{
    double sum = 0, r[6];
    int b, k;
    for (b = 0; b < s->count; b++) {
        const fsi__sph_body *body = &s->body[b];
        fsi__sph_body_pull(body, r);
        for (k = 0; k < 6; k++) sum += 0.5 * r[k] * (body->star[k] - body->qz[k]);
    }
    return sum;
}

/* Adds one particle's part to a body's residual and block of the diagonal (lower half). */
static void fsi__sph_add_to_body(const fsi__sph_part *part, fsi__sph_body *body)
{
    const double a[3] = { (double)part->arm[0], (double)part->arm[1], (double)part->arm[2] };
    const double f[3] = { (double)part->force[0], (double)part->force[1], (double)part->force[2] };
    const double d = (double)part->weight, a2 = a[0] * a[0] + a[1] * a[1] + a[2] * a[2];
    double (*block)[6] = body->block;
    int i, j;
    for (i = 0; i < 3; i++) {
        int j1 = (i + 1) % 3, j2 = (i + 2) % 3;
        body->residual[i] -= f[i];
        body->residual[3 + i] -= a[j1] * f[j2] - a[j2] * f[j1];
        block[i][i] += d;
        block[3 + i][3 + i] += d * a2;
        for (j = 0; j <= i; j++) block[3 + i][3 + j] -= d * a[i] * a[j];
        block[3 + j1][j2] -= d * a[i]; /* [a]x: rows r, columns c */
        block[3 + j2][j1] += d * a[i];
    }
}

/* The same of all particles near a coupled body, in order of ranks; only: the one body, or -1 for all. */
static void fsi__sph_add_walls(const fsi__sph_bodies *s, const int *slot, const fsi__sph_wall *wall, int n, int only)
{
    int r, k;
    for (r = 0; r < n; r++) {
        const fsi__sph_wall *w = slot[r] >= 0 ? &wall[slot[r]] : NULL;
        if (!w || !w->coupled) continue;
        for (k = 0; k < w->part_count; k++) {
            const int body = w->part[k].body;
            if (body >= 0 && (only < 0 || body == only)) fsi__sph_add_to_body(&w->part[k], &s->body[body]);
        }
    }
}

/* A body's step from residual and block; returns its part of the restart test. */
static double fsi__sph_step_body(const fsi__sph_bodies *s, fsi__sph_body *body, double omega)
{
    double restart = 0, length;
    int k;
    if (s->dim == 2) {
        body->residual[2] = body->residual[3] = body->residual[4] = 0;
        fsi__flatten6(body->block);
    }
    fsi__solve6(body->block, body->residual, body->step);
    length =
        sqrt(fsi__sph_dot3(body->step, body->step)) + sqrt(fsi__sph_dot3(body->step + 3, body->step + 3)) * body->reach;
    for (k = 0; k < 6 && length > FSI__SPH_STEP_MAX; k++) body->step[k] *= FSI__SPH_STEP_MAX / length;
    for (k = 0; k < 6; k++) restart -= body->residual[k] * (body->qz[k] + omega * body->step[k] - body->q[k]);
    return restart;
}

/* The force that is not yet balanced, over the force that the liquid has exerted: of translation. */
static double fsi__sph_body_imbalance(const fsi__sph_body *b)
{
    const double mass = b->inertia[0][0];
    double f[3];
    int k;
    for (k = 0; k < 3; k++) f[k] = mass * (b->star[k] - b->qz[k]);
    return sqrt(fsi__sph_dot3(b->residual, b->residual)) / (sqrt(fsi__sph_dot3(f, f)) + 1e-6 * mass);
}

FSI_API double fsi__sph_step_bodies(const fsi__sph_bodies *s, const int *slot, const fsi__sph_wall *wall, int n,
                                    double omega, double *imbalance)
{
    double restart = 0;
    int b;
    for (b = 0; b < s->count; b++) {
        if (!s->body[b].coupled) continue;
        memcpy(s->body[b].block, s->body[b].inertia, sizeof s->body[b].block);
        fsi__sph_body_pull(&s->body[b], s->body[b].residual);
    }
    fsi__sph_add_walls(s, slot, wall, n, -1);
    *imbalance = 0;
    for (b = 0; b < s->count; b++) {
        if (!s->body[b].coupled) continue;
        restart += fsi__sph_step_body(s, &s->body[b], omega);
        s->body[b].imbalance = fsi__sph_body_imbalance(&s->body[b]);
        *imbalance = fmax(*imbalance, s->body[b].imbalance);
    }
    return restart;
}

FSI_API double fsi__sph_update_bodies(const fsi__sph_bodies *s, double omega, double beta)
{
    double most = 0;
    int b, k;
    for (b = 0; b < s->count; b++) {
        fsi__sph_body *body = &s->body[b];
        double rim;
        for (k = 0; k < 6; k++) {
            double y = body->qz[k] + omega * body->step[k];
            body->qz[k] = y + beta * (y - body->q[k]);
            body->q[k] = y;
        }
        rim = sqrt(fsi__sph_dot3(body->qz, body->qz)) + sqrt(fsi__sph_dot3(body->qz + 3, body->qz + 3)) * body->reach;
        if (rim > most) most = rim;
    }
    return most;
}

FSI_API void fsi__sph_reset_bodies(const fsi__sph_bodies *s, int how, double omega)
{
    int b, k;
    for (b = 0; b < s->count; b++) {
        fsi__sph_body *body = &s->body[b];
        for (k = 0; k < 6; k++) {
            if (how == FSI__SPH_TO_GUESS) body->q[k] = 0;
            else if (how == FSI__SPH_TO_STAR) body->q[k] = body->star[k];
            else if (how == FSI__SPH_HALF_BACK) body->q[k] -= omega / 2 * body->step[k];
            body->qz[k] = body->q[k];
        }
    }
}

FSI_API void fsi__sph_settle_bodies(const fsi__sph_bodies *s)
{
    int b, k;
    for (b = 0; b < s->count; b++)
        for (k = 0; k < 6 && s->body[b].coupled; k++) s->body[b].q[k] = s->body[b].qz[k] += s->body[b].step[k];
}

FSI_API void fsi__sph_finish_bodies(const fsi__sph_bodies *s, double warm, const fsi__sph_body_drag *drag,
                                    double impulse[3])
{
    const fsi_real per_dt = (fsi_real)(1 / s->dt);
    int b, k;
    impulse[0] = impulse[1] = impulse[2] = 0;
    for (b = 0; b < s->count; b++) {
        fsi__sph_body *body = &s->body[b];
        fsi_vec3 change, turn, moment;
        double d[6];
        if (!body->coupled) continue;

        /* The correction, d = q - q*, from which the next solve starts: as an acceleration. */
        for (k = 0; k < 6; k++) {
            d[k] = body->qz[k] - body->star[k];
            body->warm[k] = warm * d[k] * (k < 3 ? s->h : 1) / (s->dt * s->dt) + (drag ? drag[b].d[k] : 0);
        }

        /* Momenta: v = v* + d/dt, as for the particles; the poses then agree with them. */
        change = fsi_v3_scale(fsi__sph_real3(d), (fsi_real)s->h * per_dt);
        turn = fsi_v3_scale(fsi__sph_real3(d + 3), per_dt);
        moment = fsi_m3_mul_v3(fsi_body_world_tensor(body->base.orientation, body->work.inertia), turn);
        body->velocity = fsi_v3_add(body->star_velocity, change);
        body->spin = fsi_v3_add(body->star_spin, moment);

        /* What the liquid gave: pressure and contact lines. */
        change = fsi_v3_madd(body->line, body->work.mass, change);
        fsi__sph_add3(impulse, change);
        body->work.impulse = fsi_v3_add(body->work.impulse, change);
        body->work.angular_impulse = fsi_v3_add(body->work.angular_impulse, fsi_v3_add(moment, body->line_moment));
        body->at = fsi__sph_body_pose(s, body, body->qz);
    }
}

FSI_API void fsi__sph_start_from_end(const fsi__sph_bodies *s)
{
    int b;
    for (b = 0; b < s->count; b++) if (s->body[b].coupled) s->body[b].from = s->body[b].base = s->body[b].at;
}

/* ---- >>drag -----------------------------------------------------------------------------------------------------

   In the viscous solve coupled bodies are unknowns as well: their six velocities, with their momenta as the right hand
   side, and forces of the walls opposite to those on the particles, of which part->force holds the last. */

FSI_FN fsi__sph_body_drag *fsi__sph_drag_of(const fsi__sph_bodies *s, const fsi__sph_viscosity *o,
                                            const fsi__sph_body *b)
{
    return &o->body[b - s->body];
}

/* The operator on p: residual = inertia times p less the forces of the particles, in order of ranks; block: its
   diagonal. */
static void fsi__sph_body_felt(const fsi__sph_bodies *s, const fsi__sph_viscosity *o, fsi__sph_body *b)
{
    fsi__times6(b->inertia, fsi__sph_drag_of(s, o, b)->p, b->residual);
    memcpy(b->block, b->inertia, sizeof b->block);
    fsi__sph_add_walls(s, o->slot, o->wall, o->n, (int)(b - s->body));
    if (s->dim == 2) {
        b->residual[2] = b->residual[3] = b->residual[4] = 0;
        fsi__flatten6(b->block);
    }
}

/* Velocities that a body would have without liquid. */
FSI_API void fsi__sph_body_drag_begin(const fsi__sph_bodies *s, const fsi__sph_viscosity *o, fsi__sph_body *b)
{
    fsi__sph_body_drag *d = fsi__sph_drag_of(s, o, b);
    fsi__sph_to_doubles(d->before, b->star_velocity, 1);
    fsi__sph_to_doubles(d->before + 3, fsi__sph_spin_to_rate(b->base.orientation, b->work.inertia, b->star_spin),
                        s->h);
    memcpy(d->v, d->before, sizeof d->v);
}

/* r = M (v* - v) + forces, and the diagonal's block. Adds to |r|^2, |change|^2, |v*|^2 as particles do. */
FSI_API void fsi__sph_body_drag_residual(const fsi__sph_bodies *s, const fsi__sph_viscosity *o, fsi__sph_body *b,
                                         double *sum)
{
    fsi__sph_body_drag *d = fsi__sph_drag_of(s, o, b);
    double change[6], z[6];
    int k;
    for (k = 0; k < 6; k++) d->p[k] = d->before[k] - d->v[k];
    fsi__sph_body_felt(s, o, b);
    memcpy(d->block, b->block, sizeof d->block);
    memcpy(d->r, b->residual, sizeof d->r);
    fsi__solve6(b->inertia, d->r, z);
    for (k = 0; k < 6; k++) change[k] = z[k] - d->p[k];
    sum[0] += fsi__dot6(d->r, z);
    sum[1] += fsi__norm6(b->inertia, change);
    sum[2] += fsi__norm6(b->inertia, d->before);
    memset(d->d, 0, sizeof d->d);
    memset(d->p, 0, sizeof d->p);
}

FSI_API void fsi__sph_body_drag_turn(const fsi__sph_bodies *s, const fsi__sph_viscosity *o, fsi__sph_body *b,
                                     double *unused)
{
    fsi__sph_body_drag *d = fsi__sph_drag_of(s, o, b);
    double z[6];
    int k;
    (void)unused;
    fsi__solve6(d->block, d->r, z);
    for (k = 0; k < 6; k++) d->p[k] = z[k] + o->beta * d->p[k];
}

FSI_API void fsi__sph_body_drag_apply(const fsi__sph_bodies *s, const fsi__sph_viscosity *o, fsi__sph_body *b,
                                      double *sum)
{
    fsi__sph_body_felt(s, o, b);
    sum[0] += fsi__dot6(fsi__sph_drag_of(s, o, b)->p, b->residual);
}

FSI_API void fsi__sph_body_drag_advance(const fsi__sph_bodies *s, const fsi__sph_viscosity *o, fsi__sph_body *b,
                                        double *sum)
{
    fsi__sph_body_drag *d = fsi__sph_drag_of(s, o, b);
    double change[6], z[6];
    int k;
    for (k = 0; k < 6; k++) {
        d->d[k] += o->alpha * d->p[k];
        d->r[k] -= o->alpha * b->residual[k];
    }
    fsi__solve6(d->block, d->r, z);
    sum[0] += fsi__dot6(d->r, z);
    fsi__solve6(b->inertia, d->r, z);
    sum[1] += fsi__dot6(d->r, z);
    for (k = 0; k < 6; k++) change[k] = d->v[k] + d->d[k] + z[k] - d->before[k];
    sum[2] += fsi__norm6(b->inertia, change);
}

FSI_API void fsi__sph_body_drag_correct(const fsi__sph_bodies *s, const fsi__sph_viscosity *o, fsi__sph_body *b,
                                        double *unused)
{
    fsi__sph_body_drag *d = fsi__sph_drag_of(s, o, b);
    int k;
    (void)unused;
    for (k = 0; k < 6; k++) d->v[k] += d->d[k];
}

/* Impulse of viscosity on a coupled body, and its new end pose. */
FSI_API void fsi__sph_body_drag_end(const fsi__sph_bodies *s, const fsi__sph_viscosity *o, fsi__sph_body *b,
                                    double *unused)
{
    fsi__sph_body_drag *d = fsi__sph_drag_of(s, o, b);
    double change[6], z[6];
    fsi_vec3 turn;
    int k;
    (void)unused;
    fsi__solve6(b->inertia, d->r, z);
    for (k = 0; k < 6; k++) {
        change[k] = d->v[k] + o->taken * z[k] - d->before[k];
        d->d[k] = change[k] / (k < 3 ? s->dt : s->dt * s->h); /* acceleration, for the next start */
    }
    turn = fsi_m3_mul_v3(fsi_body_world_tensor(b->base.orientation, b->work.inertia),
                         fsi_v3_scale(fsi__sph_real3(change + 3), (fsi_real)(1 / s->h)));
    b->star_velocity = fsi_v3_add(b->star_velocity, fsi__sph_real3(change));
    b->star_spin = fsi_v3_add(b->star_spin, turn);
    b->work.impulse = fsi_v3_madd(b->work.impulse, b->work.mass, fsi__sph_real3(change));
    b->work.angular_impulse = fsi_v3_add(b->work.angular_impulse, turn);
    fsi__sph_body_way(s, b, fsi__sph_body_star(s, b), b->star);
}

/* ---- >>one impulse after the other ------------------------------------------------------------------------------ */

FSI_API void fsi__sph_pull_body(fsi__sph_body *b, fsi_vec3 x, fsi_vec3 given)
{
    const fsi_vec3 moment = fsi_v3_cross(fsi_v3_sub(x, b->base.position), given);
    b->line = fsi_v3_add(b->line, given);
    b->line_moment = fsi_v3_add(b->line_moment, moment);
    b->star_velocity = fsi_v3_madd(b->star_velocity, 1 / b->work.mass, given);
    b->star_spin = fsi_v3_add(b->star_spin, moment);
}

FSI_API void fsi__sph_pull_bodies(const fsi__sph_bodies *s)
{
    int i;
    for (i = 0; i < s->count; i++) {
        fsi__sph_body *b = &s->body[i];
        if (!b->coupled) continue;
        if (s->dim == 2) b->star_velocity.z = b->star_spin.x = b->star_spin.y = 0;
        fsi__sph_body_way(s, b, fsi__sph_body_star(s, b), b->star);
    }
}

FSI_API void fsi__sph_push_body(fsi__sph_body *b, fsi_vec3 x, fsi_vec3 given)
{
    b->work.impulse = fsi_v3_add(b->work.impulse, given);
    b->work.angular_impulse = fsi_v3_add(b->work.angular_impulse, fsi_v3_cross(fsi_v3_sub(x, b->at.position), given));
}

FSI_API int fsi__sph_body_is_finite(const fsi__sph_body *b)
{
    const fsi_quat *q = &b->at.orientation;
    double warm = 0;
    int k;
    for (k = 0; k < 6; k++) warm += b->warm[k];
    return fsi_v3_is_finite(b->at.position) && fsi_is_finite((double)(q->w + q->x + q->y + q->z)) &&
           (!b->coupled || (fsi_v3_is_finite(b->velocity) && fsi_v3_is_finite(b->spin))) &&
           fsi_v3_is_finite(b->work.impulse) && fsi_v3_is_finite(b->work.angular_impulse) && fsi_is_finite(warm);
}

FSI_API void fsi__sph_commit_body(fsi__sph_body *b, double dt)
{
    fsi_body *work = &b->work;
    fsi_body_end_step(work, (fsi_real)dt);
    if (b->coupled) {
        work->new_velocity = b->velocity;
        work->new_angular_velocity = fsi__sph_spin_to_rate(work->pose.orientation, work->inertia, b->spin);
        work->end = b->at;
    }
    *b->user = *work;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
