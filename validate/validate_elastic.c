/* validate_elastic.c - elastic bodies against mechanics: motion, statics, vibration, contact, shapes recovered.
   SPDX-License-Identifier: MIT

   The cases of elastic_cases.h. Prints lines `key value unit reference tolerance verdict`, or `key value unit` for what
   is only measured. The default run takes three minutes of CPU; --long has beams, bars and balls of more elements, soft
   heaps and more seeds. A word (motion, tension, beams, scenes, twist, frequencies, contact, heap, recovery) runs one
   part. */
#define FSI_IMPLEMENTATION
#include "../examples/kit/kit.h"
#include "../fsi_elastic.h"
#include "../examples/kit/elastic_look.h"
#include "../tests/kit/test.h"
#include "../tests/kit/test_elastic.h"
#include "../tests/kit/elastic_cases.h"
#include "validate.h"

static int refined;

static void judge(double value, const char *unit, double want, double tolerance, const char *key, ...)
{
    va_list args;
    va_start(args, key);
    vprintf(key, args);
    va_end(args);
    printf(" %.4g %s %.4g %.2g %s\n", value, unit, want, tolerance, fabs(value - want) <= tolerance ? "pass" : "fail");
    fflush(stdout);
}

static const char *name_of(int handles) { return handles ? "reduced" : "full"; }

/* ---- motion ----------------------------------------------------------------------------------------------------- */

static void run_motion(void)
{
    static const double spin[3] = { 1, 5, 10 };
    uint64_t random = 7;
    double worst = 0;
    int dim, order, handles, k, met;
    for (dim = 2; dim <= 3; dim++) for (order = 1; order <= 2; order++) for (handles = 0; handles <= 8; handles += 8)
        worst = fmax(worst, fall_error(dim, order, handles, 1.0 / 60, 60));
    judge(worst, "1", 0, 1e-10, "free_fall_error");
    for (worst = 0, k = 0; k < 12; k++) {
        const fsi_vec3 axis = k % 2 ? fsi_v3(0, 0, 1)
            : fsi_v3((fsi_real)(test_random(&random) - 0.5), (fsi_real)(test_random(&random) - 0.5), 1);
        worst = fmax(worst, turned_drift(k % 2 ? 2 : 3, k % 4 < 2 ? 0 : 8, 0.45, axis, 6.3 * test_random(&random)));
    }
    judge(worst, "sizes", 0, 1e-10, "turned_body_drift");
    for (worst = 0, handles = 0; handles <= 8; handles += 8) {
        worst = fmax(worst, collision_momentum_error(handles, &met));
        if (!met) worst = HUGE_VAL;
    }
    judge(worst, "m/s", 0, 1e-10, "collision_momentum_error");
    judge(tumbling_momentum_error(0), "1", 0, 1e-12, "momentum_error_a_step_full");
    judge(tumbling_momentum_error(8), "1", 0, 1e-12, "momentum_error_a_step_reduced");

    /* Backward Euler is balanced, BDF2 loses about (w h)^2 of its angular momentum a turn. */
    for (k = 0; k < 3; k++)
        judge(spin_lost(1, 0, spin[k], 1.0 / 240), "1", 0, 2e-3, "euler_spin_%g_240hz_lost_a_turn", spin[k]);
    for (k = 1; k < 3; k++)
        judge(spin_lost(1, 10, spin[k], 1.0 / 60), "1", 0, 2e-3, "euler_spin_%g_60hz_lost_a_turn_reduced", spin[k]);
    for (k = 0; k < 3; k++)
        judge(spin_lost(2, 0, spin[k], 1.0 / 240), "1", 0, 2e-3, "bdf2_spin_%g_240hz_lost_a_turn", spin[k]);
    judge(spin_lost(2, 10, 5, 1.0 / 240), "1", 0, 2e-3, "bdf2_spin_5_240hz_lost_a_turn_reduced");
    for (k = 1; k < 3; k++) say(spin_lost(2, 0, spin[k], 1.0 / 60), "1", "bdf2_spin_%g_60hz_lost_a_turn", spin[k]);
}

/* ---- statics ---------------------------------------------------------------------------------------------------- */

static void run_tension(void)
{
    static const double nu[5] = { 0, 0.2, 0.3, 0.45, 0.49 };
    int dim, k;
    for (dim = 2; dim <= 3; dim++) for (k = 0; k < 5; k++) {
        const pulled p = pull_block(dim, nu[k], 200, 0.5, 400);
        judge(p.young / 1e5, "1", 1, 0.02, "tension_%dd_nu_%g_young", dim, nu[k]);
        judge(p.poisson, "1", nu[k], 0.02 * fmax(nu[k], 0.1), "tension_%dd_nu_%g_poisson", dim, nu[k]);
        judge(p.uneven, "1", 0, 1e-3, "patch_%dd_nu_%g_uneven", dim, nu[k]);
    }
}

