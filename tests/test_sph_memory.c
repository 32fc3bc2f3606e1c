/* test_sph_memory.c - memory that cannot be had, at any allocation of a step, for once or from then on: the step fails, changes nothing,
   and goes through as if it had not been tried when there is memory again. States that somebody wrote: what is loaded can be stepped.
   Numbers that mean nothing: refused.
   SPDX-License-Identifier: MIT */
#include "kit/test_sph_scenes.h"

static long only; /* this allocation fails, 1: the next; 0: none */

static void *fail_once(void *user, size_t size, size_t align) { return only > 0 && --only == 0 ? NULL : test__alloc(user, size, align); }

/* Sources, viscosity, tension, a body told and a body coupled, a mesh that moves: as many at once as bits in `with`. */
enum { WITH_SOURCES = 1, WITH_VISCOSITY = 2, WITH_TENSION = 4, WITH_BODIES = 8, WITH_MOVING = 16 };
typedef struct scene { fsi_sph *s; fsi_mesh *block, *plate; fsi_body told, coupled; } scene;

static void make_scene(scene *c, int dim, int with, fsi_context *context)
{
    fsi_sph_desc d = make_desc(dim, dim == 2 ? 0.03 : 0.04);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    fsi_sink_desc k = fsi_sink_default_desc();
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

/* ---- crafted states ------------------------------------------------------------------------------------------- */

/* Loads; what is refused changes nothing, what is accepted can be stepped. Returns 1 when it was accepted. */
static int try_load(fsi_sph *s, const unsigned char *bytes, size_t size)
{
    const uint64_t before = fsi_sph_hash(s);
    fsi_status status = fsi_sph_load(s, bytes, size);
    int i;
    if (status != FSI_OK) {
        CHECK(fsi_sph_hash(s) == before);
        return 0;
    }
    status = fsi_sph_step(s, (fsi_real)1e-3);
    if (!CHECK(status == FSI_OK || status == FSI_ERROR_LIMIT)) printf("step after load: %s\n", fsi_sph_error(s)->message);
    CHECK(fsi_is_finite(s->stats.max_speed) && fsi_is_finite(s->stats.kinetic_energy));
    for (i = 0; i < s->count; i++) CHECK(fsi_v3_is_finite(s->position[i]) && fsi_v3_is_finite(s->velocity[i]));
    return 1;
}

/* Makes checksum and size of a state fit what it holds: magic, cookie, version, real_size (4 x 4 bytes), size, hash (2 x 8), payload. */
static void refit(unsigned char *state, size_t size)
{
    const uint64_t payload = size - 32, hash = fsi_hash(state + 32, size - 32, 0);
    memcpy(state + 16, &payload, sizeof payload);
    memcpy(state + 24, &hash, sizeof hash);
}

/* Every word of a state in turn becomes NaN, infinite, huge, negative or any integer, and its checksum is made to fit. */
static void test_crafted_state_is_refused_or_can_be_stepped(void)
{
    static const int scenes[3] = { WITH_SOURCES | WITH_VISCOSITY, WITH_BODIES | WITH_TENSION, WITH_SOURCES | WITH_TENSION | WITH_BODIES };
    const double numbers[7] = { test_nan(), test_inf(), -1e300, 1e150, -1, 1e37, 1e12 };
    int k, dim, refused = 0, accepted = 0;
    uint64_t random = 11;
    for (k = 0; k < 3; k++) {
        for (dim = 2; dim <= 3; dim++) {
            unsigned char *good, *bad;
            size_t size, at, word = sizeof(fsi_real), stride;
            scene c;
            make_scene(&c, dim, scenes[k], NULL);
            step_ok(c.s, 0.01);
            good = (unsigned char *)save_state(c.s, &size);
            bad = (unsigned char *)malloc(size);
            stride = word * (size_t)(TEST_SLOWED ? 97 : 29);
            for (at = 32; at + 8 <= size; at += at < 32 + 400 || size - at < 400 ? 4 : stride) {
                const int which = (int)(test_random(&random) * 10);
                const uint64_t bits = (uint64_t)(test_random(&random) * 1.8e19);
                memcpy(bad, good, size);
                if (which < 7) {
                    const fsi_real x = (fsi_real)numbers[which];
                    memcpy(bad + at, &x, word);
                } else if (which < 9) memcpy(bad + at, &bits, which == 7 ? 4 : 8);
                else memset(bad + at, 0xff, 8);
                refit(bad, size);
                if (try_load(c.s, bad, size)) accepted++;
                else refused++;
                CHECK(fsi_sph_load(c.s, good, size) == FSI_OK);
            }
            free(good);
            free(bad);
            end_scene(&c);
        }
    }
    printf("      %d refused, %d accepted\n", refused, accepted);
    CHECK(refused > 100 && accepted > 10);
}

/* ---- numbers that mean nothing -------------------------------------------------------------------------------- */

/* One number of a liquid in a tank with a body, an emitter and an obstacle made absurd: refused, or nothing comes of it. */
static void test_absurd_speeds_are_refused(void)
{
    const double absurd[5] = { 1e20, 1e30, TOL(1e100, 1e37), TOL(1e200, 1e38), TOL(1e300, 2e38) };
    int k, what, dim;
    for (dim = 2; dim <= 3; dim++) {
        for (k = 0; k < 5; k++) {
            for (what = 0; what < 9; what++) {
                fsi_emitter_desc e = fsi_emitter_default_desc();
                fsi_sph_desc d;
                fsi_status status;
                uint64_t hash;
                scene c;
                make_scene(&c, dim, what == 6 ? WITH_MOVING : WITH_BODIES, NULL);
                d = c.s->desc;
                e.radius = (fsi_real)0.05;
                if (what == 0) c.s->position[3].x = (fsi_real)absurd[k];
                if (what == 1) c.s->velocity[3].y = (fsi_real)-absurd[k];
                if (what == 2) c.s->force[3].x = (fsi_real)absurd[k];
                if (what == 3) c.coupled.velocity.x = (fsi_real)absurd[k];
                if (what == 4) c.coupled.force.y = (fsi_real)absurd[k];
                if (what == 5) c.told.end.position.x = (fsi_real)absurd[k];
                if (what == 7) e.velocity.x = (fsi_real)absurd[k];
                if (what == 8) d.gravity.x = (fsi_real)absurd[k];
                if (what == 6 && fsi_mesh_move_rigid(c.block, v3(absurd[k], 0, 0), fsi_quat_identity()) != FSI_OK) {
                    end_scene(&c);
                    continue;
                }
                hash = fsi_sph_hash(c.s);
                status = what == 7 ? fsi_sph_add_emitter(c.s, &e, NULL) : what == 8 ? fsi_sph_set_desc(c.s, &d) : fsi_sph_step(c.s, (fsi_real)0.01);
                if (!CHECK(status != FSI_OK)) printf("%dD, what %d, %g: accepted, max_speed %g\n", dim, what, absurd[k], c.s->stats.max_speed);
                CHECK(fsi_sph_hash(c.s) == hash);
                end_scene(&c);
            }
        }
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_step_without_memory_can_be_tried_again);
    RUN(test_crafted_state_is_refused_or_can_be_stepped);
    RUN(test_absurd_speeds_are_refused);
    return TEST_END();
}
