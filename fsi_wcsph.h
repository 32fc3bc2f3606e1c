/* fsi_wcsph.h - liquid as weakly compressible particles (WCSPH) that push rigid bodies by direct forcing.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_wcsph.h"
         #include "fsi_wcsph.h"

   A WOODEN BOX FLOATS
      fsi_context ctx = fsi_default_context();      // hooks for memory, threads, messages; and what went wrong
      fsi_wcsph_desc d = fsi_wcsph_default_desc();  // physical defaults, SI units
      fsi_wcsph *water;
      fsi_mass_properties wood;
      fsi_body box;                                 // fsi.h: pose, velocity, mass; you own it
      fsi_box3 pool;
      int step;
      d.context = &ctx;
      d.spacing = 0.05f;                            // 5 cm between particles
      d.domain.lo = fsi_v3(0, 0, 0);                // a tank of 2 x 2 x 2 m
      d.domain.hi = fsi_v3(2, 2, 2);
      if (fsi_wcsph_create(&water, &d) != FSI_OK) { puts(ctx.error.message); return 1; }
      pool.lo = fsi_v3(0, 0, 0);
      pool.hi = fsi_v3(2, 2, 1);
      fsi_wcsph_fill_box(water, pool, fsi_v3(0, 0, 0), NULL);
      fsi_mesh_mass(mesh, 500, 0, &wood);           // a closed mesh, half as heavy as water
      box = fsi_body_from_mass(&wood);              // COUPLED: the liquid moves it
      box.force = fsi_v3(0, 0, -9.81f * box.mass);
      fsi_wcsph_add_body(water, mesh, &box, NULL);
      for (step = 0; step < 60; step++) {
          if (fsi_wcsph_step(water, (fsi_real)(1.0 / 60)) != FSI_OK) { puts(ctx.error.message); break; }
          fsi_body_accept(&box);                   // box.pose is now where the step left it (fsi.h)
      }                                             // water->position[0 .. water->count-1] is yours to draw
      fsi_wcsph_destroy(water);

   FILL
      fsi_wcsph_fill_box, _fill_sphere, _fill_mesh   lattices; what is outside, in obstacles or in liquid is left out

   WALLS AND BODIES ARE MESHES
      fsi_wcsph_add_mesh(water, mesh, NULL);    // static, or moved by fsi_mesh_move_rigid between steps
      fsi_wcsph_add_body(water, mesh, &body, NULL); // PRESCRIBED: one-way; COUPLED: two-way
      Closed solids, containers (liquid inside), open walls and two-sided sheets; in 2D, segments. The surface is the
      mesh itself (default), or a single layer of samples made from it (desc.surface).

   TAPS AND DRAINS
      fsi_emitter_desc tap = fsi_emitter_default_desc();   // fsi_source.h
      tap.center = fsi_v3(0.5f, 0.5f, 1.8f); tap.direction = fsi_v3(0, 0, -1); tap.radius = 0.2f; tap.speed = 2;
      fsi_wcsph_add_emitter(water, &tap, NULL);
      fsi_wcsph_add_sink(water, &drain, NULL);

   WHAT IT DOES
      One liquid with a free surface, 2D and 3D: WCSPH with Tait's equation (its tangent beyond 1.1 rho0),
      explicit kick and drift, substeps chosen inside.
      Contacts with solids are solved as velocity conditions with any slip and restitution, positions are corrected
      after (Becker, Tessendorf, Teschner, "Direct Forcing for Lagrangian Rigid-Fluid Coupling"; docs/wcsph.md lists
      the corrections). After every call no particle is nearer to a surface than r_F = dx/2 (minus 1e-5 dx; float 1e-3
      dx, within 1000 dx of the origin), except pinched ones: those for which no such position was found, in gaps
      narrower than dx or deep in a solid (stats.pinched). No other particle is inside a solid, none leaves the domain.
      Bodies of a fsi_rigid world that touch each other and the liquid are solved together (fsi_wcsph_set_world).
      Numbers to choose: spacing, depth or speed; all else has a default that works.
   WHAT IT DOES NOT DO
      Surface tension, several liquids, obstacles that deform (bodies are rigid; a mesh may be moved, not bent).

   MACROS: those of fsi.h.
   UNITS: SI. In 2D masses, forces and energies are per metre of depth.
   PRECISION: state in fsi_real; pair arithmetic in float on exact fixed-point differences, contact systems and sums in
      double. Recommended: double; float needs half the memory: for millions of particles.
   COST: see docs/wcsph.md.
   FIND IN HERE (search for >>), behind the API
      >>work space  >>neighbours of a rank  >>pair sums  >>surfaces  >>contacts  >>response
      >>bodies in a step  >>position correction  >>substep  >>emitters and sinks at work  >>step; and the
      functions that you call: >>making and changing  >>particles  >>emitters and sinks  >>obstacles
      >>questions  >>state
      What stands by itself: fsi_particles.h (the table of particles), fsi_obstacle.h (walls that move), fsi_source.h,
      fsi_wcsph_contact.h (impulses of contacts, and fsi_wcsph_solve_contacts), fsi_wcsph_samples.h (layers of samples)
*/
#ifndef FSI_WCSPH_H
#define FSI_WCSPH_H

#include "fsi_obstacle.h"
#include "fsi_rigid.h"
#include "fsi_source.h"
#include "fsi_wcsph_contact.h"
#include "fsi_wcsph_samples.h"

/* Where densities come from (direct_forcing.md 2.1). CONTINUITY: rho is moved by the divergence of velocity, and
   filtered every `shepard_every` substeps; the domain and meshes without a body have a share in it, and its
   pressure pushes liquid off them up to 0.625 H away (not in degraded steps); within the liquid rho goes slowly to that
   of the positions, so that liquid at rest is not packed ever closer. SUMMATION: rho = sum m W, at least rho0.
   SUMMATION_WALL: the same with layers of samples behind each wall in the sum, taken for plane. */
typedef enum fsi_wcsph_density {
    FSI_WCSPH_CONTINUITY, FSI_WCSPH_SUMMATION, FSI_WCSPH_SUMMATION_WALL
} fsi_wcsph_density;

/* The surface of an obstacle. MESH: its triangles (segments), by closest point. SAMPLES: particles of radius r_P laid
   on it, as in the paper; the surface is that of their balls. */
typedef enum fsi_wcsph_surface { FSI_WCSPH_SURFACE_MESH, FSI_WCSPH_SURFACE_SAMPLES } fsi_wcsph_surface;

/* Treatment of particles inside an obstacle when a step begins (added over liquid, written there, teleported). */
typedef enum fsi_wcsph_start {
    FSI_WCSPH_DISPLACE,    /* moved to the nearest position free of solids (stats.displaced), before anything moves */
    FSI_WCSPH_REFUSE       /* the step fails with ARGUMENT and names the particle */
} fsi_wcsph_start;

/* How to make a simulator. Start from fsi_wcsph_default_desc(). */
typedef struct fsi_wcsph_desc {
    uint32_t cookie;
    fsi_context *context;    /* default NULL: malloc, serial or OpenMP, no clock */
    int dim;                 /* 3 (default) or 2 (z = 0, masses per metre of depth) */
    fsi_real spacing;        /* dx, rest distance of particles [m]; default 0.02; a particle has mass density dx^dim */
    fsi_real support;        /* H / dx, 2 to 3; default 2.4: cubic spline with smoothing length hs = H/2 = 1.2 dx */
    fsi_real density;        /* rho0 [kg/m^3]; default 1000 */
    fsi_vec3 gravity;        /* [m/s^2]; default (0, 0, -9.81) (2D: set y) */
    fsi_real depth;          /* greatest depth expected [m]; default 1 */
    fsi_real speed;          /* greatest speed expected, impacts and bodies too [m/s]; default 0: sqrt(2 |g| depth) */
    fsi_real sound_speed;    /* c_s [m/s]; default 0: 10 max(speed, sqrt(2 |g| depth)) */
    fsi_real alpha;          /* artificial viscosity, 0 to 10; default 0.1; 3 is syrup */
    fsi_real eta;            /* its regulariser; default 0.01 */
    int visc_bulk_only;      /* 1 (default): it acts between particles that approach; 0: always, also along shear */
    fsi_wcsph_density density_mode; /* default CONTINUITY */
    int shepard_every;       /* CONTINUITY: substeps from filter to filter, 0 (default): never */
    fsi_real diffusion;      /* CONTINUITY: delta of the density diffusion of Molteni and Colagrossi (2009), away from
                                the slope that rest asks for, 0 to 0.2: smooth pressure; default 0.1; 0: plain form */
    fsi_real guard;          /* CONTINUITY: pressure follows from the summation density less this fraction of rho0 where
                                that is larger than the continuity density, 0 to 1: drops and jets that meet, whose
                                continuity densities do not see each other, then repel; default 0.02; 1: off */
    int clamp_pressure;      /* 1 (default): no negative pressure; 0: down to -0.02 rho0 c_s^2 */
    fsi_wcsph_slip slip_mode;/* default CONSISTENT */
    int paper_separation;    /* 1: separating contacts damp tangential velocities, as in (9); default 0: they do not */
    int position_two_way;    /* 1: the position correction pushes the body back; default 0 */
    int offset_compensation; /* 1: the surface of COUPLED bodies, and of all of a world, is moved inward by r_F, so that
                                they displace their own volume: particles then come as near as 0 to them; default 0 */
    fsi_wcsph_solver solver; /* default AUTO */
    int active_passes;       /* GLOBAL: solves of the unilateral active set, 1 to 16; default 4 */
    int sweeps;              /* PGS: at most; default 50 */
    fsi_real tolerance;      /* PGS: ends when no impulse changes by over this * m * fastest contact; default 1e-4 */
    fsi_real cfl;            /* factor on all limits of the substep, 0.01 to 1; default 1 */
    int max_substeps;        /* of one call; default 10000. Where more are needed they are made longer, and the liquid
                                softer in them: c' = min(0.4 cfl hs/dt - v, 0.125 cfl hs/(alpha dt)), p = c'^2 (rho -
                                rho0) (stats.degraded, sound_speed); a pool of depth d shrinks by about |g| d/c'^2 */
    fsi_wcsph_start start_inside; /* default DISPLACE */
    fsi_box3 domain;         /* solid walls around the liquid; default empty: none */
    fsi_vec3 origin;         /* world's first origin now: fsi_wcsph_shift_origin moves it and all places; default 0 */
    fsi_real domain_slip, domain_restitution; /* of these walls, as an obstacle's; default 1, 0 */
    int reserve;             /* particles to make room for; default 0 */
    int max_particles;       /* budget of the whole simulator; default 0: no limit */
    int attribute_count;     /* numbers of your own that each particle carries, 0 to 64; default 0 */
} fsi_wcsph_desc;

/* What the last successful step did. Sums over its substeps unless said otherwise. */
typedef struct fsi_wcsph_stats {
    int particles, substeps;
    int degraded;                 /* 1: max_substeps did not suffice: some were longer and softer than they should be */
    double substep;               /* the last one [s] */
    double sound_speed;           /* the least c of a substep [m/s]: fsi_wcsph.sound_speed unless degraded */
    int contacts;                 /* of liquid with obstacles and domain, last substep */
    int shared;                   /* particles that touch more than one of them, last substep */
    int body_contacts;            /* between bodies of a world, last substep */
    int swept;                    /* contacts found only along a particle's path (fast particles) */
    int passes;                   /* solves of active sets, the most of a substep */
    int released;                 /* contacts that the active set released */
    int sweeps;                   /* of PGS */
    double residual;              /* of PGS: largest last change of an impulse / (m * fastest contact), last substep */
    int corrected;                /* particles whose position was corrected */
    double max_correction;        /* the farthest [m] */
    int pinched;                  /* particles for which no position r_F away from all surfaces was found, at the end */
    int displaced;                /* particles in a solid or out of the domain when the step began, moved out of it */
    int inside, lost;             /* at the end, particles in a solid, by the step's distances; out of the domain: 0 */
    double min_gap;               /* particles that are not pinched are at least so far from surfaces, less r_F, at the
                                     end [m]; FSI_REAL_MAX: none near */
    double density_ratio_max;     /* largest summation density over rho0, all particles, at the end */
    double density_ratio_inner;   /* the same of particles farther than H from all surfaces */
    double density_drift;         /* mean rho/rho0 - 1 */
    int density_resets;           /* CONTINUITY: times that a mean density beyond 1.02 rho0 was scaled back */
    double max_speed;             /* [m/s], at the end */
    double cfl;                   /* max_speed * substep / dx */
    double momentum[3];           /* of the liquid [kg m/s], at the end */
    double angular_momentum[3];   /* of the liquid about the world's origin, at the end [kg m^2/s] */
    double wall_impulse[3];       /* given to the liquid by static and PRESCRIBED obstacles and by the domain [N s] */
    double body_impulse[3];       /* given to the liquid by COUPLED bodies [N s] */
    double external_impulse[3];   /* by gravity and by `force` [N s] */
    double source_impulse[3];     /* by emitters, with the particles they emit, less those that sinks remove [N s] */
    int emitted, blocked, refused;/* particles from emitters; sites left empty: occupied by liquid; budget spent */
    int removed;                  /* by sinks */
    double momentum_error;        /* |change of momentum of liquid and COUPLED bodies - all impulses above and force dt
                                     of the bodies| / sum m |v|, largest substep */
    double exchange_error;        /* |angular impulse at x_cp that the liquid got + what COUPLED bodies got| / sum
                                     |x_cp||F| dt, largest substep */
    double angular_error;         /* change of the true angular momentum of liquid and COUPLED bodies by contacts that
                                     x_F - x_cp and the position correction make [kg m^2/s], sum of sizes */
    double angular_bound;         /* its bound: sum r_F |F_t| dt + sum m |x_correction||v| [kg m^2/s] */
    double tangential_impulse;    /* sum |F_t| dt over contacts [N s] */
    double kinetic_energy, potential_energy; /* of the liquid [J]; potential: -m g.x, zero at the origin */
    double seconds_neighbors, seconds_pairs, seconds_integrate;                    /* the liquid's, by the clock hook */
    /* of the boundaries: contacts found and accounted; impulses solved; distances kept */
    double seconds_contacts, seconds_response, seconds_correction;
    double seconds_other;
    size_t pairs;                 /* neighbours, each pair once, last substep */
    size_t bytes;                 /* allocated through its context */
    long long allocs;             /* allocations of the context so far */
} fsi_wcsph_stats;

/* A liquid. Read everything; write only what is marked. */
typedef struct fsi_wcsph {
    uint32_t cookie;
    fsi_context *context;      /* never NULL: the desc's, or one of its own */
    fsi_wcsph_desc desc;       /* as given, or set since */
    int count, capacity;
    fsi_vec3 *position;        /* count, creation order [m]; may be written between steps (teleport) */
    fsi_vec3 *velocity;        /* count [m/s]: half a substep behind the positions (the first kick is a whole one:
                                  momentum grows by force dt in the first step, too); may be written between steps */
    fsi_vec3 *force;           /* count, external force on each particle [N]; yours to write, kept from step to step */
    fsi_real *density;         /* count [kg/m^3]; CONTINUITY: state, may be written (> 0); else from the last substep */
    const fsi_real *pressure;  /* count [Pa] */
    const uint32_t *id;        /* count, never used twice, growing along the array */
    uint32_t *filter;          /* count, bits compared with masks of obstacles; default 0xffffffff; yours to write */
    fsi_real *attribute;       /* count * desc.attribute_count; yours to write, any value; NULL when there are none */
    double time;               /* seconds simulated */
    fsi_real particle_mass;    /* [kg] (2D: per metre) */
    fsi_real radius;           /* r_F = dx/2 [m] */
    fsi_real support;          /* H [m] */
    fsi_real sound_speed;      /* c_s [m/s] */
    fsi_wcsph_stats stats;
    void *impl;
} fsi_wcsph;

/* Fills every field. */
FSI_API fsi_wcsph_desc fsi_wcsph_default_desc(void);
/* Errors: COOKIE, ARGUMENT (names the field), NAN, MEMORY. *out is NULL on failure. */
FSI_API fsi_status fsi_wcsph_create(fsi_wcsph **out, const fsi_wcsph_desc *desc);
FSI_API void fsi_wcsph_destroy(fsi_wcsph *s); /* NULL is fine */
/* Other settings from now on: start from s->desc. All but cookie, context, dim, spacing, support, density, domain,
   origin and attribute_count may change; reserve means nothing here. Errors: COOKIE, ARGUMENT and NAN (name the field);
   then nothing has changed. */
FSI_API fsi_status fsi_wcsph_set_desc(fsi_wcsph *s, const fsi_wcsph_desc *desc);
/* Why the last call on it failed. NULL, as after a failed create: a text that says where to read why. Never NULL. */
FSI_API const fsi_error *fsi_wcsph_error(const fsi_wcsph *s);

/* Appends particles; `velocities` NULL: at rest; at most 1e9 m/s. Arrays may move; the arguments must not point into
   them. Densities start at rho0, or as SUMMATION finds them; fsi_wcsph_settle_density sets those of hydrostatic
   pressure. Errors: NAN (names the particle), ARGUMENT, MEMORY, LIMIT (max_particles). The next step treats particles
   in a solid as desc.start_inside says. */
FSI_API fsi_status fsi_wcsph_add_particles(fsi_wcsph *s, const fsi_vec3 *positions, const fsi_vec3 *velocities,
                                           int count);
/* Appends a lattice of spacing dx that fills a box, from its corner lo on; a sphere (2D: a disc), around its centre;
   what is at least dx/2 inside a closed mesh (of a container: in its liquid), from the corner of its box on. It moves
   with `velocity` [m/s]. Sites outside the domain, in an obstacle or nearer than dx/2 to one, or nearer than 0.6 dx to
   an existing particle are left out: the same box filled twice is filled once. *added (NULL is fine): the number of
   particles added, 0 after an error; where it is 0 a warning says so. Errors: COOKIE, NAN, ARGUMENT (a shape smaller
   than a cell, radius, mesh), MESH (not closed), MEMORY, LIMIT (max_particles, 5e8 sites in the domain); nothing
   changes. */
FSI_API fsi_status fsi_wcsph_fill_box(fsi_wcsph *s, fsi_box3 box, fsi_vec3 velocity, int *added);
FSI_API fsi_status fsi_wcsph_fill_sphere(fsi_wcsph *s, fsi_vec3 center, fsi_real radius, fsi_vec3 velocity, int *added);
FSI_API fsi_status fsi_wcsph_fill_mesh(fsi_wcsph *s, const fsi_mesh *mesh, fsi_vec3 velocity, int *added);
/* Removes the particles i with gone[i] != 0 (count entries); the others keep their order. */
FSI_API fsi_status fsi_wcsph_remove_particles(fsi_wcsph *s, const unsigned char *gone);
/* Densities of a liquid at rest whose surface is at `level`: a point on it [m]. rho = rho0 (1 + 7 |g| d/c_s^2)^(1/7), d
   the depth along gravity. A pool that starts so does not swing up and down. Error: NAN. */
FSI_API fsi_status fsi_wcsph_settle_density(fsi_wcsph *s, fsi_vec3 level);

/* A mesh that the liquid cannot enter: referenced, not copied; mesh and body must outlive the simulator or be removed
   first. A closed mesh keeps liquid out, or in when it was made as a container. Every step sweeps it, from where the
   last step left it:
      by its mesh     to where its mesh is when the step is called; move it with fsi_mesh_move_rigid, by less than 60
                      degrees a step. Corners move in straight lines
      by a body       PRESCRIBED: from body->pose to body->end, on an arc, by less than 180 degrees a step; where pose
                      is not where the last step left it, the body starts anew there: particles inside it are
                      displaced or refused (start_inside), nothing is swept, its velocity is (end - pose)/dt. COUPLED:
                      moved by the liquid, body->force and body->torque. The outputs of fsi_body are written when the
                      step has succeeded, for COUPLED also `end`, where the step left it: fsi_body_accept(body) goes on
                      from exactly there. Whoever integrates the pose himself comes out slightly elsewhere: the next
                      step sweeps the difference. Several obstacles may be fixed to one body. 2D: COUPLED bodies turn
                      about z only; those whose inertia has products with z are refused (ARGUMENT).
   OPEN meshes act on one side, their rim must stay out of the liquid's reach. TWO_SIDED meshes act on both. Meshes that
   cross themselves are refused (MESH). */
typedef struct fsi_wcsph_obstacle_desc {
    uint32_t cookie;
    const fsi_mesh *mesh;
    fsi_body *body;          /* default NULL. As the mesh stands when it is added, so it is fixed to body->pose of that
                                moment; later changes of the mesh have no effect */
    uint32_t mask;           /* it acts on particles with filter & mask != 0; default 0xffffffff: on all */
    fsi_real slip;           /* e_t: fraction of the tangential velocity that a contact leaves, in each substep: 0
                                no-slip, 1 free slip; 0.5 (default) and 0.9 act nearly like 0; for a drag of rate k
                                [1/s] take about 1 - k * substep */
    fsi_real restitution;    /* e_n, 0 to 1; default 0 */
    fsi_wcsph_surface surface; /* default MESH; SAMPLES move with a body only: where the mesh itself is moved or
                                  teleported, the step fails with ARGUMENT */
    fsi_real sample_spacing; /* SAMPLES: of the layer, in units of dx, 0.2 to 0.7 (more would leak); default 0.5 */
} fsi_wcsph_obstacle_desc;

FSI_API fsi_wcsph_obstacle_desc fsi_wcsph_default_obstacle_desc(void); /* fills every field; set mesh */
/* *id (NULL ok) names it in calls below. Errors: COOKIE, ARGUMENT, NAN (name the field), MESH, MEMORY. */
FSI_API fsi_status fsi_wcsph_add_obstacle(fsi_wcsph *s, const fsi_wcsph_obstacle_desc *desc, int *id);
FSI_API fsi_status fsi_wcsph_add_mesh(fsi_wcsph *s, const fsi_mesh *mesh, int *id); /* the same with all defaults */
FSI_API fsi_status fsi_wcsph_add_body(fsi_wcsph *s, const fsi_mesh *mesh, fsi_body *body, int *id); /* on a body */
FSI_API fsi_status fsi_wcsph_remove_obstacle(fsi_wcsph *s, int id);
/* Takes an obstacle for where its mesh, or its body's pose, is now: the next step does not sweep it there. Particles
   that are inside then are displaced by that step. */
FSI_API fsi_status fsi_wcsph_teleport_obstacle(fsi_wcsph *s, int id);
/* What the liquid did to an obstacle, mean over the last step: force [N], torque about the world's origin [N m]. Of
   COUPLED bodies it is exactly what they got. id -1: the domain's walls. */
FSI_API fsi_status fsi_wcsph_obstacle_reaction(const fsi_wcsph *s, int id, fsi_vec3 *force, fsi_vec3 *torque);
/* The samples of an obstacle (SAMPLES only): count and, where they are now, points and unit normals, valid until the
   next step or change of obstacles. The radius r_P is dx/2; r_P inside the mesh for solids (nearer and smaller where
   they are thinner than dx), on it for sheets. NULL is fine. */
FSI_API fsi_status fsi_wcsph_obstacle_samples(const fsi_wcsph *s, int id, int *count, const fsi_vec3 **points,
                                              const fsi_vec3 **normals);

/* Lets the step advance a world of fsi_rigid.h (NULL: no more). Bodies of the world that were added here by
   fsi_rigid_body's pointer are obstacles, in contact with liquid, planes and each other; contacts are solved in one
   PGS, poses are integrated, and the world is committed together with the liquid: do not call fsi_rigid_step or
   fsi_body_integrate on it as well. Bodies that are no obstacles here move along without touching the liquid. Contacts
   of its bodies are relaxed by the world's own sweeps and tolerance; where liquid is among them they end sooner, once
   no velocity changes by more than desc.tolerance times the fastest contact, and by 0.01 |g| dt. dim must agree. The
   world must outlive the simulator. Errors: ARGUMENT. */
FSI_API fsi_status fsi_wcsph_set_world(fsi_wcsph *s, fsi_rigid *world);

/* Emitters and sinks: fsi_source.h has their descs. An emitter emits from the first step that begins at `start` or
   later. During a step the layers that it emits pass the inlet plane one after the other and push the liquid there like
   a piston; neither liquid nor walls act on them until they are 2 dx in front of it. A mesh is filled at the beginning
   of a step. *id names it in calls below (NULL is fine). From now on a step may move the particles' arrays; with
   desc.reserve it seldom does. Errors: COOKIE, ARGUMENT and NAN (name the field), MESH, MEMORY,
   LIMIT. */
FSI_API fsi_status fsi_wcsph_add_emitter(fsi_wcsph *s, const fsi_emitter_desc *desc, int *id);
/* Another speed, position, shape ... from now on; the flow and the counts continue. */
FSI_API fsi_status fsi_wcsph_set_emitter(fsi_wcsph *s, int id, const fsi_emitter_desc *desc);
FSI_API fsi_status fsi_wcsph_remove_emitter(fsi_wcsph *s, int id); /* releases the particles in it */
/* Particles that it emitted, and sites that stayed empty, so far (NULL is fine). */
FSI_API fsi_status fsi_wcsph_emitter_total(const fsi_wcsph *s, int id, long long *emitted, long long *blocked,
                                           long long *refused);
/* Sinks remove the particles that are inside at the end of a step. Errors: COOKIE, ARGUMENT and NAN (name the field),
   MESH, MEMORY, LIMIT (254 sinks). */
FSI_API fsi_status fsi_wcsph_add_sink(fsi_wcsph *s, const fsi_sink_desc *desc, int *id);
FSI_API fsi_status fsi_wcsph_remove_sink(fsi_wcsph *s, int id);
FSI_API fsi_status fsi_wcsph_sink_total(const fsi_wcsph *s, int id, long long *removed);

/* What fsi_wcsph_copy copies, and how many floats of a particle that are. */
typedef enum fsi_wcsph_field {
    FSI_WCSPH_POSITION, FSI_WCSPH_VELOCITY, FSI_WCSPH_FORCE, /* 3 (in 2D too) */
    FSI_WCSPH_PRESSURE, FSI_WCSPH_DENSITY_RATIO,             /* 1 */
    FSI_WCSPH_ATTRIBUTE                                      /* desc.attribute_count */
} fsi_wcsph_field;
/* Copies one field as packed floats, as a GPU wants them: out[i * stride + k] for particle i. `origin` is taken off
   positions before they become float. Errors: ARGUMENT (unknown field, stride too short, out NULL), NAN (origin). */
FSI_API fsi_status fsi_wcsph_copy(const fsi_wcsph *s, fsi_wcsph_field field, fsi_vec3 origin, float *out, int stride);

/* Advances exactly dt seconds, 1e-12 to 1000, in substeps of at most fsi_wcsph_suggest_dt, or longer where
   desc.max_substeps does not suffice; dt 0 only looks: it fills stats. Errors: ARGUMENT (dt; a density; a body that
   fsi_body_check refuses), NAN (names the particle and what was not finite), MEMORY, LIMIT (a particle, body or
   obstacle faster than 1e9 m/s, or a force that would make it so: named); then nothing has changed. */
FSI_API fsi_status fsi_wcsph_step(fsi_wcsph *s, fsi_real dt);
/* The present limit of a substep [s] (direct_forcing.md 2.2), v the fastest particle, v_rel the same relative to the
   fastest obstacle: cfl min(0.4 hs/(c_s + v), 0.25 sqrt(hs/|a|), 0.125 hs^2/(alpha hs c_s), 0.5 dx/v_rel). */
FSI_API fsi_real fsi_wcsph_suggest_dt(const fsi_wcsph *s);

/* Adds offset [m] to the positions of particles and domain, and to where the last step left obstacles: a world whose
   origin moves along. Meshes and bodies are yours: add it to them as well before the next step (fsi_mesh_set; pose and
   end); for those of a fsi_rigid world fsi_rigid_shift_origin does so. Apart from rounding, later steps go as without.
   Errors: NAN, LIMIT (a particle would lie too far off); then nothing has changed. */
FSI_API fsi_status fsi_wcsph_shift_origin(fsi_wcsph *s, fsi_vec3 offset);

/* Velocity [m/s] of the liquid at a point: Shepard average of the particles within H; 0 without any. O(count). */
FSI_API fsi_vec3 fsi_wcsph_velocity_at(const fsi_wcsph *s, fsi_vec3 x);
/* Pressure [Pa] at a point: Shepard average of the particles within H; 0 where there are none. O(count). */
FSI_API fsi_real fsi_wcsph_pressure_at(const fsi_wcsph *s, fsi_vec3 x);
/* How many particles are inside a closed obstacle, by winding number, or outside the domain; *first one of them (NULL
   ok). Independent of all that the step uses; O(particles near obstacles * faces), on all the context's threads. */
FSI_API int fsi_wcsph_count_inside(const fsi_wcsph *s, int *first);
/* Distance of x to the nearest surface, negative inside, -1 at *obstacle for the domain (NULL ok); FSI_REAL_MAX: none.
   Of MESH obstacles the mesh, of SAMPLES the offset surface. Where the obstacles are now. */
FSI_API fsi_real fsi_wcsph_distance(const fsi_wcsph *s, fsi_vec3 x, int *obstacle);

/* State: particles with ids, filters, densities, attributes, poses of bodies, time. Obstacles, bodies, the world and
   desc are not saved: load into a simulator made alike (another dim, spacing, attribute_count or number of obstacles is
   refused), after putting meshes and bodies back: load takes them for where they are then. A state saved with another
   desc.origin is shifted to the present one. NULL buffer asks the size. A damaged or foreign buffer is refused, nothing
   changes, and so is one in which a number is not finite or out of the range of steps: what is loaded can be used. */
