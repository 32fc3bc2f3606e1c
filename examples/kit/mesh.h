/* mesh.h - triangle meshes for scenes: read from a file, or made: boxes, spheres, rings, knots, lattices.
   SPDX-License-Identifier: MIT

   ex_mesh ex_mesh_make ex_mesh_free ex_mesh_move ex_mesh_add; ex_load_mesh reads OBJ and PLY; ex_box ex_sphere ex_torus
   ex_knot ex_grid make closed meshes and a lattice; ex_box3 is a box as fsi takes it; ex_fit scales vertices into a
   box. shapes.h makes solids of outlines. */
#ifndef FSI_KIT_MESH_H
#define FSI_KIT_MESH_H

#include "app.h"
#include "../../fsi_io.h"

EX_FN fsi_box3 ex_box3(double x0, double y0, double z0, double x1, double y1, double z1)
{
    fsi_box3 b;
    b.lo = fsi_v3((fsi_real)x0, (fsi_real)y0, (fsi_real)z0);
    b.hi = fsi_v3((fsi_real)x1, (fsi_real)y1, (fsi_real)z1);
    return b;
}

/* Vertices and triangles as fsi_mesh_desc wants them: counter-clockwise seen from outside. Free with ex_mesh_free. */
typedef struct ex_mesh {
    fsi_vec3 *vertices;
    int *triangles;
    int vertex_count, triangle_count;
} ex_mesh;

EX_FN ex_mesh ex_mesh_make(int vertex_count, int triangle_count)
{
    ex_mesh m;
    m.vertices = (fsi_vec3 *)ex_alloc(NULL, (size_t)vertex_count, sizeof *m.vertices);
    m.triangles = (int *)ex_alloc(NULL, 3 * (size_t)triangle_count, sizeof *m.triangles);
    m.vertex_count = vertex_count;
    m.triangle_count = triangle_count;
    return m;
}

EX_FN void ex_mesh_free(ex_mesh *m)
{
    free(m->vertices);
    free(m->triangles);
    memset(m, 0, sizeof *m);
}

/* Corner 0..7 of a box: bit 0 chooses x, bit 1 y, bit 2 z. */
EX_FN fsi_vec3 ex__corner(fsi_box3 b, int i)
{
    return fsi_v3(i & 1 ? b.hi.x : b.lo.x, i & 2 ? b.hi.y : b.lo.y, i & 4 ? b.hi.z : b.lo.z);
}

/* ---- >>shapes ------------------------------------------------------------------------------------------------- */

/* Vertices and triangles of a file, OBJ or PLY; y_up turns its y axis up. Ends the program, with fsi's reason, when it
   cannot be read. */
EX_FN ex_mesh ex_load_mesh(ex_app *app, const char *path, int y_up)
{
    fsi_io_mesh file;
    ex_mesh m;
    int i;
    ex_check(app, fsi_io_read_mesh(&file, &app->context, path));
    m = ex_mesh_make(file.vertex_count, file.triangle_count);
    if (file.triangle_count > 0) memcpy(m.triangles, file.triangles, 3 * (size_t)file.triangle_count * sizeof(int));
    for (i = 0; i < file.vertex_count; i++) {
        fsi_vec3 v = file.vertices[i];
        m.vertices[i] = y_up ? fsi_v3(v.x, -v.z, v.y) : v;
    }
    fsi_io_destroy_mesh(&file);
    return m;
}

/* Scales about the origin, then shifts. */
EX_FN void ex_mesh_move(ex_mesh *m, double scale, fsi_vec3 shift)
{
    int i;
    for (i = 0; i < m->vertex_count; i++) m->vertices[i] = fsi_v3_madd(shift, (fsi_real)scale, m->vertices[i]);
}

/* Scales and shifts vertices so that they stand in the middle of the box's floor and reach as far as their proportions
   allow. They must have some extent along each axis. */
EX_FN void ex_fit(fsi_vec3 *vertices, int count, fsi_box3 box)
{
    fsi_box3 own = fsi_box3_empty();
    fsi_vec3 have, room = fsi_v3_sub(box.hi, box.lo), from, to;
    fsi_real scale;
    int i;
    for (i = 0; i < count; i++) own = fsi_box3_grow(own, vertices[i]);
    have = fsi_v3_sub(own.hi, own.lo);
    scale = fsi_min(room.x / have.x, fsi_min(room.y / have.y, room.z / have.z));
    from = fsi_v3((own.lo.x + own.hi.x) / 2, (own.lo.y + own.hi.y) / 2, own.lo.z);
    to = fsi_v3((box.lo.x + box.hi.x) / 2, (box.lo.y + box.hi.y) / 2, box.lo.z);
    for (i = 0; i < count; i++) vertices[i] = fsi_v3_madd(to, scale, fsi_v3_sub(vertices[i], from));
}

