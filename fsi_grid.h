/* fsi_grid.h - sparse MAC grid: blocks that come and go, fields on cells and faces, sampling, advection, extrapolation
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_grid.h"
         #include "fsi_grid.h"

   A NUMBER IS CARRIED ALONG BY THE WIND
      fsi_context ctx = fsi_default_context();             // hooks for memory, threads, messages; and what went wrong
      fsi_grid_desc d = fsi_grid_default_desc();           // a box of 64^3 cells; none of them exists yet
      unsigned char all[729];                              // 9 x 9 x 9 places of blocks
      fsi_grid *grid;
      fsi_field *smoke, *moved, *u[3];                     // at cells, and velocities on faces
      int a;
      d.context = &ctx;
      if (fsi_grid_create(&grid, &d) != FSI_OK) { puts(ctx.error.message); return 1; }
      if (fsi_grid_add_field(grid, FSI_CELLS, 0, &smoke) != FSI_OK
          || fsi_grid_add_field(grid, FSI_CELLS, 0, &moved) != FSI_OK) return 1;
      for (a = 0; a < 3; a++)
          if (fsi_grid_add_field(grid, (fsi_grid_place)(FSI_FACES_X + a), a == 0, &u[a]) != FSI_OK) return 1;
      memset(all, 1, sizeof all);
      if (fsi_grid_set_blocks(grid, all) != FSI_OK) return 1;
      smoke->value[fsi_grid_entry(grid, 8, 32, 32)] = 1;
      if (fsi_grid_advect(smoke, u, 0.25f, FSI_ADVECT_LINEAR, 2, NULL, moved) != FSI_OK) puts(ctx.error.message);
      printf("%g\n", (double)moved->value[fsi_grid_entry(grid, 24, 32, 32)]);   // 16 cells on
      fsi_grid_destroy(grid);                              // with its fields

   WHAT IS IN HERE (search for >>)
      >>grid           blocks that come and go, fields that live in them
      >>sampling       linear, clamped cubic, quadratic B-spline with gradient; tracing along velocities
      >>advection      semi-Lagrangian, of cells and faces;  >>extrapolation  of known entries into others
      >>stages         copies of blocks with their surroundings, masks of bits, for fsi's own headers, not for you
      then the implementation, by the same names
   WHAT IT DOES NOT DO
      Level sets (fsi_phi.h), pressure (fsi_pressure.h), whole liquids (fsi_levelset.h). Grids of varying cell size.
   MACROS: those of fsi.h.
   UNITS: SI.
   PRECISION: fields in fsi_real.
   STACK: up to 100 kB in the caller's thread and in each of the context's.
   COST: docs/grid.md
*/
#ifndef FSI_GRID_H
#define FSI_GRID_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi.h"

/* ---- >>grid --------------------------------------------------------------------------------------------------- */

/* A box of cubic cells of which only the blocks that are in use exist: 8 x 8 x 8 cells, in 2D 8 x 8.

       index:  . . 0 1 2 .      one int a block of the box, -1 where there is none
               . 3 4 5 6 .
               . . 7 8 . .      block b owns the entries [b * block_cells, (b + 1) * block_cells) of every field,
                                cell (x, y, z) of it at (z * 8 + y) * 8 + x

   Cell (i, j, k) has its centre at origin + (i + 1/2, j + 1/2, k + 1/2) dx. Its entry of a face field belongs to its
   LOWER face: that of FSI_FACES_X stands at origin + (i, j + 1/2, k + 1/2) dx. So that the upper wall's faces have a
   place too, the index covers one cell more than n along each axis. In 2D k = 0, n[2] = 1, z is ignored. */
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
    fsi_real background;   /* the value in blocks that do not exist, and the initial value in new blocks */
    int scratch;           /* default 0; 1: scratch, whose values need not be kept when blocks come or go. Yours to
                              write */
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
/* An empty grid: no block, no field. Errors: COOKIE, ARGUMENT, NAN (name the field of the desc), LIMIT (more than
   2^31-1 places of blocks), MEMORY; then *out is NULL. */
FSI_API fsi_status fsi_grid_create(fsi_grid **out, const fsi_grid_desc *desc);
FSI_API void fsi_grid_destroy(fsi_grid *grid); /* with its fields; NULL is fine */
/* A field of `background` everywhere. Errors: COOKIE, ARGUMENT (place), NAN (background), LIMIT (60 fields), MEMORY;
   then *out is NULL. */
FSI_API fsi_status fsi_grid_add_field(fsi_grid *grid, fsi_grid_place place, fsi_real background, fsi_field **out);
FSI_API void fsi_grid_remove_field(fsi_field *field); /* NULL is fine */
/* Makes exactly the blocks exist whose place has wanted[place] != 0 (as many entries as `index`). Fields keep what
   stood in blocks that stay; new ones are filled with the background. Their arrays may move. Errors: COOKIE, ARGUMENT,
   LIMIT (2^31-1 cells), MEMORY; nothing has changed then. O(places + entries that move). */
FSI_API fsi_status fsi_grid_set_blocks(fsi_grid *grid, const unsigned char *wanted);

