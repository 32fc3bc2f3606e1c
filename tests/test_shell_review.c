/* test_shell_review.c - promises of fsi_shell.h that a review found broken: coupled bodies, second-order damping,
   crossings in the plane, ends of springs
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_shell.h"

enum { SIDE = 7 };

/* A sheet of SIDE x SIDE vertices, 1 m wide, at height z; or a box. */
static fsi_vec3 grid[SIDE * SIDE];
static int grid_triangle[6 * (SIDE - 1) * (SIDE - 1)];

static void make_grid(double z)
{
    int i, j, n = 0;
    for (j = 0; j < SIDE; j++)
        for (i = 0; i < SIDE; i++)
            grid[SIDE * j + i] =
                fsi_v3((fsi_real)(i / (SIDE - 1.0) - 0.5), (fsi_real)(j / (SIDE - 1.0) - 0.5), (fsi_real)z);
    for (j = 0; j + 1 < SIDE; j++) for (i = 0; i + 1 < SIDE; i++) {
            const int a = SIDE * j + i, odd = (i + j) & 1,
                      quad[6] = {a, a + 1, a + SIDE + odd, odd ? a : a + 1, a + SIDE + 1, a + SIDE};
            memcpy(grid_triangle + n, quad, sizeof quad);
            n += 6;
    }
}

static fsi_shell *make_sheet(fsi_context *c, fsi_shell_desc d, const fsi_shell_material *m, double z)
{
    fsi_shell *s;
    make_grid(z);
    d.context = c;
    d.vertices = grid;
    d.vertex_count = SIDE * SIDE;
    d.triangles = grid_triangle;
    d.triangle_count = (int)(sizeof grid_triangle / sizeof *grid_triangle) / 3;
    d.materials = m;
    d.material_count = 1;
    return CHECK(fsi_shell_create(&s, &d) == FSI_OK) ? s : NULL;
}

static fsi_mesh *make_box(fsi_vec3 center, double x, double y, double z)
{
    static const int t[36] = {0, 2, 1, 1, 2, 3, 4, 5, 6, 5, 7, 6, 0, 1, 4, 1, 5, 4,
                              2, 6, 3, 3, 6, 7, 0, 4, 2, 2, 4, 6, 1, 3, 5, 3, 7, 5};
    fsi_vec3 v[8];
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *m;
    int i;
    for (i = 0; i < 8; i++)
        v[i] = fsi_v3_add(center,
                          fsi_v3((fsi_real)(i & 1 ? x : -x), (fsi_real)(i & 2 ? y : -y), (fsi_real)(i & 4 ? z : -z)));
    d.vertices = v;
    d.vertex_count = 8;
    d.elements = t;
    d.element_count = 12;
    return CHECK(fsi_mesh_create(&m, &d) == FSI_OK) ? m : NULL;
}

/* A body of three different moments, at `center`. */
static fsi_body make_body(fsi_vec3 center)
{
    fsi_body b = fsi_default_body();
    b.mode = FSI_BODY_COUPLED;
    b.mass = 2;
    b.inertia = fsi_m3_diagonal(fsi_v3((fsi_real)0.02, (fsi_real)0.03, (fsi_real)0.04));
    b.pose.position = b.end.position = center;
    return b;
}

static int add_obstacle(fsi_shell *s, const fsi_mesh *mesh, fsi_body *body)
{
    fsi_shell_obstacle_desc d = fsi_shell_default_obstacle_desc();
    int id = -1;
    d.mesh = mesh;
    d.body = body;
    CHECK(fsi_shell_add_obstacle(s, &d, &id) == FSI_OK);
    return id;
}

/* What holds a body up is its weight, whatever the integrator. */
static void resting_body(fsi_shell_integrator integrator)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_mesh *box = make_box(fsi_v3(0, 0, (fsi_real)0.12), 0.1, 0.1, 0.1);
    fsi_body b = make_body(fsi_v3(0, 0, (fsi_real)0.12));
    fsi_shell *s;
    double force = 0, felt = 0;
    int k;
    m.young = (fsi_real)1e6;
    m.damping_stiffness = (fsi_real)0.05;
    d.integrator = integrator;
    s = make_sheet(NULL, d, &m, 0);
    if (!box || !s) return;
    for (k = 0; k < SIDE * SIDE; k++)
        s->pinned[k] = k % SIDE == 0 || k % SIDE == SIDE - 1 || k < SIDE || k >= SIDE * (SIDE - 1);
    add_obstacle(s, box, &b);
    b.force = fsi_v3(0, 0, (fsi_real)(-2 * 9.81));
    for (k = 0; k < 200; k++) {
        if (!CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_OK)) break;
        if (k >= 150) {
            fsi_vec3 f;
            CHECK(fsi_shell_obstacle_reaction(s, 0, &f, NULL) == FSI_OK);
            felt += (double)f.z / 50;
            force += (double)b.reaction_force.z / 50;
        }
        fsi_body_integrate(&b, (fsi_real)0.01);
    }
    CHECK_NEAR(force, 2 * 9.81, 0.02 * 2 * 9.81);
    CHECK_NEAR(felt, 2 * 9.81, 0.02 * 2 * 9.81);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(box);
}

static void test_a_sheet_bears_the_weight_of_a_body(void)
{
    resting_body(FSI_SHELL_BACKWARD_EULER);
    resting_body(FSI_SHELL_BDF2);
}

