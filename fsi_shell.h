/* fsi_shell.h - cloth, leaves, paper, webs and rods: implicit dynamics of solids that never pass through each other
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_shell.h"
         #include "fsi_shell.h"

   A NAPKIN, HELD AT TWO CORNERS
      fsi_vec3 x[4];
      int t[6] = { 0, 1, 2,  2, 1, 3 }, i;
      fsi_context ctx = fsi_default_context();        // hooks for memory, threads, clock, messages: all optional
      fsi_shell_material silk = fsi_shell_preset(FSI_SHELL_SILK);
      fsi_shell_desc d = fsi_shell_default_desc();
      fsi_shell *s;
      for (i = 0; i < 4; i++) x[i] = fsi_v3((fsi_real)(i % 2) * 0.3f, (fsi_real)(i / 2) * 0.3f, 1);
      d.context = &ctx;
      d.vertices = x;  d.vertex_count = 4;
      d.triangles = t; d.triangle_count = 2;
      d.materials = &silk; d.material_count = 1;
      if (fsi_shell_create(&s, &d) != FSI_OK) {
          puts(ctx.error.message);                    // "triangle 1 ..."
          return 1;
      }
      s->pinned[0] = s->pinned[1] = 1;
      for (i = 0; i < 60; i++) fsi_shell_step(s, (fsi_real)(1 / 60.0));
      printf("the loose corner hangs at %g m\n", (double)s->position[3].z);
      fsi_shell_destroy(s);

   WHAT IT DOES
      Any mix of triangles (cloth, leaves, paper, rubber), segments (rods, hair, wires, webs) and points in one object:
      edges with one, two or more triangles, rods that branch, rods sewn to sheets. Membranes (St. Venant-Kirchhoff,
      orthotropic, or stable neo-Hookean), bending by hinges or by the shape operator of each triangle, rods that
      stretch, bend and twist. One implicit solve a step: Newton's method on the incremental potential with exact step
      filters (Li et al. 2020, 2021), so that nothing ever passes through anything, whatever the step. Friction, pins,
      springs, wind, meshes and bodies as obstacles. Forces of contacts, pins, springs; vertex normals.
   WHAT IT DOES NOT DO
      Plasticity, tearing, strain limiting: stretch is resisted, not forbidden. Obstacles do not collide with each
      other.
   UNITS
      SI: metres, kilograms, seconds, newtons, pascals. 2D: segments only, all per metre of depth.
   PRECISION
      Everything works in double and the state is kept in double; `position` and `velocity` are copies in fsi_real.
   MACROS YOU MAY DEFINE
      those of fsi.h and fsi_solve.h
   FIND IN HERE (search for >>)
      materials and description are in fsi_shell_model.h, search for contacts in fsi_shell_contact.h;
      >>simulator  >>obstacles  >>springs  >>looking at it, the API;
      >>stages of a step, for fsi's own headers, not for you; then the implementation, what a step needs:
      >>simulator at work  >>contacts  >>assembly  >>pattern  >>newton  >>stepping  >>obstacles in a step
      >>step; and what is done between steps: >>layout  >>obstacles implementation  >>settings and origin
      >>state implementation  >>skins implementation  >>create and destroy
*/
#ifndef FSI_SHELL_H
#define FSI_SHELL_H

#include "fsi_shell_contact.h"
#include "fsi_shell_model.h"
#include "fsi_mesh.h"
#include "fsi_order.h"

/* ---- >>simulator ----------------------------------------------------------------------------------------------- */

/* Fills every field of the description (fsi_shell_model.h); set vertices, elements and materials. */
FSI_API fsi_shell_desc fsi_shell_default_desc(void);

/* What the last successful step did. Sums over its substeps unless said otherwise. */
typedef struct fsi_shell_stats {
    int substeps, newton;         /* substeps; Newton steps, each a matrix, a factorisation and a search */
    int halvings, retreats;       /* steps halved by the line search; factorisations repeated with a shifted diagonal */
    int degraded;                 /* substeps that ended at max_newton, or ten tolerances away where rounding hides all
                                     descent: free of intersections, but not in balance */
    int analyses;                 /* patterns analysed: one at first, and when the contacts couple other vertices */
    int candidates, contacts;     /* candidate pairs, pairs within range; last substep */
    double update;                /* longest displacement of the last Newton step, over the mean edge */
    double min_gap;               /* smallest distance of two features less what they must keep, over its range; 1 when
                                     none is within range; at the end */
    double contact_stiffness;     /* kappa of the barrier over the mass of a pair [m^2/s^2] */
    /* [J] at the end; elastic: springs too; potential: -m g.x, zero at the origin */
    double kinetic_energy, elastic_energy, potential_energy, contact_energy;
    double momentum[3], angular_momentum[3]; /* of the vertices, about the origin, at the end */
    /* by the clock hook: elements and matrix; factor and solve; pairs, their energies and CCD; energies in the line
       search */
    double seconds_assembly, seconds_solve, seconds_contact, seconds_search, seconds_other;
    size_t bytes;                 /* held through its context */
    long long allocs;             /* allocations of the context so far */
} fsi_shell_stats;

/* A simulator. Read everything; write only what is marked. */
typedef struct fsi_shell {
    uint32_t cookie;
    fsi_context *context;         /* never NULL: the desc's, or one of its own */
    fsi_shell_desc desc;          /* as given, or set since; its arrays are not kept: NULL */
    int vertex_count, triangle_count, segment_count;
    const int *triangles, *segments; /* copies of the desc's */
    fsi_vec3 *position;           /* vertex_count [m]; yours to write between steps (teleport): the next step checks
                                     that nothing intersects */
    fsi_vec3 *velocity;           /* vertex_count [m/s]; yours to write */
    fsi_vec3 *force;              /* vertex_count, external force [N]; yours to write, kept from step to step */
    unsigned char *pinned;        /* vertex_count: 1: held; yours to write. Two at the end of a rod clamp it, half an
                                     edge behind the inner one; at the inner one if the segment between is far stiffer
                                     (shell.md 3) */
    fsi_vec3 *target;             /* vertex_count: where a pinned vertex is at the end of the coming step; at first, and
                                     after each step in which it was not pinned, its position; yours to write */
    fsi_real *twist;              /* segment_count: rotation of the material about the segment [rad], up to 1e8,
                                     relative to a twist-free frame that moves along; yours to write while held */
    unsigned char *twist_held;    /* segment_count: 1: twist is what you wrote; default 0 */
    const fsi_vec3 *contact_force;/* vertex_count: force of contacts (barrier) and friction on each vertex, by the shell
                                     itself and by obstacles, mean of the last step's substeps [N; 2D: N/m], world axes;
                                     without pins, springs, wind and liquid. From the last linear solve (in fsi_couple.h
                                     that for velocities): they balance the momenta of both sides to rounding. Forces
                                     within the shell sum to 0 */
    const fsi_vec3 *pin_force;    /* vertex_count: constraint force of a pinned or attached vertex, mean of the last
                                     step's substeps [N], 0 elsewhere; in fsi_couple.h without the reaction to the
                                     liquid: subtract liquid_force there */
    const fsi_real *mass;         /* vertex_count [kg] */
    double time;                  /* seconds simulated */
    fsi_real mean_edge;           /* at rest [m] */
    fsi_real contact_range;       /* d_hat in use [m] */
    fsi_shell_stats stats;
    void *impl;
} fsi_shell;

/* Errors: COOKIE; ARGUMENT, NAN (name the field or the element); MESH (an element without length or area at rest;
   elements that intersect or touch, named); MEMORY; LIMIT. *out is NULL on failure. */
FSI_API fsi_status fsi_shell_create(fsi_shell **out, const fsi_shell_desc *desc);
FSI_API void fsi_shell_destroy(fsi_shell *s); /* NULL is fine */
/* Other settings from now on: start from s->desc. gravity, integrator, substeps, max_newton, tolerance, friction*,
   wind, air_density and drag may change; other fields are ignored. Errors: COOKIE, ARGUMENT and NAN (name the field);
   then nothing has changed. */
FSI_API fsi_status fsi_shell_set_desc(fsi_shell *s, const fsi_shell_desc *desc);
/* Why the last call on it failed. NULL, as after a create that failed: a constant text that says where to read why.
   Never NULL. */
FSI_API const fsi_error *fsi_shell_error(const fsi_shell *s);

/* Advances exactly dt seconds, 1e-12 to 1000. dt = 0 takes what was written and moves nothing: stats are those of the
   present state, forces, reactions and impulses are 0, COUPLED bodies keep their velocities. Errors: ARGUMENT (dt); NAN
   (names vertex and array); LIMIT (a vertex beyond 1e12 m, or beyond 5e11 m or m/s after the step; a twist beyond 1e8);
   MESH (teleported into an intersection, named); CONVERGENCE (pins or obstacles cannot reach their prescribed positions
   without an intersection: names two vertices pinned to one point, or the pair that would intersect); MEMORY; SINGULAR;
   then nothing has changed. A step that ends with stats.degraded says so to the context's hook (level 1). */
FSI_API fsi_status fsi_shell_step(fsi_shell *s, fsi_real dt);
/* The time in which the fastest vertex travels half a mean edge, once for each of desc.substeps [s], at most 1000 (at
   rest). Longer steps are stable and free of intersections too, but damp motion. 0: s is invalid. */
FSI_API fsi_real fsi_shell_suggest_dt(const fsi_shell *s);
/* Moves the origin of the world: adds offset [m] (2D: z is ignored) to positions, targets, anchors of springs in space
   and positions of obstacles after the last step. Meshes and bodies are yours: add it to them too before the next step
   (fsi_mesh_set; pose and end). Later steps are the same up to rounding. Errors: COOKIE, NAN, LIMIT (a vertex would get
   beyond 5e11 m; names it); then nothing has changed. */
FSI_API fsi_status fsi_shell_shift_origin(fsi_shell *s, fsi_vec3 offset);
/* Equilibrium under gravity, forces, pins and contacts: minimises the energy without inertia by implicit steps of
   growing length, velocities set to 0, until no vertex moves farther than tolerance * mean edge in a step of 1000 s; at
   most max_steps steps. Errors: as step, and CONVERGENCE; then nothing has changed. */
FSI_API fsi_status fsi_shell_settle(fsi_shell *s, int max_steps);

/* ---- >>obstacles ----------------------------------------------------------------------------------------------- */

/* A mesh of triangles (2D: segments) that nothing passes through, from either side: referenced, not copied; mesh and
   body must outlive the simulator or be removed first. Every step sweeps it from where the last step left it:
      by its mesh     to where its mesh is when the step is called
      by a body       PRESCRIBED: to body->end. COUPLED: by contacts, body->force and body->torque, solved together
                      with the shell. Outputs of fsi_body are written when the step has succeeded, for COUPLED also
                      `end`. If you integrate the pose yourself, the next step sweeps the difference. */
typedef struct fsi_shell_obstacle_desc {
    uint32_t cookie;
    const fsi_mesh *mesh;
    fsi_body *body;          /* default NULL. The mesh is fixed to body->pose as both are when the obstacle is added */
    fsi_real friction;       /* Coulomb's coefficient, 0 to 10; default 0 */
    fsi_real clearance;      /* as fsi_shell_material.clearance; default 0 */
    fsi_vec3 *vertex_force;  /* default NULL; else mesh->source_count entries, written by each step: force of contacts
                                and friction on each vertex, mean of the substeps [N] */
} fsi_shell_obstacle_desc;

FSI_API fsi_shell_obstacle_desc fsi_shell_default_obstacle_desc(void); /* fills every field; set mesh */
/* *id (NULL ok) names it in calls below. Errors: COOKIE, ARGUMENT, NAN (name the field), MESH (an intersection, also
   where `position` was written since the last step, named), MEMORY. */
FSI_API fsi_status fsi_shell_add_obstacle(fsi_shell *s, const fsi_shell_obstacle_desc *desc, int *id);
FSI_API fsi_status fsi_shell_add_mesh(fsi_shell *s, const fsi_mesh *mesh, int *id); /* the same with all defaults */
FSI_API fsi_status fsi_shell_remove_obstacle(fsi_shell *s, int id);
/* Moves an obstacle, with all others of its COUPLED body, to the present position of its mesh or body->pose: the next
   step does not sweep it there, but checks for intersections. */
FSI_API fsi_status fsi_shell_teleport_obstacle(fsi_shell *s, int id);
/* Reaction on an obstacle from contacts, friction, springs and attached vertices, mean of the last step's substeps:
   force [N], torque about the world's origin [N m]; NULL is fine. Bodies get the same as impulses, but none from
   settle, where no time passes. */
FSI_API fsi_status fsi_shell_obstacle_reaction(const fsi_shell *s, int id, fsi_vec3 *force, fsi_vec3 *torque);
/* Pins a vertex to an obstacle that is not COUPLED, at its present position relative to the body, or to the closest
   face of a mesh without one, as it deforms. Errors: COOKIE, ARGUMENT, NAN (the vertex), MEMORY. */
FSI_API fsi_status fsi_shell_attach(fsi_shell *s, int vertex, int obstacle);
/* Undoes attach, as removing the obstacle does; the vertex is pinned, at its present position, only if it was
   before. */
FSI_API fsi_status fsi_shell_detach(fsi_shell *s, int vertex);

/* ---- >>springs ------------------------------------------------------------------------------------------------- */

/* Between two vertices, a vertex and a point in space, or a vertex and a point of an obstacle (of COUPLED bodies too: a
   stiff attachment). */
typedef struct fsi_shell_spring_desc {
    uint32_t cookie;
    int vertex;              /* no default */
    int other;               /* a vertex; default -1: none */
    int obstacle;            /* id; `anchor` is fixed to it as it stands now; default -1: none */
    fsi_vec3 anchor;         /* in world axes, where there is no other vertex [m] */
    fsi_real stiffness;      /* [N/m], > 0; default 100 */
    fsi_real rest_length;    /* [m], >= 0; default 0 */
    fsi_real damping;        /* of its length's rate [N s/m], >= 0; default 0 */
} fsi_shell_spring_desc;

FSI_API fsi_shell_spring_desc fsi_shell_default_spring_desc(void); /* fills every field */
/* Errors: COOKIE, ARGUMENT, NAN (name the field), MEMORY. */
FSI_API fsi_status fsi_shell_add_spring(fsi_shell *s, const fsi_shell_spring_desc *desc, int *id);
/* other ends, or other numbers */
FSI_API fsi_status fsi_shell_set_spring(fsi_shell *s, int id, const fsi_shell_spring_desc *desc);
FSI_API fsi_status fsi_shell_remove_spring(fsi_shell *s, int id);
/* on `vertex`, mean of the last step's substeps [N] */
FSI_API fsi_status fsi_shell_spring_force(const fsi_shell *s, int id, fsi_vec3 *force);

/* ---- >>looking at it ------------------------------------------------------------------------------------------- */

/* Unit normals of the vertices where s->position is now: the mean of their triangles' normals, weighted by area; 2D: of
   their segments' normals, on the left from first to second vertex, weighted by length. out: vertex_count; 0 where a
   vertex has none, as in rods. Errors: COOKIE, ARGUMENT (out). */
FSI_API fsi_status fsi_shell_vertex_normals(fsi_shell *s, fsi_vec3 *out);

/* Number of pairs of an edge and a triangle (2D: two edges) that intersect, of the shell and of obstacles, by exact
   arithmetic on `position`, independent of the solver: 0 while contact is on (which this needs). -1: no memory. */
FSI_API int fsi_shell_count_intersections(fsi_shell *s);

/* A fine mesh that follows the triangles of a coarse one, for rendering: each of its vertices keeps its barycentric
   coordinates on the nearest triangle and its distance along the interpolated normal. */
typedef struct fsi_shell_skin {
    uint32_t cookie;
    fsi_context *context;
    int count;               /* vertices */
    const int *triangle;     /* count: the triangle that each is fixed to */
    const double *weight;    /* 3 * count: barycentric coordinates of its second and third corner; distance along the
                                normal [m] */
    void *impl;
} fsi_shell_skin;
/* Binds the vertices `fine` (count) to the triangles at the present s->position. Errors: COOKIE, ARGUMENT (no
   triangles), NAN, MESH, MEMORY. *out is NULL on failure. */
FSI_API fsi_status fsi_shell_skin_create(fsi_shell_skin **out, const fsi_shell *s, const fsi_vec3 *fine, int count);
FSI_API void fsi_shell_skin_destroy(fsi_shell_skin *skin); /* NULL is fine */
/* Where the fine vertices are now: out (count); their normals (count, NULL ok), those of the coarse surface. s: the
   simulator that it was made with. Allocates nothing. Errors: COOKIE, ARGUMENT. */
FSI_API fsi_status fsi_shell_skin_update(fsi_shell_skin *skin, const fsi_shell *s, fsi_vec3 *out, fsi_vec3 *normals);

/* State: positions, velocities, twists, frames, history of the integrator, stiffness of contacts, time. Obstacles,
   springs, pins and settings are not saved: load into a simulator made alike, after restoring meshes (fsi_mesh_set) and
   bodies, whose positions the obstacles take (a COUPLED body whose pose differs only by rounding to fsi_real continues
   bitwise). NULL buffer asks the size. A loaded state can always be stepped. Errors of load: COOKIE; ARGUMENT (buffer
   NULL, a body; names it); FORMAT (a damaged or foreign buffer, an impossible number, named); MESH (with contact on:
   surfaces cross or touch with obstacles at their present positions; named); MEMORY; then nothing has changed. */
FSI_API fsi_status fsi_shell_save(const fsi_shell *s, void *buffer, size_t capacity, size_t *size);
FSI_API fsi_status fsi_shell_load(fsi_shell *s, const void *buffer, size_t size);
/* Hash of what save writes. Equal after equal steps, for any number of threads. */
FSI_API uint64_t fsi_shell_hash(const fsi_shell *s);

/* Edges, red under tension, blue under compression; contact forces; obstacles. */
FSI_API void fsi_shell_debug_draw(const fsi_shell *s, const fsi_debug_draw *draw);

/* ---- >>stages: a step in pieces, for fsi's own headers, not for you ---------------------------------------------- */

/* fsi_shell_step calls these in this order. A solver that moves a shell together with something else (fsi_couple.h)
   calls them too, and adds its own part where a line ends in +:

      begin                     checks and copies what the owner wrote; what he sees stays as it was
      for each substep:
         predict                inertia and forces; prescribed motion
         for each lag of friction, desc.friction_iterations times:
            lag                 normal forces and tangents of friction; Newton's method begins
            while iterates:
               collide          pairs within reach, their gaps and stiffness
               until solved:
                  assemble      gradient and matrix at `now` +
                  constrain     prescribed motion; the right side
                  solve         the direction +
                  retreat       more inertia or a larger diagonal for a singular matrix
               filter           the fraction t of the direction that is free of collisions +
               filter_arcs      the same for points that turn with a body
               search           the line search begins; energy and slope at `now` +
               while try:       `trial` is `now` plus t times the direction
                  judge         is the energy there low enough? +
               advance          `now` becomes the accepted trial
         accept                 contact, pin and spring forces; the shell's state at the substep's end
      check                     the result is finite
      commit                    publishes everything at once, cannot fail

   Errors are those of fsi_shell_step, in s->context, with the name `fn` that begin got. After an error nothing needs to
   be undone. A node has three numbers: the first `vertices` nodes are positions [m]; twists of rods follow, an angle
   [rad] and two numbers unused; from first_body on each COUPLED body has two nodes, its centre [m] and its rotation
   vector since `now`. */
typedef struct fsi__sh_step fsi__sh_step; /* scratch of a step, one a shell */

/* A COUPLED body during a step, world axes, in double. */
typedef struct fsi__sh_body {
    fsi_body *body;
    double center[3], left_center[3]; /* at the beginning of a substep; where the last step left it */
    fsi_quat turn, left_turn;
    double owner_center[3];       /* where its owner has it at the beginning of the step, then where substeps take it */
    fsi_quat owner_turn;
    double velocity[3], spin[3];  /* [m/s], [rad/s]: at the substep's beginning; after accept at its end */
    double push[3], turning[3];   /* force; I^-1 torque */
    double aim[3], aim_turn[9];   /* where inertia and forces lead */
    double moment[9];             /* (1/2 tr I) 1 - I, body axes: integral of rho x x' */
    double mass;
} fsi__sh_body;

/* A shell as its driver sees it. Pointers follow what stages do; obstacles that come or go between steps move them,
   until begin or view_of. Read only, but gradient and direction. 3 * nodes numbers unless said otherwise. */
typedef struct fsi__sh_view {
    /* fixed by the scene */
    int vertices, edges, triangles, segments, points;
    const int *edge, *triangle, *segment; /* vertices: 2 an edge, 3 a triangle, 2 a segment */
    const int *point;             /* points: vertices of no triangle or segment */
    const double *area;           /* triangles: at rest [m^2; 2D: m] */
    const double *mass;           /* vertices: [kg; 2D: kg/m] */
    double mean_edge;             /* at rest [m] */
    /* obstacles may change these between steps */
    int first_body, nodes, bodies; /* nodes = first_body + 2 * bodies */
    const fsi__sh_body *body;     /* bodies */
    /* states, first_body nodes each */
    const double *x;              /* the state that the owner sees */
    const double *next_x, *next_v; /* what will replace it: at the end of the last substep that was accepted, or as read
                                      by read_state */
    /* a substep: from predict on */
    double h;                     /* its length [s]: v = (x - start) / h */
    const double *start, *end;    /* where it begins; where fixed numbers end */
    const unsigned char *fixed;   /* 1: prescribed, no unknown */
    /* an iteration of Newton's method */
    int newton;                   /* iterations since begin */
    double short_step;            /* an iteration that moves no vertex farther than this is the last [m] */
    const double *now, *trial;    /* 3 * vertices: positions where it begins; positions to be tried */
    double *gradient;             /* of the energy at `now` [J/m], from assemble on: add yours before constrain */
    const fsi_csr *matrix;        /* second derivatives, 3x3 blocks, sorted columns; from assemble on */
    const double *fixed_step;     /* the direction of fixed numbers, else 0; from constrain on */
    const double *right;          /* right side of the system, from constrain on: matrix * direction = right */
    fsi_solver *solver;           /* keeps the analysis of the matrix's pattern: use it for systems with this pattern */
    double *direction;            /* to be filled by solve */
} fsi__sh_view;

FSI_API const fsi__sh_view *fsi__sh_view_of(const fsi_shell *s);     /* NULL: s is no shell. The address stays. */
/* Begins a step of dt seconds, 0: look will follow. joint: 1 if another solver's unknowns are solved for together with
   the shell's. fn: the function that errors name; it must outlive the step. */
FSI_API fsi_status fsi__sh_begin(fsi_shell *s, double dt, int joint, const char *fn, fsi__sh_step **step);
/* A substep of dt seconds: `share` is its fraction of the step, `at` the fraction at which it ends (0 to 1). */
FSI_API fsi_status fsi__sh_predict(fsi__sh_step *w, double dt, double share, double at);
FSI_API fsi_status fsi__sh_lag(fsi__sh_step *w, int lag);            /* lag: 0, 1, ... in this substep */
FSI_API int fsi__sh_iterates(const fsi__sh_step *w);                 /* 1: Newton's method needs another iteration */
FSI_API fsi_status fsi__sh_collide(fsi__sh_step *w);
FSI_API fsi_status fsi__sh_assemble(fsi__sh_step *w);
FSI_API fsi_status fsi__sh_constrain(fsi__sh_step *w);
enum { FSI__SH_SOLVED, FSI__SH_CONSTRAIN, FSI__SH_ASSEMBLE };
/* status: of the solver. Returns FSI_OK and which stage is to be repeated in *again: FSI__SH_SOLVED: none;
   FSI__SH_CONSTRAIN: constrain and solve, as the matrix was made more definite; FSI__SH_ASSEMBLE: assemble, constrain
   and solve, by projected second derivatives. Else the error. */
FSI_API fsi_status fsi__sh_retreat(fsi__sh_step *w, fsi_status status, int *again);
/* Puts `trial` at the end of the direction; *t: 0 to 1. */
FSI_API fsi_status fsi__sh_filter(fsi__sh_step *w, double *t);
FSI_API fsi_status fsi__sh_filter_arcs(fsi__sh_step *w, double *t);  /* shortens *t */
/* After filter: length of the next iteration's step, extrapolated [m]. */
FSI_API double fsi__sh_next_step(const fsi__sh_step *w);
/* enough: 1: this iteration is the last if its whole step is accepted. slope, energy: of the other solver's unknowns at
   `now`, along their own direction [J]. */
FSI_API void fsi__sh_search(fsi__sh_step *w, int enough, double slope, double energy);
/* *is 1: `trial` is at fraction *t of the direction, at most the former *t: call judge. *is 0: the search has ended, *t
   is the accepted fraction, 0: none. */
FSI_API fsi_status fsi__sh_try(fsi__sh_step *w, double *t, int *is);
/* energy: of the other solver's unknowns, at *t of their direction [J]. */
FSI_API void fsi__sh_judge(fsi__sh_step *w, double *t, double energy);
FSI_API fsi_status fsi__sh_advance(fsi__sh_step *w, double t);       /* t: as try left it */
FSI_API fsi_status fsi__sh_accept(fsi__sh_step *w);
FSI_API fsi_status fsi__sh_check(const fsi__sh_step *w);
FSI_API void fsi__sh_commit(fsi__sh_step *w);
/* Instead of the substeps if dt is 0: contacts and stats of the present state. */
FSI_API fsi_status fsi__sh_look(fsi__sh_step *w);

/* Gradient and matrix at `now` of the shell alone, by projected second derivatives: after lag, before an iteration, or
   after accept. */
FSI_API fsi_status fsi__sh_weigh(fsi__sh_step *w);
/* After accept and weigh: velocities at the substep's end become v (3 * nodes; of bodies velocity [m/s] and spin
   [rad/s]), by an impulse that acts on nodes by that matrix. The forces of contacts, pins and attachments change
   accordingly. Errors: NAN (a body). */
FSI_API fsi_status fsi__sh_change_velocities(fsi__sh_step *w, const double *v);
FSI_API void fsi__sh_node_velocities(const fsi__sh_step *w, double *v); /* 3 * nodes: next_v, and those of bodies */
/* Between predict and lag: adds impulses [N s] and angular impulses [N m s], 6 a COUPLED body, to its predicted
   motion. */
FSI_API void fsi__sh_push_bodies(fsi__sh_step *w, const double *impulse);
/* After accept: velocities of a body by another solver. Numbers that are equal in fsi_real stay. */
FSI_API void fsi__sh_set_body_velocity(fsi__sh_step *w, int body, fsi_vec3 velocity, fsi_vec3 spin);
/* During a step: the largest speed of a vertex, a point of a COUPLED body and a pin [m/s]. */
FSI_API double fsi__sh_fastest(const fsi__sh_step *w);
/* Distance of a COUPLED body's farthest point from its centre [m]. */
FSI_API double fsi__sh_body_reach(const fsi_shell *s, int body);
/* 1: the body is an obstacle of the shell, in either mode. */
FSI_API int fsi__sh_has_body(const fsi_shell *s, const fsi_body *body);
/* Number of steps with dt > 0, settles, loads and shifts of the origin so far. */
FSI_API unsigned fsi__sh_moves(const fsi_shell *s);
/* FSI_OK, or the error that fsi_shell_shift_origin would return. */
FSI_API fsi_status fsi__sh_check_shift(const fsi_shell *s, fsi_vec3 offset, const char *fn);
/* fsi_shell_load in two parts: read_state reads and checks a state, then in next_x, next_v; take_state makes it the
   shell's and cannot fail. */
FSI_API fsi_status fsi__sh_read_state(fsi_shell *s, const void *buffer, size_t size, const char *fn);
FSI_API void fsi__sh_take_state(fsi_shell *s);
/* Index of an entry of a matrix with sorted columns; -1: there is none. */
FSI_API int fsi__sh_entry(const fsi_csr *t, int row, int col);

#endif /* FSI_SHELL_H */

/* ==== Stop here if you only want the API. ====================================================================== */

