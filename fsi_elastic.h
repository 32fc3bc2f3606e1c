/* fsi_elastic.h - elastic bodies: projective dynamics of tetrahedra, in full or in a small subspace, with contact.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_elastic.h"
         #include "fsi_elastic.h"

   A JELLY CUBE THAT FALLS ON A FLOOR
      fsi_vec3 x[8];
      int tets[24] = { 0, 1, 3, 7,  0, 3, 2, 7,  0, 2, 6, 7,  0, 6, 4, 7,  0, 4, 5, 7,  0, 5, 1, 7 }, k, id;
      fsi_context ctx = fsi_default_context();
      fsi_elastic_desc d = fsi_elastic_default_desc();
      fsi_elastic_body_desc b = fsi_elastic_default_body_desc();
      fsi_elastic_shape_desc floor = fsi_elastic_default_shape_desc();   // the half-space below z = 0
      fsi_elastic *s;
      for (k = 0; k < 8; k++) x[k] = fsi_v3((fsi_real)(k & 1), (fsi_real)(k / 2 & 1), (fsi_real)(k / 4));
      d.context = &ctx;
      b.vertices = x; b.vertex_count = 8; b.elements = tets; b.element_count = 6; b.handles = 0;
      b.position = fsi_v3(0, 0, 0.5f);
      if (fsi_elastic_create(&s, &d) != FSI_OK || fsi_elastic_add_shape(s, &floor, NULL) != FSI_OK ||
          fsi_elastic_add_body(s, &b, &id) != FSI_OK) {
          puts(ctx.error.message);                                       // "tetrahedron 3 is inverted ..."
          return 1;
      }
      for (k = 0; k < 120; k++) fsi_elastic_step(s, 1.0f / 60);
      printf("volume ratio %g\n", s->bodies[0].stats.volume_ratio);
      fsi_elastic_destroy(s);

   WHAT IS IN HERE (search for >>)
      >>simulator      world and steps               >>bodies      volumes that deform; their surfaces
      >>attachments    pins, moving targets, drags   >>obstacles   planes, balls, meshes, bodies of fsi_body
      >>skins          meshes that follow a body     >>state       save, load, hash, debug drawing
      fsi_elastic_material is in fsi_elastic_body.h. The implementation follows "Stop here" and begins with an outline
      of the step.
   WHAT IT DOES
      Bodies are made of tetrahedra (2D: triangles) of your own, or of a lattice around any closed surface. With
      handles = 0 every vertex is an unknown: the reference, for up to 20,000 elements or so. With handles a body moves
      in a subspace of 4 unknowns a handle, at a cost that does not depend on the number of its elements: 100,000 and
      more in real time. Bodies collide with each other, themselves, and obstacles, with Coulomb friction.
      Bodies recover from any deformation, also inverted; any dt is stable.
   WHAT IT DOES NOT DO
      Fracture, plasticity, remeshing. Liquid: fsi_flip_immerse of fsi_flip.h. Contact is between the points of one
      surface and the faces of the other: edges that cross between points are not detected. A subspace has no folds
      finer than the distance of its handles.
   MACROS: those of fsi.h.
   UNITS: SI; in 2D masses, forces and energies per metre of depth.
   PRECISION: double inside; positions of the interface in fsi_real.
   EQUATIONS: (n) of Brandt, Scandolo, Eisemann and Hildebrandt, "The reduced immersed method for real-time
      fluid-elastic solid interaction and contact simulation" (2019), as restated in docs/elastic.md.
*/
#ifndef FSI_ELASTIC_H
#define FSI_ELASTIC_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_elastic_body.h"
#include "fsi_obstacle.h"

/* ---- >>simulator ------------------------------------------------------------------------------------------------ */

typedef struct fsi_elastic_desc {
    uint32_t cookie;
    fsi_context *context;      /* default NULL: malloc, no messages */
    int dim;                   /* 2 or 3 (default); in 2D bodies lie in x, y */
    fsi_vec3 gravity;          /* [m/s^2]; default (0, 0, -9.81); 2D: set (0, -9.81, 0) */
    fsi_acceleration_fn *field;/* further acceleration, evaluated at vertices or handles; default NULL */
    void *field_user;
    int time_order;            /* 1: backward Euler, damps: kinetic energy of a vibration of angular frequency w falls
                                  by exp(-w^2 h t); 2: BDF2 (default), by about exp(-w^4 h^3 t / 2) */
    int substeps;              /* of each step, 1 to 1000; default 1 */
    int iterations;            /* pairs of local and global step in a substep, at most; 1 to 10000; default 20 */
    fsi_real tolerance;        /* a substep ends early when an iteration moves no body by more (root mean square) than
                                  this times min(L, max(1000 d, 1e-4 L)): L its size, d its displacement in the
                                  substep by forces other than inertia and gravity; 0 to 0.1, default 1e-7; 0: all
                                  iterations */
    int acceleration;          /* iterations that Anderson's acceleration combines, 0 (none) to 8; default 5 */
    int contact_sweeps;        /* of Gauss-Seidel over the contacts in each iteration, forwards and backwards in turn,
                                  at most, 1 to 1000 (even is better); default 20. Fewer where they would change more
                                  than 1e7 numbers: n^2, or 2 n times the unknowns, a sweep for n contacts on a body */
} fsi_elastic_desc;
FSI_API fsi_elastic_desc fsi_elastic_default_desc(void); /* fills every field */

typedef struct fsi_elastic_stats {
    int substeps, iterations;  /* of the last step, of all bodies and substeps together */
    int degraded;              /* substeps of a body that ended at desc.iterations above the tolerance; the message hook
                                  gets the first such step, the second, the fourth ... */
    int contacts, touching;    /* candidates of the last substep; those with a force */
    double residual;           /* largest displacement of a body in a last iteration, over its size */
    double deepest;            /* deepest penetration of a contact at the end [m] */
    double kinetic_energy, elastic_energy, potential_energy; /* [J] */
    double momentum[3], angular_momentum[3]; /* about the origin */
    double seconds_local, seconds_global, seconds_contact, seconds_other; /* by the clock hook */
    size_t bytes;              /* allocated through its context */
    long long allocs;          /* of the context so far */
} fsi_elastic_stats;

/* Of one body, after the last step. */
typedef struct fsi_elastic_body_stats {
    double kinetic_energy, elastic_energy; /* [J]; of a reduced body from its regions */
    double volume_ratio;       /* of its volume to that at rest, mean over the elements */
    double stretch_min, stretch_max; /* smallest determinant, largest mean stretch |F|/sqrt(dim) of an element */
    double residual;           /* of the last iteration [m] */
    int iterations;            /* of the last substep */
} fsi_elastic_body_stats;

/* A body. Read only. */
typedef struct fsi_elastic_body {
    int id;
    int vertex_count, element_count; /* of its simplices, or its cage */
    const int *elements;       /* dim + 1 corners each */
    int handles;               /* 0: full */
    int regions;               /* elements, or regions of them, with a rotation each */
    double mass;               /* [kg] */
    double size;               /* diagonal of the box at rest [m] */
    fsi_vec3 center, velocity, spin; /* of mass [m, m/s]; angular momentum about it [kg m^2/s] */
    fsi_elastic_body_stats stats;
} fsi_elastic_body;

/* A simulator. Read everything. */
typedef struct fsi_elastic {
    uint32_t cookie;
    fsi_context *context;      /* never NULL */
    fsi_elastic_desc desc;
    int body_count;
    const fsi_elastic_body *bodies; /* in the order of adding; moves when bodies are added or removed */
    double time;               /* seconds simulated */
    fsi_elastic_stats stats;
    void *impl;
} fsi_elastic;

/* Errors: COOKIE, ARGUMENT, NAN (name the field), MEMORY. *out is NULL on failure. */
FSI_API fsi_status fsi_elastic_create(fsi_elastic **out, const fsi_elastic_desc *desc);
FSI_API void fsi_elastic_destroy(fsi_elastic *s); /* NULL is fine */
/* Replaces the settings; dim and acceleration must be the same. Errors: COOKIE, ARGUMENT, NAN; then nothing has
   changed. */
FSI_API fsi_status fsi_elastic_set_desc(fsi_elastic *s, const fsi_elastic_desc *desc);
/* The error of the last call on it that failed. Never NULL. */
FSI_API const fsi_error *fsi_elastic_error(const fsi_elastic *s);
/* Advances exactly dt seconds, 1e-12 to 1000. dt = 0 moves nothing and fills stats. Matrices are
   factorised when dt differs from the last one, or attachments were added or removed. Added forces act in this step.
   Errors: ARGUMENT (dt), COOKIE (a body of an obstacle), NAN, MESH (an obstacle), MEMORY, SINGULAR, LIMIT (a body that
   would be farther than 1e12 m or faster than 1e12 m/s); then nothing has changed. */
FSI_API fsi_status fsi_elastic_step(fsi_elastic *s, fsi_real dt);
/* The time in which the fastest body travels a tenth of its size [s], at most 1000. Longer steps are stable too. */
FSI_API fsi_real fsi_elastic_suggest_dt(const fsi_elastic *s);
/* Adds offset to all positions, targets, planes, balls and obstacles' positions after the last step; the caller moves
   the meshes and bodies of obstacles. Errors: COOKIE, NAN, LIMIT. */
FSI_API fsi_status fsi_elastic_shift_origin(fsi_elastic *s, fsi_vec3 offset);

/* ---- >>bodies --------------------------------------------------------------------------------------------------- */

/* Arrays and surface are copied. */
typedef struct fsi_elastic_body_desc {
    uint32_t cookie;
    /* either simplices: */
    const fsi_vec3 *vertices;  /* vertex_count, at rest [m]; default NULL */
    int vertex_count;
    const int *elements;       /* 4 (2D: 3) * element_count, positive volumes (2D: counter-clockwise) */
    int element_count;
    const int *element_material; /* element_count; NULL: all 0 */
    /* or a closed surface, with a cage of cells around it: */
    const fsi_mesh *surface;   /* CLOSED, triangles (2D: segments), at rest; default NULL */
    int resolution;            /* cells along its longest side, 2 to 400; default 24 */
    fsi_elastic_material_fn *material_at; /* of a point at rest; NULL: 0 */
    void *material_user;
    const fsi_elastic_material *materials; /* default NULL: one, the default */
    int material_count;
    int handles;               /* 0: full; 4 to 1000; at most one for each vertex; a body with fewer than 8 vertices for
                                  each is better full; default 30 */
    fsi_real handle_reach;     /* radius of weights over the largest distance to a handle; 1.05 to 10; default 2 */
    int regions;               /* of a reduced body, about; a body of up to twice as many elements is not cut into
                                  regions; 8 to 100000; 0 (default): 20 for each handle, at least 600 */
    fsi_vec3 position;         /* initial position of the origin of its coordinates [m] */
    fsi_quat orientation;      /* unit */
    fsi_vec3 velocity, angular_velocity; /* initial ones [m/s, rad/s], about its centre of mass */
    fsi_real friction;         /* Coulomb's coefficient, 0 to 10; a pair has the mean; default 0.5 */
    int contact_points;        /* on its surface, at least where that is fine enough; 0: no contact; default 400 */
    int self_contact;          /* 1: also contact with itself; default 0 */
} fsi_elastic_body_desc;
FSI_API fsi_elastic_body_desc fsi_elastic_default_body_desc(void); /* fills every field */
/* Errors: COOKIE, ARGUMENT, NAN, LIMIT (name the field, element or vertex); MESH (inverted or flat elements, a surface
   that is open, or too thin for the lattice; a boundary that is not a closed surface); SINGULAR, MEMORY. */
FSI_API fsi_status fsi_elastic_add_body(fsi_elastic *s, const fsi_elastic_body_desc *desc, int *id);
/* Removes a body with its attachments; its skins must be destroyed before. Errors: COOKIE, ARGUMENT. */
FSI_API fsi_status fsi_elastic_remove_body(fsi_elastic *s, int id);
FSI_API int fsi_elastic_find_body(const fsi_elastic *s, int id);    /* index in bodies; -1: none */
/* Resets a body to its rest shape, with a pose and velocities as in its desc. Errors: COOKIE, ARGUMENT, NAN. */
FSI_API fsi_status fsi_elastic_reset_body(fsi_elastic *s, int id, fsi_vec3 position, fsi_quat orientation,
    fsi_vec3 velocity, fsi_vec3 angular_velocity);
/* Sets positions and velocities (vertex_count each; NULL: at rest) of the vertices. A reduced body gets the nearest
   ones in its subspace. Flat or inverted elements are allowed. Errors: COOKIE, ARGUMENT, NAN, SINGULAR. */
FSI_API fsi_status fsi_elastic_set_vertices(fsi_elastic *s, int id, const fsi_vec3 *positions,
                                            const fsi_vec3 *velocities);
/* Writes positions of its vertices, and velocities unless NULL: vertex_count each. A reduced body computes them here.
   Errors: COOKIE, ARGUMENT. */
FSI_API fsi_status fsi_elastic_vertices(fsi_elastic *s, int id, fsi_vec3 *positions, fsi_vec3 *velocities);
/* Its present surface: the mesh that contact uses, with normals and search tree. Read only; valid until the body is
   removed. NULL: there is no such body, or it has no contact points. */
FSI_API const fsi_mesh *fsi_elastic_surface(fsi_elastic *s, int id);
/* Adds a force [N] in the coming step on the point with rest coordinates `rest`. Errors: COOKIE, ARGUMENT, NAN. */
FSI_API fsi_status fsi_elastic_add_force(fsi_elastic *s, int id, fsi_vec3 rest, fsi_vec3 force);
/* The first surface that a ray meets, up to t_max: body and the point's rest coordinates, for an attachment.
   Returns the hit; face -1: none. */
FSI_API fsi_mesh_hit fsi_elastic_pick(fsi_elastic *s, fsi_vec3 origin, fsi_vec3 direction, fsi_real t_max, int *body,
    fsi_vec3 *rest);

/* ---- >>attachments ---------------------------------------------------------------------------------------------- */

/* Connects a point of a body with a target in space, by a stiff spring (a pin) or by one of given stiffness. */
typedef struct fsi_elastic_attachment_desc {
    uint32_t cookie;
    int body;                  /* id */
    int vertex;                /* of its simplices or its cage; -1 (default): the point `rest` */
    fsi_vec3 rest;             /* rest coordinates of the body */
    fsi_vec3 target;           /* its position at the end of the coming step [m]; it moves there in a straight line */
    fsi_real stiffness;        /* [N/m], above 0; 0 (default): a pin, 1000 m / H^2 + 10 E L with mass, Young's modulus
                                  and size of the body (2D: 10 E, a metre deep) */
} fsi_elastic_attachment_desc;
FSI_API fsi_elastic_attachment_desc fsi_elastic_default_attachment_desc(void); /* fills every field */
/* Adds an attachment; *id (NULL ok) names it. Errors: COOKIE, ARGUMENT, NAN, MEMORY. */
FSI_API fsi_status fsi_elastic_attach(fsi_elastic *s, const fsi_elastic_attachment_desc *desc, int *id);
/* Its new target [m], as in the desc. Errors: COOKIE, ARGUMENT, NAN. */
FSI_API fsi_status fsi_elastic_set_target(fsi_elastic *s, int id, fsi_vec3 target);
/* Removes an attachment. Errors: COOKIE, ARGUMENT, MEMORY; then nothing has changed. */
FSI_API fsi_status fsi_elastic_detach(fsi_elastic *s, int id);
/* The force [N] of the attachment on its body, at the end of the last step. Errors: COOKIE, ARGUMENT. */
FSI_API fsi_status fsi_elastic_attachment_force(const fsi_elastic *s, int id, fsi_vec3 *force);

/* ---- >>obstacles ------------------------------------------------------------------------------------------------ */

typedef enum fsi_elastic_shape_kind {
    FSI_ELASTIC_PLANE,
    FSI_ELASTIC_BALL,
    FSI_ELASTIC_HOLLOW_BALL
} fsi_elastic_shape_kind;
/* A solid: the half-space behind a plane; a ball; the space outside a ball. */
typedef struct fsi_elastic_shape_desc {
    uint32_t cookie;
    fsi_elastic_shape_kind kind; /* default PLANE */
    fsi_vec3 point;            /* on the plane; the centre [m]; default the origin */
    fsi_vec3 normal;           /* of the plane, out of the solid; default (0, 0, 1) */
    fsi_real radius;           /* of the ball, above 0 [m]; default 1 */
    fsi_real friction;         /* 0 to 10; default 0.5 */
} fsi_elastic_shape_desc;
FSI_API fsi_elastic_shape_desc fsi_elastic_default_shape_desc(void); /* fills every field */
/* Adds a shape; *id (NULL ok) names it. Errors: COOKIE, ARGUMENT, NAN, MEMORY. */
FSI_API fsi_status fsi_elastic_add_shape(fsi_elastic *s, const fsi_elastic_shape_desc *desc, int *id);
/* Replaces its desc; `point` moves in a straight line during the coming step. Errors: COOKIE, ARGUMENT, NAN. */
FSI_API fsi_status fsi_elastic_set_shape(fsi_elastic *s, int id, const fsi_elastic_shape_desc *desc);
FSI_API fsi_status fsi_elastic_remove_shape(fsi_elastic *s, int id); /* Errors: COOKIE, ARGUMENT */

/* A closed or two-sided mesh of triangles (2D: segments), at rest, moved by fsi_mesh_move, or fixed to a body. Mesh and
   body are referenced, not copied; they must outlive the simulator or be removed first. */
typedef struct fsi_elastic_obstacle_desc {
    uint32_t cookie;
    const fsi_mesh *mesh;      /* CLOSED */
    fsi_body *body;            /* PRESCRIBED, with the mesh in its axes; gets the reactions; default NULL */
    fsi_real friction;         /* 0 to 10; default 0.5 */
} fsi_elastic_obstacle_desc;
FSI_API fsi_elastic_obstacle_desc fsi_elastic_default_obstacle_desc(void); /* fills every field */
/* Adds an obstacle; *id (NULL ok) names it. Errors: COOKIE, ARGUMENT, NAN, MESH, MEMORY. */
FSI_API fsi_status fsi_elastic_add_obstacle(fsi_elastic *s, const fsi_elastic_obstacle_desc *desc, int *id);
FSI_API fsi_status fsi_elastic_add_mesh(fsi_elastic *s, const fsi_mesh *mesh, int *id); /* with a default desc */
FSI_API fsi_status fsi_elastic_remove_obstacle(fsi_elastic *s, int id); /* Errors: COOKIE, ARGUMENT */
/* For a mesh or body that was set to another position: it does not sweep the path to it. Errors: COOKIE, ARGUMENT. */
FSI_API fsi_status fsi_elastic_teleport_obstacle(fsi_elastic *s, int id);
/* Force and torque (about the origin) on it, mean of the last step [N, N m]. Also for shapes.
   Errors: COOKIE, ARGUMENT. */
FSI_API fsi_status fsi_elastic_obstacle_reaction(const fsi_elastic *s, int id, fsi_vec3 *force, fsi_vec3 *torque);

/* ---- >>skins ---------------------------------------------------------------------------------------------------- */

/* Vertices of a render mesh that follow a body, any number of them; only update and push use them. */
typedef struct fsi_elastic_skin {
    uint32_t cookie;
    fsi_context *context;
    int body, count;           /* id; vertices */
    size_t bytes;              /* that an update reads and writes */
    void *impl;
} fsi_elastic_skin;
/* rest: count positions in the body's rest coordinates; normals at rest, NULL: no normals. Copied. Errors: COOKIE,
   ARGUMENT, NAN, MEMORY. *out is NULL on failure. */
FSI_API fsi_status fsi_elastic_skin_create(fsi_elastic_skin **out, fsi_elastic *s, int body, const fsi_vec3 *rest,
    const fsi_vec3 *normals, int count);
FSI_API void fsi_elastic_skin_destroy(fsi_elastic_skin *skin); /* NULL is fine */
/* Writes present positions and normals (NULL ok). Normals are n = cof(F) n0 / |.|, F the deformation gradient.
   Allocates nothing. Errors: COOKIE, ARGUMENT. */
FSI_API fsi_status fsi_elastic_skin_update(fsi_elastic_skin *skin, const fsi_elastic *s, fsi_vec3 *positions,
    fsi_vec3 *normals);
/* Forces [N] on its vertices act on the body in the coming step: U^T f. Errors: COOKIE, ARGUMENT, NAN. */
FSI_API fsi_status fsi_elastic_skin_push(fsi_elastic_skin *skin, fsi_elastic *s, const fsi_vec3 *forces);

/* ---- >>state ---------------------------------------------------------------------------------------------------- */

/* Unknowns and velocities of all bodies, history of the integrator, contact forces, time. Bodies, attachments,
   obstacles and settings are not saved: load into a simulator with the same ones. A NULL buffer only sets *size.
   Errors of load: COOKIE, ARGUMENT, FORMAT, MEMORY; then nothing has changed. */
FSI_API fsi_status fsi_elastic_save(const fsi_elastic *s, void *buffer, size_t capacity, size_t *size);
FSI_API fsi_status fsi_elastic_load(fsi_elastic *s, const void *buffer, size_t size);
/* Hash of the bytes that save writes; 0 without a simulator. */
FSI_API uint64_t fsi_elastic_hash(const fsi_elastic *s);
/* Draws edges of the surfaces, contact forces, attachments and obstacles. */
FSI_API void fsi_elastic_debug_draw(fsi_elastic *s, const fsi_debug_draw *draw);

/* ---- >>stages: a step in pieces, for fsi's own headers, not for you --------------------------------------------- */

/* fsi_elastic_step calls these in this order:

      begin            checks, room for contacts; public fields do not change
      for each substep:
         predict       S of (E3), matrices, contact candidates; the substep of dt seconds begins at the fraction `done`
                       of the step and is the fraction `share` of it
         constrain     initial contact forces: those of the last substep
         solve         local and global steps with contacts; the last that can fail
         accept        q, v of the next substep; a liquid may `resume` after it, with other forces of support
         end_substep   what obstacles and attachments got
      end              publishes everything; cannot fail
   After an error `undo` restores the state before `begin`. */
FSI_API fsi_status fsi__el_begin(fsi_elastic *s, double dt, const char *fn);
FSI_API fsi_status fsi__el_predict(fsi_elastic *s, double dt, double done, double share);
FSI_API fsi_status fsi__el_constrain(fsi_elastic *s);
FSI_API fsi_status fsi__el_solve(fsi_elastic *s);
FSI_API void fsi__el_accept(fsi_elastic *s);
/* Takes accept back, and solves again from there. Errors: those of solve. */
FSI_API fsi_status fsi__el_resume(fsi_elastic *s);
FSI_API void fsi__el_end_substep(fsi_elastic *s);
FSI_API void fsi__el_end(fsi_elastic *s);
FSI_API void fsi__el_undo(fsi_elastic *s);
/* The inner body with that index. */
FSI_API fsi__el_body *fsi__el_inner(fsi_elastic *s, int index);
/* 1: it and another body push each other in the running substep. */
FSI_API int fsi__el_is_pushed(const fsi_elastic *s, int index);
/* A new mesh of its surface at rest. Errors: ARGUMENT (it has no contact points), MEMORY. */
FSI_API fsi_status fsi__el_rest_mesh(fsi_elastic *s, int index, const char *fn, fsi_mesh **out);
/* Its unknowns have been changed: surface and contact points follow when they are needed. */
FSI_API void fsi__el_moved(fsi_elastic *s, int index);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_ELASTIC_H */