FSI__STRICT_FN_BEGIN
/* Position of the entry (i, j, k) of a field at `place` [m]. */
FSI_FN fsi_vec3 fsi_grid_position(const fsi_grid *g, fsi_grid_place place, int i, int j, int k)
{
    const fsi_real h = g->dx / 2;
    return fsi_v3(g->origin.x + (fsi_real)i * g->dx + (place == FSI_FACES_X ? 0 : h), g->origin.y + (fsi_real)j * g->dx
        + (place == FSI_FACES_Y ? 0 : h),
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
FSI_FN int fsi_grid_size(const fsi_grid *g, fsi_grid_place place, int axis)
{
    return g->n[axis] + (axis + 1 == (int)place);
}
FSI__STRICT_FN_END

/* Value at (i, j, k), which is clamped into the box first; background where no block is. */
FSI_API fsi_real fsi_grid_at(const fsi_field *field, int i, int j, int k);

/* ---- >>sampling -----------------------------------------------------------------------------------------------

   Values between the entries. Beyond its outermost entries a field is continued as a constant; where there is no block
   it has its background. An argument that is no field gives 0, a position that is NaN counts as the lower corner of the
   box. In 2D z is ignored. */

/* Linear in 2D between 4 entries, in 3D between 8. */
FSI_API fsi_real fsi_grid_sample_linear(const fsi_field *f, fsi_vec3 x);
/* Quadratic B-spline: C1 everywhere, does not interpolate: f + dx^2/8 Laplacian(f). gradient (NULL ok) is that of the
   value returned [1/m]; in 2D its z is 0. It flattens over the outermost entry: at a wall, half a cell beyond the
   centres, the normal part is 0. */
FSI_API fsi_real fsi_grid_sample_spline(const fsi_field *f, fsi_vec3 x, fsi_vec3 *gradient);
/* Each component linear between its own faces. u: one field a place FSI_FACES_X, _Y, _Z, of one grid; in 2D u[2] is
   ignored. An argument that is no such velocity counts as 0. */
FSI_API fsi_vec3 fsi_grid_sample_velocity(fsi_field *const u[3], fsi_vec3 x);
/* The end of the path of x along u in dt seconds, backwards if dt < 0. order 2: midpoint rule, 3: Ralston (1962); else
   as 2. All points of the path are clamped into the box, x too. Returns x itself when u is no velocity or dt is not
   finite. */
FSI_API fsi_vec3 fsi_grid_trace(fsi_field *const u[3], fsi_vec3 x, fsi_real dt, int order);

/* ---- >>advection ---------------------------------------------------------------------------------------------- */

/* How an advected field is read where the trace ends. */
typedef enum fsi_grid_scheme {
    FSI_ADVECT_LINEAR,   /* as fsi_grid_sample_linear: smears */
    FSI_ADVECT_CUBIC,    /* Catmull-Rom cubics along each axis (exact for quadratics), clamped to the range of the 2^dim
                            entries around: no new extrema, at the price of clipped peaks */
    FSI_ADVECT_QUINTIC   /* 6 entries along each axis (Lagrange, exact for quintics), clamped to the range of the 4^dim
                            around, widened by a quarter: more than the crest of a wave of 4 cells needs. Keeps most
                            energy and the sharpest corners */
} fsi_grid_scheme;

/* to(x) = from(trace(x, -dt)) in every block: semi-Lagrangian transport (Staniforth and Cote 1991). `to` is another
   field at the place of `from`, and none of u. where (NULL: everywhere): one byte an entry; entries with 0 take over
   their value of `from`, and rows and blocks of them cost next to nothing: pass what fsi_grid_extrapolate made of
   `known`, or |phi| < band. order: as for fsi_grid_trace.

   `from` need not be the carrier u: where pressure acts, most energy is lost by splitting advection from projection,
   not by the scheme. With from = 2 u - u*, u* being u before its last projection, the pressure of a step acts half
   before and half after the advection, and vortices of 16 cells keep 99 instead of 46 % of their energy while the
   liquid goes 8 times as far as they are wide (the reflection of Zehnder, Narain and Thomaszewski 2018, with one
   projection a step).

   Allocates nothing. Errors: COOKIE, ARGUMENT (names what does not fit), NAN (dt; or names the entry of from or u that
   is not finite: `to` then is of no use, but finite where it was). */
FSI_API fsi_status fsi_grid_advect(const fsi_field *from, fsi_field *const u[3], fsi_real dt, fsi_grid_scheme scheme,
    int order, const unsigned char *where,
                                   fsi_field *to);
/* The same for the components of a velocity, which may be u itself, in three quarters of the time. where (NULL:
   everywhere): one list a component, any may be NULL. Errors: as fsi_grid_advect; COOKIE also when `to` is no
   velocity. */
FSI_API fsi_status fsi_grid_advect_velocity(fsi_field *const from[3], fsi_field *const u[3], fsi_real dt,
    fsi_grid_scheme scheme, int order, const unsigned char *const where[3], fsi_field *const to[3]);

/* ---- >>extrapolation ------------------------------------------------------------------------------------------ */

/* Carries f from where it is known into what lies around. known: one byte an entry, other than 0 where the value of f
   stands. Layer after layer (1 to 254), each unknown entry of an existing block that has known face neighbours within
   the box gets their average; the order within a layer does not matter. known becomes 1 where it was not 0, 1 + layer
   where f was set; what is left has f = background and 0. Allocates only where there are more blocks than ever. Errors:
   COOKIE, ARGUMENT, MEMORY: nothing has changed; NAN (names an entry beside known ones that are not finite, or whose
   sum is not): f and known are of no use. */
FSI_API fsi_status fsi_grid_extrapolate(fsi_field *f, unsigned char *known, int layers);

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* A property of entries (known, liquid, labelled), one bit each: a word for each layer z of a block, bit
   8 y + x. Neighbours, borders and floods are shifts then. */
#define FSI__COLUMN (~(uint64_t)0 / 255) /* x = 0 */

/* Which cells are liquid. */
typedef struct fsi__mask {
    const fsi_field *field;
    const unsigned char *solid;
    uint64_t *liquid;       /* a word for 64 entries */
    unsigned char *bad;     /* 1: the block holds a number that is not finite */
} fsi__mask;

/* fsi_grid_extrapolate of a field on faces, along the normals of the level set phi (at cells) as far as its neighbours
   tell them: the average has the weights max(0, phi here - phi there), the upwind differences of grad f . grad phi = 0.
   Errors are those of fsi_grid_extrapolate. */
FSI_API fsi_status fsi__grid_extrapolate(fsi_field *f, unsigned char *known, int layers, const fsi_field *phi);
/* fsi_grid_extrapolate of `count` fields of one grid, 1 to 3, each with its own known: in a third of the dispatches. */
FSI_API fsi_status fsi__grid_extrapolate_all(fsi_field *const *f, unsigned char *const *known, int count, int layers);
/* Runs a loop over blocks: at least `work` nanoseconds for one of 8^3 cells (fsi__parallel_work). */
FSI_API void fsi__grid_light(const fsi_grid *g, int grain, double work, fsi__range_fn *fn, void *arg);
/* Number of the block that lies one step away from block b, -1: there is none. */
FSI_API int fsi__block_beside(const fsi_grid *g, int b, const int step[3]);
FSI_API void fsi__blocks_beside(const fsi_grid *g, int b, int beside[6]); /* on all six sides, ordered as fsi__step */
/* A block, whose first cell is `corner` and which need not exist, with h more entries on each side (1 to 8):
       out[((z + h) * s + y + h) * s + x + h], s = 8 + 2h, -h <= x, y, z < 8 + h; in 2D one layer:
       out[(y + h) * s + x + h] */
FSI_API void fsi__grid_gather_at(const fsi_field *field, const int *corner, int h, fsi_real *out);
/* The same around block b. */
FSI_API void fsi__grid_gather(const fsi_field *field, int b, int h, fsi_real *out);
/* Stencils do not look across blocks: a box of entries is copied out of the blocks, and the loops run there, with
   constant strides. Entries outside of the box of the grid get the nearest value inside, those in no block the
   background.

       out[(z n[1] + y) n[0] + x] = entry lo + (x, y, z);  any lo, 0 <= x < n[0] and so on; in 2D lo[2] = 0, n[2] = 1 */
FSI_API void fsi__grid_gather_box(const fsi_field *field, const int *lo, const int *n, fsi_real *out);
/* Continues the values of such a box linearly beyond the outermost entries of the field, where the box has the
   outermost two: a distance continued so keeps the slope of a surface that meets a wall at an angle. */
FSI_API void fsi__grid_extend_box(const fsi_field *field, const int *lo, const int *n, fsi_real *box);
/* Fails, naming the entry of the box where the field is not finite, if there is one in block b. */
FSI_API fsi_status fsi__grid_name_bad(fsi_context *context, const fsi_field *field, int b, const char *what,
    const char *function);
/* The grid's scratch, with room for `size` bytes and some growth. */
FSI_API fsi_status fsi__grid_room(const fsi_grid *g, size_t size, const char *function);
FSI_API fsi__arena *fsi__grid_scratch(const fsi_grid *g); /* the arena of fsi__grid_room */
FSI_API int fsi__grid_capacity(const fsi_grid *g); /* blocks that it has room for */
/* Checks of phi that all functions here share. */
FSI_API fsi_status fsi__level_set_check(const fsi_field *phi, const char *function);
/* For each cell of layer z of block b the bit of its neighbour at fsi__step(side); `beside` is the block there. */
FSI_API uint64_t fsi__mask_beside(const fsi_grid *g, uint64_t *mask, int b, int beside, int z, int side);
/* The entries (x, y) at `place` in layer z of the block at `corner` that stay in the box when they are moved by
   `step`. */
FSI_API uint64_t fsi__mask_inside(const fsi_grid *g, fsi_grid_place place, const int corner[3], int z,
    const int step[3]);
/* Fills m->liquid and m->bad, which have room, from field and solid. Errors: NAN (names the entry). */
FSI_API fsi_status fsi__mask_make(fsi__mask *m, const char *function);

/* fsi_grid_advect of a distance to a surface, continued linearly beyond the box: where a trace ends between the
   outermost centres and a wall, a constant would slow a surface that leaves the wall, but not one that approaches it,
   in layers of less than two cells on the wall. Errors name `function`. */
FSI_API fsi_status fsi__grid_advect_distance(const fsi_field *from, fsi_field *const u[3], fsi_real dt,
    fsi_grid_scheme scheme, int order, const unsigned char *where, fsi_field *to, const char *function);

FSI__STRICT_FN_BEGIN
FSI_FN int fsi__is_grid(const fsi_grid *g) { return g && g->cookie == FSI__COOKIE('g', fsi_grid); }
FSI_FN int fsi__is_field(const fsi_field *f) { return f && f->cookie == FSI__COOKIE('v', fsi_field); }
FSI_FN size_t fsi__grid_places(const fsi_grid *g)
{
    return (size_t)g->blocks[0] * (size_t)g->blocks[1] * (size_t)g->blocks[2];
}
FSI_FN int fsi__layers(const fsi_grid *g) { return g->block_cells / 64; } /* words of a mask that a block has */
/* One step across side 0 .. 5 of a cell or block: -x, +x, -y ... */
FSI_FN const int *fsi__step(int side)
{
    static const int step[6][3] = { { -1, 0, 0 }, { 1, 0, 0 }, { 0, -1, 0 }, { 0, 1, 0 }, { 0, 0, -1 }, { 0, 0, 1 } };
    return step[side];
}
FSI_FN int fsi__gather_size(const fsi_grid *g, int h)
{
    return (8 + 2 * h) * (8 + 2 * h) * (g->dim == 3 ? 8 + 2 * h : 1);
}
/* x within lo to hi; NaN: lo. */
FSI_FN fsi_real fsi__into(fsi_real x, fsi_real lo, fsi_real hi)
{
    const fsi_real t = x > lo ? x : lo;
    return t < hi ? t : hi;
}
FSI__HOST_FN uint64_t *fsi__mask_of(uint64_t *mask, const fsi_grid *g, int b) {
    return mask + (size_t)b * (size_t)fsi__layers(g);
}
FSI_FN int fsi__mask_at(const uint64_t *mask, size_t entry) { return (int)(mask[entry >> 6] >> (entry & 63) & 1); }
FSI_FN int fsi__mask_count(uint64_t w) /* bits of w */
{
    w -= w >> 1 & 0x5555555555555555u;
    w = (w & 0x3333333333333333u) + (w >> 2 & 0x3333333333333333u);
    return (int)(((w + (w >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
}
/* Entry beside entry c of block b, at fsi__step(side); `beside` are the blocks there. -1: none. */
FSI_FN long long fsi__entry_beside(const fsi_grid *g, int b, const int beside[6], int c, int side)
{
    static const int step[6] = { -1, 1, -8, 8, -64, 64 };
    if ((c >> (side >> 1) * 3 & 7) != (side & 1) * 7) return (long long)b * g->block_cells + c + step[side];
    return beside[side] < 0 ? -1 : (long long)beside[side] * g->block_cells + c - 7 * step[side];
}
FSI__STRICT_FN_END

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_GRID_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_GRID_IMPLEMENTATION
#define FSI_GRID_IMPLEMENTATION
#endif
#ifdef FSI_GRID_IMPLEMENTATION
#ifndef FSI_GRID_IMPLEMENTATION_DONE
#define FSI_GRID_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi.h"

FSI__STRICT_BEGIN

/* ---- >>grid implementation ------------------------------------------------------------------------------------ */

#define FSI__GRID_FIELDS 60 /* with the two lists of places, the most columns of one fsi__grow */

typedef struct fsi__grid_impl {
    fsi_field *fields[FSI__GRID_FIELDS];
    int field_count;
    int *index, *place;
    int *next;                       /* scratch: the next list of places */
    fsi__arena scratch;              /* of one call: masks, sheets, distances; kept, so that the next one allocates
                                        nothing */
    int capacity;                    /* blocks that `place`, `next` and every field have room for */
} fsi__grid_impl;

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
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_grid_desc, dim, FSI__INT, 2, 3, 0),
        FSI__FIELD(fsi_grid_desc, dx, FSI__REAL, 0, FSI__HUGE, FSI__ABOVE),
        FSI__FINITE(fsi_grid_desc, origin),
        FSI__FIELD(fsi_grid_desc, n[0], FSI__INT, 1, 16384, 0),
        FSI__FIELD(fsi_grid_desc, n[1], FSI__INT, 1, 16384, 0),
        FSI__FIELD(fsi_grid_desc, n[2], FSI__INT, 1, 16384, 0)
    };
    static const fsi__where at = { "fsi_grid_create", "desc.", -1, 3 };
    double places = 1;
    int a;
    FSI__TRY(fsi__check_rows(d->context, &at, d, rows, d->dim == 2 ? 5 : 6));
    for (a = 0; a < d->dim; a++) places *= (d->n[a] + FSI_GRID_BLOCK) / FSI_GRID_BLOCK;
    if (places > 2147483647.0)
        return fsi__fail(d->context, FSI_ERROR_LIMIT, at.function, -1, places,
            "%g blocks in the box are more than 2^31 - 1", places);
    return FSI_OK;
}

FSI_API fsi_status fsi_grid_create(fsi_grid **out, const fsi_grid_desc *desc)
{
    static const char *const f = "fsi_grid_create";
    fsi_context *context;
    fsi__grid_impl *m;
    fsi_grid *g;
    size_t places, p;
    int a;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!desc || desc->cookie != FSI__COOKIE('G', fsi_grid_desc) || !fsi__is_context(desc->context))
        return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__grid_check(desc));

    /* The grid and its list of places. */
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
        g->block_cells = g->dim == 3 ? FSI_GRID_BLOCK * FSI_GRID_BLOCK * FSI_GRID_BLOCK
            : FSI_GRID_BLOCK * FSI_GRID_BLOCK;
    }
    places = g ? fsi__grid_places(g) : 0;
    if (g && m) m->index = (int *)fsi__alloc(context, places, sizeof *m->index);

    /* All or nothing. */
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

    /* Input. */
    if (!fsi__is_grid(g)) return FSI_ERROR_COOKIE;
    if (!out) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, 0, "out is NULL");
    if ((int)place < (int)FSI_CELLS || (int)place > (int)FSI_FACES_X + g->dim - 1)
        return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, (double)(int)place,
            "place is %d, not one that a %dD grid has", (int)place, g->dim);
    if (!fsi_is_finite((double)background))
        return fsi__fail(g->context, FSI_ERROR_NAN, f, -1, (double)background, "background is not finite");
    m = (fsi__grid_impl *)g->impl;
    if (m->field_count == FSI__GRID_FIELDS)
        return fsi__fail(g->context, FSI_ERROR_LIMIT, f, -1, FSI__GRID_FIELDS, "a grid has no more than %d fields",
            FSI__GRID_FIELDS);

    /* The field, as large as all others. */
    field = (fsi_field *)fsi__alloc(g->context, 1, sizeof *field);
    if (field)
        field->value = (fsi_real *)fsi__alloc(g->context, (size_t)m->capacity,
            (size_t)g->block_cells * sizeof *field->value);
    if (!field || !field->value) {
        fsi__free(g->context, field, 1, sizeof *field);
        return fsi__fail(g->context, FSI_ERROR_MEMORY, f, -1, 0, "no memory for a field");
    }

    /* Nothing can fail now. */
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

