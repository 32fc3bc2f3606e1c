/* fsi_collide.h - shapes of rigid bodies: balls, capsules, boxes, cylinders, meshes; their mass, and contacts of two.
   SPDX-License-Identifier: MIT

   DO THIS
      Nothing, mostly: fsi_rigid.h includes this file, and gives shapes to bodies. By itself:

   WHAT A CYLINDER WEIGHS
      fsi_rigid_shape can = fsi_rigid_cylinder(0.033f, 0.06f);       // radius, half its length [m]
      fsi_mass_properties m;
      if (fsi_rigid_shape_mass(NULL, &can, 3, &m) != FSI_OK) return 1;
      printf("%g kg\n", (double)m.mass);                             // 1000 kg/m^3

   WHAT IS IN HERE (search for >>)
      >>shapes         kinds, makers, mass;  >>stages  distance, contacts of a pair, for fsi's own headers, not for you;
      then >>mass and distance  >>contacts of one pair of shapes  >>parts  >>skins  >>drawing
   MACROS: those of fsi.h.
   UNITS: SI; in 2D, per metre of depth.
   PRECISION: double.
*/
#ifndef FSI_COLLIDE_H
#define FSI_COLLIDE_H

#include "fsi_mesh.h"

/* ---- >>shapes ---------------------------------------------------------------------------------------------------- */

/* Axes of capsules and cylinders are the shape's x axis. 2D: a sphere is a disc, CYLINDER is refused, meshes are
   segments. */
typedef enum fsi_rigid_shape_kind { FSI_RIGID_SPHERE, FSI_RIGID_CAPSULE, FSI_RIGID_BOX, FSI_RIGID_CYLINDER,
    FSI_RIGID_MESH } fsi_rigid_shape_kind;

/* A part of a body. Make one with the functions below, then set what differs. */
typedef struct fsi_rigid_shape {
    fsi_rigid_shape_kind kind;
    fsi_pose pose;           /* of the shape in the body's frame; default identity */
    fsi_vec3 half;           /* BOX: half sides [m] (2D: z is not used) */
    fsi_real radius;         /* SPHERE, CAPSULE, CYLINDER [m] */
    fsi_real half_length;    /* CAPSULE: half the segment between its centres, CYLINDER: half its length [m] */
    const fsi_mesh *mesh;    /* MESH: closed, no container; in its present shape; copied by the call that gets it */
    fsi_real samples;        /* MESH: spacing of the samples on edges and faces, by which its contacts are found [m];
                                default 0: a twelfth of its bounding box's diagonal, or wider for about 4000 in all.
                                Vertices are always samples */
    fsi_real density;        /* [kg/m^3] (2D: [kg/m^2] per metre of depth); default 1000 */
} fsi_rigid_shape;

/* Shapes centred at the origin of their pose, of density 1000. */
FSI_API fsi_rigid_shape fsi_rigid_sphere(fsi_real radius);
FSI_API fsi_rigid_shape fsi_rigid_capsule(fsi_real radius, fsi_real half_length);
FSI_API fsi_rigid_shape fsi_rigid_box(fsi_vec3 half);
FSI_API fsi_rigid_shape fsi_rigid_cylinder(fsi_real radius, fsi_real half_length);
FSI_API fsi_rigid_shape fsi_rigid_mesh(const fsi_mesh *mesh);
/* Volume, mass, centre and inertia about the centre, in the frame that shape.pose refers to: exact; of meshes by the
   divergence theorem (fsi_mesh_mass). Errors (context may be NULL): ARGUMENT, NAN (name the field), MESH. */
FSI_API fsi_status fsi_rigid_shape_mass(fsi_context *context, const fsi_rigid_shape *shape, int dim,
    fsi_mass_properties *out);

/* ---- >>stages: for fsi's own headers, not for you ---------------------------------------------------------------- */

/* A shape of a body, relative to the centre of mass, in body axes. */
typedef struct fsi__col_part {
    fsi_rigid_shape_kind kind;
    fsi__d3 at;                   /* its centre; MESH: of the bounding box; vertices are relative to the centre of
                                     mass */
    double turn[9];               /* shape axes to body axes */
    fsi__d3 half;                 /* BOX (2D: z infinite), MESH: of its bounding box */
    double radius, length;        /* length: half */
    double thick;                 /* half its smallest extent */
    double reach;                 /* distance of its farthest point from the centre of mass */
    fsi_mesh *mesh;               /* MESH: its own copy */
    fsi__d3 *sample;              /* MESH: points on it, vertices first */
    int samples, corners;         /* corners: how many of them are vertices */
} fsi__col_part;

/* A part in the world. */
typedef struct fsi__col_placed {
    const fsi__col_part *part;
    int body, index;              /* index: of the part in its body */
    fsi__d3 c;                    /* centre; MESH: centre of mass of the body */
    double a[9];                  /* shape axes to world */
    double lo[3], hi[3];          /* bounding box, with the region that it may reach in the step */
} fsi__col_placed;

/* A contact point of a and b: midway between their surfaces, normal out of b, depth negative for a gap. feature:
   identifies the pair of features. hidden: needs no row in the contact solve. */
typedef struct fsi__col_point { fsi__d3 x, n; double depth; uint32_t feature; int hidden; } fsi__col_point;

/* Contact points of one pair of parts. Those of about the same normal are a patch; a patch is reduced to the points
   that span it. */
#define FSI__COL_POINTS 128  /* room */
#define FSI__COL_PATCH 4     /* points that are kept of a patch */
typedef struct fsi__col_manifold {
    fsi__col_point point[FSI__COL_POINTS];
    int n;
    double margin;         /* points with a larger gap are left out */
    double bound;          /* if no point was found: a lower bound of the gap */
} fsi__col_manifold;

/* Checks of input, here of a pose. what: its name in errors, as "desc.pose", "shape 2: pose". Errors of the three:
   ARGUMENT, NAN, LIMIT; of shapes also COOKIE, MESH; name the field. */
FSI_API fsi_status fsi__col_check_pose(fsi_context *context, const char *fn, const char *what, int index,
    const fsi_pose *p);
/* In 2D: the pose lies in the plane z = 0. */
FSI_API fsi_status fsi__col_check_flat(fsi_context *context, const char *fn, const char *what, int index, int dim,
    const fsi_pose *p);
/* Sizes, density, pose and mesh of shape `index`. */
FSI_API fsi_status fsi__col_check_shape(fsi_context *context, const char *fn, const fsi_rigid_shape *s, int index,
    int dim);
FSI_API int fsi__col_within(fsi_vec3 v, double most); /* finite, and no component above `most` */

/* The part of a body with its centre of mass at `center` of the frame of the shape's pose. Errors: MEMORY, LIMIT
   (samples), those of fsi_mesh_create; then call free_part. */
FSI_API fsi_status fsi__col_make_part(fsi_context *context, fsi__col_part *part, const fsi_rigid_shape *s,
    fsi__d3 center, int dim, const char *fn, int index);
/* Frees what make_part made; a zeroed part is fine. */
FSI_API void fsi__col_free_part(fsi_context *context, fsi__col_part *part);
FSI_API double fsi__col_volume(const fsi__col_part *part, int dim);
/* The part at the pose of its body. bound: its bounding box, inflated by `grow`. */
FSI_API void fsi__col_place(const fsi__col_part *part, fsi__d3 center, const double *turn, fsi__col_placed *p);
FSI_API void fsi__col_bound(fsi__col_placed *p, double grow);
/* Distance of the world point x from a part, negative inside; n: gradient. Meshes: 1e300 beyond `reach`. */
FSI_API double fsi__col_distance(const fsi__col_placed *p, fsi__d3 x, double reach, fsi__d3 *n);

/* All contact points of two parts, within h->margin. */
FSI_API void fsi__col_collide(fsi__col_manifold *h, const fsi__col_placed *a, const fsi__col_placed *b, int dim);
/* Those of a part and the half-space n.x < offset; they are added to h. */
FSI_API void fsi__col_collide_plane(fsi__col_manifold *h, const fsi__col_placed *a, fsi__d3 n, double offset, int dim);
/* How many contact points a pair of kinds can have. */
FSI_API int fsi__col_capacity(fsi_rigid_shape_kind a, fsi_rigid_shape_kind b);
/* Patch by patch, deepest first, until `most` points are kept; the rest of each patch is dropped. */
FSI_API void fsi__col_reduce(fsi__col_manifold *h, int most);

/* A mesh under construction; NULL arrays: vertices and elements are only counted. */
typedef struct fsi__col_skin { fsi_vec3 *vertex; int *element; int vertices, elements; } fsi__col_skin;
/* Adds a closed surface of the part. edge: the longest edge on curved shapes; 0: 24 around. */
FSI_API void fsi__col_skin_part(fsi__col_skin *s, const fsi__col_placed *p, double edge, int dim);
/* Edges of the part, to the line hook. */
FSI_API void fsi__col_draw_part(const fsi_debug_draw *d, const fsi__col_placed *p, int dim, uint32_t rgb);
FSI_API void fsi__col_draw_line(const fsi_debug_draw *d, fsi__d3 a, fsi__d3 b, uint32_t rgb);

#endif /* FSI_COLLIDE_H */

/* ==== Stop here if you only want the API. ====================================================================== */

#ifdef FSI_IMPLEMENTATION
#undef FSI_COLLIDE_IMPLEMENTATION
#define FSI_COLLIDE_IMPLEMENTATION
#endif
#ifdef FSI_COLLIDE_IMPLEMENTATION
#ifndef FSI_COLLIDE_IMPLEMENTATION_DONE
#define FSI_COLLIDE_IMPLEMENTATION_DONE

/* The contact points of two parts:

      fsi__col_collide
          two boxes: fsi__col_boxes
              fsi__col_try_axis          separating axes: the least overlap decides
              fsi__col_face              a face, and the other box's face cut off at its sides, or
              fsi__col_edges             two edges
          else, from each of the two into the other: fsi__col_probe
              fsi__col_ball              a ball, or a point, by the signed distance from the other part
              fsi__col_edge              a segment: its ends, and its point of least distance
              fsi__col_probe_box ...     corners and edges, rims, samples of meshes
          fsi__col_reduce                fsi__col_choose: the points that span each patch
      fsi__col_collide_plane             points below the plane */

