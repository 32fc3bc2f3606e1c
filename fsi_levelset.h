/* fsi_levelset.h - liquid as a level set on a sparse grid, which keeps the volume of each of its parts.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_levelset.h"
         #include "fsi_levelset.h"

   A DROP FALLS INTO A POOL
      fsi_context ctx = fsi_default_context();             // hooks for memory, threads, messages; and what went wrong
      fsi_levelset_desc d = fsi_levelset_default_desc();   // physical defaults, SI units
      fsi_levelset *water;
      fsi_box3 pool;
      int step;
      d.context = &ctx;
      d.n[0] = 40; d.n[1] = 40; d.n[2] = 60;               // cells; only those near the liquid cost anything
      d.dx = 0.0032f;                                      // of 3.2 mm
      d.surface_tension = 0.0728f;
      if (fsi_levelset_create(&water, &d) != FSI_OK) { puts(ctx.error.message); return 1; }
      pool.lo = fsi_v3(0, 0, 0);
      pool.hi = fsi_v3(0.128f, 0.128f, 0.04f);
      fsi_levelset_fill_box(water, pool, fsi_v3(0, 0, 0), NULL);
      fsi_levelset_fill_sphere(water, fsi_v3(0.064f, 0.064f, 0.1f), 0.015f, fsi_v3(0, 0, -1), NULL);
      for (step = 0; step < 30; step++) {
          if (fsi_levelset_step(water, (fsi_real)(1.0 / 60)) != FSI_OK) { puts(ctx.error.message); break; }
          printf("%g s: %d parts, volume off by %g\n", water->time, water->component_count, water->stats.volume_error);
      }
      fsi_levelset_destroy(water);

   HOW IT WORKS
      The liquid is where phi < 0, on a sparse grid (fsi_grid.h). A step makes velocities free of divergence, advects
      phi and velocities, gives each connected component its target volume by the smallest change of phi, and makes the
      velocities free of divergence again (the fluid part of the paper on level-set liquid coupled to shells and rods).
      Target volumes follow the liquid through splits and merges: their sum changes only where liquid is added or
      removed. A component that becomes too thin for the grid continues as droplets. Walls and obstacles release liquid
      that they would pull at, where air can get between (desc.release).
   WHAT IT DOES (search for it)
      fsi_levelset_create, _destroy, _error      from a desc: size, gravity, surface tension, viscosity, open sides,
                                                 contact angle, schemes
      fsi_levelset_fill_sphere, _box, _mesh      adds liquid
      fsi_levelset_add_emitter, _sink ...        inflow and outflow, with their totals; _set_volume changes the volume
                                                 of a component
      fsi_levelset_add_obstacle, _add_mesh       closed meshes at rest, in motion, or fixed to an fsi_body, which the
                                                 liquid may carry; _obstacle_reaction
      fsi_levelset_step, _suggest_dt             advances; a step that fails changes nothing
      s->component, s->droplet, s->stats         components with volume, centre, momentum; liquid too small for the
                                                 grid; energies, seconds a phase, iterations
      fsi_levelset_phi_at, _velocity_at, _pressure_at, _copy, _debug_draw       read fields; _update_surface: a mesh
      fsi_levelset_set_desc, _shift_origin       changes gravity, acceleration, tension ...; moves the box, for worlds
                                                 that shift their origin
      fsi_levelset_save, _load, _hash            bitwise
   WHAT IT DOES NOT DO
      Air has pressure 0: bubbles do not keep their volume. Viscosity does not drag bodies: they feel pressure alone.
      Obstacles thinner than a cell may let liquid through. Films thinner than half a cell become droplets: points that
      do not collide in flight, feel neither tension, viscosity nor the shell of fsi_couple.h, and exert no force on
      obstacles. COUPLED bodies, and beside a shell all walls, never release liquid: they pull at it.
   MACROS: those of fsi.h.
   UNITS: SI. In 2D volumes, masses and energies are per metre of depth.
   PRECISION: fields in fsi_real, sums and volumes in double. Recommended: double.
   STACK: up to 100 kB in the caller's thread and in each of the context's.
   COST: about 1.2 us a liquid cell and substep, two projections included; 330 bytes a cell of a block.
   WHAT LIES BELOW
      fsi_levelset_state.h    fsi_levelset_desc, and fsi_levelset with its stats, which you read
      fsi_levelset_walls.h    fsi_levelset_obstacle_desc; obstacles in the grid, walls that release liquid
      fsi_levelset_parts.h    fsi_levelset_emitter_desc, fsi_levelset_sink_desc; droplets, components and their volumes
   FIND IN HERE (search for >>), behind the API
      >>stages of a step, for fsi's own headers, not for you
      >>simulator  >>substep: open sides, kinds of cells, capillary smoothing, viscosity, blocks, sinks  >>step  >>step:
      a substep; and the functions that you call: >>fill  >>sources  >>read out  >>state  >>obstacles, from outside
      >>create
*/
#ifndef FSI_LEVELSET_H
#define FSI_LEVELSET_H

#include "fsi_levelset_parts.h"

/* Makes a simulator with an empty box. Errors: COOKIE, ARGUMENT, NAN (name the field of the desc), LIMIT, MEMORY; then
   *out is NULL. */
FSI_API fsi_status fsi_levelset_create(fsi_levelset **out, const fsi_levelset_desc *desc);
FSI_API void fsi_levelset_destroy(fsi_levelset *s); /* NULL is fine */
/* Changes the desc; start from s->desc. Gravity, acceleration, tension, viscosity, open sides, steps, schemes and
   tolerances may change; context, dim, n, dx, origin, density, time_order and reserve must not, as memory and state
   depend on them. Errors: COOKIE, ARGUMENT and NAN (name the field); nothing has changed then. */
FSI_API fsi_status fsi_levelset_set_desc(fsi_levelset *s, const fsi_levelset_desc *desc);
/* Why the last call on it failed. NULL, as after a create that failed: a constant text that says where to read why.
   Never NULL. */
FSI_API const fsi_error *fsi_levelset_error(const fsi_levelset *s);

/* Adds liquid that moves with `velocity`, at most 1e9 m/s; liquid that is there already keeps its own. Parts
   outside of the box are left out. Target volumes grow by the volume of the new liquid as measured on the grid, *added
   [m^3; 2D: m^2] (NULL is fine): 0, with a message of level 1, where nothing was added: outside of the box, in liquid,
   or smaller than a cell. center, radius, box in metres; the mesh is CLOSED. Sides of a liquid box that lie in walls
   are no free surface, nor are sides along an obstacle within 0.02 dx of it. Errors: COOKIE, ARGUMENT (radius, empty
   box, mesh, speed), NAN, MESH, LIMIT, MEMORY; nothing has changed then. */
FSI_API fsi_status fsi_levelset_fill_sphere(fsi_levelset *s, fsi_vec3 center, fsi_real radius, fsi_vec3 velocity,
                                            double *added);
/* The same with a box. */
FSI_API fsi_status fsi_levelset_fill_box(fsi_levelset *s, fsi_box3 box, fsi_vec3 velocity, double *added);
/* The same with the inside of a mesh. */
FSI_API fsi_status fsi_levelset_fill_mesh(fsi_levelset *s, const fsi_mesh *mesh, fsi_vec3 velocity, double *added);

/* Sets the target volume of a component [m^3; 2D: m^2], from 0 to that of the box: later steps move its surface by at
   most 0.2 dx a substep to reach it. Errors: COOKIE, ARGUMENT (there is no such component; volume), NAN. */
FSI_API fsi_status fsi_levelset_set_volume(fsi_levelset *s, int component, double volume);

/* Adds an emitter; *id (NULL ok) names it in the calls below. Errors: COOKIE, ARGUMENT and NAN (name the field),
   MEMORY. */
FSI_API fsi_status fsi_levelset_add_emitter(fsi_levelset *s, const fsi_levelset_emitter_desc *desc, int *id);
/* Changes its speed, place, shape ...; its total goes on counting. At a new place its nozzle opens anew. Errors as
   above. */
FSI_API fsi_status fsi_levelset_set_emitter(fsi_levelset *s, int id, const fsi_levelset_emitter_desc *desc);
/* The liquid in its nozzle stays. Errors: COOKIE, ARGUMENT (there is no such emitter). */
FSI_API fsi_status fsi_levelset_remove_emitter(fsi_levelset *s, int id);
/* Volume emitted so far, including the first filling of its nozzle (NULL is fine) [m^3; 2D: m^2]. */
FSI_API fsi_status fsi_levelset_emitter_total(const fsi_levelset *s, int id, double *volume);

/* Adds a sink; *id (NULL ok) names it in the calls below. Errors: COOKIE, ARGUMENT and NAN (name the field), MESH,
   MEMORY. */
FSI_API fsi_status fsi_levelset_add_sink(fsi_levelset *s, const fsi_levelset_sink_desc *desc, int *id);
/* Errors: COOKIE, ARGUMENT (there is no such sink). */
FSI_API fsi_status fsi_levelset_remove_sink(fsi_levelset *s, int id);
/* Volume removed so far [m^3; 2D: m^2]. */
FSI_API fsi_status fsi_levelset_sink_total(const fsi_levelset *s, int id, double *volume);

/* Adds an obstacle; *id (NULL ok) names it in the calls below. Liquid that it covers is removed: targets become the
   volumes that are left. Errors: COOKIE, ARGUMENT, NAN (name the field), MESH (not closed), LIMIT, MEMORY; nothing has
   changed then. */
FSI_API fsi_status fsi_levelset_add_obstacle(fsi_levelset *s, const fsi_levelset_obstacle_desc *desc, int *id);
/* The same with all defaults. */
FSI_API fsi_status fsi_levelset_add_mesh(fsi_levelset *s, const fsi_mesh *mesh, int *id);
/* Its place becomes air. Errors as above. */
FSI_API fsi_status fsi_levelset_remove_obstacle(fsi_levelset *s, int id);
/* Moves an obstacle to the present place of its mesh, or pose of its body: the next step does not sweep it there. Its
   old place becomes air, liquid at the new one is removed. Errors as above. */
FSI_API fsi_status fsi_levelset_teleport_obstacle(fsi_levelset *s, int id);
/* Force [N] and torque about the world's origin [N m] of the liquid's pressure on an obstacle, means over the last
   step; 2D: per metre of depth. */
FSI_API fsi_status fsi_levelset_obstacle_reaction(const fsi_levelset *s, int id, fsi_vec3 *force, fsi_vec3 *torque);

/* Advances exactly dt seconds (1e-12 to 1000), in substeps as the desc asks. dt = 0 moves nothing: reactions and
   impulses are then 0, new velocities of COUPLED bodies their present ones. One message of level 1 reports what was not
   done as asked (stats: degraded, thinned, lost_volume, volume_error when it has grown by 1 % since the last report).
   Steps so long that max_substeps are too few (degraded) may splash unphysically, but lose no liquid. Errors: COOKIE,
   ARGUMENT (dt), NAN (names the entry of a velocity that is not finite, or the place where desc.acceleration is not),
   CONVERGENCE (of the pressure or of viscosity), LIMIT (entries of u above 1e12 m/s, before or after, droplets after;
   obstacles faster than 1e9), MEMORY; then nothing has changed. Where viscosity does not converge (spray with viscosity
   dt > 1e5 density dx^2), that substep is done with a hundredth of it, up to three times: small drops still move almost
   rigidly, momentum is conserved and no energy gained, but pools flow more easily in that substep. stats.thinned counts
   them. */
FSI_API fsi_status fsi_levelset_step(fsi_levelset *s, fsi_real dt);
/* The largest step that takes one substep now [s], 1e-12 to 1000, if meshes and PRESCRIBED bodies move no faster than
   the liquid; 0 where desc.acceleration is not finite now, which fsi_levelset_error tells. */
FSI_API fsi_real fsi_levelset_suggest_dt(const fsi_levelset *s);

/* Adds offset [m] to the box (desc.origin), droplets, emitters, sinks and the last places of obstacles, for worlds that
   shift their origin. Meshes and bodies are the caller's: add it to them as well before the next call (fsi_mesh_set;
   pose and end). Apart from rounding, later steps are the same as without; states saved before are refused until the
   shift is undone. Errors: COOKIE, NAN, LIMIT (the box would lie too far off); then nothing has changed. */
FSI_API fsi_status fsi_levelset_shift_origin(fsi_levelset *s, fsi_vec3 offset);

/* Values by linear interpolation; beyond the box those at its sides, for a NaN coordinate at its lower side; in 2D z is
   ignored; 0 (phi: 8 dx) far from the liquid. phi [m], velocity [m/s], pressure [Pa]. Within half a cell of an obstacle
   the pressure blends into that of the cell in front of the wall, extrapolated to x by rho g (desc.acceleration is
   evaluated there): its integral over a wall is the reaction. Inside an obstacle, as of the last call, phi is at least
   the depth below its surface, up to 6 dx: there is no liquid. */
FSI_API fsi_real fsi_levelset_phi_at(const fsi_levelset *s, fsi_vec3 x);
FSI_API fsi_vec3 fsi_levelset_velocity_at(const fsi_levelset *s, fsi_vec3 x);
FSI_API fsi_real fsi_levelset_pressure_at(const fsi_levelset *s, fsi_vec3 x);

/* Fields for fsi_levelset_copy, and their floats a cell. */
typedef enum fsi_levelset_field {
    FSI_LEVELSET_PHI, FSI_LEVELSET_PRESSURE, /* 1 */
    FSI_LEVELSET_VELOCITY                    /* at the centre: 3 (in 2D too) */
} fsi_levelset_field;
/* Copies a field of the cells lo .. lo + n - 1 as packed floats, for a GPU or a file: cell (i, j, k) of these at out[(k
   n[1] + j) n[0] + i], 3 numbers each for velocities; phi as fsi_levelset_phi_at has it. lo and n NULL: the whole box,
   desc.n cells. In 2D lo[2] and n[2] are ignored. Errors: COOKIE, ARGUMENT (unknown field, cells beyond the box, out
   NULL). */
FSI_API fsi_status fsi_levelset_copy(const fsi_levelset *s, fsi_levelset_field field, const int *lo, const int *n,
                                     float *out);

/* The surface of the liquid for rendering, by fsi_grid_surface_update, which documents `capped` and the arrays. At an
   obstacle, as of the last call, the mesh closes dx/4 inside it, where it is hidden. Uses scratch of s: no other call
   on s at the same time. Errors: COOKIE, and those of fsi_grid_surface_update; the former surface stays then. */
FSI_API fsi_status fsi_levelset_update_surface(const fsi_levelset *s, fsi_grid_surface *surface, int capped);

/* State: blocks with level set, velocities and pressure, target volumes of components, droplets, time, progress of
   emitters and sinks. Obstacles, bodies, descs of emitters and sinks, and desc are not saved: load into a simulator
   made alike (another dim, n, dx, origin, time_order, other obstacles, emitters or sinks, by their ids, are refused),
   after moving meshes (fsi_mesh_set) and bodies back. load takes their present places (a body that is at its saved pose
   up to rounding gets exactly that pose), and refuses (FORMAT) a state whose liquid they divide into another number of
   components than when it was saved. Labels and shapes of components are recomputed. NULL buffer asks the size. Errors:
   COOKIE, LIMIT (capacity), FORMAT (a damaged or foreign buffer), NAN, MEMORY; nothing changes then. */
FSI_API fsi_status fsi_levelset_save(const fsi_levelset *s, void *buffer, size_t capacity, size_t *size);
FSI_API fsi_status fsi_levelset_load(fsi_levelset *s, const void *buffer, size_t size);
/* Hash of what save writes. Equal after equal steps, for any number of threads. */
FSI_API uint64_t fsi_levelset_hash(const fsi_levelset *s);

/* The surface, coloured by component (3D: triangles, or their edges where there is no `triangle`; 2D: lines), droplets
   as points, and in grey the edges of blocks. Allocates memory; without it, it draws blocks alone. */
FSI_API void fsi_levelset_debug_draw(const fsi_levelset *s, const fsi_debug_draw *draw);

/* ---- >>stages: a step in pieces, for fsi's own headers, not for you ---------------------------------------------- */

/* fsi_levelset_step calls these in this order. A solver that couples a liquid with solids (fsi_couple.h) calls them
   too, and adds its own part where a line ends in +:

      begin_step                checks; copies the state into the trial, on which all stages work
      while left:
         open                   length of the substep +; emitters, droplets that rejoin the liquid
         force                  gravity, surface tension
         project FIRST
         if smooths: smooth, project AGAIN
         if desc.viscosity > 0: hold_viscous +, thicken, project AGAIN
         expect_momentum        momentum that advection must conserve, unless joint; without this call none is restored
         advect_surface         next_phi: trial_phi advected by trial_u +
         advect                 next_u likewise; open sides, walls that release liquid, obstacles, distance
         follow                 components of next_phi and their targets; droplets
         keep_volumes, or +     components get their target volumes, if desc.conserve_volume
         settle                 components that merged or split in that
         regrid                 blocks for the new surface; next_phi, next_u become the trial's; the momentum that
                                advection lost is restored; sinks
         project LAST
         owe_momentum           momentum that is still missing, unless joint
         close
      end_step                  publishes the trial at once, or drops it

   where project stands for

         open_projection        kinds of cells, obstacles, prescribed faces: `flow`
         solve_pressure, or +   makes trial_u free of divergence
         close_projection       pressure, impulses on obstacles, velocities beyond the surface; air cells beside it +
         finish_projection      makes these free of divergence

   Errors are those of fsi_levelset_step, in s->context, with the name `fn` given to begin_step. After begin_step,
   end_step must be called in any case. Entries number the cells of blocks: block * block_cells + x + 8 y + 64 z.
   fsi_levelset_walls.h declares solve_pressure; fsi_levelset_parts.h keep_volumes, the functions of which a driver may
   build its own, and the two of momentum. */

/* The address is constant; the contents are valid from begin_step, begin_edit or read_state to the end of that call. */
FSI_API const fsi__ls_view *fsi__ls_view_of(const fsi_levelset *s);
/* Begins a step of dt seconds. joint: 1 where velocities of solids are solved for together with the liquid's: pressure
   is then not carried to the next substep (time_order), and walls do not release liquid. fn: the function that errors
   name; it must outlive the step. After an error nothing has changed. */
FSI_API fsi_status fsi__ls_begin_step(fsi_levelset *s, double dt, int joint, const char *fn, fsi__ls_run **run);
FSI_API int fsi__ls_left(const fsi__ls_run *run);                     /* 1: another substep is needed */
/* speed: of the solids [m/s]. share: how long the substep is, over what cfl, max_substeps and the step allow: 1, or
   1/2, 1/4 ... */
FSI_API fsi_status fsi__ls_open(fsi__ls_run *run, double speed, double share);
FSI_API fsi_status fsi__ls_force(fsi__ls_run *run);
FSI_API fsi_status fsi__ls_open_projection(fsi__ls_run *run, int which, fsi_pressure_flow *flow);
FSI_API fsi_status fsi__ls_close_projection(fsi__ls_run *run);
FSI_API void fsi__ls_finish_projection(fsi__ls_run *run);
FSI_API int fsi__ls_smooths(const fsi__ls_run *run);                  /* 1: substep beyond the capillary limit */
FSI_API fsi_status fsi__ls_smooth(fsi__ls_run *run);
FSI_API void fsi__ls_hold_viscous(fsi__ls_run *run);
FSI_API fsi_status fsi__ls_thicken(fsi__ls_run *run);
FSI_API fsi_status fsi__ls_advect_surface(fsi__ls_run *run);
FSI_API fsi_status fsi__ls_advect(fsi__ls_run *run);
/* 1: liquid and air are at least 1.5 dx deep on both sides of the surface nearest to cell e, where the substep began */
FSI_API int fsi__ls_is_resolved(const fsi__ls_run *run, int e);
FSI_API fsi_status fsi__ls_follow(fsi__ls_run *run);
FSI_API fsi_status fsi__ls_settle(fsi__ls_run *run);
FSI_API fsi_status fsi__ls_regrid(fsi__ls_run *run);
FSI_API void fsi__ls_close(fsi__ls_run *run);
/* status: of the stages so far. FSI_OK: publishes; else, or if that fails, the liquid is as it was. Returns status, or
   the error of publishing. */
FSI_API fsi_status fsi__ls_end_step(fsi__ls_run *run, fsi_status status);

/* Begins a change of the liquid between steps: next_phi starts as the state's phi, and may be written. */
FSI_API fsi_status fsi__ls_begin_edit(fsi_levelset *s, const char *fn, fsi__ls_run **run);
/* changed: 1: cells near the surface were written. Sums of target volumes [m^3; 2D: m^2], before and now. */
FSI_API fsi_status fsi__ls_measure_edit(fsi__ls_run *run, int changed, double *before, double *now);
FSI_API fsi_status fsi__ls_end_edit(fsi__ls_run *run, fsi_status status); /* as fsi__ls_end_step */

/* fsi_levelset_load in two parts: reads and checks a state, whose phi is then trial_phi; makes it the liquid's if
   status is FSI_OK, else drops it. */
FSI_API fsi_status fsi__ls_read_state(fsi_levelset *s, const void *buffer, size_t size, fsi__ls_run **run);
FSI_API fsi_status fsi__ls_take_state(fsi__ls_run *run, fsi_status status);

FSI_API unsigned fsi__ls_moves(const fsi_levelset *s); /* steps with dt > 0, loads, shifts of the origin so far */
/* The largest step that takes one substep if solids move at `speed` [m/s]; 0: desc.acceleration is not finite, an error
   of fn. */
FSI_API fsi_real fsi__ls_suggest_dt(const fsi_levelset *s, double speed, const char *fn);

#endif /* FSI_LEVELSET_H */

/* ==== Stop here if you only want the API. ====================================================================== */

/* The functions of each stage of a step (>>stages says what stages are for); names without their fsi__ls_:

      begin_step         begin: state to trial; begin_obstacles; check_velocity
      open               open_emitters; condense: droplets; find_speed, largest_dt; emit
      force              accelerate; push_bodies; curvatures; push: surface tension as a force
      open_projection    find_solids: psi; find_faces; kinds: of cells; find_rims: where walls may release; hold_faces
      solve_pressure     in fsi_levelset_walls.h
      close_projection   add_pressure; take_impulses: on obstacles; extrapolate; mark_shore
      finish_projection  close_shore; keep_pressure: what time_order 2 carries on
      smooth             smooth_axis: capillary smoothing, where the substep is too long for surface tension by itself
      thicken            fsi_viscosity_solve
      advect_surface     leave: through open sides; relax; fsi_grid_advect
      advect             advect_velocity; fill_nozzles; let_air_in; open_gaps; enter_solids; redistance
      follow             fly: droplets; follow_components: labels and targets; take_up; drop_foundlings
      keep_volumes       in fsi_levelset_parts.h
      settle             follow_components, where cells changed sides
      regrid             make_blocks; relabel; drain_all: sinks
      end_step           check_result; commit: trial to state; commit_obstacles; publish */

#ifdef FSI_IMPLEMENTATION
#undef FSI_LEVELSET_IMPLEMENTATION
#define FSI_LEVELSET_IMPLEMENTATION
#endif
#ifdef FSI_LEVELSET_IMPLEMENTATION
#ifndef FSI_LEVELSET_IMPLEMENTATION_DONE
#define FSI_LEVELSET_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_levelset_parts.h"
#include <stdlib.h>

FSI__STRICT_BEGIN

/* ---- >>simulator ---------------------------------------------------------------------------------------------- */

#define FSI__LS_FAR 7    /* layers of faces beyond the liquid that reach over 3.5 cells */
#define FSI__LS_VISCOSITY_TOLERANCE 1e-4 /* error of the change of u by viscosity, relative to it */
#define FSI__LS_THINNER 3 /* how often it may be lowered where it does not converge */
#define FSI__LS_MOST 1e30    /* of any other number of a state */

FSI_API const fsi_error *fsi_levelset_error(const fsi_levelset *s) { return fsi__error_of(s ? s->context : NULL); }

static fsi__ls_run fsi__ls_make_run(fsi_levelset *s)
{
    fsi__ls_run run;
    memset(&run, 0, sizeof run);
    run.s = s;
    run.m = (fsi__ls_impl *)s->impl;
    run.grid = s->grid;
    run.function = "fsi_levelset_step";
    run.time = s->time;
    run.clock = fsi__now(s->context);
    return run;
}

/* Updates the view. */
static void fsi__ls_show(const fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    fsi__ls_view *v = &m->view;
    int a;

    /* substep and fields */
    v->dt = run->dt;
    v->done = run->done;
    v->substeps = run->stats.substeps;
    v->trial_phi = m->trial_phi;
    v->next_phi = m->next_phi;
    for (a = 0; a < 3; a++) {
        v->trial_u[a] = m->trial_u[a];
        v->next_u[a] = m->next_u[a];
        v->known[a] = m->known[a];
    }

    /* results of forces and projections */
    v->trial_pressure = m->trial_pressure;
    v->curvature = m->curvature;
    v->trust = m->trust;
    v->psi = m->obstacle_count > 0 ? m->psi : NULL;
    v->cell = m->cell;
    v->shore = m->shore;

    /* components */
    v->trial_label = m->trial_label;
    v->next_label = m->next_label;
    v->parts = m->trial.count;
    v->next_parts = m->next.count;
    v->target = m->trial.target;
    v->solver = m->solver;
}

FSI_API const fsi__ls_view *fsi__ls_view_of(const fsi_levelset *s) { return &((const fsi__ls_impl *)s->impl)->view; }
FSI_API unsigned fsi__ls_moves(const fsi_levelset *s) { return ((const fsi__ls_impl *)s->impl)->moves; }

static void fsi__ls_each_block_long(fsi__ls_run *run, fsi__range_fn *fn)
{
    fsi__grid_light(run->grid, FSI__LS_GRAIN, 1000, fn, run);
}

/* ---- >>substep: open sides --------------------------------------------------------------------------------------- */

/* Share of the face of a cell in side `side` of the box that is liquid: where phi, linear along the side as its
   differences there say, is below 0. */
static double fsi__ls_wet_share(const fsi__ls_run *run, const int *cell, int side)
{
    const fsi_field *phi = run->m->trial_phi;
    double slope[2] = { 0, 0 };
    int a, k = 0;
    for (a = 0; a < run->grid->dim; a++)
        if (a != side >> 1)
            slope[k++] = fabs((double)fsi_grid_at(phi, cell[0] + (a == 0), cell[1] + (a == 1), cell[2] + (a == 2))
                - (double)fsi_grid_at(phi, cell[0] - (a == 0), cell[1] - (a == 1), cell[2] - (a == 2))) / 2;
    return fsi__viscous_plane(-(double)fsi_grid_at(phi, cell[0], cell[1], cell[2]), slope[slope[0] < slope[1]],
                              slope[!(slope[0] < slope[1])]);
}

/* Outflow through the faces of block b in side `side` of the box: target volumes fall by the sum of u.n dt dx^(d-1)
   times the fraction of the face that is wet and no solid. */
