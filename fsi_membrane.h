/* fsi_membrane.h - liquid held by its surface: a thin membrane with tension and a grid of liquid, solved together.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_membrane.h"
         #include "fsi_membrane.h"

   A CUBE OF WATER GETS ROUND
      fsi_vec3 x[8];
      const int faces[36] = { 0,2,1, 1,2,3, 4,5,6, 5,7,6, 0,1,4, 1,5,4, 2,6,3, 3,6,7, 0,4,2, 2,4,6, 1,3,5, 3,7,5 };
      fsi_membrane_desc d = fsi_membrane_default_desc();
      fsi_membrane *s;
      int k;
      for (k = 0; k < 8; k++)
          x[k] = fsi_v3(0.003f + 0.004f * (fsi_real)(k & 1), 0.003f + 0.004f * (fsi_real)(k >> 1 & 1),
              0.003f + 0.004f * (fsi_real)(k >> 2 & 1));
      d.n[0] = d.n[1] = d.n[2] = 20;
      d.dx = 0.0005f;                                   // a box of 1 cm
      d.gravity = fsi_v3(0, 0, 0);
      d.vertices = x;
      d.vertex_count = 8;
      d.elements = faces;
      d.element_count = 12;
      if (fsi_membrane_create(&s, &d) != FSI_OK) return 1;
      for (k = 0; k < 30; k++)
          if (fsi_membrane_step(s, 0.001f) != FSI_OK) { puts(fsi_membrane_error(s)->message); return 1; }
      printf("%g mm^2 of surface\n", 1e6 * s->front->stats.area);
      fsi_membrane_destroy(s);

   WHAT IS IN HERE (search for >>)
      >>desc           fsi_membrane_desc: box, liquid, its surface at first
      >>membrane       fsi_membrane, which you read: surface, velocities, pressure, stats
      >>state          save, load, hash, debug draw
   fsi_membrane_rows.h finds which vertices of the surface move which faces of the grid. docs/membrane.md derives it.
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth: tension stays N/m.
   PRECISION: state in fsi_real; masses, matrices and sums in double. Recommended: double.

   HOW
      Ruan, Zhu, Sugimoto, Batty and Grinspun (Solid-Fluid Interaction with Surface-Tension-Dominant Contact, 2021): the
      surface is a mesh of triangles (2D: segments), which has the tension, and the mass of a layer of liquid of
      thickness h. It is implicit, so that time steps need not follow its ripples. The grid has the liquid's velocities
      and pressure. Faces of the grid between liquid and air move as the surface around them does; the pressure that
      keeps the liquid's volume is found for liquid and surface in one system. Vertices of the surface that lie on a
      rigid body move with it: liquid, surface and bodies (desc.world) are solved together.

   WHAT IT DOES NOT DO
      Trees of links. Surfactants. Viscosity.
      Air has no mass and no pressure: bubbles collapse.
*/
#ifndef FSI_MEMBRANE_H
#define FSI_MEMBRANE_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_membrane_rows.h"
#include "fsi_pressure.h"
#include "fsi_rigid.h"
#include "fsi_solve.h"

/* ---- >>desc ------------------------------------------------------------------------------------------------------ */

/* How to make a simulator. Start from fsi_membrane_default_desc(). Arrays are copied. */
typedef struct fsi_membrane_desc {
    uint32_t cookie;
    fsi_context *context;        /* default NULL: malloc, serial or OpenMP, no clock */
    int dim;                     /* 3 (default) or 2 (z = 0) */
    int n[3];                    /* cells of the box along each axis, 2 to 4096; default 64; 2D: n[2] is ignored */
    fsi_real dx;                 /* edge of a cell [m]; default 1.0/64; edges of the surface are about dx/2 */
    fsi_vec3 origin;             /* lower corner of the box [m]; default 0 */
    fsi_real density;            /* 1e-6 to 1e6 [kg/m^3]; default 1000 */
    fsi_real surface_tension;    /* sigma, > 0, at most 1e6 [N/m]; default 0.0728, water */
    fsi_vec3 gravity;            /* [m/s^2]; default (0, 0, -9.81); 2D: set y */
    const fsi_vec3 *vertices;    /* vertex_count [m], in the box: the liquid's surface, as fsi_front_desc has it. Where
                                    liquid touches walls of the box, these parts of its surface lie on them */
    int vertex_count;
    const int *elements;         /* dim * element_count; edges may be of any length: they are cut and merged at once */
    int element_count;
    const fsi_real *attributes;  /* vertex_count * attribute_count; default NULL: 0 */
    int attribute_count;         /* numbers of your own that each vertex carries: amounts, whose sums remeshing keeps; 0
                                    to 64; default 0 */
    fsi_real thickness;          /* h of the membrane [m], 0.001 to 100 dx; default 0: dx/2. Above dx, the liquid is
                                    heavier by rho (h - dx) a unit of its surface */
    int whole_faces;             /* 0 (default): faces between liquid and air have the mass of the liquid there, less h,
                                    which the membrane has: liquid and membrane together weigh what the liquid does. 1:
                                    whole ones, as in the paper: everything weighs more near the surface */
    fsi_real damping;            /* b of the tension's time lag, 0 to 1: 0 damps nothing, 1 ripples that a step cannot
                                    follow; default 0.25 */
    fsi_real wall_angle[6];      /* contact angles, in the liquid, at the walls x low, x high, y low ... of the box, 10
                                    to 180 [degrees]; default 90 */
    fsi_real line_friction;      /* zeta: a line that slides along a wall or body at speed v is held back by zeta v
                                    a length [Pa s], 0 to 1e6; default 0: sqrt(rho sigma dx), the resistance of ripples
                                    as long as a cell; a tiny one (1e-9) lets lines slide freely */
    fsi_real box;                /* edge of the box about a face whose surface moves that face [dx], 1 to 4; default
                                    2 */
    int topology;                /* 1: liquid that meets merges, necks pinch off (fsi_front_desc.topology); default 0 */
    fsi_front_ask *ask;          /* as in fsi_front_desc; default NULL */
    void *ask_user;
    fsi_real cfl;                /* substeps are chosen so that nothing moves farther than cfl * dx in one, 0.05 to 2;
                                    default 0.25: half an edge of the surface */
    int max_substeps;            /* of one call; default 50. Where more are needed they are longer (stats.degraded) */
    double pressure_tolerance;   /* largest divergence left over the largest of the right side; default 1e-8 (float:
                                    1e-6) */
    int pressure_iters;          /* of one solve at most; what they reach is taken (stats.degraded); default 200 */
    fsi_rigid *world;            /* bodies that float: steps of the liquid advance it, so do not call fsi_rigid_step.
                                    Not owned, must live as long as it stands here. Its bodies are outside of the liquid
                                    when it is made, in air: liquid meets them with its surface. No trees; not between
                                    fsi_rigid_begin_step and end_step; desc.substeps is not used; default NULL */
    const fsi_real *body_angle;  /* contact angle, in the liquid, at each body of world: world->count numbers (more
                                    once bodies are added), 10 to 180 [degrees], read in each step. Not owned; default
                                    NULL: 180 */
    int reserve;                 /* elements to make room for; default 0 */
} fsi_membrane_desc;
FSI_API fsi_membrane_desc fsi_membrane_default_desc(void); /* fills every field */

/* ---- >>membrane -------------------------------------------------------------------------------------------------- */

/* What the last successful step did. Sums over its substeps unless said otherwise. */
typedef struct fsi_membrane_stats {
    int substeps;
    int degraded;                /* substeps longer than cfl asks for, solves that pressure_iters ended */
    double substep;              /* the last one [s] */
    double cfl;                  /* largest displacement in a substep [dx] */
    int blocks, liquid_cells, faces; /* last substep: of the grid; faces between liquid and air */
    int iters;                   /* of the pressure */
    double divergence;           /* left, largest [1/s] */
    int responses;               /* solves with the matrix of the membrane */
    int joined;                  /* components of vertices that no face of their axis moves: they take part in the
                                    nearest face of the liquid, last substep */
    int contacts;                /* vertices that lie on bodies of the world, at the end */
    int captured, released;      /* vertices that came to lie on bodies; that these would have had to pull: let go */
    double depth;                /* deepest vertex in a body, at the end [m] */
    double body_impulse[3];      /* on bodies of the world, in the solves [N s] */
    int vertices, elements, pieces; /* of the surface, at the end */
    double volume;               /* enclosed by the surface [m^3; 2D: m^2] */
    double drift;                /* largest volume by which motion changed a piece in a substep [m^3; 2D: m^2] */
    double owed;                 /* of that what has not been given back yet, likewise */
    double momentum[3];          /* of liquid and membrane, at the end [kg m/s] */
    double wall_impulse[3];      /* by walls of the box on the liquid, in the solves [N s] */
    double moved_momentum[3];    /* by which carrying velocities along and remeshing changed the momentum */
    double kinetic_energy, surface_energy, potential_energy; /* [J]; surface: sigma its area, -sigma cos(angle) that of
                                    wetted walls and bodies; potential: -m g.x, zero at the origin */
    double mass[3];              /* of liquid and membrane, as the solve has it, along each axis: within some percent
                                    that of the volume [kg; 2D: kg/m] */
    double max_speed;            /* [m/s], of faces and vertices at the end */
    double seconds_move, seconds_rows, seconds_factor, seconds_pressure, seconds_other; /* by the context's clock */
    size_t bytes;                /* allocated through its context */
    long long allocs;            /* allocations of the context so far */
} fsi_membrane_stats;

/* Liquid and its membrane. Read everything; write only what is marked. */
typedef struct fsi_membrane {
    uint32_t cookie;
    fsi_context *context;        /* never NULL: the desc's, or one of its own */
    fsi_membrane_desc desc;      /* as given, or set since; its arrays are NULL */
    int dim;
    fsi_front *front;            /* the membrane: its position, velocity and attribute may be written between steps; who
                                    changes volumes calls fsi_front_measure. Its flags are the walls that a vertex is
                                    held to */
    fsi_grid *grid;
    fsi_field *u[3];             /* velocities of the liquid at faces of liquid cells, 0 elsewhere [m/s]; values may be
                                    written between steps. 2D: u[2] is NULL */
    const fsi_field *pressure;   /* at cells [Pa], of the last substep. Not saved */
    double time;                 /* seconds simulated */
    fsi_membrane_stats stats;
    void *impl;
} fsi_membrane;

/* Liquid at rest in the surface that is given. Errors, each naming the culprit: COOKIE; ARGUMENT and NAN (a field, a
   vertex outside of the box); LIMIT; MESH (as fsi_front_create; liquid that has no volume is none); MEMORY. *out is
   NULL then. */
FSI_API fsi_status fsi_membrane_create(fsi_membrane **out, const fsi_membrane_desc *desc);
FSI_API void fsi_membrane_destroy(fsi_membrane *s); /* NULL is fine */
/* Another desc between steps: density, surface_tension, gravity, thickness, whole_faces, damping, wall_angle,
   line_friction, box, topology, ask, cfl, max_substeps, pressure_tolerance, pressure_iters, world and body_angle may
   differ; the arrays of the surface are not read. Errors: COOKIE, ARGUMENT, NAN; nothing has changed then. */
FSI_API fsi_status fsi_membrane_set_desc(fsi_membrane *s, const fsi_membrane_desc *desc);
/* The velocity at x [m/s]; in 2D z is not read. Called for each vertex and face, from the calling thread. */
typedef fsi_vec3 fsi_membrane_velocity_fn(void *user, fsi_vec3 x);
/* Sets the velocity [m/s] of all liquid and of the membrane to that at each place; it is made divergence-free by the
   next step. Errors: COOKIE, ARGUMENT, NAN (names the vertex or entry), MEMORY; nothing has changed then. */
FSI_API fsi_status fsi_membrane_set_velocity(fsi_membrane *s, fsi_membrane_velocity_fn *velocity, void *user);
/* Advances by dt seconds, desc.world too; dt = 0 only looks: fills stats. Errors: COOKIE; ARGUMENT (dt; desc.world has
   trees, or is between begin and end; desc.body_angle); NAN; MESH (the surface crosses itself, and desc.topology does
   not prevent it; a body is in the liquid without a surface around it: names it); LIMIT (a vertex or body too far away,
   a surface of more than 2^31 numbers); MEMORY; those of fsi_rigid_step. Nothing has changed then, in desc.world
   neither. */
FSI_API fsi_status fsi_membrane_step(fsi_membrane *s, fsi_real dt);
/* A length of step that is one substep now [s]; 0 on errors. */
FSI_API fsi_real fsi_membrane_suggest_dt(const fsi_membrane *s);
/* Of the liquid at x: velocity between faces (0 far from it) [m/s], pressure of the cell [Pa]; 0 on errors. */
FSI_API fsi_vec3 fsi_membrane_velocity_at(const fsi_membrane *s, fsi_vec3 x);
FSI_API fsi_real fsi_membrane_pressure_at(const fsi_membrane *s, fsi_vec3 x);
/* The context's last failure; NULL: no simulator. */
FSI_API const fsi_error *fsi_membrane_error(const fsi_membrane *s);

/* ---- >>state ----------------------------------------------------------------------------------------------------- */

/* Writes the state; buffer NULL: only *size. Errors: COOKIE, ARGUMENT, LIMIT (capacity). */
FSI_API fsi_status fsi_membrane_save(const fsi_membrane *s, void *buffer, size_t capacity, size_t *size);
/* Takes a state that a simulator with the same dim, n, dx, origin and attribute_count wrote. Errors: COOKIE, ARGUMENT,
   FORMAT, MESH, LIMIT, MEMORY; nothing has changed then. desc stays as it is, pressure too until the next step. The
   bodies of desc.world and their angles are not in the state: load the world beside it, and put desc.body_angle
   back. */
FSI_API fsi_status fsi_membrane_load(fsi_membrane *s, const void *buffer, size_t size);
/* Hash of the state. Equal after equal steps, for any number of threads. */
FSI_API uint64_t fsi_membrane_hash(const fsi_membrane *s);
/* Edges of the membrane. */
FSI_API void fsi_membrane_debug_draw(const fsi_membrane *s, const fsi_debug_draw *draw);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_MEMBRANE_H */

/* ==== Stop here if you only want the API. ====================================================================== */

/* A step, names without their fsi__mb_:

      begin             a copy of what there is, for a step that fails; which cells are liquid
      for each substep, of surface x, v and liquid u:
         extend         u, into the air; vertices on walls, where there is no tension, move with it
         carry          u* = u along u; then gravity
         move           x += dt v, no farther than walls; touch_walls: where elements lie on them; mend_walls
                        fsi_front_step: remeshing, topology, and the volume that the motion changed
                        bodies go on by their velocities, with what lies on them; vertices in a body are put onto it
         locate         which cells are liquid now; rows of W; masses; which vertices lie on which body
         join           vertices that no face moves along an axis, to the nearest face of the liquid: their momentum
                        is shared
         assemble       C = M + D + dt^2 K, by axis;  D = diag(W^T M_a 1);
                        r = (M + D) v + dt f + (1 - b) dt^2 K v + W^T M_a (u* - W v)
                        f: tension, and by what the pressure at rest acts otherwise on vertices than through faces;
                        modes of bodies
         solve          pressure p:  divergence of u = u* - dt/rho grad p in the liquid, u = W C^-1 (r + W^T j) at the
                        surface, is 0; j is the impulse of p there (fsi_pressure.h: a solid that yields)
         write_back     v = C^-1 (r + W^T j); what bodies got; vertices that these would have to pull are let go
         advance_bodies bodies get it, collide, and go to where the world has them; lines slide on them
      commit            or, where something failed, everything as it was                                        */

#ifdef FSI_IMPLEMENTATION
#undef FSI_MEMBRANE_IMPLEMENTATION
#define FSI_MEMBRANE_IMPLEMENTATION
#endif
#ifdef FSI_MEMBRANE_IMPLEMENTATION
#ifndef FSI_MEMBRANE_IMPLEMENTATION_DONE
#define FSI_MEMBRANE_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_membrane_rows.h"
#include "fsi_pressure.h"
#include "fsi_rigid.h"
#include "fsi_solve.h"

FSI__STRICT_BEGIN

#define FSI__MB_SNAP 1e-3      /* [dx] nearer to a wall, a vertex lies on it */
#define FSI__MB_STEEPEST 10.0  /* of a cotangent: the stiffness of slivers is scaled down to it */
#define FSI__MB_LIGHTEST 0.1   /* the least mass of a vertex [rho h (dx/2)^(d-1)]; of it, the least along an axis */
#define FSI__MB_ROUNDS 20      /* of mending the mesh on walls, at most */
#define FSI__MB_CLOSE 0.1      /* [dx] nearer to its body, a vertex that lies on it still does */
#define FSI__MB_TOUCH 1e-6     /* [dx] deeper in a body, a vertex lies on it */
#define FSI__MB_WINDOW 2       /* faces around a vertex where it looks for one of the liquid */
/* Of `held`, beside bits 1, 2, 4: held along x, y, z. */
enum {
    FSI__MB_IDLE = 8,          /* has no tension: all its elements lie on walls */
    FSI__MB_REACHED = 16,      /* and 32, 64: rows of faces of x, y, z have it */
    FSI__MB_LINE = 128         /* some of its elements lie on walls */
};

/* A body of the world in a step. Six numbers: velocity of its centre of mass, angular velocity. */
typedef struct fsi__mb_body {
    int alive, free, touched;  /* 1: there is one; 1: the solve moves it; vertices that lie on it */
    int slot;                  /* place of its modes, -1: none */
    int wetting;               /* 1: its angle is below 180 degrees: lines slide on it, and it may pull the liquid */
    double cosine;             /* of its angle */
    double reach, mass;        /* farthest point from the centre [m]; [kg] */
    double inertia[9];         /* about the centre, world axes */
    fsi_pose pose, to;         /* of the centre, at which the solve finds it; next */
    double before[6], after[6];/* without the liquid; as solved */
    fsi__d3 impulse, moment;   /* of liquid and membrane, of the substep */
} fsi__mb_body;