/* The bodies of the headers below, where these were only declared so far. */
#include "fsi_mesh.h"
#include <stdio.h>

FSI__STRICT_BEGIN

FSI__COLD_BEGIN

/* ---- >>mass and distance ----------------------------------------------------------------------------------------- */

FSI_API fsi_rigid_shape fsi_rigid_sphere(fsi_real radius)
{
    fsi_rigid_shape s;
    memset(&s, 0, sizeof s);
    s.kind = FSI_RIGID_SPHERE;
    s.pose.orientation = fsi_quat_identity();
    s.radius = radius;
    s.density = 1000;
    return s;
}

FSI_API fsi_rigid_shape fsi_rigid_capsule(fsi_real radius, fsi_real half_length)
{
    fsi_rigid_shape s = fsi_rigid_sphere(radius);
    s.kind = FSI_RIGID_CAPSULE;
    s.half_length = half_length;
    return s;
}

FSI_API fsi_rigid_shape fsi_rigid_box(fsi_vec3 half)
{
    fsi_rigid_shape s = fsi_rigid_sphere(0);
    s.kind = FSI_RIGID_BOX;
    s.half = half;
    return s;
}

FSI_API fsi_rigid_shape fsi_rigid_cylinder(fsi_real radius, fsi_real half_length)
{
    fsi_rigid_shape s = fsi_rigid_capsule(radius, half_length);
    s.kind = FSI_RIGID_CYLINDER;
    return s;
}

FSI_API fsi_rigid_shape fsi_rigid_mesh(const fsi_mesh *mesh)
{
    fsi_rigid_shape s = fsi_rigid_sphere(0);
    s.kind = FSI_RIGID_MESH;
    s.mesh = mesh;
    return s;
}

FSI_API int fsi__col_within(fsi_vec3 v, double most)
{
    return fabs((double)v.x) <= most && fabs((double)v.y) <= most && fabs((double)v.z) <= most;
}

FSI_API fsi_status fsi__col_check_pose(fsi_context *context, const char *fn, const char *what, int index,
    const fsi_pose *p)
{
    const fsi__where at = { fn, "", index, 3 };
    FSI__TRY(fsi__check_pose(context, &at, what, *p));
    if (fsi__col_within(p->position, 1e9)) return FSI_OK;
    return fsi__fail(context, FSI_ERROR_LIMIT, fn, index, 0, "%s.position lies farther than 1e9 m from the origin",
        what);
}

FSI_API fsi_status fsi__col_check_flat(fsi_context *context, const char *fn, const char *what, int index, int dim,
    const fsi_pose *p)
{
    if (dim == 3 || (p->position.z == 0 && p->orientation.x == 0 && p->orientation.y == 0)) return FSI_OK;
    return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, index, (double)p->position.z,
        "%s leaves the plane z = 0 of a 2D world", what);
}

static fsi_status fsi__col_check_mesh(fsi_context *context, const char *fn, int index, const fsi_mesh *m, int dim)
{
    if (!m) return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, index, 0, "shape %d: mesh is NULL", index);
    if (m->cookie != FSI__COOKIE('m', fsi_mesh))
        return fsi__fail(context, FSI_ERROR_COOKIE, fn, index, 0,
            "shape %d: mesh was not made by fsi_mesh_create of this version and precision", index);
    if (m->corners != dim)
        return fsi__fail(context, FSI_ERROR_MESH, fn, index, m->corners,
            "shape %d: its mesh is made of %s, the world is %dD", index, m->corners == 3 ? "triangles" : "segments",
            dim);
    if (m->kind != FSI_MESH_CLOSED || m->container)
        return fsi__fail(context, FSI_ERROR_MESH, fn, index, 0,
            "shape %d: its mesh is %s; a body is closed, with its normals outward", index,
            m->container ? "a container" : "open");
    if (m->report.self_intersections > 0)
        return fsi__fail(context, FSI_ERROR_MESH, fn, index, m->report.first_intersection,
            "shape %d: its mesh crosses itself at triangle %d", index, m->report.first_intersection);
    return FSI_OK;
}

FSI_API fsi_status fsi__col_check_shape(fsi_context *context, const char *fn, const fsi_rigid_shape *s, int index,
    int dim)
{
    static const fsi__field kind[] = { FSI__FIELD(fsi_rigid_shape, kind, FSI__INT, 0, FSI_RIGID_MESH, 0) };
    static const fsi__field density[] = {
        FSI__FIELD(fsi_rigid_shape, density, FSI__REAL, 0, FSI__HUGE, FSI__ABOVE)
    };
    static const fsi__field samples[] = { FSI__FIELD(fsi_rigid_shape, samples, FSI__REAL, 0, FSI__HUGE, 0) };
    static const fsi__field size[] = { /* BOX: from 0 on; CYLINDER: from 3; SPHERE, CAPSULE: from 4 */
        FSI__FIELD(fsi_rigid_shape, half.x, FSI__REAL, 1e-9, 1e8, 0),
        FSI__FIELD(fsi_rigid_shape, half.y, FSI__REAL, 1e-9, 1e8, 0),
        FSI__FIELD(fsi_rigid_shape, half.z, FSI__REAL, 1e-9, 1e8, 0),
        FSI__FIELD(fsi_rigid_shape, half_length, FSI__REAL, 1e-9, 1e8, 0),
        FSI__FIELD(fsi_rigid_shape, radius, FSI__REAL, 1e-9, 1e8, 0),
        FSI__FIELD(fsi_rigid_shape, half_length, FSI__REAL, 0, 1e8, 0)
    };
    char of[40], what[40];
    const fsi__where at = fsi__where_of(fn, "shape", index, of);
    if (!s) return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, index, 0, "shape %d is NULL", index);
    snprintf(what, sizeof what, "shape %d: pose", index);

    /* what all kinds have */
    FSI__TRY(FSI__CHECK_TABLE(context, &at, s, kind));
    if (dim == 2 && s->kind == FSI_RIGID_CYLINDER)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, index, 0,
            "shape %d: there are no cylinders in 2D; take a box", index);
    FSI__TRY(fsi__col_check_pose(context, fn, what, index, &s->pose));
    FSI__TRY(fsi__col_check_flat(context, fn, what, index, dim, &s->pose));
    FSI__TRY(FSI__CHECK_TABLE(context, &at, s, density));

    /* sizes */
    if (s->kind == FSI_RIGID_BOX) return fsi__check_rows(context, &at, s, size, dim);
    if (s->kind == FSI_RIGID_CYLINDER) return fsi__check_rows(context, &at, s, size + 3, 2);
    if (s->kind == FSI_RIGID_SPHERE) return fsi__check_rows(context, &at, s, size + 4, 1);
    if (s->kind == FSI_RIGID_CAPSULE) return fsi__check_rows(context, &at, s, size + 4, 2);
    FSI__TRY(fsi__col_check_mesh(context, fn, index, s->mesh, dim));
    return FSI__CHECK_TABLE(context, &at, s, samples);
}

/* Volume and principal moments over density of a shape of revolution about x: a middle piece of length 2 l and two
   ends, which together are a ball (2D: a disc) and whose centres of mass lie d beyond the middle piece:
      I across = (middle's) + ball (k r^2 + l^2 + 2 l d),  k = 2/5, d = 3 r/8;   2D: k = 1/2, d = 4 r/(3 pi) */
static double fsi__col_round_mass(double r, double l, int ends, int dim, double *along, double *across)
{
    double middle = dim == 3 ? FSI_PI * r * r * 2 * l : 4 * r * l;
    double ball = !ends ? 0 : (dim == 3 ? FSI_PI * r * r * r * 4 / 3 : FSI_PI * r * r);
    double k = dim == 3 ? 0.4 : 0.5, d = dim == 3 ? r * 3 / 8 : 4 * r / (3 * FSI_PI);
    *along = middle * r * r / 2 + ball * k * r * r;
    *across = middle * (dim == 3 ? r * r / 4 + l * l / 3 : (r * r + l * l) / 3)
        + ball * (k * r * r + l * l + 2 * l * d);
    return middle + ball;
}

/* Volume and principal moments in the frame of the shape itself, density 1. */
static double fsi__col_mass(const fsi_rigid_shape *s, int dim, double moment[3])
{
    double v, x = (double)s->half.x, y = (double)s->half.y, z = (double)s->half.z;
    if (s->kind == FSI_RIGID_BOX) {
        if (dim == 2) z = 0;
        v = dim == 3 ? 8 * x * y * z : 4 * x * y;
        moment[0] = v * (y * y + z * z) / 3;
        moment[1] = v * (x * x + z * z) / 3;
        moment[2] = v * (x * x + y * y) / 3;
    } else {
        double l = s->kind == FSI_RIGID_SPHERE ? 0 : (double)s->half_length;
        v = fsi__col_round_mass((double)s->radius, l, s->kind != FSI_RIGID_CYLINDER, dim, &moment[0], &moment[1]);
        moment[2] = moment[1];
    }
    return v;
}

