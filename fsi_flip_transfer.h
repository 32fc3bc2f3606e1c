/* fsi_flip_transfer.h - particles sorted by the cells of a grid, and what they and its faces give each other.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing: fsi_flip.h includes this file.

   WHAT IT DOES
      Particles are sorted by cell, block by block. Their momentum and mass go to the faces around them with linear
      weights, and the velocities of faces come back: PIC, FLIP and APIC in one (docs/flip.md derives them). Sums are
      made in one order for any number of threads.
   WHAT IS IN HERE (search for >>), all of it for fsi's own headers
      >>stages  then the implementation: >>sorting  >>particles to grid  >>grid to particles  >>motion
   MACROS: those of fsi.h.
   UNITS: SI; places within a block in cells.
   PRECISION: positions and velocities in fsi_real; sums of a block and interpolation in float.
*/
#ifndef FSI_FLIP_TRANSFER_H
#define FSI_FLIP_TRANSFER_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_grid.h"

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

#define FSI__TR_WANT 65536     /* particles a row of wanted blocks, at least */
#define FSI__TR_RIM 2          /* cells around a block from which its particles may read */
#define FSI__TR_CHUNKS 16      /* of particles, at most, in the first pass of sorting */
#define FSI__TR_LAST 7.9999995 /* [cells] the last place in a block, a float below 8 */
#define FSI__TR_AHEAD 12       /* particles ahead that memory is asked for: in the caller's order they lie anywhere */

/* Particles by the block and the cell that they are in, those of a cell in the order of the caller:

      rank     0 1 2 | 3 4 5 6 7 | 8 ...        order[rank]: the caller's number
      block      0   |     1     | 2            first[b] .. first[b + 1] - 1: the ranks of block b

   place: x, y, z of the particle in its block, 0 to below 8 cells, and its mass over that of a whole particle. */
typedef struct fsi__tr_points {
    const fsi_grid *grid;
    int count;
    const fsi_vec3 *x;       /* count, the caller's order, within the box of the grid [m] */
    const float *mass;       /* count, the caller's order, over that of a whole particle; NULL: all 1 */
    int *key, *order;        /* count; key: entry of the cell, by the caller's number */
    int *spare;              /* count, for sorting alone */
    int *first;              /* blocks + 1 */
    int *tally;              /* FSI__TR_CHUNKS * blocks */
    float (*place)[4];       /* count, by rank */
    int grain;               /* particles a chunk of the first pass */
} fsi__tr_points;

/* Takes its arrays out of the arena, for `count` particles in `blocks` blocks; grid, x and mass are the caller's. */
FSI_API void fsi__tr_layout(fsi__tr_points *p, fsi__arena *arena, int count, int blocks);
/* The same in two parts: arrays of particles, without `spare`; of blocks. */
FSI_API void fsi__tr_layout_rows(fsi__tr_points *p, fsi__arena *arena, int count);
FSI_API void fsi__tr_layout_blocks(fsi__tr_points *p, fsi__arena *arena, int blocks);
/* wanted[place] = 1 for the blocks within `margin` cells (1 to 8) of a particle, 0 for others. wanted has room for
   fsi__tr_want_rows(count) rows of fsi__grid_places(grid) bytes; the first is the result. */
FSI_API int fsi__tr_want_rows(int count);
FSI_API void fsi__tr_want(const fsi_grid *grid, const fsi_vec3 *x, int count, int margin, unsigned char *wanted);
/* Sorts; all blocks around particles exist. */
FSI_API void fsi__tr_sort(fsi__tr_points *p);

/* Velocities of particles, the caller's order. */
typedef struct fsi__tr_motion {
    fsi_vec3 *v;             /* count [m/s] */
    float (*affine)[9];      /* count: row a is the gradient of component a, times dx [m/s]; NULL: none (not APIC) */
} fsi__tr_motion;

/* What particles give to the grid:

      u_f = sum w (m v + m c.(x_f - x)) / sum w m,      w = product of max(0, 1 - |x - x_f|/dx)
      fill_c = sum w m / that of a cell full of whole particles */
typedef struct fsi__tr_faces {
    fsi_field *u[3];         /* on faces [m/s]; 0 where nothing is known */
    unsigned char *known[3]; /* an entry of the blocks each: 1: some particle is near */
    fsi_field *fill;         /* at cells; NULL: not wanted */
    fsi_field *mass[3];      /* on faces: sum w m; NULL: not wanted */
    float *box;              /* fsi__tr_box_size(grid) for each block */
} fsi__tr_faces;

FSI_API size_t fsi__tr_box_size(const fsi_grid *grid); /* numbers of a block's box */
/* per_cell: whole particles in a full cell. */
FSI_API void fsi__tr_to_grid(const fsi__tr_points *p, const fsi__tr_motion *m, double per_cell,
    const fsi__tr_faces *faces);

/* What the grid gives to particles: v = (1 - pic) v + I(pic u + (1 - pic) change); with affine v = I(u), c =
   (1 - pic) dx grad I(u). */
typedef struct fsi__tr_gain {
    fsi_field *const *u;     /* new velocities */
    fsi_field *const *change;/* since they were made from the particles; not read with affine */
    double pic;
} fsi__tr_gain;
/* For all particles, by number of the caller. */
FSI_API void fsi__tr_to_particles(const fsi__tr_points *p, const fsi__tr_gain *gain, const fsi__tr_motion *m);
/* out = I(field) of a field of cells, by number of the caller, for those below `count`. */
FSI_API void fsi__tr_sample_cells(const fsi__tr_points *p, const fsi_field *field, int count, float *out);
/* to = x + dt u(x + dt/2 (u(x) + e)) + dt e, by number of the caller; e: further velocity of each particle, NULL: 0.
   Paths are of at most two cells: u is read within a cell of where a particle starts. */
FSI_API void fsi__tr_move(const fsi__tr_points *p, fsi_field *const *u, double dt, const fsi_vec3 *e, fsi_vec3 *to);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_FLIP_TRANSFER_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_FLIP_TRANSFER_IMPLEMENTATION
#define FSI_FLIP_TRANSFER_IMPLEMENTATION
#endif
#ifdef FSI_FLIP_TRANSFER_IMPLEMENTATION
#ifndef FSI_FLIP_TRANSFER_IMPLEMENTATION_DONE
#define FSI_FLIP_TRANSFER_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_grid.h"

FSI__STRICT_BEGIN

