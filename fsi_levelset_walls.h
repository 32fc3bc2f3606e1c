/* fsi_levelset_walls.h - walls of a level-set liquid: obstacles that cut its grid, and walls that release it.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_levelset.h includes this file. Its front page says how a liquid gets an obstacle.

   WHAT IT DOES
      Closed meshes that rest, move, or are fixed to bodies cut faces and cells of the grid. The projection sees the
      fractions of faces that they cover and gives them impulses; level set, velocities and curvature are extrapolated
      into them. At the rim of the liquid, where air can get between, walls release liquid that they would pull at.
      docs/levelset.md derives both.
   WHAT IS IN HERE (search for >>)
      >>obstacle: its desc;  >>stages  for fsi's own headers, not for you;  then >>obstacles  >>walls that let go
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
   PRECISION: fields in fsi_real, impulses and distances along walls in double.
*/
#ifndef FSI_LEVELSET_WALLS_H
#define FSI_LEVELSET_WALLS_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_levelset_state.h"
#include "fsi_obstacle.h"

/* ---- >>obstacle: its desc ---------------------------------------------------------------------------------------- */

/* A CLOSED mesh that the liquid cannot enter: referenced, not copied; mesh and body must outlive the simulator or be
   removed first. It keeps liquid out, or in when it was made as a container. Liquid may pass through parts thinner than
   a cell. Every step sweeps it from where the last step left it:
      by its mesh     to where its mesh is when the step is called; move it with fsi_mesh_move or fsi_mesh_move_rigid,
                      by less than 60 degrees a step (corners move in straight lines)
      by a body       PRESCRIBED: to body->end, on an arc, by less than 180 degrees a step. COUPLED: where liquid,
                      body->force and body->torque take it; liquid and body are solved together, which is stable for
                      bodies much lighter than the liquid too. The outputs of fsi_body are written when the step has
                      succeeded, for COUPLED also `end`, where the step left it. Whoever integrates the pose himself
                      may come out slightly elsewhere: the next step begins there. Several obstacles may be fixed to
                      one PRESCRIBED body, one to a COUPLED one. 2D: bodies turn about z only; those that are turned
                      otherwise, COUPLED ones too whose angular velocity or torque is not along z or whose inertia has
                      products with z, as they stand, are refused (ARGUMENT).
   Substeps move obstacles along. Where obstacles meet, the nearest surface counts. */
typedef struct fsi_levelset_obstacle_desc {
    uint32_t cookie;
    const fsi_mesh *mesh;
    fsi_body *body;          /* default NULL. The mesh is fixed to body->pose as both are when it is added; the mesh is
                                not read after that */
    int no_slip;             /* where desc.viscosity > 0 the liquid moves with the wall, else it slides; default 1. The
                                wall is where the mesh is: to 0.03 dx where it lies along the grid, to 0.1 dx where it
                                is tilted */
    fsi_real contact_angle;  /* through the liquid [degrees], 10 to 170; default 90 */
} fsi_levelset_obstacle_desc;
FSI_API fsi_levelset_obstacle_desc fsi_levelset_default_obstacle_desc(void); /* fills every field; set mesh */

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

#define FSI__LS_FLUSH 0.02 /* [dx] a surface of the liquid along a solid and nearer than this touches it */

/* The point of a mesh nearest to one of the faces that it covers; face -2: not computed yet. */
typedef struct fsi__ls_foot {
    int face;
    fsi_real bary[3];
} fsi__ls_foot;

/* A solid in the liquid. No fsi__obstacle of fsi_obstacle.h: that one serves particles, face by face, and only sweeps
   forward; this one cuts the grid, and stands at any fraction of the call's motion, as trials are taken back. */
typedef struct fsi__ls_obstacle {
    fsi_levelset_obstacle_desc desc;
    int id, vertex_count;
    int moves;                     /* in this call */
    fsi_mesh *shadow;              /* the mesh at its place in the trial: */
    fsi_pose now;                  /* with a body: its pose there */
    double stands;                 /* without: the fraction of the call's motion */
    fsi_vec3 *rest;                /* vertex_count: with a body in its axes, else where the last step left them [m] */
    double reach;                  /* with a body: of the farthest vertex from its centre [m] */
    fsi_pose at;                   /* of its body, where the last step left it */
    fsi_body work;                 /* copy of its body; COUPLED: moves along; PRESCRIBED: sweeps from `at` */
    fsi_grid_faces *faces;         /* that it covers */
    int stale_faces;               /* they must be found again */
    fsi_real *velocity;            /* of the solid at its faces, normal to them [m/s] */
    fsi__ls_foot *foot;            /* without a body: of its faces */
    int velocity_capacity;         /* of these two */
    double slope;                  /* grad phi . n at it, n out of the solid: cosine of the contact angle */
    fsi_vec3 impulse, moment, spin;/* by the liquid in this call; moment about the world's origin, spin about the body's
                                      centre [N s, N m s] */
    fsi_vec3 carry[2], trial_carry[2]; /* time_order 2: impulse and spin by `carried`, the pressure kept for the
                                          next substep */
    fsi_vec3 force, torque;        /* means over the last step */
} fsi__ls_obstacle;

/* Faces of one obstacle, a task some of them. */
typedef struct fsi__ls_face_job {
    const fsi__ls_run *run;
    fsi__ls_obstacle *o;
} fsi__ls_face_job;

/* A face of a wall that air can reach. */
typedef struct fsi__ls_rim {
    int cell, face, side, let_go; /* side: of the cell, where the solid is */
    int obstacle, number;         /* whose face it is, and which of its faces; -1: a wall of the box */
    double angle;                 /* of contact [degrees] */
    double start, stop;           /* velocity at the face before the projection; its part normal to the solid, which the
                                     projection stops unless the wall releases the liquid */
    double pull, force;           /* acceleration by gravity and desc.acceleration: its normal part, its magnitude */
    double solid;                 /* velocity of the solid at the face, as the last solve left it */
} fsi__ls_rim;

FSI_FN int fsi__ls_is_coupled(const fsi__ls_obstacle *o) { return o->desc.body && o->work.mode == FSI_BODY_COUPLED; }

FSI_FN int fsi__ls_face_axis(const fsi_grid_faces *f, int k) { return k < f->first[1] ? 0 : (k < f->first[2] ? 1 : 2); }

/* 1: the wall or obstacle at the face below cell e has released the liquid. */
FSI_FN int fsi__ls_has_let_go(const fsi__ls_run *run, int e, int axis)
{
    return run->released > 0 && run->m->let_go[e] >> axis & 9;
}

/* Distance to solids for fsi_grid_volumes. */
FSI_FN const fsi_field *fsi__ls_psi(const fsi__ls_impl *m) { return m->obstacle_count > 0 ? m->psi : NULL; }

/* Fraction of a cell that is no solid. */
FSI_FN double fsi__ls_clear_share(const fsi__ls_run *run, size_t e)
{
    const double share = run->m->obstacle_count > 0 ? 0.5 + (double)run->m->psi->value[e] / (double)run->grid->dx : 1;
    return share > 1 ? 1 : (share > 0 ? share : 0);
}

/* An obstacle, in the order of flow.solids. */
typedef struct fsi__ls_solid {
    int id;
    fsi_body *body;               /* NULL: none */
    const fsi_grid_faces *faces;  /* that it covers */
    fsi_vec3 center;              /* of the body, where the trial has it */
    fsi_vec3 impulse, spin;       /* by the liquid in this call; spin about the body's centre [N s, N m s] */
} fsi__ls_solid;