/* n cells across, `along` in eight sides of length. */
static beam eight_sides(int n, int along, double nu, int handles)
{
    beam m = beam_of(8, n, along);
    m.poisson = nu;
    m.handles = handles;
    return m;
}

/* Deflections under F L^2/(E I) = 1, 2, 5 by elastica_cantilever_tip.csv: D, and what shear adds. */
static void elastica_of(beam m, double tolerance, const char *name)
{
    static const double load[3] = { 1, 2, 5 }, sag[3] = { 0.30172, 0.49346, 0.71379 },
                        shorter[3] = { 0.05643, 0.16064, 0.38763 };
    double d, s;
    int k;
    for (k = 0; k < (refined ? 3 : 1); k++) {
        beam_elastica(&m, load[k], &d, &s);
        judge(d / sag[k], "1", 1, tolerance, "elastica_%s_load_%g_deflection", name, load[k]);
        say(s / shorter[k], "1", "elastica_%s_load_%g_shortening", name, load[k]);
    }
}

#define BEAM_HANDLES 99 /* the default of studies/elastic/beam.c */

static void run_beams(void)
{
    beam m = eight_sides(8, 96, 0, 0);
    double full;
    int n;
    judge(beam_weight_ratio(&m, 9.81), "1", 1, 0.05, "tip_full_8_cells");
    elastica_of(m, 0.05, "full_8_cells");
    m = eight_sides(6, 48, 0.3, 60);
    judge(beam_weight_ratio(&m, 9.81), "1", 1, 0.02, "tip_reduced_6_cells");
    elastica_of(m, 0.05, "reduced_6_cells");
    judge(beam_middle_ratio(&m, 9.81), "1", 0.975, 0.02, "middle_reduced_6_cells"); /* the full body's limit */
    m = eight_sides(4, 32, 0.3, 0);
    say(beam_weight_ratio(&m, 9.81), "1", "tip_full_4_cells_nu_0.3");

    /* Clamped at both ends: the subspace beside the full body, all elements evaluated; and as beam.c has it. */
    for (n = 4; n <= (refined ? 8 : 6); n += 2) {
        m = eight_sides(n, 8 * n, 0.3, 0);
        full = beam_middle_ratio(&m, 9.81);
        say(full, "1", "middle_full_%d_cells", n);
        m.regions = 6 * n * n * 8 * n; /* all */
        m.handles = BEAM_HANDLES;
        judge(beam_middle_ratio(&m, 9.81) / full, "1", 1, 0.02, "middle_%d_handles_over_full_%d_cells", m.handles, n);
        m.handles = 60;
        say(beam_middle_ratio(&m, 9.81) / full, "1", "middle_60_handles_over_full_%d_cells", n);
    }
    m = eight_sides(6, 48, 0.3, BEAM_HANDLES);
    judge(beam_middle_ratio(&m, 9.81), "1", 0.975, 0.02, "middle_%d_handles_6_cells", BEAM_HANDLES);
    if (!refined) return;
    m = eight_sides(14, 168, 0, 0);
    judge(beam_weight_ratio(&m, 9.81), "1", 1, 0.02, "tip_full_14_cells");
    elastica_of(m, 0.02, "full_14_cells");
    m = eight_sides(14, 112, 0.3, 0);
    say(beam_weight_ratio(&m, 9.81), "1", "tip_full_14_cells_nu_0.3");
    say(beam_middle_ratio(&m, 9.81), "1", "middle_full_14_cells_nu_0.3");
}

/* How far the centre of a body of jelly_drop.c (kind 4: of jelly_drag.c) comes down as it settles on a floor [m], with
   more contact points and iterations than there. */