/* The move of one field from the old set of blocks to the new one, in place: blocks that stay move to the front, in
   ascending order; then all move to their new numbers, in descending order. Both lists ascend, so that no block is
   overwritten before it is moved. */
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

        /* Blocks that stay move to the front, in their order. */
        for (b = from = 0; from < job->grid->block_count; from++) {
            if (!job->wanted[m->place[from]]) continue;
            if (b != from) memcpy(v + (size_t)b * cells, v + (size_t)from * cells, bytes);
            b++;
        }

        /* From the back to their new places; the others are filled with the background. */
        for (b = job->count - 1, from = job->kept - 1; b >= 0; b--) {
            if (m->index[m->next[b]] >= 0) {
                if (b != from) memcpy(v + (size_t)b * cells, v + (size_t)from * cells, bytes);
                from--;
            } else
                for (c = 0; c < cells; c++) v[(size_t)b * cells + c] = background;
        }
    }
}

/* Room for `count` blocks in every field and in the lists of places. All of them are allocated anew when there are more
   blocks than ever: therefore for a quarter more and 4 kB a field, if there are as many places. */
static fsi_status fsi__grid_reserve(fsi_grid *g, int count, const char *function)
{
    fsi__grid_impl *m = (fsi__grid_impl *)g->impl;
    fsi__column columns[FSI__GRID_FIELDS + 2];
    const int most = 2147483647 / g->block_cells, ahead = count / 4 + 4096 / (g->block_cells * (int)sizeof(fsi_real));
    const size_t places = fsi__grid_places(g);
    int k, room;
    fsi_status status;

    /* Is there room? */
    if (count > most)
        return fsi__fail(g->context, FSI_ERROR_LIMIT, function, -1, count, "%d blocks have more than 2^31 - 1 cells",
            count);
    if (count <= m->capacity) return FSI_OK;

    /* Fields, and both lists of places. */
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

    /* Input. */
    if (!fsi__is_grid(g)) return FSI_ERROR_COOKIE;
    if (!wanted) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, 0, "wanted is NULL");
    m = (fsi__grid_impl *)g->impl;
    places = fsi__grid_places(g);

    /* How many blocks will there be, and how many of them are there? */
    job.grid = g;
    job.wanted = wanted;
    for (p = 0, job.count = job.kept = 0; p < places; p++) {
        job.count += wanted[p] != 0;
        job.kept += wanted[p] && m->index[p] >= 0;
    }
    if (job.count == job.kept && job.kept == g->block_count) return FSI_OK;
    FSI__TRY(fsi__grid_reserve(g, job.count, f));

    /* Their places; fields move there. */
    for (p = 0, b = job.moved = 0; p < places; p++)
        if (wanted[p]) {
            job.moved += m->index[p] != b;
            m->next[b++] = (int)p;
        }
    work = FSI__GRID_MOVE_NS * job.moved * g->block_cells * m->field_count;
    fsi__parallel_work(g->context, m->field_count, 1, work, fsi__grid_move_fields, &job);

    /* The list of places is exchanged with its double. */
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
FSI_FN void fsi__gather_rows(const fsi_real *source, fsi_real background, fsi_real *out, int length, int ny, int nz,
    size_t sy, size_t sz)
{
    int x, y, z;
    for (z = 0; z < nz; z++)
        for (y = 0; y < ny; y++) {
            fsi_real *to = out + (size_t)z * sz + (size_t)y * sy;
            for (x = 0; x < length; x++) to[x] = source ? source[(z * 8 + y) * 8 + x] : background;
        }
}

