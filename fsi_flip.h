/* fsi_flip.h - liquid as particles that move with a grid (PIC/FLIP, APIC), with obstacles, bodies, taps and drains.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_flip.h"
         #include "fsi_flip.h"

   A DAM BREAKS
      fsi_context ctx = fsi_default_context();      // hooks for memory, threads, messages; and what went wrong
      fsi_flip_desc d = fsi_flip_default_desc();    // a box of 64^3 cells of 1/64 m, SI units
      fsi_flip *water;
      fsi_box3 dam;
      int step;
      d.context = &ctx;
      if (fsi_flip_create(&water, &d) != FSI_OK) { puts(ctx.error.message); return 1; }
      dam.lo = fsi_v3(0, 0, 0);
      dam.hi = fsi_v3(0.25f, 1, 0.5f);
      fsi_flip_fill_box(water, dam, fsi_v3(0, 0, 0), NULL);
      for (step = 0; step < 60; step++)
          if (fsi_flip_step(water, (fsi_real)(1.0 / 60)) != FSI_OK) { puts(ctx.error.message); break; }
      printf("%d particles\n", water->count);       // water->position[0 .. count - 1] is yours to draw
      fsi_flip_destroy(water);

   ELASTIC BODIES (fsi_elastic.h)
      fsi_elastic_add_body(jelly, &b, &id);         // bodies first, liquid after: it leaves them out
      fsi_flip_immerse(water, jelly);               // from now on fsi_flip_step moves both
      fsi_flip_body_reaction(water, id, &force, NULL);

   FILL
      fsi_flip_fill_box, _fill_sphere, _fill_mesh   lattices; what is outside, in obstacles or in liquid is left out

   WALLS AND BODIES ARE MESHES
      fsi_flip_add_mesh(water, mesh, NULL);         // CLOSED; static, or moved by fsi_mesh_move between steps
      fsi_flip_obstacle_desc o = fsi_flip_default_obstacle_desc(); o.mesh = hull; o.body = &body;
      fsi_flip_add_obstacle(water, &o, NULL);       // PRESCRIBED: one-way; COUPLED: solved together with the liquid

   TAPS AND DRAINS
      fsi_emitter_desc tap = fsi_emitter_default_desc();   // fsi_source.h
      tap.center = fsi_v3(0.5f, 0.5f, 0.8f); tap.direction = fsi_v3(0, 0, -1); tap.radius = 0.1f; tap.speed = 2;
      fsi_flip_add_emitter(water, &tap, NULL);
      fsi_flip_add_sink(water, &drain, NULL);

   WHAT IT DOES
      Liquid with a free surface in a box, 2D and 3D: 8 particles a cell (2D: 4), which carry mass and velocity; a grid
      of blocks that follows them and makes their velocities divergence-free (fsi_pressure.h), with cut faces at
      obstacles and a surface between cells. Particles keep clear of walls, however thin and fast: they are swept.
      The density of particles is kept by sources in the pressure, so that liquid does not lose volume.
      Honey: d.viscosity = 10; a small drop: d.surface_tension = 0.0728f (both cost nothing where they are 0).
      For drawing: fsi_surface_update(surface, water->position, water->count, NULL) of fsi_surface.h, whose spacing is
      water->spacing; d.markers = 1 tells spray, foam and bubbles.
   WHAT IT DOES NOT DO
      Forces of viscosity on rigid bodies; contact angles other than 90 degrees. Large waves in a closed tank last for
      minutes.
   MACROS: those of fsi.h.
   UNITS: SI. In 2D masses, forces and energies are per metre of depth.
   PRECISION: positions and velocities in fsi_real; masses, pressures of particles and transfers in float; pressure and
      sums in double. Recommended: double; float saves a third of the memory of particles.
   STACK: up to 100 kB in the caller's thread and in each of the context's.
   EQUATIONS: lines of algorithm 2 of Brandt, Scandolo, Eisemann and Hildebrandt, "The reduced immersed method for
      real-time fluid-elastic solid interaction and contact simulation" (2019); see docs/flip.md.
   FIND IN HERE (search for >>), behind the API
      >>blocks and particles  >>liquid cells  >>projection  >>viscosity  >>pieces in flight  >>particles and walls
      >>sources at work  >>markers  >>substep  >>step; and the functions that you call: >>making and changing
      >>particles  >>obstacles  >>questions  >>state. Parts: fsi_flip_state.h (>>desc  >>what there is),
      fsi_flip_transfer.h, fsi_flip_surface.h (>>liquid cells  >>surface tension), fsi_flip_resample.h,
      fsi_flip_immersed.h, fsi_flip_bodies.h
*/
#ifndef FSI_FLIP_H
#define FSI_FLIP_H

#include "fsi_flip_bodies.h"

/* An empty box. Errors: COOKIE, ARGUMENT, NAN (name the field), LIMIT, MEMORY; then *out is NULL. */
FSI_API fsi_status fsi_flip_create(fsi_flip **out, const fsi_flip_desc *desc);
FSI_API void fsi_flip_destroy(fsi_flip *s); /* NULL is fine */
/* Other settings from now on: start from s->desc. All but context, dim, n, dx, origin, density, transfer, reserve,
   attribute_count and markers may change. Errors: COOKIE, ARGUMENT and NAN (name the field); then nothing has
   changed. */
FSI_API fsi_status fsi_flip_set_desc(fsi_flip *s, const fsi_flip_desc *desc);
/* Why the last call on it failed. Never NULL. */
FSI_API const fsi_error *fsi_flip_error(const fsi_flip *s);

/* Appends particles; velocities NULL: at rest; at most 1e9 m/s. Arrays may move; the arguments must not point into
   them. Errors: NAN (names the particle), ARGUMENT, MEMORY, LIMIT (max_particles). Particles outside of the box or in
   an obstacle are moved out of there by the next step. */
FSI_API fsi_status fsi_flip_add_particles(fsi_flip *s, const fsi_vec3 *positions, const fsi_vec3 *velocities,
    int count);
/* Appends a lattice of spacing dx/2 that fills a box, from its corner lo on; a sphere (2D: a disc), around its centre;
   what is at least dx/4 inside a CLOSED mesh (of a container: in its liquid), from the corner of its box on. It moves
   with `velocity` [m/s]. Sites outside of the box, in an obstacle, or nearer than 0.3 dx to an existing particle are
   left out. *added (NULL is fine): how many, 0 after an error; where it is 0 a warning says so. Errors: COOKIE, NAN,
   ARGUMENT, MESH (not closed), MEMORY, LIMIT; nothing changes. */
FSI_API fsi_status fsi_flip_fill_box(fsi_flip *s, fsi_box3 box, fsi_vec3 velocity, int *added);
FSI_API fsi_status fsi_flip_fill_sphere(fsi_flip *s, fsi_vec3 center, fsi_real radius, fsi_vec3 velocity, int *added);
FSI_API fsi_status fsi_flip_fill_mesh(fsi_flip *s, const fsi_mesh *mesh, fsi_vec3 velocity, int *added);
/* Removes the particles i with gone[i] != 0 (count entries); the others keep their order. Errors: ARGUMENT. */
FSI_API fsi_status fsi_flip_remove_particles(fsi_flip *s, const unsigned char *gone);

/* A CLOSED mesh that the liquid cannot enter: referenced, not copied; mesh and body must outlive the simulator or be
   removed first. It keeps liquid out, or in when it was made as a container. Every step sweeps it:
      by its mesh     from where the last step left it to where its mesh is when the step is called (fsi_mesh_move;
                      corners move in straight lines)
      by a body       from body->pose; PRESCRIBED: to body->end; COUPLED: where liquid, body->force and body->torque
                      take it, solved together, which is stable for bodies lighter than the liquid too. The outputs of
                      fsi_body are written when the step has succeeded, for COUPLED also `end`: fsi_body_accept(body)
                      goes on from there. Several obstacles may be fixed to a PRESCRIBED body, one to a COUPLED one. 2D:
                      bodies turn about z only. */
typedef struct fsi_flip_obstacle_desc {
    uint32_t cookie;
    const fsi_mesh *mesh;
    fsi_body *body;          /* default NULL. As the mesh stands when it is added, so it is fixed to body->pose of that
                                moment */
    int no_slip;             /* where desc.viscosity > 0 the liquid moves with the wall, else it slides; default 1 */
} fsi_flip_obstacle_desc;
FSI_API fsi_flip_obstacle_desc fsi_flip_default_obstacle_desc(void); /* fills every field; set mesh */
/* *id (NULL ok) names it in the calls below. Errors: COOKIE, ARGUMENT, NAN (name the field), MESH (not closed),
   MEMORY. */
FSI_API fsi_status fsi_flip_add_obstacle(fsi_flip *s, const fsi_flip_obstacle_desc *desc, int *id);
FSI_API fsi_status fsi_flip_add_mesh(fsi_flip *s, const fsi_mesh *mesh, int *id); /* the same with all defaults */
FSI_API fsi_status fsi_flip_remove_obstacle(fsi_flip *s, int id); /* Errors: COOKIE, ARGUMENT */
/* Takes an obstacle for where its mesh, or its body's pose, is now: the next step does not sweep it there, and moves
   particles inside of it out. Errors: COOKIE, ARGUMENT. */
FSI_API fsi_status fsi_flip_teleport_obstacle(fsi_flip *s, int id);
/* Force [N] and torque about the world's origin [N m] of the liquid on an obstacle, means over the last step, by
   its pressure. id -1: the walls of the box, which also stop single particles. Errors: COOKIE, ARGUMENT. */
FSI_API fsi_status fsi_flip_obstacle_reaction(const fsi_flip *s, int id, fsi_vec3 *force, fsi_vec3 *torque);

/* Puts all bodies of an elastic simulator into the liquid, filled with particles dx/2 apart; give both one gravity.
   fsi_flip_step makes its steps from now on, in as many substeps as its desc asks for at least, all of order 1: do not
   call fsi_elastic_step. The closed sides of the box become planes of the elastic simulator. Other shapes and obstacles
   act on bodies or on liquid: what both must feel is added to both. Bodies collide by fsi_elastic.h. Call it again when
   bodies were added or removed; NULL: none any more. The elastic simulator is referenced; it must outlive this one, or
   be taken out first. Fill after it: sites in bodies are left out. Errors: COOKIE; ARGUMENT (another dim; a body
   without contact points, lighter than a twentieth of the liquid, outside of the box or in another one; liquid in a
   body that is new); MESH (a body with parts thinner than dx/2); MEMORY; then nothing has changed. */
FSI_API fsi_status fsi_flip_immerse(fsi_flip *s, fsi_elastic *bodies);
/* Force [N] and torque about the world's origin [N m] of the liquid on a body, by the id that fsi_elastic_add_body
   gave, means over the last step. Errors: COOKIE, ARGUMENT. */
FSI_API fsi_status fsi_flip_body_reaction(const fsi_flip *s, int body, fsi_vec3 *force, fsi_vec3 *torque);

/* Emitters and sinks: fsi_source.h has their descs. Particles within dx of an emitter's plane move with it, and the
   cells that they are in are a wall with its velocity. *id names it in the calls below (NULL is fine). Errors: COOKIE,
   ARGUMENT and NAN (name the field), MESH, MEMORY, LIMIT. */
FSI_API fsi_status fsi_flip_add_emitter(fsi_flip *s, const fsi_emitter_desc *desc, int *id);
/* Another speed, position, shape ... from now on; the flow and the counts continue. */
FSI_API fsi_status fsi_flip_set_emitter(fsi_flip *s, int id, const fsi_emitter_desc *desc);
FSI_API fsi_status fsi_flip_remove_emitter(fsi_flip *s, int id); /* releases the particles in it */
/* Particles that it emitted, and sites that stayed empty, so far (NULL is fine). */
FSI_API fsi_status fsi_flip_emitter_total(const fsi_flip *s, int id, long long *emitted, long long *blocked,
    long long *refused);
/* Sinks remove the particles that are inside at the end of a step. Errors: as above. */
FSI_API fsi_status fsi_flip_add_sink(fsi_flip *s, const fsi_sink_desc *desc, int *id);
FSI_API fsi_status fsi_flip_remove_sink(fsi_flip *s, int id);
FSI_API fsi_status fsi_flip_sink_total(const fsi_flip *s, int id, long long *removed);

/* Advances exactly dt seconds, 1e-12 to 1000, in substeps; dt 0 only looks: it fills those stats that need no substep.
   Errors: ARGUMENT (dt; a body that fsi_body_check refuses; elastic bodies that were added or removed), NAN (names the
   particle or obstacle), MEMORY, LIMIT (a particle or obstacle faster than 1e9 m/s), those of fsi_elastic_step; then
   nothing has changed. */
FSI_API fsi_status fsi_flip_step(fsi_flip *s, fsi_real dt);
/* The largest step that takes one substep now [s], 1e-12 to 1000, if obstacles and bodies move no faster than the
   liquid, and the elastic simulator's desc.substeps is 1. */
FSI_API fsi_real fsi_flip_suggest_dt(const fsi_flip *s);
/* Adds offset [m] to the box, particles, emitters, sinks, and to where the last step left obstacles. Meshes and bodies
   are yours: add it to them as well before the next step. Errors: NAN, LIMIT; then nothing has changed. */
FSI_API fsi_status fsi_flip_shift_origin(fsi_flip *s, fsi_vec3 offset);

/* Velocity [m/s], pressure [Pa] of the liquid at a point: means of the particles within dx, weights (1 - r^2/dx^2)^2; 0
   without any. O(count). */
FSI_API fsi_vec3 fsi_flip_velocity_at(const fsi_flip *s, fsi_vec3 x);
FSI_API fsi_real fsi_flip_pressure_at(const fsi_flip *s, fsi_vec3 x);
/* How many particles are inside an obstacle, by winding number, or outside of the box; *first one of them (NULL ok).
   Independent of all that the step uses; O(count * faces). */
FSI_API int fsi_flip_count_inside(const fsi_flip *s, int *first);

/* What fsi_flip_copy copies, and how many floats of a particle that are. */
typedef enum fsi_flip_field {
    FSI_FLIP_POSITION, FSI_FLIP_VELOCITY, /* 3 (in 2D too) */
    FSI_FLIP_PRESSURE, FSI_FLIP_MASS,     /* 1 */
    FSI_FLIP_ATTRIBUTE,                   /* desc.attribute_count */
    FSI_FLIP_AERATION, FSI_FLIP_MARKER    /* 1 with desc.markers */
} fsi_flip_field;
/* Copies one field as packed floats, as a GPU wants them: out[i * stride + k] for particle i. `origin` is taken off
   positions before they become float. Errors: ARGUMENT (unknown field, one that the desc did not ask for, stride
   too short, out NULL), NAN (origin). */
FSI_API fsi_status fsi_flip_copy(const fsi_flip *s, fsi_flip_field field, fsi_vec3 origin, float *out, int stride);

/* State: particles with ids, masses and attributes, flows of emitters and sinks, poses of bodies, time. Obstacles,
   bodies, desc and the elastic simulator, which has a state of its own, are not saved: load into a simulator made
   alike, with the same desc.origin, after putting meshes and bodies back. NULL buffer asks the size. A damaged or
   foreign buffer is refused; nothing changes. */
FSI_API fsi_status fsi_flip_save(const fsi_flip *s, void *buffer, size_t capacity, size_t *size);
FSI_API fsi_status fsi_flip_load(fsi_flip *s, const void *buffer, size_t size);
/* Hash of what save writes. Equal after equal steps, for any number of threads. */
FSI_API uint64_t fsi_flip_hash(const fsi_flip *s);
/* Particles coloured by pressure, and the edges of obstacles. */
FSI_API void fsi_flip_debug_draw(const fsi_flip *s, const fsi_debug_draw *draw);

#endif /* FSI_FLIP_H */

/* ==== Stop here if you only want the API. ====================================================================== */

/* A substep, by algorithm 2; names without their fsi__fl_ and fsi__tr_:

      make_blocks, sort      blocks around the particles; particles by cell
      push, push_bodies      v += dt g; hold: what emitters move                             (line 2)
      to_grid                u, fill from particles                                           (lines 1, 5)
      find_faces             that obstacles cover, and their velocities
      find_liquid            kinds of cells, phi of the surface, source for the volume        (lines 6, 7)
      resample               splits and merges particles; find_tension: pressure at the surface
      couple                 project: pressure, u divergence-free but for the source; walls let go (lines 8, 9);
                             spread: u and its change beside what the pressure reaches;
                             with bodies again, until they bear what the liquid gives them
      thicken                viscosity, then the pressure once more
      find_pieces            liquid in flight, and its momenta
      to_particles           FLIP, or APIC                                                    (line 10)
      move, move_bodies      particles with u; obstacles                                      (line 13)
      balance_pieces         gives pieces in flight the momenta that they lost
      place                  particles out of obstacles and into the box                            */

#ifdef FSI_IMPLEMENTATION
#undef FSI_FLIP_IMPLEMENTATION
#define FSI_FLIP_IMPLEMENTATION
#endif
#ifdef FSI_FLIP_IMPLEMENTATION
#ifndef FSI_FLIP_IMPLEMENTATION_DONE
#define FSI_FLIP_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_flip_bodies.h"

FSI__STRICT_BEGIN

static fsi_status fsi__fl_check(const fsi_flip *s)
{
    if (!s) return FSI_ERROR_ARGUMENT;
    return s->cookie == FSI__COOKIE('l', fsi_flip) ? FSI_OK : FSI_ERROR_COOKIE;
}

static void fsi__fl_lap(const fsi__fl_run *run, double *phase, double *clock)
{
    const double now = fsi__now(run->s->context);
    *phase += now - *clock;
    *clock = now;
}

/* A loop over particles whose chunks sum into run->part; then the sums, chunk after chunk, in run->sums. */
static void fsi__fl_each(fsi__fl_run *run, fsi__range_fn *fn, double work)
{
    int c, k;
    run->chunks = fsi__chunks(run->n, FSI__FL_GRAIN);
    if (run->chunks > 0) memset(run->part, 0, (size_t)run->chunks * sizeof *run->part);
    fsi__parallel_work(run->s->context, run->n, FSI__FL_GRAIN, work * run->n, fn, run);
    memset(run->sums, 0, sizeof run->sums);
    for (c = 0; c < run->chunks; c++) for (k = 0; k < FSI__FL_SUMS; k++) run->sums[k] += run->part[c][k];
}

static double fsi__fl_largest(const fsi__fl_run *run, int k)
{
    double most = 0;
    int c;
    for (c = 0; c < run->chunks; c++) most = fmax(most, run->part[c][k]);
    return most;
}

/* ---- >>blocks and particles -------------------------------------------------------------------------------------- */

/* A second array of positions. Errors: MEMORY. */
static fsi_status fsi__fl_take_places(fsi__fl_run *run, fsi_vec3 **out)
{
    const size_t most = (size_t)(run->s->capacity + run->solids), n = run->room;
    fsi__arena *arena = &run->im->second;
    size_t rows = n;
    if (n * sizeof **out + 64 > arena->size) rows = n + n / 4 < most ? n + n / 4 : most;
    if (!fsi__arena_reserve(run->s->context, arena, rows * sizeof **out + 64)) return fsi__fail(run->s->context,
        FSI_ERROR_MEMORY, run->fn, -1, run->s->count, "no memory to step %d particles", run->s->count);
    *out = (fsi_vec3 *)fsi__take(arena, n, sizeof **out);
    return FSI_OK;
}

/* From now on x may be written. */
static fsi_status fsi__fl_own_places(fsi__fl_run *run)
{
    if (run->x != run->s->position) return FSI_OK;
    FSI__TRY(fsi__fl_take_places(run, &run->x));
    memcpy(run->x, run->s->position, (size_t)run->n * sizeof *run->x);
    return FSI_OK;
}

