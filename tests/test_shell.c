/* test_shell.c - what fsi_shell.h promises: bad input, memory, threads, state, obstacles, pins, springs, skins
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_shell.h"
#include "kit/test_shell.h"

/* ---- making one ------------------------------------------------------------------------------------------------- */

/* A cloth of n x n cells over [0, size]^2 at height z. */
static scene cloth_scene(int n, double size, double z)
{
    scene c = scene_empty();
    scene_sheet(&c, EQUILATERAL, n, n, size, size);
    scene_shift(&c, 0, 0, 0, z);
    c.material[0].young = (fsi_real)1e5;
    c.material[0].density = 200;
    return c;
}

static fsi_shell *make_cloth(int n, double size, double z, fsi_context *context)
{
    scene c = cloth_scene(n, size, z);
    fsi_shell *s;
    c.context = context;
    s = scene_make(&c);
    scene_free(&c);
    return s;
}

static void test_a_simulator_is_made_and_let_go(void)
{
    fsi_context context = fsi_default_context();
    scene c = cloth_scene(3, 1, 0);
    fsi_shell_desc d;
    fsi_shell *s = (fsi_shell *)&d;
    size_t live = test_live_bytes();
    int k;
    test_fail_allocator(&context, 0);
    fsi_shell_destroy(NULL);
    fsi_shell_skin_destroy(NULL);
    CHECK(fsi_shell_create(&s, NULL) == FSI_ERROR_COOKIE && s == NULL);
    memset(&d, 0, sizeof d);
    CHECK(fsi_shell_create(&s, &d) == FSI_ERROR_COOKIE && s == NULL);
    CHECK(fsi_shell_create(NULL, &d) == FSI_ERROR_ARGUMENT);
    c.context = &context;
    for (k = 0; k < 2; k++) {
        s = scene_make(&c);
        CHECK(s->vertex_count == c.vertices && s->triangle_count == c.triangles && s->segment_count == 0 &&
              s->time == 0);
        CHECK(memcmp(s->triangles, c.triangle, 3 * sizeof(int) * (size_t)c.triangles) == 0);
        CHECK_NEAR(total_mass(s), 200 * 0.001, TOL(1e-12, 1e-6));
        CHECK(s->stats.bytes == context.bytes && context.bytes > 0 && fsi_shell_error(s) == &context.error);
        CHECK(s->desc.vertices == NULL && s->desc.materials == NULL);
        fsi_shell_destroy(s);
        CHECK(context.bytes == 0 && test_live_bytes() == live);
        c.context = k == 0 ? &context : NULL;
    }
    scene_free(&c);
}

static void test_calls_without_a_simulator_are_refused(void)
{
    fsi_vec3 x = v3(0, 0, 0);
    size_t size;
    CHECK(fsi_shell_step(NULL, 1) == FSI_ERROR_COOKIE && fsi_shell_settle(NULL, 1) == FSI_ERROR_COOKIE);
    CHECK(fsi_shell_set_desc(NULL, NULL) == FSI_ERROR_COOKIE &&
          strstr(fsi_shell_error(NULL)->message, "context.error.message"));
    CHECK(fsi_shell_add_obstacle(NULL, NULL, NULL) == FSI_ERROR_COOKIE &&
          fsi_shell_remove_obstacle(NULL, 0) == FSI_ERROR_COOKIE);
    CHECK(fsi_shell_teleport_obstacle(NULL, 0) == FSI_ERROR_COOKIE &&
          fsi_shell_obstacle_reaction(NULL, 0, &x, &x) == FSI_ERROR_COOKIE);
    CHECK(fsi_shell_attach(NULL, 0, 0) == FSI_ERROR_COOKIE && fsi_shell_detach(NULL, 0) == FSI_ERROR_COOKIE);
    CHECK(fsi_shell_add_spring(NULL, NULL, NULL) == FSI_ERROR_COOKIE &&
          fsi_shell_set_spring(NULL, 0, NULL) == FSI_ERROR_COOKIE);
    CHECK(fsi_shell_remove_spring(NULL, 0) == FSI_ERROR_COOKIE &&
          fsi_shell_spring_force(NULL, 0, &x) == FSI_ERROR_COOKIE);
    CHECK(fsi_shell_save(NULL, NULL, 0, &size) == FSI_ERROR_COOKIE &&
          fsi_shell_load(NULL, NULL, 0) == FSI_ERROR_COOKIE);
    CHECK(fsi_shell_skin_update(NULL, NULL, NULL, NULL) == FSI_ERROR_COOKIE && fsi_shell_hash(NULL) == 0);
    fsi_shell_debug_draw(NULL, NULL);
}

/* ---- bad descriptions ------------------------------------------------------------------------------------------- */

/* create refuses d with this status; the message holds `word`; nothing is left behind. */
static void refuse(const fsi_shell_desc *d, fsi_status status, const char *word)
{
    fsi_context context = fsi_default_context();
    fsi_shell_desc e = *d;
    fsi_shell *s = (fsi_shell *)&e;
    const size_t live = test_live_bytes();
    test_fail_allocator(&context, 0);
    e.context = &context;
    if (!CHECK(fsi_shell_create(&s, &e) == status)) printf("  for '%s': %s\n", word, context.error.message);
    if (!CHECK(strstr(context.error.message, word) != NULL))
        printf("  '%s' is not in '%s'\n", word, context.error.message);
    CHECK(s == NULL && context.error.status == status && context.bytes == 0 && test_live_bytes() == live);
    fsi_shell_destroy(s);
}

#define REFUSED(change, status, word) do { d = scene_desc(&c); change; refuse(&d, status, word); } while (0)
#define REFUSED_RANGE(object, field, lo, hi) do { \
        const fsi_real kept_ = object.field, bad_[4] = { (fsi_real)(lo), (fsi_real)(hi), (fsi_real)test_nan(), (fsi_real)test_inf() }; \
        int k_; \
        for (k_ = 0; k_ < 4; k_++) { \
            object.field = bad_[k_]; \
            refuse(&d, k_ < 2 ? FSI_ERROR_ARGUMENT : FSI_ERROR_NAN, #field); \
        } \
        object.field = kept_; \
    } while (0)

static void test_every_setting_is_checked_and_named(void)
{
    scene c = cloth_scene(2, 1, 0);
    fsi_shell_desc d = scene_desc(&c);
    REFUSED_RANGE(d, gravity.x, -1e10, 1e10);
    REFUSED_RANGE(d, gravity.y, -1e10, 1e10);
    REFUSED_RANGE(d, gravity.z, -1e10, 1e10);
    REFUSED_RANGE(d, tolerance, 0, 2);
    REFUSED_RANGE(d, contact_range, -1, 1e7);
    REFUSED_RANGE(d, friction, -0.1, 11);
    REFUSED_RANGE(d, friction_speed, 0, 1e7);
    REFUSED_RANGE(d, wind.x, -1e7, 1e7);
    REFUSED_RANGE(d, wind.y, -1e7, 1e7);
    REFUSED_RANGE(d, wind.z, -1e7, 1e7);
    REFUSED_RANGE(d, air_density, -1, 1e7);
    REFUSED_RANGE(d, drag, -1, 11);
    REFUSED(d.dim = 4, FSI_ERROR_ARGUMENT, "dim");
    REFUSED(d.dim = 2, FSI_ERROR_ARGUMENT, "2D");
    REFUSED(d.integrator = (fsi_shell_integrator)2, FSI_ERROR_ARGUMENT, "integrator");
    REFUSED(d.substeps = 0, FSI_ERROR_ARGUMENT, "substeps");
    REFUSED(d.substeps = 1001, FSI_ERROR_ARGUMENT, "substeps");
    REFUSED(d.max_newton = 0, FSI_ERROR_ARGUMENT, "max_newton");
    REFUSED(d.friction_iterations = 0, FSI_ERROR_ARGUMENT, "friction_iterations");
    REFUSED(d.friction_iterations = 21, FSI_ERROR_ARGUMENT, "friction_iterations");
    scene_free(&c);
}

static void test_every_number_of_a_material_is_checked_and_named(void)
{
    scene c = cloth_scene(2, 1, 0);
    fsi_shell_desc d = scene_desc(&c);
    fsi_shell_material *m = &c.material[2], good = *m;
    fsi_shell *made;
    REFUSED_RANGE((*m), density, 0, 1e21);
    REFUSED_RANGE((*m), thickness, 0, 1e4);
    REFUSED_RANGE((*m), radius, -1, 1e4);
    REFUSED_RANGE((*m), radius_across, -1, 1e4);
    REFUSED_RANGE((*m), young, 0, 1e21);
    REFUSED_RANGE((*m), young_weft, -1, 1e21);
    REFUSED_RANGE((*m), poisson, -1, 0.51);
    REFUSED_RANGE((*m), shear, -1, 1e21);
    REFUSED_RANGE((*m), bend, -2, 1e21);
    REFUSED_RANGE((*m), bend_weft, -2, 1e21);
    REFUSED_RANGE((*m), bend_shear, -2, 1e21);
    REFUSED_RANGE((*m), damping_mass, -1, 1e10);
    REFUSED_RANGE((*m), damping_stiffness, -1, 1e10);
    REFUSED_RANGE((*m), clearance, -1, 1e4);
    REFUSED(m->cookie = 0, FSI_ERROR_COOKIE, "material 2");
    *m = good;
    REFUSED(m->membrane = (fsi_shell_membrane)7, FSI_ERROR_ARGUMENT, "material 2");
    *m = good;
    REFUSED(m->bending = (fsi_shell_bending)2, FSI_ERROR_ARGUMENT, "material 2");
    *m = good;
    REFUSED((m->young_weft = m->young * 20, m->poisson = (fsi_real)0.3), FSI_ERROR_ARGUMENT, "poisson");
    *m = good;
    REFUSED((m->membrane = FSI_SHELL_NEO_HOOKEAN, m->young_weft = m->young / 2), FSI_ERROR_ARGUMENT, "isotropic");
    *m = good;
    m->poisson = (fsi_real)0.5; /* rubber rods; a beam with EI = 1 N m^2 and 1 kg/m, 0.1 mm thick */
    m->radius = (fsi_real)5e-5;
    m->density = (fsi_real)1.3e8;
    m->young = (fsi_real)2e17;
    CHECK(fsi_shell_create(&made, &d) == FSI_OK);
    fsi_shell_destroy(made);
    scene_free(&c);
}