/* ---- >>sorting -------------------------------------------------------------------------------------------------- */

/* Counting sorts of two levels: all particles by block, in at most 16 chunks that count for themselves; then each
   block's by cell. Both are stable, so the order does not depend on the number of threads. */

FSI_API void fsi__tr_layout_rows(fsi__tr_points *p, fsi__arena *arena, int count)
{
    p->count = count;
    p->grain = count / FSI__TR_CHUNKS + 1;
    if (p->grain < 4096) p->grain = 4096;
    p->key = (int *)fsi__take(arena, (size_t)count, sizeof *p->key);
    p->order = (int *)fsi__take(arena, (size_t)count, sizeof *p->order);
    p->place = (float (*)[4])fsi__take(arena, (size_t)count, sizeof *p->place);
}

FSI_API void fsi__tr_layout_blocks(fsi__tr_points *p, fsi__arena *arena, int blocks)
{
    p->first = (int *)fsi__take(arena, (size_t)blocks + 1, sizeof *p->first);
    p->tally = (int *)fsi__take(arena, (size_t)blocks * FSI__TR_CHUNKS, sizeof *p->tally);
}

FSI_API void fsi__tr_layout(fsi__tr_points *p, fsi__arena *arena, int count, int blocks)
{
    fsi__tr_layout_rows(p, arena, count);
    p->spare = (int *)fsi__take(arena, (size_t)count, sizeof *p->spare);
    fsi__tr_layout_blocks(p, arena, blocks);
}

/* What cells of an axis are found by: a particle's place is (x - origin) per_dx, held in cells 0 .. last. */
typedef struct fsi__tr_axes {
    double origin[3], per_dx, last[3];
} fsi__tr_axes;

static fsi__tr_axes fsi__tr_axes_of(const fsi_grid *g)
{
    fsi__tr_axes s;
    int a;
    s.origin[0] = (double)g->origin.x;
    s.origin[1] = (double)g->origin.y;
    s.origin[2] = (double)g->origin.z;
    s.per_dx = 1 / (double)g->dx;
    for (a = 0; a < 3; a++) s.last[a] = a < g->dim ? g->n[a] - 1 : 0;
    return s;
}

FSI_FN int fsi__tr_cell(double at, double last)
{
    at = at > 0 ? at : 0;
    return (int)(at < last ? at : last);
}

/* Blocks that a chunk's particles want, in the chunk's own row. */
typedef struct fsi__tr_wish {
    const fsi_grid *grid;
    const fsi_vec3 *x;
    int margin;
    unsigned char *wanted;
} fsi__tr_wish;

static void fsi__tr_want_chunk(void *arg, int chunk, int begin, int end)
{
    const fsi__tr_wish *wish = (const fsi__tr_wish *)arg;
    const fsi_grid *g = wish->grid;
    const fsi__tr_axes axes = fsi__tr_axes_of(g);
    const size_t places = fsi__grid_places(g);
    unsigned char *wanted = wish->wanted + (size_t)chunk * places;
    int i, a, last = -1;
    memset(wanted, 0, places);
    for (i = begin; i < end; i++) {
        const double x[3] = { (double)wish->x[i].x, (double)wish->x[i].y, (double)wish->x[i].z };
        int lo[3] = { 0, 0, 0 }, hi[3] = { 0, 0, 0 }, bx, by, bz, code;

        /* The blocks from margin cells below to margin cells above; those of the particle before are there. */
        for (a = 0; a < g->dim; a++) {
            const int cell = fsi__tr_cell((x[a] - axes.origin[a]) * axes.per_dx, axes.last[a]);
            lo[a] = (cell > wish->margin ? cell - wish->margin : 0) >> 3;
            hi[a] = fsi__clamp_int((cell + wish->margin) >> 3, g->blocks[a] - 1);
        }
        code = ((lo[2] * g->blocks[1] + lo[1]) * g->blocks[0] + lo[0]) * 8 + (hi[0] > lo[0]) + 2 * (hi[1] > lo[1])
            + 4 * (hi[2] > lo[2]);
        if (code == last) continue;
        last = code;
        for (bz = lo[2]; bz <= hi[2]; bz++)
            for (by = lo[1]; by <= hi[1]; by++)
                for (bx = lo[0]; bx <= hi[0]; bx++) wanted[(bz * g->blocks[1] + by) * g->blocks[0] + bx] = 1;
    }
}

FSI_API int fsi__tr_want_rows(int count)
{
    const int rows = count / FSI__TR_WANT + 1;
    return rows < FSI__TR_CHUNKS ? rows : FSI__TR_CHUNKS;
}

FSI_API void fsi__tr_want(const fsi_grid *grid, const fsi_vec3 *x, int count, int margin, unsigned char *wanted)
{
    const int rows = fsi__tr_want_rows(count), grain = count / rows + 1;
    const size_t places = fsi__grid_places(grid);
    fsi__tr_wish wish;
    size_t k;
    int row;
    wish.grid = grid;
    wish.x = x;
    wish.margin = margin;
    wish.wanted = wanted;
    memset(wanted, 0, places);
    fsi__parallel_work(grid->context, count, grain, 8.0 * count, fsi__tr_want_chunk, &wish);
    for (row = 1; row < fsi__chunks(count, grain); row++)
        for (k = 0; k < places; k++)
            if (wanted[(size_t)row * places + k]) wanted[k] = 1;
}

/* Keys of a chunk's particles, and how many are in each block. All blocks exist: no index is looked at for bounds. */
static void fsi__tr_count(void *arg, int chunk, int begin, int end)
{
    const fsi__tr_points *p = (const fsi__tr_points *)arg;
    const fsi_grid *g = p->grid;
    const fsi__tr_axes axes = fsi__tr_axes_of(g);
    const int shift = g->dim == 3 ? 9 : 6, across = g->blocks[0], deep = g->blocks[0] * g->blocks[1];
    const int *index = g->index;
    const fsi_vec3 *x = p->x;
    int *const key = p->key, *const tally = p->tally + (size_t)chunk * (size_t)g->block_count, i;
    memset(tally, 0, (size_t)g->block_count * sizeof *tally);
    for (i = begin; i < end; i++) {
        const int cx = fsi__tr_cell(((double)x[i].x - axes.origin[0]) * axes.per_dx, axes.last[0]);
        const int cy = fsi__tr_cell(((double)x[i].y - axes.origin[1]) * axes.per_dx, axes.last[1]);
        const int cz = fsi__tr_cell(((double)x[i].z - axes.origin[2]) * axes.per_dx, axes.last[2]);
        const int b = index[(cz >> 3) * deep + (cy >> 3) * across + (cx >> 3)];
        FSI_ASSERT(b >= 0);
        key[i] = (b << shift) + (cz & 7) * 64 + (cy & 7) * 8 + (cx & 7);
        tally[b]++;
    }
}

