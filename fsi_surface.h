/* fsi_surface.h - a watertight surface around particles, for drawing and measuring.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_surface.h"
         #include "fsi_surface.h"

   A SURFACE AROUND A BOX OF PARTICLES
      fsi_vec3 x[1000];
      fsi_box3 box;
      fsi_surface_desc d = fsi_surface_default_desc();
      fsi_surface *surface;
      int count;
      box.lo = fsi_v3(0, 0, 0);
      box.hi = fsi_v3(1, 1, 1);
      d.spacing = 0.1f;
      if (fsi_sample_box(NULL, box, d.spacing, 3, x, 1000, &count) != FSI_OK) return 1;
      if (fsi_surface_create(&surface, &d) != FSI_OK) return 1;
      if (fsi_surface_update(surface, x, count, NULL) != FSI_OK) return 1;
      printf("%d triangles\n", surface->element_count);
      fsi_surface_destroy(surface);

   WHAT IS IN HERE (search for >>)
      >>surfaces       the desc, the mesh that comes out
      >>stages         one table of cases, shared with fsi_phi.h
   MACROS: those of fsi.h.
   UNITS: SI.
*/
#ifndef FSI_SURFACE_H
#define FSI_SURFACE_H

#include "fsi_particles.h"

/* ---- >>surfaces ------------------------------------------------------------------------------------------------- */

/* A closed surface around particles, for rendering and measuring. The level set is that of Zhu and Bridson (2005):
   phi(x) = |x - mean| - r g,  mean = sum w_j x_j / sum w_j,  w_j = (1 - |x - x_j|^2/support^2)^3 within `support`.
   r is such that the surface of a full half-space of particles lies spacing/2 beyond the last layer, where its volume
   asks it to be. g = min(1, c sum w_j^3 - 1) is 1 where there is liquid and negative where no particle is near, so that
   drops do not reach for each other, and c is such that a single particle becomes a small ball of its volume.
   Cells are visited in blocks near the surface only: neither the depth of the liquid nor a far outlier costs anything.
   Drops of one particle join at 2.6 spacings; sheets and threads one particle thick stay whole. Of a ball with a
   radius of 10 spacings the surface lies up to 0.09 spacings too deep, and 0.03 too high where it is flat. */
typedef struct fsi_surface_desc {
    uint32_t cookie;
    fsi_context *context;  /* default NULL: malloc, silence */
    int dim;               /* 3 (default): triangles; 2: segments, z is ignored and comes out 0 */
    fsi_real spacing;      /* of the particles when at rest: a particle stands for spacing^dim of liquid; > 0, no
                              default [m] */
    fsi_real support;      /* kernel radius in units of spacing, 1.5 to 6; default 3; larger is smoother, smaller keeps
                              detail */
    fsi_real cell;         /* cell size in units of spacing; default 0.5; rounded so that 2 to 8 cells make one
                              support */
    int attribute_count;   /* numbers a particle that are carried to the vertices (colour, age ...); default 0 */
} fsi_surface_desc;

/* The result of the last update; arrays stay valid until the next one. Every edge of `elements` belongs to exactly two
   triangles (2D: every vertex to two segments). */
typedef struct fsi_surface {
    uint32_t cookie;
    fsi_context *context;
    int dim;
    int corners;                 /* of an element: 3 or 2 */
    int vertex_count, element_count;
    const fsi_vec3 *vertices;    /* vertex_count [m] */
    const fsi_vec3 *normals;     /* vertex_count, unit, out of the liquid */
    const int *elements;         /* corners * element_count indices; triangles counter-clockwise seen from outside,
                                    segments with the outside on their left (as fsi_mesh_desc wants them) */
    const fsi_real *attributes;  /* vertex_count * attribute_count: means over the particles around, weights w_j */
    int block_count;             /* blocks of support^dim that were evaluated: what an update costs */
    void *impl;
} fsi_surface;

/* Fills every field; set spacing (positions go to fsi_surface_update). */
FSI_API fsi_surface_desc fsi_surface_default_desc(void);
/* An empty surface. Errors: COOKIE, NAN or ARGUMENT (naming the field), MEMORY; then *out is NULL. */
FSI_API fsi_status fsi_surface_create(fsi_surface **out, const fsi_surface_desc *desc);
FSI_API void fsi_surface_destroy(fsi_surface *surface); /* NULL is fine */
/* Builds the surface of `count` particles at x; attributes: count * attribute_count numbers, NULL when there are none.
   No particle, empty surface. Memory is kept from update to update. Same input, same bits for any number of threads.
   Errors: COOKIE, ARGUMENT, NAN (naming the particle), LIMIT (a coordinate beyond 2^30 supports; more than 2^31 - 1
   indices), MEMORY; the former surface then stays as it was. */
FSI_API fsi_status fsi_surface_update(fsi_surface *surface, const fsi_vec3 *x, int count, const fsi_real *attributes);

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

FSI_API int fsi__sf_edge_low(int edge); /* its lower corner */
/* Row `inside` (bits: corners that are inside) of a table of cases: number of edges, then the edges, those of each
   element in turn. */
FSI_API void fsi__sf_make_case(unsigned char cases[][16], int dim, int inside);

#endif /* FSI_SURFACE_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_SURFACE_IMPLEMENTATION
#define FSI_SURFACE_IMPLEMENTATION
#endif
#ifdef FSI_SURFACE_IMPLEMENTATION
#ifndef FSI_SURFACE_IMPLEMENTATION_DONE
#define FSI_SURFACE_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_particles.h"

FSI__STRICT_BEGIN

/* ---- >>surfaces implementation ---------------------------------------------------------------------------------- */

/* Space is cut in blocks as wide as the support, each of n x n x n cells (n = 2 ... 8; 2D: n x n). A block owns the
   nodes and edges at the lower end of its cells. Blocks live in a hash table; those with particles come first, those
   that the surface can enter follow.

       . . . . . . .          o  block without particles: all its nodes are outside
       o e e e e e o          e  active, empty: some particle lies within FSI__SF_TOUCH of it
       o e a a a e o          a  active, with particles
       o e a d a e o          d  deep: it, and half a block around it, has a particle in every octant; all nodes inside
       o e a a a e o
       o e e e e e o          o and d are never neighbours, so the surface can only pass through active blocks. Even if
                              the level set disagreed there, the surface would be cut flat, and closed.

   Each cell joins the crossing points on its edges to polygons by a table made from one rule for its faces (below). The
   rule sees the face only, so the two cells at a face agree, and the surface is closed by construction. Lengths are in
   units of the support and, inside a block, relative to it: float loses nothing there. */