static void fsi__ls_leave_block(fsi__ls_run *run, int b, int side)
{
    const fsi_grid *g = run->grid;
    const int a = side >> 1;
    const double face = g->dim == 3 ? (double)g->dx * (double)g->dx : (double)g->dx;
    fsi__ls_parts *p = &run->m->trial;
    int corner[3], c;
    fsi_grid_corner(g, b, corner);
    for (c = 0; c < g->block_cells; c++) {
        const int cell[3] = { corner[0] + (c & 7), corner[1] + ((c >> 3) & 7), corner[2] + (c >> 6) };
        const size_t e = (size_t)b * (size_t)g->block_cells + (size_t)c;
        const int label = run->m->trial_label[e];
        long long at;
        double out;

        /* liquid cells at this side */
        if (cell[a] != (side & 1 ? g->n[a] - 1 : 0) || label < 0 || cell[0] >= g->n[0] || cell[1] >= g->n[1] ||
            cell[2] >= g->n[2])
            continue;

        /* outflow through the face, at most what the component has */
        at = fsi_grid_entry(g, cell[0] + (side == 1), cell[1] + (side == 3), cell[2] + (side == 5));
        out = at < 0 ? 0 : (side & 1 ? 1 : -1) * (double)run->m->trial_u[a]->value[at] * run->dt * face;
        if (!(out > 0)) continue;
        out *= fsi__ls_wet_share(run, cell, side) * fsi__ls_clear_share(run, e);
        if (out > p->target[label]) out = p->target[label];

        /* the target falls, and momentum leaves with it */
        p->target[label] -= out;
        p->leaving[label] += out;
        fsi__ls_add_due(p, label, -out,
                        fsi_grid_sample_velocity(run->m->trial_u, fsi__ls_entry_position(g, FSI_CELLS, (int)e)));
        run->left_volume += out;
    }
}

static void fsi__ls_leave(fsi__ls_run *run)
{
    fsi__ls_parts *p = &run->m->trial;
    int b, c, side;
    for (c = 0; c < p->count; c++) p->leaving[c] = 0;
    for (side = 0; side < 2 * run->grid->dim; side++)
        for (b = 0; run->s->desc.open_side[side] && b < run->grid->block_count; b++) fsi__ls_leave_block(run, b, side);
}

/* Inflow through an open side is air. Where a step back along the velocity ends less than half a cell from such a side
   or beyond it, phi is extrapolated from the last two cells, if the last one is air. If it is liquid, the surface
   leaves the side, at that cell's centre, once it moves by more than a tenth of a cell: the grid resolves no less. */
static double fsi__ls_incoming(const fsi__ls_run *run, const int *cell, int side, double way)
{
    const int a = side >> 1, step = side & 1 ? -1 : 1, last = side & 1 ? run->grid->n[a] - 1 : 0;
    int at[3] = { cell[0], cell[1], cell[2] };
    double here, inner;
    at[a] = last;
    here = (double)fsi_grid_at(run->m->trial_phi, at[0], at[1], at[2]);
    at[a] = last + step;
    inner = (double)fsi_grid_at(run->m->trial_phi, at[0], at[1], at[2]);
    if (here < 0) return way > 0.1 ? way * (double)run->grid->dx : here;
    return here > inner ? here + (here - inner) * way : here;
}

/* Applies the inflow above to the advected phi, side by side of each cell: next_phi = max(next_phi, inflow). */
static void fsi__ls_let_air_in(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    const fsi__ls_impl *m = run->m;
    int b, c, side, corner[3];
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_grid_corner(g, b, corner);
        for (c = 0; c < g->block_cells; c++) {
            const int cell[3] = { corner[0] + (c & 7), corner[1] + ((c >> 3) & 7), corner[2] + (c >> 6) };
            const size_t at = (size_t)b * (size_t)g->block_cells + (size_t)c;

            /* The departure point, by the velocity at the cell's centre; `way`: how far beyond the last centre [dx]. */
            for (side = 0; side < 2 * g->dim && m->next_phi->value[at] < g->dx; side++) {
                const int a = side >> 1;
                const double u =
                    ((double)m->trial_u[a]->value[at] +
                     (double)fsi_grid_at(m->trial_u[a], cell[0] + (a == 0), cell[1] + (a == 1), cell[2] + (a == 2))) /
                    2;
                const double from = cell[a] - u * run->dt / (double)g->dx,
                             way = side & 1 ? from - (g->n[a] - 1) : -from;
                double come;

                /* Air only: phi never decreases. */
                if (!run->s->desc.open_side[side] || !(way > 0)) continue;
                come = fsi__ls_incoming(run, cell, side, way);
                if (come > (double)m->next_phi->value[at]) m->next_phi->value[at] = (fsi_real)come;
            }
        }
    }
}

static int fsi__ls_is_open(const fsi_levelset_desc *d)
{
    int side, any = 0;
    for (side = 0; side < 2 * d->dim; side++) any |= d->open_side[side];
    return any;
}

/* ---- >>substep: kinds of cells, forces, curvature -------------------------------------------------------------- */

/* Every velocity that stands anywhere gets dt g: liquid and extrapolated alike. */
static void fsi__ls_add_gravity(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const size_t cells = (size_t)run->grid->block_cells;
    const double g[3] = {(double)run->s->desc.gravity.x, (double)run->s->desc.gravity.y,
                         (double)run->s->desc.gravity.z};
    int a;
    size_t e;
    (void)chunk;
    for (a = 0; a < run->grid->dim; a++) {
        fsi_real *u = run->m->trial_u[a]->value;
        const fsi_real push = (fsi_real)(run->dt * g[a]);
        for (e = (size_t)begin * cells; e < (size_t)end * cells; e++) u[e] += push;
    }
}

/* The largest acceleration of liquid [m/s^2] by gravity and desc.acceleration: at cells that phi is the level set
   of. */
static fsi_status fsi__ls_strongest(const fsi_levelset *s, const char *function, const fsi_field *phi, double time,
                                    double *most)
{
    const double g[3] = { (double)s->desc.gravity.x, (double)s->desc.gravity.y, (double)s->desc.gravity.z };
    const int cells = s->grid->block_count * s->grid->block_cells;
    double a[3];
    int e;
    *most = sqrt((double)fsi_v3_norm2(s->desc.gravity));
    for (e = 0; e < cells && s->desc.acceleration; e++) {
        fsi_vec3 x;
        if (!(phi->value[e] < s->grid->dx)) continue;
        x = fsi__ls_entry_position(s->grid, FSI_CELLS, e);
        if (!fsi__ls_acceleration(s, x, time, a)) return fsi__ls_bad_acceleration(s, function, x, time);
        *most = fmax(
            *most, sqrt((a[0] + g[0]) * (a[0] + g[0]) + (a[1] + g[1]) * (a[1] + g[1]) + (a[2] + g[2]) * (a[2] + g[2])));
    }
    return FSI_OK;
}

static fsi_status fsi__ls_grow_sums(fsi__ls_run *run, int *chunks);

/* desc.acceleration on the faces of axis run->axis next to liquid. sum: the last one where that is not finite, -1:
   none. */
static void fsi__ls_accelerate_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const int cells = run->grid->block_cells;
    const double time = run->time + 0.5 * run->dt;
    const fsi_real *phi = run->m->trial_phi->value;
    fsi_real *u = run->m->trial_u[run->axis]->value;
    long long below;
    double a[3];
    int e;
    run->m->sum[chunk] = -1;
    for (e = begin * cells; e < end * cells; e++) {
        if (!(phi[e] < 2 * run->grid->dx) &&
            !(fsi__ls_neighbor(run, e, 2 * run->axis, &below) && phi[below] < 2 * run->grid->dx))
            continue;
        if (!fsi__ls_acceleration(run->s, fsi__ls_entry_position(run->grid, run->m->trial_u[run->axis]->place, e), time,
                                  a))
            run->m->sum[chunk] = e;
        else u[e] += (fsi_real)(run->dt * a[run->axis]);
    }
}

static fsi_status fsi__ls_accelerate(fsi__ls_run *run)
{
    int chunks, k;
    fsi__grid_light(run->grid, FSI__LS_GRAIN, 150, fsi__ls_add_gravity, run);
    if (!run->s->desc.acceleration) return FSI_OK;
    FSI__TRY(fsi__ls_grow_sums(run, &chunks));
    for (run->axis = 0; run->axis < run->grid->dim; run->axis++) {
        fsi__ls_each_block(run, fsi__ls_accelerate_blocks);
        for (k = 0; k < chunks; k++)
            if (run->m->sum[k] >= 0)
                return fsi__ls_bad_acceleration(
                    run->s, run->function,
                    fsi__ls_entry_position(run->grid, run->m->trial_u[run->axis]->place, (int)run->m->sum[k]),
                    run->time + 0.5 * run->dt);
    }
    return FSI_OK;
}

/* The time in which the shortest waves of the grid move on [s]. */
static double fsi__ls_capillary_time(const fsi_levelset_desc *d)
{
    const double dx = (double)d->dx;
    return sqrt((double)d->density * dx * dx * dx / (4 * FSI_PI * ((double)d->surface_tension + 1e-300)));
}

/* How far viscosity governs the shortest waves, 0 to 1: it takes 2 nu k^2 t_c, k = 2/dx, of their amplitude while they
   move on, FSI__LS_CREEPS where it does. */
#define FSI__LS_CREEPS 0.16

static double fsi__ls_creeps(const fsi_levelset_desc *d)
{
    const double dx = (double)d->dx;
    const double taken = 8 * (double)d->viscosity / ((double)d->density * dx * dx) * fsi__ls_capillary_time(d);
    return taken < FSI__LS_CREEPS ? taken / FSI__LS_CREEPS : 1;
}

/* Weight of the curvature at a cell: 1 where phi has slope 1 across it, near one surface alone; lower on a ridge
   between two surfaces, as in a sheet of a cell or two or between drops. Curvature there is that of neither: that of
   the other side of the surface is used. Not alone, though: a surface that passes the centre of a ridge's cell has its
   curvature, and with a weight of 0.01 this comes and goes while the surface moves by a hundredth of a cell. Rims that
   creep came to such places and stayed there, thrown to and fro; for these 0.1 is the least. */
static double fsi__ls_least_trust(const fsi_levelset_desc *d) { return fmax(0.01, 0.1 * fsi__ls_creeps(d)); }

FSI_FN double fsi__ls_trust(const fsi_real *p, int dim, const int *step, double dx, double least)
{
    double slope2 = 0, share;
    int a;
    for (a = 0; a < dim; a++) {
        const double slope = ((double)p[step[a]] - (double)p[-step[a]]) / (2 * dx);
        slope2 += slope * slope;
    }
    share = (slope2 - 0.5) / 0.4;
    return share > 1 ? 1 : (share > least ? share : least);
}

static void fsi__ls_curvatures(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    const int step[3] = { 1, 10, 100 };
    const double dx = (double)g->dx, gamma = (double)run->s->desc.surface_tension;
    const double least = fsi__ls_least_trust(&run->s->desc);
    const double band = (run->s->desc.tension == FSI_LEVELSET_TENSION_DELTA ? 4 : 3.25) * dx;
    fsi_real box[1000];
    int b, x, y, z;
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_real *out = run->m->curvature->value + (size_t)b * (size_t)g->block_cells;
        fsi_real *trust = run->m->trust->value + (size_t)b * (size_t)g->block_cells;
        fsi__grid_gather(run->m->trial_phi, b, 1, box);
        fsi__ls_tilt_walls(run, b, box);
        for (z = 0; z < (g->dim == 3 ? 8 : 1); z++)
            for (y = 0; y < 8; y++)
                for (x = 0; x < 8; x++) {
                    const fsi_real *p = box + (g->dim == 3 ? (z + 1) * 100 : 0) + (y + 1) * 10 + x + 1;
                    *out++ = (fsi_real)(fabs((double)*p) < band ? gamma * fsi__phi_curvature(p, g->dim, step, dx) : 0);
                    *trust++ = (fsi_real)fsi__ls_trust(p, g->dim, step, dx, least);
                }
    }
}

/* Waves of two or three cells along the surface gain energy from the noise of every step and lose none. Surface
   diffusion (Mullins 1957, J. Appl. Phys. 28), V_n = M Laplacian_s(kap), damps them; it keeps volume, and spheres as
   they are:

       phi -= c dx^4 min(1, dt/t_c) Laplacian(kap),   t_c = sqrt(rho dx^3/(4 pi gamma)),   c = 0.005

   The curvature at a cell being that of the surface below it, its Laplacian is that along the surface. A step takes 64
   c = 0.32 of the amplitude of a checkerboard (3D) and c (k dx)^4 of that of a resolved wave: 3e-5 of an ellipsoid's
   with 16 cells a diameter. It is left out as far as viscosity damps these waves: it would move a surface at rest
   under gravity, whose kap has a Laplacian too. */
#define FSI__LS_RELAX 0.005

/* Are liquid and air at least so deep on both sides of the surface nearest to a cell? Only there is the Laplacian of
   its curvature resolved: the rim of a film two cells high would be moved by its error, without end. */
#define FSI__LS_RESOLVED 1.5 /* [dx], two cells from the surface */

FSI_API int fsi__ls_is_resolved(const fsi__ls_run *run, int e)
{
    const fsi_grid *g = run->grid;
    const fsi_real *phi = run->m->trial_phi->value;
    const double dx = (double)g->dx, here = (double)phi[e];
    double n[3] = { 0, 0, 0 }, size, in, out;
    fsi_vec3 x = fsi__ls_entry_position(g, FSI_CELLS, e), step;
    int a;
    for (a = 0; a < g->dim; a++) {
        long long lo, hi;
        if (!fsi__ls_neighbor(run, e, 2 * a, &lo)) lo = e;
        if (!fsi__ls_neighbor(run, e, 2 * a + 1, &hi)) hi = e;
        n[a] = (double)phi[hi] - (double)phi[lo];
    }
    size = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    if (!(size > 0)) return 0;
    step = fsi_v3((fsi_real)(n[0] / size), (fsi_real)(n[1] / size), (fsi_real)(n[2] / size));
    in = (double)fsi_grid_sample_linear(run->m->trial_phi, fsi_v3_madd(x, (fsi_real)(-here - 2 * dx), step));
    out = (double)fsi_grid_sample_linear(run->m->trial_phi, fsi_v3_madd(x, (fsi_real)(-here + 2 * dx), step));
    return in <= -FSI__LS_RESOLVED * dx && out >= FSI__LS_RESOLVED * dx;
}

/* One step of it: next_phi = trial_phi - the displacement, near the surface. */
static void fsi__ls_relax(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    const int step[3] = { 1, 10, 100 };
    const double dx = (double)g->dx, most = 0.1 * dx, ratio = run->dt / fsi__ls_capillary_time(&run->s->desc);
    const double weight = FSI__LS_RELAX * (1 - fsi__ls_creeps(&run->s->desc)) * (ratio < 1 ? ratio : 1) * dx * dx /
                          (double)run->s->desc.surface_tension;
    fsi_real box[1000];
    int b, c, a;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const fsi_real *phi = run->m->trial_phi->value + (size_t)b * (size_t)g->block_cells;
        fsi_real *out = run->m->next_phi->value + (size_t)b * (size_t)g->block_cells;
        const fsi_real *psi =
            run->m->obstacle_count > 0 ? run->m->psi->value + (size_t)b * (size_t)g->block_cells : NULL;
        memcpy(out, phi, (size_t)g->block_cells * sizeof *out);
        fsi__grid_gather(run->m->curvature, b, 1, box);

        /* Cells within two cells of the surface, but not of a solid: there the curvature follows the contact angle. */
        for (c = 0; c < g->block_cells; c++) {
            const fsi_real *p =
                box + (g->dim == 3 ? ((c >> 6) + 1) * 100 : 0) + (((c >> 3) & 7) + 1) * 10 + (c & 7) + 1;
            double move = 0;
            if (!(fabs((double)phi[c]) < 2 * dx) || (psi && (double)psi[c] < 2 * dx)) continue;

            /* Laplacian of the curvature; the displacement is bounded to a tenth of a cell. */
            for (a = 0; a < g->dim; a++) move += (double)p[step[a]] - 2 * (double)*p + (double)p[-step[a]];
            if (!(move < 0 || move > 0) || !fsi__ls_is_resolved(run, b * g->block_cells + c)) continue;
            move *= weight;
            out[c] -= (fsi_real)(move > most ? most : (move < -most ? -most : move));
        }
    }
}

/* (1 + cos(pi y/3))/6, the paper's delta function times dx, y cells from the surface. */
FSI_FN double fsi__ls_delta(double y) { return fabs(y) < 3 ? (1 + fsi_cos(FSI_PI * y / 3)) / 6 : 0; }

/* The paper's force, u -= dt gamma delta1(phi) kap n/rho, delta1 = 2 delta where phi < 0. */
static void fsi__ls_push(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    const int step[3] = { 1, 10, 100 };
    const double dx = (double)g->dx, weight = run->dt / ((double)run->s->desc.density * dx);
    fsi_real phi[1000], kap[1000];
    int b, c, a;
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi__grid_gather(run->m->trial_phi, b, 1, phi);
        fsi__grid_gather(run->m->curvature, b, 1, kap);
        for (c = 0; c < g->block_cells; c++) {
            const int at = (g->dim == 3 ? ((c >> 6) + 1) * 100 : 0) + (((c >> 3) & 7) + 1) * 10 + (c & 7) + 1;
            for (a = 0; a < g->dim; a++) {
                const double hi = (double)phi[at] / dx, lo = (double)phi[at - step[a]] / dx,
                             pull = ((double)kap[at] + (double)kap[at - step[a]]) / 2;
                if (hi + lo < 0)
                    run->m->trial_u[a]->value[(size_t)b * (size_t)g->block_cells + (size_t)c] -=
                        (fsi_real)(weight * 2 * fsi__ls_delta((hi + lo) / 2) * pull * (hi - lo));
            }
        }
    }
}

/* Kinds of cells for the pressure solver: liquid where phi < 0, solid where no face can be open. */
static void fsi__ls_kinds(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const size_t cells = (size_t)run->grid->block_cells;
    size_t e;
    (void)chunk;
    for (e = (size_t)begin * cells; e < (size_t)end * cells; e++)
        run->m->cell[e] =
            run->m->trial_phi->value[e] < 0 ? (unsigned char)FSI_CELL_LIQUID : (unsigned char)FSI_CELL_AIR;
    for (e = (size_t)begin * cells; e < (size_t)end * cells && run->m->obstacle_count > 0; e++)
        if (run->m->psi->value[e] < -run->grid->dx) run->m->cell[e] = FSI_CELL_SOLID;
}

/* Faces of axis run->axis next to a liquid cell are known: the projection made them. */
static void fsi__ls_known_faces(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    const int step = 1 << 3 * run->axis, cells = g->block_cells;
    unsigned char wet[512]; /* of a block: 1: liquid */
    int b, c, k;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const int below = fsi__block_beside(g, b, fsi__step(2 * run->axis)); /* the block before, or none */
        const unsigned char *cell = run->m->cell + (size_t)b * (size_t)cells;
        const unsigned char *before = run->m->cell + (size_t)(below < 0 ? b : below) * (size_t)cells + 7 * step;
        unsigned char *known = run->m->known[run->axis] + (size_t)b * (size_t)cells;
        for (c = 0; c < cells; c++) wet[c] = cell[c] == FSI_CELL_LIQUID;
        for (c = step; c < cells; c++) known[c] = wet[c] | wet[c - step];
        for (k = 0; k < cells / 8; k++) { /* the first cells along the axis */
            c = (k & ~(step - 1)) * 8 + (k & (step - 1));
            known[c] = (unsigned char)(wet[c] | (below >= 0 && before[c] == FSI_CELL_LIQUID));
        }
    }
}

/* Sets the normal velocity to 0 at the walls of the box, except where they have released the liquid. */
static void fsi__ls_hold_walls(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    int b, a, c, side, corner[3];
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_grid_corner(g, b, corner);
        for (a = 0; a < g->dim; a++)
            for (side = 0; side < 2; side++) {
                const int layer = (side ? g->n[a] : 0) - corner[a];
                fsi_real *u = run->m->trial_u[a]->value + (size_t)b * (size_t)g->block_cells;
                if (layer < 0 || layer > 7 || run->s->desc.open_side[2 * a + side]) continue;
                for (c = 0; c < g->block_cells; c++)
                    if ((c >> (3 * a) & 7) == layer && !fsi__ls_has_let_go(run, b * g->block_cells + c, a)) u[c] = 0;
            }
    }
}

/* The velocities that are prescribed: on walls, and on nozzles, which may lie in them. */
static void fsi__ls_hold_faces(fsi__ls_run *run)
{
    int a;
    fsi__grid_light(run->grid, FSI__LS_GRAIN, 65, fsi__ls_hold_walls, run);
    for (a = 0; a < run->grid->dim; a++) fsi__ls_hold_nozzles(run, a, NULL);
}

/* Velocities of trial_u, known next to the cells of kind liquid, spread beyond them along the normals of phi. */
static fsi_status fsi__ls_extrapolate(fsi__ls_run *run)
{
    const int reach =
        run->smooth && fsi__ls_reach(&run->s->desc) < FSI__LS_FAR ? FSI__LS_FAR : fsi__ls_reach(&run->s->desc);
    for (run->axis = 0; run->axis < run->grid->dim; run->axis++) {
        fsi__ls_each_block(run, fsi__ls_known_faces);
        fsi__ls_forget_solid_faces(run);
        fsi__ls_hold_nozzles(run, run->axis, run->m->known[run->axis]);
        FSI__TRY(
            fsi__grid_extrapolate(run->m->trial_u[run->axis], run->m->known[run->axis], reach, run->m->trial_phi));
    }
    fsi__ls_slip(run);
    fsi__ls_hold_faces(run);
    return FSI_OK;
}

/* Adds the pressures of later projections of a substep to that of the first. */
static void fsi__ls_add_pressure(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const size_t cells = (size_t)run->grid->block_cells;
    fsi_real *sum = run->m->trial_pressure->value;
    const fsi_real *add = run->m->spare->value;
    size_t e;
    (void)chunk;
    for (e = (size_t)begin * cells; e < (size_t)end * cells; e++)
        sum[e] = run->m->cell[e] == FSI_CELL_LIQUID ? sum[e] + add[e] : 0;
}

/* Extrapolation continues velocities outward as constants; the surface, which moves with the velocities on both sides
   of it, would lag by k dx/4 in a wave (measured: capillary waves 1.6 % too slow at 32 cells). So air cells beside
   liquid get no divergence either: the excess flow leaves through their faces towards cells that do not touch liquid.
   Each such face belongs to one cell. */
static void fsi__ls_mark_shore(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const int cells = run->grid->block_cells, sides = 2 * run->grid->dim;
    const fsi_real reach = (fsi_real)1.5 * run->grid->dx, *phi = m->trial_phi->value;
    const fsi_real *psi = m->obstacle_count > 0 ? m->psi->value : NULL;
    const unsigned char *cell = m->cell;
    unsigned char *shore = m->shore;
    int b, c, side;
    long long at;
    (void)chunk;

    /* block by block: air cells near the surface, not beside solids, with a liquid cell across a face */
    for (b = begin; b < end; b++) {
        const fsi__ls_around around = fsi__ls_around_of(run->grid, b);
        for (c = 0; c < cells; c++) {
            const size_t e = (size_t)b * (size_t)cells + (size_t)c;
            int wet = 0, solid = psi && psi[e] < 2 * run->grid->dx;
            shore[e] = 0;
            if (cell[e] != FSI_CELL_AIR || !(phi[e] < reach) || solid) continue;
            for (side = 0; side < sides; side++) {
                if (!fsi__ls_across(&around, c, side, &at)) continue;
                wet |= cell[at] == FSI_CELL_LIQUID;
                solid |= cell[at] == FSI_CELL_SOLID;
            }
            shore[e] = (unsigned char)(wet && !solid);
        }
    }
}

/* Takes the net outflow of air cells beside liquid off their faces towards other air, in equal parts. shore 2: none of
   these becomes faster than the fastest face of the cell was. */
static void fsi__ls_close_shore(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const int cells = run->grid->block_cells, sides = 2 * run->grid->dim;
    int e, side;
    (void)chunk;
    for (e = begin * cells; e < end * cells; e++) {
        double over = 0, most = 0;
        fsi_real *out[6];
        long long at;
        int count = 0, whole = 1; /* the faces that may change; 0: a face has no place */
        if (!m->shore[e]) continue;

        /* net outflow of the cell, its fastest face, and the faces that may change */
        for (side = 0; side < sides; side++) {
            const int there = fsi__ls_neighbor(run, e, side, &at);
            fsi_real *u = m->trial_u[side >> 1]->value;
            out[side] = NULL;
            if (side & 1 && at < 0) whole = 0;
            else {
                fsi_real *face = u + (side & 1 ? at : (long long)e);
                over += (double)*face * (side & 1 ? 1 : -1);
                most = fmax(most, fabs((double)*face));
                if (there && m->cell[at] != FSI_CELL_LIQUID && !m->shore[at]) out[side] = face, count++;
            }
        }

        /* these take up the outflow in equal parts */
        for (side = 0; side < sides && whole && count > 0; side++)
            if (out[side]) {
                const double u = (double)*out[side] + over / count * (side & 1 ? -1 : 1);
                *out[side] = (fsi_real)(m->shore[e] == 1 ? u : fmax(-most, fmin(most, u)));
            }
    }
}

/* Input of the pressure solver: cells, solids, surface pressure. The first projection of a substep has gravity and
   surface tension; later ones remove the divergence of advection or smoothing, without forces. */
static fsi_status fsi__ls_fill_flow(fsi__ls_run *run, fsi_pressure_flow *flow)
{
    const fsi_levelset_desc *d = &run->s->desc;
    const int first = run->which == FSI__LS_FIRST;
    int a;

    /* the liquid */
    *flow = fsi_pressure_default_flow();
    for (a = 0; a < run->grid->dim; a++) flow->u[a] = run->m->trial_u[a];
    flow->cell = run->m->cell;
    flow->phi = run->m->trial_phi;
    flow->density = d->density;
    flow->dt = (fsi_real)run->dt;
    /* with thinner cells ripples grow at 5 capillary times, whatever the smoothing (measured) */
    if (run->smooth) flow->theta_min = (fsi_real)0.25;
    memcpy(flow->open_side, d->open_side, sizeof flow->open_side);

    /* solids, nozzles, and kinds of cells */
    fsi__ls_find_solids(run);
    FSI__TRY(fsi__ls_find_faces(run));
    fsi__ls_offer_solids(run, flow);
    fsi__ls_each_block(run, fsi__ls_kinds);
    fsi__ls_mark_nozzles(run);
    FSI__TRY(fsi__ls_find_rims(run));
    fsi__ls_hold_faces(run);

    if (first && d->surface_tension > 0 && d->tension == FSI_LEVELSET_TENSION_JUMP) {
        flow->surface_pressure = run->m->curvature;
        flow->surface_weight = run->m->trust;
    }
    flow->pressure = first ? run->m->trial_pressure : run->m->spare;
    run->m->solver->desc.absolute = first ? 0 : run->divergence;
    return FSI_OK;
}

/* Velocities beyond the surface, and which air cells there get no divergence. */
FSI_API fsi_status fsi__ls_close_projection(fsi__ls_run *run)
{
    const fsi_pressure_stats *t = &run->m->solver->stats;
    run->stats.released += run->released;
    if (run->which != FSI__LS_FIRST) fsi__ls_each_block(run, fsi__ls_add_pressure);
    fsi__ls_take_impulses(run);
    run->divergence = t->divergence;
    if (run->divergence > run->stats.divergence) run->stats.divergence = run->divergence;
    run->stats.pressure_iterations += t->iters;
    fsi__ls_lap(run, &run->stats.seconds_pressure);
    FSI__TRY(fsi__ls_extrapolate(run));
    fsi__ls_each_block(run, fsi__ls_mark_shore);
    return FSI_OK;
}

