/* fsi_joints.h - trees of rigid links and joints in reduced coordinates: kinematics, Jacobians, inertia, their step.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_rigid.h includes this file, makes the trees and reads them. docs/rigid.md derives the equations.

   WHAT IT DOES
      A tree has a root, free or fixed, and links; one joint (revolute, prismatic, weld) connects each link to its
      parent. Its state is a vector of coordinates, so that joints hold exactly. Springs and dampers are implicit;
      limits are impulses; a scripted joint follows a target or a track. Closed loops of joints are not possible.

   WHAT IS IN HERE (search for >>)
      >>trees          joints, a tree to read;  >>stages  for fsi's own headers, not for you;  then >>prediction
      >>impulses  >>advance  >>published state  >>tree memory
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
   PRECISION: double; the coordinates that are published in fsi_real.
*/
#ifndef FSI_JOINTS_H
#define FSI_JOINTS_H

#include "fsi.h"

/* ---- >>trees ----------------------------------------------------------------------------------------------------- */

/* A link turns about its joint's axis (REVOLUTE, q in rad), moves along it (PRISMATIC, q in m), or is fixed to its
   parent (WELD). */
typedef enum fsi_rigid_joint_kind { FSI_RIGID_REVOLUTE, FSI_RIGID_PRISMATIC, FSI_RIGID_WELD } fsi_rigid_joint_kind;

/* A tree to read. Coordinates: of a free root its angular velocity (3) and its centre's velocity (3), 2D: (1) and (2);
   then one of each joint but welds, in order of links. Root coordinates have rates only. */
typedef struct fsi_rigid_tree {
    int link_count, coordinates, root; /* root: how many of the coordinates are the root's: 6, 3 or 0 */
    const int *body;                   /* link_count: ids */
    const int *parent;                 /* link_count */
    const unsigned char *joint;        /* link_count: fsi_rigid_joint_kind */
    const int *column;                 /* link_count: the joint's coordinate, -1: none (welds, root) */
    const unsigned char *scripted;     /* coordinates: 1 follows a target or a track */
    const fsi_real *q;                 /* coordinates: values (root: 0) */
    const fsi_real *rate;              /* coordinates */
    const fsi_real *joint_force;       /* coordinates: generalised force of limits and scripts in the last substep
                                          [N m or N]; springs and dampers not included */
    void *impl;
} fsi_rigid_tree;

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

/* A substep of a tree:

      place_root, predict    rates u without contacts, and the factored system A = M + dt D + dt^2 K (1)
      kick, relax_limits     impulses change the rates: u += A^-1 J^T (moment, impulse)
      advance                coordinates q1 and the links' poses at the end of the substep; u there keeps the momentum

   The owner fills force and torque of each link before predict, and copies u to u0 when the substep is accepted. */

#define FSI__JT_WARM 1e6 /* an impulse of the warm start that changes a speed by more [m/s, rad/s] is dropped */

typedef struct fsi__jt_track { double *time; fsi_real *value; int count; double period; } fsi__jt_track;

/* A joint's coordinate is free, or prescribed by a target or a track. */
enum { FSI__JT_FREE, FSI__JT_TARGET, FSI__JT_TRACK };

/* The joint between a link and its parent. */
typedef struct fsi__jt_joint {
    fsi__d3 axis, from;                    /* parent's body axes; from: parent's centre to the joint's point */
    fsi__d3 to;                            /* joint's point to the link's centre, link's body axes */
    fsi_quat turn;                         /* of the link against its parent at q0 */
    double q0, stiffness, rest, damping, lower, upper;
    int limited, script;                   /* script: FSI__JT_FREE ... */
    double target, force;
    fsi__jt_track track;
} fsi__jt_joint;

/* n coordinates; a link's row of an array has its index. */
typedef struct fsi__jt_tree {
    fsi_rigid_tree view;
    int fixed;                             /* the root does not move */
    fsi__arena memory;
    int *body, *parent, *column;
    unsigned char *joint, *scripted;
    fsi__jt_joint *link;
    double *mass, *tensor;                 /* of links; tensor: inertia about the centre, body axes, 9 a link */
    fsi_real *q, *rate, *joint_force;      /* published */
    double *hold;                          /* impulse of limits, signed; for the warm start */
    /* Of a step: */
    fsi__d3 *force, *torque;               /* on each link, by the owner; torque about its centre */
    double *q1, *u0, *u, *pu;              /* n: coordinates; rates at the start, solved, of the split impulses */
    double *g, *hold1, *jforce1;           /* n: impulses since predict, those of limits, joint_force */
    double *J, *M, *L, *f, *K, *D;         /* 6 x n a link: Jacobian (omega; v); M; factor of A; loads; diagonals */
    double *rhs, *y;                       /* n: scratch */
    fsi__d3 *c, *axis, *point;             /* links: centre, joint's axis and point in the world */
    fsi__d3 *omega, *bias_turn, *bias;     /* links: angular velocity; accelerations at qdd = 0 */
    double *turn, *inertia;                /* 9 a link: body axes to world; inertia in world axes */
    fsi_quat *orientation;
} fsi__jt_tree;

/* A tree of `links` links and n coordinates, all zero. NULL: no memory. */
FSI_API fsi__jt_tree *fsi__jt_create(fsi_context *context, int links, int n);
FSI_API void fsi__jt_destroy(fsi_context *context, fsi__jt_tree *t); /* NULL is fine */

