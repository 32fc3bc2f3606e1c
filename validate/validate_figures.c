/* validate_figures.c - the paper's figures 9, 10, 11, 13 and 14 d, e, redrawn from our own runs into
   docs/plots/sph_*.png.
   SPDX-License-Identifier: MIT

   Prints lines `key value unit`. --res 50 halves the number of particles along each edge, a word (contact, sweeps,
   path, gaps, dam) draws one figure only, --out chooses another folder. The text beside the figures is docs/sph.md. */
#define FSI_IMPLEMENTATION
#define FSI__SPH_SKIN 0.5 /* wide: the lists of the start serve all sweeps */
#include "../examples/kit/kit.h"
#include "../fsi_sph.h"
#include "../tests/kit/test.h"
#include "../tests/kit/test_sph.h"

#include "validate.h"

static fsi_mesh *make_solid(fsi_sph *s)
{
    fsi_mesh *mesh = shape_make_with(&app.context, FSI_MESH_CLOSED, 0);
    ex_check(&app, fsi_sph_add_mesh(s, mesh, NULL));
    return mesh;
}

/* ---- single sweeps --------------------------------------------------------------------------------------------- */

/* What fsi_sph_step does before it solves; `place`: takes starting points out of solids. */
static void open_solve(fsi__sph_run *run, fsi_sph *s, double dt, int place)
{
    ex_check(&app, fsi__sph_begin(run, s, dt));
    run->dt = dt;
    run->mu = (double)s->stiffness * dt * dt / ((double)s->desc.density * run->h * run->h);
    run->kappa0 = run->mu * (double)s->desc.contact_stiffness;
    run->omega = 1;
    fsi__sph_move_obstacles(run, 0);
    fsi__sph_parallel(run, fsi__sph_start_range, FSI__SPH_NS_START);
    ex_check(&app, fsi__neighbors_sort(run->im->neighbors, run->x, run->n, s->support, s->desc.dim));
    run->order = run->im->neighbors->order;
    if (place) fsi__sph_parallel(run, fsi__sph_place_start, FSI__SPH_NS_PLACE);
    ex_check(&app, fsi__sph_first_attach(run));
    run->outset = FSI__SPH_AT_GUESS;
}

/* One sweep. `control` NULL: the bare iteration of equation 28, no step control. Returns the energy before it. */
static double sweep(fsi__sph_run *run, fsi__sph_control *control)
{
    fsi__sph_control none = { 1, 0, 0, 0 };
    double e = fsi__sph_energy(run), drift;
    run->outset = FSI__SPH_ON_THE_WAY;
    if (control && run->refreshed) control->energy = HUGE_VAL; /* other walls: another energy */
    while (control && !fsi__sph_judge(run, control, e)) e = fsi__sph_energy(run);
    fsi__sph_parallel(run, fsi__sph_gradient, FSI__SPH_NS_GRADIENT);
    run->refresh = fsi__sph_advance(run, control ? control : &none, control ? fsi__sph_sum(run, 0) : 0, &drift);
    return e;
}

/* ---- figure 9: contact bands ------------------------------------------------------------------------------------ */

enum { BANDS = 4, PANEL_W = 440, PANEL_H = 290 };

/* Teeth with slots of 1.5 and 3 R between them, a spike and a wedge; corners in units of R, clockwise. */
static void build_teeth(void)
{
    static const double xy[] = {1.5, 1, 1.5, 9, 4,    9, 4,    4,  5.5,  4, 5.5, 9,  7.5, 9, 7.5, 4,  10.5, 4, 10.5, 9,
                                12,  9, 12,  4, 13.2, 4, 14.7, 12, 16.2, 4, 17,  10, 19,  5, 21,  10, 22.5, 1};
    shape_begin(2);
    shape_polygon(xy, (int)(sizeof xy / sizeof *xy) / 2);
}

/* Contact energy of a particle at x, in units of kappa V; -1 in the solid. */
static double contact_energy_at(const fsi__sph_run *run, const fsi__faces *faces, fsi_vec3 x)
{
    fsi__lane4 u;
    fsi__sph_wall w;
    memset(&u, 0, sizeof u);
    memset(&w, 0, sizeof w);
    w.kappa = 1;
    w.order = 3;
    fsi__sph_make_wall(run, faces, x, x, &u, &w);
    if (w.contact_count > 0 && w.contact[0].gap < 0) return -1;
    return fsi__sph_contacts(run, &w, -1, &u).energy;
}