#define FSI__SF_MAX 8          /* cells along a block, at most */
#define FSI__SF_TOUCH ((fsi__lane)0.3)     /* how far from a particle the surface can be */
#define FSI__SF_GRAIN 8        /* blocks a chunk */
#define FSI__SF_ROWS (FSI__SF_MAX * FSI__SF_MAX)
#define FSI__SF_APRON ((FSI__SF_MAX + 1) * (FSI__SF_MAX + 1) * (FSI__SF_MAX + 1))
enum { FSI__SF_INSIDE = -1, FSI__SF_OUTSIDE = -2 }; /* value of all nodes of a block without a slot */

typedef struct fsi__sf_block {
    int at[3];              /* spans at .. at + 1 supports */
    int begin, end;         /* its particles, in block order */
    uint32_t touched;       /* bit a neighbour (27): a particle of this block lies close to it */
    unsigned char octants;  /* bit an octant: holds a particle */
    unsigned char active;
    int slot;               /* where its node values are; FSI__SF_INSIDE or _OUTSIDE for none */
} fsi__sf_block;

/* A block with node values: an active one, or the lower neighbour of one (which owns edges that reach into it). */
typedef struct fsi__sf_slot {
    int block;
    int up[8];              /* slot of the neighbour at (bit 0, bit 1, bit 2) towards +x, +y, +z; [0] is its own */
    int signs;              /* bit 0: some node inside, bit 1: some node outside */
    int vertices, elements; /* how many it owns, then where its own begin */
    int map;                /* where its edges' vertex numbers begin; -1 when it has none */
} fsi__sf_slot;

enum { FSI__SF_VERTICES, FSI__SF_ELEMENTS, FSI__SF_BLOCKS, FSI__SF_HASH, FSI__SF_PARTICLES, FSI__SF_SLOTS,
    FSI__SF_EDGES,
       FSI__SF_TABLES };
typedef struct fsi__sf_impl fsi__sf_impl;
typedef void fsi__sf_pass(fsi__sf_impl *s, fsi__sf_slot *slot);
struct fsi__sf_impl {
    fsi_surface_desc desc;
    int n, nz;                       /* cells along a block; 1 along z in 2D */
    double support;                  /* [m] */
    double offset;                   /* of the blocks against the origin, in supports */
    fsi__lane radius, growth;            /* r in supports; slope of g */
    unsigned char cases[256][16];    /* number of edges, then the edges, `corners` an element; by corners inside */
    unsigned char needed[27];        /* octants of a neighbour that must hold particles around a deep block */
    int rows[FSI__SF_TABLES];        /* room in the arrays below, see fsi__sf_table */
    fsi__sf_block *blocks;
    int *hash;                       /* 4 a row; block + 1, 0 free */
    int block_count;
    int *home, *source;              /* a particle's block; block order -> the caller's index */
    fsi__lane *px, *py, *pz;             /* in block order, FSI_LANES more than there are */
    fsi__sf_slot *slots;
    fsi__lane *values;                   /* n * n * nz a slot */
    int *map;
    int slot_count;
    const fsi_real *attributes;      /* the caller's, during an update */
    fsi__sf_pass *pass;              /* called by fsi__sf_run for each slot */
    fsi_vec3 *vertices, *normals;
    fsi_real *vertex_attributes;
    int *elements;
};

/* ---- the case table ---- */

/* Edge number of the corners c and d (bits x, y, z), which differ in one bit: 4 * axis + the two other bits. */
static int fsi__sf_edge(int c, int d)
{
    int axis = (c ^ d) >> 1, low = c & d;
    return 4 * axis + (low >> (axis + 1) % 3 & 1) + 2 * (low >> (axis + 2) % 3 & 1);
}
FSI_API int fsi__sf_edge_low(int edge)
{
    int axis = edge >> 2;
    return (edge & 1) << (axis + 1) % 3 | (edge >> 1 & 1) << (axis + 2) % 3;
}

/* The rule: on a face whose corners q run counter-clockwise seen from outside the cell, each run of corners inside is
   cut off by one segment, from the edge where the run begins to the edge where it ends. */
static void fsi__sf_face_segments(const int q[4], int inside, int next[12])
{
    int k, j;
    for (k = 0; k < 4; k++) {
        if (inside >> q[k] & 1 || !(inside >> q[(k + 1) & 3] & 1)) continue;
        for (j = k + 1; inside >> q[(j + 1) & 3] & 1; j++) {}
        next[fsi__sf_edge(q[k], q[(k + 1) & 3])] = fsi__sf_edge(q[j & 3], q[(j + 1) & 3]);
    }
}

static int fsi__sf_share_face(int e, int f) /* do two edges of the cell lie in one face? */
{
    int a = fsi__sf_edge_low(e), b = a | 1 << (e >> 2), c = fsi__sf_edge_low(f), d = c | 1 << (f >> 2);
    return ((a & b & c & d) | (~(a | b | c | d) & 7)) != 0;
}

/* Follows the segments of one loop and cuts the polygon into a fan. The apex is such that no diagonal lies in a face:
   there the neighbouring cell could have the same one, and four triangles would meet (an apex exists in all cases). */
static int fsi__sf_add_polygon(int *next, int start, unsigned char *out)
{
    int loop[12], n = 0, apex = 0, k, e = start, used = 0;
    do {
        loop[n++] = e;
        k = next[e];
        next[e] = -1;
        e = k;
    } while (e != start);
    for (k = 2; k < n - 1; k++)
        if (fsi__sf_share_face(loop[apex], loop[(apex + k) % n])) {
            apex++;
            k = 1;
        }
    for (k = 1; k < n - 1; k++) {
        out[used++] = (unsigned char)loop[apex];
        out[used++] = (unsigned char)loop[(apex + k) % n];
        out[used++] = (unsigned char)loop[(apex + k + 1) % n];
    }
    return used;
}

FSI_API void fsi__sf_make_case(unsigned char cases[][16], int dim, int inside)
{
    int next[12], axis, side, k, used = 0;
    for (k = 0; k < 12; k++) next[k] = -1;
    for (axis = 0; axis < 3; axis++)
        for (side = 0; side < 2; side++) {
            int u = 1 << (axis + 1) % 3, v = 1 << (axis + 2) % 3, base = side << axis, q[4];
            q[0] = base;
            q[1] = base | (side ? u : v);
            q[2] = base | u | v;
            q[3] = base | (side ? v : u);
            if (dim == 3 || (axis == 2 && side == 0)) fsi__sf_face_segments(q, inside, next);
        }
    for (k = 0; k < 12; k++) {
        if (next[k] < 0) continue;
        if (dim == 3) used += fsi__sf_add_polygon(next, k, cases[inside] + 1 + used);
        else {
            cases[inside][1 + used++] = (unsigned char)next[k];
            cases[inside][1 + used++] = (unsigned char)k;
        }
    }
    cases[inside][0] = (unsigned char)used;
}