typedef struct fsi__mb_impl {
    fsi_context own_context;
    fsi_front *backup;         /* the front as the running step found it */
    fsi_field *work[3], *kept[3]; /* u of the running substep; as the running step found it */
    fsi_field *pressure;
    fsi_front_lines *lines;
    fsi_pressure *solver;
    fsi_grid_faces *faces;     /* of rows */
    fsi_ldlt *factor[3];
    fsi__mb_rows rows;
    fsi__arena surface, sheet, blocks, places; /* of vertices and elements; of faces; of entries; of places of blocks */
    fsi__arena bodies, modes;  /* of bodies; of their modes */
} fsi__mb_impl;

/* A piece of liquid, and the pressure p(x) = p_0 + s rho g.x that it would have at rest. g: dV/dx of its vertices. */
typedef struct fsi__mb_piece {
    fsi__d3 force;             /* sum of f; then c, which makes this sum 0 */
    double spread[9];          /* sum of g n^T */
    double surface, heavy;     /* p_0 [Pa]; s: 1: it lies on a wall or a body, which bears it; 0: it flies */
    double pull, weight;       /* sums of -(f + s rho (g.x) g).g and of g.g, whose quotient is p_0 */
} fsi__mb_piece;

/* One step. */
typedef struct fsi__mb_run {
    fsi_membrane *s;
    fsi__mb_impl *im;
    const char *fn;
    double dt, h, mass;        /* of the substep [s]; thickness [m]; rho dx^d [kg] */
    double friction;           /* of lines [Pa s] */
    double left;               /* of the step, this substep included [s] */
    /* Of bodies. */
    fsi_rigid *world;
    int begun;                 /* 1: the world's step is */
    fsi__mb_body *body;        /* world->count */
    int slots, unknowns;       /* bodies that vertices lie on; their coordinates */
    int wetters;               /* vertices on bodies with angles below 180 degrees */
    double *mode;              /* of each slot, fsi__mb_modes of them: a number for each vertex */
    double *whole, *schur, *reduced; /* unknowns^2: Schur complement, its factor; unknowns: right side, velocities */
    fsi_membrane_stats stats;
    /* Of vertices. */
    unsigned char *held;
    double *m, *own[3], *lump[3], *v[3], *r[3];
    double *b, *y;             /* of C y = b, of one axis; elsewhere two numbers of each vertex */
    double *load[3], *answer[3]; /* right sides and solutions */
    double *given, *solved;    /* the same of one axis, by rows of the matrix */
    int *touch;                /* body that it lies on, -1: none */
    double *drag;              /* dt zeta length of lines */
    double *slide;             /* three numbers: way of a line on a body in this substep [m] */
    double *f, *g, *rim;       /* three numbers each: force of tension; dV/dx; d(wetted area of walls)/dx */
    fsi__mb_piece *piece;
    int *piece_of;             /* of each vertex */
    int lines;                 /* vertices on lines on walls */
    double balance[3];         /* sum of what it adds to f */
    /* Of elements. */
    unsigned char *skip;       /* 1: lies on a wall */
    unsigned char *wet;        /* 1: lies on a body, all its corners do: it has no tension */
    fsi_real *weight;          /* cot/2 of each edge; 2D: 1/length */
    /* The matrix, its lower triangle: rows of the vertices with tension. */
    int rows, *row, *vertex;   /* how many; row of each vertex, -1: it has no tension; vertex of each row */
    int *start, *col;
    double *stiff, *value;     /* dt^2 K; C of one axis */
    /* Of faces between liquid and air. */
    double *heft, *wind, *found, *push; /* M_a; u*; a product; impulses */
    fsi_real *velocity, *yielding;
    /* Of entries of the grid. */
    unsigned char *cell, *known[3];
    double *sum_m, *sum_p;
} fsi__mb_run;

static fsi_status fsi__mb_check(const fsi_membrane *s)
{
    if (!s) return FSI_ERROR_ARGUMENT;
    return s->cookie == FSI__COOKIE('M', fsi_membrane) ? FSI_OK : FSI_ERROR_COOKIE;
}

FSI_FN fsi__d3 fsi__mb_gravity(const fsi_membrane *s) { return fsi__d3_of(s->desc.gravity); }

/* Room in an arena for what `take` takes. Error: MEMORY. */
static fsi_status fsi__mb_take(fsi__mb_run *run, fsi__arena *arena, void (*take)(fsi__mb_run *, fsi__arena *))
{
    fsi__arena measure;
    memset(&measure, 0, sizeof measure);
    take(run, &measure);
    if (!fsi__arena_room(run->s->context, arena, measure.used))
        return fsi__fail(run->s->context, FSI_ERROR_MEMORY, run->fn, -1, (double)measure.used,
            "no memory for the membrane");
    take(run, arena);
    return FSI_OK;
}

/* ---- where liquid is --------------------------------------------------------------------------------------------- */

/* Blocks around all cells that are inside, beside those that exist: a liquid moves less than a block in a substep. */
static fsi_status fsi__mb_fit_blocks(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    fsi_grid *g = s->grid;
    const int *n = run->im->lines->n;
    const size_t places = fsi__grid_places(g);
    unsigned char *wanted;
    int i, j, k, a, b, c, more = 0;
    if (!fsi__arena_room(s->context, &run->im->places, places))
        return fsi__fail(s->context, FSI_ERROR_MEMORY, run->fn, -1, (double)places, "no memory for blocks");
    wanted = run->im->places.base;
    for (i = 0; i < (int)places; i++) wanted[i] = g->index[i] >= 0;

    /* Blocks beside one with a cell inside. */
    for (k = 0; k < n[2]; k++)
        for (j = 0; j < n[1]; j++)
            for (i = 0; i < n[0]; i++) {
                if (!run->im->lines->inside[fsi__mb_cell(n, i, j, k)]) continue;
                for (c = k / 8 - (s->dim == 3); c <= k / 8 + (s->dim == 3); c++)
                    for (b = j / 8 - 1; b <= j / 8 + 1; b++)
                        for (a = i / 8 - 1; a <= i / 8 + 1; a++) {
                            const int p = a + g->blocks[0] * (b + g->blocks[1] * c);
                            if (a < 0 || b < 0 || c < 0 || a >= g->blocks[0] || b >= g->blocks[1]
                                || c >= g->blocks[2]) continue;
                            more |= !wanted[p];
                            wanted[p] = 1;
                        }
                i |= 7; /* the rest of this row of the block */
            }
    return more ? fsi_grid_set_blocks(g, wanted) : FSI_OK;
}

static void fsi__mb_take_entries(fsi__mb_run *run, fsi__arena *a)
{
    const size_t n = (size_t)run->s->grid->block_count * (size_t)run->s->grid->block_cells;
    int axis;
    run->cell = (unsigned char *)fsi__take(a, n, 1);
    for (axis = 0; axis < 3; axis++) run->known[axis] = (unsigned char *)fsi__take(a, n, 1);
    run->sum_m = (double *)fsi__take(a, n, sizeof(double));
    run->sum_p = (double *)fsi__take(a, n, sizeof(double));
}

static void fsi__mb_mark(void *arg, int chunk, int begin, int end)
{
    fsi__mb_run *run = (fsi__mb_run *)arg;
    const fsi_grid *g = run->s->grid;
    const int *n = run->im->lines->n, cells = g->block_cells;
    const unsigned char *inside = run->im->lines->inside;
    int b, c, a, corner[3], at[3];
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_grid_corner(g, b, corner);
        for (c = 0; c < cells; c++) {
            const size_t e = (size_t)b * (size_t)cells + (size_t)c;
            size_t cell;
            int in;
            at[0] = corner[0] + (c & 7);
            at[1] = corner[1] + (c >> 3 & 7);
            at[2] = corner[2] + (c >> 6);
            in = at[0] < n[0] && at[1] < n[1] && at[2] < n[2];
            cell = fsi__mb_cell(n, at[0], at[1], at[2]);
            run->cell[e] = in && inside[cell] ? FSI_CELL_LIQUID : FSI_CELL_AIR;

            /* A face is known where a cell beside it is liquid. */
            for (a = 0; a < g->dim; a++) {
                const size_t step = a == 0 ? 1 : a == 1 ? (size_t)n[0] : (size_t)n[0] * (size_t)n[1];
                const int u = fsi__frl_u(a), v = fsi__frl_v(a);
                const int across = at[u] < n[u] && at[v] < n[v] && at[a] <= n[a];
                run->known[a][e] = across && ((at[a] < n[a] && inside[cell]) || (at[a] > 0 && inside[cell - step]));
            }
        }
    }
}

/* Cells that are liquid, and faces of these, by the lines. Room for entries. */
static fsi_status fsi__mb_mark_cells(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    fsi__arena measure;
    memset(&measure, 0, sizeof measure);
    FSI__TRY(fsi__mb_fit_blocks(run));
    fsi__mb_take_entries(run, &measure);
    if (!fsi__arena_room(s->context, &run->im->blocks, measure.used))
        return fsi__fail(s->context, FSI_ERROR_MEMORY, run->fn, -1, (double)measure.used, "no memory for blocks");
    fsi__mb_take_entries(run, &run->im->blocks);
    fsi__parallel_work(s->context, s->grid->block_count, 4, 3.0 * s->grid->block_count * s->grid->block_cells,
        fsi__mb_mark, run);
    return FSI_OK;
}

/* ---- walls ------------------------------------------------------------------------------------------------------- */

/* The wall of a side 0 .. 5 (x-, x+, y- ...). */
static double fsi__mb_wall(const fsi_membrane *s, int side)
{
    const fsi_box3 *w = &s->front->desc.walls;
    return (double)fsi__axis(side & 1 ? w->hi : w->lo, side >> 1);
}

/* Walls that x lies on, or behind; it is put onto them. */
static uint32_t fsi__mb_at_walls(const fsi_membrane *s, fsi_vec3 *x)
{
    const double snap = FSI__MB_SNAP * (double)s->desc.dx;
    fsi_real at[3];
    uint32_t bits = 0;
    int side;
    at[0] = x->x;
    at[1] = x->y;
    at[2] = x->z;
    for (side = 0; side < 2 * s->dim; side++) {
        const double wall = fsi__mb_wall(s, side), t = (double)at[side >> 1];
        if (side & 1 ? t < wall - snap : t > wall + snap) continue;
        at[side >> 1] = (fsi_real)wall;
        bits |= (uint32_t)1 << side;
    }
    *x = fsi_v3(at[0], at[1], at[2]);
    return bits;
}

/* An element lies on a wall where all its corners do: it has no tension and no mass, and its vertices slide along that
   wall. All others are free, those too that only touch a wall. */
static void fsi__mb_touch_walls(const fsi_membrane *s, unsigned char *skip)
{
    fsi_front *f = s->front;
    const uint32_t all = FSI_FRONT_WALL_X0 | FSI_FRONT_WALL_X1 | FSI_FRONT_WALL_Y0 | FSI_FRONT_WALL_Y1
        | FSI_FRONT_WALL_Z0 | FSI_FRONT_WALL_Z1;
    int i, t, c;
    for (i = 0; i < f->vertex_count; i++) /* 8 bits higher: walls that it lies on, alone or not */
        f->flags[i] = (f->flags[i] & ~all) | fsi__mb_at_walls(s, &f->position[i]) << 8;
    for (t = 0; t < f->element_count; t++) {
        const int *corner = f->elements + s->dim * t;
        uint32_t shared = all;
        for (c = 0; c < s->dim; c++) shared &= f->flags[corner[c]] >> 8;
        for (c = 0; c < s->dim; c++) f->flags[corner[c]] |= shared;
        if (skip) skip[t] = shared != 0;
    }
    for (i = 0; i < f->vertex_count; i++) f->flags[i] &= all | (uint32_t)FSI_FRONT_FIXED;
}

/* ---- motion ------------------------------------------------------------------------------------------------------ */

/* Walls that an element lies on. */
static uint32_t fsi__mb_walls_of(const fsi_front *f, int t)
{
    const int *corner = f->elements + f->dim * t;
    uint32_t shared = f->flags[corner[0]] & f->flags[corner[1]];
    if (f->dim == 3) shared &= f->flags[corner[2]];
    return shared & 63;
}

/* Of the walls of an element the first; what an area of it that liquid wets costs, -sigma cos(theta) by Young's law
   [J/m^2]. */
static int fsi__mb_first_wall(uint32_t walls)
{
    int side = 0;
    while (!(walls >> side & 1)) side++;
    return side;
}
static double fsi__mb_wall_energy(const fsi_membrane *s, int side)
{
    return -(double)s->desc.surface_tension * fsi_cos((double)s->desc.wall_angle[side] * FSI_PI / 180);
}

/* Marks vertices all of whose elements lie on walls by FSI_FRONT_YOURS. */
static void fsi__mb_mark_idle(fsi_front *f)
{
    int i, t, c;
    for (i = 0; i < f->vertex_count; i++) f->flags[i] |= FSI_FRONT_YOURS;
    for (t = 0; t < f->element_count; t++)
        for (c = 0; c < f->dim && !fsi__mb_walls_of(f, t); c++)
            f->flags[f->elements[f->dim * t + c]] &= ~(uint32_t)FSI_FRONT_YOURS;
}

/* u into the air, as far as a substep carries it. Vertices that have no tension move with it. */
static fsi_status fsi__mb_extend(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    fsi_front *f = s->front;
    const int layers = 3 + fsi__clamp_int((int)ceil(run->stats.cfl), 100);
    int a, i;
    for (a = 0; a < s->dim; a++) FSI__TRY(fsi_grid_extrapolate(s->u[a], run->known[a], layers));
    fsi__mb_mark_idle(f);
    for (i = 0; i < f->vertex_count; i++) {
        if (f->flags[i] & FSI_FRONT_YOURS) f->velocity[i] = fsi_grid_sample_velocity(s->u, f->position[i]);
        f->flags[i] &= ~(uint32_t)FSI_FRONT_YOURS;
    }
    return FSI_OK;
}

static fsi_status fsi__mb_carry(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    const unsigned char *where[3];
    int a;
    for (a = 0; a < 3; a++) where[a] = a < s->dim ? run->known[a] : NULL;
    return fsi_grid_advect_velocity(s->u, s->u, (fsi_real)run->dt, FSI_ADVECT_CUBIC, 2, where, run->im->work);
}

/* The area of an element on a wall, in 3D twice that, seen from within the liquid: negative where it is turned over. */
static double fsi__mb_wall_area(const fsi_front *f, int t, uint32_t walls)
{
    const int *corner = f->elements + f->dim * t;
    const fsi__d3 d = fsi__d3_diff(f->position[corner[1]], f->position[corner[0]]);
    const int side = fsi__mb_first_wall(walls);
    const double n = fsi__d3_axis(f->dim == 2 ? fsi__d3_make(-d.y, d.x, 0)
        : fsi__d3_cross(d, fsi__d3_diff(f->position[corner[2]], f->position[corner[0]])), side >> 1);
    return side & 1 ? n : -n;
}

/* One round of mending: idle vertices of elements on walls that are thin or turned over go to the mean of their
   neighbours, along these walls. Returns how many elements there are. */
static int fsi__mb_mend_round(fsi__mb_run *run, double least)
{
    fsi_front *f = run->s->front;
    int i, t, c, e, bad = 0;
    memset(run->f, 0, 3 * (size_t)f->vertex_count * sizeof(double));
    for (i = 0; i < f->vertex_count; i++) run->b[i] = run->y[i] = 0; /* neighbours; to be moved */
    for (t = 0; t < f->element_count; t++) {
        const uint32_t walls = fsi__mb_walls_of(f, t);
        if (!walls || fsi__mb_wall_area(f, t, walls) > least) continue;
        bad++;
        for (c = 0; c < f->dim; c++) run->y[f->elements[f->dim * t + c]] = 1;
    }

    /* Sums over neighbours, then their means. */
    for (t = 0; t < f->element_count && bad; t++)
        for (c = 0; c < f->dim; c++)
            for (e = 0; e < f->dim; e++) {
                i = f->elements[f->dim * t + c];
                if (e == c || !(run->y[i] > 0) || !(f->flags[i] & FSI_FRONT_YOURS)) continue;
                run->b[i]++;
                fsi__d3_put(run->f + 3 * i, fsi__d3_add(fsi__d3_at(run->f + 3 * i),
                    fsi__d3_of(f->position[f->elements[f->dim * t + e]])));
            }
    for (i = 0; i < f->vertex_count && bad; i++)
        if (run->b[i] > 0) { /* walls put it back along their axes */
            const fsi_vec3 to = fsi__d3_real(fsi__d3_over(fsi__d3_at(run->f + 3 * i), run->b[i]));
            const uint32_t w = f->flags[i];
            f->position[i] = fsi_v3(w & 3 ? f->position[i].x : to.x, w >> 2 & 3 ? f->position[i].y : to.y,
                w >> 4 & 3 ? f->position[i].z : to.z);
        }
    return bad;
}

/* Where a line slides over the vertices on the wall behind it, elements there would turn over. These vertices have no
   mass and no tension: where they are on their wall changes nothing but the mesh. */