FSI_API void fsi__jt_place_root(fsi__jt_tree *t, const fsi_pose *pose); /* sets c[0], orientation[0] */
FSI_API const double *fsi__jt_jacobian(const fsi__jt_tree *t, int l);  /* 6 x n of link l */
FSI_API fsi__d3 fsi__jt_angular(const fsi__jt_tree *t, int l, const double *u); /* omega of link l at the rates u */
FSI_API fsi__d3 fsi__jt_linear(const fsi__jt_tree *t, int l, const double *u);  /* velocity of its centre */
FSI_API fsi__d3 fsi__jt_velocity(const fsi__jt_tree *t, int l, fsi__d3 r, const double *u); /* at lever arm r */

/* Dynamics. mass: M and inertia. loads: f, and K, D of joints, at the coordinates q and rates u. */
FSI_API void fsi__jt_mass(fsi__jt_tree *t);
FSI_API void fsi__jt_loads(fsi__jt_tree *t, const double *q, const double *u);
FSI_API int fsi__jt_factor_mass(fsi__jt_tree *t);       /* A = M, scripted joints held. 0: not positive definite */
FSI_API int fsi__jt_predict(fsi__jt_tree *t, double dt, double end); /* end: time then [s]. 0: inertia is singular */
FSI_API int fsi__jt_advance(fsi__jt_tree *t, double dt, double end); /* 0: inertia is singular */
FSI_API double fsi__jt_script(const fsi__jt_joint *j, double time);  /* prescribed coordinate of a scripted joint */

/* Impulses on link l: moment about its centre, force. add: g += J_l^T (moment, force). response: y = A^-1 of that,
   which is returned. kick: u and g change; pseudo_kick: pu changes. */
FSI_API void fsi__jt_add(const fsi__jt_tree *t, int l, fsi__d3 moment, fsi__d3 force, double *g);
FSI_API void fsi__jt_solve(const fsi__jt_tree *t, const double *g, double *y); /* y = A^-1 g, scripted joints held */
FSI_API const double *fsi__jt_response(fsi__jt_tree *t, int l, fsi__d3 moment, fsi__d3 force);
FSI_API void fsi__jt_kick(fsi__jt_tree *t, int l, fsi__d3 moment, fsi__d3 force);
FSI_API void fsi__jt_pseudo_kick(fsi__jt_tree *t, int l, fsi__d3 moment, fsi__d3 force);
/* Limits lower <= q + dt qd <= upper by one impulse each of either sign. Returns the largest change of a rate. */
FSI_API double fsi__jt_relax_limits(fsi__jt_tree *t, double dt);
FSI_API void fsi__jt_warm_limits(fsi__jt_tree *t);      /* applies the impulses of the substep before */

/* Published state. begin: copies it to the step's arrays; commit: copies it back. place: its kinematics. */
FSI_API void fsi__jt_begin(fsi__jt_tree *t);
FSI_API void fsi__jt_commit(fsi__jt_tree *t);
FSI_API void fsi__jt_place(fsi__jt_tree *t, const fsi_pose *root);
FSI_API void fsi__jt_set_root_rates(fsi__jt_tree *t, fsi_vec3 velocity, fsi_vec3 angular_velocity); /* of a free root */
/* Geometry of a joint between two poses; point and axis in the world. */
FSI_API void fsi__jt_hang(fsi__jt_joint *j, const fsi_pose *parent, const fsi_pose *own, fsi_vec3 point, fsi_vec3 axis);
/* Copies a track, which replaces the one before. 0: no memory, nothing has changed. */
FSI_API int fsi__jt_set_track(fsi_context *context, fsi__jt_track *track, const double *times, const fsi_real *values,
    int count, double period);
/* Saves or loads, by the mode of st: coordinates, rates, joint forces and targets; state_scripts: which links follow a
   script. */
FSI_API void fsi__jt_state(fsi__stream *st, fsi__jt_tree *t);
FSI_API void fsi__jt_state_scripts(fsi__stream *st, fsi__jt_tree *t);
/* Consistency of a saved state: note_pose takes the pose of each link, agrees compares them with the coordinates q1. */
FSI_API void fsi__jt_note_pose(fsi__jt_tree *t, int link, fsi_pose pose);
FSI_API int fsi__jt_agrees(fsi__jt_tree *t);
FSI_API double fsi__jt_size(const fsi__jt_tree *t); /* bound of the distance between its joints, without sliding [m] */

#endif /* FSI_JOINTS_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_JOINTS_IMPLEMENTATION
#define FSI_JOINTS_IMPLEMENTATION
#endif
#ifdef FSI_JOINTS_IMPLEMENTATION
#ifndef FSI_JOINTS_IMPLEMENTATION_DONE
#define FSI_JOINTS_IMPLEMENTATION_DONE

/* The substep of a tree:

      fsi__jt_predict
          fsi__jt_forward, fsi__jt_jacobians     poses of links, J
          fsi__jt_mass                           M = sum J^T M_l J
          three times                            du about the rates u0 + du / 2
              fsi__jt_loads                      f at these rates
              fsi__jt_factor_system              A = M + dt D + dt^2 K, the first time
              fsi__jt_change                     du = A^-1 dt (f - dt K u0)
      fsi__jt_kick, fsi__jt_relax_limits         by the contact solver, many times
      fsi__jt_advance
          fsi__jt_forces                         joint_force of limits and scripts
          fsi__jt_momentum                       what a free tree's momentum is to be
          q1 += dt (u + pu); fsi__jt_forward, fsi__jt_jacobians, fsi__jt_mass
          fsi__jt_keep_momentum                  the root's rates that give this momentum */

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi.h"

FSI__STRICT_BEGIN

/* ---- >>prediction: kinematics and dynamics ----------------------------------------------------------------------- */