/* ---- >>substep: capillary smoothing ----------------------------------------------------------------------------- */

/* Semi-implicit tension: the change of tension by the surface's motion within a step, for each component of velocity:

       (I - div(a grad)) u+ = u,    a = 4 dt^2 gamma delta(phi)/rho (1 - (d phi)^2)

   over the faces where phi, mean of the cells beside them, is nearer than 3.5 cells; a stands between two faces,
   between which phi differs by d phi cells. That last factor, the diagonal of 1 - n n^T, keeps to derivatives along the
   surface: with those across it, as the paper has them, the air beside the liquid drives it (measured in 2D: mode 2 of
   a drop of 43 cells grows by 6 % a period at 3 capillary times, by 2 % at 4). 4 is what a drop in 3D needs at 5.
   Divided by its diagonal the matrix has its eigenvalues in [1, 1 + 2 s]/(1 + s), s being the largest sum of a/dx^2
   around a face, so that the Chebyshev iteration (Golub and Varga
   1961) needs no inner products: the same bits for any number of threads. */
typedef struct fsi__ls_face {
    int entry, beside[6];      /* numbers of the faces beside it, -1: none */
    double phi, sum, weight[6];/* [dx]; a/dx^2 towards each, and their sum */
} fsi__ls_face;

#define FSI__LS_SMOOTHED 1e-6  /* of the change is left */
#define FSI__LS_SMOOTH_ROUNDS 1000
#define FSI__LS_FACES 4096     /* a task */

static void fsi__ls_face_columns(fsi__ls_impl *m, fsi__column *c)
{
    c[0].array = (void **)&m->face;        c[0].size = sizeof *m->face;
    c[1].array = (void **)&m->face_change; c[1].size = sizeof *m->face_change;
    c[2].array = (void **)&m->face_left;   c[2].size = sizeof *m->face_left;
}

/* Phi at the face of run->axis below cell c of block b, in dx; 9 if it is no face that may change: on a side of the
   box, or far away. */
static double fsi__ls_face_phi(const fsi__ls_run *run, int b, int c, const int *corner)
{
    const fsi_grid *g = run->grid;
    const fsi_real *phi = run->m->trial_phi->value;
    const double here = (double)phi[(size_t)b * (size_t)g->block_cells + (size_t)c] / (double)g->dx;
    const int at[3] = { corner[0] + (c & 7), corner[1] + ((c >> 3) & 7), corner[2] + (c >> 6) };
    int a;
    long long below;
    if (!(fabs(here) < 4.5) || at[run->axis] == 0) return 9;
    for (a = 0; a < g->dim; a++)
        if (at[a] >= g->n[a]) return 9;
    below = fsi_grid_entry(g, at[0] - (run->axis == 0), at[1] - (run->axis == 1), at[2] - (run->axis == 2));
    return below < 0 ? 9 : (here + (double)phi[below] / (double)g->dx) / 2;
}

/* Numbers of the faces that change, in next_label, which nothing needs at this time. */
static fsi_status fsi__ls_number_faces(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const fsi_grid *g = run->grid;
    fsi__column columns[3];
    int b, c, count, corner[3];
    fsi__ls_face_columns(m, columns);
    for (b = count = 0; b < g->block_count; b++) {
        fsi_grid_corner(g, b, corner);
        if (m->face_capacity - count < g->block_cells)
            FSI__TRY(fsi__room(run->s->context, columns, 3, count, &m->face_capacity, count + 16 * g->block_cells,
                run->function));
        for (c = 0; c < g->block_cells; c++) {
            const double phi = fsi__ls_face_phi(run, b, c, corner);
            m->next_label[b * g->block_cells + c] = fabs(phi) < 3.5 ? count : -1;
            if (!(fabs(phi) < 3.5)) continue;
            m->face[count].entry = b * g->block_cells + c;
            m->face[count++].phi = phi;
        }
    }
    m->face_count = count;
    return FSI_OK;
}

/* Neighbours of the faces, and the coefficients a between them. */
static void fsi__ls_link_faces(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    const double ratio = run->dt / fsi__ls_capillary_time(&run->s->desc), scale = 4 * ratio * ratio / (4 * FSI_PI);
    int i, side, corner[3];
    (void)chunk;
    for (i = begin; i < end; i++) {
        fsi__ls_face *f = &run->m->face[i];
        const int c = f->entry % g->block_cells;
        fsi_grid_corner(g, f->entry / g->block_cells, corner);
        f->sum = 0;

        /* the neighbour on each side, and the coefficient a of the pair */
        for (side = 0; side < 2 * g->dim; side++) {
            const int d = side & 1 ? 1 : -1, a = side >> 1;
            const long long e =
                fsi_grid_entry(g, corner[0] + (c & 7) + (a == 0) * d, corner[1] + ((c >> 3) & 7) + (a == 1) * d,
                               corner[2] + (c >> 6) + (a == 2) * d);
            const int other = e < 0 ? -1 : run->m->next_label[e];
            const double across = other < 0 ? 1 : f->phi - run->m->face[other].phi;
            f->beside[side] = other;
            f->weight[side] = fabs(across) >= 1 ? 0
                                                : (1 - across * across) * scale *
                                                      fsi__ls_delta((f->phi + run->m->face[other].phi) / 2);
            f->sum += f->weight[side];
        }
    }
}

/* Of the faces' values v, the sum of a (v_beside - v)/dx^2 over 1 + sum of a/dx^2. */
FSI_FN double fsi__ls_face_flow(const fsi__ls_face *f, const double *v, double own, int sides)
{
    double flow = 0;
    int side;
    for (side = 0; side < sides; side++)
        if (f->beside[side] >= 0) flow += f->weight[side] * (v[f->beside[side]] - own);
    return flow / (1 + f->sum);
}

/* left = D^-1 div(a grad u). */
static void fsi__ls_smooth_start(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++)
        m->face_left[i] = fsi__ls_face_flow(&m->face[i], m->face_change, m->face_change[i], 2 * run->grid->dim);
}

/* u += change, left -= D^-1 (I - div(a grad)) change. */
static void fsi__ls_smooth_apply(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++) {
        const fsi__ls_face *f = &m->face[i];
        const double own = m->face_change[i];
        m->trial_u[run->axis]->value[f->entry] += (fsi_real)own;
        m->face_left[i] -= own / (1 + f->sum) - fsi__ls_face_flow(f, m->face_change, own, 2 * run->grid->dim);
    }
}

static void fsi__ls_smooth_turn(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++)
        m->face_change[i] = run->face_keep * m->face_change[i] + run->face_add * m->face_left[i];
}

/* A face takes `work` nanoseconds at least: fsi__parallel_work. */
static void fsi__ls_each_face(fsi__ls_run *run, double work, fsi__range_fn *fn)
{
    fsi__parallel_work(run->s->context, run->m->face_count, FSI__LS_FACES, work * run->m->face_count, fn, run);
}

/* With eigenvalues in [c - h, c + h], q = c/h: change_0 = left/c, change_k = r_k r_(k-1) change_(k-1) + 2 r_k/h left,
   r_0 = 1/q, r_k = 1/(2 q - r_(k-1)); after n steps 2 (q + sqrt(q^2 - 1))^-n of the change is left at most. */
static void fsi__ls_smooth_axis(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    double s = 0, c, h, q, r, need;
    int i, k, rounds;

    /* Bounds of the eigenvalues, from the largest row sum. */
    for (i = 0; i < m->face_count; i++) {
        s = m->face[i].sum > s ? m->face[i].sum : s;
        m->face_change[i] = (double)m->trial_u[run->axis]->value[m->face[i].entry];
    }
    if (!(s > 0)) return;
    c = 1;
    h = s / (1 + s);
    q = c / h;
    r = 1 / q;

    /* Iterations until the bound on the remaining change is FSI__LS_SMOOTHED; capped, for very long substeps. */
    need = fsi_log(2 / FSI__LS_SMOOTHED) / fsi_log(q + sqrt(q * q - 1));
    rounds = need < FSI__LS_SMOOTH_ROUNDS ? (int)ceil(need) : FSI__LS_SMOOTH_ROUNDS;

    /* The iteration. */
    fsi__ls_each_face(run, 5, fsi__ls_smooth_start);
    run->face_keep = 0;
    run->face_add = 1 / c;
    for (k = 0; k < rounds; k++) {
        const double last = r;
        fsi__ls_each_face(run, 0.5, fsi__ls_smooth_turn);
        fsi__ls_each_face(run, 6, fsi__ls_smooth_apply);
        r = 1 / (2 * q - last);
        run->face_keep = r * last;
        run->face_add = 2 * r / h;
    }
    run->stats.smoothing_iterations += rounds;
}

/* Smooths trial_u, which reaches FSI__LS_FAR layers of faces beyond the liquid, near the surface of trial_phi. */
FSI_API fsi_status fsi__ls_smooth(fsi__ls_run *run)
{
    for (run->axis = 0; run->axis < run->grid->dim; run->axis++) {
        FSI__TRY(fsi__ls_number_faces(run));
        fsi__ls_each_face(run, 20, fsi__ls_link_faces);
        fsi__ls_smooth_axis(run);
    }
    return FSI_OK;
}

/* ---- >>substep: viscosity ---------------------------------------------------------------------------------------- */

/* Distance from the middle of a face to solids [m]. */
static double fsi__ls_face_psi(const fsi__ls_run *run, int axis, int e)
{
    const fsi_grid *g = run->grid;
    const int c = e % g->block_cells;
    int at[3];
    double below;
    fsi_grid_corner(g, e / g->block_cells, at);
    at[0] += c & 7;
    at[1] += c >> 3 & 7;
    at[2] += c >> 6;
    at[axis]--;
    below = at[axis] < 0 ? (double)run->m->psi->value[e] : (double)fsi_grid_at(run->m->psi, at[0], at[1], at[2]);
    return ((double)run->m->psi->value[e] + below) / 2;
}

/* A face with its middle in a solid, also in its surface, is prescribed, and so is one that it covers. */
static int fsi__ls_holds_face(const fsi__ls_run *run, const fsi__ls_obstacle *o, int f)
{
    return o->faces->solid[f] > (fsi_real)0.999 ||
           !(fsi__ls_face_psi(run, fsi__ls_face_axis(o->faces, f), o->faces->entry[f]) >
             FSI__LS_TIE * (double)run->grid->dx);
}

/* The prescribed faces of an axis: 1 in `known` where liquid sticks, 2 where it slides. Of several obstacles at a face
   each counts by the fraction that it covers, in any order: the velocity is the mean of those that the liquid sticks
   to. */
static void fsi__ls_hold_axis(fsi__ls_run *run, int axis)
{
    fsi__ls_impl *m = run->m;
    /* scratch fields, unused at this point */
    fsi_real *const sum = m->next_u[axis]->value, *const stick = m->next_phi->value, *const slide = m->spare->value;
    int pass, k, f;
    for (pass = 0; pass < 3; pass++)
        for (k = 0; k < m->obstacle_count; k++) {
            const fsi__ls_obstacle *o = &m->obstacle[k];
            for (f = 0; f < o->faces->count; f++) {
                const int e = o->faces->entry[f];
                const fsi_real share = fsi_max(o->faces->solid[f], (fsi_real)1e-6);
                if (fsi__ls_face_axis(o->faces, f) != axis || !fsi__ls_holds_face(run, o, f)) continue;
                if (pass == 0) sum[e] = stick[e] = slide[e] = 0;
                else if (pass == 1 && o->desc.no_slip) stick[e] += share, sum[e] += share * o->velocity[f];
                else if (pass == 1) slide[e] += share;
                else m->known[axis][e] = stick[e] < slide[e] ? 2 : 1;
                if (pass < 2 || !o->desc.no_slip || m->known[axis][e] == 2) continue;
                m->trial_u[axis]->value[e] = stick[e] > share ? sum[e] / stick[e] : o->velocity[f];
            }
        }
}

static void fsi__ls_hold_solids(fsi__ls_run *run)
{
    fsi__ls_face_job job;
    int k, axis;
    job.run = run;
    for (k = 0; k < run->m->obstacle_count; k++) {
        job.o = &run->m->obstacle[k];
        fsi__ls_run_faces(&job, 1024, 8, fsi__ls_face_velocities);
    }
    for (axis = 0; axis < run->grid->dim && run->m->obstacle_count > 0; axis++) fsi__ls_hold_axis(run, axis);
}

/* Faces whose velocity is known: of nozzles and obstacles, which trial_u has then. */
FSI_API void fsi__ls_hold_viscous(fsi__ls_run *run)
{
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    int a;
    for (a = 0; a < run->grid->dim; a++) {
        memset(run->m->known[a], 0, cells); /* it is not needed otherwise now */
        fsi__ls_hold_nozzles(run, a, run->m->known[a]);
    }
    fsi__ls_hold_solids(run);
}

/* One implicit step on the velocities of the trial. Walls of the box and obstacles as their no_slip says; liquid sticks
   to nozzles. A projection follows: liquid moves along what is both viscous and free of divergence. */
FSI_API fsi_status fsi__ls_thicken(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const fsi_levelset_desc *d = &run->s->desc;
    const fsi_error before = run->s->context->error;
    fsi_viscosity_flow flow = fsi_viscosity_default_flow();
    fsi_status status = FSI_OK;
    int a, side, tries;

    /* the liquid and what it meets */
    for (a = 0; a < run->grid->dim; a++) {
        flow.u[a] = m->trial_u[a];
        flow.solid[a] = m->known[a];
    }
    flow.phi = m->trial_phi;
    flow.psi = fsi__ls_psi(m);
    flow.viscosity = d->viscosity;
    flow.density = d->density;
    flow.dt = (fsi_real)run->dt;
    for (side = 0; side < 6; side++) {
        flow.wall_no_slip[side] = d->no_slip[side];
        flow.wall_closed[side] = !d->open_side[side];
    }
    flow.tolerance = FSI__LS_VISCOSITY_TOLERANCE;
    flow.max_iters = d->max_iters;

    /* where it does not converge, a thinner one */
    for (tries = 0; tries == 0 || (status == FSI_ERROR_CONVERGENCE && tries <= FSI__LS_THINNER); tries++) {
        if (tries > 0) flow.viscosity /= 100;
        status = fsi_viscosity_solve(m->viscosity, &flow);
        run->stats.viscosity_iterations += m->viscosity->iterations;
    }
    FSI__TRY(status);
    if (tries > 1) run->s->context->error = before; /* the step goes on */
    run->stats.thinned += tries > 1;
    run->stats.degraded |= tries > 1;
    fsi__ls_lap(run, &run->stats.seconds_viscosity);
    return FSI_OK;
}

/* ---- >>substep: blocks ------------------------------------------------------------------------------------------- */

/* Which blocks must exist: those of every cell with phi < reach. A cell nearer to the surface than that by r cells
   asks for the blocks that r cells around it touch; |grad phi| <= 1 sees to it that none is missed.
   Of the 27 blocks around that at `corner` those that `seen` has bits for, 3 an axis; returns how many nobody had asked
   for. ask 0: only that. */
static int fsi__ls_want(const fsi_grid *g, const int *corner, unsigned seen, int ask, unsigned char *wanted)
{
    int i, j, k, fresh = 0;
    for (k = -1; k <= 1; k++)
        for (j = -1; j <= 1; j++)
            for (i = -1; i <= 1; i++) {
                const int x = (corner[0] >> 3) + i, y = (corner[1] >> 3) + j, z = (corner[2] >> 3) + k;
                if (!(seen >> (i + 1) & 1) || !(seen >> (j + 4) & 1) || !(seen >> (k + 7) & 1)) continue;
                unsigned char *place;
                if (x < 0 || y < 0 || z < 0 || x >= g->blocks[0] || y >= g->blocks[1] || z >= g->blocks[2]) continue;
                place = &wanted[((size_t)z * (size_t)g->blocks[1] + (size_t)y) * (size_t)g->blocks[0] + (size_t)x];
                fresh += !*place;
                if (ask) *place = 1;
            }
    return fresh;
}

static void fsi__ls_want_around(const fsi_grid *g, const fsi_real *phi, int b, double reach, unsigned char *wanted)
{
    unsigned char asked[512];
    int corner[3], c, r;
    fsi_grid_corner(g, b, corner);
    if (!fsi__ls_want(g, corner, g->dim == 2 ? 0277 : 0777, 0, wanted)) return; /* as deep in the liquid */
    memset(asked, 0, sizeof asked);
    for (c = 0; c < g->block_cells; c++) {
        const int at[3] = { c & 7, (c >> 3) & 7, c >> 6 };
        unsigned key = 0;
        int a;
        if (!((double)phi[c] < reach * (double)g->dx)) continue;
        r = (int)(reach - (double)phi[c] / (double)g->dx);
        for (a = 0; a < 3; a++)
            key |= (2u | (unsigned)(at[a] - r < 0 && a < g->dim) | (unsigned)(at[a] + r > 7 && a < g->dim) << 2)
                   << (3 * a);
        asked[key] = 1;
    }
    for (c = 0; c < 512; c++)
        if (asked[c]) fsi__ls_want(g, corner, (unsigned)c, 1, wanted);
}

/* Blocks for next_phi; those that there are stay when `keep` is set. */
static fsi_status fsi__ls_make_blocks(fsi__ls_run *run, int keep)
{
    const fsi_grid *g = run->grid;
    const double reach = fsi__ls_reach(&run->s->desc) + 2;
    const size_t places = fsi__grid_places(g);
    size_t p;
    int b;
    for (p = 0; p < places; p++) run->m->wanted[p] = (unsigned char)(keep && g->index[p] >= 0);
    for (b = 0; b < g->block_count; b++)
        fsi__ls_want_around(g, run->m->next_phi->value + (size_t)b * (size_t)g->block_cells, b, reach, run->m->wanted);
    for (b = 0; b < run->m->trial_droplet_count; b++) {
        int cell[3];
        (void)fsi__ls_entry_at(g, run->m->trial_droplet[b].position, cell);
        fsi__ls_want(g, cell, g->dim == 2 ? 0277 : 0777, 1, run->m->wanted);
    }
    return fsi_grid_set_blocks(run->grid, run->m->wanted);
}

/* ---- >>step ------------------------------------------------------------------------------------------------------ */

/* Arrays with entries for each block, beside the fields. */
#define FSI__LS_ENTRIES 12

static void fsi__ls_entry_columns(fsi_levelset *s, fsi__column *c)
{
    fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
    const size_t cells = (size_t)s->grid->block_cells;
    c[0].array = (void **)&m->later_label;  c[0].size = cells * sizeof(int);
    c[1].array = (void **)&m->trial_label;  c[1].size = cells * sizeof(int);
    c[2].array = (void **)&m->next_label;   c[2].size = cells * sizeof(int);
    c[3].array = (void **)&m->cell;         c[3].size = cells;
    c[4].array = (void **)&m->uniform;      c[4].size = sizeof(int);
    c[5].array = (void **)&m->next_uniform; c[5].size = sizeof(int);
    c[6].array = (void **)&m->known[0];     c[6].size = cells;
    c[7].array = (void **)&m->known[1];     c[7].size = cells;
    c[8].array = (void **)&m->known[2];     c[8].size = cells;
    c[9].array = (void **)&m->shore;        c[9].size = cells;
    c[10].array = (void **)&m->built;       c[10].size = sizeof(int);
    c[11].array = (void **)&m->let_go;      c[11].size = cells;
}

/* Memory for an entry of each block, and for one block more, in the arrays that are not fields; as much as the fields
   have. Their contents are lost when they grow. The state's label stays at its address: a call that fails moves no
   array that the caller may read. */
static fsi_status fsi__ls_make_room(fsi_levelset *s, const char *function)
{
    fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
    const int capacity = fsi__grid_capacity(s->grid);
    fsi__column columns[FSI__LS_ENTRIES];
    if (m->room > 0 && s->grid->block_count <= m->room) return FSI_OK; /* an empty liquid has them too */
    fsi__ls_entry_columns(s, columns);
    FSI__TRY(fsi__grow(s->context, columns, FSI__LS_ENTRIES, 0, &m->room, capacity > 0 ? capacity : 1, function));
    m->built_count = -1;
    return FSI_OK;
}

/* The trial's labels become the state's. */
static void fsi__ls_take_labels(fsi_levelset *s)
{
    fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
    int *old = m->label;
    m->label = m->trial_label;
    m->trial_label = old;
    if (m->label_room == m->room) return;
    fsi__free(s->context, old, (size_t)m->label_room * (size_t)s->grid->block_cells, sizeof *old);
    m->trial_label = m->later_label;
    m->later_label = NULL;
    m->label_room = m->room;
}

static void fsi__ls_swap_fields(fsi_field **a, fsi_field **b) { fsi_field *t = *a; *a = *b; *b = t; }
static void fsi__ls_swap_parts(fsi__ls_parts *a, fsi__ls_parts *b) { fsi__ls_parts t = *a; *a = *b; *b = t; }
static void fsi__ls_swap_labels(int **a, int **b) { int *t = *a; *a = *b; *b = t; }

/* Makes the result of a substep the trial. */
static void fsi__ls_take_next(fsi__ls_impl *m)
{
    fsi__ls_swap_parts(&m->trial, &m->next);
    fsi__ls_swap_labels(&m->trial_label, &m->next_label);
}

/* Marks the cells whose level set a substep needs: those that the next surface may reach, and those that it is fitted
   to. And which are liquid. */
static void fsi__ls_mark_band(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const size_t cells = (size_t)run->grid->block_cells;
    const fsi_real *phi = run->m->trial_phi->value, band = (4 + run->s->desc.cfl) * run->grid->dx;
    size_t e;
    (void)chunk;
    for (e = (size_t)begin * cells; e < (size_t)end * cells; e++) {
        run->m->cell[e] = (unsigned char)(phi[e] < band && phi[e] > -band);
        run->m->shore[e] = (unsigned char)(phi[e] < 0 && !(run->m->obstacle_count > 0 && run->m->psi->value[e] < 0));
    }
}

/* ---- >>substep: sinks -------------------------------------------------------------------------------------------- */

/* One sink at work: the trial without what is deeper in it than `offset`, d < -offset, is next_phi. */
typedef struct fsi__ls_drain {
    fsi__ls_run *run;
    fsi_shape shape;
    double offset, taken; /* [m]; volume */
} fsi__ls_drain;

/* d of an analytic shape. */
static void fsi__ls_measure_sink(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_drain *job = (const fsi__ls_drain *)arg;
    const fsi_grid *g = job->run->grid;
    int b, c, corner[3], hint = -1;
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_grid_corner(g, b, corner);
        for (c = 0; c < g->block_cells; c++)
            job->run->m->spare->value[(size_t)b * (size_t)g->block_cells + (size_t)c] = job->shape.distance(
                &job->shape,
                fsi_grid_position(g, FSI_CELLS, corner[0] + (c & 7), corner[1] + ((c >> 3) & 7), corner[2] + (c >> 6)),
                &hint);
    }
}

/* Distance to a sink at the cells of all blocks. Sides of a box that reach the walls lie far beyond, as for
   fsi_grid_fill_box. */
static fsi_status fsi__ls_find_sink(fsi__ls_drain *job, const fsi_levelset_sink_desc *d)
{
    const fsi_grid *g = job->run->grid;
    fsi_shape *s = &job->shape;
    if (d->shape == FSI_LEVELSET_SINK_MESH) return fsi_grid_mesh_distance(job->run->m->spare, d->mesh, FSI__LS_BAND);
    *s = d->shape == FSI_LEVELSET_SINK_BOX ? fsi_shape_box(d->box) : fsi_shape_sphere(d->center, d->radius);
    fsi__grid_fill_open_walls(g, 0, g->origin.x, &s->box.lo.x, &s->box.hi.x);
    fsi__grid_fill_open_walls(g, 1, g->origin.y, &s->box.lo.y, &s->box.hi.y);
    fsi__grid_fill_open_walls(g, 2, g->origin.z, &s->box.lo.z, &s->box.hi.z);
    if (g->dim == 2) {
        s->center.z = 0;
        s->box.lo.z = -FSI_REAL_MAX / 4;
        s->box.hi.z = FSI_REAL_MAX / 4;
    }
    fsi__grid_light(g, FSI__LS_GRAIN, 4000, fsi__ls_measure_sink, job);
    return FSI_OK;
}

static void fsi__ls_carve_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_drain *job = (const fsi__ls_drain *)arg;
    const fsi__ls_impl *m = job->run->m;
    const size_t cells = (size_t)job->run->grid->block_cells;
    const fsi_real offset = (fsi_real)job->offset;
    size_t e;
    (void)chunk;
    for (e = (size_t)begin * cells; e < (size_t)end * cells; e++)
        m->next_phi->value[e] = fsi_max(m->trial_phi->value[e], -(m->spare->value[e] + offset));
}

/* next_phi = max(trial_phi, -(d + offset)), and what that takes from each component, by marching before and after. */
static fsi_status fsi__ls_carve(fsi__ls_drain *job, double offset)
{
    fsi__ls_run *run = job->run;
    fsi__ls_impl *m = run->m;
    int c;
    job->offset = offset;
    fsi__grid_light(run->grid, FSI__LS_GRAIN, 150, fsi__ls_carve_blocks, job);
    FSI__TRY(fsi_grid_volumes(m->next_phi, m->trial_label, m->trial.count, NULL, fsi__ls_psi(m), m->next.shape));
    for (c = 0, job->taken = 0; c < m->trial.count; c++)
        job->taken += m->trial.shape[c].volume - m->next.shape[c].volume;
    return FSI_OK;
}

/* The depth at which a sink takes no more than `most`, and no less than a thousandth less. How wide what is taken is,
   taken^(1/dim), falls about evenly with depth: false position (Illinois) on that, and bisection where it is slow. A
   cell deeper than the deepest nothing is taken. over, under: that at the ends, beyond the middle of that range. Where
   many cells are equally deep, all that there is may be too much at once: then nothing is taken until enough is due. */
static fsi_status fsi__ls_carve_at_most(fsi__ls_drain *job, double deepest, double most)
{
    const double power = 1.0 / job->run->grid->dim, aim = pow(0.9995 * most, power), dx = (double)job->run->grid->dx;
    double lo = 0, hi = deepest + dx, over = pow(job->taken, power) - aim, under = -aim;
    int round, last = 0;
    if (!(most > 0)) return fsi__ls_carve(job, hi);
    for (round = 0; round < 30 && hi - lo > 1e-4 * dx && !(job->taken <= most && job->taken >= 0.999 * most); round++) {
        double off;
        FSI__TRY(fsi__ls_carve(job, round % 4 == 3 ? (lo + hi) / 2 : lo + (hi - lo) * over / (over - under)));
        off = pow(job->taken > 0 ? job->taken : 0, power) - aim;
        if (off > 0) {
            if (last > 0) under /= 2;
            lo = job->offset, over = off, last = 1;
        } else {
            if (last < 0) over /= 2;
            hi = job->offset, under = off, last = -1;
        }
    }
    return job->taken > most ? fsi__ls_carve(job, hi) : FSI_OK;
}

/* Largest depth of liquid in a sink [m]; 0: there is none. */
static double fsi__ls_depth_of_sink(const fsi__ls_run *run)
{
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    const double dx = (double)run->grid->dx;
    double depth = 0;
    size_t e;
    for (e = 0; e < cells; e++)
        if ((double)run->m->trial_phi->value[e] < dx && -(double)run->m->spare->value[e] > depth)
            depth = -(double)run->m->spare->value[e];
    return depth;
}

