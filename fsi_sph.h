/* fsi_sph.h - liquid as particles: semi-implicit SPH (SISSM) against triangle meshes with semi-analytical boundaries.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_sph.h"
         #include "fsi_sph.h"

   A CUBE OF WATER FALLS APART
      fsi_context ctx = fsi_default_context();      // hooks for memory, threads, messages; and what went wrong
      fsi_sph_desc d = fsi_sph_default_desc();      // physical defaults, SI units
      fsi_sph *water;
      fsi_box3 block;
      int step;
      d.context = &ctx;
      d.spacing = 0.05f;                            // 5 cm between particles
      d.domain.lo = fsi_v3(0, 0, 0);                // a tank of 3 x 1 x 2 m; or add meshes, below
      d.domain.hi = fsi_v3(3, 1, 2);
      if (fsi_sph_create(&water, &d) != FSI_OK) { puts(ctx.error.message); return 1; }
      block.lo = fsi_v3(0, 0, 0);
      block.hi = fsi_v3(1, 1, 1);
      fsi_sph_fill_box(water, block, fsi_v3(0, 0, 0), NULL);
      for (step = 0; step < 60; step++) {
          if (fsi_sph_step(water, (fsi_real)(1.0 / 60)) != FSI_OK) { puts(ctx.error.message); break; }
          printf("%g s: fastest %g m/s\n", water->time, water->stats.max_speed);
      }                                             // water->position[0 .. water->count-1] is yours to draw
      fsi_sph_destroy(water);

   FILL AND ASK
      fsi_sph_fill_box, _fill_sphere, _fill_mesh        lattices; what is outside, in obstacles or in liquid is left out
      fsi_sph_velocity_at, _pressure_at, _fraction_at   of the liquid at a point

   WALLS ARE TRIANGLE MESHES
      fsi_mesh_desc m = fsi_mesh_default_desc();    // fsi_mesh.h: weld, check, repair
      m.vertices = v; m.vertex_count = nv; m.elements = triangles; m.element_count = nt;
      if (fsi_mesh_create(&mesh, &m) != FSI_OK) ...; // says which triangle is wrong
      fsi_sph_add_mesh(water, mesh, NULL);
      Closed solids, containers (liquid inside), open walls and two-sided sheets; in 2D, segments. They may move,
      deform, or be fixed to rigid bodies (fsi_body) whose motion is given, or that the liquid moves.

   TAPS AND DRAINS
      fsi_emitter_desc tap = fsi_emitter_default_desc();
      tap.center = fsi_v3(0.5f, 0.5f, 1.8f); tap.direction = fsi_v3(0, 0, -1); tap.radius = 0.2f; tap.speed = 2;
      fsi_sph_add_emitter(water, &tap, NULL);       // pi 0.2^2 2 m^3/s; also box, and meshes that are filled
      fsi_sph_add_sink(water, &drain, NULL);        // takes out what is inside at the end of a step

   WHAT IT DOES
      One liquid, incompressible up to desc.compressibility, free surface, 2D and 3D. A step minimises one energy:
      inertia, compression, contact (Liu et al., "A Semi-Analytical Energy Model for Particle-Based Fluid Simulation
      Involving Complex Moving Boundaries"; docs/sph.md lists the corrections). Steps as large as one particle spacing
      of motion stay stable; no particle that starts outside a solid ends inside it, unless solids leave it no room
      (stats.pinched), none leaves the domain. Viscosity in Pa s is implicit, with no-slip walls (after Weiler et
      al., "A Physically Consistent Implicit Viscosity Solver for SPH Fluids"). Surface tension in N/m and contact
      angles. Numbers to choose: spacing, depth; all else has a default that works.
   WHAT IT DOES NOT DO (yet)
      Several liquids.

   MACROS: those of fsi.h, and FSI_SPH_PARTS of fsi_sph_walls.h.
   STACK: up to 64 kB in the caller's thread and in each of the context's; give fibers and small threads that much.
   UNITS: SI. In 2D masses, forces and energies are per metre of depth.
   PRECISION: state in fsi_real; pair arithmetic in float on exact fixed-point differences, energies and sums in double,
      boundary integrals in double. Recommended: double (the default); float saves memory, not time.
   COST: about 0.2 us for a particle and sweep, 8 to 25 sweeps a substep (twice that with coupled bodies), 1.4 kB a
      particle; see docs/sph.md.
   FIND IN HERE (search for >>), behind the API
      >>work space  >>contacts  >>pair sums  >>moving obstacles  >>faces within reach  >>placement
      >>walls of one particle  >>the solve  >>surface tension  >>after the solve  >>viscosity
      >>emitters and sinks at work  >>markers  >>substep  >>step; and the functions that you call:
      >>making and changing  >>emitters and sinks  >>particles  >>obstacles  >>origin and copies  >>questions  >>state
      What stands by itself: fsi_particles.h (the table of particles, neighbours), fsi_obstacle.h (walls that move),
      fsi_source.h (taps and drains), fsi_sph_walls.h, fsi_sph_bodies.h, fsi_sph_tension.h, fsi_sph_viscosity.h
*/
#ifndef FSI_SPH_H
#define FSI_SPH_H

#include "fsi_obstacle.h"
#include "fsi_source.h"
#include "fsi_sph_bodies.h"
#include "fsi_sph_tension.h"

/* How velocities follow from the solve. POSITIONS: (x1 - x0)/dt. FORCES: v* plus
   dt/m times the pairwise antisymmetric forces at the last iterate: internal impulses cancel to rounding, but what the
   iteration left over is amplified by the stiffness. */
typedef enum fsi_sph_velocity { FSI_SPH_VELOCITY_POSITIONS, FSI_SPH_VELOCITY_FORCES } fsi_sph_velocity;

/* How to make a simulator. Start from fsi_sph_default_desc(). */
typedef struct fsi_sph_desc {
    uint32_t cookie;
    fsi_context *context;    /* default NULL: malloc, serial or OpenMP, no clock */
    int dim;                 /* 3 (default) or 2 (z = 0, masses per metre of depth) */
    fsi_real spacing;        /* dx, rest distance of particles [m]; default 0.02; particle volume is dx^dim */
    fsi_real support;        /* H / dx, 1.8 to 3; default 2 */
    fsi_real density;        /* rho0 [kg/m^3]; default 1000 */
    fsi_real viscosity;      /* dynamic viscosity [Pa s], implicit, no-slip at walls; where it is set, xsph is not
                                applied but for what surface tension takes; default 0: none but xsph, slippery walls */
    fsi_vec3 gravity;        /* [m/s^2]; default (0, 0, -9.81) */
    fsi_real depth;          /* greatest depth expected [m]; sets the stiffness; default 1: too much for drops, where it
                                costs substeps under surface tension and digits without */
    fsi_real compressibility;/* compression at that depth; default 0.01 */
    fsi_real stiffness;      /* mu, bulk modulus [Pa]; default 0: (density |g| depth + surface_tension / dx) /
                                (compressibility gk^2); without gravity the first part stands for 9.81 m/s^2, and is
                                left out under surface tension */
    int min_iters, max_iters;/* sweeps a substep, and at most as many iterations of viscosity; default 8, 200 */
    fsi_real tolerance;      /* sweeps end when the last one moves the particles by less than this fraction of the whole
                                displacement by pressure and walls (plus 1e-4 of their path), on average, and the rate
                                of convergence says that less than ten times that is missing; or when it moves them no
                                more than rounding would; default 5e-4; 0: always max_iters sweeps, for measurements */
    fsi_real body_tolerance; /* and when the unbalanced fraction of forces on coupled bodies is below; default 0.05 */
    int accelerate;          /* Nesterov with restart; default 1 */
    int warm_start;          /* start from the last step's correction; default 1 */
    int full_diagonal;       /* count every pair in the diagonal, not only those under pressure; default 0 */
    fsi_sph_velocity velocity_update; /* default POSITIONS */
    fsi_real cfl;            /* no particle moves farther than cfl * dx in a substep; default 0.3 */
    int max_substeps;        /* of one call; 1: no substepping; default 50 */
    int budget;              /* sweeps one call may spend, and as many iterations of viscosity, divided among as many
                                substeps as then have min_iters each; 0: no limit; a solve that it ends early sets
                                stats.degraded; default 0 */
    fsi_sph_boundary boundary; /* default EXACT */
    int wall_calibrate;      /* scale the integral so that the first layer rests at dx/2; default 1 */
    int always_reevaluate;   /* wall integrals in every sweep, no first-order updates; default 0 (slow, to verify) */
    fsi_real contact_thickness; /* dhat / dx; default 0.5 */
    fsi_real contact_stiffness; /* kappa0 / mu; default 1 */
    int contact_first;       /* lowest power n0 of the contact potential: 2 (C1; default), 1 (the paper's: may cycle) */
    int contact_order, contact_max_order; /* N at the start of a step and its bound; default 3, 24 */
    fsi_real xsph;           /* velocity smoothing 0 to 0.5; default 0.05; surface tension takes more:
                                2 dt/sqrt(rho0 dx^3/sigma) */
    fsi_real surface_tension;/* sigma [N/m] (water: 0.0728), 0 to 1e6; default 0: none, at no cost; substeps are then as
                                short as fsi_sph_suggest_dt says, if max_substeps allows */
    fsi_box3 domain;         /* solid walls around the liquid; default empty: none */
    fsi_vec3 origin;         /* the world's first origin now: fsi_sph_shift_origin moves it and the domain; default 0 */
    fsi_real domain_friction, domain_contact_angle; /* of these walls, as an obstacle's; default 0, 180 degrees */
    int domain_no_slip;      /* default 1 */
    int reserve;             /* particles to make room for; default 0 */
    int max_particles;       /* budget of the whole simulator; default 0: no limit */
    int attribute_count;     /* numbers of your own that each particle carries, 0 to 64; default 0 */
    int markers;             /* 1: each step fills `marker` and `aeration`; default 0 */
    fsi_real trapped_air_min, trapped_air_max; /* [m/s], where air begins to be trapped and where it is all the water
                                                  can take; default 0.2, 1: the range seen where a jet plunges into a
                                                  pool */
    fsi_real wave_crest_min, wave_crest_max;   /* no unit, the same for the curvature of crests; default 0.25, 1 */
    fsi_real spray_energy_min, spray_energy_max; /* v^2/2 [J/kg] where foam begins, and is most; default 0.5, 5 */
} fsi_sph_desc;

/* Kinds of particles for drawing. */
enum { FSI_SPH_LIQUID, FSI_SPH_SPRAY, FSI_SPH_FOAM, FSI_SPH_BUBBLE };

/* What the last successful step did. Sums over its substeps unless said otherwise. */
typedef struct fsi_sph_stats {
    int particles, substeps, iterations, restarts, halvings, rebuilds, reevaluations;
    int warm_rejected;            /* substeps that started cold although warm_start is set */
                                  /* one warning a step names the next three, crowded and refused, if any */
    int degraded;                 /* 1: the budget or max_iters ended a solve early: such steps stay stable, but the
                                     liquid is softer and its velocities are smoothed, as by xsph 0.5; or max_substeps
                                     left substeps that are too long for the stiffness (mu dt^2 > 500 rho0 dx^2: a pool
                                     would boil) or for surface tension: then these are lowered to what the substeps can
                                     bear, and velocities are smoothed */
    int placed, pinched;          /* particles moved back out of a solid, which gives them no velocity where it is more
                                     than their path; particles without a free position within H, or too deep in a solid
                                     that was put over them: they stay until the solids separate (but never outside the
                                     domain), and are counted in each substep, the deep ones at the end */
    int wall_particles;           /* in groups of eight of which one is within reach of a mesh, last substep */
    int crowded;                  /* particles with more than FSI_SPH_PARTS obstacles within H: the forces of more
                                     obstacles are booked on the last of them, last substep */
    size_t pairs;                 /* neighbours, last substep */
    double mean_compression;      /* mean of max(lambda - 1, 0), over particles and substeps */
    double max_compression;       /* largest lambda - 1, last substep */
    double residual;              /* last sweep's displacement over the whole correction, means; last substep */
    double body_residual;         /* unbalanced fraction of the force on a coupled body, the largest; last substep */
    int viscosity_iterations;     /* of conjugate gradients */
    double viscosity_residual;    /* over the change of velocity by viscosity; last substep */
    double max_speed;             /* [m/s], at the end */
    double cfl;                   /* max_speed * substep / dx */
    double momentum[3];           /* [kg m/s], at the end */
    double momentum_defect;       /* |change of momentum that is neither gravity, external force nor wall| / sum m|v|,
                                     largest substep, before it was taken out */
    double wall_impulse[3];       /* given to the liquid by obstacles, bodies and domain [N s] */
    double wall_speed;            /* of the fastest point of an obstacle in the liquid's reach [m/s] */
    int refits;                   /* obstacles moved, each once a substep */
    double external_impulse[3];   /* by gravity and by `force` [N s] */
    double source_impulse[3];     /* by emitters, with the particles they emit and by moving them, less what left
                                     through sinks [N s]. The momentum has changed by the sum of these three, and by the
                                     part of momentum_defect that could not be taken out */
    int emitted, removed;         /* particles that came from emitters and left through sinks */
    int blocked, refused;         /* sites of emitters left empty: a particle was nearer than 0.6 dx; a budget ended */
    double kinetic_energy, potential_energy; /* [J]; potential: -m g.x, zero at the origin */
    double energy_start, energy_end; /* objective of the first substep's solve before and after, in units of
                                        m H^2/dt^2 */
    /* by the clock hook */
    double seconds_neighbors, seconds_motion, seconds_boundary, seconds_density, seconds_gradient, seconds_update,
        seconds_viscosity, seconds_other;
    size_t bytes;                 /* allocated through its context */
    long long allocs;             /* allocations of the context so far */
} fsi_sph_stats;

/* A liquid. Read everything; write only what is marked. */
typedef struct fsi_sph {
    uint32_t cookie;
    fsi_context *context;      /* never NULL: the desc's, or one of its own */
    fsi_sph_desc desc;         /* as given, or set since */
    int count, capacity;
    fsi_vec3 *position;        /* count, creation order [m]; may be written between steps (teleport) */
    fsi_vec3 *velocity;        /* count [m/s]; may be written between steps */
    fsi_vec3 *force;           /* count, external force on each particle [N]; yours to write, kept from step to step */
    const fsi_real *pressure;  /* count [Pa] */
    const fsi_real *density_ratio; /* count, lambda = rho/rho0 */
    const uint32_t *id;        /* count, never used twice, growing along the array */
    uint32_t *filter;          /* count, bits compared with masks of obstacles; default 0xffffffff; yours to write */
    fsi_real *attribute;       /* count * desc.attribute_count, 0 unless an emitter says otherwise; yours to write, any
                                  value; NULL when there are none */
    const unsigned char *marker; /* count, FSI_SPH_LIQUID, SPRAY, FOAM or BUBBLE; NULL unless desc.markers. Not saved */
    const fsi_real *aeration;  /* count, 0 to 1: how much foam it makes; NULL unless desc.markers. Not saved */
    double time;               /* seconds simulated */
    fsi_real particle_mass;    /* [kg] (2D: per metre) */
    fsi_real particle_volume;  /* dx^dim */
    fsi_real support;          /* H [m] */
    fsi_real stiffness;        /* mu [Pa] */
    fsi_real kernel_scale;     /* sigma: makes the lattice sum one (sph.md 2) */
    fsi_real gradient_factor;  /* gk of the lattice (sph.md 2) */
    fsi_real pressure_factor;  /* pressure = pressure_factor mu max(lambda - 1, 0): gk of the closest packing where that
                                  is smaller, since a liquid at rest settles into it */
    fsi_real wall_factor;      /* s_B (sph.md 4.4) */
    fsi_sph_stats stats;
    void *impl;
} fsi_sph;

/* Fills every field. */
FSI_API fsi_sph_desc fsi_sph_default_desc(void);
/* Errors: COOKIE, ARGUMENT (names the field), NAN, MEMORY. *out is NULL on failure. */
FSI_API fsi_status fsi_sph_create(fsi_sph **out, const fsi_sph_desc *desc);
FSI_API void fsi_sph_destroy(fsi_sph *s); /* NULL is fine */
/* Other settings from now on: start from s->desc. All but cookie, context, dim, spacing, support, density, domain,
   origin, attribute_count and markers may change; reserve means nothing here. Errors: COOKIE, ARGUMENT and NAN (name
   the field); then nothing has changed. */
FSI_API fsi_status fsi_sph_set_desc(fsi_sph *s, const fsi_sph_desc *desc);
/* Why the last call on it failed. NULL, as after a failed create: a text that says where to read why. Never NULL. */
FSI_API const fsi_error *fsi_sph_error(const fsi_sph *s);

/* Appends particles; `velocities` NULL: at rest. Arrays may move; the arguments must not point into them. Particles in
   a solid, by this call, by written positions or by an obstacle added over liquid, leave it within a step where the
   surface is nearer than H; the others stay: they are pinched, counted in stats.pinched (and by fsi_sph_count_inside).
   Particles outside the domain are moved just within its walls. Errors: NAN (names the particle), MEMORY, LIMIT
   (max_particles). */
FSI_API fsi_status fsi_sph_add_particles(fsi_sph *s, const fsi_vec3 *positions, const fsi_vec3 *velocities, int count);
/* Appends a lattice of spacing dx that fills a box, from its corner lo on; a sphere (2D: a disc), around its centre;
   what is at least dx/2 inside a closed mesh (of a container: in its liquid), from the corner of its box on. It moves
   with `velocity` [m/s]. Sites outside the domain, in an obstacle or nearer than dx/2 to one, or nearer than 0.6 dx to
   an existing particle are left out: the same box filled twice is filled once. *added (NULL is fine): the number of
   particles added, 0 after an error; where it is 0 a warning says so. Errors: COOKIE, NAN, ARGUMENT (a shape smaller
   than a cell, radius, mesh), MESH (not closed), MEMORY, LIMIT (max_particles, 5e8 sites in the domain); nothing
   changes. */
FSI_API fsi_status fsi_sph_fill_box(fsi_sph *s, fsi_box3 box, fsi_vec3 velocity, int *added);
FSI_API fsi_status fsi_sph_fill_sphere(fsi_sph *s, fsi_vec3 center, fsi_real radius, fsi_vec3 velocity, int *added);
FSI_API fsi_status fsi_sph_fill_mesh(fsi_sph *s, const fsi_mesh *mesh, fsi_vec3 velocity, int *added);
/* Removes the particles i with gone[i] != 0 (count entries); the others keep their order. */
FSI_API fsi_status fsi_sph_remove_particles(fsi_sph *s, const unsigned char *gone);

/* A mesh that the liquid cannot enter: referenced, not copied; mesh and body must outlive the simulator or be removed
   first. A closed mesh keeps liquid out, or in when it was made as a container. Every step sweeps it from where the
   last step left it:
      by its mesh     to where its mesh is when the step is called; move it with fsi_mesh_move or fsi_mesh_move_rigid,
                      by less than 60 degrees a step (corners move in straight lines)
      by a body       PRESCRIBED: to body->end, on an arc, by less than 180 degrees a step. COUPLED: where liquid,
                      body->force and body->torque take it; liquid and body are solved together, which is stable for
                      bodies much lighter than the liquid too. The outputs of fsi_body are written when the step has
                      succeeded, for COUPLED also `end`, where the step left it. Whoever integrates the pose himself may
                      come out slightly elsewhere: the next step sweeps the difference. Several obstacles may be fixed
                      to one body. 2D: COUPLED bodies turn about z only; those whose inertia has products with z, as
                      they stand, are refused (ARGUMENT).
   Substeps move obstacles along. */
typedef struct fsi_sph_obstacle_desc {
    uint32_t cookie;
    const fsi_mesh *mesh;
    fsi_body *body;          /* default NULL. As the mesh stands when it is added, so it is fixed to body->pose of that
                                moment; later changes of the mesh have no effect */
    uint32_t mask;           /* it acts on particles with filter & mask != 0; default 0xffffffff: on all */
    fsi_real friction;       /* Coulomb's coefficient, 0 to 10; default 0 */
    int no_slip;             /* where desc.viscosity > 0 the liquid moves with the wall, else it slides; default 1 */
    fsi_real contact_angle;  /* under surface tension, through the liquid, 0 to 180 degrees. Work of adhesion over that
                                of cohesion is (1 + cos(contact_angle))/2 (Young and Dupre); default 180: not wetted */
    fsi_vec3 *vertex_force;  /* default NULL; else mesh->source_count entries, written by each step: what the liquid did
                                to each of the caller's vertices, mean over the step [N] */
} fsi_sph_obstacle_desc;

FSI_API fsi_sph_obstacle_desc fsi_sph_default_obstacle_desc(void); /* fills every field; set mesh */
/* *id (NULL ok) names it in calls below. Errors: COOKIE, ARGUMENT, NAN (name the field), MEMORY. */
FSI_API fsi_status fsi_sph_add_obstacle(fsi_sph *s, const fsi_sph_obstacle_desc *desc, int *id);
FSI_API fsi_status fsi_sph_add_mesh(fsi_sph *s, const fsi_mesh *mesh, int *id); /* the same with all defaults */
FSI_API fsi_status fsi_sph_remove_obstacle(fsi_sph *s, int id);
/* Takes an obstacle for where its mesh, or its body's pose, is now: the next step does not sweep it there. */
FSI_API fsi_status fsi_sph_teleport_obstacle(fsi_sph *s, int id);
/* Force [N] of the liquid on an obstacle, and torque about the world's origin [N m], means over the last step. On
   COUPLED bodies, minus the force on the particles; body->reaction_force differs from it by the residual of the solve
   (body_tolerance). */
FSI_API fsi_status fsi_sph_obstacle_reaction(const fsi_sph *s, int id, fsi_vec3 *force, fsi_vec3 *torque);

/* Emitters and sinks: descs in fsi_source.h. Layers come out as if they crossed the inlet plane between substeps. */
/* *id names it in calls below (NULL is fine). From now on a step may move the particles' arrays; desc.reserve makes
   that seldom, and sizes a step's scratch. Errors: COOKIE, ARGUMENT and NAN (name the field), MESH, MEMORY, LIMIT. */
FSI_API fsi_status fsi_sph_add_emitter(fsi_sph *s, const fsi_emitter_desc *desc, int *id);
/* Another speed, position, shape ... from now on; the flow and the counts continue. */
FSI_API fsi_status fsi_sph_set_emitter(fsi_sph *s, int id, const fsi_emitter_desc *desc);
FSI_API fsi_status fsi_sph_remove_emitter(fsi_sph *s, int id); /* releases the particles in it */
/* Particles that it emitted, and sites that stayed empty, so far (NULL is fine). */
FSI_API fsi_status fsi_sph_emitter_total(const fsi_sph *s, int id, long long *emitted, long long *blocked,
                                         long long *refused);

/* Sinks remove the particles that are inside at the end of a step. Errors: COOKIE, ARGUMENT and NAN (name the field),
   MESH, MEMORY, LIMIT (254 sinks). */
FSI_API fsi_status fsi_sph_add_sink(fsi_sph *s, const fsi_sink_desc *desc, int *id);
FSI_API fsi_status fsi_sph_remove_sink(fsi_sph *s, int id);
FSI_API fsi_status fsi_sph_sink_total(const fsi_sph *s, int id, long long *removed);

/* Adds offset [m] to the positions of particles, domain, emitters and sinks, and to where the last step left obstacles:
   a world whose origin moves along. Meshes and bodies are yours: add it to them as well before the next step
   (fsi_mesh_set; pose and end). Apart from rounding, later steps go as without. Errors: NAN, LIMIT (the domain would
   lie too far off); then nothing has changed. */
FSI_API fsi_status fsi_sph_shift_origin(fsi_sph *s, fsi_vec3 offset);

/* What fsi_sph_copy copies, and how many floats of a particle that are. */
typedef enum fsi_sph_field {
    FSI_SPH_POSITION, FSI_SPH_VELOCITY, FSI_SPH_FORCE,                               /* 3 (in 2D too) */
    FSI_SPH_PRESSURE, FSI_SPH_DENSITY_RATIO, FSI_SPH_AERATION, FSI_SPH_MARKER,       /* 1 */
    FSI_SPH_ATTRIBUTE                                                                /* desc.attribute_count */
} fsi_sph_field;
/* Copies one field as packed floats, as a GPU wants them: out[i * stride + k] for particle i. Several fields interleave
   by calls with out + 3, out + 6 ... `origin` is taken off positions before they are rounded to float. Errors: ARGUMENT
   (unknown field, one that the desc did not ask for, stride too short, out NULL), NAN (origin). */
FSI_API fsi_status fsi_sph_copy(const fsi_sph *s, fsi_sph_field field, fsi_vec3 origin, float *out, int stride);

/* Advances exactly dt seconds, 1e-12 to 1000; dt = 0: nothing moves, stats are filled. Errors: ARGUMENT (dt), NAN
   (names the particle and what was not finite), MEMORY, LIMIT (a particle farther than 1e15 m from the origin, faster
   than 1e12 m/s or pulled by more than 1e18 m/s^2, an obstacle as fast, more than 2,048 faces near a particle); then
   nothing has changed. */
FSI_API fsi_status fsi_sph_step(fsi_sph *s, fsi_real dt);
/* The largest step that moves no particle farther than cfl * dx, keeps the stiffness number S = mu dt^2/(rho0 dx^2)
   below 10 and resolves capillary waves, dt <= sqrt(rho0 dx^3/sigma)/6 [s]. */
FSI_API fsi_real fsi_sph_suggest_dt(const fsi_sph *s);

/* Pressure [Pa] at a point: Shepard average of the particles within H; 0 where there are none. O(count). */
FSI_API fsi_real fsi_sph_pressure_at(const fsi_sph *s, fsi_vec3 x);
/* Volume fraction of liquid around a point, sum V W: about 1 inside, 0.5 at a surface, 0 outside. O(count). */
FSI_API fsi_real fsi_sph_fraction_at(const fsi_sph *s, fsi_vec3 x);
/* Velocity [m/s] at a point: Shepard average of the particles within H; 0 where there are none. O(count). */
FSI_API fsi_vec3 fsi_sph_velocity_at(const fsi_sph *s, fsi_vec3 x);
/* How many particles are inside a closed obstacle, by winding number, or outside the domain; *first one of them (NULL
   ok). Independent of all that the solver uses; O(particles near obstacles * faces), on all the context's threads. */
FSI_API int fsi_sph_count_inside(const fsi_sph *s, int *first);

/* State: particles with ids, filters and attributes, warm starts, how far emitters and sinks have come, time.
   Obstacles, bodies, descs of emitters and sinks, and desc are not saved: load into a simulator made alike (another
   dim, spacing, attribute_count or number of obstacles, other emitters or sinks are refused), after putting moving
   meshes (fsi_mesh_set) and bodies back: load takes them for where they are then (bodies that are where they were, but
   for rounding, start from there to the bit). What was saved with another desc.origin is shifted to the present one.
   NULL buffer asks the size. A damaged or foreign buffer is refused, nothing changes. */
FSI_API fsi_status fsi_sph_save(const fsi_sph *s, void *buffer, size_t capacity, size_t *size);
FSI_API fsi_status fsi_sph_load(fsi_sph *s, const void *buffer, size_t size);
/* Hash of what save writes. Equal after equal steps, for any number of threads. */
FSI_API uint64_t fsi_sph_hash(const fsi_sph *s);

/* Particles coloured by pressure, and the edges of obstacles. */
FSI_API void fsi_sph_debug_draw(const fsi_sph *s, const fsi_debug_draw *draw);

#endif /* FSI_SPH_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_SPH_IMPLEMENTATION
#define FSI_SPH_IMPLEMENTATION
#endif
#ifdef FSI_SPH_IMPLEMENTATION
#ifndef FSI_SPH_IMPLEMENTATION_DONE
#define FSI_SPH_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_obstacle.h"
#include "fsi_source.h"
#include "fsi_sph_bodies.h"
#include "fsi_sph_tension.h"

FSI__STRICT_BEGIN

/* ---- >>work space --------------------------------------------------------------------------------------------- */

#define FSI__SPH_GRAIN 512    /* particles a chunk */
#define FSI__SPH_GROUP 8      /* particles that share one search for faces */
#ifndef FSI__SPH_AFTER_PASS
#define FSI__SPH_AFTER_PASS(run) ((void)0) /* tests spoil numbers here */
#endif
#ifndef FSI__SPH_SKIN
#define FSI__SPH_SKIN 0.1     /* neighbour lists reach (1 + skin) H */
#endif
#define FSI__SPH_MOVE 0.1     /* boundary integrals are made anew after a move of this many H */
#define FSI__SPH_MEND 0.1     /* largest velocity that makes up for a defect of momentum, over the mean speed */
#define FSI__SPH_SOFT 500.0   /* largest mu dt^2/(rho0 dx^2) of a substep: above 800 pools at rest boil (docs/sph.md) */
#define FSI__SPH_ACCURATE 10.0 /* the same for accuracy: fsi_sph_suggest_dt, surface tension */
/* A solve leaves a fraction rho of the error of its guess, in its slowest modes. Guesses that add all of the last
   correction make pressure a force that lags by dt rho/(1 - rho), and lags above dt, that is, rho > 1/2, gain energy
   faster than backward Euler dissipates it: deep liquid in large steps boils. So sweeps continue until the missing
   correction, not only that of the last sweep, is small (LEFT times the tolerance). Where more than LAG of the
   correction is missing because tolerance, max_iters or budget ended the solve, the next guess adds half of it, which
   cannot gain energy, and more XSPH smooths the velocities of neighbours. */
