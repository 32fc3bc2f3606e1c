/* test_mesh.c - meshes: repair, tree, distances, motion, reduced-order collision, mass; against analytic values and
   brute force.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_mesh.h"

/* ---- shapes: a soup that the tests fill, break and hand over -------------------------------------------------- */

enum { MOST_VERTICES = 40000, MOST_ELEMENTS = 80000 };
static fsi_vec3 soup_x[MOST_VERTICES];
static int soup_e[4 * MOST_ELEMENTS], soup_nx, soup_ne, soup_corners;
static uint64_t seed = 1;
static fsi_context soup_context;

static double uniform(double lo, double hi) { return lo + (hi - lo) * test_random(&seed); }
static fsi_vec3 v3(double x, double y, double z) { return fsi_v3((fsi_real)x, (fsi_real)y, (fsi_real)z); }
static fsi_vec3 random_point(double r)
{
    double x = uniform(-r, r), y = uniform(-r, r);
    return v3(x, y, uniform(-r, r));
}

static void begin(int corners)
{
    soup_nx = soup_ne = 0;
    soup_corners = corners;
    soup_context = fsi_default_context();
}
static int vertex(double x, double y, double z) { soup_x[soup_nx] = v3(x, y, z); return soup_nx++; }
static int element(int a, int b, int c, int d)
{
    int n[4], k;
    n[0] = a, n[1] = b, n[2] = c, n[3] = d;
    for (k = 0; k < soup_corners; k++) soup_e[soup_corners * soup_ne + k] = n[k];
    return soup_ne++;
}
static int triangle(int a, int b, int c) { return element(a, b, c, 0); }
static void flip(int t) { int s = soup_e[3 * t + 1]; soup_e[3 * t + 1] = soup_e[3 * t + 2]; soup_e[3 * t + 2] = s; }
static void drop(int t)
{
    soup_ne--;
    memmove(soup_e + soup_corners * t, soup_e + soup_corners * (t + 1),
            (size_t)(soup_corners * (soup_ne - t)) * sizeof(int));
}