/* Lowers target volumes by the losses of components, to 0 where one is gone. Returns the sum. */
static double fsi__ls_lower_targets(fsi__ls_impl *m)
{
    double all = 0;
    int c;
    for (c = 0; c < m->trial.count; c++) {
        double less = m->trial.shape[c].volume - m->next.shape[c].volume;
        if (!(less > 0)) continue;
        if (!(m->next.shape[c].volume > 0) || less > m->trial.target[c]) less = m->trial.target[c];
        m->trial.target[c] -= less;
        m->trial.motion[c].open = 1;
        all += less;
    }
    return all;
}

/* Drains droplets in a sink, as far as its rate allows in this substep. */
static void fsi__ls_drain_droplets(fsi__ls_drain *job, fsi__ls_sink *sink)
{
    fsi__ls_impl *m = job->run->m;
    double left = (double)sink->desc.rate > 0 ? sink->trial.pending + (double)sink->desc.rate * job->run->dt : HUGE_VAL;
    int k, kept = 0, hint = -1;
    for (k = 0; k < m->trial_droplet_count; k++) {
        fsi_levelset_droplet p = m->trial_droplet[k];
        const fsi_real d = sink->desc.shape == FSI_LEVELSET_SINK_MESH
                               ? fsi_grid_sample_linear(m->spare, p.position)
                               : job->shape.distance(&job->shape, p.position, &hint);
        const double part = d < 0 ? fmax(0, fmin(p.volume, left)) : 0;
        left -= part;
        sink->trial.total += part;
        sink->trial.pending -= (double)sink->desc.rate > 0 ? part : 0;
        p.volume -= part;
        if (p.volume > 0) m->trial_droplet[kept++] = p;
    }
    m->trial_droplet_count = kept;
}

static fsi_status fsi__ls_drain_sink(fsi__ls_run *run, fsi__ls_sink *sink)
{
    fsi__ls_impl *m = run->m;
    fsi__ls_drain job;
    const double rate = (double)sink->desc.rate;
    const int end = run->grid->block_count * run->grid->block_cells;
    double depth;
    int e;

    /* distance to the sink; droplets in it go first */
    job.run = run;
    FSI__TRY(fsi__ls_find_sink(&job, &sink->desc));
    fsi__ls_drain_droplets(&job, sink);
    depth = fsi__ls_depth_of_sink(run);
    if (!(depth > 0)) {
        sink->trial.pending = 0; /* unused demand of a sink does not accumulate */
        return FSI_OK;
    }

    /* cut all liquid in it, or as deep as the rate allows */
    FSI__TRY(fsi__ls_grow_parts(run, m->trial.count));
    FSI__TRY(fsi_grid_volumes(m->trial_phi, m->trial_label, m->trial.count, NULL, fsi__ls_psi(m), m->trial.shape));
    FSI__TRY(fsi__ls_carve(&job, 0));
    sink->trial.pending = rate > 0 ? sink->trial.pending + rate * run->dt : 0;
    if (rate > 0 && job.taken > sink->trial.pending) {
        FSI__TRY(fsi__ls_carve_at_most(&job, depth, sink->trial.pending));
        sink->trial.pending -= job.taken;
    } else sink->trial.pending = 0; /* what a sink does not use is not saved up */
    if (!(job.taken > 0)) return FSI_OK;

    /* lower the targets, and find the components of what is left */
    sink->trial.total += fsi__ls_lower_targets(m);
    for (e = 0; e < end; e++) m->shore[e] = m->trial_phi->value[e] < 0; /* places of droplets of lost components */
    FSI__TRY(fsi__ls_follow_components(run, 0, 0));
    fsi__ls_take_next(m);
    fsi__ls_swap_fields(&m->trial_phi, &m->next_phi);
    return FSI_OK;
}

static fsi_status fsi__ls_drain_all(fsi__ls_run *run)
{
    int k;
    for (k = 0; k < run->m->sink_count; k++) FSI__TRY(fsi__ls_drain_sink(run, &run->m->sink[k]));
    fsi__ls_lap(run, &run->stats.seconds_volume);
    return FSI_OK;
}

/* ---- >>step: a substep ------------------------------------------------------------------------------------------- */

/* Time order 2. A first-order step, advection and then all of the pressure, loses energy in every vortex, the more the
   longer the step. Here half of the pressure goes along with the liquid that it pushes, the trapezoidal rule:

       u* = (u + c/2) where it came from,
       u' = u* + the pressure that makes it free of divergence,
       c' = u' - u* + c/2

   c, the `carry`, is what pressure after advection did in the substep before, scaled to the length of this one. It is
   half of the reflection of Zehnder, Narain and Thomaszewski 2018 (An Advection-Reflection Solver for Detail-Preserving
   Fluid Simulation), which reflects by all of c, unstable here. A vortex in a box of 64^2 keeps 99.97 % of its energy
   for four seconds, 82.6 % without (cubic interpolation). As the projection is orthogonal, E + |c|^2/2 cannot grow
   while the liquid stays in place. Faces that the surface passes break that: they push little liquid now and a cell of
   it later. c is 0 there; with it a dam break over a box went from 700 to 3200 J in 0.04 s. So that c is the gradient
   of one pressure still, by which obstacles and walls lose what the liquid gains, that pressure is 0 in each cell that
   has such a face: a force by the pressure that was there would push at the surface, with nothing behind it,

                     air | liquid                               solid
       pressure after      p1        p2        p3        p4  #
       carried             0         p2        p3        p4  #            sum of dx^3 rho c = dt dx^2 p4
       c                0  : p2 - 0  : p3 - p2 : p4 - p3     #            = what the solid gets

   After a much shorter substep c is left out: it is the effect of an impulse then, not the acceleration by pressure. */
static void fsi__ls_weigh_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const size_t cells = (size_t)run->grid->block_cells;
    const fsi_real keep = (fsi_real)run->keep, add = (fsi_real)run->add;
    int a;
    size_t e;
    (void)chunk;
    for (a = 0; a < run->grid->dim; a++) {
        fsi_real *c = run->m->trial_carry[a]->value;
        const fsi_real *u = run->m->trial_u[a]->value;
        for (e = (size_t)begin * cells; e < (size_t)end * cells; e++) c[e] = keep * c[e] + add * u[e];
    }
}

/* Is the liquid cell c of a block at the surface: does the pressure of air stand behind one of its faces? */
static int fsi__ls_is_surface(const fsi__ls_run *run, const fsi__ls_around *around, int c)
{
    const fsi__ls_impl *m = run->m;
    const long long e = (long long)around->block * run->grid->block_cells + c;
    const int sides = 2 * run->grid->dim;
    int side;
    for (side = 0; side < sides; side++) {
        const int a = side >> 1, up = side & 1;
        long long at;
        const int there = fsi__ls_across(around, c, side, &at);
        const long long face = up ? at : e;
        if (run->released > 0 && face >= 0 && m->let_go[face] >> (up ? 3 + a : a) & 1) return 1;
        if (!there && run->s->desc.open_side[side]) return 1;
        if (there && m->cell[at] == FSI_CELL_AIR && !(m->shore[face] >> a & 1)) return 1;
    }
    return 0;
}

/* Pressure that is carried on: all that there was after advection, which stays in `spare`, but 0 in cells at the
   surface. */
static void fsi__ls_keep_pressure(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const int cells = run->grid->block_cells;
    const fsi_real share = run->half > 0 ? (fsi_real)0.5 : 0;
    fsi_real *pressure = m->trial_pressure->value, *all = m->spare->value, *carried = m->trial_carried->value;
    int b, c;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const fsi__ls_around around = fsi__ls_around_of(run->grid, b);
        for (c = 0; c < cells; c++) {
            const size_t e = (size_t)b * (size_t)cells + (size_t)c;
            const int inside = m->cell[e] == FSI_CELL_LIQUID;
            const fsi_real half = inside ? share * carried[e] : 0;
            pressure[e] += half;
            all[e] = inside ? all[e] + half : 0;
            carried[e] = inside && !fsi__ls_is_surface(run, &around, c) ? all[e] : 0;
        }
    }
}

/* Carries velocities between two cells of liquid only, there by that pressure instead of all of it. */
static void fsi__ls_keep_inside(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const int cells = run->grid->block_cells;
    const fsi_real *all = m->spare->value, *kept = m->trial_carried->value;
    const fsi_real scale = (fsi_real)(run->dt / ((double)run->s->desc.density * (double)run->grid->dx));
    int a, b, c;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const fsi__ls_around around = fsi__ls_around_of(run->grid, b);
        for (a = 0; a < run->grid->dim; a++) for (c = 0; c < cells; c++) {
            const size_t e = (size_t)b * (size_t)cells + (size_t)c;
            fsi_real *carry = &m->trial_carry[a]->value[e];
            long long below;
            if (m->cell[e] != FSI_CELL_LIQUID || !fsi__ls_across(&around, c, 2 * a, &below) ||
                m->cell[below] != FSI_CELL_LIQUID)
                *carry = 0;
            else if (!(m->shore[e] >> a & 1)) *carry += scale * ((all[e] - kept[e]) - (all[below] - kept[below]));
        }
    }
}

/* carry = keep * carry + add * u, if there is one. */
static void fsi__ls_weigh_carry(fsi__ls_run *run, double keep, double add)
{
    run->keep = keep;
    run->add = add;
    if (run->m->trial_carry[0]) fsi__ls_each_block(run, fsi__ls_weigh_blocks);
}

static fsi_status fsi__ls_advect_velocity(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const unsigned char *known[3];
    fsi_field *const *from = m->trial_carry[0] ? m->trial_carry : m->trial_u;
    int a;
    for (a = 0; a < 3; a++) known[a] = m->known[a];
    run->half = run->carry_dt * FSI__LS_UNLIKE >= run->dt ? run->dt / (2 * run->carry_dt) : 0;
    fsi__ls_weigh_carry(run, run->half, 1);
    FSI__TRY(fsi_grid_advect_velocity(from, m->trial_u, (fsi_real)run->dt, run->s->desc.velocity_scheme, 2, known,
                                         m->next_u));
    fsi__ls_weigh_carry(run, 1, -1);
    return FSI_OK;
}

FSI_API fsi_status fsi__ls_open_projection(fsi__ls_run *run, int which, fsi_pressure_flow *flow)
{
    run->which = which;
    if (which == FSI__LS_LAST) { /* what was carried goes along */
        fsi__ls_weigh_carry(run, 1, -1);
        fsi__ls_carry_obstacles(run, run->m->trial_carry[0] ? run->half : 0);
    }
    FSI__TRY(fsi__ls_fill_flow(run, flow));
    fsi__ls_show(run);
    return FSI_OK;
}

FSI_API void fsi__ls_finish_projection(fsi__ls_run *run)
{
    fsi__ls_each_block(run, fsi__ls_close_shore);
    fsi__ls_lap(run, &run->stats.seconds_extrapolation);
    if (run->which != FSI__LS_LAST) return;

    /* what is carried to the next substep */
    fsi__ls_feel(run, run->m->spare, run->dt);
    fsi__ls_weigh_carry(run, 1, 1);
    run->carry_dt = run->joint ? 0 : run->dt; /* none beside a solid that yields: couple.md 4 */
    if (!run->m->trial_carry[0] || run->joint) return;
    fsi__ls_mark_covered_faces(run, run->m->shore);
    fsi__ls_each_block_long(run, fsi__ls_keep_pressure);
    fsi__ls_each_block_long(run, fsi__ls_keep_inside);
    fsi__ls_keep_obstacles(run);
}

/* Makes trial_u free of divergence on trial_phi, the liquid alone. */
static fsi_status fsi__ls_project(fsi__ls_run *run, int which)
{
    fsi_pressure_flow flow;
    FSI__TRY(fsi__ls_open_projection(run, which, &flow));
    FSI__TRY(fsi__ls_solve_pressure(run, &flow));
    FSI__TRY(fsi__ls_close_projection(run));
    fsi__ls_finish_projection(run);
    return FSI_OK;
}

/* Phi by one step along the velocities of the trial. */
FSI_API fsi_status fsi__ls_advect_surface(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const fsi_levelset_desc *d = &run->s->desc;
    fsi__ls_leave(run);
    if (d->surface_tension > 0 && fsi__ls_creeps(d) < 1) {
        fsi__ls_each_block_long(run, fsi__ls_relax);
        fsi__ls_swap_fields(&m->trial_phi, &m->next_phi);
    }
    fsi__ls_each_block(run, fsi__ls_mark_band);
    FSI__TRY(fsi__grid_advect_distance(m->trial_phi, m->trial_u, (fsi_real)run->dt, d->phi_scheme, 2, m->cell,
                                       m->next_phi, "fsi_grid_advect"));
    fsi__ls_show(run);
    return FSI_OK;
}

/* Velocities likewise; then the surface meets nozzles, open sides and obstacles. */
FSI_API fsi_status fsi__ls_advect(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const fsi_levelset_desc *d = &run->s->desc;
    FSI__TRY(fsi__ls_advect_velocity(run));
    fsi__ls_fill_nozzles(run);
    if (fsi__ls_is_open(d)) fsi__ls_each_block(run, fsi__ls_let_air_in);
    fsi__ls_open_gaps(run);
    fsi__ls_lap(run, &run->stats.seconds_advection);
    FSI__TRY(fsi__ls_enter_solids(run));

    /* Surface tension answers to each change of shape, also to those that redistancing makes: small ones where little
       moves. */
    FSI__TRY(fsi__grid_redistance_moved(m->next_phi, FSI__LS_BAND, d->surface_tension > 0 ? m->trial_u : NULL,
        (fsi_real)run->dt, fsi__ls_creeps(d), m->next_phi));
    fsi__ls_lap(run, &run->stats.seconds_distance);
    return FSI_OK;
}

/* Components of next_phi with their targets. */
FSI_API fsi_status fsi__ls_follow(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    run->flipped = 0;
    FSI__TRY(fsi__ls_fly(run));
    FSI__TRY(fsi__ls_follow_components(run, 1, run->s->desc.conserve_volume || m->trial_droplet_count > 0));
    fsi__ls_take_up(run);
    fsi__ls_drop_foundlings(run);
    memset(m->shore, 0, (size_t)run->grid->block_count * (size_t)run->grid->block_cells);
    if (run->s->desc.conserve_volume) FSI__TRY(fsi_grid_grow_labels(m->next_label, m->next_phi, FSI__LS_BAND));
    fsi__ls_show(run);
    return FSI_OK;
}

/* After the volume correction. */
FSI_API fsi_status fsi__ls_settle(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    fsi__ls_take_next(m);
    if (run->flipped > 0) { /* cells joined or left a component: it may have split or merged */
        FSI__TRY(fsi__ls_follow_components(run, 0, 0));
        fsi__ls_take_next(m);
    }
    fsi__ls_show(run);
    fsi__ls_lap(run, &run->stats.seconds_volume);
    return FSI_OK;
}

/* Labels of the trial, where its blocks now stand. */
static fsi_status fsi__ls_relabel(fsi__ls_run *run)
{
    int count;
    FSI__TRY(fsi__ls_make_room(run->s, run->function));
    fsi__ls_find_solids(run);
    FSI__TRY(fsi_grid_label(run->m->trial_phi, fsi__ls_mask(run), run->m->trial_label, &count));
    return fsi_grid_grow_labels(run->m->trial_label, run->m->trial_phi, 3);
}

/* Gravity and surface tension, before the first projection. A checkerboard of ripples on a flat surface, where the
   liquid of its cells is thinnest, is stable up to substeps of 1.1 capillary times in 3D and 2 in 2D (measured). Beyond
   1 and 1.5 smoothing follows: after the jump, with a projection of its own, as before it it would fail; after the
   paper's force, before the projection. */
FSI_API fsi_status fsi__ls_force(fsi__ls_run *run)
{
    const fsi_levelset_desc *d = &run->s->desc;
    const int tension = d->surface_tension > 0, delta = tension && d->tension == FSI_LEVELSET_TENSION_DELTA;
    run->smooth = tension && run->dt > (d->dim == 3 ? 1.0001 : 1.5001) * fsi__ls_capillary_time(d);
    FSI__TRY(fsi__ls_accelerate(run));
    fsi__ls_push_bodies(run);
    if (tension) fsi__ls_each_block_long(run, fsi__ls_curvatures);
    if (tension && run->m->obstacle_count > 0) fsi__ls_each_block(run, fsi__ls_extend_curvature);
    if (delta) fsi__ls_each_block(run, fsi__ls_push);
    if (delta && run->smooth) {
        fsi__ls_each_block(run, fsi__ls_kinds);
        FSI__TRY(fsi__ls_extrapolate(run));
        FSI__TRY(fsi__ls_smooth(run));
    }
    fsi__ls_show(run);
    return FSI_OK;
}

FSI_API int fsi__ls_smooths(const fsi__ls_run *run)
{
    return run->smooth && run->s->desc.tension == FSI_LEVELSET_TENSION_JUMP;
}

#ifndef FSI__LS_AFTER_PHASE /* tests look into a substep here */
#define FSI__LS_AFTER_PHASE(run, phase) ((void)0)
#endif

/* Blocks for the new surface, which becomes the trial's with its velocities; then sinks drain it. */
FSI_API fsi_status fsi__ls_regrid(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int a;
    FSI__TRY(fsi__ls_make_blocks(run, 1));
    fsi__ls_swap_fields(&m->trial_phi, &m->next_phi);
    for (a = 0; a < run->grid->dim; a++) fsi__ls_swap_fields(&m->trial_u[a], &m->next_u[a]);
    FSI__TRY(fsi__ls_relabel(run));
    fsi__ls_lap(run, &run->stats.seconds_other);
    FSI__TRY(fsi__ls_keep_momentum(run));
    FSI__TRY(fsi__ls_drain_all(run));
    fsi__ls_show(run);
    return FSI_OK;
}

/* Advances the trial by a substep. */
static fsi_status fsi__ls_substep(fsi__ls_run *run)
{
    /* forces, first projection, capillary smoothing */
    FSI__TRY(fsi__ls_force(run));
    FSI__TRY(fsi__ls_project(run, FSI__LS_FIRST));
    if (fsi__ls_smooths(run)) {
        FSI__TRY(fsi__ls_smooth(run));
        FSI__TRY(fsi__ls_project(run, FSI__LS_AGAIN));
    }
    FSI__LS_AFTER_PHASE(run, 0);

    /* viscosity */
    if (run->s->desc.viscosity > 0) {
        fsi__ls_hold_viscous(run);
        FSI__TRY(fsi__ls_thicken(run));
        FSI__TRY(fsi__ls_project(run, FSI__LS_AGAIN));
    }
    FSI__LS_AFTER_PHASE(run, 1);

    /* advection */
    FSI__TRY(fsi__ls_expect_momentum(run));
    FSI__TRY(fsi__ls_advect_surface(run));
    FSI__TRY(fsi__ls_advect(run));
    FSI__LS_AFTER_PHASE(run, 2);

    /* components and their volumes */
    FSI__TRY(fsi__ls_follow(run));
    if (run->s->desc.conserve_volume) FSI__TRY(fsi__ls_keep_volumes(run));
    FSI__TRY(fsi__ls_settle(run));
    FSI__LS_AFTER_PHASE(run, 3);

    /* blocks for the new surface, last projection */
    FSI__TRY(fsi__ls_regrid(run));
    FSI__TRY(fsi__ls_project(run, FSI__LS_LAST));
    FSI__TRY(fsi__ls_owe_momentum(run));
    FSI__LS_AFTER_PHASE(run, 4);
    return FSI_OK;
}

/* Copies the state into the trial. */
static void fsi__ls_copy_state(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const size_t cells = (size_t)run->grid->block_cells, at = (size_t)begin * cells,
                 count = (size_t)(end - begin) * cells;
    int a;
    (void)chunk;
    memcpy(m->trial_label + at, m->label + at, count * sizeof *m->label);
    memcpy(m->trial_phi->value + at, m->phi->value + at, count * sizeof(fsi_real));
    memcpy(m->trial_pressure->value + at, m->pressure->value + at, count * sizeof(fsi_real));
    if (m->carried) memcpy(m->trial_carried->value + at, m->carried->value + at, count * sizeof(fsi_real));
    for (a = 0; a < run->grid->dim; a++) {
        memcpy(m->trial_u[a]->value + at, m->u[a]->value + at, count * sizeof(fsi_real));
        if (m->carry[a]) memcpy(m->trial_carry[a]->value + at, m->carry[a]->value + at, count * sizeof(fsi_real));
    }
}

/* Starts the trial state of a step as a copy of the state. */
static fsi_status fsi__ls_begin(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    const size_t places = fsi__grid_places(run->grid);
    size_t p;
    int k;

    /* The blocks of the state: restored when the call fails. */
    for (p = 0; p < places; p++) m->before[p] = run->grid->index[p] >= 0;
    FSI__TRY(fsi__ls_make_room(run->s, run->function));
    FSI__TRY(fsi__ls_grow_parts(run, m->parts.count));

    /* Sources and components. */
    for (k = 0; k < m->emitter_count; k++) m->emitter[k].trial = m->emitter[k].flow;
    for (k = 0; k < m->sink_count; k++) m->sink[k].trial = m->sink[k].flow;
    for (k = 0; k < m->parts.count; k++) m->trial.leaving[k] = 0;
    m->trial.count = m->parts.count;
    if (m->parts.count > 0) {
        memcpy(m->trial.target, m->parts.target, (size_t)m->parts.count * sizeof *m->parts.target);
        memcpy(m->trial.shape, m->parts.shape, (size_t)m->parts.count * sizeof *m->parts.shape);
        memcpy(m->trial.owed, m->parts.owed, (size_t)m->parts.count * 3 * sizeof *m->parts.owed);
    }
    fsi__ls_forget_motion(&m->trial);

    /* Droplets. */
    m->trial_droplet_count = 0;
    FSI__TRY(fsi__ls_grow_droplets(run, m->droplet_count));
    m->trial_droplet_count = m->droplet_count;
    if (m->droplet_count > 0) memcpy(m->trial_droplet, m->droplet, (size_t)m->droplet_count * sizeof *m->droplet);

    /* Fields, and the poses of the solids. */
    fsi__grid_light(run->grid, FSI__LS_GRAIN, 700, fsi__ls_copy_state, run);
    run->carry_dt = m->carry_dt;
    fsi__ls_begin_obstacles(run);
    fsi__ls_find_solids(run);
    return FSI_OK;
}

static fsi_status fsi__ls_grow_components(fsi_levelset *s, int count, const char *function)
{
    fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
    const int rows = m->component_capacity;
    const fsi_status status = fsi__room_in(s->context, &m->component, sizeof *m->component, rows,
        &m->component_capacity, count, function);
    s->component = m->component;
    return status;
}

/* Publishes the reaction on an obstacle, and adds it to its body, which may carry several. */
static void fsi__ls_commit_obstacle(fsi__ls_obstacle *o, double dt)
{
    const fsi_real per_dt = (fsi_real)(1 / dt);
    fsi_body *body = o->desc.body;
    fsi_vec3 spin;

    /* reaction */
    memcpy(o->carry, o->trial_carry, sizeof o->carry);
    o->force = fsi_v3_scale(o->impulse, per_dt);
    o->torque = fsi_v3_scale(o->moment, per_dt);

    /* a mesh without a body: this is where the step left it */
    if (!body) {
        memcpy(o->rest, o->desc.mesh->vertices, (size_t)o->vertex_count * sizeof *o->rest);
        o->stands = 0;
        return;
    }

    /* a body: impulses */
    o->at = o->now;
    body->impulse = fsi_v3_add(body->impulse, o->impulse);
    body->angular_impulse = fsi_v3_add(body->angular_impulse, o->spin);
    fsi_body_end_step(body, (fsi_real)dt);

    /* COUPLED: new velocities and pose; the angular momentum is that of the solve */
    if (!fsi__ls_is_coupled(o)) return;
    body->new_velocity = o->work.new_velocity; /* the solver may have taken a body of next to no mass for a heavier
                                                  one */
    spin = fsi_m3_mul_v3(fsi_body_world_tensor(o->work.pose.orientation, body->inertia), o->work.new_angular_velocity);
    body->new_angular_velocity =
        fsi_m3_mul_v3(fsi_body_world_tensor(body->pose.orientation, fsi_m3_inverse(body->inertia)), spin);
    body->end = o->at;
}

/* A step of 0 s did nothing to it. */
static void fsi__ls_calm_obstacle(fsi__ls_obstacle *o)
{
    fsi_body *body = o->desc.body;
    o->force = o->torque = fsi_v3(0, 0, 0);
    if (!body) return;
    body->impulse = body->angular_impulse = body->reaction_force = body->reaction_torque = fsi_v3(0, 0, 0);
    if (body->mode != FSI_BODY_COUPLED) return;
    body->new_velocity = body->velocity;
    body->new_angular_velocity = body->angular_velocity;
}

/* Room for a number a task; *chunks is how many there are. */
static fsi_status fsi__ls_grow_sums(fsi__ls_run *run, int *chunks)
{
    fsi__column column;
    *chunks = fsi__chunks(run->grid->block_count, FSI__LS_GRAIN);
    column.array = (void **)&run->m->sum;
    column.size = sizeof *run->m->sum;
    return fsi__ls_hold(run->s->context, &column, 1, &run->m->sum_capacity, *chunks);
}

/* Kinetic energy of a task's blocks over density and the volume of a cell: of the liquid's share of each cell, u^2 of
   an axis as the mean of its faces. */
static void fsi__ls_energies(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi__ls_impl *m = run->m;
    const int cells = run->grid->block_cells;
    double sum = 0;
    int a, b, c;
    for (b = begin; b < end; b++) {
        const fsi__ls_around around = fsi__ls_around_of(run->grid, b);
        for (c = 0; c < cells; c++) {
            const size_t e = (size_t)b * (size_t)cells + (size_t)c;
            const double wet = 0.5 - (double)m->next_phi->value[e] / (double)run->grid->dx;
            double u2 = 0;
            if (!(wet > 0)) continue;
            for (a = 0; a < run->grid->dim; a++) {
                const fsi_real *u = m->trial_u[a]->value;
                long long at;
                fsi__ls_across(&around, c, 2 * a + 1, &at);
                u2 += ((double)u[e] * (double)u[e] + (at < 0 ? 0 : (double)u[at] * (double)u[at])) / 2;
            }
            sum += (wet < 1 ? wet : 1) * fsi__ls_clear_share(run, e) * u2 / 2;
        }
    }
    m->sum[chunk] = sum;
}

static fsi_status fsi__ls_find_energy(fsi__ls_run *run)
{
    const double dx = (double)run->grid->dx;
    int chunks, k;
    FSI__TRY(fsi__ls_grow_sums(run, &chunks));
    fsi__ls_each_block_long(run, fsi__ls_energies);
    for (k = 0, run->m->kinetic_energy = 0; k < chunks; k++) run->m->kinetic_energy += run->m->sum[k];
    run->m->kinetic_energy *= (double)run->s->desc.density * dx * dx * (run->grid->dim == 3 ? dx : 1);
    return FSI_OK;
}

