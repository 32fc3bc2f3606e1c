/* validate_couple.c - liquid and thin solids together: random scenes, and what the paper that fsi_couple.h follows
   says of itself, measured beside it.
   SPDX-License-Identifier: MIT

   Prints lines `key value unit`, and `key value unit reference tolerance pass|fail` where something is demanded. A word
   runs one part: scenes, sheets, sweeps, flight, newton, spacing, impact, momentum, gate, monolithic, rest. --res 10
   takes a tenth of the random scenes and sweeps, and fewer steps. `sheets --first 243 --last 243` runs the sheets of
   some seeds alone. */
#define FSI_IMPLEMENTATION
struct fsi__ls_run;
struct fsi__co_impl;
struct fsi_pressure_flow;
static void look_in(struct fsi__ls_run *run, int phase);
static void look_at(struct fsi__co_impl *c, int when, const struct fsi_pressure_flow *flow);
#define FSI__LS_AFTER_PHASE(run, phase) look_in(run, phase)
#define FSI__CO_LOOK(c, when, flow) look_at(c, when, flow)
#include "../examples/kit/kit.h"
#include "../tests/kit/test.h"
#include "../fsi_couple.h"
#include "../tests/kit/test_shell.h"
#include "../tests/kit/test_couple.h"
#include "../tests/kit/couple_cases.h"
#include "../tests/kit/couple_sheets.h"
#include "../tests/kit/couple_inside.h"
#include "../tests/kit/couple_gate.h"
#include "../tests/kit/couple_monolithic.h"
#include "../tests/kit/couple_rest.h"
#include "validate.h"

static const char *const metric_name[2] = { "linear", "spline" };
static int first_sheet = 0, last_sheet = 499; /* seeds */

/* A figure that may be `most` at most. */
static void at_most(double value, double most, const char *unit, const char *key, ...)
{
    va_list args;
    va_start(args, key);
    vprintf(key, args);
    va_end(args);
    printf(" %.4g %s 0 %g %s\n", value, unit, most, value <= most ? "pass" : "fail");
    fflush(stdout);
}

/* ---- looking in -------------------------------------------------------------------------------------------------- */

static fsi__co_impl *watched;
static correction_tally corrections;

static const char *const rule_name[4] = {"uniform_mass", "uniform_mass_no_search", "paper_mass",
                                         "paper_mass_no_search"};
static newton_tally *again; /* NULL: problems are not solved again */
static int fresh;           /* the substep's problem was not solved again yet */

static void look_in(fsi__ls_run *run, int phase) { monolithic_look_in(run, phase); }

static void look_at(struct fsi__co_impl *c, int when, const struct fsi_pressure_flow *flow)
{
    if (c != watched) return;
    if (flow && c->ended) watch_correction(c, when, flow, &corrections);
    if (flow && !c->ended) fresh = 1; /* a new substep */
    if (when != FSI__CO_ASSEMBLED) return;
    if (fresh && again) newton_again(c, again);
    fresh = 0;
}