/* ==== Stop here if you only want the API. ====================================================================== */

/* The functions of each stage of a step, without their prefix fsi__el_:

      begin          keep: the state for undo
      predict        body_predict: S, matrices; move_obstacles; find_contacts: points against shapes, meshes, bodies
      constrain      take_forces: of the last substep; make_sides: G, the response of contacts to forces on others
      solve          body_project: R and P of each element        (local step)
                     body_solve: A q = b                          (global step)
                     sweep, respond: contact forces               until the tolerance, or desc.iterations
                     body_advance: Anderson's acceleration
      accept         body_accept: q, v; in a liquid resume: body_retract, and solve with other forces
      end_substep    pull, push_obstacles
      end            reactions; show, sum_up: public fields

   Contact. The forces l on the contacts of a body move its unknowns by A^-1 J^T l, A the matrix of (E4). As the three
   coordinates have the same matrix, contact i moves contact j by a number, G_ij = u_i A^-1 u_j^T (E9), times the force.
   So a projected Gauss-Seidel method on numbers finds the forces of (E8), which keep all gaps open within Coulomb's
   cones, after each global step. Equations (E1) to (E10) are those of docs/elastic.md. */

#ifdef FSI_IMPLEMENTATION
#undef FSI_ELASTIC_IMPLEMENTATION
#define FSI_ELASTIC_IMPLEMENTATION
#endif
#ifdef FSI_ELASTIC_IMPLEMENTATION
#ifndef FSI_ELASTIC_IMPLEMENTATION_DONE
#define FSI_ELASTIC_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_elastic_body.h"
#include "fsi_obstacle.h"
#include <stdio.h>
#include <stdlib.h>

FSI__STRICT_BEGIN

/* ---- >>simulator at work -------------------------------------------------------------------------------------- */

/* A contact of a body's point with a shape, an obstacle, or a face of a body. */
typedef struct fsi__el_contact {
    int body, point;          /* indices; row of the body's surface rows */
    int kind, other;          /* index of the partner among its kind */
    int face;                 /* of the partner's mesh */
    double bary[3];
    double normal[3];         /* towards the point */
    double gap;               /* at the beginning of the substep [m] */
    double room;              /* by how much the gap may close in the substep; below 0: must open [m] */
    double drift[3];          /* displacement of the obstacle during the substep [m] */
    double origin[3];         /* the point minus the partner's, at the beginning of the substep, plus drift [m] */
    double friction, weight;  /* Coulomb's coefficient; W_cc [m/N] */
    double slip[3];           /* displacement relative to the partner, in the substep [m] */
    double force[3], before[3]; /* on the point [N]; before the sweeps of the running iteration */
    double last[3];           /* force before the running pair of sweeps [N] */
    int side[2];              /* of the body; of the other body, -1: none */
} fsi__el_contact;
enum { FSI__EL_SHAPE, FSI__EL_OBSTACLE, FSI__EL_BODY };

/* A body's end of a contact: its row, of fsi__el_member.joint, is sum_k weight[k] times surface row node[k]. */
typedef struct fsi__el_side { int contact, nodes, node[3]; double weight[3], sign; } fsi__el_side;

/* The force of a contact of the last substep: the initial one of the next. */
typedef struct fsi__el_touch { int32_t body, point, kind, other; double force[3]; } fsi__el_touch;

typedef struct fsi__el_attachment {
    int id, body, spring;     /* body: index */
    fsi_elastic_attachment_desc desc;
    double from[3], to[3];    /* the target before and after the coming step */
    double force[3], found[3]; /* on the body, of the last substep: of the last step; of the running one [N] */
} fsi__el_attachment;

typedef struct fsi__el_solid {
    int id;
    fsi_elastic_shape_desc desc;
    fsi_vec3 from;            /* point before the coming step */
    double impulse[3], moment[3];
    fsi_vec3 force, torque;
} fsi__el_solid;

typedef struct fsi__el_wall {
    fsi__obstacle base;
    double friction, way;         /* way: largest displacement of a vertex in the running substep [m] */
} fsi__el_wall;

typedef struct fsi__el_member {
    fsi__el_body body;
    int id;
    fsi_elastic_body_desc desc;   /* without its arrays */
    fsi_mesh *mesh;               /* the surface; NULL: none */
    int mesh_stale;
    double spacing;               /* of its contact points [m] */
    fsi__el_rows rows;            /* of the mesh's vertices, then of the contact points */
    int points;                   /* contact point k has row mesh->vertex_count + k */
    fsi_vec3 *moved;              /* mesh->source_count: scratch */
    int vertex_room;
    fsi__d3 *rest;                /* of the rows, with self-contact: rest coordinates */
    double *start, *aim;          /* 3 * points: at q, at S */
    int *source;                  /* points: mesh vertex at which the point is, or -1 - the face that it is on */
    fsi__d3 away;                 /* sum of the normals of another body's points that are inside this one */
    int inside;                   /* their number */
    fsi_box3 box;                 /* of points at both, of the running substep */
    /* columns A^-1 u^T of rows, valid for one factorisation of A */
    int *slot, slots, slot_room;
    double *column;
    unsigned column_of;           /* factorisation that they belong to */
    /* sides of the running substep */
    fsi__el_side *side;
    int sides, side_room;
    fsi__el_rows joint;           /* row of each side */
    double *response, *coupling;  /* sides * dofs; sides * sides: G */
    size_t response_room, coupling_room;
    fsi__el_motion motion;
    double kept_one[2];
    double pressed[2];            /* by contacts, in the last substep and in this one [N] */
} fsi__el_member;

typedef struct fsi__el_impl {
    fsi_elastic *s;
    fsi_context own;
    const char *fn;
    fsi__el_member *member;
    fsi_elastic_body *shown;
    int members, member_room, next_id;
    fsi__el_attachment *attachment;
    int attachments, attachment_room, next_attachment;
    fsi__el_solid *solid;
    int solids, solid_room;
    fsi__obstacles obstacles;
    fsi__el_contact *contact;
    int contacts, contact_room;
    int many;                         /* contacts: sweeps move the bodies' unknowns, see plan_sweeps */
    double sweep_work;                /* numbers that a sweep changes */
    fsi__el_mixer mixer;              /* of forces and slips after pairs of sweeps */
    double *mixed;                    /* these, the residual, and the mixer's history: 9 numbers a contact each */
    size_t mixed_room;
    fsi__el_touch *touch, *touched;   /* before the step; of the running one */
    int touches, touch_room, touched_count, touched_room;
    double *kept;                     /* vectors of all bodies, see fsi__el_vectors */
    size_t kept_room;
    double dt, sub_dt, done, share;
    fsi_elastic_stats stats;
    long long degraded;               /* steps so far */
    double lap;
} fsi__el_impl;

static fsi__el_impl *fsi__el_of(const fsi_elastic *s)
{
    return s && s->cookie == FSI__COOKIE('E', fsi_elastic) ? (fsi__el_impl *)s->impl : NULL;
}

FSI_API fsi__el_body *fsi__el_inner(fsi_elastic *s, int index) { return &fsi__el_of(s)->member[index].body; }

FSI_API void fsi__el_moved(fsi_elastic *s, int index) { fsi__el_of(s)->member[index].mesh_stale = 1; }

FSI_API int fsi_elastic_find_body(const fsi_elastic *s, int id)
{
    const fsi__el_impl *im = fsi__el_of(s);
    int k;
    if (!im) return -1;
    for (k = 0; k < im->members; k++) if (im->member[k].id == id) return k;
    return -1;
}

static fsi_status fsi__el_find(const fsi_elastic *s, const char *fn, int id, fsi__el_member **out)
{
    const fsi__el_impl *im = fsi__el_of(s);
    int k;
    *out = NULL;
    if (!im) return FSI_ERROR_COOKIE;
    k = fsi_elastic_find_body(s, id);
    if (k < 0) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, id, 0, "there is no body %d", id);
    *out = &im->member[k];
    return FSI_OK;
}

static double fsi__el_phase(fsi__el_impl *im)
{
    const double now = fsi__now(im->s->context), spent = now - im->lap;
    im->lap = now;
    return spent;
}

/* ---- >>step: surfaces and their points ------------------------------------------------------------------------- */

#define FSI__EL_GRAIN 1024     /* vertices of a surface a chunk */

static void fsi__el_move_range(void *arg, int chunk, int begin, int end)
{
    const fsi__el_member *m = (const fsi__el_member *)arg;
    int v;
    (void)chunk;
    for (v = begin; v < end; v++) if (m->mesh->source_vertex[v] >= 0)
        m->moved[v] = fsi__d3_real(fsi__el_point(&m->rows, m->mesh->source_vertex[v], m->body.q));
}

/* Moves the mesh of a body's surface to the present q. */
static fsi_status fsi__el_follow(fsi__el_member *m)
{
    if (!m->mesh || !m->mesh_stale) return FSI_OK;
    fsi__parallel_work(m->body.context, m->mesh->source_count, FSI__EL_GRAIN,
        2.0 * m->rows.start[m->mesh->vertex_count], fsi__el_move_range, m);
    FSI__TRY(fsi_mesh_set(m->mesh, m->moved, m->mesh->source_count));
    m->mesh_stale = 0;
    return FSI_OK;
}

static void fsi__el_place_points(fsi__el_member *m)
{
    const int first = m->mesh ? m->mesh->vertex_count : 0;
    int k;
    m->box = fsi_box3_empty();
    for (k = 0; k < m->points; k++) {
        const fsi__d3 a = fsi__el_point(&m->rows, first + k, m->body.q),
                      b = fsi__el_point(&m->rows, first + k, m->body.aim);
        fsi__d3_put(m->start + 3 * (size_t)k, a);
        fsi__d3_put(m->aim + 3 * (size_t)k, b);
        m->box = fsi_box3_grow(fsi_box3_grow(m->box, fsi__d3_real(a)), fsi__d3_real(b));
    }
}

/* ---- >>step: contacts ----------------------------------------------------------------------------------------------

   A point is a candidate where its gap at the beginning of the substep, or at S, is below a twentieth of the spacing of
   points. The partner's tangent plane is constant during the substep: gap(q) = gap + n.(displacement of the point
   relative to the partner) (E8). An open gap must not become negative; a negative one must open, but by no more than
   FSI__EL_RECOVERY body sizes a second. */

#define FSI__EL_MARGIN 0.05    /* over the spacing of points */
#define FSI__EL_REACH 0.05     /* least search radius for faces, over the body's size */
#define FSI__EL_WOUND 0.05     /* inverted share of two bodies together from which a surface no longer tells outside
                                  from inside: it would draw others in, so they do not meet until it has its shape */
#define FSI__EL_RECOVERY 2.0   /* overlaps open with this many body sizes a second, at most */

/* By how much a gap may close in the substep; a negative one must open. */
static double fsi__el_room(const fsi__el_impl *im, const fsi__el_member *m, double gap)
{
    return gap < 0 ? fmax(gap, -FSI__EL_RECOVERY * m->body.shape.size * im->sub_dt) : gap;
}

static fsi_status fsi__el_add_contact(fsi__el_impl *im, int body, int point, int kind, int other, fsi__d3 normal,
                                      double gap, fsi__d3 drift, double friction, fsi__el_contact **out)
{
    fsi__el_contact *c;
    FSI__TRY(fsi__room_in(im->s->context, &im->contact, sizeof *im->contact, im->contacts, &im->contact_room,
        im->contacts + 1, im->fn));
    *out = c = &im->contact[im->contacts++];
    memset(c, 0, sizeof *c);
    c->body = body;
    c->point = point;
    c->kind = kind;
    c->other = other;
    c->face = -1;
    c->friction = friction;
    c->gap = gap += fsi__d3_dot(normal, drift); /* it was measured to the obstacle at the end of the substep */
    c->room = fsi__el_room(im, &im->member[body], gap);
    fsi__d3_put(c->normal, normal);
    fsi__d3_put(c->drift, drift);
    c->side[0] = c->side[1] = -1;
    return FSI_OK;
}

/* Gap and normal of a point to a plane, or a ball. */
static double fsi__el_solid_gap(const fsi_elastic_shape_desc *d, fsi__d3 x, fsi__d3 *normal)
{
    const fsi__d3 r = fsi__d3_sub(x, fsi__d3_of(d->point));
    const double length = fsi__d3_norm(r);
    if (d->kind == FSI_ELASTIC_PLANE) {
        *normal = fsi__d3_unit(fsi__d3_of(d->normal));
        return fsi__d3_dot(*normal, r);
    }
    *normal = length > 0 ? fsi__d3_over(r, length) : fsi__d3_unit(fsi__d3_of(d->normal));
    if (d->kind == FSI_ELASTIC_BALL) return length - (double)d->radius;
    *normal = fsi__d3_scale(*normal, -1);
    return (double)d->radius - length;
}

static fsi_status fsi__el_meet_solids(fsi__el_impl *im, int body, int point)
{
    const fsi__el_member *m = &im->member[body];
    const fsi__d3 x = fsi__d3_at(m->start + 3 * (size_t)point), y = fsi__d3_at(m->aim + 3 * (size_t)point);
    fsi__el_contact *c;
    int k;
    for (k = 0; k < im->solids; k++) {
        const fsi__el_solid *o = &im->solid[k];
        const fsi__d3 way = fsi__d3_diff(o->desc.point, o->from);
        fsi_elastic_shape_desc d = o->desc; /* at the end of the substep */
        fsi__d3 n, unused;
        double gap;
        d.point = fsi__d3_real(fsi__d3_madd(fsi__d3_of(o->from), im->done + im->share, way));
        gap = fsi__el_solid_gap(&d, x, &n);
        if (fmin(gap, fsi__el_solid_gap(&d, y, &unused)) > FSI__EL_MARGIN * m->spacing) continue;
        FSI__TRY(fsi__el_add_contact(im, body, point, FSI__EL_SHAPE, k, n, gap, fsi__d3_scale(way, im->share),
            0.5 * ((double)d.friction + (double)m->desc.friction), &c));
    }
    return FSI_OK;
}

/* Closest point of a mesh, with its gap and the direction to x. Returns 0 when it is farther than reach. */
static int fsi__el_closest(const fsi_mesh *mesh, fsi__d3 x, double reach, fsi_mesh_hit *hit, double *gap,
                           fsi__d3 *normal)
{
    fsi_box3 at;
    fsi__d3 d;
    *hit = fsi_mesh_closest(mesh, fsi__d3_real(x), (fsi_real)reach, -1);
    if (hit->face < 0) return 0;
    d = fsi__d3_sub(x, fsi__d3_of(hit->point));
    at.lo = at.hi = fsi__d3_real(x);
    /* x is outside if it is outside the mesh's box; the side may be wrong where the surface crosses itself. */
    *gap = (hit->side > 0 || (!mesh->container && !fsi_box3_overlap(at, mesh->box)) ? 1 : -1) * fsi__d3_norm(d);
    /* The normal is along the line from the closest point to x, outwards; for x on the surface, that of the face. */
    *normal = fabs(*gap) > 1e-6 * reach ? fsi__d3_over(d, *gap) : fsi__d3_of(hit->normal);
    return 1;
}

static fsi_status fsi__el_meet_obstacles(fsi__el_impl *im, int body, int point)
{
    const fsi__el_member *m = &im->member[body];
    const fsi__d3 x = fsi__d3_at(m->start + 3 * (size_t)point), y = fsi__d3_at(m->aim + 3 * (size_t)point);
    const double way = fsi__d3_norm(fsi__d3_sub(y, x));
    fsi_mesh_hit hit;
    fsi__el_contact *c;
    fsi__d3 n;
    double gap;
    int k, j;
    for (k = 0; k < im->obstacles.count; k++) {
        const fsi__el_wall *o = (const fsi__el_wall *)(const void *)fsi__obstacle_at(&im->obstacles, k);
        const fsi_mesh *mesh = o->base.mesh;
        const double reach = fmax(2 * m->spacing, FSI__EL_REACH * m->body.shape.size) + 1.5 * (way + o->way);
        double bary[3];
        fsi__d3 v;

        /* The closest point of the mesh, if it is within reach. */
        if (!fsi_box3_overlap(fsi_box3_inflate(mesh->box, (fsi_real)reach), m->box)) continue;
        if (!fsi__el_closest(mesh, x, reach, &hit, &gap, &n)) continue;

        /* The gap at the beginning or at S must be within the margin. v: the obstacle's displacement in the substep. */
        for (j = 0; j < 3; j++) bary[j] = (double)hit.bary[j];
        v = fsi__obstacle_velocity(&o->base, hit.face, bary, 1);
        if (gap > FSI__EL_MARGIN * m->spacing && gap + fsi__d3_dot(n, fsi__d3_sub(y, x)) > FSI__EL_MARGIN * m->spacing)
            continue;
        FSI__TRY(fsi__el_add_contact(im, body, point, FSI__EL_OBSTACLE, k, n, gap, v,
            0.5 * (o->friction + (double)m->desc.friction), &c));
        c->face = hit.face;
        memcpy(c->bary, bary, sizeof bary);
    }
    return FSI_OK;
}

/* Row of a corner of a body's face. */
static int fsi__el_corner(const fsi__el_member *m, int face, int k)
{
    return m->mesh->faces[m->mesh->corners * face + k];
}

static fsi__d3 fsi__el_on_face(const fsi__el_member *m, int face, const double *bary, const double *q)
{
    fsi__d3 x = fsi__d3_zero();
    int k;
    for (k = 0; k < m->mesh->corners; k++)
        x = fsi__d3_madd(x, bary[k], fsi__el_point(&m->rows, fsi__el_corner(m, face, k), q));
    return x;
}

/* Outward normal of the surface at a contact point. */
static fsi__d3 fsi__el_outwards(const fsi__el_member *m, int point)
{
    const int v = m->source[point];
    return fsi__d3_of(v >= 0 ? m->mesh->vertex_normals[v] : m->mesh->face_normals[-1 - v]);
}

static fsi_status fsi__el_keep_pair(fsi__el_impl *im, int body, int point, int other, const fsi_mesh_hit *hit,
                                    double gap, fsi__d3 n)
{
    const fsi__el_member *m = &im->member[body], *o = &im->member[other];
    const fsi__d3 moves = fsi__d3_sub(fsi__d3_at(m->aim + 3 * (size_t)point), fsi__d3_at(m->start + 3 * (size_t)point));
    const double margin = FSI__EL_MARGIN * fmin(m->spacing, o->spacing);
    double bary[3];
    fsi__d3 rests;
    fsi__el_contact *c;
    int j;
    for (j = 0; j < 3; j++) bary[j] = (double)hit->bary[j];
    rests =
        fsi__d3_sub(fsi__el_on_face(o, hit->face, bary, o->body.aim), fsi__el_on_face(o, hit->face, bary, o->body.q));
    if (gap > margin && gap + fsi__d3_dot(n, fsi__d3_sub(moves, rests)) > margin) return FSI_OK;
    FSI__TRY(fsi__el_add_contact(im, body, point, FSI__EL_BODY, other, n, gap, fsi__d3_zero(),
        0.5 * ((double)m->desc.friction + (double)o->desc.friction), &c));
    c->face = hit->face;
    memcpy(c->bary, bary, sizeof bary);
    return FSI_OK;
}

/* Diagonal of the box of a body's surface [m]. */
static double fsi__el_width(const fsi__el_member *m)
{
    return fsi__d3_norm(fsi__d3_diff(m->mesh->box.hi, m->mesh->box.lo));
}

/* The normal of a contact at its partner's surface, n by the closest point. A corner that a face touches has many: that
   of the face is right, as the corner's own contact with the face has it; on two of them the corner would be held as by
   a wedge. So the point is moved into its own body, by the margin, and the normal is the direction to it there. */
static fsi__d3 fsi__el_faced(const fsi__el_member *m, const fsi__el_member *o, int point, fsi__d3 x, double gap,
                             fsi__d3 n)
{
    const double margin = FSI__EL_MARGIN * fmin(m->spacing, o->spacing);
    const fsi__d3 inwards = fsi__d3_scale(fsi__el_outwards(m, point), -1);
    fsi_mesh_hit hit;
    fsi__d3 to;
    double away;
    if (!(fabs(gap) < 0.5 * margin) || !(fsi__d3_dot(inwards, n) > 0)) return n;
    if (!fsi__el_closest(o->mesh, fsi__d3_madd(x, margin, inwards), 2 * margin, &hit, &away, &to)) return n;
    return away > 0 ? to : n;
}

static fsi_status fsi__el_meet_bodies(fsi__el_impl *im, int body, int point)
{
    const fsi__el_member *m = &im->member[body];
    const fsi__d3 x = fsi__d3_at(m->start + 3 * (size_t)point);
    const double way = fsi__d3_norm(fsi__d3_sub(fsi__d3_at(m->aim + 3 * (size_t)point), x));
    fsi_mesh_hit hit;
    fsi__d3 n;
    double gap;
    int k;
    for (k = 0; k < im->members; k++) {
        const fsi__el_member *o = &im->member[k];
        fsi_box3 b, at;
        double reach;
        if (k == body || !o->mesh || o->mesh_stale) continue; /* stale: no other body is close to it */
        if (m->body.inverted + o->body.inverted > FSI__EL_WOUND) continue;
        b = o->mesh->box;
        reach = fmax(2 * fmax(m->spacing, o->spacing), FSI__EL_REACH * m->body.shape.size) + 2 * way;
        reach = fmin(reach, 0.5 * o->body.shape.size);
        if (!fsi_box3_overlap(fsi_box3_inflate(b, (fsi_real)reach), m->box)) continue;
        at.lo = at.hi = fsi__d3_real(x);
        if (fsi__el_closest(o->mesh, x, reach, &hit, &gap, &n)) {
            FSI__TRY(fsi__el_keep_pair(im, body, point, k, &hit, gap, fsi__el_faced(m, o, point, x, gap, n)));
            continue;
        }

        /* No face is within reach, but the point may be deep inside: fsi__el_part finds its way out. */
        if (!fsi_box3_overlap(at, b)) continue;
        n = fsi__el_outwards(m, point);
        hit = fsi_mesh_ray(o->mesh, at.lo, fsi__d3_real(fsi__d3_scale(n, -1)), (fsi_real)fsi__el_width(o));
        if (hit.face >= 0 && hit.side < 0)
            FSI__TRY(fsi__el_keep_pair(im, body, point, k, &hit, -(double)hit.t, n));
    }
    return FSI_OK;
}

/* Rest coordinates of a row of the surface. */
static fsi__d3 fsi__el_rest_of(const fsi__el_member *m, int row) { return fsi__el_point(&m->rows, row, m->body.rest); }