static void test_arrays_that_make_no_sense_are_refused_by_element(void)
{
    scene c = cloth_scene(2, 1, 0);
    fsi_vec3 many[40];
    fsi_shell_desc d;
    fsi_shell_crease crease;
    int joint[3] = { 0, 1, 2 }, t[6] = { 0, 1, 3, 3, 1, 0 }, twin[4] = { 0, 1, 1, 0 }, segment[2] = { 0, 1 }, k;
    fsi_real mass[40] = { 0 };
    const int whole = c.triangle[4];
    for (k = 0; k < 40; k++) many[k] = v3(1, 0, 0);
    many[2].y = (fsi_real)test_nan();
    memset(&crease, 0, sizeof crease);
    crease.b = 1;
    REFUSED(d.vertices = NULL, FSI_ERROR_ARGUMENT, "vertices");
    REFUSED(d.vertex_count = 0, FSI_ERROR_ARGUMENT, "vertex_count");
    REFUSED(d.triangles = NULL, FSI_ERROR_ARGUMENT, "triangle");
    REFUSED(d.triangle_count = -1, FSI_ERROR_ARGUMENT, "triangle");
    REFUSED(d.segment_count = 2, FSI_ERROR_ARGUMENT, "segment");
    REFUSED(d.joint_count = 2, FSI_ERROR_ARGUMENT, "joint");
    REFUSED(d.crease_count = 1, FSI_ERROR_ARGUMENT, "crease");
    REFUSED(d.material_count = 0, FSI_ERROR_ARGUMENT, "material");
    REFUSED(d.materials = NULL, FSI_ERROR_ARGUMENT, "materials");
    REFUSED(d.vertices = many, FSI_ERROR_NAN, "vertex 2");
    REFUSED(d.rest = many, FSI_ERROR_NAN, "rest position 2");
    REFUSED(d.warp = many, FSI_ERROR_NAN, "warp 2");
    REFUSED((d.segments = segment, d.segment_count = 1, d.segment_director = many + 2), FSI_ERROR_NAN,
            "segment_director 0");
    REFUSED((d.joints = joint, d.joint_count = 1), FSI_ERROR_ARGUMENT, "joint 0");
    REFUSED((crease.angle = (fsi_real)4, d.creases = &crease, d.crease_count = 1), FSI_ERROR_ARGUMENT, "crease 0");
    REFUSED((crease.angle = (fsi_real)test_nan(), d.creases = &crease, d.crease_count = 1), FSI_ERROR_NAN, "crease 0");
    REFUSED((crease.angle = 0, crease.stiffness = -1, d.creases = &crease, d.crease_count = 1), FSI_ERROR_ARGUMENT,
            "crease 0");
    REFUSED((mass[5] = -1, d.vertex_mass = mass), FSI_ERROR_ARGUMENT, "vertex 5");
    REFUSED((mass[5] = (fsi_real)test_nan(), d.vertex_mass = mass), FSI_ERROR_ARGUMENT, "vertex 5");
    c.triangle[4] = 99;
    REFUSED((void)0, FSI_ERROR_ARGUMENT, "triangle 1 names vertex 99");
    c.triangle[4] = -1;
    REFUSED((void)0, FSI_ERROR_ARGUMENT, "triangle 1");
    c.triangle[4] = c.triangle[3];
    REFUSED((void)0, FSI_ERROR_MESH, "triangle 1 names");
    c.triangle[4] = whole;
    c.triangle_material[3] = 4;
    REFUSED((void)0, FSI_ERROR_ARGUMENT, "triangle 3 has material 4");
    c.triangle_material[3] = 0;
    REFUSED((d.triangles = t, d.triangle_count = 2), FSI_ERROR_MESH, "triangles 0 and 1");
    REFUSED((d.triangle_count = 0, d.segments = twin, d.segment_count = 2), FSI_ERROR_MESH, "segments 0 and 1");
    REFUSED(d.triangle_count = 0, FSI_ERROR_MESH, "vertex 0 has no mass");
    c.x[1].x = (fsi_real)1e13;
    REFUSED((void)0, FSI_ERROR_LIMIT, "vertex 1");
    scene_free(&c);
}

static void test_shapes_without_area_or_length_are_refused(void)
{
    scene c = scene_empty();
    fsi_shell_desc d;
    scene_vertex(&c, 0, 0, 0);
    scene_vertex(&c, 1, 0, 0);
    scene_vertex(&c, 2, 0, 0);
    scene_triangle(&c, 0, 1, 2);
    REFUSED((void)0, FSI_ERROR_MESH, "triangle 0 has no area");
    c.triangles = 0;
    scene_segment(&c, 1, 2);
    scene_segment(&c, 0, 1);
    c.x[0] = c.x[1];
    REFUSED((void)0, FSI_ERROR_MESH, "segment 1 has no length");
    scene_free(&c);
}

/* ---- bad places ------------------------------------------------------------------------------------------------- */

static void test_what_touches_or_crosses_at_first_is_refused_and_named(void)
{
    scene c = cloth_scene(2, 1, 0);
    fsi_shell_desc d;
    fsi_shell *s;
    const int n = c.vertices, k = scene_sheet(&c, RIGHT, 1, 1, 0.4, 0.4);
    int i;
    scene_shift(&c, k, 0.3, 0.3, -0.2);
    for (i = k; i < c.vertices; i++) c.x[i].z = (fsi_real)(0.4 * (i % 2) - 0.17); /* upright, through the cloth */
    REFUSED((void)0, FSI_ERROR_MESH, "passes through the triangle");
    CHECK(n == k);
    d = scene_desc(&c);
    d.contact = 0; /* then nothing is looked at */
    CHECK(fsi_shell_create(&s, &d) == FSI_OK);
    CHECK(fsi_shell_count_intersections(s) == 0 && fsi_shell_step(s, (fsi_real)0.01) == FSI_OK);
    fsi_shell_destroy(s);
    d.contact = 1;
    d.self_contact = 0;
    CHECK(fsi_shell_create(&s, &d) == FSI_OK);
    fsi_shell_destroy(s);
    /* in its plane */
    for (i = k; i < c.vertices; i++) c.x[i] = v3(0.3 + 0.4 * ((i - k) / 2), 0.3 + 0.4 * ((i - k) % 2), 0);
    REFUSED((void)0, FSI_ERROR_MESH, "touch");
    for (i = k; i < c.vertices; i++) c.x[i].z = (fsi_real)0.001;
    c.material[0].clearance = (fsi_real)0.0006;
    REFUSED((void)0, FSI_ERROR_MESH, "clearance");
    c.material[0].clearance = (fsi_real)0.0004;
    s = scene_make(&c);
    fsi_shell_destroy(s);
    scene_free(&c);
}

/* In the plane segments cross segments; put there later as well as at first. */
static void test_segments_that_cross_in_the_plane_are_refused(void)
{
    scene c = scene_empty();
    fsi_shell_desc d;
    fsi_shell *s;
    c.desc.dim = 2;
    c.desc.gravity = v3(0, 0, 0);
    scene_rod(&c, 2, v3(0, 0, 0), v3(1, 0, 0));
    scene_rod(&c, 1, v3(0.3, -0.5, 0), v3(0.3, 0.5, 0));
    REFUSED((void)0, FSI_ERROR_MESH, "vertices 0 and 1");
    REFUSED((void)0, FSI_ERROR_MESH, "vertices 3 and 4");
    c.x[3].y = (fsi_real)0.1;
    s = scene_make(&c);
    s->position[3].y = (fsi_real)-0.1;
    CHECK(fsi_shell_count_intersections(s) == 1 && fsi_shell_step(s, (fsi_real)0.01) == FSI_ERROR_MESH);
    s->position[3].y = (fsi_real)0.1;
    CHECK(fsi_shell_count_intersections(s) == 0);
    step_ok(s, 0.01);
    fsi_shell_destroy(s);
    scene_free(&c);
}

static void test_points_in_one_place_are_refused(void)
{
    scene c = scene_empty();
    fsi_shell_desc d;
    int i;
    for (i = 0; i < 3; i++) scene_point(&c, i, 0, 0, 1);
    c.x[2] = c.x[0];
    REFUSED((void)0, FSI_ERROR_MESH, "touch");
    scene_free(&c);
}

/* ---- bad numbers in a step -------------------------------------------------------------------------------------- */

static void refuse_step(fsi_shell *s, double dt, fsi_status status, const char *word)
{
    const uint64_t hash = fsi_shell_hash(s);
    const double time = s->time;
    CHECK(fsi_shell_step(s, (fsi_real)dt) == status);
    if (!CHECK(strstr(fsi_shell_error(s)->message, word) != NULL))
        printf("  '%s' is not in '%s'\n", word, fsi_shell_error(s)->message);
    CHECK(fsi_shell_error(s)->status == status && fsi_shell_hash(s) == hash && s->time <= time);
}

static void test_bad_numbers_change_nothing(void)
{
    static const char *const word[4] = {"position of vertex 3", "velocity of vertex 3", "force of vertex 3",
                                        "target of vertex 3"};
    fsi_shell *s = make_cloth(2, 1, 0, NULL);
    fsi_vec3 *array[4], kept;
    double bad[2];
    int k, b;
    bad[0] = test_nan();
    bad[1] = test_inf();
    array[0] = s->position;
    array[1] = s->velocity;
    array[2] = s->force;
    array[3] = s->target;
    s->pinned[3] = 1;
    run_ok(s, 2, 0.01);
    for (b = 0; b < 2; b++) {
        for (k = 0; k < 4; k++) {
            kept = array[k][3];
            array[k][3].y = (fsi_real)bad[b];
            refuse_step(s, 0.01, FSI_ERROR_NAN, word[k]);
            CHECK(fsi_shell_settle(s, 100) == FSI_ERROR_NAN);
            array[k][3] = kept;
        }
        refuse_step(s, bad[b], FSI_ERROR_ARGUMENT, "dt");
    }
    kept = s->position[3];
    s->position[3].x = (fsi_real)1e13;
    refuse_step(s, 0.01, FSI_ERROR_LIMIT, "vertex 3");
    s->position[3] = kept;
    refuse_step(s, -1e-3, FSI_ERROR_ARGUMENT, "dt");
    refuse_step(s, 1e-13, FSI_ERROR_ARGUMENT, "dt");
    refuse_step(s, -1, FSI_ERROR_ARGUMENT, "dt");
    refuse_step(s, 1e6, FSI_ERROR_ARGUMENT, "dt");
    CHECK(fsi_shell_settle(s, 0) == FSI_ERROR_ARGUMENT);
    s->target[0] = v3(test_nan(), 0, 0); /* not looked at: it is not pinned */
    run_ok(s, 1, 0.01);
    s->force[1].z = (fsi_real)1e38;
    if (fsi_shell_step(s, 1000) == FSI_OK) CHECK(fsi_v3_is_finite(s->position[1]) && fsi_v3_is_finite(s->velocity[1]));
    fsi_shell_destroy(s);
}

static void test_a_held_twist_must_be_a_number(void)
{
    scene c = scene_empty();
    fsi_shell *s;
    scene_rod(&c, 4, v3(0, 0, 0), v3(1, 0, 0));
    s = scene_make(&c);
    scene_free(&c);
    s->twist[2] = (fsi_real)test_nan();
    s->twist_held[2] = 1;
    refuse_step(s, 0.01, FSI_ERROR_NAN, "twist of segment 2");
    s->twist[2] = (fsi_real)0.5;
    step_ok(s, 0.01);
    CHECK_NEAR(s->twist[2], 0.5, 0);
    fsi_shell_destroy(s);
}

static void test_settings_change_between_steps(void)
{
    fsi_shell *s = make_cloth(2, 1, 0, NULL);
    fsi_shell_desc d = s->desc;
    double fall;
    run_ok(s, 1, 0.1);
    fall = (double)s->velocity[0].z;
    CHECK_NEAR(fall, -0.981, TOL(1e-9, 1e-5));
    d.gravity = v3(0, 0, 0);
    d.substeps = 3;
    d.integrator = FSI_SHELL_BDF2;
    CHECK(fsi_shell_set_desc(s, &d) == FSI_OK);
    run_ok(s, 3, 0.1);
    CHECK_NEAR(s->velocity[0].z, fall, TOL(1e-9, 1e-5));
    CHECK(s->stats.substeps == 3 && s->desc.substeps == 3);
    d.tolerance = (fsi_real)test_nan();
    CHECK(fsi_shell_set_desc(s, &d) == FSI_ERROR_NAN && strstr(fsi_shell_error(s)->message, "tolerance"));
    d.tolerance = (fsi_real)1e-3;
    d.substeps = 0;
    CHECK(fsi_shell_set_desc(s, &d) == FSI_ERROR_ARGUMENT && s->desc.substeps == 3);
    d.cookie = 0;
    CHECK(fsi_shell_set_desc(s, &d) == FSI_ERROR_COOKIE && fsi_shell_set_desc(s, NULL) == FSI_ERROR_ARGUMENT);
    fsi_shell_destroy(s);
}

/* ---- a bit of everything ---------------------------------------------------------------------------------------- */

/* Cloth of two kinds, an elastic rod sewn to it, a bare chain, points; over a floor that tilts, with a body in the
   way. */
typedef struct all { fsi_shell *s; fsi_mesh *floor, *ball; fsi_body body; int floor_id, spring; int bound, stage; } all;

static void all_free(all *a)
{
    fsi_shell_destroy(a->s);
    fsi_mesh_destroy(a->floor);
    fsi_mesh_destroy(a->ball);
}

