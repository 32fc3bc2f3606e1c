/* fsi_front.h - closed surfaces that move: remeshing, merging, volume, curvature, attributes that are conserved.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_front.h"
         #include "fsi_front.h"

   A DROP IN A SHEAR FLOW
      fsi_vec3 x[8];
      const int faces[36] = { 0,2,1, 1,2,3, 4,5,6, 5,7,6, 0,1,4, 1,5,4, 2,6,3, 3,6,7, 0,4,2, 2,4,6, 1,3,5, 3,7,5 };
      fsi_front_desc d = fsi_front_default_desc();
      fsi_front *f;
      int k, i;
      for (i = 0; i < 8; i++)
          x[i] = fsi_v3((fsi_real)(i & 1), (fsi_real)(i >> 1 & 1), (fsi_real)(i >> 2)); // a cube
      d.vertices = x;
      d.vertex_count = 8;
      d.elements = faces;
      d.element_count = 12;
      d.length = 0.1f;                                  // edges are 0.04 to 0.16 m long
      if (fsi_front_create(&f, &d) != FSI_OK) return 1;
      for (k = 0; k < 20; k++) {
          for (i = 0; i < f->vertex_count; i++)
              f->velocity[i] = fsi_v3(f->position[i].z, 0, 0);
          if (fsi_front_step(f, 0.05f) != FSI_OK) return 1; // moves the vertices, then remeshes
      }
      printf("%d triangles, volume %g\n", f->element_count, f->piece[0].volume);
      fsi_front_destroy(f);

   WHAT IS IN HERE (search for >>)
      >>desc           the surface that there is at first, and how it is kept
      >>front          fsi_front, which you read and write: vertices, elements, pieces, stats
      >>measures       normals, mean curvature, cotangent weights, lines of a grid
      >>state          save, load, hash, debug draw
      >>stages         for fsi's own headers, not for you: copies
   Operations of remeshing are in fsi_front_remesh.h, what merges and pinches off in fsi_front_topology.h; docs/front.md
   derives them. fsi_front_lines.h tells which cells of a grid are inside of a surface, and where lines between their
   centres cross it.
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
   PRECISION: positions, velocities and attributes in fsi_real; areas, volumes and sums in double.

   WHAT IT DOES NOT DO
      Surfaces that meet merge, and necks pinch off, only with desc.topology; without, a step whose surface crosses
      itself is refused. Topology changes on one wall at a time, not in corners. Surfaces are closed, also along walls.
*/
#ifndef FSI_FRONT_H
#define FSI_FRONT_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi_front_lines.h"
#include "fsi_front_remesh.h"
#include "fsi_front_topology.h"

/* ---- >>desc ------------------------------------------------------------------------------------------------------ */

/* Flags of a vertex; bits from FSI_FRONT_YOURS on mean what you want. Where two vertices become one, it has the walls
   and FSI_FRONT_FIXED of both and your bits of one; a vertex between two others has what both have. */
enum {
    FSI_FRONT_WALL_X0 = 1, FSI_FRONT_WALL_X1 = 2,   /* it lies on a wall of desc.walls and slides along it: x low, x */
    FSI_FRONT_WALL_Y0 = 4, FSI_FRONT_WALL_Y1 = 8,   /* high, y low ... */
    FSI_FRONT_WALL_Z0 = 16, FSI_FRONT_WALL_Z1 = 32,
    FSI_FRONT_FIXED = 64,                           /* remeshing leaves it where it is, as in contact with a body */
    FSI_FRONT_YOURS = 128
};

/* What is about to happen where two sheets are nearer than half of topology_dx. */
enum { FSI_FRONT_MERGE, FSI_FRONT_PINCH };
typedef struct fsi_front_event {
    int kind;                    /* FSI_FRONT_MERGE: air between them, or two drops that already overlap;
                                    FSI_FRONT_PINCH: liquid between them, or a piece that overlaps itself */
    uint32_t piece[2];           /* ids of the pieces that they belong to; maybe the same */
    fsi_vec3 place;              /* [m] */
} fsi_front_event;
/* 0: they are left as they are, and asked for again in the next step; else it happens. Sheets that are left come to
   cross, in a step that is refused then, unless the owner holds them apart. */
typedef int fsi_front_ask(void *user, const fsi_front_event *event);

/* How to make a front. Start from fsi_front_default_desc(). Arrays are copied. */
typedef struct fsi_front_desc {
    uint32_t cookie;
    fsi_context *context;        /* default NULL: malloc, serial or OpenMP, no clock */
    int dim;                     /* 3 (default): triangles; 2: segments, z = 0 */
    const fsi_vec3 *vertices;    /* vertex_count [m]: no default */
    int vertex_count;
    const int *elements;         /* dim * element_count indices; triangles counter-clockwise seen from outside,
                                    segments with the outside on their left; every edge belongs to two of them (2D:
                                    every vertex). A cavity is a piece that is inside of another, inside out */
    int element_count;
    const fsi_vec3 *velocities;  /* vertex_count [m/s]; default NULL: 0 */
    const uint32_t *flags;       /* vertex_count; default NULL: 0 */
    const fsi_real *attributes;  /* vertex_count * attribute_count; default NULL: 0 */
    int attribute_count;         /* numbers of your own that each vertex carries, 0 to 64; default 0. They are amounts,
                                    as of surfactant, up to 1e30: remeshing keeps their sums, and where an amount is in
                                    proportion to the area of vertices it stays so */
    fsi_real length;             /* that edges should have; > 0, no default [m] */
    fsi_box3 walls;              /* of vertices that have flags of walls; default: as large as can be [m] */
    fsi_real smoothing;          /* part of the way to the mean of its neighbours that a vertex of a poor triangle takes
                                    in a step, along the surface, 0 to 1; default 0.2 */
    fsi_real volume_part;        /* most that one operation may move, in length^dim; default 0.02; four times as much
                                    where edges or angles are beyond the bounds, or to lie on the curved surface */
    int keep_volume;             /* 1 (default): what remeshing moves is given back to the piece, by a shift along its
                                    normals, as far as the surface does not cross itself then (stats.not_kept,
                                    fsi_front_piece.owed); 2: and what the motion changes, as for a liquid that keeps
                                    its volume; 0: it is booked in fsi_front_piece.moved alone */
    fsi_real piece_min;          /* pieces with less volume, in length^dim, are removed; 0: none; default -1: 8, in 2D
                                    4 */
    int crossings;               /* 1 (default): a surface that crosses or touches itself is refused, by an exact test
                                    at the end of each step; operations that would make it so are not done. 0: it may,
                                    and pieces may be inside out */
    int topology;                /* 1: sheets and necks nearer than half of topology_dx merge and pinch off, with
                                    crossings only; 0 (default): pieces stay what they are */
    fsi_real topology_dx;        /* 1 to 3 length [m]; default 0: 2 length. Cells of half of it are resampled */
    fsi_front_ask *ask;          /* asked at each place of a step, for each kind and each two pieces that meet there;
                                    default NULL: all may happen */
    void *ask_user;
    int rounds;                  /* of remeshing in a step at most, 1 to 100; default 8 */
    int reserve;                 /* elements to make room for; default 0 */
} fsi_front_desc;
FSI_API fsi_front_desc fsi_front_default_desc(void); /* fills every field */

/* ---- >>front ----------------------------------------------------------------------------------------------------- */

/* A connected part of the surface. */
typedef struct fsi_front_piece {
    uint32_t id;                 /* never used twice */
    int element_count;
    double volume;               /* enclosed [m^3; 2D: m^2]; negative: a cavity */
    double area;                 /* [m^2; 2D: m] */
    double moved;                /* volume by which remeshing and topology changed it, in all steps; keep_volume gave it
                                    back */
    double owed;                 /* but for this part, which later steps give: the shift would have made it cross
                                    itself */
} fsi_front_piece;

/* What the last successful step did. */
typedef struct fsi_front_stats {
    int vertices, elements, pieces;
    int splits, collapses, flips, smoothed;
    int refused;                 /* operations that would fold the surface, stretch it or move too much volume */
    int crossed;                 /* and those after which it would cross itself */
    int rounds;
    double longest, shortest;    /* edges, in desc.length */
    double smallest_angle;       /* [degrees]; 2D: 180 */
    int long_edges, short_edges, thin; /* edges above 1.6, below 0.4 desc.length, triangles with an angle below 10
                                          degrees, that are left */
    int merges, pinches;         /* pieces fewer, and more, by topology */
    int places, whole_places;    /* that were resampled; of these, where whole pieces had to be */
    int failed_places;           /* left as they were: flags of two walls, or FSI_FRONT_FIXED, or no surface
                                    that fits to the rest */
    int forbidden_places;        /* by desc.ask */
    int resampled_cells;         /* of topology_dx/2 */
    int removed_pieces;
    double removed_volume;       /* with them */
    double removed_amount[FSI__FR_ATTRIBUTES]; /* and of each attribute */
    double removed_momentum[3];  /* and of what momentum has below */
    double volume, area;         /* of all pieces */
    double drift;                /* largest volume by which motion changed a piece; keep_volume 2 gave it back */
    double moved;                /* largest volume by which remeshing and topology changed a piece */
    int not_kept;                /* 1: giving it back would have made the surface cross itself: it is owed, in part */
    double owed;                 /* of all pieces */
    double momentum[3];          /* sum of area times velocity of vertices */
    double seconds_move, seconds_topology, seconds_remesh, seconds_volume, seconds_crossings, seconds_commit;
    size_t bytes;                /* allocated through its context */
    long long allocs;            /* allocations of the context so far */
} fsi_front_stats;

/* A surface. Read everything; write only what is marked. Vertices and elements keep their order; new ones come last. */
typedef struct fsi_front {
    uint32_t cookie;
    fsi_context *context;        /* never NULL: the desc's, or one of its own */
    fsi_front_desc desc;         /* as given; its arrays are NULL. keep_volume, topology, topology_dx, ask and ask_user
                                    may be written between steps */
    int dim, vertex_count, element_count, piece_count;
    fsi_vec3 *position;          /* vertex_count [m]; may be written between steps */
    fsi_vec3 *velocity;          /* vertex_count [m/s]; may be written between steps */
    uint32_t *flags;             /* vertex_count; may be written between steps */
    fsi_real *attribute;         /* vertex_count * desc.attribute_count; may be written; NULL when there are none */
    const uint32_t *id;          /* vertex_count, never used twice, growing along the array */
    const int *elements;         /* dim * element_count indices */
    const int *piece_of;         /* element_count: index of its piece */
    const fsi_front_piece *piece;/* piece_count, in the order of ids, as the last step left them */
    fsi_front_stats stats;
    void *impl;
} fsi_front;

/* A surface, as it is given: not remeshed before the first step. Errors, each naming the vertex or element: COOKIE;
   ARGUMENT, NAN (a field, an index out of range, a vertex that is not on its wall); LIMIT; MESH: degenerate elements,
   elements that are there twice, open edges, edges of more than two triangles, vertices where surfaces touch, elements
   that cross, pieces that are inside out; MEMORY. *out is NULL then. */
FSI_API fsi_status fsi_front_create(fsi_front **out, const fsi_front_desc *desc);
FSI_API void fsi_front_destroy(fsi_front *f); /* NULL is fine */
/* Moves vertices by dt times their velocities (dt = 0: you moved them, or nothing moves), those with flags of walls
   along these; with desc.topology changes what is connected, and gives the pieces concerned the volume that they had;
   then remeshes: edges are 0.4 to 1.6 desc.length long and angles above 10 degrees, except where no
   operation is allowed (stats: long_edges, short_edges, thin). dt <= 1000 s. All arrays may have moved afterwards.
   Errors: COOKIE, ARGUMENT, NAN (names the vertex), MESH (the surface crosses itself, or a piece is inside out; names
   elements as the step would have left them), LIMIT, MEMORY; nothing has changed then. */
