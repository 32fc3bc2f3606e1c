/* fsi_pressure.h - the pressure that makes a liquid divergence-free: cut faces, rigid and yielding solids, multigrid.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_pressure.h"
         #include "fsi_pressure.h"

   A POOL STOPS FALLING
      fsi_context ctx = fsi_default_context();             // hooks for memory, threads, messages; and what went wrong
      fsi_grid_desc d = fsi_grid_default_desc();
      fsi_pressure_desc e = fsi_pressure_default_desc();
      fsi_pressure_flow flow = fsi_pressure_default_flow();
      fsi_grid *grid;
      fsi_field *phi;
      fsi_pressure *solver;
      fsi_box3 pool;
      unsigned char *cell;
      size_t n, i;
      int a;
      d.context = e.context = &ctx;
      pool.lo = fsi_v3(0, 0, 0);
      pool.hi = fsi_v3(1, 1, 0.25f);
      if (fsi_grid_create(&grid, &d) != FSI_OK || fsi_grid_add_field(grid, FSI_CELLS, 8 * grid->dx, &phi) != FSI_OK)
          return 1;
      for (a = 0; a < 3; a++)                              // 0.1 m/s downwards, and no wind
          if (fsi_grid_add_field(grid, (fsi_grid_place)(FSI_FACES_X + a), a == 2 ? -0.1f : 0, &flow.u[a]) != FSI_OK)
              return 1;
      if (fsi_grid_fill_box(phi, FSI_GRID_ADD, pool, 8) != FSI_OK || fsi_pressure_create(&solver, &e) != FSI_OK)
          return 1;
      n = (size_t)grid->block_count * (size_t)grid->block_cells;
      cell = (unsigned char *)malloc(n);
      for (i = 0; i < n; i++) cell[i] = phi->value[i] < 0 ? FSI_CELL_LIQUID : FSI_CELL_AIR;
      // the floor stands
      for (i = 0; i < 64 * 64; i++) flow.u[2]->value[fsi_grid_entry(grid, (int)i % 64, (int)i / 64, 0)] = 0;
      flow.cell = cell;
      flow.phi = phi;
      flow.dt = 0.01f;
      if (fsi_pressure_project(solver, &flow) != FSI_OK) puts(ctx.error.message);
      printf("%d iterations\n", solver->stats.iters);
      free(cell);
      fsi_pressure_destroy(solver);
      fsi_grid_destroy(grid);

   WHAT IS IN HERE (search for >>)
      >>cut faces      the fraction of each face that a mesh covers, or what you found otherwise
      >>pressure       projection: free surface, walls, cut faces, variable density, rigid bodies, solids that yield;
                       multigrid and conjugate gradients
      >>device         what a GPU may do of it (docs/cuda.md): who writes one
      >>stages         for fsi's own headers, not for you; then the implementation, by the same names, and >>multigrid
   WHAT IT DOES NOT DO
      Thin sheets as obstacles: meshes must be closed. Grids of varying cell size.
   MACROS: those of fsi.h.
   UNITS: SI. In 2D areas, forces and impulses are per metre of depth.
   PRECISION: fields in fsi_real; sums in double; preconditioners in float. Recommended: double.
   STACK: up to 100 kB in the caller's thread and in each of the context's.
   COST: docs/grid.md
*/
#ifndef FSI_PRESSURE_H
#define FSI_PRESSURE_H

#include "fsi_phi.h"

/* ---- >>cut faces ------------------------------------------------------------------------------------------------ */

/* The faces of a grid that lie wholly or partly in a solid; those of blocks that exist. Arrays stay valid until the
   next build or set; entries mean something as long as the grid keeps its blocks. */
typedef struct fsi_grid_faces {
    uint32_t cookie;
    fsi_context *context;
    int count;
    int first[4];            /* those of axis a are first[a] .. first[a + 1] - 1 */
    const int *entry;        /* count: entry in the face fields of that axis; ascending in what build made */
    const fsi_real *solid;   /* count: fraction of the face in the solid, (0, 1] */
    void *impl;
} fsi_grid_faces;

/* An empty list; memory comes from `context` (NULL: malloc). Errors: COOKIE, MEMORY; then *out is NULL. Destroying NULL
   is fine. */
FSI_API fsi_status fsi_grid_faces_create(fsi_grid_faces **out, fsi_context *context);
FSI_API void fsi_grid_faces_destroy(fsi_grid_faces *faces);
/* Finds the faces that a CLOSED mesh (of a container: what is outside of it) covers where it now is. The fraction of a
   face is that of the polygon through the points where the mesh crosses its sides between corners inside and outside
   (found by rays within a block of an edge of the mesh, from the distances at the corners else): exact for a plane,
   second order else. A corner on the surface, or outside of it by less than 1e-5 dx (float: 1e-4), counts as inside: a
   face that lies in the surface is covered, or behind each wall that lies in the grid there would be cells open to the
   liquid, and at the edges of a column a leak. Parts thinner than a cell may pass between corners unseen. Neighbouring
   faces use the same corners. Costs half a microsecond a corner within dx of the mesh, a query
   for each row of blocks that are all inside or outside, and the writing of what is deep inside. Errors: COOKIE,
   ARGUMENT (dimension), MESH (not closed), LIMIT, MEMORY; the former list then stays as it was. */
FSI_API fsi_status fsi_grid_faces_build(fsi_grid_faces *faces, const fsi_grid *grid, const fsi_mesh *mesh);
/* Copies a list that was found otherwise: first: 4 numbers, entry and solid: first[3], as above, entries in any order;
   none twice. For `count` faces of one solid it costs their copying. Errors: COOKIE, ARGUMENT (names the element),
   NAN, MEMORY; the former list then stays as it was. */
FSI_API fsi_status fsi_grid_faces_set(fsi_grid_faces *faces, const fsi_grid *grid, const int *first, const int *entry,
    const fsi_real *solid);

/* ---- >>pressure ----------------------------------------------------------------------------------------------- */

/* The pressure that makes a liquid divergence-free, on the liquid's cells only (Batty, Bertails and Bridson 2007 for
   cut faces and bodies, Gibou et al. 2002 for the free surface). With the fraction `open` of a face that no solid
   covers, and beta = 1/density there,

      dt/dx^2 sum over faces of open beta (p_i - p_nb)/theta = -div_i
      div_i = 1/dx sum over faces of +-(open u + sum over solids of share v) - source_i
      u -= dt beta (p_upper - p_lower)/(theta dx)
      impulse of a body = dt sum over its faces of share dx^(d-1) (p_lower - p_upper) n

   theta is 1, but where a liquid cell i meets an air cell j: phi_i/(phi_i - phi_j), at least theta_min, and p_nb is the
   pressure at the surface. There -phi_i counts as at least theta_min dx, so that all sides of a cell that is hardly wet
   have the same surface (with limited thetas alone, a slope of 0.01 could push like one of 0.1 or more). Where the
   surface pressures on two opposite sides of a cell differ, they move a film of the thickness theta_1 + theta_2, which
   counts as at least 1 for their difference. Coupled bodies, and solids that yield, move with what they gain in the
   same solve: added mass, whatever their density. */
enum { FSI_CELL_AIR, FSI_CELL_LIQUID, FSI_CELL_SOLID }; /* pressure known; pressure unknown; no flow: the faces of a
                                                           solid cell are walls. Cells whose faces are covered in part
                                                           are not solid cells */

/* One solid that meets the liquid. Where the fractions of several solids in a face sum up to more than 1, they are
   scaled to 1. */
typedef struct fsi_pressure_solid {
    const fsi_grid_faces *faces;       /* built or set on the grid as it is now */
    const fsi_real *velocity;          /* faces->count: normal velocity of the solid at each face [m/s]; NULL: 0. Not
                                          read when coupled */
    int coupled;                       /* 1: a free rigid body, solved together with the liquid; what follows up to
                                          `angular` is read then only */
    double mass;                       /* > 0 [kg; 2D: kg/m]; below 1e-5 of the liquid that moves with it, it counts as
                                          that */
    fsi_mat3 inverse_inertia;          /* world axes, symmetric, positive semidefinite: 0 does not turn [1/(kg m^2)];
                                          2D: m[8] */
    fsi_vec3 center;                   /* of mass, now [m]; read for others too: the moment is about it */
    fsi_vec3 linear, angular;          /* in: after all other forces; out: after the liquid too [m/s, rad/s] */
    fsi_vec3 impulse, angular_impulse; /* out, for every solid: what the liquid's pressure gave to it [N s, N m s; 2D: a
                                          metre of depth] */
    double *face_impulse;              /* out, for every solid: the same for each of its faces along the face's axis,
                                          faces->count; NULL: not wanted */
    /* A solid that yields, cloth say, is solved together with the liquid by what it does when its faces are pushed.
       Given the impulses of all its faces, counted as face_impulse is, respond writes the change of each one's velocity
       [m/s]: a linear, symmetric, positive semidefinite map R. `velocity` is that before the pressure. The liquid that
       a face carries with it counts in R and velocity, nowhere else: with weights W of faces in the solid's velocities
       v, its matrix A (masses, dt^2 stiffness) and the masses M of liquid at its faces, R = W (A + W^T M W)^-1 W^T and
       velocity = W (A + W^T M W)^-1 (A v + W^T M u). Faces away from liquid get impulse 0. Called from the calling
       thread: once an iteration, a few times more, and twice for each piece of liquid without another way out. Anything
       but FSI_OK that it returns ends the projection, with that status. */
    /* default NULL: does not yield. Not with `coupled` */
    fsi_status (*respond)(void *user, fsi_context *context, const double *impulse, double *change);
    void *user;
    const fsi_real *yielding;          /* faces->count, >= 0: compliance of each face: 0 as a wall, 1 (or more) as free
                                          as the liquid. Only the number of iterations depends on it. Limp cloth:
                                          M/(M + its mass at the face), or density dx^d times R's row sum there (not its
                                          diagonal); a rigid plate: NULL, which is 0. Read with respond only */
} fsi_pressure_solid;

typedef struct fsi_pressure_flow {
    uint32_t cookie;
    fsi_field *u[3];                         /* velocities on faces [m/s]. In: predicted. Out: faces next to liquid
                                                cells: divergence-free; those that solids cover wholly: the solid's
                                                velocity. Faces of walls and of solid cells are read, not written */
    const unsigned char *cell;               /* grid->block_count * block_cells: FSI_CELL_*; where no block is, there is
                                                air */
    const fsi_field *phi;                    /* at cells, negative in liquid [m]; NULL: theta = 1 */
    const fsi_field *surface_pressure;       /* at cells [Pa]: at a surface between cells i and j, (1 - theta) of
                                                i's + theta of j's; NULL: 0 */
    const fsi_field *surface_weight;         /* at cells, > 0, its background too: of its surface_pressure in that mean.
                                                Of a liquid cell below 1: it is a ridge, as in a film or at its rim, the
                                                more the lower, whose sides have nearly one pressure where it is thin;
                                                NULL: 1 in the mean, films are told by air on opposite sides */
    const fsi_field *inverse_density[3];     /* at faces, > 0 [m^3/kg], their backgrounds too; NULL (all): 1/density */
    fsi_real density;                        /* > 0 [kg/m^3]; default 1000; not read with inverse_density */
    fsi_real dt;                             /* > 0 [s] */
    fsi_real theta_min;                      /* 0 to 1, not 0; default 0.01 */
    const fsi_field *source;                 /* at cells: the divergence that a liquid cell is to keep, above 0 where
                                                liquid comes into being [1/s]; NULL: 0 */
    unsigned char open_side[6];              /* x-, x+, y-, ...: 1: air of pressure 0 beyond this side of the box, which
                                                is its surface; 0 (default): a wall, its normal velocity stands in u at
                                                its faces (inflow too) */
    int use_guess;                           /* 1: the solve starts from `pressure`, unless that is worse than 0;
                                                default 0 */
    int same_equations;                      /* 1: since this solver's last projection, which succeeded, only values of
                                                u and source have changed: what its equations consist of is not found
                                                again, but where the grid's blocks, density, theta_min or open_side
                                                differ. Values of cell, phi, let_go and inverse_density that differ give
                                                wrong velocities. Not read with solids or surface_pressure; default 0 */
    fsi_pressure_solid *solids;              /* solid_count */
    int solid_count;
    const unsigned char *let_go;             /* at cells: liquid may separate from the wall or solid at the face below
                                                along axis a: bit a for the cell above that face, bit 3 + a for the cell
                                                below it. For that cell the face is an open side, with its velocity in
                                                u; the solid gets no impulse there; NULL: liquid separates nowhere */
    fsi_field *pressure;                     /* out: at liquid cells [Pa], 0 in all others; none of the fields above;
                                                NULL: not wanted */
} fsi_pressure_flow;

typedef struct fsi_pressure_desc {
    uint32_t cookie;
    fsi_context *context; /* default NULL */
    double tolerance;     /* done when the largest divergence left is below tolerance * the largest right side (surface
                             pressures counted with theta 1), */
    double absolute;      /* or below this [1/s]. Defaults 1e-8 (float: 1e-6) and 0. A second projection asks for the
                             first one's stats.divergence */
    int max_iters;        /* default 200 */
    int degrade;          /* 1: what max_iters do not complete is taken as it is, and stats.degraded set: a budget for
                             games; default 0: CONVERGENCE */
    fsi_device_use device; /* who iterates, where context->device has a table for it (>>device); default AUTO */
} fsi_pressure_desc;

typedef struct fsi_pressure_stats { /* of the last projection */
    long long unknowns;         /* liquid cells with an open face */
    int enclosed;               /* liquid cells without, even if a solid at their faces yields; their pressure is 0 */
    int pieces;                 /* connected pieces of liquid without a free surface or other way out: the pressure of
                                   each has mean 0, */
    double removed;             /* and their net inflow cannot be met: sum over the pieces of its amount [m^3/s; 2D
                                   m^2/s], which spreads over their cells */
    int iters, levels;
    int degraded;               /* 1: the tolerance was not met, see desc.degrade */
    double residual;            /* largest |divergence| left over the largest right side, */
    double divergence;          /* and by itself [1/s], but for what was removed */
    double seconds_setup, seconds_solve; /* by the clock hook */
    size_t bytes;               /* held; not the device's */
    int on_device;              /* 1: the device did the iteration, 0: the CPU did */
    int device_failures;        /* 1: the device failed, and the CPU did it (desc.device AUTO) */
} fsi_pressure_stats;

/* A solver's memory: it grows with the liquid, and stays. Read everything. */
typedef struct fsi_pressure {
    uint32_t cookie;
    fsi_context *context;
    fsi_pressure_desc desc;     /* as given; all but context may be changed between calls */
    fsi_pressure_stats stats;
    void *impl;
} fsi_pressure;

FSI_API fsi_pressure_desc fsi_pressure_default_desc(void); /* fills every field */
FSI_API fsi_pressure_flow fsi_pressure_default_flow(void); /* fills every field; u, cell, dt are yours to set */
/* *out is NULL on failure. Errors: COOKIE (of the context's device, too), ARGUMENT, MEMORY, DEVICE (desc.device is
   ALWAYS, and the context has none that has the table). */
FSI_API fsi_status fsi_pressure_create(fsi_pressure **out, const fsi_pressure_desc *desc);
FSI_API void fsi_pressure_destroy(fsi_pressure *s); /* NULL is fine */
/* One projection, in time and memory proportional to the blocks that exist and the liquid cells (and 4 bytes a column
   of the liquid's bounding box). Errors: COOKIE, ARGUMENT (names the field), NAN (a field, a cell), LIMIT, MEMORY,
   CONVERGENCE (max_iters, or no progress, unless desc.degrade is set), where desc.device is ALWAYS what the device
   returns (DEVICE, MEMORY); then fields and solids are as they were. */
FSI_API fsi_status fsi_pressure_project(fsi_pressure *s, fsi_pressure_flow *flow);

/* ---- >>device: what a device does of a projection; for fsi_cuda.cu, not for you ---------------------------------- */

/* The CPU makes the equations, a device iterates: conjugate gradients in double, preconditioned by V-cycles in float.
   Bodies, solids that yield and pieces of liquid stay on the CPU; of the vectors only numbers of `touched` cells and
   sums of `run`s travel in an iteration. All arithmetic is by the functions below, and sums are those of the CPU's
   chunks, so that a device that rounds as IEEE 754 says returns the CPU's bits. */

#define FSI__MG_FRONT 8             /* zeros before the first brick */
#define FSI__MG_LEVELS 16
#define FSI_PRESSURE_TABLE "fsi_pressure multigrid 1"

/* Bricks of 8 cells, side by side along x. Cells are counted in arrays of `cells` numbers a level; those before the
   first brick and behind the last one are zeros, which stand for neighbours that do not exist. */
typedef struct fsi_pressure_segment {
    int at, n, lower[2], upper[2]; /* first cell, cells, first cells of the rows beside it in y and z */
    int rough;                     /* where its arrays start in `faces`, -1: plain */
} fsi_pressure_segment;

/* The equations of rough bricks: eight arrays in their order. A face between two cells stands in both.
   Plain bricks, inside liquid of the density that most of it has, have none: all their faces are the level's `unit`,
   and there is no excess. */
/* inverse: 1/diagonal, 0: no equation */
enum { FSI__MG_LOWER = 0, FSI__MG_UPPER = 3, FSI__MG_EXCESS = 6, FSI__MG_INVERSE = 7, FSI__MG_ARRAYS = 8 };

typedef struct fsi_pressure_level {
    int bricks, cells;                   /* cells: numbers in each array, with the zeros */
    int segments, odd;                   /* those with y + z odd come last, from `odd` on */
    int rough_cells;                     /* numbers in each of the FSI__MG_ARRAYS arrays of `faces` */
    float unit;                          /* coefficient of an ordinary face */
    const fsi_pressure_segment *segment; /* segments, each brick in one of them */
    const int *child;                    /* bricks * 8: at z * 4 + y * 2 + x the brick of the finer level, -1: none */
    const float *faces;
} fsi_pressure_level;

/* Equations; read in `begin`, not later. */
typedef struct fsi_pressure_problem {
    int dim, levels;
    fsi_pressure_level level[FSI__MG_LEVELS]; /* finest first; the last one has one brick */
    float weight;                        /* of a relaxation */
    int sweeps;                          /* before and after the coarser levels; one more on those */
    int segment_chunk, brick_chunk;      /* what one partial sum of `multiply`, of others, goes over */
    const int *touched;                  /* touched_count cells, none twice: of gather and scatter */
    int touched_count;
    const int *run;                      /* runs * 2: first cell and cells of each: of sum_runs and shift_runs */
    int runs;
    const double *b, *x;                 /* level[0].cells: right side and guess */
} fsi_pressure_problem;

/* Vectors of the finest level, `cells` numbers each: double up to Q; RIGHT and CORRECTION, what a V-cycle reads and
   writes, are float. */
typedef enum fsi_pressure_vector {
    FSI_PRESSURE_B, FSI_PRESSURE_X, FSI_PRESSURE_R, FSI_PRESSURE_P, FSI_PRESSURE_Q, FSI_PRESSURE_RIGHT,
    FSI_PRESSURE_CORRECTION, FSI_PRESSURE_VECTORS
} fsi_pressure_vector;

/* The table of that name. Functions return FSI_OK, or MEMORY or DEVICE; after that `begin` comes first again, or
   `destroy`. What they write to the host's arrays is there when they return. Partial sums: four a chunk, of the cells
   whose place in their row is c modulo 4, at 4 * chunk + c. */
typedef struct fsi_pressure_device {
    uint32_t cookie;
    long long smallest;                  /* desc.device AUTO: from this number of cells in bricks on */
    fsi_status (*create)(void *user, void **work);  /* a solver's part of the device, `user` the fsi_device's */
    void (*destroy)(void *work);
    const char *(*why)(void *work);                 /* the last failure in a sentence */
    fsi_status (*begin)(void *work, const fsi_pressure_problem *problem);
    fsi_status (*send)(void *work, fsi_pressure_vector vector, const void *numbers);
    fsi_status (*fetch)(void *work, fsi_pressure_vector vector, void *numbers);
    fsi_status (*gather)(void *work, fsi_pressure_vector vector, void *numbers);       /* those of touched cells */
    fsi_status (*scatter)(void *work, fsi_pressure_vector vector, const void *numbers);
    fsi_status (*sum_runs)(void *work, fsi_pressure_vector vector, double *sums);      /* vector: a double one */
    fsi_status (*shift_runs)(void *work, fsi_pressure_vector vector, const double *means); /* less mean, cell by cell */
    fsi_status (*cycle)(void *work);                                           /* CORRECTION = V RIGHT */
    fsi_status (*multiply)(void *work, fsi_pressure_vector v, double *partial); /* Q = A v; v Q by chunks of segments */
    fsi_status (*start)(void *work);                                           /* R = B, P = 0 */
    /* X += alpha P, R -= alpha Q, RIGHT = factor R; the largest |R| by chunks of bricks. */
    fsi_status (*advance)(void *work, double alpha, double factor, double *partial);
    fsi_status (*dot)(void *work, double *partial);                            /* R CORRECTION by chunks of bricks */
    fsi_status (*turn)(void *work, double beta);                               /* P = CORRECTION + beta P */
    fsi_status (*keep_columns)(void *work, int count, const float *columns);   /* count vectors of CORRECTION's kind */
    fsi_status (*respond)(void *work, int count, const double *h); /* CORRECTION -= sum over columns of h * column */
} fsi_pressure_device;

FSI__STRICT_FN_BEGIN

FSI_FN int fsi__mg_cell(int brick) { return FSI__MG_FRONT + 8 * brick; }

/* x, r: of the cell; a, b: coefficients of its lower and upper faces along x, y, z; l, u: numbers beyond these. */

/* x + weight (D^-1 (r + sum a x_nb) - x): keep = 1 - weight, give = weight/D; a rough brick's is weight * inverse. */
FSI_FN float fsi__mg_keep(float weight) { return 1 - weight; }
FSI_FN float fsi__mg_give(float weight, float faces, float unit) { return weight / (faces * unit); }
FSI_FN float fsi__mg_relaxed_plain(float keep, float give, float unit, float x, float r, float lx, float ux, float ly,
    float uy, float lz, float uz)
{
    return keep * x + give * (r + unit * (lx + ux + ly + uy + lz + uz));
}
FSI_FN float fsi__mg_relaxed_rough(float keep, float weight, float inverse, float x, float r, float ax, float lx,
    float bx, float ux, float ay, float ly, float by, float uy, float az, float lz, float bz, float uz)
{
    return keep * x + weight * inverse * (r + ax * lx + bx * ux + ay * ly + by * uy + az * lz + bz * uz);
}

/* The same from x = 0: of the first colour, whose neighbours are 0 too, and of the second one. */
FSI_FN float fsi__mg_first_plain(float give, float r) { return give * r; }
FSI_FN float fsi__mg_first_rough(float weight, float inverse, float r) { return weight * inverse * r; }
FSI_FN float fsi__mg_second_plain(float give, float unit, float r, float ly, float uy, float lz, float uz)
{
    return give * (r + unit * (ly + uy + lz + uz));
}
FSI_FN float fsi__mg_second_rough(float weight, float inverse, float r, float ay, float ly, float by, float uy,
    float az, float lz, float bz, float uz)
{
    return weight * inverse * (r + ay * ly + by * uy + az * lz + bz * uz);
}

/* r - A x; faces: of a cell */
FSI_FN float fsi__mg_left_plain(float faces, float unit, float x, float r, float lx, float ux, float ly, float uy,
    float lz, float uz)
{
    return r - unit * (faces * x - (lx + ux + ly + uy + lz + uz));
}
FSI_FN float fsi__mg_left_rough(float x, float r, float excess, float ax, float lx, float bx, float ux, float ay,
    float ly, float by, float uy, float az, float lz, float bz, float uz)
{
    return r - excess * x - ax * (x - lx) - bx * (x - ux) - ay * (x - ly) - by * (x - uy) - az * (x - lz)
        - bz * (x - uz);
}

/* The sum over a coarse cell's cells goes by twos along x. */
FSI_FN float fsi__mg_restricted(float sum, float left, float right) { return sum + (left + right); }

/* A x of the finest level */
FSI_FN double fsi__pressure_product_plain(double faces, double unit, double x, double lx, double ux, double ly,
    double uy, double lz, double uz)
{
    return unit * (faces * x - (lx + ux + ly + uy + lz + uz));
}
FSI_FN double fsi__pressure_product_rough(double x, float excess, float ax, double lx, float bx, double ux, float ay,
    double ly, float by, double uy, float az, double lz, float bz, double uz)
{
    return (double)excess * x + (double)ax * (x - lx) + (double)bx * (x - ux) + (double)ay * (x - ly)
        + (double)by * (x - uy) + (double)az * (x - lz) + (double)bz * (x - uz);
}

/* Numbers of the iteration: x + a y, r - a q, what a V-cycle is given, and the next direction. */
FSI_FN double fsi__pressure_further(double x, double a, double y) { return x + a * y; }
FSI_FN double fsi__pressure_less(double r, double a, double q) { return r - a * q; }
FSI_FN float fsi__pressure_single(double r, double factor) { return (float)(r * factor); }
FSI_FN double fsi__pressure_turned(float correction, double beta, double p) { return (double)correction + beta * p; }
FSI_FN double fsi__pressure_larger(double most, double size) { return size > most ? size : most; }

FSI__STRICT_FN_END

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* surface_pressure at a surface `theta` of the way from one cell to the next. */
FSI_API double fsi__pressure_of_surface(const fsi_pressure_flow *flow, long long from, long long to, double theta);

#endif /* FSI_PRESSURE_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_PRESSURE_IMPLEMENTATION
#define FSI_PRESSURE_IMPLEMENTATION
#endif
#ifdef FSI_PRESSURE_IMPLEMENTATION
#ifndef FSI_PRESSURE_IMPLEMENTATION_DONE
#define FSI_PRESSURE_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_phi.h"

FSI__STRICT_BEGIN

/* ---- >>cut faces implementation ---------------------------------------------------------------------------------- */

#define FSI__FACES_SIDE 9    /* corners along a block, those of the upper ends of its cells with them */
/* Corners that lie that many cells outside of the mesh count as inside. */
#define FSI__FACES_TOUCH (sizeof(fsi_real) == 8 ? (fsi_real)1e-5 : (fsi_real)1e-4)