FSI_API void fsi__grid_gather_box(const fsi_field *field, const int *lo, const int *n, fsi_real *out)
{
    const fsi_grid *g = field->grid;
    const size_t sy = (size_t)n[0], sz = (size_t)n[0] * (size_t)n[1];
    int first[3], last[3], at[3], q[3], a, x, y, z, next[3];

    /* The part of the box inside the grid: entries first to last of the field, at to q of `out`. */
    for (a = 0; a < 3; a++) {
        const int most = fsi_grid_size(g, field->place, a) - 1;
        first[a] = fsi__clamp_int(lo[a], most);
        last[a] = fsi__clamp_int(lo[a] + n[a] - 1, most);
        at[a] = fsi__clamp_int(first[a] - lo[a], n[a] - 1);
        q[a] = at[a] + last[a] - first[a];
    }

    /* Copy it, block by block: `next` is the first entry of the next block. */
    for (z = first[2]; z <= last[2]; z = next[2]) {
        next[2] = fsi__clamp_int((z | 7) + 1, last[2] + 1);
        for (y = first[1]; y <= last[1]; y = next[1]) {
            const int *line = g->index + ((size_t)(z >> 3) * (size_t)g->blocks[1] + (size_t)(y >> 3))
                * (size_t)g->blocks[0];
            fsi_real *to = out + (size_t)(z - first[2] + at[2]) * sz + (size_t)(y - first[1] + at[1]) * sy
                + (size_t)at[0];
            next[1] = fsi__clamp_int((y | 7) + 1, last[1] + 1);
            for (x = first[0]; x <= last[0]; x = next[0]) {
                const int b = line[x >> 3], ny = next[1] - y, nz = next[2] - z;
                const fsi_real *source = b < 0 ? NULL : field->value + (size_t)b * (size_t)g->block_cells
                    + (size_t)(((z & 7) * 8 + (y & 7)) * 8 + (x & 7));
                next[0] = fsi__clamp_int((x | 7) + 1, last[0] + 1);
                /* constant lengths, for the compiler */
                if (source && next[0] - x == 8) fsi__gather_rows(source, 0, to, 8, ny, nz, sy, sz);
                else if (source && next[0] - x == 1) fsi__gather_rows(source, 0, to, 1, ny, nz, sy, sz);
                else if (source && next[0] - x == 2) fsi__gather_rows(source, 0, to, 2, ny, nz, sy, sz);
                else fsi__gather_rows(source, field->background, to, next[0] - x, ny, nz, sy, sz);
                to += next[0] - x;
            }
        }
    }

    /* Beyond the grid: the last entry inside, along x, then y, then z. */
    if (at[0] > 0 || q[0] < n[0] - 1) for (z = at[2]; z <= q[2]; z++) for (y = at[1]; y <= q[1]; y++) {
        fsi_real *to = out + (size_t)z * sz + (size_t)y * sy;
        for (x = 0; x < at[0]; x++) to[x] = to[at[0]];
        for (x = q[0] + 1; x < n[0]; x++) to[x] = to[q[0]];
    }
    if (at[1] > 0 || q[1] < n[1] - 1) for (z = at[2]; z <= q[2]; z++) {
        fsi_real *to = out + (size_t)z * sz;
        for (y = 0; y < n[1]; y++) if (y < at[1] || y > q[1])
            memcpy(to + (size_t)y * sy, to + (size_t)(y < at[1] ? at[1] : q[1]) * sy, sy * sizeof *to);
    }
    for (z = 0; z < n[2]; z++) if (z < at[2] || z > q[2])
        memcpy(out + (size_t)z * sz, out + (size_t)(z < at[2] ? at[2] : q[2]) * sz, sz * sizeof *out);
}

FSI_API void fsi__grid_gather_at(const fsi_field *field, const int *corner, int h, fsi_real *out)
{
    int lo[3], n[3], a;
    for (a = 0; a < 3; a++) {
        const int in = a < field->grid->dim;
        n[a] = in ? 8 + 2 * h : 1;
        lo[a] = corner[a] - (in ? h : 0);
    }
    fsi__grid_gather_box(field, lo, n, out);
}

FSI_API void fsi__grid_gather(const fsi_field *field, int b, int h, fsi_real *out)
{
    int corner[3];
    fsi_grid_corner(field->grid, b, corner);
    fsi__grid_gather_at(field, corner, h, out);
}

/* `count` entries along each axis from lo: in place where one block holds them, else in `room` (count^dim). */
static const fsi_real *fsi__grid_patch(const fsi_field *field, const int *lo, int count, fsi_real *room, int *sy,
    int *sz)
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

/* The kernels: v is the first entry of a stencil in memory with strides 1, sy, sz. Two entries side by side go the same
   way until x is the last axis left: that fills the lanes of a vector. */
FSI_FN fsi_real fsi__interpolate_linear(const fsi_real *v, int sy, int sz, fsi_real fx, fsi_real fy, fsi_real fz,
    int dim)
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
    const fsi_real a = f + 2, b = f + 1, d = f - 1, e = f - 2, h = f - 3, part = (fsi_real)(1.0 / 120),
        ab = a * b * part, fd = f * d, eh = e * h;
    w[0] = -b * part * fd * eh;
    w[1] = 5 * part * a * fd * eh;
    w[2] = -10 * ab * d * eh;
    w[3] = 10 * ab * f * eh;
    w[4] = -5 * ab * fd * h;
    w[5] = ab * fd * e;
}

/* A scheme's value at fractions f past the entry v. Its stencil: entries -reach .. reach + 1. */
FSI_FN int fsi__scheme_reach(int scheme)
{
    return scheme == FSI_ADVECT_LINEAR ? 0 : scheme == FSI_ADVECT_CUBIC ? 1 : 2;
}
FSI_FN fsi_real fsi__interpolate(const fsi_real *v, int sy, int sz, fsi_real fx, fsi_real fy, fsi_real fz, int scheme,
    int dim)
{
    const int reach = fsi__scheme_reach(scheme);
    const fsi_real *first = v - reach - reach * sy - (dim == 3 ? reach * sz : 0), f[3] = { fx, fy, fz };
    fsi_real w[3][6];
    int a;
    if (scheme == FSI_ADVECT_LINEAR) return fsi__interpolate_linear(v, sy, sz, fx, fy, fz, dim);
    for (a = 0; a < dim; a++)
        if (scheme == FSI_ADVECT_CUBIC) fsi__weights_cubic(f[a], w[a]);
        else fsi__weights_quintic(f[a], w[a]);
    if (scheme == FSI_ADVECT_CUBIC)
        return fsi__limit(fsi__interpolate_tensor(first, sy, sz, w, 4, dim), v, sy, sz, 2, 0, dim);
    return fsi__limit(fsi__interpolate_tensor(first, sy, sz, w, 6, dim), v - 1 - sy - (dim == 3 ? sz : 0), sy, sz, 4,
        (fsi_real)0.25, dim);
}

/* Distance of the entries of `place` from the lower corner of their cell along an axis, in cells. */
FSI_FN fsi_real fsi__grid_offset(fsi_grid_place place, int axis) { return (int)place == axis + 1 ? 0 : (fsi_real)0.5; }

/* ---- >>sampling implementation -------------------------------------------------------------------------------- */

FSI_API void fsi__grid_extend_box(const fsi_field *field, const int *lo, const int *n, fsi_real *box)
{
    const fsi_grid *g = field->grid;
    const int stride[3] = { 1, n[0], n[0] * n[1] };
    int a, side, i, j, t;
    for (a = 0; a < g->dim; a++)
        for (side = -1; side <= 1; side += 2) {
            const int most = fsi_grid_size(g, field->place, a) - 1, last = (side < 0 ? 0 : most) - lo[a],
                inner = last - side, count = side < 0 ? last : n[a] - 1 - last, p = (a + 1) % 3, q = (a + 2) % 3;
            if (count <= 0 || inner < 0 || inner >= n[a] || most < 1) continue;
            for (j = 0; j < n[q]; j++)
                for (i = 0; i < n[p]; i++) {
                    fsi_real *end = box + last * stride[a] + i * stride[p] + j * stride[q];
                    const fsi_real slope = end[0] - end[-side * stride[a]];
                    for (t = 1; t <= count; t++) end[side * t * stride[a]] = end[0] + (fsi_real)t * slope;
                }
        }
}

/* Value of a scheme `c` cells away from the corner of cell (corner), which keeps the digits of c in float. distance: 1:
   of a field continued linearly beyond its outermost entries. */
