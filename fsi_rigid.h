/* fsi_rigid.h - rigid bodies and articulated trees: contacts with friction, joints; the owner of fsi_bodys for liquids.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_rigid.h"
         #include "fsi_rigid.h"

   A BOX FALLS ON A FLOOR
      fsi_context ctx = fsi_default_context();      // hooks for memory, threads, messages; and what went wrong
      fsi_rigid_desc d = fsi_rigid_default_desc();  // physical defaults, SI units
      fsi_rigid_shape box = fsi_rigid_box(fsi_v3(0.5f, 0.5f, 0.5f)); // half sides
      fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
      fsi_rigid *world;
      int id, step;
      d.context = &ctx;
      if (fsi_rigid_create(&world, &d) != FSI_OK) { puts(ctx.error.message); return 1; }
      fsi_rigid_add_plane(world, fsi_v3(0, 0, 1), 0, NULL, NULL);
      box.density = 600;                            // wood
      b.shapes = &box; b.shape_count = 1;
      b.pose.position = fsi_v3(0, 0, 2);
      if (fsi_rigid_add_body(world, &b, &id) != FSI_OK) { puts(ctx.error.message); return 1; }
      for (step = 0; step < 120; step++) {
          if (fsi_rigid_step(world, (fsi_real)(1.0 / 60)) != FSI_OK) { puts(ctx.error.message); break; }
          printf("%g s: height %g m\n", world->time, (double)world->body[id]->pose.position.z);
      }
      fsi_rigid_destroy(world);

   BODIES IN A LIQUID
      fsi_rigid_tessellate(world, id, -1, 0, &mesh);    // a closed mesh around the body as it stands
      o.mesh = mesh; o.body = fsi_rigid_body(world, id);
      fsi_sph_add_obstacle(water, &o, NULL);       // or fsi_levelset_add_obstacle
      each step:
         fsi_rigid_begin_step(world, dt);               // forces, poses and velocities for the liquid to read
         fsi_sph_step(water, dt);                       // liquid and bodies exchange impulses
         fsi_rigid_end_step(world, dt);                 // contacts and joints with these impulses; bodies move

   WHAT IT DOES
      Spheres, capsules, boxes, cylinders, closed meshes and sums of them; static, kinematic (with a prescribed motion)
      and dynamic bodies; planes; 2D and 3D. Contacts with Coulomb friction and restitution by projected Gauss-Seidel on
      impulses, warm-started. Islands (bodies connected by contacts) of free bodies that the sweeps leave unsolved, and
      whose matrix is small (desc.direct_work: a tower of thousands, a wall of 136 bricks), by Newton's method
      (stats.direct; islands that are too large: stats.degraded): towers of small cubes, arches and mass ratios of 1000
      stand. Bodies that fall together stop together, in the step in which the lowest one is stopped. Overlap is undone
      by split impulses, which add no energy and no momentum; but as they move bodies without a velocity, the angular
      momentum of flying bodies about a fixed point changes with their positions. Piles come to rest and fall asleep.
      Torque-free rotation keeps its angular momentum to rounding. Trees of links (revolute, prismatic, weld; root free
      or fixed) in reduced coordinates: joints hold exactly; springs, dampers, limits, scripted joints. Their Jacobians,
      inertia and bias forces can be read, by controllers.
   WHAT IT DOES NOT DO
      Closed loops of joints; ropes; motors (script the joint or write a force). Meshes are in contact by samples:
      features smaller than the spacing of their samples (fsi_rigid_shape.samples) may pass into each other. Contacts
      look ahead within the step, so that a body thinner than its path in a step does not pass through others, unless it
      hits a mesh edge on; spinning ones that collide fast can overlap by half their thickness for some steps. There is
      no rolling friction. An impact on a row of bodies that touch acts on all of them at once (Newton's law at the
      contact that closes): of five equal balls, e = 1, the first one returns with 0.6 of its speed and four leave with
      0.4. An island with one link of a tree, or with particles, is left to the sweeps. In heaps of random bodies
      Newton's method seldom converges in a dozen steps; then the sweeps' result stands. Of 40 thin tiles that land
      tilted the first impact may leave 1 mm of overlap, where 50 sweeps do not converge: see stats.residual.

   MACROS: those of fsi.h.
   STACK: up to 48 kB in the caller's thread and in each of the context's.
   UNITS: SI. In 2D masses, forces and impulses are per metre of depth; bodies move in x and y and turn about z.
   PRECISION: state in fsi_real; velocities, impulses and trees are solved in double.
   COST: about 0.5 us for a contact and sweep; at most 50 sweeps a step where islands are large or heaps, 2 to 10 where
      they are small or at rest; about 1 us for a contact and Newton step, up to 200 of them after an impact; 2 us for a
      free body; see docs/rigid.md.
   FIND IN HERE (search for >>)
      >>bodies and worlds, the API  >>trees, the API  >>stages of a step, for fsi's own headers, not for you; then in
      the order of the step: >>world  >>begin  >>predict  >>collide  >>solve  >>advance  >>accept  >>commit  >>step
      >>liquids  >>reading and setting bodies  >>tessellation and drawing  >>adding and removing bodies  >>planes
      >>trees implementation  >>worlds  >>state implementation
   Shapes are in fsi_collide.h, the search for contacts in fsi_detect.h, the contact solver in fsi_contact.h, trees of
   links in fsi_joints.h.
*/
#ifndef FSI_RIGID_H
#define FSI_RIGID_H

#include "fsi_detect.h"

/* ---- >>bodies and worlds, the API -------------------------------------------------------------------------------- */

/* A body to be added. Start from fsi_rigid_default_body_desc(). */
typedef struct fsi_rigid_body_desc {
    uint32_t cookie;
    fsi_rigid_kind kind;           /* default DYNAMIC */
    const fsi_rigid_shape *shapes; /* copied; they may overlap: then their masses add up */
    int shape_count;               /* 0 to 4096; 0: a body without contacts, its mass and inertia must be given */
    fsi_pose pose;                 /* of the body's frame in the world; default identity. fsi_body.pose is that of the
                                      centre of mass: the same orientation, another position unless world->center[id]
                                      is 0 */
    fsi_vec3 velocity;             /* of the centre of mass [m/s] */
    fsi_vec3 angular_velocity;     /* [rad/s] */
    fsi_real mass;                 /* [kg]; default 0: by the shapes' densities; else these are scaled to give it */
    int inertia_given;             /* 1: `center` and `inertia` replace the shapes'; mass must be given; default 0 */
    fsi_vec3 center;               /* of mass, in the body's frame [m] */
    fsi_mat3 inertia;              /* about the centre, axes of the body's frame [kg m^2]; 2D: only m[8] is used */
    fsi_real friction;             /* Coulomb's coefficient; two bodies: sqrt(a b); default -1: the world's */
    fsi_real restitution;          /* 0 to 1; two bodies: the larger one; default -1: the world's */
    uint32_t filter, mask;         /* two bodies may be in contact when a.filter & b.mask and b.filter & a.mask; planes
                                      and domain ignore them; default 0xffffffff */
    int asleep;                    /* 1: starts asleep (DYNAMIC, at rest); default 0 */
} fsi_rigid_body_desc;

/* Bodies that are added where they overlap others. */
typedef enum fsi_rigid_overlap {
    FSI_RIGID_OVERLAP_RESOLVE,  /* counted in stats.overlapping, separated by split impulses without a jerk */
    FSI_RIGID_OVERLAP_REFUSE    /* fsi_rigid_add_body, add_tree and teleport fail and name the two bodies */
} fsi_rigid_overlap;

/* How to make a world. Start from fsi_rigid_default_desc(). */
typedef struct fsi_rigid_desc {
    uint32_t cookie;
    fsi_context *context;      /* default NULL: malloc, serial or OpenMP, no clock */
    int dim;                   /* 3 (default) or 2 */
    fsi_vec3 gravity;          /* [m/s^2]; default (0, 0, -9.81); 2D: z must be 0 */
    int substeps;              /* of one call, 1 to 1000; default 1 */
    int sweeps;                /* Gauss-Seidel sweeps a substep at most, alternately forward and backward; default 50.
                                  From the eighth on small islands that are not solved are solved directly: fewer than 8
                                  means sweeps only */
    fsi_real direct_work;      /* multiplications that one factorisation of an island may take to be solved directly; a
                                  solution takes at most 50 times that, and there are a few a substep; default 3e6 (a
                                  wall of 136 bricks); 0: sweeps only. Larger islands: stats.degraded */
    fsi_real tolerance;        /* sweeps end when one changes no contact's relative velocity by more than this times |g|
                                  dt, or times the fastest contact's speed where there is no gravity [1]; default 1e-6;
                                  0: all sweeps run */
    int warm_start;            /* start from the last step's impulses; default 1 */
    fsi_real friction;         /* default 0.3 */
    fsi_real restitution;      /* default 0.2 */
    fsi_real restitution_speed;/* slower impacts do not bounce [m/s]; default 0.5 */
    fsi_real contact_margin;   /* bodies closer than this are in contact [m]; default 0: 2 % of the smaller one's
                                  radius */
    fsi_real slop;             /* overlap, or gap, that is not corrected where bodies touch [m]; default 0: 0.2 % of the
                                  smaller one's radius */
    fsi_real push;             /* fraction of the overlap beyond slop that split impulses undo in a substep, 0 to 1;
                                  default 0.2 */
    fsi_rigid_overlap overlap; /* default RESOLVE */
    fsi_real sleep_speed;      /* bodies no point of which moves faster fall asleep [m/s]; default 0.02 */
    fsi_real sleep_time;       /* when all bodies of their island have been so for this long [s]; default 0.5; 0:
                                  never */
    fsi_box3 domain;           /* six walls around all (2D: four); default empty: none */
    fsi_vec3 origin;           /* present position of the world's first origin: fsi_rigid_shift_origin moves it and all
                                  positions; default 0 */
    fsi_real domain_friction, domain_restitution; /* default -1: the world's */
    int reserve_bodies, reserve_contacts;         /* to make room for; default 0 */
} fsi_rigid_desc;

/* A contact point of two bodies that touch, or may touch within the step. `b` < 0: -1 - k is plane k, see
   fsi_rigid_add_plane. */
typedef struct fsi_rigid_contact {
    int a, b;                  /* body ids, a > b */
    fsi_vec3 point;            /* [m] */
    fsi_vec3 normal;           /* unit, out of b, towards a */
    fsi_real depth;            /* [m]; negative: a gap */
    fsi_vec3 impulse;          /* on a, -impulse on b, friction included; last substep [N s] */
    uint64_t key;              /* names the pair of features: equal from step to step while they stay in contact */
} fsi_rigid_contact;

/* Counts and sums of the last successful step. */
typedef struct fsi_rigid_stats {
    int bodies, awake, islands;   /* bodies that are not removed; dynamic ones awake; groups of awake bodies in
                                     contact */
    int contacts, touching;       /* last substep: all, and those with an impulse */
    int overlapping;              /* pairs of bodies that overlap by more than 5 % of the smaller one's radius, last
                                     substep */
    int substeps, sweeps;         /* sweeps: sum over substeps */
    int direct, direct_steps;     /* islands that Newton's method has solved; Newton steps, without success included;
                                     sums over substeps */
    int degraded;                 /* islands that sweeps left unsolved, and larger than direct_work allows; sum over
                                     substeps */
    int fell_asleep, woken;       /* bodies */
    double residual;              /* largest change of a contact's relative velocity in the last sweep [m/s] */
    double max_depth;             /* deepest overlap before it was undone, last substep [m] */
    double max_speed;             /* of a centre of mass [m/s] */
    double momentum[3], angular_momentum[3];  /* of dynamic bodies; about the world's origin [N s, N m s] */
    double kinetic_energy, potential_energy;  /* of dynamic bodies [J]; potential: -m g.x and springs */
    double contact_impulse[3];    /* of planes, static and kinematic bodies on dynamic ones [N s] */
    double liquid_impulse[3];     /* of liquids on bodies [N s] */
    double seconds_collide, seconds_solve, seconds_other; /* by the clock hook */
    double seconds_direct;        /* of seconds_solve: Newton's method */
    size_t bytes;                 /* held through its context */
    long long allocs;             /* allocations of the context so far */
} fsi_rigid_stats;

/* A world. Read everything; write only what is marked. Arrays may move when bodies are added; fsi_bodys never do. */
typedef struct fsi_rigid {
    uint32_t cookie;
    fsi_context *context;               /* never NULL */
    fsi_rigid_desc desc;
    int count, capacity;                /* bodies' places: ids are 0 .. count-1; removed ones have kind NONE and are
                                           used again */
    fsi_body *const *body;              /* count: state as liquids see it (fsi.h), with the present `pose` and
                                           `velocity`; NULL where removed */
    const unsigned char *kind;          /* count: fsi_rigid_kind */
    const unsigned char *asleep;        /* count: 1 asleep */
    const fsi_vec3 *center;             /* count: centre of mass in the body's frame [m] */
    const int *link;                    /* count: tree that the body is a link of, or -1 */
    fsi_vec3 *force, *torque;           /* count: external, about the centre, kept from step to step, gravity not
                                           included; yours to write [N, N m]; a change wakes the body */
    int contact_count;
    const fsi_rigid_contact *contact;   /* contact_count, of the last substep; sorted by (a, b, key) */
    int plane_count;                    /* the first six (2D: four) are the domain's where there is one */
    int tree_count;                     /* trees' places */
    double time;                        /* seconds simulated */
    fsi_rigid_stats stats;
    void *impl;
} fsi_rigid;

FSI_API fsi_rigid_desc fsi_rigid_default_desc(void);           /* fills every field */
FSI_API fsi_rigid_body_desc fsi_rigid_default_body_desc(void); /* fills every field; set shapes */
/* Errors: COOKIE, ARGUMENT (names the field), NAN, MEMORY. *out is NULL on failure. */
FSI_API fsi_status fsi_rigid_create(fsi_rigid **out, const fsi_rigid_desc *desc);
FSI_API void fsi_rigid_destroy(fsi_rigid *world); /* NULL is fine */
/* Other settings from now on: start from world->desc. All but cookie, context, dim, domain and origin may change;
   reserve is ignored. Wakes all. Errors: COOKIE, ARGUMENT, NAN (name the field). */
FSI_API fsi_status fsi_rigid_set_desc(fsi_rigid *world, const fsi_rigid_desc *desc);
/* Why the last call on it failed. NULL, as after a create that failed: a constant text that says where to read why.
   Never NULL. */
FSI_API const fsi_error *fsi_rigid_error(const fsi_rigid *world);

/* *id (NULL ok) names it in calls below. Errors: COOKIE; NAN and ARGUMENT (name the field, the shape): quaternion off
   unit length by more than 1e-3, sizes, mass <= 0, inertia that no body has; MESH: open, a container, crossing itself;
   MEMORY; with OVERLAP_REFUSE ARGUMENT (names the other body). */
FSI_API fsi_status fsi_rigid_add_body(fsi_rigid *world, const fsi_rigid_body_desc *desc, int *id);
/* Wakes the bodies in contact with it. Its fsi_body ends: remove it from liquids first. Links are refused: remove their
   tree. */
FSI_API fsi_status fsi_rigid_remove_body(fsi_rigid *world, int id);
/* The half space normal.x < offset is solid. options: friction and restitution are read (NULL: the world's). *id (NULL
   ok): plane k is contact.b = -1 - k. normal: any length but 0. */
FSI_API fsi_status fsi_rigid_add_plane(fsi_rigid *world, fsi_vec3 normal, fsi_real offset,
    const fsi_rigid_body_desc *options, int *id);
/* Ids of the others stay; the domain's planes are refused. */
FSI_API fsi_status fsi_rigid_remove_plane(fsi_rigid *world, int id);

/* The body for a liquid's obstacle desc; stays at its address until it is removed. DYNAMIC ones are COUPLED, others
   PRESCRIBED. NULL: no such body. */
FSI_API fsi_body *fsi_rigid_body(fsi_rigid *world, int id);
/* Pose of the body's frame, in which shapes were given. Identity: no such body. */
FSI_API fsi_pose fsi_rigid_pose(const fsi_rigid *world, int id);
/* A closed mesh, in world coordinates as the body stands now, of its shape number `shape`; -1: of all in one mesh (the
   same as adding one obstacle for each, unless they overlap: then add one for each). edge: longest edge on curved
   shapes [m]; 0: 24 around; flat faces have as few as possible. Corners of curved shapes are moved outwards so that the
   volume is right. Yours to destroy: before the world, unless desc.context was given. */
FSI_API fsi_status fsi_rigid_tessellate(fsi_rigid *world, int id, int shape, fsi_real edge, fsi_mesh **out);
/* Volume, mass, centre (world) and inertia (about it, world axes) as the body stands. */
FSI_API fsi_status fsi_rigid_mass(const fsi_rigid *world, int id, fsi_mass_properties *out);
/* Distance of x from the body's surface [m], negative inside; FSI_REAL_MAX where there is none. */
FSI_API fsi_real fsi_rigid_distance(const fsi_rigid *world, int id, fsi_vec3 x);

/* All of these wake the body and its island. Errors: ARGUMENT (no such body, wrong kind, a link where said), NAN.

   teleport: of the body's frame; velocities stay; of a link: only of a free root, the tree comes along. */
FSI_API fsi_status fsi_rigid_teleport(fsi_rigid *world, int id, fsi_pose pose);
/* KINEMATIC: it moves so from now on; links: free roots only, joints keep their rates. */
FSI_API fsi_status fsi_rigid_set_velocity(fsi_rigid *world, int id, fsi_vec3 velocity, fsi_vec3 angular_velocity);
/* [N s] at the world point x: changes velocities at once, of a whole tree. */
FSI_API fsi_status fsi_rigid_apply_impulse(fsi_rigid *world, int id, fsi_vec3 impulse, fsi_vec3 x);
/* [N] at x, at the body's present pose, during the next step only; forces add up. */
FSI_API fsi_status fsi_rigid_apply_force(fsi_rigid *world, int id, fsi_vec3 force, fsi_vec3 x);
/* KINEMATIC: its frame is there at the end of the next step, and rests then. */
FSI_API fsi_status fsi_rigid_set_target(fsi_rigid *world, int id, fsi_pose pose);
FSI_API fsi_status fsi_rigid_wake(fsi_rigid *world, int id);
/* DYNAMIC: at rest from now on, until something wakes it. */
FSI_API fsi_status fsi_rigid_sleep(fsi_rigid *world, int id);

/* Advances exactly dt seconds, 1e-12 to 1000, without liquids; dt 0 only fills stats. Errors: ARGUMENT (dt), NAN (names
   the body and what was not finite), MEMORY, LIMIT (a coordinate beyond 1e9 m; a speed beyond 1e9 m/s or rad/s, or a
   force, impulse or target that would give it: names the body and which); then nothing has changed. */
FSI_API fsi_status fsi_rigid_step(fsi_rigid *world, fsi_real dt);
/* The longest step in which no awake body moves in a substep by more than half its thickness, free fall included [s];
   1000 where nothing moves. Longer ones are no error: contacts look ahead. */
FSI_API fsi_real fsi_rigid_suggest_dt(const fsi_rigid *world);
/* Adds offset [m] to all positions: bodies, targets, contacts, planes, domain: a world whose origin moves along.
   Liquids around it are shifted by their own functions; obstacles that are fixed to bodies of the world need no more
   than that. Apart from rounding, later steps are the same as without. Not between begin_step and end_step. Errors:
   NAN, ARGUMENT, LIMIT (a body would be beyond 1e9 m); then nothing has changed. */
FSI_API fsi_status fsi_rigid_shift_origin(fsi_rigid *world, fsi_vec3 offset);

/* Around a liquid's step. begin: fills the inputs of all fsi_bodys: pose, velocity, `end` of PRESCRIBED ones, and as
   force and torque of COUPLED ones gravity, external forces and those of contacts and joints in a step without the
   liquid. Then liquids step, by the same dt. end: takes impulse and angular_impulse of each body, solves contacts and
   joints anew with them and moves the bodies. Several liquids act in turn: between them call take_liquid, which books
   the impulses of the last one and adds them to the force that the next one sees. begin once more without end begins
   anew, after a liquid's step has failed; one that fails changes nothing. desc.substeps: the impulse is spread over
   them evenly. Stability: liquid and a free body are solved together by the liquid, any density ratio. Contacts and
   joints are explicit in one step: a liquid that presses a body onto others, or a link, feels the rest of their mass
   one step later. That is stable where the added mass of the liquid on a link is less than about the mass of the links
   that move with it, and where a pile under water settles; else use fsi_wcsph.h, which solves contacts of both kinds
   together. dt 0 in both only fills stats. A body that a liquid pushes stays awake. Errors: ARGUMENT (dt; end without
   begin), NAN (names the body); MEMORY. */
FSI_API fsi_status fsi_rigid_begin_step(fsi_rigid *world, fsi_real dt);
FSI_API fsi_status fsi_rigid_take_liquid(fsi_rigid *world);
FSI_API fsi_status fsi_rigid_end_step(fsi_rigid *world, fsi_real dt);

/* ---- >>trees, the API: articulated bodies in reduced coordinates (spec membrane.md 6) ---------------------------- */

/* Joints and trees to read (fsi_rigid_joint_kind, fsi_rigid_tree) are declared in fsi_joints.h. */

typedef struct fsi_rigid_link_desc {
    uint32_t cookie;
    fsi_rigid_body_desc body;    /* in the tree's initial position; kind and velocities are ignored */
    int parent;                  /* an earlier link; -1: the root, link 0 only */
    fsi_rigid_joint_kind joint;  /* default REVOLUTE */
    fsi_vec3 point;              /* on the axis, world, in that position [m] */
    fsi_vec3 axis;               /* world, any length but 0; default z; 2D: REVOLUTE is always about z, PRISMATIC in the
                                    plane */
    fsi_real q;                  /* the coordinate's value in that position; default 0 */
    fsi_real rate;               /* and its rate; default 0 */
    fsi_real stiffness, rest;    /* spring: -stiffness (q - rest) [N m/rad or N/m]; default 0, 0 */
    fsi_real damping;            /* -damping qd [N m s or N s/m]; default 0. Springs and dampers are implicit */
    int limited;                 /* 1: lower <= q <= upper, as contacts without restitution; default 0 */
    fsi_real lower, upper;
} fsi_rigid_link_desc;

typedef struct fsi_rigid_tree_desc {
    uint32_t cookie;
    const fsi_rigid_link_desc *links;  /* copied */
    int link_count;                    /* 1 to 256 */
    int fixed;                         /* 1: the root does not move; default 0: it is free */
    fsi_vec3 velocity, angular_velocity; /* of the free root's centre */
} fsi_rigid_tree_desc;

FSI_API fsi_rigid_link_desc fsi_rigid_default_link_desc(void); /* fills every field */
FSI_API fsi_rigid_tree_desc fsi_rigid_default_tree_desc(void);
/* Links become bodies with ids of their own, DYNAMIC (the fixed root and what is welded to it: STATIC); there are no
   contacts between parent and child. Errors: those of fsi_rigid_add_body (element: the link), ARGUMENT (parent is not
   an earlier link: cycles are refused so). */
FSI_API fsi_status fsi_rigid_add_tree(fsi_rigid *world, const fsi_rigid_tree_desc *desc, int *tree);
FSI_API fsi_status fsi_rigid_remove_tree(fsi_rigid *world, int tree); /* and its bodies */
/* NULL: no such tree; valid until it is removed. */
FSI_API const fsi_rigid_tree *fsi_rigid_tree_at(const fsi_rigid *world, int tree);
/* Sets a joint's coordinate and rate (teleport). Errors: ARGUMENT (no such joint), NAN. */
FSI_API fsi_status fsi_rigid_set_joint(fsi_rigid *world, int tree, int link, fsi_real q, fsi_real rate);
/* Generalised force on a joint, kept from step to step [N m or N]; default 0. */
FSI_API fsi_status fsi_rigid_set_joint_force(fsi_rigid *world, int tree, int link, fsi_real force);
/* Scripted joints: the rate of a step is (q(t + dt) - q(t))/dt, so that q is reached; its force, joint_force, acts
   between links only: a free root's momentum is kept. target: q at the end of the next step, held after. track: count
   (>= 1) keys, ascending times [s] of world->time, cubic between them with zero slopes at keys; before and after them
   the first and last value; period > 0 [s]: repeated, keys within 0 .. period. Copied; which joints are scripted and
   targets are saved, the keys of tracks are not. */