static scene all_scene(fsi_context *context, int n)
{
    scene c = cloth_scene(n, 0.5, 0.06);
    int i, k;
    c.context = context;
    c.desc.friction = (fsi_real)0.3;
    c.desc.integrator = FSI_SHELL_BDF2;
    c.desc.substeps = 2;
    c.desc.air_density = (fsi_real)1.2;
    c.desc.wind = v3(2, 1, 0);
    c.material[0].damping_stiffness = (fsi_real)1e-4;
    c.material[0].damping_mass = (fsi_real)0.1;
    c.material[1] = c.material[0];
    c.material[1].membrane = FSI_SHELL_NEO_HOOKEAN;
    c.material[1].bending = FSI_SHELL_SHAPE_OPERATOR;
    c.material[1].poisson = (fsi_real)0.4;
    for (i = 0; i < c.triangles / 2; i++) c.triangle_material[i] = 1;
    c.material[2].radius = (fsi_real)0.004;
    c.material[2].radius_across = (fsi_real)0.002;
    c.material[3].twist = 0;
    c.now = 2;
    k = scene_rod(&c, 4, v3(0.55, 0, 0.1), v3(0.75, 0.2, 0.1));
    scene_segment(&c, 0, k);
    c.now = 3;
    scene_rod(&c, 3, v3(0.1, 0.6, 0.05), v3(0.4, 0.7, 0.05));
    for (i = 0; i < 3; i++) scene_point(&c, 0.1 + 0.1 * i, 0.2, 0.08 + 0.01 * i, 0.002);
    return c;
}

/* Everything that allocates, in order; `stage` counts what has been done. Goes on where it stopped. */
static fsi_status all_build(all *a, fsi_context *context, int n, int steps)
{
    fsi_shell_obstacle_desc o = fsi_shell_default_obstacle_desc();
    fsi_shell_spring_desc p = fsi_shell_default_spring_desc();
    fsi_shell_skin *skin = NULL;
    fsi_status status = FSI_OK;
    fsi_vec3 fine[2];
    if (a->stage == 0) {
        scene c = all_scene(context, n);
        fsi_shell_desc d = scene_desc(&c);
        status = fsi_shell_create(&a->s, &d);
        scene_free(&c);
        if (status != FSI_OK) return status;
        a->stage++;
    }
    if (a->stage == 1) {
        o.mesh = a->floor;
        o.friction = (fsi_real)0.4;
        status = fsi_shell_add_obstacle(a->s, &o, &a->floor_id);
        if (status != FSI_OK) return status;
        a->stage++;
    }
    if (a->stage == 2) {
        o.mesh = a->ball;
        o.friction = (fsi_real)0.4;
        o.body = &a->body;
        status = fsi_shell_add_obstacle(a->s, &o, NULL);
        if (status != FSI_OK) return status;
        a->stage++;
    }
    if (a->stage == 3) {
        p.vertex = 2;
        p.anchor = v3(0, 0.3, 0.3);
        p.damping = 1;
        status = fsi_shell_add_spring(a->s, &p, &a->spring);
        if (status != FSI_OK) return status;
        a->stage++;
    }
    if (a->stage == 4) {
        status = fsi_shell_attach(a->s, a->s->vertex_count - 4, a->floor_id);
        if (status != FSI_OK) return status;
        a->stage++;
    }
    while (a->stage >= 5 && a->stage < 5 + steps) {
        const double t = 0.01 * (a->stage - 4);
        fsi_vec3 x[4];
        int i;
        for (i = 0; i < 4; i++) x[i] = v3(i & 1 ? 1 : -1, i & 2 ? 1 : -1, 0.2 * t * (i & 1 ? 1 : -1));
        CHECK(fsi_mesh_move(a->floor, x, 4) == FSI_OK);
        a->s->pinned[5] = 1;
        if (a->stage == 5) a->s->target[5] = a->s->position[5];
        else a->s->target[5].z = (fsi_real)(0.06 + 0.3 * t);
        a->body.end = a->body.pose;
        a->body.force = v3(0, 0, -0.981);
        status = fsi_shell_step(a->s, (fsi_real)0.01);
        if (status != FSI_OK) return status;
        a->body.pose = a->body.end;
        a->body.velocity = a->body.new_velocity;
        a->body.angular_velocity = a->body.new_angular_velocity;
        a->stage++;
    }
    if (a->stage == 5 + steps) {
        fine[0] = v3(0.2, 0.2, 0.1);
        fine[1] = v3(0.3, 0.2, 0.1);
        status = fsi_shell_skin_create(&skin, a->s, fine, 2);
        CHECK((status == FSI_OK) == (skin != NULL));
        fsi_shell_skin_destroy(skin);
        if (status != FSI_OK) return status;
        a->stage++;
    }
    return status;
}

static void all_begin(all *a)
{
    fsi_mass_properties p;
    memset(a, 0, sizeof *a);
    a->floor = make_box(NULL, 1, 1, 0);
    a->ball = make_box_at(NULL, 0.05, 0.05, 0.03, v3(0.25, 0.25, 0.15));
    CHECK(fsi_mesh_mass(a->ball, 500, 0, &p) == FSI_OK);
    a->body = fsi_body_from_mass(&p);
}

static void test_any_number_of_threads_gives_the_same_bits_threads(void)
{
    static const int threads[6] = { 1, 2, 3, 5, 8, 8 };
    const int steps = TEST_SLOWED ? 6 : 12, n = TEST_SLOWED ? 5 : 7;
    uint64_t first = 0;
    int k;
    for (k = 0; k < 6; k++) {
        fsi_context context = fsi_default_context();
        all a;
        uint64_t hash;
        if (k > 0) test_threads(&context, threads[k], k == 5);
        all_begin(&a);
        if (!CHECK(all_build(&a, &context, n, steps) == FSI_OK)) printf("%s\n", context.error.message);
        hash = fsi_shell_hash(a.s);
        hash = fsi_hash(&a.body.new_velocity, sizeof a.body.new_velocity, hash);
        hash = fsi_hash(a.s->contact_force, sizeof(fsi_vec3) * (size_t)a.s->vertex_count, hash);
        if (k == 0) first = hash;
        CHECK(hash == first && a.s->stats.contacts > 0);
        CHECK(fsi_shell_count_intersections(a.s) == 0);
        all_free(&a);
    }
}

static void *fail_once(void *user, size_t size, size_t align)
{
    void *p = test__alloc(user, size, align);
    if (!p) test__heap.fail_at = 0;
    return p;
}

/* Each allocation fails, it alone or all from it on; what failed has changed nothing, and the same call goes through
   later, to the same bits as if nothing had been. */
static void fail_allocations(int once)
{
    const int steps = 4, n = 2;
    const size_t live = test_live_bytes();
    fsi_context calm = fsi_default_context();
    uint64_t want;
    int seen[10] = { 0 }, k, done = 0, stage = 0;
    long fail;
    all a;
    all_begin(&a);
    CHECK(all_build(&a, &calm, n, steps) == FSI_OK);
    want = fsi_shell_hash(a.s);
    all_free(&a);
    for (fail = 1; !done && fail < 2000; fail += TEST_SLOWED ? 5 : 1) {
        fsi_context context = fsi_default_context();
        uint64_t hash;
        fsi_status status;
        all_begin(&a);
        test_fail_allocator(&context, fail);
        if (once) context.alloc = fail_once;
        status = all_build(&a, &context, n, steps);
        done = status == FSI_OK;
        if (!done) {
            CHECK(status == FSI_ERROR_MEMORY && context.error.status == FSI_ERROR_MEMORY);
            stage = a.stage;
            seen[stage]++;
            hash = fsi_shell_hash(a.s);
            if (!once) CHECK(all_build(&a, &context, n, steps) == FSI_ERROR_MEMORY && fsi_shell_hash(a.s) == hash);
            test_fail_allocator(&context, 0);
            if (!CHECK(all_build(&a, &context, n, steps) == FSI_OK))
                printf("  %ld: stage %d: %s\n", fail, a.stage, context.error.message);
        }
        if (!CHECK(fsi_shell_hash(a.s) == want)) printf("  after allocation %ld failed in stage %d\n", fail, stage);
        all_free(&a);
        CHECK(context.bytes == 0 && test_live_bytes() == live);
    }
    CHECK(done);
    /* in the third and fourth step nothing is new */
    for (k = 0; k < 10; k++) CHECK(TEST_SLOWED || k == 7 || k == 8 || seen[k] > 0);
}

static void test_failing_allocations_change_nothing(void) { fail_allocations(0); }
static void test_an_allocation_that_fails_once_changes_nothing(void) { fail_allocations(1); }

static void test_settling_without_memory_changes_nothing(void)
{
    fsi_context context = fsi_default_context();
    fsi_mesh *floor = make_box(NULL, 2, 2, 0);
    fsi_shell *s;
    uint64_t hash, want = 0;
    long fail;
    int failures = 0;
    for (fail = 0; fail < 60; fail++) {
        fsi_status status;
        test_fail_allocator(&context, 0);
        s = make_cloth(2, 1, 0.1, &context);
        add_mesh(s, floor, NULL, 0);
        hash = fsi_shell_hash(s);
        test_fail_allocator(&context, fail);
        status = fsi_shell_settle(s, 200);
        if (status != FSI_OK) {
            CHECK(status == FSI_ERROR_MEMORY && fsi_shell_hash(s) == hash);
            failures++;
            test_fail_allocator(&context, 0);
            settle_ok(s);
        }
        if (fail == 0) want = fsi_shell_hash(s);
        CHECK(fsi_shell_hash(s) == want);
        fsi_shell_destroy(s);
        if (fail > 0 && status == FSI_OK) break;
    }
    CHECK(failures > 3 && fail < 60 && context.bytes == 0);
    fsi_mesh_destroy(floor);
}

static void test_a_steady_state_allocates_nothing(void)
{
    fsi_context context = fsi_default_context();
    fsi_mesh *floor = make_box(NULL, 2, 2, 0);
    fsi_shell *s = make_cloth(4, 1, 0.02, &context);
    long long allocs;
    add_mesh(s, floor, NULL, 0.2);
    run_ok(s, 30, 0.02);
    allocs = s->stats.allocs;
    run_ok(s, 30, 0.02);
    CHECK(s->stats.allocs == allocs && context.allocs == allocs);
    CHECK(s->stats.bytes == context.bytes && s->stats.contacts > 0);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(floor);
    CHECK(context.bytes == 0);
}

/* ---- state ------------------------------------------------------------------------------------------------------ */

/* Save in the middle, go on, load, go on again: the same bits, in this simulator and in another one made alike. */
static void test_a_loaded_state_goes_on_with_the_same_bits(void)
{
    const int steps = 12;
    fsi_context calm = fsi_default_context();
    fsi_vec3 corner[4], *end;
    unsigned char *state;
    uint64_t want, middle;
    fsi_body body;
    size_t size = 0, need;
    all a, b;
    int k, i;
    all_begin(&a);
    CHECK(all_build(&a, &calm, 3, 6) == FSI_OK && a.stage == 12);
    CHECK(fsi_shell_save(a.s, NULL, 0, &size) == FSI_OK && size > 0);
    state = (unsigned char *)malloc(size);
    CHECK(fsi_shell_save(a.s, state, size, &need) == FSI_OK && need == size);
    middle = fsi_shell_hash(a.s);
    body = a.body;
    for (i = 0; i < 4; i++) corner[i] = a.floor->vertices[a.floor->source_vertex[i]];
    a.stage = 11;
    CHECK(all_build(&a, &calm, 3, steps) == FSI_OK);
    want = fsi_shell_hash(a.s);
    CHECK(want != middle);
    end = (fsi_vec3 *)malloc(sizeof *end * (size_t)a.s->vertex_count);
    memcpy(end, a.s->position, sizeof *end * (size_t)a.s->vertex_count);
    all_begin(&b);
    CHECK(all_build(&b, &calm, 3, 0) == FSI_OK);
    for (k = 0; k < 2; k++) {
        all *c = k == 0 ? &a : &b;
        c->body = body;
        CHECK(fsi_mesh_set(c->floor, corner, 4) == FSI_OK);
        CHECK(fsi_shell_load(c->s, state, size) == FSI_OK && fsi_shell_hash(c->s) == middle);
        CHECK_NEAR(c->s->time, 0.06, TOL(1e-12, 1e-7));
        c->s->pinned[5] = 1;
        c->stage = 11;
        CHECK(all_build(c, &calm, 3, steps) == FSI_OK);
        if (sizeof(fsi_real) == 8) CHECK(fsi_shell_hash(c->s) == want); /* in float a body's pose is rounded where it is
                                                                           handed over */
        for (i = 0; i < c->s->vertex_count; i++) CHECK(apart(c->s->position[i], end[i]) <= TOL(0, 1e-4));
    }
    free(end);
    free(state);
    all_free(&a);
    all_free(&b);
}

