/* fsi_shape.h - balls, boxes and closed meshes by their signed distance.
   SPDX-License-Identifier: MIT

   DO THIS
      in ONE source file:                         in every other file:
         #define FSI_IMPLEMENTATION                  #include "fsi_shape.h"
         #include "fsi_shape.h"

   HOW FAR IT IS TO A BALL
      fsi_shape ball = fsi_shape_sphere(fsi_v3(0, 0, 1), 0.5f);
      printf("%g m\n", (double)fsi_shape_distance(&ball, fsi_v3(0, 0, 0)));        // 0.5

   WHAT IS IN HERE (search for >>)
      >>shapes         ball, box, mesh; >>stages their distances at the points of lattices, and what emitters and sinks
                       of all liquids share, for fsi's own headers, not for you
   MACROS: those of fsi.h.
   UNITS: SI.
*/
#ifndef FSI_SHAPE_H
#define FSI_SHAPE_H

#include "fsi_mesh.h"

/* ---- >>shapes --------------------------------------------------------------------------------------------------- */

/* A solid by its signed distance, negative inside. Made by the functions below; a value, nothing to free. */
typedef struct fsi_shape fsi_shape;
struct fsi_shape {
    /* hint: 0 or more, the face nearest to the last point asked for, near which the search begins; -1: not known */
    fsi_real (*distance)(const fsi_shape *s, fsi_vec3 x, int *hint);
    fsi_box3 box;             /* around what is inside; of a box the box itself [m] */
    fsi_vec3 center;
    fsi_real radius;
    fsi_real sign;            /* mesh: 1, negative in its solid; -1, the other way round */
    const fsi_mesh *mesh;     /* yours: it must outlive the shape */
};

/* a ball, radius > 0 [m]; in 2D with equal z a disc */
FSI_API fsi_shape fsi_shape_sphere(fsi_vec3 center, fsi_real radius);
FSI_API fsi_shape fsi_shape_box(fsi_box3 box);                        /* along the axes, not empty */
/* the solid of a CLOSED mesh, as it is now; of a container, what is outside of it */
FSI_API fsi_shape fsi_shape_mesh(const fsi_mesh *mesh);
/* Signed distance [m] at x: exact, but inside of a mesh that crosses itself. FSI_REAL_MAX where x is
   not finite, where the shape is NULL, or made of no mesh. */
FSI_API fsi_real fsi_shape_distance(const fsi_shape *shape, fsi_vec3 x);

/* ---- >>stages: for fsi's own headers, not for you --------------------------------------------------------------- */

/* Shapes on a lattice. As |d(x) - d(y)| <= |x - y|, one look at the middle of a box of points tells, when it
   is further from the surface than half the box's diagonal r, on which side all of them are:

       . . . .            |d| >= r + limit: all values are beyond the limit, with the sign of d
       . . . .  ---r--    else the box is cut in eight, and so on down to single points
       . . . .  |d|   \
       . . . .         )  surface

   A mesh whose faces are not much smaller than cells is faster from the other end: each face goes to the points that it
   may be nearest to.

   Entry (x, y, z) of the lattice stands at `at` + (x, y, z) dx and goes to out[x stride[0] + y stride[1] + z
   stride[2]]. */
typedef struct fsi__sampling {
    const fsi_shape *shape;
    fsi_vec3 at;
    fsi_real dx, limit;
    int stride[3];
    fsi_real *out;
} fsi__sampling;

/* Fills out[] for the points lo .. hi - 1 with the distance, clamped to +-limit. */
FSI_API void fsi__sample_lattice(const fsi__sampling *s, const int *lo, const int *hi);
/* The distance at the middle of the box of points lo .. hi - 1, and half its diagonal. */
FSI_API fsi_real fsi__sample_middle(const fsi__sampling *s, const int *lo, const int *hi, int *hint, fsi_real *r);
/* Is any of these distances below the limit? One point is within dx sqrt(3)/2 of the middle of the box. */
FSI_API int fsi__sample_reaches(const fsi__sampling *s, const int *lo, const int *hi, int hint);
/* Is a face of the mesh that near? */
FSI_API int fsi__scatter_is_near(const fsi__sampling *s, const int *lo, const int *hi);
/* The box around the points lo .. hi - 1 and the limit. */
FSI_API fsi_box3 fsi__scatter_box(const fsi__sampling *s, const int *lo, const int *hi);