FSI_API void fsi__jt_place_root(fsi__jt_tree *t, const fsi_pose *pose)
{
    t->orientation[0] = pose->orientation;
    t->c[0] = fsi__d3_of(pose->position);
}

/* Poses of links from that of the root and the coordinates (forward kinematics):
      turn_l = turn_p (turn by q - q0 about the axis) rest_l
      c_l = c_p + R_p (from + axis (q - q0) of a prismatic joint) + R_l to */
static void fsi__jt_forward(fsi__jt_tree *t, const double *q)
{
    int l;
    fsi__d9_of_quat(t->orientation[0], t->turn);
    for (l = 1; l < t->view.link_count; l++) {
        const fsi__jt_joint *j = &t->link[l];
        const int p = t->parent[l], k = t->column[l];
        const double dq = k >= 0 ? q[k] - j->q0 : 0, slide = t->joint[l] == FSI_RIGID_PRISMATIC ? dq : 0;
        const fsi__d3 from = fsi__d3_madd(j->from, slide, j->axis);
        fsi_quat turn = t->orientation[p];
        if (t->joint[l] == FSI_RIGID_REVOLUTE)
            turn = fsi_quat_mul(turn, fsi_quat_from_rotation_vector(fsi__d3_real(fsi__d3_scale(j->axis, dq))));
        t->orientation[l] = fsi_quat_unit(fsi_quat_mul(turn, j->turn));
        fsi__d9_of_quat(t->orientation[l], t->turn + 9 * l);
        t->axis[l] = fsi__d9_mul(t->turn + 9 * p, j->axis);
        t->point[l] = fsi__d3_add(t->c[p], fsi__d9_mul(t->turn + 9 * p, from));
        t->c[l] = fsi__d3_add(t->point[l], fsi__d9_mul(t->turn + 9 * l, j->to));
    }
}

static double *fsi__jt_J(const fsi__jt_tree *t, int l) { return t->J + (size_t)l * 6 * (size_t)t->view.coordinates; }
FSI_API const double *fsi__jt_jacobian(const fsi__jt_tree *t, int l) { return fsi__jt_J(t, l); }

/* Column c of rows `row` .. row + 2. */
static fsi__d3 fsi__jt_column(const double *J, int n, int row, int c)
{
    return fsi__d3_make(J[row * n + c], J[(row + 1) * n + c], J[(row + 2) * n + c]);
}

static void fsi__jt_put_column(double *J, int n, int row, int c, fsi__d3 v)
{
    J[row * n + c] = v.x;
    J[(row + 1) * n + c] = v.y;
    J[(row + 2) * n + c] = v.z;
}

/* Columns of the Jacobians, from root to leaf:
      v_l = v_p + omega_p x (c_l - c_p) + (a x (c_l - P) or a) qd,   omega_l = omega_p + a qd. */
static void fsi__jt_jacobians(fsi__jt_tree *t)
{
    const int n = t->view.coordinates;
    int l, c, k;

    /* the root: J = 1; in 2D omega z, v x and v y are rows 2, 3, 4 */
    memset(t->J, 0, (size_t)t->view.link_count * 6 * (size_t)n * sizeof *t->J);
    for (k = 0; k < t->view.root; k++) t->J[(t->view.root == 6 ? k : k + 2) * n + k] = 1;

    /* links: the parent's columns moved to the link's centre, and the joint's own */
    for (l = 1; l < t->view.link_count; l++) {
        const int p = t->parent[l], revolute = t->joint[l] == FSI_RIGID_REVOLUTE;
        const fsi__d3 r = fsi__d3_sub(t->c[l], t->c[p]), a = t->axis[l];
        for (c = 0; c < n; c++) {
            fsi__d3 w = fsi__jt_column(fsi__jt_J(t, p), n, 0, c), v = fsi__jt_column(fsi__jt_J(t, p), n, 3, c);
            v = fsi__d3_add(v, fsi__d3_cross(w, r));
            if (c == t->column[l]) {
                v = fsi__d3_add(v, revolute ? fsi__d3_cross(a, fsi__d3_sub(t->c[l], t->point[l])) : a);
                if (revolute) w = fsi__d3_add(w, a);
            }
            fsi__jt_put_column(fsi__jt_J(t, l), n, 0, c, w);
            fsi__jt_put_column(fsi__jt_J(t, l), n, 3, c, v);
        }
    }
}

/* Rows `row` .. row + 2 of J_l times u. */
static fsi__d3 fsi__jt_rows_times(const fsi__jt_tree *t, int l, int row, const double *u)
{
    const int n = t->view.coordinates;
    const double *J = fsi__jt_J(t, l) + row * n;
    fsi__d3 s = fsi__d3_zero();
    int c;
    for (c = 0; c < n; c++) {
        s.x += J[c] * u[c];
        s.y += J[n + c] * u[c];
        s.z += J[2 * n + c] * u[c];
    }
    return s;
}

FSI_API fsi__d3 fsi__jt_angular(const fsi__jt_tree *t, int l, const double *u)
{
    return fsi__jt_rows_times(t, l, 0, u);
}
FSI_API fsi__d3 fsi__jt_linear(const fsi__jt_tree *t, int l, const double *u)
{
    return fsi__jt_rows_times(t, l, 3, u);
}
FSI_API fsi__d3 fsi__jt_velocity(const fsi__jt_tree *t, int l, fsi__d3 r, const double *u)
{
    return fsi__d3_add(fsi__jt_linear(t, l, u), fsi__d3_cross(fsi__jt_angular(t, l, u), r));
}