/* The functions of each stage of a step (>>stages says what the stages are for); names without their fsi__sh_, fsi__sm_
   (fsi_shell_model.h), fsi__sc_ (fsi_shell_contact.h):

      begin          read_in: positions, pins, forces, twists; read_obstacles
      predict        aim_nodes, aim_bodies: where inertia and forces lead; prescribe, mark_fixed: what is held;
                     lag_wind, damp: wind and dampers of the substep; begin_stiffness: of contacts
      lag            lag_friction
      collide        find_pairs, measure: gaps; stiffen
      assemble       check_pattern; elements; inertia and drag; add_contacts, add_springs, add_body
      constrain      add_inertia: where second derivatives are exact; hold_fixed
      solve          fsi_solver_solve
      filter         feel_direction: contact forces by that direction; clear: continuous collision detection
      search         energy: inertia, elements, points_energy; slope
      advance        move: nodes and frames; friction_agrees
      accept         feel: forces on pins, springs, obstacles; adapt_stiffness; advance_state: velocities
      commit         sum_up: stats; publish_obstacle, publish_body */

#ifdef FSI_IMPLEMENTATION
#undef FSI_SHELL_IMPLEMENTATION
#define FSI_SHELL_IMPLEMENTATION
#endif
#ifdef FSI_SHELL_IMPLEMENTATION
#ifndef FSI_SHELL_IMPLEMENTATION_DONE
#define FSI_SHELL_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_shell_contact.h"
#include "fsi_shell_model.h"
#include "fsi_mesh.h"
#include "fsi_order.h"

#include <stdio.h>

FSI__STRICT_BEGIN

/* ---- >>limits ------------------------------------------------------------------------------------------------- */

/* Largest coordinate of a position or velocity after a step [m, m/s]: the next step refuses vectors longer than
   1e12. */
#define FSI__SH_FARTHEST 5e11
#define FSI__SH_MOST_TWIST 1e8 /* of a segment [rad]: fsi_sincos knows no angle above 1e9 */

/* Takes over a public vector if its owner changed it; others keep their double precision. Returns 1 if changed. */
static int fsi__sh_take(fsi_vec3 shown, double *kept)
{
    const fsi_vec3 was = fsi__sh_to(kept);
    if (!(shown.x < was.x || shown.x > was.x || shown.y < was.y || shown.y > was.y || shown.z < was.z ||
          shown.z > was.z))
        return 0;
    fsi__sh_from(shown, kept);
    return 1;
}

/* ---- >>simulator at work --------------------------------------------------------------------------------------- */

/* A configuration: unknowns q (3 * nodes), rotations of COUPLED bodies, and the positions x (3 * points) that follow:
   the vertices, those of the obstacles, and the anchors of springs. */
typedef struct fsi__sh_place { double *q, *x; fsi_quat *turn; } fsi__sh_place;

/* What a step changes. */
typedef struct fsi__sh_state {
    double *x, *v;                /* 3 * (vertices + twists): twist nodes use their first number */
    double *x_before, *v_before;  /* a step ago, for BDF2 */
    fsi__shell_frame *frame;      /* segments: carried along without turning */
    double *twist;                /* JOINTs: angle between the frames of its segments */
    double dt_before;             /* 0: there is no step before */
    double stiffness;             /* kappa of contacts [m^2/s^2]; 0: there were none */
    double time;
} fsi__sh_state;

/* No fsi__obstacle of fsi_obstacle.h, which is faces that push particles: here a solid is points, edges and faces with
   trees of their own, in double, and a COUPLED body is six unknowns of Newton's method. */
typedef struct fsi__sh_obstacle {
    int used, body;               /* body: index of its COUPLED body, -1: none */
    fsi_shell_obstacle_desc desc;
    fsi__sc_features features;
    int *face, *edge;
    double *edge_length2;
    double *local;                /* 3 * points, in the axes of its body */
    double *stand;                /* 3 * points: where the last step left it */
    double force[3], torque[3];
    double sum[9];                /* of the running step: force, its moments about the origin and about the centre of a
                                     PRESCRIBED body */
    fsi__arena memory;
} fsi__sh_obstacle;

/* Friction of a pair, with the normal force of the iteration before. */
typedef struct fsi__sh_rub { fsi_friction friction; int node[4]; int points; } fsi__sh_rub;

typedef struct fsi__sh_spring {
    int used, face;
    fsi_shell_spring_desc desc;
    double local[3], stand[3];    /* on its obstacle; where its far end stands */
    double length_before, force[3], sum[3]; /* sum: of the running step */
} fsi__sh_spring;

typedef struct fsi__sh_attachment { int vertex, obstacle, face, was_pinned; double local[3]; } fsi__sh_attachment;

/* One step, as it is solved: minimise 1/2 (q - aim)' M (q - aim) / h^2 + elastic + damping + wind + contacts +
   friction, where h = gamma dt and v = (q - base) / h: gamma = 1 for backward Euler, (1 + w) / (1 + 2 w) for BDF2 with
   w = dt / dt_before. */
struct fsi__sh_step {
    fsi_shell *s;
    struct fsi__sh_impl *m;
    int joint;              /* 1: others' unknowns are solved for too, which costs more than the shell's */
    const char *fn;
    double whole, dt, h;    /* of the step; of the substep [s] */
    double share, at;       /* fraction of the step in this substep; fraction at which it ends */
    double kappa;           /* stiffness of a pair's barrier over its mass [m^2/s^2] */
    double slip;            /* displacement in a step that counts as sticking [m] */
    double remaining;       /* fraction of the prescribed displacement that is left, 1 to 0 */
    double contact_energy;
    double longest;         /* no point is farther than this from where the gaps were measured [m] */
    double lean;            /* inertia added to exact Hessians, as a multiple of the present one */
    double lap;             /* the clock when the last phase ended */
    double moved;           /* largest displacement of a vertex in the last substep [m] */
    double least_gap;       /* over its range, of the last Newton step; 0: there was none */
    int felt;               /* m->felt are the forces of contacts and friction by which the last Newton step was solved,
                               and which it took whole */
    double tolerance;
    int max_newton, in_the_way;
    int settle;             /* 1: no velocities */
    int hidden;             /* the decrease that the last direction predicts is below the rounding of the energy */
    int foresees;           /* the first Newton step: friction's model is about `foreseen_x` */
    int exact, close;       /* exact Hessians; the last step was a small one */
    int crept;              /* steps in a row that the search cut to less than a thousandth */
    const fsi__sm_model *law; /* whose elements: `model`, or `damped` */
    /* Newton's method */
    int lag, iteration, done; /* lags of friction and iterations so far; done: 1: found, 2: gave up */
    double before, left;    /* stats.update, and `remaining`, of the last iteration */
    int stuck;              /* successive iterations without progress of the prescribed motion */
    int tries, raised;      /* solves by the exact matrix that failed in this iteration; how often the projected one's
                               diagonal was raised */
    double shift, leant;    /* how much it is raised by next; how much of `lean` the matrix has */
    double slope, merit;    /* of the line search: slope along the direction, energy at `now` */
    int halved, found;      /* halvings of the step length; it has found less energy */
    fsi_shell_stats stats;
};

typedef struct fsi__sh_impl {
    fsi__sh_step step;
    fsi__sh_view view;
    unsigned moves;                     /* steps of some time, settles, loads and shifts of the origin so far */
    fsi_context own;
    fsi_context *context;
    fsi_shell *s;
    fsi_shell_desc settings;            /* its arrays are NULL */
    fsi__sm_model model;
    fsi__arena given, counted, fixed_memory, work;
    fsi__sh_state state, next;
    int first_body, nodes;              /* vertices + twists; with two for each COUPLED body */
    int first_anchor, points;
    int contact, damps, blows, teleported;
    fsi__sm_model damped;               /* `damps`: the model, with a damper in each element */
    double air[3];
    /* scratch of the size of the scene */
    unsigned char *held;                /* vertices: pinned or attached */
    double *force, *pin_from, *pin_to;  /* 3 * vertices */
    double *hold_sum;                   /* 3 * vertices: mean constraint force */
    double *twist_from;                 /* segments */
    double *wind;                       /* 4 * triangles: c of f = -c n (n.u), and n */
    double *element_value, *element_vector, *element_energy;
    fsi_vec3 *contact_force, *pin_force;
    fsi_real *public_mass;
    /* scratch that grows with obstacles and springs */
    fsi__sh_place now, trial;
    double *start_q, *end_q;            /* 3 * nodes: at the beginning; prescribed values at the end */
    double *aim, *base;                 /* 3 * nodes */
    double *gradient, *direction, *fixed_step, *lift, *scratch; /* 3 * nodes */
    unsigned char *fixed;               /* 3 * nodes */
    double *start_x, *end_x;            /* 3 * points */
    double *was_x, *go_x, *stand_x;     /* 3 * points: at the beginning and the end of a whole step, and between
                                           substeps */
    double *foreseen_x;                 /* 3 * points: extrapolated to the end of the substep */
    double *dx, *felt, *sum, *local;    /* 3 * points; felt: forces of contacts and friction; sum: their mean */
    int *owner;                         /* points: COUPLED body, -1: none */
    /* of the state that comes next */
    fsi__shell_frame *frame_now;
    double *twist_now;
    /* the system */
    fsi_assembly *elastic;
    fsi_solver *solver;
    fsi_csr total;
    int *total_start, *total_col, *total_map;
    double *total_value;
    int total_capacity, pattern_holds, patterns, analyses_before; /* patterns: how many there were */
    int *coupling, couplings, coupling_capacity; /* rows and columns; behind them as much scratch, for sorting */
    int *cursor;                        /* nodes */
    /* contacts */
    fsi__sc_contacts contacts;
    fsi__sh_rub *rub;
    int rubs, rub_capacity;
    fsi__sh_obstacle *obstacle;
    int obstacles, obstacle_capacity;
    fsi__sh_body *body;
    int bodies, body_capacity, bodies_read; /* bodies_read: center and turn are those of the state that is being
                                               loaded */
    fsi__sh_spring *spring;
    int springs, spring_capacity;
    fsi__sh_attachment *attachment;
    int attachments, attachment_capacity;
} fsi__sh_impl;

static fsi__sh_impl *fsi__sh_of(const fsi_shell *s)
{
    return s && s->cookie == FSI__COOKIE('s', fsi_shell) ? (fsi__sh_impl *)s->impl : NULL;
}

/* Updates the view. */
static void fsi__sh_show(fsi__sh_impl *m)
{
    const fsi__sm_model *p = &m->model;
    fsi__sh_view *v = &m->view;

    /* Meshes and masses. */
    v->vertices = p->vertices;
    v->edges = p->edges;
    v->triangles = p->triangles;
    v->segments = p->segments;
    v->points = p->points;
    v->edge = p->edge;
    v->triangle = p->triangle;
    v->segment = p->segment;
    v->point = p->point;
    v->area = p->area;
    v->mass = p->mass;
    v->mean_edge = p->mean_edge;

    /* Nodes and state. */
    v->first_body = m->first_body;
    v->nodes = m->nodes;
    v->bodies = m->bodies;
    v->body = m->body;
    v->x = m->state.x;
    v->next_x = m->next.x;
    v->next_v = m->next.v;

    /* The running step. */
    v->h = m->step.h;
    v->start = m->start_q;
    v->end = m->end_q;
    v->fixed = m->fixed;
    v->newton = m->step.stats.newton;
    v->short_step = m->step.tolerance * p->mean_edge;
    v->now = m->now.x;
    v->trial = m->trial.x;
    v->gradient = m->gradient;
    v->matrix = &m->total;
    v->fixed_step = m->fixed_step;
    v->right = m->scratch;
    v->solver = m->solver;
    v->direction = m->direction;
}

FSI_API const fsi__sh_view *fsi__sh_view_of(const fsi_shell *s)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    if (!m) return NULL;
    fsi__sh_show(m);
    return &m->view;
}

FSI_API unsigned fsi__sh_moves(const fsi_shell *s) { return fsi__sh_of(s)->moves; }

static void fsi__sh_take_settings(fsi_shell *s, fsi__sh_impl *m, const fsi_shell_desc *d)
{
    m->settings = *d;
    m->settings.vertices = m->settings.rest = m->settings.warp = m->settings.segment_director = NULL;
    m->settings.triangles = m->settings.segments = m->settings.triangle_material = m->settings.segment_material =
        m->settings.joints = NULL;
    m->settings.materials = NULL;
    m->settings.vertex_mass = NULL;
    m->settings.creases = NULL;
    m->settings.context = m->context;
    m->contacts.friction = (double)d->friction;
    fsi__sh_from(d->wind, m->air);
    m->blows = d->air_density > 0 && d->drag > 0 && m->model.triangles > 0;
    s->desc = m->settings;
}

/* ---- >>contacts -------------------------------------------------------------------------------------------------- */

/* The pairs that may meet while points go from x to x + dx. */
static fsi_status fsi__sh_find_pairs(fsi__sh_impl *m, const char *fn, const double *x, const double *dx)
{
    int i, holds;
    FSI__TRY(fsi__sc_begin_pairs(&m->contacts, fn, x, dx, m->points, &holds));
    if (holds) return FSI_OK;
    for (i = 0; i < m->obstacles; i++) {
        const fsi__sh_obstacle *o = &m->obstacle[i];
        fsi__sc_wall wall;
        if (!o->used) continue;
        wall.features = &o->features;
        wall.clearance = (double)o->desc.clearance;
        wall.friction = (double)o->desc.friction;
        FSI__TRY(fsi__sc_add_wall(&m->contacts, fn, &wall));
    }
    return fsi__sc_end_pairs(&m->contacts, fn);
}

/* All edges that pass through faces at x: how many, and the points of the first one. Fits trees and finds pairs. */
static fsi_status fsi__sh_crossings(fsi__sh_impl *m, const char *fn, const double *x, int *count, int first[5])
{
    fsi_status status;
    int i;
    *count = 0;
    memset(m->dx, 0, 3 * (size_t)m->points * sizeof(double));
    m->contacts.list_holds = 0;
    status = fsi__sh_find_pairs(m, fn, x, m->dx);
    if (status == FSI_OK && m->contacts.self_contact)
        status = fsi__sc_count_crossings(&m->contacts, x, &m->contacts.own, &m->contacts.own, count, first);
    for (i = 0; i < m->obstacles && status == FSI_OK; i++) {
        if (!m->obstacle[i].used) continue;
        status = fsi__sc_count_crossings(&m->contacts, x, &m->contacts.own, &m->obstacle[i].features, count, first);
        if (status == FSI_OK && m->model.dim == 3)
            status = fsi__sc_count_crossings(&m->contacts, x, &m->obstacle[i].features, &m->contacts.own, count, first);
    }
    return status;
}

/* Name of a point for messages: vertex 12, vertex 7 of obstacle 1. */
static void fsi__sh_name(const fsi__sh_impl *m, int point, char *out, size_t size)
{
    int i;
    if (point < m->model.vertices) {
        snprintf(out, size, "%d", point);
        return;
    }
    for (i = m->obstacles - 1; i > 0 && !(m->obstacle[i].used && m->obstacle[i].features.first <= point); i--) {}
    snprintf(out, size, "%d of obstacle %d",
             m->obstacle[i].desc.mesh->vertex_source[point - m->obstacle[i].features.first], i);
}

static fsi_status fsi__sh_fail_pair(const fsi__sh_impl *m, const char *fn, fsi_status status, const fsi__sc_pair *p,
                                    const char *what)
{
    static const char *const feature[4][2] = {
        {"vertex", "vertex"}, {"vertex", "edge"}, {"vertex", "triangle"}, {"edge", "edge"}};
    const int first = p->contact.kind == FSI_EDGE_EDGE ? 2 : 1;
    char a[40], b[40];
    fsi__sh_name(m, p->node[0], a, sizeof a);
    fsi__sh_name(m, p->node[first], b, sizeof b);
    return fsi__fail(m->context, status, fn, p->node[0], p->node[first],
                     "%s: the %s that begins at vertex %s and the %s that begins at vertex %s", what,
                     feature[p->contact.kind][0], a, feature[p->contact.kind][1], b);
}

/* Checks that nothing intersects or touches at x. Fits trees and finds pairs. Errors: MESH, MEMORY. */
static fsi_status fsi__sh_check_apart(fsi__sh_impl *m, const char *fn, const double *x)
{
    int count, first[5], i;
    fsi_status status;
    if (!m->contact) return FSI_OK;

    /* No edge passes through a triangle (2D: an edge). */
    status = fsi__sh_crossings(m, fn, x, &count, first);
    if (status != FSI_OK) return status;
    if (count > 0) {
        char e[2][40], t[3][40];
        for (i = 0; i < 5; i++) fsi__sh_name(m, first[i], i < 2 ? e[i] : t[i - 2], 40);
        if (m->model.dim == 2)
            return fsi__fail(m->context, FSI_ERROR_MESH, fn, first[0], count,
                             "the edge of vertices %s and %s passes through that of vertices %s and %s (%d such pairs)",
                             e[0], e[1], t[0], t[1], count);
        return fsi__fail(
            m->context, FSI_ERROR_MESH, fn, first[0], count,
            "the edge of vertices %s and %s passes through the triangle of vertices %s, %s, %s (%d such pairs)", e[0],
            e[1], t[0], t[1], t[2], count);
    }

    /* Every pair in reach keeps more than its clearance. */
    for (i = 0; i < m->contacts.pairs; i++) {
        const fsi__sc_pair *p = &m->contacts.pair[i];
        double at[12], d;
        fsi__sh_gather(x, p->node, fsi_pair_points(p->contact.kind), at);
        d = fsi_distance_between(p->contact.kind, at).d;
        if (!(d > p->contact.thickness + 1e-12 * m->model.mean_edge))
            return fsi__sh_fail_pair(m, fn, FSI_ERROR_MESH, p,
                                     d > 0 ? "these come closer than their clearance" : "these touch");
    }
    return FSI_OK;
}

/* Two prescribed vertices with the same target; only the first ones are compared if there are very many. */
static int fsi__sh_find_twins(const fsi__sh_impl *m, int twin[2])
{
    const int most = 4096;
    int i, k, seen = 0;
    for (i = 0; i < m->model.vertices && seen < most; i++) {
        if (!m->held[i]) continue;
        seen++;
        for (k = 0; k < i; k++)
            if (m->held[k] && !(fsi__sh_apart(m->pin_to + 3 * i, m->pin_to + 3 * k) > 1e-9 * m->model.mean_edge)) {
                twin[0] = k;
                twin[1] = i;
                return 1;
            }
    }
    return 0;
}

static fsi_status fsi__sh_blocked(fsi__sh_step *w)
{
    int twin[2];
    if (fsi__sh_find_twins(w->m, twin))
        return fsi__fail(w->m->context, FSI_ERROR_CONVERGENCE, w->fn, twin[0], twin[1],
                         "vertices %d and %d are pinned to one point", twin[0], twin[1]);
    if (w->in_the_way >= 0 && w->in_the_way < w->m->contacts.pairs)
        return fsi__sh_fail_pair(w->m, w->fn, FSI_ERROR_CONVERGENCE, &w->m->contacts.pair[w->in_the_way],
                                 "a pin or an obstacle cannot get where it should; in the way are");
    return fsi__fail(w->m->context, FSI_ERROR_CONVERGENCE, w->fn, -1, w->remaining,
                     "pins or obstacles cannot get where they should: %g of their way is left", w->remaining);
}

/* ---- >>assembly ------------------------------------------------------------------------------------------------- */

/* The nodes that a point depends on, d x = sum J d q: a vertex on itself, a point of a COUPLED body on centre and
   rotation, d x = d c - [r]x d phi, a prescribed point on none. */
typedef struct fsi__sh_hold { int count, node[2]; double arm[3]; } fsi__sh_hold;

static fsi__sh_hold fsi__sh_hold_of(const fsi__sh_impl *m, const fsi__sh_place *at, int point)
{
    fsi__sh_hold h;
    memset(&h, 0, sizeof h);
    if (point < m->model.vertices) {
        h.count = 1;
        h.node[0] = point;
    } else if (m->owner[point] >= 0) {
        h.count = 2;
        h.node[0] = m->first_body + 2 * m->owner[point];
        h.node[1] = h.node[0] + 1;
        fsi__sh_sub(at->x + 3 * (size_t)point, at->q + 3 * (size_t)h.node[0], h.arm);
    }
    return h;
}

/* J^T g of the k-th unknown. */
static void fsi__sh_pull_back(const fsi__sh_hold *h, int k, const double *g, double *out)
{
    if (k == 0) memcpy(out, g, 3 * sizeof *out);
    else fsi__sh_cross(h->arm, g, out);
}

/* Rows, then columns of a block: J_i^T B J_j. */
static void fsi__sh_pull_back_block(const fsi__sh_hold *hi, int ki, const fsi__sh_hold *hj, int kj, const double *b,
                                    double *out)
{
    double rows[9], column[3], back[3];
    int a, c;
    if (ki == 0 && kj == 0) {
        memcpy(out, b, 9 * sizeof *out);
        return;
    }
    for (c = 0; c < 3; c++) { /* J_i^T of each column */
        for (a = 0; a < 3; a++) column[a] = b[3 * a + c];
        fsi__sh_pull_back(hi, ki, column, back);
        for (a = 0; a < 3; a++) rows[3 * a + c] = back[a];
    }
    for (a = 0; a < 3; a++) fsi__sh_pull_back(hj, kj, rows + 3 * a, out + 3 * a);
}

FSI_API int fsi__sh_entry(const fsi_csr *t, int row, int col)
{
    int lo, hi;
    if (row >= t->rows) return -1;
    lo = t->start[row];
    hi = t->start[row + 1];
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (t->col[mid] < col) lo = mid + 1;
        else hi = mid;
    }
    return lo < t->start[row + 1] && t->col[lo] == col ? lo : -1;
}

/* Adds the gradient (3n) and Hessian (3n x 3n) of an energy of n points to those of the nodes: chain rule, lower
   triangle of the matrix. */
static void fsi__sh_add_points(fsi__sh_step *w, const int *node, int n, const double *g, const double *h)
{
    fsi__sh_impl *m = w->m;
    fsi__sh_hold hold[4];
    int i, j, ki, kj, a, c;

    /* Gradient: J^T g. */
    for (i = 0; i < n; i++) hold[i] = fsi__sh_hold_of(m, &m->now, node[i]);
    for (i = 0; i < n; i++) for (ki = 0; ki < hold[i].count; ki++) {
        double back[9], *out = m->gradient + 3 * (size_t)hold[i].node[ki];
        fsi__sh_pull_back(&hold[i], ki, g + 3 * i, back);
        for (a = 0; a < 3; a++) out[a] += back[a];

        /* Hessian blocks, lower triangle. */
        for (j = 0; j < n; j++) {
            double b[9];
            for (a = 0; a < 3; a++)
                for (c = 0; c < 3; c++) b[3 * a + c] = h[(size_t)(3 * i + a) * (size_t)(3 * n) + (size_t)(3 * j + c)];
            for (kj = 0; kj < hold[j].count; kj++) {
                double *value;
                if (hold[j].node[kj] > hold[i].node[ki]) continue; /* fsi__sh_mirror */
                value = m->total.value + 9 * (size_t)fsi__sh_entry(&m->total, hold[i].node[ki], hold[j].node[kj]);
                fsi__sh_pull_back_block(&hold[i], ki, &hold[j], kj, b, back);
                for (a = 0; a < 9; a++) value[a] += back[a];
            }

            /* A prescribed point: its Hessian block times its displacement goes to the right side. */
            if (hold[j].count == 0 && w->remaining > 0) {
                double way[3], push[3], *lift = m->lift + 3 * (size_t)hold[i].node[ki];
                fsi__sh_sub(m->end_x + 3 * (size_t)node[j], m->now.x + 3 * (size_t)node[j], way);
                for (a = 0; a < 3; a++) push[a] = b[3 * a] * way[0] + b[3 * a + 1] * way[1] + b[3 * a + 2] * way[2];
                fsi__sh_pull_back(&hold[i], ki, push, back);
                for (a = 0; a < 3; a++) lift[a] += back[a];
            }
        }
    }
}

/* The upper triangle from the lower one: rows ascend, so do the columns in each, so that a row's entries above the
   diagonal are met in order. */
static void fsi__sh_mirror(fsi__sh_impl *m)
{
    const fsi_csr *t = &m->total;
    int r, e, a, b;
    for (r = 0; r < t->rows; r++) {
        for (e = t->start[r]; t->col[e] < r; e++) {
            double *up = t->value + 9 * (size_t)m->cursor[t->col[e]]++;
            for (a = 0; a < 3; a++)
                for (b = 0; b < 3; b++) up[3 * a + b] = t->value[9 * (size_t)e + (size_t)(3 * b + a)];
        }
        m->cursor[r] = e + 1;
    }
}

static double fsi__sh_rub_energy(const fsi__sh_step *w, const fsi__sh_rub *r, const double *x, double *g, double *h)
{
    double at[12] = { 0 }, was[12] = { 0 }; /* g++ does not see that there are points */
    fsi__sh_gather(x, r->node, r->points, at);
    fsi__sh_gather(w->m->start_x, r->node, r->points, was);
    return fsi_friction_energy(&r->friction, at, was, w->slip, g, h,
                               w->exact ? FSI_HESSIAN_EXACT : FSI_HESSIAN_PROJECTED);
}

/* Derivatives at `now` of friction's quadratic model. The first Newton step of a substep linearises it at the
   extrapolated positions: at rest all contacts would stick. */
static void fsi__sh_rub_model(const fsi__sh_step *w, const fsi__sh_rub *r, double *g, double *h)
{
    const int n = 3 * r->points;
    double about[12], now[12];
    int i, k;
    fsi__sh_rub_energy(w, r, w->foresees ? w->m->foreseen_x : w->m->now.x, g, h);
    if (!w->foresees) return;
    fsi__sh_gather(w->m->foreseen_x, r->node, r->points, about);
    fsi__sh_gather(w->m->now.x, r->node, r->points, now);
    for (i = 0; i < n; i++) for (k = 0; k < n; k++) g[i] -= h[i * n + k] * (about[k] - now[k]);
}

/* A spring, 1/2 k (|r| - l)^2, r = x - y, and its damper, c/(2 dt) (|r| - |r0|)^2, as one: k' = k + c/dt, l' = (k l + c
   |r0| / dt) / k'. */
static double fsi__sh_pull(const fsi__sh_step *w, const fsi__sh_spring *s, const double *x, const double *y, double *g,
                           double *h)
{
    const double c = (double)s->desc.damping / w->dt, k = (double)s->desc.stiffness + c,
                 l = ((double)s->desc.stiffness * (double)s->desc.rest_length + c * s->length_before) / k;
    double r[3], n[3], d, across;
    int a, b;
    fsi__sh_sub(x, y, r);
    d = sqrt(fsi__sh_dot(r, r));
    for (a = 0; a < 3; a++) n[a] = d > 0 ? r[a] / d : 0;
    across = l > 0 ? (d > l ? 1 - l / d : 0) : 1;
    for (a = 0; g && a < 3; a++) {
        g[a] = k * (r[a] - l * n[a]);
        g[3 + a] = -g[a];
    }
    for (a = 0; h && a < 3; a++) for (b = 0; b < 3; b++) {
        h[6 * a + b] = h[6 * (3 + a) + 3 + b] = k * ((1 - across) * n[a] * n[b] + (a == b ? across : 0));
        h[6 * a + 3 + b] = h[6 * (3 + a) + b] = -h[6 * a + b];
    }
    return k / 2 * (d - l) * (d - l);
}

static int fsi__sh_spring_end(const fsi__sh_impl *m, const fsi__sh_spring *s)
{
    return s->desc.other >= 0 ? s->desc.other : m->first_anchor + (int)(s - m->spring);
}