FSI_API fsi_status fsi_rigid_shape_mass(fsi_context *context, const fsi_rigid_shape *shape, int dim,
    fsi_mass_properties *out)
{
    static const char fn[] = "fsi_rigid_shape_mass";
    double moment[3], v;
    if (!out) return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, 0, "out is NULL");
    if (dim != 2 && dim != 3)
        return fsi__fail(context, FSI_ERROR_ARGUMENT, fn, -1, dim, "dim is %d, it must be 2 or 3", dim);
    FSI__TRY(fsi__col_check_shape(context, fn, shape, 0, dim));

    /* in the frame of the shape, about its centre of mass */
    if (shape->kind == FSI_RIGID_MESH) {
        FSI__TRY(fsi_mesh_mass(shape->mesh, shape->density, 1, out));
        out->center = fsi_pose_point(shape->pose, out->center);
    } else {
        v = fsi__col_mass(shape, dim, moment);
        out->volume = (fsi_real)v;
        out->mass = (fsi_real)(v * (double)shape->density);
        out->center = shape->pose.position;
        out->inertia = fsi_m3_scale(fsi_m3_diagonal(fsi__d3_real(fsi__d3_at(moment))), shape->density);
    }

    /* turned into the frame of its pose */
    if (dim == 2)
        out->inertia = fsi_m3_diagonal(fsi_v3(out->inertia.m[8] / 2, out->inertia.m[8] / 2, out->inertia.m[8]));
    else out->inertia = fsi_body_world_tensor(shape->pose.orientation, out->inertia);
    return FSI_OK;
}

FSI__COLD_END

/* Distance of y from the box |y_k| <= half_k, negative inside, and its gradient n (exact, also at edges and
   corners). */
static double fsi__col_box_distance(fsi__d3 y, fsi__d3 half, fsi__d3 *n)
{
    double q[3], out[3], d, apart = 0;
    int k, most = 0;
    q[0] = fabs(y.x) - half.x; q[1] = fabs(y.y) - half.y; q[2] = fabs(y.z) - half.z;
    for (k = 0; k < 3; k++) {
        out[k] = q[k] > 0 ? q[k] : 0;
        apart += out[k] * out[k];
        if (q[k] > q[most]) most = k;
    }
    d = sqrt(apart);
    if (!(d > 0)) {
        out[0] = out[1] = out[2] = 0;
        out[most] = 1;
        apart = q[most];
    } else {
        for (k = 0; k < 3; k++) out[k] /= d;
        apart = d;
    }
    *n = fsi__d3_make(y.x < 0 ? -out[0] : out[0], y.y < 0 ? -out[1] : out[1], y.z < 0 ? -out[2] : out[2]);
    return apart;
}

static double fsi__col_ball_distance(fsi__d3 y, double radius, fsi__d3 *n)
{
    double d = fsi__d3_norm(y);
    *n = d > 0 ? fsi__d3_scale(y, 1 / d) : fsi__d3_make(0, 1, 0);
    return d - radius;
}

/* A cylinder is a box in the half plane (x, distance from the axis). */
static double fsi__col_cylinder_distance(fsi__d3 y, double radius, double length, fsi__d3 *n)
{
    double s = sqrt(y.y * y.y + y.z * y.z), d;
    fsi__d3 flat;
    d = fsi__col_box_distance(fsi__d3_make(y.x, s, 0), fsi__d3_make(length, radius, 1e150), &flat);
    *n = fsi__d3_make(flat.x, s > 0 ? flat.y * y.y / s : flat.y, s > 0 ? flat.y * y.z / s : 0);
    return d;
}

static double fsi__col_mesh_distance(const fsi_mesh *mesh, fsi__d3 y, double reach, fsi__d3 *n)
{
    fsi_mesh_hit h = fsi_mesh_closest(mesh, fsi__d3_real(y), (fsi_real)reach, -1);
    fsi__d3 away;
    double d;
    *n = fsi__d3_make(0, 1, 0);
    if (h.face < 0) return 1e300;
    away = fsi__d3_sub(y, fsi__d3_of(h.point));
    d = fsi__d3_norm(away);
    if (d > 1e-9 * (fabs(y.x) + fabs(y.y) + fabs(y.z)) && d > 0) *n = fsi__d3_scale(away, h.side / d);
    else *n = fsi__d3_of(h.normal);
    return h.side * d;
}

FSI_API double fsi__col_distance(const fsi__col_placed *p, fsi__d3 x, double reach, fsi__d3 *n)
{
    const fsi__col_part *s = p->part;
    fsi__d3 y = fsi__d9_mul_t(p->a, fsi__d3_sub(x, p->c)), out;
    double d, t;
    switch (s->kind) {
    case FSI_RIGID_BOX: d = fsi__col_box_distance(y, s->half, &out); break;
    case FSI_RIGID_CYLINDER: d = fsi__col_cylinder_distance(y, s->radius, s->length, &out); break;
    case FSI_RIGID_MESH: d = fsi__col_mesh_distance(s->mesh, y, reach, &out); break;
    default:
        t = y.x < -s->length ? -s->length : (y.x > s->length ? s->length : y.x);
        d = fsi__col_ball_distance(fsi__d3_make(y.x - t, y.y, y.z), s->radius, &out);
    }
    *n = fsi__d9_mul(p->a, out);
    return d;
}

FSI_API void fsi__col_place(const fsi__col_part *s, fsi__d3 center, const double *turn, fsi__col_placed *p)
{
    p->part = s;
    fsi__d9_product(turn, s->turn, p->a);
    p->c = s->kind == FSI_RIGID_MESH ? center : fsi__d3_add(center, fsi__d9_mul(turn, s->at));
}

FSI_API void fsi__col_bound(fsi__col_placed *p, double grow)
{
    const fsi__col_part *s = p->part;
    fsi__d3 m = s->kind == FSI_RIGID_MESH ? fsi__d3_add(p->c, fsi__d9_mul(p->a, s->at)) : p->c;
    int k;
    for (k = 0; k < 3; k++) {
        const double *a = p->a + 3 * k; /* row: components of the shape axes along world axis k */
        double h;
        if (s->kind == FSI_RIGID_BOX || s->kind == FSI_RIGID_MESH)
            h = fabs(a[0]) * s->half.x + fabs(a[1]) * s->half.y + fabs(a[2] * s->half.z);
        else if (s->kind == FSI_RIGID_CYLINDER)
            h = fabs(a[0]) * s->length + s->radius * sqrt(a[1] * a[1] + a[2] * a[2]);
        else h = fabs(a[0]) * s->length + s->radius;
        p->lo[k] = fsi__d3_axis(m, k) - h - grow;
        p->hi[k] = fsi__d3_axis(m, k) + h + grow;
    }
}

/* ---- >>contacts of one pair of shapes ---------------------------------------------------------------------------- */

#define FSI__COL_MOST 32    /* kept of one pair of shapes */

/* By how much a point is less deep than `deep`, negative. */
static double fsi__col_lack(const fsi__col_point *s, double deep) { return s->depth < deep ? s->depth - deep : 0; }

/* Of a point that is less deep: ten times what it lacks, but at most a fifth of the patch's size. Without that bound
   the far corner of a slanted tile, over a wide gap, would lose against two points at one place. */
static double fsi__col_penalty(const fsi__col_point *s, double deep, double size)
{
    return fmax(10 * fsi__col_lack(s, deep), -0.2 * size);
}

/* Appends to the triangle out[0 .. 2] the point that lies farthest outside it; depth counts once, as the others carry
   the body now. Returns how many were appended. */
static int fsi__col_choose_outside(const fsi__col_point *s, const int *in, int n, double deep, double size, int *out)
{
    const fsi__d3 a = s[out[0]].x, b = s[out[1]].x, c = s[out[2]].x, normal = s[out[0]].n;
    const double sign = fsi__d3_dot(fsi__d3_cross(fsi__d3_sub(b, a), fsi__d3_sub(c, a)), normal) > 0 ? 1 : -1;
    const fsi__d3 bc = fsi__d3_scale(fsi__d3_unit(fsi__d3_cross(fsi__d3_sub(c, b), normal)), sign);
    const fsi__d3 ca = fsi__d3_scale(fsi__d3_unit(fsi__d3_cross(fsi__d3_sub(a, c), normal)), sign);
    double most = -1e300, outside, score;
    int k, best = -1;
    for (k = 0; k < n; k++) {
        outside = fmax(fsi__d3_dot(fsi__d3_sub(s[in[k]].x, b), bc), fsi__d3_dot(fsi__d3_sub(s[in[k]].x, c), ca));
        score = outside + fsi__col_lack(&s[in[k]], deep);
        if (outside > 1e-3 * size && score > most + 1e-6 * size) { most = score; best = in[k]; }
    }
    if (best >= 0) out[3] = best;
    return best >= 0;
}

/* Chooses the points that span a patch: two far apart, one of them among the deepest, and the farthest ones to either
   side of the line between these, or two to one side where the other one is empty. Depth counts too
   (fsi__col_penalty), so that a point that carries the body is not dropped for one that lies a little farther; but
   differences below a thousandth of the patch's size do not count: of a body that trembles the same points are chosen
   again. */
static int fsi__col_choose(const fsi__col_point *s, const int *in, int n, int *out)
{
    int k, count = 0, best = 0, left = -1, right = -1;
    double deep = -1e300, most = -1e300, high = -1e300, low = -1e300, size = 0, score, across;
    fsi__d3 line, side;

    /* the patch's size and depth; deeper points count as `deep` */
    for (k = 0; k < n; k++) {
        score = fsi__d3_norm(fsi__d3_sub(s[in[k]].x, s[in[0]].x));
        size = score > size ? score : size;
        deep = s[in[k]].depth > deep ? s[in[k]].depth : deep;
    }
    deep -= 1e-3 * size;

    /* one of the deepest, and the farthest one from it */
    while (s[in[best]].depth < deep) best++;
    out[count++] = in[best];
    for (k = 0; k < n; k++) if (in[k] != out[0]) {
        score = fsi__d3_norm(fsi__d3_sub(s[in[k]].x, s[out[0]].x)) + fsi__col_penalty(&s[in[k]], deep, size);
        if (score > most + 1e-6 * size) { most = score; best = k; }
    }
    if (in[best] == out[0]) return count;
    out[count++] = in[best];

    /* the first of the deepest may lie within an edge of the patch: the one that is farthest from the second point */
    most = fsi__d3_norm(fsi__d3_sub(s[out[0]].x, s[out[1]].x)) + 1e-6 * size;
    for (k = 0; k < n; k++) if (!(s[in[k]].depth < deep)) {
        score = fsi__d3_norm(fsi__d3_sub(s[in[k]].x, s[out[1]].x));
        if (score > most) { most = score + 1e-6 * size; out[0] = in[k]; }
    }

    /* the farthest ones to either side of the line between */
    line = fsi__d3_sub(s[out[1]].x, s[out[0]].x);
    side = fsi__d3_unit(fsi__d3_cross(s[out[0]].n, line));
    for (k = 0; k < n; k++) if (in[k] != out[0] && in[k] != out[1]) {
        across = fsi__d3_dot(fsi__d3_sub(s[in[k]].x, s[out[0]].x), side);
        score = fabs(across) + fsi__col_penalty(&s[in[k]], deep, size);
        if (across > 1e-3 * size && score > high + 1e-6 * size) { high = score; left = in[k]; }
        if (across < -1e-3 * size && score > low + 1e-6 * size) { low = score; right = in[k]; }
    }
    if (left >= 0) out[count++] = left;
    if (right >= 0) out[count++] = right;
    return count == 3 ? count + fsi__col_choose_outside(s, in, n, deep, size, out) : count;
}