FSI_API fsi_status fsi_rigid_set_joint_target(fsi_rigid *world, int tree, int link, fsi_real q);
FSI_API fsi_status fsi_rigid_set_joint_track(fsi_rigid *world, int tree, int link, const double *times,
    const fsi_real *values, int count, double period);
/* The joint is no longer scripted. Errors: ARGUMENT (no such joint). */
FSI_API fsi_status fsi_rigid_free_joint(fsi_rigid *world, int tree, int link);

/* For those who assemble systems with trees: of a tree as it stands, n = coordinates, row-major. They allocate nothing.
   0: no such tree or link, nothing is written; else 1.
   J (6 x n): (omega, v of the centre) of a link = J rates. Point (3 x n): velocity of the link's point at x = J rates.
   M (n x n): sum J' M_l J, symmetric, positive definite. f (n): forces and torques of gravity and `force`, `torque`,
   minus bias (omega x I omega; accelerations with all qdd zero), minus stiffness (q - rest), minus damping qd, plus
   joint forces: M qdd = f. K, D (n, NULL ok): diagonals of stiffness and damping, for implicit steps. */
FSI_API int fsi_rigid_tree_jacobian(const fsi_rigid *world, int tree, int link, double *J);
FSI_API int fsi_rigid_tree_point_jacobian(const fsi_rigid *world, int tree, int link, fsi_vec3 x, double *J);
FSI_API int fsi_rigid_tree_inertia(const fsi_rigid *world, int tree, double *M);
FSI_API int fsi_rigid_tree_force(const fsi_rigid *world, int tree, double *f, double *K, double *D);

/* State: bodies with poses, velocities, sleep, external forces, joints, contacts for the warm start, time. The scene is
   not saved: load into a world made alike (other bodies, trees or planes are refused). A state saved with another
   desc.origin is shifted to the present one. NULL buffer asks the size. A damaged or foreign buffer is refused, nothing
   changes, and so is one in which a number is not finite or out of the range that steps accept, or would accelerate a
   link by more than 1e6 m/s^2: a loaded state can be stepped. save: not between begin_step and end_step. */
FSI_API fsi_status fsi_rigid_save(const fsi_rigid *world, void *buffer, size_t capacity, size_t *size);
FSI_API fsi_status fsi_rigid_load(fsi_rigid *world, const void *buffer, size_t size);
/* Hash of what save writes. Equal after equal steps, for any number of threads. */
FSI_API uint64_t fsi_rigid_hash(const fsi_rigid *world);

/* Edges of shapes (grey asleep), contacts with their normals, joints. */
FSI_API void fsi_rigid_debug_draw(const fsi_rigid *world, const fsi_debug_draw *draw);

/* ---- >>stages: a step in pieces, for fsi's own headers, not for you ---------------------------------------------- */

/* Who drives a world within a step of his own (fsi_wcsph.h) calls, in this order:

      begin                 state is copied into scratch, inputs are checked; the published state stays as it is
      for each substep:
         predict            forces; velocities v, w and poses `pose` without contacts; kinematic bodies on their way
         collide            contacts between bodies, found at the substep's start and looking ahead by their gaps
         rows               makes room for n more rows; the caller fills them in: sides, point, normal, ...
         solve              all rows together, from their initial impulses; velocities of bodies and particles change
         advance            poses by the velocities as solved; overlap is undone (split impulses)
         accept             the result is the start of the next substep
      commit                everything is published at once; or
      drop                  nothing is published

   After a failure no drop is needed. `push` may be called between predict and advance by a caller that solves rows of
   his own. fsi_rigid_step does the same. Impulses of rows with particles on a body are not booked: add them to `sum`
   and `moment`, which commit adds to fsi_body's impulse. desc.substeps is not used. Kinematic bodies with a target:
   call fsi__rg_aim_kinematic before each predict. */

#define FSI__RG_STRONGEST 1e30 /* the largest force, impulse or torque [SI] */
#define FSI__RG_FASTEST 1e9    /* the largest speed [m/s, rad/s]; what would exceed it is refused */

/* dt of begin: of the whole step; of the others: of the substep. fn: the function that errors name. */
FSI_API fsi_status fsi__rg_begin(fsi_rigid *world, double dt, const char *fn);
FSI_API fsi_status fsi__rg_predict(fsi_rigid *world, double dt, const char *fn);
FSI_API fsi_status fsi__rg_collide(fsi_rigid *world, double dt, const char *fn);
/* The n rows stand behind those of collide. */
FSI_API fsi_status fsi__rg_rows(fsi_rigid *world, int n, fsi__ct_row **rows, const char *fn);
/* particles NULL: no row has one. Ends when a sweep changes no velocity by more than desc.tolerance says, or by
   `enough` [m/s]. */
FSI_API void fsi__rg_solve(fsi_rigid *world, double dt, fsi__ct_particle *particles, double enough);
FSI_API fsi_status fsi__rg_advance(fsi_rigid *world, double dt, const char *fn);
FSI_API void fsi__rg_accept(fsi_rigid *world, double dt);
FSI_API void fsi__rg_commit(fsi_rigid *world, double dt);
FSI_API void fsi__rg_drop(fsi_rigid *world);
FSI_API fsi__ct_body *fsi__rg_bodies(const fsi_rigid *world); /* count of them; valid until commit or drop */
/* Results of collide and solve. */
typedef struct fsi__rg_contacts {
    const fsi__ct_row *row;       /* contacts between bodies, then the caller's rows; NULL: there are none */
    int count;                    /* contacts between bodies */
    int sweeps;                   /* since begin */
    double residual;              /* of the last solve: largest change of a velocity in its last sweep [m/s] */
    int begun;                    /* 1: fsi_rigid_begin_step was called, and not yet fsi_rigid_end_step */
} fsi__rg_contacts;
FSI_API fsi__rg_contacts fsi__rg_contacts_of(const fsi_rigid *world); /* all 0 where world is NULL */
FSI_API int fsi__rg_find(const fsi_rigid *world, const fsi_body *body); /* id, or -1 */
/* An impulse, and its moment about the centre; of links: the whole tree moves. */
FSI_API void fsi__rg_push(fsi_rigid *world, int id, fsi__d3 impulse, fsi__d3 moment);
/* Velocities of kinematic bodies that have a target, for a substep when `left` seconds are left: at the end they are
   there exactly. */
FSI_API void fsi__rg_aim_kinematic(fsi_rigid *world, double left);
FSI_API fsi_status fsi__rg_check(const fsi_rigid *world); /* ARGUMENT: NULL; COOKIE */
/* Wakes a sleeping body, and those that fell asleep with it, when its `sum` is more than rest allows. */
FSI_API void fsi__rg_wake_pushed(fsi_rigid *world, int id);
/* Of a body whose centre of mass is at `pose`: distance of x from its surface, negative inside, and its gradient; 1e300
   where it has no parts. Its farthest point from the centre. */
FSI_API double fsi__rg_distance(const fsi_rigid *world, int id, const fsi_pose *pose, fsi__d3 x, fsi__d3 *n);
FSI_API double fsi__rg_reach(const fsi_rigid *world, int id);
/* It does not fall asleep by the next accept: a liquid bears it. */
FSI_API void fsi__rg_keep_awake(fsi_rigid *world, int id);
/* A warning (level 1) from the step's stats: bodies that overlap deeply. */
FSI_API void fsi__rg_warn(const fsi_rigid *world);

#endif /* FSI_RIGID_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_RIGID_IMPLEMENTATION
#define FSI_RIGID_IMPLEMENTATION
#endif
#ifdef FSI_RIGID_IMPLEMENTATION
#ifndef FSI_RIGID_IMPLEMENTATION_DONE
#define FSI_RIGID_IMPLEMENTATION_DONE

/* A step:

      fsi_rigid_step
          fsi__rg_begin                  check the inputs, copy state into scratch, wake bodies that are pushed
          for each substep
              fsi__rg_aim_kinematic      velocities of bodies that have a target
              fsi__rg_predict            v += dt f / m; trees: fsi__jt_predict
              fsi__rg_collide
                  fsi__cd_search         contact points, until no sleeping body is hit (fsi__rg_wake_touched)
                  fsi__rg_touch_row      a row each: gap, friction, restitution, impulse of the substep before
                  fsi__ct_plan           islands, memory of the direct solution
              fsi__rg_solve              fsi__ct_solve: velocities that satisfy all rows
              fsi__rg_advance
                  fsi__rg_advance_body   poses by these velocities; trees: fsi__jt_advance
                  fsi__rg_find_bent      overlap that the linear rows have not seen
                  fsi__ct_separate       split impulses; fsi__rg_shift_body moves the bodies by them
              fsi__rg_accept             islands at rest fall asleep; the next substep starts here
          fsi__rg_commit                 publish the results; cannot fail */

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_detect.h"
#include <stdio.h>

FSI__STRICT_BEGIN

/* ---- >>world: what is kept --------------------------------------------------------------------------------------- */

/* A body, beside its fsi_body and its parts. */
typedef struct fsi__rg_record {
    double mass, inertia[9], inverse[9];   /* inertia about the centre, body axes */
    double friction, restitution;          /* -1: the world's */
    /* State. */
    int group, has_target;
    double still;
    fsi_pose target;                       /* KINEMATIC, of the centre */
    fsi_vec3 once_force, once_torque;      /* of apply_force */
    fsi_vec3 seen_force, seen_torque;      /* external ones of the last step: a change wakes */
    fsi_vec3 liquid, liquid_moment;        /* from liquids since begin_step [N s, N m s] */
} fsi__rg_record;

/* A contact point during a step; b < 0: plane -1 - b. */
typedef struct fsi__rg_touch {
    int a, b;
    uint64_t key;
    fsi__d3 x, n, impulse;
    double depth, margin;
} fsi__rg_touch;

/* Sleep of a body, during a step: bodies that fell asleep together have one group; still: how long it is at rest
   [s]. */
typedef struct fsi__rg_rest { int asleep, group; double still; } fsi__rg_rest;

typedef struct fsi__rg_impl {
    fsi_context own_context;
    /* Bodies, by id: */
    fsi_body **body;
    unsigned char *kind, *asleep;
    fsi_vec3 *center, *force, *torque;
    int *link;
    fsi__rg_record *record;
    fsi__cd_solid *solid;
    fsi__ct_body *moving;
    fsi__rg_rest *rest;
    fsi__cd_note *note;
    int *parent;                           /* islands */
    unsigned char *verdict;                /* may an island sleep? See fsi__rg_judge */
    /* Planes, trees, published contacts: */
    fsi__cd_plane *plane;
    int plane_capacity, walls;
    fsi__jt_tree **tree;
    int tree_capacity;
    fsi_rigid_contact *contact;
    int contact_capacity;
    /* Scratch of a step. */
    fsi__cd_found found;
    fsi__rg_touch *touch, *last;           /* of this substep; of the one before, sorted */
    fsi__ct_row *row;
    int touch_count, last_count, carried, row_count;
    int touch_capacity, last_capacity, row_capacity;
    fsi__ct_direct direct;
    fsi__ct_report report;                 /* of the solver, since begin */
    double last_dt, saved_dt;              /* dt of `last`; of the published contacts */
    fsi__d3 origin;                        /* desc.origin, not rounded to fsi_real */
    double begun;                          /* dt of begin_step; 0: none */
    int looking;                           /* 1: begun with dt 0 */
    int ending;                            /* 1: in end_step, the impulses that the last liquid wrote count */
    fsi_rigid_stats stats;
    double now;                            /* time at the start of the substep */
} fsi__rg_impl;

#define FSI__RG_COLUMNS 14
static fsi__rg_impl *fsi__rg_of(const fsi_rigid *w) { return (fsi__rg_impl *)w->impl; }
FSI_API fsi_status fsi__rg_check(const fsi_rigid *w)
{
    return !w ? FSI_ERROR_ARGUMENT : (w->cookie == FSI__COOKIE('W', fsi_rigid) ? FSI_OK : FSI_ERROR_COOKIE);
}

/* The arrays that the contact solver works on. */
FSI__NOINLINE static fsi__ct_system fsi__rg_system(const fsi_rigid *w)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__ct_system s;
    s.context = w->context;
    s.dim = w->desc.dim;
    s.sweeps = w->desc.sweeps;
    s.gravity = (double)fsi_v3_norm(w->desc.gravity);
    s.up = fsi__d3_scale(fsi__d3_of(w->desc.gravity), s.gravity > 0 ? -1 / s.gravity : 0);
    s.tolerance = (double)w->desc.tolerance;
    s.direct_work = (double)w->desc.direct_work;
    s.body = im->moving;
    s.bodies = w->count;
    s.tree = im->tree;
    s.trees = w->tree_count;
    s.row = im->row;
    s.rows = im->row_count;
    s.contacts = im->touch_count;
    s.particle = NULL;
    s.direct = &im->direct;
    s.report = &im->report;
    return s;
}

/* The arrays that the search for contacts reads. */
FSI__NOINLINE static fsi__cd_scene fsi__rg_scene(const fsi_rigid *w)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__cd_scene s;
    s.context = w->context;
    s.dim = w->desc.dim;
    s.bodies = w->count;
    s.planes = w->plane_count;
    s.contact_margin = (double)w->desc.contact_margin;
    s.kind = im->kind;
    s.solid = im->solid;
    s.tree_of = im->link;
    s.moving = im->moving;
    s.tree = im->tree;
    s.plane = im->plane;
    s.note = im->note;
    s.parent = im->parent;
    s.found = &im->found;
    return s;
}

static int fsi__rg_mobile(const fsi__rg_impl *im, int id) { return id >= 0 && im->moving[id].mobile; }

/* The next tree from place k on, k moves behind it; awake 1: the next one that is awake. NULL: none. */
FSI__NOINLINE static fsi__jt_tree *fsi__rg_next_tree(const fsi_rigid *w, int *k, int awake)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    while (*k < w->tree_count) {
        fsi__jt_tree *t = im->tree[(*k)++];
        if (t && (!awake || fsi__ct_tree_awake(im->moving, t))) return t;
    }
    return NULL;
}

/* Impulse of liquids in this step: those that are booked, and that of the last one. */
static fsi_vec3 fsi__rg_liquid(const fsi__rg_impl *im, int id)
{
    return im->ending ? fsi_v3_add(im->record[id].liquid, im->body[id]->impulse) : fsi_v3(0, 0, 0);
}
static fsi_vec3 fsi__rg_liquid_moment(const fsi__rg_impl *im, int id)
{
    return im->ending ? fsi_v3_add(im->record[id].liquid_moment, im->body[id]->angular_impulse) : fsi_v3(0, 0, 0);
}

static double fsi__rg_friction(const fsi_rigid *w, double own) { return own < 0 ? (double)w->desc.friction : own; }
static double fsi__rg_restitution(const fsi_rigid *w, double own)
{
    return own < 0 ? (double)w->desc.restitution : own;
}

static double fsi__rg_pair_slop(const fsi_rigid *w, int a, int b)
{
    const fsi__cd_scene scene = fsi__rg_scene(w);
    return w->desc.slop > 0 ? (double)w->desc.slop : 0.002 * fsi__cd_thickness(&scene, a, b);
}

/* Refuses a call between fsi_rigid_begin_step and fsi_rigid_end_step. */
static fsi_status fsi__rg_check_not_begun(const fsi_rigid *w, const char *fn)
{
    if (!(fsi__rg_of(w)->begun > 0)) return FSI_OK;
    return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, -1, 0,
        "a step was begun by fsi_rigid_begin_step: end it first");
}

/* ---- >>begin: check inputs, copy state into scratch -------------------------------------------------------------- */

/* An upper bound of the angular acceleration by a torque of 1 N m [rad/s^2]. */
static double fsi__rg_turned_by(const fsi__rg_record *r) { return r->inverse[0] + r->inverse[4] + r->inverse[8]; }

static fsi_status fsi__rg_check_target(const fsi_rigid *w, int id, double dt, const char *fn)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__d3 from = fsi__d3_of(im->body[id]->pose.position), to = fsi__d3_of(im->record[id].target.position);
    const double speed = dt > 0 ? fsi__d3_norm(fsi__d3_sub(to, from)) / dt : 0;
    if (speed <= FSI__RG_FASTEST) return FSI_OK;
    return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, id, speed,
        "body %d: its target asks for %g m/s, the most is %g", id, speed, FSI__RG_FASTEST);
}

/* Refuses forces and targets that would make a body too fast in a step of dt. */
static fsi_status fsi__rg_check_drive(const fsi_rigid *w, int id, double dt, const char *fn)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__rg_record *r = &im->record[id];
    const double force = fsi__d3_norm(fsi__d3_add(fsi__d3_of(im->force[id]), fsi__d3_of(r->once_force)));
    const double torque = fsi__d3_norm(fsi__d3_add(fsi__d3_of(im->torque[id]), fsi__d3_of(r->once_torque)));
    const int is_free = im->link[id] < 0;
    if (im->kind[id] == FSI_RIGID_KINEMATIC && r->has_target) return fsi__rg_check_target(w, id, dt, fn);
    if (im->kind[id] != FSI_RIGID_DYNAMIC) return FSI_OK;
    if (!(force <= FSI__RG_STRONGEST && (!is_free || force * dt / r->mass <= FSI__RG_FASTEST)))
        return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, id, force,
            "body %d: its force of %g N is beyond %g, or would make it faster than %g m/s", id, force,
            FSI__RG_STRONGEST, FSI__RG_FASTEST);
    if (!(torque <= FSI__RG_STRONGEST && (!is_free || torque * dt * fsi__rg_turned_by(r) <= FSI__RG_FASTEST)))
        return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, id, torque,
            "body %d: its torque of %g N m is beyond %g, or would make it turn faster than %g rad/s", id, torque,
            FSI__RG_STRONGEST, FSI__RG_FASTEST);
    return FSI_OK;
}

/* Checks all that a caller may have written. */
static fsi_status fsi__rg_check_inputs(const fsi_rigid *w, double dt, const char *fn)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    int id;
    for (id = 0; id < w->count; id++) {
        const fsi_body *b = im->body[id];
        if (im->kind[id] == FSI_RIGID_NONE) continue;
        if (!fsi_v3_is_finite(im->force[id]))
            return fsi__fail(w->context, FSI_ERROR_NAN, fn, id, 0, "body %d: force is not finite", id);
        if (!fsi_v3_is_finite(im->torque[id]))
            return fsi__fail(w->context, FSI_ERROR_NAN, fn, id, 0, "body %d: torque is not finite", id);
        if (!fsi_v3_is_finite(b->velocity) || !fsi_v3_is_finite(b->angular_velocity))
            return fsi__fail(w->context, FSI_ERROR_NAN, fn, id, 0, "body %d: its velocity is not finite", id);
        if (w->desc.dim == 2 && (im->force[id].z != 0 || im->torque[id].x != 0 || im->torque[id].y != 0))
            return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, 0,
                "body %d: force or torque leaves the plane z = 0 of a 2D world", id);
        FSI__TRY(fsi_body_check(w->context, b, id));
        if (!fsi__col_within(b->velocity, FSI__RG_FASTEST) || !fsi__col_within(b->angular_velocity, FSI__RG_FASTEST))
            return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, id, (double)fsi_v3_norm(b->velocity),
                "body %d: its velocity is beyond %g m/s or rad/s", id, FSI__RG_FASTEST);
        FSI__TRY(fsi__rg_check_drive(w, id, dt, fn));
    }
    return FSI_OK;
}

/* Rotation matrix, mass and inertia of a body at the start of the substep. */
static void fsi__rg_start_body(fsi__rg_impl *im, int id)
{
    fsi__ct_body *m = &im->moving[id];
    fsi__d9_of_quat(m->start.orientation, m->turn);
    m->inverse_mass = 0;
    if (im->kind[id] != FSI_RIGID_DYNAMIC || m->tree >= 0) return;
    m->inverse_mass = 1 / im->record[id].mass;
    fsi__d9_turn(m->turn, im->record[id].inertia, m->inertia);
    fsi__d9_turn(m->turn, im->record[id].inverse, m->inverse_inertia);
}

/* A force that has changed since the last step wakes a body; one that stays does not. */
static int fsi__rg_changed(fsi_vec3 a, fsi_vec3 b)
{
    return a.x < b.x || a.x > b.x || a.y < b.y || a.y > b.y || a.z < b.z || a.z > b.z;
}
static int fsi__rg_nonzero(fsi_vec3 a) { return fsi__rg_changed(a, fsi_v3(0, 0, 0)); }

static void fsi__rg_load_body(fsi_rigid *w, int id, double dt)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__rg_record *r = &im->record[id];
    const fsi_body *b = im->body[id];
    fsi__ct_body *m = &im->moving[id];
    fsi__rg_rest *rest = &im->rest[id];
    memset(m, 0, sizeof *m);
    m->start = m->pose = b->pose;
    m->v0 = m->v = fsi__d3_of(b->velocity);
    m->w0 = m->w = fsi__d3_of(b->angular_velocity);
    m->tree = im->link[id];
    m->link = im->solid[id].link;
    memset(rest, 0, sizeof *rest);
    rest->asleep = im->asleep[id];
    rest->group = r->group;
    rest->still = r->still;
    m->mobile = im->kind[id] == FSI_RIGID_DYNAMIC && !rest->asleep;
    m->force = fsi__d3_madd(fsi__d3_of(fsi_v3_add(im->force[id], r->once_force)), r->mass, fsi__d3_of(w->desc.gravity));
    m->torque = fsi__d3_of(fsi_v3_add(im->torque[id], r->once_torque));
    m->force = fsi__d3_madd(m->force, 1 / dt, fsi__d3_of(fsi__rg_liquid(im, id)));
    m->torque = fsi__d3_madd(m->torque, 1 / dt, fsi__d3_of(fsi__rg_liquid_moment(im, id)));
    fsi__rg_start_body(im, id);
}

/* Wakes the body, and those that fell asleep with it. */
static void fsi__rg_wake_group(fsi_rigid *w, int id)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    const int group = im->rest[id].group;
    int k;
    for (k = 0; k < w->count; k++) {
        if (im->kind[k] != FSI_RIGID_DYNAMIC || !im->rest[k].asleep) continue;
        if (k != id && im->rest[k].group != group) continue;
        im->rest[k].asleep = 0;
        im->rest[k].still = 0;
        im->moving[k].mobile = 1;
        im->stats.woken++;
    }
}

/* Is the impulse of a step more than rest allows? */
static int fsi__rg_pushed(const fsi_rigid *w, int id, fsi__d3 impulse)
{
    return fsi__d3_norm(impulse) > 0.1 * (double)w->desc.sleep_speed * fsi__rg_of(w)->record[id].mass;
}

FSI_API void fsi__rg_wake_pushed(fsi_rigid *w, int id)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    if (im->rest[id].asleep && fsi__rg_pushed(w, id, im->moving[id].sum)) fsi__rg_wake_group(w, id);
}