FSI_API fsi_status fsi_front_step(fsi_front *f, fsi_real dt);
/* The context's last failure; NULL: no front. */
FSI_API const fsi_error *fsi_front_error(const fsi_front *f);

/* ---- >>measures: of positions as they are now -------------------------------------------------------------------- */

/* Volume and area of the pieces: after positions were written. Errors: COOKIE, ARGUMENT, MEMORY. */
FSI_API fsi_status fsi_front_measure(fsi_front *f);
/* vertex_count unit normals out of the volume, the mean of the elements' by area (2D: length). */
FSI_API fsi_status fsi_front_normals(const fsi_front *f, fsi_vec3 *out);
/* vertex_count mean curvatures (k1 + k2)/2 [1/m] (2D: k), 1/R of a ball or disc of radius R: least squares of the
   curvatures along the chords to the neighbours and to the vertices beyond the edges between these, with the normal of
   Max 1999; 2D: of the circle through a vertex and its neighbours. Exact where these lie on a ball; of second order for
   any triangles. 0 where the surface has no normal. */
FSI_API fsi_status fsi_front_curvature(const fsi_front *f, fsi_real *out);
/* dim * element_count weights of the edges, from corner i to i + 1, in each element: cot/2 of the angle opposite, 2D:
   1/length in both places. With L = sum w (e_i - e_j)(e_i - e_j)^T the area has the gradient L x. */
FSI_API fsi_status fsi_front_weights(const fsi_front *f, fsi_real *out);

/* Fills all, for the positions that f has now. Time is linear in elements, lines and cells. Centres count as if they
   were moved by (e, e^2, e^3), with e > 0 as small as one likes, for all axes alike: two neighbouring centres differ
   where the number of crossings between them is odd. Errors: COOKIE; ARGUMENT (another dim); NAN (names the vertex);
   LIMIT (a vertex 2^30 cells away, an element wider than 1024 cells, 2^31 crossings); MEMORY. Nothing has changed then;
   crossings may have moved. */
FSI_API fsi_status fsi_front_cross_lines(fsi_front_lines *l, const fsi_front *f);

/* ---- >>state ----------------------------------------------------------------------------------------------------- */

/* Writes the surface; buffer NULL: only *size. Errors: COOKIE, ARGUMENT, LIMIT (capacity). */
FSI_API fsi_status fsi_front_save(const fsi_front *f, void *buffer, size_t capacity, size_t *size);
/* Takes a surface that a front with the same dim and attribute_count wrote. Errors: COOKIE, ARGUMENT, FORMAT, MESH (it
   crosses itself, and desc.crossings is 1), LIMIT, MEMORY; nothing has changed then. */
FSI_API fsi_status fsi_front_load(fsi_front *f, const void *buffer, size_t size);
/* Hash of what save writes. Equal after equal steps, for any number of threads. */
FSI_API uint64_t fsi_front_hash(const fsi_front *f);
/* Edges, coloured by their length. */
FSI_API void fsi_front_debug_draw(const fsi_front *f, const fsi_debug_draw *draw);

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

/* `to`, which has the dim, length and attribute_count of `from`, becomes a copy of it. Error: MEMORY, then `to` is as
   it was; never where it has held as many elements, vertices and pieces before. */
FSI_API fsi_status fsi__front_copy(fsi_front *to, const fsi_front *from, const char *fn);
/* fsi_front_measure after a motion: what it changed of volumes is owed (fsi_front_piece.owed), so that the next step
   gives it back, and a state that is saved now knows of it. */
FSI_API fsi_status fsi__front_book(fsi_front *f);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_FRONT_H */

/* ==== Stop here if you only want the API. ====================================================================== */

/* A step, names without their fsi__fr_:

      check_step      finite positions, velocities, attributes
      copy, move      into the mesh that is worked on; x += dt v, along walls
      sum_pieces      volumes after the motion
      change_topology fsi_front_topology.h; pieces are then named anew
      remove_small    pieces
      remesh          fsi_front_remesh.h
      settle_volume   gives to each piece the volume that remeshing took, as far as nothing crosses: the exact test
      check_sides     which side of each piece is inside
      commit          what is left, in the same order                                                          */

#ifdef FSI_IMPLEMENTATION
#undef FSI_FRONT_IMPLEMENTATION
#define FSI_FRONT_IMPLEMENTATION
#endif
#ifdef FSI_FRONT_IMPLEMENTATION
#ifndef FSI_FRONT_IMPLEMENTATION_DONE
#define FSI_FRONT_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_front_lines.h"
#include "fsi_front_remesh.h"
#include "fsi_front_topology.h"

FSI__STRICT_BEGIN

#define FSI__FR_FARTHEST 1e9   /* from the origin, in lengths */
#define FSI__FR_FASTEST 1e9    /* [m/s] */
#define FSI__FR_MOST 1e30      /* of an attribute */

/* Of a piece, while a step works on it. */
typedef struct fsi__fr_sum {
    double before;             /* volume after the motion */
    double slope;              /* dV for a shift of 1 along the normals */
    double shift;
    int winding;               /* of the other pieces around its point */
} fsi__fr_sum;

/* Of a piece before or after a change of topology. */
typedef struct fsi__fr_share {
    int group;                 /* the first of those it is connected with */
    int place;                 /* in the order of ids, of those after; of those before: 1 where one has its id */
    int count[2];              /* in its group: pieces before, after */
    double before, after, size, moved, owed; /* of the group: volumes, with signs and without, and what is booked */
} fsi__fr_share;

typedef struct fsi__fr_impl {
    fsi_context own_context;
    fsi__fr_mesh now;          /* what the caller sees */
    fsi__fr_mesh work;         /* what a step works on */
    fsi_front_piece *piece, *work_piece;
    fsi__fr_sum *sum;          /* of work_piece */
    fsi_vec3 *about;           /* of work_piece: one of its vertices */
    double *moved;             /* of work_piece: volume by which remeshing changed it */
    int piece_room, piece_rows, pieces; /* rows of piece; of the other arrays of pieces; pieces of work_piece */
    fsi__fr_survey survey;
    int part_room, chunk_room;
    int *renumber;             /* of vertices, then elements, then pieces */
    int renumber_room;
    fsi_vec3 *shift, *unshifted; /* dV/dx of vertices; where they were before a shift */
    int shift_room;
    uint32_t next_piece, work_next_piece;
    fsi__frt topology;
    fsi__fr_share *share;      /* pieces before a change of topology, then those after */
    int share_room;
} fsi__fr_impl;

static fsi_status fsi__fr_check(const fsi_front *f)
{
    if (!f) return FSI_ERROR_ARGUMENT;
    return f->cookie == FSI__COOKIE('r', fsi_front) ? FSI_OK : FSI_ERROR_COOKIE;
}

/* ---- step -------------------------------------------------------------------------------------------------------- */

/* The wall of an axis that a vertex lies on; its own coordinate where there is none. */
static fsi_real fsi__fr_on_wall(const fsi_box3 *walls, uint32_t flags, int axis, fsi_real x)
{
    if (flags >> 2 * axis & 1) return fsi__axis(walls->lo, axis);
    return flags >> 2 * axis & 2 ? fsi__axis(walls->hi, axis) : x;
}

/* Where a vertex goes that is at x. */
static fsi_vec3 fsi__fr_to_walls(const fsi_front *f, uint32_t flags, fsi_vec3 x)
{
    const fsi_box3 *walls = &f->desc.walls;
    return fsi_v3(fsi__fr_on_wall(walls, flags, 0, x.x), fsi__fr_on_wall(walls, flags, 1, x.y),
        f->dim == 3 ? fsi__fr_on_wall(walls, flags, 2, x.z) : 0);
}

/* Is a place, or a speed, one that a step can work with? */
static int fsi__fr_is_within(fsi_vec3 x, double most)
{
    return fabs((double)x.x) + fabs((double)x.y) + fabs((double)x.z) <= most;
}

static int fsi__fr_is_far(const void *arg, int i)
{
    const fsi_front *f = (const fsi_front *)arg;
    const double most = FSI__FR_FARTHEST * (double)f->desc.length;
    const fsi_vec3 to_walls = fsi_v3_sub(fsi__fr_to_walls(f, f->flags[i], f->position[i]), f->position[i]);
    return !fsi__fr_is_within(f->position[i], most) || !fsi__fr_is_within(f->velocity[i], FSI__FR_FASTEST)
        || !fsi__fr_is_within(to_walls, (double)f->desc.length);
}

/* Of the mesh that is worked on: has a vertex left the places that have points of the lattice? */
static int fsi__fr_is_gone(const void *arg, int i)
{
    const fsi__fr_mesh *m = (const fsi__fr_mesh *)arg;
    return !fsi__fr_is_within(m->x[i], FSI__FR_FARTHEST * m->length);
}

static int fsi__fr_has_excess(const void *arg, int i)
{
    const fsi_front *f = (const fsi_front *)arg;
    const int n = f->desc.attribute_count;
    int j, bad = 0;
    for (j = 0; j < n; j++) bad |= !(fabs((double)f->attribute[(size_t)i * (size_t)n + (size_t)j]) <= FSI__FR_MOST);
    return bad;
}

static fsi_status fsi__fr_check_content(const fsi_front *f, const char *fn)
{
    int i;
    if (fsi__count_where(f->context, f->vertex_count, fsi__fr_is_far, f, &i) > 0) {
        const int nan = !fsi_v3_is_finite(f->position[i]) || !fsi_v3_is_finite(f->velocity[i]);
        return fsi__fail(f->context, nan ? FSI_ERROR_NAN : FSI_ERROR_LIMIT, fn, i, 0,
            nan ? "position or velocity of vertex %d is not finite"
                : "vertex %d is too far away, too fast, or desc.length from a wall that it has the flag of", i);
    }
    if (f->desc.attribute_count > 0 && fsi__count_where(f->context, f->vertex_count, fsi__fr_has_excess, f, &i) > 0)
        return fsi__fail(f->context, FSI_ERROR_NAN, fn, i, 0,
            "an attribute of vertex %d is not finite, or above 1e30", i);
    return FSI_OK;
}

typedef struct fsi__fr_motion { fsi_front *f; fsi__fr_mesh *m; fsi_real dt; } fsi__fr_motion;

static void fsi__fr_move_task(void *arg, int chunk, int begin, int end)
{
    const fsi__fr_motion *job = (const fsi__fr_motion *)arg;
    fsi__fr_mesh *m = job->m;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++)
        m->x[i] = fsi__fr_to_walls(job->f, m->flags[i], fsi_v3_madd(m->x[i], job->dt, m->v[i]));
}

/* The rows of one mesh into another, which has room for them. */
static void fsi__fr_copy(fsi__fr_mesh *to, const fsi__fr_mesh *from)
{
    const size_t v = (size_t)from->nv, t = (size_t)from->nt, k = (size_t)from->k;
    to->nv = from->nv;
    to->nt = from->nt;
    to->next_id = from->next_id;
    memcpy(to->x, from->x, v * sizeof *to->x);
    memcpy(to->v, from->v, v * sizeof *to->v);
    memcpy(to->flags, from->flags, v * sizeof *to->flags);
    memcpy(to->id, from->id, v * sizeof *to->id);
    memcpy(to->star, from->star, v * sizeof *to->star);
    if (from->attributes > 0) memcpy(to->a, from->a, v * (size_t)from->attributes * sizeof *to->a);
    memcpy(to->corner, from->corner, t * k * sizeof *to->corner);
    memcpy(to->twin, from->twin, t * k * sizeof *to->twin);
    memcpy(to->piece, from->piece, t * sizeof *to->piece);
}

