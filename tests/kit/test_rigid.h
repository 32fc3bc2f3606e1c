/* test_rigid.h - worlds, bodies and figures that the tests of fsi_rigid.h share.
   SPDX-License-Identifier: MIT */
#ifndef FSI_TEST_RIGID_H
#define FSI_TEST_RIGID_H

#include "test_sph.h"
#include "../../fsi_rigid.h"

/* The axis along which gravity acts. */
TEST_FN fsi_vec3 up(int dim) { return dim == 2 ? v3(0, 1, 0) : v3(0, 0, 1); }
TEST_FN double along(fsi_vec3 a, fsi_vec3 b) { return (double)fsi_v3_dot(a, b); }
TEST_FN double apart(fsi_vec3 a, fsi_vec3 b) { return (double)fsi_v3_norm(fsi_v3_sub(a, b)); }

/* Gravity g downwards; no clock, no sleep unless asked for. */
TEST_FN fsi_rigid_desc rigid_desc(int dim, double g)
{
    fsi_rigid_desc d = fsi_rigid_default_desc();
    d.dim = dim;
    d.gravity = fsi_v3_scale(up(dim), (fsi_real)-g);
    d.sleep_time = 0;
    return d;
}

TEST_FN fsi_rigid *make_world(const fsi_rigid_desc *d)
{
    fsi_rigid *w = NULL;
    CHECK(fsi_rigid_create(&w, d) == FSI_OK);
    return w;
}

TEST_FN int advance(fsi_rigid *w, double dt)
{
    fsi_status status = fsi_rigid_step(w, (fsi_real)dt);
    if (status != FSI_OK && w) printf("step: %s\n", fsi_rigid_error(w)->message);
    return CHECK(status == FSI_OK);
}

TEST_FN int advance_to(fsi_rigid *w, double time, double dt)
{
    while (w->time < time - dt / 2) if (!advance(w, dt)) return 0;
    return 1;
}

/* A body of one shape at x, turned by `turn`. */
TEST_FN int add_turned(fsi_rigid *w, fsi_rigid_shape shape_of, fsi_vec3 x, fsi_quat turn)
{
    fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
    int id = -1;
    b.shapes = &shape_of;
    b.shape_count = 1;
    b.pose.position = x;
    b.pose.orientation = turn;
    if (!CHECK(fsi_rigid_add_body(w, &b, &id) == FSI_OK)) printf("add: %s\n", fsi_rigid_error(w)->message);
    return id;
}

TEST_FN int add_shape(fsi_rigid *w, fsi_rigid_shape s, fsi_vec3 x) { return add_turned(w, s, x, fsi_quat_identity()); }

/* The same, of another kind. */
TEST_FN int add_kind(fsi_rigid *w, fsi_rigid_shape s, fsi_vec3 x, fsi_rigid_kind kind)
{
    fsi_rigid_body_desc b = fsi_rigid_default_body_desc();
    int id = -1;
    b.shapes = &s;
    b.shape_count = 1;
    b.pose.position = x;
    b.kind = kind;
    CHECK(fsi_rigid_add_body(w, &b, &id) == FSI_OK);
    return id;
}

/* by its sides */
TEST_FN fsi_rigid_shape box_shape(double x, double y, double z) { return fsi_rigid_box(v3(x / 2, y / 2, z / 2)); }
TEST_FN fsi_rigid_shape ball_shape(double radius) { return fsi_rigid_sphere((fsi_real)radius); }

TEST_FN int add_floor(fsi_rigid *w)
{
    int id = -9;
    CHECK(fsi_rigid_add_plane(w, up(w->desc.dim), 0, NULL, &id) == FSI_OK);
    return id;
}

TEST_FN double height_of(const fsi_rigid *w, int id) { return along(w->body[id]->pose.position, up(w->desc.dim)); }
TEST_FN double speed_of(const fsi_rigid *w, int id) { return (double)fsi_v3_norm(w->body[id]->velocity); }

/* I w of a body, about its centre. */
TEST_FN fsi_vec3 spin_of(const fsi_body *b)
{
    return fsi_m3_mul_v3(fsi_body_world_tensor(b->pose.orientation, b->inertia), b->angular_velocity);
}

TEST_FN double kinetic_energy_of(const fsi_body *b)
{
    return 0.5 * (double)b->mass * along(b->velocity, b->velocity) + 0.5 * along(b->angular_velocity, spin_of(b));
}