/* By block. */
static void fsi__tr_deal(void *arg, int chunk, int begin, int end)
{
    const fsi__tr_points *p = (const fsi__tr_points *)arg;
    const int shift = p->grid->dim == 3 ? 9 : 6, *key = p->key;
    int *const next = p->tally + (size_t)chunk * (size_t)p->grid->block_count, *const spare = p->spare, i;
    for (i = begin; i < end; i++) spare[next[key[i] >> shift]++] = i;
}

/* Asks for a row's memory, which may lie in two lines of the cache. */
FSI__HOST_FN void fsi__tr_ahead(const void *row, size_t size)
{
    FSI__PREFETCH((const char *)row);
    FSI__PREFETCH((const char *)row + size - 1);
}

FSI_FN float fsi__tr_in_block(double at)
{
    const float x = (float)at, y = x > 0 ? x : 0;
    return y < (float)FSI__TR_LAST ? y : (float)FSI__TR_LAST;
}

/* By cell within a block; places. next: of each of its cells the rank of the next particle. */
static void fsi__tr_settle_block(const fsi__tr_points *p, const fsi__tr_axes *axes, int b, int *next)
{
    const fsi_grid *g = p->grid;
    const fsi_vec3 *x = p->x;
    const float *mass = p->mass;
    const int *spare = p->spare, *key = p->key, base = b * g->block_cells, end = p->first[b + 1];
    const double per_dx = axes->per_dx;
    int *const order = p->order, corner[3], r, c, sum = p->first[b];
    float (*const place)[4] = p->place;
    double from[3]; /* the block's corner, in cells from 0 */
    memset(next, 0, (size_t)g->block_cells * sizeof *next);
    for (r = sum; r < end; r++) next[key[spare[r]] - base]++;
    for (c = 0; c < g->block_cells; c++) {
        const int count = next[c];
        next[c] = sum;
        sum += count;
    }

    /* Each to the next rank of its cell. */
    fsi_grid_corner(g, b, corner);
    for (c = 0; c < 3; c++) from[c] = corner[c];
    for (r = p->first[b]; r < end; r++) {
        const int i = spare[r], to = next[key[i] - base]++;
        if (r + FSI__TR_AHEAD < end) fsi__tr_ahead(&x[spare[r + FSI__TR_AHEAD]], sizeof *x);
        order[to] = i;
        place[to][0] = fsi__tr_in_block(((double)x[i].x - axes->origin[0]) * per_dx - from[0]);
        place[to][1] = fsi__tr_in_block(((double)x[i].y - axes->origin[1]) * per_dx - from[1]);
        place[to][2] = g->dim == 3 ? fsi__tr_in_block(((double)x[i].z - axes->origin[2]) * per_dx - from[2]) : 0;
        place[to][3] = mass ? mass[i] : 1;
    }
}

static void fsi__tr_settle(void *arg, int chunk, int begin, int end)
{
    const fsi__tr_points *p = (const fsi__tr_points *)arg;
    const fsi__tr_axes axes = fsi__tr_axes_of(p->grid);
    int next[512], b;
    (void)chunk;
    for (b = begin; b < end; b++)
        if (p->first[b] < p->first[b + 1]) fsi__tr_settle_block(p, &axes, b, next);
}

FSI_API void fsi__tr_sort(fsi__tr_points *p)
{
    const int blocks = p->grid->block_count, chunks = fsi__chunks(p->count, p->grain);
    int b, c, sum = 0;
    fsi__parallel_work(p->grid->context, p->count, p->grain, 8.0 * p->count, fsi__tr_count, p);
    for (b = 0; b < blocks; b++) {
        p->first[b] = sum;
        for (c = 0; c < chunks; c++) {
            int *t = &p->tally[(size_t)c * (size_t)blocks + (size_t)b];
            const int n = *t;
            *t = sum;
            sum += n;
        }
    }
    p->first[blocks] = sum;
    fsi__parallel_work(p->grid->context, p->count, p->grain, 4.0 * p->count, fsi__tr_deal, p);
    fsi__parallel_work(p->grid->context, blocks, 1, 10.0 * p->count, fsi__tr_settle, p);
}

/* ---- >>particles to grid ----------------------------------------------------------------------------------------

   A block's particles reach one layer of entries around it. Each block sums into a box of its own, of pairs (momentum,
   mass) for each component and of numbers for cells:

        -1 0 1 ... 7 8        entry (i, j, k) of the box at ((k + 1) 10 + j + 1) 10 + i + 1; in 2D one layer
       -1 . . . . . .
        0 . # # # # .         # entries of the block; the rim . belongs to its neighbours, which add it afterwards,
        7 . # # # # .         each from its 26 (8) neighbours in the order of their places
        8 . . . . . .                                                                                              */

#define FSI__TR_EDGE 10

FSI_FN int fsi__tr_layers(const fsi_grid *g) { return g->dim == 3 ? FSI__TR_EDGE : 1; }

FSI_API size_t fsi__tr_box_size(const fsi_grid *g)
{
    return (size_t)(FSI__TR_EDGE * FSI__TR_EDGE * fsi__tr_layers(g)) * (size_t)(2 * g->dim + 1);
}

/* A place along each axis, in a box whose first entry lies `rim` cells before the block: the entry before it, the
   fraction f beyond that and the rest 1 - f, among faces across the axis (0) and among centres (1). The last of each
   four means nothing. */
typedef struct fsi__tr_spot {
    int at[2][4];
    fsi__quad f[2], rest[2];
} fsi__tr_spot;

FSI_FN void fsi__tr_find(fsi__tr_spot *s, int k, fsi__quad x)
{
    s->f[k] = fsi__quad_sub(x, fsi__quad_whole(x, s->at[k]));
    s->rest[k] = fsi__quad_sub(fsi__quad_make(1, 1, 1, 1), s->f[k]);
}