FSI_API fsi_status fsi_wcsph_save(const fsi_wcsph *s, void *buffer, size_t capacity, size_t *size);
FSI_API fsi_status fsi_wcsph_load(fsi_wcsph *s, const void *buffer, size_t size);
/* Hash of what save writes. Equal after equal steps, for any number of threads. */
FSI_API uint64_t fsi_wcsph_hash(const fsi_wcsph *s);

/* Particles coloured by pressure, and the edges of obstacles. */
FSI_API void fsi_wcsph_debug_draw(const fsi_wcsph *s, const fsi_debug_draw *draw);

#endif /* FSI_WCSPH_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_WCSPH_IMPLEMENTATION
#define FSI_WCSPH_IMPLEMENTATION
#endif
#ifdef FSI_WCSPH_IMPLEMENTATION
#ifndef FSI_WCSPH_IMPLEMENTATION_DONE
#define FSI_WCSPH_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_obstacle.h"
#include "fsi_rigid.h"
#include "fsi_source.h"
#include "fsi_wcsph_contact.h"
#include "fsi_wcsph_samples.h"

FSI__STRICT_BEGIN

#define FSI__WC_GRAIN FSI__NB_GRAIN   /* ranks a chunk */
/* Least times of the passes over all particles on one thread, as measured [ns a particle]: fsi__parallel_work. */
enum {
    FSI__WC_NS_PAIRS = 100,
    FSI__WC_NS_DRIFT = 7,
    FSI__WC_NS_COPY = 1,
    FSI__WC_NS_RECORDS = 13,
    FSI__WC_NS_PRESSURES = 2,
    FSI__WC_NS_MOMENTUM = 3,
    FSI__WC_NS_PREDICT = 2,
    FSI__WC_NS_DETECT = 10,
    FSI__WC_NS_RESPOND = 1,
    FSI__WC_NS_MEASURE = 5,
    FSI__WC_NS_INNER = 25,
    FSI__WC_NS_SCATTER = 18
};
#define FSI__WC_SUMS 24               /* partial sums a chunk */
#ifndef FSI__WC_LISTED
#define FSI__WC_LISTED (1 << 20)
#endif
      /* up to so many particles neighbour lists are kept; above, they are found anew in every pass */
#define FSI__WC_SKIN 0.4              /* how far lists reach beyond the kernel, at most [dx] */
#define FSI__WC_NEAR 64               /* obstacles near one chunk of particles; more: each particle looks at all */
#define FSI__WC_MARGIN 0.3            /* how far lists of faces and samples reach beyond what must be known [dx] */
#define FSI__WC_FELT 0.625            /* how far surfaces have a share in the density [H]: 1.5 dx at H = 2.4 dx */
#define FSI__WC_RECALL 100.0          /* time in which densities go to those of the positions [dx/c] */
#define FSI__WC_SURROUNDED 0.9        /* summation density of particles within the liquid, at least [rho0] */
#define FSI__WC_ONE_SIDED 0.2         /* slope of the summation density of particles within it, at most [rho0/dx] */
#define FSI__WC_FARTHEST (0.5 * FSI__MESH_REACH) /* no coordinate of a particle is beyond [m] */
#define FSI__WC_FASTEST 1e9 /* no particle, body or obstacle moves or turns faster [m/s, rad/s] */
#define FSI__WC_STIFF 1.1   /* where Tait's equation goes over into its tangent [rho0] */
#define FSI__WC_DENSEST 100 /* no density is above so many rho0, or below their inverse squared */

/* ---- >>work space --------------------------------------------------------------------------------------------- */

typedef struct fsi__wc_obstacle {
    fsi__obstacle base;      /* on a body, its shadow is in the body's axes */
    fsi_wcsph_obstacle_desc desc; /* as given */
    fsi__wc_samples samples; /* SAMPLES */
    /* Of the running step: */
    double gap;              /* least distance of particles' centres: r_F, or nearly 0 with offset_compensation [m] */
    fsi_pose start;          /* where the step finds it: `at`, or where its PRESCRIBED body says */
    fsi_pose from, to;       /* of its axes, at both ends of the substep; identity without a body */
    fsi_box3 box;            /* swept in the substep */
    double motion;           /* most that a point of it moves in the substep [m] */
} fsi__wc_obstacle;

/* A body in a step. Velocities with the inertia of `from`. */
typedef struct fsi__wc_body {
    fsi_body *user, work;    /* the work copy takes the outputs, which are handed out at commit */
    int coupled;
    int rg;                  /* its id in the world, -1: not of the world */
    int entangled;           /* its contacts are solved together with those of others: PGS */
    fsi__d3 center;          /* that contact arms count from */
    fsi_pose begin;          /* where the step found it */
    fsi_pose from, to, star; /* at both ends of the substep: predicted, then final; predicted */
    fsi__d3 v0, w0;          /* velocities at its start, with the orientation there */
    fsi__d3 v, w;            /* predicted, then corrected */
    fsi_mat3 inertia, inverse; /* world axes at `from` */
    fsi__d3 impulse, moment; /* given by the liquid in this substep, about the centre */
    fsi__d3 sum, turn;       /* over the step */
    double reach;
    int first, count;        /* its contacts: run->by_body[first ..] */
    int local, passes, released; /* solved by LOCAL; active set: solves, contacts let go */
} fsi__wc_body;

/* Candidates for the closest point of an obstacle to a particle: faces (SAMPLES: samples) within the distance that must
   be known plus FSI__WC_MARGIN, by distance. As with lists of neighbours: made when first needed, valid until the
   particle has moved by the margin in the obstacle's axes, dropped when there is no room for more, or the step ends.
   Without a list the search covers the whole obstacle, with the same result. */
typedef struct fsi__wc_list {
    int obstacle, next;      /* next: list of the same particle, -1 none */
    int first, count;        /* its items */
    fsi_vec3 at;             /* where the particle was, in the obstacle's axes */
    double d;                /* distance to the mesh there, negative inside */
} fsi__wc_list;

typedef struct fsi__wc_impl {
    fsi_context own_context;
    fsi__arena scratch, lists, touch;
    uint32_t *id;
    fsi_real *pressure;
    float *ratio;            /* summation density over rho0 */
    fsi_real *room;          /* least possible distance to any surface, as of `last` */
    fsi_vec3 *last;          /* where the last step left the particle */
    uint32_t *seen;          /* its filter then */
    fsi__obstacles obstacles;
    fsi__wc_obstacle *obstacle; /* its rows */
    int layers;              /* how many of them are SAMPLES */
    fsi__particles particles;
    int64_t filter_count, filter_next; /* substeps since the Shepard filter: as of the last step, in this one */
    double amax;             /* greatest acceleration of the last substep */
    double wall_speed;       /* fastest point of an obstacle in the last step */
    double sound_speed;      /* c of its last substep, less than the simulator's where that was degraded */
    int surfaces_changed;    /* obstacles were added, moved or removed: `room` means nothing */
    int *need, need_count;   /* contacts that chunks of the last substep had */
    fsi_vec3 domain_force, domain_torque;
    fsi_rigid *world;
    fsi__sources sources;
    uint32_t *source;        /* 1 + id of the emitter that still moves the particle, 0: none */
} fsi__wc_impl;

typedef struct fsi__wc_run {
    fsi_wcsph *s;
    fsi__wc_impl *im;
    const char *fn;
    int n, chunks;
    double dt, done, share;  /* substep; fraction of the step before it; its own */
    double length;           /* of the step [s] */
    double h;                /* H */
    double lack;             /* of the share of surfaces in the density: phi = lack (R - d)^2 [1/m^2] */
    double c;                /* speed of sound in this substep, that of the simulator unless degraded [m/s] */
    fsi__nb_build b;
    double moved, skin;      /* farthest from where the lists were made; how far they reach beyond the kernel [m] */
    double fastest;          /* particle [m/s] */
    double motion;           /* fastest obstacle's motion in this substep [m] */
    double off;              /* farthest particle from the origin, when the step began [m] */
    /* Ranks: */
    fsi_vec3 *x, *v, *a, *x1, *swap;
    fsi_real *rho, *room, *swap_real;
    int *src;
    float *ratio;            /* summation density / rho0 */
    fsi__lane4 *beside;      /* near surfaces: gradient of their share in the density, and the share, over rho0 */
    fsi__record *zr;         /* position, p/rho^2 */
    fsi__lane4 *zv;          /* velocity, rho */
    unsigned char *pinched;
    double *part;            /* chunks * FSI__WC_SUMS */
    fsi__wc_list *list;      /* chunks * list_room; NULL: there are no obstacles */
    fsi__wc_item *item;      /* chunks * item_room */
    int *head, *lists, *items; /* of a rank: its first list, -1 none; of a chunk: how many there are */
    int list_room, item_room;
    /* Contacts: */
    fsi__wc_contact *contact;
    int *base, *used;        /* chunks (+1): where a chunk's contacts start, how many there are */
    int *by_body;            /* contacts in the order of bodies */
    fsi__ct_particle *guest; /* particles that touch entangled bodies of the world */
    int *row;                /* their contacts, in the order of rows */
    int contact_count;
    fsi__wc_body *body;
    int body_count, coupled_count;
    double domain_impulse[3], domain_moment[3];
    fsi_wcsph_stats stats;
    int filter;              /* this density pass is a Shepard filter */
    int anew;                /* surfaces are not where the last step left them */
    int starting;            /* before the first substep: positions are checked, nothing moves */
    int entangled, row_count; /* some body is; rows that the world's solver got */
    double left;             /* of the step */
    double rho_mean;
    double amax, wall_speed;
    /* Sources; rows in creation order: */
    fsi__source_run sources;
    uint32_t *source;        /* n, as of fsi__wc_impl; NULL: there are no emitters */
    unsigned char *gone;     /* n: 1 + sink that takes it, FSI__WC_GHOST, 0; NULL: neither emitters nor sinks */
    int born;                /* rows from here on came out of emitters in this step */
    int more;                /* rows that there is room for behind those of s->count */
} fsi__wc_run;

#define FSI__WC_GHOST 255    /* still behind its emitter's plane when the step ends */

/* Does an emitter move this rank? */
FSI_FN int fsi__wc_is_held(const fsi__wc_run *run, int r) { return run->source && run->source[run->src[r]] != 0; }

static double fsi__wc_sum(const fsi__wc_run *run, int k)
{
    double sum = 0;
    int c;
    for (c = 0; c < run->chunks; c++) sum += run->part[c * FSI__WC_SUMS + k];
    return sum;
}
static double fsi__wc_largest(const fsi__wc_run *run, int k)
{
    double most = 0;
    int c;
    for (c = 0; c < run->chunks; c++) most = fmax(most, run->part[c * FSI__WC_SUMS + k]);
    return most;
}
static fsi__d3 fsi__wc_sum3(const fsi__wc_run *run, int k)
{
    return fsi__d3_make(fsi__wc_sum(run, k), fsi__wc_sum(run, k + 1), fsi__wc_sum(run, k + 2));
}
static double *fsi__wc_parts(fsi__wc_run *run, int chunk)
{
    double *p = run->part + chunk * FSI__WC_SUMS;
    memset(p, 0, FSI__WC_SUMS * sizeof *p);
    return p;
}
FSI_FN void fsi__wc_put(double *p, fsi__d3 a) { p[0] += a.x; p[1] += a.y; p[2] += a.z; }
static void fsi__wc_parallel(fsi__wc_run *run, fsi__range_fn *fn, double work)
{
    fsi__parallel_work(run->s->context, run->n, FSI__WC_GRAIN, work * run->n, fn, run);
}
static void fsi__wc_lap(const fsi__wc_run *run, double *phase, double *since)
{
    double now = fsi__now(run->s->context);
    *phase += now - *since;
    *since = now;
}

/* Hands the world's error on to the liquid's caller. */
static fsi_status fsi__wc_of_world(const fsi__wc_run *run, fsi_status status)
{
    if (status != FSI_OK && run->im->world->context != run->s->context)
        run->s->context->error = run->im->world->context->error;
    return status;
}

static void fsi__wc_layout(fsi__wc_run *run, fsi__arena *a)
{
    const size_t n = (size_t)run->n, c = (size_t)run->chunks, o = (size_t)run->im->obstacles.count;
    fsi__nb_layout(&run->b, a);

    /* State of the ranks. Accelerations mean nothing while ranks are sorted: their array serves as swap space. */
    run->x = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    run->v = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    run->a = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    run->x1 = (fsi_vec3 *)fsi__take(a, n, sizeof(fsi_vec3));
    run->swap = run->a;
    run->rho = (fsi_real *)fsi__take(a, n, sizeof(fsi_real));
    run->room = (fsi_real *)fsi__take(a, n, sizeof(fsi_real));
    run->swap_real = (fsi_real *)(void *)run->a;

    /* Arrays of the pair sums. */
    run->src = (int *)fsi__take(a, n, sizeof(int));
    run->ratio = (float *)fsi__take(a, n, sizeof(float));
    run->beside = (fsi__lane4 *)fsi__take(a, n, sizeof(fsi__lane4));
    run->zr = (fsi__record *)fsi__take(a, n, sizeof(fsi__record));
    run->zv = (fsi__lane4 *)fsi__take(a, n, sizeof(fsi__lane4));
    run->pinched = (unsigned char *)fsi__take(a, n, 1);

    /* Lists of near faces and samples, where there are obstacles. */
    run->list_room = o == 0 ? 0 : run->n <= FSI__WC_LISTED ? FSI__WC_GRAIN : FSI__WC_GRAIN / 4;
    run->item_room = (run->im->layers > 0 ? 48 : 8) * run->list_room;
    run->list = (fsi__wc_list *)fsi__take(a, c * (size_t)run->list_room, sizeof(fsi__wc_list));
    run->item = (fsi__wc_item *)fsi__take(a, c * (size_t)run->item_room, sizeof(fsi__wc_item));
    run->head = (int *)fsi__take(a, o ? n : 0, sizeof(int));
    run->lists = (int *)fsi__take(a, c, sizeof(int));
    run->items = (int *)fsi__take(a, c, sizeof(int));

    /* Partial sums, and the places of contacts, of each chunk; bodies. */
    run->part = (double *)fsi__take(a, c * FSI__WC_SUMS, sizeof(double));
    run->base = (int *)fsi__take(a, c + 1, sizeof(int));
    run->used = (int *)fsi__take(a, c, sizeof(int));
    run->body = (fsi__wc_body *)fsi__take(a, o, sizeof(fsi__wc_body));

    /* Emitters and sinks. */
    fsi__source_layout(&run->sources, a);
    if (run->im->sources.emitter_count > 0) run->source = (uint32_t *)fsi__take(a, n, sizeof(uint32_t));
    if (run->im->sources.emitter_count + run->im->sources.sink_count > 0)
        run->gone = (unsigned char *)fsi__take(a, n, 1);
}

/* The longest substep that is stable and accurate (direct_forcing.md 2.2). */
static double fsi__wc_limit(const fsi_wcsph *s, double amax, double speed, double relative)
{
    const double hs = (double)s->support / 2, c = (double)s->sound_speed, dx = (double)s->desc.spacing,
                 alpha = (double)s->desc.alpha;
    double dt = 0.4 * hs / (c + speed);
    if (amax > 0) dt = fmin(dt, 0.25 * sqrt(hs / amax));
    if (alpha > 0) dt = fmin(dt, 0.125 * hs / (alpha * c));
    if (relative > 0) dt = fmin(dt, 0.5 * dx / relative);
    return dt * (double)s->desc.cfl;
}

/* The speed of sound with which a substep of dt is stable (desc.max_substeps): from the limits above,
      c' + v <= 0.4 cfl hs/dt,   c' <= 0.125 cfl hs/(alpha dt);
   what the first leaves beside fast particles is at least a tenth. The linear law keeps it the same however much the
   liquid is compressed: with Tait's c grows as rho^3, and what is softer is compressed more. */
static double fsi__wc_soft(const fsi_wcsph *s, double dt, double speed)
{
    const double hs = (double)s->support / 2, cfl = (double)s->desc.cfl, alpha = (double)s->desc.alpha,
                 room = 0.4 * cfl * hs / dt;
    double c = fmax(room - speed, 0.1 * room);
    if (alpha > 0) c = fmin(c, 0.125 * cfl * hs / (alpha * dt));
    return fmin(c, (double)s->sound_speed);
}

/* ---- >>neighbours of a rank ----------------------------------------------------------------------------------- */

/* Ranks are sorted by cell; lists reach `skin` farther than the kernel, so that they serve until something has moved
   half of that. With very many particles they are not kept: a pass makes those of a cell, uses and forgets them. */
typedef void fsi__wc_rank_fn(fsi__wc_run *run, int r, const int *list, int size, double *part);

typedef struct fsi__wc_pass { fsi__wc_run *run; fsi__wc_rank_fn *fn; } fsi__wc_pass;

static void fsi__wc_listed(void *arg, int chunk, int begin, int end)
{
    const fsi__wc_pass *p = (const fsi__wc_pass *)arg;
    const fsi__nb_build *b = &p->run->b;
    double *part = fsi__wc_parts(p->run, chunk);
    int r;
    for (r = begin; r < end; r++) p->fn(p->run, r, b->list + b->first[r], b->size[r], part);
}

#define FSI__WC_ROOM 4096 /* neighbours of one particle, at most, where lists are not kept; a multiple of FSI_LANES */

/* Lists of one cell at a time, on the stack. */
static void fsi__wc_found(void *arg, int chunk, int begin, int end)
{
    const fsi__wc_pass *p = (const fsi__wc_pass *)arg;
    const fsi__nb_build *b = &p->run->b;
    double *part = fsi__wc_parts(p->run, chunk);
    fsi__nb_tile tile;
    fsi__nb_runs runs;
    int list[FSI__WC_ROOM], lo = 0, hi = b->row_count, r = begin, row = -1, cell = -1, total = 0, exact = 0;
    fsi_vec3 at = b->sorted[begin];
    tile.count = tile.shift = 0;

    /* The row of cells that contains `begin`, by bisection. */
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (b->row[mid].begin <= begin) lo = mid;
        else hi = mid;
    }
    for (; r < end; r++) {
        const int same = cell >= 0 && row >= 0 && r < b->row[row + 1].begin && b->cell_x[r] == b->cell_x[cell];
        int from, size;
        size_t m = 0;

        /* The next row, and the next cell: their neighbours are those of all its particles. */
        while (b->row[lo + 1].begin <= r) lo++;
        if (row != lo) fsi__nb_start_row(b, row = lo, b->cell_x[r], &runs);
        if (!same) {
            cell = r;
            at = b->sorted[r];
            exact = fsi__nb_clamped(b, r);
            total = fsi__nb_advance(b, b->cell_x[r], &runs);
        }

        /* Neighbours by tiles of candidates; a list that is too long is an error. */
        for (from = 0; from < total; from += FSI__NB_TILE) {
            if (!same || total > FSI__NB_TILE) fsi__nb_load(b, &runs, from, r, at, &tile);
            m = fsi__nb_test(b, &tile, r, at, exact, list, m, FSI__WC_ROOM);
        }
        part[FSI__WC_SUMS - 1] += m > FSI__WC_ROOM;

        /* Padded with the particle itself. */
        for (size = (int)(m < FSI__WC_ROOM ? m : FSI__WC_ROOM), m = (size_t)size; m % FSI_LANES; m++) list[m] = r;
        p->fn(p->run, r, list, size, part);
    }
}

static fsi_status fsi__wc_pairs(fsi__wc_run *run, fsi__wc_rank_fn *fn)
{
    fsi__wc_pass pass;
    pass.run = run;
    pass.fn = fn;
    fsi__parallel_work(run->s->context, run->n, FSI__WC_GRAIN, (double)FSI__WC_NS_PAIRS * run->n,
                       run->b.list ? fsi__wc_listed : fsi__wc_found, &pass);
    if (!(fsi__wc_sum(run, FSI__WC_SUMS - 1) > 0)) return FSI_OK;
    return fsi__fail(run->s->context, FSI_ERROR_LIMIT, run->fn, -1, FSI__WC_ROOM,
                     "a particle has more than %d neighbours", FSI__WC_ROOM);
}

/* Brings an array of ranks into a new order. */
static void fsi__wc_permute(const fsi__wc_run *run, void *array, void *swap, size_t size)
{
    const int *order = run->b.order;
    int r;
    for (r = 0; r < run->n; r++) memcpy((char *)swap + (size_t)r * size, (char *)array + (size_t)order[r] * size, size);
    memcpy(array, swap, (size_t)run->n * size);
}

static void fsi__wc_clear_lists(fsi__wc_run *run)
{
    int r;
    memset(run->lists, 0, (size_t)run->chunks * sizeof *run->lists);
    memset(run->items, 0, (size_t)run->chunks * sizeof *run->items);
    for (r = 0; r < run->n && run->list_room > 0; r++) run->head[r] = -1;
}

/* Forgets all lists where those of some chunk, with the outdated ones among them, take more than half of their room. */
static void fsi__wc_tidy_lists(fsi__wc_run *run)
{
    int c, full = 0;
    for (c = 0; c < run->chunks; c++) full |= run->lists[c] > run->list_room / 2 || run->items[c] > run->item_room / 2;
    if (full) fsi__wc_clear_lists(run);
}

/* Sorts ranks anew and makes lists. */
static fsi_status fsi__wc_rebuild(fsi__wc_run *run)
{
    fsi__nb_build *b = &run->b;
    const double dx = (double)run->s->desc.spacing,
                 step = fsi__wc_limit(run->s, 0, run->fastest, run->fastest) * run->fastest;
    double reach;
    run->moved = 0;
    if (run->n == 0) return FSI_OK;

    /* A skin that lasts a few substeps, in fast liquid too. */
    run->skin = fmin(0.15 * dx + 3 * step, FSI__WC_SKIN * dx);
    reach = run->h + run->skin;

    /* Cells and ranks; the sort reads positions in the old order. */
    memcpy(run->x1, run->x, (size_t)run->n * sizeof *run->x);
    b->x = run->x1;
    b->count = run->n;
    b->dim = run->s->desc.dim;
    b->radius2 = (fsi_real)(reach * reach);
    b->inv_cell = 1 / (reach * 1.00001);
    b->chunk_count = run->chunks;
    b->list = NULL;
    fsi__nb_rank(b);

    /* The new order of all that is kept from substep to substep. */
    fsi__wc_permute(run, run->x, run->swap, sizeof *run->x);
    fsi__wc_permute(run, run->v, run->swap, sizeof *run->v);
    fsi__wc_permute(run, run->rho, run->swap, sizeof *run->rho);
    fsi__wc_permute(run, run->room, run->swap, sizeof *run->room);
    fsi__wc_permute(run, run->ratio, run->swap, sizeof *run->ratio);
    fsi__wc_permute(run, run->beside, run->swap, sizeof *run->beside);
    fsi__wc_permute(run, run->src, run->swap, sizeof *run->src);
    fsi__wc_permute(run, run->pinched, run->swap, 1);
    if (run->list_room > 0) fsi__wc_permute(run, run->head, run->swap, sizeof *run->head);
    fsi__wc_tidy_lists(run);

    /* Neighbour lists. */
    return run->n <= FSI__WC_LISTED ? fsi__nb_make_lists(run->s->context, b, &run->im->lists, run->fn) : FSI_OK;
}

/* ---- >>pair sums ---------------------------------------------------------------------------------------------- */

/* Cubic spline (direct_forcing.md 2) with q = r/hs, a = max(2-q, 0), b = max(1-q, 0):
      W = alpha (a^3/4 - b^3),   dW/dr / r = alpha/hs^2 (3 b^2 - 3/4 a^2)/q =: alpha/hs^2 g. */
FSI_FN double fsi__wc_alpha(int dim, double hs)
{
    return dim == 3 ? 1 / (FSI_PI * hs * hs * hs) : 10 / (7 * FSI_PI * hs * hs);
}
#define FSI__WC_Q (2 * FSI__COORD_UNIT) /* coordinates are in units of H = 2 hs */

typedef struct fsi__wc_lanes { fsi__f8 dx, dy, dz, w, r2, a, b, g; } fsi__wc_lanes;

FSI_FN void fsi__wc_kernel8(const fsi__record *z, const int *list, const fsi__record *at, fsi__wc_lanes *k)
{
    const fsi__f8 unit = fsi__f8_set((fsi__lane)FSI__WC_Q), one = fsi__f8_set(1), two = fsi__f8_set(2),
                  zero = fsi__f8_set(0), tiny = fsi__f8_set((fsi__lane)1e-6);
    fsi__f8 q;
    fsi__f8_gather(z, list, at, &k->dx, &k->dy, &k->dz, &k->w);
    k->r2 = fsi__f8_add(fsi__f8_add(fsi__f8_mul(k->dx, k->dx), fsi__f8_mul(k->dy, k->dy)), fsi__f8_mul(k->dz, k->dz));
    q = fsi__f8_mul(fsi__f8_sqrt(k->r2), unit);
    k->a = fsi__f8_max(fsi__f8_sub(two, q), zero);
    k->b = fsi__f8_max(fsi__f8_sub(one, q), zero);
    k->g = fsi__f8_sub(fsi__f8_mul(fsi__f8_set(3), fsi__f8_mul(k->b, k->b)),
                       fsi__f8_mul(fsi__f8_set((fsi__lane)0.75), fsi__f8_mul(k->a, k->a)));
    k->g = fsi__f8_div(k->g, fsi__f8_max(q, tiny));
}

FSI_FN int fsi__wc_padded(int size) { return (size + FSI_LANES - 1) / FSI_LANES * FSI_LANES; }

/* Tait's equation (6). Its speed of sound grows as rho^3, while the substep is chosen for c_s. Beyond FSI__WC_STIFF
   rho0, which only crushed or overlapping particles reach, its tangent is used: such particles separate at about c_s
   instead of a hundred times that. */
FSI_FN double fsi__wc_tait(const fsi_wcsph *s, double rho)
{
    const double full = rho / (double)s->desc.density, r = full < FSI__WC_STIFF ? full : FSI__WC_STIFF, r2 = r * r;
    const double b = (double)s->desc.density * (double)s->sound_speed * (double)s->sound_speed;
    const double p = b / 7 * (r2 * r2 * r2 * r - 1) + (full > r ? b * r2 * r2 * r2 * (full - r) : 0),
                 low = s->desc.clamp_pressure ? 0 : -0.02 * b;
    return p < low ? low : p;
}

/* Of the running substep: Tait's, or in softer ones p = c'^2 (rho - rho0). */
FSI_FN double fsi__wc_pressure_at(const fsi_wcsph *s, double c, double rho)
{
    const double rho0 = (double)s->desc.density, p = c * c * (rho - rho0),
                 low = s->desc.clamp_pressure ? 0 : -0.02 * rho0 * c * c;
    if (!(c < (double)s->sound_speed)) return fsi__wc_tait(s, rho);
    return p < low ? low : p;
}
FSI_FN double fsi__wc_pressure_of(const fsi__wc_run *run, double rho)
{
    return fsi__wc_pressure_at(run->s, run->c, rho);
}

/* The density that pressure is made of: rho, or where more particles meet than it knows of, theirs. */
FSI_FN double fsi__wc_felt(const fsi_wcsph *s, double rho, double ratio)
{
    const double met = (ratio - (double)s->desc.guard) * (double)s->desc.density;
    return s->desc.density_mode == FSI_WCSPH_CONTINUITY && met > rho ? met : rho;
}

static void fsi__wc_records(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    const double scale = 1 / run->h;
    int r;
    (void)chunk;
    for (r = begin; r < end; r++) {
        const fsi_vec3 *x = &run->x[r], *v = &run->v[r];
        fsi__record *z = &run->zr[r];
        z->x = fsi__to_coord((double)x->x * scale);
        z->y = fsi__to_coord((double)x->y * scale);
        z->z = run->s->desc.dim == 3 ? fsi__to_coord((double)x->z * scale) : 0;
        z->w = 0;
        run->zv[r].x = (fsi__lane)v->x;
        run->zv[r].y = (fsi__lane)v->y;
        run->zv[r].z = (fsi__lane)v->z;
        run->zv[r].w = (fsi__lane)run->rho[r];
    }
}

static double fsi__wc_wall_share(const fsi__wc_run *run, int r);

/* What the density that positions give, rho_s = sum m W + rho0 phi, changes CONTINUITY's in dt:
      dt/T w (rho_s - rho),   T = 100 dx/c.
   The equation of continuity with diffusion forgets how closely particles are packed, so that liquid at rest would be
   packed ever closer. w goes to 0 where neighbours are missing, at free surfaces and bodies: where rho_s is small or
   one-sided. slope: sum m grad W. */
FSI__HOST_FN double fsi__wc_recall(const fsi__wc_run *run, int i, double sum, fsi__d3 slope)
{
    const double rho0 = (double)run->s->desc.density, dx = (double)run->s->desc.spacing;
    const fsi__lane4 *beside = &run->beside[i];
    const fsi__d3 walls = fsi__d3_make((double)beside->x, (double)beside->y, (double)beside->z);
    const double seen = sum + rho0 * (double)beside->w;
    const double tilt = fsi__d3_norm(fsi__d3_madd(slope, rho0, walls)) * dx / (rho0 * FSI__WC_ONE_SIDED);
    const double within = fmin((seen / rho0 - FSI__WC_SURROUNDED) / (1 - FSI__WC_SURROUNDED), 1);
    if (!(within > 0) || !(tilt < 1)) return 0;
    return run->dt * run->c / (FSI__WC_RECALL * dx) * within * (1 - tilt * tilt) * (seen - (double)run->rho[i]);
}