/* Box of 12 triangles; corner i has the bits x, y, z of i. */
static void add_box(double x0, double y0, double z0, double x1, double y1, double z1)
{
    static const int quad[6][4] = {{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
    int i, o = soup_nx;
    for (i = 0; i < 8; i++) vertex(i & 1 ? x1 : x0, i & 2 ? y1 : y0, i & 4 ? z1 : z0);
    for (i = 0; i < 6; i++) {
        triangle(o + quad[i][0], o + quad[i][1], o + quad[i][2]);
        triangle(o + quad[i][0], o + quad[i][2], o + quad[i][3]);
    }
}
static void cube(void) { begin(3); add_box(0, 0, 0, 1, 1, 1); }

/* Tube of radius r around a closed curve: a torus, or a (2, 3) torus knot. */
static void curve(int knot, double s, double p[3])
{
    double w = knot ? 2 + cos(3 * s) : 2;
    p[0] = w * cos(knot ? 2 * s : s), p[1] = w * sin(knot ? 2 * s : s), p[2] = knot ? sin(3 * s) : 0;
}
static void add_tube(int knot, double r, int nu, int nv)
{
    int i, j, o = soup_nx;
    for (i = 0; i < nu; i++) {
        double a[3], b[3], c[3], s = 2 * FSI_PI * i / nu;
        fsi_vec3 t, n, m;
        curve(knot, s, a), curve(knot, s - 1e-4, b), curve(knot, s + 1e-4, c);
        t = fsi_v3_unit(v3((c[0] - b[0]) * 1e3, (c[1] - b[1]) * 1e3, (c[2] - b[2]) * 1e3));
        n = fsi_v3_unit(fsi_v3_cross(t, v3(0, 0, 1)));
        m = fsi_v3_cross(t, n);
        for (j = 0; j < nv; j++) {
            double u = 2 * FSI_PI * j / nv, cu = r * cos(u), su = r * sin(u);
            vertex(a[0] + cu * (double)n.x + su * (double)m.x, a[1] + cu * (double)n.y + su * (double)m.y,
                   a[2] + cu * (double)n.z + su * (double)m.z);
        }
    }
    for (i = 0; i < nu; i++) for (j = 0; j < nv; j++) {
        int p = o + i * nv + j, q = o + (i + 1) % nu * nv + j, jn = (j + 1) % nv - j;
        triangle(p, p + jn, q + jn);
        triangle(p, q + jn, q);
    }
}

/* Sphere of nu x nv quads, poles included. */
static void add_sphere(double x, double y, double z, double r, int nu, int nv)
{
    int i, j, o = soup_nx, south = o + (nv - 1) * nu, north = south + 1;
    for (j = 1; j < nv; j++) for (i = 0; i < nu; i++) {
        double t = FSI_PI * j / nv - FSI_PI / 2, p = 2 * FSI_PI * i / nu;
        vertex(x + r * cos(t) * cos(p), y + r * cos(t) * sin(p), z + r * sin(t));
    }
    vertex(x, y, z - r);
    vertex(x, y, z + r);
    for (i = 0; i < nu; i++) {
        int n = (i + 1) % nu;
        triangle(south, o + n, o + i);
        triangle(north, o + (nv - 2) * nu + i, o + (nv - 2) * nu + n);
        for (j = 0; j + 2 < nv; j++) {
            triangle(o + j * nu + i, o + j * nu + n, o + (j + 1) * nu + n);
            triangle(o + j * nu + i, o + (j + 1) * nu + n, o + (j + 1) * nu + i);
        }
    }
}

/* Flat sheet of n x n quads in [0, 1]^2. */
static void add_sheet(int n)
{
    int i, j, o = soup_nx;
    for (j = 0; j <= n; j++) for (i = 0; i <= n; i++) vertex((double)i / n, (double)j / n, 0);
    for (j = 0; j < n; j++) for (i = 0; i < n; i++) {
        int a = o + j * (n + 1) + i;
        triangle(a, a + 1, a + n + 2);
        triangle(a, a + n + 2, a + n + 1);
    }
}

static fsi_mesh_desc soup_desc(fsi_mesh_kind kind)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    d.context = &soup_context;
    d.vertices = soup_x;
    d.vertex_count = soup_nx;
    d.elements = soup_e;
    d.element_count = soup_ne;
    d.corners = soup_corners;
    d.kind = kind;
    return d;
}
static fsi_mesh *make(fsi_mesh_kind kind)
{
    fsi_mesh_desc d = soup_desc(kind);
    fsi_mesh *m;
    if (!CHECK(fsi_mesh_create(&m, &d) == FSI_OK)) printf("    %s\n", soup_context.error.message);
    return m;
}

/* ---- invariants that every good mesh fulfils ------------------------------------------------------------------ */

static double volume(const fsi_mesh *m)
{
    fsi_mass_properties p;
    return m && fsi_mesh_mass(m, 1, 1, &p) == FSI_OK ? (double)p.volume : -1;
}
static int euler(const fsi_mesh *m)
{
    return m->corners == 3 ? m->vertex_count - m->edge_count + m->face_count : m->vertex_count - m->face_count;
}

/* Sign of the distance against the winding number at points all over the box and close to vertices and edges. */
static int wrong_signs(const fsi_mesh *m, int n)
{
    fsi_vec3 size = fsi_v3_sub(m->box.hi, m->box.lo);
    double scale = (double)fsi_v3_norm(size), w, d;
    int wrong = 0, i;
    for (i = 0; i < n; i++) {
        const int *c = m->faces + m->corners * (int)uniform(0, m->face_count);
        double t = i % 3 == 0 ? 0 : uniform(0, 1), r = scale * pow(10, -uniform(1, TOL(6, 3)));
        fsi_vec3 x =
            fsi_v3_add(m->vertices[c[0]], fsi_v3_scale(fsi_v3_sub(m->vertices[c[1]], m->vertices[c[0]]), (fsi_real)t));
        x = fsi_v3_add(x, random_point(r));
        if (i % 2)
            x = v3((double)m->box.lo.x + (double)size.x * uniform(-0.1, 1.1),
                   (double)m->box.lo.y + (double)size.y * uniform(-0.1, 1.1),
                   (double)m->box.lo.z + (double)size.z * uniform(-0.1, 1.1));
        if (m->corners == 2) x.z = 0;
        w = fsi_mesh_winding_number(m, x);
        d = (double)fsi_mesh_signed_distance(m, x);
        if (fabs(d) < TOL(1e-9, 2e-6) * scale) continue;
        if (m->container) w += 1;
        if (!(fabs(w - floor(w + 0.5)) < TOL(1e-6, 1e-3)) || (d < 0) != (floor(w + 0.5) == 1)) wrong++;
    }
    return wrong;
}

/* Neighbours name each other and share the edge; groups follow neighbours; sources point back. */
static void check_topology(const fsi_mesh *m)
{
    int f, k, j, n = m->corners;
    for (f = 0; f < m->face_count; f++) for (k = 0; k < n; k++) {
        int g = m->face_neighbor[n * f + k], mutual = 0;
        int a = m->faces[n * f + k], b = m->faces[n * f + (k + 1) % n];
        CHECK(a >= 0 && a < m->vertex_count);
        if (g < 0) { CHECK(m->kind != FSI_MESH_CLOSED); continue; }
        CHECK(m->face_group[f] == m->face_group[g]);
        for (j = 0; j < n; j++) {
            int opposite = n == 3 ? m->faces[n * g + j] == b && m->faces[n * g + (j + 1) % n] == a
                                  : m->faces[n * g + j] == a && j != k;
            mutual |= m->face_neighbor[n * g + j] == f && (opposite || m->kind == FSI_MESH_TWO_SIDED) &&
                      (n == 2 || m->face_edge[n * g + j] == m->face_edge[n * f + k]);
        }
        CHECK(mutual);
    }
    for (k = 0; k < m->vertex_count; k++) CHECK(m->vertex_source[k] >= 0 && m->vertex_source[k] < m->source_count);
    for (k = 0; k < m->source_count; k++) CHECK(m->source_vertex[k] < m->vertex_count);
}

/* The soup becomes a closed mesh of this volume and Euler number whose signs are right; returns its report. */
static fsi_mesh_report expect_closed(double want_volume, int want_euler)
{
    fsi_mesh_report r;
    fsi_mesh *m = make(FSI_MESH_CLOSED);
    memset(&r, 0, sizeof r);
    if (!m) return r;
    check_topology(m);
    CHECK_NEAR(volume(m), want_volume, TOL(1e-9, 1e-5) * fabs(want_volume));
    CHECK(euler(m) == want_euler);
    CHECK(wrong_signs(m, 3000) == 0);
    CHECK(m->report.boundary_edges == 0 && m->report.nonmanifold_edges == 0 && m->report.t_junctions == 0);
    r = m->report;
    fsi_mesh_destroy(m);
    CHECK(soup_context.bytes == 0);
    return r;
}

enum { ANY = -2 };
static void expect_refused(fsi_mesh_kind kind, fsi_status status, long long culprit, const char *words)
{
    fsi_mesh_desc d = soup_desc(kind);
    fsi_mesh *m = (fsi_mesh *)&d;
    CHECK(fsi_mesh_create(&m, &d) == status);
    CHECK(m == NULL);
    CHECK(soup_context.error.status == status &&
          (culprit == ANY ? soup_context.error.element >= 0 : soup_context.error.element == culprit));
    if (!CHECK(strstr(soup_context.error.message, words) != NULL)) printf("    \"%s\"\n", soup_context.error.message);
    CHECK(soup_context.bytes == 0);
}

/* ---- broken meshes -------------------------------------------------------------------------------------------- */

static void test_good_cube_reports_nothing(void)
{
    fsi_mesh_report r;
    cube();
    r = expect_closed(1, 2);
    CHECK(r.text[0] == 0 && r.flipped == 0 && r.filled_holes == 0 && r.first_flipped == -1);
}
static void test_one_triangle_hole_is_filled(void)
{
    fsi_mesh_report r;
    cube();
    drop(5);
    r = expect_closed(1, 2);
    CHECK(r.filled_holes == 1 && strstr(r.text, "holes filled: 1") != NULL);
    cube();
    drop(5);
    drop(4); /* a square hole */
    r = expect_closed(1, 2);
    CHECK(r.filled_holes == 1);
}
static void test_large_hole_is_refused(void)
{
    begin(3);
    add_sphere(0, 0, 0, 1, 16, 8);
    while (soup_ne > 180) drop(soup_ne - 1);
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_MESH, ANY, "open edge");
}
static void test_flipped_face_is_turned(void)
{
    fsi_mesh_report r;
    cube();
    flip(7);
    r = expect_closed(1, 2);
    CHECK(r.flipped == 1 && r.first_flipped == 7);
}
static void test_flipped_component_is_turned(void)
{
    fsi_mesh_report r;
    int t;
    cube();
    add_box(3, 0, 0, 4, 1, 1);
    for (t = 12; t < 24; t++) flip(t);
    r = expect_closed(2, 4);
    CHECK(r.flipped == 12 && r.first_flipped == 12);
}
static void test_inside_out_is_turned(void)
{
    fsi_mesh_report r;
    int t;
    cube();
    for (t = 0; t < 12; t++) flip(t);
    r = expect_closed(1, 2);
    CHECK(r.flipped == 12 && r.first_flipped == 0);
}
static void test_duplicate_face_is_dropped(void)
{
    fsi_mesh_report r;
    cube();
    triangle(soup_e[9], soup_e[10], soup_e[11]);
    r = expect_closed(1, 2);
    CHECK(r.dropped_duplicate == 1);
    cube();
    triangle(soup_e[10], soup_e[9], soup_e[11]); /* looks the other way: both go, the hole is filled */
    r = expect_closed(1, 2);
    CHECK(r.dropped_duplicate == 2 && r.filled_holes == 1 && r.first_duplicate == 3);
}
static void test_t_junction_is_split(void)
{
    fsi_mesh_report r;
    int a, b, c, v;
    cube();
    a = soup_e[0], b = soup_e[1], c = soup_e[2];
    v = vertex((double)(soup_x[a].x + soup_x[b].x) / 2, (double)(soup_x[a].y + soup_x[b].y) / 2,
               (double)(soup_x[a].z + soup_x[b].z) / 2);
    soup_e[1] = v;
    triangle(v, b, c);
    r = expect_closed(1, 2);
    CHECK(r.split_t_junctions == 1);
}
static void test_edge_with_many_t_junctions_is_split(void)
{
    int a, c, i, last;
    cube();
    a = soup_e[0], last = soup_e[1], c = soup_e[2];
    for (i = 1; i < 20; i++) {
        double t = 1 - i / 20.0;
        int v = vertex((double)soup_x[a].x + t * (double)(soup_x[soup_e[1]].x - soup_x[a].x),
                       (double)soup_x[a].y + t * (double)(soup_x[soup_e[1]].y - soup_x[a].y),
                       (double)soup_x[a].z + t * (double)(soup_x[soup_e[1]].z - soup_x[a].z));
        triangle(v, last, c);
        last = v;
    }
    soup_e[1] = last;
    expect_closed(1, 2);
}
static void test_gap_of_a_millionth_is_welded(void)
{
    fsi_mesh_report r;
    int t, k, corner[36];
    cube();
    for (t = 0; t < 12; t++) for (k = 0; k < 3; k++) { /* every triangle gets its own vertices, each off by up to
                                                          1e-6/2 */
        fsi_vec3 p = fsi_v3_add(soup_x[soup_e[3 * t + k]], random_point(0.28e-6));
        corner[3 * t + k] = vertex((double)p.x, (double)p.y, (double)p.z);
    }
    memcpy(soup_e, corner, sizeof corner);
    for (k = 0; k < 36; k++) soup_x[k] = soup_x[k + 8];
    for (k = 0; k < 36; k++) soup_e[k] -= 8;
    soup_nx = 36;
    {
        fsi_mesh *m = make(FSI_MESH_CLOSED);
        if (!m) return;
        CHECK_NEAR(volume(m), 1, 1e-5);
        CHECK(m->vertex_count == 8 && euler(m) == 2);
        r = m->report;
        fsi_mesh_destroy(m);
    }
    CHECK(r.welded_vertices == 28);
    soup_x[0].x += (fsi_real)1e-3; /* too wide to weld: a slit, filled as a hole */
    {
        fsi_mesh *m = make(FSI_MESH_CLOSED);
        CHECK_NEAR(volume(m), 1, 1e-3);
        CHECK(m && m->report.filled_holes == 1 && euler(m) == 2);
        fsi_mesh_destroy(m);
    }
}
static void test_nested_shells(void)
{
    fsi_mesh_report r;
    int t;
    cube();
    add_box(0.25, 0.25, 0.25, 0.75, 0.75, 0.75);
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_MESH, ANY, "lies inside");
    CHECK(soup_context.error.element >= 12);
    for (t = 12; t < 24; t++) flip(t);
    r = expect_closed(1 - 0.125, 4); /* a cavity */
    CHECK(r.flipped == 0);
    for (t = 0; t < 24; t++) flip(t);
    r = expect_closed(1 - 0.125, 4); /* all of it inside-out */
    CHECK(r.flipped == 24);
    for (t = 0; t < 24; t++) flip(t);
    add_box(0.4, 0.4, 0.4, 0.6, 0.6, 0.6);
    expect_closed(1 - 0.125 + 0.008, 6); /* an island in the cavity */
}
/* A tank with a block in it: the liquid is between them. */
static void test_container_faces_inward(void)
{
    fsi_mesh_desc d;
    fsi_mesh *m;
    fsi_mass_properties p;
    int t, round;
    for (round = 0; round < 2; round++) { /* the tank given outward, then inward; the block the other way round */
        cube();
        add_box(0.25, 0.25, 0.25, 0.75, 0.75, 0.75);
        for (t = round ? 0 : 12; t < (round ? 12 : 24); t++) flip(t);
        d = soup_desc(FSI_MESH_CLOSED);
        d.container = 1;
        if (!CHECK(fsi_mesh_create(&m, &d) == FSI_OK)) return;
        CHECK(m->container == 1 && m->report.flipped == (round ? 0 : 24));
        CHECK_NEAR(fsi_mesh_signed_distance(m, v3(0.1, 0.5, 0.5)), 0.1, 1e-6);
        CHECK_NEAR(fsi_mesh_signed_distance(m, v3(0.5, 0.5, 0.6)), -0.15, 1e-6);
        CHECK_NEAR(fsi_mesh_signed_distance(m, v3(-0.2, 0.5, 0.5)), -0.2, 1e-6);
        CHECK(wrong_signs(m, 2000) == 0);
        check_topology(m);
        CHECK(fsi_mesh_mass(m, 1, 1, &p) == FSI_ERROR_MESH);
        fsi_mesh_destroy(m);
    }
    d.kind = FSI_MESH_OPEN;
    CHECK(fsi_mesh_create(&m, &d) == FSI_ERROR_ARGUMENT);
}
static void test_self_intersection_is_a_warning(void)
{
    fsi_mesh *m;
    cube();
    add_box(0.5, 0.3, 0.3, 1.5, 0.7, 0.7);
    m = make(FSI_MESH_CLOSED);
    if (!m) return;
    CHECK(m->report.self_intersections > 0 && m->report.first_intersection >= 0 &&
          strstr(m->report.text, "self-intersections") != NULL);
    fsi_mesh_destroy(m);
    begin(3);
    add_tube(1, 0.3, 120, 16);
    m = make(FSI_MESH_CLOSED);
    CHECK(m && m->report.self_intersections == 0);
    fsi_mesh_destroy(m);
}
static void test_nan_vertex_is_refused(void)
{
    cube();
    soup_x[5].y = (fsi_real)test_nan();
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_NAN, 5, "vertex 5");
    soup_x[5].y = (fsi_real)test_inf();
    expect_refused(FSI_MESH_TWO_SIDED, FSI_ERROR_NAN, 5, "vertex 5");
}
static void test_vertex_off_by_a_million_is_refused(void)
{
    cube();
    soup_x[6].x = (fsi_real)1e6;
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_MESH, ANY, "vertex 6 of triangle");
}
static void test_zero_area_face_is_dropped(void)
{
    fsi_mesh_report r;
    int a, b, c, v;
    cube();
    triangle(0, 1, 1);
    r = expect_closed(1, 2); /* two corners the same */
    CHECK(r.dropped_degenerate == 1 && r.first_degenerate == 12);
    cube(); /* a vertex in the middle of an edge, its far side joined by a triangle without area */
    a = soup_e[0], b = soup_e[1], c = soup_e[2];
    v = vertex((double)(soup_x[a].x + soup_x[b].x) / 2, (double)(soup_x[a].y + soup_x[b].y) / 2,
               (double)(soup_x[a].z + soup_x[b].z) / 2);
    soup_e[1] = v;
    triangle(v, b, c);
    triangle(a, b, v);
    r = expect_closed(1, 2);
    CHECK(r.dropped_degenerate == 1 && r.first_degenerate == 13 && r.split_t_junctions == 1);
}
static void test_nonmanifold_edge_is_refused_or_counted(void)
{
    fsi_mesh *m;
    cube();
    vertex(2, 2, 2);
    triangle(0, 1, 8);
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_MESH, ANY, "more than two share");
    m = make(FSI_MESH_TWO_SIDED);
    if (!m) return;
    CHECK(m->report.nonmanifold_edges == 1);
    check_topology(m);
    fsi_mesh_destroy(m);
}
static void test_open_sheet(void)
{
    fsi_mesh *m;
    int k;
    begin(3);
    add_sheet(8);
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_MESH, ANY, "not closed (open edges: 32");
    for (k = 1; k <= 2; k++) {
        m = make((fsi_mesh_kind)k);
        if (!m) return;
        check_topology(m);
        CHECK(m->report.boundary_edges == 32 && m->group_count == 1 && euler(m) == 1);
        CHECK(fsi_mesh_closest(m, v3(0.3, 0.4, 0.2), 1, -1).side == 1);
        CHECK(fsi_mesh_closest(m, v3(0.3, 0.4, -0.2), 1, -1).side == -1);
        fsi_mesh_destroy(m);
    }
    flip(3);
    m = make(FSI_MESH_OPEN); /* most triangles look up: so do all */
    CHECK(m && m->report.flipped == 1 && m->report.first_flipped == 3 && (double)m->face_normals[0].z > 0.99);
    fsi_mesh_destroy(m);
}
static void test_touching_cubes_come_apart(void)
{
    int t;
    cube();
    add_box(1, 1, 0, 2, 2, 1); /* in an edge */
    expect_closed(2, 3);
    for (t = 0; t < 24; t++) flip(t); /* both inside-out */
    CHECK(expect_closed(2, 3).flipped == 24);
    cube();
    add_box(1, 1, 1, 2, 2, 2); /* in a vertex */
    expect_closed(2, 3);
    cube();
    add_box(1, 0, 0, 2, 1, 1); /* in a face */
    expect_closed(2, 2);
}
static void test_touching_cubes_with_other_diagonals(void)
{
    fsi_mesh *m;
    cube();
    add_box(1, 0, 0, 2, 1, 1);
    soup_e[3 * 20] = 8, soup_e[3 * 20 + 1] = 12, soup_e[3 * 20 + 2] = 10; /* the square 8 12 14 10, cut along 10-12 */
    soup_e[3 * 21] = 12, soup_e[3 * 21 + 1] = 14, soup_e[3 * 21 + 2] = 10;
    m = make(FSI_MESH_CLOSED);
    if (!m) return;
    check_topology(m);
    CHECK_NEAR(volume(m), 2, TOL(1e-12, 1e-5));
    CHECK(m->group_count == 2 && m->report.self_intersections == 0);
    fsi_mesh_destroy(m);
}
static void test_unreferenced_vertices_are_left_out(void)
{
    fsi_mesh *m;
    cube();
    vertex(test_nan(), 0, 0);
    vertex(1e30, 0, 0);
    m = make(FSI_MESH_CLOSED);
    if (!m) return;
    CHECK(m->report.unused_vertices == 2 && m->vertex_count == 8 && m->source_vertex[8] == -1 && m->source_count == 10);
    fsi_mesh_destroy(m);
}
static void test_index_out_of_range_is_refused(void)
{
    cube();
    soup_e[3 * 4 + 1] = 8;
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_ARGUMENT, 4, "triangle 4 names vertex 8, but there are 8 vertices");
    soup_e[3 * 4 + 1] = -1;
    expect_refused(FSI_MESH_TWO_SIDED, FSI_ERROR_ARGUMENT, 4, "triangle 4 names vertex -1");
}
static void test_empty_is_refused(void)
{
    begin(3);
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_ARGUMENT, -1, "desc.vertex_count is 0");
    vertex(0, 0, 0);
    triangle(0, 0, 0);
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_MESH, 0, "nothing is left");
}
static void test_single_triangle(void)
{
    fsi_mesh *m;
    begin(3);
    vertex(0, 0, 0), vertex(1, 0, 0), vertex(0, 1, 0);
    triangle(0, 1, 2);
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_MESH, 0, "triangle 0 has an open edge");
    m = make(FSI_MESH_TWO_SIDED);
    if (!m) return;
    CHECK(m->face_count == 1 && m->edge_count == 3 && m->report.boundary_edges == 3);
    CHECK_NEAR(fsi_mesh_closest(m, v3(0.2, 0.2, 0.5), 1, -1).t, 0.5, 1e-6);
    CHECK_NEAR(volume(m), 0.5, 1e-6);
    fsi_mesh_destroy(m);
    triangle(0, 2, 1); /* both sides of it, as exporters do: they cancel, since no space is enclosed */
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_MESH, 0, "a sheet is not closed");
}
static void test_flat_shell_is_refused(void)
{
    fsi_mesh_desc d;
    fsi_mesh *m;
    cube();
    for (soup_nx = 0; soup_nx < 8; soup_nx++) soup_x[soup_nx].z *= (fsi_real)2e-13;
    d = soup_desc(FSI_MESH_CLOSED);
    d.weld = 0;
    CHECK(fsi_mesh_create(&m, &d) == FSI_ERROR_MESH && strstr(soup_context.error.message, "no volume") != NULL);
}
/* A mesh carries no unit: 1 m written as 1000 (mm) is a right mesh, 1 km across. Nothing to refuse, nothing to report;
   what a tool can do is print mesh->box, which says it. */