/* The published contacts as those of the last substep. */
static fsi_status fsi__rg_load_contacts(fsi_rigid *w, const char *fn)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int i;
    FSI__TRY(FSI__CD_ROOM(w->context, im->last, 0, im->last_capacity, w->contact_count, fn));
    for (i = 0; i < w->contact_count; i++) {
        const fsi_rigid_contact *c = &im->contact[i];
        fsi__rg_touch *t = &im->last[i];
        t->a = c->a;
        t->b = c->b;
        t->key = c->key;
        t->x = fsi__d3_of(c->point);
        t->n = fsi__d3_of(c->normal);
        t->impulse = fsi__d3_of(c->impulse);
        t->depth = (double)c->depth;
        t->margin = 0;
    }
    im->last_count = w->contact_count;
    im->last_dt = im->saved_dt;
    return FSI_OK;
}

/* Do forces or liquids wake the sleeping body? */
static int fsi__rg_is_woken(const fsi_rigid *w, int id)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__rg_record *r = &im->record[id];
    if (fsi__rg_changed(im->force[id], r->seen_force) || fsi__rg_changed(im->torque[id], r->seen_torque)) return 1;
    if (fsi__rg_nonzero(r->once_force) || fsi__rg_nonzero(r->once_torque)) return 1;
    return fsi__rg_pushed(w, id, fsi__d3_of(fsi__rg_liquid(im, id)));
}

FSI_API fsi_status fsi__rg_begin(fsi_rigid *w, double dt, const char *fn)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__jt_tree *t;
    int id, k;
    FSI__TRY(fsi__rg_check_inputs(w, dt, fn));
    FSI__TRY(fsi__rg_load_contacts(w, fn));
    memset(&im->stats, 0, sizeof im->stats);
    memset(&im->report, 0, sizeof im->report);
    im->touch_count = im->row_count = im->carried = 0;
    im->now = w->time;
    for (id = 0; id < w->count; id++) if (im->kind[id] != FSI_RIGID_NONE) fsi__rg_load_body(w, id, dt);
    for (id = 0; id < w->count; id++) {
        if (im->kind[id] != FSI_RIGID_DYNAMIC || !im->rest[id].asleep) continue;
        if (fsi__rg_is_woken(w, id)) fsi__rg_wake_group(w, id);
    }
    for (k = 0; (t = fsi__rg_next_tree(w, &k, 0)) != NULL;) fsi__jt_begin(t);
    return FSI_OK;
}

/* ---- >>predict: velocities without contacts ---------------------------------------------------------------------- */

FSI_API void fsi__rg_aim_kinematic(fsi_rigid *w, double left)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int id;
    for (id = 0; id < w->count; id++) if (im->kind[id] == FSI_RIGID_KINEMATIC && im->record[id].has_target) {
        fsi__ct_body *m = &im->moving[id];
        const fsi_pose *to = &im->record[id].target;
        const fsi_quat turn = fsi_quat_mul(to->orientation, fsi_quat_conj(m->start.orientation));
        m->v0 = fsi__d3_scale(fsi__d3_sub(fsi__d3_of(to->position), fsi__d3_of(m->start.position)), 1 / left);
        m->w0 = fsi__d3_scale(fsi__d3_of(fsi_quat_rotation_vector(turn)), 1 / left);
    }
}

/* The orientation after dt at the angular velocity w. Never inlined: it is long. */
FSI__NOINLINE static fsi_quat fsi__rg_rotate(fsi_quat q, fsi__d3 w, double dt)
{
    return fsi_quat_integrate(q, fsi__d3_real(w), (fsi_real)dt);
}

/* Without contacts: v += dt F/m, omega += dt I^-1 tau; fsi_body_integrate adds the gyroscopic effect, exactly.
   Kinematic bodies keep their prescribed velocity. */
static void fsi__rg_predict_body(fsi_rigid *w, int id, double dt)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__ct_body *m = &im->moving[id];
    m->v = m->v0;
    m->w = m->w0;
    m->pose = m->start;
    if (im->kind[id] == FSI_RIGID_STATIC || im->rest[id].asleep) m->v = m->w = fsi__d3_zero();
    if (!fsi__rg_mobile(im, id) || m->tree >= 0) {
        if (im->kind[id] != FSI_RIGID_KINEMATIC) return;
    } else {
        m->v = fsi__d3_madd(m->v, dt * m->inverse_mass, m->force);
        m->w = fsi__d3_madd(m->w, dt, fsi__d9_mul(m->inverse_inertia, m->torque));
    }
    m->pose.position = fsi__d3_real(fsi__d3_madd(fsi__d3_of(m->start.position), dt, m->v));
    m->pose.orientation = fsi__rg_rotate(m->start.orientation, m->w, dt);
}

/* A tree without contacts. */
static fsi_status fsi__rg_predict_tree(fsi_rigid *w, fsi__jt_tree *t, int index, double dt, const char *fn)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int l;
    for (l = 0; l < t->view.link_count; l++) {
        t->force[l] = im->moving[t->body[l]].force;
        t->torque[l] = im->moving[t->body[l]].torque;
    }
    fsi__jt_place_root(t, &im->moving[t->body[0]].start);
    if (!fsi__jt_predict(t, dt, im->now + dt))
        return fsi__fail(w->context, FSI_ERROR_SINGULAR, fn, index, 0, "tree %d: its inertia is singular", index);
    fsi__ct_spread(im->moving, t);
    for (l = t->fixed; l < t->view.link_count; l++) {
        fsi__ct_body *m = &im->moving[t->body[l]];
        m->pose.position = fsi__d3_real(fsi__d3_madd(t->c[l], dt, m->v));
        m->pose.orientation = fsi__rg_rotate(t->orientation[l], m->w, dt);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi__rg_predict(fsi_rigid *w, double dt, const char *fn)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__jt_tree *t;
    int id, k;
    for (id = 0; id < w->count; id++) if (im->kind[id] != FSI_RIGID_NONE) fsi__rg_predict_body(w, id, dt);
    for (k = 0; (t = fsi__rg_next_tree(w, &k, 1)) != NULL;) FSI__TRY(fsi__rg_predict_tree(w, t, k - 1, dt, fn));
    return FSI_OK;
}

/* ---- >>collide: contact points become rows ----------------------------------------------------------------------- */

static int fsi__rg_touch_before(const fsi__rg_touch *s, const fsi__rg_touch *t)
{
    if (s->a != t->a) return s->a < t->a;
    if (s->b != t->b) return s->b < t->b;
    return s->key < t->key;
}

static void fsi__rg_sort_touches(fsi__rg_touch *touch, int n)
{
    int g, i, k, gap;
    for (g = 0; g < FSI__CD_GAPS; g++) for (gap = fsi__cd_shell_gaps()[g], i = gap; i < n; i++) {
        fsi__rg_touch t = touch[i];
        for (k = i; k >= gap && fsi__rg_touch_before(&t, &touch[k - gap]); k -= gap) touch[k] = touch[k - gap];
        touch[k] = t;
    }
}

/* Names the features of a contact point: part of a, part of b, feature. */
static uint64_t fsi__rg_key(const fsi__cd_found *f, const fsi__cd_pair *pair, uint32_t feature)
{
    const uint32_t p = (uint32_t)f->placed[pair->p].index;
    const uint32_t q = pair->q < 0 ? 0 : (uint32_t)f->placed[pair->q].index & 0xfffu;
    return (uint64_t)p << 48 | (uint64_t)q << 32 | feature;
}

/* Contact points become touches, in order of pairs. There is room for those that sleeping bodies keep; touch and last
   are swapped later. */
static fsi_status fsi__rg_list_touches(fsi_rigid *w, const char *fn)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__cd_scene scene = fsi__rg_scene(w);
    const fsi__cd_found *f = &im->found;
    int i, k, n = im->last_count;
    for (i = 0; i < f->pair_count; i++) n += f->pair[i].count;
    FSI__TRY(FSI__CD_ROOM(w->context, im->touch, 0, im->touch_capacity, n, fn));
    FSI__TRY(FSI__CD_ROOM(w->context, im->last, im->last_count, im->last_capacity, n, fn));

    /* all that are not hidden */
    im->touch_count = 0;
    for (i = 0; i < f->pair_count; i++) for (k = 0; k < f->pair[i].count; k++) {
        const fsi__cd_pair *pair = &f->pair[i];
        const fsi__col_point *s = &f->point[pair->first + k];
        fsi__rg_touch *t = &im->touch[im->touch_count];
        if (s->hidden) continue;
        im->touch_count++;
        t->a = f->placed[pair->p].body;
        t->b = pair->q < 0 ? pair->q : f->placed[pair->q].body;
        t->key = fsi__rg_key(f, pair, s->feature);
        t->x = s->x;
        t->n = s->n;
        t->depth = s->depth;
        t->impulse = fsi__d3_zero();
        t->margin = fsi__cd_margin(&scene, t->a, t->b);
    }
    return FSI_OK;
}

/* Relative velocity of two bodies at a contact: predicted, or at the substep's start. */
static fsi__d3 fsi__rg_approach(const fsi__rg_impl *im, const fsi__rg_touch *t, int at_start)
{
    fsi__d3 u = fsi__d3_zero();
    int s, id;
    for (s = 0; s < 2; s++) if ((id = s ? t->b : t->a) >= 0) {
        const fsi__ct_body *m = &im->moving[id];
        fsi__d3 r = fsi__d3_sub(t->x, fsi__d3_of(m->start.position));
        u = fsi__d3_madd(u, s ? -1 : 1,
            fsi__d3_add(at_start ? m->v0 : m->v, fsi__d3_cross(at_start ? m->w0 : m->w, r)));
    }
    return u;
}

/* Wakes sleeping bodies that an active one hits, or that a kinematic one carries. Returns how many woke. */
static int fsi__rg_wake_touched(fsi_rigid *w, double dt)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    const int before = im->stats.woken;
    int i;
    for (i = 0; i < im->touch_count; i++) {
        const fsi__rg_touch *t = &im->touch[i];
        const int sleeper = im->rest[t->a].asleep ? t->a : (t->b >= 0 && im->rest[t->b].asleep ? t->b : -1);
        const int other = sleeper == t->a ? t->b : t->a;
        const int carried = other >= 0 && im->kind[other] == FSI_RIGID_KINEMATIC && t->depth > -t->margin;
        if (sleeper < 0) continue;
        if (!carried && t->depth < 0 && !(fsi__d3_dot(fsi__rg_approach(im, t, 0), t->n) * dt < t->depth)) continue;
        fsi__rg_wake_group(w, sleeper);
    }
    return im->stats.woken - before;
}

/* The same contact in the substep before; NULL: there was none. */
static const fsi__rg_touch *fsi__rg_find_last(const fsi__rg_impl *im, const fsi__rg_touch *t)
{
    int lo = 0, hi = im->last_count;
    while (lo < hi) {
        const int mid = lo + (hi - lo) / 2;
        if (fsi__rg_touch_before(&im->last[mid], t)) lo = mid + 1;
        else hi = mid;
    }
    return lo < im->last_count && !fsi__rg_touch_before(t, &im->last[lo]) ? &im->last[lo] : NULL;
}

/* Initial impulse of a row: that of the substep before, for this one's dt. */
static void fsi__rg_warm_row(const fsi__rg_impl *im, const fsi__rg_touch *t, double dt, fsi__ct_row *row)
{
    const fsi__rg_touch *last = fsi__rg_find_last(im, t);
    const double scale = im->last_dt > 0 ? dt / im->last_dt : 1;
    if (!last) return;
    row->jn = scale * fsi__d3_dot(last->impulse, t->n);
    row->jt = fsi__d3_scale(last->impulse, scale);
    if (!(row->jn > 0)) { row->jn = 0; row->jt = fsi__d3_zero(); }
}

/* A contact as a row. A gap may close except for the slop, u.n >= -(gap - slop)/dt: within the slop contacts persist,
   so that they do not come and go. An impact that is faster than restitution_speed leaves with e |u.n|, and is not
   slowed down before the gap has closed. */
static void fsi__rg_touch_row(const fsi_rigid *w, const fsi__rg_touch *t, fsi__ct_row *row, double dt)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__rg_record *a = &im->record[t->a], *b = t->b >= 0 ? &im->record[t->b] : NULL;
    const fsi__cd_plane *p = b ? NULL : &im->plane[-1 - t->b];
    const double ea = fsi__rg_restitution(w, a->restitution);
    const double eb = fsi__rg_restitution(w, b ? b->restitution : p->restitution);
    const double slop = fsi__rg_pair_slop(w, t->a, t->b);
    const double speed = -fsi__d3_dot(fsi__rg_approach(im, t, 1), t->n);
    const int closing = -t->depth + dt * fsi__d3_dot(fsi__rg_approach(im, t, 0), t->n) < 0;
    const int fast = speed > (double)w->desc.restitution_speed;

    /* geometry */
    memset(row, 0, sizeof *row);
    row->a = t->a;
    row->b = t->b < 0 ? FSI__CT_WORLD : t->b;
    row->point = t->x;
    row->n = t->n;
    row->depth = t->depth;
    row->margin = t->margin;

    /* velocity wanted, friction, separation */
    row->aim = t->depth < -slop ? (t->depth + slop) / dt : 0;
    if (fast) row->aim = t->depth < 0 ? t->depth / dt : 0;
    if (fast && closing) row->aim = (ea > eb ? ea : eb) * speed;
    row->friction = sqrt(fsi__rg_friction(w, a->friction) * fsi__rg_friction(w, b ? b->friction : p->friction));
    if (t->depth > slop) row->push = (double)w->desc.push * (t->depth - slop) / dt;
    if (w->desc.warm_start) fsi__rg_warm_row(im, t, dt, row);
}

/* Contacts of sleeping bodies stay as they are, behind the others. */
static void fsi__rg_carry_touches(fsi_rigid *w)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__cd_scene scene = fsi__rg_scene(w);
    int i;
    im->carried = 0;
    for (i = 0; i < im->last_count; i++) {
        const fsi__rg_touch *t = &im->last[i];
        const int active = fsi__cd_active(&scene, t->a) || (t->b >= 0 && fsi__cd_active(&scene, t->b));
        if (!active && im->kind[t->a] != FSI_RIGID_NONE) im->touch[im->touch_count + im->carried++] = *t;
    }
}

FSI_API fsi_status fsi__rg_collide(fsi_rigid *w, double dt, const char *fn)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__cd_scene scene = fsi__rg_scene(w);
    const double clock = fsi__now(w->context);
    fsi__ct_system s;
    int i;

    /* ends: each pass wakes some body, or is the last */
    for (;;) {
        FSI__TRY(fsi__cd_search(&scene, dt, fn));
        FSI__TRY(fsi__rg_list_touches(w, fn));
        if (!fsi__rg_wake_touched(w, dt)) break;
        FSI__TRY(fsi__rg_predict(w, dt, fn));
    }

    /* rows and islands */
    FSI__TRY(FSI__CD_ROOM(w->context, im->row, 0, im->row_capacity, im->touch_count, fn));
    for (i = 0; i < im->touch_count; i++) fsi__rg_touch_row(w, &im->touch[i], &im->row[i], dt);
    im->row_count = im->touch_count;
    s = fsi__rg_system(w);
    FSI__TRY(fsi__ct_plan(&s, fn));
    fsi__rg_carry_touches(w);
    im->stats.seconds_collide += fsi__now(w->context) - clock;
    return FSI_OK;
}

FSI_API fsi_status fsi__rg_rows(fsi_rigid *w, int n, fsi__ct_row **rows, const char *fn)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    FSI__TRY(FSI__CD_ROOM(w->context, im->row, im->touch_count, im->row_capacity, im->touch_count + n, fn));
    if (n > 0) memset(im->row + im->touch_count, 0, (size_t)n * sizeof *im->row);
    im->row_count = im->touch_count + n;
    *rows = im->row ? im->row + im->touch_count : NULL;
    return FSI_OK;
}

/* ---- >>solve, and queries of a driver ---------------------------------------------------------------------------- */

FSI_API void fsi__rg_solve(fsi_rigid *w, double dt, fsi__ct_particle *particles, double enough)
{
    const double clock = fsi__now(w->context);
    fsi__ct_system s = fsi__rg_system(w);
    s.particle = particles;
    fsi__ct_solve(&s, dt, enough);
    fsi__rg_of(w)->stats.seconds_solve += fsi__now(w->context) - clock;
}

FSI_API fsi__rg_contacts fsi__rg_contacts_of(const fsi_rigid *w)
{
    fsi__rg_contacts c;
    const fsi__rg_impl *im = w ? fsi__rg_of(w) : NULL;
    memset(&c, 0, sizeof c);
    if (!im) return c;
    c.row = im->row;
    c.count = im->touch_count;
    c.sweeps = im->report.sweeps;
    c.residual = im->report.residual;
    c.begun = im->begun > 0;
    return c;
}

FSI_API fsi__ct_body *fsi__rg_bodies(const fsi_rigid *w) { return fsi__rg_of(w)->moving; }

FSI_API int fsi__rg_find(const fsi_rigid *w, const fsi_body *body)
{
    int k;
    for (k = 0; k < w->count; k++) if (w->body[k] == body && body) return k;
    return -1;
}

FSI_API void fsi__rg_push(fsi_rigid *w, int id, fsi__d3 impulse, fsi__d3 moment)
{
    const fsi__ct_system s = fsi__rg_system(w);
    fsi__ct_body *m = &s.body[id];
    m->sum = fsi__d3_add(m->sum, impulse);
    m->moment = fsi__d3_add(m->moment, moment);
    if (!m->mobile) return;
    fsi__ct_push(&s, id, impulse, moment);
    if (m->tree >= 0) fsi__ct_spread(s.body, s.tree[m->tree]);
}

/* ---- >>advance: poses -------------------------------------------------------------------------------------------- */

/* Moves a body by its pseudo-velocities; its angular momentum about its centre stays. */
static void fsi__rg_shift_body(fsi__rg_impl *im, int id, double dt)
{
    fsi__ct_body *m = &im->moving[id];
    double turn[9], tensor[9];
    fsi__d3 momentum;
    if (!(fsi__d3_dot(m->pv, m->pv) > 0) && !(fsi__d3_dot(m->pw, m->pw) > 0)) return;
    fsi__d9_of_quat(m->pose.orientation, turn);
    fsi__d9_turn(turn, im->record[id].inertia, tensor);
    momentum = fsi__d9_mul(tensor, m->w);
    m->pose.position = fsi__d3_real(fsi__d3_madd(fsi__d3_of(m->pose.position), dt, m->pv));
    m->pose.orientation = fsi__rg_rotate(m->pose.orientation, m->pw, dt);
    fsi__d9_of_quat(m->pose.orientation, turn);
    fsi__d9_turn(turn, im->record[id].inverse, tensor);
    m->w = fsi__d9_mul(tensor, momentum);
}

#define FSI__RG_BENT 0.125 /* margins: a gap that closes by more than its row predicts is checked at the end pose */

/* Rows are linear. A bound of how much more a gap may close at a relative velocity of `speed`: points of a body that
   rotates by an angle a leave their line by up to a^2 times its reach, partly because the axis turns too, and its faces
   rotate against what slides along them. */
static double fsi__rg_bend(const fsi__rg_impl *im, int a, int b, double speed, double dt)
{
    const double turn_a = fsi__d3_norm(im->moving[a].w) * dt, turn_b = b < 0 ? 0 : fsi__d3_norm(im->moving[b].w) * dt;
    return turn_a * turn_a * im->solid[a].reach + (b < 0 ? 0 : turn_b * turn_b * im->solid[b].reach)
        + (turn_a + turn_b) * speed * dt;
}

/* Split impulses may close a gap by its width after the motion at the solved velocities. Returns whether the gap must
   be checked at the end poses; those of links are not known yet. */
static int fsi__rg_foresee_gap(const fsi_rigid *w, const fsi__rg_touch *t, fsi__ct_row *row, double dt)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__ct_system s = fsi__rg_system(w);
    const fsi__d3 u = fsi__ct_relative(&s, row);
    const double before = fmax(row->depth, fsi__rg_pair_slop(w, t->a, t->b));
    const double after = row->depth - dt * fsi__d3_dot(u, row->n);
    if (row->depth < 0) row->push = fmin(0, after / dt);
    if (im->moving[t->a].tree >= 0 || (t->b >= 0 && im->moving[t->b].tree >= 0)) return 0;
    return after + fsi__rg_bend(im, t->a, t->b, fsi__d3_norm(u), dt) > before + FSI__RG_BENT * t->margin;
}

static void fsi__rg_foresee_gaps(fsi_rigid *w, double dt)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int i, k, at = 0;
    for (i = 0; i < im->found.pair_count; i++) {
        fsi__cd_pair *pair = &im->found.pair[i];
        for (pair->bent = k = 0; k < pair->count; k++) if (!im->found.point[pair->first + k].hidden) {
            pair->bent |= fsi__rg_foresee_gap(w, &im->touch[at], &im->row[at], dt);
            at++;
        }
    }
}

/* A part at its end pose, by the velocities as solved. */
static void fsi__rg_place_at_end(const fsi__rg_impl *im, const fsi__col_placed *p, double grow, fsi__col_placed *end)
{
    double turn[9];
    fsi__d9_of_quat(im->moving[p->body].pose.orientation, turn);
    *end = *p;
    fsi__col_place(p->part, fsi__d3_of(im->moving[p->body].pose.position), turn, end);
    fsi__col_bound(end, grow);
}

/* The row among n of a pair that belongs to a contact point at the end poses: of the same features, or the nearest. */
static int fsi__rg_row_of(const fsi__rg_touch *t, int n, const fsi__col_point *s)
{
    double least = 1e300;
    int k, best = 0;
    for (k = 0; k < n; k++) {
        const fsi__d3 off = fsi__d3_sub(t[k].x, s->x);
        if ((uint32_t)t[k].key == s->feature) return k;
        if (fsi__d3_dot(off, off) < least) { least = fsi__d3_dot(off, off); best = k; }
    }
    return best;
}

/* Contact points of a pair at the end poses. */
static void fsi__rg_collide_at_end(const fsi_rigid *w, const fsi__cd_pair *pair, fsi__col_manifold *h)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    fsi__col_placed p, q;
    h->n = 0;
    fsi__rg_place_at_end(im, &im->found.placed[pair->p], h->margin, &p);
    if (pair->q < 0) {
        const fsi__cd_plane *plane = &im->plane[-1 - pair->q];
        fsi__col_collide_plane(h, &p, plane->n, plane->offset, w->desc.dim);
    } else {
        fsi__rg_place_at_end(im, &im->found.placed[pair->q], h->margin, &q);
        fsi__col_collide(h, &p, &q, w->desc.dim);
    }
}

/* Overlap that a step adds although its rows did not close is undone in the same step; overlap of before, by `push`. */
static void fsi__rg_meet_at_end(const fsi_rigid *w, const fsi__cd_pair *pair, int first, int n, double dt)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__rg_touch *touch = im->touch + first;
    const double slop = fsi__rg_pair_slop(w, touch->a, touch->b);
    fsi__col_manifold h;
    int k;
    h.margin = touch->margin;
    fsi__rg_collide_at_end(w, pair, &h);
    for (k = 0; k < h.n; k++) {
        const fsi__col_point *s = &h.point[k];
        fsi__ct_row *row = &im->row[first + fsi__rg_row_of(touch, n, s)];
        const double before = fmax(row->depth, slop);
        const double push = row->depth > slop ? (double)w->desc.push * (row->depth - slop) : 0;
        if (!(fsi__d3_dot(row->n, s->n) > 0.7)) continue;
        if (s->depth > before) row->push = fmax(row->push, (s->depth - before + push) / dt);
        else if (row->depth < 0) row->push = fmax(row->push, fmin(0, s->depth / dt));
    }
}

/* The pairs whose gaps must be checked. */
static void fsi__rg_find_bent(fsi_rigid *w, double dt)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int i, k, n, at = 0;
    for (i = 0; i < im->found.pair_count; i++, at += n) {
        const fsi__cd_pair *pair = &im->found.pair[i];
        for (n = k = 0; k < pair->count; k++) n += !im->found.point[pair->first + k].hidden;
        if (pair->bent) fsi__rg_meet_at_end(w, pair, at, n, dt);
    }
}

