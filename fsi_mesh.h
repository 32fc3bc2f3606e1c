/* fsi_mesh.h - triangle, segment and tetrahedral meshes: repair, closest points, rays, sweeps, inside or outside, mass.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_mesh.h"
         #include "fsi_mesh.h"

   A MESH, AND WHAT IS INSIDE
      fsi_vec3 corner[4];
      int face[12] = { 0, 2, 1,  0, 1, 3,  1, 2, 3,  2, 0, 3 };
      fsi_context ctx = fsi_default_context();        // hooks for memory, threads, clock, messages: all optional
      fsi_mesh_desc d = fsi_mesh_default_desc();
      fsi_mesh *mesh;
      corner[0] = fsi_v3(0, 0, 0); corner[1] = fsi_v3(1, 0, 0); corner[2] = fsi_v3(0, 1, 0);
          corner[3] = fsi_v3(0, 0, 1);
      d.context = &ctx;
      d.vertices = corner; d.vertex_count = 4;
      d.elements = face;   d.element_count = 4;
      if (fsi_mesh_create(&mesh, &d) != FSI_OK) {
          puts(ctx.error.message);                    // "triangle 2 ..."
          return 1;
      }
      printf("depth of a point inside: %g m\n", (double)-fsi_mesh_signed_distance(mesh, fsi_v3(0.1f, 0.1f, 0.1f)));
      fsi_mesh_destroy(mesh);

   WHAT IS IN HERE (search for >>)
      >>meshes         descs, repair and its report, motion, queries, mass
      >>stages         what fsi's own headers call, not for you
      then the implementation: >>mesh geometry  >>mesh tree  >>mesh making  >>mesh topology  >>mesh holes
      >>mesh state  >>mesh shells  >>mesh crossings  >>mesh create  >>mesh motion  >>mesh queries  >>mesh sweep
      >>mesh mass  >>mesh checks
   WHAT IT DOES NOT DO
      Boolean operations, remeshing. Curved elements.
   MACROS: those of fsi.h.
   UNITS: SI; no scale is assumed. In 2D volumes are areas.
   PRECISION: vertices and normals in fsi_real; volumes, crossings and whatever decides a topology in double.
*/
#ifndef FSI_MESH_H
#define FSI_MESH_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this is C: it has no other casts */
#endif

#include "fsi.h"

/* ---- >>meshes ------------------------------------------------------------------------------------------------- */

/* What a mesh may be. CLOSED bounds a solid: normals point out of it, and into its cavities. OPEN is one side of a
   wall: the liquid is on the side the normals point to, and the rim must stay out of its reach. TWO_SIDED is a thin
   sheet with liquid on both sides. */
typedef enum fsi_mesh_kind { FSI_MESH_CLOSED, FSI_MESH_OPEN, FSI_MESH_TWO_SIDED } fsi_mesh_kind;

/* How to make a mesh. The caller's arrays are copied. Coordinates up to 1e75 (float: 1e9), no unit is assumed. */
typedef struct fsi_mesh_desc {
    uint32_t cookie;
    fsi_context *context;      /* default NULL: malloc, silence, serial or OpenMP. Of large meshes, create and what
                                  moves vertices use its parallel_for */
    const fsi_vec3 *vertices;  /* vertex_count positions [m] */
    int vertex_count;
    const int *elements;       /* corners * element_count indices into vertices; triangles counter-clockwise seen from
                                  outside (from the liquid), segments with the liquid on their left, tets positive */
    int element_count;
    int corners;               /* 3 triangles (default), 2 segments for 2D (z = 0), 4 tetrahedra */
    fsi_mesh_kind kind;        /* default FSI_MESH_CLOSED; tetrahedra: their boundary must be closed */
    fsi_real weld;             /* vertices closer than weld * (diagonal of the bounding box) become one; 0 to 0.1,
                                  default 1e-6 */
    int container;             /* 1: CLOSED mesh with the liquid inside: normals point inward, cavities become solids;
                                  default 0 */
    int repair;                /* default 1: drop duplicate and zero-area elements, cut faces at T-junctions, turn what
                                  faces the wrong way, fill holes of closed meshes; 0: refuse what is not right as it
                                  stands */
    int max_hole;              /* longest hole to fill, in edges; 0 to 256, default 8; none in 2D */
} fsi_mesh_desc;

/* What was found and mended while the mesh was made: counts, and the caller's index of the first one (-1: none). */
typedef struct fsi_mesh_report {
    int welded_vertices, unused_vertices;
    int dropped_degenerate, first_degenerate;
    int dropped_duplicate, first_duplicate;
    int flipped, first_flipped;           /* elements turned over to agree with their neighbours or to face outward */
    int filled_holes, first_hole_element; /* an element at the first hole that was filled */
    int split_t_junctions;                /* faces cut in two at a vertex that lay on their edge */
    int t_junctions, nonmanifold_edges, boundary_edges; /* left in the mesh that was made (refused when kind is
                                                           CLOSED) */
    int self_intersections, first_intersection;         /* pairs of elements that cross; a warning, not a refusal */
    char text[200];                       /* one sentence about all of it, "" when nothing was found */
} fsi_mesh_report;

/* Triangles in 3D, segments in 2D, or tetrahedra. Everything may be read in place. For tetrahedra every array below
   except `tets` describes the boundary triangles (`faces`). Faces stand in tree order: faces close in space are close
   in memory, and face_source leads back to the caller's numbers. */
typedef struct fsi_mesh {
    uint32_t cookie;
    fsi_context *context;
    fsi_mesh_kind kind;
    int container;               /* 1: normals point inward, the solid is what is outside */
    int corners;                 /* of `faces`: 2 or 3 */
    int vertex_count, face_count, group_count, edge_count;
    const int *faces;            /* corners * face_count, after welding and repair */
    const int *face_neighbor;    /* corners * face_count: triangle: face across edge (k, k+1); segment: segment at
                                    corner k; -1 none. Where closed surfaces touch in an edge, that of the same solid */
    const int *face_edge;        /* 3 * face_count: edge id of (k, k+1); NULL for segments */
    const int *face_group;       /* face_count: connected group (by shared edge; by shared vertex for segments) */
    const int *face_source;      /* face_count: the caller's element, -1 for a face that filled a hole */
    const int *vertex_source;    /* vertex_count: the caller's vertex */
    const int *source_vertex;    /* the caller's vertex -> vertex, -1 when unused */
    int source_count;            /* the caller's vertex count */
    const int *tets;             /* 4 * tet_count, NULL otherwise */
    int tet_count;
    /* State, changed by fsi_mesh_move, _move_rigid, _set and _set_rigid. */
    const fsi_vec3 *vertices;        /* vertex_count: now */
    const fsi_vec3 *previous;        /* vertex_count: before the last move; same values as vertices for a static mesh */
    const fsi_vec3 *face_normals;    /* face_count, unit, out of the solid */
    const fsi_vec3 *edge_normals;    /* edge_count, pseudonormals n_a + n_b, unit (Baerentzen and Aanaes 2005); NULL for
                                        segments */
    const fsi_vec3 *vertex_normals;  /* vertex_count, angle-weighted pseudonormals, unit */
    fsi_box3 box;                    /* of vertices and previous together */
    int moving;                      /* 1 when previous differs from vertices */
    fsi_mesh_report report;
    void *impl;
} fsi_mesh;

/* The closest point of a mesh, or where a ray or a moving point meets it. */
typedef struct fsi_mesh_hit {
    int face;             /* -1: none */
    fsi_real t;           /* ray: parameter along it; sweep: fraction of the step; closest: distance >= 0 */
    fsi_real bary[3];     /* of the point on the face (segments: bary[2] = 0) */
    fsi_vec3 point;       /* on the mesh */
    fsi_vec3 normal;      /* closest: unit pseudonormal of the feature (face, edge or vertex) that holds `point`; else
                             face normal */
    int side;             /* closest: +1 the query point is outside or on the surface, -1 inside, by the pseudonormal;
                             ray and sweep: +1 the face is met from its front, -1 from its back */
} fsi_mesh_hit;

/* Fills every field; set vertices and elements. */
FSI_API fsi_mesh_desc fsi_mesh_default_desc(void);
/* Checks, welds, repairs and copies. Errors: COOKIE, ARGUMENT (counts, indices: names the element), NAN and LIMIT (name
   the vertex), MESH (open, non-manifold, empty after cleaning ...: names the element), MEMORY. *out is NULL on failure.
   A warning that is not a refusal stands in (*out)->report and goes to the message hook. A closed shell is turned
   outward by its volume. A shell inside another one must have been given the other way round than that one: it is a
   cavity, and stays one; a solid within a solid is refused. Solids that overlap, and surfaces that cross or fold onto
   themselves, are counted in report.self_intersections (faces that overlap within one plane are not seen): the sign of
   the distance is not reliable there. About 2.5 us and 200 bytes a triangle; 450 bytes while it runs. */
FSI_API fsi_status fsi_mesh_create(fsi_mesh **out, const fsi_mesh_desc *desc);
FSI_API void fsi_mesh_destroy(fsi_mesh *mesh);

/* New positions: `vertices` is indexed like the caller's array in the desc (count = source_count entries), topology is
   unchanged; of vertices that were welded the first one counts. The former positions become `previous`; normals are
   recomputed, the tree is refitted. Also call it once with the same positions when a moving mesh stops. Errors: COOKIE,
   ARGUMENT, NAN and LIMIT (name the vertex); the mesh is then unchanged. Allocates nothing. */
FSI_API fsi_status fsi_mesh_move(fsi_mesh *mesh, const fsi_vec3 *vertices, int count);
/* As above with a rigid pose (a unit quaternion, to 5 %) applied to the positions the mesh was created with. */
FSI_API fsi_status fsi_mesh_move_rigid(fsi_mesh *mesh, fsi_vec3 position, fsi_quat orientation);
/* New positions without a sweep between (teleport): previous becomes equal to vertices. */
FSI_API fsi_status fsi_mesh_set(fsi_mesh *mesh, const fsi_vec3 *vertices, int count);
/* A mesh that moves with poses, as after fsi_mesh_move_rigid(previous) and fsi_mesh_move_rigid(now), to the bit,
   whatever it did before: for rollback (a simulator's load brings back its own state, not the caller's meshes), keep
   the last two poses of each mesh with the saved state. The same pose twice is a teleport. Errors as of
   fsi_mesh_move_rigid; the mesh is then unchanged. */
FSI_API fsi_status fsi_mesh_set_rigid(fsi_mesh *mesh, fsi_pose previous, fsi_pose now);

/* The functions below read only, allocate nothing and may be called from many threads at once. Given a NULL mesh, NaN,
   or a face that does not exist, they find nothing: face -1, t = FSI_REAL_MAX. In 2D z is ignored. */

/* Closest point of one face to x, with its feature's pseudonormal and side. */
FSI_API fsi_mesh_hit fsi_mesh_closest_on_face(const fsi_mesh *mesh, int face, fsi_vec3 x);
/* Closest point of the mesh within max_distance; face -1 when there is none. group -1: any group. */
FSI_API fsi_mesh_hit fsi_mesh_closest(const fsi_mesh *mesh, fsi_vec3 x, fsi_real max_distance, int group);
/* Distance, negative inside the solid, by the pseudonormal of the closest feature: exact for a closed mesh that does
   not cross itself. */
FSI_API fsi_real fsi_mesh_signed_distance(const fsi_mesh *mesh, fsi_vec3 x);
/* Generalised winding number (Jacobson et al. 2013): 1 inside, 0 outside a closed mesh, fractional near holes.
   Exact sum over all faces, O(face_count), independent of normals and tree. 2D: winding angle / 2 pi. A container gives
   -1 where the liquid is and 0 in its solid. */
FSI_API double fsi_mesh_winding_number(const fsi_mesh *mesh, fsi_vec3 x);
/* First hit of origin + t * direction, t in [0, t_max]; both sides count. A ray within a face's plane does not meet
   it. */
FSI_API fsi_mesh_hit fsi_mesh_ray(const fsi_mesh *mesh, fsi_vec3 origin, fsi_vec3 direction, fsi_real t_max);
/* Faces whose box meets `box`, ascending order, the first `capacity` written; returns how many there are. */
FSI_API int fsi_mesh_query_box(const fsi_mesh *mesh, fsi_box3 box, int *faces, int capacity);
/* The same for the boxes that faces sweep from `previous` to `vertices`. */
FSI_API int fsi_mesh_query_swept_box(const fsi_mesh *mesh, fsi_box3 box, int *faces, int capacity);
/* Continuous collision (in place of Liu et al., section 6): first time t in [0,1] at which a point that moves from x0
   to x1 passes through `face`, whose corners move in straight lines from `previous` to `vertices`. side +1: only from
   the front (the side of the normal) to the back; -1: only back to front; 0: either. A point that starts on the plane
   (to rounding) and leaves it to the back counts, with t = 0; one that moves off, slides in the plane or only touches
   does not. The cubic is solved in full, not in the paper's reduced order, whose planes come apart at the edges of
   faces that turn: a point that starts outside a closed mesh and ends inside is never missed. `point` and `normal` are
   of the END face. Corners in straight lines: keep a body's turn in one move below 60 degrees. */
FSI_API fsi_mesh_hit fsi_mesh_sweep_face(const fsi_mesh *mesh, int face, fsi_vec3 x0, fsi_vec3 x1, int side);
/* The earliest of these over the whole mesh. */
FSI_API fsi_mesh_hit fsi_mesh_sweep(const fsi_mesh *mesh, fsi_vec3 x0, fsi_vec3 x1, int side);
/* density [kg/m^3]; thickness [m] is used for OPEN and TWO_SIDED meshes. Errors: COOKIE, ARGUMENT, MESH (a container,
   or moved inside out). */
FSI_API fsi_status fsi_mesh_mass(const fsi_mesh *mesh, fsi_real density, fsi_real thickness, fsi_mass_properties *out);

/* Closest point of a triangle to the origin, by the Voronoi regions of its edges and corners (Ericson 2005, section
   5.1.5). Fills the weights of the corners and returns the feature that contains the point: 0 the face, 1 + k edge (k,
   k+1), 4 + k corner k. Areas are formed from edge vectors (Gram form), so that a point far away does not cancel
   them. */
FSI__STRICT_FN_BEGIN
FSI_FN int fsi__weights(fsi_real *bary, fsi_real b, fsi_real c, int feature)
{
    bary[0] = 1 - b - c;
    bary[1] = b;
    bary[2] = c;
    return feature;
}
FSI_FN int fsi__closest_triangle(fsi_vec3 a, fsi_vec3 b, fsi_vec3 c, fsi_real *bary)
{
    fsi_vec3 u = fsi_v3_sub(b, a), v = fsi_v3_sub(c, a);
    fsi_real uu = fsi_v3_norm2(u), vv = fsi_v3_norm2(v), uv = fsi_v3_dot(u, v), pu = -fsi_v3_dot(a, u),
        pv = -fsi_v3_dot(a, v);
    /* weights * area */
    fsi_real area = fsi_v3_norm2(fsi_v3_cross(u, v)), wb = vv * pu - uv * pv, wc = uu * pv - uv * pu;
    fsi_real along = pv - uv - pu + uu, length = uu - 2 * uv + vv;                                   /* on edge b-c */
    if (pu <= 0 && pv <= 0) return fsi__weights(bary, 0, 0, 4);
    if (pu >= uu && pv - uv <= pu - uu) return fsi__weights(bary, 1, 0, 5);
    if (pv >= vv && pu - uv <= pv - vv) return fsi__weights(bary, 0, 1, 6);
    if (wc <= 0 && pu >= 0 && pu <= uu) return fsi__weights(bary, uu > 0 ? pu / uu : 0, 0, 1);
    if (wb <= 0 && pv >= 0 && pv <= vv) return fsi__weights(bary, 0, vv > 0 ? pv / vv : 0, 3);
    if (wb + wc >= area) { /* edge b-c is all that is left; only rounding leads past its ends, and must not lead to the
                              face */
        fsi_real t = length > 0 ? along / length : 0;
        if (t <= 0) return fsi__weights(bary, 1, 0, 5);
        if (t >= 1) return fsi__weights(bary, 0, 1, 6);
        bary[0] = 0;
        bary[1] = 1 - t;
        bary[2] = t;
        return 2;
    }
    return fsi__weights(bary, wb / area, wc / area, 0);
}
FSI_FN int fsi__closest_segment(fsi_vec3 a, fsi_vec3 b, fsi_real *bary)
{
    fsi_vec3 u = fsi_v3_sub(b, a);
    fsi_real uu = fsi_v3_norm2(u), pu = -fsi_v3_dot(a, u);
    if (pu <= 0) return fsi__weights(bary, 0, 0, 4);
    if (pu >= uu) return fsi__weights(bary, 1, 0, 5);
    return fsi__weights(bary, pu / uu, 0, 0);
}
FSI__STRICT_FN_END

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------- */

/* A mesh that suits a simulator of dimension dim, and has an inside if `closed`. Errors: ARGUMENT, COOKIE, MESH; name
   desc.mesh. */
FSI_API fsi_status fsi__check_mesh(fsi_context *context, const char *function, const fsi_mesh *mesh, int dim,
    int closed);