/* A block near the mesh has a slot of 9 x 9 x 9 distances at its corners (2D: 9 x 9). Corners of the next block are
   copied from its slot; a block that is not near has one sign for all corners; where there is no block, distances are
   computed. */
typedef struct fsi__faces_impl {
    const fsi_grid *grid;
    fsi_shape shape;
    fsi__arena blocks, slots;
    int *state;                 /* slot of each block, or on which side of the mesh all of it is, FSI__SIDE_ */
    int *counts;                /* faces of (axis, block), then where they begin */
    unsigned char *smooth;      /* of a block: the mesh near to it has no edge */
    fsi_real *values;           /* slot_size a slot */
    size_t slot_size;
    int *entry;
    fsi_real *solid;
    int capacity;               /* of these two */
    int cut;                      /* blocks that the mesh is near to */
} fsi__faces_impl;

static fsi__sampling fsi__faces_sampling(const fsi__faces_impl *m, int b, int *corner)
{
    fsi__sampling s;
    const fsi_grid *g = m->grid;
    fsi_grid_corner(g, b, corner);
    s.shape = &m->shape;
    s.at = fsi_v3_madd(g->origin, g->dx, fsi_v3((fsi_real)corner[0], (fsi_real)corner[1], (fsi_real)corner[2]));
    s.dx = g->dx;
    s.limit = (fsi_real)1.06 * g->dx; /* where an edge is cut both ends are nearer; of others the sign is enough */
    s.stride[0] = 1;
    s.stride[1] = FSI__FACES_SIDE;
    s.stride[2] = FSI__FACES_SIDE * FSI__FACES_SIDE;
    s.out = m->state[b] < 0 ? NULL : m->values + (size_t)m->state[b] * m->slot_size;
    return s;
}

static void fsi__faces_classify(void *arg, int chunk, int begin, int end)
{
    fsi__faces_impl *m = (fsi__faces_impl *)arg;
    const int all[3] = { FSI__FACES_SIDE, FSI__FACES_SIDE, m->grid->dim == 3 ? FSI__FACES_SIDE : 1 };
    int corner[3], side = FSI__SIDE_CUT;
    (void)chunk;
    for (; begin < end; begin++) {
        const fsi__sampling s = fsi__faces_sampling(m, begin, corner);
        m->state[begin] = side = fsi__side_of_block(m->grid, &s, begin, all, side);
    }
}

/* Do the normals of all faces near the points lo .. hi - 1 agree within 26 degrees? Not used in 2D. */
static int fsi__faces_is_smooth(const fsi__sampling *s, const int *lo, const int *hi)
{
    const fsi_mesh *mesh = s->shape->mesh;
    const fsi_box3 box = fsi__scatter_box(s, lo, hi);
    fsi__walk w;
    int f, first = -1, smooth = mesh->corners == 3;
    for (f = smooth ? fsi__walk_box(&w, fsi__nodes(mesh), box) : -1; f >= 0 && smooth; f = fsi__walk_next(&w, 0)) {
        if (!fsi_box3_overlap(box, fsi__faces_box(mesh, mesh->vertices, f, f + 1))) continue;
        if (first < 0) first = f;
        smooth = fsi_v3_dot(mesh->face_normals[f], mesh->face_normals[first]) > (fsi_real)0.9;
    }
    return smooth;
}

static void fsi__faces_sample(void *arg, int chunk, int begin, int end)
{
    static const int none[3] = { 0, 0, 0 };
    fsi__faces_impl *m = (fsi__faces_impl *)arg;
    const int own[3] = { 8, 8, m->grid->dim == 3 ? 8 : 1 },
        all[3] = { FSI__FACES_SIDE, FSI__FACES_SIDE, FSI__FACES_SIDE };
    int corner[3];
    (void)chunk;
    for (; begin < end; begin++) {
        const fsi__sampling s = fsi__faces_sampling(m, begin, corner);
        if (!s.out) continue;
        fsi__sample_lattice(&s, none, own);
        m->smooth[begin] = (unsigned char)fsi__faces_is_smooth(&s, none, all);
    }
}

/* The corners of block b that belong to the block at (bit 0, bit 1, bit 2) of d. */
static void fsi__faces_border(const fsi__faces_impl *m, const fsi__sampling *s, const int *corner, int d)
{
    const fsi_grid *g = m->grid;
    int lo[3], hi[3], a, x, y, z;
    const long long entry = fsi_grid_entry(g, corner[0] + (d & 1) * 8, corner[1] + (d >> 1 & 1) * 8,
        corner[2] + (d >> 2) * 8);
    const int state = entry < 0 ? FSI__SIDE_CUT : m->state[entry / g->block_cells];
    const fsi_real *from = state < 0 ? NULL : m->values + (size_t)state * m->slot_size;
    for (a = 0; a < 3; a++) {
        lo[a] = d >> a & 1 ? 8 : 0;
        hi[a] = d >> a & 1 ? 9 : a < g->dim ? 8 : 1;
    }
    if (entry < 0) {
        fsi__sample_lattice(s, lo, hi);
        return;
    }
    for (z = lo[2]; z < hi[2]; z++)
        for (y = lo[1]; y < hi[1]; y++)
            for (x = lo[0]; x < hi[0]; x++)
                s->out[z * s->stride[2] + y * s->stride[1] + x] =
                    from ? from[(z & 7) * s->stride[2] + (y & 7) * s->stride[1] + (x & 7)]
                    : state == FSI__SIDE_INSIDE ? -s->limit : s->limit;
}

/* Fraction of a square where values at its corners, in order around it, are negative, as some but not all are: corners
   cut off by straight lines. Its side from corner k to k + 1 is cut at t[k] of its length. Where opposite corners are
   inside, the mean of all four tells whether they are one. */
static fsi_real fsi__faces_share(const fsi_real *v, const fsi_real *t)
{
    fsi_real cut = 0;
    int k, count = 0, opposite, inside;
    for (k = 0; k < 4; k++) count += v[k] < 0;
    opposite = count == 2 && (v[0] < 0) == (v[2] < 0);
    if (count == 2 && !opposite) { /* a trapezoid along the side whose ends are inside */
        for (k = 0; !(v[k] < 0 && v[(k + 1) & 3] < 0); k++) continue;
        return fsi_max((t[(k + 1) & 3] + 1 - t[(k + 3) & 3]) / 2, FSI_REAL_EPS);
    }
    /* do the lines cut off the inside corners? */
    inside = opposite ? v[0] + v[1] + v[2] + v[3] >= 0 : count == 1;
    for (k = 0; k < 4; k++)
        if ((v[k] < 0) == inside) cut += t[k] * (1 - t[(k + 3) & 3]) / 2;
    return fsi_max(inside ? cut : 1 - cut, FSI_REAL_EPS); /* never 0 where a corner is inside */
}

/* Fraction in the solid of the side from corner p to p + dx along an axis, a and b the distances at its ends: up to
   where the mesh crosses it. Where it is smooth, distances tell as well as a ray and are faster; around edges they are
   not straight, and a wall 0.15 dx behind a corner was seen at 0.5 dx. */
static fsi_real fsi__faces_crossing(const fsi__faces_impl *m, fsi_vec3 p, int axis, int smooth, fsi_real a, fsi_real b)
{
    const fsi_real dx = m->grid->dx;
    fsi_vec3 way = fsi_v3(axis == 0 ? dx : 0, axis == 1 ? dx : 0, axis == 2 ? dx : 0);
    fsi_mesh_hit hit;
    if ((a < 0) == (b < 0)) return a < 0 ? (fsi_real)1 : (fsi_real)0;
    if (smooth) return fsi_max(a < 0 ? a / (a - b) : b / (b - a), FSI_REAL_EPS);
    if (!(a < 0)) {
        p = fsi_v3_add(p, way);
        way = fsi_v3_scale(way, -1);
    }
    hit = fsi_mesh_ray(m->shape.mesh, p, way, 1);
    return fsi_max(hit.face >= 0 ? hit.t : (a < 0 ? a / (a - b) : b / (b - a)), FSI_REAL_EPS);
}

/* Where the mesh cuts the sides of a face of an axis, v at its corners in order around it from the one at p:
   fsi__faces_share. */
static void fsi__faces_cuts(const fsi__faces_impl *m, fsi_vec3 p, int axis, int smooth, const fsi_real *v, fsi_real *t)
{
    const fsi_real dx = m->grid->dx;
    const int along[2] = { (axis + 1) % 3, (axis + 2) % 3 };
    int k;
    for (k = 0; k < 4; k++) {
        const int next = (k + 1) & 3, low = k < 2 ? k : next, high = k < 2 ? next : k, far_side = k == 1 || k == 2,
            side = along[k & 1], across = along[~k & 1];
        const fsi_vec3 shift = fsi_v3(across == 0 ? dx : 0, across == 1 ? dx : 0, across == 2 ? dx : 0);
        const fsi_real share = (v[k] < 0) == (v[next] < 0) ? 0
            : fsi__faces_crossing(m, far_side ? fsi_v3_add(p, shift) : p, side, smooth, v[low], v[high]);
        t[k] = v[k] < 0 ? share : 1 - share;
    }
}

/* Faces of an axis that a block has within the box of the grid: top. */
static void fsi__faces_top(const fsi_grid *g, const int *corner, int axis, int *top)
{
    int a;
    for (a = 0; a < 3; a++)
        top[a] = fsi__clamp_int(fsi_grid_size(g, (fsi_grid_place)(FSI_FACES_X + axis), a) - corner[a],
            a < g->dim ? 8 : 1);
    for (a = 0; a < 3; a++)
        if (top[a] < 0) top[a] = 0;
}

/* Offsets of the four corners of a face of an axis, in order around it; in 2D the two corners, each twice. */
static void fsi__faces_corners(int dim, int axis, const int *stride, int *at)
{
    const int u = dim == 3 ? stride[(axis + 1) % 3] : stride[1 - axis], v = dim == 3 ? stride[(axis + 2) % 3] : 0;
    at[0] = 0;
    at[1] = u;
    at[2] = u + v;
    at[3] = v;
}

static void fsi__faces_count(void *arg, int chunk, int begin, int end)
{
    fsi__faces_impl *m = (fsi__faces_impl *)arg;
    const fsi_grid *g = m->grid;
    const fsi_real touch = FSI__FACES_TOUCH * g->dx;
    int corner[3], top[3], at[4], a, d, x, y, z;
    (void)chunk;
    for (; begin < end; begin++) {
        /* Corners on the border come from the blocks beside. */
        const fsi__sampling s = fsi__faces_sampling(m, begin, corner);
        for (d = 1; s.out && d < 1 << g->dim; d++) fsi__faces_border(m, &s, corner, d);

        /* Faces with a corner inside, or all of a block that is inside. */
        for (a = 0; a < g->dim; a++) {
            int n = 0;
            fsi__faces_top(g, corner, a, top);
            fsi__faces_corners(g->dim, a, s.stride, at);
            if (!s.out) n = m->state[begin] == FSI__SIDE_INSIDE ? top[0] * top[1] * top[2] : 0;
            else
                for (z = 0; z < top[2]; z++)
                    for (y = 0; y < top[1]; y++)
                        for (x = 0; x < top[0]; x++) {
                            const fsi_real *v = s.out + z * s.stride[2] + y * s.stride[1] + x;
                            n += (v[at[0]] < touch) | (v[at[1]] < touch) | (v[at[2]] < touch) | (v[at[3]] < touch);
                        }
            m->counts[a * g->block_count + begin] = n;
        }
    }
}

/* Fraction of face (x, y, z) of an axis from the distances of its block's slot. */
static fsi_real fsi__faces_of_slot(const fsi__faces_impl *m, const fsi__sampling *s, int smooth, int axis,
    const int *at, int x, int y, int z)
{
    const fsi_real *p = s->out + z * s->stride[2] + y * s->stride[1] + x;
    const fsi_vec3 low = fsi_v3_madd(s->at, s->dx, fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z));
    const fsi_real touch = FSI__FACES_TOUCH * s->dx;
    fsi_real v[4], t[4];
    int k, count = 0;
    for (k = 0; k < 4; k++) {
        v[k] = p[at[k]];
        if (v[k] < touch && v[k] >= 0) v[k] = -FSI_REAL_EPS * s->dx;
        count += v[k] < 0;
    }
    if (count == 0 || count == 4) return count == 0 ? (fsi_real)0 : (fsi_real)1;
    if (m->grid->dim == 2) return fsi__faces_crossing(m, low, 1 - axis, 0, v[0], v[1]);
    fsi__faces_cuts(m, low, axis, smooth, v, t);
    return fsi__faces_share(v, t);
}

static void fsi__faces_write(void *arg, int chunk, int begin, int end)
{
    fsi__faces_impl *m = (fsi__faces_impl *)arg;
    const fsi_grid *g = m->grid;
    int corner[3], top[3], at[4], a, x, y, z;
    (void)chunk;
    for (; begin < end; begin++) {
        const fsi__sampling s = fsi__faces_sampling(m, begin, corner);
        if (m->state[begin] == FSI__SIDE_OUTSIDE) continue;
        for (a = 0; a < g->dim; a++) {
            int k = m->counts[a * g->block_count + begin];
            fsi__faces_top(g, corner, a, top);
            fsi__faces_corners(g->dim, a, s.stride, at);
            for (z = 0; z < top[2]; z++)
                for (y = 0; y < top[1]; y++)
                    for (x = 0; x < top[0]; x++) {
                        const fsi_real share = s.out ? fsi__faces_of_slot(m, &s, m->smooth[begin], a, at, x, y, z) : 1;
                        if (!(share > 0)) continue;
                        m->entry[k] = begin * g->block_cells + (z * 8 + y) * 8 + x;
                        m->solid[k++] = share;
                    }
        }
    }
}

FSI_API fsi_status fsi_grid_faces_create(fsi_grid_faces **out, fsi_context *context)
{
    fsi_grid_faces *f;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!fsi__is_context(context)) return FSI_ERROR_COOKIE;
    f = (fsi_grid_faces *)fsi__alloc(context, 1, sizeof *f + sizeof(fsi__faces_impl));
    if (!f)
        return fsi__fail(context, FSI_ERROR_MEMORY, "fsi_grid_faces_create", -1, 0, "no memory for a list of faces");
    f->cookie = FSI__COOKIE('f', fsi_grid_faces);
    f->context = context;
    f->impl = f + 1;
    *out = f;
    return FSI_OK;
}

static int fsi__faces_columns(fsi__faces_impl *m, fsi__column *c)
{
    c[0].array = (void **)&m->entry;
    c[0].size = sizeof *m->entry;
    c[1].array = (void **)&m->solid;
    c[1].size = sizeof *m->solid;
    return 2;
}

FSI_API void fsi_grid_faces_destroy(fsi_grid_faces *f)
{
    fsi__faces_impl *m;
    fsi__column c[2];
    if (!f || f->cookie != FSI__COOKIE('f', fsi_grid_faces)) return;
    m = (fsi__faces_impl *)f->impl;
    fsi__free_columns(f->context, c, fsi__faces_columns(m, c), m->capacity);
    fsi__arena_free(f->context, &m->blocks);
    fsi__arena_free(f->context, &m->slots);
    f->cookie = 0;
    fsi__free(f->context, f, 1, sizeof *f + sizeof *m);
}

/* Nanoseconds at least: 15 for a block, `work` for a cell of one that is cut. */
static double fsi__faces_work(const fsi__faces_impl *m, double work)
{
    return 15.0 * m->grid->block_count + work * m->cut * m->grid->block_cells;
}

/* State of each block and the distances of those that the mesh is near to. 0: no memory. */
static int fsi__faces_distances(fsi_context *context, fsi__faces_impl *m)
{
    const size_t blocks = (size_t)m->grid->block_count;
    size_t slots = 0;
    int b;
    m->slot_size = FSI__FACES_SIDE * FSI__FACES_SIDE * (m->grid->dim == 3 ? FSI__FACES_SIDE : 1);
    if (!fsi__arena_room(context, &m->blocks, blocks * (4 * sizeof(int) + 1) + 192)) return 0;
    m->state = (int *)fsi__take(&m->blocks, blocks, sizeof *m->state);
    m->counts = (int *)fsi__take(&m->blocks, blocks * 3, sizeof *m->counts);
    m->smooth = (unsigned char *)fsi__take(&m->blocks, blocks, 1);
    for (b = 0; b < m->grid->block_count; b++) m->state[b] = FSI__SIDE_CUT;
    fsi__parallel_work(context, m->grid->block_count, 32, 80.0 * m->grid->block_count, fsi__faces_classify, m);
    for (b = 0; b < m->grid->block_count; b++)
        if (m->state[b] == FSI__SIDE_CUT) m->state[b] = (int)slots++;
    if (!fsi__arena_room(context, &m->slots, slots * m->slot_size * sizeof *m->values)) return 0;
    m->values = (fsi_real *)(void *)m->slots.base;
    m->cut = (int)slots;
    fsi__parallel_work(context, m->grid->block_count, 4, fsi__faces_work(m, 20), fsi__faces_sample, m);
    return 1;
}