static void fsi__mb_mend_walls(fsi__mb_run *run)
{
    fsi_front *f = run->s->front;
    const double length = (double)run->s->desc.dx / 2, least = 0.1 * (f->dim == 3 ? length * length : length);
    int round, i;
    fsi__mb_mark_idle(f);
    for (round = 0; round < FSI__MB_ROUNDS && fsi__mb_mend_round(run, least) > 0; round++) continue;
    for (i = 0; i < f->vertex_count; i++) f->flags[i] &= ~(uint32_t)FSI_FRONT_YOURS;
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

/* Hands the world's error on to the liquid's caller. */
static fsi_status fsi__mb_of_world(const fsi__mb_run *run, fsi_status status)
{
    if (status != FSI_OK && run->world->context != run->s->context)
        run->s->context->error = run->world->context->error;
    return status;
}

/* A vertex that lies on a body has FSI_FRONT_FIXED: remeshing leaves it where it is. */
FSI_FN int fsi__mb_is_held(const fsi_front *f, int i) { return (f->flags[i] & (uint32_t)FSI_FRONT_FIXED) != 0; }

static void fsi__mb_take_bodies(fsi__mb_run *run, fsi__arena *a)
{
    const size_t n = (size_t)run->world->count, k = 6 * n;
    run->body = (fsi__mb_body *)fsi__take(a, n + 1, sizeof *run->body);
    run->whole = (double *)fsi__take(a, k * k, sizeof(double));
    run->schur = (double *)fsi__take(a, k * k, sizeof(double));
    run->reduced = (double *)fsi__take(a, k, sizeof(double));
}

/* The bodies of the world, as it was published. Without a world no vertex lies on one. */
static fsi_status fsi__mb_find_bodies(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    fsi_rigid *w = run->world;
    int b, i;
    if (!w) {
        for (i = 0; i < s->front->vertex_count; i++) s->front->flags[i] &= ~(uint32_t)FSI_FRONT_FIXED;
        return FSI_OK;
    }
    if (w->tree_count > 0)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, run->fn, -1, w->tree_count,
            "desc.world has trees of links, which float in no liquid yet");
    if (fsi__rg_contacts_of(w).begun)
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, run->fn, -1, 0,
            "desc.world is between fsi_rigid_begin_step and fsi_rigid_end_step");

    /* Where each is. */
    FSI__TRY(fsi__mb_take(run, &run->im->bodies, fsi__mb_take_bodies));
    memset(run->body, 0, ((size_t)w->count + 1) * sizeof *run->body);
    for (b = 0; b < w->count; b++) {
        const double angle = s->desc.body_angle ? (double)s->desc.body_angle[b] : 180;
        fsi__mb_body *body = &run->body[b];
        body->slot = -1;
        body->alive = w->kind[b] != FSI_RIGID_NONE;
        if (!body->alive) continue;
        body->pose = w->body[b]->pose;
        body->reach = fsi__rg_reach(w, b);
        if (!(angle >= 10 && angle <= 180))
            return fsi__fail(s->context, fsi_is_finite(angle) ? FSI_ERROR_ARGUMENT : FSI_ERROR_NAN, run->fn, b,
                angle, "desc.body_angle of body %d is %g degrees, must be 10 to 180", b, angle);
        body->wetting = angle < 180;
        body->cosine = fsi_cos(angle * FSI_PI / 180);
    }
    return FSI_OK;
}

/* The body nearest to x, no farther than `most`, -1: none. d, n: distance, and its gradient. */
static int fsi__mb_nearest_body(const fsi__mb_run *run, fsi_vec3 x, double most, double *d, fsi__d3 *n)
{
    int b, found = -1;
    *d = most;
    for (b = 0; b < run->world->count; b++) {
        const fsi__mb_body *body = &run->body[b];
        fsi__d3 out;
        double away;
        if (!body->alive || fsi__d3_norm(fsi__d3_diff(x, body->pose.position)) > body->reach + *d) continue;
        away = fsi__rg_distance(run->world, b, &body->pose, fsi__d3_of(x), &out);
        if (!(away < *d)) continue;
        found = b;
        *d = away;
        *n = out;
    }
    return found;
}

/* Vertices in bodies go to their surfaces; with `capture`, they lie on them from now on. What lies on a body stays on
   its surface, unless remeshing has taken it away. */
static void fsi__mb_stay_out(fsi__mb_run *run, int capture)
{
    fsi_front *f = run->s->front;
    const double dx = (double)run->s->desc.dx;
    fsi__d3 n = fsi__d3_zero();
    double d, deepest = 0;
    int i, round;
    run->stats.depth = 0;
    for (i = 0; run->world && i < f->vertex_count; i++) {
        const int held = fsi__mb_is_held(f, i);
        const double most = held ? FSI__MB_CLOSE * dx : 0;
        if (fsi__mb_nearest_body(run, f->position[i], most, &d, &n) < 0) {
            f->flags[i] &= ~(uint32_t)FSI_FRONT_FIXED;
            continue;
        }
        if (!held && capture && d < -FSI__MB_TOUCH * dx) {
            f->flags[i] |= (uint32_t)FSI_FRONT_FIXED;
            run->stats.captured++;
        }

        /* At edges and between parts the first way out may not be the last. */
        for (round = 0; round < 3 && fabs(d) > 1e-9 * dx; round++) {
            f->position[i] = fsi__d3_real(fsi__d3_madd(fsi__d3_of(f->position[i]), -d, n));
            if (fsi__mb_nearest_body(run, f->position[i], most + 1e-6 * dx, &d, &n) < 0) d = 0;
        }
        deepest = fmax(deepest, -d);
    }
    run->stats.depth = deepest;
}

/* A pose after dt, at the velocities v of its body. */
static fsi_pose fsi__mb_pose_after(fsi_pose p, const double *v, double dt)
{
    p.position = fsi__d3_real(fsi__d3_madd(fsi__d3_of(p.position), dt, fsi__d3_at(v)));
    p.orientation = fsi_quat_integrate(p.orientation, fsi__d3_real(fsi__d3_at(v + 3)), (fsi_real)dt);
    return p;
}

/* Bodies go to new poses, and what lies on them goes along. */
static void fsi__mb_set_poses(fsi__mb_run *run)
{
    fsi_front *f = run->s->front;
    fsi__d3 n;
    double d;
    int i, b;
    for (i = 0; i < f->vertex_count; i++) {
        if (!fsi__mb_is_held(f, i)) continue;
        b = fsi__mb_nearest_body(run, f->position[i], FSI__MB_CLOSE * (double)run->s->desc.dx, &d, &n);
        if (b >= 0) f->position[i] = fsi_pose_point(run->body[b].to, fsi_pose_local(run->body[b].pose, f->position[i]));
    }
    for (b = 0; b < run->world->count; b++) run->body[b].pose = run->body[b].to;
}

/* Bodies go where the velocities before the substep bring them; the surface stays out of them. */
static void fsi__mb_move_bodies(fsi__mb_run *run)
{
    fsi_rigid *w = run->world;
    int b;
    if (!w) return;
    for (b = 0; b < w->count; b++) {
        const fsi__ct_body *m = &fsi__rg_bodies(w)[b];
        double v[6];
        run->body[b].to = run->body[b].pose;
        if (!run->body[b].alive || !(m->mobile || w->kind[b] == FSI_RIGID_KINEMATIC)) continue;
        fsi__d3_put(v, m->v0);
        fsi__d3_put(v + 3, m->w0);
        run->body[b].to = fsi__mb_pose_after(m->start, v, run->dt);
    }
    fsi__mb_set_poses(run);
    fsi__mb_stay_out(run, 1);
}

/* The fastest point of a body that moves. */
static double fsi__mb_fastest_body(const fsi__mb_run *run)
{
    double most = 0;
    int b;
    for (b = 0; run->world && b < run->world->count; b++) {
        const fsi_body *body = run->world->body[b];
        const fsi__ct_body *m = run->begun ? &fsi__rg_bodies(run->world)[b] : NULL;
        if (!run->body[b].alive || run->world->kind[b] == FSI_RIGID_STATIC) continue;
        most = fmax(most, fsi__d3_norm(m ? m->v0 : fsi__d3_of(body->velocity))
            + run->body[b].reach * fsi__d3_norm(m ? m->w0 : fsi__d3_of(body->angular_velocity)));
    }
    return most;
}

/* The world's step begins. */
static fsi_status fsi__mb_begin_bodies(fsi__mb_run *run, double dt)
{
    FSI__TRY(fsi__mb_of_world(run, fsi__rg_begin(run->world, dt, run->fn)));
    run->begun = 1;
    return FSI_OK;
}

/* Forces on bodies, contacts between them: velocities that they have without the liquid. */
static fsi_status fsi__mb_predict_bodies(fsi__mb_run *run)
{
    fsi_rigid *w = run->world;
    int b;
    if (!w) return FSI_OK;
    for (b = 0; b < w->count; b++)
        if (run->body[b].alive && run->body[b].touched && w->kind[b] == FSI_RIGID_DYNAMIC) fsi__rg_keep_awake(w, b);
    FSI__TRY(fsi__mb_of_world(run, fsi__rg_predict(w, run->dt, run->fn)));
    FSI__TRY(fsi__mb_of_world(run, fsi__rg_collide(w, run->dt, run->fn)));
    for (b = 0; b < w->count; b++) {
        fsi__mb_body *body = &run->body[b];
        const fsi__ct_body *m = &fsi__rg_bodies(w)[b];
        if (!body->alive) continue;
        body->free = m->mobile && m->inverse_mass > 0;
        body->mass = body->free ? 1 / m->inverse_mass : 0;
        memcpy(body->inertia, m->inertia, sizeof body->inertia);
        fsi__d3_put(body->before, m->v);
        fsi__d3_put(body->before + 3, m->w);
        memcpy(body->after, body->before, sizeof body->after);
        body->impulse = body->moment = fsi__d3_zero();
    }
    return FSI_OK;
}

/* Is the cell at a body's centre liquid, and its middle in the body? Then liquid is where the body is. */
static int fsi__mb_is_soaked(const fsi__mb_run *run, int b)
{
    const fsi_front_lines *l = run->im->lines;
    const fsi__mb_body *body = &run->body[b];
    double x[3] = { 0, 0, 0 };
    fsi__d3 out;
    int at[3] = { 0, 0, 0 }, a;
    for (a = 0; a < l->dim; a++) {
        const double from = (double)fsi__axis(l->origin, a), dx = (double)l->dx;
        const double i = floor(((double)fsi__axis(body->pose.position, a) - from) / dx);
        if (!(i >= 0 && i < l->n[a])) return 0;
        at[a] = (int)i;
        x[a] = from + (i + 0.5) * dx;
    }
    return l->inside[fsi__mb_cell(l->n, at[0], at[1], at[2])]
        && fsi__rg_distance(run->world, b, &body->pose, fsi__d3_at(x), &out) < 0;
}

/* The bodies that vertices lie on, and elements that lie on them. Error: MESH, a body in liquid without a surface
   around it. */
static fsi_status fsi__mb_find_contacts(fsi__mb_run *run)
{
    const fsi_membrane *s = run->s;
    const fsi_front *f = s->front;
    const int k = s->dim;
    fsi__d3 out;
    double d;
    int i, t, c, b;
    run->wetters = 0;
    for (b = 0; run->world && b < run->world->count; b++) {
        run->body[b].touched = 0;
        if (run->body[b].alive && fsi__mb_is_soaked(run, b))
            return fsi__fail(s->context, FSI_ERROR_MESH, run->fn, b, 0,
                "body %d is in the liquid, without a surface around it", b);
    }

    /* Vertices, then elements all of whose corners lie on one. */
    for (i = 0; i < f->vertex_count; i++) {
        run->touch[i] = -1;
        if (!run->world || !fsi__mb_is_held(f, i)) continue;
        run->touch[i] = fsi__mb_nearest_body(run, f->position[i], FSI__MB_CLOSE * (double)s->desc.dx, &d, &out);
        if (run->touch[i] < 0) continue;
        run->body[run->touch[i]].touched++;
        run->wetters += run->body[run->touch[i]].wetting;
    }
    for (t = 0; t < f->element_count; t++) {
        const int *corner = f->elements + k * t;
        run->wet[t] = run->touch[corner[0]] >= 0;
        for (c = 1; c < k; c++) run->wet[t] &= run->touch[corner[c]] == run->touch[corner[0]];
    }
    return FSI_OK;
}

/* The surface, by its velocities, then remeshed; and where it crosses the lines of the grid. */
static fsi_status fsi__mb_move(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    fsi_front *f = s->front;
    int i;
    for (i = 0; i < f->vertex_count; i++)
        if (!fsi__mb_is_held(f, i)) f->position[i] = fsi_v3_madd(f->position[i], (fsi_real)run->dt, f->velocity[i]);
    fsi__mb_move_bodies(run);
    fsi__mb_touch_walls(s, NULL);
    fsi__mb_mend_walls(run);
    FSI__TRY(fsi_front_step(f, 0));
    fsi__mb_stay_out(run, 1);
    if (f->stats.drift > run->stats.drift) run->stats.drift = f->stats.drift;
    run->stats.owed = f->stats.owed;
    return fsi_front_cross_lines(run->im->lines, f);
}

/* ---- masses ------------------------------------------------------------------------------------------------------ */

static int fsi__mb_edges(const fsi_front *f) { return f->dim == 3 ? f->element_count / 2 * 3 : f->element_count; }

static void fsi__mb_take_surface(fsi__mb_run *run, fsi__arena *a)
{
    const fsi_front *f = run->s->front;
    const size_t v = (size_t)f->vertex_count, t = (size_t)f->element_count, e = v + (size_t)fsi__mb_edges(f);
    int axis;
    run->held = (unsigned char *)fsi__take(a, v + 1, 1);
    run->m = (double *)fsi__take(a, v, sizeof(double));
    for (axis = 0; axis < 3; axis++) {
        run->own[axis] = (double *)fsi__take(a, v, sizeof(double));
        run->lump[axis] = (double *)fsi__take(a, v, sizeof(double));
        run->v[axis] = (double *)fsi__take(a, v, sizeof(double));
        run->r[axis] = (double *)fsi__take(a, v, sizeof(double));
        run->load[axis] = (double *)fsi__take(a, v, sizeof(double));
        run->answer[axis] = (double *)fsi__take(a, v, sizeof(double));
    }
    run->touch = (int *)fsi__take(a, v, sizeof(int));
    run->b = (double *)fsi__take(a, v, sizeof(double));
    run->y = (double *)fsi__take(a, v, sizeof(double));
    run->f = (double *)fsi__take(a, 3 * v, sizeof(double));
    run->g = (double *)fsi__take(a, 3 * v, sizeof(double));
    run->rim = (double *)fsi__take(a, 3 * v, sizeof(double));
    run->drag = (double *)fsi__take(a, v, sizeof(double));
    run->slide = (double *)fsi__take(a, 3 * v, sizeof(double));
    run->piece = (fsi__mb_piece *)fsi__take(a, (size_t)f->piece_count, sizeof *run->piece);
    run->piece_of = (int *)fsi__take(a, v, sizeof(int));
    run->skip = (unsigned char *)fsi__take(a, t + 1, 1);
    run->wet = (unsigned char *)fsi__take(a, t + 1, 1);
    run->weight = (fsi_real *)fsi__take(a, t * (size_t)f->dim, sizeof(fsi_real));
    run->given = (double *)fsi__take(a, v, sizeof(double));
    run->solved = (double *)fsi__take(a, v, sizeof(double));
    run->row = (int *)fsi__take(a, v, sizeof(int));
    run->vertex = (int *)fsi__take(a, v, sizeof(int));
    run->start = (int *)fsi__take(a, v + 1, sizeof(int));
    run->col = (int *)fsi__take(a, e, sizeof(int));
    run->stiff = (double *)fsi__take(a, e, sizeof(double));
    run->value = (double *)fsi__take(a, e, sizeof(double));
}

static void fsi__mb_take_sheet(fsi__mb_run *run, fsi__arena *a)
{
    const size_t n = (size_t)run->im->rows.count;
    run->heft = (double *)fsi__take(a, n, sizeof(double));
    run->wind = (double *)fsi__take(a, n, sizeof(double));
    run->found = (double *)fsi__take(a, n, sizeof(double));
    run->push = (double *)fsi__take(a, n, sizeof(double));
    run->velocity = (fsi_real *)fsi__take(a, n, sizeof(fsi_real));
    run->yielding = (fsi_real *)fsi__take(a, n, sizeof(fsi_real));
}

/* Masses of vertices, rho h times their part of all elements with tension, and which of them are held. */
static void fsi__mb_weigh(fsi__mb_run *run)
{
    const fsi_membrane *s = run->s;
    const fsi_front *f = s->front;
    const int k = s->dim;
    const double rho = (double)s->desc.density, length = (double)s->desc.dx / 2;
    const double least = FSI__MB_LIGHTEST * rho * run->h * (k == 3 ? length * length : length);
    int i, t, c, a;
    for (i = 0; i < f->vertex_count; i++) {
        run->held[i] = FSI__MB_IDLE;
        run->m[i] = 0;
        for (a = 0; a < 3; a++) run->v[a][i] = (double)fsi__axis(f->velocity[i], a);
    }
    for (t = 0; t < f->element_count; t++) {
        const int *corner = f->elements + k * t;
        const double part = rho * run->h * fsi__fr_area_of(k, f->position, corner) / k;
        for (c = 0; c < k && !run->skip[t]; c++) {
            run->m[corner[c]] += part;
            run->held[corner[c]] = 0;
        }
    }

    /* Lines on walls, and axes along which walls hold. */
    for (t = 0; t < f->element_count; t++)
        for (c = 0; c < k && run->skip[t]; c++) run->held[f->elements[k * t + c]] |= FSI__MB_LINE;
    for (i = 0; i < f->vertex_count; i++) {
        run->m[i] = run->held[i] & FSI__MB_IDLE ? 0 : fmax(run->m[i], least);
        for (a = 0; a < k; a++) run->held[i] |= f->flags[i] >> 2 * a & 3 ? (unsigned char)(1 << a) : 0;
        for (a = 0; a < k; a++) if (run->held[i] >> a & 1) run->v[a][i] = 0;
    }
}

/* Masses at the surface. Between the two centres beside a face there is liquid of the mass rho V share, h/dx of it in
   the membrane: the face has the rest, lumped on the vertices as W^T M_a 1, which is what W^T M_a W sums to, as rows
   sum to 1. Where there is less liquid than h/dx, the membrane itself is lighter along that axis: a column of liquid
   weighs what it should, wherever its surface is between two centres. */
static void fsi__mb_weigh_faces(fsi__mb_run *run)
{
    const fsi_membrane *s = run->s;
    const fsi__mb_rows *r = &run->im->rows;
    const double h = fmin(run->h / (double)s->desc.dx, 1); /* what is thicker is heavier than the liquid in its place */
    const size_t bytes = (size_t)s->front->vertex_count * sizeof(double);
    int f, a, i;
    for (f = 0; f < r->count; f++) {
        const double rest = s->desc.whole_faces ? 1 : r->share[f] - h;
        run->heft[f] = run->mass * fmax(rest, 0);
        run->found[f] = run->mass * fmin(rest, 0);
    }
    for (a = 0; a < s->dim; a++) {
        memset(run->lump[a], 0, bytes);
        memcpy(run->own[a], run->m, bytes);
        fsi__mb_rows_scatter(r, a, run->heft, run->lump[a]);
        fsi__mb_rows_scatter(r, a, run->found, run->own[a]);
        for (i = 0; i < s->front->vertex_count; i++)
            run->own[a][i] = fmax(run->own[a][i], FSI__MB_LIGHTEST * run->m[i]);
        for (f = r->first[a]; f < r->first[a + 1]; f++)
            for (i = r->start[f]; i < r->start[f] + r->length[f]; i++)
                run->held[r->vertex[i]] |= (unsigned char)(FSI__MB_REACHED << a);
    }
}