/* Contact of a body with itself: a face that is close to the point, but far from it at rest (the paper's (15)). */
static fsi_status fsi__el_meet_self(fsi__el_impl *im, int body, int point)
{
    const fsi__el_member *m = &im->member[body];
    const fsi__d3 x = fsi__d3_at(m->start + 3 * (size_t)point), rest = m->rest[m->mesh->vertex_count + point];
    const double way = fsi__d3_norm(fsi__d3_sub(fsi__d3_at(m->aim + 3 * (size_t)point), x)), reach = m->spacing + way;
    fsi__walk w;
    fsi_mesh_hit best;
    double nearest = reach, gap = 0;
    fsi__d3 n = fsi__d3_zero();
    int face;

    /* The nearest one whose normal is towards the point or away from it, and which is 3 spacings away at rest. */
    best.face = -1;
    w.point = fsi__d3_real(x);
    face = fsi__walk_begin(&w, FSI__WALK_POINT, fsi__nodes(m->mesh), reach * reach);
    for (; face >= 0; face = fsi__walk_next(&w, nearest * nearest)) {
        fsi_mesh_hit h;
        fsi__d3 d, f;
        double along, away;
        if (fsi__d3_norm(fsi__d3_sub(m->rest[fsi__el_corner(m, face, 0)], rest)) < 3 * m->spacing) continue;
        h = fsi_mesh_closest_on_face(m->mesh, face, w.point);
        d = fsi__d3_sub(x, fsi__d3_of(h.point));
        f = fsi__d3_of(m->mesh->face_normals[face]);
        along = fsi__d3_dot(d, f);
        away = fsi__d3_norm(d);
        if (away > nearest || fabs(along) < 0.7 * away) continue; /* x is beside the face */
        nearest = away;
        gap = along;
        n = f;
        best = h;
    }
    return best.face >= 0 && gap > -0.5 * m->spacing ? fsi__el_keep_pair(im, body, point, body, &best, gap, n) : FSI_OK;
}

/* Gives the contact of a point that is inside another body the direction d and the face where it leaves that body
   along d. Returns 0 when the point has its body in front of it on that way, and pushes nothing. */
static int fsi__el_leave(const fsi__el_impl *im, fsi__el_contact *c, fsi__d3 outwards, fsi__d3 d)
{
    const fsi__el_member *m = &im->member[c->body], *o = &im->member[c->other];
    const fsi__d3 x = fsi__d3_at(m->start + 3 * (size_t)c->point);
    fsi_mesh_hit hit;
    int k;
    if (!(fsi__d3_dot(outwards, d) < 0)) return 0;
    hit = fsi_mesh_ray(o->mesh, fsi__d3_real(x), fsi__d3_real(d), (fsi_real)fsi__el_width(o));
    if (hit.face < 0 || hit.side > 0) return 0;
    for (k = 0; k < 3; k++) c->bary[k] = (double)hit.bary[k];
    c->face = hit.face;
    c->gap = -(double)hit.t;
    c->room = fsi__el_room(im, m, c->gap);
    fsi__d3_put(c->normal, d);
    return 1;
}

/* Bodies that are deep in each other. The closest face of a point inside counts only where the two surfaces face each
   other, n1 . n2 < -FSI__EL_FACING ((15) has 0): else it is at the far side of the other body, or beside the
   point, and pushes it on. Bars across each other have n1 . n2 = 0, and what is a little less would pinch them. Such a
   point leaves along the same way as all of its body that are inside the same other one: against the mean of their
   normals, along which the common volume shrinks fastest, and a little away from the other's middle. That decides where
   the mean is 0, as for a body that is all inside, and grows as they part. first: the first contact of the body. */
#define FSI__EL_FACING 0.5
#define FSI__EL_AWAY 0.3 /* length of the way from the other's middle beside the mean of the normals */

static int fsi__el_is_inside(const fsi__el_contact *c)
{
    return c->kind == FSI__EL_BODY && c->other != c->body && c->gap < 0;
}

static void fsi__el_part(fsi__el_impl *im, int body, int first)
{
    const fsi__el_member *m = &im->member[body];
    int i, kept = first;

    /* The sum of the normals for each other body. */
    for (i = first; i < im->contacts; i++) if (fsi__el_is_inside(&im->contact[i])) {
        im->member[im->contact[i].other].away = fsi__d3_zero();
        im->member[im->contact[i].other].inside = 0;
    }
    for (i = first; i < im->contacts; i++) if (fsi__el_is_inside(&im->contact[i])) {
        fsi__el_member *o = &im->member[im->contact[i].other];
        o->away = fsi__d3_add(o->away, fsi__el_outwards(m, im->contact[i].point));
        o->inside++;
    }

    /* Points whose closest face does not face them leave along it, or push nothing. */
    for (i = first; i < im->contacts; i++) {
        fsi__el_contact *c = &im->contact[i];
        if (fsi__el_is_inside(c)) {
            const fsi__el_member *o = &im->member[c->other];
            const fsi__d3 outwards = fsi__el_outwards(m, c->point);
            const fsi__d3 apart = fsi__d3_unit(fsi__d3_add(fsi__d3_diff(m->mesh->box.lo, o->mesh->box.lo),
                                                           fsi__d3_diff(m->mesh->box.hi, o->mesh->box.hi)));
            const fsi__d3 way = fsi__d3_sub(fsi__d3_scale(apart, FSI__EL_AWAY * o->inside), o->away);
            if (fsi__d3_dot(outwards, fsi__d3_at(c->normal)) >= -FSI__EL_FACING &&
                !fsi__el_leave(im, c, outwards, fsi__d3_unit(way)))
                continue;
        }
        im->contact[kept++] = *c;
    }
    im->contacts = kept;
}

static fsi_status fsi__el_find_contacts(fsi__el_impl *im)
{
    int b, k, o, first;
    im->contacts = 0;
    for (b = 0; b < im->members; b++) fsi__el_place_points(&im->member[b]);

    /* Meshes of bodies that may collide are moved to q. */
    for (b = 0; b < im->members; b++) for (o = 0; o < im->members; o++) {
        const fsi_real reach = (fsi_real)(2 * (im->member[b].spacing + im->member[o].spacing));
        if (b == o ? !im->member[b].desc.self_contact
            : !fsi_box3_overlap(fsi_box3_inflate(im->member[b].box, reach), im->member[o].box)) continue;
        FSI__TRY(fsi__el_follow(&im->member[b]));
    }

    /* Each point against shapes, obstacles, bodies and its own body. */
    for (b = 0; b < im->members; b++) {
        first = im->contacts;
        for (k = 0; k < im->member[b].points; k++) {
            FSI__TRY(fsi__el_meet_solids(im, b, k));
            FSI__TRY(fsi__el_meet_obstacles(im, b, k));
            FSI__TRY(fsi__el_meet_bodies(im, b, k));
            if (im->member[b].desc.self_contact) FSI__TRY(fsi__el_meet_self(im, b, k));
        }
        fsi__el_part(im, b, first);
    }
    return FSI_OK;
}

/* ---- >>step: contact forces ----------------------------------------------------------------------------------- */

/* Initial forces: those of the last substep on the same point by the same partner. Both lists have the order of
   find_contacts. */
static void fsi__el_take_forces(fsi__el_impl *im, const fsi__el_touch *touch, int count)
{
    int i, k;
    for (i = 0, k = 0; i < im->contacts; i++) {
        fsi__el_contact *c = &im->contact[i];
        for (; k < count; k++) {
            const fsi__el_touch *t = &touch[k];
            if (t->body != c->body) { if (t->body < c->body) continue; break; }
            if (t->point != c->point) { if (t->point < c->point) continue; break; }
            if (t->kind != c->kind) { if (t->kind < c->kind) continue; break; }
            if (t->other < c->other) continue;
            if (t->other == c->other) memcpy(c->force, t->force, sizeof c->force);
            break;
        }
    }
}

/* A^-1 u^T of a surface row, solved once for each factorisation of A. */
static fsi_status fsi__el_column_of(fsi__el_impl *im, fsi__el_member *m, int row, const double **out)
{
    const size_t d = (size_t)m->body.dofs;
    if (m->slot[row] < 0) {
        FSI__TRY(fsi__room_in(im->s->context, &m->column, d * sizeof(double), m->slots, &m->slot_room, m->slots + 1,
                              im->fn));
        FSI__TRY(fsi__el_body_column(&m->body, &m->rows, row, m->column + d * (size_t)m->slots));
        m->slot[row] = m->slots++;
    }
    *out = m->column + d * (size_t)m->slot[row];
    return FSI_OK;
}

static fsi_status fsi__el_add_side(fsi__el_impl *im, int body, int contact, double sign, int nodes, const int *node,
    const double *weight, int *index)
{
    fsi__el_member *m = &im->member[body];
    fsi__el_side *s;
    int k;
    FSI__TRY(fsi__room_in(im->s->context, &m->side, sizeof *m->side, m->sides, &m->side_room, m->sides + 1, im->fn));
    *index = m->sides;
    s = &m->side[m->sides++];
    s->contact = contact;
    s->sign = sign;
    s->nodes = nodes;
    for (k = 0; k < nodes; k++) {
        s->node[k] = node[k];
        s->weight[k] = weight[k];
    }
    return fsi__el_rows_join(&m->joint, im->s->context, im->fn, &m->rows, nodes, node, weight);
}

static fsi_status fsi__el_grow_numbers(fsi__el_impl *im, double **array, size_t *room, size_t need)
{
    double *fresh;
    if (need <= *room) return FSI_OK;
    need += need / 2;
    fresh = (double *)fsi__alloc(im->s->context, need, sizeof(double));
    if (!fresh)
        return fsi__fail(im->s->context, FSI_ERROR_MEMORY, im->fn, -1, (double)need, "no memory for %d contacts",
                         im->contacts);
    fsi__free(im->s->context, *array, *room, sizeof(double));
    *array = fresh;
    *room = need;
    return FSI_OK;
}

/* Dot product of a side's row with a response. */
static double fsi__el_side_dot(const fsi__el_member *m, int side, const double *y)
{
    double sum = 0;
    int i;
    for (i = m->joint.start[side]; i < m->joint.start[side + 1]; i++) sum += m->joint.value[i] * y[m->joint.dof[i]];
    return sum;
}

/* A^-1 u^T of each side of a body. */
static fsi_status fsi__el_find_responses(fsi__el_impl *im, fsi__el_member *m)
{
    const size_t d = (size_t)m->body.dofs, n = (size_t)m->sides;
    size_t i, k;
    int a;

    /* Columns of an older factorisation are invalid. */
    if (m->column_of != m->body.factorings) {
        for (a = 0; a < m->rows.count; a++) m->slot[a] = -1;
        m->slots = 0;
        m->column_of = m->body.factorings;
    }

    /* The weighted sum of the columns of its nodes. */
    FSI__TRY(fsi__el_grow_numbers(im, &m->response, &m->response_room, n * d));
    for (i = 0; i < n; i++) {
        double *y = m->response + i * d;
        for (k = 0; k < d; k++) y[k] = 0;
        for (a = 0; a < m->side[i].nodes; a++) {
            const double *column;
            FSI__TRY(fsi__el_column_of(im, m, m->side[i].node[a], &column));
            for (k = 0; k < d; k++) y[k] += m->side[i].weight[a] * column[k];
        }
    }
    return FSI_OK;
}

/* G_ij = u_i A^-1 u_j^T (E9), with the signs of both sides: displacement of side i by a unit force on side j. */
static double fsi__el_coupling(const fsi__el_member *m, int i, int j)
{
    return m->side[i].sign * m->side[j].sign *
           fsi__el_side_dot(m, j, m->response + (size_t)i * (size_t)m->body.dofs);
}

/* G of a body. */
static fsi_status fsi__el_couple_sides(fsi__el_impl *im, fsi__el_member *m)
{
    const int n = m->sides;
    int i, j;
    FSI__TRY(fsi__el_grow_numbers(im, &m->coupling, &m->coupling_room, (size_t)n * (size_t)n));
    for (i = 0; i < n; i++) for (j = 0; j <= i; j++)
        m->coupling[(size_t)i * (size_t)n + (size_t)j] = m->coupling[(size_t)j * (size_t)n + (size_t)i] =
            fsi__el_coupling(m, i, j);
    return FSI_OK;
}

#define FSI__EL_SWEEP_WORK 1e7 /* changes of numbers in the sweeps of an iteration: some 30 ms */
#define FSI__EL_MANY 1e6
#define FSI__EL_MIXED 4 /* pairs of sweeps that Anderson's acceleration combines */
#define FSI__EL_FAR 30.0 /* the longest way on, over that of the pair */

/* How contacts move each other in a sweep: by G, n numbers of a body with n sides for each change of a force, or, where
   contacts are many, by way of its unknowns: 3 numbers for each. Counts what one sweep changes. */
static void fsi__el_plan_sweeps(fsi__el_impl *im)
{
    double coupled = 0, moved = 0;
    int b;
    for (b = 0; b < im->members; b++) {
        const double n = im->member[b].sides;
        coupled += n * n;
        moved += n * 2 * im->member[b].body.dofs;
    }
    im->many = coupled > FSI__EL_MANY && moved < coupled;
    im->sweep_work = im->many ? moved : coupled;
}

/* Room for the acceleration of the sweeps. */
static fsi_status fsi__el_make_mixer(fsi__el_impl *im)
{
    const size_t n = 9 * (size_t)im->contacts;
    FSI__TRY(fsi__el_grow_numbers(im, &im->mixed, &im->mixed_room, (FSI__EL_MIXED + 2) * n));
    im->mixer.depth = FSI__EL_MIXED;
    im->mixer.history = im->mixed + n;
    return FSI_OK;
}

/* Sides of all contacts; W_cc of each: displacement by a unit force on it. */
static fsi_status fsi__el_make_sides(fsi__el_impl *im)
{
    const double one = 1;
    int i, b;

    /* A side of the body for each contact, and one of the partner if that is a body. */
    for (b = 0; b < im->members; b++) im->member[b].sides = im->member[b].joint.count = 0;
    for (i = 0; i < im->contacts; i++) {
        fsi__el_contact *c = &im->contact[i];
        fsi__d3 from = fsi__d3_at(c->drift);
        const int row = im->member[c->body].mesh->vertex_count + c->point;
        FSI__TRY(fsi__el_add_side(im, c->body, i, 1, 1, &row, &one, &c->side[0]));
        if (c->kind == FSI__EL_BODY) {
            const fsi_mesh *mesh = im->member[c->other].mesh;
            FSI__TRY(fsi__el_add_side(im, c->other, i, -1, mesh->corners, mesh->faces + mesh->corners * c->face,
                                      c->bary, &c->side[1]));
            from = fsi__d3_sub(from, fsi__el_point(&im->member[c->other].joint, c->side[1],
                                                   im->member[c->other].body.q));
        }
        fsi__d3_put(c->origin,
                    fsi__d3_add(from, fsi__d3_at(im->member[c->body].start + 3 * (size_t)c->point)));
    }

    /* Responses, and G of each body unless contacts are many. */
    fsi__el_plan_sweeps(im);
    FSI__TRY(fsi__el_make_mixer(im));
    for (b = 0; b < im->members; b++) if (im->member[b].sides > 0) {
        FSI__TRY(fsi__el_find_responses(im, &im->member[b]));
        if (!im->many) FSI__TRY(fsi__el_couple_sides(im, &im->member[b]));
    }

    /* W_cc is the sum of the diagonal entries of both sides. */
    for (i = 0; i < im->contacts; i++) {
        fsi__el_contact *c = &im->contact[i];
        const fsi__el_member *m = &im->member[c->body], *o = c->side[1] >= 0 ? &im->member[c->other] : NULL;
        c->weight = fsi__el_coupling(m, c->side[0], c->side[0]);
        if (o) c->weight += fsi__el_coupling(o, c->side[1], c->side[1]);
        if (o == m) c->weight += 2 * fsi__el_coupling(m, c->side[1], c->side[0]);
    }
    return FSI_OK;
}

/* J^T force of all contacts, on their bodies. */
static void fsi__el_apply_forces(fsi__el_impl *im)
{
    int b, i;
    for (b = 0; b < im->members; b++) {
        fsi__el_member *m = &im->member[b];
        if (m->sides == 0 && !m->body.pushed) continue;
        memset(m->body.contact, 0, 3 * (size_t)m->body.dofs * sizeof(double));
        m->body.pushed = m->sides > 0;
        for (i = 0; i < m->sides; i++) {
            const fsi__d3 f = fsi__d3_at(im->contact[m->side[i].contact].force);
            fsi__el_push(&m->joint, i, fsi__d3_scale(f, m->side[i].sign), m->body.contact);
        }
    }
}

/* Moves the unknowns `next` by the response of a side to a change of its contact's force. */
static void fsi__el_respond_side(fsi__el_member *m, int side, fsi__d3 change)
{
    const fsi__d3 by = fsi__d3_scale(change, m->side[side].sign);
    const double *y = m->response + (size_t)side * (size_t)m->body.dofs;
    double *to = m->body.next;
    int k;
    if (!(fsi__d3_dot(by, by) > 0)) return;
    for (k = 0; k < m->body.dofs; k++) {
        to[3 * k] += y[k] * by.x;
        to[3 * k + 1] += y[k] * by.y;
        to[3 * k + 2] += y[k] * by.z;
    }
}

/* By A^-1 J^T (force - before), the response to the change of all contact forces. */
static void fsi__el_respond(fsi__el_impl *im)
{
    int b, i;
    for (b = 0; b < im->members; b++) {
        fsi__el_member *m = &im->member[b];
        for (i = 0; i < m->sides; i++) {
            const fsi__el_contact *c = &im->contact[m->side[i].contact];
            fsi__el_respond_side(m, i, fsi__d3_sub(fsi__d3_at(c->force), fsi__d3_at(c->before)));
        }
    }
}

/* Displacement at a contact, relative to its partner, where the bodies' unknowns are `next`. */
static void fsi__el_measure_slip(const fsi__el_impl *im, fsi__el_contact *c)
{
    const fsi__el_member *m = &im->member[c->body], *o = c->side[1] >= 0 ? &im->member[c->other] : NULL;
    fsi__d3 x = fsi__el_point(&m->joint, c->side[0], m->body.next);
    if (o) x = fsi__d3_sub(x, fsi__el_point(&o->joint, c->side[1], o->body.next));
    fsi__d3_put(c->slip, fsi__d3_sub(x, fsi__d3_at(c->origin)));
}

/* The force on contact c that closes its gap and stops its slip, the other forces being fixed, projected on Coulomb's
   cone (E8). */
static fsi__d3 fsi__el_wanted(const fsi__el_contact *c)
{
    const fsi__d3 n = fsi__d3_at(c->normal), u = fsi__d3_at(c->slip), f = fsi__d3_at(c->force);
    const double normal = fsi__d3_dot(f, n), along = fsi__d3_dot(u, n),
        push = fmax(0, normal - (c->room + along) / c->weight);
    fsi__d3 t = fsi__d3_sub(f, fsi__d3_scale(n, normal)), slip = fsi__d3_sub(u, fsi__d3_scale(n, along));
    double size;
    t = fsi__d3_madd(t, -1 / c->weight, slip);
    size = fsi__d3_norm(t);
    if (size > c->friction * push) t = fsi__d3_scale(t, size > 0 ? c->friction * push / size : 0);
    return fsi__d3_madd(t, push, n);
}

/* Each contact in turn, or in the opposite order, gets its force; the difference changes the slips of all contacts on
   its bodies by G, or the unknowns of these. Returns the largest change over the largest force, before or
   after, as displacements. */
static double fsi__el_sweep_once(fsi__el_impl *im, int backwards)
{
    double changed = 0, most = 0;
    int i, k, j;
    for (i = 0; i < im->contacts; i++) {
        fsi__el_contact *c = &im->contact[backwards ? im->contacts - 1 - i : i];
        fsi__d3 to, by;
        if (im->many) fsi__el_measure_slip(im, c);
        to = fsi__el_wanted(c);
        by = fsi__d3_sub(to, fsi__d3_at(c->force));
        if (!(c->weight > 0) || !(fsi__d3_dot(by, by) > 0)) continue;
        changed = fmax(changed, fsi__d3_norm(by) * c->weight);
        most = fmax(most, fmax(fsi__d3_norm(to), fsi__d3_norm(fsi__d3_at(c->force))) * c->weight);
        fsi__d3_put(c->force, to);
        for (k = 0; k < 2 && c->side[k] >= 0; k++) { /* both bodies */
            fsi__el_member *m = &im->member[k == 0 ? c->body : c->other];
            const double *g;
            if (im->many) { fsi__el_respond_side(m, c->side[k], by); continue; }
            g = m->coupling + (size_t)c->side[k] * (size_t)m->sides;
            for (j = 0; j < m->sides; j++) {
                double *u = im->contact[m->side[j].contact].slip;
                fsi__d3_put(u, fsi__d3_madd(fsi__d3_at(u), g[j], by));
            }
        }
    }
    return most > 0 ? changed / most : 0;
}

/* Pairs of sweeps are a map of the forces f, which Anderson's acceleration (E5) combines, in the norm of W_cc |f|^2:

      f <- the mixed f,   slips likewise, as they are linear in f;   the next pair brings both back into their cones

   `last` are the forces before the pair. */
static void fsi__el_go_on(fsi__el_impl *im)
{
    const int n = im->contacts;
    double *g = im->mixed, *f = g + 6 * (size_t)n, size, share, way = 0;
    int i, k;
    for (i = 0; i < n; i++) {
        const fsi__el_contact *c = &im->contact[i];
        const double root = sqrt(fmax(0, c->weight));
        for (k = 0; k < 3; k++) {
            g[6 * i + k] = c->force[k];
            g[6 * i + 3 + k] = c->slip[k];
            f[3 * i + k] = root * (c->force[k] - c->last[k]);
        }
    }
    size = sqrt(fsi__dot(f, f, 3 * n));
    fsi__el_mix(&im->mixer, g, 6 * n, f, 3 * n, size, g);

    /* On from forces and slips after the pair: at most FSI__EL_FAR times as far as the pair went, as forces that find
       no solution would go on for ever. */
    for (i = 0; i < n; i++) {
        const fsi__el_contact *c = &im->contact[i];
        for (k = 0; k < 3; k++) {
            g[6 * i + k] -= c->force[k];
            g[6 * i + 3 + k] -= c->slip[k];
            way += fmax(0, c->weight) * g[6 * i + k] * g[6 * i + k];
        }
    }
    way = sqrt(way);
    share = way > FSI__EL_FAR * size ? FSI__EL_FAR * size / way : 1;
    for (i = 0; i < n; i++) {
        fsi__el_contact *c = &im->contact[i];
        const fsi__d3 by = fsi__d3_scale(fsi__d3_at(g + 6 * (size_t)i), share);
        fsi__d3_put(c->force, fsi__d3_add(fsi__d3_at(c->force), by));
        fsi__d3_put(c->slip, fsi__d3_madd(fsi__d3_at(c->slip), share, fsi__d3_at(g + 6 * (size_t)i + 3)));
        for (k = 0; k < 2 && im->many && c->side[k] >= 0; k++)
            fsi__el_respond_side(&im->member[k == 0 ? c->body : c->other], c->side[k], by);
    }
}

/* Projected Gauss-Seidel (E8) over all contacts, forwards and backwards in turn: a pair of sweeps is symmetric, as G
   is. Sweeps in one order are not, and what they leave of the forces is then made larger, not smaller, by local and
   global step where A is stiffer than the body: piles crept for ever in long steps. Bodies that were pulled into each
   other have thousands of contacts: then there are fewer sweeps, and the rest is left to the next step. */
static void fsi__el_sweep(fsi__el_impl *im)
{
    const double rounds = fmin(im->s->desc.contact_sweeps, fmax(1, FSI__EL_SWEEP_WORK / (im->sweep_work + 1)));
    int round, i;

    /* `before`: the forces with which the global step was solved. */
    for (i = 0; i < im->contacts; i++) {
        memcpy(im->contact[i].before, im->contact[i].force, sizeof im->contact[i].force);
        fsi__el_measure_slip(im, &im->contact[i]);
    }
    im->mixer.stored = im->mixer.slot = 0;
    im->mixer.best = HUGE_VAL;
    for (round = 0; round < rounds; round++) {
        const int backwards = round % 2;
        for (i = 0; i < im->contacts && !backwards; i++)
            memcpy(im->contact[i].last, im->contact[i].force, sizeof im->contact[i].force);
        if (!(fsi__el_sweep_once(im, backwards) > 1e-9)) return; /* converged */
        if (backwards && round + 1 < rounds) fsi__el_go_on(im);
    }
}