/* The trial's droplets become the state's. */
static void fsi__ls_swap_droplets(fsi__ls_impl *m)
{
    fsi_levelset_droplet *const droplet = m->droplet;
    const int capacity = m->droplet_capacity;
    m->droplet = m->trial_droplet;
    m->droplet_count = m->trial_droplet_count;
    m->droplet_capacity = m->trial_droplet_capacity;
    m->trial_droplet = droplet;
    m->trial_droplet_capacity = capacity;
}

/* The trial becomes the state, in the blocks that it needs. Once there is room for the components nothing can fail:
   fewer blocks need no memory. */
static fsi_status fsi__ls_commit(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int a, count;

    /* Remove blocks that are not needed; droplets that a sink made may need new ones. */
    fsi__ls_swap_fields(&m->next_phi, &m->trial_phi);
    FSI__TRY(fsi__ls_make_blocks(run, 0));
    if (run->grid->block_count > m->room) FSI__TRY(fsi__ls_make_room(run->s, run->function));
    fsi__ls_notice_blocks(m, run->grid);

    /* Components, their volumes, and the energy. */
    FSI__TRY(fsi_grid_label(m->next_phi, fsi__ls_mask(run), m->trial_label, &count));
    FSI__TRY(fsi_grid_grow_labels(m->trial_label, m->next_phi, 3));
    FSI__TRY(fsi_grid_volumes(m->next_phi, m->trial_label, count, m->trial_u, fsi__ls_psi(m), m->trial.shape));
    FSI__TRY(fsi__ls_find_energy(run));

    /* The public array of components grows last: from here on nothing can fail. */
    FSI__TRY(fsi__ls_grow_components(run->s, m->trial.count, run->function));

    /* Publish the results. */
    fsi__ls_swap_fields(&m->next_phi, &m->phi);
    fsi__ls_swap_fields(&m->trial_pressure, &m->pressure);
    fsi__ls_swap_fields(&m->trial_carried, &m->carried);
    for (a = 0; a < run->grid->dim; a++) {
        fsi__ls_swap_fields(&m->trial_u[a], &m->u[a]);
        fsi__ls_swap_fields(&m->trial_carry[a], &m->carry[a]);
    }
    m->carry_dt = run->carry_dt;
    fsi__ls_swap_parts(&m->trial, &m->parts);
    fsi__ls_swap_droplets(m);
    fsi__ls_take_labels(run->s);
    m->lost_volume += run->lost_volume;
    m->left_volume += run->left_volume;
    for (a = 0; a < m->emitter_count; a++) m->emitter[a].flow = m->emitter[a].trial;
    for (a = 0; a < m->sink_count; a++) m->sink[a].flow = m->sink[a].trial;
    return FSI_OK;
}

/* Adds the droplets to the figures. */
static void fsi__ls_count_droplets(fsi_levelset *s)
{
    const fsi__ls_impl *m = (const fsi__ls_impl *)s->impl;
    const double rho = (double)s->desc.density;
    fsi_levelset_stats *t = &s->stats;
    int k, a;
    s->droplet_count = m->droplet_count;
    s->droplet = m->droplet;
    t->droplet_volume = 0;
    for (k = 0; k < m->droplet_count; k++) {
        const fsi_levelset_droplet *p = &m->droplet[k];
        for (a = 0; a < s->desc.dim; a++) t->momentum[a] += rho * p->volume * (double)fsi__ls_component(p->velocity, a);
        t->potential_energy -= rho * p->volume * (double)fsi_v3_dot(s->desc.gravity, p->position);
        t->kinetic_energy += rho * p->volume * (double)fsi_v3_norm2(p->velocity) / 2;
        t->droplet_volume += p->volume;
    }
    t->volume += t->droplet_volume;
    t->target += t->droplet_volume;
}

/* Updates the public members from the state. */
static void fsi__ls_publish(fsi_levelset *s)
{
    fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
    const double rho = (double)s->desc.density,
                 g[3] = {(double)s->desc.gravity.x, (double)s->desc.gravity.y, (double)s->desc.gravity.z};
    fsi_levelset_stats *t = &s->stats;
    double given;
    int a, c;

    /* fields and components */
    s->phi = m->phi;
    s->pressure = m->pressure;
    for (a = 0; a < 3; a++) s->u[a] = m->u[a];
    s->label = m->label;
    s->component_count = m->parts.count;
    s->component = m->component;

    /* sums over the components */
    t->volume = t->target = t->potential_energy = t->momentum[0] = t->momentum[1] = t->momentum[2] = 0;
    for (c = 0; c < m->parts.count; c++) {
        const fsi_grid_component *p = &m->parts.shape[c];
        const double x[3] = { (double)p->centroid.x, (double)p->centroid.y, (double)p->centroid.z };
        const double momentum[3] = { (double)p->momentum.x, (double)p->momentum.y, (double)p->momentum.z };
        m->component[c].target = m->parts.target[c];
        m->component[c].shape = *p;
        t->volume += p->volume;
        t->target += m->parts.target[c];
        for (a = 0; a < 3; a++) {
            t->momentum[a] += rho * momentum[a];
            t->potential_energy -= rho * p->volume * g[a] * x[a];
        }
    }

    /* energy, droplets, volumes */
    t->kinetic_energy = m->kinetic_energy;
    fsi__ls_count_droplets(s);
    t->lost_volume = m->lost_volume;
    t->left_volume = m->left_volume;
    given = t->target + t->lost_volume + t->left_volume;
    for (c = 0; c < m->sink_count; c++) given += m->sink[c].flow.total;
    t->volume_error = given > 0 ? (t->volume - t->target - t->lost_volume) / given : 0;

    /* memory */
    t->blocks = s->grid->block_count;
    t->bytes = s->context->bytes;
    t->allocs = s->context->allocs;
}

/* Largest speed on faces of cells that are liquid or touch it [m/s]. */
static void fsi__ls_speeds(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_grid *g = run->grid;
    const size_t cells = (size_t)g->block_cells;
    const fsi_real *phi = run->m->trial_phi->value, reach = g->dx;
    double most[FSI_LANES] = { 0 };
    int a, k;
    size_t e;
    for (a = 0; a < g->dim; a++) {
        const fsi_real *u = run->m->trial_u[a]->value;
        for (e = (size_t)begin * cells; e < (size_t)end * cells; e += FSI_LANES)
            for (k = 0; k < FSI_LANES; k++) {
                const double speed = phi[e + (size_t)k] < reach ? fabs((double)u[e + (size_t)k]) : 0;
                most[k] = speed > most[k] ? speed : most[k];
            }
    }
    for (k = 1; k < FSI_LANES; k++) most[0] = most[k] > most[0] ? most[k] : most[0];
    run->m->sum[chunk] = most[0];
}

/* Number of entries of a task's blocks up to the first one of `looked` that is no velocity; -1: all are. */
static void fsi__ls_look_for_nan(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_run *run = (const fsi__ls_run *)arg;
    const fsi_real *u = run->looked->value;
    const size_t last = (size_t)end * (size_t)run->grid->block_cells;
    size_t e = (size_t)begin * (size_t)run->grid->block_cells;
    for (; e < last; e += FSI_LANES) {
        int k, fine = 1;
        for (k = 0; k < FSI_LANES; k++) fine &= fabs((double)u[e + (size_t)k]) <= FSI__LS_BURST;
        if (!fine) break;
    }
    while (e < last && fabs((double)u[e]) <= FSI__LS_BURST) e++;
    run->m->sum[chunk] = e < last ? (double)e : -1;
}

/* All entries of a field of velocities are finite, and none absurd. They are of u[axis]; `end` says when. */
static fsi_status fsi__ls_check_entries(fsi__ls_run *run, const fsi_field *f, const char *end)
{
    int chunks, k;
    FSI__TRY(fsi__ls_grow_sums(run, &chunks));
    run->looked = f;
    fsi__grid_light(run->grid, FSI__LS_GRAIN, 180, fsi__ls_look_for_nan, run);
    for (k = 0; k < chunks; k++) {
        const long long e = (long long)run->m->sum[k];
        const double u = e < 0 ? 0 : (double)f->value[e];
        if (e >= 0 && !fsi_is_finite(u))
            return fsi__fail(run->s->context, FSI_ERROR_NAN, run->function, e, u, "entry %lld of u[%d] is not finite%s",
                             e, run->axis, end);
        if (e >= 0)
            return fsi__fail(run->s->context, FSI_ERROR_LIMIT, run->function, e, u,
                             "entry %lld of u[%d] is %g m/s%s, at most %g is taken", e, run->axis, u, end,
                             FSI__LS_BURST);
    }
    return FSI_OK;
}

/* The caller may have written velocities. */
static fsi_status fsi__ls_check_velocity(fsi__ls_run *run)
{
    for (run->axis = 0; run->axis < run->grid->dim; run->axis++)
        FSI__TRY(fsi__ls_check_entries(run, run->m->u[run->axis], ""));
    return FSI_OK;
}

/* Refuses results that the next step or a load would refuse. */
static fsi_status fsi__ls_check_result(fsi__ls_run *run)
{
    static const char *const end = " after the step";
    int k;
    for (run->axis = 0; run->axis < run->grid->dim; run->axis++) {
        FSI__TRY(fsi__ls_check_entries(run, run->m->trial_u[run->axis], end));
        if (run->m->trial_carry[run->axis])
            FSI__TRY(fsi__ls_check_entries(run, run->m->trial_carry[run->axis], end));
    }
    for (k = 0; k < run->m->trial_droplet_count; k++) {
        const double speed = fsi__ls_speed(run->m->trial_droplet[k].velocity);
        if (!(speed <= FSI__LS_BURST)) return fsi__fail(run->s->context, FSI_ERROR_LIMIT, run->function, k, speed,
            "droplet %d moves at %g m/s%s, at most %g is taken", k, speed, end, FSI__LS_BURST);
    }
    return FSI_OK;
}

static fsi_status fsi__ls_find_speed(fsi__ls_run *run)
{
    int chunks, k;
    FSI__TRY(fsi__ls_grow_sums(run, &chunks));
    fsi__ls_each_block(run, fsi__ls_speeds);
    run->stats.max_speed = fsi__ls_emitter_speed(run->m);
    for (k = 0; k < chunks; k++)
        run->stats.max_speed = run->m->sum[k] > run->stats.max_speed ? run->m->sum[k] : run->stats.max_speed;
    for (k = 0; k < run->m->trial_droplet_count; k++)
        run->stats.max_speed = fmax(run->stats.max_speed, fsi__ls_speed(run->m->trial_droplet[k].velocity));
    if (run->stats.max_speed <= FSI__LS_RUNAWAY) return FSI_OK;
    return fsi__fail(run->s->context, FSI_ERROR_LIMIT, run->function, -1, run->stats.max_speed,
                     "the liquid moves at %g m/s, at most %g is taken", run->stats.max_speed, FSI__LS_RUNAWAY);
}

/* The largest substep [s] that moves nothing farther than cfl dx, acceleration g counted, dt (v + g dt) = cfl dx, and
   that follows capillary waves. */
static double fsi__ls_largest_dt(const fsi_levelset_desc *d, double speed, double g)
{
    const double dx = (double)d->dx, way = (double)d->cfl * dx;
    const double plain = 2 * way / (speed + sqrt(speed * speed + 4 * g * way) + 1e-300);
    const double capillary = (double)d->capillary_cfl * fsi__ls_capillary_time(d);
    return plain < capillary ? plain : capillary;
}

static fsi_status fsi__ls_open_emitters(fsi__ls_run *run);
static fsi_status fsi__ls_condense(fsi__ls_run *run);
FSI_API int fsi__ls_left(const fsi__ls_run *run) { return run->left > 0; }

/* Begins a substep: what comes in first, then its length. */
FSI_API fsi_status fsi__ls_open(fsi__ls_run *run, double speed, double share)
{
    const fsi_levelset_desc *d = &run->s->desc;
    const double spare = d->max_substeps / share - run->stats.substeps;
    double count, largest, strongest, fastest = 0;

    /* everything that moves */
    FSI__TRY(fsi__ls_open_emitters(run));
    FSI__TRY(fsi__ls_condense(run));
    FSI__TRY(fsi__ls_find_speed(run));
    FSI__TRY(fsi__ls_obstacle_speed(run, &fastest));
    fastest = fmax(fmax(fastest, speed), run->stats.max_speed);
    FSI__TRY(fsi__ls_strongest(run->s, run->function, run->m->trial_phi, run->time, &strongest));

    /* as many substeps of one length as it asks for */
    largest = share * fmin(fsi__ls_largest_dt(d, fastest, strongest), run->length);
    count = ceil(run->left / largest - 1e-6); /* rounding of suggest_dt */
    if (!(count >= 1)) count = 1;
    if (count > spare) count = spare, run->stats.degraded = 1;
    run->dt = run->left / count;
    run->left = count > 1 ? run->left - run->dt : 0;
    fsi__ls_emit(run);
    run->done = 1 - run->left / run->length;
    fsi__ls_show(run);
    return FSI_OK;
}

FSI_API void fsi__ls_close(fsi__ls_run *run)
{
    run->time += run->dt;
    run->stats.substeps++;
    run->balanced = 0;
    fsi__ls_show(run);
}

/* Restores psi, which fsi_levelset_phi_at reads, after a call that failed. */
static void fsi__ls_look_back(fsi_levelset *s)
{
    fsi__ls_run run = fsi__ls_make_run(s);
    fsi__ls_begin_obstacles(&run);
    fsi__ls_find_solids(&run);
}

/* The end of a call that worked on the trial. One that failed leaves the blocks that there were: fewer than now, which
   cannot fail. */
static fsi_status fsi__ls_finish(fsi__ls_run *run, fsi_status status)
{
    if (status == FSI_OK) fsi__ls_publish(run->s);
    else if (fsi_grid_set_blocks(run->grid, run->m->before) == FSI_OK) fsi__ls_look_back(run->s);
    return status;
}

/* Warns of a step's degraded results; of a volume error when it has grown by 1 % since the last warning, or has been
   below 1 % since then. */
static void fsi__ls_warn(const fsi__ls_run *run)
{
    const fsi_levelset_stats *t = &run->s->stats;
    const double off = fabs(t->volume_error), lost = run->lost_volume;
    const int grew = off > run->m->told_error + 0.01;
    if (!(off > 0.01)) run->m->told_error = 0;
    if (!t->degraded && !(lost > 0) && !grew) return;
    run->m->told_error = off > 0.01 ? off : 0;
    fsi__warn(run->s->context,
              "fsi_levelset_step to %g s: %s%d substeps, %d of them thinned, volume lost %g, off by %.2g %%",
              run->s->time, t->degraded ? "degraded, " : "", t->substeps, t->thinned, lost, 100 * off);
}

FSI_API fsi_status fsi__ls_begin_step(fsi_levelset *s, double dt, int joint, const char *fn, fsi__ls_run **out)
{
    fsi__ls_run *run = &((fsi__ls_impl *)s->impl)->run;
    fsi_status status;
    FSI__TRY(fsi__ls_check_bodies(s, fn));
    *run = fsi__ls_make_run(s);
    run->length = run->left = dt;
    run->joint = joint;
    run->function = fn;
    status = fsi__ls_begin(run);
    if (status == FSI_OK) status = fsi__ls_check_velocity(run);
    if (status != FSI_OK) return fsi__ls_finish(run, status);
    fsi__ls_show(run);
    *out = run;
    return FSI_OK;
}

/* The trial becomes the state. On failure nothing has changed. */
static fsi_status fsi__ls_commit_step(fsi__ls_run *run)
{
    FSI__TRY(fsi__ls_find_speed(run));
    run->stats.cfl = run->stats.max_speed * run->dt / (double)run->s->desc.dx;
    FSI__TRY(fsi__ls_check_result(run));
    return fsi__ls_commit(run);
}

/* What the step did to obstacles and bodies. */
static void fsi__ls_commit_obstacles(fsi__ls_run *run)
{
    const int count = run->m->obstacle_count;
    int k;
    for (k = 0; k < count; k++) fsi_body_begin_step(run->m->obstacle[k].desc.body, (fsi_real)run->length);
    for (k = 0; k < count; k++) {
        if (run->length > 0) fsi__ls_commit_obstacle(&run->m->obstacle[k], run->length);
        else fsi__ls_calm_obstacle(&run->m->obstacle[k]);
    }
}

FSI_API fsi_status fsi__ls_end_step(fsi__ls_run *run, fsi_status status)
{
    fsi_levelset *s = run->s;
    if (status == FSI_OK) status = fsi__ls_commit_step(run);
    if (status != FSI_OK) return fsi__ls_finish(run, status);
    fsi__ls_lap(run, &run->stats.seconds_other);
    s->stats = run->stats;
    s->time += run->length;
    run->m->moves += run->length > 0;
    fsi__ls_commit_obstacles(run);
    fsi__ls_publish(s);
    fsi__ls_show(run);
    fsi__ls_warn(run);
    return FSI_OK;
}

static fsi_status fsi__ls_run_substeps(fsi__ls_run *run)
{
    while (fsi__ls_left(run)) {
        FSI__TRY(fsi__ls_open(run, 0, 1));
        FSI__TRY(fsi__ls_substep(run));
        fsi__ls_close(run);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_levelset_step(fsi_levelset *s, fsi_real dt)
{
    static const char *const fn = "fsi_levelset_step";
    fsi__ls_run *run;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__check_dt(s->context, dt, fn));
    FSI__TRY(fsi__ls_begin_step(s, (double)dt, 0, fn, &run));
    return fsi__ls_end_step(run, fsi__ls_run_substeps(run));
}

FSI_API fsi_real fsi__ls_suggest_dt(const fsi_levelset *s, double speed, const char *function)
{
    const fsi__ls_impl *m = (const fsi__ls_impl *)s->impl;
    double v, dt, strongest;
    int k;
    speed = fmax(speed, fmax(fsi__ls_emitter_speed(m), s->stats.max_speed));
    for (k = 0; k < m->obstacle_count; k++) {
        const fsi_body *body = m->obstacle[k].desc.body;
        v = body && body->mode == FSI_BODY_COUPLED
                ? fsi__ls_fastest(body->velocity, body->angular_velocity, m->obstacle[k].reach)
                : 0;
        speed = v > speed ? v : speed;
    }
    if (fsi__ls_strongest(s, function, s->phi, s->time, &strongest) != FSI_OK) return 0;
    dt = fsi__ls_largest_dt(&s->desc, speed, strongest);
    return dt < 1000 ? (dt > 1e-12 ? (fsi_real)dt : (fsi_real)1.001e-12) : 1000;
}

FSI_API fsi_real fsi_levelset_suggest_dt(const fsi_levelset *s)
{
    return fsi__is_levelset(s) ? fsi__ls_suggest_dt(s, 0, "fsi_levelset_suggest_dt") : 0;
}

FSI__COLD_BEGIN

/* ---- >>fill ------------------------------------------------------------------------------------------------------ */

/* A shape to fill: one of these calls of the grid, on next_phi. */
typedef struct fsi__ls_shape {
    const char *function;
    fsi_vec3 center;
    fsi_real radius;
    const fsi_box3 *box;
    const fsi_mesh *mesh;
    const fsi__ls_emitter *emitter; /* its nozzle */
} fsi__ls_shape;

static fsi_status fsi__ls_fill_shape(fsi_field *phi, const fsi__ls_shape *shape)
{
    if (shape->mesh) return fsi_grid_fill_mesh(phi, FSI_GRID_ADD, shape->mesh, FSI__LS_BAND);
    if (shape->box) return fsi_grid_fill_box(phi, FSI_GRID_ADD, *shape->box, FSI__LS_BAND);
    return fsi_grid_fill_sphere(phi, FSI_GRID_ADD, shape->center, shape->radius, FSI__LS_BAND);
}

enum { FSI__LS_OLD = 1, FSI__LS_NEW = 2 };

/* Kinds for a fill: liquid where trial_phi was (OLD) or where next_phi made it (NEW). */
static void fsi__ls_mark_liquid(fsi__ls_run *run, int which)
{
    const fsi__ls_impl *m = run->m;
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    const unsigned char is_old = which & FSI__LS_OLD ? FSI_CELL_LIQUID : FSI_CELL_AIR;
    const unsigned char is_new = which & FSI__LS_NEW ? FSI_CELL_LIQUID : FSI_CELL_AIR;
    const fsi_real *old = m->trial_phi->value, *now = m->next_phi->value;
    unsigned char *cell = m->cell;
    size_t e;
    for (e = 0; e < cells; e++) cell[e] = old[e] < 0 ? is_old : now[e] < 0 ? is_new : (unsigned char)FSI_CELL_AIR;
}

/* Faces next to new liquid get `velocity`, unless they are next to old liquid too. */
static fsi_status fsi__ls_fill_velocity(fsi__ls_run *run, fsi_vec3 velocity)
{
    fsi__ls_impl *m = run->m;
    const fsi_real v[3] = { velocity.x, velocity.y, velocity.z };
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    size_t e;
    for (run->axis = 0; run->axis < run->grid->dim; run->axis++) {
        fsi_real *to = m->next_u[run->axis]->value, *from = m->trial_u[run->axis]->value;
        fsi__ls_mark_liquid(run, FSI__LS_NEW);
        fsi__ls_each_block(run, fsi__ls_known_faces);
        for (e = 0; e < cells; e++) to[e] = m->known[run->axis][e] ? v[run->axis] : from[e];
        fsi__ls_mark_liquid(run, FSI__LS_OLD);
        fsi__ls_each_block(run, fsi__ls_known_faces);
        for (e = 0; e < cells; e++)
            if (!m->known[run->axis][e]) from[e] = to[e];
    }
    fsi__ls_mark_liquid(run, FSI__LS_OLD | FSI__LS_NEW);
    return fsi__ls_extrapolate(run);
}

/* Target volumes after an edit: old components pass on the difference from their targets; new liquid has the volume
   measured. A component whose target falls below the volume that an obstacle leaves of it is to vanish. */
static fsi_status fsi__ls_fill_targets(fsi__ls_run *run)
{
    fsi__ls_impl *m = run->m;
    int c;
    for (c = 0; c < m->trial.count; c++) m->trial.target[c] -= m->trial.shape[c].volume;
    run->fills = 1;
    FSI__TRY(fsi__ls_follow_components(run, 0, 1));
    run->fills = 0;
    for (c = 0; c < m->next.count; c++) m->next.target[c] = fmax(m->next.target[c] + m->next.shape[c].volume, 0);
    fsi__ls_take_next(m);
    return FSI_OK;
}

/* Adds a shape to the trial. */
static fsi_status fsi__ls_pour(fsi__ls_run *run, const fsi__ls_shape *shape, fsi_vec3 velocity)
{
    fsi__ls_impl *m = run->m;
    run->released = 0; /* faces have other numbers then */
    memcpy(m->next_phi->value, m->trial_phi->value,
           (size_t)run->grid->block_count * (size_t)run->grid->block_cells * sizeof(fsi_real));
    FSI__TRY(shape->emitter ? fsi__ls_add_nozzle(run, shape->emitter) : fsi__ls_fill_shape(m->next_phi, shape));
    FSI__TRY(fsi__ls_make_blocks(run, 1));
    FSI__TRY(fsi__ls_make_room(run->s, shape->function));
    FSI__TRY(fsi__ls_relabel(run));
    FSI__TRY(fsi__ls_wet_solids(run));
    FSI__TRY(fsi__ls_fill_velocity(run, velocity));
    FSI__TRY(fsi__ls_fill_targets(run));
    fsi__ls_swap_fields(&m->trial_phi, &m->next_phi);
    return FSI_OK;
}

static double fsi__ls_sum_targets(const fsi__ls_parts *p)
{
    double sum = 0;
    int c;
    for (c = 0; c < p->count; c++) sum += p->target[c];
    return sum;
}

FSI_API fsi_status fsi__ls_begin_edit(fsi_levelset *s, const char *fn, fsi__ls_run **out)
{
    fsi__ls_run *run = &((fsi__ls_impl *)s->impl)->run;
    fsi_status status;
    *run = fsi__ls_make_run(s);
    run->function = fn;
    status = fsi__ls_begin(run);
    if (status != FSI_OK) return fsi__ls_finish(run, status);
    run->before = fsi__ls_sum_targets(&run->m->trial);
    memcpy(run->m->next_phi->value, run->m->trial_phi->value,
        (size_t)run->grid->block_count * (size_t)run->grid->block_cells * sizeof(fsi_real));
    fsi__ls_show(run);
    *out = run;
    return FSI_OK;
}

FSI_API fsi_status fsi__ls_measure_edit(fsi__ls_run *run, int changed, double *before, double *now)
{
    fsi__ls_impl *m = run->m;
    if (changed) FSI__TRY(fsi_grid_redistance(m->next_phi, FSI__LS_BAND, m->next_phi));
    FSI__TRY(fsi__ls_make_blocks(run, 1));
    FSI__TRY(fsi__ls_make_room(run->s, run->function));
    FSI__TRY(fsi__ls_relabel(run));
    FSI__TRY(fsi__ls_fill_targets(run));
    *before = run->before;
    *now = fsi__ls_sum_targets(&m->trial);
    return FSI_OK;
}

FSI_API fsi_status fsi__ls_end_edit(fsi__ls_run *run, fsi_status status)
{
    if (status == FSI_OK) {
        fsi__ls_swap_fields(&run->m->trial_phi, &run->m->next_phi);
        status = fsi__ls_find_speed(run);
    }
    if (status == FSI_OK) status = fsi__ls_commit(run);
    return fsi__ls_finish(run, status);
}

/* Fills the nozzle of an emitter. */
static fsi_status fsi__ls_open_nozzle(fsi__ls_run *run, fsi__ls_emitter *e)
{
    fsi__ls_impl *m = run->m;
    const double before = fsi__ls_sum_targets(&m->trial);
    fsi__ls_shape shape;
    memset(&shape, 0, sizeof shape);
    shape.function = "fsi_levelset_step";
    shape.emitter = e;
    FSI__TRY(fsi_grid_volumes(m->trial_phi, m->trial_label, m->trial.count, NULL, fsi__ls_psi(m), m->trial.shape));
    FSI__TRY(fsi__ls_pour(run, &shape, fsi_v3_madd(e->desc.velocity, e->desc.speed, e->desc.direction)));
    e->trial.total += fsi__ls_sum_targets(&m->trial) - before;
    e->trial.open = 1;
    return FSI_OK;
}

/* x, moved so that a ball of this radius around it touches no wall and no obstacle that lets it. */
static fsi_vec3 fsi__ls_make_way(const fsi__ls_run *run, fsi_vec3 x, double radius)
{
    const fsi_grid *g = run->grid;
    const fsi_real r = (fsi_real)radius, dx = g->dx;
    const double psi = run->m->obstacle_count > 0 ? (double)fsi_grid_sample_linear(run->m->psi, x) : radius;
    fsi_vec3 n;
    if (psi < radius) {
        fsi_grid_sample_spline(run->m->psi, x, &n);
        x = fsi_v3_madd(x, (fsi_real)(radius - psi), fsi_v3_unit(n));
    }
    x.x = fsi_max(g->origin.x + r, fsi_min(g->origin.x + (fsi_real)g->n[0] * dx - r, x.x));
    x.y = fsi_max(g->origin.y + r, fsi_min(g->origin.y + (fsi_real)g->n[1] * dx - r, x.y));
    if (g->dim == 3) x.z = fsi_max(g->origin.z + r, fsi_min(g->origin.z + (fsi_real)g->n[2] * dx - r, x.z));
    return x;
}

/* Takes the droplets in the cells around `cell` out; *all: their volume, middle and mean velocity. */
static void fsi__ls_gather_droplets(fsi__ls_run *run, const int *cell, fsi_levelset_droplet *all)
{
    fsi__ls_impl *m = run->m;
    int k, a, kept = 0, at[3];
    memset(all, 0, sizeof *all);
    for (k = 0; k < m->trial_droplet_count; k++) {
        const fsi_levelset_droplet p = m->trial_droplet[k];
        int beside = 1;
        (void)fsi__ls_entry_at(run->grid, p.position, at);
        for (a = 0; a < 3; a++) beside &= at[a] >= cell[a] - 1 && at[a] <= cell[a] + 1;
        if (!beside) {
            m->trial_droplet[kept++] = p;
            continue;
        }
        all->volume += p.volume;
        all->position =
            fsi_v3_madd(all->position, (fsi_real)(p.volume / all->volume), fsi_v3_sub(p.position, all->position));
        all->velocity =
            fsi_v3_madd(all->velocity, (fsi_real)(p.volume / all->volume), fsi_v3_sub(p.velocity, all->velocity));
    }
    m->trial_droplet_count = kept;
}

/* Makes one ball of the droplets in the cells around `cell`. Where no component comes of it, one droplet is left. */
static fsi_status fsi__ls_condense_around(fsi__ls_run *run, const int *cell)
{
    fsi__ls_impl *m = run->m;
    const double before = fsi__ls_sum_targets(&m->trial);
    fsi_levelset_droplet all;
    fsi__ls_shape shape;
    int at[3];
    long long entry;
    fsi__ls_gather_droplets(run, cell, &all);
    memset(&shape, 0, sizeof shape);
    shape.function = "fsi_levelset_step";
    shape.radius = (fsi_real)fsi__ls_radius(run->grid->dim, all.volume);
    shape.center = fsi__ls_make_way(run, all.position, (double)shape.radius);
    FSI__TRY(fsi_grid_volumes(m->trial_phi, m->trial_label, m->trial.count, NULL, fsi__ls_psi(m), m->trial.shape));
    FSI__TRY(fsi__ls_pour(run, &shape, all.velocity));
    all.volume -= fsi__ls_sum_targets(&m->trial) - before; /* the volume by marching differs from the ball's */
    entry = fsi__ls_entry_at(run->grid, shape.center, at);
    if (entry >= 0 && m->trial_label[entry] >= 0) m->trial.target[m->trial_label[entry]] += all.volume;
    else if (all.volume > 0) m->trial_droplet[m->trial_droplet_count++] = all; /* where at least one stood before */
    return FSI_OK;
}

/* Finds a cell around which droplets are enough for a ball of radius dx. spare: their volumes at cells. */
static int fsi__ls_find_cluster(const fsi__ls_run *run, int *at)
{
    const fsi__ls_impl *m = run->m;
    const fsi_grid *g = run->grid;
    const double dx = (double)g->dx, enough = g->dim == 3 ? 4 * FSI_PI / 3 * dx * dx * dx : FSI_PI * dx * dx;
    const int deep = g->dim == 3;
    long long e;
    int k, i, j, l;
    memset(m->spare->value, 0, (size_t)g->block_count * (size_t)g->block_cells * sizeof(fsi_real));
    for (k = 0; k < m->trial_droplet_count; k++)
        if ((e = fsi__ls_entry_at(g, m->trial_droplet[k].position, at)) >= 0)
            m->spare->value[e] += (fsi_real)m->trial_droplet[k].volume;
    for (k = 0; k < m->trial_droplet_count; k++) {
        double sum = 0;
        (void)fsi__ls_entry_at(g, m->trial_droplet[k].position, at);
        for (l = -deep; l <= deep; l++) for (j = -1; j <= 1; j++) for (i = -1; i <= 1; i++)
            sum += (e = fsi_grid_entry(g, at[0] + i, at[1] + j, at[2] + l)) < 0 ? 0 : (double)m->spare->value[e];
        if (sum >= enough) return 1;
    }
    return 0;
}

/* Droplets that are close enough together become liquid on the grid. */
static fsi_status fsi__ls_condense(fsi__ls_run *run)
{
    int at[3], before = run->m->trial_droplet_count + 1;
    while (run->m->trial_droplet_count > 0 && run->m->trial_droplet_count < before && fsi__ls_find_cluster(run, at)) {
        before = run->m->trial_droplet_count;
        FSI__TRY(fsi__ls_condense_around(run, at));
    }
    return FSI_OK;
}

/* Opens and shuts emitters as their times say. */
static fsi_status fsi__ls_open_emitters(fsi__ls_run *run)
{
    int k, cell[3];
    for (k = 0; k < run->m->emitter_count; k++) {
        fsi__ls_emitter *e = &run->m->emitter[k];
        long long at = 0;
        if (!(e->desc.speed > 0 && e->desc.start <= run->time && run->time < e->desc.stop &&
              fsi__ls_nozzle_cell(e, run->grid, &at, cell)))
            e->trial.open = 0;
        else if (!e->trial.open) FSI__TRY(fsi__ls_open_nozzle(run, e));
    }
    return FSI_OK;
}

static fsi_status fsi__ls_fill_trial(fsi__ls_run *run, const fsi__ls_shape *shape, fsi_vec3 velocity)
{
    FSI__TRY(fsi__ls_begin(run));
    FSI__TRY(fsi__ls_pour(run, shape, velocity));
    FSI__TRY(fsi__ls_find_speed(run));
    return fsi__ls_commit(run);
}

/* Sum of the target volumes. */
static double fsi__ls_all_targets(const fsi_levelset *s)
{
    double sum = 0;
    int c;
    for (c = 0; c < s->component_count; c++) sum += s->component[c].target;
    return sum;
}

static fsi_status fsi__ls_fill(fsi_levelset *s, const fsi__ls_shape *shape, fsi_vec3 velocity, double *added)
{
    const fsi__where at = { shape->function, "", -1, 3 };
    const fsi__field row[] = { FSI__VALUE(velocity, FSI__VEC3, 0, FSI__LS_FASTEST, 0) };
    const double before = fsi__ls_all_targets(s);
    fsi__ls_run run;
    fsi_status status;
    double more;

    /* check */
    if (added) *added = 0;
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, &velocity, row));

    /* fill the trial and publish it */
    run = fsi__ls_make_run(s);
    run.function = shape->function;
    status = fsi__ls_fill_trial(&run, shape, velocity);
    if (status == FSI_OK) s->stats.max_speed = run.stats.max_speed;
    status = fsi__ls_finish(&run, status);
    if (status != FSI_OK) return status;

    /* growth of the target volumes */
    more = fsi__ls_all_targets(s) - before;
    if (!(more > 1e-6 * pow((double)s->grid->dx, s->grid->dim))) { /* rounding of the sums */
        more = 0;
        fsi__warn(s->context,
                  "%s added nothing: the place is out of the box, full already, in a solid, or smaller than a cell",
                  shape->function);
    }
    if (added) *added = more;
    return FSI_OK;
}

