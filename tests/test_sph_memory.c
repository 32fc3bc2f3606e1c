/* test_sph_memory.c - memory that cannot be had, at any allocation of a step, for once or from then on: the step fails, changes nothing,
   and goes through as if it had not been tried when there is memory again.
   SPDX-License-Identifier: MIT */
#include "test_sph_scenes.h"

static long only; /* this allocation fails, 1: the next; 0: none */

static void *fail_once(void *user, size_t size, size_t align) { return only > 0 && --only == 0 ? NULL : test__alloc(user, size, align); }

/* Sources, viscosity, tension, a body told and a body coupled, a mesh that moves: as many at once as bits in `with`. */
enum { WITH_SOURCES = 1, WITH_VISCOSITY = 2, WITH_TENSION = 4, WITH_BODIES = 8, WITH_MOVING = 16 };
typedef struct scene { fsi_sph *s; fsi_mesh *block, *plate; fsi_body told, coupled; } scene;

static void make_scene(scene *c, int dim, int with, fsi_context *context)
{
    fsi_sph_desc d = make_desc(dim, dim == 2 ? 0.03 : 0.04);
    fsi_sph_emitter_desc e = fsi_sph_default_emitter_desc();
    fsi_sph_sink_desc k = fsi_sph_default_sink_desc();
    fsi_sph_obstacle_desc o = fsi_sph_default_obstacle_desc();
    memset(c, 0, sizeof *c);
    d.context = context;
    d.domain = dim == 2 ? box3(0, 0, 0, 0.4, 0.4, 0) : box3(0, 0, 0, 0.32, 0.16, 0.4);
    d.depth = (fsi_real)0.2;
    d.max_substeps = 3;
    d.max_iters = 12;
    if (with & WITH_VISCOSITY) d.viscosity = 2;
    if (with & WITH_TENSION) d.surface_tension = (fsi_real)0.07;
    if (with & WITH_SOURCES) d.markers = d.attribute_count = 1;
    c->s = make_sph(&d);
    CHECK(fsi_sph_fill_box(c->s, dim == 2 ? box3(0, 0, 0, 0.15, 0.24, 0) : box3(0, 0, 0, 0.12, 0.16, 0.16), v3(0, 0, 0), NULL) == FSI_OK);
    if (with & WITH_SOURCES) {
        e.center = in_tank(dim, 0, 0.3);
        e.radius = (fsi_real)(dim == 2 ? 0.06 : 0.05);
        e.speed = 3;
        CHECK(fsi_sph_add_emitter(c->s, &e, NULL) == FSI_OK);
        k.box = dim == 2 ? box3(0, 0, 0, 0.4, 0.03, 0) : box3(0, 0, 0, 0.4, 0.4, 0.03);
        CHECK(fsi_sph_add_sink(c->s, &k, NULL) == FSI_OK);
    }
    if (with & WITH_BODIES) {
        c->block = make_block(dim, 0.04, 0.04, 0.06);
        c->plate = make_block(dim, 0.05, 0.02, 0.06);
        c->told = make_floater(c->plate, 500, 9.81, dim);
        c->told.mode = FSI_BODY_PRESCRIBED;
        c->told.pose = pose_at(dim, 0.22, 0.04, 0.1);
        c->told.end = pose_at(dim, 0.2, 0.04, 0.2);
        c->coupled = make_floater(c->block, 400, 9.81, dim);
        c->coupled.mode = FSI_BODY_COUPLED;
        c->coupled.pose = pose_at(dim, 0.21, 0.14, 0.3);
        mesh_to(c->block, c->coupled.pose);
        mesh_to(c->plate, c->told.pose);
        o.mesh = c->plate;
        o.body = &c->told;
        CHECK(fsi_sph_add_obstacle(c->s, &o, NULL) == FSI_OK);
        o.mesh = c->block;
        o.body = &c->coupled;
        CHECK(fsi_sph_add_obstacle(c->s, &o, NULL) == FSI_OK);
    }
    if (with & WITH_MOVING) {
        c->block = make_block(dim, 0.04, 0.04, 0.06);
        mesh_to(c->block, pose_at(dim, 0.22, 0.06, 0));
        CHECK(fsi_sph_add_mesh(c->s, c->block, NULL) == FSI_OK);
    }
}

static void move_scene(scene *c)
{
    if (!c->coupled.mass && c->block) {
        fsi_pose p = pose_at(c->s->desc.dim, 0.2, 0.06, 0.2);
        CHECK(fsi_mesh_move_rigid(c->block, p.position, p.orientation) == FSI_OK);
    }
}

static void end_scene(scene *c)
{
    fsi_sph_destroy(c->s);
    fsi_mesh_destroy(c->block);
    fsi_mesh_destroy(c->plate);
}

/* The first step, or `warm` one after it. */
static void prepare_scene(scene *c, int warm)
{
    if (warm) {
        step_ok(c->s, 0.01);
        c->told.pose = c->told.end;
        c->coupled.pose = c->coupled.end;
        c->coupled.velocity = c->coupled.new_velocity;
    }
    move_scene(c);
}

/* A step of which the n-th allocation fails, for once or with all after it; then again. Returns 0 when it has no so many. */
static int check_failing(int dim, int with, int warm, long n, int once, uint64_t want)
{
    fsi_context context = fsi_default_context();
    fsi_status status;
    uint64_t before;
    scene c;
    test_fail_allocator(&context, 0);
    context.alloc = fail_once;
    only = 0;
    make_scene(&c, dim, with, &context);
    prepare_scene(&c, warm);
    before = fsi_sph_hash(c.s);
    if (once) only = n;
    else test__heap.fail_at = test__heap.count + n;
    status = fsi_sph_step(c.s, (fsi_real)0.02);
    only = 0;
    test__heap.fail_at = 0;
    if (status != FSI_OK) {
        CHECK(status == FSI_ERROR_MEMORY && fsi_sph_hash(c.s) == before);
        step_ok(c.s, 0.02);
    }
    CHECK(fsi_sph_hash(c.s) == want);
    end_scene(&c);
    CHECK(context.bytes == 0);
    return status != FSI_OK;
}

static uint64_t hash_of(int dim, int with, int warm)
{
    scene c;
    uint64_t hash;
    make_scene(&c, dim, with, NULL);
    prepare_scene(&c, warm);
    step_ok(c.s, 0.02);
    hash = fsi_sph_hash(c.s);
    end_scene(&c);
    return hash;
}

static void test_step_without_memory_can_be_tried_again(void)
{
    static const int scenes[] = { 0, WITH_SOURCES, WITH_SOURCES | WITH_VISCOSITY, WITH_SOURCES | WITH_TENSION, WITH_SOURCES | WITH_VISCOSITY | WITH_TENSION | WITH_BODIES,
        WITH_BODIES, WITH_VISCOSITY | WITH_MOVING, WITH_TENSION | WITH_BODIES };
    int k, dim, warm, once, failed = 0;
    long n;
    for (k = 0; k < (int)(sizeof scenes / sizeof *scenes); k++) {
        for (dim = 2; dim <= (TEST_SLOWED ? 2 : 3); dim++) {
            for (warm = 0; warm <= 1; warm++) {
                const uint64_t want = hash_of(dim, scenes[k], warm);
                for (once = 0; once <= 1; once++)
                    for (n = 1; n < 60 && check_failing(dim, scenes[k], warm, n, once, want); n++) failed++;
            }
        }
    }
    printf("      %d allocations failed\n", failed);
    CHECK(failed > 100);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_step_without_memory_can_be_tried_again);
    return TEST_END();
}