FSI_FN fsi__tr_spot fsi__tr_spot_of(int dim, float rim, fsi__quad place)
{
    const float deep = dim == 3 ? rim : 0.5f;
    fsi__tr_spot s;
    fsi__tr_find(&s, 0, fsi__quad_add(place, fsi__quad_make(rim, rim, deep, 0)));
    fsi__tr_find(&s, 1, fsi__quad_add(place, fsi__quad_make(rim - 0.5f, rim - 0.5f, deep - 0.5f, 0)));
    return s;
}

/* Its lower corner among faces of an axis (3: cells), in a box of `edge` entries along an edge. */
FSI_FN int fsi__tr_corner(int dim, int edge, const fsi__tr_spot *s, int axis)
{
    const int x = axis != 0, y = axis != 1, z = axis != 2;
    return ((dim == 3 ? s->at[z][2] * edge : 0) + s->at[y][1]) * edge + s->at[x][0];
}

/* Weights of the corners there, four at once:

      along x  (x, x, x + 1, x + 1),    across it  (y, z), (y + 1, z), (y, z + 1), (y + 1, z + 1);    2D: z twice */
FSI_FN fsi__quad fsi__tr_along(const fsi__tr_spot *s, int axis)
{
    const fsi__quad f = s->f[axis != 0], g = s->rest[axis != 0];
    return fsi__quad_make(fsi__quad_get(g, 0), fsi__quad_get(g, 0), fsi__quad_get(f, 0), fsi__quad_get(f, 0));
}
FSI_FN fsi__quad fsi__tr_row(const fsi__tr_spot *s, int axis)
{
    const fsi__quad f = s->f[axis != 1], g = s->rest[axis != 1];
    return fsi__quad_make(fsi__quad_get(g, 1), fsi__quad_get(f, 1), fsi__quad_get(g, 1), fsi__quad_get(f, 1));
}
FSI_FN fsi__quad fsi__tr_across(int dim, const fsi__tr_spot *s, int axis)
{
    const fsi__quad f = s->f[axis != 2], g = s->rest[axis != 2];
    if (dim == 2) return fsi__tr_row(s, axis);
    return fsi__quad_mul(fsi__tr_row(s, axis),
        fsi__quad_make(fsi__quad_get(g, 2), fsi__quad_get(g, 2), fsi__quad_get(f, 2), fsi__quad_get(f, 2)));
}

/* Momentum m v (with c: of each corner) and mass m of one particle to the faces of one axis: pairs of two neighbours at
   once. */
FSI_FN void fsi__tr_give(int dim, float *box, const fsi__tr_spot *s, int axis, float m, float v, const float *c)
{
    const int row = 2 * FSI__TR_EDGE, layer = row * FSI__TR_EDGE;
    const fsi__quad along = fsi__tr_along(s, axis), w = fsi__tr_across(dim, s, axis);
    float *o = box + 2 * fsi__tr_corner(dim, FSI__TR_EDGE, s, axis);
    fsi__quad q, there, up;
    if (!c) {
        q = fsi__quad_mul(along, fsi__quad_make(v * m, m, v * m, m));
        fsi__quad_madd(o, q, fsi__quad_get(w, 0));
        fsi__quad_madd(o + row, q, fsi__quad_get(w, 1));
        if (dim == 2) return;
        fsi__quad_madd(o + layer, q, fsi__quad_get(w, 2));
        fsi__quad_madd(o + layer + row, q, fsi__quad_get(w, 3));
        return;
    }

    /* With a gradient each corner has a velocity of its own: `there` is (v, 1, v, 1) of a pair. */
    v -= c[0] * fsi__quad_get(s->f[axis != 0], 0) + c[1] * fsi__quad_get(s->f[axis != 1], 1)
        + c[2] * (dim == 3 ? fsi__quad_get(s->f[axis != 2], 2) : 0);
    q = fsi__quad_mul(along, fsi__quad_make(m, m, m, m));
    there = fsi__quad_make(v, 1, v + c[0], 1);
    up = fsi__quad_make(c[1], 0, c[1], 0);
    fsi__quad_madd(o, fsi__quad_mul(q, there), fsi__quad_get(w, 0));
    fsi__quad_madd(o + row, fsi__quad_mul(q, fsi__quad_add(there, up)), fsi__quad_get(w, 1));
    if (dim == 2) return;
    there = fsi__quad_add(there, fsi__quad_make(c[2], 0, c[2], 0));
    fsi__quad_madd(o + layer, fsi__quad_mul(q, there), fsi__quad_get(w, 2));
    fsi__quad_madd(o + layer + row, fsi__quad_mul(q, fsi__quad_add(there, up)), fsi__quad_get(w, 3));
}

/* Mass of one particle to the cells around it: each entry collects the four corners of its square,

      (x, y), (x, y + 1), (x + 1, y), (x + 1, y + 1)                                                            */
FSI_FN void fsi__tr_fill(int dim, float *squares, const fsi__tr_spot *s, float m)
{
    const fsi__quad q = fsi__quad_mul(fsi__quad_mul(fsi__tr_along(s, 3), fsi__tr_row(s, 3)),
        fsi__quad_make(m, m, m, m));
    float *o = squares + 4 * fsi__tr_corner(dim, FSI__TR_EDGE, s, 3);
    fsi__quad_madd(o, q, dim == 2 ? 1 : fsi__quad_get(s->rest[1], 2));
    if (dim == 3) fsi__quad_madd(o + 4 * FSI__TR_EDGE * FSI__TR_EDGE, q, fsi__quad_get(s->f[1], 2));
}

/* Corners to the entries that they belong to. */
FSI_FN void fsi__tr_fold(int layers, const float *squares, float *out)
{
    const int edge = FSI__TR_EDGE;
    int x, y, z;
    for (z = 0; z < layers; z++)
        for (y = 0; y < edge; y++)
            for (x = 0; x < edge; x++, squares += 4) {
                float sum = squares[0];
                if (y > 0) sum += squares[-4 * edge + 1];
                if (x > 0) sum += squares[-4 + 2];
                if (x > 0 && y > 0) sum += squares[-4 * edge - 4 + 3];
                *out++ = sum;
            }
}

typedef struct fsi__tr_job {
    const fsi__tr_points *p;
    const fsi__tr_motion *m;
    const fsi__tr_faces *faces;
    const fsi__tr_gain *gain;
    double per_cell, dt;
    const fsi_vec3 *e;
    fsi_vec3 *to;
    const fsi_field *cells;
    int count;
    float *out;
} fsi__tr_job;

