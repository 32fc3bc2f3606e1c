/* test_elastic_calls.c - what callers may do to elastic bodies: bad input, states, memory, threads, obstacles.
   SPDX-License-Identifier: MIT */
#include "kit/test_elastic.h"

/* ---- cages
   ----------------------------------------------------------------------------------------------------------- */

/* A cage around a ball weighs what the ball weighs, and its surface is the ball's. */
static void test_a_cage_holds_its_surface(void)
{
    fsi_mesh *ball = ball_mesh(0.5, 12);
    fsi_mass_properties mass;
    int k;
    CHECK(fsi_mesh_mass(ball, 1000, 1, &mass) == FSI_OK);
    for (k = 0; k < 2; k++) {
        world w = world_of(3);
        const fsi_mesh *surface;
        int id, v;
        w.body.surface = ball;
        w.body.resolution = k ? 16 : 9;
        w.desc.gravity = fsi_v3(0, 0, 0);
        if (!world_begin(&w)) return;
        if (!CHECK(fsi_elastic_add_body(w.s, &w.body, &id) == FSI_OK)) {
            printf("%s\n", w.context.error.message);
            return;
        }
        CHECK_NEAR(w.s->bodies[0].mass, mass.mass, (k ? 0.03 : 0.06) * (double)mass.mass);
        CHECK((double)fsi_v3_norm(w.s->bodies[0].center) < 0.01);
        world_run(&w, 1.0 / 60, 10);
        surface = fsi_elastic_surface(w.s, id);
        if (!CHECK(surface && surface->vertex_count == ball->vertex_count)) return;
        for (v = 0; v < surface->vertex_count; v++)
            CHECK_NEAR(fsi_v3_norm(surface->vertices[v]), 0.5, 1e-5);
        world_end(&w);
    }
    fsi_mesh_destroy(ball);
}

/* A box in a coarse cage turns with its own inertia; lumped masses have 2/n^2 more, 12.5 % for 4 cells. */
static void test_a_cage_has_the_inertia_of_its_box(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        fsi_mesh *box = box_mesh(fsi_v3(0, 0, 0), fsi_v3(REAL(0.4), REAL(0.3), dim == 3 ? REAL(0.2) : 0), dim);
        world w = world_of(dim);
        double want;
        int id;
        w.body.surface = box;
        w.body.resolution = 4;
        w.body.handles = 10;
        w.body.angular_velocity = fsi_v3(0, 0, 2);
        if (!world_begin(&w) || !CHECK(fsi_elastic_add_body(w.s, &w.body, &id) == FSI_OK)) return;
        want = 1000 * 0.4 * 0.3 * (dim == 3 ? 0.2 : 1) * (0.4 * 0.4 + 0.3 * 0.3) / 12 * 2;
        CHECK_NEAR(w.s->bodies[0].spin.z, want, TOL(1e-6, 1e-4) * want);
        world_end(&w);
        fsi_mesh_destroy(box);
    }
}

static void test_a_flat_cage_moves_in_the_plane(void)
{
    fsi_mesh *plate = box_mesh(fsi_v3(0, REAL(0.1), 0), fsi_v3(REAL(0.4), REAL(0.3), 0), 2);
    world w = world_of(2);
    int id;
    w.body.surface = plate;
    w.body.resolution = 8;
    w.body.handles = 6;
    w.material.damping = REAL(0.02);
    w.body.materials = &w.material;
    w.body.material_count = 1;
    if (!world_begin(&w)) return;
    if (!CHECK(fsi_elastic_add_body(w.s, &w.body, &id) == FSI_OK)) { printf("%s\n", w.context.error.message); return; }
    CHECK_NEAR(w.s->bodies[0].mass, 1000 * 0.4 * 0.2, 0.01);
    world_floor(&w, 0.5);
    world_run(&w, 1.0 / 60, 180);
    CHECK_NEAR(w.s->bodies[0].center.y, 0.088, 0.003); /* it stands on its two corners: 0.0869 with all unknowns */
    CHECK(w.s->stats.kinetic_energy < 1e-3 && w.s->bodies[0].center.z == 0);
    world_end(&w);
    fsi_mesh_destroy(plate);
}

/* ---- obstacles
   -------------------------------------------------------------------------------------------------------- */

/* A block rests on a box that is a mesh, is lifted by it, and by one that a PRESCRIBED body carries: its reaction is
   the weight and what accelerates it. */
