/* test_couple_calls.c - what fsi_couple.h promises beside physics: nothing lost in silence, states that can be used,
   memory, calls that its siblings have
   SPDX-License-Identifier: MIT */
#include <time.h>
#include "kit/test.h"
#include "../fsi_couple.h"
#include "kit/test_shell.h"
#include "kit/test_couple.h"

typedef struct heard { int warnings; char last[256]; } heard;

static void hear(void *user, int level, const char *text)
{
    heard *h = (heard *)user;
    if (level != 1) return;
    h->warnings++;
    snprintf(h->last, sizeof h->last, "%s", text);
}

/* A drop falls on a string, or in 3D a ball on a sheet. */
static void begin_fall(pair *p, int dim)
{
    pair_begin(p, dim == 2 ? 32 : 16);
    if (dim == 2) pair_string(p, 20, 6, 26, 10);
    else {
        p->l.dim = p->c.desc.dim = 3;
        p->l.n[2] = 16;
        p->l.gravity = p->c.desc.gravity = v3(0, 0, -9.81);
        p->c.desc.contact = 1;
        p->c.desc.contact_range = REAL(0.4 * CELL);
        scene_sheet(&p->c, EQUILATERAL, 5, 5, 10 * CELL, 10 * CELL);
        scene_shift(&p->c, 0, 3 * CELL, 3 * CELL, 5.5 * CELL);
    }
}

static void drop_it(pair *p)
{
    int i;
    if (p->l.dim == 2) {
        p->solid->pinned[0] = p->solid->pinned[20] = 1;
        pair_drop(p, 16.2, 17, 5, 0, -0.3);
    } else {
        for (i = 0; i < p->solid->vertex_count; i++)
            if (fabs((double)p->solid->position[i].x / CELL - 8) > 4.9) p->solid->pinned[i] = 1;
        CHECK(fsi_levelset_fill_sphere(p->water, v3(8.1 * CELL, 8.2 * CELL, 10 * CELL), REAL(3 * CELL), v3(0, 0, -0.3),
                                       NULL) == FSI_OK);
    }
}

static void make_fall(pair *p, int dim)
{
    begin_fall(p, dim);
    pair_make(p);
    drop_it(p);
}

static void steps_ok(pair *p, int n, double dt)
{
    for (; n > 0; n--) if (!pair_step(p, dt)) return;
}

static void expect(const pair *p, fsi_status status, fsi_status want, const char *name)
{
    if (!CHECK(status == want) || !CHECK(strstr(p->context.error.message, name)))
        printf("   %d, want %d: %s\n", (int)status, (int)want, p->context.error.message);
}

/* ---- what create takes away ------------------------------------------------------------------------------------- */