FSI_API fsi_status fsi_grid_faces_build(fsi_grid_faces *f, const fsi_grid *grid, const fsi_mesh *mesh)
{
    static const char *const fn = "fsi_grid_faces_build";
    fsi__faces_impl *m;
    fsi__column c[2];
    long long total = 0;
    int first[4], a, b;

    /* Input. */
    if (!f || f->cookie != FSI__COOKIE('f', fsi_grid_faces) || !fsi__is_grid(grid)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__grid_check_mesh(f->context, grid, mesh, fn));

    /* Distances at the corners; how many faces each block has. */
    m = (fsi__faces_impl *)f->impl;
    m->grid = grid;
    m->shape = fsi_shape_mesh(mesh);
    if (!fsi__faces_distances(f->context, m))
        return fsi__fail(f->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for the corners of faces");
    fsi__parallel_work(f->context, grid->block_count, 4, fsi__faces_work(m, 2), fsi__faces_count, m);

    /* Where the faces of each block begin, axis by axis. */
    for (a = 0; a < 3; a++)
        for (b = 0, first[a] = (int)total; a < grid->dim && b < grid->block_count; b++) {
            const int n = m->counts[a * grid->block_count + b];
            m->counts[a * grid->block_count + b] = (int)total;
            total += n;
            if (total > 2147483647)
                return fsi__fail(f->context, FSI_ERROR_LIMIT, fn, -1, (double)total, "more than 2^31 - 1 faces");
        }
    first[3] = (int)total;

    /* Room; then the faces. */
    FSI__TRY(fsi__room(f->context, c, fsi__faces_columns(m, c), f->count, &m->capacity, (int)total, fn));
    fsi__parallel_work(f->context, grid->block_count, 4, fsi__faces_work(m, 3), fsi__faces_write, m);
    memcpy(f->first, first, sizeof first);
    f->count = (int)total;
    f->entry = m->entry;
    f->solid = m->solid;
    return FSI_OK;
}

/* Are all faces of a list the grid's, and covered by more than 0 and at most all of them, but for rounding? */
static fsi_status fsi__faces_check(fsi_context *context, const char *fn, const fsi_grid *g, int count, const int *entry,
    const fsi_real *solid)
{
    int i;
    for (i = 0; i < count; i++) {
        if (entry[i] < 0 || entry[i] / g->block_cells >= g->block_count)
            return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, i, entry[i], "entry[%d] is %d, not one of the grid's", i,
                entry[i]);
        if (!fsi_is_finite((double)solid[i]))
            return fsi__fail(context, FSI_ERROR_NAN, fn, i, 0, "solid[%d] is not finite", i);
        if (!(solid[i] > 0 && solid[i] <= (fsi_real)1.001))
            return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, i, (double)solid[i], "solid[%d] is %g, not within (0, 1]",
                i, (double)solid[i]);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_grid_faces_set(fsi_grid_faces *f, const fsi_grid *grid, const int *first, const int *entry,
    const fsi_real *solid)
{
    static const char *const fn = "fsi_grid_faces_set";
    fsi__faces_impl *m;
    fsi__column c[2];
    int a;

    /* Input. */
    if (!f || f->cookie != FSI__COOKIE('f', fsi_grid_faces) || !fsi__is_grid(grid)) return FSI_ERROR_COOKIE;
    if (!first) return fsi__fail(f->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "first is NULL");
    for (a = 0; a < 3; a++)
        if (first[a] < 0 || first[a + 1] < first[a] || (a == 0 && first[0] != 0))
            return fsi__fail(f->context, FSI_ERROR_ARGUMENT, fn, a, first[a], "first does not ascend from 0");
    if (first[3] > 0 && (!entry || !solid))
        return fsi__fail(f->context, FSI_ERROR_ARGUMENT, fn, -1, first[3], "entry or solid is NULL");
    if (first[grid->dim] < first[3])
        return fsi__fail(f->context, FSI_ERROR_ARGUMENT, fn, -1, first[3], "2D grids have no faces along z");
    FSI__TRY(fsi__faces_check(f->context, fn, grid, first[3], entry, solid));

    /* Room; then the copy. */
    m = (fsi__faces_impl *)f->impl;
    FSI__TRY(fsi__room(f->context, c, fsi__faces_columns(m, c), f->count, &m->capacity, first[3], fn));
    if (first[3] > 0) {
        memcpy(m->entry, entry, (size_t)first[3] * sizeof *entry);
        memcpy(m->solid, solid, (size_t)first[3] * sizeof *solid);
    }
    memcpy(f->first, first, sizeof f->first);
    f->count = first[3];
    f->entry = m->entry;
    f->solid = m->solid;
    return FSI_OK;
}

/* ---- >>multigrid ---------------------------------------------------------------------------------------------- */

/* Linear systems on the liquid's cells alone, A x = r with one equation a cell,

      excess x_i + sum over neighbours of a_face (x_i - x_nb) = r_i,      a_face >= 0, excess >= 0

   Cells are stored in bricks of 8 along x, in the order of z, y, x, and only bricks with a liquid cell exist. A segment
   is a range of bricks, side by side, whose neighbours in y and z are side by side too, so that every loop runs over
   contiguous numbers; neighbours that do not exist are read from a pad of zeros behind the last brick.

        row y + 1        |-----brick----|-----brick----|                        upper[0]
        row y                           |-----brick----|-----brick----|         at
        row y - 1                       |-----brick----|  zeros ...             lower[0]

   Row y has two segments here: the bricks below the first one do not continue below the second.

   The preconditioner of conjugate gradients is a V-cycle in float. A coarse cell is 2 x 2 x 2 cells; its faces are the
   sums of theirs over 2, for the distance between centres is twice as far. Its value goes to all its cells: with two
   sweeps that is as good as linear interpolation, and does not mind jumps of the density by 1000. A sweep takes the
   rows with y + z even, then the odd ones: x of a row from old values of the row and the newest of those around it. */

/* The next loop writes no array that it reads: without this the compiler checks every pair of arrays, or does not
   vectorise. */
#if defined(__clang__)
#define FSI__MG_APART _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define FSI__MG_APART _Pragma("GCC ivdep")
#else
#define FSI__MG_APART
#endif

#define FSI__MG_LONGEST 64          /* bricks in a segment, and in the pad */
#define FSI__MG_GRAIN 128           /* segments a task */
#define FSI__MG_NS 2.5              /* nanoseconds a plain brick takes at least: fsi__parallel_work; */
#define FSI__MG_NS_ZERO 1.5         /* where x is 0, and without a step; */
#define FSI__MG_NS_EXACT 5          /* in doubles; */
#define FSI__MG_NS_APART 2          /* a rough brick takes so many times as long, in cache; */
#define FSI__MG_BRICK_NS 8          /* and a brick of a coarser level */
#define FSI__MG_ROUGH_NS 100        /* and a rough one, to be made of finer ones */
#define FSI__MG_SWEEPS 2            /* before and after the coarser levels; one more on those */
#define FSI__MG_WEIGHT 0.95f        /* with 1, chains of cells along x would not be smoothed */

typedef struct fsi__mg_level {
    fsi__arena lists_memory, numbers_memory;
    int columns, rows[2];       /* cells along x, y, z */
    int bricks, cells;          /* cells: numbers in each array, with the zeros */
    int *row;                   /* rows[0] * rows[1] + 1: first brick of each row */
    int *place;                 /* bricks: x/8 */
    int *child;                 /* bricks * 8: at z * 4 + y * 2 + x the brick of the finer level there, -1 none */
    fsi_pressure_segment *segment;
    int segments, odd;          /* those with y + z odd come last, from `odd` on */
    int *rough;                 /* bricks: where its numbers start in each array of `faces`, -1: it is plain */
    int rough_cells;            /* in each array, */
    float *faces;               /* which are so far apart */
    float unit;                 /* a of an ordinary face */
    float *x, *r, *t;
} fsi__mg_level;

typedef struct fsi__mg {
    fsi_context *context;
    int levels;
    int dim;
    fsi__mg_level level[FSI__MG_LEVELS];
} fsi__mg;

/* A cell's number in the first array; NULL where it is plain. */
static float *fsi__mg_faces(const fsi__mg_level *m, int cell)
{
    const int rough = m->rough[(cell - FSI__MG_FRONT) >> 3];
    return rough < 0 ? NULL : m->faces + rough + (cell & 7);
}

static int fsi__mg_has(const fsi__mg_level *m, int cell) /* an equation */
{
    const float *f = fsi__mg_faces(m, cell);
    return !f || f[FSI__MG_INVERSE * (size_t)m->rough_cells] > 0;
}

/* The brick at `place` in row (y, z), or -1; *from only ever grows within a row. */
static int fsi__mg_find(const fsi__mg_level *m, int y, int z, int place, int *from)
{
    int end, r;
    if (y < 0 || z < 0 || y >= m->rows[0] || z >= m->rows[1]) return -1;
    r = z * m->rows[0] + y;
    if (*from < m->row[r]) *from = m->row[r];
    for (end = m->row[r + 1]; *from < end && m->place[*from] < place; ++*from) continue;
    return *from < end && m->place[*from] == place ? *from : -1;
}

/* Segments of rows with y + z of parity `odd`, behind those there are. */
static void fsi__mg_cut(fsi__mg_level *m, int odd)
{
    int y, z, b, d;
    for (z = 0; z < m->rows[1]; z++)
        for (y = (z + odd) & 1; y < m->rows[0]; y += 2) {
            const int r = z * m->rows[0] + y;
            int from[4] = { 0, 0, 0, 0 }, now[4], last[4] = { -2, -2, -2, -2 };
            for (b = m->row[r]; b < m->row[r + 1]; b++) {
                fsi_pressure_segment *s = m->segment + m->segments - 1;
                int joins = b > m->row[r] && (m->rough[b] < 0) == (m->rough[b - 1] < 0)
                    && m->place[b] == m->place[b - 1] + 1 && s->n < 8 * FSI__MG_LONGEST;

                /* The bricks beside: do they follow those of the brick before? */
                for (d = 0; d < 4; d++) {
                    const int step = d & 1 ? 1 : -1;
                    now[d] = fsi__mg_find(m, y + (d < 2 ? step : 0), z + (d < 2 ? 0 : step), m->place[b], from + d);
                    joins = joins && (now[d] < 0 ? last[d] == -1 : now[d] == last[d] + 1 && last[d] >= 0);
                    last[d] = now[d];
                }

                /* If not, a new segment. */
                if (!joins) {
                    s = m->segment + m->segments++;
                    s->at = fsi__mg_cell(b);
                    s->n = 0;
                    s->rough = m->rough[b];
                    for (d = 0; d < 4; d++)
                        (d & 1 ? s->upper : s->lower)[d >> 1] = fsi__mg_cell(now[d] < 0 ? m->bricks : now[d]);
                }
                s->n += 8;
            }
        }
}

/* Merges the rows of the finer level, two by two in y and z, into the bricks of m: counts them; fills the lists if
   `fill`. Those whose children are all there and plain are plain: `children` of them. */
static int fsi__mg_merge(const fsi__mg_level *fine, fsi__mg_level *m, int children, int fill)
{
    int y, z, q, half, count = 0;
    m->rough_cells = 0;
    for (z = 0; z < m->rows[1]; z++)
        for (y = 0; y < m->rows[0]; y++) {
            int at[4], end[4];

            /* The four rows that merge. */
            for (q = 0; q < 4; q++) {
                const int fy = 2 * y + (q & 1), fz = 2 * z + (q >> 1), there = fy < fine->rows[0] && fz < fine->rows[1];
                at[q] = there ? fine->row[fz * fine->rows[0] + fy] : 0;
                end[q] = there ? fine->row[fz * fine->rows[0] + fy + 1] : 0;
            }
            if (fill) m->row[z * m->rows[0] + y] = count;

            /* The next place that any of them has. */
            for (;;) {
                int first = -1, plain = 0;
                for (q = 0; q < 4; q++)
                    if (at[q] < end[q] && (first < 0 || fine->place[at[q]] >> 1 < first))
                        first = fine->place[at[q]] >> 1;
                if (first < 0) break;

                /* Its eight children. */
                for (q = 0; q < 4; q++)
                    for (half = 0; half < 2; half++) {
                        const int there = at[q] < end[q] && fine->place[at[q]] == 2 * first + half;
                        if (fill) m->child[8 * count + 2 * q + half] = there ? at[q] : -1;
                        plain += there && fine->rough[at[q]] < 0;
                        at[q] += there;
                    }
                if (fill) {
                    m->place[count] = first;
                    m->rough[count] = plain == children ? -1 : m->rough_cells;
                    m->rough_cells += plain == children ? 0 : 8;
                }
                count++;
            }
        }
    if (fill) m->row[m->rows[0] * m->rows[1]] = count;
    return count;
}

/* Room for the lists of `bricks` bricks in rows[0] * rows[1] rows. */
static int fsi__mg_reserve_lists(fsi_context *c, fsi__mg_level *m, int bricks)
{
    const size_t rows = (size_t)m->rows[0] * (size_t)m->rows[1] + 1;
    int pass;
    m->bricks = bricks;
    for (pass = 0; pass < 2; pass++) {
        const size_t n = (size_t)bricks;
        fsi__arena *lists = &m->lists_memory, measure;
        memset(&measure, 0, sizeof measure);
        if (!pass) lists = &measure;
        m->row = (int *)fsi__take(lists, rows, sizeof(int));
        m->place = (int *)fsi__take(lists, n, sizeof(int));
        m->rough = (int *)fsi__take(lists, n, sizeof(int));
        m->child = (int *)fsi__take(lists, 8 * n, sizeof(int));
        m->segment = (fsi_pressure_segment *)fsi__take(lists, n, sizeof *m->segment);
        if (!pass && !fsi__arena_room(c, &m->lists_memory, measure.used)) return 0;
    }
    return 1;
}

/* All segments, those of even rows first. */
static void fsi__mg_cut_all(fsi__mg_level *m)
{
    m->segments = 0;
    fsi__mg_cut(m, 0);
    m->odd = m->segments;
    fsi__mg_cut(m, 1);
}

/* Room for the numbers, whose zeros it writes. */
static int fsi__mg_reserve_numbers(fsi_context *c, fsi__mg_level *m)
{
    float **array[3];
    int pass, k;
    fsi__mg_cut_all(m);
    m->cells = fsi__mg_cell(m->bricks + FSI__MG_LONGEST) + 8;
    array[0] = &m->x, array[1] = &m->r, array[2] = &m->t;
    for (pass = 0; pass < 2; pass++) {
        const size_t n = (size_t)m->cells;
        fsi__arena *numbers = &m->numbers_memory, measure;
        memset(&measure, 0, sizeof measure);
        if (!pass) numbers = &measure;
        for (k = 0; k < 3; k++) *array[k] = (float *)fsi__take(numbers, n, sizeof(float));
        m->faces = (float *)fsi__take(numbers, FSI__MG_ARRAYS * (size_t)m->rough_cells, sizeof(float));
        if (!pass && !fsi__arena_room(c, &m->numbers_memory, measure.used)) return 0;
    }
    for (k = 0; k < 3; k++) {
        memset(*array[k], 0, FSI__MG_FRONT * sizeof(float));
        memset(*array[k] + fsi__mg_cell(m->bricks), 0, (8 * FSI__MG_LONGEST + 8) * sizeof(float));
    }
    return 1;
}

/* The coarser levels of level[0], down to a single cell. */
static int fsi__mg_reserve(fsi__mg *g)
{
    const int children = g->dim == 3 ? 8 : 4;
    int l, bricks;
    for (l = 0; l < FSI__MG_LEVELS; l++) {
        fsi__mg_level *m = g->level + l;
        const fsi__mg_level *fine = m - 1;
        if (l > 0) {
            m->columns = (fine->columns + 1) / 2;
            m->rows[0] = (fine->rows[0] + 1) / 2;
            m->rows[1] = (fine->rows[1] + 1) / 2;
            bricks = fsi__mg_merge(fine, m, children, 0);
            if (!fsi__mg_reserve_lists(g->context, m, bricks)) return 0;
            fsi__mg_merge(fine, m, children, 1);
        }
        if (!fsi__mg_reserve_numbers(g->context, m)) return 0;
        g->levels = l + 1;
        if (m->columns == 1 && m->rows[0] == 1 && m->rows[1] == 1) break;
    }
    return 1;
}

typedef struct fsi__mg_job {
    const fsi__mg_level *fine, *m; /* the level, and for transfers the finer one */
    const float *own, *other;      /* rows that are relaxed, and those beside them */
    float *out, weight, faces;     /* faces: of a cell */
    int first;                     /* segment that the range counts from */
    float plain[3], most, tied;    /* of the finer level: a along each axis inside the liquid; the largest one; and of
                                      this level */
} fsi__mg_job;

static void fsi__mg_invert(float *f, size_t n)
{
    float d[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
    int c, k;
    for (k = 0; k < FSI__MG_INVERSE; k++)
        for (c = 0; c < 8; c++) d[c] += f[(size_t)k * n + (size_t)c];
    for (c = 0; c < 8; c++) f[FSI__MG_INVERSE * n + (size_t)c] = d[c] > 0 ? 1 / d[c] : 0;
}

/* The faces of coarse cells. A free surface, at the distance h/excess from a fine centre, lies h/2 further from the
   coarse one. A closed piece of liquid that is one coarse cell has no faces left: it is tied down as if it had some
   excess, or sweeps would forget what coarser levels, which mix it with others, bring it, and the cycle would not be
   symmetric. Where such a piece moves a light body, that ends the iteration. */
static void fsi__mg_coarsen(void *arg, int chunk, int begin, int end)
{
    const fsi__mg_job *job = (const fsi__mg_job *)arg;
    const fsi__mg_level *f = job->fine, *m = job->m;
    const float *plain = job->plain;
    int b, k, c, a;
    (void)chunk;
    for (b = begin; b < end; b++) {
        float sum[FSI__MG_ARRAYS][8];
        int some[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
        if (m->rough[b] < 0) continue;
        memset(sum, 0, sizeof sum);

        /* Sums over the faces of the children, over 2. */
        for (k = 0; k < 8; k++) {
            const int child = m->child[8 * b + k];
            const float *in = child < 0 || f->rough[child] < 0 ? NULL : f->faces + f->rough[child];
            const size_t n = (size_t)f->rough_cells;
            for (c = 0; c < 8 && child >= 0; c++) {
                const int to = (k & 1) * 4 + (c >> 1), place[3] = { c & 1, k >> 1 & 1, k >> 2 };
                const float e = in ? in[FSI__MG_EXCESS * n + (size_t)c] : 0;
                for (a = 0; a < 3; a++) {
                    const int k0 = (place[a] ? FSI__MG_UPPER : FSI__MG_LOWER) + a;
                    sum[k0][to] += 0.5f * (in ? in[(size_t)k0 * n + (size_t)c] : plain[a]);
                }
                sum[FSI__MG_EXCESS][to] += e / (1 + e * 0.5f / job->most);
                some[to] |= !in || in[FSI__MG_INVERSE * n + (size_t)c] > 0;
            }
        }

        /* A cell without faces is tied down. */
        for (c = 0; c < 8; c++) {
            float all = 0;
            for (k = 0; k < FSI__MG_INVERSE; k++) all += sum[k][c];
            if (some[c] && !(all > 0)) sum[FSI__MG_EXCESS][c] = job->tied;
        }
        for (k = 0; k < FSI__MG_ARRAYS; k++)
            memcpy(m->faces + (size_t)k * (size_t)m->rough_cells + m->rough[b], sum[k], sizeof sum[k]);
        fsi__mg_invert(m->faces + m->rough[b], (size_t)m->rough_cells);
    }
}

/* All levels from the faces and the unit of the finest. */
static void fsi__mg_setup(fsi__mg *g)
{
    fsi__mg_job job;
    double work;
    int l;
    memset(&job, 0, sizeof job);
    job.most = 1;
    for (l = 0; l < g->levels; l++) {
        fsi__mg_level *m = g->level + l;
        job.fine = m - 1;
        job.m = m;
        if (l > 0) {
            job.plain[0] = job.plain[1] = job.fine->unit;
            job.plain[2] = g->dim == 3 ? job.fine->unit : 0;
            m->unit = job.fine->unit * (g->dim == 3 ? 2.0f : 1.0f);
            work = (double)FSI__MG_ROUGH_NS * m->rough_cells / 8;
            job.tied = job.most * (g->dim == 3 ? 2.0f : 1.0f);
            fsi__parallel_work(g->context, m->bricks, FSI__MG_GRAIN, work, fsi__mg_coarsen, &job);
            job.most = job.tied;
        }
    }
}

/* The arrays of a rough segment: lower faces are a, upper ones b. */
typedef struct fsi__mg_names { const float *ax, *ay, *az, *bx, *by, *bz, *excess, *inverse; } fsi__mg_names;
static fsi__mg_names fsi__mg_name(const fsi__mg_level *m, const fsi_pressure_segment *s)
{
    const size_t n = (size_t)m->rough_cells;
    fsi__mg_names f;
    f.ax = m->faces + (s->rough < 0 ? 0 : s->rough);
    f.ay = f.ax + n;
    f.az = f.ay + n;
    f.bx = f.az + n;
    f.by = f.bx + n;
    f.bz = f.by + n;
    f.excess = f.bz + n;
    f.inverse = f.excess + n;
    return f;
}

/* out = x + weight (D^-1 (r + sum a x_nb) - x) in rows of one colour; `other` is x in rows of the other one. */
static void fsi__mg_relax(void *arg, int chunk, int begin, int end)
{
    const fsi__mg_job *job = (const fsi__mg_job *)arg;
    const fsi__mg_level *m = job->m;
    const float w = job->weight, unit = m->unit, keep = fsi__mg_keep(w), give = fsi__mg_give(w, job->faces, unit);
    int k, i;
    (void)chunk;

    /* The segment and those beside it. */
    for (k = begin + job->first; k < end + job->first; k++) {
        const fsi_pressure_segment *s = m->segment + k;
        const fsi__mg_names f = fsi__mg_name(m, s);
        const float *x = job->own + s->at, *r = m->r + s->at;
        const float *yl = job->other + s->lower[0], *yu = job->other + s->upper[0], *zl = job->other + s->lower[1],
            *zu = job->other + s->upper[1];
        float *out = job->out + s->at;

        /* Plain bricks, rough bricks. */
        if (s->rough < 0)
            FSI__MG_APART
            for (i = 0; i < s->n; i++)
                out[i] = fsi__mg_relaxed_plain(keep, give, unit, x[i], r[i], x[i - 1], x[i + 1], yl[i], yu[i], zl[i],
                    zu[i]);
        else
            FSI__MG_APART
            for (i = 0; i < s->n; i++)
                out[i] = fsi__mg_relaxed_rough(keep, w, f.inverse[i], x[i], r[i], f.ax[i], x[i - 1], f.bx[i], x[i + 1],
                    f.ay[i], yl[i], f.by[i], yu[i], f.az[i], zl[i], f.bz[i], zu[i]);
    }
}

/* The same from x = 0, where the first colour has no neighbour terms. */
static void fsi__mg_relax_zero(void *arg, int chunk, int begin, int end)
{
    const fsi__mg_job *job = (const fsi__mg_job *)arg;
    const fsi__mg_level *m = job->m;
    const float w = job->weight, unit = m->unit, give = fsi__mg_give(w, job->faces, unit);
    int k, i;
    (void)chunk;
    for (k = begin + job->first; k < end + job->first; k++) {
        /* The segment. */
        const fsi_pressure_segment *s = m->segment + k;
        const fsi__mg_names f = fsi__mg_name(m, s);
        const float *r = m->r + s->at;
        float *out = job->out + s->at;
        const float *yl, *yu, *zl, *zu;
        if (!job->other) {
            for (i = 0; i < s->n; i++)
                out[i] = s->rough < 0 ? fsi__mg_first_plain(give, r[i]) : fsi__mg_first_rough(w, f.inverse[i], r[i]);
            continue;
        }

        /* Plain bricks, rough bricks, beside those of the first colour. */
        yl = job->other + s->lower[0], yu = job->other + s->upper[0], zl = job->other + s->lower[1],
            zu = job->other + s->upper[1];
        if (s->rough < 0)
            FSI__MG_APART
            for (i = 0; i < s->n; i++) out[i] = fsi__mg_second_plain(give, unit, r[i], yl[i], yu[i], zl[i], zu[i]);
        else
            FSI__MG_APART
            for (i = 0; i < s->n; i++)
                out[i] = fsi__mg_second_rough(w, f.inverse[i], r[i], f.ay[i], yl[i], f.by[i], yu[i], f.az[i], zl[i],
                    f.bz[i], zu[i]);
    }
}

/* out = r - A x */
static void fsi__mg_residual(void *arg, int chunk, int begin, int end)
{
    const fsi__mg_job *job = (const fsi__mg_job *)arg;
    const fsi__mg_level *m = job->m;
    const float unit = m->unit, faces = job->faces;
    int k, i;
    (void)chunk;
    for (k = begin; k < end; k++) {
        /* The segment and those beside it. */
        const fsi_pressure_segment *s = m->segment + k;
        const fsi__mg_names f = fsi__mg_name(m, s);
        const float *x = job->own + s->at, *r = m->r + s->at;
        const float *yl = job->own + s->lower[0], *yu = job->own + s->upper[0], *zl = job->own + s->lower[1],
            *zu = job->own + s->upper[1];
        float *out = job->out + s->at;

        /* Plain bricks, rough bricks. */
        if (s->rough < 0)
            FSI__MG_APART
            for (i = 0; i < s->n; i++)
                out[i] = fsi__mg_left_plain(faces, unit, x[i], r[i], x[i - 1], x[i + 1], yl[i], yu[i], zl[i], zu[i]);
        else
            FSI__MG_APART
            for (i = 0; i < s->n; i++)
                out[i] = fsi__mg_left_rough(x[i], r[i], f.excess[i], f.ax[i], x[i - 1], f.bx[i], x[i + 1], f.ay[i],
                    yl[i], f.by[i], yu[i], f.az[i], zl[i], f.bz[i], zu[i]);
    }
}

/* The residual of a coarse cell is the sum of those of its eight cells; its correction goes to all of them. */
static void fsi__mg_restrict(void *arg, int chunk, int begin, int end)
{
    const fsi__mg_job *job = (const fsi__mg_job *)arg;
    const fsi__mg_level *m = job->m;
    int b, k, c;
    (void)chunk;
    for (b = begin; b < end; b++) {
        float sum[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
        for (k = 0; k < 8; k++) {
            const float *r = job->own + fsi__mg_cell(m->child[8 * b + k]);
            if (m->child[8 * b + k] < 0) continue;
            for (c = 0; c < 4; c++)
                sum[4 * (k & 1) + c] = fsi__mg_restricted(sum[4 * (k & 1) + c], r[2 * c], r[2 * c + 1]);
        }
        memcpy(m->r + fsi__mg_cell(b), sum, sizeof sum);
    }
}

static void fsi__mg_prolong(void *arg, int chunk, int begin, int end)
{
    const fsi__mg_job *job = (const fsi__mg_job *)arg;
    const fsi__mg_level *m = job->m;
    int b, k, c;
    (void)chunk;
    for (b = begin; b < end; b++) {
        float x[8];
        memcpy(x, m->x + fsi__mg_cell(b), sizeof x);
        for (k = 0; k < 8; k++) {
            float *out = job->out + fsi__mg_cell(m->child[8 * b + k]);
            if (m->child[8 * b + k] < 0) continue;
            for (c = 0; c < 8; c++) out[c] += x[4 * (k & 1) + (c >> 1)];
        }
    }
}

/* A loop over `segments` of a level's, which takes `work` nanoseconds a plain brick, at least. */
static void fsi__mg_over(fsi_context *context, const fsi__mg_level *m, int segments, double work, fsi__range_fn *fn,
    void *job)
{
    const double bricks = m->bricks + (FSI__MG_NS_APART - 1) * (m->rough_cells / 8.0);
    fsi__parallel_work(context, segments, FSI__MG_GRAIN, work * bricks * segments / m->segments, fn, job);
}

static void fsi__mg_parallel(const fsi__mg *g, int segments, fsi__range_fn *fn, fsi__mg_job *job)
{
    fsi__mg_over(g->context, job->m, segments, fn == fsi__mg_relax ? FSI__MG_NS : FSI__MG_NS_ZERO, fn, job);
}

/* One sweep over both colours, in the other order when `back`; x and t change places. */
static void fsi__mg_sweep(fsi__mg *g, fsi__mg_level *m, int back, int zero)
{
    fsi__mg_job job;
    float *x = m->x;
    int pass;
    memset(&job, 0, sizeof job);
    job.m = m;
    job.out = m->t;
    job.own = x;
    job.weight = FSI__MG_WEIGHT;
    job.faces = 2 * (float)g->dim;
    for (pass = 0; pass < 2; pass++) {
        const int colour = pass ^ back;
        job.first = colour ? m->odd : 0;
        job.other = pass ? m->t : (zero ? NULL : x);
        fsi__mg_parallel(g, colour ? m->segments - m->odd : m->odd, zero ? fsi__mg_relax_zero : fsi__mg_relax, &job);
    }
    m->x = m->t;
    m->t = x;
}

/* level[0].x = an approximation of A^-1 level[0].r: one V-cycle. The sweeps after the coarse levels are the adjoint of
   those before them, so that it is symmetric. */
static void fsi__mg_cycle(fsi__mg *g)
{
    fsi__mg_job job;
    int l, k;
    memset(&job, 0, sizeof job);
    job.faces = 2 * (float)g->dim;

    /* Down: sweeps from zero, the residual, its sums on the next level. */
    for (l = 0; l < g->levels - 1; l++) {
        fsi__mg_level *m = g->level + l;
        fsi__mg_sweep(g, m, 0, 1);
        for (k = 1; k < (l == 0 ? FSI__MG_SWEEPS : FSI__MG_SWEEPS + 1); k++) fsi__mg_sweep(g, m, 0, 0);
        job.m = m;
        job.own = m->x;
        job.out = m->t;
        fsi__mg_parallel(g, m->segments, fsi__mg_residual, &job);
        job.m = m + 1;
        job.own = m->t;
        fsi__parallel_work(g->context, job.m->bricks, FSI__MG_GRAIN, FSI__MG_BRICK_NS * job.m->bricks,
            fsi__mg_restrict, &job);
    }

    /* The coarsest level has one brick. */
    for (k = 0; k < 8; k++)
        g->level[l].x[FSI__MG_FRONT + k] = g->level[l].faces[FSI__MG_INVERSE * g->level[l].rough_cells + k]
            * g->level[l].r[FSI__MG_FRONT + k];

    /* Up: values to all their cells, sweeps in reverse. */
    while (l-- > 0) {
        fsi__mg_level *m = g->level + l;
        job.m = m + 1;
        job.out = m->x;
        fsi__parallel_work(g->context, job.m->bricks, FSI__MG_GRAIN, FSI__MG_BRICK_NS * job.m->bricks, fsi__mg_prolong,
            &job);
        for (k = 0; k < (l == 0 ? FSI__MG_SWEEPS : FSI__MG_SWEEPS + 1); k++) fsi__mg_sweep(g, m, 1, 0);
    }
}

/* ---- >>pressure implementation -------------------------------------------------------------------------------- */

#define FSI__PRESSURE_OPEN 1e-6     /* smaller open shares are closed */
#define FSI__PRESSURE_ROUNDS 8      /* restarts from the true residual */
#define FSI__PRESSURE_CHUNK 512      /* bricks a task */
#define FSI__PRESSURE_NS 4           /* nanoseconds a brick; */
#define FSI__PRESSURE_NS_KIND 16     /* to tell whether it is rough, */
#define FSI__PRESSURE_NS_ROWS 60     /* to make its equations */
#define FSI__PRESSURE_RUNS 512      /* runs a task */
#define FSI__PRESSURE_LIGHTEST 1e-5  /* the least mass of a body, over that of the liquid that moves with it */
#define FSI__PRESSURE_WAY_OUT 1e-3  /* a body lets a piece of liquid move when its forces there do not cancel to within
                                       this fraction */

/* Solids in the faces of one block. */
typedef struct fsi__pressure_cut {
    fsi_real closed[3][512];        /* fraction that solids cover; above 1 where they overlap */
    double flux[3][512];            /* sum of their fractions times velocities [m/s] */
} fsi__pressure_cut;

/* A face between cells `lower` and `upper` (-1: no unknown there) that a coupled body covers in part: a row of H. */
typedef struct fsi__pressure_face {
    int lower, upper;
    double h[6];
} fsi__pressure_face;

/* Cells side by side along x, joined by open faces. */
typedef struct fsi__pressure_run { int at, n, root, piece; double sum; } fsi__pressure_run;
typedef struct fsi__pressure_piece {
    int group, joined, free, touching; double cells, mean, way[6], size[6];
} fsi__pressure_piece;

/* A face of a solid that yields, with an unknown beside it. */
typedef struct fsi__pressure_yield {
    int lower, upper, at;           /* unknowns, -1: none; its place in `pushed` and `change` */
    double share, more;             /* more: what the multigrid's matrix has there beyond A */
} fsi__pressure_yield;

/* What equations are kept for: another grid, or one with other blocks, and another desc of the flow have others. */
typedef struct fsi__pressure_key {
    const fsi_grid *grid;
    const void *densities;          /* flow.inverse_density[0] */
    int blocks, n[3];
    fsi_real density, theta_min;
    unsigned char open_side[6];
} fsi__pressure_key;

typedef struct fsi__pressure_impl {
    fsi__mg mg;
    fsi__arena lists_memory, cuts_memory, vectors_memory, faces_memory, responses_memory, yields_memory, runs_memory,
        pieces_memory, nulls_memory;
    int *brick;                     /* for each row of 8 cells of each block its brick, or -1 */
    int *row;                       /* the reverse */
    int *cut;                       /* for each block its fsi__pressure_cut, or -1 */
    int *beside;                    /* for each block the six around it, -1 where none is */
    fsi__pressure_cut *cuts_of;
    int first_block[3];             /* of the liquid's bounding box */
    double *b, *x, *r, *p, *q;      /* q also holds a label for each cell, before the iteration */
    double *partial;                /* 4 a chunk */
    fsi__pressure_run *run;
    int runs;
    fsi__pressure_piece *piece;
    int pieces;
    fsi__pressure_face *face;       /* of coupled bodies, */
    int *body_face;                 /* those of body k from body_face[k] on */
    int bodies;
    double *h, *s;                  /* 6 a body; (6 bodies)^2: the Cholesky factor of 1 + H V H^T */
    int *column, columns;           /* 6 a body: the column of V H^T that a row of H has, -1: the preconditioner leaves
                                       it out */
    float *response;                /* these columns, one after the other; NULL: none, or too many to keep */
    double *heavier;                /* 2 a body: the fraction of its inverse mass and inverse inertia that counts, below
                                       1 where these are huge */
    fsi__pressure_yield *yield;     /* of solids that yield, */
    int *first_yield;               /* those of solid k from first_yield[k] on; */
    int *first_pushed;              /* solid_count + 1: where its faces start in the next two, which hold all of them */
    double *pushed, *change;        /* impulse and response of each face */
    double *null;                   /* `nulls` vectors of `touching` numbers, one a piece: a basis of the pressures of
                                       pieces that act on nothing; orthonormal over the cells */
    int touching, nulls;            /* touching: pieces that meet a body or a solid that yields; 0 where no solid
                                       yields */
    int kept;                       /* 1: all this is what flow.same_equations asks for, of */
    fsi__pressure_key key;
    double kept_density;            /* that of the job, */
    int kept_pieces;                /* and of stats */
    const fsi_pressure_device *device; /* the table of the device that the context had in create; NULL: none */
    void *device_user, *work;       /* that device's own; this solver's part of it, NULL: not made yet */
    int on;                         /* 1: the vectors of the iteration are the device's */
    fsi_status lost;                /* its first failure in this call; */
    int unlisted;                   /* 1: the host had no memory for the lists */
    fsi__arena device_memory;       /* of the next four */
    int *touched, touched_count;    /* cells beside bodies and solids that yield */
    int *run_list;                  /* runs * 2: first cell and cells of each */
    double *some;                   /* what travels: a number for each touched cell, run or column */
    double *guess;                  /* the guess at touched cells, which the device's numbers replace in x */
} fsi__pressure_impl;

/* What the tasks of one projection share. Pressures are q = p dt/(density dx^2) [1/s], and beta is relative to the
   largest one. */
typedef struct fsi__pressure_job {
    fsi_pressure *s;
    fsi__pressure_impl *m;
    fsi_pressure_flow *flow;
    const fsi_grid *grid;
    double scale;                   /* q of a pressure of 1 Pa */
    double density;                 /* 1/largest beta */
    const double *from;             /* the vector that the matrix is applied to */
    double alpha, beta, factor;     /* of the iteration; level[0].r is factor * r */
    fsi_status status;              /* returned by a solid's respond */
} fsi__pressure_job;

FSI_API fsi_pressure_desc fsi_pressure_default_desc(void)
{
    fsi_pressure_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('P', fsi_pressure_desc);
    d.tolerance = sizeof(fsi_real) == 8 ? 1e-8 : 1e-6;
    d.max_iters = 200;
    return d;
}

FSI_API fsi_pressure_flow fsi_pressure_default_flow(void)
{
    fsi_pressure_flow f;
    memset(&f, 0, sizeof f);
    f.cookie = FSI__COOKIE('F', fsi_pressure_flow);
    f.density = 1000;
    f.theta_min = (fsi_real)0.01;
    return f;
}

/* The table of the context's device, if it has one. */
static fsi_status fsi__pressure_ask_device(const fsi_pressure_desc *desc, const fsi_pressure_device **table)
{
    static const char *const fn = "fsi_pressure_create";
    fsi_context *c = desc->context;
    *table = NULL;
    if (!fsi__is_device(c))
        return fsi__fail(c, FSI_ERROR_COOKIE, fn, -1, 0, "the context's device is of another version or precision");
    if (c && c->device)
        *table = (const fsi_pressure_device *)c->device->table(c->device->user, FSI_PRESSURE_TABLE);
    if (*table && (*table)->cookie != FSI__COOKIE('D', fsi_pressure_device))
        return fsi__fail(c, FSI_ERROR_COOKIE, fn, -1, 0, "the device's table \"" FSI_PRESSURE_TABLE
            "\" is of another version");
    if (!*table && desc->device == FSI_DEVICE_ALWAYS)
        return fsi__fail(c, FSI_ERROR_DEVICE, fn, -1, 0, "desc.device is FSI_DEVICE_ALWAYS, but the context has no "
            "device with the table \"" FSI_PRESSURE_TABLE "\"");
    return FSI_OK;
}

FSI_API fsi_status fsi_pressure_create(fsi_pressure **out, const fsi_pressure_desc *desc)
{
    const fsi_pressure_device *device;
    fsi__pressure_impl *m;
    fsi_pressure *s;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!desc || desc->cookie != FSI__COOKIE('P', fsi_pressure_desc) || !fsi__is_context(desc->context))
        return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__pressure_ask_device(desc, &device));
    s = (fsi_pressure *)fsi__alloc(desc->context, 1, sizeof *s);
    m = (fsi__pressure_impl *)fsi__alloc(desc->context, 1, sizeof *m);
    if (!s || !m) {
        fsi__free(desc->context, m, 1, sizeof *m);
        fsi__free(desc->context, s, 1, sizeof *s);
        return fsi__fail(desc->context, FSI_ERROR_MEMORY, "fsi_pressure_create", -1, 0,
            "no memory for a pressure solver");
    }
    s->cookie = FSI__COOKIE('p', fsi_pressure);
    s->context = m->mg.context = desc->context;
    s->desc = *desc;
    s->impl = m;
    m->device = device;
    m->device_user = device ? desc->context->device->user : NULL;
    *out = s;
    return FSI_OK;
}

FSI_API void fsi_pressure_destroy(fsi_pressure *s)
{
    fsi__pressure_impl *m;
    int l;
    if (!s || s->cookie != FSI__COOKIE('p', fsi_pressure)) return;
    m = (fsi__pressure_impl *)s->impl;
    if (m->work) m->device->destroy(m->work);
    for (l = 0; l < FSI__MG_LEVELS; l++) {
        fsi__arena_free(s->context, &m->mg.level[l].lists_memory);
        fsi__arena_free(s->context, &m->mg.level[l].numbers_memory);
    }
    fsi__arena_free(s->context, &m->lists_memory);
    fsi__arena_free(s->context, &m->cuts_memory);
    fsi__arena_free(s->context, &m->vectors_memory);
    fsi__arena_free(s->context, &m->faces_memory);
    fsi__arena_free(s->context, &m->responses_memory);
    fsi__arena_free(s->context, &m->yields_memory);
    fsi__arena_free(s->context, &m->runs_memory);
    fsi__arena_free(s->context, &m->pieces_memory);
    fsi__arena_free(s->context, &m->nulls_memory);
    fsi__arena_free(s->context, &m->device_memory);
    fsi__free(s->context, m, 1, sizeof *m);
    s->cookie = 0;
    fsi__free(s->context, s, 1, sizeof *s);
}

/* ---- >>pressure cells ----------------------------------------------------------------------------------------- */

/* Rows of 8 cells with a liquid one, in the order of z, y, x: counts them; fills the lists of the finest level if
   `fill`. */
static int fsi__pressure_scan(fsi__pressure_job *job, int fill)
{
    const fsi_grid *g = job->grid;
    fsi__mg_level *m = job->m->mg.level;
    const int layers = g->block_cells / 64, plane = g->blocks[0];
    int first, next, z, y, b, c, count = 0, row = 0, slab = g->blocks[0] * g->blocks[1];
    for (first = 0; first < g->block_count; first = next) { /* blocks of one layer */
        for (next = first; next < g->block_count && g->place[next] / slab == g->place[first] / slab; next++) continue;
        for (z = 0; z < layers; z++) {
            int from = first, to;
            for (; from < next; from = to) { /* of one line */
                for (to = from; to < next && g->place[to] / plane == g->place[from] / plane; to++) continue;

                /* The rows of 8 cells, in the order of x. */
                for (y = 0; y < 8; y++)
                    for (b = from; b < to; b++) {
                        const int at = (z * 8 + y) * 8;
                        const unsigned char *cell = job->flow->cell + (size_t)b * (size_t)g->block_cells + at;
                        int wet = 0;
                        for (c = 0; c < 8; c++) wet |= cell[c] == FSI_CELL_LIQUID;
                        if (fill)
                            job->m->brick[(size_t)b * (size_t)(g->block_cells / 8) + (size_t)(at / 8)] =
                                wet ? count : -1;
                        if (fill && wet) {
                            int corner[3], here;
                            fsi_grid_corner(g, b, corner);
                            here = (corner[2] + z - 8 * job->m->first_block[2]) * m->rows[0] + corner[1] + y
                                - 8 * job->m->first_block[1];
                            while (row <= here) m->row[row++] = count;
                            m->place[count] = corner[0] / 8 - job->m->first_block[0];
                            job->m->row[count] = b * (g->block_cells / 8) + at / 8;
                        }
                        count += wet;
                    }
            }
        }
    }

    /* Rows without bricks at the end. */
    while (fill && row <= m->rows[0] * m->rows[1]) m->row[row++] = count;
    return count;
}

/* The bounding box of the blocks with liquid; 0 when there is none. */
static int fsi__pressure_bounds(fsi__pressure_job *job)
{
    const fsi_grid *g = job->grid;
    fsi__mg_level *m = job->m->mg.level;
    int lo[3] = { 1 << 30, 1 << 30, 1 << 30 }, hi[3] = { -1, -1, -1 }, b, a;
    for (b = 0; b < g->block_count; b++) {
        int corner[3];
        if (!memchr(job->flow->cell + (size_t)b * (size_t)g->block_cells, FSI_CELL_LIQUID, (size_t)g->block_cells))
            continue;
        fsi_grid_corner(g, b, corner);
        for (a = 0; a < 3; a++) {
            if (corner[a] / 8 < lo[a]) lo[a] = corner[a] / 8;
            if (corner[a] / 8 > hi[a]) hi[a] = corner[a] / 8;
        }
    }
    if (hi[0] < 0) return 0;
    for (a = 0; a < 3; a++) job->m->first_block[a] = lo[a];
    m->columns = (hi[0] - lo[0] + 1) * 8;
    m->rows[0] = (hi[1] - lo[1] + 1) * 8;
    m->rows[1] = g->dim == 3 ? (hi[2] - lo[2] + 1) * 8 : 1;
    return 1;
}

/* The number of the unknown in the cell of `entry`, -1 where there is none. */
static int fsi__pressure_unknown(const fsi__pressure_job *job, long long entry)
{
    int brick;
    if (entry < 0 || job->flow->cell[entry] != FSI_CELL_LIQUID) return -1;
    brick = job->m->brick[entry >> 3];
    return fsi__mg_cell(brick) + (int)(entry & 7);
}

/* The entry below that of a face along its axis, -1 where none is. */
static long long fsi__pressure_below(const fsi__pressure_job *job, long long entry, int axis)
{
    const int b = (int)(entry / job->grid->block_cells), c = (int)(entry % job->grid->block_cells);
    return fsi__entry_beside(job->grid, b, job->m->beside + 6 * (size_t)b, c, 2 * axis);
}

static fsi_vec3 fsi__pressure_face_position(const fsi_grid *g, long long entry, int axis)
{
    const int c = (int)(entry % g->block_cells);
    int corner[3];
    fsi_grid_corner(g, (int)(entry / g->block_cells), corner);
    return fsi_grid_position(g, (fsi_grid_place)(FSI_FACES_X + axis), corner[0] + (c & 7), corner[1] + (c >> 3 & 7),
        corner[2] + (c >> 6));
}

/* Velocity of solid b along the axis of its face f. */
static double fsi__pressure_solid_velocity(const fsi__pressure_job *job, const fsi_pressure_solid *b, int f, int axis)
{
    fsi_vec3 v;
    if (b->respond)
        return (b->velocity ? (double)b->velocity[f] : 0)
            + job->m->change[job->m->first_pushed[b - job->flow->solids] + f];
    if (!b->coupled) return b->velocity ? (double)b->velocity[f] : 0;
    v = fsi_rigid_velocity(b->linear, b->angular, b->center,
        fsi__pressure_face_position(job->grid, b->faces->entry[f], axis));
    return (double)(axis == 0 ? v.x : (axis == 1 ? v.y : v.z));
}

/* Adds up fractions and fluxes of all solids. */
static void fsi__pressure_add_solids(fsi__pressure_job *job)
{
    const fsi_grid *g = job->grid;
    int k, a, f;
    for (k = 0; k < job->flow->solid_count; k++) {
        const fsi_pressure_solid *b = job->flow->solids + k;
        for (a = 0; a < g->dim; a++)
            for (f = b->faces->first[a]; f < b->faces->first[a + 1]; f++) {
                const int c = b->faces->entry[f] % g->block_cells,
                    cut = job->m->cut[b->faces->entry[f] / g->block_cells];
                if (cut < 0) continue;
                job->m->cuts_of[cut].closed[a][c] += b->faces->solid[f];
                job->m->cuts_of[cut].flux[a][c] += (double)b->faces->solid[f] * fsi__pressure_solid_velocity(job, b, f,
                    a);
            }
    }
}

/* Room for the faces of solids that yield, which have not done so yet. */
static int fsi__pressure_reserve_yields(fsi__pressure_job *job)
{
    const fsi_pressure_flow *flow = job->flow;
    fsi__pressure_impl *m = job->m;
    size_t faces = 0;
    int k, pass;

    /* How many faces. */
    for (k = 0; k < flow->solid_count; k++) faces += flow->solids[k].respond ? (size_t)flow->solids[k].faces->count : 0;
    m->first_pushed = NULL;
    if (faces == 0) return 1;

    /* Room for them. */
    for (pass = 0; pass < 2; pass++) {
        fsi__arena *arena = &m->yields_memory, measure;
        memset(&measure, 0, sizeof measure);
        if (!pass) arena = &measure;
        m->yield = (fsi__pressure_yield *)fsi__take(arena, faces, sizeof *m->yield);
        m->pushed = (double *)fsi__take(arena, faces, sizeof(double));
        m->change = (double *)fsi__take(arena, faces, sizeof(double));
        m->first_yield = (int *)fsi__take(arena, (size_t)flow->solid_count + 1, sizeof(int));
        m->first_pushed = (int *)fsi__take(arena, (size_t)flow->solid_count + 1, sizeof(int));
        if (!pass && !fsi__arena_room(job->s->context, &m->yields_memory, measure.used)) return 0;
    }

    /* Nothing has been pushed yet. */
    for (k = m->first_pushed[0] = 0; k < flow->solid_count; k++)
        m->first_pushed[k + 1] = m->first_pushed[k] + (flow->solids[k].respond ? flow->solids[k].faces->count : 0);
    memset(m->pushed, 0, faces * sizeof(double));
    memset(m->change, 0, faces * sizeof(double));
    return 1;
}

/* Lists and cuts of the blocks. Blocks far from liquid have no cut, however many of their faces are solid. */
static int fsi__pressure_reserve_cells(fsi__pressure_job *job)
{
    const fsi_grid *g = job->grid;
    fsi__pressure_impl *m = job->m;
    fsi__mg_level *fine = m->mg.level;
    const size_t rows = (size_t)g->block_count * (size_t)(g->block_cells / 8);
    const int bricks = fsi__pressure_scan(job, 0);
    int k, a, f, b, d, pass, cuts = 0;

    /* Room for lists. */
    for (pass = 0; pass < 2; pass++) {
        fsi__arena *lists = &m->lists_memory, measure;
        memset(&measure, 0, sizeof measure);
        if (!pass) lists = &measure;
        m->brick = (int *)fsi__take(lists, rows, sizeof(int));
        m->cut = (int *)fsi__take(lists, (size_t)g->block_count, sizeof(int));
        m->beside = (int *)fsi__take(lists, 6 * (size_t)g->block_count, sizeof(int));
        m->row = (int *)fsi__take(lists, (size_t)bricks, sizeof(int));
        if (!pass && !fsi__arena_room(job->s->context, &m->lists_memory, measure.used)) return 0;
    }

    /* Bricks, and the blocks beside each block. */
    if (!fsi__mg_reserve_lists(job->s->context, fine, bricks)) return 0;
    fsi__pressure_scan(job, 1);
    for (b = 0; b < g->block_count; b++) {
        m->cut[b] = -1;
        fsi__blocks_beside(g, b, m->beside + 6 * (size_t)b);
    }

    /* Blocks with faces of solids; a cut for those that liquid is near. */
    for (k = 0; k < job->flow->solid_count; k++)
        for (a = 0; a < g->dim; a++)
            for (f = job->flow->solids[k].faces->first[a]; f < job->flow->solids[k].faces->first[a + 1]; f++)
                m->cut[job->flow->solids[k].faces->entry[f] / g->block_cells] = -2;
    for (b = 0; b < g->block_count; b++) {
        int wet = 0;
        if (m->cut[b] != -2) continue;
        for (d = -1; d < 2 * g->dim && !wet; d++) {
            const int n = d < 0 ? b : m->beside[6 * (size_t)b + (size_t)d];
            wet = n >= 0
                && memchr(job->flow->cell + (size_t)n * (size_t)g->block_cells, FSI_CELL_LIQUID,
                (size_t)g->block_cells) != NULL;
        }
        m->cut[b] = wet ? cuts++ : -1;
    }

    /* Cuts. */
    if (!fsi__arena_room(job->s->context, &m->cuts_memory, (size_t)cuts * sizeof(fsi__pressure_cut))) return 0;
    m->cuts_of = (fsi__pressure_cut *)fsi__take(&m->cuts_memory, (size_t)cuts, sizeof(fsi__pressure_cut));
    memset(m->cuts_of, 0, (size_t)cuts * sizeof(fsi__pressure_cut));
    if (!fsi__pressure_reserve_yields(job)) return 0;
    fsi__pressure_add_solids(job);
    return 1;
}

/* ---- >>pressure faces ----------------------------------------------------------------------------------------- */

/* The sides at which a face has let go: bit 0 of the cell above it, bit 3 of the cell below it. */
static int fsi__pressure_gone(const fsi__pressure_job *job, long long entry, int axis)
{
    return job->flow->let_go && entry >= 0 ? job->flow->let_go[entry] >> axis & 9 : 0;
}

/* One face of a liquid cell. */
typedef struct fsi__pressure_side {
    long long entry;     /* in the face field, -1: its block does not exist */
    long long there;     /* the cell behind it, likewise */
    double open, flux;   /* fraction that no solid covers; sum of the solids' fractions times velocities */
    double a;            /* coefficient of the pressure difference, 0: closed */
    int air;             /* 1: `beyond` stands behind it rather than another unknown */
    int surface;         /* 1: air behind the liquid's surface; not an open side, or a wall that has let go */
    double beyond;       /* q there */
    double theta;        /* where it is, in cells from the centre */
    int cell;            /* kind of the cell behind it; the wall of the box counts as solid */
} fsi__pressure_side;

/* A row of 8 cells in block b. base: entry of its first cell; row: of those before, behind, below ... it, -1 none. */
typedef struct fsi__pressure_here {
    int b, place[3];
    long long base, row[6];
} fsi__pressure_here;

static void fsi__pressure_look(const fsi__pressure_job *job, int row, fsi__pressure_here *h)
{
    const fsi_grid *g = job->grid;
    static const int stride[3] = { 0, 8, 64 };
    const int rows = g->block_cells / 8, c = row % rows * 8;
    const int *beside = job->m->beside + 6 * (size_t)(row / rows);
    int d;
    h->b = row / rows;
    fsi_grid_corner(g, h->b, h->place);
    h->place[1] += c >> 3 & 7;
    h->place[2] += c >> 6;
    h->base = 8 * (long long)row;
    for (d = 0; d < 6; d++) {
        const int step = d & 1 ? stride[d >> 1] : -stride[d >> 1],
            inside = d > 1 && (h->place[d >> 1] & 7) != (d & 1 ? 7 : 0);
        h->row[d] = inside ? h->base + step
            : (beside[d] < 0 ? -1 : (long long)beside[d] * g->block_cells + c - 7 * step);
    }
}

static double fsi__pressure_at(const fsi_field *f, long long entry)
{
    return (double)(entry < 0 ? f->background : f->value[entry]);
}

FSI_API double fsi__pressure_of_surface(const fsi_pressure_flow *flow, long long from, long long to, double theta)
{
    const double a = (1 - theta) * (flow->surface_weight ? fsi__pressure_at(flow->surface_weight, from) : 1);
    const double b = theta * (flow->surface_weight ? fsi__pressure_at(flow->surface_weight, to) : 1);
    return (a * fsi__pressure_at(flow->surface_pressure, from) + b * fsi__pressure_at(flow->surface_pressure, to))
        / (a + b);
}

/* The cell beside cell x of the row on side d, -1: its block does not exist. */
FSI_FN long long fsi__pressure_there(const fsi__pressure_here *h, int x, int d)
{
    if (d > 1) return h->row[d] < 0 ? -1 : h->row[d] + x;
    if (x != (d ? 7 : 0)) return h->base + x + (d ? 1 : -1);
    return h->row[d] < 0 ? -1 : h->row[d] + (d ? 0 : 7);
}

/* Side d of cell x of the row: what stands there, and the coefficient open beta/theta. */
static fsi__pressure_side fsi__pressure_look_side(const fsi__pressure_job *job, const fsi__pressure_here *h, int x,
    int d)
{
    const fsi_pressure_flow *flow = job->flow;
    const fsi_grid *g = job->grid;
    const int a = d >> 1, place = h->place[a] + (a ? 0 : x);
    int gone, go, wall = d & 1 ? place + 1 >= g->n[a] : place == 0;
    const long long here = h->base + x;
    const long long there = fsi__pressure_there(h, x, d);
    double theta = 1, beta = 1;
    fsi__pressure_side s;

    /* The neighbour, and its kind; gone: faces at which a wall has released the liquid. */
    s.entry = d & 1 ? there : here;
    s.there = there;
    s.open = 1;
    s.flux = s.beyond = 0;
    s.a = 0;
    s.theta = 1;
    s.surface = 0;
    gone = fsi__pressure_gone(job, s.entry, a);
    wall |= go = gone >> (d & 1 ? 3 : 0) & 1;
    s.cell = wall ? (flow->open_side[d] || go ? (int)FSI_CELL_AIR : (int)FSI_CELL_SOLID)
        : (there < 0 ? (int)FSI_CELL_AIR : (int)flow->cell[there]);
    s.air = s.cell == FSI_CELL_AIR;

    /* Open fraction and flux of a cut face. */
    if (s.entry >= 0 && !go && job->m->cut[s.entry / g->block_cells] >= 0) {
        const fsi__pressure_cut *cut = job->m->cuts_of + job->m->cut[s.entry / g->block_cells];
        const int e = (int)(s.entry % g->block_cells);
        const double closed = (double)cut->closed[a][e];
        s.open = closed < 1 ? 1 - closed : 0;
        s.flux = cut->flux[a][e] / (closed > 1 ? closed : 1);
        /* liquid that has separated on one side leaves the face closed to the other side, whatever its fraction */
        if (s.open < FSI__PRESSURE_OPEN || gone) s.open = 0;
    }
    if (s.cell == FSI_CELL_SOLID || s.open == 0) {
        s.air = 0;
        return s;
    }

    /* beta = 1/density over the liquid's; theta: fraction of the cell distance to the surface (ghost fluid). */
    if (flow->inverse_density[0]) beta = fsi__pressure_at(flow->inverse_density[a], s.entry) * job->density;
    if (!(beta > 0)) beta = HUGE_VAL; /* refused when the equations are added up */
    if (s.air && wall) theta = 0.5;
    else if (s.air && flow->phi) {
        const double in = fsi__pressure_at(flow->phi, here), out = fsi__pressure_at(flow->phi, there);
        const double least = (double)flow->theta_min * (double)g->dx, deep = -in > least ? -in : least;
        theta = out > 0 ? deep / (deep + out) : 1;
        if (theta < (double)flow->theta_min) theta = (double)flow->theta_min;
        theta += 0 * (in + out); /* keeps a NaN */
    }

    /* Pressure at the surface, and the coefficient. */
    s.surface = s.air && !wall;
    if (s.surface && flow->surface_pressure)
        s.beyond = job->scale * fsi__pressure_of_surface(flow, here, there, theta);
    s.a = s.open * beta / theta;
    s.theta = theta;
    if (!s.air) s.a = (double)(float)s.a;
    return s;
}

/* Surface tension where the surface passes a cell on several sides: in films, at rims and corners. Waves that bend a
   film of thickness h have omega^2 = 2 gamma k^2/(rho h). They are faster than those of deep liquid, gamma k^3/rho,
   which limit the substep, if h < 2/k, and the shortest waves on the grid have k = 2/dx. So what bends the film, the
   difference of the pressures on its two sides, is limited as if it moved at least the mass of a cell. Where a rim
   enters a cell and makes it liquid by a hundredth, all its sides are close to one place of the surface, and pressures
   that differ would throw out what is in it. With `thick`, the thickness of the liquid between a side and the nearest
   other one [dx], at most 1, and <> the mean over the sides by their coefficients:

      p_s = <p> + share_s (p_s - <p>) - <share (p - <p>)>        share = 1 - ridge (1 - thick)

   <p> is all of them that the equation of the cell has: it is unchanged, and so is the flow out of the cell. */
static void fsi__pressure_hold_sides(fsi__pressure_side *s, int sides, double ridge)
{
    double least = 1, second = 1, sum = 0, mean = 0, kept = 0, share[6] = { 0, 0, 0, 0, 0, 0 };
    int d;

    /* The two nearest sides, and the mean of all. */
    for (d = 0; d < sides; d++) {
        if (!s[d].surface) continue;
        second = fmin(second, fmax(least, s[d].theta));
        least = fmin(least, s[d].theta);
        sum += s[d].a;
        mean += s[d].a * s[d].beyond;
    }
    if (!(least + second < 1) || !(ridge > 0)) return;
    mean /= sum;

    for (d = 0; d < sides; d++) {
        if (!s[d].surface) continue;
        share[d] = 1 - ridge * (1 - fmin(1, s[d].theta + (s[d].theta > least ? least : second)));
        kept += s[d].a * share[d] * (s[d].beyond - mean) / sum;
    }
    for (d = 0; d < sides; d++)
        if (s[d].surface) s[d].beyond = mean + share[d] * (s[d].beyond - mean) - kept;
}

/* By its surface_weight a cell is a ridge, with all its sides. Where the side of a deep liquid hardly passes the centre
   of a cell there is air on several sides, too, but the weight is 1: there pressures are interpolated in theta, and
   their difference is what bears the liquid's weight. Without weights films alone are known, by air across an axis. */
static void fsi__pressure_hold_films(const fsi__pressure_job *job, long long here, fsi__pressure_side *s)
{
    const fsi_field *weight = job->flow->surface_weight;
    int a;
    if (weight) fsi__pressure_hold_sides(s, 2 * job->grid->dim, 1 - fmin(1, fsi__pressure_at(weight, here)));
    else for (a = 0; a < job->grid->dim; a++) fsi__pressure_hold_sides(s + 2 * a, 2, 1);
}

/* All sides of a cell. Matrix and velocities use the same coefficients, to the last bit of a double: those between
   unknowns are floats, those to air have a sum that is a float, which is returned. */
static float fsi__pressure_look_sides(const fsi__pressure_job *job, const fsi__pressure_here *h, int x,
    fsi__pressure_side *s)
{
    const int sides = 2 * job->grid->dim;
    double sum = 0;
    int d;
    for (d = 0; d < sides; d++) {
        s[d] = fsi__pressure_look_side(job, h, x, d);
        if (s[d].air) sum += s[d].a;
    }
    for (d = 0; d < sides; d++)
        if (s[d].air) s[d].a *= (double)(float)sum / sum;
    if (job->flow->surface_pressure) fsi__pressure_hold_films(job, h->base + x, s);
    return (float)sum;
}

static int fsi__pressure_all_liquid(const unsigned char *cell)
{
    int c, all = 1;
    for (c = 0; c < 8; c++) all &= cell[c] == FSI_CELL_LIQUID;
    return all;
}

/* Is every cell of the row, and every one beside it, liquid, in the box, and clear of solids? Most rows are. */
static int fsi__pressure_is_inner(const fsi__pressure_job *job, const fsi__pressure_here *h)
{
    const fsi_grid *g = job->grid;
    const unsigned char *cell = job->flow->cell;
    int d;
    if (h->place[0] + 8 >= g->n[0] || job->m->cut[h->b] >= 0 || !fsi__pressure_all_liquid(cell + h->base)) return 0;
    for (d = 0; d < 2 * g->dim; d++) {
        if (h->row[d] < 0 || (d & 1 ? h->place[d >> 1] + 1 >= g->n[d >> 1] : h->place[d >> 1] == 0)) return 0;
        if (d & 1 && job->m->cut[h->row[d] / g->block_cells] >= 0) return 0;
        if (d < 2 ? cell[h->row[d] + (d ? 0 : 7)] != FSI_CELL_LIQUID : !fsi__pressure_all_liquid(cell + h->row[d]))
            return 0;
    }
    return 1;
}

/* The coefficients of an inner row in a liquid of several densities. */
static void fsi__pressure_inner_faces(const fsi__pressure_job *job, const fsi__pressure_here *h, float *f, size_t n)
{
    int a, c;
    for (a = 0; a < job->grid->dim; a++) {
        const fsi_real *lower = job->flow->inverse_density[a]->value + h->base,
            *last = job->flow->inverse_density[a]->value + h->row[2 * a + 1];
        for (c = 0; c < 8; c++) {
            f[(size_t)(FSI__MG_LOWER + a) * n + (size_t)c] = (float)((double)lower[c] * job->density);
            f[(size_t)(FSI__MG_UPPER + a) * n + (size_t)c] =
                (float)((double)(a ? last[c] : (c < 7 ? lower[c + 1] : *last)) * job->density);
        }
    }
}

/* Are all faces of an inner row of the level's unit? */
static int fsi__pressure_is_ordinary(const fsi__pressure_job *job, const fsi__pressure_here *h)
{
    const float unit = job->m->mg.level[0].unit;
    float f[6 * 8];
    int k, all = 1;
    fsi__pressure_inner_faces(job, h, f, 8);
    for (k = 0; k < 24; k++) all &= (k >= 8 * job->grid->dim) | ((f[k] == unit) & (f[24 + k] == unit));
    return all;
}

/* Which bricks are plain. */
static void fsi__pressure_classify(void *arg, int chunk, int begin, int end)
{
    const fsi__pressure_job *job = (const fsi__pressure_job *)arg;
    fsi__pressure_here h;
    int brick;
    (void)chunk;
    for (brick = begin; brick < end; brick++) {
        fsi__pressure_look(job, job->m->row[brick], &h);
        job->m->mg.level[0].rough[brick] = fsi__pressure_is_inner(job, &h)
            && (!job->flow->inverse_density[0] || fsi__pressure_is_ordinary(job, &h)) ? -1 : 0;
    }
}

static void fsi__pressure_find_plain(fsi__pressure_job *job)
{
    fsi__mg_level *fine = job->m->mg.level;
    int brick;
    const double work = (double)FSI__PRESSURE_NS_KIND * fine->bricks;
    fsi__parallel_work(job->s->context, fine->bricks, FSI__PRESSURE_CHUNK, work, fsi__pressure_classify, job);
    for (brick = fine->rough_cells = 0; brick < fine->bricks; brick++) {
        if (fine->rough[brick] < 0) continue;
        fine->rough[brick] = fine->rough_cells;
        fine->rough_cells += 8;
    }
}

/* The right side of an inner row. */
static void fsi__pressure_inner_equations(const fsi__pressure_job *job, const fsi__pressure_here *h, int brick,
    double *partial)
{
    const fsi_pressure_flow *flow = job->flow;
    double div[8] = { 0, 0, 0, 0, 0, 0, 0, 0 }, *b = job->m->b + fsi__mg_cell(brick);
    int a, c;
    for (c = 0; c < 8 && flow->source; c++) div[c] = -(double)job->grid->dx * (double)flow->source->value[h->base + c];
    for (a = 0; a < job->grid->dim; a++) {
        const fsi_real *lower = flow->u[a]->value + h->base, *last = flow->u[a]->value + h->row[2 * a + 1];
        for (c = 0; c < 8; c++) div[c] += (double)(a ? last[c] : (c < 7 ? lower[c + 1] : *last)) - (double)lower[c];
    }
    for (c = 0; c < 8; c++) {
        b[c] = -div[c] / (double)job->grid->dx;
        partial[0] += fabs(b[c]);
        if (fabs(b[c]) > partial[1]) partial[1] = fabs(b[c]);
    }
    partial[2] += 8;
}

/* Equations of the bricks of one chunk. partial: sum of |b| (not finite when anything is not), largest b with
   theta = 1, unknowns, enclosed cells. */
static void fsi__pressure_equations(void *arg, int chunk, int begin, int end)
{
    const fsi__pressure_job *job = (const fsi__pressure_job *)arg;
    const fsi_grid *g = job->grid;
    fsi__pressure_impl *m = job->m;
    fsi__mg_level *fine = m->mg.level;
    double *partial = m->partial + 4 * chunk;
    fsi__pressure_here h;
    float *f;
    const size_t n = (size_t)fine->rough_cells;
    int brick, x, d;
    memset(partial, 0, 4 * sizeof *partial);

    /* Bricks within the liquid. */
    for (brick = begin; brick < end; brick++) {
        const long long base = 8 * (long long)m->row[brick];
        fsi__pressure_look(job, m->row[brick], &h);
        f = fsi__mg_faces(fine, fsi__mg_cell(brick));
        for (x = 0; x < FSI__MG_ARRAYS && f; x++) memset(f + (size_t)x * n, 0, 8 * sizeof *f);
        if (!f || (job->flow->inverse_density[0] && fsi__pressure_is_inner(job, &h))) {
            fsi__pressure_inner_equations(job, &h, brick, partial);
            if (!f) continue;
            fsi__pressure_inner_faces(job, &h, f, n);
            fsi__mg_invert(f, n);
            continue;
        }

        /* Cell after cell: its sides. */
        for (x = 0; x < 8; x++) {
            const int at = fsi__mg_cell(brick) + x;
            double div = 0, known = 0, reference = 0, sum = 0;
            fsi__pressure_side s[6];
            if (job->flow->cell[base + x] == FSI_CELL_LIQUID) {
                if (job->flow->source) div = -(double)g->dx * (double)job->flow->source->value[base + x];
                f[FSI__MG_EXCESS * n + (size_t)x] = fsi__pressure_look_sides(job, &h, x, s);
                for (d = 0; d < 2 * g->dim; d++) {
                    div += (d & 1 ? 1 : -1) * (s[d].open * fsi__pressure_at(job->flow->u[d >> 1], s[d].entry)
                        + s[d].flux);
                    sum += s[d].a;
                    if (!s[d].air)
                        f[(size_t)((d & 1 ? FSI__MG_UPPER : FSI__MG_LOWER) + (d >> 1)) * n + (size_t)x] = (float)s[d].a;
                    known += s[d].air ? s[d].a * s[d].beyond : 0;
                    reference += s[d].beyond;
                }
            }

            /* The right side, and the sums that the stopping test and stats need. */
            m->b[at] = sum > 0 ? known - div / (double)g->dx : 0;
            reference = fabs(reference - div / (double)g->dx);
            partial[0] += fabs(m->b[at]) + fabs(div) + sum;
            if (sum > 0 && reference > partial[1]) partial[1] = reference;
            partial[2] += sum > 0;
            partial[3] += job->flow->cell[base + x] == FSI_CELL_LIQUID && !(sum > 0);
        }
        fsi__mg_invert(f, n);
    }
}

/* The right sides alone, where there are neither solids nor surface pressures: the matrix is that of the last call.
   partial: as above. */
static void fsi__pressure_right_sides(void *arg, int chunk, int begin, int end)
{
    const fsi__pressure_job *job = (const fsi__pressure_job *)arg;
    const fsi_pressure_flow *flow = job->flow;
    fsi__pressure_impl *m = job->m;
    const double dx = (double)job->grid->dx;
    double *partial = m->partial + 4 * chunk;
    fsi__pressure_here h;
    int brick, x, d;
    memset(partial, 0, 4 * sizeof *partial);
    for (brick = begin; brick < end; brick++) {
        const long long base = 8 * (long long)m->row[brick];
        fsi__pressure_look(job, m->row[brick], &h);
        if (m->mg.level[0].rough[brick] < 0 || (flow->inverse_density[0] && fsi__pressure_is_inner(job, &h))) {
            fsi__pressure_inner_equations(job, &h, brick, partial);
            continue;
        }

        /* Cell after cell: what flows out of it. */
        for (x = 0; x < 8; x++) {
            const int at = fsi__mg_cell(brick) + x, wet = flow->cell[base + x] == FSI_CELL_LIQUID;
            const int has = wet && fsi__mg_has(m->mg.level, at);
            double div = wet && flow->source ? -dx * (double)flow->source->value[base + x] : 0;
            for (d = 0; d < 2 * job->grid->dim && wet; d++)
                div += (d & 1 ? 1 : -1)
                    * fsi__pressure_at(flow->u[d >> 1], d & 1 ? fsi__pressure_there(&h, x, d) : base + x);
            m->b[at] = has ? 0 - div / dx : 0;
            partial[0] += fabs(div);
            if (has && fabs(m->b[at]) > partial[1]) partial[1] = fabs(m->b[at]);
            partial[2] += has;
            partial[3] += wet && !has;
        }
    }
}

/* The lower faces of an inner row. */
static void fsi__pressure_inner_correct(const fsi__pressure_job *job, const fsi__pressure_here *h, int brick)
{
    const fsi__pressure_impl *m = job->m;
    const float *faces = fsi__mg_faces(m->mg.level, fsi__mg_cell(brick));
    const double *q = m->x + fsi__mg_cell(brick), dx = (double)job->grid->dx, unit = (double)m->mg.level[0].unit;
    int a, c;
    for (a = 0; a < job->grid->dim; a++) {
        const float *share = faces ? faces + (size_t)(FSI__MG_LOWER + a) * (size_t)m->mg.level[0].rough_cells : NULL;
        const double *below = a ? m->x + fsi__mg_cell(m->brick[h->row[2 * a] >> 3]) : q - 1;
        fsi_real *u = job->flow->u[a]->value + h->base;
        for (c = 0; c < 8; c++)
            u[c] = (fsi_real)((double)u[c] - dx * (share ? (double)share[c] : unit) * (q[c] - below[c]));
    }
    for (c = 0; c < 8 && job->flow->pressure; c++)
        job->flow->pressure->value[h->base + c] = (fsi_real)(q[c] / job->scale);
}

/* u -= dx a/open (q_upper - q_lower), on the faces of the bricks' liquid cells; a face between two of them is the upper
   one's. */
static void fsi__pressure_correct(void *arg, int chunk, int begin, int end)
{
    const fsi__pressure_job *job = (const fsi__pressure_job *)arg;
    const fsi_grid *g = job->grid;
    fsi__pressure_impl *m = job->m;
    fsi__pressure_here h;
    int brick, x, d;
    (void)chunk;

    /* Bricks within the liquid. */
    for (brick = begin; brick < end; brick++) {
        const long long base = 8 * (long long)m->row[brick];
        fsi__pressure_look(job, m->row[brick], &h);
        if (m->mg.level[0].rough[brick] < 0 || (job->flow->inverse_density[0] && fsi__pressure_is_inner(job, &h))) {
            fsi__pressure_inner_correct(job, &h, brick);
            continue;
        }

        /* Cell after cell: its sides. */
        for (x = 0; x < 8; x++) {
            const double here = m->x[fsi__mg_cell(brick) + x];
            fsi__pressure_side side[6];
            if (job->flow->cell[base + x] != FSI_CELL_LIQUID) continue;
            if (job->flow->pressure) job->flow->pressure->value[base + x] = (fsi_real)(here / job->scale);
            fsi__pressure_look_sides(job, &h, x, side);
            for (d = 0; d < 2 * g->dim; d++) {
                const fsi__pressure_side s = side[d];
                double beyond;
                if (s.entry < 0 || s.cell == FSI_CELL_SOLID || (d & 1 && s.cell == FSI_CELL_LIQUID)) continue;
                if (!(s.open > 0)) {
                    if (fsi__pressure_gone(job, s.entry, d >> 1)) continue; /* the other side's */
                    job->flow->u[d >> 1]->value[s.entry] = (fsi_real)s.flux;
                    continue;
                }
                beyond = s.air ? s.beyond : m->x[fsi__pressure_unknown(job, s.there)];
                job->flow->u[d >> 1]->value[s.entry] = (fsi_real)((double)job->flow->u[d >> 1]->value[s.entry]
                    - (double)g->dx * s.a / s.open * (d & 1 ? beyond - here : here - beyond));
            }
        }
    }
}

/* ---- >>pressure solids that yield ----------------------------------------------------------------------------- */

static fsi_status fsi__pressure_refuse(fsi_pressure *s, fsi_status status, const char *what, int k)
{
    return fsi__fail(s->context, status, "fsi_pressure_project", k, 0, "%s [%d]", what, k);
}

/* The cell above or below a solid's face which it pushes, -1: none, or it has let go of that. */
static long long fsi__pressure_pushed(const fsi__pressure_job *job, long long entry, int axis, int upper)
{
    if (fsi__pressure_gone(job, entry, axis) & (upper ? 1 : 8)) return -1;
    return upper ? entry : fsi__pressure_below(job, entry, axis);
}

/* Fraction of face f that its solid covers, when solids overlap there. */
static double fsi__pressure_share(const fsi__pressure_job *job, const fsi_pressure_solid *b, int f, int axis)
{
    const int entry = b->faces->entry[f], cut = job->m->cut[entry / job->grid->block_cells];
    const double closed = cut < 0 ? 0 : (double)job->m->cuts_of[cut].closed[axis][entry % job->grid->block_cells];
    return (double)b->faces->solid[f] / (closed > 1 ? closed : 1);
}

static int fsi__pressure_equation(const fsi__pressure_job *job, long long entry)
{
    const int at = fsi__pressure_unknown(job, entry);
    return at >= 0 && fsi__mg_has(job->m->mg.level, at) ? at : -1;
}

/* A solid that yields adds K = S^T R S/dx to the matrix: S takes the pressures of the cells beside its faces to
   impulses, R is its respond. A face that yields as freely as the liquid (density dx^d R = 1) equals an open face of
   coefficient 1, towards the cell beyond or, where that is air, a surface a cell away. So the multigrid's matrix gets
   share^2 yielding there. A itself is unchanged: the iteration subtracts `more` again. Multigrid serves smooth
   pressures, for which the response R is its row sums: with these as estimates light cloth in a liquid of 64^3 cells
   takes 9 iterations, with the diagonal up to 25, without 30, and more on finer grids. */

/* The faces with an unknown beside them, in the order of the solids. */
static void fsi__pressure_list_yields(fsi__pressure_job *job)
{
    fsi__pressure_impl *m = job->m;
    int k, a, f, count = 0;
    for (k = 0; k < job->flow->solid_count && m->first_pushed; k++) {
        const fsi_pressure_solid *b = job->flow->solids + k;
        m->first_yield[k] = count;
        for (a = 0; a < job->grid->dim && b->respond; a++)
            for (f = b->faces->first[a]; f < b->faces->first[a + 1]; f++) {
                fsi__pressure_yield *y = m->yield + count;
                y->upper = fsi__pressure_equation(job, fsi__pressure_pushed(job, b->faces->entry[f], a, 1));
                y->lower = fsi__pressure_equation(job, fsi__pressure_pushed(job, b->faces->entry[f], a, 0));
                y->at = m->first_pushed[k] + f;
                y->share = fsi__pressure_share(job, b, f, a);
                y->more = 0;
                count += y->upper >= 0 || y->lower >= 0;
            }
        m->first_yield[k + 1] = count;
    }
}

/* Adds a yielding face along axis a to the multigrid's matrix: to the coefficients of both cells, or as an excess of
   the only one. */
static void fsi__pressure_soften_face(fsi__pressure_impl *m, fsi__pressure_yield *y, int a, double give)
{
    const fsi__mg_level *fine = m->mg.level;
    const size_t n = (size_t)fine->rough_cells;
    const int only = y->upper < 0 ? y->lower : y->upper, both = y->lower >= 0 && y->upper >= 0,
        below = both ? y->lower : only;
    float *f = fsi__mg_faces(fine, only), *g = fsi__mg_faces(fine, below), *to;
    double was;
    if (!f || !g) return;
    to = f + (size_t)(both ? FSI__MG_LOWER + a : FSI__MG_EXCESS) * n;
    was = (double)*to;
    *to = (float)(was + give);
    y->more = (double)*to - was;
    if (both) g[(size_t)(FSI__MG_UPPER + a) * n] = *to;
    fsi__mg_invert(f - (only & 7), n); /* bricks start at multiples of 8 */
    fsi__mg_invert(g - (below & 7), n);
}

static void fsi__pressure_soften(fsi__pressure_job *job)
{
    fsi__pressure_impl *m = job->m;
    int k, a, y;
    for (k = 0; k < job->flow->solid_count && m->first_pushed; k++) {
        const fsi_pressure_solid *b = job->flow->solids + k;
        for (y = m->first_yield[k], a = 0; y < m->first_yield[k + 1] && b->yielding; y++) {
            const int f = m->yield[y].at - m->first_pushed[k];
            double give = fmin((double)b->yielding[f], 1) * m->yield[y].share * m->yield[y].share;
            while (f >= b->faces->first[a + 1]) a++;
            if (job->flow->inverse_density[0])
                give *= fmin((double)job->flow->inverse_density[a]->value[b->faces->entry[f]] * job->density, 1);
            if (give > 0) fsi__pressure_soften_face(m, m->yield + y, a, give);
        }
    }
}

/* m->change = R m->pushed of solid k. */
static fsi_status fsi__pressure_ask(fsi__pressure_job *job, int k)
{
    const fsi_pressure_solid *b = job->flow->solids + k;
    fsi__pressure_impl *m = job->m;
    fsi_context *c = job->s->context;
    double *change = m->change + m->first_pushed[k];
    const int n = b->faces->count;
    fsi_error before;
    int f, finite = 1;
    memset(&before, 0, sizeof before);
    if (c) before = c->error;
    if (c) c->error.status = FSI_OK;
    job->status = b->respond(b->user, c, m->pushed + m->first_pushed[k], change);
    if (job->status != FSI_OK)
        return !c || c->error.status == FSI_OK
            ? fsi__pressure_refuse(job->s, job->status, "respond failed: solids", k) : job->status;
    if (c) c->error = before;
    for (f = 0; f < n; f++) finite &= fsi_is_finite(change[f]);
    return job->status = finite ? FSI_OK
        : fsi__pressure_refuse(job->s, FSI_ERROR_NAN, "what respond wrote is not finite: solids", k);
}

/* The impulses of pressures v on all solids that yield, and the changes of velocity that they return. */
static fsi_status fsi__pressure_ask_all(fsi__pressure_job *job, const double *v)
{
    const fsi__pressure_impl *m = job->m;
    const double dx = (double)job->grid->dx, unit = job->density * dx * dx * (job->grid->dim == 3 ? dx * dx : dx);
    int k, i;
    for (k = 0; k < job->flow->solid_count && m->first_pushed && job->status == FSI_OK; k++) {
        for (i = m->first_yield[k]; i < m->first_yield[k + 1]; i++) {
            const fsi__pressure_yield *y = m->yield + i;
            m->pushed[y->at] = unit * y->share * ((y->lower < 0 ? 0 : v[y->lower]) - (y->upper < 0 ? 0 : v[y->upper]));
        }
        if (m->first_yield[k] < m->first_yield[k + 1]) fsi__pressure_ask(job, k);
    }
    return job->status;
}

/* Coarse levels leave a little in cells without an equation, which have no pressure. It cancels in a solid's total, but
   not face by face. */
static void fsi__pressure_clear_enclosed(fsi__pressure_job *job)
{
    const fsi__mg_level *fine = job->m->mg.level;
    const int end = fsi__mg_cell(fine->bricks);
    int at;
    for (at = FSI__MG_FRONT; at < end && job->flow->solid_count > 0; at++)
        if (!fsi__mg_has(fine, at)) job->m->x[at] = 0;
}

/* m->q += (K - more) v; returns v times that. */
static double fsi__pressure_yield_to(fsi__pressure_job *job, const double *v)
{
    fsi__pressure_impl *m = job->m;
    const double dx = (double)job->grid->dx;
    double sum = 0;
    int i;
    if (fsi__pressure_ask_all(job, v) != FSI_OK) return 0;
    for (i = 0; i < m->first_yield[job->flow->solid_count]; i++) {
        const fsi__pressure_yield *y = m->yield + i;
        const double difference = (y->lower < 0 ? 0 : v[y->lower]) - (y->upper < 0 ? 0 : v[y->upper]);
        const double flow = y->share * m->change[y->at] / dx - y->more * difference;
        if (y->lower >= 0) m->q[y->lower] += flow;
        if (y->upper >= 0) m->q[y->upper] -= flow;
        sum += flow * difference;
    }
    return sum;
}

/* ---- >>pressure pieces ---------------------------------------------------------------------------------------- */

static int fsi__pressure_root(fsi__pressure_run *run, int k)
{
    while (run[k].root != k) k = run[k].root = run[run[k].root].root;
    return k;
}

/* Joins the runs of the cells on both sides of open faces; the root of a piece is its first run. */
static void fsi__pressure_join(fsi__pressure_impl *m, int *label)
{
    const fsi__mg_level *f = m->mg.level;
    int k, i, a;
    for (k = 0; k < f->segments; k++)
        for (a = 1; a < (m->mg.dim); a++) {
            const fsi_pressure_segment *s = f->segment + k;
            const int *here = label + s->at, *below = label + s->lower[a - 1];
            int last = -1, last_below = -1;
            for (i = 0; i < s->n; i++)
                if ((s->rough < 0 || f->faces[(size_t)a * (size_t)f->rough_cells + (size_t)(s->rough + i)] > 0)
                    && (here[i] != last || below[i] != last_below)) {
                    const int p = fsi__pressure_root(m->run, last = here[i]),
                        q = fsi__pressure_root(m->run, last_below = below[i]);
                    m->run[p > q ? p : q].root = p > q ? q : p;
                }
        }
}

/* piece[].way: the force and torque of the pressure 1 in all cells of a group on body b; size: the same with all terms
   made positive. */
static void fsi__pressure_push_by_groups(fsi__pressure_impl *m, const int *label, int b)
{
    int f, k, p, side;
    for (p = 0; p < m->pieces; p++) {
        memset(m->piece[p].way, 0, sizeof m->piece[p].way);
        memset(m->piece[p].size, 0, sizeof m->piece[p].size);
    }
    for (f = m->body_face[b]; f < m->body_face[b + 1]; f++) {
        int group[2];
        for (side = 0; side < 2; side++) {
            const int at = side ? m->face[f].upper : m->face[f].lower, piece = at < 0 ? -1 : m->run[label[at]].piece;
            group[side] = piece < 0 ? -1 : m->piece[piece].group;
        }
        for (side = 0; side < 2; side++)
            for (k = 0; k < 6 && group[0] != group[1] && group[side] >= 0; k++) {
                m->piece[group[side]].way[k] += side ? -m->face[f].h[k] : m->face[f].h[k];
                m->piece[group[side]].size[k] += fabs(m->face[f].h[k]);
            }
    }
}

static int fsi__pressure_joined(const fsi__pressure_impl *m, int p)
{
    while (m->piece[p].joined != p) p = m->piece[p].joined;
    return p;
}

/* A piece whose pressure moves a body, because its forces there do not cancel (a piston), is not closed: its pressure
   is determined by the body. But all pieces together that move the same bodies may be closed (the chambers on both
   sides of the piston): they form a group, for which the test is repeated. */
static void fsi__pressure_group(fsi__pressure_impl *m, const int *label)
{
    int b, k, p, pass;
    for (p = 0; p < m->pieces; p++) m->piece[p].group = m->piece[p].joined = p;
    for (pass = 0; pass < 2; pass++) {
        for (b = 0; b < m->bodies; b++) {
            int first = -1;
            fsi__pressure_push_by_groups(m, label, b);
            for (p = 0; p < m->pieces; p++) {
                int moves = 0;
                for (k = 0; k < 6; k++) moves |= fabs(m->piece[p].way[k]) > FSI__PRESSURE_WAY_OUT * m->piece[p].size[k];
                if (!moves) continue;
                if (pass) m->piece[p].free = 1;
                else if (first < 0) first = p;
                else {
                    const int q = fsi__pressure_joined(m, first), r = fsi__pressure_joined(m, p);
                    m->piece[q > r ? q : r].joined = q > r ? r : q;
                }
            }
        }
        for (p = 0; p < m->pieces; p++) m->piece[p].group = fsi__pressure_joined(m, p);
    }
}

static int fsi__pressure_piece_at(const fsi__pressure_impl *m, const int *label, int at)
{
    return at < 0 ? -1 : m->run[label[at]].piece;
}

/* Numbers the pieces that a body or a solid that yields meets. */
static void fsi__pressure_number_touching(fsi__pressure_job *job, const int *label)
{
    fsi__pressure_impl *m = job->m;
    const int faces = m->body_face[m->bodies], yields = m->first_yield[job->flow->solid_count];
    int i, p, side;
    for (i = 0; i < faces + yields; i++)
        for (side = 0; side < 2; side++) {
            const int lower = i < faces ? m->face[i].lower : m->yield[i - faces].lower,
                upper = i < faces ? m->face[i].upper : m->yield[i - faces].upper;
            p = fsi__pressure_piece_at(m, label, side ? upper : lower);
            if (p >= 0) m->piece[p].touching = 0;
        }
    for (p = m->touching = 0; p < m->pieces; p++)
        if (m->piece[p].touching == 0) m->piece[p].touching = m->touching++;
}

/* G += the Gram matrix of the forces on bodies of a unit pressure in each touching piece, each row in units of the
   largest possible one; size[p]: the largest possible force of piece p. */
static void fsi__pressure_feel_bodies(fsi__pressure_impl *m, const int *label, double *G, double *size)
{
    int b, k, p, q;
    for (p = 0; p < m->pieces; p++) m->piece[p].group = p;
    for (b = 0; b < m->bodies; b++) {
        fsi__pressure_push_by_groups(m, label, b);
        for (k = 0; k < 6; k++) {
            double most = 0;
            for (p = 0; p < m->pieces; p++) most = fmax(most, m->piece[p].size[k] * m->piece[p].size[k]);
            for (p = 0; p < m->pieces && most > 0; p++) {
                if (m->piece[p].touching < 0) continue;
                size[m->piece[p].touching] += m->piece[p].size[k] * m->piece[p].size[k] / most;
                for (q = 0; q < m->pieces; q++)
                    if (m->piece[q].touching >= 0)
                        G[m->piece[p].touching * m->touching + m->piece[q].touching] += m->piece[p].way[k]
                            * m->piece[q].way[k] / most;
            }
        }
    }
}

/* Row p of the same for solid k that yields, in its own units: the flow into each piece by the solid's response to the
   pressure 1 in touching piece p. With `equal` returns the sum with all signs made equal and writes nothing. */
static double fsi__pressure_feel_yields(fsi__pressure_job *job, const int *label, int k, int p, int equal, double *row)
{
    fsi__pressure_impl *m = job->m;
    double all = 0;
    int i, some = 0;
    for (i = m->first_yield[k]; i < m->first_yield[k + 1]; i++) {
        const fsi__pressure_yield *y = m->yield + i;
        const int lower = fsi__pressure_piece_at(m, label, y->lower),
            upper = fsi__pressure_piece_at(m, label, y->upper);
        const int sign = (lower >= 0 && m->piece[lower].touching == p) - (upper >= 0 && m->piece[upper].touching == p);
        m->pushed[y->at] = y->share * (equal ? sign * sign : sign);
        some |= sign;
    }
    if (!some || fsi__pressure_ask(job, k) != FSI_OK) return 0;
    for (i = m->first_yield[k]; i < m->first_yield[k + 1]; i++) {
        const fsi__pressure_yield *y = m->yield + i;
        const int lower = fsi__pressure_piece_at(m, label, y->lower),
            upper = fsi__pressure_piece_at(m, label, y->upper);
        all += m->pushed[y->at] * m->change[y->at];
        if (lower >= 0 && !equal) row[m->piece[lower].touching] += y->share * m->change[y->at];
        if (upper >= 0 && !equal) row[m->piece[upper].touching] -= y->share * m->change[y->at];
    }
    return all;
}

/* The same for all solids that yield, each in units of the largest that could be felt; own and own_size are room for
   one of them. */
static void fsi__pressure_feel_all_yields(fsi__pressure_job *job, const int *label, double *G, double *size,
    double *own, double *own_size)
{
    const fsi__pressure_impl *m = job->m;
    const int n = m->touching;
    int k, p, i;
    for (k = 0; k < job->flow->solid_count; k++) {
        double most = 0;
        memset(own, 0, (size_t)n * (size_t)n * sizeof *own);
        for (p = 0; p < n && job->status == FSI_OK; p++) {
            own_size[p] = fmax(fsi__pressure_feel_yields(job, label, k, p, 0, own + p * n),
                fsi__pressure_feel_yields(job, label, k, p, 1, NULL));
            most = fmax(most, own_size[p]);
        }
        for (p = 0; p < n && most > 0; p++) size[p] += own_size[p] / most;
        for (i = 0; i < n * n && most > 0; i++) G[i] += own[i] / most;
    }
    memset(m->change, 0, (size_t)m->first_pushed[job->flow->solid_count] * sizeof *m->change);
}

/* Gauss-Jordan elimination of the symmetric G, largest number of the diagonal first, until nothing is left but
   rounding. Rows without a pivot then each stand for a vector that G takes to 0: 1 there, minus its column at the
   pivots. */
static void fsi__pressure_eliminate(double *G, int n, int *pivot)
{
    int i, j, step;
    for (i = 0; i < n; i++) pivot[i] = 0;
    for (step = 0; step < n; step++) {
        int best = -1;
        double scale;
        for (i = 0; i < n; i++)
            if (!pivot[i] && (best < 0 || G[i * n + i] > G[best * n + best])) best = i;
        if (!(G[best * n + best] > FSI__PRESSURE_WAY_OUT * FSI__PRESSURE_WAY_OUT)) return;
        pivot[best] = 1;
        scale = 1 / G[best * n + best];
        for (j = 0; j < n; j++) G[best * n + j] *= scale;
        for (i = 0; i < n; i++) {
            const double f = G[i * n + best];
            for (j = 0; j < n && i != best; j++) G[i * n + j] -= f * G[best * n + j];
        }
    }
}

/* m->null: a basis of the null space of G, with cells[p] cells a piece. */
static void fsi__pressure_collect_nulls(fsi__pressure_impl *m, const double *G, const double *size,
    const double *cells, const int *pivot)
{
    const int n = m->touching;
    int i, j, k;
    m->nulls = 0;
    for (j = 0; j < n; j++) {
        double *v = m->null + m->nulls * n, dot = 0;
        if (pivot[j]) continue;
        for (i = 0; i < n; i++) v[i] = (pivot[i] ? -G[i * n + j] : i == j) / (size[i] > 0 ? sqrt(size[i]) : 1);
        for (k = 0; k < m->nulls; k++) {
            for (i = 0, dot = 0; i < n; i++) dot += m->null[k * n + i] * v[i] * cells[i];
            for (i = 0; i < n; i++) v[i] -= dot * m->null[k * n + i];
        }
        for (i = 0, dot = 0; i < n; i++) dot += v[i] * v[i] * cells[i];
        for (i = 0; i < n; i++) v[i] /= sqrt(dot);
        m->nulls++;
    }
}

/* Where solids yield: the null space of the pressures of pieces, one number a piece, which exert no force on bodies and
   solids. How a face of a solid couples to others is known only through respond, which is called once for each piece;
   the same sums with all signs made equal give the scale below which a result counts as zero. */
static int fsi__pressure_find_nulls(fsi__pressure_job *job, const int *label)
{
    fsi__pressure_impl *m = job->m;
    double *G = NULL, *own = NULL, *size = NULL, *own_size = NULL, *cells = NULL;
    int *pivot = NULL, p, q, n, pass;

    /* Room. */
    fsi__pressure_number_touching(job, label);
    n = m->touching;
    for (pass = 0; pass < 2; pass++) {
        const size_t numbers = (size_t)n;
        fsi__arena *arena = &m->nulls_memory, measure;
        memset(&measure, 0, sizeof measure);
        if (!pass) arena = &measure;
        m->null = (double *)fsi__take(arena, numbers * numbers, sizeof(double));
        G = (double *)fsi__take(arena, numbers * numbers, sizeof(double));
        own = (double *)fsi__take(arena, numbers * numbers, sizeof(double));
        size = (double *)fsi__take(arena, numbers, sizeof(double));
        own_size = (double *)fsi__take(arena, numbers, sizeof(double));
        cells = (double *)fsi__take(arena, numbers, sizeof(double));
        pivot = (int *)fsi__take(arena, numbers, sizeof(int));
        if (!pass && !fsi__arena_room(job->s->context, &m->nulls_memory, measure.used)) return 0;
    }

    /* The forces of each piece on bodies and solids. */
    memset(G, 0, (size_t)n * (size_t)n * sizeof *G);
    for (p = 0; p < n; p++) size[p] = 0;
    fsi__pressure_feel_bodies(m, label, G, size);
    fsi__pressure_feel_all_yields(job, label, G, size, own, own_size);

    /* In units of the largest possible forces; pressures in the null space of G act on no body and no solid. */
    for (p = 0; p < n; p++)
        for (q = 0; q < n; q++)
            if (size[p] > 0 && size[q] > 0) G[p * n + q] /= sqrt(size[p] * size[q]);
    fsi__pressure_eliminate(G, n, pivot);
    for (p = 0; p < m->pieces; p++)
        if (m->piece[p].touching >= 0) cells[m->piece[p].touching] = m->piece[p].cells;
    fsi__pressure_collect_nulls(m, G, size, cells, pivot);
    return 1;
}

/* Makes the list of runs, with a label for each cell; counts only when `fill` is 0. */
static void fsi__pressure_list_runs(fsi__pressure_impl *m, int *label, int fill)
{
    const fsi__mg_level *f = m->mg.level;
    const int end = fsi__mg_cell(f->bricks);
    const size_t n = (size_t)f->rough_cells;
    int at, inside = 0;
    m->runs = 0;

    /* A run begins where a cell has no face to the one before. */
    for (at = FSI__MG_FRONT; at < end; at++) {
        const float *faces = fsi__mg_faces(f, at);
        const int fresh = !inside || (faces && !(faces[FSI__MG_LOWER] > 0));
        fsi__pressure_run *run;
        inside = !faces || faces[FSI__MG_INVERSE * n] > 0;
        if (!inside) continue;
        if (fresh) m->runs++;
        if (!fill) continue;

        /* The run of this cell. */
        run = m->run + (label[at] = m->runs - 1);
        if (fresh) {
            run->at = at;
            run->n = 0;
            run->root = label[at];
            run->sum = 0;
        }
        run->n++;
        if (faces) run->sum += (double)faces[FSI__MG_EXCESS * n];
    }
}

/* Flood fill: the pieces (groups of them, where bodies join them) without a free surface or another way out, for which
   the pressure is known up to a constant; keeps the runs of these. */
static int fsi__pressure_find_pieces(fsi__pressure_job *job)
{
    fsi__pressure_impl *m = job->m;
    int *label = (int *)(void *)m->q;
    int k, runs;

    /* Runs of cells, joined across faces. */
    fsi__pressure_list_runs(m, label, 0);
    if (!fsi__arena_room(job->s->context, &m->runs_memory, (size_t)m->runs * sizeof *m->run)) return 0;
    m->run = (fsi__pressure_run *)fsi__take(&m->runs_memory, (size_t)m->runs, sizeof *m->run);
    fsi__pressure_list_runs(m, label, 1);
    fsi__pressure_join(m, label);

    /* The root of each run, with the excess of all: pieces without any are closed. */
    for (k = 0; k < m->runs; k++) {
        m->run[k].root = fsi__pressure_root(m->run, k);
        if (m->run[k].root < k) m->run[m->run[k].root].sum += m->run[k].sum;
    }
    for (k = m->pieces = 0; k < m->runs; k++)
        m->run[k].piece = m->run[k].root < k ? m->run[m->run[k].root].piece : (m->run[k].sum > 0 ? -1 : m->pieces++);

    /* Pieces that bodies or solids join. */
    if (!fsi__arena_room(job->s->context, &m->pieces_memory, (size_t)m->pieces * sizeof *m->piece)) return 0;
    m->piece = (fsi__pressure_piece *)fsi__take(&m->pieces_memory, (size_t)m->pieces, sizeof *m->piece);
    memset(m->piece, 0, (size_t)m->pieces * sizeof *m->piece);
    for (k = 0; k < m->pieces; k++) m->piece[k].touching = -1;
    m->touching = m->nulls = 0;
    if (m->first_pushed) {
        for (k = 0; k < m->runs; k++)
            if (m->run[k].piece >= 0) m->piece[m->run[k].piece].cells += m->run[k].n;
        if (!fsi__pressure_find_nulls(job, label)) return 0;
        for (k = 0; k < m->pieces; k++) m->piece[k].cells = 0;
    } else fsi__pressure_group(m, label);

    /* Runs of closed pieces stay. */
    for (k = runs = 0; k < m->runs; k++) {
        fsi__pressure_piece *group = m->run[k].piece < 0 ? NULL : m->piece + m->piece[m->run[k].piece].group;
        if (!group || group->free) continue;
        group->cells += m->run[k].n;
        m->run[runs] = m->run[k];
        m->run[runs++].piece = (int)(group - m->piece);
    }
    m->runs = runs;
    for (k = 0, job->s->stats.pieces = m->nulls; k < m->pieces; k++)
        job->s->stats.pieces += m->piece[k].cells > 0 && m->piece[k].touching < 0;
    return 1;
}

typedef struct fsi__pressure_center_job { fsi__pressure_impl *m; double *v; } fsi__pressure_center_job;

static void fsi__pressure_sum_runs(void *arg, int chunk, int begin, int end)
{
    const fsi__pressure_center_job *job = (const fsi__pressure_center_job *)arg;
    int k, i, c;
    (void)chunk;
    for (k = begin; k < end; k++) {
        fsi__pressure_run *run = job->m->run + k;
        const double *v = job->v + run->at;
        double sum[4] = { 0, 0, 0, 0 };
        for (i = 0; i + 4 <= run->n; i += 4)
            for (c = 0; c < 4; c++) sum[c] += v[i + c];
        for (; i < run->n; i++) sum[0] += v[i];
        run->sum = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

static void fsi__pressure_shift_runs(void *arg, int chunk, int begin, int end)
{
    const fsi__pressure_center_job *job = (const fsi__pressure_center_job *)arg;
    int k, i;
    (void)chunk;
    for (k = begin; k < end; k++) {
        const fsi__pressure_run *run = job->m->run + k;
        const double mean = job->m->piece[run->piece].mean;
        double *v = job->v + run->at;
        for (i = 0; i < run->n; i++) v[i] -= mean;
    }
}

/* The null-space part of the sums over touching pieces is removed from v. Returns the sum of its absolute values. */
static double fsi__pressure_center_touching(fsi__pressure_impl *m)
{
    double taken = 0;
    int k, p;
    for (p = 0; p < m->pieces; p++) m->piece[p].way[0] = 0;
    for (k = 0; k < m->nulls; k++) {
        const double *v = m->null + k * m->touching;
        double dot = 0, most = 0;
        for (p = 0; p < m->pieces; p++) {
            if (m->piece[p].touching < 0) continue;
            dot += v[m->piece[p].touching] * m->piece[p].mean;
            most = fmax(most, fabs(v[m->piece[p].touching]));
        }
        for (p = 0; p < m->pieces; p++)
            if (m->piece[p].touching >= 0) m->piece[p].way[0] += dot * v[m->piece[p].touching];
        taken += fabs(dot) / most;
    }
    for (p = 0; p < m->pieces; p++)
        if (m->piece[p].touching >= 0) m->piece[p].mean = m->piece[p].way[0];
    return taken;
}

/* The mean of each closed piece from the sums of its runs; returns the sum of the absolute values of what is to be
   subtracted. */
static double fsi__pressure_find_means(fsi__pressure_impl *m)
{
    double taken = 0;
    int k;
    for (k = 0; k < m->pieces; k++) m->piece[k].mean = 0;
    for (k = 0; k < m->runs; k++) m->piece[m->run[k].piece].mean += m->run[k].sum;
    if (m->touching > 0) taken = fsi__pressure_center_touching(m);
    for (k = 0; k < m->pieces; k++) {
        if (m->piece[k].touching >= 0) continue;
        taken += fabs(m->piece[k].mean);
        if (m->piece[k].cells > 0) m->piece[k].mean /= m->piece[k].cells;
    }
    return taken;
}

/* ---- >>pressure on a device -------------------------------------------------------------------------------------- */

/* While m->on, the vectors of the iteration are the device's (>>device). What the CPU does with them, it does as always
   in its own arrays: with the numbers of touched cells, fetched before and sent back after. A call that fails sets
   m->lost; then no other one is made, and the iteration ends. */
#define FSI__PRESSURE_THERE(m, call) ((m)->lost == FSI_OK && ((m)->lost = (m)->device->call) == FSI_OK)

/* Why, after m->lost. */
static const char *fsi__pressure_why(const fsi__pressure_impl *m)
{
    if (m->unlisted) return "the host has no memory for its lists";
    return m->work ? m->device->why(m->work) : "it cannot be entered, or has no room for a solver";
}

static fsi_pressure_vector fsi__pressure_name_of(const fsi__pressure_impl *m, const double *v)
{
    return v == m->x ? FSI_PRESSURE_X : v == m->p ? FSI_PRESSURE_P : FSI_PRESSURE_Q;
}

/* Numbers of touched cells: from the device into the CPU's v, or back. */
static void fsi__pressure_fetch_touched(fsi__pressure_impl *m, double *v)
{
    int k;
    if (!FSI__PRESSURE_THERE(m, gather(m->work, fsi__pressure_name_of(m, v), m->some))) return;
    for (k = 0; k < m->touched_count; k++) v[m->touched[k]] = m->some[k];
}

static void fsi__pressure_send_touched(fsi__pressure_impl *m, const double *v)
{
    int k;
    for (k = 0; k < m->touched_count; k++) m->some[k] = v[m->touched[k]];
    (void)FSI__PRESSURE_THERE(m, scatter(m->work, fsi__pressure_name_of(m, v), m->some));
}

/* The same for floats: CORRECTION is level[0].x, RIGHT is level[0].r. */
static void fsi__pressure_fetch_singles(fsi__pressure_impl *m, fsi_pressure_vector vector)
{
    const float *some = (const float *)(const void *)m->some;
    float *v = vector == FSI_PRESSURE_RIGHT ? m->mg.level[0].r : m->mg.level[0].x;
    int k;
    if (!FSI__PRESSURE_THERE(m, gather(m->work, vector, m->some))) return;
    for (k = 0; k < m->touched_count; k++) v[m->touched[k]] = some[k];
}

static void fsi__pressure_send_right(fsi__pressure_impl *m)
{
    float *some = (float *)(void *)m->some;
    int k;
    for (k = 0; k < m->touched_count; k++) some[k] = m->mg.level[0].r[m->touched[k]];
    (void)FSI__PRESSURE_THERE(m, scatter(m->work, FSI_PRESSURE_RIGHT, m->some));
}

/* Partial sums of the device, four a chunk, folded as the CPU's tasks fold theirs. */
static void fsi__pressure_fold_fours(fsi__pressure_impl *m, int chunks)
{
    double *p = m->partial;
    int k;
    for (k = 0; k < chunks; k++) p[k] = (p[4 * k] + p[4 * k + 1]) + (p[4 * k + 2] + p[4 * k + 3]);
}

static void fsi__pressure_fold_largest(fsi__pressure_impl *m, int chunks)
{
    double *p = m->partial;
    int k, c;
    for (k = 0; k < chunks; k++) {
        double most = p[4 * k];
        for (c = 1; c < 4; c++) most = fsi__pressure_larger(most, p[4 * k + c]);
        p[k] = most;
    }
}

/* fsi__pressure_center of a vector there. */
static double fsi__pressure_center_there(fsi__pressure_impl *m, const double *v)
{
    const fsi_pressure_vector vector = fsi__pressure_name_of(m, v);
    double taken;
    int k;
    if (!FSI__PRESSURE_THERE(m, sum_runs(m->work, vector, m->some))) return 0;
    for (k = 0; k < m->runs; k++) m->run[k].sum = m->some[k];
    taken = fsi__pressure_find_means(m);
    for (k = 0; k < m->runs; k++) m->some[k] = m->piece[m->run[k].piece].mean;
    (void)FSI__PRESSURE_THERE(m, shift_runs(m->work, vector, m->some));
    return taken;
}

/* level[0].x = V level[0].r, the CPU's arrays, by the device where it is on. */
static void fsi__pressure_cycle(fsi__pressure_impl *m)
{
    fsi__mg_level *fine = m->mg.level;
    if (m->on && FSI__PRESSURE_THERE(m, send(m->work, FSI_PRESSURE_RIGHT, fine->r))
        && FSI__PRESSURE_THERE(m, cycle(m->work))
        && FSI__PRESSURE_THERE(m, fetch(m->work, FSI_PRESSURE_CORRECTION, fine->x))) return;
    fsi__mg_cycle(&m->mg);
}

/* Adds a cell to the touched ones, unless it is there: m->r, not in use yet, marks those. */
static void fsi__pressure_touch(fsi__pressure_impl *m, int cell)
{
    if (cell < 0 || m->r[cell] > 0) return;
    m->r[cell] = 1;
    m->touched[m->touched_count++] = cell;
}

/* Touched cells and runs. 0: no memory. */
static int fsi__pressure_list_touched(fsi__pressure_job *job)
{
    fsi__pressure_impl *m = job->m;
    const int faces = m->bodies > 0 ? m->body_face[m->bodies] : 0,
        yields = m->first_pushed ? m->first_yield[job->flow->solid_count] : 0;
    const size_t cells = 2 * ((size_t)faces + (size_t)yields), runs = (size_t)m->runs,
        most = cells > runs ? cells : runs;
    int pass, k;

    /* Room. */
    for (pass = 0; pass < 2; pass++) {
        fsi__arena *arena = &m->device_memory, measure;
        memset(&measure, 0, sizeof measure);
        if (!pass) arena = &measure;
        m->touched = (int *)fsi__take(arena, cells, sizeof(int));
        m->run_list = (int *)fsi__take(arena, 2 * runs, sizeof(int));
        m->some = (double *)fsi__take(arena, most + 6 * (size_t)m->bodies, sizeof(double));
        m->guess = (double *)fsi__take(arena, cells, sizeof(double));
        if (!pass && !fsi__arena_room(job->s->context, &m->device_memory, measure.used)) return 0;
    }

    /* Cells, each once. */
    m->touched_count = 0;
    memset(m->r, 0, (size_t)m->mg.level[0].cells * sizeof(double));
    for (k = 0; k < faces; k++) {
        fsi__pressure_touch(m, m->face[k].lower);
        fsi__pressure_touch(m, m->face[k].upper);
    }
    for (k = 0; k < yields; k++) {
        fsi__pressure_touch(m, m->yield[k].lower);
        fsi__pressure_touch(m, m->yield[k].upper);
    }
    for (k = 0; k < m->touched_count; k++) m->guess[k] = m->x[m->touched[k]];
    for (k = 0; k < m->runs; k++) {
        m->run_list[2 * k] = m->run[k].at;
        m->run_list[2 * k + 1] = m->run[k].n;
    }
    return 1;
}

static fsi_pressure_level fsi__pressure_level_of(const fsi__mg_level *m)
{
    fsi_pressure_level f;
    f.bricks = m->bricks;
    f.cells = m->cells;
    f.segments = m->segments;
    f.odd = m->odd;
    f.rough_cells = m->rough_cells;
    f.unit = m->unit;
    f.segment = m->segment;
    f.child = m->child;
    f.faces = m->faces;
    return f;
}

/* Gives the equations to the device, where desc.device asks for it: m->on, or m->lost. */
static void fsi__pressure_board(fsi__pressure_job *job)
{
    fsi__pressure_impl *m = job->m;
    const fsi_device_use use = job->s->desc.device;
    fsi_pressure_problem p;
    int l;
    if (!m->device || use == FSI_DEVICE_NEVER) return;
    if (use == FSI_DEVICE_AUTO && 8LL * m->mg.level[0].bricks < m->device->smallest) return;
    m->unlisted = !fsi__pressure_list_touched(job);
    if (m->unlisted) {
        m->lost = FSI_ERROR_MEMORY;
        return;
    }

    /* The problem. */
    memset(&p, 0, sizeof p);
    p.dim = m->mg.dim;
    p.levels = m->mg.levels;
    for (l = 0; l < p.levels; l++) p.level[l] = fsi__pressure_level_of(m->mg.level + l);
    p.weight = FSI__MG_WEIGHT;
    p.sweeps = FSI__MG_SWEEPS;
    p.segment_chunk = FSI__MG_GRAIN;
    p.brick_chunk = FSI__PRESSURE_CHUNK;
    p.touched = m->touched;
    p.touched_count = m->touched_count;
    p.run = m->run_list;
    p.runs = m->runs;
    p.b = m->b;
    p.x = m->x;

    /* This solver's part of the device is made where it is first needed. */
    if (!m->work) (void)FSI__PRESSURE_THERE(m, create(m->device_user, &m->work));
    m->on = FSI__PRESSURE_THERE(m, begin(m->work, &p));
}

/* Subtracts from v its mean over each closed piece; returns the sum of the absolute values of what is subtracted. */
static double fsi__pressure_center(fsi__pressure_job *job, double *v)
{
    fsi__pressure_impl *m = job->m;
    const double work = (double)FSI__PRESSURE_NS * m->runs;
    fsi__pressure_center_job c;
    double taken;
    c.m = m;
    c.v = v;
    if (m->runs == 0) return 0;
    if (m->on) return fsi__pressure_center_there(m, v);
    fsi__parallel_work(job->s->context, m->runs, FSI__PRESSURE_RUNS, work, fsi__pressure_sum_runs, &c);
    taken = fsi__pressure_find_means(m);
    fsi__parallel_work(job->s->context, m->runs, FSI__PRESSURE_RUNS, work, fsi__pressure_shift_runs, &c);
    return taken;
}

/* ---- >>pressure bodies ---------------------------------------------------------------------------------------- */

/* Coupled bodies add K = H^T H to the matrix. With J p the force and torque of pressures p on a body of mass matrix M,
   M^-1 = B B^T, H = B^T J in the units of q: six rows a body, with numbers only at the cells around it. A body that
   weighs next to nothing makes K huge, where the V-cycle V ~ A^-1 knows nothing of it. By Woodbury's formula

      (V^-1 + H^T H)^-1 = V - V H^T (1 + H V H^T)^-1 H V

   is as good for A + K as V is for A, whatever the masses. It takes a cycle for each row of H before the iteration; V
   H^T is kept, or for many bodies, where that would be a lot to read in each step, a second cycle stands for it. Rows
   of heavy bodies are left out of it: conjugate gradients need fewer steps more than the cycles that these rows would
   take (measured, a ball: 1 or 2 at half the density of the liquid, 2 at a quarter, 3 at a tenth). */
#define FSI__PRESSURE_RESPONSES 24   /* columns of V H^T that are kept */
#define FSI__PRESSURE_HEAVY 4        /* no heavy body displaces more than this many times its mass */

/* H of a face: its fraction times the normal n and its moment x n, through B; B's block for turning is the Cholesky
   factor of the inverse inertia. */
static void fsi__pressure_row(const fsi__pressure_job *job, const fsi_pressure_solid *b, int f, int axis, double share,
    double *h)
{
    const fsi_vec3 d = fsi_v3_sub(fsi__pressure_face_position(job->grid, b->faces->entry[f], axis), b->center);
    const fsi_vec3 n = fsi_v3(axis == 0, axis == 1, axis == 2), t = fsi_v3_cross(d, n);
    const double moment[3] = { (double)t.x, (double)t.y, (double)t.z }, dx = (double)job->grid->dx;
    const double unit = share * sqrt(job->density * (job->grid->dim == 3 ? dx * dx * dx : dx * dx));
    const int first = job->grid->dim == 2 ? 2 : 0;
    double l[9];
    int i, j, k;
    memset(l, 0, sizeof l);
    for (j = first; j < 3; j++)
        for (i = j; i < 3; i++) {
            double v = (double)b->inverse_inertia.m[3 * i + j];
            for (k = first; k < j; k++) v -= l[3 * i + k] * l[3 * j + k];
            l[3 * i + j] = i == j ? (v > 0 ? sqrt(v) : 0) : (l[4 * j] > 0 ? v / l[4 * j] : 0);
        }
    for (k = 0; k < 3; k++) {
        h[k] = k == axis ? unit / sqrt(b->mass) : 0;
        h[3 + k] = unit * (l[k] * moment[0] + l[3 + k] * moment[1] + l[6 + k] * moment[2]);
    }
}

/* The columns of the next body, whose faces end at `end`: none where it is heavy, or a row has no numbers, like three
   of a body in 2D. The squares of the entries of its rows tell how much lighter it is to turn than to shift. */
static void fsi__pressure_number_columns(fsi__pressure_job *job, const fsi_pressure_solid *b, int end)
{
    fsi__pressure_impl *m = job->m;
    const double dx = (double)job->grid->dx, unit = job->density * dx * dx * (job->grid->dim == 3 ? dx : 1) / b->mass;
    double square[6] = { 0, 0, 0, 0, 0, 0 }, most[2] = { 0, 0 }, displaced = 0;
    int *column = m->column + 6 * m->bodies, light = job->flow->inverse_density[0] != NULL, a, f, k;
    for (a = 0; a < job->grid->dim; a++) { /* times its mass; walls without edges have faces of one axis only */
        double sum = 0;
        for (f = b->faces->first[a]; f < b->faces->first[a + 1]; f++) sum += unit * (double)b->faces->solid[f];
        displaced = fmax(displaced, sum);
    }
    for (f = m->body_face[m->bodies]; f < end; f++)
        for (k = 0; k < 6; k++) square[k] += m->face[f].h[k] * m->face[f].h[k];
    for (k = 0; k < 6; k++) most[k / 3] = fmax(most[k / 3], square[k]);
    light |= displaced * fmax(most[0], most[1]) > FSI__PRESSURE_HEAVY * most[0];
    for (k = 0; k < 6; k++) column[k] = light && square[k] > 0 ? m->columns++ : -1;
    m->body_face[++m->bodies] = end;
}

/* Rows of all coupled bodies. */
static int fsi__pressure_list_faces(fsi__pressure_job *job)
{
    fsi__pressure_impl *m = job->m;
    const size_t responses = (size_t)m->mg.level[0].cells * sizeof(float);
    size_t faces = 0, n;
    int k, a, f, count = 0, pass;

    /* Bodies and their faces. */
    m->columns = 0;
    m->response = NULL;
    for (k = m->bodies = 0; k < job->flow->solid_count; k++) {
        if (!job->flow->solids[k].coupled) continue;
        m->bodies++;
        faces += (size_t)job->flow->solids[k].faces->count;
    }

    /* Room. */
    n = 6 * (size_t)m->bodies;
    for (pass = 0; pass < 2; pass++) {
        fsi__arena *arena = &m->faces_memory, measure;
        memset(&measure, 0, sizeof measure);
        if (!pass) arena = &measure;
        m->face = (fsi__pressure_face *)fsi__take(arena, faces, sizeof *m->face);
        m->body_face = (int *)fsi__take(arena, (size_t)m->bodies + 1, sizeof(int));
        m->h = (double *)fsi__take(arena, n, sizeof(double));
        m->heavier = (double *)fsi__take(arena, n, sizeof(double));
        m->s = (double *)fsi__take(arena, n * n, sizeof(double));
        m->column = (int *)fsi__take(arena, n, sizeof(int));
        if (!pass && !fsi__arena_room(job->s->context, &m->faces_memory, measure.used)) return 0;
    }

    /* Rows of faces beside a liquid cell. */
    m->body_face[0] = 0;
    for (k = m->bodies = 0; k < job->flow->solid_count; k++) {
        const fsi_pressure_solid *b = job->flow->solids + k;
        for (a = 0; a < job->grid->dim && b->coupled; a++)
            for (f = b->faces->first[a]; f < b->faces->first[a + 1]; f++) {
                fsi__pressure_face *row = m->face + count;
                row->upper = fsi__pressure_equation(job, fsi__pressure_pushed(job, b->faces->entry[f], a, 1));
                row->lower = fsi__pressure_equation(job, fsi__pressure_pushed(job, b->faces->entry[f], a, 0));
                if (row->upper < 0 && row->lower < 0) continue;
                fsi__pressure_row(job, b, f, a, fsi__pressure_share(job, b, f, a), row->h);
                count++;
            }
        if (b->coupled) fsi__pressure_number_columns(job, b, count);
    }

    /* Room for the V-cycle's results V H^T, unless there are too many. */
    if (m->columns == 0 || m->columns > FSI__PRESSURE_RESPONSES) return 1;
    if (!fsi__arena_room(job->s->context, &m->responses_memory, responses * (size_t)m->columns)) return 0;
    m->response = (float *)(void *)m->responses_memory.base;
    return 1;
}

/* m->h = H v, from v in double, or in float where that is NULL. */
static void fsi__pressure_push(fsi__pressure_impl *m, const double *v, const float *single)
{
    int b, f, k;
    for (b = 0; b < m->bodies; b++) {
        double *h = m->h + 6 * b;
        for (k = 0; k < 6; k++) h[k] = 0;
        for (f = m->body_face[b]; f < m->body_face[b + 1]; f++) {
            const fsi__pressure_face *row = m->face + f;
            double difference = 0;
            if (row->lower >= 0) difference += v ? v[row->lower] : (double)single[row->lower];
            if (row->upper >= 0) difference -= v ? v[row->upper] : (double)single[row->upper];
            for (k = 0; k < 6; k++) h[k] += difference * row->h[k];
        }
    }
}

/* v += factor H^T m->h, in double or float as above. */
static void fsi__pressure_pull(fsi__pressure_impl *m, double factor, double *v, float *single)
{
    int b, f, k;
    for (b = 0; b < m->bodies; b++)
        for (f = m->body_face[b]; f < m->body_face[b + 1]; f++) {
            const fsi__pressure_face *row = m->face + f;
            double sum = 0;
            for (k = 0; k < 6; k++) sum += row->h[k] * m->h[6 * b + k];
            sum *= factor;
            if (row->lower >= 0 && v) v[row->lower] += sum;
            if (row->upper >= 0 && v) v[row->upper] -= sum;
            if (row->lower >= 0 && !v) single[row->lower] += (float)sum;
            if (row->upper >= 0 && !v) single[row->upper] -= (float)sum;
        }
}

/* Floats cannot carry bodies of no mass at all: where the largest number on the diagonal of s is too large in three
   rows (j) these are scaled down, which makes the body heavier. Returns the fraction of its inverse mass that is
   left. */
static double fsi__pressure_weigh(fsi__pressure_impl *m, int j)
{
    const int n = 6 * m->bodies;
    double most = 1, share;
    int f, k;
    for (k = 3 * j; k < 3 * j + 3; k++) most = m->s[k * n + k] > most ? m->s[k * n + k] : most;
    share = most * FSI__PRESSURE_LIGHTEST > 1 ? 1 / (most * FSI__PRESSURE_LIGHTEST) : 1;
    m->heavier[j] *= share;
    for (f = m->body_face[j / 2]; f < m->body_face[j / 2 + 1]; f++)
        for (k = 0; k < 3; k++) m->face[f].h[3 * (j & 1) + k] *= sqrt(share);
    return share;
}

/* s = H V H^T, column by column. The torque on a ball is small beside the torques on its faces: so rows are scaled by
   the sum of their squares first, or the rounding of the V-cycle would be larger than what is left. */
static void fsi__pressure_compliance(fsi__pressure_impl *m)
{
    const int n = 6 * m->bodies;
    fsi__mg_level *fine = m->mg.level;
    int i, j, f;

    /* Scales. */
    memset(m->s, 0, (size_t)n * (size_t)n * sizeof *m->s);
    for (j = 0; j < n; j++)
        for (f = m->body_face[j / 6]; f < m->body_face[j / 6 + 1]; f++)
            m->s[j * n + j] += m->face[f].h[j % 6] * m->face[f].h[j % 6];
    for (j = 0; j < 2 * m->bodies; j++) {
        m->heavier[j] = 1;
        fsi__pressure_weigh(m, j);
    }

    /* Column after column: a V-cycle of H^T e_j. */
    for (j = 0; j < n; j++) {
        m->s[j * n + j] = 0;
        if (m->column[j] < 0) continue;
        memset(fine->r, 0, (size_t)fine->cells * sizeof(float));
        for (i = 0; i < n; i++) m->h[i] = i == j;
        fsi__pressure_pull(m, 1, NULL, fine->r);
        fsi__pressure_cycle(m);
        fsi__pressure_push(m, NULL, fine->x);
        for (i = j; i < n; i++) m->s[i * n + j] = m->column[i] < 0 ? 0 : m->h[i];
        if (m->response)
            memcpy(m->response + (size_t)m->column[j] * (size_t)fine->cells, fine->x,
                (size_t)fine->cells * sizeof(float));
    }
}

/* s = the Cholesky factor of 1 + H V H^T. */
static void fsi__pressure_factor(fsi__pressure_impl *m)
{
    const int n = 6 * m->bodies;
    const size_t cells = (size_t)m->mg.level[0].cells;
    size_t e;
    int i, j, k;
    fsi__pressure_compliance(m);
    for (j = 0; j < 2 * m->bodies; j++) m->h[j] = fsi__pressure_weigh(m, j);
    for (j = 0; j < n && m->response; j++)
        for (e = 0; e < cells && m->column[j] >= 0 && m->h[j / 3] < 1; e++)
            m->response[cells * (size_t)m->column[j] + e] *= (float)sqrt(m->h[j / 3]);
    for (j = 0; j < n; j++)
        for (i = j; i < n; i++) m->s[i * n + j] = m->s[i * n + j] * sqrt(m->h[i / 3] * m->h[j / 3]) + (i == j);
    for (j = 0; j < n; j++)
        for (i = j; i < n; i++) {
            double v = m->s[i * n + j];
            for (k = 0; k < j; k++) v -= m->s[i * n + k] * m->s[j * n + k];
            m->s[i * n + j] = i == j ? sqrt(v > 1 ? v : 1) : v / m->s[j * n + j];
        }
}

/* level[0].x -= V H^T m->h */
static void fsi__pressure_respond(void *arg, int chunk, int begin, int end)
{
    const fsi__pressure_impl *m = (const fsi__pressure_impl *)arg;
    const fsi__mg_level *fine = m->mg.level;
    const int n = 6 * m->bodies;
    int brick, j, c;
    (void)chunk;
    for (brick = begin; brick < end; brick++) {
        float *x = fine->x + fsi__mg_cell(brick);
        double sum[8];
        for (c = 0; c < 8; c++) sum[c] = (double)x[c];
        for (j = 0; j < n; j++) {
            const float *v = m->response + (size_t)(m->column[j] < 0 ? 0 : m->column[j]) * (size_t)fine->cells
                + fsi__mg_cell(brick);
            for (c = 0; c < 8 && m->column[j] >= 0; c++) sum[c] = fsi__pressure_less(sum[c], m->h[j], (double)v[c]);
        }
        for (c = 0; c < 8; c++) x[c] = (float)sum[c];
    }
}

/* m->h = S^-1 m->h, the impulses on the bodies. */
static void fsi__pressure_solve_bodies(fsi__pressure_impl *m)
{
    const int n = 6 * m->bodies;
    int i, k;
    for (i = 0; i < n; i++) {
        if (m->column[i] < 0) m->h[i] = 0;
        for (k = 0; k < i; k++) m->h[i] -= m->s[i * n + k] * m->h[k];
        m->h[i] /= m->s[i * n + i];
    }
    for (i = n - 1; i >= 0; i--) {
        for (k = i + 1; k < n; k++) m->h[i] -= m->s[k * n + i] * m->h[k];
        m->h[i] /= m->s[i * n + i];
    }
}

/* fsi__pressure_precondition there: CORRECTION of RIGHT. */
static void fsi__pressure_precondition_there(fsi__pressure_impl *m)
{
    int j;
    if (!FSI__PRESSURE_THERE(m, cycle(m->work)) || m->columns == 0) return;
    fsi__pressure_fetch_singles(m, FSI_PRESSURE_CORRECTION);
    fsi__pressure_push(m, NULL, m->mg.level[0].x);
    fsi__pressure_solve_bodies(m);
    if (m->response) {
        for (j = 0; j < 6 * m->bodies; j++)
            if (m->column[j] >= 0) m->some[m->column[j]] = m->h[j];
        (void)FSI__PRESSURE_THERE(m, respond(m->work, m->columns, m->some));
        return;
    }
    fsi__pressure_fetch_singles(m, FSI_PRESSURE_RIGHT);
    fsi__pressure_pull(m, -1, NULL, m->mg.level[0].r);
    fsi__pressure_send_right(m);
    (void)FSI__PRESSURE_THERE(m, cycle(m->work));
}

/* level[0].x = preconditioner of level[0].r */
static void fsi__pressure_precondition(fsi__pressure_impl *m)
{
    if (m->on) {
        fsi__pressure_precondition_there(m);
        return;
    }

    /* Without bodies, a V-cycle. */
    fsi__mg_cycle(&m->mg);
    if (m->columns == 0) return;
    fsi__pressure_push(m, NULL, m->mg.level[0].x);
    fsi__pressure_solve_bodies(m);

    /* The correction V H^T h, from the stored columns or by another V-cycle. */
    if (m->response) {
        const int bricks = m->mg.level[0].bricks;
        const double work = (double)FSI__PRESSURE_NS * (1 + m->bodies) * bricks;
        fsi__parallel_work(m->mg.context, bricks, FSI__PRESSURE_CHUNK, work, fsi__pressure_respond, m);
        return;
    }
    fsi__pressure_pull(m, -1, NULL, m->mg.level[0].r);
    fsi__mg_cycle(&m->mg);
}

/* ---- >>pressure iteration ------------------------------------------------------------------------------------- */

/* q = A p; partial[chunk] = p q */
static void fsi__pressure_multiply_segments(void *arg, int chunk, int begin, int end)
{
    const fsi__pressure_job *job = (const fsi__pressure_job *)arg;
    const fsi__mg_level *m = job->m->mg.level;
    const double faces = 2.0 * job->m->mg.dim, unit = (double)m->unit;
    double dot[4] = { 0, 0, 0, 0 };
    int k, i, c;

    /* The segment and those beside it. */
    for (k = begin; k < end; k++) {
        const fsi_pressure_segment *s = m->segment + k;
        const fsi__mg_names f = fsi__mg_name(m, s);
        const double *x = job->from + s->at, *yl = job->from + s->lower[0], *yu = job->from + s->upper[0],
            *zl = job->from + s->lower[1], *zu = job->from + s->upper[1];
        double *out = job->m->q + s->at;

        /* Plain bricks, rough bricks. */
        if (s->rough < 0)
            FSI__MG_APART
            for (i = 0; i < s->n; i++)
                out[i] = fsi__pressure_product_plain(faces, unit, x[i], x[i - 1], x[i + 1], yl[i], yu[i], zl[i],
                    zu[i]);
        else
            FSI__MG_APART
            for (i = 0; i < s->n; i++)
                out[i] = fsi__pressure_product_rough(x[i], f.excess[i], f.ax[i], x[i - 1], f.bx[i], x[i + 1], f.ay[i],
                    yl[i], f.by[i], yu[i], f.az[i], zl[i], f.bz[i], zu[i]);

        /* The scalar product in four partial sums. */
        for (i = 0; i < s->n; i += 4)
            for (c = 0; c < 4; c++) dot[c] += x[i + c] * out[i + c];
    }
    job->m->partial[chunk] = (dot[0] + dot[1]) + (dot[2] + dot[3]);
}

static double fsi__pressure_fold(const fsi__pressure_impl *m, int chunks)
{
    double sum = 0;
    int k;
    for (k = 0; k < chunks; k++) sum += m->partial[k];
    return sum;
}

/* m->q = A v; returns v q. */
static double fsi__pressure_multiply_plain(fsi__pressure_job *job, double *v)
{
    fsi__pressure_impl *m = job->m;
    const int segments = m->mg.level[0].segments, chunks = fsi__chunks(segments, FSI__MG_GRAIN);
    if (m->on) {
        if (!FSI__PRESSURE_THERE(m, multiply(m->work, fsi__pressure_name_of(m, v), m->partial))) return 0;
        fsi__pressure_fold_fours(m, chunks);
    } else {
        job->from = v;
        fsi__mg_over(job->s->context, m->mg.level, segments, FSI__MG_NS_EXACT, fsi__pressure_multiply_segments, job);
    }
    return fsi__pressure_fold(m, chunks);
}

/* m->q = (A + K) v; returns v q. */
static double fsi__pressure_multiply(fsi__pressure_job *job, double *v)
{
    fsi__pressure_impl *m = job->m;
    const int solids = m->bodies > 0 || m->first_pushed;
    double sum = fsi__pressure_multiply_plain(job, v);
    int k;

    /* K: the CPU's. */
    if (m->on && solids) {
        fsi__pressure_fetch_touched(m, v);
        fsi__pressure_fetch_touched(m, m->q);
    }
    if (m->lost != FSI_OK && m->on) return 0;
    if (m->first_pushed) sum += fsi__pressure_yield_to(job, v);
    if (m->bodies > 0) {
        fsi__pressure_push(m, v, NULL);
        fsi__pressure_pull(m, 1, m->q, NULL);
        for (k = 0; k < 6 * m->bodies; k++) sum += m->h[k] * m->h[k];
    }
    if (m->on && solids) fsi__pressure_send_touched(m, m->q);
    if (solids) fsi__pressure_center(job, m->q);
    return sum;
}

/* x += alpha p, r -= alpha q, or with factor 0 r = b - q; the V-cycle's r; partial[chunk] = largest |r| */
static void fsi__pressure_advance(void *arg, int chunk, int begin, int end)
{
    const fsi__pressure_job *job = (const fsi__pressure_job *)arg;
    fsi__pressure_impl *m = job->m;
    const double alpha = job->alpha, unit = job->factor;
    const double *p = m->p, *q = m->q;
    double *x = m->x, *r = m->r, most[4] = { 0, 0, 0, 0 };
    float *single = m->mg.level[0].r;
    int i, c;
    for (i = fsi__mg_cell(begin); i < fsi__mg_cell(end); i += 4)
        for (c = 0; c < 4; c++) {
            const double left = fsi__pressure_less(r[i + c], alpha, q[i + c]);
            x[i + c] = fsi__pressure_further(x[i + c], alpha, p[i + c]);
            r[i + c] = left;
            single[i + c] = fsi__pressure_single(left, unit);
            most[c] = fsi__pressure_larger(most[c], fabs(left));
        }
    for (c = 1; c < 4; c++) most[0] = fsi__pressure_larger(most[0], most[c]);
    m->partial[chunk] = most[0];
}

static void fsi__pressure_dot(void *arg, int chunk, int begin, int end)
{
    fsi__pressure_impl *m = ((const fsi__pressure_job *)arg)->m;
    const float *z = m->mg.level[0].x;
    const double *r = m->r;
    double dot[4] = { 0, 0, 0, 0 };
    int i, c;
    for (i = fsi__mg_cell(begin); i < fsi__mg_cell(end); i += 4)
        for (c = 0; c < 4; c++) dot[c] += r[i + c] * (double)z[i + c];
    m->partial[chunk] = (dot[0] + dot[1]) + (dot[2] + dot[3]);
}

static void fsi__pressure_turn(void *arg, int chunk, int begin, int end)
{
    const fsi__pressure_job *job = (const fsi__pressure_job *)arg;
    const float *z = job->m->mg.level[0].x;
    double *p = job->m->p;
    const double beta = job->beta;
    int i;
    (void)chunk;
    for (i = fsi__mg_cell(begin); i < fsi__mg_cell(end); i++) p[i] = fsi__pressure_turned(z[i], beta, p[i]);
}

/* A loop that takes `work` nanoseconds a brick, at least. */
static void fsi__pressure_over_bricks(fsi__pressure_job *job, double work, fsi__range_fn *fn)
{
    fsi__parallel_work(job->s->context, job->m->mg.level[0].bricks, FSI__PRESSURE_CHUNK,
        work * job->m->mg.level[0].bricks, fn, job);
}

/* Largest |r| after a step of length alpha. */
static double fsi__pressure_step(fsi__pressure_job *job, double alpha)
{
    fsi__pressure_impl *m = job->m;
    const int chunks = fsi__chunks(m->mg.level[0].bricks, FSI__PRESSURE_CHUNK);
    double most = 0;
    int k;
    job->alpha = alpha;
    if (!m->on) fsi__pressure_over_bricks(job, 6, fsi__pressure_advance);
    else if (FSI__PRESSURE_THERE(m, advance(m->work, alpha, job->factor, m->partial)))
        fsi__pressure_fold_largest(m, chunks);
    else return 0;
    for (k = 0; k < chunks; k++)
        if (!(job->m->partial[k] <= most)) most = job->m->partial[k];
    return most;
}

static void fsi__pressure_start(void *arg, int chunk, int begin, int end)
{
    const fsi__pressure_job *job = (const fsi__pressure_job *)arg;
    fsi__pressure_impl *m = job->m;
    (void)chunk;
    memcpy(m->r + fsi__mg_cell(begin), m->b + fsi__mg_cell(begin), (size_t)(end - begin) * 8 * sizeof(double));
    memset(m->p + fsi__mg_cell(begin), 0, (size_t)(end - begin) * 8 * sizeof(double));
}

/* r = b - A x, as it really is; returns its largest number. */
static double fsi__pressure_residual(fsi__pressure_job *job)
{
    fsi__pressure_multiply(job, job->m->x);
    if (!job->m->on) fsi__pressure_over_bricks(job, 3, fsi__pressure_start);
    else (void)FSI__PRESSURE_THERE(job->m, start(job->m->work));
    return fsi__pressure_step(job, 1);
}

/* The residual of the guess. One that is worse than none is dropped: where the right side is 0 nothing else would be
   good enough. */
static double fsi__pressure_first_residual(fsi__pressure_job *job)
{
    const fsi__mg_level *f = job->m->mg.level;
    const double most = fsi__pressure_residual(job);
    double right = 0;
    int k;
    if (!job->flow->use_guess) return most;
    for (k = FSI__MG_FRONT; k < fsi__mg_cell(f->bricks); k++)
        right = fabs(job->m->b[k]) > right ? fabs(job->m->b[k]) : right;
    if (most <= right) return most;
    memset(job->m->x, 0, (size_t)f->cells * sizeof(double));
    if (job->m->on) (void)FSI__PRESSURE_THERE(job->m, send(job->m->work, FSI_PRESSURE_X, job->m->x));
    return fsi__pressure_residual(job);
}

/* R CORRECTION, the scalar product of residual and preconditioned residual. */
static double fsi__pressure_product(fsi__pressure_job *job)
{
    fsi__pressure_impl *m = job->m;
    const int chunks = fsi__chunks(m->mg.level[0].bricks, FSI__PRESSURE_CHUNK);
    if (!m->on) fsi__pressure_over_bricks(job, 2, fsi__pressure_dot);
    else if (FSI__PRESSURE_THERE(m, dot(m->work, m->partial))) fsi__pressure_fold_fours(m, chunks);
    else return 0;
    return fsi__pressure_fold(m, chunks);
}

/* Conjugate gradients in double, preconditioned in float, until the true residual is below `limit`. Returns the largest
   residual. */
static double fsi__pressure_iterate(fsi__pressure_job *job, double limit)
{
    fsi__pressure_impl *m = job->m;
    double most = fsi__pressure_first_residual(job), last;
    int *iters = &job->s->stats.iters, round;

    /* Rounds, each from a true residual. */
    for (round = 0; round < FSI__PRESSURE_ROUNDS && most > limit && *iters < job->s->desc.max_iters
        && job->status == FSI_OK; round++) {
        /* The preconditioned residual and the new direction. */
        for (last = 0; most > limit && *iters < job->s->desc.max_iters; ++*iters) {
            double rz, pq;
            fsi__pressure_precondition(m);
            rz = fsi__pressure_product(job);
            job->beta = last > 0 ? rz / last : 0;
            if (!m->on) fsi__pressure_over_bricks(job, 1.8, fsi__pressure_turn);
            else (void)FSI__PRESSURE_THERE(m, turn(m->work, job->beta));
            if (m->bodies > 0 || m->first_pushed) fsi__pressure_center(job, m->p);
            last = rz;

            /* The step along it. */
            pq = fsi__pressure_multiply(job, m->p);
            if (!(pq > 0) || !(rz > 0) || job->status != FSI_OK) break;
            most = fsi__pressure_step(job, rz / pq);
        }
        most = fsi__pressure_residual(job);
    }
    return most;
}

/* The iteration: there, where the device took it, and otherwise, or where that failed, from the beginning on the CPU.
   m->b is the CPU's all the time, and m->x but for touched cells: x comes back by q, so that a copy that fails leaves
   it. */
static double fsi__pressure_solve(fsi__pressure_job *job, double limit)
{
    fsi__pressure_impl *m = job->m;
    fsi_pressure_stats *stats = &job->s->stats;
    if (m->on) {
        const double most = m->lost == FSI_OK ? fsi__pressure_iterate(job, limit) : 0;
        int k;
        stats->on_device = FSI__PRESSURE_THERE(m, fetch(m->work, FSI_PRESSURE_X, m->q));
        m->on = 0;
        if (stats->on_device) {
            memcpy(m->x, m->q, (size_t)m->mg.level[0].cells * sizeof(double));
            return most;
        }
        for (k = 0; k < m->touched_count; k++) m->x[m->touched[k]] = m->guess[k];
    }
    if (m->lost != FSI_OK) {
        stats->iters = 0;
        stats->device_failures = 1;
        if (job->s->desc.device == FSI_DEVICE_ALWAYS) {
            job->status = fsi__fail(job->s->context, m->lost, "fsi_pressure_project", -1, 0, "the device failed: %s",
                fsi__pressure_why(m));
            return 0;
        }
    }
    return fsi__pressure_iterate(job, limit);
}

/* ---- >>pressure projection ------------------------------------------------------------------------------------ */

static int fsi__pressure_is_field(const fsi_field *f, const fsi_grid *g, int place)
{
    return fsi__is_field(f) && f->grid == g && (int)f->place == place;
}

static fsi_status fsi__pressure_check_solid(fsi_pressure *s, const fsi_pressure_flow *flow, int k)
{
    const fsi_pressure_solid *b = flow->solids + k;
    const fsi_grid_faces *f = b->faces;
    const fsi_grid *g = flow->u[0]->grid;
    int i, a, wrong = 0;

    /* Its faces. */
    if (!f || f->cookie != FSI__COOKIE('f', fsi_grid_faces))
        return fsi__pressure_refuse(s, FSI_ERROR_COOKIE,
            "faces was not made by fsi_grid_faces_create of this version and precision: solids", k);
    for (a = 0; a < g->dim; a++)
        for (i = f->first[a]; i < f->first[a + 1]; i++) {
            if (i < 0 || i >= f->count || f->entry[i] < 0 || f->entry[i] / g->block_cells >= g->block_count)
                return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "faces are not those of the grid as it is: solids",
                    k);
            if (!fsi_is_finite((double)f->solid[i])
                || (b->velocity && !b->coupled && !fsi_is_finite((double)b->velocity[i])))
                return fsi__pressure_refuse(s, FSI_ERROR_NAN, "a share or velocity is not finite: solids", k);
            if (!(f->solid[i] > 0 && f->solid[i] <= (fsi_real)1.001))
                return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "a share is not within (0, 1]: solids", k);
            if (b->respond && b->yielding && !fsi_is_finite((double)b->yielding[i]))
                return fsi__pressure_refuse(s, FSI_ERROR_NAN, "yielding is not finite: solids", k);
            if (b->respond && b->yielding && b->yielding[i] < 0)
                return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "yielding is below 0: solids", k);
        }

    /* A solid that yields. */
    if (b->respond && b->coupled)
        return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "both coupled and with a respond: solids", k);
    for (a = 0; a < g->dim && b->respond; a++)
        wrong |= f->first[a] < 0 || f->first[a] > f->first[a + 1] || f->first[a + 1] > f->count;
    if (wrong)
        return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "faces are not those of the grid as it is: solids", k);

    /* A body. */
    if (!fsi_v3_is_finite(b->center)) return fsi__pressure_refuse(s, FSI_ERROR_NAN, "center is not finite: solids", k);
    if (!b->coupled) return FSI_OK;
    for (i = 0, a = 1; i < 9; i++) a = a && fsi_is_finite((double)b->inverse_inertia.m[i]);
    if (!a || !fsi_v3_is_finite(b->linear) || !fsi_v3_is_finite(b->angular) || !fsi_is_finite(b->mass))
        return fsi__pressure_refuse(s, FSI_ERROR_NAN, "mass, inverse_inertia or a velocity is not finite: solids", k);
    if (!(b->mass > 0)) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "mass is not above 0: solids", k);
    for (i = 0; i < 3; i++)
        if (b->inverse_inertia.m[4 * i] < 0)
            return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "inverse_inertia is not positive semidefinite: solids",
                k);
    return FSI_OK;
}