/* Which cells are liquid, where the surface has moved to; rows and masses. */
static fsi_status fsi__mb_locate(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    fsi__mb_impl *im = run->im;
    fsi__mb_source source;
    FSI__TRY(fsi__mb_mark_cells(run));
    FSI__TRY(fsi__mb_take(run, &im->surface, fsi__mb_take_surface));
    fsi__mb_touch_walls(s, run->skip);
    FSI__TRY(fsi__mb_find_contacts(run));
    source.context = s->context;
    source.grid = s->grid;
    source.front = s->front;
    source.lines = im->lines;
    source.skip = run->skip;
    source.box = (double)s->desc.box;
    FSI__TRY(fsi__mb_rows_make(&im->rows, &source, run->fn));
    FSI__TRY(fsi__mb_take(run, &im->sheet, fsi__mb_take_sheet));
    fsi__mb_weigh(run);
    fsi__mb_weigh_faces(run);
    return fsi_grid_faces_set(im->faces, s->grid, im->rows.first, im->rows.entry, im->rows.solid);
}

/* Is this a face between two liquid cells? Its entry, or -1. */
static long long fsi__mb_liquid_face(const fsi__mb_run *run, int axis, const int *at)
{
    const long long e = fsi_grid_entry(run->s->grid, at[0], at[1], at[2]);
    const long long below = fsi_grid_entry(run->s->grid, at[0] - (axis == 0), at[1] - (axis == 1), at[2] - (axis == 2));
    return e >= 0 && below >= 0 && run->cell[e] == FSI_CELL_LIQUID && run->cell[below] == FSI_CELL_LIQUID ? e : -1;
}

/* The nearest face of an axis between two liquid cells, or -1. */
static long long fsi__mb_nearest_face(const fsi__mb_run *run, int axis, fsi_vec3 x)
{
    const fsi_grid *g = run->s->grid;
    const int w = FSI__MB_WINDOW, deep = g->dim == 3 ? w : 0;
    double p[3], best = FSI__HUGE;
    long long found = -1;
    int base[3], d[3], at[3], a;
    fsi__d3_put(p, fsi__d3_scale(fsi__d3_diff(x, g->origin), 1 / (double)g->dx));
    for (a = 0; a < 3; a++) base[a] = a < g->dim ? (int)floor(p[a] + (a == axis ? 0.5 : 0)) : 0;

    /* Those around the nearest of all. */
    for (d[2] = -deep; d[2] <= deep; d[2]++)
        for (d[1] = -w; d[1] <= w; d[1]++)
            for (d[0] = -w; d[0] <= w; d[0]++) {
                double away = 0;
                long long e;
                for (a = 0; a < g->dim; a++) {
                    at[a] = base[a] + d[a];
                    away += (p[a] - at[a] - (a == axis ? 0 : 0.5)) * (p[a] - at[a] - (a == axis ? 0 : 0.5));
                }
                if (g->dim == 2) at[2] = 0;
                e = away < best ? fsi__mb_liquid_face(run, axis, at) : -1;
                if (e < 0) continue;
                best = away;
                found = e;
            }
    return found;
}

/* Where the surface lies along an axis, no face of that axis is between liquid and air: the liquid does not drag these
   vertices. They share their momentum with the nearest face of the liquid:
   v = u = (rho V u + sum m v)/(rho V + sum m). Solves nothing, moves no momentum away. */
static void fsi__mb_join_axis(fsi__mb_run *run, int axis)
{
    const fsi_front *f = run->s->front;
    fsi_real *u = run->im->work[axis]->value;
    double *face = run->b; /* entry of each vertex's face */
    int i, pass;
    for (i = 0; i < f->vertex_count; i++) {
        const int free = !(run->held[i] & (FSI__MB_IDLE | 1 << axis | FSI__MB_REACHED << axis)) && run->touch[i] < 0;
        const long long e = free ? fsi__mb_nearest_face(run, axis, f->position[i]) : -1;
        face[i] = (double)e;
        if (e < 0) continue;
        run->sum_m[e] = run->mass;
        run->sum_p[e] = run->mass * (double)u[e];
        run->stats.joined++;
    }

    /* Sums, then what is shared. */
    for (pass = 0; pass < 2; pass++)
        for (i = 0; i < f->vertex_count; i++) {
            const size_t e = (size_t)(face[i] < 0 ? 0 : face[i]);
            if (face[i] < 0) continue;
            if (pass == 0) {
                run->sum_m[e] += run->own[axis][i];
                run->sum_p[e] += run->own[axis][i] * run->v[axis][i];
            } else {
                run->v[axis][i] = run->sum_p[e] / run->sum_m[e];
                u[e] = (fsi_real)run->v[axis][i];
            }
        }
}

/* Velocities of faces with liquid beside them, the walls' 0, nothing elsewhere; those at the surface also in `wind`. */
static void fsi__mb_clear_faces(fsi__mb_run *run)
{
    const fsi_grid *g = run->s->grid;
    const fsi__mb_rows *r = &run->im->rows;
    const size_t cells = (size_t)g->block_cells;
    int a, b, c, f, corner[3];
    for (a = 0; a < g->dim; a++) {
        fsi_real *u = run->im->work[a]->value;
        for (b = 0; b < g->block_count; b++) {
            fsi_grid_corner(g, b, corner);
            for (c = 0; c < g->block_cells; c++) {
                const size_t e = (size_t)b * cells + (size_t)c;
                const int at = corner[a] + (c >> 3 * a & 7);
                if (!run->known[a][e] || at == 0 || at == g->n[a]) u[e] = 0;
            }
        }
        for (f = r->first[a]; f < r->first[a + 1]; f++) run->wind[f] = (double)u[r->entry[f]];
    }
}

/* Momentum of liquid and membrane, mass and kinetic energy. */
static void fsi__mb_sum(const fsi__mb_run *run, double *p, double *mass, double *energy)
{
    const fsi_grid *g = run->s->grid;
    const fsi__mb_rows *r = &run->im->rows;
    const size_t entries = (size_t)g->block_count * (size_t)g->block_cells;
    size_t e;
    int a, f, i;
    *energy = 0;
    for (a = 0; a < g->dim; a++) {
        const fsi_real *u = run->im->work[a]->value;
        double m = 0, q = 0, own = 0, at;

        /* Of whole faces, then back to what those of the surface have. */
        for (e = 0; e < entries; e++) {
            own += run->known[a][e];
            m += (double)u[e];
            q += (double)u[e] * (double)u[e];
        }
        own *= run->mass;
        m *= run->mass;
        q *= run->mass;
        for (f = r->first[a]; f < r->first[a + 1]; f++) {
            at = (double)u[r->entry[f]];
            own += run->heft[f] - run->mass;
            m += (run->heft[f] - run->mass) * at;
            q += (run->heft[f] - run->mass) * at * at;
        }

        /* The membrane. */
        for (i = 0; i < run->s->front->vertex_count; i++) {
            own += run->own[a][i];
            m += run->own[a][i] * run->v[a][i];
            q += run->own[a][i] * run->v[a][i] * run->v[a][i];
        }
        p[a] = m;
        mass[a] = own;
        *energy += q / 2;
    }
}

/* ---- the membrane's matrix --------------------------------------------------------------------------------------- */

/* The entry of row i, column j <= i. */
static int fsi__mb_entry(const fsi__mb_run *run, int i, int j)
{
    int lo = run->start[i], hi = run->start[i + 1] - 1;
    while (lo < hi) {
        const int middle = (lo + hi) / 2;
        if (run->col[middle] < j) lo = middle + 1;
        else hi = middle;
    }
    return lo;
}

/* Vertices without tension are not in the matrix: most of a pool's surface lies on its walls. The others keep their
   order. */
static void fsi__mb_number_rows(fsi__mb_run *run)
{
    int i;
    run->rows = 0;
    for (i = 0; i < run->s->front->vertex_count; i++) {
        run->row[i] = run->held[i] & FSI__MB_IDLE ? -1 : run->rows++;
        if (run->row[i] >= 0) run->vertex[run->row[i]] = i;
    }
}

/* The edges of the surface, each once: from its larger row to its smaller one, 0: that is not in the matrix. */
static int fsi__mb_edge(const fsi__mb_run *run, int t, int c, int *from, int *to)
{
    const fsi_front *f = run->s->front;
    const int p = run->row[f->elements[f->dim * t + c]], q = run->row[f->elements[f->dim * t + (c + 1) % f->dim]];
    *from = p > q ? p : q;
    *to = p > q ? q : p;
    return *to >= 0 && (p > q || f->dim == 2);
}

/* The pattern: the lower triangle of edges. */
static void fsi__mb_make_pattern(fsi__mb_run *run)
{
    const fsi_front *f = run->s->front;
    const int edges = f->dim == 3 ? 3 : 1;
    int *start = run->start, *col = run->col;
    int t, c, i, e, from, to, sum = 0;
    fsi__mb_number_rows(run);
    for (i = 0; i <= run->rows; i++) start[i] = 0;
    for (t = 0; t < f->element_count; t++)
        for (c = 0; c < edges; c++) if (fsi__mb_edge(run, t, c, &from, &to)) start[from]++;

    /* To the ends of rows, which filling moves to their beginnings. */
    for (i = 0; i < run->rows; i++) {
        sum += start[i] + 1;
        start[i] = sum - 1;
        col[sum - 1] = i;
    }
    start[run->rows] = sum;
    for (t = 0; t < f->element_count; t++)
        for (c = 0; c < edges; c++) if (fsi__mb_edge(run, t, c, &from, &to)) col[--start[from]] = to;

    /* Columns in order. */
    for (i = 0; i < run->rows; i++)
        for (t = start[i] + 1; t < start[i + 1]; t++) {
            const int one = col[t];
            for (e = t; e > start[i] && col[e - 1] > one; e--) col[e] = col[e - 1];
            col[e] = one;
        }
}

/* The velocity of a vertex along an axis before fsi__mb_fall. */
static double fsi__mb_before_fall(const fsi__mb_run *run, int i, int axis)
{
    return run->held[i] & (1 << axis | FSI__MB_IDLE) ? run->v[axis][i]
        : run->v[axis][i] - run->dt * fsi__d3_axis(fsi__mb_gravity(run->s), axis);
}

/* Force of tension, stiffness and its lag of one edge, weight w: f_p = sigma w (x_q - x_p), dt^2 K has s sigma w dt^2.
   The lag is that of the velocities before gravity: K v of vertices that fall beside one that a wall holds would pull
   them down for ever. */
static void fsi__mb_add_edge(fsi__mb_run *run, int p, int q, double w, double s)
{
    const fsi_membrane *m = run->s;
    const double pull = (double)m->desc.surface_tension * w, k = pull * s * run->dt * run->dt;
    const double lag = 1 - (double)m->desc.damping;
    const fsi__d3 d = fsi__d3_diff(m->front->position[q], m->front->position[p]);
    const int high = run->row[p > q ? p : q], low = run->row[p > q ? q : p]; /* rows are in the order of vertices */
    int a;
    run->stiff[fsi__mb_entry(run, high, low)] -= k;
    run->stiff[run->start[high + 1] - 1] += k;
    run->stiff[run->start[low + 1] - 1] += k;
    for (a = 0; a < m->dim; a++) {
        const double r = lag * k * (fsi__mb_before_fall(run, p, a) - fsi__mb_before_fall(run, q, a));
        const double f = pull * fsi__d3_axis(d, a);
        run->f[3 * p + a] += f;
        run->f[3 * q + a] -= f;
        run->r[a][p] += r;
        run->r[a][q] -= r;
    }
}

/* d(wetted area of walls)/dx into `rim`, and its forces, sigma cos(theta) rim. The area is signed, by the normal of the
   wall: vertices behind a line, whose elements may be turned over, get nothing. Friction holds lines back: by
   zeta v a length, which is |rim|. */
static void fsi__mb_pull_lines(fsi__mb_run *run)
{
    const fsi_membrane *s = run->s;
    const fsi_front *f = s->front;
    const int k = f->dim;
    int i, t, c;
    memset(run->rim, 0, 3 * (size_t)f->vertex_count * sizeof(double));
    for (t = 0; t < f->element_count; t++) {
        const int *corner = f->elements + k * t, side = run->skip[t] ? fsi__mb_first_wall(fsi__mb_walls_of(f, t)) : 0;
        double normal[3] = { 0, 0, 0 };
        normal[side >> 1] = (side & 1 ? 1.0 : -1.0) / (k - 1);
        for (c = 0; c < k && run->skip[t]; c++) {
            const fsi__d3 edge = k == 2 ? fsi__d3_make(0, 0, c == 1 ? -1 : 1)
                : fsi__d3_diff(f->position[corner[(c + 1) % 3]], f->position[corner[(c + 2) % 3]]);
            const fsi__d3 grow = fsi__d3_cross(edge, fsi__d3_at(normal));
            double *force = run->f + 3 * corner[c], *rim = run->rim + 3 * corner[c];
            fsi__d3_put(force, fsi__d3_madd(fsi__d3_at(force), -fsi__mb_wall_energy(s, side), grow));
            fsi__d3_put(rim, fsi__d3_add(fsi__d3_at(rim), grow));
        }
    }
    for (i = 0; i < f->vertex_count; i++) {
        double free2 = 0; /* without the parts that other walls hold */
        for (c = 0; c < k; c++) {
            const double part = run->held[i] & (1 << c | FSI__MB_IDLE) ? 0 : run->rim[3 * i + c];
            free2 += part * part;
        }
        run->drag[i] = run->dt * run->friction * sqrt(free2);
    }
}

/* dV/dx of each corner of an element, about: in sum over a closed surface exactly. */
static fsi__d3 fsi__mb_growth(const fsi_front *f, int t)
{
    const int *corner = f->elements + f->dim * t;
    const fsi__d3 d = fsi__d3_diff(f->position[corner[1]], f->position[corner[0]]);
    return f->dim == 2 ? fsi__d3_make(-d.y / 2, d.x / 2, 0)
        : fsi__d3_scale(fsi__d3_cross(d, fsi__d3_diff(f->position[corner[2]], f->position[corner[0]])), 1.0 / 6);
}

/* dV/dx of all vertices. */
static void fsi__mb_find_gradients(fsi__mb_run *run)
{
    const fsi_front *f = run->s->front;
    const int k = f->dim;
    int t, c;
    memset(run->g, 0, 3 * (size_t)f->vertex_count * sizeof(double));
    for (t = 0; t < f->element_count; t++) {
        const int *corner = f->elements + k * t;
        const fsi__d3 n = fsi__mb_growth(f, t);
        for (c = 0; c < k; c++) fsi__d3_put(run->g + 3 * corner[c], fsi__d3_add(fsi__d3_at(run->g + 3 * corner[c]), n));
    }
}

/* Sums over pieces of forces f and of g n^T; what has a line on a wall is not summed. */
static void fsi__mb_sum_forces(fsi__mb_run *run)
{
    const fsi_front *f = run->s->front;
    int i, t, c, a, b;
    memset(run->piece, 0, (size_t)f->piece_count * sizeof *run->piece);
    run->lines = 0;
    for (t = 0; t < f->element_count; t++)
        for (c = 0; c < f->dim; c++) run->piece_of[f->elements[f->dim * t + c]] = f->piece_of[t];
    for (i = 0; i < f->vertex_count; i++) {
        fsi__mb_piece *piece = &run->piece[run->piece_of[i]];
        const double *g = run->g + 3 * i, n = fsi__d3_norm(fsi__d3_at(g));
        piece->force = fsi__d3_add(piece->force, fsi__d3_at(run->f + 3 * i));
        for (a = 0; a < 3; a++)
            for (b = 0; b < 3 && run->touch[i] < 0; b++) piece->spread[3 * a + b] += n > 0 ? g[a] * g[b] / n : 0;
        run->lines += (run->held[i] & FSI__MB_LINE) != 0;
    }
}

/* Tension acts along normals. -sigma dA/dx has a part along the surface too, of the order of (edge/R)^2: the area of a
   mesh changes when its vertices slide on a ball. This would drive currents around a drop at rest for ever. So of f
   only its part along g = dV/dx counts, f_i = -sigma k_i g_i. As sum g = 0 over a closed surface, these forces have no
   sum where the curvature k is uniform; elsewhere a small one, which c.n_i added to k_i removes:
   sum g_i n_i^T c = -sum f.
   At lines on walls the tension pulls along the surface, and stays as it is. */
static void fsi__mb_turn_forces(fsi__mb_run *run)
{
    const fsi_front *f = run->s->front;
    double inverse[9];
    int i, p;
    fsi__mb_find_gradients(run);
    for (i = 0; i < f->vertex_count; i++) {
        const fsi__d3 g = fsi__d3_at(run->g + 3 * i);
        const double size = fsi__d3_dot(g, g), along = fsi__d3_dot(fsi__d3_at(run->f + 3 * i), g);
        if (!(run->held[i] & FSI__MB_LINE) && run->touch[i] < 0 && size > 0)
            fsi__d3_put(run->f + 3 * i, fsi__d3_scale(g, along / size));
    }
    fsi__mb_sum_forces(run);
    for (p = 0; p < f->piece_count && run->lines == 0; p++) {
        fsi__mb_piece *piece = &run->piece[p];
        if (f->dim == 2) piece->spread[8] = 1;
        fsi__d9_inverse(piece->spread, inverse);
        piece->force = fsi__d9_mul(inverse, fsi__d3_scale(piece->force, -1));
    }
    for (i = 0; i < f->vertex_count && run->lines == 0; i++) {
        const fsi__d3 g = fsi__d3_at(run->g + 3 * i), c = run->piece[run->piece_of[i]].force;
        const double n = fsi__d3_norm(g), more = n > 0 && run->touch[i] < 0 ? fsi__d3_dot(c, g) / n : 0;
        fsi__d3_put(run->f + 3 * i, fsi__d3_madd(fsi__d3_at(run->f + 3 * i), more, g));
    }
}