/* For emitters and sinks of all liquids. Axes of an inlet of this flow (unit): the last is the flow's; the first is
   `side`, made perpendicular to it, or where that is 0 the coordinate axis farthest from the flow; in 2D it lies in the
   plane. Error: ARGUMENT (desc.side). */
FSI_API fsi_status fsi__inlet_axes(fsi_context *context, const char *fn, int dim, fsi_vec3 flow, fsi_vec3 side,
    fsi_vec3 axis[3]);
/* Is desc.box one? In 2D z does not count. Error: ARGUMENT. */
FSI_API fsi_status fsi__check_box(fsi_context *context, const char *fn, int dim, const fsi_box3 *box);

#endif /* FSI_SHAPE_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_SHAPE_IMPLEMENTATION
#define FSI_SHAPE_IMPLEMENTATION
#endif
#ifdef FSI_SHAPE_IMPLEMENTATION
#ifndef FSI_SHAPE_IMPLEMENTATION_DONE
#define FSI_SHAPE_IMPLEMENTATION_DONE

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_mesh.h"

FSI__STRICT_BEGIN

/* ---- >>shapes implementation ------------------------------------------------------------------------------------ */

static fsi_real fsi__distance_to_sphere(const fsi_shape *s, fsi_vec3 x, int *hint)
{
    (void)hint;
    return fsi_v3_norm(fsi_v3_sub(x, s->center)) - s->radius;
}

/* q: how far x is outside of the slab of each axis, negative inside. Outside d = |max(q, 0)|, inside the largest q. */
static fsi_real fsi__distance_to_box(const fsi_shape *s, fsi_vec3 x, int *hint)
{
    const fsi_vec3 q = fsi_v3_max(fsi_v3_sub(s->box.lo, x), fsi_v3_sub(x, s->box.hi)), zero = fsi_v3(0, 0, 0);
    const fsi_real most = fsi_max(q.x, fsi_max(q.y, q.z));
    (void)hint;
    return most > 0 ? fsi_v3_norm(fsi_v3_max(q, zero)) : most;
}

static fsi_real fsi__distance_to_mesh(const fsi_shape *s, fsi_vec3 x, int *hint)
{
    const fsi__node *nodes = fsi__nodes(s->mesh);
    fsi_mesh_hit h;
    fsi__foot best, f;
    fsi__walk w;
    int g;
    if (*hint < 0) *hint = 0;
    best = fsi__closest_foot(s->mesh, *hint, x);
    w.point = x;
    for (g = fsi__walk_begin(&w, FSI__WALK_POINT, nodes, (double)best.d2); g >= 0;
        g = fsi__walk_next(&w, (double)best.d2)) {
        f = fsi__closest_foot(s->mesh, g, x);
        if (!(f.d2 < best.d2)) continue;
        best = f;
        *hint = g;
    }
    h = fsi__foot_hit(s->mesh, *hint, x, &best);
    return h.side < 0 ? -s->sign * h.t : s->sign * h.t;
}

FSI_API fsi_shape fsi_shape_sphere(fsi_vec3 center, fsi_real radius)
{
    fsi_shape s;
    memset(&s, 0, sizeof s);
    s.distance = fsi__distance_to_sphere;
    s.center = center;
    s.radius = radius;
    s.box.lo = s.box.hi = center;
    s.box = fsi_box3_inflate(s.box, radius);
    return s;
}

FSI_API fsi_shape fsi_shape_box(fsi_box3 box)
{
    fsi_shape s;
    memset(&s, 0, sizeof s);
    s.distance = fsi__distance_to_box;
    s.box = box;
    return s;
}

FSI_API fsi_shape fsi_shape_mesh(const fsi_mesh *mesh)
{
    fsi_shape s;
    memset(&s, 0, sizeof s);
    if (!fsi__is_mesh(mesh)) return s;
    s.distance = fsi__distance_to_mesh;
    s.box = mesh->box;
    s.mesh = mesh;
    s.sign = 1;
    return s;
}

FSI_API fsi_real fsi_shape_distance(const fsi_shape *shape, fsi_vec3 x)
{
    int hint = -1;
    if (!shape || !shape->distance || !fsi_v3_is_finite(x)) return FSI_REAL_MAX;
    return shape->distance(shape, shape->mesh ? fsi__flatten(shape->mesh->corners, x) : x, &hint);
}

/* ---- >>lattices of distances ------------------------------------------------------------------------------------ */