FSI_API void fsi__jt_add(const fsi__jt_tree *t, int l, fsi__d3 moment, fsi__d3 force, double *g)
{
    const int n = t->view.coordinates;
    const double *J = fsi__jt_J(t, l);
    int c;
    for (c = 0; c < n; c++)
        g[c] += J[c] * moment.x + J[n + c] * moment.y + J[2 * n + c] * moment.z + J[3 * n + c] * force.x
              + J[4 * n + c] * force.y + J[5 * n + c] * force.z;
}

/* M = sum J^T M_l J. */
FSI_API void fsi__jt_mass(fsi__jt_tree *t)
{
    const int n = t->view.coordinates;
    int l, i, k;
    memset(t->M, 0, (size_t)n * (size_t)n * sizeof *t->M);
    for (l = 0; l < t->view.link_count; l++) {
        const double *J = fsi__jt_J(t, l), m = t->mass[l];
        fsi__d9_turn(t->turn + 9 * l, t->tensor + 9 * l, t->inertia + 9 * l);
        for (i = 0; i < n; i++) {
            const fsi__d3 h = fsi__d9_mul(t->inertia + 9 * l, fsi__jt_column(J, n, 0, i));
            for (k = 0; k <= i; k++)
                t->M[i * n + k] += h.x * J[k] + h.y * J[n + k] + h.z * J[2 * n + k]
                    + m * (J[3 * n + i] * J[3 * n + k] + J[4 * n + i] * J[4 * n + k] + J[5 * n + i] * J[5 * n + k]);
        }
    }
    for (i = 0; i < n; i++) for (k = i + 1; k < n; k++) t->M[i * n + k] = t->M[k * n + i];
}

/* Accelerations of links with all qdd zero:
      alpha_l = alpha_p + omega_p x (a qd)
      acc_l = acc_p + alpha_p x r1 + omega_p x (omega_p x r1) + alpha_l x r2 + omega_l x (omega_l x r2)
   with r1 = P - c_p, r2 = c_l - P; prismatic: r1 = c_l - c_p, no r2, and Coriolis' 2 omega_p x (a qd). */
static void fsi__jt_bias(fsi__jt_tree *t, const double *u)
{
    int l;
    t->omega[0] = fsi__jt_angular(t, 0, u);
    t->bias_turn[0] = t->bias[0] = fsi__d3_zero();
    for (l = 1; l < t->view.link_count; l++) {
        const int p = t->parent[l], k = t->column[l], slides = t->joint[l] == FSI_RIGID_PRISMATIC;
        const fsi__d3 w = t->omega[p], rate = fsi__d3_scale(t->axis[l], k >= 0 ? u[k] : 0);
        const fsi__d3 r1 = fsi__d3_sub(slides ? t->c[l] : t->point[l], t->c[p]);
        const fsi__d3 r2 = slides ? fsi__d3_zero() : fsi__d3_sub(t->c[l], t->point[l]);
        fsi__d3 acc, own;
        t->omega[l] = fsi__jt_angular(t, l, u);
        t->bias_turn[l] = slides ? t->bias_turn[p] : fsi__d3_add(t->bias_turn[p], fsi__d3_cross(w, rate));
        acc = fsi__d3_add(fsi__d3_cross(t->bias_turn[p], r1), fsi__d3_cross(w, fsi__d3_cross(w, r1)));
        own = fsi__d3_cross(t->omega[l], fsi__d3_cross(t->omega[l], r2));
        own = fsi__d3_add(fsi__d3_cross(t->bias_turn[l], r2), own);
        acc = fsi__d3_add(fsi__d3_add(t->bias[p], acc), own);
        if (slides) acc = fsi__d3_madd(acc, 2, fsi__d3_cross(w, rate));
        t->bias[l] = acc;
    }
}

/* f = sum J^T ([torque - omega x I omega; force] - M_l [alpha; acc]) + joint forces - k (q - rest) - c qd. */
FSI_API void fsi__jt_loads(fsi__jt_tree *t, const double *q, const double *u)
{
    const int n = t->view.coordinates;
    int l, k;
    memset(t->f, 0, (size_t)n * sizeof *t->f);
    memset(t->K, 0, (size_t)n * sizeof *t->K);
    memset(t->D, 0, (size_t)n * sizeof *t->D);

    /* links: forces less those of the accelerations that the rates alone give */
    fsi__jt_bias(t, u);
    for (l = 0; l < t->view.link_count; l++) {
        const double *inertia = t->inertia + 9 * l;
        const fsi__d3 w = t->omega[l], gyroscopic = fsi__d3_cross(w, fsi__d9_mul(inertia, w));
        const fsi__d3 lost = fsi__d3_add(gyroscopic, fsi__d9_mul(inertia, t->bias_turn[l]));
        fsi__jt_add(t, l, fsi__d3_sub(t->torque[l], lost), fsi__d3_madd(t->force[l], -t->mass[l], t->bias[l]), t->f);
    }

    /* joints: springs, dampers, the caller's force */
    for (l = 0; l < t->view.link_count; l++) if ((k = t->column[l]) >= 0) {
        const fsi__jt_joint *j = &t->link[l];
        t->K[k] = j->stiffness;
        t->D[k] = j->damping;
        t->f[k] += j->force - j->stiffness * (q[k] - j->rest) - j->damping * u[k];
    }
}

FSI_API void fsi__jt_solve(const fsi__jt_tree *t, const double *g, double *y)
{
    const int n = t->view.coordinates;
    int k;
    for (k = 0; k < n; k++) y[k] = t->scripted[k] ? 0 : g[k];
    fsi_dense_cholesky_solve(n, t->L, y);
}