static double sag(int kind, int resolution, int handles)
{
    fsi_elastic_desc d = fsi_elastic_default_desc();
    fsi_elastic_body_desc b = fsi_elastic_default_body_desc();
    fsi_elastic_material m = fsi_elastic_default_material();
    fsi_elastic_shape_desc floor_desc = fsi_elastic_default_shape_desc();
    const ex_mesh mesh = kind < 4 ? ex_jelly_shape(kind, 1) : ex_dimpled(0.15, 0.2, 5, 0.25, 12, 0.06, 5);
    fsi_elastic *s;
    ex_jelly jelly;
    double low = 0, way;
    int k;
    d.context = &app.context;
    d.tolerance = 1e-7;
    d.iterations = 300;
    ex_check(&app, fsi_elastic_create(&s, &d));
    ex_check(&app, fsi_elastic_add_shape(s, &floor_desc, NULL));
    m.young = REAL(kind < 4 ? 4e4 : 6e4);
    m.damping = REAL(0.05);
    b.materials = &m;
    b.material_count = 1;
    b.handles = handles;
    b.resolution = resolution;
    b.contact_points = 1500;
    for (k = 0; k < mesh.vertex_count; k++) low = fmin(low, (double)mesh.vertices[k].z);
    b.position = fsi_v3(0, 0, REAL(-low));
    jelly = ex_jelly_of(&app, s, b, mesh, 0);
    way = (double)s->bodies[0].center.z;
    for (k = 0; k < 100; k++) ex_check(&app, fsi_elastic_step(s, REAL(k < 60 ? 0.02 : 0.1)));
    way -= (double)s->bodies[0].center.z;
    ex_jelly_free(&jelly);
    fsi_elastic_destroy(s);
    return way;
}

/* The middles of the scenes' bodies at rest, beside the full body of the same elements; and what that tends to for
   smaller ones, if its error falls with h^2. The default run has the two that stand on a broad foot. */
static void run_scenes(void)
{
    static const char *const name[5] = {"pudding", "ring", "star", "ball", "drag_pudding"};
    int kind;
    for (kind = 0; kind < 5; kind++) {
        const int n = kind < 4 ? 14 : 20, fine = 26;
        double full, limit;
        if (!refined && kind % 4 != 0) continue;
        full = sag(kind, n, 0);
        judge(sag(kind, n, 60) / full, "1", 1, 0.02, "sag_%s_reduced_over_full", name[kind]);
        if (!refined) continue;
        limit = sag(kind, fine, 0);
        limit += (limit - full) * n * n / (double)(fine * fine - n * n);
        say(limit / full, "1", "sag_%s_full_limit", name[kind]);
    }
}

static void run_twist(void)
{
    beam m = eight_sides(6, 48, 0.3, 60);
    judge(beam_torque_ratio(&m, 0.3), "1", 1, 0.05, "torque_reduced_6_cells");
    m.handles = 0;
    say(beam_torque_ratio(&m, 0.3), "1", "torque_full_6_cells");
    if (!refined) return;
    m = eight_sides(14, 112, 0.3, 0);
    judge(beam_torque_ratio(&m, 0.3), "1", 1, 0.05, "torque_full_14_cells");
}

/* Against Timoshenko's beam (Huang's equation); and the damping, by creep. */
static void run_frequencies(void)
{
    static const double nu[3] = { 0, 0.3, 0.4 };
    int mode, k;
    for (k = 0; k < 6; k++) {
        beam m = eight_sides(4, 32, nu[k % 3], k < 3 ? 0 : 60);
        m.tolerance = 1e-12;
        judge(beam_creep_ratio(&m, 0.1), "1", 1, 0.03, "creep_nu_%g_%s", nu[k % 3], name_of(m.handles));
    }
    for (mode = 0; mode < 3; mode++) {
        beam m = eight_sides(4, 32, 0.3, 60);
        m.tolerance = 1e-7;
        m.iterations = 20;
        judge(beam_frequency_ratio(&m, mode, 2, 60), "1", 1, 0.03, "frequency_%d_reduced_4_cells", mode + 1);
        if (!refined) continue;
        m = eight_sides(10, 80, 0, 0);
        m.tolerance = 1e-7;
        m.iterations = 20;
        judge(beam_frequency_ratio(&m, mode, 1, 60), "1", 1, 0.03, "frequency_%d_full_10_cells", mode + 1);
    }
}

/* ---- contact ---------------------------------------------------------------------------------------------------- */

