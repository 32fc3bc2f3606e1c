/* test_dispatch.c - how steps of shells, level sets and both together hand work to threads: nothing is dispatched for
   little work. test_sph_dispatch.c asks fsi_sph.h the same, and more.
   SPDX-License-Identifier: MIT */
#include "kit/test.h"
#include "../fsi_couple.h"
#include "kit/test_shell.h"
#include "kit/test_couple.h"

/* ---- counting --------------------------------------------------------------------------------------------------- */

/* A scene has the same dispatches each time that it is run: the median of their times says more than one of them. */
enum { REPEATS = 3, MOST = 60000 };
static struct { float time[REPEATS][MOST]; int count[REPEATS], repeat; } seen;

static void time_calls(void *user, int count, void (*task)(void *arg, int index), void *arg)
{
    const clock_t start = clock();
    const int r = seen.repeat;
    int i;
    (void)user;
    CHECK(count > 1);
    for (i = count - 1; i >= 0; i--) task(arg, i);
    if (!CHECK(seen.count[r] < MOST)) return;
    seen.time[r][seen.count[r]++] = (float)(clock() - start) / CLOCKS_PER_SEC;
}

static float median(float a, float b, float c)
{
    const float least = a < b ? a : b, most = a < b ? b : a;
    return c < least ? least : (c > most ? most : c);
}

/* ---- scenes ----------------------------------------------------------------------------------------------------- */

/* A pool with a column of liquid, with tension; a square that moves through it, viscous liquid. */
static uint64_t run_levelset(fsi_context *context, int dim, int n, int sticky)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    fsi_mesh *m = sticky && dim == 2 ? square(0.7 * n, 0.3 * n, 0.1 * n, 0.05 * n) : NULL;
    fsi_levelset *s = NULL;
    uint64_t hash;
    int k;
    d.context = context;
    d.dim = dim;
    d.n[0] = d.n[1] = n;
    d.n[2] = dim == 3 ? n : 1;
    d.dx = REAL(CELL);
    d.gravity = v3(0, -9.81, 0);
    d.surface_tension = REAL(0.05);
    d.viscosity = REAL(sticky ? 0.1 : 0);
    if (!CHECK(fsi_levelset_create(&s, &d) == FSI_OK)) exit(1);
    if (m) CHECK(fsi_levelset_add_mesh(s, m, NULL) == FSI_OK);
    for (k = 0; k < 2; k++) {
        fsi_box3 box;
        box.lo = v3(0, k ? 0.4 * n * CELL : 0, 0);
        box.hi = v3((k ? 0.4 : 1) * n * CELL, (k ? 0.8 : 0.4) * n * CELL, dim == 3 ? n * CELL : 0);
        CHECK(fsi_levelset_fill_box(s, box, v3(0, 0, 0), NULL) == FSI_OK);
    }
    for (k = 0; k < 2; k++) {
        if (m) CHECK(fsi_mesh_move_rigid(m, v3(0.2 * k * CELL, 0, 0), fsi_quat_identity()) == FSI_OK);
        if (!CHECK(fsi_levelset_step(s, REAL(3e-3)) == FSI_OK)) printf("   %s\n", fsi_levelset_error(s)->message);
    }
    hash = fsi_levelset_hash(s);
    fsi_levelset_destroy(s);
    fsi_mesh_destroy(m);
    return hash;
}

static uint64_t end_shell(scene *c, fsi_shell *s)
{
    uint64_t hash;
    int k;
    for (k = 0; k < 2; k++)
        if (!CHECK(fsi_shell_step(s, REAL(5e-3)) == FSI_OK)) printf("   %s\n", fsi_shell_error(s)->message);
    hash = fsi_shell_hash(s);
    fsi_shell_destroy(s);
    scene_free(c);
    return hash;
}

/* Two sheets, one of them held at a side, the other thrown onto it. */
static uint64_t run_sheets(fsi_context *context, int n)
{
    scene c = scene_empty();
    fsi_shell *s;
    int i, half;
    c.context = context;
    c.material[0].thickness = REAL(1e-3);
    c.material[0].young = REAL(1e6);
    c.desc.contact_range = REAL(2e-3);
    scene_sheet(&c, EQUILATERAL, n, n, 0.01 * n, 0.01 * n);
    half = c.vertices;
    scene_sheet(&c, RIGHT, n, n, 0.01 * n, 0.01 * n);
    scene_shift(&c, half, 0.003, 0.002, 0.004);
    s = scene_make(&c);
    for (i = 0; i < half; i++) s->pinned[i] = s->position[i].x < REAL(0.011);
    for (; i < s->vertex_count; i++) s->velocity[i] = v3(0, 0, -0.5);
    return end_shell(&c, s);
}

/* Rods in a row, held at one end, and one that falls across them. */
static uint64_t run_rods(fsi_context *context, int rods)
{
    scene c = scene_empty();
    fsi_shell *s;
    int k;
    c.context = context;
    c.material[0].thickness = REAL(1e-3);
    c.material[0].young = REAL(1e6);
    c.desc.contact_range = REAL(2e-3);
    for (k = 0; k < rods; k++) scene_rod(&c, 30, v3(0, 0.01 * k, 0), v3(0.3, 0.01 * k, 0));
    scene_rod(&c, 30, v3(0.15, -0.1, 0.006), v3(0.15, 0.3, 0.006));
    s = scene_make(&c);
    for (k = 0; k < rods; k++) s->pinned[31 * k] = s->pinned[31 * k + 1] = 1;
    return end_shell(&c, s);
}