/* A = M + dt D + dt^2 K in L, factored by fsi_dense_cholesky; rows and columns of scripted joints are those of the
   identity. */
static int fsi__jt_factor_system(fsi__jt_tree *t, double dt)
{
    const int n = t->view.coordinates;
    int i, k;
    memcpy(t->L, t->M, (size_t)n * (size_t)n * sizeof *t->L);
    for (k = 0; k < n; k++) {
        t->L[k * n + k] += dt * (t->D[k] + dt * t->K[k]);
        for (i = 0; i < n && t->scripted[k]; i++) t->L[i * n + k] = t->L[k * n + i] = i == k;
    }
    return fsi_dense_cholesky(NULL, n, t->L) == FSI_OK;
}

FSI_API int fsi__jt_factor_mass(fsi__jt_tree *t) { return fsi__jt_factor_system(t, 0); }

/* Value of a track: cubic between keys, with zero slopes at them, q = a + (b - a) s^2 (3 - 2 s). */
static double fsi__jt_track_at(const fsi__jt_track *k, double time)
{
    int i = 0;
    double s;
    if (k->period > 0) time -= floor(time / k->period) * k->period;
    if (time <= k->time[0]) return (double)k->value[0];
    while (i + 1 < k->count && k->time[i + 1] <= time) i++;
    if (i + 1 == k->count) return (double)k->value[i];
    s = (time - k->time[i]) / (k->time[i + 1] - k->time[i]);
    return (double)k->value[i] + ((double)k->value[i + 1] - (double)k->value[i]) * s * s * (3 - 2 * s);
}

/* A period ends with the track's last key and starts with its first. */
FSI_API double fsi__jt_script(const fsi__jt_joint *j, double time)
{
    return j->script == FSI__JT_TRACK ? fsi__jt_track_at(&j->track, time) : j->target;
}

/* rhs = A^-1 of the change of the rates in the step, with the loads f, which were taken at the rates v. The known
   changes of scripted joints stand on the right side. */
static void fsi__jt_change(fsi__jt_tree *t, double dt, double end, const double *v)
{
    const int n = t->view.coordinates;
    int i, k, l;
    for (k = 0; k < n; k++) t->rhs[k] = dt * (t->f[k] + t->D[k] * (v[k] - t->u0[k]) - dt * t->K[k] * t->u0[k]);
    for (l = 0; l < t->view.link_count; l++) if ((k = t->column[l]) >= 0 && t->scripted[k]) {
        t->rhs[k] = (fsi__jt_script(&t->link[l], end) - t->q1[k]) / dt - t->u0[k];
        for (i = 0; i < n; i++) if (!t->scripted[i]) t->rhs[i] -= t->M[i * n + k] * t->rhs[k];
    }
    fsi_dense_cholesky_solve(n, t->L, t->rhs);
}

/* Rates without contacts, implicit in springs and dampers:
      (M + dt D + dt^2 K) du = dt (f - dt K u),   u += du                                                     (1)
   Gyroscopic forces are taken at u + du/2, by three passes of a fixed point: then rates and coordinates are staggered
   by half a step (leapfrog), and energy does not drift as it does with forces at u (a double pendulum lost a third of
   its energy in a minute). */
FSI_API int fsi__jt_predict(fsi__jt_tree *t, double dt, double end)
{
    const int n = t->view.coordinates;
    int k, pass;
    fsi__jt_forward(t, t->q1);
    fsi__jt_jacobians(t);
    fsi__jt_mass(t);
    memset(t->g, 0, (size_t)n * sizeof *t->g);

    /* pu holds u + du/2 of the pass before */
    memcpy(t->pu, t->u0, (size_t)n * sizeof *t->pu);
    for (pass = 0; pass < 3; pass++) {
        fsi__jt_loads(t, t->q1, t->pu);
        if (pass == 0 && !fsi__jt_factor_system(t, dt)) return 0;
        fsi__jt_change(t, dt, end, t->pu);
        for (k = 0; k < n; k++) t->pu[k] = t->u0[k] + 0.5 * t->rhs[k];
    }
    for (k = 0; k < n; k++) t->u[k] = t->u0[k] + t->rhs[k];
    memset(t->pu, 0, (size_t)n * sizeof *t->pu);
    return 1;
}

/* ---- >>impulses -------------------------------------------------------------------------------------------------- */

FSI_API const double *fsi__jt_response(fsi__jt_tree *t, int l, fsi__d3 moment, fsi__d3 force)
{
    memset(t->rhs, 0, (size_t)t->view.coordinates * sizeof *t->rhs);
    fsi__jt_add(t, l, moment, force, t->rhs);
    fsi__jt_solve(t, t->rhs, t->y);
    return t->y;
}

FSI_API void fsi__jt_kick(fsi__jt_tree *t, int l, fsi__d3 moment, fsi__d3 force)
{
    const double *y = fsi__jt_response(t, l, moment, force);
    int k;
    for (k = 0; k < t->view.coordinates; k++) {
        t->g[k] += t->rhs[k];
        t->u[k] += y[k];
    }
}

FSI_API void fsi__jt_pseudo_kick(fsi__jt_tree *t, int l, fsi__d3 moment, fsi__d3 force)
{
    const double *y = fsi__jt_response(t, l, moment, force);
    int k;
    for (k = 0; k < t->view.coordinates; k++) t->pu[k] += y[k];
}

/* y = A^-1 times `size` at coordinate k. */
static void fsi__jt_unit_response(fsi__jt_tree *t, int k, double size)
{
    memset(t->rhs, 0, (size_t)t->view.coordinates * sizeof *t->rhs);
    t->rhs[k] = size;
    fsi__jt_solve(t, t->rhs, t->y);
}