/* A body that nothing touches goes on as it did: no impulse, the spin that it had; its orientation is its owner's. */
static void test_free_bodies_keep_their_spin(void)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_mesh *box = make_box(fsi_v3(0, 0, 3), 0.1, 0.1, 0.1);
    fsi_body b = make_body(fsi_v3(0, 0, 3));
    fsi_shell *s;
    double before[3], after[3];
    int k;
    d.gravity = fsi_v3(0, 0, 0);
    d.tolerance = TOL((fsi_real)1e-8, (fsi_real)1e-4);
    s = make_sheet(NULL, d, &m, 0);
    if (!box || !s) return;
    add_obstacle(s, box, &b);
    b.angular_velocity = fsi_v3(6, (fsi_real)0.3, 9);
    for (k = 0; k < 20; k++) {
        const fsi_vec3 l = fsi_m3_mul_v3(fsi_body_world_tensor(b.pose.orientation, b.inertia), b.angular_velocity);
        before[0] = (double)l.x;
        before[1] = (double)l.y;
        before[2] = (double)l.z;
        if (!CHECK(fsi_shell_step(s, (fsi_real)0.05) == FSI_OK)) break;
        CHECK_NEAR(fsi_v3_norm(b.angular_impulse), 0, TOL(1e-9, 1e-3));
        /* float: turns are quaternions of fsi_real */
        CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(b.new_angular_velocity, b.angular_velocity)), 0, TOL(1e-7, 2e-2));
        fsi_body_integrate(&b, (fsi_real)0.05);
        {
            const fsi_vec3 now =
                fsi_m3_mul_v3(fsi_body_world_tensor(b.pose.orientation, b.inertia), b.angular_velocity);
            after[0] = (double)now.x;
            after[1] = (double)now.y;
            after[2] = (double)now.z;
        }
    }
    for (k = 0; k < 3; k++) CHECK_NEAR(after[k], before[k], TOL(1e-8, 1e-4));
    b.angular_velocity = fsi_v3(0, 0, 0);
    b.pose.orientation = fsi_quat_from_rotation_vector(fsi_v3(0, (fsi_real)0.4, 0));
    CHECK(fsi_shell_step(s, (fsi_real)0.05) == FSI_OK);
    CHECK_NEAR(
        fsi_v3_norm(fsi_quat_rotation_vector(fsi_quat_mul(b.end.orientation, fsi_quat_conj(b.pose.orientation)))), 0,
        TOL(1e-6, 1e-3));
    fsi_shell_destroy(s);
    fsi_mesh_destroy(box);
}

/* Drag as through a thick medium: v = exp(-alpha t), with the integrator of second order within its error. */
static void test_damping_is_what_was_asked_for_in_both_integrators(void)
{
    static const fsi_shell_integrator integrator[2] = { FSI_SHELL_BACKWARD_EULER, FSI_SHELL_BDF2 };
    int i, k;
    for (i = 0; i < 2; i++) {
        fsi_shell_material m = fsi_shell_default_material();
        fsi_shell_desc d = fsi_shell_default_desc();
        fsi_shell *s;
        d.gravity = fsi_v3(0, 0, 0);
        d.integrator = integrator[i];
        d.tolerance = (fsi_real)1e-8;
        m.damping_mass = 1;
        s = make_sheet(NULL, d, &m, 0);
        if (!s) return;
        for (k = 0; k < s->vertex_count; k++) s->velocity[k] = fsi_v3(1, 0, 0);
        for (k = 0; k < 100; k++) fsi_shell_step(s, (fsi_real)0.01);
        CHECK_NEAR(s->velocity[24].x, exp(-1.0), 0.01);
        fsi_shell_destroy(s);
    }
}

/* A point on a damped spring without stiffness worth naming: v = exp(-c/m t). */
static void test_springs_damp_alike_in_both_integrators(void)
{
    static const fsi_shell_integrator integrator[2] = { FSI_SHELL_BACKWARD_EULER, FSI_SHELL_BDF2 };
    int i, k;
    for (i = 0; i < 2; i++) {
        const fsi_vec3 x = fsi_v3(1, 0, 0);
        const fsi_real mass = 1;
        fsi_shell_desc d = fsi_shell_default_desc();
        fsi_shell_spring_desc p = fsi_shell_default_spring_desc();
        fsi_shell *s;
        d.gravity = fsi_v3(0, 0, 0);
        d.integrator = integrator[i];
        d.tolerance = (fsi_real)1e-8;
        d.vertices = &x;
        d.vertex_count = 1;
        d.vertex_mass = &mass;
        if (!CHECK(fsi_shell_create(&s, &d) == FSI_OK)) return;
        p.vertex = 0;
        p.stiffness = (fsi_real)1e-9;
        p.damping = 1;
        CHECK(fsi_shell_add_spring(s, &p, NULL) == FSI_OK);
        s->velocity[0] = fsi_v3(1, 0, 0);
        for (k = 0; k < 100; k++) fsi_shell_step(s, (fsi_real)0.01);
        CHECK_NEAR(s->velocity[0].x, exp(-1.0), 0.01);
        fsi_shell_destroy(s);
    }
}

/* A flat sheet in the wind is not strained. */
static void test_wind_is_no_elastic_energy(void)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell *s;
    int k;
    d.gravity = fsi_v3(0, 0, 0);
    d.air_density = (fsi_real)1.2;
    d.wind = fsi_v3(0, 0, 10);
    s = make_sheet(NULL, d, &m, 0);
    if (!s) return;
    for (k = 0; k < s->vertex_count; k++) s->pinned[k] = 1;
    CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_OK);
    CHECK_NEAR(s->stats.elastic_energy, 0, TOL(1e-9, 1e-6));
    fsi_shell_destroy(s);
}

/* In the plane too, what begins in an intersection is refused, and counted. */
static void test_segments_that_cross_in_the_plane_are_refused(void)
{
    const fsi_vec3 x[4] = { fsi_v3(-1, 0, 0), fsi_v3(1, 0, 0), fsi_v3(0, -1, 0), fsi_v3(0, 1, 0) };
    const int segment[4] = { 0, 1, 2, 3 };
    fsi_shell_material m = fsi_shell_default_material();
    fsi_context c = fsi_default_context();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell *s = NULL;
    d.context = &c;
    d.dim = 2;
    d.gravity = fsi_v3(0, -1, 0);
    d.vertices = x;
    d.vertex_count = 4;
    d.segments = segment;
    d.segment_count = 2;
    d.materials = &m;
    d.material_count = 1;
    CHECK(fsi_shell_create(&s, &d) == FSI_ERROR_MESH);
    fsi_shell_destroy(s);
}