/* Density after the drift (direct_forcing.md 2.1), with velocities and places of its end:
      CONTINUITY   rho += dt sum_j m v_ij . grad W_ij
                          + dt 2 delta hs c_s sum_j (rho_j - rho_i - rho_H) m/rho0 (-dW/dr/r) + fsi__wc_recall
                   rho_H = rho0/c_s^2 g.(x_j - x_i): no diffusion of the pressure at rest (Fourtakas et al. 2019)
      filter       rho  = sum m W / sum (m/rho_j) W  + the same increment, which the old rho_j do not know yet
      SUMMATION    rho  = max(rho0, sum m W)
   and the summation density itself, for the stats. */
static void fsi__wc_density(fsi__wc_run *run, int i, const int *list, int size, double *part)
{
    const fsi_wcsph *s = run->s;
    const double hs = run->h / 2, alpha = fsi__wc_alpha(s->desc.dim, hs), m = (double)s->particle_mass,
                 rho0 = (double)s->desc.density;
    const fsi__lane4 *at = &run->zv[i];
    const fsi__f8 vx = fsi__f8_set(at->x), vy = fsi__f8_set(at->y), vz = fsi__f8_set(at->z), rho = fsi__f8_set(at->w),
                  one = fsi__f8_set(1);
    const double steep = rho0 / (run->c * run->c) * FSI__COORD_UNIT * run->h;
    const fsi__f8 hx = fsi__f8_set((fsi__lane)(steep * (double)s->desc.gravity.x)),
                  hy = fsi__f8_set((fsi__lane)(steep * (double)s->desc.gravity.y)),
                  hz = fsi__f8_set((fsi__lane)(steep * (double)s->desc.gravity.z));
    fsi__f8 w = fsi__f8_set(0), div = w, dif = w, vol = w, gx = w, gy = w, gz = w;
    int k, padded = fsi__wc_padded(size), self = 1 - (padded - size);
    double sum;

    /* Over the neighbours: w = sum W/alpha; div = sum g v_ij.x_ij; dif = sum g (rho_j - rho_i - rho_H); (gx, gy, gz) =
       sum g x_ij; vol = sum W/(alpha rho_j), for the filter. */
    for (k = 0; k < padded; k += FSI_LANES) {
        fsi__f8 ux, uy, uz, other, kernel, level;
        fsi__wc_lanes p;
        fsi__wc_kernel8(run->zr, list + k, &run->zr[i], &p);
        fsi__f8_gather_four(run->zv, list + k, &ux, &uy, &uz, &other);
        kernel = fsi__f8_sub(fsi__f8_mul(fsi__f8_set((fsi__lane)0.25), fsi__f8_mul(fsi__f8_mul(p.a, p.a), p.a)),
                             fsi__f8_mul(fsi__f8_mul(p.b, p.b), p.b));
        w = fsi__f8_add(w, kernel);
        ux = fsi__f8_mul(fsi__f8_sub(ux, vx), p.dx);
        uy = fsi__f8_mul(fsi__f8_sub(uy, vy), p.dy);
        uz = fsi__f8_mul(fsi__f8_sub(uz, vz), p.dz);
        div = fsi__f8_add(div, fsi__f8_mul(p.g, fsi__f8_add(fsi__f8_add(ux, uy), uz)));
        level = fsi__f8_add(fsi__f8_add(fsi__f8_mul(hx, p.dx), fsi__f8_mul(hy, p.dy)), fsi__f8_mul(hz, p.dz));
        dif = fsi__f8_add(dif, fsi__f8_mul(p.g, fsi__f8_sub(fsi__f8_sub(other, rho), level)));
        gx = fsi__f8_add(gx, fsi__f8_mul(p.g, p.dx));
        gy = fsi__f8_add(gy, fsi__f8_mul(p.g, p.dy));
        gz = fsi__f8_add(gz, fsi__f8_mul(p.g, p.dz));
        if (run->filter) vol = fsi__f8_add(vol, fsi__f8_mul(kernel, fsi__f8_div(one, other)));
    }

    /* Summation density, with walls where the mode asks for them; or CONTINUITY: its rate of change, from the old or
       the filtered density. */
    sum = m * alpha * ((double)fsi__f8_sum(w) + self);
    run->ratio[i] = (float)(sum / rho0);
    if (s->desc.density_mode == FSI_WCSPH_SUMMATION_WALL) sum += rho0 * fsi__wc_wall_share(run, i);
    if (s->desc.density_mode != FSI_WCSPH_CONTINUITY) run->a[i].x = (fsi_real)(sum > rho0 ? sum : rho0);
    else {
        const double rate = m * alpha / (hs * hs) * ((double)fsi__f8_sum(div) * FSI__COORD_UNIT * run->h
                          - 2 * (double)s->desc.diffusion * hs * run->c / rho0 * (double)fsi__f8_sum(dif));
        const double own = (double)self / (double)run->rho[i], volume = m * alpha * ((double)fsi__f8_sum(vol) + own);
        const double from = run->filter ? sum / volume : (double)run->rho[i];
        const double slope = m * alpha / (hs * hs) * FSI__COORD_UNIT * run->h;
        const fsi__d3 tilt = fsi__d3_scale(fsi__d3_make((double)fsi__f8_sum(gx), (double)fsi__f8_sum(gy),
                                                        (double)fsi__f8_sum(gz)), -slope);
        run->a[i].x = (fsi_real)fmax(from + run->dt * rate + fsi__wc_recall(run, i, sum, tilt), 0.1 * rho0);
    }

    /* Within the range that a step accepts; sums for the stats. */
    if ((double)run->a[i].x > FSI__WC_DENSEST * rho0) run->a[i].x = (fsi_real)(FSI__WC_DENSEST * rho0);
    part[0] += (double)run->a[i].x;
    part[1] = fmax(part[1], (double)run->ratio[i]);
    part[2] += (double)size;
}

/* The caller's force on a rank; in the plane where that is all there is. */
static fsi__d3 fsi__wc_outside(const fsi__wc_run *run, int r)
{
    const fsi_vec3 f = run->s->force[run->src[r]];
    return fsi__d3_make((double)f.x, (double)f.y, run->s->desc.dim == 3 ? (double)f.z : 0);
}

/* Acceleration (4): pressure and viscosity, summed in double, so that pairs cancel to rounding; gravity and forces from
   outside. Pi_ij = -nu (v_ij.x_ij)/(|x_ij|^2 + eta hs^2), nu = 2 alpha hs c_s/(rho_i + rho_j), at approach. */
static void fsi__wc_force(fsi__wc_run *run, int i, const int *list, int size, double *part)
{
    const fsi_wcsph *s = run->s;
    const fsi_wcsph_desc *d = &s->desc;
    const double hs = run->h / 2, unit = FSI__COORD_UNIT * run->h, m = (double)s->particle_mass;
    const double scale = m * fsi__wc_alpha(d->dim, hs) / (hs * hs) * unit;
    const fsi__lane4 *at = &run->zv[i];
    const fsi__f8 vx = fsi__f8_set(at->x), vy = fsi__f8_set(at->y), vz = fsi__f8_set(at->z), rho = fsi__f8_set(at->w),
                  p = fsi__f8_set(run->zr[i].w), zero = fsi__f8_set(0);
    const fsi__f8 nu = fsi__f8_set((fsi__lane)(2 * (double)d->alpha * hs * run->c / unit));
    const fsi__f8 soft = fsi__f8_set((fsi__lane)((double)d->eta / (4 * FSI__COORD_UNIT * FSI__COORD_UNIT)));
    fsi__d8 x = fsi__d8_zero(), y = x, z = x;
    fsi__d3 a;
    int k, padded = fsi__wc_padded(size);

    /* Over the neighbours: (p_i/rho_i^2 + p_j/rho_j^2 + Pi_ij) grad W_ij, equation (4). */
    for (k = 0; k < padded; k += FSI_LANES) {
        fsi__f8 ux, uy, uz, other, meet, push;
        fsi__wc_lanes q;
        fsi__wc_kernel8(run->zr, list + k, &run->zr[i], &q);
        fsi__f8_gather_four(run->zv, list + k, &ux, &uy, &uz, &other);
        ux = fsi__f8_mul(fsi__f8_sub(vx, ux), q.dx);
        uy = fsi__f8_mul(fsi__f8_sub(vy, uy), q.dy);
        uz = fsi__f8_mul(fsi__f8_sub(vz, uz), q.dz);
        meet = fsi__f8_add(fsi__f8_add(ux, uy), uz); /* -v_ij.x_ij */
        if (d->visc_bulk_only) meet = fsi__f8_max(meet, zero);
        push = fsi__f8_div(fsi__f8_mul(nu, meet), fsi__f8_mul(fsi__f8_add(rho, other), fsi__f8_add(q.r2, soft)));
        push = fsi__f8_mul(fsi__f8_add(fsi__f8_add(p, q.w), push), q.g);
        x = fsi__d8_add(x, fsi__f8_mul(push, q.dx));
        y = fsi__d8_add(y, fsi__f8_mul(push, q.dy));
        z = fsi__d8_add(z, fsi__f8_mul(push, q.dz));
    }

    /* Times the mass, with gravity and outer forces; greatest values for the length of the substep. */
    a = fsi__d3_make(scale * fsi__d8_sum(x), scale * fsi__d8_sum(y), scale * fsi__d8_sum(z));
    a = fsi__d3_add(a, fsi__d3_add(fsi__d3_of(d->gravity), fsi__d3_scale(fsi__wc_outside(run, i), 1 / m)));
    run->a[i] = fsi__d3_real(a);
    part[0] = fmax(part[0], fsi__d3_dot(a, a));
    part[1] = fmax(part[1], (double)fsi_v3_norm2(run->v[i]));
    if (!fsi_is_finite(a.x + a.y + a.z)) part[2] = 1;
}

/* Pressures to the records that the force pass reads. */
static void fsi__wc_pressures(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    int r;
    (void)chunk;
    for (r = begin; r < end; r++) {
        const double rho = fsi__wc_felt(run->s, (double)run->rho[r], (double)run->ratio[r]);
        run->zr[r].w = (fsi__lane)(fsi__wc_pressure_of(run, rho) / (rho * rho));
        run->zv[r].w = (fsi__lane)rho;
    }
}

static void fsi__wc_take_density(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    int r;
    (void)chunk;
    for (r = begin; r < end; r++) run->rho[r] = run->a[r].x * (fsi_real)run->rho_mean;
}

/* ---- >>surfaces ----------------------------------------------------------------------------------------------- */

FSI_FN fsi__d3 fsi__wc_rotate(fsi_pose p, fsi__d3 a)
{
    return fsi__d3_of(fsi_quat_rotate(p.orientation, fsi__d3_real(a)));
}

/* The closest point of a mesh. Near the surface (or where the path crossed it) the normal is that of the face. */
static void fsi__wc_near_mesh(const fsi__wc_obstacle *o, fsi_vec3 x, const fsi_mesh_hit *hit, fsi__wc_touch *t)
{
    const fsi__d3 away = fsi__d3_of(fsi_v3_sub(x, hit->point));
    const double r = (double)hit->t;
    const int one_sided = o->base.mesh->kind != FSI_MESH_TWO_SIDED;
    t->d = one_sided && hit->side < 0 ? -r : r;
    if (r > 1e-6 * o->gap) t->n = fsi__d3_scale(away, 1 / (t->d < 0 ? -r : r));
    else t->n = fsi__d3_scale(fsi__d3_of(hit->normal), one_sided ? 1 : hit->side);
    t->push = o->gap - t->d;
}

/* The path to l crossed a face: the normal points back to the side it came from. */
static void fsi__wc_cross(const fsi__wc_obstacle *o, fsi_vec3 l, const fsi_mesh_hit *hit, fsi__wc_touch *t)
{
    const double side = o->base.mesh->kind == FSI_MESH_TWO_SIDED ? hit->side : 1;
    t->crossed = 1;
    t->n = fsi__d3_scale(fsi__d3_of(hit->normal), side);
    t->d = fmin(fsi__d3_dot(t->n, fsi__d3_of(fsi_v3_sub(l, hit->point))), 0);
    t->push = o->gap - t->d;
}

/* How near a surface is felt by particles [m]: contacts, and with CONTINUITY the share that the domain and meshes
   without a body have in the density. Bodies have none: it makes the force on what is held under water 1.05 to 1.11 of
   the displaced weight. NULL: the domain. */
static double fsi__wc_felt_reach(const fsi__wc_run *run, const fsi__wc_obstacle *o)
{
    const double gap = o ? o->gap : (double)run->s->radius;
    if (run->s->desc.density_mode != FSI_WCSPH_CONTINUITY) return gap;
    if (o && o->base.body >= 0) return gap;
    return FSI__WC_FELT * run->h;
}

/* The share of a surface at distance d in the density, over rho0: what a lattice behind it would add,
      phi(d) = lack (R - d)^2,   R = 0.625 H,   exact at d = dx/2;   and dphi/dd. */
FSI__HOST_FN double fsi__wc_share_at(const fsi__wc_run *run, double d)
{
    const double left = fmax(FSI__WC_FELT * run->h - d, 0);
    return run->lack * left * left;
}
FSI__HOST_FN double fsi__wc_share_slope(const fsi__wc_run *run, double d)
{
    return -2 * run->lack * fmax(FSI__WC_FELT * run->h - d, 0);
}

/* How near things must be to matter to particles of an obstacle: exact distances are needed below this [m]. */
static double fsi__wc_matters(const fsi__wc_run *run, const fsi__wc_obstacle *o)
{
    const double ball = o->desc.surface == FSI_WCSPH_SURFACE_SAMPLES ? 0.6 : 0; /* r_P and a bit [dx] */
    return fsi__wc_felt_reach(run, o) + ball * (double)run->s->desc.spacing;
}

/* The distance up to which obstacles are searched for [m]. */
static double fsi__wc_reach(const fsi__wc_run *run)
{
    return (double)run->s->radius + 2 * (double)run->s->desc.spacing;
}

static const fsi__wc_list *fsi__wc_find_list(const fsi__wc_run *run, int r, int obstacle)
{
    int k = run->head[r];
    while (k >= 0 && run->list[k].obstacle != obstacle) k = run->list[k].next;
    return k >= 0 ? &run->list[k] : NULL;
}

/* Adds an item at its place; 0: no room. */
static int fsi__wc_add_item(fsi__wc_item *item, int *count, int room, int index, double d)
{
    int k = *count;
    if (k == room) return 0;
    for (; k > 0 && (double)item[k - 1].d > d; k--) item[k] = item[k - 1];
    item[k].index = index;
    item[k].d = (float)(d * (1 - 1e-6));
    (*count)++;
    return 1;
}

/* Makes a particle's list of an obstacle seen from l, whose mesh is d away (or farther); NULL: no room. */
static const fsi__wc_list *fsi__wc_make_list(const fsi__wc_run *run, int r, int obstacle, fsi_vec3 l, double d)
{
    const fsi__wc_obstacle *o = &run->im->obstacle[obstacle];
    const double dx = (double)run->s->desc.spacing, reach = fsi__wc_matters(run, o) + FSI__WC_MARGIN * dx;
    const int c = r / FSI__WC_GRAIN, at = c * run->list_room + run->lists[c],
              first = c * run->item_room + run->items[c], room = run->item_room - run->items[c];
    int k, count = 0, fits = room > 0;

    /* Samples, or faces, within the distance that must be known and a margin. An obstacle farther away has an empty
       list with its distance. */
    if (run->lists[c] == run->list_room) return NULL;
    if (!(d < reach)) fits = 1;
    else if (o->desc.surface == FSI_WCSPH_SURFACE_SAMPLES) {
        fsi__wc_seek seek = fsi__wc_seek_cells(&o->samples, l, reach);
        while (fits && (k = fsi__wc_next_sample(&seek)) >= 0) {
            const double far_off = (double)fsi_v3_norm(fsi_v3_sub(l, o->samples.sample[k].x));
            if (far_off < reach) fits = fsi__wc_add_item(run->item + first, &count, room, k, far_off);
        }
    } else {
        fsi__walk w;
        w.point = l;
        k = fsi__walk_begin(&w, FSI__WALK_POINT, fsi__nodes(o->base.mesh), reach * reach);
        for (; fits && k >= 0; k = fsi__walk_next(&w, reach * reach)) {
            const double far_off = sqrt((double)fsi__closest_foot(o->base.mesh, k, l).d2);
            if (far_off < reach) fits = fsi__wc_add_item(run->item + first, &count, room, k, far_off);
        }
    }

    /* No room: the chunk makes no more lists. */
    if (!fits) {
        run->items[c] = run->item_room;
        return NULL;
    }

    /* Enter the list. */
    run->list[at].obstacle = obstacle;
    run->list[at].next = run->head[r];
    run->list[at].first = first;
    run->list[at].count = count;
    run->list[at].at = l;
    run->list[at].d = d;
    run->head[r] = at;
    run->lists[c]++;
    run->items[c] += count;
    return &run->list[at];
}

/* The closest point among the faces of a list that is `off` old; face -1: none is within `reach`. */
static fsi_mesh_hit fsi__wc_closest_listed(const fsi__wc_run *run, const fsi__wc_obstacle *o, const fsi__wc_list *list,
                                           fsi_vec3 l, double off, double reach)
{
    fsi__foot best;
    double least = reach;
    int k, face = -1;
    memset(&best, 0, sizeof best);
    for (k = list->first; k < list->first + list->count && (double)run->item[k].d - off <= least; k++) {
        const fsi__foot f = fsi__closest_foot(o->base.mesh, run->item[k].index, l);
        if (!(face < 0 ? (double)f.d2 < least * least : f.d2 < best.d2)) continue;
        best = f;
        least = sqrt((double)f.d2);
        face = run->item[k].index;
    }
    return face < 0 ? fsi__no_hit() : fsi__foot_hit(o->base.mesh, face, l, &best);
}

/* Distance of SAMPLES, where the mesh is t->d away or more: balls reach at most r_P beyond it. */
static void fsi__wc_look_at_samples(const fsi__wc_run *run, const fsi__wc_obstacle *o, fsi_vec3 l, double side,
                                    const fsi__wc_list *list, fsi__wc_touch *t)
{
    const double dx = (double)run->s->desc.spacing, reach = fsi__wc_matters(run, o), mesh = t->d - dx / 2,
                 far_off = reach - dx / 2;
    fsi__wc_seek seek;
    if (mesh > far_off) { t->d = mesh; return; }
    if (list) {
        seek.s = &o->samples;
        seek.item = run->item;
        seek.at = list->first;
        seek.end = list->first + list->count;
    } else seek = fsi__wc_seek_cells(&o->samples, l, reach);
    if (!fsi__wc_near_samples(&seek, o->base.mesh->kind == FSI_MESH_TWO_SIDED, side, l, o->gap,
                              fsi__wc_felt_reach(run, o), reach, t))
        t->d = far_off;
}

/* The face of a hit, and the weights of its corners. */
static void fsi__wc_take_face(fsi__wc_touch *t, const fsi_mesh_hit *hit)
{
    t->face = hit->face;
    t->bary[0] = (double)hit->bary[0];
    t->bary[1] = (double)hit->bary[1];
    t->bary[2] = (double)hit->bary[2];
}

/* Sweeps the path from l0 to l; returns the side from which it crossed the surface, 0: it did not. */
static double fsi__wc_sweep_path(const fsi__wc_obstacle *o, fsi_vec3 l0, fsi_vec3 l, fsi__wc_touch *t)
{
    const fsi_mesh_hit cut = fsi_mesh_sweep(o->base.mesh, l0, l, o->base.mesh->kind == FSI_MESH_TWO_SIDED ? 0 : 1);
    if (cut.face < 0) return 0;
    fsi__wc_cross(o, l, &cut, t);
    fsi__wc_take_face(t, &cut);
    return cut.side;
}

/* Looks at an obstacle from x, where the particle got to from x0 while the obstacle went from `from` to `to`. known: it
   was at least so far away at x0. r: the particle, whose distance must be exact only where it matters; else it is a
   lower bound; -1: exact within `reach`. */
static fsi__wc_touch fsi__wc_probe(const fsi__wc_run *run, int obstacle, int r, fsi_vec3 x0, fsi_vec3 x, double known,
                                   double reach)
{
    const fsi__wc_obstacle *o = &run->im->obstacle[obstacle];
    const fsi_vec3 l0 = fsi__flatten(o->base.mesh->corners, o->base.body >= 0 ? fsi_pose_local(o->from, x0) : x0);
    const fsi_vec3 l = fsi__flatten(o->base.mesh->corners, o->base.body >= 0 ? fsi_pose_local(o->to, x) : x);
    const double way = (double)fsi_v3_norm(fsi_v3_sub(l, l0)) + (o->base.body < 0 ? o->motion : 0);
    const double dx = (double)run->s->desc.spacing;
    const int layer = o->desc.surface == FSI_WCSPH_SURFACE_SAMPLES;
    /* It may be in a solid, deeper than lists and searches reach: not to be taken for a distant one. */
    const int lost = r >= 0 && !(known > 0);
    const int listed = r >= 0 && !lost && !run->starting && !o->base.moves;
    const fsi__wc_list *list = listed ? fsi__wc_find_list(run, r, obstacle) : NULL;
    const double off = list ? (double)fsi_v3_norm(fsi_v3_sub(l, list->at)) : 0;
    const double farthest = fmax(reach, listed ? fsi__wc_reach(run) : 0) + (layer ? o->gap : 0);
    fsi_mesh_hit hit;
    fsi__wc_touch t;
    double side = 0;

    /* Nothing can be near: the last distance less the displacements. */
    memset(&t, 0, sizeof t);
    t.face = -1;
    t.d = reach;
    if (r >= 0 && !run->starting && known - way > fsi__wc_felt_reach(run, o)) {
        t.d = fmin(known - way, reach);
        return t;
    }

    /* A list that is too old; one that shows the mesh, or all samples, to be too far away to matter. */
    if (list && !(list->d - off > fsi__wc_matters(run, o)) && off > 0.9 * FSI__WC_MARGIN * dx) list = NULL;
    if (list && (layer ? list->d - off > -o->gap : list->d - off > fsi__wc_matters(run, o))) {
        t.face = layer ? 0 : -1;
        t.d = layer ? list->d - off : fmin(list->d - off, reach);
    } else {
        /* Closest point of the mesh, from the list or by a search, after which a list is made for the next substeps. */
        if (layer) list = NULL;
        if (list) {
            const double sure = fmin(reach, fsi__wc_matters(run, o) + FSI__WC_MARGIN * dx - off);
            hit = fsi__wc_closest_listed(run, o, list, l, off, sure);
            t.d = sure;
        } else hit = fsi_mesh_closest(o->base.mesh, l, run->starting || lost ? FSI_REAL_MAX : (fsi_real)farthest, -1);
        if (hit.face >= 0) {
            fsi__wc_near_mesh(o, l, &hit, &t);
            fsi__wc_take_face(&t, &hit);
        } else if (!list) t.d = farthest;
        if (!list && listed && way < 0.2 * dx) list = fsi__wc_make_list(run, r, obstacle, l, t.d);
        t.d = fmin(t.d, layer ? farthest : reach);
    }

    /* The path may have crossed the surface: sweep it. */
    if (way > 0 && way >= known * 0.999999 && !run->starting) side = fsi__wc_sweep_path(o, l0, l, &t);

    /* The offset surface of samples; then back from the axes of the obstacle to the world. */
    if (layer && t.face >= 0 && !t.crossed && t.d > -o->gap) fsi__wc_look_at_samples(run, o, l, side, list, &t);
    t.point = fsi__d3_madd(fsi__d3_of(l), -t.d, t.n);
    if (o->base.body >= 0) {
        t.n = fsi__wc_rotate(o->to, t.n);
        t.point = fsi__d3_madd(fsi__d3_of(x), -t.d, t.n);
    }
    return t;
}

/* The obstacles that particles of a chunk may meet: those whose boxes come near theirs. */
typedef struct fsi__wc_around { int count, index[FSI__WC_NEAR]; } fsi__wc_around;

static void fsi__wc_look_around(const fsi__wc_run *run, int begin, int end, double reach, fsi__wc_around *near_by)
{
    fsi_box3 box = fsi_box3_empty();
    int r, k;
    for (r = begin; r < end; r++) box = fsi_box3_grow(fsi_box3_grow(box, run->x[r]), run->x1[r]);
    box = fsi_box3_inflate(box, (fsi_real)reach);
    near_by->count = 0;
    for (k = 0; k < run->im->obstacles.count; k++) {
        if (!fsi_box3_overlap(box, run->im->obstacle[k].box)) continue;
        if (near_by->count == FSI__WC_NEAR) { near_by->count = -1; return; }
        near_by->index[near_by->count++] = k;
    }
}
static int fsi__wc_around_count(const fsi__wc_run *run, const fsi__wc_around *a)
{
    return a->count < 0 ? run->im->obstacles.count : a->count;
}
static int fsi__wc_around_at(const fsi__wc_around *a, int k) { return a->count < 0 ? k : a->index[k]; }

/* Does this obstacle act on the particle, and is it near? */
static int fsi__wc_meets(const fsi__wc_run *run, const fsi__wc_obstacle *o, int r, fsi_vec3 x, double reach)
{
    fsi_box3 at;
    at.lo = at.hi = x;
    return (o->base.mask & run->s->filter[run->src[r]])
        && fsi_box3_overlap(fsi_box3_inflate(at, (fsi_real)reach), o->box);
}

static int fsi__wc_has_domain(const fsi_wcsph *s) { return s->desc.domain.lo.x <= s->desc.domain.hi.x; }

/* Where centres of particles are clear of the domain's walls. */
static fsi_box3 fsi__wc_free_box(const fsi_wcsph *s)
{
    const fsi_real end = FSI_REAL_MAX;
    fsi_box3 box = fsi_box3_inflate(s->desc.domain, -s->radius);
    if (!fsi__wc_has_domain(s) || s->desc.dim == 2) { box.lo.z = -end; box.hi.z = end; }
    if (fsi__wc_has_domain(s)) return box;
    box.lo = fsi_v3(-end, -end, -end);
    box.hi = fsi_v3(end, end, end);
    return box;
}
FSI_FN int fsi__wc_holds(const fsi_box3 *b, fsi_vec3 x)
{
    return x.x >= b->lo.x && x.x <= b->hi.x && x.y >= b->lo.y && x.y <= b->hi.y && x.z >= b->lo.z && x.z <= b->hi.z;
}

/* What layers of samples at depths r_P, r_P + dx ... behind a plane add to the density (SUMMATION_WALL), over rho0,
   each layer dx thick:
      sum dx P(d + depth),   P(z) = int W over a plane at distance z;   with q = z/hs, a = max(2-q, 0), b = max(1-q, 0)
      3D   P = 2/hs (a^4/8 - a^5/20 - (b^4/4 - b^5/5));      2D   a line, by Simpson's rule.
   A particle at r_F then has rho0 (the spec's one layer of volumes 1/sum_l W_kl adds 0.352 there; 0.208 is missing). */
static double fsi__wc_spline(double q)
{
    const double a = q < 2 ? 2 - q : 0, b = q < 1 ? 1 - q : 0;
    return 0.25 * a * a * a - b * b * b;
}
static double fsi__wc_plane(int dim, double q)
{
    const double a = q < 2 ? 2 - q : 0, b = q < 1 ? 1 - q : 0, end = sqrt(fmax(4 - q * q, 0)), step = end / 32;
    double sum = 0;
    int k;
    if (dim == 3) return 2 * (a * a * a * a * (1.0 / 8 - a / 20) - b * b * b * b * (1.0 / 4 - b / 5));
    for (k = 0; k <= 32; k++)
        sum += (k == 0 || k == 32 ? 1 : k & 1 ? 4 : 2) * fsi__wc_spline(sqrt(q * q + step * step * k * k));
    return sum * step / 3 * 20 / (7 * FSI_PI); /* both halves of the line */
}

static double fsi__wc_layers(int dim, double z, double dx, double hs) /* z: of the first layer */
{
    double sum = 0;
    for (; z < 2 * hs; z += dx) sum += fsi__wc_plane(dim, z / hs);
    return sum * dx / hs;
}

static double fsi__wc_wall_share(const fsi__wc_run *run, int r)
{
    const fsi_wcsph_desc *d = &run->s->desc;
    const double hs = run->h / 2, rp = (double)run->s->radius;
    double sum = 0;
    int k;
    for (k = 0; k < 2 * d->dim && fsi__wc_has_domain(run->s); k++) {
        const double at = fsi__wc_axis(run->x[r], k / 2),
                     wall = fsi__wc_axis(k & 1 ? d->domain.hi : d->domain.lo, k / 2);
        sum += fsi__wc_layers(d->dim, fabs(at - wall) + rp, 2 * rp, hs);
    }
    for (k = 0; k < run->im->obstacles.count && (double)run->room[r] < run->h; k++) {
        const fsi__wc_obstacle *o = &run->im->obstacle[k];
        fsi__wc_touch t;
        if (!fsi__wc_meets(run, o, r, run->x[r], run->h)) continue;
        t = fsi__wc_probe(run, k, -1, run->x[r], run->x[r], FSI__HUGE, run->h);
        sum += fsi__wc_layers(d->dim, fmax(t.d, 0) + rp, 2 * rp, hs);
    }
    return sum;
}

/* ---- >>contacts ----------------------------------------------------------------------------------------------- */

