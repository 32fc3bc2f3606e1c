/* test_shell_state.c - what fsi_shell.h promises of saved states: what load takes a step can use, and goes on to the
   bit
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_shell.h"
#include "kit/test_shell.h"

/* Two cloths, one over the other, a rod sewn to the upper one, a point; a box below that moves, a body on top; a pin,
   an attached vertex, a spring. */
typedef struct layers { fsi_shell *s; fsi_mesh *box, *weight; fsi_body body; int upper; } layers;

static void layers_make(layers *l, fsi_context *context, int with_body)
{
    scene c = scene_empty();
    fsi_shell_spring_desc p = fsi_shell_default_spring_desc();
    fsi_mass_properties mass;
    int i, rod;
    memset(l, 0, sizeof *l);
    c.context = context;
    c.desc.friction = (fsi_real)0.3;
    c.desc.integrator = FSI_SHELL_BDF2;
    c.desc.contact_range = (fsi_real)0.02;
    for (i = 0; i < 3; i++) {
        c.material[i].young = (fsi_real)1e5;
        c.material[i].density = 200;
        c.material[i].damping_stiffness = (fsi_real)1e-4;
    }
    c.material[2].radius = (fsi_real)0.004;
    scene_sheet(&c, EQUILATERAL, 3, 3, 0.5, 0.5);
    l->upper = scene_sheet(&c, EQUILATERAL, 3, 3, 0.5, 0.5);
    scene_shift(&c, l->upper, 0.02, 0.01, 0.015);
    c.now = 2;
    rod = scene_rod(&c, 3, v3(0.6, 0.1, 0.02), v3(0.7, 0.4, 0.03));
    scene_segment(&c, c.vertices - 5, rod);
    scene_point(&c, 0.2, 0.2, 0.05, 0.002);
    l->s = scene_make(&c);
    scene_free(&c);
    l->box = make_box_at(NULL, 0.15, 0.15, 0.05, v3(0.25, 0.25, -0.065));
    l->weight = make_box_at(NULL, 0.05, 0.05, 0.02, v3(0.3, 0.3, 0.05));
    i = add_mesh(l->s, l->box, NULL, 0.4);
    CHECK(fsi_mesh_mass(l->weight, 500, 0, &mass) == FSI_OK);
    l->body = fsi_body_from_mass(&mass);
    if (with_body) add_mesh(l->s, l->weight, &l->body, 0.4);
    CHECK(fsi_shell_attach(l->s, rod + 3, i) == FSI_OK);
    p.vertex = 2;
    p.anchor = v3(0, 0.5, 0.2);
    p.stiffness = 2;
    CHECK(fsi_shell_add_spring(l->s, &p, NULL) == FSI_OK);
    l->s->pinned[l->upper] = 1;
}

static void layers_free(layers *l)
{
    fsi_shell_destroy(l->s);
    fsi_mesh_destroy(l->box);
    fsi_mesh_destroy(l->weight);
}

/* The box sinks, and shears while it does. */
static void layers_move(layers *l, int k, int load)
{
    fsi_vec3 x[8];
    int i;
    for (i = 0; i < 8; i++) {
        const double z = i & 4 ? 0.05 : -0.05;
        x[i] = v3(0.25 + (i & 1 ? 0.15 : -0.15) + 0.01 * k * z, 0.25 + (i & 2 ? 0.15 : -0.15), z - 0.065 - 0.001 * k);
    }
    CHECK((load ? fsi_mesh_set(l->box, x, 8) : fsi_mesh_move(l->box, x, 8)) == FSI_OK);
}

static void layers_step(layers *l, int k)
{
    layers_move(l, k, 0);
    l->body.end = l->body.pose;
    l->body.force = v3(0, 0, -9.81 * (double)l->body.mass);
    step_ok(l->s, 0.005);
    l->body.pose = l->body.end;
    l->body.velocity = l->body.new_velocity;
    l->body.angular_velocity = l->body.new_angular_velocity;
}

static void *save(const fsi_shell *s, size_t *size)
{
    void *state;
    CHECK(fsi_shell_save(s, NULL, 0, size) == FSI_OK);
    state = malloc(*size);
    CHECK(state && fsi_shell_save(s, state, *size, NULL) == FSI_OK);
    return state;
}

/* A COUPLED body lies on the cloth, the box below moves: load goes on to the bit, in float too, where the body's owner
   knows its place less well than the simulator does. */
static void test_under_a_coupled_body_a_loaded_state_goes_on_with_the_same_bits(void)
{
    fsi_context context = fsi_default_context();
    uint64_t want[2];
    fsi_body body;
    size_t size;
    void *state;
    layers l, other;
    int k, met = 0;
    layers_make(&l, &context, 1);
    for (k = 1; k <= 24; k++) layers_step(&l, k);
    body = l.body;
    state = save(l.s, &size);
    for (k = 25; k <= 40; k++) {
        layers_step(&l, k);
        met += l.body.impulse.z > 0;
    }
    CHECK(met > 8); /* the cloth bears it */
    want[0] = fsi_shell_hash(l.s);
    want[1] = fsi_hash(&l.body, offsetof(fsi_body, force), 0);
    layers_make(&other, &context, 1);
    for (k = 0; k < 2; k++) {
        layers *at = k ? &other : &l;
        int i;
        at->body = body;
        layers_move(at, 24, 1);
        if (!CHECK(fsi_shell_load(at->s, state, size) == FSI_OK)) printf("%s\n", context.error.message);
        for (i = 25; i <= 40; i++) layers_step(at, i);
        CHECK(fsi_shell_hash(at->s) == want[0]);
        CHECK(fsi_hash(&at->body, offsetof(fsi_body, force), 0) == want[1]);
    }
    free(state);
    layers_free(&l);
    layers_free(&other);
    CHECK(context.bytes == 0);
}