/* A crease is an edge of two triangles. */
static void test_creases_that_are_no_folds_are_refused(void)
{
    const fsi_vec3 x[4] = { fsi_v3(0, 0, 0), fsi_v3(1, 0, 0), fsi_v3(0, 1, 0), fsi_v3(1, 1, 0) };
    const int t[6] = { 0, 1, 2, 2, 1, 3 };
    fsi_shell_material m = fsi_shell_default_material();
    fsi_context c = fsi_default_context();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell_crease r, two[2];
    fsi_shell *s = NULL;
    d.context = &c;
    d.vertices = x;
    d.vertex_count = 4;
    d.triangles = t;
    d.triangle_count = 2;
    d.materials = &m;
    d.material_count = 1;
    d.creases = &r;
    d.crease_count = 1;
    r.angle = (fsi_real)0.5;
    r.stiffness = 1;
    r.a = 2;
    r.b = 1;
    CHECK(fsi_shell_create(&s, &d) == FSI_OK);
    fsi_shell_destroy(s);
    two[0] = two[1] = r; /* one edge twice */
    two[1].a = r.b;
    two[1].b = r.a;
    d.creases = two;
    d.crease_count = 2;
    CHECK(fsi_shell_create(&s, &d) == FSI_ERROR_ARGUMENT && strstr(c.error.message, "crease 1"));
    d.creases = &r;
    d.crease_count = 1;
    r.b = 0; /* an edge of one */
    CHECK(fsi_shell_create(&s, &d) == FSI_ERROR_ARGUMENT);
    r.b = 99;
    CHECK(fsi_shell_create(&s, &d) == FSI_ERROR_ARGUMENT);
}

/* Taking an obstacle away needs no memory. */
static void test_obstacles_go_without_memory(void)
{
    fsi_context c = fsi_default_context();
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_mesh *box = make_box(fsi_v3(0, 0, 1), 0.1, 0.1, 0.1);
    fsi_body b = make_body(fsi_v3(0, 0, 1));
    fsi_shell *s;
    int id;
    test_fail_allocator(&c, 0);
    s = make_sheet(&c, d, &m, 0);
    if (!box || !s) return;
    id = add_obstacle(s, box, &b);
    test_fail_allocator(&c, 1);
    CHECK(fsi_shell_remove_obstacle(s, id) == FSI_OK);
    test_fail_allocator(&c, 0);
    CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_OK);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(box);
    CHECK(test_live_bytes() == 0);
}

/* A vertex that is attached to a body goes with it on its arc, in substeps as in one. */
static void test_attached_vertices_go_on_arcs(void)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_mesh *box = make_box(fsi_v3((fsi_real)-1.5, 0, (fsi_real)0.2), 0.9, 0.4, 0.1);
    fsi_body b = fsi_default_body();
    fsi_shell *s;
    int k;
    fsi_vec3 local;
    d.substeps = 10;
    b.pose.position = b.end.position = fsi_v3((fsi_real)-1.5, 0, (fsi_real)0.2);
    s = make_sheet(NULL, d, &m, 0.2);
    if (!box || !s) return;
    add_obstacle(s, box, &b);
    for (k = 0; k < SIDE; k++) CHECK(fsi_shell_attach(s, SIDE * k, 0) == FSI_OK);
    local = fsi_pose_local(b.pose, s->position[0]);
    b.end.orientation = fsi_quat_from_rotation_vector(fsi_v3(0, 0, (fsi_real)1.5));
    CHECK(fsi_shell_step(s, (fsi_real)0.5) == FSI_OK);
    CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(fsi_pose_point(b.end, local), s->position[0])), 0, TOL(1e-9, 1e-5));
    fsi_shell_destroy(s);
    fsi_mesh_destroy(box);
}

/* The damper of a spring on a moving obstacle after load goes on as it did without. */
static void test_spring_ends_are_where_they_were_after_load(void)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell_spring_desc p = fsi_shell_default_spring_desc();
    fsi_mesh *box = make_box(fsi_v3(0, 0, 1), 0.1, 0.1, 0.1);
    fsi_body b = fsi_default_body();
    fsi_shell *s;
    uint64_t hash[2];
    size_t size = 0;
    void *saved = NULL;
    int run, k;
    b.pose.position = b.end.position = fsi_v3(0, 0, 1);
    s = make_sheet(NULL, d, &m, 0);
    if (!box || !s) return;
    p.vertex = 24;
    p.obstacle = add_obstacle(s, box, &b);
    p.anchor = fsi_v3(0, 0, (fsi_real)0.9);
    p.damping = 50;
    CHECK(fsi_shell_add_spring(s, &p, NULL) == FSI_OK);
    for (run = 0; run < 2; run++) {
        for (k = run ? 5 : 0; k < 10; k++) {
            if (run && k == 5) {
                b.pose.position = b.end.position = fsi_v3((fsi_real)(0.05 * 5), 0, 1);
                CHECK(fsi_shell_load(s, saved, size) == FSI_OK);
            }
            if (!run && k == 5) {
                CHECK(fsi_shell_save(s, NULL, 0, &size) == FSI_OK);
                saved = malloc(size);
                CHECK(saved && fsi_shell_save(s, saved, size, &size) == FSI_OK);
            }
            b.end.position = fsi_v3((fsi_real)(0.05 * (k + 1)), 0, 1);
            CHECK(fsi_shell_step(s, (fsi_real)0.02) == FSI_OK);
            b.pose = b.end;
        }
        hash[run] = fsi_shell_hash(s);
    }
    CHECK(hash[0] == hash[1]);
    free(saved);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(box);
}

/* A cloth that rests goes on resting when the step gets shorter. */
static void test_what_rests_stays_at_rest_in_shorter_steps(void)
{
    fsi_shell_material m = fsi_shell_preset(FSI_SHELL_COTTON);
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_mesh *box = make_box(fsi_v3(0, 0, -1), 2, 2, 1);
    fsi_shell *s;
    double fastest = 0;
    int k, i;
    s = make_sheet(NULL, d, &m, 0.03);
    if (!box || !s) return;
    add_obstacle(s, box, NULL);
    for (k = 0; k < 200; k++) CHECK(fsi_shell_step(s, (fsi_real)0.02) == FSI_OK);
    for (k = 0; k < 20; k++) {
        CHECK(fsi_shell_step(s, (fsi_real)0.001) == FSI_OK);
        for (i = 0; i < s->vertex_count; i++)
            if ((double)fsi_v3_norm(s->velocity[i]) > fastest) fastest = (double)fsi_v3_norm(s->velocity[i]);
    }
    CHECK_NEAR(fastest, 0, 0.05);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(box);
}