/* Blocks around the particles, and arrays for them. Fields are scratch: all that counts is carried by particles. */
static fsi_status fsi__fl_make_blocks(fsi__fl_run *run)
{
    fsi__fl_impl *im = run->im;
    fsi__arena measure = { NULL, 0, 0 }, *arena = &measure;
    unsigned char *wanted;
    size_t cells, places, boxes;
    uint64_t hash;
    int turn, shared, a;

    /* Blocks. */
    places = fsi__grid_places(im->grid) * (size_t)fsi__tr_want_rows(run->n + run->solids);
    if (!fsi__arena_room(run->s->context, &im->wanted, places))
        return fsi__fail(run->s->context, FSI_ERROR_MEMORY, run->fn, -1, 0, "no memory for the places of blocks");
    wanted = (unsigned char *)fsi__take(&im->wanted, places, 1);
    fsi__tr_want(im->grid, run->x, run->n + run->solids, FSI__FL_MARGIN, wanted);
    FSI__TRY(fsi_grid_set_blocks(im->grid, wanted));
    hash = fsi_hash(im->grid->place, (size_t)im->grid->block_count * sizeof *im->grid->place, 1);
    if (hash != im->blocks_hash) im->opened = 0; /* entries have moved */
    im->blocks_hash = hash;

    /* Arrays: measured, then taken. Boxes fit into `to`, which is free until particles move, but for bodies. */
    boxes = fsi__tr_box_size(im->grid) * (size_t)im->grid->block_count;
    shared = run->solids == 0 && boxes * sizeof(float) <= run->room * sizeof *run->to;
    cells = (size_t)im->grid->block_count * (size_t)im->grid->block_cells;
    for (turn = 0; turn < 2; turn++, arena = &im->blocks) {
        if (turn == 1 && !fsi__arena_room(run->s->context, &im->blocks, measure.used))
            return fsi__fail(run->s->context, FSI_ERROR_MEMORY, run->fn, -1, im->grid->block_count,
                "no memory for %d blocks of the grid", im->grid->block_count);
        for (a = 0; a < 3; a++) {
            run->known[a] = (unsigned char *)fsi__take(arena, cells, 1);
            run->reached[a] = (unsigned char *)fsi__take(arena, cells, 1);
            if (run->solids > 0) run->given[a] = (unsigned char *)fsi__take(arena, cells, 1);
            run->shared[a] =
                (unsigned char *)fsi__take(arena, run->solids > 0 ? (size_t)im->grid->block_count : 0, 1);
            run->blank[a] = (unsigned char *)fsi__take(arena, (size_t)im->grid->block_count, 1);
        }
        run->cell = (unsigned char *)fsi__take(arena, cells, 1);
        run->let_go = (unsigned char *)fsi__take(arena, cells, 1);
        run->let_go_before = (unsigned char *)fsi__take(arena, run->solids > 0 ? cells : 0, 1);
        run->label = (int *)fsi__take(arena, cells, sizeof *run->label);
        run->flies = (unsigned char *)fsi__take(arena, (size_t)im->grid->block_count, 1);
        run->damp = (unsigned char *)fsi__take(arena, (size_t)im->grid->block_count, 1);
        if (run->solids > 0)
            run->reach = (fsi__fl_reach *)fsi__take(arena, (size_t)im->grid->block_count, sizeof *run->reach);
        fsi__tr_layout_blocks(&run->points, arena, im->grid->block_count);
        run->hard.grid = im->grid;
        if (run->solids > 0) fsi__tr_layout(&run->hard, arena, run->solids, im->grid->block_count);
        run->motion.affine = run->affine;
        im->boxes = shared ? (float *)(void *)run->to : (float *)fsi__take(arena, boxes, sizeof(float));
    }
    run->points.grid = im->grid;
    run->points.count = run->n + run->solids;
    run->points.spare = (int *)(void *)run->to; /* sorted before anything is there */
    return FSI_OK;
}

/* v += dt g, and momentum that it gives. Sums: 0 to 2 impulse; 3: not finite. */
static void fsi__fl_push(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    const fsi_flip_desc *d = &run->s->desc;
    const double time = run->s->time + run->done * run->length + 0.5 * run->dt;
    double *part = run->part[chunk];
    int i;
    for (i = begin; i < end; i++) {
        fsi_vec3 g = d->gravity;
        if (d->acceleration) g = fsi_v3_add(g, d->acceleration(d->acceleration_user, run->x[i], time));
        if (d->dim == 2) g.z = 0;
        if (!fsi_v3_is_finite(g)) part[3] += 1;
        run->v[i] = fsi_v3_madd(run->v[i], (fsi_real)run->dt, g);
        fsi__fl_put(part, fsi__d3_scale(fsi__d3_of(g), run->dt * (double)run->mass[i]));
    }
}

/* ---- >>liquid cells ---------------------------------------------------------------------------------------------- */

/* The cells of particles that emitters move are walls with their velocity. */
static void fsi__fl_mark_held(fsi__fl_run *run)
{
    int i;
    for (i = 0; i < run->n && run->held; i++)
        if (run->held[i]) run->cell[run->points.key[i]] = FSI_CELL_SOLID;
}

/* Which blocks hold cells that are not air. */
static void fsi__fl_find_damp(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    const int cells = run->im->grid->block_cells;
    int b, c;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const unsigned char *cell = run->cell + (size_t)b * (size_t)cells;
        unsigned char any = 0;
        for (c = 0; c < cells; c++) any |= (unsigned char)(cell[c] != FSI_CELL_AIR);
        run->damp[b] = any;
    }
}

/* Largest fill, number and volume of liquid cells, for stats. */
static void fsi__fl_count_liquid(fsi__fl_run *run)
{
    const fsi__fl_impl *im = run->im;
    const size_t cells = (size_t)im->grid->block_count * (size_t)im->grid->block_cells;
    const double dx = (double)im->grid->dx;
    double volume = 0, most = 0;
    size_t e;
    int count = 0;
    for (e = 0; e < cells; e++) {
        const double part = 0.5 - (double)im->phi->value[e] / dx;
        const double open = im->obstacles.count > 0 ? (double)im->open->value[e] : 1;
        count += run->cell[e] == FSI_CELL_LIQUID;
        if (run->cell[e] != FSI_CELL_AIR || part > 0) volume += fmax(fmin(part, 1), 0) * open;
        most = fmax(most, (double)im->fill->value[e]);
    }
    run->stats.liquid_cells = count;
    run->stats.fill_max = most;
    run->stats.volume = volume * dx * dx * (im->grid->dim == 3 ? dx : 1);
    if (run->solids > 0) run->stats.volume -= im->immersed.body_volume;
}

static void fsi__fl_find_liquid(fsi__fl_run *run)
{
    fsi__fl_impl *im = run->im;
    fsi__fl_cells *cells = &run->cells;

    /* What they are made from, and their fields. */
    cells->grid = im->grid;
    cells->obstacles = &im->obstacles;
    cells->open_side = run->s->desc.open_side;
    cells->points = &run->points;
    cells->liquid = run->n;
    cells->rate = fsi__fl_part(run, (double)run->s->desc.volume_rate) / run->dt;
    cells->tension = (double)run->s->desc.surface_tension;
    cells->fill = im->fill;
    cells->open = im->open;
    cells->kind = run->cell;
    cells->phi = im->phi;
    cells->source = im->source;
    cells->psi = im->psi;
    cells->shape = im->shape;
    cells->capillary = im->capillary;

    /* Kinds, distance and sources. */
    if (im->obstacles.count > 0 && im->opened != run->solids_hash) fsi__fl_find_open(cells);
    im->opened = run->solids_hash;
    fsi__fl_find_kinds(cells);
    fsi__fl_mark_held(run);
    fsi__grid_light(im->grid, 8, 30, fsi__fl_find_damp, run);
    fsi__fl_count_liquid(run);
}

/* Splits and merges particles, once a step. */
static void fsi__fl_resample(fsi__fl_run *run)
{
    const int most = run->s->desc.max_particles;
    fsi__fl_crowd crowd;
    if (!run->s->desc.resample || run->done > 0 || run->n == 0 || run->solids > 0) return;

    /* The particles, and those that max_particles leaves room for. */
    crowd.cells = &run->cells;
    crowd.points = &run->points;
    crowd.particles = &run->im->particles;
    crowd.n = run->n;
    crowd.spare = most > 0 && most - run->n < run->spare ? most - run->n : run->spare;
    crowd.x = run->x;
    crowd.v = run->v;
    crowd.mass = run->mass;
    crowd.affine = run->affine;
    crowd.held = run->held;
    crowd.gone = run->gone;
    crowd.state = run->state;
    crowd.marked = run->flies;
    fsi__fl_even_out(&crowd);
    run->n = crowd.n;
    run->spare -= crowd.split;
    run->stats.split += crowd.split;
    run->stats.merged += crowd.merged;
}

/* Rows that splitting may need in a step. Errors: MEMORY. */
static fsi_status fsi__fl_make_spare(fsi__fl_run *run)
{
    const fsi_flip *s = run->s;
    const double ids = 4294967295.0 - (double)run->im->particles.next - run->more;
    int rows = s->count / 32 + 16;
    if (!s->desc.resample || !(run->length > 0) || s->count == 0) return FSI_OK;
    if (ids < rows) rows = ids > 0 ? (int)ids : 0;
    if (rows > 0x3fffffff - s->count - run->more) rows = 0;
    run->spare = rows;
    run->more += rows;
    if (s->count + run->more <= s->capacity) return FSI_OK;
    return fsi__particles_reserve(&run->im->particles, run->fn, s->count + run->more + rows);
}

#define FSI__FL_CAPILLARY 2 /* longest substep over sqrt(rho dx^3/(4 pi gamma)): 3 is stable (measured), as short waves
                               are smoothed */

/* The longest substep that tension allows [s]. */
static double fsi__fl_capillary_time(const fsi_flip_desc *d)
{
    const double dx = (double)d->dx, gamma = (double)d->surface_tension;
    return gamma > 0 ? FSI__FL_CAPILLARY * sqrt((double)d->density * dx * dx * dx / (4 * FSI_PI * gamma)) : 1e300;
}

/* A field that only some liquids need. */
static fsi_status fsi__fl_make_field(fsi_flip *s, fsi_grid_place place, fsi_real background, fsi_field **out)
{
    if (*out) return FSI_OK;
    FSI__TRY(fsi_grid_add_field(((fsi__fl_impl *)s->impl)->grid, place, background, out));
    (*out)->scratch = 1;
    return FSI_OK;
}

/* What obstacles, tension and viscosity need. Errors: MEMORY. */
static fsi_status fsi__fl_make_extras(fsi_flip *s)
{
    fsi__fl_impl *im = (fsi__fl_impl *)s->impl;
    const int tension = s->desc.surface_tension > 0, viscous = s->desc.viscosity > 0;
    const fsi_real far_off = FSI__FL_BAND * s->desc.dx;
    int a;
    if (im->obstacles.count > 0) FSI__TRY(fsi__fl_make_field(s, FSI_CELLS, 0, &im->open));
    if (tension) FSI__TRY(fsi__fl_make_field(s, FSI_CELLS, far_off, &im->shape));
    if (tension) FSI__TRY(fsi__fl_make_field(s, FSI_CELLS, far_off, &im->capillary)); /* it takes turns with shape */
    if (tension || viscous) FSI__TRY(fsi__fl_make_field(s, FSI_CELLS, 2 * s->desc.dx, &im->psi));
    if (viscous) FSI__TRY(fsi__fl_make_field(s, FSI_CELLS, 0, &im->again));
    for (a = 0; a < s->desc.dim && viscous; a++)
        FSI__TRY(fsi__fl_make_field(s, (fsi_grid_place)((int)FSI_FACES_X + a), 0, &im->thick[a]));
    return viscous && !im->viscosity ? fsi_viscosity_create(&im->viscosity, s->context) : FSI_OK;
}

/* ---- >>projection ------------------------------------------------------------------------------------------------ */

/* change = u before the pressure acts. */
static void fsi__fl_keep(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_faces *job = (const fsi__fl_faces *)arg;
    const fsi__fl_impl *im = job->run->im;
    const size_t cells = (size_t)im->grid->block_cells, from = (size_t)begin * cells;
    (void)chunk;
    memcpy(im->change[job->axis]->value + from, im->u[job->axis]->value + from,
        (size_t)(end - begin) * cells * sizeof(fsi_real));
}

/* Density at a face; see fsi__fl_weigh_faces. */
static double fsi__fl_density_at(const fsi__fl_run *run, int axis, long long face)
{
    return run->solids > 0 ? 1 / (double)run->im->inverse_density[axis]->value[face] : (double)run->s->desc.density;
}

/* Cells at the walls of the box, those that are closed: calls visit for each such side of each cell. */
typedef struct fsi__fl_side {
    int cell, face, side;      /* entries; 0 .. 5 */
    int at[3];                 /* of the face */
    double out;                /* 1 or -1: the wall's normal, out of the box, along the axis */
} fsi__fl_side;
typedef int fsi__fl_side_fn(fsi__fl_run *run, const fsi__fl_side *s);

/* Its bit in let_go of the cell. */
static int fsi__fl_side_bit(const fsi__fl_side *s) { return 1 << ((s->side >> 1) + (s->side & 1 ? 3 : 0)); }

/* Returns the sum of what visit returns. */
static int fsi__fl_each_side(fsi__fl_run *run, fsi__fl_side_fn *visit)
{
    const fsi_grid *g = run->im->grid;
    int b, k, side, corner[3], sum = 0;
    for (b = 0; b < g->block_count; b++) {
        fsi_grid_corner(g, b, corner);
        for (side = 0; side < 2 * g->dim; side++) {
            const int a = side >> 1, layer = side & 1 ? g->n[a] - 1 - corner[a] : 0 - corner[a], back = 1 << 3 * a;
            if (run->s->desc.open_side[side] || layer < 0 || layer > 7) continue;
            for (k = 0; k < g->block_cells / 8; k++) {
                const int c = (k & ~(back - 1)) * 8 + layer * back + (k & (back - 1));
                fsi__fl_side s;
                s.at[0] = corner[0] + (c & 7);
                s.at[1] = corner[1] + (c >> 3 & 7);
                s.at[2] = corner[2] + (c >> 6);
                s.at[a] += side & 1;
                s.cell = b * g->block_cells + c;
                s.face = (int)fsi_grid_entry(g, s.at[0], s.at[1], s.at[2]);
                s.side = side;
                s.out = side & 1 ? 1 : -1;
                if (s.face >= 0) sum += visit(run, &s);
            }
        }
    }
    return sum;
}

/* Walls stop the liquid, but where they have released it; spray leaves them freely. */
static int fsi__fl_hold_side(fsi__fl_run *run, const fsi__fl_side *s)
{
    const int off = run->let_go[s->cell] & fsi__fl_side_bit(s);
    fsi_real *u = &run->im->u[s->side >> 1]->value[s->face];
    if (!off && (run->cell[s->cell] != FSI_CELL_AIR || s->out * (double)*u > 0)) *u = 0;
    return 0;
}

/* Faces of the cells of held particles; mark (NULL ok): becomes 1 there, of each axis. */
static void fsi__fl_hold_taps(fsi__fl_run *run, unsigned char *const *mark)
{
    const fsi_grid *g = run->im->grid;
    int i, a;
    for (i = 0; i < run->n && run->held; i++) {
        const fsi_real v[3] = { run->v[i].x, run->v[i].y, run->v[i].z };
        int corner[3], at[3];
        const int e = run->points.key[i], c = e % g->block_cells;
        if (!run->held[i]) continue;
        fsi_grid_corner(g, e / g->block_cells, corner);
        for (a = 0; a < g->dim; a++) {
            long long beyond;
            at[0] = corner[0] + (c & 7);
            at[1] = corner[1] + (c >> 3 & 7);
            at[2] = corner[2] + (c >> 6);
            at[a]++;
            beyond = fsi_grid_entry(g, at[0], at[1], at[2]);
            run->im->u[a]->value[e] = v[a];
            if (beyond >= 0) run->im->u[a]->value[beyond] = v[a];
            if (mark) mark[a][e] = 1;
            if (mark && beyond >= 0) mark[a][beyond] = 1;
        }
    }
}

static int fsi__fl_is_coupled(const fsi__fl_obstacle *o)
{
    return o->base.carrier && o->work.mode == FSI_BODY_COUPLED;
}

/* Velocity of a point of a mesh that moves by itself, over the whole step. */
static fsi__d3 fsi__fl_mesh_velocity(const fsi__fl_run *run, const fsi__fl_obstacle *o, int face, const double *bary)
{
    const fsi_mesh *m = o->base.mesh;
    fsi__d3 v = fsi__d3_zero();
    int c;
    for (c = 0; c < m->corners && face >= 0; c++) {
        const int k = m->faces[m->corners * face + c];
        v = fsi__d3_madd(v, bary[c] / run->length, fsi__d3_diff(o->base.given->vertices[k], o->base.rest[k]));
    }
    return v;
}

/* Velocity of a solid at x during the substep. */
static fsi_vec3 fsi__fl_solid_velocity(const fsi__fl_run *run, const fsi__fl_obstacle *o, fsi_vec3 x)
{
    double bary[3];
    fsi_mesh_hit hit;
    if (o->base.carrier)
        return fsi_rigid_velocity(o->work.new_velocity, o->work.new_angular_velocity, o->work.pose.position, x);
    hit = fsi_mesh_closest(o->base.mesh, x, FSI_REAL_MAX, -1);
    bary[0] = (double)hit.bary[0];
    bary[1] = (double)hit.bary[1];
    bary[2] = (double)hit.bary[2];
    return fsi__d3_real(fsi__fl_mesh_velocity(run, o, hit.face, bary));
}

/* Velocities of an obstacle at the faces that it covers; those of one that stands are 0. */
static void fsi__fl_find_velocities(fsi__fl_run *run, fsi__fl_obstacle *o)
{
    const fsi_grid *g = run->im->grid;
    int f, a;
    for (a = 0; a < g->dim && (o->base.carrier || o->base.moves); a++)
        for (f = o->faces->first[a]; f < o->faces->first[a + 1]; f++) {
            const int e = o->faces->entry[f], c = e % g->block_cells;
            int corner[3];
            fsi_vec3 v;
            fsi_grid_corner(g, e / g->block_cells, corner);
            v = fsi__fl_solid_velocity(run, o, fsi_grid_position(g, (fsi_grid_place)((int)FSI_FACES_X + a),
                corner[0] + (c & 7), corner[1] + (c >> 3 & 7), corner[2] + (c >> 6)));
            o->velocity[f] = a == 0 ? v.x : (a == 1 ? v.y : v.z);
        }
}

/* Cuts the faces that an obstacle covers, if it or the blocks are not where they were. */
static fsi_status fsi__fl_cut(fsi__fl_run *run, fsi__fl_obstacle *o)
{
    const fsi_grid *g = run->im->grid;
    const fsi_mesh *m = o->base.mesh;
    uint64_t hash = fsi_hash(&g->origin, sizeof g->origin, run->im->blocks_hash);
    hash = fsi_hash(&o->base.id, sizeof o->base.id, hash);
    hash = fsi_hash(m->vertices, (size_t)m->vertex_count * sizeof *m->vertices, hash);
    run->solids_hash = fsi_hash(&hash, sizeof hash, run->solids_hash);
    if (hash == o->cut) return FSI_OK;
    o->cut = 0;
    FSI__TRY(fsi_grid_faces_build(o->faces, g, m));
    FSI__TRY(fsi__room_in(run->s->context, &o->velocity, sizeof *o->velocity, 0, &o->room, o->faces->count, run->fn));
    o->cut = hash;
    return FSI_OK;
}

/* Faces that obstacles cover, and how those move. */
static fsi_status fsi__fl_find_faces(fsi__fl_run *run)
{
    fsi__fl_impl *im = run->im;
    int k;
    run->solids_hash = im->blocks_hash;
    for (k = 0; k < im->obstacles.count; k++) {
        FSI__TRY(fsi__fl_cut(run, &im->obstacle[k]));
        fsi__fl_find_velocities(run, &im->obstacle[k]);
    }
    return FSI_OK;
}

/* Obstacles as the solver takes them, and what it gave them. */
static void fsi__fl_offer_solids(fsi__fl_run *run, fsi_pressure_flow *flow)
{
    int k;
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi__fl_obstacle *o = &run->im->obstacle[k];
        fsi_pressure_solid *p = &run->im->solid[k];
        memset(p, 0, sizeof *p);
        p->faces = o->faces;
        if (o->base.carrier) p->center = o->work.pose.position;
        p->coupled = fsi__fl_is_coupled(o);
        if (p->coupled) {
            p->mass = (double)o->work.mass;
            p->inverse_inertia = fsi_body_world_tensor(o->work.pose.orientation, fsi_m3_inverse(o->work.inertia));
            p->linear = o->work.new_velocity;
            p->angular = o->work.new_angular_velocity;
        } else if (o->base.carrier || o->base.moves) p->velocity = o->velocity;
    }
    flow->solids = run->im->solid;
    flow->solid_count = run->im->obstacles.count;
}

/* The liquid gives an obstacle an impulse at x. */
static void fsi__fl_give(fsi__fl_run *run, fsi__fl_obstacle *o, fsi__d3 j, fsi__d3 x)
{
    const fsi__d3 arm = fsi__d3_sub(x, o->base.carrier ? fsi__d3_of(o->work.pose.position) : fsi__d3_zero());
    fsi__fl_put(o->base.impulse, j);
    fsi__fl_put(o->base.moment, fsi__d3_cross(x, j));
    fsi__fl_put(run->stats.wall_impulse, fsi__d3_scale(j, -1));
    o->work.impulse = fsi_v3_add(o->work.impulse, fsi__d3_real(j));
    o->work.angular_impulse = fsi_v3_add(o->work.angular_impulse, fsi__d3_real(fsi__d3_cross(arm, j)));
}

/* The solver pushes a wall with the pressure of the cell in front of it. At the wall, d from the cell's centre, it is
   higher by rho u.n d/dt, u the velocity that the wall stops; d = (open - 1/2) dx. COUPLED bodies were solved without
   that. */