static void test_damaged_and_foreign_states_are_refused(void)
{
    fsi_context context = fsi_default_context();
    fsi_shell *s = make_cloth(2, 1, 0, &context), *other = make_cloth(3, 1, 0, &context);
    unsigned char *state;
    uint64_t hash;
    size_t size, k;
    run_ok(s, 2, 0.01);
    CHECK(fsi_shell_save(s, NULL, 0, &size) == FSI_OK);
    state = (unsigned char *)malloc(size + 8);
    CHECK(fsi_shell_save(s, state, size - 1, NULL) != FSI_OK);
    CHECK(fsi_shell_save(s, state, size, NULL) == FSI_OK);
    run_ok(s, 2, 0.01);
    hash = fsi_shell_hash(s);
    for (k = 0; k < size; k += 1 + size / 50) CHECK(fsi_shell_load(s, state, k) != FSI_OK && fsi_shell_hash(s) == hash);
    CHECK(fsi_shell_load(s, state, size + 1) == FSI_ERROR_FORMAT && fsi_shell_load(s, NULL, size) != FSI_OK &&
          fsi_shell_hash(s) == hash);
    for (k = 0; k < size; k += 1 + size / 300) {
        state[k] ^= 0x41;
        CHECK(fsi_shell_load(s, state, size) == FSI_ERROR_FORMAT && fsi_shell_hash(s) == hash);
        state[k] ^= 0x41;
    }
    hash = fsi_shell_hash(other);
    CHECK(fsi_shell_load(other, state, size) == FSI_ERROR_FORMAT && fsi_shell_hash(other) == hash);
    CHECK(fsi_shell_load(s, state, size) == FSI_OK);
    run_ok(s, 1, 0.01);
    fsi_shell_destroy(s);
    fsi_shell_destroy(other);
    free(state);
}

/* A vertex may be put elsewhere; not into anything. */
static void test_teleporting_is_checked(void)
{
    scene c = cloth_scene(3, 1, 0);
    fsi_shell *s;
    fsi_vec3 kept[3];
    const int n = c.vertices;
    int i;
    scene_sheet(&c, RIGHT, 1, 1, 0.2, 0.2);
    scene_shift(&c, n, 0.4, 0.4, 0.2);
    s = scene_make(&c);
    scene_free(&c);
    step_ok(s, 0.001);
    for (i = 0; i < 3; i++) kept[i] = s->position[n + i];
    CHECK(fsi_shell_count_intersections(s) == 0);
    s->position[n].z -= (fsi_real)0.4;
    CHECK(fsi_shell_count_intersections(s) > 0); /* counted where they were put */
    refuse_step(s, 0.001, FSI_ERROR_MESH, "passes through");
    CHECK(fsi_shell_settle(s, 10) == FSI_ERROR_MESH);
    s->position[n] = kept[0];
    CHECK(fsi_shell_count_intersections(s) == 0);
    for (i = n; i < s->vertex_count; i++) { /* the whole square to the other side: there was no way, and none is
                                               needed */
        s->position[i].z -= (fsi_real)0.4;
        s->velocity[i] = v3(0, 0, 1);
    }
    step_ok(s, 0.001);
    CHECK_NEAR(s->position[n].z, (double)kept[0].z - 0.4 + 0.001, 1e-4);
    CHECK_NEAR(s->velocity[n].z, 1, 0.02);
    CHECK(fsi_shell_count_intersections(s) == 0);
    fsi_shell_destroy(s);
}

/* ---- pins ------------------------------------------------------------------------------------------------------- */

static void test_pins_reach_their_targets_exactly(void)
{
    scene c = cloth_scene(4, 1, 0);
    fsi_shell *s;
    int k, sub;
    for (sub = 1; sub <= 3; sub += 2) {
        c.desc.substeps = sub;
        s = scene_make(&c);
        s->pinned[0] = s->pinned[3] = 1;
        for (k = 0; k < 10; k++) {
            const fsi_vec3 was = s->position[0];
            s->target[0] = v3(0.02 * k, 0.3 * k, -0.1);
            step_ok(s, 0.01);
            CHECK(apart(s->position[0], v3(0.02 * k, 0.3 * k, -0.1)) <= 0 && apart(s->position[3], s->target[3]) <= 0);
            if (k > 0) CHECK_NEAR(s->velocity[0].y, (double)(s->position[0].y - was.y) / 0.01, TOL(1e-9, 1e-3));
        }
        s->pinned[0] = 0;
        step_ok(s, 0.01);
        CHECK(apart(s->target[0], s->position[0]) <= 0); /* follows while free */
        fsi_shell_destroy(s);
    }
    scene_free(&c);
}

/* A pinned point that is told to go through a pinned sheet. */
static void test_a_pin_that_cannot_get_there_is_named_and_nothing_changes(void)
{
    scene c = cloth_scene(2, 1, 0);
    fsi_shell *s;
    fsi_vec3 was;
    const int n = c.vertices;
    int i;
    scene_point(&c, 0.5, 0.4, 0.1, 1);
    s = scene_make(&c);
    for (i = 0; i <= n; i++) s->pinned[i] = 1;
    step_ok(s, 0.01);
    was = s->position[n];
    s->target[n].z = -1;
    refuse_step(s, 0.01, FSI_ERROR_CONVERGENCE, "in the way");
    CHECK(n == 10 && strstr(fsi_shell_error(s)->message, "vertex 10") &&
          strstr(fsi_shell_error(s)->message, "triangle"));
    CHECK(apart(was, s->position[n]) <= 0 && fsi_shell_count_intersections(s) == 0);
    s->target[n].z = (fsi_real)0.05;
    step_ok(s, 0.01);
    CHECK_NEAR(s->position[n].z, 0.05, 1e-7);
    fsi_shell_destroy(s);
    scene_free(&c);
}

/* ---- obstacles -------------------------------------------------------------------------------------------------- */