/* A body feels all of its obstacles. */
static void test_prescribed_bodies_feel_all_their_obstacles(void)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_mesh *one = make_box(fsi_v3((fsi_real)-0.25, 0, -1), 0.2, 2, 1),
             *two = make_box(fsi_v3((fsi_real)0.25, 0, -1), 0.2, 2, 1);
    fsi_body b = fsi_default_body();
    fsi_vec3 f[2];
    fsi_shell *s = make_sheet(NULL, d, &m, 0.03);
    int k;
    if (!one || !two || !s) return;
    add_obstacle(s, one, &b);
    add_obstacle(s, two, &b);
    for (k = 0; k < 20; k++) CHECK(fsi_shell_step(s, (fsi_real)0.02) == FSI_OK);
    for (k = 0; k < 2; k++) CHECK(fsi_shell_obstacle_reaction(s, k, &f[k], NULL) == FSI_OK);
    CHECK(f[0].z < 0 && f[1].z < 0);
    CHECK_NEAR(b.reaction_force.z, f[0].z + f[1].z, TOL(1e-9, 1e-4));
    fsi_shell_destroy(s);
    fsi_mesh_destroy(one);
    fsi_mesh_destroy(two);
}

/* A triangle keeps the clearance of its thickest corner all over. */
static void test_clearance_holds_all_over_a_triangle(void)
{
    const fsi_vec3 x[5] = {fsi_v3(0, 0, 0), fsi_v3(1, 0, 0), fsi_v3(0, 1, 0), fsi_v3(-1, -1, 0),
                           fsi_v3((fsi_real)1.5, 0, 0)};
    const int t[3] = { 0, 1, 2 }, segment[2] = { 0, 3 }, of[1] = { 1 };
    const fsi_real mass[5] = { 0, 0, 0, 0, (fsi_real)0.1 };
    fsi_shell_material m[2];
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell *s;
    int k;
    m[0] = m[1] = fsi_shell_default_material();
    m[1].clearance = (fsi_real)0.1;
    d.vertices = x;
    d.vertex_count = 5;
    d.vertex_mass = mass;
    d.triangles = t;
    d.triangle_count = 1;
    d.segments = segment;
    d.segment_count = 1;
    d.segment_material = of;
    d.materials = m;
    d.material_count = 2;
    d.contact_range = (fsi_real)0.02;
    d.gravity = fsi_v3((fsi_real)-9.81, 0, 0);
    if (!CHECK(fsi_shell_create(&s, &d) == FSI_OK)) return;
    for (k = 0; k < 4; k++) s->pinned[k] = 1;
    for (k = 0; k < 60; k++) {
        CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_OK);
        CHECK(s->position[4].x > (fsi_real)1.0999);
        CHECK(s->stats.degraded == 0);
    }
    fsi_shell_destroy(s);
}

/* Between vertices of three and more segments too. */
static void test_segments_that_are_there_twice_are_refused(void)
{
    const fsi_vec3 x[8] = {fsi_v3(0, 0, 0),  fsi_v3(1, 0, 0), fsi_v3(0, 1, 0),  fsi_v3(0, -1, 0),
                           fsi_v3(-1, 0, 0), fsi_v3(1, 1, 0), fsi_v3(1, -1, 0), fsi_v3(2, 0, 0)};
    const int segment[16] = { 0, 2, 0, 3, 0, 4, 1, 5, 1, 6, 1, 7, 0, 1, 1, 0 };
    const fsi_shell_material m = fsi_shell_default_material();
    fsi_context c = fsi_default_context();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell *s = NULL;
    d.context = &c;
    d.vertices = x;
    d.vertex_count = 8;
    d.segments = segment;
    d.segment_count = 8;
    d.materials = &m;
    d.material_count = 1;
    CHECK(fsi_shell_create(&s, &d) == FSI_ERROR_MESH && strstr(c.error.message, "segments 6 and 7"));
    d.segment_count = 7;
    CHECK(fsi_shell_create(&s, &d) == FSI_OK);
    fsi_shell_destroy(s);
}

static double seconds_to_create(const fsi_shell_desc *d)
{
    const clock_t start = clock();
    fsi_shell *s = NULL;
    CHECK(fsi_shell_create(&s, d) == FSI_OK);
    fsi_shell_destroy(s);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* A sheet of n x n cells, every inner edge creased; and a comb of n^2 teeth to each side, stiff across. They are made
   in hardly more time than without. */
static void test_long_lists_of_creases_and_joints_take_little_time(void)
{
    const int n = TEST_SLOWED ? 20 : 130, side = n + 1, teeth = n * n;
    fsi_vec3 *x = (fsi_vec3 *)malloc(sizeof *x * 3 * (size_t)(side * side));
    int *t = (int *)malloc(sizeof *t * 6 * (size_t)teeth), *joint = (int *)malloc(sizeof *joint * 3 * (size_t)teeth), i,
        j, count = 0;
    fsi_shell_crease *crease = (fsi_shell_crease *)malloc(sizeof *crease * 3 * (size_t)teeth);
    const fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    double plain;
    if (!x || !t || !joint || !crease) abort();
    memset(crease, 0, sizeof *crease * 3 * (size_t)teeth);
    for (j = 0; j < side; j++) for (i = 0; i < side; i++) x[side * j + i] = fsi_v3((fsi_real)i, (fsi_real)j, 0);
    for (j = 0; j < n; j++) for (i = 0; i < n; i++) {
            const int a = side * j + i, quad[6] = {a, a + 1, a + side, a + 1, a + side + 1, a + side},
                      end[3] = {a + side, a + 1, a + side + 1};
            int k;
            memcpy(t + 6 * (n * j + i), quad, sizeof quad);
            for (k = 0; k < 3; k++) {
                if ((k == 1 && j == 0) || (k == 2 && i == n - 1)) continue;
                crease[count].a = k == 1 ? a : a + 1;
                crease[count].b = end[k];
                crease[count++].stiffness = 1;
        }
    }
    d.contact = 0;
    d.materials = &m;
    d.material_count = 1;
    d.vertices = x;
    d.vertex_count = side * side;
    d.triangles = t;
    d.triangle_count = 2 * teeth;
    plain = seconds_to_create(&d);
    d.creases = crease;
    d.crease_count = count;
    CHECK(count == 3 * teeth - 2 * n && seconds_to_create(&d) < 2 * plain + 0.1);
    for (i = 0; i < teeth; i++) {
        const int row[6] = { i, i + 1, i, teeth + 1 + i, i, 2 * teeth + 1 + i };
        for (j = 0; j < 3; j++) {
            joint[3 * i + j] = row[(j * 2 + 3) % 6];
            x[j == 0 ? i : row[2 * j + 1]] = fsi_v3((fsi_real)i, (fsi_real)(j == 2 ? -1 : j), 0);
        }
        joint[3 * i + 1] = i;
        joint[3 * i + 2] = 2 * teeth + 1 + i;
        memcpy(t + 6 * i, row, sizeof row);
    }
    x[teeth] = fsi_v3((fsi_real)teeth, 0, 0);
    d.vertex_count = 3 * teeth + 1;
    d.triangle_count = d.crease_count = 0;
    d.segments = t;
    d.segment_count = 3 * teeth;
    plain = seconds_to_create(&d);
    d.joints = joint;
    d.joint_count = teeth;
    CHECK(seconds_to_create(&d) < 2 * plain + 0.1);
    free(crease);
    free(joint);
    free(t);
    free(x);
}

/* Where a body is put, all of its obstacles are. */
static void test_teleporting_a_body_takes_all_its_obstacles_along(void)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_context c = fsi_default_context();
    fsi_mesh *one = make_box(fsi_v3(0, 0, 1), 0.1, 0.1, 0.1), *two = make_box(fsi_v3(0, 0, 2), 0.1, 0.1, 0.1);
    fsi_body b = make_body(fsi_v3(0, 0, 1));
    fsi_shell *s;
    uint64_t hash;
    d.gravity = fsi_v3(0, 0, 0);
    s = make_sheet(&c, d, &m, 0);
    if (!one || !two || !s) return;
    add_obstacle(s, one, &b);
    add_obstacle(s, two, &b);
    CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_OK);
    b.pose.position = b.end.position = fsi_v3(0, 0, -1); /* the first below the sheet, the second in it */
    CHECK(fsi_shell_teleport_obstacle(s, 0) == FSI_OK);
    hash = fsi_shell_hash(s); /* knows where COUPLED bodies were left */
    CHECK(fsi_shell_count_intersections(s) > 0);
    CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_ERROR_MESH && strstr(c.error.message, "of obstacle 1") &&
          fsi_shell_hash(s) == hash);
    b.pose.position = b.end.position = fsi_v3(0, 0, -2);
    CHECK(fsi_shell_teleport_obstacle(s, 0) == FSI_OK);
    CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_OK);
    CHECK_NEAR(s->position[24].z, 0, TOL(1e-12, 1e-6));
    fsi_shell_destroy(s);
    fsi_mesh_destroy(one);
    fsi_mesh_destroy(two);
}