static void test_meshes_carry_blocks(void)
{
    int k;
    for (k = 0; k < 4; k++) {
        const int dim = 2 + k % 2, carried = k / 2;
        fsi_mesh *table =
            box_mesh(fsi_v3(REAL(-0.5), REAL(-0.5), REAL(-0.5)), fsi_v3(REAL(0.5), dim == 3 ? REAL(0.5) : 0, 0), dim);
        fsi_elastic_obstacle_desc d = fsi_elastic_default_obstacle_desc();
        block b = block_make(3, 3, dim == 3 ? 3 : 0, 0.05);
        fsi_body body = fsi_default_body();
        fsi_vec3 x[8], force, torque, up = dim == 3 ? fsi_v3(0, 0, 1) : fsi_v3(0, 1, 0);
        world w = world_of(dim);
        const double dt = 1.0 / 120;
        int id, i, v;
        w.body.position = fsi_v3_scale(up, REAL(0.01));
        w.material.damping = REAL(0.05);
        if (!world_begin(&w)) return;
        world_add(&w, &b);
        d.mesh = table;
        d.body = carried ? &body : NULL;
        CHECK(fsi_elastic_add_obstacle(w.s, &d, &id) == FSI_OK);
        world_run(&w, dt, 120);
        for (v = 0; v < table->vertex_count; v++) x[v] = table->vertices[v];
        for (i = 0; i < 60; i++) {
            for (v = 0; v < table->vertex_count; v++) x[v] = fsi_v3_madd(x[v], REAL(0.5 * dt), up);
            if (!carried) CHECK(fsi_mesh_move(table, x, table->source_count) == FSI_OK);
            body.end.position = fsi_v3_scale(up, REAL(0.5 * dt * (i + 1)));
            CHECK(fsi_elastic_step(w.s, REAL(dt)) == FSI_OK);
            body.pose = body.end;
        }
        CHECK_NEAR(fsi_v3_dot(w.s->bodies[0].velocity, up), 0.5, 0.02);
        CHECK_NEAR(fsi_v3_dot(w.s->bodies[0].center, up), 0.075 + 0.25, 0.01);
        CHECK(fsi_elastic_obstacle_reaction(w.s, id, &force, &torque) == FSI_OK);
        CHECK_NEAR(fsi_v3_dot(force, up), -9.81 * w.s->bodies[0].mass, 0.1 * 9.81 * w.s->bodies[0].mass);
        if (carried)
            CHECK_NEAR(fsi_v3_dot(body.reaction_force, up), fsi_v3_dot(force, up), 1e-3 * 9.81 * w.s->bodies[0].mass);
        CHECK(fsi_elastic_remove_obstacle(w.s, id) == FSI_OK &&
              fsi_elastic_remove_obstacle(w.s, id) == FSI_ERROR_ARGUMENT);
        world_end(&w);
        fsi_mesh_destroy(table);
        block_free(&b);
    }
}

/* Thrown at a ball and into a hollow one, at 20 m/s: nothing passes. */
static void test_fast_bodies_stay_where_they_belong(void)
{
    int k, i;
    for (k = 0; k < 2; k++) {
        block b = block_make(3, 3, 3, 0.05);
        world w = world_of(3);
        fsi_elastic_shape_desc d = fsi_elastic_default_shape_desc();
        w.desc.gravity = fsi_v3(0, 0, 0);
        w.body.velocity = fsi_v3(20, 0, 0);
        w.body.handles = k ? 8 : 0;
        if (!world_begin(&w)) return;
        world_add(&w, &b);
        d.kind = k ? FSI_ELASTIC_HOLLOW_BALL : FSI_ELASTIC_BALL;
        d.point = k ? fsi_v3(0, 0, 0) : fsi_v3(1, REAL(0.07), REAL(0.07));
        d.radius = k ? 1 : REAL(0.3);
        CHECK(fsi_elastic_add_shape(w.s, &d, NULL) == FSI_OK);
        for (i = 0; i < 60; i++) {
            const fsi_mesh *m;
            int v;
            if (!CHECK(fsi_elastic_step(w.s, REAL(1.0 / 60)) == FSI_OK)) break;
            m = fsi_elastic_surface(w.s, 0);
            for (v = 0; v < m->vertex_count; v++) {
                const double r = (double)fsi_v3_norm(fsi_v3_sub(m->vertices[v], d.point));
                CHECK(k ? r < 1 + 0.02 : r > 0.3 - 0.05);
            }
        }
        CHECK(w.s->bodies[0].stats.volume_ratio > 0.9 && w.s->bodies[0].stats.volume_ratio < 1.1);
        world_end(&w);
        block_free(&b);
    }
}

/* ---- states
   ----------------------------------------------------------------------------------------------------------- */

/* Blocks that fall on the floor and on each other, one with pins. */
static int scene(world *w)
{
    block b = block_make(2, 2, 2, 0.1);
    fsi_elastic_attachment_desc d = fsi_elastic_default_attachment_desc();
    int k;
    w->desc.iterations = 8;
    w->body.contact_points = 60;
    if (!fsi_elastic_create(&w->s, &w->desc)) for (k = 0; k < 3; k++) {
        int id;
        w->body.handles = k == 1 ? 4 : 0;
        w->body.position = fsi_v3(REAL(0.03 * k), 0, REAL(0.02 + 0.23 * k));
        w->body.vertices = b.x;
        w->body.vertex_count = b.vertices;
        w->body.elements = b.element;
        w->body.element_count = b.elements;
        if (fsi_elastic_add_body(w->s, &w->body, &id) != FSI_OK) break;
        if (k > 0) continue;
        {
            fsi_elastic_shape_desc f = fsi_elastic_default_shape_desc();
            if (fsi_elastic_add_shape(w->s, &f, NULL) != FSI_OK) break;
        }
        d.body = id;
        d.vertex = 0;
        d.target = fsi_v3(0, 0, REAL(0.03));
        d.stiffness = 100;
        if (fsi_elastic_attach(w->s, &d, NULL) != FSI_OK) break;
    }
    block_free(&b);
    return w->s && w->s->body_count == 3;
}