/* Energy of pairs, friction and springs. No point is farther than `longest` from where gaps were measured. */
static double fsi__sh_points_energy(fsi__sh_step *w, const double *x, double longest)
{
    fsi__sh_impl *m = w->m;
    double sum = 0;
    int i;
    for (i = 0; i < m->rubs; i++) sum += fsi__sh_rub_energy(w, &m->rub[i], x, NULL, NULL);
    for (i = 0; i < m->springs; i++)
        if (m->spring[i].used)
            sum += fsi__sh_pull(w, &m->spring[i], x + 3 * (size_t)m->spring[i].desc.vertex,
                                x + 3 * (size_t)fsi__sh_spring_end(m, &m->spring[i]), NULL, NULL);
    if (!m->contact) return sum;
    w->contact_energy = fsi__sc_energy(&m->contacts, x, w->kappa, longest);
    return sum + w->contact_energy;
}

static void fsi__sh_add_contacts(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    double g[12], h[144];
    int i;
    fsi__sc_derive(&m->contacts, m->now.x, w->kappa, w->exact);
    for (i = 0; i < m->contacts.actives; i++) {
        const fsi__sc_pair *p = &m->contacts.pair[m->contacts.active[i]];
        fsi__sh_add_points(w, p->node, fsi_pair_points(p->contact.kind), m->contacts.pair_block + 156 * (size_t)i,
                           m->contacts.pair_block + 156 * (size_t)i + 12);
    }
    for (i = 0; i < m->rubs; i++) {
        fsi__sh_rub_model(w, &m->rub[i], g, h);
        fsi__sh_add_points(w, m->rub[i].node, m->rub[i].points, g, h);
    }
}

static void fsi__sh_add_springs(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    double g[6], h[36];
    int i, node[2];
    for (i = 0; i < m->springs; i++) {
        const fsi__sh_spring *s = &m->spring[i];
        if (!s->used) continue;
        node[0] = s->desc.vertex;
        node[1] = fsi__sh_spring_end(m, s);
        fsi__sh_pull(w, s, m->now.x + 3 * (size_t)node[0], m->now.x + 3 * (size_t)node[1], g, h);
        fsi__sh_add_points(w, node, 2, g, h);
    }
}

/* ---- >>pattern --------------------------------------------------------------------------------------------------

   The matrix couples what the elements couple, always, and what contacts and springs couple besides. For these the
   pattern is made anew when a pair needs an entry that is not there; with it come entries for all pairs nearly as
   close. Pairs within range get theirs also where nothing pushes them yet, as edges that are exactly parallel. */

/* Pairs closer than this many ranges have entries in the matrix: a larger value makes the factor more expensive, a
   smaller one changes the pattern more often. At 2, each sheet of a pile is coupled with two on either side, which
   doubles the work. */
#define FSI__SH_NEARLY 1.05

static fsi_status fsi__sh_couple(fsi__sh_impl *m, const char *fn, const int *point, int n)
{
    int i, j, ki, kj;
    for (i = 0; i < n; i++) for (j = 0; j < n; j++) {
        const fsi__sh_hold p = fsi__sh_hold_of(m, &m->now, point[i]), q = fsi__sh_hold_of(m, &m->now, point[j]);
        const fsi_status status = fsi__room_in(m->context, &m->coupling, 4 * sizeof(int), m->couplings,
            &m->coupling_capacity, m->couplings + 4, fn); /* a pair of bodies couples four */
        if (status != FSI_OK) return status;
        for (ki = 0; ki < p.count; ki++) for (kj = 0; kj < q.count; kj++) {
            if (fsi__sh_entry(&m->elastic->matrix, p.node[ki], q.node[kj]) >= 0) continue;
            m->coupling[2 * m->couplings] = p.node[ki];
            m->coupling[2 * m->couplings++ + 1] = q.node[kj];
        }
    }
    return FSI_OK;
}

static int fsi__sh_fits(const fsi__sh_impl *m, const int *point, int n)
{
    int i, j, ki, kj;
    for (i = 0; i < n; i++) for (j = 0; j < n; j++) {
        const fsi__sh_hold p = fsi__sh_hold_of(m, &m->now, point[i]), q = fsi__sh_hold_of(m, &m->now, point[j]);
        if (point[j] > point[i]) continue; /* the pattern is symmetric */
        for (ki = 0; ki < p.count; ki++)
            for (kj = 0; kj < q.count; kj++)
                if (fsi__sh_entry(&m->total, p.node[ki], q.node[kj]) < 0) return 0;
    }
    return 1;
}

static fsi_status fsi__sh_couple_all(fsi__sh_impl *m, const char *fn)
{
    fsi_status status = FSI_OK;
    int i, k, node[2];
    m->couplings = 0;

    /* Contacts within range, and those within a slightly wider one, so that the pattern lasts. */
    for (i = 0; i < m->contacts.pairs && status == FSI_OK; i++) {
        fsi__sc_pair *p = &m->contacts.pair[i];
        fsi_contact wide = p->contact;
        double x[12];
        wide.range *= FSI__SH_NEARLY;
        p->coupled = m->contacts.gap[i] < p->contact.range;
        if (!p->coupled && m->contacts.gap[i] < wide.range) {
            fsi__sh_gather(m->now.x, p->node, fsi_pair_points(wide.kind), x);
            p->coupled = fsi_contact_push(&wide, x, NULL) > 0;
        }
        if (p->coupled) status = fsi__sh_couple(m, fn, p->node, fsi_pair_points(wide.kind));
    }

    /* Friction and springs. */
    for (i = 0; i < m->rubs && status == FSI_OK; i++) status = fsi__sh_couple(m, fn, m->rub[i].node, m->rub[i].points);
    for (i = 0; i < m->springs && status == FSI_OK; i++) {
        if (!m->spring[i].used) continue;
        node[0] = m->spring[i].desc.vertex;
        node[1] = fsi__sh_spring_end(m, &m->spring[i]);
        status = fsi__sh_couple(m, fn, node, 2);
    }

    /* The two nodes of a body, centre and rotation. */
    for (i = 0; i < m->bodies && status == FSI_OK; i++) {
        status = fsi__room_in(m->context, &m->coupling, 4 * sizeof(int), m->couplings, &m->coupling_capacity,
            m->couplings + 4, fn);
        for (k = 0; k < 4 && status == FSI_OK; k++) {
            m->coupling[2 * m->couplings] = m->first_body + 2 * i + k / 2;
            m->coupling[2 * m->couplings++ + 1] = m->first_body + 2 * i + k % 2;
        }
    }
    return status;
}

/* Couplings by one of their numbers, in order of appearance where it is the same. */
static void fsi__sh_sort_by(fsi__sh_impl *m, int which, const int *from, int *to)
{
    int *first = m->cursor, i, sum = 0;
    memset(first, 0, (size_t)m->nodes * sizeof *first);
    for (i = 0; i < m->couplings; i++) first[from[2 * i + which]]++;
    for (i = 0; i < m->nodes; i++) {
        const int count = first[i];
        first[i] = sum;
        sum += count;
    }
    for (i = 0; i < m->couplings; i++) memcpy(to + 2 * first[from[2 * i + which]]++, from + 2 * i, 2 * sizeof *to);
}

/* By rows, then columns. */
static void fsi__sh_sort_couplings(fsi__sh_impl *m)
{
    int *scratch = m->coupling + 2 * (size_t)m->coupling_capacity;
    if (m->couplings < 2) return;
    fsi__sh_sort_by(m, 1, m->coupling, scratch);
    fsi__sh_sort_by(m, 0, scratch, m->coupling);
}

/* Rows of the elements' matrix, and couplings sorted into them. */
static void fsi__sh_merge_rows(fsi__sh_impl *m)
{
    const fsi_csr *e = &m->elastic->matrix;
    int r, n = 0, k = 0, i, c;
    for (r = 0; r < m->nodes; r++) {
        const int end = r < e->rows ? e->start[r + 1] : 0;
        m->total_start[r] = n;
        i = r < e->rows ? e->start[r] : 0;
        while (i < end || (k < m->couplings && m->coupling[2 * k] == r)) {
            const int extra = k < m->couplings && m->coupling[2 * k] == r ? m->coupling[2 * k + 1] : m->nodes;
            if (i < end && e->col[i] < extra) {
                m->total_map[i] = n;
                c = e->col[i++];
            } else {
                c = extra;
                while (k < m->couplings && m->coupling[2 * k] == r && m->coupling[2 * k + 1] == c) k++;
            }
            m->total_col[n++] = c;
        }
    }
    m->total_start[m->nodes] = n;
}

static fsi_status fsi__sh_make_pattern(fsi__sh_impl *m, const char *fn)
{
    const fsi_csr *e = &m->elastic->matrix;
    fsi__column column[2];
    fsi_status status = fsi__sh_couple_all(m, fn);
    int need;
    if (status != FSI_OK) return status;
    m->patterns++;
    fsi__sh_sort_couplings(m);
    need = e->start[e->rows] + m->couplings;
    column[0].array = (void **)&m->total_col;
    column[0].size = sizeof(int);
    column[1].array = (void **)&m->total_value;
    column[1].size = 9 * sizeof(double);
    status = fsi__room(m->context, column, 2, 0, &m->total_capacity, need, fn);
    if (status != FSI_OK) return status;
    fsi__sh_merge_rows(m);
    m->total.rows = m->total.cols = m->nodes;
    m->total.block = 3;
    m->total.start = m->total_start;
    m->total.col = m->total_col;
    m->total.value = m->total_value;
    return FSI_OK;
}

static fsi_status fsi__sh_check_pattern(fsi__sh_impl *m, const char *fn)
{
    int i, fits = m->total.start != NULL && m->pattern_holds;
    for (i = 0; i < m->contacts.actives && fits; i++) {
        fsi__sc_pair *p = &m->contacts.pair[m->contacts.active[i]];
        if (!p->coupled) p->coupled = fits = fsi__sh_fits(m, p->node, fsi_pair_points(p->contact.kind));
    }
    m->pattern_holds = 1;
    return fits ? FSI_OK : fsi__sh_make_pattern(m, fn);
}

/* ---- >>newton --------------------------------------------------------------------------------------------------- */

/* Bodies, always by backward Euler: 1/2 m |c - aim|^2 / dt^2, and of the turn R: 1/2 integral rho |R x - A x|^2 / dt^2
   = -tr(R J A^T) / dt^2 + const (after Ferguson et al. 2021), J the integral of rho x x^T, A = exp(dt [omega]) R0: a
   free body keeps its angular velocity; the owner adds the gyroscopic part, as fsi_body says. */
static void fsi__sh_turned(const fsi__sh_body *b, const double *turn, double *n) /* N = R J A^T */
{
    double t[9];
    int i, j, k;
    for (i = 0; i < 3; i++)
        for (j = 0; j < 3; j++)
            for (t[3 * i + j] = k = 0; k < 3; k++) t[3 * i + j] += turn[3 * i + k] * b->moment[3 * k + j];
    for (i = 0; i < 3; i++)
        for (j = 0; j < 3; j++)
            for (n[3 * i + j] = k = 0; k < 3; k++) n[3 * i + j] += t[3 * i + k] * b->aim_turn[3 * j + k];
}

static void fsi__sh_matrix_of(fsi_quat q, double *r)
{
    const fsi_mat3 t = fsi_quat_matrix(q);
    int i;
    for (i = 0; i < 9; i++) r[i] = (double)t.m[i];
}

/* Rotation: 1/2 tr((R - A) J (R - A)^T), in this form because the rounding of the constant would hide the effect of a
   light sheet on a heavy body. */
static double fsi__sh_body_energy(const fsi__sh_step *w, const fsi__sh_body *b, const double *center, fsi_quat turn)
{
    double r[9], d[3], sum = 0;
    int i, j, k;
    fsi__sh_sub(center, b->aim, d);
    fsi__sh_matrix_of(turn, r);
    for (i = 0; i < 9; i++) r[i] -= b->aim_turn[i];
    for (i = 0; i < 3; i++)
        for (j = 0; j < 3; j++)
            for (k = 0; k < 3; k++) sum += r[3 * i + j] * b->moment[3 * j + k] * r[3 * i + k];
    return (b->mass * fsi__sh_dot(d, d) + sum) / (2 * w->dt * w->dt);
}

static void fsi__sh_add_body(fsi__sh_step *w, int i)
{
    fsi__sh_impl *m = w->m;
    const fsi__sh_body *b = &m->body[i];
    const int node = m->first_body + 2 * i;
    const double scale = 1 / (w->dt * w->dt), *c = m->now.q + 3 * (size_t)node;
    double *g = m->gradient + 3 * (size_t)node, *hc = m->total.value + 9 * (size_t)fsi__sh_entry(&m->total, node, node),
           *hr = m->total.value + 9 * (size_t)fsi__sh_entry(&m->total, node + 1, node + 1);
    double r[9], n[9], aim[9];
    int a, k;
    fsi__sh_matrix_of(m->now.turn[i], r);
    fsi__sh_turned(b, r, n);
    fsi__sh_turned(b, b->aim_turn, aim); /* at the aim the second derivative is the inertia, which is positive; a right
                                            angle away it is not */
    for (a = 0; a < 3; a++) {
        g[a] += scale * b->mass * (c[a] - b->aim[a]);
        hc[4 * a] += scale * b->mass;
        g[3 + a] += scale * (n[3 * ((a + 2) % 3) + (a + 1) % 3] - n[3 * ((a + 1) % 3) + (a + 2) % 3]);
        for (k = 0; k < 3; k++) {
            const double *at = w->exact ? n : aim;
            hr[3 * a + k] += scale * ((a == k ? at[0] + at[4] + at[8] : 0) - (at[3 * a + k] + at[3 * k + a]) / 2);
        }
    }
}

/* A point at l in the axes of a body. */
static void fsi__sh_turn_point(const double *center, fsi_quat turn, const double *l, double *x)
{
    double r[9];
    int k;
    fsi__sh_matrix_of(turn, r);
    for (k = 0; k < 3; k++) x[k] = center[k] + r[3 * k] * l[0] + r[3 * k + 1] * l[1] + r[3 * k + 2] * l[2];
}

/* Positions of a COUPLED body's points. */
static void fsi__sh_spread_bodies(const fsi__sh_impl *m, fsi__sh_place *p)
{
    int i;
    for (i = m->model.vertices; i < m->points; i++) {
        const int b = m->owner[i];
        if (b >= 0)
            fsi__sh_turn_point(p->q + 3 * (size_t)(m->first_body + 2 * b), p->turn[b], m->local + 3 * (size_t)i,
                               p->x + 3 * (size_t)i);
    }
}

/* trial = now + t * direction; prescribed points move on to their end. */
static void fsi__sh_place_trial(fsi__sh_step *w, double t)
{
    fsi__sh_impl *m = w->m;
    const size_t nv = (size_t)m->model.vertices;
    size_t i;
    int b, a;
    for (i = 0; i < 3 * (size_t)m->nodes; i++) m->trial.q[i] = m->now.q[i] + t * m->direction[i];
    if (w->remaining > 0 && t >= 1) for (i = 0; i < 3 * nv; i++) if (m->fixed[i]) m->trial.q[i] = m->end_x[i];
    memcpy(m->trial.x, m->trial.q, 3 * nv * sizeof(double));
    for (i = 3 * nv; i < 3 * (size_t)m->points; i++)
        m->trial.x[i] = t < 1 ? m->now.x[i] + t * (m->end_x[i] - m->now.x[i]) : m->end_x[i];
    for (b = 0; b < m->bodies; b++) {
        double *turn = m->trial.q + 3 * (size_t)(m->first_body + 2 * b + 1);
        m->trial.turn[b] = fsi_quat_unit(fsi_quat_mul(fsi_quat_from_rotation_vector(fsi__sh_to(turn)), m->now.turn[b]));
        for (a = 0; a < 3; a++) turn[a] = 0;
    }
    fsi__sh_spread_bodies(m, &m->trial);
}

/* Inertia, and the drag h/2 v' alpha M v, v = (q - base) / h. */
static double fsi__sh_inertia(const fsi__sh_step *w, const double *q)
{
    const fsi__sh_impl *m = w->m;
    double sum = 0;
    int i;
    for (i = 0; i < m->first_body; i++) {
        double d[3], way[3];
        fsi__sh_sub(q + 3 * i, m->aim + 3 * i, d);
        fsi__sh_sub(q + 3 * i, m->base + 3 * i, way);
        sum += m->model.mass[i] * fsi__sh_dot(d, d) + w->h * m->model.drag_mass[i] * fsi__sh_dot(way, way);
    }
    return sum / (2 * w->h * w->h);
}

/* Energy of all elements at q [J]; what: FSI__SM_VALUE, ..., gradients to element_vector, Hessians to element_value. */
static double fsi__sh_elements(const fsi__sh_step *w, const double *q, int what)
{
    const fsi__sh_impl *m = w->m;
    fsi__sm_pass p;
    p.context = m->context;
    p.model = w->law;
    p.q = q;
    p.frame = m->frame_now;
    p.twist = m->twist_now;
    p.wind = m->blows ? m->wind : NULL;
    p.air = m->air;
    p.base = m->base;
    p.h = w->h;
    p.exact = w->exact;
    p.what = what;
    p.energy = m->element_energy;
    p.vector = m->element_vector;
    p.value = m->element_value;
    return fsi__sm_energies(&p);
}

static double fsi__sh_energy(fsi__sh_step *w, const fsi__sh_place *p, double longest)
{
    fsi__sh_impl *m = w->m;
    double sum =
        fsi__sh_inertia(w, p->q) + fsi__sh_elements(w, p->q, FSI__SM_VALUE) + fsi__sh_points_energy(w, p->x, longest);
    int b;
    for (b = 0; b < m->bodies; b++)
        sum += fsi__sh_body_energy(w, &m->body[b], p->q + 3 * (size_t)(m->first_body + 2 * b), p->turn[b]);
    return sum;
}

/* The elements of this step, which begins at `now`. */
static void fsi__sh_damp(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    if (!m->damps) return;
    fsi__sm_damp(&m->model, &m->damped, m->frame_now, m->twist_now, m->now.q, w->dt);
    w->law = &m->damped;
}

/* Adds the seconds since the last call to a phase. */
static void fsi__sh_lap(fsi__sh_step *w, double *phase)
{
    const double now = fsi__now(w->m->context);
    *phase += now - w->lap;
    w->lap = now;
}

/* Gradient, and the Hessian in `total`, at `now`. Far from the solution second derivatives are projected, for a descent
   direction; near it they are exact. */
FSI_API fsi_status fsi__sh_assemble(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    const fsi_csr *e = &m->elastic->matrix;
    size_t i, k;
    int r, a;

    /* rows and columns for the pairs that are active */
    FSI__TRY(fsi__sh_check_pattern(m, w->fn));
    FSI__TRY(fsi__room_in(m->context, &m->contacts.pair_block, 156 * sizeof(double), 0,
        &m->contacts.pair_block_capacity, m->contacts.actives, w->fn));

    /* elements */
    fsi__sh_elements(w, m->now.q, FSI__SM_HESSIAN);
    FSI__TRY(fsi_assembly_matrix(m->elastic, m->element_value));
    FSI__TRY(fsi_assembly_vector(m->elastic, m->element_vector, m->gradient));
    memset(m->gradient + 3 * (size_t)m->first_body, 0, 3 * (size_t)(m->nodes - m->first_body) * sizeof(double));
    memset(m->total.value, 0, 9 * (size_t)m->total.start[m->total.rows] * sizeof(double));
    for (i = 0; i < (size_t)e->start[e->rows]; i++)
        for (k = 0; k < 9; k++) m->total.value[9 * (size_t)m->total_map[i] + k] = e->value[9 * i + k];

    /* inertia and drag */
    for (r = 0; r < m->first_body; r++) for (a = 0; a < 3; a++) {
            const double drag = m->model.drag_mass[r] / w->h, inertia = m->model.mass[r] / (w->h * w->h),
                         q = m->now.q[3 * r + a];
            m->total.value[9 * (size_t)fsi__sh_entry(&m->total, r, r) + (size_t)(4 * a)] += inertia + drag;
            m->gradient[3 * r + a] += inertia * (q - m->aim[3 * r + a]) + drag * (q - m->base[3 * r + a]);
    }

    /* contacts, springs and bodies */
    memset(m->lift, 0, 3 * (size_t)m->nodes * sizeof(double));
    if (m->contact) fsi__sh_add_contacts(w);
    fsi__sh_add_springs(w);
    for (r = 0; r < m->bodies; r++) fsi__sh_add_body(w, r);
    fsi__sh_mirror(m);
    w->raised = 0;
    w->shift = 1e-10;
    fsi__sh_show(m);
    fsi__sh_lap(w, &w->stats.seconds_assembly);
    return FSI_OK;
}

FSI_API fsi_status fsi__sh_weigh(fsi__sh_step *w)
{
    w->exact = 0;
    return fsi__sh_assemble(w);
}

/* Imposes the prescribed displacements and makes the right side. */
static fsi_status fsi__sh_hold_fixed(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    const fsi_csr *t = &m->total;
    size_t i;
    int r, e, a, b;
    memset(m->fixed_step, 0, 3 * (size_t)m->nodes * sizeof(double));

    /* Prescribed displacements act on the other nodes: K times them goes to the right side. */
    if (w->remaining > 0) {
        fsi_status status;
        for (i = 0; i < 3 * (size_t)m->first_body; i++) if (m->fixed[i]) m->fixed_step[i] = m->end_q[i] - m->now.q[i];
        status = fsi_csr_multiply(m->context, t, m->fixed_step, m->scratch);
        if (status != FSI_OK) return status;
        for (i = 0; i < 3 * (size_t)m->nodes; i++) m->lift[i] += m->scratch[i];
    }

    /* Only the diagonal is left in their rows and columns. */
    for (r = 0; r < t->rows; r++)
        for (e = t->start[r]; e < t->start[r + 1]; e++)
            for (a = 0; a < 3; a++)
                for (b = 0; b < 3; b++) {
                    double *v = &t->value[9 * (size_t)e + (size_t)(3 * a + b)];
                    const int i3 = 3 * r + a, j3 = 3 * t->col[e] + b;
                    if (!m->fixed[i3] && !m->fixed[j3]) continue;
                    if (i3 != j3) *v = 0;
                    else if (!(*v > 0)) *v = 1;
                }

    /* The right side. */
    for (i = 0; i < 3 * (size_t)m->nodes; i++)
        m->direction[i] = m->fixed[i]
                              ? m->total.value[9 * (size_t)fsi__sh_entry(t, (int)(i / 3), (int)(i / 3)) + 4 * (i % 3)] *
                                    m->fixed_step[i]
                              : -m->gradient[i] - m->lift[i];
    return FSI_OK;
}

/* Adds a multiple of the inertia to the matrix. */
static void fsi__sh_add_inertia(fsi__sh_step *w, double times)
{
    fsi__sh_impl *m = w->m;
    int r, a;
    if (!(times > 0)) return;
    for (r = 0; r < m->first_body; r++) for (a = 0; a < 3; a++)
        m->total.value[9 * (size_t)fsi__sh_entry(&m->total, r, r) + (size_t)(4 * a)] +=
            times * m->model.mass[r] / (w->h * w->h);
}

/* The system's right side. An exact matrix gets `lean` times its inertia in addition, which makes it definite and slows
   only buckling modes. */
FSI_API fsi_status fsi__sh_constrain(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    if (w->raised > 0) return FSI_OK;
    fsi__sh_add_inertia(w, w->exact ? w->lean - w->leant : 0);
    w->leant = w->lean;
    FSI__TRY(fsi__sh_hold_fixed(w));
    memcpy(m->scratch, m->direction, 3 * (size_t)m->nodes * sizeof(double));
    return FSI_OK;
}

/* Solves for the direction of the shell alone. */
static fsi_status fsi__sh_solve(fsi__sh_step *w)
{
    fsi_system system = fsi_default_system();
    system.matrix = &w->m->total;
    system.tolerance = 1e-6;
    return fsi_solver_solve(w->m->solver, &system, w->m->scratch, w->m->direction);
}

/* A projected matrix without positive pivots, by rounding, gets a larger diagonal. An exact one gets more inertia, and
   is replaced by the projected one after five failures. */
FSI_API fsi_status fsi__sh_retreat(fsi__sh_step *w, fsi_status status, int *again)
{
    fsi__sh_impl *m = w->m;
    int r, a;
    *again = FSI__SH_SOLVED;

    /* solved, or an error that no other matrix mends */
    if (status != FSI_ERROR_SINGULAR && status != FSI_ERROR_CONVERGENCE) {
        if (status == FSI_OK && w->exact) w->lean = w->lean > 0.2 ? w->lean / 4 : 0;
        fsi__sh_lap(w, &w->stats.seconds_solve);
        return status;
    }

    /* exact: more inertia, in the end projected instead */
    w->stats.retreats++;
    if (w->exact) {
        w->lean = w->lean > 0 ? w->lean * 8 : 1;
        w->exact = w->tries++ < 4;
        *again = w->exact ? FSI__SH_CONSTRAIN : FSI__SH_ASSEMBLE;
        return FSI_OK;
    }

    /* projected: a larger diagonal */
    for (r = 0; r < m->nodes; r++) for (a = 0; a < 3; a++)
        m->total.value[9 * (size_t)fsi__sh_entry(&m->total, r, r) + (size_t)(4 * a)] *= 1 + w->shift;
    w->shift *= 10;
    if (++w->raised == 10) return status;
    *again = FSI__SH_CONSTRAIN;
    return FSI_OK;
}

/* Displacement of a point along the direction; a prescribed one moves to its end if it moves in this Newton step. */
static void fsi__sh_point_way(const fsi__sh_impl *m, int point, int moves, double *way)
{
    const fsi__sh_hold h = fsi__sh_hold_of(m, &m->now, point);
    int a;
    for (a = 0; a < 3; a++) way[a] = 0;
    if (h.count > 1) fsi__sh_cross(m->direction + 3 * (size_t)h.node[1], h.arm, way);
    if (h.count > 0) for (a = 0; a < 3; a++) way[a] += m->direction[3 * (size_t)h.node[0] + (size_t)a];
    else if (moves) fsi__sh_sub(m->end_x + 3 * (size_t)point, m->now.x + 3 * (size_t)point, way);
}

/* Largest displacement along the direction of a free vertex or a point of a COUPLED body; for a twist, of a point one
   edge length away from its segment. */
static double fsi__sh_longest(const fsi__sh_impl *m)
{
    double longest = 0;
    int i;
    for (i = 0; i < m->first_body; i++) {
        const double *d = m->direction + 3 * i, arm = i < m->model.vertices ? 1 : m->model.mean_edge,
                     l = arm * arm * fsi__sh_dot(d, d);
        if (!m->fixed[3 * i] && l > longest) longest = l;
    }
    for (i = m->model.vertices; i < m->points; i++) {
        double way[3];
        if (m->owner[i] < 0) continue;
        fsi__sh_point_way(m, i, 1, way);
        if (fsi__sh_dot(way, way) > longest) longest = fsi__sh_dot(way, way);
    }
    return sqrt(longest);
}

/* Gradient of a contact's quadratic model at the end of the direction d = `way`: out = g + H d. */
static void fsi__sh_follow_contact(const double *way, int n, const double *g, const double *h, double *out)
{
    int i, k;
    for (i = 0; i < n; i++) for (out[i] = g[i], k = 0; k < n; k++) out[i] += h[i * n + k] * way[k];
}

/* Replaces the forces of a pair by opposite ones at the closest points of its features, with the total on the first
   one: the moments cancel too. */
static void fsi__sh_press_closest(fsi_pair kind, const double *x, double *f)
{
    const fsi_distance d = fsi_distance_between(kind, x);
    const int n = fsi_pair_points(kind), first = kind == FSI_EDGE_EDGE ? 2 : 1;
    double sum[3] = { 0, 0, 0 };
    int i, a;
    if (!(d.d > 0)) return;
    for (i = 0; i < first; i++) for (a = 0; a < 3; a++) sum[a] += f[3 * i + a];
    for (i = 0; i < n; i++) for (a = 0; a < 3; a++) f[3 * i + a] = d.weight[i] * sum[a];
}

/* Forces of contacts and friction in the linear system of this Newton step: they change the momenta of both sides by
   the same amount, to rounding, also before Newton's method has converged. */