/* ---- making and destroying ---- */

FSI_API fsi_surface_desc fsi_surface_default_desc(void)
{
    fsi_surface_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('S', fsi_surface_desc);
    d.dim = 3;
    d.support = 3;
    d.cell = (fsi_real)0.5;
    return d;
}

static fsi_status fsi__sf_check_desc(const fsi_surface_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_surface_desc, dim, FSI__INT, 2, 3, 0),
        FSI__FIELD(fsi_surface_desc, spacing, FSI__REAL, 0, FSI__HUGE, FSI__ABOVE),
        FSI__FIELD(fsi_surface_desc, support, FSI__REAL, 1.5, 6, 0),
        FSI__FIELD(fsi_surface_desc, cell, FSI__REAL, 0, FSI__HUGE, FSI__ABOVE),
        FSI__FIELD(fsi_surface_desc, attribute_count, FSI__INT, 0, 1024, 0)
    };
    static const fsi__where at = { "fsi_surface_create", "desc.", -1, 3 };
    return FSI__CHECK_TABLE(d->context, &at, d, rows);
}

/* What depends on the desc alone: cells, r, and the two tables. */
static void fsi__sf_setup(fsi__sf_impl *s)
{
    double cells = (double)s->desc.support / (double)s->desc.cell, h, r, b;
    int d, o;

    /* Cells and support. */
    s->n = cells < 2 ? 2 : (cells > FSI__SF_MAX ? FSI__SF_MAX : (int)(cells + 0.5));
    s->nz = s->desc.dim == 3 ? s->n : 1;
    s->support = (double)s->desc.support * (double)s->desc.spacing;
    s->offset = 0.3 / s->n; /* liquid filled on a lattice would have its surface just at nodes, with needless slivers */
    /* r: distance of the centroid of half a kernel from its flat side, (1/10)/(128/315), in 2D (1/9)/(35 pi/256); a sum
       over layers at 1/2, 3/2 ... spacings exceeds it by k h^2, k = 1/(12 integral) (Euler-Maclaurin); 0.018 h lifts
       the surface by 0.03 spacings, half of the error by curvature of a ball of radius ten. */
    h = 1 / (double)s->desc.support;
    r = (s->desc.dim == 3 ? 0.24609375 + 0.10254 * h * h : 0.25869 + 0.09701 * h * h) + 0.018 * h;
    /* growth: a lone particle becomes a ball (disc) of radius b, where r g = b: 0.62 (0.56) spacings for its own
       volume, and more to make up for what its few facets cut off (measured at the default support and cell). */
    b = (s->desc.dim == 3 ? 0.755 : 0.64) * h;
    s->radius = (fsi__lane)r;
    s->growth = (fsi__lane)((1 + b / r) / pow(1 - b * b, 9));

    /* Cases of the marching table. */
    for (d = 0; d < 1 << (s->desc.dim == 3 ? 8 : 4); d++) fsi__sf_make_case(s->cases, s->desc.dim, d);
    for (d = 0; d < 27; d++) for (o = 0; o < 8; o++) { /* of a neighbour at -1 its upper half counts, at +1 its lower,
                                                          else all */
        int x = d % 3 - 1, y = d / 3 % 3 - 1, z = d / 9 - 1;
        if (x == (o & 1 ? 1 : -1) || y == (o & 2 ? 1 : -1) || z == (o & 4 ? 1 : -1)) continue;
        s->needed[d] = (unsigned char)(s->needed[d] | 1 << o);
    }
}

FSI_API fsi_status fsi_surface_create(fsi_surface **out, const fsi_surface_desc *desc)
{
    fsi_surface *surface;
    fsi__sf_impl *s;
    if (!out || !desc) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (desc->cookie != FSI__COOKIE('S', fsi_surface_desc) || !fsi__is_context(desc->context)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__sf_check_desc(desc));
    surface = (fsi_surface *)fsi__alloc(desc->context, 1, sizeof *surface + sizeof *s);
    if (!surface)
        return fsi__fail(desc->context, FSI_ERROR_MEMORY, "fsi_surface_create", -1, 0, "no memory for the surface");
    s = (fsi__sf_impl *)(void *)(surface + 1);
    s->desc = *desc;
    fsi__sf_setup(s);
    surface->cookie = FSI__COOKIE('f', fsi_surface);
    surface->context = desc->context;
    surface->dim = surface->corners = desc->dim;
    surface->impl = s;
    *out = surface;
    return FSI_OK;
}

/* The columns of one of the tables; returns how many it has. */
static int fsi__sf_table(fsi__sf_impl *s, int table, fsi__column *c)
{
    const struct { int table; void **array; size_t size; } all[] = {
        { FSI__SF_VERTICES, (void **)&s->vertices, sizeof(fsi_vec3) },
        { FSI__SF_VERTICES, (void **)&s->normals, sizeof(fsi_vec3) },
        { FSI__SF_VERTICES, (void **)&s->vertex_attributes, (size_t)s->desc.attribute_count * sizeof(fsi_real) },
        { FSI__SF_ELEMENTS, (void **)&s->elements, (size_t)s->desc.dim * sizeof(int) },
        { FSI__SF_BLOCKS, (void **)&s->blocks, sizeof(fsi__sf_block) },
        { FSI__SF_HASH, (void **)&s->hash, 4 * sizeof(int) },
        { FSI__SF_PARTICLES, (void **)&s->home, sizeof(int) },
        { FSI__SF_PARTICLES, (void **)&s->source, sizeof(int) },
        { FSI__SF_PARTICLES, (void **)&s->px, sizeof(fsi__lane) },
        { FSI__SF_PARTICLES, (void **)&s->py, sizeof(fsi__lane) },
        { FSI__SF_PARTICLES, (void **)&s->pz, sizeof(fsi__lane) },
        { FSI__SF_SLOTS, (void **)&s->slots, sizeof(fsi__sf_slot) },
        { FSI__SF_SLOTS, (void **)&s->values, (size_t)(s->n * s->n * s->nz) * sizeof(fsi__lane) },
        { FSI__SF_EDGES, (void **)&s->map, sizeof(int) }
    };
    size_t k;
    int n = 0;

    /* Those of the table that have rows of some size. */
    for (k = 0; k < sizeof all / sizeof *all; k++) if (all[k].table == table && all[k].size > 0) {
        c[n].array = all[k].array;
        c[n++].size = all[k].size;
    }
    return n;
}