/* From the substep's start with the velocities as solved, by fsi_body_integrate. */
static void fsi__rg_advance_body(fsi__rg_impl *im, int id, double dt)
{
    fsi__ct_body *m = &im->moving[id];
    fsi_body b = *im->body[id];
    b.mode = FSI_BODY_COUPLED;
    b.pose = m->start;
    b.new_velocity = fsi__d3_real(m->v);
    b.new_angular_velocity = fsi__d3_real(m->w);
    fsi_body_integrate(&b, (fsi_real)dt);
    m->pose = b.pose;
    m->w = fsi__d3_of(b.angular_velocity);
}

static fsi_status fsi__rg_check_moved(const fsi_rigid *w, int id, const char *fn)
{
    const fsi__ct_body *m = &fsi__rg_of(w)->moving[id];
    const fsi_vec3 x = m->pose.position;
    const fsi_quat q = m->pose.orientation;
    double v = fsi__d3_dot(m->v, m->v) + fsi__d3_dot(m->w, m->w),
        s = (double)q.x + (double)q.y + (double)q.z + (double)q.w;
    if (!fsi_is_finite(v) || !fsi_is_finite(s) || !fsi_v3_is_finite(x))
        return fsi__fail(w->context, FSI_ERROR_NAN, fn, id, v,
            "body %d: its velocity or position is not finite after the step", id);
    if (!(v <= 2 * FSI__RG_FASTEST * FSI__RG_FASTEST) || !fsi__col_within(fsi__d3_real(m->v), FSI__RG_FASTEST)
        || !fsi__col_within(fsi__d3_real(m->w), FSI__RG_FASTEST))
        return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, id, sqrt(v), "body %d would be faster than %g m/s or rad/s",
            id, FSI__RG_FASTEST);
    if (!fsi__col_within(x, 1e9))
        return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, id, (double)x.x,
            "body %d would be farther than 1e9 m from the origin", id);
    return FSI_OK;
}

/* Public pointers to the arrays, which may have moved. */
static void fsi__rg_publish(fsi_rigid *w)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    w->body = im->body;
    w->kind = im->kind;
    w->asleep = im->asleep;
    w->center = im->center;
    w->force = im->force;
    w->torque = im->torque;
    w->link = im->link;
    w->contact = im->contact;
}

/* Room for the contacts to be published: commit cannot fail. */
static fsi_status fsi__rg_ready(fsi_rigid *w, const char *fn)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    const int most = im->touch_capacity > im->last_capacity ? im->touch_capacity : im->last_capacity;
    fsi__column contacts;
    fsi_status status;
    contacts.array = (void **)&im->contact;
    contacts.size = sizeof *im->contact;
    status = fsi__grow(w->context, &contacts, 1, w->contact_count, &im->contact_capacity, most, fn);
    fsi__rg_publish(w);
    return status;
}

/* A tree, by the rates as solved. */
static fsi_status fsi__rg_advance_tree(fsi_rigid *w, fsi__jt_tree *t, int index, double dt, const char *fn)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int l;
    if (!fsi__jt_advance(t, dt, im->now + dt))
        return fsi__fail(w->context, FSI_ERROR_SINGULAR, fn, index, 0, "tree %d: its inertia is singular", index);
    for (l = t->fixed; l < t->view.link_count; l++) {
        im->moving[t->body[l]].pose.position = fsi__d3_real(t->c[l]);
        im->moving[t->body[l]].pose.orientation = t->orientation[l];
    }
    fsi__ct_spread(im->moving, t);
    return FSI_OK;
}

FSI_API fsi_status fsi__rg_advance(fsi_rigid *w, double dt, const char *fn)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__ct_system s;
    fsi__jt_tree *t;
    int id, k;
    if (w->desc.push > 0) fsi__rg_foresee_gaps(w, dt);
    for (id = 0; id < w->count; id++)
        if (fsi__rg_mobile(im, id) && im->moving[id].tree < 0) fsi__rg_advance_body(im, id, dt);
    if (w->desc.push > 0) fsi__rg_find_bent(w, dt);
    s = fsi__rg_system(w);
    fsi__ct_separate(&s, dt);
    for (id = 0; id < w->count; id++)
        if (fsi__rg_mobile(im, id) && im->moving[id].tree < 0) fsi__rg_shift_body(im, id, dt);
    for (k = 0; (t = fsi__rg_next_tree(w, &k, 1)) != NULL;) FSI__TRY(fsi__rg_advance_tree(w, t, k - 1, dt, fn));
    for (id = 0; id < w->count; id++) if (im->kind[id] != FSI_RIGID_NONE) FSI__TRY(fsi__rg_check_moved(w, id, fn));
    return fsi__rg_ready(w, fn);
}

/* ---- >>accept: islands and sleep --------------------------------------------------------------------------------- */

/* Islands: bodies that touch with an impulse; links of a tree, which sleeps as a whole. */
static void fsi__rg_make_islands(fsi_rigid *w)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__jt_tree *tree;
    int i, k, l, first;
    for (i = 0; i < w->count; i++) im->parent[i] = i;
    for (i = 0; i < im->touch_count; i++) {
        const fsi__rg_touch *t = &im->touch[i];
        if (im->row[i].jn > 0 && t->b >= 0 && fsi__rg_mobile(im, t->a) && fsi__rg_mobile(im, t->b))
            fsi__cd_join(im->parent, t->a, t->b);
    }
    for (k = 0; (tree = fsi__rg_next_tree(w, &k, 1)) != NULL;) for (l = 0, first = -1; l < tree->view.link_count; l++) {
        if (!fsi__rg_mobile(im, tree->body[l])) continue;
        if (first < 0) first = tree->body[l];
        fsi__cd_join(im->parent, tree->body[l], first);
    }
}

/* Reasons for and against sleep, by the root of an island: something at rest carries it; some body is not at rest. */
enum { FSI__RG_CARRIED = 1, FSI__RG_RESTLESS = 2 };

static void fsi__rg_add_verdict(fsi__rg_impl *im, int id, int reason)
{
    unsigned char *verdict = &im->verdict[fsi__cd_root(im->parent, id)];
    *verdict = (unsigned char)(*verdict | reason);
}

/* May the islands sleep? */
static void fsi__rg_judge(fsi_rigid *w, double dt)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__cd_scene scene = fsi__rg_scene(w);
    fsi__jt_tree *tree;
    int id, i, k, l;
    if (w->count > 0) memset(im->verdict, 0, (size_t)w->count);

    /* bodies that move, or are pushed */
    for (id = 0; id < w->count; id++) if (fsi__rg_mobile(im, id)) {
        const fsi__ct_body *m = &im->moving[id];
        double *still = &im->rest[id].still;
        const double speed = fsi__d3_norm(m->v) + fsi__d3_norm(m->w) * im->solid[id].reach;
        *still = speed < (double)w->desc.sleep_speed ? *still + dt : 0;
        if (fsi__rg_pushed(w, id, m->sum) || fsi__rg_pushed(w, id, fsi__d3_of(fsi__rg_liquid(im, id)))) *still = 0;
        if (*still < (double)w->desc.sleep_time) fsi__rg_add_verdict(im, id, FSI__RG_RESTLESS);
    }

    /* Bodies' supports: planes, static, kinematic and sleeping bodies. */
    for (i = 0; i < im->touch_count; i++) if (im->row[i].jn > 0) {
        const fsi__rg_touch *t = &im->touch[i];
        const int mover = fsi__rg_mobile(im, t->a) ? t->a : t->b, other = mover == t->a ? t->b : t->a;
        if (mover < 0 || (other >= 0 && fsi__rg_mobile(im, other))) continue;
        k = other >= 0 && fsi__cd_active(&scene, other);
        fsi__rg_add_verdict(im, mover, k ? FSI__RG_RESTLESS : FSI__RG_CARRIED);
    }

    /* trees: a fixed root carries, a track moves */
    for (k = 0; (tree = fsi__rg_next_tree(w, &k, 1)) != NULL;) for (l = 0; l < tree->view.link_count; l++) {
        if (!fsi__rg_mobile(im, tree->body[l])) continue;
        if (tree->fixed) fsi__rg_add_verdict(im, tree->body[l], FSI__RG_CARRIED);
        if (tree->link[l].script == FSI__JT_TRACK) fsi__rg_add_verdict(im, tree->body[l], FSI__RG_RESTLESS);
    }
}

static void fsi__rg_fall_asleep(fsi_rigid *w, int id)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__ct_body *m = &im->moving[id];
    int k;
    im->rest[id].group = fsi__cd_root(im->parent, id);
    im->rest[id].asleep = 1;
    m->mobile = 0;
    m->v = m->w = fsi__d3_zero();
    if (m->tree >= 0) for (k = 0; k < im->tree[m->tree]->view.coordinates; k++) im->tree[m->tree]->u[k] = 0;
    im->stats.fell_asleep++;
}

static void fsi__rg_sleep_islands(fsi_rigid *w, double dt)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int id;
    im->stats.islands = im->stats.awake = 0;
    fsi__rg_make_islands(w);
    fsi__rg_judge(w, dt);
    for (id = 0; id < w->count; id++) if (fsi__rg_mobile(im, id)) {
        int sleeps = w->desc.sleep_time > 0 && im->verdict[fsi__cd_root(im->parent, id)] == FSI__RG_CARRIED;
        if (sleeps) fsi__rg_fall_asleep(w, id);
        im->stats.awake += !sleeps;
        im->stats.islands += !sleeps && im->parent[id] == id;
    }
}

/* Stats of this substep's contacts, and their impulses. */
static void fsi__rg_count_contacts(fsi_rigid *w)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__cd_scene scene = fsi__rg_scene(w);
    fsi_rigid_stats *s = &im->stats;
    int i, k;
    s->contacts = im->touch_count + im->carried;
    s->touching = s->overlapping = 0;
    s->max_depth = 0;
    for (i = 0; i < im->touch_count; i++) {
        fsi__rg_touch *t = &im->touch[i];
        const fsi__ct_row *row = &im->row[i];
        const double deep = 0.05 * fsi__cd_thickness(&scene, t->a, t->b);
        const int a = fsi__rg_mobile(im, t->a), b = fsi__rg_mobile(im, t->b);
        const int same = i > 0 && t[-1].a == t->a && t[-1].b == t->b; /* the pair of the one before */
        t->impulse = fsi__d3_madd(row->jt, row->jn, row->n);
        s->touching += row->jn > 0;
        s->max_depth = fmax(s->max_depth, t->depth);
        s->overlapping += t->depth > deep && !(same && t[-1].depth > deep);
        for (k = 0; k < 3 && a != b; k++) s->contact_impulse[k] += (a ? 1 : -1) * fsi__d3_axis(t->impulse, k);
    }
}

/* Rates at the start of the next substep; those of sleeping trees are 0. */
static void fsi__rg_accept_rates(fsi_rigid *w, int awake)
{
    fsi__jt_tree *t;
    int k, i;
    for (k = 0; (t = fsi__rg_next_tree(w, &k, awake)) != NULL;) {
        if (!awake && fsi__ct_tree_awake(fsi__rg_of(w)->moving, t)) continue;
        for (i = 0; i < t->view.coordinates; i++) t->u0[i] = t->u[i] = awake ? t->u[i] : 0;
    }
}

/* This substep's contacts, sorted, become the last ones. */
static void fsi__rg_keep_touches(fsi__rg_impl *im, double dt)
{
    fsi__rg_touch *swap = im->last;
    const int capacity = im->last_capacity;
    im->touch_count += im->carried;
    fsi__rg_sort_touches(im->touch, im->touch_count);
    im->last = im->touch;
    im->touch = swap;
    im->last_capacity = im->touch_capacity;
    im->touch_capacity = capacity;
    im->last_count = im->touch_count;
    im->last_dt = dt;
    im->touch_count = im->row_count = im->carried = 0;
}

FSI_API void fsi__rg_accept(fsi_rigid *w, double dt)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int id;
    fsi__rg_count_contacts(w);
    fsi__rg_accept_rates(w, 1);
    fsi__rg_sleep_islands(w, dt);
    fsi__rg_accept_rates(w, 0);
    for (id = 0; id < w->count; id++) if (im->kind[id] != FSI_RIGID_NONE) {
        fsi__ct_body *m = &im->moving[id];
        m->start = m->pose;
        m->v0 = m->v;
        m->w0 = m->w;
        fsi__rg_start_body(im, id);
    }
    fsi__rg_keep_touches(im, dt);
    im->now += dt;
    im->stats.substeps++;
}

/* ---- >>commit ---------------------------------------------------------------------------------------------------- */

static void fsi__rg_commit_body(fsi_rigid *w, int id, double dt)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__ct_body *m = &im->moving[id];
    fsi__rg_record *r = &im->record[id];
    fsi_body *b = im->body[id];
    fsi_vec3 zero = fsi_v3(0, 0, 0);
    b->pose = b->end = im->kind[id] == FSI_RIGID_KINEMATIC && r->has_target ? r->target : m->start;
    b->velocity = b->new_velocity = fsi__d3_real(m->v);
    b->angular_velocity = b->new_angular_velocity = fsi__d3_real(m->w);
    if (im->kind[id] == FSI_RIGID_KINEMATIC && r->has_target) b->velocity = b->angular_velocity = zero;
    b->impulse = fsi_v3_add(fsi__rg_liquid(im, id), fsi__d3_real(m->sum));
    b->angular_impulse = fsi_v3_add(fsi__rg_liquid_moment(im, id), fsi__d3_real(m->moment));
    b->reaction_force = fsi_v3_scale(b->impulse, (fsi_real)(1 / dt));
    b->reaction_torque = fsi_v3_scale(b->angular_impulse, (fsi_real)(1 / dt));
    b->force = b->torque = zero;
    im->asleep[id] = (unsigned char)(im->rest[id].asleep != 0);
    r->group = im->rest[id].group;
    r->still = im->rest[id].still;
    r->has_target = 0;
    r->once_force = r->once_torque = r->liquid = r->liquid_moment = zero;
    r->seen_force = im->force[id];
    r->seen_torque = im->torque[id];
}

/* Momentum and energy of a dynamic body as published. */
static void fsi__rg_measure_body(const fsi_rigid *w, int id, fsi_rigid_stats *s)
{
    const fsi__rg_record *r = &fsi__rg_of(w)->record[id];
    const fsi_body *b = w->body[id];
    const fsi__d3 v = fsi__d3_of(b->velocity), o = fsi__d3_of(b->angular_velocity), x = fsi__d3_of(b->pose.position);
    double turn[9], tensor[9];
    fsi__d3 spin;
    int k;
    fsi__d9_of_quat(b->pose.orientation, turn);
    fsi__d9_turn(turn, r->inertia, tensor);
    spin = fsi__d9_mul(tensor, o);
    s->kinetic_energy += 0.5 * (r->mass * fsi__d3_dot(v, v) + fsi__d3_dot(o, spin));
    s->potential_energy -= r->mass * fsi__d3_dot(fsi__d3_of(w->desc.gravity), x);
    spin = fsi__d3_madd(spin, r->mass, fsi__d3_cross(x, v));
    for (k = 0; k < 3; k++) {
        s->momentum[k] += r->mass * fsi__d3_axis(v, k);
        s->angular_momentum[k] += fsi__d3_axis(spin, k);
    }
    s->max_speed = fmax(s->max_speed, fsi__d3_norm(v));
}

/* Momentum, energy and speeds as published; memory. */
static void fsi__rg_measure(const fsi_rigid *w, fsi_rigid_stats *s)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__jt_tree *t;
    int id, k, l;
    s->bodies = 0;
    for (id = 0; id < w->count; id++) if (im->kind[id] != FSI_RIGID_NONE) {
        s->bodies++;
        for (k = 0; k < 3; k++) s->liquid_impulse[k] += fsi__d3_axis(fsi__d3_of(im->body[id]->impulse), k);
        if (im->kind[id] == FSI_RIGID_DYNAMIC) fsi__rg_measure_body(w, id, s);
    }
    for (k = 0; (t = fsi__rg_next_tree(w, &k, 0)) != NULL;) for (l = 0; l < t->view.link_count; l++) {
        const double d = t->column[l] < 0 ? 0 : (double)t->q[t->column[l]] - t->link[l].rest;
        s->potential_energy += 0.5 * t->link[l].stiffness * d * d;
    }
    s->bytes = w->context->bytes;
    s->allocs = w->context->allocs;
}

static void fsi__rg_commit_contacts(fsi_rigid *w)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int i;
    for (i = 0; i < im->last_count; i++) {
        const fsi__rg_touch *t = &im->last[i];
        fsi_rigid_contact *c = &im->contact[i];
        memset(c, 0, sizeof *c); /* its padding goes into hashes too */
        c->a = t->a;
        c->b = t->b;
        c->point = fsi__d3_real(t->x);
        c->normal = fsi__d3_real(t->n);
        c->depth = (fsi_real)t->depth;
        c->impulse = fsi__d3_real(t->impulse);
        c->key = t->key;
    }
    w->contact_count = im->last_count;
    im->saved_dt = im->last_dt;
}

FSI_API void fsi__rg_commit(fsi_rigid *w, double dt)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__jt_tree *t;
    int id, k;
    for (id = 0; id < w->count; id++) if (im->kind[id] != FSI_RIGID_NONE) fsi__rg_commit_body(w, id, dt);
    for (k = 0; (t = fsi__rg_next_tree(w, &k, 0)) != NULL;) fsi__jt_commit(t);
    fsi__rg_commit_contacts(w);
    w->time += dt;
    im->stats.sweeps = im->report.sweeps;
    im->stats.direct = im->report.direct;
    im->stats.direct_steps = im->report.direct_steps;
    im->stats.degraded = im->report.degraded;
    im->stats.residual = im->report.residual;
    im->stats.seconds_direct = im->report.seconds_direct;
    fsi__rg_measure(w, &im->stats);
    w->stats = im->stats;
    im->begun = 0;
    im->looking = 0;
}

FSI_API void fsi__rg_drop(fsi_rigid *w) { fsi__rg_of(w)->touch_count = 0; }

/* ---- >>step ------------------------------------------------------------------------------------------------------ */

/* One substep by itself. */
static fsi_status fsi__rg_substep(fsi_rigid *w, double dt, const char *fn)
{
    FSI__TRY(fsi__rg_predict(w, dt, fn));
    FSI__TRY(fsi__rg_collide(w, dt, fn));
    fsi__rg_solve(w, dt, NULL, 0);
    return fsi__rg_advance(w, dt, fn);
}

FSI_API void fsi__rg_warn(const fsi_rigid *w)
{
    const fsi_rigid_stats *s = &w->stats;
    if (s->overlapping > 0)
        fsi__warn(w->context,
            "fsi_rigid: %d pairs of bodies overlap deeply, by up to %g m, which is being undone",
            s->overlapping, s->max_depth);
}

/* The stats of a step with dt 0: of what is published. */
static void fsi__rg_look(fsi_rigid *w)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__cd_scene scene = fsi__rg_scene(w);
    fsi_rigid_stats *s = &im->stats;
    int i, id;
    memset(s, 0, sizeof *s);
    for (id = 0; id < w->count; id++) im->parent[id] = id;

    /* contacts are sorted: those of one pair stand together */
    for (i = 0; i < w->contact_count; i++) {
        const fsi_rigid_contact *c = &im->contact[i];
        const int same = i > 0 && c->a == c[-1].a && c->b == c[-1].b;
        const double deep = 0.05 * fsi__cd_thickness(&scene, c->a, c->b);
        s->contacts++;
        s->touching += fsi_v3_dot(c->impulse, c->normal) > 0;
        s->max_depth = fmax(s->max_depth, (double)c->depth);
        s->overlapping += (double)c->depth > deep && !(same && (double)c[-1].depth > deep);
        if (c->b >= 0 && im->kind[c->a] == FSI_RIGID_DYNAMIC && im->kind[c->b] == FSI_RIGID_DYNAMIC)
            fsi__cd_join(im->parent, c->a, c->b);
    }

    /* bodies and islands awake */
    for (id = 0; id < w->count; id++) if (im->kind[id] == FSI_RIGID_DYNAMIC && !im->asleep[id]) {
        s->awake++;
        s->islands += im->parent[id] == id;
    }
    fsi__rg_measure(w, s);
    memset(s->liquid_impulse, 0, sizeof s->liquid_impulse);
    w->stats = *s;
    im->looking = 0;
}

static fsi_status fsi__rg_run(fsi_rigid *w, double dt, const char *fn)
{
    const int n = w->desc.substeps;
    double clock = fsi__now(w->context);
    fsi__rg_impl *im = fsi__rg_of(w);
    int k;
    FSI__TRY(fsi__rg_begin(w, dt, fn));
    for (k = 0; k < n; k++) {
        fsi__rg_aim_kinematic(w, dt * (n - k) / n);
        FSI__TRY(fsi__rg_substep(w, dt / n, fn));
        fsi__rg_accept(w, dt / n);
    }
    im->stats.seconds_other = fsi__now(w->context) - clock - im->stats.seconds_collide - im->stats.seconds_solve;
    fsi__rg_commit(w, dt);
    fsi__rg_warn(w);
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_step(fsi_rigid *w, fsi_real dt)
{
    static const char fn[] = "fsi_rigid_step";
    FSI__TRY(fsi__rg_check(w));
    FSI__TRY(fsi__check_dt(w->context, dt, fn));
    FSI__TRY(fsi__rg_check_not_begun(w, fn));
    if (dt > 0) return fsi__rg_run(w, (double)dt, fn);
    FSI__TRY(fsi__rg_check_inputs(w, 0, fn));
    fsi__rg_look(w);
    return FSI_OK;
}

FSI_API fsi_real fsi_rigid_suggest_dt(const fsi_rigid *w)
{
    const fsi__rg_impl *im;
    double least = 1000, g;
    int id;
    if (fsi__rg_check(w) != FSI_OK) return 0;
    im = fsi__rg_of(w);
    g = (double)fsi_v3_norm(w->desc.gravity);
    for (id = 0; id < w->count; id++) {
        const int falls = im->kind[id] == FSI_RIGID_DYNAMIC;
        /* half its thickness: */
        const double way = im->solid[id].thick, pull = falls ? g * (2 * w->desc.substeps - 1) : 0;
        double v;
        if ((!falls && im->kind[id] != FSI_RIGID_KINEMATIC) || im->asleep[id] || !(way > 0)) continue;
        v = (double)fsi_v3_norm(im->body[id]->velocity)
            + (double)fsi_v3_norm(im->body[id]->angular_velocity) * im->solid[id].reach;
        /* in the last of N substeps t: (v + g (N - 1) t) t + g t^2/2 */
        if (v > 0 || pull > 0) least = fmin(least, w->desc.substeps * 2 * way / (v + sqrt(v * v + 2 * pull * way)));
    }
    return (fsi_real)least;
}

/* ---- >>liquids --------------------------------------------------------------------------------------------------- */

/* Tells a liquid the force that contacts and joints will have without it, in sum with all others: F = m (v - v0)/dt. */
static void fsi__rg_tell(fsi_rigid *w, int id, double dt)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__ct_body *m = &im->moving[id];
    const fsi__rg_record *r = &im->record[id];
    fsi_body *b = im->body[id];
    double tensor[9];
    fsi__d3 f = fsi__d3_scale(fsi__d3_sub(m->v, m->v0), r->mass / dt),
        o = fsi__d3_scale(fsi__d3_sub(m->w, m->w0), 1 / dt);
    fsi__d9_turn(m->turn, r->inertia, tensor);
    b->impulse = b->angular_impulse = b->reaction_force = b->reaction_torque = fsi_v3(0, 0, 0);
    b->force = im->kind[id] == FSI_RIGID_DYNAMIC ? fsi__d3_real(f) : fsi_v3(0, 0, 0);
    b->torque = im->kind[id] == FSI_RIGID_DYNAMIC ? fsi__d3_real(fsi__d9_mul(tensor, o)) : fsi_v3(0, 0, 0);
    b->end = im->kind[id] == FSI_RIGID_KINEMATIC ? (r->has_target ? r->target : m->pose) : b->pose;
    b->new_velocity = fsi__d3_real(m->v);
    b->new_angular_velocity = fsi__d3_real(m->w);
}