/* Volume, area and elements of pieces, each about a vertex of its own; the quality of all. Room: reserve_survey. */
static fsi__fr_quality fsi__fr_sum_pieces(fsi__fr_impl *im, const fsi__fr_mesh *m, fsi_front_piece *piece, int pieces)
{
    const fsi__fr_part *part = im->survey.part;
    fsi__fr_quality q;
    int i, t, left = pieces;
    for (i = 0; i < pieces; i++) {
        piece[i].volume = piece[i].area = 0;
        piece[i].element_count = 0;
    }

    /* A point of each piece, then all elements. */
    for (t = 0; t < m->nt && left > 0; t++) {
        if (m->corner[m->k * t] < 0 || piece[m->piece[t]].element_count) continue;
        piece[m->piece[t]].element_count = 1;
        im->about[m->piece[t]] = m->x[m->corner[m->k * t]];
        left--;
    }
    im->survey.about = im->about;
    q = fsi__fr_measure(m, &im->survey);
    for (i = 0; i < pieces; i++) piece[i].element_count = 0;
    for (t = 0; t < m->nt; t++) {
        fsi_front_piece *p;
        if (m->corner[m->k * t] < 0) continue;
        p = &piece[m->piece[t]];
        p->volume += part[t].volume;
        p->area += part[t].area;
        p->element_count++;
    }
    return q;
}

/* length^dim */
static double fsi__fr_unit_volume(const fsi_front *f)
{
    const double l = (double)f->desc.length;
    return f->dim == 3 ? l * l * l : l * l;
}

/* Amounts and momentum of the vertices of pieces that will be gone. */
static void fsi__fr_book_small(const fsi__fr_impl *im, double least, fsi_front_stats *stats)
{
    const fsi__fr_mesh *m = &im->work;
    int v, i;
    for (v = 0; v < m->nv; v++) {
        double area;
        if (m->star[v] < 0 || fabs(im->sum[fsi__fr_piece_of(m, v)].before) >= least) continue;
        area = fsi__fr_vertex_area(m, v);
        for (i = 0; i < 3; i++) stats->removed_momentum[i] += area * (double)fsi__axis(m->v[v], i);
        for (i = 0; i < m->attributes; i++)
            stats->removed_amount[i] += (double)m->a[(size_t)v * (size_t)m->attributes + (size_t)i];
    }
}

/* Pieces that have less volume than desc.piece_min, with what they will be given back: their rows are gone, what they
   had is booked. */
static void fsi__fr_remove_small(fsi_front *f, fsi__fr_impl *im, fsi_front_stats *stats)
{
    fsi__fr_mesh *m = &im->work;
    const double least = (double)f->desc.piece_min * fsi__fr_unit_volume(f);
    int t, i, c, small_ones = 0;
    for (i = 0; i < im->pieces; i++) {
        if (fabs(im->sum[i].before) >= least) continue;
        small_ones++;
        stats->removed_volume += im->sum[i].before;
    }
    stats->removed_pieces += small_ones;
    if (small_ones > 0) fsi__fr_book_small(im, least, stats);
    for (t = 0; t < m->nt && small_ones > 0; t++) {
        if (m->corner[m->k * t] < 0 || fabs(im->sum[m->piece[t]].before) >= least) continue;
        for (c = 0; c < m->k; c++) {
            m->star[m->corner[m->k * t + c]] = -1;
            m->corner[m->k * t + c] = -1;
        }
    }
}

/* ---- topology ---------------------------------------------------------------------------------------------------- */

static int fsi__fr_may_change(void *owner, int gap, int a, int b, fsi_vec3 place)
{
    const fsi_front *f = (const fsi_front *)owner;
    const fsi__fr_impl *im = (const fsi__fr_impl *)f->impl;
    fsi_front_event e;
    memset(&e, 0, sizeof e);
    e.kind = gap || (a != b && im->work_piece[a].volume > 0 && im->work_piece[b].volume > 0) ? FSI_FRONT_MERGE
        : FSI_FRONT_PINCH; /* two drops are no sheet of liquid: they overlap */
    e.piece[0] = im->work_piece[a].id;
    e.piece[1] = im->work_piece[b].id;
    e.place = place;
    return f->desc.ask(f->desc.ask_user, &e);
}

static int fsi__fr_label(const fsi__fr_mesh *m, int *label, int *queue);
static fsi_status fsi__fr_reserve_pieces(fsi_front *f, int rows, const char *fn);
static fsi_status fsi__fr_reserve_survey(fsi__fr_impl *im, const fsi__fr_mesh *m, const char *fn);

static int fsi__fr_group_of(fsi__fr_share *s, int i)
{
    while (s[i].group != i) i = s[i].group = s[s[i].group].group;
    return i;
}

/* Numbers of the parts that elements are in now, in the order of ids: the first part with elements of a piece keeps its
   id, others have new ones. Groups of pieces before and parts after that share elements. */
static fsi_status fsi__fr_name_parts(fsi__fr_impl *im, int parts, const char *fn)
{
    fsi__fr_mesh *m = &im->work;
    fsi__fr_share *s = im->share;
    const int pieces = im->pieces;
    int *label = m->bucket, t, i, seen = 0;
    for (i = 0; i < pieces + parts; i++) {
        memset(&s[i], 0, sizeof s[i]);
        s[i].group = i;
    }

    /* Element by element, then parts in the order of ids. */
    m->count = 0;
    for (t = 0; t < m->nt; t++) {
        int a, b;
        if (m->corner[m->k * t] < 0) continue;
        if (label[t] == seen) { /* the first element of a part */
            fsi__fr_share *old = &s[m->piece[t]];
            const uint32_t id = old->place ? im->work_next_piece++ : im->work_piece[m->piece[t]].id;
            old->place = 1;
            FSI__TRY(fsi__fr_add(m, (double)id, seen++, fn));
        }
        a = fsi__fr_group_of(s, m->piece[t]);
        b = fsi__fr_group_of(s, pieces + label[t]);
        if (a < b) s[b].group = a;
        else s[a].group = b;
    }
    FSI__TRY(fsi__fr_sort(m, fn));
    for (i = 0; i < parts; i++) s[pieces + m->list[i].at].place = i;
    return FSI_OK;
}

/* Pieces as they are after a change. Each group keeps its volume: parts share what is missing by their own. What is
   left of nothing is booked as removed. */
static fsi_status fsi__fr_take_parts(fsi_front *f, fsi__fr_impl *im, fsi_front_stats *stats, const char *fn)
{
    fsi__fr_mesh *m = &im->work;
    const int pieces = im->pieces, parts = fsi__fr_label(m, m->bucket, m->next);
    fsi__fr_share *s;
    int i, t;
    if (pieces + parts > im->share_room)
        FSI__TRY(fsi__room_in(f->context, &im->share, sizeof *im->share, 0, &im->share_room, pieces + parts, fn));
    FSI__TRY(fsi__fr_reserve_pieces(f, parts, fn));
    FSI__TRY(fsi__fr_reserve_survey(im, m, fn));
    FSI__TRY(fsi__fr_name_parts(im, parts, fn));
    s = im->share;
    for (i = 0; i < pieces; i++) {
        fsi__fr_share *g = &s[fsi__fr_group_of(s, i)];
        g->count[0]++;
        g->before += im->sum[i].before - im->work_piece[i].owed;
        g->moved += im->work_piece[i].moved;
        g->owed += im->work_piece[i].owed;
    }

    /* The parts, and their volumes. */
    for (t = 0; t < m->nt; t++)
        if (m->corner[m->k * t] >= 0) m->piece[t] = s[pieces + m->bucket[t]].place;
    memset(im->work_piece, 0, (size_t)parts * sizeof *im->work_piece);
    for (i = 0; i < parts; i++) im->work_piece[i].id = (uint32_t)m->list[i].key;
    im->pieces = parts;
    fsi__fr_sum_pieces(im, m, im->work_piece, parts);
    for (i = 0; i < parts; i++) {
        fsi__fr_share *g = &s[fsi__fr_group_of(s, pieces + m->list[i].at)];
        g->count[1]++;
        g->after += im->work_piece[i].volume;
        g->size += fabs(im->work_piece[i].volume);
    }
    for (i = 0; i < parts; i++) {
        const fsi__fr_share *g = &s[fsi__fr_group_of(s, pieces + m->list[i].at)];
        const double part = g->size > 0 ? fabs(im->work_piece[i].volume) / g->size : 0, more = g->before - g->after;
        im->moved[i] = fabs(more) > 1e-14 * g->size ? -more * part : 0;
        im->work_piece[i].moved = g->moved * part;
        im->work_piece[i].owed = g->owed * part;
        im->sum[i].before = im->work_piece[i].volume - im->moved[i] + im->work_piece[i].owed;
    }

    /* Events. */
    for (i = 0; i < pieces + parts; i++) {
        if (s[i].group != i) continue;
        if (s[i].count[1] == 0) {
            stats->removed_pieces += s[i].count[0];
            stats->removed_volume += s[i].before + s[i].owed;
        } else if (s[i].count[0] > s[i].count[1]) stats->merges += s[i].count[0] - s[i].count[1];
        else stats->pinches += s[i].count[1] - s[i].count[0];
    }
    return FSI_OK;
}

/* Sheets that are close merge, necks pinch off. */
static fsi_status fsi__fr_change_topology(fsi_front *f, fsi__fr_impl *im, fsi_front_stats *stats, const char *fn)
{
    fsi__frt *t = &im->topology;
    if (!f->desc.topology) return FSI_OK;
    t->dx = (double)(f->desc.topology_dx > 0 ? f->desc.topology_dx : 2 * f->desc.length);
    t->ask = f->desc.ask ? fsi__fr_may_change : NULL;
    t->owner = f;
    FSI__TRY(fsi__frt_change(t, &im->work, im->pieces, fn));
    stats->places = t->places;
    stats->whole_places = t->whole;
    stats->failed_places = t->failed;
    stats->forbidden_places = t->forbidden;
    stats->resampled_cells = t->cells;
    memcpy(stats->removed_amount, t->lost_amount, sizeof stats->removed_amount);
    memcpy(stats->removed_momentum, t->lost_momentum, sizeof stats->removed_momentum);
    return t->places > 0 ? fsi__fr_take_parts(f, im, stats, fn) : FSI_OK;
}

/* ---- volume ------------------------------------------------------------------------------------------------------ */

/* dV/dx of all vertices, as far as they may move: fsi__fr_gradient, element by element. */
static void fsi__fr_gradients(fsi__fr_impl *im)
{
    const fsi__fr_mesh *m = &im->work;
    int t, i;
    memset(im->shift, 0, (size_t)m->nv * sizeof *im->shift);
    for (t = 0; t < m->nt; t++) {
        const int *c = m->corner + m->k * t;
        fsi__d3 n, d;
        if (c[0] < 0 || !(fabs(im->sum[m->piece[t]].shift) > 0)) continue;
        if (m->k == 3) n = fsi__d3_scale(fsi__fr_cross(m->x[c[0]], m->x[c[1]], m->x[c[2]]), 1.0 / 6);
        else {
            d = fsi__d3_diff(m->x[c[1]], m->x[c[0]]);
            n = fsi__d3_make(-d.y / 2, d.x / 2, 0);
        }
        for (i = 0; i < m->k; i++) im->shift[c[i]] = fsi_v3_add(im->shift[c[i]], fsi__d3_real(n));
    }
}

/* A coordinate that goes from x to y stays gap before the walls lo and hi, or where it was. */
static fsi_real fsi__fr_before_walls(fsi_real lo, fsi_real hi, fsi_real gap, fsi_real x, fsi_real y)
{
    const fsi_real least = fsi_min(x, lo + gap), most = fsi_max(x, hi - gap);
    return y < least ? least : y > most ? most : y;
}