/* A string through the middle of a drop: what goes is counted and told, and can be refused. */
static void test_liquid_that_create_takes_away_is_counted_told_and_refusable(void)
{
    double before, after;
    uint64_t hash;
    size_t bytes;
    heard h;
    pair p;
    memset(&h, 0, sizeof h);
    begin_fall(&p, 2);
    p.context.user = &h;
    p.context.message = hear;
    pair_make_apart(&p);
    pair_drop(&p, 16, 10.2, 4, 0, 0);
    before = p.water->component[0].target;
    hash = fsi_levelset_hash(p.water);
    bytes = p.context.bytes;
    p.e.liquid = p.water;
    p.e.shell = p.solid;
    p.e.largest_loss = REAL(0.05);
    p.both = (fsi_couple *)(void *)&p;
    expect(&p, fsi_couple_create(&p.both, &p.e), FSI_ERROR_LIMIT, "largest_loss");
    CHECK(p.both == NULL && fsi_levelset_hash(p.water) == hash && h.warnings == 0);
    p.e.largest_loss = REAL(1.5);
    expect(&p, fsi_couple_create(&p.both, &p.e), FSI_ERROR_ARGUMENT, "largest_loss");
    p.e.largest_loss = 1;
    if (!CHECK(fsi_couple_create(&p.both, &p.e) == FSI_OK)) return;
    after = 0;
    {
        int i;
        for (i = 0; i < p.water->component_count; i++) after += p.water->component[i].target;
    }
    printf("   %.3f of the drop's volume was taken, \"%s\"\n", 1 - after / before, h.last);
    CHECK(after < 0.7 * before);
    CHECK_NEAR(p.both->carved_volume, before - after, TOL(1e-14, 1e-14));
    CHECK(h.warnings == 1 && strstr(h.last, "taken away") && p.context.bytes >= bytes);
    pair_end(&p);

    memset(&h, 0, sizeof h); /* out of its way: nothing is lost, nothing said, nothing to refuse */
    begin_fall(&p, 2);
    p.context.user = &h;
    p.context.message = hear;
    p.e.largest_loss = 0;
    pair_make_apart(&p);
    pair_drop(&p, 16, 20, 4, 0, 0);
    p.e.liquid = p.water;
    p.e.shell = p.solid;
    CHECK(fsi_couple_create(&p.both, &p.e) == FSI_OK && !(p.both->carved_volume > 0) && h.warnings == 0);
    pair_end(&p);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void test_who_was_stepped_alone_is_noticed(void)
{
    unsigned char *state;
    uint64_t hash;
    size_t size = 0;
    pair p;
    make_fall(&p, 2);
    steps_ok(&p, 2, 1e-3);
    CHECK(fsi_couple_save(p.both, NULL, 0, &size) == FSI_OK);
    state = (unsigned char *)malloc(size);
    CHECK(fsi_couple_save(p.both, state, size, NULL) == FSI_OK);
    CHECK(fsi_levelset_step(p.water, REAL(1e-3)) == FSI_OK);
    hash = fsi_couple_hash(p.both);
    expect(&p, fsi_couple_step(p.both, REAL(1e-3)), FSI_ERROR_ARGUMENT, "liquid was moved by itself");
    CHECK(fsi_couple_hash(p.both) == hash);
    CHECK(fsi_couple_load(p.both, state, size) == FSI_OK);
    steps_ok(&p, 1, 1e-3);
    CHECK(fsi_shell_step(p.solid, REAL(1e-3)) == FSI_OK);
    expect(&p, fsi_couple_step(p.both, REAL(1e-3)), FSI_ERROR_ARGUMENT, "shell was moved by itself");
    CHECK(fsi_couple_load(p.both, state, size) == FSI_OK);
    CHECK(fsi_shell_settle(p.solid, 500) == FSI_OK);
    expect(&p, fsi_couple_step(p.both, REAL(1e-3)), FSI_ERROR_ARGUMENT, "shell was moved by itself");
    CHECK(fsi_couple_load(p.both, state, size) == FSI_OK);
    CHECK(fsi_shell_shift_origin(p.solid, v3(0, CELL, 0)) == FSI_OK &&
          fsi_couple_shift_origin(p.both, v3(0, CELL, 0)) == FSI_OK);
    expect(&p, fsi_couple_step(p.both, REAL(1e-3)), FSI_ERROR_ARGUMENT, "shell was moved by itself");
    CHECK(fsi_couple_shift_origin(p.both, v3(0, -CELL, 0)) == FSI_OK && fsi_couple_load(p.both, state, size) == FSI_OK);
    CHECK(fsi_levelset_shift_origin(p.water, v3(CELL, 0, 0)) == FSI_OK);
    expect(&p, fsi_couple_step(p.both, REAL(1e-3)), FSI_ERROR_ARGUMENT, "liquid was moved by itself");
    CHECK(fsi_levelset_shift_origin(p.water, v3(-CELL, 0, 0)) == FSI_OK &&
          fsi_couple_load(p.both, state, size) == FSI_OK);
    CHECK(fsi_levelset_step(p.water, 0) == FSI_OK && fsi_shell_step(p.solid, 0) == FSI_OK); /* looking is no step */
    steps_ok(&p, 1, 1e-3);
    free(state);
    pair_end(&p);
}

static void test_a_step_of_no_time_only_looks(void)
{
    int dim;
    for (dim = 2; dim <= 3; dim++) {
        pair p, twin;
        uint64_t hash;
        fsi_couple_stats was;
        make_fall(&p, dim);
        make_fall(&twin, dim);
        steps_ok(&p, 6, 1e-3);
        steps_ok(&twin, 6, 1e-3);
        was = p.both->stats;
        hash = fsi_couple_hash(p.both);
        CHECK(fsi_couple_step(p.both, 0) == FSI_OK && fsi_couple_hash(p.both) == hash);
        CHECK(p.both->stats.substeps == 0 && p.both->stats.newton == 0 && p.both->stats.samples == was.samples);
        CHECK(p.both->stats.min_distance > 0 && p.both->stats.min_distance < 8.1 * CELL);
        CHECK_NEAR(p.both->stats.momentum[dim - 1], was.momentum[dim - 1], TOL(1e-12, 1e-9));
        CHECK_NEAR(p.both->stats.volume_error, was.volume_error, 1e-9);
        steps_ok(&p, 3, 1e-3);
        steps_ok(&twin, 3, 1e-3);
        CHECK(fsi_couple_hash(p.both) == fsi_couple_hash(twin.both));
        pair_end(&p);
        pair_end(&twin);
    }
}

static void test_settings_change_between_steps(void)
{
    fsi_couple_desc d;
    pair p;
    make_fall(&p, 2);
    p.both->adhesion[3] = 7;
    d = p.both->desc;
    d.stiffness = 20;
    d.range = REAL(1.5 * CELL);
    d.slip = 1;
    d.liquid = NULL;
    CHECK(fsi_couple_set_desc(p.both, &d) == FSI_OK);
    CHECK(p.both->desc.stiffness > 19 && p.both->desc.slip == 1 && p.both->desc.liquid == p.water &&
          p.both->adhesion[3] > 6);
    d.adhesion = 100;
    CHECK(fsi_couple_set_desc(p.both, &d) == FSI_OK && p.both->adhesion[3] > 99 && p.both->adhesion[0] > 99);
    d.stiffness = 0;
    expect(&p, fsi_couple_set_desc(p.both, &d), FSI_ERROR_ARGUMENT, "stiffness");
    d.stiffness = REAL(test_nan());
    expect(&p, fsi_couple_set_desc(p.both, &d), FSI_ERROR_NAN, "stiffness");
    CHECK(p.both->desc.stiffness > 19);
    CHECK(fsi_couple_set_desc(NULL, &d) == FSI_ERROR_COOKIE);
    expect(&p, fsi_couple_set_desc(p.both, NULL), FSI_ERROR_ARGUMENT, "desc is NULL");
    d.cookie = 0;
    expect(&p, fsi_couple_set_desc(p.both, &d), FSI_ERROR_COOKIE, "fsi_couple_default_desc");
    steps_ok(&p, 5, 2e-3);
    pair_end(&p);
}

/* What create asks of both parts a set_desc of one can take back: the next step says so, and goes on when it is as it
   was. */
static void test_settings_of_one_part_that_a_coupling_cannot_have_are_refused(void)
{
    fsi_levelset_desc l;
    fsi_shell_desc d;
    uint64_t hash;
    pair p;
    make_fall(&p, 2);
    steps_ok(&p, 1, 1e-3);
    hash = fsi_couple_hash(p.both);
    l = p.water->desc;
    l.conserve_volume = 0;
    CHECK(fsi_levelset_set_desc(p.water, &l) == FSI_OK);
    expect(&p, fsi_couple_step(p.both, REAL(1e-3)), FSI_ERROR_ARGUMENT, "liquid has conserve_volume 0");
    l.conserve_volume = 1;
    CHECK(fsi_levelset_set_desc(p.water, &l) == FSI_OK);
    d = p.solid->desc;
    d.integrator = FSI_SHELL_BDF2;
    CHECK(fsi_shell_set_desc(p.solid, &d) == FSI_OK);
    expect(&p, fsi_couple_step(p.both, REAL(1e-3)), FSI_ERROR_ARGUMENT, "another integrator");
    CHECK(fsi_couple_hash(p.both) == hash);
    d.integrator = FSI_SHELL_BACKWARD_EULER;
    CHECK(fsi_shell_set_desc(p.solid, &d) == FSI_OK);
    steps_ok(&p, 1, 1e-3);
    pair_end(&p);
}

static void test_a_suggested_step_is_one_substep(void)
{
    double dt;
    pair p;
    make_fall(&p, 2);
    steps_ok(&p, 2, 1e-3);
    p.solid->velocity[10] = v3(0, -3, 0); /* faster than the liquid */
    dt = (double)fsi_couple_suggest_dt(p.both);
    CHECK(dt > 0 && dt < (double)fsi_levelset_suggest_dt(p.water));
    steps_ok(&p, 1, dt);
    CHECK(p.both->stats.substeps == 1);
    CHECK_NEAR(fsi_couple_suggest_dt(NULL), 0, 0);
    pair_end(&p);
    pair_begin(&p, 16); /* nothing moves, nothing pulls: at most what a step takes */
    p.l.gravity = p.c.desc.gravity = v3(0, 0, 0);
    p.l.surface_tension = 0;
    pair_string(&p, 4, 6, 10, 8);
    pair_make(&p);
    dt = (double)fsi_couple_suggest_dt(p.both);
    CHECK(dt > 0 && dt <= 1000);
    steps_ok(&p, 1, dt);
    p.solid->velocity[1] = v3(0, REAL(1e11), 0);
    dt = (double)fsi_couple_suggest_dt(p.both);
    CHECK(dt >= 1e-12 && fsi__check_dt(&p.context, REAL(dt), "test") == FSI_OK);
    pair_end(&p);
}

/* A host that pulls sideways with *user m/s^2. */
static fsi_vec3 pull_aside(void *user, fsi_vec3 x, double time)
{
    (void)x;
    (void)time;
    return v3(*(const double *)user, 0, 0);
}

/* The liquid's acceleration counts where vertices are faster than the liquid, too. */
static void test_a_suggested_step_minds_the_acceleration(void)
{
    double pull = 0, dt, weak;
    fsi_levelset_desc l;
    pair p;
    make_fall(&p, 2);
    l = p.water->desc;
    l.acceleration = pull_aside;
    l.acceleration_user = &pull;
    CHECK(fsi_levelset_set_desc(p.water, &l) == FSI_OK);
    steps_ok(&p, 2, 1e-3);
    p.solid->velocity[10] = v3(0, -3, 0);
    weak = (double)fsi_couple_suggest_dt(p.both);
    pull = 1e4;
    dt = (double)fsi_couple_suggest_dt(p.both);
    CHECK(dt > 0 && dt < 0.8 * weak);
    steps_ok(&p, 1, dt);
    CHECK(p.both->stats.substeps == 1);
    pull = test_nan();
    CHECK_NEAR(fsi_couple_suggest_dt(p.both), 0, 0);
    CHECK(strstr(fsi_couple_error(p.both)->message, "desc.acceleration") &&
          strcmp(fsi_couple_error(p.both)->function, "fsi_couple_suggest_dt") == 0);
    CHECK_NEAR(fsi_levelset_suggest_dt(p.water), 0, 0);
    CHECK(strcmp(fsi_couple_error(p.both)->function, "fsi_levelset_suggest_dt") == 0);
    CHECK(fsi_couple_step(p.both, REAL(1e-3)) == FSI_ERROR_NAN &&
          strcmp(fsi_couple_error(p.both)->function, "fsi_couple_step") == 0);
    pair_end(&p);
}

/* A drop on a sheet goes on in a world that has moved as it would have gone on, but for rounding. */
static void test_a_moving_origin_changes_nothing(void)
{
    const fsi_vec3 offset = v3(3, -2, 0);
    pair p, q;
    int i;
    make_fall(&p, 2);
    make_fall(&q, 2);
    steps_ok(&p, 4, 0.004);
    steps_ok(&q, 4, 0.004);
    CHECK(fsi_couple_shift_origin(q.both, offset) == FSI_OK);
    steps_ok(&p, 4, 0.004);
    steps_ok(&q, 4, 0.004);
    /* a face at the edge of a reach is on either side of it */
    CHECK_NEAR(q.water->stats.volume, p.water->stats.volume, TOL(1e-5, 1e-3) * p.water->stats.volume);
    for (i = 0; i < p.solid->vertex_count; i++)
        CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(fsi_v3_sub(q.solid->position[i], offset), p.solid->position[i])), 0,
                   TOL(1e-7, 1e-3));
    CHECK(fsi_couple_shift_origin(NULL, offset) == FSI_ERROR_COOKIE);
    CHECK(fsi_couple_shift_origin(p.both, v3(0, test_nan(), 0)) == FSI_ERROR_NAN);
    CHECK(fsi_couple_shift_origin(p.both, v3(1e15, 0, 0)) == FSI_ERROR_LIMIT);
    pair_end(&p);
    pair_end(&q);
}