/* ---- >>step --------------------------------------------------------------------------------------------------- */

/* The vectors of a body's state, 3 * dofs numbers each: q and v, now and a step ago, and the force of a liquid. */
#define FSI__EL_VECTORS 5
/* And its single numbers: the length of the last substep, and how it yields. */
static double *fsi__el_single(fsi__el_body *b, int k) { return k == 0 ? &b->h_before : &b->yielding; }
static size_t fsi__el_vectors(fsi__el_body *b, double *vector[FSI__EL_VECTORS])
{
    vector[0] = b->q;
    vector[1] = b->v;
    vector[2] = b->q_before;
    vector[3] = b->v_before;
    vector[4] = b->support;
    return 3 * (size_t)b->dofs;
}

static fsi_status fsi__el_keep(fsi__el_impl *im)
{
    double *vector[FSI__EL_VECTORS];
    size_t need = 0, at = 0;
    int b, k;

    /* Room for the vectors of each body. */
    for (b = 0; b < im->members; b++) need += FSI__EL_VECTORS * 3 * (size_t)im->member[b].body.dofs;
    if (need > im->kept_room) {
        double *fresh = (double *)fsi__alloc(im->s->context, need, sizeof(double));
        if (!fresh)
            return fsi__fail(im->s->context, FSI_ERROR_MEMORY, im->fn, -1, (double)need, "no memory to step %d bodies",
                             im->members);
        fsi__free(im->s->context, im->kept, im->kept_room, sizeof(double));
        im->kept = fresh;
        im->kept_room = need;
    }

    /* They, and single numbers. */
    for (b = 0; b < im->members; b++) {
        const size_t n = fsi__el_vectors(&im->member[b].body, vector);
        for (k = 0; k < FSI__EL_VECTORS; k++, at += n) memcpy(im->kept + at, vector[k], n * sizeof(double));
        for (k = 0; k < 2; k++) im->member[b].kept_one[k] = *fsi__el_single(&im->member[b].body, k);
    }
    return FSI_OK;
}

FSI_API void fsi__el_undo(fsi_elastic *s)
{
    fsi__el_impl *im = fsi__el_of(s);
    double *vector[FSI__EL_VECTORS];
    size_t at = 0;
    int b, k;
    for (b = 0; b < im->members; b++) {
        const size_t n = fsi__el_vectors(&im->member[b].body, vector);
        for (k = 0; k < FSI__EL_VECTORS; k++, at += n) memcpy(vector[k], im->kept + at, n * sizeof(double));
        for (k = 0; k < 2; k++) *fsi__el_single(&im->member[b].body, k) = im->member[b].kept_one[k];
        im->member[b].mesh_stale = 1;
    }
    fsi__obstacles_stand(&im->obstacles);
}

FSI_API fsi_status fsi__el_begin(fsi_elastic *s, double dt, const char *fn)
{
    fsi__el_impl *im = fsi__el_of(s);
    int k;
    if (!im) return FSI_ERROR_COOKIE;
    im->fn = fn;
    im->dt = dt;

    /* Checks, and the state that undo restores. */
    FSI__TRY(fsi__obstacles_check_carriers(&im->obstacles, fn, 0));
    FSI__TRY(fsi__el_keep(im));
    memset(&im->stats, 0, sizeof im->stats);
    im->lap = fsi__now(s->context);

    /* Obstacles with zero impulses; shadows of those that move. */
    for (k = 0; k < im->obstacles.count; k++) {
        fsi__obstacle *o = fsi__obstacle_at(&im->obstacles, k);
        fsi__obstacle_begin(&im->obstacles, o);
        FSI__TRY(fsi__obstacle_shade(&im->obstacles, o, fn));
    }
    for (k = 0; k < im->solids; k++) {
        memset(im->solid[k].impulse, 0, sizeof im->solid[k].impulse);
        memset(im->solid[k].moment, 0, sizeof im->solid[k].moment);
    }

    /* The forces of the last step are the initial contact forces. */
    FSI__TRY(fsi__room_in(s->context, &im->touched, sizeof *im->touched, 0, &im->touched_room, im->touches, fn));
    im->touched_count = im->touches;
    if (im->touches > 0) memcpy(im->touched, im->touch, (size_t)im->touches * sizeof *im->touch);
    return FSI_OK;
}

/* Obstacles sweep from fraction `done` of the step to done + share; those fixed to a body along its path. */
static void fsi__el_move_obstacles(fsi__el_impl *im)
{
    int k;
    for (k = 0; k < im->obstacles.count; k++) {
        fsi__el_wall *w = (fsi__el_wall *)(void *)fsi__obstacle_at(&im->obstacles, k);
        fsi__obstacle *o = &w->base;
        w->way = 0;
        if (!o->shadow) continue;
        if (!o->carrier) {
            w->way = im->share * fsi__obstacle_way(o);
            fsi__obstacle_follow(o, im->done, im->share);
        } else {
            const fsi_pose a = fsi__pose_on_the_way(o->carrier, o->at, im->done),
                b = fsi__pose_on_the_way(o->carrier, o->at, im->done + im->share);
            w->way = fsi__d3_norm(fsi__d3_diff(b.position, a.position))
                + fsi__d3_norm(fsi__d3_of(fsi__turn_between(a, b))) * o->reach;
            fsi__mesh_follow_rigid(o->shadow, o->rest, a, b);
        }
    }
}

/* Acceleration by the caller's field: at vertices, or for the translation of each handle. */
static void fsi__el_feel_field(fsi__el_impl *im, fsi__el_body *b)
{
    const fsi_elastic *s = im->s;
    int i, k;
    for (i = 0; i < b->dofs; i++) {
        fsi_vec3 a;
        if (!(b->one[i] > 0)) continue;
        a = s->desc.field(s->desc.field_user, fsi__d3_real(fsi__d3_at(b->q + 3 * (size_t)i)), s->time);
        for (k = 0; k < 3; k++) b->acceleration[3 * i + k] = (double)fsi__axis(a, k);
    }
}

FSI_API fsi_status fsi__el_predict(fsi_elastic *s, double dt, double done, double share)
{
    fsi__el_impl *im = fsi__el_of(s);
    const fsi__d3 g = fsi__d3_of(s->desc.gravity);
    int b, k;
    im->sub_dt = dt;
    im->done = done;
    im->share = share;
    for (k = 0; k < im->attachments; k++) {
        const fsi__el_attachment *a = &im->attachment[k];
        fsi__el_spring *sp = &im->member[a->body].body.spring[a->spring];
        for (b = 0; b < 3; b++) sp->target[b] = a->from[b] + (done + share) * (a->to[b] - a->from[b]);
    }
    for (b = 0; b < im->members; b++) {
        fsi__el_body *y = &im->member[b].body;
        if (s->desc.field) fsi__el_feel_field(im, y);
        FSI__TRY(fsi__el_body_predict(y, dt, s->desc.time_order, g, s->desc.field != NULL));
    }
    fsi__el_move_obstacles(im);
    im->stats.seconds_other += fsi__el_phase(im);
    FSI__TRY(fsi__el_find_contacts(im));
    return FSI_OK;
}

FSI_API fsi_status fsi__el_constrain(fsi_elastic *s)
{
    fsi__el_impl *im = fsi__el_of(s);
    fsi__el_take_forces(im, im->touched, im->touched_count);
    FSI__TRY(fsi__el_make_sides(im));
    fsi__el_apply_forces(im);
    im->stats.seconds_contact += fsi__el_phase(im);
    return FSI_OK;
}

/* Largest displacement of a converged body [m]: the tolerance times its size, but also a small fraction of its
   displacement by forces in this substep, as slight vibrations would be too slow otherwise. */
static double fsi__el_small(const fsi_elastic *s, const fsi__el_body *y)
{
    return (double)s->desc.tolerance * fmin(y->shape.size, fmax(1000 * y->forced, 1e-4 * y->shape.size));
}

/* Fails where positions, velocities or contact forces exceed what load accepts. */
#define FSI__EL_FARTHEST 1e12 /* [m, m/s] */
#define FSI__EL_STRONGEST 1e20 /* [N] */
static fsi_status fsi__el_check_outcome(fsi__el_impl *im)
{
    int b, i, k;
    for (b = 0; b < im->members; b++) {
        const fsi__el_body *y = &im->member[b].body;
        for (i = 0; i < 3 * y->dofs; i++)
            if (!(fabs(y->next[i]) < FSI__EL_FARTHEST && fabs(y->next[i] - y->base[i]) < FSI__EL_FARTHEST * y->big_h))
                return fsi__fail(im->s->context, FSI_ERROR_LIMIT, im->fn, im->member[b].id, y->next[i],
                                 "body %d would be farther than 1e12 m, or faster than 1e12 m/s", im->member[b].id);
    }
    for (i = 0; i < im->contacts; i++) for (k = 0; k < 3; k++)
        if (!(fabs(im->contact[i].force[k]) < FSI__EL_STRONGEST))
            return fsi__fail(im->s->context, FSI_ERROR_LIMIT, im->fn, im->member[im->contact[i].body].id,
                             im->contact[i].force[k], "a contact of body %d would push with more than 1e20 N",
                             im->member[im->contact[i].body].id);
    return FSI_OK;
}

FSI_API fsi_status fsi__el_solve(fsi_elastic *s)
{
    fsi__el_impl *im = fsi__el_of(s);
    int it, b, going = 1;
    for (it = 0; it < s->desc.iterations && going; it++) {
        going = 0;

        /* Local step, then global step (E4). */
        for (b = 0; b < im->members; b++) fsi__el_body_project(&im->member[b].body);
        im->stats.seconds_local += fsi__el_phase(im);
        for (b = 0; b < im->members; b++) FSI__TRY(fsi__el_body_solve(&im->member[b].body));
        im->stats.seconds_global += fsi__el_phase(im);

        /* Contact forces (E8), and the displacements that they add to `next`. */
        if (im->contacts > 0) {
            fsi__el_sweep(im);
            if (!im->many) fsi__el_respond(im);
            fsi__el_apply_forces(im);
            im->stats.seconds_contact += fsi__el_phase(im);
        }

        /* The next iterate (E5); another iteration follows where a body moved by more than the tolerance. */
        for (b = 0; b < im->members; b++) {
            fsi__el_body *y = &im->member[b].body;
            fsi__el_body_advance(y);
            if (y->residual > fsi__el_small(s, y)) going = 1;
        }
        im->stats.seconds_global += fsi__el_phase(im);
        im->stats.iterations++;
    }

    /* What end_substep, which cannot fail, needs. */
    FSI__TRY(fsi__el_check_outcome(im));
    return fsi__room_in(s->context, &im->touched, sizeof *im->touched, im->touched_count, &im->touched_room,
        im->contacts, im->fn);
}

/* Impulses of the substep's contacts on shapes and obstacles. */
static void fsi__el_push_obstacles(fsi__el_impl *im)
{
    int i;
    for (i = 0; i < im->contacts; i++) {
        const fsi__el_contact *c = &im->contact[i];
        const fsi__el_member *m = &im->member[c->body];
        const fsi__d3 f = fsi__d3_scale(fsi__d3_at(c->force), -im->sub_dt),
            x = fsi__el_point(&m->rows, m->mesh->vertex_count + c->point, m->body.q);
        if (c->kind == FSI__EL_OBSTACLE) {
            fsi__obstacle *o = fsi__obstacle_at(&im->obstacles, c->other);
            fsi__obstacle_push(o, c->face, c->bary, x, f);
        } else if (c->kind == FSI__EL_SHAPE) {
            fsi__el_solid *o = &im->solid[c->other];
            fsi__d3_put(o->impulse, fsi__d3_add(fsi__d3_at(o->impulse), f));
            fsi__d3_put(o->moment, fsi__d3_add(fsi__d3_at(o->moment), fsi__d3_cross(x, f)));
        }
    }
}

/* Sum of the sizes of the contact forces on each body, of the last substep to pressed[0], of this one to pressed[1]. */
static void fsi__el_press(fsi__el_impl *im)
{
    int b, i;
    for (b = 0; b < im->members; b++) im->member[b].pressed[0] = im->member[b].pressed[1] = 0;
    for (i = 0; i < im->touched_count; i++) {
        const fsi__el_touch *t = &im->touched[i];
        const double f = fsi__d3_norm(fsi__d3_at(t->force));
        im->member[t->body].pressed[0] += f;
        if (t->kind == FSI__EL_BODY) im->member[t->other].pressed[0] += f;
    }
    for (i = 0; i < im->contacts; i++) {
        const fsi__el_contact *c = &im->contact[i];
        const double f = fsi__d3_norm(fsi__d3_at(c->force));
        im->member[c->body].pressed[1] += f;
        if (c->kind == FSI__EL_BODY) im->member[c->other].pressed[1] += f;
    }
}

/* BDF2 extrapolates from the velocity before an impact: a stiff body would leave a floor at up to 1.25 times the speed
   of its approach. So the integrator restarts, without a step before, for bodies on which the contact forces more than
   double, and for all that are in contact with these: the velocities of a step ago then act on both bodies of a
   contact or on neither, which conserves momentum. */
static void fsi__el_start_anew(fsi__el_impl *im)
{
    int b, i, again = 1;
    fsi__el_press(im);
    for (b = 0; b < im->members; b++) {
        fsi__el_member *m = &im->member[b];
        if (m->pressed[1] > 2 * m->pressed[0]) m->body.h_before = 0;
    }
    while (again) for (again = 0, i = 0; i < im->contacts; i++) {
        const fsi__el_contact *c = &im->contact[i];
        double *h = &im->member[c->body].body.h_before, *g = h;
        if (c->kind == FSI__EL_BODY && fsi__d3_norm(fsi__d3_at(c->force)) > 0) g = &im->member[c->other].body.h_before;
        if ((*h > 0) == (*g > 0)) continue;
        *h = *g = 0;
        again = 1;
    }
}

/* Forces of attachments, where the bodies are. */
static void fsi__el_pull(fsi__el_impl *im)
{
    int k;
    for (k = 0; k < im->attachments; k++) {
        fsi__el_attachment *a = &im->attachment[k];
        const fsi__el_body *b = &im->member[a->body].body;
        const fsi__el_spring *sp = &b->spring[a->spring];
        fsi__d3_put(a->found, fsi__d3_scale(fsi__d3_sub(fsi__d3_at(sp->target),
            fsi__el_point(&b->anchor, sp->row, b->q)), sp->stiffness));
    }
}

FSI_API void fsi__el_accept(fsi_elastic *s)
{
    fsi__el_impl *im = fsi__el_of(s);
    int b;
    for (b = 0; b < im->members; b++) {
        fsi__el_body_accept(&im->member[b].body);
        im->member[b].mesh_stale = 1;
    }
}

FSI_API fsi_status fsi__el_resume(fsi_elastic *s)
{
    fsi__el_impl *im = fsi__el_of(s);
    int b;
    for (b = 0; b < im->members; b++) fsi__el_body_retract(&im->member[b].body);
    return fsi__el_solve(s);
}

FSI_API int fsi__el_is_pushed(const fsi_elastic *s, int index)
{
    const fsi__el_impl *im = (const fsi__el_impl *)s->impl;
    int i;
    for (i = 0; i < im->contacts; i++) {
        const fsi__el_contact *c = &im->contact[i];
        if (c->kind == FSI__EL_BODY && c->other != c->body && (c->body == index || c->other == index)
            && fsi__d3_norm(fsi__d3_at(c->force)) > 0) return 1;
    }
    return 0;
}

FSI_API void fsi__el_end_substep(fsi_elastic *s)
{
    fsi__el_impl *im = fsi__el_of(s);
    int i;

    /* Bodies above the tolerance, and the largest residual. */
    for (i = 0; i < im->members; i++) {
        fsi__el_body *y = &im->member[i].body;
        im->stats.degraded += y->residual > fmax((double)s->desc.tolerance, 1e-5) * y->shape.size;
        im->stats.residual = fmax(im->stats.residual, y->residual / y->shape.size);
    }

    /* Reactions of shapes and obstacles; restart of the integrator after impacts. */
    fsi__el_pull(im);
    fsi__el_push_obstacles(im);
    fsi__el_start_anew(im);

    /* Statistics, and the list of contact forces for the next substep. */
    im->touched_count = 0;
    im->stats.contacts = im->contacts;
    im->stats.touching = 0;
    im->stats.deepest = 0;
    for (i = 0; i < im->contacts; i++) {
        const fsi__el_contact *c = &im->contact[i];
        fsi__el_touch *t;
        if (c->gap < 0) im->stats.deepest = fmax(im->stats.deepest, -c->gap);
        if (!(fsi__d3_norm(fsi__d3_at(c->force)) > 0)) continue;
        im->stats.touching++;
        t = &im->touched[im->touched_count++];
        t->body = c->body;
        t->point = c->point;
        t->kind = c->kind;
        t->other = c->other;
        memcpy(t->force, c->force, sizeof t->force);
    }
    im->stats.substeps++;
}

/* Public fields of body k. */
static void fsi__el_show(fsi__el_impl *im, int k)
{
    fsi__el_member *m = &im->member[k];
    fsi_elastic_body *b = &im->shown[k];
    fsi__d3 c, p, l;

    /* Centre of mass, momentum, and angular momentum about the centre. */
    fsi__el_body_measure(&m->body, &m->motion, 1);
    c = fsi__d3_at(m->motion.centre);
    p = fsi__d3_at(m->motion.momentum);
    l = fsi__d3_sub(fsi__d3_at(m->motion.spin), fsi__d3_cross(c, p));

    /* Constants of the body. */
    b->id = m->id;
    b->vertex_count = m->body.shape.vertex_count;
    b->element_count = m->body.shape.element_count;
    b->elements = m->body.shape.element;
    b->handles = m->body.reduced ? m->body.handles.count : 0;
    b->regions = m->body.evaluated;
    b->mass = m->body.mass;
    b->size = m->body.shape.size;

    /* Motion and statistics. */
    b->center = fsi__d3_real(c);
    b->velocity = fsi__d3_real(fsi__d3_over(p, m->body.mass));
    b->spin = fsi__d3_real(l);
    b->stats.kinetic_energy = m->motion.kinetic;
    b->stats.elastic_energy = m->motion.elastic;
    b->stats.volume_ratio = m->motion.volume_ratio;
    b->stats.stretch_min = m->motion.stretch_min;
    b->stats.stretch_max = m->motion.stretch_max;
    b->stats.residual = m->body.residual;
    b->stats.iterations = m->body.iterations;
}

static void fsi__el_sum_up(fsi__el_impl *im)
{
    fsi_elastic *s = im->s;
    const fsi__d3 g = fsi__d3_of(s->desc.gravity);
    int b, k;
    for (b = 0; b < im->members; b++) {
        const fsi__el_motion *m = &im->member[b].motion;
        im->stats.kinetic_energy += m->kinetic;
        im->stats.elastic_energy += m->elastic;
        im->stats.potential_energy -= im->member[b].body.mass * fsi__d3_dot(g, fsi__d3_at(m->centre));
        for (k = 0; k < 3; k++) {
            im->stats.momentum[k] += m->momentum[k];
            im->stats.angular_momentum[k] += m->spin[k];
        }
    }
    im->stats.seconds_other += fsi__el_phase(im);
    im->stats.bytes = s->context->bytes;
    im->stats.allocs = s->context->allocs;
    s->stats = im->stats;
}

FSI_API void fsi__el_end(fsi_elastic *s)
{
    fsi__el_impl *im = fsi__el_of(s);
    const fsi_real per_dt = (fsi_real)(im->dt > 0 ? 1 / im->dt : 0);
    fsi__el_touch *swap = im->touch;
    int k, room = im->touch_room;

    /* Reactions of the obstacles; those fixed to a body pass their impulses on, with the moment about its centre. */
    for (k = 0; k < im->obstacles.count; k++) {
        fsi__obstacle *o = fsi__obstacle_at(&im->obstacles, k);
        if (!(im->dt > 0)) continue;
        if (o->carrier) {
            const fsi__d3 j = fsi__d3_at(o->impulse), at = fsi__d3_of(o->carrier->pose.position);
            fsi_body_begin_step(o->carrier, (fsi_real)im->dt);
            o->carrier->impulse = fsi__d3_real(j);
            o->carrier->angular_impulse = fsi__d3_real(fsi__d3_sub(fsi__d3_at(o->moment), fsi__d3_cross(at, j)));
            fsi_body_end_step(o->carrier, (fsi_real)im->dt);
        }
        fsi__obstacle_commit(o, im->dt, o->carrier ? &o->carrier->end : NULL);
    }

    /* Reactions of the shapes, which have arrived at desc.point. */
    for (k = 0; k < im->solids && im->dt > 0; k++) {
        fsi__el_solid *o = &im->solid[k];
        o->force = fsi_v3_scale(fsi__d3_real(fsi__d3_at(o->impulse)), per_dt);
        o->torque = fsi_v3_scale(fsi__d3_real(fsi__d3_at(o->moment)), per_dt);
        o->from = o->desc.point;
    }

    /* Targets have arrived; the contact forces of the step replace those of the last one. */
    for (k = 0; k < im->attachments; k++) {
        memcpy(im->attachment[k].from, im->attachment[k].to, 3 * sizeof(double));
        if (im->dt > 0) memcpy(im->attachment[k].force, im->attachment[k].found, 3 * sizeof(double));
    }
    im->touch = im->touched;
    im->touch_room = im->touched_room;
    im->touches = im->touched_count;
    im->touched = swap;
    im->touched_room = room;

    /* Added forces are used up; public fields of the bodies and the simulator. */
    for (k = 0; k < im->members; k++) {
        fsi__el_body *y = &im->member[k].body;
        if (im->dt > 0) memset(y->force, 0, 3 * (size_t)y->dofs * sizeof(double));
        fsi__el_show(im, k);
    }
    s->time += im->dt;
    fsi__el_sum_up(im);
}

static fsi_status fsi__el_substeps(fsi_elastic *s, double dt)
{
    const int n = s->desc.substeps;
    int k;
    for (k = 0; k < n; k++) {
        FSI__TRY(fsi__el_predict(s, dt / n, (double)k / n, 1.0 / n));
        FSI__TRY(fsi__el_constrain(s));
        FSI__TRY(fsi__el_solve(s));
        fsi__el_accept(s);
        fsi__el_end_substep(s);
    }
    return FSI_OK;
}

/* Reports steps that end above the tolerance: only the first, the second, the fourth, the eighth ..., as games run
   with few iterations. */
static void fsi__el_warn(fsi__el_impl *im)
{
    const fsi_elastic *s = im->s;
    if (s->stats.degraded == 0) return;
    im->degraded++;
    if ((im->degraded & (im->degraded - 1)) != 0) return;
    fsi__warn(s->context,
              "fsi_elastic_step at %g s: %d bodies ended above the tolerance, by %.2g of their size; %lld such steps",
              s->time, s->stats.degraded, s->stats.residual, im->degraded);
}