static void test_millimetres_are_accepted(void)
{
    fsi_mesh_report r;
    begin(3);
    add_box(0, 0, 0, 1000, 1000, 1000);
    r = expect_closed(1e9, 2);
    CHECK(r.text[0] == 0);
    begin(3);
    add_box(0, 0, 0, 1e-6, 1e-6, 1e-6);
    expect_closed(1e-18, 2);
}
static void test_moebius_strip_has_no_outside(void)
{
    int i;
    begin(3);
    for (i = 0; i < 24; i++) {
        double s = 2 * FSI_PI * i / 24, w = 0.3 * cos(s / 2), h = 0.3 * sin(s / 2);
        vertex((1 + w) * cos(s), (1 + w) * sin(s), h);
        vertex((1 - w) * cos(s), (1 - w) * sin(s), -h);
    }
    for (i = 0; i < 24; i++) {
        int a = 2 * i, b = 2 * i + 1, c = i == 23 ? 1 : a + 2, d = i == 23 ? 0 : b + 2;
        triangle(a, b, c), triangle(c, b, d);
    }
    expect_refused(FSI_MESH_OPEN, FSI_ERROR_MESH, ANY, "only one side");
    fsi_mesh_destroy(make(FSI_MESH_TWO_SIDED));
}
static void test_without_repair_nothing_is_mended(void)
{
    static const char *const words[] = { "faces the wrong way", "there twice", "no area", "open edge", "open edge" };
    int i;
    for (i = 0; i < 5; i++) {
        fsi_mesh_desc d;
        fsi_mesh *m;
        cube();
        if (i == 0) flip(3);
        if (i == 1) triangle(soup_e[0], soup_e[1], soup_e[2]);
        if (i == 2) triangle(3, 3, 1);
        if (i == 3) drop(2);
        if (i == 4) { soup_e[1] = vertex(0, 0.5, 0); triangle(8, 2, soup_e[2]); }
        d = soup_desc(FSI_MESH_CLOSED);
        d.repair = 0;
        CHECK(fsi_mesh_create(&m, &d) == FSI_ERROR_MESH && m == NULL);
        if (!CHECK(strstr(soup_context.error.message, words[i]) != NULL))
            printf("    \"%s\"\n", soup_context.error.message);
    }
}
/* Any damage to a sphere: never a crash, and what is accepted is a solid. */
static void test_random_damage_is_repaired_or_refused(void)
{
    int round, k, accepted = 0;
    for (round = 0; round < 400; round++) {
        fsi_mesh_desc d;
        fsi_mesh *m;
        begin(3);
        add_sphere(0, 0, 0, 1, 8, 6);
        for (k = 0; k < 3; k++) {
            int t = (int)uniform(0, soup_ne), v = (int)uniform(0, soup_nx);
            switch ((int)uniform(0, 6)) {
            case 0: flip(t); break;
            case 1: drop(t); break;
            case 2: triangle(soup_e[3 * t], soup_e[3 * t + 1], soup_e[3 * t + 2]); break;
            case 3: soup_e[3 * t + 1] = v; break;
            case 4: soup_x[v] = soup_x[(int)uniform(0, soup_nx)]; break;
            default: triangle(v, (int)uniform(0, soup_nx), (int)uniform(0, soup_nx)); break;
            }
        }
        d = soup_desc(FSI_MESH_CLOSED);
        if (fsi_mesh_create(&m, &d) != FSI_OK) { CHECK(strlen(soup_context.error.message) > 5); continue; }
        accepted++;
        check_topology(m);
        CHECK(volume(m) > 0);
        CHECK(m->report.self_intersections || wrong_signs(m, 60) == 0);
        fsi_mesh_destroy(m);
        CHECK(soup_context.bytes == 0);
    }
    CHECK(accepted > 50);
}

/* ---- two dimensions and tetrahedra ---------------------------------------------------------------------------- */