static void test_bad_obstacles_and_springs_are_refused(void)
{
    fsi_shell *s = make_cloth(2, 1, 0.2, NULL);
    fsi_mesh *floor = make_box(NULL, 1, 1, 0), *wall = make_box(NULL, 1, 1, 0.5);
    fsi_shell_obstacle_desc o = fsi_shell_default_obstacle_desc();
    fsi_shell_spring_desc p = fsi_shell_default_spring_desc(), q = p;
    const uint64_t hash = fsi_shell_hash(s);
    fsi_body body = fsi_default_body();
    fsi_vec3 f;
    int id = 77;
    CHECK(fsi_shell_add_obstacle(s, &o, &id) == FSI_ERROR_ARGUMENT && strstr(fsi_shell_error(s)->message, "mesh"));
    o.mesh = floor;
    o.friction = (fsi_real)test_nan();
    CHECK(fsi_shell_add_obstacle(s, &o, &id) == FSI_ERROR_NAN && strstr(fsi_shell_error(s)->message, "friction"));
    o.friction = 11;
    CHECK(fsi_shell_add_obstacle(s, &o, &id) == FSI_ERROR_ARGUMENT && strstr(fsi_shell_error(s)->message, "friction"));
    o.friction = 0;
    o.clearance = -1;
    CHECK(fsi_shell_add_obstacle(s, &o, &id) == FSI_ERROR_ARGUMENT && strstr(fsi_shell_error(s)->message, "clearance"));
    o.clearance = (fsi_real)0.3;
    CHECK(fsi_shell_add_obstacle(s, &o, &id) == FSI_ERROR_MESH && strstr(fsi_shell_error(s)->message, "clearance"));
    o.clearance = 0;
    o.mesh = wall;
    CHECK(fsi_shell_add_obstacle(s, &o, &id) == FSI_ERROR_MESH && strstr(fsi_shell_error(s)->message, "obstacle 0"));
    body.pose.position.x = (fsi_real)test_nan();
    o.mesh = floor;
    o.body = &body;
    CHECK(fsi_shell_add_obstacle(s, &o, &id) == FSI_ERROR_NAN);
    o.cookie = 0;
    CHECK(fsi_shell_add_obstacle(s, &o, &id) == FSI_ERROR_COOKIE && id == 77);
    CHECK(fsi_shell_add_obstacle(s, NULL, &id) == FSI_ERROR_ARGUMENT && id == 77 &&
          fsi_shell_add_spring(s, NULL, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_shell_remove_obstacle(s, 0) == FSI_ERROR_ARGUMENT &&
          fsi_shell_remove_obstacle(s, -1) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_shell_teleport_obstacle(s, 5) == FSI_ERROR_ARGUMENT &&
          fsi_shell_obstacle_reaction(s, 0, &f, NULL) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_shell_attach(s, 0, 0) == FSI_ERROR_ARGUMENT && fsi_shell_attach(s, 99, 0) == FSI_ERROR_ARGUMENT &&
          fsi_shell_detach(s, -1) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_shell_add_spring(s, &p, NULL) == FSI_ERROR_ARGUMENT && strstr(fsi_shell_error(s)->message, "vertex"));
    p.vertex = p.other = 1;
    CHECK(fsi_shell_add_spring(s, &p, NULL) == FSI_ERROR_ARGUMENT && strstr(fsi_shell_error(s)->message, "other"));
    p.other = -1;
    p.obstacle = 3;
    CHECK(fsi_shell_add_spring(s, &p, NULL) == FSI_ERROR_ARGUMENT && strstr(fsi_shell_error(s)->message, "obstacle"));
    p.obstacle = -1;
    q = p;
    q.stiffness = 0;
    CHECK(fsi_shell_add_spring(s, &q, NULL) == FSI_ERROR_ARGUMENT && strstr(fsi_shell_error(s)->message, "stiffness"));
    q = p;
    q.rest_length = (fsi_real)test_nan();
    CHECK(fsi_shell_add_spring(s, &q, NULL) == FSI_ERROR_NAN && strstr(fsi_shell_error(s)->message, "rest_length"));
    q = p;
    q.damping = -1;
    CHECK(fsi_shell_add_spring(s, &q, NULL) == FSI_ERROR_ARGUMENT && strstr(fsi_shell_error(s)->message, "damping"));
    q = p;
    q.anchor.y = (fsi_real)test_inf();
    CHECK(fsi_shell_add_spring(s, &q, NULL) == FSI_ERROR_NAN && strstr(fsi_shell_error(s)->message, "anchor"));
    q.cookie = 0;
    CHECK(fsi_shell_add_spring(s, &q, NULL) == FSI_ERROR_COOKIE);
    CHECK(fsi_shell_set_spring(s, 0, &p) == FSI_ERROR_ARGUMENT && fsi_shell_remove_spring(s, 0) == FSI_ERROR_ARGUMENT &&
          fsi_shell_spring_force(s, 0, &f) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_shell_hash(s) == hash);
    step_ok(s, 0.01);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(floor);
    fsi_mesh_destroy(wall);
}

/* In every step of a cloth that swings from two corners, one of them moved, and that a spring pulls, the pins give what
   changes its momentum, less weight and spring. */
static void test_pins_bear_what_hangs_on_them(void)
{
    scene c = cloth_scene(4, 1, 2);
    fsi_shell_spring_desc p = fsi_shell_default_spring_desc();
    double mass, before[3] = { 0, 0, 0 }, sum[3];
    fsi_shell *s;
    int k, i, a;
    c.desc.tolerance = (fsi_real)1e-7;
    c.desc.contact = 0;
    c.desc.substeps = 2;
    s = scene_make(&c);
    scene_free(&c);
    s->pinned[0] = s->pinned[s->vertex_count - 1] = 1;
    p.vertex = 0;
    p.anchor = v3(0.3, 0.2, 3);
    p.stiffness = 2;
    CHECK(fsi_shell_add_spring(s, &p, NULL) == FSI_OK);
    for (mass = i = 0; i < s->vertex_count; i++) mass += (double)s->mass[i];
    for (k = 0; k < 30; k++) {
        fsi_vec3 f, pulled;
        s->target[0].x += (fsi_real)(k < 15 ? 0.004 : -0.002);
        step_ok(s, 0.01);
        CHECK(fsi_shell_spring_force(s, 0, &pulled) == FSI_OK);
        for (i = 0, f = pulled; i < s->vertex_count; i++) f = fsi_v3_add(f, s->pin_force[i]);
        sum[0] = (double)f.x;
        sum[1] = (double)f.y;
        sum[2] = (double)f.z - mass * 9.81;
        for (a = 0; a < 3; a++) {
            CHECK_NEAR(s->stats.momentum[a] - before[a], sum[a] * 0.01, TOL(1e-6, 1e-3) * mass * 9.81 * 0.01);
            before[a] = s->stats.momentum[a];
        }
    }
    for (i = 1; i < s->vertex_count - 1; i++) CHECK(fsi_v3_norm(s->pin_force[i]) == 0);
    s->pinned[0] = 0;
    step_ok(s, 0.01);
    CHECK(fsi_v3_norm(s->pin_force[0]) == 0 && fsi_v3_norm(s->pin_force[s->vertex_count - 1]) > 0);
    step_ok(s, 0);
    CHECK(fsi_v3_norm(s->pin_force[s->vertex_count - 1]) == 0);
    fsi_shell_destroy(s);
}

/* On a cylinder of sheet and on a circle of segments they point along the radius. */
static void test_normals_of_vertices_stand_on_the_surface(void)
{
    fsi_vec3 n[200];
    int dim, i;
    for (dim = 2; dim <= 3; dim++) {
        scene c = scene_empty();
        fsi_shell *s;
        if (dim == 2) {
            for (i = 0; i < 40; i++) scene_vertex(&c, cos(2 * PI * i / 40), sin(2 * PI * i / 40), 0);
            for (i = 0; i < 40; i++) scene_segment(&c, i, (i + 1) % 40);
        } else {
            scene_sheet(&c, RIGHT, 20, 4, 2, 1);
            scene_segment(&c, scene_vertex(&c, 5, 5, 5), scene_vertex(&c, 5, 6, 5));
            for (i = 0; i < c.vertices - 2; i++)
                c.x[i] = v3(cos((double)c.x[i].x), (double)c.x[i].y, sin((double)c.x[i].x));
        }
        c.desc.dim = dim;
        c.desc.gravity = v3(0, 0, 0);
        s = scene_make(&c);
        scene_free(&c);
        CHECK(fsi_shell_vertex_normals(s, n) == FSI_OK);
        for (i = 0; i < s->vertex_count - (dim == 3 ? 2 : 0); i++) {
            fsi_vec3 radius = s->position[i];
            radius.y = dim == 3 ? 0 : radius.y;
            CHECK_NEAR(fsi_v3_norm(n[i]), 1, 1e-6);
            CHECK_NEAR(-fsi_v3_dot(n[i], radius), 1, dim == 2 ? 1e-6 : 0.01);
        }
        if (dim == 3) CHECK(fsi_v3_norm(n[s->vertex_count - 1]) == 0);
        CHECK(fsi_shell_vertex_normals(s, NULL) == FSI_ERROR_ARGUMENT &&
              fsi_shell_vertex_normals(NULL, n) == FSI_ERROR_COOKIE);
        fsi_shell_destroy(s);
    }
}

/* At rest the floor bears the weight; what the cloth feels and what the floor feels add up to nothing, as do their
   moments. */
static void test_reactions_at_rest_equal_the_weight(void)
{
    fsi_mesh *floor = make_box(NULL, 2, 2, 0);
    fsi_shell *s = make_cloth(4, 1, 0.05, NULL);
    fsi_shell_obstacle_desc o = fsi_shell_default_obstacle_desc();
    fsi_vec3 per_vertex[4], sum = v3(0, 0, 0), moment = sum, force, torque;
    const double weight = total_mass(s) * 9.81;
    int id, i, k;
    o.mesh = floor;
    o.vertex_force = per_vertex;
    CHECK(fsi_shell_add_obstacle(s, &o, &id) == FSI_OK);
    for (k = 0; k < 2; k++) {
        if (k == 0) settle_ok(s);
        else run_ok(s, 100, 0.02); /* and a step at rest finds the same */
        CHECK(fsi_shell_obstacle_reaction(s, id, &force, &torque) == FSI_OK &&
              fsi_shell_obstacle_reaction(s, id, NULL, NULL) == FSI_OK);
        CHECK_NEAR(force.z, -weight, 0.01 * weight);
        for (i = 0, sum = moment = v3(0, 0, 0); i < s->vertex_count; i++) {
            sum = fsi_v3_add(sum, s->contact_force[i]);
            moment = fsi_v3_add(moment, fsi_v3_cross(s->position[i], s->contact_force[i]));
        }
        /* m, of gaps */
        CHECK(apart(sum, fsi_v3_scale(force, -1)) <= TOL(1e-9, 1e-4) * weight &&
              apart(moment, fsi_v3_scale(torque, -1)) <= TOL(1e-6, 1e-4) * weight);
        CHECK_NEAR(torque.x, -weight * 0.5, 0.02 * weight);
        for (i = 0, sum = v3(0, 0, 0); i < 4; i++) sum = fsi_v3_add(sum, per_vertex[i]);
        CHECK(apart(sum, force) <= TOL(1e-9, 1e-4) * weight);
        CHECK(lowest(s) > 0 && s->stats.min_gap > 0 && s->stats.min_gap < 1);
    }
    fsi_shell_destroy(s);
    fsi_mesh_destroy(floor);
}

static void move_floor(fsi_mesh *m, double z, double tilt)
{
    fsi_vec3 x[4];
    int i;
    for (i = 0; i < 4; i++) x[i] = v3(i & 1 ? 2 : -2, i & 2 ? 2 : -2, z + (i & 1 ? tilt : -tilt));
    CHECK(fsi_mesh_move(m, x, 4) == FSI_OK);
}

/* A floor that moves up fast and tilts lifts what lies on it, and is not passed; a cloth attached to it follows
   exactly. */
static void test_moving_and_deforming_meshes_take_cloth_along(void)
{
    fsi_mesh *floor = make_box(NULL, 2, 2, 0);
    fsi_shell *s = make_cloth(3, 0.6, 0.02, NULL);
    int id = add_mesh(s, floor, NULL, 0.5), k;
    fsi_vec3 hold;
    run_ok(s, 10, 0.02);
    for (k = 1; k <= 10; k++) {
        move_floor(floor, 0.2 * k, 0.02 * k);
        step_ok(s, 1.0 / 24);
        CHECK(fsi_shell_count_intersections(s) == 0);
        CHECK(lowest(s) > 0.2 * k - 0.02 * k);
    }
    hold = s->position[3];
    CHECK(fsi_shell_attach(s, 3, id) == FSI_OK);
    move_floor(floor, 1.9, 0.2); /* 0.1 down */
    step_ok(s, 1.0 / 24);
    CHECK_NEAR(s->position[3].z, (double)hold.z - 0.1, TOL(1e-6, 1e-5));
    CHECK(s->pinned[3] && fsi_shell_count_intersections(s) == 0);
    CHECK(fsi_shell_detach(s, 3) == FSI_OK && !s->pinned[3]);
    move_floor(floor, 0.5, 0.2);
    CHECK(fsi_shell_teleport_obstacle(s, id) == FSI_OK); /* gone from under it, without a sweep */
    step_ok(s, 0.01);
    CHECK(lowest(s) > 1);
    move_floor(floor, 2.5, 0);
    CHECK(fsi_shell_remove_obstacle(s, id) == FSI_OK && fsi_shell_remove_obstacle(s, id) == FSI_ERROR_ARGUMENT);
    step_ok(s, 0.01);
    CHECK_NEAR(s->contact_force[0].z, 0, 0);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(floor);
}

/* Attached to a body that turns: on its arc. */
static void test_what_is_attached_to_a_body_goes_where_the_body_goes(void)
{
    fsi_mesh *box = make_box_at(NULL, 0.1, 0.1, 0.1, v3(-0.3, 0.5, 0));
    fsi_body body = fsi_default_body();
    fsi_shell *s = make_cloth(3, 1, 0, NULL);
    int id, k, i;
    body.pose.position = body.end.position = v3(-0.3, 0.5, 0);
    id = add_mesh(s, box, &body, 0);
    for (i = 0; i < 4; i++) CHECK(fsi_shell_attach(s, i, id) == FSI_OK);
    for (k = 0; k < 10; k++) {
        const fsi_vec3 local = fsi_pose_local(body.pose, s->position[2]);
        body.end.position = v3(-0.3 - 0.02 * k, 0.5, 0.01 * k);
        body.end.orientation = fsi_quat_from_axis_angle(v3(0, 1, 0), (fsi_real)(0.1 * k));
        step_ok(s, 0.01);
        fsi_body_integrate(&body, (fsi_real)0.01);
        CHECK_NEAR(apart(s->position[2], fsi_pose_point(body.pose, local)), 0, TOL(1e-12, 1e-5));
    }
    CHECK(fsi_shell_remove_obstacle(s, id) == FSI_OK && !s->pinned[0]);
    step_ok(s, 0.01);
    CHECK((double)s->velocity[2].z < 0.2);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(box);
}

/* A PRESCRIBED body that carries a cloth: its reaction is the weight once everything is at rest, whichever of its
   meshes bears it. */
static void test_a_prescribed_body_feels_the_weight(void)
{
    fsi_mesh *left = make_box_at(NULL, 1, 2, 0.1, v3(-0.55, 0, -0.1)),
             *right = make_box_at(NULL, 1, 2, 0.1, v3(1.55, 0, -0.1));
    fsi_body body = fsi_default_body();
    fsi_shell *s = make_cloth(4, 1, 0.02, NULL);
    const double weight = total_mass(s) * 9.81;
    int id[2];
    fsi_vec3 f[2];
    id[0] = add_mesh(s, left, &body, 0.5);
    id[1] = add_mesh(s, right, &body, 0.5);
    run_ok(s, 150, 0.02);
    CHECK(fsi_shell_obstacle_reaction(s, id[0], &f[0], NULL) == FSI_OK &&
          fsi_shell_obstacle_reaction(s, id[1], &f[1], NULL) == FSI_OK);
    CHECK((double)f[0].z < 0 && (double)f[1].z < 0);
    CHECK_NEAR(f[0].z + f[1].z, -weight, 0.01 * weight);
    CHECK_NEAR(body.reaction_force.z, -weight, 0.01 * weight);
    body.mode = FSI_BODY_COUPLED;
    refuse_step(s, 0.01, FSI_ERROR_ARGUMENT, "mode");
    fsi_shell_destroy(s);
    fsi_mesh_destroy(left);
    fsi_mesh_destroy(right);
}

/* A free cloth and a free body that meet keep their momentum together, from a body of a thousandth of the cloth's mass
   to one of a thousand times it. */
static void test_a_coupled_body_and_a_cloth_keep_their_momentum(void)
{
    static const double ratio[3] = { 1e-3, 1, 1e3 };
    int r, k, i, a;
    for (r = 0; r < 3; r++) {
        fsi_mesh *box = make_box_at(NULL, 0.1, 0.12, 0.05, v3(0.53, 0.48, 0.1));
        fsi_shell *s = make_cloth(5, 1, 0, NULL);
        const double mass = total_mass(s) * ratio[r];
        fsi_shell_desc d = s->desc;
        fsi_mass_properties p;
        fsi_body body;
        double before[3] = { 0 }, after[3] = { 0 }, touched = 0;
        CHECK(fsi_mesh_mass(box, (fsi_real)(mass / (8 * 0.1 * 0.12 * 0.05)), 0, &p) == FSI_OK);
        body = fsi_body_from_mass(&p);
        body.velocity = v3(0.1, 0, -1);
        d.gravity = v3(0, 0, 0);
        d.tolerance = (fsi_real)1e-6;
        CHECK(fsi_shell_set_desc(s, &d) == FSI_OK);
        add_mesh(s, box, &body, 0.3);
        before[0] = mass * 0.1;
        before[2] = -mass;
        for (k = 0; k < 30; k++) {
            step_ok(s, 0.01);
            touched += (double)fsi_v3_norm(body.impulse);
            body.pose = body.end;
            body.velocity = body.new_velocity;
            body.angular_velocity = body.new_angular_velocity;
            CHECK(fsi_shell_count_intersections(s) == 0);
        }
        for (i = 0; i < s->vertex_count; i++) {
            after[0] += (double)s->mass[i] * (double)s->velocity[i].x;
            after[1] += (double)s->mass[i] * (double)s->velocity[i].y;
            after[2] += (double)s->mass[i] * (double)s->velocity[i].z;
        }
        after[0] += mass * (double)body.velocity.x;
        after[1] += mass * (double)body.velocity.y;
        after[2] += mass * (double)body.velocity.z;
        for (a = 0; a < 3; a++) CHECK_NEAR(after[a], before[a], TOL(1e-5, 1e-4) * mass);
        CHECK(touched > 0.1 * (ratio[r] < 1 ? mass : total_mass(s)));
        fsi_shell_destroy(s);
        fsi_mesh_destroy(box);
    }
}

/* A COUPLED body on a cloth held at its corners: comes to rest in it; the cloth bears its weight. */
static void test_a_cloth_bears_a_coupled_body(void)
{
    static const double mass[2] = { 0.002, 2 };
    int r, k, i, j;
    for (r = 0; r < 2; r++) {
        fsi_mesh *box = make_box_at(NULL, 0.15, 0.15, 0.05, v3(0.5, 0.5, 0.08));
        fsi_shell *s = make_cloth(6, 1, 0, NULL);
        fsi_mass_properties p;
        fsi_body body;
        fsi_shell_obstacle_desc o = fsi_shell_default_obstacle_desc();
        int id;
        fsi_vec3 f;
        CHECK(fsi_mesh_mass(box, (fsi_real)(mass[r] / (8 * 0.15 * 0.15 * 0.05)), 0, &p) == FSI_OK);
        body = fsi_body_from_mass(&p);
        body.force = v3(0, 0, -9.81 * mass[r]);
        o.mesh = box;
        o.body = &body;
        o.friction = (fsi_real)0.5;
        CHECK(fsi_shell_add_obstacle(s, &o, &id) == FSI_OK);
        for (i = 0; i < s->vertex_count; i++)
            for (j = 0; j < 4; j++)
                if (apart(s->position[i], v3(j & 1, j >> 1, 0)) < 1e-6) s->pinned[i] = 1;
        CHECK(fsi_shell_attach(s, 0, id) == FSI_ERROR_ARGUMENT && strstr(fsi_shell_error(s)->message, "COUPLED"));
        for (k = 0; k < (TEST_SLOWED ? 20 : 200); k++) {
            step_ok(s, 0.04);
            body.pose = body.end;
            body.velocity = body.new_velocity;
            body.angular_velocity = body.new_angular_velocity;
            CHECK(fsi_shell_count_intersections(s) == 0);
        }
        CHECK(fsi_shell_obstacle_reaction(s, id, &f, NULL) == FSI_OK);
        if (!TEST_SLOWED) CHECK_NEAR(f.z, 9.81 * mass[r], 0.05 * 9.81 * mass[r]);
        if (!TEST_SLOWED) CHECK_NEAR(fsi_v3_norm(body.velocity), 0, 0.02);
        fsi_shell_destroy(s);
        fsi_mesh_destroy(box);
    }
}

/* ---- friction --------------------------------------------------------------------------------------------------- */

/* On a plane tilted by `slope` (gravity is, rather): how fast after `seconds`. */
static double slide(double slope, double friction, int point, double seconds)
{
    const double g = 9.81 / sqrt(1 + slope * slope), dt = 0.01;
    fsi_mesh *floor = make_box(NULL, 20, 20, 0);
    scene c = scene_empty();
    fsi_shell_desc d;
    fsi_shell *s;
    double v;
    if (point) scene_point(&c, 0.1, 0.2, 0.01, 0.1);
    else scene_sheet(&c, EQUILATERAL, 2, 2, 0.2, 0.2);
    scene_shift(&c, 0, 0, 0, 0.01);
    c.desc.gravity = v3(0, 0, -g);
    c.desc.contact_range = (fsi_real)0.01;
    c.desc.tolerance = (fsi_real)1e-5;
    s = scene_make(&c);
    scene_free(&c);
    add_mesh(s, floor, NULL, friction);
    settle_ok(s);
    d = s->desc;
    d.gravity.x = (fsi_real)(g * slope);
    CHECK(fsi_shell_set_desc(s, &d) == FSI_OK);
    run_ok(s, (int)(seconds / dt + 0.5), dt);
    v = (double)s->velocity[0].x;
    CHECK(lowest(s) > 0);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(floor);
    return v;
}

static void test_friction_holds_below_its_angle_and_slides_above_it(void)
{
    int point;
    for (point = 0; point < 2; point++) {
        const double mu = 0.5, steep = 0.7, g = 9.81 / sqrt(1 + steep * steep);
        CHECK_NEAR(slide(0.45, mu, point, 0.5), 0, 1.1e-3); /* creeps below friction_speed */
        CHECK_NEAR(slide(steep, mu, point, 0.5), g * (steep - mu) * 0.5, 0.02 * g * (steep - mu) * 0.5);
        CHECK_NEAR(slide(steep, 0, point, 0.5), g * steep * 0.5, 0.002 * g); /* the floor's edges are felt a little */
    }
}

/* A sheet that lies on a plane, settled, on which gravity is then tilted and the sheet thrown, with the defaults: how
   far its middle gets in a second. *unbalanced: the worst step's change of momentum, along and across, less weight and
   floor's reaction, over the weight. */
static double slid(double edge, double dt, double mu, double slope, double speed, double *unbalanced, long *newton)
{
    const double g = 9.81 / sqrt(1 + slope * slope);
    fsi_mesh *floor = make_box(NULL, 40, 40, 0);
    scene c = scene_empty();
    fsi_shell_desc d;
    fsi_shell *s;
    double from = 0, to = 0, mass = 0, before[3] = { 0, 0, 0 };
    int i, k, a, steps = (int)(1 / dt + 0.5);
    scene_sheet(&c, RIGHT, 4, 3, 4 * edge, 3 * edge);
    scene_shift(&c, 0, 3, 2, 0.07 * edge);
    c.desc.gravity = v3(0, 0, -g);
    s = scene_make(&c);
    scene_free(&c);
    add_mesh(s, floor, NULL, mu);
    settle_ok(s);
    d = s->desc;
    d.gravity.x = (fsi_real)(g * slope);
    CHECK(fsi_shell_set_desc(s, &d) == FSI_OK);
    for (i = 0; i < s->vertex_count; i++) {
        s->velocity[i] = v3(speed, 0, 0);
        from += (double)s->position[i].x / s->vertex_count;
        mass += (double)s->mass[i];
    }
    before[0] = mass * speed;
    for (*unbalanced = 0, k = 0; k < steps; k++) {
        fsi_vec3 force;
        double pushed[3];
        step_ok(s, dt);
        *newton += s->stats.newton;
        CHECK(s->stats.degraded == 0 && fsi_shell_obstacle_reaction(s, 0, &force, NULL) == FSI_OK);
        for (a = 0; a < 3; a++) {
            pushed[a] = (mass * (a == 0   ? g * slope
                                 : a == 2 ? -g
                                          : 0) -
                         (double)(a == 0   ? force.x
                                  : a == 1 ? force.y
                                           : force.z)) *
                        dt;
            *unbalanced = fmax(*unbalanced, fabs(s->stats.momentum[a] - before[a] - pushed[a]) / (mass * g * dt));
            before[a] = s->stats.momentum[a];
        }
    }
    for (i = 0; i < s->vertex_count; i++) to += (double)s->position[i].x / s->vertex_count;
    fsi_shell_destroy(s);
    fsi_mesh_destroy(floor);
    return to - from;
}

/* v^2/(2 mu g) on a level floor, a t^2/2 with a = g (sin - mu cos) on a slope, whatever edge, step and friction:
   sticking is stiff, so Newton's steps from rest are short long before they are balanced. */
static void test_sheets_slide_as_far_as_coulomb_says(void)
{
    static const double edge[] = {0.005, 0.0375, 0.15, 0.3}, dt[] = {1 / 24.0, 1 / 240.0}, mu[] = {0.1, 0.5},
                        tilt[] = {0, 0.98, 1.02, 2};
    double steps = 0;
    int i, j, k, q;
    for (i = 0; i < 4; i++) for (j = 0; j < 2; j++) for (k = 0; k < 2; k++) for (q = 0; q < 4; q++) {
        const double slope = tilt[q] * mu[k], speed = q == 0 ? 0.5 : q == 1 ? 0.1 : 0;
        const double a = 9.81 * (slope - mu[k]) / sqrt(1 + slope * slope),
                     far = a > 0 || speed + a > 0 ? speed + a / 2 : -speed * speed / (2 * a);
        double unbalanced;
        long newton = 0;
        /* creeps */
        CHECK_NEAR(slid(edge[i], dt[j], mu[k], slope, speed, &unbalanced, &newton), far,
                   0.02 * far + (a > 0 ? a : speed) * dt[j] / 2 + (q == 1 ? 3e-4 : 0));
        CHECK(unbalanced <= TOL(1e-6, 0.05) && (double)newton * dt[j] <= 5);
        steps += (double)newton * dt[j] / 64;
    }
    printf("   %.2f Newton steps a step\n", steps);
    CHECK(steps <= 2.6);
}

/* A belt that goes at 0.3 m/s from under a sheet at rest, as a mesh and as a PRESCRIBED body, by one friction iteration
   and by three: mu g, until it goes along. */
static void test_a_belt_takes_a_sheet_along(void)
{
    int as_body, many;
    for (as_body = 0; as_body < 2; as_body++) for (many = 0; many < 2; many++) {
        const double dt = 1 / 240.0, mu = 0.3, belt = 0.3;
        fsi_mesh *floor = make_box(NULL, 20, 20, 0);
        fsi_body body = fsi_default_body();
        scene c = scene_empty();
        fsi_shell *s;
        double mass, before = 0, v = 0, newton = 0;
        int i, k;
        scene_sheet(&c, RIGHT, 4, 3, 0.4, 0.3);
        scene_shift(&c, 0, 3, 2, 0.007);
        c.desc.friction_iterations = many ? 3 : 1;
        s = scene_make(&c);
        scene_free(&c);
        add_mesh(s, floor, as_body ? &body : NULL, mu);
        settle_ok(s);
        mass = total_mass(s);
        for (k = 0; k < 48; k++) {
            fsi_vec3 force;
            if (as_body) {
                body.pose = body.end;
                body.end.position.x += (fsi_real)(belt * dt);
            } else {
                fsi_vec3 to[4];
                for (i = 0; i < 4; i++) to[i] = fsi_v3_add(floor->vertices[i], v3(belt * dt, 0, 0));
                CHECK(floor->vertex_count == 4 && fsi_mesh_set(floor, to, 4) == FSI_OK);
            }
            step_ok(s, dt);
            newton += s->stats.newton / 48.0;
            CHECK(s->stats.degraded == 0 && fsi_shell_obstacle_reaction(s, 0, &force, NULL) == FSI_OK);
            CHECK_NEAR(s->stats.momentum[0] - before, -(double)force.x * dt, TOL(1e-9, 1e-3) * mass);
            before = s->stats.momentum[0];
            v = before / mass;
            if (k == 11) CHECK_NEAR(v, mu * 9.81 * 0.05, 0.03 * mu * 9.81 * 0.05);
        }
        CHECK_NEAR(v, belt, 1e-3);
        printf("   belt %s: %.2f Newton steps a step\n", as_body ? "body" : "mesh", newton);
        CHECK(newton <= (many ? 6 : 3.5));
        fsi_shell_destroy(s);
        fsi_mesh_destroy(floor);
    }
}

/* The energy of a heavy body must not hide that of a light sheet on its deck. */
static void test_a_sheet_slides_on_a_ship(void)
{
    const double dt = 1 / 60.0, mu = 0.3, speed = 0.5;
    fsi_mesh *deck = make_box_at(NULL, 5, 5, 1, v3(0, 0, -1));
    scene c = scene_empty();
    fsi_mass_properties m;
    fsi_body body;
    fsi_shell *s;
    double from = 0, to = 0;
    int i, k, newton = 0;
    scene_sheet(&c, RIGHT, 5, 4, 1, 0.8);
    scene_shift(&c, 0, -0.5, -0.4, 0.015);
    s = scene_make(&c);
    scene_free(&c);
    CHECK(fsi_mesh_mass(deck, 1000, 0, &m) == FSI_OK);
    body = fsi_body_from_mass(&m);
    body.force = v3(0, 0, total_mass(s) * 9.81);
    add_mesh(s, deck, &body, mu);
    for (k = 0; k < 42; k++) {
        if (k == 18) for (i = 0; i < s->vertex_count; i++) {
            s->velocity[i].x += (fsi_real)speed;
            from += (double)s->position[i].x / s->vertex_count;
        }
        step_ok(s, dt);
        newton += k < 18 ? 0 : s->stats.newton;
        CHECK(s->stats.degraded == 0);
        body.pose = body.end;
        body.velocity = body.new_velocity;
        body.angular_velocity = body.new_angular_velocity;
    }
    for (i = 0; i < s->vertex_count; i++) to += (double)s->position[i].x / s->vertex_count;
    printf("   %.4f m of %.4f, %.2f Newton steps a step\n", to - from, speed * speed / (2 * mu * 9.81), newton / 24.0);
    CHECK_NEAR(to - from, speed * speed / (2 * mu * 9.81), speed * dt / 2 + 1e-3);
    CHECK(newton <= 24 * 4);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(deck);
}

/* ---- springs ---------------------------------------------------------------------------------------------------- */

static void test_springs_pull_as_hooke_says(void)
{
    scene c = scene_empty();
    fsi_shell_spring_desc p = fsi_shell_default_spring_desc();
    fsi_mesh *box = make_box_at(NULL, 0.1, 0.1, 0.1, v3(0, 0, 5));
    fsi_shell *s;
    fsi_vec3 f;
    int id[3], k, mesh;
    for (k = 0; k < 3; k++) scene_point(&c, k, 0, 0, 1);
    s = scene_make(&c);
    scene_free(&c);
    mesh = add_mesh(s, box, NULL, 0);
    s->pinned[1] = 1;
    p.stiffness = 200;
    p.damping = 50;
    p.vertex = 0;
    p.anchor = v3(0, 0, 1);
    p.rest_length = (fsi_real)0.5;
    CHECK(fsi_shell_add_spring(s, &p, &id[0]) == FSI_OK); /* to a point in space */
    p.vertex = 2;
    p.other = 1;
    CHECK(fsi_shell_add_spring(s, &p, &id[1]) == FSI_OK); /* to a vertex */
    p.other = -1;
    p.obstacle = mesh;
    p.anchor = v3(2, 0, 4.9);
    CHECK(fsi_shell_add_spring(s, &p, &id[2]) == FSI_OK); /* to an obstacle */
    CHECK(fsi_shell_remove_spring(s, id[1]) == FSI_OK && fsi_shell_spring_force(s, id[1], &f) == FSI_ERROR_ARGUMENT);
    settle_ok(s);
    CHECK_NEAR(s->position[0].z, 1 - 0.5 - 9.81 / 200, 2e-4);
    CHECK_NEAR(s->position[2].z, 4.9 - 0.5 - 9.81 / 200, 2e-4);
    CHECK(fsi_shell_spring_force(s, id[0], &f) == FSI_OK);
    CHECK_NEAR(f.z, 9.81, 0.01);
    CHECK(fsi_mesh_move_rigid(box, v3(0, 0, 6), fsi_quat_identity()) == FSI_OK);
    settle_ok(s);
    CHECK_NEAR(s->position[2].z, 5.9 - 0.5 - 9.81 / 200, 3e-4);
    p.obstacle = -1;
    p.other = 1;
    CHECK(fsi_shell_set_spring(s, id[2], &p) == FSI_OK); /* now to the pinned vertex */
    settle_ok(s);
    CHECK_NEAR(apart(s->position[2], s->position[1]), 0.5 + 9.81 / 200, 2e-3);
    CHECK_NEAR(s->stats.elastic_energy, 2 * 9.81 * 9.81 / 400, 0.01);
    CHECK(fsi_shell_remove_obstacle(s, mesh) == FSI_OK);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(box);
}

/* A spring to a COUPLED body: both swing about their common centre. */
static void test_a_spring_pulls_a_coupled_body_as_much_as_its_vertex(void)
{
    scene c = scene_empty();
    fsi_mesh *box = make_box(NULL, 0.1, 0.1, 0.1);
    fsi_body body = fsi_default_body();
    fsi_shell_spring_desc p = fsi_shell_default_spring_desc();
    fsi_shell *s;
    int k;
    scene_point(&c, 0, 0, 1, 0.5);
    c.desc.gravity = v3(0, 0, 0);
    c.desc.tolerance = (fsi_real)1e-7;
    s = scene_make(&c);
    scene_free(&c);
    body.mode = FSI_BODY_COUPLED;
    p.vertex = 0;
    p.obstacle = add_mesh(s, box, &body, 0);
    p.anchor = v3(0.05, 0, 0.1);
    p.rest_length = (fsi_real)0.5;
    CHECK(fsi_shell_add_spring(s, &p, NULL) == FSI_OK);
    for (k = 0; k < 8; k++) { /* most of a quarter of a swing */
        step_ok(s, 0.01);
        body.pose = body.end;
        body.velocity = body.new_velocity;
        body.angular_velocity = body.new_angular_velocity;
        CHECK_NEAR((double)body.velocity.z + 0.5 * (double)s->velocity[0].z, 0, TOL(1e-6, 1e-5));
    }
    CHECK((double)body.velocity.z > 0.3 && fabs((double)body.angular_velocity.y) > 1e-3);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(box);
}

/* ---- looking at it ---------------------------------------------------------------------------------------------- */

/* A fine mesh bound to a cloth that is turned and moved as a whole turns and moves with it. */
static void test_a_skin_follows(void)
{
    fsi_shell *s = make_cloth(4, 1, 0, NULL);
    const fsi_quat q = fsi_quat_from_axis_angle(v3(1, 2, 3), 1);
    fsi_shell_skin *skin;
    fsi_vec3 fine[50], out[50], normal[50];
    uint64_t random = 3;
    fsi_vec3 bad = v3(test_nan(), 0, 0);
    int i;
    for (i = 0; i < 50; i++)
        fine[i] =
            v3(0.1 + 0.8 * test_random(&random), 0.1 + 0.8 * test_random(&random), 0.1 * test_random(&random) - 0.05);
    CHECK(fsi_shell_skin_create(&skin, s, fine, 0) == FSI_ERROR_ARGUMENT && skin == NULL);
    CHECK(fsi_shell_skin_create(&skin, s, &bad, 1) == FSI_ERROR_NAN && skin == NULL);
    CHECK(fsi_shell_skin_create(&skin, NULL, fine, 1) == FSI_ERROR_COOKIE && skin == NULL);
    CHECK(fsi_shell_skin_create(&skin, s, fine, 50) == FSI_OK && skin->count == 50);
    CHECK(fsi_shell_skin_update(skin, s, out, normal) == FSI_OK);
    for (i = 0; i < 50; i++)
        CHECK(apart(out[i], fine[i]) <= TOL(1e-12, 1e-5) &&
              apart(normal[i], v3(0, 0, normal[i].z > 0 ? 1 : -1)) <= TOL(1e-12, 1e-5));
    for (i = 0; i < s->vertex_count; i++) s->position[i] = fsi_v3_add(fsi_quat_rotate(q, s->position[i]), v3(1, 2, 3));
    CHECK(fsi_shell_skin_update(skin, s, out, NULL) == FSI_OK);
    for (i = 0; i < 50; i++)
        CHECK(apart(out[i], fsi_v3_add(fsi_quat_rotate(q, fine[i]), v3(1, 2, 3))) <= TOL(1e-12, 1e-5));
    CHECK(fsi_shell_skin_update(skin, s, NULL, NULL) == FSI_ERROR_ARGUMENT);
    fsi_shell_skin_destroy(skin);
    fsi_shell_destroy(s);
}

typedef struct drawn { int points, lines, triangles; } drawn;
static void draw_point(void *user, fsi_vec3 p, fsi_real size, uint32_t rgb)
{
    ((drawn *)user)->points += fsi_v3_is_finite(p) && size > 0 && rgb <= 0xffffff;
}
static void draw_line(void *user, fsi_vec3 a, fsi_vec3 b, uint32_t rgb)
{
    ((drawn *)user)->lines += fsi_v3_is_finite(a) && fsi_v3_is_finite(b) && rgb <= 0xffffff;
}
static void draw_triangle(void *user, fsi_vec3 a, fsi_vec3 b, fsi_vec3 c, uint32_t rgb)
{
    ((drawn *)user)->triangles += fsi_v3_is_finite(a) && fsi_v3_is_finite(b) && fsi_v3_is_finite(c) && rgb <= 0xffffff;
}

static void test_debug_draw_shows_edges_pins_forces_and_obstacles(void)
{
    fsi_mesh *floor = make_box(NULL, 2, 2, 0);
    fsi_shell *s = make_cloth(2, 1, 0.05, NULL);
    fsi_debug_draw draw;
    drawn n = { 0, 0, 0 }, m = { 0, 0, 0 };
    const int edges = s->vertex_count + s->triangle_count - 1; /* Euler */
    memset(&draw, 0, sizeof draw);
    draw.user = &n;
    fsi_shell_debug_draw(s, &draw); /* nothing to call */
    draw.point = draw_point;
    draw.line = draw_line;
    draw.triangle = draw_triangle;
    s->pinned[0] = 1;
    fsi_shell_debug_draw(s, &draw);
    CHECK(n.points == 1 && n.lines == edges && n.triangles == 0);
    add_mesh(s, floor, NULL, 0);
    settle_ok(s);
    draw.user = &m;
    fsi_shell_debug_draw(s, &draw);
    CHECK(m.points == 1 && m.lines == edges + 5 + s->vertex_count); /* five edges of the floor; a force at each
                                                                       vertex */
    fsi_shell_destroy(s);
    fsi_mesh_destroy(floor);
}

static double ticks(void *user)
{
    double *t = (double *)user;
    return *t += 0.25;
}

static void test_figures_agree_with_the_state(void)
{
    fsi_context context = fsi_default_context();
    double clock_now = 0, start;
    fsi_mesh *floor = make_box(NULL, 2, 2, 0);
    fsi_shell *s;
    fsi_vec3 p = v3(0, 0, 0), l = p;
    double kinetic = 0, potential = 0;
    int i;
    context.user = &clock_now;
    context.now = ticks;
    s = make_cloth(3, 1, 0.01, &context);
    add_mesh(s, floor, NULL, 0.1);
    s->pinned[0] = 1;
    start = clock_now;
    run_ok(s, 1, 0.02);
    CHECK_NEAR(s->stats.seconds_assembly + s->stats.seconds_solve + s->stats.seconds_contact + s->stats.seconds_search +
                   s->stats.seconds_other,
               clock_now - start, 0.51);
    run_ok(s, 4, 0.02);
    for (i = 0; i < s->vertex_count; i++) {
        const fsi_real m = s->mass[i];
        kinetic += (double)(m * fsi_v3_norm2(s->velocity[i])) / 2;
        potential += (double)m * 9.81 * (double)s->position[i].z;
        p = fsi_v3_madd(p, m, s->velocity[i]);
        l = fsi_v3_madd(l, m, fsi_v3_cross(s->position[i], s->velocity[i]));
    }
    CHECK_NEAR(s->stats.kinetic_energy, kinetic, TOL(1e-12, 1e-5));
    CHECK_NEAR(s->stats.potential_energy, potential, TOL(1e-12, 1e-5));
    CHECK_NEAR(s->stats.momentum[2], p.z, TOL(1e-12, 1e-5));
    CHECK_NEAR(s->stats.angular_momentum[0], l.x, TOL(1e-12, 1e-5));
    CHECK(s->stats.newton > 0 && s->stats.substeps == 1 && s->stats.candidates >= s->stats.contacts &&
          s->stats.contacts > 0 && s->stats.degraded == 0);
    CHECK(s->stats.contact_energy > 0 && s->stats.contact_stiffness > 0 && s->stats.min_gap > 0 &&
          s->stats.min_gap < 1);
    CHECK_NEAR(s->time, 0.1, 1e-7);
    fsi_shell_destroy(s);
    fsi_mesh_destroy(floor);
}

static void test_presets_have_names_and_work(void)
{
    int k;
    for (k = 0; k < FSI_SHELL_PRESET_COUNT; k++) {
        scene c = scene_empty();
        fsi_shell *s;
        double edge;
        c.material[0] = fsi_shell_preset((fsi_shell_preset_kind)k);
        CHECK(strlen(fsi_shell_preset_name((fsi_shell_preset_kind)k)) > 3);
        if (k >= FSI_SHELL_STEEL_WIRE) scene_rod(&c, 8, v3(0, 0, 0), v3(0.2, 0, 0));
        else scene_sheet(&c, EQUILATERAL, 4, 4, 0.2, 0.2);
        s = scene_make(&c);
        s->pinned[0] = s->pinned[1] = 1;
        run_ok(s, 10, 1.0 / 60);
        edge = apart(s->position[c.vertices - 1], s->position[c.vertices - 2]);
        CHECK_NEAR(edge, apart(c.x[c.vertices - 1], c.x[c.vertices - 2]), 0.02 * edge);
        CHECK(s->stats.degraded == 0);
        fsi_shell_destroy(s);
        scene_free(&c);
    }
    CHECK(strcmp(fsi_shell_preset_name(FSI_SHELL_SILK), "silk") == 0 &&
          strcmp(fsi_shell_preset_name(FSI_SHELL_PRESET_COUNT), "") == 0);
    CHECK_NEAR(fsi_shell_preset((fsi_shell_preset_kind)99).density, 1000, 0);
    CHECK_NEAR(fsi_shell_preset((fsi_shell_preset_kind)-1).density, 1000, 0);
}

/* ---- mixtures --------------------------------------------------------------------------------------------------- */

/* Points fall on a sheet that is held at its rim, and lie there. */
static void test_points_lie_on_a_sheet(void)
{
    scene c = cloth_scene(4, 1, 0);
    fsi_shell *s;
    const int n = c.vertices;
    int i, k;
    c.desc.friction = (fsi_real)0.5;
    for (i = 0; i < 5; i++) scene_point(&c, 0.3 + 0.1 * i, 0.41, 0.05, 0.01);
    s = scene_make(&c);
    for (i = 0; i < n; i++) s->pinned[i] = fmax(fabs((double)c.x[i].x - 0.5), fabs((double)c.x[i].y - 0.5)) > 0.49;
    for (k = 0; k < 60; k++) {
        step_ok(s, 0.02);
        for (i = n; i < s->vertex_count; i++) CHECK((double)s->position[i].z > lowest(s) - 1e-9);
    }
    for (i = n; i < s->vertex_count; i++) {
        CHECK_NEAR(s->contact_force[i].z, 0.0981, 0.01);
        CHECK((double)s->position[i].z > -0.3);
    }
    fsi_shell_destroy(s);
    scene_free(&c);
}

static fsi_mesh *make_ground_2d(double z)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_vec3 x[2];
    const int e[2] = { 0, 1 };
    fsi_mesh *m = NULL;
    x[0] = v3(-5, z, 0);
    x[1] = v3(5, z, 0);
    d.vertices = x;
    d.vertex_count = 2;
    d.elements = e;
    d.element_count = 1;
    d.corners = 2;
    d.kind = FSI_MESH_TWO_SIDED;
    if (!CHECK(fsi_mesh_create(&m, &d) == FSI_OK)) exit(1);
    return m;
}