static void fsi__sh_feel_direction(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    double x[12], way[12], g[12], h[144], f[12];
    int i, k, a;
    memset(m->felt, 0, 3 * (size_t)m->points * sizeof(double));
    for (i = 0; m->contact && i < m->contacts.actives + m->rubs; i++) {
        const fsi__sc_pair *p = i < m->contacts.actives ? &m->contacts.pair[m->contacts.active[i]] : NULL;
        const fsi__sh_rub *r = p ? NULL : &m->rub[i - m->contacts.actives];
        const int *node = p ? p->node : r->node, n = p ? fsi_pair_points(p->contact.kind) : r->points;

        /* Displacements of the pair's points in this Newton step. */
        for (k = 0; k < n; k++) fsi__sh_point_way(m, node[k], w->remaining > 0, way + 3 * k);

        /* Gradient of the quadratic model that this step minimises. */
        if (p) {
            fsi__sh_gather(m->now.x, node, n, x);
            for (k = 0; k < 3 * n; k++) x[k] += way[k];
            fsi__sh_follow_contact(way, 3 * n, m->contacts.pair_block + 156 * (size_t)i,
                                   m->contacts.pair_block + 156 * (size_t)i + 12, f);
            fsi__sh_press_closest(p->contact.kind, x, f);
        } else {
            fsi__sh_rub_model(w, r, g, h);
            fsi__sh_follow_contact(way, 3 * n, g, h, f);
        }
        for (k = 0; k < n; k++) for (a = 0; a < 3; a++) m->felt[3 * (size_t)node[k] + (size_t)a] -= f[3 * k + a];
    }
    w->felt = 1; /* if all of the direction is taken */
}

/* *t: the fraction of the straight motion to `trial` that is free of collisions. */
static fsi_status fsi__sh_clear(fsi__sh_step *w, double keep, double *t)
{
    fsi__sh_impl *m = w->m;
    fsi_status status;
    size_t i;
    for (i = 0; i < 3 * (size_t)m->points; i++) m->dx[i] = m->trial.x[i] - m->now.x[i];
    status = fsi__sh_find_pairs(m, w->fn, m->now.x, m->dx);
    if (status != FSI_OK) return status;
    if (!m->contacts.gaps_hold) fsi__sc_measure(&m->contacts, m->now.x);
    w->longest = fsi__sc_longest_way(m->dx, m->points);
    *t = fsi__sc_sweep(&m->contacts, m->now.x, m->dx, keep, w->longest, &w->in_the_way);
    return FSI_OK;
}

/* Points of bodies move on arcs, but chords are swept: is the chord to this trial free? */
static fsi_status fsi__sh_clear_arcs(fsi__sh_step *w, int *is)
{
    double t = 1;
    fsi_status status = w->m->contact && w->m->bodies > 0 ? fsi__sh_clear(w, 0.05, &t) : FSI_OK;
    *is = !(t < 1);
    return status;
}

/* Largest collision-free fraction of the direction. Contact forces are taken from this iteration if it may be the
   last. */
FSI_API fsi_status fsi__sh_filter(fsi__sh_step *w, double *t)
{
    w->before = w->stats.update;
    w->stats.update = fsi__sh_longest(w->m) / w->m->model.mean_edge;
    w->felt = 0;
    if (w->joint || w->iteration + 1 >= w->max_newton || w->stats.update <= w->tolerance) fsi__sh_feel_direction(w);
    *t = 1;
    fsi__sh_place_trial(w, 1);
    return w->m->contact ? fsi__sh_clear(w, 0.1, t) : FSI_OK;
}

FSI_API fsi_status fsi__sh_filter_arcs(fsi__sh_step *w, double *t)
{
    int is = 0;
    while (w->m->contact && *t < 1 && !is) {
        fsi__sh_place_trial(w, *t);
        FSI__TRY(fsi__sh_clear_arcs(w, &is));
        if (!is) *t = *t > 1e-9 ? *t / 2 : 0;
        if (!(*t > 0)) break;
    }
    fsi__sh_lap(w, &w->stats.seconds_contact);
    return FSI_OK;
}

/* Length of the next Newton step, extrapolated: the ratio of successive steps is taken as constant. */
FSI_API double fsi__sh_next_step(const fsi__sh_step *w)
{
    const double next = w->before > w->stats.update ? w->stats.update * w->stats.update / w->before : w->stats.update;
    return next * w->m->model.mean_edge;
}

static double fsi__sh_slope(const fsi__sh_impl *m)
{
    double sum = 0;
    size_t i;
    for (i = 0; i < 3 * (size_t)m->nodes; i++) if (!m->fixed[i]) sum += m->gradient[i] * m->direction[i];
    return sum;
}

static void fsi__sh_swap(fsi__sh_impl *m)
{
    const fsi__sh_place p = m->now;
    m->now = m->trial;
    m->trial = p;
    fsi__sh_show(m);
}

/* The line search: along the direction to a smaller energy; not required while prescribed points still move. */
FSI_API void fsi__sh_search(fsi__sh_step *w, int enough, double slope, double energy)
{
    w->done = !(w->remaining > 0) && enough;
    w->slope = fsi__sh_slope(w->m) + slope;
    w->merit = fsi__sh_energy(w, &w->m->now, 0) + energy;
    w->hidden = !(-w->slope > 1e-11 * fabs(w->merit));
    w->halved = w->found = 0;
}

static void fsi__sh_halve(fsi__sh_step *w, double *t)
{
    w->stats.halvings++;
    w->halved++;
    *t /= 2;
}

FSI_API fsi_status fsi__sh_try(fsi__sh_step *w, double *t, int *is)
{
    *is = 0;
    while (!w->found && w->halved < 40 && !*is) {
        *is = 1;
        fsi__sh_place_trial(w, *t);
        if (w->halved > 0) FSI__TRY(fsi__sh_clear_arcs(w, is));
        if (!*is) fsi__sh_halve(w, t);
    }
    if (!*is && !w->found) *t = 0;
    return FSI_OK;
}

FSI_API void fsi__sh_judge(fsi__sh_step *w, double *t, double energy)
{
    const double after = fsi__sh_energy(w, &w->m->trial, w->longest) + energy;
    w->found = w->remaining > 0 ? fsi_is_finite(after)
        : after <= w->merit + 1e-4 * *t * w->slope + 1e-13 * fabs(w->merit);
    if (!w->found) fsi__sh_halve(w, t);
}

/* `now` becomes the accepted trial; frames are transported. */
static void fsi__sh_move(fsi__sh_step *w, double t)
{
    fsi__sh_impl *m = w->m;
    int k;
    w->remaining *= t < 1 ? 1 - t : 0;
    w->crept = t < 1e-3 ? w->crept + 1 : 0;
    fsi__sh_swap(m);
    fsi__sm_carry(&m->model, m->now.q, m->frame_now, m->twist_now);
    for (k = 0; k < m->points; k++)
        m->contacts.way[k] = (1 + 1e-9) * fsi__sh_apart(m->now.x + 3 * (size_t)k, m->trial.x + 3 * (size_t)k);
    m->contacts.gaps_were = m->contacts.gaps_hold; /* at `trial` */
    m->contacts.gaps_hold = 0;
}

/* Does friction at the end of the last step (from `trial` to `now`) agree with the model that was solved? Sticking is
   stiff, 2 mu N/slip, so a step from rest is short even if a contact must slide. */
static int fsi__sh_friction_agrees(const fsi__sh_step *w)
{
    const fsi__sh_impl *m = w->m;
    double error = 0, all = 0;
    int i;
    for (i = 0; i < m->rubs; i++) {
        const fsi__sh_rub *r = &m->rub[i];
        double about[12], at[12], was[12], e;
        fsi__sh_gather(w->foresees ? m->foreseen_x : m->trial.x, r->node, r->points, about);
        fsi__sh_gather(m->now.x, r->node, r->points, at);
        fsi__sh_gather(m->start_x, r->node, r->points, was);
        e = r->friction.force * fsi_friction_error(&r->friction, about, at, was, w->slip,
                                                   w->exact ? FSI_HESSIAN_EXACT : FSI_HESSIAN_PROJECTED);
        error += e * e;
        all += r->friction.force * r->friction.force;
    }
    return error <= w->tolerance * w->tolerance * all;
}

/* Initial stiffness of contacts: a pair of mass m at half the range accelerates by some 5 max(range / dt^2, 10 m/s^2).
   Later state.stiffness keeps the adapted value: a jump with dt would throw resting contacts apart. */
static double fsi__sh_base_stiffness(const fsi__sh_step *w)
{
    const double range = w->m->contacts.range, dt = w->settle ? 0.01 : w->dt, a = range / (dt * dt);
    return 5 * range * (a > 10 ? a : 10);
}

/* Barrier force of a pair [1/m], times the fraction of its points that are free: prescribed points would need ever
   more. */
static double fsi__sh_push(const fsi__sh_impl *m, const fsi__sc_pair *p)
{
    const int n = fsi_pair_points(p->contact.kind);
    double x[12], push, free = 0, own = 0;
    fsi_distance at;
    int k;
    fsi__sh_gather(m->now.x, p->node, n, x);
    push = fsi_contact_push(&p->contact, x, &at);
    for (k = 0; k < n; k++) {
        const int i = p->node[k], is_own = i < m->model.vertices || m->owner[i] >= 0;
        own += is_own ? at.weight[k] * at.weight[k] : 0;
        free += is_own && !(i < m->model.vertices && m->fixed[3 * i]) ? at.weight[k] * at.weight[k] : 0;
    }
    return free < own ? push * (free / own) : push;
}

#define FSI__SH_NO_GAP 1e-3 /* of a pair's range */

/* A barrier that is too soft, as of contacts that began close together, loses nine tenths of a gap in each Newton step
   and regains at most a factor of two, while the matrix loses all accuracy. So if the smallest gap is tiny and
   decreases, stiffness first rises at once, as doubling cannot follow a gap that falls tenfold, then doubles as long as
   that continues (after Li et al. 2020, section 4.3). */
static void fsi__sh_stiffen(fsi__sh_step *w)
{
    const fsi__sh_impl *m = w->m;
    const double base = fsi__sh_base_stiffness(w);
    double least = 1;
    int i;
    for (i = 0; i < m->contacts.actives; i++) {
        const double gap =
            m->contacts.gap[m->contacts.active[i]] / m->contacts.pair[m->contacts.active[i]].contact.range;
        if (gap < least && fsi__sh_push(m, &m->contacts.pair[m->contacts.active[i]]) > 0) least = gap;
    }
    if (least < FSI__SH_NO_GAP && least < w->least_gap && w->kappa < 1e9 * base)
        w->kappa = w->kappa < base / 2 ? base : 2 * w->kappa;
    w->least_gap = least;
}

/* Lagged friction: normal forces and tangents at `now`, constant until the next lag. */
static fsi_status fsi__sh_lag_friction(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    fsi_status status;
    int i;
    m->rubs = 0;
    if (!m->contact || w->settle) return FSI_OK;

    /* Contacts within range. */
    memset(m->dx, 0, 3 * (size_t)m->points * sizeof(double));
    status = fsi__sh_find_pairs(m, w->fn, m->now.x, m->dx);
    if (status != FSI_OK) return status;
    fsi__sc_measure(&m->contacts, m->now.x);
    status = fsi__room_in(m->context, &m->rub, sizeof *m->rub, 0, &m->rub_capacity, m->contacts.actives, w->fn);

    /* Tangents, and normal force times mu, of those with friction. */
    for (i = 0; i < m->contacts.actives && status == FSI_OK; i++) {
        const fsi__sc_pair *p = &m->contacts.pair[m->contacts.active[i]];
        fsi__sh_rub *r = &m->rub[m->rubs];
        fsi_distance d;
        double x[12], push;
        if (!(p->friction > 0)) continue;
        r->points = fsi_pair_points(p->contact.kind);
        memcpy(r->node, p->node, sizeof r->node);
        fsi__sh_gather(m->now.x, p->node, r->points, x);
        push = fsi_contact_push(&p->contact, x, &d);
        fsi_friction_lag(&r->friction, p->contact.kind, &d, p->friction * w->kappa * p->mass * push);
        m->rubs++;
    }
    return status;
}

/* Begins Newton's method at the result of the last lag, with friction lagged there. */
FSI_API fsi_status fsi__sh_lag(fsi__sh_step *w, int lag)
{
    FSI__TRY(fsi__sh_lag_friction(w));
    w->lag = lag;
    w->iteration = w->done = w->stuck = 0;
    w->left = 2;
    w->close = w->crept = 0;
    w->least_gap = 0;
    w->lean = 0;
    w->stats.update = 0;
    return FSI_OK;
}

FSI_API int fsi__sh_iterates(const fsi__sh_step *w)
{
    return !w->done && (w->iteration < w->max_newton || w->remaining > 0);
}

/* An iteration begins. */
FSI_API fsi_status fsi__sh_collide(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    fsi__sh_lap(w, &w->stats.seconds_other);
    w->foresees = w->iteration == 0 && w->lag == 0 && m->rubs > 0;
    w->exact = w->close;
    w->tries = 0;
    w->leant = 0;
    memset(m->dx, 0, 3 * (size_t)m->points * sizeof(double));
    if (m->contact) {
        FSI__TRY(fsi__sh_find_pairs(m, w->fn, m->now.x, m->dx));
        fsi__sc_measure(&m->contacts, m->now.x);
        fsi__sh_stiffen(w);
    }
    fsi__sh_lap(w, &w->stats.seconds_contact);
    return FSI_OK;
}

/* Ends an iteration and decides if it was the last. t: the accepted fraction of the direction. */
FSI_API fsi_status fsi__sh_advance(fsi__sh_step *w, double t)
{
    const fsi__sh_impl *m = w->m;
    w->felt = w->felt && w->found && !(t < 1);
    if (w->found) fsi__sh_move(w, t);

    /* friction that was foreseen must be as it is; a search that found nothing, or next to nothing, ends it */
    if (w->done && w->found && m->rubs > 0 && (w->felt || w->foresees || !w->hidden))
        w->done = w->felt && fsi__sh_friction_agrees(w);
    /* at a kink: others' energy need not be smooth */
    if (!w->done && w->joint && !(w->remaining > 0) && w->crept > 1) w->done = 2;
    /* without descent: stop, unless the direction was exact or from predicted contacts; then try another one */
    if (!w->found && !w->done && !w->exact && !w->foresees) w->done = 2;
    w->close = w->found && !(w->remaining > 0) && w->stats.update < 0.01;
    fsi__sh_lap(w, &w->stats.seconds_search);
    w->stats.newton++;
    w->m->view.newton = w->stats.newton;

    /* The prescribed motion must make progress. */
    w->stuck = w->remaining > 0 && w->remaining > 0.999 * w->left ? w->stuck + 1 : 0;
    if (w->remaining > 0 && (w->stuck > 30 || w->iteration > w->max_newton + 1000 || w->done == 2))
        return fsi__sh_blocked(w);
    w->left = w->remaining;
    w->iteration++;
    if (!fsi__sh_iterates(w) && w->done != 1) w->stats.degraded += w->done == 0 || w->stats.update > 10 * w->tolerance;
    return FSI_OK;
}

/* The direction: with more inertia or projected derivatives until the matrix is definite. */
static fsi_status fsi__sh_direct(fsi__sh_step *w)
{
    int again = FSI__SH_ASSEMBLE;
    while (again != FSI__SH_SOLVED) {
        if (again == FSI__SH_ASSEMBLE) FSI__TRY(fsi__sh_assemble(w));
        FSI__TRY(fsi__sh_constrain(w));
        FSI__TRY(fsi__sh_retreat(w, fsi__sh_solve(w), &again));
    }
    return FSI_OK;
}

/* Newton's method, a shell alone. */
static fsi_status fsi__sh_newton(fsi__sh_step *w, int lag)
{
    double t;
    int is = 1;
    FSI__TRY(fsi__sh_lag(w, lag));
    while (fsi__sh_iterates(w)) {
        FSI__TRY(fsi__sh_collide(w));
        FSI__TRY(fsi__sh_direct(w));
        FSI__TRY(fsi__sh_filter(w, &t));
        FSI__TRY(fsi__sh_filter_arcs(w, &t));
        fsi__sh_search(w, w->stats.update <= w->tolerance, 0, 0);
        for (;;) {
            FSI__TRY(fsi__sh_try(w, &t, &is));
            if (!is) break;
            fsi__sh_judge(w, &t, 0);
        }
        FSI__TRY(fsi__sh_advance(w, t));
    }
    return FSI_OK;
}

/* ---- >>stepping ------------------------------------------------------------------------------------------------- */

/* Stiffness of contacts, as in the step before. Without contacts then, present ones were placed by the owner: they are
   pushed as by gravity, not thrown apart. */
static fsi_status fsi__sh_begin_stiffness(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    fsi_status status;
    double most = 0;
    int i;
    w->kappa = m->next.stiffness > 0 ? m->next.stiffness : fsi__sh_base_stiffness(w);
    if (m->next.stiffness > 0 || !m->contact) return FSI_OK;
    memset(m->dx, 0, 3 * (size_t)m->points * sizeof(double));
    status = fsi__sh_find_pairs(m, w->fn, m->now.x, m->dx);
    if (status != FSI_OK) return status;
    fsi__sc_measure(&m->contacts, m->now.x);
    for (i = 0; i < m->contacts.actives; i++) {
        const double push = fsi__sh_push(m, &m->contacts.pair[m->contacts.active[i]]);
        if (push > most) most = push;
    }
    if (w->kappa * most > 10) w->kappa = 10 / most;
    return FSI_OK;
}

static void fsi__sh_adapt_stiffness(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    const double base = fsi__sh_base_stiffness(w), least = base < w->kappa ? base : w->kappa;
    const double grow = w->kappa < base ? 1.2 : 4; /* from softness that it began with, without a kick */
    double sum = 0, square = 0, want;
    int i;
    for (i = 0; i < m->contacts.actives; i++) {
        /* acceleration of the lighter one */
        const double a = w->kappa * fsi__sh_push(m, &m->contacts.pair[m->contacts.active[i]]);
        sum += a;
        square += a * a;
    }
    want = sum > 0 ? square / sum * m->contacts.range : 0;
    if (want < w->kappa / 2) want = w->kappa / 2;
    if (want > w->kappa * grow) want = w->kappa * grow;
    if (want < least) want = least;
    m->next.stiffness = sum > 0 ? (want > 1e9 * base ? 1e9 * base : want) : 0;
}

/* Positions of prescribed points at fraction s of the step. */
static void fsi__sh_prescribe(fsi__sh_impl *m, double s, double *x)
{
    const size_t nv = 3 * (size_t)m->model.vertices;
    size_t i;
    int o, k, a;
    for (i = nv; i < 3 * (size_t)m->points; i++) x[i] = m->was_x[i] + s * (m->go_x[i] - m->was_x[i]);
    for (o = 0; o < m->obstacles; o++) {
        const fsi__sh_obstacle *ob = &m->obstacle[o];
        if (!ob->used || !ob->desc.body || ob->body >= 0 || !(s < 1)) continue;
        for (k = 0; k < ob->features.count[0]; k++) { /* on its arc, and what the owner moved it since, straight */
            const size_t p = 3 * (size_t)(ob->features.first + k);
            const fsi_pose pose = fsi_body_pose_at(ob->desc.body, (fsi_real)s);
            const fsi_vec3 at = fsi_pose_point(pose, fsi__sh_to(m->local + p)),
                           from = fsi_pose_point(ob->desc.body->pose, fsi__sh_to(m->local + p));
            double now[3], then[3];
            fsi__sh_from(at, now);
            fsi__sh_from(from, then);
            for (a = 0; a < 3; a++) x[p + (size_t)a] = now[a] + (1 - s) * (m->was_x[p + (size_t)a] - then[a]);
        }
    }
}

/* Coefficients of this substep: base, aim and h. */
static void fsi__sh_aim_nodes(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    const fsi__sh_state *n = &m->next;
    const int two = m->settings.integrator == FSI_SHELL_BDF2 && n->dt_before > 0 && !w->settle;
    const double r = two ? w->dt / n->dt_before : 0, c0 = two ? (1 + r) * (1 + r) / (1 + 2 * r) : 1,
                 c1 = two ? -r * r / (1 + 2 * r) : 0;
    double gravity[3];
    int i, a;
    fsi__sh_from(m->settings.gravity, gravity);
    w->h = two ? (1 + r) / (1 + 2 * r) * w->dt : w->dt;
    for (i = 0; i < m->first_body; i++) for (a = 0; a < 3; a++) {
        const int k = 3 * i + a;
        const double force = i < m->model.vertices ? m->force[k] / m->model.mass[i] + gravity[a] : 0,
                     v = w->settle ? 0 : c0 * n->v[k] + c1 * n->v_before[k];
        m->base[k] = c0 * n->x[k] + c1 * n->x_before[k];
        m->aim[k] = m->base[k] + w->h * v + w->h * w->h * force;
        m->start_q[k] = n->x[k];
    }
}

static void fsi__sh_aim_bodies(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    int i, a;
    for (i = 0; i < m->bodies; i++) {
        fsi__sh_body *b = &m->body[i];
        double turn[3];
        double *q = m->start_q + 3 * (size_t)(m->first_body + 2 * i);
        for (a = 0; a < 3; a++) {
            b->aim[a] = b->owner_center[a] + w->dt * b->velocity[a] + w->dt * w->dt * b->push[a] / b->mass;
            turn[a] = w->dt * (b->spin[a] + w->dt * b->turning[a]);
            q[a] = b->center[a];
            q[3 + a] = 0;
        }
        fsi__sh_matrix_of(fsi_quat_unit(fsi_quat_mul(fsi_quat_from_rotation_vector(fsi__sh_to(turn)), b->owner_turn)),
                          b->aim_turn);
        m->now.turn[i] = b->turn;
    }
}

FSI_API void fsi__sh_push_bodies(fsi__sh_step *w, const double *impulse)
{
    fsi__sh_impl *m = w->m;
    int i, a;
    for (i = 0; i < m->bodies; i++) {
        fsi__sh_body *b = &m->body[i];
        const double *given = impulse + 6 * (size_t)i;
        double spin[3];
        fsi__sh_from(fsi_m3_mul_v3(fsi_m3_inverse(fsi_body_world_tensor(b->owner_turn, b->body->inertia)),
            fsi__sh_to(given + 3)), spin);
        for (a = 0; a < 3; a++) {
            b->velocity[a] += given[a] / b->mass;
            b->spin[a] += spin[a];
        }
    }
    fsi__sh_aim_bodies(w);
}

/* Extrapolated positions at the end of the substep: free points with their velocity, prescribed ones where they must
   be. */
static void fsi__sh_foresee(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    int i, a;
    memcpy(m->foreseen_x, m->end_x, 3 * (size_t)m->points * sizeof(double));
    for (i = 0; i < 3 * m->model.vertices; i++)
        if (!m->fixed[i]) m->foreseen_x[i] = m->start_x[i] + w->dt * m->next.v[i];
    for (i = m->model.vertices; i < m->points; i++) {
        const fsi__sh_hold h = fsi__sh_hold_of(m, &m->now, i);
        const fsi__sh_body *b = &m->body[m->owner[i] >= 0 ? m->owner[i] : 0];
        double turn[3];
        if (h.count < 2) continue;
        fsi__sh_cross(b->spin, h.arm, turn);
        for (a = 0; a < 3; a++) m->foreseen_x[3 * i + a] = m->start_x[3 * i + a] + w->dt * (b->velocity[a] + turn[a]);
    }
}

static int fsi__sh_find_attachment(const fsi__sh_impl *m, int vertex)
{
    int i;
    for (i = 0; i < m->attachments; i++) if (m->attachment[i].vertex == vertex) return i;
    return -1;
}

/* A force on an obstacle, at x. */
static void fsi__sh_press(const fsi__sh_step *w, int obstacle, double sign, const double *f, const double *x)
{
    fsi__sh_obstacle *o = &w->m->obstacle[obstacle];
    double arm[3] = { 0, 0, 0 }, moment[3], spin[3];
    int a;
    if (o->desc.body && o->body < 0) fsi__sh_from(fsi_body_pose_at(o->desc.body, (fsi_real)w->at).position, arm);
    fsi__sh_sub(x, arm, arm);
    fsi__sh_cross(x, f, moment);
    fsi__sh_cross(arm, f, spin);
    for (a = 0; a < 3; a++) {
        o->sum[a] += w->share * sign * f[a];
        o->sum[3 + a] += w->share * sign * moment[a];
        o->sum[6 + a] += w->share * sign * spin[a];
    }
}

/* Constraint forces of prescribed vertices: the gradient of all energies, of contacts by m->felt. The opposite acts on
   the obstacles that vertices are attached to. */
static fsi_status fsi__sh_feel_held(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    fsi_status status;
    double g[6];
    int i, k, a, held = 0;

    /* Gradient of elastic energy and springs at held vertices. */
    for (i = 0; i < m->model.vertices; i++) held += m->held[i];
    if (held == 0) return FSI_OK;
    fsi__sh_elements(w, m->now.q, FSI__SM_GRADIENT);
    status = fsi_assembly_vector(m->elastic, m->element_vector, m->gradient);
    if (status != FSI_OK) return status;
    for (i = 0; i < m->springs; i++) {
        const fsi__sh_spring *s = &m->spring[i];
        const int other = s->used ? fsi__sh_spring_end(m, s) : -1;
        if (!s->used) continue;
        fsi__sh_pull(w, s, m->now.x + 3 * (size_t)s->desc.vertex, m->now.x + 3 * (size_t)other, g, NULL);
        for (a = 0; a < 3; a++) m->gradient[3 * s->desc.vertex + a] += g[a];
        for (a = 0; a < 3 && other < m->model.vertices; a++) m->gradient[3 * other + a] += g[3 + a];
    }

    /* Add inertia and drag, less contact: the force that holds them, on bodies where they are attached. */
    for (i = 0; i < m->model.vertices; i++) for (a = 0; a < 3 && m->held[i]; a++) {
        k = 3 * i + a;
        m->gradient[k] += m->model.mass[i] * (m->now.q[k] - m->aim[k]) / (w->h * w->h) +
                          m->model.drag_mass[i] * (m->now.q[k] - m->base[k]) / w->h - m->felt[k];
        m->hold_sum[k] += w->share * m->gradient[k];
    }
    for (i = 0; i < m->attachments; i++)
        fsi__sh_press(w, m->attachment[i].obstacle, -1, m->gradient + 3 * m->attachment[i].vertex,
                      m->now.q + 3 * m->attachment[i].vertex);
    return FSI_OK;
}

/* Springs pull on their anchors. */
static void fsi__sh_feel_springs(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    int i, a;
    for (i = 0; i < m->springs; i++) {
        fsi__sh_spring *s = &m->spring[i];
        const int ends[2] = { s->desc.vertex, s->used ? fsi__sh_spring_end(m, s) : 0 };
        double g[6];
        if (!s->used) continue;
        fsi__sh_pull(w, s, m->now.x + 3 * (size_t)ends[0], m->now.x + 3 * (size_t)ends[1], g, NULL);
        for (a = 0; a < 3; a++) s->sum[a] -= w->share * g[a];
        if (s->desc.other < 0 && s->desc.obstacle >= 0)
            fsi__sh_press(w, s->desc.obstacle, -1, g + 3, m->now.x + 3 * (size_t)ends[1]);
    }
}

static void fsi__sh_feel_obstacles(fsi__sh_step *w)
{
    const fsi__sh_impl *m = w->m;
    int i, k;
    for (k = 0; k < m->obstacles; k++) for (i = 0; m->obstacle[k].used && i < m->obstacle[k].features.count[0]; i++) {
        const size_t at = 3 * (size_t)(m->obstacle[k].features.first + i);
        fsi__sh_press(w, k, 1, m->felt + at, m->now.x + at);
    }
}