static void fsi__fl_push_obstacle(fsi__fl_run *run, fsi__fl_obstacle *o)
{
    const fsi__fl_impl *im = run->im;
    const fsi_grid *g = im->grid;
    const double dx = (double)g->dx, volume = dx * dx * (g->dim == 3 ? dx : 1);
    int a, f, up;
    for (a = 0; a < g->dim; a++)
        for (f = o->faces->first[a]; f < o->faces->first[a + 1]; f++) {
            const int e = o->faces->entry[f], b = e / g->block_cells, c = e % g->block_cells;
            const double v = o->base.carrier || o->base.moves ? (double)o->velocity[f] : 0;
            long long side[2];
            int beside[6], corner[3];
            fsi__d3 j = fsi__d3_zero(), x;
            double p = 0;
            fsi__blocks_beside(g, b, beside);
            side[0] = fsi__entry_beside(g, b, beside, c, 2 * a);
            side[1] = e;
            if (side[0] < 0) continue;

            /* Sides with liquid, the other one solid. */
            for (up = 0; up < 2; up++) {
                const long long wet = side[up], dry = side[1 - up];
                if (run->cell[wet] != FSI_CELL_LIQUID || !(im->open->value[wet] > 0) || im->open->value[dry] > 0
                    || (run->let_go[wet] >> (up ? a : 3 + a) & 1)) continue;
                p += ((double)im->open->value[wet] - 0.5) * volume * fsi__fl_density_at(run, a, e)
                    * (double)o->faces->solid[f]
                    * ((double)im->change[a]->value[e] - v);
            }
            if (!(fabs(p) > 0)) continue;

            /* The impulse at the middle of the face. */
            fsi_grid_corner(g, b, corner);
            x = fsi__d3_of(fsi_grid_position(g, (fsi_grid_place)((int)FSI_FACES_X + a), corner[0] + (c & 7),
                corner[1] + (c >> 3 & 7), corner[2] + (c >> 6)));
            if (a == 0) j.x = p;
            else if (a == 1) j.y = p;
            else j.z = p;
            fsi__fl_give(run, o, j, x);
        }
}

static void fsi__fl_take_impulses(fsi__fl_run *run)
{
    int k;
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi__fl_obstacle *o = &run->im->obstacle[k];
        const fsi_pressure_solid *p = &run->im->solid[k];
        const fsi__d3 j = fsi__d3_of(p->impulse), spin = fsi__d3_of(p->angular_impulse);
        if (!p->coupled && !run->again) fsi__fl_push_obstacle(run, o);
        fsi__fl_put(o->base.impulse, j);
        fsi__fl_put(o->base.moment, fsi__d3_add(spin, fsi__d3_cross(fsi__d3_of(p->center), j)));
        fsi__fl_put(run->stats.wall_impulse, fsi__d3_scale(j, -1));
        o->work.impulse = fsi_v3_add(o->work.impulse, p->impulse);
        o->work.angular_impulse = fsi_v3_add(o->work.angular_impulse, p->angular_impulse);
        if (!p->coupled) continue;
        o->work.velocity = o->work.new_velocity = p->linear;
        o->work.angular_velocity = o->work.new_angular_velocity = p->angular;
    }
}

/* Pressure at a wall: p + rho u.n dx/(2 dt), u the velocity that it stops, as the wall is half a cell from the centre
   of the cell. */
static double fsi__fl_wall_pressure(const fsi__fl_run *run, const fsi__fl_side *s)
{
    const fsi__fl_impl *im = run->im;
    if (run->again) return (double)im->again->value[s->cell]; /* the liquid has been stopped already */
    return (double)im->pressure->value[s->cell] + s->out * fsi__fl_density_at(run, s->side >> 1, s->face)
        * (double)im->change[s->side >> 1]->value[s->face] * (double)im->grid->dx / (2 * run->dt);
}

/* Its impulse on the walls of the box. */
static int fsi__fl_push_side(fsi__fl_run *run, const fsi__fl_side *s)
{
    const fsi_grid *g = run->im->grid;
    const int a = s->side >> 1, off = run->let_go[s->cell] & fsi__fl_side_bit(s);
    const double area = (double)g->dx * (g->dim == 3 ? (double)g->dx : 1);
    fsi__d3 j = fsi__d3_zero(), x;
    double p;
    if (off || run->cell[s->cell] != FSI_CELL_LIQUID) return 0;
    p = s->out * area * run->dt * fsi__fl_wall_pressure(run, s);
    if (a == 0) j.x = p;
    else if (a == 1) j.y = p;
    else j.z = p;
    x = fsi__d3_of(fsi_grid_position(g, (fsi_grid_place)((int)FSI_FACES_X + a), s->at[0], s->at[1], s->at[2]));
    fsi__fl_put(run->wall_impulse, j);
    fsi__fl_put(run->wall_moment, fsi__d3_cross(x, j));
    fsi__fl_put(run->stats.wall_impulse, fsi__d3_scale(j, -1));
    return 0;
}

/* ---- walls that let go: where air can get between, at the surface of the liquid, a wall must not pull */

/* 1: a cell has air beside it, not only solid or a wall. */
static int fsi__fl_meets_air(const fsi__fl_run *run, int e)
{
    const fsi_grid *g = run->im->grid;
    int beside[6], side;
    fsi__blocks_beside(g, e / g->block_cells, beside);
    for (side = 0; side < 2 * g->dim; side++) {
        const long long to = fsi__entry_beside(g, e / g->block_cells, beside, e % g->block_cells, side);
        if (to < 0 || fsi__fl_is_outside(g, to)) {
            if (run->s->desc.open_side[side]) return 1;
        } else if (run->cell[to] == FSI_CELL_AIR && run->im->fill->value[to] >= 0) return 1;
    }
    return 0;
}

/* May the liquid of a cell leave a wall? `away`: velocity at which it would; p: pressure at the wall. Before the first
   solve (p 0) spray may. */
static int fsi__fl_may_leave(const fsi__fl_run *run, int e, double away, double p)
{
    const fsi_flip_desc *d = &run->s->desc;
    const double dx = (double)d->dx, least = (double)d->surface_tension / dx
        + FSI__FL_PULL * (double)d->density * dx * (double)fsi_v3_norm(d->gravity);
    if (run->cell[e] != FSI_CELL_LIQUID || !(run->im->fill->value[e] >= 0) || !(away > 0)) return 0;
    return run->solved ? p < -least && fsi__fl_meets_air(run, e) : (double)run->im->fill->value[e] < 0.5;
}

static int fsi__fl_release_side(fsi__fl_run *run, const fsi__fl_side *s)
{
    const int bit = fsi__fl_side_bit(s);
    const double away = -s->out * (double)run->im->change[s->side >> 1]->value[s->face];
    if (run->let_go[s->cell] & bit) return 0;
    if (!fsi__fl_may_leave(run, s->cell, away, run->solved ? fsi__fl_wall_pressure(run, s) : 0)) return 0;
    run->let_go[s->cell] = (unsigned char)(run->let_go[s->cell] | bit);
    return 1;
}

/* The same at one face that an obstacle covers: the cell above it, or below. */
static int fsi__fl_release_face(fsi__fl_run *run, long long e, int bit, double away)
{
    if (e < 0 || (run->let_go[e] & bit)) return 0;
    if (!fsi__fl_may_leave(run, (int)e, away, run->solved ? (double)run->im->pressure->value[e] : 0)) return 0;
    run->let_go[e] = (unsigned char)(run->let_go[e] | bit);
    return 1;
}

static int fsi__fl_release_obstacles(fsi__fl_run *run)
{
    const fsi_grid *g = run->im->grid;
    int k, a, f, sum = 0;
    for (k = 0; k < run->im->obstacles.count; k++) {
        const fsi__fl_obstacle *o = &run->im->obstacle[k];
        if (fsi__fl_is_coupled(o)) continue;
        for (a = 0; a < g->dim; a++)
            for (f = o->faces->first[a]; f < o->faces->first[a + 1]; f++) {
                const int e = o->faces->entry[f], b = e / g->block_cells;
                const double moves = o->base.carrier || o->base.moves ? (double)o->velocity[f] : 0;
                const double away = (double)run->im->change[a]->value[e] - moves;
                int beside[6];
                if (o->faces->solid[f] < (fsi_real)0.5) continue;
                fsi__blocks_beside(g, b, beside);
                sum += fsi__fl_release_face(run, e, 1 << a, away);
                sum += fsi__fl_release_face(run, fsi__entry_beside(g, b, beside, e % g->block_cells, 2 * a), 8 << a,
                    -away);
            }
    }
    return sum;
}

static fsi_status fsi__fl_solve(fsi__fl_run *run, fsi_pressure_flow *flow)
{
    fsi_pressure *solver = run->im->solver;
    solver->desc.tolerance = run->s->desc.pressure_tolerance;
    solver->desc.max_iters = run->s->desc.pressure_iters;
    FSI__TRY(fsi_pressure_project(solver, flow));
    run->stats.degraded += solver->stats.degraded;
    run->stats.iters += solver->stats.iters;
    run->stats.divergence = solver->stats.divergence;
    return FSI_OK;
}

/* ---- velocities where the pressure does not reach

   change = u - u before, at faces of liquid cells (reached = 1). Particles at the surface also read faces beside these:
   they get the mean change of their neighbours, by one layer, or what lies above the surface would fall while the
   liquid rests. */

/* wet: 1 at faces of a block, of an axis, that have a cell beside them that is not air. beside: the block below. */
static void fsi__fl_find_wet(const fsi__fl_run *run, int a, int b, int beside, unsigned char *wet)
{
    const int cells = run->im->grid->block_cells, back = 1 << 3 * a;
    const unsigned char *own = run->cell + (size_t)b * (size_t)cells;
    const unsigned char *other = beside < 0 ? NULL : run->cell + (size_t)beside * (size_t)cells;
    int c, k;
    for (c = 0; c < back; c++) wet[c] = 0;
    for (c = back; c < cells; c++) wet[c] = own[c - back] != FSI_CELL_AIR;
    for (k = 0; k < cells / 8; k++) { /* the first ones along the axis */
        c = (k & ~(back - 1)) * 8 + (k & (back - 1));
        wet[c] = other && other[c + 7 * back] != FSI_CELL_AIR;
    }
    for (c = 0; c < cells; c++) wet[c] = (unsigned char)(wet[c] | (own[c] != FSI_CELL_AIR));
}

/* reached, change, blank; known keeps what particles gave, and what the pressure reached. */
static void fsi__fl_find_change(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_faces *job = (const fsi__fl_faces *)arg;
    fsi__fl_run *run = job->run;
    const fsi_grid *g = run->im->grid;
    const int a = job->axis;
    int b, c, corner[3], below[3] = { 0, 0, 0 };
    (void)chunk;
    below[a] = -1;
    for (b = begin; b < end; b++) {
        const int beside = fsi__block_beside(g, b, below), damp = run->damp[b] || (beside >= 0 && run->damp[beside]);
        const size_t first = (size_t)b * (size_t)g->block_cells;
        const fsi_real *u = run->im->u[a]->value + first;
        fsi_real *change = run->im->change[a]->value + first;
        unsigned char *reached = run->reached[a] + first, *known = run->known[a] + first, blank = 0, wet[512];
        int last;

        /* Faces of the box. */
        memset(wet, 0, sizeof wet);
        if (damp) fsi__fl_find_wet(run, a, b, beside, wet);
        fsi_grid_corner(g, b, corner);
        last = g->n[a] - corner[a];
        for (c = 0; c < g->block_cells && last < 7; c++)
            if ((c >> 3 * a & 7) > last) wet[c] = known[c] = 0;

        /* What the pressure reached. */
        for (c = 0; c < g->block_cells; c++) {
            const unsigned char given = known[c] == 1;
            blank |= (unsigned char)(wet[c] & !given);
            known[c] = given | wet[c];
        }
        memcpy(reached, wet, (size_t)g->block_cells);
        for (c = 0; c < g->block_cells; c++) change[c] = wet[c] ? u[c] - change[c] : 0;
        run->blank[a][b] = blank;
    }
}

/* Adds the change to u at faces that it has by extrapolation, where particles gave u. */
static void fsi__fl_add_change(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_faces *job = (const fsi__fl_faces *)arg;
    const size_t cells = (size_t)job->run->im->grid->block_cells;
    const unsigned char *reached = job->run->reached[job->axis], *known = job->run->known[job->axis];
    fsi_real *u = job->run->im->u[job->axis]->value;
    const fsi_real *change = job->run->im->change[job->axis]->value;
    size_t e;
    (void)chunk;
    for (; begin < end; begin++) {
        if (!memchr(reached + (size_t)begin * cells, 2, cells)) continue;
        for (e = (size_t)begin * cells; e < (size_t)(begin + 1) * cells; e++)
            if (known[e] && reached[e] == 2) u[e] += change[e];
    }
}

/* Is a face, of an axis and an entry, within obstacles? Those at their surface are not. */
static int fsi__fl_is_in_solid(const fsi__fl_run *run, int axis, int e)
{
    const fsi_grid *g = run->im->grid;
    const fsi_real *open = run->im->open->value;
    long long below;
    int beside[6];
    if (open[e] > 0) return 0;
    fsi__blocks_beside(g, e / g->block_cells, beside);
    below = fsi__entry_beside(g, e / g->block_cells, beside, e % g->block_cells, 2 * axis);
    return below < 0 || !(open[below] > 0);
}

/* Velocities of such faces are replaced by extrapolation, as the liquid slides. */
static void fsi__fl_forget_solids(fsi__fl_run *run)
{
    int k, a, f;
    for (k = 0; k < run->im->obstacles.count; k++) {
        const fsi_grid_faces *faces = run->im->obstacle[k].faces;
        for (a = 0; a < run->im->grid->dim; a++)
            for (f = faces->first[a]; f < faces->first[a + 1]; f++) {
                const int e = faces->entry[f];
                if (fsi__fl_is_in_solid(run, a, e)) run->known[a][e] = run->reached[a][e] = 0;
            }
    }
}

/* change += that by viscosity and the first pressure; within obstacles it is that of neighbours. */
static fsi_status fsi__fl_add_thick(fsi__fl_run *run, int a)
{
    const fsi__fl_impl *im = run->im;
    const size_t cells = (size_t)im->grid->block_count * (size_t)im->grid->block_cells;
    unsigned char *own = (unsigned char *)run->label; /* nothing else needs it now */
    size_t e;
    int k, f;
    memset(own, 1, cells);
    for (k = 0; k < im->obstacles.count; k++) {
        const fsi_grid_faces *faces = im->obstacle[k].faces;
        for (f = faces->first[a]; f < faces->first[a + 1]; f++)
            if (fsi__fl_is_in_solid(run, a, faces->entry[f])) own[faces->entry[f]] = 0;
    }
    if (im->obstacles.count > 0) FSI__TRY(fsi_grid_extrapolate(im->thick[a], own, 1));
    for (e = 0; e < cells; e++) im->change[a]->value[e] += im->thick[a]->value[e];
    return FSI_OK;
}

/* With bodies, a change becomes that of momentum, over the liquid's density: each particle divides by its own. That by
   viscosity, which is solved with the liquid's density everywhere, is one already. */
static void fsi__fl_load(const fsi__fl_faces *job, fsi_real *change, int begin, int end)
{
    const size_t cells = (size_t)job->run->im->grid->block_cells;
    const double per_density = 1 / (double)job->run->s->desc.density;
    const double alone = 1 / (double)(fsi_real)per_density; /* as fsi__fl_density_at has it, where there is no body */
    size_t e;
    for (; begin < end; begin++) {
        const size_t first = (size_t)begin * cells;
        if (job->run->shared[job->axis][begin]) for (e = first; e < first + cells; e++)
            change[e] = (fsi_real)((double)change[e] * per_density
                * fsi__fl_density_at(job->run, job->axis, (long long)e));
        else for (e = first; e < first + cells; e++) change[e] = (fsi_real)((double)change[e] * per_density * alone);
    }
}

static void fsi__fl_load_change(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_faces *job = (const fsi__fl_faces *)arg;
    (void)chunk;
    fsi__fl_load(job, job->run->im->change[job->axis]->value, begin, end);
}

/* The change, by one layer, in u too. Errors: MEMORY. */
static fsi_status fsi__fl_spread_change(fsi__fl_run *run)
{
    fsi__fl_impl *im = run->im;
    fsi__fl_each_axis(run, fsi__fl_find_change);
    fsi__fl_forget_solids(run);
    FSI__TRY(fsi__grid_extrapolate_all(im->change, run->reached, im->grid->dim, 1));
    fsi__fl_each_axis(run, fsi__fl_add_change);
    return FSI_OK;
}

/* u, by layers = 2 before the pressure, 3 after it. Errors: MEMORY. */
static fsi_status fsi__fl_spread_velocity(fsi__fl_run *run, int layers)
{
    return fsi__grid_extrapolate_all(run->im->u, run->known, run->im->grid->dim, layers);
}

/* ---- >>viscosity ---------------------------------------------------------------------------------------------------

   One implicit step (fsi_viscosity.h) on velocities that have no divergence, as those of a pool at rest have no shear
   then; it makes some divergence, which a second pressure takes out. The walls that let go in the first let go in the
   second. Rigid bodies get the pressure, no drag; elastic ones are as viscous as the liquid. */

#define FSI__FL_VISCOSITY_TOLERANCE 1e-4 /* error of the change of u, relative to it */
#define FSI__FL_THINNER 3                /* how often it is lowered, to a hundredth each, where it does not converge */

/* Velocities that viscosity takes as they are: reached becomes 1 where liquid sticks, 2 where it slides. Such a face of
   an obstacle is covered, or has its middle inside. */
static void fsi__fl_hold_viscous(fsi__fl_run *run)
{
    fsi__fl_impl *im = run->im;
    const fsi_grid *g = im->grid;
    int k, a, f, beside[6];
    for (a = 0; a < g->dim; a++) memset(run->reached[a], 0, (size_t)g->block_count * (size_t)g->block_cells);
    fsi__fl_hold_taps(run, run->reached);
    for (k = 0; k < im->obstacles.count; k++) {
        fsi__fl_obstacle *o = &im->obstacle[k];
        const int moves = o->base.carrier || o->base.moves;
        fsi__fl_find_velocities(run, o); /* a COUPLED body's have changed */
        for (a = 0; a < g->dim; a++)
            for (f = o->faces->first[a]; f < o->faces->first[a + 1]; f++) {
                const int e = o->faces->entry[f], b = e / g->block_cells;
                long long below;
                double psi;
                fsi__blocks_beside(g, b, beside);
                below = fsi__entry_beside(g, b, beside, e % g->block_cells, 2 * a);
                psi = ((double)im->psi->value[e] + (double)im->psi->value[below >= 0 ? below : e]) / 2;
                if (!(o->faces->solid[f] > (fsi_real)0.999) && psi > 1e-3 * (double)g->dx) continue;
                if (o->no_slip) {
                    run->reached[a][e] = 1;
                    im->u[a]->value[e] = moves ? o->velocity[f] : 0;
                } else if (!run->reached[a][e]) run->reached[a][e] = 2;
            }
    }
}

/* The implicit step. */
static fsi_status fsi__fl_solve_viscosity(fsi__fl_run *run)
{
    fsi__fl_impl *im = run->im;
    const fsi_flip_desc *d = &run->s->desc;
    const fsi_error before = run->s->context->error;
    fsi_viscosity_flow flow = fsi_viscosity_default_flow();
    fsi_status status = FSI_OK;
    int a, side, tries;

    /* The liquid and what it meets. */
    for (a = 0; a < im->grid->dim; a++) {
        flow.u[a] = im->u[a];
        flow.solid[a] = run->reached[a];
    }
    flow.phi = im->phi;
    flow.psi = im->obstacles.count > 0 ? im->psi : NULL;
    flow.viscosity = d->viscosity;
    flow.density = d->density;
    flow.dt = (fsi_real)run->dt;
    flow.tolerance = FSI__FL_VISCOSITY_TOLERANCE;
    for (side = 0; side < 6; side++) {
        flow.wall_no_slip[side] = d->no_slip[side];
        flow.wall_closed[side] = !d->open_side[side];
    }

    /* Where it does not converge, a thinner one. */
    for (tries = 0; tries == 0 || (status == FSI_ERROR_CONVERGENCE && tries <= FSI__FL_THINNER); tries++) {
        if (tries > 0) flow.viscosity /= 100;
        status = fsi_viscosity_solve(im->viscosity, &flow);
        run->stats.viscosity_iters += im->viscosity->iterations;
    }
    FSI__TRY(status);
    if (tries > 1) run->s->context->error = before; /* the step goes on */
    run->stats.thinned += tries > 1;
    run->stats.degraded += tries > 1;
    return FSI_OK;
}

/* thick = the change by the first pressure; change = u, which viscosity starts from. */
static void fsi__fl_begin_thick(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_faces *job = (const fsi__fl_faces *)arg;
    const fsi__fl_impl *im = job->run->im;
    const size_t cells = (size_t)im->grid->block_cells, from = (size_t)begin * cells;
    const size_t size = (size_t)(end - begin) * cells * sizeof(fsi_real);
    (void)chunk;
    memcpy(im->thick[job->axis]->value + from, im->change[job->axis]->value + from, size);
    memcpy(im->change[job->axis]->value + from, im->u[job->axis]->value + from, size);
}

/* thick += that by viscosity; change = u, which the second pressure starts from. */
static void fsi__fl_end_thick(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_faces *job = (const fsi__fl_faces *)arg;
    const fsi__fl_impl *im = job->run->im;
    const size_t cells = (size_t)im->grid->block_cells;
    const fsi_real *u = im->u[job->axis]->value;
    fsi_real *thick = im->thick[job->axis]->value, *change = im->change[job->axis]->value;
    size_t e;
    (void)chunk;
    for (e = (size_t)begin * cells; e < (size_t)end * cells; e++) {
        thick[e] += u[e] - change[e];
        change[e] = u[e];
    }
}