#define FSI__SPH_LEFT 10
#define FSI__SPH_LAG 0.01
#define FSI__SPH_LAG_WARM 0.5
#define FSI__SPH_LAG_XSPH 0.5
/* Surface tension needs this much XSPH in the time of a capillary wave of one spacing: what single particles at the
   surface are given must spread to those below, or it accumulates until they leave. */
#define FSI__SPH_TENSION_XSPH 2
/* Limits of a step: beyond them squares overflow, and differences are all rounding. */
#define FSI__SPH_FAR 1e15     /* farthest from the origin [m] */
#define FSI__SPH_FAST 1e12    /* fastest [m/s] */
#define FSI__SPH_PULL 1e18    /* largest acceleration by forces [m/s^2] */
#define FSI__SPH_CORRECTION 1e30 /* largest that a state holds [m/s^2] */
#define FSI__SPH_STILL 1e-4   /* corrections below this fraction of the path need no more digits than such a one */
#define FSI__SPH_SUMS 16      /* partial sums a chunk, in banks of four: the parts of a pass have one each */
/* Times of the passes over all particles on one thread [nanoseconds a particle]: the least that was measured in any
   scene at -O3 -march=native (AMD EPYC), so that none is handed to other threads for too little. */
enum {
    FSI__SPH_NS_START = 6,
    FSI__SPH_NS_PLACE = 3,
    FSI__SPH_NS_WALLS = 1,
    FSI__SPH_NS_WALL = 100,
    FSI__SPH_NS_DENSITY = 16,
    FSI__SPH_NS_GRADIENT = 37,
    FSI__SPH_NS_UPDATE = 3,
    FSI__SPH_NS_RESET = 1,
    FSI__SPH_NS_NORMAL = 30,
    FSI__SPH_NS_SMOOTH_NORMAL = 6,
    FSI__SPH_NS_CURVATURE = 4,
    FSI__SPH_NS_PULL = 9,
    FSI__SPH_NS_APPLY = 5,
    FSI__SPH_NS_BEGIN = 10,
    FSI__SPH_NS_RESIDUAL = 100,
    FSI__SPH_NS_TURN = 2,
    FSI__SPH_NS_MULTIPLY = 28,
    FSI__SPH_NS_ADVANCE = 7,
    FSI__SPH_NS_VISCOUS_END = 6,
    FSI__SPH_NS_FINISH = 12,
    FSI__SPH_NS_SMOOTH = 23,
    FSI__SPH_NS_MOMENTUM = 2,
    FSI__SPH_NS_SHIFT = 2,
    FSI__SPH_NS_GATHER = 1,
    FSI__SPH_NS_AIR = 35,
    FSI__SPH_NS_MARKERS = 7
};
#define FSI__SPH_VISCOUS 1e-3 /* iterations of viscosity end when the residual is this fraction of the change */
#define FSI__SPH_VISCOUS_NOISE 1e-7 /* or this fraction of the velocity itself */
#define FSI__SPH_VISCOUS_ROUNDS 4   /* exact residuals, at most */
/* The diagonal counts a pair with this weight when neither particle is under pressure, and adds the second for each
   that is. 0 and 1 would be the active diagonal of sph.md 6; these were measured to need fewer sweeps and, since pairs
   that come under pressure are expected, almost never to raise the energy. */
#define FSI__SPH_PAIR_IDLE 0.5
#define FSI__SPH_PAIR_PRESSED 0.35
#if defined(FSI_LANES_DOUBLE)
#define FSI__SPH_ENERGY_NOISE 1e-6 /* relative rise of the energy that rounding of the densities can make */
#define FSI__SPH_STEP_NOISE 1e-12  /* mean step of a sweep that it can make [H], times mu dt^2/(rho0 H^2), up to 0.5 */
#else
#define FSI__SPH_ENERGY_NOISE 1e-4
#define FSI__SPH_STEP_NOISE 1e-7
#endif

typedef struct fsi__sph_obstacle {
    fsi__obstacle base;
    fsi_sph_obstacle_desc desc; /* as given */
    double warm[6];          /* coupled: change of its acceleration by the last solve [m/s^2], [rad/s^2] */
    double speed;            /* of its fastest vertex in the running step [m/s] */
} fsi__sph_obstacle;

typedef struct fsi__sph_impl {
    fsi_context own_context;
    fsi__sph_kernel kernel;
    uint32_t *id;            /* count */
    uint32_t *source;        /* count: 1 + id of the emitter that still moves the particle, 0: none */
    unsigned char *marker;   /* count, or NULL */
    fsi_real *aeration;
    fsi__particles particles;
    fsi__sources sources;
    fsi_vec3 *warm;          /* count: (x1 - x*)/dt^2 of the last substep, x* before viscosity [m/s^2] */
    fsi_real *kappa;         /* count: contact stiffness / kappa0, at least 1 */
    fsi_real *pressure, *density_ratio;
    fsi_neighbors *neighbors;
    fsi__obstacles obstacles;
    fsi__sph_obstacle *obstacle; /* its rows */
    fsi_mesh *domain;
    fsi__arena scratch, walls;
} fsi__sph_impl;

/* A pass's work on the particle of rank r; `sum` are its chunk's partial sums. */
struct fsi__sph_run;
typedef void fsi__sph_rank_fn(struct fsi__sph_run *run, int r, double *sum);

/* One call of step. Creation order: the arrays to be published. Rank order: the substep's solve; lengths in units of H,
   displacements u from where the particles were when the neighbour lists were made. */
typedef struct fsi__sph_run {
    fsi_sph *s;
    fsi__sph_impl *im;
    fsi_sph_stats stats;
    int n, chunks, groups;
    double dt, h;               /* substep [s], H [m] */
    int sweeps;                 /* that this substep may take, and as many iterations of viscosity */
    double stiffness;           /* mu [Pa], less where max_substeps leaves substeps that are too long for it */
    double mu, kappa0;          /* mu dt^2/(rho0 H^2), the same of kappa0 */
    double dhat;                /* contact thickness / H */
    double omega;               /* step factor of the global step control */
    double left;                /* estimated fraction of the correction that is still missing */
    int noise;                  /* 1: the last sweep's steps are no more than rounding */
    double way;                 /* sum of the particles' displacements in this substep, without correction [H] */
    double beta;                /* extrapolation of this update */
    fsi_vec3 shift;             /* velocity that gives the defect of momentum back */
    int reset;                  /* what fsi__sph_reset does */
    int outset;                 /* where the next density is taken */
    int fresh;                  /* 1: lists and walls are the substep's first */
    int sheets;                 /* 1: there are sheets */
    int refresh, refreshed;     /* 1: the next density makes stale walls anew; how many the last one did */
    int due;                    /* 1: the next density makes all walls, for new lists */
    fsi__sph_rank_fn *visit;    /* what fsi__sph_for_each does */
    double compression;         /* mean of max(lambda - 1, 0) at the last point measured */
    double done;                /* fraction of the step before this substep, */
    double share;               /* and of the substep */
    fsi__sph_bodies bodies;     /* those of the obstacles, each once */
    fsi__walls walls;
    fsi__sph_scene scene;
    fsi__tension surface;
    /* creation order */
    fsi_vec3 *x, *v, *warm;     /* become the public state */
    fsi_real *kappa, *pressure, *lambda_out;
    fsi_vec3 *target, *guess;   /* x*, where the solve starts */
    fsi_vec3 *drag;             /* what viscosity gave in this substep [m/s^2]; NULL: there is none */
    fsi_vec3 *tension;          /* acceleration by surface tension [m/s^2]; NULL: none */
    fsi_vec3 *line;             /* the part of the velocity that a contact line gave [m/s] */
    unsigned char *state;       /* result of placing the position at which the solve starts: FSI__PLACED ... */
    /* rank order */
    const int *order, *first, *size, *list;
    fsi__record *base, *z, *zp; /* u = 0, the point where the gradient is taken, the same with pressure */
    fsi__lane4 *star;           /* x* as a displacement */
    fsi__lane4 *u, *uz, *step;  /* iterate, extrapolated iterate, last step (w: diagonal) */
    fsi__lane4 *normal;         /* under surface tension: m n of the surface through a particle, or what comes of it */
    fsi__lane4 *sheet;          /* the same smoothed */
    int *drop;                  /* surface particle -> one that stands for all it hangs together with, -1: none */
    fsi__drop *drops;
    fsi__lane *lambda;
    int *slot;                  /* rank -> wall, -1: none */
    int *group_slot;            /* group -> first wall, -1: none */
    double *part;               /* chunks * FSI__SPH_SUMS */
    fsi__sph_wall *wall;
    int wall_count;
    int *overflow;              /* chunks: 1 + a particle with too many faces, 0: none */
    fsi__sph_viscosity viscous;
    /* emitters, sinks, markers */
    int room;                   /* particles that there is memory for */
    double clock;               /* time at the start of the substep [s] */
    int holding;                /* particles that emitters still move */
    int ghosts;                 /* the last rows: particles that emitters will emit next, there for one substep */
    double given[3];            /* to them in the substep by their emitters [m/s] */
    uint64_t next_particle;
    uint32_t *source;           /* room; NULL without emitters */
    fsi__source_run sources;
    unsigned char *gone;        /* room: 1 + sink that takes the particle; NULL without sinks */
    unsigned char *marker;      /* room; NULL without markers */
    fsi_real *aeration;
    int marked;                 /* particles with markers */
    fsi__foam foam;
} fsi__sph_run;

/* sqrt(rho0 dx^3/sigma): the time of capillary waves of one spacing. */
FSI_FN double fsi__sph_capillary_time(const fsi_sph *s)
{
    const double dx = (double)s->desc.spacing;
    return sqrt((double)s->desc.density * dx * dx * dx / (double)s->desc.surface_tension);
}

/* The step whose mu dt^2/(rho0 dx^2) is that number. */
FSI_FN double fsi__sph_stiff_dt(const fsi_sph *s, double stiffness_number)
{
    return (double)s->desc.spacing * sqrt(stiffness_number * (double)s->desc.density / (double)s->stiffness);
}

#define FSI__SPH_CAPILLARY (1.0 / 6) /* longest substep, in capillary times */

FSI_FN double fsi__sph_capillary_dt(const fsi_sph *s) { return FSI__SPH_CAPILLARY * fsi__sph_capillary_time(s); }

/* Substeps under tension: stiffer ones leave enough of each solve unfinished to kick particles off the surface. */
FSI_FN double fsi__sph_tension_dt(const fsi_sph *s)
{
    return fmin(fsi__sph_capillary_dt(s), fsi__sph_stiff_dt(s, FSI__SPH_ACCURATE));
}

/* Did max_substeps leave a substep that is too long for the stiffness, or for surface tension? */
FSI_FN int fsi__sph_is_too_long(const fsi__sph_run *run)
{
    return run->stiffness < (double)run->s->stiffness ||
           (run->tension && run->dt > 1.001 * fsi__sph_tension_dt(run->s));
}

/* Is more of the correction missing than an undamped guess may have? With tolerance 0 that is left to the caller. */
FSI_FN int fsi__sph_lags(const fsi__sph_run *run) { return run->s->desc.tolerance > 0 && run->left > FSI__SPH_LAG; }

/* Fraction of this substep's correction in the next guess; coefficient of XSPH in this substep. */
FSI_FN double fsi__sph_warm_share(const fsi__sph_run *run) { return fsi__sph_lags(run) ? FSI__SPH_LAG_WARM : 1; }
FSI_FN double fsi__sph_smoothing(const fsi__sph_run *run)
{
    const fsi_sph_desc *d = &run->s->desc;
    double share = d->viscosity > 0 ? 0 : (double)d->xsph;
    if (run->tension) share = fmax(share, FSI__SPH_TENSION_XSPH * run->dt / fsi__sph_capillary_time(run->s));
    return fsi__sph_is_too_long(run) || fsi__sph_lags(run) ? FSI__SPH_LAG_XSPH : fmin(share, FSI__SPH_LAG_XSPH);
}

static void fsi__sph_lap(const fsi__sph_run *run, double *phase, double *since);
static void fsi__sph_refresh_walls(fsi__sph_run *run, int chunk, int begin, int end);
static void fsi__sph_walls_range(void *arg, int chunk, int begin, int end);
/* Where the density is taken: at z; at u = 0, while z holds u*; there and at u*; at u*, which iterates take. */
enum { FSI__SPH_ON_THE_WAY, FSI__SPH_AT_GUESS, FSI__SPH_AT_BOTH, FSI__SPH_AT_STAR };

/* The wall of rank r, NULL where there is none. */
FSI_FN fsi__sph_wall *fsi__sph_wall_of(const fsi__sph_run *run, int r)
{
    return run->slot[r] >= 0 ? &run->wall[run->slot[r]] : NULL;
}

/* Folds column k of the chunks' partial sums, in order. */
static double fsi__sph_sum(const fsi__sph_run *run, int k)
{
    double sum = 0;
    int c;
    for (c = 0; c < run->chunks; c++) sum += run->part[c * FSI__SPH_SUMS + k];
    return sum;
}

static double fsi__sph_largest(const fsi__sph_run *run, int k)
{
    double most = 0;
    int c;
    for (c = 0; c < run->chunks; c++)
        if (run->part[c * FSI__SPH_SUMS + k] > most) most = run->part[c * FSI__SPH_SUMS + k];
    return most;
}

static void fsi__sph_put_sums_at(fsi__sph_run *run, int chunk, int bank, double a, double b, double c, double d)
{
    double *part = run->part + chunk * FSI__SPH_SUMS + 4 * bank;
    part[0] = a;
    part[1] = b;
    part[2] = c;
    part[3] = d;
}

static void fsi__sph_put_sums(fsi__sph_run *run, int chunk, double a, double b, double c, double d)
{
    fsi__sph_put_sums_at(run, chunk, 0, a, b, c, d);
}

/* One pass over the particles, which takes `work` nanoseconds for each (0: never worth a dispatch). A pass is at most
   one dispatch; what reads nothing that its last part wrote for other particles goes into the same one, as one function
   of a range that calls others. */
static void fsi__sph_parallel(fsi__sph_run *run, fsi__range_fn *fn, double work)
{
    fsi__parallel_work(run->s->context, run->n, FSI__SPH_GRAIN, work * run->n, fn, run);
    FSI__SPH_AFTER_PASS(run);
}