/* The same for a vertex, along axes where it lies on no wall. */
static fsi_vec3 fsi__fr_keep_before_walls(const fsi_front *f, uint32_t flags, fsi_vec3 x, fsi_vec3 y)
{
    const fsi_box3 *w = &f->desc.walls;
    const fsi_real gap = (fsi_real)0.05 * f->desc.length;
    return fsi_v3(flags & 3 ? y.x : fsi__fr_before_walls(w->lo.x, w->hi.x, gap, x.x, y.x),
        flags & 12 ? y.y : fsi__fr_before_walls(w->lo.y, w->hi.y, gap, x.y, y.y),
        flags & 48 ? y.z : fsi__fr_before_walls(w->lo.z, w->hi.z, gap, x.z, y.z));
}

/* Along the normals n = g/|g|, g = dV/dx, by s: dV = s sum |g| to first order. sum.shift is the dV that is wanted; a
   tenth of an edge is the most. None goes through a wall. */
static void fsi__fr_shift(const fsi_front *f, fsi__fr_impl *im)
{
    fsi__fr_mesh *m = &im->work;
    const double most = 0.1 * m->length;
    int i;
    fsi__fr_gradients(im);
    for (i = 0; i < im->pieces; i++) im->sum[i].slope = 0;
    for (i = 0; i < m->nv; i++) {
        const uint32_t flags = m->flags[i];
        if (m->star[i] < 0) continue;
        im->shift[i] = flags & FSI_FRONT_FIXED ? fsi_v3(0, 0, 0)
            : fsi__d3_real(fsi__fr_along_walls(flags, fsi__d3_of(im->shift[i])));
        im->sum[fsi__fr_piece_of(m, i)].slope += fsi__d3_norm(fsi__d3_of(im->shift[i]));
    }
    for (i = 0; i < im->pieces; i++) {
        const double s = im->sum[i].slope > fsi__fr_tiny(m) ? im->sum[i].shift / im->sum[i].slope : 0;
        im->sum[i].shift = s > most ? most : s < -most ? -most : s;
    }
    for (i = 0; i < m->nv; i++) {
        const fsi__d3 g = fsi__d3_of(im->shift[i]);
        const double n = fsi__d3_norm(g);
        if (!(n > fsi__fr_tiny(m))) continue;
        m->x[i] = fsi__fr_keep_before_walls(f, m->flags[i], m->x[i],
            fsi__d3_real(fsi__d3_madd(fsi__d3_of(m->x[i]), im->sum[fsi__fr_piece_of(m, i)].shift / n, g)));
    }
}

/* What a piece has less than it should, and what of it is worth another shift: nothing less than rounding. That stays
   owed, or it would add up over steps. */
static double fsi__fr_missing(const fsi__fr_impl *im, int i)
{
    return im->work_piece[i].element_count > 0 ? im->sum[i].before - im->work_piece[i].volume : 0;
}
static double fsi__fr_worth(const fsi__fr_impl *im, int i, double missing)
{
    const double size = fabs(im->sum[i].before) + 0.1 * im->work_piece[i].area * im->work.length;
    return fabs(missing) > 512 * (double)FSI_REAL_EPS * size ? missing : 0;
}

/* Volumes become what they were before remeshing: by what was booked, then by what a sum of all elements shows. What
   was owed before and is rounding alone waits for the next change: a step that changes nothing leaves all bits as they
   are. Ends with the quality of the mesh. */
static fsi__fr_quality fsi__fr_give_back(const fsi_front *f, fsi__fr_impl *im)
{
    fsi__fr_quality q;
    int round, i, left = 0;
    for (i = 0; i < im->pieces; i++) {
        const double due = im->work_piece[i].owed - im->moved[i];
        const int changed = i >= f->piece_count || im->work_piece[i].owed != f->piece[i].owed || im->moved[i] != 0;
        im->sum[i].shift = !f->desc.keep_volume ? 0 : changed ? due : fsi__fr_worth(im, i, due);
        left += fabs(im->sum[i].shift) > 0;
    }
    for (round = 0;; round++) {
        if (left > 0) fsi__fr_shift(f, im);
        q = fsi__fr_sum_pieces(im, &im->work, im->work_piece, im->pieces);
        if (left == 0 || round == 7) return q;
        for (i = left = 0; i < im->pieces; i++) {
            im->sum[i].shift = fsi__fr_worth(im, i, fsi__fr_missing(im, i));
            left += fabs(im->sum[i].shift) > 0;
        }
        if (left == 0) return q;
    }
}

/* The first element that crosses or touches another, and that one; -1: none. Error: MEMORY. */
typedef struct fsi__fr_pair { int element, other; } fsi__fr_pair;
static fsi_status fsi__fr_find_pair(fsi__fr_mesh *m, fsi__fr_pair *p, const char *fn)
{
    p->element = p->other = -1;
    return m->crossings ? fsi__fr_find_crossing(m, &p->element, &p->other, fn) : FSI_OK;
}

/* Error: MESH, where there is one. */
static fsi_status fsi__fr_refuse_pair(const fsi__fr_mesh *m, fsi__fr_pair p, const char *fn)
{
    const fsi_vec3 *x;
    if (p.element < 0) return FSI_OK;
    x = &m->x[m->corner[m->k * p.element]];
    return fsi__fail(m->context, FSI_ERROR_MESH, fn, p.element, p.other,
        "the surface crosses or touches itself, at elements %d and %d, near (%g, %g, %g)", p.element, p.other,
        (double)x->x, (double)x->y, (double)x->z);
}
static fsi_status fsi__fr_refuse_crossings(fsi__fr_mesh *m, const char *fn)
{
    fsi__fr_pair p;
    FSI__TRY(fsi__fr_find_pair(m, &p, fn));
    return fsi__fr_refuse_pair(m, p, fn);
}

/* Gives volumes back as far as the surface does not cross itself: else a quarter of the shift, or none, and the rest is
   owed. pair: elements that meet without a shift, too. Room: reserve_commit. Errors: LIMIT, MEMORY. */
static fsi_status fsi__fr_settle_volume(fsi_front *f, fsi__fr_impl *im, fsi_front_stats *stats, fsi__fr_quality *q,
    fsi__fr_pair *pair, const char *fn)
{
    const double begin = fsi__now(f->context);
    fsi__fr_mesh *m = &im->work;
    int part, i;
    memcpy(im->unshifted, m->x, (size_t)m->nv * sizeof *m->x);
    *q = fsi__fr_give_back(f, im);
    stats->seconds_volume = fsi__now(f->context) - begin;
    for (part = 0; part < 3; part++) {
        FSI__TRY(fsi__fr_find_pair(m, pair, fn));
        if (pair->element < 0 || part == 2 || !f->desc.keep_volume) break;
        for (i = 0; i < m->nv; i++)
            m->x[i] = part ? im->unshifted[i]
                : fsi_v3_madd(im->unshifted[i], (fsi_real)0.25, fsi_v3_sub(m->x[i], im->unshifted[i]));
        *q = fsi__fr_sum_pieces(im, m, im->work_piece, im->pieces);
        stats->not_kept = 1;
    }
    for (i = 0; i < im->pieces && f->desc.keep_volume; i++) im->work_piece[i].owed = fsi__fr_missing(im, i);
    return FSI_OK;
}

static int64_t *fsi__fr_part_of(fsi__fr_int3 *p, int axis) { return axis == 0 ? &p->x : axis == 1 ? &p->y : &p->z; }

/* How a half line from p along an axis crosses an element: 1 out of the volume, -1 into it, 0 not at all. Exact, for p
   moved as fsi__fr_side_moved has it: p is on one side of the planes through edges and the axis, as seen along this,
   and before the element. A segment has its first corner again, moved along z: its normal points into the volume. */
static int fsi__fr_pierces(const fsi__fr_mesh *m, int t, fsi__fr_int3 p, int axis)
{
    const int *c = m->corner + m->k * t;
    fsi__fr_int3 x[3];
    int i, side = 0, ahead = 1;
    for (i = 0; i < 3; i++) {
        x[i] = fsi__fr_snap(m->x[c[i < m->k ? i : 0]], m->length);
        x[i].z += i == m->k;
        ahead &= *fsi__fr_part_of(&x[i], axis) > *fsi__fr_part_of(&p, axis);
    }

    /* On which side of each edge? */
    for (i = 0; i < 3; i++) {
        fsi__fr_int3 up = x[i], q = p;
        int s;
        *fsi__fr_part_of(&up, axis) += FSI__FR_REACH / 4;
        *fsi__fr_part_of(&q, axis) = *fsi__fr_part_of(&x[i], axis);
        s = fsi__fr_side_moved(x[i], x[(i + 1) % 3], up, q);
        if (s == 0 || (i > 0 && s != side)) return 0;
        side = s;
    }
    if (!ahead && fsi__fr_side_moved(x[0], x[1], x[2], p) != side) return 0;
    return m->k == 3 ? -side : side;
}

/* Winding numbers of the others around a point of each piece: half lines along one axis meet the sheets that
   find_crossing has made. Points are sorted along another axis: a sheet looks at those between its ends. Error:
   MEMORY. */
static fsi_status fsi__fr_find_windings(const fsi__fr_impl *im, fsi__fr_mesh *m, const fsi_front_piece *piece,
    int pieces, const char *fn)
{
    const int axis = fsi__fr_sparse_axis(m), along = (axis + 1) % m->k;
    fsi__fr_sum *sum = im->sum;
    int i, c, e;
    m->count = 0;
    for (i = 0; i < pieces; i++) {
        sum[i].winding = 0;
        if (piece[i].element_count > 0) FSI__TRY(fsi__fr_add(m, (double)fsi__axis(im->about[i], axis), i, fn));
    }
    FSI__TRY(fsi__fr_sort(m, fn));

    /* Points whose half lines may meet the sheet. */
    for (c = 0; c < m->sheets && m->count > 1; c++) {
        const fsi__fr_sheet *s = &m->sheet[c];
        int at = fsi__fr_first(m, (double)s->box.lo[axis]);
        for (; at < m->count && m->list[at].key <= (double)s->box.hi[axis]; at++) {
            const fsi_vec3 p = im->about[m->list[at].at];
            const int third = m->k - axis - along;
            i = m->list[at].at;
            if (i == m->piece[m->next[s->begin]] || (double)fsi__axis(p, along) > (double)s->box.hi[along]
                || (m->k == 3 && ((double)fsi__axis(p, third) > (double)s->box.hi[third]
                    || (double)fsi__axis(p, third) < (double)s->box.lo[third]))) continue;
            for (e = s->begin; e < s->begin + s->count; e++)
                sum[i].winding += fsi__fr_pierces(m, m->next[e], fsi__fr_snap(p, m->length), along);
        }
    }
    return FSI_OK;
}

/* A piece lies inside of as many others as the winding number of these says at one of its vertices: 0, then its volume
   is positive, or 1, then it is a cavity. Errors: MESH, MEMORY. m: `work`, after refuse_crossings; piece: summed. */
static fsi_status fsi__fr_check_sides(const fsi__fr_impl *im, fsi__fr_mesh *m, const fsi_front_piece *piece, int pieces,
    const char *fn)
{
    int i, t = 0;
    if (!m->crossings) return FSI_OK;
    FSI__TRY(fsi__fr_find_windings(im, m, piece, pieces, fn));
    for (i = 0; i < pieces; i++) {
        const int winding = im->sum[i].winding;
        if (piece[i].element_count == 0) continue; /* removed */
        if (piece[i].volume > 0 ? winding == 0 : winding == 1 && piece[i].volume < 0) continue;
        while (m->corner[m->k * t] < 0 || m->piece[t] != i) t++;
        return fsi__fail(m->context, FSI_ERROR_MESH, fn, t, piece[i].volume,
            "the piece of element %d is inside out: it lies %s, with a volume of %g", t,
            winding > 0 ? "in the volume of another" : "outside of all others", piece[i].volume);
    }
    return FSI_OK;
}