/* The pressure of each piece, p(x) = p_0 + s rho g.x, as if it rested: s = 1 where it lies on a wall or a body, 0 where
   it flies. p_i = -f.g/g^2 holds vertex i, g = dV/dx; p_0 is the mean of p_i - s rho g.x_i with the weights g^2. */
static void fsi__mb_find_rest(fsi__mb_run *run)
{
    const fsi_front *f = run->s->front;
    const fsi__d3 fall = fsi__d3_scale(fsi__mb_gravity(run->s), (double)run->s->desc.density);
    int i, p, a;
    memset(run->piece, 0, (size_t)f->piece_count * sizeof *run->piece);
    for (i = 0; i < f->vertex_count; i++)
        if (run->touch[i] >= 0 || run->held[i] & (FSI__MB_IDLE | FSI__MB_LINE)) run->piece[run->piece_of[i]].heavy = 1;

    /* Sums of products and of weights, of free vertices with tension; p_0. */
    for (i = 0; i < f->vertex_count; i++) {
        fsi__mb_piece *piece = &run->piece[run->piece_of[i]];
        const double deep = piece->heavy * fsi__d3_dot(fall, fsi__d3_diff(f->position[i], run->s->grid->origin));
        for (a = 0; a < f->dim && run->touch[i] < 0; a++) {
            const double g = run->g[3 * i + a];
            if (run->held[i] & (FSI__MB_IDLE | 1 << a)) continue;
            piece->pull -= (run->f[3 * i + a] + deep * g) * g;
            piece->weight += g * g;
        }
    }
    for (p = 0; p < f->piece_count; p++)
        if (run->piece[p].weight > 0) run->piece[p].surface = run->piece[p].pull / run->piece[p].weight;
}

/* p(x) of a piece. */
static double fsi__mb_rest_pressure(const fsi__mb_run *run, int piece, fsi_vec3 x)
{
    return run->piece[piece].surface + run->piece[piece].heavy * (double)run->s->desc.density
        * fsi__d3_dot(fsi__mb_gravity(run->s), fsi__d3_diff(x, run->s->grid->origin));
}

/* What the elements around vertices on bodies do to lines there: `rim`, d(wetted area)/dx; `slide`, dV/dx of those
   outside; b, by what their pull along an axis changes when the vertex moves. */
static void fsi__mb_look_at_rims(fsi__mb_run *run)
{
    const fsi_front *f = run->s->front;
    const int k = f->dim;
    const double sigma = (double)run->s->desc.surface_tension;
    int i, t, c;
    memset(run->rim, 0, 3 * (size_t)f->vertex_count * sizeof(double));
    for (i = 0; i < f->vertex_count; i++) run->b[i] = 0;
    for (t = 0; t < f->element_count; t++) {
        const int *corner = f->elements + k * t;
        const fsi__d3 n = fsi__mb_growth(f, t);
        for (c = 0; c < (k == 3 ? 3 : 1) && !run->skip[t]; c++) {
            const int p = corner[c], q = corner[(c + 1) % k];
            const double w = (double)run->weight[k * t + c];
            const fsi__d3 grow = fsi__d3_scale(fsi__d3_diff(f->position[p], f->position[q]), w);
            if (run->wet[t]) {
                fsi__d3_put(run->rim + 3 * p, fsi__d3_add(fsi__d3_at(run->rim + 3 * p), grow));
                fsi__d3_put(run->rim + 3 * q, fsi__d3_sub(fsi__d3_at(run->rim + 3 * q), grow));
            } else {
                run->b[p] += sigma * w;
                run->b[q] += sigma * w;
            }
        }
        for (c = 0; c < k && !run->skip[t] && !run->wet[t]; c++)
            fsi__d3_put(run->slide + 3 * corner[c], fsi__d3_add(fsi__d3_at(run->slide + 3 * corner[c]), n));
    }
}

/* The part of v along the walls that hold a vertex. */
static fsi__d3 fsi__mb_along_walls(const fsi__mb_run *run, int i, fsi__d3 v)
{
    double q[3];
    int a;
    fsi__d3_put(q, v);
    for (a = 0; a < run->s->dim; a++) if (run->held[i] >> a & 1) q[a] = 0;
    return fsi__d3_at(q);
}

/* Lines on bodies whose angle is below 180 degrees slide along them, by Young's law: on a vertex of the rim of the
   wetted part act the pull of the elements outside, the pressure p(x) of rest on them, and sigma cos(theta) along
   `rim`. Their sum along the body, across the line, is 0 where the angle is theta; the line moves by dt times it over
   zeta and over what the pull changes by with the way, so that no step is too long, and by dx/8 at most. In the
   velocity solve lines stay on their bodies: it is places that slide. */
static void fsi__mb_find_slides(fsi__mb_run *run)
{
    const fsi_front *f = run->s->front;
    const double sigma = (double)run->s->desc.surface_tension, most = (double)run->s->desc.dx / 8;
    fsi__d3 n, pull, along;
    double d, length, way;
    int i;
    memset(run->slide, 0, 3 * (size_t)f->vertex_count * sizeof(double));
    if (run->wetters == 0) return;
    fsi__mb_look_at_rims(run);
    for (i = 0; i < f->vertex_count; i++) {
        const fsi__d3 g = fsi__d3_at(run->slide + 3 * i);
        fsi__d3_put(run->slide + 3 * i, fsi__d3_zero());
        length = fsi__d3_norm(fsi__mb_along_walls(run, i, fsi__d3_at(run->rim + 3 * i)));
        if (run->touch[i] < 0 || !run->body[run->touch[i]].wetting || !(run->b[i] > 0) || !(length > 0)) continue;
        if (fsi__mb_nearest_body(run, f->position[i], FSI__MB_CLOSE * (double)run->s->desc.dx, &d, &n) < 0) continue;
        along = fsi__d3_at(run->rim + 3 * i);
        along = fsi__mb_along_walls(run, i, fsi__d3_madd(along, -fsi__d3_dot(along, n), n));
        along = fsi__d3_scale(along, 1 / fmax(fsi__d3_norm(along), 1e-6 * length));
        pull = fsi__d3_madd(fsi__d3_at(run->f + 3 * i), fsi__mb_rest_pressure(run, run->piece_of[i], f->position[i]),
            g);
        way = run->dt * (fsi__d3_dot(pull, along) + sigma * run->body[run->touch[i]].cosine * length)
            / (run->friction * length + run->dt * run->b[i]);
        fsi__d3_put(run->slide + 3 * i, fsi__d3_scale(along, fmax(-most, fmin(most, way))));
    }
}

/* p(x) in the liquid cells at the faces of an axis, as forces of these faces on the surface. The piece is that of the
   liquid cell: rows may hold vertices of a second one, close by. */
static void fsi__mb_find_loads(fsi__mb_run *run, int axis)
{
    const fsi_grid *g = run->s->grid;
    const fsi__mb_rows *r = &run->im->rows;
    const double dx = (double)g->dx, area = g->dim == 3 ? dx * dx : dx;
    int i;
    for (i = r->first[axis]; i < r->first[axis + 1]; i++) {
        const int above = run->cell[r->entry[i]] == FSI_CELL_LIQUID, piece = run->s->front->piece_of[r->crossed[i]];
        int at[3];
        memcpy(at, r->cell[i], sizeof at);
        at[axis] -= !above;
        run->found[i] = (above ? -area : area)
            * fsi__mb_rest_pressure(run, piece, fsi_grid_position(g, FSI_CELLS, at[0], at[1], at[2]));
    }
}

/* A pressure p(x) pushes vertex i by p(x_i) g_i, g = dV/dx. Through the faces of the grid it pushes by (W^T j)_i, j = p
   of the cell times +-dx^(d-1), instead: about the same in sum, but with parts along the surface from vertex to vertex,
   which nothing holds. The weight of what the faces have, and of the membrane on slopes, has such parts too. So the
   pressure p(x) of rest acts by g, and only what differs from it through faces, its weight being part of it:

      f_i += p(x_i) g_i - (W^T j)_i - s (m_i + (W^T M_a 1)_i) g

   Then f_i + p(x_i) g_i = 0 is an equilibrium of the whole system. Where there is no gravity the sum over a closed
   surface is 0: no momentum comes in. With it the sum over all of a piece is s (rho V - M) g: what rests weighs as much
   as its volume does, not as the masses M that the solve has. */
static void fsi__mb_balance(fsi__mb_run *run)
{
    const fsi_front *f = run->s->front;
    int i, a;
    for (a = 0; a < f->dim; a++) {
        const double fall = fsi__d3_axis(fsi__mb_gravity(run->s), a);
        fsi__mb_find_loads(run, a);
        memset(run->b, 0, (size_t)f->vertex_count * sizeof(double));
        fsi__mb_rows_scatter(&run->im->rows, a, run->found, run->b);
        run->balance[a] = 0;
        for (i = 0; i < f->vertex_count; i++) {
            const int piece = run->piece_of[i];
            double more;
            if (run->held[i] & (FSI__MB_IDLE | 1 << a)) continue;
            more = fsi__mb_rest_pressure(run, piece, f->position[i]) * run->g[3 * i + a] - run->b[i]
                - run->piece[piece].heavy * fall * (run->own[a][i] + run->lump[a][i]);
            run->f[3 * i + a] += more;
            run->balance[a] += more;
        }
    }
}

/* dt^2 K, and r = (M + D) v + dt f + (1 - b) dt^2 K v + W^T M_a (u* - W v), D = diag(W^T M_a 1): the momentum of
   M v + W^T M_a u*, but W^T M_a W v in place of D v would smooth v in every step. The stiffness of a sliver is scaled
   down as a whole: it stays semidefinite; its force is not. */
static fsi_status fsi__mb_assemble(fsi__mb_run *run)
{
    const fsi_front *f = run->s->front;
    const fsi__mb_rows *r = &run->im->rows;
    const int k = f->dim;
    int i, t, c, a;
    FSI__TRY(fsi_front_weights(f, run->weight));
    fsi__mb_make_pattern(run);
    memset(run->stiff, 0, (size_t)run->start[run->rows] * sizeof(double));
    memset(run->f, 0, 3 * (size_t)f->vertex_count * sizeof(double));
    for (a = 0; a < k; a++)
        for (i = 0; i < f->vertex_count; i++) run->r[a][i] = run->own[a][i] * run->v[a][i];

    /* Edges of all elements with tension. */
    for (t = 0; t < f->element_count; t++) {
        const int *corner = f->elements + k * t;
        const fsi_real *w = run->weight + k * t;
        double steepest = 0;
        if (run->skip[t] || run->wet[t]) continue;
        for (c = 0; c < k; c++) steepest = fmax(steepest, 2 * fabs((double)w[c]));
        for (c = 0; c < (k == 3 ? 3 : 1); c++)
            fsi__mb_add_edge(run, corner[c], corner[(c + 1) % k], (double)w[c],
                k == 3 ? fmin(1, FSI__MB_STEEPEST / steepest) : 1);
    }

    /* Forces, and the momentum of liquid at the surface. */
    fsi__mb_pull_lines(run);
    fsi__mb_turn_forces(run);
    fsi__mb_find_rest(run);
    fsi__mb_find_slides(run);
    fsi__mb_balance(run);
    for (a = 0; a < k; a++) {
        fsi__mb_rows_gather(r, a, run->v[a], run->found);
        for (i = 0; i < f->vertex_count; i++)
            run->r[a][i] += run->lump[a][i] * run->v[a][i] + run->dt * run->f[3 * i + a];
        for (i = r->first[a]; i < r->first[a + 1]; i++)
            run->found[i] = run->heft[i] * (run->wind[i] - run->found[i]);
        fsi__mb_rows_scatter(r, a, run->found, run->r[a]);
    }
    return FSI_OK;
}

/* Is this component not an unknown: held by a wall, or by a body? */
FSI_FN int fsi__mb_known(const fsi__mb_run *run, int i, int axis)
{
    return (run->held[i] & (1 << axis | FSI__MB_IDLE)) != 0 || run->touch[i] >= 0;
}

/* The diagonal of C of an axis. */
FSI_FN double fsi__mb_diagonal(const fsi__mb_run *run, int row, int axis)
{
    const int i = run->vertex[row];
    return run->stiff[run->start[row + 1] - 1] + run->own[axis][i] + run->lump[axis][i] + run->drag[i];
}

/* C of an axis: components that are known have rows and columns of the identity. */
static void fsi__mb_fill_axis(fsi__mb_run *run, int axis)
{
    int i, e;
    for (i = 0; i < run->rows; i++) {
        const int last = run->start[i + 1] - 1, known = fsi__mb_known(run, run->vertex[i], axis);
        for (e = run->start[i]; e < last; e++)
            run->value[e] = known || fsi__mb_known(run, run->vertex[run->col[e]], axis) ? 0 : run->stiff[e];
        run->value[last] = known ? 1 : fsi__mb_diagonal(run, i, axis);
    }
}

/* The factor of each axis; where all of the surface lies on walls there is none. */
static fsi_status fsi__mb_factor(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    fsi_ldlt_desc d = fsi_ldlt_default_desc();
    fsi_csr c;
    int a;
    d.context = s->context;
    memset(&c, 0, sizeof c);
    c.rows = c.cols = run->rows;
    c.block = 1;
    c.start = run->start;
    c.col = run->col;
    c.value = run->value;
    for (a = 0; a < s->dim && run->rows > 0; a++) {
        fsi__mb_fill_axis(run, a);
        FSI__TRY(fsi__ldlt_take(&run->im->factor[a], &c, &d));
        FSI__TRY(fsi_ldlt_factor(run->im->factor[a], &c));
    }
    return FSI_OK;
}

/* y = C^-1 b of an axis, of the membrane alone: b is 0 where a component is known. */
static fsi_status fsi__mb_solve_axis(fsi__mb_run *run, int axis)
{
    int i;
    memset(run->y, 0, (size_t)run->s->front->vertex_count * sizeof(double));
    if (run->rows == 0) return FSI_OK;
    run->stats.responses++;
    for (i = 0; i < run->rows; i++) run->given[i] = run->b[run->vertex[i]];
    FSI__TRY(fsi_ldlt_solve(run->im->factor[axis], run->given, run->solved));
    for (i = 0; i < run->rows; i++) run->y[run->vertex[i]] = run->solved[i];
    return FSI_OK;
}

/* y = C x of an axis, for components that walls do not hold; known ones included. */
static void fsi__mb_times(const fsi__mb_run *run, int axis, const double *x, double *y)
{
    int i, e;
    memset(y, 0, (size_t)run->s->front->vertex_count * sizeof(double));
    for (i = 0; i < run->rows; i++) {
        const double own = x[run->vertex[i]];
        double sum = fsi__mb_diagonal(run, i, axis) * own;
        for (e = run->start[i]; e < run->start[i + 1] - 1; e++) {
            sum += run->stiff[e] * x[run->vertex[run->col[e]]];
            y[run->vertex[run->col[e]]] += run->stiff[e] * own;
        }
        y[run->vertex[i]] = sum;
    }
}

/* ---- bodies in the solve ----------------------------------------------------------------------------------------- */

/* Vertices that lie on a body move with it, v_i = J_i y, y its velocity and angular velocity. With free vertices F and
   these, B, and C = [C_FF C_FB; C_BF C_BB] by axis,

      v = C_FF^-1 load_F + Phi y,    Phi = J on B, -C_FF^-1 C_FB J on F:  how the membrane moves when bodies do
      (M + Phi^T C Phi) y = M y_before + Phi^T load                      over all bodies; Phi^T C Phi = J^T (C Phi)_B

   A column of Phi and an axis are a mode. Translations move one axis, rotations two. */
FSI_FN int fsi__mb_modes(int dim) { return dim == 3 ? 9 : 4; }
FSI_FN int fsi__mb_dofs(int dim) { return dim == 3 ? 6 : 3; }
static void fsi__mb_mode(int dim, int mode, int *dof, int *axis)
{
    const int turn = mode - dim, about = dim == 3 ? turn / 2 : 2; /* axis of the rotation */
    *dof = mode < dim ? mode : dim + (dim == 3 ? about : 0);
    *axis = mode < dim ? mode : (about + 1 + turn % 2) % 3;
}

/* J of a vertex: its velocity along an axis when its body has the velocity 1 along `dof`. */
static double fsi__mb_jacobian(const fsi__mb_run *run, int i, int axis, int dof)
{
    const int dim = run->s->dim, about = dim == 3 ? dof - 3 : 2;
    double e[3] = { 0, 0, 0 };
    if (dof < dim) return dof == axis;
    e[about] = 1;
    return fsi__d3_axis(fsi__d3_cross(fsi__d3_at(e), fsi__d3_diff(run->s->front->position[i],
        run->body[run->touch[i]].pose.position)), axis);
}

/* Where a body's coordinate stands in `before` and `after`. */
FSI_FN int fsi__mb_number(int dim, int dof) { return dof < dim ? dof : dim == 3 ? dof : 5; }

/* M y. */
static void fsi__mb_mass_times(const fsi__mb_body *b, const double *y, double *to)
{
    int k;
    for (k = 0; k < 3; k++) to[k] = b->mass * y[k];
    fsi__d3_put(to + 3, fsi__d9_mul(b->inertia, fsi__d3_at(y + 3)));
}

static void fsi__mb_take_modes(fsi__mb_run *run, fsi__arena *a)
{
    const size_t n = (size_t)run->slots * (size_t)fsi__mb_modes(run->s->dim) * (size_t)run->s->front->vertex_count;
    run->mode = (double *)fsi__take(a, n, sizeof(double));
}

/* One mode, and its column of Phi^T C Phi. */
static fsi_status fsi__mb_make_mode(fsi__mb_run *run, int body, int mode)
{
    const int dim = run->s->dim, count = run->s->front->vertex_count, dofs = fsi__mb_dofs(dim);
    double *phi = run->mode + ((size_t)run->body[body].slot * (size_t)fsi__mb_modes(dim) + (size_t)mode)
        * (size_t)count;
    int i, d, dof, axis;
    fsi__mb_mode(dim, mode, &dof, &axis);
    for (i = 0; i < count; i++)
        phi[i] = run->touch[i] == body && !(run->held[i] & (1 << axis | FSI__MB_IDLE))
            ? fsi__mb_jacobian(run, i, axis, dof) : 0;
    fsi__mb_times(run, axis, phi, run->b);
    for (i = 0; i < count; i++) run->b[i] = fsi__mb_known(run, i, axis) ? 0 : -run->b[i];
    FSI__TRY(fsi__mb_solve_axis(run, axis));
    for (i = 0; i < count; i++) phi[i] += run->y[i];

    /* J^T (C Phi)_B, for all bodies. */
    fsi__mb_times(run, axis, phi, run->b);
    for (i = 0; i < count; i++) {
        if (run->touch[i] < 0 || run->held[i] & (1 << axis | FSI__MB_IDLE)) continue;
        for (d = 0; d < dofs; d++)
            run->whole[(run->body[run->touch[i]].slot * dofs + d) * run->unknowns + run->body[body].slot * dofs + dof]
                += fsi__mb_jacobian(run, i, axis, d) * run->b[i];
    }
    return FSI_OK;
}