static void fsi__rg_forget_liquid(fsi__rg_record *r) { r->liquid = r->liquid_moment = fsi_v3(0, 0, 0); }

/* The step without liquids, up to its velocities; all of it is scratch. */
static fsi_status fsi__rg_foresee(fsi_rigid *w, double dt, const char *fn)
{
    FSI__TRY(fsi__rg_begin(w, dt, fn));
    fsi__rg_aim_kinematic(w, dt);
    FSI__TRY(fsi__rg_predict(w, dt, fn));
    FSI__TRY(fsi__rg_collide(w, dt, fn));
    fsi__rg_solve(w, dt, NULL, 0);
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_begin_step(fsi_rigid *w, fsi_real dt)
{
    static const char fn[] = "fsi_rigid_begin_step";
    fsi__rg_impl *im;
    int id;
    FSI__TRY(fsi__rg_check(w));
    FSI__TRY(fsi__check_dt(w->context, dt, fn));
    im = fsi__rg_of(w);
    if (dt > 0) FSI__TRY(fsi__rg_foresee(w, (double)dt, fn));
    else FSI__TRY(fsi__rg_check_inputs(w, 0, fn));
    for (id = 0; id < w->count; id++) {
        fsi__rg_forget_liquid(&im->record[id]);
        if (dt > 0 && im->kind[id] != FSI_RIGID_NONE) fsi__rg_tell(w, id, (double)dt);
    }
    im->begun = (double)dt;
    im->looking = !(dt > 0);
    return FSI_OK;
}

static fsi_status fsi__rg_check_liquid(const fsi_rigid *w, const char *fn)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    int id;
    if (!(im->begun > 0))
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, -1, 0,
            "no step was begun: call fsi_rigid_begin_step first");
    for (id = 0; id < w->count; id++) if (im->kind[id] != FSI_RIGID_NONE) {
        const fsi_body *b = im->body[id];
        if (!fsi_v3_is_finite(b->impulse) || !fsi_v3_is_finite(b->angular_impulse))
            return fsi__fail(w->context, FSI_ERROR_NAN, fn, id, 0, "body %d: the impulse of the liquid is not finite",
                id);
        if (!fsi__col_within(b->impulse, FSI__RG_STRONGEST) || !fsi__col_within(b->angular_impulse, FSI__RG_STRONGEST))
            return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, id, (double)b->impulse.x,
                "body %d: the impulse of the liquid is beyond %g", id, FSI__RG_STRONGEST);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_take_liquid(fsi_rigid *w)
{
    fsi__rg_impl *im;
    int id;
    FSI__TRY(fsi__rg_check(w));
    im = fsi__rg_of(w);
    if (im->looking) return FSI_OK; /* dt 0: there is no impulse */
    FSI__TRY(fsi__rg_check_liquid(w, "fsi_rigid_take_liquid"));
    for (id = 0; id < w->count; id++) if (im->kind[id] != FSI_RIGID_NONE) {
        fsi_body *b = im->body[id];
        fsi__rg_record *r = &im->record[id];
        r->liquid = fsi_v3_add(r->liquid, b->impulse);
        r->liquid_moment = fsi_v3_add(r->liquid_moment, b->angular_impulse);
        b->force = fsi_v3_madd(b->force, (fsi_real)(1 / im->begun), b->impulse);
        b->torque = fsi_v3_madd(b->torque, (fsi_real)(1 / im->begun), b->angular_impulse);
        b->impulse = b->angular_impulse = fsi_v3(0, 0, 0);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_end_step(fsi_rigid *w, fsi_real dt)
{
    static const char fn[] = "fsi_rigid_end_step";
    fsi__rg_impl *im;
    fsi_status status;
    FSI__TRY(fsi__rg_check(w));
    FSI__TRY(fsi__check_dt(w->context, dt, fn));
    im = fsi__rg_of(w);
    if (im->looking && !(dt > 0)) {
        fsi__rg_look(w);
        return FSI_OK;
    }
    FSI__TRY(fsi__rg_check_liquid(w, fn));
    if (fabs((double)dt - im->begun) > 1e-6 * im->begun)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, -1, (double)dt, "dt is %g, the step was begun with %g",
            (double)dt, im->begun);
    im->ending = 1;
    status = fsi__rg_run(w, (double)dt, fn);
    im->ending = 0;
    return status;
}

FSI__COLD_BEGIN

/* ---- >>reading and setting bodies -------------------------------------------------------------------------------- */

static int fsi__rg_is_body(const fsi_rigid *w, int id)
{
    return id >= 0 && id < w->count && w->kind[id] != FSI_RIGID_NONE;
}

static fsi_status fsi__rg_check_id(const fsi_rigid *w, int id, const char *fn)
{
    FSI__TRY(fsi__rg_check(w));
    if (fsi__rg_is_body(w, id)) return FSI_OK;
    return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, id, "there is no body %d", id);
}

FSI_API fsi_body *fsi_rigid_body(fsi_rigid *w, int id)
{
    return fsi__rg_check(w) == FSI_OK && fsi__rg_is_body(w, id) ? w->body[id] : NULL;
}

FSI_API fsi_pose fsi_rigid_pose(const fsi_rigid *w, int id)
{
    fsi_pose p;
    p.position = fsi_v3(0, 0, 0);
    p.orientation = fsi_quat_identity();
    if (fsi__rg_check(w) != FSI_OK || !fsi__rg_is_body(w, id)) return p;
    p = w->body[id]->pose;
    p.position = fsi_v3_sub(p.position, fsi_quat_rotate(p.orientation, w->center[id]));
    return p;
}

FSI_API fsi_status fsi_rigid_mass(const fsi_rigid *w, int id, fsi_mass_properties *out)
{
    static const char fn[] = "fsi_rigid_mass";
    const fsi__rg_record *r;
    int k;
    FSI__TRY(fsi__rg_check_id(w, id, fn));
    if (!out) return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, 0, "out is NULL");
    r = &fsi__rg_of(w)->record[id];
    out->volume = (fsi_real)fsi__cd_volume(&fsi__rg_of(w)->solid[id], w->desc.dim);
    out->mass = (fsi_real)r->mass;
    out->center = w->body[id]->pose.position;
    for (k = 0; k < 9; k++) out->inertia.m[k] = (fsi_real)r->inertia[k];
    out->inertia = fsi_body_world_tensor(w->body[id]->pose.orientation, out->inertia);
    return FSI_OK;
}

FSI_API fsi_real fsi_rigid_distance(const fsi_rigid *w, int id, fsi_vec3 x)
{
    if (fsi__rg_check(w) != FSI_OK || !fsi__rg_is_body(w, id) || !fsi_v3_is_finite(x)) return FSI_REAL_MAX;
    return (fsi_real)fsi__cd_distance(&fsi__rg_of(w)->solid[id], &w->body[id]->pose, fsi__d3_of(x), NULL);
}

FSI_API double fsi__rg_distance(const fsi_rigid *w, int id, const fsi_pose *pose, fsi__d3 x, fsi__d3 *n)
{
    return fsi__cd_distance(&fsi__rg_of(w)->solid[id], pose, x, n);
}

FSI_API double fsi__rg_reach(const fsi_rigid *w, int id) { return fsi__rg_of(w)->solid[id].reach; }

FSI_API void fsi__rg_keep_awake(fsi_rigid *w, int id)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    if (im->rest[id].asleep) fsi__rg_wake_group(w, id);
    im->rest[id].still = 0;
}

/* Wakes a body and those it fell asleep with, in the published state. */
static void fsi__rg_wake_now(fsi_rigid *w, int id)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int k, group = im->record[id].group;
    im->record[id].still = 0;
    if (!im->asleep[id]) return;
    for (k = 0; k < w->count; k++) if (im->asleep[k] && (k == id || im->record[k].group == group)) {
        im->asleep[k] = 0;
        im->record[k].still = 0;
    }
}

/* Ends the contacts of a body and wakes the bodies in contact with it. */
static void fsi__rg_part_contacts(fsi_rigid *w, int id)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int i, n = 0;
    for (i = 0; i < w->contact_count; i++) {
        const fsi_rigid_contact c = im->contact[i];
        if (c.a == id && c.b >= 0) fsi__rg_wake_now(w, c.b);
        if (c.b == id) fsi__rg_wake_now(w, c.a);
        if (c.a != id && c.b != id) im->contact[n++] = c;
    }
    w->contact_count = n;
}

static void fsi__rg_wake_tree(fsi_rigid *w, const fsi__jt_tree *t)
{
    int l;
    for (l = 0; l < t->view.link_count; l++) fsi__rg_wake_now(w, t->body[l]);
}

/* Before a body is set: wakes it; parts 1: its contacts end. */
static void fsi__rg_disturb(fsi_rigid *w, int id, int parts)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    if (im->link[id] >= 0) fsi__rg_wake_tree(w, im->tree[im->link[id]]);
    fsi__rg_wake_now(w, id);
    if (parts) fsi__rg_part_contacts(w, id);
}

static int fsi__rg_is_joined(const fsi_rigid *w, int id) /* a link, but no free root */
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    return w->link[id] >= 0 && (im->solid[id].link > 0 || im->tree[w->link[id]]->fixed);
}

static fsi__jt_tree *fsi__rg_tree_of(const fsi_rigid *w, int tree)
{
    if (fsi__rg_check(w) != FSI_OK || tree < 0 || tree >= w->tree_count) return NULL;
    return fsi__rg_of(w)->tree[tree];
}

/* Poses and velocities of links from root, coordinates and rates, as published. */
static void fsi__rg_refresh_tree(fsi_rigid *w, fsi__jt_tree *t)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int l;
    fsi__jt_place(t, &w->body[t->body[0]]->pose);
    for (l = 0; l < t->view.link_count; l++) {
        fsi_body *b = im->body[t->body[l]];
        if (l > 0) {
            b->pose.position = fsi__d3_real(t->c[l]);
            b->pose.orientation = t->orientation[l];
        }
        b->end = b->pose;
        b->velocity = b->new_velocity = fsi__d3_real(fsi__jt_linear(t, l, t->u));
        b->angular_velocity = b->new_angular_velocity = fsi__d3_real(fsi__jt_angular(t, l, t->u));
    }
}

/* The deepest overlap of a body with another one, if it is more than 5 % of the smaller thickness; *other: which. */
static double fsi__rg_deepest(const fsi_rigid *w, int id, int *other)
{
    const fsi__cd_scene scene = fsi__rg_scene(w);
    double worst = 0, depth;
    int k;
    *other = -1;
    for (k = 0; k < w->count; k++) {
        if (k == id || w->kind[k] == FSI_RIGID_NONE || !fsi__cd_may_meet(&scene, id, k)) continue;
        depth = fsi__cd_overlap(&scene, id, &w->body[id]->pose, k, &w->body[k]->pose);
        if (depth > 0.05 * fsi__cd_thickness(&scene, id, k) && depth > worst) { worst = depth; *other = k; }
    }
    return worst;
}

static fsi_status fsi__rg_check_overlap(fsi_rigid *w, int id, const char *fn)
{
    double depth;
    int other;
    if (w->desc.overlap != FSI_RIGID_OVERLAP_REFUSE) return FSI_OK;
    depth = fsi__rg_deepest(w, id, &other);
    if (other < 0) return FSI_OK;
    return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, other, depth, "the body would overlap body %d by %g m", other,
        depth);
}

FSI_API fsi_status fsi_rigid_teleport(fsi_rigid *w, int id, fsi_pose pose)
{
    static const char fn[] = "fsi_rigid_teleport";
    fsi__jt_tree *t;
    fsi_body *b, old;
    fsi_status status;
    int l;
    FSI__TRY(fsi__rg_check_id(w, id, fn));
    FSI__TRY(fsi__col_check_pose(w->context, fn, "pose", id, &pose));
    FSI__TRY(fsi__col_check_flat(w->context, fn, "pose", id, w->desc.dim, &pose));
    if (fsi__rg_is_joined(w, id))
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, 0,
            "body %d is a link of tree %d: only a free root can be set", id, w->link[id]);

    /* the new pose, unless it overlaps another body */
    b = w->body[id];
    old = *b;
    b->pose.orientation = fsi_quat_unit(pose.orientation);
    b->pose.position = fsi_pose_point(pose, w->center[id]);
    status = fsi__col_check_pose(w->context, fn, "the centre's pose", id, &b->pose);
    if (status == FSI_OK) status = fsi__rg_check_overlap(w, id, fn);
    if (status != FSI_OK) {
        *b = old;
        return status;
    }

    /* contacts end; a tree follows its root */
    b->end = b->pose;
    fsi__rg_disturb(w, id, 1);
    if (w->link[id] < 0) return FSI_OK;
    t = fsi__rg_of(w)->tree[w->link[id]];
    fsi__rg_refresh_tree(w, t);
    for (l = 0; l < t->view.link_count; l++) fsi__rg_part_contacts(w, t->body[l]);
    return FSI_OK;
}

static fsi_status fsi__rg_check_motion(const fsi_rigid *w, const char *fn, int index, fsi_vec3 v, fsi_vec3 o)
{
    if (!fsi_v3_is_finite(v)) return fsi__fail(w->context, FSI_ERROR_NAN, fn, index, 0, "velocity is not finite");
    if (!fsi_v3_is_finite(o))
        return fsi__fail(w->context, FSI_ERROR_NAN, fn, index, 0, "angular_velocity is not finite");
    if (!fsi__col_within(v, FSI__RG_FASTEST))
        return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, index, (double)v.x, "velocity is beyond %g m/s",
            FSI__RG_FASTEST);
    if (!fsi__col_within(o, FSI__RG_FASTEST))
        return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, index, (double)o.x, "angular_velocity is beyond %g rad/s",
            FSI__RG_FASTEST);
    if (w->desc.dim == 2 && (v.z != 0 || o.x != 0 || o.y != 0))
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, index, 0,
            "a velocity leaves the plane z = 0 of a 2D world");
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_set_velocity(fsi_rigid *w, int id, fsi_vec3 velocity, fsi_vec3 angular_velocity)
{
    static const char fn[] = "fsi_rigid_set_velocity";
    fsi__rg_impl *im;
    fsi_body *b;
    FSI__TRY(fsi__rg_check_id(w, id, fn));
    FSI__TRY(fsi__rg_check_motion(w, fn, id, velocity, angular_velocity));
    if (w->kind[id] == FSI_RIGID_STATIC || fsi__rg_is_joined(w, id))
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, 0, "body %d is %s", id,
            w->kind[id] == FSI_RIGID_STATIC ? "static" : "a link: only a free root can be set");
    im = fsi__rg_of(w);
    fsi__rg_disturb(w, id, 0);
    b = im->body[id];
    b->velocity = b->new_velocity = velocity;
    b->angular_velocity = b->new_angular_velocity = angular_velocity;
    if (w->link[id] >= 0) {
        fsi__jt_tree *t = im->tree[w->link[id]];
        fsi__jt_set_root_rates(t, velocity, angular_velocity);
        fsi__rg_refresh_tree(w, t);
    }
    return FSI_OK;
}

/* A tree, placed as published; NULL: no such tree. */
static fsi__jt_tree *fsi__rg_tree_now(const fsi_rigid *w, int tree)
{
    fsi__jt_tree *t = fsi__rg_tree_of(w, tree);
    if (t) fsi__jt_place(t, &w->body[t->body[0]]->pose);
    return t;
}

/* An impulse on a link changes all rates: M du = J^T (moment, j), scripted joints held. 0: beyond the limit of
   rates. */
static int fsi__rg_kick_tree(fsi_rigid *w, int id, fsi__d3 moment, fsi__d3 j)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__jt_tree *t = fsi__rg_tree_now(w, im->link[id]);
    const int n = t->view.coordinates;
    const double *y;
    int k;
    fsi__jt_mass(t);
    if (!fsi__jt_factor_mass(t)) return 0;
    y = fsi__jt_response(t, im->solid[id].link, moment, j);
    for (k = 0; k < n; k++) if (!(fabs((double)t->rate[k] + y[k]) <= FSI__RG_FASTEST)) return 0;
    for (k = 0; k < n; k++) t->rate[k] = (fsi_real)((double)t->rate[k] + y[k]);
    fsi__rg_refresh_tree(w, t);
    return 1;
}

static fsi_status fsi__rg_check_push(const fsi_rigid *w, int id, fsi_vec3 j, fsi_vec3 x, const char *fn)
{
    FSI__TRY(fsi__rg_check_id(w, id, fn));
    if (w->kind[id] != FSI_RIGID_DYNAMIC)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, (double)w->kind[id], "body %d is not dynamic", id);
    if (!fsi_v3_is_finite(j) || !fsi_v3_is_finite(x))
        return fsi__fail(w->context, FSI_ERROR_NAN, fn, id, 0, "%s is not finite",
            fsi_v3_is_finite(x) ? "the force or impulse" : "x");
    if (w->desc.dim == 2 && (j.z != 0 || x.z != 0))
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, 0,
            "the force or impulse leaves the plane z = 0 of a 2D world");
    if (!fsi__col_within(x, 1e9))
        return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, id, (double)fsi_v3_norm(x),
            "x lies farther than 1e9 m from the origin");
    if (!fsi__col_within(j, FSI__RG_STRONGEST))
        return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, id, (double)j.x, "the force or impulse is beyond %g",
            FSI__RG_STRONGEST);
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_apply_impulse(fsi_rigid *w, int id, fsi_vec3 impulse, fsi_vec3 x)
{
    static const char fn[] = "fsi_rigid_apply_impulse";
    const fsi__rg_record *r;
    fsi_body *b;
    fsi__d3 moment, v, o, j = fsi__d3_of(impulse);
    double turn[9], inverse[9];
    int slow;
    FSI__TRY(fsi__rg_check_push(w, id, impulse, x, fn));

    /* of a link: the whole tree; else v += j/m, omega += I^-1 moment */
    r = &fsi__rg_of(w)->record[id];
    b = w->body[id];
    moment = fsi__d3_cross(fsi__d3_sub(fsi__d3_of(x), fsi__d3_of(b->pose.position)), j);
    fsi__d9_of_quat(b->pose.orientation, turn);
    fsi__d9_turn(turn, r->inverse, inverse);
    v = fsi__d3_madd(fsi__d3_of(b->velocity), 1 / r->mass, j);
    o = fsi__d3_add(fsi__d3_of(b->angular_velocity), fsi__d9_mul(inverse, moment));
    if (w->link[id] >= 0) slow = fsi__rg_kick_tree(w, id, moment, j);
    else slow = fsi__d3_norm(v) <= FSI__RG_FASTEST && fsi__d3_norm(o) <= FSI__RG_FASTEST;
    if (!slow)
        return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, id, fsi__d3_norm(j),
            "the impulse would make body %d faster than %g m/s or rad/s", id, FSI__RG_FASTEST);

    /* accepted */
    fsi__rg_disturb(w, id, 0);
    if (w->link[id] >= 0) return FSI_OK;
    b->velocity = b->new_velocity = fsi__d3_real(v);
    b->angular_velocity = b->new_angular_velocity = fsi__d3_real(o);
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_apply_force(fsi_rigid *w, int id, fsi_vec3 force, fsi_vec3 x)
{
    static const char fn[] = "fsi_rigid_apply_force";
    fsi__rg_record *r;
    fsi_vec3 sum, turn;
    FSI__TRY(fsi__rg_check_push(w, id, force, x, fn));
    r = &fsi__rg_of(w)->record[id];
    sum = fsi_v3_add(r->once_force, force);
    turn = fsi_v3_add(r->once_torque, fsi_v3_cross(fsi_v3_sub(x, w->body[id]->pose.position), force));
    if (!fsi__col_within(sum, FSI__RG_STRONGEST) || !fsi__col_within(turn, FSI__RG_STRONGEST))
        return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, id, (double)fsi_v3_norm(force),
            "the forces on body %d, or their torque, add up to more than %g", id, FSI__RG_STRONGEST);
    fsi__rg_disturb(w, id, 0);
    r->once_force = sum;
    r->once_torque = turn;
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_set_target(fsi_rigid *w, int id, fsi_pose pose)
{
    static const char fn[] = "fsi_rigid_set_target";
    fsi__rg_record *r;
    FSI__TRY(fsi__rg_check_id(w, id, fn));
    if (w->kind[id] != FSI_RIGID_KINEMATIC)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, (double)w->kind[id], "body %d is not kinematic", id);
    FSI__TRY(fsi__col_check_pose(w->context, fn, "pose", id, &pose));
    FSI__TRY(fsi__col_check_flat(w->context, fn, "pose", id, w->desc.dim, &pose));
    pose.position = fsi_pose_point(pose, w->center[id]);
    pose.orientation = fsi_quat_unit(pose.orientation);
    FSI__TRY(fsi__col_check_pose(w->context, fn, "the centre's pose", id, &pose));
    r = &fsi__rg_of(w)->record[id];
    r->has_target = 1;
    r->target = pose;
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_wake(fsi_rigid *w, int id)
{
    FSI__TRY(fsi__rg_check_id(w, id, "fsi_rigid_wake"));
    fsi__rg_disturb(w, id, 0);
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_sleep(fsi_rigid *w, int id)
{
    static const char fn[] = "fsi_rigid_sleep";
    fsi_body *b;
    FSI__TRY(fsi__rg_check_id(w, id, fn));
    if (w->kind[id] != FSI_RIGID_DYNAMIC || w->link[id] >= 0)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, 0, "body %d is %s", id,
            w->link[id] >= 0 ? "a link" : "not dynamic");
    b = w->body[id];
    b->velocity = b->angular_velocity = b->new_velocity = b->new_angular_velocity = fsi_v3(0, 0, 0);
    if (!w->asleep[id]) fsi__rg_of(w)->record[id].group = id;
    fsi__rg_of(w)->asleep[id] = 1;
    return FSI_OK;
}

/* ---- >>tessellation and drawing ---------------------------------------------------------------------------------- */

FSI_API fsi_status fsi_rigid_tessellate(fsi_rigid *w, int id, int shape, fsi_real edge, fsi_mesh **out)
{
    static const char fn[] = "fsi_rigid_tessellate";
    const fsi_status odd = fsi_is_finite((double)edge) ? FSI_ERROR_ARGUMENT : FSI_ERROR_NAN;
    if (out) *out = NULL;
    FSI__TRY(fsi__rg_check_id(w, id, fn));
    if (!out) return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, 0, "out is NULL");
    if (shape < -1 || shape >= fsi__rg_of(w)->solid[id].parts)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, shape, shape, "body %d has no shape %d", id, shape);
    if (fsi__rg_of(w)->solid[id].parts == 0)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, 0, "body %d has no shapes", id);
    if (odd == FSI_ERROR_NAN || edge < 0)
        return fsi__fail(w->context, odd, fn, id, (double)edge, "edge is %g", (double)edge);
    return fsi__cd_tessellate(w->context, &fsi__rg_of(w)->solid[id], &w->body[id]->pose, shape, (double)edge,
        w->desc.dim,
        out, id, fn);
}

static void fsi__rg_draw_body(const fsi_rigid *w, int id, const fsi_debug_draw *draw)
{
    static const uint32_t colour[4] = { 0, 0x606060, 0x2060c0, 0xe0a020 };
    const uint32_t rgb = w->asleep[id] ? 0x909090 : colour[w->kind[id]];
    fsi__cd_draw(draw, &fsi__rg_of(w)->solid[id], &w->body[id]->pose, w->desc.dim, rgb);
}