/* A chunk's part of a pass over particles; what it adds up goes to this bank and the next. */
static void fsi__sph_visit_range(fsi__sph_run *run, fsi__sph_rank_fn *fn, int chunk, int bank, int begin, int end)
{
    double sum[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
    int r;
    for (r = begin; r < end; r++) fn(run, r, sum);
    memcpy(run->part + chunk * FSI__SPH_SUMS + 4 * bank, sum, sizeof sum);
}

static void fsi__sph_visit(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    fsi__sph_visit_range(run, run->visit, chunk, 0, begin, end);
}

/* One pass over the particles; fsi__sph_sum folds what it added up. */
static void fsi__sph_for_each(fsi__sph_run *run, fsi__sph_rank_fn *fn, double work)
{
    run->visit = fn;
    fsi__sph_parallel(run, fsi__sph_visit, work);
}

static void fsi__sph_layout_sources(fsi__sph_run *run, fsi__arena *a)
{
    const fsi__sph_impl *im = run->im;
    size_t n = (size_t)run->room;
    fsi__source_layout(&run->sources, a);
    if (im->sources.emitter_count > 0) run->source = (uint32_t *)fsi__take(a, n, sizeof(uint32_t));
    if (im->sources.sink_count > 0) run->gone = (unsigned char *)fsi__take(a, n, 1);
    if (run->s->desc.markers) {
        run->marker = (unsigned char *)fsi__take(a, n, 1);
        run->aeration = (fsi_real *)fsi__take(a, n, sizeof(fsi_real));
    }
}

static void fsi__sph_set_count(fsi__sph_run *run, int n)
{
    run->n = n;
    run->chunks = fsi__chunks(n, FSI__SPH_GRAIN);
    run->groups = fsi__chunks(n, FSI__SPH_GROUP);
}

FSI_FN int fsi__sph_ghost(const fsi__sph_run *run, int i) { return i >= run->n - run->ghosts; }
FSI_FN int fsi__sph_held(const fsi__sph_run *run, int i) { return run->holding > 0 && run->source[i] != 0; }

/* Viscosity: vectors of conjugate gradients, blocks of the diagonal. */
static void fsi__sph_layout_viscosity(fsi__sph_run *run, fsi__arena *a)
{
    fsi__sph_viscosity *o = &run->viscous;
    const size_t n = (size_t)run->room;
    int k;
    run->drag = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    o->x = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    o->before = (double (*)[3])fsi__take(a, n, sizeof *o->before);
    for (k = 0; k < 2; k++) {
        o->room_v[k] = (double (*)[3])fsi__take(a, n, sizeof *o->room_v[k]);
        o->room_d[k] = (fsi__lane4 *)fsi__take(a, n, sizeof(fsi__lane4));
    }
    o->v = o->before;
    o->d = o->room_d[0];
    o->r = (fsi__lane4 *)fsi__take(a, n, sizeof(fsi__lane4));
    o->p = (fsi__lane4 *)fsi__take(a, n, sizeof(fsi__lane4));
    o->q = (fsi__lane4 *)fsi__take(a, n, sizeof(fsi__lane4));
    o->inverse = (fsi__sph_block *)fsi__take(a, n, sizeof(fsi__sph_block));
    o->body = (fsi__sph_body_drag *)fsi__take(a, (size_t)run->im->obstacles.count, sizeof(fsi__sph_body_drag));
}

static void fsi__sph_layout(fsi__sph_run *run, fsi__arena *a)
{
    const size_t n = (size_t)run->room;

    /* Creation order: the new state, the target x* of the solve and its first guess. */
    run->x = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    run->v = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    run->warm = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    run->target = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    run->guess = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    run->kappa = (fsi_real *)fsi__take(a, n, sizeof(fsi_real));
    run->pressure = (fsi_real *)fsi__take(a, n, sizeof(fsi_real));
    run->lambda_out = (fsi_real *)fsi__take(a, n, sizeof(fsi_real));

    /* Rank order: coordinates, displacements and their steps, densities, indices of walls. */
    run->base = (fsi__record *)fsi__take(a, n, sizeof(fsi__record));
    run->z = (fsi__record *)fsi__take(a, n, sizeof(fsi__record));
    run->zp = (fsi__record *)fsi__take(a, n, sizeof(fsi__record));
    run->star = (fsi__lane4 *)fsi__take(a, n, sizeof(fsi__lane4));
    run->u = (fsi__lane4 *)fsi__take(a, n, sizeof(fsi__lane4));
    run->uz = (fsi__lane4 *)fsi__take(a, n, sizeof(fsi__lane4));
    run->step = (fsi__lane4 *)fsi__take(a, n, sizeof(fsi__lane4));
    run->lambda = (fsi__lane *)fsi__take(a, n, sizeof(fsi__lane));
    run->slot = (int *)fsi__take(a, n, sizeof(int));
    run->state = (unsigned char *)fsi__take(a, n, 1);
    run->group_slot = (int *)fsi__take(a, (size_t)run->groups, sizeof(int));
    run->overflow = (int *)fsi__take(a, (size_t)run->chunks, sizeof(int));
    run->part = (double *)fsi__take(a, (size_t)run->chunks * FSI__SPH_SUMS, sizeof(double));

    /* Surface tension: accelerations, normals, connected sets of surface particles. */
    if (run->s->desc.surface_tension > 0) {
        run->tension = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
        run->line = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
        run->normal = (fsi__lane4 *)fsi__take(a, n, sizeof(fsi__lane4));
        run->sheet = (fsi__lane4 *)fsi__take(a, n, sizeof(fsi__lane4));
        run->drop = (int *)fsi__take(a, n, sizeof(int));
        run->drops = (fsi__drop *)fsi__take(a, n, sizeof(fsi__drop));
    }

    /* Bodies; there are at most as many as obstacles. */
    run->bodies.body = (fsi__sph_body *)fsi__take(a, (size_t)run->im->obstacles.count, sizeof(fsi__sph_body));
    if (run->s->desc.viscosity > 0) fsi__sph_layout_viscosity(run, a);
    fsi__sph_layout_sources(run, a);
}

/* ---- >>contacts ----------------------------------------------------------------------------------------------- */

/* The displacement of a coupled body at `arm` from its centre: c + r x arm, first order in the rotation r since meshes
   were moved. */
FSI_FN void fsi__sph_way(const double *q, const fsi__lane *arm, fsi__lane *way)
{
    way[0] = (fsi__lane)(q[0] + q[4] * (double)arm[2] - q[5] * (double)arm[1]);
    way[1] = (fsi__lane)(q[1] + q[5] * (double)arm[0] - q[3] * (double)arm[2]);
    way[2] = (fsi__lane)(q[2] + q[3] * (double)arm[1] - q[4] * (double)arm[0]);
}

/* Which of a body's positions: of the iterate, or of the extrapolated point. */
enum { FSI__SPH_AT_U, FSI__SPH_AT_Z };

/* Displacement u seen from part k of a wall, since the wall was made. */
FSI_FN void fsi__sph_relative(const fsi__sph_run *run, const fsi__sph_wall *w, int k, const fsi__lane4 *u, int which,
                              fsi__lane *d)
{
    d[0] = u->x - w->at[0];
    d[1] = u->y - w->at[1];
    d[2] = u->z - w->at[2];
    if (w->coupled && w->part[k].body >= 0) {
        const fsi__sph_part *part = &w->part[k];
        const fsi__sph_body *body = &run->bodies.body[part->body];
        fsi__lane way[3];
        fsi__sph_way(which == FSI__SPH_AT_Z ? body->qz : body->q, part->arm, way);
        d[0] -= way[0] - part->moved[0];
        d[1] -= way[1] - part->moved[1];
        d[2] -= way[2] - part->moved[2];
    }
}

/* Gap of one contact at displacement u, over dhat. */
FSI_FN double fsi__sph_gamma(const fsi__sph_run *run, const fsi__sph_wall *w, int c, const fsi__lane4 *u, int which)
{
    const fsi__sph_plane_contact *p = &w->contact[c];
    fsi__lane d[3];
    fsi__sph_relative(run, w, p->part, u, which, d);
    return (double)(p->gap + fsi__lane_dot(p->n, d[0], d[1], d[2])) / run->dhat;
}

/* Force (as displacement), diagonal and energy of a particle's contacts at z; part -1: with all obstacles. */
typedef struct fsi__sph_push { double x, y, z, diagonal, energy; } fsi__sph_push;

static fsi__sph_push fsi__sph_contacts_at(const fsi__sph_run *run, const fsi__sph_wall *w, int part,
                                          const fsi__lane4 *u, int which)
{
    fsi__sph_push out = { 0, 0, 0, 0, 0 };
    int c, first = run->s->desc.contact_first;
    for (c = 0; c < w->contact_count; c++) {
        double g, cm, cp, f, k = (double)w->kappa;
        if (part >= 0 && w->contact[c].part != part) continue;
        g = fsi__sph_gamma(run, w, c, u, which);
        if (!(g < 1)) continue;
        fsi_sph_contact(g, first, w->order, &cm, &cp);
        f = k / run->dhat * (cm - cp * g);
        out.x += f * (double)w->contact[c].n[0];
        out.y += f * (double)w->contact[c].n[1];
        out.z += f * (double)w->contact[c].n[2];
        out.diagonal += k * cp / (run->dhat * run->dhat);
        out.energy += k * fsi__sph_contact_energy(g, first, w->order);
    }
    return out;
}

static fsi__sph_push fsi__sph_contacts(const fsi__sph_run *run, const fsi__sph_wall *w, int part, const fsi__lane4 *u)
{
    return fsi__sph_contacts_at(run, w, part, u, FSI__SPH_AT_Z);
}

/* ---- >>pair sums ---------------------------------------------------------------------------------------------- */

/* lambda_i = sigma V c (1 + sum_j (1-q_ij)^3) + wall; pressure p = max(lambda - 1, 0) (sph.md 3). Also the energy at z
   in units of m H^2/dt^2: |u - u*|^2/2 + mu' p^2/2 + contacts. */
FSI_FN fsi__f8 fsi__sph_pair_density(const fsi__record *z, const int *list, const fsi__record *at)
{
    const fsi__f8 unit = fsi__f8_set((fsi__lane)FSI__COORD_UNIT), one = fsi__f8_set(1), zero = fsi__f8_set(0);
    fsi__f8 dx, dy, dz, w, r2, q;
    fsi__f8_gather(z, list, at, &dx, &dy, &dz, &w);
    r2 = fsi__f8_add(fsi__f8_add(fsi__f8_mul(dx, dx), fsi__f8_mul(dy, dy)), fsi__f8_mul(dz, dz));
    q = fsi__f8_max(fsi__f8_sub(one, fsi__f8_mul(fsi__f8_sqrt(r2), unit)), zero);
    return fsi__f8_mul(fsi__f8_mul(q, q), q);
}

/* sum_j (1-q_ij)^3 for ranks begin .. end-1, repeats of the rank behind its list included: sum[i - begin]. */
FSI__NOINLINE static void fsi__sph_density_sums_plain(const fsi__sph_run *run, const fsi__record *z, int begin, int end,
    fsi__lane *sum)
{
    int i, k;
    for (i = begin; i < end; i++) {
        const int *list = run->list + run->first[i], padded = fsi__padded(run->size[i]);
        fsi__f8 all = fsi__f8_set(0);
        for (k = 0; k < padded; k += FSI_LANES) all = fsi__f8_add(all, fsi__sph_pair_density(z, list + k, &z[i]));
        sum[i - begin] = fsi__f8_sum(all);
    }
}
#if defined(FSI__AVX2)
FSI__AVX2 FSI__NOINLINE static void fsi__sph_density_sums_avx2(const fsi__sph_run *run, const fsi__record *z, int begin,
    int end, fsi__lane *sum)
{
    const __m256 unit = _mm256_set1_ps((float)FSI__COORD_UNIT), one = _mm256_set1_ps(1), zero = _mm256_setzero_ps();
    int i;
    for (i = begin; i < end; i++) {
        const int *list = run->list + run->first[i], *stop = list + fsi__padded(run->size[i]);
        __m256 all = zero;
        for (; list < stop; list += FSI_LANES) {
            __m256 dx, dy, dz, w, r2, q;
            fsi__avx2_gather(z, list, &z[i], &dx, &dy, &dz, &w);
            r2 = _mm256_add_ps(_mm256_add_ps(_mm256_mul_ps(dx, dx), _mm256_mul_ps(dy, dy)), _mm256_mul_ps(dz, dz));
            q = _mm256_max_ps(_mm256_sub_ps(one, _mm256_mul_ps(_mm256_sqrt_ps(r2), unit)), zero);
            all = _mm256_add_ps(all, _mm256_mul_ps(_mm256_mul_ps(q, q), q));
        }
        sum[i - begin] = fsi__avx2_sum(all);
    }
}
#endif
static void fsi__sph_density_sums(const fsi__sph_run *run, const fsi__record *z, int begin, int end, fsi__lane *sum)
{
#if defined(FSI__AVX2)
    if (fsi__has_avx2()) {
        fsi__sph_density_sums_avx2(run, z, begin, end, sum);
        return;
    }
#endif
    fsi__sph_density_sums_plain(run, z, begin, end, sum);
}

/* s_B lambda_B at u. */
static fsi__lane fsi__sph_wall_lambda(const fsi__sph_run *run, const fsi__sph_wall *w, const fsi__lane4 *u, int which)
{
    fsi__lane lambda = w->lambda, d[3];
    int k;
    if (!w->coupled) return lambda + fsi__lane_dot(w->g, u->x - w->at[0], u->y - w->at[1], u->z - w->at[2]);
    for (k = 0; k < w->part_count; k++) {
        fsi__sph_relative(run, w, k, u, which, d);
        lambda += fsi__lane_dot(w->part[k].g, d[0], d[1], d[2]);
    }
    return lambda;
}

/* Of rank i, which u has moved to z[i]; sum: that of fsi__sph_density_sums. */
static fsi__lane fsi__sph_density_of(const fsi__sph_run *run, int i, fsi__lane sum, const fsi__lane4 *u, int which)
{
    const int repeats = fsi__padded(run->size[i]) - run->size[i];
    const fsi__lane lambda = (fsi__lane)run->im->kernel.peak * (sum + (fsi__lane)(1 - repeats));
    return run->slot[i] >= 0 ? lambda + fsi__sph_wall_lambda(run, &run->wall[run->slot[i]], u, which) : lambda;
}

FSI_FN fsi__lane fsi__sph_pressure_of(fsi__lane lambda) { return lambda <= 1 ? 0 : lambda - 1; } /* NaN stays NaN */

/* Pair sums are made for blocks of ranks, whose records are in the cache when the rest of the pass reads them. */
#define FSI__SPH_BLOCK 64
#define FSI__SPH_AHEAD 8
FSI_FN int fsi__sph_block_end(int i, int end) { return i + FSI__SPH_BLOCK < end ? i + FSI__SPH_BLOCK : end; }

/* The walls of a rank are large: what a sweep reads of them, its head and the first contacts, is fetched some ranks
   ahead. */
FSI__HOST_FN void fsi__sph_fetch_wall(const fsi__sph_run *run, int i, int end)
{
    const int k = i + FSI__SPH_AHEAD;
    const char *wall;
    if (k >= end || run->slot[k] < 0) return;
    wall = (const char *)&run->wall[run->slot[k]];
    FSI__PREFETCH(wall);
    FSI__PREFETCH(wall + 64);
    FSI__PREFETCH(wall + 128);
}

/* Adds its part to the energy. */
FSI__HOST_FN double fsi__sph_add_energy(const fsi__sph_run *run, double energy, int i, fsi__lane p, const fsi__lane4 *u,
                                        int which)
{
    const fsi__lane4 *star = &run->star[i];
    const fsi__lane dx = u->x - star->x, dy = u->y - star->y, dz = u->z - star->z;
    energy += 0.5 * (double)(dx * dx + dy * dy + dz * dz) + 0.5 * run->mu * (double)p * (double)p;
    return run->slot[i] >= 0 ? energy + fsi__sph_contacts_at(run, &run->wall[run->slot[i]], -1, u, which).energy
                             : energy;
}

/* x* as a displacement, where pairs may be that far off; else no displacement. */
FSI_FN fsi__lane4 fsi__sph_star_of(const fsi__sph_run *run, int r)
{
    const fsi__lane4 star = run->star[r];
    const fsi__lane bound = (fsi__lane)FSI__SPH_SKIN;
    return star.x * star.x + star.y * star.y + star.z * star.z < bound * bound ? star : fsi__lane4_make(0, 0, 0);
}

/* What the energy would be at x*, in bank 2. Coupled bodies have q there. */
static void fsi__sph_star_energy(fsi__sph_run *run, int chunk, int begin, int end)
{
    fsi__lane sum[FSI__SPH_BLOCK];
    double energy = 0;
    int i;
    for (i = begin; i < end; i++) {
        const fsi__lane4 u = fsi__sph_star_of(run, i);
        const int k = (i - begin) % FSI__SPH_BLOCK;
        fsi__lane p;
        if (k == 0) fsi__sph_density_sums(run, run->z, i, fsi__sph_block_end(i, end), sum);
        fsi__sph_fetch_wall(run, i, end);
        p = fsi__sph_pressure_of(fsi__sph_density_of(run, i, sum[k], &u, FSI__SPH_AT_U));
        energy = fsi__sph_add_energy(run, energy, i, p, &u, FSI__SPH_AT_U);
    }
    fsi__sph_put_sums_at(run, chunk, 2, energy, 0, 0, 0);
}

static void fsi__sph_density(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    const fsi__record *z = run->outset == FSI__SPH_AT_GUESS || run->outset == FSI__SPH_AT_BOTH ? run->base : run->z;
    fsi__lane sum[FSI__SPH_BLOCK];
    double energy = 0, compression = 0, most = 0;
    int i;
    if (run->due) fsi__sph_walls_range(run, chunk, begin, end);
    if (run->refresh) fsi__sph_refresh_walls(run, chunk, begin, end);
    for (i = begin; i < end && run->outset == FSI__SPH_AT_STAR; i++) run->u[i] = run->uz[i] = fsi__sph_star_of(run, i);
    for (i = begin; i < end; i++) {
        const int k = (i - begin) % FSI__SPH_BLOCK;
        fsi__lane lambda, p;
        if (k == 0) fsi__sph_density_sums(run, z, i, fsi__sph_block_end(i, end), sum);
        fsi__sph_fetch_wall(run, i, end);
        lambda = fsi__sph_density_of(run, i, sum[k], &run->uz[i], FSI__SPH_AT_Z);
        p = fsi__sph_pressure_of(lambda);
        energy = fsi__sph_add_energy(run, energy, i, p, &run->uz[i], FSI__SPH_AT_Z);
        run->lambda[i] = lambda;
        run->zp[i] = z[i];
        run->zp[i].w = p;
        compression += (double)p;
        if ((double)p > most) most = (double)p;
    }
    fsi__sph_put_sums(run, chunk, energy, compression, most, 0);
    if (run->outset == FSI__SPH_AT_BOTH) fsi__sph_star_energy(run, chunk, begin, end);
}

/* Sums over pairs: f = sum (p_i + p_j) (1-q)^2/q d, e = sum a_ij (1-q)^2/q (sph.md 6). Pairs nearer than 1e-6 H are
   left out: they have no direction. */
FSI_FN void fsi__sph_pair_gradient(const fsi__record *zp, const int *list, const fsi__record *at, fsi__f8 self,
    fsi__f8 mine, fsi__f8 its, fsi__lane_sums *sum)
{
    const fsi__f8 unit = fsi__f8_set((fsi__lane)FSI__COORD_UNIT), one = fsi__f8_set(1), zero = fsi__f8_set(0),
                  tiny = fsi__f8_set((fsi__lane)(1e-6 / FSI__COORD_UNIT));
    fsi__f8 dx, dy, dz, p, r2, r, q, w, f;
    fsi__f8_gather(zp, list, at, &dx, &dy, &dz, &p);
    r2 = fsi__f8_add(fsi__f8_add(fsi__f8_mul(dx, dx), fsi__f8_mul(dy, dy)), fsi__f8_mul(dz, dz));
    r = fsi__f8_sqrt(r2);
    q = fsi__f8_max(fsi__f8_sub(one, fsi__f8_mul(r, unit)), zero);
    w = fsi__f8_if_greater(r, tiny, fsi__f8_div(fsi__f8_mul(q, q), fsi__f8_max(r, tiny)));
    f = fsi__f8_mul(fsi__f8_add(self, p), w);
    sum->x = fsi__f8_add(sum->x, fsi__f8_mul(f, dx));
    sum->y = fsi__f8_add(sum->y, fsi__f8_mul(f, dy));
    sum->z = fsi__f8_add(sum->z, fsi__f8_mul(f, dz));
    sum->d = fsi__f8_add(sum->d, fsi__f8_mul(w, fsi__f8_add(mine, fsi__f8_if_greater(p, zero, its))));
}

/* Parts of a pair in the diagonal, e: that of each, and more for each particle of it that is under pressure. */
FSI_FN fsi__lane fsi__sph_pair_idle(const fsi__sph_run *run)
{
    return run->s->desc.full_diagonal ? 2 : (fsi__lane)FSI__SPH_PAIR_IDLE;
}
FSI_FN fsi__lane fsi__sph_pair_pressed(const fsi__sph_run *run)
{
    return run->s->desc.full_diagonal ? 0 : (fsi__lane)FSI__SPH_PAIR_PRESSED;
}

/* These sums for ranks begin .. end-1: x, y, z: f; w: e; sum[i - begin]. */
FSI__NOINLINE static void fsi__sph_gradient_sums_plain(const fsi__sph_run *run, int begin, int end, fsi__lane4 *sum)
{
    const fsi__lane idle = fsi__sph_pair_idle(run), pressed = fsi__sph_pair_pressed(run);
    int i, k;
    for (i = begin; i < end; i++) {
        const int *list = run->list + run->first[i], size = fsi__padded(run->size[i]);
        const fsi__record *at = &run->zp[i];
        const fsi__f8 self = fsi__f8_set(at->w), mine = fsi__f8_set(at->w > 0 ? idle + pressed : idle),
                      its = fsi__f8_set(pressed);
        fsi__lane_sums all;
        all.x = all.y = all.z = all.d = fsi__f8_set(0);
        for (k = 0; k < size; k += FSI_LANES) fsi__sph_pair_gradient(run->zp, list + k, at, self, mine, its, &all);
        sum[i - begin].x = fsi__f8_sum(all.x);
        sum[i - begin].y = fsi__f8_sum(all.y);
        sum[i - begin].z = fsi__f8_sum(all.z);
        sum[i - begin].w = fsi__f8_sum(all.d);
    }
}
#if defined(FSI__AVX2)
FSI__AVX2 FSI__NOINLINE static void fsi__sph_gradient_sums_avx2(const fsi__sph_run *run, int begin, int end,
    fsi__lane4 *sum)
{
    const __m256 unit = _mm256_set1_ps((float)FSI__COORD_UNIT), one = _mm256_set1_ps(1), zero = _mm256_setzero_ps(),
                 tiny = _mm256_set1_ps((float)(1e-6 / FSI__COORD_UNIT)),
                 its = _mm256_set1_ps(fsi__sph_pair_pressed(run));
    const float idle = fsi__sph_pair_idle(run), pressed = fsi__sph_pair_pressed(run);
    int i;
    for (i = begin; i < end; i++) {
        const int *list = run->list + run->first[i], *stop = list + fsi__padded(run->size[i]);
        const fsi__record *at = &run->zp[i];
        const __m256 self = _mm256_set1_ps(at->w), mine = _mm256_set1_ps(at->w > 0 ? idle + pressed : idle);
        __m256 x = zero, y = zero, z = zero, e = zero;
        for (; list < stop; list += FSI_LANES) {
            __m256 dx, dy, dz, p, r, q, w, f;
            fsi__avx2_gather(run->zp, list, at, &dx, &dy, &dz, &p);
            r = _mm256_sqrt_ps(_mm256_add_ps(_mm256_add_ps(_mm256_mul_ps(dx, dx), _mm256_mul_ps(dy, dy)),
                                             _mm256_mul_ps(dz, dz)));
            q = _mm256_max_ps(_mm256_sub_ps(one, _mm256_mul_ps(r, unit)), zero);
            w = _mm256_and_ps(_mm256_cmp_ps(r, tiny, _CMP_GT_OQ),
                              _mm256_div_ps(_mm256_mul_ps(q, q), _mm256_max_ps(r, tiny)));
            f = _mm256_mul_ps(_mm256_add_ps(self, p), w);
            x = _mm256_add_ps(x, _mm256_mul_ps(f, dx));
            y = _mm256_add_ps(y, _mm256_mul_ps(f, dy));
            z = _mm256_add_ps(z, _mm256_mul_ps(f, dz));
            p = _mm256_and_ps(_mm256_cmp_ps(p, zero, _CMP_GT_OQ), its);
            e = _mm256_add_ps(e, _mm256_mul_ps(w, _mm256_add_ps(mine, p)));
        }
        _mm_storeu_ps(&sum[i - begin].x, fsi__avx2_sums(x, y, z, e));
    }
}
#endif
static void fsi__sph_gradient_sums(const fsi__sph_run *run, int begin, int end, fsi__lane4 *sum)
{
#if defined(FSI__AVX2)
    if (fsi__has_avx2()) {
        fsi__sph_gradient_sums_avx2(run, begin, end, sum);
        return;
    }
#endif
    fsi__sph_gradient_sums_plain(run, begin, end, sum);
}

/* Pressure of the neighbours as a displacement, from these sums: x, y, z [H]; w: their part of the diagonal. */
FSI_FN fsi__lane4 fsi__sph_pressure_from(const fsi__sph_run *run, fsi__lane4 sum)
{
    const fsi__lane scale = (fsi__lane)(3 * run->mu * run->im->kernel.peak);
    sum.x = -scale * sum.x; /* f d has no unit: d and 1/r are both in coordinate steps */
    sum.y = -scale * sum.y;
    sum.z = -scale * sum.z;
    sum.w = scale * sum.w * (fsi__lane)(1 / FSI__COORD_UNIT);
    return sum;
}
static fsi__lane4 fsi__sph_pressure_on(const fsi__sph_run *run, int i)
{
    fsi__lane4 sum;
    fsi__sph_gradient_sums(run, i, i + 1, &sum);
    return fsi__sph_pressure_from(run, sum);
}

/* What the walls add at u: boundary integral and contact (sph.md 4, 5). */
static fsi__lane4 fsi__sph_wall_on(const fsi__sph_run *run, const fsi__sph_wall *w, const fsi__lane4 *u, fsi__lane p)
{
    const fsi__lane mu = (fsi__lane)run->mu;
    fsi__sph_push push = fsi__sph_contacts(run, w, -1, u);
    fsi__lane4 out;
    out.x = (fsi__lane)push.x - mu * p * w->g[0];
    out.y = (fsi__lane)push.y - mu * p * w->g[1];
    out.z = (fsi__lane)push.z - mu * p * w->g[2];
    out.w = (fsi__lane)push.diagonal + (p > 0 || run->s->desc.full_diagonal ? mu * w->diagonal : 0);
    return out;
}

/* Contribution of part k: its force and its part of the diagonal. */
static void fsi__sph_part_force(const fsi__sph_run *run, fsi__sph_wall *w, int k, const fsi__lane4 *u, fsi__lane p)
{
    const fsi__lane mu = (fsi__lane)run->mu;
    fsi__sph_push push = fsi__sph_contacts(run, w, k, u);
    fsi__sph_part *part = &w->part[k];
    part->force[0] = (fsi__lane)push.x - mu * p * part->g[0];
    part->force[1] = (fsi__lane)push.y - mu * p * part->g[1];
    part->force[2] = (fsi__lane)push.z - mu * p * part->g[2];
    part->weight = (fsi__lane)push.diagonal + (p > 0 || run->s->desc.full_diagonal ? mu * part->diagonal : 0);
}

/* What each obstacle does to the particles near coupled bodies, at z. */
static void fsi__sph_part_forces(fsi__sph_run *run, int begin, int end)
{
    int r, k;
    for (r = begin; r < end; r++) {
        fsi__sph_wall *w = fsi__sph_wall_of(run, r);
        for (k = 0; w && w->coupled && k < w->part_count; k++)
            fsi__sph_part_force(run, w, k, &run->uz[r], run->zp[r].w);
    }
}

/* r_i = (x* - x) + pressure + walls = -(dt^2/m) dE/dx_i, D_i its diagonal, step = r/D (sph.md 6, equation 28
   rewritten). Sums: restart test (z - y).D(y - x), lengths of the steps, largest of them (third), lengths of x - x*. */
static void fsi__sph_gradient(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    const fsi__lane omega = (fsi__lane)run->omega;
    fsi__lane4 sum[FSI__SPH_BLOCK];
    double restart = 0, steps = 0, most = 0, corrections = 0;
    int i;
    for (i = begin; i < end; i++) {
        /* Pressure of the neighbours, and the walls (sph.md 4, 6). */
        const fsi__lane4 *uz = &run->uz[i], *u = &run->u[i], *star = &run->star[i];
        const int k = (i - begin) % FSI__SPH_BLOCK;
        fsi__lane4 f, t;
        fsi__lane length;
        if (k == 0) fsi__sph_gradient_sums(run, i, fsi__sph_block_end(i, end), sum);
        fsi__sph_fetch_wall(run, i, end);
        f = fsi__sph_pressure_from(run, sum[k]);
        if (run->slot[i] >= 0) {
            t = fsi__sph_wall_on(run, &run->wall[run->slot[i]], uz, run->zp[i].w);
            f.x += t.x;
            f.y += t.y;
            f.z += t.z;
            f.w += t.w;
        }

        /* Inertia: x* - x, with 1 on the diagonal; the step is r/D. */
        f.w += 1;
        t.x = star->x - uz->x;
        t.y = star->y - uz->y;
        t.z = star->z - uz->z;
        corrections += sqrt((double)(t.x * t.x + t.y * t.y + t.z * t.z));
        t.x = (t.x + f.x) / f.w;
        t.y = (t.y + f.y) / f.w;
        t.z = (t.z + f.z) / f.w;

        /* Particles still moved by their emitter move as a piston, whatever the pressure. */
        if (run->holding > 0 && fsi__sph_held(run, run->order[i])) t.x = t.y = t.z = 0;

        /* No particle moves by more than STEP_MAX in one sweep. */
        length = (fsi__lane)sqrt((double)(t.x * t.x + t.y * t.y + t.z * t.z));
        if (length > (fsi__lane)FSI__SPH_STEP_MAX) {
            fsi__lane shrink = (fsi__lane)FSI__SPH_STEP_MAX / length;
            t.x *= shrink;
            t.y *= shrink;
            t.z *= shrink;
        }
        t.w = f.w;

        /* The restart test, (z - y).D(y - x) with y = z + omega t, and the sums of lengths. */
        run->step[i] = t;
        restart -= (double)f.w * (double)(t.x * (uz->x + omega * t.x - u->x) + t.y * (uz->y + omega * t.y - u->y) +
                                          t.z * (uz->z + omega * t.z - u->z));
        steps += (double)length;
        if ((double)length > most) most = (double)length;
    }
    fsi__sph_put_sums(run, chunk, restart, steps, most, corrections);
    if (run->bodies.coupled_count) fsi__sph_part_forces(run, begin, end);
}

/* N and kappa of one particle's contacts after a sweep (sph.md 5, equations 31, 32). Returns 1 when they changed. */
static int fsi__sph_adapt(const fsi__sph_run *run, fsi__sph_wall *w, const fsi__lane4 *u, fsi__lane p)
{
    double most = 0, sx = 0, sy = 0, sz = 0, press = 0, slope, kappa, fx = -(double)(w->g[0] * p) * run->mu,
           fy = -(double)(w->g[1] * p) * run->mu, fz = -(double)(w->g[2] * p) * run->mu;
    int c, inside = 0, was = w->inside;

    /* Still inside after a sweep: double the order N (equation 31). */
    for (c = 0; c < w->contact_count; c++) inside |= fsi__sph_gamma(run, w, c, u, FSI__SPH_AT_U) < 0;
    w->inside = inside;
    if (was && inside && w->order < run->s->desc.contact_max_order) {
        w->order = 2 * w->order < run->s->desc.contact_max_order ? 2 * w->order : run->s->desc.contact_max_order;
        return 1;
    }
    if (!was || inside) return 0;

    /* Just came out: the contacts are to press as hard as the liquid does. Slope of their potentials, over kappa,
       and the largest pressure along a normal. */
    for (c = 0; c < w->contact_count; c++) {
        const fsi__lane *n = w->contact[c].n;
        double g = fsi__sph_gamma(run, w, c, u, FSI__SPH_AT_U), cm, cp,
               along = -(fx * (double)n[0] + fy * (double)n[1] + fz * (double)n[2]);
        if (!(g < 1)) continue;
        fsi_sph_contact(g, run->s->desc.contact_first, w->order, &cm, &cp);
        sx += (cp * g - cm) / run->dhat * (double)n[0];
        sy += (cp * g - cm) / run->dhat * (double)n[1];
        sz += (cp * g - cm) / run->dhat * (double)n[2];
        if (along > press) press = along;
        if ((1 - g) * run->dhat > most) most = (1 - g) * run->dhat;
    }

    /* kappa = pressure/slope (equation 32), within kappa0 to 100 kappa0. */
    slope = sqrt(sx * sx + sy * sy + sz * sz);
    kappa = (press + most) / (slope > 1e-12 ? slope : 1e-12);
    kappa = kappa < run->kappa0 ? run->kappa0 : kappa > 100 * run->kappa0 ? 100 * run->kappa0 : kappa;
    if ((double)w->kappa == kappa) return 0;
    w->kappa = (fsi__lane)kappa;
    return 1;
}

FSI_FN fsi__record fsi__sph_moved(const fsi__record *base, const fsi__lane4 *u)
{
    fsi__record r;
#if defined(FSI_LANES_DOUBLE)
    r.x = base->x + u->x;
    r.y = base->y + u->y;
    r.z = base->z + u->z;
#else
    const fsi__lane steps = (fsi__lane)(1 / FSI__COORD_UNIT);
    r.x = (int32_t)((uint32_t)base->x + (uint32_t)(int32_t)(u->x * steps));
    r.y = (int32_t)((uint32_t)base->y + (uint32_t)(int32_t)(u->y * steps));
    r.z = (int32_t)((uint32_t)base->z + (uint32_t)(int32_t)(u->z * steps));
#endif
    r.w = 0;
    return r;
}

/* y = z + omega step; z = y + beta (y - x); x = y. Displacements stay below 2 H, since sweeps are short and lists are
   made anew after a move of skin H: coordinates do not wrap.
   Sums: walls whose N or kappa changed, walls to evaluate anew; largest: the squared displacement since the lists were
   made. */
static void fsi__sph_update(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    const fsi__lane omega = (fsi__lane)run->omega, beta = (fsi__lane)run->beta;
    double changed = 0, stale = 0, drift = 0;
    int i;
    for (i = begin; i < end; i++) {
        fsi__lane4 *u = &run->u[i], *uz = &run->uz[i], y, t = run->step[i];
        fsi__sph_fetch_wall(run, i, end);

        /* Step and extrapolation. */
        y.x = uz->x + omega * t.x;
        y.y = uz->y + omega * t.y;
        y.z = uz->z + omega * t.z;
        y.w = 0;
        uz->x = y.x + beta * (y.x - u->x);
        uz->y = y.y + beta * (y.y - u->y);
        uz->z = y.z + beta * (y.z - u->z);

        /* The new point as coordinates, and its distance from where the lists were made. */
        *u = y;
        run->z[i] = fsi__sph_moved(&run->base[i], uz);
        y.w = uz->x * uz->x + uz->y * uz->y + uz->z * uz->z;
        if ((double)y.w > drift) drift = (double)y.w;

        /* Walls: is the particle too far from where its wall was linearised; do N or kappa change? */
        if (run->slot[i] >= 0) {
            fsi__sph_wall *w = &run->wall[run->slot[i]];
            fsi__lane dx = uz->x - w->at[0], dy = uz->y - w->at[1], dz = uz->z - w->at[2];
            stale += dx * dx + dy * dy + dz * dz > (fsi__lane)(FSI__SPH_MOVE * FSI__SPH_MOVE);
            changed += fsi__sph_adapt(run, w, u, run->zp[i].w);
        }
    }
    fsi__sph_put_sums(run, chunk, changed, stale, drift, 0);
}

/* ---- >>moving obstacles --------------------------------------------------------------------------------------- */

/* Sweeps an obstacle through the substep, from where the last step left it, which need not be where it left others of
   its body. */
static void fsi__sph_move_along(const fsi__sph_run *run, fsi__sph_obstacle *o, const fsi__sph_body *b)
{
    if (b->coupled) fsi__mesh_follow_rigid(o->base.shadow, o->base.rest, run->done > 0 ? b->from : o->base.at, b->at);
    else fsi__mesh_follow_rigid(o->base.shadow, o->base.rest, fsi__pose_on_the_way(&b->work, o->base.at, run->done),
        fsi__pose_on_the_way(&b->work, o->base.at, run->done + run->share));
}

/* Puts the obstacles where this substep ends, as far as that is known, sweeping them there from where it begins. */
static void fsi__sph_move_obstacles(fsi__sph_run *run, int coupled_only)
{
    double clock = fsi__now(run->s->context);
    int k;
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi__sph_obstacle *o = &run->im->obstacle[k];
        const fsi__sph_body *b = o->base.body >= 0 ? &run->bodies.body[o->base.body] : NULL;
        if (!o->base.moves || (coupled_only && !(b && b->coupled))) continue;
        if (b) fsi__sph_move_along(run, o, b);
        else fsi__obstacle_follow(&o->base, run->done, run->share);
        run->stats.refits++;
    }
    fsi__sph_lap(run, &run->stats.seconds_motion, &clock);
}

/* ---- >>faces within reach ------------------------------------------------------------------------------------- */

/* Faces for ranks begin .. end-1, or for `i` alone when the group has too many. */
static void fsi__sph_group_faces(fsi__sph_run *run, int begin, int end, fsi_real reach, fsi__faces *faces)
{
    fsi_box3 box = fsi_box3_empty();
    uint32_t filter = 0;
    int r;
    for (r = begin; r < end; r++) {
        int i = run->order[r];
        box = fsi_box3_join(box, fsi__path_box(run->x[i], run->guess[i], reach));
        filter |= run->s->filter[i];
    }
    if (!fsi__find_faces(&run->im->obstacles, box, filter, faces)) faces->count = -1; /* one by one */
}

/* Faces for particle i on its way to x: those of its group whose box its own meets, or a search of its own. */
static const fsi__faces *fsi__sph_own_faces(fsi__sph_run *run, int chunk, const fsi__faces *group, fsi__faces *own,
    int i, fsi_vec3 x, fsi_real reach)
{
    if (!fsi__own_faces(&run->im->obstacles, group, fsi__path_box(run->x[i], x, reach), run->s->filter[i], own)) {
        if (!run->overflow[chunk]) run->overflow[chunk] = i + 1;
        own->count = 0;
    }
    return own;
}

/* ---- >>placement ---------------------------------------------------------------------------------------------- */

/* A correction moves all of the substep: where it starts, where inertia would take it. It gives no velocity. */
static void fsi__sph_force(fsi__sph_run *run, int i, fsi_vec3 guess)
{
    run->target[i] = fsi_v3_add(run->target[i], fsi_v3_sub(run->guess[i], guess));
    run->x[i] = run->guess[i];
}

/* Start positions: the predicted ones (plus the last correction), outside the solids along the path. */
static void fsi__sph_place_start(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    const fsi_real reach = (fsi_real)(0.05 * run->h);
    fsi__faces group, own;
    int g, r;
    for (g = begin; g < end; g += FSI__SPH_GROUP) {
        /* The faces near the group. */
        int stop = g + FSI__SPH_GROUP < end ? g + FSI__SPH_GROUP : end;
        fsi__sph_group_faces(run, g, stop, reach, &group);

        /* Its particles: one that starts outside the domain is moved inside; one that passes a face on its path from
           x to the guess stops before it. Where that needs a correction of the start, x* follows. */
        for (r = g; r < stop; r++) {
            const int i = run->order[r], held = fsi__sph_held(run, i);
            const int astray = !held && fsi__walls_leave_out(&run->walls, run->s->filter[i], run->x[i]);
            const fsi_vec3 guess = run->guess[i];
            run->state[i] = FSI__FREE;
            if (fsi__sph_ghost(run, i) || (group.count == 0 && !astray)) continue;
            if (astray) run->state[i] = (unsigned char)fsi__squeeze(&run->walls, run->s->filter[i], run->x[i],
                run->x[i], &run->guess[i]);
            else {
                fsi__sph_own_faces(run, chunk, group.count < 0 ? NULL : &group, &own, i, guess, reach);
                run->state[i] = (unsigned char)fsi__place(&run->walls, &own, run->s->filter[i], run->x[i], reach,
                    &run->guess[i]);
            }
            if (run->state[i] & FSI__FORCED) fsi__sph_force(run, i, guess);
        }
    }
}

/* ---- >>walls of one particle ---------------------------------------------------------------------------------- */

/* The position of x relative to a body, and the body's displacement there so far. */
static void fsi__sph_make_arm(const fsi__sph_run *run, fsi__sph_part *part, fsi_vec3 x)
{
    const fsi__sph_body *body = &run->bodies.body[part->body];
    fsi_vec3 a = fsi_v3_scale(fsi_v3_sub(x, body->at.position), (fsi_real)(1 / run->h));
    part->arm[0] = (fsi__lane)a.x;
    part->arm[1] = (fsi__lane)a.y;
    part->arm[2] = (fsi__lane)a.z;
    fsi__sph_way(body->qz, part->arm, part->moved);
}

static void fsi__sph_make_parts(const fsi__sph_run *run, const fsi__sph_view *view, const fsi__sph_integral *sum,
                                double scale, fsi__sph_wall *w)
{
    int j, k;
    w->coupled = 0;
    w->part_count = view->part_count;
    w->crowded = view->crowded;
    for (j = 0; j < view->part_count; j++) {
        /* The obstacle, its body and the closest point on it. */
        fsi__sph_part *part = &w->part[j];
        const fsi_mesh_hit *hit = &view->part_hit[j];
        const int body = run->im->obstacle[view->part_owner[j]].base.body;
        memset(part, 0, sizeof *part);
        part->owner = view->part_owner[j];
        part->body = body >= 0 && run->bodies.body[body].coupled ? body : -1;
        part->face = hit->face;

        /* Its boundary integral, which is added to that of the wall. */
        part->diagonal = (fsi__lane)(scale * sum[j].diagonal);
        w->diagonal += part->diagonal;
        w->lambda += (fsi__lane)(scale * sum[j].lambda);
        for (k = 0; k < 3; k++) {
            part->bary[k] = (fsi__lane)hit->bary[k];
            w->g[k] += part->g[k] = (fsi__lane)(scale * sum[j].g[k]);
        }

        /* A coupled body: the lever arm of its displacement here. */
        if (part->body < 0) continue;
        w->coupled = 1;
        fsi__sph_make_arm(run, part, view->x);
    }
}