/* Pointers and counts that the caller sees. */
static void fsi__fr_publish(fsi_front *f)
{
    fsi__fr_impl *im = (fsi__fr_impl *)f->impl;
    const fsi__fr_mesh *m = &im->now;
    f->vertex_count = m->nv;
    f->element_count = m->nt;
    f->position = m->x;
    f->velocity = m->v;
    f->flags = m->flags;
    f->attribute = f->desc.attribute_count > 0 ? m->a : NULL;
    f->id = m->id;
    f->elements = m->corner;
    f->piece_of = m->piece;
    f->piece = im->piece;
}

/* The rows of `work` that are not gone become `now`, in their order; the caller has made room. */
static void fsi__fr_take_rows(fsi_front *f, fsi__fr_impl *im)
{
    const fsi__fr_mesh *w = &im->work;
    fsi__fr_mesh *m = &im->now;
    const size_t n = (size_t)m->attributes;
    const int k = m->k, scale = k == 3 ? 3 : 1;
    int *vertex = im->renumber, *element = vertex + w->nv, *piece = element + w->nt;
    int i, c, nv = 0, nt = 0, np = 0;

    /* New numbers. */
    for (i = 0; i < w->nv; i++) vertex[i] = w->star[i] < 0 ? -1 : nv++;
    for (i = 0; i < w->nt; i++) element[i] = w->corner[k * i] < 0 ? -1 : nt++;
    for (i = 0; i < im->pieces; i++) {
        piece[i] = np;
        if (im->work_piece[i].element_count > 0) im->piece[np++] = im->work_piece[i];
    }

    /* Rows. */
    for (i = 0; i < w->nv; i++) {
        const int to = vertex[i];
        if (to < 0) continue;
        m->x[to] = w->x[i];
        m->v[to] = w->v[i];
        m->flags[to] = w->flags[i];
        m->id[to] = w->id[i];
        m->star[to] = scale * element[w->star[i] / scale] + w->star[i] % scale;
        if (n > 0) memcpy(m->a + (size_t)to * n, w->a + (size_t)i * n, n * sizeof *m->a);
    }
    for (i = 0; i < w->nt; i++) {
        const int to = element[i];
        if (to < 0) continue;
        m->piece[to] = piece[w->piece[i]];
        for (c = 0; c < k; c++) {
            const int h = w->twin[k * i + c];
            m->corner[k * to + c] = vertex[w->corner[k * i + c]];
            m->twin[k * to + c] = k == 3 ? 3 * element[h / 3] + h % 3 : element[h];
        }
    }
    m->nv = nv;
    m->nt = nt;
    m->next_id = w->next_id;
    f->piece_count = np;
}

static void fsi__fr_fill_stats(fsi_front *f, fsi__fr_quality q, fsi_front_stats *s)
{
    int i;
    s->vertices = f->vertex_count;
    s->elements = f->element_count;
    s->pieces = f->piece_count;
    s->longest = q.longest;
    s->shortest = q.shortest;
    s->smallest_angle = f->dim == 2 ? 180 : fsi_atan2(q.thinnest, sqrt(1 - q.thinnest * q.thinnest)) * 180 / FSI_PI;
    s->long_edges = q.long_edges;
    s->short_edges = q.short_edges;
    s->thin = q.thin;
    for (i = 0; i < f->piece_count; i++) {
        s->volume += f->piece[i].volume;
        s->area += f->piece[i].area;
        s->owed += f->piece[i].owed;
    }
    fsi__d3_put(s->momentum, q.momentum);
    s->bytes = f->context->bytes;
    s->allocs = f->context->allocs;
}

/* Room to measure a mesh. */
static fsi_status fsi__fr_reserve_survey(fsi__fr_impl *im, const fsi__fr_mesh *m, const char *fn)
{
    fsi__fr_survey *s = &im->survey;
    const int chunks = fsi__chunks(m->nt, FSI__FR_GRAIN);
    if (m->nt > im->part_room)
        FSI__TRY(fsi__room_in(m->context, &s->part, sizeof *s->part, 0, &im->part_room, m->nt, fn));
    if (chunks > im->chunk_room)
        FSI__TRY(fsi__room_in(m->context, &s->chunk, sizeof *s->chunk, 0, &im->chunk_room, chunks, fn));
    return FSI_OK;
}

/* Room for what the step has made; then nothing can fail. */
static fsi_status fsi__fr_reserve_commit(fsi_front *f, fsi__fr_impl *im, const char *fn)
{
    const long long rows = (long long)im->work.nv + im->work.nt + im->pieces;
    const fsi__column vertex[] = {
        { (void **)(void *)&im->shift, sizeof *im->shift }, { (void **)(void *)&im->unshifted, sizeof *im->unshifted }
    };
    const fsi_status status = fsi__fr_reserve(&im->now, im->work.nv, im->work.nt, fn);
    fsi__fr_publish(f); /* arrays may have moved */
    FSI__TRY(status);
    FSI__TRY(fsi__fr_reserve_survey(im, &im->work, fn));
    if (rows > 0x7fffffff)
        return fsi__fail(f->context, FSI_ERROR_LIMIT, fn, -1, (double)rows, "the surface is too large");
    if (rows > im->renumber_room)
        FSI__TRY(fsi__room_in(f->context, &im->renumber, sizeof *im->renumber, 0, &im->renumber_room, (int)rows, fn));
    if (im->work.nv > im->shift_room)
        FSI__TRY(fsi__room(f->context, vertex, 2, 0, &im->shift_room, im->work.nv, fn));
    return FSI_OK;
}

/* Motion into `work`, volumes after it, and the most by which it changed one. Errors: LIMIT, MEMORY. */
static fsi_status fsi__fr_move(fsi_front *f, fsi_real dt, double *drift, const char *fn)
{
    fsi__fr_impl *im = (fsi__fr_impl *)f->impl;
    fsi__fr_motion motion;
    int i;
    FSI__TRY(fsi__fr_reserve(&im->work, im->now.nv, im->now.nt, fn));
    FSI__TRY(fsi__fr_reserve_survey(im, &im->now, fn));
    fsi__fr_copy(&im->work, &im->now);
    motion.f = f;
    motion.m = &im->work;
    motion.dt = dt;
    fsi__parallel_work(f->context, im->work.nv, 4096, 5.0 * im->work.nv, fsi__fr_move_task, &motion);
    if (fsi__count_where(f->context, im->work.nv, fsi__fr_is_gone, &im->work, &i) > 0)
        return fsi__fail(f->context, FSI_ERROR_LIMIT, fn, i, (double)dt,
            "vertex %d would be too far away, more than 1e9 desc.length from the origin", i);

    /* Pieces as they are then. */
    im->pieces = f->piece_count;
    memcpy(im->work_piece, im->piece, (size_t)im->pieces * sizeof *im->piece);
    im->survey.volumes_alone = 1;
    fsi__fr_sum_pieces(im, &im->work, im->work_piece, im->pieces);
    im->survey.volumes_alone = 0;
    for (i = 0; i < im->pieces; i++) {
        const double moved = im->work_piece[i].volume - f->piece[i].volume;
        *drift = fabs(moved) > *drift ? fabs(moved) : *drift;
        if (f->desc.keep_volume == 2) im->work_piece[i].owed -= moved;
        im->sum[i].before = im->work_piece[i].volume + im->work_piece[i].owed;
        im->moved[i] = 0;
    }
    return FSI_OK;
}

/* What of a desc may be written between steps; length and crossings, which these are compared with, may not. */
static fsi_status fsi__fr_check_switches(fsi_context *context, const fsi_front_desc *d, const char *fn)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_front_desc, keep_volume, FSI__INT, 0, 2, 0),
        FSI__FIELD(fsi_front_desc, topology, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_front_desc, topology_dx, FSI__REAL, 0, 3e9, 0)
    };
    const fsi__where at = { fn, "desc.", -1, 3 };
    FSI__TRY(FSI__CHECK_TABLE(context, &at, d, rows));
    if (d->topology_dx > 0 && !(d->topology_dx >= d->length && d->topology_dx <= 3 * d->length))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, (double)d->topology_dx,
            "desc.topology_dx is %g, must be 1 to 3 desc.length", (double)d->topology_dx);
    if (d->topology && !d->crossings)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0,
            "desc.topology is 1 with desc.crossings 0: what is inside is not known then");
    return FSI_OK;
}

FSI_API fsi_status fsi_front_step(fsi_front *f, fsi_real dt)
{
    static const char fn[] = "fsi_front_step";
    fsi__fr_impl *im;
    fsi_front_stats stats;
    fsi__fr_quality quality;
    fsi__fr_pair pair;
    double clock[6];
    int i;
    FSI__TRY(fsi__fr_check(f));
    im = (fsi__fr_impl *)f->impl;
    FSI__TRY(fsi__check_dt(f->context, dt, fn));
    FSI__TRY(fsi__fr_check_switches(f->context, &f->desc, fn));
    FSI__TRY(fsi__fr_check_content(f, fn));
    memset(&stats, 0, sizeof stats);

    /* Motion, topology, remeshing. */
    clock[0] = fsi__now(f->context);
    FSI__TRY(fsi__fr_move(f, dt, &stats.drift, fn));
    clock[1] = fsi__now(f->context);
    im->work_next_piece = im->next_piece;
    FSI__TRY(fsi__fr_change_topology(f, im, &stats, fn));
    im->work.moved = im->moved;
    fsi__fr_remove_small(f, im, &stats);
    clock[2] = fsi__now(f->context);

    /* Remeshing, and the volume that it moved. */
    FSI__TRY(fsi__fr_remesh(&im->work, f->desc.rounds, fn));
    FSI__TRY(fsi__fr_reserve_commit(f, im, fn));
    clock[3] = fsi__now(f->context);
    for (i = 0; i < im->pieces; i++) {
        im->work_piece[i].moved += im->moved[i];
        stats.moved = fabs(im->moved[i]) > stats.moved ? fabs(im->moved[i]) : stats.moved;
    }
    FSI__TRY(fsi__fr_settle_volume(f, im, &stats, &quality, &pair, fn));
    FSI__TRY(fsi__fr_refuse_pair(&im->work, pair, fn));
    FSI__TRY(fsi__fr_check_sides(im, &im->work, im->work_piece, im->pieces, fn));
    clock[4] = fsi__now(f->context);

    /* Commit. */
    fsi__fr_take_rows(f, im);
    im->next_piece = im->work_next_piece;
    fsi__fr_publish(f);
    stats.splits = im->work.splits;
    stats.collapses = im->work.collapses;
    stats.flips = im->work.flips;
    stats.smoothed = im->work.smoothed;
    stats.refused = im->work.refused;
    stats.crossed = im->work.crossed;
    stats.rounds = im->work.rounds;
    fsi__fr_fill_stats(f, quality, &stats);
    clock[5] = fsi__now(f->context);
    stats.seconds_move = clock[1] - clock[0];
    stats.seconds_topology = clock[2] - clock[1];
    stats.seconds_remesh = clock[3] - clock[2];
    stats.seconds_crossings = clock[4] - clock[3] - stats.seconds_volume;
    stats.seconds_commit = clock[5] - clock[4];
    f->stats = stats;
    return FSI_OK;
}

/* ---- >>measures implementation ----------------------------------------------------------------------------------- */

FSI_API fsi_status fsi_front_measure(fsi_front *f)
{
    fsi__fr_impl *im;
    FSI__TRY(fsi__fr_check(f));
    im = (fsi__fr_impl *)f->impl;
    FSI__TRY(fsi__fr_reserve_survey(im, &im->now, "fsi_front_measure"));
    fsi__fr_sum_pieces(im, &im->now, im->piece, f->piece_count);
    return FSI_OK;
}