/* Momentum of all dynamic bodies, and their angular momentum about the origin. */
TEST_FN void momentum_of(const fsi_rigid *w, double *p, double *l)
{
    int i, k;
    for (k = 0; k < 3; k++) p[k] = l[k] = 0;
    for (i = 0; i < w->count; i++) {
        const fsi_body *b = w->body[i];
        double m, x[3], v[3], s[3];
        if (w->kind[i] != FSI_RIGID_DYNAMIC) continue;
        m = (double)b->mass;
        x[0] = (double)b->pose.position.x; x[1] = (double)b->pose.position.y; x[2] = (double)b->pose.position.z;
        v[0] = (double)b->velocity.x; v[1] = (double)b->velocity.y; v[2] = (double)b->velocity.z;
        s[0] = (double)spin_of(b).x; s[1] = (double)spin_of(b).y; s[2] = (double)spin_of(b).z;
        for (k = 0; k < 3; k++) {
            p[k] += m * v[k];
            l[k] += s[k] + m * (x[(k + 1) % 3] * v[(k + 2) % 3] - x[(k + 2) % 3] * v[(k + 1) % 3]);
        }
    }
}

TEST_FN double distance3(const double *a, const double *b)
{
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

/* How far a turn is from another one [rad]. */
TEST_FN double turn_between(fsi_quat a, fsi_quat b)
{
    return (double)fsi_v3_norm(fsi_quat_rotation_vector(fsi_quat_mul(a, fsi_quat_conj(b))));
}

/* A ring of radius `ring` and tube radius `tube` about the z axis; a rhomb with a notch in the plane. */
TEST_FN fsi_mesh *make_ring(double ring, double tube, int nu, int nw)
{
    shape_begin(3);
    shape_torus(ring, tube, nu, nw);
    return shape_make(FSI_MESH_CLOSED, 0);
}

/* A star of n points in the plane: not convex. */
TEST_FN fsi_mesh *make_star(double outer, double inner, int n)
{
    double xy[200];
    int k;
    for (k = 0; k < 2 * n; k++) {
        double a = -PI * k / n, r = k % 2 ? inner : outer;
        xy[2 * k] = r * cos(a);
        xy[2 * k + 1] = r * sin(a);
    }
    shape_begin(2);
    shape_polygon(xy, 2 * n);
    return shape_make(FSI_MESH_CLOSED, 0);
}

/* One link of a tree, of one shape that stands at x. */
TEST_FN fsi_rigid_link_desc make_link(const fsi_rigid_shape *s, fsi_vec3 x, int parent, fsi_rigid_joint_kind joint,
                                      fsi_vec3 point, fsi_vec3 axis)
{
    fsi_rigid_link_desc l = fsi_rigid_default_link_desc();
    l.body.shapes = s;
    l.body.shape_count = 1;
    l.body.pose.position = x;
    l.parent = parent;
    l.joint = joint;
    l.point = point;
    l.axis = axis;
    return l;
}

TEST_FN int add_tree(fsi_rigid *w, const fsi_rigid_link_desc *links, int count, int fixed)
{
    fsi_rigid_tree_desc t = fsi_rigid_default_tree_desc();
    int id = -1;
    t.links = links;
    t.link_count = count;
    t.fixed = fixed;
    if (!CHECK(fsi_rigid_add_tree(w, &t, &id) == FSI_OK)) printf("tree: %s\n", fsi_rigid_error(w)->message);
    return id;
}

/* How deep a corner of body a, a box with these half sides, stands in body b [m]; < 0: not in it. */
TEST_FN double corner_depth(const fsi_rigid *w, int a, int b, fsi_vec3 half)
{
    double deepest = -1;
    int k;
    for (k = 0; k < 8; k++) {
        const fsi_vec3 y = fsi_v3(k & 1 ? half.x : -half.x, k & 2 ? half.y : -half.y, k & 4 ? half.z : -half.z);
        const fsi_pose pose = fsi_rigid_pose(w, a);
        const fsi_vec3 x = fsi_v3_add(pose.position, fsi_quat_rotate(pose.orientation, y));
        deepest = fmax(deepest, b < 0 ? -(double)x.z : -(double)fsi_rigid_distance(w, b, x));
    }
    return deepest;
}

/* Overlap of n tiles of 200 x 200 x 40 mm that fall from 1 m, `gap` apart, shifted by up to `shift` and tilted by up to
   `tilt` degrees, in 2 s; 1 when two are out of order [m]. */
TEST_FN double overlap_of_tiles(int n, double gap, double hz, double shift, double tilt)
{
    const double room = gap + 0.4 * sin(tilt * PI / 180);
    fsi_rigid_desc d = rigid_desc(3, 9.81);
    fsi_rigid *w;
    double worst = 0;
    uint64_t random = 1;
    int k;
    d.sleep_time = (fsi_real)0.5;
    w = make_world(&d);
    add_floor(w);
    for (k = 0; k < n; k++) {
        const double x = (2 * test_random(&random) - 1) * shift, y = (2 * test_random(&random) - 1) * shift;
        const double a = (2 * test_random(&random) - 1) * tilt * PI / 180,
                     b = (2 * test_random(&random) - 1) * tilt * PI / 180;
        add_turned(w, box_shape(0.2, 0.2, 0.04), v3(x, y, 1.02 + k * (0.04 + room)),
                   fsi_quat_mul(fsi_quat_from_axis_angle(v3(1, 0, 0), (fsi_real)a),
                                fsi_quat_from_axis_angle(v3(0, 1, 0), (fsi_real)b)));
    }
    while (w->time < 2) {
        if (!advance(w, 1 / hz)) break;
        for (k = 0; k < n; k++) {
            worst = fmax(worst, corner_depth(w, k, k - 1, v3(0.1, 0.1, 0.02)));
            if (k > 0 && height_of(w, k) < height_of(w, k - 1)) worst = 1;
        }
    }
    fsi_rigid_destroy(w);
    return worst;
}

/* A tower of n cubes, each shifted by up to 1 % of the side and turned by up to 2 degrees, every second one `ratio`
   times as heavy: how far a cube has moved after its first second, in sides; sleep off. *depth: the deepest overlap
   from then on, in sides. */
TEST_FN double creep_of_tower(int n, double side, double ratio, double seconds, double hz, double *depth)
{
    fsi_rigid_desc d = rigid_desc(3, 9.81);
    fsi_rigid *w = make_world(&d);
    fsi_vec3 first[64];
    double creep = 0;
    uint64_t random = 3;
    int k;
    add_floor(w);
    for (k = 0; k < n; k++) {
        fsi_rigid_shape s = box_shape(side, side, side);
        const double x = (2 * test_random(&random) - 1) * 0.01 * side, y = (2 * test_random(&random) - 1) * 0.01 * side;
        if (k % 2) s.density *= (fsi_real)ratio;
        add_turned(w, s, v3(x, y, (k + 0.5) * side),
                   fsi_quat_from_axis_angle(v3(0, 0, 1), (fsi_real)((2 * test_random(&random) - 1) * 2 * PI / 180)));
    }
    *depth = 0;
    advance_to(w, 1, 1 / hz);
    for (k = 0; k < n; k++) first[k] = w->body[k]->pose.position;
    while (w->time < seconds && creep < 0.5 && advance(w, 1 / hz)) {
        *depth = fmax(*depth, w->stats.max_depth / side);
        for (k = 0; k < n; k++) creep = fmax(creep, apart(w->body[k]->pose.position, first[k]) / side);
    }
    fsi_rigid_destroy(w);
    return creep;
}

/* Half a circle of 15 stones of mean radius 1 m and thickness t, friction 0.7: how far its crown has sunk [m]. Below t
   = 0.1075 it cannot stand (Milankovitch 1907). */
TEST_FN double sunk_arch(double t, double seconds)
{
    static const int face[6][4] = {{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
    fsi_rigid_desc d = rigid_desc(3, 9.81);
    fsi_rigid *w;
    double crown;
    int k, i, f;
    d.friction = (fsi_real)0.7;
    w = make_world(&d);
    add_floor(w);
    for (k = 0; k < 15; k++) {
        fsi_mesh_desc md = fsi_mesh_default_desc();
        fsi_mesh *mesh = NULL;
        fsi_vec3 x[8];
        int corner[36];
        for (i = 0; i < 8; i++) {
            const double a = PI * (k + (i >> 1 & 1)) / 15, r = 1 + (i & 1 ? 0.5 : -0.5) * t;
            x[i] = v3(r * cos(a), i >> 2 ? 0.15 : -0.15, r * sin(a));
        }
        for (f = 0; f < 6; f++) for (i = 0; i < 6; i++) corner[6 * f + i] = face[f][i < 3 ? i : (i == 3 ? 0 : i - 2)];
        md.vertices = x;
        md.vertex_count = 8;
        md.elements = corner;
        md.element_count = 12;
        CHECK(fsi_mesh_create(&mesh, &md) == FSI_OK);
        add_shape(w, fsi_rigid_mesh(mesh), v3(0, 0, 0));
        fsi_mesh_destroy(mesh);
    }
    crown = height_of(w, 7);
    while (w->time < seconds && crown - height_of(w, 7) < 0.1 && advance(w, 1.0 / 60)) { }
    crown -= height_of(w, 7);
    fsi_rigid_destroy(w);
    return crown;
}

#endif