static void add_ring(double x, double y, double r, int n, int cavity)
{
    int i, o = soup_nx;
    for (i = 0; i < n; i++) vertex(x + r * cos(2 * FSI_PI * i / n), y + r * sin(2 * FSI_PI * i / n), 0);
    for (i = 0; i < n; i++) cavity ? element(o + i, o + (i + 1) % n, 0, 0) : element(o + (i + 1) % n, o + i, 0, 0);
}
static void test_polygon_2d(void)
{
    double area = 0.5 * 40 * sin(2 * FSI_PI / 40);
    fsi_mass_properties p;
    fsi_mesh_report r;
    fsi_mesh *m;
    int i, s;
    begin(2);
    add_ring(0, 0, 1, 40, 0);
    r = expect_closed(area, 0);
    CHECK(r.flipped == 0);
    add_ring(0, 0, 0.5, 20, 1);
    r = expect_closed(area - 0.125 * 20 * sin(2 * FSI_PI / 20), 0);
    CHECK(r.flipped == 0);
    add_ring(3, 0, 1, 40, 1); /* wrong way round */
    r = expect_closed(2 * area - 0.125 * 20 * sin(2 * FSI_PI / 20), 0);
    CHECK(r.flipped == 40);
    begin(2);
    add_ring(2, 3, 1, 40, 0);
    s = soup_e[6], soup_e[6] = soup_e[7], soup_e[7] = s;
    m = make(FSI_MESH_CLOSED);
    if (!m) return;
    CHECK(m->report.flipped == 1 && fsi_mesh_mass(m, 2, 1, &p) == FSI_OK);
    CHECK_NEAR(p.center.x, 2, TOL(1e-12, 1e-5));
    CHECK_NEAR(p.inertia.m[8], 2 * area * (2 + cos(2 * FSI_PI / 40)) / 6, TOL(1e-12, 1e-5));
    for (i = 0; i < 200; i++) { /* distance to a fine ring is that to the circle; z is not looked at */
        fsi_vec3 x = fsi_v3_add(v3(2, 3, 0), random_point(2));
        double d = sqrt((double)((x.x - 2) * (x.x - 2) + (x.y - 3) * (x.y - 3))) - 1;
        CHECK_NEAR(fsi_mesh_signed_distance(m, x), d, 0.004);
    }
    CHECK_NEAR(fsi_mesh_ray(m, v3(0, 3, 7), v3(1, 0, 5), 5).t, 1, 1e-5);
    fsi_mesh_destroy(m);
    begin(2);
    add_ring(0, 0, 1, 12, 0);
    drop(4);
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_MESH, ANY, "open end");
    begin(2);
    add_ring(0, 0, 1, 4, 0);
    add_ring(2, 0, 1, 4, 0); /* touch in a corner */
    expect_closed(4, -1);
    begin(2);
    add_ring(0, 0, 1, 4, 0);
    add_ring(1, 0, 1, 4, 0); /* cross */
    m = make(FSI_MESH_CLOSED);
    CHECK(m && m->report.self_intersections == 2);
    fsi_mesh_destroy(m);
}

/* n^3 cells of five tetrahedra each. */
static void add_tet_box(int n)
{
    static const int five[2][5][4] = {{{0, 1, 2, 4}, {3, 1, 7, 2}, {5, 1, 4, 7}, {6, 2, 7, 4}, {1, 2, 4, 7}},
                                      {{1, 0, 5, 3}, {2, 0, 3, 6}, {4, 0, 6, 5}, {7, 3, 5, 6}, {0, 3, 6, 5}}};
    int i, j, k, t, c, o = soup_nx, w = n + 1;
    for (k = 0; k <= n; k++)
        for (j = 0; j <= n; j++)
            for (i = 0; i <= n; i++) vertex((double)i / n, (double)j / n, (double)k / n);
    for (k = 0; k < n; k++) for (j = 0; j < n; j++) for (i = 0; i < n; i++) for (t = 0; t < 5; t++) {
        int v[4];
        for (c = 0; c < 4; c++) {
            int b = five[(i + j + k) % 2][t][c];
            v[c] = o + (i + (b & 1)) + w * ((j + (b >> 1 & 1)) + w * (k + (b >> 2)));
        }
        {
            fsi_vec3 a = fsi_v3_sub(soup_x[v[1]], soup_x[v[0]]), b = fsi_v3_sub(soup_x[v[2]], soup_x[v[0]]),
                     d = fsi_v3_sub(soup_x[v[3]], soup_x[v[0]]);
            int swap = fsi_v3_dot(fsi_v3_cross(a, b), d) < 0;
            element(v[0], v[1], v[swap ? 3 : 2], v[swap ? 2 : 3]);
        }
    }
}
static void test_tetrahedra_leave_their_boundary(void)
{
    fsi_mesh *m;
    int s;
    begin(4);
    add_tet_box(3);
    m = make(FSI_MESH_CLOSED);
    if (!m) return;
    CHECK(m->tet_count == 135 && m->face_count == 6 * 9 * 2 && m->corners == 3 && m->vertex_count == 64 &&
          m->report.text[0] == 0);
    CHECK_NEAR(volume(m), 1, TOL(1e-12, 1e-5));
    CHECK(wrong_signs(m, 2000) == 0);
    check_topology(m);
    fsi_mesh_destroy(m);
    s = soup_e[4 * 7], soup_e[4 * 7] = soup_e[4 * 7 + 1], soup_e[4 * 7 + 1] = s;
    m = make(FSI_MESH_CLOSED);
    CHECK(m && m->report.flipped == 1 && m->report.first_flipped == 7);
    CHECK_NEAR(volume(m), 1, TOL(1e-12, 1e-5));
    fsi_mesh_destroy(m);
    {
        fsi_mesh_desc d = soup_desc(FSI_MESH_CLOSED);
        d.repair = 0;
        CHECK(fsi_mesh_create(&m, &d) == FSI_ERROR_MESH && soup_context.error.element == 7 &&
              strstr(soup_context.error.message, "tetrahedron 7 is inverted"));
    }
    begin(4);
    add_tet_box(1);
    element(1, 2, 4, 7);
    soup_e[4 * 5 + 3] = vertex(0.5, 0.5, 0.5); /* a sixth, within the fifth, on one of its faces */
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_MESH, ANY, "overlap");
    begin(4);
    add_tet_box(1);
    element(0, 1, 2, 3);
    expect_refused(FSI_MESH_CLOSED, FSI_ERROR_MESH, 5, "tetrahedron 5 is flat");
    expect_refused(FSI_MESH_OPEN, FSI_ERROR_ARGUMENT, -1, "tetrahedra bound a solid");
}

/* ---- queries against brute force ------------------------------------------------------------------------------ */

/* Closest point of a triangle by another road: the plane's foot if it is inside, else the closest of three edges. */
static double slow_distance(const fsi_mesh *m, int f, fsi_vec3 x)
{
    const int *c = m->faces + m->corners * f;
    double best = 1e300, n2 = 0, l[3] = { 0, 0, 0 };
    fsi_vec3 p[3], n = v3(0, 0, 0);
    int k, corners = m->corners;
    for (k = 0; k < corners; k++) p[k] = m->vertices[c[k]];
    if (corners == 3) {
        n = fsi_v3_cross(fsi_v3_sub(p[1], p[0]), fsi_v3_sub(p[2], p[0]));
        n2 = (double)fsi_v3_norm2(n);
        for (k = 0; k < 3; k++)
            l[k] = (double)fsi_v3_dot(n, fsi_v3_cross(fsi_v3_sub(p[(k + 1) % 3], p[k]), fsi_v3_sub(x, p[k])));
        if (l[0] >= 0 && l[1] >= 0 && l[2] >= 0) return fabs((double)fsi_v3_dot(n, fsi_v3_sub(x, p[0]))) / sqrt(n2);
    }
    for (k = 0; k < (corners == 3 ? 3 : 1); k++) {
        fsi_vec3 e = fsi_v3_sub(p[(k + 1) % 3], p[k]), q = fsi_v3_sub(x, p[k]);
        fsi_real t;
        if (corners == 2) e = fsi_v3_sub(p[1], p[0]);
        t = fsi_clamp(fsi_v3_dot(e, q) / fsi_v3_norm2(e), 0, 1);
        best = fmin(best, (double)fsi_v3_norm(fsi_v3_madd(q, -t, e)));
    }
    return best;
}

static int boxes_meet(fsi_box3 b, const fsi_vec3 *x, const fsi_vec3 *y, const int *c)
{
    fsi_box3 f = fsi_box3_empty();
    int k;
    for (k = 0; k < 3; k++) f = fsi_box3_grow(fsi_box3_grow(f, x[c[k]]), y[c[k]]);
    return fsi_box3_overlap(b, f);
}

static void check_queries(const fsi_mesh *m, int n)
{
    static int found[MOST_ELEMENTS];
    double scale = (double)fsi_v3_norm(fsi_v3_sub(m->box.hi, m->box.lo));
    fsi_vec3 middle = fsi_v3_scale(fsi_v3_add(m->box.hi, m->box.lo), (fsi_real)0.5);
    int i, f, k;
    for (i = 0; i < n; i++) {
        fsi_vec3 x = fsi_v3_add(middle, random_point(scale * (i % 7 == 0 ? 30 : 0.6))),
                 y = fsi_v3_add(middle, random_point(scale));
        double best = 1e300, reach = uniform(0, 0.2) * scale;
        fsi_mesh_hit h = fsi_mesh_closest(m, x, FSI_REAL_MAX, -1), s = fsi_mesh_closest(m, x, (fsi_real)reach, -1), r;
        fsi_box3 b = fsi_box3_grow(fsi_box3_grow(fsi_box3_empty(), x), fsi_v3_add(x, random_point(0.1 * scale)));
        int here = 0, swept = 0;
        for (f = 0; f < m->face_count; f++) best = fmin(best, slow_distance(m, f, x));
        CHECK_NEAR(h.t, best, TOL(1e-12, 1e-6) * (scale + best));
        CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(h.point, x)), best, TOL(1e-12, 2e-6) * (scale + best));
        CHECK((s.face >= 0) == (best <= reach) || fabs(best - reach) < 1e-5 * scale);
        CHECK_NEAR(fsi_v3_norm(h.normal), 1, TOL(1e-12, 1e-5));
        CHECK_NEAR(h.bary[0] + h.bary[1] + h.bary[2], 1, TOL(1e-12, 1e-5));
        CHECK_NEAR(fsi_mesh_closest_on_face(m, h.face, x).t, h.t, 0);
        /* ray: no face is met earlier, and the one named is met */
        r = fsi_mesh_ray(m, x, fsi_v3_sub(y, x), 1);
        for (f = 0, best = 2; f < m->face_count; f++) {
            const int *c = m->faces + 3 * f;
            fsi_vec3 a = m->vertices[c[0]], d = fsi_v3_sub(y, x), e = fsi_v3_sub(m->vertices[c[1]], a),
                     g = fsi_v3_sub(m->vertices[c[2]], a), nn = fsi_v3_cross(e, g);
            double t = (double)fsi_v3_dot(nn, fsi_v3_sub(a, x)) / (double)fsi_v3_dot(nn, d);
            if (t >= 0 && t <= 1 && slow_distance(m, f, fsi_v3_madd(x, (fsi_real)t, d)) < TOL(1e-12, 1e-6) * scale)
                best = fmin(best, t);
        }
        if (i % 7 && (r.face >= 0 || best < TOL(1 - 1e-9, 1 - 1e-5)))
            CHECK_NEAR(r.face < 0 ? 2 : (double)r.t, best, TOL(1e-9, 1e-4));
        if (r.face >= 0) CHECK_NEAR(slow_distance(m, r.face, r.point), 0, TOL(1e-11, 1e-5) * scale);
        /* boxes: the same faces, ascending */
        for (f = 0; f < m->face_count; f++) {
            here += boxes_meet(b, m->vertices, m->vertices, m->faces + 3 * f);
            swept += boxes_meet(b, m->vertices, m->previous, m->faces + 3 * f);
        }
        CHECK(fsi_mesh_query_box(m, b, found, MOST_ELEMENTS) == here);
        for (k = 0; k < here; k++)
            CHECK(boxes_meet(b, m->vertices, m->vertices, m->faces + 3 * found[k]) &&
                  (k == 0 || found[k] > found[k - 1]));
        CHECK(fsi_mesh_query_swept_box(m, b, found, MOST_ELEMENTS) == swept);
        for (k = 0; k < swept; k++)
            CHECK(boxes_meet(b, m->vertices, m->previous, m->faces + 3 * found[k]) &&
                  (k == 0 || found[k] > found[k - 1]));
        found[1] = -7;
        CHECK(fsi_mesh_query_box(m, b, found, 1) == here && found[1] == -7 &&
              fsi_mesh_query_box(m, b, NULL, 0) == here);
    }
}