/* Bodies and meshes as they are at the beginning of a call that lasts dt seconds. */
FSI_API void fsi__ls_begin_obstacles(fsi__ls_run *run);
/* Before the first projection of a substep: accelerates bodies by all forces but the liquid's. */
FSI_API void fsi__ls_push_bodies(fsi__ls_run *run);
/* Speed of the fastest point of an obstacle [m/s]. */
FSI_API fsi_status fsi__ls_obstacle_speed(const fsi__ls_run *run, double *fastest);
/* Runs a loop over the obstacle's faces that takes `work` nanoseconds at least for one: fsi__parallel_work. */
FSI_API void fsi__ls_run_faces(fsi__ls_face_job *job, int grain, double work, fsi__range_fn *fn);
/* Such a loop: their velocities. */
FSI_API void fsi__ls_face_velocities(void *arg, int chunk, int begin, int end);
/* Checks a body, or NULL, for use in a step; `self`: number of the obstacle that it carries. */
FSI_API fsi_status fsi__ls_check_body(const fsi_levelset *s, const fsi_body *body, int id, int self,
    const char *function);
FSI_API fsi_status fsi__ls_check_bodies(const fsi_levelset *s, const char *function); /* those of all obstacles */
/* Marks as out of date what was made for other blocks than the present ones. Called before a call ends too: removed
   blocks may come back. */
FSI_API void fsi__ls_notice_blocks(fsi__ls_impl *m, const fsi_grid *g);
/* psi = the smallest distance to any obstacle, owner the number of that obstacle. */
FSI_API void fsi__ls_find_solids(fsi__ls_run *run);
/* Finds the faces that each obstacle covers. */
FSI_API fsi_status fsi__ls_find_faces(fsi__ls_run *run);
/* Adds the obstacles to flow, as solids of the pressure solver. */
FSI_API void fsi__ls_offer_solids(fsi__ls_run *run, fsi_pressure_flow *flow);
/* time_order 2: gives obstacles, before the last projection, their part of the impulse that velocities carry along;
   without it momentum would be lost. */
FSI_API void fsi__ls_carry_obstacles(fsi__ls_run *run, double weight);
/* sum: total fraction of each face across `axis` covered by obstacles, at least 1; written for covered faces only. */
FSI_API void fsi__ls_add_shares(const fsi__ls_run *run, int axis, fsi_real *sum);
/* After a substep: impulses on obstacles of the pressure carried to the next substep, as fsi_pressure_solid counts
   them. */
FSI_API void fsi__ls_keep_obstacles(fsi__ls_run *run);
/* Adds the projection's impulses to obstacles. */
FSI_API void fsi__ls_take_impulses(fsi__ls_run *run);
/* Faces of axis run->axis that are all solid become unknown: velocities are extrapolated into them. */
FSI_API void fsi__ls_forget_solid_faces(const fsi__ls_run *run);
/* Velocities inside solids: extrapolated, with the normal part of the solid; where liquid sticks, the solid's. */
FSI_API void fsi__ls_slip(fsi__ls_run *run);
/* For blocks: curvature inside a solid is that of the cell opposite, as the extrapolated phi does not give it. */
FSI_API void fsi__ls_extend_curvature(void *arg, int chunk, int begin, int end);
/* After a fill, or when solids have changed: removes the surface of next_phi where liquid is flush with a solid. Beside
   its rim phi is the distance to that surface until redistancing without it: then phi continues straight. */
FSI_API fsi_status fsi__ls_wet_solids(fsi__ls_run *run);
/* After advection: moves obstacles, and extrapolates next_phi into them. */
FSI_API fsi_status fsi__ls_enter_solids(fsi__ls_run *run);
/* Mask of the cells inside obstacles, which belong to no component; NULL: there are no obstacles. */
FSI_API const unsigned char *fsi__ls_mask(fsi__ls_run *run);
/* Extrapolates phi beyond walls of the box with the slope of the contact angle. box: gathered with one cell around. */
FSI_API void fsi__ls_tilt_walls(const fsi__ls_run *run, int b, fsi_real *box);

/* Marks the faces that obstacles cover, bit a of an entry: axis a. */
FSI_API void fsi__ls_mark_covered_faces(const fsi__ls_run *run, unsigned char *covered);
/* Finds the faces of walls that air can reach: those may release liquid. */
FSI_API fsi_status fsi__ls_find_rims(fsi__ls_run *run);
/* Where a gap opens by more than a tenth of a cell in a substep, the surface leaves the solid, at the nearest cell
   centre outside of it: the grid does not resolve less. */
FSI_API void fsi__ls_open_gaps(fsi__ls_run *run);

FSI_API int fsi__ls_solids(const fsi_levelset *s);                    /* number of obstacles */
FSI_API fsi__ls_solid fsi__ls_solid_of(const fsi_levelset *s, int k); /* k: 0 to fsi__ls_solids - 1 */
/* Sets a COUPLED body that another solver moves: velocity [m/s], spin [rad/s], pose at the end of the substep; pose
   NULL: unchanged. */
FSI_API void fsi__ls_set_body(fsi__ls_run *run, int k, fsi_vec3 velocity, fsi_vec3 spin, const fsi_pose *pose);

/* Largest speed of a point of a body, `reach` [m] from its centre at most, without overflow [m/s]. */
FSI_API double fsi__ls_fastest(fsi_vec3 linear, fsi_vec3 angular, double reach);

/* Solves the flow of fsi__ls_open_projection for the liquid alone, with walls that release liquid. */
FSI_API fsi_status fsi__ls_solve_pressure(fsi__ls_run *run, fsi_pressure_flow *flow);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_LEVELSET_WALLS_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_LEVELSET_WALLS_IMPLEMENTATION
#define FSI_LEVELSET_WALLS_IMPLEMENTATION
#endif
#ifdef FSI_LEVELSET_WALLS_IMPLEMENTATION
#ifndef FSI_LEVELSET_WALLS_IMPLEMENTATION_DONE
#define FSI_LEVELSET_WALLS_IMPLEMENTATION_DONE

/* In a substep, names without their fsi__ls_:

      before the first projection   push_bodies: forces other than the liquid's
      open_projection               find_solids: psi; find_faces; offer_solids; find_rims: where walls may release
      solve_pressure                fsi_pressure_project; judge_rims, let_go
      close_projection              take_impulses; slip: velocities inside solids
      advect                        open_gaps; enter_solids: obstacles move, phi is extrapolated into them */

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_levelset_state.h"
#include "fsi_obstacle.h"

FSI__STRICT_BEGIN

FSI_API fsi_levelset_obstacle_desc fsi_levelset_default_obstacle_desc(void)
{
    fsi_levelset_obstacle_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('o', fsi_levelset_obstacle_desc);
    d.no_slip = 1;
    d.contact_angle = 90;
    return d;
}

/* ---- >>obstacles ------------------------------------------------------------------------------------------------- */

/* Solids cut the grid twice: faces by the fraction that they cover, for the pressure; cells by psi, the distance to the
   nearest solid, negative inside: volumes count the fraction clamp(1/2 + psi/dx, 0, 1) of a cell. Level set and
   velocities are continued into solids, for the interpolation beside them:

       psi > 0           -dx < psi < 0            psi < -dx                            psi < -depth
       liquid and air    may have open faces      no flow; phi and u continued         air */

static int fsi__ls_same_pose(const fsi_pose *a, const fsi_pose *b) { return memcmp(a, b, sizeof *a) == 0; }

/* Moves an obstacle to its place after a fraction of the call's motion. */
static void fsi__ls_stand(fsi__ls_impl *m, fsi__ls_obstacle *o, double share)
{
    const fsi_pose pose = fsi__ls_is_coupled(o) ? o->work.pose : fsi_body_pose_at(&o->work, (fsi_real)share);
    if (o->desc.body ? fsi__ls_same_pose(&pose, &o->now) : !(o->stands < share) && !(o->stands > share)) return;
    o->now = pose;
    o->stands = share;
    if (o->desc.body) fsi__mesh_follow_rigid(o->shadow, o->rest, pose, pose);
    else if (!o->moves) fsi__mesh_follow(o->shadow, o->rest, o->rest, 0, 0);
    else fsi__mesh_follow(o->shadow, o->rest, o->desc.mesh->vertices, (fsi_real)share, (fsi_real)share);
    m->stale_psi = m->stale_faces = o->stale_faces = 1;
    m->stale_still |= !o->moves;
}