static void fsi__wc_enter(fsi__wc_run *run, int chunk, const fsi__wc_contact *c)
{
    const int at = run->base[chunk] + run->used[chunk]++;
    if (at < run->base[chunk + 1]) run->contact[at] = *c;
}

/* Velocity of a surface at a point: predicted, and at the start of the substep. */
static fsi__d3 fsi__wc_surface_velocity(const fsi__wc_run *run, const fsi__wc_obstacle *o, const fsi__wc_touch *t,
                                        fsi__d3 arm, int start)
{
    const fsi__wc_body *b = o->base.body >= 0 ? &run->body[o->base.body] : NULL;
    if (!b) return fsi__obstacle_velocity(&o->base, t->face, t->bary, run->dt);
    return start ? fsi__d3_add(b->v0, fsi__d3_cross(b->w0, arm)) : fsi__d3_add(b->v, fsi__d3_cross(b->w, arm));
}

/* A surface's share in the density, its slope, and the impulse that pressure gives by it,
      dt m rho0 |dphi/dd| p/rho^2:
   the gradient of the particle's energy, so that the work of this force is what the share takes from it, or gives. */
static void fsi__wc_press(const fsi__wc_run *run, fsi__wc_contact *c, double d)
{
    const double felt = fmax((double)run->zr[c->rank].w, 0);
    const int softer = run->c < (double)run->s->sound_speed; /* degraded: such a pool would not come to rest */
    const int carried = c->obstacle >= 0 && run->im->obstacle[c->obstacle].base.body >= 0;
    if (carried || run->s->desc.density_mode != FSI_WCSPH_CONTINUITY) return;
    c->share = fsi__wc_share_at(run, fmax(d, (double)run->s->radius));
    if (softer) return;
    c->slope = fsi__wc_share_slope(run, d);
    c->press = -run->dt * c->m * (double)run->s->desc.density * c->slope * felt;
}

/* u* of direct_forcing.md 4 from the present velocities: does the contact approach, and e_n'. */
static void fsi__wc_judge_contact(fsi__wc_run *run, fsi__wc_contact *c)
{
    const double e_n = (double)(c->obstacle >= 0 ? run->im->obstacle[c->obstacle].desc.restitution
                                                 : run->s->desc.domain_restitution);
    c->u = fsi__d3_sub(fsi__d3_of(run->v[c->rank]), c->wall);
    c->active = c->apart ? 0 : fsi__d3_dot(c->u, c->n) <= 0 ? 1 : run->s->desc.paper_separation ? 2 : 0;
    c->rebound = c->active == 1 ? fmax(0, -e_n * c->before) : 0;
}

/* A touch becomes a contact, or what feels the surface without touching it. */
static void fsi__wc_make_contact(fsi__wc_run *run, int chunk, int r, int obstacle, const fsi__wc_touch *t)
{
    const fsi__wc_obstacle *o = obstacle >= 0 ? &run->im->obstacle[obstacle] : NULL;
    const double rf = (double)run->s->radius, gap = o ? o->gap : rf;
    fsi__d3 before = fsi__d3_madd(fsi__d3_of(run->v[r]), -run->dt, fsi__d3_of(run->a[r]));
    fsi__wc_contact c;
    memset(&c, 0, sizeof c);
    c.rank = r;
    c.m = (double)run->s->particle_mass;
    c.obstacle = obstacle;
    c.body = o && o->base.body >= 0 && run->body[o->base.body].coupled ? o->base.body : -1;
    c.n = t->n;
    c.point = t->point;
    c.apart = !(t->d < gap);
    c.slip = (double)(o ? o->desc.slip : run->s->desc.domain_slip);
    if (o) {
        if (o->base.body >= 0) c.arm = fsi__d3_sub(c.point, run->body[o->base.body].center);
        c.wall = fsi__wc_surface_velocity(run, o, t, c.arm, 0);
        before = fsi__d3_sub(before, fsi__wc_surface_velocity(run, o, t, c.arm, 1));
    }
    c.before = fsi__d3_dot(before, c.n);
    fsi__wc_press(run, &c, t->d + rf - gap);
    fsi__wc_enter(run, chunk, &c);
}

/* Walls of the domain that x is near. */
static void fsi__wc_touch_domain(fsi__wc_run *run, int chunk, int r)
{
    const fsi_wcsph_desc *d = &run->s->desc;
    const double reach = fsi__wc_felt_reach(run, NULL);
    int k;
    for (k = 0; k < 2 * d->dim; k++) {
        const double at = fsi__wc_axis(run->x1[r], k / 2),
                     wall = fsi__wc_axis(k & 1 ? d->domain.hi : d->domain.lo, k / 2), sign = k & 1 ? -1 : 1;
        fsi__wc_touch t;
        memset(&t, 0, sizeof t);
        t.face = -1;
        t.d = sign * (at - wall);
        if (!(t.d < reach)) continue;
        t.n = fsi__d3_make(k / 2 == 0 ? sign : 0, k / 2 == 1 ? sign : 0, k / 2 == 2 ? sign : 0);
        t.point = fsi__d3_madd(fsi__d3_of(run->x1[r]), -t.d, t.n);
        fsi__wc_make_contact(run, chunk, r, -1, &t);
    }
}

/* Kick and predict, then look for contacts at x* (steps 3 and 4 of direct_forcing.md 8). */
static void fsi__wc_predict(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    const fsi_real dt = (fsi_real)run->dt;
    int r;
    (void)chunk;
    for (r = begin; r < end; r++) {
        run->v[r] = fsi_v3_madd(run->v[r], dt, run->a[r]);
        run->x1[r] = fsi_v3_madd(run->x[r], dt, run->v[r]);
    }
}

/* For the stats: contacts from `had` on, of one particle; part[1] counts those that have several, part[2] all. */
static void fsi__wc_count_contacts(const fsi__wc_run *run, int chunk, int had, double *part)
{
    int k, count = 0;
    for (k = run->base[chunk] + had; k < run->base[chunk] + run->used[chunk] && k < run->base[chunk + 1]; k++)
        count += !run->contact[k].apart;
    part[1] += count > 1;
    part[2] += count;
}

static void fsi__wc_detect(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    const double reach = fsi__wc_felt_reach(run, NULL);
    const fsi_box3 free_box = fsi_box3_inflate(fsi__wc_free_box(run->s), (fsi_real)((double)run->s->radius - reach));
    fsi__wc_around a;
    double *part = fsi__wc_parts(run, chunk);
    int r, k;
    run->used[chunk] = 0;
    fsi__wc_look_around(run, begin, end, reach, &a);
    for (r = begin; r < end; r++) {
        /* Least possible distance now. Particles still moved by their emitter have no contacts. */
        const double left = (double)run->room[r] - (double)fsi_v3_norm(fsi_v3_sub(run->x1[r], run->x[r])) - run->motion;
        const int had = run->used[chunk];
        memset(&run->beside[r], 0, sizeof *run->beside);
        if (fsi__wc_is_held(run, r)) continue;

        /* Walls of the domain; a particle far from all surfaces is done. */
        if (!fsi__wc_holds(&free_box, run->x1[r])) fsi__wc_touch_domain(run, chunk, r);
        else if (left >= reach) continue;

        /* Obstacles, by their boxes, then by distance. */
        for (k = 0; k < fsi__wc_around_count(run, &a) && left < reach; k++) {
            const int index = fsi__wc_around_at(&a, k);
            const fsi__wc_obstacle *o = &run->im->obstacle[index];
            const double felt = fsi__wc_felt_reach(run, o);
            fsi__wc_touch t;
            if (!(left < felt) || !fsi__wc_meets(run, o, r, run->x1[r], felt + (double)run->room[r] - left)) continue;
            t = fsi__wc_probe(run, index, r, run->x[r], run->x1[r], (double)run->room[r], felt);
            if (!(t.d < felt)) continue;
            part[0] += t.crossed;
            fsi__wc_make_contact(run, chunk, r, index, &t);
        }
        fsi__wc_count_contacts(run, chunk, had, part);
    }
}

/* Where chunks' contacts go: as many as they needed last time and a quarter more. */
static fsi_status fsi__wc_reserve_contacts(fsi__wc_run *run)
{
    fsi__arena *a = &run->im->touch;
    fsi__arena measure = { NULL, 0, 0 };
    int c, total, pass;
    for (c = total = 0; c < run->chunks; c++) {
        const int need = run->im->need[c];
        run->base[c] = total;
        if (total > 0x3fffffff - need)
            return fsi__fail(run->s->context, FSI_ERROR_LIMIT, run->fn, c, total, "more than 2^30 contacts");
        total += need + need / 4 + 64;
    }
    run->base[run->chunks] = total;
    for (pass = 0; pass < 2; pass++) {
        fsi__arena *to = pass ? a : &measure;
        if (pass && !fsi__arena_room(run->s->context, a, measure.used))
            return fsi__fail(run->s->context, FSI_ERROR_MEMORY, run->fn, -1, total, "no memory for %d contacts", total);
        run->contact = (fsi__wc_contact *)fsi__take(to, (size_t)total, sizeof(fsi__wc_contact));
        run->by_body = (int *)fsi__take(to, (size_t)total, sizeof(int));
        run->row = (int *)fsi__take(to, run->im->world ? (size_t)total : 0, sizeof(int));
        run->guest = (fsi__ct_particle *)fsi__take(to, run->im->world ? (size_t)total : 0, sizeof(fsi__ct_particle));
    }
    return FSI_OK;
}

static fsi_status fsi__wc_find_contacts(fsi__wc_run *run)
{
    int c, again = 1;
    while (again) {
        FSI__TRY(fsi__wc_reserve_contacts(run));
        fsi__wc_parallel(run, fsi__wc_detect, FSI__WC_NS_DETECT);
        for (c = again = 0; c < run->chunks; c++) {
            again |= run->used[c] > run->base[c + 1] - run->base[c];
            if (again || run->used[c] > run->im->need[c])
                run->im->need[c] = run->used[c] > run->im->need[c] ? run->used[c] : run->im->need[c];
        }
    }
    for (c = run->contact_count = 0; c < run->chunks; c++) run->contact_count += run->used[c];
    run->stats.swept += (int)fsi__wc_sum(run, 0);
    run->stats.shared = (int)fsi__wc_sum(run, 1);
    run->stats.contacts = (int)fsi__wc_sum(run, 2);
    return FSI_OK;
}

/* ---- >>response ----------------------------------------------------------------------------------------------- */

/* Books an impulse that a particle got. */
static void fsi__wc_book(fsi__wc_contact *c, fsi__d3 j) { c->j = fsi__d3_add(c->j, j); }

/* Contacts of one particle with what the liquid cannot move: first v += b each, then normal parts until all hold (walls
   at right angles need one sweep more, acute corners a few). `again`: after bodies; only what they spoilt is mended. */
static void fsi__wc_settle(fsi__wc_run *run, fsi__wc_contact *c, int count, int again)
{
    const double m = (double)run->s->particle_mass;
    fsi__d3 v = fsi__d3_of(run->v[c->rank]);
    int k, sweep, moved = 1;

    /* Each contact with what the liquid cannot move, one after the other: v += j/m. */
    for (k = 0; k < count && !again; k++) {
        fsi__d3 j;
        double along;
        if (c[k].body >= 0 || !c[k].active) continue;
        c[k].u = fsi__d3_sub(v, c[k].wall);
        if (fsi__d3_dot(c[k].u, c[k].n) > 0 && c[k].active == 1) continue;
        j = fsi__wc_impulse(&c[k], fsi__d3_make(0, 0, 0), 0, &along);
        fsi__wc_book(&c[k], j);
        v = fsi__d3_madd(v, 1 / m, j);
    }

    /* Normal parts until all contacts hold. */
    for (sweep = 0; sweep < 8 && moved && (again || count > 1); sweep++) {
        for (k = moved = 0; k < count; k++) {
            const double short_of = c[k].rebound - fsi__d3_dot(fsi__d3_sub(v, c[k].wall), c[k].n);
            if (c[k].body >= 0 || c[k].apart || !(short_of > 0)) continue;
            fsi__wc_book(&c[k], fsi__d3_scale(c[k].n, m * short_of));
            v = fsi__d3_madd(v, short_of, c[k].n);
            moved = 1;
        }
    }

    /* The contacts with bodies start from this velocity. */
    run->v[c->rank] = fsi__d3_real(v);
    for (k = 0; k < count && !again; k++) {
        if (c[k].body < 0) continue;
        c[k].u = fsi__d3_sub(v, c[k].wall);
        if (c[k].active != 2 && !(fsi__d3_dot(c[k].u, c[k].n) <= 0))
            c[k].active = run->s->desc.paper_separation ? 2 : 0;
    }
}

static int fsi__wc_same_rank(const fsi__wc_contact *c, int left)
{
    int k = 1;
    while (k < left && c[k].rank == c->rank) k++;
    return k;
}

/* Static and PRESCRIBED obstacles. */
static void fsi__wc_static_chunk(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    fsi__wc_contact *c = run->contact + run->base[chunk];
    double *part = fsi__wc_parts(run, chunk);
    int k, n;
    (void)begin;
    (void)end;
    for (k = 0; k < run->used[chunk]; k += n) {
        int l, bodies = 0;
        n = fsi__wc_same_rank(c + k, run->used[chunk] - k);
        for (l = k; l < k + n; l++) if (c[l].body < 0)
            run->v[c[l].rank] =
                fsi_v3_madd(run->v[c[l].rank], (fsi_real)(c[l].press / c[l].m), fsi__d3_real(c[l].n));
        for (l = k; l < k + n; l++) fsi__wc_judge_contact(run, &c[l]);
        fsi__wc_settle(run, c + k, n, 0);
        for (l = 0; l < n; l++) bodies += c[k + l].body >= 0 && c[k + l].active;
        part[0] += bodies > 1;
    }
}

/* Of several bodies that one particle touches, GLOBAL takes the one that it would go into fastest. */
static void fsi__wc_single_chunk(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    fsi__wc_contact *c = run->contact + run->base[chunk];
    int k, l, n;
    (void)begin;
    (void)end;
    for (k = 0; k < run->used[chunk]; k += n) {
        int best = -1;
        n = fsi__wc_same_rank(c + k, run->used[chunk] - k);
        for (l = k; l < k + n; l++) {
            if (c[l].body < 0 || !c[l].active) continue;
            if (best < 0 || fsi__d3_dot(c[l].u, c[l].n) < fsi__d3_dot(c[best].u, c[best].n)) best = l;
        }
        for (l = k; l < k + n; l++) if (c[l].body >= 0 && l != best) c[l].active = 0;
    }
}

/* Contacts by body, each body's in the order of ranks. */
static void fsi__wc_sort_contacts(fsi__wc_run *run)
{
    int pass, c, k, b, sum = 0;
    for (b = 0; b < run->body_count; b++) run->body[b].count = 0;
    for (pass = 0; pass < 2; pass++) {
        for (c = 0; c < run->chunks; c++) for (k = run->base[c]; k < run->base[c] + run->used[c]; k++) {
                fsi__wc_body *to =
                    run->contact[k].body >= 0 && run->contact[k].active ? &run->body[run->contact[k].body] : NULL;
                if (!to) continue;
                if (pass == 0) to->count++;
                else run->by_body[to->first + to->count++] = k;
        }
        for (b = 0; b < run->body_count && pass == 0; b++) {
            run->body[b].first = sum;
            sum += run->body[b].count;
            run->body[b].count = 0;
        }
    }
}

/* A body's velocities take what its contacts gave: M dv = -sum j, I dw = -sum r x j, the sums that particles got. */
static void fsi__wc_push_body(fsi__wc_body *b, const fsi__wc_contact *contact, const int *index)
{
    fsi__d3 j = fsi__d3_make(0, 0, 0), h = j;
    int k;
    for (k = 0; k < b->count; k++) {
        const fsi__wc_contact *c = &contact[index[k]];
        j = fsi__d3_sub(j, c->j);
        h = fsi__d3_sub(h, fsi__d3_cross(c->arm, c->j));
    }
    b->impulse = j;
    b->moment = h;
}

/* v = v* + J/M, w = w* + I^-1 H. */
static void fsi__wc_take_impulse(fsi__wc_body *b, fsi__d3 j, fsi__d3 h)
{
    b->v = fsi__d3_madd(b->v, 1 / (double)b->work.mass, j);
    b->w = fsi__d3_add(b->w, fsi__wc_mul_inverse(&b->inverse, h));
}

/* PGS starts from the impulses that GLOBAL found for an entangled body. It releases contacts itself; rows of the world
   have no separating contacts. */
static void fsi__wc_hand_over(fsi__wc_run *run, const fsi__wc_body *body, const int *index)
{
    int k;
    for (k = 0; k < body->count; k++) {
        fsi__wc_contact *c = &run->contact[index[k]];
        if (c->active == 0) c->active = 1;
        if (c->active == 1 || body->rg < 0) continue;
        c->active = 0;
        c->j = fsi__d3_make(0, 0, 0);
    }
}

/* One body's contacts by the solver that it has been given. */
static void fsi__wc_respond_body(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    const fsi_wcsph_desc *d = &run->s->desc;
    const int paper = d->slip_mode == FSI_WCSPH_SLIP_PAPER;
    int b, k;
    (void)chunk;
    for (b = begin; b < end; b++) {
        /* Links of a tree are left to the world. */
        fsi__wc_body *body = &run->body[b];
        const int *index = run->by_body + body->first;
        const double share = d->solver == FSI_WCSPH_LOCAL ? 1 : body->count;
        double along;
        if (!body->coupled || body->count == 0 ||
            (body->rg >= 0 && run->im->world && fsi__rg_bodies(run->im->world)[body->rg].tree >= 0))
            continue;

        /* GLOBAL; a singular system falls back on LOCAL_SPLIT, which needs none. */
        body->local = d->solver == FSI_WCSPH_LOCAL || d->solver == FSI_WCSPH_LOCAL_SPLIT;
        if (!body->local) {
            int released = 0;
            int passes = fsi__wc_global(run->contact, index, body->count, (double)body->work.mass, &body->inertia,
                                        paper, d->active_passes, &released);
            body->local = passes == 0;
            body->passes = passes;
            body->released = released;
        }

        /* LOCAL, LOCAL_SPLIT. */
        for (k = 0; k < body->count && body->local; k++) {
            fsi__wc_contact *c = &run->contact[index[k]];
            c->j = fsi__wc_local(c, 1 / (double)body->work.mass, &body->inverse, share, paper, &along);
        }

        /* To PGS as its first guess, or to the body. */
        if (body->entangled) {
            fsi__wc_hand_over(run, body, index);
            continue;
        }
        fsi__wc_push_body(body, run->contact, index);
        fsi__wc_take_impulse(body, body->impulse, body->moment);
    }
}

/* Particles take what bodies gave them; walls mend what that spoilt. */
static void fsi__wc_apply_chunk(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    fsi__wc_contact *c = run->contact + run->base[chunk];
    const double inverse = 1 / (double)run->s->particle_mass;
    int k, l, n;
    (void)begin;
    (void)end;
    for (k = 0; k < run->used[chunk]; k += n) {
        int fixed = 0, bodies = 0;
        fsi__d3 v = fsi__d3_of(run->v[c[k].rank]);
        n = fsi__wc_same_rank(c + k, run->used[chunk] - k);
        for (l = k; l < k + n; l++) {
            if (c[l].body < 0) { fixed++; continue; }
            if (!c[l].active) continue;
            if (!run->body[c[l].body].entangled) v = fsi__d3_madd(v, inverse, c[l].j); /* else PGS has done so */
            bodies++;
        }
        if (!bodies) continue;
        run->v[c[k].rank] = fsi__d3_real(v);
        if (fixed) fsi__wc_settle(run, c + k, n, 1);
    }
}

/* Relaxes one contact of the step; returns the change over m. */
static double fsi__wc_relax_contact(fsi__wc_run *run, fsi__wc_contact *c)
{
    fsi__wc_body *b = &run->body[c->body];
    const fsi__d3 v = fsi__d3_of(run->v[c->rank]), u = fsi__d3_sub(v, fsi__d3_add(b->v, fsi__d3_cross(b->w, c->arm)));
    const fsi__d3 step = fsi__wc_relax(c, 1 / (double)b->work.mass, &b->inverse, u),
                  moment = fsi__d3_cross(c->arm, step);
    c->j = fsi__d3_add(c->j, step);
    run->v[c->rank] = fsi__d3_real(fsi__d3_madd(v, 1 / c->m, step));
    b->impulse = fsi__d3_sub(b->impulse, step);
    b->moment = fsi__d3_sub(b->moment, moment);
    fsi__wc_take_impulse(b, fsi__d3_scale(step, -1), fsi__d3_scale(moment, -1));
    return fsi__d3_norm(step) / c->m;
}

/* PGS over entangled bodies outside the world, from the impulses of GLOBAL: j.n >= 0, |j_t| <= j.n. */
static void fsi__wc_pgs(fsi__wc_run *run)
{
    const fsi_wcsph_desc *d = &run->s->desc;
    const double m = (double)run->s->particle_mass;
    double speed = 0, change = 0;
    int b, k, sweep, any = 0;

    /* First guess: the impulses of GLOBAL, brought into the friction cone, are given to particles and bodies. */
    for (b = 0; b < run->body_count; b++) {
        fsi__wc_body *body = &run->body[b];
        if (!body->entangled || body->rg >= 0) continue;
        any = 1;
        for (k = 0; k < body->count; k++) {
            fsi__wc_contact *c = &run->contact[run->by_body[body->first + k]];
            const double jn = fmax(0, fsi__d3_dot(c->j, c->n));
            fsi__d3 jt = fsi__d3_madd(c->j, -fsi__d3_dot(c->j, c->n), c->n);
            const double size = fsi__d3_norm(jt);
            speed = fmax(speed, fsi__d3_norm(c->u));
            if (size > jn) jt = fsi__d3_scale(jt, size > 0 ? jn / size : 0);
            c->j = c->slip < 1 ? fsi__d3_madd(jt, jn, c->n) : fsi__d3_scale(c->n, jn);
            run->v[c->rank] = fsi__d3_real(fsi__d3_madd(fsi__d3_of(run->v[c->rank]), 1 / m, c->j));
        }
        fsi__wc_push_body(body, run->contact, run->by_body + body->first);
        fsi__wc_take_impulse(body, body->impulse, body->moment);
    }

    /* Sweeps over bodies and contacts, in alternate directions. */
    for (sweep = 0; sweep < d->sweeps && any; sweep++) {
        change = 0;
        for (b = 0; b < run->body_count; b++) {
            const fsi__wc_body *body = &run->body[sweep & 1 ? run->body_count - 1 - b : b];
            for (k = 0; k < body->count && body->entangled && body->rg < 0; k++)
                change = fmax(
                    change, fsi__wc_relax_contact(
                                run, &run->contact[run->by_body[body->first + (sweep & 1 ? body->count - 1 - k : k)]]));
        }
        if (!(change > (double)d->tolerance * speed)) { sweep++; break; }
    }

    /* For the stats. */
    run->stats.sweeps += sweep;
    if (any) run->stats.residual = fmax(run->stats.residual, speed > 0 ? change / speed : 0);
}

/* The shares of several surfaces, as if they stood at right angles. */
static void fsi__wc_stand_beside(fsi__wc_run *run, const fsi__wc_contact *c)
{
    fsi__lane4 *b = &run->beside[c->rank];
    const double slope = c->share > 0 ? -2 * sqrt(run->lack * c->share) : 0;
    b->x += (fsi__lane)(slope * c->n.x);
    b->y += (fsi__lane)(slope * c->n.y);
    b->z += (fsi__lane)(slope * c->n.z);
    b->w += (fsi__lane)c->share * (1 - b->w);
}

/* What a surface that comes nearer adds to the density, rho0 dphi/dd u.n, with the velocities that the contacts leave;
   and pressure joins the contact's impulse. A single particle (its own kernel makes its density) has no pressure. */
static void fsi__wc_share(fsi__wc_run *run, fsi__wc_contact *c)
{
    const fsi_wcsph *s = run->s;
    const double rho0 = (double)s->desc.density;
    const double self = (double)s->particle_mass * fsi__wc_alpha(s->desc.dim, run->h / 2);
    const double un = fsi__d3_dot(fsi__d3_sub(fsi__d3_of(run->v[c->rank]), c->wall), c->n);
    const fsi_real rho = run->rho[c->rank] + (fsi_real)(run->dt * rho0 * c->slope * un);
    fsi__wc_stand_beside(run, c);
    if (!(c->slope < 0)) return;
    run->rho[c->rank] = rho;
    if ((double)run->ratio[c->rank] * rho0 < 1.2 * self && (double)rho > rho0) run->rho[c->rank] = (fsi_real)rho0;
    c->j = fsi__d3_madd(c->j, c->press, c->n);
}

static void fsi__wc_share_chunk(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    int k;
    (void)begin;
    (void)end;
    for (k = run->base[chunk]; k < run->base[chunk] + run->used[chunk]; k++) fsi__wc_share(run, &run->contact[k]);
}

/* Sums of the contacts' impulses, for the stats and the obstacles. */
static void fsi__wc_account(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    const double dt = run->dt, rf = (double)run->s->radius;
    double *part = fsi__wc_parts(run, chunk);
    int k;
    (void)begin;
    (void)end;
    for (k = run->base[chunk]; k < run->base[chunk] + run->used[chunk]; k++) {
        /* Tangential part; free slip has none, to the last bit. */
        const fsi__wc_contact *c = &run->contact[k];
        const fsi__d3 x = fsi__d3_of(run->x[c->rank]);
        const double size = fsi__d3_norm(c->j), along = fsi__d3_dot(c->j, c->n);
        double across = fsi__d3_norm(fsi__d3_madd(c->j, -along, c->n));
        if (!(size > 0)) continue;
        if (!(c->slip < 1) && run->s->desc.slip_mode == FSI_WCSPH_SLIP_CONSISTENT) across = 0;

        /* Impulses from walls, or from bodies with their angular momentum about the origin. */
        part[6] += across;
        if (c->body < 0) { fsi__wc_put(part, c->j); continue; }
        fsi__wc_put(part + 3, c->j);
        fsi__wc_put(part + 7, fsi__d3_cross(c->point, c->j));
        part[10] += fsi__d3_norm(c->point) * size;

        /* The true lever arms, x_F at the start of the substep, differ from x_cp: the error, and its bound. */
        {
            const fsi__wc_body *b = &run->body[c->body];
            const fsi__d3 lever = fsi__d3_sub(fsi__d3_sub(x, fsi__d3_of(b->from.position)), c->arm);
            fsi__wc_put(part + 11, fsi__d3_cross(lever, c->j));
            part[14] += rf * across + dt * fsi__d3_norm(fsi__d3_add(c->u, fsi__d3_cross(b->w, c->arm))) * size;
        }
    }
}

/* Impulses to obstacles, in the order of contacts. */
static void fsi__wc_book_obstacles(fsi__wc_run *run)
{
    int c, k;
    for (c = 0; c < run->chunks; c++) for (k = run->base[c]; k < run->base[c] + run->used[c]; k++) {
        const fsi__wc_contact *t = &run->contact[k];
        double *impulse = t->obstacle >= 0 ? run->im->obstacle[t->obstacle].base.impulse : run->domain_impulse;
        double *moment = t->obstacle >= 0 ? run->im->obstacle[t->obstacle].base.moment : run->domain_moment;
        const fsi__d3 j = fsi__d3_scale(t->j, -1);
        fsi__wc_put(impulse, j);
        fsi__wc_put(moment, fsi__d3_cross(t->point, j));
        if (t->obstacle >= 0 && t->body < 0 && run->im->obstacle[t->obstacle].base.body >= 0) { /* PRESCRIBED */
            fsi__wc_body *b = &run->body[run->im->obstacle[t->obstacle].base.body];
            b->impulse = fsi__d3_add(b->impulse, j);
            b->moment = fsi__d3_add(b->moment, fsi__d3_cross(t->arm, j));
        }
    }
}

static void fsi__wc_measure_contacts(fsi__wc_run *run)
{
    fsi_wcsph_stats *st = &run->stats;
    fsi__d3 turn;
    double arms;
    int b;
    fsi__wc_parallel(run, fsi__wc_account, FSI__WC_NS_COPY);
    fsi__wc_put(st->wall_impulse, fsi__wc_sum3(run, 0));
    fsi__wc_put(st->body_impulse, fsi__wc_sum3(run, 3));
    st->tangential_impulse += fsi__wc_sum(run, 6);
    turn = fsi__wc_sum3(run, 7);
    arms = fsi__wc_sum(run, 10);
    for (b = 0; b < run->body_count; b++) if (run->body[b].coupled)
            turn = fsi__d3_add(
                turn, fsi__d3_add(fsi__d3_cross(run->body[b].center, run->body[b].impulse), run->body[b].moment));
    if (arms > 0) st->exchange_error = fmax(st->exchange_error, fsi__d3_norm(turn) / arms);
    st->angular_error += fsi__d3_norm(fsi__wc_sum3(run, 11));
    st->angular_bound += fsi__wc_sum(run, 14);
}