/* Kinds of block b, none but air and solid beyond the box. */
static fsi_status fsi__pressure_check_cells(fsi_pressure *s, const fsi_grid *g, const unsigned char *cell, int b)
{
    int corner[3], k, a, most = 0;
    for (k = 0; k < g->block_cells; k++) most = cell[k] > most ? cell[k] : most;
    if (most > FSI_CELL_SOLID) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "a cell is of no kind: block", b);
    fsi_grid_corner(g, b, corner);
    for (a = 0; a < g->dim; a++) {
        if (corner[a] + 8 <= g->n[a]) continue;
        for (k = 0; k < g->block_cells; k++)
            if (cell[k] == FSI_CELL_LIQUID && corner[a] + (k >> (3 * a) & 7) >= g->n[a])
                return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "a liquid cell is beyond the box: block", b);
    }
    return FSI_OK;
}

/* Fields of the grid that u is on. */
static fsi_status fsi__pressure_check_fields(fsi_pressure *s, const fsi_pressure_flow *flow)
{
    static const char *const not_cells[5] = {
        "not a field at cells: phi", "not a field at cells: surface_pressure", "not a field at cells: surface_weight",
        "not a field at cells: source", "not a field at cells: pressure"
    };
    const fsi_grid *g = flow->u[0]->grid;
    const fsi_field *at_cells[5];
    int a, given = 0;

    /* Velocities and densities. */
    for (a = 0; a < g->dim; a++) {
        if (!fsi__pressure_is_field(flow->u[a], g, FSI_FACES_X + a))
            return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "not a field of faces along its axis, on one grid: u",
                a);
        given += flow->inverse_density[a] != NULL;
        if (flow->inverse_density[a] && !fsi__pressure_is_field(flow->inverse_density[a], g, FSI_FACES_X + a))
            return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "not a field of faces along its axis: inverse_density",
                a);
    }
    if (given % g->dim != 0)
        return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "given along some axes only: inverse_density", given);

    /* Fields at cells. */
    at_cells[0] = flow->phi;
    at_cells[1] = flow->surface_pressure;
    at_cells[2] = flow->surface_weight;
    at_cells[3] = flow->source;
    at_cells[4] = flow->pressure;
    for (a = 0; a < 5; a++)
        if (at_cells[a] && !fsi__pressure_is_field(at_cells[a], g, FSI_CELLS))
            return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, not_cells[a], 0);
    for (a = 0; a < 4; a++)
        if (flow->pressure && flow->pressure == at_cells[a])
            return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "is an input too: pressure", 0);
    if (flow->use_guess && !flow->pressure)
        return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "use_guess without pressure", 0);
    return FSI_OK;
}