/* Forces of contacts and friction at `now`. */
static void fsi__sh_feel_contacts(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    double x[12], g[12];
    int i, k, a;
    memset(m->felt, 0, 3 * (size_t)m->points * sizeof(double));
    for (i = 0; i < m->contacts.actives; i++) {
        const fsi__sc_pair *p = &m->contacts.pair[m->contacts.active[i]];
        const int n = fsi_pair_points(p->contact.kind);
        fsi__sh_gather(m->now.x, p->node, n, x);
        fsi_contact_energy(&p->contact, x, g, NULL, FSI_HESSIAN_EXACT);
        for (k = 0; k < n; k++)
            for (a = 0; a < 3; a++) m->felt[3 * (size_t)p->node[k] + (size_t)a] -= w->kappa * p->mass * g[3 * k + a];
    }
    for (i = 0; i < m->rubs; i++) {
        fsi__sh_rub_energy(w, &m->rub[i], m->now.x, g, NULL);
        for (k = 0; k < m->rub[i].points; k++)
            for (a = 0; a < 3; a++) m->felt[3 * (size_t)m->rub[i].node[k] + (size_t)a] -= g[3 * k + a];
    }
}

/* Velocities change by `dv` at `now`, by the matrix in `total`. The forces of all energies become g + h H dv, on both
   sides: the difference is added to the means. */
static fsi_status fsi__sh_feel_change(fsi__sh_step *w, const double *dv)
{
    fsi__sh_impl *m = w->m;
    fsi_status status;
    double hold[3];
    size_t j;
    int i, k, a;

    /* Change of contact forces, and of the forces on held vertices, by the change dv of velocities. */
    memcpy(m->dx, m->felt, 3 * (size_t)m->points * sizeof(double));
    memset(m->direction, 0, 3 * (size_t)m->nodes * sizeof(double));
    fsi__sh_feel_direction(w);
    /* motion of held vertices: the matrix `total` also has contacts, which start at the gradient */
    for (i = 0; i < 3 * m->model.vertices; i++) m->lift[i] = m->dx[i] - m->felt[i];
    for (i = 0; i < 3 * m->nodes; i++) m->direction[i] = w->h * dv[i];
    fsi__sh_feel_direction(w);
    status = fsi_csr_multiply(m->context, &m->total, m->direction, m->scratch);
    if (status != FSI_OK) return status;

    /* Add them to the sums of the step: contact, obstacles, held vertices. */
    for (j = 0; j < 3 * (size_t)m->points; j++) {
        m->dx[j] = m->felt[j] - m->dx[j];
        m->sum[j] += w->share * m->dx[j];
    }
    for (k = 0; k < m->obstacles; k++) for (i = 0; m->obstacle[k].used && i < m->obstacle[k].features.count[0]; i++) {
        const size_t at = 3 * (size_t)(m->obstacle[k].features.first + i);
        fsi__sh_press(w, k, 1, m->dx + at, m->now.x + at);
    }
    for (i = 0; i < m->model.vertices; i++) {
        if (!m->held[i]) continue;
        k = fsi__sh_find_attachment(m, i);
        for (a = 0; a < 3; a++)
            m->hold_sum[3 * i + a] += w->share * (hold[a] = m->scratch[3 * i + a] + m->lift[3 * i + a]);
        if (k >= 0) fsi__sh_press(w, m->attachment[k].obstacle, -1, hold, m->now.x + 3 * i);
    }
    return FSI_OK;
}

FSI_API void fsi__sh_node_velocities(const fsi__sh_step *w, double *v)
{
    const fsi__sh_impl *m = w->m;
    const int n = m->first_body;
    int b;
    memcpy(v, m->next.v, 3 * (size_t)n * sizeof *v);
    for (b = 0; b < m->bodies; b++) {
        memcpy(v + 3 * (size_t)(n + 2 * b), m->body[b].velocity, 3 * sizeof *v);
        memcpy(v + 3 * (size_t)(n + 2 * b + 1), m->body[b].spin, 3 * sizeof *v);
    }
}

FSI_API fsi_status fsi__sh_change_velocities(fsi__sh_step *w, const double *v)
{
    fsi__sh_impl *m = w->m;
    const int n = 3 * m->first_body;
    int i, b, a;
    fsi__sh_node_velocities(w, m->scratch);
    for (i = 0; i < 3 * m->nodes; i++) m->scratch[i] = m->fixed[i] ? 0 : v[i] - m->scratch[i];
    for (i = 0; i < n; i++) if (!m->fixed[i]) m->next.v[i] = v[i];
    for (b = 0; b < m->bodies; b++) for (a = 0; a < 3; a++) {
        m->body[b].velocity[a] = v[n + 6 * b + a];
        m->body[b].spin[a] = v[n + 6 * b + 3 + a];
    }
    if (!fsi__sh_is_finite(v + n, 6 * m->bodies))
        return fsi__fail(m->context, FSI_ERROR_NAN, w->fn, -1, 0, "the velocity of a body is not finite");
    return fsi__sh_feel_change(w, m->scratch);
}

FSI_API void fsi__sh_set_body_velocity(fsi__sh_step *w, int body, fsi_vec3 velocity, fsi_vec3 spin)
{
    fsi__sh_take(velocity, w->m->body[body].velocity);
    fsi__sh_take(spin, w->m->body[body].spin);
}

/* Forces of contacts and friction on every point, and the means of all published forces. */
static fsi_status fsi__sh_feel(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    size_t j;
    int i;
    m->contacts.actives = 0;
    if (m->contact) fsi__sc_measure(&m->contacts, m->now.x);
    if (!w->felt) fsi__sh_feel_contacts(w);
    if (w->settle || w->stats.substeps == 0) { /* the first of a step */
        memset(m->sum, 0, 3 * (size_t)m->points * sizeof(double));
        memset(m->hold_sum, 0, 3 * (size_t)m->model.vertices * sizeof(double));
        for (i = 0; i < m->springs; i++) memset(m->spring[i].sum, 0, sizeof m->spring[i].sum);
        for (i = 0; i < m->obstacles; i++) memset(m->obstacle[i].sum, 0, sizeof m->obstacle[i].sum);
    }
    for (j = 0; j < 3 * (size_t)m->points; j++) m->sum[j] += w->share * m->felt[j];
    fsi__sh_feel_obstacles(w);
    fsi__sh_feel_springs(w);
    return fsi__sh_feel_held(w);
}

/* A point of an obstacle: `local` is in the axes of its body, at fraction s of the step; without a body, barycentric
   weights on a face of its mesh, whose points are at x, and the distance along its normal. */
static void fsi__sh_place_attached(const fsi__sh_impl *m, int obstacle, int face, const double *local, fsi_real s,
                                   const double *x, double *out)
{
    const fsi__sh_obstacle *o = &m->obstacle[obstacle];
    const double *p[3];
    double u[3], v[3], n[3], l;
    int k, a;

    /* Fixed to a body. */
    if (o->desc.body) {
        fsi__sh_from(fsi_pose_point(fsi_body_pose_at(o->desc.body, s), fsi__sh_to(local)), out);
        return;
    }

    /* Fixed to a face: its edges and normal. */
    for (k = 0; k < 3; k++)
        p[k] =
            x + 3 * (size_t)(o->features.first +
                             o->desc.mesh->faces[o->desc.mesh->corners * face + (k < o->desc.mesh->corners ? k : 0)]);
    fsi__sh_sub(p[1], p[0], u);
    fsi__sh_sub(p[2], p[0], v);
    if (o->desc.mesh->corners == 3) fsi__sh_cross(u, v, n);
    else {
        n[0] = -u[1];
        n[1] = u[0];
        n[2] = 0;
    }

    /* Barycentric weights, and the distance along the normal. */
    l = sqrt(fsi__sh_dot(n, n));
    for (a = 0; a < 3; a++)
        out[a] = p[0][a] + local[0] * u[a] + (o->desc.mesh->corners == 3 ? local[1] * v[a] : 0) +
                 (l > 0 ? local[2] * n[a] / l : 0);
}

/* A vertex attached to a body follows the body's arc; an initial offset from it vanishes linearly over the step. */
static void fsi__sh_guide_attached(fsi__sh_impl *m, double s)
{
    int i, a;
    for (i = 0; i < m->attachments && s < 1; i++) {
        const fsi__sh_attachment *t = &m->attachment[i];
        double from[3], now[3];
        if (!m->obstacle[t->obstacle].desc.body) continue;
        fsi__sh_place_attached(m, t->obstacle, t->face, t->local, 0, NULL, from);
        fsi__sh_place_attached(m, t->obstacle, t->face, t->local, (fsi_real)s, NULL, now);
        for (a = 0; a < 3; a++)
            m->end_q[3 * t->vertex + a] = now[a] + (1 - s) * (m->pin_from[3 * t->vertex + a] - from[a]);
    }
}

/* Prescribed numbers of the nodes, and their values at the end of the substep, s of the step. */
static void fsi__sh_mark_fixed(fsi__sh_step *w, double s)
{
    fsi__sh_impl *m = w->m;
    const fsi__sm_model *p = &m->model;
    int i, a;
    memset(m->fixed, 0, 3 * (size_t)m->nodes);
    memcpy(m->end_q, m->start_q, 3 * (size_t)m->nodes * sizeof(double));
    w->remaining = 0;

    /* Pinned and attached vertices. */
    for (i = 0; i < p->vertices; i++) for (a = 0; a < 3; a++) {
        if (p->dim == 2 && a == 2) m->fixed[3 * i + a] = 1;
        if (!m->held[i]) continue;
        m->fixed[3 * i + a] = 1;
        m->end_q[3 * i + a] = m->pin_from[3 * i + a] + s * (m->pin_to[3 * i + a] - m->pin_from[3 * i + a]);
    }
    fsi__sh_guide_attached(m, s);
    for (i = 0; i < 3 * p->vertices; i++)
        if (m->end_q[i] < m->start_q[i] || m->end_q[i] > m->start_q[i]) w->remaining = 1;

    /* Twists; the other two numbers of their nodes are unused. */
    for (i = 0; i < p->twists; i++) {
        const int k = 3 * (p->vertices + i), segment = p->twist_of[i];
        m->fixed[k + 1] = m->fixed[k + 2] = 1;
        if (!m->s->twist_held[segment]) continue;
        m->fixed[k] = 1;
        m->end_q[k] = m->twist_from[segment] + s * ((double)m->s->twist[segment] - m->twist_from[segment]);
        if (m->end_q[k] < m->start_q[k] || m->end_q[k] > m->start_q[k]) w->remaining = 1;
    }

    /* In 2D a body moves in the plane and turns about z. */
    if (p->dim == 2)
        for (i = 0; i < m->bodies; i++)
            m->fixed[3 * (m->first_body + 2 * i) + 2] = m->fixed[3 * (m->first_body + 2 * i + 1)] =
                m->fixed[3 * (m->first_body + 2 * i + 1) + 1] = 1;

    /* Points of obstacles that are not COUPLED. */
    memcpy(m->end_x, m->end_q, 3 * (size_t)p->vertices * sizeof(double));
    for (i = 3 * p->vertices; i < 3 * m->points; i++)
        if (m->owner[i / 3] < 0 && (m->end_x[i] < m->now.x[i] || m->end_x[i] > m->now.x[i])) w->remaining = 1;
}

static double fsi__sh_farthest(const double *x, const double *y, int n)
{
    double farthest = 0;
    int i;
    for (i = 0; i < n; i++) {
        const double d = fsi__sh_apart(x + 3 * i, y + 3 * i);
        if (d > farthest) farthest = d;
    }
    return farthest;
}

/* Velocities and history of the next state. */
static void fsi__sh_advance_state(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    fsi__sh_state *n = &m->next;
    const int two = m->settings.integrator == FSI_SHELL_BDF2;
    int i, a;

    /* Vertices and twists. */
    for (i = 0; i < 3 * m->first_body; i++) {
        n->x_before[i] = n->x[i];
        n->v_before[i] = n->v[i];
        n->v[i] = w->settle ? 0 : (m->now.q[i] - m->base[i]) / w->h;
        n->x[i] = m->now.q[i];
    }
    w->moved = fsi__sh_farthest(n->x, n->x_before, m->model.vertices);
    n->dt_before = two && !w->settle ? w->dt : 0;

    /* COUPLED bodies: velocities from the change of pose. */
    for (i = 0; i < m->bodies; i++) {
        fsi__sh_body *b = &m->body[i];
        const double *c = m->now.q + 3 * (size_t)(m->first_body + 2 * i);
        const fsi_vec3 turned = fsi_quat_rotation_vector(fsi_quat_mul(m->now.turn[i], fsi_quat_conj(b->owner_turn)));
        for (a = 0; a < 3; a++) {
            b->velocity[a] = w->settle ? 0 : (c[a] - b->owner_center[a]) / w->dt;
            b->center[a] = b->owner_center[a] = c[a];
        }
        fsi__sh_from(turned, b->spin);
        for (a = 0; a < 3; a++) b->spin[a] *= w->settle ? 0 : 1 / w->dt;
        b->turn = b->owner_turn = m->now.turn[i];
    }
    if (!w->settle) n->time += w->dt;
}

/* Begins a substep of dt seconds: predicted, prescribed and lagged quantities. */
FSI_API fsi_status fsi__sh_predict(fsi__sh_step *w, double dt, double share, double at)
{
    fsi__sh_impl *m = w->m;
    int i;
    w->dt = dt;
    w->share = share;
    w->at = at;

    /* Predicted state, and `now` at the beginning of the substep. */
    fsi__sh_aim_nodes(w);
    fsi__sh_aim_bodies(w);
    memcpy(m->now.q, m->start_q, 3 * (size_t)m->nodes * sizeof(double));
    memcpy(m->now.x, m->start_q, 3 * (size_t)m->model.vertices * sizeof(double));
    memcpy(m->now.x + 3 * (size_t)m->model.vertices, m->stand_x + 3 * (size_t)m->model.vertices,
           3 * (size_t)(m->points - m->model.vertices) * sizeof(double));
    fsi__sh_spread_bodies(m, &m->now);
    memcpy(m->start_x, m->now.x, 3 * (size_t)m->points * sizeof(double));

    /* Prescribed motion, wind, lengths of springs. */
    fsi__sh_prescribe(m, at, m->end_x);
    fsi__sh_mark_fixed(w, at);
    if (m->blows)
        fsi__sm_lag_wind(&m->model, m->next.x, m->next.v, m->air, (double)m->settings.drag,
                         (double)m->settings.air_density, m->wind);
    for (i = 0; i < m->springs; i++)
        if (m->spring[i].used)
            m->spring[i].length_before = fsi__sh_apart(m->now.x + 3 * (size_t)m->spring[i].desc.vertex,
                                                       m->now.x + 3 * (size_t)fsi__sh_spring_end(m, &m->spring[i]));

    /* Pairs and pattern are found again; extrapolated positions; dampers. */
    m->contacts.list_holds = m->pattern_holds = 0;
    w->slip = (double)m->settings.friction_speed * w->dt;
    fsi__sh_foresee(w);
    fsi__sh_damp(w);
    fsi__sh_show(m);
    return fsi__sh_begin_stiffness(w);
}

/* The result of Newton's method becomes the state. */
FSI_API fsi_status fsi__sh_accept(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    FSI__TRY(fsi__sh_feel(w));
    fsi__sh_adapt_stiffness(w);
    fsi__sh_advance_state(w);
    memcpy(m->stand_x, m->now.x, 3 * (size_t)m->points * sizeof(double));
    w->stats.substeps++;
    return FSI_OK;
}

static fsi_status fsi__sh_substep(fsi__sh_step *w, double dt, double share, double at)
{
    const int lags = w->settle ? 1 : w->m->settings.friction_iterations;
    int i;
    FSI__TRY(fsi__sh_predict(w, dt, share, at));
    for (i = 0; i < lags; i++) FSI__TRY(fsi__sh_newton(w, i));
    return fsi__sh_accept(w);
}

/* ---- >>obstacles in a step --------------------------------------------------------------------------------------- */

static void fsi__sh_fix_to(const fsi__sh_impl *m, int obstacle, fsi_vec3 at, int *face, double *local)
{
    const fsi__sh_obstacle *o = &m->obstacle[obstacle];
    const fsi_mesh *mesh = o->desc.mesh;
    fsi_mesh_hit hit;
    double d[3], n[3];
    *face = -1;
    if (o->desc.body) {
        fsi__sh_from(fsi_pose_local(o->desc.body->pose, at), local);
        return;
    }
    hit = fsi_mesh_closest(mesh, at, FSI_REAL_MAX, -1);
    *face = hit.face < 0 ? 0 : hit.face;
    local[0] = (double)hit.bary[1];
    local[1] = (double)hit.bary[2];
    fsi__sh_from(fsi_v3_sub(at, hit.point), d);
    fsi__sh_from(mesh->face_normals[*face], n);
    local[2] = fsi__sh_dot(d, n);
}

/* Position of a spring's anchor at a fraction of the step. */
static void fsi__sh_place_anchor(const fsi__sh_impl *m, const fsi__sh_spring *s, fsi_real share, const double *x,
                                 double *out)
{
    if (!s->used || s->desc.other >= 0 || s->desc.obstacle < 0) memcpy(out, s->stand, 3 * sizeof *out);
    else fsi__sh_place_attached(m, s->desc.obstacle, s->face, s->local, share, x, out);
}

/* Present positions: vertices from the state and the caller's changes since, all others from the last step. Returns
   1 if the caller has changed any; the next step refuses those that are not finite. */
static int fsi__sh_stand(const fsi_shell *s, fsi__sh_impl *m)
{
    int i, moved = 0;
    memcpy(m->stand_x, m->state.x, 3 * (size_t)m->model.vertices * sizeof(double));
    memcpy(m->stand_x + 3 * (size_t)m->model.vertices, m->was_x + 3 * (size_t)m->model.vertices,
           3 * (size_t)(m->points - m->model.vertices) * sizeof(double));
    for (i = 0; i < m->model.vertices; i++)
        if (fsi_v3_is_finite(s->position[i])) moved |= fsi__sh_take(s->position[i], m->stand_x + 3 * (size_t)i);
    return moved;
}

/* Positions of the vertices of an obstacle's mesh at a pose of its body. */
static void fsi__sh_place_obstacle(const fsi__sh_obstacle *o, fsi_pose pose, double *x)
{
    int i;
    for (i = 0; i < o->features.count[0]; i++) {
        if (o->desc.body) fsi__sh_from(fsi_pose_point(pose, fsi__sh_to(o->local + 3 * (size_t)i)), x + 3 * (size_t)i);
        else fsi__sh_from(o->desc.mesh->vertices[i], x + 3 * (size_t)i);
    }
}

static void fsi__sh_read_body(fsi__sh_body *b)
{
    const fsi_body *y = b->body;
    const fsi_mat3 inertia = fsi_body_world_tensor(y->pose.orientation, y->inertia), inverse = fsi_m3_inverse(inertia);
    const double trace = (double)y->inertia.m[0] + (double)y->inertia.m[4] + (double)y->inertia.m[8];
    int k;
    b->mass = (double)y->mass;
    fsi__sh_from(y->pose.position, b->owner_center);
    fsi__sh_from(y->velocity, b->velocity);
    fsi__sh_from(y->force, b->push);
    fsi__sh_from(y->angular_velocity, b->spin);
    fsi__sh_from(fsi_m3_mul_v3(inverse, y->torque), b->turning);
    memcpy(b->center, b->left_center, sizeof b->center);
    b->turn = b->left_turn;
    b->owner_turn = y->pose.orientation;
    for (k = 0; k < 9; k++) b->moment[k] = (k % 4 == 0 ? trace / 2 : 0) - (double)y->inertia.m[k];
}

/* Positions of obstacles, anchors and attached vertices at the end of the step. */
static fsi_status fsi__sh_read_obstacles(fsi__sh_impl *m, const char *fn)
{
    int o, i, a;
    for (o = 0; o < m->obstacles; o++) {
        fsi__sh_obstacle *ob = &m->obstacle[o];
        if (!ob->used) continue;

        /* The body must be valid, and in the mode in which it was added. */
        if (ob->desc.body) {
            const fsi_status status = fsi_body_check(m->context, ob->desc.body, o);
            if (status != FSI_OK) return status;
            if ((ob->desc.body->mode == FSI_BODY_COUPLED) != (ob->body >= 0))
                return fsi__fail(m->context, FSI_ERROR_ARGUMENT, fn, o, 0,
                                 "the body of obstacle %d changed its mode: remove the obstacle and add it again", o);
        }

        /* Vertices of the obstacle at the end of the step. */
        fsi__sh_place_obstacle(ob, ob->desc.body ? ob->desc.body->end : fsi_default_body().pose,
                               m->go_x + 3 * (size_t)ob->features.first);
        for (i = 0; i < 3 * ob->features.count[0]; i++)
            if (!fsi_is_finite(m->go_x[3 * (size_t)ob->features.first + (size_t)i]))
                return fsi__fail(m->context, FSI_ERROR_NAN, fn, o, 0, "obstacle %d: its place is not finite", o);
    }

    /* COUPLED bodies, anchors of springs, attached vertices. */
    for (i = 0; i < m->bodies; i++) fsi__sh_read_body(&m->body[i]);
    for (i = 0; i < m->springs; i++)
        fsi__sh_place_anchor(m, &m->spring[i], 1, m->go_x, m->go_x + 3 * (size_t)(m->first_anchor + i));
    for (i = 0; i < m->attachments; i++) {
        const fsi__sh_attachment *t = &m->attachment[i];
        m->held[t->vertex] = 1;
        fsi__sh_place_attached(m, t->obstacle, t->face, t->local, 1, m->go_x, m->pin_to + 3 * (size_t)t->vertex);
        for (a = 0; a < 3; a++) m->pin_from[3 * t->vertex + a] = m->next.x[3 * t->vertex + a];
    }
    return FSI_OK;
}

/* Body after a step of 0 s: no impulse, pose unchanged. */
static void fsi__sh_calm_body(fsi_body *b)
{
    b->impulse = b->angular_impulse = b->reaction_force = b->reaction_torque = fsi_v3(0, 0, 0);
    if (b->mode != FSI_BODY_COUPLED) return;
    b->new_velocity = b->velocity;
    b->new_angular_velocity = b->angular_velocity;
    b->end = b->pose;
}

static void fsi__sh_publish_obstacle(fsi__sh_step *w, fsi__sh_obstacle *o)
{
    fsi__sh_impl *m = w->m;
    const size_t first = 3 * (size_t)o->features.first;
    fsi_body *b = o->body < 0 ? o->desc.body : NULL;
    int i;
    memcpy(o->stand, m->stand_x + first, 3 * (size_t)o->features.count[0] * sizeof(double));
    memcpy(o->force, o->sum, sizeof o->force);
    memcpy(o->torque, o->sum + 3, sizeof o->torque);
    if (o->desc.body && !(w->dt > 0)) fsi__sh_calm_body(o->desc.body);
    else if (b) {
        const fsi__sh_obstacle *leading = m->obstacle; /* of those on this body: the impulses of all add up */
        while (!leading->used || leading->desc.body != b) leading++;
        if (leading == o) fsi_body_begin_step(b, (fsi_real)w->dt);
        b->impulse = fsi_v3_madd(b->impulse, (fsi_real)w->dt, fsi__sh_to(o->sum));
        b->angular_impulse = fsi_v3_madd(b->angular_impulse, (fsi_real)w->dt, fsi__sh_to(o->sum + 6));
        fsi_body_end_step(b, (fsi_real)w->dt);
    }
    for (i = 0; o->desc.vertex_force && i < o->desc.mesh->source_count; i++) o->desc.vertex_force[i] = fsi_v3(0, 0, 0);
    for (i = 0; o->desc.vertex_force && i < o->features.count[0]; i++)
        o->desc.vertex_force[o->desc.mesh->vertex_source[i]] = fsi__sh_to(m->sum + first + 3 * (size_t)i);
}

/* A COUPLED body: velocities from its change of pose, impulses from its change of velocity. */
static void fsi__sh_publish_body(const fsi__sh_step *w, fsi__sh_body *b)
{
    fsi_body *y = b->body;
    const fsi_real dt = (fsi_real)w->dt;
    const fsi_mat3 inertia = fsi_body_world_tensor(y->pose.orientation, y->inertia);
    fsi_vec3 v, spin;
    if (!(dt > 0)) return; /* fsi__sh_calm_body has it */
    fsi_body_begin_step(y, dt);
    v = fsi__sh_to(b->velocity);
    spin = fsi__sh_to(b->spin);
    y->impulse = fsi_v3_scale(fsi_v3_sub(v, y->new_velocity), y->mass);
    y->angular_impulse = fsi_m3_mul_v3(inertia, fsi_v3_sub(spin, y->new_angular_velocity));
    y->new_velocity = v;
    y->new_angular_velocity = spin;
    fsi_body_end_step(y, dt);
    y->end.position = fsi__sh_to(b->center);
    y->end.orientation = b->left_turn = b->turn;
    memcpy(b->left_center, b->center, sizeof b->center);
}

static double fsi__sh_spring_energy(const fsi__sh_impl *m, const fsi__sh_spring *s, const double *x)
{
    const double l = fsi__sh_apart(x + 3 * (size_t)s->desc.vertex, x + 3 * (size_t)fsi__sh_spring_end(m, s)) -
                     (double)s->desc.rest_length;
    return (double)s->desc.stiffness / 2 * l * l;
}

/* ---- >>step ------------------------------------------------------------------------------------------------------ */

static void fsi__sh_copy_state(const fsi__sh_impl *m, fsi__sh_state *to, const fsi__sh_state *from)
{
    const size_t n = 3 * (size_t)m->first_body * sizeof(double);
    memcpy(to->x, from->x, n);
    memcpy(to->v, from->v, n);
    memcpy(to->x_before, from->x_before, n);
    memcpy(to->v_before, from->v_before, n);
    if (m->model.segments) memcpy(to->frame, from->frame, (size_t)m->model.segments * sizeof *to->frame);
    if (m->model.count[FSI__SM_JOINT])
        memcpy(to->twist, from->twist, (size_t)m->model.count[FSI__SM_JOINT] * sizeof(double));
    to->dt_before = from->dt_before;
    to->stiffness = from->stiffness;
    to->time = from->time;
}

static fsi_status fsi__sh_check_public(const fsi_shell *s, const char *fn)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    int i, what;

    /* Vectors of vertices. */
    for (i = 0; i < s->vertex_count; i++) {
        static const char *const name[4] = { "position", "velocity", "force", "target" };
        const fsi_vec3 v[4] = {s->position[i], s->velocity[i], s->force[i],
                               s->pinned[i] ? s->target[i] : fsi_v3(0, 0, 0)};
        for (what = 0; what < 4; what++) {
            if (!fsi_v3_is_finite(v[what]))
                return fsi__fail(m->context, FSI_ERROR_NAN, fn, i, 0, "the %s of vertex %d is not finite", name[what],
                                 i);
            if (what != 2 && fsi_v3_norm2(v[what]) > (fsi_real)1e24)
                return fsi__fail(m->context, FSI_ERROR_LIMIT, fn, i, 0, "the %s of vertex %d is larger than 1e12",
                                 name[what], i);
            if (m->model.dim == 2 && (v[what].z < 0 || v[what].z > 0))
                return fsi__fail(m->context, FSI_ERROR_ARGUMENT, fn, i, (double)v[what].z,
                                 "the %s of vertex %d has z = %g in 2D", name[what], i, (double)v[what].z);
        }
    }

    /* Prescribed twists. */
    for (i = 0; i < s->segment_count; i++) {
        const double twist = s->twist_held[i] ? (double)s->twist[i] : 0;
        if (!fsi_is_finite(twist))
            return fsi__fail(m->context, FSI_ERROR_NAN, fn, i, 0, "the twist of segment %d is not finite", i);
        if (fabs(twist) > FSI__SH_MOST_TWIST)
            return fsi__fail(m->context, FSI_ERROR_LIMIT, fn, i, twist,
                             "the twist of segment %d is %g, larger than 1e8", i, twist);
    }
    return FSI_OK;
}