/* What its owner wrote since the last step is there, for a new obstacle as for the next step. */
static void test_new_obstacles_meet_what_was_written(void)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell_obstacle_desc o = fsi_shell_default_obstacle_desc();
    fsi_context c = fsi_default_context();
    fsi_mesh *high = make_box(fsi_v3(0, 0, 1), 0.1, 0.1, 0.1), *small_one = make_box(fsi_v3(0, 0, 0), 0.03, 0.03, 0.03);
    fsi_shell *s;
    d.gravity = fsi_v3(0, 0, 0);
    s = make_sheet(&c, d, &m, 0);
    if (!high || !small_one || !s) return;
    s->position[24].z = 1;
    o.mesh = high;
    CHECK(fsi_shell_add_obstacle(s, &o, NULL) == FSI_ERROR_MESH && strstr(c.error.message, "obstacle 0"));
    s->position[24].z = (fsi_real)test_nan();
    CHECK(fsi_shell_add_obstacle(s, &o, NULL) == FSI_OK);
    CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_ERROR_NAN && strstr(c.error.message, "position of vertex 24"));
    s->position[24].z = 0;
    o.mesh = small_one;
    CHECK(fsi_shell_add_obstacle(s, &o, NULL) == FSI_ERROR_MESH);
    s->position[24].z = (fsi_real)0.5; /* out of the way */
    CHECK(fsi_shell_add_obstacle(s, &o, NULL) == FSI_OK);
    s->position[24].z = 0; /* and back */
    CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_ERROR_MESH && strstr(c.error.message, "obstacle 1"));
    s->position[24].z = (fsi_real)0.5;
    CHECK(fsi_shell_step(s, (fsi_real)0.0001) == FSI_OK);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(high);
    fsi_mesh_destroy(small_one);
}

/* Attaching pins what was free, and only that is undone. */
static void test_the_owners_pins_outlive_attachments(void)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_mesh *box = make_box(fsi_v3(-1, 0, 0), 0.1, 0.4, 0.1);
    fsi_body b = fsi_default_body();
    int k, by;
    for (by = 0; by < 2; by++) {
        fsi_shell *s = make_sheet(NULL, d, &m, 0);
        fsi_vec3 led;
        if (!box || !s) break;
        b.pose = b.end = fsi_default_body().pose;
        add_obstacle(s, box, &b);
        s->pinned[0] = s->pinned[3 * SIDE] = 1;
        for (k = 0; k < 2; k++) CHECK(fsi_shell_attach(s, SIDE * k, 0) == FSI_OK);
        CHECK(fsi_shell_attach(s, SIDE, 0) == FSI_OK); /* again */
        b.end.position.z = (fsi_real)0.05;
        CHECK(fsi_shell_step(s, (fsi_real)0.05) == FSI_OK);
        led = s->position[0];
        CHECK_NEAR(led.z, 0.05, 1e-6);
        if (by == 0) CHECK(fsi_shell_remove_obstacle(s, 0) == FSI_OK);
        else for (k = 0; k < 4; k++) CHECK(fsi_shell_detach(s, SIDE * k) == FSI_OK);
        CHECK(s->pinned[0] == 1 && s->pinned[SIDE] == 0 && s->pinned[3 * SIDE] == 1);
        CHECK(fsi_shell_step(s, (fsi_real)0.05) == FSI_OK);
        CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(s->position[0], led)), 0, 0);
        CHECK(s->position[SIDE].z < (fsi_real)0.05);
        fsi_shell_destroy(s);
    }
    fsi_mesh_destroy(box);
}