static void test_a_chain_in_two_dimensions_lands_and_lies(void)
{
    scene c = scene_empty();
    fsi_mesh *ground = make_ground_2d(0);
    fsi_shell *s;
    fsi_vec3 f;
    int k, id;
    fsi_shell_desc d;
    c.desc.dim = 2;
    REFUSED((void)0, FSI_ERROR_ARGUMENT, "gravity.z");
    c.desc.gravity = v3(0, -9.81, 0);
    scene_rod(&c, 20, v3(0, 0.1, 0), v3(0.1, 1, 0));
    c.material[0].young = (fsi_real)1e5;
    s = scene_make(&c);
    CHECK_NEAR(total_mass(s), 1000 * 0.001 * sqrt(0.82), TOL(1e-12, 1e-6));
    id = add_mesh(s, ground, NULL, 0.3);
    for (k = 0; k < 150; k++) {
        step_ok(s, 0.02);
        CHECK(s->stats.min_gap > 0);
    }
    for (k = 0; k < s->vertex_count; k++)
        CHECK((double)s->position[k].y > 0 && s->position[k].z <= 0 && s->position[k].z >= 0);
    CHECK(fsi_shell_obstacle_reaction(s, id, &f, NULL) == FSI_OK);
    CHECK_NEAR(f.y, -9.81 * total_mass(s), 0.05 * 9.81 * total_mass(s));
    s->velocity[3].z = 1;
    refuse_step(s, 0.02, FSI_ERROR_ARGUMENT, "z = 1 in 2D");
    fsi_shell_destroy(s);
    scene_free(&c);
    fsi_mesh_destroy(ground);
}