static void *state_of(const fsi_elastic *s, size_t *size)
{
    void *state;
    CHECK(fsi_elastic_save(s, NULL, 0, size) == FSI_OK);
    state = malloc(*size);
    CHECK(fsi_elastic_save(s, state, *size, size) == FSI_OK);
    return state;
}

static void test_a_loaded_state_goes_on_bit_for_bit(void)
{
    world a = world_of(3), b = world_of(3);
    size_t size, k;
    void *state;
    unsigned char *bad;
    uint64_t end, start;
    a.desc.context = &a.context;
    b.desc.context = &b.context;
    if (!CHECK(scene(&a) && scene(&b))) return;
    world_run(&a, 1.0 / 60, 30);
    state = state_of(a.s, &size);
    start = fsi_elastic_hash(a.s);
    world_run(&a, 1.0 / 60, 30);
    end = fsi_elastic_hash(a.s);
    CHECK(fsi_elastic_load(b.s, state, size) == FSI_OK && fsi_elastic_hash(b.s) == start);
    world_run(&b, 1.0 / 60, 30);
    CHECK(fsi_elastic_hash(b.s) == end);
    CHECK(fsi_elastic_load(a.s, state, size) == FSI_OK);
    world_run(&a, 1.0 / 60, 30);
    CHECK(fsi_elastic_hash(a.s) == end);

    /* Damaged: refused, nothing changes. */
    bad = (unsigned char *)malloc(size);
    for (k = 0; k < size; k += 1 + size / 200) {
        memcpy(bad, state, size);
        bad[k] ^= 0x41;
        CHECK(fsi_elastic_load(a.s, bad, size) != FSI_OK && fsi_elastic_hash(a.s) == end);
        CHECK(fsi_elastic_load(a.s, state, k) != FSI_OK && fsi_elastic_hash(a.s) == end);
    }
    free(bad);
    free(state);
    world_end(&a);
    world_end(&b);
}

/* Any number of threads, in any order. */
static void test_threads_change_no_bit(void)
{
    uint64_t want = 0;
    int n;
    for (n = 0; n < 4; n++) {
        block b = block_make(8, 8, 8, 0.025);
        world w = world_of(3);
        if (n > 0) test_threads(&w.context, n == 1 ? 1 : n == 2 ? 3 : 5, n == 3);
        w.desc.iterations = 5;
        w.body.position = fsi_v3(0, 0, REAL(0.005));
        w.body.handles = 0;
        if (!world_begin(&w)) return;
        world_floor(&w, 0.5);
        world_add(&w, &b);
        w.body.handles = 20;
        w.body.position = fsi_v3(REAL(0.01), 0, REAL(0.21));
        world_add(&w, &b);
        world_run(&w, 1.0 / 60, 6);
        if (n == 0) want = fsi_elastic_hash(w.s);
        CHECK(fsi_elastic_hash(w.s) == want);
        world_end(&w);
        block_free(&b);
    }
}

static void count_messages(void *user, int level, const char *text)
{
    (void)text;
    if (level == 1) ++*(int *)user;
}

/* Steps of too few iterations are told of, but not each. */
static void test_messages_do_not_flood(void)
{
    block b = block_make(4, 4, 4, 0.05);
    world w = world_of(3);
    int told = 0, k, degraded = 0;
    w.context.message = count_messages;
    w.context.user = &told;
    w.desc.iterations = 1;
    w.body.angular_velocity = fsi_v3(5, 3, 1);
    if (!world_begin(&w)) return;
    world_add(&w, &b);
    world_floor(&w, 0.5);
    for (k = 0; k < 100; k++) {
        world_run(&w, 1.0 / 60, 1);
        degraded += w.s->stats.degraded > 0;
    }
    CHECK(degraded > 30 && told >= 5 && told <= 7);
    world_end(&w);
    block_free(&b);
}

/* ---- memory
   ----------------------------------------------------------------------------------------------------------- */