FSI_API fsi_status fsi_elastic_step(fsi_elastic *s, fsi_real dt)
{
    static const char fn[] = "fsi_elastic_step";
    fsi_status status;
    fsi__el_impl *im = fsi__el_of(s);
    if (!im) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__check_dt(s->context, dt, fn));
    FSI__TRY(fsi__el_begin(s, (double)dt, fn));
    if (dt > 0) {
        status = fsi__el_substeps(s, (double)dt);
        if (status != FSI_OK) {
            fsi__el_undo(s);
            return status;
        }
    }
    fsi__el_end(s);
    fsi__el_warn(im);
    return FSI_OK;
}

FSI__COLD_BEGIN

/* ---- >>bodies made: surfaces ---------------------------------------------------------------------------------------

   The surface of simplices consists of the faces that belong to one simplex only. */

typedef struct fsi__el_border { int sorted[3], corner[3]; } fsi__el_border;

static int fsi__el_compare_borders(const void *a, const void *b)
{
    const fsi__el_border *x = (const fsi__el_border *)a, *y = (const fsi__el_border *)b;
    int k;
    for (k = 0; k < 3; k++) if (x->sorted[k] != y->sorted[k]) return x->sorted[k] < y->sorted[k] ? -1 : 1;
    return 0;
}

/* Faces of all elements, oriented outwards (2D: with the outside on their left). */
static void fsi__el_list_borders(const fsi__el_shape *s, fsi__el_border *out)
{
    static const int solid[4][3] = { { 1, 2, 3 }, { 0, 3, 2 }, { 0, 1, 3 }, { 0, 2, 1 } };
    static const int plane[3][3] = { { 1, 0, 0 }, { 2, 1, 0 }, { 0, 2, 0 } };
    int e, f, k, j;
    for (e = 0; e < s->element_count; e++) for (f = 0; f <= s->dim; f++, out++) {
        out->sorted[0] = -1; /* remains in 2D */
        for (k = 0; k < s->dim; k++) {
            const int v = fsi__el_corners(s, e)[s->dim == 3 ? solid[f][k] : plane[f][k]];
            out->corner[k] = v;
            for (j = k - 1 + (3 - s->dim); j >= 3 - s->dim && out->sorted[j] > v; j--)
                out->sorted[j + 1] = out->sorted[j];
            out->sorted[j + 1] = v;
        }
    }
}

static fsi_status fsi__el_boundary(fsi__el_member *m, fsi_context *context, const char *fn)
{
    const fsi__el_shape *s = &m->body.shape;
    const int faces = s->element_count * (s->dim + 1);
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi__arena a = { NULL, 0, 0 };
    fsi__el_border *border = NULL;
    fsi_vec3 *x = NULL;
    int *face = NULL, k, j, count = 0, pass;
    fsi_status status;

    /* Scratch memory: the size is summed in the first pass, the arrays are set in the second. */
    for (pass = 0; pass < 2; pass++) {
        border = (fsi__el_border *)fsi__take(&a, (size_t)faces, sizeof *border);
        face = (int *)fsi__take(&a, (size_t)faces * 3, sizeof(int));
        x = (fsi_vec3 *)fsi__take(&a, (size_t)s->vertex_count, sizeof(fsi_vec3));
        if (pass == 0 && !fsi__arena_reserve(context, &a, a.used))
            return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, faces, "no memory for the surface of %d elements",
                             s->element_count);
    }

    /* Faces of two elements are equal and adjacent after sorting; the others are the boundary. */
    fsi__el_list_borders(s, border);
    qsort(border, (size_t)faces, sizeof *border, fsi__el_compare_borders);
    for (k = 0; k < faces; k = j) {
        for (j = k + 1; j < faces && fsi__el_compare_borders(&border[k], &border[j]) == 0;) j++;
        if (j == k + 1) memcpy(face + s->dim * count++, border[k].corner, (size_t)s->dim * sizeof(int));
    }

    /* Their mesh; it drops vertices without a face. */
    for (k = 0; k < s->vertex_count; k++) x[k] = fsi__d3_real(fsi__d3_at(s->x + 3 * (size_t)k));
    d.context = context;
    d.vertices = x;
    d.vertex_count = s->vertex_count;
    d.elements = face;
    d.element_count = count;
    d.corners = s->dim;
    status = fsi_mesh_create(&m->mesh, &d);
    fsi__arena_free(context, &a);
    return status;
}

/* A mesh like another, with vertices of its own. */
static fsi_status fsi__el_copy_surface(fsi_mesh **out, fsi_context *context, const fsi_mesh *surface,
    const fsi_vec3 *vertices)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    d.context = context;
    d.vertices = vertices;
    d.vertex_count = surface->vertex_count;
    d.elements = surface->faces;
    d.element_count = surface->face_count;
    d.corners = surface->corners;
    return fsi_mesh_create(out, &d);
}

FSI_API fsi_status fsi__el_rest_mesh(fsi_elastic *s, int index, const char *fn, fsi_mesh **out)
{
    const fsi__el_member *m = &fsi__el_of(s)->member[index];
    fsi_vec3 *x;
    fsi_status status;
    int v;
    *out = NULL;
    if (!m->mesh) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, m->id, 0,
        "body %d has no surface: its contact_points are 0", m->id);
    x = (fsi_vec3 *)fsi__alloc(s->context, (size_t)m->mesh->vertex_count, sizeof *x);
    if (!x) return fsi__fail(s->context, FSI_ERROR_MEMORY, fn, m->id, m->mesh->vertex_count,
        "no memory for the surface of body %d", m->id);
    for (v = 0; v < m->mesh->vertex_count; v++) x[v] = fsi__d3_real(fsi__el_point(&m->rows, v, m->body.rest));
    status = fsi__el_copy_surface(out, s->context, m->mesh, x);
    fsi__free(s->context, x, (size_t)m->mesh->vertex_count, sizeof *x);
    return status;
}

/* ---- >>bodies made: contact points ----------------------------------------------------------------------------------

   Candidates are the vertices of the surface, the sharpest first, then points on its faces, on a lattice of about the
   spacing. A candidate is kept if it is at least 0.7 spacings from all kept before. */

typedef struct fsi__el_candidate { fsi__d3 x; double sharp; int index, face; double bary[3]; } fsi__el_candidate;

static int fsi__el_sharper(const void *a, const void *b)
{
    const fsi__el_candidate *x = (const fsi__el_candidate *)a, *y = (const fsi__el_candidate *)b;
    if (x->sharp > y->sharp) return -1;
    if (x->sharp < y->sharp) return 1;
    return (x->index > y->index) - (x->index < y->index);
}

static double fsi__el_face_area(const fsi_mesh *m, int f)
{
    const fsi__d3 a = fsi__d3_of(m->vertices[m->faces[m->corners * f]]),
                  u = fsi__d3_sub(fsi__d3_of(m->vertices[m->faces[m->corners * f + 1]]), a);
    if (m->corners == 2) return fsi__d3_norm(u);
    return 0.5 * fsi__d3_norm(fsi__d3_cross(u, fsi__d3_sub(fsi__d3_of(m->vertices[m->faces[3 * f + 2]]), a)));
}

/* Number of parts of a face's edges, for points a spacing apart. */
static int fsi__el_face_parts(const fsi_mesh *m, int f, double spacing)
{
    double longest = 0;
    int k;
    for (k = 0; k < m->corners; k++) longest = fmax(longest, fsi__d3_norm(fsi__d3_diff(
        m->vertices[m->faces[m->corners * f + k]], m->vertices[m->faces[m->corners * f + (k + 1) % m->corners]])));
    return (int)fmin(longest / spacing, 200);
}

/* Writes points inside a face, numbered from index on; out NULL: only counts them. */
static int fsi__el_face_points(const fsi_mesh *m, int f, int parts, fsi__el_candidate *out, int index)
{
    int i, j, k, n = 0;
    for (i = 1; i < parts; i++) for (j = 1; j < (m->corners == 3 ? parts - i : 2); j++, n++) {
        fsi__el_candidate *c = out ? &out[n] : NULL;
        if (!c) continue;
        memset(c, 0, sizeof *c);
        c->face = f;
        c->index = index + n;
        c->bary[1] = (double)i / parts;
        c->bary[2] = m->corners == 3 ? (double)j / parts : 0;
        c->bary[0] = 1 - c->bary[1] - c->bary[2];
        for (k = 0; k < m->corners; k++)
            c->x = fsi__d3_madd(c->x, c->bary[k], fsi__d3_of(m->vertices[m->faces[m->corners * f + k]]));
    }
    return n;
}

/* Sharpness of each vertex, 0 in a plane: 1 - |sum of area times normal| / sum of areas, over its faces. */
static void fsi__el_sharpness(const fsi_mesh *m, fsi__el_candidate *c, double *area)
{
    int f, k, v;
    for (v = 0; v < m->vertex_count; v++) {
        memset(&c[v], 0, sizeof *c);
        area[v] = 0;
    }
    for (f = 0; f < m->face_count; f++) for (k = 0; k < m->corners; k++) {
        const double a = fsi__el_face_area(m, f);
        v = m->faces[m->corners * f + k];
        c[v].x = fsi__d3_madd(c[v].x, a, fsi__d3_of(m->face_normals[f])); /* x: first the sum of area times normal */
        c[v].face = f;
        area[v] += a;
        c[v].bary[0] = c[v].bary[1] = c[v].bary[2] = 0;
        c[v].bary[k] = 1;
    }
    for (v = 0; v < m->vertex_count; v++) {
        c[v].sharp = area[v] > 0 ? 1 - fsi__d3_norm(c[v].x) / area[v] : 0;
        if (c[v].sharp < 1e-6) c[v].sharp = 1e-6; /* sorts before the points on faces, which have 0 */
        c[v].x = fsi__d3_of(m->vertices[v]);
        c[v].index = v;
    }
}

/* Hash grid of the kept points, with cells of side `reach`; is_taken: whether one is within reach of x. */
typedef struct fsi__el_cells { double reach; int slots, *head, *next; const fsi__d3 *x; } fsi__el_cells;
static int fsi__el_cell_of(const fsi__el_cells *g, double i, double j, double k)
{
    uint64_t h = (uint64_t)(int64_t)i * 0x9E3779B97F4A7C15u + (uint64_t)(int64_t)j;
    h = (h * 0xD6E8FEB86659FD93u + (uint64_t)(int64_t)k) * 0xFF51AFD7ED558CCDu;
    return (int)((h >> 33) & (uint64_t)(g->slots - 1));
}
static int fsi__el_is_taken(const fsi__el_cells *g, fsi__d3 x)
{
    double i, j, k;
    int p;
    for (i = floor(x.x / g->reach) - 1; i < floor(x.x / g->reach) + 1.5; i++)
        for (j = floor(x.y / g->reach) - 1; j < floor(x.y / g->reach) + 1.5; j++)
            for (k = floor(x.z / g->reach) - 1; k < floor(x.z / g->reach) + 1.5; k++)
                for (p = g->head[fsi__el_cell_of(g, i, j, k)]; p >= 0; p = g->next[p])
                    if (fsi__d3_norm(fsi__d3_sub(x, g->x[p])) < g->reach) return 1;
    return 0;
}

static fsi_status fsi__el_make_points(fsi__el_member *m, fsi_context *context, const char *fn, int want)
{
    const fsi_mesh *mesh = m->mesh;
    fsi__arena a = { NULL, 0, 0 };
    fsi__el_candidate *c = NULL;
    fsi__el_cells g;
    fsi__d3 *kept = NULL;
    double *area = NULL, whole = 0;
    int f, n, k, pass, *source = NULL;
    fsi_status status = FSI_OK;

    /* Spacing of points on the area; the number of candidates; slots of the hash grid. */
    for (f = 0; f < mesh->face_count; f++) whole += fsi__el_face_area(mesh, f);
    m->spacing = mesh->corners == 3 ? sqrt(whole / want) : whole / want;
    for (n = mesh->vertex_count, f = 0; f < mesh->face_count; f++)
        n += fsi__el_face_points(mesh, f, fsi__el_face_parts(mesh, f, m->spacing), NULL, 0);
    memset(&g, 0, sizeof g);
    for (g.slots = 64; g.slots < 2 * n && g.slots < (1 << 20);) g.slots *= 2;

    /* Scratch memory: the size is summed in the first pass, the arrays are set in the second. */
    for (pass = 0; pass < 2; pass++) {
        c = (fsi__el_candidate *)fsi__take(&a, (size_t)n, sizeof *c);
        kept = (fsi__d3 *)fsi__take(&a, (size_t)n, sizeof *kept);
        area = (double *)fsi__take(&a, (size_t)mesh->vertex_count, sizeof *area);
        g.head = (int *)fsi__take(&a, (size_t)g.slots, sizeof(int));
        g.next = (int *)fsi__take(&a, (size_t)n, sizeof(int));
        source = (int *)fsi__take(&a, (size_t)n, sizeof(int));
        if (pass == 0 && !fsi__arena_reserve(context, &a, a.used))
            return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, n, "no memory for %d contact points", n);
    }

    /* Candidates, the sharpest first. */
    fsi__el_sharpness(mesh, c, area);
    for (n = mesh->vertex_count, f = 0; f < mesh->face_count; f++)
        n += fsi__el_face_points(mesh, f, fsi__el_face_parts(mesh, f, m->spacing), c + n, n);
    qsort(c, (size_t)n, sizeof *c, fsi__el_sharper);

    /* A candidate is kept if no kept point is within 0.7 spacings; its row is a weighted sum of its face's corners. */
    for (k = 0; k < g.slots; k++) g.head[k] = -1;
    g.reach = 0.7 * m->spacing;
    g.x = kept;
    for (k = 0; k < n && status == FSI_OK; k++) {
        int slot;
        if (fsi__el_is_taken(&g, c[k].x)) continue;
        slot = fsi__el_cell_of(&g, floor(c[k].x.x / g.reach), floor(c[k].x.y / g.reach), floor(c[k].x.z / g.reach));
        kept[m->points] = c[k].x;
        source[m->points] = c[k].index < mesh->vertex_count ? c[k].index : -1 - c[k].face;
        g.next[m->points] = g.head[slot];
        g.head[slot] = m->points++;
        status = fsi__el_rows_join(&m->rows, context, fn, &m->rows, mesh->corners,
                                   mesh->faces + mesh->corners * c[k].face, c[k].bary);
    }

    /* The sources of the kept points. */
    m->source = (int *)fsi__alloc(context, (size_t)m->points, sizeof(int));
    if (m->source) memcpy(m->source, source, (size_t)m->points * sizeof(int));
    fsi__arena_free(context, &a);
    if (status == FSI_OK && !m->source)
        return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, m->points, "no memory for %d contact points", m->points);
    return status;
}

/* ---- >>bodies made -------------------------------------------------------------------------------------------- */

/* Rest shape with a pose, and the velocities of a rigid body. */
static void fsi__el_set_rigid(fsi__el_member *m, fsi_vec3 position, fsi_quat turn, fsi_vec3 velocity, fsi_vec3 spin)
{
    fsi__el_body *b = &m->body;
    double r[9];
    fsi__d3 centre = fsi__d3_zero(), at = fsi__d3_of(position), w = fsi__d3_of(spin), v = fsi__d3_of(velocity);
    int i;
    fsi__d9_of_quat(turn, r);
    for (i = 0; i < b->dofs; i++) {
        const fsi__d3 x = fsi__d3_madd(fsi__d9_mul(r, fsi__d3_at(b->rest + 3 * (size_t)i)), b->one[i], at);
        fsi__d3_put(b->q + 3 * (size_t)i, x);
        centre = fsi__d3_madd(centre, b->m_one[i] / b->mass, x);
    }
    for (i = 0; i < b->dofs; i++)
        fsi__d3_put(b->v + 3 * (size_t)i, fsi__d3_madd(fsi__d3_cross(w, fsi__d3_at(b->q + 3 * (size_t)i)), b->one[i],
            fsi__d3_sub(v, fsi__d3_cross(w, centre))));
    b->h_before = 0;
    b->yielding = 1;
    memcpy(b->next, b->q, 3 * (size_t)b->dofs * sizeof(double));
    memset(b->support, 0, 3 * (size_t)b->dofs * sizeof(double));
    m->mesh_stale = 1;
}

static void fsi__el_free_member(fsi__el_member *m, fsi_context *context)
{
    const size_t d = (size_t)m->body.dofs, rows = (size_t)m->rows.count, points = 6 * (size_t)m->points;
    fsi__free(context, m->slot, rows, sizeof(int));
    fsi__free(context, m->start, points, sizeof(double));
    fsi__free(context, m->rest, m->rest ? rows : 0, sizeof *m->rest);
    fsi__free(context, m->source, (size_t)m->points, sizeof(int));
    fsi__free(context, m->moved, (size_t)m->vertex_room, sizeof *m->moved);
    fsi__free(context, m->column, (size_t)m->slot_room, d * sizeof(double));
    fsi__free(context, m->side, (size_t)m->side_room, sizeof *m->side);
    fsi__free(context, m->response, m->response_room, sizeof(double));
    fsi__free(context, m->coupling, m->coupling_room, sizeof(double));
    fsi__el_rows_free(&m->rows, context);
    fsi__el_rows_free(&m->joint, context);
    fsi_mesh_destroy(m->mesh);
    fsi__el_body_free(&m->body);
    memset(m, 0, sizeof *m);
}

static fsi_status fsi__el_check_materials(fsi_context *context, const char *fn, const fsi_elastic_body_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_elastic_material, density, FSI__REAL, 0, FSI__HUGE, FSI__ABOVE),
        FSI__FIELD(fsi_elastic_material, young, FSI__REAL, 0, FSI__HUGE, FSI__ABOVE),
        FSI__FIELD(fsi_elastic_material, poisson, FSI__REAL, 0, 0.4999, 0),
        FSI__FIELD(fsi_elastic_material, damping, FSI__REAL, 0, FSI__HUGE, 0)
    };
    char of[40];
    fsi__where at;
    int k;
    for (k = 0; k < d->material_count; k++) {
        snprintf(of, sizeof of, "material %d: ", k);
        at.function = fn;
        at.of = of;
        at.element = k;
        at.dim = 3;
        if (d->materials[k].cookie != FSI__COOKIE('e', fsi_elastic_material))
            return fsi__fail(context, FSI_ERROR_COOKIE, fn, k, 0,
                "material %d was not filled by fsi_elastic_default_material of this version and precision", k);
        FSI__TRY(FSI__CHECK_TABLE(context, &at, &d->materials[k], rows));
    }
    return FSI_OK;
}

/* A pose and velocities; `name`.position and so on in messages. */
static fsi_status fsi__el_check_motion(const fsi_elastic *s, const char *fn, const char *name, fsi_vec3 position,
    fsi_quat q, fsi_vec3 velocity, fsi_vec3 spin)
{
    const fsi__where at = { fn, "", -1, 3 };
    fsi_pose pose;
    pose.position = position;
    pose.orientation = q;
    FSI__TRY(fsi__check_pose(s->context, &at, name, pose));
    if (!fsi_v3_is_finite(velocity) || !fsi_v3_is_finite(spin))
        return fsi__fail(s->context, FSI_ERROR_NAN, fn, -1, 0, "%s.%s is not finite", name,
            fsi_v3_is_finite(velocity) ? "angular_velocity" : "velocity");
    if (s->desc.dim == 2 && (fabs((double)position.z) + fabs((double)velocity.z) + fabs((double)spin.x) +
        fabs((double)spin.y) + fabs((double)q.x) + fabs((double)q.y) > 0))
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "%s: its motion leaves the plane of dim 2", name);
    return FSI_OK;
}

static fsi_status fsi__el_check_body(fsi_elastic *s, const char *fn, const fsi_elastic_body_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_elastic_body_desc, resolution, FSI__INT, 2, 400, 0),
        FSI__FIELD(fsi_elastic_body_desc, material_count, FSI__INT, 0, 100000, 0),
        FSI__FIELD(fsi_elastic_body_desc, handles, FSI__INT, 4, FSI__EL_HANDLES, FSI__OR_ZERO),
        FSI__FIELD(fsi_elastic_body_desc, handle_reach, FSI__REAL, 1.05, 10, 0),
        FSI__FIELD(fsi_elastic_body_desc, regions, FSI__INT, 8, 100000, FSI__OR_ZERO),
        FSI__FIELD(fsi_elastic_body_desc, friction, FSI__REAL, 0, 10, 0),
        FSI__FIELD(fsi_elastic_body_desc, contact_points, FSI__INT, 0, 100000, 0)
    };
    const fsi__where at = { fn, "desc.", -1, 3 };

    /* Cookie, ranges, pose and materials. */
    FSI__TRY(
        fsi__check_filled(s->context, fn, d, FSI__COOKIE('y', fsi_elastic_body_desc), "fsi_elastic_default_body_desc"));
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, d, rows));
    FSI__TRY(fsi__el_check_motion(s, fn, "desc", d->position, d->orientation, d->velocity, d->angular_velocity));
    if (d->material_count > 0 && !d->materials)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "desc.materials is NULL");
    FSI__TRY(fsi__el_check_materials(s->context, fn, d));

    /* Either elements or a closed surface. */
    if ((d->surface != NULL) == (d->elements != NULL))
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "give either desc.surface or desc.elements");
    if (!d->surface) return FSI_OK;
    if (d->surface->cookie == FSI__COOKIE('m', fsi_mesh) && d->surface->container)
        return fsi__fail(s->context, FSI_ERROR_MESH, fn, -1, 0, "desc.surface is a container: it has no inside");
    return fsi__check_mesh(s->context, fn, d->surface, s->desc.dim, 1);
}

/* Shape, unknowns, surface, contact points of a new body. */
static fsi_status fsi__el_make_member(fsi_elastic *s, const char *fn, const fsi_elastic_body_desc *d, fsi__el_member *m)
{
    const fsi_elastic_material usual = fsi_elastic_default_material();
    fsi_context *context = s->context;
    fsi__el_plan plan;
    int v;

    /* The plan of the body, and its desc without the caller's arrays. */
    memset(&plan, 0, sizeof plan);
    plan.materials = d->material_count > 0 ? d->materials : &usual;
    plan.material_count = d->material_count > 0 ? d->material_count : 1;
    plan.depth = s->desc.acceleration;
    plan.reach = (double)d->handle_reach;
    m->body.context = context;
    m->desc = *d;
    m->desc.vertices = NULL;
    m->desc.elements = m->desc.element_material = NULL;
    m->desc.surface = NULL;
    m->desc.materials = NULL;

    /* The shape at rest. */
    if (d->surface) FSI__TRY(fsi__el_shape_cage(&m->body.shape, context, fn, d->surface, d->resolution, d->material_at,
        d->material_user, plan.material_count));
    else
        FSI__TRY(fsi__el_shape_take(&m->body.shape, context, fn, s->desc.dim, d->vertices, d->vertex_count, d->elements,
                                    d->element_count, d->element_material, plan.material_count));

    /* Unknowns and matrices. */
    plan.handles = d->handles;
    if (d->handles > m->body.shape.vertex_count / 4) plan.handles = m->body.shape.vertex_count / 4;
    if (d->handles > 0 && plan.handles < 4) plan.handles = 0; /* a body of fewer than 16 vertices is full */
    plan.samples = d->regions > 0 ? d->regions : 20 * plan.handles > 600 ? 20 * plan.handles : 600;
    FSI__TRY(fsi__el_body_make(&m->body, fn, &plan));
    FSI__TRY(fsi__el_rows_begin(&m->rows, context, fn, 1));
    FSI__TRY(fsi__el_rows_begin(&m->joint, context, fn, 1));

    /* Surface and contact points, with a row for each. */
    if (d->contact_points > 0) {
        FSI__TRY(d->surface ? fsi__el_copy_surface(&m->mesh, context, d->surface, d->surface->vertices)
            : fsi__el_boundary(m, context, fn));
        m->vertex_room = m->mesh->source_count;
        m->moved = (fsi_vec3 *)fsi__alloc(context, (size_t)m->vertex_room, sizeof *m->moved);
        if (!m->moved) return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, m->vertex_room, "no memory for a surface");
        for (v = 0; v < m->mesh->vertex_count; v++)
            FSI__TRY(fsi__el_body_row(&m->body, &m->rows, fn, fsi__d3_of(m->mesh->vertices[v])));
        FSI__TRY(fsi__el_make_points(m, context, fn, d->contact_points));
        m->start = (double *)fsi__alloc(context, 6 * (size_t)m->points, sizeof(double));
        m->slot = (int *)fsi__alloc(context, (size_t)m->rows.count, sizeof(int));
        if (!m->start || !m->slot)
            return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, m->points, "no memory for contact points");
        m->aim = m->start + 3 * (size_t)m->points;
        if (d->self_contact) {
            m->rest = (fsi__d3 *)fsi__alloc(context, (size_t)m->rows.count, sizeof *m->rest);
            if (!m->rest)
                return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, m->rows.count, "no memory for contact points");
            for (v = 0; v < m->rows.count; v++) m->rest[v] = fsi__el_rest_of(m, v);
        }
    }

    /* Initial position and velocity. */
    fsi__el_set_rigid(m, d->position, fsi_quat_unit(d->orientation), d->velocity, d->angular_velocity);
    return FSI_OK;
}