static fsi_real fsi__grid_sample(const fsi_field *f, const int *corner, const fsi_real *c, int scheme, int distance)
{
    const int dim = f->grid->dim, before = fsi__scheme_reach(scheme) + distance, count = 2 * before + 2;
    const fsi_real beyond = (fsi_real)0.5 * (fsi_real)distance;
    fsi_real room[512], t[3] = { 0, 0, 0 };
    const fsi_real *v;
    int lo[3] = { 0, 0, 0 }, n[3] = { 1, 1, 1 }, a, sy, sz;
    for (a = 0; a < dim; a++) {
        const fsi_real first = (fsi_real)-corner[a], last = first + (fsi_real)(fsi_grid_size(f->grid, f->place, a) - 1);
        const fsi_real q = fsi__into(c[a] - fsi__grid_offset(f->place, a), first - beyond, last + beyond),
            whole = fsi_floor(q);
        t[a] = q - whole;
        lo[a] = (int)whole + corner[a] - before;
        n[a] = count;
    }
    v = fsi__grid_patch(f, lo, count, room, &sy, &sz);
    if (distance && v == room) fsi__grid_extend_box(f, lo, n, room);
    v += before + before * sy + (dim == 3 ? before * sz : 0);
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

FSI_API fsi_real fsi_grid_sample_linear(const fsi_field *f, fsi_vec3 x)
{
    const int corner[3] = { 0, 0, 0 };
    fsi_real c[3];
    if (!fsi__is_field(f)) return 0;
    fsi__grid_cells(f->grid, x, c);
    return fsi__grid_sample(f, corner, c, FSI_ADVECT_LINEAR, 0);
}

/* b = nearest entry, f = q - b: w = { (1/2 - f)^2/2, 3/4 - f^2, (1/2 + f)^2/2 }, w' = { f - 1/2, -2f, f + 1/2 }/dx.
   Beyond the outermost entry its value repeats: there the spline flattens, and 3/2 entries farther out it is
   constant. */
FSI_API fsi_real fsi_grid_sample_spline(const fsi_field *f, fsi_vec3 x, fsi_vec3 *gradient)
{
    const fsi_real half = (fsi_real)0.5;
    fsi_real room[27], w[4][3][6] = { { { 0 } } }, p[3]; /* w[0]: of the value; w[1 + a]: of its derivative along a */
    const fsi_real *v;
    int lo[3] = { 0, 0, 0 }, a, k, dim, sy, sz;
    const fsi_grid *g;

    /* The place in cells. */
    if (gradient) *gradient = fsi_v3(0, 0, 0);
    if (!fsi__is_field(f)) return 0;
    g = f->grid;
    dim = g->dim;
    p[0] = (x.x - g->origin.x) / g->dx;
    p[1] = (x.y - g->origin.y) / g->dx;
    p[2] = (x.z - g->origin.z) / g->dx;

    /* Weights of three entries along each axis, and their slopes. */
    for (a = 0; a < dim; a++) {
        const fsi_real q = fsi__into(p[a] - fsi__grid_offset(f->place, a), (fsi_real)-1.5,
            (fsi_real)fsi_grid_size(g, f->place, a) + half);
        const fsi_real whole = fsi_floor(q + half), t = q - whole;
        const fsi_real value[3] = { (half - t) * (half - t) / 2, (fsi_real)0.75 - t * t, (half + t) * (half + t) / 2 };
        const fsi_real slope[3] = { (t - half) / g->dx, -2 * t / g->dx, (t + half) / g->dx };
        lo[a] = (int)whole - 1;
        for (k = 0; k < 4; k++) memcpy(w[k][a], k == 1 + a ? slope : value, sizeof value);
    }

    /* Products of the weights. */
    v = fsi__grid_patch(f, lo, 3, room, &sy, &sz);
    if (gradient) {
        for (a = 0; a < dim; a++)
            p[a] = dim == 2 ? fsi__interpolate_tensor(v, sy, sz, w[1 + a], 3, 2)
                : fsi__interpolate_tensor(v, sy, sz, w[1 + a], 3, 3);
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
    return fsi_v3(fsi_grid_sample_linear(u[0], x), fsi_grid_sample_linear(u[1], x), u[0]->grid->dim == 3
        ? fsi_grid_sample_linear(u[2], x) : 0);
}

/* ---- >>trace -------------------------------------------------------------------------------------------------- */

/* dc/dt = u(c) over a time that moves by `scale` u cells:
       midpoint  c + scale k2,                      k2 = u(c + scale k1/2)
       Ralston   c + scale (2 k1 + 3 k2 + 4 k3)/9,  k3 = u(c + 3/4 scale k2) */
static void fsi__trace_velocity(fsi_field *const *u, const int *corner, const fsi_real *c, fsi_real *k)
{
    int a;
    for (a = 0; a < u[0]->grid->dim; a++) k[a] = fsi__grid_sample(u[a], corner, c, FSI_ADVECT_LINEAR, 0);
}

static void fsi__trace_move(const fsi_grid *g, const int *corner, const fsi_real *c, fsi_real part, const fsi_real *k,
    fsi_real *out)
{
    int a;
    for (a = 0; a < g->dim; a++)
        out[a] = fsi__into(c[a] + part * k[a], (fsi_real)-corner[a], (fsi_real)(g->n[a] - corner[a]));
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
    return fsi_v3(g->origin.x + c[0] * g->dx, g->origin.y + c[1] * g->dx,
        g->dim == 3 ? g->origin.z + c[2] * g->dx : x.z);
}

/* ---- >>advection implementation --------------------------------------------------------------------------------

   A block at a time. How far its traces go is known beforehand, from the range of its own velocity and a bit more: what
   they can meet is gathered into boxes, and batches of 64 entries go through the stages side by side, in cells from the
   corner of the block.

         u, where the stages are evaluated:        the field, where the traces end:
           +----------+                             +---------+
           | +-----+  |                             |     o   |
           | |block|  |    flow  <-----             | +---\-+ |
           | +-----+  |                             +-|    \|-+
           +----------+                               |block|

   Few traces leave a box, where the velocity of a neighbouring block is higher or the trace is long. They are computed
   again one by one, by the functions that sample the field anywhere. */

/* entries that the boxes have room for; tasks at most */
enum { FSI__ADVECT_U = 2048, FSI__ADVECT_FROM = 4096, FSI__GRID_CHUNKS = 256 };

typedef struct fsi__reach { int lo[3], n[3]; } fsi__reach; /* a box of entries, counted from the corner of the block */

typedef struct fsi__advect {
    int count;                       /* fields that are advected along the same traces */
    const fsi_field *from[3];
    fsi_field *to[3];
    const unsigned char *where[3];
    fsi_field *const *u;
    fsi_real scale;                  /* cells per speed, back in time: -dt/dx */
    int scheme, order, distance;     /* distance: 1: continued linearly beyond the box */
    long long bad[FSI__GRID_CHUNKS]; /* by chunk: the first block with a number that is not finite, -1 none */
} fsi__advect;

typedef struct fsi__advect_block {
    const fsi_field *field;          /* the one being advected */
    int b, corner[3];
    fsi_real last[3];                /* upper corner of the box of the grid, its lower one is -corner */
    fsi__reach u_reach, from_reach;
    fsi_real u[3][FSI__ADVECT_U], from[FSI__ADVECT_FROM];
} fsi__advect_block;

/* Blocks a task, so that there are at most FSI__GRID_CHUNKS tasks. */
static int fsi__grid_grain(const fsi_grid *g) { return g->block_count / FSI__GRID_CHUNKS + 1; }

FSI_API void fsi__grid_light(const fsi_grid *g, int grain, double work, fsi__range_fn *fn, void *arg)
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
            zero[t] += x * 0; /* NaN where a number is not finite */
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

/* The box of entries that samples of a block need: its entries move by least to most cells along each axis, and each
   sample reads `before` and `behind` entries around its position, shifted by at most `shift`. Cut to the room there is.
   */
static void fsi__reach_of(fsi__reach *r, const fsi_real *least, const fsi_real *most, fsi_real shift, int before,
    int behind, int room, int dim)
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

static void fsi__advect_gather(const fsi_field *field, const fsi__advect_block *s, const fsi__reach *r, int distance,
    fsi_real *out)
{
    int lo[3], a;
    for (a = 0; a < 3; a++) lo[a] = s->corner[a] + r->lo[a];
    fsi__grid_gather_box(field, lo, r->n, out);
    if (distance) fsi__grid_extend_box(field, lo, r->n, out);
}

/* Velocity where the entries `at` of a row stand, without interpolation: a component on its own faces is itself,
   elsewhere the average of those around, which are one step along its axis and one back along that of the row's own
   faces. */
FSI_FN void fsi__advect_start(const fsi__advect_block *s, int place, int at, fsi_real (*k)[64], int begin, int dim)
{
    const int stride[3] = { 1, s->u_reach.n[0], s->u_reach.n[0] * s->u_reach.n[1] };
    int a, t;
    for (a = 0; a < dim; a++) {
        const int own = place == FSI_FACES_X + a, along = own ? 0 : stride[a],
            back = own || place == FSI_CELLS ? 0 : -stride[place - FSI_FACES_X];
        const fsi_real *v = s->u[a] + at;
        for (t = 0; t < 8; t++)
            k[a][begin + t] = (fsi_real)0.25 * ((v[t] + v[t + along]) + (v[t + back] + v[t + along + back]));
    }
}

/* Velocity at n places c. lost: above 0 for those outside of the box. */
FSI_FN void fsi__advect_velocity(const fsi__advect_block *s, fsi_real (*c)[64], fsi_real (*k)[64], fsi_real *lost,
    int n, int dim)
{
    const int sy = s->u_reach.n[0], sz = sy * s->u_reach.n[1];
    const fsi_real half = (fsi_real)0.5;
    fsi_real fw[3][64], fh[3][64], w[3][64], h[3][64]; /* fractions and whole parts of c and, h, of c - 1/2 */
    int o[3][64], a, t;

    /* Fractions and whole parts. */
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

    /* First entries of the three components. */
    for (t = 0; t < n; t++) {
        const fsi_real zw = dim == 3 ? w[2][t] : 0, zh = dim == 3 ? h[2][t] : 0;
        o[0][t] = (int)(w[0][t] + (fsi_real)sy * h[1][t] + (fsi_real)sz * zh);
        o[1][t] = (int)(h[0][t] + (fsi_real)sy * w[1][t] + (fsi_real)sz * zh);
        o[2][t] = (int)(h[0][t] + (fsi_real)sy * h[1][t] + (fsi_real)sz * zw);
    }

    /* The components. */
    for (t = 0; t < n; t++) {
        const fsi_real zh = dim == 3 ? fh[2][t] : 0;
        k[0][t] = fsi__interpolate_linear(s->u[0] + o[0][t], sy, sz, fw[0][t], fh[1][t], zh, dim);
        k[1][t] = fsi__interpolate_linear(s->u[1] + o[1][t], sy, sz, fh[0][t], fw[1][t], zh, dim);
        if (dim == 3) k[2][t] = fsi__interpolate_linear(s->u[2] + o[2][t], sy, sz, fh[0][t], fh[1][t], fw[2][t], 3);
    }
}

/* The field at n places c, no farther than `beyond` from its outermost entries. */
FSI_FN void fsi__advect_sample(const fsi__advect_block *s, fsi_real (*c)[64], fsi_real *out, fsi_real *lost, int n,
    fsi_real beyond, int scheme, int dim)
{
    const int sy = s->from_reach.n[0], sz = sy * s->from_reach.n[1], reach = fsi__scheme_reach(scheme);
    fsi_real f[3][64], w[3][64];
    int a, t;
    for (a = 0; a < dim; a++) {
        const fsi_real offset = fsi__grid_offset(s->field->place, a), lo = (fsi_real)s->from_reach.lo[a],
            least = (fsi_real)reach;
        const fsi_real most = (fsi_real)(s->from_reach.n[a] - 1 - reach) - (fsi_real)0.001,
            first = (fsi_real)-s->corner[a] - beyond;
        const fsi_real size = (fsi_real)(fsi_grid_size(s->field->grid, s->field->place, a) - 1),
            last = (fsi_real)-s->corner[a] + size + beyond;
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
FSI_FN void fsi__advect_move(const fsi__advect_block *s, fsi_real (*c)[64], fsi_real part, fsi_real (*k)[64],
    fsi_real (*out)[64], int n, int dim)
{
    int a, t;
    for (a = 0; a < dim; a++) {
        const fsi_real first = (fsi_real)-s->corner[a], last = s->last[a];
        for (t = 0; t < n; t++) out[a][t] = fsi__into(c[a][t] + part * k[a][t], first, last);
    }
}

/* Advects up to 8 rows of a block, whose entries stand one row after the other: x_d = x - dt u by Runge-Kutta of order
   2 (midpoint) or 3 (Ralston), out = field(x_d). */
FSI__HOST_FN void fsi__advect_rows(const fsi__advect *job, const fsi__advect_block *s, const int *row, int rows,
    fsi_real *out, int dim)
{
    const fsi_grid_place place = s->field->place;
    const int sy = s->u_reach.n[0], sz = sy * s->u_reach.n[1],
        start = -(s->u_reach.lo[0] + s->u_reach.lo[1] * sy + s->u_reach.lo[2] * sz), n = 8 * rows;
    const fsi_real beyond = job->distance ? (fsi_real)0.5 : 0;
    fsi_real c[3][64], at[3][64], k1[3][64], k2[3][64], k3[3][64], lost[64] = { 0 };
    int a, t, r;

    /* Positions of the entries, and k1: the velocity there. */
    for (r = 0; r < rows; r++) {
        for (t = 8 * r; t < 8 * r + 8; t++) {
            c[0][t] = (fsi_real)(t & 7) + fsi__grid_offset(place, 0);
            c[1][t] = (fsi_real)(row[r] & 7) + fsi__grid_offset(place, 1);
            c[2][t] = (fsi_real)(row[r] >> 3) + fsi__grid_offset(place, 2);
        }
        fsi__advect_start(s, (int)place, start + (row[r] & 7) * sy + (row[r] >> 3) * sz, k1, 8 * r, dim);
    }

    /* k2 at half the path; of order 3, k3 at three quarters and their weighted mean. */
    fsi__advect_move(s, c, job->scale / 2, k1, at, n, dim);
    fsi__advect_velocity(s, at, k2, lost, n, dim);
    if (job->order == 3) {
        fsi__advect_move(s, c, (fsi_real)0.75 * job->scale, k2, at, n, dim);
        fsi__advect_velocity(s, at, k3, lost, n, dim);
        for (a = 0; a < dim; a++)
            for (t = 0; t < n; t++) k2[a][t] = (2 * k1[a][t] + 3 * k2[a][t] + 4 * k3[a][t]) / 9;
    }

    /* Sample the field at the departure points. */
    fsi__advect_move(s, c, job->scale, k2, at, n, dim);
    if (job->scheme == FSI_ADVECT_LINEAR) fsi__advect_sample(s, at, out, lost, n, beyond, FSI_ADVECT_LINEAR, dim);
    else if (job->scheme == FSI_ADVECT_CUBIC) fsi__advect_sample(s, at, out, lost, n, beyond, FSI_ADVECT_CUBIC, dim);
    else fsi__advect_sample(s, at, out, lost, n, beyond, FSI_ADVECT_QUINTIC, dim);

    /* Paths that left the gathered boxes are traced on the grid. */
    for (t = 0; t < n; t++)
        if (lost[t] > 0) {
            fsi_real p[3];
            for (a = 0; a < 3; a++) p[a] = c[a][t];
            fsi__trace(job->u, s->corner, p, job->scale, job->order);
            out[t] = fsi__grid_sample(s->field, s->corner, p, job->scheme, job->distance);
        }
}

/* With constants for the compiler. */
static void fsi__advect_rows_2(const fsi__advect *job, const fsi__advect_block *s, const int *row, int rows,
    fsi_real *out)
{
    fsi__advect_rows(job, s, row, rows, out, 2);
}
static void fsi__advect_rows_3(const fsi__advect *job, const fsi__advect_block *s, const int *row, int rows,
    fsi_real *out)
{
    fsi__advect_rows(job, s, row, rows, out, 3);
}

/* Finds the boxes that the block's traces reach and gathers them; 0 when a number of the block is not finite. */
static int fsi__advect_begin(const fsi__advect *job, fsi__advect_block *s)
{
    const fsi_grid *g = job->u[0]->grid;
    const size_t first = (size_t)s->b * (size_t)g->block_cells;
    const int reach = fsi__scheme_reach(job->scheme);
    const fsi_real part = job->order == 3 ? (fsi_real)0.75 : (fsi_real)0.5;
    fsi_real least[3] = { 0, 0, 0 }, most[3] = { 0, 0, 0 }, x, y;
    int a, k, finite = 1;

    /* The ranges of the block: are all its numbers finite? */
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

    /* Boxes that the traces reach in `from`; and in u, for their middle points. */
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
    for (r = 0; r < g->block_cells / 8; r++)
        all |= wanted[r] = fsi__advect_wanted(s, r & 7, r >> 3, where ? where + r * 8 : NULL);
    if (!all) return;
    for (k = 0; k < g->dim && !*ready; k++) fsi__advect_gather(job->u[k], s, &s->u_reach, 0, s->u[k]);
    *ready = 1;
    fsi__advect_gather(s->field, s, &s->from_reach, job->distance, s->from);
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
                return fsi__fail(g->context, FSI_ERROR_NAN, function, e, (double)f->value[e],
                    "%s[%d] is not finite at entry %lld", k < g->dim ? "u" : "from",
                                 k < g->dim ? k : k - g->dim, e);
    }
    return FSI_ERROR_NAN;
}

static fsi_status fsi__advect_check(const fsi__advect *job, fsi_real dt, const char *f)
{
    fsi_context *context = job->to[0]->grid->context;
    int a, k;

    /* Fields that fit each other. */
    if (fsi__velocity_grid(job->u) != job->to[0]->grid)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, f, -1, 0, "u is no velocity on the grid of to");
    for (k = 0; k < job->count; k++) {
        if (job->from[k]->grid != job->to[0]->grid || job->to[k]->grid != job->to[0]->grid
            || job->from[k]->place != job->to[k]->place)
            return fsi__fail(context, FSI_ERROR_ARGUMENT, f, k, 0,
                "from[%d] and to[%d] are not at one place of one grid", k, k);
        for (a = 0; a < job->to[0]->grid->dim; a++)
            if (job->to[k] == job->u[a])
                return fsi__fail(context, FSI_ERROR_ARGUMENT, f, k, 0, "to[%d] is u[%d]", k, a);
        for (a = 0; a < job->count; a++)
            if (job->to[k] == job->from[a] || (a < k && job->to[k] == job->to[a]))
                return fsi__fail(context, FSI_ERROR_ARGUMENT, f, k, 0, "to[%d] is from[%d] or another of to", k, a);
    }

    /* Numbers. */
    if (job->scheme < (int)FSI_ADVECT_LINEAR || job->scheme > (int)FSI_ADVECT_QUINTIC)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, f, -1, job->scheme, "scheme is %d", job->scheme);
    if (job->order != 2 && job->order != 3)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, f, -1, job->order, "order is %d, not 2 or 3", job->order);
    if (!fsi_is_finite((double)dt)) return fsi__fail(context, FSI_ERROR_NAN, f, -1, (double)dt, "dt is not finite");
    return FSI_OK;
}