static fsi_status fsi__pressure_check(fsi_pressure *s, const fsi_pressure_flow *flow)
{
    static const fsi__field numbers[] = {
        FSI__FIELD(fsi_pressure_flow, density, FSI__REAL, 0, FSI__HUGE, FSI__ABOVE),
        FSI__FIELD(fsi_pressure_flow, dt, FSI__REAL, 0, FSI__HUGE, FSI__ABOVE),
        FSI__FIELD(fsi_pressure_flow, theta_min, FSI__REAL, 0, 1, FSI__ABOVE)
    };
    static const fsi__field limits[] = {
        FSI__FIELD(fsi_pressure_desc, tolerance, FSI__DOUBLE, 0, FSI__HUGE, 0),
        FSI__FIELD(fsi_pressure_desc, absolute, FSI__DOUBLE, 0, FSI__HUGE, 0),
        FSI__FIELD(fsi_pressure_desc, max_iters, FSI__INT, 0, FSI__HUGE, 0),
        FSI__FIELD(fsi_pressure_desc, degrade, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_pressure_desc, device, FSI__INT, 0, 2, 0)
    };
    static const fsi__where of_flow = { "fsi_pressure_project", "flow.", -1, 3 };
    static const fsi__where of_desc = { "fsi_pressure_project", "desc.", -1, 3 };
    const fsi_grid *g;
    int i, given;
    if (!flow || flow->cookie != FSI__COOKIE('F', fsi_pressure_flow))
        return fsi__pressure_refuse(s, FSI_ERROR_COOKIE,
            "flow was not filled by fsi_pressure_default_flow of this version and precision", -1);
    if (!fsi__is_field(flow->u[0])) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "not a field: u", 0);
    FSI__TRY(fsi__pressure_check_fields(s, flow));

    /* Numbers. */
    given = flow->inverse_density[0] != NULL;
    FSI__TRY(fsi__check_rows(s->context, &of_flow, flow, numbers + given, 3 - given));
    FSI__TRY(FSI__CHECK_TABLE(s->context, &of_desc, &s->desc, limits));

    /* Cells and solids. */
    g = flow->u[0]->grid;
    if (!flow->cell) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "NULL: cell", 0);
    if (g->block_count > (1 << 27) / (g->block_cells / 8))
        return fsi__pressure_refuse(s, FSI_ERROR_LIMIT, "more than 2^30 cells: block_count", g->block_count);
    if (flow->solid_count < 0 || (flow->solid_count > 0 && !flow->solids))
        return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "solids: there are not solid_count", flow->solid_count);
    for (i = 0; i < g->block_count; i++)
        FSI__TRY(fsi__pressure_check_cells(s, g, flow->cell + (size_t)i * (size_t)g->block_cells, i));
    for (i = 0; i < flow->solid_count; i++) FSI__TRY(fsi__pressure_check_solid(s, flow, i));
    return FSI_OK;
}