static fsi_quat random_turn(double most)
{
    fsi_vec3 axis = random_point(1);
    return fsi_quat_from_axis_angle(axis, (fsi_real)uniform(-most, most));
}

static void test_queries_agree_with_brute_force(void)
{
    fsi_mesh *m;
    begin(3);
    add_tube(1, 0.4, 60, 10);
    m = make(FSI_MESH_CLOSED);
    if (!m) return;
    check_queries(m, 150);
    CHECK(fsi_mesh_move_rigid(m, v3(0.3, -0.2, 0.1), random_turn(0.4)) == FSI_OK && m->moving);
    check_queries(m, 100);
    CHECK(fsi_mesh_move_rigid(m, v3(5, 0, 0), random_turn(3)) == FSI_OK);
    check_queries(m, 100);
    fsi_mesh_destroy(m);
    cube();
    m = make(FSI_MESH_CLOSED);
    check_queries(m, 300);
    fsi_mesh_destroy(m);
}
/* Where the foot of a point runs along the edge of a right angle to its end, the tests for the end, the edges and the
   face differ by rounding only: whichever holds, the distance is that to the end. */
static void test_closest_beyond_a_right_angle(void)
{
    int i, trial;
    for (trial = 0; trial < 400; trial++) {
        fsi_vec3 along = fsi_v3_unit(random_point(1)), across = fsi_v3_unit(fsi_v3_cross(along, random_point(1)));
        fsi_vec3 a = random_point(3), b, c;
        fsi_mesh *m;
        begin(3);
        b = fsi_v3_madd(a, (fsi_real)uniform(0.01, 1), along);
        c = fsi_v3_madd(b, (fsi_real)uniform(0.01, 1), across);
        for (i = 0; i < 3; i++) soup_x[soup_nx++] = i == trial % 3 ? a : i == (trial + 1) % 3 ? b : c;
        triangle(0, 1, 2);
        m = make(FSI_MESH_TWO_SIDED);
        if (!m) return;
        for (i = 1; i < 10; i++) {
            double far = uniform(0, 30);
            fsi_mesh_hit h = fsi_mesh_closest(m, fsi_v3_madd(c, (fsi_real)far, along), FSI_REAL_MAX, -1);
            CHECK_NEAR(h.t, far, TOL(1e-12, 1e-5) * (1 + far));
            CHECK(h.bary[0] >= 0 && h.bary[1] >= 0 && h.bary[2] >= 0);
        }
        fsi_mesh_destroy(m);
    }
}

static void test_closest_in_one_group(void)
{
    fsi_mesh *m;
    int a;
    cube();
    add_box(3, 0, 0, 4, 1, 1);
    m = make(FSI_MESH_CLOSED);
    if (!m) return;
    CHECK(m->group_count == 2);
    a = m->face_group[fsi_mesh_closest(m, v3(0.5, 0.5, 0.9), 1, -1).face];
    CHECK_NEAR(fsi_mesh_closest(m, v3(0.5, 0.5, 0.9), 10, a).t, 0.1, 1e-6);
    CHECK_NEAR(fsi_mesh_closest(m, v3(0.5, 0.5, 0.9), 10, 1 - a).t, 2.5, 1e-6);
    CHECK(fsi_mesh_closest(m, v3(0.5, 0.5, 0.9), 2, 1 - a).face == -1);
    fsi_mesh_destroy(m);
}
/* From a face the closest point of its side is found: outside a ball, from a face that looks there, that of the whole
   surface; under a thin plate, from its upper face, that of the upper face. */
static void test_descent_stays_on_its_side(void)
{
    fsi_mesh *m;
    fsi_mesh_hit h;
    int k, faces = 0;
    begin(3);
    add_sphere(0, 0, 0, 1, 24, 12);
    m = make(FSI_MESH_CLOSED);
    if (!m) return;
    for (k = 0; k < 300; k++) {
        const fsi_vec3 x = random_point(2);
        const int face = k % m->face_count;
        if (fsi_v3_dot(fsi_v3_sub(x, m->vertices[m->faces[3 * face]]), m->face_normals[face]) <= 0) continue;
        CHECK_NEAR(fsi__mesh_descend(m, face, x).t, fsi_mesh_closest(m, x, FSI_REAL_MAX, -1).t, TOL(1e-12, 1e-5));
        faces++;
    }
    CHECK(faces > 50);
    fsi_mesh_destroy(m);
    begin(3);
    add_box(0, 0, 0, 1, 1, 0.01);
    m = make(FSI_MESH_CLOSED);
    if (!m) return;
    h = fsi__mesh_descend(m, fsi_mesh_closest(m, v3(0.3, 0.4, 0.2), 1, -1).face, v3(0.6, 0.3, -0.05));
    CHECK(h.side < 0);
    CHECK_NEAR(h.t, 0.06, 1e-6);
    CHECK_NEAR(h.normal.z, 1, 1e-6);
    h = fsi__mesh_descend(m, h.face, v3(1.2, 0.3, -0.05)); /* beyond its rim one comes round */
    CHECK(h.side > 0);
    fsi_mesh_destroy(m);
    begin(2);
    vertex(0, 0, 0), vertex(1, 0, 0), vertex(1, 1, 0), vertex(0, 1, 0);
    for (k = 0; k < 4; k++) element(k, (k + 1) % 4, 0, 0);
    m = make(FSI_MESH_CLOSED);
    if (!m) return;
    h = fsi__mesh_descend(m, fsi_mesh_closest(m, v3(0.1, -0.1, 0), 1, -1).face, v3(1.3, 0.9, 0));
    CHECK(h.side > 0);
    CHECK_NEAR(h.t, 0.3, 1e-6);
    fsi_mesh_destroy(m);
}

static void test_sign_is_the_winding_number(void)
{
    const int n = TEST_SLOWED > 1 ? 3000 : 30000;
    fsi_mesh *m;
    begin(3);
    add_tube(1, 0.4, 90, 12);
    m = make(FSI_MESH_CLOSED);
    CHECK(m && wrong_signs(m, n / 5) == 0);
    fsi_mesh_destroy(m);
    cube();
    m = make(FSI_MESH_CLOSED);
    CHECK(m && wrong_signs(m, n) == 0);
    fsi_mesh_destroy(m);
    begin(3); /* a spike: needle triangles, sharp edges */
    vertex(0, 0, 0), vertex(0.01, 0, 0), vertex(0, 0.01, 0), vertex(0.003, 0.003, 5);
    triangle(0, 2, 1), triangle(0, 1, 3), triangle(1, 2, 3), triangle(2, 0, 3);
    m = make(FSI_MESH_CLOSED);
    CHECK(m && wrong_signs(m, n) == 0);
    fsi_mesh_destroy(m);
}

/* ---- mass ----------------------------------------------------------------------------------------------------- */

static void check_mass(fsi_mesh_kind kind, double thickness, double want_volume, fsi_vec3 center, double ix, double iy,
                       double iz, double tolerance)
{
    fsi_mass_properties p;
    fsi_mesh *m = make(kind);
    if (!m) return;
    memset(&p, 0, sizeof p);
    CHECK(fsi_mesh_mass(m, 3, (fsi_real)thickness, &p) == FSI_OK);
    CHECK_NEAR(p.volume, want_volume, tolerance * want_volume);
    CHECK_NEAR(p.mass, 3 * want_volume, 3 * tolerance * want_volume);
    CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(p.center, center)), 0, tolerance * 10);
    CHECK_NEAR(p.inertia.m[0], 3 * ix, 3 * tolerance * ix);
    CHECK_NEAR(p.inertia.m[4], 3 * iy, 3 * tolerance * iy);
    CHECK_NEAR(p.inertia.m[8], 3 * iz, 3 * tolerance * iz);
    CHECK_NEAR(p.inertia.m[1], 0, 3 * tolerance * ix);
    CHECK_NEAR(p.inertia.m[5], p.inertia.m[7], 1e-6 * ix);
    fsi_mesh_destroy(m);
}
static void test_mass_of_box_sphere_torus_and_sheet(void)
{
    double v = 4 * FSI_PI / 3, i = 0.4 * v;
    begin(3);
    add_box(10, 20, 30, 11, 22, 33);
    check_mass(FSI_MESH_CLOSED, 1, 6, v3(10.5, 21, 31.5), 6 * (4 + 9) / 12.0, 6 * (1 + 9) / 12.0, 6 * (1 + 4) / 12.0,
               TOL(1e-12, 2e-6));
    begin(3);
    add_sphere(5, 0, 0, 1, 160, 80);
    check_mass(FSI_MESH_CLOSED, 1, v, v3(5, 0, 0), i, i, i, 1.2e-3); /* inscribed: second order in the edge */
    begin(3);
    add_tube(0, 0.5, 200, 60); /* R = 2, r = 1/2: V = 2 pi^2 R r^2 */
    v = 2 * FSI_PI * FSI_PI * 2 * 0.25;
    check_mass(FSI_MESH_CLOSED, 1, v, v3(0, 0, 0), v * (4 / 2.0 + 5 * 0.25 / 8), v * (4 / 2.0 + 5 * 0.25 / 8),
               v * (4 + 0.75 * 0.25), 4e-3);
    begin(3);
    add_sheet(5);
    check_mass(FSI_MESH_TWO_SIDED, 0.01, 0.01, v3(0.5, 0.5, 0), 0.01 / 12, 0.01 / 12, 0.01 / 6, TOL(1e-12, 1e-5));
}