/* A block's particles into its box; dim and affine are constants where it is called. What a loop reads is in locals:
   vectors of floats may alias anything. */
FSI__HOST_FN void fsi__tr_gather_block(const fsi__tr_job *job, int b, int dim, int affine)
{
    const size_t entries = (size_t)(FSI__TR_EDGE * FSI__TR_EDGE) * (dim == 3 ? (size_t)FSI__TR_EDGE : 1);
    const size_t size = fsi__tr_box_size(job->p->grid);
    const int *order = job->p->order, end = job->p->first[b + 1];
    float (*const place)[4] = job->p->place, (*const c)[9] = job->m->affine;
    const fsi_vec3 *velocity = job->m->v;
    const int filled = job->faces->fill != NULL;
    float *const box = job->faces->box + (size_t)b * size;
    float squares[4 * FSI__TR_EDGE * FSI__TR_EDGE * FSI__TR_EDGE];
    int r, a;
    if (job->p->first[b] == end) return;
    memset(box, 0, size * sizeof *box);
    if (filled) memset(squares, 0, 4 * entries * sizeof *squares);

    /* Each particle. */
    for (r = job->p->first[b]; r < end; r++) {
        const int i = order[r];
        const fsi__tr_spot spot = fsi__tr_spot_of(dim, 1, fsi__quad_at(place[r]));
        const float m = place[r][3];
        const int later = order[r + FSI__TR_AHEAD < end ? r + FSI__TR_AHEAD : r];
        const float v[3] = { (float)velocity[i].x, (float)velocity[i].y, (float)velocity[i].z };
        fsi__tr_ahead(&velocity[later], sizeof *velocity);
        if (affine) fsi__tr_ahead(c[later], sizeof *c);
        for (a = 0; a < dim; a++)
            fsi__tr_give(dim, box + 2 * (size_t)a * entries, &spot, a, m, v[a], affine ? &c[i][3 * a] : NULL);
        if (filled) fsi__tr_fill(dim, squares, &spot, m);
    }
    if (filled) fsi__tr_fold(dim == 3 ? FSI__TR_EDGE : 1, squares, box + 2 * (size_t)dim * entries);
}

static void fsi__tr_gather_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__tr_job *job = (const fsi__tr_job *)arg;
    const int flat = job->p->grid->dim == 2, affine = job->m->affine != NULL;
    int b;
    (void)chunk;
    for (b = begin; b < end; b++) {
        if (flat && affine) fsi__tr_gather_block(job, b, 2, 1);
        else if (flat) fsi__tr_gather_block(job, b, 2, 0);
        else if (affine) fsi__tr_gather_block(job, b, 3, 1);
        else fsi__tr_gather_block(job, b, 3, 0);
    }
}

/* The part of an axis of a neighbour's box, `step` blocks away, that lies in this block: entries from .. to - 1 of this
   block, and the box's index of the first. */
FSI_FN int fsi__tr_overlap(int step, int *from, int *to)
{
    *from = step > 0 ? 7 : 0;
    *to = step < 0 ? 1 : 8;
    return step < 0 ? 9 : (step > 0 ? 0 : 1);
}

/* Adds what the box of a block at step[] from here holds for this block: sum[entry * width + k]. */
FSI_FN void fsi__tr_collect(int dim, const float *box, int width, const int step[3], float *sum)
{
    int from[3] = { 0, 0, 0 }, to[3] = { 1, 1, 1 }, lo[3] = { 0, 0, 0 }, a, y, z, k;
    for (a = 0; a < dim; a++) lo[a] = fsi__tr_overlap(step[a], &from[a], &to[a]);
    for (z = from[2]; z < to[2]; z++)
        for (y = from[1]; y < to[1]; y++) {
            const float *in =
                box + (((z - from[2] + lo[2]) * FSI__TR_EDGE + y - from[1] + lo[1]) * FSI__TR_EDGE + lo[0]) * width;
            float *out = sum + ((z * 8 + y) * 8 + from[0]) * width;
            if (step[0] == 0) for (k = 0; k < 8 * width; k++) out[k] += in[k];
            else for (k = 0; k < width; k++) out[k] += in[k];
        }
}

/* Velocities of faces, and which are known, from pairs of momentum and mass. */
static void fsi__tr_divide(int cells, const float *sum, fsi_real *u, unsigned char *known)
{
    int c;
    for (c = 0; c < cells; c++) known[c] = sum[2 * c + 1] > 1e-6f;
    for (c = 0; c < cells; c++) {
        const int any = sum[2 * c + 1] > 1e-6f;
        const float p = any ? sum[2 * c] : 0, m = any ? sum[2 * c + 1] : 1;
        u[c] = (fsi_real)p / (fsi_real)m;
    }
}

/* A block that no particle is near. */
static void fsi__tr_clear_block(const fsi__tr_faces *faces, int dim, size_t first, size_t cells)
{
    int a;
    for (a = 0; a < dim; a++) {
        memset(faces->u[a]->value + first, 0, cells * sizeof(fsi_real));
        memset(faces->known[a] + first, 0, cells);
        if (faces->mass[0]) memset(faces->mass[a]->value + first, 0, cells * sizeof(fsi_real));
    }
    if (faces->fill) memset(faces->fill->value + first, 0, cells * sizeof(fsi_real));
}

