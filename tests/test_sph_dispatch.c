/* test_sph_dispatch.c - how a step of fsi_sph.h hands work to threads: few dispatches, none for little, the same bits.
   SPDX-License-Identifier: MIT */
static double dispatch_worth = 22e3;
#undef FSI__DISPATCH_WORTH /* the Makefile may have its own */
#define FSI__DISPATCH_WORTH dispatch_worth
#define FSI_STATIC
#define FSI_IMPLEMENTATION
#include "../fsi_sph.h"
#include "kit/test_sph_scenes.h"
#include "kit/test_bodies.h"

/* ---- counting --------------------------------------------------------------------------------------------------- */

/* Dispatches of a loop over ranges, or of a pass over particles where there is one behind it. */
typedef struct loop { fsi__range_fn *fn; fsi__sph_rank_fn *visit; long calls; clock_t time; } loop;
static struct { loop loop[64]; int loops; long calls; } seen;

static void count_calls(void *user, int count, void (*task)(void *arg, int index), void *arg)
{
    const fsi__job *job = (const fsi__job *)arg;
    fsi__sph_rank_fn *visit = job->fn == fsi__sph_visit ? ((const fsi__sph_run *)job->arg)->visit : NULL;
    const clock_t start = clock();
    int i, k = 0;
    (void)user;
    CHECK(count > 1);
    for (i = count - 1; i >= 0; i--) task(arg, i);
    while (k < seen.loops && (seen.loop[k].fn != job->fn || seen.loop[k].visit != visit)) k++;
    if (k == seen.loops) {
        if (!CHECK(seen.loops < 64)) return;
        memset(&seen.loop[seen.loops++], 0, sizeof seen.loop[0]);
        seen.loop[k].fn = job->fn;
        seen.loop[k].visit = visit;
    }
    seen.loop[k].calls++;
    seen.loop[k].time += clock() - start;
    seen.calls++;
}

static long calls_of(fsi__range_fn *fn, fsi__sph_rank_fn *visit)
{
    int k;
    for (k = 0; k < seen.loops; k++) if (seen.loop[k].fn == fn && seen.loop[k].visit == visit) return seen.loop[k].calls;
    return 0;
}

/* ---- scenes ----------------------------------------------------------------------------------------------------- */

typedef struct scene {
    fsi_sph *s;
    fsi_mesh *mesh[3];
    fsi_body turning, floating;
    fountain f;
    double dt;
    int dim, moves;
} scene;

static void make_moving(scene *c, double dx, double viscosity, fsi_context *context)
{
    fsi_sph_desc d = make_desc(c->dim, dx);
    c->moves = 1;
    c->dt = 5e-3;
    c->mesh[0] = make_block(c->dim, 0.06, 0.02, 0.05);
    c->mesh[1] = make_block(c->dim, 0.02, 0.2, 0.07);
    c->mesh[2] = make_block(c->dim, 0.04, 0.04, 0.03);
    c->turning = fsi_default_body();
    c->turning.pose = c->turning.end = pose_at(c->dim, 0.28, 0.08, 0);
    c->floating = make_floater(c->mesh[2], 400, 9.81, c->dim);
    c->floating.pose = pose_at(c->dim, 0.12, 0.18, 0.3);
    mesh_to(c->mesh[0], c->turning.pose);
    mesh_to(c->mesh[1], pose_at(c->dim, 0.02, 0.15, 0));
    mesh_to(c->mesh[2], c->floating.pose);
    d.context = context;
    d.viscosity = (fsi_real)viscosity;
    d.domain = c->dim == 2 ? box3(0, 0, 0, 0.4, 0.4, 0) : box3(0, 0, 0, 0.4, 0.16, 0.4);
    d.depth = (fsi_real)0.15;
    c->s = make_sph(&d);
    add_body(c->s, c->mesh[0], &c->turning);
    add_body(c->s, c->mesh[2], &c->floating);
    CHECK(fsi_sph_add_mesh(c->s, c->mesh[1], NULL) == FSI_OK);
    CHECK(fsi_sph_fill_box(c->s, c->dim == 2 ? box3(0, 0, 0, 0.4, 0.15, 0) : box3(0, 0, 0, 0.4, 0.16, 0.15), v3(0, 0, 0), NULL) == FSI_OK);
}