/* Cutting at T-junctions within the welding distance leaves faces without area, along which solids have no angle. */
static void test_needles_that_are_cut_leave_no_face_without_area(void)
{
    static const double x[5][3] = { { 0, 0, 0 }, { 1, 3908, 2 }, { 0, 5, 0 }, { 0, 2, 0 }, { 1, 1, 0 } };
    static const int e[9] = { 0, 1, 3, 3, 1, 2, 2, 4, 3 };
    fsi_vec3 vertices[5];
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *m;
    int kind, f, k;
    for (k = 0; k < 5; k++) vertices[k] = v3(x[k][0], x[k][1], x[k][2]);
    d.vertices = vertices;
    d.vertex_count = 5;
    d.elements = e;
    d.element_count = 3;
    for (kind = FSI_MESH_CLOSED; kind <= FSI_MESH_TWO_SIDED; kind++) {
        d.kind = (fsi_mesh_kind)kind;
        if (fsi_mesh_create(&m, &d) != FSI_OK) { CHECK(kind == FSI_MESH_CLOSED && !m); continue; }
        for (f = 0; f < m->face_count; f++) {
            const int *c = m->faces + 3 * f;
            fsi_vec3 u = fsi_v3_sub(m->vertices[c[1]], m->vertices[c[0]]),
                     v = fsi_v3_sub(m->vertices[c[2]], m->vertices[c[0]]);
            CHECK(fsi_v3_norm(fsi_v3_cross(u, v)) > 0);
            CHECK_NEAR(fsi_v3_norm(m->face_normals[f]), 1, 1e-6);
        }
        fsi_mesh_destroy(m);
    }
}

/* Random soups on a small lattice, where many faces touch in an edge or corner and have to be turned. */
static void test_faces_that_are_joined_are_of_one_group(void)
{
    fsi_vec3 x[8];
    int e[36], i, f, k, made = 0, apart = 0, one_way = 0;
    fsi_mesh *m;
    for (i = 0; i < 3000; i++) {
        fsi_mesh_desc d = fsi_mesh_default_desc();
        d.corners = 2 + i % 2;
        d.kind = i % 4 < 2 ? FSI_MESH_OPEN : FSI_MESH_TWO_SIDED;
        for (k = 0; k < 8; k++) x[k] = v3(floor(uniform(0, 4)), floor(uniform(0, 4)), i % 2 ? floor(uniform(0, 3)) : 0);
        for (k = 0; k < 36; k++) e[k] = (int)uniform(0, 7.999);
        d.vertices = x;
        d.vertex_count = 8;
        d.elements = e;
        d.element_count = 12;
        if (fsi_mesh_create(&m, &d) != FSI_OK) continue;
        made++;
        for (f = 0; f < m->face_count; f++) for (k = 0; k < m->corners; k++) {
            int g = m->face_neighbor[m->corners * f + k], j, back = 0;
            if (g < 0) continue;
            apart += m->face_group[g] != m->face_group[f];
            for (j = 0; j < m->corners; j++) back |= m->face_neighbor[m->corners * g + j] == f;
            one_way += !back;
        }
        fsi_mesh_destroy(m);
    }
    CHECK(made > 500 && apart == 0 && one_way == 0);
    if (apart + one_way > 0) printf("  %d made, %d pairs in two groups, %d joined one way\n", made, apart, one_way);
}

/* n/|n| was n + (1/|n| - 1) n, which loses as many digits as |n| has, and all at 1e16. */
static void test_normals_are_unit_at_any_size(void)
{
    static const double sizes[6] = { 1e-9, 1e-3, 1, 300, 1e6, TOL(1e30, 1e8) };
    int i, f;
    for (i = 0; i < 6; i++) {
        fsi_mesh *m;
        begin(3);
        add_sphere(0, 0, 0, sizes[i], 12, 7);
        if ((m = make(FSI_MESH_CLOSED)) == NULL) continue;
        for (f = 0; f < m->face_count; f++) CHECK_NEAR(fsi_v3_norm(m->face_normals[f]), 1, TOL(1e-15, 3e-7));
        fsi_mesh_destroy(m);
    }
}

/* ---- motion --------------------------------------------------------------------------------------------------- */

static void test_move_and_set(void)
{
    static fsi_vec3 x[MOST_VERTICES];
    fsi_mesh *m;
    long long allocs;
    int i;
    begin(3);
    add_sphere(0, 0, 0, 1, 20, 10);
    m = make(FSI_MESH_CLOSED);
    if (!m) return;
    allocs = soup_context.allocs;
    for (i = 0; i < soup_nx; i++) x[i] = fsi_v3_scale(soup_x[i], 2);
    CHECK(!m->moving);
    CHECK(fsi_mesh_move(m, x, soup_nx) == FSI_OK && m->moving);
    CHECK_NEAR(fsi_mesh_signed_distance(m, v3(0, 0, 3)), 1, 1e-6);
    CHECK_NEAR(m->previous[3].x, soup_x[m->vertex_source[3]].x, 0);
    CHECK_NEAR(m->box.hi.z, 2, 1e-6);
    x[4].z = (fsi_real)test_nan();
    CHECK(fsi_mesh_move(m, x, soup_nx) == FSI_ERROR_NAN && soup_context.error.element == 4);
    CHECK_NEAR(fsi_mesh_signed_distance(m, v3(0, 0, 3)), 1, 1e-6);
    x[4].z = 2 * soup_x[4].z;
    CHECK(fsi_mesh_move(m, x, soup_nx) == FSI_OK && !m->moving);
    CHECK(fsi_mesh_set(m, soup_x, soup_nx) == FSI_OK && !m->moving);
    CHECK_NEAR(m->box.hi.z, 1, 1e-6);
    CHECK(fsi_mesh_move_rigid(m, v3(1, 0, 0), fsi_quat_identity()) == FSI_OK && m->moving);
    CHECK_NEAR(fsi_mesh_signed_distance(m, v3(1, 0, 0)), -cos(FSI_PI / 20), 0.03);
    CHECK_NEAR(m->box.lo.x, -1, 1e-6); /* where it was belongs to the box */
    CHECK(fsi_mesh_move(m, x, soup_nx - 1) == FSI_ERROR_ARGUMENT &&
          fsi_mesh_move(m, NULL, soup_nx) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_mesh_move_rigid(m, v3(0, 0, 0), fsi_quat_make(0, 0, 0, 0)) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_mesh_move_rigid(m, v3(test_nan(), 0, 0), fsi_quat_identity()) == FSI_ERROR_NAN);
    CHECK(soup_context.allocs == allocs);
    CHECK(wrong_signs(m, 500) == 0);
    fsi_mesh_destroy(m);
}

/* Everything that a move changes, in 3D. */
static uint64_t mesh_state(const fsi_mesh *m)
{
    const size_t v = (size_t)m->vertex_count, f = (size_t)m->face_count, e = (size_t)m->edge_count,
                 real = sizeof(fsi_vec3);
    uint64_t h = fsi_hash(m->vertices, v * real, fsi_hash(m->previous, v * real, (uint64_t)m->moving));
    h = fsi_hash(m->face_normals, f * real,
                 fsi_hash(m->vertex_normals, v * real, fsi_hash(m->edge_normals, e * real, h)));
    return fsi_hash(&m->box, sizeof m->box, h);
}

static fsi_pose random_pose(void)
{
    fsi_pose p;
    p.position = random_point(1);
    p.orientation = random_turn(FSI_PI);
    return p;
}

static void test_set_rigid_takes_a_mesh_back_to_two_poses_to_the_bit(void)
{
    fsi_pose a, b, bad;
    fsi_mesh *m;
    uint64_t then;
    long long allocs;
    int k;
    begin(3);
    add_sphere(0, 0, 0, 1, 20, 10);
    m = make(FSI_MESH_CLOSED);
    if (!m) return;
    allocs = soup_context.allocs;
    for (k = 0; k < 10; k++) {
        a = random_pose();
        b = k % 3 == 0 ? a : random_pose();
        CHECK(fsi_mesh_move_rigid(m, a.position, a.orientation) == FSI_OK);
        CHECK(fsi_mesh_move_rigid(m, b.position, b.orientation) == FSI_OK);
        then = mesh_state(m);
        fsi_mesh_set(m, soup_x, soup_nx);
        fsi_mesh_move_rigid(m, random_point(3), random_turn(1));
        CHECK(mesh_state(m) != then);
        CHECK(fsi_mesh_set_rigid(m, a, b) == FSI_OK && mesh_state(m) == then && m->moving == (k % 3 != 0));
        CHECK(wrong_signs(m, 50) == 0);
    }
    then = mesh_state(m);
    bad = a;
    bad.orientation.w += 1;
    bad.orientation.x += 1;
    CHECK(fsi_mesh_set_rigid(m, bad, b) == FSI_ERROR_ARGUMENT && fsi_mesh_set_rigid(m, a, bad) == FSI_ERROR_ARGUMENT);
    bad = a;
    bad.position.y = (fsi_real)test_nan();
    CHECK(fsi_mesh_set_rigid(m, bad, b) == FSI_ERROR_NAN && fsi_mesh_set_rigid(m, a, bad) == FSI_ERROR_NAN);
    CHECK(strcmp(soup_context.error.function, "fsi_mesh_set_rigid") == 0);
    CHECK(fsi_mesh_set_rigid(NULL, a, b) == FSI_ERROR_COOKIE && mesh_state(m) == then && soup_context.allocs == allocs);
    fsi_mesh_destroy(m);
}

/* ---- reduced-order collision ---------------------------------------------------------------------------------- */

static fsi_vec3 mix(fsi_vec3 a, fsi_vec3 b, double t)
{
    return fsi_v3_madd(fsi_v3_scale(a, (fsi_real)(1 - t)), (fsi_real)t, b);
}

/* Signed height of the moving point over the moving face, over the face's size, and its smallest weight, at time t. */
static double height(const fsi_mesh *m, int f, fsi_vec3 x0, fsi_vec3 x1, double t, double *least)
{
    const int *c = m->faces + 3 * f;
    fsi_vec3 p[3], n, x = mix(x0, x1, t);
    int k;
    for (k = 0; k < 3; k++) p[k] = mix(m->previous[c[k]], m->vertices[c[k]], t);
    n = fsi_v3_cross(fsi_v3_sub(p[1], p[0]), fsi_v3_sub(p[2], p[0]));
    for (k = 0, *least = 1; k < 3; k++)
        *least =
            fmin(*least, (double)fsi_v3_dot(n, fsi_v3_cross(fsi_v3_sub(p[(k + 1) % 3], p[k]), fsi_v3_sub(x, p[k]))) /
                             (double)fsi_v3_norm2(n));
    return (double)fsi_v3_dot(fsi_v3_sub(x, p[0]), n) / (double)fsi_v3_norm(n);
}

/* Single faces on random rigid paths. A hit must be one: on the face, in front just before, behind just after. A miss
   must be one: no step of 500 goes from front to back well within the face. */