/* Velocities, and what is known of them, from the boxes of the block and its neighbours. */
static void fsi__tr_merge_block(const fsi__tr_job *job, int b)
{
    const fsi__tr_faces *faces = job->faces;
    const fsi_grid *g = job->p->grid;
    const int dim = g->dim, cells = g->block_cells, deep = dim == 3 ? 1 : 0;
    const size_t entries = (size_t)(FSI__TR_EDGE * FSI__TR_EDGE * fsi__tr_layers(g)), size = fsi__tr_box_size(g);
    const size_t first = (size_t)b * (size_t)cells;
    float sum[4][2 * 512];
    int step[3], any = 0, a, c;

    /* Sums, in the order of the neighbours' places. */
    for (step[2] = -deep; step[2] <= deep; step[2]++)
        for (step[1] = -1; step[1] <= 1; step[1]++)
            for (step[0] = -1; step[0] <= 1; step[0]++) {
                const int beside = step[0] || step[1] || step[2] ? fsi__block_beside(g, b, step) : b;
                const float *box;
                if (beside < 0 || job->p->first[beside] == job->p->first[beside + 1]) continue;
                for (a = 0; a <= dim && !any; a++) memset(sum[a], 0, 2 * (size_t)cells * sizeof sum[a][0]);
                any = 1;
                box = faces->box + (size_t)beside * size;
                for (a = 0; a < dim; a++) fsi__tr_collect(dim, box + 2 * (size_t)a * entries, 2, step, sum[a]);
                if (faces->fill) fsi__tr_collect(dim, box + 2 * (size_t)dim * entries, 1, step, sum[dim]);
            }
    if (!any) {
        fsi__tr_clear_block(faces, dim, first, (size_t)cells);
        return;
    }

    /* Means. */
    for (a = 0; a < dim; a++)
        fsi__tr_divide(cells, sum[a], faces->u[a]->value + first, faces->known[a] + first);
    for (a = 0; a < dim && faces->mass[0]; a++)
        for (c = 0; c < cells; c++) faces->mass[a]->value[first + (size_t)c] = (fsi_real)sum[a][2 * c + 1];
    for (c = 0; c < cells && faces->fill; c++)
        faces->fill->value[first + (size_t)c] = (fsi_real)((double)sum[dim][c] / job->per_cell);
}

static void fsi__tr_merge_blocks(void *arg, int chunk, int begin, int end)
{
    int b;
    (void)chunk;
    for (b = begin; b < end; b++) fsi__tr_merge_block((const fsi__tr_job *)arg, b);
}

FSI_API void fsi__tr_to_grid(const fsi__tr_points *p, const fsi__tr_motion *m, double per_cell,
    const fsi__tr_faces *faces)
{
    const int blocks = p->grid->block_count;
    fsi__tr_job job;
    memset(&job, 0, sizeof job);
    job.p = p;
    job.m = m;
    job.faces = faces;
    job.per_cell = per_cell;
    fsi__parallel_work(p->grid->context, blocks, 1, 10.0 * p->count, fsi__tr_gather_blocks, &job);
    fsi__parallel_work(p->grid->context, blocks, 1, 2.0 * blocks * p->grid->block_cells, fsi__tr_merge_blocks, &job);
}

/* ---- >>grid to particles ---------------------------------------------------------------------------------------- */

#define FSI__TR_WIDE (8 + 2 * FSI__TR_RIM)
#define FSI__TR_ROOM (FSI__TR_WIDE * FSI__TR_WIDE * FSI__TR_WIDE)

/* Where the entries of a block and its rim lie: along each axis the block's place in the grid and the entry in it.
   Beyond the box of the grid it is the nearest entry of the field inside. */
typedef struct fsi__tr_reach {
    int block[3][FSI__TR_WIDE], entry[3][FSI__TR_WIDE];
} fsi__tr_reach;

static void fsi__tr_find_reach(const fsi_field *field, int b, fsi__tr_reach *reach)
{
    const fsi_grid *g = field->grid;
    int corner[3], a, k;
    fsi_grid_corner(g, b, corner);
    for (a = 0; a < 3; a++) {
        const int most = a < g->dim ? fsi_grid_size(g, field->place, a) - 1 : 0;
        for (k = 0; k < FSI__TR_WIDE; k++) {
            const int at = fsi__clamp_int(corner[a] + k - FSI__TR_RIM, most);
            reach->block[a][k] = at >> 3;
            reach->entry[a][k] = at & 7;
        }
    }
}

/* Entries x to end - 1 of a row, in the blocks of `line`, times `scale`: they are added to what is there, or replace
   it. */
FSI_FN void fsi__tr_read_entries(const fsi_field *field, const fsi__tr_reach *reach, const int *line, int offset, int x,
    int end, fsi_real scale, int add, float *row)
{
    const size_t cells = (size_t)field->grid->block_cells;
    for (; x < end; x++) {
        const int b = line[reach->block[0][x]];
        const fsi_real v = b < 0 ? field->background : field->value[(size_t)b * cells
            + (size_t)(offset + reach->entry[0][x])];
        row[x] = add ? row[x] + (float)(scale * v) : (float)(scale * v);
    }
}

/* A layer of rows. The eight entries of the block's own column lie side by side. */
FSI_FN void fsi__tr_read_layer(const fsi_field *field, const fsi__tr_reach *reach, int z, fsi_real scale, int add,
    float rows[][FSI__TR_WIDE])
{
    const fsi_grid *g = field->grid;
    const int middle = FSI__TR_RIM + 8, whole = reach->entry[0][middle - 1] == 7;
    int x, y;
    for (y = 0; y < FSI__TR_WIDE; y++) {
        const int *line = g->index + ((size_t)reach->block[2][z] * (size_t)g->blocks[1] + (size_t)reach->block[1][y])
            * (size_t)g->blocks[0];
        const int offset = (reach->entry[2][z] * 8 + reach->entry[1][y]) * 8, b = line[reach->block[0][FSI__TR_RIM]];
        float *row = rows[y];
        fsi__tr_read_entries(field, reach, line, offset, 0, FSI__TR_RIM, scale, add, row);
        if (whole && b >= 0) {
            const fsi_real *v = field->value + (size_t)b * (size_t)g->block_cells + offset;
            for (x = 0; x < 8; x++)
                row[FSI__TR_RIM + x] = add ? row[FSI__TR_RIM + x] + (float)(scale * v[x]) : (float)(scale * v[x]);
        } else fsi__tr_read_entries(field, reach, line, offset, FSI__TR_RIM, middle, scale, add, row);
        fsi__tr_read_entries(field, reach, line, offset, middle, FSI__TR_WIDE, scale, add, row);
    }
}

/* A block is read with its rim, every entry with the one above it along y, so that four numbers side by side are the
   corners of a square:

      to[2 e], to[2 e + 1], to[2 e + 2], to[2 e + 3]  =  (x, y), (x, y + 1), (x + 1, y), (x + 1, y + 1)

   They are weight first + (1 - weight) second; second NULL: first. */