/* Two points that no segment holds, in the plane: they meet, and part. */
static void test_lone_points_meet_in_the_plane(void)
{
    const fsi_vec3 x[2] = { fsi_v3((fsi_real)-0.1, 0, 0), fsi_v3((fsi_real)0.1, 0, 0) };
    const fsi_real mass[2] = { 1, 3 };
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_context c = fsi_default_context();
    fsi_shell *s = NULL;
    int k, met = 0;
    d.context = &c;
    d.dim = 2;
    d.gravity = fsi_v3(0, 0, 0);
    d.vertices = x;
    d.vertex_count = 2;
    d.vertex_mass = mass;
    if (!CHECK(fsi_shell_create(&s, &d) == FSI_OK)) {
        printf("%s\n", c.error.message);
        return;
    }
    s->velocity[0].x = 1;
    for (k = 0; k < 100; k++) {
        if (!CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_OK)) printf("%s\n", c.error.message);
        CHECK(s->position[0].x < s->position[1].x && fsi_shell_count_intersections(s) == 0);
        CHECK_NEAR(s->velocity[0].x + 3 * s->velocity[1].x, 1, TOL(1e-9, 1e-5));
        CHECK_NEAR(s->position[0].y, 0, 0);
        met |= s->stats.contacts > 0;
    }
    CHECK(met && s->velocity[1].x > (fsi_real)0.2);
    s->position[0] = s->position[1] = fsi_v3(0, 1, 0);
    CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_ERROR_MESH && strstr(c.error.message, "touch"));
    fsi_shell_destroy(s);
}

/* A number of whatever its owner writes, made no number: the step says which, and everything is as it was. */
static void refuse_nan(fsi_shell *s, fsi_body *b, fsi_real *number, const char *word)
{
    const uint64_t hash = fsi_shell_hash(s);
    const fsi_real kept = *number;
    double bad[2];
    int k;
    bad[0] = test_nan();
    bad[1] = test_inf();
    for (k = 0; k < 2; k++) {
        const fsi_vec3 position = s->position[5], velocity = s->velocity[5], force = s->contact_force[5];
        const double time = s->time;
        fsi_body was;
        *number = (fsi_real)bad[k];
        was = *b;
        if (!CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_ERROR_NAN && strstr(fsi_shell_error(s)->message, word)))
            printf("  '%s' is not in '%s'\n", word, fsi_shell_error(s)->message);
        CHECK(fsi_shell_settle(s, 5) == FSI_ERROR_NAN);
        CHECK(fsi_shell_hash(s) == hash && !(s->time > time) && memcmp(&was, b, sizeof was) == 0);
        CHECK(memcmp(&position, &s->position[5], sizeof position) == 0 &&
              memcmp(&velocity, &s->velocity[5], sizeof velocity) == 0 &&
              memcmp(&force, &s->contact_force[5], sizeof force) == 0);
        *number = kept;
    }
}

static void test_each_input_that_is_no_number_is_named_and_changes_nothing(void)
{
    const fsi_vec3 x[10] = {fsi_v3(-1, 0, 0), fsi_v3(1, 0, 0), fsi_v3(0, 1, 0), fsi_v3(2, 0, 0),
                            fsi_v3(3, 0, 0),  fsi_v3(4, 0, 0), fsi_v3(5, 0, 0)};
    const int t[3] = { 0, 1, 2 }, segment[6] = { 3, 4, 4, 5, 5, 6 };
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_mesh *floor = make_box(fsi_v3(0, 0, -2), 9, 9, 1), *box = make_box(fsi_v3(0, (fsi_real)0.3, 1), 0.1, 0.1, 0.1),
             *hand = make_box(fsi_v3(0, 0, 3), 0.1, 0.1, 0.1);
    fsi_body b = make_body(fsi_v3(0, (fsi_real)0.3, 1)), led = fsi_default_body();
    fsi_shell *s = NULL;
    fsi_vec3 corner[8], bad[8];
    uint64_t hash;
    int k;
    d.vertices = x;
    d.vertex_count = 7;
    d.triangles = t;
    d.triangle_count = 1;
    d.segments = segment;
    d.segment_count = 3;
    d.materials = &m;
    d.material_count = 1;
    d.air_density = 1;
    led.pose.position = led.end.position = fsi_v3(0, 0, 3);
    if (!floor || !box || !hand || !CHECK(fsi_shell_create(&s, &d) == FSI_OK)) return;
    add_obstacle(s, floor, NULL);
    add_obstacle(s, box, &b);
    add_obstacle(s, hand, &led);
    s->pinned[5] = 1;
    s->twist_held[1] = 1;
    for (k = 0; k < 3; k++) CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_OK);
    refuse_nan(s, &b, &s->position[4].x, "position of vertex 4");
    refuse_nan(s, &b, &s->velocity[4].y, "velocity of vertex 4");
    refuse_nan(s, &b, &s->force[4].z, "force of vertex 4");
    refuse_nan(s, &b, &s->target[5].z, "target of vertex 5");
    refuse_nan(s, &b, &s->twist[1], "twist of segment 1");
    refuse_nan(s, &b, &b.pose.position.x, "body 1: pose.position");
    refuse_nan(s, &b, &b.pose.orientation.z, "body 1: pose.orientation");
    refuse_nan(s, &b, &b.velocity.y, "body 1: velocity");
    refuse_nan(s, &b, &b.angular_velocity.z, "body 1: angular_velocity");
    refuse_nan(s, &b, &b.force.z, "body 1: force");
    refuse_nan(s, &b, &b.torque.x, "body 1: torque");
    refuse_nan(s, &b, &b.mass, "body 1: mass");
    refuse_nan(s, &b, &b.inertia.m[4], "body 1: inertia");
    refuse_nan(s, &led, &led.pose.position.x, "body 2: pose.position");
    refuse_nan(s, &led, &led.end.position.y, "body 2: end.position");
    refuse_nan(s, &led, &led.end.orientation.x, "body 2: end.orientation");
    hash = fsi_shell_hash(s);
    for (k = 0; k < 8; k++) bad[k] = corner[k] = floor->vertices[floor->source_vertex[k]];
    bad[3].z = (fsi_real)test_nan();
    /* a mesh has no other vertices than those it takes */
    CHECK(fsi_mesh_move(floor, bad, 8) == FSI_ERROR_NAN && fsi_mesh_set(floor, bad, 8) == FSI_ERROR_NAN);
    d = s->desc;
    d.wind.y = (fsi_real)test_nan();
    CHECK(fsi_shell_set_desc(s, &d) == FSI_ERROR_NAN && strstr(fsi_shell_error(s)->message, "wind.y"));
    d = s->desc;
    d.gravity.x = (fsi_real)test_inf();
    CHECK(fsi_shell_set_desc(s, &d) == FSI_ERROR_NAN && strstr(fsi_shell_error(s)->message, "gravity.x"));
    CHECK(fsi_shell_hash(s) == hash);
    CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_OK);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(floor);
    fsi_mesh_destroy(box);
    fsi_mesh_destroy(hand);
}