static void test_sweep_of_one_face_misses_nothing(void)
{
    int round, i, hits = 0, misses = 0;
    fsi_mesh *m;
    begin(3);
    vertex(-1, -1, 0), vertex(1, -1, 0), vertex(0, 1, 0);
    triangle(0, 1, 2);
    m = make(FSI_MESH_TWO_SIDED);
    if (!m) return;
    for (round = 0; round < 4000; round++) {
        fsi_vec3 x0 = random_point(0.6), x1 = fsi_v3_add(x0, random_point(0.8));
        fsi_mesh_hit h;
        double least, before, after, now;
        int side = round % 2 ? 1 : -1;
        fsi_mesh_move_rigid(m, random_point(0.2), random_turn(FSI_PI));
        fsi_mesh_move_rigid(m, random_point(0.3), random_turn(FSI_PI));
        if (round % 3) { /* the usual case: less than 60 degrees */
            fsi_mesh_set(m, soup_x, 3);
            fsi_mesh_move_rigid(m, random_point(0.3), random_turn(1));
        }
        h = fsi_mesh_sweep_face(m, 0, x0, x1, side);
        if (h.face >= 0) {
            double t = (double)h.t, e = TOL(1e-5, 3e-3);
            hits++;
            now = height(m, 0, x0, x1, t, &least);
            CHECK_NEAR(now, 0, TOL(1e-9, 1e-3));
            CHECK(least >= TOL(-1.01e-4, -1e-2) && h.side == side);
            before = side * height(m, 0, x0, x1, t - e, &least), after = side * height(m, 0, x0, x1, t + e, &least);
            CHECK(before > after);
            continue;
        }
        misses++;
        for (i = 0, before = -1; i <= 500; i++, before = after) {
            after = side * height(m, 0, x0, x1, i / 500.0, &least);
            if (before > 1e-4 && after < -1e-4) CHECK(least < TOL(0.02, 0.02));
        }
    }
    CHECK(hits > 300 && misses > 300);
    fsi_mesh_destroy(m);
}

/* Who starts outside a closed mesh and ends inside it must have been met on the way, however it turned; and who is met
   last from the back ends outside. Half of the points aim at edges and corners. */
static void test_sweep_of_closed_mesh_has_no_cracks(void)
{
    int round, entered = 0, missed = 0, stayed = 0, shape;
    for (shape = 0; shape < 2; shape++) {
        fsi_mesh *m, *start;
        if (shape == 0) cube();
        else { begin(3); add_sphere(0.5, 0.5, 0.5, 0.7, 8, 5); }
        m = make(FSI_MESH_CLOSED);
        start = make(FSI_MESH_CLOSED);
        if (!m || !start) return;
        for (round = 0; round < 12000; round++) {
            fsi_vec3 x0, x1;
            fsi_quat q = random_turn(1);
            double s0, s1;
            if (round % 20 == 0) { /* another motion for twenty points */
                fsi_vec3 p = random_point(0.3);
                fsi_mesh_set(m, soup_x, soup_nx);
                fsi_mesh_move_rigid(m, p, q);
            }
            x0 = fsi_v3_add(v3(0.5, 0.5, 0.5), random_point(1));
            x1 = fsi_v3_add(v3(0.5, 0.5, 0.5), random_point(0.6));
            if (round % 2) { /* in through an edge or corner, as it is half way */
                const int *c = m->faces + 3 * (int)uniform(0, m->face_count);
                fsi_vec3 a = mix(m->previous[c[0]], m->vertices[c[0]], 0.5),
                         b = mix(m->previous[c[1]], m->vertices[c[1]], 0.5), e;
                e = fsi_v3_add(mix(a, b, round % 4 == 1 ? 0 : uniform(0, 1)), random_point(pow(10, -uniform(3, 8))));
                x1 = fsi_v3_add(mix(m->box.lo, m->box.hi, 0.5), random_point(0.2));
                x0 = fsi_v3_madd(x1, 2, fsi_v3_sub(e, x1));
            }
            s0 = (double)fsi_mesh_signed_distance(start, x0), s1 = (double)fsi_mesh_signed_distance(m, x1);
            if (s0 < TOL(1e-9, 1e-5) || fabs(s1) < TOL(1e-9, 1e-5)) continue;
            if (s1 > 0) { stayed++; continue; }
            entered++;
            missed += fsi_mesh_sweep(m, x0, x1, 1).face < 0;
        }
        fsi_mesh_destroy(m);
        fsi_mesh_destroy(start);
    }
    CHECK(entered > 5000 && stayed > 1000);
    CHECK(missed == 0);
}

/* A point that is put on the end face whenever it is met stays out, step after step, though it starts on faces, edges
   and corners and is driven inward, while the mesh turns. */
static void test_point_that_is_put_back_never_gets_in(void)
{
    static fsi_vec3 x[300];
    int shape, step, i, met = 0;
    double deepest = 0;
    for (shape = 0; shape < 3; shape++) {
        fsi_mesh *m;
        if (shape == 0) cube();
        else { begin(3); add_tube(shape == 1, 0.4, shape == 1 ? 60 : 30, 8); }
        m = make(FSI_MESH_CLOSED);
        if (!m) return;
        for (i = 0; i < 300; i++) {
            const int *c = m->faces + 3 * (i % m->face_count);
            double t = i % 3 == 0 ? 0 : uniform(0, 1);
            x[i] = mix(mix(m->vertices[c[0]], m->vertices[c[1]], t), m->vertices[c[2]], i % 3 == 2 ? uniform(0, 1) : 0);
        }
        for (step = 0; step < 60; step++) {
            fsi_vec3 p = fsi_v3_scale(v3(sin(0.3 * step), cos(0.2 * step), step % 5 * 0.3), (fsi_real)0.2);
            fsi_mesh_move_rigid(m, p, fsi_quat_from_axis_angle(v3(1, 2, 3), (fsi_real)(0.2 * step)));
            for (i = 0; i < 300; i++) {
                fsi_vec3 to = fsi_v3_add(x[i], random_point(i % 4 ? 0.1 : 0.0));
                fsi_mesh_hit h = fsi_mesh_sweep(m, x[i], to, 1);
                met += h.face >= 0;
                x[i] = h.face >= 0 ? h.point : to;
                deepest = fmax(deepest, -(double)fsi_mesh_signed_distance(m, x[i]));
            }
        }
        fsi_mesh_destroy(m);
    }
    CHECK(met > 5000);
    CHECK_NEAR(deepest, 0, TOL(1e-11, 1e-5));
}

/* The cases of the paper's printed algorithm that go wrong, and starts on the plane. */
static void test_sweep_cases(void)
{
    fsi_mesh *m;
    fsi_mesh_hit h;
    begin(3);
    vertex(-1, -1, 0), vertex(1, -1, 0), vertex(0, 1, 0);
    triangle(0, 1, 2);
    m = make(FSI_MESH_OPEN);
    if (!m) return;
    CHECK(fsi_mesh_sweep(m, v3(0, 0, 0.1), v3(0, 0, 0.3), 1).face < 0);  /* moving away: root -1/2 */
    CHECK(fsi_mesh_sweep(m, v3(0, 0, 0.3), v3(0, 0, 0.1), 1).face < 0);  /* not there yet: root 3/2 */
    CHECK(fsi_mesh_sweep(m, v3(0, 0, 0), v3(0, 0, 0.3), 1).face < 0);    /* on the plane, moving off */
    CHECK(fsi_mesh_sweep(m, v3(0, 0, 0), v3(0.3, 0, 0), 0).face < 0);    /* sliding in the plane */
    CHECK(fsi_mesh_sweep(m, v3(0, 0, -0.1), v3(0, 0, 0.1), 1).face < 0); /* from the back */
    CHECK(fsi_mesh_sweep(m, v3(0, 0, 0.1), v3(0, 0, -0.1), -1).face < 0);
    CHECK(fsi_mesh_sweep(m, v3(5, 0, 0.1), v3(5, 0, -0.1), 0).face < 0); /* beside it */
    h = fsi_mesh_sweep(m, v3(0, 0, -0.1), v3(0, 0, 0.3), 0);
    CHECK_NEAR(h.t, 0.25, 1e-6);
    CHECK(h.side == -1);
    h = fsi_mesh_sweep(m, v3(0, 0, 0), v3(0, 0, -0.3), 1);               /* on the plane, going in */
    CHECK(h.face == 0 && h.t <= 0 && h.side == 1);
    h = fsi_mesh_sweep(m, v3(0, 0, -TOL(1e-13, 1e-8)), v3(0, 0, -0.3), 1); /* within rounding of it */
    CHECK(h.face == 0 && h.t <= 0);
    h = fsi_mesh_sweep(m, v3(0.1, -0.2, 0.3), v3(0.1, -0.2, -0.1), 1);
    CHECK_NEAR(h.t, 0.75, 1e-6);
    CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(h.point, v3(0.1, -0.2, 0))), 0, 1e-6);
    CHECK_NEAR(h.normal.z, 1, 1e-6);
    CHECK(fsi_mesh_move_rigid(m, v3(0, 0, 1), fsi_quat_identity()) == FSI_OK); /* the wall comes to a resting point */
    h = fsi_mesh_sweep(m, v3(0, 0, 0.5), v3(0, 0, 0.5), 1);
    CHECK_NEAR(h.t, 0.5, 1e-6);
    CHECK_NEAR(h.point.z, 1, 1e-6); /* on the end face */
    fsi_mesh_set(m, soup_x, soup_nx);
    CHECK(fsi_mesh_move_rigid(m, v3(0, 0, 0), fsi_quat_from_axis_angle(v3(1, 0, 0), (fsi_real)(FSI_PI * 40 / 180))) ==
          FSI_OK);
    h = fsi_mesh_sweep(m, v3(0, 0.5, 0.2), v3(0, 0.5, 0.1), 1); /* one root before 0, one within the step */
    CHECK(h.face == 0 && (double)h.t > 0.3 && (double)h.t < 0.7);
    fsi_mesh_destroy(m);
}
static void test_sweep_2d(void)
{
    fsi_mesh *m, *start;
    int i, entered = 0;
    begin(2);
    add_ring(0, 0, 1, 5, 0);
    m = make(FSI_MESH_CLOSED);
    start = make(FSI_MESH_CLOSED);
    if (!m || !start) return;
    for (i = 0; i < 5000; i++) {
        fsi_vec3 x0 = random_point(2), x1 = random_point(1), shift = random_point(0.5);
        shift.z = 0;
        fsi_mesh_set(m, soup_x, soup_nx);
        fsi_mesh_move_rigid(m, shift, fsi_quat_from_axis_angle(v3(0, 0, 1), (fsi_real)uniform(-1, 1)));
        if ((double)fsi_mesh_signed_distance(start, x0) < 1e-5 || (double)fsi_mesh_signed_distance(m, x1) > -1e-5)
            continue;
        entered++;
        CHECK(fsi_mesh_sweep(m, x0, x1, 1).face >= 0);
    }
    CHECK(entered > 500);
    fsi_mesh_destroy(m);
    fsi_mesh_destroy(start);
}