/* Copies what the owner wrote to `next`. Errors: those of check_public; MESH if moved vertices intersect. */
static fsi_status fsi__sh_read_in(fsi_shell *s, fsi__sh_impl *m, const char *fn)
{
    int i, moved = 0;
    fsi_status status = fsi__sh_check_public(s, fn);
    if (status != FSI_OK) return status;
    fsi__sh_copy_state(m, &m->next, &m->state);

    /* Arrays that the owner may write. */
    for (i = 0; i < s->vertex_count; i++) {
        if (fsi__sh_take(s->position[i], m->next.x + 3 * i)) moved = 1;
        if (fsi__sh_take(s->velocity[i], m->next.v + 3 * i)) m->next.dt_before = 0;
        fsi__sh_from(s->force[i], m->force + 3 * i);
        m->held[i] = s->pinned[i];
        memcpy(m->pin_from + 3 * i, m->next.x + 3 * i, 3 * sizeof(double));
        memcpy(m->pin_to + 3 * i, m->next.x + 3 * i, 3 * sizeof(double));
        if (s->pinned[i]) fsi__sh_take(s->target[i], m->pin_to + 3 * i);
    }

    /* Twists, and all points, at the beginning of the step. */
    for (i = 0; i < s->segment_count; i++)
        m->twist_from[i] = m->model.twist_node[i] >= 0 ? m->next.x[3 * m->model.twist_node[i]] : 0;
    memcpy(m->stand_x, m->next.x, 3 * (size_t)m->model.vertices * sizeof(double));
    memcpy(m->stand_x + 3 * (size_t)m->model.vertices, m->was_x + 3 * (size_t)m->model.vertices,
           3 * (size_t)(m->points - m->model.vertices) * sizeof(double));

    /* After a teleport BDF2 has no history; frames are carried along. */
    if (moved) {
        m->next.dt_before = 0;
        memcpy(m->now.q, m->next.x, 3 * (size_t)m->first_body * sizeof(double));
        m->frame_now = m->next.frame;
        m->twist_now = m->next.twist;
        fsi__sm_carry(&m->model, m->now.q, m->frame_now, m->twist_now);
    }
    return moved || m->teleported ? fsi__sh_check_apart(m, fn, m->stand_x) : FSI_OK;
}

static void fsi__sh_sum_up(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    const fsi__sm_model *p = &m->model;
    fsi_shell_stats *t = &w->stats;
    const int blows = m->blows;
    int i, a;

    /* Energies and momenta of the vertices. */
    for (i = 0; i < p->vertices; i++) {
        const double *x = m->next.x + 3 * i, *v = m->next.v + 3 * i, mass = p->mass[i];
        double l[3], g[3];
        fsi__sh_from(m->settings.gravity, g);
        fsi__sh_cross(x, v, l);
        t->kinetic_energy += mass / 2 * fsi__sh_dot(v, v);
        t->potential_energy -= mass * fsi__sh_dot(g, x);
        for (a = 0; a < 3; a++) {
            t->momentum[a] += mass * v[a];
            t->angular_momentum[a] += mass * l[a];
        }
    }

    /* Elastic energy, without wind and damping. */
    m->blows = 0;
    w->law = p;
    t->elastic_energy = fsi__sh_elements(w, m->now.q, FSI__SM_VALUE);
    m->blows = blows;
    t->contact_energy = 0;
    for (i = 0; i < m->springs; i++)
        if (m->spring[i].used) t->elastic_energy += fsi__sh_spring_energy(m, &m->spring[i], m->now.x);

    /* Contacts and solver. */
    if (m->contact) {
        t->contact_energy = fsi__sc_energy(&m->contacts, m->now.x, w->kappa, 0);
        t->min_gap = fsi__sc_min_gap(&m->contacts);
    } else t->min_gap = 1;
    t->candidates = m->contact ? m->contacts.pairs : 0;
    t->contacts = m->contacts.actives;
    t->contact_stiffness = w->kappa;
    t->analyses = m->solver->stats.analyses - m->analyses_before;
}

FSI_API void fsi__sh_commit(fsi__sh_step *w)
{
    fsi_shell *s = w->s;
    fsi__sh_impl *m = w->m;
    const fsi__sh_state old = m->state;
    int i, o;

    /* the state, and the figures of it */
    w->dt = w->whole;
    m->moves += w->dt > 0;
    fsi__sh_sum_up(w);
    w->stats.seconds_other += fsi__now(m->context) - w->lap;
    m->state = m->next;
    m->next = old;

    /* vertices and segments */
    for (i = 0; i < s->vertex_count; i++) {
        s->position[i] = fsi__sh_to(m->state.x + 3 * i);
        s->velocity[i] = fsi__sh_to(m->state.v + 3 * i);
        m->contact_force[i] = fsi__sh_to(m->sum + 3 * (size_t)i);
        m->pin_force[i] = fsi__sh_to(m->hold_sum + 3 * (size_t)i);
        if (!s->pinned[i]) s->target[i] = s->position[i];
    }
    for (i = 0; i < s->segment_count; i++)
        if (m->model.twist_node[i] >= 0 && !s->twist_held[i])
            s->twist[i] = (fsi_real)m->state.x[3 * m->model.twist_node[i]];

    /* obstacles, bodies and springs */
    for (o = 0; o < m->obstacles; o++) if (m->obstacle[o].used) fsi__sh_publish_obstacle(w, &m->obstacle[o]);
    for (i = 0; i < m->bodies; i++) fsi__sh_publish_body(w, &m->body[i]);
    /* no time has passed */
    for (i = 0; w->settle && i < m->obstacles; i++)
        if (m->obstacle[i].used && m->obstacle[i].desc.body)
            m->obstacle[i].desc.body->impulse = m->obstacle[i].desc.body->angular_impulse = fsi_v3(0, 0, 0);
    for (i = 0; i < m->springs; i++) {
        memcpy(m->spring[i].stand, m->stand_x + 3 * (size_t)(m->first_anchor + i), 3 * sizeof(double));
        memcpy(m->spring[i].force, m->spring[i].sum, 3 * sizeof(double));
    }
    memcpy(m->was_x + 3 * (size_t)m->model.vertices, m->stand_x + 3 * (size_t)m->model.vertices,
           3 * (size_t)(m->points - m->model.vertices) * sizeof(double));
    m->teleported = 0;
    s->time = m->state.time;
    w->stats.bytes = m->context->bytes;
    w->stats.allocs = m->context->allocs;
    s->stats = w->stats;
    fsi__sh_show(m);
}

FSI_API fsi_status fsi__sh_begin(fsi_shell *s, double dt, int joint, const char *fn, fsi__sh_step **step)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    fsi__sh_step *w = &m->step;
    FSI__TRY(fsi__sh_read_in(s, m, fn));
    FSI__TRY(fsi__sh_read_obstacles(m, fn));

    /* Scratch of the step, and its settings. */
    memset(w, 0, sizeof *w);
    w->s = s;
    w->m = m;
    w->joint = joint;
    w->fn = fn;
    w->law = &m->model;
    w->whole = w->dt = dt;
    w->share = 1;
    w->lap = fsi__now(m->context);
    w->tolerance = (double)m->settings.tolerance;
    w->max_newton = m->settings.max_newton;
    w->in_the_way = -1;
    m->s = s;
    m->frame_now = m->next.frame;
    m->twist_now = m->next.twist;
    m->analyses_before = m->solver->stats.analyses;
    fsi__sh_show(m);
    *step = w;
    return FSI_OK;
}

/* The result is finite and within the limits of the next step. */
FSI_API fsi_status fsi__sh_check(const fsi__sh_step *w)
{
    const fsi__sh_impl *m = w->m;
    const char *fn = w->fn;
    int i, a;
    if (!fsi__sh_is_finite(m->next.x, 3 * m->first_body) || !fsi__sh_is_finite(m->next.v, 3 * m->first_body))
        return fsi__fail(m->context, FSI_ERROR_NAN, fn, -1, 0, "the result is not finite");
    for (i = 0; i < m->first_body; i++) for (a = 0; a < 3; a++) {
        const double far_off = fmax(fabs(m->next.x[3 * i + a]), fabs(m->next.v[3 * i + a]));
        const double turned = i < m->model.vertices ? 0 : fabs(m->next.x[3 * i + a]);
        if (far_off > FSI__SH_FARTHEST || turned > FSI__SH_MOST_TWIST)
            return fsi__fail(m->context, FSI_ERROR_LIMIT, fn, i, far_off,
                             "%s %d would get beyond 5e11 m or m/s, or 1e8 rad",
                             i < m->model.vertices ? "vertex" : "twist",
                             i < m->model.vertices ? i : m->model.twist_of[i - m->model.vertices]);
    }
    return FSI_OK;
}

/* A step of 0 s: gaps and stats of `next`, as its owner wrote it. */
FSI_API fsi_status fsi__sh_look(fsi__sh_step *w)
{
    fsi__sh_impl *m = w->m;
    const size_t nv = 3 * (size_t)m->model.vertices;
    fsi_status status = FSI_OK;
    int i;

    /* `now` is the state that the owner wrote. */
    memcpy(m->now.q, m->next.x, 3 * (size_t)m->first_body * sizeof(double));
    memcpy(m->now.x, m->stand_x, 3 * (size_t)m->points * sizeof(double));
    memcpy(m->now.x, m->next.x, nv * sizeof(double));
    for (i = 0; i < m->bodies; i++) {
        memcpy(m->now.q + 3 * (size_t)(m->first_body + 2 * i), m->body[i].center, 3 * sizeof(double));
        m->now.turn[i] = m->body[i].turn;
    }
    fsi__sh_spread_bodies(m, &m->now);

    /* All forces are 0. */
    memset(m->dx, 0, 3 * (size_t)m->points * sizeof(double));
    memset(m->sum, 0, 3 * (size_t)m->points * sizeof(double));
    memset(m->hold_sum, 0, nv * sizeof(double));
    for (i = 0; i < m->springs; i++) memset(m->spring[i].sum, 0, sizeof m->spring[i].sum);
    for (i = 0; i < m->obstacles; i++) memset(m->obstacle[i].sum, 0, sizeof m->obstacle[i].sum);

    /* Gaps; stiffness of contacts as in settle, with a dt of 0.01 s. */
    m->rubs = m->contacts.actives = m->contacts.list_holds = 0;
    w->settle = 1;
    w->kappa = m->next.stiffness > 0 ? m->next.stiffness : fsi__sh_base_stiffness(w);
    w->settle = 0;
    if (m->contact) status = fsi__sh_find_pairs(m, w->fn, m->now.x, m->dx);
    if (m->contact && status == FSI_OK) fsi__sc_measure(&m->contacts, m->now.x);
    return status;
}

/* One message for degraded results of a call. */
static void fsi__sh_warn(const fsi__sh_impl *m, const fsi_shell_stats *t, const char *fn)
{
    if (t->degraded)
        fsi__warn(m->context,
                  "%s: degraded: %d of %d substeps ended out of balance, the last Newton step went %.2g of a mean edge",
                  fn, t->degraded, t->substeps, t->update);
}

FSI_API fsi_status fsi_shell_step(fsi_shell *s, fsi_real dt)
{
    const char *fn = "fsi_shell_step";
    fsi__sh_impl *m = fsi__sh_of(s);
    const int substeps = dt > 0 && m ? m->settings.substeps : 0;
    fsi__sh_step *w;
    int k;
    if (!m) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__check_dt(m->context, dt, fn));
    FSI__TRY(fsi__sh_begin(s, (double)dt, 0, fn, &w));
    if (!substeps) FSI__TRY(fsi__sh_look(w));
    for (k = 0; k < substeps; k++)
        FSI__TRY(fsi__sh_substep(w, (double)dt / substeps, 1.0 / substeps,
            k + 1 < substeps ? (k + 1.0) / substeps : 1));
    FSI__TRY(fsi__sh_check(w));
    fsi__sh_commit(w);
    fsi__sh_warn(m, &s->stats, fn);
    return FSI_OK;
}

FSI_API double fsi__sh_fastest(const fsi__sh_step *w)
{
    const fsi__sh_impl *m = w->m;
    double most = 0;
    int i;
    for (i = 0; i < m->bodies; i++) {
        const fsi__sh_body *b = &m->body[i];
        const double spin = sqrt(fsi__sh_dot(b->spin, b->spin));
        const double speed = sqrt(fsi__sh_dot(b->velocity, b->velocity)) + fsi__sh_body_reach(m->s, i) * spin;
        most = fmax(most, speed * speed);
    }
    for (i = 0; i < m->model.vertices; i++) {
        const double pin = fsi__sh_apart(m->pin_to + 3 * i, m->pin_from + 3 * i) / w->whole;
        most = fmax(most, fsi__sh_dot(m->next.v + 3 * i, m->next.v + 3 * i));
        most = fmax(most, pin * pin);
    }
    return sqrt(most);
}

FSI_API double fsi__sh_body_reach(const fsi_shell *s, int body)
{
    const fsi__sh_impl *m = fsi__sh_of(s);
    double most = 0;
    int i;
    for (i = m->model.vertices; i < m->points; i++)
        if (m->owner[i] == body)
            most = fmax(most, sqrt(fsi__sh_dot(m->local + 3 * (size_t)i, m->local + 3 * (size_t)i)));
    return most;
}

FSI_API int fsi__sh_has_body(const fsi_shell *s, const fsi_body *body)
{
    const fsi__sh_impl *m = fsi__sh_of(s);
    int o;
    for (o = 0; o < m->obstacles; o++) if (m->obstacle[o].used && m->obstacle[o].desc.body == body) return 1;
    return 0;
}

FSI_API fsi_status fsi_shell_settle(fsi_shell *s, int max_steps)
{
    const char *fn = "fsi_shell_settle";
    fsi__sh_impl *m = fsi__sh_of(s);
    fsi__sh_step *w;
    double dt = 0.01;
    int k;
    if (!m) return FSI_ERROR_COOKIE;
    if (max_steps < 1)
        return fsi__fail(m->context, FSI_ERROR_ARGUMENT, fn, -1, max_steps, "max_steps is %d, must be positive",
                         max_steps);
    FSI__TRY(fsi__sh_begin(s, dt, 0, fn, &w));
    w->settle = 1;

    /* Steps without inertia: dt grows while Newton's method needs few iterations. */
    for (k = 0;; k++) {
        const int steps = w->stats.newton;
        if (k == max_steps) return fsi__fail(m->context, FSI_ERROR_CONVERGENCE, fn, -1, w->stats.update,
            "not at rest after %d steps: the last one moved a vertex by %g of the mean edge",
            max_steps, w->stats.update);
        w->whole = dt;
        w->stats.degraded = 0;
        FSI__TRY(fsi__sh_substep(w, dt, 1, 1));
        if (dt >= 1000 && w->stats.degraded == 0 && w->moved <= w->tolerance * m->model.mean_edge) break;
        if (w->stats.newton - steps <= 8 && dt < 1000) dt *= 4;
        if (w->stats.degraded && dt > 0.01) dt /= 4;
    }
    FSI__TRY(fsi__sh_check(w));
    fsi__sh_commit(w);
    return FSI_OK;
}

FSI__COLD_BEGIN

/* ---- >>layout ---------------------------------------------------------------------------------------------------- */

static void fsi__sh_lay_state(fsi__sh_impl *m, fsi__sh_state *n, fsi__arena *a)
{
    const size_t k = 3 * (size_t)m->first_body;
    n->x = (double *)fsi__take(a, k, sizeof(double));
    n->v = (double *)fsi__take(a, k, sizeof(double));
    n->x_before = (double *)fsi__take(a, k, sizeof(double));
    n->v_before = (double *)fsi__take(a, k, sizeof(double));
    n->frame = (fsi__shell_frame *)fsi__take(a, (size_t)m->model.segments, sizeof *n->frame);
    n->twist = (double *)fsi__take(a, (size_t)m->model.count[FSI__SM_JOINT], sizeof(double));
}

static void fsi__sh_lay_fixed(fsi_shell *s, fsi__sh_impl *m, fsi__arena *a)
{
    fsi__sm_model *p = &m->model;
    const size_t nv = (size_t)p->vertices, elements = (size_t)p->first[FSI__SM_KINDS],
                 entries = (size_t)m->elastic->matrix.start[m->elastic->matrix.rows];
    size_t features = nv;

    /* States and public arrays. */
    fsi__sh_lay_state(m, &m->state, a);
    fsi__sh_lay_state(m, &m->next, a);
    s->position = (fsi_vec3 *)fsi__take(a, nv, sizeof(fsi_vec3));
    s->velocity = (fsi_vec3 *)fsi__take(a, nv, sizeof(fsi_vec3));
    s->force = (fsi_vec3 *)fsi__take(a, nv, sizeof(fsi_vec3));
    s->target = (fsi_vec3 *)fsi__take(a, nv, sizeof(fsi_vec3));
    s->pinned = (unsigned char *)fsi__take(a, nv, 1);
    s->twist = (fsi_real *)fsi__take(a, (size_t)p->segments, sizeof(fsi_real));
    s->twist_held = (unsigned char *)fsi__take(a, (size_t)p->segments, 1);
    s->contact_force = m->contact_force = (fsi_vec3 *)fsi__take(a, nv, sizeof(fsi_vec3));
    s->pin_force = m->pin_force = (fsi_vec3 *)fsi__take(a, nv, sizeof(fsi_vec3));
    s->mass = m->public_mass = (fsi_real *)fsi__take(a, nv, sizeof(fsi_real));

    /* Scratch of a step. */
    m->held = (unsigned char *)fsi__take(a, nv, 1);
    m->hold_sum = (double *)fsi__take(a, 3 * nv, sizeof(double));
    m->force = (double *)fsi__take(a, 3 * nv, sizeof(double));
    m->pin_from = (double *)fsi__take(a, 3 * nv, sizeof(double));
    m->pin_to = (double *)fsi__take(a, 3 * nv, sizeof(double));
    m->twist_from = (double *)fsi__take(a, (size_t)p->segments, sizeof(double));
    m->wind = (double *)fsi__take(a, 4 * (size_t)p->triangles, sizeof(double));
    m->element_value = (double *)fsi__take(a, p->value_at[elements], sizeof(double));
    m->element_vector = (double *)fsi__take(a, 3 * (size_t)p->start[elements], sizeof(double));
    m->element_energy = (double *)fsi__take(a, elements, sizeof(double));
    m->total_map = (int *)fsi__take(a, entries, sizeof(int));
    if (m->damps) fsi__sm_lay_damped(&m->model, &m->damped, a);

    /* Boxes of the trees. */
    if (features < (size_t)p->edges) features = (size_t)p->edges;
    if (features < (size_t)p->triangles) features = (size_t)p->triangles;
    m->contacts.own.box = m->contacts.lone.box = (double *)fsi__take(a, 6 * features, sizeof(double));
}

/* Arrays whose sizes depend on obstacles and springs, all of them scratch. */
static void fsi__sh_lay_places(fsi__sh_impl *m, fsi__arena *a)
{
    const size_t n = 3 * (size_t)m->nodes, p = 3 * (size_t)m->points, b = (size_t)m->bodies;
    double **const of_nodes[] = {&m->now.q,    &m->trial.q,   &m->start_q,    &m->end_q, &m->aim,    &m->base,
                                 &m->gradient, &m->direction, &m->fixed_step, &m->lift,  &m->scratch};
    double **const of_points[] = {&m->now.x,      &m->trial.x, &m->start_x, &m->end_x, &m->was_x, &m->go_x,
                                  &m->foreseen_x, &m->stand_x, &m->dx,      &m->felt,  &m->sum,   &m->local};
    size_t k;
    for (k = 0; k < sizeof of_nodes / sizeof *of_nodes; k++) *of_nodes[k] = (double *)fsi__take(a, n, sizeof(double));
    for (k = 0; k < sizeof of_points / sizeof *of_points; k++)
        *of_points[k] = (double *)fsi__take(a, p, sizeof(double));
    m->now.turn = (fsi_quat *)fsi__take(a, b, sizeof(fsi_quat));
    m->trial.turn = (fsi_quat *)fsi__take(a, b, sizeof(fsi_quat));
    m->fixed = (unsigned char *)fsi__take(a, n, 1);
    m->owner = (int *)fsi__take(a, (size_t)m->points, sizeof(int));
    m->contacts.reach = (double *)fsi__take(a, (size_t)m->points, sizeof(double));
    m->contacts.way = (double *)fsi__take(a, (size_t)m->points, sizeof(double));
    m->cursor = (int *)fsi__take(a, (size_t)m->nodes, sizeof(int));
    m->contacts.around = (double *)fsi__take(a, 6 * (size_t)m->points, sizeof(double));
    m->total_start = (int *)fsi__take(a, (size_t)m->nodes + 1, sizeof(int));
}

/* A feature has the largest clearance of its vertices: the boxes of all of them must reach that far. */
static void fsi__sh_spread_reach(fsi__sh_impl *m, const int *node, int n)
{
    double most = 0;
    int k;
    for (k = 0; k < n; k++) if (m->model.clearance[node[k]] > most) most = m->model.clearance[node[k]];
    for (k = 0; k < n; k++)
        if (m->contacts.reach[node[k]] < m->contacts.range / 2 + most)
            m->contacts.reach[node[k]] = m->contacts.range / 2 + most;
}

/* Owner, reach and position of each point. */
static void fsi__sh_fill_points(fsi__sh_impl *m)
{
    int i, o, k;

    /* Vertices: the reach of an element is the largest of its vertices. */
    for (i = 0; i < m->model.vertices; i++) {
        m->owner[i] = -1;
        m->contacts.reach[i] = m->contacts.range / 2 + m->model.clearance[i];
    }
    for (i = 0; i < m->model.triangles; i++) fsi__sh_spread_reach(m, m->model.triangle + 3 * i, 3);
    for (i = 0; i < m->model.segments; i++) fsi__sh_spread_reach(m, m->model.segment + 2 * i, 2);

    /* Vertices of obstacles. */
    for (o = 0; o < m->obstacles; o++) {
        const fsi__sh_obstacle *ob = &m->obstacle[o];
        for (k = 0; ob->used && k < ob->features.count[0]; k++) {
            i = ob->features.first + k;
            m->owner[i] = ob->body;
            m->contacts.reach[i] = m->contacts.range / 2 + (double)ob->desc.clearance;
            memcpy(m->was_x + 3 * (size_t)i, ob->stand + 3 * (size_t)k, 3 * sizeof(double));
            memcpy(m->local + 3 * (size_t)i, ob->local + 3 * (size_t)k, 3 * sizeof(double));
        }
    }

    /* Anchors of springs. */
    for (k = 0; k < m->springs; k++) {
        const fsi__sh_spring *s = &m->spring[k];
        i = m->first_anchor + k;
        m->owner[i] = s->used && s->desc.other < 0 && s->desc.obstacle >= 0 ? m->obstacle[s->desc.obstacle].body : -1;
        m->contacts.reach[i] = 0;
        memcpy(m->was_x + 3 * (size_t)i, s->stand, 3 * sizeof(double));
        memcpy(m->local + 3 * (size_t)i, s->local, 3 * sizeof(double));
    }
}

/* Numbers nodes and points again, and makes room. Errors: MEMORY; then nothing has changed. */
static fsi_status fsi__sh_resize(fsi__sh_impl *m, const char *fn)
{
    fsi__arena fresh, measure;
    const int nodes = m->nodes, points = m->points, anchor = m->first_anchor;
    int o;
    memset(&fresh, 0, sizeof fresh);
    memset(&measure, 0, sizeof measure);

    /* New numbers of nodes and points. */
    m->nodes = m->first_body + 2 * m->bodies;
    m->points = m->model.vertices;
    for (o = 0; o < m->obstacles; o++) if (m->obstacle[o].used) m->points += m->obstacle[o].features.count[0];
    m->first_anchor = m->points;
    m->points += m->springs;

    /* Memory; the present block is kept if it is large enough. */
    {
        fsi__sh_impl trial = *m; /* measuring writes NULL to the pointers of a copy */
        fsi__sh_lay_places(&trial, &measure);
    }
    if (measure.used <= m->work.size) { /* fewer than before: the present memory suffices */
        fresh = m->work;
        fresh.used = 0;
    } else if (!fsi__arena_reserve(m->context, &fresh, measure.used)) {
        m->nodes = nodes;
        m->points = points;
        m->first_anchor = anchor;
        return fsi__fail(m->context, FSI_ERROR_MEMORY, fn, -1, (double)measure.used, "no memory for %d points", points);
    }

    /* Cannot fail from here on. */
    if (fresh.base != m->work.base) fsi__arena_free(m->context, &m->work);
    m->work = fresh;
    memset(m->work.base, 0, m->work.size);
    fsi__sh_lay_places(m, &m->work);
    m->total.start = NULL;
    m->contacts.list_holds = m->pattern_holds = 0;
    for (o = 0, m->points = m->model.vertices; o < m->obstacles; o++) {
        if (!m->obstacle[o].used) continue;
        m->obstacle[o].features.first = m->points;
        m->points += m->obstacle[o].features.count[0];
    }
    m->points += m->springs;
    fsi__sh_fill_points(m);
    return FSI_OK;
}

/* Lists pairs of own features that are closer at rest than the range of the barrier: their range is reduced. */
static fsi_status fsi__sh_list_close(fsi__sh_impl *m, const char *fn)
{
    memset(m->dx, 0, 3 * (size_t)m->points * sizeof(double));
    m->contacts.list_holds = 0;
    memcpy(m->now.x, m->model.rest, 3 * (size_t)m->model.vertices * sizeof(double));
    FSI__TRY(fsi__sh_find_pairs(m, fn, m->now.x, m->dx));
    return fsi__sc_list_close(&m->contacts, fn, m->now.x, m->model.part, m->model.mean_edge);
}

/* ---- >>obstacles implementation ---------------------------------------------------------------------------------- */

FSI_API fsi_shell_obstacle_desc fsi_shell_default_obstacle_desc(void)
{
    fsi_shell_obstacle_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('o', fsi_shell_obstacle_desc);
    return d;
}

static void fsi__sh_free_obstacle(fsi__sh_impl *m, fsi__sh_obstacle *o)
{
    fsi__sc_free_trees(&o->features);
    fsi__arena_free(m->context, &o->memory);
    memset(o, 0, sizeof *o);
}

static void fsi__sh_lay_obstacle(fsi__sh_obstacle *o, fsi__arena *a)
{
    const size_t n = (size_t)o->features.count[FSI__SC_POINTS];
    o->face = (int *)fsi__take(a, 3 * (size_t)o->features.count[FSI__SC_FACES], sizeof(int));
    o->edge = (int *)fsi__take(a, 2 * (size_t)o->features.count[FSI__SC_EDGES], sizeof(int));
    o->edge_length2 = (double *)fsi__take(a, (size_t)o->features.count[FSI__SC_EDGES], sizeof(double));
    o->local = (double *)fsi__take(a, 3 * n, sizeof(double));
    o->stand = (double *)fsi__take(a, 3 * n, sizeof(double));
}

static void fsi__sh_copy_mesh(fsi__sh_obstacle *o)
{
    const fsi_mesh *mesh = o->desc.mesh;
    int f, k, i;

    /* Vertices, in world and body axes. */
    for (i = 0; i < mesh->vertex_count; i++) {
        fsi__sh_from(mesh->vertices[i], o->stand + 3 * (size_t)i);
        if (o->desc.body) fsi__sh_from(fsi_pose_local(o->desc.body->pose, mesh->vertices[i]), o->local + 3 * (size_t)i);
    }

    /* Edges and faces. */
    if (mesh->corners == 2) memcpy(o->edge, mesh->faces, 2 * (size_t)mesh->face_count * sizeof(int));
    else {
        memcpy(o->face, mesh->faces, 3 * (size_t)mesh->face_count * sizeof(int));
        for (f = 0; f < mesh->face_count; f++) for (k = 0; k < 3; k++) {
            int *e = o->edge + 2 * (size_t)mesh->face_edge[3 * f + k];
            e[0] = mesh->faces[3 * f + k];
            e[1] = mesh->faces[3 * f + (k + 1) % 3];
        }
    }

    /* Lengths; the indices that contact reads. */
    for (i = 0; i < o->features.count[FSI__SC_EDGES]; i++) {
        const double l =
            fsi__sh_apart(o->stand + 3 * (size_t)o->edge[2 * i], o->stand + 3 * (size_t)o->edge[2 * i + 1]);
        o->edge_length2[i] = l * l;
    }
    o->features.index[FSI__SC_EDGES] = o->edge;
    o->features.index[FSI__SC_FACES] = o->face;
    o->features.edge_length2 = o->edge_length2;
}