static fsi_status fsi__advect_run(fsi__advect *job, fsi_field *const *u, fsi_real dt, fsi_grid_scheme scheme,
    int order, const char *f)
{
    fsi_grid *g = job->to[0]->grid;
    int c;
    job->u = u;
    job->scheme = (int)scheme;
    job->order = order;
    job->scale = -dt / g->dx;
    FSI__TRY(fsi__advect_check(job, dt, f));
    fsi__grid_light(g, fsi__grid_grain(g), 4000, fsi__advect_blocks, job);
    for (c = 0; c < fsi__chunks(g->block_count, fsi__grid_grain(g)); c++)
        if (job->bad[c] >= 0) return fsi__advect_refuse(job, job->bad[c], f);
    return FSI_OK;
}

static fsi_status fsi__advect_one(const fsi_field *from, fsi_field *const u[3], fsi_real dt, fsi_grid_scheme scheme,
    int order, const unsigned char *where, fsi_field *to, int distance, const char *function)
{
    fsi__advect job;
    if (!fsi__is_field(from) || !fsi__is_field(to)) return FSI_ERROR_COOKIE;
    job.count = 1;
    job.distance = distance;
    job.from[0] = from;
    job.to[0] = to;
    job.where[0] = where;
    return fsi__advect_run(&job, u, dt, scheme, order, function);
}