/* Adds a copy of `other` to m. */
EX_FN void ex_mesh_add(ex_mesh *m, const ex_mesh *other)
{
    int i, first = m->vertex_count;
    m->vertices = (fsi_vec3 *)ex_alloc(m->vertices, (size_t)(first + other->vertex_count), sizeof *m->vertices);
    m->triangles = (int *)ex_alloc(m->triangles, (size_t)(m->triangle_count + other->triangle_count), 3 * sizeof(int));
    memcpy(m->vertices + first, other->vertices, (size_t)other->vertex_count * sizeof *m->vertices);
    for (i = 0; i < 3 * other->triangle_count; i++)
        m->triangles[3 * m->triangle_count + i] = first + other->triangles[i];
    m->vertex_count += other->vertex_count;
    m->triangle_count += other->triangle_count;
}

static void ex__triangle(ex_mesh *m, int i, int a, int b, int c)
{
    m->triangles[3 * i] = a;
    m->triangles[3 * i + 1] = b;
    m->triangles[3 * i + 2] = c;
}

/* A box of 12 triangles; inside 0: a solid block, 1: a room or tank, whose faces look inwards. */
EX_FN ex_mesh ex_box(fsi_box3 box, int inside)
{
    static const int quads[6][4] = { { 0, 2, 3, 1 }, { 4, 5, 7, 6 }, { 0, 1, 5, 4 },
                                     { 2, 6, 7, 3 }, { 0, 4, 6, 2 }, { 1, 3, 7, 5 } };
    ex_mesh m = ex_mesh_make(8, 12);
    int i;
    for (i = 0; i < 8; i++) m.vertices[i] = ex__corner(box, i);
    for (i = 0; i < 6; i++) {
        const int *q = quads[i];
        ex__triangle(&m, 2 * i, q[0], inside ? q[2] : q[1], inside ? q[1] : q[2]);
        ex__triangle(&m, 2 * i + 1, q[0], inside ? q[3] : q[2], inside ? q[2] : q[3]);
    }
    return m;
}

/* nu x nv quads, each cut in two; with wrap the last column and row are joined to the first. The caller fills in the
   vertices, row by row. */
static ex_mesh ex__lattice(int nu, int nv, int wrap)
{
    int cols = wrap ? nu : nu + 1, rows = wrap ? nv : nv + 1, i, j;
    ex_mesh m = ex_mesh_make(cols * rows, 2 * nu * nv);
    for (j = 0; j < nv; j++)
        for (i = 0; i < nu; i++) {
            int low = j * cols, high = (j + 1) % rows * cols, k = (i + 1) % cols;
            ex__triangle(&m, 2 * (j * nu + i), low + i, low + k, high + k);
            ex__triangle(&m, 2 * (j * nu + i) + 1, low + i, high + k, high + i);
        }
    return m;
}

/* nx x ny cells from lo to hi in x and y, at the height lo.z, facing up. Vertex (i, j) is number j * (nx + 1) + i. */
EX_FN ex_mesh ex_grid(fsi_vec3 lo, fsi_vec3 hi, int nx, int ny)
{
    ex_mesh m = ex__lattice(nx, ny, 0);
    fsi_real dx = (hi.x - lo.x) / (fsi_real)nx, dy = (hi.y - lo.y) / (fsi_real)ny;
    int i, j;
    for (j = 0; j <= ny; j++)
        for (i = 0; i <= nx; i++)
            m.vertices[j * (nx + 1) + i] = fsi_v3(lo.x + (fsi_real)i * dx, lo.y + (fsi_real)j * dy, lo.z);
    return m;
}

/* The number of a vertex (i, j, k) of a block's lattice, in x, y and z; new ones are added to m. */
static int ex__block_vertex(ex_mesh *m, int *number, fsi_box3 box, const int *n, const int *q)
{
    int *at = number + q[0] + (n[0] + 1) * (q[1] + (n[1] + 1) * q[2]);
    const fsi_vec3 size = fsi_v3_sub(box.hi, box.lo);
    if (*at) return *at - 1;
    m->vertices[m->vertex_count] = fsi_v3_add(box.lo, fsi_v3(size.x * (fsi_real)q[0] / (fsi_real)n[0],
        size.y * (fsi_real)q[1] / (fsi_real)n[1], size.z * (fsi_real)q[2] / (fsi_real)n[2]));
    *at = ++m->vertex_count;
    return *at - 1;
}