static fsi_status fsi__sh_check_obstacle(fsi__sh_impl *m, const char *fn, const fsi_shell_obstacle_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_shell_obstacle_desc, friction, FSI__REAL, 0, 10, 0),
        FSI__FIELD(fsi_shell_obstacle_desc, clearance, FSI__REAL, 0, 1e3, 0)
    };
    const fsi__where at = { fn, "desc.", -1, m->model.dim };
    FSI__TRY(fsi__check_filled(m->context, fn, d, FSI__COOKIE('o', fsi_shell_obstacle_desc),
        "fsi_shell_default_obstacle_desc"));
    FSI__TRY(fsi__check_mesh(m->context, fn, d->mesh, m->model.dim, 0));
    FSI__TRY(FSI__CHECK_TABLE(m->context, &at, d, rows));
    return d->body ? fsi_body_check(m->context, d->body, 0) : FSI_OK;
}

/* Index of a COUPLED body among the unknowns; obstacles on one body have the same. */
static fsi_status fsi__sh_find_body(fsi__sh_impl *m, const char *fn, fsi_body *body, int *index)
{
    int i;
    *index = -1;
    if (!body || body->mode != FSI_BODY_COUPLED) return FSI_OK;
    for (i = 0; i < m->bodies; i++) if (m->body[i].body == body) {
        *index = i;
        return FSI_OK;
    }
    FSI__TRY(fsi__room_in(m->context, &m->body, sizeof *m->body, m->bodies, &m->body_capacity, m->bodies + 1, fn));
    memset(&m->body[m->bodies], 0, sizeof *m->body);
    m->body[m->bodies].body = body;
    fsi__sh_from(body->pose.position, m->body[m->bodies].left_center);
    m->body[m->bodies].left_turn = body->pose.orientation;
    *index = m->bodies++;
    return FSI_OK;
}

/* Removes bodies without an obstacle. */
static void fsi__sh_drop_bodies(fsi__sh_impl *m)
{
    int i, o, used;
    for (i = m->bodies - 1; i >= 0; i--) {
        for (o = used = 0; o < m->obstacles; o++) used |= m->obstacle[o].used && m->obstacle[o].body == i;
        if (used) continue;
        m->body[i] = m->body[--m->bodies];
        for (o = 0; o < m->obstacles; o++) if (m->obstacle[o].body == m->bodies) m->obstacle[o].body = i;
    }
}

static fsi_status fsi__sh_fill_obstacle(fsi__sh_impl *m, const char *fn, fsi__sh_obstacle *o,
                                        const fsi_shell_obstacle_desc *d)
{
    fsi__arena measure;
    fsi_status status;
    int largest, k;

    /* Numbers of features. */
    memset(o, 0, sizeof *o);
    o->desc = *d;
    o->body = -1;
    o->features.count[FSI__SC_POINTS] = d->mesh->vertex_count;
    o->features.count[FSI__SC_EDGES] = d->mesh->corners == 2 ? d->mesh->face_count : d->mesh->edge_count;
    o->features.count[FSI__SC_FACES] = d->mesh->corners == 2 ? 0 : d->mesh->face_count;
    for (k = largest = 0; k < 3; k++) if (o->features.count[k] > largest) largest = o->features.count[k];

    /* Memory. */
    memset(&measure, 0, sizeof measure);
    fsi__sh_lay_obstacle(o, &measure);
    measure.used += 6 * sizeof(double) * (size_t)largest + 64;
    if (!fsi__arena_reserve(m->context, &o->memory, measure.used))
        return fsi__fail(m->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for an obstacle of %d vertices",
                         d->mesh->vertex_count);
    fsi__sh_lay_obstacle(o, &o->memory);
    o->features.box = (double *)fsi__take(&o->memory, 6 * (size_t)largest, sizeof(double));

    /* Mesh, trees, body. */
    fsi__sh_copy_mesh(o);
    status = m->contact ? fsi__sc_make_trees(m->context, &o->features) : FSI_OK;
    if (status == FSI_OK) status = fsi__sh_find_body(m, fn, d->body, &o->body);
    o->used = status == FSI_OK;
    return status;
}

static fsi__sh_obstacle *fsi__sh_obstacle_of(const fsi__sh_impl *m, const char *fn, int id)
{
    if (id >= 0 && id < m->obstacles && m->obstacle[id].used) return &m->obstacle[id];
    fsi__fail(m->context, FSI_ERROR_ARGUMENT, fn, id, id, "there is no obstacle %d", id);
    return NULL;
}

FSI_API fsi_status fsi_shell_add_obstacle(fsi_shell *s, const fsi_shell_obstacle_desc *desc, int *id)
{
    const char *fn = "fsi_shell_add_obstacle";
    fsi__sh_impl *m = fsi__sh_of(s);
    fsi_status status;
    int k;
    if (!m) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__sh_check_obstacle(m, fn, desc));

    /* The first free id. */
    for (k = 0; k < m->obstacles && m->obstacle[k].used; k++) {}
    FSI__TRY(fsi__room_in(m->context, &m->obstacle, sizeof *m->obstacle, m->obstacles, &m->obstacle_capacity, k + 1,
        fn));
    if (k == m->obstacles) m->obstacles++;

    /* Add it; nothing may intersect. */
    status = fsi__sh_fill_obstacle(m, fn, &m->obstacle[k], desc);
    if (status == FSI_OK) status = fsi__sh_resize(m, fn);
    if (status == FSI_OK) {
        m->teleported |= fsi__sh_stand(s, m); /* note changes now: the caller may undo them before the next step */
        status = fsi__sh_check_apart(m, fn, m->stand_x);
    }

    /* Undo, and keep the error. */
    if (status != FSI_OK) {
        fsi_error kept = m->context->error;
        fsi__sh_free_obstacle(m, &m->obstacle[k]);
        fsi__sh_drop_bodies(m);
        fsi__sh_resize(m, fn);
        m->context->error = kept;
        return status;
    }
    if (id) *id = k;
    return FSI_OK;
}

FSI_API fsi_status fsi_shell_add_mesh(fsi_shell *s, const fsi_mesh *mesh, int *id)
{
    fsi_shell_obstacle_desc d = fsi_shell_default_obstacle_desc();
    d.mesh = mesh;
    return fsi_shell_add_obstacle(s, &d, id);
}

/* Removes an attachment. An earlier pin stays, at the present position. */
static void fsi__sh_let_go(fsi_shell *s, fsi__sh_impl *m, int i)
{
    const fsi__sh_attachment t = m->attachment[i];
    m->attachment[i] = m->attachment[--m->attachments];
    if (!t.was_pinned) s->pinned[t.vertex] = 0;
    s->target[t.vertex] = s->position[t.vertex];
}

FSI_API fsi_status fsi_shell_remove_obstacle(fsi_shell *s, int id)
{
    const char *fn = "fsi_shell_remove_obstacle";
    fsi__sh_impl *m = fsi__sh_of(s);
    fsi__sh_obstacle *o;
    int i;
    if (!m) return FSI_ERROR_COOKIE;
    o = fsi__sh_obstacle_of(m, fn, id);
    if (!o) return FSI_ERROR_ARGUMENT;
    for (i = 0; i < m->springs; i++)
        if (m->spring[i].used && m->spring[i].desc.other < 0 && m->spring[i].desc.obstacle == id) m->spring[i].used = 0;
    for (i = m->attachments - 1; i >= 0; i--) if (m->attachment[i].obstacle == id) fsi__sh_let_go(s, m, i);
    fsi__sh_free_obstacle(m, o);
    fsi__sh_drop_bodies(m);
    return fsi__sh_resize(m, fn);
}

FSI_API fsi_status fsi_shell_teleport_obstacle(fsi_shell *s, int id)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    const fsi__sh_obstacle *o;
    const fsi_body *body;
    int i, k;
    if (!m) return FSI_ERROR_COOKIE;
    o = fsi__sh_obstacle_of(m, "fsi_shell_teleport_obstacle", id);
    if (!o) return FSI_ERROR_ARGUMENT;
    body = o->desc.body;

    /* The pose of a COUPLED body. */
    if (o->body >= 0) {
        fsi__sh_from(body->pose.position, m->body[o->body].left_center);
        m->body[o->body].left_turn = body->pose.orientation;
    }

    /* All obstacles on that body, and the anchors on them. */
    for (k = 0; k < m->obstacles; k++)
        if (k == id || (o->body >= 0 && m->obstacle[k].body == o->body))
            fsi__sh_place_obstacle(&m->obstacle[k], body ? body->pose : fsi_default_body().pose, m->obstacle[k].stand);
    fsi__sh_fill_points(m);
    for (i = 0; i < m->springs; i++) {
        fsi__sh_spring *p = &m->spring[i];
        k = p->used && p->desc.other < 0 ? p->desc.obstacle : -1;
        if (k >= 0 && (k == id || (o->body >= 0 && m->obstacle[k].body == o->body)))
            fsi__sh_place_anchor(m, p, 0, m->was_x, p->stand);
    }
    fsi__sh_fill_points(m);
    m->teleported = 1;
    return FSI_OK;
}

FSI_API fsi_status fsi_shell_obstacle_reaction(const fsi_shell *s, int id, fsi_vec3 *force, fsi_vec3 *torque)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    const fsi__sh_obstacle *o;
    if (!m) return FSI_ERROR_COOKIE;
    o = fsi__sh_obstacle_of(m, "fsi_shell_obstacle_reaction", id);
    if (!o) return FSI_ERROR_ARGUMENT;
    if (force) *force = fsi__sh_to(o->force);
    if (torque) *torque = fsi__sh_to(o->torque);
    return FSI_OK;
}

FSI_API fsi_status fsi_shell_attach(fsi_shell *s, int vertex, int obstacle)
{
    const char *fn = "fsi_shell_attach";
    fsi__sh_impl *m = fsi__sh_of(s);
    int i;
    if (!m) return FSI_ERROR_COOKIE;

    /* Checks. */
    if (vertex < 0 || vertex >= s->vertex_count)
        return fsi__fail(m->context, FSI_ERROR_ARGUMENT, fn, vertex, vertex, "there is no vertex %d", vertex);
    if (!fsi__sh_obstacle_of(m, fn, obstacle)) return FSI_ERROR_ARGUMENT;
    if (m->obstacle[obstacle].body >= 0)
        return fsi__fail(m->context, FSI_ERROR_ARGUMENT, fn, obstacle, 0,
                         "obstacle %d has a COUPLED body: attach by a spring", obstacle);
    if (!fsi_v3_is_finite(s->position[vertex]))
        return fsi__fail(m->context, FSI_ERROR_NAN, fn, vertex, 0, "the position of vertex %d is not finite", vertex);

    /* Its attachment, old or new. */
    i = fsi__sh_find_attachment(m, vertex);
    if (i < 0) {
        FSI__TRY(fsi__room_in(m->context, &m->attachment, sizeof *m->attachment, m->attachments,
            &m->attachment_capacity, m->attachments + 1, fn));
        i = m->attachments++;
        m->attachment[i].was_pinned = s->pinned[vertex];
    }

    /* Fix it there. */
    m->attachment[i].vertex = vertex;
    m->attachment[i].obstacle = obstacle;
    fsi__sh_fix_to(m, obstacle, s->position[vertex], &m->attachment[i].face, m->attachment[i].local);
    s->pinned[vertex] = 1;
    s->target[vertex] = s->position[vertex];
    return FSI_OK;
}

FSI_API fsi_status fsi_shell_detach(fsi_shell *s, int vertex)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    int i;
    if (!m) return FSI_ERROR_COOKIE;
    if (vertex < 0 || vertex >= s->vertex_count)
        return fsi__fail(m->context, FSI_ERROR_ARGUMENT, "fsi_shell_detach", vertex, vertex, "there is no vertex %d",
                         vertex);
    i = fsi__sh_find_attachment(m, vertex);
    if (i >= 0) fsi__sh_let_go(s, m, i);
    return FSI_OK;
}

FSI_API fsi_shell_spring_desc fsi_shell_default_spring_desc(void)
{
    fsi_shell_spring_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('p', fsi_shell_spring_desc);
    d.vertex = d.other = d.obstacle = -1;
    d.stiffness = 100;
    return d;
}

static fsi_status fsi__sh_check_spring(const fsi_shell *s, const char *fn, const fsi_shell_spring_desc *d)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    const double last = s->vertex_count - 1;
    const fsi__field rows[] = {
        FSI__FIELD(fsi_shell_spring_desc, vertex, FSI__INT, 0, last, 0),
        FSI__FIELD(fsi_shell_spring_desc, other, FSI__INT, -FSI__HUGE, last, 0),
        FSI__FIELD(fsi_shell_spring_desc, stiffness, FSI__REAL, 1e-12, 1e15, 0),
        FSI__FIELD(fsi_shell_spring_desc, rest_length, FSI__REAL, 0, 1e9, 0),
        FSI__FIELD(fsi_shell_spring_desc, damping, FSI__REAL, 0, 1e15, 0),
        FSI__FIELD(fsi_shell_spring_desc, anchor, FSI__VEC3, 0, 1e12, 0)
    };
    const fsi__where at = { fn, "desc.", -1, 3 };
    FSI__TRY(fsi__check_filled(m->context, fn, d, FSI__COOKIE('p', fsi_shell_spring_desc),
        "fsi_shell_default_spring_desc"));
    FSI__TRY(FSI__CHECK_TABLE(m->context, &at, d, rows));
    if (d->other == d->vertex)
        return fsi__fail(m->context, FSI_ERROR_ARGUMENT, fn, -1, d->other, "desc.other is desc.vertex, %d", d->other);
    return d->other >= 0 || d->obstacle < 0 || fsi__sh_obstacle_of(m, fn, d->obstacle) ? FSI_OK : FSI_ERROR_ARGUMENT;
}

static void fsi__sh_tie(fsi__sh_impl *m, fsi__sh_spring *s, const fsi_shell_spring_desc *d)
{
    memset(s, 0, sizeof *s);
    s->used = 1;
    s->desc = *d;
    fsi__sh_from(d->anchor, s->stand);
    if (d->other < 0 && d->obstacle >= 0) fsi__sh_fix_to(m, d->obstacle, d->anchor, &s->face, s->local);
}

FSI_API fsi_status fsi_shell_add_spring(fsi_shell *s, const fsi_shell_spring_desc *desc, int *id)
{
    const char *fn = "fsi_shell_add_spring";
    fsi__sh_impl *m = fsi__sh_of(s);
    fsi_status status;
    int k;
    if (!m) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__sh_check_spring(s, fn, desc));

    /* The first free id; a new row adds a point, its anchor. */
    for (k = 0; k < m->springs && m->spring[k].used; k++) {}
    FSI__TRY(fsi__room_in(m->context, &m->spring, sizeof *m->spring, m->springs, &m->spring_capacity, k + 1, fn));
    if (k == m->springs) {
        m->springs++;
        m->spring[k].used = 0;
        status = fsi__sh_resize(m, fn);
        if (status != FSI_OK) {
            m->springs--;
            return status;
        }
    }
    fsi__sh_tie(m, &m->spring[k], desc);
    fsi__sh_fill_points(m);
    if (id) *id = k;
    return FSI_OK;
}

static fsi__sh_spring *fsi__sh_spring_of(const fsi__sh_impl *m, const char *fn, int id)
{
    if (id >= 0 && id < m->springs && m->spring[id].used) return &m->spring[id];
    fsi__fail(m->context, FSI_ERROR_ARGUMENT, fn, id, id, "there is no spring %d", id);
    return NULL;
}

FSI_API fsi_status fsi_shell_set_spring(fsi_shell *s, int id, const fsi_shell_spring_desc *desc)
{
    const char *fn = "fsi_shell_set_spring";
    fsi__sh_impl *m = fsi__sh_of(s);
    fsi__sh_spring *p;
    if (!m) return FSI_ERROR_COOKIE;
    p = fsi__sh_spring_of(m, fn, id);
    if (!p) return FSI_ERROR_ARGUMENT;
    FSI__TRY(fsi__sh_check_spring(s, fn, desc));
    fsi__sh_tie(m, p, desc);
    fsi__sh_fill_points(m);
    return FSI_OK;
}

FSI_API fsi_status fsi_shell_remove_spring(fsi_shell *s, int id)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    fsi__sh_spring *p;
    if (!m) return FSI_ERROR_COOKIE;
    p = fsi__sh_spring_of(m, "fsi_shell_remove_spring", id);
    if (!p) return FSI_ERROR_ARGUMENT;
    p->used = 0;
    fsi__sh_fill_points(m);
    return FSI_OK;
}

FSI_API fsi_status fsi_shell_spring_force(const fsi_shell *s, int id, fsi_vec3 *force)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    const fsi__sh_spring *p;
    if (!m) return FSI_ERROR_COOKIE;
    p = fsi__sh_spring_of(m, "fsi_shell_spring_force", id);
    if (!p || !force) return FSI_ERROR_ARGUMENT;
    *force = fsi__sh_to(p->force);
    return FSI_OK;
}

/* ---- >>settings and origin --------------------------------------------------------------------------------------- */

FSI_API const fsi_error *fsi_shell_error(const fsi_shell *s)
{
    return fsi__error_of(fsi__sh_of(s) ? s->context : NULL);
}

FSI_API fsi_status fsi_shell_set_desc(fsi_shell *s, const fsi_shell_desc *desc)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    fsi_shell_desc d;
    if (!m) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__check_filled(m->context, "fsi_shell_set_desc", desc, FSI__COOKIE('d', fsi_shell_desc),
                               "fsi_shell_default_desc"));
    FSI__TRY(fsi__sm_check_settings(m->context, "fsi_shell_set_desc", desc));

    /* The fields that may change. */
    d = m->settings;
    d.gravity = desc->gravity;
    d.integrator = desc->integrator;
    d.substeps = desc->substeps;
    d.max_newton = desc->max_newton;
    d.tolerance = desc->tolerance;
    d.friction = desc->friction;
    d.friction_speed = desc->friction_speed;
    d.friction_iterations = desc->friction_iterations;
    d.wind = desc->wind;
    d.air_density = desc->air_density;
    d.drag = desc->drag;
    fsi__sh_take_settings(s, m, &d);
    return FSI_OK;
}

FSI_API fsi_real fsi_shell_suggest_dt(const fsi_shell *s)
{
    const fsi__sh_impl *m = fsi__sh_of(s);
    double most = 0, dt;
    int i;
    if (!m) return 0;
    for (i = 0; i < s->vertex_count; i++) most = fmax(most, (double)fsi_v3_norm(s->velocity[i]));
    dt = most > 0 ? 0.5 * m->model.mean_edge / most * m->settings.substeps : 1000;
    return (fsi_real)fmax(1e-12, fmin(dt, 1000));
}

/* Shifts a position that its owner may have written: one that equals `kept` stays equal to it. */
static fsi_vec3 fsi__sh_shifted(fsi_vec3 shown, const double *kept, fsi_vec3 offset)
{
    double x[3], o[3];
    int a;
    memcpy(x, kept, sizeof x);
    fsi__sh_from(offset, o);
    if (fsi__sh_take(shown, x)) return fsi_v3_add(shown, offset);
    for (a = 0; a < 3; a++) x[a] += o[a];
    return fsi__sh_to(x);
}

static void fsi__sh_add_offset(double *x, size_t n, fsi_vec3 offset)
{
    double o[3];
    size_t i;
    fsi__sh_from(offset, o);
    for (i = 0; i < 3 * n; i++) x[i] += o[i % 3];
}

FSI_API fsi_status fsi__sh_check_shift(const fsi_shell *s, fsi_vec3 offset, const char *fn)
{
    int i;
    if (!fsi_v3_is_finite(offset)) return fsi__fail(s->context, FSI_ERROR_NAN, fn, -1, 0, "the offset is not finite");
    for (i = 0; i < s->vertex_count; i++) {
        const fsi_vec3 x = fsi_v3_add(s->position[i], offset);
        if (!((double)fsi_v3_norm(x) <= FSI__SH_FARTHEST))
            return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, i, (double)fsi_v3_norm(x),
                             "vertex %d would get beyond %g m", i, FSI__SH_FARTHEST);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_shell_shift_origin(fsi_shell *s, fsi_vec3 offset)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    fsi_status status;
    int i;
    if (!m) return FSI_ERROR_COOKIE;
    if (m->model.dim == 2) offset.z = 0;
    status = fsi__sh_check_shift(s, offset, "fsi_shell_shift_origin");
    if (status != FSI_OK) return status;

    /* Vertices, and the history of the integrator. */
    for (i = 0; i < s->vertex_count; i++) {
        s->position[i] = fsi__sh_shifted(s->position[i], m->state.x + 3 * i, offset);
        s->target[i] = fsi__sh_shifted(s->target[i], m->state.x + 3 * i, offset);
    }
    m->moves++;
    fsi__sh_add_offset(m->state.x, (size_t)m->model.vertices, offset);
    fsi__sh_add_offset(m->state.x_before, (size_t)m->model.vertices, offset);

    /* Obstacles, COUPLED bodies, anchors of springs. */
    for (i = 0; i < m->obstacles; i++)
        if (m->obstacle[i].used)
            fsi__sh_add_offset(m->obstacle[i].stand, (size_t)m->obstacle[i].features.count[0], offset);
    for (i = 0; i < m->bodies; i++) fsi__sh_add_offset(m->body[i].left_center, 1, offset);
    for (i = 0; i < m->springs; i++) if (m->spring[i].used) {
        fsi__sh_add_offset(m->spring[i].stand, 1, offset);
        m->spring[i].desc.anchor = fsi_v3_add(m->spring[i].desc.anchor, offset);
    }
    fsi__sh_fill_points(m);
    return FSI_OK;
}

/* ---- >>state implementation -------------------------------------------------------------------------------------- */

FSI_API int fsi_shell_count_intersections(fsi_shell *s)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    int count = 0, first[5];
    if (!m || !m->contact) return 0;
    fsi__sh_stand(s, m);
    return fsi__sh_crossings(m, "fsi_shell_count_intersections", m->stand_x, &count, first) == FSI_OK ? count : -1;
}

/* Poses of COUPLED bodies after the last step, in double (owners have fsi_real). Those of other bodies are skipped. */
static void fsi__sh_stream_bodies(fsi__stream *stream, fsi__sh_impl *m)
{
    const int reads = stream->mode == FSI__READ;
    const size_t size = sizeof m->body->left_center + sizeof m->body->left_turn,
                 left = reads && stream->ok ? stream->capacity - stream->used : 0;
    int i;
    m->bodies_read = reads && m->bodies > 0 && left == (size_t)m->bodies * size;
    if (reads && !m->bodies_read && left % size == 0) stream->used += left;
    for (i = 0; i < m->bodies && (!reads || m->bodies_read); i++) {
        fsi__sh_body *b = &m->body[i];
        fsi__bytes(stream, reads ? b->center : b->left_center, sizeof b->center);
        fsi__bytes(stream, reads ? &b->turn : &b->left_turn, sizeof b->turn);
    }
}

static void fsi__sh_stream(fsi__stream *stream, void *simulator)
{
    fsi__sh_impl *m = (fsi__sh_impl *)simulator;
    fsi__sh_state *n = stream->mode == FSI__READ ? &m->next : &m->state;
    int size[3];
    const size_t k = 3 * (size_t)m->first_body * sizeof(double);

    /* A state of another scene is refused. */
    size[0] = m->model.vertices;
    size[1] = m->model.segments;
    size[2] = m->model.first[FSI__SM_KINDS];
    fsi__bytes(stream, size, sizeof size);
    if (size[0] != m->model.vertices || size[1] != m->model.segments || size[2] != m->model.first[FSI__SM_KINDS]) {
        stream->ok = 0;
        return;
    }

    /* The state. */
    fsi__bytes(stream, n->x, k);
    fsi__bytes(stream, n->v, k);
    fsi__bytes(stream, n->x_before, k);
    fsi__bytes(stream, n->v_before, k);
    fsi__bytes(stream, n->frame, (size_t)m->model.segments * sizeof *n->frame);
    fsi__bytes(stream, n->twist, (size_t)m->model.count[FSI__SM_JOINT] * sizeof(double));
    fsi__bytes(stream, &n->dt_before, sizeof n->dt_before);
    fsi__bytes(stream, &n->stiffness, sizeof n->stiffness);
    fsi__bytes(stream, &n->time, sizeof n->time);
    fsi__sh_stream_bodies(stream, m);
}

FSI_API fsi_status fsi_shell_save(const fsi_shell *s, void *buffer, size_t capacity, size_t *size)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    if (!m) return FSI_ERROR_COOKIE;
    return fsi__save(m->context, s->cookie, fsi__sh_stream, m, buffer, capacity, size, "fsi_shell_save");
}

/* Positions and velocities, now and a step ago, must be such as a step accepts; unused components must be 0. */
static fsi_status fsi__sh_check_places(const fsi__sh_impl *m, const char *fn)
{
    static const char *const name[4] = { "position", "velocity", "last position", "last velocity" };
    const double *of[4];
    int k, i, a;
    of[0] = m->next.x;
    of[1] = m->next.v;
    of[2] = m->next.x_before;
    of[3] = m->next.v_before;
    for (k = 0; k < 4; k++) for (i = 0; i < m->first_body; i++) for (a = 0; a < 3; a++) {
        const double value = of[k][3 * i + a];
        const int none = i < m->model.vertices ? m->model.dim == 2 && a == 2 : a > 0;
        const double most = none ? 0 : i >= m->model.vertices && k % 2 == 0 ? FSI__SH_MOST_TWIST : FSI__SH_FARTHEST;
        if (!(fabs(value) <= most))
            return fsi__fail(m->context, FSI_ERROR_FORMAT, fn, i, value, "the state's %s of %s %d is %g", name[k],
                             i < m->model.vertices ? "vertex" : "twist",
                             i < m->model.vertices ? i : m->model.twist_of[i - m->model.vertices], value);
    }
    return FSI_OK;
}

/* Frames: unit vectors, the tangent along its segment, the director across it. */
static fsi_status fsi__sh_check_frames(const fsi__sh_impl *m, const char *fn)
{
    const fsi__sm_model *p = &m->model;
    int i;
    for (i = 0; i < p->segments; i++) {
        const fsi__shell_frame *f = &m->next.frame[i];
        double t[3], off, size = fsi__sh_dot(f->director, f->director);
        fsi__shell_tangent(m->next.x + 3 * p->chain[2 * i], m->next.x + 3 * p->chain[2 * i + 1], t);
        off = p->twist_node[i] < 0 ? 0 : fsi__sh_apart(t, f->tangent) + fabs(fsi__sh_dot(f->director, f->tangent));
        if (!(off <= 1e-6) || (p->twist_node[i] >= 0 && !(fabs(size - 1) <= 1e-6)) ||
            !(size + fsi__sh_dot(f->tangent, f->tangent) <= 3))
            return fsi__fail(
                m->context, FSI_ERROR_FORMAT, fn, i, off,
                "the state's frame of segment %d is not along the segment, or not of unit vectors across each other",
                i);
    }
    for (i = 0; i < p->count[FSI__SM_JOINT]; i++) if (!(fabs(m->next.twist[i]) <= 1e6))
            return fsi__fail(m->context, FSI_ERROR_FORMAT, fn, p->joint_segment[2 * i], m->next.twist[i],
                             "the state's twist between segments %d and %d is %g", p->joint_segment[2 * i],
                             p->joint_segment[2 * i + 1], m->next.twist[i]);
    return FSI_OK;
}

static double fsi__sh_quat_size2(fsi_quat q)
{
    return (double)q.x * (double)q.x + (double)q.y * (double)q.y + (double)q.z * (double)q.z +
           (double)q.w * (double)q.w;
}