/* A search in the tree takes about as long as the test of so many faces that are not near. */
#define FSI__SCATTER_LOOKS 500

FSI_API fsi_real fsi__sample_middle(const fsi__sampling *s, const int *lo, const int *hi, int *hint, fsi_real *r)
{
    const fsi_real h = s->dx / 2;
    const fsi_vec3 size = fsi_v3((fsi_real)(hi[0] - lo[0] - 1), (fsi_real)(hi[1] - lo[1] - 1),
        (fsi_real)(hi[2] - lo[2] - 1));
    const fsi_vec3 twice = fsi_v3((fsi_real)(hi[0] + lo[0] - 1), (fsi_real)(hi[1] + lo[1] - 1),
        (fsi_real)(hi[2] + lo[2] - 1));
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
    if (foot.d2 < *out * *out)
        *out = (fsi_real)fsi__foot_hit(mesh, face, p, &foot).side * s->shape->sign * fsi_sqrt(foot.d2);
}

/* Tests the face at the points lo .. hi - 1 and keeps it where it is nearer than the best face so far. The face lies in
   a disc of its plane, by which most points are excluded: with h the distance to the plane and t that to the axis of
   the disc, d^2 >= h^2 + max(t - radius, 0)^2, which is below best^2 = h^2 + left when u = t^2 - radius^2 - left is
   below 2 radius sqrt(left). */
static void fsi__scatter_face(const fsi__sampling *s, const int *lo, const int *hi, int face)
{
    const fsi_mesh *mesh = s->shape->mesh;
    const int *c = mesh->faces + mesh->corners * face;
    const fsi_vec3 n = mesh->face_normals[face];
    fsi_vec3 at = s->at;
    fsi_real rr = 0, most;
    int k, x, y, z;

    /* The disc that holds the face. */
    for (k = 0; k < mesh->corners; k++) at = fsi_v3_madd(at, -1 / (fsi_real)mesh->corners, mesh->vertices[c[k]]);
    for (k = 0; k < mesh->corners; k++)
        rr = fsi_max(rr, fsi_v3_norm2(fsi_v3_add(fsi_v3_sub(mesh->vertices[c[k]], s->at), at)));
    most = (s->limit + fsi_sqrt(rr)) * (s->limit + fsi_sqrt(rr));

    /* Points of the lattice that may be nearer to the face. */
    for (z = lo[2]; z < hi[2]; z++)
        for (y = lo[1]; y < hi[1]; y++) {
            const fsi_real qy = at.y + (fsi_real)y * s->dx, qz = at.z + (fsi_real)z * s->dx, rest = qy * qy + qz * qz,
                level = qy * n.y + qz * n.z;
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
    const fsi_box3 box = fsi_box3_inflate(fsi__faces_box(s->shape->mesh, s->shape->mesh->vertices, face, face + 1),
        s->limit);
    const fsi_real scale = 1 / s->dx;
    int a, count = 1;
    for (a = 0; a < 3; a++) {
        const fsi_real origin = fsi__axis(s->at, a), below = (fsi__axis(box.lo, a) - origin) * scale,
            above = (fsi__axis(box.hi, a) - origin) * scale;
        from[a] = below > (fsi_real)lo[a] ? (below < (fsi_real)hi[a] ? (int)below : hi[a]) : lo[a];
        to[a] = above < (fsi_real)(hi[a] - 1) ? (above > (fsi_real)(lo[a] - 1) ? (int)(above + 1) : lo[a]) : hi[a];
        count *= to[a] > from[a] ? to[a] - from[a] : 0;
    }
    return count;
}

FSI_API fsi_box3 fsi__scatter_box(const fsi__sampling *s, const int *lo, const int *hi)
{
    fsi_box3 box;
    box.lo = fsi_v3_madd(s->at, s->dx, fsi_v3((fsi_real)lo[0], (fsi_real)lo[1], (fsi_real)lo[2]));
    box.hi = fsi_v3_madd(s->at, s->dx, fsi_v3((fsi_real)(hi[0] - 1), (fsi_real)(hi[1] - 1), (fsi_real)(hi[2] - 1)));
    return fsi_box3_inflate(box, s->limit * (fsi_real)1.001);
}

FSI_API int fsi__scatter_is_near(const fsi__sampling *s, const int *lo, const int *hi)
{
    const fsi_mesh *mesh = s->shape->mesh;
    const fsi_box3 box = fsi__scatter_box(s, lo, hi);
    fsi__walk w;
    int f = fsi__walk_box(&w, fsi__nodes(mesh), box);
    while (f >= 0 && !fsi_box3_overlap(box, fsi__faces_box(mesh, mesh->vertices, f, f + 1))) f = fsi__walk_next(&w, 0);
    return f >= 0;
}

/* No face passes between a point that none came near to (limit > dx) and the one before it along some axis: it has the
   same sign. Only for the first of all points the mesh must be searched. */
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
                else before = s->shape->distance(s->shape,
                    fsi_v3_madd(s->at, s->dx, fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z)), &hint);
                *out = before < 0 ? -s->limit : s->limit;
            }
}