/* Everything the walls do to a particle that came from `from` and is at x, displacement u. */
static void fsi__sph_make_wall(const fsi__sph_run *run, const fsi__faces *faces, fsi_vec3 from, fsi_vec3 x,
    const fsi__lane4 *u, fsi__sph_wall *w)
{
    const double scale = run->s->desc.wall_calibrate ? run->im->kernel.wall : 1;
    fsi__sph_view view;
    fsi__sph_integral sum[FSI_SPH_PARTS];
    fsi__sph_look_around(&run->scene, faces, from, x, &view);
    fsi__sph_integrate(&run->scene, faces, &view, sum);
    w->lambda = (fsi__lane)(scale * view.inside);
    w->g[0] = w->g[1] = w->g[2] = w->diagonal = 0;
    fsi__sph_make_parts(run, &view, sum, scale, w);
    w->at[0] = u->x;
    w->at[1] = u->y;
    w->at[2] = u->z;
    w->clear = (fsi__lane)(view.inside ? 0 : (double)view.closest / run->h);
    fsi__sph_make_contacts(&run->scene, view.close_by, view.near_count, x, w);
}

/* Coupled bodies stand at `at` for the queries: a place seen from one that has moved since. */
static fsi_vec3 fsi__sph_seen(const fsi__sph_run *run, const fsi__sph_wall *w, fsi_vec3 x)
{
    int k;
    for (k = 0; k < w->part_count; k++) {
        fsi__lane way[3];
        if (w->part[k].body < 0) continue;
        fsi__sph_way(run->bodies.body[w->part[k].body].qz, w->part[k].arm, way);
        return fsi_v3_madd(x, (fsi_real)-run->h, fsi_v3((fsi_real)way[0], (fsi_real)way[1], (fsi_real)way[2]));
    }
    return x;
}

FSI_FN fsi_vec3 fsi__sph_world(const fsi__sph_run *run, int i, const fsi__lane4 *u)
{
    const fsi_real h = (fsi_real)run->h;
    return fsi_v3_add(run->guess[i], fsi_v3(h * (fsi_real)u->x, h * (fsi_real)u->y, h * (fsi_real)u->z));
}

/* Which groups of ranks have faces within reach. */
static void fsi__sph_mark_groups(fsi__sph_run *run, int begin, int end)
{
    fsi__faces faces;
    int g;
    for (g = begin; g < end; g += FSI__SPH_GROUP) {
        fsi__sph_group_faces(run, g, g + FSI__SPH_GROUP < end ? g + FSI__SPH_GROUP : end, (fsi_real)run->h, &faces);
        run->group_slot[g / FSI__SPH_GROUP] = faces.count == 0 ? -1 : 0;
    }
}

/* Walls of all particles near faces, at the lists' positions. */
static void fsi__sph_make_walls(fsi__sph_run *run, int chunk, int begin, int end)
{
    const fsi_real reach = (fsi_real)run->h;
    fsi__faces group, own;
    int g, r;
    for (g = begin; g < end; g += FSI__SPH_GROUP) {
        int stop = g + FSI__SPH_GROUP < end ? g + FSI__SPH_GROUP : end, slot = run->group_slot[g / FSI__SPH_GROUP];
        for (r = g; r < stop; r++) run->slot[r] = slot < 0 ? -1 : slot + r - g;
        if (slot < 0) continue;
        fsi__sph_group_faces(run, g, stop, reach, &group);
        for (r = g; r < stop; r++) {
            fsi__sph_wall *w = &run->wall[run->slot[r]];
            int i = run->order[r];
            w->order = run->s->desc.contact_order;
            w->kappa = (fsi__lane)(run->kappa0 * (double)run->kappa[i]);
            w->inside = w->placed = 0;
            fsi__sph_make_wall(
                run, fsi__sph_own_faces(run, chunk, group.count < 0 ? NULL : &group, &own, i, run->guess[i], reach),
                run->x[i], run->guess[i], &run->uz[r], w);
        }
    }
}

/* Walls again for particles that moved too far from where theirs were made. Bank 1: their number. */
static void fsi__sph_refresh_walls(fsi__sph_run *run, int chunk, int begin, int end)
{
    const double limit = run->s->desc.always_reevaluate ? -1 : FSI__SPH_MOVE * FSI__SPH_MOVE;
    fsi__faces faces;
    int r, done = 0;
    for (r = begin; r < end; r++) {
        const fsi__lane4 *u = &run->uz[r];
        fsi__sph_wall *w;
        fsi__lane dx, dy, dz;
        fsi_vec3 x;
        if (run->slot[r] < 0) continue;
        w = &run->wall[run->slot[r]];
        dx = u->x - w->at[0];
        dy = u->y - w->at[1];
        dz = u->z - w->at[2];
        if (!((double)(dx * dx + dy * dy + dz * dz) > limit)) continue;
        x = fsi__sph_seen(run, w, fsi__sph_world(run, run->order[r], u));
        fsi__sph_make_wall(run, fsi__sph_own_faces(run, chunk, NULL, &faces, run->order[r], x, (fsi_real)run->h),
                           run->x[run->order[r]], x, u, w);
        w->clear = 0; /* its path from there may have crossed a face */
        done++;
    }
    fsi__sph_put_sums_at(run, chunk, 1, done, 0, 0, 0);
}

/* Has a particle moved less, relative to each obstacle near it, than its distance was from all of them? */
static int fsi__sph_cleared(const fsi__sph_run *run, const fsi__sph_wall *w, const fsi__lane4 *u)
{
    int k = 0;
    do {
        fsi__lane d[3];
        fsi__sph_relative(run, w, k, u, FSI__SPH_AT_Z, d);
        if (!(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] < (fsi__lane)0.98 * w->clear * w->clear)) return 0;
    } while (++k < w->part_count);
    return 1;
}

/* Is rank r, which is free of the obstacles that its wall knows, deep in another one? */
static int fsi__sph_is_deep(const fsi__sph_run *run, int r)
{
    const int i = run->order[r];
    const fsi__sph_wall *w = fsi__sph_wall_of(run, r);
    int o, k;
    for (o = 0; o < run->im->obstacles.count; o++) {
        const fsi__sph_obstacle *obstacle = &run->im->obstacle[o];
        if (obstacle->base.given == run->im->domain || !(obstacle->base.mask & run->s->filter[i])) continue;
        for (k = 0; w && k < w->part_count && w->part[k].owner != o; k++) {}
        if (w && k < w->part_count) continue;
        if (fsi__inside_of(&obstacle->base, run->target[i]).face >= 0) return 1;
    }
    return 0;
}

/* At the end of a step: how many of ranks begin .. end-1, a group, are too deep in a solid to be led out. Where no face
   is near, one of them speaks for all with its filter. */
static int fsi__sph_count_deep(const fsi__sph_run *run, int begin, int end)
{
    const int alone = run->group_slot[begin / FSI__SPH_GROUP] < 0;
    int r, known = -1, deep = 0, count = 0;
    for (r = begin; r < end; r++) {
        const int i = run->order[r];
        if (fsi__sph_ghost(run, i) || fsi__sph_held(run, i) || (run->state[i] & FSI__PINCHED)) continue;
        if (!alone || known < 0 || run->s->filter[i] != run->s->filter[known]) deep = fsi__sph_is_deep(run, r);
        known = i;
        count += deep;
    }
    return count;
}

/* End position of rank r, taken out of the solids where the solve left it inside. */
static int fsi__sph_place_rank(fsi__sph_run *run, int chunk, int r, fsi__faces *faces)
{
    const int i = run->order[r];
    const fsi_real reach = (fsi_real)run->h;
    fsi__sph_own_faces(run, chunk, NULL, faces, i, run->target[i], reach);
    return fsi__place(&run->walls, faces, run->s->filter[i], run->x[i], reach, &run->target[i]);
}

/* End positions out of solids. Particles that have moved less than the distance from the nearest face that was last
   measured, at a free position, are skipped. Sums: placed, pinched. */
static void fsi__sph_place_end(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    fsi__faces faces;
    int r, placed = 0, pinched = 0;
    for (r = begin; r < end; r++) {
        const int i = run->order[r];
        fsi__sph_wall *w = run->slot[r] >= 0 ? &run->wall[run->slot[r]] : NULL;
        int state;
        run->target[i] = fsi__sph_world(run, i, &run->u[r]);
        state = run->state[i];
        run->state[i] = FSI__FREE;
        if (!(state & FSI__PINCHED) && (!w || fsi__sph_ghost(run, i)
            || (!w->inside && fsi__sph_cleared(run, w, &run->u[r])))) continue;
        state = fsi__sph_place_rank(run, chunk, r, &faces);
        run->state[i] = (unsigned char)state;
        if (w) w->placed = (state & FSI__PLACED) != 0;
        placed += (state & FSI__PLACED) != 0;
        pinched += (state & FSI__PINCHED) != 0;
    }
    for (r = begin; r < end && run->done + run->share > 1 - 1e-9; r += FSI__SPH_GROUP)
        pinched += fsi__sph_count_deep(run, r, r + FSI__SPH_GROUP < end ? r + FSI__SPH_GROUP : end);
    fsi__sph_put_sums(run, chunk, placed, pinched, 0, 0);
}

static void fsi__sph_find_normal(fsi__sph_run *run, int r, double *unused);
static void fsi__sph_start_tension(fsi__sph_run *run);
static void fsi__sph_viscous_begin(fsi__sph_run *run, int r, double *unused);
static void fsi__sph_viscous_weights(fsi__sph_run *run);

/* ---- >>the solve ---------------------------------------------------------------------------------------------- */

/* Velocities and positions without pressure: v* = v + dt (g + f/m), x* = x + dt v*; the guess adds the last correction.
   Particles that emitters hold keep their velocity. Sums: dt (g + f/m). */
static void fsi__sph_predict(fsi__sph_run *run, int chunk, int begin, int end)
{
    const fsi_real dt = (fsi_real)run->dt, per_mass = 1 / run->s->particle_mass,
                   longest = (fsi_real)(FSI__SPH_STEP_MAX * run->h);
    double sum[3] = { 0, 0, 0 };
    int i;
    for (i = begin; i < end; i++) {
        const fsi_vec3 pull = fsi_v3_madd(run->s->desc.gravity, per_mass, run->s->force[i]);
        fsi_vec3 a = fsi__sph_held(run, i) ? fsi_v3(0, 0, 0) : pull, shift = fsi_v3_scale(run->warm[i], dt * dt);
        fsi_real length = fsi_v3_norm(shift);
        run->v[i] = fsi_v3_madd(run->v[i], dt, a);
        if (run->s->desc.dim == 2) run->x[i].z = run->v[i].z = shift.z = 0;
        run->target[i] = fsi_v3_madd(run->x[i], dt, run->v[i]);
        if (!run->s->desc.warm_start) length = 0;
        run->guess[i] =
            length > 0 ? fsi_v3_madd(run->target[i], length > longest ? longest / length : 1, shift) : run->target[i];
        sum[0] += run->dt * (double)a.x;
        sum[1] += run->dt * (double)a.y;
        sum[2] += run->s->desc.dim == 2 ? 0 : run->dt * (double)a.z;
    }
    fsi__sph_put_sums_at(run, chunk, 1, sum[0], sum[1], sum[2], 0);
}

/* z takes u*: its energy is what the guess is judged by. */
FSI_FN void fsi__sph_look_at_star(fsi__sph_run *run, int r)
{
    const fsi__lane4 u = fsi__sph_star_of(run, r);
    run->z[r] = fsi__sph_moved(&run->base[r], &u);
}

/* Where the substep starts, as coordinates. */
FSI_FN void fsi__sph_gather_start(fsi__sph_run *run, int r)
{
    run->zp[r] = fsi__record_at(run->x[run->order[r]], 1 / run->h);
}

/* Rank order from the neighbour lists: coordinates, x* as a displacement, iterates at rest. */
static void fsi__sph_gather(fsi__sph_run *run, int begin, int end)
{
    const double per_h = 1 / run->h;
    int r;
    for (r = begin; r < end; r++) {
        int i = run->order[r];
        const fsi_vec3 *x = &run->guess[i], *t = &run->target[i];
        memset(&run->u[r], 0, sizeof run->u[r]);
        run->uz[r] = run->u[r];
        run->star[r].x = (fsi__lane)((double)(t->x - x->x) * per_h);
        run->star[r].y = (fsi__lane)((double)(t->y - x->y) * per_h);
        run->star[r].z = (fsi__lane)((double)(t->z - x->z) * per_h);
        run->star[r].w = 0;
        run->base[r].x = fsi__to_coord((double)x->x * per_h);
        run->base[r].y = fsi__to_coord((double)x->y * per_h);
        run->base[r].z = fsi__to_coord((double)x->z * per_h);
        run->base[r].w = 0;
        run->z[r] = run->base[r];
        if (run->fresh) fsi__sph_look_at_star(run, r);
        if (run->fresh && run->tension) fsi__sph_gather_start(run, r);
    }
}

/* Removes pairs that a sheet separates from rank r's list, if it acts on both. */
static void fsi__sph_cut_list(fsi__sph_run *run, const fsi__faces *faces, int r)
{
    int *list = (int *)(uintptr_t)(run->list + run->first[r]), *size = (int *)(uintptr_t)(run->size + r), k, j,
        kept = 0;
    for (k = 0; k < *size; k++) {
        int a = run->order[r], b = run->order[list[k]], cut = 0;
        for (j = 0; j < faces->count && !cut; j++) {
            if (!fsi__is_sheet(&run->im->obstacles, faces->owner[j])
                || !(run->im->obstacle[faces->owner[j]].base.mask & run->s->filter[b])) continue;
            cut = fsi__mesh_parts(run->im->obstacle[faces->owner[j]].base.mesh, faces->face[j],
                run->guess[a < b ? a : b], run->guess[a < b ? b : a]);
        }
        if (!cut) list[kept++] = list[k];
    }
    for (k = kept; k < fsi__padded(*size); k++) list[k] = r;
    *size = kept;
}

static void fsi__sph_cut_pairs(fsi__sph_run *run, int chunk, int begin, int end)
{
    fsi__faces faces;
    int r;
    for (r = begin; r < end; r++) {
        if (run->slot[r] < 0) continue;
        fsi__sph_cut_list(run, fsi__sph_own_faces(run, chunk, NULL, &faces, run->order[r], run->guess[run->order[r]],
            (fsi_real)((1 + FSI__SPH_SKIN) * run->h)), r);
    }
}

/* Gives every group with faces in reach its walls. */
static fsi_status fsi__sph_reserve_walls(fsi__sph_run *run)
{
    int g, count = 0;
    for (g = 0; g < run->groups; g++) {
        if (run->group_slot[g] < 0) continue;
        run->group_slot[g] = count;
        count += FSI__SPH_GROUP;
    }
    if (!fsi__arena_room(run->s->context, &run->im->walls, (size_t)count * sizeof(fsi__sph_wall)))
        return fsi__fail(run->s->context, FSI_ERROR_MEMORY, "fsi_sph_step", -1, count,
                         "no memory for the walls of %d particles", count);
    run->wall = (fsi__sph_wall *)fsi__take(&run->im->walls, (size_t)count, sizeof(fsi__sph_wall));
    run->wall_count = count;
    return FSI_OK;
}

static fsi_status fsi__sph_check_overflow(const fsi__sph_run *run)
{
    int c, i;
    for (c = 0; c < run->chunks; c++) {
        if (!run->overflow[c]) continue;
        i = run->overflow[c] - 1;
        return fsi__fail(run->s->context, FSI_ERROR_LIMIT, "fsi_sph_step", i, FSI__FACES,
            "particle %d has more than %d faces within reach: the mesh is too fine for this spacing", i, FSI__FACES);
    }
    return FSI_OK;
}

/* Adds the seconds since `*since` to a phase and starts the next. */
static void fsi__sph_lap(const fsi__sph_run *run, double *phase, double *since)
{
    double now = fsi__now(run->s->context);
    *phase += now - *since;
    *since = now;
}

/* Walls do not act on particles behind an inlet plane; coupled bodies do not feel particles that emitters move. */
static void fsi__sph_part_walls(fsi__sph_run *run, int begin, int end)
{
    int r, k;
    for (r = begin; r < end; r++) {
        const fsi__sph_wall *w =
            run->slot[r] >= 0 && fsi__sph_held(run, run->order[r]) ? &run->wall[run->slot[r]] : NULL;
        if (fsi__sph_ghost(run, run->order[r])) run->slot[r] = -1;
        for (k = 0; w && k < w->part_count; k++) if (w->part[k].body >= 0) run->slot[r] = -1;
    }
}

/* Passes that need only the new order, which comes first with an empty range. */
static void fsi__sph_rank_range(void *arg, const int *order, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    if (begin == end) run->order = order;
    fsi__sph_gather(run, begin, end);
    fsi__sph_mark_groups(run, begin, end);
}

/* Passes that need the walls of the same particle, and neighbour lists. */
static void fsi__sph_walls_range(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    fsi__sph_make_walls(run, chunk, begin, end);
    if (run->holding > 0) fsi__sph_part_walls(run, begin, end);
    if (run->sheets) fsi__sph_cut_pairs(run, chunk, begin, end);
    if (!run->fresh) return;
    if (run->tension) fsi__sph_visit_range(run, fsi__sph_find_normal, chunk, 0, begin, end);
    else if (run->s->desc.viscosity > 0) fsi__sph_visit_range(run, fsi__sph_viscous_begin, chunk, 0, begin, end);
}

/* Nanoseconds of that a particle. */
static double fsi__sph_wall_work(const fsi__sph_run *run)
{
    double work = (double)FSI__SPH_NS_WALLS + (double)FSI__SPH_NS_WALL * run->wall_count / run->n;
    if (run->fresh && run->tension) work += (double)FSI__SPH_NS_NORMAL;
    else if (run->fresh && run->s->desc.viscosity > 0) work += (double)FSI__SPH_NS_BEGIN;
    return work;
}

/* Sorts particles at `guess`, finds neighbours there, and starts the iterates from there. */
static fsi_status fsi__sph_attach(fsi__sph_run *run)
{
    fsi_neighbors *nb = run->im->neighbors;
    double clock = fsi__now(run->s->context);
    int o;
    fsi_status status = fsi__neighbors_build_with(nb, run->guess, run->n, (fsi_real)(run->h * (1 + FSI__SPH_SKIN)),
                                                  run->s->desc.dim, fsi__sph_rank_range, run);
    if (status == FSI_ERROR_NAN)
        return fsi__fail(run->s->context, status, "fsi_sph_step", run->s->context->error.element, 0,
                         "particle %d: its predicted position is not finite", (int)run->s->context->error.element);
    if (status != FSI_OK) return status;
    run->order = nb->order;
    run->first = nb->first;
    run->size = nb->size;
    run->list = nb->list;
    run->sheets = 0;
    for (o = 0; o < run->im->obstacles.count; o++) run->sheets |= fsi__is_sheet(&run->im->obstacles, o);
    fsi__sph_lap(run, &run->stats.seconds_neighbors, &clock);
    FSI__SPH_AFTER_PASS(run);
    return fsi__sph_reserve_walls(run);
}

/* The same where a substep begins, and walls. */
static fsi_status fsi__sph_first_attach(fsi__sph_run *run)
{
    double clock;
    run->fresh = 1;
    run->due = 0;
    FSI__TRY(fsi__sph_attach(run));
    clock = fsi__now(run->s->context);
    if (run->tension) fsi__sph_start_tension(run);
    if (run->s->desc.viscosity > 0) fsi__sph_viscous_weights(run);
    fsi__sph_parallel(run, fsi__sph_walls_range, fsi__sph_wall_work(run));
    run->fresh = 0;
    fsi__sph_lap(run, &run->stats.seconds_boundary, &clock);
    return fsi__sph_check_overflow(run);
}

/* Iterates become starting positions, outside of solids. */
static void fsi__sph_restart_range(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    int r;
    for (r = begin; r < end; r++) {
        int i = run->order[r];
        run->kappa[i] = run->slot[r] >= 0 ? (fsi_real)((double)run->wall[run->slot[r]].kappa / run->kappa0) : 1;
        run->guess[i] = fsi__sph_world(run, i, &run->uz[r]);
    }
    fsi__sph_place_start(run, chunk, begin, end);
}

/* Makes the current iterates the new starting positions. */
static fsi_status fsi__sph_reattach(fsi__sph_run *run)
{
    int b;
    run->stats.rebuilds++;
    for (b = 0; b < run->bodies.count; b++) {
        fsi__sph_body *body = &run->bodies.body[b];
        if (body->coupled)
            fsi__sph_body_settle(&run->bodies, body, fsi__sph_body_pose(&run->bodies, body, body->star),
                                 fsi__sph_body_pose(&run->bodies, body, body->qz));
    }
    fsi__sph_move_obstacles(run, 1);
    fsi__sph_parallel(run, fsi__sph_restart_range, FSI__SPH_NS_PLACE);
    run->due = 1;
    return fsi__sph_attach(run);
}

static double fsi__sph_energy(fsi__sph_run *run)
{
    double clock = fsi__now(run->s->context), work = FSI__SPH_NS_DENSITY * (run->outset == FSI__SPH_AT_BOTH ? 2 : 1);
    fsi__sph_parallel(run, fsi__sph_density, run->due ? work + fsi__sph_wall_work(run) : work);
    fsi__sph_lap(run, &run->stats.seconds_density, &clock);
    run->refreshed = run->refresh ? (int)fsi__sph_sum(run, 4) : 0;
    run->stats.reevaluations += run->refreshed;
    run->refresh = run->due = 0;
    run->compression = fsi__sph_sum(run, 1) / run->n;
    run->stats.max_compression = fsi__sph_largest(run, 2);
    return fsi__sph_sum(run, 0) + fsi__sph_body_energy(&run->bodies);
}

/* Moves the iterates: back to the last plain step, or half a step back. */
static void fsi__sph_reset_range(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    const fsi__lane back = (fsi__lane)(run->omega / 2);
    const int how = run->reset;
    int r;
    (void)chunk;
    for (r = begin; r < end; r++) {
        fsi__lane4 *u = &run->u[r];
        const fsi__lane4 *t = &run->step[r];
        if (how == FSI__SPH_HALF_BACK) {
            u->x -= back * t->x;
            u->y -= back * t->y;
            u->z -= back * t->z;
        }
        run->uz[r] = *u;
        run->z[r] = fsi__sph_moved(&run->base[r], u);
    }
}

static void fsi__sph_reset(fsi__sph_run *run, int how)
{
    run->reset = how;
    fsi__sph_parallel(run, fsi__sph_reset_range, FSI__SPH_NS_RESET);
    fsi__sph_reset_bodies(&run->bodies, how, run->omega);
}

/* One global step control (sph.md 6). Every sweep takes the gradient at the extrapolated point z, whose energy comes
   with its density for free. Energy that rises after an extrapolation: plain step; after a plain step: half as far. */
typedef struct fsi__sph_control {
    double t;           /* Nesterov's sequence */
    double energy;      /* at the last point that was accepted */
    int extrapolated;   /* the point to be judged came from an extrapolation */
    int halvings;       /* in a row */
} fsi__sph_control;

/* Judges the point z with energy e. 1: go on from it; 0: the iterates were moved back, measure again. */
static int fsi__sph_judge(fsi__sph_run *run, fsi__sph_control *c, double e)
{
    if (e <= c->energy * (1 + FSI__SPH_ENERGY_NOISE) + 1e-12 * run->n || c->halvings >= 6) {
        c->energy = e;
        c->halvings = 0;
        return 1;
    }
    if (c->extrapolated) {
        fsi__sph_reset(run, FSI__SPH_TO_STEP);
        run->stats.restarts++;
    } else {
        fsi__sph_reset(run, FSI__SPH_HALF_BACK);
        run->omega /= 2;
        run->stats.halvings++;
        c->halvings++;
    }
    c->extrapolated = 0;
    c->t = 1;
    return 0;
}

/* Takes the step that the last gradient gave, extrapolating as Nesterov does. *drift: how far particles and bodies are
   from where lists and walls were made [H]. Returns 1 when some walls are to be made anew. */
static int fsi__sph_advance(fsi__sph_run *run, fsi__sph_control *c, double restart, double *drift)
{
    double clock = fsi__now(run->s->context), next, way;
    if (restart > 0 || !run->s->desc.accelerate) c->t = 1;
    if (restart > 0) run->stats.restarts++;
    next = (1 + sqrt(1 + 4 * c->t * c->t)) / 2;
    run->beta = run->s->desc.accelerate ? (c->t - 1) / next : 0;
    c->t = run->s->desc.accelerate ? next : 1;
    c->extrapolated = run->beta > 0;
    if (!c->halvings) run->omega = run->omega * 1.3 < 1 ? run->omega * 1.3 : 1;
    fsi__sph_parallel(run, fsi__sph_update, FSI__SPH_NS_UPDATE);
    *drift = sqrt(fsi__sph_largest(run, 2));
    way = fsi__sph_update_bodies(&run->bodies, run->omega, run->beta);
    if (way > *drift) *drift = way;
    if (fsi__sph_sum(run, 0) > 0) c->energy = HUGE_VAL; /* N or kappa changed: another energy */
    fsi__sph_lap(run, &run->stats.seconds_update, &clock);
    return fsi__sph_sum(run, 1) > 0 || run->s->desc.always_reevaluate;
}

static fsi_status fsi__sph_bad_number(const fsi__sph_run *run)
{
    int r;
    for (r = 0; r < run->n; r++) {
        const fsi__lane4 *u = &run->uz[r];
        if (fsi_is_finite((double)run->lambda[r]) && fsi_is_finite((double)(u->x + u->y + u->z))) continue;
        return fsi__fail(run->s->context, FSI_ERROR_NAN, "fsi_sph_step", run->order[r], (double)run->lambda[r],
                         "particle %d: its density in the solve is not finite", run->order[r]);
    }
    return fsi__fail(run->s->context, FSI_ERROR_NAN, "fsi_sph_step", -1, 0, "the energy of the solve is not finite");
}

/* Energy where the solve starts: cold, at x*, when the last correction added to it has more. */
static double fsi__sph_first_energy(fsi__sph_run *run)
{
    fsi__sph_body *body = run->bodies.body;
    double e, cold = HUGE_VAL;
    int b;
    run->outset = run->s->desc.warm_start ? FSI__SPH_AT_BOTH : FSI__SPH_AT_GUESS;
    for (b = 0; b < run->bodies.count; b++) memcpy(body[b].q, body[b].star, sizeof body[b].q);
    e = fsi__sph_energy(run);
    if (run->outset == FSI__SPH_AT_BOTH) cold = fsi__sph_sum(run, 8);
    fsi__sph_reset_bodies(&run->bodies, FSI__SPH_TO_GUESS, run->omega);
    if (fsi_is_finite(e) && cold < e) {
        run->outset = FSI__SPH_AT_STAR;
        run->stats.warm_rejected++;
        fsi__sph_reset_bodies(&run->bodies, FSI__SPH_TO_STAR, run->omega);
        e = fsi__sph_energy(run);
    }
    run->outset = FSI__SPH_ON_THE_WAY;
    return e;
}

/* Steps of particles and bodies; returns the restart test, and leaves in stats.residual how much they still move. When
   that is no more than rounding would, there is nothing to gain, and nothing tells how much is missing. */
static double fsi__sph_gradients(fsi__sph_run *run)
{
    double clock = fsi__now(run->s->context), restart, moved;
    fsi__sph_parallel(run, fsi__sph_gradient, FSI__SPH_NS_GRADIENT);
    restart = fsi__sph_sum(run, 0);
    moved = fsi__sph_sum(run, 1);
    run->noise = moved <= FSI__SPH_STEP_NOISE * fmin(0.5, run->mu) * run->n;
    run->stats.residual = moved / (fsi__sph_sum(run, 3) + FSI__SPH_STILL * run->way + 1e-6 * run->n);
    if (run->bodies.coupled_count) restart += fsi__sph_step_bodies(&run->bodies, run->slot, run->wall,
        run->n, run->omega, &run->stats.body_residual);
    fsi__sph_lap(run, &run->stats.seconds_gradient, &clock);
    return restart;
}

/* Residuals of two sweeps: the last two whose number was a power of two. */
typedef struct fsi__sph_decay { double early, late; int early_sweep, late_sweep; } fsi__sph_decay;

/* Part of the correction that is missing after sweep k, if residuals keep the rate of decay of the second half of the
   sweeps: sum_j late (late/early)^(j/sweeps) = late sweeps / ln(early/late). */
static double fsi__sph_left_over(const fsi__sph_decay *d, int k, double residual)
{
    if (residual < d->early) return residual * (k - d->early_sweep) / fsi_log(d->early / residual);
    return residual > 0 ? HUGE_VAL : 0;
}

static void fsi__sph_note_residual(fsi__sph_decay *d, int k, double residual)
{
    if (k & (k - 1)) return;
    d->early = d->late;
    d->early_sweep = d->late_sweep;
    d->late = residual;
    d->late_sweep = k;
}

static int fsi__sph_is_solved(const fsi__sph_run *run)
{
    const fsi_sph_desc *d = &run->s->desc;
    const double tolerance = (double)d->tolerance;
    const int moved = run->stats.residual <= tolerance && run->left <= FSI__SPH_LEFT * tolerance;
    return (moved || (tolerance > 0 && run->noise)) && run->stats.body_residual <= (double)d->body_tolerance;
}