/* Momentum that the sheet does not keep its obstacle gets, by contact, spring and what is attached, over all substeps;
   the body as an impulse. At rest the force is the weight, and so is the torque; a rest takes no time. */
static void keep_account(double drag)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_shell_spring_desc p = fsi_shell_default_spring_desc();
    fsi_mesh *box = make_box(fsi_v3(0, 0, (fsi_real)-0.13), 0.2, 0.2, 0.1);
    fsi_body b = make_body(fsi_v3(0, 0, (fsi_real)-0.13));
    fsi_shell *s;
    fsi_vec3 force, torque, weight = fsi_v3(0, 0, 0), moment = fsi_v3(0, 0, 0);
    double mass = 0;
    int k, a, touched = 0;
    b.mode = FSI_BODY_PRESCRIBED;
    m.young = (fsi_real)1e4;
    d.integrator = FSI_SHELL_BACKWARD_EULER;
    d.substeps = drag > 0 ? 1 : 3;
    m.damping_mass = (fsi_real)drag;
    d.friction = (fsi_real)0.3;
    d.tolerance = TOL((fsi_real)1e-9, (fsi_real)1e-5);
    s = make_sheet(NULL, d, &m, 0);
    if (!box || !s) return;
    add_obstacle(s, box, &b);
    CHECK(fsi_shell_attach(s, 0, 0) == FSI_OK);
    p.vertex = SIDE * SIDE - 1;
    p.obstacle = 0;
    p.anchor = fsi_v3((fsi_real)0.5, (fsi_real)0.5, (fsi_real)0.1);
    p.stiffness = 20;
    CHECK(fsi_shell_add_spring(s, &p, NULL) == FSI_OK);
    p.vertex = 0; /* on what is attached */
    p.obstacle = -1;
    CHECK(fsi_shell_add_spring(s, &p, NULL) == FSI_OK);
    for (k = 0; k < s->vertex_count; k++) mass += (double)s->mass[k];
    for (k = 0; k < 30; k++) {
        const double dt = 0.01;
        double before[3] = { 0, 0, 0 };
        fsi_vec3 pull;
        int i;
        for (i = 0; i < s->vertex_count; i++) {
            before[0] += (double)(s->mass[i] * s->velocity[i].x);
            before[1] += (double)(s->mass[i] * s->velocity[i].y);
            before[2] += (double)(s->mass[i] * s->velocity[i].z);
        }
        b.end.position.z += (fsi_real)0.001;
        b.end.orientation = fsi_quat_from_rotation_vector(fsi_v3(0, 0, (fsi_real)(0.01 * (k + 1))));
        if (!CHECK(fsi_shell_step(s, (fsi_real)dt) == FSI_OK)) break;
        CHECK(fsi_shell_obstacle_reaction(s, 0, &force, NULL) == FSI_OK &&
              fsi_shell_spring_force(s, 1, &pull) == FSI_OK);
        touched += s->stats.contacts > 0;
        for (a = 0; a < 3; a++) {
            const double lost = before[a] - (1 + dt * drag) * s->stats.momentum[a] +
                                dt * ((a == 2 ? -9.81 * mass : 0) + (double)(&pull.x)[a]);
            CHECK_NEAR((double)(&b.impulse.x)[a], lost, TOL(1e-6, 2e-3) * mass);
            CHECK_NEAR((double)(&force.x)[a], (double)(&b.reaction_force.x)[a], TOL(1e-9, 1e-3) * mass);
        }
        b.pose = b.end;
    }
    CHECK(touched > 10);
    CHECK(fsi_shell_remove_spring(s, 1) == FSI_OK);
    CHECK(fsi_shell_settle(s, 500) == FSI_OK);
    for (k = 0; k < s->vertex_count; k++) {
        const fsi_vec3 f = fsi_v3(0, 0, (fsi_real)(-9.81 * (double)s->mass[k]));
        weight = fsi_v3_add(weight, f);
        moment = fsi_v3_add(moment, fsi_v3_cross(s->position[k], f));
    }
    CHECK(fsi_shell_obstacle_reaction(s, 0, &force, &torque) == FSI_OK);
    CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(force, weight)), 0, TOL(1e-4, 1e-2) * 9.81 * mass);
    CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(torque, moment)), 0, TOL(1e-4, 1e-2) * 9.81 * mass);
    CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(b.reaction_force, weight)), 0, TOL(1e-4, 1e-2) * 9.81 * mass);
    CHECK_NEAR(fsi_v3_norm(b.impulse) + fsi_v3_norm(b.angular_impulse), 0, 0);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(box);
}

static void test_reactions_are_all_that_the_sheet_loses(void)
{
    keep_account(0);
    keep_account(5); /* what the drag takes nobody gets */
}

/* A load in the middle of a body that is carried along gives it no turn, however fast; moments about the origin are
   those of where it has been. At rest all obstacles of a body count, of both modes, and it gets no impulse. */