/* ---- bad input and memory ------------------------------------------------------------------------------------- */

static void test_bad_arguments_are_refused(void)
{
    fsi_mesh *m = NULL, foreign;
    fsi_mesh_desc d;
    fsi_mass_properties p;
    fsi_vec3 nan3 = v3(test_nan(), 0, 0), o = v3(0, 0, 0);
    fsi_status want;
    int i;
    CHECK(fsi_mesh_create(&m, NULL) == FSI_ERROR_ARGUMENT && m == NULL);
    memset(&d, 0, sizeof d);
    CHECK(fsi_mesh_create(&m, &d) == FSI_ERROR_COOKIE && m == NULL);
    cube();
    for (i = 0; i < 9; i++) {
        d = soup_desc(FSI_MESH_CLOSED);
        if (i == 0) d.vertices = NULL;
        if (i == 1) d.elements = NULL;
        if (i == 2) d.corners = 5;
        if (i == 3) d.vertex_count = -1;
        if (i == 4) d.element_count = 0;
        if (i == 5) d.weld = (fsi_real)test_nan();
        if (i == 6) d.weld = -1;
        if (i == 7) d.max_hole = 100000;
        if (i == 8) d.kind = (fsi_mesh_kind)3;
        want = i == 5 ? FSI_ERROR_NAN : FSI_ERROR_ARGUMENT;
        CHECK(fsi_mesh_create(&m, &d) == want && m == NULL && soup_context.error.status == want);
    }
    d = soup_desc(FSI_MESH_CLOSED);
    CHECK(fsi_mesh_create(NULL, &d) == FSI_ERROR_ARGUMENT);
    fsi_mesh_destroy(NULL);
    memset(&foreign, 0, sizeof foreign);
    for (i = 0; i < 2; i++) {
        m = i ? &foreign : NULL;
        CHECK(fsi_mesh_move(m, soup_x, 8) == FSI_ERROR_COOKIE && fsi_mesh_set(m, soup_x, 8) == FSI_ERROR_COOKIE);
        CHECK(fsi_mesh_move_rigid(m, o, fsi_quat_identity()) == FSI_ERROR_COOKIE &&
              fsi_mesh_mass(m, 1, 1, &p) == FSI_ERROR_COOKIE);
        CHECK(fsi_mesh_closest(m, o, 1, -1).face == -1 && fsi_mesh_closest_on_face(m, 0, o).face == -1);
        CHECK(fsi_mesh_ray(m, o, v3(1, 0, 0), 1).face == -1 && fsi_mesh_sweep(m, o, o, 0).face == -1 &&
              fsi_mesh_sweep_face(m, 0, o, o, 0).face == -1);
        CHECK(fsi_mesh_winding_number(m, o) == 0 && fsi_mesh_signed_distance(m, o) == FSI_REAL_MAX);
        CHECK(fsi_mesh_query_box(m, fsi_box3_empty(), NULL, 0) == 0 &&
              fsi_mesh_query_swept_box(m, fsi_box3_empty(), NULL, 0) == 0);
    }
    m = make(FSI_MESH_CLOSED);
    if (!m) return;
    CHECK(fsi_mesh_closest(m, nan3, 1, -1).face == -1 && fsi_mesh_closest(m, o, (fsi_real)test_nan(), -1).face == -1 &&
          fsi_mesh_closest(m, o, -1, -1).face == -1);
    CHECK(fsi_mesh_closest(m, o, 1, 77).face == -1 && fsi_mesh_closest_on_face(m, 12, o).face == -1 &&
          fsi_mesh_closest_on_face(m, -1, o).face == -1);
    CHECK(fsi_mesh_ray(m, nan3, v3(1, 0, 0), 1).face == -1 && fsi_mesh_ray(m, v3(-1, 0.3, 0.3), o, 1).face == -1 &&
          fsi_mesh_ray(m, o, v3(1, 0, 0), (fsi_real)test_nan()).face == -1);
    CHECK(fsi_mesh_ray(m, v3(-1, 0.3, 0.3), v3(1, 0, 0), FSI_REAL_MAX).face >= 0);
    CHECK(fsi_mesh_sweep(m, nan3, o, 0).face == -1 && fsi_mesh_sweep(m, o, nan3, 0).face == -1 &&
          fsi_mesh_sweep_face(m, 99, o, o, 0).face == -1);
    CHECK(fsi_mesh_mass(m, 0, 1, &p) == FSI_ERROR_ARGUMENT &&
          fsi_mesh_mass(m, (fsi_real)test_nan(), 1, &p) == FSI_ERROR_ARGUMENT &&
          fsi_mesh_mass(m, 1, 1, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_mesh_query_box(m, fsi_box3_empty(), NULL, 0) == 0);
    fsi_mesh_destroy(m);
}

/* A mesh that needs every stage: nested, touching, with a hole, a T-junction, a flipped face and a duplicate. */
static void every_stage(void)
{
    int t, v;
    begin(3);
    add_box(0, 0, 0, 1, 1, 1);
    add_box(0.25, 0.25, 0.25, 0.75, 0.75, 0.75);
    add_box(1, 1, 0, 2, 2, 1);
    add_box(5, 0, 0, 6, 1, 1);
    for (t = 12; t < 24; t++) flip(t);
    flip(40);
    triangle(soup_e[0], soup_e[1], soup_e[2]);
    v = vertex(5.5, 0, 0);
    for (t = 36; t < 48; t++) { /* the first triangle of the last box that has its edge (5,0,0)-(6,0,0) */
        int *c = soup_e + 3 * t, k;
        for (k = 0; k < 3 && !(c[k] == 24 && c[(k + 1) % 3] == 25); k++) {}
        if (k < 3) { triangle(v, 25, c[(k + 2) % 3]); c[(k + 1) % 3] = v; break; }
    }
    drop(35);
}
static void test_every_failing_allocation_is_survived(void)
{
    int k, kind;
    for (kind = 0; kind < 3; kind++) {
        fsi_status s = FSI_ERROR_MEMORY;
        for (k = 1; s != FSI_OK && k < 200; k++) {
            fsi_mesh *m = NULL;
            fsi_mesh_desc d;
            if (kind == 0) every_stage();
            if (kind == 1) { begin(4); add_tet_box(2); }
            if (kind == 2) { begin(2); add_ring(0, 0, 1, 4, 0); add_ring(2, 0, 1, 4, 0); }
            test_fail_allocator(&soup_context, k);
            d = soup_desc(FSI_MESH_CLOSED);
            s = fsi_mesh_create(&m, &d);
            CHECK(s == FSI_OK || (s == FSI_ERROR_MEMORY && m == NULL && soup_context.error.status == s));
            fsi_mesh_destroy(m);
            CHECK(soup_context.bytes == 0 && test_live_bytes() == 0);
        }
        CHECK(s == FSI_OK && k > 10);
    }
    every_stage();
    expect_closed(3 - 0.125, 7);
}
static void test_same_input_gives_the_same_mesh(void)
{
    fsi_mesh *a, *b;
    begin(3);
    add_tube(1, 0.4, 60, 10);
    a = make(FSI_MESH_CLOSED), b = make(FSI_MESH_CLOSED);
    if (!a || !b) return;
    CHECK(memcmp(a->faces, b->faces, (size_t)a->face_count * 3 * sizeof(int)) == 0 &&
          memcmp(a->vertex_normals, b->vertex_normals, (size_t)a->vertex_count * sizeof(fsi_vec3)) == 0);
    fsi_mesh_destroy(a);
    fsi_mesh_destroy(b);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_good_cube_reports_nothing);
    RUN(test_one_triangle_hole_is_filled);
    RUN(test_large_hole_is_refused);
    RUN(test_flipped_face_is_turned);
    RUN(test_flipped_component_is_turned);
    RUN(test_inside_out_is_turned);
    RUN(test_duplicate_face_is_dropped);
    RUN(test_t_junction_is_split);
    RUN(test_edge_with_many_t_junctions_is_split);
    RUN(test_gap_of_a_millionth_is_welded);
    RUN(test_nested_shells);
    RUN(test_container_faces_inward);
    RUN(test_self_intersection_is_a_warning);
    RUN(test_nan_vertex_is_refused);
    RUN(test_vertex_off_by_a_million_is_refused);
    RUN(test_zero_area_face_is_dropped);
    RUN(test_nonmanifold_edge_is_refused_or_counted);
    RUN(test_open_sheet);
    RUN(test_touching_cubes_come_apart);
    RUN(test_touching_cubes_with_other_diagonals);
    RUN(test_unreferenced_vertices_are_left_out);
    RUN(test_index_out_of_range_is_refused);
    RUN(test_empty_is_refused);
    RUN(test_single_triangle);
    RUN(test_flat_shell_is_refused);
    RUN(test_millimetres_are_accepted);
    RUN(test_moebius_strip_has_no_outside);
    RUN(test_without_repair_nothing_is_mended);
    RUN(test_random_damage_is_repaired_or_refused);
    RUN(test_polygon_2d);
    RUN(test_tetrahedra_leave_their_boundary);
    RUN(test_queries_agree_with_brute_force);
    RUN(test_closest_beyond_a_right_angle);
    RUN(test_closest_in_one_group);
    RUN(test_descent_stays_on_its_side);
    RUN(test_sign_is_the_winding_number);
    RUN(test_mass_of_box_sphere_torus_and_sheet);
    RUN(test_needles_that_are_cut_leave_no_face_without_area);
    RUN(test_faces_that_are_joined_are_of_one_group);
    RUN(test_normals_are_unit_at_any_size);
    RUN(test_move_and_set);
    RUN(test_set_rigid_takes_a_mesh_back_to_two_poses_to_the_bit);
    RUN(test_sweep_of_one_face_misses_nothing);
    RUN(test_sweep_of_closed_mesh_has_no_cracks);
    RUN(test_point_that_is_put_back_never_gets_in);
    RUN(test_sweep_cases);
    RUN(test_sweep_2d);
    RUN(test_bad_arguments_are_refused);
    RUN(test_every_failing_allocation_is_survived);
    RUN(test_same_input_gives_the_same_mesh);
    return TEST_END();
}