/* What the solver gets. */
static fsi_pressure_flow fsi__fl_make_flow(fsi__fl_run *run)
{
    fsi__fl_impl *im = run->im;
    const fsi_flip_desc *d = &run->s->desc;
    fsi_pressure_flow flow = fsi_pressure_default_flow();
    int a;
    for (a = 0; a < 3; a++) flow.u[a] = im->u[a];
    flow.cell = run->cell;
    flow.phi = im->phi;
    flow.density = d->density;
    for (a = 0; a < im->grid->dim && run->solids > 0; a++) flow.inverse_density[a] = im->inverse_density[a];
    flow.dt = (fsi_real)run->dt;
    flow.source = im->source;
    memcpy(flow.open_side, d->open_side, sizeof flow.open_side);
    flow.pressure = im->pressure;
    flow.let_go = run->let_go;
    if (d->surface_tension > 0) flow.surface_pressure = im->capillary;
    return flow;
}

/* The pressure. round: how often it was solved before in this substep, for other velocities of bodies. */
static fsi_status fsi__fl_project(fsi__fl_run *run, int round)
{
    fsi__fl_impl *im = run->im;
    const size_t cells = (size_t)im->grid->block_count * (size_t)im->grid->block_cells;
    fsi_pressure_flow flow = fsi__fl_make_flow(run);
    int a, turn;
    flow.use_guess = round > 0;
    memset(run->let_go, 0, cells);
    fsi__fl_each_axis(run, fsi__fl_keep);
    run->solved = 0;
    fsi__fl_each_side(run, fsi__fl_release_side);
    fsi__fl_release_obstacles(run);

    /* Solve; once more without the walls that would pull. */
    for (turn = 0; turn < FSI__FL_ROUNDS; turn++) {
        for (a = 0; a < im->grid->dim && turn > 0; a++)
            memcpy(im->u[a]->value, im->change[a]->value, cells * sizeof(fsi_real));
        fsi__fl_each_side(run, fsi__fl_hold_side);
        fsi__fl_hold_taps(run, NULL);
        fsi__fl_offer_solids(run, &flow);
        flow.same_equations = run->same_masses && memcmp(run->let_go, run->let_go_before, cells) == 0;
        FSI__TRY(fsi__fl_solve(run, &flow));
        run->solved = 1;
        run->same_masses = run->solids > 0;
        if (run->solids > 0) memcpy(run->let_go_before, run->let_go, cells);
        if (fsi__fl_each_side(run, fsi__fl_release_side) + fsi__fl_release_obstacles(run) == 0) break;
    }

    /* What solids got. */
    fsi__fl_take_impulses(run);
    fsi__fl_each_side(run, fsi__fl_push_side);
    return FSI_OK;
}

/* ---- >>pieces in flight ---------------------------------------------------------------------------------------------

   A piece of liquid that touches neither wall nor obstacle keeps its momentum, and its angular momentum about its
   centre, through pressure and motion. Here it does not: what the pressure pushes at the surface are faces, whose mass
   particles share with air; and particles keep their velocities on paths that turn, which loses (w dt)^2/2 of a
   rotation w in a substep. So the momenta of each such piece are summed before particles take over the change and after
   they have moved, and what is lost is given back as one rigid motion. */

/* Which pieces touch something, by the cells of the last solve. */
static int fsi__fl_bind_side(fsi__fl_run *run, const fsi__fl_side *s)
{
    const int k = run->label[s->cell], off = run->let_go[s->cell] & fsi__fl_side_bit(s);
    if (k >= 0 && run->cell[s->cell] == FSI_CELL_LIQUID && !off) run->piece[k].bound = 1;
    return 0;
}

static void fsi__fl_bind(fsi__fl_run *run, long long e)
{
    if (e >= 0 && run->label[e] >= 0) run->piece[run->label[e]].bound = 1;
}

static void fsi__fl_bind_pieces(fsi__fl_run *run)
{
    const fsi_grid *g = run->im->grid;
    int k, a, f, i, side, corner[3], c, b;
    fsi__fl_each_side(run, fsi__fl_bind_side);
    for (k = 0; k < run->im->obstacles.count; k++) {
        const fsi_grid_faces *faces = run->im->obstacle[k].faces;
        for (a = 0; a < g->dim; a++)
            for (f = faces->first[a]; f < faces->first[a + 1]; f++) {
                int beside[6];
                b = faces->entry[f] / g->block_cells;
                fsi__blocks_beside(g, b, beside);
                fsi__fl_bind(run, faces->entry[f]);
                fsi__fl_bind(run, fsi__entry_beside(g, b, beside, faces->entry[f] % g->block_cells, 2 * a));
            }
    }
    for (i = 0; i < run->n && run->held; i++) {
        int beside[6];
        if (!run->held[i]) continue;
        b = run->points.key[i] / g->block_cells;
        fsi__blocks_beside(g, b, beside);
        for (side = 0; side < 2 * g->dim; side++)
            fsi__fl_bind(run, fsi__entry_beside(g, b, beside, run->points.key[i] % g->block_cells, side));
    }

    /* Open sides carry momentum away. */
    for (b = 0; b < g->block_count; b++) {
        fsi_grid_corner(g, b, corner);
        for (side = 0; side < 2 * g->dim; side++) {
            const int layer = side & 1 ? g->n[side >> 1] - 1 - corner[side >> 1] : 0 - corner[side >> 1];
            if (!run->s->desc.open_side[side] || layer < 0 || layer > 7) continue;
            for (c = 0; c < g->block_cells; c++)
                if ((c >> 3 * (side >> 1) & 7) == layer) fsi__fl_bind(run, (long long)b * g->block_cells + c);
        }
    }
}

/* The next particle of a piece in flight, from rank *r of block *b on; 0: there is none. */
static int fsi__fl_next_free(const fsi__fl_run *run, int *r, int *b)
{
    const fsi__tr_points *p = &run->points;
    for (; *b < p->grid->block_count; ++*b, *r = *b < p->grid->block_count ? p->first[*b] : 0) {
        if (!run->flies[*b]) continue;
        for (; *r < p->first[*b + 1]; ++*r) {
            const int k = run->label[p->key[p->order[*r]]];
            if (k >= 0 && !run->piece[k].bound) return 1;
        }
    }
    return 0;
}

/* The piece that the k-th body is free in; NULL: none. */
static fsi__fl_piece *fsi__fl_home_of(const fsi__fl_run *run, int k)
{
    fsi__fl_piece *p = run->home[k] >= 0 ? &run->piece[run->home[k]] : NULL;
    return p && !p->bound ? p : NULL;
}

/* Adds the liquid at x and the bodies to the moments of their pieces, before or after; masses over that of a whole
   particle. Bodies count as their own mass matrices have them: particles would count deformations otherwise. */
static void fsi__fl_weigh_pieces(fsi__fl_run *run, const fsi_vec3 *at, int after)
{
    const fsi_vec3 origin = run->im->grid->origin;
    const double unit = 1 / (double)run->s->particle_mass;
    int r = 0, b = 0, k, j;
    for (; fsi__fl_next_free(run, &r, &b); r++) {
        const int i = run->points.order[r];
        fsi__fl_piece *piece = &run->piece[run->label[run->points.key[i]]];
        if (i < run->n) fsi__fl_weigh(after ? &piece->after : &piece->before, (double)run->mass[i],
            fsi__d3_diff(at[i], origin), fsi__d3_of(run->v[i]), fsi__d3_zero(), NULL);
    }

    /* Bodies. */
    for (k = 0; k < run->im->immersed.bodies && run->solids > 0; k++) {
        fsi__fl_piece *piece = fsi__fl_home_of(run, k);
        fsi__el_body *body = fsi__el_inner(run->im->immersed.elastic, k);
        fsi__d3 c, p, l;
        fsi__el_motion m;
        if (!piece) continue;
        fsi__el_body_measure(body, &m, 0);
        c = fsi__d3_at(m.centre);
        p = fsi__d3_at(m.momentum);
        l = fsi__d3_scale(fsi__d3_sub(fsi__d3_at(m.spin), fsi__d3_cross(c, p)), unit);
        for (j = 0; j < 9; j++) m.second[j] *= unit;
        fsi__fl_weigh(after ? &piece->after : &piece->before, body->mass * unit, fsi__d3_sub(c, fsi__d3_of(origin)),
            fsi__d3_over(p, body->mass), l, m.second);
    }
}

/* The rigid motion that has the momenta that the piece lost. A piece that is too small for a turn gets none. */
static void fsi__fl_find_motion(const fsi__fl_run *run, fsi__fl_piece *p)
{
    const int dim = run->s->desc.dim;
    const fsi__d3 turn = fsi__d3_sub(fsi__fl_center(&p->before), fsi__fl_center(&p->after));
    const double h = (double)run->s->desc.dx, *s = p->after.second;
    const double least = s[0] + s[4] + (dim == 3 ? s[8] - fmax(s[0], fmax(s[4], s[8])) : 0); /* of three moments */
    fsi__d3_put(p->v, fsi__d3_scale(fsi__d3_sub(fsi__d3_at(p->before.p), fsi__d3_at(p->after.p)), 1 / p->after.mass));
    fsi__d3_put(p->w, least > p->after.mass * h * h * 0.25 ? fsi__d3_spin(dim, s, turn) : fsi__d3_zero());
}

static int fsi__fl_root(const fsi__fl_run *run, int k)
{
    while (run->piece[k].into != k) k = run->piece[k].into;
    return k;
}

/* The piece that holds a body; pieces that a body joins become one. A body with a part in no piece is not free. */
static void fsi__fl_find_homes(fsi__fl_run *run, int count)
{
    const fsi__immersed *bodies = &run->im->immersed;
    const int cells = run->im->grid->block_count * run->im->grid->block_cells;
    int k, p, e, joined = 0;
    for (k = 0; k < count; k++) run->piece[k].into = k;
    for (k = 0; k < bodies->bodies && run->solids > 0; k++) {
        const fsi__im_body *o = &bodies->body[k];
        const int *key = run->points.key + run->n + o->first;
        int home = -1, apart = 0;
        for (p = 0; p < o->count; p++) {
            const int label = run->label[key[p]], root = label >= 0 ? fsi__fl_root(run, label) : -1;
            apart |= root < 0 || !(run->mass[run->n + o->first + p] > 0);
            if (root < 0 || root == home) continue;
            if (home >= 0) {
                const int low = root < home ? root : home, high = root < home ? home : root;
                run->piece[high].into = low;
                run->piece[low].bound |= run->piece[high].bound;
                joined = 1;
                home = low;
            } else home = root;
        }
        if (apart && home >= 0) run->piece[home].bound = 1;
        run->home[k] = apart ? -1 : home;
    }
    for (k = 0; k < bodies->bodies && joined; k++)
        if (run->home[k] >= 0) run->home[k] = fsi__fl_root(run, run->home[k]);
    for (e = 0; e < cells && joined; e++)
        if (run->label[e] >= 0) run->label[e] = fsi__fl_root(run, run->label[e]);
}

static fsi_status fsi__fl_find_pieces(fsi__fl_run *run)
{
    fsi__fl_impl *im = run->im;
    const fsi_grid *g = im->grid;
    int count = 0, b, c, k, any = 0;
    run->pieces = 0;
    FSI__TRY(fsi_grid_label(im->phi, NULL, run->label, &count));
    FSI__TRY(fsi_grid_grow_labels(run->label, im->phi, 2));
    if (count == 0) return FSI_OK;
    FSI__TRY(fsi__room_in(run->s->context, &im->piece, sizeof *im->piece, 0, &im->piece_room, count, run->fn));
    run->piece = im->piece;
    memset(run->piece, 0, (size_t)count * sizeof *run->piece);
    fsi__fl_bind_pieces(run);
    fsi__fl_find_homes(run, count);
    for (k = 0; k < count; k++) any |= !run->piece[k].bound;
    if (!any) return FSI_OK;
    run->pieces = count;
    for (b = 0; b < g->block_count; b++)
        for (c = 0, run->flies[b] = 0; c < g->block_cells && !run->flies[b]; c++) {
            k = run->label[b * g->block_cells + c];
            run->flies[b] = k >= 0 && !run->piece[k].bound;
        }
    fsi__fl_weigh_pieces(run, run->x, 0);
    return FSI_OK;
}

/* After the particles have moved. */
static void fsi__fl_balance_pieces(fsi__fl_run *run)
{
    int r = 0, b = 0, k;
    if (run->pieces == 0) return;
    fsi__fl_weigh_pieces(run, run->to, 1);
    for (k = 0; k < run->pieces; k++)
        if (!run->piece[k].bound && run->piece[k].after.mass > 0) fsi__fl_find_motion(run, &run->piece[k]);
    for (; fsi__fl_next_free(run, &r, &b); r++) {
        const int i = run->points.order[r];
        const fsi__fl_piece *p = &run->piece[run->label[run->points.key[i]]];
        const fsi__d3 arm = fsi__d3_sub(fsi__d3_diff(run->to[i], run->im->grid->origin), fsi__d3_at(p->after.at));
        if (i < run->n) run->v[i] = fsi_v3_add(run->v[i], fsi__d3_real(fsi__d3_add(fsi__d3_at(p->v),
            fsi__d3_cross(fsi__d3_at(p->w), arm))));
    }
    for (k = 0; k < run->im->immersed.bodies && run->solids > 0; k++) {
        const fsi__fl_piece *p = fsi__fl_home_of(run, k);
        if (p && p->after.mass > 0) fsi__el_body_stir(fsi__el_inner(run->im->immersed.elastic, k),
            fsi__d3_at(p->v), fsi__d3_at(p->w),
            fsi__d3_add(fsi__d3_at(p->after.at), fsi__d3_of(run->im->grid->origin)));
    }
}

/* ---- >>particles and walls --------------------------------------------------------------------------------------- */

FSI_FN int fsi__fl_is_held(const fsi__fl_run *run, fsi_vec3 at)
{
    const double *wall = run->wall, x = (double)at.x, y = (double)at.y, z = (double)at.z;
    return x >= wall[0] && x <= wall[1] && y >= wall[2] && y <= wall[3]
        && (run->s->desc.dim == 2 || (z >= wall[4] && z <= wall[5]));
}

/* The faces of a group (count < 0: of all obstacles) that are near the paths of particles r to end - 1. */
static void fsi__fl_near_faces(const fsi__fl_run *run, const fsi__faces *group, int r, int end, fsi_real reach,
    fsi__faces *out)
{
    fsi_box3 box = fsi_box3_empty();
    for (; r < end; r++) {
        const int i = run->points.order[r];
        box = fsi_box3_grow(fsi_box3_grow(box, run->x[i]), run->to[i]);
    }
    box = fsi_box3_inflate(box, reach);
    if (!fsi__own_faces(&run->im->obstacles, group->count < 0 ? NULL : group, box, 0xffffffffu, out)) out->count = -1;
}

/* The end of the ranks from r on that are in one cell; ranks of a block end at `end`. */
static int fsi__fl_cell_end(const fsi__fl_run *run, int r, int end)
{
    const float *first = run->points.place[r], *at;
    for (r++; r < end; r++) {
        at = run->points.place[r];
        if ((int)at[0] != (int)first[0] || (int)at[1] != (int)first[1] || (int)at[2] != (int)first[2]) break;
    }
    return r;
}

/* Takes a particle out of obstacles, along its path; group: faces among which its own are. */
static void fsi__fl_place_particle(fsi__fl_run *run, const fsi__faces *group, int i, fsi_real reach, fsi__faces *own)
{
    if (i >= run->n || run->gone[i] || (run->held && run->held[i])) return;
    if (!fsi__own_faces(&run->im->obstacles, group->count < 0 ? NULL : group,
        fsi__path_box(run->x[i], run->to[i], reach), 0xffffffffu, own)) {
        run->to[i] = run->x[i]; /* more faces than can be looked at: it stays */
        run->state[i] = FSI__PLACED | FSI__PINCHED;
    } else if (own->count > 0)
        run->state[i] = (unsigned char)fsi__place(&run->walls, own, 0xffffffffu, run->x[i], reach, &run->to[i]);
}

/* Those of some blocks. */
static void fsi__fl_place_particles(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    const fsi_real reach = (fsi_real)(0.1 * (double)run->im->grid->dx);
    fsi__faces group, few, own;
    int b, r;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const int last = run->points.first[b + 1];
        for (r = run->points.first[b]; r < last; r++) {
            const int i = run->points.order[r];
            fsi_vec3 v = run->v[i];
            if (i >= run->n) continue;
            if (!(run->held && run->held[i])) /* what lies beyond would be put back past obstacles */
                (void)fsi__fl_hold_in_box(run, &run->to[i], &v);
        }
        if (run->points.first[b] == last) continue;

        /* The faces near the block's particles; of these the ones near those of a cell; then each particle's own. */
        group.count = -1;
        fsi__fl_near_faces(run, &group, run->points.first[b], last, reach, &group);
        for (r = run->points.first[b]; r < last && group.count != 0;) {
            const int next = fsi__fl_cell_end(run, r, last);
            fsi__fl_near_faces(run, &group, r, next, reach, &few);
            for (; r < next; r++)
                if (few.count != 0) fsi__fl_place_particle(run, &few, run->points.order[r], reach, &own);
        }
    }
}

/* A particle leaves through an open side: from now on it has no mass, and stays where it is. Sums: 10 it, 11 to 13 its
   momentum. */
static void fsi__fl_leave(fsi__fl_run *run, int i, double *part)
{
    part[10] += 1;
    fsi__fl_put(part + 11, fsi__d3_scale(fsi__d3_of(run->v[i]), (double)run->s->particle_mass * (double)run->mass[i]));
    run->gone[i] = FSI__FL_GONE;
    run->mass[i] = 0;
    run->to[i] = run->x[i];
}

/* Ends of paths: in the box. Sums: 0 to 2 impulse on walls, 3 to 5 its moment, 6 placed, 7 pinched, 8 not finite, 9
   largest displacement squared, 10 to 13 as above, 14 too fast. */
static void fsi__fl_end_paths(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    const double m = (double)run->s->particle_mass;
    double *part = run->part[chunk];
    int i;
    for (i = begin; i < end; i++) {
        const fsi_vec3 v = run->v[i];
        fsi__d3 way;
        double way2;

        /* What the step cannot accept. */
        if (!fsi_v3_is_finite(run->to[i]) || !fsi_v3_is_finite(v)) part[8] += 1;
        else if (!fsi__fl_within(v, FSI__FL_FASTEST)) part[14] += 1;
        if (run->gone[i] && !(run->mass[i] > 0)) continue;

        /* Into the box, but for what its emitter still moves. */
        if (!fsi__fl_is_held(run, run->to[i]) && !(run->held && run->held[i])) {
            fsi__d3 j;
            if (!fsi__fl_hold_in_box(run, &run->to[i], &run->v[i])) {
                fsi__fl_leave(run, i, part);
                continue;
            }
            j = fsi__d3_scale(fsi__d3_diff(v, run->v[i]), m * (double)run->mass[i]);
            fsi__fl_put(part, j);
            fsi__fl_put(part + 3, fsi__d3_cross(fsi__d3_of(run->to[i]), j));
        }

        /* For stats. */
        part[6] += (run->state[i] & FSI__PLACED) != 0;
        part[7] += (run->state[i] & FSI__PINCHED) != 0;
        way = fsi__d3_diff(run->to[i], run->x[i]);
        way2 = fsi__d3_dot(way, way);
        if (way2 > part[9]) part[9] = way2;
    }
}

static fsi_status fsi__fl_place(fsi__fl_run *run)
{
    fsi_flip_stats *st = &run->stats;
    if (run->n == 0) return FSI_OK;
    memset(run->state, 0, (size_t)run->n);
    if (run->im->obstacles.count > 0)
        fsi__parallel_work(run->s->context, run->im->grid->block_count, 1, 20.0 * run->n, fsi__fl_place_particles, run);
    fsi__fl_each(run, fsi__fl_end_paths, 8);
    fsi__fl_put(run->wall_impulse, fsi__d3_at(run->sums));
    fsi__fl_put(run->wall_moment, fsi__d3_at(run->sums + 3));
    fsi__fl_put(st->wall_impulse, fsi__d3_scale(fsi__d3_at(run->sums), -1));
    st->placed += (int)run->sums[6];
    st->pinched = (int)run->sums[7];
    st->cfl = fmax(st->cfl, sqrt(fsi__fl_largest(run, 9)) / (double)run->im->grid->dx);
    st->left += (int)run->sums[10];
    fsi__fl_put(st->source_impulse, fsi__d3_scale(fsi__d3_at(run->sums + 11), -1));
    if (run->sums[14] > 0)
        return fsi__fail(run->s->context, FSI_ERROR_LIMIT, run->fn, -1, run->sums[14],
            "%d particles would be faster than %g m/s", (int)run->sums[14], FSI__FL_FASTEST);
    if (run->sums[8] > 0)
        return fsi__fail(run->s->context, FSI_ERROR_NAN, run->fn, -1, run->sums[8], "%d particles are not finite",
            (int)run->sums[8]);
    return FSI_OK;
}