/* A drop falls on a string, in 3D on a sheet of cells x cells squares. */
static uint64_t run_couple(fsi_context *context, int dim, int n, int cells)
{
    const double middle = 0.5 * n, side = 0.7 * n, x = middle * CELL, high = 0.63 * n * CELL;
    const fsi_vec3 center = dim == 2 ? v3(x, high, 0) : v3(x, x, high);
    const fsi_vec3 fall = dim == 2 ? v3(0, -0.3, 0) : v3(0, 0, -0.3);
    uint64_t hash;
    pair p;
    int i, k;
    pair_begin(&p, n);
    p.l.context = p.c.context = context;
    if (dim == 2) pair_string(&p, cells, 0.15 * n, 0.85 * n, 0.4 * n);
    else {
        p.l.dim = p.c.desc.dim = 3;
        p.l.n[2] = n;
        p.l.gravity = p.c.desc.gravity = v3(0, 0, -9.81);
        p.c.desc.contact = 1;
        p.c.desc.contact_range = REAL(0.3 * CELL);
        scene_sheet(&p.c, EQUILATERAL, cells, cells, side * CELL, side * CELL);
        scene_shift(&p.c, 0, 0.15 * n * CELL, 0.15 * n * CELL, 0.4 * n * CELL);
    }
    pair_make(&p);
    for (i = 0; i < p.solid->vertex_count; i++)
        p.solid->pinned[i] = fabs((double)p.solid->position[i].x - x) > 0.34 * n * CELL;
    CHECK(fsi_levelset_fill_sphere(p.water, center, REAL(0.18 * n * CELL), fall, NULL) == FSI_OK);
    for (k = 0; k < 2; k++) if (!pair_step(&p, 2e-3)) break;
    hash = fsi_couple_hash(p.both);
    pair_end(&p);
    return hash;
}

enum { POOL, WIDE_POOL, HONEY, WIDE_HONEY, TANK, LARGE_TANK, HONEY_TANK, SHEETS, LARGE_SHEETS, RODS, MANY_RODS, STRING,
       LONG_STRING, CLOTH, LARGE_CLOTH, SCENES };
static const char *const scene_name[SCENES] = { "pool", "wide pool", "honey", "wide honey", "tank", "large tank",
    "tank of honey", "sheets", "large sheets", "rods", "many rods", "string", "long string", "cloth", "large cloth" };

static uint64_t run_scene(int kind, fsi_context *context)
{
    switch (kind) {
    case POOL: return run_levelset(context, 2, 32, 0);
    case WIDE_POOL: return run_levelset(context, 2, 160, 0);
    case HONEY: return run_levelset(context, 2, 32, 1);
    case WIDE_HONEY: return run_levelset(context, 2, 160, 1);
    case TANK: return run_levelset(context, 3, 16, 0);
    case LARGE_TANK: return run_levelset(context, 3, 32, 0);
    case HONEY_TANK: return run_levelset(context, 3, 24, 1);
    case SHEETS: return run_sheets(context, 6);
    case LARGE_SHEETS: return run_sheets(context, 30);
    case RODS: return run_rods(context, 4);
    case MANY_RODS: return run_rods(context, 24);
    case STRING: return run_couple(context, 2, 32, 20);
    case LONG_STRING: return run_couple(context, 2, 128, 100);
    case CLOTH: return run_couple(context, 3, 16, 6);
    default: return run_couple(context, 3, 32, 20);
    }
}

/* A few are forgiven: what a loop takes is estimated. */
static void test_nothing_is_dispatched_for_little_work(void)
{
    const double bound = test_time_here(20e-6);
    int kind, i;
    for (kind = 0; kind < SCENES; kind++) {
        int little = 0, most;
        memset(seen.count, 0, sizeof seen.count);
        for (seen.repeat = 0; seen.repeat < REPEATS; seen.repeat++) {
            fsi_context context = fsi_default_context();
            context.parallel_for = time_calls;
            run_scene(kind, &context);
        }
        most = seen.count[0];
        if (!CHECK(seen.count[1] == most && seen.count[2] == most)) continue;
        for (i = 0; i < most; i++) little += median(seen.time[0][i], seen.time[1][i], seen.time[2][i]) < (float)bound;
        printf("      %s: %d dispatches, %d of them for less than %.0f us\n", scene_name[kind], most, little,
               1e6 * bound);
        CHECK(little <= 0.02 * most);
    }
}

/* Alone, and on threads in any order. */
static void test_what_is_dispatched_changes_no_bit_for_any_threads(void)
{
    int kind;
    for (kind = 0; kind < SCENES; kind++) {
        fsi_context alone = fsi_default_context(), many = fsi_default_context();
        const int large = kind == WIDE_POOL || kind == WIDE_HONEY || kind == LARGE_TANK || kind == LARGE_SHEETS ||
                          kind == LONG_STRING || kind == LARGE_CLOTH;
        if (TEST_SLOWED && large) continue;
        test_threads(&alone, 1, 0);
        test_threads(&many, 4, 1);
        if (!CHECK(run_scene(kind, &alone) == run_scene(kind, &many))) printf("   %s\n", scene_name[kind]);
    }
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    if (!TEST_SLOWED) RUN(test_nothing_is_dispatched_for_little_work);
    RUN(test_what_is_dispatched_changes_no_bit_for_any_threads);
    return TEST_END();
}