/* Makes room for `need` rows; the first `keep` rows stay. */
static fsi_status fsi__sf_room(fsi_context *context, fsi__sf_impl *s, int table, int keep, size_t need)
{
    fsi__column c[5];
    int n = fsi__sf_table(s, table, c);
    if (need > 0x7fffffff) need = 0x7fffffff;
    return fsi__room(context, c, n, keep, &s->rows[table], (int)need, "fsi_surface_update");
}

FSI_API void fsi_surface_destroy(fsi_surface *surface)
{
    fsi__sf_impl *s;
    fsi__column c[5];
    int t;
    if (!surface) return;
    s = (fsi__sf_impl *)surface->impl;
    for (t = 0; t < FSI__SF_TABLES; t++) fsi__free_columns(surface->context, c, fsi__sf_table(s, t, c), s->rows[t]);
    fsi__free(surface->context, surface, 1, sizeof *surface + sizeof *s);
}

/* ---- blocks ---- */

/* Where block (x, y, z) stands in the hash table, or the free place where it belongs (linear probing, at most half
   full). */
static int *fsi__sf_place(const fsi__sf_impl *s, int x, int y, int z)
{
    const uint64_t k = 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio */
    uint64_t h = (((uint32_t)x * k + (uint32_t)y) * k + (uint32_t)z) * k;
    uint32_t mask = (uint32_t)s->rows[FSI__SF_HASH] * 4 - 1, i = (uint32_t)(h >> 32) & mask;
    for (;; i = (i + 1) & mask) {
        const fsi__sf_block *b = s->blocks + s->hash[i] - 1;
        if (!s->hash[i] || (b->at[0] == x && b->at[1] == y && b->at[2] == z)) return &s->hash[i];
    }
}

/* Block (x, y, z); -1 when there is none. */
static int fsi__sf_find(const fsi__sf_impl *s, int x, int y, int z) { return *fsi__sf_place(s, x, y, z) - 1; }

/* Neighbour d of block `at`, 0 <= d < 27, x fastest, 13 is the block itself; -1 when there is none. */
static int fsi__sf_around(const fsi__sf_impl *s, const int at[3], int d)
{
    return s->desc.dim == 2 && d / 9 != 1 ? -1
        : fsi__sf_find(s, at[0] + d % 3 - 1, at[1] + d / 3 % 3 - 1, at[2] + d / 9 - 1);
}

/* Room for twice as many blocks; the hash table has four places (a power of two in all) for each row of blocks. */
static fsi_status fsi__sf_more_blocks(fsi_context *context, fsi__sf_impl *s)
{
    fsi__column blocks, hash;
    int *rows = s->rows, more = rows[FSI__SF_BLOCKS] ? 2 * rows[FSI__SF_BLOCKS] : 256, k;
    if (more > 1 << 28)
        return fsi__fail(context, FSI_ERROR_MEMORY, "fsi_surface_update", -1, more, "more than 2^28 blocks");
    fsi__sf_table(s, FSI__SF_HASH, &hash);
    fsi__sf_table(s, FSI__SF_BLOCKS, &blocks);
    FSI__TRY(fsi__grow(context, &hash, 1, 0, &rows[FSI__SF_HASH], more, "fsi_surface_update"));
    for (k = 0; k < s->block_count; k++)
        *fsi__sf_place(s, s->blocks[k].at[0], s->blocks[k].at[1], s->blocks[k].at[2]) = k + 1;
    return fsi__grow(context, &blocks, 1, s->block_count, &rows[FSI__SF_BLOCKS], more, "fsi_surface_update");
}

/* Block at (x, y, z), made when there is none; -1 when memory fails. */
static int fsi__sf_add(fsi_context *context, fsi__sf_impl *s, int x, int y, int z)
{
    fsi__sf_block *b;
    int *place;
    if (s->block_count == s->rows[FSI__SF_BLOCKS] && fsi__sf_more_blocks(context, s) != FSI_OK) return -1;
    place = fsi__sf_place(s, x, y, z);
    if (*place) return *place - 1;
    b = &s->blocks[s->block_count++];
    memset(b, 0, sizeof *b);
    b->at[0] = x, b->at[1] = y, b->at[2] = z;
    b->slot = FSI__SF_OUTSIDE;
    return (*place = s->block_count) - 1;
}

/* Block coordinates of x, in c, and its place inside the block, in f. */
static void fsi__sf_locate(const fsi__sf_impl *s, fsi_vec3 x, double c[3], fsi__lane f[3])
{
    double v[3];
    int k;
    v[0] = (double)x.x / s->support + s->offset;
    v[1] = (double)x.y / s->support + s->offset;
    v[2] = s->desc.dim == 3 ? (double)x.z / s->support + s->offset : 0;
    for (k = 0; k < 3; k++) {
        c[k] = floor(v[k]);
        f[k] = (fsi__lane)(v[k] - c[k]);
    }
}

/* Finds each particle's block and counts. */
static fsi_status fsi__sf_bin(fsi_context *context, fsi__sf_impl *s, const fsi_vec3 *x, int count)
{
    int i, b = -1;
    for (i = 0; i < count; i++) {
        double c[3];
        fsi__lane f[3];
        fsi_vec3 p = x[i];
        if (s->desc.dim == 2) p.z = 0;
        if (!fsi_v3_is_finite(p))
            return fsi__fail(context, FSI_ERROR_NAN, "fsi_surface_update", i, 0, "particle %d is not finite", i);
        fsi__sf_locate(s, p, c, f);
        if (fabs(c[0]) + fabs(c[1]) + fabs(c[2]) > 1073741824.0)
            return fsi__fail(context, FSI_ERROR_LIMIT, "fsi_surface_update", i, fabs(c[0]) + fabs(c[1]) + fabs(c[2]),
                "particle %d is more than 2^30 supports away from the origin", i);
        if (b < 0 || s->blocks[b].at[0] != (int)c[0] || s->blocks[b].at[1] != (int)c[1]
            || s->blocks[b].at[2] != (int)c[2])
            b = fsi__sf_add(context, s, (int)c[0], (int)c[1], (int)c[2]);
        if (b < 0) return FSI_ERROR_MEMORY;
        s->home[i] = b;
        s->blocks[b].end++;
    }
    return FSI_OK;
}