/* A closed block whose sides are cut in squares of n[0], n[1], n[2] along its edges, each in two triangles. */
EX_FN ex_mesh ex_gridded_box(fsi_box3 box, const int *n)
{
    const int squares = 2 * (n[0] * n[1] + n[1] * n[2] + n[2] * n[0]);
    ex_mesh m = ex_mesh_make(squares + 2, 2 * squares);
    int *number = (int *)ex_alloc(NULL, (size_t)(n[0] + 1) * (size_t)(n[1] + 1), (size_t)(n[2] + 1) * sizeof *number);
    int side, i, j, e, t = 0;
    m.vertex_count = 0;
    memset(number, 0, (size_t)(n[0] + 1) * (size_t)(n[1] + 1) * (size_t)(n[2] + 1) * sizeof *number);
    for (side = 0; side < 6; side++) {
        const int a = side >> 1, b = (a + 1) % 3, c = (a + 2) % 3;
        for (j = 0; j < n[c]; j++)
            for (i = 0; i < n[b]; i++) {
                int q[3], v[4];
                for (e = 0; e < 4; e++) {
                    q[a] = side & 1 ? n[a] : 0;
                    q[b] = i + (e == 1 || e == 2);
                    q[c] = j + (e >= 2);
                    v[e] = ex__block_vertex(&m, number, box, n, q);
                }
                ex__triangle(&m, t++, v[0], v[side & 1 ? 1 : 2], v[side & 1 ? 2 : 1]);
                ex__triangle(&m, t++, v[0], v[side & 1 ? 2 : 3], v[side & 1 ? 3 : 2]);
            }
    }
    free(number);
    return m;
}

/* The point at angle t in [0, 2 pi) of a (p, q) torus knot: p turns around the axis z, q around the tube. */
static fsi_vec3 ex__knot_point(int p, int q, double t)
{
    double r = 2 + cos(q * t);
    return fsi_v3((fsi_real)(r * cos(p * t)), (fsi_real)(r * sin(p * t)), (fsi_real)(-sin(q * t)));
}

/* A tube of the given radius around the closed curve of nu points. Its cross-section is turned from one point to the
   next without twist; the angle that is missing after one turn is spread along the curve. */
static ex_mesh ex__tube(const fsi_vec3 *curve, int nu, int nv, double radius)
{
    ex_mesh m = ex__lattice(nv, nu, 1);
    fsi_vec3 *side = (fsi_vec3 *)ex_alloc(NULL, (size_t)nu + 1, sizeof *side), t, first;
    double missing;
    int i, j;
    for (i = 0; i <= nu; i++) {
        t = fsi_v3_unit(fsi_v3_sub(curve[(i + 1) % nu], curve[(i + nu - 1) % nu]));
        first = i ? side[i - 1] : fsi_v3_cross(t, fsi_abs(t.z) < (fsi_real)0.8 ? fsi_v3(0, 0, 1) : fsi_v3(1, 0, 0));
        side[i] = fsi_v3_unit(fsi_v3_madd(first, -fsi_v3_dot(first, t), t));
    }
    missing = atan2((double)fsi_v3_dot(fsi_v3_cross(side[nu], side[0]), t), (double)fsi_v3_dot(side[nu], side[0]));
    for (i = 0; i < nu; i++) {
        fsi_vec3 other;
        t = fsi_v3_unit(fsi_v3_sub(curve[(i + 1) % nu], curve[(i + nu - 1) % nu]));
        other = fsi_v3_cross(t, side[i]);
        for (j = 0; j < nv; j++) {
            double a = 2 * FSI_PI * j / nv + missing * i / nu;
            fsi_vec3 p = fsi_v3_madd(curve[i], (fsi_real)(radius * cos(a)), side[i]);
            m.vertices[i * nv + j] = fsi_v3_madd(p, (fsi_real)(radius * sin(a)), other);
        }
    }
    free(side);
    return m;
}

/* A knotted tube (p = 2, q = 3: trefoil) around the origin with the axis z, about 6 x 6 x 2 before scaling, of nu
   pieces along and nv around. The trefoil does not touch itself for radii up to 0.8. */
EX_FN ex_mesh ex_knot(int p, int q, double radius, int nu, int nv)
{
    fsi_vec3 *curve = (fsi_vec3 *)ex_alloc(NULL, (size_t)nu, sizeof *curve);
    ex_mesh m;
    int i;
    for (i = 0; i < nu; i++) curve[i] = ex__knot_point(p, q, 2 * FSI_PI * i / nu);
    m = ex__tube(curve, nu, nv, radius);
    free(curve);
    return m;
}