/* Bodies whose contacts cannot be solved alone: they touch the same particle, or something of the world. */
static void fsi__wc_entangle(fsi__wc_run *run, int several)
{
    const int all = run->s->desc.solver == FSI_WCSPH_PGS;
    const fsi_rigid *world = run->im->world;
    const fsi__rg_contacts touch = fsi__rg_contacts_of(world);
    int b, c, k, l, n;

    /* Bodies of the world: links, and those with contacts among themselves. */
    run->entangled = 0;
    for (b = 0; b < run->body_count; b++) {
        fsi__wc_body *body = &run->body[b];
        body->entangled = all;
        if (body->rg < 0 || !body->coupled) continue;
        body->entangled |= fsi__rg_bodies(world)[body->rg].tree >= 0;
        for (k = 0; k < touch.count; k++) body->entangled |= touch.row[k].a == body->rg || touch.row[k].b == body->rg;
    }

    /* Bodies that touch the same particle. */
    for (c = 0; c < run->chunks && several; c++) for (k = run->base[c]; k < run->base[c] + run->used[c]; k += n) {
        int bodies = 0;
        n = fsi__wc_same_rank(run->contact + k, run->base[c] + run->used[c] - k);
        for (l = k; l < k + n; l++) bodies += run->contact[l].body >= 0 && run->contact[l].active;
        for (l = k; l < k + n && bodies > 1; l++)
            if (run->contact[l].body >= 0) run->body[run->contact[l].body].entangled = 1;
    }

    /* Only COUPLED ones count. */
    for (b = 0; b < run->body_count; b++) {
        run->body[b].entangled &= run->body[b].coupled;
        run->entangled |= run->body[b].entangled;
    }
}

/* Contacts with entangled bodies of the world become rows of its solver, with the impulses of GLOBAL as the guess. */
static fsi_status fsi__wc_fill_rows(fsi__wc_run *run)
{
    fsi_rigid *w = run->im->world;
    fsi__ct_row *row = NULL;
    int c, k, rows = 0, guests = 0, last = -1;

    /* The contacts, and their particles, which are `guests` of the solver. */
    for (c = 0; c < run->chunks && run->entangled; c++) for (k = run->base[c]; k < run->base[c] + run->used[c]; k++) {
        fsi__wc_contact *t = &run->contact[k];
        if (t->body < 0 || t->active != 1 || !run->body[t->body].entangled || run->body[t->body].rg < 0) continue;
        if (t->rank != last) {
            run->guest[guests].v = fsi__d3_of(run->v[t->rank]);
            run->guest[guests++].inverse_mass = 1 / (double)run->s->particle_mass;
        }
        last = t->rank;
        t->slot = guests - 1;
        run->row[rows++] = k;
    }

    /* The rows of the solver. */
    run->row_count = rows;
    FSI__TRY(fsi__wc_of_world(run, fsi__rg_rows(w, rows, &row, run->fn)));
    for (k = 0; k < rows; k++) {
        const fsi__wc_contact *t = &run->contact[run->row[k]];
        row[k].a = FSI__CT_PARTICLE(t->slot);
        row[k].b = run->body[t->body].rg;
        row[k].point = t->point;
        row[k].n = t->n;
        row[k].aim = t->rebound;
        row[k].slide = fsi__d3_scale(fsi__d3_madd(t->u, -fsi__d3_dot(t->u, t->n), t->n), t->slip);
        row[k].friction = t->slip < 1 ? 1 : 0;
        row[k].jn = fmax(0, fsi__d3_dot(t->j, t->n));
        row[k].jt = fsi__d3_madd(t->j, -fsi__d3_dot(t->j, t->n), t->n);
    }
    return FSI_OK;
}

/* The world's contacts, with those of liquid that are entangled with them, in one PGS. */
static fsi_status fsi__wc_solve_world(fsi__wc_run *run)
{
    fsi_rigid *w = run->im->world;
    fsi__ct_body *moving;
    const fsi__ct_row *row;
    fsi__rg_contacts touch;
    const double g = (double)fsi_v3_norm(w->desc.gravity);
    double speed = 0, enough;
    int b, k, sweeps;

    /* Rows of the liquid; bodies that are not entangled take their impulses before. */
    FSI__TRY(fsi__wc_fill_rows(run));
    moving = fsi__rg_bodies(w);
    for (b = 0; b < run->body_count; b++) if (run->body[b].rg >= 0 && run->body[b].coupled && !run->body[b].entangled)
        fsi__rg_push(w, run->body[b].rg, run->body[b].impulse, run->body[b].moment);

    /* Sweeps until no velocity changes by more than `enough`; 0: there are no rows of the liquid, and the world's
       own tolerance holds. */
    for (k = 0; k < run->row_count; k++) speed = fmax(speed, fsi__d3_norm(run->contact[run->row[k]].u));
    sweeps = fsi__rg_contacts_of(w).sweeps;
    enough = (double)run->s->desc.tolerance * speed;
    if (g > 0) enough = fmin(enough, 0.01 * g * run->dt);
    fsi__rg_solve(w, run->dt, run->guest, enough);
    touch = fsi__rg_contacts_of(w);
    run->stats.sweeps += run->row_count > 0 ? touch.sweeps - sweeps : 0;
    run->stats.residual = run->row_count > 0 && speed > 0 ? touch.residual / speed : 0;

    /* Impulses of the rows, to particles and bodies. */
    row = touch.row ? touch.row + touch.count : NULL; /* NULL where there never was one */
    for (b = 0; b < run->body_count; b++)
        if (run->body[b].rg >= 0 && run->body[b].entangled)
            run->body[b].impulse = run->body[b].moment = fsi__d3_make(0, 0, 0);
    for (k = 0; k < run->row_count; k++) {
        fsi__wc_contact *t = &run->contact[run->row[k]];
        fsi__wc_body *body = &run->body[t->body];
        t->j = fsi__d3_madd(row[k].jt, row[k].jn, row[k].n);
        run->v[t->rank] = fsi__d3_real(run->guest[t->slot].v);
        body->impulse = fsi__d3_sub(body->impulse, t->j);
        body->moment = fsi__d3_sub(body->moment, fsi__d3_cross(t->arm, t->j));
    }

    /* The world counts what its bodies got. */
    for (b = 0; b < run->body_count; b++) if (run->body[b].rg >= 0 && run->body[b].entangled) {
        fsi__ct_body *m = &moving[run->body[b].rg];
        m->sum = fsi__d3_add(m->sum, run->body[b].impulse);
        m->moment = fsi__d3_add(m->moment, run->body[b].moment);
    }
    run->stats.body_contacts = touch.count;
    return FSI_OK;
}

/* Impulses on static, kinematic and sleeping bodies of the world; a sleeping body that was pushed wakes. */
static void fsi__wc_rouse(fsi__wc_run *run)
{
    fsi_rigid *w = run->im->world;
    int b;
    for (b = 0; b < run->body_count; b++) {
        const fsi__wc_body *body = &run->body[b];
        fsi__ct_body *m;
        if (body->rg < 0 || body->coupled) continue;
        m = &fsi__rg_bodies(w)[body->rg];
        m->sum = fsi__d3_add(m->sum, body->impulse);
        m->moment = fsi__d3_add(m->moment, body->moment);
        fsi__rg_wake_pushed(w, body->rg);
    }
}

/* Step 5 of direct_forcing.md 8. */
static fsi_status fsi__wc_respond(fsi__wc_run *run)
{
    const fsi_wcsph_desc *d = &run->s->desc;
    int b, several;

    /* Static and PRESCRIBED obstacles. */
    fsi__wc_parallel(run, fsi__wc_static_chunk, FSI__WC_NS_RESPOND);
    several = fsi__wc_sum(run, 0) > 0;

    /* COUPLED bodies: none has an impulse yet. */
    for (b = 0; b < run->body_count; b++) {
        run->body[b].impulse = run->body[b].moment = fsi__d3_make(0, 0, 0);
        run->body[b].passes = run->body[b].released = 0;
    }
    run->stats.residual = 0;

    /* Contacts of several bodies with one particle; each body by its solver; PGS for entangled bodies; impulses on
       particles. */
    if (run->coupled_count > 0) {
        if (several && d->solver == FSI_WCSPH_GLOBAL) {
            fsi__wc_parallel(run, fsi__wc_single_chunk, FSI__WC_NS_RESPOND);
            several = 0;
        }
        fsi__wc_entangle(run, several && d->solver == FSI_WCSPH_AUTO);
        fsi__wc_sort_contacts(run);
        fsi__parallel(run->s->context, run->body_count, 1, fsi__wc_respond_body, run);
        if (run->im->world) FSI__TRY(fsi__wc_solve_world(run));
        if (run->entangled) fsi__wc_pgs(run);
        fsi__wc_parallel(run, fsi__wc_apply_chunk, FSI__WC_NS_RESPOND);
        for (b = 0; b < run->body_count; b++) {
            if (run->body[b].passes > run->stats.passes) run->stats.passes = run->body[b].passes;
            run->stats.released += run->body[b].released;
        }
    } else if (run->im->world) FSI__TRY(fsi__wc_solve_world(run));
    return FSI_OK;
}

/* Records the contacts' impulses in the stats, the obstacles and the bodies. */
static void fsi__wc_keep_records(fsi__wc_run *run)
{
    fsi__wc_parallel(run, fsi__wc_share_chunk, FSI__WC_NS_COPY);
    fsi__wc_measure_contacts(run);
    fsi__wc_book_obstacles(run);
    if (run->im->world) fsi__wc_rouse(run);
}

/* ---- >>bodies in a step --------------------------------------------------------------------------------------- */

/* Enters an obstacle's body into the step's table, unless it is there. */
static void fsi__wc_begin_body(fsi__wc_run *run, fsi__wc_obstacle *o, double dt)
{
    fsi__wc_body *b;
    int k;

    /* Its entry. */
    for (k = 0; k < run->body_count && run->body[k].user != o->base.carrier; k++) {}
    o->base.body = k;
    b = &run->body[k];

    /* A new one: the work copy, poses, velocities; those of PRESCRIBED bodies are constant during the step. */
    if (k == run->body_count) {
        run->body_count++;
        memset(b, 0, sizeof *b);
        b->user = o->base.carrier;
        b->work = *b->user;
        b->rg = run->im->world ? fsi__rg_find(run->im->world, b->user) : -1;
        b->coupled = b->work.mode == FSI_BODY_COUPLED || b->rg >= 0;
        run->coupled_count += b->coupled;
        fsi_body_begin_step(&b->work, (fsi_real)dt);
        b->begin = b->from = b->to = b->coupled ? b->work.pose : o->start;
        b->v = fsi__d3_of(b->work.velocity);
        b->w = fsi__d3_of(b->work.angular_velocity);
        if (!b->coupled && dt > 0) {
            b->v = fsi__d3_scale(fsi__d3_of(fsi_v3_sub(b->work.end.position, o->start.position)), 1 / dt);
            b->w = fsi__d3_scale(fsi__d3_of(fsi__turn_between(o->start, b->work.end)), 1 / dt);
        }
    }
    b->reach = fmax(b->reach, o->base.reach);
}

/* Where a body would end the substep without liquid (steps 2 and 3): v* = v + dt F/M, w* = w + dt I^-1 tau. */
static void fsi__wc_predict_body(fsi__wc_run *run, fsi__wc_body *b)
{
    const double dt = run->dt;
    fsi_body *w = &b->work;
    if (b->rg >= 0) return;
    b->from = b->to;
    b->v0 = b->v;
    b->w0 = b->w;
    if (!b->coupled) {
        const fsi_pose next = fsi__pose_on_the_way(&b->work, b->begin, run->done + run->share);
        b->v = b->v0 = fsi__d3_scale(fsi__d3_of(fsi_v3_sub(next.position, b->from.position)), 1 / dt);
        b->w = b->w0 = fsi__d3_scale(fsi__d3_of(fsi__turn_between(b->from, next)), 1 / dt);
        b->to = next;
        return;
    }
    b->inertia = fsi_body_world_tensor(b->from.orientation, w->inertia);
    b->inverse = fsi_body_world_tensor(b->from.orientation, fsi_m3_inverse(w->inertia));
    fsi__wc_take_impulse(b, fsi__d3_scale(fsi__d3_of(w->force), dt), fsi__d3_scale(fsi__d3_of(w->torque), dt));
}

/* Pose at the end of the substep with the velocities as they are; `keep`: velocities are those there, too. */
static void fsi__wc_move_body(fsi__wc_run *run, fsi__wc_body *b, int keep)
{
    fsi_body way = b->work;
    if (!b->coupled || b->rg >= 0) return;
    way.pose = b->from;
    way.new_velocity = fsi__d3_real(b->v);
    way.new_angular_velocity = fsi__d3_real(b->w);
    fsi_body_integrate(&way, (fsi_real)run->dt);
    b->to = way.pose;
    if (keep) b->w = fsi__d3_of(way.angular_velocity);
}

/* Bodies of the world: forces, contacts between bodies, where all would be without liquid. */
static fsi_status fsi__wc_predict_world(fsi__wc_run *run)
{
    fsi_rigid *w = run->im->world;
    const fsi__ct_body *moving;
    int b, k;
    if (!w) return FSI_OK;

    /* Forces, and contacts between bodies. */
    fsi__rg_aim_kinematic(w, run->left);
    FSI__TRY(fsi__wc_of_world(run, fsi__rg_predict(w, run->dt, run->fn)));
    FSI__TRY(fsi__wc_of_world(run, fsi__rg_collide(w, run->dt, run->fn)));

    /* Poses, velocities and inertias of bodies that are obstacles of the liquid. A sleeping body is not COUPLED. */
    moving = fsi__rg_bodies(w);
    for (b = 0; b < run->body_count; b++) {
        fsi__wc_body *body = &run->body[b];
        const fsi__ct_body *m;
        if (body->rg < 0) continue;
        m = &moving[body->rg];
        body->coupled = m->mobile;
        body->from = m->start;
        body->to = m->pose;
        body->v0 = m->v0;
        body->w0 = m->w0;
        body->v = m->v;
        body->w = m->w;
        body->work.mass = (fsi_real)(m->inverse_mass > 0 ? 1 / m->inverse_mass : 1);
        for (k = 0; k < 9; k++) {
            body->inertia.m[k] = (fsi_real)m->inertia[k];
            body->inverse.m[k] = (fsi_real)m->inverse_inertia[k];
        }
        if (!body->coupled) continue;
        body->entangled |= m->tree >= 0;
    }
    return FSI_OK;
}

/* Where bodies of the world have got to. */
static fsi_status fsi__wc_advance_world(fsi__wc_run *run)
{
    fsi_rigid *w = run->im->world;
    const fsi__ct_body *moving;
    int b;
    if (!w) return FSI_OK;
    FSI__TRY(fsi__wc_of_world(run, fsi__rg_advance(w, run->dt, run->fn)));
    moving = fsi__rg_bodies(w);
    for (b = 0; b < run->body_count; b++) if (run->body[b].rg >= 0) {
        const fsi__ct_body *m = &moving[run->body[b].rg];
        run->body[b].to = m->pose;
        run->body[b].v = m->v;
        run->body[b].w = m->w;
    }
    return FSI_OK;
}

/* Widens the box of an obstacle's mesh: samples reach beyond it; the solid of a container has no end. */
static void fsi__wc_widen(const fsi__wc_run *run, fsi__wc_obstacle *o)
{
    const fsi_real end = FSI_REAL_MAX / 4;
    if (o->desc.surface == FSI_WCSPH_SURFACE_SAMPLES) o->box = fsi_box3_inflate(o->box, run->s->radius);
    if (!o->base.mesh->container) return;
    o->box.lo = fsi_v3(-end, -end, -end);
    o->box.hi = fsi_v3(end, end, end);
}

/* Puts obstacles where the substep takes them, as far as that is known, and says how far that is. */
static void fsi__wc_move_obstacles(fsi__wc_run *run, int coupled_only)
{
    double most = 0;
    int k;
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi__wc_obstacle *o = &run->im->obstacle[k];

        /* With its body. Several obstacles of one body may start from different poses. */
        if (o->base.body >= 0) {
            const fsi__wc_body *b = &run->body[o->base.body];
            fsi_vec3 c[2];
            o->from = run->done > 0 ? b->from : o->start;
            o->to = b->to;
            o->motion = (double)fsi_v3_norm(fsi_v3_sub(o->to.position, o->from.position)) + o->base.reach
                * (double)fsi_v3_norm(fsi__turn_between(o->from, o->to));
            c[0] = o->from.position;
            c[1] = o->to.position;
            o->box = fsi_box3_inflate(fsi_box3_grow(fsi_box3_grow(fsi_box3_empty(), c[0]), c[1]),
                (fsi_real)o->base.reach);
        } else if (!coupled_only) {
            if (o->base.moves) fsi__obstacle_follow(&o->base, run->done, run->share);
            o->box = o->base.mesh->box;
            o->motion = 0;
            if (o->base.moves) {
                const fsi_mesh *m = o->base.mesh;
                int v;
                for (v = 0; v < m->vertex_count; v++)
                    o->motion = fmax(o->motion, (double)fsi_v3_norm2(fsi_v3_sub(m->vertices[v], m->previous[v])));
                o->motion = sqrt(o->motion);
            }
        }

        /* Box, and the largest displacement. */
        if (o->base.body >= 0 || !coupled_only) fsi__wc_widen(run, o);
        most = fmax(most, o->motion);
    }
    run->motion = most;
}

/* ---- >>position correction ------------------------------------------------------------------------------------ */

/* Surroundings of a position. */
typedef struct fsi__wc_place {
    double slack;  /* least distance less what it must be; large: nothing near */
    double least;  /* least distance to an obstacle, or the reach */
    int crossed;
} fsi__wc_place;

/* Of distances [m]: well below what is promised, and above the rounding of a place so far from the origin. */
static double fsi__wc_tolerance(const fsi__wc_run *run)
{
    return fmax((double)run->s->desc.spacing * (sizeof(fsi_real) == sizeof(double) ? 1e-7 : 1e-4),
                (double)FSI_REAL_EPS * run->off);
}

/* Pushes x out of the domain's walls; returns its slack before. */
static double fsi__wc_clamp(const fsi_wcsph *s, fsi_vec3 *x, int push)
{
    const double rf = (double)s->radius;
    double least = FSI__HUGE;
    int k;
    for (k = 0; k < s->desc.dim; k++) {
        const double at = fsi__wc_axis(*x, k), lo = fsi__wc_axis(s->desc.domain.lo, k) + rf,
                     hi = fsi__wc_axis(s->desc.domain.hi, k) - rf;
        least = fmin(least, fmin(at - lo, hi - at));
        if (!push) continue;
        if (lo > hi) fsi__wc_set_axis(x, k, 0.5 * (lo + hi));
        else if (at < lo) fsi__wc_set_axis(x, k, lo);
        else if (at > hi) fsi__wc_set_axis(x, k, hi);
    }
    return least;
}

/* No place that a particle may take lies outside the domain, whatever pushes. */
static void fsi__wc_keep_in(const fsi__wc_run *run, fsi_vec3 *x)
{
    if (fsi__wc_has_domain(run->s) && fsi__wc_clamp(run->s, x, 0) < -fsi__wc_tolerance(run))
        fsi__wc_clamp(run->s, x, 1);
}

/* One round over all surfaces: measures the place *x as each finds it, and with `push` moves it out of each in turn. */
static fsi__wc_place fsi__wc_round(const fsi__wc_run *run, const fsi__wc_around *a, int r, fsi_vec3 x0, double known,
                                   double reach, fsi_vec3 *x, int push)
{
    const double eps = fsi__wc_tolerance(run);
    fsi__wc_place p;
    int k;
    p.slack = FSI__HUGE;
    p.least = reach;
    p.crossed = 0;
    if (fsi__wc_has_domain(run->s)) p.slack = fsi__wc_clamp(run->s, x, push);
    for (k = 0; k < fsi__wc_around_count(run, a); k++) {
        const int index = fsi__wc_around_at(a, k);
        const fsi__wc_obstacle *o = &run->im->obstacle[index];
        fsi__wc_touch t;
        if (!fsi__wc_meets(run, o, r, *x, reach) && !fsi__wc_meets(run, o, r, x0, reach)) continue;
        t = fsi__wc_probe(run, index, r, x0, *x, known, reach);
        p.slack = fmin(p.slack, t.d - o->gap);
        p.least = fmin(p.least, t.d);
        p.crossed |= t.crossed;
        if (push && t.d < o->gap - eps && t.push > 0) *x = fsi_v3_madd(*x, (fsi_real)t.push, fsi__d3_real(t.n));
    }
    return p;
}

/* The 26 directions of a cube's faces, edges and corners. */
static fsi_vec3 fsi__wc_direction(int k, int dim)
{
    const int at = k >= 13 ? k + 1 : k;
    const fsi_vec3 d =
        fsi_v3((fsi_real)(at % 3 - 1), (fsi_real)(at / 3 % 3 - 1), dim == 3 ? (fsi_real)(at / 9 - 1) : 0);
    return fsi_v3_unit(d);
}

/* Finds a position for a particle that the iteration leaves in a solid or too near: the first free one on rings around
   it, the nearest ring first; else the one with the largest distance. */
static fsi__wc_place fsi__wc_search(const fsi__wc_run *run, const fsi__wc_around *a, int r, fsi_vec3 *x, double known,
                                    double reach)
{
    const double dx = (double)run->s->desc.spacing, eps = fsi__wc_tolerance(run);
    const fsi_vec3 start = *x;
    fsi__wc_place best = fsi__wc_round(run, a, r, run->starting ? start : run->x[r], known, reach, x, 0);
    int ring, k;
    for (ring = 1; ring <= 10; ring++) for (k = 0; k < 26; k++) {
        fsi_vec3 y = fsi_v3_madd(start, (fsi_real)(0.25 * dx * ring), fsi__wc_direction(k, run->s->desc.dim));
        fsi__wc_place p;
        fsi__wc_keep_in(run, &y);
        p = fsi__wc_round(run, a, r, run->starting ? y : run->x[r], known, reach, &y, 0);
        if (p.crossed || !(p.slack > best.slack || best.crossed)) continue;
        best = p;
        *x = y;
        if (p.slack >= -eps) return p;
    }
    return best;
}

#define FSI__WC_ROUNDS 24

/* Moves a particle to where it keeps its distance from everything (20); returns what it found in the end. */
static fsi__wc_place fsi__wc_correct(const fsi__wc_run *run, const fsi__wc_around *a, int r, double known, double reach,
                                     fsi_vec3 *x, int *pinched)
{
    const double eps = fsi__wc_tolerance(run);
    const fsi_vec3 x0 = run->starting ? *x : run->x[r];
    fsi_vec3 best = *x, y = *x;
    fsi__wc_place p, top;
    int round;

    /* Rounds that push the particle out of each surface in turn (equation 20); the best position is kept. In a box
       without obstacles one round is enough. */
    top.slack = -FSI__HUGE;
    top.least = 0;
    top.crossed = 1;
    *pinched = 0;
    for (round = 0; round < FSI__WC_ROUNDS; round++) {
        fsi_vec3 at;
        fsi__wc_keep_in(run, &y);
        at = y;
        p = fsi__wc_round(run, a, r, run->starting ? at : x0, known, reach, &y, 1);
        if ((!p.crossed && p.slack > top.slack) || round == 0) { top = p; best = at; }
        if (p.slack >= -eps && !p.crossed) break;
        if (run->im->obstacles.count == 0 && round == 0) { best = y; top = p; break; }
    }

    /* Not yet free: search around it. A particle without a free position is pinched. */
    *x = best;
    if ((top.slack >= -eps && !top.crossed) || (run->im->obstacles.count == 0)) return top;
    if (!(top.slack > 0 - 0.05 * (double)run->s->desc.spacing) || top.crossed)
        top = fsi__wc_search(run, a, r, x, known, reach);
    *pinched = !(top.slack >= -eps);
    return top;
}

/* One particle that may have come too near to something: its place, its room, and what was done for the sums. */
static void fsi__wc_settle_place(fsi__wc_run *run, const fsi__wc_around *a, int r, double known, double *part)
{
    const double rf = (double)run->s->radius, dx = (double)run->s->desc.spacing, full = fsi__wc_reach(run),
                 m = (double)run->s->particle_mass;
    const fsi_vec3 free_x = run->x1[r];
    const double way = (double)fsi_v3_norm(fsi_v3_sub(free_x, run->x[r])) + run->motion;
    double moved;
    fsi_vec3 x = free_x;
    int pinched = 0, look = a->count != 0 && known - way < rf;

    /* Too far from everything but the domain. */
    if (!look) {
        if (fsi__wc_has_domain(run->s)) fsi__wc_clamp(run->s, &x, 1);
        moved = (double)fsi_v3_norm(fsi_v3_sub(x, free_x));
        look = a->count != 0 && known - way - moved < rf;
        run->room[r] = a->count == 0 ? (fsi_real)full : (fsi_real)(known - way - moved);
    }

    /* Near: correct its position; the least distance is its room. */
    if (look) {
        fsi__wc_place p;
        x = free_x;
        p = fsi__wc_correct(run, a, r, known, full, &x, &pinched);
        run->room[r] = (fsi_real)fmax(p.least, 0);
        part[0] += pinched;
        part[1] += p.slack < (pinched ? -rf : -fmax(1e-3 * dx, 2 * fsi__wc_tolerance(run))); /* never */
        if (!pinched) part[2] = fmax(part[2], -p.slack);
    }

    /* The displacement, and what it changes of the angular momentum. */
    run->pinched[r] = (unsigned char)pinched;
    moved = (double)fsi_v3_norm(fsi_v3_sub(x, free_x));
    run->x1[r] = x;
    if (!(moved > 0)) return;
    part[3]++;
    part[4] = fmax(part[4], moved);
    fsi__wc_put(part + 5, fsi__d3_scale(fsi__d3_cross(fsi__d3_of(fsi_v3_sub(x, free_x)), fsi__d3_of(run->v[r])), m));
    part[8] += m * moved * (double)fsi_v3_norm(run->v[r]);
    part[11] += run->starting && moved > rf * 1.001;
}

/* Finite, and within what the next step takes. */
FSI_FN int fsi__wc_possible(fsi_vec3 x, fsi_vec3 v)
{
    const fsi_real most = (fsi_real)FSI__WC_FASTEST, off = (fsi_real)FSI__WC_FARTHEST;
    return x.x <= off && x.x >= -off && x.y <= off && x.y >= -off && x.z <= off && x.z >= -off
        && v.x <= most && v.x >= -most && v.y <= most && v.y >= -most && v.z <= most && v.z >= -most;
}

/* Steps 6 and 7: drift with the new velocities, keep distances, remember them. */
static void fsi__wc_drift(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    const double rf = (double)run->s->radius, full = fsi__wc_reach(run);
    const fsi_box3 free_box = fsi__wc_free_box(run->s);
    double *part = fsi__wc_parts(run, chunk), farthest = 0;
    fsi__wc_around a;
    int r, bad = 0;

    /* Drift: x1 = x + dt v. */
    for (r = begin; r < end; r++) run->x1[r] = fsi_v3_madd(run->x[r], (fsi_real)run->dt, run->v[r]);
    fsi__wc_look_around(run, begin, end, full, &a);

    /* Distances: a particle is moved by its emitter, far from everything, or to be corrected. */
    for (r = begin; r < end; r++) {
        const fsi_vec3 x = run->x1[r];
        const double known = (double)run->room[r],
                     left = a.count == 0 ? full : known - (double)fsi_v3_norm(fsi_v3_sub(x, run->x[r])) - run->motion;
        double off;
        if (fsi__wc_is_held(run, r)) {
            run->room[r] = 0;
            run->pinched[r] = 0;
        } else if (left >= rf && fsi__wc_holds(&free_box, x)) {
            run->room[r] = (fsi_real)left;
            run->pinched[r] = 0;
        } else fsi__wc_settle_place(run, &a, r, known, part);

        /* How far from where the lists were made; is the new state possible? */
        off = (double)fsi_v3_norm2(fsi_v3_sub(run->x1[r], run->b.sorted[r]));
        farthest = off > farthest ? off : farthest;
        bad |= !fsi__wc_possible(run->x1[r], run->v[r]);
    }
    part[9] = farthest;
    part[10] = bad;
}

/* The correction pushes back (desc.position_two_way): each body moves by - sum m dx/(M + sum m), dx what its particles
   will be moved by, as their contact points foretell. */
static void fsi__wc_push_back(fsi__wc_run *run)
{
    const double m = (double)run->s->particle_mass;
    int b, k;
    for (b = 0; b < run->body_count; b++) {
        fsi__wc_body *body = &run->body[b];

        /* The body's rotation since contacts were found. */
        const fsi_quat turn = fsi_quat_mul(body->to.orientation, fsi_quat_conj(body->star.orientation));
        fsi__d3 sum = fsi__d3_make(0, 0, 0);
        double mass = (double)body->work.mass;

        /* Missing distance of each of its contacts, at the positions to which particles drift. */
        for (k = 0; k < body->count && body->coupled; k++) {
            const fsi__wc_contact *c = &run->contact[run->by_body[body->first + k]];
            const fsi__d3 point =
                fsi__d3_of(fsi_v3_add(body->to.position, fsi_quat_rotate(turn, fsi__d3_real(c->arm))));
            const fsi__d3 n = fsi__d3_of(fsi_quat_rotate(turn, fsi__d3_real(c->n)));
            const fsi__d3 x = fsi__d3_madd(fsi__d3_of(run->x[c->rank]), run->dt, fsi__d3_of(run->v[c->rank]));
            const double lack = run->im->obstacle[c->obstacle].gap - fsi__d3_dot(fsi__d3_sub(x, point), n);
            mass += m;
            if (lack > 0) sum = fsi__d3_madd(sum, m * lack, n);
        }

        /* The body moves; a link of a tree only as its joints let it. */
        if (!(body->count > 0 && body->coupled)) continue;
        if (body->rg >= 0 && fsi__rg_bodies(run->im->world)[body->rg].tree >= 0) continue;
        body->to.position = fsi_v3_madd(body->to.position, (fsi_real)(-1 / mass), fsi__d3_real(sum));
        if (body->rg >= 0) fsi__rg_bodies(run->im->world)[body->rg].pose.position = body->to.position;
    }
}