FSI_API fsi_status fsi__front_book(fsi_front *f)
{
    fsi__fr_impl *im = (fsi__fr_impl *)f->impl;
    int i;
    for (i = 0; i < f->piece_count; i++) im->piece[i].owed += im->piece[i].volume;
    FSI__TRY(fsi_front_measure(f));
    for (i = 0; i < f->piece_count; i++) im->piece[i].owed -= im->piece[i].volume;
    return FSI_OK;
}

FSI_API fsi_status fsi_front_cross_lines(fsi_front_lines *l, const fsi_front *f)
{
    static const char fn[] = "fsi_front_cross_lines";
    fsi__frl_surface s;
    if (!l) return FSI_ERROR_ARGUMENT;
    if (l->cookie != FSI__COOKIE('x', fsi_front_lines)) return FSI_ERROR_COOKIE;
    if (!f) return fsi__fail(l->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "the front is NULL");
    if (f->cookie != FSI__COOKIE('r', fsi_front)) return FSI_ERROR_COOKIE;
    if (f->dim != l->dim)
        return fsi__fail(l->context, FSI_ERROR_ARGUMENT, fn, -1, f->dim, "the front has dim %d, the lines have %d",
            f->dim, l->dim);
    s.dim = f->dim;
    s.vertex_count = f->vertex_count;
    s.element_count = f->element_count;
    s.position = f->position;
    s.elements = f->elements;
    return fsi__frl_cross(l, &s, fn);
}

typedef struct fsi__fr_query { const fsi__fr_mesh *m; fsi_vec3 *normal; fsi_real *out; } fsi__fr_query;

static fsi_status fsi__fr_ask(const fsi_front *f, fsi__range_fn *task, int count, fsi_vec3 *normal, fsi_real *out,
    const char *fn)
{
    fsi__fr_query q;
    FSI__TRY(fsi__fr_check(f));
    if (!normal && !out) return fsi__fail(f->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "out is NULL");
    q.m = &((const fsi__fr_impl *)f->impl)->now;
    q.normal = normal;
    q.out = out;
    fsi__parallel_work(f->context, count, 1024, 60.0 * count, task, &q);
    return FSI_OK;
}

static void fsi__fr_normal_task(void *arg, int chunk, int begin, int end)
{
    const fsi__fr_query *q = (const fsi__fr_query *)arg;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++) q->normal[i] = fsi__d3_real(fsi__d3_unit(fsi__fr_gradient(q->m, i)));
}

/* Adds the chord c to the normal equations of
       -2 n.c/|c|^2 = H + D cos(2 phi) + E sin(2 phi) + l t.c/|c|^2
   for H, D, E and the tilt t of the normal n over l, by the lower triangle of A and b; frame: two tangents, and n. */
#define FSI__FR_FIT 5

static void fsi__fr_add_chord(const fsi__d3 *frame, double l, fsi__d3 c, double *A, double *b)
{
    const double x = fsi__d3_dot(c, frame[0]), y = fsi__d3_dot(c, frame[1]), flat2 = x * x + y * y;
    const double c2 = fsi__d3_dot(c, c), bend = -2 * fsi__d3_dot(c, frame[2]);
    double row[FSI__FR_FIT];
    int i, j;
    if (!(flat2 > 0)) return;
    row[0] = 1;
    row[1] = (x * x - y * y) / flat2;
    row[2] = 2 * x * y / flat2;
    row[3] = l * x / c2;
    row[4] = l * y / c2;
    for (i = 0; i < FSI__FR_FIT; i++) { /* the weight is |c|^2 */
        b[i] += row[i] * bend;
        for (j = 0; j <= i; j++) A[FSI__FR_FIT * i + j] += row[i] * row[j] * c2;
    }
}

/* Mean curvature at a vertex. The chord c from it to a point of the surface has k = -2 n.c/|c|^2, k the curvature along
   c, to O(|c|^2) but for a part that is odd in c, and exactly on a ball. H, the mean of the principal curvatures, is
   fitted to the chords to the neighbours and to the vertices beyond the edges between these: it is exact on a ball, and
   elsewhere of second order, whatever the triangles are; cotangents converge on regular ones only. */
static double fsi__fr_fit_curvature(const fsi__fr_mesh *m, int vertex)
{
    double A[FSI__FR_FIT * FSI__FR_FIT], b[FSI__FR_FIT];
    fsi__d3 frame[3];
    int h = m->star[vertex], i;
    memset(A, 0, sizeof A);
    memset(b, 0, sizeof b);
    frame[2] = fsi__fr_round_normal(m, vertex);
    frame[0] = fsi__d3_unit(fabs(frame[2].x) < 0.7 ? fsi__d3_make(0, frame[2].z, -frame[2].y)
                                                   : fsi__d3_make(frame[2].z, 0, -frame[2].x));
    frame[1] = fsi__d3_cross(frame[2], frame[0]);

    /* The neighbours, and the vertices beyond the edges between them. */
    do {
        const int edge = fsi__fr_after(h), beside = m->corner[edge], beyond = m->corner[fsi__fr_before(m->twin[edge])];
        fsi__fr_add_chord(frame, m->length, fsi__d3_diff(m->x[beside], m->x[vertex]), A, b);
        if (beyond != vertex) fsi__fr_add_chord(frame, m->length, fsi__d3_diff(m->x[beyond], m->x[vertex]), A, b);
        h = m->twin[fsi__fr_before(h)];
    } while (h != m->star[vertex]);

    /* Where few directions exist D, E and t are as small as may be. */
    for (i = 1; i < FSI__FR_FIT; i++) A[(FSI__FR_FIT + 1) * i] += 1e-9 * A[0];
    if (fsi_dense_cholesky(NULL, FSI__FR_FIT, A) != FSI_OK || fsi_dense_cholesky_solve(FSI__FR_FIT, A, b) != FSI_OK)
        return 0;
    return b[0];
}

/* 2D: H n = sum (x - x_j)/length_j over the mean length. */
static double fsi__fr_curvature_at(const fsi__fr_mesh *m, int vertex)
{
    fsi__d3 d, e;
    double length;
    if (m->k == 3) return fsi__fr_fit_curvature(m, vertex);
    d = fsi__d3_diff(m->x[vertex], m->x[m->corner[2 * m->twin[2 * m->star[vertex]]]]);
    e = fsi__d3_diff(m->x[vertex], m->x[m->corner[2 * m->star[vertex] + 1]]);
    length = (fsi__d3_norm(d) + fsi__d3_norm(e)) / 2;
    d = fsi__d3_add(fsi__d3_unit(d), fsi__d3_unit(e));
    return length > 0 ? fsi__d3_dot(d, fsi__fr_round_normal(m, vertex)) / length : 0;
}

static void fsi__fr_curvature_task(void *arg, int chunk, int begin, int end)
{
    const fsi__fr_query *q = (const fsi__fr_query *)arg;
    int i;
    (void)chunk;
    for (i = begin; i < end; i++) q->out[i] = (fsi_real)fsi__fr_curvature_at(q->m, i);
}

static void fsi__fr_weight_task(void *arg, int chunk, int begin, int end)
{
    const fsi__fr_query *q = (const fsi__fr_query *)arg;
    const fsi__fr_mesh *m = q->m;
    int t, i;
    (void)chunk;
    for (t = begin; t < end; t++) {
        const double l = m->k == 2 ? fsi__fr_edge_length(m, t) : 0;
        for (i = 0; i < m->k; i++)
            q->out[m->k * t + i] = (fsi_real)(m->k == 3 ? fsi__fr_cot(m, 3 * t + i) / 2 : l > 0 ? 1 / l : 0);
    }
}

FSI_API fsi_status fsi_front_normals(const fsi_front *f, fsi_vec3 *out)
{
    return fsi__fr_ask(f, fsi__fr_normal_task, f ? f->vertex_count : 0, out, NULL, "fsi_front_normals");
}
FSI_API fsi_status fsi_front_curvature(const fsi_front *f, fsi_real *out)
{
    return fsi__fr_ask(f, fsi__fr_curvature_task, f ? f->vertex_count : 0, NULL, out, "fsi_front_curvature");
}
FSI_API fsi_status fsi_front_weights(const fsi_front *f, fsi_real *out)
{
    return fsi__fr_ask(f, fsi__fr_weight_task, f ? f->element_count : 0, NULL, out, "fsi_front_weights");
}

FSI__COLD_BEGIN

/* ---- create ------------------------------------------------------------------------------------------------------ */

FSI_API fsi_front_desc fsi_front_default_desc(void)
{
    fsi_front_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('r', fsi_front_desc);
    d.dim = 3;
    d.walls.lo = fsi_v3(-FSI_REAL_MAX, -FSI_REAL_MAX, -FSI_REAL_MAX);
    d.walls.hi = fsi_v3(FSI_REAL_MAX, FSI_REAL_MAX, FSI_REAL_MAX);
    d.smoothing = (fsi_real)0.2;
    d.volume_part = (fsi_real)0.02;
    d.keep_volume = 1;
    d.crossings = 1;
    d.piece_min = -1;
    d.rounds = 8;
    return d;
}

static fsi_status fsi__fr_check_desc(const fsi_front_desc *d, const char *fn)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_front_desc, dim, FSI__INT, 2, 3, 0),
        FSI__FIELD(fsi_front_desc, vertex_count, FSI__INT, 0, 400000000, 0),
        FSI__FIELD(fsi_front_desc, element_count, FSI__INT, 0, 150000000, 0),
        FSI__FIELD(fsi_front_desc, attribute_count, FSI__INT, 0, FSI__FR_ATTRIBUTES, 0),
        FSI__FIELD(fsi_front_desc, length, FSI__REAL, 1e-9, 1e9, 0),
        FSI__FIELD(fsi_front_desc, smoothing, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_front_desc, volume_part, FSI__REAL, 0, 1, 0),
        FSI__FIELD(fsi_front_desc, piece_min, FSI__REAL, -1, 1e6, 0),
        FSI__FIELD(fsi_front_desc, crossings, FSI__INT, 0, 1, 0),
        FSI__FIELD(fsi_front_desc, rounds, FSI__INT, 1, 100, 0),
        FSI__FIELD(fsi_front_desc, reserve, FSI__INT, 0, 150000000, 0)
    };
    const fsi__where at = { fn, "desc.", -1, 3 };
    int axis;
    FSI__TRY(FSI__CHECK_TABLE(d->context, &at, d, rows));

    FSI__TRY(fsi__fr_check_switches(d->context, d, fn));

    /* Arrays, and walls. */
    if ((d->vertex_count > 0 && !d->vertices) || (d->element_count > 0 && !d->elements))
        return fsi__fail(d->context, FSI_ERROR_ARGUMENT, fn, -1, 0, "desc.%s is NULL",
            d->vertices ? "elements" : "vertices");
    for (axis = 0; axis < 3; axis++) {
        const double low = (double)fsi__axis(d->walls.lo, axis), high = (double)fsi__axis(d->walls.hi, axis);
        if (!(low <= high)) return fsi__fail(d->context, FSI_ERROR_ARGUMENT, fn, axis, low,
            "desc.walls is from %g to %g along axis %d", low, high, axis);
    }
    return FSI_OK;
}

/* Corners of a mesh that may come from anywhere: in range, different, with an area. */
static fsi_status fsi__fr_check_elements(const fsi__fr_mesh *m, fsi_status bad, const char *fn)
{
    const int k = m->k;
    int t, i;
    for (t = 0; t < m->nt; t++) {
        const int *c = m->corner + k * t;
        for (i = 0; i < k; i++)
            if (c[i] < 0 || c[i] >= m->nv)
                return fsi__fail(m->context, bad == FSI_ERROR_MESH ? FSI_ERROR_ARGUMENT : bad, fn, t, c[i],
                    "element %d has the corner %d of %d vertices", t, c[i], m->nv);
        if (c[0] == c[1] || (k == 3 && (c[1] == c[2] || c[2] == c[0])) || !(fsi__fr_area_of(k, m->x, c) > 0))
            return fsi__fail(m->context, bad, fn, t, 0, "element %d is degenerate", t);
    }
    return FSI_OK;
}