/* Obstacles go to the end of the substep; particles meet them on the way. */
static fsi_status fsi__fl_move_bodies(fsi__fl_run *run)
{
    int k;
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi__fl_obstacle *o = &run->im->obstacle[k];
        const fsi_pose from = o->work.pose;
        if (!o->base.carrier) {
            if (o->base.moves) fsi__obstacle_follow(&o->base, run->done, run->share);
            continue;
        }
        if (fsi__fl_is_coupled(o)) {
            fsi_body_integrate(&o->work, (fsi_real)run->dt);
            o->work.new_angular_velocity = o->work.angular_velocity;
        } else o->work.pose = fsi__pose_on_the_way(o->base.carrier, o->start, run->done + run->share);
        if (!fsi_v3_is_finite(o->work.pose.position) || fsi__largest_axis(o->work.pose.position) > FSI__FL_FARTHEST)
            return fsi__fail(run->s->context, FSI_ERROR_LIMIT, run->fn, o->base.id, 0,
                "the body of obstacle %d flies off", o->base.id);
        fsi__mesh_follow_rigid(o->base.shadow, o->base.rest, from, o->work.pose);
    }
    return FSI_OK;
}

/* ---- >>sources at work ---------------------------------------------------------------------------------------------

   The layers that an emitter emits in a step, and one more behind them, are behind its plane when the step begins, and
   move through it at the emitter's velocity. Particles that have not passed the plane by the end of the step are
   removed, and made again in the same positions when the next step begins. */

/* Appends a particle to the step's rows; it is published with the others, at the end. */
static void fsi__fl_append(void *owner, const fsi__emitter *e, fsi_vec3 x, int ghost)
{
    fsi__fl_run *run = (fsi__fl_run *)owner;
    const int i = run->n++;
    FSI_ASSERT(i < run->s->capacity);
    fsi__particles_new_row(&run->im->particles, i, x, fsi__emitter_velocity(e), 0, e->desc.filter, e->attributes);
    run->im->mass[i] = 1;
    run->x[i] = x;
    run->v[i] = fsi__emitter_velocity(e);
    run->mass[i] = 1;
    if (run->affine) memset(run->affine[i], 0, sizeof run->affine[i]);
    run->held[i] = e->desc.shape == FSI_EMITTER_MESH ? 0 : (uint32_t)(e->flow.id + 1);
    run->gone[i] = ghost ? FSI__FL_GONE : 0;
    fsi__fl_put(run->stats.source_impulse, fsi__d3_scale(fsi__d3_of(run->v[i]), (double)run->s->particle_mass));
}

/* Before the first substep; run->n grows. */
static void fsi__fl_begin_sources(fsi__fl_run *run, double dt)
{
    const int most = run->s->desc.max_particles;
    fsi__emission out;
    run->born = run->n;
    if (!run->held) return;
    fsi__source_begin(&run->sources);
    out = fsi__source_line_up(&run->sources, run->s->time, dt, run->x, &run->n, run->held,
        most > 0 ? most - run->s->count : 0x7fffffff, fsi__fl_append, run);
    run->stats.emitted = (int)out.emitted;
    run->stats.blocked = (int)out.blocked;
    run->stats.refused = (int)out.refused;
}

/* Particles still moved by their emitter get its velocity; the others are released. */
static void fsi__fl_hold(fsi__fl_run *run)
{
    const double clock = run->s->time + run->done * run->length, m = (double)run->s->particle_mass;
    int i;
    for (i = 0; i < run->n && run->held; i++) {
        const fsi__emitter *e = run->held[i] ? fsi__source_holder(&run->sources, run->held[i], run->x[i], clock) : NULL;
        if (run->held[i] && !e && run->gone[i] == FSI__FL_GONE) continue; /* behind a plane that has shut */
        if (!e) {
            run->held[i] = 0;
            continue;
        }
        fsi__fl_put(run->stats.source_impulse, fsi__d3_scale(fsi__d3_diff(fsi__emitter_velocity(e), run->v[i]), m));
        run->v[i] = fsi__emitter_velocity(e);
        if (run->affine) memset(run->affine[i], 0, sizeof run->affine[i]);
    }
}

/* The velocity and the path of held particles are the emitter's, whatever the grid says. */
static void fsi__fl_carry_held(fsi__fl_run *run)
{
    const double m = (double)run->s->particle_mass;
    int i;
    for (i = 0; i < run->n && run->held; i++) {
        const int k = run->held[i] ? fsi__sources_find(&run->im->sources, (int64_t)run->held[i] - 1) : -1;
        fsi_vec3 v;
        if (k < 0) continue;
        v = fsi__emitter_velocity(&run->im->sources.emitter[k]);
        fsi__fl_put(run->stats.source_impulse, fsi__d3_scale(fsi__d3_diff(v, run->v[i]), m));
        run->v[i] = v;
        run->to[i] = fsi_v3_madd(run->x[i], (fsi_real)run->dt, v);
    }
}

/* After the last substep: what sinks take. */
static void fsi__fl_drain(fsi__fl_run *run)
{
    const double h = (double)run->s->spacing, volume = run->s->desc.dim == 3 ? h * h * h : h * h;
    if (run->im->sources.sink_count > 0)
        run->stats.removed = fsi__source_drain(&run->sources, run->length, volume, run->x, run->n, run->gone);
}

/* ---- >>markers ----------------------------------------------------------------------------------------------------

   By neighbours within dx, two spacings, as in fsi_sph.h (fsi_particles.h), once a step. */

static void fsi__fl_begin_foam(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    const double per_h = 1 / (double)run->s->desc.dx;
    int r;
    (void)chunk;
    for (r = begin; r < end; r++) {
        const int i = run->row[run->im->neighbors->order[r]];
        run->record[r] = fsi__record_at(run->x[i], per_h);
        run->speed[r] = fsi__lane4_of(run->v[i]);
    }
}

static void fsi__fl_find_air(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    int r;
    (void)chunk;
    for (r = begin; r < end; r++) fsi__find_air(&run->foam, r);
}

static void fsi__fl_set_markers(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    int r;
    (void)chunk;
    for (r = begin; r < end; r++) {
        const int i = run->row[run->im->neighbors->order[r]];
        run->marker[i] = (unsigned char)fsi__find_marker(&run->foam, r, &run->aeration[i]); /* FSI_FLIP_LIQUID ... */
    }
}

static fsi_status fsi__fl_mark(fsi__fl_run *run)
{
    const fsi_flip_desc *d = &run->s->desc;
    fsi_neighbors *nb = run->im->neighbors;
    fsi__foam *f = &run->foam;
    int i, n = 0;
    if (!run->marker) return FSI_OK;

    /* Those that stay, and their neighbours; `to` is free by now. */
    for (i = 0; i < run->n; i++)
        if (!run->gone[i]) {
            run->to[n] = run->x[i];
            run->row[n++] = i;
        }
    FSI__TRY(fsi_neighbors_build(nb, run->to, n, d->dx, d->dim));
    f->dim = d->dim;
    f->ratio = 2;
    f->first = nb->first;
    f->size = nb->size;
    f->list = nb->list;
    f->place = run->record;
    f->velocity = run->speed;
    f->normal = run->normal;
    f->found = run->found;
    f->air[0] = d->trapped_air_min;
    f->air[1] = d->trapped_air_max;
    f->crest[0] = d->wave_crest_min;
    f->crest[1] = d->wave_crest_max;
    f->energy[0] = d->spray_energy_min;
    f->energy[1] = d->spray_energy_max;

    /* Speeds of trapped air and normals of all, then markers. */
    fsi__parallel_work(run->s->context, n, FSI__FL_GRAIN, 5.0 * n, fsi__fl_begin_foam, run);
    fsi__parallel_work(run->s->context, n, FSI__FL_GRAIN, 50.0 * n, fsi__fl_find_air, run);
    fsi__parallel_work(run->s->context, n, FSI__FL_GRAIN, 50.0 * n, fsi__fl_set_markers, run);
    return FSI_OK;
}

/* ---- >>substep --------------------------------------------------------------------------------------------------- */

static fsi_status fsi__fl_to_grid(fsi__fl_run *run)
{
    fsi__fl_impl *im = run->im;
    const double per_cell = im->grid->dim == 3 ? 8 : 4;
    fsi__tr_faces faces;
    int a;
    for (a = 0; a < 3; a++) faces.known[a] = run->known[a];
    memset(faces.mass, 0, sizeof faces.mass);
    faces.fill = im->fill;
    faces.box = im->boxes;
    for (a = 0; a < 3; a++) faces.u[a] = im->u[a];
    if (run->solids > 0) {
        FSI__TRY(fsi__fl_share_faces(run, per_cell, &faces));
        fsi__im_offer(&im->immersed, run->v + run->n);
        fsi__fl_mix(run);
    } else fsi__tr_to_grid(&run->points, &run->motion, per_cell, &faces);
    return fsi__fl_spread_velocity(run, 2);
}

static void fsi__fl_to_particles(fsi__fl_run *run)
{
    fsi__tr_gain gain;
    gain.u = run->im->u;
    gain.change = run->im->change;
    gain.pic = fsi__fl_part(run, (double)run->s->desc.pic);
    fsi__tr_to_particles(&run->points, &gain, &run->motion);
}

/* Bodies get the velocities that forces other than the liquid's give them. */
static void fsi__fl_push_bodies(fsi__fl_run *run)
{
    int k;
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi__fl_obstacle *o = &run->im->obstacle[k];
        const fsi_vec3 impulse = o->work.impulse, spin = o->work.angular_impulse;
        if (!fsi__fl_is_coupled(o)) continue;
        fsi_body_begin_step(&o->work, (fsi_real)run->dt);
        o->work.impulse = impulse;
        o->work.angular_impulse = spin;
    }
}

/* Which faces know u from particles is kept; it is as it was. */
static void fsi__fl_keep_known(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_faces *job = (const fsi__fl_faces *)arg;
    const size_t cells = (size_t)job->run->im->grid->block_cells;
    size_t e;
    (void)chunk;
    for (e = (size_t)begin * cells; e < (size_t)end * cells; e++)
        job->run->given[job->axis][e] = job->run->known[job->axis][e] == 1;
}

static void fsi__fl_know_again(void *arg, int chunk, int begin, int end)
{
    const fsi__fl_faces *job = (const fsi__fl_faces *)arg;
    const size_t cells = (size_t)job->run->im->grid->block_cells, from = (size_t)begin * cells;
    (void)chunk;
    memcpy(job->run->known[job->axis] + from, job->run->given[job->axis] + from, (size_t)end * cells - from);
}

/* What obstacles and walls have got so far in the step is kept; what they have got since then is taken back. */
static void fsi__fl_keep_given(fsi__fl_run *run)
{
    int k;
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi__fl_obstacle *o = &run->im->obstacle[k];
        memcpy(o->kept_impulse, o->base.impulse, sizeof o->kept_impulse);
        memcpy(o->kept_moment, o->base.moment, sizeof o->kept_moment);
        o->kept_work = o->work;
    }
    memcpy(run->kept[0], run->stats.wall_impulse, sizeof run->kept[0]);
    memcpy(run->kept[1], run->wall_impulse, sizeof run->kept[1]);
    memcpy(run->kept[2], run->wall_moment, sizeof run->kept[2]);
}

static void fsi__fl_take_back(fsi__fl_run *run)
{
    int k;
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi__fl_obstacle *o = &run->im->obstacle[k];
        memcpy(o->base.impulse, o->kept_impulse, sizeof o->kept_impulse);
        memcpy(o->base.moment, o->kept_moment, sizeof o->kept_moment);
        o->work = o->kept_work;
    }
    memcpy(run->stats.wall_impulse, run->kept[0], sizeof run->kept[0]);
    memcpy(run->wall_impulse, run->kept[1], sizeof run->kept[1]);
    memcpy(run->wall_moment, run->kept[2], sizeof run->kept[2]);
}

/* Does the pressure read faces whose u no particle gave? */
static int fsi__fl_reads_blanks(const fsi__fl_run *run)
{
    int a, any = 0;
    for (a = 0; a < run->im->grid->dim; a++)
        any |= memchr(run->blank[a], 1, (size_t)run->im->grid->block_count) != NULL;
    return any;
}

/* The pressure, and with bodies again until they bear what the liquid gives them. */
static fsi_status fsi__fl_couple(fsi__fl_run *run)
{
    fsi__immersed *bodies = &run->im->immersed;
    const double gravity = (double)fsi_v3_norm(run->s->desc.gravity);
    fsi_status status;
    int round;
    if (run->solids > 0) {
        fsi__fl_keep_given(run);
        fsi__fl_each_axis(run, fsi__fl_keep_known);
    }
    for (round = 0;; round++) {
        FSI__TRY(fsi__fl_project(run, round));
        FSI__TRY(fsi__fl_spread_change(run));
        if (run->solids == 0) break;
        fsi__fl_each_axis(run, fsi__fl_load_change);
        FSI__TRY(fsi__fl_part_change(run));
        fsi__fl_push_solids(run);
        run->stats.coupling_iters++;
        if (fsi__im_agree(bodies, run->push, round, gravity)) break;

        /* Bodies with better forces, from where they are now. */
        fsi__fl_take_back(run);
        fsi__im_support(bodies, 1);
        status = fsi__el_resume(bodies->elastic);
        fsi__im_support(bodies, 0);
        FSI__TRY(fsi__im_told(bodies, status));
        fsi__fl_accept_solids(run);
        fsi__fl_mix(run);
        fsi__fl_each_axis(run, fsi__fl_know_again);
        if (fsi__fl_reads_blanks(run)) FSI__TRY(fsi__fl_spread_velocity(run, 2));
    }
    FSI__TRY(fsi__fl_spread_velocity(run, 3));
    if (run->solids == 0) return FSI_OK;
    fsi__fl_carry_solids(run);
    run->stats.coupling_rest = bodies->rest;
    fsi__im_loosen(bodies);
    return FSI_OK;
}

/* Viscosity, and a second pressure. */
static fsi_status fsi__fl_thicken(fsi__fl_run *run)
{
    fsi__fl_impl *im = run->im;
    const size_t cells = (size_t)im->grid->block_count * (size_t)im->grid->block_cells;
    fsi_pressure_flow flow = fsi__fl_make_flow(run);
    fsi_status status;
    size_t e;
    int a;

    /* Viscosity also acts beside the liquid. Bodies: what they got besides the liquid's change. */
    for (a = 0; a < im->grid->dim && run->solids > 0; a++)
        for (e = 0; e < cells; e++) im->hard[a]->value[e] -= im->change[a]->value[e];
    fsi__fl_each_axis(run, fsi__fl_begin_thick);
    if (im->obstacles.count > 0 && !(run->s->desc.surface_tension > 0)) /* tension has done so */
        fsi__fl_find_psi(&run->cells);
    fsi__fl_hold_viscous(run);
    FSI__TRY(fsi__fl_solve_viscosity(run));
    fsi__fl_each_axis(run, fsi__fl_end_thick);

    /* The pressure, to the divergence that the first one left. */
    flow.pressure = im->again;
    flow.surface_pressure = NULL;
    fsi__fl_each_side(run, fsi__fl_hold_side);
    fsi__fl_hold_taps(run, NULL);
    fsi__fl_offer_solids(run, &flow);
    im->solver->desc.absolute = run->stats.divergence;
    status = fsi__fl_solve(run, &flow);
    im->solver->desc.absolute = 0;
    FSI__TRY(status);

    /* What solids got of it. */
    run->again = 1;
    fsi__fl_take_impulses(run);
    fsi__fl_each_side(run, fsi__fl_push_side);
    run->again = 0;
    for (e = 0; e < cells; e++) im->pressure->value[e] += im->again->value[e];

    /* What particles get. */
    FSI__TRY(fsi__fl_spread_change(run));
    FSI__TRY(fsi__fl_spread_velocity(run, 3));
    if (run->solids > 0) fsi__fl_each_axis(run, fsi__fl_load_change);
    for (a = 0; a < im->grid->dim; a++) FSI__TRY(fsi__fl_add_thick(run, a));
    for (a = 0; a < im->grid->dim && run->solids > 0; a++)
        for (e = 0; e < cells; e++) im->hard[a]->value[e] += im->change[a]->value[e];
    if (run->solids == 0) return FSI_OK;
    fsi__fl_push_solids(run);
    fsi__fl_carry_solids(run);
    return FSI_OK;
}

static fsi_status fsi__fl_substep(fsi__fl_run *run)
{
    fsi_flip_stats *st = &run->stats;
    const int dry = run->n == 0 ? run->solids : 0;
    double clock = fsi__now(run->s->context);
    const double m = (double)run->s->particle_mass;
    fsi_vec3 *x;

    /* Particles into blocks. */
    run->solids -= dry;
    if (run->to == run->s->position) FSI__TRY(fsi__fl_take_places(run, &run->to));
    FSI__TRY(fsi__fl_append_solids(run));
    FSI__TRY(fsi__fl_make_blocks(run));
    run->points.x = run->x;
    run->points.mass = run->mass;
    fsi__tr_sort(&run->points);
    st->blocks = run->im->grid->block_count;
    fsi__fl_lap(run, &st->seconds_sort, &clock);

    /* Forces; velocities on the grid. */
    fsi__fl_each(run, fsi__fl_push, 4);
    if (run->sums[3] > 0) return fsi__fail(run->s->context, FSI_ERROR_NAN, run->fn, -1, run->sums[3],
        "desc.acceleration is not finite at %d particles", (int)run->sums[3]);
    fsi__fl_put(st->external_impulse, fsi__d3_scale(fsi__d3_at(run->sums), m));
    fsi__fl_push_bodies(run);
    FSI__TRY(fsi__fl_move_dry(run, dry));
    FSI__TRY(fsi__fl_bend_solids(run));
    fsi__fl_hold(run);
    FSI__TRY(fsi__fl_to_grid(run));
    fsi__fl_lap(run, &st->seconds_to_grid, &clock);

    /* Pressure. */
    FSI__TRY(fsi__fl_find_faces(run));
    fsi__fl_find_liquid(run);
    fsi__fl_resample(run);
    if (run->s->desc.surface_tension > 0)
        FSI__TRY(fsi__fl_find_tension(&run->cells, run->reached[0])); /* nothing else needs that now */
    FSI__TRY(fsi__fl_couple(run));
    if (run->s->desc.viscosity > 0) FSI__TRY(fsi__fl_thicken(run));
    fsi__fl_lap(run, &st->seconds_pressure, &clock);

    /* Back to the particles, and on. */
    FSI__TRY(fsi__fl_find_pieces(run));
    fsi__fl_to_particles(run);
    fsi__fl_lap(run, &st->seconds_to_particles, &clock);
    fsi__tr_move(&run->points, run->im->u, run->dt, NULL, run->to);
    FSI__TRY(fsi__fl_move_solids(run));
    fsi__fl_carry_held(run);
    FSI__TRY(fsi__fl_move_bodies(run));
    fsi__fl_balance_pieces(run);
    FSI__TRY(fsi__fl_place(run));
    x = run->x; /* exchanged */
    run->x = run->to;
    run->to = x;
    fsi__source_move(&run->sources, run->dt);
    run->solids += dry;
    fsi__fl_lap(run, &st->seconds_move, &clock);
    return FSI_OK;
}

/* ---- >>step ------------------------------------------------------------------------------------------------------ */

FSI_FN int fsi__fl_is_taken(const fsi_flip *s, int i)
{
    return fsi_v3_is_finite(s->position[i]) && fsi_v3_is_finite(s->velocity[i])
        && fsi__fl_within(s->velocity[i], FSI__FL_FASTEST) && fsi__fl_within(s->position[i], FSI__FL_FARTHEST);
}

/* The state that the step starts from. Sums: 0 particles that it does not take; part 1: the first of them, plus 1. */
static void fsi__fl_fetch(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    const fsi_flip *s = run->s;
    const fsi__fl_impl *im = run->im;
    const size_t n = (size_t)(end - begin);
    double *part = run->part[chunk];
    int i;
    if (run->x != s->position) memcpy(run->x + begin, s->position + begin, n * sizeof *run->x);
    memcpy(run->v + begin, s->velocity + begin, n * sizeof *run->v);
    memset(run->gone + begin, 0, n);
    if (run->mass != im->mass) memcpy(run->mass + begin, im->mass + begin, n * sizeof *run->mass);
    if (run->affine) memcpy(run->affine + begin, im->affine + begin, n * sizeof *run->affine);
    if (run->held) memcpy(run->held + begin, im->held + begin, n * sizeof *run->held);
    for (i = begin; i < end; i++) {
        if (s->desc.dim == 2) run->x[i].z = run->v[i].z = 0; /* x is the step's own */
        if (fsi__fl_is_taken(s, i)) continue;
        part[0] += 1;
        if (!(part[1] > 0)) part[1] = i + 1;
    }
}

static fsi_status fsi__fl_fetch_particles(fsi__fl_run *run)
{
    const fsi_flip *s = run->s;
    int c, i, bad;
    run->n = s->count;
    fsi__fl_each(run, fsi__fl_fetch, 10);
    if (!(run->sums[0] > 0)) return FSI_OK;

    /* The first that cannot be taken. */
    for (c = 0; !(run->part[c][1] > 0);) c++;
    i = (int)run->part[c][1] - 1;
    bad = !fsi_v3_is_finite(s->position[i]);
    if (bad || !fsi_v3_is_finite(s->velocity[i])) return fsi__fail(s->context, FSI_ERROR_NAN, run->fn, i, 0,
        "particle %d: its %s is not finite", i, bad ? "position" : "velocity");
    return fsi__fail(s->context, FSI_ERROR_LIMIT, run->fn, i, (double)fsi_v3_norm(s->velocity[i]),
        "particle %d is beyond %g m, or faster than %g m/s", i, FSI__FL_FARTHEST, FSI__FL_FASTEST);
}