/* Of the 27 neighbours, those that a particle at f touches along one axis: `low` are those below it, then come those
   level with it and those above it, `stride` bits on each time. */
static uint32_t fsi__sf_near(uint32_t low, int stride, fsi__lane f)
{
    return low << stride | (f < FSI__SF_TOUCH ? low : 0) | (f > 1 - FSI__SF_TOUCH ? low << 2 * stride : 0);
}

/* Sorts particles by block (stable) and notes which octants they fill and which neighbours they touch. */
static void fsi__sf_sort(fsi__sf_impl *s, const fsi_vec3 *x, int count)
{
    int i, sum = 0;

    /* Where the particles of each block begin. */
    for (i = 0; i < s->block_count; i++) {
        fsi__sf_block *b = &s->blocks[i];
        b->begin = sum;
        sum += b->end;
        b->end = b->begin;
    }

    /* Particle after particle. */
    for (i = 0; i < count; i++) {
        fsi__sf_block *b = &s->blocks[s->home[i]];
        double c[3];
        fsi__lane f[3];
        int at = b->end++, octant;
        fsi__sf_locate(s, x[i], c, f);
        s->source[at] = i;
        s->px[at] = f[0];
        s->py[at] = f[1];
        s->pz[at] = f[2];
        octant = (f[0] >= (fsi__lane)0.5) | (f[1] >= (fsi__lane)0.5) << 1 | (f[2] >= (fsi__lane)0.5) << 2;
        b->octants = (unsigned char)(b->octants | 1 << octant | (s->desc.dim == 2 ? 1 << (octant | 4) : 0));
        b->touched |= fsi__sf_near(0x1249249, 1, f[0]) & fsi__sf_near(0x1C0E07, 3, f[1])
            & (s->desc.dim == 2 ? 0x1FFu << 9 : fsi__sf_near(0x1FF, 9, f[2]));
    }
}

/* Does the block, with half a block around it, have a particle in every octant? */
static int fsi__sf_is_deep(const fsi__sf_impl *s, const fsi__sf_block *b)
{
    int d;
    if (b->octants != 255) return 0;
    for (d = 0; d < 27; d++) {
        int n = fsi__sf_around(s, b->at, d);
        if (s->desc.dim == 2 && d / 9 != 1) continue;
        if (n < 0 || (s->blocks[n].octants & s->needed[d]) != s->needed[d]) return 0;
    }
    return 1;
}

/* Chooses the active blocks, adds those without particles, and gives them and their lower neighbours a slot. */
static fsi_status fsi__sf_activate(fsi_context *context, fsi__sf_impl *s)
{
    int occupied = s->block_count, i, d, k;
    const int *at;

    /* Blocks with particles, and empty ones that these come near. */
    for (i = 0; i < occupied; i++) {
        s->blocks[i].active = (unsigned char)!fsi__sf_is_deep(s, &s->blocks[i]);
        s->blocks[i].slot = FSI__SF_INSIDE;
    }
    for (i = 0; i < occupied; i++)
        for (d = 0; d < 27; d++) {
            if (!(s->blocks[i].touched >> d & 1) || d == 13) continue;
            at = s->blocks[i].at;
            k = fsi__sf_add(context, s, at[0] + d % 3 - 1, at[1] + d / 3 % 3 - 1, at[2] + d / 9 - 1);
            if (k < 0) return FSI_ERROR_MEMORY;
            if (k >= occupied) s->blocks[k].active = 1;
        }

    /* Slots. */
    s->slot_count = 0;
    for (i = 0; i < s->block_count; i++) { /* blocks added on the way are not active */
        if (!s->blocks[i].active) continue;
        for (d = 0; d < 1 << s->desc.dim; d++) {
            at = s->blocks[i].at;
            k = fsi__sf_add(context, s, at[0] - (d & 1), at[1] - (d >> 1 & 1), at[2] - (d >> 2));
            if (k < 0) return FSI_ERROR_MEMORY;
            if (s->blocks[k].slot < 0) s->blocks[k].slot = s->slot_count++;
        }
    }
    return FSI_OK;
}

/* ---- nodes ---- */

/* The blocks with particles around a block: where their particles are, and where they lie. */
typedef struct fsi__sf_hood {
    int count, begin[27], end[27];
    fsi__lane shift[27][3];
} fsi__sf_hood;

static void fsi__sf_gather_hood(const fsi__sf_impl *s, const int at[3], fsi__sf_hood *hood)
{
    int d;
    hood->count = 0;
    for (d = 0; d < 27; d++) {
        int b = fsi__sf_around(s, at, d);
        if (b < 0 || s->blocks[b].begin == s->blocks[b].end) continue;
        hood->begin[hood->count] = s->blocks[b].begin;
        hood->end[hood->count] = s->blocks[b].end;
        hood->shift[hood->count][0] = (fsi__lane)(d % 3 - 1);
        hood->shift[hood->count][1] = (fsi__lane)(d / 3 % 3 - 1);
        hood->shift[hood->count++][2] = (fsi__lane)(d / 9 - 1);
    }
}

/* sum w, sum w^3 and sum w (x - x_j) at the nodes of a block, row by row along x; n of the eight lanes are used. */
typedef struct fsi__sf_sums {
    fsi__f8 w[FSI__SF_ROWS], www[FSI__SF_ROWS], x[FSI__SF_ROWS], y[FSI__SF_ROWS], z[FSI__SF_ROWS];
} fsi__sf_sums;

static fsi__f8 fsi__sf_load(const fsi__lane *p)
{
    fsi__f8 r;
    memcpy(&r, p, sizeof r);
    return r;
}