static void test_every_failed_allocation_rolls_back(void)
{
    world whole = world_of(3);
    uint64_t want;
    long fail;
    int stage = 0, refused = 0;
    whole.desc.context = &whole.context;
    if (!CHECK(scene(&whole))) return;
    world_run(&whole, 1.0 / 60, 12);
    want = fsi_elastic_hash(whole.s);
    for (fail = 1; stage >= 0 && fail < 3000; fail += TEST_SLOWED ? 5 : 1) {
        const size_t live = test_live_bytes();
        world w = world_of(3);
        int k;
        w.desc.context = &w.context;
        test_fail_allocator(&w.context, fail);
        stage = 0;
        if (scene(&w)) for (stage = 1, k = 0; k < 12; k++) {
            const uint64_t before = fsi_elastic_hash(w.s);
            if (fsi_elastic_step(w.s, REAL(1.0 / 60)) == FSI_OK) continue;
            refused++;
            CHECK(w.context.error.status == FSI_ERROR_MEMORY && fsi_elastic_hash(w.s) == before);
            test_fail_allocator(&w.context, 0);
            for (; k < 12; k++) CHECK(fsi_elastic_step(w.s, REAL(1.0 / 60)) == FSI_OK);
            CHECK(fsi_elastic_hash(w.s) == want);
            break;
        } else CHECK(w.context.error.status == FSI_ERROR_MEMORY);
        if (stage == 1 && k == 12 && test_alloc_count() < fail) stage = -1;
        fsi_elastic_destroy(w.s);
        CHECK(w.context.bytes == 0 && test_live_bytes() == live);
    }
    CHECK(stage == -1 && refused > 0);
    world_end(&whole);
}

/* Cages, meshes, bodies that meet themselves, attachments, skins, rays and forces: as far as memory goes. Returns
   whether all was made. */
static int furnish(world *w, const fsi_mesh *ball, const fsi_mesh *table, fsi_elastic_skin **skin)
{
    static const fsi_vec3 rest[2] = { { 0, 0, 0 }, { REAL(0.05), 0, 0 } };
    fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
    fsi_vec3 x[600];
    fsi_status status;
    int body, pin[2], hit;
    *skin = NULL;
    w->s = NULL;
    w->desc.context = &w->context;
    w->body.surface = ball;
    w->body.resolution = 5;
    w->body.handles = 6;
    w->body.contact_points = 60;
    w->body.self_contact = 1;
    w->body.position = fsi_v3(0, 0, REAL(0.1));
    if (fsi_elastic_create(&w->s, &w->desc) != FSI_OK) return 0;
    if (fsi_elastic_add_body(w->s, &w->body, &body) != FSI_OK) return 0;
    if (fsi_elastic_add_mesh(w->s, table, NULL) != FSI_OK) return 0;
    a.body = body;
    a.target = fsi_v3(0, 0, REAL(0.12));
    a.stiffness = 50;
    if (fsi_elastic_attach(w->s, &a, &pin[0]) != FSI_OK || fsi_elastic_attach(w->s, &a, &pin[1]) != FSI_OK) return 0;
    if (fsi_elastic_detach(w->s, pin[0]) != FSI_OK) return 0;
    if (fsi_elastic_skin_create(skin, w->s, body, rest, NULL, 2) != FSI_OK) return 0;
    if (fsi_elastic_add_force(w->s, body, rest[1], fsi_v3(1, 0, 0)) != FSI_OK) return 0;
    status = fsi_elastic_vertices(w->s, body, x, NULL);
    if (status == FSI_OK) status = fsi_elastic_set_vertices(w->s, body, x, NULL);
    if (status != FSI_OK) return 0;
    return fsi_elastic_pick(w->s, fsi_v3(0, 0, 1), fsi_v3(0, 0, -1), 2, &hit, NULL).face >= 0;
}

static void test_every_failed_allocation_of_a_call_is_told(void)
{
    fsi_mesh *ball = ball_mesh(0.1, 6),
             *table = box_mesh(fsi_v3(REAL(-0.5), REAL(-0.5), REAL(-0.5)), fsi_v3(REAL(0.5), REAL(0.5), 0), 3);
    long fail;
    int done = 0;
    for (fail = 1; !done && fail < 3000; fail += TEST_SLOWED ? 3 : 1) {
        const size_t live = test_live_bytes();
        world w = world_of(3);
        fsi_elastic_skin *skin;
        int made, k;
        test_fail_allocator(&w.context, fail);
        made = furnish(&w, ball, table, &skin);
        if (!made) CHECK(w.context.error.status == FSI_ERROR_MEMORY);
        for (k = 0; k < 8 && made; k++) {
            const uint64_t before = fsi_elastic_hash(w.s);
            if (fsi_elastic_step(w.s, REAL(1.0 / 60)) == FSI_OK) continue;
            CHECK(w.context.error.status == FSI_ERROR_MEMORY && fsi_elastic_hash(w.s) == before);
            made = 0;
        }
        done = made && test_alloc_count() < fail;
        fsi_elastic_skin_destroy(skin);
        fsi_elastic_destroy(w.s);
        if (!CHECK(w.context.bytes == 0 && test_live_bytes() == live)) break;
    }
    CHECK(done);
    fsi_mesh_destroy(ball);
    fsi_mesh_destroy(table);
}

static void test_a_scene_at_rest_allocates_nothing(void)
{
    world w = world_of(3);
    size_t size;
    void *state;
    long long before;
    w.desc.context = &w.context;
    if (!CHECK(scene(&w))) return;
    world_run(&w, 1.0 / 60, 60);
    state = state_of(w.s, &size);
    world_run(&w, 1.0 / 60, 30);
    CHECK(fsi_elastic_load(w.s, state, size) == FSI_OK);
    before = w.context.allocs;
    world_run(&w, 1.0 / 60, 30);
    CHECK(w.context.allocs - before <= 1); /* none but the load's own */
    CHECK(w.s->stats.allocs == w.context.allocs && w.s->stats.bytes == w.context.bytes);
    free(state);
    world_end(&w);
}