/* A viscous pool into which more falls. */
static void make_honey(scene *c, double dx, double tension, fsi_context *context)
{
    fsi_sph_desc d = make_desc(c->dim, dx);
    fsi_emitter_desc e = fsi_emitter_default_desc();
    d.context = context;
    d.viscosity = 5;
    d.surface_tension = (fsi_real)tension;
    d.domain = c->dim == 2 ? box3(0, 0, 0, 0.3, 0.3, 0) : box3(0, 0, 0, 0.3, 0.16, 0.3);
    d.depth = (fsi_real)0.2;
    c->s = make_sph(&d);
    CHECK(fsi_sph_fill_box(c->s, c->dim == 2 ? box3(0, 0, 0, 0.3, 0.1, 0) : box3(0, 0, 0, 0.3, 0.16, 0.1), v3(0, 0, 0), NULL) == FSI_OK);
    e.center = in_tank(c->dim, 0.15, 0.2);
    e.direction = c->dim == 2 ? v3(0, -1, 0) : v3(0, 0, -1);
    e.radius = (fsi_real)(3.2 * dx);
    e.speed = 1;
    CHECK(fsi_sph_add_emitter(c->s, &e, NULL) == FSI_OK);
}

/* So few iterations that viscosity leaves more than it may take for the new velocity. */
static void cut_short(fsi_sph *s)
{
    fsi_sph_desc d = s->desc;
    d.min_iters = d.max_iters = 2;
    d.viscosity = 200;
    CHECK(fsi_sph_set_desc(s, &d) == FSI_OK);
}

static void make_sheet_dam(scene *c, double dx, fsi_context *context)
{
    shape_begin(c->dim);
    if (c->dim == 3) shape_sheet(v3(0.17, 0, 0.05), v3(0, 0.16, 0), v3(0, 0, 0.2), 3, 3);
    else {
        shape_vertex(0.17, 0.05, 0);
        shape_vertex(0.17, 0.3, 0);
        shape_face(0, 1, 0);
    }
    c->mesh[0] = shape_make(FSI_MESH_TWO_SIDED, 0);
    c->s = make_dam(c->dim, dx, context, c->mesh[0]);
}

enum { DAM, MOVING, STICKY, DROP, FOUNTAIN, HONEY, HONEY_WITH_TENSION, HONEY_CUT_SHORT, SHEET, SCENES };
static const char *const scene_name[SCENES] = { "dam", "moving", "sticky", "drop", "fountain", "honey", "honey with tension", "honey cut short", "sheet" };

static void scene_begin(scene *c, int kind, int dim, fsi_context *context)
{
    const double dx = dim == 2 ? 0.005 : 0.016;
    memset(c, 0, sizeof *c);
    c->dim = dim;
    c->dt = 0.01;
    if (kind == DAM) c->s = make_dam(dim, dim == 2 ? 0.005 : 0.014, context, c->mesh[0] = make_bar(dim, NULL));
    if (kind == MOVING || kind == STICKY) make_moving(c, dx, kind == STICKY ? 3 : 0, context);
    if (kind == DROP) c->s = make_drop(context, dim, dim == 2 ? 40 : 14, 0.072, 2);
    if (kind == FOUNTAIN) c->s = (c->f = make_fountain(dim, dim == 2 ? 0.006 : 0.018, context)).s;
    if (kind == HONEY) make_honey(c, dx, 0, context);
    if (kind == HONEY_WITH_TENSION || kind == HONEY_CUT_SHORT) make_honey(c, dx, 0.03, context);
    if (kind == HONEY_CUT_SHORT) cut_short(c->s);
    if (kind == SHEET) make_sheet_dam(c, dim == 2 ? 0.005 : 0.014, context);
    if (kind == DROP || kind == HONEY_WITH_TENSION || kind == HONEY_CUT_SHORT) c->dt = 2 * (double)fsi_sph_suggest_dt(c->s);
}