/* ---- >>substep ------------------------------------------------------------------------------------------------ */

static void fsi__wc_take_places(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    (void)chunk;
    memcpy(run->x + begin, run->x1 + begin, (size_t)(end - begin) * sizeof *run->x);
}

/* Records and densities at the places where particles are now; `dt` 0: only what does not need a rate. */
static fsi_status fsi__wc_renew_density(fsi__wc_run *run, double dt)
{
    const double rho0 = (double)run->s->desc.density, kept = run->dt;
    fsi_status status;
    double mean;
    fsi__wc_parallel(run, fsi__wc_records, FSI__WC_NS_RECORDS);
    run->dt = dt;
    status = fsi__wc_pairs(run, fsi__wc_density);
    run->dt = kept;
    if (status != FSI_OK) return status;
    mean = fsi__wc_sum(run, 0) / run->n / rho0;
    run->stats.density_drift = mean - 1;
    run->stats.density_ratio_max = fsi__wc_largest(run, 1);
    run->stats.pairs = (size_t)(fsi__wc_sum(run, 2) / 2);
    run->rho_mean = 1;
    /* below 1 it is spray: raising all would make pressure, and energy, out of nothing; desc.guard sees to liquid */
    if (run->s->desc.density_mode == FSI_WCSPH_CONTINUITY && mean > 1.02 && dt > 0) {
        run->rho_mean = 1 / mean;
        run->stats.density_resets++;
    }
    fsi__wc_parallel(run, fsi__wc_take_density, FSI__WC_NS_COPY);
    return FSI_OK;
}

/* Names the first particle, in creation order, whose new state is not finite, or beyond what a step takes. */
static fsi_status fsi__wc_bad_number(const fsi__wc_run *run)
{
    int r, worst = -1, index = -1, finite;
    for (r = 0; r < run->n; r++) {
        const int bad = !fsi__wc_possible(run->x1[r], run->v[r]) || !fsi_v3_is_finite(run->a[r]) ||
                        !fsi_is_finite((double)run->rho[r]);
        if (bad && (worst < 0 || run->src[r] < index)) index = run->src[worst = r];
    }
    finite = worst >= 0 && fsi_v3_is_finite(run->x1[worst]) && fsi_v3_is_finite(run->v[worst]) &&
             fsi_v3_is_finite(run->a[worst]) && fsi_is_finite((double)run->rho[worst]);
    if (!finite) return fsi__fail(run->s->context, FSI_ERROR_NAN, run->fn, index, 0,
        "particle %d: its new state is not finite", index);
    return fsi__fail(run->s->context, FSI_ERROR_LIMIT, run->fn, index, (double)fsi_v3_norm(run->v[worst]),
                     "particle %d would be too far from the origin, or faster than %g m/s", index, FSI__WC_FASTEST);
}

/* Speed of the fastest point of an obstacle during the step [m/s]. */
static double fsi__wc_wall_speed(const fsi__wc_run *run, double dt)
{
    double most = 0;
    int b, k;
    for (b = 0; b < run->body_count; b++)
        most = fmax(most, fsi__d3_norm(run->body[b].v) + fsi__d3_norm(run->body[b].w) * run->body[b].reach);
    for (k = 0; k < run->im->obstacles.count; k++) {
        if (run->im->obstacle[k].base.moves) most = fmax(most, fsi__obstacle_way(&run->im->obstacle[k].base) / dt);
    }
    return most;
}

/* Momentum of the liquid [kg m/s] in part[0..2], sum m|v| in part[3]; of its force arrays in part[4..6]. */
static void fsi__wc_momentum_chunk(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    const double m = (double)run->s->particle_mass;
    double *part = fsi__wc_parts(run, chunk);
    int r;
    for (r = begin; r < end; r++) {
        const fsi__d3 v = fsi__d3_of(run->v[r]);
        fsi__wc_put(part, fsi__d3_scale(v, m));
        part[3] += m * fsi__d3_norm(v);
        fsi__wc_put(part + 4, fsi__wc_outside(run, r));
    }
}

typedef struct fsi__wc_balance { fsi__d3 p, force; double size; } fsi__wc_balance;

/* Momentum of liquid and COUPLED bodies. */
static fsi__wc_balance fsi__wc_weigh(fsi__wc_run *run)
{
    fsi__wc_balance w;
    int b;
    fsi__wc_parallel(run, fsi__wc_momentum_chunk, FSI__WC_NS_MOMENTUM);
    w.p = fsi__wc_sum3(run, 0);
    w.size = fsi__wc_sum(run, 3);
    w.force = fsi__wc_sum3(run, 4);
    for (b = 0; b < run->body_count; b++) if (run->body[b].coupled && run->body[b].rg < 0) {
        w.p = fsi__d3_madd(w.p, (double)run->body[b].work.mass, run->body[b].v);
        w.size += (double)run->body[b].work.mass * fsi__d3_norm(run->body[b].v);
    }
    return w;
}

/* Error of momentum: its change less the impulses on the liquid. */
static void fsi__wc_audit(fsi__wc_run *run, fsi__wc_balance before, const double walls[3], const double given[3])
{
    fsi_wcsph_stats *st = &run->stats;
    const fsi__wc_balance after = fsi__wc_weigh(run);
    const fsi__d3 pull =
        fsi__d3_madd(before.force, run->n * (double)run->s->particle_mass, fsi__d3_of(run->s->desc.gravity));
    fsi__d3 error = fsi__d3_sub(fsi__d3_sub(after.p, before.p), fsi__d3_scale(pull, run->dt));
    const double size = fmax(after.size, before.size);
    int b;
    fsi__wc_put(st->external_impulse, fsi__d3_scale(pull, run->dt));
    for (b = 0; b < run->body_count; b++) if (run->body[b].coupled)
            error = run->body[b].rg >= 0 ? fsi__d3_add(error, run->body[b].impulse)
                                         : fsi__d3_madd(error, -run->dt, fsi__d3_of(run->body[b].work.force));
    error = fsi__d3_sub(error, fsi__d3_sub(fsi__d3_at(st->wall_impulse), fsi__d3_at(walls)));
    error = fsi__d3_sub(error, fsi__d3_sub(fsi__d3_at(st->source_impulse), fsi__d3_at(given)));
    if (size > 0) st->momentum_error = fmax(st->momentum_error, fsi__d3_norm(error) / size);
}

/* ---- >>emitters and sinks at work -------------------------------------------------------------------------------

   The layers that an emitter emits in a step, and one more behind them, are behind its inlet plane when the step
   begins, move through it at the emitter's velocity, and push the liquid in front of them. Particles that have not
   passed the plane by the end of the step are removed, and made again in the same positions when the next step
   begins. */

/* Appends a particle to the step's rows; it is published with the others, at the end. */
static void fsi__wc_append(void *owner, const fsi__emitter *e, fsi_vec3 x, int ghost)
{
    fsi__wc_run *run = (fsi__wc_run *)owner;
    fsi_wcsph *s = run->s;
    fsi__wc_impl *im = run->im;
    const int i = run->n++;
    FSI_ASSERT(i < s->capacity);
    fsi__particles_new_row(&im->particles, i, x, fsi__emitter_velocity(e), 0, e->desc.filter, e->attributes);
    s->density[i] = s->desc.density;
    im->last[i] = x;
    im->seen[i] = e->desc.filter;
    run->source[i] = e->desc.shape == FSI_EMITTER_MESH ? 0 : (uint32_t)(e->flow.id + 1);
    run->gone[i] = ghost ? FSI__WC_GHOST : 0;
    fsi__wc_put(run->stats.source_impulse, fsi__d3_scale(fsi__d3_of(s->velocity[i]), (double)s->particle_mass));
}

/* Before the first substep; run->n grows. */
static void fsi__wc_begin_sources(fsi__wc_run *run, double dt)
{
    const int most = run->s->desc.max_particles;
    fsi__emission out;
    run->born = run->n;
    if (!run->gone) return;
    fsi__source_begin(&run->sources);
    memset(run->gone, 0, (size_t)run->n);
    if (run->source && run->n > 0) memcpy(run->source, run->im->source, (size_t)run->n * sizeof *run->source);
    out = fsi__source_line_up(&run->sources, run->s->time, dt, run->s->position, &run->n, run->source,
        most > 0 ? most - run->s->count : 0x7fffffff, fsi__wc_append, run);
    run->stats.emitted = (int)out.emitted;
    run->stats.blocked = (int)out.blocked;
    run->stats.refused = (int)out.refused;
}

/* The velocity that an emitter gives to rank r, in *v; 0: none does any more. When it has stopped, what is still behind
   its plane stays there, and what has come out moves on until a wall in the plane does not push it. */
static int fsi__wc_held_velocity(const fsi__wc_run *run, int r, double clock, fsi_vec3 *v)
{
    const uint32_t held = run->source[run->src[r]];
    const int k = held ? fsi__sources_find(&run->im->sources, (int64_t)held - 1) : -1;
    const fsi__emitter *e = k >= 0 ? &run->im->sources.emitter[k] : NULL;
    double along;
    if (!e) return 0;
    *v = fsi__emitter_velocity(e);
    if (fsi__source_holder(&run->sources, held, run->x[r], clock)) return 1;
    if (run->gone[run->src[r]] == FSI__WC_GHOST) *v = e->desc.velocity;
    along = fsi__d3_dot(fsi__d3_sub(fsi__d3_of(run->x[r]), fsi__d3_at(run->sources.flow[k].center)),
                        fsi__d3_of(e->desc.direction));
    return clock >= e->desc.stop && along < (double)run->s->radius;
}

/* Particles still moved by their emitter take its velocity, the others are released. Sums: momentum they got. */
static void fsi__wc_hold_range(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    const double clock = run->s->time + run->done * run->length, m = (double)run->s->particle_mass;
    double *part = fsi__wc_parts(run, chunk);
    int r;
    for (r = begin; r < end; r++) {
        fsi_vec3 v;
        if (!fsi__wc_held_velocity(run, r, clock, &v)) {
            run->source[run->src[r]] = 0;
            continue;
        }
        fsi__wc_put(part, fsi__d3_scale(fsi__d3_of(fsi_v3_sub(v, run->v[r])), m));
        run->v[r] = v;
        run->x1[r] = fsi_v3_madd(run->x[r], (fsi_real)run->dt, v);
    }
}

/* After the prediction of a substep. */
static void fsi__wc_hold(fsi__wc_run *run)
{
    if (!run->source) return;
    fsi__wc_parallel(run, fsi__wc_hold_range, FSI__WC_NS_PREDICT);
    fsi__wc_put(run->stats.source_impulse, fsi__wc_sum3(run, 0));
}

/* After the last substep. */
static void fsi__wc_drain(fsi__wc_run *run, double dt)
{
    const double volume = (double)run->s->particle_mass / (double)run->s->desc.density;
    int r;
    if (!run->gone) return;
    for (r = 0; r < run->n; r++) run->x1[run->src[r]] = run->x[r];
    run->stats.removed = fsi__source_drain(&run->sources, dt, volume, run->x1, run->n, run->gone);
}

/* After positions and velocities are published: removes particles that sinks take or that are still behind an emitter's
   plane. */
static void fsi__wc_commit_sources(fsi__wc_run *run)
{
    fsi_wcsph *s = run->s;
    fsi__wc_impl *im = run->im;
    const double m = (double)s->particle_mass;
    int i;
    if (!run->gone) return;
    for (i = 0; i < run->n; i++) {
        if (run->gone[i]) fsi__wc_put(run->stats.source_impulse, fsi__d3_scale(fsi__d3_of(s->velocity[i]), -m));
        if (i >= run->born && run->gone[i] != FSI__WC_GHOST) im->id[i] = (uint32_t)im->particles.next++;
    }
    fsi__source_commit(&run->sources);
    if (run->source && run->n > 0) memcpy(im->source, run->source, (size_t)run->n * sizeof *run->source);
    fsi__particles_compact(&im->particles, run->n, run->gone);
    run->stats.particles = s->count;
}

/* What the drift and its corrections did, for the stats. */
static void fsi__wc_record_drift(fsi__wc_run *run)
{
    fsi_wcsph_stats *st = &run->stats;
    st->pinched = (int)fsi__wc_sum(run, 0);
    st->inside = (int)fsi__wc_sum(run, 1);
    st->corrected += (int)fsi__wc_sum(run, 3);
    st->max_correction = fmax(st->max_correction, fsi__wc_largest(run, 4));
    st->angular_error += fsi__d3_norm(fsi__wc_sum3(run, 5));
    st->angular_bound += fsi__wc_sum(run, 8);
    run->moved = sqrt(fsi__wc_largest(run, 9));
}

/* Steps 3 to 7 of direct_forcing.md 8, then densities. */
static fsi_status fsi__wc_substep(fsi__wc_run *run, fsi__wc_balance before)
{
    fsi_wcsph_stats *st = &run->stats;
    double clock = fsi__now(run->s->context), walls[3], given[3];
    int b;

    /* Bodies and obstacles predicted (steps 2 and 3); contact arms count from there. */
    memcpy(walls, st->wall_impulse, sizeof walls);
    memcpy(given, st->source_impulse, sizeof given);
    for (b = 0; b < run->body_count; b++) fsi__wc_predict_body(run, &run->body[b]);
    FSI__TRY(fsi__wc_predict_world(run));
    for (b = 0; b < run->body_count; b++) {
        fsi__wc_body *body = &run->body[b];
        fsi__wc_move_body(run, body, 0);
        body->star = body->to;
        body->center = fsi__d3_of(body->rg >= 0 ? body->from.position : body->to.position);
    }
    fsi__wc_move_obstacles(run, 0);

    /* Particles predicted, contacts found and solved (steps 3 to 5). */
    fsi__wc_parallel(run, fsi__wc_predict, FSI__WC_NS_PREDICT);
    fsi__wc_hold(run);
    fsi__wc_lap(run, &st->seconds_integrate, &clock);
    FSI__TRY(fsi__wc_find_contacts(run));
    fsi__wc_lap(run, &st->seconds_contacts, &clock);
    FSI__TRY(fsi__wc_respond(run));
    fsi__wc_lap(run, &st->seconds_response, &clock);

    /* Records, and the balance of momentum. */
    fsi__wc_keep_records(run);
    fsi__wc_lap(run, &st->seconds_contacts, &clock);
    fsi__wc_audit(run, before, walls, given);
    for (b = 0; b < run->body_count; b++) {
        run->body[b].sum = fsi__d3_add(run->body[b].sum, run->body[b].impulse);
        run->body[b].turn = fsi__d3_add(run->body[b].turn, run->body[b].moment);
        fsi__wc_move_body(run, &run->body[b], 1);
    }

    /* Bodies and obstacles at the end of the substep. */
    FSI__TRY(fsi__wc_advance_world(run));
    fsi__wc_lap(run, &st->seconds_integrate, &clock);
    if (run->s->desc.position_two_way) fsi__wc_push_back(run);
    fsi__wc_move_obstacles(run, 1);

    /* Particles drift and keep their distances (steps 6 and 7). */
    fsi__wc_parallel(run, fsi__wc_drift, FSI__WC_NS_DRIFT);
    fsi__wc_record_drift(run);
    if (fsi__wc_sum(run, 10) > 0) return fsi__wc_bad_number(run);
    fsi__wc_parallel(run, fsi__wc_take_places, FSI__WC_NS_COPY);
    if (run->im->world) fsi__rg_accept(run->im->world, run->dt);
    fsi__wc_lap(run, &st->seconds_correction, &clock);
    return FSI_OK;
}

/* Lists, where they are worn out, and densities of the new places. */
static fsi_status fsi__wc_finish_substep(fsi__wc_run *run)
{
    const fsi_wcsph_desc *d = &run->s->desc;
    double clock = fsi__now(run->s->context);
    if (run->moved > 0.5 * run->skin) FSI__TRY(fsi__wc_rebuild(run));
    fsi__wc_lap(run, &run->stats.seconds_neighbors, &clock);
    run->im->filter_next++;
    run->filter =
        d->density_mode == FSI_WCSPH_CONTINUITY && d->shepard_every > 0 && run->im->filter_next >= d->shepard_every;
    if (run->filter) run->im->filter_next = 0;
    FSI__TRY(fsi__wc_renew_density(run, run->dt));
    fsi__wc_lap(run, &run->stats.seconds_pairs, &clock);
    return FSI_OK;
}

static fsi_status fsi__wc_forces(fsi__wc_run *run)
{
    double clock = fsi__now(run->s->context);
    fsi__wc_parallel(run, fsi__wc_pressures, FSI__WC_NS_PRESSURES);
    FSI__TRY(fsi__wc_pairs(run, fsi__wc_force));
    run->amax = sqrt(fsi__wc_largest(run, 0));
    run->stats.max_speed = run->fastest = sqrt(fsi__wc_largest(run, 1));
    fsi__wc_lap(run, &run->stats.seconds_pairs, &clock);
    return fsi__wc_sum(run, 2) > 0 ? fsi__wc_bad_number(run) : FSI_OK;
}

/* A liquid without particles: bodies move on. */
static fsi_status fsi__wc_drift_bodies(fsi__wc_run *run)
{
    int b;
    for (b = 0; b < run->body_count; b++) fsi__wc_predict_body(run, &run->body[b]);
    FSI__TRY(fsi__wc_predict_world(run));
    if (run->im->world) fsi__rg_solve(run->im->world, run->dt, NULL, 0);
    for (b = 0; b < run->body_count; b++) fsi__wc_move_body(run, &run->body[b], 1);
    FSI__TRY(fsi__wc_advance_world(run));
    if (run->im->world) fsi__rg_accept(run->im->world, run->dt);
    return FSI_OK;
}

static fsi_status fsi__wc_run_substeps(fsi__wc_run *run, double dt)
{
    const fsi_wcsph_desc *d = &run->s->desc;
    double left = dt;
    while (left > 0) {
        double limit, speed, count;
        fsi__wc_balance before;

        /* A degraded step: the speed of sound that the remaining substeps can bear. */
        memset(&before, 0, sizeof before);
        if (run->stats.degraded)
            run->c = fsi__wc_soft(run->s, left / (d->max_substeps - run->stats.substeps), run->fastest);

        /* Accelerations, and with them the longest substep allowed. */
        if (run->n > 0) FSI__TRY(fsi__wc_forces(run));
        speed = run->stats.max_speed;
        run->wall_speed = fsi__wc_wall_speed(run, dt);
        limit = run->n > 0 ? fsi__wc_limit(run->s, run->amax, speed, speed + run->wall_speed) : left;
        count = fmax(ceil(left / limit - 1e-9), 1);

        /* More substeps than may be used: fewer, with a softer liquid. */
        if (run->stats.degraded || !(run->stats.substeps + count <= d->max_substeps)) {
            count = d->max_substeps - run->stats.substeps;
            if (!run->stats.degraded) {
                run->stats.degraded = 1;
                run->c = fsi__wc_soft(run->s, left / count, speed);
                FSI__TRY(fsi__wc_forces(run));
            }
            run->stats.sound_speed = fmin(run->stats.sound_speed, run->c);
        }

        /* The substep, and its fraction of the step. */
        run->dt = count > 1 ? left / count : left;
        run->left = left;
        run->done = 1 - left / dt;
        run->share = count > 1 ? run->dt / dt : 1 - run->done;

        /* Do it. */
        if (run->n > 0) {
            before = fsi__wc_weigh(run);
            FSI__TRY(fsi__wc_substep(run, before));
            FSI__TRY(fsi__wc_finish_substep(run));
        } else FSI__TRY(fsi__wc_drift_bodies(run));
        fsi__source_move(&run->sources, run->dt);
        run->stats.substeps++;
        run->stats.substep = run->dt;
        left = count > 1 ? left - run->dt : 0;
    }
    return FSI_OK;
}

/* ---- >>step --------------------------------------------------------------------------------------------------- */

static fsi_status fsi__wc_check(const fsi_wcsph *s)
{
    if (!s) return FSI_ERROR_ARGUMENT;
    return s->cookie == FSI__COOKIE('w', fsi_wcsph) ? FSI_OK : FSI_ERROR_COOKIE;
}

static int fsi__wc_within(fsi_vec3 v, double most)
{
    return fabs((double)v.x) <= most && fabs((double)v.y) <= most && fabs((double)v.z) <= most;
}

/* Bodies and meshes that move faster than anything may, or that a force would make so. */
static fsi_status fsi__wc_check_way(const fsi_wcsph *s, const fsi__wc_obstacle *o, double dt, const char *fn)
{
    const fsi_body *b = o->base.carrier;
    double way, speed;
    fsi_mat3 inverse;
    if (!(dt > 0)) return FSI_OK;

    /* A mesh that moves. */
    speed = fsi__obstacle_way(&o->base) / dt;
    if (!(speed <= FSI__WC_FASTEST)) return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, o->base.id, speed,
        "the mesh of obstacle %d moves at %g m/s, the most is %g", o->base.id, speed, FSI__WC_FASTEST);

    /* A PRESCRIBED body. */
    if (!b) return FSI_OK;
    speed = (double)fsi_v3_norm(fsi_v3_sub(b->end.position, b->pose.position)) / dt;
    if (b->mode == FSI_BODY_PRESCRIBED && !(speed <= FSI__WC_FASTEST))
        return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, o->base.id, speed,
        "the body of obstacle %d moves at %g m/s, the most is %g", o->base.id, speed, FSI__WC_FASTEST);

    /* A COUPLED body: its velocities, and what a force or torque of the host adds. */
    if (b->mode != FSI_BODY_COUPLED) return FSI_OK;
    if (!fsi__wc_within(b->velocity, FSI__WC_FASTEST) || !fsi__wc_within(b->angular_velocity, FSI__WC_FASTEST))
        return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, o->base.id, (double)b->velocity.x,
            "the velocity of the body of obstacle %d is beyond %g m/s or rad/s", o->base.id, FSI__WC_FASTEST);
    speed = fsi__d3_norm(fsi__d3_of(b->force)) * dt / (double)b->mass;
    inverse = fsi_m3_inverse(b->inertia); /* no eigenvalue is above its trace */
    way =
        fsi__d3_norm(fsi__d3_of(b->torque)) * dt * ((double)inverse.m[0] + (double)inverse.m[4] + (double)inverse.m[8]);
    if (speed <= FSI__WC_FASTEST && way <= FSI__WC_FASTEST) return FSI_OK;
    return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, o->base.id, speed,
        "the %s on the body of obstacle %d would make it faster than %g m/s or rad/s", speed <= FSI__WC_FASTEST
        ? "torque" : "force", o->base.id, FSI__WC_FASTEST);
}

static fsi_status fsi__wc_check_particle(const fsi_wcsph *s, int i, double dt, const char *fn)
{
    const double rho = (double)s->density[i], rho0 = (double)s->desc.density;
    const char *what = !fsi_v3_is_finite(s->position[i]) ? "position" : !fsi_v3_is_finite(s->velocity[i]) ? "velocity"
        : !fsi_v3_is_finite(s->force[i]) ? "force" : !fsi_is_finite(rho) ? "density" : NULL;
    double x;
    if (what) return fsi__fail(s->context, FSI_ERROR_NAN, fn, i, 0, "particle %d: its %s is not finite", i, what);
    if (!(rho >= rho0 / (FSI__WC_DENSEST * FSI__WC_DENSEST) && rho <= 1.001 * FSI__WC_DENSEST * rho0))
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, i, rho,
                         "particle %d: its density is %g, it must be %g to %g", i, rho,
                         rho0 / (FSI__WC_DENSEST * FSI__WC_DENSEST), FSI__WC_DENSEST * rho0);
    x = fsi__d3_norm(fsi__d3_of(s->position[i]));
    if (!fsi__wc_within(s->position[i], FSI__WC_FARTHEST))
        return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, i, x, "particle %d is %g from the origin", i, x);
    if (!fsi__wc_within(s->velocity[i], FSI__WC_FASTEST))
        return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, i, (double)fsi_v3_norm(s->velocity[i]),
                         "particle %d: its velocity is beyond %g m/s", i, FSI__WC_FASTEST);
    x = fsi__d3_norm(fsi__d3_of(s->force[i])) * dt / (double)s->particle_mass;
    if (x <= FSI__WC_FASTEST) return FSI_OK;
    return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, i, x, "particle %d: its force would make it faster than %g m/s",
        i, FSI__WC_FASTEST);
}

static fsi_status fsi__wc_check_state(const fsi_wcsph *s, fsi_real dt, const char *fn)
{
    const fsi__wc_impl *im = (const fsi__wc_impl *)s->impl;
    int i;
    FSI__TRY(fsi__check_dt(s->context, dt, fn));
    if (im->world && fsi__rg_contacts_of(im->world).begun) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0,
        "the world has begun a step of its own: end it first");
    FSI__TRY(fsi__obstacles_check_carriers(&im->obstacles, fn, 1));
    for (i = 0; i < im->obstacles.count; i++) FSI__TRY(fsi__wc_check_way(s, &im->obstacle[i], (double)dt, fn));
    for (i = 0; i < s->count; i++) FSI__TRY(fsi__wc_check_particle(s, i, (double)dt, fn));
    return FSI_OK;
}

/* A PRESCRIBED body starts where its pose says; others go on from where the last step left them. */
static int fsi__wc_starts_by_itself(const fsi__wc_run *run, const fsi__wc_obstacle *o)
{
    const fsi_body *b = o->base.carrier;
    return b && b->mode == FSI_BODY_PRESCRIBED && !(run->im->world && fsi__rg_find(run->im->world, b) >= 0);
}

/* What moves in this step. Makes shadows of meshes that move for the first time. */
static fsi_status fsi__wc_begin_obstacles(fsi__wc_run *run, double dt)
{
    int k;
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi__wc_obstacle *o = &run->im->obstacle[k];
        fsi__obstacle_begin(&run->im->obstacles, &o->base);
        o->gap = (double)run->s->radius;
        o->start = fsi__wc_starts_by_itself(run, o) ? o->base.carrier->pose : o->base.at;
        run->anew |= memcmp(&o->start, &o->base.at, sizeof o->base.at) != 0;
        if (o->base.carrier) {
            fsi__wc_begin_body(run, o, dt);
            if (run->s->desc.offset_compensation && run->body[o->base.body].coupled)
                o->gap = 0.02 * (double)run->s->desc.spacing;
        }
        o->from = o->to = o->start;
        if (o->base.moves && o->desc.surface == FSI_WCSPH_SURFACE_SAMPLES)
            return fsi__fail(run->s->context, FSI_ERROR_ARGUMENT, run->fn, o->base.id, 0,
                "obstacle %d has samples and its mesh was moved: fix it to a PRESCRIBED body", o->base.id);
        FSI__TRY(fsi__obstacle_shade(&run->im->obstacles, &o->base, run->fn));
    }
    return FSI_OK;
}

/* Positions at the start. Those that the caller has changed since the last step are checked. */
static fsi_status fsi__wc_start_places(fsi__wc_run *run)
{
    int r, k;

    /* Obstacles where the last step left them. */
    run->starting = 1;
    run->motion = 0;
    run->dt = 0;
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi__wc_obstacle *o = &run->im->obstacle[k];
        if (o->base.body >= 0) {
            o->box = fsi_box3_inflate(fsi_box3_grow(fsi_box3_empty(), o->start.position), (fsi_real)o->base.reach);
        } else o->box = o->base.mesh->box;
        fsi__wc_widen(run, o);
    }

    /* Correct positions as at the end of a substep, with dt = 0. */
    fsi__wc_parallel(run, fsi__wc_drift, FSI__WC_NS_DRIFT);
    run->starting = 0;
    run->stats.displaced = (int)fsi__wc_sum(run, 11);

    /* REFUSE: name the first particle that was displaced. */
    if (run->s->desc.start_inside == FSI_WCSPH_REFUSE && run->stats.displaced > 0) {
        int worst = 0x7fffffff;
        for (r = 0; r < run->n; r++)
            if (fsi_v3_norm(fsi_v3_sub(run->x1[r], run->x[r])) > run->s->radius && run->src[r] < worst)
                worst = run->src[r];
        return fsi__fail(run->s->context, FSI_ERROR_ARGUMENT, run->fn, worst, run->stats.displaced,
                         "particle %d, and %d in all, are inside a solid", worst, run->stats.displaced);
    }

    /* DISPLACE: accept them. */
    run->moved = sqrt(fsi__wc_largest(run, 9));
    fsi__wc_parallel(run, fsi__wc_take_places, FSI__WC_NS_COPY);
    if (run->moved > 0.5 * run->skin) return fsi__wc_rebuild(run);
    return FSI_OK;
}