static void draw_band(ex_image *im, double dhat, int left, int top)
{
    fsi_sph_desc d = make_desc(2, 1);
    fsi__sph_run run;
    fsi__faces faces;
    fsi_sph *s;
    fsi_mesh *teeth;
    char text[40];
    int i, j;
    d.contact_thickness = (fsi_real)dhat;
    s = make_liquid(&d);
    build_teeth();
    teeth = make_solid(s);
    add_particle(s, v3(0, 0, 0), v3(0, 0, 0));
    ex_check(&app, fsi__sph_begin(&run, s, 1e-3));
    fsi__find_faces(&run.im->obstacles, teeth->box, 0xffffffffu, &faces);
    for (j = 0; j < PANEL_H; j++) {
        for (i = 0; i < PANEL_W; i++) {
            fsi_vec3 x = v3(24.0 * (i + 0.5) / PANEL_W, 24.0 * (PANEL_H - j - 0.5) / PANEL_W - 1, 0);
            double e = fsi_mesh_signed_distance(teeth, x) < 0 ? -1 : contact_energy_at(&run, &faces, x);
            uint32_t rgb = e < 0 ? 0x59616c : e > 0 ? ex_map_color(EX_MAP_HEAT, 1 - e) : 0xf2f5f8;
            ex_rect(im, left + i, top + j, left + i + 1, top + j + 1, rgb, 1);
        }
    }
    snprintf(text, sizeof text, "dhat = %g R", dhat);
    ex_text(im, left + 10, top + 22, 11, EX_LEFT, 0x1c222b, text);
    fsi_sph_destroy(s);
    fsi_mesh_destroy(teeth);
}

static void figure_contact(void)
{
    static const double dhat[BANDS] = { 0.25, 0.5, 1, 2 };
    ex_image im = ex_image_make(2 * PANEL_W + 10, 2 * PANEL_H + 74, 0xffffff);
    char path[600];
    int k, i;
    for (k = 0; k < BANDS; k++) draw_band(&im, dhat[k], k % 2 * (PANEL_W + 10), k / 2 * (PANEL_H + 10));
    ex_text(&im, 10, 2 * PANEL_H + 46, 11, EX_LEFT, 0x1c222b, "Contact energy / (kappa V)      0");
    for (i = 0; i < 240; i++)
        ex_rect(&im, 320 + i, 2 * PANEL_H + 34, 321 + i, 2 * PANEL_H + 50, ex_map_color(EX_MAP_HEAT, 1 - i / 239.0), 1);
    ex_text(&im, 572, 2 * PANEL_H + 46, 11, EX_LEFT, 0x1c222b, "1 and above");
    snprintf(path, sizeof path, "%s/sph_contact_bands.png", app.out);
    if (app.images) ex_save_png(&app, &im, path);
    ex_image_free(&im);
}

/* ---- figure 10: energy per sweep -------------------------------------------------------------------------------- */

enum { SWEEPS = 50, REFERENCE_SWEEPS = 1500 };

/* A shaken block, compressed by 6 % in volume, free or in the corner of a box; S is the stiffness number. */
static fsi_sph *make_pressed_block(double S, double dt, int accelerate, int corner)
{
    fsi_sph_desc d = make_desc(3, 0.02);
    fsi_sph *s;
    uint64_t random = 5;
    int n[3];
    n[0] = n[1] = n[2] = scaled(14);
    d.gravity = v3(0, 0, 0);
    if (corner) d.domain = box3(0, 0, 0, 1, 1, 1);
    d.stiffness = (fsi_real)(S * 1000 * 0.02 * 0.02 / (dt * dt));
    d.accelerate = accelerate;
    s = make_liquid(&d);
    add_lattice(s, v3(0.01, 0.01, 0.01), n, 0.02 * 0.98, 0.1, &random);
    return s;
}

/* Energies before each sweep: the whole and its bulk part, the same units. */
static void record_sweeps(fsi_sph *s, double dt, double *total, double *bulk, int count)
{
    fsi__sph_run run;
    fsi__sph_control control = { 1, HUGE_VAL, 0, 0 };
    int k, r;
    open_solve(&run, s, dt, 1);
    for (k = 0; k < count; k++) {
        total[k] = sweep(&run, &control);
        bulk[k] = 0;
        for (r = 0; r < run.n; r++) bulk[k] += 0.5 * run.mu * (double)run.zp[r].w * (double)run.zp[r].w;
    }
}

/* Equation 36, as a power of ten, against the energy of a solve to the end. */
static void error_rates(double *e, double last)
{
    double first = e[0];
    int k;
    for (k = 0; k <= SWEEPS; k++) {
        double rate = fabs((e[k] - last) / (first - last));
        e[k] = rate > 1e-9 ? log10(rate) : -9;
    }
}