/* Adds one particle at (px, py, pz), relative to the block, to the rows that it reaches. */
static void fsi__sf_splat(fsi__sf_sums *sum, int n, int nz, fsi__f8 nodes, fsi__lane px, fsi__lane py, fsi__lane pz)
{
    const fsi__lane h = 1 / (fsi__lane)n, top = 1 - h, ex = px < 0 ? px : (px > top ? px - top : 0), reach = ex * ex;
    const fsi__f8 zero = fsi__f8_set(0), dx = fsi__f8_sub(nodes, fsi__f8_set(px)), xx = fsi__f8_mul(dx, dx);
    int j, k;
    for (k = 0; k < nz; k++) {
        fsi__lane dz = (fsi__lane)k * h - pz, rz = 1 - dz * dz;
        if (rz <= reach) continue;
        for (j = 0; j < n; j++) {
            fsi__lane dy = (fsi__lane)j * h - py, ry = rz - dy * dy;
            int row = k * n + j;
            fsi__f8 q, w;
            if (ry <= reach) continue;
            q = fsi__f8_max(fsi__f8_sub(fsi__f8_set(ry), xx), zero); /* 1 - |x - x_j|^2 */
            w = fsi__f8_mul(fsi__f8_mul(q, q), q);
            sum->w[row] = fsi__f8_add(sum->w[row], w);
            sum->www[row] = fsi__f8_add(sum->www[row], fsi__f8_mul(fsi__f8_mul(w, w), w));
            sum->x[row] = fsi__f8_add(sum->x[row], fsi__f8_mul(w, dx));
            sum->y[row] = fsi__f8_add(sum->y[row], fsi__f8_mul(w, fsi__f8_set(dy)));
            sum->z[row] = fsi__f8_add(sum->z[row], fsi__f8_mul(w, fsi__f8_set(dz)));
        }
    }
}

/* phi / support for a row of nodes, from their sums. */
static void fsi__sf_level(const fsi__sf_impl *s, const fsi__sf_sums *sum, int row, fsi__lane *values)
{
    fsi__f8 x = sum->x[row], y = sum->y[row], z = sum->z[row];
    fsi__f8 length = fsi__f8_sqrt(fsi__f8_add(fsi__f8_add(fsi__f8_mul(x, x), fsi__f8_mul(y, y)), fsi__f8_mul(z, z)));
    fsi__lane w[8], www[8], d[8];
    int i;
    memcpy(w, &sum->w[row], sizeof w);
    memcpy(www, &sum->www[row], sizeof www);
    memcpy(d, &length, sizeof d);
    for (i = 0; i < s->n; i++) {
        fsi__lane g = s->growth * www[i] - 1;
        values[i] = w[i] < (fsi__lane)1e-6 ? s->radius : d[i] / w[i] - s->radius * (g < 1 ? g : 1);
    }
}

static void fsi__sf_evaluate(const fsi__sf_impl *s, const fsi__sf_block *b, fsi__lane *values)
{
    fsi__sf_sums sum;
    fsi__sf_hood hood;
    fsi__lane nodes[8];
    int j, p;
    memset(&sum, 0, sizeof sum);
    for (j = 0; j < 8; j++) nodes[j] = (fsi__lane)j / (fsi__lane)s->n;
    fsi__sf_gather_hood(s, b->at, &hood);
    for (j = 0; j < hood.count; j++) {
        const fsi__lane *at = hood.shift[j];
        for (p = hood.begin[j]; p < hood.end[j]; p++)
            fsi__sf_splat(&sum, s->n, s->nz, fsi__sf_load(nodes), s->px[p] + at[0], s->py[p] + at[1], s->pz[p] + at[2]);
    }
    for (j = 0; j < s->n * s->nz; j++) fsi__sf_level(s, &sum, j, values + j * s->n);
}

static void fsi__sf_evaluate_slot(fsi__sf_impl *s, fsi__sf_slot *slot)
{
    int d, k, nodes = s->n * s->n * s->nz;
    const fsi__sf_block *b = &s->blocks[slot->block];
    fsi__lane *v = s->values + (size_t)(slot - s->slots) * (size_t)nodes;
    if (b->active) fsi__sf_evaluate(s, b, v);
    else for (k = 0; k < nodes; k++) v[k] = b->end > b->begin ? -s->radius : s->radius;
    for (slot->signs = k = 0; k < nodes; k++) slot->signs |= v[k] < 0 ? 1 : 2;
    for (d = 0; d < 8; d++) {
        int up = fsi__sf_find(s, b->at[0] + (d & 1), b->at[1] + (d >> 1 & 1), b->at[2] + (d >> 2)); /* 2D: none above */
        slot->up[d] = up < 0 ? FSI__SF_OUTSIDE : s->blocks[up].slot;
    }
}

/* ---- cells ---- */

/* What one pass over the cells of a block needs: node values of the block and of the first layer of its upper
   neighbours, (n+1)^dim of them, x fastest. */
typedef struct fsi__sf_walk {
    fsi__lane v[FSI__SF_APRON];
    int stride[3];       /* along x, y, z in v */
    int corner[8];       /* offset of the corners of a cell in v */
} fsi__sf_walk;

/* 0 when all values have the same sign. Zero itself counts as outside. */
static int fsi__sf_begin_walk(const fsi__sf_impl *s, const fsi__sf_slot *slot, fsi__sf_walk *w)
{
    int n = s->n, signs = 0, d, i, j, k, top = s->desc.dim == 3 ? n : 0;
    fsi__lane *v = w->v;
    for (d = 0; d < 1 << s->desc.dim; d++) {
        int up = slot->up[d];
        signs |= up >= 0 ? s->slots[up].signs : (up == FSI__SF_INSIDE ? 1 : 2);
    }
    if (signs != 3) return 0;
    w->stride[0] = 1;
    w->stride[1] = n + 1;
    w->stride[2] = (n + 1) * (n + 1);
    for (d = 0; d < 8; d++) w->corner[d] = (d & 1) + (d >> 1 & 1) * w->stride[1] + (d >> 2) * w->stride[2];
    for (k = 0; k <= top; k++) for (j = 0; j <= n; j++) for (i = 0; i <= n; i++) {
        int from = slot->up[(i == n) | (j == n) << 1 | (k == n) << 2];
        if (from < 0) *v++ = from == FSI__SF_INSIDE ? -s->radius : s->radius;
        else *v++ = s->values[(size_t)from * (size_t)(n * n * s->nz) + (size_t)((k % n * n + j % n) * n + i % n)];
    }
    return 1;
}

static int fsi__sf_case(const fsi__sf_impl *s, const fsi__sf_walk *w, int at) /* corners inside, of the cell at `at` */
{
    int c, inside = 0;
    for (c = 0; c < 1 << s->desc.dim; c++) inside |= (w->v[at + w->corner[c]] < 0) << c;
    return inside;
}

static void fsi__sf_count_slot(fsi__sf_impl *s, fsi__sf_slot *slot)
{
    fsi__sf_walk w;
    int i, j, k, inside;
    slot->vertices = slot->elements = 0;
    if (!fsi__sf_begin_walk(s, slot, &w)) return;
    for (k = 0; k < s->nz; k++) for (j = 0; j < s->n; j++) for (i = 0; i < s->n; i++) {
        inside = fsi__sf_case(s, &w, i + j * w.stride[1] + k * w.stride[2]);
        slot->elements += s->cases[inside][0] / s->desc.dim;
        inside ^= inside & 1 ? 255 : 0; /* corners that differ from the first: those at 1, 2, 4 end its edges */
        slot->vertices += (inside >> 1 & 1) + (inside >> 2 & 1) + (s->desc.dim == 3 ? inside >> 4 & 1 : 0);
    }
}