/* Memory of the whole step. */
static fsi_status fsi__wc_reserve(fsi__wc_run *run)
{
    fsi__arena measure = { NULL, 0, 0 };
    const fsi_wcsph *s = run->s;
    fsi__wc_impl *im = run->im;

    /* Arrays: measured, then taken. */
    fsi__wc_layout(run, &measure);
    if (!fsi__arena_reserve(s->context, &im->scratch, measure.used)) return fsi__fail(s->context, FSI_ERROR_MEMORY,
        run->fn, -1, s->count, "no memory to step %d particles", s->count);
    fsi__wc_layout(run, &im->scratch);

    /* Counts of contacts by chunk are kept from step to step. */
    if (im->need_count < run->chunks) {
        int *need = (int *)fsi__alloc(s->context, (size_t)run->chunks, sizeof(int));
        if (!need) return fsi__fail(s->context, FSI_ERROR_MEMORY, run->fn, -1, s->count,
            "no memory to step %d particles", s->count);
        fsi__free(s->context, im->need, (size_t)im->need_count, sizeof(int));
        im->need = need;
        im->need_count = run->chunks;
    }

    /* Neighbour lists of a liquid compressed by at most 15 %. */
    if (run->n <= FSI__WC_LISTED && run->n > 0) {
        const double reach = ((double)s->support + FSI__WC_SKIN * (double)s->desc.spacing) / (double)s->desc.spacing;
        const double each = 1.15 * (s->desc.dim == 3 ? 4.2 * reach * reach * reach : 3.2 * reach * reach) + FSI_LANES;
        const size_t room = (size_t)((double)run->n * each + 4 * FSI__NB_TILE * (double)run->chunks) * sizeof(int);
        if (im->lists.size < room && !fsi__arena_reserve(s->context, &im->lists, room))
            return fsi__fail(s->context, FSI_ERROR_MEMORY, run->fn, -1, s->count,
                             "no memory for the neighbour lists of %d particles", s->count);
    }
    return FSI_OK;
}

static fsi_status fsi__wc_begin(fsi__wc_run *run, fsi_wcsph *s, double dt, const char *fn)
{
    fsi__wc_impl *im = (fsi__wc_impl *)s->impl;
    size_t n;
    double felt;
    int i;

    /* Simulator, and room for what emitters may emit. */
    memset(run, 0, sizeof *run);
    run->s = s;
    run->im = im;
    run->fn = fn;
    run->length = dt;
    run->h = (double)s->support;
    felt = FSI__WC_FELT * run->h - (double)s->radius;
    run->lack = fsi__wc_layers(s->desc.dim, 2 * (double)s->radius, 2 * (double)s->radius, run->h / 2) / (felt * felt);
    run->sources.sources = &im->sources;
    FSI__TRY(fsi__source_make_room(&run->sources, &im->particles, fn, s->time, dt, &run->more));
    run->n = s->count + run->more;
    run->b.count = run->n;
    run->chunks = run->b.chunk_count = fsi__chunks(run->n, FSI__WC_GRAIN);
    run->c = run->stats.sound_speed = (double)s->sound_speed;
    im->filter_next = im->filter_count;
    run->anew = im->surfaces_changed;
    FSI__TRY(fsi__wc_reserve(run));

    /* Obstacles; emitters, whose particles come after the present ones. */
    FSI__TRY(fsi__wc_begin_obstacles(run, dt));
    run->n = s->count;
    fsi__wc_begin_sources(run, dt);
    n = (size_t)run->n;
    run->b.count = run->n;
    run->chunks = run->b.chunk_count = fsi__chunks(run->n, FSI__WC_GRAIN);
    if (n == 0) return FSI_OK;

    /* The state that the step starts from. A distance to surfaces is known only where particle, filter and surfaces
       are as the last step left them. */
    fsi__wc_clear_lists(run);
    memcpy(run->x, s->position, n * sizeof *run->x);
    memcpy(run->v, s->velocity, n * sizeof *run->v);
    memcpy(run->rho, s->density, n * sizeof *run->rho);
    memcpy(run->room, im->room, n * sizeof *run->room);
    memcpy(run->ratio, im->ratio, n * sizeof *run->ratio);
    run->fastest = fsi__longest(s->velocity, run->n);
    run->off = fsi__longest(s->position, run->n);
    for (i = 0; i < run->n; i++) {
        run->src[i] = i;
        run->pinched[i] = 0;
        if (s->desc.dim == 2) run->x[i].z = run->v[i].z = 0;
        if (run->anew || im->seen[i] != s->filter[i] || memcmp(&im->last[i], &s->position[i], sizeof(fsi_vec3)) != 0)
            run->room[i] = 0;
    }
    return FSI_OK;
}

/* Momentum, energies of the new state. */
static void fsi__wc_measure_chunk(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    const double m = (double)run->s->particle_mass;
    double *part = fsi__wc_parts(run, chunk);
    int r;
    for (r = begin; r < end; r++) {
        const fsi__d3 v = fsi__d3_of(run->v[r]), x = fsi__d3_of(run->x[r]);
        if (run->gone && run->gone[run->src[r]]) continue;
        fsi__wc_put(part, fsi__d3_scale(v, m));
        fsi__wc_put(part + 3, fsi__d3_scale(fsi__d3_cross(x, v), m));
        part[6] += 0.5 * m * fsi__d3_dot(v, v);
        part[7] -= m * fsi__d3_dot(fsi__d3_of(run->s->desc.gravity), x);
        part[8] = fmax(part[8], fsi__d3_dot(v, v));
    }
}

/* Largest summation density of the particles farther than H from every surface. */
static void fsi__wc_inner_chunk(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    const double far_off = run->h * 1.0000001;
    double *part = fsi__wc_parts(run, chunk), gap = FSI__HUGE;
    fsi__wc_around a;
    int r, k;
    fsi__wc_look_around(run, begin, end, far_off, &a);
    for (r = begin; r < end; r++) {
        /* Distance to the domain; particles outside, and the smallest gap. */
        double least = FSI__HUGE;
        if (fsi__wc_is_held(run, r)) continue;
        if (fsi__wc_has_domain(run->s)) least = fsi__wc_clamp(run->s, &run->x[r], 0) + (double)run->s->radius;
        part[2] += least < 0;
        if (!run->pinched[r])
            gap = fmin(gap, fmin(least - (double)run->s->radius,
                                 a.count ? (double)run->room[r] - (double)run->s->radius : FSI__HUGE));

        /* A density above the largest so far counts if no obstacle is within H. */
        if (!((double)run->ratio[r] > part[0]) || least < far_off) continue;
        for (k = 0; k < fsi__wc_around_count(run, &a) && least >= far_off && (double)run->room[r] < far_off; k++) {
            const int index = fsi__wc_around_at(&a, k);
            fsi__wc_touch t;
            if (!fsi__wc_meets(run, &run->im->obstacle[index], r, run->x[r], far_off)) continue;
            t = fsi__wc_probe(run, index, -1, run->x[r], run->x[r], FSI__HUGE, far_off);
            least = fmin(least, t.d);
        }
        if (least >= far_off) part[0] = (double)run->ratio[r];
    }
    part[1] = -gap;
}

static void fsi__wc_measure(fsi__wc_run *run)
{
    fsi_wcsph_stats *st = &run->stats;
    double gap = -FSI__HUGE;
    int c;
    fsi__wc_parallel(run, fsi__wc_measure_chunk, FSI__WC_NS_MEASURE);
    fsi__wc_put(st->momentum, fsi__wc_sum3(run, 0));
    fsi__wc_put(st->angular_momentum, fsi__wc_sum3(run, 3));
    st->kinetic_energy = fsi__wc_sum(run, 6);
    st->potential_energy = fsi__wc_sum(run, 7);
    st->max_speed = sqrt(fsi__wc_largest(run, 8));
    fsi__wc_parallel(run, fsi__wc_inner_chunk, FSI__WC_NS_INNER);
    st->density_ratio_inner = fsi__wc_largest(run, 0);
    st->lost = (int)fsi__wc_sum(run, 2);
    for (c = 0; c < run->chunks; c++) gap = fmax(gap, run->part[c * FSI__WC_SUMS + 1]);
    st->min_gap = gap > -0.5 * FSI__HUGE ? -gap : (double)FSI_REAL_MAX;
    st->particles = run->n;
    st->cfl = st->max_speed * st->substep / (double)run->s->desc.spacing;
}

static void fsi__wc_scatter(void *arg, int chunk, int begin, int end)
{
    fsi__wc_run *run = (fsi__wc_run *)arg;
    fsi_wcsph *s = run->s;
    int r;
    (void)chunk;
    for (r = begin; r < end; r++) {
        const int i = run->src[r];
        s->position[i] = run->im->last[i] = run->x[r];
        s->velocity[i] = run->v[r];
        s->density[i] = run->rho[r];
        run->im->ratio[i] = run->ratio[r];
        run->im->pressure[i] =
            (fsi_real)fsi__wc_pressure_of(run, fsi__wc_felt(s, (double)run->rho[r], (double)run->ratio[r]));
        run->im->room[i] = run->room[r];
        run->im->seen[i] = s->filter[i];
    }
}

/* Where the step leaves obstacles and bodies, and what they felt. */
static void fsi__wc_commit_solids(fsi__wc_run *run, double dt)
{
    const fsi_real per_dt = (fsi_real)(1 / dt);
    int k;

    /* Obstacles, and the walls of the domain. */
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi__wc_obstacle *o = &run->im->obstacle[k];
        fsi__obstacle_commit(&o->base, dt, o->base.body >= 0 ? &run->body[o->base.body].to : NULL);
    }
    run->im->domain_force = fsi_v3_scale(fsi__d3_real(fsi__d3_at(run->domain_impulse)), per_dt);
    run->im->domain_torque = fsi_v3_scale(fsi__d3_real(fsi__d3_at(run->domain_moment)), per_dt);

    /* Bodies. With the orientation of `pose` their angular velocity is I^-1 L there. */
    for (k = 0; k < run->body_count; k++) {
        fsi__wc_body *b = &run->body[k];
        fsi_body *work = &b->work;
        work->impulse = fsi__d3_real(b->sum);
        work->angular_impulse = fsi__d3_real(b->turn);
        fsi_body_end_step(work, (fsi_real)dt);
        if (b->coupled) {
            const fsi_vec3 spin =
                fsi_m3_mul_v3(fsi_body_world_tensor(b->to.orientation, work->inertia), fsi__d3_real(b->w));
            work->new_velocity = fsi__d3_real(b->v);
            work->new_angular_velocity =
                fsi_m3_mul_v3(fsi_body_world_tensor(work->pose.orientation, fsi_m3_inverse(work->inertia)), spin);
            work->end = b->to;
        }
        if (b->rg < 0) *b->user = *work;
    }
    if (run->im->world) fsi__rg_commit(run->im->world, dt);
}

/* A step of no time publishes nothing but stats. */
static void fsi__wc_commit(fsi__wc_run *run, double dt)
{
    fsi_wcsph *s = run->s;
    if (dt > 0) {
        fsi__wc_parallel(run, fsi__wc_scatter, FSI__WC_NS_SCATTER);
        fsi__wc_commit_sources(run);
        fsi__wc_commit_solids(run, dt);
        run->im->amax = run->amax;
        run->im->wall_speed = run->wall_speed;
        run->im->sound_speed = run->c;
        run->im->filter_count = run->im->filter_next;
        run->im->surfaces_changed = 0;
    }
    run->stats.bytes = s->context->bytes;
    run->stats.allocs = s->context->allocs;
    s->stats = run->stats;
    s->time += dt;
}

/* One message for all shortcomings of the step. */
static void fsi__wc_warn(const fsi_wcsph *s)
{
    const fsi_wcsph_stats *st = &s->stats;
    if (!(st->degraded || st->pinched || st->inside || st->lost)) return;
    fsi__warn(s->context,
              "fsi_wcsph_step: %d pinched, %d inside, %d lost%s (speed of sound %g of %g m/s, density up to %.3g rho0)",
              st->pinched, st->inside, st->lost, st->degraded ? ", degraded: max_substeps is too small" : "",
              st->sound_speed, (double)s->sound_speed, st->density_ratio_max);
}

FSI_API fsi_status fsi_wcsph_step(fsi_wcsph *s, fsi_real dt)
{
    static const char fn[] = "fsi_wcsph_step";
    fsi__wc_run run;
    fsi_status status;
    double start, clock, phases;

    /* Check everything, take memory, begin the step of the world. */
    FSI__TRY(fsi__wc_check(s));
    FSI__TRY(fsi__wc_check_state(s, dt, fn));
    start = clock = fsi__now(s->context);
    status = fsi__wc_begin(&run, s, (double)dt, fn);
    if (status == FSI_OK && run.im->world && dt > 0)
        status = fsi__wc_of_world(&run, fsi__rg_begin(run.im->world, (double)dt, fn));

    /* Neighbours; positions free of solids; densities where they are no state. */
    if (status == FSI_OK && run.n > 0) status = fsi__wc_rebuild(&run);
    if (status == FSI_OK && run.n > 0) {
        fsi__wc_lap(&run, &run.stats.seconds_neighbors, &clock);
        status = fsi__wc_start_places(&run);
        fsi__wc_lap(&run, &run.stats.seconds_correction, &clock);
    }
    if (status == FSI_OK && run.n > 0 && (s->desc.density_mode != FSI_WCSPH_CONTINUITY || !(dt > 0)))
        status = fsi__wc_renew_density(&run, 0);
    else if (status == FSI_OK) fsi__wc_parallel(&run, fsi__wc_records, FSI__WC_NS_RECORDS);
    if (status == FSI_OK && run.n > 0) fsi__wc_lap(&run, &run.stats.seconds_pairs, &clock);

    /* Substeps. After an error nothing has changed. */
    if (status == FSI_OK) status = fsi__wc_run_substeps(&run, (double)dt);
    if (status != FSI_OK) {
        fsi__obstacles_stand(&run.im->obstacles);
        if (run.im->world) fsi__rg_drop(run.im->world);
        return status;
    }

    /* Sinks, and measurements of the new state. */
    if (dt > 0) fsi__wc_drain(&run, (double)dt);
    if (run.n > 0) fsi__wc_measure(&run);
    phases = run.stats.seconds_neighbors + run.stats.seconds_pairs + run.stats.seconds_integrate +
             run.stats.seconds_contacts + run.stats.seconds_response + run.stats.seconds_correction;
    run.stats.seconds_other = fsi__now(s->context) - start - phases;

    /* Publish. */
    fsi__wc_commit(&run, (double)dt);
    fsi__wc_warn(s);
    if (run.im->world && dt > 0) fsi__rg_warn(run.im->world);
    return FSI_OK;
}

FSI__COLD_BEGIN

/* ---- >>making and changing ------------------------------------------------------------------------------------ */

FSI_API fsi_wcsph_desc fsi_wcsph_default_desc(void)
{
    fsi_wcsph_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('e', fsi_wcsph_desc);

    /* Scale and liquid. */
    d.dim = 3;
    d.spacing = (fsi_real)0.02;
    d.support = (fsi_real)2.4;
    d.density = 1000;
    d.gravity = fsi_v3(0, 0, (fsi_real)-9.81);
    d.depth = 1;
    d.alpha = (fsi_real)0.1;
    d.eta = (fsi_real)0.01;
    d.visc_bulk_only = 1;

    /* Densities and pressure. */
    d.shepard_every = 0;
    d.diffusion = (fsi_real)0.1;
    d.guard = (fsi_real)0.02;
    d.clamp_pressure = 1;

    /* Contacts and substeps. */
    d.active_passes = 4;
    d.sweeps = 50;
    d.tolerance = (fsi_real)1e-4;
    d.cfl = 1;
    d.max_substeps = 10000;

    /* Walls of the domain: none. */
    d.domain = fsi_box3_empty();
    d.domain_slip = 1;
    return d;
}

static fsi_status fsi__wc_check_desc(fsi_context *context, const char *fn, const fsi_wcsph_desc *d)
{
    static const fsi__field rows[] = {
        /* Scale and liquid. */
        FSI__FIELD(fsi_wcsph_desc, dim, FSI__INT, 2, 3, 0),
        FSI__FIELD(fsi_wcsph_desc, spacing, FSI__REAL, 1e-9, 1e9, 0),
        FSI__FIELD(fsi_wcsph_desc, support, FSI__REAL, 2, 3, 0),
        FSI__FIELD(fsi_wcsph_desc, density, FSI__REAL, 1e-6, 1e9, 0),
        FSI__FIELD(fsi_wcsph_desc, depth, FSI__REAL, 1e-9, 1e9, 0),
        FSI__FIELD(fsi_wcsph_desc, speed, FSI__REAL, 0, 1e6, 0),
        FSI__FIELD(fsi_wcsph_desc, sound_speed, FSI__REAL, 0, 1e7, 0),
        FSI__FIELD(fsi_wcsph_desc, alpha, FSI__REAL, 0, 10, 0),
        FSI__FIELD(fsi_wcsph_desc, eta, FSI__REAL, 1e-6, 1, 0),

        /* Densities and pressure. */
        FSI__FIELD(fsi_wcsph_desc, density_mode, FSI__INT, 0, 2, 0),
        FSI__FIELD(fsi_wcsph_desc, shepard_every, FSI__INT, 0, 1e9, 0),
        FSI__FIELD(fsi_wcsph_desc, diffusion, FSI__REAL, 0, 0.2, 0),
        FSI__FIELD(fsi_wcsph_desc, guard, FSI__REAL, 0, 1, 0),

        /* Contacts and substeps. */
        FSI__FIELD(fsi_wcsph_desc, slip_mode, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_wcsph_desc, solver, FSI__INT, 0, 4, 0),
        FSI__FIELD(fsi_wcsph_desc, active_passes, FSI__INT, 1, 16, 0),
        FSI__FIELD(fsi_wcsph_desc, sweeps, FSI__INT, 1, 100000, 0),
        FSI__FIELD(fsi_wcsph_desc, tolerance, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_wcsph_desc, cfl, FSI__REAL, 0.01, 1, 0),
        FSI__FIELD(fsi_wcsph_desc, max_substeps, FSI__INT, 1, 100000000, 0),

        /* Walls of the domain, particles, vectors. */
        FSI__FIELD(fsi_wcsph_desc, start_inside, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_wcsph_desc, domain_slip, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_wcsph_desc, domain_restitution, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_wcsph_desc, reserve, FSI__INT, 0, 1e9, 0),
        FSI__FIELD(fsi_wcsph_desc, max_particles, FSI__INT, 0, 1e9, 0),
        FSI__FIELD(fsi_wcsph_desc, attribute_count, FSI__INT, 0, 64, 0),
        FSI__FIELD(fsi_wcsph_desc, gravity, FSI__VEC3, 0, 1e6, 0),
        FSI__FIELD(fsi_wcsph_desc, origin, FSI__VEC3, 0, 1e15, 0)
    };
    const fsi__where at = { fn, "desc.", -1, d->dim };
    FSI__TRY(FSI__CHECK_TABLE(context, &at, d, rows));

    /* The speed of sound must follow from something. */
    if (!(fsi_v3_norm(d->gravity) > 0) && !(d->speed > 0) && !(d->sound_speed > 0))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0,
                         "without gravity desc.speed or desc.sound_speed must be given");
    return FSI_OK;
}

static fsi_status fsi__wc_check_domain(const fsi_wcsph_desc *d, const char *fn)
{
    const fsi_box3 *b = &d->domain;
    const int flat = d->dim == 2;
    if (b->lo.x == FSI_REAL_MAX && b->hi.x == -FSI_REAL_MAX) return FSI_OK; /* fsi_box3_empty */
    if (!fsi_v3_is_finite(b->lo) || !fsi_v3_is_finite(b->hi) ||
        !(b->hi.x - b->lo.x > d->spacing && b->hi.y - b->lo.y > d->spacing && (flat || b->hi.z - b->lo.z > d->spacing)))
        return fsi__fail(d->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "desc.domain is not a box wider than a particle");
    return FSI_OK;
}

static void fsi__wc_derive(fsi_wcsph *s)
{
    const fsi_wcsph_desc *d = &s->desc;
    const double dx = (double)d->spacing, fall = sqrt(2 * (double)fsi_v3_norm(d->gravity) * (double)d->depth);
    s->particle_mass = (fsi_real)((d->dim == 3 ? dx * dx * dx : dx * dx) * (double)d->density);
    s->radius = (fsi_real)(dx / 2);
    s->support = d->support * d->spacing;
    s->sound_speed = d->sound_speed > 0 ? d->sound_speed : (fsi_real)(10 * fmax((double)d->speed, fall));
    ((fsi__wc_impl *)s->impl)->sound_speed = (double)s->sound_speed;
}

/* The table of the particles, in the order of a state. */
static void fsi__wc_make_table(fsi_wcsph *s)
{
    const size_t vector = sizeof(fsi_vec3), real = sizeof(fsi_real), word = sizeof(uint32_t);
    const double rho0 = (double)s->desc.density;
    const double thin = 1.0 / (FSI__WC_DENSEST * FSI__WC_DENSEST), thick = 1.001 * FSI__WC_DENSEST;
    const double pull = 1e12 * FSI__WC_FASTEST * (double)s->particle_mass; /* in the shortest step */
    fsi__wc_impl *im = (fsi__wc_impl *)s->impl;
    fsi__particles *t = &im->particles;

    /* The public arrays that every liquid has. */
    fsi__particles_start(t, s->context, s->desc.dim, s->desc.attribute_count, s->desc.spacing, &s->desc.max_particles);
    t->fastest = FSI__WC_FASTEST;
    t->count = &s->count;
    t->capacity = &s->capacity;
    t->position = &s->position;
    t->velocity = &s->velocity;
    t->id = &im->id;
    t->filter = &s->filter;
    t->attribute = &s->attribute;

    /* Columns of the state. */
    fsi__particles_column(t, "position", FSI__COLUMN_LENGTH, &s->position, vector, 0, FSI__WC_FARTHEST, NULL);
    fsi__particles_column(t, "velocity", FSI__COLUMN_LENGTH, &s->velocity, vector, 0, FSI__WC_FASTEST, NULL);
    fsi__particles_column(t, "force", FSI__COLUMN_LENGTH, &s->force, vector, 0, pull, NULL);
    fsi__particles_column(t, "density", FSI__COLUMN_REAL, &s->density, real, rho0 * thin, rho0 * thick, NULL);
    fsi__particles_column(t, "summed density", FSI__COLUMN_SUM, &im->ratio, sizeof(float), 0, 0, NULL);
    fsi__particles_column(t, "id", FSI__COLUMN_ID, &im->id, word, 0, 0, &s->id);
    fsi__particles_column(t, "filter", FSI__COLUMN_ANY, &s->filter, word, 0, 0, NULL);
    fsi__particles_column(t, "attribute", FSI__COLUMN_ANY, &s->attribute, (size_t)s->desc.attribute_count * real, 0,
        0, NULL);
    fsi__particles_column(t, "emitter", FSI__COLUMN_ANY, &im->source, word, 0, 0, NULL);

    /* Columns that each step finds anew. */
    fsi__particles_column(t, "pressure", FSI__COLUMN_FOUND, &im->pressure, real, 0, 0, &s->pressure);
    fsi__particles_column(t, "room", FSI__COLUMN_FOUND, &im->room, real, 0, 0, NULL);
    fsi__particles_column(t, "last place", FSI__COLUMN_FOUND, &im->last, vector, 0, 0, NULL);
    fsi__particles_column(t, "last filter", FSI__COLUMN_FOUND, &im->seen, word, 0, 0, NULL);
}