static void fsi__tr_read(const fsi_field *first, const fsi_field *second, double weight, int b, float *to)
{
    const int layers = first->grid->dim == 3 ? FSI__TR_WIDE : 1;
    float rows[FSI__TR_WIDE + 1][FSI__TR_WIDE];
    fsi__tr_reach reach;
    int x, y, z;
    fsi__tr_find_reach(first, b, &reach);
    memset(rows[FSI__TR_WIDE], 0, sizeof rows[FSI__TR_WIDE]);
    for (z = 0; z < layers; z++) {
        fsi__tr_read_layer(first, &reach, z, second ? (fsi_real)weight : 1, 0, rows);
        if (second) fsi__tr_read_layer(second, &reach, z, (fsi_real)(1 - weight), 1, rows);
        for (y = 0; y < FSI__TR_WIDE; y++, to += 2 * FSI__TR_WIDE)
            for (x = 0; x < FSI__TR_WIDE; x++) {
                to[2 * x] = rows[y][x];
                to[2 * x + 1] = rows[y + 1][x];
            }
    }
}

/* The two squares above each other around a place become one. */
FSI_FN fsi__quad fsi__tr_square(int dim, const float *at, const fsi__tr_spot *s, int axis)
{
    const fsi__quad lower = fsi__quad_at(at);
    if (dim == 2) return lower;
    return fsi__quad_mix(lower, fsi__quad_at(at + 2 * FSI__TR_WIDE * FSI__TR_WIDE), fsi__quad_get(s->f[axis != 2], 2));
}

/* The sums of four numbers each. */
FSI_FN fsi__quad fsi__tr_sums(fsi__quad a, fsi__quad b, fsi__quad c, fsi__quad d)
{
    const fsi__quad ab = fsi__quad_add(
        fsi__quad_make(fsi__quad_get(a, 0), fsi__quad_get(b, 0), fsi__quad_get(a, 1), fsi__quad_get(b, 1)),
        fsi__quad_make(fsi__quad_get(a, 2), fsi__quad_get(b, 2), fsi__quad_get(a, 3), fsi__quad_get(b, 3)));
    const fsi__quad cd = fsi__quad_add(
        fsi__quad_make(fsi__quad_get(c, 0), fsi__quad_get(d, 0), fsi__quad_get(c, 1), fsi__quad_get(d, 1)),
        fsi__quad_make(fsi__quad_get(c, 2), fsi__quad_get(d, 2), fsi__quad_get(c, 3), fsi__quad_get(d, 3)));
    return fsi__quad_add(
        fsi__quad_make(fsi__quad_get(ab, 0), fsi__quad_get(ab, 1), fsi__quad_get(cd, 0), fsi__quad_get(cd, 1)),
        fsi__quad_make(fsi__quad_get(ab, 2), fsi__quad_get(ab, 3), fsi__quad_get(cd, 2), fsi__quad_get(cd, 3)));
}

/* The corners of its square times their weights: their sum is the value of the field. */
FSI_FN fsi__quad fsi__tr_weighed(int dim, const float *squares, const fsi__tr_spot *s, int axis)
{
    const float *at = squares + 2 * fsi__tr_corner(dim, FSI__TR_WIDE, s, axis);
    return fsi__quad_mul(fsi__tr_square(dim, at, s, axis), fsi__quad_mul(fsi__tr_along(s, axis), fsi__tr_row(s, axis)));
}

/* The value and its gradient times dx: d/dx, d/dy, d/dz. */
FSI_FN fsi__quad fsi__tr_slope(int dim, const float *squares, const fsi__tr_spot *s, int axis)
{
    const float *at = squares + 2 * fsi__tr_corner(dim, FSI__TR_WIDE, s, axis);
    const fsi__quad along = fsi__tr_along(s, axis), row = fsi__tr_row(s, axis), w = fsi__quad_mul(along, row);
    const fsi__quad q = fsi__tr_square(dim, at, s, axis);
    fsi__quad z = fsi__quad_make(0, 0, 0, 0);
    if (dim == 3)
        z = fsi__quad_mul(fsi__quad_sub(fsi__quad_at(at + 2 * FSI__TR_WIDE * FSI__TR_WIDE), fsi__quad_at(at)), w);
    return fsi__tr_sums(fsi__quad_mul(q, w), fsi__quad_mul(fsi__quad_mul(q, row), fsi__quad_make(-1, -1, 1, 1)),
        fsi__quad_mul(fsi__quad_mul(q, along), fsi__quad_make(-1, 1, -1, 1)), z);
}

/* Velocities on faces at a place. */
FSI_FN fsi__quad fsi__tr_velocity(int dim, float squares[][2 * FSI__TR_ROOM], fsi__quad place)
{
    const fsi__tr_spot spot = fsi__tr_spot_of(dim, FSI__TR_RIM, place);
    const fsi__quad none = fsi__quad_make(0, 0, 0, 0);
    return fsi__tr_sums(fsi__tr_weighed(dim, squares[0], &spot, 0), fsi__tr_weighed(dim, squares[1], &spot, 1),
        dim == 3 ? fsi__tr_weighed(dim, squares[2], &spot, 2) : none, none);
}

FSI__HOST_FN void fsi__tr_gain_block(const fsi__tr_job *job, int b, int dim, int affine)
{
    const fsi_real keep = (fsi_real)(1 - job->gain->pic);
    const int *order = job->p->order, end = job->p->first[b + 1];
    float (*const place)[4] = job->p->place, (*const c)[9] = job->m->affine;
    fsi_vec3 *velocity = job->m->v;
    float squares[3][2 * FSI__TR_ROOM];
    int r, a, k;
    for (a = 0; a < dim; a++)
        fsi__tr_read(job->gain->u[a], affine ? NULL : job->gain->change[a], job->gain->pic, b, squares[a]);

    /* Each particle. */
    for (r = job->p->first[b]; r < end; r++) {
        const int i = order[r];
        const fsi__quad at = fsi__quad_at(place[r]);
        const int later = order[r + FSI__TR_AHEAD < end ? r + FSI__TR_AHEAD : r];
        fsi__tr_ahead(&velocity[later], sizeof *velocity);
        if (affine) fsi__tr_ahead(c[later], sizeof *c);
        if (affine) {
            const fsi__tr_spot spot = fsi__tr_spot_of(dim, FSI__TR_RIM, at);
            fsi_real now[3] = { 0, 0, velocity[i].z };
            for (a = 0; a < dim; a++) {
                const fsi__quad q = fsi__tr_slope(dim, squares[a], &spot, a);
                now[a] = (fsi_real)fsi__quad_get(q, 0);
                for (k = 0; k < 3; k++) c[i][3 * a + k] = (float)keep * fsi__quad_get(q, k + 1);
            }
            velocity[i] = fsi_v3(now[0], now[1], now[2]);
        } else {
            const fsi__quad u = fsi__tr_velocity(dim, squares, at);
            const fsi_vec3 v = velocity[i];
            velocity[i] = fsi_v3(keep * v.x + (fsi_real)fsi__quad_get(u, 0), keep * v.y + (fsi_real)fsi__quad_get(u, 1),
                dim == 3 ? keep * v.z + (fsi_real)fsi__quad_get(u, 2) : v.z);
        }
    }
}