static void figure_sweeps(void)
{
    static const struct { double S; int accelerate, bulk, corner; const char *label, *key; } run[6] = {
        { 10, 1, 0, 0, "S=10 total", "S10_total" }, { 10, 1, 1, 0, "bulk", "S10_bulk" },
        { 10, 0, 0, 0, "plain total", "S10_plain_total" }, { 10, 0, 1, 0, "plain bulk", "S10_plain_bulk" },
        { 10, 1, 0, 1, "in a corner", "S10_corner_total" }, { 100, 1, 0, 0, "S=100 total", "S100_total" }
    };
    static double total[6][SWEEPS + 1], bulk[6][SWEEPS + 1], ref_total[REFERENCE_SWEEPS], ref_bulk[REFERENCE_SWEEPS],
        x[SWEEPS + 1];
    const double dt = 1e-3;
    ex_plot plot =
        ex_plot_begin("Energy error over the sweeps of one step (equation 36)", "sweep", "log10 of the error rate");
    int k;
    for (k = 0; k <= SWEEPS; k++) x[k] = k;
    plot.y_lo = -6;
    plot.y_hi = 0.5;
    for (k = 0; k < 6; k++) {
        char key[64];
        double *curve = run[k].bulk ? bulk[k] : total[k];
        fsi_sph *s = make_pressed_block(run[k].S, dt, run[k].accelerate, run[k].corner);
        record_sweeps(s, dt, total[k], bulk[k], SWEEPS + 1);
        fsi_sph_destroy(s);
        s = make_pressed_block(run[k].S, dt, 1, run[k].corner);
        if (k == 0 || k > 3) record_sweeps(s, dt, ref_total, ref_bulk, REFERENCE_SWEEPS);
        fsi_sph_destroy(s);
        error_rates(curve, (run[k].bulk ? ref_bulk : ref_total)[REFERENCE_SWEEPS - 1]);
        ex_plot_series(&plot, run[k].label, x, curve, SWEEPS + 1, run[k].bulk ? EX_MARK_DASHES : EX_MARK_LINE);
        snprintf(key, sizeof key, "sweeps_%s_error_after_20", run[k].key);
        say(pow(10, curve[20]), "1", "%s", key);
    }
    ex_plot_save(&app, &plot, "sph_sweeps.png");
}

/* ---- figure 11: the way of one particle ------------------------------------------------------------------------- */

/* gamma of a particle above (or in) a block, sweep after sweep; dhat = R, kappa dt^2/(rho0 R^2) = 320, which is what
   the paper's settings amount to. bare: equation 28 without step control. */
static void record_path(double gamma, int first, int bare, double *path)
{
    const double dx = 0.005, dt = 1e-3;
    fsi_sph_desc d = make_desc(3, dx);
    fsi__sph_run run;
    fsi__sph_control control = { 1, HUGE_VAL, 0, 0 };
    fsi_sph *s;
    fsi_mesh *block;
    int k;
    d.gravity = v3(0, 0, 0);
    d.stiffness = (fsi_real)(320 * 1000 * dx * dx / (dt * dt));
    d.contact_thickness = 1;
    d.contact_first = first;
    d.accelerate = !bare;
    s = make_liquid(&d);
    shape_begin(3);
    shape_box(box3(-1, -1, -1, 1, 1, 0));
    block = make_solid(s);
    add_particle(s, v3(0.1, 0.2, gamma * dx), v3(0, 0, 0));
    open_solve(&run, s, dt, 0);
    for (k = 0; k <= SWEEPS; k++) {
        path[k] = gamma + (double)run.uz[0].z * run.h / dx;
        sweep(&run, bare ? NULL : &control);
    }
    fsi_sph_destroy(s);
    fsi_mesh_destroy(block);
}

static void figure_path(void)
{
    static const char *const label[6] = {"n0=2", "n0=2 inside", "with control", "the same inside",
                                         "n0=1", "n0=1 inside"};
    static const char *const key[6] = { "path_n2_from_outside", "path_n2_from_inside", "path_control_from_outside",
                                        "path_control_from_inside", "path_n1_from_outside", "path_n1_from_inside" };
    static double path[6][SWEEPS + 1], x[SWEEPS + 1];
    ex_plot plot = ex_plot_begin("One particle near a wall: gap / dhat over the sweeps", "sweep", "gamma");
    int k;
    for (k = 0; k <= SWEEPS; k++) x[k] = k;
    for (k = 0; k < 6; k++) {
        record_path(k % 2 ? -0.95 : 0.001, k < 4 ? 2 : 1, k / 2 != 1, path[k]);
        say(path[k][SWEEPS], "dhat", "%s", key[k]);
        ex_plot_series(&plot, label[k], x, path[k], SWEEPS + 1, k < 2 ? EX_MARK_LINE : EX_MARK_DASHES);
    }
    ex_plot_save(&app, &plot, "sph_contact_path.png");
}