FSI_API void fsi__ls_begin_obstacles(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int k;
    for (k = 0; k < m->obstacle_count; k++) {
        fsi__ls_obstacle *o = &m->obstacle[k];
        const int moved = o->moves;
        o->impulse = o->moment = o->spin = fsi_v3(0, 0, 0);
        memcpy(o->trial_carry, o->carry, sizeof o->carry);
        if (!o->desc.body && run->length > 0)
            o->moves = memcmp(o->rest, o->desc.mesh->vertices, (size_t)o->vertex_count * sizeof *o->rest) != 0;
        else if (run->length > 0) {
            o->work = *o->desc.body;
            if (!fsi__ls_is_coupled(o)) o->work.pose = o->at;
            o->moves = fsi__ls_is_coupled(o) || !fsi__ls_same_pose(&o->at, &o->work.end);
            fsi_body_begin_step(&o->work, (fsi_real)run->length);
        } else o->work.pose = o->at;
        fsi__ls_stand(m, o, 0);
        m->stale_still |= o->moves != moved;
    }
}

FSI_API void fsi__ls_push_bodies(fsi__ls_run *run)
{
    int k;
    for (k = 0; k < run->m->obstacle_count; k++)
        if (fsi__ls_is_coupled(&run->m->obstacle[k])) fsi_body_begin_step(&run->m->obstacle[k].work, (fsi_real)run->dt);
}

FSI_API int fsi__ls_solids(const fsi_levelset *s) { return ((const fsi__ls_impl *)s->impl)->obstacle_count; }

FSI_API fsi__ls_solid fsi__ls_solid_of(const fsi_levelset *s, int k)
{
    const fsi__ls_obstacle *o = &((const fsi__ls_impl *)s->impl)->obstacle[k];
    fsi__ls_solid solid;
    solid.id = o->id;
    solid.body = o->desc.body;
    solid.faces = o->faces;
    solid.center = o->now.position;
    solid.impulse = o->impulse;
    solid.spin = o->spin;
    return solid;
}

FSI_API void fsi__ls_set_body(fsi__ls_run *run, int k, fsi_vec3 velocity, fsi_vec3 spin, const fsi_pose *pose)
{
    fsi__ls_obstacle *o = &run->m->obstacle[k];
    o->work.velocity = o->work.new_velocity = velocity;
    o->work.angular_velocity = o->work.new_angular_velocity = spin;
    if (!pose) return;
    o->work.pose = *pose;
    fsi__ls_stand(run->m, o, run->done);
}

/* After it: obstacles go to where the substep ends. */
static fsi_status fsi__ls_move_obstacles(fsi__ls_run *run)
{
    double off;
    int k;
    for (k = 0; k < run->m->obstacle_count; k++) {
        fsi__ls_obstacle *o = &run->m->obstacle[k];
        if (fsi__ls_is_coupled(o)) {
            fsi_body_integrate(&o->work, (fsi_real)run->dt);
            o->work.new_angular_velocity = o->work.angular_velocity;
            off = (double)fsi_v3_norm(o->work.pose.position) +
                  (double)fsi_v3_norm(o->work.angular_velocity) * run->dt * o->reach;
            if (!(off <= FSI__MESH_REACH))
                return fsi__fail(run->s->context, FSI_ERROR_LIMIT, run->function, o->id, off,
                                 "the body of obstacle %d went as far as %g m", o->id, off);
        }
        if (o->moves) fsi__ls_stand(run->m, o, run->done);
    }
    return FSI_OK;
}

FSI_API double fsi__ls_fastest(fsi_vec3 linear, fsi_vec3 angular, double reach)
{
    return fsi__ls_speed(linear) + fsi__ls_speed(angular) * reach;
}

FSI_API fsi_status fsi__ls_obstacle_speed(const fsi__ls_run *run, double *fastest)
{
    const double limit = run->stats.substeps == 0 ? FSI__LS_FASTEST : FSI__LS_RUNAWAY;
    double most = 0;
    int k, v;
    for (k = 0; k < run->m->obstacle_count; k++) {
        const fsi__ls_obstacle *o = &run->m->obstacle[k];
        double speed = 0;
        if (fsi__ls_is_coupled(o)) speed = fsi__ls_fastest(o->work.velocity, o->work.angular_velocity, o->reach);
        else if (o->desc.body) speed = fsi__ls_fastest(o->work.new_velocity, o->work.new_angular_velocity, o->reach);
        for (v = 0; v < o->vertex_count && !o->desc.body && o->moves; v++) {
            const double way = (double)fsi_v3_norm(fsi_v3_sub(o->desc.mesh->vertices[v], o->rest[v])) / run->length;
            if (way > speed) speed = way;
        }
        if (!(speed <= limit))
            return fsi__fail(run->s->context, FSI_ERROR_LIMIT, run->function, o->id, speed,
                             "obstacle %d moves at %g m/s, at most %g is taken", o->id, speed, limit);
        if (speed > most) most = speed;
    }
    *fastest = most;
    return FSI_OK;
}

/* Velocity of a solid at x, the middle of its face f: of its body, or of the point of its mesh that is nearest, which
   is looked for once as long as the mesh stands there. Between steps meshes rest. */
static fsi_vec3 fsi__ls_solid_velocity(const fsi__ls_run *run, const fsi__ls_obstacle *o, int f, fsi_vec3 x)
{
    const fsi_mesh *mesh = o->shadow;
    fsi_vec3 v = fsi_v3(0, 0, 0);
    fsi__ls_foot *foot;
    int c;
    if (!o->moves || !(o->desc.body || run->length > 0)) return v;
    if (o->desc.body) return fsi_rigid_velocity(o->work.new_velocity, o->work.new_angular_velocity, o->now.position, x);
    foot = o->foot + f;
    if (foot->face < -1) {
        const fsi_mesh_hit hit = fsi_mesh_closest(mesh, x, FSI_REAL_MAX, -1);
        foot->face = hit.face;
        memcpy(foot->bary, hit.bary, sizeof foot->bary);
    }
    for (c = 0; c < mesh->corners && foot->face >= 0; c++) {
        const int vertex = mesh->faces[mesh->corners * foot->face + c];
        v = fsi_v3_madd(v, foot->bary[c] / (fsi_real)run->length,
                        fsi_v3_sub(o->desc.mesh->vertices[vertex], o->rest[vertex]));
    }
    return v;
}

FSI_API void fsi__ls_run_faces(fsi__ls_face_job *job, int grain, double work, fsi__range_fn *fn)
{
    const int count = job->o->faces->count;
    fsi__parallel_work(job->run->s->context, count, grain, work * count, fn, job);
}

FSI_API void fsi__ls_face_velocities(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_face_job *job = (const fsi__ls_face_job *)arg;
    const fsi_grid_faces *faces = job->o->faces;
    int f;
    (void)chunk;
    for (f = begin; f < end; f++) {
        const int axis = fsi__ls_face_axis(faces, f);
        const fsi_vec3 x =
            fsi__ls_entry_position(job->run->grid, (fsi_grid_place)((int)FSI_FACES_X + axis), faces->entry[f]);
        job->o->velocity[f] = fsi__ls_component(fsi__ls_solid_velocity(job->run, job->o, f, x), axis);
    }
}