/* A COUPLED body, or NULL, of obstacle `id` must carry none of the first `count` obstacles. */
static fsi_status fsi__fl_check_shared(const fsi_flip *s, const char *fn, const fsi_body *body, int id, int count)
{
    const fsi__fl_impl *im = (const fsi__fl_impl *)s->impl;
    int k;
    for (k = 0; k < count && body && body->mode == FSI_BODY_COUPLED; k++)
        if (im->obstacle[k].base.carrier == body) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, id,
            im->obstacle[k].base.id, "the body of obstacle %d is COUPLED and carries obstacle %d already", id,
            im->obstacle[k].base.id);
    return FSI_OK;
}

static fsi_status fsi__fl_check_bodies(const fsi_flip *s, const char *fn)
{
    const fsi__fl_impl *im = (const fsi__fl_impl *)s->impl;
    int k;
    FSI__TRY(fsi__obstacles_check_carriers(&im->obstacles, fn, 1));
    for (k = 0; k < im->obstacles.count; k++)
        FSI__TRY(fsi__fl_check_shared(s, fn, im->obstacle[k].base.carrier, im->obstacle[k].base.id, k));
    return FSI_OK;
}

/* Largest speed of a point of an obstacle [m/s]. */
static fsi_status fsi__fl_obstacle_speed(const fsi__fl_run *run, double *fastest)
{
    int k;
    *fastest = 0;
    for (k = 0; k < run->im->obstacles.count; k++) {
        const fsi__fl_obstacle *o = &run->im->obstacle[k];
        double speed = run->length > 0 ? fsi__obstacle_way(&o->base) / run->length : 0;
        if (o->base.carrier)
            speed = fsi__d3_norm(fsi__d3_of(o->work.new_velocity))
                + fsi__d3_norm(fsi__d3_of(o->work.new_angular_velocity)) * o->base.reach;
        if (!(speed <= FSI__FL_FASTEST)) return fsi__fail(run->s->context, FSI_ERROR_LIMIT, run->fn, o->base.id, speed,
            "obstacle %d moves at %g m/s, at most %g is taken", o->base.id, speed, FSI__FL_FASTEST);
        *fastest = fmax(*fastest, speed);
    }
    return FSI_OK;
}

/* The box, less a hundredth of a cell at its walls, for fsi__place. */
static fsi_box3 fsi__fl_room(const fsi_flip *s)
{
    const fsi_flip_desc *d = &s->desc;
    const fsi_real gap = (fsi_real)0.0099 * d->dx, most = (fsi_real)(2 * FSI__FL_FARTHEST);
    fsi_box3 box;
    box.lo = fsi_v3(d->open_side[0] ? -most : d->origin.x + gap, d->open_side[2] ? -most : d->origin.y + gap,
        d->open_side[4] ? -most : d->origin.z + gap);
    box.hi = fsi_v3(d->open_side[1] ? most : d->origin.x + (fsi_real)d->n[0] * d->dx - gap,
        d->open_side[3] ? most : d->origin.y + (fsi_real)d->n[1] * d->dx - gap,
        d->open_side[5] ? most : d->origin.z + (fsi_real)d->n[2] * d->dx - gap);
    return box;
}

/* Poses at the beginning of the step; shadows of meshes that move. */
static fsi_status fsi__fl_begin_obstacles(fsi__fl_run *run)
{
    fsi__fl_impl *im = run->im;
    int k;
    for (k = 0; k < im->obstacles.count; k++) {
        fsi__fl_obstacle *o = &im->obstacle[k];
        fsi__obstacle_begin(&im->obstacles, &o->base);
        memset(&o->work, 0, sizeof o->work);
        if (o->base.carrier) {
            o->work = *o->base.carrier;
            fsi_body_begin_step(&o->work, (fsi_real)run->length);
            o->start = o->work.pose;
            if (memcmp(&o->base.at, &o->start, sizeof o->start) != 0) run->anew = 1;
            fsi__mesh_follow_rigid(o->base.shadow, o->base.rest, o->start, o->start);
        } else FSI__TRY(fsi__obstacle_shade(&im->obstacles, &o->base, run->fn));
    }
    return fsi__room_in(run->s->context, &im->solid, sizeof *im->solid, 0, &im->solid_room, im->obstacles.count,
        run->fn);
}

/* Masses may change in the step, or have rows of bodies behind them: it works on a copy, so that a failure changes
   nothing. Else it reads those of the state. */
static int fsi__fl_copies_mass(const fsi__fl_run *run)
{
    const fsi_flip_desc *d = &run->s->desc;
    int side, open = 0;
    for (side = 0; side < 2 * d->dim; side++) open |= d->open_side[side];
    return open || d->resample || run->solids > 0;
}

/* Rows of a step. */
static void fsi__fl_layout(fsi__fl_run *run, fsi__arena *arena, size_t n)
{
    const int sources = run->im->sources.emitter_count + run->im->sources.sink_count > 0;
    run->v = (fsi_vec3 *)fsi__take(arena, n, sizeof *run->v);
    run->to = (fsi_vec3 *)fsi__take(arena, n, sizeof *run->to);
    run->room = n;
    run->mass = fsi__fl_copies_mass(run) ? (float *)fsi__take(arena, n, sizeof *run->mass) : run->im->mass;
    fsi__tr_layout_rows(&run->points, arena, (int)n);
    run->gone = (unsigned char *)fsi__take(arena, n, 1);
    run->state = (unsigned char *)fsi__take(arena, n, 1);
    run->now = (fsi_vec3 *)fsi__take(arena, (size_t)run->solids, sizeof *run->now);
    run->push = (fsi_vec3 *)fsi__take(arena, (size_t)run->solids, sizeof *run->push);
    run->home = (int *)fsi__take(arena, (size_t)run->im->immersed.bodies, sizeof *run->home);
    run->near_face = (int *)fsi__take(arena, run->solids > 0 ? n : 0, sizeof *run->near_face);
    if (run->s->desc.transfer == FSI_FLIP_APIC) run->affine = (float (*)[9])fsi__take(arena, n, sizeof *run->affine);
    run->held = sources ? (uint32_t *)fsi__take(arena, n, sizeof *run->held) : NULL;
    run->part = (double (*)[FSI__FL_SUMS])fsi__take(arena, (size_t)fsi__chunks((int)n, FSI__FL_GRAIN) + 1,
        sizeof *run->part);
    if (sources) fsi__source_layout(&run->sources, arena);
    if (!run->s->desc.markers) return;
    run->marker = (unsigned char *)fsi__take(arena, n, 1);
    run->aeration = (fsi_real *)fsi__take(arena, n, sizeof *run->aeration);
    run->row = (int *)fsi__take(arena, n, sizeof *run->row);
    run->record = (fsi__record *)fsi__take(arena, n, sizeof *run->record);
    run->speed = (fsi__lane4 *)fsi__take(arena, n, sizeof *run->speed);
    run->normal = (fsi__lane4 *)fsi__take(arena, n, sizeof *run->normal);
    run->found = (fsi__lane4 *)fsi__take(arena, n, sizeof *run->found);
}

static fsi_status fsi__fl_begin(fsi__fl_run *run, fsi_flip *s, double dt, const char *fn)
{
    fsi__fl_impl *im = (fsi__fl_impl *)s->impl;
    const fsi_grid *g = im->grid;
    const double gap = 0.01 * (double)g->dx;
    fsi__arena measure = { NULL, 0, 0 };
    size_t n, most;
    int a;

    /* Memory. */
    memset(run, 0, sizeof *run);
    run->s = s;
    run->im = im;
    run->fn = fn;
    run->length = dt;
    run->anew = im->solids_changed != 0;
    run->sources.sources = &im->sources;
    FSI__TRY(fsi__fl_make_extras(s));
    if (s->desc.markers && !im->neighbors) FSI__TRY(fsi_neighbors_create(&im->neighbors, s->context));
    FSI__TRY(fsi__source_make_room(&run->sources, &im->particles, fn, s->time, dt, &run->more));
    FSI__TRY(fsi__fl_make_spare(run));
    run->solids = dt > 0 ? im->immersed.count : 0;
    n = (size_t)(s->count + run->more + run->solids);
    n = n > im->rows ? n : im->rows; /* fewer particles than ever before take no other memory */
    fsi__fl_layout(run, &measure, n);
    most = (size_t)(s->capacity + run->solids);
    if (measure.used > im->scratch.size) { /* a quarter more, but no more than the table holds */
        memset(&measure, 0, sizeof measure);
        fsi__fl_layout(run, &measure, n + n / 4 < most ? n + n / 4 : most);
    }
    if (!fsi__arena_reserve(s->context, &im->scratch, measure.used)) return fsi__fail(s->context, FSI_ERROR_MEMORY, fn,
        -1, s->count, "no memory to step %d particles", s->count);
    fsi__fl_layout(run, &im->scratch, n);
    im->rows = n;
    run->x = s->position;
    if (s->desc.dim == 2 || s->desc.resample || s->desc.markers || run->solids > 0)
        FSI__TRY(fsi__fl_take_places(run, &run->x));
    FSI__TRY(fsi__fl_fetch_particles(run));
    FSI__TRY(fsi__fl_begin_obstacles(run));
    if (run->solids > 0) {
        FSI__TRY(fsi__im_told(&im->immersed, fsi__el_begin(im->immersed.elastic, dt, fn)));
        fsi__im_begin(&im->immersed);
        run->elastic = 1;
    }
    fsi__fl_begin_sources(run, dt);
    run->motion.v = run->v;
    run->box = fsi__fl_room(s);
    for (a = 0; a < 3; a++) {
        run->wall[2 * a] = (double)fsi__axis(g->origin, a) + gap;
        run->wall[2 * a + 1] = (double)fsi__axis(g->origin, a) + g->n[a] * (double)g->dx - gap;
    }
    run->walls.list = &im->obstacles;
    run->walls.box = &run->box;
    run->walls.gap = gap;
    run->walls.hair = gap;
    run->walls.reach = 2 * (double)g->dx;
    return FSI_OK;
}

/* Particles that the caller put into obstacles or out of the box, or over which he put obstacles: to the nearest
   surface. Then `state` is 1, and `to` is where. Sums: 0 how many. */
static void fsi__fl_find_way_out(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    const fsi_real hair = (fsi_real)run->walls.hair;
    int i, k, turn;
    for (i = begin; i < end; i++) {
        const int same = i < run->born && run->im->position_hash[i] == fsi__fl_position_hash(run->s->position[i]);
        run->state[i] = 0;
        if ((same && !run->anew) || run->gone[i] || (run->held && run->held[i])) continue;
        run->to[i] = run->x[i];

        /* Out of one obstacle may be into another. */
        for (turn = 0; turn < 4; turn++) {
            int moved = 0;
            if (!fsi__fl_hold_in_box(run, &run->to[i], &run->v[i])) break; /* the first substep lets it leave */
            for (k = 0; k < run->im->obstacles.count; k++) {
                const fsi_mesh_hit hit = fsi__inside_of(&run->im->obstacle[k].base, run->to[i]);
                if (hit.face < 0) continue;
                run->to[i] = fsi_v3_madd(hit.point, hair, hit.normal);
                moved = 1;
            }
            if (!moved) break;
        }
        run->state[i] = memcmp(&run->to[i], &run->x[i], sizeof run->x[i]) != 0;
        run->part[chunk][0] += run->state[i];
    }
}

static fsi_status fsi__fl_lead_out(fsi__fl_run *run)
{
    int i;
    fsi__fl_each(run, fsi__fl_find_way_out, 20);
    if (!(run->sums[0] > 0)) return FSI_OK;
    FSI__TRY(fsi__fl_own_places(run));
    for (i = 0; i < run->n; i++)
        if (run->state[i]) run->x[i] = run->to[i];
    return FSI_OK;
}

/* Sums: 0 the largest speed squared. */
static void fsi__fl_find_speed(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    double most = 0;
    int i;
    for (i = begin; i < end; i++) {
        const double speed2 = (double)fsi_v3_norm2(run->v[i]);
        if (speed2 > most) most = speed2;
    }
    run->part[chunk][0] = most;
}

static fsi_status fsi__fl_run_substeps(fsi__fl_run *run)
{
    const fsi_flip_desc *d = &run->s->desc;
    const double way = (double)d->cfl * (double)d->dx;
    double left = run->length;
    while (left > 0) {
        double fastest, solid, count;
        fsi__fl_each(run, fsi__fl_find_speed, 2);
        fastest = sqrt(fsi__fl_largest(run, 0));
        if (run->solids > 0) {
            fsi__im_velocities(&run->im->immersed, run->v + run->n);
            fastest = fmax(fastest, fsi__longest(run->v + run->n, run->solids));
        }

        /* As many substeps as cfl and tension ask for, or as are left. Gravity counts: it acts before the motion. */
        FSI__TRY(fsi__fl_obstacle_speed(run, &solid));
        fastest = fmax(fastest + (double)fsi_v3_norm(d->gravity) * fmin(left, way / fmax(fastest, 1e-12)), solid);
        count = fmax(ceil(left * fastest / way - 1e-9), 1);
        count = fmax(count, ceil(left / fsi__fl_capillary_time(d) - 1e-9));
        if (run->solids > 0)
            count = fmax(count, ceil(left / run->length * run->im->immersed.elastic->desc.substeps - 1e-9));
        if (!(run->stats.substeps + count <= d->max_substeps)) {
            const double rest = d->max_substeps - run->stats.substeps;
            count = rest > 1 ? rest : 1;
            run->stats.degraded++;
        }
        run->dt = count > 1 ? left / count : left;
        run->done = 1 - left / run->length;
        run->share = count > 1 ? run->dt / run->length : 1 - run->done;
        FSI__TRY(fsi__fl_substep(run));
        run->stats.substeps++;
        run->stats.substep = run->dt;
        left = count > 1 ? left - run->dt : 0;
    }
    return FSI_OK;
}

/* Momenta and energies of the new state. Sums: 0 to 2 momentum, 3 to 5 angular momentum, 6 kinetic, 7 potential energy,
   8 largest speed squared, 9 particles, 10 those that are gone. */
static void fsi__fl_measure(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    double *part = run->part[chunk];
    int i;
    for (i = begin; i < end; i++) {
        const fsi__d3 v = fsi__d3_of(run->v[i]), x = fsi__d3_of(run->x[i]);
        const double m = (double)run->s->particle_mass * (double)run->mass[i];
        double speed2;
        if (run->gone[i]) {
            part[10] += 1;
            continue;
        }
        fsi__fl_put(part, fsi__d3_scale(v, m));
        fsi__fl_put(part + 3, fsi__d3_scale(fsi__d3_cross(x, v), m));
        speed2 = fsi__d3_dot(v, v);
        part[6] += 0.5 * m * speed2;
        part[7] -= m * fsi__d3_dot(fsi__d3_of(run->s->desc.gravity), x);
        if (speed2 > part[8]) part[8] = speed2;
        part[9] += 1;
    }
}

/* The new state of particles. */
static void fsi__fl_publish(void *arg, int chunk, int begin, int end)
{
    fsi__fl_run *run = (fsi__fl_run *)arg;
    fsi_flip *s = run->s;
    fsi__fl_impl *im = run->im;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++) {
        s->position[i] = run->x[i];
        im->position_hash[i] = fsi__fl_position_hash(run->x[i]);
        s->velocity[i] = run->v[i];
        im->mass[i] = run->mass[i];
        if (run->affine) memcpy(im->affine[i], run->affine[i], sizeof run->affine[i]);
        if (run->held) im->held[i] = run->held[i];
        if (run->marker && !run->gone[i]) {
            im->marker[i] = run->marker[i];
            im->aeration[i] = run->aeration[i];
        }
    }
}

static void fsi__fl_commit_bodies(fsi__fl_run *run)
{
    const double dt = run->length;
    int k;

    /* Several obstacles may be fixed to one body: it gets the sum of what they got. */
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi_body *body = run->im->obstacle[k].base.carrier;
        if (body) body->impulse = body->angular_impulse = fsi_v3(0, 0, 0);
    }
    if (run->elastic) { /* its contacts push bodies too */
        fsi__im_end(&run->im->immersed, dt);
        fsi__el_end(run->im->immersed.elastic);
    }
    for (k = 0; k < run->im->obstacles.count; k++) {
        fsi__fl_obstacle *o = &run->im->obstacle[k];
        fsi_body *body = o->base.carrier;
        fsi__obstacle_commit(&o->base, dt, body ? &o->work.pose : NULL);
        if (!body) continue;
        body->impulse = fsi_v3_add(body->impulse, o->work.impulse);
        body->angular_impulse = fsi_v3_add(body->angular_impulse, o->work.angular_impulse);
        body->new_velocity = o->work.new_velocity;
        body->new_angular_velocity = o->work.new_angular_velocity;
        fsi_body_end_step(body, (fsi_real)dt);
        if (!fsi__fl_is_coupled(o)) continue;
        body->end = o->work.pose;
        body->new_angular_velocity = fsi_m3_mul_v3(
            fsi_body_world_tensor(body->pose.orientation, fsi_m3_inverse(body->inertia)),
            fsi_m3_mul_v3(fsi_body_world_tensor(body->end.orientation, body->inertia), o->work.new_angular_velocity));
    }
    run->im->wall_force = fsi__d3_real(fsi__d3_scale(fsi__d3_at(run->wall_impulse), 1 / dt));
    run->im->wall_torque = fsi__d3_real(fsi__d3_scale(fsi__d3_at(run->wall_moment), 1 / dt));
}

static void fsi__fl_commit(fsi__fl_run *run)
{
    fsi_flip *s = run->s;
    fsi__fl_impl *im = run->im;
    fsi_flip_stats *st = &run->stats;
    const double m = (double)s->particle_mass;
    int i, gone;

    /* Stats of the new state. */
    fsi__fl_each(run, fsi__fl_measure, 5);
    memcpy(st->momentum, run->sums, sizeof st->momentum);
    memcpy(st->angular_momentum, run->sums + 3, sizeof st->angular_momentum);
    st->kinetic_energy = run->sums[6];
    st->potential_energy = run->sums[7];
    st->max_speed = sqrt(fsi__fl_largest(run, 8));
    st->particles = (int)run->sums[9];
    gone = (int)run->sums[10];

    /* Particles, sources, obstacles. A step of no time changes nothing else. */
    if (run->length > 0) {
        fsi__fl_each(run, fsi__fl_publish, 40);
        fsi__tr_sample_cells(&run->points, im->pressure, run->n, im->found_pressure);
        for (i = 0; i < run->n && gone > 0; i++)
            if (run->gone[i])
                fsi__fl_put(st->source_impulse, fsi__d3_scale(fsi__d3_of(run->v[i]), -m * (double)run->mass[i]));
        for (i = run->born; i < run->n; i++)
            if (run->gone[i] != FSI__FL_GONE) im->id[i] = (uint32_t)im->particles.next++;
        if (run->sources.flow || run->sources.drain) fsi__source_commit(&run->sources);
        if (gone > 0 || run->n > s->count) fsi__particles_compact(&im->particles, run->n, run->gone);
        fsi__fl_commit_bodies(run);
        im->solids_changed = 0;
    }
    st->bytes = s->context->bytes;
    st->allocs = s->context->allocs;
    s->stats = *st;
    s->time += run->length;
}

FSI_API fsi_status fsi_flip_step(fsi_flip *s, fsi_real dt)
{
    static const char fn[] = "fsi_flip_step";
    fsi__fl_run run;
    fsi_status status;
    double start, phases;

    /* Check everything, take memory. */
    FSI__TRY(fsi__fl_check(s));
    FSI__TRY(fsi__check_dt(s->context, dt, fn));
    FSI__TRY(fsi__fl_check_bodies(s, fn));
    FSI__TRY(fsi__im_check(&((fsi__fl_impl *)s->impl)->immersed, fn));
    start = fsi__now(s->context);
    status = fsi__fl_begin(&run, s, (double)dt, fn);

    /* Substeps. After an error nothing has changed. */
    if (status == FSI_OK) {
        if (dt > 0) status = fsi__fl_lead_out(&run);
        if (status == FSI_OK) status = fsi__fl_run_substeps(&run);
    }
    if (status == FSI_OK && dt > 0) {
        fsi__fl_drain(&run);
        status = fsi__fl_mark(&run);
    }
    if (status != FSI_OK || !(dt > 0)) fsi__obstacles_stand(&((fsi__fl_impl *)s->impl)->obstacles);
    if (status != FSI_OK && run.elastic) fsi__el_undo(((fsi__fl_impl *)s->impl)->immersed.elastic);
    FSI__TRY(status);

    /* Publish. */
    phases = run.stats.seconds_sort + run.stats.seconds_to_grid + run.stats.seconds_pressure
        + run.stats.seconds_to_particles + run.stats.seconds_move;
    fsi__fl_commit(&run);
    s->stats.seconds_other = fsi__now(s->context) - start - phases;
    if (run.stats.degraded || run.stats.pinched)
        fsi__warn(s->context, "%s: %d substeps are degraded (%d of %d taken), %d particles pinched", fn,
            run.stats.degraded, run.stats.substeps, s->desc.max_substeps, run.stats.pinched);
    return FSI_OK;
}