/* ---- hard work -------------------------------------------------------------------------------------------------- */

static fsi_mesh *make_ring(double radius, double tube, int n, int m)
{
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_vec3 x[200];
    int t[1200], i, j;
    fsi_mesh *mesh = NULL;
    for (i = 0; i < n; i++) for (j = 0; j < m; j++) {
        const double a = 2 * PI * i / n, b = 2 * PI * j / m, r = radius + tube * cos(b);
        int *q = t + 6 * (i * m + j);
        x[i * m + j] = v3(r * cos(a), r * sin(a), tube * sin(b));
        q[0] = q[3] = i * m + j;
        q[1] = (i + 1) % n * m + j;
        q[2] = q[4] = (i + 1) % n * m + (j + 1) % m;
        q[5] = i * m + (j + 1) % m;
    }
    d.vertices = x;
    d.vertex_count = n * m;
    d.elements = t;
    d.element_count = 2 * n * m;
    if (!CHECK(fsi_mesh_create(&mesh, &d) == FSI_OK)) exit(1);
    return mesh;
}

/* A cloth is pulled by its middle through a ring much narrower than itself, in steps of a film. */
static void test_a_cloth_is_pulled_through_a_ring(void)
{
    const int n = TEST_SLOWED ? 6 : 10, steps = TEST_SLOWED ? 8 : 40;
    fsi_mesh *ring = make_ring(0.12, 0.03, 16, 8);
    scene c = scene_empty();
    fsi_shell *s;
    int i, k, middle = 0;
    scene_sheet(&c, EQUILATERAL, n, n, 0.6, 0.6);
    scene_shift(&c, 0, -0.3, -0.3, 0.06);
    c.material[0] = fsi_shell_preset(FSI_SHELL_COTTON);
    c.desc.friction = (fsi_real)0.2;
    s = scene_make(&c);
    add_mesh(s, ring, NULL, 0.2);
    for (i = 0; i < c.vertices; i++) if (apart(c.x[i], v3(0, 0, 0.06)) < apart(c.x[middle], v3(0, 0, 0.06))) middle = i;
    s->pinned[middle] = 1;
    for (k = 0; k < steps; k++) {
        s->target[middle].z -= (fsi_real)(0.5 / 24);
        step_ok(s, 1.0 / 24);
        CHECK(fsi_shell_count_intersections(s) == 0 && s->stats.min_gap > 0);
    }
    if (!TEST_SLOWED) for (i = k = 0; i < s->vertex_count; i++) k += (double)s->position[i].z > 0.05;
    if (!TEST_SLOWED) CHECK(k < s->vertex_count / 4); /* most of it went through */
    fsi_shell_destroy(s);
    scene_free(&c);
    fsi_mesh_destroy(ring);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_simulator_is_made_and_let_go);
    RUN(test_calls_without_a_simulator_are_refused);
    RUN(test_every_setting_is_checked_and_named);
    RUN(test_every_number_of_a_material_is_checked_and_named);
    RUN(test_arrays_that_make_no_sense_are_refused_by_element);
    RUN(test_shapes_without_area_or_length_are_refused);
    RUN(test_what_touches_or_crosses_at_first_is_refused_and_named);
    RUN(test_segments_that_cross_in_the_plane_are_refused);
    RUN(test_points_in_one_place_are_refused);
    RUN(test_bad_numbers_change_nothing);
    RUN(test_a_held_twist_must_be_a_number);
    RUN(test_settings_change_between_steps);
    RUN(test_any_number_of_threads_gives_the_same_bits_threads);
    RUN(test_failing_allocations_change_nothing);
    RUN(test_an_allocation_that_fails_once_changes_nothing);
    RUN(test_settling_without_memory_changes_nothing);
    RUN(test_a_steady_state_allocates_nothing);
    RUN(test_a_loaded_state_goes_on_with_the_same_bits);
    RUN(test_damaged_and_foreign_states_are_refused);
    RUN(test_teleporting_is_checked);
    RUN(test_pins_reach_their_targets_exactly);
    RUN(test_a_pin_that_cannot_get_there_is_named_and_nothing_changes);
    RUN(test_bad_obstacles_and_springs_are_refused);
    RUN(test_pins_bear_what_hangs_on_them);
    RUN(test_normals_of_vertices_stand_on_the_surface);
    RUN(test_reactions_at_rest_equal_the_weight);
    RUN(test_moving_and_deforming_meshes_take_cloth_along);
    RUN(test_what_is_attached_to_a_body_goes_where_the_body_goes);
    RUN(test_a_prescribed_body_feels_the_weight);
    RUN(test_a_coupled_body_and_a_cloth_keep_their_momentum);
    RUN(test_a_cloth_bears_a_coupled_body);
    RUN(test_friction_holds_below_its_angle_and_slides_above_it);
    RUN(test_sheets_slide_as_far_as_coulomb_says);
    RUN(test_a_belt_takes_a_sheet_along);
    RUN(test_a_sheet_slides_on_a_ship);
    RUN(test_springs_pull_as_hooke_says);
    RUN(test_a_spring_pulls_a_coupled_body_as_much_as_its_vertex);
    RUN(test_a_skin_follows);
    RUN(test_debug_draw_shows_edges_pins_forces_and_obstacles);
    RUN(test_figures_agree_with_the_state);
    RUN(test_presets_have_names_and_work);
    RUN(test_points_lie_on_a_sheet);
    RUN(test_a_chain_in_two_dimensions_lands_and_lies);
    RUN(test_a_cloth_is_pulled_through_a_ring);
    return TEST_END();
}