/* In 2D bodies turn about z only. */
static fsi_status fsi__ls_check_plane(const fsi_levelset *s, const fsi_body *body, int id, const char *function)
{
    const int coupled = body->mode == FSI_BODY_COUPLED;
    const fsi_quat a = body->pose.orientation, b = coupled ? a : body->end.orientation;
    const double tilt = fmax(fmax(fabs((double)a.x), fabs((double)a.y)), fmax(fabs((double)b.x), fabs((double)b.y)));
    const double turn = !coupled
                            ? 0
                            : fmax(fmax(fabs((double)body->angular_velocity.x), fabs((double)body->angular_velocity.y)),
                                   fmax(fabs((double)body->torque.x), fabs((double)body->torque.y)));
    if (tilt <= 1e-3 && !(turn > 0)) return FSI_OK;
    return fsi__fail(s->context, FSI_ERROR_ARGUMENT, function, id, tilt,
                     "the body of obstacle %d %s out of the plane of dim 2", id, tilt <= 1e-3 ? "turns" : "is turned");
}

FSI_API fsi_status fsi__ls_check_body(const fsi_levelset *s, const fsi_body *body, int id, int self,
    const char *function)
{
    const fsi__ls_impl *m = (const fsi__ls_impl *)s->impl;
    int k;
    if (!body) return FSI_OK;
    FSI__TRY(fsi__check_carrier(s->context, function, body, id, s->desc.dim, 0));
    if (s->desc.dim == 2) FSI__TRY(fsi__ls_check_plane(s, body, id, function));
    for (k = 0; k < m->obstacle_count && body->mode == FSI_BODY_COUPLED; k++)
        if (k != self && m->obstacle[k].desc.body == body)
            return fsi__fail(s->context, FSI_ERROR_ARGUMENT, function, id, m->obstacle[k].id,
                "the body of obstacle %d is COUPLED and carries obstacle %d already", id, m->obstacle[k].id);
    return FSI_OK;
}

FSI_API fsi_status fsi__ls_check_bodies(const fsi_levelset *s, const char *function)
{
    const fsi__ls_impl *m = (const fsi__ls_impl *)s->impl;
    int k;
    for (k = 0; k < m->obstacle_count; k++)
        FSI__TRY(fsi__ls_check_body(s, m->obstacle[k].desc.body, m->obstacle[k].id, k, function));
    return FSI_OK;
}

FSI_API void fsi__ls_notice_blocks(fsi__ls_impl *m, const fsi_grid *g)
{
    const size_t size = (size_t)g->block_count * sizeof *g->place;
    int k;
    if (g->block_count == m->built_count && (size == 0 || memcmp(m->built, g->place, size) == 0)) return;
    if (size > 0) memcpy(m->built, g->place, size);
    m->built_count = g->block_count;
    m->fresh_blocks = m->stale_faces = 1;
    for (k = 0; k < m->obstacle_count; k++) m->obstacle[k].stale_faces = 1;
}

/* psi = min(psi, distance to obstacle k) in block b, where it is smaller owner = k. */
static void fsi__ls_measure_obstacle(const fsi__ls_impl *m, int b, int k, fsi_field *psi, fsi_field *owner)
{
    const size_t cells = (size_t)psi->grid->block_cells, first = (size_t)b * cells;
    fsi_real distance[512];
    fsi__distance_job job;
    size_t c;
    job.grid = psi->grid;
    job.shape = fsi_shape_mesh(m->obstacle[k].shadow);
    job.limit = m->psi->background;
    fsi__distance_block(&job, b, FSI__SIDE_CUT, distance);
    for (c = 0; c < cells; c++) {
        if (!(distance[c] < psi->value[first + c])) continue;
        psi->value[first + c] = distance[c];
        owner->value[first + c] = (fsi_real)k;
    }
}

/* Distances in blocks: to obstacles at rest only in new blocks, which have the background's value; to moving ones also
   when one has moved. */
static void fsi__ls_measure_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const size_t cells = (size_t)run->grid->block_cells;
    const fsi_real limit = m->psi->background;
    int b, k;
    size_t e;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const size_t first = (size_t)b * cells;
        const int fresh = m->still_psi->value[first] > limit;
        if (!fresh && !m->stale_psi) continue;

        /* distance to obstacles at rest */
        for (e = first; e < first + cells && fresh; e++) {
            m->still_psi->value[e] = limit;
            m->still_owner->value[e] = 0;
        }
        for (k = 0; k < m->obstacle_count && fresh; k++)
            if (!m->obstacle[k].moves) fsi__ls_measure_obstacle(m, b, k, m->still_psi, m->still_owner);

        /* and to those that move */
        memcpy(m->psi->value + first, m->still_psi->value + first, cells * sizeof(fsi_real));
        memcpy(m->owner->value + first, m->still_owner->value + first, cells * sizeof(fsi_real));
        for (k = 0; k < m->obstacle_count; k++)
            if (m->obstacle[k].moves) fsi__ls_measure_obstacle(m, b, k, m->psi, m->owner);
    }
}

FSI_API void fsi__ls_find_solids(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    size_t e;
    if (m->obstacle_count == 0) return;
    fsi__ls_notice_blocks(m, run->grid);
    for (e = 0; e < cells && m->stale_still; e++) m->still_psi->value[e] = m->still_psi->background;
    if (m->stale_psi || m->stale_still || m->fresh_blocks) fsi__ls_each_block(run, fsi__ls_measure_blocks);
    m->stale_psi = m->stale_still = m->fresh_blocks = 0;
}

FSI_API fsi_status fsi__ls_find_faces(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    fsi__column column[2];
    int k, f;
    if (m->obstacle_count == 0) return FSI_OK;
    fsi__ls_notice_blocks(m, run->grid);
    column[0].size = sizeof(fsi_real);
    column[1].size = sizeof(fsi__ls_foot);
    for (k = 0; k < m->obstacle_count && m->stale_faces; k++) {
        fsi__ls_obstacle *o = &m->obstacle[k];
        if (!o->stale_faces) continue;
        FSI__TRY(fsi_grid_faces_build(o->faces, run->grid, o->shadow));
        column[0].array = (void **)&o->velocity;
        column[1].array = (void **)&o->foot;
        FSI__TRY(
            fsi__ls_hold(run->s->context, column, o->desc.body ? 1 : 2, &o->velocity_capacity, o->faces->count));
        for (f = 0; f < o->faces->count && !o->desc.body; f++) o->foot[f].face = -2;
        o->stale_faces = 0;
    }
    m->stale_faces = 0;
    return FSI_OK;
}

FSI_API void fsi__ls_offer_solids(fsi__ls_run *run, fsi_pressure_flow *flow)
{
    fsi__ls_impl *m = run->m;
    fsi__ls_face_job job;
    int k;
    job.run = run;
    for (k = 0; k < m->obstacle_count; k++) {
        fsi__ls_obstacle *o = job.o = &m->obstacle[k];
        fsi_pressure_solid *p = &m->solid[k];

        memset(p, 0, sizeof *p);
        p->faces = o->faces;
        if (o->desc.body) p->center = o->now.position;
        p->coupled = fsi__ls_is_coupled(o);

        /* COUPLED: mass, inertia and velocity; others: the velocity at each face */
        if (p->coupled) {
            p->mass = (double)o->work.mass;
            p->inverse_inertia = fsi_body_world_tensor(o->work.pose.orientation, fsi_m3_inverse(o->work.inertia));
            p->linear = o->work.new_velocity;
            p->angular = o->work.new_angular_velocity;
        } else if (o->moves) {
            fsi__ls_run_faces(&job, 1024, 8, fsi__ls_face_velocities);
            p->velocity = o->velocity;
        }
    }
    flow->solids = m->solid;
    flow->solid_count = m->obstacle_count;
}

