/* test_meshes.h - meshes built from a few corners, and bodies made of them, for tests of all liquids.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_MESHES_H
#define FSI_TEST_MESHES_H

#include "test.h"

#define PI 3.14159265358979323846

TEST_FN fsi_vec3 v3(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }

TEST_FN fsi_box3 box3(double x0, double y0, double z0, double x1, double y1, double z1)
{
    fsi_box3 b;
    b.lo = v3(x0, y0, z0);
    b.hi = v3(x1, y1, z1);
    return b;
}

/* Uniform in the cube of side 1 around 0; flat in the plane. */
TEST_FN fsi_vec3 random_vector(uint64_t *random, int dim)
{
    double x = test_random(random) - 0.5, y = test_random(random) - 0.5, z = test_random(random) - 0.5;
    return v3(x, y, dim == 2 ? 0 : z);
}

/* ---- meshes --------------------------------------------------------------------------------------------------- */

/* The mesh being built: vertices and elements; corners 3 in space, 2 in the plane. */
enum { MOST_VERTICES = 8000, MOST_ELEMENTS = 12000 };
static struct { fsi_vec3 x[MOST_VERTICES]; int e[3 * MOST_ELEMENTS], nx, ne, corners; } shape;

TEST_FN void shape_begin(int corners)
{
    shape.nx = shape.ne = 0;
    shape.corners = corners;
}

TEST_FN int shape_vertex(double x, double y, double z) { shape.x[shape.nx] = v3(x, y, z); return shape.nx++; }

TEST_FN void shape_face(int a, int b, int c)
{
    int *e = shape.e + shape.corners * shape.ne++;
    e[0] = a;
    e[1] = b;
    if (shape.corners == 3) e[2] = c;
}

/* Segments along the x axis from x0 over x1 to x2, the liquid above them when x0 < x2. */
TEST_FN void shape_line(double x0, double x1, double x2)
{
    shape_vertex(x0, 0, 0);
    shape_vertex(x1, 0, 0);
    shape_vertex(x2, 0, 0);
    shape_face(0, 1, 0);
    shape_face(1, 2, 0);
}

/* Two triangles; seen from the liquid a, b, c, d run counter-clockwise. */
TEST_FN void shape_quad(int a, int b, int c, int d) { shape_face(a, b, c); shape_face(a, c, d); }

/* A closed polygon in the plane, corners given as x, y pairs in clockwise order (liquid outside, on the left). */
TEST_FN void shape_polygon(const double *xy, int n)
{
    int k, first = shape.nx;
    for (k = 0; k < n; k++) shape_vertex(xy[2 * k], xy[2 * k + 1], 0);
    for (k = 0; k < n; k++) shape_face(first + k, first + (k + 1) % n, 0);
}

/* A box: eight corners in space, four in the plane. */
TEST_FN void shape_box(fsi_box3 b)
{
    int k, v = shape.nx;
    if (shape.corners == 2) {
        double xy[8];
        xy[0] = xy[2] = (double)b.lo.x;
        xy[4] = xy[6] = (double)b.hi.x;
        xy[1] = xy[7] = (double)b.lo.y;
        xy[3] = xy[5] = (double)b.hi.y;
        shape_polygon(xy, 4);
        return;
    }
    for (k = 0; k < 8; k++) {
        shape.x[shape.nx] = fsi_v3(k & 1 ? b.hi.x : b.lo.x, k & 2 ? b.hi.y : b.lo.y, k & 4 ? b.hi.z : b.lo.z);
        shape.nx++;
    }
    shape_quad(v, v + 2, v + 3, v + 1);
    shape_quad(v + 4, v + 5, v + 7, v + 6);
    shape_quad(v, v + 1, v + 5, v + 4);
    shape_quad(v + 2, v + 6, v + 7, v + 3);
    shape_quad(v, v + 4, v + 6, v + 2);
    shape_quad(v + 1, v + 3, v + 7, v + 5);
}

/* A rectangle from corner a along edges u and w, its normal along u x w, cut into nu x nw quads. */
TEST_FN void shape_sheet(fsi_vec3 a, fsi_vec3 u, fsi_vec3 w, int nu, int nw)
{
    int i, j, first = shape.nx;
    for (j = 0; j <= nw; j++)
        for (i = 0; i <= nu; i++)
            shape.x[shape.nx++] =
                fsi_v3_madd(fsi_v3_madd(a, (fsi_real)i / (fsi_real)nu, u), (fsi_real)j / (fsi_real)nw, w);
    for (j = 0; j < nw; j++) {
        for (i = 0; i < nu; i++) {
            int k = first + j * (nu + 1) + i;
            shape_quad(k, k + 1, k + nu + 2, k + nu + 1);
        }
    }
}