FSI_API double fsi__jt_relax_limits(fsi__jt_tree *t, double dt)
{
    const int n = t->view.coordinates;
    double most = 0, low, high, rate, j;
    int l, i, k;
    for (l = 0; l < t->view.link_count; l++) {
        if ((k = t->column[l]) < 0 || !t->link[l].limited || t->scripted[k]) continue;
        fsi__jt_unit_response(t, k, 1);

        /* rates that reach the limits; beyond a limit: a fifth of the way back in a step */
        low = (t->link[l].lower - t->q1[k]) / dt;
        high = (t->link[l].upper - t->q1[k]) / dt;
        if (low > 0) low *= 0.2;
        if (high < 0) high *= 0.2;

        /* the impulse that takes the rate, without the impulse so far, to the nearer limit */
        rate = t->u[k] - t->hold1[k] * t->y[k];
        j = rate < low ? (low - rate) / t->y[k] : (rate > high ? (high - rate) / t->y[k] : 0);
        rate = j - t->hold1[k];
        t->hold1[k] = j;
        t->g[k] += rate;
        for (i = 0; i < n; i++) t->u[i] += rate * t->y[i];
        if (fabs(rate * t->y[k]) > most) most = fabs(rate * t->y[k]);
    }
    return most;
}

FSI_API void fsi__jt_warm_limits(fsi__jt_tree *t)
{
    const int n = t->view.coordinates;
    int i, k;
    for (k = 0; k < n; k++) {
        if (t->hold1[k] == 0 || t->scripted[k]) { t->hold1[k] = 0; continue; }
        fsi__jt_unit_response(t, k, t->hold1[k]);
        for (i = 0; i < n && fabs(t->y[i]) <= FSI__JT_WARM; i++) {}
        if (i < n) { t->hold1[k] = 0; continue; }
        t->g[k] += t->hold1[k];
        for (i = 0; i < n; i++) t->u[i] += t->y[i];
    }
}

/* ---- >>advance --------------------------------------------------------------------------------------------------- */

/* Generalised forces of scripts, by the residual of their coordinate's equation, and of limits, by their impulses. */
static void fsi__jt_forces(fsi__jt_tree *t, double dt)
{
    const int n = t->view.coordinates;
    int i, k;
    for (k = 0; k < n; k++) {
        double s = 0;
        for (i = 0; i < n; i++) s += t->M[k * n + i] * (t->u[i] - t->u0[i]);
        t->jforce1[k] = t->scripted[k] ? (s - t->g[k]) / dt - t->f[k] : t->hold1[k] / dt;
    }
}

/* The momentum of a free tree at the end of the step, about the root's centre at its start: the root's rows of M u are
   moment and momentum about that centre; external forces and the impulses of contacts change them. */
static void fsi__jt_momentum(fsi__jt_tree *t, double dt, double *h)
{
    const int n = t->view.coordinates, r = t->view.root;
    int i, k, l;
    memset(t->rhs, 0, (size_t)n * sizeof *t->rhs);
    for (l = 0; l < t->view.link_count && r > 0; l++) fsi__jt_add(t, l, t->torque[l], t->force[l], t->rhs);
    for (i = 0; i < r; i++) {
        h[i] = dt * t->rhs[i] + t->g[i];
        for (k = 0; k < n; k++) h[i] += t->M[i * n + k] * t->u0[k];
    }
}

/* The root's rates that give the tree the momentum h in its new position. M, J: there; c: the root's old centre. */
static int fsi__jt_keep_momentum(fsi__jt_tree *t, const double *h, fsi__d3 c)
{
    const int n = t->view.coordinates, r = t->view.root;
    const fsi__d3 p = r == 6 ? fsi__d3_make(h[3], h[4], h[5]) : fsi__d3_make(h[1], h[2], 0);
    const fsi__d3 shift = fsi__d3_cross(fsi__d3_sub(c, t->c[0]), p);
    double a[36] = { 0 }, b[6] = { 0 };
    int i, k;

    /* rows of the root: M_rr u_r = h - M_rj u_j */
    for (i = 0; i < r; i++) {
        b[i] = h[i];
        for (k = r; k < n; k++) b[i] -= t->M[i * n + k] * t->u[k];
        for (k = 0; k < r; k++) a[i * r + k] = t->M[i * n + k];
    }

    /* the moment about the new centre */
    if (r == 6) { b[0] += shift.x; b[1] += shift.y; b[2] += shift.z; }
    else b[0] += shift.z;
    if (fsi_dense_cholesky(NULL, r, a) != FSI_OK) return 0;
    fsi_dense_cholesky_solve(r, a, b);
    for (i = 0; i < r; i++) t->u[i] = b[i];
    return 1;
}

FSI_API int fsi__jt_advance(fsi__jt_tree *t, double dt, double end)
{
    const fsi__d3 old = t->c[0];
    double h[6];
    fsi__d3 v, turn;
    int k, l;
    fsi__jt_forces(t, dt);
    fsi__jt_momentum(t, dt, h);

    /* the root by its velocities, split impulses included */
    if (t->view.root > 0) {
        v = fsi__d3_madd(fsi__jt_linear(t, 0, t->u), 1, fsi__jt_linear(t, 0, t->pu));
        turn = fsi__d3_madd(fsi__jt_angular(t, 0, t->u), 1, fsi__jt_angular(t, 0, t->pu));
        t->c[0] = fsi__d3_madd(t->c[0], dt, v);
        t->orientation[0] = fsi_quat_integrate(t->orientation[0], fsi__d3_real(turn), (fsi_real)dt);
    }

    /* the joints */
    for (l = 0; l < t->view.link_count; l++) if ((k = t->column[l]) >= 0) {
        if (t->scripted[k]) t->q1[k] = fsi__jt_script(&t->link[l], end);
        else t->q1[k] += dt * (t->u[k] + t->pu[k]);
    }
    fsi__jt_forward(t, t->q1);
    fsi__jt_jacobians(t);
    if (t->view.root == 0) return 1;
    fsi__jt_mass(t);
    return fsi__jt_keep_momentum(t, h, old);
}