/* The liquid gives an obstacle an impulse and, about its centre, a spin. */
static void fsi__ls_give(fsi__ls_obstacle *o, fsi_vec3 impulse, fsi_vec3 spin)
{
    const fsi_vec3 center = o->desc.body ? o->now.position : fsi_v3(0, 0, 0);
    o->impulse = fsi_v3_add(o->impulse, impulse);
    o->spin = fsi_v3_add(o->spin, spin);
    o->moment = fsi_v3_add(o->moment, fsi_v3_add(spin, fsi_v3_cross(center, impulse)));
}

FSI_API void fsi__ls_carry_obstacles(fsi__ls_run *run, double weight)
{
    int k;
    for (k = 0; k < run->m->obstacle_count; k++) {
        fsi__ls_obstacle *o = &run->m->obstacle[k];
        const fsi_vec3 impulse = fsi_v3_scale(o->trial_carry[0], (fsi_real)weight),
                       spin = fsi_v3_scale(o->trial_carry[1], (fsi_real)weight);
        fsi__ls_give(o, impulse, spin);
        if (!fsi__ls_is_coupled(o)) continue;
        o->work.velocity = o->work.new_velocity = fsi_v3_madd(o->work.new_velocity, 1 / o->work.mass, impulse);
        o->work.angular_velocity = o->work.new_angular_velocity = fsi_v3_add(
            o->work.new_angular_velocity,
            fsi_m3_mul_v3(fsi_body_world_tensor(o->work.pose.orientation, fsi_m3_inverse(o->work.inertia)), spin));
    }
}

/* Pressure that is carried on in the cell above or below face `face`, which a solid covers: 0 where that has let go of
   the cell. */
static double fsi__ls_carried_beside(const fsi__ls_run *run, int face, int axis, int upper)
{
    const fsi__ls_impl *m = run->m;
    long long at = face;
    if (run->released > 0 && m->let_go[face] >> (upper ? axis : 3 + axis) & 1) return 0;
    if (!upper && !fsi__ls_neighbor(run, face, 2 * axis, &at)) return 0;
    return (double)m->trial_carried->value[at];
}

FSI_API void fsi__ls_add_shares(const fsi__ls_run *run, int axis, fsi_real *sum)
{
    const fsi__ls_impl *m = run->m;
    int pass, k, f;
    for (pass = 0; pass < 3; pass++)
        for (k = 0; k < m->obstacle_count; k++) {
            const fsi_grid_faces *faces = m->obstacle[k].faces;
            for (f = faces->first[axis]; f < faces->first[axis + 1]; f++) {
                fsi_real *s = &sum[faces->entry[f]];
                *s = pass == 0 ? 0 : (pass == 1 ? *s + faces->solid[f] : (*s > 1 ? *s : 1));
            }
        }
}

FSI_API void fsi__ls_keep_obstacles(fsi__ls_run *run)
{
    const fsi_grid *g = run->grid;
    const double dx = (double)g->dx, area = run->dt * dx * (g->dim == 3 ? dx : 1);
    int a, k, f;

    for (k = 0; k < run->m->obstacle_count; k++)
        run->m->obstacle[k].trial_carry[0] = run->m->obstacle[k].trial_carry[1] = fsi_v3(0, 0, 0);

    /* along each axis: pressure difference across covered faces times the area that the obstacle covers */
    for (a = 0; a < g->dim && run->m->obstacle_count > 0; a++) {
        fsi__ls_add_shares(run, a, run->m->spare->value);
        for (k = 0; k < run->m->obstacle_count; k++) {
            fsi__ls_obstacle *o = &run->m->obstacle[k];
            const fsi_vec3 center = o->desc.body ? o->now.position : fsi_v3(0, 0, 0),
                           n = fsi_v3(a == 0, a == 1, a == 2);
            double push = 0, spin[3] = { 0, 0, 0 };

            /* force and torque of the faces */
            for (f = o->faces->first[a]; f < o->faces->first[a + 1]; f++) {
                const int e = o->faces->entry[f];
                const double share = (double)o->faces->solid[f] / (double)run->m->spare->value[e];
                const double p =
                    area * share * (fsi__ls_carried_beside(run, e, a, 0) - fsi__ls_carried_beside(run, e, a, 1));
                const fsi_vec3 arm = fsi_v3_cross(
                    fsi_v3_sub(fsi__ls_entry_position(g, (fsi_grid_place)((int)FSI_FACES_X + a), e), center), n);
                push += p;
                spin[0] += p * (double)arm.x;
                spin[1] += p * (double)arm.y;
                spin[2] += p * (double)arm.z;
            }

            o->trial_carry[0] = fsi_v3_madd(o->trial_carry[0], (fsi_real)push, n);
            o->trial_carry[1] = fsi_v3_add(o->trial_carry[1],
                fsi_v3(g->dim == 3 ? (fsi_real)spin[0] : 0, g->dim == 3 ? (fsi_real)spin[1] : 0, (fsi_real)spin[2]));
        }
    }
}

FSI_API void fsi__ls_take_impulses(fsi__ls_run *run)
{
    int k;
    for (k = 0; k < run->m->obstacle_count; k++) {
        const fsi_pressure_solid *p = &run->m->solid[k];
        fsi__ls_obstacle *o = &run->m->obstacle[k];
        fsi__ls_give(o, p->impulse, p->angular_impulse);
        if (!p->coupled) continue;
        o->work.velocity = o->work.new_velocity = p->linear;
        o->work.angular_velocity = o->work.new_angular_velocity = p->angular;
    }
}

FSI_API void fsi__ls_forget_solid_faces(const fsi__ls_run *run)
{
    const fsi__ls_impl *m = run->m;
    int k, f;
    for (k = 0; k < m->obstacle_count && !m->stale_faces; k++) {
        const fsi_grid_faces *faces = m->obstacle[k].faces;
        for (f = faces->first[run->axis]; f < faces->first[run->axis + 1]; f++)
            if (faces->solid[f] > (fsi_real)0.999 && !fsi__ls_has_let_go(run, faces->entry[f], run->axis))
                m->known[run->axis][faces->entry[f]] = 0;
    }
}

/* Velocity at faces inside a solid: u - n (n . (u - v)), v the solid's, as its normal part is the solid's; v where
   liquid sticks. */
static void fsi__ls_slip_faces(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_face_job *job = (const fsi__ls_face_job *)arg;
    const fsi__ls_run *run = job->run;
    const fsi_grid_faces *faces = job->o->faces;
    const int sticks = job->o->desc.no_slip && run->s->desc.viscosity > 0;
    const fsi_real deep = (fsi_real)-fsi__ls_reach(&run->s->desc) * run->grid->dx;
    int f;
    (void)chunk;
    for (f = begin; f < end; f++) {
        const int axis = fsi__ls_face_axis(faces, f), e = faces->entry[f];
        const fsi_vec3 x = fsi__ls_entry_position(run->grid, (fsi_grid_place)((int)FSI_FACES_X + axis), e);
        fsi_vec3 n, v, off;

        /* faces not all solid, or where the solid has let go, keep the liquid's velocity */
        job->o->velocity[f] = run->m->trial_u[axis]->value[e];
        if (!(faces->solid[f] > (fsi_real)0.999) || fsi__ls_has_let_go(run, e, axis)) continue;

        /* where liquid sticks, and deep inside: the solid's velocity */
        v = fsi__ls_solid_velocity(run, job->o, f, x);
        if (sticks || run->m->psi->value[e] < deep) {
            job->o->velocity[f] = fsi__ls_component(v, axis);
            continue;
        }

        /* else its normal part alone */
        fsi_grid_sample_spline(run->m->psi, x, &n);
        n = fsi_v3_unit(n);
        off = fsi_v3_sub(fsi_grid_sample_velocity(run->m->trial_u, x), v);
        job->o->velocity[f] -= fsi__ls_component(n, axis) * fsi_v3_dot(n, off);
    }
}

