/* fsi_grid.h - sparse MAC grid: level sets, velocities on faces, cut cells, a multigrid pressure solver.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_grid.h"
         #include "fsi_grid.h"

   A DROP IS PUSHED INTO A POOL, AND THE PRESSURE SAYS NO
      fsi_context ctx = fsi_default_context();             // hooks for memory, threads, messages; and what went wrong
      fsi_grid_desc d = fsi_grid_default_desc();           // a box of 64^3 cells; none of them exists yet
      fsi_grid *grid;
      fsi_field *phi, *u[3];                               // level set at cells, velocities on faces
      fsi_box3 pool;
      int a;
      d.context = &ctx;
      if (fsi_grid_create(&grid, &d) != FSI_OK) { puts(ctx.error.message); return 1; }
      if (fsi_grid_add_field(grid, FSI_CELLS, 8 * grid->dx, &phi) != FSI_OK) return 1;
      for (a = 0; a < 3; a++)
          if (fsi_grid_add_field(grid, (fsi_grid_place)(FSI_FACES_X + a), 0, &u[a]) != FSI_OK) return 1;
      pool.lo = fsi_v3(0, 0, 0);
      pool.hi = fsi_v3(1, 1, 0.25f);
      if (fsi_grid_fill_box(phi, FSI_GRID_ADD, pool, 8) != FSI_OK) return 1;           // makes the blocks that it needs
      if (fsi_grid_fill_sphere(phi, FSI_GRID_ADD, fsi_v3(0.5f, 0.5f, 0.4f), 0.2f, 8) != FSI_OK) return 1;
      printf("%d blocks of 8^3 cells, phi in the middle %g m\n", grid->block_count, (double)fsi_grid_sample_linear(phi, fsi_v3(0.5f, 0.5f, 0.4f)));
      fsi_grid_destroy(grid);                              // with its fields

   WHAT IS IN HERE (search for >>)
      >>grid           blocks that come and go, fields that live in them
      >>sampling       linear, clamped cubic, quadratic B-spline with gradient; tracing along velocities
      >>advection      semi-Lagrangian, of cells and faces;  >>extrapolation  of what is known into what is not
      >>distance       redistancing, connected components, volumes by marching
      >>fill           spheres, boxes, meshes, particles into or out of a level set
      >>cut faces      what share of each face a mesh covers;  >>level set surface  watertight, with normals
      >>pressure       projection: free surface, walls, cut faces, variable density, rigid bodies, solids that yield; multigrid and conjugate gradients
      then the implementation, by the same names
   WHAT IT DOES NOT DO
      Step a liquid: that is fsi_levelset.h. Grids of varying cell size. Thin sheets as obstacles: meshes must be closed.
   MACROS: those of fsi.h.
   UNITS: SI. In 2D volumes, areas, forces and impulses are per metre of depth.
   PRECISION: fields in fsi_real; distances, volumes and sums in double; preconditioners in float. Recommended: double.
   STACK: up to 100 kB in the caller's thread and in each of the context's.
   COST: docs/grid.md
*/
#ifndef FSI_GRID_H
#define FSI_GRID_H

#include "fsi_surface.h"

/* ---- >>grid --------------------------------------------------------------------------------------------------- */

/* A box of cubic cells of which only the blocks that are in use exist: 8 x 8 x 8 cells, in 2D 8 x 8.

       index:  . . 0 1 2 .      one int a block of the box, -1 where there is none
               . 3 4 5 6 .
               . . 7 8 . .      block b owns the entries [b * block_cells, (b + 1) * block_cells) of every field,
                                cell (x, y, z) of it at (z * 8 + y) * 8 + x

   Cell (i, j, k) has its centre at origin + (i + 1/2, j + 1/2, k + 1/2) dx. Its entry of a face field belongs to its LOWER
   face: that of FSI_FACES_X stands at origin + (i, j + 1/2, k + 1/2) dx. So that the upper wall's faces have a place too,
   the index covers one cell more than n along each axis. In 2D k = 0, n[2] = 1, z is not looked at. */
#define FSI_GRID_BLOCK 8 /* cells along an edge of a block */

/* Where the numbers of a field stand. The axis of a face field is its value minus FSI_FACES_X. */
typedef enum fsi_grid_place { FSI_CELLS, FSI_FACES_X, FSI_FACES_Y, FSI_FACES_Z } fsi_grid_place;

typedef struct fsi_grid_desc {
    uint32_t cookie;
    fsi_context *context;  /* default NULL: malloc, silence */
    int dim;               /* 3 (default) or 2 */
    int n[3];              /* cells along each axis, 1 to 16384; default 64; 2D: n[2] is taken for 1 */
    fsi_real dx;           /* edge of a cell [m], > 0; default 1.0/64 */
    fsi_vec3 origin;       /* lower corner of the box [m]; default 0 */
} fsi_grid_desc;

typedef struct fsi_grid fsi_grid;

/* One number a cell or face. Made by a grid, kept when blocks come and go, and destroyed with it. */
typedef struct fsi_field {
    uint32_t cookie;
    fsi_grid *grid;
    fsi_grid_place place;
    fsi_real background;   /* what stands in blocks that do not exist, and what new blocks are filled with */
    int scratch;           /* default 0; 1: what stands in it is not worth keeping when blocks come or go. Yours to write */
    fsi_real *value;       /* grid->block_count * grid->block_cells; yours to write */
} fsi_field;

struct fsi_grid {
    uint32_t cookie;
    fsi_context *context;  /* may be NULL */
    int dim;
    int n[3];              /* cells along each axis */
    fsi_real dx;
    fsi_vec3 origin;
    int blocks[3];         /* places of blocks along each axis: (n + 8)/8; 2D: blocks[2] = 1 */
    int block_cells;       /* 512; 2D: 64 */
    int block_count;       /* blocks that exist */
    const int *index;      /* blocks[0] * blocks[1] * blocks[2], x fastest: the block at each place, -1 none */
    const int *place;      /* block_count: place of each block in `index`, ascending */
    void *impl;
};

FSI_API fsi_grid_desc fsi_grid_default_desc(void); /* fills every field */
/* An empty grid: no block, no field. Errors: COOKIE, ARGUMENT, NAN (name the field of the desc), LIMIT (more than 2^31-1
   places of blocks), MEMORY; then *out is NULL. */
FSI_API fsi_status fsi_grid_create(fsi_grid **out, const fsi_grid_desc *desc);
FSI_API void fsi_grid_destroy(fsi_grid *grid); /* with its fields; NULL is fine */
/* A field of `background` everywhere. Errors: COOKIE, ARGUMENT (place), NAN (background), LIMIT (60 fields), MEMORY; then *out is NULL. */
FSI_API fsi_status fsi_grid_add_field(fsi_grid *grid, fsi_grid_place place, fsi_real background, fsi_field **out);
FSI_API void fsi_grid_remove_field(fsi_field *field); /* NULL is fine */
/* Makes exactly the blocks exist whose place has wanted[place] != 0 (as many entries as `index`). Fields keep what stood in blocks that
   stay; new ones are filled with the background. Their arrays may move. Errors: COOKIE, ARGUMENT, LIMIT (2^31-1 cells), MEMORY;
   nothing has changed then. O(places + entries that move). */
FSI_API fsi_status fsi_grid_set_blocks(fsi_grid *grid, const unsigned char *wanted);

FSI__STRICT_FN_BEGIN
/* Position of the entry (i, j, k) of a field at `place` [m]. */
FSI_FN fsi_vec3 fsi_grid_position(const fsi_grid *g, fsi_grid_place place, int i, int j, int k)
{
    const fsi_real h = g->dx / 2;
    return fsi_v3(g->origin.x + (fsi_real)i * g->dx + (place == FSI_FACES_X ? 0 : h), g->origin.y + (fsi_real)j * g->dx + (place == FSI_FACES_Y ? 0 : h),
                  g->dim == 2 ? 0 : g->origin.z + (fsi_real)k * g->dx + (place == FSI_FACES_Z ? 0 : h));
}
/* Cell (i, j, k) of the corner of block b. */
FSI_FN void fsi_grid_corner(const fsi_grid *g, int b, int corner[3])
{
    const int p = g->place[b];
    corner[0] = p % g->blocks[0] * FSI_GRID_BLOCK;
    corner[1] = p / g->blocks[0] % g->blocks[1] * FSI_GRID_BLOCK;
    corner[2] = p / g->blocks[0] / g->blocks[1] * FSI_GRID_BLOCK;
}
/* Entry of cell (i, j, k) in every field, -1 where no block is or outside of the index. */
FSI_FN long long fsi_grid_entry(const fsi_grid *g, int i, int j, int k)
{
    const int bx = i >> 3, by = j >> 3, bz = k >> 3; /* arithmetic shift: what is below 0 stays below */
    int b;
    if (i < 0 || j < 0 || k < 0 || bx >= g->blocks[0] || by >= g->blocks[1] || bz >= g->blocks[2]) return -1;
    b = g->index[((size_t)bz * (size_t)g->blocks[1] + (size_t)by) * (size_t)g->blocks[0] + (size_t)bx];
    return b < 0 ? -1 : (long long)b * g->block_cells + (((k & 7) * 8 + (j & 7)) * 8 + (i & 7));
}
/* Number of entries that a field has along an axis within the box: n, or n + 1 faces along their own axis. */
FSI_FN int fsi_grid_size(const fsi_grid *g, fsi_grid_place place, int axis) { return g->n[axis] + (axis + 1 == (int)place); }
FSI__STRICT_FN_END

/* Value at (i, j, k), which is clamped into the box first; background where no block is. */
FSI_API fsi_real fsi_grid_at(const fsi_field *field, int i, int j, int k);

/* ---- >>sampling -----------------------------------------------------------------------------------------------

   Values between the entries. Beyond its outermost entries a field goes on as a constant; where no block is stands its background.
   What is no field gives 0, a position that is NaN counts as the lower corner of the box. In 2D z is not looked at. */

/* Linear in 2D between 4 entries, in 3D between 8. */
FSI_API fsi_real fsi_grid_sample_linear(const fsi_field *f, fsi_vec3 x);
/* Tensor product of Catmull-Rom cubics (exact for quadratics), clamped to the range of the 2^dim entries around x. */
FSI_API fsi_real fsi_grid_sample_cubic(const fsi_field *f, fsi_vec3 x);
/* Quadratic B-spline: C1 everywhere, does not interpolate: f + dx^2/8 Laplacian(f). gradient (NULL ok) is that of the value returned [1/m];
   in 2D its z is 0. It flattens over the outermost entry: at a wall, half a cell beyond the centres, the normal part is 0. */
FSI_API fsi_real fsi_grid_sample_spline(const fsi_field *f, fsi_vec3 x, fsi_vec3 *gradient);
/* Each component linear between its own faces. u: one field a place FSI_FACES_X, _Y, _Z, of one grid; in 2D u[2] is not looked at. What is
   no such velocity counts as 0. */
FSI_API fsi_vec3 fsi_grid_sample_velocity(fsi_field *const u[3], fsi_vec3 x);
/* Where x goes along u in dt seconds, back if dt < 0. order 2: midpoint rule, 3: Ralston (1962); else as 2. Every point on the way is clamped
   into the box, x too. x comes back as it is when u is no velocity or dt is not finite. */
FSI_API fsi_vec3 fsi_grid_trace(fsi_field *const u[3], fsi_vec3 x, fsi_real dt, int order);

/* ---- >>advection ---------------------------------------------------------------------------------------------- */

/* How an advected field is read where the trace ends. */
typedef enum fsi_grid_scheme {
    FSI_ADVECT_LINEAR,   /* as fsi_grid_sample_linear: smears */
    FSI_ADVECT_CUBIC,    /* as fsi_grid_sample_cubic: never out of the range of the 2^dim entries around, at the price of clipped peaks */
    FSI_ADVECT_QUINTIC   /* 6 entries along each axis (Lagrange, exact for quintics), clamped to the range of the 4^dim around, widened by a
                            quarter: more than the crest of a wave of 4 cells needs. Keeps most energy and the sharpest corners */
} fsi_grid_scheme;

/* to(x) = from(trace(x, -dt)) in every block: semi-Lagrangian transport (Staniforth and Cote 1991). `to` is another field at the place of
   `from`, and none of u. where (NULL: everywhere): one byte an entry; entries with 0 take over their value of `from`, and rows and blocks of
   them cost next to nothing: pass what fsi_grid_extrapolate made of `known`, or |phi| < band. order: as for fsi_grid_trace.

   `from` need not be the carrier u: where pressure acts, most energy is lost by splitting advection from projection, not by the scheme. With
   from = 2 u - u*, u* being u before its last projection, the pressure of a step acts half before and half after the way, and vortices of 16
   cells keep 99 instead of 46 % of their energy while the liquid goes 8 times as far as they are wide (the reflection of Zehnder, Narain and
   Thomaszewski 2018, with one projection a step).

   Allocates nothing. Errors: COOKIE, ARGUMENT (names what does not fit), NAN (dt; or names the entry of from or u that is not finite: `to` then
   is of no use, but finite where it was). */
FSI_API fsi_status fsi_grid_advect(const fsi_field *from, fsi_field *const u[3], fsi_real dt, fsi_grid_scheme scheme, int order, const unsigned char *where,
                                   fsi_field *to);
/* The same for the components of a velocity, which may be u itself, in three quarters of the time. where (NULL: everywhere): one list a component,
   any may be NULL. Errors: as fsi_grid_advect; COOKIE also when `to` is no velocity. */
FSI_API fsi_status fsi_grid_advect_velocity(fsi_field *const from[3], fsi_field *const u[3], fsi_real dt, fsi_grid_scheme scheme, int order,
                                            const unsigned char *const where[3], fsi_field *const to[3]);

/* ---- >>extrapolation ------------------------------------------------------------------------------------------ */

/* Carries f from where it is known into what lies around. known: one byte an entry, other than 0 where the value of f stands. Layer after
   layer (1 to 254), each unknown entry of an existing block that has known face neighbours within the box gets their average; the order
   within a layer does not matter. known becomes 1 where it was not 0, 1 + layer where f was set; what is left has f = background and 0.
   Allocates only where there are more blocks than ever. Errors: COOKIE, ARGUMENT, MEMORY: nothing has changed; NAN (names an entry beside known
   ones that are not finite, or whose sum is not): f and known are of no use. */
FSI_API fsi_status fsi_grid_extrapolate(fsi_field *f, unsigned char *known, int layers);

/* ---- >>distance ------------------------------------------------------------------------------------------------ */

/* A level set phi lives in FSI_CELLS: below 0 in liquid. What stands in no block is air, so its background must be above 0. What lies beyond
   the walls of the box is never looked at. All of these work in scratch that the grid keeps: once it is as large as it gets, they allocate
   nothing. One of them at a time on one grid. */

/* out = the signed distance |grad out| = 1 to the surface phi = 0 where it is nearer than band * dx, +-band * dx elsewhere; band is 2 to 16 cells.
   Cells with a neighbour on the other side find their distance by a quadratic fit to phi; from there the nearest points of the surface are
   handed on from cell to cell. The surface stays: to third order in dx where it is smooth and its radius is above 2 dx (a ball of 8 dx that is
   a distance already stays within 1e-3 dx), to a fraction of a cell at edges and in sheets and drops of one or two cells, which keep their volume when this is
   done again and again: 100 times: sheets of 1.2 dx and more to 6 %, along diagonals in 2D to 20 %. Farther off values
   are good to 2e-3 dx beside that. No sign changes: what is liquid (phi < 0) stays liquid. Entries beyond the box become +band * dx. out may be
   phi. Errors: COOKIE, ARGUMENT (band, place, grid, background), NAN (names the entry), MEMORY; out stays as it was. */
FSI_API fsi_status fsi_grid_redistance(const fsi_field *phi, int band, fsi_field *out);

/* label[entry] (block_count * block_cells) = number of the component that the entry's cell belongs to, -1: not liquid. Liquid is phi < 0 within the
   box where solid (NULL ok, one byte an entry) is 0; components hold together by faces of cells. They are numbered in the order of
   their first cells, ascending in (k, j, i), whatever the blocks. count (NULL ok): how many. Errors: COOKIE, ARGUMENT (place, background, label is
   NULL), NAN (names the entry), MEMORY; label stays as it was. */
FSI_API fsi_status fsi_grid_label(const fsi_field *phi, const unsigned char *solid, int *label, int *count);

/* Entries within the box that have no label (any below 0) and are at most `layers` steps across faces away from one that has, take the label
   that comes over the fewest steps; of several, that of the neighbour with the smallest phi; of equal ones, the smallest label. layers: 0 to
   64. Errors: COOKIE, ARGUMENT (place, layers, label is NULL), NAN (names the entry), MEMORY; label stays as it was. */
FSI_API fsi_status fsi_grid_grow_labels(int *label, const fsi_field *phi, int layers);

/* What one component holds. */
typedef struct fsi_grid_component {
    double volume;         /* [m^3]; 2D: [m^2] */
    double area;           /* of its free surface [m^2], without what wets walls; 2D: [m] */
    fsi_vec3 centroid;     /* [m] */
    fsi_vec3 momentum;     /* over density: volume times the velocity of liquid cells, the mean of their faces [m^4/s]; 2D: [m^3/s]; 0 without u */
    fsi_box3 box;          /* the smallest one around it [m]; centroid and box are 0 where there is no volume */
    int cells;             /* entries with its label and phi < 0 */
} fsi_grid_component;

/* out[c] for the components 0 .. count-1 that label (as fsi_grid_label made it, grown or not; other numbers are left out; NULL: all is component
   0) tells apart. Volume is where phi < 0, phi being linear in the 6 tetrahedra (2D: 2 triangles) of each cube between 8 cell centres, and
   over the half cell from the last centre to a wall as between the last two. Where the liquid
   corners of a tetrahedron bear several labels, it is shared among them in equal parts; what is liquid at a wall only bears the label, if grown, of the cell
   there. solid (NULL: there is none): a field of cells that holds
   the distance to solids as fsi_grid_mesh_distance makes it; of a cell counts the share clamp(1/2 + solid/dx, 0, 1), linear between centres as
   phi is. A sphere of radius R comes out smaller by (dx/R)^2 / 2,
   a circle by (dx/R)^2 / 6, planes are exact.
   u (NULL ok): fields of the face velocities of all axes, on the same grid. Errors: COOKIE, ARGUMENT (place, background, count < 0, out is
   NULL), NAN (names the entry of phi or u), MEMORY; out stays as it was. */
FSI_API fsi_status fsi_grid_volumes(const fsi_field *phi, const int *label, int count, fsi_field *const u[3], const fsi_field *solid, fsi_grid_component *out);

/* ---- >>fill ---------------------------------------------------------------------------------------------------- */

/* Puts liquid into a level set, or takes it out. phi [m]: a field of cells, negative in the liquid, whose background is at least
   band dx. With d the signed distance to a shape, negative inside, clamped to +-band dx (band: cells, 2 to 16):

      FSI_GRID_ADD      phi = min(phi, d)     union; makes the blocks that hold a cell with d < band dx, also deep inside
      FSI_GRID_REMOVE   phi = max(phi, -d)    difference; no block comes or goes

   What is further than band dx from the surface is filled by its sign, block by block. Where shapes meet, phi is the distance to the nearer
   one only: redistance it. In 2D z is not looked at. Errors: COOKIE, ARGUMENT (names what is out of its range), NAN, LIMIT, MEMORY;
   nothing has changed then. */
typedef enum fsi_grid_operation { FSI_GRID_ADD, FSI_GRID_REMOVE } fsi_grid_operation;

/* A ball; in 2D a disc. radius > 0. */
FSI_API fsi_status fsi_grid_fill_sphere(fsi_field *phi, fsi_grid_operation operation, fsi_vec3 center, fsi_real radius, int band);
/* A side of the box that lies on a wall of the grid (to dx/1000) or beyond it is no surface: of a pool against the walls, phi is the
   distance to its top alone. */
FSI_API fsi_status fsi_grid_fill_box(fsi_field *phi, fsi_grid_operation operation, fsi_box3 box, int band);
/* A CLOSED mesh of the grid's dimension (else MESH, ARGUMENT): what it encloses; that is the liquid of a container too. */
FSI_API fsi_status fsi_grid_fill_mesh(fsi_field *phi, fsi_grid_operation operation, const fsi_mesh *mesh, int band);
/* The union of `count` balls around x, d = min |x - x_i| - radius: inside, where balls overlap, it is not the distance to their common
   surface. 160 bytes a particle while it runs. */
FSI_API fsi_status fsi_grid_fill_particles(fsi_field *phi, fsi_grid_operation operation, const fsi_vec3 *x, int count, fsi_real radius, int band);

/* ---- >>cut faces ------------------------------------------------------------------------------------------------ */

/* psi [m], a field of cells: the signed distance to a CLOSED mesh at the centres of the cells of all blocks, negative in the solid (that is
   outside of a container), clamped to +-band dx, 2 to 16. Exact; costs 1 to 2 us a cell in the band, next to nothing beyond. Errors: COOKIE, ARGUMENT (place, band, dimension), MESH (not closed); psi stays as it was. */
FSI_API fsi_status fsi_grid_mesh_distance(fsi_field *psi, const fsi_mesh *mesh, int band);

/* The faces of a grid that lie wholly or partly in a solid; those of blocks that exist. Arrays stay valid until the next build; entries
   mean something as long as the grid keeps its blocks. */
typedef struct fsi_grid_faces {
    uint32_t cookie;
    fsi_context *context;
    int count;
    int first[4];            /* those of axis a are first[a] .. first[a + 1] - 1 */
    const int *entry;        /* count: entry in the face fields of that axis, ascending */
    const fsi_real *solid;   /* count: share of the face in the solid, (0, 1] */
    void *impl;
} fsi_grid_faces;

/* An empty list; memory comes from `context` (NULL: malloc). Errors: COOKIE, MEMORY; then *out is NULL. Destroying NULL is fine. */
FSI_API fsi_status fsi_grid_faces_create(fsi_grid_faces **out, fsi_context *context);
FSI_API void fsi_grid_faces_destroy(fsi_grid_faces *faces);
/* Finds the faces that a CLOSED mesh (of a container: what is outside of it) covers where it now is. The share of a face is that of the
   polygon through the points where the mesh crosses its sides between corners inside and outside (found by rays within a block of an edge of the mesh,
   from the distances at the corners else): exact for a plane, second order else. A corner on the
   surface, or outside of it by less than 1e-5 dx (float: 1e-4), counts as inside: a face that lies in the surface is covered, or behind each wall that lies
   in the grid there would be cells open to the liquid, and at the edges of a column a way through. What is thinner than a cell may pass
   between corners unseen. Cells see the same corners where they share them. Costs half a microsecond a corner within dx of the mesh, a query for each row of blocks that are all inside or outside, and the writing of
   what is deep inside.
   Errors: COOKIE, ARGUMENT (dimension), MESH (not closed), LIMIT, MEMORY; the former list then stays as it was. */
FSI_API fsi_status fsi_grid_faces_build(fsi_grid_faces *faces, const fsi_grid *grid, const fsi_mesh *mesh);

/* ---- >>level set surface ----------------------------------------------------------------------------------------- */

/* The surface phi = 0 of a field of cells, made of triangles (2D: segments) by marching cubes over the cubes whose corners are centres of
   cells; where it meets the walls of the box it goes on to them, phi continued without gradient. Arrays stay valid until the next update.
   Capped, every edge belongs to exactly two triangles (2D: every vertex to two segments). No two vertices of an element are closer than
   dx/2000, no element is without area, as far as fsi_real tells positions there apart. */
typedef struct fsi_grid_surface {
    uint32_t cookie;
    fsi_context *context;
    int corners;                 /* of an element, as the last field has dimensions: 3 or 2 */
    int vertex_count, element_count;
    const fsi_vec3 *vertices;    /* vertex_count [m] */
    const fsi_vec3 *normals;     /* vertex_count, unit, out of the liquid, along the gradient of phi; on caps that of the wall */
    const int *elements;         /* corners * element_count; triangles counter-clockwise seen from outside, segments with the outside on
                                    their left (as fsi_mesh_desc wants them) */
    void *impl;
} fsi_grid_surface;

/* An empty surface; memory comes from `context` (NULL: malloc). Errors: COOKIE, MEMORY; then *out is NULL. Destroying NULL is fine. */
FSI_API fsi_status fsi_grid_surface_create(fsi_grid_surface **out, fsi_context *context);
FSI_API void fsi_grid_surface_destroy(fsi_grid_surface *surface);
/* phi [m], a field of cells, negative in the liquid, with a background >= 0. capped: 1 closes the liquid at the walls, 0 leaves its sides there
   open, for a picture of liquid behind glass. Same field, same bits for any number of threads. Errors: COOKIE, ARGUMENT (place, background),
   NAN (names the cell), LIMIT (2^31 - 1 vertices or indices), MEMORY; the former surface then stays as it was. */
FSI_API fsi_status fsi_grid_surface_update(fsi_grid_surface *surface, const fsi_field *phi, int capped);

/* ---- >>pressure ----------------------------------------------------------------------------------------------- */

/* The pressure that makes a liquid divergence-free, on the liquid's cells only (Batty, Bertails and Bridson 2007 for cut faces and bodies,
   Gibou et al. 2002 for the free surface). With the share `open` of a face that no solid covers, and beta = 1/density there,

      dt/dx^2 sum over faces of open beta (p_i - p_nb)/theta = -div_i,       div_i = 1/dx sum of +-(open u + sum over solids of share v)
      u -= dt beta (p_upper - p_lower)/(theta dx),                           bodies gain dt sum of share dx^(d-1) (p_lower - p_upper) n

   theta is 1, but where a liquid cell i meets an air cell j: phi_i/(phi_i - phi_j), at least theta_min, and p_nb is the pressure at the surface.
   Coupled bodies, and solids that yield, move with what they gain in the same solve: added mass, whatever their density. */
enum { FSI_CELL_AIR, FSI_CELL_LIQUID, FSI_CELL_SOLID }; /* pressure known, unknown, and no flow: the faces of a solid cell are walls. What the faces of a
                                                           solid cover in part only are no solid cells: they stay what they are */

/* One solid that meets the liquid. Where the shares of several solids in a face sum up to more than 1, they are scaled to 1. */
typedef struct fsi_pressure_solid {
    const fsi_grid_faces *faces;       /* built on the grid as it is now */
    const fsi_real *velocity;          /* faces->count: normal velocity of the solid at each face [m/s]; NULL: 0. Not read when coupled */
    int coupled;                       /* 1: a free rigid body, solved together with the liquid; what follows up to `angular` is read then only */
    double mass;                       /* > 0 [kg; 2D: kg/m]; below 1e-5 of the liquid that moves with it, it counts as that */
    fsi_mat3 inverse_inertia;          /* world axes, symmetric, positive semidefinite: 0 does not turn [1/(kg m^2)]; 2D: m[8] */
    fsi_vec3 center;                   /* of mass, now [m]; read for others too: the moment is about it */
    fsi_vec3 linear, angular;          /* in: after all other forces; out: after the liquid too [m/s, rad/s] */
    fsi_vec3 impulse, angular_impulse; /* out, for every solid: what the liquid's pressure gave to it [N s, N m s; 2D: a metre of depth] */
    double *face_impulse;              /* out, for every solid: the same for each of its faces along the face's axis, faces->count; NULL: not wanted */
    /* A solid that yields, cloth say, is solved together with the liquid by what it does when its faces are pushed. Given the impulses of all its faces,
       counted as face_impulse is, respond writes the change of each one's velocity [m/s]: a linear, symmetric, positive semidefinite map R. `velocity` is
       that before the pressure. The liquid that a face carries with it counts in R and velocity, nowhere else: with weights W of faces in the solid's
       velocities v, its matrix A (masses, dt^2 stiffness) and the masses M of liquid at its faces, R = W (A + W^T M W)^-1 W^T and
       velocity = W (A + W^T M W)^-1 (A v + W^T M u). Faces away from liquid get impulse 0. Called from the calling thread: once an iteration, a few times more,
       and twice for each piece of liquid without another way out. Anything but FSI_OK that it returns ends the projection, with that status. */
    fsi_status (*respond)(void *user, fsi_context *context, const double *impulse, double *change); /* default NULL: does not yield. Not with `coupled` */
    void *user;
    const fsi_real *yielding;          /* faces->count, >= 0: how readily each face gives way: 0 as a wall, 1 (or more) as freely as the liquid. Only the number of
                                          iterations depends on it. Limp cloth: M/(M + its mass at the face), or density dx^d times R's row sum there (not its
                                          diagonal); a rigid plate: NULL, which is 0. Read with respond only */
} fsi_pressure_solid;

typedef struct fsi_pressure_flow {
    uint32_t cookie;
    fsi_field *u[3];                         /* velocities on faces [m/s]. In: predicted. Out: faces next to liquid cells: divergence-free; those that
                                                solids cover wholly: the solid's velocity. Faces of walls and of solid cells are read, not written */
    const unsigned char *cell;               /* grid->block_count * block_cells: FSI_CELL_*; where no block is, there is air */
    const fsi_field *phi;                    /* at cells, negative in liquid [m]; NULL: theta = 1 */
    const fsi_field *surface_pressure;       /* at cells [Pa]: at a surface between cells i and j, (1 - theta) of i's + theta of j's; NULL: 0 */
    const fsi_field *surface_weight;         /* at cells, > 0, its background too: of its surface_pressure in that mean; NULL: 1 */
    const fsi_field *inverse_density[3];     /* at faces, > 0 [m^3/kg], their backgrounds too; NULL (all): 1/density */
    fsi_real density;                        /* > 0 [kg/m^3]; default 1000; not read with inverse_density */
    fsi_real dt;                             /* > 0 [s] */
    fsi_real theta_min;                      /* 0 to 1, not 0; default 0.01 */
    unsigned char open_side[6];              /* x-, x+, y-, ...: 1: air of pressure 0 beyond this side of the box, which is its surface; 0 (default): a
                                                wall, its normal velocity stands in u at its faces (inflow too) */
    int use_guess;                           /* 1: the solve starts from `pressure`, unless that is worse than 0; default 0 */
    fsi_pressure_solid *solids;              /* solid_count */
    int solid_count;
    const unsigned char *let_go;             /* at cells: the wall or solid at the face below along axis a does not hold liquid in the cell above that face, bit a, or
                                                below it, bit 3 + a. For that cell it is as an open side, with its velocity in u; the solid gets no impulse there; NULL: all hold */
    fsi_field *pressure;                     /* out: at liquid cells [Pa], 0 in all others; none of the fields above; NULL: not wanted */
} fsi_pressure_flow;

typedef struct fsi_pressure_desc {
    uint32_t cookie;
    fsi_context *context; /* default NULL */
    double tolerance;     /* done when the largest divergence left is below tolerance * the largest right side (surface pressures counted with theta 1), */
    double absolute;      /* or below this [1/s]. Defaults 1e-8 (float: 1e-6) and 0. A second projection asks for the first one's
                             stats.divergence */
    int max_iters;        /* default 200 */
} fsi_pressure_desc;

typedef struct fsi_pressure_stats { /* of the last projection */
    long long unknowns;         /* liquid cells with an open face */
    int enclosed;               /* liquid cells without, even if a solid at their faces yields; their pressure is 0 */
    int pieces;                 /* connected pieces of liquid without a free surface or other way out: the pressure of each has mean 0, */
    double removed;             /* and their net inflow cannot be met: sum over the pieces of its amount [m^3/s; 2D m^2/s], which spreads over their cells */
    int iters, levels;
    double residual;            /* largest |divergence| left over the largest right side, */
    double divergence;          /* and by itself [1/s], but for what was removed */
    double seconds_setup, seconds_solve; /* by the clock hook */
    size_t bytes;               /* held */
} fsi_pressure_stats;

/* A solver's memory: it grows with the liquid, and stays. Read everything. */
typedef struct fsi_pressure {
    uint32_t cookie;
    fsi_context *context;
    fsi_pressure_desc desc;     /* as given; tolerance, absolute and max_iters may be changed between calls */
    fsi_pressure_stats stats;
    void *impl;
} fsi_pressure;

FSI_API fsi_pressure_desc fsi_pressure_default_desc(void); /* fills every field */
FSI_API fsi_pressure_flow fsi_pressure_default_flow(void); /* fills every field; u, cell, dt are yours to set */
/* *out is NULL on failure. Errors: COOKIE, ARGUMENT, MEMORY. */
FSI_API fsi_status fsi_pressure_create(fsi_pressure **out, const fsi_pressure_desc *desc);
FSI_API void fsi_pressure_destroy(fsi_pressure *s); /* NULL is fine */
/* One projection, in time and memory proportional to the blocks that exist and the liquid cells (and 4 bytes a column of the liquid's bounding box).
   Errors: COOKIE, ARGUMENT (names the field), NAN (names the cell), LIMIT, MEMORY, CONVERGENCE (max_iters, or no progress); then fields and solids
   are as they were. */
FSI_API fsi_status fsi_pressure_project(fsi_pressure *s, fsi_pressure_flow *flow);

#endif /* FSI_GRID_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#ifndef FSI_GRID_IMPLEMENTATION_DONE
#define FSI_GRID_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_surface.h"

FSI__STRICT_BEGIN

/* ---- >>grid implementation ------------------------------------------------------------------------------------ */

#define FSI__GRID_FIELDS 60 /* with the list of places what one fsi__grow can hold */

typedef struct fsi__grid_impl {
    fsi_field *fields[FSI__GRID_FIELDS];
    int field_count;
    int *index, *place;
    int *next;                       /* scratch: the next list of places */
    fsi__arena scratch;              /* of one call: masks, sheets, distances; kept, so that the next one allocates nothing */
    int capacity;                    /* blocks that `place`, `next` and every field have room for */
} fsi__grid_impl;

static size_t fsi__grid_places(const fsi_grid *g) { return (size_t)g->blocks[0] * (size_t)g->blocks[1] * (size_t)g->blocks[2]; }

static int fsi__is_grid(const fsi_grid *g) { return g && g->cookie == FSI__COOKIE('g', fsi_grid); }
static int fsi__is_field(const fsi_field *f) { return f && f->cookie == FSI__COOKIE('v', fsi_field); }
static int fsi__clamp_int(int i, int most) { return i < 0 ? 0 : (i > most ? most : i); }

FSI_API fsi_grid_desc fsi_grid_default_desc(void)
{
    fsi_grid_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('G', fsi_grid_desc);
    d.dim = 3;
    d.n[0] = d.n[1] = d.n[2] = 64;
    d.dx = (fsi_real)(1.0 / 64);
    return d;
}

static fsi_status fsi__grid_check(const fsi_grid_desc *d)
{
    static const char *const f = "fsi_grid_create";
    double places = 1;
    int a;
    if (d->dim != 2 && d->dim != 3) return fsi__fail(d->context, FSI_ERROR_ARGUMENT, f, -1, d->dim, "dim is %d, not 2 or 3", d->dim);
    for (a = 0; a < d->dim; a++) {
        if (d->n[a] < 1 || d->n[a] > 16384) return fsi__fail(d->context, FSI_ERROR_ARGUMENT, f, a, d->n[a], "n[%d] is %d, not 1 to 16384", a, d->n[a]);
        places *= (d->n[a] + FSI_GRID_BLOCK) / FSI_GRID_BLOCK;
    }
    if (!fsi_is_finite((double)d->dx)) return fsi__fail(d->context, FSI_ERROR_NAN, f, -1, (double)d->dx, "dx is not finite");
    if (!(d->dx > 0)) return fsi__fail(d->context, FSI_ERROR_ARGUMENT, f, -1, (double)d->dx, "dx is %g, not above 0", (double)d->dx);
    if (!fsi_v3_is_finite(d->origin)) return fsi__fail(d->context, FSI_ERROR_NAN, f, -1, 0, "origin is not finite");
    if (places > 2147483647.0) return fsi__fail(d->context, FSI_ERROR_LIMIT, f, -1, places, "%g blocks in the box are more than 2^31 - 1", places);
    return FSI_OK;
}

FSI_API fsi_status fsi_grid_create(fsi_grid **out, const fsi_grid_desc *desc)
{
    static const char *const f = "fsi_grid_create";
    fsi_context *context;
    fsi__grid_impl *m;
    fsi_grid *g;
    fsi_status status;
    size_t places, p;
    int a;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!desc || desc->cookie != FSI__COOKIE('G', fsi_grid_desc) || !fsi__is_context(desc->context)) return FSI_ERROR_COOKIE;
    status = fsi__grid_check(desc);
    if (status != FSI_OK) return status;
    context = desc->context;
    g = (fsi_grid *)fsi__alloc(context, 1, sizeof *g);
    m = (fsi__grid_impl *)fsi__alloc(context, 1, sizeof *m);
    if (g) {
        g->cookie = FSI__COOKIE('g', fsi_grid);
        g->dim = desc->dim;
        g->dx = desc->dx;
        g->origin = desc->origin;
        if (g->dim == 2) g->origin.z = 0;
        for (a = 0; a < 3; a++) {
            g->n[a] = a < g->dim ? desc->n[a] : 1;
            g->blocks[a] = a < g->dim ? (g->n[a] + FSI_GRID_BLOCK) / FSI_GRID_BLOCK : 1;
        }
        g->block_cells = g->dim == 3 ? FSI_GRID_BLOCK * FSI_GRID_BLOCK * FSI_GRID_BLOCK : FSI_GRID_BLOCK * FSI_GRID_BLOCK;
    }
    places = g ? fsi__grid_places(g) : 0;
    if (g && m) m->index = (int *)fsi__alloc(context, places, sizeof *m->index);
    if (!g || !m || !m->index) {
        fsi__free(context, m, 1, sizeof *m);
        fsi__free(context, g, 1, sizeof *g);
        return fsi__fail(context, FSI_ERROR_MEMORY, f, -1, 0, "no memory for a grid of %g blocks", (double)places);
    }
    for (p = 0; p < places; p++) m->index[p] = -1;
    g->context = context;
    g->index = m->index;
    g->impl = m;
    *out = g;
    return FSI_OK;
}

FSI_API void fsi_grid_destroy(fsi_grid *g)
{
    fsi__grid_impl *m;
    if (!fsi__is_grid(g)) return;
    m = (fsi__grid_impl *)g->impl;
    while (m->field_count > 0) fsi_grid_remove_field(m->fields[m->field_count - 1]);
    fsi__free(g->context, m->place, (size_t)m->capacity, sizeof *m->place);
    fsi__free(g->context, m->next, (size_t)m->capacity, sizeof *m->next);
    fsi__arena_free(g->context, &m->scratch);
    fsi__free(g->context, m->index, fsi__grid_places(g), sizeof *m->index);
    fsi__free(g->context, m, 1, sizeof *m);
    g->cookie = 0;
    fsi__free(g->context, g, 1, sizeof *g);
}

FSI_API fsi_status fsi_grid_add_field(fsi_grid *g, fsi_grid_place place, fsi_real background, fsi_field **out)
{
    static const char *const f = "fsi_grid_add_field";
    fsi__grid_impl *m;
    fsi_field *field;
    size_t k, cells;
    if (out) *out = NULL;
    if (!fsi__is_grid(g)) return FSI_ERROR_COOKIE;
    if (!out) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, 0, "out is NULL");
    if ((int)place < (int)FSI_CELLS || (int)place > (int)FSI_FACES_X + g->dim - 1)
        return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, (double)(int)place, "place is %d, not one that a %dD grid has", (int)place, g->dim);
    if (!fsi_is_finite((double)background)) return fsi__fail(g->context, FSI_ERROR_NAN, f, -1, (double)background, "background is not finite");
    m = (fsi__grid_impl *)g->impl;
    if (m->field_count == FSI__GRID_FIELDS) return fsi__fail(g->context, FSI_ERROR_LIMIT, f, -1, FSI__GRID_FIELDS, "a grid has no more than %d fields", FSI__GRID_FIELDS);
    field = (fsi_field *)fsi__alloc(g->context, 1, sizeof *field);
    if (field) field->value = (fsi_real *)fsi__alloc(g->context, (size_t)m->capacity, (size_t)g->block_cells * sizeof *field->value);
    if (!field || !field->value) {
        fsi__free(g->context, field, 1, sizeof *field);
        return fsi__fail(g->context, FSI_ERROR_MEMORY, f, -1, 0, "no memory for a field");
    }
    field->cookie = FSI__COOKIE('v', fsi_field);
    field->grid = g;
    field->place = place;
    field->background = background;
    cells = (size_t)g->block_count * (size_t)g->block_cells;
    for (k = 0; k < cells; k++) field->value[k] = background;
    m->fields[m->field_count++] = field;
    *out = field;
    return FSI_OK;
}

FSI_API void fsi_grid_remove_field(fsi_field *field)
{
    fsi__grid_impl *m;
    fsi_grid *g;
    int k;
    if (!fsi__is_field(field)) return;
    g = field->grid;
    m = (fsi__grid_impl *)g->impl;
    for (k = 0; m->fields[k] != field; k++) continue;
    for (m->field_count--; k < m->field_count; k++) m->fields[k] = m->fields[k + 1];
    fsi__free(g->context, field->value, (size_t)m->capacity, (size_t)g->block_cells * sizeof *field->value);
    field->cookie = 0;
    fsi__free(g->context, field, 1, sizeof *field);
}

#define FSI__GRID_MOVE_NS 0.2 /* nanoseconds at least for a number: fsi__parallel_work */

/* The move of one field from the old set of blocks to the new one, in place: what stays closes up to the left, in ascending order;
   then it spreads to its new numbers, in descending order. Both lists ascend, so that neither overwrites what it needs. */
typedef struct fsi__grid_move {
    fsi_grid *grid;
    const unsigned char *wanted;
    int count, kept;      /* blocks from now on; of these, those that there were */
    int moved;            /* that are new or get another number */
} fsi__grid_move;

static void fsi__grid_move_fields(void *arg, int chunk, int begin, int end)
{
    const fsi__grid_move *job = (const fsi__grid_move *)arg;
    const fsi__grid_impl *m = (const fsi__grid_impl *)job->grid->impl;
    const size_t cells = (size_t)job->grid->block_cells, bytes = cells * sizeof(fsi_real);
    int k, b, from;
    size_t c;
    (void)chunk;
    for (k = begin; k < end; k++) {
        fsi_real *v = m->fields[k]->value;
        const fsi_real background = m->fields[k]->background;
        if (m->fields[k]->scratch) continue;
        for (b = from = 0; from < job->grid->block_count; from++) {
            if (!job->wanted[m->place[from]]) continue;
            if (b != from) memcpy(v + (size_t)b * cells, v + (size_t)from * cells, bytes);
            b++;
        }
        for (b = job->count - 1, from = job->kept - 1; b >= 0; b--) {
            if (m->index[m->next[b]] >= 0) {
                if (b != from) memcpy(v + (size_t)b * cells, v + (size_t)from * cells, bytes);
                from--;
            } else
                for (c = 0; c < cells; c++) v[(size_t)b * cells + c] = background;
        }
    }
}

/* Room for `count` blocks in every field and in the lists of places. All of them are asked for anew when there are more
   blocks than ever: so for a quarter more and 4 kB a field, if there are as many places. */
static fsi_status fsi__grid_reserve(fsi_grid *g, int count, const char *function)
{
    fsi__grid_impl *m = (fsi__grid_impl *)g->impl;
    fsi__column columns[FSI__GRID_FIELDS + 2];
    const int most = 2147483647 / g->block_cells, ahead = count / 4 + 4096 / (g->block_cells * (int)sizeof(fsi_real));
    const size_t places = fsi__grid_places(g);
    int k, room;
    fsi_status status;
    if (count > most) return fsi__fail(g->context, FSI_ERROR_LIMIT, function, -1, count, "%d blocks have more than 2^31 - 1 cells", count);
    if (count <= m->capacity) return FSI_OK;
    for (k = 0; k < m->field_count; k++) {
        columns[k].array = (void **)&m->fields[k]->value;
        columns[k].size = (size_t)g->block_cells * sizeof(fsi_real);
    }
    columns[k].array = (void **)&m->place;
    columns[k + 1].array = (void **)&m->next;
    columns[k].size = columns[k + 1].size = sizeof(int);
    room = count < most - ahead ? count + ahead : most;
    if ((size_t)room > places) room = places > (size_t)count ? (int)places : count;
    status = fsi__grow(g->context, columns, k + 2, g->block_count, &m->capacity, room, function);
    g->place = m->place;
    return status;
}

FSI_API fsi_status fsi_grid_set_blocks(fsi_grid *g, const unsigned char *wanted)
{
    static const char *const f = "fsi_grid_set_blocks";
    fsi__grid_impl *m;
    fsi__grid_move job;
    size_t p, places;
    double work;
    int b, *old;
    fsi_status status;
    if (!fsi__is_grid(g)) return FSI_ERROR_COOKIE;
    if (!wanted) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, 0, "wanted is NULL");
    m = (fsi__grid_impl *)g->impl;
    places = fsi__grid_places(g);
    job.grid = g;
    job.wanted = wanted;
    for (p = 0, job.count = job.kept = 0; p < places; p++) {
        job.count += wanted[p] != 0;
        job.kept += wanted[p] && m->index[p] >= 0;
    }
    if (job.count == job.kept && job.kept == g->block_count) return FSI_OK;
    status = fsi__grid_reserve(g, job.count, f);
    if (status != FSI_OK) return status;
    for (p = 0, b = job.moved = 0; p < places; p++)
        if (wanted[p]) {
            job.moved += m->index[p] != b;
            m->next[b++] = (int)p;
        }
    work = FSI__GRID_MOVE_NS * job.moved * g->block_cells * m->field_count;
    fsi__parallel_work(g->context, m->field_count, 1, work, fsi__grid_move_fields, &job);
    for (b = 0; b < g->block_count; b++) m->index[m->place[b]] = -1;
    for (b = 0; b < job.count; b++) m->index[m->next[b]] = b;
    old = m->place;
    m->place = m->next;
    m->next = old;
    g->place = m->place;
    g->block_count = job.count;
    return FSI_OK;
}

FSI_API fsi_real fsi_grid_at(const fsi_field *field, int i, int j, int k)
{
    const fsi_grid *g;
    long long at;
    if (!fsi__is_field(field)) return 0;
    g = field->grid;
    i = fsi__clamp_int(i, fsi_grid_size(g, field->place, 0) - 1);
    j = fsi__clamp_int(j, fsi_grid_size(g, field->place, 1) - 1);
    k = fsi__clamp_int(k, fsi_grid_size(g, field->place, 2) - 1);
    at = fsi_grid_entry(g, i, j, k);
    return at < 0 ? field->background : field->value[at];
}

/* ---- >>gather ------------------------------------------------------------------------------------------------- */

/* Rows of a block, all of one length; source NULL: the background. */
FSI_FN void fsi__gather_rows(const fsi_real *source, fsi_real background, fsi_real *out, int length, int ny, int nz, size_t sy, size_t sz)
{
    int x, y, z;
    for (z = 0; z < nz; z++)
        for (y = 0; y < ny; y++) {
            fsi_real *to = out + (size_t)z * sz + (size_t)y * sy;
            for (x = 0; x < length; x++) to[x] = source ? source[(z * 8 + y) * 8 + x] : background;
        }
}

/* Stencils do not look across blocks: a box of entries is copied out of the blocks, and the loops run there, with constant strides.
   What lies outside of the box of the grid is the nearest value inside; what is in no block is the background.

       out[(z n[1] + y) n[0] + x] = entry lo + (x, y, z);  any lo, 0 <= x < n[0] and so on; in 2D lo[2] = 0, n[2] = 1 */
static void fsi__grid_gather_box(const fsi_field *field, const int *lo, const int *n, fsi_real *out)
{
    const fsi_grid *g = field->grid;
    const size_t sy = (size_t)n[0], sz = (size_t)n[0] * (size_t)n[1];
    int first[3], last[3], at[3], q[3], a, x, y, z, next[3]; /* first to last: inside; they stand in out from `at` to q */
    for (a = 0; a < 3; a++) {
        const int most = fsi_grid_size(g, field->place, a) - 1;
        first[a] = fsi__clamp_int(lo[a], most);
        last[a] = fsi__clamp_int(lo[a] + n[a] - 1, most);
        at[a] = fsi__clamp_int(first[a] - lo[a], n[a] - 1);
        q[a] = at[a] + last[a] - first[a];
    }
    for (z = first[2]; z <= last[2]; z = next[2]) { /* block by block: next is where the next one begins */
        next[2] = fsi__clamp_int((z | 7) + 1, last[2] + 1);
        for (y = first[1]; y <= last[1]; y = next[1]) {
            const int *line = g->index + ((size_t)(z >> 3) * (size_t)g->blocks[1] + (size_t)(y >> 3)) * (size_t)g->blocks[0];
            fsi_real *to = out + (size_t)(z - first[2] + at[2]) * sz + (size_t)(y - first[1] + at[1]) * sy + (size_t)at[0];
            next[1] = fsi__clamp_int((y | 7) + 1, last[1] + 1);
            for (x = first[0]; x <= last[0]; x = next[0]) {
                const int b = line[x >> 3], ny = next[1] - y, nz = next[2] - z;
                const fsi_real *source = b < 0 ? NULL : field->value + (size_t)b * (size_t)g->block_cells + (size_t)(((z & 7) * 8 + (y & 7)) * 8 + (x & 7));
                next[0] = fsi__clamp_int((x | 7) + 1, last[0] + 1);
                if (source && next[0] - x == 8) fsi__gather_rows(source, 0, to, 8, ny, nz, sy, sz); /* lengths that the compiler knows */
                else if (source && next[0] - x == 1) fsi__gather_rows(source, 0, to, 1, ny, nz, sy, sz);
                else if (source && next[0] - x == 2) fsi__gather_rows(source, 0, to, 2, ny, nz, sy, sz);
                else fsi__gather_rows(source, field->background, to, next[0] - x, ny, nz, sy, sz);
                to += next[0] - x;
            }
        }
    }
    if (at[0] > 0 || q[0] < n[0] - 1) for (z = at[2]; z <= q[2]; z++) for (y = at[1]; y <= q[1]; y++) {
        fsi_real *to = out + (size_t)z * sz + (size_t)y * sy;
        for (x = 0; x < at[0]; x++) to[x] = to[at[0]];
        for (x = q[0] + 1; x < n[0]; x++) to[x] = to[q[0]];
    }
    if (at[1] > 0 || q[1] < n[1] - 1) for (z = at[2]; z <= q[2]; z++) {
        fsi_real *to = out + (size_t)z * sz;
        for (y = 0; y < n[1]; y++) if (y < at[1] || y > q[1]) memcpy(to + (size_t)y * sy, to + (size_t)(y < at[1] ? at[1] : q[1]) * sy, sy * sizeof *to);
    }
    for (z = 0; z < n[2]; z++) if (z < at[2] || z > q[2]) memcpy(out + (size_t)z * sz, out + (size_t)(z < at[2] ? at[2] : q[2]) * sz, sz * sizeof *out);
}

FSI_FN int fsi__gather_size(const fsi_grid *g, int h) { return (8 + 2 * h) * (8 + 2 * h) * (g->dim == 3 ? 8 + 2 * h : 1); }

/* A block, whose first cell is `corner` and which need not exist, with h more entries on each side (1 to 8):
       out[((z + h) * s + y + h) * s + x + h], s = 8 + 2h, -h <= x, y, z < 8 + h; in 2D one layer: out[(y + h) * s + x + h] */
static void fsi__grid_gather_at(const fsi_field *field, const int *corner, int h, fsi_real *out)
{
    int lo[3], n[3], a;
    for (a = 0; a < 3; a++) {
        const int in = a < field->grid->dim;
        n[a] = in ? 8 + 2 * h : 1;
        lo[a] = corner[a] - (in ? h : 0);
    }
    fsi__grid_gather_box(field, lo, n, out);
}

static void fsi__grid_gather(const fsi_field *field, int b, int h, fsi_real *out)
{
    int corner[3];
    fsi_grid_corner(field->grid, b, corner);
    fsi__grid_gather_at(field, corner, h, out);
}

/* `count` entries along each axis from lo: in place where one block holds them, else in `room` (count^dim). */
static const fsi_real *fsi__grid_patch(const fsi_field *field, const int *lo, int count, fsi_real *room, int *sy, int *sz)
{
    const fsi_grid *g = field->grid;
    int n[3], a, inside = 1;
    for (a = 0; a < 3; a++) {
        n[a] = a < g->dim ? count : 1;
        inside &= lo[a] >= 0 && lo[a] + n[a] <= fsi_grid_size(g, field->place, a) && (lo[a] & 7) + n[a] <= 8;
    }
    if (inside) {
        const long long at = fsi_grid_entry(g, lo[0], lo[1], lo[2]);
        *sy = 8;
        *sz = 64;
        if (at >= 0) return field->value + at;
    }
    fsi__grid_gather_box(field, lo, n, room);
    *sy = count;
    *sz = count * count;
    return room;
}

/* ---- >>interpolation ------------------------------------------------------------------------------------------ */

/* x within lo to hi; NaN: lo. */
FSI_FN fsi_real fsi__into(fsi_real x, fsi_real lo, fsi_real hi)
{
    const fsi_real t = x > lo ? x : lo;
    return t < hi ? t : hi;
}

/* The kernels: v is the first entry of a stencil in memory with strides 1, sy, sz. Two entries side by side go the same way until x is the
   last axis left: that fills the lanes of a vector. */
FSI_FN fsi_real fsi__interpolate_linear(const fsi_real *v, int sy, int sz, fsi_real fx, fsi_real fy, fsi_real fz, int dim)
{
    fsi_real r[2];
    int a;
    for (a = 0; a < 2; a++) r[a] = v[a] + fy * (v[sy + a] - v[a]);
    for (a = 0; a < 2 && dim == 3; a++) r[a] += fz * (v[sz + a] + fy * (v[sz + sy + a] - v[sz + a]) - r[a]);
    return r[0] + fx * (r[1] - r[0]);
}

/* sum w[0][x] w[1][y] w[2][z] v(x, y, z), m entries along each axis. */
FSI_FN fsi_real fsi__interpolate_tensor(const fsi_real *v, int sy, int sz, fsi_real (*w)[6], int m, int dim)
{
    fsi_real sum[6] = { 0, 0, 0, 0, 0, 0 }, line[6], r = 0;
    int x, y, z;
    for (z = 0; z < (dim == 3 ? m : 1); z++) {
        const fsi_real *p = v + z * sz;
        for (x = 0; x < m; x++) line[x] = w[1][0] * p[x];
        for (y = 1; y < m; y++)
            for (x = 0; x < m; x++) line[x] += w[1][y] * p[y * sy + x];
        for (x = 0; x < m; x++) sum[x] = dim == 3 ? sum[x] + w[2][z] * line[x] : line[x];
    }
    for (x = 0; x < m; x++) r += w[0][x] * sum[x];
    return r;
}

/* r clamped to the range of m entries along each axis, widened by `slack` of it on both sides. */
FSI_FN fsi_real fsi__limit(fsi_real r, const fsi_real *v, int sy, int sz, int m, fsi_real slack, int dim)
{
    fsi_real least[4], most[4];
    int x, y, z;
    for (x = 0; x < m; x++) least[x] = most[x] = v[x];
    for (z = 0; z < (dim == 3 ? m : 1); z++)
        for (y = 0; y < m; y++)
            for (x = 0; x < m; x++) {
                const fsi_real t = v[z * sz + y * sy + x];
                least[x] = t < least[x] ? t : least[x];
                most[x] = t > most[x] ? t : most[x];
            }
    for (x = 1; x < m; x++) {
        least[0] = least[x] < least[0] ? least[x] : least[0];
        most[0] = most[x] > most[0] ? most[x] : most[0];
    }
    slack *= most[0] - least[0];
    return fsi__into(r, least[0] - slack, most[0] + slack);
}

/* Catmull and Rom 1974: the cubic through entries 0 and 1 with slopes (v1 - v-1)/2, (v2 - v0)/2. */
FSI_FN void fsi__weights_cubic(fsi_real f, fsi_real *w)
{
    w[0] = f * (f * (2 - f) - 1) / 2;
    w[1] = f * f * (3 * f - 5) / 2 + 1;
    w[2] = f * (f * (4 - 3 * f) + 1) / 2;
    w[3] = f * f * (f - 1) / 2;
}

/* Lagrange's polynomial through the entries -2 .. 3. */
FSI_FN void fsi__weights_quintic(fsi_real f, fsi_real *w)
{
    const fsi_real a = f + 2, b = f + 1, d = f - 1, e = f - 2, h = f - 3, part = (fsi_real)(1.0 / 120), ab = a * b * part, fd = f * d, eh = e * h;
    w[0] = -b * part * fd * eh;
    w[1] = 5 * part * a * fd * eh;
    w[2] = -10 * ab * d * eh;
    w[3] = 10 * ab * f * eh;
    w[4] = -5 * ab * fd * h;
    w[5] = ab * fd * e;
}

/* A scheme's value at fractions f past the entry v. Its stencil: entries -reach .. reach + 1. */
FSI_FN int fsi__scheme_reach(int scheme) { return scheme == FSI_ADVECT_LINEAR ? 0 : scheme == FSI_ADVECT_CUBIC ? 1 : 2; }
FSI_FN fsi_real fsi__interpolate(const fsi_real *v, int sy, int sz, fsi_real fx, fsi_real fy, fsi_real fz, int scheme, int dim)
{
    const int reach = fsi__scheme_reach(scheme);
    const fsi_real *first = v - reach - reach * sy - (dim == 3 ? reach * sz : 0), f[3] = { fx, fy, fz };
    fsi_real w[3][6];
    int a;
    if (scheme == FSI_ADVECT_LINEAR) return fsi__interpolate_linear(v, sy, sz, fx, fy, fz, dim);
    for (a = 0; a < dim; a++)
        if (scheme == FSI_ADVECT_CUBIC) fsi__weights_cubic(f[a], w[a]);
        else fsi__weights_quintic(f[a], w[a]);
    if (scheme == FSI_ADVECT_CUBIC) return fsi__limit(fsi__interpolate_tensor(first, sy, sz, w, 4, dim), v, sy, sz, 2, 0, dim);
    return fsi__limit(fsi__interpolate_tensor(first, sy, sz, w, 6, dim), v - 1 - sy - (dim == 3 ? sz : 0), sy, sz, 4, (fsi_real)0.25, dim);
}

/* Distance of the entries of `place` from the lower corner of their cell along an axis, in cells. */
FSI_FN fsi_real fsi__grid_offset(fsi_grid_place place, int axis) { return (int)place == axis + 1 ? 0 : (fsi_real)0.5; }

/* ---- >>sampling implementation -------------------------------------------------------------------------------- */

/* Value of a scheme `c` cells away from the corner of cell (corner), which keeps the digits of c in float. */
static fsi_real fsi__grid_sample(const fsi_field *f, const int *corner, const fsi_real *c, int scheme)
{
    const int dim = f->grid->dim, reach = fsi__scheme_reach(scheme);
    fsi_real room[216], t[3] = { 0, 0, 0 };
    const fsi_real *v;
    int lo[3] = { 0, 0, 0 }, a, sy, sz;
    for (a = 0; a < dim; a++) {
        const fsi_real first = (fsi_real)-corner[a], last = first + (fsi_real)(fsi_grid_size(f->grid, f->place, a) - 1);
        const fsi_real q = fsi__into(c[a] - fsi__grid_offset(f->place, a), first, last), whole = fsi_floor(q);
        t[a] = q - whole;
        lo[a] = (int)whole + corner[a] - reach;
    }
    v = fsi__grid_patch(f, lo, 2 * reach + 2, room, &sy, &sz);
    v += reach + reach * sy + (dim == 3 ? reach * sz : 0);
    if (dim == 2) return fsi__interpolate(v, sy, sz, t[0], t[1], 0, scheme, 2);
    return fsi__interpolate(v, sy, sz, t[0], t[1], t[2], scheme, 3);
}

/* x in cells from the origin, within the box. */
static void fsi__grid_cells(const fsi_grid *g, fsi_vec3 x, fsi_real *c)
{
    c[0] = fsi__into((x.x - g->origin.x) / g->dx, 0, (fsi_real)g->n[0]);
    c[1] = fsi__into((x.y - g->origin.y) / g->dx, 0, (fsi_real)g->n[1]);
    c[2] = g->dim == 3 ? fsi__into((x.z - g->origin.z) / g->dx, 0, (fsi_real)g->n[2]) : 0;
}

static fsi_real fsi__grid_sample_at(const fsi_field *f, fsi_vec3 x, int scheme)
{
    const int corner[3] = { 0, 0, 0 };
    fsi_real c[3];
    if (!fsi__is_field(f)) return 0;
    fsi__grid_cells(f->grid, x, c);
    return fsi__grid_sample(f, corner, c, scheme);
}

FSI_API fsi_real fsi_grid_sample_linear(const fsi_field *f, fsi_vec3 x) { return fsi__grid_sample_at(f, x, FSI_ADVECT_LINEAR); }
FSI_API fsi_real fsi_grid_sample_cubic(const fsi_field *f, fsi_vec3 x) { return fsi__grid_sample_at(f, x, FSI_ADVECT_CUBIC); }

/* b = nearest entry, f = q - b:  w = { (1/2 - f)^2/2, 3/4 - f^2, (1/2 + f)^2/2 },  w' = { f - 1/2, -2f, f + 1/2 }/dx. Beyond the
   outermost entry its value repeats: there the spline flattens, and 3/2 entries farther out it is constant. */
FSI_API fsi_real fsi_grid_sample_spline(const fsi_field *f, fsi_vec3 x, fsi_vec3 *gradient)
{
    const fsi_real half = (fsi_real)0.5;
    fsi_real room[27], w[4][3][6] = { { { 0 } } }, p[3]; /* w[0]: of the value; w[1 + a]: of its derivative along a */
    const fsi_real *v;
    int lo[3] = { 0, 0, 0 }, a, k, dim, sy, sz;
    const fsi_grid *g;
    if (gradient) *gradient = fsi_v3(0, 0, 0);
    if (!fsi__is_field(f)) return 0;
    g = f->grid;
    dim = g->dim;
    p[0] = (x.x - g->origin.x) / g->dx;
    p[1] = (x.y - g->origin.y) / g->dx;
    p[2] = (x.z - g->origin.z) / g->dx;
    for (a = 0; a < dim; a++) {
        const fsi_real q = fsi__into(p[a] - fsi__grid_offset(f->place, a), (fsi_real)-1.5, (fsi_real)fsi_grid_size(g, f->place, a) + half);
        const fsi_real whole = fsi_floor(q + half), t = q - whole;
        const fsi_real value[3] = { (half - t) * (half - t) / 2, (fsi_real)0.75 - t * t, (half + t) * (half + t) / 2 };
        const fsi_real slope[3] = { (t - half) / g->dx, -2 * t / g->dx, (t + half) / g->dx };
        lo[a] = (int)whole - 1;
        for (k = 0; k < 4; k++) memcpy(w[k][a], k == 1 + a ? slope : value, sizeof value);
    }
    v = fsi__grid_patch(f, lo, 3, room, &sy, &sz);
    if (gradient) {
        for (a = 0; a < dim; a++) p[a] = dim == 2 ? fsi__interpolate_tensor(v, sy, sz, w[1 + a], 3, 2) : fsi__interpolate_tensor(v, sy, sz, w[1 + a], 3, 3);
        *gradient = fsi_v3(p[0], p[1], dim == 3 ? p[2] : 0);
    }
    return dim == 2 ? fsi__interpolate_tensor(v, sy, sz, w[0], 3, 2) : fsi__interpolate_tensor(v, sy, sz, w[0], 3, 3);
}

/* The velocity's grid; NULL when u is no velocity. */
static fsi_grid *fsi__velocity_grid(fsi_field *const *u)
{
    fsi_grid *g = u && fsi__is_field(u[0]) ? u[0]->grid : NULL;
    int a;
    for (a = 0; g && a < g->dim; a++)
        if (!fsi__is_field(u[a]) || u[a]->grid != g || (int)u[a]->place != (int)FSI_FACES_X + a) return NULL;
    return g;
}

FSI_API fsi_vec3 fsi_grid_sample_velocity(fsi_field *const u[3], fsi_vec3 x)
{
    if (!fsi__velocity_grid(u)) return fsi_v3(0, 0, 0);
    return fsi_v3(fsi_grid_sample_linear(u[0], x), fsi_grid_sample_linear(u[1], x), u[0]->grid->dim == 3 ? fsi_grid_sample_linear(u[2], x) : 0);
}

/* ---- >>trace -------------------------------------------------------------------------------------------------- */

/* dc/dt = u(c) over a time that moves by `scale` u cells:
       midpoint  c + scale k2,                      k2 = u(c + scale k1/2)
       Ralston   c + scale (2 k1 + 3 k2 + 4 k3)/9,  k3 = u(c + 3/4 scale k2) */
static void fsi__trace_velocity(fsi_field *const *u, const int *corner, const fsi_real *c, fsi_real *k)
{
    int a;
    for (a = 0; a < u[0]->grid->dim; a++) k[a] = fsi__grid_sample(u[a], corner, c, FSI_ADVECT_LINEAR);
}

static void fsi__trace_move(const fsi_grid *g, const int *corner, const fsi_real *c, fsi_real part, const fsi_real *k, fsi_real *out)
{
    int a;
    for (a = 0; a < g->dim; a++) out[a] = fsi__into(c[a] + part * k[a], (fsi_real)-corner[a], (fsi_real)(g->n[a] - corner[a]));
}

static void fsi__trace(fsi_field *const *u, const int *corner, fsi_real *c, fsi_real scale, int order)
{
    const fsi_grid *g = u[0]->grid;
    fsi_real k1[3], k2[3], k3[3], at[3] = { 0, 0, 0 };
    int a;
    fsi__trace_velocity(u, corner, c, k1);
    fsi__trace_move(g, corner, c, scale / 2, k1, at);
    fsi__trace_velocity(u, corner, at, k2);
    if (order == 3) {
        fsi__trace_move(g, corner, c, (fsi_real)0.75 * scale, k2, at);
        fsi__trace_velocity(u, corner, at, k3);
        for (a = 0; a < g->dim; a++) k2[a] = (2 * k1[a] + 3 * k2[a] + 4 * k3[a]) / 9;
    }
    fsi__trace_move(g, corner, c, scale, k2, c);
}

FSI_API fsi_vec3 fsi_grid_trace(fsi_field *const u[3], fsi_vec3 x, fsi_real dt, int order)
{
    const fsi_grid *g = fsi__velocity_grid(u);
    const int corner[3] = { 0, 0, 0 };
    fsi_real c[3];
    if (!g || !fsi_is_finite((double)dt)) return x;
    fsi__grid_cells(g, x, c);
    fsi__trace(u, corner, c, dt / g->dx, order == 3 ? 3 : 2);
    return fsi_v3(g->origin.x + c[0] * g->dx, g->origin.y + c[1] * g->dx, g->dim == 3 ? g->origin.z + c[2] * g->dx : x.z);
}

/* ---- >>advection implementation --------------------------------------------------------------------------------

   A block at a time. How far its traces go is known beforehand, from the range of its own velocity and a bit more: what they can meet is gathered
   into boxes, and batches of 64 entries go through the stages side by side, in cells from the corner of the block.

         u, where the stages are evaluated:        the field, where the traces end:       The few that leave a box, where the
           +----------+                             +---------+                           velocity next door is higher or the way
           | +-----+  |                             |     o   |                           is long, are done again one by one with
           | |block|  |    flow  <-----             | +---\-+ |                           what may look anywhere.
           | +-----+  |                             +-|    \|-+
           +----------+                               |block|                                                                  */

enum { FSI__ADVECT_U = 2048, FSI__ADVECT_FROM = 4096, FSI__GRID_CHUNKS = 256 }; /* entries that the boxes have room for; tasks at most */

typedef struct fsi__reach { int lo[3], n[3]; } fsi__reach; /* a box of entries, counted from the corner of the block */

typedef struct fsi__advect {
    int count;                       /* fields that go the same way */
    const fsi_field *from[3];
    fsi_field *to[3];
    const unsigned char *where[3];
    fsi_field *const *u;
    fsi_real scale;                  /* cells per speed, back in time: -dt/dx */
    int scheme, order;
    long long bad[FSI__GRID_CHUNKS]; /* by chunk: the first block with a number that is not finite, -1 none */
} fsi__advect;

typedef struct fsi__advect_block {
    const fsi_field *field;          /* the one under way */
    int b, corner[3];
    fsi_real last[3];                /* upper corner of the box of the grid, its lower one is -corner */
    fsi__reach u_reach, from_reach;
    fsi_real u[3][FSI__ADVECT_U], from[FSI__ADVECT_FROM];
} fsi__advect_block;

/* Blocks a task, so that there are at most FSI__GRID_CHUNKS tasks. */
static int fsi__grid_grain(const fsi_grid *g) { return g->block_count / FSI__GRID_CHUNKS + 1; }

/* Runs a loop over blocks: at least `work` nanoseconds for one of 8^3 cells (fsi__parallel_work). */
static void fsi__grid_light(const fsi_grid *g, int grain, double work, fsi__range_fn *fn, void *arg)
{
    fsi__parallel_work(g->context, g->block_count, grain, work * g->block_count / (g->dim == 2 ? 8 : 1), fn, arg);
}

/* Range of the numbers of a block; 0 when one is not finite. */
static int fsi__block_range(const fsi_real *v, int count, fsi_real *least, fsi_real *most)
{
    fsi_real lo[8], hi[8], zero[8] = { 0 };
    int k, t;
    for (t = 0; t < 8; t++) lo[t] = hi[t] = v[t];
    for (k = 0; k < count; k += 8)
        for (t = 0; t < 8; t++) {
            const fsi_real x = v[k + t];
            lo[t] = x < lo[t] ? x : lo[t];
            hi[t] = x > hi[t] ? x : hi[t];
            zero[t] += x * 0; /* NaN for what is not finite */
        }
    for (t = 1; t < 8; t++) {
        lo[0] = fsi_min(lo[0], lo[t]);
        hi[0] = fsi_max(hi[0], hi[t]);
        zero[0] += zero[t];
    }
    *least = lo[0];
    *most = hi[0];
    return fsi_is_finite((double)zero[0]);
}

/* The box of entries within `before` and `behind` of all places that are `shift` or less beside c, where c is what entries of the block reach on a
   way of least to most cells along each axis. It is cut where there is no room. */
static void fsi__reach_of(fsi__reach *r, const fsi_real *least, const fsi_real *most, fsi_real shift, int before, int behind, int room, int dim)
{
    int a;
    r->lo[2] = 0;
    r->n[2] = 1;
    for (a = 0; a < dim; a++) {
        r->lo[a] = (int)fsi_floor(fsi__into(least[a], -8, 8) - shift) - before;
        r->n[a] = (int)fsi_floor(fsi__into(most[a], -8, 8) + shift) + 8 + behind - r->lo[a];
    }
    while (r->n[0] * r->n[1] * r->n[2] > room) { /* the longest axis, on the side that reaches out farther */
        a = r->n[0] >= r->n[1] && r->n[0] >= r->n[2] ? 0 : (r->n[1] >= r->n[2] ? 1 : 2);
        if (-r->lo[a] >= r->lo[a] + r->n[a] - 8) r->lo[a]++;
        r->n[a]--;
    }
}

static void fsi__advect_gather(const fsi_field *field, const fsi__advect_block *s, const fsi__reach *r, fsi_real *out)
{
    int lo[3], a;
    for (a = 0; a < 3; a++) lo[a] = s->corner[a] + r->lo[a];
    fsi__grid_gather_box(field, lo, r->n, out);
}

/* Velocity where the entries `at` of a row stand, without interpolation: a component on its own faces is itself, elsewhere the average of
   those around, which are one step along its axis and one back along that of the row's own faces. */
FSI_FN void fsi__advect_start(const fsi__advect_block *s, int place, int at, fsi_real (*k)[64], int begin, int dim)
{
    const int stride[3] = { 1, s->u_reach.n[0], s->u_reach.n[0] * s->u_reach.n[1] };
    int a, t;
    for (a = 0; a < dim; a++) {
        const int own = place == FSI_FACES_X + a, along = own ? 0 : stride[a], back = own || place == FSI_CELLS ? 0 : -stride[place - FSI_FACES_X];
        const fsi_real *v = s->u[a] + at;
        for (t = 0; t < 8; t++) k[a][begin + t] = (fsi_real)0.25 * ((v[t] + v[t + along]) + (v[t + back] + v[t + along + back]));
    }
}

/* Velocity at n places c. lost: above 0 for those outside of the box. */
FSI_FN void fsi__advect_velocity(const fsi__advect_block *s, fsi_real (*c)[64], fsi_real (*k)[64], fsi_real *lost, int n, int dim)
{
    const int sy = s->u_reach.n[0], sz = sy * s->u_reach.n[1];
    const fsi_real half = (fsi_real)0.5;
    fsi_real fw[3][64], fh[3][64], w[3][64], h[3][64]; /* fractions and whole parts of c and, h, of c - 1/2 */
    int o[3][64], a, t;
    for (a = 0; a < dim; a++) {
        const fsi_real lo = (fsi_real)s->u_reach.lo[a], most = (fsi_real)s->u_reach.n[a] - 1 - (fsi_real)0.001;
        for (t = 0; t < n; t++) {
            const fsi_real p = c[a][t] - lo, q = fsi__into(p, half, most);
            lost[t] += fsi_abs(p - q);
            w[a][t] = (fsi_real)(int)q;
            fw[a][t] = q - w[a][t];
            h[a][t] = (fsi_real)(int)(q - half);
            fh[a][t] = q - half - h[a][t];
        }
    }
    for (t = 0; t < n; t++) {
        const fsi_real zw = dim == 3 ? w[2][t] : 0, zh = dim == 3 ? h[2][t] : 0;
        o[0][t] = (int)(w[0][t] + (fsi_real)sy * h[1][t] + (fsi_real)sz * zh);
        o[1][t] = (int)(h[0][t] + (fsi_real)sy * w[1][t] + (fsi_real)sz * zh);
        o[2][t] = (int)(h[0][t] + (fsi_real)sy * h[1][t] + (fsi_real)sz * zw);
    }
    for (t = 0; t < n; t++) {
        const fsi_real zh = dim == 3 ? fh[2][t] : 0;
        k[0][t] = fsi__interpolate_linear(s->u[0] + o[0][t], sy, sz, fw[0][t], fh[1][t], zh, dim);
        k[1][t] = fsi__interpolate_linear(s->u[1] + o[1][t], sy, sz, fh[0][t], fw[1][t], zh, dim);
        if (dim == 3) k[2][t] = fsi__interpolate_linear(s->u[2] + o[2][t], sy, sz, fh[0][t], fh[1][t], fw[2][t], 3);
    }
}

/* The field at n places c. */
FSI_FN void fsi__advect_sample(const fsi__advect_block *s, fsi_real (*c)[64], fsi_real *out, fsi_real *lost, int n, int scheme, int dim)
{
    const int sy = s->from_reach.n[0], sz = sy * s->from_reach.n[1], reach = fsi__scheme_reach(scheme);
    fsi_real f[3][64], w[3][64];
    int a, t;
    for (a = 0; a < dim; a++) {
        const fsi_real offset = fsi__grid_offset(s->field->place, a), lo = (fsi_real)s->from_reach.lo[a], least = (fsi_real)reach;
        const fsi_real most = (fsi_real)(s->from_reach.n[a] - 1 - reach) - (fsi_real)0.001, first = (fsi_real)-s->corner[a];
        const fsi_real last = first + (fsi_real)(fsi_grid_size(s->field->grid, s->field->place, a) - 1);
        for (t = 0; t < n; t++) {
            const fsi_real p = fsi__into(c[a][t] - offset, first, last) - lo, q = fsi__into(p, least, most);
            lost[t] += fsi_abs(p - q);
            w[a][t] = (fsi_real)(int)q;
            f[a][t] = q - w[a][t];
        }
    }
    for (t = 0; t < n; t++) {
        const int at = (int)(w[0][t] + (fsi_real)sy * w[1][t] + (dim == 3 ? (fsi_real)sz * w[2][t] : 0));
        out[t] = fsi__interpolate(s->from + at, sy, sz, f[0][t], f[1][t], dim == 3 ? f[2][t] : 0, scheme, dim);
    }
}

/* c + part k, within the box of the grid. */
FSI_FN void fsi__advect_move(const fsi__advect_block *s, fsi_real (*c)[64], fsi_real part, fsi_real (*k)[64], fsi_real (*out)[64], int n, int dim)
{
    int a, t;
    for (a = 0; a < dim; a++) {
        const fsi_real first = (fsi_real)-s->corner[a], last = s->last[a];
        for (t = 0; t < n; t++) out[a][t] = fsi__into(c[a][t] + part * k[a][t], first, last);
    }
}

/* `rows` of a block, up to 8: their entries one row after the other. */
FSI__HOST_FN void fsi__advect_rows(const fsi__advect *job, const fsi__advect_block *s, const int *row, int rows, fsi_real *out, int dim)
{
    const fsi_grid_place place = s->field->place;
    const int sy = s->u_reach.n[0], sz = sy * s->u_reach.n[1], start = -(s->u_reach.lo[0] + s->u_reach.lo[1] * sy + s->u_reach.lo[2] * sz), n = 8 * rows;
    fsi_real c[3][64], at[3][64], k1[3][64], k2[3][64], k3[3][64], lost[64] = { 0 };
    int a, t, r;
    for (r = 0; r < rows; r++) {
        for (t = 8 * r; t < 8 * r + 8; t++) {
            c[0][t] = (fsi_real)(t & 7) + fsi__grid_offset(place, 0);
            c[1][t] = (fsi_real)(row[r] & 7) + fsi__grid_offset(place, 1);
            c[2][t] = (fsi_real)(row[r] >> 3) + fsi__grid_offset(place, 2);
        }
        fsi__advect_start(s, (int)place, start + (row[r] & 7) * sy + (row[r] >> 3) * sz, k1, 8 * r, dim);
    }
    fsi__advect_move(s, c, job->scale / 2, k1, at, n, dim);
    fsi__advect_velocity(s, at, k2, lost, n, dim);
    if (job->order == 3) {
        fsi__advect_move(s, c, (fsi_real)0.75 * job->scale, k2, at, n, dim);
        fsi__advect_velocity(s, at, k3, lost, n, dim);
        for (a = 0; a < dim; a++)
            for (t = 0; t < n; t++) k2[a][t] = (2 * k1[a][t] + 3 * k2[a][t] + 4 * k3[a][t]) / 9;
    }
    fsi__advect_move(s, c, job->scale, k2, at, n, dim);
    if (job->scheme == FSI_ADVECT_LINEAR) fsi__advect_sample(s, at, out, lost, n, FSI_ADVECT_LINEAR, dim);
    else if (job->scheme == FSI_ADVECT_CUBIC) fsi__advect_sample(s, at, out, lost, n, FSI_ADVECT_CUBIC, dim);
    else fsi__advect_sample(s, at, out, lost, n, FSI_ADVECT_QUINTIC, dim);
    for (t = 0; t < n; t++)
        if (lost[t] > 0) {
            fsi_real p[3];
            for (a = 0; a < 3; a++) p[a] = c[a][t];
            fsi__trace(job->u, s->corner, p, job->scale, job->order);
            out[t] = fsi__grid_sample(s->field, s->corner, p, job->scheme);
        }
}

/* With what the compiler can know of them. */
static void fsi__advect_rows_2(const fsi__advect *job, const fsi__advect_block *s, const int *row, int rows, fsi_real *out)
{
    fsi__advect_rows(job, s, row, rows, out, 2);
}
static void fsi__advect_rows_3(const fsi__advect *job, const fsi__advect_block *s, const int *row, int rows, fsi_real *out)
{
    fsi__advect_rows(job, s, row, rows, out, 3);
}

/* Finds what the block's traces reach and gathers it; 0 when a number of the block is not finite. */
static int fsi__advect_begin(const fsi__advect *job, fsi__advect_block *s)
{
    const fsi_grid *g = job->u[0]->grid;
    const size_t first = (size_t)s->b * (size_t)g->block_cells;
    const int reach = fsi__scheme_reach(job->scheme);
    const fsi_real part = job->order == 3 ? (fsi_real)0.75 : (fsi_real)0.5;
    fsi_real least[3] = { 0, 0, 0 }, most[3] = { 0, 0, 0 }, x, y;
    int a, k, finite = 1;
    for (k = 0; k < job->count; k++) finite &= fsi__block_range(job->from[k]->value + first, g->block_cells, &x, &y);
    for (a = 0; a < g->dim; a++) {
        finite &= fsi__block_range(job->u[a]->value + first, g->block_cells, &x, &y);
        least[a] = fsi_min(job->scale * x, job->scale * y);
        most[a] = fsi_max(job->scale * x, job->scale * y);
        x = (most[a] - least[a]) / 8 + (fsi_real)0.0625; /* next door it is a bit different */
        least[a] -= x;
        most[a] += x;
        s->last[a] = (fsi_real)(g->n[a] - s->corner[a]);
    }
    fsi__reach_of(&s->from_reach, least, most, 0, reach, reach + 1, FSI__ADVECT_FROM, g->dim);
    for (a = 0; a < 3; a++) {
        least[a] = fsi_min(part * least[a], 0);
        most[a] = fsi_max(part * most[a], 0);
    }
    fsi__reach_of(&s->u_reach, least, most, (fsi_real)0.5, 0, 1, FSI__ADVECT_U, g->dim);
    return finite;
}

/* Bit t: entry t of a row is within the box of the grid and wanted. */
static int fsi__advect_wanted(const fsi__advect_block *s, int y, int z, const unsigned char *where)
{
    const fsi_grid *g = s->field->grid;
    const fsi_grid_place place = s->field->place;
    int t, bits = 0;
    if (s->corner[1] + y >= fsi_grid_size(g, place, 1) || s->corner[2] + z >= fsi_grid_size(g, place, 2)) return 0;
    for (t = 0; t < 8 && s->corner[0] + t < fsi_grid_size(g, place, 0); t++) bits |= (!where || where[t]) << t;
    return bits;
}

/* One field in a block. ready: whether u has been gathered. */
static void fsi__advect_field(const fsi__advect *job, fsi__advect_block *s, int field, int *ready)
{
    const fsi_grid *g = job->u[0]->grid;
    const size_t first = (size_t)s->b * (size_t)g->block_cells;
    const unsigned char *where = job->where[field] ? job->where[field] + first : NULL;
    fsi_real out[64], *to = job->to[field]->value + first;
    int wanted[64], row[8], rows, r, k, t, all = 0;
    s->field = job->from[field];
    memcpy(to, s->field->value + first, (size_t)g->block_cells * sizeof *to);
    for (r = 0; r < g->block_cells / 8; r++) all |= wanted[r] = fsi__advect_wanted(s, r & 7, r >> 3, where ? where + r * 8 : NULL);
    if (!all) return;
    for (k = 0; k < g->dim && !*ready; k++) fsi__advect_gather(job->u[k], s, &s->u_reach, s->u[k]);
    *ready = 1;
    fsi__advect_gather(s->field, s, &s->from_reach, s->from);
    for (r = 0; r < g->block_cells / 8;) {
        for (rows = 0; rows < 8 && r < g->block_cells / 8; r++)
            if (wanted[r]) row[rows++] = r;
        if (rows) (g->dim == 2 ? fsi__advect_rows_2 : fsi__advect_rows_3)(job, s, row, rows, out);
        for (k = 0; k < rows; k++)
            for (t = 0; t < 8; t++)
                if (wanted[row[k]] >> t & 1) to[row[k] * 8 + t] = out[k * 8 + t];
    }
}

static void fsi__advect_blocks(void *arg, int chunk, int begin, int end)
{
    fsi__advect *job = (fsi__advect *)arg;
    fsi__advect_block s;
    int k, ready;
    job->bad[chunk] = -1;
    for (s.b = begin; s.b < end; s.b++) {
        fsi_grid_corner(job->u[0]->grid, s.b, s.corner);
        if (!fsi__advect_begin(job, &s)) {
            job->bad[chunk] = s.b;
            return;
        }
        for (k = ready = 0; k < job->count; k++) fsi__advect_field(job, &s, k, &ready);
    }
}

/* Names the first entry of block b that is not finite. */
static fsi_status fsi__advect_refuse(const fsi__advect *job, long long b, const char *function)
{
    const fsi_grid *g = job->u[0]->grid;
    long long e;
    int k;
    for (k = 0; k < g->dim + job->count; k++) {
        const fsi_field *f = k < g->dim ? job->u[k] : job->from[k - g->dim];
        for (e = b * g->block_cells; e < (b + 1) * g->block_cells; e++)
            if (!fsi_is_finite((double)f->value[e]))
                return fsi__fail(g->context, FSI_ERROR_NAN, function, e, (double)f->value[e], "%s[%d] is not finite at entry %lld", k < g->dim ? "u" : "from",
                                 k < g->dim ? k : k - g->dim, e);
    }
    return FSI_ERROR_NAN;
}

static fsi_status fsi__advect_check(const fsi__advect *job, fsi_real dt, const char *f)
{
    fsi_context *context = job->to[0]->grid->context;
    int a, k;
    if (fsi__velocity_grid(job->u) != job->to[0]->grid) return fsi__fail(context, FSI_ERROR_ARGUMENT, f, -1, 0, "u is no velocity on the grid of to");
    for (k = 0; k < job->count; k++) {
        if (job->from[k]->grid != job->to[0]->grid || job->to[k]->grid != job->to[0]->grid || job->from[k]->place != job->to[k]->place)
            return fsi__fail(context, FSI_ERROR_ARGUMENT, f, k, 0, "from[%d] and to[%d] are not at one place of one grid", k, k);
        for (a = 0; a < job->to[0]->grid->dim; a++)
            if (job->to[k] == job->u[a]) return fsi__fail(context, FSI_ERROR_ARGUMENT, f, k, 0, "to[%d] is u[%d]", k, a);
        for (a = 0; a < job->count; a++)
            if (job->to[k] == job->from[a] || (a < k && job->to[k] == job->to[a]))
                return fsi__fail(context, FSI_ERROR_ARGUMENT, f, k, 0, "to[%d] is from[%d] or another of to", k, a);
    }
    if (job->scheme < (int)FSI_ADVECT_LINEAR || job->scheme > (int)FSI_ADVECT_QUINTIC)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, f, -1, job->scheme, "scheme is %d", job->scheme);
    if (job->order != 2 && job->order != 3) return fsi__fail(context, FSI_ERROR_ARGUMENT, f, -1, job->order, "order is %d, not 2 or 3", job->order);
    if (!fsi_is_finite((double)dt)) return fsi__fail(context, FSI_ERROR_NAN, f, -1, (double)dt, "dt is not finite");
    return FSI_OK;
}

static fsi_status fsi__advect_run(fsi__advect *job, fsi_field *const *u, fsi_real dt, fsi_grid_scheme scheme, int order, const char *f)
{
    fsi_grid *g = job->to[0]->grid;
    fsi_status status;
    int c;
    job->u = u;
    job->scheme = (int)scheme;
    job->order = order;
    job->scale = -dt / g->dx;
    status = fsi__advect_check(job, dt, f);
    if (status != FSI_OK) return status;
    fsi__grid_light(g, fsi__grid_grain(g), 4000, fsi__advect_blocks, job);
    for (c = 0; c < fsi__chunks(g->block_count, fsi__grid_grain(g)); c++)
        if (job->bad[c] >= 0) return fsi__advect_refuse(job, job->bad[c], f);
    return FSI_OK;
}

FSI_API fsi_status fsi_grid_advect(const fsi_field *from, fsi_field *const u[3], fsi_real dt, fsi_grid_scheme scheme, int order, const unsigned char *where,
                                   fsi_field *to)
{
    fsi__advect job;
    if (!fsi__is_field(from) || !fsi__is_field(to)) return FSI_ERROR_COOKIE;
    job.count = 1;
    job.from[0] = from;
    job.to[0] = to;
    job.where[0] = where;
    return fsi__advect_run(&job, u, dt, scheme, order, "fsi_grid_advect");
}

FSI_API fsi_status fsi_grid_advect_velocity(fsi_field *const from[3], fsi_field *const u[3], fsi_real dt, fsi_grid_scheme scheme, int order,
                                            const unsigned char *const where[3], fsi_field *const to[3])
{
    static const char *const f = "fsi_grid_advect_velocity";
    fsi__advect job;
    fsi_grid *g = fsi__velocity_grid(to);
    int a;
    if (!g) return FSI_ERROR_COOKIE;
    if (fsi__velocity_grid(from) != g) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, 0, "from is no velocity on the grid of to");
    job.count = g->dim;
    for (a = 0; a < g->dim; a++) {
        job.from[a] = from[a];
        job.to[a] = to[a];
        job.where[a] = where ? where[a] : NULL;
    }
    return fsi__advect_run(&job, u, dt, scheme, order, f);
}

/* ---- >>masks ----------------------------------------------------------------------------------------------------- */

/* What holds for an entry or not (it is known, liquid, labelled), one bit each: a word for each layer z of a block, bit 8 y + x. Neighbours, borders and floods are shifts then. */
#define FSI__COLUMN (~(uint64_t)0 / 255) /* x = 0 */

static int fsi__layers(const fsi_grid *g) { return g->block_cells / 64; }
FSI__HOST_FN uint64_t *fsi__mask_of(uint64_t *mask, const fsi_grid *g, int b) { return mask + (size_t)b * (size_t)fsi__layers(g); }
FSI_FN int fsi__mask_at(const uint64_t *mask, size_t entry) { return (int)(mask[entry >> 6] >> (entry & 63) & 1); }
FSI_FN int fsi__mask_count(uint64_t w) /* bits of w */
{
    w -= w >> 1 & 0x5555555555555555u;
    w = (w & 0x3333333333333333u) + (w >> 2 & 0x3333333333333333u);
    return (int)(((w + (w >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
}

/* The entries (x, y) at `place` in layer z of the block at `corner` that stay in the box when they are moved by `step`. */
static uint64_t fsi__mask_inside(const fsi_grid *g, fsi_grid_place place, const int corner[3], int z, const int step[3])
{
    int lo[2], hi[2], a;
    uint64_t row;
    if (corner[2] + z + step[2] < 0 || corner[2] + z + step[2] >= fsi_grid_size(g, place, 2)) return 0;
    for (a = 0; a < 2; a++) {
        lo[a] = fsi__clamp_int(-corner[a] - step[a], 8);
        hi[a] = fsi__clamp_int(fsi_grid_size(g, place, a) - corner[a] - step[a], 8);
        if (lo[a] >= hi[a]) return 0;
    }
    row = ((uint64_t)255 >> (8 - hi[0])) & ((uint64_t)255 << lo[0]);
    return (FSI__COLUMN >> (64 - 8 * (hi[1] - lo[1])) << (8 * lo[1])) * row;
}

static const int fsi__steps[6][3] = { { -1, 0, 0 }, { 1, 0, 0 }, { 0, -1, 0 }, { 0, 1, 0 }, { 0, 0, -1 }, { 0, 0, 1 } };

/* Number of the block that lies one step away from block b, -1: there is none. */
static int fsi__block_beside(const fsi_grid *g, int b, const int step[3])
{
    int corner[3];
    long long e;
    fsi_grid_corner(g, b, corner);
    e = fsi_grid_entry(g, corner[0] + 8 * step[0], corner[1] + 8 * step[1], corner[2] + 8 * step[2]);
    return e < 0 ? -1 : (int)(e / g->block_cells);
}

/* Entry beside entry c of block b, at fsi__steps[side]; `beside` are the blocks there. -1: none. */
FSI_FN long long fsi__entry_beside(const fsi_grid *g, int b, const int beside[6], int c, int side)
{
    static const int step[6] = { -1, 1, -8, 8, -64, 64 };
    if ((c >> (side >> 1) * 3 & 7) != (side & 1) * 7) return (long long)b * g->block_cells + c + step[side];
    return beside[side] < 0 ? -1 : (long long)beside[side] * g->block_cells + c - 7 * step[side];
}

static void fsi__blocks_beside(const fsi_grid *g, int b, int beside[6])
{
    int side;
    for (side = 0; side < 6; side++) beside[side] = fsi__block_beside(g, b, fsi__steps[side]);
}

/* For each cell of layer z of block b the bit of its neighbour at fsi__steps[side]; `beside` is the block there. */
static uint64_t fsi__mask_beside(const fsi_grid *g, uint64_t *mask, int b, int beside, int z, int side)
{
    static const uint64_t none[8] = { 0 };
    const uint64_t *own = fsi__mask_of(mask, g, b), *other = beside < 0 ? none : fsi__mask_of(mask, g, beside);
    const int last = fsi__layers(g) - 1;
    switch (side) {
    case 0: return (own[z] << 1 & ~FSI__COLUMN) | (other[z] >> 7 & FSI__COLUMN);
    case 1: return (own[z] & ~FSI__COLUMN) >> 1 | (other[z] & FSI__COLUMN) << 7;
    case 2: return own[z] << 8 | other[z] >> 56;
    case 3: return own[z] >> 8 | other[z] << 56;
    case 4: return z > 0 ? own[z - 1] : other[last];
    default: return z < last ? own[z + 1] : other[0];
    }
}

/* ---- >>extrapolation implementation ----------------------------------------------------------------------------

   Only those entries are looked at that get a value. A layer reads the masks and values of the layers before it only, so that blocks can go in any order. */
typedef struct fsi__extrapolate {
    fsi_field *f;
    unsigned char *known;
    uint64_t *now, *next;            /* words known before and after a layer */
    int layer;
    long long bad[FSI__GRID_CHUNKS]; /* by chunk: an entry whose neighbours are not finite, -1 none */
} fsi__extrapolate;

static void fsi__extrapolate_read(void *arg, int chunk, int begin, int end)
{
    const fsi__extrapolate *job = (const fsi__extrapolate *)arg;
    const int words = fsi__layers(job->f->grid), stay[3] = { 0, 0, 0 };
    int b, z, e, corner[3];
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_grid_corner(job->f->grid, b, corner);
        for (z = 0; z < words; z++) {
            unsigned char *known = job->known + (size_t)(b * words + z) * 64;
            uint64_t bits = 0;
            for (e = 0; e < 64; e++) {
                known[e] = known[e] != 0;
                bits |= (uint64_t)known[e] << e;
            }
            job->now[b * words + z] = bits & fsi__mask_inside(job->f->grid, job->f->place, corner, z, stay);
        }
    }
}

/* Sum over the known neighbours of entry e of block b, in the order of fsi__steps; their number. */
static int fsi__extrapolate_sum(const fsi_field *f, int b, const int *beside, const uint64_t *bits, int e, fsi_real *sum)
{
    int side, count = 0;
    for (side = 0, *sum = 0; side < 6; side++) {
        if (!(bits[side] >> (e & 63) & 1)) continue;
        *sum += f->value[fsi__entry_beside(f->grid, b, beside, e, side)];
        count++;
    }
    return count;
}

static void fsi__extrapolate_layer(void *arg, int chunk, int begin, int end)
{
    fsi__extrapolate *job = (fsi__extrapolate *)arg;
    const fsi_grid *g = job->f->grid;
    const int words = fsi__layers(g), stay[3] = { 0, 0, 0 };
    int b, z, e, side, count, beside[6], corner[3];
    for (b = begin; b < end; b++) {
        const uint64_t *own = job->now + (size_t)b * (size_t)words;
        fsi_real *value = job->f->value + (size_t)b * (size_t)g->block_cells, sum;
        unsigned char *known = job->known + (size_t)b * (size_t)g->block_cells;
        uint64_t all = ~(uint64_t)0;
        for (z = 0; z < words; z++) all &= job->next[(size_t)b * (size_t)words + (size_t)z] = own[z];
        if (all == ~(uint64_t)0) continue;
        fsi_grid_corner(g, b, corner);
        fsi__blocks_beside(g, b, beside);
        for (z = 0; z < words; z++) {
            uint64_t bits[6], fresh = 0;
            if (own[z] == ~(uint64_t)0) continue;
            for (side = 0; side < 6; side++) fresh |= bits[side] = fsi__mask_beside(g, job->now, b, beside[side], z, side);
            fresh &= ~own[z];
            if (fresh) fresh &= fsi__mask_inside(g, job->f->place, corner, z, stay);
            job->next[(size_t)b * (size_t)words + (size_t)z] |= fresh;
            for (e = z * 64; fresh; e++, fresh >>= 1) {
                for (; !(fresh & 0xff); e += 8) fresh >>= 8;
                if (!(fresh & 1)) continue;
                count = fsi__extrapolate_sum(job->f, b, beside, bits, e, &sum);
                value[e] = sum / (fsi_real)count;
                known[e] = (unsigned char)(1 + job->layer);
                if (!fsi_is_finite((double)sum) && job->bad[chunk] < 0) job->bad[chunk] = (long long)b * g->block_cells + e;
            }
        }
    }
}

static void fsi__extrapolate_rest(void *arg, int chunk, int begin, int end)
{
    const fsi__extrapolate *job = (const fsi__extrapolate *)arg;
    const int words = fsi__layers(job->f->grid);
    int w, e;
    (void)chunk;
    for (w = begin * words; w < end * words; w++)
        for (e = 0; e < 64 && job->now[w] != ~(uint64_t)0; e++)
            if (!(job->now[w] >> e & 1)) {
                job->f->value[(size_t)w * 64 + (size_t)e] = job->f->background;
                job->known[(size_t)w * 64 + (size_t)e] = 0;
            }
}

FSI_API fsi_status fsi_grid_extrapolate(fsi_field *f, unsigned char *known, int layers)
{
    static const char *const name = "fsi_grid_extrapolate";
    fsi__extrapolate job;
    fsi__grid_impl *m;
    fsi_grid *g;
    size_t bytes;
    int c, grain;
    if (!fsi__is_field(f)) return FSI_ERROR_COOKIE;
    g = f->grid;
    m = (fsi__grid_impl *)g->impl;
    if (!known) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, name, -1, 0, "known is NULL");
    if (layers < 1 || layers > 254) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, name, -1, layers, "layers is %d, not 1 to 254", layers);
    bytes = (size_t)m->capacity * (size_t)fsi__layers(g) * sizeof *job.now;
    if (!fsi__arena_reserve(g->context, &m->scratch, 2 * bytes + 64))
        return fsi__fail(g->context, FSI_ERROR_MEMORY, name, -1, (double)bytes, "no memory for %d blocks", m->capacity);
    job.f = f;
    job.known = known;
    job.now = (uint64_t *)fsi__take(&m->scratch, bytes, 1);
    job.next = (uint64_t *)fsi__take(&m->scratch, bytes, 1);
    grain = fsi__grid_grain(g);
    for (c = 0; c < FSI__GRID_CHUNKS; c++) job.bad[c] = -1;
    fsi__grid_light(g, grain, 400, fsi__extrapolate_read, &job);
    for (job.layer = 1; job.layer <= layers; job.layer++) {
        uint64_t *now = job.now;
        fsi__grid_light(g, grain, 150, fsi__extrapolate_layer, &job);
        job.now = job.next;
        job.next = now;
    }
    fsi__grid_light(g, grain, 110, fsi__extrapolate_rest, &job);
    for (c = 0; c < FSI__GRID_CHUNKS; c++)
        if (job.bad[c] >= 0)
            return fsi__fail(g->context, FSI_ERROR_NAN, name, job.bad[c], 0, "a known neighbour of entry %lld is not finite, or their sum", job.bad[c]);
    return FSI_OK;
}

/* Which cells are liquid. */
typedef struct fsi__mask {
    const fsi_field *field;
    const unsigned char *solid;
    uint64_t *liquid;       /* a word for 64 entries */
    unsigned char *bad;     /* 1: the block holds a number that is not finite */
} fsi__mask;

static void fsi__mask_fill(void *arg, int chunk, int begin, int end)
{
    const fsi__mask *m = (const fsi__mask *)arg;
    const fsi_grid *g = m->field->grid;
    const int layers = fsi__layers(g), stay[3] = { 0, 0, 0 };
    int corner[3], b, z, y, x;
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_real sum[8] = { 0 };
        fsi_grid_corner(g, b, corner);
        m->bad[b] = 0;
        for (z = 0; z < layers; z++) {
            const size_t at = (size_t)b * (size_t)g->block_cells + (size_t)z * 64;
            const fsi_real *v = m->field->value + at;
            const uint64_t inside = fsi__mask_inside(g, FSI_CELLS, corner, z, stay);
            uint64_t w = 0;
            if (inside == ~(uint64_t)0) for (y = 0; y < 64; y += 8) for (x = 0; x < 8; x++) sum[x] += v[y + x] * 0;
            else for (x = 0; x < 64; x++) if (inside >> x & 1) sum[0] += v[x] * 0;
            for (y = 0; y < 64; y += 8) {
                unsigned row = 0;
                for (x = 0; x < 8; x++) row |= (unsigned)(v[y + x] < 0) << x;
                w |= (uint64_t)row << y;
            }
            if (m->solid && w & inside) for (x = 0; x < 64; x++) w &= ~((uint64_t)(m->solid[at + (size_t)x] != 0) << x);
            m->liquid[at >> 6] = w & inside;
        }
        for (x = 0; x < 8; x++) m->bad[b] |= (unsigned char)!(sum[x] == 0);
    }
}

/* Fails, naming the entry of the box where the field is not finite, if there is one in block b. */
static fsi_status fsi__grid_name_bad(fsi_context *context, const fsi_field *field, int b, const char *what, const char *function)
{
    const fsi_grid *g = field->grid;
    int corner[3], c;
    fsi_grid_corner(g, b, corner);
    for (c = 0; c < g->block_cells; c++) {
        const size_t e = (size_t)b * (size_t)g->block_cells + (size_t)c;
        const int i = corner[0] + (c & 7), j = corner[1] + (c >> 3 & 7), k = corner[2] + (c >> 6);
        if (i >= fsi_grid_size(g, field->place, 0) || j >= fsi_grid_size(g, field->place, 1) || k >= fsi_grid_size(g, field->place, 2)) continue;
        if (!fsi_is_finite((double)field->value[e]))
            return fsi__fail(context, FSI_ERROR_NAN, function, (long long)e, (double)field->value[e], "%s is not finite at (%d, %d, %d)", what, i, j, k);
    }
    return FSI_OK;
}

static fsi_status fsi__mask_make(fsi__mask *m, const char *function)
{
    const fsi_grid *g = m->field->grid;
    int b;
    fsi_status status = FSI_OK;
    fsi__grid_light(g, 16, 280, fsi__mask_fill, m);
    for (b = 0; b < g->block_count && status == FSI_OK; b++)
        if (m->bad[b]) status = fsi__grid_name_bad(g->context, m->field, b, "phi", function);
    return status;
}

/* What all functions here ask of phi. */
static fsi_status fsi__level_set_check(const fsi_field *phi, const char *function)
{
    if (!fsi__is_field(phi) || !fsi__is_grid(phi->grid)) return FSI_ERROR_COOKIE;
    if (phi->place != FSI_CELLS) return fsi__fail(phi->grid->context, FSI_ERROR_ARGUMENT, function, -1, (double)(int)phi->place, "phi does not stand in cells");
    if (!(phi->background > 0))
        return fsi__fail(phi->grid->context, FSI_ERROR_ARGUMENT, function, -1, (double)phi->background, "phi's background is %g: what is in no block must be air, above 0",
                         (double)phi->background);
    return FSI_OK;
}

static fsi__arena *fsi__grid_scratch(const fsi_grid *g) { return &((fsi__grid_impl *)g->impl)->scratch; }

/* The grid's scratch, with room for `size` bytes and some growth. */
static fsi_status fsi__grid_room(const fsi_grid *g, size_t size, const char *function)
{
    fsi__arena *a = fsi__grid_scratch(g);
    if (fsi__arena_room(g->context, a, size)) return FSI_OK;
    return fsi__fail(g->context, FSI_ERROR_MEMORY, function, -1, (double)size, "no memory for %g bytes of scratch", (double)size);
}

/* ---- >>redistance ----------------------------------------------------------------------------------------------- */

/* Each cell that has a neighbour on the other side of the surface fits a SHEET to it: the nearest point p of the surface, its
   normal n there, and how it bends. Every other cell of the band needs to know one sheet only, that which lies nearest:

              x  .                       r = x - p       z = n . r       t = |r - z n|
              |   .  z                   K = curvature of the sheet along t
         -----p----------  t             d = z + K t^2 / (2 (1 + K z)) + O(t^4)
          ..--+--..                      the distance from x to the sheet, either side: a circle's to fourth order
        .'         '.

   so that it need not lie right below x. Outside of its reach a sheet is only its point p, or corners would grow wings. Which sheet is
   the nearest spreads like a wave: a cell that has found one offers it to its neighbours farther out. These ask at once for the sheet of the
   cell where the point of that one nearest to them lies, take what brings them nearer than they were, and offer it on. Inside of a block this is a
   queue; blocks take turns like the squares of a chess board and look only at the faces of those of the other colour, until none has
   news. So the result depends on no schedule. (Sheets: Chopp, SIAM J. Sci. Comput. 23 (2001), with a Taylor expansion in
   place of a bicubic; the wave: Danielsson, Comput. Graphics Image Process. 14 (1980), with sheets in place of points.) */

/* In cells; single precision is 1e-6 cells here. One line of cache. */
typedef struct fsi__sheet {
    float foot[3], normal[3];   /* p - centre of its cell; n, out of the liquid */
    float bend[6];              /* curvature of phi at that centre, P H P: xx yy zz yz xz xy */
    float reach2;               /* reach squared; 0: a point */
    float cell[3];              /* that made it */
} fsi__sheet;

typedef struct fsi__waves {
    const fsi_field *phi;
    fsi_field *out;
    int band;
    fsi__mask mask;
    uint64_t *source;           /* bits of cells that make sheets */
    int *first;                 /* block_count + 1: number of each block's first sheet */
    fsi__sheet *sheet;
    double *fitted, *exact;     /* distance of the cell that made it, in cells: to it; what the cell takes */
    float *distance;            /* each entry: in cells, up to `band`; below 0 what keeps it: minus that of sources, -64 beyond the box */
    int *nearest;               /* each entry: its sheet; -1: none yet */
    int *beside;                /* 6 a block */
    unsigned char *news, *turn; /* each block: faces (bits) behind which cells came nearer in its last turn; colour, + 2: it had its first turn */
    int colour;
} fsi__waves;

/* Distance of a point (relative to the centre of its cell) to s; positive on `side` +-1. *guess: the same of a sheet without end; *slide: how far
   along t its nearest point lies, over t. */
FSI_FN float fsi__sheet_distance(const fsi__sheet *s, const float at[3], float side, float *guess, float *slide)
{
    const float *n = s->normal, *k = s->bend;
    const float x = at[0] - s->foot[0], y = at[1] - s->foot[1], z = at[2] - s->foot[2];
    const float up = n[0] * x + n[1] * y + n[2] * z, rr = x * x + y * y + z * z;
    const float bend = k[0] * x * x + k[1] * y * y + k[2] * z * z + 2 * (k[3] * y * z + k[4] * x * z + k[5] * x * y);
    const float tt = rr - up * up > 1e-9f ? rr - up * up : 1e-9f, den = tt + (n[0] * at[0] + n[1] * at[1] + n[2] * at[2]) * bend;
    *slide = tt / (den > 0.25f * tt ? den : 0.25f * tt);
    *guess = (up + 0.5f * bend * *slide) * side;
    return tt * *slide * *slide <= s->reach2 && *guess > 0 ? *guess : sqrtf(rr);
}

static double fsi__minmod(double a, double b) { return a * b <= 0 ? 0 : (fabs(a) < fabs(b) ? a : b); }

/* Slope and curvature of phi (times q) along one axis, for a cell on side +-1: fourth order where phi is smooth there, else from the side
   that goes down to the surface (ENO), or, where a sheet of one cell lies across, which bends phi there, from the other. 0: not smooth. */
static int fsi__sheet_slope(const fsi_real *u, int stride, double q, double side, double *slope, double *curve)
{
    const double a = (double)u[-2 * stride] * q, b = (double)u[-stride] * q, c = (double)u[0] * q, d = (double)u[stride] * q, e = (double)u[2 * stride] * q;
    const double s0 = b - 2 * c + d, sb = a - 2 * b + c, sd = c - 2 * d + e;
    const int lower = side * b < side * d, sheet = (c < 0) != ((lower ? b : d) < 0) && (c < 0) == ((lower ? a : e) < 0);
    if (fabs(s0) <= 0.5 && fabs(sb - 2 * s0 + sd) <= 0.25) {
        *slope = (d - b) / 2 - (sd - sb) / 12;
        *curve = s0 - (sb - 2 * s0 + sd) / 12;
        return 1;
    }
    *slope = 0;
    *curve = 0;
    if (sheet && side * ((lower ? d : b) - c) > 0) *slope = lower ? d - c : c - b;
    else if (side * ((lower ? b : d) - c) < 0) {
        *curve = fsi__minmod(s0, lower ? sb : sd);
        *slope = lower ? c - b + *curve / 2 : d - c - *curve / 2;
    }
    return 0;
}

/* Where the fit fails: the nearest crossing on the lines to the 8 or 26 neighbours. */
static double fsi__sheet_point(const fsi_real *u, const int stride[3], int dim, fsi__sheet *s)
{
    const double c = (double)u[0];
    double best = 4;
    int d[3], a, found[3] = { 0, 0, 0 };
    for (d[2] = dim == 3 ? -1 : 0; d[2] <= (dim == 3); d[2]++)
        for (d[1] = -1; d[1] <= 1; d[1]++)
            for (d[0] = -1; d[0] <= 1; d[0]++) {
                const double o = (double)u[d[0] * stride[0] + d[1] * stride[1] + d[2] * stride[2]];
                const double t = (o < 0) == (c < 0) ? 4 : c / (c - o), length = t * sqrt((double)(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]));
                if (!(t <= 1 && length < best)) continue;
                best = length;
                for (a = 0; a < 3; a++) {
                    found[a] = d[a];
                    s->foot[a] = (float)(t * d[a]);
                }
            }
    for (a = 0; a < 3; a++) s->normal[a] = (float)((c < 0 ? found[a] : -found[a]) / sqrt((double)(found[0] * found[0] + found[1] * found[1] + found[2] * found[2])));
    return best;
}

/* Fits done over and over on what they made would carry the surface away, a checkerboard first (measured: 5e-5 dx the first time, 5e-2 dx after
   300). So a cell that is off its distance by less than this share of it goes only part of the way, as far as it is off: what is a distance stays. */
#define FSI__SHEET_STEADY 0.05
#define FSI__SHEET_REACH2 2.25f /* of smooth ones */

/* What a cell takes, of the distances that it has and that it is to have. */
FSI_FN double fsi__sheet_stays(double own, double to, double share)
{
    const double off = fabs(to - own) / (share * fabs(to) + 1e-30);
    return off < 1 ? own + off * (to - own) : to;
}

/* The sheet that the cell at u sees, u being a layer of 2 cells around it. Returns its distance. With q phi for phi, q the
   reciprocal of the largest slope, g and H gradient and Hessian at x: the surface lies t along -g,
      phi - |g| t + n.Hn t^2 / 2 = 0;   it bends by P H P / |g|, P = 1 - n n^T. */
static double fsi__sheet_fit(const fsi_real *u, const int stride[3], int dim, double dx, fsi__sheet *s)
{
    const double c = (double)u[0], side = c < 0 ? -1 : 1;
    double g[3] = { 0, 0, 0 }, h[6] = { 0, 0, 0, 0, 0, 0 }, n[3], w[3], most = 0, cross = 1, gg = 0, wn = 0, q, t, own, length, inverse, bend = 0, up[3], upup = 0;
    int a, smooth[3] = { 0, 0, 0 }, thin = 0, all = 1;
    memset(s, 0, sizeof *s);
    for (a = 0; a < dim; a++) {
        const double lo = (double)u[-stride[a]], hi = (double)u[stride[a]];
        most = most > fabs(c - lo) ? most : fabs(c - lo);
        most = most > fabs(hi - c) ? most : fabs(hi - c);
        if ((lo < 0) != (c < 0) && c / (c - lo) < cross) cross = c / (c - lo);
        if ((hi < 0) != (c < 0) && c / (c - hi) < cross) cross = c / (c - hi);
    }
    q = 1 / (most + 1e-307);
    for (a = 0; a < dim; a++) {
        all &= smooth[a] = fsi__sheet_slope(u, stride[a], q, side, &g[a], &h[a]);
        gg += g[a] * g[a];
        thin |= !smooth[a] && ((double)u[-stride[a]] < 0) != (c < 0) && ((double)u[stride[a]] < 0) != (c < 0);
    }
    if (thin || gg < 0.04) return fsi__sheet_point(u, stride, dim, s);
    for (a = 0; a < 3; a++) {
        const int i = (a + 1) % 3, j = (a + 2) % 3;
        if (!smooth[i] || !smooth[j]) continue;
        h[3 + a] = ((double)u[stride[i] + stride[j]] - (double)u[stride[i] - stride[j]] - (double)u[stride[j] - stride[i]] + (double)u[-stride[i] - stride[j]]) * q / 4;
    }
    length = sqrt(gg);
    inverse = 1 / length;
    for (a = 0; a < 3; a++) n[a] = g[a] * inverse;
    for (a = 0; a < 3; a++) {
        w[a] = h[a] * n[a] + h[3 + (a + 2) % 3] * n[(a + 1) % 3] + h[3 + (a + 1) % 3] * n[(a + 2) % 3];
        wn += w[a] * n[a];
    }
    t = gg - 2 * c * q * wn;
    t = 2 * c * q / (length + sqrt(t > gg / 4 ? t : gg / 4));
    cross = 1.25 * cross;
    if (!(fabs(t) <= cross)) t = side * cross;
    own = fsi__sheet_stays(c / dx, t, FSI__SHEET_STEADY);
    for (a = 0; a < 3; a++) {
        up[a] = g[a] - t * w[a];
        upup += up[a] * up[a];
    }
    for (a = 0; a < 6; a++) {
        const int i = a < 3 ? a : (a + 1) % 3, j = a < 3 ? a : (a + 2) % 3;
        h[a] = (h[a] - n[i] * w[j] - n[j] * w[i] + wn * n[i] * n[j]) * inverse;
        bend += h[a] * h[a] * (a < 3 ? 1 : 2);
    }
    bend = bend > 1 ? 1 / sqrt(bend) : 1;
    upup = 1 / sqrt(upup > gg / 4 ? upup : gg / 4);
    for (a = 0; a < 3; a++) {
        s->foot[a] = (float)(-t * n[a]);
        s->normal[a] = (float)(up[a] * upup);
    }
    for (a = 0; a < 6; a++) s->bend[a] = (float)(h[a] * bend);
    s->reach2 = all ? FSI__SHEET_REACH2 : 0.6f;
    return fabs(own);
}

/* Beyond the walls a gathered box goes on linearly, so that a surface that meets a wall at an angle keeps its slope. h = 2. */
static void fsi__gather_extend(const fsi_grid *g, int b, fsi_real *box)
{
    const int s = 12, layers = g->dim == 3 ? s : 1, size[3] = { s, s, layers }, stride[3] = { 1, s, s * s };
    int corner[3], a, side, i, j, t;
    fsi_grid_corner(g, b, corner);
    for (a = 0; a < g->dim; a++)
        for (side = -1; side <= 1; side += 2) {
            const int last = side < 0 ? 2 - corner[a] : g->n[a] + 1 - corner[a]; /* of the box, in the gathered one */
            const int p = (a + 1) % 3, q = (a + 2) % 3;
            if (last < 2 || last > 9 || g->n[a] < 2) continue;
            for (j = 0; j < size[q]; j++)
                for (i = 0; i < size[p]; i++) {
                    fsi_real *v = box + last * stride[a] + i * stride[p] + j * stride[q];
                    const fsi_real slope = v[0] - v[-side * stride[a]];
                    for (t = 1; t <= 2; t++) v[side * t * stride[a]] = v[0] + (fsi_real)t * slope;
                }
        }
}

/* The cells of each block that have a neighbour on the other side within the box. */
static void fsi__waves_sources(void *arg, int chunk, int begin, int end)
{
    const fsi__waves *m = (const fsi__waves *)arg;
    const fsi_grid *g = m->phi->grid;
    const int layers = fsi__layers(g), sides = 2 * g->dim;
    int corner[3], b, z, side, count;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const uint64_t *own = fsi__mask_of(m->mask.liquid, g, b);
        uint64_t *source = fsi__mask_of(m->source, g, b);
        fsi_grid_corner(g, b, corner);
        fsi__blocks_beside(g, b, m->beside + b * 6);
        for (z = count = 0; z < layers; z++) {
            const int stay[3] = { 0, 0, 0 };
            for (side = 0, source[z] = 0; side < sides; side++)
                source[z] |= (own[z] ^ fsi__mask_beside(g, m->mask.liquid, b, m->beside[b * 6 + side], z, side))
                     & fsi__mask_inside(g, FSI_CELLS, corner, z, fsi__steps[side]);
            source[z] &= fsi__mask_inside(g, FSI_CELLS, corner, z, stay);
            count += fsi__mask_count(source[z]);
        }
        m->first[b + 1] = count;
        m->turn[b] = (unsigned char)(((corner[0] ^ corner[1] ^ corner[2]) >> 3) & 1);
        m->news[b] = 0;
    }
}

/* The sheets of each block, and what its entries start from. */
static void fsi__waves_sheets(void *arg, int chunk, int begin, int end)
{
    const fsi__waves *m = (const fsi__waves *)arg;
    const fsi_grid *g = m->phi->grid;
    const int layers = fsi__layers(g), stride[3] = { 1, 12, g->dim == 3 ? 144 : 0 }, stay[3] = { 0, 0, 0 };
    fsi_real box[12 * 12 * 12];
    int corner[3], b, z, c, id;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const uint64_t *source = fsi__mask_of(m->source, g, b);
        float *distance = m->distance + (size_t)b * (size_t)g->block_cells;
        int *nearest = m->nearest + (size_t)b * (size_t)g->block_cells;
        fsi_grid_corner(g, b, corner);
        id = m->first[b];
        if (m->first[b + 1] > id) {
            fsi__grid_gather(m->phi, b, 2, box);
            fsi__gather_extend(g, b, box);
        }
        for (z = 0; z < layers; z++) {
            const uint64_t inside = fsi__mask_inside(g, FSI_CELLS, corner, z, stay);
            for (c = 0; c < 64; c++) nearest[z * 64 + c] = -1;
            if (inside == ~(uint64_t)0) for (c = 0; c < 64; c++) distance[z * 64 + c] = (float)m->band;
            else for (c = 0; c < 64; c++) distance[z * 64 + c] = (inside >> c & 1) ? (float)m->band : -64;
            for (c = 0; c < 64 && source[z] >> c; c++) {
                if (!(source[z] >> c & 1)) continue;
                m->fitted[id] = fsi__sheet_fit(box + (c & 7) + 2 + ((c >> 3) + 2) * 12 + (g->dim == 3 ? (z + 2) * 144 : 0), stride, g->dim, (double)g->dx, m->sheet + id);
                m->sheet[id].cell[0] = (float)(corner[0] + (c & 7));
                m->sheet[id].cell[1] = (float)(corner[1] + (c >> 3));
                m->sheet[id].cell[2] = (float)(corner[2] + z);
                distance[z * 64 + c] = -(float)m->fitted[id];
                nearest[z * 64 + c] = id++;
            }
        }
    }
}

/* What the sources take. Where the fit is not smooth, at edges and in sheets of a cell or two, the cells on both sides of a crossing would move it, each in
   its own way, and wear the liquid away (measured: sheets of 1 to 1.4 dx lost 7 to 25 % of it in 100 times, at worst half; now 4 %). There each goes half the way to
   the distance at which its crossings stay, for those that its neighbours across found: two cells that do so keep theirs.
   (After Hartmann, Meinke & Schroeder, J. Comput. Phys. 229 (2010), whose constraint is the whole of that way.) What is nearly
   that distance stays: put back in each step to the shape that the fit likes, the rim of a thin puddle would be no shape at
   which surface tension rests, which then drives an eddy there for ever (5 mm/s at a rim two cells high). */
#define FSI__SHEET_KEPT 0.5
static void fsi__waves_keep(void *arg, int chunk, int begin, int end)
{
    const fsi__waves *m = (const fsi__waves *)arg;
    const fsi_grid *g = m->phi->grid;
    int id, side;
    (void)chunk;
    for (id = m->first[begin]; id < m->first[end]; id++) {
        const fsi__sheet *s = m->sheet + id;
        const int i = (int)s->cell[0], j = (int)s->cell[1], k = (int)s->cell[2];
        const double c = (double)fsi_grid_at(m->phi, i, j, k);
        double sum = 0, weight = 0;
        m->exact[id] = m->fitted[id];
        for (side = 0; side < 2 * g->dim && s->reach2 < FSI__SHEET_REACH2; side++) {
            const int *step = fsi__steps[side];
            const long long e = fsi_grid_entry(g, i + step[0], j + step[1], k + step[2]);
            double o, t; /* t: from the crossing to the neighbour, of the way between the two */
            if (e < 0 || !fsi__mask_at(m->source, (size_t)e)) continue;
            o = (double)m->phi->value[e];
            if ((o < 0) == (c < 0)) continue;
            t = o / (o - c);
            sum += t * (1 - t) * m->fitted[m->nearest[e]];
            weight += t * t;
        }
        if (weight > 1e-12) m->exact[id] = (m->fitted[id] + sum / weight) / 2;
        if (s->reach2 < FSI__SHEET_REACH2) m->exact[id] = fsi__sheet_stays(fabs(c) / (double)m->phi->grid->dx, m->exact[id], FSI__SHEET_KEPT);
    }
}

#define FSI__WAVE_GAIN 1e-3f  /* cells: coming nearer by less is not worth a change */
#define FSI__WAVE_SLOPE 0.52f /* one of its neighbours is nearer than a cell by 1/sqrt(3), less what the surface bends */

/* The sheet of the cell that holds the nearest point of s to `at` (relative to the centre of its cell), -1: there is none. If that cell makes no
   sheet the surface cuts a corner off it only: then the next cell across makes one. */
static int fsi__wave_below(const fsi__waves *m, const fsi__sheet *s, const float at[3], float slide)
{
    const float *n = s->normal;
    const float up = (at[0] - s->foot[0]) * n[0] + (at[1] - s->foot[1]) * n[1] + (at[2] - s->foot[2]) * n[2];
    long long e;
    int a, cell[3], most = 0;
    for (a = 0; a < 3; a++) cell[a] = (int)(s->cell[a] + s->foot[a] + (at[a] - s->foot[a] - up * n[a]) * slide + 0.5f);
    e = fsi_grid_entry(m->phi->grid, cell[0], cell[1], cell[2]);
    if (e >= 0 && !fsi__mask_at(m->source, (size_t)e)) {
        for (a = 1; a < 3; a++) if (fabsf(n[a]) > fabsf(n[most])) most = a;
        cell[most] += (n[most] > 0) == fsi__mask_at(m->mask.liquid, (size_t)e) ? 1 : -1;
        e = fsi_grid_entry(m->phi->grid, cell[0], cell[1], cell[2]);
    }
    return e >= 0 && fsi__mask_at(m->source, (size_t)e) ? m->nearest[e] : -1;
}

/* Offers sheet `id` to the cell with entry e. If that brings it nearer it takes it, or better the sheet of the cell below which it lies. */
static int fsi__wave_offer(const fsi__waves *m, int id, size_t e, const float cell[3], float side)
{
    const fsi__sheet *s = m->sheet + id;
    const float enough = m->distance[e] - FSI__WAVE_GAIN;
    float at[3], slide, guess, d, other;
    int a, below;
    for (a = 0; a < 3; a++) at[a] = cell[a] - s->cell[a];
    d = fsi__sheet_distance(s, at, side, &guess, &slide);
    if (!(guess < enough)) return 0;
    below = fsi__wave_below(m, s, at, slide);
    if (below >= 0 && below != id) {
        s = m->sheet + below;
        for (a = 0; a < 3; a++) at[a] = cell[a] - s->cell[a];
        other = fsi__sheet_distance(s, at, side, &guess, &slide);
        if (other < enough && other < d + 0.1f) {
            d = other;
            id = below;
        }
    }
    if (!(d < enough)) return 0;
    m->distance[e] = d;
    m->nearest[e] = id;
    return 1;
}

/* The cells of a block that have something to offer, first come, first served. */
typedef struct fsi__wave {
    uint64_t queued[8];
    unsigned short queue[512];
    unsigned head, tail;
    int news;
} fsi__wave;

static void fsi__wave_push(fsi__wave *w, int c)
{
    const uint64_t bit = (uint64_t)1 << (c & 63);
    if (w->queued[c >> 6] & bit) return;
    w->queued[c >> 6] |= bit;
    w->queue[w->tail++ & 511] = (unsigned short)c;
}

/* Cell c of block b, with entry e, is offered a sheet. */
static void fsi__wave_pass(const fsi__waves *m, int id, size_t e, const int corner[3], int c, fsi__wave *w)
{
    float cell[3];
    cell[0] = (float)(corner[0] + (c & 7));
    cell[1] = (float)(corner[1] + (c >> 3 & 7));
    cell[2] = (float)(corner[2] + (c >> 6));
    if (fsi__wave_offer(m, id, e, cell, fsi__mask_at(m->mask.liquid, e) ? -1.0f : 1.0f)) fsi__wave_push(w, c);
}

/* The t-th cell on face `side` (of fsi__steps) of a block. */
static int fsi__face_cell(int side, int t)
{
    switch (side >> 1) {
    case 0: return 8 * t + 7 * (side & 1);
    case 1: return (t >> 3) * 64 + (t & 7) + 56 * (side & 1);
    default: return t + 448 * (side & 1);
    }
}

/* Block b takes its turn: its own sources offer the first time, the faces of its neighbours where they have news, then all who gained. */
static void fsi__wave_run(const fsi__waves *m, int b)
{
    static const int step[6] = { -1, 1, -8, 8, -64, 64 }, faces[8] = { 1, 0, 0, 0, 0, 0, 0, 2 };
    const fsi_grid *g = m->phi->grid;
    const int sides = 2 * g->dim, face = 8 * fsi__layers(g);
    const size_t own = (size_t)b * (size_t)g->block_cells;
    fsi__wave w;
    const float *distance = m->distance + own;
    int corner[3], side, t, c, to, edge, hit;
    fsi_grid_corner(g, b, corner);
    memset(&w, 0, sizeof w);
    if (m->turn[b] < 2)
        for (c = 0; c < g->block_cells; c++) if (fsi__mask_at(m->source, own + (size_t)c)) fsi__wave_push(&w, c);
    for (side = 0; side < sides; side++) {
        const int other = m->beside[b * 6 + side];
        if (other < 0 || !(m->news[other] >> (side ^ 1) & 1)) continue;
        for (t = 0; t < face; t++) {
            const size_t from = (size_t)other * (size_t)g->block_cells + (size_t)fsi__face_cell(side ^ 1, t);
            to = fsi__face_cell(side, t);
            if (fabsf(m->distance[from]) + FSI__WAVE_SLOPE < distance[to]) fsi__wave_pass(m, m->nearest[from], own + (size_t)to, corner, to, &w);
        }
    }
    while (w.head != w.tail) {
        c = w.queue[w.head++ & 511];
        w.queued[c >> 6] &= ~((uint64_t)1 << (c & 63));
        edge = faces[c & 7] | faces[c >> 3 & 7] << 2 | faces[c >> 6] << 4;
        w.news |= edge;
        for (side = hit = 0; side < sides; side++) hit |= (fabsf(distance[c]) + FSI__WAVE_SLOPE < distance[c + (edge >> side & 1 ? 0 : step[side])]) << side;
        for (side = 0; hit >> side; side++)
            if (hit >> side & 1) fsi__wave_pass(m, m->nearest[own + (size_t)c], own + (size_t)(c + step[side]), corner, c + step[side], &w);
    }
    m->news[b] = (unsigned char)w.news;
}

/* The turn of the blocks of one colour. */
static void fsi__waves_turn(void *arg, int chunk, int begin, int end)
{
    const fsi__waves *m = (const fsi__waves *)arg;
    int b, side, wake;
    (void)chunk;
    for (b = begin; b < end; b++) {
        if ((m->turn[b] & 1) != m->colour) continue;
        wake = m->turn[b] < 2 && m->first[b + 1] > m->first[b];
        for (side = 0; side < 2 * m->phi->grid->dim; side++) wake |= m->beside[b * 6 + side] >= 0 && (m->news[m->beside[b * 6 + side]] >> (side ^ 1) & 1);
        m->news[b] = 0;
        if (wake) fsi__wave_run(m, b);
        m->turn[b] |= 2;
    }
}

static void fsi__waves_write(void *arg, int chunk, int begin, int end)
{
    const fsi__waves *m = (const fsi__waves *)arg;
    const fsi_grid *g = m->phi->grid;
    const double dx = (double)g->dx, least = (double)FSI_REAL_EPS;
    int b, c;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const size_t own = (size_t)b * (size_t)g->block_cells;
        for (c = 0; c < g->block_cells; c++) {
            const size_t e = own + (size_t)c;
            double d = (double)m->distance[e];
            if (d <= 0) d = m->nearest[e] < 0 ? m->band : m->exact[m->nearest[e]];
            if (fsi__mask_at(m->mask.liquid, e)) d = d < least ? -least : -d;
            m->out->value[e] = (fsi_real)(d * dx);
        }
    }
}

/* Lays out the scratch of m for so many sheets. */
static void fsi__waves_take(fsi__waves *m, fsi__arena *a, size_t sheets)
{
    const size_t blocks = (size_t)m->phi->grid->block_count, cells = blocks * (size_t)m->phi->grid->block_cells;
    m->mask.liquid = (uint64_t *)fsi__take(a, cells / 64, sizeof(uint64_t));
    m->mask.bad = (unsigned char *)fsi__take(a, blocks, 1);
    m->source = (uint64_t *)fsi__take(a, cells / 64, sizeof(uint64_t));
    m->first = (int *)fsi__take(a, blocks + 1, sizeof(int));
    m->beside = (int *)fsi__take(a, blocks * 6, sizeof(int));
    m->news = (unsigned char *)fsi__take(a, blocks, 1);
    m->turn = (unsigned char *)fsi__take(a, blocks, 1);
    m->distance = (float *)fsi__take(a, cells, sizeof(float));
    m->nearest = (int *)fsi__take(a, cells, sizeof(int));
    m->sheet = (fsi__sheet *)fsi__take(a, sheets, sizeof(fsi__sheet));
    m->fitted = (double *)fsi__take(a, sheets, sizeof(double));
    m->exact = (double *)fsi__take(a, sheets, sizeof(double));
}

/* Scratch, bits and sources. How many sheets there are shows only when the sources are known: if they do not fit, once more. */
static fsi_status fsi__waves_begin(fsi__waves *m, const char *function)
{
    const fsi_grid *g = m->phi->grid;
    size_t sheets = 0;
    int b;
    for (;;) {
        fsi__arena measure;
        fsi_status status;
        memset(&measure, 0, sizeof measure);
        fsi__waves_take(m, &measure, sheets);
        status = fsi__grid_room(g, measure.used, function);
        if (status != FSI_OK) return status;
        fsi__waves_take(m, fsi__grid_scratch(g), sheets);
        status = fsi__mask_make(&m->mask, function);
        if (status != FSI_OK) return status;
        fsi__grid_light(g, 16, 300, fsi__waves_sources, m);
        for (b = 0, m->first[0] = 0; b < g->block_count; b++) m->first[b + 1] += m->first[b];
        if ((size_t)m->first[g->block_count] <= sheets) return FSI_OK;
        sheets = (size_t)m->first[g->block_count];
    }
}

FSI_API fsi_status fsi_grid_redistance(const fsi_field *phi, int band, fsi_field *out)
{
    static const char *const f = "fsi_grid_redistance";
    const fsi_grid *g;
    fsi__waves m;
    int idle = 0, b;
    fsi_status status = fsi__level_set_check(phi, f);
    if (status != FSI_OK) return status;
    g = phi->grid;
    if (!fsi__is_field(out)) return FSI_ERROR_COOKIE;
    if (out->grid != g || out->place != FSI_CELLS) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, 0, "out is not a field of cells of phi's grid");
    if (band < 2 || band > 16) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, band, "band is %d, not 2 to 16", band);
    memset(&m, 0, sizeof m);
    m.phi = m.mask.field = phi;
    m.out = out;
    m.band = band;
    status = fsi__waves_begin(&m, f);
    if (status != FSI_OK) return status;
    fsi__grid_light(g, 4, 800, fsi__waves_sheets, &m);
    fsi__grid_light(g, 16, 40, fsi__waves_keep, &m);
    for (m.colour = 0; idle < 2; m.colour ^= 1) { /* until a turn of each colour brings nothing */
        fsi__grid_light(g, 4, 40, fsi__waves_turn, &m);
        for (b = 0, idle++; b < g->block_count; b++) if (m.news[b] && (m.turn[b] & 1) == m.colour) idle = 0;
    }
    fsi__grid_light(g, 16, 380, fsi__waves_write, &m);
    return FSI_OK;
}

/* ---- >>components ----------------------------------------------------------------------------------------------- */

/* Each block floods its own bits; the pieces are joined across faces of blocks by union-find, the piece with the earlier first cell leading,
   and the leaders are numbered in the order of their first cells. */
typedef struct fsi__pieces {
    const fsi_grid *grid;
    fsi__mask mask;
    int *label;
    int *first;     /* block_count + 1: number of each block's first piece */
    int *lead;      /* each piece: one that comes before it and hangs together with it, itself if there is none; at last its component */
    int *at[3];     /* each piece: k, j, i of its first cell */
    int *order, *spare, *start, *leader;
} fsi__pieces;

/* Moves the piece of `rest` that holds its first cell to `piece`; 0: nothing is left. */
static int fsi__mask_flood(uint64_t rest[8], uint64_t piece[8], int layers)
{
    int z, seed = 0, grown = 1;
    while (seed < layers && !rest[seed]) seed++;
    if (seed == layers) return 0;
    for (z = 0; z < layers; z++) piece[z] = 0;
    piece[seed] = rest[seed] & (~rest[seed] + 1);
    while (grown)
        for (z = grown = 0; z < 2 * layers; z++) { /* up and down again */
            const int i = z < layers ? z : 2 * layers - 1 - z;
            uint64_t w = piece[i] | (i > 0 ? piece[i - 1] : 0) | (i < layers - 1 ? piece[i + 1] : 0), before;
            w &= rest[i];
            do {
                before = w;
                w |= (w << 1 & ~FSI__COLUMN) | (w >> 1 & ~(FSI__COLUMN << 7)) | w << 8 | w >> 8;
                w &= rest[i];
            } while (w != before);
            grown |= w != piece[i];
            piece[i] = w;
        }
    for (z = 0; z < layers; z++) rest[z] &= ~piece[z];
    return 1;
}

/* Counts each block's pieces. */
static void fsi__pieces_count(void *arg, int chunk, int begin, int end)
{
    const fsi__pieces *m = (const fsi__pieces *)arg;
    const int layers = fsi__layers(m->grid);
    uint64_t rest[8], piece[8];
    int b, n;
    (void)chunk;
    for (b = begin; b < end; b++) {
        memcpy(rest, fsi__mask_of(m->mask.liquid, m->grid, b), (size_t)layers * sizeof *rest);
        for (n = 0; fsi__mask_flood(rest, piece, layers); n++) continue;
        m->first[b + 1] = n;
    }
}

/* Labels each entry with its piece. */
static void fsi__pieces_mark(void *arg, int chunk, int begin, int end)
{
    const fsi__pieces *m = (const fsi__pieces *)arg;
    const fsi_grid *g = m->grid;
    const int layers = fsi__layers(g);
    uint64_t rest[8], piece[8];
    int corner[3], b, c, p, z;
    (void)chunk;
    for (b = begin; b < end; b++) {
        int *label = m->label + (size_t)b * (size_t)g->block_cells;
        fsi_grid_corner(g, b, corner);
        memcpy(rest, fsi__mask_of(m->mask.liquid, g, b), (size_t)layers * sizeof *rest);
        for (c = 0; c < g->block_cells; c++) label[c] = -1;
        for (p = m->first[b]; fsi__mask_flood(rest, piece, layers); p++) {
            m->lead[p] = p;
            m->at[0][p] = -1;
            for (z = 0; z < layers; z++)
                for (c = 0; c < 64 && piece[z] >> c; c++) {
                    if (!(piece[z] >> c & 1)) continue;
                    label[z * 64 + c] = p;
                    if (m->at[0][p] >= 0) continue;
                    m->at[0][p] = corner[2] + z;
                    m->at[1][p] = corner[1] + (c >> 3);
                    m->at[2][p] = corner[0] + (c & 7);
                }
        }
    }
}

static int fsi__pieces_leader(const fsi__pieces *m, int p)
{
    while (m->lead[p] != p) p = m->lead[p] = m->lead[m->lead[p]];
    return p;
}

static void fsi__pieces_join(const fsi__pieces *m, int p, int q)
{
    int a = 0;
    p = fsi__pieces_leader(m, p);
    q = fsi__pieces_leader(m, q);
    if (p == q) return;
    while (m->at[a][p] == m->at[a][q]) a++;
    if (m->at[a][p] < m->at[a][q]) m->lead[q] = p;
    else m->lead[p] = q;
}

/* Joins what touches across the lower faces of block b. */
static void fsi__pieces_touch(const fsi__pieces *m, int b)
{
    const fsi_grid *g = m->grid;
    const int *own = m->label + (size_t)b * (size_t)g->block_cells, *other;
    int side, t, p, q, last = -1, with = -1;
    if (m->first[b] == m->first[b + 1]) return;
    for (side = 0; side < 2 * g->dim; side += 2) {
        const int beside = fsi__block_beside(g, b, fsi__steps[side]);
        if (beside < 0 || m->first[beside] == m->first[beside + 1]) continue;
        other = m->label + (size_t)beside * (size_t)g->block_cells;
        for (t = 0; t < 8 * fsi__layers(g); t++) {
            p = own[fsi__face_cell(side, t)];
            q = other[fsi__face_cell(side + 1, t)];
            if (p < 0 || q < 0 || (p == last && q == with)) continue;
            fsi__pieces_join(m, last = p, with = q);
        }
    }
}

/* Turns m->lead into numbers of components; returns how many there are. */
static int fsi__pieces_number(const fsi__pieces *m)
{
    const int pieces = m->first[m->grid->block_count];
    fsi__sorter s;
    int a, p, n = 0;
    for (p = 0; p < pieces; p++) m->leader[p] = fsi__pieces_leader(m, p);
    for (p = 0; p < pieces; p++) {
        if (m->leader[p] != p) continue;
        for (a = 0; a < 3; a++) m->at[a][n] = m->at[a][p]; /* leaders close up; the n-th keeps its own name in `lead` */
        m->lead[n++] = p;
    }
    for (a = 0; a < 3; a++) s.key[a] = m->at[a];
    s.order = m->order;
    s.spare = m->spare;
    s.start = m->start;
    s.keys = 2; /* the third ascends by itself: pieces do within a block, and blocks do along x */
    s.key_count = m->grid->n[0];
    for (a = 1; a < 3; a++) if (s.key_count < m->grid->n[a]) s.key_count = m->grid->n[a];
    s.n = n;
    fsi__sort(&s);
    for (p = 0; p < n; p++) s.spare[s.order[p]] = p; /* number of the p-th leader; then by the name of the leader */
    for (p = n - 1; p >= 0; p--) m->at[0][m->lead[p]] = s.spare[p];
    for (p = 0; p < pieces; p++) m->lead[p] = m->at[0][m->leader[p]];
    return n;
}

static void fsi__pieces_write(void *arg, int chunk, int begin, int end)
{
    const fsi__pieces *m = (const fsi__pieces *)arg;
    const size_t cells = (size_t)m->grid->block_cells;
    size_t e;
    (void)chunk;
    for (e = (size_t)begin * cells; e < (size_t)end * cells; e++) if (m->label[e] >= 0) m->label[e] = m->lead[m->label[e]];
}

static void fsi__pieces_take(fsi__pieces *m, fsi__arena *a, size_t pieces)
{
    const size_t blocks = (size_t)m->grid->block_count;
    int k;
    m->mask.liquid = (uint64_t *)fsi__take(a, blocks * (size_t)fsi__layers(m->grid), sizeof(uint64_t));
    m->mask.bad = (unsigned char *)fsi__take(a, blocks, 1);
    m->first = (int *)fsi__take(a, blocks + 1, sizeof(int));
    for (k = 0; k < 3; k++) m->at[k] = (int *)fsi__take(a, pieces, sizeof(int));
    m->lead = (int *)fsi__take(a, pieces, sizeof(int));
    m->leader = (int *)fsi__take(a, pieces, sizeof(int));
    m->order = (int *)fsi__take(a, pieces, sizeof(int));
    m->spare = (int *)fsi__take(a, pieces, sizeof(int));
    m->start = (int *)fsi__take(a, 16384 + 1, sizeof(int));
}

/* Scratch, bits and the number of pieces; if they do not fit, once more. */
static fsi_status fsi__pieces_begin(fsi__pieces *m, const char *function)
{
    const fsi_grid *g = m->grid;
    size_t pieces = 0;
    int b;
    for (;;) {
        fsi__arena measure;
        fsi_status status;
        memset(&measure, 0, sizeof measure);
        fsi__pieces_take(m, &measure, pieces);
        status = fsi__grid_room(g, measure.used, function);
        if (status != FSI_OK) return status;
        fsi__pieces_take(m, fsi__grid_scratch(g), pieces);
        status = fsi__mask_make(&m->mask, function);
        if (status != FSI_OK) return status;
        fsi__grid_light(g, 16, 50, fsi__pieces_count, m);
        for (b = 0, m->first[0] = 0; b < g->block_count; b++) m->first[b + 1] += m->first[b];
        if ((size_t)m->first[g->block_count] <= pieces) return FSI_OK;
        pieces = (size_t)m->first[g->block_count];
    }
}

FSI_API fsi_status fsi_grid_label(const fsi_field *phi, const unsigned char *solid, int *label, int *count)
{
    static const char *const f = "fsi_grid_label";
    fsi__pieces m;
    int b, n;
    fsi_status status = fsi__level_set_check(phi, f);
    if (status != FSI_OK) return status;
    if (!label) return fsi__fail(phi->grid->context, FSI_ERROR_ARGUMENT, f, -1, 0, "label is NULL");
    memset(&m, 0, sizeof m);
    m.grid = phi->grid;
    m.mask.field = phi;
    m.mask.solid = solid;
    m.label = label;
    status = fsi__pieces_begin(&m, f);
    if (status != FSI_OK) return status;
    fsi__grid_light(m.grid, 16, 150, fsi__pieces_mark, &m);
    for (b = 0; b < m.grid->block_count; b++) fsi__pieces_touch(&m, b);
    n = fsi__pieces_number(&m);
    fsi__grid_light(m.grid, 16, 200, fsi__pieces_write, &m);
    if (count) *count = n;
    return FSI_OK;
}

/* ---- >>growth --------------------------------------------------------------------------------------------------- */

/* A step reads only labels that were there before it, by their bits, and writes only others. */
typedef struct fsi__growth {
    const fsi_field *phi;
    fsi__mask mask;         /* its bits become those of entries with a label */
    uint64_t *taken;        /* those that get one in this step */
    int *label;
} fsi__growth;

static void fsi__growth_start(void *arg, int chunk, int begin, int end)
{
    const fsi__growth *m = (const fsi__growth *)arg;
    const fsi_grid *g = m->phi->grid;
    const int stay[3] = { 0, 0, 0 };
    int corner[3], b, c, z;
    (void)chunk;
    for (b = begin; b < end; b++) {
        const int *label = m->label + (size_t)b * (size_t)g->block_cells;
        fsi_grid_corner(g, b, corner);
        for (z = 0; z < fsi__layers(g); z++) {
            uint64_t w = 0;
            for (c = 0; c < 64; c++) w |= (uint64_t)(label[z * 64 + c] >= 0) << c;
            fsi__mask_of(m->mask.liquid, g, b)[z] = w & fsi__mask_inside(g, FSI_CELLS, corner, z, stay);
        }
    }
}

/* The label that entry c of block b takes from its neighbours; `beside`: the blocks at fsi__steps, -1: none. */
static int fsi__growth_choose(const fsi__growth *m, int b, const int beside[6], int c)
{
    const fsi_grid *g = m->phi->grid;
    fsi_real least = 0;
    int side, best = -1;
    for (side = 0; side < 2 * g->dim; side++) {
        const long long e = fsi__entry_beside(g, b, beside, c, side);
        fsi_real p;
        if (e < 0 || !fsi__mask_at(m->mask.liquid, (size_t)e)) continue;
        p = m->phi->value[e];
        if (best >= 0 && (p > least || (!(p < least) && m->label[e] >= best))) continue;
        best = m->label[e];
        least = p;
    }
    return best;
}

static void fsi__growth_step(void *arg, int chunk, int begin, int end)
{
    const fsi__growth *m = (const fsi__growth *)arg;
    const fsi_grid *g = m->phi->grid;
    const int stay[3] = { 0, 0, 0 };
    int corner[3], b, c, side, z, beside[6];
    (void)chunk;
    for (b = begin; b < end; b++) {
        fsi_grid_corner(g, b, corner);
        fsi__blocks_beside(g, b, beside);
        for (z = 0; z < fsi__layers(g); z++) {
            uint64_t w = 0;
            for (side = 0; side < 2 * g->dim; side++) w |= fsi__mask_beside(g, m->mask.liquid, b, beside[side], z, side);
            w &= fsi__mask_inside(g, FSI_CELLS, corner, z, stay) & ~fsi__mask_of(m->mask.liquid, g, b)[z];
            fsi__mask_of(m->taken, g, b)[z] = w;
            for (c = 0; c < 64 && w >> c; c++)
                if (w >> c & 1) m->label[(size_t)b * (size_t)g->block_cells + (size_t)(z * 64 + c)] = fsi__growth_choose(m, b, beside, z * 64 + c);
        }
    }
}

static void fsi__growth_take(fsi__growth *m, fsi__arena *a)
{
    const size_t blocks = (size_t)m->phi->grid->block_count, words = blocks * (size_t)fsi__layers(m->phi->grid);
    m->mask.liquid = (uint64_t *)fsi__take(a, words, sizeof(uint64_t));
    m->mask.bad = (unsigned char *)fsi__take(a, blocks, 1);
    m->taken = (uint64_t *)fsi__take(a, words, sizeof(uint64_t));
}

FSI_API fsi_status fsi_grid_grow_labels(int *label, const fsi_field *phi, int layers)
{
    static const char *const f = "fsi_grid_grow_labels";
    const fsi_grid *g;
    fsi__arena measure;
    fsi__growth m;
    size_t k, words;
    fsi_status status = fsi__level_set_check(phi, f);
    if (status != FSI_OK) return status;
    g = phi->grid;
    if (!label) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, 0, "label is NULL");
    if (layers < 0 || layers > 64) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, layers, "layers is %d, not 0 to 64", layers);
    memset(&m, 0, sizeof m);
    memset(&measure, 0, sizeof measure);
    m.phi = m.mask.field = phi;
    m.label = label;
    fsi__growth_take(&m, &measure);
    status = fsi__grid_room(g, measure.used, f);
    if (status != FSI_OK) return status;
    fsi__growth_take(&m, fsi__grid_scratch(g));
    status = fsi__mask_make(&m.mask, f);
    if (status != FSI_OK) return status;
    words = (size_t)g->block_count * (size_t)fsi__layers(g);
    fsi__grid_light(g, 16, 300, fsi__growth_start, &m);
    for (; layers > 0; layers--) {
        fsi__grid_light(g, 16, 250, fsi__growth_step, &m);
        for (k = 0; k < words; k++) m.mask.liquid[k] |= m.taken[k];
    }
    return FSI_OK;
}

/* ---- >>volumes -------------------------------------------------------------------------------------------------- */

/* phi is linear in each of the 6 tetrahedra that the diagonal from (0,0,0) to (1,1,1) cuts a cube between 8 cell centres into, and its
   liquid part, a tetrahedron or a prism (3 tetrahedra), has closed forms (Kuhn, IBM J. 4 (1960); spec: marching tetrahedra). In 2D the cube is
   one layer thick with the same values above and below, which gives the two triangles' own numbers.

   Cube (I, J, K) lies between the cells I - 1 and I of each axis. It counts for the last of the blocks that hold its 8 cells, so each counts once
   whichever blocks exist. In the box the first and the last cubes of an axis reach from a wall to half a cell, and phi goes on to the wall as it runs
   between the last two centres: a film that thins away on a wall loses its volume steadily, and not half a cell at once. */
typedef struct fsi__sums {
    int label;
    double volume, area, moment[3], momentum[3], lo[3], hi[3]; /* in cells; momentum: volume times [m/s] */
    double cells;
} fsi__sums;

#define FSI__SUM_SLOTS 4

typedef struct fsi__marching {
    const fsi_field *phi;
    fsi_field *u[3];
    const fsi_field *solid;
    const int *label;
    int count, with_u;
    fsi__mask mask;
    fsi__sums *slot;        /* FSI__SUM_SLOTS a block */
    unsigned char *used;    /* slots that a block took; FSI__SUM_SLOTS + 1: too few, it is done again when the sums are folded */
    fsi__sums *total;       /* count */
} fsi__marching;

/* What one block works on. */
typedef struct fsi__march {
    const fsi__marching *all;
    int block, corner[3], overflow;
    int cut;                           /* 1: a solid takes up part of some cell in or around the block */
    fsi__sums *only;                   /* when all liquid around bears one label: its sums */
    double lower[3][9], width[3][9];   /* of the cubes along each axis: lower corner from that of the box, edge; width 0: none there */
    fsi_real phi[1000], share[1000];   /* gathered, 1 cell around; share of a cell that is no solid, when cut */
    double u[3][1000];                 /* likewise, when asked for: velocity, the mean of a cell's faces */
} fsi__march;

static void fsi__sums_clear(fsi__sums *s, int label)
{
    int a;
    memset(s, 0, sizeof *s);
    s->label = label;
    for (a = 0; a < 3; a++) {
        s->lo[a] = 1e30;
        s->hi[a] = -1e30;
    }
}

/* The block's sums for a label; NULL: it is none of 0 .. count - 1, or there is no slot left. */
static fsi__sums *fsi__march_sums(fsi__march *m, int label)
{
    const fsi__marching *all = m->all;
    fsi__sums *s = all->slot + (size_t)m->block * FSI__SUM_SLOTS;
    const int used = all->used[m->block];
    int k;
    if (label < 0 || label >= all->count) return NULL;
    if (m->overflow) return all->total + label; /* second time, on one thread */
    for (k = 0; k < used && k < FSI__SUM_SLOTS; k++) if (s[k].label == label) return s + k;
    all->used[m->block] = (unsigned char)(used <= FSI__SUM_SLOTS ? used + 1 : used);
    if (used >= FSI__SUM_SLOTS) return NULL;
    fsi__sums_clear(s + used, label);
    return s + used;
}

static void fsi__sums_reach(fsi__sums *s, const double x[3])
{
    int a;
    for (a = 0; a < 3; a++) {
        if (x[a] < s->lo[a]) s->lo[a] = x[a];
        if (x[a] > s->hi[a]) s->hi[a] = x[a];
    }
}

/* One cube: corner c is at lower + (c & 1, c >> 1 & 1, c >> 2) width; its sums are those of its cell's label, NULL: none. */
typedef struct fsi__cube {
    double lower[3], width[3], phi[8], u[8][3], share[8];
    double weight[8];   /* liquid as sum of weight times corner, which holds its volume and its first moment, 24 times */
    double area;
    fsi__sums *sums[8];
    int single;         /* all liquid corners share their sums: `weight` and `area` collect all */
    int cut;            /* share is not 1 at all corners */
} fsi__cube;

static void fsi__cube_corner(const fsi__cube *q, int c, double x[3])
{
    x[0] = q->lower[0] + (c & 1 ? q->width[0] : 0);
    x[1] = q->lower[1] + (c & 2 ? q->width[1] : 0);
    x[2] = q->lower[2] + (c & 4 ? q->width[2] : 0);
}

static void fsi__sums_add(fsi__sums *s, double volume, const double x[3], const double u[3])
{
    int a;
    s->volume += volume;
    for (a = 0; a < 3; a++) {
        s->moment[a] += volume * x[a];
        s->momentum[a] += volume * u[a];
    }
}

/* A tetrahedron of liquid: its share of that between the corners v, and four times the barycentric coordinates of its centre in that. */
static void fsi__cube_piece(fsi__cube *q, const int v[4], int n, double share, double m0, double m1, double m2, double m3)
{
    const double m[4] = { m0, m1, m2, m3 }, clear = !q->cut ? 1 : (m0 * q->share[v[0]] + m1 * q->share[v[1]] + m2 * q->share[v[2]] + m3 * q->share[v[3]]) / 4;
    const double volume = clear * share / 6 * q->width[0] * q->width[1] * q->width[2];
    double x[3] = { 0, 0, 0 }, y[3];
    int a, k;
    for (k = 0; k < 4 && q->single; k++) q->weight[v[k]] += share * m[k];
    if (q->single) return;
    for (k = 0; k < 4; k++) {
        fsi__cube_corner(q, v[k], y);
        for (a = 0; a < 3; a++) x[a] += m[k] * y[a] / 4;
    }
    for (k = 0; k < n; k++) {
        fsi__sums *s = q->sums[v[k]];
        if (!s || !(volume > 0)) continue;
        fsi__sums_add(s, volume / n, x, q->u[v[k]]);
        fsi__sums_reach(s, x);
    }
}

/* The liquid in the tetrahedron between four corners. With t the cuts of its edges, as shares of them from the liquid end, liquid are

      1 corner:  a, ab, ac, ad;   2: the prism (a, ac, ad), (b, bc, bd);   3: the prism (a, b, c), (ad, bd, cd)

   and the area of the cut is |grad phi| times the rate at which the volume grows with the level. */
static void fsi__cube_tetrahedron(fsi__cube *q, const int corner[4])
{
    /* for each set of liquid corners: how many, and all corners, liquid ones first */
    static const unsigned char sorted[16][5] = { { 0, 0, 1, 2, 3 }, { 1, 0, 1, 2, 3 }, { 1, 1, 0, 2, 3 }, { 2, 0, 1, 2, 3 }, { 1, 2, 0, 1, 3 }, { 2, 0, 2, 1, 3 },
                                                 { 2, 1, 2, 0, 3 }, { 3, 0, 1, 2, 3 }, { 1, 3, 0, 1, 2 }, { 2, 0, 3, 1, 2 }, { 2, 1, 3, 0, 2 }, { 3, 0, 1, 3, 2 },
                                                 { 2, 2, 3, 0, 1 }, { 3, 0, 2, 3, 1 }, { 3, 1, 2, 3, 0 }, { 4, 0, 1, 2, 3 } };
    double f[4], t[4], rate = 0, slope = 0;
    int v[4], n, set = 0, k;
    for (k = 0; k < 4; k++) set |= (q->phi[corner[k]] < 0) << k;
    n = sorted[set][0];
    for (k = 0; k < 4; k++) {
        v[k] = corner[sorted[set][1 + k]];
        f[k] = q->phi[v[k]];
    }
    if (n == 0) return;
    if (n == 4) fsi__cube_piece(q, v, n, 1, 1, 1, 1, 1);
    if (n == 4) return;
    if (n == 1) {
        for (k = 1; k < 4; k++) t[k] = f[0] / (f[0] - f[k]);
        fsi__cube_piece(q, v, n, t[1] * t[2] * t[3], 4 - t[1] - t[2] - t[3], t[1], t[2], t[3]);
        rate = -3 * t[1] * t[2] * t[3] / f[0];
    } else if (n == 2) {
        const double ac = 1 / (f[2] - f[0]), ad = 1 / (f[3] - f[0]), bc = 1 / (f[2] - f[1]), bd = 1 / (f[3] - f[1]); /* rates of: */
        const double p = -f[0] * ac, r = -f[0] * ad, s = -f[1] * bc, w = -f[1] * bd;
        fsi__cube_piece(q, v, n, p * r, 3 - p - r, 1, p, r);
        fsi__cube_piece(q, v, n, (1 - p) * r * s, 2 - p - r, 2 - s, p + s, r);
        fsi__cube_piece(q, v, n, (1 - r) * s * w, 1 - r, 3 - s - w, s, r + w);
        rate = ac * r * (1 - s) + ad * (p + s * (1 - p) - s * w) + bc * (r * (1 - p) + w * (1 - r)) + bd * s * (1 - r);
    } else {
        for (k = 0; k < 3; k++) t[k] = f[k] / (f[k] - f[3]);
        fsi__cube_piece(q, v, n, t[0], 2 - t[0], 1, 1, t[0]);
        fsi__cube_piece(q, v, n, (1 - t[0]) * t[1], 1 - t[0], 2 - t[1], 1, t[0] + t[1]);
        fsi__cube_piece(q, v, n, (1 - t[0]) * (1 - t[1]) * t[2], 1 - t[0], 1 - t[1], 2 - t[2], t[0] + t[1] + t[2]);
        rate = 3 * (1 - t[0]) * (1 - t[1]) * (1 - t[2]) / f[3];
    }
    for (k = 0; k < 3; k++) { /* from corner to corner along one axis each */
        const double d = (q->phi[corner[k + 1]] - q->phi[corner[k]]) / q->width[(corner[k + 1] - corner[k]) >> 1];
        slope += d * d;
    }
    rate *= sqrt(slope) / 6 * q->width[0] * q->width[1] * q->width[2] * (q->share[v[0]] + q->share[v[1]] + q->share[v[2]] + q->share[v[3]]) / 4;
    q->area += rate;
    for (k = 0; k < n && !q->single; k++) if (q->sums[v[k]]) q->sums[v[k]]->area += rate / n;
}

/* The corners and cuts of a cube that stands out of what its sums have reached so far. */
static void fsi__cube_reach(const fsi__cube *q)
{
    double x[3], y[3];
    int a, c, d;
    for (c = 0; c < 8; c++) {
        fsi__sums *s = q->sums[c];
        if (!(q->phi[c] < 0) || !(q->share[c] > 0) || !s) continue;
        fsi__cube_corner(q, c, x);
        for (a = 0; a < 3 && q->lower[a] >= s->lo[a] && q->lower[a] + q->width[a] <= s->hi[a]; a++) continue;
        if (a == 3) continue;
        fsi__sums_reach(s, x);
        for (d = 0; d < 8; d++) { /* edges go from a corner to one that has all its bits and more */
            if (q->phi[d] < 0 || ((c & d) != c && (c & d) != d)) continue;
            fsi__cube_corner(q, d, y);
            for (a = 0; a < 3; a++) y[a] = x[a] + q->phi[c] / (q->phi[c] - q->phi[d]) * (y[a] - x[a]);
            fsi__sums_reach(s, y);
        }
    }
}

/* phi to where products of its differences and of their reciprocals neither overflow nor vanish. */
static void fsi__cube_scale(fsi__cube *q)
{
    double most = 1e-300;
    int c;
    for (c = 0; c < 8; c++) if (fabs(q->phi[c]) > most) most = fabs(q->phi[c]);
    most = 1 / most;
    for (c = 0; c < 8; c++) {
        const double f = q->phi[c] * most;
        q->phi[c] = q->phi[c] < 0 ? (f < -1e-90 ? f : -1e-90) : (f > 1e-90 ? f : 1e-90);
    }
}

static void fsi__cube_run(fsi__cube *q, int full)
{
    static const int corner[6][4] = { { 0, 1, 3, 7 }, { 0, 1, 5, 7 }, { 0, 2, 3, 7 }, { 0, 2, 6, 7 }, { 0, 4, 5, 7 }, { 0, 4, 6, 7 } };
    const double *w = q->weight, volume = q->width[0] * q->width[1] * q->width[2];
    fsi__sums *s = NULL;
    double x[3], u[3] = { 0, 0, 0 }, sum, wet = 0;
    int c, k;
    for (c = 0; c < 8; c++) if (q->phi[c] < 0 && q->sums[c]) s = q->sums[c];
    if (!s) return;
    if (full && q->single && !q->cut) {
        for (k = 0; k < 3; k++) {
            x[k] = q->lower[k] + q->width[k] / 2;
            u[k] = (q->u[0][k] + q->u[1][k] + q->u[2][k] + q->u[3][k] + q->u[4][k] + q->u[5][k] + q->u[6][k] + q->u[7][k]) / 8;
        }
        fsi__sums_add(s, volume, x, u);
    } else {
        for (c = 0; c < 8; c++) q->weight[c] = 0;
        q->area = 0;
        fsi__cube_scale(q);
        for (k = 0; k < 6; k++) fsi__cube_tetrahedron(q, corner[k]);
        for (c = 0; c < 8; c++) q->weight[c] *= q->share[c];
        sum = w[0] + w[1] + w[2] + w[3] + w[4] + w[5] + w[6] + w[7];
        if (q->single && sum > 0) {
            x[0] = q->lower[0] + q->width[0] * ((w[1] + w[3] + w[5] + w[7]) / sum);
            x[1] = q->lower[1] + q->width[1] * ((w[2] + w[3] + w[6] + w[7]) / sum);
            x[2] = q->lower[2] + q->width[2] * ((w[4] + w[5] + w[6] + w[7]) / sum);
            for (c = 0; c < 8; c++) {
                if (!(q->phi[c] < 0)) continue;
                for (k = 0, wet += w[c]; k < 3; k++) u[k] += w[c] * q->u[c][k];
            }
            for (k = 0; k < 3 && wet > 0; k++) u[k] /= wet;
            fsi__sums_add(s, volume * sum / 24, x, u);
            s->area += q->area;
        }
    }
    for (k = 0; k < 3 && q->single && q->lower[k] >= s->lo[k] && q->lower[k] + q->width[k] <= s->hi[k]; k++) continue;
    if (k < 3) fsi__cube_reach(q);
}

/* The sums of the label of the cell of corner c of cube l. */
static fsi__sums *fsi__march_corner(fsi__march *m, const int l[3], int c)
{
    const fsi__marching *all = m->all;
    const fsi_grid *g = all->phi->grid;
    int cell[3], a;
    long long e;
    for (a = 0; a < 3; a++) {
        cell[a] = l[a] - 1 + (c >> a & 1);
        if (cell[a] > g->n[a] - 1 - m->corner[a]) cell[a] = g->n[a] - 1 - m->corner[a];
        if (cell[a] < -m->corner[a]) cell[a] = -m->corner[a];
    }
    if ((unsigned)cell[0] < 8 && (unsigned)cell[1] < 8 && (unsigned)cell[2] < 8)
        e = (long long)m->block * g->block_cells + (cell[2] * 8 + cell[1]) * 8 + cell[0];
    else e = fsi_grid_entry(g, m->corner[0] + cell[0], m->corner[1] + cell[1], m->corner[2] + cell[2]);
    return e < 0 ? NULL : fsi__march_sums(m, all->label ? all->label[e] : 0);
}

/* Velocities of the cells in and around the block. */
static void fsi__march_velocities(fsi__march *m, int axis)
{
    static const int step[3] = { 1, 10, 100 };
    const fsi_grid *g = m->all->phi->grid;
    const int lo[3] = { m->corner[0] - 1, m->corner[1] - 1, g->dim == 3 ? m->corner[2] - 1 : 0 };
    int n[3] = { 10, 10, 1 }, x, y, z, beside;
    fsi_real face[1100];
    if (g->dim == 3) n[2] = 10;
    n[axis]++;
    beside = axis == 0 ? 1 : (axis == 1 ? n[0] : n[0] * n[1]);
    fsi__grid_gather_box(m->all->u[axis], lo, n, face);
    for (z = 0; z < (g->dim == 3 ? 10 : 1); z++)
        for (y = 0; y < 10; y++) {
            const fsi_real *f = face + (z * n[1] + y) * n[0];
            for (x = 0; x < 10; x++) m->u[axis][z * step[2] + y * step[1] + x] = ((double)f[x] + (double)f[x + beside]) / 2;
        }
}

/* Does block b own the cubes of region r of each axis, 0: the first, shared with the block before, 1: those inside, 2: that shared with the next? */
static int fsi__march_owns(const fsi__march *m, int rx, int ry, int rz)
{
    const fsi_grid *g = m->all->phi->grid;
    const int r[3] = { rx, ry, rz };
    int d[3], lo[3], hi[3], a;
    for (a = 0; a < 3; a++) {
        lo[a] = r[a] == 0 ? -1 : 0;
        hi[a] = r[a] == 2 && m->corner[a] + 8 < g->n[a];
    }
    for (d[2] = lo[2]; d[2] <= hi[2]; d[2]++)
        for (d[1] = lo[1]; d[1] <= hi[1]; d[1]++)
            for (d[0] = lo[0]; d[0] <= hi[0]; d[0]++)
                if ((d[2] > 0 || (d[2] == 0 && (d[1] > 0 || (d[1] == 0 && d[0] > 0)))) && fsi__block_beside(g, m->block, d) >= 0) return 0;
    return 1;
}

/* Where the cubes of the block lie along each axis. */
static void fsi__march_axes(fsi__march *m)
{
    const fsi_grid *g = m->all->phi->grid;
    int a, l;
    memset(m->width, 0, sizeof m->width);
    for (a = 0; a < 3; a++)
        for (l = 0; l < 9; l++) {
            const int i = m->corner[a] + l;
            if (i > g->n[a] || (a >= g->dim && l > 0)) continue;
            m->lower[a][l] = i == 0 ? 0 : i - 0.5;
            m->width[a][l] = a >= g->dim ? 1 : (i == 0 || i == g->n[a] ? 0.5 : 1);
        }
}

/* 0: no liquid in the blocks around, 1: some, 2: nothing else, and all of them exist. */
static int fsi__march_kind(const fsi__march *m)
{
    const fsi_grid *g = m->all->phi->grid;
    const int layers = fsi__layers(g), deep = g->dim == 3;
    uint64_t some = 0, every = ~(uint64_t)0;
    int d[3], z, b;
    for (d[2] = -deep; d[2] <= deep; d[2]++)
        for (d[1] = -1; d[1] <= 1; d[1]++)
            for (d[0] = -1; d[0] <= 1; d[0]++) {
                b = fsi__block_beside(g, m->block, d);
                if (b < 0) every = 0;
                else for (z = 0; z < layers; z++) {
                    some |= fsi__mask_of(m->all->mask.liquid, g, b)[z];
                    every &= fsi__mask_of(m->all->mask.liquid, g, b)[z];
                }
            }
    return some == 0 ? 0 : (every == ~(uint64_t)0 ? 2 : 1);
}

/* The cubes of a block that lies among liquid only: one box. */
static void fsi__march_deep(fsi__march *m, fsi__sums *s)
{
    const fsi_grid *g = m->all->phi->grid;
    double lo[3] = { 0, 0, 0 }, hi[3] = { 1, 1, 1 };
    int a;
    for (a = 0; a < g->dim; a++) {
        lo[a] = m->corner[a] - 0.5;
        hi[a] = m->corner[a] + 7.5;
    }
    for (a = 0; a < 3; a++) s->moment[a] += g->block_cells * (lo[a] + hi[a]) / 2;
    s->volume += g->block_cells;
    fsi__sums_reach(s, lo);
    fsi__sums_reach(s, hi);
}

/* Cube l of the block, of which `full` says whether all corners are liquid; v: its first corner in the gathered box. */
static void fsi__march_cube(fsi__march *m, const int l[3], const fsi_real *v, int full, fsi__cube *q)
{
    const int sz = m->all->phi->grid->dim == 3 ? 100 : 0;
    int c, first = -1, a;
    q->single = 1;
    q->cut = 0;
    for (c = 0; c < 3; c++) {
        q->lower[c] = m->lower[c][l[c]];
        q->width[c] = m->width[c][l[c]];
    }
    for (c = 0; c < 8; c++) {
        q->phi[c] = (double)v[(c & 1) + (c >> 1 & 1) * 10 + (c >> 2) * sz];
        q->share[c] = m->cut ? (double)m->share[v - m->phi + (c & 1) + (c >> 1 & 1) * 10 + (c >> 2) * sz] : 1;
        q->cut |= q->share[c] < 1;
        q->sums[c] = q->phi[c] < 0 ? m->only : NULL;
        if (!(q->phi[c] < 0)) continue;
        for (a = 0; a < m->all->phi->grid->dim && m->all->with_u; a++) q->u[c][a] = m->u[a][v - m->phi + (c & 1) + (c >> 1 & 1) * 10 + (c >> 2) * sz];
        if (m->only) continue;
        q->sums[c] = fsi__march_corner(m, l, c);
        if (first < 0) first = c;
        if (q->sums[c] != q->sums[first]) q->single = 0;
    }
    fsi__cube_run(q, full);
}

/* Sum over the whole cubes of a row of the means of their corners' velocities; v: first corner of the row in the gathered box. */
static void fsi__march_whole(const fsi__march *m, int v, const unsigned char whole[9], double u[3])
{
    const int dim = m->all->phi->grid->dim, sz = dim == 3 ? 100 : 0;
    int a, k;
    for (a = 0; a < dim; a++) {
        const double *p = m->u[a] + v;
        double four[10];
        for (k = 0; k < 10; k++) four[k] = p[k] + p[k + 10] + p[k + sz] + p[k + sz + 10];
        for (k = 0; k < 9; k++) u[a] += whole[k] ? (four[k] + four[k + 1]) / 8 : 0;
    }
}

/* The cubes of a row along x. Whole ones in the midst of one component are added up first. */
static void fsi__march_row(fsi__march *m, int l[3], const int owns[27], fsi__cube *q)
{
    const int sz = m->all->phi->grid->dim == 3 ? 100 : 0, region = 3 * ((l[1] > 0) + (l[1] > 7)) + 9 * ((l[2] > 0) + (l[2] > 7));
    const fsi_real *v = m->phi + l[1] * 10 + l[2] * sz;
    const double breadth = m->width[1][l[1]] * m->width[2][l[2]];
    unsigned char is_whole[9] = { 0 };
    int liquid[10], n, k, whole = 0, sum = 0;
    double x[3], u[3] = { 0, 0, 0 };
    if (breadth == 0) return;
    for (k = 0; k < 10; k++) liquid[k] = (v[k] < 0) + (v[k + 10] < 0) + (v[k + sz] < 0) + (v[k + sz + 10] < 0);
    for (k = 0; k < 9; k++) {
        n = liquid[k] + liquid[k + 1];
        if (n == 0 || !owns[region + (k > 0) + (k > 7)] || m->width[0][k] == 0) continue;
        if (n == 8 && m->only && !m->cut && m->width[0][k] * breadth == 1) {
            is_whole[k] = 1;
            whole++;
            sum += k;
            continue;
        }
        l[0] = k;
        fsi__march_cube(m, l, v + k, n == 8, q);
    }
    if (!whole) return;
    x[0] = m->corner[0] + (double)sum / whole;
    for (k = 1; k < 3; k++) x[k] = m->lower[k][l[k]] + m->width[k][l[k]] / 2;
    if (m->all->with_u) fsi__march_whole(m, (int)(v - m->phi), is_whole, u);
    for (k = 0; k < 3; k++) u[k] /= whole;
    fsi__sums_add(m->only, whole, x, u);
}

static void fsi__march_cubes(fsi__march *m)
{
    const int top = m->all->phi->grid->dim == 3 ? 8 : 0;
    int l[3], c, owns[27];
    fsi__cube q;
    memset(&q, 0, sizeof q);
    for (c = 0; c < 27; c++) owns[c] = fsi__march_owns(m, c % 3, c / 3 % 3, c / 9);
    for (l[2] = 0; l[2] <= top; l[2]++)
        for (l[1] = 0; l[1] <= 8; l[1]++) fsi__march_row(m, l, owns, &q);
}

/* The label of all liquid cells in and around the block, -1 if they differ or have none. */
static int fsi__march_label(const fsi__march *m)
{
    const fsi__marching *all = m->all;
    const fsi_grid *g = all->phi->grid;
    const int deep = g->dim == 3, layers = fsi__layers(g);
    int d[3], x, y, z, b, label = -2;
    if (!all->label) return 0;
    for (d[2] = -deep; d[2] <= deep; d[2]++)
        for (d[1] = -1; d[1] <= 1; d[1]++)
            for (d[0] = -1; d[0] <= 1; d[0]++) {
                b = fsi__block_beside(g, m->block, d);
                if (b < 0) continue;
                for (z = d[2] < 0 ? 7 : 0; z < (d[2] > 0 ? 1 : layers); z++) {
                    const int *l = all->label + (size_t)b * (size_t)g->block_cells + (size_t)z * 64;
                    const uint64_t w = fsi__mask_of(all->mask.liquid, g, b)[z];
                    for (y = d[1] < 0 ? 7 : 0; w && y < (d[1] > 0 ? 1 : 8); y++)
                        for (x = d[0] < 0 ? 7 : 0; x < (d[0] > 0 ? 1 : 8); x++) {
                            if (!(w >> (8 * y + x) & 1) || l[8 * y + x] == label) continue;
                            if (label != -2) return -1;
                            label = l[8 * y + x];
                        }
                }
            }
    return label;
}

/* What solids leave of the cells in and around the block. */
static void fsi__march_share(fsi__march *m)
{
    const fsi_grid *g = m->all->phi->grid;
    int c;
    m->cut = 0;
    if (!m->all->solid) return;
    fsi__grid_gather(m->all->solid, m->block, 1, m->share);
    for (c = 0; c < (g->dim == 3 ? 1000 : 100); c++) {
        const double share = 0.5 + (double)m->share[c] / (double)g->dx;
        m->share[c] = (fsi_real)(share > 1 ? 1 : (share > 0 ? share : 0));
        m->cut |= share < 1;
    }
}

/* The gathered layers beyond the box become those at its walls. */
static void fsi__march_walls(fsi__march *m)
{
    static const int stride[3] = { 1, 10, 100 };
    const fsi_grid *g = m->all->phi->grid;
    const int size[3] = { 10, 10, g->dim == 3 ? 10 : 1 };
    int a, side, i, j;
    for (a = 0; a < g->dim; a++)
        for (side = 0; side < 2; side++) {
            const int p = (a + 1) % 3, q = (a + 2) % 3, wall = side ? g->n[a] + 1 - m->corner[a] : -m->corner[a], in = side ? -stride[a] : stride[a];
            if (wall < 0 || wall > 9 || g->n[a] < 2) continue;
            for (j = 0; j < size[q]; j++)
                for (i = 0; i < size[p]; i++) {
                    fsi_real *v = m->phi + wall * stride[a] + i * stride[p] + j * stride[q];
                    *v = (3 * v[in] - v[2 * in]) / 2;
                }
        }
}

/* The sums of block b. */
static void fsi__march_block(fsi__march *m, int b)
{
    const fsi__marching *all = m->all;
    const fsi_grid *g = all->phi->grid;
    const size_t own = (size_t)b * (size_t)g->block_cells;
    fsi__sums *s;
    int a, c, kind, one;
    m->block = b;
    all->used[b] = 0;
    fsi_grid_corner(g, b, m->corner);
    for (a = 0; a < 3; a++) if (m->corner[a] >= g->n[a]) return;
    kind = fsi__march_kind(m);
    if (kind == 0) return;
    one = fsi__march_label(m);
    m->only = one >= 0 ? fsi__march_sums(m, one) : NULL;
    for (c = 0; c < fsi__layers(g) && m->only; c++) m->only->cells += fsi__mask_count(fsi__mask_of(all->mask.liquid, g, b)[c]);
    for (c = 0; c < g->block_cells && !m->only; c++) {
        if (!fsi__mask_at(all->mask.liquid, own + (size_t)c)) continue;
        s = fsi__march_sums(m, all->label ? all->label[own + (size_t)c] : 0);
        if (s) s->cells++;
    }
    fsi__march_share(m);
    if (kind == 2 && m->only && !all->with_u && !m->cut) {
        fsi__march_deep(m, m->only);
        return;
    }
    fsi__march_axes(m);
    fsi__grid_gather(all->phi, b, 1, m->phi);
    fsi__march_walls(m);
    for (a = 0; a < g->dim && all->with_u; a++) fsi__march_velocities(m, a);
    fsi__march_cubes(m);
}

static void fsi__march_blocks(void *arg, int chunk, int begin, int end)
{
    fsi__march m;
    int b;
    (void)chunk;
    m.all = (const fsi__marching *)arg;
    m.overflow = 0;
    for (b = begin; b < end; b++) fsi__march_block(&m, b);
}

/* total = the sums of all blocks, in ascending order. */
static void fsi__marching_fold(const fsi__marching *all)
{
    fsi__march m;
    int b, k, a;
    m.all = all;
    m.overflow = 1;
    for (k = 0; k < all->count; k++) fsi__sums_clear(all->total + k, k);
    for (b = 0; b < all->phi->grid->block_count; b++) {
        if (all->used[b] > FSI__SUM_SLOTS) {
            fsi__march_block(&m, b);
            continue;
        }
        for (k = 0; k < all->used[b]; k++) {
            const fsi__sums *s = all->slot + (size_t)b * FSI__SUM_SLOTS + k;
            fsi__sums *t = all->total + s->label;
            t->volume += s->volume;
            t->area += s->area;
            t->cells += s->cells;
            for (a = 0; a < 3; a++) {
                t->moment[a] += s->moment[a];
                t->momentum[a] += s->momentum[a];
                if (s->lo[a] < t->lo[a]) t->lo[a] = s->lo[a];
                if (s->hi[a] > t->hi[a]) t->hi[a] = s->hi[a];
            }
        }
    }
}

static fsi_vec3 fsi__sums_point(const fsi_grid *g, const double x[3], double scale)
{
    return fsi_v3((fsi_real)((double)g->origin.x + x[0] * scale), (fsi_real)((double)g->origin.y + x[1] * scale),
                  g->dim == 2 ? 0 : (fsi_real)((double)g->origin.z + x[2] * scale));
}

static fsi_grid_component fsi__sums_component(const fsi_grid *g, const fsi__sums *s)
{
    const double dx = (double)g->dx, area = g->dim == 3 ? dx * dx : dx, *p = s->momentum;
    fsi_grid_component c;
    memset(&c, 0, sizeof c);
    c.cells = (int)s->cells;
    c.volume = s->volume * area * dx;
    c.area = s->area * area;
    if (!(s->volume > 0)) return c;
    c.momentum = fsi_v3((fsi_real)(p[0] * area * dx), (fsi_real)(p[1] * area * dx), (fsi_real)(p[2] * area * dx));
    c.centroid = fsi__sums_point(g, s->moment, dx / s->volume);
    c.box.lo = fsi__sums_point(g, s->lo, dx);
    c.box.hi = fsi__sums_point(g, s->hi, dx);
    return c;
}

static void fsi__marching_take(fsi__marching *m, fsi__arena *a)
{
    const size_t blocks = (size_t)m->phi->grid->block_count;
    m->mask.liquid = (uint64_t *)fsi__take(a, blocks * (size_t)fsi__layers(m->phi->grid), sizeof(uint64_t));
    m->mask.bad = (unsigned char *)fsi__take(a, blocks, 1);
    m->used = (unsigned char *)fsi__take(a, blocks, 1);
    m->slot = (fsi__sums *)fsi__take(a, blocks * FSI__SUM_SLOTS, sizeof(fsi__sums));
    m->total = (fsi__sums *)fsi__take(a, (size_t)m->count, sizeof(fsi__sums));
}

static fsi_status fsi__marching_check(const fsi__marching *m, fsi_field *const u[3], const fsi_grid_component *out, const char *function)
{
    fsi_context *context = m->phi->grid->context;
    int a;
    if (m->count < 0) return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, m->count, "count is %d, below 0", m->count);
    if (!out && m->count > 0) return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "out is NULL");
    if (m->solid && !fsi__is_field(m->solid)) return FSI_ERROR_COOKIE;
    if (m->solid && (m->solid->grid != m->phi->grid || m->solid->place != FSI_CELLS))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "solid is not a field of cells of phi's grid");
    for (a = 0; a < m->phi->grid->dim && u; a++) {
        if (!fsi__is_field(u[a])) return FSI_ERROR_COOKIE;
        if (u[a]->grid != m->phi->grid || (int)u[a]->place != (int)FSI_FACES_X + a)
            return fsi__fail(context, FSI_ERROR_ARGUMENT, function, a, 0, "u[%d] is not the field of these faces of phi's grid", a);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_grid_volumes(const fsi_field *phi, const int *label, int count, fsi_field *const u[3], const fsi_field *solid, fsi_grid_component *out)
{
    static const char *const f = "fsi_grid_volumes";
    fsi__marching m;
    fsi__arena measure;
    int a, b, k, sound = 1;
    fsi_status status = fsi__level_set_check(phi, f);
    if (status != FSI_OK) return status;
    memset(&m, 0, sizeof m);
    memset(&measure, 0, sizeof measure);
    m.phi = m.mask.field = phi;
    m.label = label;
    m.solid = solid;
    m.count = count;
    m.with_u = u != NULL;
    status = fsi__marching_check(&m, u, out, f);
    if (status != FSI_OK || count == 0) return status;
    for (a = 0; a < phi->grid->dim && u; a++) m.u[a] = u[a];
    fsi__marching_take(&m, &measure);
    status = fsi__grid_room(phi->grid, measure.used, f);
    if (status != FSI_OK) return status;
    fsi__marching_take(&m, fsi__grid_scratch(phi->grid));
    status = fsi__mask_make(&m.mask, f);
    if (status != FSI_OK) return status;
    fsi__grid_light(phi->grid, 4, 2000, fsi__march_blocks, &m);
    fsi__marching_fold(&m);
    for (k = 0; k < count; k++) for (a = 0; a < 3; a++) sound &= fsi_is_finite(m.total[k].momentum[a]);
    for (b = 0; b < phi->grid->block_count && !sound; b++)
        for (a = 0; a < phi->grid->dim && u; a++) {
            status = fsi__grid_name_bad(phi->grid->context, u[a], b, "u", f);
            if (status != FSI_OK) return status;
        }
    if (!sound) return fsi__fail(phi->grid->context, FSI_ERROR_NAN, f, -1, 0, "the momentum overflows");
    for (k = 0; k < count; k++) out[k] = fsi__sums_component(phi->grid, m.total + k);
    return FSI_OK;
}

/* ---- >>shapes --------------------------------------------------------------------------------------------------- */

/* A shape is its signed distance d, negative inside. As |d(x) - d(y)| <= |x - y|, one look at the middle of a box of points tells, when it
   is further from the surface than half the box's diagonal r, on which side all of them are:

       . . . .            |d| >= r + limit: all values are beyond the limit, with the sign of d
       . . . .  ---r--    else the box is cut in eight, and so on down to single points
       . . . .  |d|   \
       . . . .         )  surface

   `hint` is the face or particle nearest to the last point looked at. Where the next search starts from, it is near the best already.
   A mesh whose faces are not much smaller than cells is faster from the other end: each face goes to the points that it may be nearest to. */
typedef struct fsi__shape fsi__shape;
struct fsi__shape {
    fsi_real (*distance)(const fsi__shape *s, fsi_vec3 x, int *hint);
    fsi_box3 box;             /* where it is negative; of an analytic box the box itself */
    fsi_vec3 center;
    fsi_real radius;
    fsi_real sign;            /* -1: the mesh the other way round */
    const fsi_mesh *mesh;
    const fsi_vec3 *points;   /* particles in the order of the tree */
    const fsi__node *nodes;
};

static fsi_real fsi__shape_sphere(const fsi__shape *s, fsi_vec3 x, int *hint)
{
    (void)hint;
    return fsi_v3_norm(fsi_v3_sub(x, s->center)) - s->radius;
}

/* q: how far x is outside of the slab of each axis, negative inside. Outside d = |max(q, 0)|, inside the largest q. */
static fsi_real fsi__shape_box(const fsi__shape *s, fsi_vec3 x, int *hint)
{
    const fsi_vec3 q = fsi_v3_max(fsi_v3_sub(s->box.lo, x), fsi_v3_sub(x, s->box.hi)), zero = fsi_v3(0, 0, 0);
    const fsi_real most = fsi_max(q.x, fsi_max(q.y, q.z));
    (void)hint;
    return most > 0 ? fsi_v3_norm(fsi_v3_max(q, zero)) : most;
}

static fsi_real fsi__shape_mesh(const fsi__shape *s, fsi_vec3 x, int *hint)
{
    const fsi__node *nodes = fsi__nodes(s->mesh);
    fsi_mesh_hit h;
    fsi__foot best, f;
    fsi__walk w;
    int g;
    if (*hint < 0) *hint = 0;
    best = fsi__closest_foot(s->mesh, *hint, x);
    w.point = x;
    for (g = fsi__walk_begin(&w, FSI__WALK_POINT, nodes, (double)best.d2); g >= 0; g = fsi__walk_next(&w, (double)best.d2)) {
        f = fsi__closest_foot(s->mesh, g, x);
        if (!(f.d2 < best.d2)) continue;
        best = f;
        *hint = g;
    }
    h = fsi__foot_hit(s->mesh, *hint, x, &best);
    return h.side < 0 ? -s->sign * h.t : s->sign * h.t;
}

static fsi_real fsi__shape_particles(const fsi__shape *s, fsi_vec3 x, int *hint)
{
    fsi_real best, d2;
    fsi__walk w;
    int g;
    if (*hint < 0) *hint = 0;
    best = fsi_v3_norm2(fsi_v3_sub(s->points[*hint], x));
    w.point = x;
    for (g = fsi__walk_begin(&w, FSI__WALK_POINT, s->nodes, (double)best); g >= 0; g = fsi__walk_next(&w, (double)best)) {
        d2 = fsi_v3_norm2(fsi_v3_sub(s->points[g], x));
        if (!(d2 < best)) continue;
        best = d2;
        *hint = g;
    }
    return fsi_sqrt(best) - s->radius;
}

static fsi__shape fsi__shape_of_mesh(const fsi_mesh *mesh)
{
    fsi__shape s;
    memset(&s, 0, sizeof s);
    s.distance = fsi__shape_mesh;
    s.box = mesh->box;
    s.mesh = mesh;
    s.sign = 1;
    return s;
}

/* What can be wrong with a mesh that shall be the boundary of something on a grid. */
static fsi_status fsi__grid_check_mesh(fsi_context *context, const fsi_grid *g, const fsi_mesh *mesh, const char *f)
{
    if (!fsi__is_mesh(mesh)) return FSI_ERROR_COOKIE;
    if (mesh->corners != g->dim)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, f, -1, mesh->corners, "elements of %d corners do not bound anything in %dD", mesh->corners, g->dim);
    if (mesh->kind != FSI_MESH_CLOSED) return fsi__fail(context, FSI_ERROR_MESH, f, -1, 0, "the mesh is not closed: it has no inside");
    return FSI_OK;
}

#define FSI__SCATTER_LOOKS 500 /* a search in the tree takes about as long as looking at so many faces that are not near */

/* Points of a lattice: entry (x, y, z) stands at `at` + (x, y, z) dx and goes to out[x stride[0] + y stride[1] + z stride[2]]. */
typedef struct fsi__sampling {
    const fsi__shape *shape;
    fsi_vec3 at;
    fsi_real dx, limit;
    int stride[3];
    fsi_real *out;
} fsi__sampling;

/* The distance at the middle of the box of points lo .. hi - 1, and half its diagonal. */
static fsi_real fsi__sample_middle(const fsi__sampling *s, const int *lo, const int *hi, int *hint, fsi_real *r)
{
    const fsi_real h = s->dx / 2;
    const fsi_vec3 size = fsi_v3((fsi_real)(hi[0] - lo[0] - 1), (fsi_real)(hi[1] - lo[1] - 1), (fsi_real)(hi[2] - lo[2] - 1));
    const fsi_vec3 twice = fsi_v3((fsi_real)(hi[0] + lo[0] - 1), (fsi_real)(hi[1] + lo[1] - 1), (fsi_real)(hi[2] + lo[2] - 1));
    *r = fsi_v3_norm(size) * h;
    return s->shape->distance(s->shape, fsi_v3_madd(s->at, h, twice), hint);
}

/* The c-th of the parts that a box is cut in; 0 when it has no such part. */
static int fsi__sample_part(const int *lo, const int *hi, int c, int *from, int *to)
{
    int a, empty = 0;
    for (a = 0; a < 3; a++) {
        const int middle = (lo[a] + hi[a] + 1) / 2;
        from[a] = c >> a & 1 ? middle : lo[a];
        to[a] = c >> a & 1 ? hi[a] : middle;
        empty |= from[a] == to[a];
    }
    return !empty;
}

/* One point that the face may be nearest to. */
static void fsi__scatter_point(const fsi__sampling *s, int face, int x, int y, int z)
{
    const fsi_mesh *mesh = s->shape->mesh;
    const fsi_vec3 p = fsi_v3_madd(s->at, s->dx, fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z));
    const fsi__foot foot = fsi__closest_foot(mesh, face, p);
    fsi_real *out = s->out + x + y * s->stride[1] + z * s->stride[2];
    if (foot.d2 < *out * *out) *out = (fsi_real)fsi__foot_hit(mesh, face, p, &foot).side * s->shape->sign * fsi_sqrt(foot.d2);
}

/* The face goes to those points lo .. hi - 1 that are nearer to it than to what they know of. It lies in a disc of its plane, which tells of most
   points that they are not: with h the distance to the plane and t that to the axis of the disc, d^2 >= h^2 + max(t - radius, 0)^2, which is
   below best^2 = h^2 + left when u = t^2 - radius^2 - left is below 2 radius sqrt(left). */
static void fsi__scatter_face(const fsi__sampling *s, const int *lo, const int *hi, int face)
{
    const fsi_mesh *mesh = s->shape->mesh;
    const int *c = mesh->faces + mesh->corners * face;
    const fsi_vec3 n = mesh->face_normals[face];
    fsi_vec3 at = s->at;
    fsi_real rr = 0, most;
    int k, x, y, z;
    for (k = 0; k < mesh->corners; k++) at = fsi_v3_madd(at, -1 / (fsi_real)mesh->corners, mesh->vertices[c[k]]);
    for (k = 0; k < mesh->corners; k++) rr = fsi_max(rr, fsi_v3_norm2(fsi_v3_add(fsi_v3_sub(mesh->vertices[c[k]], s->at), at)));
    most = (s->limit + fsi_sqrt(rr)) * (s->limit + fsi_sqrt(rr));
    for (z = lo[2]; z < hi[2]; z++)
        for (y = lo[1]; y < hi[1]; y++) {
            const fsi_real qy = at.y + (fsi_real)y * s->dx, qz = at.z + (fsi_real)z * s->dx, rest = qy * qy + qz * qz, level = qy * n.y + qz * n.z;
            const fsi_real *out = s->out + y * s->stride[1] + z * s->stride[2];
            if (rest >= most) continue;
            for (x = lo[0]; x < hi[0]; x++) {
                const fsi_real qx = at.x + (fsi_real)x * s->dx, h = level + qx * n.x, tt = rest + qx * qx - h * h;
                const fsi_real left = out[x] * out[x] * (fsi_real)1.0001 - h * h, u = tt - rr - left;
                if ((left > 0) & ((u < 0) | (u * u < 4 * rr * left))) fsi__scatter_point(s, face, x, y, z);
            }
        }
}

/* Points that a face can reach: its box and the limit around it, within lo .. hi - 1; returns how many. */
static int fsi__scatter_range(const fsi__sampling *s, int face, const int *lo, const int *hi, int *from, int *to)
{
    const fsi_box3 box = fsi_box3_inflate(fsi__faces_box(s->shape->mesh, s->shape->mesh->vertices, face, face + 1), s->limit);
    const fsi_real scale = 1 / s->dx;
    int a, count = 1;
    for (a = 0; a < 3; a++) {
        const fsi_real origin = fsi__axis(s->at, a), below = (fsi__axis(box.lo, a) - origin) * scale, above = (fsi__axis(box.hi, a) - origin) * scale;
        from[a] = below > (fsi_real)lo[a] ? (below < (fsi_real)hi[a] ? (int)below : hi[a]) : lo[a];
        to[a] = above < (fsi_real)(hi[a] - 1) ? (above > (fsi_real)(lo[a] - 1) ? (int)(above + 1) : lo[a]) : hi[a];
        count *= to[a] > from[a] ? to[a] - from[a] : 0;
    }
    return count;
}

/* The box around the points lo .. hi - 1 and the limit. */
static fsi_box3 fsi__scatter_box(const fsi__sampling *s, const int *lo, const int *hi)
{
    fsi_box3 box;
    box.lo = fsi_v3_madd(s->at, s->dx, fsi_v3((fsi_real)lo[0], (fsi_real)lo[1], (fsi_real)lo[2]));
    box.hi = fsi_v3_madd(s->at, s->dx, fsi_v3((fsi_real)(hi[0] - 1), (fsi_real)(hi[1] - 1), (fsi_real)(hi[2] - 1)));
    return fsi_box3_inflate(box, s->limit * (fsi_real)1.001);
}

/* Is a face of the mesh that near? */
static int fsi__scatter_is_near(const fsi__sampling *s, const int *lo, const int *hi)
{
    const fsi_mesh *mesh = s->shape->mesh;
    const fsi_box3 box = fsi__scatter_box(s, lo, hi);
    fsi__walk w;
    int f = fsi__walk_box(&w, fsi__nodes(mesh), box);
    while (f >= 0 && !fsi_box3_overlap(box, fsi__faces_box(mesh, mesh->vertices, f, f + 1))) f = fsi__walk_next(&w, 0);
    return f >= 0;
}

/* No face passes between a point that none came near to (limit > dx) and the one before it along some axis: it has the same sign. Only for the
   first of all points the mesh must be searched. */
static void fsi__scatter_signs(const fsi__sampling *s, const int *lo, const int *hi)
{
    int x, y, z, hint = -1;
    for (z = lo[2]; z < hi[2]; z++)
        for (y = lo[1]; y < hi[1]; y++)
            for (x = lo[0]; x < hi[0]; x++) {
                fsi_real *out = s->out + x * s->stride[0] + y * s->stride[1] + z * s->stride[2], before;
                if (fsi_abs(*out) < s->limit) continue;
                if (x > lo[0]) before = out[-s->stride[0]];
                else if (y > lo[1]) before = out[-s->stride[1]];
                else if (z > lo[2]) before = out[-s->stride[2]];
                else before = s->shape->distance(s->shape, fsi_v3_madd(s->at, s->dx, fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z)), &hint);
                *out = before < 0 ? -s->limit : s->limit;
            }
}

/* Fills out[] for the points lo .. hi - 1 with the distance to the mesh, clamped to +-limit. 0: too many faces, searching will be faster. */
static int fsi__scatter(const fsi__sampling *s, const int *lo, const int *hi)
{
    int from[3], to[3], f, x, y, z, left = FSI__SCATTER_LOOKS * (hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]);
    fsi__walk w;
    for (z = lo[2]; z < hi[2]; z++)
        for (y = lo[1]; y < hi[1]; y++)
            for (x = lo[0]; x < hi[0]; x++) s->out[x * s->stride[0] + y * s->stride[1] + z * s->stride[2]] = s->limit;
    for (f = fsi__walk_box(&w, fsi__nodes(s->shape->mesh), fsi__scatter_box(s, lo, hi)); f >= 0; f = fsi__walk_next(&w, 0)) {
        const int looks = fsi__scatter_range(s, f, lo, hi, from, to);
        left -= looks;
        if (left < 0) return 0;
        if (looks > 0) fsi__scatter_face(s, from, to, f);
    }
    fsi__scatter_signs(s, lo, hi);
    return 1;
}

/* The same for any shape, by searching. */
static void fsi__sample_search(const fsi__sampling *s, const int *lo, const int *hi, int hint)
{
    int from[3], to[3], c, x, y, z;
    fsi_real r, d = fsi__sample_middle(s, lo, hi, &hint, &r);
    if (r > 0 && fsi_abs(d) < r + s->limit) {
        for (c = 0; c < 8; c++)
            if (fsi__sample_part(lo, hi, c, from, to)) fsi__sample_search(s, from, to, hint);
        return;
    }
    d = fsi_clamp(d, -s->limit, s->limit);
    for (z = lo[2]; z < hi[2]; z++)
        for (y = lo[1]; y < hi[1]; y++)
            for (x = lo[0]; x < hi[0]; x++) s->out[x * s->stride[0] + y * s->stride[1] + z * s->stride[2]] = d;
}

static void fsi__sample_lattice(const fsi__sampling *s, const int *lo, const int *hi)
{
    if (!s->shape->mesh || !fsi__scatter(s, lo, hi)) fsi__sample_search(s, lo, hi, -1);
}

/* Is any of these distances below the limit? One point is within dx sqrt(3)/2 of the middle of the box. */
static int fsi__sample_reaches(const fsi__sampling *s, const int *lo, const int *hi, int hint)
{
    int from[3], to[3], c, found = 0;
    fsi_real r, d = fsi__sample_middle(s, lo, hi, &hint, &r);
    if (d >= r + s->limit) return 0;
    if (!(r > 0) || d + (fsi_real)0.87 * s->dx < s->limit) return 1;
    for (c = 0; c < 8 && !found; c++) found = fsi__sample_part(lo, hi, c, from, to) && fsi__sample_reaches(s, from, to, hint);
    return found;
}

/* The cells of the block whose corner is cell `corner`: their box is (0, 0, 0) .. top - 1, within the box of the grid. */
static fsi__sampling fsi__sample_cells(const fsi_grid *g, const fsi__shape *shape, const int *corner, fsi_real limit, int *top)
{
    fsi__sampling s;
    int a;
    s.shape = shape;
    s.at = fsi_grid_position(g, FSI_CELLS, corner[0], corner[1], corner[2]);
    s.dx = g->dx;
    s.limit = limit;
    s.out = NULL;
    for (a = 0; a < 3; a++) {
        s.stride[a] = a == 0 ? 1 : 8 * s.stride[a - 1];
        top[a] = fsi__clamp_int(g->n[a] - corner[a], 8);
    }
    return s;
}

/* ---- >>fill implementation --------------------------------------------------------------------------------------- */

typedef struct fsi__grid_fill {
    const fsi__shape *shape;
    fsi_field *phi;
    fsi_grid_operation operation;
    fsi_real limit;
    int lo[3], size[3];      /* the places of blocks that the shape can reach */
    unsigned char *wanted;   /* one for each place of the grid */
} fsi__grid_fill;

/* The k-th of these places, and the corner of its block. */
static size_t fsi__grid_fill_place(const fsi__grid_fill *f, int k, int *corner)
{
    const fsi_grid *g = f->phi->grid;
    const int x = f->lo[0] + k % f->size[0], y = f->lo[1] + k / f->size[0] % f->size[1], z = f->lo[2] + k / f->size[0] / f->size[1];
    corner[0] = x * FSI_GRID_BLOCK;
    corner[1] = y * FSI_GRID_BLOCK;
    corner[2] = z * FSI_GRID_BLOCK;
    return ((size_t)z * (size_t)g->blocks[1] + (size_t)y) * (size_t)g->blocks[0] + (size_t)x;
}

static void fsi__grid_fill_want(void *arg, int chunk, int begin, int end)
{
    static const int none[3] = { 0, 0, 0 };
    const fsi__grid_fill *f = (const fsi__grid_fill *)arg;
    int corner[3], top[3];
    (void)chunk;
    for (; begin < end; begin++) {
        const size_t place = fsi__grid_fill_place(f, begin, corner);
        const fsi__sampling s = fsi__sample_cells(f->phi->grid, f->shape, corner, f->limit, top);
        if (!f->wanted[place]) f->wanted[place] = (unsigned char)fsi__sample_reaches(&s, none, top, -1);
    }
}

static void fsi__grid_fill_cells(void *arg, int chunk, int begin, int end)
{
    static const int none[3] = { 0, 0, 0 };
    const fsi__grid_fill *f = (const fsi__grid_fill *)arg;
    const fsi_grid *g = f->phi->grid;
    fsi_real d[FSI_GRID_BLOCK * FSI_GRID_BLOCK * FSI_GRID_BLOCK], *v;
    int corner[3], top[3], b, x, y, z;
    (void)chunk;
    for (; begin < end; begin++) {
        fsi__sampling s;
        b = g->index[fsi__grid_fill_place(f, begin, corner)];
        if (b < 0) continue;
        s = fsi__sample_cells(g, f->shape, corner, f->limit, top);
        s.out = d;
        fsi__sample_lattice(&s, none, top);
        v = f->phi->value + (size_t)b * (size_t)g->block_cells;
        for (z = 0; z < top[2]; z++)
            for (y = 0; y < top[1]; y++)
                for (x = 0; x < top[0]; x++) {
                    const int c = (z * 8 + y) * 8 + x;
                    v[c] = f->operation == FSI_GRID_ADD ? fsi_min(v[c], d[c]) : fsi_max(v[c], -d[c]);
                }
    }
}

/* Places along one axis whose cells lie within `limit` of lo .. hi; 0: none. */
static int fsi__grid_fill_range(fsi__grid_fill *f, int axis, double lo, double hi, double origin)
{
    const fsi_grid *g = f->phi->grid;
    const double dx = (double)g->dx, reach = (double)f->limit / dx;
    const double from = (lo - origin) / dx - reach - 1, to = (hi - origin) / dx + reach + 1;
    f->lo[axis] = f->size[axis] = 0;
    if (!(from < g->n[axis]) || !(to > 0)) return 0;
    f->lo[axis] = from > 0 ? (int)from >> 3 : 0;
    f->size[axis] = ((to < g->n[axis] - 1 ? (int)to : g->n[axis] - 1) >> 3) - f->lo[axis] + 1;
    return 1;
}

static fsi_status fsi__grid_fill_shape(fsi_field *phi, fsi_grid_operation operation, const fsi__shape *shape, int band, const char *function)
{
    fsi_grid *g = phi->grid;
    fsi__grid_fill f;
    size_t places = fsi__grid_places(g);
    fsi_status status;
    int b, count;
    f.shape = shape;
    f.phi = phi;
    f.operation = operation;
    f.limit = (fsi_real)band * g->dx;
    if (!fsi__grid_fill_range(&f, 0, (double)shape->box.lo.x, (double)shape->box.hi.x, (double)g->origin.x)) return FSI_OK;
    if (!fsi__grid_fill_range(&f, 1, (double)shape->box.lo.y, (double)shape->box.hi.y, (double)g->origin.y)) return FSI_OK;
    f.lo[2] = 0;
    f.size[2] = 1;
    if (g->dim == 3 && !fsi__grid_fill_range(&f, 2, (double)shape->box.lo.z, (double)shape->box.hi.z, (double)g->origin.z)) return FSI_OK;
    count = f.size[0] * f.size[1] * f.size[2];
    if (operation == FSI_GRID_ADD) {
        f.wanted = (unsigned char *)fsi__alloc(g->context, places, 1);
        if (!f.wanted) return fsi__fail(g->context, FSI_ERROR_MEMORY, function, -1, 0, "no memory for %g places of blocks", (double)places);
        for (b = 0; b < g->block_count; b++) f.wanted[g->place[b]] = 1;
        fsi__parallel_work(g->context, count, 4, 100.0 * count, fsi__grid_fill_want, &f);
        status = fsi_grid_set_blocks(g, f.wanted);
        fsi__free(g->context, f.wanted, places, 1);
        if (status != FSI_OK) return status;
    }
    fsi__parallel_work(g->context, count, 4, (g->dim == 2 ? 150.0 : 1000.0) * count, fsi__grid_fill_cells, &f);
    return FSI_OK;
}

/* What all fills ask for. */
static fsi_status fsi__grid_fill_check(const fsi_field *phi, fsi_grid_operation operation, int band, const char *f)
{
    fsi_context *c;
    if (!fsi__is_field(phi)) return FSI_ERROR_COOKIE;
    c = phi->grid->context;
    if (phi->place != FSI_CELLS) return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, (double)(int)phi->place, "phi is not a field of cells");
    if (operation != FSI_GRID_ADD && operation != FSI_GRID_REMOVE)
        return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, (double)(int)operation, "operation is %d", (int)operation);
    if (band < 2 || band > 16) return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, band, "band is %d cells, not 2 to 16", band);
    if (!(phi->background >= (fsi_real)0.999 * (fsi_real)band * phi->grid->dx))
        return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, (double)phi->background, "the background of phi is %g, below band dx", (double)phi->background);
    return FSI_OK;
}

static fsi_status fsi__grid_fill_check_radius(fsi_context *c, fsi_real radius, const char *f)
{
    if (!fsi_is_finite((double)radius)) return fsi__fail(c, FSI_ERROR_NAN, f, -1, (double)radius, "radius is not finite");
    if (!(radius > 0)) return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, (double)radius, "radius is %g, not above 0", (double)radius);
    return FSI_OK;
}

FSI_API fsi_status fsi_grid_fill_sphere(fsi_field *phi, fsi_grid_operation operation, fsi_vec3 center, fsi_real radius, int band)
{
    static const char *const f = "fsi_grid_fill_sphere";
    fsi__shape s;
    fsi_status status = fsi__grid_fill_check(phi, operation, band, f);
    if (status == FSI_OK) status = fsi__grid_fill_check_radius(phi->grid->context, radius, f);
    if (status != FSI_OK) return status;
    if (phi->grid->dim == 2) center.z = 0;
    if (!fsi_v3_is_finite(center)) return fsi__fail(phi->grid->context, FSI_ERROR_NAN, f, -1, 0, "center is not finite");
    memset(&s, 0, sizeof s);
    s.distance = fsi__shape_sphere;
    s.center = center;
    s.radius = radius;
    s.box.lo = s.box.hi = center;
    s.box = fsi_box3_inflate(s.box, radius);
    return fsi__grid_fill_shape(phi, operation, &s, band, f);
}

/* Moves the ends of an interval that reach the walls far away. */
static void fsi__grid_fill_open_walls(const fsi_grid *g, int axis, fsi_real origin, fsi_real *lo, fsi_real *hi)
{
    const fsi_real slack = g->dx / 1000, never = FSI_REAL_MAX / 4;
    if (*lo <= origin + slack) *lo = -never;
    if (*hi >= origin + (fsi_real)g->n[axis] * g->dx - slack) *hi = never;
}

FSI_API fsi_status fsi_grid_fill_box(fsi_field *phi, fsi_grid_operation operation, fsi_box3 box, int band)
{
    static const char *const f = "fsi_grid_fill_box";
    const fsi_grid *g;
    fsi__shape s;
    fsi_status status = fsi__grid_fill_check(phi, operation, band, f);
    if (status != FSI_OK) return status;
    g = phi->grid;
    if (g->dim == 2) {
        box.lo.z = -1;
        box.hi.z = 1;
    }
    if (!fsi_v3_is_finite(box.lo) || !fsi_v3_is_finite(box.hi)) return fsi__fail(g->context, FSI_ERROR_NAN, f, -1, 0, "the box is not finite");
    if (!(box.lo.x < box.hi.x && box.lo.y < box.hi.y && box.lo.z < box.hi.z)) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, 0, "the box is empty");
    memset(&s, 0, sizeof s);
    s.distance = fsi__shape_box;
    s.box = box;
    fsi__grid_fill_open_walls(g, 0, g->origin.x, &s.box.lo.x, &s.box.hi.x);
    fsi__grid_fill_open_walls(g, 1, g->origin.y, &s.box.lo.y, &s.box.hi.y);
    fsi__grid_fill_open_walls(g, 2, g->origin.z, &s.box.lo.z, &s.box.hi.z);
    if (g->dim == 2) {
        s.box.lo.z = -FSI_REAL_MAX / 4;
        s.box.hi.z = FSI_REAL_MAX / 4;
    }
    return fsi__grid_fill_shape(phi, operation, &s, band, f);
}

FSI_API fsi_status fsi_grid_fill_mesh(fsi_field *phi, fsi_grid_operation operation, const fsi_mesh *mesh, int band)
{
    static const char *const f = "fsi_grid_fill_mesh";
    fsi__shape s;
    fsi_status status = fsi__grid_fill_check(phi, operation, band, f);
    if (status == FSI_OK) status = fsi__grid_check_mesh(phi->grid->context, phi->grid, mesh, f);
    if (status != FSI_OK) return status;
    s = fsi__shape_of_mesh(mesh);
    if (mesh->container) s.sign = -1;
    return fsi__grid_fill_shape(phi, operation, &s, band, f);
}

/* Those particles that reach the grid, as a tree: `points` in its order, `boxes` and `order` as scratch. Returns how many. */
static int fsi__grid_fill_plant(const fsi_grid *g, const fsi_vec3 *x, int count, fsi_real reach, fsi_vec3 *points, fsi_box3 *boxes, int *order,
                           fsi__node *nodes, fsi_box3 *around)
{
    fsi_box3 all = fsi_box3_empty();
    int k, found = 0;
    all = fsi_box3_grow(all, g->origin);
    all = fsi_box3_grow(all, fsi_v3_madd(g->origin, g->dx, fsi_v3((fsi_real)g->n[0], (fsi_real)g->n[1], g->dim == 3 ? (fsi_real)g->n[2] : 0)));
    all = fsi_box3_inflate(all, reach);
    *around = fsi_box3_empty();
    for (k = 0; k < count; k++) {
        fsi_box3 own;
        own.lo = own.hi = fsi_v3(x[k].x, x[k].y, g->dim == 3 ? x[k].z : 0);
        if (fsi_box3_overlap(own, all)) boxes[found++] = own;
    }
    fsi__plant(boxes, found, order, nodes);
    for (k = 0; k < found; k++) {
        points[k] = boxes[order[k]].lo;
        *around = fsi_box3_grow(*around, points[k]);
    }
    return found;
}

FSI_API fsi_status fsi_grid_fill_particles(fsi_field *phi, fsi_grid_operation operation, const fsi_vec3 *x, int count, fsi_real radius, int band)
{
    static const char *const f = "fsi_grid_fill_particles";
    fsi_context *c;
    fsi__arena measure = { NULL, 0, 0 }, memory = { NULL, 0, 0 }, *a = &measure;
    fsi_vec3 *points = NULL;
    fsi_box3 *boxes = NULL;
    fsi__node *nodes = NULL;
    fsi__shape s;
    int *order = NULL, k, pass;
    fsi_status status = fsi__grid_fill_check(phi, operation, band, f);
    if (status == FSI_OK) status = fsi__grid_fill_check_radius(phi->grid->context, radius, f);
    if (status != FSI_OK) return status;
    c = phi->grid->context;
    if (count < 0 || (count > 0 && !x)) return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, count, "count is %d and x is %s", count, x ? "given" : "NULL");
    for (k = 0; k < count; k++)
        if (!fsi_v3_is_finite(fsi_v3(x[k].x, x[k].y, phi->grid->dim == 3 ? x[k].z : 0))) return fsi__fail(c, FSI_ERROR_NAN, f, k, 0, "particle %d is not finite", k);
    for (pass = 0; pass < 2; pass++, a = &memory) {
        if (pass == 1 && !fsi__arena_reserve(c, a, measure.used)) return fsi__fail(c, FSI_ERROR_MEMORY, f, -1, count, "no memory for a tree of %d particles", count);
        points = (fsi_vec3 *)fsi__take(a, (size_t)count, sizeof *points);
        boxes = (fsi_box3 *)fsi__take(a, (size_t)count, sizeof *boxes);
        order = (int *)fsi__take(a, (size_t)count, sizeof *order);
        nodes = (fsi__node *)fsi__take(a, (size_t)count * 2, sizeof *nodes);
    }
    memset(&s, 0, sizeof s);
    s.distance = fsi__shape_particles;
    s.radius = radius;
    s.points = points;
    s.nodes = nodes;
    if (fsi__grid_fill_plant(phi->grid, x, count, radius + (fsi_real)band * phi->grid->dx, points, boxes, order, nodes, &s.box) > 0) {
        s.box = fsi_box3_inflate(s.box, radius);
        status = fsi__grid_fill_shape(phi, operation, &s, band, f);
    }
    fsi__arena_free(c, &memory);
    return status;
}

/* ---- >>cut faces implementation ---------------------------------------------------------------------------------- */

enum { FSI__SIDE_OUTSIDE = -1, FSI__SIDE_INSIDE = -2, FSI__SIDE_CUT = -3 };

/* Where a block lies: all of its points 0 .. top - 1 outside of the mesh or inside, further than the limit, or maybe not so. `before` is what was
   said of the block b - 1: where no face is near to either of two neighbours both are on one side, and the mesh need not be searched. */
static int fsi__side_of_block(const fsi_grid *g, const fsi__sampling *s, int b, const int *top, int before)
{
    static const int none[3] = { 0, 0, 0 };
    int hint = -1;
    fsi_real r;
    if (fsi__scatter_is_near(s, none, top)) return FSI__SIDE_CUT;
    if (before != FSI__SIDE_CUT && g->place[b] == g->place[b - 1] + 1 && g->place[b] % g->blocks[0] > 0) return before;
    return fsi__sample_middle(s, none, top, &hint, &r) < 0 ? FSI__SIDE_INSIDE : FSI__SIDE_OUTSIDE;
}

typedef struct fsi__distance_job {
    const fsi_grid *grid;
    fsi_field *psi;
    fsi__shape shape;
    fsi_real limit;
} fsi__distance_job;

/* Distances at the cells of block b. before: what was returned for the block b - 1, or FSI__SIDE_CUT. Returns where the block lies. */
static int fsi__distance_block(const fsi__distance_job *job, int b, int before, fsi_real *out)
{
    static const int none[3] = { 0, 0, 0 };
    int corner[3], top[3], c, side;
    fsi__sampling s;
    fsi_grid_corner(job->grid, b, corner);
    s = fsi__sample_cells(job->grid, &job->shape, corner, job->limit, top);
    s.out = out;
    side = top[0] * top[1] * top[2] == 0 ? FSI__SIDE_OUTSIDE : fsi__side_of_block(job->grid, &s, b, top, before);
    for (c = 0; c < job->grid->block_cells; c++) out[c] = side == FSI__SIDE_INSIDE ? -s.limit : s.limit; /* beyond the box too */
    if (side == FSI__SIDE_CUT) fsi__sample_lattice(&s, none, top);
    return side;
}

static void fsi__distance_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__distance_job *job = (const fsi__distance_job *)arg;
    int b, side = FSI__SIDE_CUT;
    (void)chunk;
    for (b = begin; b < end; b++) side = fsi__distance_block(job, b, side, job->psi->value + (size_t)b * (size_t)job->grid->block_cells);
}

/* Nanoseconds at least: 100 for a block; 5 for a cell within reach of the mesh's box, as far as there are blocks. */
static double fsi__distance_work(const fsi__distance_job *job, const fsi_mesh *mesh)
{
    const fsi_grid *g = job->grid;
    const fsi_vec3 size = fsi_v3_sub(mesh->box.hi, mesh->box.lo);
    const double reach = 2 * (double)job->limit, dx = (double)g->dx, blocks = (double)g->block_count;
    const double x = ((double)size.x + reach) / dx, y = ((double)size.y + reach) / dx,
        z = ((double)size.z + reach) / dx;
    const double cells = fmin(x, g->n[0]) * fmin(y, g->n[1]) * (g->dim == 2 ? 1 : fmin(z, g->n[2]));
    return 100 * blocks + 5 * fmin(cells, blocks * g->block_cells);
}

FSI_API fsi_status fsi_grid_mesh_distance(fsi_field *psi, const fsi_mesh *mesh, int band)
{
    static const char *const f = "fsi_grid_mesh_distance";
    fsi__distance_job job;
    fsi_context *c;
    fsi_status status;
    if (!fsi__is_field(psi)) return FSI_ERROR_COOKIE;
    c = psi->grid->context;
    if (psi->place != FSI_CELLS) return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, (double)(int)psi->place, "psi is not a field of cells");
    if (band < 2 || band > 16) return fsi__fail(c, FSI_ERROR_ARGUMENT, f, -1, band, "band is %d cells, not 2 to 16", band);
    status = fsi__grid_check_mesh(c, psi->grid, mesh, f);
    if (status != FSI_OK) return status;
    job.grid = psi->grid;
    job.psi = psi;
    job.shape = fsi__shape_of_mesh(mesh);
    job.limit = (fsi_real)band * psi->grid->dx;
    fsi__parallel_work(c, psi->grid->block_count, 16, fsi__distance_work(&job, mesh), fsi__distance_blocks, &job);
    return FSI_OK;
}

#define FSI__FACES_SIDE 9    /* corners along a block, those of the upper ends of its cells with them */
#define FSI__FACES_TOUCH (sizeof(fsi_real) == 8 ? (fsi_real)1e-5 : (fsi_real)1e-4) /* corners that lie that many cells outside of the mesh count as inside */

/* The corners of a block that the mesh comes near to have a slot of 9 x 9 x 9 distances (2D: 9 x 9). Those that belong to the next block
   are copied from there; a block that is not near stands for its sign; where no block is, they are computed. */
typedef struct fsi__faces_impl {
    const fsi_grid *grid;
    fsi__shape shape;
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

/* Do all faces near the points lo .. hi - 1 look the same way, to 26 degrees? In 2D nobody asks. */
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
    const int own[3] = { 8, 8, m->grid->dim == 3 ? 8 : 1 }, all[3] = { FSI__FACES_SIDE, FSI__FACES_SIDE, FSI__FACES_SIDE };
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
    const long long entry = fsi_grid_entry(g, corner[0] + (d & 1) * 8, corner[1] + (d >> 1 & 1) * 8, corner[2] + (d >> 2) * 8);
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
                s->out[z * s->stride[2] + y * s->stride[1] + x] = from ? from[(z & 7) * s->stride[2] + (y & 7) * s->stride[1] + (x & 7)]
                                                                       : state == FSI__SIDE_INSIDE ? -s->limit : s->limit;
}

/* Share of a square where values at its corners, in order around it, are negative, as some but not all are: corners cut off by straight lines. Its side
   from corner k to k + 1 is cut at t[k] of its length. Where opposite corners are inside, the mean of all four tells whether they are one. */
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
    inside = opposite ? v[0] + v[1] + v[2] + v[3] >= 0 : count == 1; /* do the lines cut off what is inside? */
    for (k = 0; k < 4; k++)
        if ((v[k] < 0) == inside) cut += t[k] * (1 - t[(k + 3) & 3]) / 2;
    return fsi_max(inside ? cut : 1 - cut, FSI_REAL_EPS); /* never 0 where a corner is inside */
}

/* Share in the solid of the side from corner p to p + dx along an axis, a and b the distances at its ends: up to where the mesh crosses it. Where it is
   smooth, distances tell as well as a ray and are faster; around edges they are not straight, and a wall 0.15 dx behind a corner was seen at 0.5 dx. */
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

/* Where the mesh cuts the sides of a face of an axis, v at its corners in order around it from the one at p: fsi__faces_share. */
static void fsi__faces_cuts(const fsi__faces_impl *m, fsi_vec3 p, int axis, int smooth, const fsi_real *v, fsi_real *t)
{
    const fsi_real dx = m->grid->dx;
    const int along[2] = { (axis + 1) % 3, (axis + 2) % 3 };
    int k;
    for (k = 0; k < 4; k++) {
        const int next = (k + 1) & 3, low = k < 2 ? k : next, high = k < 2 ? next : k, far_side = k == 1 || k == 2, side = along[k & 1], across = along[~k & 1];
        const fsi_vec3 shift = fsi_v3(across == 0 ? dx : 0, across == 1 ? dx : 0, across == 2 ? dx : 0);
        const fsi_real share = (v[k] < 0) == (v[next] < 0) ? 0 : fsi__faces_crossing(m, far_side ? fsi_v3_add(p, shift) : p, side, smooth, v[low], v[high]);
        t[k] = v[k] < 0 ? share : 1 - share;
    }
}

/* Faces of an axis that a block has within the box of the grid: top. */
static void fsi__faces_top(const fsi_grid *g, const int *corner, int axis, int *top)
{
    int a;
    for (a = 0; a < 3; a++) top[a] = fsi__clamp_int(fsi_grid_size(g, (fsi_grid_place)(FSI_FACES_X + axis), a) - corner[a], a < g->dim ? 8 : 1);
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
        const fsi__sampling s = fsi__faces_sampling(m, begin, corner);
        for (d = 1; s.out && d < 1 << g->dim; d++) fsi__faces_border(m, &s, corner, d);
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

/* Share of face (x, y, z) of an axis from the distances of its block's slot. */
static fsi_real fsi__faces_of_slot(const fsi__faces_impl *m, const fsi__sampling *s, int smooth, int axis, const int *at, int x, int y, int z)
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
    if (!f) return fsi__fail(context, FSI_ERROR_MEMORY, "fsi_grid_faces_create", -1, 0, "no memory for a list of faces");
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
    fsi_status status;
    long long total = 0;
    int first[4], a, b;
    if (!f || f->cookie != FSI__COOKIE('f', fsi_grid_faces) || !fsi__is_grid(grid)) return FSI_ERROR_COOKIE;
    status = fsi__grid_check_mesh(f->context, grid, mesh, fn);
    if (status != FSI_OK) return status;
    m = (fsi__faces_impl *)f->impl;
    m->grid = grid;
    m->shape = fsi__shape_of_mesh(mesh);
    if (!fsi__faces_distances(f->context, m)) return fsi__fail(f->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for the corners of faces");
    fsi__parallel_work(f->context, grid->block_count, 4, fsi__faces_work(m, 2), fsi__faces_count, m);
    for (a = 0; a < 3; a++)
        for (b = 0, first[a] = (int)total; a < grid->dim && b < grid->block_count; b++) {
            const int n = m->counts[a * grid->block_count + b];
            m->counts[a * grid->block_count + b] = (int)total;
            total += n;
            if (total > 2147483647) return fsi__fail(f->context, FSI_ERROR_LIMIT, fn, -1, (double)total, "more than 2^31 - 1 faces");
        }
    first[3] = (int)total;
    status = fsi__room(f->context, c, fsi__faces_columns(m, c), f->count, &m->capacity, (int)total, fn);
    if (status != FSI_OK) return status;
    fsi__parallel_work(f->context, grid->block_count, 4, fsi__faces_work(m, 3), fsi__faces_write, m);
    memcpy(f->first, first, sizeof first);
    f->count = (int)total;
    f->entry = m->entry;
    f->solid = m->solid;
    return FSI_OK;
}

/* ---- >>level set surface implementation -------------------------------------------------------------------------- */

/* Nodes are the centres of cells, and two more layers at each wall:

       node     -2|-1    0     1            n-1    n|n+1
                  |   .     .     .      .     .    |            the wall stands at | : nodes -2 and -1 are at the same place
       phi      + | phi  phi   phi          phi  phi| +          -1 has the value of 0, n that of n-1; -2 and n+1 are outside

   so that the cubes between -2 and -1, which have no thickness, hold the caps. An edge from a node on the wall, in the liquid, to one of those
   outside has its vertex at the node. Where walls meet, a node has several such edges: they share one vertex, and what collapses is left out.

   A slot is 8 x 8 x 8 nodes (2D: 8 x 8), placed like the blocks of the grid, one layer of slots more at the lower walls: the edges from its
   nodes upwards and the cubes above them are its own. Only slots that the surface can pass through exist. A vertex has no entry in any map: its
   number is the first one of its row, and how many bits of the row's mask are set below its own. */
#define FSI__GS_APART 1e-3 /* of an edge: a vertex keeps this much away from its ends, lest triangles collapse */
#define FSI__GS_GRAIN 8    /* slots a chunk */

typedef struct fsi__gs_slot {
    int at[3];                    /* its first node */
    int up[8];                    /* the slot at (bit 0, bit 1, bit 2) towards +x, +y, +z; -1 none */
    int vertices, elements;       /* how many it owns, then where its own begin */
    uint16_t inside[81];          /* bit x of row z * 9 + y: node (x, y, z) is in the liquid */
    uint16_t start[64];           /* vertices in the rows before row z * 8 + y */
    uint32_t vertex[64];          /* bit 8 a + x: there is one on the edge of node (x, y, z) along axis a; 24 + x: at the node, on the wall */
} fsi__gs_slot;

typedef struct fsi__gs_impl {
    unsigned char cases[2][256][16]; /* in 2D and 3D: number of edges, then the edges, `corners` an element; by corners inside */
    const fsi_field *phi;
    int capped;
    fsi__arena memory;               /* of the next two */
    unsigned char *signs;            /* of each block: bit 0 some cell is inside, 1 some is outside, 2 some is not finite */
    int *map;                        /* slot at each place of the slots, -1 none; x fastest */
    fsi__gs_slot *slots;
    int slot_count, slot_capacity, vertex_capacity, element_capacity;
    fsi_vec3 *vertices, *normals;
    int *elements;
} fsi__gs_impl;

/* ---- signs and slots ---- */

static int fsi__gs_signs_of(const fsi_real *v, int count)
{
    int inside = 0, outside = 0, bad = 0, t;
    for (t = 0; t < count; t++) {
        inside |= v[t] < 0;
        outside |= v[t] >= 0;
        bad |= !(fsi_abs(v[t]) <= FSI_REAL_MAX);
    }
    return inside | outside << 1 | bad << 2;
}

static void fsi__gs_scan(void *arg, int chunk, int begin, int end)
{
    fsi__gs_impl *m = (fsi__gs_impl *)arg;
    const fsi_grid *g = m->phi->grid;
    int corner[3], top[3], a, y, z;
    (void)chunk;
    for (; begin < end; begin++) {
        const fsi_real *v = m->phi->value + (size_t)begin * (size_t)g->block_cells;
        int signs = 0;
        fsi_grid_corner(g, begin, corner);
        for (a = 0; a < 3; a++) top[a] = fsi__clamp_int(g->n[a] - corner[a], 8);
        for (z = 0; z < top[2]; z++)
            for (y = 0; y < top[1]; y++) signs |= fsi__gs_signs_of(v + (z * 8 + y) * 8, top[0]);
        m->signs[begin] = (unsigned char)signs;
    }
}

/* Places of slots along an axis: one more than those of blocks. */
static int fsi__gs_places(const fsi_grid *g, int axis) { return axis < g->dim ? g->blocks[axis] + 1 : 1; }
/* The place of the slot whose first node is `at`. */
static size_t fsi__gs_place(const fsi_grid *g, const int *at)
{
    const size_t x = (size_t)(at[0] / 8 + 1), y = (size_t)(at[1] / 8 + 1), z = (size_t)(g->dim == 3 ? at[2] / 8 + 1 : 0);
    return (z * (size_t)fsi__gs_places(g, 1) + y) * (size_t)fsi__gs_places(g, 0) + x;
}

/* Marks the slots with edges or cubes that have one of a block's nodes at an end: its own, those below, and those above that a wall is in. */
static void fsi__gs_mark(fsi__gs_impl *m, int b)
{
    const fsi_grid *g = m->phi->grid;
    int corner[3], at[3], lo[3], hi[3], a;
    fsi_grid_corner(g, b, corner);
    for (a = 0; a < 3; a++) {
        lo[a] = a < g->dim ? corner[a] - 8 : 0;
        hi[a] = a < g->dim && corner[a] + 8 == g->n[a] ? corner[a] + 8 : corner[a];
    }
    for (at[2] = lo[2]; at[2] <= hi[2]; at[2] += 8)
        for (at[1] = lo[1]; at[1] <= hi[1]; at[1] += 8)
            for (at[0] = lo[0]; at[0] <= hi[0]; at[0] += 8) m->map[fsi__gs_place(g, at)] = 1;
}

/* Can the surface pass through this slot? Away from the walls that is so when the blocks its cubes reach have both signs. */
static int fsi__gs_is_mixed(const fsi__gs_impl *m, const int *at)
{
    const fsi_grid *g = m->phi->grid;
    int a, d, signs = 0;
    for (a = 0; a < g->dim; a++)
        if (at[a] < 0 || at[a] + 8 >= g->n[a]) return 1;
    for (d = 0; d < 1 << g->dim; d++) {
        const long long entry = fsi_grid_entry(g, at[0] + (d & 1) * 8, at[1] + (d >> 1 & 1) * 8, at[2] + (d >> 2) * 8);
        signs |= entry < 0 ? 2 : m->signs[entry / g->block_cells];
    }
    return signs == 3;
}

/* Numbers the slots in the order of their places; their first nodes when `slots` has room for them. */
static int fsi__gs_number_slots(fsi__gs_impl *m, int fill)
{
    const fsi_grid *g = m->phi->grid;
    const int nz = fsi__gs_places(g, 2), ny = fsi__gs_places(g, 1), nx = fsi__gs_places(g, 0);
    int at[3], x, y, z, count = 0;
    size_t p = 0;
    for (z = 0; z < nz; z++)
        for (y = 0; y < ny; y++)
            for (x = 0; x < nx; x++, p++) {
                if (m->map[p] < 0) continue;
                at[0] = (x - 1) * 8;
                at[1] = (y - 1) * 8;
                at[2] = g->dim == 3 ? (z - 1) * 8 : 0;
                if (fill) memcpy(m->slots[count].at, at, sizeof at);
                m->map[p] = fill || fsi__gs_is_mixed(m, at) ? count++ : -1;
            }
    return count;
}

/* ---- one slot ---- */

static int fsi__gs_within(const fsi_grid *g, int axis, int node) { return node >= -1 && node <= g->n[axis]; }
static int fsi__gs_on_wall(const fsi_grid *g, int axis, int node) { return axis < g->dim && (node == -1 || node == g->n[axis]); }
/* Does the edge from this node upwards lead through a wall? */
static int fsi__gs_caps(const fsi_grid *g, int axis, int node) { return axis < g->dim && (node == -2 || node == g->n[axis]); }

/* Bits x = 0 ... 8 of the nodes at + x for which test holds. */
static unsigned fsi__gs_mask(const fsi_grid *g, int at, int (*test)(const fsi_grid *g, int axis, int node))
{
    unsigned x, bits = 0;
    for (x = 0; x < 9; x++) bits |= (unsigned)test(g, 0, at + (int)x) << x;
    return bits;
}

/* Which nodes are inside, from their values. */
static void fsi__gs_look(const fsi__gs_impl *m, fsi__gs_slot *s)
{
    const fsi_grid *g = m->phi->grid;
    const int top = g->dim == 3 ? 9 : 1;
    const unsigned valid = fsi__gs_mask(g, s->at[0], fsi__gs_within);
    fsi_real v[1000];
    int x, y, z;
    fsi__grid_gather_at(m->phi, s->at, 1, v);
    for (z = 0; z < top; z++)
        for (y = 0; y < 9; y++) {
            const fsi_real *row = v + ((g->dim == 3 ? z + 1 : 0) * 10 + y + 1) * 10 + 1;
            unsigned bits = 0;
            for (x = 0; x < 9; x++) bits |= (unsigned)(row[x] < 0) << x;
            if (!fsi__gs_within(g, 1, s->at[1] + y) || (g->dim == 3 && !fsi__gs_within(g, 2, s->at[2] + z))) bits = 0;
            s->inside[z * 9 + y] = (uint16_t)(bits & valid);
        }
}

/* Which of its edges and nodes have a vertex. */
static void fsi__gs_mark_vertices(const fsi__gs_impl *m, fsi__gs_slot *s)
{
    const fsi_grid *g = m->phi->grid;
    const unsigned through = fsi__gs_mask(g, s->at[0], fsi__gs_caps), wall = fsi__gs_mask(g, s->at[0], fsi__gs_on_wall);
    int y, z, count = 0;
    for (z = 0; z < (g->dim == 3 ? 8 : 1); z++)
        for (y = 0; y < 8; y++) {
            const int j = s->at[1] + y, k = s->at[2] + z;
            const uint16_t *in = s->inside + z * 9 + y;
            const unsigned r = in[0];
            unsigned along[4] = { 0, 0, 0, 0 };
            if (fsi__gs_within(g, 1, j) && (g->dim == 2 || fsi__gs_within(g, 2, k))) {
                along[0] = (r ^ r >> 1) & ~through & 255;
                if (!fsi__gs_caps(g, 1, j)) along[1] = (r ^ in[1]) & 255;
                if (g->dim == 3 && !fsi__gs_caps(g, 2, k)) along[2] = (r ^ in[9]) & 255;
                if (m->capped) along[3] = r & 255 & (fsi__gs_on_wall(g, 1, j) || fsi__gs_on_wall(g, 2, k) ? 255 : wall);
            }
            s->start[z * 8 + y] = (uint16_t)count;
            s->vertex[z * 8 + y] = along[0] | along[1] << 8 | along[2] << 16 | along[3] << 24;
            count += fsi__mask_count(s->vertex[z * 8 + y]);
        }
    s->vertices = count;
}

/* A cube: its first node and its axes along which it leads through a wall: bit a through the lower one, 3 + a the upper. */
typedef struct fsi__gs_cube {
    int x, y, z, through;
} fsi__gs_cube;

/* What tells the vertices of a cube apart: the edge, or for an edge through a wall its end on the wall, a corner. */
static int fsi__gs_key(int edge, int through)
{
    const int axis = edge >> 2, low = fsi__sf_edge_low(edge);
    if (!(through >> axis & 9)) return 8 + edge;
    return through >> axis & 1 ? low | 1 << axis : low;
}

static int fsi__gs_collapsed(const unsigned char *edges, int corners, int through)
{
    const int a = fsi__gs_key(edges[0], through), b = fsi__gs_key(edges[1], through), c = fsi__gs_key(edges[corners - 1], through);
    return a == b || (corners == 3 && (b == c || c == a));
}

/* Number of the vertex on an edge of a cube. */
static int fsi__gs_vertex(const fsi__gs_impl *m, const fsi__gs_slot *s, const fsi__gs_cube *cube, int edge)
{
    const int key = cube->through ? fsi__gs_key(edge, cube->through) : 8 + edge, corner = key < 8 ? key : fsi__sf_edge_low(edge);
    const int x = cube->x + (corner & 1), y = cube->y + (corner >> 1 & 1), z = cube->z + (corner >> 2), bit = (key < 8 ? 24 : edge >> 2 << 3) + (x & 7);
    const fsi__gs_slot *owner = m->slots + s->up[x >> 3 | y >> 3 << 1 | z >> 3 << 2];
    const int row = (z & 7) * 8 + (y & 7);
    return owner->vertices + owner->start[row] + fsi__mask_count(owner->vertex[row] & ((1u << bit) - 1));
}

static int fsi__gs_through(const fsi_grid *g, const int *at, const fsi__gs_cube *cube)
{
    const int node[3] = { at[0] + cube->x, at[1] + cube->y, at[2] + cube->z };
    int a, through = 0;
    for (a = 0; a < g->dim; a++) through |= (node[a] == -2 ? 1 : node[a] == g->n[a] ? 8 : 0) << a;
    return through;
}

/* Elements of a cube with these corners inside; NULL only counts them. */
static int fsi__gs_cube_elements(const fsi__gs_impl *m, const fsi__gs_slot *s, const fsi__gs_cube *cube, unsigned inside, int *out)
{
    const int corners = m->phi->grid->dim;
    const unsigned char *edges = m->cases[corners - 2][inside];
    int e, k, count = 0;
    for (e = 1; e <= edges[0]; e += corners) {
        if (cube->through && fsi__gs_collapsed(edges + e, corners, cube->through)) continue;
        for (k = 0; out && k < corners; k++) out[count * corners + k] = fsi__gs_vertex(m, s, cube, edges[e + k]);
        count++;
    }
    return count;
}

/* Elements of a slot, eight cubes at a time: those whose corners are all on one side are passed over. */
static int fsi__gs_elements(const fsi__gs_impl *m, const fsi__gs_slot *s, int *out)
{
    const fsi_grid *g = m->phi->grid;
    const unsigned through = fsi__gs_mask(g, s->at[0], fsi__gs_caps);
    const int up = g->dim == 3 ? 9 : 0;
    fsi__gs_cube cube;
    int count = 0;
    for (cube.z = 0; cube.z < (g->dim == 3 ? 8 : 1); cube.z++)
        for (cube.y = 0; cube.y < 8; cube.y++) {
            const uint16_t *in = s->inside + cube.z * 9 + cube.y;
            const unsigned some = (unsigned)(in[0] | in[1] | in[up] | in[up + 1]), all = (unsigned)(in[0] & in[1] & in[up] & in[up + 1]);
            const int row_through = fsi__gs_caps(g, 1, s->at[1] + cube.y) || fsi__gs_caps(g, 2, s->at[2] + cube.z);
            unsigned left = (some | some >> 1) & ~(all & all >> 1) & 255;
            if (!m->capped) left &= row_through ? 0 : ~through;
            for (; left; left &= left - 1) {
                const int x = fsi__mask_count((left & (0u - left)) - 1);
                unsigned inside = (in[0] >> x & 3u) | (in[1] >> x & 3u) << 2;
                if (g->dim == 3) inside |= (in[9] >> x & 3u) << 4 | (in[10] >> x & 3u) << 6;
                cube.x = x;
                cube.through = row_through || through >> x & 1 ? fsi__gs_through(g, s->at, &cube) : 0;
                count += fsi__gs_cube_elements(m, s, &cube, inside, out ? out + count * g->dim : NULL);
            }
        }
    return count;
}

/* ---- vertices ---- */

static fsi_real fsi__gs_coordinate(const fsi_grid *g, int axis, int node) /* in cells, from the lower wall */
{
    return node < 0 ? 0 : node >= g->n[axis] ? (fsi_real)g->n[axis] : (fsi_real)node + (fsi_real)0.5;
}

static fsi_vec3 fsi__gs_gradient(const fsi_real *v, const int *stride, int dim)
{
    return fsi_v3(v[stride[0]] - v[-stride[0]], v[stride[1]] - v[-stride[1]], dim == 3 ? v[stride[2]] - v[-stride[2]] : 0);
}

/* The vertex of a node along an axis, from the values around it; axis 3: at the node itself, on the wall. */
static void fsi__gs_put_vertex(fsi__gs_impl *m, const int *node, int axis, const fsi_real *v, const int *stride, int id)
{
    const fsi_grid *g = m->phi->grid;
    const fsi_real apart = (fsi_real)FSI__GS_APART;
    fsi_real x[3], n[3];
    fsi_vec3 normal;
    int a;
    for (a = 0; a < 3; a++) {
        x[a] = a < g->dim ? fsi__gs_coordinate(g, a, node[a]) : 0;
        n[a] = axis < 3 ? (fsi_real)(a == axis ? (v[0] < 0 ? 1 : -1) : 0) : (fsi_real)(a >= g->dim ? 0 : node[a] == -1 ? -1 : node[a] == g->n[a] ? 1 : 0);
    }
    normal = fsi_v3_unit(fsi_v3(n[0], n[1], n[2]));
    if (axis < 3) {
        const fsi_real end = v[stride[axis]], t = fsi_clamp(v[0] / (v[0] - end), apart, 1 - apart);
        const fsi_vec3 p = fsi__gs_gradient(v, stride, g->dim), q = fsi__gs_gradient(v + stride[axis], stride, g->dim);
        const fsi_vec3 gradient = fsi_v3_unit(fsi_v3_add(fsi_v3_scale(p, 1 - t), fsi_v3_scale(q, t)));
        if (fsi_v3_norm2(gradient) > (fsi_real)0.5) normal = gradient; /* not so where it is 0, or its square too small or large for a number */
        x[axis] += t * (fsi__gs_coordinate(g, axis, node[axis] + 1) - x[axis]);
    }
    m->vertices[id] = fsi_v3_madd(g->origin, g->dx, fsi_v3(x[0], x[1], x[2]));
    m->normals[id] = normal;
}

static void fsi__gs_vertices(fsi__gs_impl *m, const fsi__gs_slot *s)
{
    const fsi_grid *g = m->phi->grid;
    const int stride[3] = { 1, 12, 144 };
    fsi_real v[1728];
    int node[3], y, z, id = s->vertices;
    fsi__grid_gather_at(m->phi, s->at, 2, v);
    for (z = 0; z < (g->dim == 3 ? 8 : 1); z++)
        for (y = 0; y < 8; y++) {
            uint32_t left = s->vertex[z * 8 + y];
            for (; left; left &= left - 1) {
                const int bit = fsi__mask_count((left & (0u - left)) - 1), x = bit & 7;
                node[0] = s->at[0] + x;
                node[1] = s->at[1] + y;
                node[2] = s->at[2] + z;
                fsi__gs_put_vertex(m, node, bit >> 3, v + ((g->dim == 3 ? z + 2 : 0) * 12 + y + 2) * 12 + x + 2, stride, id++);
            }
        }
}

/* ---- passes ---- */

static void fsi__gs_count_slots(void *arg, int chunk, int begin, int end)
{
    fsi__gs_impl *m = (fsi__gs_impl *)arg;
    const fsi_grid *g = m->phi->grid;
    int at[3], a, d;
    (void)chunk;
    for (; begin < end; begin++) {
        fsi__gs_slot *s = m->slots + begin;
        for (d = 0; d < 8; d++) {
            int exists = 1;
            for (a = 0; a < 3; a++) {
                at[a] = s->at[a] + (d >> a & 1) * 8;
                exists &= at[a] / 8 + (a < g->dim ? 1 : 0) < fsi__gs_places(g, a);
            }
            s->up[d] = exists ? m->map[fsi__gs_place(g, at)] : -1;
        }
        fsi__gs_look(m, s);
        fsi__gs_mark_vertices(m, s);
        s->elements = fsi__gs_elements(m, s, NULL);
    }
}

static void fsi__gs_fill_slots(void *arg, int chunk, int begin, int end)
{
    fsi__gs_impl *m = (fsi__gs_impl *)arg;
    const size_t corners = (size_t)m->phi->grid->dim;
    (void)chunk;
    for (; begin < end; begin++) {
        const fsi__gs_slot *s = m->slots + begin, *next = s + 1;
        if (next->vertices > s->vertices) fsi__gs_vertices(m, s);
        if (next->elements > s->elements) fsi__gs_elements(m, s, m->elements + (size_t)s->elements * corners);
    }
}

/* ---- the object ---- */

static void fsi__gs_make_cases(fsi__gs_impl *m)
{
    int dim, k;
    for (dim = 2; dim <= 3; dim++)
        for (k = 0; k < (dim == 3 ? 256 : 16); k++) fsi__sf_make_case(m->cases[dim - 2], dim, k);
}

FSI_API fsi_status fsi_grid_surface_create(fsi_grid_surface **out, fsi_context *context)
{
    fsi_grid_surface *s;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!fsi__is_context(context)) return FSI_ERROR_COOKIE;
    s = (fsi_grid_surface *)fsi__alloc(context, 1, sizeof *s + sizeof(fsi__gs_impl));
    if (!s) return fsi__fail(context, FSI_ERROR_MEMORY, "fsi_grid_surface_create", -1, 0, "no memory for a surface");
    s->cookie = FSI__COOKIE('i', fsi_grid_surface);
    s->context = context;
    s->corners = 3;
    s->impl = s + 1;
    fsi__gs_make_cases((fsi__gs_impl *)s->impl);
    *out = s;
    return FSI_OK;
}

static int fsi__gs_vertex_columns(fsi__gs_impl *m, fsi__column *c)
{
    c[0].array = (void **)&m->vertices;
    c[1].array = (void **)&m->normals;
    c[0].size = c[1].size = sizeof(fsi_vec3);
    return 2;
}
static int fsi__gs_column(void **array, size_t size, fsi__column *c)
{
    c->array = array;
    c->size = size;
    return 1;
}

FSI_API void fsi_grid_surface_destroy(fsi_grid_surface *s)
{
    fsi__gs_impl *m;
    fsi__column c[2];
    if (!s || s->cookie != FSI__COOKIE('i', fsi_grid_surface)) return;
    m = (fsi__gs_impl *)s->impl;
    fsi__free_columns(s->context, c, fsi__gs_vertex_columns(m, c), m->vertex_capacity);
    fsi__free_columns(s->context, c, fsi__gs_column((void **)&m->elements, sizeof(int), c), m->element_capacity);
    fsi__free_columns(s->context, c, fsi__gs_column((void **)&m->slots, sizeof *m->slots, c), m->slot_capacity);
    fsi__arena_free(s->context, &m->memory);
    s->cookie = 0;
    fsi__free(s->context, s, 1, sizeof *s + sizeof *m);
}

/* Room for `need` rows, of which the first `keep` stay. */
static fsi_status fsi__gs_room(fsi_context *context, const fsi__column *c, int columns, int keep, int *capacity, int need)
{
    return fsi__room(context, c, columns, keep, capacity, need, "fsi_grid_surface_update");
}

/* Signs of all blocks; refuses what is not finite, naming the cell. */
static fsi_status fsi__gs_check_values(fsi_context *context, fsi__gs_impl *m)
{
    fsi_status status = FSI_OK;
    int b;
    fsi__grid_light(m->phi->grid, 8, 200, fsi__gs_scan, m);
    for (b = 0; b < m->phi->grid->block_count && status == FSI_OK; b++)
        if (m->signs[b] >= 4) status = fsi__grid_name_bad(context, m->phi, b, "phi", "fsi_grid_surface_update");
    return status;
}

/* Finds the slots. */
static fsi_status fsi__gs_find_slots(fsi_context *context, fsi__gs_impl *m)
{
    const fsi_grid *g = m->phi->grid;
    const size_t blocks = (size_t)g->block_count, places = (size_t)fsi__gs_places(g, 0) * (size_t)fsi__gs_places(g, 1) * (size_t)fsi__gs_places(g, 2);
    fsi__column c[1];
    fsi_status status;
    size_t p;
    int b;
    if (!fsi__arena_room(context, &m->memory, blocks + places * sizeof *m->map + 128))
        return fsi__fail(context, FSI_ERROR_MEMORY, "fsi_grid_surface_update", -1, 0, "no memory for %g places", (double)places);
    m->map = (int *)fsi__take(&m->memory, places, sizeof *m->map);
    m->signs = (unsigned char *)fsi__take(&m->memory, blocks, 1);
    status = fsi__gs_check_values(context, m);
    if (status != FSI_OK) return status;
    for (p = 0; p < places; p++) m->map[p] = -1;
    for (b = 0; b < g->block_count; b++)
        if (m->signs[b] & 1) fsi__gs_mark(m, b);
    m->slot_count = fsi__gs_number_slots(m, 0);
    status = fsi__gs_room(context, c, fsi__gs_column((void **)&m->slots, sizeof *m->slots, c), 0, &m->slot_capacity, m->slot_count + 1);
    if (status == FSI_OK) fsi__gs_number_slots(m, 1);
    return status;
}

/* Counts become positions; the slot behind the last one holds the totals. */
static fsi_status fsi__gs_number(fsi_context *context, fsi__gs_impl *m)
{
    const int corners = m->phi->grid->dim;
    long long vertices = 0, elements = 0;
    int k;
    for (k = 0; k <= m->slot_count; k++) {
        fsi__gs_slot *s = m->slots + k;
        const int v = k < m->slot_count ? s->vertices : 0, e = k < m->slot_count ? s->elements : 0;
        s->vertices = (int)vertices;
        s->elements = (int)elements;
        vertices += v;
        elements += e;
        if (vertices > 2147483647 || elements * corners > 2147483647)
            return fsi__fail(context, FSI_ERROR_LIMIT, "fsi_grid_surface_update", -1, (double)elements, "the surface has more than 2^31 - 1 vertices or indices");
    }
    return FSI_OK;
}

/* Room for the result; the former one is kept, and where it is told. */
static fsi_status fsi__gs_grow(fsi_grid_surface *s, fsi__gs_impl *m)
{
    const fsi__gs_slot *end = m->slots + m->slot_count;
    fsi__column c[2];
    fsi_status status = fsi__gs_room(s->context, c, fsi__gs_vertex_columns(m, c), s->vertex_count, &m->vertex_capacity, end->vertices);
    if (status == FSI_OK)
        status = fsi__gs_room(s->context, c, fsi__gs_column((void **)&m->elements, sizeof(int), c), s->element_count * s->corners, &m->element_capacity, end->elements * m->phi->grid->dim);
    s->vertices = m->vertices;
    s->normals = m->normals;
    s->elements = m->elements;
    return status;
}

FSI_API fsi_status fsi_grid_surface_update(fsi_grid_surface *s, const fsi_field *phi, int capped)
{
    static const char *const f = "fsi_grid_surface_update";
    fsi__gs_impl *m;
    double work;
    fsi_status status;
    if (!s || s->cookie != FSI__COOKIE('i', fsi_grid_surface) || !fsi__is_field(phi)) return FSI_ERROR_COOKIE;
    if (phi->place != FSI_CELLS) return fsi__fail(s->context, FSI_ERROR_ARGUMENT, f, -1, (double)(int)phi->place, "phi is not a field of cells");
    if (!(phi->background >= 0))
        return fsi__fail(s->context, FSI_ERROR_ARGUMENT, f, -1, (double)phi->background, "the background of phi is %g: liquid where no block is", (double)phi->background);
    m = (fsi__gs_impl *)s->impl;
    m->phi = phi;
    m->capped = capped != 0;
    status = fsi__gs_find_slots(s->context, m);
    if (status != FSI_OK) return status;
    work = (phi->grid->dim == 2 ? 200.0 : 1200.0) * m->slot_count; /* nanoseconds at least */
    fsi__parallel_work(s->context, m->slot_count, FSI__GS_GRAIN, work, fsi__gs_count_slots, m);
    status = fsi__gs_number(s->context, m);
    if (status == FSI_OK) status = fsi__gs_grow(s, m);
    if (status != FSI_OK) return status;
    fsi__parallel_work(s->context, m->slot_count, FSI__GS_GRAIN, work, fsi__gs_fill_slots, m);
    s->corners = phi->grid->dim;
    s->vertex_count = m->slots[m->slot_count].vertices;
    s->element_count = m->slots[m->slot_count].elements;
    return FSI_OK;
}

/* ---- >>multigrid ---------------------------------------------------------------------------------------------- */

/* Linear systems on the liquid's cells alone, A x = r with one equation a cell,

      excess x_i + sum over neighbours of a_face (x_i - x_nb) = r_i,      a_face >= 0, excess >= 0

   Cells are stored in bricks of 8 along x, in the order of z, y, x, and only bricks with a liquid cell exist. A segment is a
   range of bricks, side by side, whose neighbours in y and z are side by side too, so that every loop runs over contiguous
   numbers; neighbours that do not exist are read from a pad of zeros behind the last brick.

        row y + 1        |-----brick----|-----brick----|                        upper[0]
        row y                           |-----brick----|-----brick----|         at     two segments: what is below the first
        row y - 1                       |-----brick----|  zeros ...             lower[0]  does not go on below the second

   The preconditioner of conjugate gradients is a V-cycle in float. A coarse cell is 2 x 2 x 2 cells; its faces are the sums of theirs over 2,
   for the distance between centres is twice as far. Its value goes to all its cells: with two sweeps that is as good as linear interpolation, and does not
   mind jumps of the density by 1000. A sweep takes the rows with y + z even, then the odd ones: x of a row from old values of the row and the newest of
   those around it. */

/* What a loop writes is apart from all that it reads: spares the compiler a check of every pair of arrays, or giving up. */
#if defined(__clang__)
#define FSI__MG_APART _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define FSI__MG_APART _Pragma("GCC ivdep")
#else
#define FSI__MG_APART
#endif

#define FSI__MG_FRONT 8             /* zeros before the first brick */
#define FSI__MG_LONGEST 64          /* bricks in a segment, and in the pad */
#define FSI__MG_LEVELS 16
#define FSI__MG_GRAIN 128           /* segments a task */
#define FSI__MG_NS 10               /* nanoseconds a segment takes at least: fsi__parallel_work; */
#define FSI__MG_NS_ZERO 8           /* where x is 0, and without a step; */
#define FSI__MG_NS_EXACT 13         /* in doubles; */
#define FSI__MG_BRICK_NS 8          /* and a brick of a coarser level */
#define FSI__MG_ROUGH_NS 100        /* and a rough one, to be made of finer ones */
#define FSI__MG_SWEEPS 2            /* before and after the coarser levels; one more on those */
#define FSI__MG_WEIGHT 0.95f        /* with 1, chains of cells along x would not be smoothed */

typedef struct fsi__mg_segment {
    int at, n, lower[2], upper[2]; /* first cell, cells, first cells of the rows beside it in y and z */
    int rough;                     /* where its arrays start in `faces`, -1: plain */
} fsi__mg_segment;

/* What the equations of rough bricks are made of: eight arrays in their order. A face between two cells stands in both. Plain bricks, inside a liquid of one
   density, have none: all their faces are the level's `unit`, and there is no excess. */
enum { FSI__MG_LOWER = 0, FSI__MG_UPPER = 3, FSI__MG_EXCESS = 6, FSI__MG_INVERSE = 7, FSI__MG_ARRAYS = 8 }; /* inverse: 1/diagonal, 0: no equation */

typedef struct fsi__mg_level {
    fsi__arena lists_memory, numbers_memory;
    int columns, rows[2];       /* cells along x, y, z */
    int bricks, cells;          /* cells: numbers in each array, with the zeros */
    int *row;                   /* rows[0] * rows[1] + 1: first brick of each row */
    int *place;                 /* bricks: x/8 */
    int *child;                 /* bricks * 8: at z * 4 + y * 2 + x the brick of the finer level there, -1 none */
    fsi__mg_segment *segment;
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

static int fsi__mg_cell(int brick) { return FSI__MG_FRONT + 8 * brick; }

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
                fsi__mg_segment *s = m->segment + m->segments - 1;
                int joins = b > m->row[r] && (m->rough[b] < 0) == (m->rough[b - 1] < 0) && m->place[b] == m->place[b - 1] + 1 && s->n < 8 * FSI__MG_LONGEST;
                for (d = 0; d < 4; d++) {
                    const int step = d & 1 ? 1 : -1;
                    now[d] = fsi__mg_find(m, y + (d < 2 ? step : 0), z + (d < 2 ? 0 : step), m->place[b], from + d);
                    joins = joins && (now[d] < 0 ? last[d] == -1 : now[d] == last[d] + 1 && last[d] >= 0);
                    last[d] = now[d];
                }
                if (!joins) {
                    s = m->segment + m->segments++;
                    s->at = fsi__mg_cell(b);
                    s->n = 0;
                    s->rough = m->rough[b];
                    for (d = 0; d < 4; d++) (d & 1 ? s->upper : s->lower)[d >> 1] = fsi__mg_cell(now[d] < 0 ? m->bricks : now[d]);
                }
                s->n += 8;
            }
        }
}

/* Merges the rows of the finer level, two by two in y and z, into the bricks of m: counts them; fills the lists if `fill`. Those whose children are all there
   and plain are plain: `children` of them. */
static int fsi__mg_merge(const fsi__mg_level *fine, fsi__mg_level *m, int children, int fill)
{
    int y, z, q, half, count = 0;
    m->rough_cells = 0;
    for (z = 0; z < m->rows[1]; z++)
        for (y = 0; y < m->rows[0]; y++) {
            int at[4], end[4];
            for (q = 0; q < 4; q++) {
                const int fy = 2 * y + (q & 1), fz = 2 * z + (q >> 1), there = fy < fine->rows[0] && fz < fine->rows[1];
                at[q] = there ? fine->row[fz * fine->rows[0] + fy] : 0;
                end[q] = there ? fine->row[fz * fine->rows[0] + fy + 1] : 0;
            }
            if (fill) m->row[z * m->rows[0] + y] = count;
            for (;;) {
                int first = -1, plain = 0;
                for (q = 0; q < 4; q++)
                    if (at[q] < end[q] && (first < 0 || fine->place[at[q]] >> 1 < first)) first = fine->place[at[q]] >> 1;
                if (first < 0) break;
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
        m->segment = (fsi__mg_segment *)fsi__take(lists, n, sizeof *m->segment);
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
    float plain[3];                /* of the finer level: a along each axis inside the liquid */
} fsi__mg_job;

static void fsi__mg_invert(float *f, size_t n)
{
    float d[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };
    int c, k;
    for (k = 0; k < FSI__MG_INVERSE; k++)
        for (c = 0; c < 8; c++) d[c] += f[(size_t)k * n + (size_t)c];
    for (c = 0; c < 8; c++) f[FSI__MG_INVERSE * n + (size_t)c] = d[c] > 0 ? 1 / d[c] : 0;
}

/* The faces of coarse cells. A free surface, at the distance h/excess from a fine centre, lies h/2 further from the coarse one. A closed piece of liquid
   that is one coarse cell has no faces left: it is tied down as if it had some excess, or sweeps would forget what coarser levels, which mix
   it with others, bring it, and the cycle would not be symmetric. Where such a piece moves a light body, that ends the iteration. */
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
                sum[FSI__MG_EXCESS][to] += e / (1 + e * 0.5f / f->unit);
                some[to] |= !in || in[FSI__MG_INVERSE * n + (size_t)c] > 0;
            }
        }
        for (c = 0; c < 8; c++) {
            float all = 0;
            for (k = 0; k < FSI__MG_INVERSE; k++) all += sum[k][c];
            if (some[c] && !(all > 0)) sum[FSI__MG_EXCESS][c] = m->unit;
        }
        for (k = 0; k < FSI__MG_ARRAYS; k++) memcpy(m->faces + (size_t)k * (size_t)m->rough_cells + m->rough[b], sum[k], sizeof sum[k]);
        fsi__mg_invert(m->faces + m->rough[b], (size_t)m->rough_cells);
    }
}

/* All levels from the faces of the finest. */
static void fsi__mg_setup(fsi__mg *g)
{
    fsi__mg_job job;
    double work;
    int l;
    memset(&job, 0, sizeof job);
    g->level[0].unit = 1;
    for (l = 0; l < g->levels; l++) {
        fsi__mg_level *m = g->level + l;
        job.fine = m - 1;
        job.m = m;
        if (l > 0) {
            job.plain[0] = job.plain[1] = job.fine->unit;
            job.plain[2] = g->dim == 3 ? job.fine->unit : 0;
            m->unit = job.fine->unit * (g->dim == 3 ? 2.0f : 1.0f);
            work = (double)FSI__MG_ROUGH_NS * m->rough_cells / 8;
            fsi__parallel_work(g->context, m->bricks, FSI__MG_GRAIN, work, fsi__mg_coarsen, &job);
        }
    }
}

/* The arrays of a rough segment: lower faces are a, upper ones b. */
typedef struct fsi__mg_names { const float *ax, *ay, *az, *bx, *by, *bz, *excess, *inverse; } fsi__mg_names;
static fsi__mg_names fsi__mg_name(const fsi__mg_level *m, const fsi__mg_segment *s)
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
    const float w = job->weight, unit = m->unit, keep = 1 - w, give = w / (job->faces * unit);
    int k, i;
    (void)chunk;
    for (k = begin + job->first; k < end + job->first; k++) {
        const fsi__mg_segment *s = m->segment + k;
        const fsi__mg_names f = fsi__mg_name(m, s);
        const float *x = job->own + s->at, *r = m->r + s->at;
        const float *yl = job->other + s->lower[0], *yu = job->other + s->upper[0], *zl = job->other + s->lower[1], *zu = job->other + s->upper[1];
        float *out = job->out + s->at;
        if (s->rough < 0)
            FSI__MG_APART
            for (i = 0; i < s->n; i++) out[i] = keep * x[i] + give * (r[i] + unit * (x[i - 1] + x[i + 1] + yl[i] + yu[i] + zl[i] + zu[i]));
        else
            FSI__MG_APART
            for (i = 0; i < s->n; i++)
                out[i] = keep * x[i] + w * f.inverse[i] * (r[i] + f.ax[i] * x[i - 1] + f.bx[i] * x[i + 1] + f.ay[i] * yl[i] + f.by[i] * yu[i] + f.az[i] * zl[i] + f.bz[i] * zu[i]);
    }
}

/* The same from x = 0; the rows of the first colour then see nothing beside them. */
static void fsi__mg_relax_zero(void *arg, int chunk, int begin, int end)
{
    const fsi__mg_job *job = (const fsi__mg_job *)arg;
    const fsi__mg_level *m = job->m;
    const float w = job->weight, unit = m->unit, give = w / (job->faces * unit);
    int k, i;
    (void)chunk;
    for (k = begin + job->first; k < end + job->first; k++) {
        const fsi__mg_segment *s = m->segment + k;
        const fsi__mg_names f = fsi__mg_name(m, s);
        const float *r = m->r + s->at;
        float *out = job->out + s->at;
        const float *yl, *yu, *zl, *zu;
        if (!job->other) {
            for (i = 0; i < s->n; i++) out[i] = (s->rough < 0 ? give : w * f.inverse[i]) * r[i];
            continue;
        }
        yl = job->other + s->lower[0], yu = job->other + s->upper[0], zl = job->other + s->lower[1], zu = job->other + s->upper[1];
        if (s->rough < 0)
            FSI__MG_APART
            for (i = 0; i < s->n; i++) out[i] = give * (r[i] + unit * (yl[i] + yu[i] + zl[i] + zu[i]));
        else
            FSI__MG_APART
            for (i = 0; i < s->n; i++)
                out[i] = w * f.inverse[i] * (r[i] + f.ay[i] * yl[i] + f.by[i] * yu[i] + f.az[i] * zl[i] + f.bz[i] * zu[i]);
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
        const fsi__mg_segment *s = m->segment + k;
        const fsi__mg_names f = fsi__mg_name(m, s);
        const float *x = job->own + s->at, *r = m->r + s->at;
        const float *yl = job->own + s->lower[0], *yu = job->own + s->upper[0], *zl = job->own + s->lower[1], *zu = job->own + s->upper[1];
        float *out = job->out + s->at;
        if (s->rough < 0)
            FSI__MG_APART
            for (i = 0; i < s->n; i++) out[i] = r[i] - unit * (faces * x[i] - (x[i - 1] + x[i + 1] + yl[i] + yu[i] + zl[i] + zu[i]));
        else
            FSI__MG_APART
            for (i = 0; i < s->n; i++) {
                const float v = x[i];
                out[i] = r[i] - f.excess[i] * v - f.ax[i] * (v - x[i - 1]) - f.bx[i] * (v - x[i + 1]) - f.ay[i] * (v - yl[i]) -
                         f.by[i] * (v - yu[i]) - f.az[i] * (v - zl[i]) - f.bz[i] * (v - zu[i]);
            }
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
            for (c = 0; c < 4; c++) sum[4 * (k & 1) + c] += r[2 * c] + r[2 * c + 1];
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

static void fsi__mg_parallel(const fsi__mg *g, int segments, fsi__range_fn *fn, fsi__mg_job *job)
{
    const double work = fn == fsi__mg_relax ? FSI__MG_NS : FSI__MG_NS_ZERO;
    fsi__parallel_work(g->context, segments, FSI__MG_GRAIN, work * segments, fn, job);
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

/* level[0].x = an approximation of A^-1 level[0].r: one V-cycle. What comes after the coarse levels is the adjoint of what comes before. */
static void fsi__mg_cycle(fsi__mg *g)
{
    fsi__mg_job job;
    int l, k;
    memset(&job, 0, sizeof job);
    job.faces = 2 * (float)g->dim;
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
        fsi__parallel_work(g->context, job.m->bricks, FSI__MG_GRAIN, FSI__MG_BRICK_NS * job.m->bricks, fsi__mg_restrict, &job);
    }
    for (k = 0; k < 8; k++) g->level[l].x[FSI__MG_FRONT + k] = g->level[l].faces[FSI__MG_INVERSE * g->level[l].rough_cells + k] * g->level[l].r[FSI__MG_FRONT + k];
    while (l-- > 0) {
        fsi__mg_level *m = g->level + l;
        job.m = m + 1;
        job.out = m->x;
        fsi__parallel_work(g->context, job.m->bricks, FSI__MG_GRAIN, FSI__MG_BRICK_NS * job.m->bricks, fsi__mg_prolong, &job);
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
#define FSI__PRESSURE_LIGHTEST 1e-5  /* a body has at least this share of the mass of the liquid that moves with it */
#define FSI__PRESSURE_WAY_OUT 1e-3  /* a body lets liquid move whose faces do not cancel to within this share */

/* Solids in the faces of one block. */
typedef struct fsi__pressure_cut {
    fsi_real closed[3][512];        /* share that solids cover; above 1 where they overlap */
    double flux[3][512];            /* sum of their shares times velocities [m/s] */
} fsi__pressure_cut;

/* A face between cells `lower` and `upper` (-1: no unknown there) that a coupled body covers in part: a row of H. */
typedef struct fsi__pressure_face {
    int lower, upper;
    double h[6];
} fsi__pressure_face;

/* Cells side by side along x, joined by open faces. */
typedef struct fsi__pressure_run { int at, n, root, piece; double sum; } fsi__pressure_run;
typedef struct fsi__pressure_piece { int group, joined, free, touching; double cells, mean, way[6], size[6]; } fsi__pressure_piece;

/* A face of a solid that yields, with an unknown beside it. */
typedef struct fsi__pressure_yield {
    int lower, upper, at;           /* unknowns, -1: none; its place in `pushed` and `change` */
    double share, more;             /* more: what the multigrid's matrix has there beyond A */
} fsi__pressure_yield;

typedef struct fsi__pressure_impl {
    fsi__mg mg;
    fsi__arena lists_memory, cuts_memory, vectors_memory, faces_memory, responses_memory, yields_memory, runs_memory, pieces_memory, nulls_memory;
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
    int *column, columns;           /* 6 a body: the column of V H^T that a row of H has, -1: the preconditioner leaves it out */
    float *response;                /* these columns, one after the other; NULL: none, or too many to keep */
    double *heavier;                /* 2 a body: the share of its inverse mass and inverse inertia that counts, below 1 where these are huge */
    fsi__pressure_yield *yield;     /* of solids that yield, */
    int *first_yield;               /* those of solid k from first_yield[k] on; */
    int *first_pushed;              /* solid_count + 1: where its faces start in the next two, which hold all of them */
    double *pushed, *change;        /* impulse and response of each face */
    double *null;                   /* nulls of `touching` numbers, one a piece: pressures of pieces that nothing feels; orthonormal over the cells */
    int touching, nulls;            /* touching: pieces that meet a body or a solid that yields; 0 where no solid yields */
} fsi__pressure_impl;

/* What the tasks of one projection share. Pressures are q = p dt/(density dx^2) [1/s], and beta is relative to the largest one. */
typedef struct fsi__pressure_job {
    fsi_pressure *s;
    fsi__pressure_impl *m;
    fsi_pressure_flow *flow;
    const fsi_grid *grid;
    double scale;                   /* q of a pressure of 1 Pa */
    double density;                 /* 1/largest beta */
    const double *from;             /* what the matrix is applied to */
    double alpha, beta, factor;     /* of the iteration; level[0].r is factor * r */
    fsi_status status;              /* what a respond returned */
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

FSI_API fsi_status fsi_pressure_create(fsi_pressure **out, const fsi_pressure_desc *desc)
{
    fsi__pressure_impl *m;
    fsi_pressure *s;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!desc || desc->cookie != FSI__COOKIE('P', fsi_pressure_desc) || !fsi__is_context(desc->context)) return FSI_ERROR_COOKIE;
    s = (fsi_pressure *)fsi__alloc(desc->context, 1, sizeof *s);
    m = (fsi__pressure_impl *)fsi__alloc(desc->context, 1, sizeof *m);
    if (!s || !m) {
        fsi__free(desc->context, m, 1, sizeof *m);
        fsi__free(desc->context, s, 1, sizeof *s);
        return fsi__fail(desc->context, FSI_ERROR_MEMORY, "fsi_pressure_create", -1, 0, "no memory for a pressure solver");
    }
    s->cookie = FSI__COOKIE('p', fsi_pressure);
    s->context = m->mg.context = desc->context;
    s->desc = *desc;
    s->impl = m;
    *out = s;
    return FSI_OK;
}

FSI_API void fsi_pressure_destroy(fsi_pressure *s)
{
    fsi__pressure_impl *m;
    int l;
    if (!s || s->cookie != FSI__COOKIE('p', fsi_pressure)) return;
    m = (fsi__pressure_impl *)s->impl;
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
    fsi__free(s->context, m, 1, sizeof *m);
    s->cookie = 0;
    fsi__free(s->context, s, 1, sizeof *s);
}

/* ---- >>pressure cells ----------------------------------------------------------------------------------------- */

/* Rows of 8 cells with a liquid one, in the order of z, y, x: counts them; fills the lists of the finest level if `fill`. */
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
                for (y = 0; y < 8; y++)
                    for (b = from; b < to; b++) {
                        const int at = (z * 8 + y) * 8;
                        const unsigned char *cell = job->flow->cell + (size_t)b * (size_t)g->block_cells + at;
                        int wet = 0;
                        for (c = 0; c < 8; c++) wet |= cell[c] == FSI_CELL_LIQUID;
                        if (fill) job->m->brick[(size_t)b * (size_t)(g->block_cells / 8) + (size_t)(at / 8)] = wet ? count : -1;
                        if (fill && wet) {
                            int corner[3], here;
                            fsi_grid_corner(g, b, corner);
                            here = (corner[2] + z - 8 * job->m->first_block[2]) * m->rows[0] + corner[1] + y - 8 * job->m->first_block[1];
                            while (row <= here) m->row[row++] = count;
                            m->place[count] = corner[0] / 8 - job->m->first_block[0];
                            job->m->row[count] = b * (g->block_cells / 8) + at / 8;
                        }
                        count += wet;
                    }
            }
        }
    }
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
        if (!memchr(job->flow->cell + (size_t)b * (size_t)g->block_cells, FSI_CELL_LIQUID, (size_t)g->block_cells)) continue;
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
    return fsi_grid_position(g, (fsi_grid_place)(FSI_FACES_X + axis), corner[0] + (c & 7), corner[1] + (c >> 3 & 7), corner[2] + (c >> 6));
}

/* Velocity of solid b along the axis of its face f. */
static double fsi__pressure_solid_velocity(const fsi__pressure_job *job, const fsi_pressure_solid *b, int f, int axis)
{
    fsi_vec3 v;
    if (b->respond) return (b->velocity ? (double)b->velocity[f] : 0) + job->m->change[job->m->first_pushed[b - job->flow->solids] + f];
    if (!b->coupled) return b->velocity ? (double)b->velocity[f] : 0;
    v = fsi_rigid_velocity(b->linear, b->angular, b->center, fsi__pressure_face_position(job->grid, b->faces->entry[f], axis));
    return (double)(axis == 0 ? v.x : (axis == 1 ? v.y : v.z));
}

/* Adds up shares and fluxes of all solids. */
static void fsi__pressure_add_solids(fsi__pressure_job *job)
{
    const fsi_grid *g = job->grid;
    int k, a, f;
    for (k = 0; k < job->flow->solid_count; k++) {
        const fsi_pressure_solid *b = job->flow->solids + k;
        for (a = 0; a < g->dim; a++)
            for (f = b->faces->first[a]; f < b->faces->first[a + 1]; f++) {
                const int c = b->faces->entry[f] % g->block_cells, cut = job->m->cut[b->faces->entry[f] / g->block_cells];
                if (cut < 0) continue;
                job->m->cuts_of[cut].closed[a][c] += b->faces->solid[f];
                job->m->cuts_of[cut].flux[a][c] += (double)b->faces->solid[f] * fsi__pressure_solid_velocity(job, b, f, a);
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
    for (k = 0; k < flow->solid_count; k++) faces += flow->solids[k].respond ? (size_t)flow->solids[k].faces->count : 0;
    m->first_pushed = NULL;
    if (faces == 0) return 1;
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
    if (!fsi__mg_reserve_lists(job->s->context, fine, bricks)) return 0;
    fsi__pressure_scan(job, 1);
    for (b = 0; b < g->block_count; b++) {
        m->cut[b] = -1;
        fsi__blocks_beside(g, b, m->beside + 6 * (size_t)b);
    }
    for (k = 0; k < job->flow->solid_count; k++)
        for (a = 0; a < g->dim; a++)
            for (f = job->flow->solids[k].faces->first[a]; f < job->flow->solids[k].faces->first[a + 1]; f++) m->cut[job->flow->solids[k].faces->entry[f] / g->block_cells] = -2;
    for (b = 0; b < g->block_count; b++) {
        int wet = 0;
        if (m->cut[b] != -2) continue;
        for (d = -1; d < 2 * g->dim && !wet; d++) {
            const int n = d < 0 ? b : m->beside[6 * (size_t)b + (size_t)d];
            wet = n >= 0 && memchr(job->flow->cell + (size_t)n * (size_t)g->block_cells, FSI_CELL_LIQUID, (size_t)g->block_cells) != NULL;
        }
        m->cut[b] = wet ? cuts++ : -1;
    }
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
    double open, flux;   /* share that no solid covers; sum of the solids' shares times velocities */
    double a;            /* coefficient of the pressure difference, 0: closed */
    int air;             /* 1: `beyond` stands behind it rather than another unknown */
    double beyond;       /* q there */
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
        const int step = d & 1 ? stride[d >> 1] : -stride[d >> 1], inside = d > 1 && (h->place[d >> 1] & 7) != (d & 1 ? 7 : 0);
        h->row[d] = inside ? h->base + step : (beside[d] < 0 ? -1 : (long long)beside[d] * g->block_cells + c - 7 * step);
    }
}

static double fsi__pressure_at(const fsi_field *f, long long entry) { return (double)(entry < 0 ? f->background : f->value[entry]); }

/* surface_pressure at a surface `theta` of the way from one cell to the next. */
static double fsi__pressure_of_surface(const fsi_pressure_flow *flow, long long from, long long to, double theta)
{
    const double a = (1 - theta) * (flow->surface_weight ? fsi__pressure_at(flow->surface_weight, from) : 1);
    const double b = theta * (flow->surface_weight ? fsi__pressure_at(flow->surface_weight, to) : 1);
    return (a * fsi__pressure_at(flow->surface_pressure, from) + b * fsi__pressure_at(flow->surface_pressure, to)) / (a + b);
}

/* Side d of cell x of the row: what stands there, and the coefficient open beta/theta. */
static fsi__pressure_side fsi__pressure_look_side(const fsi__pressure_job *job, const fsi__pressure_here *h, int x, int d)
{
    const fsi_pressure_flow *flow = job->flow;
    const fsi_grid *g = job->grid;
    const int a = d >> 1, place = h->place[a] + (a ? 0 : x);
    int gone, go, wall = d & 1 ? place + 1 >= g->n[a] : place == 0;
    const long long here = h->base + x;
    const long long there = d > 1 ? (h->row[d] < 0 ? -1 : h->row[d] + x) : (x != (d ? 7 : 0) ? here + (d ? 1 : -1) : (h->row[d] < 0 ? -1 : h->row[d] + (d ? 0 : 7)));
    double theta = 1, beta = 1;
    fsi__pressure_side s;
    s.entry = d & 1 ? there : here;
    s.there = there;
    s.open = 1;
    s.flux = s.beyond = 0;
    s.a = 0;
    gone = fsi__pressure_gone(job, s.entry, a);
    wall |= go = gone >> (d & 1 ? 3 : 0) & 1;
    s.cell = wall ? (flow->open_side[d] || go ? (int)FSI_CELL_AIR : (int)FSI_CELL_SOLID) : (there < 0 ? (int)FSI_CELL_AIR : (int)flow->cell[there]);
    s.air = s.cell == FSI_CELL_AIR;
    if (s.entry >= 0 && !go && job->m->cut[s.entry / g->block_cells] >= 0) {
        const fsi__pressure_cut *cut = job->m->cuts_of + job->m->cut[s.entry / g->block_cells];
        const int e = (int)(s.entry % g->block_cells);
        const double closed = (double)cut->closed[a][e];
        s.open = closed < 1 ? 1 - closed : 0;
        s.flux = cut->flux[a][e] / (closed > 1 ? closed : 1);
        if (s.open < FSI__PRESSURE_OPEN || gone) s.open = 0; /* what has let go of one side is closed to the other, whatever its share */
    }
    if (s.cell == FSI_CELL_SOLID || s.open == 0) {
        s.air = 0;
        return s;
    }
    if (flow->inverse_density[0]) beta = fsi__pressure_at(flow->inverse_density[a], s.entry) * job->density;
    if (!(beta > 0)) beta = HUGE_VAL; /* refused when the equations are added up */
    if (s.air && wall) theta = 0.5;
    else if (s.air && flow->phi) {
        const double in = fsi__pressure_at(flow->phi, here), out = fsi__pressure_at(flow->phi, there);
        theta = in < 0 && out > 0 ? in / (in - out) : in < 0;
        if (theta < (double)flow->theta_min) theta = (double)flow->theta_min;
        theta += 0 * (in + out); /* keeps a NaN */
    }
    if (s.air && !wall && flow->surface_pressure) s.beyond = job->scale * fsi__pressure_of_surface(flow, here, there, theta);
    s.a = s.open * beta / theta;
    if (!s.air) s.a = (double)(float)s.a;
    return s;
}

/* All sides. Matrix and velocities see the same coefficients, to the last bit of a double: those between unknowns are floats, those to air have a sum
   that is a float, which is returned. */
static float fsi__pressure_look_sides(const fsi__pressure_job *job, const fsi__pressure_here *h, int x, fsi__pressure_side *s)
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
        if (d < 2 ? cell[h->row[d] + (d ? 0 : 7)] != FSI_CELL_LIQUID : !fsi__pressure_all_liquid(cell + h->row[d])) return 0;
    }
    return 1;
}

/* The coefficients of an inner row in a liquid of several densities. */
static void fsi__pressure_inner_faces(const fsi__pressure_job *job, const fsi__pressure_here *h, float *f, size_t n)
{
    int a, c;
    for (a = 0; a < job->grid->dim; a++) {
        const fsi_real *lower = job->flow->inverse_density[a]->value + h->base, *last = job->flow->inverse_density[a]->value + h->row[2 * a + 1];
        for (c = 0; c < 8; c++) {
            f[(size_t)(FSI__MG_LOWER + a) * n + (size_t)c] = (float)((double)lower[c] * job->density);
            f[(size_t)(FSI__MG_UPPER + a) * n + (size_t)c] = (float)((double)(a ? last[c] : (c < 7 ? lower[c + 1] : *last)) * job->density);
        }
    }
}

/* Does every face of an inner row have the largest beta? */
static int fsi__pressure_is_lightest(const fsi__pressure_job *job, const fsi__pressure_here *h)
{
    float f[6 * 8];
    int k, all = 1;
    fsi__pressure_inner_faces(job, h, f, 8);
    for (k = 0; k < 24; k++) all &= (k >= 8 * job->grid->dim) | ((f[k] == 1) & (f[24 + k] == 1));
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
        job->m->mg.level[0].rough[brick] = fsi__pressure_is_inner(job, &h) && (!job->flow->inverse_density[0] || fsi__pressure_is_lightest(job, &h)) ? -1 : 0;
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
static void fsi__pressure_inner_equations(const fsi__pressure_job *job, const fsi__pressure_here *h, int brick, double *partial)
{
    const fsi_pressure_flow *flow = job->flow;
    double div[8] = { 0, 0, 0, 0, 0, 0, 0, 0 }, *b = job->m->b + fsi__mg_cell(brick);
    int a, c;
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

/* Equations of the bricks of one chunk. partial: sum of |b| (not finite when anything is not), largest b with theta = 1, unknowns, enclosed cells. */
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
        for (x = 0; x < 8; x++) {
            const int at = fsi__mg_cell(brick) + x;
            double div = 0, known = 0, reference = 0, sum = 0;
            fsi__pressure_side s[6];
            if (job->flow->cell[base + x] == FSI_CELL_LIQUID) {
                f[FSI__MG_EXCESS * n + (size_t)x] = fsi__pressure_look_sides(job, &h, x, s);
                for (d = 0; d < 2 * g->dim; d++) {
                    div += (d & 1 ? 1 : -1) * (s[d].open * fsi__pressure_at(job->flow->u[d >> 1], s[d].entry) + s[d].flux);
                    sum += s[d].a;
                    if (!s[d].air) f[(size_t)((d & 1 ? FSI__MG_UPPER : FSI__MG_LOWER) + (d >> 1)) * n + (size_t)x] = (float)s[d].a;
                    known += s[d].air ? s[d].a * s[d].beyond : 0;
                    reference += s[d].beyond;
                }
            }
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

/* The lower faces of an inner row. */
static void fsi__pressure_inner_correct(const fsi__pressure_job *job, const fsi__pressure_here *h, int brick)
{
    const fsi__pressure_impl *m = job->m;
    const float *faces = fsi__mg_faces(m->mg.level, fsi__mg_cell(brick));
    const double *q = m->x + fsi__mg_cell(brick), dx = (double)job->grid->dx;
    int a, c;
    for (a = 0; a < job->grid->dim; a++) {
        const float *share = faces ? faces + (size_t)(FSI__MG_LOWER + a) * (size_t)m->mg.level[0].rough_cells : NULL;
        const double *below = a ? m->x + fsi__mg_cell(m->brick[h->row[2 * a] >> 3]) : q - 1;
        fsi_real *u = job->flow->u[a]->value + h->base;
        for (c = 0; c < 8; c++) u[c] = (fsi_real)((double)u[c] - dx * (share ? (double)share[c] : 1) * (q[c] - below[c]));
    }
    for (c = 0; c < 8 && job->flow->pressure; c++) job->flow->pressure->value[h->base + c] = (fsi_real)(q[c] / job->scale);
}

/* u -= dx a/open (q_upper - q_lower), on the faces of the bricks' liquid cells; a face between two of them is the upper one's. */
static void fsi__pressure_correct(void *arg, int chunk, int begin, int end)
{
    const fsi__pressure_job *job = (const fsi__pressure_job *)arg;
    const fsi_grid *g = job->grid;
    fsi__pressure_impl *m = job->m;
    fsi__pressure_here h;
    int brick, x, d;
    (void)chunk;
    for (brick = begin; brick < end; brick++) {
        const long long base = 8 * (long long)m->row[brick];
        fsi__pressure_look(job, m->row[brick], &h);
        if (m->mg.level[0].rough[brick] < 0 || (job->flow->inverse_density[0] && fsi__pressure_is_inner(job, &h))) {
            fsi__pressure_inner_correct(job, &h, brick);
            continue;
        }
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
                job->flow->u[d >> 1]->value[s.entry] = (fsi_real)((double)job->flow->u[d >> 1]->value[s.entry] - (double)g->dx * s.a / s.open * (d & 1 ? beyond - here : here - beyond));
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

/* Share of face f that its solid covers, when solids overlap there. */
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

/* A solid that yields adds K = S^T R S/dx to the matrix: S takes the pressures of the cells beside its faces to impulses, R is its respond. A face that gives
   way as freely as the liquid (density dx^d R = 1) is to the cells what an open face of coefficient 1 is, towards the cell beyond or, where that is air, a
   surface a cell away. So the multigrid's matrix gets share^2 yielding there. A itself stays what it is: the iteration takes `more` out again. Multigrid
   is there for smooth pressures, to which R answers by its row sums: with these as estimates light cloth in a liquid of 64^3 cells takes 9
   iterations, with the diagonal up to 25, without 30, and more on finer grids. */

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

/* What the multigrid's matrix gets at a face along axis a: at both cells' side of it, or as an excess of the only one. */
static void fsi__pressure_soften_face(fsi__pressure_impl *m, fsi__pressure_yield *y, int a, double give)
{
    const fsi__mg_level *fine = m->mg.level;
    const size_t n = (size_t)fine->rough_cells;
    const int only = y->upper < 0 ? y->lower : y->upper, both = y->lower >= 0 && y->upper >= 0, below = both ? y->lower : only;
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
            if (job->flow->inverse_density[0]) give *= fmin((double)job->flow->inverse_density[a]->value[b->faces->entry[f]] * job->density, 1);
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
    if (job->status != FSI_OK) return !c || c->error.status == FSI_OK ? fsi__pressure_refuse(job->s, job->status, "respond failed: solids", k) : job->status;
    if (c) c->error = before;
    for (f = 0; f < n; f++) finite &= fsi_is_finite(change[f]);
    return job->status = finite ? FSI_OK : fsi__pressure_refuse(job->s, FSI_ERROR_NAN, "what respond wrote is not finite: solids", k);
}

/* The impulses of pressures v, and what all solids that yield make of them. */
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

/* Coarse levels leave a little in cells without an equation, which have no pressure. It cancels in a solid's total, but not face by face. */
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
            const fsi__mg_segment *s = f->segment + k;
            const int *here = label + s->at, *below = label + s->lower[a - 1];
            int last = -1, last_below = -1;
            for (i = 0; i < s->n; i++)
                if ((s->rough < 0 || f->faces[(size_t)a * (size_t)f->rough_cells + (size_t)(s->rough + i)] > 0) && (here[i] != last || below[i] != last_below)) {
                    const int p = fsi__pressure_root(m->run, last = here[i]), q = fsi__pressure_root(m->run, last_below = below[i]);
                    m->run[p > q ? p : q].root = p > q ? q : p;
                }
        }
}

/* piece[].way: what the pressure 1 in all of a group's cells does to body b, and size, with all signs made equal. */
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

/* A piece that moves a body, because its faces there do not cancel (a piston), is not closed: its pressure is what the body makes it. But all
   pieces together that move the same bodies may well be (the chambers on both sides of the piston): they form a group, which is tried again. */
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

static int fsi__pressure_piece_at(const fsi__pressure_impl *m, const int *label, int at) { return at < 0 ? -1 : m->run[label[at]].piece; }

/* Numbers the pieces that a body or a solid that yields meets. */
static void fsi__pressure_number_touching(fsi__pressure_job *job, const int *label)
{
    fsi__pressure_impl *m = job->m;
    const int faces = m->body_face[m->bodies], yields = m->first_yield[job->flow->solid_count];
    int i, p, side;
    for (i = 0; i < faces + yields; i++)
        for (side = 0; side < 2; side++) {
            const int lower = i < faces ? m->face[i].lower : m->yield[i - faces].lower, upper = i < faces ? m->face[i].upper : m->yield[i - faces].upper;
            p = fsi__pressure_piece_at(m, label, side ? upper : lower);
            if (p >= 0) m->piece[p].touching = 0;
        }
    for (p = m->touching = 0; p < m->pieces; p++)
        if (m->piece[p].touching == 0) m->piece[p].touching = m->touching++;
}

/* G += what bodies feel of the touching pieces, each row in units of the largest that could be felt; size[p]: what piece p could make them feel. */
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
                    if (m->piece[q].touching >= 0) G[m->piece[p].touching * m->touching + m->piece[q].touching] += m->piece[p].way[k] * m->piece[q].way[k] / most;
            }
        }
    }
}

/* Row p of the same for solid k that yields, in its own units: what its answer to the pressure 1 in touching piece p does to each piece. Returns what it would
   do with all signs made equal, when `equal`: then nothing is written. */
static double fsi__pressure_feel_yields(fsi__pressure_job *job, const int *label, int k, int p, int equal, double *row)
{
    fsi__pressure_impl *m = job->m;
    double all = 0;
    int i, some = 0;
    for (i = m->first_yield[k]; i < m->first_yield[k + 1]; i++) {
        const fsi__pressure_yield *y = m->yield + i;
        const int lower = fsi__pressure_piece_at(m, label, y->lower), upper = fsi__pressure_piece_at(m, label, y->upper);
        const int sign = (lower >= 0 && m->piece[lower].touching == p) - (upper >= 0 && m->piece[upper].touching == p);
        m->pushed[y->at] = y->share * (equal ? sign * sign : sign);
        some |= sign;
    }
    if (!some || fsi__pressure_ask(job, k) != FSI_OK) return 0;
    for (i = m->first_yield[k]; i < m->first_yield[k + 1]; i++) {
        const fsi__pressure_yield *y = m->yield + i;
        const int lower = fsi__pressure_piece_at(m, label, y->lower), upper = fsi__pressure_piece_at(m, label, y->upper);
        all += m->pushed[y->at] * m->change[y->at];
        if (lower >= 0 && !equal) row[m->piece[lower].touching] += y->share * m->change[y->at];
        if (upper >= 0 && !equal) row[m->piece[upper].touching] -= y->share * m->change[y->at];
    }
    return all;
}

/* The same for all solids that yield, each in units of the largest that could be felt; own and own_size are room for one of them. */
static void fsi__pressure_feel_all_yields(fsi__pressure_job *job, const int *label, double *G, double *size, double *own, double *own_size)
{
    const fsi__pressure_impl *m = job->m;
    const int n = m->touching;
    int k, p, i;
    for (k = 0; k < job->flow->solid_count; k++) {
        double most = 0;
        memset(own, 0, (size_t)n * (size_t)n * sizeof *own);
        for (p = 0; p < n && job->status == FSI_OK; p++) {
            own_size[p] = fmax(fsi__pressure_feel_yields(job, label, k, p, 0, own + p * n), fsi__pressure_feel_yields(job, label, k, p, 1, NULL));
            most = fmax(most, own_size[p]);
        }
        for (p = 0; p < n && most > 0; p++) size[p] += own_size[p] / most;
        for (i = 0; i < n * n && most > 0; i++) G[i] += own[i] / most;
    }
    memset(m->change, 0, (size_t)m->first_pushed[job->flow->solid_count] * sizeof *m->change);
}

/* Gauss-Jordan elimination of the symmetric G, largest number of the diagonal first, until nothing is left but rounding. Rows without a pivot then each
   stand for a vector that G takes to 0: 1 there, minus its column at the pivots. */
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

/* m->null from what is left of G, with cells[p] cells a piece. */
static void fsi__pressure_collect_nulls(fsi__pressure_impl *m, const double *G, const double *size, const double *cells, const int *pivot)
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

/* Where solids yield: the pressures of pieces, one number a piece, that neither they nor bodies feel. What a face of a solid does to others is in its
   answer only, so it is asked, once for each piece; the signs made equal tell how large an answer could be, and with it what is none. */
static int fsi__pressure_find_nulls(fsi__pressure_job *job, const int *label)
{
    fsi__pressure_impl *m = job->m;
    double *G = NULL, *own = NULL, *size = NULL, *own_size = NULL, *cells = NULL;
    int *pivot = NULL, p, q, n, pass;
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
    memset(G, 0, (size_t)n * (size_t)n * sizeof *G);
    for (p = 0; p < n; p++) size[p] = 0;
    fsi__pressure_feel_bodies(m, label, G, size);
    fsi__pressure_feel_all_yields(job, label, G, size, own, own_size);
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
    for (at = FSI__MG_FRONT; at < end; at++) {
        const float *faces = fsi__mg_faces(f, at);
        const int fresh = !inside || (faces && !(faces[FSI__MG_LOWER] > 0));
        fsi__pressure_run *run;
        inside = !faces || faces[FSI__MG_INVERSE * n] > 0;
        if (!inside) continue;
        if (fresh) m->runs++;
        if (!fill) continue;
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

/* Flood fill: the pieces (groups of them, where bodies join them) without a free surface or another way out, for which the pressure is known up to a constant; keeps the runs of these. */
static int fsi__pressure_find_pieces(fsi__pressure_job *job)
{
    fsi__pressure_impl *m = job->m;
    int *label = (int *)(void *)m->q;
    int k, runs;
    fsi__pressure_list_runs(m, label, 0);
    if (!fsi__arena_room(job->s->context, &m->runs_memory, (size_t)m->runs * sizeof *m->run)) return 0;
    m->run = (fsi__pressure_run *)fsi__take(&m->runs_memory, (size_t)m->runs, sizeof *m->run);
    fsi__pressure_list_runs(m, label, 1);
    fsi__pressure_join(m, label);
    for (k = 0; k < m->runs; k++) {
        m->run[k].root = fsi__pressure_root(m->run, k);
        if (m->run[k].root < k) m->run[m->run[k].root].sum += m->run[k].sum;
    }
    for (k = m->pieces = 0; k < m->runs; k++)
        m->run[k].piece = m->run[k].root < k ? m->run[m->run[k].root].piece : (m->run[k].sum > 0 ? -1 : m->pieces++);
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
    for (k = runs = 0; k < m->runs; k++) {
        fsi__pressure_piece *group = m->run[k].piece < 0 ? NULL : m->piece + m->piece[m->run[k].piece].group;
        if (!group || group->free) continue;
        group->cells += m->run[k].n;
        m->run[runs] = m->run[k];
        m->run[runs++].piece = (int)(group - m->piece);
    }
    m->runs = runs;
    for (k = 0, job->s->stats.pieces = m->nulls; k < m->pieces; k++) job->s->stats.pieces += m->piece[k].cells > 0 && m->piece[k].touching < 0;
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

/* What leaves touching pieces is only what nothing feels of their sums. Returns the sum of |what that was|. */
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

/* Takes the mean of each closed piece out of v; returns the sum of |what that was|. */
static double fsi__pressure_center(fsi__pressure_job *job, double *v)
{
    fsi__pressure_impl *m = job->m;
    const double work = (double)FSI__PRESSURE_NS * m->runs;
    fsi__pressure_center_job c;
    double taken = 0;
    int k;
    c.m = m;
    c.v = v;
    if (m->runs == 0) return 0;
    fsi__parallel_work(job->s->context, m->runs, FSI__PRESSURE_RUNS, work, fsi__pressure_sum_runs, &c);
    for (k = 0; k < m->pieces; k++) m->piece[k].mean = 0;
    for (k = 0; k < m->runs; k++) m->piece[m->run[k].piece].mean += m->run[k].sum;
    if (m->touching > 0) taken = fsi__pressure_center_touching(m);
    for (k = 0; k < m->pieces; k++) {
        if (m->piece[k].touching >= 0) continue;
        taken += fabs(m->piece[k].mean);
        if (m->piece[k].cells > 0) m->piece[k].mean /= m->piece[k].cells;
    }
    fsi__parallel_work(job->s->context, m->runs, FSI__PRESSURE_RUNS, work, fsi__pressure_shift_runs, &c);
    return taken;
}

/* ---- >>pressure bodies ---------------------------------------------------------------------------------------- */

/* Coupled bodies add K = H^T H to the matrix. With J p the force and torque of pressures p on a body of mass matrix M, M^-1 = B B^T, H = B^T J in
   the units of q: six rows a body, with numbers only at the cells around it. A body that weighs next to nothing makes K huge, where the V-cycle V ~ A^-1
   knows nothing of it. By Woodbury's formula

      (V^-1 + H^T H)^-1 = V - V H^T (1 + H V H^T)^-1 H V

   is as good for A + K as V is for A, whatever the masses. It takes a cycle for each row of H before the iteration; V H^T is kept, or for many bodies, where
   that would be a lot to read in each step, a second cycle stands for it. Rows of heavy bodies are left out of it: conjugate gradients need fewer steps
   more than the cycles that these rows would take (measured, a ball: 1 or 2 at half the density of the liquid, 2 at a quarter, 3 at a tenth). */
#define FSI__PRESSURE_RESPONSES 24   /* columns of V H^T that are kept */
#define FSI__PRESSURE_HEAVY 4        /* no heavy body displaces more than this many times its mass */

/* H of a face: its share times the normal n and its moment x n, through B; B's block for turning is the Cholesky factor of the inverse inertia. */
static void fsi__pressure_row(const fsi__pressure_job *job, const fsi_pressure_solid *b, int f, int axis, double share, double *h)
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

/* The columns of the next body, whose faces end at `end`: none where it is heavy, or a row has no numbers, like three of a body in 2D. The squares of what is
   in its rows tell how much lighter it is to turn than to shift. */
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
    m->columns = 0;
    m->response = NULL;
    for (k = m->bodies = 0; k < job->flow->solid_count; k++) {
        if (!job->flow->solids[k].coupled) continue;
        m->bodies++;
        faces += (size_t)job->flow->solids[k].faces->count;
    }
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

/* Floats cannot carry bodies of no mass at all: where the largest number on the diagonal of s is too large in three rows (j) these are scaled down, which
   makes the body heavier. Returns the share of its inverse mass that is left. */
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

/* s = H V H^T, column by column. The torque on a ball is small beside the torques on its faces: so rows are scaled by the sum of their squares first, or the
   rounding of the V-cycle would be larger than what is left. */
static void fsi__pressure_compliance(fsi__pressure_impl *m)
{
    const int n = 6 * m->bodies;
    fsi__mg_level *fine = m->mg.level;
    int i, j, f;
    memset(m->s, 0, (size_t)n * (size_t)n * sizeof *m->s);
    for (j = 0; j < n; j++)
        for (f = m->body_face[j / 6]; f < m->body_face[j / 6 + 1]; f++) m->s[j * n + j] += m->face[f].h[j % 6] * m->face[f].h[j % 6];
    for (j = 0; j < 2 * m->bodies; j++) {
        m->heavier[j] = 1;
        fsi__pressure_weigh(m, j);
    }
    for (j = 0; j < n; j++) {
        m->s[j * n + j] = 0;
        if (m->column[j] < 0) continue;
        memset(fine->r, 0, (size_t)fine->cells * sizeof(float));
        for (i = 0; i < n; i++) m->h[i] = i == j;
        fsi__pressure_pull(m, 1, NULL, fine->r);
        fsi__mg_cycle(&m->mg);
        fsi__pressure_push(m, NULL, fine->x);
        for (i = j; i < n; i++) m->s[i * n + j] = m->column[i] < 0 ? 0 : m->h[i];
        if (m->response) memcpy(m->response + (size_t)m->column[j] * (size_t)fine->cells, fine->x, (size_t)fine->cells * sizeof(float));
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
        for (e = 0; e < cells && m->column[j] >= 0 && m->h[j / 3] < 1; e++) m->response[cells * (size_t)m->column[j] + e] *= (float)sqrt(m->h[j / 3]);
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
            const float *v = m->response + (size_t)(m->column[j] < 0 ? 0 : m->column[j]) * (size_t)fine->cells + fsi__mg_cell(brick);
            for (c = 0; c < 8 && m->column[j] >= 0; c++) sum[c] -= m->h[j] * (double)v[c];
        }
        for (c = 0; c < 8; c++) x[c] = (float)sum[c];
    }
}

/* level[0].x = preconditioner of level[0].r */
static void fsi__pressure_precondition(fsi__pressure_impl *m)
{
    const int n = 6 * m->bodies;
    int i, k;
    fsi__mg_cycle(&m->mg);
    if (m->columns == 0) return;
    fsi__pressure_push(m, NULL, m->mg.level[0].x);
    for (i = 0; i < n; i++) {
        if (m->column[i] < 0) m->h[i] = 0;
        for (k = 0; k < i; k++) m->h[i] -= m->s[i * n + k] * m->h[k];
        m->h[i] /= m->s[i * n + i];
    }
    for (i = n - 1; i >= 0; i--) {
        for (k = i + 1; k < n; k++) m->h[i] -= m->s[k * n + i] * m->h[k];
        m->h[i] /= m->s[i * n + i];
    }
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
    const double faces = 2.0 * job->m->mg.dim;
    double dot[4] = { 0, 0, 0, 0 };
    int k, i, c;
    for (k = begin; k < end; k++) {
        const fsi__mg_segment *s = m->segment + k;
        const fsi__mg_names f = fsi__mg_name(m, s);
        const double *x = job->from + s->at, *yl = job->from + s->lower[0], *yu = job->from + s->upper[0], *zl = job->from + s->lower[1], *zu = job->from + s->upper[1];
        double *out = job->m->q + s->at;
        if (s->rough < 0)
            FSI__MG_APART
            for (i = 0; i < s->n; i++) out[i] = faces * x[i] - (x[i - 1] + x[i + 1] + yl[i] + yu[i] + zl[i] + zu[i]);
        else
            FSI__MG_APART
            for (i = 0; i < s->n; i++) {
                const double v = x[i];
                out[i] = (double)f.excess[i] * v + (double)f.ax[i] * (v - x[i - 1]) + (double)f.bx[i] * (v - x[i + 1]) +
                                 (double)f.ay[i] * (v - yl[i]) + (double)f.by[i] * (v - yu[i]) + (double)f.az[i] * (v - zl[i]) +
                                 (double)f.bz[i] * (v - zu[i]);
            }
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

/* m->q = (A + K) v; returns v q. */
static double fsi__pressure_multiply(fsi__pressure_job *job, double *v)
{
    fsi__pressure_impl *m = job->m;
    const int segments = m->mg.level[0].segments;
    double sum;
    int k;
    job->from = v;
    fsi__parallel_work(job->s->context, segments, FSI__MG_GRAIN, FSI__MG_NS_EXACT * (double)segments, fsi__pressure_multiply_segments, job);
    sum = fsi__pressure_fold(m, fsi__chunks(segments, FSI__MG_GRAIN));
    if (m->first_pushed) sum += fsi__pressure_yield_to(job, v);
    if (m->bodies > 0) {
        fsi__pressure_push(m, v, NULL);
        fsi__pressure_pull(m, 1, m->q, NULL);
        for (k = 0; k < 6 * m->bodies; k++) sum += m->h[k] * m->h[k];
    }
    if (m->bodies > 0 || m->first_pushed) fsi__pressure_center(job, m->q);
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
            const double left = r[i + c] - alpha * q[i + c], size = fabs(left);
            x[i + c] += alpha * p[i + c];
            r[i + c] = left;
            single[i + c] = (float)(left * unit);
            most[c] = size > most[c] ? size : most[c];
        }
    for (c = 1; c < 4; c++) most[0] = most[c] > most[0] ? most[c] : most[0];
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
    for (i = fsi__mg_cell(begin); i < fsi__mg_cell(end); i++) p[i] = (double)z[i] + beta * p[i];
}

/* A loop that takes `work` nanoseconds a brick, at least. */
static void fsi__pressure_over_bricks(fsi__pressure_job *job, double work, fsi__range_fn *fn)
{
    fsi__parallel_work(job->s->context, job->m->mg.level[0].bricks, FSI__PRESSURE_CHUNK, work * job->m->mg.level[0].bricks, fn, job);
}

/* Largest |r| after a step of length alpha. */
static double fsi__pressure_step(fsi__pressure_job *job, double alpha)
{
    const int chunks = fsi__chunks(job->m->mg.level[0].bricks, FSI__PRESSURE_CHUNK);
    double most = 0;
    int k;
    job->alpha = alpha;
    fsi__pressure_over_bricks(job, 6, fsi__pressure_advance);
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
    fsi__pressure_over_bricks(job, 3, fsi__pressure_start);
    return fsi__pressure_step(job, 1);
}

/* The residual of the guess. One that is worse than none is dropped: where the right side is 0 nothing else would be good enough. */
static double fsi__pressure_first_residual(fsi__pressure_job *job)
{
    const fsi__mg_level *f = job->m->mg.level;
    const double most = fsi__pressure_residual(job);
    double right = 0;
    int k;
    if (!job->flow->use_guess) return most;
    for (k = FSI__MG_FRONT; k < fsi__mg_cell(f->bricks); k++) right = fabs(job->m->b[k]) > right ? fabs(job->m->b[k]) : right;
    if (most <= right) return most;
    memset(job->m->x, 0, (size_t)f->cells * sizeof(double));
    return fsi__pressure_residual(job);
}

/* Conjugate gradients in double, preconditioned in float, until the true residual is below `limit`. Returns the largest residual. */
static double fsi__pressure_iterate(fsi__pressure_job *job, double limit)
{
    fsi__pressure_impl *m = job->m;
    const int chunks = fsi__chunks(m->mg.level[0].bricks, FSI__PRESSURE_CHUNK);
    double most = fsi__pressure_first_residual(job), last;
    int *iters = &job->s->stats.iters, round;
    for (round = 0; round < FSI__PRESSURE_ROUNDS && most > limit && *iters < job->s->desc.max_iters && job->status == FSI_OK; round++) {
        for (last = 0; most > limit && *iters < job->s->desc.max_iters; ++*iters) {
            double rz, pq;
            fsi__pressure_precondition(m);
            fsi__pressure_over_bricks(job, 2, fsi__pressure_dot);
            rz = fsi__pressure_fold(m, chunks);
            job->beta = last > 0 ? rz / last : 0;
            fsi__pressure_over_bricks(job, 1.8, fsi__pressure_turn);
            if (m->bodies > 0 || m->first_pushed) fsi__pressure_center(job, m->p);
            last = rz;
            pq = fsi__pressure_multiply(job, m->p);
            if (!(pq > 0) || !(rz > 0) || job->status != FSI_OK) break;
            most = fsi__pressure_step(job, rz / pq);
        }
        most = fsi__pressure_residual(job);
    }
    return most;
}

/* ---- >>pressure projection ------------------------------------------------------------------------------------ */

static int fsi__pressure_is_field(const fsi_field *f, const fsi_grid *g, int place) { return fsi__is_field(f) && f->grid == g && (int)f->place == place; }

static fsi_status fsi__pressure_check_solid(fsi_pressure *s, const fsi_pressure_flow *flow, int k)
{
    const fsi_pressure_solid *b = flow->solids + k;
    const fsi_grid_faces *f = b->faces;
    const fsi_grid *g = flow->u[0]->grid;
    int i, a, wrong = 0;
    if (!f || f->cookie != FSI__COOKIE('f', fsi_grid_faces)) return fsi__pressure_refuse(s, FSI_ERROR_COOKIE, "faces was not made by fsi_grid_faces_create of this version and precision: solids", k);
    for (a = 0; a < g->dim; a++)
        for (i = f->first[a]; i < f->first[a + 1]; i++) {
            if (i < 0 || i >= f->count || f->entry[i] < 0 || f->entry[i] / g->block_cells >= g->block_count)
                return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "faces are not those of the grid as it is: solids", k);
            if (!fsi_is_finite((double)f->solid[i]) || (b->velocity && !b->coupled && !fsi_is_finite((double)b->velocity[i])))
                return fsi__pressure_refuse(s, FSI_ERROR_NAN, "a share or velocity is not finite: solids", k);
            if (!(f->solid[i] > 0 && f->solid[i] <= (fsi_real)1.001)) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "a share is not within (0, 1]: solids", k);
            if (b->respond && b->yielding && !fsi_is_finite((double)b->yielding[i])) return fsi__pressure_refuse(s, FSI_ERROR_NAN, "yielding is not finite: solids", k);
            if (b->respond && b->yielding && b->yielding[i] < 0) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "yielding is below 0: solids", k);
        }
    if (b->respond && b->coupled) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "both coupled and with a respond: solids", k);
    for (a = 0; a < g->dim && b->respond; a++) wrong |= f->first[a] < 0 || f->first[a] > f->first[a + 1] || f->first[a + 1] > f->count;
    if (wrong) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "faces are not those of the grid as it is: solids", k);
    if (!fsi_v3_is_finite(b->center)) return fsi__pressure_refuse(s, FSI_ERROR_NAN, "center is not finite: solids", k);
    if (!b->coupled) return FSI_OK;
    for (i = 0, a = 1; i < 9; i++) a = a && fsi_is_finite((double)b->inverse_inertia.m[i]);
    if (!a || !fsi_v3_is_finite(b->linear) || !fsi_v3_is_finite(b->angular) || !fsi_is_finite(b->mass))
        return fsi__pressure_refuse(s, FSI_ERROR_NAN, "mass, inverse_inertia or a velocity is not finite: solids", k);
    if (!(b->mass > 0)) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "mass is not above 0: solids", k);
    for (i = 0; i < 3; i++)
        if (b->inverse_inertia.m[4 * i] < 0) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "inverse_inertia is not positive semidefinite: solids", k);
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
            if (cell[k] == FSI_CELL_LIQUID && corner[a] + (k >> (3 * a) & 7) >= g->n[a]) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "a liquid cell is beyond the box: block", b);
    }
    return FSI_OK;
}

static fsi_status fsi__pressure_check(fsi_pressure *s, const fsi_pressure_flow *flow)
{
    const fsi_pressure_desc *d = &s->desc;
    const fsi_grid *g;
    int a, i, given = 0;
    fsi_status status = FSI_OK;
    if (!flow || flow->cookie != FSI__COOKIE('F', fsi_pressure_flow)) return fsi__pressure_refuse(s, FSI_ERROR_COOKIE, "flow was not filled by fsi_pressure_default_flow of this version and precision", -1);
    if (!fsi__is_field(flow->u[0])) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "not a field: u", 0);
    g = flow->u[0]->grid;
    for (a = 0; a < g->dim; a++) {
        if (!fsi__pressure_is_field(flow->u[a], g, FSI_FACES_X + a)) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "not a field of faces along its axis, on one grid: u", a);
        given += flow->inverse_density[a] != NULL;
        if (flow->inverse_density[a] && !fsi__pressure_is_field(flow->inverse_density[a], g, FSI_FACES_X + a))
            return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "not a field of faces along its axis: inverse_density", a);
    }
    if (given % g->dim != 0) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "given along some axes only: inverse_density", given);
    if (flow->phi && !fsi__pressure_is_field(flow->phi, g, FSI_CELLS)) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "not a field at cells: phi", 0);
    if (flow->surface_pressure && !fsi__pressure_is_field(flow->surface_pressure, g, FSI_CELLS)) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "not a field at cells: surface_pressure", 0);
    if (flow->surface_weight && !fsi__pressure_is_field(flow->surface_weight, g, FSI_CELLS))
        return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "not a field at cells: surface_weight", 0);
    if (flow->pressure && !fsi__pressure_is_field(flow->pressure, g, FSI_CELLS)) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "not a field at cells: pressure", 0);
    if (flow->pressure && (flow->pressure == flow->phi || flow->pressure == flow->surface_pressure))
        return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "is phi or surface_pressure too: pressure", 0);
    if (flow->use_guess && !flow->pressure) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "use_guess without pressure", 0);
    if (!flow->cell) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "NULL: cell", 0);
    if (!given && !fsi_is_finite((double)flow->density)) return fsi__pressure_refuse(s, FSI_ERROR_NAN, "density is not finite", 0);
    if (!fsi_is_finite((double)flow->dt)) return fsi__pressure_refuse(s, FSI_ERROR_NAN, "dt is not finite", 0);
    if (!given && !(flow->density > 0)) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "density is not above 0", 0);
    if (!(flow->dt > 0)) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "dt is not above 0", 0);
    if (!(flow->theta_min > 0 && flow->theta_min <= 1)) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "theta_min is not within (0, 1]", 0);
    if (!(d->tolerance >= 0 && d->absolute >= 0 && d->tolerance + d->absolute < 1e300) || d->max_iters < 0)
        return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "tolerance, absolute or max_iters of the desc is below 0, or not finite", 0);
    if (g->block_count > (1 << 27) / (g->block_cells / 8)) return fsi__pressure_refuse(s, FSI_ERROR_LIMIT, "more than 2^30 cells: block_count", g->block_count);
    if (flow->solid_count < 0 || (flow->solid_count > 0 && !flow->solids)) return fsi__pressure_refuse(s, FSI_ERROR_ARGUMENT, "solids: there are not solid_count", flow->solid_count);
    for (i = 0; i < g->block_count && status == FSI_OK; i++) status = fsi__pressure_check_cells(s, g, flow->cell + (size_t)i * (size_t)g->block_cells, i);
    for (i = 0; i < flow->solid_count && status == FSI_OK; i++) status = fsi__pressure_check_solid(s, flow, i);
    return status;
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
    memset(m->x, 0, n * sizeof(double)); /* with the zeros that stand for missing neighbours: */
    memset(m->p, 0, n * sizeof(double)); /* they are elsewhere in every call */
    return 1;
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

/* Units of the iteration, and where ordinary faces are. */
static fsi_status fsi__pressure_measure(fsi__pressure_job *job)
{
    job->density = (double)job->flow->density;
    if (job->flow->inverse_density[0]) {
        const double beta = fsi__pressure_largest_beta(job);
        if (!(beta > 0)) return fsi__pressure_refuse(job->s, FSI_ERROR_ARGUMENT, "a number next to liquid is not above 0 and finite: inverse_density", 0);
        job->density = 1 / beta;
    }
    job->scale = (double)job->flow->dt / (job->density * (double)job->grid->dx * (double)job->grid->dx);
    fsi__pressure_find_plain(job);
    return FSI_OK;
}

/* The right side and the matrix. *reference: largest right side. */
static fsi_status fsi__pressure_assemble(fsi__pressure_job *job, double *reference)
{
    fsi__pressure_impl *m = job->m;
    fsi_pressure_stats *stats = &job->s->stats;
    const int bricks = m->mg.level[0].bricks, chunks = fsi__chunks(bricks, FSI__PRESSURE_CHUNK);
    double sum = 0;
    int k;
    const double work = (double)FSI__PRESSURE_NS_ROWS * bricks;
    fsi__parallel_work(job->s->context, bricks, FSI__PRESSURE_CHUNK, work, fsi__pressure_equations, job);
    *reference = 0;
    for (k = 0; k < chunks; k++) {
        sum += m->partial[4 * k];
        if (m->partial[4 * k + 1] > *reference) *reference = m->partial[4 * k + 1];
        stats->unknowns += (long long)m->partial[4 * k + 2];
        stats->enclosed += (int)m->partial[4 * k + 3];
        if (!fsi_is_finite(sum)) return fsi__pressure_refuse(job->s, FSI_ERROR_NAN, "u, phi, surface_pressure or inverse_density is not finite, or the last not above 0, near row of cells", m->row[k * FSI__PRESSURE_CHUNK]);
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
        for (a = 0; a < job->grid->dim; a++)
            for (f = b->faces->first[a]; f < b->faces->first[a + 1]; f++) {
                const int upper = fsi__pressure_unknown(job, fsi__pressure_pushed(job, b->faces->entry[f], a, 1));
                const int lower = fsi__pressure_unknown(job, fsi__pressure_pushed(job, b->faces->entry[f], a, 0));
                const double push = unit * fsi__pressure_share(job, b, f, a) * ((lower < 0 ? 0 : job->m->x[lower]) - (upper < 0 ? 0 : job->m->x[upper]));
                const fsi_vec3 d = fsi_v3_sub(fsi__pressure_face_position(job->grid, b->faces->entry[f], a), b->center);
                const double arm[3] = { (double)d.x, (double)d.y, (double)d.z };
                if (b->face_impulse) b->face_impulse[f] = push;
                p[a] += push;
                l[(a + 1) % 3] += push * arm[(a + 2) % 3];
                l[(a + 2) % 3] -= push * arm[(a + 1) % 3];
            }
        b->impulse = fsi_v3((fsi_real)p[0], (fsi_real)p[1], (fsi_real)p[2]);
        b->angular_impulse = fsi_v3(job->grid->dim == 3 ? (fsi_real)l[0] : 0, job->grid->dim == 3 ? (fsi_real)l[1] : 0, (fsi_real)l[2]);
        if (!b->coupled) continue;
        for (i = 0; i < 3; i++) p[i] *= heavier[0] / b->mass;
        b->linear = fsi_v3_add(b->linear, fsi_v3((fsi_real)p[0], (fsi_real)p[1], (fsi_real)p[2]));
        if (job->grid->dim == 2) b->angular.z += (fsi_real)heavier[1] * b->inverse_inertia.m[8] * b->angular_impulse.z;
        else b->angular = fsi_v3_madd(b->angular, (fsi_real)heavier[1], fsi_m3_mul_v3(b->inverse_inertia, b->angular_impulse));
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
    if (job->flow->pressure) memset(job->flow->pressure->value, 0, (size_t)g->block_count * (size_t)g->block_cells * sizeof(fsi_real));
    fsi__pressure_over_bricks(job, 100, fsi__pressure_correct);
}

static size_t fsi__pressure_bytes(const fsi__pressure_impl *m)
{
    size_t bytes = sizeof *m + m->lists_memory.size + m->cuts_memory.size + m->vectors_memory.size + m->faces_memory.size + m->responses_memory.size + m->yields_memory.size + m->runs_memory.size + m->pieces_memory.size + m->nulls_memory.size;
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
    if (flow->pressure) memset(flow->pressure->value, 0, (size_t)g->block_count * (size_t)g->block_cells * sizeof(fsi_real));
}

FSI_API fsi_status fsi_pressure_project(fsi_pressure *s, fsi_pressure_flow *flow)
{
    static const char *const f = "fsi_pressure_project";
    fsi__pressure_job job;
    fsi__pressure_impl *m;
    double reference = 0, limit, most, start;
    fsi_status status;
    if (!s || s->cookie != FSI__COOKIE('p', fsi_pressure)) return FSI_ERROR_COOKIE;
    status = fsi__pressure_check(s, flow);
    if (status != FSI_OK) return status;
    start = fsi__now(s->context);
    m = (fsi__pressure_impl *)s->impl;
    memset(&s->stats, 0, sizeof s->stats);
    memset(&job, 0, sizeof job);
    job.s = s;
    job.m = m;
    job.flow = flow;
    job.grid = flow->u[0]->grid;
    if (!fsi__pressure_bounds(&job)) {
        fsi__pressure_no_liquid(flow);
        return FSI_OK;
    }
    m->mg.dim = job.grid->dim;
    if (!fsi__pressure_reserve_cells(&job))
        return fsi__fail(s->context, FSI_ERROR_MEMORY, f, -1, 0, "no memory for lists of the liquid's cells");
    status = fsi__pressure_measure(&job);
    if (status != FSI_OK) return status;
    if (!fsi__mg_reserve(&m->mg) || !fsi__pressure_reserve_vectors(&job))
        return fsi__fail(s->context, FSI_ERROR_MEMORY, f, -1, 0, "no memory for the liquid's pressure");
    status = fsi__pressure_assemble(&job, &reference);
    if (status != FSI_OK) return status;
    fsi__pressure_list_yields(&job);
    if (!fsi__pressure_list_faces(&job) || !fsi__pressure_find_pieces(&job))
        return fsi__fail(s->context, FSI_ERROR_MEMORY, f, -1, 0, "no memory for bodies and pieces of liquid");
    if (job.status != FSI_OK) return job.status;
    fsi__pressure_soften(&job);
    fsi__mg_setup(&m->mg);
    s->stats.removed = fsi__pressure_center(&job, m->b) * (double)job.grid->dx * (double)job.grid->dx * (job.grid->dim == 3 ? (double)job.grid->dx : 1);
    fsi__pressure_take_guess(&job);
    fsi__pressure_factor(m);
    s->stats.levels = m->mg.levels;
    s->stats.bytes = fsi__pressure_bytes(m);
    s->stats.seconds_setup = fsi__now(s->context) - start;
    job.factor = reference > 0 ? 1 / reference : 1;
    limit = s->desc.tolerance * reference > s->desc.absolute ? s->desc.tolerance * reference : s->desc.absolute;
    most = fsi__pressure_iterate(&job, limit);
    s->stats.divergence = most;
    s->stats.residual = reference > 0 ? most / reference : most;
    if (job.status != FSI_OK) status = job.status;
    else if (!(most <= limit))
        status = fsi__fail(s->context, FSI_ERROR_CONVERGENCE, f, -1, most, "divergence is %g after %d iterations, not below %g", most, s->stats.iters, limit);
    else {
        fsi__pressure_center(&job, m->x);
        fsi__pressure_clear_enclosed(&job);
        status = fsi__pressure_ask_all(&job, m->x);
        if (status == FSI_OK) fsi__pressure_commit(&job);
    }
    s->stats.seconds_solve = fsi__now(s->context) - start - s->stats.seconds_setup;
    return status;
}

FSI__STRICT_END

#endif /* FSI_GRID_IMPLEMENTATION_DONE */
#endif /* FSI_IMPLEMENTATION */