static void run_contact(void)
{
    static const double mu[4] = { 0.45, 0.55, 0.4, 0.6 }, speed[3] = { 0.1, 0.3, 1 }, young[3] = { 1e5, 1e7, 1e9 };
    int k, handles;
    for (k = 0; k < 4; k++) for (handles = 0; handles <= 8; handles += 8) {
        double way, v;
        incline(mu[k], handles, 1.0 / 120, 1.5, &way, &v);
        if (mu[k] > 0.5) judge(way / 0.2, "sides", 0, 0.01, "incline_mu_%g_%s_way", mu[k], name_of(handles));
        else judge(way, "1", 1, 0.03, "incline_mu_%g_%s_way", mu[k], name_of(handles));
    }
    for (k = 0; k < 3; k++) for (handles = 0; handles <= 60; handles += 60) {
        bounced b;
        if (!refined && handles == 0 && k != 1) continue;
        b = bounce(refined ? 24 : 16, handles, speed[k], 0.3, 1.0 / 480, 1000);
        judge(b.time, "1", 1, 0.15, "bounce_%g_%s_time_over_hertz", speed[k], name_of(handles));
        judge(b.restitution, "1", 1, 0.05, "bounce_%g_%s_restitution", speed[k], name_of(handles));
    }
    for (k = 0; k < 3; k++) {
        say(dropped_restitution(young[k], 1.0 / 60), "1", "dropped_%g_60hz_restitution", young[k]);
        say(dropped_restitution(young[k], 1.0 / 960), "1", "dropped_%g_960hz_restitution", young[k]);
    }
}

static void judge_rest(rested r, const char *name, double h)
{
    judge(r.creep, "sides", 0, 1e-3, "%s_%.0fhz_creep_30s", name, 1 / h);
    judge(r.deepest, "sides", 0, 1e-3, "%s_%.0fhz_depth", name, 1 / h);
    say(r.kinetic, "1", "%s_%.0fhz_kinetic_over_m_g_a", name, 1 / h);
}

static void run_heap(void)
{
    static const double h[3] = { 1.0 / 24, 1.0 / 60, 1.0 / 240 };
    int k;
    for (k = 0; k < (refined ? 3 : 2); k++) {
        judge_rest(stack_rest(0, h[k], 10, 30), "stack_full", h[k]);
        judge_rest(stack_rest(8, h[k], 10, 30), "stack_reduced", h[k]);
        judge_rest(heap_rest(2, 1e5, 100, h[k], 16, 30), "heap_2d", h[k]);
    }
    judge_rest(heap_rest(3, 1e5, 60, h[1], 48, 30), "heap_3d", h[1]);
    if (!refined) return;
    judge_rest(heap_rest(3, 1e5, 60, h[0], 48, 30), "heap_3d", h[0]);

    /* As soft as their own weight: the sway of the highest blocks dies out by the damping, in 40 s. */
    judge_rest(heap_rest(2, 8e3, 100, h[1], 40, 30), "heap_2d_soft", h[1]);
    judge_rest(heap_rest(2, 14e3, 100, h[1], 40, 30), "heap_2d_14kpa", h[1]);
    judge_rest(heap_rest(3, 8e3, 60, h[1], 40, 30), "heap_3d_soft", h[1]);
}

/* ---- recovery --------------------------------------------------------------------------------------------------- */

static void run_recovery(void)
{
    static const char *const how[3] = { "flat", "inverted", "random" };
    int dim, kind, handles, seed;
    for (dim = 2; dim <= 3; dim++) for (kind = 0; kind < 3; kind++) for (handles = 0; handles <= 10; handles += 10) {
        const int seeds = kind == CRUSHED_RANDOM ? (refined ? 40 : 5) : 1;
        double volume = 0, shape = 0, least, most;
        int wound = 0;
        for (seed = 1; seed <= seeds; seed++) {
            volume = fmax(volume, crushed_error(dim, 4, handles, (crushed_kind)kind, (uint64_t)seed, 3, &least, &most));
            shape = fmax(shape, fmax(1 - least, most - 1));
            wound += least < 0.9;
        }
        judge(volume, "1", 0, 0.01, "%s_%dd_%s_volume_error", how[kind], dim, name_of(handles));
        judge(shape, "1", 0, 0.01, "%s_%dd_%s_largest_strain", how[kind], dim, name_of(handles));
        if (kind == CRUSHED_RANDOM) judge(wound, "1", 0, 0, "random_%dd_%s_of_%d_wound", dim, name_of(handles), seeds);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[9] = {{"motion", run_motion}, {"tension", run_tension}, {"beams", run_beams}, {"scenes", run_scenes},
                  {"twist", run_twist}, {"frequencies", run_frequencies}, {"contact", run_contact}, {"heap", run_heap},
                  {"recovery", run_recovery}};
    const char *only = NULL;
    int k;
    ex_init(&app, "validate_elastic", "Elastic bodies against mechanics.");
    app.out = "docs";
    ex_flag(&app, "long", &refined, "beams, bars and balls of more elements");
    ex_operand(&app, "part", &only,
               "motion, tension, beams, scenes, twist, frequencies, contact, heap, recovery; none: all");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    for (k = 0; k < 9; k++) if (!only || strcmp(only, parts[k].name) == 0) parts[k].run();
    ex_pool_stop(&app.pool);
    return test__run.faults > 0;
}