/* Memory for the vectors of the iteration. */
static int fsi__pressure_reserve_vectors(fsi__pressure_job *job)
{
    fsi__pressure_impl *m = job->m;
    const fsi__mg_level *f = m->mg.level;
    const size_t n = (size_t)f->cells;
    double **vector[5];
    int pass, k;
    const int chunks = fsi__chunks(f->bricks, FSI__PRESSURE_CHUNK) + fsi__chunks(f->bricks, FSI__MG_GRAIN);
    vector[0] = &m->b, vector[1] = &m->x, vector[2] = &m->r, vector[3] = &m->p, vector[4] = &m->q;
    for (pass = 0; pass < 2; pass++) {
        fsi__arena *arena = &m->vectors_memory, measure;
        memset(&measure, 0, sizeof measure);
        if (!pass) arena = &measure;
        for (k = 0; k < 5; k++) *vector[k] = (double *)fsi__take(arena, n, sizeof(double));
        m->partial = (double *)fsi__take(arena, 4 * (size_t)chunks, sizeof(double));
        if (!pass && !fsi__arena_room(job->s->context, &m->vectors_memory, measure.used)) return 0;
    }
    return 1;
}

/* x and p, with the zeros that stand for missing neighbours: they are elsewhere in every call. */
static void fsi__pressure_clear_vectors(fsi__pressure_impl *m)
{
    const size_t n = (size_t)m->mg.level[0].cells;
    memset(m->x, 0, n * sizeof(double));
    memset(m->p, 0, n * sizeof(double));
}