static fsi_status fsi__sph_solve(fsi__sph_run *run)
{
    const fsi_sph_desc *d = &run->s->desc;
    fsi__sph_control c = { 1, HUGE_VAL, 0, 0 };
    fsi__sph_decay decay = { 0, 0, 0, 0 };
    double e, restart, drift;
    fsi_status status;
    int k, stale, last, used = run->stats.iterations;
    run->omega = 1;
    run->refresh = 0;
    for (k = 0;; k++) {
        /* Energy at the iterate. New walls or contact parameters mean another energy, not comparable with the last. */
        e = k == 0 ? fsi__sph_first_energy(run) : fsi__sph_energy(run);
        status = fsi__sph_check_overflow(run);
        if (status != FSI_OK) return status;
        if (!fsi_is_finite(e)) return fsi__sph_bad_number(run);
        if (k == 0 && used == 0) run->stats.energy_start = e;
        if (run->refreshed) c.energy = HUGE_VAL; /* other walls: another energy */
        run->stats.iterations++;

        /* The step control: on, or back with a shorter step. */
        last = k >= run->sweeps;
        if (!last && !fsi__sph_judge(run, &c, e)) continue;

        /* The next step, and from the decay of its length the fraction of the correction that is still missing. Solved,
           or out of sweeps? */
        restart = fsi__sph_gradients(run);
        fsi__sph_note_residual(&decay, k, run->stats.residual);
        run->left = run->noise ? 0 : fsi__sph_left_over(&decay, k, run->stats.residual);
        if (k + 1 >= d->min_iters && fsi__sph_is_solved(run)) break;
        if (last) {
            run->stats.degraded = 1;
            break;
        }

        /* Take the step. */
        stale = fsi__sph_advance(run, &c, restart, &drift);

        /* A particle and a light body that meet both take the whole step, which is too long. This is judged before the
           walls are made anew, which would make it another energy. */
        if (run->bodies.coupled_count && (stale || drift > FSI__SPH_SKIN)
            && !fsi__sph_judge(run, &c, fsi__sph_energy(run)))
            continue;

        /* Walls that are linearised too far away are made anew with the next density. Once a particle has moved by
           the skin of the lists, lists and all walls are: pairs that are not in the lists are then farther than (1 -
           skin) H apart and contribute at most 1e-3 of the kernel's peak. */
        run->refresh = stale && !(drift > FSI__SPH_SKIN);
        if (drift > FSI__SPH_SKIN) {
            status = fsi__sph_reattach(run);
            if (status != FSI_OK) return status;
            c.t = 1;
            c.extrapolated = 0;
            c.energy = HUGE_VAL;
        }
    }
    fsi__sph_settle_bodies(&run->bodies);
    if (used == 0) run->stats.energy_end = e;
    return FSI_OK;
}

/* ---- >>surface tension ---------------------------------------------------------------------------------------- */

/* Surface tension of this substep: of a smaller one, when the substep is too long for the waves of the whole. */
static double fsi__sph_sigma(const fsi__sph_run *run)
{
    const double share = fsi__sph_capillary_dt(run->s) / run->dt;
    return (double)run->s->desc.surface_tension * fmin(1, share * share);
}

/* The passes over its particles. */
static void fsi__sph_find_normal(fsi__sph_run *run, int r, double *unused)
{
    (void)unused;
    fsi__tension_find_normal(&run->surface, r);
}

static void fsi__sph_smooth_normal(fsi__sph_run *run, int r, double *unused)
{
    (void)unused;
    fsi__tension_smooth_normal(&run->surface, r);
}

static void fsi__sph_find_curvature(fsi__sph_run *run, int r, double *unused)
{
    (void)unused;
    fsi__tension_find_curvature(&run->surface, r);
}

static void fsi__sph_pull_surface(fsi__sph_run *run, int r, double *unused)
{
    (void)unused;
    fsi__tension_pull(&run->surface, r);
}

/* What these share, in this substep. */
static void fsi__sph_start_tension(fsi__sph_run *run)
{
    fsi__tension *t = &run->surface;
    t->dim = run->s->desc.dim;
    t->n = run->n;
    t->h = run->h;
    t->dx = (double)run->s->desc.spacing;
    t->scale = fsi__sph_sigma(run) / ((double)run->s->desc.density * run->h * run->h);
    t->kernel = &run->im->kernel;
    t->wall_factor = run->s->wall_factor;
    t->obstacles = &run->im->obstacles;
    t->order = run->order;
    t->first = run->first;
    t->size = run->size;
    t->list = run->list;
    t->place = run->zp;
    t->slot = run->slot;
    t->wall = run->wall;
    t->normal = run->normal;
    t->sheet = run->sheet;
    t->drop = run->drop;
    t->drops = run->drops;
    t->pull = run->tension;
    t->line = run->line;
}

/* Distributes the sum of a drop: to its particles by area, so that none is left, or to the wall of its contact line. */
static void fsi__sph_share_drops(fsi__sph_run *run)
{
    int r;
    for (r = 0; r < run->n; r++) {
        const fsi__drop *d = run->drop[r] >= 0 ? &run->drops[run->drop[r]] : NULL;
        const int i = run->order[r];
        double share;
        fsi_vec3 part;
        int body;
        if (!d) continue;
        share = d->contact > 0 ? fsi__tension_contact_share(&run->surface, r) / d->contact * run->dt
            : (double)run->sheet[r].w / d->area;
        if (!(share > 0)) continue;
        part = fsi_v3((fsi_real)(share * d->sum[0]), (fsi_real)(share * d->sum[1]), (fsi_real)(share * d->sum[2]));
        if (!(d->contact > 0)) {
            run->tension[i] = fsi_v3_sub(run->tension[i], part);
            continue;
        }
        run->line[i] = part;
        body = run->wall[run->slot[r]].part[fsi__sph_main_part(&run->wall[run->slot[r]])].body;
        if (body >= 0) fsi__sph_pull_body(&run->bodies.body[body], run->x[i],
            fsi_v3_scale(run->line[i], -run->s->particle_mass));
    }
    fsi__sph_pull_bodies(&run->bodies);
}

/* Viscosity and tension do not move particles that emitters move. */
FSI_FN void fsi__sph_unmove(fsi__sph_run *run, int r)
{
    if (fsi__sph_held(run, run->order[r])) memset(&run->star[r], 0, sizeof run->star[r]);
    fsi__sph_look_at_star(run, r);
}

/* Adds the accelerations to v* and x*. */
static void fsi__sph_apply_tension(fsi__sph_run *run, int r, double *unused)
{
    const fsi_real dt = (fsi_real)run->dt;
    const double scale = run->dt * run->dt / run->h;
    const int i = run->order[r];
    const fsi_vec3 a = run->tension[i];
    (void)unused;
    run->v[i] = fsi_v3_madd(run->v[i], dt, a);
    run->target[i] = fsi_v3_madd(run->target[i], dt * dt, a);
    run->star[r] = fsi__lane4_madd(run->star[r], 1,
                                   fsi__lane4_make(scale * (double)a.x, scale * (double)a.y, scale * (double)a.z));
    if (run->s->desc.viscosity > 0) fsi__sph_viscous_begin(run, r, unused);
    else fsi__sph_unmove(run, r);
}

static void fsi__sph_tension(fsi__sph_run *run)
{
    double clock = fsi__now(run->s->context);
    /* fsi__sph_walls_range found the normals */
    fsi__sph_for_each(run, fsi__sph_smooth_normal, FSI__SPH_NS_SMOOTH_NORMAL);
    fsi__sph_for_each(run, fsi__sph_find_curvature, FSI__SPH_NS_CURVATURE);
    fsi__sph_for_each(run, fsi__sph_pull_surface, FSI__SPH_NS_PULL);
    fsi__tension_find_drops(&run->surface);
    fsi__tension_sum_drops(&run->surface);
    fsi__sph_share_drops(run);
    /* little beside viscosity */
    fsi__sph_for_each(run, fsi__sph_apply_tension, run->s->desc.viscosity > 0 ? 0 : FSI__SPH_NS_APPLY);
    run->stats.degraded |= fsi__sph_is_too_long(run);
    fsi__sph_lap(run, &run->stats.seconds_other, &clock);
}

/* ---- >>after the solve ---------------------------------------------------------------------------------------- */

/* Sums: v by component (3), |v|. */
static void fsi__sph_add_momentum(fsi__sph_run *run, int i, double *sum)
{
    fsi__sph_add3(sum, run->v[i]);
    sum[3] += sqrt((double)fsi_v3_norm2(run->v[i]));
}

/* That of the last pass that called it for bank 2. */
static void fsi__sph_momentum(const fsi__sph_run *run, double sum[4])
{
    int k;
    for (k = 0; k < 4; k++) sum[k] = fsi__sph_sum(run, 8 + k);
}

static fsi_vec3 fsi__sph_at_most(fsi_vec3 v, fsi_real most)
{
    const fsi_real size = fsi_v3_norm(v);
    return size > most ? fsi_v3_scale(v, most / size) : v;
}

/* The velocity that the solve gave to rank r: v* + (x1 - x*)/dt, or v* plus the forces at the end, D step - (x* - x). A
   placed particle has the velocity of its actual displacement, without the correction out of a solid. */
static fsi_vec3 fsi__sph_new_velocity(const fsi__sph_run *run, int r, fsi_vec3 v, fsi_vec3 moved, int state)
{
    const fsi_vec3 way = fsi_v3_scale(moved, (fsi_real)(1 / run->dt));
    fsi__lane4 d = fsi__lane4_madd(run->u[r], -1, run->star[r]);
    if (state == FSI__PLACED) return way;
    if (run->s->desc.velocity_update == FSI_SPH_VELOCITY_FORCES && state == FSI__FREE)
        d = fsi__lane4_madd(d, run->step[r].w, run->step[r]);
    v = fsi_v3_madd(v, (fsi_real)(run->h / run->dt), fsi__lane4_v3(d));
    return state == FSI__FREE ? v : fsi__sph_at_most(way, fsi_v3_norm(v));
}

/* Velocity [m/s] of an obstacle at the closest point of one of its faces. */
static fsi_vec3 fsi__sph_wall_velocity(const fsi__sph_run *run, const fsi__sph_part *part)
{
    double bary[3];
    fsi__lanes_to_doubles(bary, part->bary);
    return fsi__d3_real(fsi__obstacle_velocity(&run->im->obstacle[part->owner].base, part->face, bary, run->dt));
}

/* Coulomb friction (sph.md 10): what slides along a wall loses up to `friction` times the normal impulse. Returns that
   bound, over m [m/s], of a part whose force is known, and where it pushes. */
static fsi_real fsi__sph_grip(const fsi__sph_run *run, const fsi__sph_part *part, fsi_vec3 *normal)
{
    const fsi_vec3 force = fsi_v3((fsi_real)part->force[0], (fsi_real)part->force[1], (fsi_real)part->force[2]);
    *normal = fsi_v3_unit(force);
    return run->im->obstacle[part->owner].desc.friction * fsi_v3_norm(force) * (fsi_real)(run->h / run->dt);
}

/* Change of a velocity that slips by `slip`; friction can end the fraction `yield`, below 1 where the wall moves. */
static fsi_vec3 fsi__sph_friction(fsi_real grip, fsi_vec3 slip, fsi_real yield)
{
    const fsi_real speed = fsi_v3_norm(slip);
    return fsi_v3_scale(slip, speed * yield > grip ? -grip / speed : -yield);
}

static fsi_vec3 fsi__sph_along(fsi_vec3 v, fsi_vec3 normal) { return fsi_v3_madd(v, -fsi_v3_dot(v, normal), normal); }

/* Distributes what the walls gave to a particle, `given` [m/s], among the obstacles: to each its force, and of the
   remainder of the unfinished solve a part proportional to the force. Returns 0 when no obstacle pushes it. */
static int fsi__sph_share_out(const fsi__sph_run *run, fsi__sph_wall *w, fsi_vec3 given)
{
    const double scale = run->h / run->dt;
    double rest[3], weight[FSI_SPH_PARTS], sum = 0;
    int j, k;
    fsi__sph_to_doubles(rest, given, 1);
    for (j = 0; j < w->part_count; j++) {
        const fsi__lane *f = w->part[j].force;
        for (k = 0; k < 3; k++) rest[k] -= scale * (double)f[k] + w->part[j].impulse[k];
        sum += weight[j] = sqrt((double)fsi__lane_norm2(f));
    }
    if (!(sum > 0)) {
        if (!w->placed || w->part_count == 0) return 0;
        for (j = 1; j < w->part_count; j++) weight[j] = 0;
        sum = weight[0] = 1;
    }
    for (j = 0; j < w->part_count; j++)
        for (k = 0; k < 3; k++)
            w->part[j].impulse[k] += scale * (double)w->part[j].force[k] + rest[k] * weight[j] / sum;
    return 1;
}

/* Forces of the walls on rank r and friction, which changes its velocity *v; adds up what they gave. */
static void fsi__sph_finish_wall(const fsi__sph_run *run, int r, fsi_vec3 before, fsi_vec3 *v, double sum[3])
{
    const fsi_real scale = (fsi_real)(run->h / run->dt);
    fsi__sph_wall *w = &run->wall[run->slot[r]];
    const fsi_vec3 pressure = fsi_v3_scale(fsi__lane4_v3(fsi__sph_pressure_on(run, r)), scale);
    fsi_vec3 given;
    int k;

    /* Force of each obstacle, and its Coulomb friction (sph.md 10); that of coupled bodies: fsi__sph_rub_bodies. */
    for (k = 0; k < w->part_count; k++) {
        fsi__sph_part *part = &w->part[k];
        fsi_vec3 n, rub = fsi_v3(0, 0, 0);
        fsi_real grip;
        fsi__sph_part_force(run, w, k, &run->uz[r], run->zp[r].w);
        grip = fsi__sph_grip(run, part, &n);
        if (grip > 0 && part->body < 0)
            rub = fsi__sph_friction(grip, fsi__sph_along(fsi_v3_sub(*v, fsi__sph_wall_velocity(run, part)), n), 1);
        *v = fsi_v3_add(*v, rub);
        fsi__sph_to_doubles(part->impulse, rub, 1);
    }

    /* The change of velocity that is neither pressure nor inertia came from the walls: distribute it among them. */
    given = fsi_v3_sub(fsi_v3_sub(*v, before), pressure);
    w->pushed = fsi__sph_share_out(run, w, given);

    /* The pull of the contact line, which the velocities of particle and coupled bodies already contain. */
    if (run->tension && w->part_count > 0) {
        fsi__sph_add3(w->part[fsi__sph_main_part(w)].impulse, run->line[run->order[r]]);
        fsi__sph_add3(sum, run->line[run->order[r]]);
    }
    if (w->pushed) fsi__sph_add3(sum, given);
}

/* Is rank r under pressure, and untouched by walls? */
FSI_FN int fsi__sph_is_inner(const fsi__sph_run *run, int r)
{
    return run->step[r].w > 1 && (run->slot[r] < 0 || !run->wall[run->slot[r]].pushed);
}

/* A velocity, and in w its weight in XSPH: 1, less where the liquid is compressed to more than twice its density. */
FSI_FN fsi__lane4 fsi__sph_xsph_velocity(const fsi__sph_run *run, int r, fsi_vec3 v)
{
    fsi__lane4 u = fsi__lane4_of(v);
    u.w = run->lambda[r] > 2 ? 2 / run->lambda[r] : 1;
    return u;
}

/* New velocities and positions in creation order. Sums: the walls' impulse, which is the change of velocity of
   particles at walls less those by gravity and neighbours (3) [m/s]; inner particles under pressure (1). u becomes the
   velocity, for XSPH. */
static void fsi__sph_finish(fsi__sph_run *run, int chunk, int begin, int end)
{
    const double to_pascal = run->im->kernel.settled * run->stiffness;
    const fsi_real warm = (fsi_real)(fsi__sph_warm_share(run) / (run->dt * run->dt));
    double sum[3] = { 0, 0, 0 };
    int r, inner = 0;
    for (r = begin; r < end; r++) {
        const int i = run->order[r], slot = run->slot[r];
        const fsi_vec3 x1 = run->target[i], before = run->v[i];
        run->warm[i] = fsi_v3_scale(fsi_v3_sub(x1, fsi__sph_world(run, i, &run->star[r])), warm);
        if (run->drag) run->warm[i] = fsi_v3_add(run->warm[i], run->drag[i]); /* the guess knows neither of them */
        if (run->tension) run->warm[i] = fsi_v3_add(run->warm[i], run->tension[i]);
        run->v[i] = fsi__sph_new_velocity(run, r, before, fsi_v3_sub(x1, run->x[i]), run->state[i]);
        run->x[i] = x1;
        run->pressure[i] = (fsi_real)(to_pascal * (double)run->zp[r].w);
        run->lambda_out[i] = (fsi_real)run->lambda[r];
        run->kappa[i] = slot >= 0 ? fsi_max(1, (fsi_real)(0.5 * (double)run->wall[slot].kappa / run->kappa0)) : 1;
        if (slot >= 0) fsi__sph_finish_wall(run, r, before, &run->v[i], sum);
        inner += fsi__sph_is_inner(run, r);
        run->u[r] = fsi__sph_xsph_velocity(run, r, run->v[i]);
    }
    fsi__sph_put_sums_at(run, chunk, 2, sum[0], sum[1], sum[2], inner);
}

/* Adds an impulse of the liquid at x to an obstacle. */
static void fsi__sph_push_obstacle(fsi__sph_run *run, const fsi__sph_part *part, fsi_vec3 x, fsi_vec3 given)
{
    double bary[3];
    fsi__lanes_to_doubles(bary, part->bary);
    fsi__obstacle_push(&run->im->obstacle[part->owner].base, part->face, bary, fsi__d3_of(x), fsi__d3_of(given));
}

/* Adds up what the liquid gave to each obstacle, in order of ranks. Coupled bodies have what the solve gave them: that
   goes out of the sum `wall`. */
static void fsi__sph_collect_reactions(fsi__sph_run *run, double wall[3])
{
    int r, k, j;
    run->stats.crowded = 0;
    for (r = 0; r < run->n; r++) {
        const fsi__sph_wall *w = fsi__sph_wall_of(run, r);
        if (w) run->stats.crowded += w->crowded;
        for (k = 0; w && k < w->part_count; k++) {
            const fsi__sph_part *part = &w->part[k];
            const fsi_vec3 x = run->x[run->order[r]],
                           given = fsi_v3_scale(fsi__sph_real3(part->impulse), -run->s->particle_mass);
            const int body = run->im->obstacle[part->owner].base.body;
            fsi__sph_push_obstacle(run, part, x, given);
            for (j = 0; j < 3 && part->body >= 0; j++) wall[j] -= part->impulse[j];
            if (body >= 0 && part->body < 0) fsi__sph_push_body(&run->bodies.body[body], x, given);
        }
    }
}

/* Friction between rank r and a coupled body: an impulse of 1/(1/m + t.J M^-1 J^T t) ends a slip of 1 m/s along t.
   Changes both; returns the change of the particle's velocity. */
static fsi_vec3 fsi__sph_rub_body(fsi__sph_run *run, int r, const fsi__sph_part *part)
{
    const fsi_real m = run->s->particle_mass;
    const fsi_vec3 x = run->x[run->order[r]];
    fsi__sph_body *b = &run->bodies.body[part->body];
    const fsi_vec3 a = fsi_v3_sub(x, b->at.position);
    fsi_vec3 *v = &run->v[run->order[r]], n, wall, slip, t, turn, rub, given;
    fsi_real gives, grip = fsi__sph_grip(run, part, &n);
    if (!(grip > 0)) return fsi_v3(0, 0, 0);
    wall = fsi_v3_add(b->velocity, fsi_v3_cross(fsi_m3_mul_v3(b->per_spin, b->spin), a));
    slip = fsi__sph_along(fsi_v3_sub(*v, wall), n);
    t = fsi_v3_unit(slip);
    turn = fsi_m3_mul_v3(b->per_spin, fsi_v3_cross(a, t));
    gives = m / b->work.mass + m * fsi_v3_dot(fsi_v3_cross(turn, a), t);
    rub = fsi__sph_friction(grip, slip, 1 / (1 + gives));
    given = fsi_v3_scale(rub, -m);
    *v = fsi_v3_add(*v, rub);
    run->u[r] = fsi__sph_xsph_velocity(run, r, *v);
    b->velocity = fsi_v3_madd(b->velocity, 1 / b->work.mass, given);
    b->spin = fsi_v3_add(b->spin, fsi_v3_cross(a, given));
    fsi__sph_push_obstacle(run, part, x, given);
    fsi__sph_push_body(b, x, given);
    return rub;
}

/* Friction of coupled bodies; adds what it gave the liquid to the sum `wall`. One particle after the other, in order of
   ranks, each against what the last one left, so the sum takes no more than there is however light the body. */
static void fsi__sph_rub_bodies(fsi__sph_run *run, double wall[3])
{
    int b, r, k;
    for (b = 0; b < run->bodies.count; b++)
        if (run->bodies.body[b].coupled)
            run->bodies.body[b].per_spin = fsi_body_world_tensor(run->bodies.body[b].at.orientation,
                fsi_m3_inverse(run->bodies.body[b].work.inertia));
    for (r = 0; r < run->n && run->bodies.coupled_count; r++) {
        const fsi__sph_wall *w = fsi__sph_wall_of(run, r);
        for (k = 0; w && k < w->part_count; k++)
            if (w->part[k].body >= 0) fsi__sph_add3(wall, fsi__sph_rub_body(run, r, &w->part[k]));
    }
}

/* The new velocities, in rank order. */
static void fsi__sph_gather_velocity(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    int r;
    (void)chunk;
    for (r = begin; r < end; r++) run->u[r] = fsi__lane4_of(run->v[run->order[r]]);
}

/* XSPH (sph.md 10): v_i += c V sum_j (v_j - v_i) W~_ij w_i w_j, all at once; the old velocities are in `u`, W~ where
   the last density was taken. Without w, where lambda > 2/c a particle would get more than the whole difference, and
   velocities would grow by (c lambda - 1) each substep. */
FSI_FN void fsi__sph_pair_smooth(const fsi__sph_run *run, const int *list, int i, fsi__lane_sums *sum)
{
    const fsi__lane4 *vi = &run->u[i];
    fsi__f8 w = fsi__sph_pair_density(run->zp, list, &run->zp[i]), x, y, z, share;
    fsi__f8_gather_four(run->u, list, &x, &y, &z, &share);
    w = fsi__f8_mul(w, fsi__f8_mul(share, fsi__f8_set(vi->w)));
    fsi__add_weighted(sum, w, fsi__f8_sub(x, fsi__f8_set(vi->x)), fsi__f8_sub(y, fsi__f8_set(vi->y)),
        fsi__f8_sub(z, fsi__f8_set(vi->z)));
}

static void fsi__sph_smooth(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    const fsi_real c = (fsi_real)(fsi__sph_smoothing(run) * run->im->kernel.peak);
    int r, k;
    (void)chunk;
    for (r = begin; r < end; r++) {
        const int *list = run->list + run->first[r], size = fsi__padded(run->size[r]);
        fsi_vec3 *v = &run->v[run->order[r]];
        fsi__lane_sums sum = fsi__no_lane_sums();
        for (k = 0; k < size; k += FSI_LANES) fsi__sph_pair_smooth(run, list + k, r, &sum);
        *v = fsi_v3_madd(*v, c, fsi__lane4_v3(fsi__fold(&sum)));
    }
}

static void fsi__sph_shift_velocity(fsi__sph_run *run, int r, double *unused)
{
    (void)unused;
    if (fsi__sph_is_inner(run, r)) run->v[run->order[r]] = fsi_v3_sub(run->v[run->order[r]], run->shift);
}

/* Is it a body on which the solve left more unbalanced than it may? */
static int fsi__sph_is_unbalanced(const fsi__sph_run *run, const fsi__sph_body *b)
{
    return b->coupled && b->imbalance > (double)run->s->desc.body_tolerance;
}

/* The liquid's momentum may change by the impulses of the walls only. The defect, of the unfinished solve and rounding,
   is subtracted evenly from the inner particles under pressure (drops in flight have none), and from bodies out of
   balance: a heavy one, slightly out of balance, has most of it. */
static void fsi__sph_mend_momentum(fsi__sph_run *run, const double before[4], const double wall[3], double active)
{
    double after[4], defect[3], d;
    fsi_vec3 shift;
    int k, b;

    /* The defect, relative to sum |v|. */
    fsi__sph_momentum(run, after);
    for (k = 0; k < 3; k++) defect[k] = after[k] - before[k] - wall[k];
    d = after[3] > 0 ? sqrt(fsi__sph_dot3(defect, defect)) / after[3] : 0;
    if (d > run->stats.momentum_defect) run->stats.momentum_defect = d;

    /* The mass that takes it: inner particles and unbalanced bodies. Too small: the defect stays in the statistics. */
    for (b = 0; b < run->bodies.count; b++)
        if (fsi__sph_is_unbalanced(run, &run->bodies.body[b]))
            active += (double)(run->bodies.body[b].work.mass / run->s->particle_mass);
    if (!(active > 0.01 * run->n)) return;

    /* Particles: at most MEND times the mean speed each, so that few are not thrown away for all. */
    shift = fsi_v3((fsi_real)(defect[0] / active), (fsi_real)(defect[1] / active), (fsi_real)(defect[2] / active));
    run->shift = fsi__sph_at_most(shift, (fsi_real)(FSI__SPH_MEND * after[3] / run->n));
    fsi__sph_for_each(run, fsi__sph_shift_velocity, FSI__SPH_NS_SHIFT);

    /* Bodies: at most what the solve gave them. */
    for (b = 0; b < run->bodies.count; b++) {
        fsi__sph_body *body = &run->bodies.body[b];
        const fsi_vec3 back = fsi__sph_at_most(shift, fsi_v3_norm(fsi_v3_sub(body->velocity, body->star_velocity)));
        if (!fsi__sph_is_unbalanced(run, body)) continue;
        body->velocity = fsi_v3_sub(body->velocity, back);
        body->work.impulse = fsi_v3_madd(body->work.impulse, -body->work.mass, back);
        fsi__sph_add3(run->stats.wall_impulse, fsi_v3_scale(back, body->work.mass));
    }
}

/* ---- >>viscosity ---------------------------------------------------------------------------------------------- */

/* Weights of this substep. */
static void fsi__sph_viscous_weights(fsi__sph_run *run)
{
    const fsi_sph_desc *d = &run->s->desc;
    const double rate = run->dt * (double)d->viscosity / ((double)d->density * run->h * run->h);
    fsi__sph_viscosity *o = &run->viscous;
    o->h = run->h;
    o->n = run->n;
    o->first = run->first;
    o->size = run->size;
    o->list = run->list;
    o->place = run->zp;
    o->slot = run->slot;
    o->wall = run->wall;
    o->pair = rate * run->im->kernel.viscous;
    o->drag = rate * run->im->kernel.drag / (d->wall_calibrate ? run->im->kernel.wall : 1);
}

/* Places and velocities, coefficients of the walls, and how their surfaces move. */
static void fsi__sph_viscous_begin(fsi__sph_run *run, int r, double *unused)
{
    fsi__sph_viscosity *o = &run->viscous;
    fsi__sph_wall *w = fsi__sph_wall_of(run, r);
    const int i = run->order[r];
    int k;
    (void)unused;
    o->x[r] = run->x[i];
    fsi__sph_to_doubles(o->before[r], run->v[i], 1);
    run->zp[r] = fsi__record_at(run->x[i], 1 / run->h);
    for (k = 0; w && k < w->part_count; k++) {
        fsi__sph_part *part = &w->part[k];
        const fsi_vec3 v = fsi__sph_wall_velocity(run, part);
        part->drag = run->im->obstacle[part->owner].desc.no_slip ? (fsi__lane)o->drag * part->diagonal : 0;
        part->surface[0] = (fsi__lane)v.x;
        part->surface[1] = (fsi__lane)v.y;
        part->surface[2] = (fsi__lane)v.z;
    }
}

/* The passes over its particles. */
static void fsi__sph_viscous_residual(fsi__sph_run *run, int r, double *sum)
{
    fsi__sph_drag_residual(&run->viscous, r, sum);
}

static void fsi__sph_viscous_first_turn(fsi__sph_run *run, int r, double *sum)
{
    fsi__sph_drag_first_turn(&run->viscous, r, sum);
}

static void fsi__sph_viscous_apply(fsi__sph_run *run, int r, double *sum)
{
    fsi__sph_drag_apply(&run->viscous, r, sum);
}

static void fsi__sph_viscous_advance(fsi__sph_run *run, int r, double *sum)
{
    fsi__sph_drag_advance(&run->viscous, r, sum);
}

static void fsi__sph_viscous_turn(fsi__sph_run *run, int r, double *unused)
{
    (void)unused;
    fsi__sph_drag_turn(&run->viscous, r);
}