FSI__COLD_BEGIN

FSI_API fsi_real fsi_flip_suggest_dt(const fsi_flip *s)
{
    double way, v, g;
    if (fsi__fl_check(s) != FSI_OK) return 0;
    way = (double)s->desc.cfl * (double)s->desc.dx;
    v = fsi__sources_fastest(&((const fsi__fl_impl *)s->impl)->sources, fsi__longest(s->velocity, s->count));
    g = (double)fsi_v3_norm(s->desc.gravity);

    /* v t + g t^2 = way, as gravity acts before the motion. */
    v = g > 0 ? (sqrt(v * v + 4 * g * way) - v) / (2 * g) : (v > 0 ? way / v : 1000);
    v = fmin(v, fsi__fl_capillary_time(&s->desc));
    return (fsi_real)fmax(fmin(v * (1 - 1e-6), 1000), 1e-12); /* the step may round up */
}

/* ---- >>making and changing --------------------------------------------------------------------------------------- */

static fsi_status fsi__fl_check_desc(fsi_context *context, const char *fn, const fsi_flip_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_flip_desc, dim, FSI__INT, 2, 3, 0),
        FSI__FIELD(fsi_flip_desc, dx, FSI__REAL, 1e-9, 1e9, 0),
        FSI__FIELD(fsi_flip_desc, density, FSI__REAL, 1e-6, 1e9, 0),
        FSI__FIELD(fsi_flip_desc, viscosity, FSI__REAL, 0, 1e12, 0),
        FSI__FIELD(fsi_flip_desc, surface_tension, FSI__REAL, 0, 1e6, 0),
        FSI__FIELD(fsi_flip_desc, transfer, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_flip_desc, pic, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_flip_desc, volume_rate, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_flip_desc, cfl, FSI__REAL, 0.05, 2, 0),
        FSI__FIELD(fsi_flip_desc, max_substeps, FSI__INT, 1, 1000000, 0),
        FSI__FIELD(fsi_flip_desc, pressure_tolerance, FSI__DOUBLE, 1e-12, 0.5, 0),
        FSI__FIELD(fsi_flip_desc, pressure_iters, FSI__INT, 1, 100000, 0),
        FSI__FIELD(fsi_flip_desc, resample, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_flip_desc, reserve, FSI__INT, 0, 1e9, 0),
        FSI__FIELD(fsi_flip_desc, max_particles, FSI__INT, 0, 1e9, 0),
        FSI__FIELD(fsi_flip_desc, attribute_count, FSI__INT, 0, 64, 0),
        FSI__FIELD(fsi_flip_desc, markers, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_flip_desc, trapped_air_min, FSI__REAL, 0, 1e9, 0),
        FSI__FIELD(fsi_flip_desc, trapped_air_max, FSI__REAL, 0, 1e9, FSI__FROM_LAST),
        FSI__FIELD(fsi_flip_desc, wave_crest_min, FSI__REAL, 0, 1e9, 0),
        FSI__FIELD(fsi_flip_desc, wave_crest_max, FSI__REAL, 0, 1e9, FSI__FROM_LAST),
        FSI__FIELD(fsi_flip_desc, spray_energy_min, FSI__REAL, 0, 1e9, 0),
        FSI__FIELD(fsi_flip_desc, spray_energy_max, FSI__REAL, 0, 1e9, FSI__FROM_LAST),
        FSI__FIELD(fsi_flip_desc, gravity, FSI__VEC3, 0, 1e6, 0),
        FSI__FIELD(fsi_flip_desc, origin, FSI__VEC3, 0, 1e12, 0)
    };
    const fsi__where at = { fn, "desc.", -1, d->dim };
    int side;
    FSI__TRY(FSI__CHECK_TABLE(context, &at, d, rows));
    for (side = 0; side < 6; side++)
        if (d->no_slip[side] > 1) return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, side, d->no_slip[side],
            "desc.no_slip[%d] is %d, must be 0 or 1", side, (int)d->no_slip[side]);
    return FSI_OK;
}

/* The table of the particles, in the order of a state. */
static void fsi__fl_make_table(fsi_flip *s)
{
    const size_t vector = sizeof(fsi_vec3), real = sizeof(fsi_real), word = sizeof(uint32_t);
    const size_t byte = s->desc.markers ? 1 : 0;
    fsi__fl_impl *im = (fsi__fl_impl *)s->impl;
    fsi__particles *t = &im->particles;

    /* The public arrays that every liquid has. */
    fsi__particles_start(t, s->context, s->desc.dim, s->desc.attribute_count, s->spacing, &s->desc.max_particles);
    t->fastest = FSI__FL_FASTEST;
    t->count = &s->count;
    t->capacity = &s->capacity;
    t->position = &s->position;
    t->velocity = &s->velocity;
    t->id = &im->id;
    t->attribute = &s->attribute;

    /* Columns. */
    fsi__particles_column(t, "position", FSI__COLUMN_LENGTH, &s->position, vector, 0, FSI__FL_FARTHEST, NULL);
    fsi__particles_column(t, "velocity", FSI__COLUMN_LENGTH, &s->velocity, vector, 0, FSI__FL_FASTEST, NULL);
    fsi__particles_column(t, "mass", FSI__COLUMN_FLOAT, &im->mass, sizeof(float), 1e-3, 1e3, &s->mass);
    fsi__particles_column(t, "id", FSI__COLUMN_ID, &im->id, word, 0, 0, &s->id);
    fsi__particles_column(t, "attribute", FSI__COLUMN_ANY, &s->attribute, (size_t)s->desc.attribute_count * real, 0,
        0, NULL);
    fsi__particles_column(t, "emitter", FSI__COLUMN_ANY, &im->held, word, 0, 0, NULL);
    fsi__particles_column(t, "gradient", FSI__COLUMN_ANY, &im->affine,
        s->desc.transfer == FSI_FLIP_APIC ? sizeof *im->affine : 0, 0, 0, NULL);
    fsi__particles_column(t, "position_hash", FSI__COLUMN_ANY, &im->position_hash, word, 0, 0, NULL);
    fsi__particles_column(t, "pressure", FSI__COLUMN_FOUND, &im->found_pressure, sizeof(float), 0, 0, &s->pressure);
    fsi__particles_column(t, "marker", FSI__COLUMN_FOUND, &im->marker, byte, 0, 0, &s->marker);
    fsi__particles_column(t, "aeration", FSI__COLUMN_FOUND, &im->aeration, byte * real, 0, 0, &s->aeration);
}

/* Grid, fields and solver. */
static fsi_status fsi__fl_make_grid(fsi_flip *s)
{
    fsi__fl_impl *im = (fsi__fl_impl *)s->impl;
    fsi_field **cells[4];
    fsi_grid_desc g = fsi_grid_default_desc();
    fsi_pressure_desc p = fsi_pressure_default_desc();
    int a;
    g.context = p.context = s->context;
    p.degrade = 1;
    g.dim = s->desc.dim;
    memcpy(g.n, s->desc.n, sizeof g.n);
    g.dx = s->desc.dx;
    g.origin = s->desc.origin;
    FSI__TRY(fsi_grid_create(&im->grid, &g));

    /* On faces, and at cells. */
    for (a = 0; a < g.dim; a++) {
        FSI__TRY(fsi_grid_add_field(im->grid, (fsi_grid_place)((int)FSI_FACES_X + a), 0, &im->u[a]));
        FSI__TRY(fsi_grid_add_field(im->grid, (fsi_grid_place)((int)FSI_FACES_X + a), 0, &im->change[a]));
        im->u[a]->scratch = im->change[a]->scratch = 1;
    }
    cells[0] = &im->fill;
    cells[1] = &im->phi;
    cells[2] = &im->source;
    cells[3] = &im->pressure;
    for (a = 0; a < 4; a++) {
        FSI__TRY(fsi_grid_add_field(im->grid, FSI_CELLS, cells[a] == &im->phi ? g.dx : 0, cells[a]));
        (*cells[a])->scratch = 1;
    }
    return fsi_pressure_create(&im->solver, &p);
}

FSI_API fsi_status fsi_flip_create(fsi_flip **out, const fsi_flip_desc *desc)
{
    static const char fn[] = "fsi_flip_create";
    fsi_flip *s;
    fsi__fl_impl *im;
    fsi_status status;

    /* Arguments. Without the right cookie the context of the desc cannot be trusted either. */
    if (out) *out = NULL;
    if (!out || !desc) return FSI_ERROR_ARGUMENT;
    if (desc->cookie != FSI__COOKIE('d', fsi_flip_desc) || !fsi__is_context(desc->context)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__fl_check_desc(desc->context, fn, desc));

    /* Simulator and its private part in one block. */
    s = (fsi_flip *)fsi__alloc(desc->context, 1, sizeof *s + sizeof *im);
    if (!s) return fsi__fail(desc->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for the simulator");
    im = (fsi__fl_impl *)(void *)(s + 1);
    im->own_context = fsi_default_context();
    s->cookie = FSI__COOKIE('l', fsi_flip);
    s->context = desc->context ? desc->context : &im->own_context;
    s->desc = *desc;
    s->impl = im;
    s->spacing = desc->dx / 2;
    s->particle_mass = desc->density * s->spacing * s->spacing * (desc->dim == 3 ? s->spacing : 1);

    /* Its tables, its grid. */
    fsi__sources_start(&im->sources, s->context, desc->dim, desc->attribute_count, s->spacing);
    fsi__obstacles_start(&im->obstacles, s->context, desc->dim, sizeof *im->obstacle);
    fsi__fl_make_table(s);
    status = fsi__fl_make_grid(s);
    if (status == FSI_OK) status = fsi__particles_reserve(&im->particles, fn, desc->reserve);
    if (status != FSI_OK) {
        fsi_flip_destroy(s);
        return status;
    }
    *out = s;
    return FSI_OK;
}

/* The walls that immersed bodies meet follow open_side. */
static fsi_status fsi__fl_change_walls(fsi_flip *s, const char *fn, const unsigned char *open_side)
{
    fsi__immersed *now = &((fsi__fl_impl *)s->impl)->immersed, other = *now;
    if (!now->elastic) return FSI_OK;
    FSI__TRY(fsi__im_check(now, fn));
    FSI__TRY(fsi__im_add_walls(&other, fsi__fl_box(s), open_side));
    fsi__im_remove_walls(now);
    *now = other;
    return FSI_OK;
}

FSI_API fsi_status fsi_flip_set_desc(fsi_flip *s, const fsi_flip_desc *desc)
{
    static const char fn[] = "fsi_flip_set_desc";
    static const fsi__fixed fixed[] = {
        FSI__FIXED(fsi_flip_desc, context), FSI__FIXED(fsi_flip_desc, dim), FSI__FIXED(fsi_flip_desc, n),
        FSI__FIXED(fsi_flip_desc, dx), FSI__FIXED(fsi_flip_desc, origin), FSI__FIXED(fsi_flip_desc, density),
        FSI__FIXED(fsi_flip_desc, transfer), FSI__FIXED(fsi_flip_desc, reserve),
        FSI__FIXED(fsi_flip_desc, attribute_count), FSI__FIXED(fsi_flip_desc, markers)
    };
    FSI__TRY(fsi__fl_check(s));
    FSI__TRY(fsi__check_filled(s->context, fn, desc, FSI__COOKIE('d', fsi_flip_desc), "fsi_flip_default_desc"));
    FSI__TRY(fsi__fl_check_desc(s->context, fn, desc));
    FSI__TRY(FSI__CHECK_FIXED(s->context, fn, desc, &s->desc, fixed));
    if (memcmp(desc->open_side, s->desc.open_side, sizeof s->desc.open_side) != 0)
        FSI__TRY(fsi__fl_change_walls(s, fn, desc->open_side));
    s->desc = *desc;
    return FSI_OK;
}

static void fsi__fl_free_obstacle(fsi_context *context, fsi__fl_obstacle *o)
{
    fsi_grid_faces_destroy(o->faces);
    fsi__free(context, o->velocity, (size_t)o->room, sizeof *o->velocity);
}

/* The bodies of the elastic simulator are as if they had never been immersed, where they are. */
static void fsi__fl_take_out(fsi__fl_impl *im)
{
    if (!im->immersed.elastic) return;
    fsi__im_restore(&im->immersed);
    fsi__im_remove_walls(&im->immersed);
    fsi__im_free(&im->immersed);
}

FSI_API void fsi_flip_destroy(fsi_flip *s)
{
    fsi__fl_impl *im;
    int k;
    if (fsi__fl_check(s) != FSI_OK) return;
    im = (fsi__fl_impl *)s->impl;
    for (k = 0; k < im->obstacles.count; k++) fsi__fl_free_obstacle(s->context, &im->obstacle[k]);
    fsi__obstacles_free(&im->obstacles);
    fsi__free(s->context, im->solid, (size_t)im->solid_room, sizeof *im->solid);
    fsi__free(s->context, im->piece, (size_t)im->piece_room, sizeof *im->piece);
    fsi__sources_free(&im->sources);
    fsi__fl_take_out(im);
    fsi_pressure_destroy(im->solver);
    fsi_viscosity_destroy(im->viscosity);
    fsi_neighbors_destroy(im->neighbors);
    fsi_grid_destroy(im->grid);
    fsi__arena_free(s->context, &im->scratch);
    fsi__arena_free(s->context, &im->second);
    fsi__arena_free(s->context, &im->blocks);
    fsi__arena_free(s->context, &im->wanted);
    fsi__arena_free(s->context, &im->lines);
    fsi__particles_free(&im->particles);
    s->cookie = 0;
    fsi__free(s->desc.context, s, 1, sizeof *s + sizeof *im); /* not from the context that it may hold itself */
}

FSI_API const fsi_error *fsi_flip_error(const fsi_flip *s) { return fsi__error_of(s ? s->context : NULL); }

FSI_API fsi_status fsi_flip_shift_origin(fsi_flip *s, fsi_vec3 offset)
{
    static const char fn[] = "fsi_flip_shift_origin";
    fsi__fl_impl *im;
    fsi_vec3 origin;
    int i, k;
    FSI__TRY(fsi__fl_check(s));
    if (!fsi_v3_is_finite(offset)) return fsi__fail(s->context, FSI_ERROR_NAN, fn, -1, 0, "the offset is not finite");
    if (s->desc.dim == 2) offset.z = 0;
    im = (fsi__fl_impl *)s->impl;
    origin = fsi_v3_add(s->desc.origin, offset);
    if (!(fsi__largest_axis(origin) <= 0.5 * FSI__FL_FARTHEST)) return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, -1,
        (double)fsi_v3_norm(origin), "the box would lie %g m off", (double)fsi_v3_norm(origin));
    s->desc.origin = im->grid->origin = origin;
    for (i = 0; i < s->count; i++) {
        const int same = im->position_hash[i] == fsi__fl_position_hash(s->position[i]);
        s->position[i] = fsi_v3_add(s->position[i], offset);
        im->position_hash[i] = same ? fsi__fl_position_hash(s->position[i]) : ~fsi__fl_position_hash(s->position[i]);
    }
    for (k = 0; k < im->obstacles.count; k++) fsi__obstacle_shift(&im->obstacles, &im->obstacle[k].base, offset);
    fsi__sources_shift(&im->sources, offset);
    fsi__sources_shift_flows(&im->sources, offset);
    return FSI_OK;
}

/* ---- >>particles ------------------------------------------------------------------------------------------------- */

FSI_API fsi_status fsi_flip_add_particles(fsi_flip *s, const fsi_vec3 *positions, const fsi_vec3 *velocities, int count)
{
    fsi__fl_impl *im;
    int k;
    FSI__TRY(fsi__fl_check(s));
    im = (fsi__fl_impl *)s->impl;
    FSI__TRY(fsi__particles_add(&im->particles, "fsi_flip_add_particles", positions, velocities, count));
    for (k = s->count - count; k < s->count; k++) {
        im->mass[k] = 1;
        im->position_hash[k] = ~fsi__fl_position_hash(s->position[k]); /* any other: the next step looks at it */
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_flip_remove_particles(fsi_flip *s, const unsigned char *gone)
{
    FSI__TRY(fsi__fl_check(s));
    return fsi__particles_remove(&((fsi__fl_impl *)s->impl)->particles, "fsi_flip_remove_particles", gone);
}

/* Is x out of all obstacles? A lattice that is cut at a wall has the right density there. */
static int fsi__fl_is_free(const void *simulator, fsi_vec3 x)
{
    const fsi_flip *s = (const fsi_flip *)simulator;
    const fsi__fl_impl *im = (const fsi__fl_impl *)s->impl;
    const fsi_real least = s->desc.dx * (fsi_real)0.02;
    int k;
    for (k = 0; k < im->obstacles.count; k++)
        if (fsi_mesh_signed_distance(im->obstacle[k].base.mesh, x) < least) return 0;
    for (k = 0; k < im->immersed.bodies; k++)
        if (fsi_mesh_signed_distance(fsi_elastic_surface(im->immersed.elastic, im->immersed.body[k].id), x) < least)
            return 0;
    return 1;
}

static fsi_status fsi__fl_add_site(void *simulator, fsi_vec3 x, fsi_vec3 velocity)
{
    return fsi_flip_add_particles((fsi_flip *)simulator, &x, &velocity, 1);
}

static fsi_status fsi__fl_fill(fsi_flip *s, fsi__fill fill, int *added)
{
    if (added) *added = 0;
    FSI__TRY(fsi__fl_check(s));
    fill.clip = fsi__fl_box(s);
    fill.is_free = fsi__fl_is_free;
    fill.add = fsi__fl_add_site;
    fill.simulator = s;
    return fsi__particles_fill(&((fsi__fl_impl *)s->impl)->particles, &fill, added);
}

FSI_API fsi_status fsi_flip_fill_box(fsi_flip *s, fsi_box3 box, fsi_vec3 velocity, int *added)
{
    return fsi__fl_fill(s, fsi__fill_box("fsi_flip_fill_box", box, velocity), added);
}

FSI_API fsi_status fsi_flip_fill_sphere(fsi_flip *s, fsi_vec3 center, fsi_real radius, fsi_vec3 velocity, int *added)
{
    return fsi__fl_fill(s, fsi__fill_sphere("fsi_flip_fill_sphere", center, radius, velocity), added);
}

FSI_API fsi_status fsi_flip_fill_mesh(fsi_flip *s, const fsi_mesh *mesh, fsi_vec3 velocity, int *added)
{
    return fsi__fl_fill(s, fsi__fill_mesh("fsi_flip_fill_mesh", mesh, velocity), added);
}

FSI_API fsi_status fsi_flip_add_emitter(fsi_flip *s, const fsi_emitter_desc *desc, int *id)
{
    FSI__TRY(fsi__fl_check(s));
    return fsi__sources_add_emitter(&((fsi__fl_impl *)s->impl)->sources, "fsi_flip_add_emitter", desc, id);
}

FSI_API fsi_status fsi_flip_set_emitter(fsi_flip *s, int id, const fsi_emitter_desc *desc)
{
    FSI__TRY(fsi__fl_check(s));
    return fsi__sources_set_emitter(&((fsi__fl_impl *)s->impl)->sources, "fsi_flip_set_emitter", id, desc);
}

FSI_API fsi_status fsi_flip_remove_emitter(fsi_flip *s, int id)
{
    fsi__fl_impl *im;
    FSI__TRY(fsi__fl_check(s));
    im = (fsi__fl_impl *)s->impl;
    return fsi__sources_remove_emitter(&im->sources, "fsi_flip_remove_emitter", id, im->held, s->count);
}

FSI_API fsi_status fsi_flip_emitter_total(const fsi_flip *s, int id, long long *emitted, long long *blocked,
    long long *refused)
{
    FSI__TRY(fsi__fl_check(s));
    return fsi__sources_emitter_total(&((fsi__fl_impl *)s->impl)->sources, "fsi_flip_emitter_total", id, emitted,
        blocked, refused);
}

FSI_API fsi_status fsi_flip_add_sink(fsi_flip *s, const fsi_sink_desc *desc, int *id)
{
    FSI__TRY(fsi__fl_check(s));
    return fsi__sources_add_sink(&((fsi__fl_impl *)s->impl)->sources, "fsi_flip_add_sink", desc, id);
}

FSI_API fsi_status fsi_flip_remove_sink(fsi_flip *s, int id)
{
    FSI__TRY(fsi__fl_check(s));
    return fsi__sources_remove_sink(&((fsi__fl_impl *)s->impl)->sources, "fsi_flip_remove_sink", id);
}

FSI_API fsi_status fsi_flip_sink_total(const fsi_flip *s, int id, long long *removed)
{
    FSI__TRY(fsi__fl_check(s));
    return fsi__sources_sink_total(&((fsi__fl_impl *)s->impl)->sources, "fsi_flip_sink_total", id, removed);
}

/* ---- >>immersed bodies ------------------------------------------------------------------------------------------- */

static int fsi__fl_is_immersed(const fsi__fl_impl *im, int id)
{
    int k;
    for (k = 0; k < im->immersed.bodies; k++)
        if (im->immersed.body[k].id == id) return 1;
    return 0;
}

/* New bodies lie in the box, not in others, and hold no liquid. x: places of all their particles. */
static fsi_status fsi__fl_check_immersed(fsi_flip *s, const char *fn, const fsi__immersed *bodies, const fsi_vec3 *x)
{
    const fsi__fl_impl *im = (const fsi__fl_impl *)s->impl;
    const fsi_box3 box = fsi__fl_box(s);
    int k, j, p, i;
    for (k = 0; k < bodies->bodies; k++) {
        const fsi__im_body *o = &bodies->body[k];
        const fsi_mesh *surface = fsi_elastic_surface(bodies->elastic, o->id);
        const int old = fsi__fl_is_immersed(im, o->id);
        int wet = 0;
        for (p = o->first; p < o->first + o->count && !old; p++)
            if (!fsi__fl_is_in(box, x[p])) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, o->id, p,
                "body %d lies outside of the box", o->id);
        for (j = 0; j < bodies->bodies; j++) {
            const fsi__im_body *other = &bodies->body[j];
            const int both = old && fsi__fl_is_immersed(im, other->id);
            for (p = other->first; p < other->first + other->count && j != k && !both; p++)
                if (fsi__fl_is_in(surface->box, x[p]) && fsi_mesh_signed_distance(surface, x[p]) < 0)
                    return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, o->id, other->id, "body %d lies in body %d",
                        other->id, o->id);
        }
        for (i = 0; i < s->count && !old; i++)
            wet += fsi__fl_is_in(surface->box, s->position[i])
                && fsi_mesh_signed_distance(surface, s->position[i]) < 0;
        if (wet > 0) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, o->id, wet,
            "%d particles of liquid lie in body %d: immerse it before you fill, or remove them", wet, o->id);
    }
    return FSI_OK;
}