/* A mesh that moves by itself and shares the topology of its original, which must outlive it. NULL: no memory. */
FSI_API fsi_mesh *fsi__mesh_shadow(fsi_context *context, const fsi_mesh *mesh);
/* Makes a shadow sweep: between positions a and b (vertex_count each) from fraction s to t of the motion; or from pose
   a to pose b, applied to `local` (vertex_count). */
FSI_API void fsi__mesh_follow(fsi_mesh *shadow, const fsi_vec3 *a, const fsi_vec3 *b, fsi_real s, fsi_real t);
FSI_API void fsi__mesh_follow_rigid(fsi_mesh *shadow, const fsi_vec3 *local, fsi_pose a, fsi_pose b);
/* Does the segment from a to b cross the face at its present place? */
FSI_API int fsi__mesh_parts(const fsi_mesh *mesh, int face, fsi_vec3 a, fsi_vec3 b);

#define FSI__MESH_STACK 64 /* a tree is never deeper: see fsi__plant */

/* A leaf holds items first .. first + count - 1. An inner node has count 0, its left child follows it, `first` is the
   other. */
typedef struct fsi__node {
    fsi_box3 box;
    int first, count;
} fsi__node;

/* Makes a tree of `count` boxes: order (a permutation, leaves in order) and nodes (room for 2 count); returns the
   number of nodes. */
FSI_API int fsi__plant(const fsi_box3 *boxes, int count, int *order, fsi__node *nodes);

/* Visits the items of a tree, leaf by leaf; leaves whose key is above `limit`, which may decrease meanwhile, are left
   out. The key of a box is 0 or infinite (does it meet a given one?), its squared distance to a point, or where a ray
   enters it. The child with the lower key comes first, the left one of equals: so a box finds its items in ascending
   order. */
enum { FSI__WALK_BOX, FSI__WALK_POINT, FSI__WALK_RAY };
typedef struct fsi__walk {
    const fsi__node *nodes;
    int kind, item, end, top, stack[FSI__MESH_STACK];
    double key[FSI__MESH_STACK];
    fsi_box3 box;
    fsi__d3 origin, direction;
    fsi_vec3 point;
} fsi__walk;

/* Coordinates beyond this are refused: products of four lengths would leave the range of fsi_real. */
#if defined(FSI_REAL_FLOAT)
#define FSI__MESH_REACH 1e9
#else
#define FSI__MESH_REACH 1e75
#endif

/* Puts n items in order of up to three keys below key_count each, items with equal keys in ascending order. */
typedef struct fsi__sorter { int *key[3], *order, *spare, *start, keys, key_count, n; } fsi__sorter;

/* Closest point of a face to x: weights, squared distance, feature (0 face, 1 + k edge, 4 + k corner). */
typedef struct fsi__foot { fsi_real bary[3], d2; fsi_vec3 offset; int feature; } fsi__foot;

FSI__STRICT_FN_BEGIN
FSI_FN int fsi__is_mesh(const fsi_mesh *mesh) { return mesh && mesh->cookie == FSI__COOKIE('m', fsi_mesh); }
/* onto the plane of a mesh of segments */
FSI_FN fsi_vec3 fsi__flatten(int corners, fsi_vec3 x) { return corners == 2 ? fsi_v3(x.x, x.y, 0) : x; }
FSI__STRICT_FN_END
/* The first item, -1: none. Before the call set the members that `kind` reads: box; point; origin and direction. */
FSI_API int fsi__walk_begin(fsi__walk *w, int kind, const fsi__node *nodes, double limit);
FSI_API int fsi__walk_next(fsi__walk *w, double limit); /* the next item, -1 at the end */
FSI_API int fsi__walk_box(fsi__walk *w, const fsi__node *nodes, fsi_box3 box); /* the same for the items in a box */
/* Box of faces begin .. end - 1 at positions x. */
FSI_API fsi_box3 fsi__faces_box(const fsi_mesh *m, const fsi_vec3 *x, int begin, int end);
FSI_API fsi_mesh_hit fsi__no_hit(void); /* face -1 */
FSI_API fsi__foot fsi__closest_foot(const fsi_mesh *m, int face, fsi_vec3 x); /* of face `face` */
/* The result of fsi_mesh_closest_on_face: with normal and side. */
FSI_API fsi_mesh_hit fsi__foot_hit(const fsi_mesh *m, int face, fsi_vec3 x, const fsi__foot *f);
/* Closest point of the sheet around `face`: from there from face to face, as long as that comes nearer. Unlike that of
   the whole mesh it does not pass from one side of a thin body to the other. The mesh is closed. */
FSI_API fsi_mesh_hit fsi__mesh_descend(const fsi_mesh *m, int face, fsi_vec3 x);
FSI_API const fsi__node *fsi__nodes(const fsi_mesh *mesh); /* the tree of its faces, as they are now */
FSI_API void fsi__sort(fsi__sorter *s); /* a stable counting pass for each key, the last one first */

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* FSI_MESH_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_MESH_IMPLEMENTATION
#define FSI_MESH_IMPLEMENTATION
#endif
#ifdef FSI_MESH_IMPLEMENTATION
#ifndef FSI_MESH_IMPLEMENTATION_DONE
#define FSI_MESH_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi.h"
#include <stdio.h>

FSI__STRICT_BEGIN

/* ---- >>mesh implementation -------------------------------------------------------------------------------------

   From the caller's soup to a mesh, each stage a function fsi__make_<stage> below, in this order:

      read    indices and positions checked, used vertices marked     orient  groups found, faces turned
      scale   a vertex that is far off by mistake found               fill    holes closed
      weld    vertices at one place become one                        closed  what is not closed refused
      faces   tetrahedra leave their boundary, degenerates go         order   faces put in tree order
      twins   duplicates go                                           finish  shells within shells judged,
      split   faces joined, and cut where they have T-junctions               crossings counted, report written */

typedef struct fsi__mesh {
    fsi_mesh pub;
    fsi__arena memory; /* all arrays, the public ones too */
    fsi__node *nodes;
    int node_count;
    fsi_vec3 *rest;    /* as it was made */
    fsi_vec3 *vertices, *previous, *face_normals, *edge_normals, *vertex_normals; /* the public ones, to write to */
    double *angle[2];  /* face_count: of a triangle at its first corners, for its normals */
} fsi__mesh;

/* ---- >>mesh geometry ------------------------------------------------------------------------------------------ */

/* Normal of a face times its measure: twice the area, or the length (2D: the tangent turned left). */
static fsi__d3 fsi__d3_normal(fsi__d3 u, fsi__d3 v, int corners)
{
    return corners == 3 ? fsi__d3_cross(u, v) : fsi__d3_make(-u.y, u.x, 0);
}

/* Where the line o + t d meets a face with corners c[0 .. corners - 1]: parameter t and weights of the corners. Returns
   0 when it passes outside (a weight below -slack) or along it. From t d = p + u e1 + v e2 with p = c0 - o, N = e1 x
   e2:
      t = p.N / d.N,   u = (p x d).e2 / d.N,   v = -(p x d).e1 / d.N;   2D: u = -(p x d) / d.N   (Cramer's rule) */
static int fsi__line_face(fsi__d3 o, fsi__d3 d, const fsi__d3 *c, int corners, double slack, double *t, double *bary)
{
    fsi__d3 p = fsi__d3_sub(c[0], o), e1 = fsi__d3_sub(c[1], c[0]), e2 = fsi__d3_sub(c[corners - 1], c[0]),
        n = fsi__d3_normal(e1, e2, corners), turn = fsi__d3_cross(p, d);
    double along = fsi__d3_dot(n, d), sign = along < 0 ? -1 : 1, size = fabs(along);
    double u = sign * (corners == 3 ? fsi__d3_dot(turn, e2) : -turn.z),
        v = corners == 3 ? -sign * fsi__d3_dot(turn, e1) : 0;
    if (!(size > 0) || u < -slack * size || (corners == 3 && v < -slack * size) || u + v > (1 + slack) * size) return 0;
    *t = sign * fsi__d3_dot(n, p) / size;
    bary[1] = u / size;
    bary[2] = v / size;
    bary[0] = 1 - bary[1] - bary[2];
    return 1;
}

/* ---- >>mesh tree ---------------------------------------------------------------------------------------------- */

static fsi_vec3 fsi__box_middle(fsi_box3 b) { return fsi_v3_scale(fsi_v3_add(b.lo, b.hi), (fsi_real)0.5); }

static double fsi__box_area(fsi_box3 b) /* half the surface; boxes of flat scenes still count by their perimeter */
{
    double x = (double)b.hi.x - (double)b.lo.x, y = (double)b.hi.y - (double)b.lo.y,
        z = (double)b.hi.z - (double)b.lo.z;
    return x * y + y * z + z * x + 1e-6 * (x * x + y * y + z * z);
}

#define FSI__BINS 16
#define FSI__LEAF 4

typedef struct fsi__plan {
    const fsi_box3 *boxes;
    int *order;
    fsi__node *nodes; /* room for 2 count - 1 */
    int node_count;
} fsi__plan;

/* Splits order[begin, end) where the cost area(left) count(left) + area(right) count(right) is least, among the planes
   between FSI__BINS slabs across the longest extent of the centres (Wald 2007); in halves when that fails. */
static int fsi__plan_split(fsi__plan *p, int begin, int end, fsi_box3 centers, int depth)
{
    fsi_vec3 size = fsi_v3_sub(centers.hi, centers.lo);
    int axis = size.x >= size.y ? (size.x >= size.z ? 0 : 2) : (size.y >= size.z ? 1 : 2), i, b, best = 0,
        left[FSI__BINS], count[FSI__BINS] = { 0 };
    fsi_real lo = fsi__axis(centers.lo, axis), scale = FSI__BINS / fsi__axis(size, axis);
    fsi_box3 box[FSI__BINS], run = fsi_box3_empty();
    double cost[FSI__BINS], least = 0;
    if (depth > 30 || !(scale <= FSI_REAL_MAX)) return begin + (end - begin) / 2;
#define FSI__BIN_OF(item) ((int)fsi_min((fsi__axis(fsi__box_middle(p->boxes[item]), axis) - lo) * scale, FSI__BINS - 1))

    /* Items and their box in each bin. */
    for (b = 0; b < FSI__BINS; b++) box[b] = fsi_box3_empty();
    for (i = begin; i < end; i++) {
        b = FSI__BIN_OF(p->order[i]);
        count[b]++;
        box[b] = fsi_box3_join(box[b], p->boxes[p->order[i]]);
    }

    /* left[b], cost[b]: items and cost of bins 0 .. b together. */
    for (b = 0, i = 0; b < FSI__BINS; b++) {
        run = fsi_box3_join(run, box[b]);
        left[b] = i += count[b];
        cost[b] = i ? fsi__box_area(run) * i : 0;
    }

    /* The other side's cost, from the right: `best` is the cheapest plane. */
    run = fsi_box3_empty();
    for (b = FSI__BINS - 1, i = 0; b > 0; b--) {
        run = fsi_box3_join(run, box[b]);
        i += count[b];
        if (i == 0 || left[b - 1] == 0) continue;
        cost[b] = cost[b - 1] + fsi__box_area(run) * i;
        if (best == 0 || cost[b] < least) { best = b; least = cost[b]; }
    }

    /* Items of bins below `best` to the front. */
    for (i = begin, b = end; i < b;) {
        int item = p->order[i];
        if (FSI__BIN_OF(item) < best) { i++; continue; }
        p->order[i] = p->order[--b];
        p->order[b] = item;
    }
#undef FSI__BIN_OF
    return i > begin && i < end ? i : begin + (end - begin) / 2;
}

/* Depth: at most 31 levels of free splits, then halves of at most 2^31 items: never more than FSI__MESH_STACK. */
static void fsi__plan_node(fsi__plan *p, int begin, int end, int depth)
{
    int self = p->node_count++, i, middle;
    fsi_box3 box = fsi_box3_empty(), centers = fsi_box3_empty();
    for (i = begin; i < end; i++) {
        box = fsi_box3_join(box, p->boxes[p->order[i]]);
        centers = fsi_box3_grow(centers, fsi__box_middle(p->boxes[p->order[i]]));
    }
    p->nodes[self].box = box;
    p->nodes[self].first = begin;
    p->nodes[self].count = end - begin;
    if (end - begin <= FSI__LEAF) return;
    p->nodes[self].count = 0;
    middle = fsi__plan_split(p, begin, end, centers, depth);
    fsi__plan_node(p, begin, middle, depth + 1);
    p->nodes[self].first = p->node_count;
    fsi__plan_node(p, middle, end, depth + 1);
}

/* Fills order (a permutation of 0 .. count-1, leaves in order) and nodes; returns the number of nodes. */
FSI_API int fsi__plant(const fsi_box3 *boxes, int count, int *order, fsi__node *nodes)
{
    fsi__plan p;
    int i;
    p.boxes = boxes;
    p.order = order;
    p.nodes = nodes;
    p.node_count = 0;
    for (i = 0; i < count; i++) order[i] = i;
    if (count > 0) fsi__plan_node(&p, 0, count, 0);
    return p.node_count;
}

FSI_FN double fsi__box_distance2(const fsi_box3 *b, fsi_vec3 x)
{
    fsi_real dx = fsi_max(fsi_max(b->lo.x - x.x, x.x - b->hi.x), 0),
        dy = fsi_max(fsi_max(b->lo.y - x.y, x.y - b->hi.y), 0),
        dz = fsi_max(fsi_max(b->lo.z - x.z, x.z - b->hi.z), 0);
    return (double)(dx * dx + dy * dy + dz * dz);
}

/* The last of the three slabs entered. */
static double fsi__box_ray(const fsi_box3 *b, fsi__d3 o, fsi__d3 d, double limit)
{
    const double lo[3] = { (double)b->lo.x - o.x, (double)b->lo.y - o.y, (double)b->lo.z - o.z };
    const double hi[3] = { (double)b->hi.x - o.x, (double)b->hi.y - o.y, (double)b->hi.z - o.z };
    const double dir[3] = { d.x, d.y, d.z };
    double enter = 0, leave = limit;
    int k;
    for (k = 0; k < 3; k++) {
        double s = fabs(dir[k]), from = dir[k] < 0 ? -hi[k] : lo[k], to = dir[k] < 0 ? -lo[k] : hi[k];
        if (s > 0) {
            enter = fmax(enter, from / s);
            leave = fmin(leave, to / s);
        } else if (from > 0 || to < 0) return HUGE_VAL;
    }
    return enter <= leave * (1 + 1e-12) ? enter : HUGE_VAL;
}

FSI__HOST_FN double fsi__walk_key(const fsi__walk *w, int node, double limit)
{
    const fsi_box3 *b = &w->nodes[node].box;
    if (w->kind == FSI__WALK_BOX) return fsi_box3_overlap(*b, w->box) ? 0 : HUGE_VAL;
    return w->kind == FSI__WALK_POINT ? fsi__box_distance2(b, w->point)
        : fsi__box_ray(b, w->origin, w->direction, limit);
}

FSI__HOST_FN void fsi__walk_push(fsi__walk *w, int node, double key, double limit)
{
    w->stack[w->top] = node;
    w->key[w->top] = key;
    w->top += key <= limit;
}

FSI_API int fsi__walk_next(fsi__walk *w, double limit)
{
    while (w->item == w->end && w->top > 0) {
        int i = w->stack[--w->top];
        const fsi__node *n = &w->nodes[i];
        if (!(w->key[w->top] <= limit)) continue;
        if (n->count == 0) {
            double left = fsi__walk_key(w, i + 1, limit), right = fsi__walk_key(w, n->first, limit);
            int left_first = left <= right;
            fsi__walk_push(w, left_first ? n->first : i + 1, left_first ? right : left, limit);
            fsi__walk_push(w, left_first ? i + 1 : n->first, left_first ? left : right, limit);
        } else w->end = (w->item = n->first) + n->count;
    }
    return w->item < w->end ? w->item++ : -1;
}

FSI_API int fsi__walk_begin(fsi__walk *w, int kind, const fsi__node *nodes, double limit)
{
    w->nodes = nodes;
    w->kind = kind;
    w->item = w->end = w->top = 0;
    fsi__walk_push(w, 0, fsi__walk_key(w, 0, limit), limit);
    return fsi__walk_next(w, limit);
}

FSI_API int fsi__walk_box(fsi__walk *w, const fsi__node *nodes, fsi_box3 box)
{
    w->box = box;
    return fsi__walk_begin(w, FSI__WALK_BOX, nodes, 0);
}

FSI__COLD_BEGIN

/* ---- >>mesh making -------------------------------------------------------------------------------------------- */

#define FSI__MAKE "fsi_mesh_create"

/* A face while the mesh is made. Half-edge h = corners * face + k runs from corner k to k + 1; for segments it is the
   corner k itself, where segments are joined as triangles are across edges. */
typedef struct fsi__face {
    int corner[3], neighbor[3], edge[3]; /* segments use the first two; neighbor is negative at an open edge */
    int group, source;
    short turned, dropped; /* turned: orientation reversed with respect to the caller's; dropped: removed at the end of
                              the stage */
} fsi__face;