static void fsi__col_sort_points(fsi__col_point *s, int n) /* by feature */
{
    int i, k;
    for (i = 1; i < n; i++) {
        fsi__col_point t = s[i];
        for (k = i; k > 0 && s[k - 1].feature > t.feature; k--) s[k] = s[k - 1];
        s[k] = t;
    }
}

FSI_API void fsi__col_reduce(fsi__col_manifold *h, int most)
{
    fsi__col_point kept[FSI__COL_POINTS];
    unsigned char done[FSI__COL_POINTS];
    int in[FSI__COL_POINTS], pick[FSI__COL_PATCH], n = 0, k, i, seed, members;
    memset(done, 0, sizeof done);
    while (n + FSI__COL_PATCH <= most) {
        /* the deepest point that is left, and its patch */
        for (k = 0, seed = -1; k < h->n; k++)
            if (!done[k] && (seed < 0 || h->point[k].depth > h->point[seed].depth)) seed = k;
        if (seed < 0) break;
        for (k = 0, members = 0; k < h->n; k++) {
            if (done[k] || fsi__d3_dot(h->point[k].n, h->point[seed].n) < 0.95) continue;
            done[k] = 1;
            in[members++] = k;
        }
        members = fsi__col_choose(h->point, in, members, pick);
        for (i = 0; i < members; i++) kept[n++] = h->point[pick[i]];
    }
    memcpy(h->point, kept, (size_t)n * sizeof *kept);
    h->n = n;
    fsi__col_sort_points(h->point, n);
}

static void fsi__col_add(fsi__col_manifold *h, fsi__d3 x, fsi__d3 n, double depth, uint32_t feature)
{
    fsi__col_point *s;
    if (!(depth > -h->margin)) return;
    if (h->n == FSI__COL_POINTS) fsi__col_reduce(h, FSI__COL_POINTS / 2);
    s = &h->point[h->n++];
    s->x = x;
    s->n = n;
    s->depth = depth;
    s->feature = feature;
    s->hidden = 0;
}

/* A ball about x (radius 0: a point) of one shape against the other shape b; `flip`: the ball is b's in the pair. */
static void fsi__col_ball(fsi__col_manifold *h, fsi__d3 x, double radius, const fsi__col_placed *b, int flip,
    uint32_t feature)
{
    fsi__d3 n;
    double d = fsi__col_distance(b, x, radius + h->margin + 2 * b->part->thick, &n), depth = radius - d;
    fsi__d3 at = fsi__d3_madd(x, -radius + depth / 2, n);
    fsi__col_add(h, at, flip ? fsi__d3_scale(n, -1) : n, depth, feature | (flip ? 0x80000000u : 0));
}

/* A ball in a groove of a mesh touches several faces: those in whose interior the closest point lies. */
static void fsi__col_ball_mesh(fsi__col_manifold *h, fsi__d3 x, double radius, const fsi__col_placed *b, int flip)
{
    int face[64], n, k;
    fsi__d3 y = fsi__d9_mul_t(b->a, fsi__d3_sub(x, b->c)), away;
    fsi_real r = (fsi_real)(radius + h->margin);
    fsi_box3 box = fsi_box3_inflate(fsi_box3_grow(fsi_box3_empty(), fsi__d3_real(y)), r);
    fsi__col_ball(h, x, radius, b, flip, 0);
    n = fsi_mesh_query_box(b->part->mesh, box, face, 64);
    for (k = 0; k < n && k < 64; k++) {
        fsi_mesh_hit hit = fsi_mesh_closest_on_face(b->part->mesh, face[k], fsi__d3_real(y));
        int inner = (double)hit.bary[0] > 1e-6 && (double)hit.bary[1] > 1e-6
            && (b->part->mesh->corners == 2 || (double)hit.bary[2] > 1e-6);
        double d = (double)hit.t, depth = radius - d;
        if (hit.face < 0 || hit.side < 0 || !inner || !(d > 1e-9 * radius)) continue;
        away = fsi__d9_mul(b->a, fsi__d3_scale(fsi__d3_sub(y, fsi__d3_of(hit.point)), 1 / d));
        fsi__col_add(h, fsi__d3_madd(x, -radius + depth / 2, away), flip ? fsi__d3_scale(away, -1) : away, depth,
            ((uint32_t)face[k] + 1) | (flip ? 0x80000000u : 0));
    }
}

/* The t of least distance from the convex shape b on p + t d, 0 <= t <= 1, by golden section: it is a convex
   function. */
static double fsi__col_least(fsi__d3 p, fsi__d3 d, const fsi__col_placed *b)
{
    const double g = 0.6180339887498949;
    double lo = 0, hi = 1, s = 1 - g, t = g, fs, ft;
    fsi__d3 n;
    int k;
    fs = fsi__col_distance(b, fsi__d3_madd(p, s, d), 1e300, &n);
    ft = fsi__col_distance(b, fsi__d3_madd(p, t, d), 1e300, &n);
    for (k = 0; k < 36; k++) {
        if (fs < ft) {
            hi = t; t = s; ft = fs;
            s = hi - g * (hi - lo);
            fs = fsi__col_distance(b, fsi__d3_madd(p, s, d), 1e300, &n);
        } else {
            lo = s; s = t; fs = ft;
            t = lo + g * (hi - lo);
            ft = fsi__col_distance(b, fsi__d3_madd(p, t, d), 1e300, &n);
        }
    }
    return (lo + hi) / 2;
}

/* A segment with a radius: its ends, and the point between them that is closest to b. */
static void fsi__col_edge(fsi__col_manifold *h, fsi__d3 p, fsi__d3 d, double radius, const fsi__col_placed *b, int flip,
    int ends, uint32_t feature)
{
    double t;
    if (ends) {
        fsi__col_ball(h, p, radius, b, flip, feature + 1);
        fsi__col_ball(h, fsi__d3_add(p, d), radius, b, flip, feature + 2);
    }
    if (b->part->kind == FSI_RIGID_MESH) return;
    t = fsi__col_least(p, d, b);
    if (t > 0.01 && t < 0.99) fsi__col_ball(h, fsi__d3_madd(p, t, d), radius, b, flip, feature);
}

/* A point of the part's own frame, in the world. */
static fsi__d3 fsi__col_world_point(const fsi__col_placed *p, double x, double y, double z)
{
    return fsi__d3_add(p->c, fsi__d9_mul(p->a, fsi__d3_make(x, y, z)));
}

/* Corner k of a box; 2D: k below 4. */
static fsi__d3 fsi__col_corner(const fsi__col_placed *p, int k, int dim)
{
    const fsi__d3 h = p->part->half;
    const double z = dim == 2 ? 0 : (k & 4 ? h.z : -h.z);
    return fsi__col_world_point(p, k & 1 ? h.x : -h.x, k & 2 ? h.y : -h.y, z);
}

/* Point of a cylinder's rim: cap -1 or 1, angle. */
static fsi__d3 fsi__col_rim(const fsi__col_placed *p, int cap, double angle)
{
    double s, c;
    fsi_sincos(angle, &s, &c);
    return fsi__col_world_point(p, cap * p->part->length, p->part->radius * c, p->part->radius * s);
}

/* Number of points on a grid as fine as `step` along a length. */
static int fsi__col_steps(double length, double step)
{
    double n = ceil(length / step);
    return n < 1 ? 1 : (n > 16 ? 16 : (int)n);
}

/* The corners of each edge of a box; 2D: the first four. */
static const int fsi__col_box_edge[12][2] = { { 0, 1 }, { 2, 3 }, { 0, 2 }, { 1, 3 }, { 4, 5 }, { 6, 7 },
                                              { 4, 6 }, { 5, 7 }, { 0, 4 }, { 1, 5 }, { 2, 6 }, { 3, 7 } };

/* A grid of points all over the surface of a box, against a mesh. */
static void fsi__col_probe_box_grid(fsi__col_manifold *h, const fsi__col_placed *a, const fsi__col_placed *b, int flip,
    int dim)
{
    const fsi__d3 half = a->part->half;
    const double step = b->part->thick < a->part->thick ? b->part->thick : a->part->thick;
    const int nx = fsi__col_steps(2 * half.x, step), ny = fsi__col_steps(2 * half.y, step);
    const int nz = dim == 2 ? 0 : fsi__col_steps(2 * half.z, step);
    int i, j, k, at = 0;
    for (k = 0; k <= nz; k++) for (j = 0; j <= ny; j++) for (i = 0; i <= nx; i++) {
        const int rim = i == 0 || i == nx || j == 0 || j == ny || (dim == 3 && (k == 0 || k == nz));
        const double x = half.x * (2.0 * i / nx - 1), y = half.y * (2.0 * j / ny - 1);
        const double z = dim == 2 ? 0 : half.z * (2.0 * k / nz - 1);
        at++;
        if (rim) fsi__col_ball(h, fsi__col_world_point(a, x, y, z), 0, b, flip, (uint32_t)at);
    }
}