FSI_API fsi_status fsi_levelset_fill_sphere(fsi_levelset *s, fsi_vec3 center, fsi_real radius, fsi_vec3 velocity,
                                            double *added)
{
    fsi__ls_shape shape;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    memset(&shape, 0, sizeof shape);
    shape.function = "fsi_levelset_fill_sphere";
    shape.center = center;
    shape.radius = radius;
    return fsi__ls_fill(s, &shape, velocity, added);
}

FSI_API fsi_status fsi_levelset_fill_box(fsi_levelset *s, fsi_box3 box, fsi_vec3 velocity, double *added)
{
    fsi__ls_shape shape;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    memset(&shape, 0, sizeof shape);
    shape.function = "fsi_levelset_fill_box";
    shape.box = &box;
    return fsi__ls_fill(s, &shape, velocity, added);
}

FSI_API fsi_status fsi_levelset_fill_mesh(fsi_levelset *s, const fsi_mesh *mesh, fsi_vec3 velocity, double *added)
{
    fsi__ls_shape shape;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    memset(&shape, 0, sizeof shape);
    shape.function = "fsi_levelset_fill_mesh";
    shape.mesh = mesh;
    if (!mesh) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, shape.function, -1, 0, "mesh is NULL");
    return fsi__ls_fill(s, &shape, velocity, added);
}

/* ---- >>sources -------------------------------------------------------------------------------------------------- */

static fsi_status fsi__ls_check_emitter(const fsi_levelset *s, const char *fn, const fsi_levelset_emitter_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_levelset_emitter_desc, shape, FSI__INT, 0, 1, 0),
        FSI__FINITE(fsi_levelset_emitter_desc, center), FSI__DIRECTION(fsi_levelset_emitter_desc, direction),
        FSI__FIELD(fsi_levelset_emitter_desc, velocity, FSI__VEC3, 0, FSI__LS_FASTEST, 0),
        FSI__FIELD(fsi_levelset_emitter_desc, speed, FSI__REAL, 0, FSI__LS_FASTEST, 0),
        FSI__FIELD(fsi_levelset_emitter_desc, start, FSI__DOUBLE, -FSI__HUGE, FSI__HUGE, 0),
        FSI__FIELD(fsi_levelset_emitter_desc, stop, FSI__DOUBLE, -FSI__HUGE, FSI__HUGE, 0)
    };
    const double least = 0.999 * (double)s->desc.dx, most = 16384 * (double)s->desc.dx;
    const fsi__field size[] = {
        FSI__FIELD(fsi_levelset_emitter_desc, radius, FSI__REAL, least, most, 0),
        FSI__FIELD(fsi_levelset_emitter_desc, half_width, FSI__REAL, least, most, 0),
        FSI__FIELD(fsi_levelset_emitter_desc, half_height, FSI__REAL, least, most, 0),
        FSI__FINITE(fsi_levelset_emitter_desc, side)
    };
    const fsi__where at = { fn, "desc.", -1, s->desc.dim };
    FSI__TRY(fsi__check_filled(s->context, fn, d, FSI__COOKIE('e', fsi_levelset_emitter_desc),
        "fsi_levelset_default_emitter_desc"));
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, d, rows));
    if (d->shape == FSI_LEVELSET_EMITTER_DISC) return fsi__check_rows(s->context, &at, d, size, 1);
    return fsi__check_rows(s->context, &at, d, size + 1, s->desc.dim == 2 ? 1 : 3);
}

/* A new emitter from a desc of the caller's: its place, the axes of its inlet, and its area. */
static fsi_status fsi__ls_make_emitter(const fsi_levelset *s, const char *fn, const fsi_levelset_emitter_desc *d,
                                       fsi__ls_emitter *e)
{
    int disc;
    FSI__TRY(fsi__ls_check_emitter(s, fn, d));
    disc = d->shape == FSI_LEVELSET_EMITTER_DISC;
    memset(e, 0, sizeof *e);
    e->desc = *d;
    e->desc.direction = fsi_v3_unit(d->direction);
    fsi__d3_put(e->flow.center, fsi__d3_of(d->center));
    FSI__TRY(fsi__inlet_axes(s->context, fn, s->desc.dim, e->desc.direction, disc ? fsi_v3(0, 0, 0) : d->side,
        e->axis));
    e->half[0] = (double)(disc ? d->radius : d->half_width);
    e->half[1] = disc ? e->half[0] : (double)d->half_height;
    if (s->desc.dim == 2) e->area = 2 * e->half[0];
    else e->area = disc ? FSI_PI * e->half[0] * e->half[0] : 4 * e->half[0] * e->half[1];
    return FSI_OK;
}

FSI_API fsi_status fsi_levelset_add_emitter(fsi_levelset *s, const fsi_levelset_emitter_desc *desc, int *id)
{
    static const char *const fn = "fsi_levelset_add_emitter";
    fsi__ls_emitter e;
    fsi__ls_impl *m;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__ls_make_emitter(s, fn, desc, &e));
    m = (fsi__ls_impl *)s->impl;
    FSI__TRY(fsi__room_in(s->context, &m->emitter, sizeof *m->emitter, m->emitter_count, &m->emitter_capacity,
        m->emitter_count + 1, fn));
    e.flow.id = m->next_emitter++;
    m->emitter[m->emitter_count++] = e;
    if (id) *id = (int)e.flow.id;
    return FSI_OK;
}

/* Simulator and id; the latter's emitter. */
static fsi_status fsi__ls_find_emitter(const fsi_levelset *s, const char *fn, int id, fsi__ls_emitter **emitter)
{
    fsi__ls_impl *m;
    int k;
    *emitter = NULL;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    m = (fsi__ls_impl *)s->impl;
    for (k = 0; k < m->emitter_count; k++) {
        *emitter = &m->emitter[k];
        if ((*emitter)->flow.id == id) return FSI_OK;
    }
    return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, id, 0, "there is no emitter %d", id);
}

FSI_API fsi_status fsi_levelset_set_emitter(fsi_levelset *s, int id, const fsi_levelset_emitter_desc *desc)
{
    static const char *const fn = "fsi_levelset_set_emitter";
    fsi__ls_emitter e, *old;
    FSI__TRY(fsi__ls_find_emitter(s, fn, id, &old));
    FSI__TRY(fsi__ls_make_emitter(s, fn, desc, &e));
    e.flow.id = id;
    e.flow.total = old->flow.total;
    *old = e;
    return FSI_OK;
}

FSI_API fsi_status fsi_levelset_remove_emitter(fsi_levelset *s, int id)
{
    fsi__ls_emitter *e;
    fsi__ls_impl *m;
    FSI__TRY(fsi__ls_find_emitter(s, "fsi_levelset_remove_emitter", id, &e));
    m = (fsi__ls_impl *)s->impl;
    m->emitter_count--;
    memmove(e, e + 1, (size_t)(m->emitter + m->emitter_count - e) * sizeof *e);
    return FSI_OK;
}

FSI_API fsi_status fsi_levelset_emitter_total(const fsi_levelset *s, int id, double *volume)
{
    fsi__ls_emitter *e;
    FSI__TRY(fsi__ls_find_emitter(s, "fsi_levelset_emitter_total", id, &e));
    if (volume) *volume = e->flow.total;
    return FSI_OK;
}

static fsi_status fsi__ls_check_sink(const fsi_levelset *s, const char *fn, const fsi_levelset_sink_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_levelset_sink_desc, shape, FSI__INT, 0, 2, 0),
        FSI__FIELD(fsi_levelset_sink_desc, rate, FSI__REAL, 0, 1e30, 0)
    };
    static const fsi__field ball[] = {
        FSI__FINITE(fsi_levelset_sink_desc, center),
        FSI__FIELD(fsi_levelset_sink_desc, radius, FSI__REAL, 1e-30, 1e30, 0)
    };
    const fsi__where at = { fn, "desc.", -1, s->desc.dim };
    FSI__TRY(fsi__check_filled(s->context, fn, d, FSI__COOKIE('k', fsi_levelset_sink_desc),
        "fsi_levelset_default_sink_desc"));
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, d, rows));
    if (d->shape == FSI_LEVELSET_SINK_MESH && !d->mesh)
        return fsi__fail(s->context, FSI_ERROR_COOKIE, fn, -1, 0, "desc.mesh is NULL");
    if (d->shape == FSI_LEVELSET_SINK_MESH) return fsi__check_mesh(s->context, fn, d->mesh, s->desc.dim, 1);
    if (d->shape != FSI_LEVELSET_SINK_BOX) return FSI__CHECK_TABLE(s->context, &at, d, ball);
    return fsi__check_box(s->context, fn, s->desc.dim, &d->box);
}

FSI_API fsi_status fsi_levelset_add_sink(fsi_levelset *s, const fsi_levelset_sink_desc *desc, int *id)
{
    static const char *const fn = "fsi_levelset_add_sink";
    fsi__ls_impl *m;
    fsi__ls_sink *sink;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__ls_check_sink(s, fn, desc));
    m = (fsi__ls_impl *)s->impl;
    FSI__TRY(fsi__room_in(s->context, &m->sink, sizeof *m->sink, m->sink_count, &m->sink_capacity,
        m->sink_count + 1, fn));
    sink = &m->sink[m->sink_count++];
    memset(sink, 0, sizeof *sink);
    sink->desc = *desc;
    sink->flow.id = m->next_sink++;
    if (id) *id = (int)sink->flow.id;
    return FSI_OK;
}

/* Simulator and id; the latter's sink. */
static fsi_status fsi__ls_find_sink_of(const fsi_levelset *s, const char *fn, int id, fsi__ls_sink **sink)
{
    fsi__ls_impl *m;
    int k;
    *sink = NULL;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    m = (fsi__ls_impl *)s->impl;
    for (k = 0; k < m->sink_count; k++) {
        *sink = &m->sink[k];
        if ((*sink)->flow.id == id) return FSI_OK;
    }
    return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, id, 0, "there is no sink %d", id);
}

FSI_API fsi_status fsi_levelset_remove_sink(fsi_levelset *s, int id)
{
    fsi__ls_sink *sink;
    fsi__ls_impl *m;
    FSI__TRY(fsi__ls_find_sink_of(s, "fsi_levelset_remove_sink", id, &sink));
    m = (fsi__ls_impl *)s->impl;
    m->sink_count--;
    memmove(sink, sink + 1, (size_t)(m->sink + m->sink_count - sink) * sizeof *sink);
    return FSI_OK;
}

FSI_API fsi_status fsi_levelset_sink_total(const fsi_levelset *s, int id, double *volume)
{
    fsi__ls_sink *sink;
    FSI__TRY(fsi__ls_find_sink_of(s, "fsi_levelset_sink_total", id, &sink));
    if (volume) *volume = sink->flow.total;
    return FSI_OK;
}

FSI_API fsi_status fsi_levelset_set_volume(fsi_levelset *s, int component, double volume)
{
    const fsi__where at = { "fsi_levelset_set_volume", "", -1, 3 };
    fsi__field row[] = { FSI__VALUE(volume, FSI__DOUBLE, 0, 0, 0) };
    fsi__ls_impl *m;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    m = (fsi__ls_impl *)s->impl;
    if (component < 0 || component >= m->parts.count)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, at.function, component, 0, "there is no component %d",
            component);
    row[0].hi = (double)s->grid->n[0] * s->grid->n[1] * s->grid->n[2] * pow((double)s->grid->dx, s->grid->dim);
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, &volume, row));
    m->parts.target[component] = volume;
    fsi__ls_publish(s);
    return FSI_OK;
}

FSI__COLD_END

/* ---- >>read out ------------------------------------------------------------------------------------------------- */

/* phi cut off inside solids deeper than `skin`. */
FSI_FN fsi_real fsi__ls_outside(fsi_real phi, fsi_real psi, fsi_real skin) { return fsi_max(phi, -psi - skin); }

FSI_API fsi_real fsi_levelset_phi_at(const fsi_levelset *s, fsi_vec3 x)
{
    const fsi_field *psi;
    if (!fsi__is_levelset(s)) return 0;
    psi = fsi__ls_psi((const fsi__ls_impl *)s->impl);
    return psi ? fsi__ls_outside(fsi_grid_sample_linear(s->phi, x), fsi_grid_sample_linear(psi, x), 0)
               : fsi_grid_sample_linear(s->phi, x);
}

/* Pressure on the wall at x, psi from it: that of the cell in front of the wall, extrapolated to x by rho g (with the
   present desc.acceleration). Interpolation there would include cells in the solid, which have no pressure, and at an
   edge those behind it. */
static fsi_real fsi__ls_wall_pressure(const fsi_levelset *s, fsi_vec3 x, fsi_real psi)
{
    const fsi__ls_impl *m = (const fsi__ls_impl *)s->impl;
    const fsi_grid *g = s->grid;
    fsi_vec3 n, y, pull = s->desc.gravity;
    double a[3];
    int k;
    fsi_grid_sample_spline(m->psi, x, &n);
    n = fsi_v3_unit(n);
    if (s->desc.acceleration && fsi__ls_acceleration(s, x, s->time, a))
        pull = fsi_v3_add(pull, fsi_v3((fsi_real)a[0], (fsi_real)a[1], (fsi_real)a[2]));
    for (k = 0; k < 2; k++) { /* a cell that is all but covered has none either: the next one */
        const fsi_real way = (fsi_real)(0.01 + 0.5 * k) * g->dx - (psi < 0 ? psi : 0);
        long long at;
        y = fsi_v3_scale(fsi_v3_sub(fsi_v3_madd(x, way, n), g->origin), 1 / g->dx);
        at = y.x < 0 || y.y < 0 || y.z < 0 ? -1 : fsi_grid_entry(g, (int)y.x, (int)y.y, g->dim == 3 ? (int)y.z : 0);
        if (at < 0 || !(fabs((double)s->pressure->value[at]) > 0)) continue;
        y = fsi_v3_sub(x, fsi__ls_entry_position(g, FSI_CELLS, (int)at));
        return s->pressure->value[at] + s->desc.density * fsi_v3_dot(pull, y);
    }
    return 0;
}

/* x, or the place in the box that is nearest; NaN: its lower corner. In 2D in the plane. */
static fsi_vec3 fsi__ls_into_box(const fsi_grid *g, fsi_vec3 x)
{
    x.x = fsi__into(x.x, g->origin.x, g->origin.x + (fsi_real)g->n[0] * g->dx);
    x.y = fsi__into(x.y, g->origin.y, g->origin.y + (fsi_real)g->n[1] * g->dx);
    x.z = g->dim == 3 ? fsi__into(x.z, g->origin.z, g->origin.z + (fsi_real)g->n[2] * g->dx) : g->origin.z;
    return x;
}

FSI_API fsi_real fsi_levelset_pressure_at(const fsi_levelset *s, fsi_vec3 x)
{
    const fsi__ls_impl *m;
    fsi_real psi, w, p;
    if (!fsi__is_levelset(s)) return 0;
    m = (const fsi__ls_impl *)s->impl;
    x = fsi__ls_into_box(s->grid, x);
    p = fsi_grid_sample_linear(s->pressure, x);
    if (m->obstacle_count == 0) return p;
    psi = fsi_grid_sample_linear(m->psi, x);
    w = 4 * psi / s->grid->dx - 1; /* around an edge psi between cells is up to 0.2 dx too large */
    if (w >= 1 || psi < -s->grid->dx) return p;
    return w > 0 ? w * p + (1 - w) * fsi__ls_wall_pressure(s, x, psi) : fsi__ls_wall_pressure(s, x, psi);
}

FSI_API fsi_vec3 fsi_levelset_velocity_at(const fsi_levelset *s, fsi_vec3 x)
{
    return fsi__is_levelset(s) ? fsi_grid_sample_velocity(s->u, x) : fsi_v3(0, 0, 0);
}

typedef struct fsi__ls_copy {
    const fsi_levelset *s;
    fsi_levelset_field field;
    int lo[3], n[3];
    float *out;
} fsi__ls_copy;

/* Rows of cells along x. */
static void fsi__ls_copy_rows(void *arg, int chunk, int begin, int end)
{
    const fsi__ls_copy *job = (const fsi__ls_copy *)arg;
    const fsi_levelset *s = job->s;
    const fsi_field *f = job->field == FSI_LEVELSET_PHI ? s->phi : s->pressure;
    const fsi_field *psi = job->field == FSI_LEVELSET_PHI ? fsi__ls_psi((const fsi__ls_impl *)s->impl) : NULL;
    int row, i, a;
    (void)chunk;
    for (row = begin; row < end; row++) {
        const int j = job->lo[1] + row % job->n[1], k = job->lo[2] + row / job->n[1];
        float *out = job->out + (size_t)row * (size_t)job->n[0] * (job->field == FSI_LEVELSET_VELOCITY ? 3 : 1);
        for (i = job->lo[0]; i < job->lo[0] + job->n[0]; i++) {
            if (psi) *out++ = (float)fsi__ls_outside(fsi_grid_at(f, i, j, k), fsi_grid_at(psi, i, j, k), 0);
            else if (job->field != FSI_LEVELSET_VELOCITY) *out++ = (float)fsi_grid_at(f, i, j, k);
            else
                for (a = 0; a < 3; a++)
                    *out++ = s->u[a] ? (float)((fsi_grid_at(s->u[a], i, j, k) +
                                                fsi_grid_at(s->u[a], i + (a == 0), j + (a == 1), k + (a == 2))) /
                                               2)
                                     : 0;
        }
    }
}

FSI_API fsi_status fsi_levelset_copy(const fsi_levelset *s, fsi_levelset_field field, const int *lo, const int *n,
                                     float *out)
{
    static const char *const fn = "fsi_levelset_copy";
    const fsi__where at = { fn, "", -1, 3 };
    const fsi__field row[] = { FSI__VALUE(field, FSI__INT, 0, 2, 0) };
    fsi__ls_copy job;
    double rows, work;
    int a;

    /* check */
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, &field, row));
    if (!out || !lo != !n)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "%s is NULL", out ? (lo ? "n" : "lo") : "out");
    job.s = s;
    job.field = field;
    job.out = out;

    /* the cells, within the box */
    for (a = 0; a < 3; a++) {
        job.lo[a] = lo && a < s->grid->dim ? lo[a] : 0;
        job.n[a] = n && a < s->grid->dim ? n[a] : s->grid->n[a];
        if (job.lo[a] < 0 || job.n[a] < 0 || job.lo[a] > s->grid->n[a] - job.n[a])
            return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, a, job.n[a],
                             "%d cells from %d on along axis %d are not within the box of %d", job.n[a], job.lo[a], a,
                             s->grid->n[a]);
    }

    /* copy their rows in parallel */
    rows = (double)job.n[1] * job.n[2];
    if (rows > 2147483647.0)
        return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, -1, rows, "%g rows of cells are more than 2^31 - 1", rows);
    work = (field == FSI_LEVELSET_VELOCITY ? 30.0 : 5.0) * rows * job.n[0]; /* nanoseconds at least */
    fsi__parallel_work(s->context, (int)rows, 16, work, fsi__ls_copy_rows, &job);
    return FSI_OK;
}

/* A colour a component: hues a golden ratio of the circle apart. */
static uint32_t fsi__ls_color(int component)
{
    const double hue = 6 * (0.55 + 0.61803398874989485 * component - floor(0.55 + 0.61803398874989485 * component));
    uint32_t rgb = 0;
    int k;
    for (k = 0; k < 3; k++) {
        const double d = fabs(hue - 2 * k), away = d > 3 ? 6 - d : d, level = away < 1 ? 1 : (away < 2 ? 2 - away : 0);
        rgb = rgb << 8 | (uint32_t)(55 + 200 * level);
    }
    return rgb;
}

/* The component whose cells (or those beside them) hold x. */
static int fsi__ls_component_at(const fsi_levelset *s, fsi_vec3 x)
{
    const fsi_grid *g = s->grid;
    const double at[3] = { (double)(x.x - g->origin.x), (double)(x.y - g->origin.y), (double)(x.z - g->origin.z) };
    int i[3] = { 0, 0, 0 }, a;
    long long entry;
    for (a = 0; a < g->dim; a++) i[a] = fsi__clamp_int((int)(at[a] / (double)g->dx), g->n[a] - 1);
    entry = fsi_grid_entry(g, i[0], i[1], i[2]);
    return entry < 0 || s->label[entry] < 0 ? 0 : s->label[entry];
}