/* The new velocities and where they lead. The last call counts. */
static void fsi__sph_viscous_end(fsi__sph_run *run, int r, double *unused)
{
    const fsi__sph_viscosity *o = &run->viscous;
    const fsi_real dt = (fsi_real)run->dt;
    const int i = run->order[r];
    const double per_h = 1 / run->h;
    fsi_vec3 way;
    double v[3];
    (void)unused;
    v[0] = o->v[r][0] + o->taken * (double)o->r[r].x;
    v[1] = o->v[r][1] + o->taken * (double)o->r[r].y;
    v[2] = o->v[r][2] + o->taken * (double)o->r[r].z;
    run->drag[i] = fsi_v3_scale(fsi_v3_sub(fsi__sph_real3(v), fsi__sph_real3(o->before[r])), 1 / dt);
    run->v[i] = fsi__sph_real3(v);
    run->target[i] = fsi_v3_madd(run->x[i], dt, run->v[i]);
    way = fsi_v3_sub(run->target[i], run->guess[i]);
    run->star[r] = fsi__lane4_make((double)way.x * per_h, (double)way.y * per_h, (double)way.z * per_h);
    fsi__sph_unmove(run, r);
}

/* Work without neighbours, done with the residual: in banks 2 and 3 the sums from which iterations start, with their
   first direction; from the second round on, whose residual is expected to be the last, the new velocities. */
static void fsi__sph_viscous_start(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    int r;
    fsi__sph_visit_range(run, fsi__sph_viscous_residual, chunk, 0, begin, end);
    fsi__sph_visit_range(run, fsi__sph_viscous_first_turn, chunk, 2, begin, end);
    for (r = begin; r < end && run->viscous.round > 1; r++) fsi__sph_viscous_end(run, r, NULL);
}

/* Sums of a pass over the particles, with those of the coupled bodies. */
static void fsi__sph_viscous_sum(fsi__sph_run *run, int bank, fsi__sph_body_fn *body, double sum[6])
{
    int b, k;
    for (k = 0; k < 6; k++) sum[k] = fsi__sph_sum(run, 4 * bank + k);
    for (b = 0; b < run->bodies.count; b++) if (run->bodies.body[b].coupled)
        body(&run->bodies, &run->viscous, &run->bodies.body[b], sum);
}

/* One pass over all unknowns. */
static void fsi__sph_viscous_pass(fsi__sph_run *run, fsi__sph_rank_fn *particle, double work, fsi__sph_body_fn *body,
                                  double sum[6])
{
    fsi__sph_for_each(run, particle, work);
    fsi__sph_viscous_sum(run, 0, body, sum);
}

/* The residual of v with the last round's correction, and all that a first advance needs but the bodies. Each round has
   its own v and d: no pass may write what it reads of neighbours. */
static void fsi__sph_viscous_measure(fsi__sph_run *run, int round, double sum[6])
{
    fsi__sph_viscosity *o = &run->viscous;
    o->round = round;
    o->last_v = o->v;
    o->last_d = o->d;
    o->v = round > 1 ? o->room_v[round & 1] : o->before;
    o->d = o->room_d[round & 1];
    o->alpha = 0;
    o->taken = 1;
    fsi__sph_parallel(run, fsi__sph_viscous_start, FSI__SPH_NS_RESIDUAL + (round > 1 ? FSI__SPH_NS_VISCOUS_END : 0));
    fsi__sph_viscous_sum(run, 0, fsi__sph_body_drag_residual, sum);
}

/* One run of conjugate gradients, from the measured residual to |r| <= share |v - v*|; d is the correction. */
static void fsi__sph_viscous_iterate(fsi__sph_run *run, int allowed, double share)
{
    fsi__sph_viscosity *o = &run->viscous;
    double rz = HUGE_VAL, sum[6];
    int k;
    fsi__sph_viscous_sum(run, 2, fsi__sph_body_drag_advance, sum);
    for (k = 0;; k++) {
        if (k == allowed || sum[1] <= share * share * sum[2]) break;
        o->beta = sum[0] / rz;
        rz = sum[0];
        if (k > 0) fsi__sph_viscous_pass(run, fsi__sph_viscous_turn, FSI__SPH_NS_TURN, fsi__sph_body_drag_turn, sum);
        else fsi__sph_viscous_sum(run, 0, fsi__sph_body_drag_turn, sum); /* the particles have their first direction */
        fsi__sph_viscous_pass(run, fsi__sph_viscous_apply, FSI__SPH_NS_MULTIPLY, fsi__sph_body_drag_apply, sum);
        if (!(sum[0] > 0)) break;
        o->alpha = rz / sum[0];
        fsi__sph_viscous_pass(run, fsi__sph_viscous_advance, FSI__SPH_NS_ADVANCE, fsi__sph_body_drag_advance, sum);
    }
    run->stats.viscosity_iterations += k;
    fsi__sph_viscous_sum(run, 0, fsi__sph_body_drag_correct, sum); /* particles take theirs with the next residual */
}

/* Iterates until the residual, left in `sum`, is small, or this substep or this call may spend no more iterations. */
static fsi_status fsi__sph_viscous_solve(fsi__sph_run *run, double sum[6])
{
    const double share = FSI__SPH_VISCOUS * FSI__SPH_VISCOUS, noise = FSI__SPH_VISCOUS_NOISE * FSI__SPH_VISCOUS_NOISE;
    const fsi_sph_desc *d = &run->s->desc;
    const int start = run->stats.viscosity_iterations;
    int round, allowed;
    for (round = 1;; round++) {
        fsi__sph_viscous_measure(run, round, sum);
        if (!fsi_is_finite(sum[0] + sum[1])) return fsi__fail(run->s->context, FSI_ERROR_NAN,
            "fsi_sph_step", -1, sum[0], "the velocity that viscosity gives is not finite");
        if (sum[0] <= share * sum[1] + noise * sum[2]) return FSI_OK;
        allowed = start + run->sweeps - run->stats.viscosity_iterations;
        if (d->budget && d->budget - run->stats.viscosity_iterations < allowed)
            allowed = d->budget - run->stats.viscosity_iterations;
        if (allowed <= 0 || round == FSI__SPH_VISCOUS_ROUNDS) {
            run->stats.degraded = 1;
            return FSI_OK;
        }
        fsi__sph_viscous_iterate(run, allowed, 0.5 * FSI__SPH_VISCOUS);
    }
}

/* Books the walls' impulses, which are in part->force since the last residual. */
static void fsi__sph_viscous_reactions(fsi__sph_run *run)
{
    double unused[3] = { 0, 0, 0 };
    int r, k;
    for (r = 0; r < run->n; r++) {
        fsi__sph_wall *w = fsi__sph_wall_of(run, r);
        for (k = 0; w && k < 3 * w->part_count; k++)
            w->part[k / 3].impulse[k % 3] = (double)w->part[k / 3].force[k % 3];
    }
    fsi__sph_collect_reactions(run, unused);
}

/* From v* to the velocity that the pressure solve starts from; impulse: what the walls gave, over a particle's mass. */
static fsi_status fsi__sph_add_viscosity(fsi__sph_run *run, double impulse[3])
{
    fsi__sph_viscosity *o = &run->viscous;
    double clock = fsi__now(run->s->context), sum[6];
    fsi_status status;
    int b;
    for (b = 0; b < run->bodies.count; b++) if (run->bodies.body[b].coupled)
        fsi__sph_body_drag_begin(&run->bodies, o, &run->bodies.body[b]);
    status = fsi__sph_viscous_solve(run, sum);
    if (status != FSI_OK) return status;
    memcpy(impulse, sum + 3, 3 * sizeof *impulse);
    run->stats.viscosity_residual = sum[1] > 0 ? sqrt(sum[0] / sum[1]) : 0;
    o->taken = sum[0] <= 0.25 * sum[1]; /* else what is left may hold more energy than was taken */
    fsi__sph_viscous_reactions(run);
    if (o->round == 1 || !(o->taken > 0)) fsi__sph_for_each(run, fsi__sph_viscous_end, FSI__SPH_NS_VISCOUS_END);
    fsi__sph_viscous_sum(run, 0, fsi__sph_body_drag_end, sum);
    fsi__sph_lap(run, &run->stats.seconds_viscosity, &clock);
    return FSI_OK;
}

/* ---- >>emitters and sinks at work ----------------------------------------------------------------------------- */

FSI_FN void fsi__sph_add_scaled(double sum[3], double scale, fsi_vec3 v) /* sum += scale v */
{
    sum[0] += scale * (double)v.x;
    sum[1] += scale * (double)v.y;
    sum[2] += scale * (double)v.z;
}

/* Makes room in the particles' arrays for all that the emitters can emit in the step. */
static fsi_status fsi__sph_make_room(fsi__sph_run *run, double dt)
{
    static const char fn[] = "fsi_sph_step";
    fsi_sph *s = run->s;
    fsi__sph_impl *im = run->im;
    double more = 0, ghosts = 0;
    int k;
    run->room = s->count;
    if (im->sources.emitter_count == 0) return FSI_OK;

    /* Layers, and from them particles, of each emitter; `ghosts` stand behind the plane for one substep. */
    for (k = 0; k < im->sources.emitter_count; k++) {
        const fsi__emitter *e = &im->sources.emitter[k];
        const int fills = e->desc.shape == FSI_EMITTER_MESH;
        double layers = fsi__emitter_most_layers(e, dt, s->desc.max_substeps),
               lattice = (double)fsi__emitter_site_count(e), out = layers * e->sites;
        if (!(layers * lattice <= 0x3fffffff)) return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, e->flow.id, layers,
            "emitter %d would let out %g layers in one step", (int)e->flow.id, layers);
        run->sources.cells = (size_t)fmax((double)run->sources.cells, fills ? lattice : lattice * layers);
        if (e->desc.budget > 0) out = fmin(out, (double)(e->desc.budget - e->flow.emitted));
        more += fmax(out, 0);
        ghosts += fills ? 0 : e->sites;
    }

    /* Within the budget of the simulator. */
    if (s->desc.max_particles > 0) more = fmin(more, fmax(s->desc.max_particles - s->count, 0));
    FSI__TRY(fsi__particles_room_for_sources(&im->particles, fn, s->count + more + ghosts, more));
    run->room = s->capacity;
    return FSI_OK;
}

static void fsi__sph_begin_sources(fsi__sph_run *run)
{
    const fsi__sph_impl *im = run->im;
    run->next_particle = im->particles.next;
    fsi__source_begin(&run->sources);
    if (run->gone) memset(run->gone, 0, (size_t)run->room);
    if (run->source && run->n > 0) memcpy(run->source, im->source, (size_t)run->n * sizeof *run->source);
}

/* Particles in emitters take their velocity, those far enough are released. Sums: velocity given (3), number kept. */
static void fsi__sph_hold_range(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    double sum[3] = { 0, 0, 0 }, held = 0;
    int i;
    for (i = begin; i < end; i++) {
        const fsi__emitter *e = fsi__source_holder(&run->sources, run->source[i], run->x[i], run->clock);
        if (!e) {
            run->source[i] = 0;
            continue;
        }
        fsi__sph_add_scaled(sum, 1, fsi_v3_sub(fsi__emitter_velocity(e), run->v[i]));
        run->v[i] = fsi__emitter_velocity(e);
        run->warm[i] = fsi_v3(0, 0, 0);
        held += 1;
    }
    fsi__sph_put_sums(run, chunk, sum[0], sum[1], sum[2], held);
}

/* Neither neighbours nor walls have moved particles in emitters: the emitter took the impulse of the neighbours, and
   walls no longer act on them. Sums: velocity that the emitter gave. */
static void fsi__sph_part_range(fsi__sph_run *run, int chunk, int begin, int end)
{
    double sum[3] = { 0, 0, 0 };
    int r;
    for (r = begin; r < end; r++) {
        fsi__lane4 f;
        if (!run->source[run->order[r]]) continue;
        f = fsi__sph_pressure_on(run, r);
        fsi__sph_add_scaled(sum, -run->h / run->dt, fsi_v3((fsi_real)f.x, (fsi_real)f.y, (fsi_real)f.z));
        run->slot[r] = -1;
        run->step[r].w = 0; /* takes no part of the defect of momentum */
    }
    fsi__sph_put_sums_at(run, chunk, 1, sum[0], sum[1], sum[2], 0);
}

/* Adds a bank of the last pass. */
static void fsi__sph_add_given(fsi__sph_run *run, int bank)
{
    int k;
    for (k = 0; k < 3 && run->holding > 0; k++) run->given[k] += fsi__sph_sum(run, 4 * bank + k);
}

/* After viscosity and tension: particles in emitters move as without. They are few: no dispatch. */
static void fsi__sph_unmove_held(fsi__sph_run *run)
{
    if (run->holding == 0) return;
    fsi__sph_parallel(run, fsi__sph_hold_range, 0);
    fsi__sph_add_given(run, 0);
}

/* A new row behind the others, for a particle that emitter e emits now or next. */
static int fsi__sph_append(fsi__sph_run *run, const fsi__emitter *e, fsi_vec3 x)
{
    const int i = run->n;
    FSI_ASSERT(i < run->room);
    run->x[i] = x;
    run->v[i] = fsi__emitter_velocity(e);
    run->warm[i] = fsi_v3(0, 0, 0);
    run->kappa[i] = run->lambda_out[i] = 1;
    run->pressure[i] = 0;
    run->source[i] = e->desc.shape == FSI_EMITTER_MESH ? 0 : (uint32_t)(e->flow.id + 1);
    fsi__sph_set_count(run, i + 1);
    return i;
}

/* How many particles emitter k may still emit. */
static long long fsi__sph_allowed(const fsi__sph_run *run, int k)
{
    const fsi_emitter_desc *d = &run->im->sources.emitter[k].desc;
    const int most = run->s->desc.max_particles, count = run->n - run->ghosts;
    long long left = run->room - count;
    if (most > 0 && most - count < left) left = most - count;
    if (d->budget > 0 && d->budget - run->sources.flow[k].emitted < left)
        left = d->budget - run->sources.flow[k].emitted;
    return left > 0 ? left : 0;
}

/* The next layer of an emitter, still behind its plane, takes part in the solve: else liquid from the side, which
   stands under pressure, would flow into the gap behind the last layer. */
static void fsi__sph_add_ghosts(fsi__sph_run *run, int k)
{
    const fsi__emitter *e = &run->im->sources.emitter[k];
    const fsi_vec3 o = fsi__source_first_site(&run->sources, k, run->sources.flow[k].advance - 1);
    size_t c;
    fsi__source_block(&run->sources, k, 1, o, run->x, run->n, NULL);
    for (c = 0; c < fsi__emitter_site_count(e); c++) {
        if (!e->present[c] || run->sources.blocked[c]) continue;
        run->s->filter[fsi__sph_append(run, e, fsi__emitter_site(e, o, c))] = e->desc.filter;
        run->ghosts++;
    }
}

/* Before a substep. The number of particles in emitters is known after its first pass. */
static void fsi__sph_hold(fsi__sph_run *run)
{
    int k;
    run->given[0] = run->given[1] = run->given[2] = 0;
    run->holding = run->source != NULL;
    if (!run->source) return;
    for (k = 0; k < run->im->sources.emitter_count; k++)
        if (fsi__emitter_flows(&run->im->sources.emitter[k], run->clock) && fsi__sph_allowed(run, k) > 0)
            fsi__sph_add_ghosts(run, k);
}

/* Behind that pass. */
static void fsi__sph_count_held(fsi__sph_run *run)
{
    int k;
    if (!run->source) return;
    for (k = 0; k < 3; k++) run->stats.source_impulse[k] += (double)run->s->particle_mass * fsi__sph_sum(run, k);
    run->holding = (int)fsi__sph_sum(run, 3);
}

/* A particle that emitter e emits. */
static void fsi__sph_emit(void *owner, const fsi__emitter *e, fsi_vec3 x, int is_behind)
{
    fsi__sph_run *run = (fsi__sph_run *)owner;
    const int i = fsi__sph_append(run, e, x);
    (void)is_behind;
    fsi__particles_new_row(&run->im->particles, i, x, run->v[i], (uint32_t)run->next_particle++, e->desc.filter,
        e->attributes);
}

/* Lets out `layers` copies of emitter k's sites, the oldest first; the youngest has come `advance` layers far. */
static void fsi__sph_emit_sites(fsi__sph_run *run, int k, double advance, int layers)
{
    const fsi__emitter *e = &run->im->sources.emitter[k];
    const fsi_vec3 o = fsi__source_first_site(&run->sources, k, advance);
    const long long left = fsi__sph_allowed(run, k);
    fsi__emission out;
    if (left > 0)
        fsi__source_block(&run->sources, k, layers, o, run->x, run->n,
                          e->desc.shape != FSI_EMITTER_MESH ? run->source : NULL);
    out = fsi__source_emit(&run->sources, k, layers, 0, o, left, fsi__sph_emit, run);
    run->stats.emitted += (int)out.emitted;
    run->stats.blocked += (int)out.blocked;
    run->stats.refused += (int)out.refused;
    fsi__sph_add_scaled(run->stats.source_impulse, (double)run->s->particle_mass * (double)out.emitted,
        fsi__emitter_velocity(e));
}

/* Lets out the layers that crossed the plane of emitter k until `now`, or fills its mesh when that is due. */
static void fsi__sph_let_emitter_out(fsi__sph_run *run, int k, double now)
{
    const fsi__emitter *e = &run->im->sources.emitter[k];
    fsi__flow *f = &run->sources.flow[k];
    double layers;
    if (e->desc.shape == FSI_EMITTER_MESH) {
        if (fsi__emitter_fills(e, f, run->clock, now)) fsi__sph_emit_sites(run, k, 0, 1);
        return;
    }
    f->advance = fsi__emitter_advance(e, f, run->clock, now);
    layers = floor(f->advance);
    f->advance -= layers;
    if (layers >= 1) fsi__sph_emit_sites(run, k, f->advance, (int)layers);
}

/* After a substep. */
static void fsi__sph_let_out(fsi__sph_run *run)
{
    const double now = run->clock + run->dt;
    int k;
    fsi__sph_set_count(run, run->n - run->ghosts);
    run->ghosts = 0;
    for (k = 0; k < run->im->sources.emitter_count; k++) {
        fsi__sph_add_scaled(run->sources.flow[k].center, run->dt, run->im->sources.emitter[k].desc.velocity);
        fsi__sph_let_emitter_out(run, k, now);
    }
    run->clock = now;
}

/* After the last substep. */
static void fsi__sph_drain_off(fsi__sph_run *run, double dt)
{
    int i;
    if (!run->gone) return;
    run->stats.removed =
        fsi__source_drain(&run->sources, dt, (double)run->s->particle_volume, run->x, run->n, run->gone);
    for (i = 0; i < run->n; i++)
        if (run->gone[i]) fsi__sph_add_scaled(run->stats.source_impulse, -(double)run->s->particle_mass, run->v[i]);
}

static void fsi__sph_commit_sources(fsi__sph_run *run)
{
    fsi__sph_impl *im = run->im;
    im->particles.next = run->next_particle;
    fsi__source_commit(&run->sources);
    if (run->source && run->n > 0) memcpy(im->source, run->source, (size_t)run->n * sizeof *run->source);
    if (run->marked > 0) {
        memcpy(im->marker, run->marker, (size_t)run->marked);
        memcpy(im->aeration, run->aeration, (size_t)run->marked * sizeof *run->aeration);
    }
    if (run->stats.removed > 0) fsi__particles_compact(&im->particles, run->n, run->gone);
}

/* ---- >>markers ------------------------------------------------------------------------------------------------ */

/* Reads velocities from u; writes normals to star, the other measures to step. */
static void fsi__sph_find_air(void *arg, int chunk, int begin, int end)
{
    const fsi__sph_run *run = (const fsi__sph_run *)arg;
    int r;
    (void)chunk;
    for (r = begin; r < end; r++) fsi__find_air(&run->foam, r);
}

static void fsi__sph_set_markers(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    int r;
    (void)chunk;
    for (r = begin; r < end; r++) {
        const int i = run->order[r];
        run->marker[i] = (unsigned char)fsi__find_marker(&run->foam, r, &run->aeration[i]); /* FSI_SPH_LIQUID ... */
    }
}

static void fsi__sph_start_foam(fsi__sph_run *run)
{
    const fsi_sph_desc *d = &run->s->desc;
    fsi__foam *f = &run->foam;
    f->dim = d->dim;
    f->ratio = (double)d->support;
    f->first = run->first;
    f->size = run->size;
    f->list = run->list;
    f->place = run->zp;
    f->velocity = run->u;
    f->normal = run->star;
    f->found = run->step;
    f->air[0] = d->trapped_air_min;
    f->air[1] = d->trapped_air_max;
    f->crest[0] = d->wave_crest_min;
    f->crest[1] = d->wave_crest_max;
    f->energy[0] = d->spray_energy_min;
    f->energy[1] = d->spray_energy_max;
}

static void fsi__sph_mark(fsi__sph_run *run)
{
    if (!run->marker || run->n == 0) return;
    fsi__sph_start_foam(run);
    fsi__sph_parallel(run, fsi__sph_gather_velocity, FSI__SPH_NS_GATHER);
    fsi__sph_parallel(run, fsi__sph_find_air, FSI__SPH_NS_AIR);
    fsi__sph_parallel(run, fsi__sph_set_markers, FSI__SPH_NS_MARKERS);
    run->marked = run->n - run->ghosts;
}

/* ---- >>substep ------------------------------------------------------------------------------------------------ */

/* The first pass of a substep, in creation order. */
static void fsi__sph_start_range(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    if (run->source) fsi__sph_hold_range(run, chunk, begin, end);
    fsi__sph_predict(run, chunk, begin, end);
    fsi__sph_visit_range(run, fsi__sph_add_momentum, chunk, 2, begin, end);
}

/* Where particles and obstacles go without pressure, and where the solve starts. */
static fsi_status fsi__sph_start_substep(fsi__sph_run *run, double before[4])
{
    fsi_status status = FSI_OK;
    double clock = fsi__now(run->s->context);
    int b;
    run->bodies.dt = run->dt;
    fsi__sph_predict_bodies(&run->bodies, run->s->desc.warm_start, run->done + run->share);
    fsi__sph_move_obstacles(run, 0);
    fsi__sph_hold(run);
    fsi__sph_parallel(run, fsi__sph_start_range, FSI__SPH_NS_START);
    fsi__sph_count_held(run);
    for (b = 0; b < 3; b++) run->stats.external_impulse[b] += (double)run->s->particle_mass * fsi__sph_sum(run, 4 + b);
    fsi__sph_momentum(run, before);
    run->way = before[3] * run->dt / run->h;
    if (run->im->neighbors->count != run->n)
        status = fsi__neighbors_sort(run->im->neighbors, run->x, run->n, (fsi_real)run->h, run->s->desc.dim);
    if (status != FSI_OK) return status;
    run->order = run->im->neighbors->order;
    fsi__sph_parallel(run, fsi__sph_place_start, FSI__SPH_NS_PLACE);
    fsi__sph_lap(run, &run->stats.seconds_other, &clock);
    return FSI_OK;
}

/* The first pass after the solve, in rank order. */
static void fsi__sph_end_range(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    memcpy(run->u + begin, run->uz + begin, (size_t)(end - begin) * sizeof *run->u);
    fsi__sph_place_end(run, chunk, begin, end);
    if (run->holding > 0) fsi__sph_part_range(run, chunk, begin, end);
    fsi__sph_finish(run, chunk, begin, end);
}

/* The last but the shift of velocities, in creation order. */
static void fsi__sph_settle_range(void *arg, int chunk, int begin, int end)
{
    fsi__sph_run *run = (fsi__sph_run *)arg;
    if (run->holding > 0) fsi__sph_hold_range(run, chunk, begin, end);
    fsi__sph_visit_range(run, fsi__sph_add_momentum, chunk, 2, begin, end);
}

/* End positions and velocities of bodies and particles, outside of each other. */
static fsi_status fsi__sph_place_all(fsi__sph_run *run, double bodies[3])
{
    fsi__sph_finish_bodies(&run->bodies, fsi__sph_warm_share(run), run->drag ? run->viscous.body : NULL, bodies);
    fsi__sph_move_obstacles(run, 1);
    fsi__sph_parallel(run, fsi__sph_end_range, FSI__SPH_NS_FINISH);
    fsi__sph_add_given(run, 1);
    run->stats.placed += (int)fsi__sph_sum(run, 0);
    run->stats.pinched += (int)fsi__sph_sum(run, 1);
    return fsi__sph_check_overflow(run);
}

static fsi_status fsi__sph_substep(fsi__sph_run *run)
{
    fsi_sph_stats *st = &run->stats;
    const double mass = (double)run->s->particle_mass;
    double clock, active, before[4], wall[3], bodies[3], drag[3] = { 0, 0, 0 };
    fsi_status status = fsi__sph_start_substep(run, before);
    int k;

    /* Prediction; neighbour lists and walls there; tension and viscosity change x*; then the pressure solve. */
    if (status == FSI_OK) status = fsi__sph_first_attach(run);
    if (status == FSI_OK && run->tension) fsi__sph_tension(run);
    if (status == FSI_OK && run->s->desc.viscosity > 0) status = fsi__sph_add_viscosity(run, drag);
    if (status == FSI_OK && (run->s->desc.viscosity > 0 || run->tension)) fsi__sph_unmove_held(run);
    if (status == FSI_OK) status = fsi__sph_solve(run);

    /* End positions outside the solids, and velocities. */
    clock = fsi__now(run->s->context);
    if (status == FSI_OK) status = fsi__sph_place_all(run, bodies);
    if (status != FSI_OK) return status;

    /* Impulses of the walls: normal forces, then friction of coupled bodies. */
    active = fsi__sph_sum(run, 11);
    for (k = 0; k < 3; k++) wall[k] = fsi__sph_sum(run, 8 + k);
    fsi__sph_collect_reactions(run, wall);
    fsi__sph_rub_bodies(run, wall);
    for (k = 0; k < 3; k++) {
        wall[k] += drag[k] - bodies[k] / mass;
        st->wall_impulse[k] += mass * wall[k];
    }

    /* XSPH; particles in emitters keep the velocity of these; the defect of momentum is taken out. */
    if (fsi__sph_smoothing(run) > 0) fsi__sph_parallel(run, fsi__sph_smooth, FSI__SPH_NS_SMOOTH);
    fsi__sph_parallel(run, fsi__sph_settle_range, FSI__SPH_NS_MOMENTUM);
    fsi__sph_add_given(run, 0);
    for (k = 0; k < 3; k++) {
        wall[k] += run->given[k];
        st->source_impulse[k] += mass * run->given[k];
    }
    fsi__sph_mend_momentum(run, before, wall, active);

    /* The next substep starts here. */
    fsi__sph_start_from_end(&run->bodies);
    st->substeps++;
    st->wall_particles = run->wall_count;
    st->pairs = run->im->neighbors->pair_count;
    fsi__sph_lap(run, &st->seconds_other, &clock);
    return FSI_OK;
}

/* ---- >>step --------------------------------------------------------------------------------------------------- */

static fsi_status fsi__sph_check(const fsi_sph *s)
{
    if (!s) return FSI_ERROR_ARGUMENT;
    return s->cookie == FSI__COOKIE('s', fsi_sph) ? FSI_OK : FSI_ERROR_COOKIE;
}

/* Momentum, energies, compression of the new state; NaN names its particle. */
static fsi_status fsi__sph_measure(fsi__sph_run *run)
{
    fsi_sph_stats *st = &run->stats;
    const fsi_sph *s = run->s;
    const double m = (double)s->particle_mass;
    double fastest = 0;
    int i;
    st->particles = run->n - st->removed;

    /* Particles: finite, and their sums. */
    for (i = 0; i < run->n; i++) {
        const fsi_vec3 *x = &run->x[i], *v = &run->v[i];
        const double rest =
            (double)(run->lambda_out[i] + run->pressure[i] + run->kappa[i] + (i < run->marked ? run->aeration[i] : 0));
        if (!fsi_v3_is_finite(*x) || !fsi_v3_is_finite(*v) || !fsi_v3_is_finite(run->warm[i]) || !fsi_is_finite(rest))
            return fsi__fail(s->context, FSI_ERROR_NAN, "fsi_sph_step", i, 0,
                             "particle %d: its new state is not finite", i);
        if (run->gone && run->gone[i]) continue;
        fastest = fmax(fastest, (double)fsi_v3_norm2(*v));
        fsi__sph_add_scaled(st->momentum, m, *v);
        st->kinetic_energy += 0.5 * m * (double)fsi_v3_norm2(*v);
        st->potential_energy -= m * (double)fsi_v3_dot(s->desc.gravity, *x);
    }

    /* Bodies: finite. */
    for (i = 0; i < run->bodies.count; i++) {
        if (fsi__sph_body_is_finite(&run->bodies.body[i])) continue;
        return fsi__fail(s->context, FSI_ERROR_NAN, "fsi_sph_step", i, 0, "the new state of body %d is not finite", i);
    }

    /* Speed, within what the next step accepts. */
    st->max_speed = sqrt(fastest);
    if (!(st->max_speed <= FSI__SPH_FAST))
        return fsi__fail(s->context, FSI_ERROR_LIMIT, "fsi_sph_step", -1, st->max_speed,
                         "a particle would come out at %g m/s, more than %g", st->max_speed, FSI__SPH_FAST);
    st->cfl = st->max_speed * run->dt / (double)s->desc.spacing;
    return FSI_OK;
}