static void fsi__col_probe_box(fsi__col_manifold *h, const fsi__col_placed *a, const fsi__col_placed *b, int flip,
    int dim)
{
    int k;
    if (b->part->kind == FSI_RIGID_MESH) {
        fsi__col_probe_box_grid(h, a, b, flip, dim);
        return;
    }
    for (k = 0; k < (dim == 2 ? 4 : 8); k++) fsi__col_ball(h, fsi__col_corner(a, k, dim), 0, b, flip, (uint32_t)k);
    for (k = 0; k < (dim == 2 ? 4 : 12); k++) {
        const fsi__d3 p = fsi__col_corner(a, fsi__col_box_edge[k][0], dim);
        const fsi__d3 q = fsi__col_corner(a, fsi__col_box_edge[k][1], dim);
        fsi__col_edge(h, p, fsi__d3_sub(q, p), 0, b, flip, 0, 8 + (uint32_t)k);
    }
}

/* The angle of the rim's point of least distance from b: of 12 around, then refined. */
static double fsi__col_low_rim(const fsi__col_placed *a, int cap, const fsi__col_placed *b)
{
    double best = 1e300, at = 0, width = FSI_PI / 6, d;
    fsi__d3 n;
    int k, pass;
    for (k = 0; k < 12; k++) {
        d = fsi__col_distance(b, fsi__col_rim(a, cap, k * FSI_PI / 6), 1e300, &n);
        if (d < best) { best = d; at = k * FSI_PI / 6; }
    }
    for (pass = 0; pass < 24; pass++, width *= 0.6) for (k = -1; k <= 1; k += 2) {
        d = fsi__col_distance(b, fsi__col_rim(a, cap, at + k * width), 1e300, &n);
        if (d < best) { best = d; at += k * width; }
    }
    return at;
}

/* A cylinder against b: points all over it when it stands, or against a mesh; when it lies, only the lowest point of
   each rim: other points of the rims would stop its rolling. */
static void fsi__col_probe_cylinder(fsi__col_manifold *h, const fsi__col_placed *a, const fsi__col_placed *b, int flip)
{
    const fsi__col_part *s = a->part;
    const int mesh = b->part->kind == FSI_RIGID_MESH;
    const double step = s->thick < b->part->thick ? s->thick : b->part->thick;
    const int rows = mesh ? fsi__col_steps(2 * s->length, step) : 1;
    const fsi__d3 axis = fsi__d9_column(a->a, 0);
    fsi__d3 p, d, n;
    int cap, k, lies;

    /* rings of 12 points, and the middles of the caps */
    fsi__col_distance(b, a->c, 1e300, &n);
    lies = !mesh && fabs(fsi__d3_dot(n, axis)) < 0.995;
    for (cap = 0; cap <= rows && !lies; cap++) for (k = 0; k < 12; k++) {
        double z = s->length * (2.0 * cap / rows - 1), sine, cosine;
        fsi_sincos(k * FSI_PI / 6, &sine, &cosine);
        fsi__col_ball(h, fsi__col_world_point(a, z, s->radius * cosine, s->radius * sine), 0, b, flip,
            (uint32_t)(1 + 12 * cap + k));
    }
    fsi__col_ball(h, fsi__col_world_point(a, -s->length, 0, 0), 0, b, flip, 1000);
    fsi__col_ball(h, fsi__col_world_point(a, s->length, 0, 0), 0, b, flip, 1001);
    if (mesh) return;

    /* the lowest points of the rims */
    for (cap = -1; cap <= 1 && lies; cap += 2)
        fsi__col_ball(h, fsi__col_rim(a, cap, fsi__col_low_rim(a, cap, b)), 0, b, flip, (uint32_t)(1003 + cap));

    /* crossed cylinders: from the point of the axis that is closest, across to the side */
    p = fsi__col_world_point(a, -s->length, 0, 0);
    d = fsi__d3_scale(axis, 2 * s->length);
    p = fsi__d3_madd(p, fsi__col_least(p, d, b), d);
    fsi__col_distance(b, p, 1e300, &n);
    n = fsi__d3_unit(fsi__d3_madd(n, -fsi__d3_dot(n, axis), axis));
    fsi__col_ball(h, fsi__d3_madd(p, -s->radius, n), 0, b, flip, 1005);
}

static void fsi__col_probe_mesh(fsi__col_manifold *h, const fsi__col_placed *a, const fsi__col_placed *b, int flip)
{
    int k, i;
    for (k = 0; k < a->part->samples; k++) {
        fsi__d3 x = fsi__d3_add(a->c, fsi__d9_mul(a->a, a->part->sample[k]));
        for (i = 0; i < 3; i++) if (fsi__d3_axis(x, i) < b->lo[i] || fsi__d3_axis(x, i) > b->hi[i]) break;
        if (i == 3) fsi__col_ball(h, x, 0, b, flip, (uint32_t)k);
    }
}

/* Contact points of features of a in b. */
static void fsi__col_probe(fsi__col_manifold *h, const fsi__col_placed *a, const fsi__col_placed *b, int flip, int dim)
{
    const fsi__col_part *s = a->part;
    fsi__d3 p, d;
    int k, n;
    switch (s->kind) {
    case FSI_RIGID_SPHERE:
        if (b->part->kind == FSI_RIGID_MESH) fsi__col_ball_mesh(h, a->c, s->radius, b, flip);
        else fsi__col_ball(h, a->c, s->radius, b, flip, 0);
        break;
    case FSI_RIGID_CAPSULE:
        d = fsi__d3_scale(fsi__d9_column(a->a, 0), 2 * s->length);
        p = fsi__d3_madd(a->c, -0.5, d);
        fsi__col_edge(h, p, d, s->radius, b, flip, 1, 0);
        if (b->part->kind != FSI_RIGID_MESH) break;
        n = fsi__col_steps(2 * s->length, s->radius / 2);
        for (k = 1; k < n; k++)
            fsi__col_ball(h, fsi__d3_madd(p, (double)k / n, d), s->radius, b, flip, (uint32_t)(2 + k));
        break;
    case FSI_RIGID_BOX: fsi__col_probe_box(h, a, b, flip, dim); break;
    case FSI_RIGID_CYLINDER: fsi__col_probe_cylinder(h, a, b, flip); break;
    default: fsi__col_probe_mesh(h, a, b, flip);
    }
}

/* Two boxes. The axis of the least overlap decides (separating axes: face normals, and in 3D cross products of edges;
   Gottschalk et al. 1996): a face and the part of the other box's face over it, or two edges.

        reference   +-----------+                 the other box's face is cut off at the planes
                    |           |                 of the reference face's sides; the corners that are
                    +--x-----x--+--.              left and their depths below that face are the
                       |     |  :  |  incident    contact points */
typedef struct fsi__col_overlap { double gap; fsi__d3 n; int axis, other; } fsi__col_overlap; /* n from b to a */

static double fsi__col_extent(const fsi__col_placed *p, fsi__d3 n, int dim) /* half of it along n */
{
    double r = p->part->half.x * fabs(fsi__d3_dot(fsi__d9_column(p->a, 0), n))
        + p->part->half.y * fabs(fsi__d3_dot(fsi__d9_column(p->a, 1), n));
    return dim == 2 ? r : r + p->part->half.z * fabs(fsi__d3_dot(fsi__d9_column(p->a, 2), n));
}

static void fsi__col_try_axis(const fsi__col_placed *a, const fsi__col_placed *b, fsi__d3 n, int axis, int other,
    int dim, double slack, fsi__col_overlap *best)
{
    double t = fsi__d3_dot(fsi__d3_sub(a->c, b->c), n),
        gap = fabs(t) - fsi__col_extent(a, n, dim) - fsi__col_extent(b, n, dim);
    if (!(gap > best->gap + slack)) return;
    best->gap = gap;
    best->n = t < 0 ? fsi__d3_scale(n, -1) : n;
    best->axis = axis;
    best->other = other;
}

/* Cuts the polygon (2 corners: a segment) at side . (x - c) <= half. */
static int fsi__col_cut(fsi__col_point *p, int n, fsi__d3 c, fsi__d3 side, double half, uint32_t plane)
{
    fsi__col_point out[16];
    int k, m = 0, segment = n == 2;
    for (k = 0; k < n; k++) {
        const fsi__col_point *s = &p[k], *t = &p[(k + 1) % n];
        double ds = fsi__d3_dot(fsi__d3_sub(s->x, c), side) - half, dt = fsi__d3_dot(fsi__d3_sub(t->x, c), side) - half;
        if (ds <= 0) out[m++] = *s;
        if (segment && k == 1) break;
        if ((ds < 0 && dt > 0) || (ds > 0 && dt < 0)) {
            out[m] = ds <= 0 ? *t : *s;
            out[m].x = fsi__d3_madd(s->x, ds / (ds - dt), fsi__d3_sub(t->x, s->x));
            out[m].feature = (out[m].feature * 8 + plane + 1) * 16 + (ds <= 0 ? 1 : 0);
            m++;
        }
    }
    memcpy(p, out, (size_t)m * sizeof *out);
    return m;
}

/* The face of box p whose normal is most opposite to n: along its axis, in the direction `sign`. */
static int fsi__col_facing(const fsi__col_placed *p, fsi__d3 n, int dim, double *sign)
{
    double best = -1;
    int k, axis = 0;
    *sign = 1;
    for (k = 0; k < dim; k++) {
        const double c = fsi__d3_dot(fsi__d9_column(p->a, k), n);
        if (fabs(c) > best + 1e-9) { best = fabs(c); axis = k; *sign = c > 0 ? -1 : 1; }
    }
    return axis;
}