static void test_moments_on_moving_bodies_are_about_where_they_are(void)
{
    const fsi_vec3 x[2] = { fsi_v3(1, 0, (fsi_real)0.5), fsi_v3(0, 0, (fsi_real)0.2) };
    const fsi_real mass[2] = { 2, 1 };
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_context c = fsi_default_context();
    fsi_mesh *left = make_box(fsi_v3(0, 0, 0), 0.1, 0.1, 0.1), *right = make_box(fsi_v3(1, 0, 0), 0.1, 0.1, 0.1);
    int substeps, mode, k;
    d.context = &c;
    d.vertices = x;
    d.vertex_count = 2;
    d.vertex_mass = mass;
    for (substeps = 1; substeps <= 4; substeps += 3) {
        fsi_body b = fsi_default_body();
        fsi_shell *s = NULL;
        fsi_vec3 torque;
        double at = 0;
        d.substeps = substeps;
        if (!left || !right || !CHECK(fsi_shell_create(&s, &d) == FSI_OK)) return;
        CHECK(fsi_shell_attach(s, 1, add_obstacle(s, left, &b)) == FSI_OK);
        for (k = 0; k < 5; k++) {
            b.pose = b.end;
            b.end.position.x += (fsi_real)0.2;
            CHECK(fsi_shell_step(s, (fsi_real)0.04) == FSI_OK);
        }
        for (k = 1; k <= substeps; k++) at += ((double)b.pose.position.x + 0.2 * k / substeps) / substeps;
        CHECK(fsi_shell_obstacle_reaction(s, 0, NULL, &torque) == FSI_OK);
        CHECK_NEAR(b.reaction_force.z, -9.81, TOL(1e-9, 1e-2));
        CHECK_NEAR(fsi_v3_norm(b.reaction_torque), 0, TOL(1e-9, 1e-2));
        CHECK_NEAR(torque.y, 9.81 * at, TOL(1e-9, 1e-2));
        fsi_shell_destroy(s);
    }
    for (mode = 0; mode < 2; mode++) {
        fsi_shell_spring_desc p = fsi_shell_default_spring_desc();
        fsi_body b = make_body(fsi_v3((fsi_real)0.5, 0, 0));
        fsi_shell *s = NULL;
        d.substeps = 1;
        if (!CHECK(fsi_shell_create(&s, &d) == FSI_OK)) break;
        b.mode = mode ? FSI_BODY_COUPLED : FSI_BODY_PRESCRIBED;
        s->pinned[0] = s->pinned[1] = 1;
        p.stiffness = 1000;
        for (k = 0; k < 2; k++) {
            p.vertex = k;
            p.obstacle = add_obstacle(s, k ? left : right, &b);
            p.anchor = fsi_v3((fsi_real)(1 - k), 0, (fsi_real)0.1);
            CHECK(fsi_shell_add_spring(s, &p, NULL) == FSI_OK);
        }
        b.force = fsi_v3(0, 0, (fsi_real)-29.43);
        CHECK(fsi_shell_settle(s, 500) == FSI_OK);
        if (mode == 0) CHECK_NEAR(b.reaction_force.z, 1000 * (0.1 + 0.4), TOL(1e-9, 1e-2));
        else CHECK_NEAR(b.reaction_force.z, 29.43, 0.03);
        CHECK_NEAR(fsi_v3_norm(b.impulse) + fsi_v3_norm(b.angular_impulse), 0, 0);
        fsi_shell_destroy(s);
    }
    fsi_mesh_destroy(left);
    fsi_mesh_destroy(right);
}

/* What is laid within the range of the contacts is borne, not thrown up. */
static void test_what_begins_within_range_is_not_thrown(void)
{
    fsi_shell_material m = fsi_shell_default_material();
    fsi_shell_desc d = fsi_shell_default_desc();
    fsi_mesh *box = make_box(fsi_v3(0, 0, (fsi_real)-0.5), 1, 1, 0.5);
    fsi_shell *s;
    double highest = 0, lowest = 1;
    int k, i;
    d.contact_range = (fsi_real)0.04;
    s = make_sheet(NULL, d, &m, 0.004);
    if (!box || !s) return;
    add_obstacle(s, box, NULL);
    for (k = 0; k < 100; k++) {
        if (!CHECK(fsi_shell_step(s, (fsi_real)0.01) == FSI_OK)) break;
        for (i = 0; i < s->vertex_count; i++) {
            highest = fmax(highest, (double)s->position[i].z);
            lowest = fmin(lowest, (double)s->position[i].z);
        }
    }
    CHECK(highest < 0.045);
    CHECK(lowest > 0);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(box);
}

/* A held corner keeps its gap to a wall, whatever pushes it: the stiffness of what rests on a floor does not follow. */
static void test_what_is_held_at_a_wall_does_not_stiffen_contacts(void)
{
    fsi_context c = fsi_default_context();
    fsi_shell_desc d = fsi_shell_default_desc();
    const fsi_shell_material m = fsi_shell_default_material();
    fsi_mesh *ground = make_box(fsi_v3(0, 0, (fsi_real)-0.1), 2, 2, 0.1);
    double most = 0;
    fsi_shell *s;
    int k;
    d.contact_range = (fsi_real)0.01;
    s = make_sheet(&c, d, &m, 2e-4);
    if (!s || !ground || !CHECK(fsi_shell_add_mesh(s, ground, NULL) == FSI_OK)) return;
    s->pinned[0] = 1;
    for (k = 0; k < 40; k++) {
        CHECK(fsi_shell_step(s, (fsi_real)0.005) == FSI_OK);
        most = fmax(most, s->stats.contact_stiffness);
    }
    printf("   stiffness %.3g m^2/s^2 at most\n", most);
    CHECK(most > 0 && most < 0.5); /* 2.2 where what is held counts */
    fsi_shell_destroy(s);
    fsi_mesh_destroy(ground);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_sheet_bears_the_weight_of_a_body);
    RUN(test_free_bodies_keep_their_spin);
    RUN(test_damping_is_what_was_asked_for_in_both_integrators);
    RUN(test_springs_damp_alike_in_both_integrators);
    RUN(test_wind_is_no_elastic_energy);
    RUN(test_segments_that_cross_in_the_plane_are_refused);
    RUN(test_creases_that_are_no_folds_are_refused);
    RUN(test_obstacles_go_without_memory);
    RUN(test_attached_vertices_go_on_arcs);
    RUN(test_spring_ends_are_where_they_were_after_load);
    RUN(test_what_rests_stays_at_rest_in_shorter_steps);
    RUN(test_prescribed_bodies_feel_all_their_obstacles);
    RUN(test_clearance_holds_all_over_a_triangle);
    RUN(test_segments_that_are_there_twice_are_refused);
    RUN(test_long_lists_of_creases_and_joints_take_little_time);
    RUN(test_teleporting_a_body_takes_all_its_obstacles_along);
    RUN(test_new_obstacles_meet_what_was_written);
    RUN(test_the_owners_pins_outlive_attachments);
    RUN(test_lone_points_meet_in_the_plane);
    RUN(test_each_input_that_is_no_number_is_named_and_changes_nothing);
    RUN(test_reactions_are_all_that_the_sheet_loses);
    RUN(test_moments_on_moving_bodies_are_about_where_they_are);
    RUN(test_what_begins_within_range_is_not_thrown);
    RUN(test_what_is_held_at_a_wall_does_not_stiffen_contacts);
    return TEST_END();
}