FSI_API fsi_elastic_body_desc fsi_elastic_default_body_desc(void)
{
    fsi_elastic_body_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('y', fsi_elastic_body_desc);
    d.resolution = 24;
    d.handles = 30;
    d.handle_reach = 2;
    d.orientation = fsi_quat_identity();
    d.friction = (fsi_real)0.5;
    d.contact_points = 400;
    return d;
}

FSI_API fsi_status fsi_elastic_add_body(fsi_elastic *s, const fsi_elastic_body_desc *desc, int *id)
{
    static const char fn[] = "fsi_elastic_add_body";
    fsi__el_impl *im = fsi__el_of(s);
    fsi__column columns[2];
    fsi__el_member m;
    fsi_status status;

    /* Checks, and room in both arrays. */
    if (id) *id = -1;
    if (!im) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__el_check_body(s, fn, desc));
    columns[0].array = (void **)&im->member;
    columns[0].size = sizeof *im->member;
    columns[1].array = (void **)&im->shown;
    columns[1].size = sizeof *im->shown;
    FSI__TRY(fsi__room(s->context, columns, 2, im->members, &im->member_room, im->members + 1, fn));
    s->bodies = im->shown;

    /* The body is made outside the array, so that a failure leaves the simulator unchanged. */
    memset(&m, 0, sizeof m);
    status = fsi__el_make_member(s, fn, desc, &m);
    if (status != FSI_OK) {
        fsi__el_free_member(&m, s->context);
        return status;
    }

    /* It becomes the last body. */
    m.id = im->next_id++;
    im->member[im->members] = m;
    im->members++;
    s->body_count = im->members;
    fsi__el_show(im, im->members - 1);
    if (id) *id = m.id;
    return FSI_OK;
}

/* Removes the attachments of the body with index `gone`; those of later bodies get the next lower index. */
static void fsi__el_drop_attachments(fsi__el_impl *im, int gone)
{
    int k, kept = 0;
    for (k = 0; k < im->attachments; k++) {
        if (im->attachment[k].body == gone) continue;
        im->attachment[kept] = im->attachment[k];
        if (im->attachment[kept].body > gone) im->attachment[kept].body--;
        kept++;
    }
    im->attachments = kept;
}

FSI_API fsi_status fsi_elastic_remove_body(fsi_elastic *s, int id)
{
    fsi__el_impl *im = fsi__el_of(s);
    fsi__el_member *m;
    int k, j;
    FSI__TRY(fsi__el_find(s, "fsi_elastic_remove_body", id, &m));
    k = (int)(m - im->member);
    fsi__el_free_member(m, s->context);
    for (j = k; j + 1 < im->members; j++) {
        im->member[j] = im->member[j + 1];
        im->shown[j] = im->shown[j + 1];
    }
    s->body_count = --im->members;
    memset(&im->member[im->members], 0, sizeof *im->member);
    fsi__el_drop_attachments(im, k);
    im->touches = 0; /* they refer to bodies by index */
    return FSI_OK;
}

FSI_API fsi_status fsi_elastic_reset_body(fsi_elastic *s, int id, fsi_vec3 position, fsi_quat orientation,
    fsi_vec3 velocity, fsi_vec3 angular_velocity)
{
    static const char fn[] = "fsi_elastic_reset_body";
    fsi__el_impl *im = fsi__el_of(s);
    fsi__el_member *m;
    FSI__TRY(fsi__el_find(s, fn, id, &m));
    FSI__TRY(fsi__el_check_motion(s, fn, "pose", position, orientation, velocity, angular_velocity));
    fsi__el_set_rigid(m, position, fsi_quat_unit(orientation), velocity, angular_velocity);
    fsi__el_show(im, (int)(m - im->member));
    return FSI_OK;
}

/* q of the subspace nearest to given vertices, in the norm of their masses: M_r q = U^T M x. */
static fsi_status fsi__el_project_vertices(fsi__el_member *m, const char *fn, const fsi_vec3 *x, double *q)
{
    fsi__el_body *b = &m->body;
    const fsi__el_shape *s = &b->shape;
    const size_t d = (size_t)b->dofs, stride = b->stride, room = d * d + fsi__panels_size(b->dofs) + 3 * stride;
    fsi__el_rows one;
    double *work = (double *)fsi__alloc(b->context, room, sizeof(double)),
        *right = work ? work + room - 3 * stride : NULL;
    fsi_status status = work ? fsi__el_rows_begin(&one, b->context, fn, 1)
        : fsi__fail(b->context, FSI_ERROR_MEMORY, fn, -1, b->dofs, "no memory to project %d unknowns", b->dofs);
    int e, k, i, c;
    if (!work) return status;

    /* U^T M x, element by element, M the consistent mass matrix as in fsi__el_make_mass: corner i of one of mass m has
       the row sum_j m/((d + 1)(d + 2)) (1 + delta_ij) x_j. */
    for (e = 0; e < s->element_count && status == FSI_OK; e++) for (k = 0; k <= b->dim; k++) {
        const int *corner = fsi__el_corners(s, e);
        const double mass = b->element_mass[e] / ((b->dim + 1) * (b->dim + 2));
        double bary[4] = { 0, 0, 0, 0 };
        fsi__d3 sum = fsi__d3_of(x[corner[k]]);
        for (i = 0; i <= b->dim; i++) sum = fsi__d3_add(sum, fsi__d3_of(x[corner[i]]));
        bary[k] = 1;
        one.count = one.start[0] = 0;
        status = fsi__el_rows_point(&one, b->context, fn, s, &b->handles, e, bary);
        if (status != FSI_OK) break;
        for (i = 0; i < one.start[1]; i++) for (c = 0; c < 3; c++)
            right[(size_t)c * stride + (size_t)one.dof[i]] += mass * one.value[i] * fsi__d3_axis(sum, c);
    }

    /* M_r, of the elements, is factorised, then solved for three right sides. */
    if (status == FSI_OK) {
        memcpy(work, b->own_mass, d * d * sizeof(double));
        status = fsi_dense_cholesky(b->context, b->dofs, work);
    }
    if (status == FSI_OK) {
        fsi__panels_make(b->dofs, work, work + d * d);
        status = fsi__panels_solve_3(b->dofs, work + d * d, right, stride);
    }
    for (i = 0; i < b->dofs && status == FSI_OK; i++)
        for (c = 0; c < 3; c++) q[3 * i + c] = right[(size_t)c * stride + (size_t)i];
    fsi__el_rows_free(&one, b->context);
    fsi__free(b->context, work, room, sizeof(double));
    return status;
}

FSI_API fsi_status fsi_elastic_set_vertices(fsi_elastic *s, int id, const fsi_vec3 *positions,
                                            const fsi_vec3 *velocities)
{
    static const char fn[] = "fsi_elastic_set_vertices";
    fsi__el_impl *im = fsi__el_of(s);
    fsi__el_member *m;
    fsi__el_body *b;
    int v, c;

    /* Checks of all vertices. */
    FSI__TRY(fsi__el_find(s, fn, id, &m));
    if (!positions) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "positions is NULL");
    b = &m->body;
    for (v = 0; v < b->shape.vertex_count; v++) {
        if (!fsi_v3_is_finite(positions[v]) || (velocities && !fsi_v3_is_finite(velocities[v])))
            return fsi__fail(s->context, FSI_ERROR_NAN, fn, v, 0, "vertex %d is not finite", v);
        if (b->dim == 2 && (positions[v].z < 0 || positions[v].z > 0))
            return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, v, (double)positions[v].z,
                             "vertex %d leaves the plane of dim 2", v);
    }

    /* A reduced body: both projections before q or v changes. A full one: its vertices. */
    if (b->reduced) {
        FSI__TRY(fsi__el_project_vertices(m, fn, positions, b->next));
        memset(b->aim, 0, 3 * (size_t)b->dofs * sizeof(double));
        if (velocities) FSI__TRY(fsi__el_project_vertices(m, fn, velocities, b->aim));
        memcpy(b->q, b->next, 3 * (size_t)b->dofs * sizeof(double));
        memcpy(b->v, b->aim, 3 * (size_t)b->dofs * sizeof(double));
    } else for (v = 0; v < b->dofs; v++) for (c = 0; c < 3; c++) {
        b->next[3 * v + c] = b->q[3 * v + c] = (double)fsi__axis(positions[v], c);
        b->v[3 * v + c] = velocities ? (double)fsi__axis(velocities[v], c) : 0;
    }

    /* The integrator starts without a step before. */
    b->h_before = 0;
    b->yielding = 1;
    m->mesh_stale = 1;
    fsi__el_show(im, (int)(m - im->member));
    return FSI_OK;
}

FSI__COLD_END

/* Positions or velocities of all vertices of a reduced body: out = U q (E6). */
static void fsi__el_expand(const fsi__el_body *b, const double *q, fsi_vec3 *out)
{
    const fsi__el_shape *s = &b->shape;
    const fsi__el_weights *w = &b->handles;
    const int corners = b->dim + 1;
    int v, i, a;
    for (v = 0; v < s->vertex_count; v++) {
        const fsi__d3 x = fsi__d3_at(s->x + 3 * (size_t)v);
        fsi__d3 sum = fsi__d3_zero();
        for (i = w->first[v]; i < w->first[v + 1]; i++) {
            const double *h = q + 3 * (size_t)(corners * w->handle[i]);
            const fsi__d3 d = fsi__d3_sub(x, fsi__d3_at(s->x + 3 * (size_t)w->center[w->handle[i]]));
            fsi__d3 y = fsi__d3_at(h + 3 * b->dim);
            for (a = 0; a < b->dim; a++) y = fsi__d3_madd(y, fsi__d3_axis(d, a), fsi__d3_at(h + 3 * a));
            sum = fsi__d3_madd(sum, w->weight[i], y);
        }
        out[v] = fsi__d3_real(sum);
    }
}

FSI_API fsi_status fsi_elastic_vertices(fsi_elastic *s, int id, fsi_vec3 *positions, fsi_vec3 *velocities)
{
    fsi__el_member *m;
    int v;
    FSI__TRY(fsi__el_find(s, "fsi_elastic_vertices", id, &m));
    if (!positions)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, "fsi_elastic_vertices", -1, 0, "positions is NULL");
    if (m->body.reduced) {
        fsi__el_expand(&m->body, m->body.q, positions);
        if (velocities) fsi__el_expand(&m->body, m->body.v, velocities);
    } else for (v = 0; v < m->body.dofs; v++) {
        positions[v] = fsi__d3_real(fsi__d3_at(m->body.q + 3 * (size_t)v));
        if (velocities) velocities[v] = fsi__d3_real(fsi__d3_at(m->body.v + 3 * (size_t)v));
    }
    return FSI_OK;
}

FSI_API const fsi_mesh *fsi_elastic_surface(fsi_elastic *s, int id)
{
    fsi__el_member *m;
    if (fsi__el_find(s, "fsi_elastic_surface", id, &m) != FSI_OK || fsi__el_follow(m) != FSI_OK) return NULL;
    return m->mesh;
}

FSI_API fsi_status fsi_elastic_add_force(fsi_elastic *s, int id, fsi_vec3 rest, fsi_vec3 force)
{
    static const char fn[] = "fsi_elastic_add_force";
    fsi__el_member *m;
    fsi__el_rows one;
    FSI__TRY(fsi__el_find(s, fn, id, &m));
    if (!fsi_v3_is_finite(rest) || !fsi_v3_is_finite(force))
        return fsi__fail(s->context, FSI_ERROR_NAN, fn, id, 0, "the point or the force is not finite");
    FSI__TRY(fsi__el_rows_begin(&one, s->context, fn, 1));
    {
        const fsi_status status = fsi__el_body_row(&m->body, &one, fn, fsi__d3_of(rest));
        if (status == FSI_OK) fsi__el_push(&one, 0, fsi__d3_of(force), m->body.force);
        fsi__el_rows_free(&one, s->context);
        return status;
    }
}

FSI_API fsi_mesh_hit fsi_elastic_pick(fsi_elastic *s, fsi_vec3 origin, fsi_vec3 direction, fsi_real t_max, int *body,
    fsi_vec3 *rest)
{
    fsi__el_impl *im = fsi__el_of(s);
    fsi_mesh_hit best = fsi__no_hit();
    int k, c;
    if (body) *body = -1;
    for (k = 0; im && k < im->members; k++) {
        fsi__el_member *m = &im->member[k];
        fsi_mesh_hit h;
        if (!m->mesh || fsi__el_follow(m) != FSI_OK) continue;
        h = fsi_mesh_ray(m->mesh, origin, direction, best.face < 0 ? t_max : best.t);
        if (h.face < 0 || (best.face >= 0 && !(h.t < best.t))) continue;
        best = h;
        if (body) *body = m->id;
        if (rest) {
            fsi__d3 x = fsi__d3_zero();
            for (c = 0; c < m->mesh->corners; c++)
                x = fsi__d3_madd(x, (double)h.bary[c], fsi__el_rest_of(m, fsi__el_corner(m, h.face, c)));
            *rest = fsi__d3_real(x);
        }
    }
    return best;
}

FSI__COLD_BEGIN

/* ---- >>attachments implementation ----------------------------------------------------------------------------- */

FSI_API fsi_elastic_attachment_desc fsi_elastic_default_attachment_desc(void)
{
    fsi_elastic_attachment_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('t', fsi_elastic_attachment_desc);
    d.vertex = -1;
    return d;
}

FSI_API fsi_status fsi_elastic_attach(fsi_elastic *s, const fsi_elastic_attachment_desc *desc, int *id)
{
    static const char fn[] = "fsi_elastic_attach";
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_elastic_attachment_desc, stiffness, FSI__REAL, 0, FSI__HUGE, 0),
        FSI__FINITE(fsi_elastic_attachment_desc, rest), FSI__FINITE(fsi_elastic_attachment_desc, target)
    };
    fsi__el_impl *im = fsi__el_of(s);
    fsi__where at = { fn, "desc.", -1, 3 };
    fsi__el_member *m;
    fsi__el_attachment *a;
    fsi__el_spring *spring;
    fsi__d3 x, rest;

    /* Checks. */
    if (id) *id = -1;
    if (!im) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__check_filled(s->context, fn, desc, FSI__COOKIE('t', fsi_elastic_attachment_desc),
        "fsi_elastic_default_attachment_desc"));
    at.dim = s->desc.dim;
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, desc, rows));
    FSI__TRY(fsi__el_find(s, fn, desc->body, &m));
    if (desc->vertex < -1 || desc->vertex >= m->body.shape.vertex_count)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, desc->vertex, desc->vertex, "there is no vertex %d",
                         desc->vertex);

    /* Room in both arrays, then the row of the point, which is the last that can fail. */
    FSI__TRY(fsi__room_in(s->context, &im->attachment, sizeof *im->attachment, im->attachments, &im->attachment_room,
        im->attachments + 1, fn));
    FSI__TRY(fsi__room_in(s->context, &m->body.spring, sizeof *m->body.spring, m->body.springs, &m->body.spring_room,
        m->body.springs + 1, fn));
    rest = desc->vertex < 0 ? fsi__d3_of(desc->rest) : fsi__d3_at(m->body.shape.x + 3 * (size_t)desc->vertex);
    FSI__TRY(fsi__el_body_row(&m->body, &m->body.anchor, fn, rest));
    x = fsi__el_point(&m->body.anchor, m->body.anchor.count - 1, m->body.q);

    /* The attachment: its target moves from the point's position to desc.target in the coming step. */
    a = &im->attachment[im->attachments++];
    a->id = im->next_attachment++;
    a->body = (int)(m - im->member);
    a->spring = m->body.springs;
    a->desc = *desc;
    fsi__d3_put(a->from, x);
    fsi__d3_put(a->to, fsi__d3_of(desc->target));

    /* The spring; its stiffness is set where the matrix is factorised. */
    spring = &m->body.spring[m->body.springs++];
    spring->row = m->body.anchor.count - 1;
    spring->given = (double)desc->stiffness;
    spring->stiffness = 0;
    fsi__d3_put(spring->target, fsi__d3_of(desc->target));
    m->body.springs_changed = 1;
    if (id) *id = a->id;
    return FSI_OK;
}

static fsi__el_attachment *fsi__el_find_attachment(const fsi_elastic *s, const char *fn, int id)
{
    const fsi__el_impl *im = fsi__el_of(s);
    int k;
    for (k = 0; im && k < im->attachments; k++) if (im->attachment[k].id == id) return &im->attachment[k];
    if (im) fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, id, 0, "there is no attachment %d", id);
    return NULL;
}

FSI_API fsi_status fsi_elastic_set_target(fsi_elastic *s, int id, fsi_vec3 target)
{
    fsi__el_attachment *a = fsi__el_find_attachment(s, "fsi_elastic_set_target", id);
    if (!fsi__el_of(s)) return FSI_ERROR_COOKIE;
    if (!a) return FSI_ERROR_ARGUMENT;
    if (!fsi_v3_is_finite(target))
        return fsi__fail(s->context, FSI_ERROR_NAN, "fsi_elastic_set_target", id, 0, "target is not finite");
    a->desc.target = target;
    fsi__d3_put(a->to, fsi__d3_of(target));
    return FSI_OK;
}

FSI_API fsi_status fsi_elastic_detach(fsi_elastic *s, int id)
{
    fsi__el_impl *im = fsi__el_of(s);
    fsi__el_attachment *a = fsi__el_find_attachment(s, "fsi_elastic_detach", id);
    fsi__el_body *b;
    fsi__el_rows rest;
    int k, gone, body;
    fsi_status status = FSI_OK;
    if (!im) return FSI_ERROR_COOKIE;
    if (!a) return FSI_ERROR_ARGUMENT;
    body = a->body;
    gone = a->spring;
    b = &im->member[body].body;

    /* The rows of the other attachments. */
    FSI__TRY(fsi__el_rows_begin(&rest, s->context, "fsi_elastic_detach", 1));
    for (k = 0; k < b->springs && status == FSI_OK; k++) {
        const double one = 1;
        if (k != gone)
            status = fsi__el_rows_join(&rest, s->context, "fsi_elastic_detach", &b->anchor, 1, &b->spring[k].row, &one);
    }
    if (status != FSI_OK) {
        fsi__el_rows_free(&rest, s->context);
        return status;
    }

    /* The spring is removed; rows and indices above it move down. */
    fsi__el_rows_free(&b->anchor, s->context);
    b->anchor = rest;
    for (k = gone; k + 1 < b->springs; k++) b->spring[k] = b->spring[k + 1];
    b->springs--;
    for (k = 0; k < b->springs; k++) b->spring[k].row = k;
    b->springs_changed = 1;

    /* The attachment is removed; those with a later spring of the same body refer to the one before. */
    for (k = (int)(a - im->attachment); k + 1 < im->attachments; k++) im->attachment[k] = im->attachment[k + 1];
    im->attachments--;
    for (k = 0; k < im->attachments; k++)
        if (im->attachment[k].body == body && im->attachment[k].spring > gone) im->attachment[k].spring--;
    return FSI_OK;
}

FSI_API fsi_status fsi_elastic_attachment_force(const fsi_elastic *s, int id, fsi_vec3 *force)
{
    const fsi__el_impl *im = fsi__el_of(s);
    const fsi__el_attachment *a = fsi__el_find_attachment(s, "fsi_elastic_attachment_force", id);
    if (force) *force = fsi_v3(0, 0, 0);
    if (!im) return FSI_ERROR_COOKIE;
    if (!a || !force) return FSI_ERROR_ARGUMENT;
    *force = fsi__d3_real(fsi__d3_at(a->force));
    return FSI_OK;
}

/* ---- >>obstacles implementation ------------------------------------------------------------------------------- */

FSI_API fsi_elastic_shape_desc fsi_elastic_default_shape_desc(void)
{
    fsi_elastic_shape_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('h', fsi_elastic_shape_desc);
    d.normal = fsi_v3(0, 0, 1);
    d.radius = 1;
    d.friction = (fsi_real)0.5;
    return d;
}

static fsi_status fsi__el_check_shape(const fsi_elastic *s, const char *fn, const fsi_elastic_shape_desc *desc)
{
    static const fsi__field rows[] = {FSI__FIELD(fsi_elastic_shape_desc, kind, FSI__INT, 0, 2, 0),
                                      FSI__FINITE(fsi_elastic_shape_desc, point),
                                      FSI__DIRECTION(fsi_elastic_shape_desc, normal),
                                      FSI__FIELD(fsi_elastic_shape_desc, radius, FSI__REAL, 0, 1e9, FSI__ABOVE),
                                      FSI__FIELD(fsi_elastic_shape_desc, friction, FSI__REAL, 0, 10, 0)};
    const fsi__where at = { fn, "desc.", -1, 3 };
    FSI__TRY(fsi__check_filled(s->context, fn, desc, FSI__COOKIE('h', fsi_elastic_shape_desc),
                               "fsi_elastic_default_shape_desc"));
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, desc, rows));
    if (s->desc.dim == 2 && desc->kind == FSI_ELASTIC_PLANE && (desc->normal.z < 0 || desc->normal.z > 0))
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, (double)desc->normal.z,
                         "desc.normal leaves the plane of dim 2");
    return FSI_OK;
}

FSI_API fsi_status fsi_elastic_add_shape(fsi_elastic *s, const fsi_elastic_shape_desc *desc, int *id)
{
    static const char fn[] = "fsi_elastic_add_shape";
    fsi__el_impl *im = fsi__el_of(s);
    fsi__el_solid *o;
    if (id) *id = -1;
    if (!im) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__el_check_shape(s, fn, desc));
    FSI__TRY(fsi__room_in(s->context, &im->solid, sizeof *im->solid, im->solids, &im->solid_room, im->solids + 1, fn));
    o = &im->solid[im->solids++];
    memset(o, 0, sizeof *o);
    o->id = im->obstacles.next_id++; /* one set of ids with the meshes */
    o->desc = *desc;
    o->from = desc->point;
    if (id) *id = o->id;
    return FSI_OK;
}