/* ---- vertices ---- */

/* signed distance to [0, 1] */
static fsi__lane fsi__sf_outside(fsi__lane x) { return x < 0 ? x : (x > 1 ? x - 1 : 0); }

/* The normal at v: sum q (v - x_j), q = 1 - |v - x_j|^2, as wide a mean as the support allows; q^3 is too noisy for
   shading. */
static fsi_vec3 fsi__sf_normal(const fsi__sf_impl *s, const fsi__sf_hood *hood, const fsi__lane v[3])
{
    static const fsi__lane lanes[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    const fsi__f8 zero = fsi__f8_set(0), one = fsi__f8_set(1), index = fsi__sf_load(lanes);
    fsi__f8 sx = zero, sy = zero, sz = zero;
    int b, p;
    for (b = 0; b < hood->count; b++) {
        fsi__lane x = v[0] - hood->shift[b][0], y = v[1] - hood->shift[b][1], z = v[2] - hood->shift[b][2];
        fsi__lane ex = fsi__sf_outside(x), ey = fsi__sf_outside(y), ez = fsi__sf_outside(z);
        if (ex * ex + ey * ey + ez * ez >= 1) continue;
        for (p = hood->begin[b]; p < hood->end[b]; p += FSI_LANES) {
            fsi__f8 dx = fsi__f8_sub(fsi__f8_set(x), fsi__sf_load(s->px + p));
            fsi__f8 dy = fsi__f8_sub(fsi__f8_set(y), fsi__sf_load(s->py + p));
            fsi__f8 dz = fsi__f8_sub(fsi__f8_set(z), fsi__sf_load(s->pz + p));
            fsi__f8 r2 = fsi__f8_add(fsi__f8_add(fsi__f8_mul(dx, dx), fsi__f8_mul(dy, dy)), fsi__f8_mul(dz, dz));
            fsi__f8 q = fsi__f8_max(fsi__f8_sub(one, r2), zero);
            q = fsi__f8_if_greater(fsi__f8_set((fsi__lane)(hood->end[b] - p)), index, q); /* the rest lies elsewhere */
            sx = fsi__f8_add(sx, fsi__f8_mul(q, dx));
            sy = fsi__f8_add(sy, fsi__f8_mul(q, dy));
            sz = fsi__f8_add(sz, fsi__f8_mul(q, dz));
        }
    }
    return fsi_v3_unit(fsi_v3((fsi_real)fsi__f8_sum(sx), (fsi_real)fsi__f8_sum(sy), (fsi_real)fsi__f8_sum(sz)));
}

/* sum w a_j / sum w */
static void fsi__sf_mean_attributes(const fsi__sf_impl *s, const fsi__sf_hood *hood, const fsi__lane v[3],
    fsi_real *out)
{
    int b, p, k, n = s->desc.attribute_count;
    double total = 0;
    for (k = 0; k < n; k++) out[k] = 0;
    for (b = 0; b < hood->count; b++)
        for (p = hood->begin[b]; p < hood->end[b]; p++) {
            fsi__lane dx = v[0] - hood->shift[b][0] - s->px[p], dy = v[1] - hood->shift[b][1] - s->py[p];
            fsi__lane dz = v[2] - hood->shift[b][2] - s->pz[p];
            fsi__lane q = 1 - (dx * dx + dy * dy + dz * dz);
            double w = q > 0 ? (double)(q * q * q) : 0;
            if (w <= 0) continue;
            total += w;
            for (k = 0; k < n; k++)
                out[k] += (fsi_real)(w * (double)s->attributes[(size_t)s->source[p] * (size_t)n + (size_t)k]);
        }
    for (k = 0; k < n && total > 0; k++) out[k] = (fsi_real)((double)out[k] / total);
}

/* One vertex on the edge from node (i, j, k) along `axis`, where phi is a at one end and b at the other. */
static void fsi__sf_put_vertex(fsi__sf_impl *s, const fsi__sf_block *block, const fsi__sf_hood *hood,
                               const int node[3], int axis, fsi__lane a, fsi__lane b, int id)
{
    fsi__lane v[3], t = a / (a - b);
    double x[3];
    int k;
    /* else triangles collapse */
    t = t < (fsi__lane)1e-3 ? (fsi__lane)1e-3 : (t > 1 - (fsi__lane)1e-3 ? 1 - (fsi__lane)1e-3 : t);
    for (k = 0; k < 3; k++) {
        v[k] = ((fsi__lane)node[k] + (k == axis ? t : 0)) / (fsi__lane)s->n;
        x[k] = (block->at[k] + (double)v[k] - s->offset) * s->support;
    }
    s->vertices[id] = fsi_v3((fsi_real)x[0], (fsi_real)x[1], (fsi_real)(s->desc.dim == 3 ? x[2] : 0));
    s->normals[id] = fsi__sf_normal(s, hood, v);
    if (s->vertex_attributes)
        fsi__sf_mean_attributes(s, hood, v, s->vertex_attributes + (size_t)id * (size_t)s->desc.attribute_count);
}

static void fsi__sf_vertices_of_slot(fsi__sf_impl *s, fsi__sf_slot *slot)
{
    fsi__sf_walk w;
    fsi__sf_hood hood;
    const fsi__sf_block *block = &s->blocks[slot->block];
    int node[3], axis, nodes = s->n * s->n * s->nz, id = slot->vertices, at = slot->map;
    if (slot->map < 0 || !fsi__sf_begin_walk(s, slot, &w)) return;
    fsi__sf_gather_hood(s, block->at, &hood);
    for (node[2] = 0; node[2] < s->nz; node[2]++)
        for (node[1] = 0; node[1] < s->n; node[1]++)
            for (node[0] = 0; node[0] < s->n; node[0]++, at++)
                for (axis = 0; axis < s->desc.dim; axis++) {
                    const fsi__lane *v = w.v + node[0] + node[1] * w.stride[1] + node[2] * w.stride[2];
                    fsi__lane a = v[0], b = v[w.stride[axis]];
                    if ((a < 0) == (b < 0)) continue;
                    s->map[at + axis * nodes] = id;
                    fsi__sf_put_vertex(s, block, &hood, node, axis, a, b, id++);
                }
}

/* ---- elements ---- */

/* Vertex on an edge of cell (i, j, k): the edge belongs to the node at its lower end, maybe in an upper neighbour. */
static int fsi__sf_edge_vertex(const fsi__sf_impl *s, const fsi__sf_slot *slot, int i, int j, int k, int edge)
{
    int n = s->n, low = fsi__sf_edge_low(edge), x = i + (low & 1), y = j + (low >> 1 & 1), z = k + (low >> 2);
    int owner = slot->up[(x == n) | (y == n) << 1 | (z == n) << 2];
    return s->map[s->slots[owner].map + (((edge >> 2) * s->nz + z % n) * n + y % n) * n + x % n];
}

static void fsi__sf_elements_of_slot(fsi__sf_impl *s, fsi__sf_slot *slot)
{
    fsi__sf_walk w;
    int i, j, k, e, *out = s->elements + (size_t)slot->elements * (size_t)s->desc.dim;
    if (!fsi__sf_begin_walk(s, slot, &w)) return;
    for (k = 0; k < s->nz; k++) for (j = 0; j < s->n; j++) for (i = 0; i < s->n; i++) {
        int at = i + j * w.stride[1] + k * w.stride[2];
        const unsigned char *edges = s->cases[fsi__sf_case(s, &w, at)];
        for (e = 1; e <= edges[0]; e++) *out++ = fsi__sf_edge_vertex(s, slot, i, j, k, edges[e]);
    }
}

static void fsi__sf_task(void *arg, int chunk, int begin, int end)
{
    fsi__sf_impl *s = (fsi__sf_impl *)arg;
    (void)chunk;
    for (; begin < end; begin++) s->pass(s, &s->slots[begin]);
}

static void fsi__sf_run(fsi_context *context, fsi__sf_impl *s, fsi__sf_pass *pass)
{
    s->pass = pass;
    fsi__parallel(context, s->slot_count, FSI__SF_GRAIN, fsi__sf_task, s);
}

/* ---- update ---- */

/* Numbers the vertices, elements and edge maps of the blocks one after the other; in all: totals[0], [1], [2]. */
static void fsi__sf_number(fsi__sf_impl *s, size_t totals[3])
{
    int q, edges = s->n * s->n * s->nz * s->desc.dim;
    totals[0] = totals[1] = totals[2] = 0;
    for (q = 0; q < s->slot_count; q++) {
        fsi__sf_slot *slot = &s->slots[q];
        int v = slot->vertices, e = slot->elements;
        slot->vertices = (int)totals[0];
        slot->elements = (int)totals[1];
        slot->map = v ? (int)totals[2] : -1;
        totals[0] += (size_t)v;
        totals[1] += (size_t)e;
        totals[2] += v ? (size_t)edges : 0;
        if (totals[0] + 3 * totals[1] + totals[2] > 0x7fffffff) break; /* refused by the caller */
    }
}

/* Bins, chooses blocks, evaluates and counts. No result is touched. */
static fsi_status fsi__sf_prepare(fsi_context *context, fsi__sf_impl *s, const fsi_vec3 *x, int count, size_t totals[3])
{
    int i;
    s->block_count = 0;
    if (s->hash) memset(s->hash, 0, (size_t)s->rows[FSI__SF_HASH] * 4 * sizeof(int));
    FSI__TRY(fsi__sf_room(context, s, FSI__SF_PARTICLES, 0, (size_t)count + FSI_LANES));
    FSI__TRY(fsi__sf_bin(context, s, x, count));
    fsi__sf_sort(s, x, count);
    FSI__TRY(fsi__sf_activate(context, s));
    FSI__TRY(fsi__sf_room(context, s, FSI__SF_SLOTS, 0, (size_t)s->slot_count));
    for (i = 0; i < s->block_count; i++)
        if (s->blocks[i].slot >= 0) s->slots[s->blocks[i].slot].block = i;
    fsi__sf_run(context, s, fsi__sf_evaluate_slot);
    fsi__sf_run(context, s, fsi__sf_count_slot);
    fsi__sf_number(s, totals);
    if (totals[0] + 3 * totals[1] + totals[2] > 0x7fffffff)
        return fsi__fail(context, FSI_ERROR_LIMIT, "fsi_surface_update", -1, (double)totals[1],
            "the surface has more than 2^31 - 1 indices");
    return fsi__sf_room(context, s, FSI__SF_EDGES, 0, totals[2]);
}

/* Grows the arrays of the result, old contents kept. The caller sees where they are now even if one could not grow. */
static fsi_status fsi__sf_grow_results(fsi_surface *surface, fsi__sf_impl *s, const size_t totals[3])
{
    fsi_status status = fsi__sf_room(surface->context, s, FSI__SF_VERTICES, surface->vertex_count, totals[0]);
    if (status == FSI_OK)
        status = fsi__sf_room(surface->context, s, FSI__SF_ELEMENTS, surface->element_count, totals[1]);
    surface->vertices = s->vertices;
    surface->normals = s->normals;
    surface->attributes = s->vertex_attributes;
    surface->elements = s->elements;
    return status;
}

FSI_API fsi_status fsi_surface_update(fsi_surface *surface, const fsi_vec3 *x, int count, const fsi_real *attributes)
{
    static const char fn[] = "fsi_surface_update";
    fsi_context *context;
    fsi__sf_impl *s;
    size_t totals[3];
    if (!surface) return fsi__fail(NULL, FSI_ERROR_ARGUMENT, fn, -1, 0, "surface is NULL");
    if (surface->cookie != FSI__COOKIE('f', fsi_surface))
        return fsi__fail(NULL, FSI_ERROR_COOKIE, fn, -1, 0, "not a surface of this version and precision");
    context = surface->context;
    s = (fsi__sf_impl *)surface->impl;
    if (count < 0 || (count > 0 && !x))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, count,
            "count is %d and x is %s", count, x ? "given" : "NULL");
    if (count > 0 && s->desc.attribute_count && !attributes)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0,
            "attributes is NULL, the desc asks for %d a particle", s->desc.attribute_count);

    /* Room for all; then vertices and elements. */
    s->attributes = attributes;
    FSI__TRY(fsi__sf_prepare(context, s, x, count, totals));
    FSI__TRY(fsi__sf_grow_results(surface, s, totals));
    fsi__sf_run(context, s, fsi__sf_vertices_of_slot);
    fsi__sf_run(context, s, fsi__sf_elements_of_slot);
    surface->vertex_count = (int)totals[0];
    surface->element_count = (int)totals[1];
    surface->block_count = s->slot_count;
    return FSI_OK;
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