FSI_API fsi_status fsi_wcsph_create(fsi_wcsph **out, const fsi_wcsph_desc *desc)
{
    static const char fn[] = "fsi_wcsph_create";
    fsi_wcsph *s;
    fsi__wc_impl *im;
    fsi_status status;

    /* Arguments. Without the right cookie the context of the desc cannot be trusted either. */
    if (out) *out = NULL;
    if (!out || !desc) return FSI_ERROR_ARGUMENT;
    if (desc->cookie != FSI__COOKIE('e', fsi_wcsph_desc) || !fsi__is_context(desc->context)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__wc_check_desc(desc->context, fn, desc));
    FSI__TRY(fsi__wc_check_domain(desc, fn));

    /* Simulator and its private part in one block. */
    s = (fsi_wcsph *)fsi__alloc(desc->context, 1, sizeof *s + sizeof *im);
    if (!s) return fsi__fail(desc->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for the simulator");
    im = (fsi__wc_impl *)(void *)(s + 1);
    im->own_context = fsi_default_context();
    s->cookie = FSI__COOKIE('w', fsi_wcsph);
    s->context = desc->context ? desc->context : &im->own_context;

    /* Its tables. */
    fsi__sources_start(&im->sources, s->context, desc->dim, desc->attribute_count, desc->spacing);
    fsi__obstacles_start(&im->obstacles, s->context, desc->dim, sizeof *im->obstacle);
    im->obstacles.local = 1;
    s->desc = *desc;
    s->impl = im;
    im->surfaces_changed = 1;
    fsi__wc_derive(s);
    fsi__wc_make_table(s);

    /* Memory. */
    status = fsi__particles_reserve(&im->particles, fn, desc->reserve);
    if (status != FSI_OK) {
        fsi_wcsph_destroy(s);
        return status;
    }
    *out = s;
    return FSI_OK;
}

FSI_API fsi_status fsi_wcsph_set_desc(fsi_wcsph *s, const fsi_wcsph_desc *desc)
{
    static const char fn[] = "fsi_wcsph_set_desc";
    static const fsi__fixed fixed[] = {
        FSI__FIXED(fsi_wcsph_desc, context), FSI__FIXED(fsi_wcsph_desc, dim), FSI__FIXED(fsi_wcsph_desc, spacing),
        FSI__FIXED(fsi_wcsph_desc, support), FSI__FIXED(fsi_wcsph_desc, density), FSI__FIXED(fsi_wcsph_desc, domain),
        FSI__FIXED(fsi_wcsph_desc, origin), FSI__FIXED(fsi_wcsph_desc, attribute_count)
    };
    FSI__TRY(fsi__wc_check(s));
    FSI__TRY(fsi__check_filled(s->context, fn, desc, FSI__COOKIE('e', fsi_wcsph_desc), "fsi_wcsph_default_desc"));
    FSI__TRY(fsi__wc_check_desc(s->context, fn, desc));
    FSI__TRY(FSI__CHECK_FIXED(s->context, fn, desc, &s->desc, fixed));
    ((fsi__wc_impl *)s->impl)->surfaces_changed |= desc->offset_compensation != s->desc.offset_compensation;
    s->desc = *desc;
    fsi__wc_derive(s);
    return FSI_OK;
}

FSI_API void fsi_wcsph_destroy(fsi_wcsph *s)
{
    fsi__wc_impl *im;
    fsi_context *context;
    int k;
    if (fsi__wc_check(s) != FSI_OK) return;
    im = (fsi__wc_impl *)s->impl;
    context = s->context;
    for (k = 0; k < im->obstacles.count; k++) fsi__wc_free_samples(context, &im->obstacle[k].samples);
    fsi__obstacles_free(&im->obstacles);
    fsi__free(context, im->need, (size_t)im->need_count, sizeof(int));
    fsi__sources_free(&im->sources);
    fsi__arena_free(context, &im->scratch);
    fsi__arena_free(context, &im->lists);
    fsi__arena_free(context, &im->touch);
    fsi__particles_free(&im->particles);
    s->cookie = 0;
    fsi__free(s->desc.context, s, 1, sizeof *s + sizeof *im); /* not from the context that it may hold itself */
}

FSI_API const fsi_error *fsi_wcsph_error(const fsi_wcsph *s) { return fsi__error_of(s ? s->context : NULL); }

/* ---- >>particles ---------------------------------------------------------------------------------------------- */

FSI_API fsi_status fsi_wcsph_add_particles(fsi_wcsph *s, const fsi_vec3 *positions, const fsi_vec3 *velocities,
                                           int count)
{
    fsi__wc_impl *im;
    int k;
    FSI__TRY(fsi__wc_check(s));
    im = (fsi__wc_impl *)s->impl;
    FSI__TRY(fsi__particles_add(&im->particles, "fsi_wcsph_add_particles", positions, velocities, count));
    for (k = s->count - count; k < s->count; k++) {
        s->density[k] = s->desc.density;
        im->last[k] = s->position[k];
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_wcsph_remove_particles(fsi_wcsph *s, const unsigned char *gone)
{
    FSI__TRY(fsi__wc_check(s));
    return fsi__particles_remove(&((fsi__wc_impl *)s->impl)->particles, "fsi_wcsph_remove_particles", gone);
}

/* Distance of x to an obstacle's surface where it is now. */
static double fsi__wc_distance_to(const fsi_wcsph *s, const fsi__wc_obstacle *o, fsi_vec3 x)
{
    const int layer = o->desc.surface == FSI_WCSPH_SURFACE_SAMPLES;
    const fsi_vec3 l = o->base.carrier ? fsi_pose_local(o->base.at, x) : x;
    const fsi_mesh_hit hit = fsi_mesh_closest(o->base.mesh, l, FSI_REAL_MAX, -1);
    double d = hit.side < 0 && o->base.mesh->kind != FSI_MESH_TWO_SIDED ? -(double)hit.t : (double)hit.t, least;
    if (!layer) return d;
    { /* the nearest sample is within a spacing and r_P of the nearest point of the mesh */
        const double reach = (double)hit.t + 2 * (double)s->desc.spacing;
        if (fsi__wc_nearest_sample(fsi__wc_seek_cells(&o->samples, l, reach), l, reach, &least) < 0)
            least = (double)FSI_REAL_MAX;
    }
    return o->base.mesh->kind == FSI_MESH_CLOSED && d < 0 && least > d ? d : least;
}

FSI_API fsi_real fsi_wcsph_distance(const fsi_wcsph *s, fsi_vec3 x, int *obstacle)
{
    const fsi__wc_impl *im;
    double best = (double)FSI_REAL_MAX;
    int k;
    if (obstacle) *obstacle = -1;
    if (fsi__wc_check(s) != FSI_OK || !fsi_v3_is_finite(x)) return FSI_REAL_MAX;
    im = (const fsi__wc_impl *)s->impl;
    if (fsi__wc_has_domain(s)) best = fsi__wc_clamp(s, &x, 0) + (double)s->radius;
    for (k = 0; k < im->obstacles.count; k++) {
        const double d = fsi__wc_distance_to(s, &im->obstacle[k], x);
        if (!(d < best)) continue;
        best = d;
        if (obstacle) *obstacle = im->obstacle[k].base.id;
    }
    return (fsi_real)best;
}

/* Is x at least r_F away from everything, and inside nothing? */
static int fsi__wc_is_free(const void *simulator, fsi_vec3 x)
{
    const fsi_wcsph *s = (const fsi_wcsph *)simulator;
    const fsi__wc_impl *im = (const fsi__wc_impl *)s->impl;
    const fsi_real least = s->radius * (fsi_real)0.998;
    int k;
    if (fsi__wc_has_domain(s) && fsi__wc_clamp(s, &x, 0) < (double)(least - s->radius)) return 0;
    for (k = 0; k < im->obstacles.count; k++) {
        const fsi__wc_obstacle *o = &im->obstacle[k];
        fsi_box3 at;
        at.lo = at.hi = o->base.carrier ? fsi_pose_local(o->base.at, x) : x;
        if ((o->base.mesh->container || fsi_box3_overlap(fsi_box3_inflate(at, s->desc.spacing), o->base.mesh->box))
            && fsi__wc_distance_to(s, o, x) < (double)least) return 0;
    }
    return 1;
}

static fsi_status fsi__wc_add_site(void *simulator, fsi_vec3 x, fsi_vec3 velocity)
{
    return fsi_wcsph_add_particles((fsi_wcsph *)simulator, &x, &velocity, 1);
}

static fsi_status fsi__wc_fill(fsi_wcsph *s, fsi__fill fill, int *added)
{
    if (added) *added = 0;
    FSI__TRY(fsi__wc_check(s));
    fill.clip = fsi__wc_has_domain(s) ? s->desc.domain : fsi_box3_empty();
    fill.is_free = fsi__wc_is_free;
    fill.add = fsi__wc_add_site;
    fill.simulator = s;
    return fsi__particles_fill(&((fsi__wc_impl *)s->impl)->particles, &fill, added);
}

FSI_API fsi_status fsi_wcsph_fill_box(fsi_wcsph *s, fsi_box3 box, fsi_vec3 velocity, int *added)
{
    return fsi__wc_fill(s, fsi__fill_box("fsi_wcsph_fill_box", box, velocity), added);
}

FSI_API fsi_status fsi_wcsph_fill_sphere(fsi_wcsph *s, fsi_vec3 center, fsi_real radius, fsi_vec3 velocity, int *added)
{
    return fsi__wc_fill(s, fsi__fill_sphere("fsi_wcsph_fill_sphere", center, radius, velocity), added);
}

FSI_API fsi_status fsi_wcsph_fill_mesh(fsi_wcsph *s, const fsi_mesh *mesh, fsi_vec3 velocity, int *added)
{
    return fsi__wc_fill(s, fsi__fill_mesh("fsi_wcsph_fill_mesh", mesh, velocity), added);
}

/* ---- >>emitters and sinks --------------------------------------------------------------------------------------- */

FSI_API fsi_status fsi_wcsph_add_emitter(fsi_wcsph *s, const fsi_emitter_desc *desc, int *id)
{
    FSI__TRY(fsi__wc_check(s));
    return fsi__sources_add_emitter(&((fsi__wc_impl *)s->impl)->sources, "fsi_wcsph_add_emitter", desc, id);
}

FSI_API fsi_status fsi_wcsph_set_emitter(fsi_wcsph *s, int id, const fsi_emitter_desc *desc)
{
    FSI__TRY(fsi__wc_check(s));
    return fsi__sources_set_emitter(&((fsi__wc_impl *)s->impl)->sources, "fsi_wcsph_set_emitter", id, desc);
}

FSI_API fsi_status fsi_wcsph_remove_emitter(fsi_wcsph *s, int id)
{
    fsi__wc_impl *im;
    FSI__TRY(fsi__wc_check(s));
    im = (fsi__wc_impl *)s->impl;
    return fsi__sources_remove_emitter(&im->sources, "fsi_wcsph_remove_emitter", id, im->source, s->count);
}

FSI_API fsi_status fsi_wcsph_emitter_total(const fsi_wcsph *s, int id, long long *emitted, long long *blocked,
                                           long long *refused)
{
    FSI__TRY(fsi__wc_check(s));
    return fsi__sources_emitter_total(&((fsi__wc_impl *)s->impl)->sources, "fsi_wcsph_emitter_total", id, emitted,
                                      blocked, refused);
}

FSI_API fsi_status fsi_wcsph_add_sink(fsi_wcsph *s, const fsi_sink_desc *desc, int *id)
{
    FSI__TRY(fsi__wc_check(s));
    return fsi__sources_add_sink(&((fsi__wc_impl *)s->impl)->sources, "fsi_wcsph_add_sink", desc, id);
}

FSI_API fsi_status fsi_wcsph_remove_sink(fsi_wcsph *s, int id)
{
    FSI__TRY(fsi__wc_check(s));
    return fsi__sources_remove_sink(&((fsi__wc_impl *)s->impl)->sources, "fsi_wcsph_remove_sink", id);
}

FSI_API fsi_status fsi_wcsph_sink_total(const fsi_wcsph *s, int id, long long *removed)
{
    FSI__TRY(fsi__wc_check(s));
    return fsi__sources_sink_total(&((fsi__wc_impl *)s->impl)->sources, "fsi_wcsph_sink_total", id, removed);
}

FSI_API fsi_status fsi_wcsph_settle_density(fsi_wcsph *s, fsi_vec3 level)
{
    const double c = s ? (double)s->sound_speed : 1;
    int i;
    FSI__TRY(fsi__wc_check(s));
    if (!fsi_v3_is_finite(level))
        return fsi__fail(s->context, FSI_ERROR_NAN, "fsi_wcsph_settle_density", -1, 0, "level is not finite");
    for (i = 0; i < s->count; i++) { /* B ((rho/rho0)^7 - 1) = rho0 |g| d, B = rho0 c^2/7 */
        const double head = (double)fsi_v3_dot(s->desc.gravity, fsi_v3_sub(s->position[i], level));
        s->density[i] =
            (fsi_real)((double)s->desc.density * (head > 0 ? fsi_exp(fsi_log(1 + 7 * head / (c * c)) / 7) : 1));
    }
    return FSI_OK;
}

/* ---- >>obstacles ---------------------------------------------------------------------------------------------- */

FSI_API fsi_wcsph_obstacle_desc fsi_wcsph_default_obstacle_desc(void)
{
    fsi_wcsph_obstacle_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('q', fsi_wcsph_obstacle_desc);
    d.mask = 0xffffffff;
    d.slip = (fsi_real)0.5;
    d.sample_spacing = (fsi_real)0.5;
    return d;
}

static fsi_status fsi__wc_check_obstacle(const fsi_wcsph *s, const char *fn, const fsi_wcsph_obstacle_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_wcsph_obstacle_desc, slip, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_wcsph_obstacle_desc, restitution, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_wcsph_obstacle_desc, surface, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_wcsph_obstacle_desc, sample_spacing, FSI__REAL, 0.2, 0.7, 0)
    };
    const fsi__where at = { fn, "desc.", -1, 3 };
    FSI__TRY(fsi__wc_check(s));
    FSI__TRY(fsi__check_filled(s->context, fn, d, FSI__COOKIE('q', fsi_wcsph_obstacle_desc),
        "fsi_wcsph_default_obstacle_desc"));
    FSI__TRY(fsi__check_mesh(s->context, fn, d->mesh, s->desc.dim, 0));
    if (d->mesh->report.self_intersections > 0)
        return fsi__fail(s->context, FSI_ERROR_MESH, fn, d->mesh->report.first_intersection,
            d->mesh->report.self_intersections, "desc.mesh crosses itself in %d places, first at element %d",
            d->mesh->report.self_intersections, d->mesh->report.first_intersection);
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, d, rows));
    return fsi__check_carrier(s->context, fn, d->body, ((const fsi__wc_impl *)s->impl)->obstacles.next_id,
        s->desc.dim, 1);
}

FSI_API fsi_status fsi_wcsph_add_obstacle(fsi_wcsph *s, const fsi_wcsph_obstacle_desc *desc, int *id)
{
    static const char fn[] = "fsi_wcsph_add_obstacle";
    fsi__wc_impl *im;
    fsi__wc_obstacle *o;
    int made;
    FSI__TRY(fsi__wc_check_obstacle(s, fn, desc));
    im = (fsi__wc_impl *)s->impl;
    o = (fsi__wc_obstacle *)fsi__obstacles_begin(&im->obstacles, fn, desc->mesh, desc->body, desc->mask, NULL);
    im->obstacle = (fsi__wc_obstacle *)im->obstacles.rows;
    if (!o) return FSI_ERROR_MEMORY;
    o->desc = *desc;
    o->gap = (double)s->radius;
    if (!desc->body) o->base.at.orientation = fsi_quat_identity();
    if (desc->surface == FSI_WCSPH_SURFACE_SAMPLES && !fsi__wc_make_samples(s->context, &o->samples, o->base.mesh,
        (double)s->desc.spacing, (double)s->desc.spacing * (double)desc->sample_spacing)) {
        fsi__wc_free_samples(s->context, &o->samples);
        return fsi__obstacles_let_go(&im->obstacles, fn, desc->mesh);
    }
    im->layers += o->samples.count > 0;
    made = fsi__obstacles_keep(&im->obstacles);
    if (id) *id = made;
    im->surfaces_changed = 1;
    return FSI_OK;
}

FSI_API fsi_status fsi_wcsph_add_mesh(fsi_wcsph *s, const fsi_mesh *mesh, int *id)
{
    return fsi_wcsph_add_body(s, mesh, NULL, id);
}

FSI_API fsi_status fsi_wcsph_add_body(fsi_wcsph *s, const fsi_mesh *mesh, fsi_body *body, int *id)
{
    fsi_wcsph_obstacle_desc d = fsi_wcsph_default_obstacle_desc();
    d.mesh = mesh;
    d.body = body;
    return fsi_wcsph_add_obstacle(s, &d, id);
}

/* Simulator and id; the latter's obstacle. */
static fsi_status fsi__wc_find_obstacle(const fsi_wcsph *s, const char *fn, int id, fsi__wc_obstacle **o)
{
    const fsi__wc_impl *im;
    int k;
    *o = NULL;
    FSI__TRY(fsi__wc_check(s));
    im = (const fsi__wc_impl *)s->impl;
    k = fsi__obstacles_find(&im->obstacles, fn, id);
    if (k < 0) return FSI_ERROR_ARGUMENT;
    *o = &im->obstacle[k];
    return FSI_OK;
}

FSI_API fsi_status fsi_wcsph_remove_obstacle(fsi_wcsph *s, int id)
{
    fsi__wc_impl *im;
    fsi__wc_obstacle *o;
    FSI__TRY(fsi__wc_find_obstacle(s, "fsi_wcsph_remove_obstacle", id, &o));
    im = (fsi__wc_impl *)s->impl;
    im->layers -= o->samples.count > 0;
    fsi__wc_free_samples(s->context, &o->samples);
    fsi__obstacles_remove(&im->obstacles, (int)(o - im->obstacle));
    return FSI_OK;
}

FSI_API fsi_status fsi_wcsph_teleport_obstacle(fsi_wcsph *s, int id)
{
    static const char fn[] = "fsi_wcsph_teleport_obstacle";
    fsi__wc_obstacle *o;
    FSI__TRY(fsi__wc_find_obstacle(s, fn, id, &o));
    FSI__TRY(fsi__check_carrier(s->context, fn, o->base.carrier, id, s->desc.dim, 1));
    if (o->desc.surface == FSI_WCSPH_SURFACE_SAMPLES && fsi__obstacle_way(&o->base) > 0)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, id, 0,
                         "obstacle %d has samples and its mesh was moved: fix it to a PRESCRIBED body", id);
    fsi__obstacle_set(&((fsi__wc_impl *)s->impl)->obstacles, &o->base);
    ((fsi__wc_impl *)s->impl)->surfaces_changed = 1;
    return FSI_OK;
}

FSI_API fsi_status fsi_wcsph_obstacle_reaction(const fsi_wcsph *s, int id, fsi_vec3 *force, fsi_vec3 *torque)
{
    fsi__wc_obstacle *o = NULL;
    if (force) *force = fsi_v3(0, 0, 0);
    if (torque) *torque = fsi_v3(0, 0, 0);
    FSI__TRY(fsi__wc_check(s));
    if (id != -1) FSI__TRY(fsi__wc_find_obstacle(s, "fsi_wcsph_obstacle_reaction", id, &o));
    if (force) *force = o ? o->base.force : ((const fsi__wc_impl *)s->impl)->domain_force;
    if (torque) *torque = o ? o->base.torque : ((const fsi__wc_impl *)s->impl)->domain_torque;
    return FSI_OK;
}

FSI_API fsi_status fsi_wcsph_obstacle_samples(const fsi_wcsph *s, int id, int *count, const fsi_vec3 **points,
                                              const fsi_vec3 **normals)
{
    fsi__wc_obstacle *o;
    const fsi__wc_samples *l;
    int k;
    if (count) *count = 0;
    FSI__TRY(fsi__wc_find_obstacle(s, "fsi_wcsph_obstacle_samples", id, &o));
    l = &o->samples;
    for (k = 0; k < l->count; k++) {
        l->shown[k] = o->base.carrier ? fsi_pose_point(o->base.at, l->sample[k].x) : l->sample[k].x;
        l->shown_normal[k] = o->base.carrier ? fsi_quat_rotate(o->base.at.orientation, l->sample[k].n) : l->sample[k].n;
    }
    if (count) *count = l->count;
    if (points) *points = l->shown;
    if (normals) *normals = l->shown_normal;
    return FSI_OK;
}

FSI_API fsi_status fsi_wcsph_set_world(fsi_wcsph *s, fsi_rigid *world)
{
    static const char fn[] = "fsi_wcsph_set_world";
    FSI__TRY(fsi__wc_check(s));
    if (world && fsi__rg_check(world) != FSI_OK) return fsi__fail(s->context, FSI_ERROR_COOKIE, fn, -1, 0,
        "world was not made by fsi_rigid_create of this version and precision");
    if (world && world->desc.dim != s->desc.dim)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, world->desc.dim,
                         "the world's dim is %d, the liquid's %d", world->desc.dim, s->desc.dim);
    ((fsi__wc_impl *)s->impl)->world = world;
    return FSI_OK;
}

FSI__COLD_END

/* ---- >>questions ---------------------------------------------------------------------------------------------- */

FSI_API fsi_status fsi_wcsph_copy(const fsi_wcsph *s, fsi_wcsph_field field, fsi_vec3 origin, float *out, int stride)
{
    fsi__export fields[FSI_WCSPH_ATTRIBUTE + 1];
    FSI__TRY(fsi__wc_check(s));
    fields[FSI_WCSPH_POSITION] = fsi__export_of_vectors(s->position);
    fields[FSI_WCSPH_VELOCITY] = fsi__export_of_vectors(s->velocity);
    fields[FSI_WCSPH_FORCE] = fsi__export_of_vectors(s->force);
    fields[FSI_WCSPH_PRESSURE] = fsi__export_of(s->pressure, NULL, 1, 1);
    fields[FSI_WCSPH_DENSITY_RATIO] = fsi__export_of(s->density, NULL, 1, s->desc.density);
    fields[FSI_WCSPH_ATTRIBUTE] = fsi__export_of(s->attribute, NULL, s->desc.attribute_count, 1);
    return fsi__particles_copy(&((const fsi__wc_impl *)s->impl)->particles, "fsi_wcsph_copy", (int)field, fields,
        FSI_WCSPH_ATTRIBUTE + 1, origin, out, stride);
}

FSI_API fsi_real fsi_wcsph_suggest_dt(const fsi_wcsph *s)
{
    const fsi__wc_impl *im;
    double speed, wall, g;
    int k;
    if (fsi__wc_check(s) != FSI_OK) return 0;
    im = (const fsi__wc_impl *)s->impl;
    speed = fsi__sources_fastest(&im->sources, fsi__longest(s->velocity, s->count));
    wall = im->wall_speed;
    for (k = 0; k < im->obstacles.count; k++) {
        const fsi_body *b = im->obstacle[k].base.carrier;
        const double reach = im->obstacle[k].base.reach;
        if (b && b->mode == FSI_BODY_COUPLED)
            wall = fmax(wall, (double)fsi_v3_norm(b->velocity) + reach * (double)fsi_v3_norm(b->angular_velocity));
    }
    g = fmax(im->amax, (double)fsi_v3_norm(s->desc.gravity)
        + fsi__longest(s->force, s->count) / (double)s->particle_mass);
    return (fsi_real)fsi__wc_limit(s, g, speed, speed + wall);
}

FSI_API fsi_real fsi_wcsph_pressure_at(const fsi_wcsph *s, fsi_vec3 x)
{
    double sum = 0, p = 0;
    int i;
    if (fsi__wc_check(s) != FSI_OK) return 0;
    for (i = 0; i < s->count; i++) {
        const double w = fsi__wc_spline(2 * (double)fsi_v3_norm(fsi_v3_sub(s->position[i], x)) / (double)s->support);
        sum += w;
        p += w * (double)s->pressure[i];
    }
    return (fsi_real)(sum > 0 ? p / sum : 0);
}

FSI_API fsi_vec3 fsi_wcsph_velocity_at(const fsi_wcsph *s, fsi_vec3 x)
{
    fsi__d3 v = fsi__d3_make(0, 0, 0);
    double sum = 0;
    int i;
    if (fsi__wc_check(s) != FSI_OK) return fsi_v3(0, 0, 0);
    for (i = 0; i < s->count; i++) {
        const double w = fsi__wc_spline(2 * (double)fsi_v3_norm(fsi_v3_sub(s->position[i], x)) / (double)s->support);
        sum += w;
        v = fsi__d3_madd(v, w, fsi__d3_of(s->velocity[i]));
    }
    return sum > 0 ? fsi__d3_real(fsi__d3_scale(v, 1 / sum)) : fsi_v3(0, 0, 0);
}

/* Where the last step left an obstacle. Samples of an obstacle without a body are in world coordinates. */
static void fsi__wc_shift_obstacle(const fsi__wc_impl *im, fsi__wc_obstacle *o, fsi_vec3 offset)
{
    int k;
    fsi__obstacle_shift(&im->obstacles, &o->base, offset);
    if (o->base.carrier) return;
    o->base.at.position = fsi_v3_add(o->base.at.position, offset);
    for (k = 0; k < o->samples.count; k++) o->samples.sample[k].x = fsi_v3_add(o->samples.sample[k].x, offset);
    o->samples.corner = fsi_v3_add(o->samples.corner, offset);
}

static void fsi__wc_shift_particles(fsi_wcsph *s, fsi_vec3 offset)
{
    fsi__wc_impl *im = (fsi__wc_impl *)s->impl;
    int i;
    for (i = 0; i < s->count; i++) {
        s->position[i] = fsi_v3_add(s->position[i], offset);
        im->last[i] = fsi_v3_add(im->last[i], offset);
    }
    fsi__sources_shift_flows(&im->sources, offset);
}

FSI_API fsi_status fsi_wcsph_shift_origin(fsi_wcsph *s, fsi_vec3 offset)
{
    static const char fn[] = "fsi_wcsph_shift_origin";
    fsi__wc_impl *im;
    int i;
    FSI__TRY(fsi__wc_check(s));
    if (!fsi_v3_is_finite(offset)) return fsi__fail(s->context, FSI_ERROR_NAN, fn, -1, 0, "the offset is not finite");
    if (s->desc.dim == 2) offset.z = 0;
    if (!fsi__wc_within(fsi_v3_add(s->desc.origin, offset), 1e15))
        return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, -1, 0, "the first origin would lie too far off");
    for (i = 0; i < s->count; i++)
        if (!fsi__wc_within(fsi_v3_add(s->position[i], offset), FSI__WC_FARTHEST))
            return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, i, 0, "particle %d would lie too far off", i);
    im = (fsi__wc_impl *)s->impl;
    fsi__wc_shift_particles(s, offset);
    fsi__sources_shift(&im->sources, offset);
    for (i = 0; i < im->obstacles.count; i++) fsi__wc_shift_obstacle(im, &im->obstacle[i], offset);
    if (fsi__wc_has_domain(s)) {
        s->desc.domain.lo = fsi_v3_add(s->desc.domain.lo, offset);
        s->desc.domain.hi = fsi_v3_add(s->desc.domain.hi, offset);
    }
    s->desc.origin = fsi_v3_add(s->desc.origin, offset);
    im->surfaces_changed = 1; /* distances are as they were but for rounding */
    return FSI_OK;
}

/* Particle i by winding numbers: 1 when it is in a closed obstacle that acts on it, or out of the domain. */
static int fsi__wc_is_inside(const void *liquid, int i)
{
    const fsi_wcsph *s = (const fsi_wcsph *)liquid;
    const fsi__wc_impl *im = (const fsi__wc_impl *)s->impl;
    fsi_vec3 x = s->position[i];
    if (fsi__wc_has_domain(s) && fsi__wc_clamp(s, &x, 0) < -(double)s->radius) return 1;
    return fsi__obstacles_hold(&im->obstacles, s->filter[i], x);
}

FSI_API int fsi_wcsph_count_inside(const fsi_wcsph *s, int *first)
{
    if (first) *first = -1;
    return fsi__wc_check(s) == FSI_OK ? fsi__count_where(s->context, s->count, fsi__wc_is_inside, s, first) : 0;
}

FSI_API void fsi_wcsph_debug_draw(const fsi_wcsph *s, const fsi_debug_draw *draw)
{
    const fsi__wc_impl *im;
    if (!draw || fsi__wc_check(s) != FSI_OK) return;
    im = (const fsi__wc_impl *)s->impl;
    fsi__particles_draw(&im->particles, fsi__export_of(s->pressure, NULL, 1, 1), draw);
    fsi__obstacles_draw(&im->obstacles, draw);
}

FSI__COLD_BEGIN

/* ---- >>state -------------------------------------------------------------------------------------------------- */

static void fsi__wc_state(fsi__stream *st, void *simulator)
{
    fsi_wcsph *s = (fsi_wcsph *)simulator;
    fsi__wc_impl *im = (fsi__wc_impl *)s->impl;
    int k;
    if (st->mode != FSI__HASH || s->desc.origin.x != 0 || s->desc.origin.y != 0 || s->desc.origin.z != 0)
        fsi__bytes(st, &s->desc.origin, sizeof s->desc.origin);
    fsi__bytes(st, &s->time, sizeof s->time);
    fsi__bytes(st, &im->amax, sizeof im->amax);
    fsi__bytes(st, &im->wall_speed, sizeof im->wall_speed);
    fsi__bytes(st, &im->sound_speed, sizeof im->sound_speed);
    fsi__bytes(st, &im->filter_count, sizeof im->filter_count);
    fsi__bytes(st, &im->particles.next, sizeof im->particles.next);
    fsi__sources_state(st, &im->sources);
    fsi__particles_state(st, &im->particles);
    for (k = 0; k < im->obstacles.count; k++) fsi__bytes(st, &im->obstacle[k].base.at, sizeof im->obstacle[k].base.at);
}

static fsi__liquid_head fsi__wc_make_head(const fsi_wcsph *s)
{
    const fsi__wc_impl *im = (const fsi__wc_impl *)s->impl;
    return fsi__particles_head(&im->particles, im->obstacles.count, im->sources.emitter_count, im->sources.sink_count);
}

static void fsi__wc_state_counted(fsi__stream *st, void *simulator)
{
    fsi__liquid_head head = fsi__wc_make_head((fsi_wcsph *)simulator);
    fsi__bytes(st, &head, sizeof head);
    fsi__wc_state(st, simulator);
}

FSI_API fsi_status fsi_wcsph_save(const fsi_wcsph *s, void *buffer, size_t capacity, size_t *size)
{
    FSI__TRY(fsi__wc_check(s));
    return fsi__save(s->context, s->cookie, fsi__wc_state_counted, (void *)(uintptr_t)s, buffer, capacity, size,
                     "fsi_wcsph_save");
}

/* The state's head against the simulator and the bytes that follow it. */
static fsi_status fsi__wc_check_head(const fsi_wcsph *s, const fsi__liquid_head *head, const fsi__stream *st)
{
    static const char fn[] = "fsi_wcsph_load";
    const fsi__wc_impl *im = (const fsi__wc_impl *)s->impl;
    const fsi__liquid_head own = fsi__wc_make_head(s);
    const size_t rest = sizeof(fsi_vec3) + 6 * sizeof(double) + (size_t)own.obstacles * sizeof(fsi_pose)
        + fsi__sources_state_size(&im->sources);
    FSI__TRY(fsi__particles_check_head(&im->particles, fn, head, &own, rest, st));
    if (s->desc.max_particles > 0 && head->count > s->desc.max_particles)
        return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, -1, (double)head->count,
            "the state holds %d particles, desc.max_particles is %d", (int)head->count, s->desc.max_particles);
    return FSI_OK;
}

/* A number of a state that no step could have left, or can start from. */
static fsi_status fsi__wc_bad_state(const fsi_wcsph *s, long long element, double value, const char *what)
{
    return fsi__fail(s->context, fsi_is_finite(value) ? FSI_ERROR_FORMAT : FSI_ERROR_NAN, "fsi_wcsph_load", element,
                     value, "%s %.0f of the state is %g", what, (double)element, value);
}

/* Everything finite and possible that must be? `st` stands behind the head, and returns there. */
static fsi_status fsi__wc_check_content(const fsi_wcsph *s, const fsi__liquid_head *head, fsi__stream *st)
{
    static const char fn[] = "fsi_wcsph_load";
    const size_t start = st->used;
    const fsi__wc_impl *im = (const fsi__wc_impl *)s->impl;
    fsi_vec3 origin = fsi_v3(0, 0, 0);
    double first[4] = { 0, 0, 0, 0 };
    int64_t filter = 0;
    fsi_pose at;
    int k;
    memset(&at, 0, sizeof at);

    /* Origin, time, speeds, and the count of substeps since the last filter. */
    fsi__bytes(st, &origin, sizeof origin);
    fsi__bytes(st, first, sizeof first);
    fsi__bytes(st, &filter, sizeof filter);
    if (!fsi__wc_within(origin, 1e15)) return fsi__wc_bad_state(s, 0, (double)fsi_v3_norm(origin), "origin");
    for (k = 0; k < 4; k++)
        if (!(first[k] >= 0 && first[k] <= 1e60)) return fsi__wc_bad_state(s, k, first[k], "time or speed");
    if (filter < 0 || filter > (int64_t)1 << 60) return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, -1, (double)filter,
        "the count of substeps of the state is %g", (double)filter);

    /* Emitters, sinks and particles. */
    FSI__TRY(fsi__sources_check_state(&im->sources, fn, st, &im->particles, &im->source, head->count,
        fsi_v3_sub(s->desc.origin, origin)));

    /* Obstacles, at the end of the state. */
    st->used = st->capacity - (size_t)head->obstacles * sizeof(fsi_pose);
    for (k = 0; k < im->obstacles.count; k++) {
        fsi__bytes(st, &at, sizeof at);
        FSI__TRY(fsi__obstacle_check_pose(&im->obstacles, fn, k, at));
    }
    st->used = start;
    return fsi__obstacles_check_carriers(&im->obstacles, fn, 1);
}

FSI_API fsi_status fsi_wcsph_load(fsi_wcsph *s, const void *buffer, size_t size)
{
    fsi__wc_impl *im;
    fsi__liquid_head head;
    fsi__stream st;
    fsi_vec3 origin, offset;
    int k;

    /* Check all of the state before anything changes. */
    FSI__TRY(fsi__wc_check(s));
    FSI__TRY(fsi__load_begin(s->context, s->cookie, buffer, size, &st, "fsi_wcsph_load"));
    memset(&head, 0, sizeof head);
    fsi__bytes(&st, &head, sizeof head);
    FSI__TRY(fsi__wc_check_head(s, &head, &st));
    FSI__TRY(fsi__wc_check_content(s, &head, &st));

    /* Take it, and shift it to the present origin. */
    im = (fsi__wc_impl *)s->impl;
    FSI__TRY(fsi__particles_reserve(&im->particles, "fsi_wcsph_load", (int)head.count));
    s->count = (int)head.count;
    origin = s->desc.origin;
    fsi__wc_state(&st, s);
    offset = fsi_v3_sub(origin, s->desc.origin);
    s->desc.origin = origin;
    if (offset.x != 0 || offset.y != 0 || offset.z != 0) {
        fsi__wc_shift_particles(s, offset);
        for (k = 0; k < im->obstacles.count; k++)
            im->obstacle[k].base.at.position = fsi_v3_add(im->obstacle[k].base.at.position, offset);
    }

    /* Derived values: pressures. */
    im->surfaces_changed = 1;
    for (k = 0; k < s->count; k++)
        im->pressure[k] = (fsi_real)fsi__wc_pressure_at(s, im->sound_speed,
                                                        fsi__wc_felt(s, (double)s->density[k], (double)im->ratio[k]));

    /* Obstacles whose pose, but for rounding, is that of the state start from the saved one, as the saved run did. */
    for (k = 0; k < im->obstacles.count; k++)
        fsi__obstacle_load(&im->obstacles, &im->obstacle[k].base, 1e-3 * (double)s->desc.spacing);
    return FSI_OK;
}

FSI_API uint64_t fsi_wcsph_hash(const fsi_wcsph *s)
{
    return fsi__wc_check(s) == FSI_OK ? fsi__state_hash(fsi__wc_state_counted, (void *)(uintptr_t)s) : 0;
}

FSI__COLD_END

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