/* ---- bad input
   -------------------------------------------------------------------------------------------------------- */

static void refused(const world *w, fsi_status status, fsi_status want, const char *culprit)
{
    if (!CHECK(status == want) || !CHECK(strstr(w->context.error.message, culprit) != NULL))
        printf("got %s: %s\n", fsi_status_text(status), w->context.error.message);
}

static void test_bad_bodies_are_named(void)
{
    block b = block_make(2, 2, 2, 0.1);
    world w = world_of(3);
    fsi_elastic_body_desc d;
    int id, kept;
    fsi_vec3 keep;
    if (!world_begin(&w)) return;
    d = w.body;
    d.vertices = b.x;
    d.vertex_count = b.vertices;
    d.elements = b.element;
    d.element_count = b.elements;
    refused(&w, fsi_elastic_add_body(w.s, NULL, &id), FSI_ERROR_ARGUMENT, "desc is NULL");
    d.cookie++;
    refused(&w, fsi_elastic_add_body(w.s, &d, &id), FSI_ERROR_COOKIE, "fsi_elastic_default_body_desc");
    d.cookie--;
    kept = b.element[9];
    b.element[9] = 99;
    refused(&w, fsi_elastic_add_body(w.s, &d, &id), FSI_ERROR_ARGUMENT, "tetrahedron 2 names vertex 99");
    b.element[9] = b.element[8];
    refused(&w, fsi_elastic_add_body(w.s, &d, &id), FSI_ERROR_MESH, "tetrahedron 2 is flat");
    b.element[9] = kept;
    kept = b.element[12];
    b.element[12] = b.element[13];
    b.element[13] = kept;
    refused(&w, fsi_elastic_add_body(w.s, &d, &id), FSI_ERROR_MESH, "tetrahedron 3 is inverted");
    b.element[13] = b.element[12];
    b.element[12] = kept;
    keep = b.x[5];
    b.x[5].y = REAL(test_nan());
    refused(&w, fsi_elastic_add_body(w.s, &d, &id), FSI_ERROR_NAN, "vertex 5 is not finite");
    b.x[5] = keep;
    d.handles = 2;
    refused(&w, fsi_elastic_add_body(w.s, &d, &id), FSI_ERROR_ARGUMENT, "desc.handles is 2");
    d.handles = 0;
    d.materials = &w.material;
    d.material_count = 1;
    w.material.poisson = REAL(0.5);
    refused(&w, fsi_elastic_add_body(w.s, &d, &id), FSI_ERROR_ARGUMENT, "material 0: poisson is 0.5");
    w.material = fsi_elastic_default_material();
    w.material.young = REAL(test_nan());
    refused(&w, fsi_elastic_add_body(w.s, &d, &id), FSI_ERROR_NAN, "material 0: young is not finite");
    w.material = fsi_elastic_default_material();
    d.vertex_count++;
    {
        fsi_vec3 more[28];
        memcpy(more, b.x, 27 * sizeof *more);
        more[27] = fsi_v3(5, 5, 5);
        d.vertices = more;
        refused(&w, fsi_elastic_add_body(w.s, &d, &id), FSI_ERROR_MESH, "vertex 27 belongs to no tetrahedron");
        d.vertices = b.x;
        d.vertex_count--;
    }
    d.orientation.w = 2;
    refused(&w, fsi_elastic_add_body(w.s, &d, &id), FSI_ERROR_ARGUMENT, "the quaternion desc.orientation");
    d.orientation = fsi_quat_identity();
    CHECK(w.s->body_count == 0 && id == -1);
    world_end(&w);
    block_free(&b);
}

static void test_bad_surfaces_are_named(void)
{
    block b = block_make(2, 2, 2, 0.1);
    world w = world_of(3);
    fsi_elastic_body_desc d;
    fsi_mesh *open_box, *thin;
    int id;
    if (!world_begin(&w)) return;
    d = w.body;
    d.vertices = b.x;
    d.vertex_count = b.vertices;
    d.elements = NULL;
    refused(&w, fsi_elastic_add_body(w.s, &d, &id), FSI_ERROR_ARGUMENT, "either desc.surface or desc.elements");
    thin = box_mesh(fsi_v3(0, 0, 0), fsi_v3(1, 1, REAL(1e-4)), 3);
    d.surface = thin;
    d.resolution = 8;
    refused(&w, fsi_elastic_add_body(w.s, &d, &id), FSI_ERROR_MESH, "too thin");
    {
        static const int two[3] = { 0, 1, 3 };
        fsi_mesh_desc m = fsi_mesh_default_desc();
        m.vertices = b.x;
        m.vertex_count = 4;
        m.elements = two;
        m.element_count = 1;
        m.kind = FSI_MESH_TWO_SIDED;
        CHECK(fsi_mesh_create(&open_box, &m) == FSI_OK);
    }
    d.surface = open_box;
    refused(&w, fsi_elastic_add_body(w.s, &d, &id), FSI_ERROR_MESH, "not closed");
    CHECK(w.s->body_count == 0 && id == -1);
    fsi_mesh_destroy(open_box);
    fsi_mesh_destroy(thin);
    world_end(&w);
    block_free(&b);
}