FSI_API fsi_status fsi_grid_advect(const fsi_field *from, fsi_field *const u[3], fsi_real dt, fsi_grid_scheme scheme,
    int order, const unsigned char *where,
                                   fsi_field *to)
{
    return fsi__advect_one(from, u, dt, scheme, order, where, to, 0, "fsi_grid_advect");
}

FSI_API fsi_status fsi__grid_advect_distance(const fsi_field *from, fsi_field *const u[3], fsi_real dt,
    fsi_grid_scheme scheme, int order, const unsigned char *where, fsi_field *to, const char *function)
{
    return fsi__advect_one(from, u, dt, scheme, order, where, to, 1, function);
}

FSI_API fsi_status fsi_grid_advect_velocity(fsi_field *const from[3], fsi_field *const u[3], fsi_real dt,
    fsi_grid_scheme scheme, int order, const unsigned char *const where[3], fsi_field *const to[3])
{
    static const char *const f = "fsi_grid_advect_velocity";
    fsi__advect job;
    fsi_grid *g = fsi__velocity_grid(to);
    int a;
    if (!g) return FSI_ERROR_COOKIE;
    if (fsi__velocity_grid(from) != g)
        return fsi__fail(g->context, FSI_ERROR_ARGUMENT, f, -1, 0, "from is no velocity on the grid of to");
    job.count = g->dim;
    job.distance = 0;
    for (a = 0; a < g->dim; a++) {
        job.from[a] = from[a];
        job.to[a] = to[a];
        job.where[a] = where ? where[a] : NULL;
    }
    return fsi__advect_run(&job, u, dt, scheme, order, f);
}

/* ---- >>masks ----------------------------------------------------------------------------------------------------- */

FSI_API uint64_t fsi__mask_inside(const fsi_grid *g, fsi_grid_place place, const int corner[3], int z,
    const int step[3])
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

FSI_API int fsi__block_beside(const fsi_grid *g, int b, const int step[3])
{
    int corner[3];
    long long e;
    fsi_grid_corner(g, b, corner);
    e = fsi_grid_entry(g, corner[0] + 8 * step[0], corner[1] + 8 * step[1], corner[2] + 8 * step[2]);
    return e < 0 ? -1 : (int)(e / g->block_cells);
}

FSI_API void fsi__blocks_beside(const fsi_grid *g, int b, int beside[6])
{
    int side;
    for (side = 0; side < 6; side++) beside[side] = fsi__block_beside(g, b, fsi__step(side));
}

FSI_API uint64_t fsi__mask_beside(const fsi_grid *g, uint64_t *mask, int b, int beside, int z, int side)
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

   Only entries that get a value are visited. A layer reads the masks and values of the layers before it only,
   so that blocks can go in any order. Tasks count the blocks of the first field, then those of the next one. */
typedef struct fsi__extrapolate {
    fsi_field *f[3];
    int count;                       /* of fields */
    const fsi_field *phi;            /* of one field; NULL: plain averages */
    double *face;                    /* phi at the faces of f, an entry each */
    unsigned char *known[3];
    uint64_t *now[3], *next[3];      /* words known before and after a layer */
    int layer;
    long long bad[FSI__GRID_CHUNKS]; /* by chunk: an entry whose neighbours are not finite, -1 none */
} fsi__extrapolate;

/* Phi at the faces of block b: the mean of the two cells, or that of the one that there is. */
static void fsi__extrapolate_phi(const fsi__extrapolate *job, int b)
{
    const fsi_grid *g = job->phi->grid;
    const int cells = g->block_cells, axis = (int)job->f[0]->place - (int)FSI_FACES_X, back = 1 << 3 * axis;
    const int below = fsi__block_beside(g, b, fsi__step(2 * axis));
    const fsi_real *phi = job->phi->value + (size_t)b * (size_t)cells;
    const fsi_real *other = below < 0 ? phi : job->phi->value + (size_t)below * (size_t)cells + 7 * back;
    double *face = job->face + (size_t)b * (size_t)cells;
    int c, k;
    for (c = back; c < cells; c++) face[c] = ((double)phi[c] + (double)phi[c - back]) / 2;
    for (k = 0; k < cells / 8; k++) { /* the first cells along the axis */
        c = (k & ~(back - 1)) * 8 + (k & (back - 1));
        face[c] = ((double)phi[c] + (double)other[c]) / 2;
    }
}

/* Eight bytes that are 0 or 1, as bits: the product moves byte k to bit 56 + k. */
static uint64_t fsi__pack_bits(const unsigned char *x)
{
    uint64_t all = 0;
    int k;
    for (k = 0; k < 8; k++) all |= (uint64_t)x[k] << 8 * k;
    return all * 0x0102040810204080u >> 56;
}

static void fsi__extrapolate_read(void *arg, int chunk, int begin, int end)
{
    const fsi__extrapolate *job = (const fsi__extrapolate *)arg;
    const fsi_grid *g = job->f[0]->grid;
    const int words = fsi__layers(g), stay[3] = { 0, 0, 0 };
    int z, e, corner[3];
    (void)chunk;
    for (; begin < end; begin++) {
        const int k = begin / g->block_count, b = begin % g->block_count;
        if (job->phi) fsi__extrapolate_phi(job, b);
        fsi_grid_corner(g, b, corner);
        for (z = 0; z < words; z++) {
            unsigned char *known = job->known[k] + (size_t)(b * words + z) * 64;
            uint64_t bits = 0;
            for (e = 0; e < 64; e++) known[e] = known[e] != 0;
            for (e = 0; e < 64; e += 8) bits |= fsi__pack_bits(known + e) << e;
            job->now[k][b * words + z] = bits & fsi__mask_inside(g, job->f[k]->place, corner, z, stay);
        }
    }
}

#define FSI__UPHILL 1e-3 /* [dx] of phi at least, for its normal to be known */

/* The value of entry e of block b of the k-th field: constant along the normals of phi, grad f . grad phi = 0 by
   upwind differences,

       f = sum_s w_s f_s / sum_s w_s,    w_s = max(0, phi - phi_s)

   over its known neighbours s, in the order of fsi__step (Aslam, J. Comput. Phys. 193 (2004), in one sweep); their
   average where none lies nearer to the surface, or there is no phi. An average would depend more on how the surface
   lies in the grid: before a sheet that skims a pool two neighbours of three are the sheet's along a diagonal, and one
   of two along an axis. Layers go along the axes, so where a single neighbour is known its value is carried along the
   axis, not along the normal. *sum: not finite where a neighbour is not. */
static fsi_real fsi__extrapolate_value(const fsi__extrapolate *job, int k, int b, const int *beside,
    const uint64_t *bits, int e, fsi_real *sum)
{
    const fsi_grid *g = job->f[k]->grid;
    const double here = job->phi ? job->face[(size_t)b * (size_t)g->block_cells + (size_t)e] : 0;
    double all = 0, weighed = 0;
    int side, count = 0;
    for (side = 0, *sum = 0; side < 6; side++) {
        double w;
        long long at;
        if (!(bits[side] >> (e & 63) & 1)) continue;
        at = fsi__entry_beside(g, b, beside, e, side);
        *sum += job->f[k]->value[at];
        count++;
        w = job->phi ? here - job->face[at] : 0;
        if (!(w > 0)) continue;
        all += w;
        weighed += w * (double)job->f[k]->value[at];
    }
    return all > FSI__UPHILL * (double)g->dx ? (fsi_real)(weighed / all) : *sum / (fsi_real)count;
}