/* ---- crafted states: a checksum that fits says nothing about the numbers ---------------------------------------- */

/* The header: magic, cookie, version, size of a real, bytes of the payload, its hash. Then three counts, then
   positions. */
enum { HEADER = 32, COUNTS = 12 };

static void refit(unsigned char *state, size_t size)
{
    const uint64_t hash = fsi_hash(state + HEADER, size - HEADER, 0);
    memcpy(state + HEADER - 8, &hash, 8);
}

static int stats_are_finite(const fsi_shell *s)
{
    const fsi_shell_stats *t = &s->stats;
    return fsi_is_finite(t->kinetic_energy + t->elastic_energy + t->potential_energy + t->contact_energy + t->min_gap +
                         t->contact_stiffness + t->update);
}

/* A state with this number in it: refused, and nothing changes, or a step can start from it. Returns 1 where it is
   taken. */
static int try_state(fsi_shell *s, const void *state, size_t size)
{
    uint64_t before = fsi_shell_hash(s);
    fsi_vec3 x = s->position[1];
    const fsi_status status = fsi_shell_load(s, state, size);
    if (status != FSI_OK) {
        CHECK(status == FSI_ERROR_FORMAT || status == FSI_ERROR_MESH);
        CHECK(fsi_shell_hash(s) == before && memcmp(&x, &s->position[1], sizeof x) == 0);
        return 0;
    }
    CHECK(fsi_shell_count_intersections(s) == 0);
    before = fsi_shell_hash(s);
    if (fsi_shell_step(s, (fsi_real)1e-3) == FSI_OK)
        CHECK(stats_are_finite(s) && fsi_shell_count_intersections(s) == 0);
    else if (!CHECK(s->context->error.status == FSI_ERROR_CONVERGENCE && fsi_shell_hash(s) == before))
        printf("   %s\n", fsi_shell_error(s)->message);
    return 1;
}

/* Two vertices, one of each layer, change places: the layers pass through each other. */
static void test_states_whose_surfaces_cross_are_refused(void)
{
    fsi_context context = fsi_default_context();
    unsigned char *state, *crafted;
    uint64_t hash;
    size_t size;
    layers l;
    int k, i;
    layers_make(&l, &context, 0);
    for (k = 1; k <= 10; k++) layers_step(&l, k);
    state = (unsigned char *)save(l.s, &size);
    crafted = (unsigned char *)malloc(size);
    hash = fsi_shell_hash(l.s);
    for (k = 0; k < 2; k++) { /* with the obstacle, which the next step looked at after any load, and without one */
        if (k == 1) CHECK(fsi_shell_remove_obstacle(l.s, 0) == FSI_OK);
        for (i = 1; i < l.upper; i += 3) {
            unsigned char *a = crafted + HEADER + COUNTS + 24 * i, *b = a + 24 * l.upper, kept[24];
            memcpy(crafted, state, size);
            memcpy(kept, a, 24);
            memcpy(a, b, 24);
            memcpy(b, kept, 24);
            refit(crafted, size);
            CHECK(fsi_shell_load(l.s, crafted, size) == FSI_ERROR_MESH &&
                  strstr(context.error.message, "passes through"));
            CHECK(fsi_shell_hash(l.s) == hash && fsi_shell_count_intersections(l.s) == 0);
        }
        CHECK(fsi_shell_load(l.s, state, size) == FSI_OK);
        step_ok(l.s, 0.005);
        CHECK(fsi_shell_load(l.s, state, size) == FSI_OK);
    }
    free(state);
    free(crafted);
    layers_free(&l);
}

/* Any word of the payload is another one; what is taken is used. */
static void test_a_state_that_load_takes_can_be_used(void)
{
    const double bad[7] = { test_nan(), test_inf(), 1e300, -1, 1e30, 1e-300, 7 };
    fsi_context context = fsi_default_context();
    unsigned char *state, *crafted;
    size_t size, at;
    uint64_t random = 11;
    int taken = 0, refused = 0, k;
    layers l;
    layers_make(&l, &context, 1);
    for (k = 1; k <= 10; k++) layers_step(&l, k);
    state = (unsigned char *)save(l.s, &size);
    crafted = (unsigned char *)malloc(size);
    for (k = 0; k < (TEST_SLOWED ? 60 : 500); k++) {
        const size_t words = (size - HEADER - COUNTS) / 8, last = 12; /* the numbers at the end, one by one */
        at = k < 7 * (int)last ? words - 1 - (size_t)k / 7 : (size_t)(test_random(&random) * (double)words);
        memcpy(crafted, state, size);
        memcpy(crafted + HEADER + COUNTS + 8 * at, &bad[k % 7], 8);
        if (k % 50 == 49) memcpy(crafted + HEADER + 4 * (k / 50 % 3), &bad[k % 7], 4);
        refit(crafted, size);
        if (try_state(l.s, crafted, size)) taken++;
        else refused++;
        CHECK(k % 7 > 2 || fsi_shell_error(l.s)->status != FSI_OK); /* no state has NaN, infinity or 1e300 in it */
    }
    printf("   %d taken, %d refused\n", taken, refused);
    CHECK(taken > 10 && refused > 10);
    CHECK(fsi_shell_load(l.s, state, size) == FSI_OK);
    free(state);
    free(crafted);
    layers_free(&l);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_under_a_coupled_body_a_loaded_state_goes_on_with_the_same_bits);
    RUN(test_states_whose_surfaces_cross_are_refused);
    RUN(test_a_state_that_load_takes_can_be_used);
    return TEST_END();
}