static void test_bad_calls_are_named(void)
{
    block b = block_make(2, 2, 2, 0.1);
    world w = world_of(3);
    fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
    fsi_elastic_shape_desc f = fsi_elastic_default_shape_desc();
    fsi_elastic_obstacle_desc o = fsi_elastic_default_obstacle_desc();
    fsi_elastic_desc d;
    fsi_elastic_skin *skin;
    fsi_vec3 x[27], nan;
    uint64_t before;
    int id;
    nan = fsi_v3(REAL(test_nan()), 0, 0);
    CHECK(fsi_elastic_create(NULL, &w.desc) == FSI_ERROR_ARGUMENT);
    CHECK(fsi_elastic_create(&w.s, NULL) == FSI_ERROR_ARGUMENT && w.s == NULL);
    w.desc.context = &w.context;
    w.desc.iterations = 0;
    refused(&w, fsi_elastic_create(&w.s, &w.desc), FSI_ERROR_ARGUMENT, "desc.iterations is 0");
    w.desc.iterations = 20;
    w.desc.gravity = nan;
    refused(&w, fsi_elastic_create(&w.s, &w.desc), FSI_ERROR_NAN, "desc.gravity is not finite");
    w.desc.gravity = fsi_v3(0, 0, REAL(-9.81));
    w.body.handles = 0;
    if (!world_begin(&w)) return;
    world_add(&w, &b);
    before = fsi_elastic_hash(w.s);
    refused(&w, fsi_elastic_step(w.s, REAL(test_nan())), FSI_ERROR_ARGUMENT, "dt is");
    refused(&w, fsi_elastic_step(w.s, -1), FSI_ERROR_ARGUMENT, "dt is -1");
    CHECK(fsi_elastic_step(NULL, REAL(0.01)) == FSI_ERROR_COOKIE);
    CHECK(fsi_elastic_step(w.s, 0) == FSI_OK && fsi_elastic_hash(w.s) == before);
    refused(&w, fsi_elastic_add_force(w.s, 0, nan, fsi_v3(0, 0, 0)), FSI_ERROR_NAN, "not finite");
    refused(&w, fsi_elastic_add_force(w.s, 7, fsi_v3(0, 0, 0), fsi_v3(0, 0, 0)), FSI_ERROR_ARGUMENT,
            "there is no body 7");
    refused(&w, fsi_elastic_remove_body(w.s, 7), FSI_ERROR_ARGUMENT, "there is no body 7");
    a.body = 3;
    refused(&w, fsi_elastic_attach(w.s, &a, &id), FSI_ERROR_ARGUMENT, "there is no body 3");
    a.body = 0;
    a.vertex = 27;
    refused(&w, fsi_elastic_attach(w.s, &a, &id), FSI_ERROR_ARGUMENT, "there is no vertex 27");
    a.vertex = 0;
    a.target = nan;
    refused(&w, fsi_elastic_attach(w.s, &a, &id), FSI_ERROR_NAN, "desc.target is not finite");
    refused(&w, fsi_elastic_set_target(w.s, 5, fsi_v3(0, 0, 0)), FSI_ERROR_ARGUMENT, "there is no attachment 5");
    f.radius = 0;
    refused(&w, fsi_elastic_add_shape(w.s, &f, &id), FSI_ERROR_ARGUMENT, "desc.radius is 0");
    f.radius = 1;
    f.normal = fsi_v3(0, 0, 0);
    refused(&w, fsi_elastic_add_shape(w.s, &f, &id), FSI_ERROR_ARGUMENT, "desc.normal");
    refused(&w, fsi_elastic_remove_shape(w.s, 4), FSI_ERROR_ARGUMENT, "there is no shape 4");
    refused(&w, fsi_elastic_add_obstacle(w.s, &o, &id), FSI_ERROR_ARGUMENT, "desc.mesh is NULL");
    for (id = 0; id < 27; id++) x[id] = b.x[id];
    x[4] = nan;
    refused(&w, fsi_elastic_set_vertices(w.s, 0, x, NULL), FSI_ERROR_NAN, "vertex 4 is not finite");
    refused(&w, fsi_elastic_skin_create(&skin, w.s, 0, x, NULL, 27), FSI_ERROR_NAN, "vertex 4 is not finite");
    refused(&w, fsi_elastic_skin_create(&skin, w.s, 0, x, NULL, 0), FSI_ERROR_ARGUMENT, "a skin needs vertices");
    refused(&w, fsi_elastic_shift_origin(w.s, nan), FSI_ERROR_NAN, "offset is not finite");
    d = w.s->desc;
    d.dim = 2;
    d.gravity = fsi_v3(0, 0, 0);
    refused(&w, fsi_elastic_set_desc(w.s, &d), FSI_ERROR_ARGUMENT, "cannot change");
    refused(&w, fsi_elastic_load(w.s, x, sizeof x), FSI_ERROR_FORMAT, "");
    CHECK(fsi_elastic_hash(w.s) == before);
    CHECK(strstr(fsi_elastic_error(NULL)->message, "no simulator") != NULL);

    /* Out of the world: a step says so, and leaves the state as it was. */
    CHECK(fsi_elastic_add_force(w.s, 0, b.x[0], fsi_v3(REAL(1e25), 0, 0)) == FSI_OK);
    refused(&w, fsi_elastic_step(w.s, REAL(0.01)), FSI_ERROR_LIMIT, "body 0 would be farther than 1e12 m");
    CHECK(fsi_elastic_hash(w.s) == before);
    world_end(&w);
    block_free(&b);
}