static int scene_step(scene *c, int step)
{
    if (c->moves) {
        const fsi_vec3 wall = pose_at(c->dim, 0.02 + 0.01 * sin(0.1 * step), 0.15, 0).position;
        c->turning.end = pose_at(c->dim, 0.28, 0.08, 0.03 * step);
        CHECK(fsi_mesh_move_rigid(c->mesh[1], wall, fsi_quat_identity()) == FSI_OK);
    }
    if (!step_ok(c->s, c->dt)) return 0;
    if (c->moves) {
        fsi_body_integrate(&c->turning, (fsi_real)c->dt);
        fsi_body_integrate(&c->floating, (fsi_real)c->dt);
    }
    return 1;
}

static uint64_t scene_end(scene *c)
{
    const uint64_t hash = fsi_hash(&c->floating, sizeof c->floating, fsi_sph_hash(c->s));
    int k;
    if (c->f.s) end_fountain(&c->f);
    else fsi_sph_destroy(c->s);
    for (k = 0; k < 3; k++) fsi_mesh_destroy(c->mesh[k]);
    return hash;
}

/* ---- few dispatches --------------------------------------------------------------------------------------------- */

/* Every loop is dispatched that has more than one chunk. Of a sweep: a point at which the pressure solve takes the density, with
   the step on from there or back; an iteration of conjugate gradients, of which the first has its direction from an exact residual
   of viscosity. Making lists anew within a solve takes two more, and iterations cut short one: the new velocities once more. */
static void check_step(const fsi_sph *s, int kind)
{
    const long points = calls_of(fsi__sph_density, NULL), steps = calls_of(fsi__sph_update, NULL) + calls_of(fsi__sph_reset_range, NULL);
    const long pressure = points + calls_of(fsi__sph_gradient, NULL) + steps, substeps = s->stats.substeps;
    const long rounds = calls_of(fsi__sph_visit, fsi__sph_viscous_apply), residuals = calls_of(fsi__sph_viscous_start, NULL);
    const long turns = calls_of(fsi__sph_visit, fsi__sph_viscous_turn) + calls_of(fsi__sph_visit, fsi__sph_viscous_advance);
    const long last = residuals ? substeps : 0, viscous = residuals + rounds + turns - last; /* the last residual is one of the others */
    const long others = seen.calls - pressure - viscous, cut = kind == HONEY_CUT_SHORT;
    const int ok = CHECK(pressure <= 3 * points) && CHECK(points >= s->stats.iterations) && CHECK(viscous <= 3 * rounds) &&
                   CHECK(others <= (12 + cut) * substeps + 2 * s->stats.rebuilds);
    if (!ok) printf("%s, dim %d: %ld dispatches of %ld points, %ld of %ld iterations of viscosity, %ld others in %ld substeps with %d rebuilds\n",
        scene_name[kind], s->desc.dim, pressure, points, viscous, rounds, others, substeps, s->stats.rebuilds);
}

/* A sweep is a point at which the pressure solve takes the density or an iteration of conjugate gradients. The last point of a solve
   takes two dispatches only, which leaves one for iterations that were cut short. */
