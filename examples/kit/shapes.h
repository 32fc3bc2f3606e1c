/* shapes.h - solids for the examples, built in place: outlines, extrusions, surfaces of revolution, boxes.
   SPDX-License-Identifier: MIT

   Include it after kit.h. Every shape_... function below appends a closed shell to a list of vertices and triangles,
   counter-clockwise seen from outside; several shells in one list make one mesh of several solids. Lengths in metres.

      outline o = outline_empty();                    // a ring of points in the plane
      shape s = shape_empty();
      outline_arc(&o, 0, 0, 0.2, 0, 2 * FSI_PI, 48);
      shape_extrude(&s, o.xy, o.n, 0, 0.1);           // a disc of radius 0.2, 0.1 thick
      shape_box(&s, box);                             // and a box
      mesh = shape_mesh(&app, &s, FSI_MESH_CLOSED, 0);
      outline_free(&o);
      shape_free(&s);

   A shell that stands inside another one and was turned over (shape_turn_over) is a cavity of it. With container = 1
   the liquid is within the outermost shells, and a shell inside one of these, turned over, is a solid in the liquid. */
#ifndef FSI_KIT_SHAPES_H
#define FSI_KIT_SHAPES_H

#include "kit.h"

/* Vertices and triangles (three indices each). All zero is empty. */
typedef struct shape {
    fsi_vec3 *x;       /* nx vertices */
    int *e;            /* 3 * ne indices */
    int nx, ne;
    int cap_x, cap_e;  /* room for so many */
} shape;

/* Points in the plane: xy[2 i], xy[2 i + 1]. All zero is empty. */
typedef struct outline {
    double *xy;
    int n, cap;
} outline;

EX_FN shape shape_empty(void)
{
    shape s;
    memset(&s, 0, sizeof s);
    return s;
}

EX_FN void shape_free(shape *s)
{
    free(s->x);
    free(s->e);
    *s = shape_empty();
}

/* Appends a vertex; returns its number. */
EX_FN int shape_add_vertex(shape *s, fsi_vec3 p)
{
    if (s->nx == s->cap_x) {
        s->cap_x = 2 * s->cap_x + 64;
        s->x = (fsi_vec3 *)ex_alloc(s->x, (size_t)s->cap_x, sizeof *s->x);
    }
    s->x[s->nx] = p;
    return s->nx++;
}

/* Appends a triangle of three vertices, counter-clockwise seen from outside. */
EX_FN void shape_add_triangle(shape *s, int a, int b, int c)
{
    if (s->ne == s->cap_e) {
        s->cap_e = 2 * s->cap_e + 128;
        s->e = (int *)ex_alloc(s->e, (size_t)s->cap_e, 3 * sizeof *s->e);
    }
    s->e[3 * s->ne] = a;
    s->e[3 * s->ne + 1] = b;
    s->e[3 * s->ne + 2] = c;
    s->ne++;
}

/* ---- outlines --------------------------------------------------------------------------------------------------- */

EX_FN outline outline_empty(void)
{
    outline o;
    memset(&o, 0, sizeof o);
    return o;
}

EX_FN void outline_free(outline *o)
{
    free(o->xy);
    *o = outline_empty();
}

/* Appends a point. */
EX_FN void outline_add(outline *o, double x, double y)
{
    if (o->n == o->cap) {
        o->cap = 2 * o->cap + 64;
        o->xy = (double *)ex_alloc(o->xy, (size_t)o->cap, 2 * sizeof *o->xy);
    }
    o->xy[2 * o->n] = x;
    o->xy[2 * o->n + 1] = y;
    o->n++;
}

/* Appends an arc about (cx, cy) from angle a0 to a1 [rad] in `pieces` chords: its first point and the ends of all
   chords, but not the last one of a full circle, which is the first again. Its corners are on the circle. */
EX_FN void outline_arc(outline *o, double cx, double cy, double radius, double a0, double a1, int pieces)
{
    int i, full = fabs(a1 - a0) > 2 * FSI_PI - 1e-9;
    for (i = 0; i < pieces + !full; i++) {
        double a = a0 + (a1 - a0) * i / pieces;
        outline_add(o, cx + radius * cos(a), cy + radius * sin(a));
    }
}