/* Every edge in two elements, every vertex in one ring. scratch: nv + k nt numbers. */
static fsi_status fsi__fr_check_closed(fsi__fr_mesh *m, int *scratch, fsi_status bad, const char *fn)
{
    const int k = m->k;
    int how, i, h, n, t = fsi__fr_connect(k, m->nv, m->nt, m->corner, m->twin, m->star, scratch, scratch + m->nv, &how);
    if (t >= 0 && how)
        return fsi__fail(m->context, bad, fn, t, 0,
            "element %d has an edge in the direction of another's: it is there twice, or one is inside out", t);
    if (t >= 0) return fsi__fail(m->context, bad, fn, t, 0, "element %d has an open edge", t);
    for (i = 0; i < m->nv; i++) scratch[i] = 0;
    for (i = 0; i < k * m->nt; i++) scratch[m->corner[i]]++;
    for (i = 0; i < m->nv; i++) {
        if (m->star[i] < 0) return fsi__fail(m->context, bad, fn, i, 0, "vertex %d belongs to no element", i);
        for (n = 0, h = m->star[i]; k == 3 && n <= scratch[i]; ) {
            n++;
            h = m->twin[fsi__fr_before(h)];
            if (h == m->star[i]) break;
        }
        if (k == 3 && n != scratch[i])
            return fsi__fail(m->context, bad, fn, i, 0, "at vertex %d surfaces touch", i);
    }
    return FSI_OK;
}

/* Labels connected parts in the order of their first elements; returns how many. queue: nt numbers. */
static int fsi__fr_label(const fsi__fr_mesh *m, int *label, int *queue)
{
    const int k = m->k;
    int parts = 0, t, i, head, tail;
    for (t = 0; t < m->nt; t++) label[t] = -1;
    for (t = 0; t < m->nt; t++) {
        if (label[t] >= 0 || m->corner[k * t] < 0) continue;
        queue[0] = t;
        label[t] = parts;
        for (head = 0, tail = 1; head < tail; head++)
            for (i = 0; i < k; i++) {
                const int other = m->twin[k * queue[head] + i] / (k == 3 ? 3 : 1);
                if (label[other] >= 0) continue;
                label[other] = parts;
                queue[tail++] = other;
            }
        parts++;
    }
    return parts;
}

/* Rows for pieces. */
static fsi_status fsi__fr_reserve_pieces(fsi_front *f, int rows, const char *fn)
{
    fsi__fr_impl *im = (fsi__fr_impl *)f->impl;
    const fsi__column work[] = {
        { (void **)(void *)&im->work_piece, sizeof *im->work_piece }, { (void **)(void *)&im->sum, sizeof *im->sum },
        { (void **)(void *)&im->about, sizeof *im->about }, { (void **)(void *)&im->moved, sizeof *im->moved }
    };
    if (rows > im->piece_room)
        FSI__TRY(fsi__room_in(f->context, &im->piece, sizeof *im->piece, f->piece_count, &im->piece_room, rows, fn));
    f->piece = im->piece;
    if (rows <= im->piece_rows) return FSI_OK;
    return fsi__room(f->context, work, 4, im->piece_rows, &im->piece_rows, rows, fn);
}

/* What the desc has, into `now`. */
static fsi_status fsi__fr_copy_desc(fsi_front *f, const fsi_front_desc *d, const char *fn)
{
    fsi__fr_mesh *m = &((fsi__fr_impl *)f->impl)->now;
    const double near_wall = 1e-3 * (double)d->length;
    const size_t n = (size_t)d->vertex_count * (size_t)d->attribute_count;
    int i, axis;
    m->nv = d->vertex_count;
    m->nt = d->element_count;

    /* Vertices; those of walls are on them. */
    for (i = 0; i < m->nv; i++) {
        m->x[i] = fsi_v3(d->vertices[i].x, d->vertices[i].y, d->dim == 3 ? d->vertices[i].z : 0);
        m->v[i] = d->velocities ? d->velocities[i] : fsi_v3(0, 0, 0);
        m->flags[i] = d->flags ? d->flags[i] : 0;
        m->id[i] = (uint32_t)i;
        for (axis = 0; axis < 3; axis++) {
            const fsi_real at = fsi__axis(m->x[i], axis);
            if (fabs((double)fsi__fr_on_wall(&d->walls, m->flags[i], axis, at) - (double)at) <= near_wall
                || !fsi_is_finite((double)at)) continue;
            return fsi__fail(d->context, FSI_ERROR_ARGUMENT, fn, i, (double)at,
                "vertex %d has the flag of a wall and is not on it", i);
        }
    }
    m->next_id = (uint32_t)m->nv;

    /* Attributes and elements. */
    if (n > 0 && d->attributes) memcpy(m->a, d->attributes, n * sizeof *m->a);
    if (m->nt > 0) memcpy(m->corner, d->elements, (size_t)m->nt * (size_t)m->k * sizeof *m->corner);
    fsi__fr_publish(f);
    return FSI_OK;
}

/* Closedness and pieces of `now`. */
static fsi_status fsi__fr_take_surface(fsi_front *f, int *scratch, const char *fn)
{
    fsi__fr_impl *im = (fsi__fr_impl *)f->impl;
    fsi__fr_mesh *m = &im->now;
    fsi__fr_quality quality;
    int i;

    /* Its elements, and the pieces that they are. */
    FSI__TRY(fsi__fr_check_elements(m, FSI_ERROR_MESH, fn));
    FSI__TRY(fsi__fr_check_closed(m, scratch, FSI_ERROR_MESH, fn));
    i = fsi__fr_label(m, m->piece, scratch);
    FSI__TRY(fsi__fr_reserve_pieces(f, i, fn));
    f->piece_count = i;
    for (i = 0; i < f->piece_count; i++) im->piece[i].id = im->next_piece++;

    /* Crossings, sums, and which side is inside. */
    FSI__TRY(fsi__fr_reserve_survey(im, m, fn));
    fsi__fr_copy(&im->work, m);
    FSI__TRY(fsi__fr_refuse_crossings(&im->work, fn));
    quality = fsi__fr_sum_pieces(im, m, im->piece, f->piece_count);
    fsi__fr_publish(f);
    fsi__fr_fill_stats(f, quality, &f->stats);
    return fsi__fr_check_sides(im, &im->work, im->piece, f->piece_count, fn);
}

static void fsi__fr_set_up(fsi_front *f, fsi__fr_mesh *m)
{
    m->context = f->context;
    m->k = f->dim;
    m->attributes = f->desc.attribute_count;
    m->length = (double)f->desc.length;
    m->volume_part = (double)f->desc.volume_part;
    m->smoothing = (double)f->desc.smoothing;
    m->crossings = f->desc.crossings;
}

static fsi_status fsi__fr_build(fsi_front *f, const fsi_front_desc *d, const char *fn)
{
    fsi__fr_impl *im = (fsi__fr_impl *)f->impl;
    const int rows = d->element_count > d->reserve ? d->element_count : d->reserve,
        vertices = d->vertex_count > rows / 2 ? d->vertex_count : rows / 2;
    const size_t room = (size_t)d->vertex_count + (size_t)d->element_count * (size_t)d->dim;
    int *scratch;
    fsi_status status;
    fsi__fr_set_up(f, &im->now);
    fsi__fr_set_up(f, &im->work);
    im->now.only_kept = 1;
    FSI__TRY(fsi__fr_reserve(&im->now, vertices + 1, rows + 1, fn)); /* an empty surface has arrays, too */
    FSI__TRY(fsi__fr_reserve(&im->work, vertices + 1, rows + 1, fn));
    FSI__TRY(fsi__fr_reserve_pieces(f, 1, fn));
    FSI__TRY(fsi__fr_copy_desc(f, d, fn));
    FSI__TRY(fsi__fr_check_content(f, fn));
    scratch = (int *)fsi__alloc(f->context, room, sizeof *scratch);
    if (!scratch) return fsi__fail(f->context, FSI_ERROR_MEMORY, fn, -1, (double)room, "no memory for lists of edges");
    status = fsi__fr_take_surface(f, scratch, fn);
    fsi__free(f->context, scratch, room, sizeof *scratch);
    return status;
}

FSI_API fsi_status fsi_front_create(fsi_front **out, const fsi_front_desc *desc)
{
    static const char fn[] = "fsi_front_create";
    fsi_front *f;
    fsi__fr_impl *im;
    fsi_status status;
    if (!out) return FSI_ERROR_ARGUMENT;
    *out = NULL;
    if (!desc) return FSI_ERROR_ARGUMENT;
    if (desc->cookie != FSI__COOKIE('r', fsi_front_desc) || !fsi__is_context(desc->context)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__fr_check_desc(desc, fn));

    /* The front and its private part in one block; arrays by build. */
    f = (fsi_front *)fsi__alloc(desc->context, 1, sizeof *f + sizeof *im);
    if (!f) return fsi__fail(desc->context, FSI_ERROR_MEMORY, fn, -1, 0, "no memory for the front");
    im = (fsi__fr_impl *)(void *)(f + 1);
    im->own_context = fsi_default_context();
    f->cookie = FSI__COOKIE('r', fsi_front);
    f->context = desc->context ? desc->context : &im->own_context;
    f->desc = *desc;
    f->desc.vertices = f->desc.velocities = NULL;
    f->desc.flags = NULL;
    f->desc.elements = NULL;
    f->desc.attributes = NULL;
    f->dim = desc->dim;
    f->impl = im;
    if (desc->piece_min < 0) f->desc.piece_min = f->dim == 3 ? 8 : 4;
    status = fsi__fr_build(f, desc, fn);
    if (status != FSI_OK) fsi_front_destroy(f);
    else *out = f;
    return status;
}

FSI_API void fsi_front_destroy(fsi_front *f)
{
    fsi__fr_impl *im;
    fsi_context *c; /* of the front itself */
    if (fsi__fr_check(f) != FSI_OK) return;
    im = (fsi__fr_impl *)f->impl;
    c = f->desc.context;
    fsi__fr_free(&im->now);
    fsi__fr_free(&im->work);
    fsi__free(f->context, im->piece, (size_t)im->piece_room, sizeof *im->piece);
    fsi__free(f->context, im->work_piece, (size_t)im->piece_rows, sizeof *im->work_piece);
    fsi__free(f->context, im->sum, (size_t)im->piece_rows, sizeof *im->sum);
    fsi__free(f->context, im->about, (size_t)im->piece_rows, sizeof *im->about);
    fsi__free(f->context, im->moved, (size_t)im->piece_rows, sizeof *im->moved);
    fsi__free(f->context, im->survey.part, (size_t)im->part_room, sizeof *im->survey.part);
    fsi__free(f->context, im->survey.chunk, (size_t)im->chunk_room, sizeof *im->survey.chunk);
    fsi__free(f->context, im->renumber, (size_t)im->renumber_room, sizeof *im->renumber);
    fsi__frt_free(&im->topology, f->context);
    fsi__free(f->context, im->share, (size_t)im->share_room, sizeof *im->share);
    fsi__free(f->context, im->shift, (size_t)im->shift_room, sizeof *im->shift);
    fsi__free(f->context, im->unshifted, (size_t)im->shift_room, sizeof *im->unshifted);
    f->cookie = 0;
    fsi__free(c, f, 1, sizeof *f + sizeof *im);
}