FSI_API void fsi_rigid_debug_draw(const fsi_rigid *w, const fsi_debug_draw *draw)
{
    const fsi__jt_tree *t;
    int id, k;
    if (fsi__rg_check(w) != FSI_OK || !draw) return;
    for (id = 0; id < w->count; id++) if (w->kind[id] != FSI_RIGID_NONE) fsi__rg_draw_body(w, id, draw);
    for (k = 0; k < w->contact_count; k++) {
        const fsi_rigid_contact *c = &w->contact[k];
        const double length = 0.2 * fsi__rg_of(w)->solid[c->a].thick;
        const fsi__d3 x = fsi__d3_of(c->point);
        if (draw->point) draw->point(draw->user, c->point, (fsi_real)0.01, 0xff0000);
        fsi__col_draw_line(draw, x, fsi__d3_madd(x, length, fsi__d3_of(c->normal)), 0xff0000);
    }
    for (id = 0; (t = fsi__rg_next_tree(w, &id, 0)) != NULL;) for (k = 1; k < t->view.link_count; k++) {
        const fsi_body *own = w->body[t->body[k]], *up = w->body[t->body[t->parent[k]]];
        fsi__col_draw_line(draw, fsi__d3_of(up->pose.position), fsi__d3_of(own->pose.position), 0x20c060);
    }
}

/* ---- >>adding and removing bodies -------------------------------------------------------------------------------- */

FSI_API fsi_rigid_body_desc fsi_rigid_default_body_desc(void)
{
    fsi_rigid_body_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('B', fsi_rigid_body_desc);
    d.kind = FSI_RIGID_DYNAMIC;
    d.pose.orientation = fsi_quat_identity();
    d.inertia = fsi_m3_identity();
    d.friction = d.restitution = -1;
    d.filter = d.mask = 0xffffffffu;
    return d;
}

/* Mass, centre and inertia of a body: those given, or the sum over its shapes by the parallel axis theorem. */
static fsi_status fsi__rg_body_mass(fsi_rigid *w, const fsi_rigid_body_desc *d, fsi_mass_properties *sum)
{
    double total = 0, first[3] = { 0, 0, 0 }, inertia[9] = { 0 }, scale;
    int k, i, pass;
    memset(sum, 0, sizeof *sum);

    /* the first pass finds mass and centre, the second the inertia about it */
    for (pass = 0; pass < 2; pass++) for (k = 0; k < d->shape_count; k++) {
        fsi_mass_properties p;
        fsi__d3 r;
        memset(&p, 0, sizeof p);
        FSI__TRY(fsi_rigid_shape_mass(w->context, &d->shapes[k], w->desc.dim, &p));
        if (pass == 0) {
            total += (double)p.mass;
            sum->volume += p.volume;
            for (i = 0; i < 3; i++) first[i] += (double)p.mass * fsi__d3_axis(fsi__d3_of(p.center), i);
            continue;
        }
        r = fsi__d3_sub(fsi__d3_of(p.center), fsi__d3_make(first[0] / total, first[1] / total, first[2] / total));
        for (i = 0; i < 9; i++) {
            const double moved = (i % 4 ? 0 : fsi__d3_dot(r, r)) - fsi__d3_axis(r, i / 3) * fsi__d3_axis(r, i % 3);
            inertia[i] += (double)p.inertia.m[i] + (double)p.mass * moved;
        }
    }

    /* scaled to the mass that is given */
    scale = d->mass > 0 && total > 0 ? (double)d->mass / total : 1;
    sum->mass = (fsi_real)(d->mass > 0 ? (double)d->mass : total);
    if (total > 0) sum->center = fsi__d3_real(fsi__d3_make(first[0] / total, first[1] / total, first[2] / total));
    for (i = 0; i < 9; i++) sum->inertia.m[i] = (fsi_real)(scale * inertia[i]);

    /* or given as a whole; in 2D only the moment about z counts */
    if (d->inertia_given) {
        sum->center = d->center;
        sum->inertia = d->inertia;
    }
    if (w->desc.dim == 2)
        sum->inertia = fsi_m3_diagonal(fsi_v3(sum->inertia.m[8] / 2, sum->inertia.m[8] / 2, sum->inertia.m[8]));
    return FSI_OK;
}

/* Coefficients of its own, or -1: the world's. */
static const fsi__field fsi__rg_own[] = {
    FSI__FIELD(fsi_rigid_body_desc, friction, FSI__REAL, 0, 100, FSI__OR_UNSET),
    FSI__FIELD(fsi_rigid_body_desc, restitution, FSI__REAL, 0, 1, FSI__OR_UNSET)
};

static fsi_status fsi__rg_check_body_desc(const fsi_rigid *w, const fsi_rigid_body_desc *d, const char *fn, int index)
{
    static const fsi__field first[] = {
        FSI__FIELD(fsi_rigid_body_desc, kind, FSI__INT, FSI_RIGID_STATIC, FSI_RIGID_DYNAMIC, 0),
        FSI__FIELD(fsi_rigid_body_desc, shape_count, FSI__INT, 0, 4096, 0)
    };
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_rigid_body_desc, mass, FSI__REAL, 0, 1e30, 0),
        FSI__FIELD(fsi_rigid_body_desc, center, FSI__VEC3, 0, 1e8, 0)
    };
    const fsi__where at = { fn, "desc.", index, 3 };
    int k;
    FSI__TRY(fsi__check_filled(w->context, fn, d, FSI__COOKIE('B', fsi_rigid_body_desc),
        "fsi_rigid_default_body_desc"));

    /* fields one by one */
    FSI__TRY(FSI__CHECK_TABLE(w->context, &at, d, first));
    if (d->shape_count > 0 && !d->shapes)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, index, 0, "desc.shapes is NULL");
    for (k = 0; k < d->shape_count; k++) FSI__TRY(fsi__col_check_shape(w->context, fn, &d->shapes[k], k, w->desc.dim));
    FSI__TRY(fsi__col_check_pose(w->context, fn, "desc.pose", index, &d->pose));
    FSI__TRY(fsi__col_check_flat(w->context, fn, "desc.pose", index, w->desc.dim, &d->pose));
    FSI__TRY(fsi__rg_check_motion(w, fn, index, d->velocity, d->angular_velocity));
    FSI__TRY(FSI__CHECK_TABLE(w->context, &at, d, rows));
    FSI__TRY(FSI__CHECK_TABLE(w->context, &at, d, fsi__rg_own));

    /* mass and inertia together */
    if (d->inertia_given && !(d->mass > 0))
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, index, (double)d->mass,
            "desc.mass is %g: where inertia is given it must be positive", (double)d->mass);
    if (d->kind == FSI_RIGID_DYNAMIC && d->shape_count == 0 && !d->inertia_given)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, index, 0,
            "a dynamic body without shapes must be given mass and inertia");
    return FSI_OK;
}

static void fsi__rg_make_record(const fsi_rigid_body_desc *d, const fsi_mass_properties *mass, int id,
    fsi__rg_record *r)
{
    int k;
    memset(r, 0, sizeof *r);
    r->mass = (double)mass->mass;
    for (k = 0; k < 9; k++) r->inertia[k] = (double)mass->inertia.m[k];
    if (d->kind == FSI_RIGID_DYNAMIC) fsi__d9_inverse(r->inertia, r->inverse);
    r->friction = (double)d->friction;
    r->restitution = (double)d->restitution;
    r->group = id;
}

/* The fsi_body of a desc; refuses mass and inertia that no body has. */
static fsi_status fsi__rg_make_body(fsi_rigid *w, const fsi_rigid_body_desc *d, const fsi_mass_properties *mass,
    fsi_body *b, const char *fn, int index)
{
    fsi_status status;
    *b = fsi_default_body();
    b->mode = d->kind == FSI_RIGID_DYNAMIC ? FSI_BODY_COUPLED : FSI_BODY_PRESCRIBED;
    b->pose.position = fsi_pose_point(d->pose, mass->center);
    b->pose.orientation = fsi_quat_unit(d->pose.orientation);
    b->end = b->pose;
    if (d->kind != FSI_RIGID_STATIC) {
        b->velocity = b->new_velocity = d->velocity;
        b->angular_velocity = b->new_angular_velocity = d->angular_velocity;
    }
    if (mass->mass > 0) b->mass = mass->mass;
    if (mass->mass > 0) b->inertia = mass->inertia;
    status = fsi_body_check(w->context, b, index);
    if (status != FSI_OK) w->context->error.function = fn;
    return status != FSI_OK ? status : fsi__col_check_pose(w->context, fn, "the centre's pose", index, &b->pose);
}

static int fsi__rg_columns(fsi__rg_impl *im, fsi__column *c)
{
#define FSI__RG_COLUMN(array) { (void **)(void *)&(array), sizeof *(array) }
    const fsi__column all[FSI__RG_COLUMNS] = {
        FSI__RG_COLUMN(im->body), FSI__RG_COLUMN(im->kind), FSI__RG_COLUMN(im->asleep), FSI__RG_COLUMN(im->center),
        FSI__RG_COLUMN(im->force), FSI__RG_COLUMN(im->torque), FSI__RG_COLUMN(im->link), FSI__RG_COLUMN(im->record),
        FSI__RG_COLUMN(im->solid), FSI__RG_COLUMN(im->moving), FSI__RG_COLUMN(im->note), FSI__RG_COLUMN(im->rest),
        FSI__RG_COLUMN(im->parent), FSI__RG_COLUMN(im->verdict)
    };
#undef FSI__RG_COLUMN
    memcpy(c, all, sizeof all);
    return FSI__RG_COLUMNS;
}

static fsi_status fsi__rg_reserve_bodies(fsi_rigid *w, int n, const char *fn)
{
    fsi__column columns[FSI__RG_COLUMNS];
    fsi_status status;
    int capacity = w->capacity;
    if (n <= capacity) return FSI_OK;
    if (n > 1 << 28) return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, -1, n, "%d bodies are too many", n);
    if (n < 2 * capacity) n = 2 * capacity;
    if (n < 16) n = 16;
    status = fsi__grow(w->context, columns, fsi__rg_columns(fsi__rg_of(w), columns), w->count, &w->capacity, n, fn);
    fsi__rg_publish(w);
    return status;
}

/* Puts a body into the place `id`, which has room. */
static fsi_status fsi__rg_put_body(fsi_rigid *w, const fsi_rigid_body_desc *d, int id, const char *fn, int index)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi_mass_properties mass;
    fsi__cd_solid solid;
    fsi_body *b;
    fsi_status status;
    memset(&solid, 0, sizeof solid);
    FSI__TRY(fsi__rg_body_mass(w, d, &mass));

    /* Allocations and checks, which may fail. */
    b = (fsi_body *)fsi__alloc(w->context, 1, sizeof *b);
    if (!b) return fsi__fail(w->context, FSI_ERROR_MEMORY, fn, index, 0, "no memory for a body");
    status = fsi__rg_make_body(w, d, &mass, b, fn, index);
    if (status == FSI_OK)
        status = fsi__cd_make_solid(w->context, &solid, d->shapes, d->shape_count, mass.center, w->desc.dim, fn);
    if (status != FSI_OK) {
        fsi__cd_free_solid(w->context, &solid);
        fsi__free(w->context, b, 1, sizeof *b);
        return status;
    }

    /* its row of the arrays */
    fsi__rg_make_record(d, &mass, id, &im->record[id]);
    im->solid[id] = solid;
    im->solid[id].filter = d->filter;
    im->solid[id].mask = d->mask;
    im->body[id] = b;
    im->kind[id] = (unsigned char)d->kind;
    im->asleep[id] = (unsigned char)(d->kind == FSI_RIGID_DYNAMIC && d->asleep);
    im->center[id] = mass.center;
    im->force[id] = im->torque[id] = fsi_v3(0, 0, 0);
    im->link[id] = -1;
    if (im->asleep[id]) b->velocity = b->angular_velocity = b->new_velocity = b->new_angular_velocity = fsi_v3(0, 0, 0);
    if (id >= w->count) w->count = id + 1;
    return FSI_OK;
}

static int fsi__rg_free_place(const fsi_rigid *w, int from)
{
    while (from < w->count && w->kind[from] != FSI_RIGID_NONE) from++;
    return from;
}

static void fsi__rg_drop_body(fsi_rigid *w, int id)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__rg_wake_now(w, id);
    fsi__rg_part_contacts(w, id);
    fsi__cd_free_solid(w->context, &im->solid[id]);
    memset(&im->record[id], 0, sizeof im->record[id]);
    fsi__free(w->context, im->body[id], 1, sizeof *im->body[id]);
    im->body[id] = NULL;
    im->kind[id] = FSI_RIGID_NONE;
    im->asleep[id] = 0;
    im->center[id] = im->force[id] = im->torque[id] = fsi_v3(0, 0, 0);
    im->link[id] = -1;
    memset(&im->moving[id], 0, sizeof im->moving[id]);
    memset(&im->note[id], 0, sizeof im->note[id]);
    memset(&im->rest[id], 0, sizeof im->rest[id]);
    while (w->count > 0 && im->kind[w->count - 1] == FSI_RIGID_NONE) w->count--;
}

/* Bodies that are added asleep close to each other wake together: those whose bounding spheres meet form one group. */
static void fsi__rg_join_sleepers(fsi_rigid *w, int id)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int k, i;
    for (k = 0; k < w->count; k++) if (k != id && im->asleep[k] && im->record[k].group != im->record[id].group) {
        const int old = im->record[k].group;
        const fsi__d3 own = fsi__d3_of(im->body[id]->pose.position), its = fsi__d3_of(im->body[k]->pose.position);
        const double apart = fsi__d3_norm(fsi__d3_sub(its, own));
        if (apart > im->solid[k].reach + im->solid[id].reach) continue;
        for (i = 0; i < w->count; i++)
            if (im->asleep[i] && im->record[i].group == old) im->record[i].group = im->record[id].group;
    }
}

FSI_API fsi_status fsi_rigid_add_body(fsi_rigid *w, const fsi_rigid_body_desc *desc, int *id)
{
    static const char fn[] = "fsi_rigid_add_body";
    fsi_status status;
    int place;
    FSI__TRY(fsi__rg_check(w));
    FSI__TRY(fsi__rg_check_body_desc(w, desc, fn, -1));
    place = fsi__rg_free_place(w, 0);
    FSI__TRY(fsi__rg_reserve_bodies(w, place + 1, fn));
    FSI__TRY(fsi__rg_put_body(w, desc, place, fn, place));
    status = fsi__rg_check_overlap(w, place, fn);
    if (status != FSI_OK) {
        fsi__rg_drop_body(w, place);
        return status;
    }
    if (w->asleep[place]) fsi__rg_join_sleepers(w, place);
    if (id) *id = place;
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_remove_body(fsi_rigid *w, int id)
{
    static const char fn[] = "fsi_rigid_remove_body";
    FSI__TRY(fsi__rg_check_id(w, id, fn));
    if (w->link[id] >= 0)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, 0, "body %d is a link of tree %d: remove the tree", id,
            w->link[id]);
    fsi__rg_drop_body(w, id);
    return FSI_OK;
}

/* ---- >>planes ---------------------------------------------------------------------------------------------------- */

static fsi_status fsi__rg_put_plane(fsi_rigid *w, fsi__d3 n, double offset, double friction, double restitution,
    int *id, const char *fn)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__cd_plane *p;
    int k = 0;
    while (k < w->plane_count && im->plane[k].alive) k++;
    FSI__TRY(FSI__CD_ROOM(w->context, im->plane, w->plane_count, im->plane_capacity, k + 1, fn));
    p = &im->plane[k];
    p->alive = 1;
    p->n = n;
    p->first = offset - fsi__d3_dot(n, im->origin);
    p->offset = offset;
    p->friction = friction;
    p->restitution = restitution;
    if (k == w->plane_count) w->plane_count++;
    if (id) *id = k;
    return FSI_OK;
}

static void fsi__rg_wake_all(fsi_rigid *w)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int k;
    for (k = 0; k < w->count; k++) {
        im->asleep[k] = 0;
        im->record[k].still = 0;
    }
}

FSI_API fsi_status fsi_rigid_add_plane(fsi_rigid *w, fsi_vec3 normal, fsi_real offset,
    const fsi_rigid_body_desc *options, int *id)
{
    static const char fn[] = "fsi_rigid_add_plane";
    const double size = fsi__d3_norm(fsi__d3_of(normal));
    const fsi__field direction[] = { FSI__VALUE(normal, FSI__VEC3, 1e-150, FSI__HUGE, FSI__ABOVE) };
    const fsi__field distance[] = { FSI__VALUE(offset, FSI__REAL, -FSI__HUGE, FSI__HUGE, 0) };
    fsi__where at = { fn, "", -1, 3 };
    FSI__TRY(fsi__rg_check(w));
    at.dim = w->desc.dim;
    FSI__TRY(FSI__CHECK_TABLE(w->context, &at, &normal, direction));
    FSI__TRY(FSI__CHECK_TABLE(w->context, &at, &offset, distance));
    at.of = "desc.";
    if (options) FSI__TRY(FSI__CHECK_TABLE(w->context, &at, options, fsi__rg_own));
    FSI__TRY(fsi__rg_put_plane(w, fsi__d3_scale(fsi__d3_of(normal), 1 / size), (double)offset / size,
        options ? (double)options->friction : -1, options ? (double)options->restitution : -1, id, fn));
    fsi__rg_wake_all(w);
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_remove_plane(fsi_rigid *w, int id)
{
    static const char fn[] = "fsi_rigid_remove_plane";
    fsi__rg_impl *im;
    int i, n = 0;
    FSI__TRY(fsi__rg_check(w));
    im = fsi__rg_of(w);
    if (id < 0 || id >= w->plane_count || !im->plane[id].alive)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, id, "there is no plane %d", id);
    if (id < im->walls)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, id, id, "plane %d is a wall of the domain", id);
    im->plane[id].alive = 0;
    for (i = 0; i < w->contact_count; i++) if (im->contact[i].b != -1 - id) im->contact[n++] = im->contact[i];
    w->contact_count = n;
    fsi__rg_wake_all(w);
    return FSI_OK;
}

/* ---- >>trees implementation -------------------------------------------------------------------------------------- */

FSI_API fsi_rigid_link_desc fsi_rigid_default_link_desc(void)
{
    fsi_rigid_link_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('L', fsi_rigid_link_desc);
    d.body = fsi_rigid_default_body_desc();
    d.parent = -1;
    d.joint = FSI_RIGID_REVOLUTE;
    d.axis = fsi_v3(0, 0, 1);
    return d;
}

FSI_API fsi_rigid_tree_desc fsi_rigid_default_tree_desc(void)
{
    fsi_rigid_tree_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('T', fsi_rigid_tree_desc);
    return d;
}

static int fsi__rg_tree_coordinates(const fsi_rigid_tree_desc *d, int dim)
{
    int l, n = d->fixed ? 0 : (dim == 3 ? 6 : 3);
    for (l = 1; l < d->link_count; l++) n += d->links[l].joint != FSI_RIGID_WELD;
    return n;
}

static fsi_status fsi__rg_check_link(const fsi_rigid *w, const fsi_rigid_link_desc *d, int l, const char *fn)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_rigid_link_desc, joint, FSI__INT, 0, FSI_RIGID_WELD, 0), FSI__FINITE(fsi_rigid_link_desc, point),
        FSI__FINITE(fsi_rigid_link_desc, axis), FSI__FIELD(fsi_rigid_link_desc, q, FSI__REAL, -1e9, 1e9, 0),
        FSI__FIELD(fsi_rigid_link_desc, rate, FSI__REAL, -1e9, 1e9, 0),
        FSI__FIELD(fsi_rigid_link_desc, stiffness, FSI__REAL, 0, 1e30, 0),
        FSI__FIELD(fsi_rigid_link_desc, rest, FSI__REAL, -1e9, 1e9, 0),
        FSI__FIELD(fsi_rigid_link_desc, damping, FSI__REAL, 0, 1e30, 0)
    };
    static const fsi__field axis[] = {
        FSI__FIELD(fsi_rigid_link_desc, axis, FSI__VEC3, 1e-150, FSI__HUGE, FSI__ABOVE)
    };
    static const fsi__field limits[] = {
        FSI__FIELD(fsi_rigid_link_desc, lower, FSI__REAL, -1e9, 1e9, 0),
        FSI__FIELD(fsi_rigid_link_desc, upper, FSI__REAL, 0, 1e9, FSI__FROM_LAST)
    };
    char of[40];
    fsi__where at = fsi__where_of(fn, "link", l, of);

    /* its body */
    if (d->cookie != FSI__COOKIE('L', fsi_rigid_link_desc) || d->body.cookie != FSI__COOKIE('B', fsi_rigid_body_desc))
        return fsi__fail(w->context, FSI_ERROR_COOKIE, fn, l, 0,
            "link %d was not filled by fsi_rigid_default_link_desc of this version and precision", l);
    if (l == 0 ? d->parent != -1 : d->parent < 0 || d->parent >= l)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, l, d->parent, "link %d: parent %d is not %s", l, d->parent,
            l == 0 ? "-1: link 0 is the root" : "an earlier link");
    FSI__TRY(fsi__rg_check_body_desc(w, &d->body, fn, l));
    if (d->body.shape_count == 0 && !d->body.inertia_given)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, l, 0,
            "link %d: without shapes it must be given mass and inertia", l);

    /* its joint; in 2D only a PRISMATIC one must lie in the plane */
    if (l == 0) return FSI_OK;
    FSI__TRY(FSI__CHECK_TABLE(w->context, &at, d, rows));
    if (d->limited) FSI__TRY(FSI__CHECK_TABLE(w->context, &at, d, limits));
    if (d->joint == FSI_RIGID_PRISMATIC) at.dim = w->desc.dim;
    return d->joint == FSI_RIGID_WELD ? FSI_OK : FSI__CHECK_TABLE(w->context, &at, d, axis);
}

static fsi_status fsi__rg_check_tree_desc(const fsi_rigid *w, const fsi_rigid_tree_desc *d, const char *fn)
{
    static const fsi__field rows[] = { FSI__FIELD(fsi_rigid_tree_desc, link_count, FSI__INT, 1, 256, 0) };
    const fsi__where at = { fn, "desc.", -1, 3 };
    int l;
    FSI__TRY(fsi__check_filled(w->context, fn, d, FSI__COOKIE('T', fsi_rigid_tree_desc),
        "fsi_rigid_default_tree_desc"));
    FSI__TRY(FSI__CHECK_TABLE(w->context, &at, d, rows));
    if (!d->links) return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "desc.links is NULL");
    FSI__TRY(fsi__rg_check_motion(w, fn, -1, d->velocity, d->angular_velocity));
    for (l = 0; l < d->link_count; l++) FSI__TRY(fsi__rg_check_link(w, &d->links[l], l, fn));
    return FSI_OK;
}

/* Is the link fixed to a fixed root, by welds all the way? */
static int fsi__rg_grounded(const fsi_rigid_tree_desc *d, int l)
{
    while (l > 0 && d->links[l].joint == FSI_RIGID_WELD) l = d->links[l].parent;
    return l == 0 && d->fixed;
}

/* The joint of link l, from the poses that the links were added with. */
static void fsi__rg_make_joint(const fsi_rigid *w, fsi__jt_tree *t, const fsi_rigid_link_desc *d, int l)
{
    fsi__jt_joint *j = &t->link[l];
    fsi_vec3 axis = d->axis, point = d->point;
    if (w->desc.dim == 2 && d->joint == FSI_RIGID_REVOLUTE) axis = fsi_v3(0, 0, d->axis.z < 0 ? -1 : 1);
    if (w->desc.dim == 2) point.z = 0;
    fsi__jt_hang(j, &w->body[t->body[t->parent[l]]]->pose, &w->body[t->body[l]]->pose, point, axis);
    j->q0 = (double)d->q;
    j->stiffness = (double)d->stiffness;
    j->rest = (double)d->rest;
    j->damping = (double)d->damping;
    j->limited = d->limited;
    j->lower = (double)d->lower;
    j->upper = (double)d->upper;
}