static void fsi__ls_draw_element(const fsi_levelset *s, const fsi_debug_draw *draw, const fsi_grid_surface *f,
                                 const int *v)
{
    const fsi_vec3 x = f->vertices[v[0]], y = f->vertices[v[1]], z = f->vertices[v[f->corners - 1]];
    const uint32_t rgb = fsi__ls_color(
        fsi__ls_component_at(s, fsi_v3_scale(fsi_v3_add(fsi_v3_add(x, y), f->corners == 3 ? z : fsi_v3(0, 0, 0)),
                                             1 / (fsi_real)f->corners)));
    if (f->corners == 3 && draw->triangle) {
        draw->triangle(draw->user, x, y, z, rgb);
        return;
    }
    if (!draw->line) return;
    draw->line(draw->user, x, y, rgb);
    if (f->corners == 3) draw->line(draw->user, y, z, rgb);
    if (f->corners == 3) draw->line(draw->user, z, x, rgb);
}

/* The edges of block b: those from each corner on that lead up along an axis. */
static void fsi__ls_draw_block(const fsi_levelset *s, const fsi_debug_draw *draw, int b)
{
    const fsi_grid *g = s->grid;
    const fsi_real size = FSI_GRID_BLOCK * g->dx;
    int corner[3], c, a;
    fsi_grid_corner(g, b, corner);
    for (c = 0; c < 1 << g->dim; c++)
        for (a = 0; a < g->dim; a++) {
            const fsi_vec3 lo =
                fsi_v3_madd(g->origin, g->dx,
                            fsi_v3((fsi_real)corner[0], (fsi_real)corner[1], g->dim == 3 ? (fsi_real)corner[2] : 0));
            const fsi_vec3 x =
                fsi_v3_madd(lo, size, fsi_v3((fsi_real)(c & 1), (fsi_real)(c >> 1 & 1), (fsi_real)(c >> 2)));
            if (!(c >> a & 1))
                draw->line(draw->user, x,
                           fsi_v3_madd(x, size, fsi_v3((fsi_real)(a == 0), (fsi_real)(a == 1), (fsi_real)(a == 2))),
                           0x606060u);
        }
}

FSI_API fsi_status fsi_levelset_update_surface(const fsi_levelset *s, fsi_grid_surface *surface, int capped)
{
    const fsi__ls_impl *m;
    const fsi_field *psi;
    fsi_field shown;
    size_t cells, e;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    m = (const fsi__ls_impl *)s->impl;
    psi = fsi__ls_psi(m);
    if (!psi) return fsi_grid_surface_update(surface, s->phi, capped);
    shown = *m->spare;
    shown.background = s->phi->background;
    cells = (size_t)s->grid->block_count * (size_t)s->grid->block_cells;
    for (e = 0; e < cells; e++) shown.value[e] = fsi__ls_outside(s->phi->value[e], psi->value[e], s->grid->dx / 4);
    return fsi_grid_surface_update(surface, &shown, capped);
}

FSI_API void fsi_levelset_debug_draw(const fsi_levelset *s, const fsi_debug_draw *draw)
{
    const fsi_grid_surface *f;
    int k;
    if (!draw || !fsi__is_levelset(s)) return;
    f = ((const fsi__ls_impl *)s->impl)->surface;
    if (fsi_levelset_update_surface(s, ((fsi__ls_impl *)s->impl)->surface, 1) == FSI_OK)
        for (k = 0; k < f->element_count; k++)
            fsi__ls_draw_element(s, draw, f, f->elements + (size_t)f->corners * (size_t)k);
    for (k = 0; k < s->grid->block_count && draw->line; k++) fsi__ls_draw_block(s, draw, k);
    for (k = 0; k < s->droplet_count && draw->point; k++)
        draw->point(draw->user, s->droplet[k].position,
                    (fsi_real)(2 * fsi__ls_radius(s->desc.dim, s->droplet[k].volume)), fsi__ls_color(0));
}

FSI__COLD_BEGIN

/* ---- >>state ---------------------------------------------------------------------------------------------------- */

/* Stands first: loading refuses what was saved by an unlike simulator. No padding. */
typedef struct fsi__ls_head {
    int64_t dim, n[3], time_order, blocks, components, emitters, sinks, obstacles, droplets;
    double dx, origin[3];
} fsi__ls_head;

#define FSI__LS_OBSTACLE_BYTES (sizeof(int64_t) + sizeof(fsi_pose) + 2 * sizeof(fsi_vec3))
static int fsi__ls_saved_fields(const fsi_levelset *s) { return 1 + (1 + s->grid->dim) * s->desc.time_order; }

static fsi__ls_head fsi__ls_make_head(const fsi_levelset *s)
{
    const fsi__ls_impl *m = (const fsi__ls_impl *)s->impl;
    fsi__ls_head h;
    int a;
    h.dim = s->grid->dim;
    for (a = 0; a < 3; a++) h.n[a] = s->grid->n[a];
    h.time_order = s->desc.time_order;
    h.blocks = s->grid->block_count;
    h.components = m->parts.count;
    h.emitters = m->emitter_count;
    h.sinks = m->sink_count;
    h.obstacles = m->obstacle_count;
    h.droplets = m->droplet_count;
    h.dx = (double)s->grid->dx;
    h.origin[0] = (double)s->grid->origin.x;
    h.origin[1] = (double)s->grid->origin.y;
    h.origin[2] = (double)s->grid->origin.z;
    return h;
}

static void fsi__ls_state(fsi__stream *st, void *simulator)
{
    fsi_levelset *s = (fsi_levelset *)simulator;
    fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
    const size_t size = (size_t)s->grid->block_count * (size_t)s->grid->block_cells * sizeof(fsi_real);
    fsi__ls_head head = fsi__ls_make_head(s);
    int k;

    /* head and totals */
    fsi__bytes(st, &head, sizeof head);
    fsi__bytes(st, &s->time, sizeof s->time);
    fsi__bytes(st, &m->lost_volume, sizeof m->lost_volume);
    fsi__bytes(st, &m->left_volume, sizeof m->left_volume);
    fsi__bytes(st, &m->carry_dt, sizeof m->carry_dt);

    /* sources and obstacles */
    for (k = 0; k < m->emitter_count; k++) fsi__bytes(st, &m->emitter[k].flow, sizeof m->emitter[k].flow);
    for (k = 0; k < m->sink_count; k++) fsi__bytes(st, &m->sink[k].flow, sizeof m->sink[k].flow);
    for (k = 0; k < m->obstacle_count; k++) {
        int64_t id = m->obstacle[k].id;
        fsi__bytes(st, &id, sizeof id);
        fsi__bytes(st, &m->obstacle[k].at, sizeof m->obstacle[k].at);
        fsi__bytes(st, m->obstacle[k].carry, sizeof m->obstacle[k].carry);
    }

    /* components and droplets */
    fsi__bytes(st, m->parts.target, (size_t)m->parts.count * sizeof *m->parts.target);
    fsi__bytes(st, m->parts.owed, (size_t)m->parts.count * 3 * sizeof *m->parts.owed);
    fsi__bytes(st, m->droplet, (size_t)m->droplet_count * sizeof *m->droplet);

    /* blocks and fields */
    fsi__bytes(st, (void *)(uintptr_t)s->grid->place, (size_t)s->grid->block_count * sizeof *s->grid->place);
    fsi__bytes(st, m->phi->value, size);
    fsi__bytes(st, m->pressure->value, size);
    if (m->carried) fsi__bytes(st, m->carried->value, size);
    for (k = 0; k < s->grid->dim; k++) {
        fsi__bytes(st, m->u[k]->value, size);
        if (m->carry[k]) fsi__bytes(st, m->carry[k]->value, size);
    }
}

FSI_API fsi_status fsi_levelset_save(const fsi_levelset *s, void *buffer, size_t capacity, size_t *size)
{
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    return fsi__save(s->context, s->cookie, fsi__ls_state, (void *)(uintptr_t)s, buffer, capacity, size,
                     "fsi_levelset_save");
}

FSI_API uint64_t fsi_levelset_hash(const fsi_levelset *s)
{
    return fsi__is_levelset(s) ? fsi__state_hash(fsi__ls_state, (void *)(uintptr_t)s) : 0;
}

/* Checks the state's head against the simulator and the number of bytes that follow. */
static fsi_status fsi__ls_check_head(const fsi_levelset *s, const fsi__ls_head *head, const fsi__stream *st)
{
    static const char *const fn = "fsi_levelset_load";
    const size_t block =
                     sizeof(int) + (size_t)fsi__ls_saved_fields(s) * (size_t)s->grid->block_cells * sizeof(fsi_real),
                 left = st->capacity - sizeof *head;
    fsi__ls_head own = fsi__ls_make_head(s);
    size_t start;

    /* all but the numbers of blocks, components and droplets must agree */
    own.blocks = head->blocks;
    own.components = head->components;
    own.droplets = head->droplets;
    if (st->ok && memcmp(head, &own, sizeof own) != 0)
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, -1, head->dx,
                         "the state is of a box of %d x %d x %d cells of %g with %d emitters, %d sinks and %d "
                         "obstacles, or elsewhere: not of this one",
                         (int)head->n[0], (int)head->n[1], (int)head->n[2], head->dx, (int)head->emitters,
                         (int)head->sinks, (int)head->obstacles);

    /* the bytes before the blocks, then the number of blocks that the rest holds */
    start = FSI__LS_SAVED * sizeof(double) + (size_t)(own.emitters + own.sinks) * sizeof(fsi__ls_source) +
            (size_t)own.obstacles * FSI__LS_OBSTACLE_BYTES +
            (size_t)(head->components & 0x7fffffff) * 4 * sizeof(double) +
            (size_t)(head->droplets & 0x7fffffff) * sizeof(fsi_levelset_droplet);
    if (!st->ok || head->components < 0 || head->components > 0x7fffffff || head->droplets < 0 ||
        head->droplets > 0x7fffffff - 1000 || head->blocks < 0 || head->blocks > 0x7fffffff || left < start ||
        (left - start) % block || (left - start) / block != (size_t)head->blocks)
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, -1, (double)head->blocks,
                         "the state holds %.0f blocks in %.0f bytes, which do not agree", (double)head->blocks,
                         (double)st->capacity);
    return FSI_OK;
}

/* Reads the progress of an emitter or a sink and checks that it fits this one. */
static fsi_status fsi__ls_check_flow(const fsi_levelset *s, fsi__stream *st, const fsi__ls_source *own)
{
    static const char *const fn = "fsi_levelset_load";
    fsi__ls_source f = *own;
    int a, possible;
    fsi__bytes(st, &f, sizeof f);
    possible = f.id == own->id && (f.open == 0 || f.open == 1) && fabs(f.total) <= FSI__LS_MOST &&
               fabs(f.pending) <= FSI__LS_MOST;
    for (a = 0; a < 3; a++) possible &= fabs(f.center[a]) <= FSI__LS_MOST;
    if (possible) return FSI_OK;
    return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, own->id, 0,
                     "the state is of other emitters or sinks than this liquid has");
}

/* Numbers of a state that must be finite, and no farther from 0 than `most`. */
static fsi_status fsi__ls_check_reals(const fsi_levelset *s, fsi__stream *st, size_t count, size_t size, double most)
{
    size_t k;
    for (k = 0; k < count; k++) {
        double d = 0;
        fsi_real r = 0;
        fsi__bytes(st, size == sizeof d ? (void *)&d : (void *)&r, size);
        if (size != sizeof d) d = (double)r;
        if (!fsi_is_finite(d))
            return fsi__fail(s->context, FSI_ERROR_NAN, "fsi_levelset_load", (long long)st->used, 0,
                             "the state is not finite at byte %.0f", (double)st->used);
        if (fabs(d) > most)
            return fsi__fail(s->context, FSI_ERROR_FORMAT, "fsi_levelset_load", (long long)st->used, d,
                             "the state holds %g at byte %.0f, where at most %g may stand", d, (double)st->used, most);
    }
    return FSI_OK;
}

/* Numbers in double that must lie between lo and hi. */
static fsi_status fsi__ls_check_range(const fsi_levelset *s, fsi__stream *st, size_t count, double lo, double hi)
{
    size_t k;
    for (k = 0; k < count; k++) {
        double d = 0;
        fsi__bytes(st, &d, sizeof d);
        if (!(d >= lo && d <= hi))
            return fsi__fail(s->context, d == d ? FSI_ERROR_FORMAT : FSI_ERROR_NAN, "fsi_levelset_load",
                             (long long)st->used, d, "the state holds %g at byte %.0f, where %g to %g may stand", d,
                             (double)st->used, lo, hi);
    }
    return FSI_OK;
}

/* Refuses an impulse and spin, just read from the stream, that would make a COUPLED body too fast. */
static fsi_status fsi__ls_check_kick(const fsi_levelset *s, const fsi__stream *st, const fsi__ls_obstacle *o)
{
    const fsi_body *body = o->desc.body;
    const double most = FSI__LS_FASTEST / FSI__LS_UNLIKE;
    fsi_vec3 kick[2];
    double speed;
    if (!body || body->mode != FSI_BODY_COUPLED || !st->ok) return FSI_OK;
    memcpy(kick, st->data + st->used - sizeof kick, sizeof kick);
    kick[1] = fsi_m3_mul_v3(fsi_body_world_tensor(body->pose.orientation, fsi_m3_inverse(body->inertia)), kick[1]);
    speed = fsi__ls_speed(kick[0]) / (double)body->mass + fsi__ls_speed(kick[1]) * o->reach;
    if (speed <= most) return FSI_OK;
    return fsi__fail(s->context, FSI_ERROR_FORMAT, "fsi_levelset_load", o->id, speed,
                     "the liquid of the state would throw obstacle %d away at %g m/s", o->id, speed);
}

/* Reads the pose of an obstacle and the pressure's impulse on it, and checks that they fit this one. */
static fsi_status fsi__ls_check_place(const fsi_levelset *s, fsi__stream *st, const fsi__ls_obstacle *o)
{
    static const char *const fn = "fsi_levelset_load";
    int64_t id = -1;
    fsi_pose at;
    memset(&at, 0, sizeof at);
    fsi__bytes(st, &id, sizeof id);
    if (id != o->id)
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, o->id, (double)id,
                         "the state is of obstacle %.0f where this liquid has obstacle %d", (double)id, o->id);
    fsi__bytes(st, &at, sizeof at);
    FSI__TRY(fsi__check_loaded_pose(s->context, fn, o->id, o->desc.body != NULL, FSI__MESH_REACH, at));
    FSI__TRY(fsi__ls_check_reals(s, st, 6, sizeof(fsi_real), FSI__LS_MOST));
    return fsi__ls_check_kick(s, st, o);
}

/* A droplet lies in the box, and is of some volume. */
static fsi_status fsi__ls_check_droplet(const fsi_levelset *s, fsi__stream *st, int k)
{
    const fsi_grid *g = s->grid;
    const double slack = 1e-3 * (double)g->dx;
    fsi_levelset_droplet p;
    fsi_vec3 off;
    memset(&p, 0, sizeof p);
    fsi__bytes(st, &p, sizeof p);
    off = fsi_v3_sub(p.position, g->origin);
    if ((double)off.x >= -slack && (double)off.x <= g->n[0] * (double)g->dx + slack && (double)off.y >= -slack &&
        (double)off.y <= g->n[1] * (double)g->dx + slack &&
        (g->dim == 2 ? off.z * off.z <= 0 && p.velocity.z * p.velocity.z <= 0
                     : (double)off.z >= -slack && (double)off.z <= g->n[2] * (double)g->dx + slack) &&
        fsi__ls_speed(p.velocity) <= FSI__LS_BURST && p.volume > 0 && p.volume <= FSI__LS_MOST)
        return FSI_OK;
    return fsi__fail(s->context, FSI_ERROR_FORMAT, "fsi_levelset_load", k, p.volume,
                     "droplet %d of the state lies out of the box, is too fast, or of volume %g", k, p.volume);
}

/* Checks that the saved values are finite and within the ranges that a step can produce. `st` stands behind the head
   and returns there. */
static fsi_status fsi__ls_check_content(const fsi_levelset *s, const fsi__ls_head *head, fsi__stream *st)
{
    static const char *const fn = "fsi_levelset_load";
    const fsi__ls_impl *m = (const fsi__ls_impl *)s->impl;
    const size_t start = st->used, cells = (size_t)head->blocks * (size_t)s->grid->block_cells;
    const double most_pressure = (double)FSI_REAL_MAX / 16, most_pull = 0.5 * FSI__LS_BURST / FSI__LS_UNLIKE;
    double carry_dt = 0, most_carried;
    fsi__stream peek;
    int k, place = -1, before;

    /* Numbers, and the last time step: it bounds the carried pressure by the velocity that it gives in a substep. */
    FSI__TRY(fsi__ls_check_reals(s, st, FSI__LS_SAVED - 1, sizeof(double), FSI__LS_MOST));
    peek = *st;
    fsi__bytes(&peek, &carry_dt, sizeof carry_dt);
    FSI__TRY(fsi__ls_check_range(s, st, 1, 0, 1000)); /* carry_dt */
    most_carried = carry_dt > 0
                       ? fmin(most_pressure, most_pull * (double)s->desc.density * (double)s->grid->dx / carry_dt)
                       : most_pressure;

    /* Sources, solids, components, droplets. */
    for (k = 0; k < m->emitter_count; k++) FSI__TRY(fsi__ls_check_flow(s, st, &m->emitter[k].flow));
    for (k = 0; k < m->sink_count; k++) FSI__TRY(fsi__ls_check_flow(s, st, &m->sink[k].flow));
    for (k = 0; k < m->obstacle_count; k++) FSI__TRY(fsi__ls_check_place(s, st, &m->obstacle[k]));
    FSI__TRY(fsi__ls_check_range(s, st, (size_t)head->components, 0, FSI__LS_MOST));
    FSI__TRY(fsi__ls_check_reals(s, st, 3 * (size_t)head->components, sizeof(double), FSI__LS_MOST)); /* owed */
    for (k = 0; k < (int)head->droplets; k++) FSI__TRY(fsi__ls_check_droplet(s, st, k));

    /* Blocks: in rising order, within the grid. */
    for (k = 0; k < (int)head->blocks; k++) {
        before = place;
        fsi__bytes(st, &place, sizeof place);
        if (place <= before || (size_t)place >= fsi__grid_places(s->grid))
            return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, k, place, "block %d of the state stands at place %d", k,
                             place);
    }

    /* Fields: phi, pressure, carried pressure, velocities. */
    FSI__TRY(fsi__ls_check_reals(s, st, cells, sizeof(fsi_real), 1.001 * FSI__LS_BAND * (double)s->grid->dx));
    FSI__TRY(fsi__ls_check_reals(s, st, cells, sizeof(fsi_real), most_pressure));
    if (m->carried) FSI__TRY(fsi__ls_check_reals(s, st, cells, sizeof(fsi_real), most_carried));
    FSI__TRY(fsi__ls_check_reals(s, st, cells * (size_t)(s->grid->dim * (m->carried ? 2 : 1)), sizeof(fsi_real),
                                    FSI__LS_BURST));
    st->used = start;
    return FSI_OK;
}

/* A field of the trial from the state; `places` is where the list of blocks stands in it. */
static void fsi__ls_load_field(const fsi__ls_run *run, fsi__stream *st, size_t places, int blocks, fsi_field *f)
{
    const size_t cells = (size_t)run->grid->block_cells, all = (size_t)run->grid->block_count * cells;
    size_t e;
    int k, place;
    for (e = 0; e < all; e++) f->value[e] = f->background;
    for (k = 0; k < blocks; k++) {
        memcpy(&place, st->data + places + (size_t)k * sizeof place, sizeof place);
        fsi__bytes(st, f->value + (size_t)run->grid->index[place] * cells, cells * sizeof(fsi_real));
    }
}

/* Blocks may reach beyond the box: there is no liquid there. */
static fsi_status fsi__ls_check_beyond(const fsi__ls_run *run)
{
    const fsi_grid *g = run->grid;
    int e, a, corner[3];
    for (e = 0; e < g->block_count * g->block_cells; e++) {
        const int c = e % g->block_cells;
        if (!(run->m->trial_phi->value[e] < 0)) continue;
        fsi_grid_corner(g, e / g->block_cells, corner);
        for (a = 0; a < g->dim; a++)
            if (corner[a] + (c >> 3 * a & 7) >= g->n[a])
                return fsi__fail(run->s->context, FSI_ERROR_FORMAT, "fsi_levelset_load", e,
                                 (double)run->m->trial_phi->value[e],
                                 "the state holds liquid beyond the box, at entry %d", e);
    }
    return FSI_OK;
}

/* The blocks that commit will want around the surface join them: those of a state that nobody saved may be too few. */
static fsi_status fsi__ls_load_band(fsi__ls_run *run)
{
    fsi_status status;
    fsi__ls_swap_fields(&run->m->next_phi, &run->m->trial_phi);
    status = fsi__ls_make_blocks(run, 1);
    fsi__ls_swap_fields(&run->m->next_phi, &run->m->trial_phi);
    return status == FSI_OK ? fsi__ls_make_room(run->s, "fsi_levelset_load") : status;
}

/* The blocks of the state join those that there are. */
static fsi_status fsi__ls_load_blocks(fsi__ls_run *run, fsi__stream *st, int blocks)
{
    const size_t count = fsi__grid_places(run->grid);
    size_t p;
    int k, place = 0;
    for (p = 0; p < count; p++) run->m->wanted[p] = run->m->before[p];
    for (k = 0; k < blocks; k++) {
        fsi__bytes(st, &place, sizeof place);
        run->m->wanted[place] = 1;
    }
    FSI__TRY(fsi_grid_set_blocks(run->grid, run->m->wanted));
    return fsi__ls_make_room(run->s, "fsi_levelset_load");
}

/* Puts an obstacle where its mesh or body is now. Where that is, but for rounding, where its body was when the state
   was saved, it stands there. */
static void fsi__ls_load_obstacle(const fsi__ls_run *run, fsi__ls_obstacle *o, fsi_pose saved)
{
    const fsi_body *body = o->desc.body;
    if (!body) fsi__mesh_follow(o->shadow, o->desc.mesh->vertices, o->desc.mesh->vertices, 0, 0);
    else {
        const double turn = (double)fsi_v3_norm(
            fsi_quat_rotation_vector(fsi_quat_mul(body->pose.orientation, fsi_quat_conj(saved.orientation))));
        const double off = (double)fsi_v3_norm(fsi_v3_sub(body->pose.position, saved.position)) + turn * o->reach;
        /* A COUPLED body's owner may have it a bit aside of where the liquid had put it: the shell or joints had a
           say. */
        const double aside = body->mode == FSI_BODY_COUPLED ? 0.1 : 1e-3;
        o->now = off < aside * (double)run->grid->dx ? saved : body->pose;
        fsi__mesh_follow_rigid(o->shadow, o->rest, o->now, o->now);
    }
    o->stands = -1; /* neither where a step begins nor where one ends */
    run->m->stale_still = run->m->stale_faces = o->stale_faces = 1;
}

/* Reads the saved state into the trial. */
static fsi_status fsi__ls_load_trial(fsi__ls_run *run, const fsi__ls_head *head, fsi__stream *st, double *times)
{
    static const char *const fn = "fsi_levelset_load";
    fsi__ls_impl *m = run->m;
    size_t places;
    int k, count;

    /* totals, sources and obstacles */
    FSI__TRY(fsi__ls_begin(run));
    FSI__TRY(fsi__ls_grow_parts(run, (int)head->components));
    fsi__bytes(st, times, FSI__LS_SAVED * sizeof *times);
    for (k = 0; k < m->emitter_count; k++) fsi__bytes(st, &m->emitter[k].trial, sizeof m->emitter[k].trial);
    for (k = 0; k < m->sink_count; k++) fsi__bytes(st, &m->sink[k].trial, sizeof m->sink[k].trial);
    for (k = 0; k < m->obstacle_count; k++) {
        fsi_pose saved;
        int64_t id;
        fsi__bytes(st, &id, sizeof id);
        fsi__bytes(st, &saved, sizeof saved);
        fsi__bytes(st, m->obstacle[k].trial_carry, sizeof m->obstacle[k].trial_carry);
        fsi__ls_load_obstacle(run, &m->obstacle[k], saved);
    }

    /* components and droplets */
    fsi__bytes(st, m->trial.target, (size_t)head->components * sizeof *m->trial.target);
    fsi__bytes(st, m->trial.owed, (size_t)head->components * 3 * sizeof *m->trial.owed);
    m->trial_droplet_count = 0;
    FSI__TRY(fsi__ls_grow_droplets(run, (int)head->droplets));
    fsi__bytes(st, m->trial_droplet, (size_t)head->droplets * sizeof *m->trial_droplet);
    m->trial_droplet_count = (int)head->droplets;

    /* blocks and fields */
    places = st->used;
    FSI__TRY(fsi__ls_load_blocks(run, st, (int)head->blocks));
    fsi__ls_load_field(run, st, places, (int)head->blocks, m->trial_phi);
    FSI__TRY(fsi__ls_check_beyond(run));
    FSI__TRY(fsi__ls_load_band(run));
    fsi__ls_load_field(run, st, places, (int)head->blocks, m->trial_pressure);
    if (m->carried) fsi__ls_load_field(run, st, places, (int)head->blocks, m->trial_carried);
    for (k = 0; k < run->grid->dim; k++) {
        fsi__ls_load_field(run, st, places, (int)head->blocks, m->trial_u[k]);
        if (m->carry[k]) fsi__ls_load_field(run, st, places, (int)head->blocks, m->trial_carry[k]);
    }

    /* components, labelled anew: obstacles may have cut the liquid */
    run->carry_dt = times[3];
    fsi__ls_find_solids(run);
    FSI__TRY(fsi_grid_label(m->trial_phi, fsi__ls_mask(run), m->trial_label, &count));
    if (count != head->components)
        return fsi__fail(run->s->context, FSI_ERROR_FORMAT, fn, -1, count,
                         "the liquid of the state is in %d components where obstacles stand now, and was in %d when it "
                         "was saved: put obstacles back first",
                         count, (int)head->components);
    m->trial.count = count;
    fsi__ls_forget_motion(&m->trial);
    return fsi__ls_find_speed(run);
}

FSI_API fsi_status fsi__ls_read_state(fsi_levelset *s, const void *buffer, size_t size, fsi__ls_run **out)
{
    fsi__ls_run *run = &((fsi__ls_impl *)s->impl)->run;
    fsi__ls_head head;
    fsi__stream st;
    fsi_status status;
    FSI__TRY(fsi__ls_check_bodies(s, "fsi_levelset_load"));
    FSI__TRY(fsi__load_begin(s->context, s->cookie, buffer, size, &st, "fsi_levelset_load"));
    memset(&head, 0, sizeof head);
    fsi__bytes(&st, &head, sizeof head);
    FSI__TRY(fsi__ls_check_head(s, &head, &st));
    FSI__TRY(fsi__ls_check_content(s, &head, &st));
    *run = fsi__ls_make_run(s);
    run->function = "fsi_levelset_load";
    status = fsi__ls_load_trial(run, &head, &st, run->saved);
    if (status != FSI_OK) return fsi__ls_finish(run, status);
    fsi__ls_show(run);
    *out = run;
    return FSI_OK;
}