/* The largest beta of the faces below liquid cells; not finite, or 0, when one of them is not above 0 and finite. */
static double fsi__pressure_largest_beta(const fsi__pressure_job *job)
{
    const int bricks = job->m->mg.level[0].bricks;
    double most = 0;
    int a, k, c;
    for (a = 0; a < job->grid->dim; a++)
        for (k = 0; k < bricks; k++) {
            const fsi_real *beta = job->flow->inverse_density[a]->value + 8 * (long long)job->m->row[k];
            for (c = 0; c < 8; c++) {
                if (!(beta[c] > 0) || !fsi_is_finite((double)beta[c])) return 0;
                if ((double)beta[c] > most) most = (double)beta[c];
            }
        }
    return most;
}

/* The beta that most rows have (Boyer and Moore's vote, by one face of each). */
static double fsi__pressure_ordinary_beta(const fsi__pressure_job *job)
{
    const fsi_real *beta = job->flow->inverse_density[0]->value + 3;
    fsi_real ordinary = 0;
    int k, votes = 0;
    for (k = 0; k < job->m->mg.level[0].bricks; k++) {
        const fsi_real own = beta[8 * (long long)job->m->row[k]];
        if (votes == 0) ordinary = own;
        votes += own < ordinary || own > ordinary ? -1 : 1;
    }
    return (double)ordinary;
}