static void fsi__rg_number_joints(const fsi_rigid *w, fsi__jt_tree *t, const fsi_rigid_tree_desc *d)
{
    int l, k = d->fixed ? 0 : (w->desc.dim == 3 ? 6 : 3);
    t->view.root = k;
    for (l = 0; l < d->link_count; l++) {
        const fsi_rigid_link_desc *link = &d->links[l];
        t->parent[l] = link->parent;
        t->joint[l] = (unsigned char)(l == 0 ? FSI_RIGID_WELD : link->joint);
        t->column[l] = l > 0 && link->joint != FSI_RIGID_WELD ? k++ : -1;
        if (t->column[l] < 0) continue;
        t->q[t->column[l]] = link->q;
        t->rate[t->column[l]] = link->rate;
    }
    fsi__jt_set_root_rates(t, d->velocity, d->angular_velocity);
}

static fsi__jt_tree *fsi__rg_new_tree(fsi_rigid *w, const fsi_rigid_tree_desc *d)
{
    fsi__jt_tree *t = fsi__jt_create(w->context, d->link_count, fsi__rg_tree_coordinates(d, w->desc.dim));
    if (t) t->fixed = d->fixed != 0;
    return t;
}

static fsi_status fsi__rg_put_links(fsi_rigid *w, fsi__jt_tree *t, const fsi_rigid_tree_desc *d, int tree, int *made,
    const char *fn)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int l;
    for (l = 0; l < d->link_count; l++) {
        fsi_rigid_body_desc b = d->links[l].body;
        const int place = fsi__rg_free_place(w, 0);
        b.kind = FSI_RIGID_DYNAMIC;
        b.velocity = b.angular_velocity = fsi_v3(0, 0, 0);
        b.asleep = 0;
        FSI__TRY(fsi__rg_put_body(w, &b, place, fn, l));
        *made = l + 1;
        t->body[l] = place;
        t->mass[l] = im->record[place].mass;
        memcpy(t->tensor + 9 * l, im->record[place].inertia, 9 * sizeof(double));
        im->link[place] = tree;
        im->solid[place].link = l;
        if (!fsi__rg_grounded(d, l)) continue;
        im->kind[place] = FSI_RIGID_STATIC;
        im->body[place]->mode = FSI_BODY_PRESCRIBED;
    }
    return FSI_OK;
}

/* Bodies, joints and poses of a tree; *made: links that have become bodies. */
static fsi_status fsi__rg_build_tree(fsi_rigid *w, fsi__jt_tree *t, const fsi_rigid_tree_desc *d, int tree, int *made,
    const char *fn)
{
    int l;
    fsi__rg_number_joints(w, t, d);
    FSI__TRY(fsi__rg_put_links(w, t, d, tree, made, fn));
    for (l = 1; l < d->link_count; l++) fsi__rg_make_joint(w, t, &d->links[l], l);
    fsi__rg_refresh_tree(w, t);
    for (l = 0; l < d->link_count; l++) FSI__TRY(fsi__rg_check_overlap(w, t->body[l], fn));
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_add_tree(fsi_rigid *w, const fsi_rigid_tree_desc *desc, int *tree)
{
    static const char fn[] = "fsi_rigid_add_tree";
    fsi__rg_impl *im;
    fsi__jt_tree *t;
    fsi_status status;
    int id = 0, made = 0;
    FSI__TRY(fsi__rg_check(w));
    FSI__TRY(fsi__rg_check_tree_desc(w, desc, fn));

    /* room */
    im = fsi__rg_of(w);
    while (id < w->tree_count && im->tree[id]) id++;
    FSI__TRY(FSI__CD_ROOM(w->context, im->tree, w->tree_count, im->tree_capacity, id + 1, fn));
    FSI__TRY(fsi__rg_reserve_bodies(w, w->count + desc->link_count, fn));
    t = fsi__rg_new_tree(w, desc);
    if (!t)
        return fsi__fail(w->context, FSI_ERROR_MEMORY, fn, -1, desc->link_count, "no memory for a tree of %d links",
            desc->link_count);

    /* all of it or nothing */
    im->tree[id] = t;
    status = fsi__rg_build_tree(w, t, desc, id, &made, fn);
    if (status != FSI_OK) {
        while (made-- > 0) fsi__rg_drop_body(w, t->body[made]);
        im->tree[id] = NULL;
        fsi__jt_destroy(w->context, t);
        return status;
    }
    if (id == w->tree_count) w->tree_count++;
    if (tree) *tree = id;
    return FSI_OK;
}

FSI_API const fsi_rigid_tree *fsi_rigid_tree_at(const fsi_rigid *w, int tree)
{
    const fsi__jt_tree *t = fsi__rg_tree_of(w, tree);
    return t ? &t->view : NULL;
}

static fsi_status fsi__rg_check_tree(const fsi_rigid *w, int tree, const char *fn)
{
    FSI__TRY(fsi__rg_check(w));
    if (fsi__rg_tree_of(w, tree)) return FSI_OK;
    return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, tree, tree, "there is no tree %d", tree);
}

FSI_API fsi_status fsi_rigid_remove_tree(fsi_rigid *w, int tree)
{
    static const char fn[] = "fsi_rigid_remove_tree";
    fsi__jt_tree *t;
    int l;
    FSI__TRY(fsi__rg_check_tree(w, tree, fn));
    t = fsi__rg_tree_of(w, tree);
    for (l = t->view.link_count - 1; l >= 0; l--) fsi__rg_drop_body(w, t->body[l]);
    fsi__rg_of(w)->tree[tree] = NULL;
    fsi__jt_destroy(w->context, t);
    while (w->tree_count > 0 && !fsi__rg_of(w)->tree[w->tree_count - 1]) w->tree_count--;
    return FSI_OK;
}

/* A joint with a coordinate. */
static fsi_status fsi__rg_check_joint(const fsi_rigid *w, int tree, int link, const char *fn)
{
    const fsi__jt_tree *t;
    FSI__TRY(fsi__rg_check_tree(w, tree, fn));
    t = fsi__rg_tree_of(w, tree);
    if (link < 0 || link >= t->view.link_count || t->column[link] < 0)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, link, link, "link %d of tree %d has no joint that moves",
            link, tree);
    return FSI_OK;
}

static fsi_status fsi__rg_check_value(const fsi_rigid *w, const char *fn, const char *name, double x)
{
    if (!fsi_is_finite(x)) return fsi__fail(w->context, FSI_ERROR_NAN, fn, -1, x, "%s is not finite", name);
    if (fabs(x) <= 1e9) return FSI_OK;
    return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, -1, x, "%s is %g, it must be within +-1e9", name, x);
}

FSI_API fsi_status fsi_rigid_set_joint(fsi_rigid *w, int tree, int link, fsi_real q, fsi_real rate)
{
    static const char fn[] = "fsi_rigid_set_joint";
    fsi__jt_tree *t;
    FSI__TRY(fsi__rg_check_joint(w, tree, link, fn));
    FSI__TRY(fsi__rg_check_value(w, fn, "q", (double)q));
    FSI__TRY(fsi__rg_check_value(w, fn, "rate", (double)rate));
    t = fsi__rg_tree_of(w, tree);
    fsi__rg_wake_tree(w, t);
    t->q[t->column[link]] = q;
    t->rate[t->column[link]] = rate;
    t->hold[t->column[link]] = 0;
    fsi__rg_refresh_tree(w, t);
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_set_joint_force(fsi_rigid *w, int tree, int link, fsi_real force)
{
    static const char fn[] = "fsi_rigid_set_joint_force";
    fsi__jt_tree *t;
    FSI__TRY(fsi__rg_check_joint(w, tree, link, fn));
    if (!fsi_is_finite((double)force))
        return fsi__fail(w->context, FSI_ERROR_NAN, fn, link, (double)force, "force is not finite");
    if (!(fabs((double)force) <= FSI__RG_STRONGEST))
        return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, link, (double)force, "force is %g, it must be within +-%g",
            (double)force, FSI__RG_STRONGEST);
    t = fsi__rg_tree_of(w, tree);
    fsi__rg_wake_tree(w, t);
    t->link[link].force = (double)force;
    return FSI_OK;
}

/* The track stays with the joint: a state that is loaded may follow it again. */
static void fsi__rg_set_script(fsi_rigid *w, fsi__jt_tree *t, int link, int script)
{
    t->link[link].script = script;
    t->scripted[t->column[link]] = (unsigned char)(script != 0);
    t->hold[t->column[link]] = 0;
    fsi__rg_wake_tree(w, t);
}

FSI_API fsi_status fsi_rigid_set_joint_target(fsi_rigid *w, int tree, int link, fsi_real q)
{
    static const char fn[] = "fsi_rigid_set_joint_target";
    fsi__jt_tree *t;
    FSI__TRY(fsi__rg_check_joint(w, tree, link, fn));
    FSI__TRY(fsi__rg_check_value(w, fn, "q", (double)q));
    t = fsi__rg_tree_of(w, tree);
    fsi__rg_set_script(w, t, link, FSI__JT_TARGET);
    t->link[link].target = (double)q;
    return FSI_OK;
}

static fsi_status fsi__rg_check_track(const fsi_rigid *w, const double *times, const fsi_real *values, int count,
    double period, const char *fn)
{
    const fsi_status odd = fsi_is_finite(period) ? FSI_ERROR_ARGUMENT : FSI_ERROR_NAN;
    int i;
    if (!times || !values || count < 1 || count > 1 << 24)
        return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, -1, count,
            "a track of %d keys is none, or its times or values are missing", count);
    if (odd == FSI_ERROR_NAN || period < 0) return fsi__fail(w->context, odd, fn, -1, period, "period is %g", period);
    for (i = 0; i < count; i++) {
        if (!fsi_is_finite(times[i]))
            return fsi__fail(w->context, FSI_ERROR_NAN, fn, i, times[i], "time %d is not finite", i);
        if (!(i == 0 || times[i] > times[i - 1]) || (period > 0 && !(times[i] >= 0 && times[i] <= period)))
            return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, i, times[i],
                "time %d, %g s, does not come after the one before, or lies outside the period", i, times[i]);
        FSI__TRY(fsi__rg_check_value(w, fn, "a value", (double)values[i]));
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_set_joint_track(fsi_rigid *w, int tree, int link, const double *times,
    const fsi_real *values, int count, double period)
{
    static const char fn[] = "fsi_rigid_set_joint_track";
    fsi__jt_track *own;
    FSI__TRY(fsi__rg_check_joint(w, tree, link, fn));
    FSI__TRY(fsi__rg_check_track(w, times, values, count, period, fn));
    own = &fsi__rg_tree_of(w, tree)->link[link].track;
    if (!fsi__jt_set_track(w->context, own, times, values, count, period))
        return fsi__fail(w->context, FSI_ERROR_MEMORY, fn, -1, count, "no memory for %d keys", count);
    fsi__rg_set_script(w, fsi__rg_tree_of(w, tree), link, FSI__JT_TRACK);
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_free_joint(fsi_rigid *w, int tree, int link)
{
    FSI__TRY(fsi__rg_check_joint(w, tree, link, "fsi_rigid_free_joint"));
    fsi__rg_set_script(w, fsi__rg_tree_of(w, tree), link, FSI__JT_FREE);
    return FSI_OK;
}

FSI_API int fsi_rigid_tree_jacobian(const fsi_rigid *w, int tree, int link, double *J)
{
    const fsi__jt_tree *t = fsi__rg_tree_now(w, tree);
    if (!t || link < 0 || link >= t->view.link_count || !J) return 0;
    memcpy(J, fsi__jt_jacobian(t, link), 6 * (size_t)t->view.coordinates * sizeof *J);
    return 1;
}

FSI_API int fsi_rigid_tree_point_jacobian(const fsi_rigid *w, int tree, int link, fsi_vec3 x, double *J)
{
    const fsi__jt_tree *t = fsi__rg_tree_now(w, tree);
    const double *own;
    fsi__d3 r;
    int c, n;
    if (!t || link < 0 || link >= t->view.link_count || !J) return 0;
    n = t->view.coordinates;
    own = fsi__jt_jacobian(t, link);
    r = fsi__d3_sub(fsi__d3_of(x), t->c[link]);
    for (c = 0; c < n; c++) { /* v + omega x r */
        fsi__d3 turn = fsi__d3_cross(fsi__d3_make(own[c], own[n + c], own[2 * n + c]), r);
        J[c] = own[3 * n + c] + turn.x;
        J[n + c] = own[4 * n + c] + turn.y;
        J[2 * n + c] = own[5 * n + c] + turn.z;
    }
    return 1;
}

FSI_API int fsi_rigid_tree_inertia(const fsi_rigid *w, int tree, double *M)
{
    fsi__jt_tree *t = fsi__rg_tree_now(w, tree);
    if (!t || !M) return 0;
    fsi__jt_mass(t);
    memcpy(M, t->M, (size_t)t->view.coordinates * (size_t)t->view.coordinates * sizeof *M);
    return 1;
}

FSI_API int fsi_rigid_tree_force(const fsi_rigid *w, int tree, double *f, double *K, double *D)
{
    fsi__jt_tree *t = fsi__rg_tree_now(w, tree);
    size_t n;
    int l;
    if (!t || !f) return 0;
    n = (size_t)t->view.coordinates;
    for (l = 0; l < t->view.link_count; l++) {
        const fsi__d3 weight = fsi__d3_of(w->desc.gravity);
        t->force[l] = fsi__d3_madd(fsi__d3_of(w->force[t->body[l]]), t->mass[l], weight);
        t->torque[l] = fsi__d3_of(w->torque[t->body[l]]);
    }
    fsi__jt_mass(t);
    fsi__jt_loads(t, t->q1, t->u);
    memcpy(f, t->f, n * sizeof *f);
    if (K) memcpy(K, t->K, n * sizeof *K);
    if (D) memcpy(D, t->D, n * sizeof *D);
    return 1;
}

/* ---- >>worlds: create, settings, destroy ------------------------------------------------------------------------- */

FSI_API fsi_rigid_desc fsi_rigid_default_desc(void)
{
    fsi_rigid_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('R', fsi_rigid_desc);
    d.dim = 3;
    d.gravity = fsi_v3(0, 0, (fsi_real)-9.81);
    d.substeps = 1;
    d.sweeps = 50;
    d.direct_work = 3000000;
    d.tolerance = (fsi_real)1e-6;
    d.warm_start = 1;
    d.friction = (fsi_real)0.3;
    d.restitution = (fsi_real)0.2;
    d.restitution_speed = (fsi_real)0.5;
    d.push = (fsi_real)0.2;
    d.sleep_speed = (fsi_real)0.02;
    d.sleep_time = (fsi_real)0.5;
    d.domain = fsi_box3_empty();
    d.domain_friction = d.domain_restitution = -1;
    return d;
}

static fsi_status fsi__rg_check_desc(fsi_context *context, const char *fn, const fsi_rigid_desc *d)
{
    /* Ranges of the fields. */
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_rigid_desc, dim, FSI__INT, 2, 3, 0), FSI__FIELD(fsi_rigid_desc, substeps, FSI__INT, 1, 1000, 0),
        FSI__FIELD(fsi_rigid_desc, sweeps, FSI__INT, 1, 1e6, 0),
        FSI__FIELD(fsi_rigid_desc, direct_work, FSI__REAL, 0, 1e15, 0),
        FSI__FIELD(fsi_rigid_desc, tolerance, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_rigid_desc, friction, FSI__REAL, 0, 100, 0),
        FSI__FIELD(fsi_rigid_desc, restitution, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_rigid_desc, restitution_speed, FSI__REAL, 0, 1e6, 0),
        FSI__FIELD(fsi_rigid_desc, contact_margin, FSI__REAL, 0, 1e6, 0),
        FSI__FIELD(fsi_rigid_desc, slop, FSI__REAL, 0, 1e6, 0), FSI__FIELD(fsi_rigid_desc, push, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_rigid_desc, sleep_speed, FSI__REAL, 0, 1e6, 0),
        FSI__FIELD(fsi_rigid_desc, sleep_time, FSI__REAL, 0, 1e6, 0),
        FSI__FIELD(fsi_rigid_desc, reserve_bodies, FSI__INT, 0, 1 << 27, 0),
        FSI__FIELD(fsi_rigid_desc, reserve_contacts, FSI__INT, 0, 1 << 27, 0),
        FSI__FIELD(fsi_rigid_desc, overlap, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_rigid_desc, domain_friction, FSI__REAL, 0, 100, FSI__OR_UNSET),
        FSI__FIELD(fsi_rigid_desc, domain_restitution, FSI__REAL, 0, 1, FSI__OR_UNSET),
        FSI__FIELD(fsi_rigid_desc, gravity, FSI__VEC3, 0, 1e6, 0)
    };
    const fsi__where at = { fn, "desc.", -1, d->dim };

    /* The table, and the origin, which may lie anywhere. */
    FSI__TRY(FSI__CHECK_TABLE(context, &at, d, rows));
    if (fsi_v3_is_finite(d->origin)) return FSI_OK;
    return fsi__fail(context, FSI_ERROR_NAN, fn, -1, 0, "desc.origin is not finite");
}

/* Walls of the domain: the first planes. */
static fsi_status fsi__rg_make_domain(fsi_rigid *w, const char *fn)
{
    const fsi_box3 *b = &w->desc.domain;
    double lo[3], hi[3], f = (double)w->desc.domain_friction, e = (double)w->desc.domain_restitution;
    int k;
    if (b->lo.x == FSI_REAL_MAX && b->hi.x == -FSI_REAL_MAX) return FSI_OK; /* fsi_box3_empty */
    fsi__d3_put(lo, fsi__d3_of(b->lo));
    fsi__d3_put(hi, fsi__d3_of(b->hi));
    for (k = 0; k < w->desc.dim; k++) {
        double n[3] = { 0, 0, 0 };
        if (!fsi_is_finite(lo[k]) || !fsi_is_finite(hi[k]))
            return fsi__fail(w->context, FSI_ERROR_NAN, fn, -1, 0, "desc.domain is not finite");
        if (!(lo[k] < hi[k])) return fsi__fail(w->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "desc.domain is not a box");
        n[k] = 1;
        FSI__TRY(fsi__rg_put_plane(w, fsi__d3_at(n), lo[k], f, e, NULL, fn));
        n[k] = -1;
        FSI__TRY(fsi__rg_put_plane(w, fsi__d3_at(n), -hi[k], f, e, NULL, fn));
    }
    fsi__rg_of(w)->walls = w->plane_count;
    return FSI_OK;
}

static fsi_status fsi__rg_reserve_contacts(fsi_rigid *w, int n, const char *fn)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    if (n <= 0) return FSI_OK;
    FSI__TRY(FSI__CD_ROOM(w->context, im->touch, 0, im->touch_capacity, n, fn));
    FSI__TRY(FSI__CD_ROOM(w->context, im->last, 0, im->last_capacity, n, fn));
    FSI__TRY(FSI__CD_ROOM(w->context, im->row, 0, im->row_capacity, n, fn));
    FSI__TRY(FSI__CD_ROOM(w->context, im->found.point, 0, im->found.point_capacity, n, fn));
    FSI__TRY(FSI__CD_ROOM(w->context, im->found.pair, 0, im->found.pair_capacity, n, fn));
    return FSI__CD_ROOM(w->context, im->contact, 0, im->contact_capacity, n, fn);
}

FSI_API fsi_status fsi_rigid_create(fsi_rigid **out, const fsi_rigid_desc *desc)
{
    static const char fn[] = "fsi_rigid_create";
    fsi_rigid *w;
    fsi__rg_impl *im;
    fsi_status status;
    if (out) *out = NULL;
    if (!out || !desc) return FSI_ERROR_ARGUMENT;
    /* its context cannot be trusted either */
    if (desc->cookie != FSI__COOKIE('R', fsi_rigid_desc) || !fsi__is_context(desc->context)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__rg_check_desc(desc->context, fn, desc));

    /* the world and its private part in one block */
    w = (fsi_rigid *)fsi__alloc(desc->context, 1, sizeof *w + sizeof *im);
    if (!w) return fsi__fail(desc->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for the world");
    im = (fsi__rg_impl *)(void *)(w + 1);
    im->own_context = fsi_default_context();
    w->cookie = FSI__COOKIE('W', fsi_rigid);
    w->context = desc->context ? desc->context : &im->own_context;
    w->desc = *desc;
    w->impl = im;
    im->origin = fsi__d3_of(desc->origin);

    /* its domain and reserves */
    status = fsi__rg_make_domain(w, fn);
    if (status == FSI_OK) status = fsi__rg_reserve_bodies(w, desc->reserve_bodies, fn);
    if (status == FSI_OK) status = fsi__rg_reserve_contacts(w, desc->reserve_contacts, fn);
    fsi__rg_publish(w);
    if (status != FSI_OK) fsi_rigid_destroy(w);
    else *out = w;
    return status;
}

FSI_API fsi_status fsi_rigid_set_desc(fsi_rigid *w, const fsi_rigid_desc *desc)
{
    static const char fn[] = "fsi_rigid_set_desc";
    static const fsi__fixed fixed[] = {
        FSI__FIXED(fsi_rigid_desc, context), FSI__FIXED(fsi_rigid_desc, dim), FSI__FIXED(fsi_rigid_desc, domain),
        FSI__FIXED(fsi_rigid_desc, origin)
    };
    int k;
    FSI__TRY(fsi__rg_check(w));
    FSI__TRY(fsi__check_filled(w->context, fn, desc, FSI__COOKIE('R', fsi_rigid_desc), "fsi_rigid_default_desc"));
    FSI__TRY(fsi__rg_check_desc(w->context, fn, desc));
    FSI__TRY(FSI__CHECK_FIXED(w->context, fn, desc, &w->desc, fixed));

    /* the domain's walls, and all bodies awake */
    w->desc = *desc;
    for (k = 0; k < fsi__rg_of(w)->walls; k++) {
        fsi__rg_of(w)->plane[k].friction = (double)desc->domain_friction;
        fsi__rg_of(w)->plane[k].restitution = (double)desc->domain_restitution;
    }
    fsi__rg_wake_all(w);
    return FSI_OK;
}

FSI_API void fsi_rigid_destroy(fsi_rigid *w)
{
    fsi__column columns[FSI__RG_COLUMNS];
    fsi__rg_impl *im;
    fsi_context *context;
    int k;
    if (fsi__rg_check(w) != FSI_OK) return;
    im = fsi__rg_of(w);
    context = w->context;
    for (k = 0; k < w->tree_count; k++) fsi__jt_destroy(context, im->tree[k]);
    for (k = 0; k < w->count; k++) if (im->kind[k] != FSI_RIGID_NONE) {
        fsi__cd_free_solid(w->context, &im->solid[k]);
        fsi__free(context, im->body[k], 1, sizeof *im->body[k]);
    }

    /* arrays and scratch */
    fsi__free_columns(context, columns, fsi__rg_columns(im, columns), w->capacity);
    fsi__free(context, im->plane, (size_t)im->plane_capacity, sizeof *im->plane);
    fsi__free(context, im->tree, (size_t)im->tree_capacity, sizeof *im->tree);
    fsi__free(context, im->contact, (size_t)im->contact_capacity, sizeof *im->contact);
    fsi__cd_free(context, &im->found);
    fsi__free(context, im->touch, (size_t)im->touch_capacity, sizeof *im->touch);
    fsi__free(context, im->last, (size_t)im->last_capacity, sizeof *im->last);
    fsi__free(context, im->row, (size_t)im->row_capacity, sizeof *im->row);
    fsi__ct_free(context, &im->direct);
    w->cookie = 0;
    fsi__free(w->desc.context, w, 1, sizeof *w + sizeof *im); /* not from the context that it may hold itself */
}

FSI_API const fsi_error *fsi_rigid_error(const fsi_rigid *w) { return fsi__error_of(w ? w->context : NULL); }

static fsi_box3 fsi__rg_shift_box(fsi_box3 box, fsi_vec3 offset)
{
    if (box.lo.x > box.hi.x) return box; /* none */
    box.lo = fsi_v3_add(box.lo, offset);
    box.hi = fsi_v3_add(box.hi, offset);
    return box;
}

/* Shifts all positions of a state. */
static void fsi__rg_shift_places(fsi_rigid *w, fsi_vec3 offset)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    int k;
    for (k = 0; k < w->count; k++) if (im->kind[k] != FSI_RIGID_NONE) {
        im->body[k]->pose.position = fsi_v3_add(im->body[k]->pose.position, offset);
        im->body[k]->end.position = fsi_v3_add(im->body[k]->end.position, offset);
        im->record[k].target.position = fsi_v3_add(im->record[k].target.position, offset);
    }
    for (k = 0; k < w->contact_count; k++) im->contact[k].point = fsi_v3_add(im->contact[k].point, offset);
}