static void count_point(void *user, fsi_vec3 x, fsi_real size, uint32_t color)
{
    (void)x;
    (void)size;
    ((int *)user)[color == 0x00ffff ? 1 : 0]++;
}
static void count_line(void *user, fsi_vec3 a, fsi_vec3 b, uint32_t color)
{
    (void)a;
    (void)b;
    (void)color;
    ((int *)user)[2]++;
}

static void test_debug_draw_shows_both_and_where_they_touch(void)
{
    fsi_debug_draw draw;
    int seen[3] = { 0, 0, 0 };
    pair p;
    int k;
    make_fall(&p, 2);
    for (k = 0; k < 40 && p.both->stats.contacts < 2; k++) steps_ok(&p, 1, 2e-3);
    CHECK(p.both->stats.contacts >= 2);
    memset(&draw, 0, sizeof draw);
    fsi_couple_debug_draw(p.both, &draw);
    draw.user = seen;
    draw.point = count_point;
    draw.line = count_line;
    fsi_couple_debug_draw(p.both, &draw);
    fsi_couple_debug_draw(NULL, &draw);
    fsi_couple_debug_draw(p.both, NULL);
    CHECK(seen[0] == 2 && seen[1] == p.both->stats.contacts && seen[2] > 20); /* two points are pinned */
    pair_end(&p);
}