/* Twice the area of the triangle (a, b, c) of points in the plane, positive when counter-clockwise. */
static double shape__area2(const double *a, const double *b, const double *c)
{
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

/* Area inside a ring of n points [m^2], positive when counter-clockwise. */
EX_FN double outline_area(const double *xy, int n)
{
    double area = 0;
    int i;
    for (i = 1; i + 1 < n; i++) area += shape__area2(xy, xy + 2 * i, xy + 2 * (i + 1)) / 2;
    return area;
}

/* Distance of p from the ring of n points [m]. */
EX_FN double outline_distance(const double *xy, int n, const double *p)
{
    double nearest = 1e300;
    int i;
    for (i = 0; i < n; i++) {
        const double *a = xy + 2 * i, *b = xy + 2 * ((i + 1) % n);
        double ux = b[0] - a[0], uy = b[1] - a[1], length2 = ux * ux + uy * uy;
        double t = length2 > 0 ? ((p[0] - a[0]) * ux + (p[1] - a[1]) * uy) / length2 : 0, d;
        t = t < 0 ? 0 : t > 1 ? 1 : t;
        d = hypot(a[0] + t * ux - p[0], a[1] + t * uy - p[1]);
        if (d < nearest) nearest = d;
    }
    return nearest;
}

/* p is inside the ring of n points: a ray to the right crosses it an odd number of times. */
EX_FN int outline_contains(const double *xy, int n, const double *p)
{
    int i, odd = 0;
    for (i = 0; i < n; i++) {
        const double *a = xy + 2 * i, *b = xy + 2 * ((i + 1) % n);
        if ((a[1] > p[1]) != (b[1] > p[1]) && p[0] < a[0] + (p[1] - a[1]) / (b[1] - a[1]) * (b[0] - a[0])) odd = !odd;
    }
    return odd;
}

/* The ring (counter-clockwise) drawn in by d > 0: each corner moves along its bisector until it is d from both its
   sides; what then lies outside or nearer than d to another part of the ring is left out. No point of the result is
   nearer than d to the old ring, so that two bodies that touched are at least 2 d apart when both were drawn in, up to
   the sag of chords. */
EX_FN outline outline_inset(const double *xy, int n, double d)
{
    outline in = outline_empty();
    int i;
    for (i = 0; i < n; i++) {
        const double *a = xy + 2 * ((i + n - 1) % n), *b = xy + 2 * i, *c = xy + 2 * ((i + 1) % n);
        double la = hypot(b[0] - a[0], b[1] - a[1]), lc = hypot(c[0] - b[0], c[1] - b[1]);
        /* sum of both */
        double nx = -(b[1] - a[1]) / la - (c[1] - b[1]) / lc, ny = (b[0] - a[0]) / la + (c[0] - b[0]) / lc;
        double scale = 2 * d / (nx * nx + ny * ny), p[2];
        p[0] = b[0] + scale * nx;
        p[1] = b[1] + scale * ny;
        if (outline_contains(xy, n, p) && outline_distance(xy, n, p) >= d * (1 - 1e-6)) outline_add(&in, p[0], p[1]);
    }
    return in;
}

/* Joins a hole (n points, clockwise) to a ring by a cut from the nearest pair of points, there and back: the outline
   runs along the hole as well, and shape_extrude makes no wall of the cut. The cut must not cross anything. */
EX_FN void outline_add_hole(outline *o, const double *hole, int n)
{
    outline joined = outline_empty();
    double nearest = 1e300;
    int i, k, at = 0, from = 0;
    for (i = 0; i < o->n; i++)
        for (k = 0; k < n; k++) {
            double d = hypot(o->xy[2 * i] - hole[2 * k], o->xy[2 * i + 1] - hole[2 * k + 1]);
            if (d >= nearest) continue;
            nearest = d;
            at = i;
            from = k;
        }
    for (i = 0; i < o->n; i++) {
        outline_add(&joined, o->xy[2 * i], o->xy[2 * i + 1]);
        if (i != at) continue;
        for (k = 0; k <= n; k++) outline_add(&joined, hole[2 * ((from + k) % n)], hole[2 * ((from + k) % n) + 1]);
        outline_add(&joined, o->xy[2 * at], o->xy[2 * at + 1]);
    }
    outline_free(o);
    *o = joined;
}

static int shape__same(const double *a, const double *b) { return memcmp(a, b, 2 * sizeof *a) == 0; }

/* Point i can be cut off: the corner there is convex and no other point of the ring is in its triangle or on the rim.
   Points at a corner of the triangle are the other bank of a cut to a hole. */
static int shape__is_ear(const double *xy, const int *before, const int *after, int i)
{
    const double *a = xy + 2 * before[i], *b = xy + 2 * i, *c = xy + 2 * after[i];
    double area = shape__area2(a, b, c), slack;
    int k;
    if (!(area > 1e-12 * ((c[0] - a[0]) * (c[0] - a[0]) + (c[1] - a[1]) * (c[1] - a[1])))) return 0;
    slack = -1e-9 * area;
    for (k = after[after[i]]; k != before[i]; k = after[k]) {
        const double *p = xy + 2 * k;
        if (shape__same(p, a) || shape__same(p, b) || shape__same(p, c)) continue;
        if (shape__area2(a, b, p) >= slack && shape__area2(b, c, p) >= slack && shape__area2(c, a, p) >= slack)
            return 0;
    }
    return 1;
}

/* Cuts the inside of a ring (counter-clockwise, no crossings, may be concave) into n - 2 triangles between its own
   points, ear by ear, going round so that the ears do not all meet in one point. cut receives 3 * (n - 2) point
   numbers. */
static void shape__cut_outline(const double *xy, int n, int *cut)
{
    int *before = (int *)ex_alloc(NULL, (size_t)n, sizeof *before),
        *after = (int *)ex_alloc(NULL, (size_t)n, sizeof *after);
    int i, left = n, tried = 0;
    for (i = 0; i < n; i++) {
        before[i] = (i + n - 1) % n;
        after[i] = (i + 1) % n;
    }
    for (i = 0; left > 2; i = after[i]) {
        if (left > 3 && tried++ > left) ex_die("an outline crosses itself or runs clockwise");
        if (left > 3 && !shape__is_ear(xy, before, after, i)) continue;
        *cut++ = before[i];
        *cut++ = i;
        *cut++ = after[i];
        after[before[i]] = after[i];
        before[after[i]] = before[i];
        i = after[i];
        left--;
        tried = 0;
    }
    free(before);
    free(after);
}

/* ---- solids ----------------------------------------------------------------------------------------------------- */

/* The side from point i to the next is one bank of a cut to a hole. */
static int shape__is_cut(const double *xy, int n, int i)
{
    const double *a = xy + 2 * i, *b = xy + 2 * ((i + 1) % n);
    int k;
    for (k = 0; k < n; k++)
        if (shape__same(xy + 2 * k, b) && shape__same(xy + 2 * ((k + 1) % n), a)) return 1;
    return 0;
}

/* A prism: the ring of n points (counter-clockwise, may be concave and have holes, outline_add_hole) at z0 and at z1 >
   z0, walls between, both ends closed. */
EX_FN void shape_extrude(shape *s, const double *xy, int n, double z0, double z1)
{
    int *cut, *low, i, k; /* point i is vertex low[i] at z0 and low[i] + 1 at z1; both banks of a cut share theirs */
    if (n < 3 || !(z1 > z0)) ex_die("an extrusion needs three points and a height");
    cut = (int *)ex_alloc(NULL, (size_t)n, 3 * sizeof *cut);
    low = (int *)ex_alloc(NULL, (size_t)n, sizeof *low);
    shape__cut_outline(xy, n, cut);
    for (i = 0; i < n; i++) {
        const double *p = xy + 2 * i;
        for (k = 0; !shape__same(xy + 2 * k, p);) k++;
        low[i] = k < i ? low[k] : shape_add_vertex(s, fsi_v3((fsi_real)p[0], (fsi_real)p[1], (fsi_real)z0));
        if (k == i) shape_add_vertex(s, fsi_v3((fsi_real)p[0], (fsi_real)p[1], (fsi_real)z1));
    }
    for (i = 0; i < n; i++) {
        int here = low[i], next = low[(i + 1) % n];
        if (shape__is_cut(xy, n, i)) continue;
        shape_add_triangle(s, here, next, next + 1);
        shape_add_triangle(s, here, next + 1, here + 1);
    }
    for (i = 0; i < n - 2; i++) {
        const int *t = cut + 3 * i;
        shape_add_triangle(s, low[t[0]], low[t[2]], low[t[1]]);
        shape_add_triangle(s, low[t[0]] + 1, low[t[1]] + 1, low[t[2]] + 1);
    }
    free(cut);
    free(low);
}

/* One ring of vertices of a surface of revolution, or a single one on the axis; returns the first. */
static int shape__ring(shape *s, double r, double z, int segments)
{
    int j, first = s->nx;
    if (r < 0) ex_die("a profile of revolution has a negative radius");
    for (j = 0; j < (r > 0 ? segments : 1); j++) {
        double a = 2 * FSI_PI * j / segments;
        shape_add_vertex(s, fsi_v3((fsi_real)(r * cos(a)), (fsi_real)(r * sin(a)), (fsi_real)z));
    }
    return first;
}

/* Turns a profile of n points (r, z), r to the right and z up, around the axis z. Either a closed ring off the axis
   (r > 0 everywhere), counter-clockwise; or, when both its ends have r = 0, an open line from the lower end of the axis
   outward and up to the upper end. No other point may lie on the axis. */
EX_FN void shape_revolve(shape *s, const double *rz, int n, int segments)
{
    int i, j, open = n > 2 && !(rz[0] > 0) && !(rz[2 * n - 2] > 0);
    int first, low, high;
    if (n < 3 || segments < 3) ex_die("a surface of revolution needs three points and three segments");
    for (i = 0; i < n; i++)
        if (!(rz[2 * i] > 0) && !(open && (i == 0 || i == n - 1))) ex_die("a profile of revolution touches the axis");
    first = low = shape__ring(s, rz[0], rz[1], segments);
    for (i = 1; i < n + !open; i++) {
        high = i < n ? shape__ring(s, rz[2 * i], rz[2 * i + 1], segments) : first;
        for (j = 0; j < segments; j++) {
            int k = (j + 1) % segments;
            if (!open || i > 1) shape_add_triangle(s, low + j, low + k, open && i == n - 1 ? high : high + k);
            if (open && i == 1) shape_add_triangle(s, low, high + k, high + j);
            else if (!open || i < n - 1) shape_add_triangle(s, low + j, high + k, high + j);
        }
        low = high;
    }
}

/* A box of 12 triangles. */
EX_FN void shape_box(shape *s, fsi_box3 b)
{
    double xy[8];
    xy[0] = xy[6] = (double)b.lo.x;
    xy[2] = xy[4] = (double)b.hi.x;
    xy[1] = xy[3] = (double)b.lo.y;
    xy[5] = xy[7] = (double)b.hi.y;
    shape_extrude(s, xy, 4, (double)b.lo.z, (double)b.hi.z);
}

/* A cylinder around the axis z with `segments` sides. */
EX_FN void shape_cylinder(shape *s, double radius, double z0, double z1, int segments)
{
    outline o = outline_empty();
    outline_arc(&o, 0, 0, radius, 0, 2 * FSI_PI, segments);
    shape_extrude(s, o.xy, o.n, z0, z1);
    outline_free(&o);
}

/* Turns, then shifts, the vertices from first_vertex on. */
EX_FN void shape_transform(shape *s, int first_vertex, fsi_pose p)
{
    int i;
    for (i = first_vertex; i < s->nx; i++) s->x[i] = fsi_v3_add(p.position, fsi_quat_rotate(p.orientation, s->x[i]));
}

/* Makes the triangles from first_element on face the other way: a solid becomes a cavity. */
EX_FN void shape_turn_over(shape *s, int first_element)
{
    int i;
    for (i = first_element; i < s->ne; i++) {
        int swap = s->e[3 * i + 1];
        s->e[3 * i + 1] = s->e[3 * i + 2];
        s->e[3 * i + 2] = swap;
    }
}

/* A mesh of it all; the shape may be freed afterwards. container 1: the liquid is inside, the faces of the mesh look
   there. Ends the program, with fsi's reason, when it is no such mesh. */
EX_FN fsi_mesh *shape_mesh(ex_app *app, const shape *s, fsi_mesh_kind kind, int container)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh;
    shape turned = shape_empty();
    int i;
    for (i = 0; i < s->ne && container; i++) shape_add_triangle(&turned, s->e[3 * i], s->e[3 * i + 2], s->e[3 * i + 1]);
    d.context = &app->context;
    d.vertices = s->x;
    d.vertex_count = s->nx;
    d.elements = container ? turned.e : s->e;
    d.element_count = s->ne;
    d.kind = kind;
    d.container = container;
    ex_check(app, fsi_mesh_create(&mesh, &d));
    shape_free(&turned);
    return mesh;
}

/* A cylinder that stands on z = foot.z, of so many sides. */
EX_FN fsi_mesh *shape_cylinder_mesh(ex_app *app, fsi_vec3 foot, double radius, double height, int sides)
{
    shape s = shape_empty();
    fsi_pose pose = fsi_default_body().pose;
    fsi_mesh *mesh;
    shape_cylinder(&s, radius, 0, height, sides);
    pose.position = foot;
    shape_transform(&s, 0, pose);
    mesh = shape_mesh(app, &s, FSI_MESH_CLOSED, 0);
    shape_free(&s);
    return mesh;
}

#endif /* FSI_KIT_SHAPES_H */