/* fsi__sample_lattice for a mesh, face by face. 0: there are too many faces, searching will be faster. */
static int fsi__scatter(const fsi__sampling *s, const int *lo, const int *hi)
{
    int from[3], to[3], f, x, y, z, left = FSI__SCATTER_LOOKS * (hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]);
    fsi__walk w;
    for (z = lo[2]; z < hi[2]; z++)
        for (y = lo[1]; y < hi[1]; y++)
            for (x = lo[0]; x < hi[0]; x++) s->out[x * s->stride[0] + y * s->stride[1] + z * s->stride[2]] = s->limit;
    for (f = fsi__walk_box(&w, fsi__nodes(s->shape->mesh), fsi__scatter_box(s, lo, hi)); f >= 0;
        f = fsi__walk_next(&w, 0)) {
        const int looks = fsi__scatter_range(s, f, lo, hi, from, to);
        left -= looks;
        if (left < 0) return 0;
        if (looks > 0) fsi__scatter_face(s, from, to, f);
    }
    fsi__scatter_signs(s, lo, hi);
    return 1;
}

/* fsi__sample_lattice for any shape, by searching. */
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

FSI_API void fsi__sample_lattice(const fsi__sampling *s, const int *lo, const int *hi)
{
    if (!s->shape->mesh || !fsi__scatter(s, lo, hi)) fsi__sample_search(s, lo, hi, -1);
}

FSI_API int fsi__sample_reaches(const fsi__sampling *s, const int *lo, const int *hi, int hint)
{
    int from[3], to[3], c, found = 0;
    fsi_real r, d = fsi__sample_middle(s, lo, hi, &hint, &r);
    if (d >= r + s->limit) return 0;
    if (!(r > 0) || d + (fsi_real)0.87 * s->dx < s->limit) return 1;
    for (c = 0; c < 8 && !found; c++)
        found = fsi__sample_part(lo, hi, c, from, to) && fsi__sample_reaches(s, from, to, hint);
    return found;
}

/* ---- >>inlets and sinks ------------------------------------------------------------------------------------------ */

FSI_API fsi_status fsi__inlet_axes(fsi_context *context, const char *fn, int dim, fsi_vec3 flow, fsi_vec3 side,
    fsi_vec3 axis[3])
{
    const fsi_vec3 size = fsi_v3(fsi_abs(flow.x), fsi_abs(flow.y), fsi_abs(flow.z));
    if (dim == 2) side = fsi_v3(-flow.y, flow.x, 0);
    else if (!(fsi_v3_norm2(side) > 0))
        side = size.x <= size.y && size.x <= size.z ? fsi_v3(1, 0, 0) : size.y <= size.z ? fsi_v3(0, 1, 0)
            : fsi_v3(0, 0, 1);
    side = fsi_v3_unit(side);
    side = fsi_v3_madd(side, -fsi_v3_dot(side, flow), flow);
    if (!(fsi_v3_norm2(side) > (fsi_real)1e-6))
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0, "desc.side is parallel to the direction, or too long");
    axis[0] = fsi_v3_unit(side);
    axis[1] = dim == 2 ? fsi_v3(0, 0, 1) : fsi_v3_cross(flow, axis[0]);
    axis[2] = flow;
    return FSI_OK;
}

FSI_API fsi_status fsi__check_box(fsi_context *context, const char *fn, int dim, const fsi_box3 *box)
{
    if (box->lo.x <= box->hi.x && box->lo.y <= box->hi.y && (dim == 2 || box->lo.z <= box->hi.z)) return FSI_OK;
    return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0, "desc.box is not a box");
}

FSI__STRICT_END

#endif /* once */
#endif /* implementation */