/* Drags of 20 m/s, squeezes and throws for some seconds: all finite, the body comes back. */
static void test_wild_drags_lose_nothing(void)
{
    uint64_t random = 11;
    int k, i;
    for (k = 0; k < 2; k++) {
        block b = block_make(4, 4, 4, 0.05);
        world w = world_of(3);
        fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
        fsi_elastic_shape_desc d = fsi_elastic_default_shape_desc();
        fsi_vec3 at = fsi_v3(0, 0, REAL(0.3));
        int id[3], press;
        w.body.handles = k ? 12 : 0;
        w.material.damping = REAL(0.01);
        if (!world_begin(&w)) return;
        world_add(&w, &b);
        world_floor(&w, 0.5);
        d.normal = fsi_v3(0, 0, -1);
        d.point = fsi_v3(0, 0, 2);
        CHECK(fsi_elastic_add_shape(w.s, &d, &press) == FSI_OK);
        for (i = 0; i < 3; i++) {
            a.vertex = i * 60;
            a.target = at;
            a.stiffness = i == 0 ? 0 : REAL(1e4);
            CHECK(fsi_elastic_attach(w.s, &a, &id[i]) == FSI_OK);
        }
        for (i = 0; i < 180; i++) {
            at = fsi_v3_madd(at, REAL(20.0 / 60),
                             fsi_v3_unit(fsi_v3(REAL(test_random(&random) - 0.5), REAL(test_random(&random) - 0.5),
                                                REAL(test_random(&random) - 0.5))));
            if (i < 90) CHECK(fsi_elastic_set_target(w.s, id[i % 3], at) == FSI_OK);
            if (i == 90) for (press = 0; press < 3; press++) CHECK(fsi_elastic_detach(w.s, id[press]) == FSI_OK);
            if (!CHECK(fsi_elastic_step(w.s, REAL(1.0 / 60)) == FSI_OK)) break;
            CHECK(fsi_is_finite(w.s->stats.kinetic_energy) && fsi_v3_is_finite(w.s->bodies[0].center));
        }
        world_run(&w, 1.0 / 60, 180);
        CHECK_NEAR(w.s->bodies[0].stats.volume_ratio, 1, 0.02);
        CHECK(w.s->bodies[0].stats.stretch_min > 0.8);
        world_end(&w);
        block_free(&b);
    }
}

/* As many handles as there may be, each of which reaches everywhere: they still only move the body as a whole. */
static void test_many_handles_reach_everywhere(void)
{
    const int wide = TEST_SLOWED ? 8 : 16;
    block b = block_make(wide, wide, 4, 0.05);
    world w = world_of(3);
    fsi_elastic_skin *skin;
    fsi_vec3 x, rest = fsi_v3(REAL(0.3), REAL(0.2), REAL(0.1));
    w.desc.gravity = fsi_v3(0, 0, 0);
    w.body.handles = TEST_SLOWED ? 100 : 360;
    w.body.handle_reach = 10;
    w.body.regions = 600;
    w.body.contact_points = 0;
    if (!world_begin(&w)) return;
    world_add(&w, &b);
    CHECK(fsi_elastic_skin_create(&skin, w.s, 0, &rest, NULL, 1) == FSI_OK);
    CHECK(fsi_elastic_skin_update(skin, w.s, &x, NULL) == FSI_OK);
    CHECK((double)fsi_v3_norm(fsi_v3_sub(x, rest)) < 1e-5);
    fsi_elastic_skin_destroy(skin);
    world_end(&w);
    block_free(&b);
}