/* A ring around the z axis: a tube of the given radius whose middle is at the distance `ring` from the axis. */
EX_FN ex_mesh ex_torus(double ring, double radius, int nu, int nv)
{
    fsi_vec3 *curve = (fsi_vec3 *)ex_alloc(NULL, (size_t)nu, sizeof *curve);
    ex_mesh m;
    int i;
    for (i = 0; i < nu; i++) {
        double a = 2 * FSI_PI * i / nu;
        curve[i] = fsi_v3((fsi_real)(ring * cos(a)), (fsi_real)(ring * sin(a)), 0);
    }
    m = ex__tube(curve, nu, nv, radius);
    free(curve);
    return m;
}

/* The vertex halfway between a and b, made when first asked for: the table holds one slot an edge, found by hashing. */
static int ex__middle(ex_mesh *m, int *table, int slots, int a, int b)
{
    int lo = a < b ? a : b, hi = a < b ? b : a;
    int h = (int)(((unsigned)lo * 2654435761u ^ (unsigned)hi * 40503u) % (unsigned)slots);
    while (table[3 * h + 2] >= 0 && (table[3 * h] != lo || table[3 * h + 1] != hi)) h = (h + 1) % slots;
    if (table[3 * h + 2] < 0) {
        table[3 * h] = lo;
        table[3 * h + 1] = hi;
        table[3 * h + 2] = m->vertex_count;
        m->vertices[m->vertex_count++] = fsi_v3_unit(fsi_v3_add(m->vertices[a], m->vertices[b]));
    }
    return table[3 * h + 2];
}

/* Cuts every triangle of a sphere in four. */
static void ex__subdivide(ex_mesh *m)
{
    ex_mesh fine = ex_mesh_make(m->vertex_count + 3 * m->triangle_count / 2, 4 * m->triangle_count);
    int i, k, slots = 4 * m->triangle_count, *table = (int *)ex_alloc(NULL, (size_t)slots, 3 * sizeof *table);
    memset(table, 0xff, (size_t)slots * 3 * sizeof *table);
    memcpy(fine.vertices, m->vertices, (size_t)m->vertex_count * sizeof *m->vertices);
    fine.vertex_count = m->vertex_count;
    for (i = 0; i < m->triangle_count; i++) {
        const int *t = m->triangles + 3 * i;
        int mid[3];
        for (k = 0; k < 3; k++) mid[k] = ex__middle(&fine, table, slots, t[k], t[(k + 1) % 3]);
        for (k = 0; k < 3; k++) ex__triangle(&fine, 4 * i + k, t[k], mid[k], mid[(k + 2) % 3]);
        ex__triangle(&fine, 4 * i + 3, mid[0], mid[1], mid[2]);
    }
    free(table);
    ex_mesh_free(m);
    *m = fine;
}

/* A sphere of 20 * 4^level nearly equal triangles. */
EX_FN ex_mesh ex_sphere(fsi_vec3 center, double radius, int level)
{
    static const int faces[20][3] = {
        { 0, 11, 5 }, { 0, 5, 1 }, { 0, 1, 7 }, { 0, 7, 10 }, { 0, 10, 11 }, { 1, 5, 9 }, { 5, 11, 4 },
        { 11, 10, 2 }, { 10, 7, 6 }, { 7, 1, 8 }, { 3, 9, 4 }, { 3, 4, 2 }, { 3, 2, 6 }, { 3, 6, 8 },
        { 3, 8, 9 }, { 4, 9, 5 }, { 2, 4, 11 }, { 6, 2, 10 }, { 8, 6, 7 }, { 9, 8, 1 }
    };
    ex_mesh m = ex_mesh_make(12, 20);
    fsi_real g = (fsi_real)1.6180339887498949;
    int i;
    for (i = 0; i < 4; i++) { /* three golden rectangles */
        fsi_real a = i & 1 ? (fsi_real)1 : (fsi_real)-1, b = i & 2 ? -g : g;
        m.vertices[i] = fsi_v3_unit(fsi_v3(a, b, 0));
        m.vertices[4 + i] = fsi_v3_unit(fsi_v3(0, a, b));
        m.vertices[8 + i] = fsi_v3_unit(fsi_v3(b, 0, a));
    }
    for (i = 0; i < 20; i++) ex__triangle(&m, i, faces[i][0], faces[i][1], faces[i][2]);
    while (level-- > 0) ex__subdivide(&m);
    ex_mesh_move(&m, radius, center);
    return m;
}

#endif /* FSI_KIT_MESH_H */