/* ---- figure 13: gaps -------------------------------------------------------------------------------------------- */

enum { GAP_TIMES = 41 };
#define GAP_SIDE 0.6

/* Boxes with gaps of width `gap` between them, floor, lid and sides, from x = 0.45. */
static void build_wall(int dim, double gap)
{
    double b = (GAP_SIDE - 4 * gap) / 3;
    int i, k;
    shape_begin(dim);
    for (k = 0; k < 3; k++) {
        for (i = 0; i < (dim == 3 ? 3 : 1); i++) {
            double y = gap + i * (b + gap), z = gap + k * (b + gap);
            shape_box(dim == 3 ? box3(0.45, y, z, 0.45 + b / 2, y + b, z + b)
                               : box3(0.45, z, 0, 0.45 + b / 2, z + b, 0));
        }
    }
}

/* Share of the liquid beyond the wall, [%], GAP_TIMES values over 1 s. */
static void record_gap(int dim, double ratio, double dhat, double *passed)
{
    double dx = GAP_SIDE / fmax(16, scaled(dim == 3 ? 20 : 60)), gap = ratio * dx,
           back = 0.45 + (GAP_SIDE - 4 * gap) / 6;
    double in = dhat > 0.5 ? (dhat - 0.5) * dx : 0; /* the first layer starts outside the contact band */
    fsi_sph_desc d = make_desc(dim, dx);
    fsi_sph *s;
    fsi_mesh *wall;
    int k, i;
    d.depth = (fsi_real)0.4;
    d.contact_thickness = (fsi_real)dhat;
    d.domain = dim == 3 ? box3(0, 0, 0, 1.2, GAP_SIDE, GAP_SIDE) : box3(0, 0, 0, 1.2, GAP_SIDE, 0);
    s = make_liquid(&d);
    build_wall(dim, gap);
    wall = make_solid(s);
    ex_check(&app,
             fsi_sph_fill_box(s, dim == 3 ? box3(in, in, in, 0.3, GAP_SIDE - in, 0.4) : box3(in, in, 0, 0.3, 0.4, 0),
                              v3(0, 0, 0), NULL));
    for (k = 0; k < GAP_TIMES; k++) {
        passed[k] = 0;
        for (i = 0; i < s->count; i++) passed[k] += 100.0 * ((double)s->position[i].x > back) / s->count;
        if (k + 1 < GAP_TIMES) ex_check(&app, fsi_sph_step(s, (fsi_real)0.025));
    }
    fsi_sph_destroy(s);
    fsi_mesh_destroy(wall);
}

/* One plot of runs { L/R, dhat/R } that differ in column `varies`; from run `dashed` on with dashes. */
static void plot_gaps(int dim, const double (*runs)[2], int count, int varies, int dashed, const char *title,
                      const char *file)
{
    static double passed[8][GAP_TIMES], t[GAP_TIMES];
    static char label[8][32];
    ex_plot plot = ex_plot_begin(title, "time [s]", "passed [% of the liquid]");
    int k;
    plot.y_hi = dim == 3 ? 80 : 35;
    for (k = 0; k < GAP_TIMES; k++) t[k] = 0.025 * k;
    for (k = 0; k < count; k++) {
        char key[64];
        record_gap(dim, runs[k][0], runs[k][1], passed[k]);
        snprintf(label[k], sizeof label[k], "%s=%g R", varies ? "dhat" : "L", runs[k][varies]);
        ex_plot_series(&plot, label[k], t, passed[k], GAP_TIMES, k < dashed ? EX_MARK_LINE : EX_MARK_DASHES);
        snprintf(key, sizeof key, "passed_%dd_L%g_dhat%g", dim, runs[k][0], runs[k][1]);
        say(passed[k][GAP_TIMES - 1], "%", "%s", key);
    }
    ex_plot_save(&app, &plot, file);
}