/* More unknowns than the vertices need: some move nothing. Long steps go on all the same, and keep the shape. */
static void test_more_handles_than_vertices_need(void)
{
    static const double dt[3] = { 1.0 / 60, 2, 20 };
    block b = block_make(2, 2, 8, 0.05);
    int k;
    for (k = 0; k < 3; k++) {
        world w = world_of(3);
        w.desc.gravity = fsi_v3(0, 0, 0);
        w.body.handles = 40;
        w.body.contact_points = 0;
        w.body.velocity = fsi_v3(1, 0, 0);
        if (!world_begin(&w)) return;
        world_add(&w, &b);
        CHECK(fsi_elastic_step(w.s, REAL(dt[k])) == FSI_OK);
        CHECK_NEAR((double)w.s->bodies[0].center.x, 0.05 + dt[k], TOL(1e-9, 1e-6) * dt[k] + TOL(1e-9, 1e-6));
        CHECK_NEAR(w.s->bodies[0].stats.stretch_min, 1, TOL(1e-4, 1e-2));
        CHECK_NEAR(w.s->bodies[0].stats.stretch_max, 1, TOL(1e-4, 1e-2));
        world_end(&w);
    }
    block_free(&b);
}

/* A body far from all others meets none, wherever it stood when it was made. */
static void test_bodies_far_apart_do_not_meet(void)
{
    block b = block_make(2, 2, 2, 0.5);
    world w = world_of(3);
    w.desc.gravity = fsi_v3(0, 0, 0);
    w.body.handles = 0;
    w.body.position = fsi_v3(REAL(0.5), REAL(0.5), REAL(0.5));
    if (!world_begin(&w)) return;
    world_add(&w, &b);
    w.body.position = fsi_v3(100, 0, 0);
    world_add(&w, &b);
    world_run(&w, 1.0 / 60, 2);
    CHECK(w.s->stats.contacts == 0 && w.s->stats.kinetic_energy < TOL(1e-15, 1e-9));
    world_end(&w);
    block_free(&b);
}

/* Bodies, attachments and forces come and go; the origin moves; a ray finds what it points at. */
static void test_bodies_come_and_go(void)
{
    block b = block_make(2, 2, 2, 0.1);
    world w = world_of(3);
    fsi_elastic_attachment_desc a = fsi_elastic_default_attachment_desc();
    fsi_mesh_hit hit;
    fsi_vec3 rest, from;
    int first, second, id, body;
    w.body.handles = 0;
    if (!world_begin(&w)) return;
    first = world_add(&w, &b);
    w.body.position = fsi_v3(1, 0, 0);
    second = world_add(&w, &b);
    a.body = second;
    a.vertex = 13;
    a.target = fsi_v3(REAL(1.1), REAL(0.1), REAL(0.1));
    CHECK(fsi_elastic_attach(w.s, &a, &id) == FSI_OK);
    hit = fsi_elastic_pick(w.s, fsi_v3(REAL(1.1), REAL(0.1), 3), fsi_v3(0, 0, -1), 10, &body, &rest);
    CHECK(hit.face >= 0 && body == second);
    CHECK_NEAR(rest.x, 0.1, 1e-5);
    CHECK_NEAR(rest.z, 0.2, 1e-5);
    world_run(&w, 1.0 / 60, 5);
    CHECK(fsi_elastic_remove_body(w.s, first) == FSI_OK && w.s->body_count == 1 && w.s->bodies[0].id == second);
    CHECK(fsi_elastic_find_body(w.s, second) == 0 && fsi_elastic_find_body(w.s, first) == -1);
    world_run(&w, 1.0 / 60, 60);
    CHECK((double)fsi_v3_norm(fsi_v3_sub(w.s->bodies[0].center, a.target)) < 0.05); /* it hangs on its pin */
    from = w.s->bodies[0].center;
    CHECK(fsi_elastic_shift_origin(w.s, fsi_v3(5, 6, 7)) == FSI_OK);
    CHECK((double)fsi_v3_norm(fsi_v3_sub(fsi_v3_sub(w.s->bodies[0].center, from), fsi_v3(5, 6, 7))) < 1e-4);
    world_run(&w, 1.0 / 60, 30);
    CHECK((double)fsi_v3_norm(fsi_v3_sub(fsi_v3_sub(w.s->bodies[0].center, a.target), fsi_v3(5, 6, 7))) < 0.05);
    CHECK((double)fsi_elastic_suggest_dt(w.s) > 0);
    CHECK(fsi_elastic_detach(w.s, id) == FSI_OK);
    world_end(&w);
    block_free(&b);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_cage_holds_its_surface);
    RUN(test_a_cage_has_the_inertia_of_its_box);
    RUN(test_a_flat_cage_moves_in_the_plane);
    RUN(test_meshes_carry_blocks);
    RUN(test_fast_bodies_stay_where_they_belong);
    RUN(test_a_loaded_state_goes_on_bit_for_bit);
    RUN(test_threads_change_no_bit);
    RUN(test_every_failed_allocation_rolls_back);
    RUN(test_every_failed_allocation_of_a_call_is_told);
    RUN(test_a_scene_at_rest_allocates_nothing);
    RUN(test_messages_do_not_flood);
    RUN(test_bad_bodies_are_named);
    RUN(test_bad_surfaces_are_named);
    RUN(test_bad_calls_are_named);
    RUN(test_wild_drags_lose_nothing);
    RUN(test_many_handles_reach_everywhere);
    RUN(test_more_handles_than_vertices_need);
    RUN(test_bodies_far_apart_do_not_meet);
    RUN(test_bodies_come_and_go);
    return TEST_END();
}