static fsi_status fsi__fl_check_elastic(fsi_flip *s, const char *fn, fsi_elastic *bodies)
{
    const fsi_box3 box = fsi__fl_box(s);
    int k;
    if (bodies->cookie != FSI__COOKIE('E', fsi_elastic)) return fsi__fail(s->context, FSI_ERROR_COOKIE, fn, -1, 0,
        "that is no elastic simulator of this version and precision");
    if (bodies->desc.dim != s->desc.dim) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, bodies->desc.dim,
        "the elastic simulator has dim %d, the liquid %d", bodies->desc.dim, s->desc.dim);

    /* A body larger than the box would be filled for ever. */
    for (k = 0; k < bodies->body_count; k++) {
        const fsi_mesh *surface = fsi_elastic_surface(bodies, bodies->bodies[k].id);
        if (surface && !(bodies->bodies[k].size <= 2 * (double)fsi_v3_norm(fsi_v3_sub(box.hi, box.lo))))
            return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, bodies->bodies[k].id, bodies->bodies[k].size,
                "body %d lies outside of the box: it is %g m large", bodies->bodies[k].id, bodies->bodies[k].size);
    }
    return FSI_OK;
}

/* Fields of faces that bodies need. */
static fsi_status fsi__fl_add_shares(fsi_flip *s)
{
    fsi__fl_impl *im = (fsi__fl_impl *)s->impl;
    int a;
    for (a = 0; a < s->desc.dim; a++) {
        const fsi_grid_place place = (fsi_grid_place)((int)FSI_FACES_X + a);
        FSI__TRY(fsi__fl_make_field(s, place, 1 / s->desc.density, &im->inverse_density[a]));
        FSI__TRY(fsi__fl_make_field(s, place, 0, &im->share[a]));
        FSI__TRY(fsi__fl_make_field(s, place, 0, &im->glued[a]));
        FSI__TRY(fsi__fl_make_field(s, place, 0, &im->heft[a]));
        FSI__TRY(fsi__fl_make_field(s, place, 0, &im->wet[a]));
        FSI__TRY(fsi__fl_make_field(s, place, 0, &im->hard[a]));
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_flip_immerse(fsi_flip *s, fsi_elastic *bodies)
{
    static const char fn[] = "fsi_flip_immerse";
    fsi__fl_impl *im;
    fsi__immersed fresh;
    fsi_vec3 *x;
    fsi_status status = FSI_OK;
    FSI__TRY(fsi__fl_check(s));
    im = (fsi__fl_impl *)s->impl;
    if (!bodies) {
        fsi__fl_take_out(im);
        return FSI_OK;
    }
    FSI__TRY(fsi__fl_check_elastic(s, fn, bodies));
    FSI__TRY(fsi__fl_add_shares(s));
    FSI__TRY(fsi__im_make(&fresh, s->context, fn, bodies, (double)s->spacing, (double)s->desc.density));

    /* Where they are. */
    x = (fsi_vec3 *)fsi__alloc(s->context, (size_t)fresh.count, sizeof *x);
    if (!x && fresh.count > 0) status = fsi__fail(s->context, FSI_ERROR_MEMORY, fn, -1, fresh.count,
        "no memory to look at %d particles", fresh.count);
    if (status == FSI_OK) fsi__im_places(&fresh, x);
    if (status == FSI_OK) status = fsi__fl_check_immersed(s, fn, &fresh, x);
    fsi__free(s->context, x, (size_t)fresh.count, sizeof *x);
    if (status == FSI_OK) status = fsi__im_add_walls(&fresh, fsi__fl_box(s), s->desc.open_side);
    if (status != FSI_OK) {
        fsi__im_free(&fresh);
        return status;
    }
    fsi__fl_take_out(im);
    fsi__im_adopt(&fresh);
    im->immersed = fresh;
    return FSI_OK;
}

FSI_API fsi_status fsi_flip_body_reaction(const fsi_flip *s, int body, fsi_vec3 *force, fsi_vec3 *torque)
{
    const fsi__fl_impl *im;
    int k;
    FSI__TRY(fsi__fl_check(s));
    im = (const fsi__fl_impl *)s->impl;
    for (k = 0; k < im->immersed.bodies; k++) {
        if (im->immersed.body[k].id != body) continue;
        if (force) *force = im->immersed.body[k].force;
        if (torque) *torque = im->immersed.body[k].torque;
        return FSI_OK;
    }
    return fsi__fail(s->context, FSI_ERROR_ARGUMENT, "fsi_flip_body_reaction", body, 0, "no body %d is immersed", body);
}

/* ---- >>obstacles ------------------------------------------------------------------------------------------------- */

FSI_API fsi_flip_obstacle_desc fsi_flip_default_obstacle_desc(void)
{
    fsi_flip_obstacle_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('o', fsi_flip_obstacle_desc);
    d.no_slip = 1;
    return d;
}

FSI_API fsi_status fsi_flip_add_obstacle(fsi_flip *s, const fsi_flip_obstacle_desc *desc, int *id)
{
    static const char fn[] = "fsi_flip_add_obstacle";
    fsi__fl_impl *im;
    fsi__fl_obstacle *o;
    int made;

    /* Check. */
    FSI__TRY(fsi__fl_check(s));
    FSI__TRY(fsi__check_filled(s->context, fn, desc, FSI__COOKIE('o', fsi_flip_obstacle_desc),
        "fsi_flip_default_obstacle_desc"));
    FSI__TRY(fsi__check_mesh(s->context, fn, desc->mesh, s->desc.dim, 1));
    if (desc->no_slip < 0 || desc->no_slip > 1) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, desc->no_slip,
        "desc.no_slip is %d, must be 0 or 1", desc->no_slip);
    im = (fsi__fl_impl *)s->impl;
    FSI__TRY(fsi__check_carrier(s->context, fn, desc->body, im->obstacles.next_id, s->desc.dim, 1));
    FSI__TRY(fsi__fl_check_shared(s, fn, desc->body, im->obstacles.next_id, im->obstacles.count));

    /* Make. */
    o = (fsi__fl_obstacle *)fsi__obstacles_begin(&im->obstacles, fn, desc->mesh, desc->body, 0xffffffffu, NULL);
    im->obstacle = (fsi__fl_obstacle *)im->obstacles.rows;
    if (!o) return FSI_ERROR_MEMORY;
    if (fsi_grid_faces_create(&o->faces, s->context) != FSI_OK)
        return fsi__obstacles_let_go(&im->obstacles, fn, desc->mesh);
    if (!desc->body) o->base.at.orientation = fsi_quat_identity();
    o->no_slip = desc->no_slip;
    made = fsi__obstacles_keep(&im->obstacles);
    if (id) *id = made;
    im->solids_changed = 1;
    return FSI_OK;
}

FSI_API fsi_status fsi_flip_add_mesh(fsi_flip *s, const fsi_mesh *mesh, int *id)
{
    fsi_flip_obstacle_desc d = fsi_flip_default_obstacle_desc();
    d.mesh = mesh;
    return fsi_flip_add_obstacle(s, &d, id);
}

static fsi_status fsi__fl_find_obstacle(const fsi_flip *s, const char *fn, int id, int *k)
{
    FSI__TRY(fsi__fl_check(s));
    *k = fsi__obstacles_find(&((const fsi__fl_impl *)s->impl)->obstacles, fn, id);
    return *k < 0 ? FSI_ERROR_ARGUMENT : FSI_OK;
}

FSI_API fsi_status fsi_flip_remove_obstacle(fsi_flip *s, int id)
{
    fsi__fl_impl *im;
    int k;
    FSI__TRY(fsi__fl_find_obstacle(s, "fsi_flip_remove_obstacle", id, &k));
    im = (fsi__fl_impl *)s->impl;
    fsi__fl_free_obstacle(s->context, &im->obstacle[k]);
    fsi__obstacles_remove(&im->obstacles, k);
    return FSI_OK;
}

FSI_API fsi_status fsi_flip_teleport_obstacle(fsi_flip *s, int id)
{
    static const char fn[] = "fsi_flip_teleport_obstacle";
    fsi__fl_impl *im;
    int k;
    FSI__TRY(fsi__fl_find_obstacle(s, fn, id, &k));
    im = (fsi__fl_impl *)s->impl;
    FSI__TRY(fsi__check_carrier(s->context, fn, im->obstacle[k].base.carrier, id, s->desc.dim, 1));
    fsi__obstacle_set(&im->obstacles, &im->obstacle[k].base);
    im->solids_changed = 1;
    return FSI_OK;
}

FSI_API fsi_status fsi_flip_obstacle_reaction(const fsi_flip *s, int id, fsi_vec3 *force, fsi_vec3 *torque)
{
    const fsi__fl_impl *im;
    int k = -1;
    if (force) *force = fsi_v3(0, 0, 0);
    if (torque) *torque = fsi_v3(0, 0, 0);
    FSI__TRY(fsi__fl_check(s));
    im = (const fsi__fl_impl *)s->impl;
    if (id != -1) FSI__TRY(fsi__fl_find_obstacle(s, "fsi_flip_obstacle_reaction", id, &k));
    if (force) *force = k >= 0 ? im->obstacle[k].base.force : im->wall_force;
    if (torque) *torque = k >= 0 ? im->obstacle[k].base.torque : im->wall_torque;
    return FSI_OK;
}

/* ---- >>questions ------------------------------------------------------------------------------------------------- */

/* Sum of weights around x; those of velocities and pressures. */
static double fsi__fl_sum_around(const fsi_flip *s, fsi_vec3 x, fsi__d3 *v, double *p)
{
    const double h = (double)s->desc.dx;
    double sum = 0;
    int i;
    *v = fsi__d3_zero();
    *p = 0;
    if (s->desc.dim == 2) x.z = 0;
    for (i = 0; i < s->count; i++) {
        const fsi__d3 d = fsi__d3_diff(s->position[i], x);
        const double q = 1 - fsi__d3_dot(d, d) / (h * h), w = q > 0 ? q * q * (double)s->mass[i] : 0;
        if (!(w > 0)) continue;
        sum += w;
        *v = fsi__d3_madd(*v, w, fsi__d3_of(s->velocity[i]));
        *p += w * (double)s->pressure[i];
    }
    return sum;
}

FSI_API fsi_vec3 fsi_flip_velocity_at(const fsi_flip *s, fsi_vec3 x)
{
    double sum = 0, p;
    fsi__d3 v = fsi__d3_zero();
    if (fsi__fl_check(s) == FSI_OK && fsi_v3_is_finite(x)) sum = fsi__fl_sum_around(s, x, &v, &p);
    return fsi__d3_real(fsi__d3_scale(v, sum > 0 ? 1 / sum : 0));
}

FSI_API fsi_real fsi_flip_pressure_at(const fsi_flip *s, fsi_vec3 x)
{
    double sum = 0, p = 0;
    fsi__d3 v;
    if (fsi__fl_check(s) == FSI_OK && fsi_v3_is_finite(x)) sum = fsi__fl_sum_around(s, x, &v, &p);
    return (fsi_real)(sum > 0 ? p / sum : 0);
}

static int fsi__fl_is_astray(const void *simulator, int i)
{
    const fsi_flip *s = (const fsi_flip *)simulator;
    const fsi_box3 box = fsi__fl_box(s);
    const fsi_vec3 x = s->position[i];
    if (!(x.x >= box.lo.x && x.x <= box.hi.x && x.y >= box.lo.y && x.y <= box.hi.y
        && (s->desc.dim == 2 || (x.z >= box.lo.z && x.z <= box.hi.z)))) return 1;
    return fsi__obstacles_hold(&((const fsi__fl_impl *)s->impl)->obstacles, 0xffffffffu, x);
}

FSI_API int fsi_flip_count_inside(const fsi_flip *s, int *first)
{
    if (first) *first = -1;
    return fsi__fl_check(s) == FSI_OK ? fsi__count_where(s->context, s->count, fsi__fl_is_astray, s, first) : 0;
}

FSI_API fsi_status fsi_flip_copy(const fsi_flip *s, fsi_flip_field field, fsi_vec3 origin, float *out, int stride)
{
    const fsi__fl_impl *im;
    fsi__export fields[7];
    FSI__TRY(fsi__fl_check(s));
    im = (const fsi__fl_impl *)s->impl;
    fields[0] = fsi__export_of_vectors(s->position);
    fields[1] = fsi__export_of_vectors(s->velocity);
    fields[2] = fsi__export_of_floats(s->pressure);
    fields[3] = fsi__export_of_floats(s->mass);
    fields[4] = fsi__export_of(s->attribute, NULL, s->desc.attribute_count, 1);
    fields[5] = fsi__export_of(s->aeration, NULL, s->desc.markers != 0, 1);
    fields[6] = fsi__export_of(NULL, s->marker, s->desc.markers != 0, 1);
    return fsi__particles_copy(&im->particles, "fsi_flip_copy", (int)field, fields, 7, origin, out, stride);
}

FSI_API void fsi_flip_debug_draw(const fsi_flip *s, const fsi_debug_draw *draw)
{
    if (fsi__fl_check(s) != FSI_OK || !draw) return;
    fsi__particles_draw(&((const fsi__fl_impl *)s->impl)->particles, fsi__export_of_floats(s->pressure), draw);
    fsi__obstacles_draw(&((const fsi__fl_impl *)s->impl)->obstacles, draw);
}

/* ---- >>state ----------------------------------------------------------------------------------------------------- */

static void fsi__fl_state(fsi__stream *st, void *simulator)
{
    fsi_flip *s = (fsi_flip *)simulator;
    fsi__fl_impl *im = (fsi__fl_impl *)s->impl;
    int k;
    fsi__bytes(st, &s->desc.origin, sizeof s->desc.origin);
    fsi__bytes(st, &s->time, sizeof s->time);
    fsi__bytes(st, &im->solids_changed, sizeof im->solids_changed);
    fsi__bytes(st, &im->particles.next, sizeof im->particles.next);
    fsi__sources_state(st, &im->sources);
    fsi__particles_state(st, &im->particles);
    for (k = 0; k < im->obstacles.count; k++) fsi__bytes(st, &im->obstacle[k].base.at, sizeof im->obstacle[k].base.at);
}

static fsi__liquid_head fsi__fl_make_head(const fsi_flip *s)
{
    const fsi__fl_impl *im = (const fsi__fl_impl *)s->impl;
    return fsi__particles_head(&im->particles, im->obstacles.count, im->sources.emitter_count, im->sources.sink_count);
}

static void fsi__fl_state_counted(fsi__stream *st, void *simulator)
{
    fsi__liquid_head head = fsi__fl_make_head((fsi_flip *)simulator);
    fsi__bytes(st, &head, sizeof head);
    fsi__fl_state(st, simulator);
}

FSI_API fsi_status fsi_flip_save(const fsi_flip *s, void *buffer, size_t capacity, size_t *size)
{
    FSI__TRY(fsi__fl_check(s));
    return fsi__save(s->context, s->cookie, fsi__fl_state_counted, (void *)(uintptr_t)s, buffer, capacity, size,
        "fsi_flip_save");
}

/* Everything finite and possible that must be? `st` stands behind the head, and returns there. */
static fsi_status fsi__fl_check_content(const fsi_flip *s, const fsi__liquid_head *head, fsi__stream *st)
{
    static const char fn[] = "fsi_flip_load";
    const size_t start = st->used;
    const fsi__fl_impl *im = (const fsi__fl_impl *)s->impl;
    fsi_vec3 origin = fsi_v3(0, 0, 0);
    double time = 0;
    int64_t changed = 0;
    size_t gradients;
    fsi_pose at;
    int k;
    memset(&at, 0, sizeof at);

    /* Origin, time, emitters, sinks and particles. */
    fsi__bytes(st, &origin, sizeof origin);
    fsi__bytes(st, &time, sizeof time);
    fsi__bytes(st, &changed, sizeof changed);
    if (memcmp(&origin, &s->desc.origin, sizeof origin) != 0) return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, -1, 0,
        "the state was saved at another desc.origin: shift there first");
    if (!(time >= 0 && time <= 1e60) || changed < 0 || changed > 1) return fsi__fail(s->context, FSI_ERROR_FORMAT, fn,
        -1, time, "the time of the state is %g, its mark of changed obstacles %d", time, (int)changed);
    FSI__TRY(fsi__sources_check_state(&im->sources, fn, st, &im->particles, &im->held, head->count,
        fsi_v3(0, 0, 0)));

    /* Gradients of velocities. */
    gradients = s->desc.transfer == FSI_FLIP_APIC ? (size_t)head->count * 9 : 0;
    for (; gradients > 0; gradients--) {
        float c = 0;
        fsi__bytes(st, &c, sizeof c);
        if (!(fabs((double)c) <= FSI__FL_FASTEST)) return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, -1, (double)c,
            "a gradient of velocity in the state is %g", (double)c);
    }

    /* Obstacles, at the end of the state. */
    st->used = st->capacity - (size_t)head->obstacles * sizeof(fsi_pose);
    for (k = 0; k < im->obstacles.count; k++) {
        fsi__bytes(st, &at, sizeof at);
        FSI__TRY(fsi__obstacle_check_pose(&im->obstacles, fn, k, at));
    }
    st->used = start;
    return fsi__obstacles_check_carriers(&im->obstacles, fn, 1);
}

FSI_API fsi_status fsi_flip_load(fsi_flip *s, const void *buffer, size_t size)
{
    static const char fn[] = "fsi_flip_load";
    fsi__fl_impl *im;
    fsi__liquid_head head, own;
    fsi__stream st;
    int k;

    /* Check all of the state before anything changes. */
    FSI__TRY(fsi__fl_check(s));
    im = (fsi__fl_impl *)s->impl;
    FSI__TRY(fsi__load_begin(s->context, s->cookie, buffer, size, &st, fn));
    memset(&head, 0, sizeof head);
    own = fsi__fl_make_head(s);
    fsi__bytes(&st, &head, sizeof head);
    FSI__TRY(fsi__particles_check_head(&im->particles, fn, &head, &own, sizeof(fsi_vec3) + sizeof(double)
        + 2 * sizeof(uint64_t) + (size_t)own.obstacles * sizeof(fsi_pose) + fsi__sources_state_size(&im->sources),
        &st));
    if (s->desc.max_particles > 0 && head.count > s->desc.max_particles)
        return fsi__fail(s->context, FSI_ERROR_LIMIT, fn, -1, (double)head.count,
            "the state holds %d particles, desc.max_particles is %d", (int)head.count, s->desc.max_particles);
    FSI__TRY(fsi__fl_check_content(s, &head, &st));

    /* Take it. */
    FSI__TRY(fsi__particles_reserve(&im->particles, fn, (int)head.count));
    s->count = (int)head.count;
    fsi__fl_state(&st, s);
    for (k = 0; k < s->count; k++) im->found_pressure[k] = 0;
    if (im->marker && s->count > 0) {
        memset(im->marker, FSI_FLIP_LIQUID, (size_t)s->count);
        memset(im->aeration, 0, (size_t)s->count * sizeof *im->aeration);
    }
    for (k = 0; k < im->obstacles.count; k++)
        fsi__obstacle_load(&im->obstacles, &im->obstacle[k].base, 1e-3 * (double)s->desc.dx);
    return FSI_OK;
}

FSI_API uint64_t fsi_flip_hash(const fsi_flip *s)
{
    return fsi__fl_check(s) == FSI_OK ? fsi__state_hash(fsi__fl_state_counted, (void *)(uintptr_t)s) : 0;
}

FSI__COLD_END

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