static double fsi__pressure_scale(const fsi__pressure_job *job)
{
    return (double)job->flow->dt / (job->density * (double)job->grid->dx * (double)job->grid->dx);
}

/* Units of the iteration, and where ordinary faces are. */
static fsi_status fsi__pressure_measure(fsi__pressure_job *job)
{
    job->density = (double)job->flow->density;
    job->m->mg.level[0].unit = 1;
    if (job->flow->inverse_density[0]) {
        const double beta = fsi__pressure_largest_beta(job);
        if (!(beta > 0))
            return fsi__pressure_refuse(job->s, FSI_ERROR_ARGUMENT,
                "a number next to liquid is not above 0 and finite: inverse_density", 0);
        job->density = 1 / beta;
        job->m->mg.level[0].unit = (float)(fsi__pressure_ordinary_beta(job) * job->density);
    }
    job->scale = fsi__pressure_scale(job);
    fsi__pressure_find_plain(job);
    return FSI_OK;
}

/* The right side and the matrix, or what of both `equations` finds. *reference: largest right side. */
static fsi_status fsi__pressure_assemble(fsi__pressure_job *job, fsi__range_fn *equations, double *reference)
{
    fsi__pressure_impl *m = job->m;
    fsi_pressure_stats *stats = &job->s->stats;
    const int bricks = m->mg.level[0].bricks, chunks = fsi__chunks(bricks, FSI__PRESSURE_CHUNK);
    double sum = 0;
    int k;
    const double work = (double)FSI__PRESSURE_NS_ROWS * bricks;
    fsi__parallel_work(job->s->context, bricks, FSI__PRESSURE_CHUNK, work, equations, job);
    *reference = 0;
    for (k = 0; k < chunks; k++) {
        sum += m->partial[4 * k];
        if (m->partial[4 * k + 1] > *reference) *reference = m->partial[4 * k + 1];
        stats->unknowns += (long long)m->partial[4 * k + 2];
        stats->enclosed += (int)m->partial[4 * k + 3];
        if (!fsi_is_finite(sum))
            return fsi__pressure_refuse(job->s, FSI_ERROR_NAN,
                "u, phi, surface_pressure or inverse_density is not finite, or the last not above 0, "
                "near row of cells", m->row[k * FSI__PRESSURE_CHUNK]);
    }
    return FSI_OK;
}

static void fsi__pressure_take_guess(fsi__pressure_job *job)
{
    fsi__pressure_impl *m = job->m;
    const fsi__mg_level *f = m->mg.level;
    int k, c;
    for (k = 0; k < f->bricks && job->flow->use_guess; k++)
        for (c = 0; c < 8; c++) {
            const int at = fsi__mg_cell(k) + c;
            const double q = (double)job->flow->pressure->value[8 * (long long)m->row[k] + c] * job->scale;
            m->x[at] = fsi__mg_has(f, at) && fsi_is_finite(q) ? q : 0;
        }
    fsi__pressure_center(job, m->x);
}

/* Impulses of all solids, and the velocities of coupled ones. */
static void fsi__pressure_push_solids(fsi__pressure_job *job)
{
    const double dx = (double)job->grid->dx, unit = job->density * dx * dx * (job->grid->dim == 3 ? dx * dx : dx);
    const double *heavier = job->m->heavier;
    int k, a, f, i;
    for (k = 0; k < job->flow->solid_count; k++) {
        fsi_pressure_solid *b = job->flow->solids + k;
        double p[3] = { 0, 0, 0 }, l[3] = { 0, 0, 0 };

        /* Face after face. */
        for (a = 0; a < job->grid->dim; a++)
            for (f = b->faces->first[a]; f < b->faces->first[a + 1]; f++) {
                const int upper = fsi__pressure_unknown(job, fsi__pressure_pushed(job, b->faces->entry[f], a, 1));
                const int lower = fsi__pressure_unknown(job, fsi__pressure_pushed(job, b->faces->entry[f], a, 0));
                const double push = unit * fsi__pressure_share(job, b, f, a) * ((lower < 0 ? 0 : job->m->x[lower])
                    - (upper < 0 ? 0 : job->m->x[upper]));
                const fsi_vec3 d = fsi_v3_sub(fsi__pressure_face_position(job->grid, b->faces->entry[f], a), b->center);
                const double arm[3] = { (double)d.x, (double)d.y, (double)d.z };
                if (b->face_impulse) b->face_impulse[f] = push;
                p[a] += push;
                l[(a + 1) % 3] += push * arm[(a + 2) % 3];
                l[(a + 2) % 3] -= push * arm[(a + 1) % 3];
            }

        /* Sums. */
        b->impulse = fsi_v3((fsi_real)p[0], (fsi_real)p[1], (fsi_real)p[2]);
        b->angular_impulse = fsi_v3(job->grid->dim == 3 ? (fsi_real)l[0] : 0, job->grid->dim == 3 ? (fsi_real)l[1]
            : 0, (fsi_real)l[2]);

        /* The new velocity. */
        if (!b->coupled) continue;
        for (i = 0; i < 3; i++) p[i] *= heavier[0] / b->mass;
        b->linear = fsi_v3_add(b->linear, fsi_v3((fsi_real)p[0], (fsi_real)p[1], (fsi_real)p[2]));
        if (job->grid->dim == 2) b->angular.z += (fsi_real)heavier[1] * b->inverse_inertia.m[8] * b->angular_impulse.z;
        else b->angular = fsi_v3_madd(b->angular, (fsi_real)heavier[1],
            fsi_m3_mul_v3(b->inverse_inertia, b->angular_impulse));
        heavier += 2;
    }
}

/* Publishes: nothing of it can fail. */
static void fsi__pressure_commit(fsi__pressure_job *job)
{
    fsi__pressure_impl *m = job->m;
    const fsi_grid *g = job->grid;
    fsi__pressure_push_solids(job);
    memset(m->cuts_of, 0, m->cuts_memory.used);
    fsi__pressure_add_solids(job);
    if (job->flow->pressure)
        memset(job->flow->pressure->value, 0, (size_t)g->block_count * (size_t)g->block_cells * sizeof(fsi_real));
    fsi__pressure_over_bricks(job, 100, fsi__pressure_correct);
}

static size_t fsi__pressure_bytes(const fsi__pressure_impl *m)
{
    size_t bytes = sizeof *m + m->lists_memory.size + m->cuts_memory.size + m->vectors_memory.size
        + m->faces_memory.size + m->responses_memory.size + m->yields_memory.size + m->runs_memory.size
        + m->pieces_memory.size + m->nulls_memory.size + m->device_memory.size;
    int l;
    for (l = 0; l < FSI__MG_LEVELS; l++) bytes += m->mg.level[l].lists_memory.size + m->mg.level[l].numbers_memory.size;
    return bytes;
}

static void fsi__pressure_no_liquid(fsi_pressure_flow *flow)
{
    const fsi_grid *g = flow->u[0]->grid;
    int k;
    for (k = 0; k < flow->solid_count; k++) {
        fsi_pressure_solid *b = flow->solids + k;
        b->impulse = b->angular_impulse = fsi_v3(0, 0, 0);
        if (b->face_impulse) memset(b->face_impulse, 0, (size_t)b->faces->count * sizeof(double));
    }
    if (flow->pressure)
        memset(flow->pressure->value, 0, (size_t)g->block_count * (size_t)g->block_cells * sizeof(fsi_real));
}

static fsi__pressure_key fsi__pressure_key_of(const fsi__pressure_job *job)
{
    fsi__pressure_key key;
    memset(&key, 0, sizeof key); /* padding is compared, too */
    key.grid = job->grid;
    key.densities = job->flow->inverse_density[0];
    key.blocks = job->grid->block_count;
    memcpy(key.n, job->grid->n, sizeof key.n);
    key.density = job->flow->density;
    key.theta_min = job->flow->theta_min;
    memcpy(key.open_side, job->flow->open_side, sizeof key.open_side);
    return key;
}

/* Cells, equations, bodies, pieces and levels of the liquid that there is. */
static fsi_status fsi__pressure_prepare(fsi__pressure_job *job, double *reference)
{
    static const char *const f = "fsi_pressure_project";
    fsi_pressure *s = job->s;
    fsi__pressure_impl *m = job->m;
    m->mg.dim = job->grid->dim;
    m->kept = 0;

    /* Cells and their equations. */
    if (!fsi__pressure_reserve_cells(job))
        return fsi__fail(s->context, FSI_ERROR_MEMORY, f, -1, 0, "no memory for lists of the liquid's cells");
    FSI__TRY(fsi__pressure_measure(job));
    if (!fsi__mg_reserve(&m->mg) || !fsi__pressure_reserve_vectors(job))
        return fsi__fail(s->context, FSI_ERROR_MEMORY, f, -1, 0, "no memory for the liquid's pressure");
    fsi__pressure_clear_vectors(m);
    FSI__TRY(fsi__pressure_assemble(job, fsi__pressure_equations, reference));

    /* Bodies, solids that yield, and pieces of liquid that are closed. */
    fsi__pressure_list_yields(job);
    if (!fsi__pressure_list_faces(job) || !fsi__pressure_find_pieces(job))
        return fsi__fail(s->context, FSI_ERROR_MEMORY, f, -1, 0, "no memory for bodies and pieces of liquid");
    if (job->status != FSI_OK) return job->status;

    /* Coarse levels, and what same_equations keeps. */
    fsi__pressure_soften(job);
    fsi__mg_setup(&m->mg);
    m->kept = job->flow->solid_count == 0 && !job->flow->surface_pressure;
    m->key = fsi__pressure_key_of(job);
    m->kept_density = job->density;
    m->kept_pieces = s->stats.pieces;
    return FSI_OK;
}

/* Does the flow ask for the equations that are kept? Those of another grid or desc are found anew. */
static int fsi__pressure_is_same(const fsi__pressure_job *job)
{
    const fsi_pressure_flow *flow = job->flow;
    fsi__pressure_key key;
    if (!flow->same_equations || !job->m->kept || flow->solid_count > 0 || flow->surface_pressure) return 0;
    key = fsi__pressure_key_of(job);
    return memcmp(&key, &job->m->key, sizeof key) == 0;
}

/* The same, where all but the right side is that of the last call. */
static fsi_status fsi__pressure_prepare_again(fsi__pressure_job *job, double *reference)
{
    job->density = job->m->kept_density;
    job->scale = fsi__pressure_scale(job);
    job->s->stats.pieces = job->m->kept_pieces;
    fsi__pressure_clear_vectors(job->m);
    return fsi__pressure_assemble(job, fsi__pressure_right_sides, reference);
}

/* The right side without what cannot be met, the guess, and the preconditioner of bodies. */
static void fsi__pressure_begin(fsi__pressure_job *job)
{
    fsi_pressure_stats *stats = &job->s->stats;
    const double dx = (double)job->grid->dx;
    stats->removed = fsi__pressure_center(job, job->m->b) * dx * dx * (job->grid->dim == 3 ? dx : 1);
    fsi__pressure_take_guess(job);
    fsi__pressure_board(job);
    fsi__pressure_factor(job->m);
    if (job->m->on && job->m->response)
        (void)FSI__PRESSURE_THERE(job->m, keep_columns(job->m->work, job->m->columns, job->m->response));
    stats->levels = job->m->mg.levels;
    stats->bytes = fsi__pressure_bytes(job->m);
}

FSI_API fsi_status fsi_pressure_project(fsi_pressure *s, fsi_pressure_flow *flow)
{
    fsi__pressure_job job;
    fsi__pressure_impl *m;
    double reference = 0, limit, most, start;
    fsi_status status;
    if (!s || s->cookie != FSI__COOKIE('p', fsi_pressure)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__pressure_check(s, flow));
    start = fsi__now(s->context);
    m = (fsi__pressure_impl *)s->impl;
    memset(&s->stats, 0, sizeof s->stats);
    memset(&job, 0, sizeof job);
    job.s = s;
    job.m = m;
    job.flow = flow;
    job.grid = flow->u[0]->grid;
    m->on = 0;
    m->lost = FSI_OK;
    if (s->desc.device == FSI_DEVICE_ALWAYS && !m->device)
        return fsi__fail(s->context, FSI_ERROR_DEVICE, "fsi_pressure_project", -1, 0,
            "desc.device is FSI_DEVICE_ALWAYS, but no device was found when the solver was created");

    /* The equations. */
    if (fsi__pressure_is_same(&job)) {
        FSI__TRY(fsi__pressure_prepare_again(&job, &reference));
    } else {
        if (!fsi__pressure_bounds(&job)) {
            m->kept = 0;
            fsi__pressure_no_liquid(flow);
            return FSI_OK;
        }
        FSI__TRY(fsi__pressure_prepare(&job, &reference));
    }
    fsi__pressure_begin(&job);
    s->stats.seconds_setup = fsi__now(s->context) - start;

    /* Their solution. */
    job.factor = reference > 0 ? 1 / reference : 1;
    limit = s->desc.tolerance * reference > s->desc.absolute ? s->desc.tolerance * reference : s->desc.absolute;
    most = fsi__pressure_solve(&job, limit);
    s->stats.divergence = most;
    s->stats.residual = reference > 0 ? most / reference : most;
    s->stats.degraded = !(most <= limit) && s->desc.degrade && fsi_is_finite(most);

    /* Velocities, pressure and impulses, where it is good enough. */
    if (job.status != FSI_OK) status = job.status;
    else if (!(most <= limit) && !s->stats.degraded)
        status = fsi__fail(s->context, FSI_ERROR_CONVERGENCE, "fsi_pressure_project", -1, most,
            "divergence is %g after %d iterations, not below %g", most, s->stats.iters, limit);
    else {
        fsi__pressure_center(&job, m->x);
        fsi__pressure_clear_enclosed(&job);
        status = fsi__pressure_ask_all(&job, m->x);
        if (status == FSI_OK) fsi__pressure_commit(&job);
        if (status == FSI_OK && s->stats.device_failures)
            fsi__warn(s->context, "fsi_pressure_project: the device failed (%s); the CPU did the call",
                fsi__pressure_why(m));
    }
    s->stats.seconds_solve = fsi__now(s->context) - start - s->stats.seconds_setup;
    return status;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