static void figure_gaps(void)
{
    static const double gap[6][2] = { { 1, 0.5 }, { 2, 0.5 }, { 3, 0.5 }, { 1, 1 }, { 2, 1 }, { 3, 1 } };
    static const double thickness[5][2] = { { 3, 0.25 }, { 3, 0.5 }, { 3, 1 }, { 3, 1.5 }, { 3, 2 } };
    plot_gaps(2, gap, 6, 0, 3, "Through a wall of boxes, 2D: dhat = R/2, dashed dhat = R", "sph_gaps_2d.png");
    plot_gaps(2, thickness, 5, 1, 5, "Through a wall of boxes, 2D: L = 3 R", "sph_gaps_dhat_2d.png");
    plot_gaps(3, gap, 6, 0, 3, "Through a wall of boxes, 3D: dhat = R/2, dashed dhat = R", "sph_gaps_3d.png");
    plot_gaps(3, thickness, 5, 1, 5, "Through a wall of boxes, 3D: L = 3 R", "sph_gaps_dhat_3d.png");
}

/* ---- figure 14 d, e: energy and density of the dam break -------------------------------------------------------- */

enum { DAM_TIMES = 401 };

static void figure_dam(void)
{
    static double t[DAM_TIMES], total[DAM_TIMES], kinetic_part[DAM_TIMES], error[DAM_TIMES], compressed[DAM_TIMES];
    double dx = 0.55 / scaled(14), e0 = 1, worst = 0, mean = 0;
    fsi_sph_desc d = make_desc(3, dx);
    ex_plot energy = ex_plot_begin("Dam break over a box: mechanical energy over its start", "time [s]", "E / E0");
    ex_plot density = ex_plot_begin("Dam break over a box: density error", "time [s]", "error [%]");
    fsi_sph *s;
    fsi_mesh *box;
    int k, i;
    d.depth = (fsi_real)0.55;
    d.domain = box3(0, 0, 0, 3.22, 1, 2);
    s = make_liquid(&d);
    shape_begin(3);
    shape_box(box3(0.6635, 0.2985, 0, 0.8245, 0.7015, 0.161));
    box = make_solid(s);
    ex_check(&app,
             fsi_sph_fill_box(s, box3(3.22 - dx * floor(1.228 / dx + 0.5), 0, 0, 3.22, 1, 0.55), v3(0, 0, 0), NULL));
    for (k = 0; k < DAM_TIMES; k++) {
        if (k > 0) ex_check(&app, fsi_sph_step(s, (fsi_real)0.01));
        else for (e0 = 0, i = 0; i < s->count; i++) e0 += (double)s->particle_mass * 9.81 * height(s, i);
        t[k] = 0.01 * k;
        total[k] = k ? (s->stats.kinetic_energy + s->stats.potential_energy) / e0 : 1;
        kinetic_part[k] = k ? s->stats.kinetic_energy / e0 : 0;
        compressed[k] = 100 * s->stats.mean_compression;
        for (error[k] = 0, i = 0; i < s->count && k; i++)
            error[k] += 100 * ((double)s->density_ratio[i] - 1) / s->count;
        if (k && total[k] - total[k - 1] > worst) worst = total[k] - total[k - 1];
        mean += compressed[k] / DAM_TIMES;
    }
    error[0] = error[1];
    ex_plot_series(&energy, "kinetic + potential", t, total, DAM_TIMES, EX_MARK_LINE);
    ex_plot_series(&energy, "kinetic", t, kinetic_part, DAM_TIMES, EX_MARK_LINE);
    ex_plot_series(&density, "mean of lambda - 1", t, error, DAM_TIMES, EX_MARK_LINE);
    ex_plot_series(&density, "mean of max(lambda - 1, 0)", t, compressed, DAM_TIMES, EX_MARK_LINE);
    ex_plot_save(&app, &energy, "sph_energy.png");
    ex_plot_save(&app, &density, "sph_density.png");
    say(s->count, "1", "dam_particles");
    say(total[DAM_TIMES - 1], "E0", "dam_energy_at_4s");
    say(worst, "E0", "dam_largest_energy_gain_in_10ms");
    say(mean, "%", "dam_mean_compression");
    fsi_sph_destroy(s);
    fsi_mesh_destroy(box);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*draw)(void);
    } figures[] = {{"contact", figure_contact},
                   {"sweeps", figure_sweeps},
                   {"path", figure_path},
                   {"gaps", figure_gaps},
                   {"dam", figure_dam}};
    const char *only = NULL;
    int k;
    ex_init(&app, "validate_figures", "Redraws the paper's figures.");
    app.res = 100;
    app.res_help = "per cent of the full number of particles along an edge";
    app.out = "docs/plots";
    ex_operand(&app, "figure", &only, "contact, sweeps, path, gaps or dam; none: all");
    if (!ex_begin(&app, argc, argv)) return app.exit_code;
    for (k = 0; k < 5; k++) if (!only || strcmp(only, figures[k].name) == 0) figures[k].draw();
    ex_pool_stop(&app.pool);
    return 0;
}