typedef struct fsi__maker {
    const fsi_mesh_desc *desc;
    fsi_context *context;
    fsi_mesh_report report;
    const char *noun;
    int corners; /* of a face: 2 or 3 */
    double diagonal, weld; /* lengths */
    fsi_vec3 low;
    fsi_vec3 *x; int *x_source, vertex_count, vertex_room;
    int *source_vertex; /* of the caller's vertices; -1 unused */
    fsi__face *face; int face_count, face_room;
    int *tet, tet_count;
    int edge_count, group_count, open_face, crowded_face; /* faces at an open and at a non-manifold edge, -1 none */
    int closed, stale; /* checked for holes; faces were turned since the mesh was filled */
    fsi__arena scratch; /* of one stage */
    fsi__node *nodes; int node_count, node_room;
} fsi__maker;

static fsi_status fsi__maker_memory(fsi__maker *m)
{
    return fsi__fail(m->context, FSI_ERROR_MEMORY, FSI__MAKE, -1, 0,
        "no memory for a mesh of %d elements", m->desc->element_count);
}

/* Refuses because of an element: "triangle 7 <text>". */
static fsi_status fsi__refuse(fsi__maker *m, int element, double value, const char *text)
{
    return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, element, value, "%s %d %s", m->noun, element, text);
}

static fsi_vec3 fsi__given(const fsi__maker *m, int v) { return fsi__flatten(m->corners, m->desc->vertices[v]); }

/* Is x a position that a mesh may have? */
static fsi_status fsi__check_position(fsi_context *context, const char *function, fsi_vec3 x, int vertex)
{
    double far_off = fmax(fmax(fabs((double)x.x), fabs((double)x.y)), fabs((double)x.z));
    if (!fsi_v3_is_finite(x))
        return fsi__fail(context, FSI_ERROR_NAN, function, vertex, 0, "vertex %d is not finite", vertex);
    if (far_off > FSI__MESH_REACH) return fsi__fail(context, FSI_ERROR_LIMIT, function, vertex, far_off,
        "vertex %d lies %g from the origin, the most is %g", vertex, far_off, FSI__MESH_REACH);
    return FSI_OK;
}

static fsi_status fsi__make_read(fsi__maker *m)
{
    const fsi_mesh_desc *d = m->desc;
    fsi_box3 box = fsi_box3_empty();
    int i, v;

    /* Which vertices are used, and their box. */
    m->source_vertex = (int *)fsi__alloc(m->context, (size_t)d->vertex_count, sizeof(int));
    if (!m->source_vertex) return fsi__maker_memory(m);
    for (v = 0; v < d->vertex_count; v++) m->source_vertex[v] = -1;
    for (i = 0; i < d->corners * d->element_count; i++) {
        v = d->elements[i];
        if (v < 0 || v >= d->vertex_count)
            return fsi__fail(m->context, FSI_ERROR_ARGUMENT, FSI__MAKE, i / d->corners, v,
                "%s %d names vertex %d, but there are %d vertices", m->noun, i / d->corners, v, d->vertex_count);
        FSI__TRY(fsi__check_position(m->context, FSI__MAKE, d->vertices[v], v));
        m->source_vertex[v] = 0;
        box = fsi_box3_grow(box, fsi__given(m, v));
    }

    /* Sizes. */
    for (v = 0; v < d->vertex_count; v++) m->report.unused_vertices += m->source_vertex[v] < 0;
    m->low = box.lo;
    m->diagonal = fsi__d3_norm(fsi__d3_diff(box.hi, box.lo));
    m->weld = m->diagonal * (double)fsi_max(d->weld, (fsi_real)1e-15);
    if (m->diagonal > 0 && m->diagonal < 1 / FSI__MESH_REACH)
        return fsi__fail(m->context, FSI_ERROR_LIMIT, FSI__MAKE, -1, m->diagonal, "the mesh is only %g across",
            m->diagonal);
    return FSI_OK;
}

/* A vertex that is far off by mistake makes the welding distance larger than the rest of the mesh. It shows in the
   median edge (to a factor of two, by counting exponents). */
static fsi_status fsi__make_scale(fsi__maker *m)
{
    const fsi_mesh_desc *d = m->desc;
    int octave[1024] = { 0 }, i, e, n = 0, far_vertex = 0;
    fsi__d3 mean = fsi__d3_make(0, 0, 0);
    double farthest = -1;

    /* Lengths by their exponent; the centroid. */
    for (i = 0; i < d->corners * d->element_count; i++) {
        int first = i / d->corners * d->corners, next = first + (i + 1 - first) % d->corners;
        double length = fsi__d3_norm(fsi__d3_diff(fsi__given(m, d->elements[next]), fsi__given(m, d->elements[i])));
        mean = fsi__d3_madd(mean, 1.0 / (d->corners * d->element_count), fsi__d3_of(d->vertices[d->elements[i]]));
        if (!(length > 0)) continue;
        frexp(length, &e);
        octave[e < -511 ? 0 : e > 512 ? 1023 : e + 511]++;
        n++;
    }

    /* The median; is it well above the welding distance? */
    for (e = 0, i = 0; e < 1024 && 2 * (i + octave[e]) < n; e++) i += octave[e];
    if (n == 0 || 10 * m->weld <= ldexp(0.5, e - 511)) return FSI_OK;

    /* Else the farthest vertex is to blame. */
    for (i = 0; i < d->corners * d->element_count; i++) {
        double r = fsi__d3_norm(fsi__d3_sub(fsi__d3_of(d->vertices[d->elements[i]]), mean));
        if (r > farthest) { farthest = r; far_vertex = i; }
    }
    return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, far_vertex / d->corners, m->weld,
        "vertex %d of %s %d lies far from the others: at %.3g across, welding over %.3g would merge edges "
        "of about %.3g; correct it, or lower desc.weld",
        d->elements[far_vertex], m->noun, far_vertex / d->corners, m->diagonal, m->weld, ldexp(0.5, e - 511));
}

/* Kept vertices stand in a hashed grid with cells of four welding distances, so that a look-up reads one to eight
   cells. */
typedef struct fsi__weld_grid { double cell; int slots, *head, *next; } fsi__weld_grid;

static int fsi__weld_slot(const fsi__weld_grid *g, double i, double j, double k)
{
    uint64_t h = (uint64_t)(int64_t)i * 0x9E3779B97F4A7C15u + (uint64_t)(int64_t)j;
    h = (h * 0xD6E8FEB86659FD93u + (uint64_t)(int64_t)k) * 0xFF51AFD7ED558CCDu;
    return (int)((h >> 33) & (uint64_t)(g->slots - 1));
}

/* The lowest kept vertex within the welding distance of x, -1 when there is none. */
static int fsi__weld_find(const fsi__maker *m, const fsi__weld_grid *g, fsi_vec3 x)
{
    fsi__d3 p = fsi__d3_diff(x, m->low);
    double w = m->weld, c = g->cell, i, j, k;
    int v, found = -1;
    for (i = floor((p.x - w) / c); i <= floor((p.x + w) / c); i++)
        for (j = floor((p.y - w) / c); j <= floor((p.y + w) / c); j++)
            for (k = floor((p.z - w) / c); k <= floor((p.z + w) / c); k++)
                for (v = g->head[fsi__weld_slot(g, i, j, k)]; v >= 0; v = g->next[v])
                    if ((found < 0 || v < found) && fsi__d3_norm(fsi__d3_diff(x, m->x[v])) <= w) found = v;
    return found;
}

/* Vertices in the caller's order: each joins the first kept one in reach, or is kept. */
static fsi_status fsi__make_weld(fsi__maker *m)
{
    fsi__weld_grid g;
    int v, used = m->desc->vertex_count - m->report.unused_vertices;

    /* An empty hash table of cells that are four times the welding distance. */
    for (g.slots = 16; g.slots < 2 * used && g.slots < (1 << 30);) g.slots *= 2;
    g.cell = m->weld > 0 ? 4 * m->weld : 1;
    m->x = (fsi_vec3 *)fsi__alloc(m->context, (size_t)used, sizeof(fsi_vec3));
    m->x_source = (int *)fsi__alloc(m->context, (size_t)used, sizeof(int));
    m->vertex_room = used;
    if (!m->x || !m->x_source || !fsi__arena_reserve(m->context, &m->scratch,
        ((size_t)g.slots + (size_t)used) * sizeof(int) + 128)) return fsi__maker_memory(m);
    g.head = (int *)fsi__take(&m->scratch, (size_t)g.slots, sizeof(int));
    g.next = (int *)fsi__take(&m->scratch, (size_t)used, sizeof(int));
    for (v = 0; v < g.slots; v++) g.head[v] = -1;

    /* Each vertex finds its cell, or adds itself to it. */
    for (v = 0; v < m->desc->vertex_count; v++) if (m->source_vertex[v] >= 0) {
        fsi_vec3 x = fsi__given(m, v);
        int found = fsi__weld_find(m, &g, x);
        if (found >= 0) m->report.welded_vertices++;
        else {
            fsi__d3 p = fsi__d3_diff(x, m->low);
            int *head = &g.head[fsi__weld_slot(&g, floor(p.x / g.cell), floor(p.y / g.cell), floor(p.z / g.cell))];
            found = m->vertex_count++;
            m->x[found] = x;
            m->x_source[found] = v;
            g.next[found] = *head;
            *head = found;
        }
        m->source_vertex[v] = found;
    }
    return FSI_OK;
}

/* Room for `room` faces, keeping those there are. */
static fsi_status fsi__maker_room(fsi__maker *m, int room)
{
    fsi__column faces;
    faces.array = (void **)&m->face;
    faces.size = sizeof *m->face;
    return room <= m->face_room ? FSI_OK
        : fsi__grow(m->context, &faces, 1, m->face_count, &m->face_room, room, FSI__MAKE);
}

static void fsi__add_face(fsi__maker *m, int a, int b, int c, int source)
{
    fsi__face *f = &m->face[m->face_count++];
    memset(f, 0, sizeof *f);
    f->corner[0] = a;
    f->corner[1] = b;
    f->corner[2] = c;
    f->source = source;
}

static void fsi__swap_ints(int *a, int *b) { int swap = *a; *a = *b; *b = swap; }

/* Counts one more finding; *first keeps the lowest element. */
static void fsi__count(int *count, int *first, int element)
{
    if (*first < 0 || element < *first) *first = element;
    (*count)++;
}

static fsi_status fsi__drop_degenerate(fsi__maker *m, int element, const char *text)
{
    if (!m->desc->repair) return fsi__refuse(m, element, 0, text);
    fsi__count(&m->report.dropped_degenerate, &m->report.first_degenerate, element);
    return FSI_OK;
}

/* Takes one tetrahedron: collapsed ones go, inverted ones are turned, flat ones are refused. */
static fsi_status fsi__make_tet(fsi__maker *m, int element)
{
    static const int side[4][3] = { { 0, 2, 1 }, { 0, 1, 3 }, { 0, 3, 2 }, { 1, 2, 3 } };
    int *t = m->tet + 4 * m->tet_count, i, j;
    double six_volumes, longest = 0;
    fsi__d3 e[3];
    for (i = 0; i < 4; i++) t[i] = m->source_vertex[m->desc->elements[4 * element + i]];
    for (i = 0; i < 4; i++) for (j = 0; j < i; j++) {
        longest = fmax(longest, fsi__d3_norm(fsi__d3_diff(m->x[t[i]], m->x[t[j]])));
        if (t[i] == t[j]) return fsi__drop_degenerate(m, element, "has two corners at one place");
    }
    for (i = 0; i < 3; i++) e[i] = fsi__d3_diff(m->x[t[i + 1]], m->x[t[0]]);
    six_volumes = fsi__d3_dot(fsi__d3_cross(e[0], e[1]), e[2]);
    if (fabs(six_volumes) <= 1e-14 * longest * longest * longest)
        return fsi__refuse(m, element, six_volumes / 6, "is flat: it has no volume");
    if (six_volumes < 0) {
        if (!m->desc->repair) return fsi__refuse(m, element, six_volumes / 6, "is inverted: its volume is negative");
        fsi__count(&m->report.flipped, &m->report.first_flipped, element);
        fsi__swap_ints(&t[2], &t[3]);
    }
    for (i = 0; i < 4; i++) fsi__add_face(m, t[side[i][0]], t[side[i][1]], t[side[i][2]], element);
    m->tet_count++;
    return FSI_OK;
}

static double fsi__maker_area(const fsi__maker *m, int a, int b, int c)
{
    return fsi__d3_norm(fsi__d3_cross(fsi__d3_diff(m->x[b], m->x[a]), fsi__d3_diff(m->x[c], m->x[a]))) / 2;
}

static int fsi__is_flat(const fsi__maker *m, const int *c) /* corners of a face without area or length */
{
    return c[0] == c[1]
        || (m->corners == 3 && fsi__maker_area(m, c[0], c[1], c[2]) < 1e-14 * m->diagonal * m->diagonal);
}

/* Takes one triangle or segment; zero-area ones go. */
static fsi_status fsi__make_face(fsi__maker *m, int element)
{
    int c[3] = { 0, 0, -1 }, j;
    for (j = 0; j < m->corners; j++) c[j] = m->source_vertex[m->desc->elements[m->corners * element + j]];
    if (fsi__is_flat(m, c))
        return fsi__drop_degenerate(m, element, m->corners == 3 ? "has no area" : "has no length");
    fsi__add_face(m, c[0], c[1], c[2], element);
    return FSI_OK;
}

static fsi_status fsi__make_faces(fsi__maker *m)
{
    int i, n = m->desc->element_count, tets = m->desc->corners == 4;
    fsi_status s = fsi__maker_room(m, tets ? 4 * n : n);
    if (tets && s == FSI_OK) {
        m->tet = (int *)fsi__alloc(m->context, (size_t)n, 4 * sizeof(int));
        if (!m->tet) s = fsi__maker_memory(m);
    }
    for (i = 0; i < n && s == FSI_OK; i++) s = tets ? fsi__make_tet(m, i) : fsi__make_face(m, i);
    return s;
}

static fsi_status fsi__sorter_begin(fsi__maker *m, fsi__sorter *s, int n, int keys, int key_count, size_t more)
{
    int i;
    size_t room = (size_t)n * (size_t)(keys + 2) + (size_t)key_count + 1;
    if (!fsi__arena_reserve(m->context, &m->scratch, room * sizeof(int) + more + 64)) return fsi__maker_memory(m);
    s->order = (int *)fsi__take(&m->scratch, room, sizeof(int));
    s->spare = s->order + n;
    for (i = 0; i < keys; i++) s->key[i] = s->spare + (size_t)n * (size_t)(i + 1);
    s->start = s->spare + (size_t)n * (size_t)(keys + 1);
    s->keys = keys;
    s->key_count = key_count;
    s->n = n;
    return FSI_OK;
}

FSI_API void fsi__sort(fsi__sorter *s)
{
    int i, k;
    for (i = 0; i < s->n; i++) s->order[i] = i;
    for (k = s->keys - 1; k >= 0; k--) {
        const int *key = s->key[k];
        int *from = s->order;
        memset(s->start, 0, ((size_t)s->key_count + 1) * sizeof(int));
        for (i = 0; i < s->n; i++) s->start[key[i] + 1]++;
        for (i = 0; i < s->key_count; i++) s->start[i + 1] += s->start[i];
        for (i = 0; i < s->n; i++) s->spare[s->start[key[from[i]]]++] = from[i];
        s->order = s->spare;
        s->spare = from;
    }
}

static int fsi__sort_run(const fsi__sorter *s, int begin) /* end of the run of items with the keys of order[begin] */
{
    int i = begin, k = s->keys;
    while (k == s->keys && ++i < s->n)
        for (k = 0; k < s->keys && s->key[k][s->order[i]] == s->key[k][s->order[begin]]; k++) {}
    return i;
}

/* Faces with the same corners cancel in pairs of opposite orientation. Of a closed mesh nothing or one face must
   remain; sheets keep the first. Faces of tetrahedra cancel inside and must be single outside. */
static fsi_status fsi__judge_twins(fsi__maker *m, const fsi__sorter *s, int begin, int end)
{
    int i, net = 0, first[2] = { -1, -1 }, kept, tets = m->desc->corners == 4;
    for (i = begin; i < end; i++) {
        const int *c = m->face[s->order[i]].corner;
        int odd = m->corners == 2 ? c[0] > c[1] : (c[0] > c[1]) ^ (c[1] > c[2]) ^ (c[0] > c[2]);
        if (first[odd] < 0) first[odd] = s->order[i];
        net += odd ? -1 : 1;
        m->face[s->order[i]].dropped = 1;
    }
    kept = net > 0 ? first[0] : first[1];
    if (net == 0 && m->desc->kind != FSI_MESH_CLOSED) kept = s->order[begin];
    else if (net == 0) kept = -1;
    if (kept >= 0) m->face[kept].dropped = 0;
    if (tets && (net != 0 || end - begin > 2))
        return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, m->face[s->order[begin]].source, 0,
            "tetrahedra %d and %d overlap", m->face[s->order[begin]].source, m->face[s->order[begin + 1]].source);
    for (i = begin; !tets && i < end; i++) if (s->order[i] != kept) {
        if (!m->desc->repair) return fsi__refuse(m, m->face[s->order[begin + 1]].source, 0, "is there twice");
        fsi__count(&m->report.dropped_duplicate, &m->report.first_duplicate, m->face[s->order[i]].source);
    }
    return FSI_OK;
}