/* A vertex that is shot out of the box: what is out of it is not swept cell by cell. */
static void test_a_vertex_that_flies_off_costs_little(void)
{
    clock_t before;
    pair p;
    int k;
    make_fall(&p, 2);
    steps_ok(&p, 4, 1e-3);
    p.solid->velocity[10] = v3(0, -2e6, 0);
    before = clock();
    for (k = 0; k < 2; k++) {
        const fsi_status status = fsi_couple_step(p.both, REAL(1e-3));
        CHECK(status == FSI_OK || status == FSI_ERROR_CONVERGENCE || status == FSI_ERROR_LIMIT);
    }
    printf("   %.2f s\n", (double)(clock() - before) / CLOCKS_PER_SEC);
    CHECK(clock() - before < (TEST_SLOWED ? 200 : 10) * CLOCKS_PER_SEC);
    pair_end(&p);
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

/* Head: cookie, bytes of the liquid and of the shell, check, time; then liquid, shell. Those two begin with 32 bytes:
   hash at 24. */
typedef struct head { uint64_t cookie, liquid, shell, check; double time; } head;

static void refit(unsigned char *state)
{
    head h;
    uint64_t hash;
    unsigned char *part;
    memcpy(&h, state, sizeof h);
    h.check = fsi_hash(&h.time, sizeof h.time, 0);
    memcpy(state, &h, sizeof h);
    part = state + sizeof h;
    hash = fsi_hash(part + 32, (size_t)h.liquid - 32, 0);
    memcpy(part + 24, &hash, 8);
    part += h.liquid;
    hash = fsi_hash(part + 32, (size_t)h.shell - 32, 0);
    memcpy(part + 24, &hash, 8);
}

/* Words of time and of the shell's part become others: refused, and nothing changes, or the next step can be made. The
   liquid's part is the liquid's to judge. */
static void test_a_state_that_load_takes_can_be_used(void)
{
    const double bad[6] = { test_nan(), test_inf(), 1e300, -1, 1e30, 1e-3 };
    unsigned char *state, *crafted;
    size_t size = 0;
    uint64_t random = 5, hash;
    int k, taken = 0, refused = 0;
    head h;
    pair p;
    make_fall(&p, 2);
    steps_ok(&p, 8, 2e-3);
    CHECK(p.both->stats.faces > 0);
    CHECK(fsi_couple_save(p.both, NULL, 0, &size) == FSI_OK);
    state = (unsigned char *)malloc(size);
    crafted = (unsigned char *)malloc(size);
    CHECK(fsi_couple_save(p.both, state, size, NULL) == FSI_OK);
    memcpy(&h, state, sizeof h);
    for (k = 0; k < (TEST_SLOWED ? 30 : 150); k++) {
        const size_t shell_at = sizeof h + (size_t)h.liquid + 32 + 12, words = ((size_t)h.shell - 44) / 8;
        const double *value = &bad[k % 6];
        fsi_status status;
        memcpy(crafted, state, size);
        if (k < 6) memcpy(crafted + offsetof(head, time), value, 8);
        else memcpy(crafted + shell_at + 8 * (size_t)(test_random(&random) * (double)words), value, 8);
        refit(crafted);
        hash = fsi_couple_hash(p.both);
        status = fsi_couple_load(p.both, crafted, size);
        if (status != FSI_OK) {
            CHECK((status == FSI_ERROR_FORMAT || status == FSI_ERROR_MESH) && fsi_couple_hash(p.both) == hash);
            refused++;
            continue;
        }
        CHECK(k % 6 > 2);
        taken++;
        hash = fsi_couple_hash(p.both);
        status = fsi_couple_step(p.both, REAL(2e-3));
        if (status == FSI_OK) CHECK(fsi_is_finite(p.both->stats.momentum[0] + p.both->stats.min_distance));
        else if (!CHECK((status == FSI_ERROR_CONVERGENCE || status == FSI_ERROR_LIMIT) &&
                        fsi_couple_hash(p.both) == hash))
            printf("   %d: %s\n", k, p.context.error.message);
    }
    printf("   %d taken, %d refused\n", taken, refused);
    CHECK(taken > 3 && refused > 10);
    CHECK(fsi_couple_load(p.both, state, size) == FSI_OK);
    steps_ok(&p, 1, 2e-3);
    free(state);
    free(crafted);
    pair_end(&p);
}

/* The liquid of one state and the solid of another one: a vertex would lie in the drop. */
static void test_a_state_with_the_solid_in_the_liquid_is_refused(void)
{
    unsigned char *state;
    uint64_t hash, after;
    size_t size = 0;
    head h;
    pair p;
    make_fall(&p, 2);
    steps_ok(&p, 3, 1e-3);
    CHECK(fsi_couple_save(p.both, NULL, 0, &size) == FSI_OK);
    state = (unsigned char *)malloc(size);
    CHECK(fsi_couple_save(p.both, state, size, NULL) == FSI_OK);
    memcpy(&h, state, sizeof h);
    {
        const double y = 17 * CELL; /* the drop's middle */
        unsigned char *x = state + sizeof h + h.liquid + 32 + 12 + 24 * 10;
        memcpy(x + 8, &y, 8);
    }
    refit(state);
    steps_ok(&p, 1, 1e-3);
    hash = fsi_couple_hash(p.both);
    expect(&p, fsi_couple_load(p.both, state, size), FSI_ERROR_MESH, "vertex 10");
    CHECK(fsi_couple_hash(p.both) == hash);
    steps_ok(&p, 2, 1e-3);
    after = fsi_couple_hash(p.both);
    free(state);
    pair_end(&p);
    make_fall(&p, 2);
    steps_ok(&p, 6, 1e-3);
    CHECK(fsi_couple_hash(p.both) == after); /* the refusal left no trace */
    pair_end(&p);
}

/* A square of 4 cells around (26, 24) cells. */
static fsi_mesh *block_in_the_drop(void)
{
    static const int index[8] = { 1, 0, 2, 1, 3, 2, 0, 3 };
    fsi_mesh_desc d = fsi_mesh_default_desc();
    fsi_mesh *m = NULL;
    fsi_vec3 x[4];
    int i;
    for (i = 0; i < 4; i++) x[i] = v3((i == 1 || i == 2 ? 28 : 24) * CELL, (i > 1 ? 26 : 22) * CELL, 0);
    d.corners = 2;
    d.vertices = x;
    d.vertex_count = 4;
    d.elements = index;
    d.element_count = 4;
    d.kind = FSI_MESH_CLOSED;
    CHECK(fsi_mesh_create(&m, &d) == FSI_OK);
    return m;
}

/* An obstacle that lies in liquid, what the liquid did to it, and a mesh that was moved since: a refused load touches
   none of it. */
static void test_a_refused_load_leaves_obstacles_as_they_were(void)
{
    const double y = 17 * CELL;
    fsi_vec3 was, now, torque;
    unsigned char *state;
    size_t size = 0;
    fsi_mesh *m[2];
    pair p[2];
    head h;
    int k, id[2];
    for (k = 0; k < 2; k++) {
        make_fall(&p[k], 2);
        pair_drop(&p[k], 26, 24, 4, 0, 0);
        m[k] = block_in_the_drop();
        CHECK(fsi_levelset_add_mesh(p[k].water, m[k], &id[k]) == FSI_OK);
        steps_ok(&p[k], 3, 1e-3);
        CHECK(fsi_mesh_move_rigid(m[k], v3(0, 0.4 * CELL, 0), fsi_quat_identity()) == FSI_OK);
    }
    CHECK(fsi_couple_save(p[0].both, NULL, 0, &size) == FSI_OK);
    state = (unsigned char *)malloc(size);
    CHECK(fsi_couple_save(p[0].both, state, size, NULL) == FSI_OK);
    memcpy(&h, state, sizeof h);
    memcpy(state + sizeof h + h.liquid + 32 + 12 + 24 * 10 + 8, &y, 8);
    refit(state);
    CHECK(fsi_levelset_obstacle_reaction(p[0].water, id[0], &was, &torque) == FSI_OK && fsi_v3_norm(was) > 0);
    expect(&p[0], fsi_couple_load(p[0].both, state, size), FSI_ERROR_MESH, "vertex 10");
    CHECK(fsi_levelset_obstacle_reaction(p[0].water, id[0], &now, &torque) == FSI_OK);
    CHECK_NEAR(fsi_v3_norm(fsi_v3_sub(now, was)), 0, 0);
    for (k = 0; k < 2; k++) steps_ok(&p[k], 1, 1e-3);
    CHECK(fsi_couple_hash(p[0].both) == fsi_couple_hash(p[1].both));
    free(state);
    for (k = 0; k < 2; k++) {
        pair_end(&p[k]);
        fsi_mesh_destroy(m[k]);
    }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void *fail_once(void *user, size_t size, size_t align)
{
    void *p = test__alloc(user, size, align);
    if (!p) test__heap.fail_at = 0;
    return p;
}

/* Everything that allocates, in order; goes on where it stopped. */
static fsi_status build(pair *p, int *stage, void *state, size_t size, int steps)
{
    fsi_status status = FSI_OK;
    if (*stage == 0) {
        p->e.liquid = p->water;
        p->e.shell = p->solid;
        p->both = (fsi_couple *)(void *)p;
        status = fsi_couple_create(&p->both, &p->e);
        if (status != FSI_OK && !CHECK(p->both == NULL)) return status;
        if (status != FSI_OK) return status;
        ++*stage;
    }
    for (; *stage <= steps && status == FSI_OK; ++*stage) {
        status = fsi_couple_step(p->both, REAL(2e-3));
        if (status != FSI_OK) return status;
    }
    if (*stage == steps + 1 && state) {
        status = fsi_couple_load(p->both, state, size);
        if (status != FSI_OK) return status;
        ++*stage;
    }
    return status;
}

/* Create, step and load with each allocation failing, that one alone and all from it on: nothing changed, nothing
   leaked, and the same bits when tried again. */
static void test_failing_allocations_change_nothing(void)
{
    const int steps = 3, dims = TEST_SLOWED ? 2 : 3;
    int dim, once;
    for (dim = 2; dim <= dims; dim++) for (once = dim - 2; once < 2; once++) {
        uint64_t want[2] = { 0, 0 }, hash;
        long fail, failed = 0, seen[6] = { 0 };
        unsigned char *state = NULL;
        size_t size = 0;
        int done = 0, stage, k;
        for (fail = 0; !done && fail < 3000; fail += dim == 3 ? 11 : TEST_SLOWED ? 5 : 1) {
            fsi_status status;
            pair p;
            begin_fall(&p, dim);
            test_fail_allocator(&p.context, 0);
            pair_make_apart(&p);
            drop_it(&p);
            stage = 0;
            if (fail == 0) { /* what is to come out */
                CHECK(build(&p, &stage, NULL, 0, steps) == FSI_OK && fsi_couple_save(p.both, NULL, 0, &size) == FSI_OK);
                state = (unsigned char *)malloc(size);
                CHECK(fsi_couple_save(p.both, state, size, NULL) == FSI_OK);
                want[0] = fsi_couple_hash(p.both);
                steps_ok(&p, 1, 2e-3);
                want[1] = fsi_couple_hash(p.both);
                pair_end(&p);
                continue;
            }
            test_fail_allocator(&p.context, fail);
            if (once) p.context.alloc = fail_once;
            status = build(&p, &stage, state, size, steps);
            done = status == FSI_OK;
            if (!done) {
                failed++;
                seen[stage]++;
                CHECK(status == FSI_ERROR_MEMORY && p.context.error.status == FSI_ERROR_MEMORY);
                hash = stage > 0 ? fsi_couple_hash(p.both) : fsi_levelset_hash(p.water);
                if (!once)
                    CHECK(build(&p, &stage, state, size, steps) == FSI_ERROR_MEMORY &&
                          hash == (stage > 0 ? fsi_couple_hash(p.both) : fsi_levelset_hash(p.water)));
                test_fail_allocator(&p.context, 0);
                if (!CHECK(build(&p, &stage, state, size, steps) == FSI_OK))
                    printf("   %ld: stage %d: %s\n", fail, stage, p.context.error.message);
            }
            test_fail_allocator(&p.context, 0);
            if (!CHECK(fsi_couple_hash(p.both) == want[0])) printf("   after allocation %ld failed\n", fail);
            steps_ok(&p, 1, 2e-3);
            CHECK(fsi_couple_hash(p.both) == want[1]);
            pair_end(&p);
        }
        printf("   %dD: %ld allocations failed, in stages %ld %ld %ld %ld %ld\n", dim, failed, seen[0], seen[1],
               seen[2], seen[3], seen[4]);
        for (k = 0; k < 2; k++) CHECK(seen[k] > 0);
        CHECK(done); /* a load into a simulator that has been there needs no memory */
        free(state);
    }
}

/* What has come to rest allocates nothing, in liquid, shell, their solvers and the coupling. */
static void test_a_steady_state_allocates_nothing(void)
{
    int dim;
    for (dim = 2; dim <= (TEST_SLOWED ? 2 : 3); dim++) {
        long long allocs;
        pair p;
        make_fall(&p, dim);
        steps_ok(&p, dim == 2 ? 200 : 50, 1e-3);
        allocs = p.context.allocs;
        steps_ok(&p, dim == 2 ? 100 : 40, 1e-3);
        CHECK(p.both->stats.faces > 0);
        /* in float a count reaches a new peak once */
        if (!CHECK(p.context.allocs - allocs <= TOL(0, 2)))
            printf("   %dD: %lld allocations\n", dim, p.context.allocs - allocs);
        pair_end(&p);
    }
}

/* A cloth of which a vertex is far away is long; what lies out of the box needs no samples. */
static void test_what_is_stretched_out_of_the_box_costs_no_memory(void)
{
    size_t bytes;
    pair p;
    make_fall(&p, 3);
    steps_ok(&p, 2, 1e-3);
    bytes = p.context.bytes;
    p.solid->position[35] = v3(0.01, 0.01, -200); /* 200,000 cells below */
    p.solid->pinned[35] = 1;
    p.solid->target[35] = p.solid->position[35];
    CHECK(fsi_couple_step(p.both, 0) == FSI_OK);
    printf("   %d samples, %.1f MB more\n", p.both->stats.samples, (double)(p.context.bytes - bytes) / 1e6);
    CHECK(p.both->stats.samples < 5000 && p.context.bytes < bytes + 10000000);
    pair_end(&p);
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_vertex_that_flies_off_costs_little);
    RUN(test_liquid_that_create_takes_away_is_counted_told_and_refusable);
    RUN(test_who_was_stepped_alone_is_noticed);
    RUN(test_a_step_of_no_time_only_looks);
    RUN(test_settings_change_between_steps);
    RUN(test_settings_of_one_part_that_a_coupling_cannot_have_are_refused);
    RUN(test_a_suggested_step_is_one_substep);
    RUN(test_a_suggested_step_minds_the_acceleration);
    RUN(test_a_moving_origin_changes_nothing);
    RUN(test_debug_draw_shows_both_and_where_they_touch);
    RUN(test_a_state_that_load_takes_can_be_used);
    RUN(test_a_state_with_the_solid_in_the_liquid_is_refused);
    RUN(test_a_refused_load_leaves_obstacles_as_they_were);
    RUN(test_failing_allocations_change_nothing);
    RUN(test_a_steady_state_allocates_nothing);
    RUN(test_what_is_stretched_out_of_the_box_costs_no_memory);
    return TEST_END();
}