static void watch(pair *p)
{
    watched = p ? (fsi__co_impl *)p->both->impl : NULL;
    again = NULL;
    memset(&corrections, 0, sizeof corrections);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* By SPLINE there may be none; LINEAR is there to be compared. */
static void none_of(int metric, int count, const char *key, const char *name)
{
    if (metric == FSI_METRIC_SPLINE) at_most(count, 0, "1", key, name);
    else say(count, "1", key, name);
}

static void run_scenes(void)
{
    random_tally tally[2];
    int k, m;
    memset(tally, 0, sizeof tally);
    for (k = 0; k < scaled(200); k++) random_run(k, scaled(100), tally);
    for (k = 0; k < scaled(64); k++) random_run(FIRST_LINEAR + k, scaled(100), tally);
    for (m = 1; m >= 0; m--) {
        const random_tally *t = &tally[m];
        const char *name = metric_name[m];
        say(t->scenes, "1", "scenes_%s", name);
        say((double)t->substeps, "1", "scenes_%s_substeps", name);
        say((double)t->newton / (double)t->substeps, "1", "scenes_%s_newton", name);
        say((double)t->degraded, "1", "scenes_%s_substeps_out_of_balance", name);
        none_of(m, t->refused, "scenes_%s_steps_refused", name);
        none_of(m, t->broken, "scenes_%s_broken_promises", name);
        none_of(m, t->unlike, "scenes_%s_other_bits", name);
        say(t->threads, "1", "scenes_%s_run_by_three_threads", name);
        say(t->loaded, "1", "scenes_%s_loaded", name);
        say(t->failed, "1", "scenes_%s_steps_without_memory", name);
        say(t->least, "dx", "scenes_%s_min_distance", name);
        say(t->dense_least, "dx", "scenes_%s_min_distance_four_a_cell", name);
        none_of(m, t->leaking, "scenes_%s_with_solid_in_liquid", name);
        say(t->error, "1", "scenes_%s_volume_error", name);
        say(t->fastest, "1", "scenes_%s_speed_over_fall_and_throw", name);
    }
}

/* Sheets beside walls at 1/24 s. */
static void run_sheets(void)
{
    const int most = scaled(500);
    sheet_tally t;
    int k;
    memset(&t, 0, sizeof t);
    for (k = first_sheet; k <= last_sheet && t.scenes < most; k++) sheet_run(k, 16, &t);
    say(first_sheet, "1", "sheets_first_seed");
    say(t.scenes, "1", "sheets");
    say(t.steps, "1", "sheets_steps");
    say((double)t.newton / (double)t.substeps, "1", "sheets_newton");
    say(t.degraded, "1", "sheets_substeps_out_of_balance");
    at_most(t.refused, 0, "1", "sheets_steps_refused");
    at_most(t.broken, 0, "1", "sheets_broken_promises");
    at_most(t.slowest, 30, "1", "sheets_longest_step_over_median");
    say(t.slowest_seed, "1", "sheets_longest_step_seed");
}

static void say_sweeps(const sweep_count *c, int pairs, const char *metric, const char *what)
{
    say((double)c->stalled / pairs, "1", "sweeps_%s_%s_stalls", metric, what);
    say((double)c->late / pairs, "1", "sweeps_%s_%s_too_late", metric, what);
    say(c->mean, "1", "sweeps_%s_%s_time_over_touch", metric, what);
}

static void run_sweeps(void)
{
    int m;
    for (m = 0; m < 2; m++) {
        const sweep_tally t = compare_sweeps((fsi_metric)m, scaled(30000));
        say(t.pairs, "1", "sweeps_%s", metric_name[m]);
        say_sweeps(&t.printed, t.pairs, metric_name[m], "printed");
        say_sweeps(&t.ours, t.pairs, metric_name[m], "ours");
        say(t.crossed, "1", "sweeps_%s_crossed_unasked_by_printed", metric_name[m]);
        say(t.crossed_late, "1", "sweeps_%s_crossed_ours_too_late", metric_name[m]);
    }
}

static void run_flight(void)
{
    static const double cfl[3] = { 0.5, 1, 3 };
    int m, k, j;
    for (m = 1; m >= 0; m--) for (k = 0; k < 3; k++) {
        const int steps = scaled(17);
        pair p;
        begin_flight(&p, (fsi_metric)m, cfl[k]);
        for (j = 0; j < steps; j++) if (!pair_step(&p, 3e-3)) break;
        say(p.least, "dx", "flight_%s_cfl_%g_min_distance", metric_name[m], cfl[k]);
        say((double)p.newton / p.substeps, "1", "flight_%s_cfl_%g_newton", metric_name[m], cfl[k]);
        say(p.error, "1", "flight_%s_cfl_%g_volume_error", metric_name[m], cfl[k]);
        say(steps - j, "1", "flight_%s_cfl_%g_steps_refused", metric_name[m], cfl[k]);
        pair_end(&p);
    }
}

/* The optimisation of every substep solved again by four rules; frames of 5 ms, the drop meets the row in the first. */
static void run_newton(void)
{
    static const double cfl[4] = { 0.7, 1.2, 2, 4 };
    int m, k, f, r;
    for (m = 1; m >= 0; m--) for (k = 0; k < 4; k++) {
        newton_tally all;
        pair p;
        memset(&all, 0, sizeof all);
        begin_row(&p, (fsi_metric)m, cfl[k], 1, 1, 0);
        watch(&p);
        again = &all;
        for (f = 0; f < scaled(20); f++) {
            const int newton = p.newton, substeps = p.substeps;
            const newton_tally before = all;
            if (!pair_step(&p, 5e-3)) break;
            if (f % 5 != 0) continue;
            say((double)(p.newton - newton) / (p.substeps - substeps), "1", "newton_%s_cfl_%g_frame_%d_library",
                metric_name[m], cfl[k], f + 1);
            for (r = 0; r < 4; r++)
                say((double)(all.steps[r] - before.steps[r]) / (all.problems - before.problems), "1",
                    "newton_%s_cfl_%g_frame_%d_%s", metric_name[m], cfl[k], f + 1, rule_name[r]);
        }
        watch(NULL);
        say((double)p.newton / p.substeps, "1", "newton_%s_cfl_%g_library", metric_name[m], cfl[k]);
        for (r = 0; r < 4; r++) {
            say((double)all.steps[r] / all.problems, "1", "newton_%s_cfl_%g_%s", metric_name[m], cfl[k], rule_name[r]);
            say((double)all.cut[r] / all.problems, "1", "newton_%s_cfl_%g_%s_steps_cut", metric_name[m], cfl[k],
                rule_name[r]);
            say((double)all.spent[r] / all.problems, "1", "newton_%s_cfl_%g_%s_not_done_after_30", metric_name[m],
                cfl[k], rule_name[r]);
            say((double)all.pierced[r] / all.problems, "1", "newton_%s_cfl_%g_%s_led_into_liquid", metric_name[m],
                cfl[k], rule_name[r]);
        }
        pair_end(&p);
    }
}

static void run_spacing(void)
{
    static const double spacing[11] = { 1, 1.2, 1.4, 1.6, 1.8, 2, 2.25, 2.5, 3, 4, 5 };
    double first = 0, least;
    int k, with = 0;
    for (k = 0; k < 11; k++) {
        const int leak = leak_through_row(spacing[k], 1, 0, scaled(60), &least),
                  held = leak_through_row(spacing[k], 1, 1, scaled(60), &least);
        say(leak, "cells", "spacing_%g_leak", spacing[k]);
        if (leak > 0 && !(first > 0)) first = spacing[k];
        with += held;
    }
    printf("spacing_first_leak %.4g dx 6.2 5 %s\n", first, first >= 1.2 ? "pass" : "fail");
    at_most(with, 0, "cells", "spacing_leak_through_edges_up_to_5_dx");
}

/* The liquid alone, on the floor of its box. */
static double floor_error(int conserve, int n)
{
    fsi_levelset_desc d = fsi_levelset_default_desc();
    fsi_levelset *s;
    double start, worst = 0;
    int k;
    d.context = &app.context;
    d.dim = 2;
    d.n[0] = d.n[1] = n;
    d.dx = REAL(CELL);
    d.gravity = v3(0, -9.81, 0);
    d.cfl = 1;
    d.conserve_volume = conserve;
    ex_check(&app, fsi_levelset_create(&s, &d));
    ex_check(&app, fsi_levelset_fill_sphere(s, v3(n / 2.0 * CELL, (0.15 * n + 3) * CELL, 0), REAL(0.15 * n * CELL),
                                            v3(0, -5, 0), NULL));
    start = s->stats.volume;
    for (k = 0; k < 100; k++) {
        ex_check(&app, fsi_levelset_step(s, REAL(1e-3 * n / 320)));
        worst = fmax(worst, fabs(s->stats.volume / start - 1));
    }
    fsi_levelset_destroy(s);
    return worst;
}

static void run_impact(void)
{
    double least;
    int n, rebounds;
    for (n = 32; n <= 128; n *= 2) {
        say(impact_error(n, 1, 100, &least), "1", "impact_%d_volume_error", n);
        say(least, "dx", "impact_%d_min_distance", n);
        say(floor_error(1, n), "1", "impact_%d_floor_volume_error", n);
        say(floor_error(0, n), "1", "impact_%d_floor_without_constraint_volume_error", n);
    }
    rebounds = count_rebounds(1, &least);
    printf("rebounds_on_undamped_string %d 1 56 50 %s\n", rebounds, rebounds > 5 ? "pass" : "fail");
    say(least, "dx", "rebounds_min_distance");
}

/* A drop of 6 k cells hits a free plate at 1 m/s; slope of the plate; no gravity. */
static void hit(int k, double share, double slope, int slip, const char *name)
{
    const double drop = 1000 * FSI_PI * 36 * k * k * CELL * CELL;
    double start, worst = 0;
    pair p;
    int j;
    pair_begin(&p, 40 * k);
    p.e.slip = slip;
    p.l.gravity = p.c.desc.gravity = v3(0, 0, 0);
    p.l.surface_tension = 0;
    p.c.material[0].young = REAL(1e6);
    p.c.material[0].thickness = REAL(1e-3 * k);
    p.c.material[0].density = REAL(share * drop / (20 * k * CELL * 1e-3 * k));
    scene_rod(&p.c, 20 * k, v3(10.1 * k * CELL, (12.1 - 10 * slope) * k * CELL, 0),
              v3(30.1 * k * CELL, (12.1 + 10 * slope) * k * CELL, 0));
    pair_make(&p);
    pair_drop(&p, 20.3 * k, 21.5 * k, 6 * k, 0, -1);
    start = -1000 * p.water->stats.volume;
    watch(&p);
    for (j = 0; j < 24 * k; j++) {
        if (!pair_step(&p, 3e-4)) break;
        worst = fmax(worst, hypot(p.both->stats.momentum[0] / start, p.both->stats.momentum[1] / start - 1));
    }
    if (slip || slope > 0)
        say(corrections.gained / corrections.exchanged, "1", "momentum_%s_gained_over_exchanged", name);
    else at_most(corrections.gained / corrections.exchanged, 1e-6, "1", "momentum_%s_gained_over_exchanged", name);
    say(worst, "1", "momentum_%s_whole_step_drift", name);
    watch(NULL);
    pair_end(&p);
}

static void run_momentum(void)
{
    static const char *const axis[3] = { "axis_40", "axis_80", "axis_160" };
    int k;
    for (k = 0; k < 3; k++) hit(1 << k, 0.5, 0, 0, axis[k]);
    hit(2, 0.5, 0.4, 0, "axis_tilted");
    hit(2, 0.5, 0, 1, "slip");
    hit(1, 0.5, 0.4, 1, "slip_tilted_40");
    hit(2, 0.5, 0.4, 1, "slip_tilted_80");
    hit(4, 0.5, 0.4, 1, "slip_tilted_160");
}

/* An elastic gate under a dam break: clamped by pins alone, its chain ended on the floor; clamped by a rigid wall; and
   ended a cell above the floor. */
static void run_gate(void)
{
    const double small = GATE * GATE * GATE * GATE / (8 * GATE_EI), load = 1200;
    static const char *const way[3] = { "pinned", "clamped", "above" };
    static const double size[4] = { 5, 2.5, 1.25, 0.625 };
    double peak[4] = { 0 };
    int w, k;
    for (w = 0; w < 3; w++) for (k = 0; k < (app.res < 100 ? 3 : 4); k++) {
        const gate_kind kind = { 1e-3 * size[k], w > 0, w > 1 };
        const gate_run r = gate_break(&kind, 0.2);
        if (w < 2) {
            say(gate_bent(&kind, 1) / small, "1", "gate_%s_%g_bent_over_theory", way[w], size[k]);
            say(gate_bent(&kind, load) / gate_elastica(load), "1", "gate_%s_%g_bent_by_half_over_theory", way[w],
                size[k]);
        }
        say(r.held, "1", "gate_%s_%g_held_over_hydrostatics", way[w], size[k]);
        say(1e3 * r.peak, "mm", "gate_%s_%g_peak", way[w], size[k]);
        say(r.time, "s", "gate_%s_%g_time", way[w], size[k]);
        at_most(r.missing, 1e-8, "1", "gate_%s_%g_momentum_missing", way[w], size[k]);
        peak[k] = r.peak;
        if (w < 2 || k < 2) continue;
        at_most(fabs(peak[k] / peak[k - 1] - 1), 0.04, "1", "gate_above_%g_to_%g_change", size[k - 1], size[k]);
    }
}

/* Positions in one optimisation beside velocities in one solve with the pressure; the free plate is still far from the
   floor at the end. */
static void run_monolithic(void)
{
    static const char *const scene_name[2] = { "string", "plate" }, *const by[2] = { "positions", "velocities" };
    int what, k, v;
    for (what = 0; what < 2; what++) for (k = 1; k <= 2; k++) for (v = 0; v < 2; v++) {
        const passage t = run_passage((target)what, k, v, scaled(what == HELD_STRING ? 160 * k : 60 * k));
        const int cells = 64 * k;
        say(t.drop, "cells", "monolithic_%s_%d_drop", scene_name[what], cells);
        say(t.below, "cells", "monolithic_%s_%d_%s_below", scene_name[what], cells, by[v]);
        say((double)t.wet / (double)t.samples, "1", "monolithic_%s_%d_%s_solid_in_liquid", scene_name[what], cells,
            by[v]);
        say(t.error, "1", "monolithic_%s_%d_%s_volume_error", scene_name[what], cells, by[v]);
        if (what == FREE_PLATE) say(t.kept, "1", "monolithic_%s_%d_%s_momentum_kept", scene_name[what], cells, by[v]);
        if (what == FREE_PLATE && v)
            say(t.gained, "1", "monolithic_%s_%d_%s_gained_over_exchanged", scene_name[what], cells, by[v]);
        say(t.seconds, "s", "monolithic_%s_%d_%s_substep", scene_name[what], cells, by[v]);
    }
}

/* A pool on a held sheet, in 2D bent by `sag`: brought to rest by viscosity first, since what is filled in over a bent
   chain swings. */
static void rest_held(int dim, int n, double rate, double depth, double sag)
{
    fsi_levelset_desc d;
    calm c;
    tank t;
    tank_begin(&t, dim, n, depth, 0.3);
    pair_pin(&t.p);
    if (sag > 0) {
        tank_fill_bent(&t, sag);
        d = t.p.water->desc;
        d.viscosity = 30;
        ex_check(&app, fsi_levelset_set_desc(t.p.water, &d));
        tank_run(&t, 1 / rate, 5, 1);
        d.viscosity = 0;
        ex_check(&app, fsi_levelset_set_desc(t.p.water, &d));
    } else tank_fill(&t);
    c = tank_run(&t, 1 / rate, 0.6 * scaled(100), 5);
    at_most(c.most, 1e-6, "rho_g_H_V", "rest_held_%dd_%d_cells_rate_%g_sag_%g_kinetic", dim, n, rate, sag);
    pair_end(&t.p);
}

/* A pool on springs, held at first until its gaps have settled. */
static void rest_sprung(int dim, int n, double rate)
{
    const double depth = 0.5;
    calm c;
    tank t;
    int i;
    tank_begin(&t, dim, n, depth - 1.8 / n, 0.3); /* create removes 1.5 cells of liquid above the sheet */
    tank_hang(&t, 2e5);
    t.depth = depth;
    pair_pin(&t.p);
    tank_fill(&t);
    tank_run(&t, 1 / rate, 1, 0.5);
    for (i = 0; i < t.p.solid->vertex_count; i++) t.p.solid->pinned[i] = 0;
    c = tank_run(&t, 1 / rate, 0.1 * scaled(100), 0);
    at_most(c.rises, 1e-4, "rho_g_H_V", "rest_sprung_%dd_%d_cells_rate_%g_all_energy_rises", dim, n, rate);
    at_most(fabs(c.bears - 1), 0.02, "1", "rest_sprung_%dd_%d_cells_rate_%g_support_off", dim, n, rate);
    pair_end(&t.p);
}

static void rest_puddle(int n, double above, double high, double rate, double by)
{
    tank t;
    double last;
    puddle_begin(&t, n, above, high, n / 2.0, 0.07, 1);
    last = last_motion(&t, rate, 0.2 * scaled(100));
    if (by > 0) at_most(last, by, "s", "rest_puddle_%d_cells_%g_high_at_%g_rate_%g_moves_until", n, high, above, rate);
    else say(last, "s", "rest_puddle_%d_cells_%g_high_at_%g_rate_%g_moves_until", n, high, above, rate);
    pair_end(&t.p);
}

/* Pools and puddles that are to rest. */
static void run_rest(void)
{
    static const double rate[3] = { 24, 60, 240 };
    int n, k;
    for (n = 16; n <= 64; n *= 2) {
        for (k = 0; k < 3; k++) rest_held(2, n, rate[k], 0.5, 0);
        for (k = 0; k < 2; k++) rest_held(2, n, rate[k], 0.5, 0.1);
        for (k = 0; k < 3; k++) rest_sprung(2, n, rate[k]);
    }
    for (k = 0; k < 2; k++) rest_held(3, 16, rate[k], 0.2, 0);
    for (k = 0; k < 2; k++) rest_sprung(3, 20, k ? 240 : 30);
    for (n = 24; n <= 40; n += 8) for (k = 0; k < 2; k++) {
        rest_puddle(n, 0.3, 3, k ? 60 : 30, 10);
        rest_puddle(n, 0.3, 4, k ? 60 : 30, 10);
        rest_puddle(n, 0.3, 2, k ? 60 : 30, 0);
    }
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void);
    } parts[11] = {{"scenes", run_scenes},        {"sheets", run_sheets},     {"sweeps", run_sweeps},
                   {"flight", run_flight},        {"newton", run_newton},     {"spacing", run_spacing},
                   {"impact", run_impact},        {"momentum", run_momentum}, {"gate", run_gate},
                   {"monolithic", run_monolithic},
                   {"rest", run_rest}};
    const char *only = NULL;
    int k;
    ex_init(&app, "validate_couple", "Liquid and thin solids together: random scenes, and the paper's claims.");
    app.res = 100;
    app.res_help = "per cent of the full number of cases";
    app.out = "docs";
    ex_operand(&app, "part", &only,
        "scenes, sheets, sweeps, flight, newton, spacing, impact, momentum, gate, monolithic or rest; none: all");
    ex_int(&app, "first", &first_sheet, 0, 1000000, "sheets: seed of the first scene");
    ex_int(&app, "last", &last_sheet, 0, 1000000, "sheets: seed of the last scene");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    for (k = 0; k < 11; k++) if (!only || strcmp(only, parts[k].name) == 0) parts[k].run();
    ex_pool_stop(&app.pool);
    return test__run.faults > 0;
}