static fsi__el_solid *fsi__el_find_solid(const fsi_elastic *s, int id)
{
    const fsi__el_impl *im = fsi__el_of(s);
    int k;
    for (k = 0; im && k < im->solids; k++) if (im->solid[k].id == id) return &im->solid[k];
    return NULL;
}

static fsi_status fsi__el_no_solid(const fsi_elastic *s, const char *fn, int id)
{
    if (!fsi__el_of(s)) return FSI_ERROR_COOKIE;
    return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, id, 0, "there is no shape %d", id);
}

FSI_API fsi_status fsi_elastic_set_shape(fsi_elastic *s, int id, const fsi_elastic_shape_desc *desc)
{
    fsi__el_solid *o = fsi__el_find_solid(s, id);
    if (!o) return fsi__el_no_solid(s, "fsi_elastic_set_shape", id);
    FSI__TRY(fsi__el_check_shape(s, "fsi_elastic_set_shape", desc));
    o->desc = *desc;
    return FSI_OK;
}

FSI_API fsi_status fsi_elastic_remove_shape(fsi_elastic *s, int id)
{
    fsi__el_impl *im = fsi__el_of(s);
    fsi__el_solid *o = fsi__el_find_solid(s, id);
    int k;
    if (!o) return fsi__el_no_solid(s, "fsi_elastic_remove_shape", id);
    for (k = (int)(o - im->solid); k + 1 < im->solids; k++) im->solid[k] = im->solid[k + 1];
    im->solids--;
    im->touches = 0;
    return FSI_OK;
}

FSI_API fsi_elastic_obstacle_desc fsi_elastic_default_obstacle_desc(void)
{
    fsi_elastic_obstacle_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('o', fsi_elastic_obstacle_desc);
    d.friction = (fsi_real)0.5;
    return d;
}

FSI_API fsi_status fsi_elastic_add_obstacle(fsi_elastic *s, const fsi_elastic_obstacle_desc *desc, int *id)
{
    static const char fn[] = "fsi_elastic_add_obstacle";
    static const fsi__field rows[] = { FSI__FIELD(fsi_elastic_obstacle_desc, friction, FSI__REAL, 0, 10, 0) };
    const fsi__where at = { fn, "desc.", -1, 3 };
    fsi__el_impl *im = fsi__el_of(s);
    fsi__el_wall *o;
    int made;

    /* Checks. */
    if (id) *id = -1;
    if (!im) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__check_filled(s->context, fn, desc, FSI__COOKIE('o', fsi_elastic_obstacle_desc),
                               "fsi_elastic_default_obstacle_desc"));
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, desc, rows));
    FSI__TRY(fsi__check_mesh(s->context, fn, desc->mesh, s->desc.dim, 1));
    FSI__TRY(fsi__check_carrier(s->context, fn, desc->body, im->obstacles.next_id, s->desc.dim, 0));
    if (desc->body && desc->body->mode != FSI_BODY_PRESCRIBED)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0,
                         "desc.body is COUPLED; elastic bodies take PRESCRIBED ones");

    /* The row is counted only when it is complete. */
    o = (fsi__el_wall *)fsi__obstacles_begin(&im->obstacles, fn, desc->mesh, desc->body, 0xffffffffu, NULL);
    if (!o) return FSI_ERROR_MEMORY;
    o->friction = (double)desc->friction;
    if (!desc->body) o->base.at.orientation = fsi_quat_identity();
    made = fsi__obstacles_keep(&im->obstacles);
    if (id) *id = made;
    return FSI_OK;
}

FSI_API fsi_status fsi_elastic_add_mesh(fsi_elastic *s, const fsi_mesh *mesh, int *id)
{
    fsi_elastic_obstacle_desc d = fsi_elastic_default_obstacle_desc();
    d.mesh = mesh;
    return fsi_elastic_add_obstacle(s, &d, id);
}

FSI_API fsi_status fsi_elastic_remove_obstacle(fsi_elastic *s, int id)
{
    fsi__el_impl *im = fsi__el_of(s);
    int k;
    if (!im) return FSI_ERROR_COOKIE;
    k = fsi__obstacles_find(&im->obstacles, "fsi_elastic_remove_obstacle", id);
    if (k < 0) return FSI_ERROR_ARGUMENT;
    fsi__obstacles_remove(&im->obstacles, k);
    im->touches = 0;
    return FSI_OK;
}

FSI_API fsi_status fsi_elastic_teleport_obstacle(fsi_elastic *s, int id)
{
    fsi__el_impl *im = fsi__el_of(s);
    int k;
    if (!im) return FSI_ERROR_COOKIE;
    k = fsi__obstacles_find(&im->obstacles, "fsi_elastic_teleport_obstacle", id);
    if (k < 0) return FSI_ERROR_ARGUMENT;
    fsi__obstacle_set(&im->obstacles, fsi__obstacle_at(&im->obstacles, k));
    return FSI_OK;
}

FSI_API fsi_status fsi_elastic_obstacle_reaction(const fsi_elastic *s, int id, fsi_vec3 *force, fsi_vec3 *torque)
{
    const fsi__el_impl *im = fsi__el_of(s);
    const fsi__el_solid *o = fsi__el_find_solid(s, id);
    const fsi__obstacle *w;
    int k;
    if (force) *force = fsi_v3(0, 0, 0);
    if (torque) *torque = fsi_v3(0, 0, 0);
    if (!im) return FSI_ERROR_COOKIE;
    if (o) {
        if (force) *force = o->force;
        if (torque) *torque = o->torque;
        return FSI_OK;
    }
    k = fsi__obstacles_find(&im->obstacles, "fsi_elastic_obstacle_reaction", id);
    if (k < 0) return FSI_ERROR_ARGUMENT;
    w = fsi__obstacle_at(&im->obstacles, k);
    if (force) *force = w->force;
    if (torque) *torque = w->torque;
    return FSI_OK;
}

FSI__COLD_END

/* ---- >>skins implementation -----------------------------------------------------------------------------------------

   The corners of the element that contains a vertex of the skin are its nodes. A node has, for each handle with a
   weight there or at a neighbour, the weight w and the mean of its gradient over the elements around it, in float: 16
   bytes. With the map x -> Q_h (x, 1) of handle h, and y_h = Q_h (X, 1) for the rest position X of the node:

      x = sum_h w_h y_h,   F = sum_h w_h L_h + y_h grad w_h^T,   L_h the linear part of Q_h.

   In a full body each vertex counts as a handle, with its position as y and L = 0. A vertex of the skin interpolates x
   and cof(F) of its nodes, n = cof(F) n0 / |.|, so that normals are continuous. */

typedef struct fsi__el_skin {
    fsi_elastic_skin pub;
    int normals, map_count, nodes, reduced, dim;
    int *node;                    /* vertex of the body */
    int *first, *map;             /* entries of a node; handle, or vertex of the body */
    float *entry;                 /* 4 each: w, grad w */
    double *record;               /* 12 each: three rows of (cof F, x) */
    int *corner;                  /* 4 nodes of each vertex */
    float *bary, *normal;         /* 4 and 3 of each vertex */
    double *maps;                 /* 16 each: three columns of the linear part and the shift, four numbers each */
    fsi_vec3 *out_x, *out_n;      /* of the running update */
    fsi__arena memory;
} fsi__el_skin;

static fsi__el_skin *fsi__el_skin_of(fsi_elastic_skin *skin)
{
    return skin && skin->cookie == FSI__COOKIE('k', fsi_elastic_skin) ? (fsi__el_skin *)skin->impl : NULL;
}

/* Handles of a vertex of the body: *begin .. *end - 1 of its weights. Of a full body: the vertex itself, weight 1. */
static int fsi__el_skin_handle(const fsi__el_body *b, int v, int i, double *w)
{
    *w = b->reduced ? b->handles.weight[i] : 1;
    return b->reduced ? b->handles.handle[i] : v;
}
static int fsi__el_skin_handles(const fsi__el_body *b, int v, int *begin)
{
    *begin = b->reduced ? b->handles.first[v] : 0;
    return b->reduced ? b->handles.first[v + 1] : 1;
}

/* Scratch memory of fsi__el_skin_fill. */
typedef struct fsi__el_skin_plan {
    int *node_of;             /* of the body's vertices, -1: none */
    int *around, *list;       /* elements around node n: list[around[n]] .. list[around[n + 1] - 1] */
    double *sum;              /* 4 for each map */
    int *touched, count;      /* maps whose sum is not 0 */
    unsigned char *used;
    fsi__arena memory;
} fsi__el_skin_plan;

FSI__COLD_BEGIN

static void fsi__el_skin_plan_layout(fsi__el_skin_plan *p, const fsi__el_skin *k, const fsi__el_shape *s)
{
    p->memory.used = 0;
    p->node_of = (int *)fsi__take(&p->memory, (size_t)s->vertex_count, sizeof(int));
    p->around = (int *)fsi__take(&p->memory, (size_t)s->vertex_count + 1, sizeof(int));
    p->list = (int *)fsi__take(&p->memory, (size_t)(s->dim + 1) * (size_t)s->element_count, sizeof(int));
    p->sum = (double *)fsi__take(&p->memory, 4 * (size_t)k->map_count, sizeof(double));
    p->touched = (int *)fsi__take(&p->memory, (size_t)k->map_count, sizeof(int));
    p->used = (unsigned char *)fsi__take(&p->memory, (size_t)k->map_count, 1);
}

static void fsi__el_skin_layout(fsi__el_skin *k, size_t count, size_t nodes, size_t entries)
{
    k->memory.used = 0;
    k->corner = (int *)fsi__take(&k->memory, 4 * count, sizeof(int));
    k->bary = (float *)fsi__take(&k->memory, 4 * count, sizeof(float));
    k->normal = k->normals ? (float *)fsi__take(&k->memory, 3 * count, sizeof(float)) : NULL;
    k->maps = (double *)fsi__take(&k->memory, 16 * (size_t)k->map_count, sizeof(double));
    k->node = (int *)fsi__take(&k->memory, nodes, sizeof(int));
    k->first = (int *)fsi__take(&k->memory, nodes + 1, sizeof(int));
    k->record = (double *)fsi__take(&k->memory, 12 * nodes, sizeof(double));
    k->map = (int *)fsi__take(&k->memory, entries, sizeof(int));
    k->entry = (float *)fsi__take(&k->memory, 4 * entries, sizeof(float));
}

/* Nodes in the order in which vertices of the skin need them, and the elements around each. corner: vertices of the
   body, which become nodes. */
static void fsi__el_skin_find_nodes(fsi__el_skin_plan *p, fsi__el_skin *k, const fsi__el_shape *s, int *corner,
                                    int count)
{
    const int corners = s->dim + 1;
    int v, i, n;
    for (v = 0; v < s->vertex_count; v++) p->node_of[v] = -1;
    for (i = 0, k->nodes = 0; i < 4 * count; i++) {
        if (p->node_of[corner[i]] < 0) p->node_of[corner[i]] = k->nodes++;
        corner[i] = p->node_of[corner[i]];
    }
    memset(p->around, 0, ((size_t)k->nodes + 1) * sizeof(int));
    for (i = 0; i < corners * s->element_count; i++)
        if (p->node_of[s->element[i]] >= 0) p->around[p->node_of[s->element[i]] + 1]++;
    for (n = 0; n < k->nodes; n++) p->around[n + 1] += p->around[n];
    for (i = 0; i < corners * s->element_count; i++)
        if (p->node_of[s->element[i]] >= 0) p->list[p->around[p->node_of[s->element[i]]]++] = i / corners;
    for (n = k->nodes; n > 0; n--) p->around[n] = p->around[n - 1];
    p->around[0] = 0;
}

/* Weights and mean gradients of vertex v, node n: p->sum and p->touched. */
static void fsi__el_skin_sum(fsi__el_skin_plan *p, const fsi__el_body *b, int v, int n)
{
    const fsi__el_shape *s = &b->shape;
    double volume = 0, w;
    fsi__d3 grad[4];
    int k, c, i, end, at;

    /* Volume of the elements around the node. */
    for (k = p->around[n]; k < p->around[n + 1]; k++) volume += fsi__el_gradients(s, p->list[k], grad);

    /* Weight of each map at v, and the mean over the elements of the gradient of its weight, by volume. */
    for (k = p->around[n], p->count = 0; k < p->around[n + 1]; k++) {
        const double share = fsi__el_gradients(s, p->list[k], grad) / volume;
        for (c = 0; c <= s->dim; c++) {
            const int u = fsi__el_corners(s, p->list[k])[c];
            for (end = fsi__el_skin_handles(b, u, &i); i < end; i++) {
                const int h = fsi__el_skin_handle(b, u, i, &w);
                double *to = p->sum + 4 * (size_t)h;
                if (!p->used[h]) {
                    p->used[h] = 1;
                    p->touched[p->count++] = h;
                    memset(to, 0, 4 * sizeof(double));
                }
                if (u == v) to[0] = w;
                for (at = 0; at < 3; at++) to[1 + at] += share * w * fsi__d3_axis(grad[c], at);
            }
        }
    }
    for (i = 0; i < p->count; i++) p->used[p->touched[i]] = 0;
}

static fsi_status fsi__el_skin_memory(fsi_elastic *s, const char *fn, int count)
{
    return fsi__fail(s->context, FSI_ERROR_MEMORY, fn, -1, count, "no memory for a skin of %d vertices", count);
}

/* Locates the vertices, finds nodes and their entries. plan: of the size of its layout. */
static fsi_status fsi__el_skin_fill(fsi__el_skin *k, fsi__el_skin_plan *p, fsi_elastic *s, const fsi__el_body *b,
    const char *fn, const fsi_vec3 *rest, const fsi_vec3 *normals, int count)
{
    fsi__arena located = { NULL, 0, 0 };
    int *corner = NULL, v, n, i, c, pass;
    float *bary = NULL;
    double found[4];
    size_t entries = 0;
    for (pass = 0; pass < 2; pass++) {
        corner = (int *)fsi__take(&located, 4 * (size_t)count, sizeof(int));
        bary = (float *)fsi__take(&located, 4 * (size_t)count, sizeof(float));
        if (pass == 0 && !fsi__arena_reserve(s->context, &located, located.used))
            return fsi__el_skin_memory(s, fn, count);
    }

    /* The element that contains each vertex, its corners and barycentric weights. */
    for (v = 0; v < count; v++) {
        const int *e = fsi__el_corners(&b->shape, fsi__el_locate(&b->shape, fsi__d3_of(rest[v]), found));
        for (i = 0; i < 4; i++) {
            corner[4 * v + i] = e[i <= b->dim ? i : 0];
            bary[4 * v + i] = i <= b->dim ? (float)found[i] : 0;
        }
    }
    fsi__el_skin_find_nodes(p, k, &b->shape, corner, count);

    /* Entries are counted first. */
    for (v = 0; v < b->shape.vertex_count; v++) if (p->node_of[v] >= 0) {
        fsi__el_skin_sum(p, b, v, p->node_of[v]);
        entries += (size_t)p->count;
    }
    fsi__el_skin_layout(k, (size_t)count, (size_t)k->nodes, entries);
    if (entries > 500000000u || !fsi__arena_reserve(s->context, &k->memory, k->memory.used)) {
        fsi__arena_free(s->context, &located);
        return fsi__el_skin_memory(s, fn, count);
    }
    fsi__el_skin_layout(k, (size_t)count, (size_t)k->nodes, entries);

    /* The second time they are written, node by node. */
    for (v = 0; v < b->shape.vertex_count; v++) if (p->node_of[v] >= 0) k->node[p->node_of[v]] = v;
    for (n = 0, entries = 0; n < k->nodes; n++) {
        fsi__el_skin_sum(p, b, k->node[n], n);
        k->first[n] = (int)entries;
        for (i = 0; i < p->count; i++, entries++) {
            k->map[entries] = p->touched[i];
            for (c = 0; c < 4; c++)
                k->entry[4 * entries + (size_t)c] = (float)p->sum[4 * (size_t)p->touched[i] + (size_t)c];
        }
    }
    k->first[k->nodes] = (int)entries;

    /* Corners, weights and normals of the vertices. */
    memcpy(k->corner, corner, 4 * (size_t)count * sizeof(int));
    memcpy(k->bary, bary, 4 * (size_t)count * sizeof(float));
    for (v = 0; v < count && normals; v++)
        for (i = 0; i < 3; i++) k->normal[3 * (size_t)v + (size_t)i] = (float)fsi__axis(normals[v], i);
    fsi__arena_free(s->context, &located);
    k->pub.bytes = entries * 20 + (size_t)k->nodes * (8 + 2 * 96)
        + (size_t)count * (32 + (normals ? 12u : 0u) + sizeof(fsi_vec3) * (normals ? 2u : 1u));
    return FSI_OK;
}

FSI_API fsi_status fsi_elastic_skin_create(fsi_elastic_skin **out, fsi_elastic *s, int body, const fsi_vec3 *rest,
    const fsi_vec3 *normals, int count)
{
    static const char fn[] = "fsi_elastic_skin_create";
    fsi__el_skin_plan plan;
    fsi__el_member *m;
    fsi__el_skin *k;
    fsi_status status;
    int v;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;

    /* Checks. */
    FSI__TRY(fsi__el_find(s, fn, body, &m));
    if (!rest || count < 1 || count > 500000000)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, count, "a skin needs vertices: %d are given", count);
    for (v = 0; v < count; v++) if (!fsi_v3_is_finite(rest[v]) || (normals && !fsi_v3_is_finite(normals[v])))
        return fsi__fail(s->context, FSI_ERROR_NAN, fn, v, 0, "vertex %d is not finite", v);

    /* The skin without its arrays. */
    k = (fsi__el_skin *)fsi__alloc(s->context, 1, sizeof *k);
    if (!k) return fsi__el_skin_memory(s, fn, count);
    k->pub.cookie = FSI__COOKIE('k', fsi_elastic_skin);
    k->pub.context = s->context;
    k->pub.body = body;
    k->pub.count = count;
    k->pub.impl = k;
    k->normals = normals != NULL;
    k->reduced = m->body.reduced;
    k->dim = m->body.dim;
    k->map_count = m->body.reduced ? m->body.handles.count : m->body.dofs;

    /* Nodes and entries, with a plan as scratch. */
    memset(&plan, 0, sizeof plan);
    fsi__el_skin_plan_layout(&plan, k, &m->body.shape);
    if (fsi__arena_reserve(s->context, &plan.memory, plan.memory.used)) {
        fsi__el_skin_plan_layout(&plan, k, &m->body.shape);
        memset(plan.used, 0, (size_t)k->map_count);
        status = fsi__el_skin_fill(k, &plan, s, &m->body, fn, rest, normals, count);
        fsi__arena_free(s->context, &plan.memory);
    } else status = fsi__el_skin_memory(s, fn, count);
    if (status == FSI_OK) *out = &k->pub;
    else fsi__free(s->context, k, 1, sizeof *k);
    return status;
}

FSI_API void fsi_elastic_skin_destroy(fsi_elastic_skin *skin)
{
    fsi__el_skin *k = fsi__el_skin_of(skin);
    fsi_context *context;
    if (!k) return;
    context = skin->context;
    fsi__arena_free(context, &k->memory);
    skin->cookie = 0;
    fsi__free(context, k, 1, sizeof *k);
}

FSI__COLD_END

/* Maps of the handles from rest coordinates: columns and shift. */
static void fsi__el_skin_map(fsi__el_skin *k, const fsi__el_body *b)
{
    int h, a, c;
    for (h = 0; h < k->map_count; h++) {
        double *to = k->maps + 16 * (size_t)h;
        memset(to, 0, 16 * sizeof(double));
        if (!k->reduced) { for (c = 0; c < 3; c++) to[12 + c] = b->q[3 * h + c]; continue; }
        for (a = 0; a <= k->dim; a++) {
            const double *q = b->q + 3 * ((k->dim + 1) * h + a),
                         at = a < k->dim ? -b->shape.x[3 * b->handles.center[h] + a] : 1;
            for (c = 0; c < 3; c++) {
                if (a < k->dim) to[4 * a + c] = q[c];
                to[12 + c] += at * q[c];
            }
        }
    }
}

/* Records of the nodes begin .. end - 1; x: rest coordinates of the body's vertices. */
typedef struct fsi__el_skin_pass { fsi__el_skin *k; const double *x; } fsi__el_skin_pass;
static void fsi__el_skin_node_range(void *arg, int chunk, int begin, int end)
{
    const fsi__el_skin_pass *pass = (const fsi__el_skin_pass *)arg;
    fsi__el_skin *k = pass->k;
    int n, i, a, c;
    (void)chunk;
    for (n = begin; n < end; n++) {
        const double *x = pass->x + 3 * (size_t)k->node[n];
        double *to = k->record + 12 * (size_t)n, column[16] = { 0 };
        fsi__four sum[4];
        fsi__d3 f[3];
        memset(sum, 0, sizeof sum);

        /* x = sum w y, F = sum (w L + y grad w^T) over the entries, y = Q (X, 1). */
        for (i = k->first[n]; i < k->first[n + 1]; i++) {
            const float *e = k->entry + 4 * (size_t)i;
            const double *q = k->maps + 16 * (size_t)k->map[i];
            fsi__four y;
            memset(&y, 0, sizeof y);
            fsi__four_madd(&y, q + 12, 1);
            for (a = 0; a < 3; a++) fsi__four_madd(&y, q + 4 * a, x[a]);
            for (a = 0; a < 3; a++) {
                fsi__four_madd(&sum[a], q + 4 * a, (double)e[0]);
                fsi__four_madd(&sum[a], (const double *)(const void *)&y, (double)e[1 + a]);
            }
            fsi__four_madd(&sum[3], (const double *)(const void *)&y, (double)e[0]);
        }

        /* cof F by the cross products of F's columns; the record has rows (cof F, x). */
        for (a = 0; a < 4; a++) fsi__four_add(column + 4 * a, &sum[a]);
        for (a = 0; a < 3; a++) f[a] = k->dim == 2 && a == 2 ? fsi__d3_make(0, 0, 1) : fsi__d3_at(column + 4 * a);
        for (a = 0; a < 3; a++) {
            const fsi__d3 cofactor = fsi__d3_cross(f[(a + 1) % 3], f[(a + 2) % 3]);
            for (c = 0; c < 3; c++) to[4 * c + a] = fsi__d3_axis(cofactor, c);
        }
        for (c = 0; c < 3; c++) to[4 * c + 3] = column[12 + c];
    }
}

/* Positions and normals of the vertices begin .. end - 1; n0 where cof(F) n0 is 0. */
static void fsi__el_skin_range(void *arg, int chunk, int begin, int end)
{
    fsi__el_skin *k = (fsi__el_skin *)arg;
    int v, i, c;
    (void)chunk;
    for (v = begin; v < end; v++) {
        const int *corner = k->corner + 4 * (size_t)v;
        const float *bary = k->bary + 4 * (size_t)v;
        fsi__four sum[3];
        double row[12] = { 0 };

        /* The mean of the corners' records, with barycentric weights. */
        memset(sum, 0, sizeof sum);
        for (i = 0; i < 4; i++) for (c = 0; c < 3; c++)
            fsi__four_madd(&sum[c], k->record + 12 * (size_t)corner[i] + 4 * c, (double)bary[i]);
        for (c = 0; c < 3; c++) fsi__four_add(row + 4 * c, &sum[c]);
        if (k->out_x) k->out_x[v] = fsi_v3((fsi_real)row[3], (fsi_real)row[7], (fsi_real)row[11]);

        /* Position, and n = cof(F) n0 / |.|. */
        if (k->out_n) {
            const float *n0 = k->normal + 3 * (size_t)v;
            const double a = (double)n0[0], b = (double)n0[1], d = (double)n0[2];
            const fsi__d3 n = fsi__d3_make(row[0] * a + row[1] * b + row[2] * d, row[4] * a + row[5] * b + row[6] * d,
                                           row[8] * a + row[9] * b + row[10] * d);
            const double size = fsi__d3_norm(n);
            k->out_n[v] = fsi__d3_real(size > 0 ? fsi__d3_over(n, size) : fsi__d3_make(a, b, d));
        }
    }
}