static void fsi__tr_gain_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__tr_job *job = (const fsi__tr_job *)arg;
    const int flat = job->p->grid->dim == 2, affine = job->m->affine != NULL;
    int b;
    (void)chunk;
    for (b = begin; b < end; b++) {
        if (job->p->first[b] == job->p->first[b + 1]) continue;
        if (flat && affine) fsi__tr_gain_block(job, b, 2, 1);
        else if (flat) fsi__tr_gain_block(job, b, 2, 0);
        else if (affine) fsi__tr_gain_block(job, b, 3, 1);
        else fsi__tr_gain_block(job, b, 3, 0);
    }
}

FSI_API void fsi__tr_to_particles(const fsi__tr_points *p, const fsi__tr_gain *gain, const fsi__tr_motion *m)
{
    fsi__tr_job job;
    memset(&job, 0, sizeof job);
    job.p = p;
    job.m = m;
    job.gain = gain;
    fsi__parallel_work(p->grid->context, p->grid->block_count, 1, 8.0 * p->count, fsi__tr_gain_blocks, &job);
}

static void fsi__tr_sample_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__tr_job *job = (const fsi__tr_job *)arg;
    const fsi__tr_points *p = job->p;
    const int dim = p->grid->dim;
    float squares[2 * FSI__TR_ROOM];
    int b, r;
    (void)chunk;
    for (b = begin; b < end; b++) {
        if (p->first[b] == p->first[b + 1]) continue;
        fsi__tr_read(job->cells, NULL, 1, b, squares);
        for (r = p->first[b]; r < p->first[b + 1]; r++) {
            const fsi__tr_spot spot = fsi__tr_spot_of(dim, FSI__TR_RIM, fsi__quad_at(p->place[r]));
            const fsi__quad q = fsi__tr_weighed(dim, squares, &spot, 3);
            if (p->order[r] < job->count) job->out[p->order[r]] = (fsi__quad_get(q, 0) + fsi__quad_get(q, 1))
                + (fsi__quad_get(q, 2) + fsi__quad_get(q, 3));
        }
    }
}

FSI_API void fsi__tr_sample_cells(const fsi__tr_points *p, const fsi_field *field, int count, float *out)
{
    fsi__tr_job job;
    memset(&job, 0, sizeof job);
    job.p = p;
    job.cells = field;
    job.count = count;
    job.out = out;
    fsi__parallel_work(p->grid->context, p->grid->block_count, 1, 5.0 * p->count, fsi__tr_sample_blocks, &job);
}

/* ---- >>motion ---------------------------------------------------------------------------------------------------

   The midpoint rule. The block that a particle starts from is read with two cells around it, so the midpoint may lie up
   to one cell beyond the block. */

/* Held between -1 and 8.999. */
FSI_FN float fsi__tr_within(float x)
{
    x = x < 8.999f ? x : 8.999f;
    return x > -1 ? x : -1;
}

FSI__HOST_FN void fsi__tr_move_block(const fsi__tr_job *job, int b, int dim)
{
    const fsi__tr_points *p = job->p;
    const float half = (float)(0.5 * job->dt / (double)p->grid->dx);
    const fsi_real dt = (fsi_real)job->dt;
    const int *order = p->order, end = p->first[b + 1];
    float (*const place)[4] = p->place;
    const fsi_vec3 *from = p->x, *further = job->e;
    fsi_vec3 *to = job->to;
    float squares[3][2 * FSI__TR_ROOM];
    int r, a;
    for (a = 0; a < dim; a++) fsi__tr_read(job->gain->u[a], NULL, 1, b, squares[a]);
    for (r = p->first[b]; r < end; r++) {
        const int i = order[r];
        const fsi_vec3 e = further ? further[i] : fsi_v3(0, 0, 0);
        const fsi__quad at = fsi__quad_at(place[r]);
        const int later = order[r + FSI__TR_AHEAD < end ? r + FSI__TR_AHEAD : r];
        fsi__quad u = fsi__tr_velocity(dim, squares, at), middle;
        fsi__tr_ahead(&from[later], sizeof *from);
        fsi__tr_ahead(&to[later], sizeof *to);
        u = fsi__quad_add(u, fsi__quad_make((float)e.x, (float)e.y, (float)e.z, 0));
        middle = fsi__quad_add(at, fsi__quad_mul(u, fsi__quad_make(half, half, half, 0)));
        middle = fsi__quad_make(fsi__tr_within(fsi__quad_get(middle, 0)), fsi__tr_within(fsi__quad_get(middle, 1)),
            fsi__tr_within(fsi__quad_get(middle, 2)), 0);
        u = fsi__tr_velocity(dim, squares, middle);
        to[i] = fsi_v3_madd(from[i], dt, fsi_v3((fsi_real)fsi__quad_get(u, 0) + e.x,
            (fsi_real)fsi__quad_get(u, 1) + e.y, dim == 3 ? (fsi_real)fsi__quad_get(u, 2) + e.z : 0));
    }
}

static void fsi__tr_move_blocks(void *arg, int chunk, int begin, int end)
{
    const fsi__tr_job *job = (const fsi__tr_job *)arg;
    int b;
    (void)chunk;
    for (b = begin; b < end; b++) {
        if (job->p->first[b] == job->p->first[b + 1]) continue;
        if (job->p->grid->dim == 2) fsi__tr_move_block(job, b, 2);
        else fsi__tr_move_block(job, b, 3);
    }
}

FSI_API void fsi__tr_move(const fsi__tr_points *p, fsi_field *const *u, double dt, const fsi_vec3 *e, fsi_vec3 *to)
{
    fsi__tr_gain gain;
    fsi__tr_job job;
    memset(&job, 0, sizeof job);
    memset(&gain, 0, sizeof gain);
    gain.u = u;
    job.p = p;
    job.gain = &gain;
    job.dt = dt;
    job.e = e;
    job.to = to;
    fsi__parallel_work(p->grid->context, p->grid->block_count, 1, 15.0 * p->count, fsi__tr_move_blocks, &job);
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