FSI_API fsi_status fsi_rigid_shift_origin(fsi_rigid *w, fsi_vec3 offset)
{
    static const char fn[] = "fsi_rigid_shift_origin";
    fsi__rg_impl *im;
    int k;
    FSI__TRY(fsi__rg_check(w));
    FSI__TRY(fsi__rg_check_not_begun(w, fn));
    im = fsi__rg_of(w);
    if (!fsi_v3_is_finite(offset)) return fsi__fail(w->context, FSI_ERROR_NAN, fn, -1, 0, "the offset is not finite");
    if (w->desc.dim == 2) offset.z = 0;
    for (k = 0; k < w->count; k++) {
        if (!w->body[k] || fsi__col_within(fsi_v3_add(w->body[k]->pose.position, offset), 1e9)) continue;
        return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, k, 0, "body %d would be farther than 1e9 m from the origin",
            k);
    }
    if (!fsi__col_within(fsi_v3_add(w->desc.origin, offset), 1e30))
        return fsi__fail(w->context, FSI_ERROR_LIMIT, fn, -1, 0, "the first origin would lie too far off");

    /* bodies, domain, planes; the origin in double, as the sum of all offsets */
    fsi__rg_shift_places(w, offset);
    w->desc.domain = fsi__rg_shift_box(w->desc.domain, offset);
    for (k = 0; k < w->plane_count; k++) im->plane[k].offset += fsi__d3_dot(im->plane[k].n, fsi__d3_of(offset));
    im->origin = fsi__d3_add(im->origin, fsi__d3_of(offset));
    w->desc.origin = fsi__d3_real(im->origin);
    return FSI_OK;
}

/* ---- >>state implementation -------------------------------------------------------------------------------------- */

static void fsi__rg_state_body(fsi__stream *st, fsi_rigid *w, int id)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__rg_record *r = &im->record[id];
    fsi_body *b = im->body[id];
    fsi__bytes(st, &b->pose, sizeof b->pose);
    fsi__bytes(st, &b->velocity, sizeof b->velocity);
    fsi__bytes(st, &b->angular_velocity, sizeof b->angular_velocity);
    fsi__bytes(st, &im->asleep[id], 1);
    fsi__bytes(st, &im->force[id], sizeof im->force[id]);
    fsi__bytes(st, &im->torque[id], sizeof im->torque[id]);
    fsi__bytes(st, &r->group, sizeof r->group);
    fsi__bytes(st, &r->has_target, sizeof r->has_target);
    fsi__bytes(st, &r->still, sizeof r->still);
    if (r->has_target || st->mode == FSI__READ) fsi__bytes(st, &r->target, r->has_target ? sizeof r->target : 0);
    fsi__bytes(st, &r->once_force, sizeof r->once_force);
    fsi__bytes(st, &r->once_torque, sizeof r->once_torque);
    fsi__bytes(st, &r->seen_force, sizeof r->seen_force);
    fsi__bytes(st, &r->seen_torque, sizeof r->seen_torque);
}

/* Field by field: the struct has padding, and in files and hashes there is none. */
static void fsi__rg_state_contact(fsi__stream *st, fsi_rigid_contact *c)
{
    fsi__bytes(st, &c->a, sizeof c->a);
    fsi__bytes(st, &c->b, sizeof c->b);
    fsi__bytes(st, &c->point, sizeof c->point);
    fsi__bytes(st, &c->normal, sizeof c->normal);
    fsi__bytes(st, &c->depth, sizeof c->depth);
    fsi__bytes(st, &c->impulse, sizeof c->impulse);
    fsi__bytes(st, &c->key, sizeof c->key);
}

static void fsi__rg_state(fsi__stream *st, fsi_rigid *w)
{
    fsi__rg_impl *im = fsi__rg_of(w);
    fsi__jt_tree *t;
    int k;
    for (k = 0; (t = fsi__rg_next_tree(w, &k, 0)) != NULL;) fsi__jt_state_scripts(st, t);
    if (st->mode != FSI__HASH || fsi__rg_nonzero(w->desc.origin)) fsi__bytes(st, &im->origin, sizeof im->origin);
    fsi__bytes(st, &w->time, sizeof w->time);
    fsi__bytes(st, &im->saved_dt, sizeof im->saved_dt);
    for (k = 0; k < w->contact_count; k++) fsi__rg_state_contact(st, &im->contact[k]);
    for (k = 0; k < w->count; k++) if (im->kind[k] != FSI_RIGID_NONE) fsi__rg_state_body(st, w, k);
    for (k = 0; (t = fsi__rg_next_tree(w, &k, 0)) != NULL;) fsi__jt_state(st, t);
}

/* A hash of the scene, and the number of contacts and bodies. */
typedef struct fsi__rg_head { uint64_t scene; int64_t contacts, count; } fsi__rg_head;

static fsi__rg_head fsi__rg_make_head(const fsi_rigid *w)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    const fsi__jt_tree *t;
    fsi__rg_head head;
    uint64_t scene = fsi_hash(&w->desc.dim, sizeof w->desc.dim, 0);
    int k, l;

    /* bodies */
    for (k = 0; k < w->count; k++) {
        scene = fsi_hash(&im->kind[k], 1, scene);
        scene = fsi_hash(&im->record[k].mass, sizeof(double), scene);
        scene = fsi_hash(im->record[k].inertia, 9 * sizeof(double), scene);
        scene = fsi_hash(&im->solid[k].parts, sizeof(int), scene);
    }

    /* trees and planes */
    for (k = 0; (t = fsi__rg_next_tree(w, &k, 0)) != NULL;) for (l = 0; l < t->view.link_count; l++) {
        scene = fsi_hash(&t->body[l], sizeof(int), scene);
        scene = fsi_hash(&t->parent[l], sizeof(int), scene);
    }
    for (k = 0; k < w->plane_count; k++) {
        scene = fsi_hash(&im->plane[k].alive, sizeof(int), scene);
        scene = fsi_hash(&im->plane[k].n, sizeof(fsi__d3), scene);
        scene = fsi_hash(&im->plane[k].first, sizeof(double), scene);
    }
    memset(&head, 0, sizeof head);
    head.scene = scene;
    head.contacts = w->contact_count;
    head.count = w->count;
    return head;
}

static void fsi__rg_state_counted(fsi__stream *st, void *simulator)
{
    fsi_rigid *w = (fsi_rigid *)simulator;
    fsi__rg_head head = fsi__rg_make_head(w);
    fsi__bytes(st, &head, sizeof head);
    fsi__rg_state(st, w);
}

FSI_API fsi_status fsi_rigid_save(const fsi_rigid *w, void *buffer, size_t capacity, size_t *size)
{
    static const char fn[] = "fsi_rigid_save";
    void *world = (void *)(uintptr_t)w; /* written streams read it only */
    FSI__TRY(fsi__rg_check(w));
    FSI__TRY(fsi__rg_check_not_begun(w, fn));
    return fsi__save(w->context, w->cookie, fsi__rg_state_counted, world, buffer, capacity, size, fn);
}

/* Refuses a number of a state that no step gives or can start from. */
static fsi_status fsi__rg_bad_state(const fsi_rigid *w, int index, const char *what)
{
    return fsi__fail(w->context, FSI_ERROR_FORMAT, "fsi_rigid_load", index, 0, what, index);
}

static int fsi__rg_number_ok(double x, double lo, double hi) { return x >= lo && x <= hi; }

/* Scripts of a state may follow only tracks that this world has. */
static fsi_status fsi__rg_check_scripts(const fsi_rigid *w, fsi__stream *st)
{
    const fsi__jt_tree *t;
    int k, l;
    for (k = 0; (t = fsi__rg_next_tree(w, &k, 0)) != NULL;) for (l = 0; l < t->view.link_count; l++) {
        int script = 0, track;
        fsi__bytes(st, &script, sizeof script);
        track = script == FSI__JT_TRACK;
        if (script >= 0 && script <= FSI__JT_TRACK && (script == 0 || t->column[l] >= 0)
            && !(track && t->link[l].track.count == 0)) continue;
        return fsi__fail(w->context, FSI_ERROR_FORMAT, "fsi_rigid_load", l, script,
            "the state has link %d of tree %d follow a track, which this world does not have", l, k - 1);
    }
    return FSI_OK;
}

static int fsi__rg_contact_ok(const fsi_rigid_contact *c)
{
    const double length = fsi__d3_norm(fsi__d3_of(c->normal));
    return fsi__col_within(c->point, 2e9) && fsi__rg_number_ok(length, 1 - 1e-3, 1 + 1e-3)
        && fsi__rg_number_ok((double)c->depth, -2e9, 2e9) && fsi__col_within(c->impulse, FSI__RG_STRONGEST);
}

static int fsi__rg_is_partner(const fsi_rigid *w, int b) /* a body or a plane */
{
    return b >= 0 ? fsi__rg_is_body(w, b) : b >= -w->plane_count && fsi__rg_of(w)->plane[-1 - b].alive;
}

/* Contacts name bodies and planes of this world; they are sorted, for fsi__rg_find_last. */
static fsi_status fsi__rg_check_contacts(const fsi_rigid *w, int n, fsi__stream *st)
{
    fsi_rigid_contact c;
    fsi__rg_touch before, now;
    int k;
    memset(&c, 0, sizeof c);
    memset(&before, 0, sizeof before);
    memset(&now, 0, sizeof now);
    for (k = 0; k < n; k++, before = now) {
        fsi__rg_state_contact(st, &c);
        if (!st->ok || !fsi__rg_is_body(w, c.a) || c.a <= c.b || !fsi__rg_is_partner(w, c.b))
            return fsi__rg_bad_state(w, k,
                "contact %d of the state is between bodies or planes that this world does not have");
        if (!fsi__rg_contact_ok(&c)) return fsi__rg_bad_state(w, k, "contact %d of the state is not possible");
        now.a = c.a;
        now.b = c.b;
        now.key = c.key;
        if (k > 0 && fsi__rg_touch_before(&now, &before))
            return fsi__rg_bad_state(w, k, "contact %d of the state is not in order");
    }
    return FSI_OK;
}

static int fsi__rg_pose_ok(fsi_pose p, int dim)
{
    const fsi_quat q = p.orientation;
    const double n = sqrt((double)q.x * (double)q.x + (double)q.y * (double)q.y + (double)q.z * (double)q.z
        + (double)q.w * (double)q.w);
    return fsi__col_within(p.position, 1e9) && fabs(n - 1) <= 1e-3
        && (dim == 3 || (p.position.z == 0 && q.x == 0 && q.y == 0));
}

/* Bounds of force [N] and moment [N m] on a link in a state: 1e6 m/s^2 or rad/s^2 of the whole tree, as a light link
   may carry all others, and as forces between links grow with the square of their rates. */
static void fsi__rg_tree_bounds(const fsi_rigid *w, const fsi__jt_tree *t, double *force, double *moment)
{
    double mass = 0, reach = fsi__jt_size(t);
    int l;
    for (l = 0; l < t->view.link_count; l++) {
        mass += t->mass[l];
        reach += fsi__rg_of(w)->solid[t->body[l]].reach;
    }
    *force = fmin(1e6 * mass, FSI__RG_STRONGEST);
    *moment = fmin(1e6 * mass * (reach > 0 ? reach * reach : 1), FSI__RG_STRONGEST);
}

/* Forces and torques of a state: finite, in 2D in the plane, and such that a body stays within the limits of speed for
   a millisecond. */
static int fsi__rg_forces_ok(const fsi_rigid *w, int id, const fsi_vec3 *force, const fsi_vec3 *torque)
{
    const fsi__rg_record *r = &fsi__rg_of(w)->record[id];
    double most = FSI__RG_STRONGEST, turn = FSI__RG_STRONGEST;
    if (w->link[id] >= 0) fsi__rg_tree_bounds(w, fsi__rg_of(w)->tree[w->link[id]], &most, &turn);
    else if (w->kind[id] == FSI_RIGID_DYNAMIC) {
        most = 1e3 * FSI__RG_FASTEST * r->mass;
        turn = 1e3 * FSI__RG_FASTEST / fsi__rg_turned_by(r);
    }
    return fsi__col_within(*force, fmin(most, FSI__RG_STRONGEST))
        && fsi__col_within(*torque, fmin(turn, FSI__RG_STRONGEST))
        && (w->desc.dim == 3 || (force->z == 0 && torque->x == 0 && torque->y == 0));
}

/* Pose and velocities. */
static fsi_status fsi__rg_check_saved_motion(const fsi_rigid *w, int id, fsi_vec3 offset, fsi__stream *st)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    const int dim = w->desc.dim;
    fsi_pose pose;
    fsi_vec3 v[2];
    memset(&pose, 0, sizeof pose);
    memset(v, 0, sizeof v);
    fsi__bytes(st, &pose, sizeof pose);
    if (!fsi__rg_pose_ok(pose, dim) || !fsi__col_within(fsi_v3_add(pose.position, offset), 1e9))
        return fsi__rg_bad_state(w, id, "the pose of body %d in the state is not possible");
    if (im->link[id] >= 0) fsi__jt_note_pose(im->tree[im->link[id]], im->solid[id].link, pose);
    fsi__bytes(st, v, sizeof v);
    if (!fsi__col_within(v[0], FSI__RG_FASTEST) || !fsi__col_within(v[1], FSI__RG_FASTEST)
        || (dim == 2 && (v[0].z != 0 || v[1].x != 0 || v[1].y != 0)))
        return fsi__rg_bad_state(w, id, "the velocity of body %d in the state is not possible");
    return FSI_OK;
}

/* Sleep, external forces, target. */
static fsi_status fsi__rg_check_saved_rest(const fsi_rigid *w, int id, fsi__stream *st)
{
    const int kind = w->kind[id];
    fsi_pose target = w->body[id]->pose;
    fsi_vec3 f[2];
    unsigned char asleep = 0;
    int group = -1, has_target = -1;
    double still = -1;
    memset(f, 0, sizeof f);
    fsi__bytes(st, &asleep, 1);
    if (asleep > 1 || (asleep && kind != FSI_RIGID_DYNAMIC))
        return fsi__rg_bad_state(w, id, "body %d cannot sleep as the state has it");
    fsi__bytes(st, f, sizeof f);
    if (!fsi__rg_forces_ok(w, id, &f[0], &f[1]))
        return fsi__rg_bad_state(w, id, "the force or torque of body %d in the state is not possible");

    /* the group is the id of a body */
    fsi__bytes(st, &group, sizeof group);
    fsi__bytes(st, &has_target, sizeof has_target);
    fsi__bytes(st, &still, sizeof still);
    if (group < 0 || group >= w->count || has_target < 0 || has_target > 1
        || (has_target && kind != FSI_RIGID_KINEMATIC) || !fsi__rg_number_ok(still, 0, 1e30))
        return fsi__rg_bad_state(w, id, "the sleep of body %d, or its target, is not possible in the state");
    if (has_target) fsi__bytes(st, &target, sizeof target);
    if (has_target && !fsi__rg_pose_ok(target, w->desc.dim))
        return fsi__rg_bad_state(w, id, "the target of body %d in the state is not possible");
    return FSI_OK;
}

/* Checks what fsi__rg_state_body would read. offset: by which the state will be shifted. */
static fsi_status fsi__rg_check_saved_body(const fsi_rigid *w, int id, fsi_vec3 offset, fsi__stream *st)
{
    fsi_vec3 g[4];
    memset(g, 0, sizeof g);
    FSI__TRY(fsi__rg_check_saved_motion(w, id, offset, st));
    FSI__TRY(fsi__rg_check_saved_rest(w, id, st));
    fsi__bytes(st, g, sizeof g);
    if (!fsi__rg_forces_ok(w, id, &g[0], &g[1]) || !fsi__rg_forces_ok(w, id, &g[2], &g[3]))
        return fsi__rg_bad_state(w, id, "a force on body %d in the state is not possible");
    return FSI_OK;
}

/* Checks what fsi__rg_state_tree would read. */
static fsi_status fsi__rg_check_saved_tree(const fsi_rigid *w, int tree, fsi__stream *st)
{
    fsi__jt_tree *t = fsi__rg_of(w)->tree[tree];
    const int n = t->view.coordinates;
    double force, moment;
    int k;
    fsi__rg_tree_bounds(w, t, &force, &moment);

    /* values, rates, joint forces */
    for (k = 0; k < 3 * n; k++) {
        const double most = k < 2 * n ? FSI__RG_FASTEST : (double)FSI_REAL_MAX;
        fsi_real x = 0;
        fsi__bytes(st, &x, sizeof x);
        if (!fsi__rg_number_ok((double)x, -most, most))
            return fsi__rg_bad_state(w, tree, "a joint of tree %d in the state is not possible");
        if (k < n) t->q1[k] = (double)x;
    }
    if (!fsi__jt_agrees(t))
        return fsi__rg_bad_state(w, tree, "links of tree %d in the state are not where their joints put them");

    /* impulses of limits */
    for (k = 0; k < n; k++) {
        double x = 0;
        fsi__bytes(st, &x, sizeof x);
        if (!fsi__rg_number_ok(x, -FSI__RG_STRONGEST, FSI__RG_STRONGEST))
            return fsi__rg_bad_state(w, tree, "an impulse of a limit of tree %d in the state is not possible");
    }

    /* target and force of joints */
    for (k = 0; k < t->view.link_count; k++) {
        const double most = t->joint[k] == FSI_RIGID_PRISMATIC ? force : moment;
        double x[2] = { 0, 0 };
        fsi__bytes(st, x, sizeof x);
        if (!fsi__rg_number_ok(x[0], -FSI__RG_FASTEST, FSI__RG_FASTEST) || !fsi__rg_number_ok(x[1], -most, most))
            return fsi__rg_bad_state(w, tree, "the target or force of a joint of tree %d in the state is not possible");
    }
    return FSI_OK;
}

/* From a state's first origin to the world's. In 2D without z. */
static fsi_vec3 fsi__rg_from_origin(const fsi_rigid *w, fsi__d3 origin)
{
    fsi_vec3 offset = fsi__d3_real(fsi__d3_sub(fsi__rg_of(w)->origin, origin));
    if (w->desc.dim == 2) offset.z = 0;
    return offset;
}

/* Checks all of a state before any of it is loaded. `st` is behind the head. */
static fsi_status fsi__rg_check_saved(const fsi_rigid *w, int contacts, fsi__stream st)
{
    const fsi__rg_impl *im = fsi__rg_of(w);
    double time[2] = { -1, -1 };
    fsi__d3 origin = fsi__d3_zero();
    int k;
    FSI__TRY(fsi__rg_check_scripts(w, &st));
    fsi__bytes(&st, &origin, sizeof origin);
    fsi__bytes(&st, time, sizeof time);
    if (!(fsi__d3_norm(origin) <= 1e30))
        return fsi__rg_bad_state(w, -1, "the origin of the state is not possible (%d)");
    if (!fsi__rg_number_ok(time[0], 0, 1e30) || !fsi__rg_number_ok(time[1], 0, 1000))
        return fsi__rg_bad_state(w, -1, "the time or the step of the state is not possible (%d)");
    FSI__TRY(fsi__rg_check_contacts(w, contacts, &st));
    for (k = 0; k < w->count; k++)
        if (im->kind[k] != FSI_RIGID_NONE)
            FSI__TRY(fsi__rg_check_saved_body(w, k, fsi__rg_from_origin(w, origin), &st));
    for (k = 0; k < w->tree_count; k++) if (im->tree[k]) FSI__TRY(fsi__rg_check_saved_tree(w, k, &st));
    if (!st.ok || st.used != st.capacity)
        return fsi__rg_bad_state(w, -1, "the state ends before or after what it announces (%d)");
    return FSI_OK;
}

/* The head of a state: does it belong to a world made alike? */
static fsi_status fsi__rg_check_head(const fsi_rigid *w, fsi__stream *st, int *contacts, const char *fn)
{
    const fsi__rg_head own = fsi__rg_make_head(w);
    fsi__rg_head head;
    memset(&head, 0, sizeof head);
    fsi__bytes(st, &head, sizeof head);
    if (!st->ok || head.count != own.count)
        return fsi__fail(w->context, FSI_ERROR_FORMAT, fn, -1, (double)head.count,
            "the state holds %.0f bodies' places, the world has %d", (double)head.count, w->count);
    if (head.scene != own.scene)
        return fsi__fail(w->context, FSI_ERROR_FORMAT, fn, -1, 0,
            "the state belongs to a world with other bodies, trees or planes");
    if (head.contacts < 0 || head.contacts > 1 << 28)
        return fsi__fail(w->context, FSI_ERROR_FORMAT, fn, -1, (double)head.contacts,
            "the state announces %.0f contacts", (double)head.contacts);
    *contacts = (int)head.contacts;
    return FSI_OK;
}

FSI_API fsi_status fsi_rigid_load(fsi_rigid *w, const void *buffer, size_t size)
{
    static const char fn[] = "fsi_rigid_load";
    fsi__rg_impl *im;
    fsi__stream st, again;
    fsi__jt_tree *t;
    fsi__d3 origin, saved;
    fsi_vec3 offset;
    int k, contacts = 0;
    FSI__TRY(fsi__rg_check(w));
    FSI__TRY(fsi__load_begin(w->context, w->cookie, buffer, size, &st, fn));
    FSI__TRY(fsi__rg_check_head(w, &st, &contacts, fn));
    FSI__TRY(fsi__rg_check_saved(w, contacts, st));

    /* read twice: the links' poses are those that were saved, not those of coordinates rounded to fsi_real */
    im = fsi__rg_of(w);
    FSI__TRY(FSI__CD_ROOM(w->context, im->contact, w->contact_count, im->contact_capacity, contacts, fn));
    fsi__rg_publish(w);
    w->contact_count = contacts;
    origin = im->origin;
    again = st;
    fsi__rg_state(&st, w);
    for (k = 0; (t = fsi__rg_next_tree(w, &k, 0)) != NULL;) fsi__rg_refresh_tree(w, t);
    fsi__rg_state(&again, w);

    /* shifted to this world's origin; no step is begun */
    saved = im->origin;
    im->origin = origin;
    offset = fsi__rg_from_origin(w, saved);
    if (fsi__rg_nonzero(offset)) fsi__rg_shift_places(w, offset);
    for (k = 0; k < w->count; k++) if (im->body[k]) {
        im->body[k]->end = im->body[k]->pose;
        fsi__rg_forget_liquid(&im->record[k]);
    }
    im->begun = 0;
    im->looking = 0;
    return FSI_OK;
}

FSI_API uint64_t fsi_rigid_hash(const fsi_rigid *w)
{
    return fsi__rg_check(w) == FSI_OK ? fsi__state_hash(fsi__rg_state_counted, (void *)(uintptr_t)w) : 0;
}

FSI__COLD_END

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