static fsi_status fsi__make_twins(fsi__maker *m)
{
    fsi__sorter s;
    int i, j, k = m->corners, left = 0;
    fsi_status status = fsi__sorter_begin(m, &s, m->face_count, k, m->vertex_count, 0);

    /* Keys: the corners of a face in ascending order, so that twins are equal. */
    for (i = 0; i < m->face_count && status == FSI_OK; i++) {
        const int *c = m->face[i].corner;
        int lo = c[0] < c[1] ? c[0] : c[1], hi = c[0] + c[1] - lo;
        s.key[0][i] = k == 3 && c[2] < lo ? c[2] : lo;
        s.key[k - 1][i] = k == 3 && c[2] > hi ? c[2] : hi;
        if (k == 3) s.key[1][i] = lo + hi + c[2] - s.key[0][i] - s.key[2][i];
    }

    /* Runs of equal faces. */
    if (status == FSI_OK) fsi__sort(&s);
    for (i = 0; i < m->face_count && status == FSI_OK; i = j) {
        j = fsi__sort_run(&s, i);
        if (j > i + 1) status = fsi__judge_twins(m, &s, i, j);
    }
    if (status != FSI_OK) return status;

    /* Faces that are left move up. */
    for (i = 0; i < m->face_count; i++) if (!m->face[i].dropped) m->face[left++] = m->face[i];
    m->face_count = left;
    if (left == 0) return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, 0, 0,
        "nothing is left of %s 0 and the others: they have no area, or cancel each other (a sheet is not closed)",
            m->noun);
    return FSI_OK;
}

/* ---- >>mesh topology ------------------------------------------------------------------------------------------ */

/* Direction of a half-edge: 1 from its lower to its higher vertex; for segments 1 where one starts. Neighbours that
   look to the same side have different directions. */
static int fsi__forward(const fsi__maker *m, int h)
{
    const fsi__face *f = &m->face[h / m->corners];
    int k = h % m->corners;
    return m->corners == 2 ? k == 0 : f->corner[k] < f->corner[(k + 1) % 3];
}

static void fsi__join(fsi__maker *m, int h, int other)
{
    int k = m->corners;
    m->face[h / k].neighbor[h % k] = other / k;
    m->face[other / k].neighbor[other % k] = h / k;
}

/* The half-edge of face g that is joined to half-edge h. */
static int fsi__mate(const fsi__maker *m, int h, int g)
{
    int k = 0, id = m->face[h / m->corners].edge[h % m->corners];
    while (k < m->corners - 1 && m->face[g].edge[k] != id) k++;
    return m->corners * g + k;
}

/* Where solids touch along an edge, four or more faces meet. Seen along the edge, each solid is a wedge between a face
   that opens it and, at a greater angle, one that closes it; those two are joined, so that the solids come apart:

      closes B \  B  / opens B      The axis, from the lower to the higher vertex, points at you; angles grow
                \   /              anticlockwise. A face whose half-edge runs with the axis has its normal towards
      opens A ----*---- closes A   greater angles: it closes. At equal angles closing goes first; angles are rounded,
                  A                so that equal ones compare equal, and -pi is pi.                                 */
#define FSI__WEDGE_FACES 16
static int fsi__join_wedges(fsi__maker *m, const int *h, int n)
{
    long long angle[FSI__WEDGE_FACES], a;
    int at[FSI__WEDGE_FACES], i, j, k, balance = 0;
    fsi__d3 axis = fsi__d3_make(0, 0, 1), u = axis, v = axis;
    if (n > FSI__WEDGE_FACES || n % 2) return 0;

    /* The faces by their angle around the edge, in steps of 1e-8; of equal ones those that open a wedge come last. */
    for (i = 0; i < n; i++) {
        const int *c = m->face[h[i] / m->corners].corner;
        int from = c[h[i] % m->corners], closes = fsi__forward(m, h[i]);
        fsi__d3 w = fsi__d3_diff(m->x[m->corners == 2 ? c[1 - h[i] % 2] : c[(h[i] + 2) % 3]], m->x[from]);
        if (m->corners == 3) { /* the part of w across the axis */
            int to = c[(h[i] % 3 + 1) % 3];
            axis = fsi__d3_diff(m->x[from < to ? to : from], m->x[from < to ? from : to]);
            w = fsi__d3_madd(w, -fsi__d3_dot(w, axis) / fsi__d3_dot(axis, axis), axis);
        }
        if (i == 0) {
            u = fsi__d3_over(w, fsi__d3_norm(w));
            v = fsi__d3_cross(axis, u);
            v = fsi__d3_over(v, fsi__d3_norm(v));
        }
        balance += closes ? 1 : -1;
        a = (long long)floor(fsi_atan2(fsi__d3_dot(w, v), fsi__d3_dot(w, u)) * 1e8 + 0.5);
        if (a <= -314159264) a = 314159265;
        a = 2 * a + !closes;
        for (j = i; j > 0 && angle[j - 1] > a; j--) { angle[j] = angle[j - 1]; at[j] = at[j - 1]; }
        angle[j] = a;
        at[j] = h[i];
    }
    if (balance != 0) return 0;

    /* Each face that opens a wedge joins the one that closes it, as brackets do. */
    for (i = 0; i < n; i++) {
        int depth = 0;
        if (fsi__forward(m, at[i])) continue;
        for (k = 1; k < n; k++) {
            int other = at[(i + k) % n], closes = fsi__forward(m, other);
            if (closes && depth == 0) { fsi__join(m, at[i], other); break; }
            depth += closes ? -1 : 1;
        }
    }
    return 1;
}

/* Joins all faces, numbers the edges, counts open and crowded ones. */
static fsi_status fsi__make_link(fsi__maker *m)
{
    fsi__sorter s;
    int h, i, j, k = m->corners, n = k * m->face_count;
    FSI__TRY(fsi__sorter_begin(m, &s, n, k - 1, m->vertex_count, 0));

    /* Keys: the ends of each edge, the lower one first. */
    for (h = 0; h < n; h++) {
        const int *c = m->face[h / k].corner;
        int a = c[h % k], b = c[(h % k + 1) % k];
        s.key[0][h] = k == 2 || a < b ? a : b;
        if (k == 3) s.key[1][h] = a < b ? b : a;
        m->face[h / k].neighbor[h % k] = -1;
    }
    fsi__sort(&s);

    /* Runs of equal edges: one face is a rim, two are neighbours, more form wedges. */
    m->edge_count = m->report.boundary_edges = m->report.nonmanifold_edges = 0;
    m->open_face = m->crowded_face = -1;
    for (i = 0; i < n; i = j, m->edge_count++) {
        int a = s.order[i];
        j = fsi__sort_run(&s, i);
        for (h = i; h < j; h++) m->face[s.order[h] / k].edge[s.order[h] % k] = m->edge_count;
        if (j == i + 1) fsi__count(&m->report.boundary_edges, &m->open_face, a / k);
        else if (j == i + 2) fsi__join(m, a, s.order[i + 1]);
        else if (!fsi__join_wedges(m, s.order + i, j - i))
            fsi__count(&m->report.nonmanifold_edges, &m->crowded_face, a / k);
    }
    return FSI_OK;
}

static fsi_box3 fsi__maker_box(const fsi__maker *m, int f)
{
    const int *c = m->face[f].corner;
    fsi_box3 b = fsi_box3_grow(fsi_box3_grow(fsi_box3_empty(), m->x[c[0]]), m->x[c[1]]);
    return m->corners == 3 ? fsi_box3_grow(b, m->x[c[2]]) : b;
}

/* Tree over the faces as they stand; *order is scratch. */
static fsi_status fsi__maker_plant(fsi__maker *m, int **order, size_t more)
{
    int f, n = m->face_count;
    fsi_box3 *boxes;
    fsi__free(m->context, m->nodes, (size_t)m->node_room, sizeof(fsi__node));
    m->node_room = 2 * n;
    m->nodes = (fsi__node *)fsi__alloc(m->context, (size_t)m->node_room, sizeof(fsi__node));
    if (!m->nodes
        || !fsi__arena_reserve(m->context, &m->scratch, (size_t)n * (sizeof(fsi_box3) + sizeof(int)) + more + 256))
        return fsi__maker_memory(m);
    *order = (int *)fsi__take(&m->scratch, (size_t)n, sizeof(int));
    boxes = (fsi_box3 *)fsi__take(&m->scratch, (size_t)n, sizeof(fsi_box3));
    for (f = 0; f < n; f++) boxes[f] = fsi__maker_box(m, f);
    m->node_count = fsi__plant(boxes, n, *order, m->nodes);
    return FSI_OK;
}

/* A T-junction: vertex v in the middle of an edge that nothing is joined to. The face is cut there:

        d                d           v is in reach of the edge a-b when it is as close to it as the welding distance
       / \              /|\          (1e-7 of the diagonal at least: a dropped zero-area triangle leaves such an edge).
      /   \    ->      / | \         The vertex nearest to the middle goes first; passes go on until there is none.   */
typedef struct fsi__cut { int vertex, k; double off; } fsi__cut;

static void fsi__find_cut(const fsi__maker *m, int f, int v, double reach, fsi__cut *cut)
{
    const int *c = m->face[f].corner;
    int k;
    if (v == c[0] || v == c[1] || v == c[2]) return;
    for (k = 0; k < 3; k++) {
        fsi__d3 e = fsi__d3_diff(m->x[c[(k + 1) % 3]], m->x[c[k]]), p = fsi__d3_diff(m->x[v], m->x[c[k]]);
        double length = fsi__d3_norm(e), along = fsi__d3_dot(e, p) / (length * length), off = fabs(along - 0.5);
        if (m->face[f].neighbor[k] >= 0 || along * length <= reach || (1 - along) * length <= reach) continue;
        if (fsi__d3_norm(fsi__d3_madd(p, -along, e)) > reach || (cut->vertex >= 0 && cut->off <= off)) continue;
        cut->vertex = v;
        cut->k = k;
        cut->off = off;
    }
}

/* A needle that is cut at a vertex near its third corner leaves a part without area, which is dropped as degenerate
   faces of the caller are. */
static void fsi__drop_flat(fsi__maker *m)
{
    int f, kept = 0;
    for (f = 0; f < m->face_count; f++) {
        if (fsi__is_flat(m, m->face[f].corner))
            fsi__count(&m->report.dropped_degenerate, &m->report.first_degenerate, m->face[f].source);
        else m->face[kept++] = m->face[f];
    }
    m->face_count = kept;
}

/* One pass: cuts every face that needs it once. *cuts is their number; without repair they are only counted. */
static fsi_status fsi__split_pass(fsi__maker *m, int *cuts)
{
    int f, k, v, *order, n = m->face_count;
    double reach = fmax(m->weld, 1e-7 * m->diagonal);
    fsi__cut *cut;
    char *rim;
    fsi_status s = fsi__maker_plant(m, &order, (size_t)n * sizeof(fsi__cut) + (size_t)m->vertex_count + 128);
    *cuts = 0;
    if (s != FSI_OK) return s;

    /* Vertices on the rim may lie on an open edge. */
    cut = (fsi__cut *)fsi__take(&m->scratch, (size_t)n, sizeof(fsi__cut));
    rim = (char *)fsi__take(&m->scratch, (size_t)m->vertex_count, 1);
    memset(rim, 0, (size_t)m->vertex_count);
    for (f = 0; f < n; f++) for (cut[f].vertex = -1, k = 0; k < 3; k++)
        if (m->face[f].neighbor[k] < 0) rim[m->face[f].corner[k]] = rim[m->face[f].corner[(k + 1) % 3]] = 1;

    /* The faces near such a vertex. */
    for (v = 0; v < m->vertex_count; v++) if (rim[v]) {
        fsi__walk w;
        fsi_box3 box = fsi_box3_inflate(fsi_box3_grow(fsi_box3_empty(), m->x[v]), (fsi_real)reach);
        for (k = fsi__walk_box(&w, m->nodes, box); k >= 0; k = fsi__walk_next(&w, 0))
            fsi__find_cut(m, order[k], v, reach, &cut[order[k]]);
    }

    /* Each face is cut at its vertex, in two. */
    for (f = 0; f < n; f++) *cuts += cut[f].vertex >= 0;
    if (!m->desc->repair || *cuts == 0) return FSI_OK;
    FSI__TRY(fsi__maker_room(m, n + *cuts));
    for (f = 0; f < n; f++) if (cut[f].vertex >= 0) {
        int *c = m->face[f].corner, a = cut[f].k, b = (a + 1) % 3;
        fsi__add_face(m, cut[f].vertex, c[b], c[(a + 2) % 3], m->face[f].source);
        c[b] = cut[f].vertex;
    }
    return FSI_OK;
}

static fsi_status fsi__make_split(fsi__maker *m)
{
    int pass, cuts = 0;
    fsi_status s = fsi__make_link(m);
    for (pass = 0; pass < 32 && s == FSI_OK && m->corners == 3; pass++) {
        if (m->report.boundary_edges + m->report.nonmanifold_edges == 0) return FSI_OK;
        s = fsi__split_pass(m, &cuts);
        if (s != FSI_OK || cuts == 0) return s;
        if (!m->desc->repair) {
            m->report.t_junctions = cuts;
            return FSI_OK;
        }
        m->report.split_t_junctions += cuts;
        fsi__drop_flat(m);
        s = m->face_count > 0 ? fsi__make_link(m)
            : fsi__refuse(m, 0, 0, "and the others have no area: nothing is left");
    }
    return s;
}

static void fsi__turn(fsi__maker *m, int face)
{
    fsi__face *f = &m->face[face];
    int last = m->corners - 1;
    fsi__swap_ints(&f->corner[last - 1], &f->corner[last]);
    fsi__swap_ints(&f->neighbor[0], &f->neighbor[last]);
    fsi__swap_ints(&f->edge[0], &f->edge[last]);
    f->turned = !f->turned;
    m->stale = 1;
}

/* Volume enclosed by some faces, and the size of their box: sum of a.(b x c)/6; 2D: of -(a x b)/2 (the inside is
   right). */
static double fsi__shell_volume(const fsi__maker *m, const int *faces, int n, double *size)
{
    fsi_box3 box = fsi_box3_empty();
    fsi_vec3 o = m->x[m->face[faces[0]].corner[0]];
    double sum = 0;
    int i;
    for (i = 0; i < n; i++) {
        const int *c = m->face[faces[i]].corner;
        fsi__d3 a = fsi__d3_diff(m->x[c[0]], o), b = fsi__d3_diff(m->x[c[1]], o);
        sum += m->corners == 3 ? fsi__d3_dot(a, fsi__d3_cross(b, fsi__d3_diff(m->x[c[2]], o))) / 6
            : -fsi__d3_cross(a, b).z / 2;
        box = fsi_box3_join(box, fsi__maker_box(m, faces[i]));
    }
    *size = fsi__d3_norm(fsi__d3_diff(box.hi, box.lo));
    return sum;
}

/* Finds the group of face `seed`: fills `queue` with its faces, turns those that disagree with their neighbours. */
static fsi_status fsi__flood(fsi__maker *m, int seed, int *queue, int *count)
{
    int i, k, n = 0, turned = 0;
    queue[n++] = seed;
    m->face[seed].group = m->group_count;
    for (i = 0; i < n; i++) for (k = 0; k < m->corners; k++) {
        int h = m->corners * queue[i] + k, g = m->face[queue[i]].neighbor[k], agree;
        if (g < 0) continue;
        agree = fsi__forward(m, h) != fsi__forward(m, fsi__mate(m, h, g));
        if (m->face[g].group < 0) {
            if (!agree) fsi__turn(m, g);
            m->face[g].group = m->group_count;
            queue[n++] = g;
        } else if (!agree && m->desc->kind != FSI_MESH_TWO_SIDED)
            return fsi__refuse(m, m->face[g].source, 0,
                "cannot be turned to agree with all its neighbours: the surface has only one side");
    }
    for (i = 0; i < n; i++) turned += m->face[queue[i]].turned;
    for (i = 0; i < n && 2 * turned > n; i++) fsi__turn(m, queue[i]);
    *count = n;
    return FSI_OK;
}

/* Connected groups, each oriented consistently as most of its faces were, closed ones outward. */
static fsi_status fsi__make_orient(fsi__maker *m)
{
    int f, i, n = 0, *queue;
    double volume, size;
    if (!fsi__arena_reserve(m->context, &m->scratch, (size_t)m->face_count * sizeof(int) + 64))
        return fsi__maker_memory(m);
    queue = (int *)fsi__take(&m->scratch, (size_t)m->face_count, sizeof(int));
    m->group_count = 0;
    for (f = 0; f < m->face_count; f++) m->face[f].group = -1;
    for (f = 0; f < m->face_count; f++) {
        if (m->face[f].group >= 0) continue;
        FSI__TRY(fsi__flood(m, f, queue, &n));
        m->group_count++;
        if (m->desc->kind != FSI_MESH_CLOSED) continue;
        volume = fsi__shell_volume(m, queue, n, &size);
        for (i = 0; i < n && volume < 0; i++) fsi__turn(m, queue[i]);
        if (m->closed && fabs(volume) <= 1e-13 * size * size * (m->corners == 3 ? size : 1))
            return fsi__refuse(m, m->face[f].source, volume,
                "belongs to a shell that encloses no volume: make it FSI_MESH_TWO_SIDED");
    }
    return fsi__make_link(m); /* wedges depend on orientation */
}

/* ---- >>mesh holes --------------------------------------------------------------------------------------------- */