FSI_API void fsi__ls_slip(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    fsi__ls_face_job job;
    int k, f;
    job.run = run;
    for (k = 0; k < m->obstacle_count && !m->stale_faces; k++) {
        fsi__ls_obstacle *o = job.o = &m->obstacle[k];
        fsi__ls_run_faces(&job, 256, 12, fsi__ls_slip_faces);
        for (f = 0; f < o->faces->count; f++)
            m->trial_u[fsi__ls_face_axis(o->faces, f)]->value[o->faces->entry[f]] = o->velocity[f];
    }
}

/* phi at x, inside a solid, from two points opposite, p half a cell out of it and q a cell farther. Along the normal
   n, t cells out of the solid, it goes on as a straight line through both, phi = p + (q - p)(t - h), h = 1/2; under
   surface tension as the parabola through both whose slope at the solid is the cosine of the contact angle,
   grad phi . n = s: phi = a + s t + c t^2, c = (q - p - s)/(2 h + 1), from t = -2 on straight. A surface along the
   solid, |q - p| = dx, does not meet it: the parabola would fill a gap of half a cell with liquid, and dry a film.
   There the line stands, between both w = min(1, 2 (1 - (q - p)^2/dx^2)/(1 - s^2/dx^2)) of the parabola. Half a cell
   out of a wall along the grid is the first centre. A line from a whole cell out would count that by half only: liquid
   that arrives at a wall would lose volume there, and air beside an edge would fill with liquid.

   Nor is a surface along the solid one where liquid was poured flush with it, q - p = -dx and no gap at t = 0: phi
   stays p there, `along` tells how much. The line would leave a surface at the solid, against which the liquid feels
   no pressure. Half a cell out interpolation may still take in a cell of the solid that has such a surface: while
   those are looked for h is 1. Beside a shell it is 1 too: a body between liquid and shell jumped. */
static double fsi__ls_opposite(const fsi__ls_run *run, fsi_vec3 x, double psi, double cosine)
{
    const fsi_field *phi = run->m->next_phi;
    const double dx = (double)run->grid->dx, t = psi / dx, s = cosine * dx, bend = t > -2 ? t : -2;
    const double h = run->flush || run->joint ? 1 : 0.5;
    double p, q, c, slope, line, meets, along;
    fsi_vec3 n;
    fsi_grid_sample_spline(run->m->psi, x, &n);
    n = fsi_v3_unit(n);
    x = fsi_v3_madd(x, (fsi_real)(h * dx - psi), n);
    p = (double)fsi_grid_sample_linear(phi, x);
    q = (double)fsi_grid_sample_linear(phi, fsi_v3_madd(x, run->grid->dx, n));
    slope = q - p > dx ? dx : (q - p < -dx ? -dx : q - p);
    along = run->flush && p - slope * h < FSI__LS_FLUSH * dx ? fmin(fmax((-slope / dx - 0.3) / 0.2, 0), 1) : 0;
    line = p + slope * (t - h) * (1 - along);
    if (along > 0 || !(run->s->desc.surface_tension > 0)) return line;
    c = (slope - s) / (2 * h + 1);
    meets = 2 * (dx * dx - slope * slope) / (dx * dx - s * s);
    p += c * (bend * (2 * t - bend) - h * h) + s * (t - h);
    return meets >= 1 ? p : line + meets * (p - line);
}

/* phi at cell e inside a solid. */
static fsi_real fsi__ls_continued(const fsi__ls_run *run, int e, double psi)
{
    const fsi__ls_impl *m = run->m;
    const double deep = FSI__LS_BAND * (double)run->grid->dx;
    const double phi = fsi__ls_opposite(run, fsi__ls_entry_position(run->grid, FSI_CELLS, e), psi,
                                        m->obstacle[(int)m->owner->value[e]].slope);
    return (fsi_real)fmin(fmax(phi, -deep), deep);
}

static void fsi__ls_extend_phi(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const fsi_grid *g = run->grid;
    const double dx = (double)g->dx, bottom = -(fsi__ls_reach(&run->s->desc) + 1) * dx;
    int e;
    (void)chunk;
    for (e = begin * g->block_cells; e < end * g->block_cells; e++) {
        const double psi = (double)m->psi->value[e];
        m->trial_phi->value[e] = !(psi < FSI__LS_TIE * dx) ? m->next_phi->value[e]
                                 : psi < bottom            ? (fsi_real)(FSI__LS_BAND * dx)
                                                           : fsi__ls_continued(run, e, psi);
    }
}

FSI_API void fsi__ls_extend_curvature(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const fsi_grid *g = run->grid;
    int e;
    (void)chunk;
    for (e = begin * g->block_cells; e < end * g->block_cells; e++) {
        const fsi_real psi = m->psi->value[e];
        long long at;
        fsi_vec3 x, n;
        if (!(psi < 0) || psi < -2 * g->dx || fabs((double)m->trial_phi->value[e]) > 2 * (double)g->dx) continue;
        x = fsi__ls_entry_position(g, FSI_CELLS, e);
        fsi_grid_sample_spline(m->psi, x, &n);
        x = fsi_v3_sub(fsi_v3_madd(x, g->dx - psi, fsi_v3_unit(n)), g->origin);
        at = fsi_grid_entry(g, (int)(x.x / g->dx), (int)(x.y / g->dx), g->dim == 3 ? (int)(x.z / g->dx) : 0);
        if (at < 0 || !(fabs((double)m->trial_phi->value[at]) < 2 * (double)g->dx)) continue;
        m->curvature->value[e] = m->curvature->value[at];
        m->trust->value[e] = m->trust->value[at];
    }
}

/* spare = next_phi continued into solids, for liquid that was added, and liquid flush with a solid (the rest was
   continued in the last step); after the first pass, everywhere. */
static void fsi__ls_wet_solid(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const fsi_grid *g = run->grid;
    const double most = FSI__LS_TIE * (double)g->dx, least = -2 * (double)g->dx;
    int e;
    (void)chunk;
    for (e = begin * g->block_cells; e < end * g->block_cells; e++) {
        const double psi = (double)m->psi->value[e];
        const fsi_real before = m->next_phi->value[e];
        const int all = run->flush > 1 || before < m->trial_phi->value[e];
        fsi_real phi;
        m->spare->value[e] = before;
        if (!(psi < most && psi > least) || !(all || before > 0)) continue;
        phi = fsi__ls_continued(run, e, psi);
        if (all || phi < g->dx / -2) m->spare->value[e] = phi;
    }
}

FSI_API fsi_status fsi__ls_wet_solids(fsi__ls_run *run)
{
    const fsi__ls_impl *m = run->m;
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    size_t e;
    if (m->obstacle_count == 0) return FSI_OK;
    fsi__ls_find_solids(run);
    for (run->flush = 1; run->flush < 4; run->flush++) {
        int closed = 0;
        fsi__ls_each_block(run, fsi__ls_wet_solid);
        for (e = 0; e < cells; e++) {
            closed |= m->next_phi->value[e] > 0 && m->spare->value[e] < run->grid->dx / -2;
            m->next_phi->value[e] = m->spare->value[e];
        }
        if (!closed) break;
        FSI__TRY(fsi_grid_redistance(m->next_phi, FSI__LS_BAND, m->next_phi));
    }
    run->flush = 0;
    return FSI_OK;
}

FSI_API fsi_status fsi__ls_enter_solids(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    fsi_field *swap = m->next_phi;
    if (m->obstacle_count == 0) return FSI_OK;
    FSI__TRY(fsi__ls_move_obstacles(run));
    fsi__ls_find_solids(run);
    fsi__ls_each_block(run, fsi__ls_extend_phi);
    m->next_phi = m->trial_phi;
    m->trial_phi = swap;
    return FSI_OK;
}