/* Corners of the face of box p whose normal is most opposite to n. */
static int fsi__col_incident(const fsi__col_placed *p, fsi__d3 n, int dim, fsi__col_point *out)
{
    double sign;
    const int axis = fsi__col_facing(p, n, dim, &sign);
    int u, v, i;
    u = (axis + 1) % dim;
    v = (axis + 2) % 3;
    for (i = 0; i < (dim == 2 ? 2 : 4); i++) {
        double y[3] = { 0, 0, 0 }, half[3];
        fsi__d3_put(half, p->part->half);
        y[axis] = sign * half[axis];
        y[u] = i == 0 || i == 3 ? -half[u] : half[u];
        if (dim == 3) y[v] = i < 2 ? -half[v] : half[v];
        out[i].x = fsi__col_world_point(p, y[0], y[1], y[2]);
        out[i].feature = (uint32_t)(1 + i + 4 * axis + (sign > 0 ? 12 : 0));
    }
    return i;
}

/* r: the box whose face decides; n: out of it; flip: r is a. */
static void fsi__col_face(fsi__col_manifold *h, const fsi__col_placed *r, const fsi__col_placed *o, fsi__d3 n, int axis,
    int flip, int dim)
{
    fsi__col_point p[16];
    double half[3], d;
    int k, m = fsi__col_incident(o, n, dim, p);
    fsi__d3_put(half, r->part->half);
    for (k = 1; k < dim && m > 0; k++) {
        int side = (axis + k) % dim;
        fsi__d3 s = fsi__d9_column(r->a, side);
        /* boxes with flush sides keep their corners, and their features, when they tremble */
        double room = half[side] * 1.005;
        m = fsi__col_cut(p, m, r->c, s, room, (uint32_t)(2 * k));
        if (m > 0) m = fsi__col_cut(p, m, r->c, fsi__d3_scale(s, -1), room, (uint32_t)(2 * k + 1));
    }
    for (k = 0; k < m; k++) {
        d = half[axis] - fsi__d3_dot(fsi__d3_sub(p[k].x, r->c), n);
        fsi__col_add(h, fsi__d3_madd(p[k].x, d / 2, n), flip ? fsi__d3_scale(n, -1) : n, d,
            ((p[k].feature * 6 + (uint32_t)axis * 2 + (uint32_t)flip) & 0x7fffffffu));
    }
}

/* Middle of the edge of box p along `axis` that lies farthest along n. */
static fsi__d3 fsi__col_edge_middle(const fsi__col_placed *p, int axis, fsi__d3 n)
{
    double half[3];
    fsi__d3 x = p->c;
    int k;
    fsi__d3_put(half, p->part->half);
    for (k = 0; k < 3; k++) if (k != axis) {
        fsi__d3 e = fsi__d9_column(p->a, k);
        x = fsi__d3_madd(x, fsi__d3_dot(e, n) > 0 ? half[k] : -half[k], e);
    }
    return x;
}

/* Two edges: the closest points of their lines, clamped to their lengths. */
static void fsi__col_edges(fsi__col_manifold *h, const fsi__col_placed *a, const fsi__col_placed *b,
    const fsi__col_overlap *o)
{
    fsi__d3 u = fsi__d9_column(a->a, o->axis), v = fsi__d9_column(b->a, o->other);
    fsi__d3 p = fsi__col_edge_middle(a, o->axis, fsi__d3_scale(o->n, -1)), q = fsi__col_edge_middle(b, o->other, o->n);
    const fsi__d3 w = fsi__d3_sub(p, q);
    double c = fsi__d3_dot(u, v), k = 1 - c * c, half[3], s, t;
    s = (c * fsi__d3_dot(v, w) - fsi__d3_dot(u, w)) / k;
    fsi__d3_put(half, a->part->half);
    s = s < -half[o->axis] ? -half[o->axis] : (s > half[o->axis] ? half[o->axis] : s);
    t = fsi__d3_dot(v, w) + s * c;
    fsi__d3_put(half, b->part->half);
    t = t < -half[o->other] ? -half[o->other] : (t > half[o->other] ? half[o->other] : t);
    p = fsi__d3_scale(fsi__d3_add(fsi__d3_madd(p, s, u), fsi__d3_madd(q, t, v)), 0.5);
    fsi__col_add(h, p, o->n, -o->gap, 0x40000000u + (uint32_t)(3 * o->axis + o->other));
}

static void fsi__col_boxes(fsi__col_manifold *h, const fsi__col_placed *a, const fsi__col_placed *b, int dim)
{
    const double slack = 1e-2 * (a->part->thick < b->part->thick ? a->part->thick : b->part->thick);
    fsi__col_overlap face, edge;
    int i, j, of_b;
    face.gap = edge.gap = -1e300;
    face.axis = face.other = edge.axis = edge.other = 0;
    face.n = edge.n = fsi__d3_make(0, 0, 1);
    for (i = 0; i < dim; i++) fsi__col_try_axis(a, b, fsi__d9_column(a->a, i), i, 0, dim, 0, &face);
    for (i = 0; i < dim; i++)
        fsi__col_try_axis(a, b, fsi__d9_column(b->a, i), i, 1, dim, face.other == 1 ? 0 : slack / 4, &face);
    of_b = face.other;
    for (i = 0; i < 3 && dim == 3; i++) for (j = 0; j < 3; j++) {
        fsi__d3 n = fsi__d3_cross(fsi__d9_column(a->a, i), fsi__d9_column(b->a, j));
        double size = fsi__d3_norm(n);
        if (size > 1e-3) fsi__col_try_axis(a, b, fsi__d3_scale(n, 1 / size), i, j, dim, 0, &edge);
    }
    h->bound = face.gap > edge.gap ? face.gap : edge.gap;
    if (h->bound > h->margin) return;
    if (edge.gap > face.gap + slack) fsi__col_edges(h, a, b, &edge);
    else if (of_b) fsi__col_face(h, b, a, face.n, face.axis, 0, dim);
    else fsi__col_face(h, a, b, fsi__d3_scale(face.n, -1), face.axis, 1, dim);
}

FSI_API int fsi__col_capacity(fsi_rigid_shape_kind a, fsi_rigid_shape_kind b)
{
    if (a == FSI_RIGID_MESH || b == FSI_RIGID_MESH) return FSI__COL_MOST;
    if (a == FSI_RIGID_SPHERE || b == FSI_RIGID_SPHERE) return FSI__COL_PATCH;
    return 2 * FSI__COL_PATCH;
}

FSI_API void fsi__col_collide(fsi__col_manifold *h, const fsi__col_placed *a, const fsi__col_placed *b, int dim)
{
    h->n = 0;
    h->bound = h->margin;
    if (a->part->kind == FSI_RIGID_BOX && b->part->kind == FSI_RIGID_BOX) fsi__col_boxes(h, a, b, dim);
    else if (a->part->kind == FSI_RIGID_SPHERE) fsi__col_probe(h, a, b, 0, dim);
    else if (b->part->kind == FSI_RIGID_SPHERE) fsi__col_probe(h, b, a, 1, dim);
    else {
        fsi__col_probe(h, a, b, 0, dim);
        fsi__col_probe(h, b, a, 1, dim);
    }
    if (h->n > 1) fsi__col_reduce(h, fsi__col_capacity(a->part->kind, b->part->kind));
}

/* Against the half space n . x < offset. */
static void fsi__col_plane_point(fsi__col_manifold *h, fsi__d3 x, double radius, fsi__d3 n, double offset,
    uint32_t feature)
{
    double depth = offset - fsi__d3_dot(n, x) + radius;
    fsi__col_add(h, fsi__d3_madd(x, depth / 2 - radius, n), n, depth, feature);
}

/* The corners of the face towards the plane: a box that is hit rotates about one of them onto the others. */
static void fsi__col_plane_box(fsi__col_manifold *h, const fsi__col_placed *a, fsi__d3 n, double offset, int dim)
{
    double sign;
    const fsi__d3 out = fsi__d9_column(a->a, fsi__col_facing(a, n, dim, &sign));
    int k;
    for (k = 0; k < (dim == 2 ? 4 : 8); k++) {
        const fsi__d3 x = fsi__col_corner(a, k, dim);
        if (sign * fsi__d3_dot(fsi__d3_sub(x, a->c), out) > 0) fsi__col_plane_point(h, x, 0, n, offset, (uint32_t)k);
    }
}

static void fsi__col_plane_cylinder(fsi__col_manifold *h, const fsi__col_placed *a, fsi__d3 n, double offset)
{
    fsi__d3 down = fsi__d9_mul_t(a->a, n);
    double s = sqrt(down.y * down.y + down.z * down.z), low = s > 1e-9 ? fsi_atan2(-down.z, -down.y) : 0;
    int cap, k;
    /* lying, only the lowest points: others on the rims would stop its rolling */
    for (cap = -1; cap <= 1; cap += 2) {
        if (s > 1e-9) fsi__col_plane_point(h, fsi__col_rim(a, cap, low), 0, n, offset, (uint32_t)(101 + cap));
        for (k = 0; k < 12 && s < 0.1; k++)
            fsi__col_plane_point(h, fsi__col_rim(a, cap, k * FSI_PI / 6), 0, n, offset, (uint32_t)(20 + 12 * cap + k));
    }
}

FSI_API void fsi__col_collide_plane(fsi__col_manifold *h, const fsi__col_placed *a, fsi__d3 n, double offset, int dim)
{
    const fsi__col_part *s = a->part;
    int k;
    switch (s->kind) {
    case FSI_RIGID_SPHERE: fsi__col_plane_point(h, a->c, s->radius, n, offset, 0); break;
    case FSI_RIGID_CAPSULE:
        for (k = -1; k <= 1; k += 2)
            fsi__col_plane_point(h, fsi__col_world_point(a, k * s->length, 0, 0), s->radius, n, offset,
                (uint32_t)(k + 1));
        break;
    case FSI_RIGID_BOX: fsi__col_plane_box(h, a, n, offset, dim); break;
    case FSI_RIGID_CYLINDER: fsi__col_plane_cylinder(h, a, n, offset); break;
    default:
        for (k = 0; k < s->corners; k++)
            fsi__col_plane_point(h, fsi__d3_add(a->c, fsi__d9_mul(a->a, s->sample[k])), 0, n, offset, (uint32_t)k);
    }
    if (h->n > FSI__COL_PATCH) fsi__col_reduce(h, FSI__COL_PATCH);
}