FSI__COLD_BEGIN

/* ---- >>published state: set, saved, checked ---------------------------------------------------------------------- */

FSI_API void fsi__jt_begin(fsi__jt_tree *t)
{
    const int n = t->view.coordinates;
    int k;
    for (k = 0; k < n; k++) {
        t->q1[k] = (double)t->q[k];
        t->u0[k] = t->u[k] = (double)t->rate[k];
        t->hold1[k] = t->hold[k];
    }
}

FSI_API void fsi__jt_commit(fsi__jt_tree *t)
{
    const int n = t->view.coordinates;
    int k;
    for (k = 0; k < n; k++) {
        t->q[k] = (fsi_real)t->q1[k];
        t->rate[k] = (fsi_real)t->u0[k];
        t->joint_force[k] = (fsi_real)t->jforce1[k];
        t->hold[k] = t->hold1[k];
    }
    for (k = 0; k < t->view.root; k++) t->q[k] = 0;
}

/* Kinematics of the published coordinates. */
FSI_API void fsi__jt_place(fsi__jt_tree *t, const fsi_pose *root)
{
    int k;
    for (k = 0; k < t->view.coordinates; k++) {
        t->q1[k] = (double)t->q[k];
        t->u[k] = (double)t->rate[k];
    }
    fsi__jt_place_root(t, root);
    fsi__jt_forward(t, t->q1);
    fsi__jt_jacobians(t);
}

/* The rates of a free root. */
FSI_API void fsi__jt_set_root_rates(fsi__jt_tree *t, fsi_vec3 velocity, fsi_vec3 angular_velocity)
{
    const fsi_vec3 v = velocity, o = angular_velocity;
    if (t->view.root == 6) {
        t->rate[0] = o.x; t->rate[1] = o.y; t->rate[2] = o.z;
        t->rate[3] = v.x; t->rate[4] = v.y; t->rate[5] = v.z;
    } else if (t->view.root == 3) {
        t->rate[0] = o.z; t->rate[1] = v.x; t->rate[2] = v.y;
    }
}

FSI_API void fsi__jt_hang(fsi__jt_joint *j, const fsi_pose *parent, const fsi_pose *own, fsi_vec3 point, fsi_vec3 axis)
{
    const fsi__d3 x = fsi__d3_of(point);
    double a[9], b[9];
    fsi__d9_of_quat(parent->orientation, a);
    fsi__d9_of_quat(own->orientation, b);
    j->axis = fsi__d9_mul_t(a, fsi__d3_unit(fsi__d3_of(axis)));
    j->from = fsi__d9_mul_t(a, fsi__d3_sub(x, fsi__d3_of(parent->position)));
    j->to = fsi__d9_mul_t(b, fsi__d3_sub(fsi__d3_of(own->position), x));
    j->turn = fsi_quat_mul(fsi_quat_conj(parent->orientation), own->orientation);
}

static void fsi__jt_free_track(fsi_context *context, fsi__jt_track *k)
{
    fsi__free(context, k->time, (size_t)k->count, sizeof *k->time);
    fsi__free(context, k->value, (size_t)k->count, sizeof *k->value);
}

FSI_API int fsi__jt_set_track(fsi_context *context, fsi__jt_track *track, const double *times, const fsi_real *values,
    int count, double period)
{
    fsi__jt_track k;
    k.count = count;
    k.period = period;
    k.time = (double *)fsi__alloc(context, (size_t)count, sizeof *k.time);
    k.value = k.time ? (fsi_real *)fsi__alloc(context, (size_t)count, sizeof *k.value) : NULL;
    if (!k.value) {
        fsi__free(context, k.time, (size_t)count, sizeof *k.time);
        return 0;
    }
    memcpy(k.time, times, (size_t)count * sizeof *times);
    memcpy(k.value, values, (size_t)count * sizeof *values);
    fsi__jt_free_track(context, track);
    *track = k;
    return 1;
}

/* How joints are scripted; comes first in a state, as it decides whether a world can load it. */
FSI_API void fsi__jt_state_scripts(fsi__stream *st, fsi__jt_tree *t)
{
    int l;
    for (l = 0; l < t->view.link_count; l++) {
        fsi__bytes(st, &t->link[l].script, sizeof t->link[l].script);
        if (t->column[l] >= 0) t->scripted[t->column[l]] = (unsigned char)(t->link[l].script != 0);
    }
}

FSI_API void fsi__jt_state(fsi__stream *st, fsi__jt_tree *t)
{
    const size_t n = (size_t)t->view.coordinates;
    int l;
    fsi__bytes(st, t->q, n * sizeof *t->q);
    fsi__bytes(st, t->rate, n * sizeof *t->rate);
    fsi__bytes(st, t->joint_force, n * sizeof *t->joint_force);
    fsi__bytes(st, t->hold, n * sizeof *t->hold);
    for (l = 0; l < t->view.link_count; l++) {
        fsi__bytes(st, &t->link[l].target, sizeof(double));
        fsi__bytes(st, &t->link[l].force, sizeof(double));
    }
}