FSI_API fsi_status fsi__ls_take_state(fsi__ls_run *run, fsi_status status)
{
    const double *times = run->saved;
    int k;
    if (status == FSI_OK) status = fsi__ls_commit(run);
    for (k = 0; k < run->m->obstacle_count && status == FSI_OK; k++) {
        fsi__ls_obstacle *o = &run->m->obstacle[k];
        if (o->desc.body) o->at = o->now;
        else memcpy(o->rest, o->desc.mesh->vertices, (size_t)o->vertex_count * sizeof *o->rest);
        o->moves = 0;
        memcpy(o->carry, o->trial_carry, sizeof o->carry);
        o->force = o->torque = fsi_v3(0, 0, 0);
    }
    if (status == FSI_OK) {
        run->m->moves++;
        run->s->time = times[0];
        run->m->lost_volume = times[1];
        run->m->left_volume = times[2];
        run->s->stats = run->stats;
    }
    return fsi__ls_finish(run, status);
}

FSI_API fsi_status fsi_levelset_load(fsi_levelset *s, const void *buffer, size_t size)
{
    fsi__ls_run *run;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__ls_read_state(s, buffer, size, &run));
    return fsi__ls_take_state(run, FSI_OK);
}

/* ---- >>obstacles, from outside ---------------------------------------------------------------------------------- */

static fsi_status fsi__ls_check_obstacle(const fsi_levelset *s, const fsi_levelset_obstacle_desc *d, const char *f)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_levelset_obstacle_desc, contact_angle, FSI__REAL, 10, 170, 0),
        FSI__FIELD(fsi_levelset_obstacle_desc, no_slip, FSI__INT, 0, 1, 0)
    };
    const fsi__where at = { f, "desc.", -1, s->desc.dim };
    if (!d || !d->mesh)
        return fsi__fail(s->context, FSI_ERROR_COOKIE, f, -1, 0, "%s is NULL", d ? "desc.mesh" : "desc");
    FSI__TRY(fsi__check_filled(s->context, f, d, FSI__COOKIE('o', fsi_levelset_obstacle_desc),
        "fsi_levelset_default_obstacle_desc"));
    FSI__TRY(fsi__check_mesh(s->context, f, d->mesh, s->desc.dim, 1));
    FSI__TRY(FSI__CHECK_TABLE(s->context, &at, d, rows));
    return fsi__ls_check_body(s, d->body, ((const fsi__ls_impl *)s->impl)->next_id, -1, f);
}

static void fsi__ls_free_obstacle(fsi_context *context, fsi__ls_obstacle *o)
{
    fsi__free(context, o->rest, (size_t)o->vertex_count, sizeof *o->rest);
    fsi__free(context, o->velocity, (size_t)o->velocity_capacity, sizeof *o->velocity);
    if (!o->desc.body) fsi__free(context, o->foot, (size_t)o->velocity_capacity, sizeof *o->foot);
    fsi_grid_faces_destroy(o->faces);
    fsi_mesh_destroy(o->shadow);
}

/* Moves the shadow of an obstacle to where the last step left it; stands: as in fsi__ls_obstacle, -1: nowhere. */
static void fsi__ls_put_obstacle(fsi__ls_impl *m, fsi__ls_obstacle *o, double stands)
{
    o->now = o->at;
    o->stands = stands;
    if (o->desc.body) fsi__mesh_follow_rigid(o->shadow, o->rest, o->at, o->at);
    else fsi__mesh_follow(o->shadow, o->rest, o->rest, 0, 0);
    m->stale_still = m->stale_faces = o->stale_faces = 1;
}

/* Takes an obstacle for where its mesh, or its body, is. */
static void fsi__ls_set_obstacle(fsi__ls_impl *m, fsi__ls_obstacle *o)
{
    if (o->desc.body) o->at = o->desc.body->pose;
    else memcpy(o->rest, o->desc.mesh->vertices, (size_t)o->vertex_count * sizeof *o->rest);
    fsi__ls_put_obstacle(m, o, 0);
}

/* All that an obstacle owns. */
static fsi_status fsi__ls_make_obstacle(fsi_levelset *s, fsi__ls_obstacle *o, const char *f)
{
    const fsi_mesh *mesh = o->desc.mesh;
    int v;
    o->vertex_count = mesh->vertex_count;
    o->slope = cos((double)o->desc.contact_angle * FSI_PI / 180);
    o->shadow = fsi__mesh_shadow(s->context, mesh);
    o->rest = (fsi_vec3 *)fsi__alloc(s->context, (size_t)mesh->vertex_count, sizeof *o->rest);
    if (!o->shadow || !o->rest)
        return fsi__fail(s->context, FSI_ERROR_MEMORY, f, -1, mesh->vertex_count,
                         "no memory for an obstacle of %d vertices", mesh->vertex_count);
    for (v = 0; v < mesh->vertex_count && o->desc.body; v++) {
        o->rest[v] = fsi_pose_local(o->desc.body->pose, mesh->vertices[v]);
        if ((double)fsi_v3_norm(o->rest[v]) > o->reach) o->reach = (double)fsi_v3_norm(o->rest[v]);
    }
    if (o->desc.body) o->work = *o->desc.body;
    fsi__ls_set_obstacle((fsi__ls_impl *)s->impl, o);
    return fsi_grid_faces_create(&o->faces, s->context);
}

/* Room for one more obstacle. */
static fsi_status fsi__ls_grow_obstacles(fsi_levelset *s, const char *f)
{
    fsi__ls_impl *m = (fsi__ls_impl *)s->impl;
    const fsi_real limit = (fsi_real)(fsi__ls_reach(&s->desc) + 2) * s->desc.dx;
    fsi__column column[2];
    column[0].array = (void **)&m->obstacle;
    column[0].size = sizeof *m->obstacle;
    column[1].array = (void **)&m->solid;
    column[1].size = sizeof *m->solid;
    if (!m->psi) FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, limit, &m->psi));
    if (!m->owner) FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 0, &m->owner));
    /* beyond what is measured */
    if (!m->still_psi) FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 2 * limit, &m->still_psi));
    if (!m->still_owner) FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 0, &m->still_owner));
    return fsi__room(s->context, column, 2, m->obstacle_count, &m->obstacle_capacity, m->obstacle_count + 1, f);
}

/* Makes the former place of a solid air. */
static fsi_status fsi__ls_clear_solid(fsi__ls_run *run, const fsi_mesh *where)
{
    const size_t cells = (size_t)run->grid->block_count * (size_t)run->grid->block_cells;
    fsi_real *phi = run->m->next_phi->value;
    const fsi_real *psi = run->m->spare->value;
    size_t e;
    FSI__TRY(fsi_grid_mesh_distance(run->m->spare, where, FSI__LS_BAND));
    for (e = 0; e < cells; e++)
        if (-psi[e] > phi[e]) phi[e] = -psi[e];
    return fsi_grid_redistance(run->m->next_phi, FSI__LS_BAND, run->m->next_phi);
}

/* The liquid among solids that have changed; `gone` (NULL ok): where one was. */
static fsi_status fsi__ls_meet_solids(fsi__ls_run *run, const fsi_mesh *gone)
{
    fsi__ls_impl *m = run->m;
    FSI__TRY(fsi__ls_begin(run));
    memcpy(m->next_phi->value, m->trial_phi->value,
           (size_t)run->grid->block_count * (size_t)run->grid->block_cells * sizeof(fsi_real));
    if (gone) FSI__TRY(fsi__ls_clear_solid(run, gone));
    FSI__TRY(fsi__ls_wet_solids(run));
    FSI__TRY(fsi__ls_fill_targets(run));
    fsi__ls_swap_fields(&m->trial_phi, &m->next_phi);
    return fsi__ls_commit(run);
}

static fsi_status fsi__ls_change_solids(fsi_levelset *s, const fsi_mesh *gone)
{
    fsi__ls_run run;
    if (s->grid->block_count == 0) return FSI_OK; /* there is no liquid */
    run = fsi__ls_make_run(s);
    return fsi__ls_finish(&run, fsi__ls_meet_solids(&run, gone));
}

FSI_API fsi_status fsi_levelset_add_obstacle(fsi_levelset *s, const fsi_levelset_obstacle_desc *desc, int *id)
{
    static const char f[] = "fsi_levelset_add_obstacle";
    fsi__ls_impl *m;
    fsi__ls_obstacle *o;
    fsi_status status;

    /* check, and make room */
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    m = (fsi__ls_impl *)s->impl;
    FSI__TRY(fsi__ls_check_obstacle(s, desc, f));
    FSI__TRY(fsi__ls_grow_obstacles(s, f));
    o = &m->obstacle[m->obstacle_count];

    /* make it, and remove the liquid that it covers */
    memset(o, 0, sizeof *o);
    o->desc = *desc;
    o->id = m->next_id;
    status = fsi__ls_make_obstacle(s, o, f);
    m->obstacle_count++;
    if (status == FSI_OK) status = fsi__ls_change_solids(s, NULL);

    /* undo what failed */
    if (status != FSI_OK) {
        fsi__ls_free_obstacle(s->context, o);
        m->obstacle_count--;
        m->stale_still = 1;
        fsi__ls_look_back(s);
        return status;
    }
    m->next_id++;
    if (id) *id = o->id;
    return FSI_OK;
}

FSI_API fsi_status fsi_levelset_add_mesh(fsi_levelset *s, const fsi_mesh *mesh, int *id)
{
    fsi_levelset_obstacle_desc d = fsi_levelset_default_obstacle_desc();
    d.mesh = mesh;
    return fsi_levelset_add_obstacle(s, &d, id);
}

/* The number of the obstacle that is called id, in *k. */
static fsi_status fsi__ls_find_obstacle(const fsi_levelset *s, int id, int *k, const char *f)
{
    const fsi__ls_impl *m;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    m = (const fsi__ls_impl *)s->impl;
    for (*k = 0; *k < m->obstacle_count; ++*k)
        if (m->obstacle[*k].id == id) return FSI_OK;
    return fsi__fail(s->context, FSI_ERROR_ARGUMENT, f, id, 0, "there is no obstacle %d", id);
}

FSI_API fsi_status fsi_levelset_remove_obstacle(fsi_levelset *s, int id)
{
    fsi__ls_obstacle gone, *o;
    fsi__ls_impl *m;
    fsi_status status;
    size_t rest;
    int k;

    /* take it from the list */
    FSI__TRY(fsi__ls_find_obstacle(s, id, &k, "fsi_levelset_remove_obstacle"));
    m = (fsi__ls_impl *)s->impl;
    o = &m->obstacle[k];
    gone = *o;
    rest = (size_t)(--m->obstacle_count - k) * sizeof *o;
    memmove(o, o + 1, rest);
    m->stale_still = 1;

    /* its place becomes air; if that fails, put it back */
    status = fsi__ls_change_solids(s, gone.shadow);
    if (status == FSI_OK) fsi__ls_free_obstacle(s->context, &gone);
    else {
        memmove(o + 1, o, rest);
        *o = gone;
        m->obstacle_count++;
        m->stale_still = 1;
        fsi__ls_look_back(s);
    }
    return status;
}

FSI_API fsi_status fsi_levelset_teleport_obstacle(fsi_levelset *s, int id)
{
    static const char f[] = "fsi_levelset_teleport_obstacle";
    fsi__ls_impl *m;
    fsi__ls_obstacle *o, there;
    fsi_status status;
    int k;

    /* find it */
    FSI__TRY(fsi__ls_find_obstacle(s, id, &k, f));
    m = (fsi__ls_impl *)s->impl;
    o = &m->obstacle[k];
    FSI__TRY(fsi__ls_check_body(s, o->desc.body, id, k, f));

    /* the obstacle at its new place */
    memset(&there, 0, sizeof there);
    there.desc = o->desc;
    status = fsi__ls_make_obstacle(s, &there, f);
    there.id = id;
    if (status == FSI_OK && o->desc.body) { /* fixed to it as ever */
        memcpy(there.rest, o->rest, (size_t)o->vertex_count * sizeof *o->rest);
        there.reach = o->reach;
        fsi__ls_set_obstacle(m, &there);
    }

    /* exchange the two; if that fails, exchange them back */
    if (status == FSI_OK) {
        const fsi__ls_obstacle here = *o;
        *o = there;
        there = here;
        status = fsi__ls_change_solids(s, there.shadow);
        if (status != FSI_OK) {
            const fsi__ls_obstacle other = *o;
            *o = there;
            there = other;
            m->stale_still = 1;
            fsi__ls_look_back(s);
        }
    }
    fsi__ls_free_obstacle(s->context, &there);
    return status;
}

FSI_API fsi_status fsi_levelset_obstacle_reaction(const fsi_levelset *s, int id, fsi_vec3 *force, fsi_vec3 *torque)
{
    const fsi__ls_impl *m;
    int k;
    if (force) *force = fsi_v3(0, 0, 0);
    if (torque) *torque = fsi_v3(0, 0, 0);
    FSI__TRY(fsi__ls_find_obstacle(s, id, &k, "fsi_levelset_obstacle_reaction"));
    m = (const fsi__ls_impl *)s->impl;
    if (force) *force = m->obstacle[k].force;
    if (torque) *torque = m->obstacle[k].torque;
    return FSI_OK;
}

/* ---- >>create ---------------------------------------------------------------------------------------------------- */

static fsi_status fsi__ls_check_desc(fsi_context *context, const char *f, const fsi_levelset_desc *d)
{
    /* Ranges of the fields. */
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_levelset_desc, dim, FSI__INT, 2, 3, 0),
        FSI__FIELD(fsi_levelset_desc, density, FSI__REAL, 1e-6, 1e9, 0),
        FSI__FIELD(fsi_levelset_desc, viscosity, FSI__REAL, 0, 1e12, 0),
        FSI__FIELD(fsi_levelset_desc, surface_tension, FSI__REAL, 0, 1e6, 0),
        FSI__FIELD(fsi_levelset_desc, tension, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_levelset_desc, contact_angle, FSI__REAL, 10, 170, 0),
        FSI__FIELD(fsi_levelset_desc, capillary_cfl, FSI__REAL, 0.05, 5, 0),
        FSI__FIELD(fsi_levelset_desc, cfl, FSI__REAL, 0.05, 4, 0),
        FSI__FIELD(fsi_levelset_desc, max_substeps, FSI__INT, 1, 1e6, 0),
        FSI__FIELD(fsi_levelset_desc, release, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_levelset_desc, conserve_volume, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_levelset_desc, pressure_tolerance, FSI__DOUBLE, 1e-14, 0.1, 0),
        FSI__FIELD(fsi_levelset_desc, max_iters, FSI__INT, 1, 1e6, 0),
        FSI__FIELD(fsi_levelset_desc, volume_tolerance, FSI__DOUBLE, 1e-14, 0.1, 0),
        FSI__FIELD(fsi_levelset_desc, reserve, FSI__INT, 0, 2147483647 / 512, 0),
        FSI__FIELD(fsi_levelset_desc, time_order, FSI__INT, 1, 2, 0),
        FSI__FIELD(fsi_levelset_desc, velocity_scheme, FSI__INT, 0, 2, 0),
        FSI__FIELD(fsi_levelset_desc, phi_scheme, FSI__INT, 0, 2, 0), FSI__FINITE(fsi_levelset_desc, gravity)
    };
    const fsi__where at = { f, "desc.", -1, d->dim };
    int side;

    /* Flags of the sides, then the table. */
    for (side = 0; side < 6; side++)
        if (d->open_side[side] > 1 || d->no_slip[side] > 1)
            return fsi__fail(context, FSI_ERROR_ARGUMENT, f, side, 0,
                "desc.open_side[%d] is %d and no_slip %d, must be 0 or 1", side, (int)d->open_side[side],
                (int)d->no_slip[side]);
    return FSI__CHECK_TABLE(context, &at, d, rows);
}

FSI_API fsi_status fsi_levelset_set_desc(fsi_levelset *s, const fsi_levelset_desc *desc)
{
    static const char *const fn = "fsi_levelset_set_desc";
    static const fsi__fixed fixed[] = {
        FSI__FIXED(fsi_levelset_desc, context), FSI__FIXED(fsi_levelset_desc, dim), FSI__FIXED(fsi_levelset_desc, n),
        FSI__FIXED(fsi_levelset_desc, dx), FSI__FIXED(fsi_levelset_desc, origin),
        FSI__FIXED(fsi_levelset_desc, density), FSI__FIXED(fsi_levelset_desc, time_order),
        FSI__FIXED(fsi_levelset_desc, reserve)
    };
    fsi__ls_impl *m;
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    FSI__TRY(
        fsi__check_filled(s->context, fn, desc, FSI__COOKIE('L', fsi_levelset_desc), "fsi_levelset_default_desc"));
    FSI__TRY(fsi__ls_check_desc(s->context, fn, desc));
    FSI__TRY(FSI__CHECK_FIXED(s->context, fn, desc, &s->desc, fixed));
    m = (fsi__ls_impl *)s->impl;
    s->desc = *desc;
    m->solver->desc.tolerance = desc->pressure_tolerance;
    m->solver->desc.max_iters = desc->max_iters;
    fsi__ls_publish(s);
    return FSI_OK;
}

/* Shifts the place where the last step left an obstacle. */
static void fsi__ls_shift_obstacle(fsi__ls_impl *m, fsi__ls_obstacle *o, fsi_vec3 offset)
{
    int v;
    for (v = 0; v < o->vertex_count && !o->desc.body; v++) o->rest[v] = fsi_v3_add(o->rest[v], offset);
    o->at.position = fsi_v3_add(o->at.position, offset);
    fsi__ls_put_obstacle(m, o, -1); /* the next call makes it stand */
}

static void fsi__ls_shift_sources(fsi__ls_impl *m, fsi_vec3 offset)
{
    int k;
    for (k = 0; k < m->emitter_count; k++) {
        fsi__ls_emitter *e = &m->emitter[k];
        e->desc.center = fsi_v3_add(e->desc.center, offset);
        e->flow.center[0] += (double)offset.x;
        e->flow.center[1] += (double)offset.y;
        e->flow.center[2] += (double)offset.z;
    }
    for (k = 0; k < m->sink_count; k++) {
        fsi_levelset_sink_desc *d = &m->sink[k].desc;
        d->center = fsi_v3_add(d->center, offset);
        d->box.lo = fsi_v3_add(d->box.lo, offset);
        d->box.hi = fsi_v3_add(d->box.hi, offset);
    }
}

FSI_API fsi_status fsi_levelset_shift_origin(fsi_levelset *s, fsi_vec3 offset)
{
    static const char *const fn = "fsi_levelset_shift_origin";
    fsi__ls_impl *m;
    fsi_vec3 origin;
    int k;

    /* check */
    if (!fsi__is_levelset(s)) return FSI_ERROR_COOKIE;
    if (!fsi_v3_is_finite(offset)) return fsi__fail(s->context, FSI_ERROR_NAN, fn, -1, 0, "the offset is not finite");
    if (s->desc.dim == 2) offset.z = 0;
    origin = fsi_v3_add(s->grid->origin, offset);
    if (!((double)fsi_v3_norm(origin) <= FSI__MESH_REACH))
        return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, -1, (double)fsi_v3_norm(origin), "the box would lie %g m off",
                         (double)fsi_v3_norm(origin));

    /* grid, obstacles, sources, droplets, components */
    m = (fsi__ls_impl *)s->impl;
    m->moves++;
    s->grid->origin = origin;
    s->desc.origin = fsi_v3_add(s->desc.origin, offset);
    for (k = 0; k < m->obstacle_count; k++) fsi__ls_shift_obstacle(m, &m->obstacle[k], offset);
    fsi__ls_shift_sources(m, offset);
    for (k = 0; k < m->droplet_count; k++) m->droplet[k].position = fsi_v3_add(m->droplet[k].position, offset);
    for (k = 0; k < m->parts.count; k++) {
        fsi_grid_component *p = &m->parts.shape[k];
        if (!(p->volume > 0)) continue; /* centroid and box are 0 */
        p->centroid = fsi_v3_add(p->centroid, offset);
        p->box.lo = fsi_v3_add(p->box.lo, offset);
        p->box.hi = fsi_v3_add(p->box.hi, offset);
    }
    fsi__ls_publish(s);
    return FSI_OK;
}

/* Room for desc.reserve blocks: makes as many, and gives them up again. */
static fsi_status fsi__ls_reserve(fsi_levelset *s, fsi__ls_impl *m)
{
    const size_t places = fsi__grid_places(s->grid);
    size_t p;
    for (p = 0; p < places; p++) m->wanted[p] = p < (size_t)s->desc.reserve;
    FSI__TRY(fsi_grid_set_blocks(s->grid, m->wanted));
    FSI__TRY(fsi__ls_make_room(s, "fsi_levelset_create"));
    fsi__ls_take_labels(s);
    memset(m->wanted, 0, places);
    return fsi_grid_set_blocks(s->grid, m->wanted);
}

/* Creates grid, solvers and fields. After an error, fsi_levelset_destroy frees those that were made. */
static fsi_status fsi__ls_make(fsi_levelset *s, fsi__ls_impl *m)
{
    const fsi_real deep = (fsi_real)FSI__LS_BAND * s->desc.dx;
    fsi_grid_desc gd = fsi_grid_default_desc();
    fsi_pressure_desc pd = fsi_pressure_default_desc();
    int a;

    /* grid, solvers, surface */
    gd.context = pd.context = s->context;
    gd.dim = s->desc.dim;
    gd.dx = s->desc.dx;
    gd.origin = s->desc.origin;
    for (a = 0; a < 3; a++) gd.n[a] = s->desc.n[a];
    pd.tolerance = s->desc.pressure_tolerance;
    pd.max_iters = s->desc.max_iters;
    FSI__TRY(fsi_grid_create(&s->grid, &gd));
    FSI__TRY(fsi_pressure_create(&m->solver, &pd));
    FSI__TRY(fsi_viscosity_create(&m->viscosity, s->context));
    FSI__TRY(fsi_grid_surface_create(&m->surface, s->context));

    /* fields at cells */
    FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, deep, &m->phi));
    FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, deep, &m->trial_phi));
    FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, deep, &m->next_phi));
    FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 0, &m->pressure));
    FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 0, &m->trial_pressure));
    FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 0, &m->curvature));
    FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 1, &m->trust));
    FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 0, &m->spare));
    m->spare->scratch = 1;
    if (s->desc.time_order == 2) {
        FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 0, &m->carried));
        FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 0, &m->trial_carried));
    }

    /* fields on faces */
    for (a = 0; a < s->grid->dim; a++) {
        const fsi_grid_place place = (fsi_grid_place)((int)FSI_FACES_X + a);
        FSI__TRY(fsi_grid_add_field(s->grid, place, 0, &m->u[a]));
        FSI__TRY(fsi_grid_add_field(s->grid, place, 0, &m->trial_u[a]));
        FSI__TRY(fsi_grid_add_field(s->grid, place, 0, &m->next_u[a]));
        if (s->desc.time_order == 1) continue;
        FSI__TRY(fsi_grid_add_field(s->grid, place, 0, &m->carry[a]));
        FSI__TRY(fsi_grid_add_field(s->grid, place, 0, &m->trial_carry[a]));
    }

    /* marks of blocks, and room */
    m->wanted = (unsigned char *)fsi__alloc(s->context, fsi__grid_places(s->grid), 1);
    m->before = (unsigned char *)fsi__alloc(s->context, fsi__grid_places(s->grid), 1);
    if (!m->wanted || !m->before)
        return fsi__fail(s->context, FSI_ERROR_MEMORY, "fsi_levelset_create", -1, 0,
                         "no memory for the list of blocks");
    return fsi__ls_reserve(s, m);
}

FSI_API fsi_status fsi_levelset_create(fsi_levelset **out, const fsi_levelset_desc *desc)
{
    fsi_levelset *s;
    fsi__ls_impl *m;
    fsi_status status;

    /* check, and allocate */
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!desc || desc->cookie != FSI__COOKIE('L', fsi_levelset_desc) || !fsi__is_context(desc->context))
        return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__ls_check_desc(desc->context, "fsi_levelset_create", desc));
    s = (fsi_levelset *)fsi__alloc(desc->context, 1, sizeof *s + sizeof *m);
    if (!s)
        return fsi__fail(desc->context, FSI_ERROR_MEMORY, "fsi_levelset_create", -1, 0, "no memory for a simulator");

    /* fill, and make its parts */
    m = (fsi__ls_impl *)(void *)(s + 1);
    m->own_context = fsi_default_context();
    s->cookie = FSI__COOKIE('l', fsi_levelset);
    s->context = desc->context ? desc->context : &m->own_context;
    s->desc = *desc;
    s->impl = m;
    status = fsi__ls_make(s, m);
    if (status != FSI_OK) {
        fsi_levelset_destroy(s);
        return status;
    }

    fsi__ls_publish(s);
    *out = s;
    return FSI_OK;
}

FSI_API void fsi_levelset_destroy(fsi_levelset *s)
{
    fsi__column columns[FSI__LS_ENTRIES];
    fsi__ls_parts *parts[3];
    fsi__ls_impl *m;
    int k;

    if (!fsi__is_levelset(s)) return;
    m = (fsi__ls_impl *)s->impl;

    /* arrays over entries and blocks */
    if (s->grid) {
        fsi__ls_entry_columns(s, columns);
        fsi__free_columns(s->context, columns, FSI__LS_ENTRIES, m->room);
        fsi__free(s->context, m->label, (size_t)m->label_room * (size_t)s->grid->block_cells, sizeof *m->label);
        fsi__free(s->context, m->wanted, fsi__grid_places(s->grid), 1);
        fsi__free(s->context, m->before, fsi__grid_places(s->grid), 1);
    }

    /* components */
    parts[0] = &m->parts;
    parts[1] = &m->trial;
    parts[2] = &m->next;
    for (k = 0; k < 3; k++) {
        fsi__ls_part_columns(parts[k], columns);
        fsi__free_columns(s->context, columns, FSI__LS_PARTS, parts[k]->capacity);
    }

    /* lists */
    fsi__free(s->context, m->component, (size_t)m->component_capacity, sizeof *m->component);
    fsi__free(s->context, m->rim, (size_t)m->rim_capacity, sizeof *m->rim);
    fsi__free(s->context, m->droplet, (size_t)m->droplet_capacity, sizeof *m->droplet);
    fsi__free(s->context, m->trial_droplet, (size_t)m->trial_droplet_capacity, sizeof *m->trial_droplet);
    fsi__free(s->context, m->link, (size_t)m->link_capacity, sizeof *m->link);
    fsi__free(s->context, m->band, (size_t)m->band_capacity, sizeof *m->band);
    fsi__free(s->context, m->piece, (size_t)m->piece_capacity, sizeof *m->piece);
    fsi__ls_face_columns(m, columns);
    fsi__free_columns(s->context, columns, 3, m->face_capacity);
    fsi__free(s->context, m->sum, (size_t)m->sum_capacity, sizeof *m->sum);
    fsi__free(s->context, m->emitter, (size_t)m->emitter_capacity, sizeof *m->emitter);
    fsi__free(s->context, m->sink, (size_t)m->sink_capacity, sizeof *m->sink);

    /* solvers, obstacles, grid */
    fsi_viscosity_destroy(m->viscosity);
    fsi_grid_surface_destroy(m->surface);
    for (k = 0; k < m->obstacle_count; k++) fsi__ls_free_obstacle(s->context, &m->obstacle[k]);
    fsi__free(s->context, m->obstacle, (size_t)m->obstacle_capacity, sizeof *m->obstacle);
    fsi__free(s->context, m->solid, (size_t)m->obstacle_capacity, sizeof *m->solid);
    fsi_pressure_destroy(m->solver);
    fsi_grid_destroy(s->grid);
    s->cookie = 0;
    fsi__free(s->desc.context, s, 1, sizeof *s + sizeof *m); /* not from the context that it may hold itself */
}

FSI__COLD_END

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