/* The open half-edge that follows open half-edge h around a hole: turn about the vertex at its end.

        \ | /        h comes from the left; from face to face over joined edges,
    h ___\|/___ ?    until an edge has nothing on its other side.               */
static int fsi__next_open(const fsi__maker *m, int h)
{
    int next = h - h % 3 + (h + 1) % 3, guard = 3 * m->face_count;
    while (m->face[next / 3].neighbor[next % 3] >= 0 && guard-- > 0) {
        next = fsi__mate(m, next, m->face[next / 3].neighbor[next % 3]);
        next = next - next % 3 + (next + 1) % 3;
    }
    return next;
}

static double fsi__patch_area(const fsi__maker *m, int a, int b, int c) /* needles cost more than any proper patch */
{
    double area = fsi__maker_area(m, a, b, c);
    return area > 1e-14 * m->diagonal * m->diagonal ? area : 1e6 * m->diagonal * m->diagonal;
}

/* Adds the faces of polygon part i..j of the table `by` of fsi__fill_hole. */
static void fsi__add_patch(fsi__maker *m, const int *loop, const int *by, int n, int i, int j)
{
    if (j < i + 2) return;
    fsi__add_patch(m, loop, by, n, i, by[i * n + j]);
    fsi__add_patch(m, loop, by, n, by[i * n + j], j);
    fsi__add_face(m, loop[j], loop[by[i * n + j]], loop[i], -1);
}

/* Closes a polygon of n vertices by n - 2 triangles of least area:  cost(i, j) = min over m of
   cost(i, m) + cost(m, j) + area(i, m, j)   (Barequet and Sharir 1995). 0 when only needles would do. */
static int fsi__fill_hole(fsi__maker *m, const int *loop, int n, double *cost, int *by)
{
    int span, i, j, k;
    for (i = 0; i + 1 < n; i++) cost[i * n + i + 1] = 0;
    for (span = 2; span < n; span++) for (i = 0; i + span < n; i++) {
        j = i + span;
        cost[i * n + j] = -1;
        for (k = i + 1; k < j; k++) {
            double c = cost[i * n + k] + cost[k * n + j] + fsi__patch_area(m, loop[i], loop[k], loop[j]);
            if (cost[i * n + j] >= 0 && c >= cost[i * n + j]) continue;
            cost[i * n + j] = c;
            by[i * n + j] = k;
        }
    }
    if (cost[n - 1] >= 1e6 * m->diagonal * m->diagonal) return 0;
    fsi__add_patch(m, loop, by, n, 0, n - 1);
    return 1;
}

/* Fills holes of closed meshes that have few edges, and whose patch has less than half as many faces as their group. */
static fsi_status fsi__make_fill(fsi__maker *m)
{
    int h, g, n, most = m->desc->max_hole, faces = m->face_count, *loop, *by, *size;
    double *cost;
    size_t square = (size_t)most * (size_t)most;
    fsi_status s;
    if (m->desc->kind != FSI_MESH_CLOSED || !m->desc->repair || m->corners == 2 || m->report.boundary_edges == 0
        || m->report.nonmanifold_edges > 0 || most < 3) return FSI_OK;
    FSI__TRY(fsi__maker_room(m, faces + m->report.boundary_edges));
    if (!fsi__arena_reserve(m->context, &m->scratch, square * (sizeof(double) + sizeof(int))
        + ((size_t)most + (size_t)m->group_count) * sizeof(int) + 512)) return fsi__maker_memory(m);
    cost = (double *)fsi__take(&m->scratch, square, sizeof(double));
    by = (int *)fsi__take(&m->scratch, square, sizeof(int));
    loop = (int *)fsi__take(&m->scratch, (size_t)most, sizeof(int));
    size = (int *)fsi__take(&m->scratch, (size_t)m->group_count, sizeof(int));

    /* The size of each group; then the loops of open edges. */
    memset(size, 0, (size_t)m->group_count * sizeof(int));
    for (h = 0; h < faces; h++) size[m->face[h].group]++;
    for (h = 0; h < 3 * faces; h++) {
        for (g = h, n = 0; m->face[g / 3].neighbor[g % 3] == -1; g = fsi__next_open(m, g), n++) {
            m->face[g / 3].neighbor[g % 3] = -2; /* seen */
            if (n < most) loop[n] = m->face[g / 3].corner[g % 3];
        }
        if (n >= 3 && n <= most && 2 * (n - 2) < size[m->face[h / 3].group] && fsi__fill_hole(m, loop, n, cost, by))
            fsi__count(&m->report.filled_holes, &m->report.first_hole_element, m->face[h / 3].source);
    }
    if (m->face_count == faces) return FSI_OK;
    s = fsi__make_twins(m); /* a flap that stood across a hole is covered by its own patch: both go */
    return s == FSI_OK ? fsi__make_link(m) : s;
}

static fsi_status fsi__make_closed(fsi__maker *m)
{
    const fsi_mesh_report *r = &m->report;
    m->closed = 1;
    if (m->desc->kind == FSI_MESH_CLOSED && r->nonmanifold_edges > 0) {
        int e = m->face[m->crowded_face].source;
        return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, e, r->nonmanifold_edges,
            "%s %d has an edge that more than two share (such edges: %d)", m->noun, e, r->nonmanifold_edges);
    }
    if (m->desc->kind == FSI_MESH_CLOSED && r->boundary_edges > 0) {
        int e = m->face[m->open_face].source;
        const char *end = m->corners == 2 ? "end" : "edge";
        return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, e, r->boundary_edges,
            "%s %d has an open %s: the mesh is not closed (open %ss: %d, T-junctions: %d)", m->noun, e, end, end,
            r->boundary_edges, r->t_junctions);
    }
    return FSI_OK;
}

static int fsi__is_grouped(const fsi__maker *m) /* are all that are joined in one group? */
{
    int f, k;
    for (f = 0; f < m->face_count; f++) for (k = 0; k < m->corners; k++) {
        int g = m->face[f].neighbor[k];
        if (g >= 0 && m->face[g].group != m->face[f].group) return 0;
    }
    return 1;
}

/* Puts the faces in tree order, then joins and groups them once more in that order. Where surfaces touch, faces that
   were turned are joined to others than before: then groups are found again. */
static fsi_status fsi__make_order(fsi__maker *m)
{
    int i, pass, *order;
    fsi__face *sorted;
    fsi_status s;
    FSI__TRY(fsi__maker_plant(m, &order, 0));
    sorted = (fsi__face *)fsi__alloc(m->context, (size_t)m->face_count, sizeof(fsi__face));
    if (!sorted) return fsi__maker_memory(m);
    for (i = 0; i < m->face_count; i++) sorted[i] = m->face[order[i]];
    fsi__free(m->context, m->face, (size_t)m->face_room, sizeof(fsi__face));
    m->face = sorted;
    m->face_room = m->face_count;
    s = fsi__make_link(m);
    for (pass = 0; pass < 16 && s == FSI_OK; pass++) {
        s = fsi__make_orient(m);
        if (s != FSI_OK || fsi__is_grouped(m)) return s;
    }
    return s == FSI_OK ? fsi__refuse(m, m->face[0].source, 0, "and those that touch it cannot be turned to agree") : s;
}

FSI__COLD_END

/* ---- >>mesh state --------------------------------------------------------------------------------------------- */

FSI_API fsi_box3 fsi__faces_box(const fsi_mesh *m, const fsi_vec3 *x, int begin, int end)
{
    const int *c = m->faces + m->corners * begin, *last = m->faces + m->corners * end;
    fsi_box3 b;
    b.lo = b.hi = x[*c];
    while (++c < last) b = fsi_box3_grow(b, x[*c]);
    return b;
}

static fsi_box3 fsi__faces_swept_box(const fsi_mesh *m, int begin, int end)
{
    fsi_box3 b = fsi__faces_box(m, m->vertices, begin, end);
    return m->moving ? fsi_box3_join(b, fsi__faces_box(m, m->previous, begin, end)) : b;
}

#define FSI__MESH_GRAIN 1024 /* faces, edges, vertices or nodes a chunk */

static void fsi__leaves_range(void *arg, int chunk, int begin, int end)
{
    const fsi__mesh *w = (const fsi__mesh *)arg;
    (void)chunk;
    for (; begin < end; begin++) {
        fsi__node *n = &w->nodes[begin];
        if (n->count) n->box = fsi__faces_swept_box(&w->pub, n->first, n->first + n->count);
    }
}

/* Boxes of leaves from their faces, of inner nodes from their children, which have higher indices. */
static void fsi__mesh_refit(fsi__mesh *w)
{
    int i;
    fsi__parallel_work(w->pub.context, w->node_count, FSI__MESH_GRAIN, 5.0 * w->pub.face_count, fsi__leaves_range, w);
    for (i = w->node_count - 1; i >= 0; i--) {
        fsi__node *n = &w->nodes[i];
        if (!n->count) n->box = fsi_box3_join(w->nodes[i + 1].box, w->nodes[n->first].box);
    }
    w->pub.box = w->nodes[0].box;
}

#define FSI__MESH_LANES 64   /* faces whose angles are found at once */

/* out = angle of (x, y). */
FSI__NOINLINE static void fsi__angles(int n, const double *y, const double *x, double *out)
{
    int i;
    for (i = 0; i < n; i++) out[i] = fsi_atan2(y[i], x[i]);
}

/* Normals of faces, and angles of triangles. A collapsed face keeps its former normal. */
static void fsi__face_normals_range(void *arg, int chunk, int begin, int end)
{
    const fsi__mesh *w = (const fsi__mesh *)arg;
    const int corners = w->pub.corners;
    double twice_area[FSI__MESH_LANES], dot[2][FSI__MESH_LANES];
    int i, n;
    (void)chunk;
    for (; begin < end; begin += n) {
        n = end - begin < FSI__MESH_LANES ? end - begin : FSI__MESH_LANES;
        for (i = 0; i < n; i++) {
            const int f = begin + i, *c = w->pub.faces + corners * f;
            const fsi_vec3 *x = w->vertices;
            const fsi__d3 u = fsi__d3_diff(x[c[1]], x[c[0]]), v = fsi__d3_diff(x[c[corners - 1]], x[c[0]]);
            const fsi__d3 normal = fsi__d3_normal(u, v, corners);
            twice_area[i] = fsi__d3_norm(normal);
            dot[0][i] = fsi__d3_dot(u, v);
            dot[1][i] = fsi__d3_dot(u, u) - dot[0][i]; /* (b - a).(b - c) */
            if (twice_area[i] > 0) w->face_normals[f] = fsi__d3_real(fsi__d3_over(normal, twice_area[i]));
        }
        if (corners == 2) continue;
        for (i = 0; i < 2; i++) fsi__angles(n, twice_area, dot[i], w->angle[i] + begin);
    }
}

/* Adds a face's normal to its edges, and to its vertices weighted by its angle there (segments: weight 1). */
static void fsi__spread_normal(fsi__mesh *w, int f)
{
    const int corners = w->pub.corners, *c = w->pub.faces + corners * f;
    const fsi_vec3 n = w->face_normals[f];
    double angle[3] = { 1, 1, 0 };
    int k;
    if (corners == 3) {
        angle[0] = w->angle[0][f];
        angle[1] = w->angle[1][f];
        angle[2] = FSI_PI - angle[0] - angle[1];
    }
    for (k = 0; k < corners; k++) {
        fsi_vec3 *vertex = &w->vertex_normals[c[k]];
        *vertex = fsi_v3_madd(*vertex, (fsi_real)angle[k], n);
    }
    for (k = 0; k < corners && corners == 3; k++) {
        fsi_vec3 *edge = &w->edge_normals[w->pub.face_edge[3 * f + k]];
        *edge = fsi_v3_add(*edge, n);
    }
}

static void fsi__edge_units_range(void *arg, int chunk, int begin, int end)
{
    const fsi__mesh *w = (const fsi__mesh *)arg;
    (void)chunk;
    for (; begin < end; begin++) w->edge_normals[begin] = fsi_v3_unit(w->edge_normals[begin]);
}

static void fsi__vertex_units_range(void *arg, int chunk, int begin, int end)
{
    const fsi__mesh *w = (const fsi__mesh *)arg;
    (void)chunk;
    for (; begin < end; begin++) w->vertex_normals[begin] = fsi_v3_unit(w->vertex_normals[begin]);
}

/* Face normals and pseudonormals (Baerentzen and Aanaes 2005): sums over all faces at an edge or vertex, also where
   surfaces only touch. Such a sum is, up to a factor, minus the integral of the direction over the part of a small
   sphere that is solid. When the closest point of x is there, that part lies on the far side of it (x outside), or is
   all but a piece of the far side (x inside): so the sign of the dot product with x is right. */
static void fsi__mesh_normals(fsi__mesh *w)
{
    const fsi_mesh *m = &w->pub;
    fsi_context *context = m->context;
    int f;
    memset(w->vertex_normals, 0, (size_t)m->vertex_count * sizeof(fsi_vec3));
    if (m->corners == 3) memset(w->edge_normals, 0, (size_t)m->edge_count * sizeof(fsi_vec3));
    fsi__parallel_work(context, m->face_count, FSI__MESH_GRAIN, 30.0 * m->face_count, fsi__face_normals_range, w);
    for (f = 0; f < m->face_count; f++) fsi__spread_normal(w, f);
    fsi__parallel_work(context, m->edge_count, FSI__MESH_GRAIN, 5.0 * m->edge_count, fsi__edge_units_range, w);
    fsi__parallel_work(context, m->vertex_count, FSI__MESH_GRAIN, 5.0 * m->vertex_count, fsi__vertex_units_range, w);
}

static void fsi__mesh_update(fsi__mesh *w)
{
    w->pub.moving = memcmp(w->vertices, w->previous, (size_t)w->pub.vertex_count * sizeof(fsi_vec3)) != 0;
    fsi__mesh_normals(w);
    fsi__mesh_refit(w);
}

FSI__COLD_BEGIN

/* Takes room for an array, and fills it from `source`, unless that is NULL. */
static void *fsi__put(fsi__arena *arena, const void *source, size_t count, size_t size)
{
    void *p = fsi__take(arena, count, size);
    if (p && source) memcpy(p, source, count * size);
    return p;
}

/* Names every array, first to measure, then for real. */
static void fsi__mesh_layout(fsi__mesh *w, const fsi__maker *m, fsi__arena *arena)
{
    fsi_mesh *p = &w->pub;
    size_t k = (size_t)m->corners, v = (size_t)m->vertex_count, f = (size_t)m->face_count, e = (size_t)m->edge_count;
    w->nodes = (fsi__node *)fsi__put(arena, m->nodes, (size_t)w->node_count, sizeof(fsi__node));
    w->rest = (fsi_vec3 *)fsi__put(arena, m->x, v, sizeof(fsi_vec3));
    p->vertices = w->vertices = (fsi_vec3 *)fsi__put(arena, m->x, v, sizeof(fsi_vec3));
    p->previous = w->previous = (fsi_vec3 *)fsi__put(arena, m->x, v, sizeof(fsi_vec3));
    p->face_normals = w->face_normals = (fsi_vec3 *)fsi__take(arena, f, sizeof(fsi_vec3));
    p->vertex_normals = w->vertex_normals = (fsi_vec3 *)fsi__take(arena, v, sizeof(fsi_vec3));
    p->faces = (int *)fsi__take(arena, k * f, sizeof(int));
    p->face_neighbor = (int *)fsi__take(arena, k * f, sizeof(int));
    p->face_group = (int *)fsi__take(arena, f, sizeof(int));
    p->face_source = (int *)fsi__take(arena, f, sizeof(int));
    p->vertex_source = (int *)fsi__put(arena, m->x_source, v, sizeof(int));
    p->source_vertex = (int *)fsi__put(arena, m->source_vertex, (size_t)m->desc->vertex_count, sizeof(int));
    if (m->tet) p->tets = (int *)fsi__put(arena, m->tet, 4 * (size_t)m->tet_count, sizeof(int));
    if (k == 2) return;
    p->edge_normals = w->edge_normals = (fsi_vec3 *)fsi__take(arena, e, sizeof(fsi_vec3));
    p->face_edge = (int *)fsi__take(arena, 3 * f, sizeof(int));
    w->angle[0] = (double *)fsi__take(arena, f, sizeof(double));
    w->angle[1] = (double *)fsi__take(arena, f, sizeof(double));
}

/* Copies faces from the maker, and derives the arrays that depend on them. */
static void fsi__mesh_fill(fsi__mesh *w, const fsi__maker *m)
{
    fsi_mesh *p = &w->pub;
    int f, k, n = m->corners;
    for (f = 0; f < m->face_count; f++) {
        for (k = 0; k < n; k++) {
            ((int *)p->faces)[n * f + k] = m->face[f].corner[k];
            ((int *)p->face_neighbor)[n * f + k] = m->face[f].neighbor[k];
            if (n == 3) ((int *)p->face_edge)[3 * f + k] = m->face[f].edge[k];
        }
        ((int *)p->face_group)[f] = m->face[f].group;
        ((int *)p->face_source)[f] = m->face[f].source;
    }
    fsi__mesh_update(w);
}