FSI_API const unsigned char *fsi__ls_mask(fsi__ls_run *run)
{
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    size_t e;
    if (run->m->obstacle_count == 0) return NULL;
    for (e = 0; e < cells; e++) run->m->cell[e] = run->m->psi->value[e] < 0;
    return run->m->cell;
}

FSI_API void fsi__ls_tilt_walls(const fsi__ls_run *run, int b, fsi_real *box)
{
    const fsi_grid *g = run->grid;
    const fsi_real tilt = (fsi_real)((double)g->dx * cos((double)run->s->desc.contact_angle * FSI_PI / 180));
    const int step[3] = { 1, 10, 100 }, end = g->dim == 3 ? 1000 : 100;
    int corner[3], a, side, c;
    if (fabs((double)tilt) < 1e-9 * (double)g->dx) return;
    fsi_grid_corner(g, b, corner);
    for (a = 0; a < g->dim; a++)
        for (side = 0; side < 2; side++) {
            const int ghost = side ? g->n[a] - corner[a] + 1 : 0;
            if (run->s->desc.open_side[2 * a + side] || ghost < 0 || ghost > 9 || (!side && corner[a] > 0)) continue;
            for (c = 0; c < end; c++)
                if (c / step[a] % 10 == ghost) box[c] -= tilt;
        }
}

/* ---- >>walls that let go ----------------------------------------------------------------------------------------- */

/* Walls that let go, that is, release the liquid. A wall pushes liquid, and pulls at it through the liquid only: where
   air gets between both, it does not,

       p >= -gamma (1 + cos angle)/dx   or   p = 0 and u.n <= 0        at the wall's face, n into the wall,

   as a gap that is a cell wide costs what Young and Dupre say. Air gets in at the rim, where the liquid beside a wall
   has air beside it along the wall:

               wall                          wall
       ####################          ####################
         air   |  liquid               air : gap  |              the gap's pressure is that of air; once it is half
               |______  ...                 \_____|_ ...          a cell wide its cell is air, and the next one is at
                                                                 the rim

   Inside, and where there is no air, liquid keeps what pressure it has. A film under a ceiling is peeled at sqrt(g dx)
   so, which tends to 0 on finer grids: there the surface itself runs in along the wall, at half sqrt(g h)
   (Benjamin 1968), and waves on the film drip. The first solve has all wall faces closed. It is repeated, at most three
   times, with the faces that would pull released, and those that liquid would enter closed again. */

#define FSI__LS_RELEASES 3

FSI_API void fsi__ls_mark_covered_faces(const fsi__ls_run *run, unsigned char *covered)
{
    const fsi__ls_impl *m = run->m;
    int k, f;
    memset(covered, 0, (size_t)run->grid->block_count * (size_t)run->grid->block_cells);
    for (k = 0; k < m->obstacle_count; k++) {
        const fsi_grid_faces *faces = m->obstacle[k].faces;
        for (f = 0; f < faces->count; f++)
            if (faces->solid[f] > (fsi_real)0.999)
                covered[faces->entry[f]] |= (unsigned char)(1 << fsi__ls_face_axis(faces, f));
    }
}

/* Is a face of the cell open? Cells that obstacles shut in have an extended phi, but no liquid or air. */
static int fsi__ls_is_clear(const fsi__ls_run *run, int e)
{
    long long at;
    int side;
    for (side = 0; side < 2 * run->grid->dim && run->m->obstacle_count > 0; side++)
        if (fsi__ls_neighbor(run, e, side, &at) && !(run->m->let_go[side & 1 ? at : (long long)e] >> (side >> 1) & 1))
            return 1;
    return run->m->obstacle_count == 0;
}

/* Is the face on a side of liquid cell e, behind which there is a solid, at the rim, where there is air beside the
   cell? */
static int fsi__ls_is_rim(const fsi__ls_run *run, int e, int side, long long *face)
{
    const fsi__ls_impl *m = run->m;
    long long at;
    int k, air = 0;
    if (m->cell[e] != FSI_CELL_LIQUID) return 0;
    for (k = 0; k < 2 * run->grid->dim && !air; k++)
        air = k >> 1 != side >> 1 && fsi__ls_neighbor(run, e, k, &at) && m->cell[at] == FSI_CELL_AIR &&
              fsi__ls_is_clear(run, (int)at);
    *face = e;
    if (side & 1) fsi__ls_neighbor(run, e, side, face);
    return air && *face >= 0 && fsi__ls_is_clear(run, e);
}

/* Velocity of the liquid at a rim's face, by the faces of its cell, which are all known. */
static fsi_vec3 fsi__ls_rim_flow(const fsi__ls_run *run, const fsi__ls_rim *rim)
{
    double v[3] = { 0, 0, 0 };
    int a;
    for (a = 0; a < run->grid->dim; a++) {
        const fsi_real *u = run->m->trial_u[a]->value;
        long long at;
        v[a] = (double)u[a == rim->side >> 1 ? rim->face : rim->cell];
        fsi__ls_neighbor(run, rim->cell, 2 * a + 1, &at);
        if (a != rim->side >> 1 && at >= 0) v[a] = (v[a] + (double)u[at]) / 2;
    }
    return fsi_v3((fsi_real)v[0], (fsi_real)v[1], (fsi_real)v[2]);
}

/* That and the acceleration there, their parts normal to the solid. */
static fsi_status fsi__ls_measure_rim(const fsi__ls_run *run, const fsi__ls_obstacle *o, fsi__ls_rim *rim)
{
    const fsi_levelset *s = run->s;
    const int axis = rim->side >> 1;
    const double time = run->time + 0.5 * run->dt;
    const fsi_vec3 x = fsi__ls_entry_position(run->grid, (fsi_grid_place)((int)FSI_FACES_X + axis), rim->face);
    fsi_vec3 n = fsi_v3(axis == 0, axis == 1, axis == 2), g = s->desc.gravity, v = fsi__ls_rim_flow(run, rim);
    double a[3] = { 0, 0, 0 };
    if (s->desc.acceleration && !fsi__ls_acceleration(s, x, time, a))
        return fsi__ls_bad_acceleration(s, run->function, x, time);
    g = fsi_v3_add(g, fsi_v3((fsi_real)a[0], (fsi_real)a[1], (fsi_real)a[2]));
    if (o) {
        fsi_grid_sample_spline(run->m->psi, x, &n);
        n = fsi_v3_unit(n);
        v = fsi_v3_sub(v, fsi__ls_solid_velocity(run, o, rim->number, x));
    }
    rim->force = (double)fsi_v3_norm(g);
    rim->start = (double)run->m->trial_u[axis]->value[rim->face];
    rim->stop = (double)(fsi__ls_component(n, axis) * fsi_v3_dot(n, v));
    rim->pull = (double)(fsi__ls_component(n, axis) * fsi_v3_dot(n, g));
    return FSI_OK;
}

/* Adds the face on a side of cell e if it is at the rim. */
static fsi_status fsi__ls_add_rim(fsi__ls_run *run, int e, int side, const fsi__ls_obstacle *o, int number)
{
    fsi__ls_impl *m = run->m;
    long long face;
    fsi__ls_rim *rim;
    if (!fsi__ls_is_rim(run, e, side, &face)) return FSI_OK;
    FSI__TRY(fsi__room_in(run->s->context, &m->rim, sizeof *m->rim, m->rim_count, &m->rim_capacity, m->rim_count + 1,
                             run->function));
    rim = &m->rim[m->rim_count++];
    rim->cell = e;
    rim->face = (int)face;
    rim->side = side;
    rim->let_go = 0;
    rim->obstacle = o ? (int)(o - m->obstacle) : -1;
    rim->number = number;
    rim->angle = (double)(o ? o->desc.contact_angle : run->s->desc.contact_angle);
    return fsi__ls_measure_rim(run, o, rim);
}