/* A ring of radius `ring` around z, tube radius `tube`. */
TEST_FN void shape_torus(double ring, double tube, int nu, int nw)
{
    int i, j;
    for (i = 0; i < nu; i++) {
        for (j = 0; j < nw; j++) {
            double a = 2 * PI * i / nu, b = 2 * PI * j / nw, r = ring + tube * cos(b);
            shape_vertex(r * cos(a), r * sin(a), tube * sin(b));
        }
    }
    for (i = 0; i < nu; i++) {
        for (j = 0; j < nw; j++) {
            int i1 = (i + 1) % nu, j1 = (j + 1) % nw;
            shape_quad(i * nw + j, i1 * nw + j, i1 * nw + j1, i * nw + j1);
        }
    }
}

TEST_FN fsi_mesh *shape_make_with(fsi_context *context, fsi_mesh_kind kind, int container)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *mesh = NULL;
    d.context = context;
    d.vertices = shape.x;
    d.vertex_count = shape.nx;
    d.elements = shape.e;
    d.element_count = shape.ne;
    d.corners = shape.corners;
    d.kind = kind;
    d.container = container;
    CHECK(fsi_mesh_create(&mesh, &d) == FSI_OK);
    return mesh;
}

TEST_FN fsi_mesh *shape_make(fsi_mesh_kind kind, int container) { return shape_make_with(NULL, kind, container); }

/* A container, seen from inside. */
TEST_FN fsi_mesh *make_container(int dim, fsi_box3 b)
{
    shape_begin(dim);
    shape_box(b);
    return shape_make(FSI_MESH_CLOSED, 1);
}

/* ---- bodies --------------------------------------------------------------------------------------------------- */

/* A box of half sizes a, b (2D: in x and y; 3D: in x and z, across the tank less a slit in y) around the origin. */
TEST_FN fsi_mesh *make_block(int dim, double a, double b, double across)
{
    shape_begin(dim);
    shape_box(dim == 2 ? box3(-a, -b, 0, a, b, 0) : box3(-a, -across, -b, a, across, b));
    return shape_make(FSI_MESH_CLOSED, 0);
}

/* At (x, h) of the tank's upright plane, turned by `angle` in it. */
TEST_FN fsi_pose pose_at(int dim, double x, double h, double angle)
{
    fsi_pose p;
    p.position = dim == 2 ? v3(x, h, 0) : v3(x, 0.08, h);
    p.orientation = fsi_quat_from_axis_angle(dim == 2 ? v3(0, 0, 1) : v3(0, -1, 0), (fsi_real)angle);
    return p;
}

/* Takes a mesh made around the origin to a pose, as what was there before is not to be swept. */
TEST_FN void mesh_to(fsi_mesh *m, fsi_pose p)
{
    CHECK(fsi_mesh_move_rigid(m, p.position, p.orientation) == FSI_OK);
    CHECK(fsi_mesh_move_rigid(m, p.position, p.orientation) == FSI_OK);
}

/* A body of the block's mass at `density`, with gravity g on it, at the mesh's pose. */
TEST_FN fsi_body make_floater(const fsi_mesh *m, double density, double g, int dim)
{
    fsi_mass_properties p;
    fsi_body b;
    CHECK(fsi_mesh_mass(m, (fsi_real)density, 0, &p) == FSI_OK);
    b = fsi_body_from_mass(&p);
    b.force = dim == 2 ? v3(0, -g * (double)p.mass, 0) : v3(0, 0, -g * (double)p.mass);
    return b;
}

/* A closed polygon of n corners around the origin. */
TEST_FN fsi_mesh *make_cylinder(double radius, int n)
{
    double xy[200];
    int k;
    for (k = 0; k < n; k++) {
        xy[2 * k] = radius * cos(-2 * PI * k / n);
        xy[2 * k + 1] = radius * sin(-2 * PI * k / n);
    }
    shape_begin(2);
    shape_polygon(xy, n);
    return shape_make(FSI_MESH_CLOSED, 0);
}

#endif /* FSI_TEST_MESHES_H */