/* Checks that `next` can be the result of a step, apart from intersections. */
static fsi_status fsi__sh_check_numbers(const fsi__sh_impl *m, const char *fn)
{
    const fsi__sh_state *n = &m->next;
    /* as fsi__sh_adapt_stiffness leaves it */
    const double shortest = 1e-15,
                 stiffest = 1e9 * 5 * m->contacts.range * fmax(m->contacts.range / (shortest * shortest), 10);
    fsi_status status = fsi__sh_check_places(m, fn);
    int i;

    /* Positions and frames. */
    if (status == FSI_OK) status = fsi__sh_check_frames(m, fn);
    if (status != FSI_OK) return status;

    /* Last substep, stiffness of contacts, time. */
    if (!(n->dt_before >= 0 && n->dt_before <= 1000) || (n->dt_before > 0 && n->dt_before < shortest))
        return fsi__fail(m->context, FSI_ERROR_FORMAT, fn, -1, n->dt_before, "the state's last substep is %g seconds",
                         n->dt_before);
    if (!(n->stiffness >= 0 && n->stiffness <= stiffest))
        return fsi__fail(m->context, FSI_ERROR_FORMAT, fn, -1, n->stiffness, "the state's stiffness of contacts is %g",
                         n->stiffness);
    if (!(n->time >= 0 && n->time <= 1e15))
        return fsi__fail(m->context, FSI_ERROR_FORMAT, fn, -1, n->time, "the state's time is %g seconds", n->time);

    /* COUPLED bodies. */
    for (i = 0; i < m->bodies && m->bodies_read; i++) {
        const fsi__sh_body *b = &m->body[i];
        const double turn = fabs(fsi__sh_quat_size2(b->turn) - 1);
        if (!fsi__sh_is_finite(b->center, 3) || !(turn <= 1e-3))
            return fsi__fail(
                m->context, FSI_ERROR_FORMAT, fn, i, turn,
                "the state's place of COUPLED body %d is not finite, or its orientation is no unit quaternion", i);
    }
    return FSI_OK;
}

/* Positions x of obstacle o after load: by its mesh or body; a COUPLED body at its saved pose keeps it bitwise. */
static void fsi__sh_load_obstacle(const fsi__sh_impl *m, const fsi__sh_obstacle *o, double *x)
{
    const fsi__sh_body *b = o->body >= 0 ? &m->body[o->body] : NULL;
    int i;
    fsi__sh_place_obstacle(o, o->desc.body ? o->desc.body->pose : fsi_default_body().pose, x);
    for (i = 0; b && i < o->features.count[0]; i++)
        fsi__sh_turn_point(b->center, b->turn, o->local + 3 * (size_t)i, x + 3 * (size_t)i);
}

/* Poses of COUPLED bodies: those of the state if the owners' agree with them up to rounding, else the owners'. */
static void fsi__sh_load_bodies(fsi__sh_impl *m)
{
    int i;
    for (i = 0; i < m->bodies; i++) {
        fsi__sh_body *b = &m->body[i];
        const fsi_pose pose = b->body->pose;
        const fsi_vec3 was = fsi__sh_to(b->center);
        const int same = m->bodies_read && fsi_v3_norm2(fsi_v3_sub(was, pose.position)) <= 0 &&
                         memcmp(&b->turn, &pose.orientation, sizeof b->turn) == 0;
        if (!same) {
            fsi__sh_from(pose.position, b->center);
            b->turn = pose.orientation;
        }
    }
}

FSI_API fsi_status fsi__sh_read_state(fsi_shell *s, const void *buffer, size_t size, const char *fn)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    fsi__stream stream;
    fsi_status status = fsi__load_begin(m->context, s->cookie, buffer, size, &stream, fn);
    int o;
    if (status != FSI_OK) return status;
    fsi__sh_stream(&stream, m);
    if (!stream.ok || stream.used != stream.capacity)
        return fsi__fail(m->context, FSI_ERROR_FORMAT, fn, -1, (double)size, "the buffer is of another scene");
    status = fsi__sh_check_numbers(m, fn);
    for (o = 0; o < m->obstacles && status == FSI_OK; o++)
        if (m->obstacle[o].used && m->obstacle[o].desc.body)
            status = fsi_body_check(m->context, m->obstacle[o].desc.body, o);
    if (status != FSI_OK) return status;

    /* apart, where all of it will stand? */
    fsi__sh_load_bodies(m);
    fsi__sh_stand(s, m);
    memcpy(m->stand_x, m->next.x, 3 * (size_t)m->model.vertices * sizeof(double));
    for (o = 0; o < m->obstacles; o++) {
        const fsi__sh_obstacle *ob = &m->obstacle[o];
        if (!ob->used) continue;
        fsi__sh_load_obstacle(m, ob, m->stand_x + 3 * (size_t)ob->features.first);
        if (!fsi__sh_is_finite(m->stand_x + 3 * (size_t)ob->features.first, 3 * ob->features.count[0]))
            return fsi__fail(m->context, FSI_ERROR_NAN, fn, o, 0, "obstacle %d: its place is not finite", o);
    }
    return fsi__sh_check_apart(m, fn, m->stand_x);
}

FSI_API void fsi__sh_take_state(fsi_shell *s)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    const fsi__sh_state old = m->state;
    int i;
    m->moves++;
    m->state = m->next;
    m->next = old;

    /* Public arrays. */
    for (i = 0; i < s->vertex_count; i++) {
        s->position[i] = s->target[i] = fsi__sh_to(m->state.x + 3 * i);
        s->velocity[i] = fsi__sh_to(m->state.v + 3 * i);
    }
    for (i = 0; i < s->segment_count; i++)
        if (m->model.twist_node[i] >= 0) s->twist[i] = (fsi_real)m->state.x[3 * m->model.twist_node[i]];

    /* COUPLED bodies, obstacles, anchors of springs. */
    for (i = 0; i < m->bodies; i++) {
        memcpy(m->body[i].left_center, m->body[i].center, sizeof m->body[i].center);
        m->body[i].left_turn = m->body[i].turn;
    }
    for (i = 0; i < m->obstacles; i++)
        if (m->obstacle[i].used) fsi__sh_load_obstacle(m, &m->obstacle[i], m->obstacle[i].stand);
    fsi__sh_fill_points(m);
    for (i = 0; i < m->springs; i++) fsi__sh_place_anchor(m, &m->spring[i], 0, m->was_x, m->spring[i].stand);
    fsi__sh_fill_points(m);
    m->teleported = 0; /* checked by load */
    s->time = m->state.time;
    fsi__sh_show(m);
}

FSI_API fsi_status fsi_shell_load(fsi_shell *s, const void *buffer, size_t size)
{
    fsi_status status;
    if (!fsi__sh_of(s)) return FSI_ERROR_COOKIE;
    status = fsi__sh_read_state(s, buffer, size, "fsi_shell_load");
    if (status == FSI_OK) fsi__sh_take_state(s);
    return status;
}

FSI_API uint64_t fsi_shell_hash(const fsi_shell *s)
{
    return fsi__sh_of(s) ? fsi__state_hash(fsi__sh_stream, s->impl) : 0;
}

FSI_API void fsi_shell_debug_draw(const fsi_shell *s, const fsi_debug_draw *draw)
{
    const fsi__sh_impl *m = fsi__sh_of(s);
    int i;
    if (!m || !draw) return;

    /* Edges: red if stretched, blue if compressed, full colour at 10 %. */
    for (i = 0; draw->line && i < m->model.edges; i++) {
        const int a = m->model.edge[2 * i], b = m->model.edge[2 * i + 1];
        const double rest = sqrt(m->model.edge_length2[i]),
                     strain = (double)fsi_v3_norm(fsi_v3_sub(s->position[a], s->position[b])) / rest - 1;
        const double level = strain > 0.1 ? 1 : strain < -0.1 ? -1 : strain * 10;
        const uint32_t red = (uint32_t)(255 * (level < 0 ? 1 + level : 1)),
                       blue = (uint32_t)(255 * (level > 0 ? 1 - level : 1)), green = red < blue ? red : blue;
        draw->line(draw->user, s->position[a], s->position[b], red << 16 | green << 8 | blue);
    }

    /* Contact forces. */
    for (i = 0; draw->line && i < s->vertex_count; i++) {
        const fsi_vec3 f = m->contact_force[i];
        if (fsi_v3_norm2(f) > 0)
            draw->line(draw->user, s->position[i], fsi_v3_madd(s->position[i], (fsi_real)0.1 / s->mass[i], f),
                       0x00ff00);
    }

    /* Obstacles and pins. */
    for (i = 0; draw->line && i < m->obstacles; i++) {
        const fsi__sh_obstacle *o = &m->obstacle[i];
        int e;
        for (e = 0; o->used && e < o->features.count[FSI__SC_EDGES]; e++)
            draw->line(draw->user, fsi__sh_to(o->stand + 3 * (size_t)o->edge[2 * e]),
                       fsi__sh_to(o->stand + 3 * (size_t)o->edge[2 * e + 1]), 0x808080);
    }
    for (i = 0; draw->point && i < s->vertex_count; i++)
        if (s->pinned[i]) draw->point(draw->user, s->position[i], s->mean_edge / 5, 0xff00ff);
}

FSI__COLD_END

/* ---- >>skins implementation -------------------------------------------------------------------------------------- */

typedef struct fsi__sh_skin {
    int *triangle;
    double *weight, *normal;
    int vertices, triangles;
    fsi__arena memory;
} fsi__sh_skin;

/* Unit normals of vertices, weighted by area; in 2D of segments, by length. */
static void fsi__sh_smooth(const fsi_shell *s, double *normal)
{
    int t, k, a;
    memset(normal, 0, 3 * (size_t)s->vertex_count * sizeof *normal);
    for (t = 0; t < s->triangle_count; t++) {
        const int *v = s->triangles + 3 * t;
        double x[9], u[3], w[3], n[3];
        for (k = 0; k < 3; k++) fsi__sh_from(s->position[v[k]], x + 3 * k);
        fsi__sh_sub(x + 3, x, u);
        fsi__sh_sub(x + 6, x, w);
        fsi__sh_cross(u, w, n);
        for (k = 0; k < 3; k++) for (a = 0; a < 3; a++) normal[3 * v[k] + a] += n[a];
    }
    for (t = 0; t < s->segment_count && s->desc.dim == 2; t++) for (k = 0; k < 2; k++) {
        const int *v = s->segments + 2 * t;
        normal[3 * v[k]] -= (double)s->position[v[1]].y - (double)s->position[v[0]].y;
        normal[3 * v[k] + 1] += (double)s->position[v[1]].x - (double)s->position[v[0]].x;
    }
    for (t = 0; t < s->vertex_count; t++) {
        double *n = normal + 3 * t, l = sqrt(fsi__sh_dot(n, n));
        for (a = 0; a < 3; a++) n[a] = l > 0 ? n[a] / l : 0;
    }
}

FSI_API fsi_status fsi_shell_vertex_normals(fsi_shell *s, fsi_vec3 *out)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    int i;
    if (!m) return FSI_ERROR_COOKIE;
    if (!out) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, "fsi_shell_vertex_normals", -1, 0, "out is NULL");
    fsi__sh_smooth(s, m->scratch);
    for (i = 0; i < s->vertex_count; i++) out[i] = fsi__sh_to(m->scratch + 3 * (size_t)i);
    return FSI_OK;
}

/* A point of a triangle's plane, and the smooth normal there. */
static void fsi__sh_skin_point(const fsi_shell *s, const double *normal, int t, const double *weight, double *p,
                               double *n)
{
    const int *v = s->triangles + 3 * t;
    const double b[3] = { 1 - weight[0] - weight[1], weight[0], weight[1] };
    double l;
    int k, a;
    memset(p, 0, 3 * sizeof *p);
    memset(n, 0, 3 * sizeof *n);
    for (k = 0; k < 3; k++) {
        double x[3];
        fsi__sh_from(s->position[v[k]], x);
        for (a = 0; a < 3; a++) {
            p[a] += b[k] * x[a];
            n[a] += b[k] * normal[3 * v[k] + a];
        }
    }
    l = sqrt(fsi__sh_dot(n, n));
    for (a = 0; a < 3; a++) n[a] = l > 0 ? n[a] / l : 0;
}

/* Barycentric weights of x on triangle t and distance along the interpolated normal, each from the other in turn. */
static void fsi__sh_skin_fit(const fsi_shell *s, const double *normal, int t, const double *x, double *weight)
{
    const int *v = s->triangles + 3 * t;
    double c[9], u[3], w[3], p[3], n[3], r[3], uu, uw, ww, ru, rw, det;
    int k;

    /* Edges u, w of the triangle and their products. */
    for (k = 0; k < 3; k++) fsi__sh_from(s->position[v[k]], c + 3 * k);
    fsi__sh_sub(c + 3, c, u);
    fsi__sh_sub(c + 6, c, w);
    uu = fsi__sh_dot(u, u);
    uw = fsi__sh_dot(u, w);
    ww = fsi__sh_dot(w, w);
    det = uu * ww - uw * uw;

    /* Fixed-point iteration. */
    weight[0] = weight[1] = 1.0 / 3;
    for (k = 0; k < 8; k++) {
        int a;
        fsi__sh_skin_point(s, normal, t, weight, p, n);
        fsi__sh_sub(x, p, r);
        weight[2] = fsi__sh_dot(r, n);
        for (a = 0; a < 3; a++) r[a] = x[a] - weight[2] * n[a] - c[a];
        ru = fsi__sh_dot(r, u);
        rw = fsi__sh_dot(r, w);
        weight[0] = det > 0 ? (ww * ru - uw * rw) / det : 0;
        weight[1] = det > 0 ? (uu * rw - uw * ru) / det : 0;
    }
}

FSI_API fsi_status fsi_shell_skin_update(fsi_shell_skin *skin, const fsi_shell *s, fsi_vec3 *out, fsi_vec3 *normals)
{
    const char *fn = "fsi_shell_skin_update";
    fsi__sh_skin *k;
    int i, a;
    if (!skin || skin->cookie != FSI__COOKIE('k', fsi_shell_skin) || !fsi__sh_of(s)) return FSI_ERROR_COOKIE;
    k = (fsi__sh_skin *)skin->impl;
    if (k->vertices != s->vertex_count || k->triangles != s->triangle_count)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "the skin was made for another simulator");
    if (!out) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "out is NULL");
    fsi__sh_smooth(s, k->normal);
    for (i = 0; i < skin->count; i++) {
        double p[3], n[3];
        fsi__sh_skin_point(s, k->normal, k->triangle[i], k->weight + 3 * (size_t)i, p, n);
        if (normals) normals[i] = fsi__sh_to(n);
        for (a = 0; a < 3; a++) p[a] += k->weight[3 * (size_t)i + 2] * n[a];
        out[i] = fsi__sh_to(p);
    }
    return FSI_OK;
}

FSI__COLD_BEGIN

static void fsi__sh_lay_skin(fsi__sh_skin *k, fsi__arena *a, int count, int vertices)
{
    k->triangle = (int *)fsi__take(a, (size_t)count, sizeof(int));
    k->weight = (double *)fsi__take(a, 3 * (size_t)count, sizeof(double));
    k->normal = (double *)fsi__take(a, 3 * (size_t)vertices, sizeof(double));
}

static fsi_status fsi__sh_bind(fsi__sh_skin *k, const fsi_shell *s, const fsi_vec3 *fine, int count)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh;
    fsi_status status;
    int i;

    /* The triangles as a mesh. */
    d.context = s->context;
    d.vertices = s->position;
    d.vertex_count = s->vertex_count;
    d.elements = s->triangles;
    d.element_count = s->triangle_count;
    d.kind = FSI_MESH_TWO_SIDED;
    d.weld = 0;
    status = fsi_mesh_create(&mesh, &d);
    if (status != FSI_OK) return status;

    /* Closest triangle of each fine vertex, and its weights there. */
    fsi__sh_smooth(s, k->normal);
    for (i = 0; i < count; i++) {
        const fsi_mesh_hit hit = fsi_mesh_closest(mesh, fine[i], FSI_REAL_MAX, -1);
        double x[3];
        k->triangle[i] = hit.face >= 0 && mesh->face_source[hit.face] >= 0 ? mesh->face_source[hit.face] : 0;
        fsi__sh_from(fine[i], x);
        fsi__sh_skin_fit(s, k->normal, k->triangle[i], x, k->weight + 3 * (size_t)i);
    }
    fsi_mesh_destroy(mesh);
    return FSI_OK;
}

FSI_API fsi_status fsi_shell_skin_create(fsi_shell_skin **out, const fsi_shell *s, const fsi_vec3 *fine, int count)
{
    const char *fn = "fsi_shell_skin_create";
    fsi__arena measure;
    fsi_shell_skin *skin;
    fsi__sh_skin *k;
    fsi_status status;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!fsi__sh_of(s)) return FSI_ERROR_COOKIE;
    if (s->triangle_count == 0) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "there are no triangles");
    if (count < 1 || !fine)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, count, "count is %d, or fine is NULL", count);
    status = fsi__sm_check_vectors(s->context, fn, fine, count, "fine vertex", 3);
    if (status != FSI_OK) return status;

    /* Memory. */
    skin = (fsi_shell_skin *)fsi__alloc(s->context, 1, sizeof *skin);
    k = (fsi__sh_skin *)fsi__alloc(s->context, 1, sizeof *k);
    memset(&measure, 0, sizeof measure);
    if (k) fsi__sh_lay_skin(k, &measure, count, s->vertex_count);
    if (!skin || !k || !fsi__arena_reserve(s->context, &k->memory, measure.used)) {
        if (skin) fsi__free(s->context, skin, 1, sizeof *skin);
        if (k) fsi__free(s->context, k, 1, sizeof *k);
        return fsi__fail(s->context, FSI_ERROR_MEMORY, fn, -1, count, "no memory for %d vertices", count);
    }

    /* Fields, then the weights. */
    fsi__sh_lay_skin(k, &k->memory, count, s->vertex_count);
    k->vertices = s->vertex_count;
    k->triangles = s->triangle_count;
    skin->cookie = FSI__COOKIE('k', fsi_shell_skin);
    skin->context = s->context;
    skin->count = count;
    skin->triangle = k->triangle;
    skin->weight = k->weight;
    skin->impl = k;
    status = fsi__sh_bind(k, s, fine, count);
    if (status != FSI_OK) fsi_shell_skin_destroy(skin);
    else *out = skin;
    return status;
}

FSI_API void fsi_shell_skin_destroy(fsi_shell_skin *skin)
{
    fsi__sh_skin *k;
    fsi_context *c;
    if (!skin || skin->cookie != FSI__COOKIE('k', fsi_shell_skin)) return;
    k = (fsi__sh_skin *)skin->impl;
    c = skin->context;
    fsi__arena_free(c, &k->memory);
    skin->cookie = 0;
    fsi__free(c, k, 1, sizeof *k);
    fsi__free(c, skin, 1, sizeof *skin);
}

/* ---- >>create and destroy --------------------------------------------------------------------------------------- */

static fsi_status fsi__sh_make_solvers(fsi__sh_impl *m)
{
    fsi_assembly_desc a = fsi_assembly_default_desc();
    fsi_solver_desc d = fsi_solver_default_desc();
    fsi_status status;
    a.context = d.context = m->context;
    a.vertices = m->first_body;
    a.elements = m->model.first[FSI__SM_KINDS];
    a.start = m->model.start;
    a.vertex = m->model.node;
    /* contacts change the pattern: order quickly */
    if (!m->contact || m->first_body >= 3000) d.ordering = fsi_dissection();
    status = fsi_assembly_create(&m->elastic, &a);
    if (status == FSI_OK) status = fsi_solver_create(&m->solver, &d);
    if (status == FSI_OK) status = fsi_pairs_create(&m->contacts.found, m->context);
    return status;
}

static void fsi__sh_list_features(fsi__sh_impl *m)
{
    fsi__sc_features *f = &m->contacts.own;
    f->count[FSI__SC_POINTS] = m->model.vertices;
    f->count[FSI__SC_EDGES] = m->model.edges;
    f->count[FSI__SC_FACES] = m->model.triangles;
    f->index[FSI__SC_EDGES] = m->model.edge;
    f->index[FSI__SC_FACES] = m->model.triangle;
    f->edge_length2 = m->model.edge_length2;
    m->contacts.lone.count[FSI__SC_POINTS] = m->model.points;
    m->contacts.lone.index[FSI__SC_POINTS] = m->model.point;
}

/* The initial state: at rest at the positions of the desc. */
static void fsi__sh_start_state(fsi_shell *s, fsi__sh_impl *m, fsi__sm_maker *k)
{
    fsi__sm_model *p = &m->model;
    int i;
    for (i = 0; i < p->vertices; i++) {
        fsi__sh_from(k->desc->vertices[i], m->state.x + 3 * i);
        s->position[i] = s->target[i] = k->desc->vertices[i];
        m->public_mass[i] = (fsi_real)p->mass[i];
    }
    fsi__sm_make_frames(k, m->state.x, m->state.frame, k->seen);
    for (i = 0; i < p->count[FSI__SM_JOINT]; i++) {
        fsi__shell_frame f[2];
        double x[9];
        f[0] = m->state.frame[p->joint_segment[2 * i]];
        f[1] = m->state.frame[p->joint_segment[2 * i + 1]];
        fsi__sh_gather(m->state.x, p->node + p->start[p->first[FSI__SM_JOINT] + i], 3, x);
        m->state.twist[i] = fsi__shell_joint_twist(f, p->joint[i].rest_twist, x);
    }
}

/* The part of create that can fail. */
static fsi_status fsi__sh_build(fsi_shell *s, fsi__sh_impl *m, fsi__sm_maker *k)
{
    const char *fn = k->fn;
    fsi__arena measure;
    fsi_status status = fsi__sm_make_model(k, &m->given, &m->counted);
    int i;
    if (status != FSI_OK) return status;

    /* Damping, contact range (default 0.15 mean edges), settings. */
    m->first_body = m->model.vertices + m->model.twists;
    for (i = 0; i < m->model.materials; i++) if (m->model.material[i].damping_stiffness > 0) m->damps = 1;
    m->contact = k->desc->contact != 0;
    m->contacts.self_contact = k->desc->self_contact != 0;
    m->contacts.range = k->desc->contact_range > 0 ? (double)k->desc->contact_range
               : m->model.edges > 0       ? 0.15 * m->model.mean_edge
                                          : 1e-3;
    if (!(m->model.mean_edge > 0)) m->model.mean_edge = m->contacts.range / 0.15;
    fsi__sh_take_settings(s, m, k->desc);
    m->contacts.dim = m->model.dim;
    m->contacts.vertices = m->model.vertices;
    m->contacts.mass = m->model.mass;
    m->contacts.clearance = m->model.clearance;
    m->contacts.bare = m->model.bare;

    /* Features, solvers, trees. */
    fsi__sh_list_features(m);
    status = fsi__sh_make_solvers(m);
    if (status == FSI_OK && m->contact) status = fsi__sc_make_trees(m->context, &m->contacts.own);
    if (status == FSI_OK && m->contact) status = fsi__sc_make_trees(m->context, &m->contacts.lone);
    if (status != FSI_OK) return status;

    /* Memory that the scene fixes, and the initial state. */
    memset(&measure, 0, sizeof measure);
    fsi__sh_lay_fixed(s, m, &measure);
    if (!fsi__arena_reserve(m->context, &m->fixed_memory, measure.used))
        return fsi__fail(m->context, FSI_ERROR_MEMORY, fn, -1, (double)measure.used, "no memory for %d elements",
                         m->model.first[FSI__SM_KINDS]);
    fsi__sh_lay_fixed(s, m, &m->fixed_memory);
    fsi__sh_start_state(s, m, k);
    status = fsi__sh_resize(m, fn);
    if (status == FSI_OK && m->contact && m->contacts.self_contact) status = fsi__sh_list_close(m, fn);
    return status == FSI_OK ? fsi__sh_check_apart(m, fn, m->state.x) : status;
}

FSI_API void fsi_shell_destroy(fsi_shell *s)
{
    fsi__sh_impl *m = fsi__sh_of(s);
    fsi_context *c, own;
    int i;
    if (!m) return;
    for (i = 0; i < m->obstacles; i++) fsi__sh_free_obstacle(m, &m->obstacle[i]);
    c = m->context;
    own = m->own;
    if (c == &m->own) c = &own;

    /* Parts, arrays, then the context if it is its own. */
    fsi__sc_free(&m->contacts);
    fsi_assembly_destroy(m->elastic);
    fsi_solver_destroy(m->solver);
    fsi__arena_free(m->context, &m->given);
    fsi__arena_free(m->context, &m->counted);
    fsi__arena_free(m->context, &m->fixed_memory);
    fsi__arena_free(m->context, &m->work);
    fsi__free(m->context, m->rub, (size_t)m->rub_capacity, sizeof *m->rub);
    fsi__free(m->context, m->coupling, (size_t)m->coupling_capacity, 4 * sizeof(int));
    fsi__free(m->context, m->total_col, (size_t)m->total_capacity, sizeof(int));
    fsi__free(m->context, m->total_value, (size_t)m->total_capacity, 9 * sizeof(double));
    fsi__free(m->context, m->obstacle, (size_t)m->obstacle_capacity, sizeof *m->obstacle);
    fsi__free(m->context, m->body, (size_t)m->body_capacity, sizeof *m->body);
    fsi__free(m->context, m->spring, (size_t)m->spring_capacity, sizeof *m->spring);
    fsi__free(m->context, m->attachment, (size_t)m->attachment_capacity, sizeof *m->attachment);
    s->cookie = 0;
    fsi__free(c, m, 1, sizeof *m);
    fsi__free(c, s, 1, sizeof *s);
}

FSI_API fsi_shell_desc fsi_shell_default_desc(void)
{
    fsi_shell_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('d', fsi_shell_desc);
    d.dim = 3;
    d.gravity = fsi_v3(0, 0, (fsi_real)-9.81);
    d.substeps = 1;
    d.max_newton = 100;
    d.tolerance = (fsi_real)1e-3;
    d.contact = d.self_contact = 1;
    d.friction_speed = (fsi_real)3e-4;
    d.friction_iterations = 1;
    d.drag = (fsi_real)1.2;
    return d;
}

FSI_API fsi_status fsi_shell_create(fsi_shell **out, const fsi_shell_desc *desc)
{
    const char *fn = "fsi_shell_create";
    fsi__sm_maker k;
    fsi__sh_impl *m;
    fsi_shell *s;
    fsi_status status;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!desc || desc->cookie != FSI__COOKIE('d', fsi_shell_desc) || !fsi__is_context(desc->context))
        return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__sm_check_desc(desc->context, fn, desc));

    /* Memory. */
    s = (fsi_shell *)fsi__alloc(desc->context, 1, sizeof *s);
    m = (fsi__sh_impl *)fsi__alloc(desc->context, 1, sizeof *m);
    if (!s || !m) {
        if (s) fsi__free(desc->context, s, 1, sizeof *s);
        if (m) fsi__free(desc->context, m, 1, sizeof *m);
        return fsi__fail(desc->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for a simulator");
    }

    /* The model; destroy frees what a failure leaves. */
    s->cookie = FSI__COOKIE('s', fsi_shell);
    s->impl = m;
    m->own = fsi_default_context();
    m->context = m->contacts.context = s->context = desc->context ? desc->context : &m->own;
    memset(&k, 0, sizeof k);
    k.context = m->context;
    k.fn = fn;
    k.desc = desc;
    k.m = &m->model;
    status = fsi__sh_build(s, m, &k);
    fsi__arena_free(m->context, &k.temporary);
    if (status != FSI_OK) {
        fsi_shell_destroy(s);
        return status;
    }

    /* Public fields. */
    s->vertex_count = m->model.vertices;
    s->triangle_count = m->model.triangles;
    s->segment_count = m->model.segments;
    s->triangles = m->model.triangle;
    s->segments = m->model.segment;
    s->mean_edge = (fsi_real)m->model.mean_edge;
    s->contact_range = (fsi_real)m->contacts.range;
    s->stats.min_gap = 1;
    s->stats.bytes = m->context->bytes;
    s->stats.allocs = m->context->allocs;
    *out = s;
    return FSI_OK;
}

FSI__COLD_END

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