/* Adds M; the factor of what the solve does not know of bodies. Rows of bodies that it does not move are those of the
   identity. */
static fsi_status fsi__mb_factor_bodies(fsi__mb_run *run)
{
    const int dim = run->s->dim, dofs = fsi__mb_dofs(dim), n = run->unknowns;
    int b, c, d, e, i, j;
    for (b = 0; b < run->world->count; b++) {
        const fsi__mb_body *body = &run->body[b];
        if (body->slot < 0) continue;
        for (d = 0; d < dofs; d++) {
            double unit[6] = { 0, 0, 0, 0, 0, 0 }, column[6];
            unit[fsi__mb_number(dim, d)] = 1;
            fsi__mb_mass_times(body, unit, column);
            for (e = 0; e < dofs && body->free; e++)
                run->whole[(body->slot * dofs + e) * n + body->slot * dofs + d] += column[fsi__mb_number(dim, e)];
        }
    }
    memcpy(run->schur, run->whole, (size_t)n * (size_t)n * sizeof(double));
    for (b = 0; b < run->world->count; b++)
        for (d = 0; d < dofs && run->body[b].slot >= 0 && !run->body[b].free; d++) {
            c = run->body[b].slot * dofs + d;
            for (i = 0; i < n; i++) run->schur[c * n + i] = run->schur[i * n + c] = i == c;
        }
    for (i = 0; i < n; i++)
        for (j = 0; j < i; j++)
            run->schur[i * n + j] = run->schur[j * n + i] = (run->schur[i * n + j] + run->schur[j * n + i]) / 2;
    return n > 0 ? fsi_dense_cholesky(run->s->context, n, run->schur) : FSI_OK;
}

/* Modes of all bodies that vertices lie on, and the Schur complement. */
static fsi_status fsi__mb_find_modes(fsi__mb_run *run)
{
    const int modes = fsi__mb_modes(run->s->dim);
    int b, k;
    run->slots = run->unknowns = 0;
    if (!run->world) return FSI_OK;
    for (b = 0; b < run->world->count; b++)
        run->body[b].slot = run->body[b].alive && run->body[b].touched ? run->slots++ : -1;
    run->unknowns = run->slots * fsi__mb_dofs(run->s->dim);
    FSI__TRY(fsi__mb_take(run, &run->im->modes, fsi__mb_take_modes));
    memset(run->whole, 0, (size_t)run->unknowns * (size_t)run->unknowns * sizeof(double));
    for (b = 0; b < run->world->count; b++)
        for (k = 0; k < modes && run->body[b].slot >= 0; k++) FSI__TRY(fsi__mb_make_mode(run, b, k));
    return fsi__mb_factor_bodies(run);
}

/* Velocities of bodies into `reduced`: of what their momentum (with `own`) and the load of the membrane make of them.
   Those that the solve does not move have theirs with `own`, else 0. */
static fsi_status fsi__mb_solve_bodies(fsi__mb_run *run, int own)
{
    const int dim = run->s->dim, dofs = fsi__mb_dofs(dim), modes = fsi__mb_modes(dim), n = run->unknowns;
    const size_t count = (size_t)run->s->front->vertex_count;
    double *x = run->reduced;
    size_t i;
    int b, c, d, k, dof, axis;
    for (b = 0; b < n; b++) x[b] = 0;
    for (b = 0; b < run->world->count; b++) {
        const fsi__mb_body *body = &run->body[b];
        double momentum[6];
        fsi__mb_mass_times(body, body->before, momentum);
        for (k = 0; k < modes && body->slot >= 0 && body->free; k++) {
            const double *phi = run->mode + ((size_t)body->slot * (size_t)modes + (size_t)k) * count;
            double sum = 0;
            fsi__mb_mode(dim, k, &dof, &axis);
            for (i = 0; i < count; i++) sum += phi[i] * run->load[axis][i];
            x[body->slot * dofs + dof] += sum;
        }
        for (d = 0; d < dofs && body->slot >= 0 && own; d++)
            x[body->slot * dofs + d] += body->free ? momentum[fsi__mb_number(dim, d)] : 0;
    }

    /* Known velocities, to the right side. */
    for (b = 0; b < run->world->count && own; b++)
        for (d = 0; d < dofs && run->body[b].slot >= 0 && !run->body[b].free; d++) {
            const double known = run->body[b].before[fsi__mb_number(dim, d)];
            for (c = 0; c < n; c++) x[c] -= run->whole[c * n + run->body[b].slot * dofs + d] * known;
        }
    for (b = 0; b < run->world->count; b++)
        for (d = 0; d < dofs && run->body[b].slot >= 0 && !run->body[b].free; d++)
            x[run->body[b].slot * dofs + d] = own ? run->body[b].before[fsi__mb_number(dim, d)] : 0;
    return fsi_dense_cholesky_solve(n, run->schur, x);
}

/* answer = velocities of the membrane under `load`, by axis, and of bodies on it, into `reduced`. own: bodies have
   their momentum and known velocities. */
static fsi_status fsi__mb_solve_all(fsi__mb_run *run, int own)
{
    const int dim = run->s->dim, dofs = fsi__mb_dofs(dim), modes = fsi__mb_modes(dim);
    const size_t count = (size_t)run->s->front->vertex_count;
    size_t i;
    int a, b, k, dof, axis;
    for (a = 0; a < dim; a++) {
        for (i = 0; i < count; i++) run->b[i] = fsi__mb_known(run, (int)i, a) ? 0 : run->load[a][i];
        FSI__TRY(fsi__mb_solve_axis(run, a));
        memcpy(run->answer[a], run->y, count * sizeof(double));
    }
    if (run->slots == 0) return FSI_OK;

    /* What bodies do to it. */
    FSI__TRY(fsi__mb_solve_bodies(run, own));
    for (b = 0; b < run->world->count; b++)
        for (k = 0; k < modes && run->body[b].slot >= 0; k++) {
            const double *phi = run->mode + ((size_t)run->body[b].slot * (size_t)modes + (size_t)k) * count;
            fsi__mb_mode(dim, k, &dof, &axis);
            for (i = 0; i < count; i++)
                run->answer[axis][i] += phi[i] * run->reduced[run->body[b].slot * dofs + dof];
        }
    return FSI_OK;
}

/* ---- the pressure ------------------------------------------------------------------------------------------------ */

/* W C^-1 W^T of impulses at faces between liquid and air. */
static fsi_status fsi__mb_respond(void *user, fsi_context *context, const double *impulse, double *change)
{
    fsi__mb_run *run = (fsi__mb_run *)user;
    const fsi__mb_rows *r = &run->im->rows;
    int a;
    (void)context;
    for (a = 0; a < run->s->dim; a++) {
        memset(run->load[a], 0, (size_t)run->s->front->vertex_count * sizeof(double));
        fsi__mb_rows_scatter(r, a, impulse, run->load[a]);
    }
    FSI__TRY(fsi__mb_solve_all(run, 0));
    for (a = 0; a < run->s->dim; a++) fsi__mb_rows_gather(r, a, run->answer[a], change);
    return FSI_OK;
}

/* Velocities of the faces at the surface without pressure, W C^-1 r, and their compliances, rho V W C^-1 W^T 1. */
static fsi_status fsi__mb_prepare(fsi__mb_run *run)
{
    const fsi__mb_rows *r = &run->im->rows;
    int a, f;
    for (a = 0; a < run->s->dim; a++)
        memcpy(run->load[a], run->r[a], (size_t)run->s->front->vertex_count * sizeof(double));
    FSI__TRY(fsi__mb_solve_all(run, 1));
    for (a = 0; a < run->s->dim; a++) fsi__mb_rows_gather(r, a, run->answer[a], run->found);
    for (f = 0; f < r->count; f++) {
        run->velocity[f] = (fsi_real)run->found[f];
        run->push[f] = 1;
    }
    FSI__TRY(fsi__mb_respond(run, run->s->context, run->push, run->found));
    for (f = 0; f < r->count; f++) run->yielding[f] = (fsi_real)fmax(0, run->mass * run->found[f]);
    return FSI_OK;
}

static fsi_status fsi__mb_solve(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    fsi__mb_impl *im = run->im;
    fsi_pressure_flow flow = fsi_pressure_default_flow();
    fsi_pressure_solid solid;
    int a;

    /* The surface, as a solid that yields. */
    memset(&solid, 0, sizeof solid);
    solid.faces = im->faces;
    solid.velocity = run->velocity;
    solid.face_impulse = run->push;
    solid.respond = fsi__mb_respond;
    solid.user = run;
    solid.yielding = run->yielding;

    /* The liquid. */
    for (a = 0; a < s->dim; a++) flow.u[a] = im->work[a];
    flow.cell = run->cell;
    flow.density = s->desc.density;
    flow.dt = (fsi_real)run->dt;
    flow.solids = &solid;
    flow.solid_count = 1;
    flow.pressure = im->pressure;
    im->solver->desc.tolerance = s->desc.pressure_tolerance;
    im->solver->desc.max_iters = s->desc.pressure_iters;
    im->solver->desc.degrade = 1;
    FSI__TRY(fsi_pressure_project(im->solver, &flow));
    run->stats.iters += im->solver->stats.iters;
    run->stats.degraded += im->solver->stats.degraded;
    run->stats.divergence = fmax(run->stats.divergence, im->solver->stats.divergence);
    return FSI_OK;
}

/* What the membrane did to bodies, also into f: load - C v at the vertices on them. */
static void fsi__mb_push_bodies(fsi__mb_run *run)
{
    const fsi_front *f = run->s->front;
    double *push = run->f;
    int a, i;
    memset(push, 0, 3 * (size_t)f->vertex_count * sizeof(double));
    for (a = 0; a < f->dim; a++) {
        fsi__mb_times(run, a, run->answer[a], run->y);
        for (i = 0; i < f->vertex_count; i++)
            if (run->touch[i] >= 0 && !(run->held[i] & (1 << a | FSI__MB_IDLE)))
                push[3 * i + a] = run->load[a][i] - run->y[i];
    }
    for (i = 0; i < f->vertex_count; i++) {
        fsi__mb_body *body = run->touch[i] >= 0 ? &run->body[run->touch[i]] : NULL;
        const fsi__d3 p = fsi__d3_at(push + 3 * i);
        if (!body) continue;
        body->impulse = fsi__d3_add(body->impulse, p);
        body->moment = fsi__d3_add(body->moment,
            fsi__d3_cross(fsi__d3_diff(f->position[i], body->pose.position), p));
    }
}

/* The rim of the wetted part into b: corners of elements with tension. Into y: vertices that share an element on their
   body with one that is not at the rim. */
static void fsi__mb_mark_rims(fsi__mb_run *run)
{
    const fsi_front *f = run->s->front;
    int i, t, c;
    for (i = 0; i < f->vertex_count; i++) run->b[i] = run->y[i] = 0;
    for (t = 0; t < f->element_count; t++)
        for (c = 0; c < f->dim && !run->wet[t] && !run->skip[t]; c++) run->b[f->elements[f->dim * t + c]] = 1;
    for (t = 0; t < f->element_count; t++) {
        const int *corner = f->elements + f->dim * t;
        int inner = 0;
        for (c = 0; c < f->dim && run->wet[t]; c++) inner |= !(run->b[corner[c]] > 0);
        for (c = 0; c < f->dim && inner; c++) run->y[corner[c]] = 1;
    }
}

/* A vertex at the rim that would have to be pulled by its body is let go: from the next substep on it moves by itself.
   Then the elements on the body pull it, too. Bodies with angles below 180 degrees may pull: there only a part that has
   no vertex but at its rim is let go, as where a neck gets thin. */
static void fsi__mb_let_go(fsi__mb_run *run)
{
    fsi_front *f = run->s->front;
    const double reach = FSI__MB_CLOSE * (double)run->s->desc.dx;
    double *push = run->f, d;
    fsi__d3 n, p;
    int i, t, c;
    fsi__mb_mark_rims(run);
    for (t = 0; t < f->element_count; t++)
        for (c = 0; c < (f->dim == 3 ? 3 : 1) && run->wet[t]; c++) {
            const int i0 = f->elements[f->dim * t + c], i1 = f->elements[f->dim * t + (c + 1) % f->dim];
            const double w = run->dt * (double)run->s->desc.surface_tension * (double)run->weight[f->dim * t + c];
            p = fsi__d3_scale(fsi__d3_diff(f->position[i1], f->position[i0]), w);
            fsi__d3_put(push + 3 * i0, fsi__d3_add(fsi__d3_at(push + 3 * i0), p));
            fsi__d3_put(push + 3 * i1, fsi__d3_sub(fsi__d3_at(push + 3 * i1), p));
        }
    for (i = 0; i < f->vertex_count; i++) {
        if (run->touch[i] < 0 || !(run->b[i] > 0)) continue;
        if (run->body[run->touch[i]].wetting && run->y[i] > 0) continue;
        if (fsi__mb_nearest_body(run, f->position[i], reach, &d, &n) < 0 || !(fsi__d3_dot(fsi__d3_at(push + 3 * i), n)
            > 0)) continue;
        f->flags[i] &= ~(uint32_t)FSI_FRONT_FIXED;
        run->stats.released++;
    }
}

/* v = C^-1 (r + W^T j), u = W v at the surface. Vertices that only touch a wall do not go through it. */
static fsi_status fsi__mb_write_back(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    const fsi__mb_rows *r = &run->im->rows;
    const int dofs = fsi__mb_dofs(s->dim);
    int a, i, f, b, d;
    for (a = 0; a < s->dim; a++) {
        memcpy(run->load[a], run->r[a], (size_t)s->front->vertex_count * sizeof(double));
        fsi__mb_rows_scatter(r, a, run->push, run->load[a]);
    }
    FSI__TRY(fsi__mb_solve_all(run, 1));
    for (a = 0; a < s->dim; a++) {
        fsi__mb_rows_gather(r, a, run->answer[a], run->found);
        for (i = 0; i < s->front->vertex_count; i++)
            if (!(run->held[i] & FSI__MB_IDLE)) run->v[a][i] = run->answer[a][i];
        for (f = r->first[a]; f < r->first[a + 1]; f++)
            run->im->work[a]->value[r->entry[f]] = (fsi_real)run->found[f];
    }
    for (i = 0; i < s->front->vertex_count; i++)
        s->front->velocity[i] = fsi_v3((fsi_real)run->v[0][i], (fsi_real)run->v[1][i],
            s->dim == 3 ? (fsi_real)run->v[2][i] : 0);

    /* Bodies. */
    if (run->slots == 0) return FSI_OK;
    for (b = 0; b < run->world->count; b++)
        for (d = 0; d < dofs && run->body[b].slot >= 0; d++)
            run->body[b].after[fsi__mb_number(s->dim, d)] = run->reduced[run->body[b].slot * dofs + d];
    fsi__mb_push_bodies(run);
    fsi__mb_let_go(run);
    return FSI_OK;
}

/* Bodies get what the solve gave them, and collide; they go where their velocities bring them, and what lies on them
   goes along. */
static fsi_status fsi__mb_advance_bodies(fsi__mb_run *run)
{
    fsi_rigid *w = run->world;
    fsi_front *f = run->s->front;
    int b, i;
    if (!w) return FSI_OK;
    for (b = 0; b < w->count; b++)
        if (run->body[b].slot >= 0) {
            fsi__rg_push(w, b, run->body[b].impulse, run->body[b].moment);
            fsi__rg_wake_pushed(w, b);
        }
    fsi__rg_solve(w, run->dt, NULL, 0);
    FSI__TRY(fsi__mb_of_world(run, fsi__rg_advance(w, run->dt, run->fn)));
    fsi__rg_accept(w, run->dt);

    /* Where they are now, and how fast what lies on them is. */
    for (b = 0; b < w->count; b++)
        run->body[b].to = run->body[b].alive ? fsi__rg_bodies(w)[b].start : run->body[b].pose;
    for (i = 0; i < f->vertex_count; i++)
        if (run->touch[i] >= 0) {
            const fsi__ct_body *m = &fsi__rg_bodies(w)[run->touch[i]];
            const fsi__d3 arm = fsi__d3_diff(f->position[i], run->body[run->touch[i]].pose.position);
            f->velocity[i] = fsi__d3_real(fsi__d3_add(m->v, fsi__d3_cross(m->w, arm)));
        }
    fsi__mb_set_poses(run);
    for (i = 0; i < f->vertex_count; i++)
        f->position[i] = fsi__d3_real(fsi__d3_add(fsi__d3_of(f->position[i]), fsi__d3_at(run->slide + 3 * i)));
    fsi__mb_stay_out(run, 0);
    return fsi__front_book(f);
}

/* ---- step -------------------------------------------------------------------------------------------------------- */

/* Gravity, to faces and vertices. */
static void fsi__mb_fall(fsi__mb_run *run)
{
    const fsi_grid *g = run->s->grid;
    const size_t entries = (size_t)g->block_count * (size_t)g->block_cells;
    size_t e;
    int a, i;
    for (a = 0; a < g->dim; a++) {
        const double more = run->dt * fsi__d3_axis(fsi__mb_gravity(run->s), a);
        fsi_real *u = run->im->work[a]->value;
        for (e = 0; e < entries; e++) u[e] += (fsi_real)more;
        for (i = 0; i < run->s->front->vertex_count; i++)
            if (!(run->held[i] & (1 << a | FSI__MB_IDLE))) run->v[a][i] += more;
    }
}