/* One block for the mesh, one for its arrays. NULL when there is no memory. */
static fsi__mesh *fsi__mesh_assemble(fsi__maker *m)
{
    fsi__mesh *w = (fsi__mesh *)fsi__alloc(m->context, 1, sizeof(fsi__mesh));
    fsi__arena measure;
    if (!w) return NULL;

    /* Sizes, before there are arrays. */
    memset(&measure, 0, sizeof measure);
    w->node_count = m->node_count;
    w->pub.cookie = FSI__COOKIE('m', fsi_mesh);
    w->pub.context = m->context;
    w->pub.kind = m->desc->kind;
    w->pub.container = m->desc->container;
    w->pub.corners = m->corners;
    w->pub.vertex_count = m->vertex_count;
    w->pub.face_count = m->face_count;
    w->pub.group_count = m->group_count;
    w->pub.edge_count = m->corners == 3 ? m->edge_count : 0;
    w->pub.source_count = m->desc->vertex_count;
    w->pub.tet_count = m->tet_count;
    w->pub.impl = w;

    /* The arrays. */
    fsi__mesh_layout(w, m, &measure);
    if (!fsi__arena_reserve(m->context, &w->memory, measure.used)) {
        fsi__free(m->context, w, 1, sizeof(fsi__mesh));
        return NULL;
    }
    fsi__mesh_layout(w, m, &w->memory);
    fsi__mesh_fill(w, m);
    m->stale = 0;
    return w;
}

/* ---- >>mesh shells -------------------------------------------------------------------------------------------- */

/* Shells in shells. Each closed group faces outward now. How deep a group lies is the number of groups that hold it; a
   group at odd depth must be a cavity, that is, have been given the other way round than the one that holds it:

      ,---------.      given outward in outward, or inward in inward: a solid within a solid, which says nothing
      |  ,---.  |      about the space between them: refused
      |  |   |  |
      |  `---'  |      given inward in outward: a cavity, turned inward again
      `---------'      both inside-out: turned over together                                                    */
typedef struct fsi__shell {
    int first, given, depth, holder; /* range in the list of faces by group starts at first; given: 1 outward, -1
                                        inward */
} fsi__shell;

static int fsi__shell_inside(const fsi_mesh *mesh, const int *list, const fsi__shell *s, int g, int h, double tolerance)
{
    int i, k, inside = 0;
    for (i = s[g].first; i < s[g + 1].first; i++) for (k = 0; k < mesh->corners; k++) {
        fsi_mesh_hit hit = fsi_mesh_closest(mesh, mesh->vertices[mesh->faces[mesh->corners * list[i] + k]],
            FSI_REAL_MAX, h);
        if ((double)hit.t <= tolerance) continue; /* touching says nothing */
        if (hit.side > 0) return 0;
        inside = 1;
    }
    return inside;
}

/* Depth and holder (the smallest group around it) of every group. */
static void fsi__nest_shells(const fsi_mesh *mesh, const int *list, fsi__shell *s, const fsi_box3 *boxes,
    const fsi__node *nodes,
    const int *order, double tolerance)
{
    int g, i;
    for (g = 0; g < mesh->group_count; g++) {
        fsi__walk w;
        double least = -1;
        s[g].holder = -1;
        for (i = fsi__walk_box(&w, nodes, boxes[g]); i >= 0; i = fsi__walk_next(&w, 0)) {
            int h = order[i];
            double size = fsi__box_area(boxes[h]);
            fsi_box3 both = fsi_box3_join(boxes[g], boxes[h]);
            if (h == g || memcmp(&both, &boxes[h], sizeof both) != 0
                || !fsi__shell_inside(mesh, list, s, g, h, tolerance))
                continue;
            s[g].depth++;
            if (least >= 0 && size >= least) continue;
            least = size;
            s[g].holder = h;
        }
    }
}

/* Boxes, given directions and face ranges of all groups; `list` will hold the faces by group. */
static void fsi__list_shells(const fsi__maker *m, fsi__sorter *list, fsi__shell *s, fsi_box3 *boxes)
{
    int f, g;
    for (g = 0; g < m->group_count; g++) boxes[g] = fsi_box3_empty();
    memset(s, 0, ((size_t)m->group_count + 1) * sizeof *s);
    for (f = 0; f < m->face_count; f++) {
        g = list->key[0][f] = m->face[f].group;
        boxes[g] = fsi_box3_join(boxes[g], fsi__maker_box(m, f));
        s[g].given += m->face[f].turned ? -1 : 1;
        s[g + 1].first++;
    }
    for (g = 0; g < m->group_count; g++) s[g + 1].first += s[g].first;
    fsi__sort(list);
}

static fsi_status fsi__judge_shells(fsi__maker *m, const fsi__mesh *w)
{
    fsi__sorter list;
    fsi__shell *s;
    fsi__node *nodes;
    fsi_box3 *boxes;
    int f, g, *order;
    size_t n = (size_t)m->group_count;
    if (n < 2 || m->desc->kind != FSI_MESH_CLOSED) return FSI_OK;
    FSI__TRY(fsi__sorter_begin(m, &list, m->face_count, 1, m->group_count,
        (n + 1) * (sizeof *s + sizeof *boxes + 2 * sizeof *nodes + sizeof *order) + 256));

    /* A tree over the boxes of the shells. */
    s = (fsi__shell *)fsi__take(&m->scratch, n + 1, sizeof *s);
    boxes = (fsi_box3 *)fsi__take(&m->scratch, n, sizeof *boxes);
    nodes = (fsi__node *)fsi__take(&m->scratch, 2 * n, sizeof *nodes);
    order = (int *)fsi__take(&m->scratch, n, sizeof *order);
    fsi__list_shells(m, &list, s, boxes);
    fsi__plant(boxes, m->group_count, order, nodes);

    /* A shell directly inside another one must have the opposite orientation. */
    fsi__nest_shells(&w->pub, list.order, s, boxes, nodes, order, 1e-9 * m->diagonal);
    for (g = 0; g < m->group_count; g++) if (s[g].holder >= 0 && (s[g].given > 0) == (s[s[g].holder].given > 0)) {
        int inner = m->face[list.order[s[g].first]].source, outer = m->face[list.order[s[s[g].holder].first]].source;
        return fsi__fail(m->context, FSI_ERROR_MESH, FSI__MAKE, inner, 0,
            "the shell of %s %d lies inside the shell of %s %d and "
            "faces the same way: turn it over if it is a cavity, drop it if not", m->noun, inner, m->noun, outer);
    }

    /* Shells of odd depth are cavities. */
    for (f = 0; f < m->face_count; f++) if (s[m->face[f].group].depth % 2) fsi__turn(m, f);
    return FSI_OK;
}

/* ---- >>mesh crossings ----------------------------------------------------------------------------------------- */

/* Does an edge of a pass through b, clear of its ends, of b's rim and of b's plane? Neighbours that only touch do not
   count. */
static int fsi__edges_cross(const fsi__d3 *a, const fsi__d3 *b, int corners)
{
    fsi__d3 n = fsi__d3_normal(fsi__d3_sub(b[1], b[0]), fsi__d3_sub(b[corners - 1], b[0]), corners);
    double t, bary[3], size = 1e-7 * fsi__d3_norm(n);
    int k;
    for (k = 0; k < 2 * corners - 3; k++) {
        fsi__d3 d = fsi__d3_sub(a[(k + 1) % corners], a[k]);
        if (fsi__line_face(a[k], d, b, corners, -1e-7, &t, bary) && t > 1e-7 && t < 1 - 1e-7
            && fabs(fsi__d3_dot(n, d)) > size * fsi__d3_norm(d)) return 1;
    }
    return 0;
}

static void fsi__face_corners(const fsi_mesh *m, const fsi_vec3 *x, int face, fsi__d3 *c)
{
    int k;
    for (k = 0; k < m->corners; k++) c[k] = fsi__d3_of(x[m->faces[m->corners * face + k]]);
}

static int fsi__faces_cross(const fsi_mesh *m, int f, int g)
{
    fsi__d3 a[3], b[3];
    fsi__face_corners(m, m->vertices, f, a);
    fsi__face_corners(m, m->vertices, g, b);
    return fsi__edges_cross(a, b, m->corners) || (m->corners == 3 && fsi__edges_cross(b, a, 3));
}

/* Counts pairs of faces that cross, within a budget of pairs, and neighbours that are folded flat onto each other. */
static void fsi__count_crossings(const fsi__mesh *w, fsi_mesh_report *r)
{
    const fsi_mesh *m = &w->pub;
    long long budget = 64LL * m->face_count + 4096;
    int f, g, k;
    for (f = 0; f < m->face_count && budget > 0; f++) {
        fsi__walk walk;
        fsi_box3 box = fsi__faces_box(m, m->vertices, f, f + 1);
        int source = m->face_source[f], before = r->self_intersections;
        for (k = 0; k < m->corners; k++) {
            g = m->face_neighbor[m->corners * f + k];
            r->self_intersections += g > f && fsi_v3_dot(m->face_normals[f], m->face_normals[g]) < -1
                + 128 * FSI_REAL_EPS;
        }
        for (g = fsi__walk_box(&walk, w->nodes, box); g >= 0; g = fsi__walk_next(&walk, 0)) {
            if (g <= f || !fsi_box3_overlap(box, fsi__faces_box(m, m->vertices, g, g + 1))) continue;
            budget--;
            r->self_intersections += fsi__faces_cross(m, f, g);
        }
        if (r->self_intersections > before && source >= 0
            && (r->first_intersection < 0 || source < r->first_intersection))
            r->first_intersection = source;
    }
}

/* ---- >>mesh create -------------------------------------------------------------------------------------------- */

/* Appends "what: count (element first)" to the report's sentence. */
static void fsi__tell(fsi_mesh_report *r, int count, const char *what, int first)
{
    size_t used = strlen(r->text), room = sizeof r->text - used;
    if (count <= 0) return;
    snprintf(r->text + used, room, "%s%s: %d", used ? ", " : "", what, count);
    used = strlen(r->text);
    if (first >= 0) snprintf(r->text + used, sizeof r->text - used, " (element %d)", first);
}

static void fsi__write_report(fsi_mesh_report *r)
{
    fsi__tell(r, r->self_intersections, "self-intersections", r->first_intersection);
    fsi__tell(r, r->flipped, "flipped", r->first_flipped);
    fsi__tell(r, r->filled_holes, "holes filled", r->first_hole_element);
    fsi__tell(r, r->dropped_degenerate, "without area dropped", r->first_degenerate);
    fsi__tell(r, r->dropped_duplicate, "duplicates dropped", r->first_duplicate);
    fsi__tell(r, r->split_t_junctions, "T-junctions split", -1);
    fsi__tell(r, r->t_junctions, "T-junctions left", -1);
    fsi__tell(r, r->nonmanifold_edges, "non-manifold edges", -1);
    fsi__tell(r, r->boundary_edges, "open edges", -1);
    fsi__tell(r, r->welded_vertices, "vertices welded", -1);
    fsi__tell(r, r->unused_vertices, "unused vertices", -1);
}

static fsi_status fsi__make_finish(fsi__maker *m, fsi__mesh *w)
{
    int f;
    FSI__TRY(fsi__judge_shells(m, w));
    for (f = 0; f < m->face_count && m->desc->container; f++) fsi__turn(m, f);
    if (m->stale) fsi__mesh_fill(w, m);
    for (f = 0; f < m->face_count; f++) {
        if (!m->face[f].turned || m->face[f].source < 0) continue;
        if (m->tet) return fsi__refuse(m, m->face[f].source, 0, "overlaps others");
        fsi__count(&m->report.flipped, &m->report.first_flipped, m->face[f].source);
    }
    if (m->report.flipped && !m->desc->repair)
        return fsi__refuse(m, m->report.first_flipped, m->report.flipped, "faces the wrong way");
    fsi__count_crossings(w, &m->report);
    fsi__write_report(&m->report);
    w->pub.report = m->report;
    if (m->report.text[0]) fsi__note(m->context,
        m->report.self_intersections + m->report.t_junctions + m->report.nonmanifold_edges ? 1 : 2, m->report.text);
    return FSI_OK;
}

static fsi_status fsi__make_check(const fsi_mesh_desc *d)
{
    static const fsi__field rows[] = {
        FSI__FIELD(fsi_mesh_desc, corners, FSI__INT, 2, 4, 0),
        FSI__FIELD(fsi_mesh_desc, vertex_count, FSI__INT, 1, FSI__HUGE, 0),
        FSI__FIELD(fsi_mesh_desc, element_count, FSI__INT, 1, FSI__HUGE, 0),
        FSI__FIELD(fsi_mesh_desc, weld, FSI__REAL, 0, 0.1, 0),
        FSI__FIELD(fsi_mesh_desc, max_hole, FSI__INT, 0, 256, 0),
        FSI__FIELD(fsi_mesh_desc, kind, FSI__INT, 0, 2, 0),
        FSI__FIELD(fsi_mesh_desc, container, FSI__INT, 0, 1, 0)
    };
    static const fsi__where at = { FSI__MAKE, "desc.", -1, 3 };
    const char *wrong = NULL;

    /* Nothing to report to. */
    if (!d) return FSI_ERROR_ARGUMENT;
    if (d->cookie != FSI__COOKIE('M', fsi_mesh_desc) || !fsi__is_context(d->context))
        return fsi__fail(NULL, FSI_ERROR_COOKIE, FSI__MAKE, -1, 0,
            "desc was not filled by fsi_mesh_default_desc of this version and precision");

    /* Fields, then fields together. */
    FSI__TRY(FSI__CHECK_TABLE(d->context, &at, d, rows));
    if (!d->vertices || !d->elements) wrong = "vertices or elements is NULL";
    else if (d->container && (d->kind != FSI_MESH_CLOSED || d->corners == 4))
        wrong = "a container is made of triangles or segments that are closed";
    else if (d->corners == 4 && d->kind != FSI_MESH_CLOSED)
        wrong = "tetrahedra bound a solid: kind must be FSI_MESH_CLOSED";
    if (wrong) return fsi__fail(d->context, FSI_ERROR_ARGUMENT, FSI__MAKE, -1, 0, "%s", wrong);
    if (d->element_count > 100000000) return fsi__fail(d->context, FSI_ERROR_LIMIT, FSI__MAKE, -1, d->element_count,
        "%d elements are more than 100 million", d->element_count);
    return FSI_OK;
}

FSI_API fsi_mesh_desc fsi_mesh_default_desc(void)
{
    fsi_mesh_desc d;
    memset(&d, 0, sizeof d);
    d.cookie = FSI__COOKIE('M', fsi_mesh_desc);
    d.corners = 3;
    d.kind = FSI_MESH_CLOSED;
    d.weld = (fsi_real)1e-6;
    d.repair = 1;
    d.max_hole = 8;
    return d;
}

static void fsi__maker_free(fsi__maker *m)
{
    fsi__free(m->context, m->x, (size_t)m->vertex_room, sizeof(fsi_vec3));
    fsi__free(m->context, m->x_source, (size_t)m->vertex_room, sizeof(int));
    fsi__free(m->context, m->source_vertex, (size_t)m->desc->vertex_count, sizeof(int));
    fsi__free(m->context, m->face, (size_t)m->face_room, sizeof(fsi__face));
    fsi__free(m->context, m->tet, (size_t)m->desc->element_count, 4 * sizeof(int));
    fsi__free(m->context, m->nodes, (size_t)m->node_room, sizeof(fsi__node));
    fsi__arena_free(m->context, &m->scratch);
}

FSI_API fsi_status fsi_mesh_create(fsi_mesh **out, const fsi_mesh_desc *desc)
{
    typedef fsi_status fsi__stage(fsi__maker *m);
    static fsi__stage *const stages[] = {
        fsi__make_read, fsi__make_scale, fsi__make_weld, fsi__make_faces, fsi__make_twins,
        fsi__make_split, fsi__make_orient, fsi__make_fill, fsi__make_closed, fsi__make_order
    };
    fsi__maker m;
    fsi__mesh *w = NULL;
    size_t i;

    /* The desc. */
    fsi_status s = fsi__make_check(desc);
    if (!out) return s == FSI_OK ? fsi__fail(desc->context, FSI_ERROR_ARGUMENT, FSI__MAKE, -1, 0, "out is NULL") : s;
    *out = NULL;
    if (s != FSI_OK) return s;

    /* The stages, one after the other, up to the first that fails. */
    memset(&m, 0, sizeof m);
    m.desc = desc;
    m.context = desc->context;
    m.corners = desc->corners == 2 ? 2 : 3;
    m.noun = desc->corners == 2 ? "segment" : desc->corners == 3 ? "triangle" : "tetrahedron";
    m.report.first_degenerate = m.report.first_duplicate = m.report.first_flipped = -1;
    m.report.first_hole_element = m.report.first_intersection = -1;
    for (i = 0; i < sizeof stages / sizeof *stages && s == FSI_OK; i++) s = stages[i](&m);
    if (s == FSI_OK && (w = fsi__mesh_assemble(&m)) == NULL) s = fsi__maker_memory(&m);
    if (s == FSI_OK) s = fsi__make_finish(&m, w);
    if (s == FSI_OK) *out = &w->pub;
    else if (w) fsi_mesh_destroy(&w->pub);
    fsi__maker_free(&m);
    return s;
}