FSI_API const fsi_error *fsi_front_error(const fsi_front *f)
{
    return fsi__error_of(fsi__fr_check(f) == FSI_OK ? f->context : NULL);
}

/* ---- >>state implementation -------------------------------------------------------------------------------------- */

/* Sizes, and what is not in arrays. */
typedef struct fsi__fr_head {
    int32_t dim, attributes, vertices, elements, pieces;
    uint32_t next_id, next_piece, spare;
} fsi__fr_head;

static void fsi__fr_arrays(fsi__stream *st, fsi__fr_mesh *m, fsi_front_piece *piece, int pieces)
{
    const size_t v = (size_t)m->nv, t = (size_t)m->nt;
    int i;
    fsi__bytes(st, m->x, v * sizeof *m->x);
    fsi__bytes(st, m->v, v * sizeof *m->v);
    fsi__bytes(st, m->flags, v * sizeof *m->flags);
    fsi__bytes(st, m->id, v * sizeof *m->id);
    fsi__bytes(st, m->a, v * (size_t)m->attributes * sizeof *m->a);
    fsi__bytes(st, m->star, v * sizeof *m->star);
    fsi__bytes(st, m->corner, t * (size_t)m->k * sizeof *m->corner);
    fsi__bytes(st, m->piece, t * sizeof *m->piece);
    for (i = 0; i < pieces; i++) {
        fsi__bytes(st, &piece[i].id, sizeof piece[i].id);
        fsi__bytes(st, &piece[i].moved, sizeof piece[i].moved);
        fsi__bytes(st, &piece[i].owed, sizeof piece[i].owed);
    }
}

static void fsi__fr_state(fsi__stream *st, void *simulator)
{
    fsi_front *f = (fsi_front *)simulator;
    fsi__fr_impl *im = (fsi__fr_impl *)f->impl;
    fsi__fr_head head;
    memset(&head, 0, sizeof head);
    head.dim = f->dim;
    head.attributes = f->desc.attribute_count;
    head.vertices = f->vertex_count;
    head.elements = f->element_count;
    head.pieces = f->piece_count;
    head.next_id = im->now.next_id;
    head.next_piece = im->next_piece;
    fsi__bytes(st, &head, sizeof head);
    fsi__fr_arrays(st, &im->now, im->piece, f->piece_count);
}

FSI_API fsi_status fsi_front_save(const fsi_front *f, void *buffer, size_t capacity, size_t *size)
{
    FSI__TRY(fsi__fr_check(f));
    return fsi__save(f->context, f->cookie, fsi__fr_state, (void *)(uintptr_t)f, buffer, capacity, size,
        "fsi_front_save");
}

FSI_API uint64_t fsi_front_hash(const fsi_front *f)
{
    return fsi__fr_check(f) == FSI_OK ? fsi__state_hash(fsi__fr_state, (void *)(uintptr_t)f) : 0;
}

/* Sizes of a state: those of this front, and as many bytes as they need. */
static fsi_status fsi__fr_check_head(const fsi_front *f, const fsi__fr_head *h, const fsi__stream *st, const char *fn)
{
    const size_t vertex = 2 * sizeof(fsi_vec3) + 2 * sizeof(uint32_t) + sizeof(int)
        + (size_t)f->desc.attribute_count * sizeof(fsi_real);
    const size_t element = ((size_t)f->dim + 1) * sizeof(int), piece = sizeof(uint32_t) + 2 * sizeof(double);
    if (!st->ok || h->dim != f->dim || h->attributes != f->desc.attribute_count)
        return fsi__fail(f->context, FSI_ERROR_FORMAT, fn, -1, h->dim,
            "the state has dim %d and %d attributes, the front has %d and %d", (int)h->dim, (int)h->attributes, f->dim,
            f->desc.attribute_count);
    if (h->vertices < 0 || h->elements < 0 || h->pieces < 0 || h->elements > 150000000 || h->vertices > 400000000
        || sizeof *h + (size_t)h->vertices * vertex + (size_t)h->elements * element + (size_t)h->pieces * piece
            != st->capacity)
        return fsi__fail(f->context, FSI_ERROR_FORMAT, fn, -1, h->elements,
            "the state announces %d elements and has another length", (int)h->elements);
    return FSI_OK;
}

/* Content of a state that has been read into `work`: a surface as a step leaves it. */
static fsi_status fsi__fr_check_state(fsi_front *f, const fsi__fr_head *h, int *scratch, const char *fn)
{
    fsi__fr_impl *im = (fsi__fr_impl *)f->impl;
    fsi__fr_mesh *m = &im->work;
    const double most = FSI__FR_FARTHEST * (double)f->desc.length;
    int *label = scratch + m->nv + m->k * m->nt;
    int i, j, parts;
    for (i = 0; i < m->nv; i++) {
        int good = fsi__fr_is_within(m->x[i], most) && fsi__fr_is_within(m->v[i], FSI__FR_FASTEST)
            && fsi__fr_is_within(fsi__fr_to_walls(f, m->flags[i], m->x[i]), most);
        good &= m->id[i] < h->next_id && (i == 0 || m->id[i] > m->id[i - 1]);
        for (j = 0; j < m->attributes; j++)
            good &= fabs((double)m->a[(size_t)i * (size_t)m->attributes + (size_t)j]) <= FSI__FR_MOST;
        if (!good) return fsi__fail(f->context, FSI_ERROR_FORMAT, fn, i, 0, "vertex %d of the state is damaged", i);
    }

    /* Elements, closed. */
    FSI__TRY(fsi__fr_check_elements(m, FSI_ERROR_FORMAT, fn));
    memcpy(label, m->star, (size_t)m->nv * sizeof *label); /* check_closed makes others */
    FSI__TRY(fsi__fr_check_closed(m, scratch, FSI_ERROR_FORMAT, fn));
    for (i = 0; i < m->nv; i++) {
        const int h0 = label[i];
        if (h0 < 0 || h0 >= (m->k == 3 ? 3 * m->nt : m->nt) || m->corner[m->k == 3 ? h0 : 2 * h0] != i)
            return fsi__fail(f->context, FSI_ERROR_FORMAT, fn, i, 0, "vertex %d of the state is damaged", i);
        m->star[i] = h0;
    }

    /* Pieces. */
    parts = fsi__fr_label(m, label, scratch);
    for (i = 0; i < parts; i++) scratch[i] = -1;
    for (i = 0; i < m->nt; i++) {
        if (scratch[label[i]] < 0) scratch[label[i]] = m->piece[i];
        if (m->piece[i] >= 0 && m->piece[i] < h->pieces && scratch[label[i]] == m->piece[i]) continue;
        return fsi__fail(f->context, FSI_ERROR_FORMAT, fn, i, 0, "element %d of the state is damaged", i);
    }
    for (i = 0; i < h->pieces; i++) label[i] = 0;
    for (i = 0; i < parts; i++) label[scratch[i]]++;
    for (i = 0; i < h->pieces; i++) {
        const fsi_front_piece *p = &im->work_piece[i];
        if (parts == h->pieces && label[i] == 1 && p->id < h->next_piece && fsi_is_finite(p->moved)
            && fsi_is_finite(p->owed) && (i == 0 || p->id > p[-1].id)) continue;
        return fsi__fail(f->context, FSI_ERROR_FORMAT, fn, i, 0, "piece %d of the state is damaged", i);
    }
    return FSI_OK;
}

FSI_API fsi_status fsi_front_load(fsi_front *f, const void *buffer, size_t size)
{
    static const char fn[] = "fsi_front_load";
    fsi__fr_impl *im;
    fsi__fr_head head;
    fsi__stream st;
    fsi__fr_quality quality;
    int *scratch;
    size_t room;
    fsi_status status;

    /* Into the mesh that steps work on. */
    FSI__TRY(fsi__fr_check(f));
    im = (fsi__fr_impl *)f->impl;
    FSI__TRY(fsi__load_begin(f->context, f->cookie, buffer, size, &st, fn));
    memset(&head, 0, sizeof head);
    fsi__bytes(&st, &head, sizeof head);
    FSI__TRY(fsi__fr_check_head(f, &head, &st, fn));
    FSI__TRY(fsi__fr_reserve(&im->work, head.vertices, head.elements, fn));
    FSI__TRY(fsi__fr_reserve_pieces(f, head.pieces, fn));
    im->work.nv = head.vertices;
    im->work.nt = head.elements;
    im->work.next_id = head.next_id;
    im->pieces = head.pieces;
    memset(im->work_piece, 0, (size_t)head.pieces * sizeof *im->work_piece);
    fsi__fr_arrays(&st, &im->work, im->work_piece, head.pieces);

    /* Check all of it before anything changes. */
    room = 2 * ((size_t)head.vertices + (size_t)head.elements * (size_t)f->dim + 1) + (size_t)head.pieces;
    scratch = (int *)fsi__alloc(f->context, room, sizeof *scratch);
    if (!scratch) return fsi__fail(f->context, FSI_ERROR_MEMORY, fn, -1, (double)room, "no memory for lists of edges");
    status = fsi__fr_check_state(f, &head, scratch, fn);
    fsi__free(f->context, scratch, room, sizeof *scratch);
    FSI__TRY(status);
    FSI__TRY(fsi__fr_reserve_commit(f, im, fn));

    quality = fsi__fr_sum_pieces(im, &im->work, im->work_piece, im->pieces);
    FSI__TRY(fsi__fr_refuse_crossings(&im->work, fn));
    FSI__TRY(fsi__fr_check_sides(im, &im->work, im->work_piece, im->pieces, fn));

    /* Take it. */
    fsi__fr_take_rows(f, im);
    im->next_piece = head.next_piece;
    fsi__fr_publish(f);
    memset(&f->stats, 0, sizeof f->stats);
    fsi__fr_fill_stats(f, quality, &f->stats);
    return FSI_OK;
}

FSI_API fsi_status fsi__front_copy(fsi_front *to, const fsi_front *from, const char *fn)
{
    fsi__fr_impl *im = (fsi__fr_impl *)to->impl;
    const fsi__fr_impl *source = (const fsi__fr_impl *)from->impl;
    fsi_status status = fsi__fr_reserve(&im->now, from->vertex_count, from->element_count, fn);
    if (status == FSI_OK) status = fsi__fr_reserve_pieces(to, from->piece_count, fn);
    fsi__fr_publish(to); /* arrays may have moved */
    FSI__TRY(status);
    fsi__fr_copy(&im->now, &source->now);
    if (from->piece_count > 0) memcpy(im->piece, source->piece, (size_t)from->piece_count * sizeof *im->piece);
    to->piece_count = from->piece_count;
    im->next_piece = source->next_piece;
    to->stats = from->stats;
    fsi__fr_publish(to);
    return FSI_OK;
}

FSI_API void fsi_front_debug_draw(const fsi_front *f, const fsi_debug_draw *draw)
{
    const fsi__fr_mesh *m;
    int t, i;
    if (fsi__fr_check(f) != FSI_OK || !draw || !draw->line) return;
    m = &((const fsi__fr_impl *)f->impl)->now;
    for (t = 0; t < m->nt; t++)
        for (i = 0; i < (m->k == 3 ? 3 : 1); i++) {
            const int h = m->k == 3 ? 3 * t + i : t;
            const double l = fsi__fr_edge_length(m, h) / m->length;
            const uint32_t rgb = l > FSI__FR_LONG ? 0xE04040u : l < FSI__FR_SHORT ? 0x4060E0u : 0x50A060u;
            if (m->k == 3 && m->twin[h] < h) continue;
            draw->line(draw->user, m->x[m->corner[m->k * t + i]], m->x[m->corner[m->k * t + (i + 1) % m->k]], rgb);
        }
}

FSI__COLD_END
FSI__STRICT_END

#endif /* once */
#endif /* implementation */