/* Where the step leaves an obstacle, and what it felt. */
static void fsi__sph_commit_obstacle(const fsi__sph_run *run, fsi__sph_obstacle *o, double dt)
{
    const fsi__sph_body *b = o->base.body >= 0 ? &run->bodies.body[o->base.body] : NULL;
    fsi__obstacle_commit(&o->base, dt, b ? &b->at : NULL);
    if (b) memcpy(o->warm, b->warm, sizeof o->warm);
}

static void fsi__sph_commit(fsi__sph_run *run, double dt)
{
    fsi_sph *s = run->s;
    size_t n = (size_t)run->n;
    int k;
    s->count = run->n;
    if (n > 0) {
        memcpy(s->position, run->x, n * sizeof *run->x);
        memcpy(s->velocity, run->v, n * sizeof *run->v);
        memcpy(run->im->warm, run->warm, n * sizeof *run->warm);
        memcpy(run->im->kappa, run->kappa, n * sizeof *run->kappa);
        memcpy(run->im->pressure, run->pressure, n * sizeof *run->pressure);
        memcpy(run->im->density_ratio, run->lambda_out, n * sizeof *run->lambda_out);
    }
    for (k = 0; k < run->im->obstacles.count && dt > 0; k++) fsi__sph_commit_obstacle(run, &run->im->obstacle[k], dt);
    for (k = 0; k < run->bodies.count && dt > 0; k++) fsi__sph_commit_body(&run->bodies.body[k], dt);
    fsi__sph_commit_sources(run);
    if (!(dt > 0)) run->stats.wall_speed = s->stats.wall_speed;
    run->stats.bytes = s->context->bytes;
    run->stats.allocs = s->context->allocs;
    s->stats = run->stats;
}

/* A vector of particle i that must be finite, and no larger than `most`. */
static fsi_status fsi__sph_check_size(const fsi_sph *s, const char *fn, long long i, const char *what, fsi_vec3 v,
                                      double most)
{
    const double size = fsi__largest_axis(v);
    if (size <= most) return FSI_OK;
    if (!fsi_v3_is_finite(v))
        return fsi__fail(s->context, FSI_ERROR_NAN, fn, i, 0, "particle %.0f: its %s is not finite", (double)i, what);
    return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, i, size, "particle %.0f: its %s is %g, more than %g", (double)i,
                     what, size, most);
}

static fsi_status fsi__sph_check_state(const fsi_sph *s, fsi_real dt)
{
    static const char fn[] = "fsi_sph_step";
    int i;
    FSI__TRY(fsi__check_dt(s->context, dt, fn));
    FSI__TRY(fsi__obstacles_check_carriers(&((const fsi__sph_impl *)s->impl)->obstacles, fn, 0));
    for (i = 0; i < s->count; i++) {
        FSI__TRY(fsi__sph_check_size(s, fn, i, "position", s->position[i], FSI__SPH_FAR));
        FSI__TRY(fsi__sph_check_size(s, fn, i, "velocity", s->velocity[i], FSI__SPH_FAST));
        FSI__TRY(fsi__sph_check_size(s, fn, i, "force", s->force[i], FSI__SPH_PULL * (double)s->particle_mass));
    }
    return FSI_OK;
}

/* A substep without particles: bodies move on. */
static fsi_status fsi__sph_drift(fsi__sph_run *run)
{
    double none[3];
    run->bodies.dt = run->dt;
    fsi__sph_predict_bodies(&run->bodies, run->s->desc.warm_start, run->done + run->share);
    fsi__sph_reset_bodies(&run->bodies, FSI__SPH_TO_STAR, run->omega);
    fsi__sph_finish_bodies(&run->bodies, fsi__sph_warm_share(run), run->drag ? run->viscous.body : NULL, none);
    fsi__sph_move_obstacles(run, 0);
    fsi__sph_start_from_end(&run->bodies);
    run->stats.substeps++;
    return FSI_OK;
}

/* The length of the next substep: CFL with the speed that gravity and forces add, at least left/substeps_left. */
static double fsi__sph_substep_length(const fsi__sph_run *run, double left, int substeps_left)
{
    double pull = (double)fsi_v3_norm(run->s->desc.gravity)
        + fsi__longest(run->s->force, run->n) / (double)run->s->particle_mass;
    double speed = fmax(fsi__sources_fastest(&run->im->sources, fsi__longest(run->v, run->n)) + pull * left,
        run->stats.wall_speed);
    double count = ceil(speed * left / ((double)run->s->desc.cfl * (double)run->s->desc.spacing) - 1e-9);
    if (run->tension) count = fmax(count, ceil(left / fsi__sph_tension_dt(run->s) - 1e-9));
    count = fmax(count, ceil(left / fsi__sph_stiff_dt(run->s, FSI__SPH_SOFT) - 1e-9));
    /* few good ones */
    if (run->s->desc.budget > 0)
        count = fmin(count, floor((double)(run->s->desc.budget - run->stats.iterations) / run->s->desc.min_iters));
    if (!(count >= 1)) count = 1;
    if (count > substeps_left) count = substeps_left;
    return left / count;
}

/* Enters an obstacle's body into the step's table, unless it is there. */
static void fsi__sph_begin_body(fsi__sph_run *run, fsi__sph_obstacle *o, double dt)
{
    fsi__sph_body *b;
    const double reach = o->base.reach / run->h;
    int k;
    for (k = 0; k < run->bodies.count && run->bodies.body[k].user != o->base.carrier; k++) {}
    o->base.body = k;
    b = &run->bodies.body[k];
    if (k == run->bodies.count) {
        run->bodies.count++;
        memset(b, 0, sizeof *b);
        if (run->viscous.body) memset(&run->viscous.body[k], 0, sizeof *run->viscous.body);
        b->user = o->base.carrier;
        b->work = *b->user;
        b->coupled = b->work.mode == FSI_BODY_COUPLED;
        b->from = o->base.at;
        b->base = b->work.pose;
        b->velocity = b->work.velocity;
        b->spin = fsi_m3_mul_v3(fsi_body_world_tensor(b->base.orientation, b->work.inertia), b->work.angular_velocity);
        if (b->coupled) memcpy(b->warm, o->warm, sizeof b->warm);
        run->bodies.coupled_count += b->coupled;
        fsi_body_begin_step(&b->work, (fsi_real)dt);
    }
    if (reach > b->reach) b->reach = reach;
}

/* The speed of an obstacle's fastest vertex, were it to move evenly through the step. */
static double fsi__sph_obstacle_speed(const fsi__sph_run *run, const fsi__sph_obstacle *o, double dt)
{
    if (o->base.body >= 0) {
        const fsi__sph_body *b = &run->bodies.body[o->base.body];
        const fsi_vec3 c = b->coupled ? fsi_v3_madd(b->velocity, (fsi_real)dt / b->work.mass, b->work.force)
            : fsi_v3_scale(fsi_v3_sub(b->work.end.position, o->base.at.position), (fsi_real)(1 / dt));
        const fsi_vec3 turn = b->coupled ? b->work.new_angular_velocity
            : fsi_v3_scale(fsi__turn_between(o->base.at, b->work.end), (fsi_real)(1 / dt));
        return (double)fsi_v3_norm(c) + (double)fsi_v3_norm(turn) * b->reach * run->h;
    }
    return fsi__obstacle_way(&o->base) / dt;
}

/* The liquid's bounding box, inflated by its largest displacement in the step and the kernel's radius. */
static fsi_box3 fsi__sph_liquid_box(const fsi__sph_run *run, double dt)
{
    fsi_box3 box = fsi_box3_empty();
    int i;
    for (i = 0; i < run->n; i++) box = fsi_box3_grow(box, run->s->position[i]);
    return fsi_box3_inflate(box, (fsi_real)(run->h + dt * fsi__longest(run->s->velocity, run->n)));
}

/* What moves in this step, and how fast. Makes shadows of meshes that move for the first time. */
static fsi_status fsi__sph_begin_obstacles(fsi__sph_run *run, double dt)
{
    const fsi_box3 liquid = fsi__sph_liquid_box(run, dt);
    int k;
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi__sph_obstacle *o = &run->im->obstacle[k];
        fsi__obstacle_begin(&run->im->obstacles, &o->base);
        if (o->base.carrier) fsi__sph_begin_body(run, o, dt);
        o->speed = dt > 0 ? fsi__sph_obstacle_speed(run, o, dt) : 0;
        if (!(o->speed <= FSI__SPH_FAST))
            return fsi__fail(run->s->context, FSI_ERROR_LIMIT, "fsi_sph_step", o->base.id, o->speed,
            "obstacle %d moves at %g m/s, more than %g", o->base.id, o->speed, FSI__SPH_FAST);
        if (o->speed > run->stats.wall_speed
            && fsi_box3_overlap(liquid, fsi_box3_inflate(o->base.mesh->box,
            (fsi_real)(o->speed * dt)))) run->stats.wall_speed = o->speed;
        FSI__TRY(fsi__obstacle_shade(&run->im->obstacles, &o->base, "fsi_sph_step"));
    }
    return FSI_OK;
}

static fsi_status fsi__sph_begin(fsi__sph_run *run, fsi_sph *s, double dt)
{
    fsi__arena measure = { NULL, 0, 0 };

    /* Simulator, and room for what emitters may emit. */
    memset(run, 0, sizeof *run);
    run->s = s;
    run->im = (fsi__sph_impl *)s->impl;
    run->sources.sources = &run->im->sources;
    run->clock = s->time;
    FSI__TRY(fsi__sph_make_room(run, dt));
    fsi__sph_set_count(run, run->room);

    /* Constants of bodies, of placing and of the boundary integral. */
    run->h = (double)s->support;
    run->bodies.dim = s->desc.dim;
    run->bodies.h = run->h;
    run->bodies.m = (double)s->particle_mass;
    run->dhat = (double)s->desc.contact_thickness * (double)s->desc.spacing / run->h;
    run->walls.list = &run->im->obstacles;
    run->walls.domain = run->im->domain;
    run->walls.box = run->im->domain ? &s->desc.domain : NULL;
    run->walls.gap = run->dhat * run->h;
    run->walls.hair = 0.01 * run->dhat * run->h;
    run->walls.reach = run->h;
    run->scene.obstacles = &run->im->obstacles;
    run->scene.h = run->h;
    run->scene.dhat = run->dhat;
    run->scene.band = 2 * FSI__SPH_MOVE;
    run->scene.boundary = s->desc.boundary;

    /* Memory of the whole step: measured, then taken. */
    fsi__sph_layout(run, &measure);
    if (!fsi__arena_reserve(s->context, &run->im->scratch, measure.used)) return fsi__fail(s->context, FSI_ERROR_MEMORY,
        "fsi_sph_step", -1, s->count, "no memory to step %d particles", run->room);
    fsi__sph_layout(run, &run->im->scratch);

    /* Obstacles, and emitters, whose particles come after the present ones. */
    FSI__TRY(fsi__sph_begin_obstacles(run, dt));
    memset(run->overflow, 0, (size_t)run->chunks * sizeof(int));
    fsi__sph_set_count(run, s->count);
    fsi__sph_begin_sources(run);
    if (s->count == 0) return FSI_OK;

    /* The state that the step starts from. */
    memcpy(run->x, s->position, (size_t)s->count * sizeof *run->x);
    memcpy(run->v, s->velocity, (size_t)s->count * sizeof *run->v);
    memcpy(run->warm, run->im->warm, (size_t)s->count * sizeof *run->warm);
    memcpy(run->kappa, run->im->kappa, (size_t)s->count * sizeof *run->kappa);
    memcpy(run->pressure, run->im->pressure, (size_t)s->count * sizeof *run->pressure);
    memcpy(run->lambda_out, run->im->density_ratio, (size_t)s->count * sizeof *run->lambda_out);
    return FSI_OK;
}

/* mu of this substep: the liquid's, or what so long a substep can bear. */
static double fsi__sph_softened(fsi__sph_run *run)
{
    const double share = fsi__sph_stiff_dt(run->s, FSI__SPH_SOFT) / run->dt;
    if (share > 0.999) return (double)run->s->stiffness;
    run->stats.degraded = 1;
    return (double)run->s->stiffness * share * share;
}

/* Sweeps for one of the substeps that are left. The budget is divided evenly; each substep has one sweep at least. */
static int fsi__sph_sweeps(const fsi__sph_run *run, double left)
{
    const fsi_sph_desc *d = &run->s->desc;
    /* the last one is only judged */
    const double share = (d->budget - run->stats.iterations) / ceil(left / run->dt - 1e-9) - 1;
    return d->budget && share < d->max_iters ? (int)fmax(share, 1) : d->max_iters;
}

/* Substeps until the step is done. A liquid without particles moves obstacles and bodies all the same. */
static fsi_status fsi__sph_run_substeps(fsi__sph_run *run, double dt)
{
    fsi_sph *s = run->s;
    double left = dt, compression = 0;
    fsi_status status = FSI_OK;
    while (left > 0 && status == FSI_OK) {
        run->dt = fsi__sph_substep_length(run, left, s->desc.max_substeps - run->stats.substeps);
        run->stiffness = fsi__sph_softened(run);
        run->mu = run->stiffness * run->dt * run->dt / ((double)s->desc.density * run->h * run->h);
        run->kappa0 = run->mu * (double)s->desc.contact_stiffness;
        run->sweeps = fsi__sph_sweeps(run, left);
        run->done = 1 - left / dt;
        run->share = run->dt < left * (1 - 1e-9) ? run->dt / dt : 1 - run->done;
        status = run->n > 0 ? fsi__sph_substep(run) : fsi__sph_drift(run);
        compression += run->compression;
        left = left - run->dt > left * 1e-9 && run->stats.substeps < s->desc.max_substeps ? left - run->dt : 0;
        if (status == FSI_OK && !(left > 0)) fsi__sph_mark(run);
        if (status == FSI_OK) fsi__sph_let_out(run);
    }
    if (run->stats.substeps > 0) run->stats.mean_compression = compression / run->stats.substeps;
    return status;
}

/* Warns, once a step, of results below what was asked, and of forced ones. */
static void fsi__sph_warn(const fsi_sph *s)
{
    const fsi_sph_stats *st = &s->stats;
    if (!st->degraded && st->placed == 0 && st->pinched == 0 && st->crowded == 0 && st->refused == 0) return;
    fsi__warn(s->context,
              "fsi_sph_step at %g s:%s %d particles placed, %d pinched, %d crowded, %d refused by budgets of emitters",
              s->time, st->degraded ? " degraded;" : "", st->placed, st->pinched, st->crowded, st->refused);
}

FSI_API fsi_status fsi_sph_step(fsi_sph *s, fsi_real dt)
{
    fsi__sph_run run;
    fsi_status status;
    FSI__TRY(fsi__sph_check(s));
    FSI__TRY(fsi__sph_check_state(s, dt));
    status = fsi__sph_begin(&run, s, (double)dt);
    if (status == FSI_OK) status = fsi__sph_run_substeps(&run, (double)dt);
    if (status == FSI_OK && dt > 0) fsi__sph_drain_off(&run, (double)dt);
    if (status == FSI_OK) status = fsi__sph_measure(&run);
    if (status != FSI_OK) {
        fsi__obstacles_stand(&run.im->obstacles);
        return status;
    }
    s->time += (double)dt;
    fsi__sph_commit(&run, (double)dt);
    fsi__sph_warn(s);
    return FSI_OK;
}

FSI__COLD_BEGIN

/* ---- >>making and changing ------------------------------------------------------------------------------------ */

FSI_API fsi_sph_desc fsi_sph_default_desc(void)
{
    fsi_sph_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('d', fsi_sph_desc);

    /* Scale and liquid. */
    d.dim = 3;
    d.spacing = (fsi_real)0.02;
    d.support = 2;
    d.density = 1000;
    d.gravity = fsi_v3(0, 0, (fsi_real)-9.81);
    d.depth = 1;
    d.compressibility = (fsi_real)0.01;

    /* The solve and its substeps. */
    d.min_iters = 8;
    d.max_iters = 200;
    d.tolerance = (fsi_real)5e-4;
    d.body_tolerance = (fsi_real)0.05;
    d.accelerate = 1;
    d.warm_start = 1;
    d.cfl = (fsi_real)0.3;
    d.max_substeps = 50;

    /* Walls, contact and smoothing. */
    d.wall_calibrate = 1;
    d.contact_thickness = (fsi_real)0.5;
    d.contact_stiffness = 1;
    d.contact_first = 2;
    d.contact_order = 3;
    d.contact_max_order = 24;
    d.xsph = (fsi_real)0.05;

    /* Foam. */
    d.trapped_air_min = (fsi_real)0.2;
    d.trapped_air_max = 1;
    d.wave_crest_min = (fsi_real)0.25;
    d.wave_crest_max = 1;
    d.spray_energy_min = (fsi_real)0.5;
    d.spray_energy_max = 5;

    /* Walls of the domain: none. */
    d.domain = fsi_box3_empty();
    d.domain_contact_angle = 180;
    d.domain_no_slip = 1;
    return d;
}

static fsi_status fsi__sph_check_desc(fsi_context *context, const char *fn, const fsi_sph_desc *d)
{
    static const fsi__field rows[] = {
        /* Scale and liquid. */
        FSI__FIELD(fsi_sph_desc, dim, FSI__INT, 2, 3, 0),
        FSI__FIELD(fsi_sph_desc, spacing, FSI__REAL, 1e-9, 1e9, 0),
        FSI__FIELD(fsi_sph_desc, support, FSI__REAL, 1.8, 3, 0),
        FSI__FIELD(fsi_sph_desc, density, FSI__REAL, 1e-6, 1e9, 0),
        FSI__FIELD(fsi_sph_desc, depth, FSI__REAL, 1e-9, 1e9, 0),
        FSI__FIELD(fsi_sph_desc, compressibility, FSI__REAL, 1e-6, 0.5, 0),
        FSI__FIELD(fsi_sph_desc, stiffness, FSI__REAL, 0, 1e18, 0),

        /* The solve and its substeps. */
        FSI__FIELD(fsi_sph_desc, max_iters, FSI__INT, 1, 10000, 0),
        FSI__FIELD(fsi_sph_desc, min_iters, FSI__INT, 1, 0, FSI__TO_LAST),
        FSI__FIELD(fsi_sph_desc, tolerance, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_sph_desc, cfl, FSI__REAL, 1e-3, 100, 0),
        FSI__FIELD(fsi_sph_desc, max_substeps, FSI__INT, 1, 1000000, 0),
        FSI__FIELD(fsi_sph_desc, budget, FSI__INT, 0, 1e9, 0),

        /* Contact and walls. */
        FSI__FIELD(fsi_sph_desc, contact_thickness, FSI__REAL, 0.05, 2, 0),
        FSI__FIELD(fsi_sph_desc, contact_stiffness, FSI__REAL, 1e-6, 1e6, 0),
        FSI__FIELD(fsi_sph_desc, contact_first, FSI__INT, 1, 2, 0),
        FSI__FIELD(fsi_sph_desc, contact_max_order, FSI__INT, 2, 64, 0),
        FSI__FIELD(fsi_sph_desc, contact_order, FSI__INT, 2, 0, FSI__TO_LAST),
        FSI__FIELD(fsi_sph_desc, xsph, FSI__REAL, 0, 0.5, 0),
        FSI__FIELD(fsi_sph_desc, reserve, FSI__INT, 0, 1e9, 0),
        FSI__FIELD(fsi_sph_desc, boundary, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_sph_desc, velocity_update, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_sph_desc, body_tolerance, FSI__REAL, 0, 1, 0),

        /* Viscosity, surface tension, walls of the domain. */
        FSI__FIELD(fsi_sph_desc, viscosity, FSI__REAL, 0, 1e6, 0),
        FSI__FIELD(fsi_sph_desc, surface_tension, FSI__REAL, 0, 1e6, 0),
        FSI__FIELD(fsi_sph_desc, domain_friction, FSI__REAL, 0, 10, 0),
        FSI__FIELD(fsi_sph_desc, domain_contact_angle, FSI__REAL, 0, 180, 0),

        /* Particles, foam, vectors. */
        FSI__FIELD(fsi_sph_desc, max_particles, FSI__INT, 0, 1e9, 0),
        FSI__FIELD(fsi_sph_desc, attribute_count, FSI__INT, 0, 64, 0),
        FSI__FIELD(fsi_sph_desc, trapped_air_min, FSI__REAL, 0, 1e9, 0),
        FSI__FIELD(fsi_sph_desc, trapped_air_max, FSI__REAL, 0, 1e9, FSI__FROM_LAST),
        FSI__FIELD(fsi_sph_desc, wave_crest_min, FSI__REAL, 0, 1e9, 0),
        FSI__FIELD(fsi_sph_desc, wave_crest_max, FSI__REAL, 0, 1e9, FSI__FROM_LAST),
        FSI__FIELD(fsi_sph_desc, spray_energy_min, FSI__REAL, 0, 1e9, 0),
        FSI__FIELD(fsi_sph_desc, spray_energy_max, FSI__REAL, 0, 1e9, FSI__FROM_LAST),
        FSI__FIELD(fsi_sph_desc, gravity, FSI__VEC3, 0, 1e9, 0),
        FSI__FINITE(fsi_sph_desc, origin)
    };
    const fsi__where at = { fn, "desc.", -1, d->dim };
    return FSI__CHECK_TABLE(context, &at, d, rows);
}

/* ---- >>emitters and sinks ------------------------------------------------------------------------------------- */

FSI_API fsi_status fsi_sph_add_emitter(fsi_sph *s, const fsi_emitter_desc *desc, int *id)
{
    FSI__TRY(fsi__sph_check(s));
    return fsi__sources_add_emitter(&((fsi__sph_impl *)s->impl)->sources, "fsi_sph_add_emitter", desc, id);
}

FSI_API fsi_status fsi_sph_set_emitter(fsi_sph *s, int id, const fsi_emitter_desc *desc)
{
    FSI__TRY(fsi__sph_check(s));
    return fsi__sources_set_emitter(&((fsi__sph_impl *)s->impl)->sources, "fsi_sph_set_emitter", id, desc);
}

FSI_API fsi_status fsi_sph_remove_emitter(fsi_sph *s, int id)
{
    fsi__sph_impl *im;
    FSI__TRY(fsi__sph_check(s));
    im = (fsi__sph_impl *)s->impl;
    return fsi__sources_remove_emitter(&im->sources, "fsi_sph_remove_emitter", id, im->source, s->count);
}

FSI_API fsi_status fsi_sph_emitter_total(const fsi_sph *s, int id, long long *emitted, long long *blocked,
                                         long long *refused)
{
    FSI__TRY(fsi__sph_check(s));
    return fsi__sources_emitter_total(&((fsi__sph_impl *)s->impl)->sources, "fsi_sph_emitter_total", id, emitted,
                                      blocked, refused);
}

FSI_API fsi_status fsi_sph_add_sink(fsi_sph *s, const fsi_sink_desc *desc, int *id)
{
    FSI__TRY(fsi__sph_check(s));
    return fsi__sources_add_sink(&((fsi__sph_impl *)s->impl)->sources, "fsi_sph_add_sink", desc, id);
}

FSI_API fsi_status fsi_sph_remove_sink(fsi_sph *s, int id)
{
    FSI__TRY(fsi__sph_check(s));
    return fsi__sources_remove_sink(&((fsi__sph_impl *)s->impl)->sources, "fsi_sph_remove_sink", id);
}

FSI_API fsi_status fsi_sph_sink_total(const fsi_sph *s, int id, long long *removed)
{
    FSI__TRY(fsi__sph_check(s));
    return fsi__sources_sink_total(&((fsi__sph_impl *)s->impl)->sources, "fsi_sph_sink_total", id, removed);
}

/* ---- >>particles ---------------------------------------------------------------------------------------------- */

/* The table of the particles, in the order of a state. */
static void fsi__sph_make_table(fsi_sph *s)
{
    const size_t vector = sizeof(fsi_vec3), real = sizeof(fsi_real), word = sizeof(uint32_t),
                 byte = s->desc.markers ? 1 : 0;
    const double pull = FSI__SPH_PULL * (double)s->particle_mass, most = FSI__SPH_CORRECTION;
    fsi__sph_impl *im = (fsi__sph_impl *)s->impl;
    fsi__particles *t = &im->particles;

    /* The public arrays that every liquid has. */
    fsi__particles_start(t, s->context, s->desc.dim, s->desc.attribute_count, s->desc.spacing, &s->desc.max_particles);
    t->fastest = HUGE_VAL;
    t->count = &s->count;
    t->capacity = &s->capacity;
    t->position = &s->position;
    t->velocity = &s->velocity;
    t->id = &im->id;
    t->filter = &s->filter;
    t->attribute = &s->attribute;

    /* Columns of the state. */
    fsi__particles_column(t, "position", FSI__COLUMN_VECTOR, &s->position, vector, 0, FSI__SPH_FAR, NULL);
    fsi__particles_column(t, "velocity", FSI__COLUMN_VECTOR, &s->velocity, vector, 0, FSI__SPH_FAST, NULL);
    fsi__particles_column(t, "force", FSI__COLUMN_VECTOR, &s->force, vector, 0, pull, NULL);
    fsi__particles_column(t, "correction", FSI__COLUMN_VECTOR, &im->warm, vector, 0, most, NULL);
    fsi__particles_column(t, "contact stiffness", FSI__COLUMN_REAL, &im->kappa, real, 0.999, 101, NULL);
    fsi__particles_column(t, "pressure", FSI__COLUMN_REAL, &im->pressure, real, 0, most, &s->pressure);
    fsi__particles_column(t, "density ratio", FSI__COLUMN_REAL, &im->density_ratio, real, 0, most, &s->density_ratio);
    fsi__particles_column(t, "id", FSI__COLUMN_ID, &im->id, word, 0, 0, &s->id);
    fsi__particles_column(t, "filter", FSI__COLUMN_ANY, &s->filter, word, 0, 0, NULL);
    fsi__particles_column(t, "emitter", FSI__COLUMN_ANY, &im->source, word, 0, 0, NULL);
    fsi__particles_column(t, "attribute", FSI__COLUMN_ANY, &s->attribute, (size_t)s->desc.attribute_count * real, 0,
        0, NULL);

    /* Columns that each step finds anew. */
    fsi__particles_column(t, "marker", FSI__COLUMN_FOUND, &im->marker, byte, 0, 0, &s->marker);
    fsi__particles_column(t, "aeration", FSI__COLUMN_FOUND, &im->aeration, byte * real, 0, 0, &s->aeration);
}

/* What desc says of the domain's walls. */
static void fsi__sph_set_domain(fsi_sph *s)
{
    fsi__sph_impl *im = (fsi__sph_impl *)s->impl;
    int k;
    for (k = 0; k < im->obstacles.count; k++) {
        fsi__sph_obstacle *o = &im->obstacle[k];
        if (o->base.given != im->domain) continue;
        o->desc.friction = s->desc.domain_friction;
        o->desc.contact_angle = o->base.contact_angle = s->desc.domain_contact_angle;
        o->desc.no_slip = s->desc.domain_no_slip;
    }
}

/* Walls of the domain: the box seen from inside. */
static fsi_status fsi__sph_make_domain(fsi_sph *s)
{
    fsi__sph_impl *im = (fsi__sph_impl *)s->impl;
    const fsi_box3 *b = &s->desc.domain;
    if (b->lo.x == FSI_REAL_MAX && b->hi.x == -FSI_REAL_MAX) return FSI_OK; /* fsi_box3_empty */
    FSI__TRY(fsi__make_box_container(s->context, "fsi_sph_create", *b, s->desc.dim, &im->domain));
    FSI__TRY(fsi_sph_add_mesh(s, im->domain, NULL));
    fsi__sph_set_domain(s);
    return FSI_OK;
}

static void fsi__sph_derive(fsi_sph *s)
{
    fsi__sph_impl *im = (fsi__sph_impl *)s->impl;
    const fsi_sph_desc *d = &s->desc;
    double dx = (double)d->spacing, g = (double)fsi_v3_norm(d->gravity), pull;
    im->kernel = fsi__sph_calibrate(d->dim, (double)d->support);
    s->particle_volume = (fsi_real)(d->dim == 3 ? dx * dx * dx : dx * dx);
    s->particle_mass = s->particle_volume * d->density;
    s->support = d->support * d->spacing;
    s->kernel_scale = (fsi_real)im->kernel.sigma;
    s->gradient_factor = (fsi_real)im->kernel.gk;
    s->pressure_factor = (fsi_real)im->kernel.settled;
    s->wall_factor = (fsi_real)(d->wall_calibrate ? im->kernel.wall : 1);
    pull = g > 0 ? g : d->surface_tension > 0 ? 0 : 9.81;
    s->stiffness = d->stiffness > 0
                       ? d->stiffness
                       : (fsi_real)(((double)d->density * pull * (double)d->depth + (double)d->surface_tension / dx) /
                                    ((double)d->compressibility * im->kernel.gk * im->kernel.gk));
}