FSI__COLD_BEGIN

/* ---- >>parts: shapes as a body keeps them ------------------------------------------------------------------------ */

/* Points on edges and faces with a spacing of at most `step`; out NULL: only counts. */
static int fsi__col_sample_face(const fsi_mesh *m, int f, double step, fsi__d3 *out)
{
    const int *v = m->faces + m->corners * f;
    int k, i, j, n, count = 0, most = 1;
    fsi__d3 p[3];
    for (k = 0; k < m->corners; k++) p[k] = fsi__d3_of(m->vertices[v[k]]);
    for (k = 0; k < (m->corners == 3 ? 3 : 1); k++) {
        fsi__d3 d = fsi__d3_sub(p[(k + 1) % m->corners], p[k]);
        double steps = ceil(fsi__d3_norm(d) / step);
        n = steps > 4096 ? 4096 : (int)steps;
        most = n > most ? n : most;
        /* an edge belongs to the first face at it */
        if (m->corners == 3 && m->face_neighbor[3 * f + k] >= 0 && m->face_neighbor[3 * f + k] < f) continue;
        for (i = 1; i < n; i++, count++) if (out) out[count] = fsi__d3_madd(p[k], (double)i / n, d);
    }
    if (m->corners == 2) return count;
    for (i = 1; i < most; i++) for (j = 1; i + j < most; j++, count++) if (out)
        out[count] = fsi__d3_madd(fsi__d3_madd(p[0], (double)i / most, fsi__d3_sub(p[1], p[0])), (double)j / most,
            fsi__d3_sub(p[2], p[0]));
    return count;
}

static fsi_status fsi__col_sample_mesh(fsi_context *context, fsi__col_part *p, double step, const char *fn, int index)
{
    const fsi_mesh *m = p->mesh;
    const int chosen = step > 0;
    double n;
    int f, k;
    if (!chosen) step = fsi__d3_norm(p->half) / 6;
    for (;;) {
        for (f = 0, n = m->vertex_count; f < m->face_count && n < 1e7; f++) n += fsi__col_sample_face(m, f, step, NULL);
        if (chosen || n <= 4000 || n < 1.5 * m->vertex_count) break;
        step *= 1.3;
    }
    if (n > 4e6)
        return fsi__fail(context, FSI_ERROR_LIMIT, fn, index, step,
            "shape %d: samples every %g m are more than 4 million", index, step);
    p->sample = (fsi__d3 *)fsi__alloc(context, (size_t)n, sizeof *p->sample);
    if (!p->sample)
        return fsi__fail(context, FSI_ERROR_MEMORY, fn, index, n, "no memory for %.0f samples of shape %d", n, index);
    p->samples = (int)n;
    p->corners = m->vertex_count;
    for (k = 0; k < m->vertex_count; k++) p->sample[k] = fsi__d3_of(m->vertices[k]);
    for (f = 0; f < m->face_count; f++) k += fsi__col_sample_face(m, f, step, p->sample + k);
    return FSI_OK;
}

/* A copy of the caller's mesh about the centre of mass, in body axes. */
static fsi_status fsi__col_copy_mesh(fsi_context *context, const fsi_rigid_shape *s, fsi__d3 center, fsi__col_part *p,
    const char *fn, int index)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    const fsi_mesh *m = s->mesh;
    fsi_vec3 *v = (fsi_vec3 *)fsi__alloc(context, (size_t)m->vertex_count, sizeof *v);
    fsi_status status;
    int k;
    if (!v) return fsi__fail(context, FSI_ERROR_MEMORY, fn, index, 0, "no memory for the mesh of shape %d", index);
    for (k = 0; k < m->vertex_count; k++)
        v[k] = fsi_v3_sub(fsi_pose_point(s->pose, m->vertices[k]), fsi__d3_real(center));

    /* neither welded nor repaired: it has been once */
    d.context = context;
    d.vertices = v;
    d.vertex_count = m->vertex_count;
    d.elements = m->faces;
    d.element_count = m->face_count;
    d.corners = m->corners;
    d.weld = 0;
    d.repair = 0;
    status = fsi_mesh_create(&p->mesh, &d);
    fsi__free(context, v, (size_t)m->vertex_count, sizeof *v);
    if (status != FSI_OK) return status;

    /* bounding box, samples */
    p->at = fsi__d3_scale(fsi__d3_add(fsi__d3_of(p->mesh->box.lo), fsi__d3_of(p->mesh->box.hi)), 0.5);
    p->half = fsi__d3_scale(fsi__d3_sub(fsi__d3_of(p->mesh->box.hi), fsi__d3_of(p->mesh->box.lo)), 0.5);
    return fsi__col_sample_mesh(context, p, (double)s->samples, fn, index);
}

/* Extents of a part: half of the smallest, and the reach from the centre of mass. */
static void fsi__col_measure_part(fsi__col_part *p, int dim)
{
    double size;
    if (p->kind == FSI_RIGID_BOX || p->kind == FSI_RIGID_MESH) {
        p->thick = p->half.x < p->half.y ? p->half.x : p->half.y;
        if (dim == 3 && p->half.z < p->thick) p->thick = p->half.z;
        if (dim == 2) p->half.z = 0;
        size = fsi__d3_norm(p->half);
        if (dim == 2 && p->kind == FSI_RIGID_BOX) p->half.z = 1e150;
    } else if (p->kind == FSI_RIGID_CYLINDER) {
        p->thick = p->length < p->radius ? p->length : p->radius;
        size = sqrt(p->length * p->length + p->radius * p->radius);
    } else {
        p->thick = p->radius;
        size = p->length + p->radius;
    }
    p->reach = size + fsi__d3_norm(p->at);
}

FSI_API fsi_status fsi__col_make_part(fsi_context *context, fsi__col_part *part, const fsi_rigid_shape *s,
    fsi__d3 center, int dim, const char *fn, int index)
{
    part->kind = s->kind;
    part->at = fsi__d3_sub(fsi__d3_of(s->pose.position), center);
    fsi__d9_of_quat(s->kind == FSI_RIGID_MESH ? fsi_quat_identity() : s->pose.orientation, part->turn);
    part->half = fsi__d3_of(s->half);
    part->radius = (double)s->radius;
    part->length = s->kind == FSI_RIGID_SPHERE ? 0 : (double)s->half_length;
    if (s->kind == FSI_RIGID_MESH) FSI__TRY(fsi__col_copy_mesh(context, s, center, part, fn, index));
    fsi__col_measure_part(part, dim);
    return FSI_OK;
}

FSI_API void fsi__col_free_part(fsi_context *context, fsi__col_part *part)
{
    fsi_mesh_destroy(part->mesh);
    fsi__free(context, part->sample, (size_t)part->samples, sizeof *part->sample);
}

FSI_API double fsi__col_volume(const fsi__col_part *part, int dim)
{
    fsi_rigid_shape s = fsi_rigid_sphere((fsi_real)part->radius);
    fsi_mass_properties p;
    double moment[3];
    if (part->kind == FSI_RIGID_MESH) return fsi_mesh_mass(part->mesh, 1, 1, &p) == FSI_OK ? (double)p.volume : 0;
    s.kind = part->kind;
    s.half_length = (fsi_real)part->length;
    if (s.kind == FSI_RIGID_BOX) s.half = fsi__d3_real(part->half);
    if (dim == 2) s.half.z = 0;
    return fsi__col_mass(&s, dim, moment);
}

/* ---- >>skins: meshes of shapes ----------------------------------------------------------------------------------- */

static void fsi__col_vertex(fsi__col_skin *s, const fsi__col_placed *p, double x, double y, double z)
{
    if (s->vertex) s->vertex[s->vertices] = fsi__d3_real(fsi__col_world_point(p, x, y, z));
    s->vertices++;
}

static void fsi__col_element(fsi__col_skin *s, int corners, int a, int b, int c)
{
    if (s->element) {
        s->element[corners * s->elements] = a;
        s->element[corners * s->elements + 1] = b;
        if (corners == 3) s->element[3 * s->elements + 2] = c;
    }
    s->elements++;
}

static void fsi__col_skin_box(fsi__col_skin *s, const fsi__col_placed *p, int dim)
{
    static const int triangle[36] = { 0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5, 0, 1, 5, 0, 5, 4, 2, 7, 3, 2, 6, 7, 0, 3, 1,
        0, 2, 3, 4, 5, 7, 4, 7, 6 };
    static const int side[8] = { 0, 2, 2, 3, 3, 1, 1, 0 }; /* clockwise: the liquid on their left */
    const fsi__d3 h = p->part->half;
    int k, at = s->vertices;
    for (k = 0; k < (dim == 3 ? 8 : 4); k++)
        fsi__col_vertex(s, p, k & 1 ? h.x : -h.x, k & 2 ? h.y : -h.y, dim == 2 ? 0 : (k & 4 ? h.z : -h.z));
    for (k = 0; k < 12 && dim == 3; k++)
        fsi__col_element(s, 3, at + triangle[3 * k], at + triangle[3 * k + 1], at + triangle[3 * k + 2]);
    for (k = 0; k < 4 && dim == 2; k++) fsi__col_element(s, 2, at + side[2 * k], at + side[2 * k + 1], 0);
}

static void fsi__col_skin_mesh(fsi__col_skin *s, const fsi__col_placed *p)
{
    const fsi_mesh *m = p->part->mesh;
    int k, at = s->vertices;
    for (k = 0; k < m->vertex_count; k++)
        fsi__col_vertex(s, p, (double)m->vertices[k].x, (double)m->vertices[k].y, (double)m->vertices[k].z);
    for (k = 0; k < m->face_count; k++) {
        const int *f = m->faces + m->corners * k;
        fsi__col_element(s, m->corners, at + f[0], at + f[1], m->corners == 3 ? at + f[2] : 0);
    }
}