static void test_a_sweep_is_three_dispatches_and_a_substep_twelve_more(void)
{
    int kind, dim, step;
    dispatch_worth = 1;
    for (kind = 0; kind < SCENES; kind++) {
        for (dim = 2; dim <= 3; dim++) {
            fsi_context context = fsi_default_context();
            long calls = 0, sweeps = 0, substeps = 0;
            scene c;
            context.parallel_for = count_calls;
            scene_begin(&c, kind, dim, &context);
            for (step = 1; step <= 4; step++) {
                memset(&seen, 0, sizeof seen);
                if (!scene_step(&c, step)) break;
                check_step(c.s, kind);
                calls += seen.calls;
                sweeps += calls_of(fsi__sph_density, NULL) + c.s->stats.viscosity_iterations;
                substeps += c.s->stats.substeps;
            }
            CHECK(c.s->count > 1024);
            if (!CHECK(calls > 0) || !CHECK(calls <= 3 * sweeps + 12 * substeps)) printf("%s, dim %d: %ld dispatches, %ld sweeps, %ld substeps\n", scene_name[kind], dim, calls, sweeps, substeps);
            scene_end(&c);
        }
    }
    dispatch_worth = 22e3;
}

/* On the average of each loop, as single times are at the mercy of the clock. */
static void test_nothing_is_dispatched_for_little_work(void)
{
    const double bound = test_time_here(20e-6);
    int kind, dim, step, k;
    for (kind = 0; kind < SCENES; kind++) {
        for (dim = 2; dim <= 3; dim++) {
            fsi_context context = fsi_default_context();
            scene c;
            context.parallel_for = count_calls;
            memset(&seen, 0, sizeof seen);
            scene_begin(&c, kind, dim, &context);
            for (step = 1; step <= 3; step++) if (!scene_step(&c, step)) break;
            for (k = 0; k < seen.loops; k++) {
                const double mean = (double)seen.loop[k].time / CLOCKS_PER_SEC / (double)seen.loop[k].calls;
                if (!CHECK(mean >= bound)) printf("%s, dim %d, loop %d: %g s\n", scene_name[kind], dim, k, mean);
            }
            CHECK(seen.calls > 0);
            scene_end(&c);
        }
    }
}

static void test_a_small_liquid_makes_no_dispatch(void)
{
    fsi_context context = fsi_default_context();
    fsi_sph *s;
    int k;
    context.parallel_for = count_calls;
    memset(&seen, 0, sizeof seen);
    s = make_dam(2, 0.0088, &context, NULL);
    CHECK(s->count > 450 && s->count <= 512);
    for (k = 0; k < 5; k++) step_ok(s, 0.01);
    CHECK(seen.calls == 0);
    fsi_sph_destroy(s);
}

/* Alone; what is worth it on threads; everything on threads, in any order. */
static void test_what_is_dispatched_changes_no_bit_for_any_threads(void)
{
    int kind, dim, step, way;
    for (kind = 0; kind < SCENES; kind++) {
        for (dim = 2; dim <= (TEST_SLOWED ? 2 : 3); dim++) {
            uint64_t hash[3] = { 0, 0, 0 };
            for (way = 0; way < 3; way++) {
                fsi_context context = fsi_default_context();
                scene c;
                hash[way] = hash[0];
                if (TEST_SLOWED && (way == 1 || kind == DAM || kind == STICKY)) continue;
                if (way) test_threads(&context, way == 1 ? 2 : 5, way == 2);
                dispatch_worth = way == 2 ? 1 : 22e3;
                scene_begin(&c, kind, dim, &context);
                for (step = 1; step <= (TEST_SLOWED ? 1 : 2); step++) if (!scene_step(&c, step)) break;
                hash[way] = scene_end(&c);
            }
            if (!CHECK(hash[1] == hash[0]) || !CHECK(hash[2] == hash[0])) printf("%s, dim %d\n", scene_name[kind], dim);
        }
    }
    dispatch_worth = 22e3;
}

int main(int argc, char **argv)
{
    TEST_BEGIN(argc, argv);
    RUN(test_a_sweep_is_three_dispatches_and_a_substep_twelve_more);
    RUN_PHYSICS(test_nothing_is_dispatched_for_little_work);
    RUN(test_a_small_liquid_makes_no_dispatch);
    RUN(test_what_is_dispatched_changes_no_bit_for_any_threads);
    return TEST_END();
}