FSI_API fsi_status fsi_sph_create(fsi_sph **out, const fsi_sph_desc *desc)
{
    fsi_sph *s;
    fsi__sph_impl *im;
    fsi_status status;

    /* Arguments. Without the right cookie the context of the desc cannot be trusted either. */
    if (out) *out = NULL;
    if (!out || !desc) return FSI_ERROR_ARGUMENT;
    if (desc->cookie != FSI__COOKIE('d', fsi_sph_desc) || !fsi__is_context(desc->context)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__sph_check_desc(desc->context, "fsi_sph_create", desc));

    /* Simulator and its private part in one block. */
    s = (fsi_sph *)fsi__alloc(desc->context, 1, sizeof *s + sizeof *im);
    if (!s) return fsi__fail(desc->context, FSI_ERROR_MEMORY, "fsi_sph_create", -1, 0, "no memory for the simulator");
    im = (fsi__sph_impl *)(void *)(s + 1);
    im->own_context = fsi_default_context();
    s->cookie = FSI__COOKIE('s', fsi_sph);
    s->context = desc->context ? desc->context : &im->own_context;

    /* Its tables. */
    fsi__sources_start(&im->sources, s->context, desc->dim, desc->attribute_count, desc->spacing);
    fsi__obstacles_start(&im->obstacles, s->context, desc->dim, sizeof *im->obstacle);
    im->obstacles.patched = 1;
    s->desc = *desc;
    s->impl = im;
    fsi__sph_derive(s);
    fsi__sph_make_table(s);

    /* Memory, and the walls of the domain. */
    status = fsi_neighbors_create(&im->neighbors, s->context);
    if (status == FSI_OK) status = fsi__sph_make_domain(s);
    if (status == FSI_OK) status = fsi__particles_reserve(&im->particles, "fsi_sph_create", desc->reserve);
    if (status != FSI_OK) {
        fsi_sph_destroy(s);
        return status;
    }
    *out = s;
    return FSI_OK;
}

FSI_API fsi_status fsi_sph_set_desc(fsi_sph *s, const fsi_sph_desc *desc)
{
    static const char fn[] = "fsi_sph_set_desc";
    static const fsi__fixed fixed[] = {
        FSI__FIXED(fsi_sph_desc, context), FSI__FIXED(fsi_sph_desc, dim), FSI__FIXED(fsi_sph_desc, spacing),
        FSI__FIXED(fsi_sph_desc, support), FSI__FIXED(fsi_sph_desc, density), FSI__FIXED(fsi_sph_desc, domain),
        FSI__FIXED(fsi_sph_desc, origin), FSI__FIXED(fsi_sph_desc, attribute_count), FSI__FIXED(fsi_sph_desc, markers)
    };
    FSI__TRY(fsi__sph_check(s));
    FSI__TRY(fsi__check_filled(s->context, fn, desc, FSI__COOKIE('d', fsi_sph_desc), "fsi_sph_default_desc"));
    FSI__TRY(fsi__sph_check_desc(s->context, fn, desc));
    FSI__TRY(FSI__CHECK_FIXED(s->context, fn, desc, &s->desc, fixed));
    s->desc = *desc;
    fsi__sph_derive(s);
    fsi__sph_set_domain(s);
    return FSI_OK;
}

FSI_API void fsi_sph_destroy(fsi_sph *s)
{
    fsi__sph_impl *im;
    fsi_context *context;
    if (fsi__sph_check(s) != FSI_OK) return;
    im = (fsi__sph_impl *)s->impl;
    context = s->context;
    fsi__obstacles_free(&im->obstacles);
    fsi__sources_free(&im->sources);
    fsi_mesh_destroy(im->domain);
    fsi_neighbors_destroy(im->neighbors);
    fsi__arena_free(context, &im->scratch);
    fsi__arena_free(context, &im->walls);
    fsi__particles_free(&im->particles);
    s->cookie = 0;
    fsi__free(s->desc.context, s, 1, sizeof *s + sizeof *im); /* not from the context that it may hold itself */
}

FSI_API const fsi_error *fsi_sph_error(const fsi_sph *s) { return fsi__error_of(s ? s->context : NULL); }

FSI_API fsi_status fsi_sph_add_particles(fsi_sph *s, const fsi_vec3 *positions, const fsi_vec3 *velocities, int count)
{
    fsi__sph_impl *im;
    int k;
    FSI__TRY(fsi__sph_check(s));
    im = (fsi__sph_impl *)s->impl;
    FSI__TRY(fsi__particles_add(&im->particles, "fsi_sph_add_particles", positions, velocities, count));
    for (k = s->count - count; k < s->count; k++) im->kappa[k] = im->density_ratio[k] = 1;
    return FSI_OK;
}

FSI_API fsi_status fsi_sph_remove_particles(fsi_sph *s, const unsigned char *gone)
{
    FSI__TRY(fsi__sph_check(s));
    return fsi__particles_remove(&((fsi__sph_impl *)s->impl)->particles, "fsi_sph_remove_particles", gone);
}

/* Nearest distance to an obstacle's faces is at least dx/2, and x is on the liquid's side of all. */
static int fsi__sph_is_free(const void *simulator, fsi_vec3 x)
{
    const fsi_sph *s = (const fsi_sph *)simulator;
    const fsi__sph_impl *im = (const fsi__sph_impl *)s->impl;
    int o;
    for (o = 0; o < im->obstacles.count; o++) {
        const fsi_mesh *mesh = im->obstacle[o].base.mesh;
        fsi_mesh_hit hit = fsi_mesh_closest(mesh, x, FSI_REAL_MAX, -1);
        if (hit.face >= 0 &&
            (hit.t < s->desc.spacing * (fsi_real)0.499 || (mesh->kind == FSI_MESH_CLOSED && hit.side < 0)))
            return 0;
    }
    return 1;
}

static fsi_status fsi__sph_add_site(void *simulator, fsi_vec3 x, fsi_vec3 velocity)
{
    return fsi_sph_add_particles((fsi_sph *)simulator, &x, &velocity, 1);
}

/* The box inside the domain and all containers. */
static fsi_box3 fsi__sph_fill_bounds(const fsi_sph *s)
{
    const fsi__sph_impl *im = (const fsi__sph_impl *)s->impl;
    fsi_box3 bounds = fsi_box3_empty();
    int o;
    for (o = 0; o < im->obstacles.count; o++) {
        const fsi_mesh *mesh = im->obstacle[o].base.mesh;
        const fsi_box3 b = mesh->box;
        if (!mesh->container || mesh->kind != FSI_MESH_CLOSED) continue;
        if (!(bounds.lo.x <= bounds.hi.x)) bounds = b;
        bounds.lo = fsi_v3(fsi_max(bounds.lo.x, b.lo.x), fsi_max(bounds.lo.y, b.lo.y), fsi_max(bounds.lo.z, b.lo.z));
        bounds.hi = fsi_v3(fsi_min(bounds.hi.x, b.hi.x), fsi_min(bounds.hi.y, b.hi.y), fsi_min(bounds.hi.z, b.hi.z));
        if (!(bounds.lo.x <= bounds.hi.x)) bounds.hi.x = bounds.lo.x;
    }
    return bounds;
}

static fsi_status fsi__sph_fill(fsi_sph *s, fsi__fill fill, int *added)
{
    if (added) *added = 0;
    FSI__TRY(fsi__sph_check(s));
    fill.clip = fsi__sph_fill_bounds(s);
    fill.is_free = fsi__sph_is_free;
    fill.add = fsi__sph_add_site;
    fill.simulator = s;
    return fsi__particles_fill(&((fsi__sph_impl *)s->impl)->particles, &fill, added);
}

FSI_API fsi_status fsi_sph_fill_box(fsi_sph *s, fsi_box3 box, fsi_vec3 velocity, int *added)
{
    return fsi__sph_fill(s, fsi__fill_box("fsi_sph_fill_box", box, velocity), added);
}

FSI_API fsi_status fsi_sph_fill_sphere(fsi_sph *s, fsi_vec3 center, fsi_real radius, fsi_vec3 velocity, int *added)
{
    return fsi__sph_fill(s, fsi__fill_sphere("fsi_sph_fill_sphere", center, radius, velocity), added);
}

FSI_API fsi_status fsi_sph_fill_mesh(fsi_sph *s, const fsi_mesh *mesh, fsi_vec3 velocity, int *added)
{
    return fsi__sph_fill(s, fsi__fill_mesh("fsi_sph_fill_mesh", mesh, velocity), added);
}

/* ---- >>obstacles ---------------------------------------------------------------------------------------------- */

FSI_API fsi_sph_obstacle_desc fsi_sph_default_obstacle_desc(void)
{
    fsi_sph_obstacle_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('o', fsi_sph_obstacle_desc);
    d.mask = 0xffffffff;
    d.no_slip = 1;
    d.contact_angle = 180;
    return d;
}

static fsi_status fsi__sph_check_obstacle(const fsi_sph *s, const char *fn, const fsi_sph_obstacle_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_sph_obstacle_desc, friction, FSI__REAL, 0, 10, 0),
        FSI__FIELD(fsi_sph_obstacle_desc, contact_angle, FSI__REAL, 0, 180, 0)
    };
    const fsi__where at = { fn, "desc.", -1, 3 };
    FSI__TRY(fsi__sph_check(s));
    FSI__TRY(fsi__check_filled(s->context, fn, d, FSI__COOKIE('o', fsi_sph_obstacle_desc),
        "fsi_sph_default_obstacle_desc"));
    FSI__TRY(fsi__check_mesh(s->context, fn, d->mesh, s->desc.dim, 0));
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, d, rows));
    return fsi__check_carrier(s->context, fn, d->body, ((const fsi__sph_impl *)s->impl)->obstacles.next_id,
        s->desc.dim, 0);
}

FSI_API fsi_status fsi_sph_add_obstacle(fsi_sph *s, const fsi_sph_obstacle_desc *desc, int *id)
{
    static const char fn[] = "fsi_sph_add_obstacle";
    fsi__sph_impl *im;
    fsi__sph_obstacle *o;
    int made;
    FSI__TRY(fsi__sph_check_obstacle(s, fn, desc));
    im = (fsi__sph_impl *)s->impl;
    o = (fsi__sph_obstacle *)fsi__obstacles_begin(&im->obstacles, fn, desc->mesh, desc->body, desc->mask,
        desc->vertex_force);
    im->obstacle = (fsi__sph_obstacle *)im->obstacles.rows;
    if (!o) return FSI_ERROR_MEMORY;
    o->desc = *desc;
    o->base.contact_angle = desc->contact_angle;
    made = fsi__obstacles_keep(&im->obstacles);
    if (id) *id = made;
    return FSI_OK;
}

FSI_API fsi_status fsi_sph_add_mesh(fsi_sph *s, const fsi_mesh *mesh, int *id)
{
    fsi_sph_obstacle_desc d = fsi_sph_default_obstacle_desc();
    d.mesh = mesh;
    return fsi_sph_add_obstacle(s, &d, id);
}

/* Simulator and id; the latter's obstacle, which is not the domain. */
static fsi_status fsi__sph_find_obstacle(const fsi_sph *s, const char *fn, int id, int *k)
{
    const fsi__sph_impl *im;
    FSI__TRY(fsi__sph_check(s));
    im = (const fsi__sph_impl *)s->impl;
    *k = fsi__obstacles_find(&im->obstacles, fn, id);
    if (*k < 0) return FSI_ERROR_ARGUMENT;
    if (im->obstacle[*k].base.given != im->domain) return FSI_OK;
    return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, id, 0, "there is no obstacle %d", id);
}

FSI_API fsi_status fsi_sph_remove_obstacle(fsi_sph *s, int id)
{
    fsi__sph_impl *im;
    int k;
    FSI__TRY(fsi__sph_find_obstacle(s, "fsi_sph_remove_obstacle", id, &k));
    im = (fsi__sph_impl *)s->impl;
    fsi__obstacles_remove(&im->obstacles, k);
    return FSI_OK;
}

FSI_API fsi_status fsi_sph_teleport_obstacle(fsi_sph *s, int id)
{
    static const char fn[] = "fsi_sph_teleport_obstacle";
    fsi__sph_obstacle *o;
    int k;
    FSI__TRY(fsi__sph_find_obstacle(s, fn, id, &k));
    o = &((fsi__sph_impl *)s->impl)->obstacle[k];
    FSI__TRY(fsi__check_carrier(s->context, fn, o->base.carrier, id, s->desc.dim, 0));
    fsi__obstacle_set(&((fsi__sph_impl *)s->impl)->obstacles, &o->base);
    return FSI_OK;
}

FSI_API fsi_status fsi_sph_obstacle_reaction(const fsi_sph *s, int id, fsi_vec3 *force, fsi_vec3 *torque)
{
    const fsi__sph_obstacle *o;
    int k;
    if (force) *force = fsi_v3(0, 0, 0);
    if (torque) *torque = fsi_v3(0, 0, 0);
    FSI__TRY(fsi__sph_find_obstacle(s, "fsi_sph_obstacle_reaction", id, &k));
    o = &((const fsi__sph_impl *)s->impl)->obstacle[k];
    if (force) *force = o->base.force;
    if (torque) *torque = o->base.torque;
    return FSI_OK;
}

/* ---- >>origin and copies -------------------------------------------------------------------------------------- */

static fsi_box3 fsi__sph_shift_box(fsi_box3 b, fsi_vec3 offset)
{
    if (b.lo.x > b.hi.x) return b; /* empty */
    b.lo = fsi_v3_add(b.lo, offset);
    b.hi = fsi_v3_add(b.hi, offset);
    return b;
}

/* Particles and emitters: what a state holds of places. */
static void fsi__sph_shift_liquid(fsi_sph *s, fsi_vec3 offset)
{
    fsi__sph_impl *im = (fsi__sph_impl *)s->impl;
    int i;
    for (i = 0; i < s->count; i++) s->position[i] = fsi_v3_add(s->position[i], offset);
    fsi__sources_shift_flows(&im->sources, offset);
}

FSI_API fsi_status fsi_sph_shift_origin(fsi_sph *s, fsi_vec3 offset)
{
    static const char fn[] = "fsi_sph_shift_origin";
    fsi__sph_impl *im;
    fsi_box3 box;
    int i;
    FSI__TRY(fsi__sph_check(s));
    if (!fsi_v3_is_finite(offset)) return fsi__fail(s->context, FSI_ERROR_NAN, fn, -1, 0, "the offset is not finite");
    if (s->desc.dim == 2) offset.z = 0;
    for (i = 0; i < s->count; i++)
        if (!fsi_v3_is_finite(fsi_v3_add(s->position[i], offset)))
            return fsi__fail(s->context, FSI_ERROR_NAN, fn, i, 0, "particle %d: its new place is not finite", i);
    im = (fsi__sph_impl *)s->impl;
    box = fsi__sph_shift_box(s->desc.domain, offset);
    if (im->domain) FSI__TRY(fsi__set_box_container(im->domain, box));
    s->desc.domain = box;
    for (i = 0; i < im->obstacles.count; i++) fsi__obstacle_shift(&im->obstacles, &im->obstacle[i].base, offset);
    fsi__sph_shift_liquid(s, offset);
    fsi__sources_shift(&im->sources, offset);
    s->desc.origin = fsi_v3_add(s->desc.origin, offset);
    return FSI_OK;
}

FSI_API fsi_status fsi_sph_copy(const fsi_sph *s, fsi_sph_field field, fsi_vec3 origin, float *out, int stride)
{
    fsi__export fields[FSI_SPH_ATTRIBUTE + 1];
    FSI__TRY(fsi__sph_check(s));
    fields[FSI_SPH_POSITION] = fsi__export_of_vectors(s->position);
    fields[FSI_SPH_VELOCITY] = fsi__export_of_vectors(s->velocity);
    fields[FSI_SPH_FORCE] = fsi__export_of_vectors(s->force);
    fields[FSI_SPH_PRESSURE] = fsi__export_of(s->pressure, NULL, 1, 1);
    fields[FSI_SPH_DENSITY_RATIO] = fsi__export_of(s->density_ratio, NULL, 1, 1);
    fields[FSI_SPH_AERATION] = fsi__export_of(s->aeration, NULL, s->desc.markers != 0, 1);
    fields[FSI_SPH_MARKER] = fsi__export_of(NULL, s->marker, s->desc.markers != 0, 1);
    fields[FSI_SPH_ATTRIBUTE] = fsi__export_of(s->attribute, NULL, s->desc.attribute_count, 1);
    return fsi__particles_copy(&((const fsi__sph_impl *)s->impl)->particles, "fsi_sph_copy", (int)field, fields,
        FSI_SPH_ATTRIBUTE + 1, origin, out, stride);
}

FSI__COLD_END

/* ---- >>questions ---------------------------------------------------------------------------------------------- */

FSI_API fsi_real fsi_sph_suggest_dt(const fsi_sph *s)
{
    double speed, g, dx, cfl, accurate;
    if (fsi__sph_check(s) != FSI_OK) return 0;
    dx = (double)s->desc.spacing * (double)s->desc.cfl;
    g = (double)fsi_v3_norm(s->desc.gravity) + fsi__longest(s->force, s->count) / (double)s->particle_mass;
    speed = fsi__sources_fastest(&((const fsi__sph_impl *)s->impl)->sources,
        fmax(fsi__longest(s->velocity, s->count), s->stats.wall_speed));
    cfl = speed > 0 || g > 0 ? 2 * dx / (speed + sqrt(speed * speed + 4 * g * dx)) : 1; /* dx = v t + g t^2 */
    accurate = s->desc.surface_tension > 0 ? fsi__sph_tension_dt(s) : fsi__sph_stiff_dt(s, FSI__SPH_ACCURATE);
    return (fsi_real)(cfl < accurate ? cfl : accurate);
}

/* Sums w, w * pressure and w * velocity over the particles within H of x. */
static double fsi__sph_probe(const fsi_sph *s, fsi_vec3 x, double *pressure, double velocity[3])
{
    double sum = 0, h = (double)s->support;
    int i, k;
    *pressure = velocity[0] = velocity[1] = velocity[2] = 0;
    if (s->desc.dim == 2) x.z = 0;
    for (i = 0; i < s->count; i++) {
        fsi_vec3 d = fsi_v3_sub(s->position[i], x);
        double q2 = (double)fsi_v3_norm2(d) / (h * h), t, v[3];
        if (!(q2 < 1)) continue;
        t = 1 - sqrt(q2);
        sum += t * t * t;
        *pressure += t * t * t * (double)s->pressure[i];
        fsi__sph_to_doubles(v, s->velocity[i], t * t * t);
        for (k = 0; k < 3; k++) velocity[k] += v[k];
    }
    return sum;
}

FSI_API fsi_real fsi_sph_pressure_at(const fsi_sph *s, fsi_vec3 x)
{
    double p, v[3], sum;
    if (fsi__sph_check(s) != FSI_OK) return 0;
    sum = fsi__sph_probe(s, x, &p, v);
    return (fsi_real)(sum > 0 ? p / sum : 0);
}

FSI_API fsi_real fsi_sph_fraction_at(const fsi_sph *s, fsi_vec3 x)
{
    double p, v[3];
    if (fsi__sph_check(s) != FSI_OK) return 0;
    return (fsi_real)(fsi__sph_probe(s, x, &p, v) * fsi__sph_c(s->desc.dim) *
                      ((const fsi__sph_impl *)s->impl)->kernel.volume);
}

FSI_API fsi_vec3 fsi_sph_velocity_at(const fsi_sph *s, fsi_vec3 x)
{
    double p, v[3], sum;
    if (fsi__sph_check(s) != FSI_OK) return fsi_v3(0, 0, 0);
    sum = fsi__sph_probe(s, x, &p, v);
    return sum > 0 ? fsi_v3((fsi_real)(v[0] / sum), (fsi_real)(v[1] / sum), (fsi_real)(v[2] / sum)) : fsi_v3(0, 0, 0);
}

/* Particle i by winding numbers: 1 when it is in any closed obstacle that acts on it. */
static int fsi__sph_is_inside(const void *liquid, int i)
{
    const fsi_sph *s = (const fsi_sph *)liquid;
    const fsi__sph_impl *im = (const fsi__sph_impl *)s->impl;
    return fsi__obstacles_hold(&im->obstacles, s->filter[i], s->position[i]);
}

FSI_API int fsi_sph_count_inside(const fsi_sph *s, int *first)
{
    if (first) *first = -1;
    return fsi__sph_check(s) == FSI_OK ? fsi__count_where(s->context, s->count, fsi__sph_is_inside, s, first) : 0;
}

FSI_API void fsi_sph_debug_draw(const fsi_sph *s, const fsi_debug_draw *draw)
{
    const fsi__sph_impl *im;
    if (!draw || fsi__sph_check(s) != FSI_OK) return;
    im = (const fsi__sph_impl *)s->impl;
    fsi__particles_draw(&im->particles, fsi__export_of(s->pressure, NULL, 1, 1), draw);
    fsi__obstacles_draw(&im->obstacles, draw);
}

FSI__COLD_BEGIN

/* ---- >>state -------------------------------------------------------------------------------------------------- */

#define FSI__SPH_OBSTACLE_BYTES (6 * sizeof(double) + sizeof(fsi_pose)) /* of an obstacle in a state */

static void fsi__sph_state(fsi__stream *st, void *simulator)
{
    fsi_sph *s = (fsi_sph *)simulator;
    fsi__sph_impl *im = (fsi__sph_impl *)s->impl;
    int k;
    fsi__bytes(st, &s->time, sizeof s->time);
    fsi__bytes(st, &s->stats.wall_speed, sizeof s->stats.wall_speed);
    fsi__bytes(st, &s->desc.origin, sizeof s->desc.origin);
    fsi__bytes(st, &im->particles.next, sizeof im->particles.next);
    fsi__sources_state(st, &im->sources);
    fsi__particles_state(st, &im->particles);
    for (k = 0; k < im->obstacles.count; k++) {
        fsi__bytes(st, im->obstacle[k].warm, sizeof im->obstacle[k].warm);
        fsi__bytes(st, &im->obstacle[k].base.at, sizeof im->obstacle[k].base.at);
    }
}

static fsi__liquid_head fsi__sph_make_head(const fsi_sph *s)
{
    const fsi__sph_impl *im = (const fsi__sph_impl *)s->impl;
    return fsi__particles_head(&im->particles, im->obstacles.count, im->sources.emitter_count, im->sources.sink_count);
}

static void fsi__sph_state_counted(fsi__stream *st, void *simulator)
{
    fsi__liquid_head head = fsi__sph_make_head((fsi_sph *)simulator);
    fsi__bytes(st, &head, sizeof head);
    fsi__sph_state(st, simulator);
}

FSI_API fsi_status fsi_sph_save(const fsi_sph *s, void *buffer, size_t capacity, size_t *size)
{
    FSI__TRY(fsi__sph_check(s));
    return fsi__save(s->context, s->cookie, fsi__sph_state_counted, (void *)(uintptr_t)s, buffer, capacity, size,
                     "fsi_sph_save");
}

/* The state's head against the simulator and the bytes that follow it. */
static fsi_status fsi__sph_check_head(const fsi_sph *s, const fsi__liquid_head *head, const fsi__stream *st)
{
    const fsi__sph_impl *im = (const fsi__sph_impl *)s->impl;
    const fsi__liquid_head own = fsi__sph_make_head(s);
    const size_t rest = 2 * sizeof(double) + sizeof(fsi_vec3) + sizeof(uint64_t) + fsi__sources_state_size(&im->sources)
        + (size_t)own.obstacles * FSI__SPH_OBSTACLE_BYTES;
    return fsi__particles_check_head(&im->particles, "fsi_sph_load", head, &own, rest, st);
}

/* Obstacle k of a state: what the last solve changed of its body, and the pose where the last step left it. */
static fsi_status fsi__sph_check_saved_obstacle(const fsi_sph *s, int k, fsi__stream *st)
{
    static const char fn[] = "fsi_sph_load";
    double warm[6] = { 0, 0, 0, 0, 0, 0 };
    fsi_pose at;
    int j, good = 1;
    memset(&at, 0, sizeof at);
    fsi__bytes(st, warm, sizeof warm);
    fsi__bytes(st, &at, sizeof at);
    for (j = 0; j < 6; j++) good &= fabs(warm[j]) <= FSI__SPH_CORRECTION;
    if (!good) return fsi__fail(s->context, FSI_ERROR_NAN, fn, k, 0, "the state of obstacle %d is not finite", k);
    return fsi__obstacle_check_pose(&((const fsi__sph_impl *)s->impl)->obstacles, fn, k, at);
}

/* Everything finite and possible, so that a step can use it? `st` stands behind the head, and returns there. */
static fsi_status fsi__sph_check_content(const fsi_sph *s, const fsi__liquid_head *head, fsi__stream *st)
{
    static const char fn[] = "fsi_sph_load";
    const size_t start = st->used;
    const fsi__sph_impl *im = (const fsi__sph_impl *)s->impl;
    double time = 0, wall_speed = 0;
    fsi_vec3 origin = { 0, 0, 0 };
    int k;

    /* Time, origin and the speed of walls. */
    fsi__bytes(st, &time, sizeof time);
    fsi__bytes(st, &wall_speed, sizeof wall_speed);
    fsi__bytes(st, &origin, sizeof origin);
    if (!fsi_is_finite(time) || !fsi_is_finite(wall_speed) || !fsi_v3_is_finite(origin))
        return fsi__fail(s->context, FSI_ERROR_NAN, fn, -1, 0,
                         "the time, origin or speed of walls of the state is not finite");
    if (!(wall_speed >= 0 && wall_speed <= FSI__SPH_FAST))
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, -1, wall_speed, "the speed of walls of the state is %g",
                         wall_speed);
    if (!(fabs(time) <= FSI__HUGE))
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, -1, time, "the time of the state is %g", time);
    if (!(fsi__largest_axis(origin) <= FSI__SPH_FAR))
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, -1, fsi__largest_axis(origin),
        "the origin of the state is %g m away", fsi__largest_axis(origin));

    /* Emitters, sinks and particles. */
    FSI__TRY(fsi__sources_check_state(&im->sources, fn, st, &im->particles, &im->source, head->count,
        fsi_v3_sub(s->desc.origin, origin)));

    /* Obstacles, at the end of the state. */
    st->used = st->capacity - (size_t)head->obstacles * FSI__SPH_OBSTACLE_BYTES;
    for (k = 0; k < im->obstacles.count; k++) FSI__TRY(fsi__sph_check_saved_obstacle(s, k, st));
    st->used = start;
    return fsi__obstacles_check_carriers(&im->obstacles, fn, 0);
}

/* Moves what was loaded from where the origin was then to where it is now. */
static void fsi__sph_load_origin(fsi_sph *s, fsi_vec3 now)
{
    fsi__sph_impl *im = (fsi__sph_impl *)s->impl;
    const fsi_vec3 offset = fsi_v3_sub(now, s->desc.origin);
    int k;
    s->desc.origin = now;
    if (!(fsi_v3_norm2(offset) > 0)) return;
    fsi__sph_shift_liquid(s, offset);
    for (k = 0; k < im->obstacles.count; k++)
        if (im->obstacle[k].base.carrier)
            im->obstacle[k].base.at.position = fsi_v3_add(im->obstacle[k].base.at.position, offset);
}

FSI_API fsi_status fsi_sph_load(fsi_sph *s, const void *buffer, size_t size)
{
    fsi__sph_impl *im;
    fsi__liquid_head head;
    fsi__stream st;
    fsi_vec3 origin;
    int k;

    /* Check all of the state before anything changes. */
    FSI__TRY(fsi__sph_check(s));
    FSI__TRY(fsi__load_begin(s->context, s->cookie, buffer, size, &st, "fsi_sph_load"));
    memset(&head, 0, sizeof head);
    fsi__bytes(&st, &head, sizeof head);
    FSI__TRY(fsi__sph_check_head(s, &head, &st));
    FSI__TRY(fsi__sph_check_content(s, &head, &st));

    /* Take it, and shift it to the present origin. */
    im = (fsi__sph_impl *)s->impl;
    FSI__TRY(fsi__particles_reserve(&im->particles, "fsi_sph_load", (int)head.count));
    s->count = (int)head.count;
    origin = s->desc.origin;
    fsi__sph_state(&st, s);
    fsi__sph_load_origin(s, origin);

    /* Markers are not saved. */
    if (im->marker && s->count > 0) {
        memset(im->marker, FSI_SPH_LIQUID, (size_t)s->count);
        memset(im->aeration, 0, (size_t)s->count * sizeof *im->aeration);
    }

    /* Obstacles whose pose, but for rounding, is that of the state start from the saved one, as the saved run did. */
    for (k = 0; k < im->obstacles.count; k++)
        fsi__obstacle_load(&im->obstacles, &im->obstacle[k].base, 1e-3 * (double)s->desc.spacing);
    return FSI_OK;
}

FSI_API uint64_t fsi_sph_hash(const fsi_sph *s)
{
    return fsi__sph_check(s) == FSI_OK ? fsi__state_hash(fsi__sph_state_counted, (void *)(uintptr_t)s) : 0;
}

FSI__COLD_END

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