/* Faces of block b in a side of the box. */
static fsi_status fsi__ls_find_wall_rims(fsi__ls_run *run, int b, int side)
{
    const fsi_grid *g = run->grid;
    const int a = side >> 1, layer = side & 1 ? g->n[a] - 1 : 0;
    int corner[3], c;
    fsi_grid_corner(g, b, corner);
    if (layer < corner[a] || layer > corner[a] + 7) return FSI_OK;
    for (c = 0; c < g->block_cells; c++)
        if (corner[a] + (c >> 3 * a & 7) == layer)
            FSI__TRY(fsi__ls_add_rim(run, b * g->block_cells + c, side, NULL, 0));
    return FSI_OK;
}

/* Faces that an obstacle covers, of the cells on both sides. */
static fsi_status fsi__ls_find_obstacle_rims(fsi__ls_run *run, const fsi__ls_obstacle *o)
{
    int f;
    for (f = 0; f < o->faces->count; f++) {
        const int a = fsi__ls_face_axis(o->faces, f), e = o->faces->entry[f];
        long long below;
        if (!(o->faces->solid[f] > (fsi_real)0.999) || !fsi__ls_neighbor(run, e, 2 * a, &below)) continue;
        FSI__TRY(fsi__ls_add_rim(run, e, 2 * a, o, f));
        FSI__TRY(fsi__ls_add_rim(run, (int)below, 2 * a + 1, o, f));
    }
    return FSI_OK;
}

FSI_API fsi_status fsi__ls_find_rims(fsi__ls_run *run)
{
    int b, k, side;
    run->m->rim_count = run->released = 0;
    if (!run->s->desc.release || run->joint) return FSI_OK;
    if (run->m->obstacle_count > 0) fsi__ls_mark_covered_faces(run, run->m->let_go); /* until a face lets go */
    for (side = 0; side < 2 * run->grid->dim; side++)
        for (b = 0; b < run->grid->block_count && !run->s->desc.open_side[side]; b++)
            FSI__TRY(fsi__ls_find_wall_rims(run, b, side));
    for (k = 0; k < run->m->obstacle_count; k++)
        if (!fsi__ls_is_coupled(&run->m->obstacle[k]))
            FSI__TRY(fsi__ls_find_obstacle_rims(run, &run->m->obstacle[k]));
    return FSI_OK;
}

/* Velocity of the solid at a rim's face after a solve. */
static double fsi__ls_rim_velocity(const fsi__ls_run *run, const fsi__ls_rim *rim)
{
    const int axis = rim->side >> 1;
    const fsi_pressure_solid *p = rim->obstacle < 0 ? NULL : &run->m->solid[rim->obstacle];
    if (p && p->coupled) {
        const fsi_vec3 x = fsi__ls_entry_position(run->grid, (fsi_grid_place)((int)FSI_FACES_X + axis), rim->face);
        return (double)fsi__ls_component(fsi_rigid_velocity(p->linear, p->angular, p->center, x), axis);
    }
    return p && p->velocity ? (double)p->velocity[rim->number] : 0;
}

static void fsi__ls_see_solids(fsi__ls_run *run)
{
    int k;
    for (k = 0; k < run->m->rim_count; k++) run->m->rim[k].solid = fsi__ls_rim_velocity(run, &run->m->rim[k]);
}

/* Velocity with which the liquid runs into the solid at a rim's face. */
static double fsi__ls_rim_closing(const fsi__ls_run *run, const fsi__ls_rim *rim)
{
    return (rim->side & 1 ? 1 : -1) * ((double)run->m->trial_u[rim->side >> 1]->value[rim->face] - rim->solid);
}

/* Releases faces and closes them again after a solve; `more`: new ones too. Returns how many have changed. The pressure
   at a closed wall is that of the cell plus the one that stops the liquid between both, (p - p_cell)/(dx/2) = rho
   u.n/dt, in all projections of the substep so far: the first one's u.n is that of the accelerations. Small pulls are
   rounding, or motion within a cell, and are ignored. */
static int fsi__ls_judge_rims(fsi__ls_run *run, int first, int more)
{
    fsi__ls_impl *m = run->m;
    const fsi_levelset_desc *d = &run->s->desc;
    const double dx = (double)run->grid->dx, rho = (double)d->density;
    int k, changed = 0;
    for (k = 0; k < m->rim_count; k++) {
        fsi__ls_rim *rim = &m->rim[k];
        const double into = rim->side & 1 ? 1 : -1, stop = rim->stop + (first ? 0 : rim->pull * run->dt);
        const double cell =
            (double)m->trial_pressure->value[rim->cell] + (first ? 0 : (double)m->spare->value[rim->cell]);
        const double p = cell + into * stop * rho * dx / (2 * run->dt);
        const double hold = (double)d->surface_tension * (1 + cos(rim->angle * FSI_PI / 180)) / dx;
        const double least = 0.1 * rho * rim->force * dx + 1e-3 * rho * dx * dx / (run->dt * run->dt);
        const int go = rim->let_go ? !(fsi__ls_rim_closing(run, rim) > 0) : more && p < -hold - least;
        changed += go != rim->let_go;
        rim->let_go = go;
    }
    return changed;
}

/* Restores the velocities before the projection, kept in next_u, and marks the faces that have let go. */
static void fsi__ls_let_go(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    int a, k;
    for (a = 0; a < run->grid->dim; a++) memcpy(m->trial_u[a]->value, m->next_u[a]->value, cells * sizeof(fsi_real));
    memset(m->let_go, 0, cells);
    for (k = run->released = 0; k < m->rim_count; k++) {
        const fsi__ls_rim *rim = &m->rim[k];
        if (!rim->let_go) continue;
        m->let_go[rim->face] |= (unsigned char)(1 << ((rim->side >> 1) + (rim->side & 1 ? 3 : 0)));
        m->trial_u[rim->side >> 1]->value[rim->face] = (fsi_real)rim->start;
        run->released++;
    }
}

FSI_API void fsi__ls_open_gaps(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int k;
    for (k = 0; k < m->rim_count && run->released > 0; k++) {
        const fsi__ls_rim *rim = &m->rim[k];
        const double gap = -fsi__ls_rim_closing(run, rim) * run->dt;
        long long at = rim->cell;
        if (!rim->let_go || !(gap > 0.1 * (double)run->grid->dx)) continue;
        if (m->obstacle_count > 0 && m->psi->value[at] < 0 && !fsi__ls_neighbor(run, rim->cell, rim->side ^ 1, &at))
            continue;
        if ((double)m->next_phi->value[at] < gap) m->next_phi->value[at] = (fsi_real)gap;
    }
}

/* The liquid alone, with walls that let go. */
FSI_API fsi_status fsi__ls_solve_pressure(fsi__ls_run *run, fsi_pressure_flow *flow)
{
    const int first = run->which == FSI__LS_FIRST;
    fsi__ls_impl *m = run->m;
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    int a, pass;
    for (a = 0; a < run->grid->dim && m->rim_count > 0; a++)
        memcpy(m->next_u[a]->value, m->trial_u[a]->value, cells * sizeof(fsi_real));
    FSI__TRY(fsi_pressure_project(m->solver, flow));
    fsi__ls_see_solids(run);
    for (pass = 0; pass < FSI__LS_RELEASES && fsi__ls_judge_rims(run, first, pass < FSI__LS_RELEASES - 1) > 0; pass++) {
        run->stats.pressure_iterations += m->solver->stats.iters;
        fsi__ls_let_go(run);
        fsi__ls_offer_solids(run, flow);
        flow->let_go = run->released > 0 ? m->let_go : NULL;
        FSI__TRY(fsi_pressure_project(m->solver, flow));
        fsi__ls_see_solids(run);
    }
    return FSI_OK;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