FSI_API void fsi_mesh_destroy(fsi_mesh *mesh)
{
    fsi__mesh *w;
    fsi_context *context;
    if (!fsi__is_mesh(mesh)) return;
    w = (fsi__mesh *)mesh->impl;
    context = mesh->context;
    mesh->cookie = 0;
    fsi__arena_free(context, &w->memory);
    fsi__free(context, w, 1, sizeof *w);
}

FSI__COLD_END

/* ---- >>mesh motion -------------------------------------------------------------------------------------------- */

/* Takes over new positions; keep: the former ones become `previous`. */
static fsi_status fsi__mesh_place(fsi_mesh *mesh, const fsi_vec3 *x, int count, int keep, const char *function)
{
    fsi__mesh *w;
    fsi_status s = FSI_OK;
    int v;
    if (!fsi__is_mesh(mesh)) return FSI_ERROR_COOKIE;
    w = (fsi__mesh *)mesh->impl;
    if (!x) return fsi__fail(mesh->context, FSI_ERROR_ARGUMENT, function, -1, 0, "vertices is NULL");
    if (count != mesh->source_count) return fsi__fail(mesh->context, FSI_ERROR_ARGUMENT, function, -1, count,
        "%d vertices are given, the mesh was made from %d", count, mesh->source_count);
    for (v = 0; v < mesh->vertex_count && s == FSI_OK; v++)
        s = fsi__check_position(mesh->context, function, x[mesh->vertex_source[v]], mesh->vertex_source[v]);
    if (s != FSI_OK) return s;
    if (keep) memcpy(w->previous, w->vertices, (size_t)mesh->vertex_count * sizeof(fsi_vec3));
    for (v = 0; v < mesh->vertex_count; v++) w->vertices[v] = fsi__flatten(mesh->corners, x[mesh->vertex_source[v]]);
    if (!keep) memcpy(w->previous, w->vertices, (size_t)mesh->vertex_count * sizeof(fsi_vec3));
    fsi__mesh_update(w);
    return FSI_OK;
}

FSI_API fsi_status fsi_mesh_move(fsi_mesh *m, const fsi_vec3 *x, int n)
{
    return fsi__mesh_place(m, x, n, 1, "fsi_mesh_move");
}
FSI_API fsi_status fsi_mesh_set(fsi_mesh *m, const fsi_vec3 *x, int n)
{
    return fsi__mesh_place(m, x, n, 0, "fsi_mesh_set");
}

static fsi_status fsi__check_mesh_pose(const fsi_mesh *mesh, const fsi_pose *p, const char *name)
{
    fsi_quat q = p->orientation;
    double norm2 = (double)(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w), off = (double)fsi_v3_norm(p->position);
    if (!fsi_v3_is_finite(p->position) || !fsi_is_finite(norm2))
        return fsi__fail(mesh->context, FSI_ERROR_NAN, name, -1, 0, "the pose is not finite");
    if (off > FSI__MESH_REACH) return fsi__fail(mesh->context, FSI_ERROR_LIMIT, name, -1, off,
        "the position lies %g from the origin, the most is %g", off, FSI__MESH_REACH);
    if (fabs(norm2 - 1) > 0.1) return fsi__fail(mesh->context, FSI_ERROR_ARGUMENT, name, -1, norm2,
        "the orientation is not a unit quaternion: |q|^2 is %g", norm2);
    return FSI_OK;
}

static void fsi__mesh_posed(const fsi__mesh *w, const fsi_pose *p, fsi_vec3 *out)
{
    const fsi_quat q = fsi_quat_unit(p->orientation);
    int v;
    for (v = 0; v < w->pub.vertex_count; v++)
        out[v] = fsi__flatten(w->pub.corners, fsi_v3_add(p->position, fsi_quat_rotate(q, w->rest[v])));
}

FSI_API fsi_status fsi_mesh_move_rigid(fsi_mesh *mesh, fsi_vec3 position, fsi_quat orientation)
{
    fsi__mesh *w;
    fsi_pose now;
    if (!fsi__is_mesh(mesh)) return FSI_ERROR_COOKIE;
    now.position = position;
    now.orientation = orientation;
    FSI__TRY(fsi__check_mesh_pose(mesh, &now, "fsi_mesh_move_rigid"));
    w = (fsi__mesh *)mesh->impl;
    memcpy(w->previous, w->vertices, (size_t)mesh->vertex_count * sizeof(fsi_vec3));
    fsi__mesh_posed(w, &now, w->vertices);
    fsi__mesh_update(w);
    return FSI_OK;
}

FSI_API fsi_status fsi_mesh_set_rigid(fsi_mesh *mesh, fsi_pose previous, fsi_pose now)
{
    fsi__mesh *w;
    if (!fsi__is_mesh(mesh)) return FSI_ERROR_COOKIE;
    FSI__TRY(fsi__check_mesh_pose(mesh, &previous, "fsi_mesh_set_rigid"));
    FSI__TRY(fsi__check_mesh_pose(mesh, &now, "fsi_mesh_set_rigid"));
    w = (fsi__mesh *)mesh->impl;
    fsi__mesh_posed(w, &previous, w->previous);
    fsi__mesh_posed(w, &now, w->vertices);
    fsi__mesh_update(w);
    return FSI_OK;
}

FSI_API fsi_mesh *fsi__mesh_shadow(fsi_context *context, const fsi_mesh *mesh)
{
    const fsi__mesh *of = (const fsi__mesh *)mesh->impl;
    fsi__mesh *w = (fsi__mesh *)fsi__alloc(context, 1, sizeof *w);
    size_t v = (size_t)mesh->vertex_count, f = (size_t)mesh->face_count, e = (size_t)mesh->edge_count,
        real = sizeof(fsi_vec3);
    fsi__arena measure = { NULL, 0, 0 }, *a = &measure;
    int pass;
    if (!w) return NULL;

    /* A copy of the struct with arrays of its own; topology is shared. */
    *w = *of;
    w->pub.context = context;
    w->pub.impl = w;
    memset(&w->memory, 0, sizeof w->memory);
    for (pass = 0; pass < 2; pass++, a = &w->memory) {
        if (pass == 1 && !fsi__arena_reserve(context, a, measure.used)) {
            fsi__free(context, w, 1, sizeof *w);
            return NULL;
        }
        w->nodes = (fsi__node *)fsi__put(a, of->nodes, (size_t)of->node_count, sizeof(fsi__node));
        w->pub.vertices = w->vertices = (fsi_vec3 *)fsi__put(a, of->vertices, v, real);
        w->pub.previous = w->previous = (fsi_vec3 *)fsi__put(a, of->previous, v, real);
        w->pub.face_normals = w->face_normals = (fsi_vec3 *)fsi__put(a, of->face_normals, f, real);
        w->pub.vertex_normals = w->vertex_normals = (fsi_vec3 *)fsi__put(a, of->vertex_normals, v, real);
        if (mesh->corners == 2) continue;
        w->pub.edge_normals = w->edge_normals = (fsi_vec3 *)fsi__put(a, of->edge_normals, e, real);
        w->angle[0] = (double *)fsi__take(a, f, sizeof(double));
        w->angle[1] = (double *)fsi__take(a, f, sizeof(double));
    }
    return &w->pub;
}

FSI_API void fsi__mesh_follow(fsi_mesh *shadow, const fsi_vec3 *a, const fsi_vec3 *b, fsi_real s, fsi_real t)
{
    fsi__mesh *w = (fsi__mesh *)shadow->impl;
    int v;
    for (v = 0; v < shadow->vertex_count; v++) {
        fsi_vec3 way = fsi_v3_sub(b[v], a[v]);
        w->previous[v] = s <= 0 ? a[v] : fsi_v3_madd(a[v], s, way);
        w->vertices[v] = t >= 1 ? b[v] : fsi_v3_madd(a[v], t, way);
    }
    fsi__mesh_update(w);
}

FSI_API void fsi__mesh_follow_rigid(fsi_mesh *shadow, const fsi_vec3 *local, fsi_pose a, fsi_pose b)
{
    fsi__mesh *w = (fsi__mesh *)shadow->impl;
    int v;
    for (v = 0; v < shadow->vertex_count; v++) {
        w->previous[v] = fsi__flatten(shadow->corners, fsi_pose_point(a, local[v]));
        w->vertices[v] = fsi__flatten(shadow->corners, fsi_pose_point(b, local[v]));
    }
    fsi__mesh_update(w);
}

FSI_API int fsi__mesh_parts(const fsi_mesh *mesh, int face, fsi_vec3 a, fsi_vec3 b)
{
    fsi__d3 c[3];
    double t, bary[3];
    fsi__face_corners(mesh, mesh->vertices, face, c);
    return fsi__line_face(fsi__d3_of(a), fsi__d3_diff(b, a), c, mesh->corners, 1e-9, &t, bary) && t >= 0 && t <= 1;
}

/* ---- >>mesh queries ------------------------------------------------------------------------------------------- */

FSI_API fsi_mesh_hit fsi__no_hit(void)
{
    fsi_mesh_hit h;
    memset(&h, 0, sizeof h);
    h.face = -1;
    h.t = FSI_REAL_MAX;
    return h;
}

FSI_API fsi__foot fsi__closest_foot(const fsi_mesh *m, int face, fsi_vec3 x)
{
    const int *c = m->faces + m->corners * face;
    fsi_vec3 a = fsi_v3_sub(m->vertices[c[0]], x), b = fsi_v3_sub(m->vertices[c[1]], x), e;
    fsi__foot f;
    f.bary[2] = 0;
    if (m->corners == 3) {
        e = fsi_v3_sub(m->vertices[c[2]], x);
        f.feature = fsi__closest_triangle(a, b, e, f.bary);
        f.offset = fsi_v3_madd(fsi_v3_madd(fsi_v3_scale(a, f.bary[0]), f.bary[1], b), f.bary[2], e);
    } else {
        f.feature = fsi__closest_segment(a, b, f.bary);
        f.offset = fsi_v3_madd(fsi_v3_scale(a, f.bary[0]), f.bary[1], b);
    }
    f.d2 = fsi_v3_norm2(f.offset);
    return f;
}

FSI_API fsi_mesh_hit fsi__foot_hit(const fsi_mesh *m, int face, fsi_vec3 x, const fsi__foot *f)
{
    fsi_mesh_hit h;
    h.face = face;
    h.t = fsi_sqrt(f->d2);
    memcpy(h.bary, f->bary, sizeof h.bary);
    h.point = fsi_v3_add(x, f->offset);
    h.normal = f->feature == 0 ? m->face_normals[face]
             : f->feature < 4 ? m->edge_normals[m->face_edge[3 * face + f->feature - 1]]
             : m->vertex_normals[m->faces[m->corners * face + f->feature - 4]];
    h.side = fsi_v3_dot(f->offset, h.normal) <= 0 ? 1 : -1;
    return h;
}

FSI_API fsi_mesh_hit fsi_mesh_closest_on_face(const fsi_mesh *mesh, int face, fsi_vec3 x)
{
    fsi__foot f;
    if (!fsi__is_mesh(mesh) || face < 0 || face >= mesh->face_count || !fsi_v3_is_finite(x)) return fsi__no_hit();
    x = fsi__flatten(mesh->corners, x);
    f = fsi__closest_foot(mesh, face, x);
    return fsi__foot_hit(mesh, face, x, &f);
}

/* The face beside `face` at a corner that its vertex v is; from: the one that the fan about v was entered from. */
static int fsi__next_in_fan(const fsi_mesh *m, int face, int v, int from)
{
    int k;
    for (k = 0; k < m->corners; k++) {
        const int *corner = m->faces + m->corners * face, next = m->face_neighbor[m->corners * face + k];
        const int end = m->corners == 3 ? (k + 1) % 3 : k;
        if (next >= 0 && next != from && (corner[k] == v || corner[end] == v)) return next;
    }
    return -1;
}

FSI_API fsi_mesh_hit fsi__mesh_descend(const fsi_mesh *m, int face, fsi_vec3 x)
{
    fsi__foot best, f;
    int at, from, next, last = -1;
    x = fsi__flatten(m->corners, x);
    best = fsi__closest_foot(m, face, x);
    while (face != last && best.feature > 0) {
        const int v = best.feature < 4 ? -1 : m->faces[m->corners * face + best.feature - 4];
        last = face;

        /* Across the edge that the closest point is on; or all faces about the corner. */
        if (v < 0) {
            at = m->face_neighbor[3 * last + best.feature - 1];
            if (at >= 0 && (f = fsi__closest_foot(m, at, x)).d2 < best.d2) { best = f; face = at; }
            continue;
        }
        for (from = last, at = fsi__next_in_fan(m, last, v, -1); at >= 0 && at != last; from = at, at = next) {
            f = fsi__closest_foot(m, at, x);
            next = fsi__next_in_fan(m, at, v, from);
            if (f.d2 < best.d2) { best = f; face = at; }
        }
    }
    return fsi__foot_hit(m, face, x, &best);
}

FSI_API const fsi__node *fsi__nodes(const fsi_mesh *mesh) { return ((const fsi__mesh *)mesh->impl)->nodes; }

FSI_API fsi_mesh_hit fsi_mesh_closest(const fsi_mesh *mesh, fsi_vec3 x, fsi_real max_distance, int group)
{
    fsi__walk w;
    fsi__foot best, f;
    int face = -1, g;
    if (!fsi__is_mesh(mesh) || !fsi_v3_is_finite(x) || !(max_distance >= 0)) return fsi__no_hit();
    memset(&best, 0, sizeof best);
    best.d2 = max_distance < fsi_sqrt(FSI_REAL_MAX) / 2 ? max_distance * max_distance : FSI_REAL_MAX;
    w.point = x = fsi__flatten(mesh->corners, x);
    g = fsi__walk_begin(&w, FSI__WALK_POINT, fsi__nodes(mesh), (double)best.d2);
    for (; g >= 0; g = fsi__walk_next(&w, (double)best.d2)) {
        if (group >= 0 && mesh->face_group[g] != group) continue;
        f = fsi__closest_foot(mesh, g, x);
        if (f.d2 < best.d2 || (face < 0 && f.d2 <= best.d2)) { best = f; face = g; }
    }
    return face < 0 ? fsi__no_hit() : fsi__foot_hit(mesh, face, x, &best);
}

FSI_API fsi_real fsi_mesh_signed_distance(const fsi_mesh *mesh, fsi_vec3 x)
{
    fsi_mesh_hit h = fsi_mesh_closest(mesh, x, FSI_REAL_MAX, -1);
    return h.side < 0 ? -h.t : h.t;
}

/* Solid angle of a triangle seen from x (van Oosterom and Strackee 1983):
      tan(omega/2) = a.(b x c) / (|a||b||c| + a.b|c| + b.c|a| + c.a|b|),   a, b, c seen from x
   and of a segment: the angle it is seen under, clockwise positive, since the inside is on its right. */
FSI_API double fsi_mesh_winding_number(const fsi_mesh *mesh, fsi_vec3 x)
{
    double sum = 0;
    int f;
    if (!fsi__is_mesh(mesh) || !(fabs((double)x.x) + fabs((double)x.y) + fabs((double)x.z) < 1e100)) return 0;
    for (f = 0; f < mesh->face_count; f++) {
        const int *v = mesh->faces + mesh->corners * f;
        fsi__d3 a = fsi__d3_diff(mesh->vertices[v[0]], x), b = fsi__d3_diff(mesh->vertices[v[1]], x);
        if (mesh->corners == 3) {
            fsi__d3 c = fsi__d3_diff(mesh->vertices[v[2]], x);
            double la = fsi__d3_norm(a), lb = fsi__d3_norm(b), lc = fsi__d3_norm(c);
            sum += 2 * fsi_atan2(fsi__d3_dot(a, fsi__d3_cross(b, c)),
                la * lb * lc + fsi__d3_dot(a, b) * lc + fsi__d3_dot(b, c) * la + fsi__d3_dot(c, a) * lb);
        } else sum += fsi_atan2(a.y * b.x - a.x * b.y, a.x * b.x + a.y * b.y);
    }
    return sum / (mesh->corners == 2 ? 2 * FSI_PI : 4 * FSI_PI);
}

FSI_API fsi_mesh_hit fsi_mesh_ray(const fsi_mesh *mesh, fsi_vec3 origin, fsi_vec3 direction, fsi_real t_max)
{
    fsi__walk w;
    fsi_mesh_hit h = fsi__no_hit();
    fsi__d3 c[3];
    double best = (double)t_max, t, bary[3];
    int f, k;
    if (!fsi__is_mesh(mesh) || !fsi_v3_is_finite(origin) || !fsi_v3_is_finite(direction) || !(t_max >= 0)) return h;

    /* The nearest face along the ray. */
    w.origin = fsi__d3_of(fsi__flatten(mesh->corners, origin));
    w.direction = fsi__d3_of(fsi__flatten(mesh->corners, direction));
    for (f = fsi__walk_begin(&w, FSI__WALK_RAY, fsi__nodes(mesh), best); f >= 0; f = fsi__walk_next(&w, best)) {
        fsi__face_corners(mesh, mesh->vertices, f, c);
        if (!fsi__line_face(w.origin, w.direction, c, mesh->corners, 1e-9, &t, bary)) continue;
        if (t < 0 || t > best || (h.face >= 0 && t >= best)) continue;
        best = t;
        h.face = f;
        for (k = 0; k < 3; k++) h.bary[k] = (fsi_real)bary[k];
    }

    /* Where it is met. */
    if (h.face < 0) return h;
    h.t = (fsi_real)best;
    h.point = fsi__d3_real(fsi__d3_madd(w.origin, best, w.direction));
    h.normal = mesh->face_normals[h.face];
    h.side = fsi__d3_dot(w.direction, fsi__d3_of(h.normal)) <= 0 ? 1 : -1;
    return h;
}