/* The fastest face or vertex. */
static double fsi__mb_fastest(const fsi__mb_run *run, fsi_field *const u[3])
{
    const fsi_grid *g = run->s->grid;
    const fsi_front *f = run->s->front;
    const size_t entries = (size_t)g->block_count * (size_t)g->block_cells;
    double most = 0, speed;
    size_t e;
    int a, i;
    for (a = 0; a < g->dim; a++)
        for (e = 0; e < entries; e++) {
            speed = fabs((double)u[a]->value[e]);
            if (speed > most && run->known[a][e] == 1) most = speed;
        }
    for (i = 0; i < f->vertex_count; i++) {
        speed = (double)fsi_v3_norm(f->velocity[i]);
        if (speed > most) most = speed;
    }
    speed = fsi__mb_fastest_body(run);
    return speed > most ? speed : most;
}

/* Everything about the solve that a look needs as well: momentum, energies. */
static void fsi__mb_measure(fsi__mb_run *run)
{
    const fsi_membrane *s = run->s;
    const fsi_front *f = s->front;
    fsi__d3 center = fsi__d3_zero();
    double energy = 0;
    int t, c, a;
    fsi__mb_sum(run, run->stats.momentum, run->stats.mass, &run->stats.kinetic_energy);
    run->stats.max_speed = fsi__mb_fastest(run, run->im->work);
    run->stats.contacts = 0;
    for (a = 0; a < f->vertex_count; a++) run->stats.contacts += fsi__mb_is_held(f, a);
    for (t = 0; t < f->element_count; t++) {
        const int *corner = f->elements + f->dim * t;
        const double v = fsi__fr_volume_of(f->dim, f->position, corner, s->grid->origin);
        fsi__d3 x = fsi__d3_zero();
        for (c = 0; c < f->dim; c++) x = fsi__d3_add(x, fsi__d3_diff(f->position[corner[c]], s->grid->origin));
        center = fsi__d3_madd(center, v / (f->dim + 1), x);
        if (run->skip[t]) {
            const uint32_t walls = fsi__mb_walls_of(f, t);
            energy += fsi__mb_wall_energy(s, fsi__mb_first_wall(walls)) * fsi__mb_wall_area(f, t, walls) / (f->dim - 1);
        } else energy += (double)s->desc.surface_tension * fsi__fr_area_of(f->dim, f->position, corner)
            * (run->wet[t] ? -run->body[run->touch[corner[0]]].cosine : 1);
    }
    run->stats.surface_energy = energy;
    run->stats.volume = 0;
    for (a = 0; a < f->piece_count; a++) run->stats.volume += f->piece[a].volume;
    center = fsi__d3_madd(center, run->stats.volume, fsi__d3_of(s->grid->origin));
    run->stats.potential_energy = -(double)s->desc.density * fsi__d3_dot(center, fsi__mb_gravity(s));
}

/* The solve of liquid and membrane where they are. */
static fsi_status fsi__mb_couple(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    double before[3], after[3], mass[3], energy, clock[4];
    int a;
    clock[0] = fsi__now(s->context);
    FSI__TRY(fsi__mb_locate(run));
    FSI__TRY(fsi__mb_predict_bodies(run));
    clock[1] = fsi__now(s->context);
    fsi__mb_clear_faces(run);
    fsi__mb_sum(run, before, mass, &energy);
    for (a = 0; a < s->dim; a++) run->stats.moved_momentum[a] += before[a] - run->stats.momentum[a];
    run->stats.joined = 0;
    for (a = 0; a < s->dim; a++) fsi__mb_join_axis(run, a);
    fsi__mb_fall(run);
    fsi__mb_clear_faces(run);
    fsi__mb_sum(run, before, mass, &energy);
    FSI__TRY(fsi__mb_assemble(run));
    FSI__TRY(fsi__mb_factor(run));
    FSI__TRY(fsi__mb_find_modes(run));
    clock[2] = fsi__now(s->context);
    FSI__TRY(fsi__mb_prepare(run));
    FSI__TRY(fsi__mb_solve(run));
    FSI__TRY(fsi__mb_write_back(run));
    clock[3] = fsi__now(s->context);

    /* What walls gave: all that the solve changed, but for what bodies got and for what rest weighs more or less. */
    fsi__mb_sum(run, after, mass, &energy);
    for (a = 0; a < s->dim; a++) {
        double given = 0;
        int b;
        for (b = 0; run->body && b < run->world->count; b++) given += fsi__d3_axis(run->body[b].impulse, a);
        run->stats.body_impulse[a] += given;
        run->stats.wall_impulse[a] += after[a] - before[a] - run->dt * run->balance[a] + given;
        run->stats.momentum[a] = after[a];
    }
    run->stats.seconds_rows += clock[1] - clock[0];
    run->stats.seconds_factor += clock[2] - clock[1];
    run->stats.seconds_pressure += clock[3] - clock[2];
    return FSI_OK;
}

static void fsi__mb_copy_field(fsi_field *to, const fsi_field *from)
{
    const fsi_grid *g = to->grid;
    memcpy(to->value, from->value, (size_t)g->block_count * (size_t)g->block_cells * sizeof(fsi_real));
}

/* One substep. */
static fsi_status fsi__mb_substep(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    const double begin = fsi__now(s->context);
    int a;
    FSI__TRY(fsi__mb_extend(run));
    FSI__TRY(fsi__mb_carry(run));
    FSI__TRY(fsi__mb_move(run));
    run->stats.seconds_move += fsi__now(s->context) - begin;
    FSI__TRY(fsi__mb_couple(run));
    for (a = 0; a < s->dim; a++) fsi__mb_copy_field(s->u[a], run->im->work[a]);
    return fsi__mb_advance_bodies(run);
}

/* What there is: kept, for a step that fails, and measured. */
static fsi_status fsi__mb_begin(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    int a;
    for (a = 0; a < s->dim; a++) fsi__mb_copy_field(run->im->kept[a], s->u[a]);
    FSI__TRY(fsi__mb_find_bodies(run));
    FSI__TRY(fsi_front_cross_lines(run->im->lines, s->front));
    FSI__TRY(fsi__mb_fit_blocks(run));
    for (a = 0; a < s->dim; a++) fsi__mb_copy_field(run->im->work[a], s->u[a]);
    FSI__TRY(fsi__mb_locate(run));
    fsi__mb_clear_faces(run);
    fsi__mb_measure(run);
    return FSI_OK;
}

/* Substeps of equal length, as long as the fastest allows; the last `max_substeps` allows is as long as it must be. */
static fsi_status fsi__mb_advance(fsi__mb_run *run, double length)
{
    fsi_membrane *s = run->s;
    const double reach = (double)s->desc.cfl * (double)s->desc.dx;
    double left = length;
    while (left > 0) {
        const double speed = fsi__mb_fastest(run, s->u);
        double parts = ceil(left * speed / reach - 1e-9);
        const int more = s->desc.max_substeps - run->stats.substeps;
        if (parts > more) {
            run->stats.degraded++;
            parts = more;
        }
        run->dt = parts > 1 ? left / parts : left;
        run->left = left;
        left = parts > 1 ? left - run->dt : 0;
        run->stats.substeps++;
        run->stats.substep = run->dt;
        run->stats.cfl = fmax(run->stats.cfl, run->dt * speed / (double)s->desc.dx);
        FSI__TRY(fsi__mb_substep(run));
    }
    return FSI_OK;
}

/* The state as the step found it: the front's arrays have held it before. */
static void fsi__mb_take_back(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    const fsi_error error = s->context->error;
    int a;
    fsi__front_copy(s->front, run->im->backup, run->fn);
    for (a = 0; a < s->dim; a++) fsi__mb_copy_field(s->u[a], run->im->kept[a]);
    s->context->error = error;
}

static void fsi__mb_set_up(fsi__mb_run *run, fsi_membrane *s, const char *fn)
{
    const double dx = (double)s->desc.dx;
    memset(run, 0, sizeof *run);
    run->s = s;
    run->im = (fsi__mb_impl *)s->impl;
    run->fn = fn;
    run->world = s->desc.world;
    run->h = s->desc.thickness > 0 ? (double)s->desc.thickness : dx / 2;
    run->mass = (double)s->desc.density * dx * dx * (s->dim == 3 ? dx : 1);
    run->friction = s->desc.line_friction > 0 ? (double)s->desc.line_friction
        : sqrt((double)s->desc.density * (double)s->desc.surface_tension * dx);
}

/* What a step leaves in stats. */
static void fsi__mb_fill_stats(fsi__mb_run *run)
{
    fsi_membrane *s = run->s;
    const int *n = run->im->lines->n;
    const size_t cells = (size_t)n[0] * (size_t)n[1] * (size_t)n[2];
    size_t i;
    fsi__mb_measure(run);
    run->stats.liquid_cells = 0;
    for (i = 0; i < cells; i++) run->stats.liquid_cells += run->im->lines->inside[i];
    run->stats.blocks = s->grid->block_count;
    run->stats.faces = run->im->rows.count;
    run->stats.vertices = s->front->vertex_count;
    run->stats.elements = s->front->element_count;
    run->stats.pieces = s->front->piece_count;
    run->stats.bytes = s->context->bytes;
    run->stats.allocs = s->context->allocs;
    s->stats = run->stats;
}

FSI_API fsi_status fsi_membrane_step(fsi_membrane *s, fsi_real dt)
{
    static const char fn[] = "fsi_membrane_step";
    fsi__mb_run run;
    fsi_status status;
    double begin;
    FSI__TRY(fsi__mb_check(s));
    FSI__TRY(fsi__check_dt(s->context, dt, fn));
    begin = fsi__now(s->context);
    fsi__mb_set_up(&run, s, fn);
    FSI__TRY(fsi__front_copy(run.im->backup, s->front, fn));
    status = fsi__mb_begin(&run);
    if (status == FSI_OK && run.world && dt > 0) status = fsi__mb_begin_bodies(&run, (double)dt);
    if (status == FSI_OK) status = fsi__mb_advance(&run, (double)dt);
    if (status != FSI_OK) {
        if (run.begun) fsi__rg_drop(run.world);
        fsi__mb_take_back(&run);
        return status;
    }
    if (run.begun) fsi__rg_commit(run.world, (double)dt);
    s->time += (double)dt;
    run.stats.seconds_other = fsi__now(s->context) - begin - run.stats.seconds_move - run.stats.seconds_rows
        - run.stats.seconds_factor - run.stats.seconds_pressure;
    fsi__mb_fill_stats(&run);
    if (run.stats.degraded) fsi__warn(s->context, "%s: substeps too long, or pressures not converged: %d", fn,
        run.stats.degraded);
    return FSI_OK;
}

FSI__COLD_BEGIN

/* ---- create ------------------------------------------------------------------------------------------------------ */

FSI_API fsi_membrane_desc fsi_membrane_default_desc(void)
{
    fsi_membrane_desc d;
    int k;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('M', fsi_membrane_desc);
    d.dim = 3;
    d.n[0] = d.n[1] = d.n[2] = 64;
    d.dx = (fsi_real)(1.0 / 64);
    d.density = 1000;
    d.surface_tension = (fsi_real)0.0728;
    d.gravity = fsi_v3(0, 0, (fsi_real)-9.81);
    d.damping = (fsi_real)0.25;
    for (k = 0; k < 6; k++) d.wall_angle[k] = 90;
    d.box = 2;
    d.cfl = (fsi_real)0.25;
    d.max_substeps = 50;
    d.pressure_tolerance = sizeof(fsi_real) == 8 ? 1e-8 : 1e-6;
    d.pressure_iters = 200;
    return d;
}

/* A world of the same kind, without trees, that nobody else is stepping. */
static fsi_status fsi__mb_check_world(const fsi_membrane_desc *d, const char *fn)
{
    const fsi_rigid *w = d->world;
    if (!w) return FSI_OK;
    if (fsi__rg_check(w) != FSI_OK)
        return fsi__fail(d->context, FSI_ERROR_COOKIE, fn, -1, 0,
            "desc.world was not made by fsi_rigid_create of this version and precision");
    if (w->desc.dim != d->dim)
        return fsi__fail(d->context, FSI_ERROR_ARGUMENT, fn, -1, w->desc.dim, "desc.world's dim is %d, the liquid's %d",
            w->desc.dim, d->dim);
    return FSI_OK;
}

static fsi_status fsi__mb_check_desc(const fsi_membrane_desc *d, const char *fn)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_membrane_desc, dim, FSI__INT, 2, 3, 0),
        FSI__FIELD(fsi_membrane_desc, n[0], FSI__INT, 2, 4096, 0),
        FSI__FIELD(fsi_membrane_desc, n[1], FSI__INT, 2, 4096, 0),
        FSI__FIELD(fsi_membrane_desc, dx, FSI__REAL, 1e-9, 1e6, 0), FSI__FINITE(fsi_membrane_desc, origin),
        FSI__FIELD(fsi_membrane_desc, density, FSI__REAL, 1e-6, 1e6, 0),
        FSI__FIELD(fsi_membrane_desc, surface_tension, FSI__REAL, 0, 1e6, FSI__ABOVE),
        FSI__FINITE(fsi_membrane_desc, gravity),
        FSI__FIELD(fsi_membrane_desc, attribute_count, FSI__INT, 0, 64, 0),
        FSI__FIELD(fsi_membrane_desc, thickness, FSI__REAL, 0, 1e8, 0),
        FSI__FIELD(fsi_membrane_desc, whole_faces, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_membrane_desc, damping, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_membrane_desc, wall_angle[0], FSI__REAL, 10, 180, 0),
        FSI__FIELD(fsi_membrane_desc, wall_angle[1], FSI__REAL, 10, 180, 0),
        FSI__FIELD(fsi_membrane_desc, wall_angle[2], FSI__REAL, 10, 180, 0),
        FSI__FIELD(fsi_membrane_desc, wall_angle[3], FSI__REAL, 10, 180, 0),
        FSI__FIELD(fsi_membrane_desc, wall_angle[4], FSI__REAL, 10, 180, 0),
        FSI__FIELD(fsi_membrane_desc, wall_angle[5], FSI__REAL, 10, 180, 0),
        FSI__FIELD(fsi_membrane_desc, line_friction, FSI__REAL, 0, 1e6, 0),
        FSI__FIELD(fsi_membrane_desc, box, FSI__REAL, 1, 4, 0),
        FSI__FIELD(fsi_membrane_desc, topology, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_membrane_desc, cfl, FSI__REAL, 0.05, 2, 0),
        FSI__FIELD(fsi_membrane_desc, max_substeps, FSI__INT, 1, 100000, 0),
        FSI__FIELD(fsi_membrane_desc, pressure_tolerance, FSI__DOUBLE, 0, 1, 0),
        FSI__FIELD(fsi_membrane_desc, pressure_iters, FSI__INT, 1, 100000, 0),
        FSI__FIELD(fsi_membrane_desc, reserve, FSI__INT, 0, 150000000, 0)
    };
    const fsi__where at = { fn, "desc.", -1, d->dim };

    /* What tables cannot say. */
    FSI__TRY(FSI__CHECK_TABLE(d->context, &at, d, rows));
    if (d->dim == 3 && (d->n[2] < 2 || d->n[2] > 4096))
        return fsi__fail(d->context, FSI_ERROR_ARGUMENT, fn, 2, d->n[2], "desc.n[2] is %d, must be 2 to 4096",
            d->n[2]);
    if (d->thickness > 100 * d->dx || (d->thickness > 0 && d->thickness < d->dx / 1000))
        return fsi__fail(d->context, FSI_ERROR_ARGUMENT, fn, -1, (double)d->thickness,
            "desc.thickness is %g, must be 0.001 to 100 desc.dx", (double)d->thickness);
    return fsi__mb_check_world(d, fn);
}

/* The front of a desc: walls of the box, edges of half a cell. */
static fsi_front_desc fsi__mb_front_desc(const fsi_membrane *s)
{
    const fsi_membrane_desc *d = &s->desc;
    fsi_front_desc f = fsi_front_default_desc();
    f.context = s->context;
    f.dim = d->dim;
    f.attribute_count = d->attribute_count;
    f.length = d->dx / 2;
    f.walls.lo = d->origin;
    f.walls.hi = fsi_v3(d->origin.x + (fsi_real)d->n[0] * d->dx, d->origin.y + (fsi_real)d->n[1] * d->dx,
        d->dim == 3 ? d->origin.z + (fsi_real)d->n[2] * d->dx : FSI_REAL_MAX);
    if (d->dim == 2) f.walls.lo.z = -FSI_REAL_MAX;
    f.keep_volume = 2;
    f.topology = d->topology;
    f.ask = d->ask;
    f.ask_user = d->ask_user;
    f.reserve = d->reserve;
    return f;
}

/* Vertices are in the box. */
static fsi_status fsi__mb_check_places(const fsi_membrane *s, const fsi_front *f, fsi_status bad, const char *fn)
{
    const double snap = FSI__MB_SNAP * (double)s->desc.dx;
    int i, side;
    for (i = 0; i < f->vertex_count; i++)
        for (side = 0; side < 2 * s->dim; side++) {
            const double x = (double)fsi__axis(f->position[i], side >> 1), wall = fsi__mb_wall(s, side);
            if (side & 1 ? x <= wall + snap : x >= wall - snap) continue;
            return fsi__fail(s->context, bad, fn, i, x, "vertex %d is outside of the box", i);
        }
    return FSI_OK;
}

/* The surface of the desc, with edges of the right length: a coarse one needs several rounds. */
static fsi_status fsi__mb_make_front(fsi_membrane *s, const fsi_membrane_desc *given, const char *fn)
{
    fsi_front_desc d = fsi__mb_front_desc(s);
    fsi__mb_impl *im = (fsi__mb_impl *)s->impl;
    int k;
    FSI__TRY(fsi_front_create(&im->backup, &d));
    d.vertices = given->vertices;
    d.vertex_count = given->vertex_count;
    d.elements = given->elements;
    d.element_count = given->element_count;
    d.attributes = given->attributes;
    FSI__TRY(fsi_front_create(&s->front, &d));
    FSI__TRY(fsi__mb_check_places(s, s->front, FSI_ERROR_ARGUMENT, fn));
    for (k = 0; k < 20; k++) {
        fsi__mb_touch_walls(s, NULL);
        FSI__TRY(fsi_front_measure(s->front));
        FSI__TRY(fsi_front_step(s->front, 0));
        if (s->front->stats.splits + s->front->stats.collapses == 0) break;
    }
    fsi__mb_touch_walls(s, NULL);
    return FSI_OK;
}