static fsi_status fsi__el_skin_ready(fsi_elastic_skin *skin, const fsi_elastic *s, const char *fn, fsi__el_skin **k,
                                     fsi__el_member **m)
{
    *k = fsi__el_skin_of(skin);
    if (!*k) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__el_find(s, fn, skin->body, m));
    if ((*k)->map_count == ((*m)->body.reduced ? (*m)->body.handles.count : (*m)->body.dofs)) return FSI_OK;
    return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, skin->body, 0, "the skin is not of body %d of this simulator",
                     skin->body);
}

FSI_API fsi_status fsi_elastic_skin_update(fsi_elastic_skin *skin, const fsi_elastic *s, fsi_vec3 *positions,
    fsi_vec3 *normals)
{
    fsi__el_skin *k;
    fsi__el_member *m;
    fsi__el_skin_pass pass;
    FSI__TRY(fsi__el_skin_ready(skin, s, "fsi_elastic_skin_update", &k, &m));
    if (normals && !k->normals)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, "fsi_elastic_skin_update", -1, 0,
                         "the skin was made without normals");
    fsi__el_skin_map(k, &m->body);
    pass.k = k;
    pass.x = m->body.shape.x;
    fsi__parallel_work(s->context, k->nodes, 256, 8.0 * (double)k->first[k->nodes], fsi__el_skin_node_range, &pass);
    k->out_x = positions;
    k->out_n = normals;
    fsi__parallel_work(s->context, skin->count, 1024, 20.0 * skin->count, fsi__el_skin_range, k);
    return FSI_OK;
}

FSI_API fsi_status fsi_elastic_skin_push(fsi_elastic_skin *skin, fsi_elastic *s, const fsi_vec3 *forces)
{
    static const char fn[] = "fsi_elastic_skin_push";
    fsi__el_skin *k;
    fsi__el_member *m;
    int v, i, a, n;
    FSI__TRY(fsi__el_skin_ready(skin, s, fn, &k, &m));
    if (!forces) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "forces is NULL");
    for (v = 0; v < skin->count; v++) if (!fsi_v3_is_finite(forces[v]))
        return fsi__fail(s->context, FSI_ERROR_NAN, fn, v, 0, "the force on vertex %d is not finite", v);

    /* Forces on the nodes, in their records. */
    memset(k->record, 0, 12 * (size_t)k->nodes * sizeof(double));
    for (v = 0; v < skin->count; v++) for (i = 0; i < 4; i++) {
        double *to = k->record + 12 * (size_t)k->corner[4 * (size_t)v + (size_t)i];
        fsi__d3_put(to, fsi__d3_madd(fsi__d3_at(to), (double)k->bary[4 * (size_t)v + (size_t)i],
                                     fsi__d3_of(forces[v])));
    }

    /* Each node's force is distributed to the unknowns of its maps: U^T f. */
    for (n = 0; n < k->nodes; n++) for (i = k->first[n]; i < k->first[n + 1]; i++) {
        const fsi__d3 f = fsi__d3_scale(fsi__d3_at(k->record + 12 * (size_t)n), (double)k->entry[4 * (size_t)i]);
        const int h = k->map[i], corners = k->dim + 1;
        for (a = k->reduced ? 0 : k->dim; a <= k->dim; a++) {
            double *to = m->body.force + 3 * (size_t)(k->reduced ? corners * h + a : h);
            const double u = a < k->dim ? m->body.shape.x[3 * (size_t)k->node[n] + (size_t)a] -
                                 m->body.shape.x[3 * (size_t)m->body.handles.center[h] + (size_t)a] : 1;
            fsi__d3_put(to, fsi__d3_madd(fsi__d3_at(to), u, f));
        }
    }
    return FSI_OK;
}

FSI__COLD_BEGIN

/* ---- >>state implementation ----------------------------------------------------------------------------------- */

/* The numbers of a state, in order: number of bodies; time; bodies with their unknowns; contact forces. `load`: they
   are read into im->kept and im->touched, not into the simulator. */
typedef struct fsi__el_state { fsi__el_impl *im; int load, touches; double time, (*one)[2]; } fsi__el_state;

static void fsi__el_stream(fsi__stream *st, void *arg)
{
    fsi__el_state *x = (fsi__el_state *)arg;
    fsi__el_impl *im = x->im;
    int32_t bodies = im->members, touches = x->touches;
    size_t at = 0;
    int b;

    /* Number of bodies, and time. */
    fsi__bytes(st, &bodies, sizeof bodies);
    if (bodies != im->members) st->ok = 0;
    fsi__bytes(st, &x->time, sizeof x->time);

    /* Each body: number of unknowns, single numbers, vectors. */
    for (b = 0; b < im->members && st->ok; b++) {
        fsi__el_body *y = &im->member[b].body;
        int32_t dofs = y->dofs;
        double *from[FSI__EL_VECTORS];
        const size_t n = fsi__el_vectors(y, from);
        int k;
        fsi__bytes(st, &dofs, sizeof dofs);
        if (dofs != y->dofs) st->ok = 0;
        for (k = 0; k < 2; k++) fsi__bytes(st, x->load ? &x->one[b][k] : fsi__el_single(y, k), sizeof(double));
        for (k = 0; k < FSI__EL_VECTORS && st->ok; k++) {
            fsi__bytes(st, x->load ? im->kept + at : from[k], n * sizeof(double));
            at += n;
        }
    }

    /* Contact forces; a load reads only their number here, as im->touched needs room first. */
    fsi__bytes(st, &touches, sizeof touches);
    if (!x->load) { if (touches > 0) fsi__bytes(st, im->touch, (size_t)touches * sizeof *im->touch); }
    else {
        x->touches = touches;
        if (touches < 0 || (size_t)touches * sizeof *im->touch != st->capacity - st->used) st->ok = 0;
    }
}

static fsi__el_state fsi__el_state_of(const fsi_elastic *s)
{
    fsi__el_state x;
    memset(&x, 0, sizeof x);
    x.im = fsi__el_of(s);
    x.touches = x.im->touches;
    x.time = s->time;
    return x;
}

FSI_API fsi_status fsi_elastic_save(const fsi_elastic *s, void *buffer, size_t capacity, size_t *size)
{
    fsi__el_state x;
    if (!fsi__el_of(s)) return FSI_ERROR_COOKIE;
    x = fsi__el_state_of(s);
    return fsi__save(s->context, s->cookie, fsi__el_stream, &x, buffer, capacity, size, "fsi_elastic_save");
}

FSI_API uint64_t fsi_elastic_hash(const fsi_elastic *s)
{
    fsi__el_state x;
    if (!fsi__el_of(s)) return 0;
    x = fsi__el_state_of(s);
    return fsi__state_hash(fsi__el_stream, &x);
}

/* Fails where the numbers read are not finite, too large, or refer to bodies or points that do not exist. */
static fsi_status fsi__el_judge_state(fsi__el_impl *im, const fsi__el_state *x, const char *fn)
{
    fsi_context *context = im->s->context;
    size_t at = 0, n, k;
    int b;
    if (!fsi_is_finite(x->time)) return fsi__fail(context, FSI_ERROR_FORMAT, fn, -1, 0, "the time is not finite");

    /* Unknowns, velocities and lengths of substeps. */
    for (b = 0; b < im->members; b++) {
        n = FSI__EL_VECTORS * 3 * (size_t)im->member[b].body.dofs;
        for (k = 0; k < n; k++) if (!(fabs(im->kept[at + k])
            < (k < n / FSI__EL_VECTORS * (FSI__EL_VECTORS - 1) ? FSI__EL_FARTHEST : FSI__EL_STRONGEST)))
            return fsi__fail(context, FSI_ERROR_FORMAT, fn, b, im->kept[at + k], "number %d of body %d is %g", (int)k,
                im->member[b].id, im->kept[at + k]);
        if (!(x->one[b][0] >= 0 && x->one[b][0] <= 1000))
            return fsi__fail(context, FSI_ERROR_FORMAT, fn, b, x->one[b][0], "the last step of body %d took %g s",
                             im->member[b].id, x->one[b][0]);
        if (!(x->one[b][1] >= FSI__EL_HELD && x->one[b][1] <= 1))
            return fsi__fail(context, FSI_ERROR_FORMAT, fn, b, x->one[b][1], "body %d yields by %g, not in 0 to 1",
                             im->member[b].id, x->one[b][1]);
        at += n;
    }

    /* Indices and forces of the contacts. */
    for (b = 0; b < x->touches; b++) {
        const fsi__el_touch *t = &im->touched[b];
        if (t->body < 0 || t->body >= im->members || t->point < 0 || t->point >= im->member[t->body].points ||
            t->kind < FSI__EL_SHAPE || t->kind > FSI__EL_BODY || t->other < 0 ||
            (t->kind == FSI__EL_BODY && t->other >= im->members))
            return fsi__fail(context, FSI_ERROR_FORMAT, fn, b, 0, "there is no body or point of contact %d", b);
        if (!(fabs(t->force[0]) < FSI__EL_STRONGEST && fabs(t->force[1]) < FSI__EL_STRONGEST &&
              fabs(t->force[2]) < FSI__EL_STRONGEST))
            return fsi__fail(context, FSI_ERROR_FORMAT, fn, b, 0,
                             "the force of contact %d is not a number that a step leaves", b);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_elastic_load(fsi_elastic *s, const void *buffer, size_t size)
{
    static const char fn[] = "fsi_elastic_load";
    fsi__el_impl *im = fsi__el_of(s);
    fsi__el_state x;
    fsi__stream st;
    fsi__el_touch *swap;
    fsi_status status;
    size_t at = 0;
    int b, k, room;

    /* Everything is read into im->kept, im->touched and x, then checked. */
    if (!im) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__load_begin(s->context, s->cookie, buffer, size, &st, fn));
    im->fn = fn;
    FSI__TRY(fsi__el_keep(im));
    x = fsi__el_state_of(s);
    x.load = 1;
    x.one = (double (*)[2])fsi__alloc(s->context, (size_t)im->members, sizeof *x.one);
    if (!x.one)
        return fsi__fail(s->context, FSI_ERROR_MEMORY, fn, -1, im->members, "no memory to load %d bodies", im->members);
    fsi__el_stream(&st, &x);
    status = st.ok ? fsi__room_in(s->context, &im->touched, sizeof *im->touched, 0, &im->touched_room, x.touches, fn)
        : fsi__fail(s->context, FSI_ERROR_FORMAT, fn, -1, 0, "the state is not of a simulator made like this one");
    if (status == FSI_OK && x.touches > 0) fsi__bytes(&st, im->touched, (size_t)x.touches * sizeof *im->touched);
    if (status == FSI_OK) status = fsi__el_judge_state(im, &x, fn);

    /* The unknowns become those of the bodies; nothing can fail from here on. */
    for (b = 0; b < im->members && status == FSI_OK; b++) {
        double *to[FSI__EL_VECTORS];
        const size_t n = fsi__el_vectors(&im->member[b].body, to);
        for (k = 0; k < FSI__EL_VECTORS; k++, at += n) memcpy(to[k], im->kept + at, n * sizeof(double));
        for (k = 0; k < 2; k++) *fsi__el_single(&im->member[b].body, k) = x.one[b][k];
        im->member[b].mesh_stale = 1;
    }
    fsi__free(s->context, x.one, (size_t)im->members, sizeof *x.one);
    if (status != FSI_OK) return status;

    /* The contact forces read replace the present ones. */
    swap = im->touch; room = im->touch_room;
    im->touch = im->touched; im->touch_room = im->touched_room;
    im->touched = swap; im->touched_room = room;
    im->touches = x.touches;
    s->time = x.time;

    /* Obstacles, shapes and targets are at rest where they are. */
    for (k = 0; k < im->obstacles.count; k++) fsi__obstacle_set(&im->obstacles, fsi__obstacle_at(&im->obstacles, k));
    for (k = 0; k < im->solids; k++) im->solid[k].from = im->solid[k].desc.point;
    for (k = 0; k < im->attachments; k++) memcpy(im->attachment[k].from, im->attachment[k].to, 3 * sizeof(double));
    for (b = 0; b < im->members; b++) fsi__el_show(im, b);
    fsi__el_pull(im);
    for (k = 0; k < im->attachments; k++) memcpy(im->attachment[k].force, im->attachment[k].found, 3 * sizeof(double));
    return FSI_OK;
}

FSI_API void fsi_elastic_debug_draw(fsi_elastic *s, const fsi_debug_draw *draw)
{
    fsi__el_impl *im = fsi__el_of(s);
    int b, f, k;
    if (!im || !draw) return;

    /* Edges of the surfaces. */
    for (b = 0; b < im->members; b++) {
        const fsi_mesh *m = fsi_elastic_surface(s, im->member[b].id);
        if (!m) continue;
        for (f = 0; f < m->face_count; f++) for (k = 0; k < m->corners; k++) if (draw->line)
                    draw->line(draw->user, m->vertices[m->faces[m->corners * f + k]],
                               m->vertices[m->faces[m->corners * f + (k + 1) % m->corners]], 0x60a0e0);
    }

    /* Attachments, from their points to their targets. */
    for (k = 0; k < im->attachments && draw->line; k++) {
        const fsi__el_attachment *a = &im->attachment[k];
        const fsi__el_body *y = &im->member[a->body].body;
        draw->line(draw->user, fsi__d3_real(fsi__el_point(&y->anchor, y->spring[a->spring].row, y->q)),
                   fsi__d3_real(fsi__d3_at(a->to)), 0xe04040);
    }

    /* Contact forces; one of the body's weight is a tenth of its size long. */
    for (k = 0; k < im->touches && draw->line; k++) {
        const fsi__el_touch *t = &im->touch[k];
        const fsi__el_member *m = &im->member[t->body];
        const fsi__d3 x = fsi__el_point(&m->rows, m->mesh->vertex_count + t->point, m->body.q);
        draw->line(
            draw->user, fsi__d3_real(x),
            fsi__d3_real(fsi__d3_madd(x, 0.1 * m->body.shape.size / (9.81 * m->body.mass), fsi__d3_at(t->force))),
            0x40c040);
    }
    fsi__obstacles_draw(&im->obstacles, draw);
}

/* ---- >>simulator made ----------------------------------------------------------------------------------------- */

FSI_API fsi_elastic_desc fsi_elastic_default_desc(void)
{
    fsi_elastic_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('l', fsi_elastic_desc);
    d.dim = 3;
    d.gravity = fsi_v3(0, 0, (fsi_real)-9.81);
    d.time_order = 2;
    d.substeps = 1;
    d.iterations = 20;
    d.tolerance = (fsi_real)1e-7;
    d.acceleration = 5;
    d.contact_sweeps = 20;
    return d;
}

static fsi_status fsi__el_check_desc(fsi_context *context, const char *fn, const fsi_elastic_desc *desc)
{
    static const fsi__field rows[] = {FSI__FIELD(fsi_elastic_desc, dim, FSI__INT, 2, 3, 0),
                                      FSI__FINITE(fsi_elastic_desc, gravity),
                                      FSI__FIELD(fsi_elastic_desc, time_order, FSI__INT, 1, 2, 0),
                                      FSI__FIELD(fsi_elastic_desc, substeps, FSI__INT, 1, 1000, 0),
                                      FSI__FIELD(fsi_elastic_desc, iterations, FSI__INT, 1, 10000, 0),
                                      FSI__FIELD(fsi_elastic_desc, tolerance, FSI__REAL, 0, 0.1, 0),
                                      FSI__FIELD(fsi_elastic_desc, acceleration, FSI__INT, 0, 8, 0),
                                      FSI__FIELD(fsi_elastic_desc, contact_sweeps, FSI__INT, 1, 1000, 0)};
    fsi__where at = { fn, "desc.", -1, 3 };
    FSI__TRY(fsi__check_filled(context, fn, desc, FSI__COOKIE('l', fsi_elastic_desc), "fsi_elastic_default_desc"));
    at.dim = desc->dim;
    return FSI__CHECK_TABLE(context, &at, desc, rows);
}

FSI_API fsi_status fsi_elastic_create(fsi_elastic **out, const fsi_elastic_desc *desc)
{
    static const char fn[] = "fsi_elastic_create";
    fsi_context *context;
    fsi_elastic *s;
    fsi__el_impl *im;

    /* Checks. */
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!desc) return FSI_ERROR_ARGUMENT;
    if (desc->cookie != FSI__COOKIE('l', fsi_elastic_desc)) return FSI_ERROR_COOKIE;
    context = desc->context;
    if (!fsi__is_context(context)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__el_check_desc(context, fn, desc));

    /* Memory. */
    s = (fsi_elastic *)fsi__alloc(context, 1, sizeof *s);
    im = (fsi__el_impl *)fsi__alloc(context, 1, sizeof *im);
    if (!s || !im) {
        fsi__free(context, s, 1, sizeof *s);
        fsi__free(context, im, 1, sizeof *im);
        return fsi__fail(context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for a simulator");
    }

    /* Fields, and an empty list of obstacles. */
    s->cookie = FSI__COOKIE('E', fsi_elastic);
    im->own = fsi_default_context();
    s->context = context ? context : &im->own;
    s->desc = *desc;
    s->desc.context = s->context;
    s->impl = im;
    im->s = s;
    fsi__obstacles_start(&im->obstacles, s->context, desc->dim, sizeof(fsi__el_wall));
    *out = s;
    return FSI_OK;
}

FSI_API void fsi_elastic_destroy(fsi_elastic *s)
{
    fsi__el_impl *im = fsi__el_of(s);
    fsi_context *context, own;
    int k;
    if (!im) return;

    /* A context of the simulator's own is copied, as im is freed before its last use. */
    own = im->own;
    context = s->context == &im->own ? &own : s->context;
    s->context = context;
    im->obstacles.context = context;
    for (k = 0; k < im->members; k++) {
        im->member[k].body.context = context;
        if (im->member[k].mesh) im->member[k].mesh->context = context;
        fsi__el_free_member(&im->member[k], context);
    }

    /* Arrays, obstacles, and the simulator itself. */
    fsi__free(context, im->member, (size_t)im->member_room, sizeof *im->member);
    fsi__free(context, im->shown, (size_t)im->member_room, sizeof *im->shown);
    fsi__free(context, im->attachment, (size_t)im->attachment_room, sizeof *im->attachment);
    fsi__free(context, im->solid, (size_t)im->solid_room, sizeof *im->solid);
    fsi__free(context, im->contact, (size_t)im->contact_room, sizeof *im->contact);
    fsi__free(context, im->touch, (size_t)im->touch_room, sizeof *im->touch);
    fsi__free(context, im->touched, (size_t)im->touched_room, sizeof *im->touched);
    fsi__free(context, im->kept, im->kept_room, sizeof(double));
    fsi__free(context, im->mixed, im->mixed_room, sizeof(double));
    fsi__obstacles_free(&im->obstacles);
    s->cookie = 0;
    fsi__free(context, im, 1, sizeof *im);
    fsi__free(context, s, 1, sizeof *s);
}

FSI_API fsi_status fsi_elastic_set_desc(fsi_elastic *s, const fsi_elastic_desc *desc)
{
    static const fsi__fixed fixed[] = { FSI__FIXED(fsi_elastic_desc, dim), FSI__FIXED(fsi_elastic_desc, acceleration) };
    fsi_context *context;
    if (!fsi__el_of(s)) return FSI_ERROR_COOKIE;
    context = s->context;
    FSI__TRY(fsi__el_check_desc(context, "fsi_elastic_set_desc", desc));
    FSI__TRY(FSI__CHECK_FIXED(context, "fsi_elastic_set_desc", desc, &s->desc, fixed));
    s->desc = *desc;
    s->desc.context = context;
    return FSI_OK;
}

FSI_API const fsi_error *fsi_elastic_error(const fsi_elastic *s)
{
    return fsi__error_of(fsi__el_of(s) ? s->context : NULL);
}

FSI_API fsi_real fsi_elastic_suggest_dt(const fsi_elastic *s)
{
    const fsi__el_impl *im = fsi__el_of(s);
    double least = 1000;
    int b, i;
    for (b = 0; im && b < im->members; b++) {
        const fsi__el_body *y = &im->member[b].body;
        double fastest = 0;
        for (i = 0; i < y->dofs; i++)
            if (y->one[i] > 0) fastest = fmax(fastest, fsi__d3_norm(fsi__d3_at(y->v + 3 * (size_t)i)));
        if (fastest > 0) least = fmin(least, 0.1 * y->shape.size / fastest);
    }
    return im ? (fsi_real)least : 0;
}

FSI_API fsi_status fsi_elastic_shift_origin(fsi_elastic *s, fsi_vec3 offset)
{
    static const char fn[] = "fsi_elastic_shift_origin";
    fsi__el_impl *im = fsi__el_of(s);
    const fsi__d3 by = fsi__d3_of(offset);
    int b, i, k;

    /* Checks. */
    if (!im) return FSI_ERROR_COOKIE;
    if (!fsi_v3_is_finite(offset)) return fsi__fail(s->context, FSI_ERROR_NAN, fn, -1, 0, "offset is not finite");
    if (fsi__d3_norm(by) > 1e9)
        return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, -1, fsi__d3_norm(by), "offset is %g m long, the most is 1e9",
                         fsi__d3_norm(by));

    /* Bodies: each unknown moves by one_i offset. */
    for (b = 0; b < im->members; b++) {
        fsi__el_body *y = &im->member[b].body;
        for (i = 0; i < y->dofs; i++) {
            fsi__d3_put(y->q + 3 * (size_t)i, fsi__d3_madd(fsi__d3_at(y->q + 3 * (size_t)i), y->one[i], by));
            fsi__d3_put(y->q_before + 3 * (size_t)i,
                        fsi__d3_madd(fsi__d3_at(y->q_before + 3 * (size_t)i), y->one[i], by));
        }
        im->member[b].mesh_stale = 1;
        fsi__el_show(im, b);
    }

    /* Targets, shapes and obstacles. */
    for (k = 0; k < im->attachments; k++) for (i = 0; i < 3; i++) {
        im->attachment[k].from[i] += fsi__d3_axis(by, i);
        im->attachment[k].to[i] += fsi__d3_axis(by, i);
    }
    for (k = 0; k < im->solids; k++) {
        im->solid[k].from = fsi_v3_add(im->solid[k].from, offset);
        im->solid[k].desc.point = fsi_v3_add(im->solid[k].desc.point, offset);
    }
    for (k = 0; k < im->obstacles.count; k++)
        fsi__obstacle_shift(&im->obstacles, fsi__obstacle_at(&im->obstacles, k), offset);
    return FSI_OK;
}

FSI__COLD_END
FSI__STRICT_END
#endif /* once */
#endif /* implementation */