/* How far joints of a tree can be from each other, without slides [m]. */
FSI_API double fsi__jt_size(const fsi__jt_tree *t)
{
    double size = 0;
    int l;
    for (l = 1; l < t->view.link_count; l++) size += fsi__d3_norm(t->link[l].from) + fsi__d3_norm(t->link[l].to);
    return size;
}

/* Notes the pose of a link in a state that is being checked, in the tree's scratch. */
FSI_API void fsi__jt_note_pose(fsi__jt_tree *t, int link, fsi_pose pose)
{
    t->bias[link] = fsi__d3_of(pose.position);
    if (link > 0) return;
    t->c[0] = t->bias[0];
    t->orientation[0] = pose.orientation;
}

/* Do the links' positions agree with the coordinates q1? Within 1 % of the tree's size, which is more than rounding. */
FSI_API int fsi__jt_agrees(fsi__jt_tree *t)
{
    const double size = fsi__jt_size(t);
    int l;
    fsi__jt_forward(t, t->q1);
    for (l = 1; l < t->view.link_count; l++) {
        const double slide = t->column[l] >= 0 ? fabs(t->q1[t->column[l]]) : 0;
        const double most = 0.01 * size + 64 * (double)FSI_REAL_EPS * (fsi__d3_norm(t->bias[l]) + slide * (1 + size));
        if (!(fsi__d3_norm(fsi__d3_sub(t->c[l], t->bias[l])) <= most)) return 0;
    }
    return 1;
}

/* ---- >>tree memory ----------------------------------------------------------------------------------------------- */

/* Lays out a tree's arrays in its block. */
static void fsi__jt_lay_out(fsi__jt_tree *t, size_t links, size_t n)
{
    fsi__arena *a = &t->memory;
    double **const by_coordinate[] = { &t->hold, &t->q1, &t->u0, &t->u, &t->pu, &t->g, &t->hold1, &t->jforce1, &t->f,
                                       &t->K, &t->D, &t->rhs, &t->y };
    double **const by_link[] = { &t->tensor, &t->turn, &t->inertia };
    fsi__d3 **const vectors[] = { &t->force, &t->torque, &t->c, &t->axis, &t->point, &t->omega, &t->bias_turn,
                                  &t->bias };
    const size_t m = n ? n : 1;
    size_t k;

    /* the tree itself and its published state */
    t->body = (int *)fsi__take(a, links, sizeof *t->body);
    t->parent = (int *)fsi__take(a, links, sizeof *t->parent);
    t->column = (int *)fsi__take(a, links, sizeof *t->column);
    t->joint = (unsigned char *)fsi__take(a, links, 1);
    t->scripted = (unsigned char *)fsi__take(a, m, 1);
    t->link = (fsi__jt_joint *)fsi__take(a, links, sizeof *t->link);
    t->mass = (double *)fsi__take(a, links, sizeof(double));
    t->q = (fsi_real *)fsi__take(a, m, sizeof *t->q);
    t->rate = (fsi_real *)fsi__take(a, m, sizeof *t->rate);
    t->joint_force = (fsi_real *)fsi__take(a, m, sizeof *t->joint_force);

    /* numbers of a step */
    for (k = 0; k < sizeof by_coordinate / sizeof *by_coordinate; k++)
        *by_coordinate[k] = (double *)fsi__take(a, m, sizeof(double));
    for (k = 0; k < sizeof by_link / sizeof *by_link; k++)
        *by_link[k] = (double *)fsi__take(a, 9 * links, sizeof(double));
    for (k = 0; k < sizeof vectors / sizeof *vectors; k++)
        *vectors[k] = (fsi__d3 *)fsi__take(a, links, sizeof(fsi__d3));
    t->J = (double *)fsi__take(a, 6 * m * links, sizeof(double));
    t->M = (double *)fsi__take(a, m * m, sizeof(double));
    t->L = (double *)fsi__take(a, m * m, sizeof(double));
    t->orientation = (fsi_quat *)fsi__take(a, links, sizeof *t->orientation);
}

static void fsi__jt_publish(fsi__jt_tree *t)
{
    t->view.body = t->body;
    t->view.parent = t->parent;
    t->view.joint = t->joint;
    t->view.column = t->column;
    t->view.scripted = t->scripted;
    t->view.q = t->q;
    t->view.rate = t->rate;
    t->view.joint_force = t->joint_force;
    t->view.impl = t;
}

FSI_API fsi__jt_tree *fsi__jt_create(fsi_context *context, int links, int n)
{
    fsi__jt_tree *t = (fsi__jt_tree *)fsi__alloc(context, 1, sizeof *t), measure;
    if (!t) return NULL;
    memset(&measure, 0, sizeof measure);
    fsi__jt_lay_out(&measure, (size_t)links, (size_t)n);
    if (!fsi__arena_reserve(context, &t->memory, measure.memory.used)) {
        fsi__free(context, t, 1, sizeof *t);
        return NULL;
    }
    fsi__jt_lay_out(t, (size_t)links, (size_t)n);
    t->view.link_count = links;
    t->view.coordinates = n;
    fsi__jt_publish(t);
    return t;
}

FSI_API void fsi__jt_destroy(fsi_context *context, fsi__jt_tree *t)
{
    int l;
    for (l = 0; t && l < t->view.link_count; l++) fsi__jt_free_track(context, &t->link[l].track);
    if (t) fsi__arena_free(context, &t->memory);
    fsi__free(context, t, 1, sizeof *t);
}

FSI__COLD_END
FSI__STRICT_END

#endif /* once */
#endif /* implementation */