static void fsi__extrapolate_layer(void *arg, int chunk, int begin, int end)
{
    fsi__extrapolate *job = (fsi__extrapolate *)arg;
    const fsi_grid *g = job->f[0]->grid;
    const int words = fsi__layers(g), stay[3] = { 0, 0, 0 };
    int z, e, side, beside[6], corner[3];
    for (; begin < end; begin++) {
        const int k = begin / g->block_count, b = begin % g->block_count;
        const uint64_t *own = job->now[k] + (size_t)b * (size_t)words;
        fsi_real *value = job->f[k]->value + (size_t)b * (size_t)g->block_cells, sum;
        unsigned char *known = job->known[k] + (size_t)b * (size_t)g->block_cells;
        uint64_t all = ~(uint64_t)0, *next = job->next[k] + (size_t)b * (size_t)words;

        /* Blocks that are all known have nothing to do. */
        for (z = 0; z < words; z++) all &= next[z] = own[z];
        if (all == ~(uint64_t)0) continue;
        fsi_grid_corner(g, b, corner);
        fsi__blocks_beside(g, b, beside);

        /* Entries beside known ones, a word of 64 bits at a time. */
        for (z = 0; z < words; z++) {
            uint64_t bits[6], fresh = 0;
            if (own[z] == ~(uint64_t)0) continue;
            for (side = 0; side < 6; side++)
                fresh |= bits[side] = fsi__mask_beside(g, job->now[k], b, beside[side], z, side);
            fresh &= ~own[z];
            if (fresh) fresh &= fsi__mask_inside(g, job->f[k]->place, corner, z, stay);
            next[z] |= fresh;

            /* Each gets its value from its known neighbours. */
            for (e = z * 64; fresh; e++, fresh >>= 1) {
                for (; !(fresh & 0xff); e += 8) fresh >>= 8;
                if (!(fresh & 1)) continue;
                value[e] = fsi__extrapolate_value(job, k, b, beside, bits, e, &sum);
                known[e] = (unsigned char)(1 + job->layer);
                if (!fsi_is_finite((double)sum) && job->bad[chunk] < 0)
                    job->bad[chunk] = (long long)b * g->block_cells + e;
            }
        }
    }
}

static void fsi__extrapolate_rest(void *arg, int chunk, int begin, int end)
{
    const fsi__extrapolate *job = (const fsi__extrapolate *)arg;
    const int words = fsi__layers(job->f[0]->grid), all = words * job->f[0]->grid->block_count;
    int i, e;
    (void)chunk;
    for (i = begin * words; i < end * words; i++) {
        const int k = i / all, w = i % all;
        const uint64_t now = job->now[k][w];
        const fsi_real background = job->f[k]->background;
        fsi_real *value = job->f[k]->value + (size_t)w * 64;
        unsigned char *known = job->known[k] + (size_t)w * 64;
        if (now == ~(uint64_t)0) continue;
        for (e = 0; e < 64; e++) {
            const int is_known = (int)(now >> e & 1);
            value[e] = is_known ? value[e] : background;
            known[e] = is_known ? known[e] : 0;
        }
    }
}

/* fn for the blocks of all fields: at least `work` nanoseconds for one of 8^3 entries. */
static void fsi__extrapolate_each(fsi__extrapolate *job, double work, fsi__range_fn *fn)
{
    const fsi_grid *g = job->f[0]->grid;
    const int n = job->count * g->block_count;
    fsi__parallel_work(g->context, n, n / FSI__GRID_CHUNKS + 1, work * n / (g->dim == 2 ? 8 : 1), fn, job);
}

static fsi_status fsi__extrapolate_run(fsi_field *const *f, unsigned char *const *known, int count, int layers,
    const fsi_field *phi)
{
    static const char *const name = "fsi_grid_extrapolate";
    fsi__extrapolate job;
    fsi__grid_impl *m;
    fsi_grid *g;
    size_t bytes, faces;
    int c, k;

    /* Input. */
    for (k = 0; k < count; k++) if (!fsi__is_field(f[k])) return FSI_ERROR_COOKIE;
    g = f[0]->grid;
    m = (fsi__grid_impl *)g->impl;
    for (k = 0; k < count; k++)
        if (!known[k]) return fsi__fail(g->context, FSI_ERROR_ARGUMENT, name, -1, 0, "known is NULL");
    if (layers < 1 || layers > 254)
        return fsi__fail(g->context, FSI_ERROR_ARGUMENT, name, -1, layers, "layers is %d, not 1 to 254", layers);

    /* Two masks of known entries, in turn, and phi at the faces. */
    bytes = (size_t)m->capacity * (size_t)fsi__layers(g) * sizeof *job.now[0];
    faces = phi ? (size_t)m->capacity * (size_t)g->block_cells * sizeof *job.face : 0;
    if (!fsi__arena_reserve(g->context, &m->scratch, (size_t)count * (2 * bytes + 128) + faces + 64))
        return fsi__fail(g->context, FSI_ERROR_MEMORY, name, -1, (double)bytes, "no memory for %d blocks", m->capacity);
    for (k = 0; k < count; k++) {
        job.f[k] = f[k];
        job.known[k] = known[k];
        job.now[k] = (uint64_t *)fsi__take(&m->scratch, bytes, 1);
        job.next[k] = (uint64_t *)fsi__take(&m->scratch, bytes, 1);
    }
    job.count = count;
    job.phi = phi;
    job.face = (double *)fsi__take(&m->scratch, faces, 1);
    for (c = 0; c < FSI__GRID_CHUNKS; c++) job.bad[c] = -1;

    /* Layer after layer; then the entries that no layer reached. */
    fsi__extrapolate_each(&job, 120, fsi__extrapolate_read);
    for (job.layer = 1; job.layer <= layers; job.layer++) {
        fsi__extrapolate_each(&job, 150, fsi__extrapolate_layer);
        for (k = 0; k < count; k++) {
            uint64_t *now = job.now[k];
            job.now[k] = job.next[k];
            job.next[k] = now;
        }
    }
    fsi__extrapolate_each(&job, 110, fsi__extrapolate_rest);
    for (c = 0; c < FSI__GRID_CHUNKS; c++)
        if (job.bad[c] >= 0)
            return fsi__fail(g->context, FSI_ERROR_NAN, name, job.bad[c], 0,
                "a known neighbour of entry %lld is not finite, or their sum", job.bad[c]);
    return FSI_OK;
}

FSI_API fsi_status fsi_grid_extrapolate(fsi_field *f, unsigned char *known, int layers)
{
    return fsi__grid_extrapolate(f, known, layers, NULL);
}

FSI_API fsi_status fsi__grid_extrapolate(fsi_field *f, unsigned char *known, int layers, const fsi_field *phi)
{
    return fsi__extrapolate_run(&f, &known, 1, layers, phi);
}

FSI_API fsi_status fsi__grid_extrapolate_all(fsi_field *const *f, unsigned char *const *known, int count, int layers)
{
    return fsi__extrapolate_run(f, known, count, layers, NULL);
}

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

            /* Zeros, or NaN when an entry within the box is not finite. */
            if (inside == ~(uint64_t)0) for (y = 0; y < 64; y += 8) for (x = 0; x < 8; x++) sum[x] += v[y + x] * 0;
            else for (x = 0; x < 64; x++) if (inside >> x & 1) sum[0] += v[x] * 0;

            /* Bits of the liquid. */
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

FSI_API fsi_status fsi__grid_name_bad(fsi_context *context, const fsi_field *field, int b, const char *what,
    const char *function)
{
    const fsi_grid *g = field->grid;
    int corner[3], c;
    fsi_grid_corner(g, b, corner);
    for (c = 0; c < g->block_cells; c++) {
        const size_t e = (size_t)b * (size_t)g->block_cells + (size_t)c;
        const int i = corner[0] + (c & 7), j = corner[1] + (c >> 3 & 7), k = corner[2] + (c >> 6);
        if (i >= fsi_grid_size(g, field->place, 0) || j >= fsi_grid_size(g, field->place, 1)
            || k >= fsi_grid_size(g, field->place, 2)) continue;
        if (!fsi_is_finite((double)field->value[e]))
            return fsi__fail(context, FSI_ERROR_NAN, function, (long long)e, (double)field->value[e],
                "%s is not finite at (%d, %d, %d)", what, i, j, k);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi__mask_make(fsi__mask *m, const char *function)
{
    const fsi_grid *g = m->field->grid;
    int b;
    fsi_status status = FSI_OK;
    fsi__grid_light(g, 16, 280, fsi__mask_fill, m);
    for (b = 0; b < g->block_count && status == FSI_OK; b++)
        if (m->bad[b]) status = fsi__grid_name_bad(g->context, m->field, b, "phi", function);
    return status;
}

FSI_API fsi_status fsi__level_set_check(const fsi_field *phi, const char *function)
{
    if (!fsi__is_field(phi) || !fsi__is_grid(phi->grid)) return FSI_ERROR_COOKIE;
    if (phi->place != FSI_CELLS)
        return fsi__fail(phi->grid->context, FSI_ERROR_ARGUMENT, function, -1, (double)(int)phi->place,
            "phi does not stand in cells");
    if (!(phi->background > 0))
        return fsi__fail(phi->grid->context, FSI_ERROR_ARGUMENT, function, -1, (double)phi->background,
            "phi's background is %g: what is in no block must be air, above 0",
                         (double)phi->background);
    return FSI_OK;
}

FSI_API fsi__arena *fsi__grid_scratch(const fsi_grid *g) { return &((fsi__grid_impl *)g->impl)->scratch; }
FSI_API int fsi__grid_capacity(const fsi_grid *g) { return ((const fsi__grid_impl *)g->impl)->capacity; }

FSI_API fsi_status fsi__grid_room(const fsi_grid *g, size_t size, const char *function)
{
    fsi__arena *a = fsi__grid_scratch(g);
    if (fsi__arena_room(g->context, a, size)) return FSI_OK;
    return fsi__fail(g->context, FSI_ERROR_MEMORY, function, -1, (double)size, "no memory for %g bytes of scratch",
        (double)size);
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