/* Position on the axis and radius of ring k of a shape of revolution. grow: factor by which corners are moved
   outwards. */
static void fsi__col_ring(const fsi__col_part *p, int k, int caps, int rows, double grow, double *x, double *r)
{
    const double radius = p->radius * grow;
    double s, c;
    if (p->kind == FSI_RIGID_CYLINDER) {
        *x = p->length * (2.0 * k / rows - 1);
        *r = radius;
        return;
    }
    if (k <= caps || k >= caps + rows) { /* on a cap: angle from its pole */
        int right = k > caps || rows == 0;
        double angle = FSI_PI / 2 * (k <= caps ? k : 2 * caps + rows - k) / caps;
        if (k == caps && rows == 0) right = 0;
        fsi_sincos(angle, &s, &c);
        *x = (right && k > caps ? 1 : -1) * (p->length + radius * c);
        *r = radius * s;
        if (k == 0 || k == 2 * caps + rows) *r = 0;
        return;
    }
    *x = p->length * (2.0 * (k - caps) / rows - 1);
    *r = radius;
}

/* Volume of rings of n corners joined: sum h/3 (a + sqrt(a b) + b) over areas a = n/2 sin(2 pi/n) r^2; 2D: the
   profile's area. */
static double fsi__col_ring_volume(const fsi__col_part *p, int caps, int rows, int n, int dim, double grow)
{
    const int rings = p->kind == FSI_RIGID_CYLINDER ? rows : 2 * caps + rows;
    double sum = 0, x0, r0, x1, r1;
    int k;
    for (k = 0; k < rings; k++) {
        fsi__col_ring(p, k, caps, rows, grow, &x0, &r0);
        fsi__col_ring(p, k + 1, caps, rows, grow, &x1, &r1);
        sum += dim == 2 ? (x1 - x0) * (r0 + r1)
            : (x1 - x0) * (r0 * r0 + r0 * r1 + r1 * r1) / 3 * (0.5 * n * fsi_sin(2 * FSI_PI / n));
    }
    return sum;
}

/* The factor that gives the right volume, by bisection. */
static double fsi__col_ring_growth(const fsi__col_part *p, int caps, int rows, int n, int dim)
{
    double lo = 1, hi = 1.5, moment[2],
        want = fsi__col_round_mass(p->radius, p->length, p->kind != FSI_RIGID_CYLINDER, dim, &moment[0], &moment[1]);
    int k;
    for (k = 0; k < 50; k++) {
        double mid = 0.5 * (lo + hi);
        if (fsi__col_ring_volume(p, caps, rows, n, dim, mid) < want) lo = mid;
        else hi = mid;
    }
    return 0.5 * (lo + hi);
}

static void fsi__col_skin_flat(fsi__col_skin *s, const fsi__col_placed *p, int caps, int rows, double grow)
{
    const int rings = 2 * caps + rows, first = s->vertices;
    double x, r;
    int k;
    for (k = 0; k <= rings; k++) { /* along the upper side; its mirror image below: clockwise */
        fsi__col_ring(p->part, k, caps, rows, grow, &x, &r);
        fsi__col_vertex(s, p, x, r, 0);
    }
    for (k = rings - 1; k > 0; k--) {
        fsi__col_ring(p->part, k, caps, rows, grow, &x, &r);
        fsi__col_vertex(s, p, x, -r, 0);
    }
    for (k = first; k < s->vertices; k++) fsi__col_element(s, 2, k, k + 1 < s->vertices ? k + 1 : first, 0);
}

/* Triangles between ring at - n .. and ring at ..; first: the pole before the first ring, and the one behind the
   last. */
static void fsi__col_join_rings(fsi__col_skin *s, int at, int n, int first, int is_first, int is_last)
{
    int i, next;
    for (i = 0; i < n; i++) {
        next = (i + 1) % n;
        if (is_first) fsi__col_element(s, 3, first, at + next, at + i);
        else {
            fsi__col_element(s, 3, at - n + i, at - n + next, at + next);
            fsi__col_element(s, 3, at - n + i, at + next, at + i);
        }
        if (is_last) fsi__col_element(s, 3, first + 1, at + i, at + next);
    }
}

/* Two poles and rings of n corners: of a cylinder along its side, else over two caps and the side. */
static void fsi__col_skin_round(fsi__col_skin *s, const fsi__col_placed *p, double edge, int dim)
{
    const fsi__col_part *part = p->part;
    const int flat = part->kind == FSI_RIGID_CYLINDER;
    const double around = edge > 0 ? ceil(2 * FSI_PI * part->radius / edge) : 24;
    const double along = edge > 0 ? ceil(2 * part->length / edge) : 1;
    const int n = around < 8 ? 8 : (around > 512 ? 512 : (int)around), caps = (n + 3) / 4;
    const int rows = part->length > 0 ? (along < 1 ? 1 : (along > 1024 ? 1024 : (int)along)) : 0;
    const int begin = flat ? 0 : 1, end = flat ? rows : 2 * caps + rows - 1, first = s->vertices;
    const double grow = fsi__col_ring_growth(part, caps, rows, n, dim);
    double x, r, sine, cosine;
    int k, i, at;
    if (dim == 2) {
        fsi__col_skin_flat(s, p, caps, rows, grow);
        return;
    }

    /* poles */
    x = part->length + (flat ? 0 : part->radius * grow);
    fsi__col_vertex(s, p, -x, 0, 0);
    fsi__col_vertex(s, p, x, 0, 0);

    /* rings */
    for (k = begin; k <= end; k++) {
        at = s->vertices;
        fsi__col_ring(part, k, caps, rows, grow, &x, &r);
        for (i = 0; i < n; i++) {
            fsi_sincos(2 * FSI_PI * i / n, &sine, &cosine);
            fsi__col_vertex(s, p, x, r * cosine, r * sine);
        }
        fsi__col_join_rings(s, at, n, first, k == begin, k == end);
    }
}

FSI_API void fsi__col_skin_part(fsi__col_skin *s, const fsi__col_placed *p, double edge, int dim)
{
    if (p->part->kind == FSI_RIGID_BOX) fsi__col_skin_box(s, p, dim);
    else if (p->part->kind == FSI_RIGID_MESH) fsi__col_skin_mesh(s, p);
    else fsi__col_skin_round(s, p, edge, dim);
}

/* ---- >>drawing --------------------------------------------------------------------------------------------------- */

FSI_API void fsi__col_draw_line(const fsi_debug_draw *d, fsi__d3 a, fsi__d3 b, uint32_t rgb)
{
    if (d->line) d->line(d->user, fsi__d3_real(a), fsi__d3_real(b), rgb);
}

static void fsi__col_draw_circle(const fsi_debug_draw *d, const fsi__col_placed *p, double x, int u, int v, double r,
    uint32_t rgb)
{
    double s, c, at[3], before[3] = { 0, 0, 0 };
    int k;
    for (k = 0; k <= 24; k++) {
        fsi_sincos(k * FSI_PI / 12, &s, &c);
        at[0] = at[1] = at[2] = 0;
        at[3 - u - v] = x;
        at[u] += r * c;
        at[v] += r * s;
        if (k > 0)
            fsi__col_draw_line(d, fsi__col_world_point(p, before[0], before[1], before[2]),
                fsi__col_world_point(p, at[0], at[1], at[2]), rgb);
        memcpy(before, at, sizeof at);
    }
}

static void fsi__col_draw_mesh(const fsi_debug_draw *d, const fsi__col_placed *p, uint32_t rgb)
{
    const fsi_mesh *m = p->part->mesh;
    int f, k;
    for (f = 0; f < m->face_count; f++) for (k = 0; k < (m->corners == 3 ? 3 : 1); k++) {
        const int *v = m->faces + m->corners * f;
        const fsi__d3 a = fsi__d3_of(m->vertices[v[k]]), b = fsi__d3_of(m->vertices[v[(k + 1) % m->corners]]);
        fsi__col_draw_line(d, fsi__col_world_point(p, a.x, a.y, a.z), fsi__col_world_point(p, b.x, b.y, b.z), rgb);
    }
}

/* A line parallel to the axis, and a circle about an end of a shape of revolution. side: -1 or 1. */
static void fsi__col_draw_round(const fsi_debug_draw *d, const fsi__col_placed *p, int dim, int side, uint32_t rgb)
{
    const fsi__col_part *s = p->part;
    const double l = s->length, r = side * s->radius;
    fsi__col_placed end = *p;
    if (dim == 3) fsi__col_draw_circle(d, p, side * l, 1, 2, s->radius, rgb);
    fsi__col_draw_line(d, fsi__col_world_point(p, -l, r, 0), fsi__col_world_point(p, l, r, 0), rgb);
    if (dim == 3) fsi__col_draw_line(d, fsi__col_world_point(p, -l, 0, r), fsi__col_world_point(p, l, 0, r), rgb);
    if (s->kind == FSI_RIGID_CYLINDER) return;
    end.c = fsi__col_world_point(p, side * l, 0, 0);
    fsi__col_draw_circle(d, &end, 0, 0, 1, s->radius, rgb);
    if (dim == 3) fsi__col_draw_circle(d, &end, 0, 0, 2, s->radius, rgb);
}

FSI_API void fsi__col_draw_part(const fsi_debug_draw *d, const fsi__col_placed *p, int dim, uint32_t rgb)
{
    int k;
    if (p->part->kind == FSI_RIGID_MESH) fsi__col_draw_mesh(d, p, rgb);
    else if (p->part->kind == FSI_RIGID_BOX) for (k = 0; k < (dim == 2 ? 4 : 12); k++) {
        const int *edge = fsi__col_box_edge[k];
        fsi__col_draw_line(d, fsi__col_corner(p, edge[0], dim), fsi__col_corner(p, edge[1], dim), rgb);
    } else for (k = -1; k <= 1; k += 2) fsi__col_draw_round(d, p, dim, k, rgb);
}

FSI__COLD_END
FSI__STRICT_END

#endif /* once */
#endif /* implementation */