static fsi_status fsi__mb_make_grid(fsi_membrane *s)
{
    fsi__mb_impl *im = (fsi__mb_impl *)s->impl;
    fsi_grid_desc g = fsi_grid_default_desc();
    fsi_front_lines_desc l = fsi_front_default_lines_desc();
    fsi_pressure_desc p = fsi_pressure_default_desc();
    int a;
    g.context = l.context = p.context = s->context;
    g.dim = l.dim = s->dim;
    g.dx = l.dx = s->desc.dx;
    g.origin = l.origin = s->desc.origin;
    for (a = 0; a < 3; a++) g.n[a] = l.n[a] = a < s->dim ? s->desc.n[a] : 1;
    FSI__TRY(fsi_grid_create(&s->grid, &g));
    FSI__TRY(fsi_front_create_lines(&im->lines, &l));
    for (a = 0; a < s->dim; a++) {
        const fsi_grid_place place = (fsi_grid_place)(FSI_FACES_X + a);
        FSI__TRY(fsi_grid_add_field(s->grid, place, 0, &s->u[a]));
        FSI__TRY(fsi_grid_add_field(s->grid, place, 0, &im->work[a]));
        FSI__TRY(fsi_grid_add_field(s->grid, place, 0, &im->kept[a]));
    }
    FSI__TRY(fsi_grid_add_field(s->grid, FSI_CELLS, 0, &im->pressure));
    s->pressure = im->pressure;
    FSI__TRY(fsi_grid_faces_create(&im->faces, s->context));
    return fsi_pressure_create(&im->solver, &p);
}

static fsi_status fsi__mb_build(fsi_membrane *s, const fsi_membrane_desc *given, const char *fn)
{
    fsi__mb_run run;
    FSI__TRY(fsi__mb_make_grid(s));
    FSI__TRY(fsi__mb_make_front(s, given, fn));
    fsi__mb_set_up(&run, s, fn);
    FSI__TRY(fsi__mb_begin(&run));
    fsi__mb_fill_stats(&run);
    return FSI_OK;
}

FSI_API fsi_status fsi_membrane_create(fsi_membrane **out, const fsi_membrane_desc *desc)
{
    static const char fn[] = "fsi_membrane_create";
    fsi_membrane *s;
    fsi__mb_impl *im;
    fsi_status status;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!desc) return FSI_ERROR_ARGUMENT;
    if (!fsi__is_context(desc->context)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__check_filled(desc->context, fn, desc, FSI__COOKIE('M', fsi_membrane_desc),
        "fsi_membrane_default_desc"));
    FSI__TRY(fsi__mb_check_desc(desc, fn));

    /* The simulator and its private part in one block. */
    s = (fsi_membrane *)fsi__alloc(desc->context, 1, sizeof *s + sizeof *im);
    if (!s) return fsi__fail(desc->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for the simulator");
    im = (fsi__mb_impl *)(void *)(s + 1);
    im->own_context = fsi_default_context();
    s->cookie = FSI__COOKIE('M', fsi_membrane);
    s->context = desc->context ? desc->context : &im->own_context;
    s->desc = *desc;
    s->desc.vertices = NULL;
    s->desc.elements = NULL;
    s->desc.attributes = NULL;
    s->dim = desc->dim;
    s->impl = im;
    status = fsi__mb_build(s, desc, fn);
    if (status != FSI_OK) fsi_membrane_destroy(s);
    else *out = s;
    return status;
}

FSI_API void fsi_membrane_destroy(fsi_membrane *s)
{
    fsi__mb_impl *im;
    int a;
    if (fsi__mb_check(s) != FSI_OK) return;
    im = (fsi__mb_impl *)s->impl;
    for (a = 0; a < 3; a++) fsi_ldlt_destroy(im->factor[a]);
    fsi__mb_rows_free(&im->rows, s->context);
    fsi__arena_free(s->context, &im->surface);
    fsi__arena_free(s->context, &im->sheet);
    fsi__arena_free(s->context, &im->blocks);
    fsi__arena_free(s->context, &im->places);
    fsi__arena_free(s->context, &im->bodies);
    fsi__arena_free(s->context, &im->modes);
    fsi_pressure_destroy(im->solver);
    fsi_grid_faces_destroy(im->faces);
    fsi_front_destroy_lines(im->lines);
    fsi_front_destroy(im->backup);
    fsi_front_destroy(s->front);
    fsi_grid_destroy(s->grid);
    s->cookie = 0;
    fsi__free(s->desc.context, s, 1, sizeof *s + sizeof *im);
}

FSI_API fsi_status fsi_membrane_set_desc(fsi_membrane *s, const fsi_membrane_desc *desc)
{
    static const char fn[] = "fsi_membrane_set_desc";
    static const fsi__fixed fixed[] = {
        FSI__FIXED(fsi_membrane_desc, context), FSI__FIXED(fsi_membrane_desc, dim), FSI__FIXED(fsi_membrane_desc, n),
        FSI__FIXED(fsi_membrane_desc, dx), FSI__FIXED(fsi_membrane_desc, origin),
        FSI__FIXED(fsi_membrane_desc, attribute_count), FSI__FIXED(fsi_membrane_desc, reserve)
    };
    FSI__TRY(fsi__mb_check(s));
    FSI__TRY(fsi__check_filled(s->context, fn, desc, FSI__COOKIE('M', fsi_membrane_desc), "fsi_membrane_default_desc"));
    FSI__TRY(fsi__mb_check_desc(desc, fn));
    FSI__TRY(FSI__CHECK_FIXED(s->context, fn, desc, &s->desc, fixed));
    s->desc = *desc;
    s->desc.vertices = NULL;
    s->desc.elements = NULL;
    s->desc.attributes = NULL;
    s->front->desc.topology = desc->topology;
    s->front->desc.ask = desc->ask;
    s->front->desc.ask_user = desc->ask_user;
    return FSI_OK;
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

/* Speeds at all vertices and faces of liquid, into `work`: nothing has changed when one is not finite. */
static fsi_status fsi__mb_ask_velocity(fsi__mb_run *run, fsi_membrane_velocity_fn *velocity, void *user)
{
    fsi_membrane *s = run->s;
    fsi_front *f = run->im->backup;
    int a, b, c, i, corner[3];
    for (i = 0; i < f->vertex_count; i++) {
        f->velocity[i] = velocity(user, f->position[i]);
        if (s->dim == 2) f->velocity[i].z = 0;
        if (!(fsi_v3_norm(f->velocity[i]) <= (fsi_real)1e9))
            return fsi__fail(s->context, FSI_ERROR_NAN, run->fn, i, 0, "the velocity of vertex %d is not finite", i);
    }

    /* Faces that have liquid beside them. */
    for (b = 0; b < s->grid->block_count; b++) {
        fsi_grid_corner(s->grid, b, corner);
        for (c = 0; c < s->grid->block_cells; c++)
            for (a = 0; a < s->dim; a++) {
                const size_t e = (size_t)b * (size_t)s->grid->block_cells + (size_t)c;
                const fsi_vec3 x = fsi_grid_position(s->grid, (fsi_grid_place)(FSI_FACES_X + a), corner[0] + (c & 7),
                    corner[1] + (c >> 3 & 7), corner[2] + (c >> 6));
                const fsi_real u = run->known[a][e] ? fsi__axis(velocity(user, x), a) : 0;
                if (!(fabs((double)u) <= 1e9))
                    return fsi__fail(s->context, FSI_ERROR_NAN, run->fn, (long long)e, 0,
                        "the velocity of entry %lld is not finite", (long long)e);
                run->im->work[a]->value[e] = u;
            }
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_membrane_set_velocity(fsi_membrane *s, fsi_membrane_velocity_fn *velocity, void *user)
{
    static const char fn[] = "fsi_membrane_set_velocity";
    fsi__mb_run run;
    int a;
    FSI__TRY(fsi__mb_check(s));
    if (!velocity) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "velocity is NULL");
    fsi__mb_set_up(&run, s, fn);
    FSI__TRY(fsi__front_copy(run.im->backup, s->front, fn));
    FSI__TRY(fsi_front_cross_lines(run.im->lines, s->front));
    FSI__TRY(fsi__mb_mark_cells(&run));
    FSI__TRY(fsi__mb_ask_velocity(&run, velocity, user));
    for (a = 0; a < s->dim; a++) fsi__mb_copy_field(s->u[a], run.im->work[a]);
    memcpy(s->front->velocity, run.im->backup->velocity, (size_t)s->front->vertex_count * sizeof *s->front->velocity);
    return FSI_OK;
}

FSI_API fsi_real fsi_membrane_suggest_dt(const fsi_membrane *s)
{
    double speed;
    if (fsi__mb_check(s) != FSI_OK) return 0;
    speed = s->stats.max_speed + sqrt((double)s->desc.dx * (double)fsi_v3_norm(s->desc.gravity));
    return (fsi_real)(speed > 0 ? fmin(1, (double)s->desc.cfl * (double)s->desc.dx / speed) : 1);
}

FSI_API fsi_vec3 fsi_membrane_velocity_at(const fsi_membrane *s, fsi_vec3 x)
{
    return fsi__mb_check(s) == FSI_OK ? fsi_grid_sample_velocity(s->u, x) : fsi_v3(0, 0, 0);
}

FSI_API fsi_real fsi_membrane_pressure_at(const fsi_membrane *s, fsi_vec3 x)
{
    int at[3], a;
    if (fsi__mb_check(s) != FSI_OK || !fsi_v3_is_finite(x)) return 0;
    for (a = 0; a < 3; a++) {
        const double i = floor(((double)fsi__axis(x, a) - (double)fsi__axis(s->desc.origin, a)) / (double)s->desc.dx);
        at[a] = a < s->dim ? (int)fmin(fmax(i, 0), s->desc.n[a] - 1) : 0;
    }
    return fsi_grid_at(s->pressure, at[0], at[1], at[2]);
}

FSI_API const fsi_error *fsi_membrane_error(const fsi_membrane *s)
{
    return fsi__error_of(fsi__mb_check(s) == FSI_OK ? s->context : NULL);
}

/* ---- >>state implementation -------------------------------------------------------------------------------------- */

/* What a state announces. */
typedef struct fsi__mb_head {
    int32_t dim, n[3], attributes, blocks; /* blocks that hold any velocity */
    double dx, origin[3], time;
    uint64_t front;            /* bytes of its state; of a hash: its hash */
} fsi__mb_head;

static int fsi__mb_has_velocity(const fsi_membrane *s, int b)
{
    const size_t n = (size_t)s->grid->block_cells;
    size_t e;
    int a;
    for (a = 0; a < s->dim; a++)
        for (e = (size_t)b * n; e < (size_t)(b + 1) * n; e++) if (fabs((double)s->u[a]->value[e]) > 0) return 1;
    return 0;
}

static void fsi__mb_fill_head(const fsi_membrane *s, fsi__mb_head *h)
{
    int a, b;
    memset(h, 0, sizeof *h);
    h->dim = s->dim;
    h->attributes = s->desc.attribute_count;
    h->dx = (double)s->desc.dx;
    fsi__d3_put(h->origin, fsi__d3_of(s->desc.origin));
    h->time = s->time;
    for (a = 0; a < s->dim; a++) h->n[a] = s->desc.n[a];
    for (b = 0; b < s->grid->block_count; b++) h->blocks += fsi__mb_has_velocity(s, b);
}

static void fsi__mb_state(fsi__stream *st, void *simulator)
{
    fsi_membrane *s = (fsi_membrane *)simulator;
    const size_t block = (size_t)s->grid->block_cells * sizeof(fsi_real);
    fsi__mb_head h;
    size_t size = 0;
    int a, b;
    fsi__mb_fill_head(s, &h);
    if (st->mode == FSI__HASH) h.front = fsi_front_hash(s->front);
    else if (fsi_front_save(s->front, NULL, 0, &size) == FSI_OK) h.front = size;
    fsi__bytes(st, &h, sizeof h);
    for (b = 0; b < s->grid->block_count; b++) {
        int32_t place = s->grid->place[b];
        if (!fsi__mb_has_velocity(s, b)) continue;
        fsi__bytes(st, &place, sizeof place);
        for (a = 0; a < s->dim; a++) fsi__bytes(st, s->u[a]->value + (size_t)b * (size_t)s->grid->block_cells, block);
    }

    /* The front writes its own part. */
    if (st->mode == FSI__WRITE && st->used <= st->capacity)
        st->ok &= fsi_front_save(s->front, st->data + st->used, st->capacity - st->used, &size) == FSI_OK;
    if (st->mode != FSI__HASH) st->used += size;
}

FSI_API fsi_status fsi_membrane_save(const fsi_membrane *s, void *buffer, size_t capacity, size_t *size)
{
    FSI__TRY(fsi__mb_check(s));
    return fsi__save(s->context, s->cookie, fsi__mb_state, (void *)(uintptr_t)s, buffer, capacity, size,
        "fsi_membrane_save");
}

FSI_API uint64_t fsi_membrane_hash(const fsi_membrane *s)
{
    return fsi__mb_check(s) == FSI_OK ? fsi__state_hash(fsi__mb_state, (void *)(uintptr_t)s) : 0;
}

/* Sizes of a state, and what it is a state of. */
static fsi_status fsi__mb_check_head(const fsi_membrane *s, const fsi__mb_head *h, const fsi__stream *st,
    const char *fn)
{
    const size_t block = sizeof(int32_t) + (size_t)s->dim * (size_t)s->grid->block_cells * sizeof(fsi_real);
    fsi__mb_head own;
    fsi__mb_fill_head(s, &own);
    if (!st->ok || h->dim != own.dim || memcmp(h->n, own.n, sizeof own.n) || h->attributes != own.attributes
        || memcmp(&h->dx, &own.dx, sizeof own.dx) || memcmp(h->origin, own.origin, sizeof own.origin))
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, -1, h->dim,
            "the state is of another box, dim or attribute_count");
    if (h->blocks < 0 || (size_t)h->blocks > fsi__grid_places(s->grid) || !(h->time >= 0) || !fsi_is_finite(h->time)
        || h->front > st->capacity || sizeof *h + (size_t)h->blocks * block + (size_t)h->front != st->capacity)
        return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, -1, h->blocks,
            "the state announces %d blocks and has another length", (int)h->blocks);
    return FSI_OK;
}

/* Reads the blocks of a state: 1: into u, else only checks them, and marks the places that it has. */
static fsi_status fsi__mb_read_blocks(fsi_membrane *s, fsi__stream st, int blocks, unsigned char *wanted, int take,
    const char *fn)
{
    const size_t cells = (size_t)s->grid->block_cells;
    int32_t place, last = -1;
    fsi_real u;
    size_t c;
    int a, b;
    for (b = 0; b < blocks; b++) {
        fsi__bytes(&st, &place, sizeof place);
        if (place <= last || (size_t)place >= fsi__grid_places(s->grid))
            return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, b, place, "block %d of the state is damaged", b);
        last = place;
        wanted[place] = 1;
        for (a = 0; a < s->dim; a++)
            for (c = 0; c < cells; c++) {
                fsi__bytes(&st, &u, sizeof u);
                if (!(fabs((double)u) <= 1e9))
                    return fsi__fail(s->context, FSI_ERROR_FORMAT, fn, b, 0, "block %d of the state is damaged", b);
                if (take) s->u[a]->value[(size_t)s->grid->index[place] * cells + c] = u;
            }
    }
    return FSI_OK;
}

/* The front's part, and blocks for the rest; takes nothing back. */
static fsi_status fsi__mb_take_state(fsi__mb_run *run, const fsi__mb_head *h, fsi__stream st, unsigned char *wanted)
{
    fsi_membrane *s = run->s;
    const size_t places = fsi__grid_places(s->grid);
    size_t i;
    memset(wanted, 0, places);
    FSI__TRY(fsi__mb_read_blocks(s, st, h->blocks, wanted, 0, run->fn));
    for (i = 0; i < places; i++) wanted[i] |= s->grid->index[i] >= 0;
    FSI__TRY(fsi_front_load(s->front, st.data + st.capacity - h->front, (size_t)h->front));
    FSI__TRY(fsi__mb_check_places(s, s->front, FSI_ERROR_FORMAT, run->fn));
    return fsi_grid_set_blocks(s->grid, wanted);
}

FSI_API fsi_status fsi_membrane_load(fsi_membrane *s, const void *buffer, size_t size)
{
    static const char fn[] = "fsi_membrane_load";
    fsi__mb_run run;
    fsi__mb_head h;
    fsi__stream st;
    fsi_status status;
    int a;
    FSI__TRY(fsi__mb_check(s));
    fsi__mb_set_up(&run, s, fn);
    FSI__TRY(fsi__load_begin(s->context, s->cookie, buffer, size, &st, fn));
    memset(&h, 0, sizeof h);
    fsi__bytes(&st, &h, sizeof h);
    FSI__TRY(fsi__mb_check_head(s, &h, &st, fn));
    FSI__TRY(fsi__front_copy(run.im->backup, s->front, fn));
    for (a = 0; a < s->dim; a++) fsi__mb_copy_field(run.im->kept[a], s->u[a]);
    if (!fsi__arena_room(s->context, &run.im->places, fsi__grid_places(s->grid)))
        return fsi__fail(s->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for blocks");

    /* All of it, or nothing. */
    status = fsi__mb_take_state(&run, &h, st, run.im->places.base);
    if (status != FSI_OK) {
        fsi__mb_take_back(&run);
        return status;
    }
    for (a = 0; a < s->dim; a++)
        memset(s->u[a]->value, 0, (size_t)s->grid->block_count * (size_t)s->grid->block_cells * sizeof(fsi_real));
    fsi__mb_read_blocks(s, st, h.blocks, run.im->places.base, 1, fn);
    s->time = h.time;
    return FSI_OK;
}

FSI_API void fsi_membrane_debug_draw(const fsi_membrane *s, const fsi_debug_draw *draw)
{
    if (fsi__mb_check(s) == FSI_OK) fsi_front_debug_draw(s->front, draw);
}

FSI__COLD_END
FSI__STRICT_END

#endif /* once */
#endif /* implementation */