/* Faces whose box (of `vertices`, or swept) meets box. */
static int fsi__query(const fsi_mesh *mesh, fsi_box3 box, int *faces, int capacity, int swept)
{
    fsi__walk w;
    int f, n = 0;
    if (!fsi__is_mesh(mesh)) return 0;
    if (mesh->corners == 2) box.lo.z = box.hi.z = 0;
    for (f = fsi__walk_box(&w, fsi__nodes(mesh), box); f >= 0; f = fsi__walk_next(&w, 0)) {
        fsi_box3 own = swept ? fsi__faces_swept_box(mesh, f, f + 1) : fsi__faces_box(mesh, mesh->vertices, f, f + 1);
        if (!fsi_box3_overlap(box, own)) continue;
        if (faces && n < capacity) faces[n] = f;
        n++;
    }
    return n;
}

FSI_API int fsi_mesh_query_box(const fsi_mesh *mesh, fsi_box3 box, int *faces, int capacity)
{
    return fsi__query(mesh, box, faces, capacity, 0);
}

FSI_API int fsi_mesh_query_swept_box(const fsi_mesh *mesh, fsi_box3 box, int *faces, int capacity)
{
    return fsi__query(mesh, box, faces, capacity, 1);
}

/* ---- >>mesh sweep --------------------------------------------------------------------------------------------- */

/* A moving point against a moving face. With corners that move in straight lines, seen from corner a,

      p(t) = p0 + t p1   (the point),     N(t) = (u0 + t u1) x (v0 + t v1)   (the normal, not of unit length)
      f(t) = p(t).N(t) = c0 + c1 t + c2 t^2 + c3 t^3,      2D: N(t) is the tangent u0 + t u1 turned left, c3 = 0

   is positive in front of the face's plane, negative behind it. The paper (Liu et al., section 6) blends unit normals
   about the centroid instead, which leaves a quadratic, but on turning meshes also cracks between neighbouring faces,
   whose planes no longer meet in the common edge: points slip through. The cubic's surfaces share their edges at every
   t. A face that does not turn has c2 = c3 = 0.

   f is split at its extrema into monotone pieces; a piece that goes from >= 0 to < 0 holds one root, found by Newton's
   method kept within the bracket. No division by a small number decides anything. */
#if defined(FSI_REAL_FLOAT)
#define FSI__SWEEP_TOLERANCE 1e-6
#else
#define FSI__SWEEP_TOLERANCE 1e-12 /* of the coordinates: closer to a plane is on it */
#endif

typedef struct fsi__sweep {
    fsi__d3 p0, p1, u0, u1, v0, v1; /* point seen from corner a, edges: at the start, and their change */
    double c[4], tolerance;
    int corners;
} fsi__sweep;

static fsi__sweep fsi__sweep_begin(const fsi_mesh *m, int face, fsi_vec3 x0, fsi_vec3 x1)
{
    fsi__sweep s;
    fsi__d3 from[3], to[3], change, n0, n1, n2 = fsi__d3_make(0, 0, 0);
    int last = m->corners - 1;

    /* The face and the point relative to its first corner, linear in time. */
    fsi__face_corners(m, m->previous, face, from);
    fsi__face_corners(m, m->vertices, face, to);
    change = fsi__d3_sub(to[0], from[0]);
    s.corners = m->corners;
    s.u0 = fsi__d3_sub(from[1], from[0]);
    s.u1 = fsi__d3_sub(fsi__d3_sub(to[1], from[1]), change);
    s.v0 = fsi__d3_sub(from[last], from[0]);
    s.v1 = fsi__d3_sub(fsi__d3_sub(to[last], from[last]), change);
    s.p0 = fsi__d3_sub(fsi__d3_of(x0), from[0]);
    s.p1 = fsi__d3_sub(fsi__d3_diff(x1, x0), change);

    /* The normal, a quadratic in time. */
    n0 = fsi__d3_normal(s.u0, s.v0, s.corners);
    n1 = fsi__d3_normal(s.u1, s.v0, s.corners);
    if (s.corners == 3) {
        n1 = fsi__d3_madd(fsi__d3_cross(s.u0, s.v1), 1, n1);
        n2 = fsi__d3_cross(s.u1, s.v1);
    }

    /* The height of the point above the face, a cubic in time: zero when all are in one plane. */
    s.c[0] = fsi__d3_dot(s.p0, n0);
    s.c[1] = fsi__d3_dot(s.p0, n1) + fsi__d3_dot(s.p1, n0);
    s.c[2] = fsi__d3_dot(s.p0, n2) + fsi__d3_dot(s.p1, n1);
    s.c[3] = fsi__d3_dot(s.p1, n2);
    s.tolerance = FSI__SWEEP_TOLERANCE * fsi__d3_norm(n0)
        * (fsi__d3_norm(fsi__d3_of(x0)) + fsi__d3_norm(fsi__d3_diff(x1, x0))
        + fsi__d3_norm(from[0]) + fsi__d3_norm(change) + fsi__d3_norm(s.u0));
    return s;
}

static double fsi__sweep_value(const fsi__sweep *s, double t)
{
    return ((s->c[3] * t + s->c[2]) * t + s->c[1]) * t + s->c[0];
}

/* Extrema of f inside (0, 1), ascending, between 0 and 1: fills knot[0 .. n], returns n >= 1. */
static int fsi__sweep_knots(const fsi__sweep *s, double *knot)
{
    double a = 3 * s->c[3], b = s->c[2], c = s->c[1], disc = b * b - a * c, q, over[2], under[2], r;
    int i, n = 0;
    knot[0] = 0;
    if (disc > 0) { /* a t^2 + 2 b t + c = 0 has the roots q/a and c/q */
        q = -(b + (b < 0 ? -sqrt(disc) : sqrt(disc)));
        over[0] = q, under[0] = a, over[1] = c, under[1] = q;
        for (i = 0; i < 2; i++) {
            r = fabs(over[i]) < fabs(under[i]) ? over[i] / under[i] : 0;
            if (!(r > 0)) continue;
            if (n == 1 && r < knot[1]) { knot[2] = knot[1]; knot[1] = r; }
            else knot[n + 1] = r;
            n++;
        }
    }
    knot[++n] = 1;
    return n;
}

/* Root of sign * f in [lo, hi], where it falls from positive to negative. */
static double fsi__sweep_root(const fsi__sweep *s, double sign, double lo, double hi)
{
    double t = lo, step, value, slope;
    int i;
    for (i = 0; i < 100 && hi - lo > 1e-16; i++) {
        value = sign * fsi__sweep_value(s, t);
        slope = sign * ((3 * s->c[3] * t + 2 * s->c[2]) * t + s->c[1]);
        if (value > 0) lo = t;
        else hi = t;
        step = slope < 0 ? t - value / slope : -1;
        if (!(step > lo && step < hi)) step = 0.5 * (lo + hi);
        if (fabs(step - t) <= 1e-16) break;
        t = step;
    }
    return t;
}

/* Weights of the point at time t, when it is on the face (a face that has no area then counts as hit, in its
   middle). */
static int fsi__sweep_on_face(const fsi__sweep *s, double t, double *bary)
{
    fsi__d3 p = fsi__d3_madd(s->p0, t, s->p1), u = fsi__d3_madd(s->u0, t, s->u1), v = fsi__d3_madd(s->v0, t, s->v1),
        n = fsi__d3_normal(u, v, s->corners);
    double size = fsi__d3_dot(n, n), b1 = s->corners == 3 ? fsi__d3_dot(fsi__d3_cross(p, v), n) : fsi__d3_dot(p, u),
        b2 = s->corners == 3 ? fsi__d3_dot(fsi__d3_cross(u, p), n) : 0;
    double b0 = size - b1 - b2, slack = -1e-4 * size;
    if (!(b0 >= slack && b1 >= slack && b2 >= slack)) return 0;
    b0 = fmax(b0, 0), b1 = fmax(b1, 0), b2 = fmax(b2, 0);
    size = b0 + b1 + b2;
    bary[0] = size > 0 ? b0 / size : 1.0 / s->corners;
    bary[1] = size > 0 ? b1 / size : 1.0 / s->corners;
    bary[2] = 1 - bary[0] - bary[1];
    return 1;
}

/* First t at which sign * f goes from front to back on the face; -1 none. A start within rounding of the plane is in
   front. */
static double fsi__sweep_side(const fsi__sweep *s, double sign, double *bary)
{
    double knot[4], from = sign * s->c[0], to, t;
    int i, n = fsi__sweep_knots(s, knot);
    for (i = 0; i < n; i++, from = to) {
        to = sign * fsi__sweep_value(s, knot[i + 1]);
        if (from < -s->tolerance || !(to < -s->tolerance)) continue;
        t = from > 0 ? fsi__sweep_root(s, sign, knot[i], knot[i + 1]) : knot[i];
        if (fsi__sweep_on_face(s, t, bary)) return t;
    }
    return -1;
}

FSI_API fsi_mesh_hit fsi_mesh_sweep_face(const fsi_mesh *mesh, int face, fsi_vec3 x0, fsi_vec3 x1, int side)
{
    fsi_mesh_hit h = fsi__no_hit();
    fsi__sweep s;
    double t, best = 2, bary[3];
    int k, from;
    if (!fsi__is_mesh(mesh) || face < 0 || face >= mesh->face_count || !fsi_v3_is_finite(x0) || !fsi_v3_is_finite(x1))
        return h;

    /* From the front, from the back, or both: the earlier one. */
    s = fsi__sweep_begin(mesh, face, fsi__flatten(mesh->corners, x0), fsi__flatten(mesh->corners, x1));
    for (from = 1; from >= -1; from -= 2) {
        if (from > 0 ? side < 0 : side > 0) continue;
        t = fsi__sweep_side(&s, from, bary);
        if (t < 0 || t >= best) continue;
        best = t;
        h.face = face;
        h.side = from;
        h.t = (fsi_real)t;
        for (k = 0; k < 3; k++) h.bary[k] = (fsi_real)bary[k];
    }

    /* Where the point then is. */
    if (h.face < 0) return h;
    h.normal = mesh->face_normals[face];
    for (k = 0; k < mesh->corners; k++)
        h.point = fsi_v3_madd(h.point, h.bary[k], mesh->vertices[mesh->faces[mesh->corners * face + k]]);
    return h;
}

FSI_API fsi_mesh_hit fsi_mesh_sweep(const fsi_mesh *mesh, fsi_vec3 x0, fsi_vec3 x1, int side)
{
    fsi_mesh_hit best = fsi__no_hit(), h;
    fsi__walk w;
    fsi_box3 box;
    int f;
    if (!fsi__is_mesh(mesh) || !fsi_v3_is_finite(x0) || !fsi_v3_is_finite(x1)) return best;
    box = fsi_box3_grow(fsi_box3_grow(fsi_box3_empty(), fsi__flatten(mesh->corners, x0)),
        fsi__flatten(mesh->corners, x1));
    box = fsi_box3_inflate(box,
        (fsi_real)FSI__SWEEP_TOLERANCE * (fsi_v3_norm(mesh->box.lo) + fsi_v3_norm(mesh->box.hi)));
    for (f = fsi__walk_box(&w, fsi__nodes(mesh), box); f >= 0; f = fsi__walk_next(&w, 0)) {
        if (!fsi_box3_overlap(box, fsi__faces_swept_box(mesh, f, f + 1))) continue;
        h = fsi_mesh_sweep_face(mesh, f, x0, x1, side);
        if (h.face >= 0 && (best.face < 0 || h.t < best.t)) best = h;
    }
    return best;
}

FSI__COLD_BEGIN

/* ---- >>mesh mass ---------------------------------------------------------------------------------------------- */

/* Sum over simplices: a face with the origin (closed; signed measure w by the divergence theorem), or the face itself
   (sheet). With corners a_i (the origin counts, but adds nothing), S = sum a_i, in n dimensions:
      int x = w S/(n + 1),     int x x^T = w/((n + 1)(n + 2)) (sum a_i a_i^T + S S^T) */
static void fsi__mass_add(const fsi_mesh *m, int face, fsi_vec3 origin, double *volume, double *first, double *second)
{
    const int *v = m->faces + m->corners * face;
    int i, r, c, k = m->corners, n = m->kind == FSI_MESH_CLOSED ? k : k - 1;
    double a[3][3] = { { 0 } }, sum[3] = { 0, 0, 0 }, w;
    fsi__d3 p[3], normal;
    for (i = 0; i < k; i++) {
        p[i] = fsi__d3_diff(m->vertices[v[i]], origin);
        a[i][0] = p[i].x, a[i][1] = p[i].y, a[i][2] = p[i].z;
        for (r = 0; r < 3; r++) sum[r] += a[i][r];
    }
    normal = fsi__d3_normal(fsi__d3_sub(p[1], p[0]), fsi__d3_sub(p[k - 1], p[0]), k);
    if (m->kind == FSI_MESH_CLOSED) w = fsi__d3_dot(p[0], normal) / (k == 3 ? 6 : 2);
    else w = fsi__d3_norm(normal) / (k == 3 ? 2 : 1);
    *volume += w;
    for (r = 0; r < 3; r++) {
        first[r] += w * sum[r] / (n + 1);
        for (c = 0; c < 3; c++) second[3 * r + c] += w / ((n + 1) * (n + 2))
            * (a[0][r] * a[0][c] + a[1][r] * a[1][c] + a[2][r] * a[2][c] + sum[r] * sum[c]);
    }
}

FSI_API fsi_status fsi_mesh_mass(const fsi_mesh *mesh, fsi_real density, fsi_real thickness, fsi_mass_properties *out)
{
    static const char name[] = "fsi_mesh_mass";
    double volume = 0, first[3] = { 0, 0, 0 }, second[9] = { 0 }, c[3], trace, depth, mass;
    fsi_vec3 origin;
    int f, r, k;

    /* Check. */
    if (!fsi__is_mesh(mesh)) return FSI_ERROR_COOKIE;
    depth = mesh->kind == FSI_MESH_CLOSED ? 1 : (double)thickness;
    if (!out) return fsi__fail(mesh->context, FSI_ERROR_ARGUMENT, name, -1, 0, "out is NULL");
    if (!(density > 0) || !fsi_is_finite((double)density))
        return fsi__fail(mesh->context, FSI_ERROR_ARGUMENT, name, -1, (double)density,
            "density %g is not positive", (double)density);
    if (!(depth > 0) || !fsi_is_finite(depth))
        return fsi__fail(mesh->context, FSI_ERROR_ARGUMENT, name, -1, depth, "thickness %g is not positive", depth);

    /* Moments of volume about the middle of the box; then about the centre. */
    origin = fsi__box_middle(mesh->box);
    for (f = 0; f < mesh->face_count; f++) fsi__mass_add(mesh, f, origin, &volume, first, second);
    if (!(volume > 0)) return fsi__fail(mesh->context, FSI_ERROR_MESH, name, -1, volume,
        "the volume is %g: a container is not a body, nor is a mesh that was moved inside out", volume);
    for (r = 0; r < 3; r++) c[r] = first[r] / volume;
    for (r = 0; r < 3; r++) for (k = 0; k < 3; k++) second[3 * r + k] -= volume * c[r] * c[k];

    /* Inertia = mass (trace(S) 1 - S), S the second moments. */
    trace = second[0] + second[4] + second[8];
    mass = (double)density * depth;
    out->volume = (fsi_real)(volume * depth);
    out->mass = (fsi_real)(volume * mass);
    out->center = fsi_v3_add(origin, fsi_v3((fsi_real)c[0], (fsi_real)c[1], (fsi_real)c[2]));
    for (k = 0; k < 9; k++) out->inertia.m[k] = (fsi_real)(mass * ((k % 4 == 0 ? trace : 0) - second[k]));
    /* only the last counts in 2D */
    if (mesh->corners == 2) out->inertia.m[0] = out->inertia.m[4] = out->inertia.m[8] / 2;
    if (mesh->corners == 2) out->inertia.m[1] = out->inertia.m[3] = 0;
    return FSI_OK;
}

/* ---- >>mesh checks ---------------------------------------------------------------------------------------- */

FSI_API fsi_status fsi__check_mesh(fsi_context *context, const char *function, const fsi_mesh *mesh, int dim,
    int closed)
{
    if (!mesh) return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, 0, "desc.mesh is NULL");
    if (mesh->cookie != FSI__COOKIE('m', fsi_mesh))
        return fsi__fail(context, FSI_ERROR_COOKIE, function, -1, 0,
            "desc.mesh was not made by fsi_mesh_create of this version and precision");
    if (mesh->corners != dim)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, function, -1, mesh->corners,
            "desc.mesh: a %dD simulator needs %s", dim, dim == 3 ? "triangles" : "segments");
    if (closed && mesh->kind != FSI_MESH_CLOSED)
        return fsi__fail(context, FSI_ERROR_MESH, function, -1, 0, "desc.mesh is not closed: it has no inside");
    return FSI_OK;
}

FSI__COLD_END
FSI__STRICT_END

#endif /* once */
#endif /* implementation */
